/* links.c - ranks whose simulated GPUs exchange data by the simulated NCCL: links KIND, run by mpirun with LIBGRAD_MPI,
 * LIBGRAD_CUDA and LG_TEST_DEVICE. Prints "held" if all did, else what did not. KIND:
 *   right    what all ranks have, and what none of them waits for
 *   absent   the last rank has no NCCL;  refused  it cannot join;  shared  all ranks have the same GPU: all go through
 *            the host
 *   differ   the last rank does something else
 *   reads, waits, uploads, loads, frees, copies, closes, sleeps
 *            the last rank's NCCL does not go on, and then the ranks do that: they get an error, and parameters are as
 *            before the step;  dies  that rank is killed then;  remote  NCCL says that it is gone
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rank.h"

#define SECONDS 2.0 /* the time limit */
#define MOST 4096

static int messages;
static char message[600];

static void take_message(lg_ctx *ctx, const char *text, void *user)
{
        (void)ctx;
        (void)user;
        messages++;
        snprintf(message, sizeof message, "%s", text);
}

/* What the simulator counts. */
static int64_t count(const char *name)
{
        void *module = dlopen(getenv("LIBGRAD_CUDA"), RTLD_NOW | RTLD_LOCAL);
        int64_t (*fn)(void) = NULL;
        *(void **)&fn = module ? dlsym(module, name) : NULL;
        CHECK(fn);
        return fn ? fn() : -1;
}

/* ---- training ---- */

typedef struct training {
        lg_module *net;
        lg_optimizer *opt;
        lg_tensor *x, *spare; /* of the same size */
} training;

static training new_training(void)
{
        training t;
        t.net = lg_nn_sequential(c, lg_nn_linear(c, 6, 40), lg_nn_relu(c), lg_nn_linear(c, 40, 3));
        CHECK(lg_data_parallel(t.net, g, .bucket_bytes = 512));
        t.opt = lg_adam(c, lg_parameters(t.net), 0.01);
        t.x = lg_keep(lg_normal(c, 0, 1, LG_SHAPE(5, 6)));
        t.spare = lg_keep(lg_empty(c, LG_SHAPE(5, 6)));
        return t;
}

static bool step(const training *t)
{
        const lg_scope scope = lg_scope_begin(c);
        lg_zero_grad(t->opt);
        lg_tensor *loss = lg_mean(lg_square(lg_forward(t->net, t->x)));
        const bool ok = lg_backward(loss) && lg_step(t->opt);
        lg_scope_end(c, scope);
        return ok;
}

/* How many parameters there are; 0: an error. */
static int64_t read_parameters(const training *t, double *ret)
{
        const lg_list list = lg_parameters(t->net);
        int64_t n = 0;
        for (int64_t i = 0; i < list.count && n >= 0; i++) {
                const int64_t some = lg_numel(list.items[i]);
                if (!lg_read(list.items[i], ret + n, LG_F64, (size_t)some * sizeof *ret))
                        return 0;
                n += some;
        }
        return n;
}

static void end_training(const training *t)
{
        lg_optimizer_free(t->opt);
        lg_module_free(t->net);
}

/* ---- what is right ---- */

static lg_tensor *ranks_of(lg_dtype dtype, int64_t n)
{
        return lg_full(c, LG_SHAPE(size, n), rank + 1, .dtype = dtype);
}

static void check_values(int64_t n)
{
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
        const double sum = size * (size + 1) / 2.0;
        for (int i = 0; i < 7; i++) {
                lg_tensor *x = ranks_of(dtypes[i], n), *y = lg_all_reduce(x, g), *all = lg_all_gather(x, g);
                CHECK(lg_item(lg_amax(y)) == sum && lg_item(lg_amin(y)) == sum);
                CHECK(lg_item(lg_amin(lg_all_reduce(x, g, .op = LG_REDUCE_OP_MAX))) == size);
                CHECK(lg_item(lg_amin(lg_broadcast(x, g, size - 1))) == size);
                for (int r = 0; r < size; r++) {
                        lg_tensor *part = lg_slice(all, 0, r * size, (r + 1) * size);
                        CHECK(lg_item(lg_amin(part)) == r + 1 && lg_item(lg_amax(part)) == r + 1);
                }
                lg_tensor *own = lg_reduce_scatter(x, g);
                CHECK(lg_shape_of(own).size[0] == 1 && lg_item(lg_amin(own)) == sum && lg_item(lg_amax(own)) == sum);
        }
        lg_tensor *any = lg_all_reduce(lg_full(c, LG_SHAPE(n), rank == 0, .dtype = LG_BOOL), g);
        CHECK(lg_item(lg_sum(any)) == (double)n);
        lg_tensor *mean = lg_all_reduce(ranks_of(LG_F64, n), g, .op = LG_REDUCE_OP_MEAN);
        CHECK(lg_item(lg_amax(mean)) > sum / size - 1e-12 && lg_item(lg_amax(mean)) < sum / size + 1e-12);
        CHECK(lg_numel(lg_all_reduce(lg_zeros(c, LG_SHAPE(0, 3)), g)) == 0);
}

/* From each rank to the next. */
static void check_pairs(void)
{
        lg_tensor *x = lg_full(c, LG_SHAPE(70000), rank), *got = x;
        for (int r = 0; r + 1 < size; r++) {
                if (rank == r)
                        CHECK(lg_send(x, g, r + 1));
                if (rank == r + 1)
                        CHECK((got = lg_receive(x, g, r)) && lg_item(lg_amin(got)) == r && lg_item(lg_amax(got)) == r);
        }
}

/* A tensor of the host on one rank: all go through it. */
static void check_mixed(void)
{
        lg_tensor *x = lg_full(c, LG_SHAPE(5), rank + 1, .device = rank ? lg_group_device(g) : lg_cpu());
        CHECK(lg_item(lg_sum(lg_all_reduce(x, g))) == 5 * size * (size + 1) / 2.0);
        CHECK(lg_item(lg_sum(lg_broadcast(x, g, 0))) == 5);
}

static void check_right(void)
{
        lg_device_info_t info;
        CHECK(lg_device_info(c, lg_group_device(g), &info) && info.nccl_number >= 21400 && info.nccl[0] == '2');
        lg_tensor *first = lg_full(c, LG_SHAPE(3), 7); /* before there is a link */
        if (rank < 2)
                CHECK(rank ? lg_item(lg_sum(lg_receive(first, g, 0))) == 21 : lg_send(first, g, 1) != NULL);
        check_mixed();
        check_values(3);
        check_values(40000);
        check_pairs();
        check_mixed();
        int64_t handles = 0;
        for (int i = 0; i < 3; i++) { /* the first times, memory for uploads is pinned */
                handles = count("cudasim_handles");
                lg_group *part = lg_group_split(g, rank % 2);
                CHECK(lg_item(lg_all_reduce(lg_ones(c, LG_SHAPE_0D), part)) == lg_group_size(part));
                lg_group_close(part);
        }
        CHECK(count("cudasim_handles") == handles);
        training t = new_training();
        for (int i = 0; i < 3; i++)
                CHECK(step(&t));
        CHECK(lg_synchronize(c));
        const int64_t waits = count("cudasim_waits");
        for (int i = 0; i < 5; i++)
                CHECK(step(&t));
        CHECK(count("cudasim_waits") == waits);
        CHECK(lg_synchronize(c) && messages == 0);
        end_training(&t);
}

/* ---- what goes through the host ---- */

static void check_host(const char *words)
{
        lg_device_info_t info;
        const bool there = !getenv("CUDASIM_NCCL");
        CHECK(lg_device_info(c, lg_group_device(g), &info) && (info.nccl_number != 0) == there);
        check_values(3);
        lg_tensor *first = lg_full(c, LG_SHAPE(3), 7);
        if (rank < 2)
                CHECK(rank ? lg_item(lg_sum(lg_receive(first, g, 0))) == 21 : lg_send(first, g, 1) != NULL);
        training t = new_training();
        for (int i = 0; i < 3; i++)
                CHECK(step(&t));
        end_training(&t);
        CHECK(messages == (rank == 0) && (rank || strstr(message, words)));
        if (rank == 0 && !strstr(message, words))
                fprintf(stderr, "the message is: %s\n", message);
}

/* ---- what goes wrong ---- */

static void check_differ(void)
{
        CHECK(lg_item(lg_all_reduce(lg_ones(c, LG_SHAPE_0D), g)) == size);
        CHECK(!lg_all_reduce(lg_ones(c, LG_SHAPE(rank == size - 1 ? 3 : 4)), g));
        CHECK(lg_error_code_of(c) == LG_ERR_COMM && strstr(lg_error(c), "(4,)") && strstr(lg_error(c), "(3,)"));
        lg_clear_error(c);
        CHECK(!lg_all_reduce(lg_ones(c, LG_SHAPE_0D), g) && lg_error_code_of(c) == LG_ERR_COMM);
        lg_clear_error(c);
}

/* What makes the host wait; false: an error. */
static bool wait_by(const char *kind, const training *t, lg_loader *l)
{
        static double values[MOST];
        lg_batch b;
        if (!strcmp(kind, "waits"))
                return lg_synchronize(c);
        if (!strcmp(kind, "uploads")) { /* more than fits into pinned memory, so that a copy must end */
                for (int i = 0; i < 400; i++)
                        if (!lg_from(c, values, LG_SHAPE(MOST)))
                                return false;
                return true;
        }
        if (!strcmp(kind, "loads")) { /* a kernel that was not used before, in memory that is there */
                lg_free(t->spare);
                return lg_sin(t->x) != NULL;
        }
        if (!strcmp(kind, "copies")) { /* the copy of a batch of the loader comes after the steps */
                while (lg_loader_next(l, &b)) {
                }
                return !lg_error(c);
        }
        if (!strcmp(kind, "frees")) {
                lg_empty_cache(c);
                return lg_square(t->x) != NULL;
        }
        if (!strcmp(kind, "sleeps") && rank < size - 1)
                return step(t);
        return read_parameters(t, values) != 0;
}

/* Two steps set off without an error, since nobody waits; who then does gets the error. */
static void check_lost(const char *kind)
{
        static double before[MOST], after[MOST];
        const bool last = rank == size - 1, sleeps = !strcmp(kind, "sleeps"), closes = !strcmp(kind, "closes");
        training t = new_training();
        lg_tensor *rows = lg_zeros(c, LG_SHAPE(64, 8), .device = lg_cpu());
        lg_loader *l = lg_loader_open(c, lg_dataset_list(c, LG_LIST(rows)), 2, .workers = 1, .prefetch = 2);
        for (int i = 0; i < 3; i++)
                CHECK(step(&t));
        const int64_t n = read_parameters(&t, before);
        CHECK(n > 0 && lg_synchronize(c));
        const pid_t sleeper = process_of(size - 1);
        if (last)
                setenv("CUDASIM_NCCL_STALL", "1", 1);
        CHECK(step(&t));
        if (!sleeps)
                CHECK(step(&t));
        if (!strcmp(kind, "dies") && last)
                raise(SIGKILL);
        if (sleeps && last)
                await_wake_up(); /* the others wait for it to say what it does next */
        const bool remote = !strcmp(kind, "remote");
        if (remote)
                setenv("CUDASIM_NCCL_ERROR", "1", 1);
        if (closes) {
                lg_close(c);
                return;
        }
        CHECK(!wait_by(kind, &t, l));
        if (sleeps && !last)
                kill(sleeper, SIGUSR1);
        const char *why = remote ? "ncclAllReduce: remote process exited" : "NCCL: no end after 2 s of nccl";
        CHECK(lg_error_code_of(c) == LG_ERR_COMM && (sleeps || strstr(lg_error(c), why)));
        lg_clear_error(c);
        CHECK(read_parameters(&t, after) == n && memcmp(before, after, (size_t)n * sizeof *after) == 0);
        CHECK(lg_synchronize(c));
        CHECK(!lg_barrier(g) && lg_error_code_of(c) == LG_ERR_COMM);
        lg_clear_error(c);
        CHECK(lg_item(lg_sum(lg_ones(c, LG_SHAPE(4)))) == 4);
        lg_loader_close(l);
        end_training(&t);
}

int main(int argc, char **words)
{
        const char *kind = argc == 2 ? words[1] : "", *launched = getenv("OMPI_COMM_WORLD_RANK");
        const char *of = getenv("OMPI_COMM_WORLD_SIZE");
        keep_wake_up();
        const bool last = launched && of && atoi(launched) == atoi(of) - 1;
        if (!strcmp(kind, "absent") && last)
                setenv("CUDASIM_NCCL", "0", 1);
        if (!strcmp(kind, "refused") && last)
                setenv("CUDASIM_NCCL_REFUSE", "1", 1);
        if (!strcmp(kind, "loads"))
                setenv("CUDASIM_LAZY", "1", 1);
        c = lg_open(.threads = 1, .seed = 3);
        lg_on_message(c, take_message, NULL);
        lg_set_default_device(c, lg_parse_device(c, getenv("LG_TEST_DEVICE")));
        const bool refused = !strcmp(kind, "refused");
        const bool fails = strcmp(kind, "right") && strcmp(kind, "absent") && strcmp(kind, "shared") && !refused;
        g = lg_group_open(c,
                          .timeout = fails     ? SECONDS
                                     : refused ? 2 * SECONDS
                                               : 60,
                          .device = !strcmp(kind, "shared") ? LG_DEVICE(LG_DEVICE_CUDA, 1) : LG_NO_DEVICE);
        lg_set_default_device(c, lg_group_device(g));
        rank = lg_group_rank(g);
        size = lg_group_size(g);
        CHECK(g && size > 1);
        if (!strcmp(kind, "right"))
                check_right();
        else if (!strcmp(kind, "absent"))
                check_host("has no NCCL: $CUDASIM_NCCL is 0");
        else if (!strcmp(kind, "shared"))
                check_host("ranks 0 and 1 use the same device of ");
        else if (refused)
                check_host("rank 0: NCCL: no end after 2 s of ncclCommInitRankConfig");
        else if (!strcmp(kind, "differ"))
                check_differ();
        else
                check_lost(kind);
        if (strcmp(kind, "closes")) {
                CHECK(!lg_error(c));
                lg_close(c);
        }
        c = NULL;
        CHECK(count("cudasim_handles") == 0 && count("cudasim_bytes") == 0);
        return verdict(fails ? 5 : 0);
}
