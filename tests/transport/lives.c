/* lives.c - a training of several ranks that goes on after a stop, or loses one of them: lives FILE STEPS [RANK MS],
 * run by mpirun with LIBGRAD_MPI, or alone.
 *
 * Trains in f64 until so many steps are done; rank 0 prints the loss of each and saves the run to FILE, from which all
 * go on if it exists. With RANK, that rank is killed MS milliseconds after the group was opened. Then the others must
 * fail with LG_ERR_COMM within the time limit, with whole parameters, and be able to save. Prints "held" if all did,
 * else what did not.
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "rank.h"

#define BATCH 24 /* of all ranks together */
#define SAMPLES 100
#define LIMIT 2.0 /* seconds */

static double seconds(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

static void die(int signal)
{
        (void)signal;
        kill(getpid(), SIGKILL);
}

static void die_after(int milliseconds)
{
        struct itimerval when = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000 + 1}};
        signal(SIGALRM, die);
        setitimer(ITIMER_REAL, &when, NULL);
}

typedef struct training {
        lg_module *net;
        lg_optimizer *opt;
        lg_loader *batches;
        lg_checkpoint *run;
        int64_t step;
} training;

static bool begin(training *t)
{
        lg_tensor *x = lg_sin(lg_arange(c, 0, SAMPLES * 16, 1, .dtype = LG_F64));
        lg_tensor *y =
                lg_remainder(lg_arange(c, 0, SAMPLES, 1, .dtype = LG_I64), lg_full(c, LG_SHAPE_0D, 4, .dtype = LG_I64));
        lg_dataset *data = lg_dataset_list(c, LG_LIST(lg_reshape(x, LG_SHAPE(SAMPLES, 16)), y));
        t->net = lg_nn_sequential(c, lg_nn_linear(c, 16, 200), lg_nn_tanh(c), lg_nn_linear(c, 200, 4));
        t->opt = lg_module_cast(t->net, LG_F64) ? lg_adam(c, lg_parameters(t->net), 1e-2) : NULL;
        t->batches = lg_loader_open(c, data, BATCH / size, .shuffle = true, .drop_last = true, .seed = 7, .group = g);
        t->run = lg_checkpoint_new(c);
        return lg_checkpoint_add(t->run, "model", t->net) && lg_checkpoint_add(t->run, "optimizer", t->opt) &&
               lg_checkpoint_add(t->run, "batches", t->batches) && lg_checkpoint_add_i64(t->run, "step", &t->step);
}

/* Steps until `steps` are done, or until one fails. */
static void go_on(training *t, int64_t steps, const char *file)
{
        while (t->step < steps && !lg_error(c))
                lg_each_batch(b, t->batches)
                {
                        lg_tensor *loss = lg_cross_entropy(lg_forward(t->net, b.x), b.y);
                        lg_zero_grad(t->opt);
                        if (!lg_backward(loss) || !lg_step(t->opt))
                                break;
                        lg_tensor *mean = lg_all_reduce(lg_detach(loss), g, .op = LG_REDUCE_OP_MEAN);
                        const double value = lg_item(mean);
                        t->step += mean != NULL;
                        if (rank == 0 && mean) {
                                printf("step %d %.17g\n", (int)t->step, value);
                                lg_checkpoint_save(t->run, file);
                        }
                        if (t->step == steps)
                                break;
                }
}

static bool is_finite(lg_module *net)
{
        const lg_list params = lg_parameters(net);
        bool all = true;
        for (int64_t i = 0; i < params.count; i++)
                all = all && lg_item(lg_all(lg_isfinite(lg_detach(params.items[i])))) == 1;
        return all;
}

/* A rank was killed. */
static void check_loss(training *t, double last, const char *file)
{
        char mine[300];
        snprintf(mine, sizeof mine, "%.250s-%d", file, rank);
        CHECK(lg_error_code_of(c) == LG_ERR_COMM && strstr(lg_error(c), "rank"));
        CHECK(last < LIMIT + 1);
        lg_clear_error(c);
        CHECK(is_finite(t->net) && lg_save(t->net, mine));
        remove(mine);
        CHECK(!lg_barrier(g) && lg_error_code_of(c) == LG_ERR_COMM);
        lg_clear_error(c);
}

int main(int count, char **words)
{
        CHECK(join(LIMIT) && count >= 3);
        if (failures)
                return 1;
        const bool dies = count > 4;
        if (dies && rank == atoi(words[3]))
                die_after(atoi(words[4]));
        training t = {0};
        if (begin(&t) && access(words[1], F_OK) == 0)
                CHECK(lg_checkpoint_load(t.run, words[1]));
        lg_data_parallel(t.net, g);
        double before = seconds();
        while (!lg_error(c) && (dies || t.step < atoi(words[2]))) {
                before = seconds();
                go_on(&t, dies ? t.step + 1 : atoi(words[2]), words[1]);
        }
        if (dies)
                check_loss(&t, seconds() - before, words[1]);
        CHECK(!lg_error(c));
        lg_close(c);
        return verdict(dies ? 1 : 0);
}
