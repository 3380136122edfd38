/* recorded.c - recorded steps of several ranks: recorded KIND, run by mpirun with LIBGRAD_MPI, or alone. Prints "held"
 * if all did, else what did not. On the device that LG_TEST_DEVICE names. KIND:
 *   right    recordings give the bits of the function: of ranks whose GPUs exchange data by NCCL, or of one rank
 *   host     what goes through the memory of the host is refused
 *   weights  so are weights of the ranks
 *   closed   all close the group between the runs;  leaves  only the last rank does;  stalls  its NCCL does not go on
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rank.h"

enum { STEPS = 30, MOST = 4096 };

static lg_group *part_of_g; /* the ranks whose numbers are even, or odd */

/* ---- a training ---- */

typedef struct training {
        lg_module *net;
        lg_optimizer *opt;
        lg_scaler *scaler;
        lg_recorder *recorder;
} training;

static lg_module *plain(void)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 6, 40), lg_nn_relu(c), lg_nn_linear(c, 40, 3));
}

/* Buffers go from rank 0 to the others; each rank has random numbers of its own. */
static lg_module *with_buffers(void)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 6, 40), lg_nn_batch_norm1d(c, 40), lg_nn_relu(c),
                                lg_nn_dropout(c, 0.3), lg_nn_linear(c, 40, 3));
}

static lg_module *synchronised(void)
{
        lg_module *net = with_buffers();
        CHECK(lg_sync_batch_norm(net, g));
        return net;
}

static lg_tensor *loss_of(const training *t, lg_tensor *x)
{
        return lg_mean(lg_square(lg_forward(t->net, x)));
}

static lg_tensor *step(lg_ctx *ctx, lg_list in, void *user)
{
        training *t = user;
        (void)ctx;
        lg_tensor *loss = loss_of(t, in.items[0]);
        lg_zero_grad(t->opt);
        lg_backward(loss);
        lg_clip_grad_norm(lg_parameters(t->net), 0.5);
        lg_step(t->opt);
        return lg_all_reduce(lg_detach(loss), g, .op = LG_REDUCE_OP_MEAN);
}

static lg_tensor *accumulate(lg_ctx *ctx, lg_list in, void *user)
{
        training *t = user;
        (void)ctx;
        lg_zero_grad(t->opt);
        lg_no_sync(t->net) lg_backward(loss_of(t, lg_slice(in.items[0], 0, 0, 2)));
        lg_tensor *loss = loss_of(t, lg_slice(in.items[0], 0, 2, 5));
        lg_backward(loss);
        lg_step(t->opt);
        return loss;
}

static lg_tensor *scale(lg_ctx *ctx, lg_list in, void *user)
{
        training *t = user;
        (void)ctx;
        lg_tensor *loss = loss_of(t, in.items[0]);
        lg_zero_grad(t->opt);
        lg_scaler_backward(t->scaler, loss);
        lg_scaler_step(t->scaler, t->opt);
        lg_scaler_update(t->scaler);
        return loss;
}

/* Every collective function, and the derivatives of most. */
static lg_tensor *exchange(lg_ctx *ctx, lg_list in, void *user)
{
        const training *t = user;
        lg_tensor *w = lg_parameters(t->net).items[0], *sum = lg_all_reduce(w, g);
        lg_tensor *most = lg_all_reduce(w, g, .op = LG_REDUCE_OP_MAX), *first = lg_broadcast(w, g, 0);
        lg_tensor *all = lg_all_gather(lg_mul(w, sum), g), *part = lg_reduce_scatter(lg_square(all), g);
        lg_tensor *own = lg_add(in.items[0], lg_all_reduce(in.items[0], part_of_g));
        CHECK(lg_all_reduce_(own, g, LG_REDUCE_OP_MEAN) && lg_broadcast_(own, g, size - 1));
        lg_tensor *loss = lg_add(lg_mean(lg_mul(part, most)), lg_mul(lg_mean(lg_square(first)), lg_mean(own)));
        if (size > 1 && rank == 0)
                loss = lg_add(loss, lg_send(lg_square(w), g, 1));
        if (rank == 1)
                loss = lg_add(loss, lg_mean(lg_receive(w, g, 0)));
        (void)ctx;
        lg_zero_grad(t->opt);
        lg_backward(loss);
        lg_step(t->opt);
        return loss;
}

static void switch_mode(training *t, int i)
{
        if (i % 10 == 0)
                lg_set_sync_mode(t->net, i % 20 == 0);
}

static void switch_parallel(training *t, int i)
{
        if (i == 10)
                CHECK(lg_data_parallel(t->net, g));
}

static void switch_norm(training *t, int i)
{
        if (i == 10)
                CHECK(lg_sync_batch_norm(t->net, g));
}

typedef struct scenario {
        const char *name;
        lg_module *(*network)(void);
        lg_function *step;
        void (*between)(training *t, int i);
        int ordinary;  /* runs that use no recording */
        int exchanges; /* in the recording, at least; 0: there are several */
        bool alone;    /* no module is data-parallel */
        int verify_every;
} scenario;
static const scenario scenarios[] = {
        {"plain", plain, step, NULL, 3, 4, false, 0},
        {"verified", plain, step, NULL, 3 + 6, 4, false, 4},
        {"buffers", with_buffers, step, NULL, 3, 6, false, 0},
        {"synchronised", synchronised, step, NULL, 3, 8, false, 0},
        {"accumulated", plain, accumulate, NULL, 3, 3, false, 0},
        {"scaled", plain, scale, NULL, 3, 3, false, 0},
        {"collectives", plain, exchange, NULL, 3, 13, true, 0},
        {"modes", plain, step, switch_mode, 6, 0, false, 0},
        {"parallel later", plain, step, switch_parallel, 6, 0, true, 0},
        {"synchronised later", with_buffers, step, switch_norm, 6, 0, false, 0},
};

static training new_training(const scenario *s)
{
        training t = {.net = s->network()};
        CHECK(s->alone || lg_data_parallel(t.net, g, .bucket_bytes = 512));
        t.opt = lg_adam(c, lg_parameters(t.net), 0.01);
        t.scaler = lg_scaler_new(c, .growth_interval = 7);
        return t;
}

static void end_training(training *t)
{
        if (lg_sync_mode(t->net)) /* lg_close() frees the others */
                lg_recorder_free(t->recorder);
        lg_scaler_free(t->scaler);
        lg_optimizer_free(t->opt);
        lg_module_free(t->net);
}

/* The losses of the steps, and parameters and buffers after the last. */
typedef struct outcome {
        int64_t count;
        double values[MOST];
} outcome;

static void read_tensor(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        outcome *o = user;
        (void)path;
        (void)is_buffer;
        CHECK(lg_read(t, o->values + o->count, LG_F64, (size_t)lg_numel(t) * sizeof *o->values));
        o->count += lg_numel(t);
}

/* The number that the print of a recorder has before `words`; 0: it does not have these. */
static int printed(const lg_recorder *r, const char *words)
{
        char text[1 << 15] = "";
        FILE *f = tmpfile();
        CHECK(f && lg_recorder_print(f, r));
        rewind(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
        const char *at = strstr(text, words);
        while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
                at--;
        return at ? atoi(at) : 0;
}

static lg_tensor *batch(int i)
{
        return lg_sin(lg_mul_scalar(lg_reshape(lg_arange(c, 0, 30, 1), LG_SHAPE(5, 6)), 0.1 * (i + 1) * (rank + 1)));
}

static void train(const scenario *s, bool eager, outcome *o)
{
        lg_seed(c, 3);
        training t = new_training(s);
        t.recorder = lg_recorder_new(c, s->step, .user = &t, .eager = eager, .verify_every = s->verify_every);
        o->count = 0;
        for (int i = 0; i < STEPS && !lg_error(c); i++) {
                const lg_scope scope = lg_scope_begin(c);
                if (s->between)
                        s->between(&t, i);
                lg_tensor *loss = lg_recorder_run(t.recorder, batch(i));
                o->values[o->count++] = loss ? lg_item(loss) : NAN;
                lg_scope_end(c, scope);
        }
        CHECK(lg_each_tensor(t.net, read_tensor, o));
        const int ordinary = s->between == switch_mode && size == 1 ? 3 : s->ordinary; /* alone, there is no mode */
        CHECK(lg_recorder_replays(t.recorder) == (eager ? 0 : STEPS - ordinary));
        if (!eager && size > 1 && s->exchanges) /* what is between two exchanges is a graph */
                CHECK(printed(t.recorder, " exchanges") >= s->exchanges &&
                      (getenv("CUDASIM_CAPTURE") != NULL) == (printed(t.recorder, " graphs") < 3));
        end_training(&t);
}

static void check_right(void)
{
        static outcome eager, recorded;
        part_of_g = lg_group_split(g, rank % 2);
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios && !lg_error(c); i++) {
                train(&scenarios[i], true, &eager);
                train(&scenarios[i], false, &recorded);
                const bool same = eager.count == recorded.count &&
                                  !memcmp(eager.values, recorded.values, (size_t)eager.count * sizeof *eager.values);
                CHECK(same);
                if (!same || failures)
                        fprintf(stderr, "in %s\n", scenarios[i].name);
        }
}

/* ---- what is refused ---- */

/* By t's recorder or, if it has none, by a new one. */
static bool refused(lg_function *fn, training *t, const char *first, const char *second)
{
        lg_recorder *r = t->recorder ? t->recorder : lg_recorder_new(c, fn, .user = t);
        const bool ran = lg_recorder_run(r, batch(0)) != NULL;
        const bool said = lg_error(c) && strstr(lg_error(c), first) && strstr(lg_error(c), second);
        if (ran || !said || lg_error_code_of(c) != LG_ERR_STATE)
                fprintf(stderr, "rank %d: not refused as %s: %s\n", rank, first,
                        lg_error(c) ? lg_error(c) : "no error");
        lg_clear_error(c);
        if (!t->recorder)
                lg_recorder_free(r);
        return !ran && said;
}

static lg_tensor *reduce(lg_ctx *ctx, lg_list in, void *user)
{
        (void)ctx, (void)user;
        return lg_all_reduce(in.items[0], g);
}

static lg_tensor *meet(lg_ctx *ctx, lg_list in, void *user)
{
        (void)ctx, (void)user;
        return lg_barrier(g) ? in.items[0] : NULL;
}

static lg_tensor *divide(lg_ctx *ctx, lg_list in, void *user)
{
        (void)ctx, (void)user;
        lg_group_close(lg_group_split(g, 0));
        return in.items[0];
}

static void check_host(void)
{
        training t = new_training(&scenarios[0]);
        const char *words = "through the memory of the host";
        CHECK(refused(reduce, &t, "all_reduce: is called in", words));
        CHECK(refused(meet, &t, "lg_barrier: is called in", "between the runs"));
        CHECK(refused(divide, &t, "lg_group_split: is called in", "between the runs"));
        CHECK(lg_item(lg_all_reduce(lg_ones(c, LG_SHAPE_0D), g)) == size); /* the group works on */
        CHECK(refused(step, &t, "lg_backward: is called in", words));
        end_training(&t);
}

static void check_weights(void)
{
        training t = new_training(&scenarios[0]);
        t.recorder = lg_recorder_new(c, step, .user = &t);
        for (int i = 0; i < 5; i++)
                CHECK(lg_recorder_run(t.recorder, batch(i)));
        CHECK(lg_recorder_replays(t.recorder) == 2 && lg_set_data_parallel_weight(t.net, 2.0 + rank));
        CHECK(refused(step, &t, "lg_backward: is called in", "lg_set_data_parallel_weight"));
        end_training(&t);
}

/* ---- what goes wrong between the runs ---- */

static void check_gone(const char *kind)
{
        static outcome before, after;
        const bool last = rank == size - 1, all = !strcmp(kind, "closed");
        training t = new_training(&scenarios[0]);
        t.recorder = lg_recorder_new(c, step, .user = &t);
        for (int i = 0; i < 6; i++)
                CHECK(lg_recorder_run(t.recorder, batch(i)));
        CHECK(lg_recorder_replays(t.recorder) == 3 && lg_each_tensor(t.net, read_tensor, &before));
        if (!strcmp(kind, "stalls") && last)
                setenv("CUDASIM_NCCL_STALL", "1", 1);
        else if (all || (last && !strcmp(kind, "leaves"))) {
                lg_group_close(g);
                g = NULL;
        }
        for (int i = 0; i < 2; i++) {
                lg_tensor *loss = lg_recorder_run(t.recorder, batch(6));
                CHECK(!loss || isnan(lg_item(loss)));
                CHECK(lg_error_code_of(c) == (g ? LG_ERR_COMM : LG_ERR_STATE));
                lg_clear_error(c);
                CHECK(lg_each_tensor(t.net, read_tensor, &after));
                CHECK(before.count == after.count && !memcmp(before.values, after.values, (size_t)after.count * 8));
                after.count = 0;
        }
        end_training(&t);
}

int main(int count, char **words)
{
        const char *kind = count == 2 ? words[1] : "";
        keep_wake_up();
        if (!join(strcmp(kind, "right") ? 2 : 60))
                return 1;
        lg_set_deterministic(c, true);
        if (!strcmp(kind, "right"))
                check_right();
        else if (!strcmp(kind, "host"))
                check_host();
        else if (!strcmp(kind, "weights"))
                check_weights();
        else
                check_gone(kind);
        CHECK(!lg_error(c));
        lg_close(c);
        c = NULL;
        return verdict(!strcmp(kind, "right") || !strcmp(kind, "closed") ? 0 : 4);
}
