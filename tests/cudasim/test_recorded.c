/* test_recorded.c - what recorded steps ask of the simulated device, failures of their calls, and what they leave. */
#include <pthread.h>
#include "controls.h"
#include "../recorded_models.h"

/* the encoder of tools/lg_bench */
lg_module *encoder_new(lg_ctx *c);

static lg_module *small_images(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_conv2d(c, 1, 3, 3, .padding = 1), lg_nn_batch_norm2d(c, 3), lg_nn_relu(c),
                                lg_nn_max_pool2d(c, 2), lg_nn_flatten(c), lg_nn_linear(c, 27, 10));
}

static const recorded_model models[] = {{"mlp", lg_model_mlp, 4, 3, {1, 28, 28}},
                                        {"lenet", lg_model_lenet, 4, 3, {1, 28, 28}},
                                        {"cnn", lg_model_cnn, 2, 3, {1, 28, 28}},
                                        {"resnet18", resnet18_for_colours, 2, 3, {3, 8, 8}},
                                        {"encoder", encoder_new, 8, 2, {4, 256}}},
                            small = {"small", small_images, 4, 3, {1, 6, 6}};

static lg_ctx *open_on_device(void)
{
        lg_ctx *c = lg_open(.seed = 7);
        lg_set_default_device(c, lg_parse_device(c, "cuda:0"));
        lg_set_conv_allow_tf32(c, false);
        return c;
}

/* ---- counts ---- */

/* What is asked of the device. */
typedef struct asked {
        int64_t launches, copies, allocations, waits;
} asked;

static asked asked_so_far(void)
{
        return (asked){sim.launches(), sim.copies(), sim.calls(ALLOCATION), sim.waits()};
}

static asked asked_since(asked a)
{
        const asked b = asked_so_far();
        return (asked){b.launches - a.launches, b.copies - a.copies, b.allocations - a.allocations, b.waits - a.waits};
}

/* A step is one launch for the dials and one of the graph, a copy for each of two inputs and one of the result, which a
 * kernel copies because it has no dimension. */
static void a_recorded_step_is_two_launches(void **state)
{
        enum { RUNS = 3 };
        (void)state;
        for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
                training t;
                lg_ctx *c = open_on_device();
                open_training(&t, c, &models[i], false);
                run_steps(&t, 2);
                asked before = asked_so_far();
                run_steps(&t, 1);
                const asked recorded = asked_since(before);
                run_steps(&t, 1);
                before = asked_so_far();
                int64_t calls = -sim.calls(CALL);
                run_steps(&t, RUNS);
                calls += sim.calls(CALL);
                const asked a = asked_since(before);
                print_message(
                        "%-9s third run %3lld launches, %lld copies; then %lld launches, %lld copies, %lld calls; "
                        "%lld kernel calls in the graph\n",
                        models[i].name, (long long)recorded.launches, (long long)recorded.copies,
                        (long long)a.launches / RUNS, (long long)a.copies / RUNS, (long long)calls / RUNS,
                        (long long)printed(t.recorder, "kernel calls captured as a graph"));
                assert_int_equal(count_graphs(t.recorder), 1);
                assert_int_equal(a.launches, RUNS * 3);
                assert_int_equal(a.copies, RUNS * 2);
                assert_int_equal(a.allocations, 0);
                assert_int_equal(a.waits, 0);
                assert_int_equal(calls, RUNS * 10); /* half of them choose the device */
                assert_int_equal(lg_recorder_replays(t.recorder), RUNS + 1);
                assert_true(lg_synchronize(c));
                assert_ok(c);
                lg_close(c);
        }
}

/* ---- failures ---- */

enum { MOST = 1024 };

static int64_t read_parameters(training *t, double *out)
{
        lg_list list = lg_parameters(t->net);
        int64_t n = 0;
        for (int i = 0; i < list.count; i++)
                n += read_all(list.items[i], out + n, MOST - n);
        return n;
}

static void open_small(training *t, bool eager)
{
        sim.forget_algorithms();
        open_training(t, open_on_device(), &small, eager);
}

static void close_small(training *t)
{
        lg_close(t->c);
        sim.forget();
}

/* Returns how often the parameters were updated after step 3. */
static int updates(training *t, double (*after)[MOST], int most)
{
        static double now[MOST];
        const int64_t n = read_parameters(t, now);
        assert_ok(t->c);
        for (int i = 0; i <= most; i++)
                if (!memcmp(now, after[i], (size_t)n * sizeof *now))
                        return i;
        fail_msg("the parameters are those of no step");
        return -1;
}

/* Each call of the runs that capture (first) and launch a graph fails in turn. What is captured is the list's again,
 * silently; another failure is told, and training goes on. */
static void calls_fail_in_turn(int way, bool first)
{
        static double after[4][MOST];
        training t;
        static const char *const own[] = {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
                                          "cudaGraphLaunch"};
        unsigned met = 0; /* bit k: own[k] failed */
        int64_t calls = 0, told = 0, listed = 0;
        sim.forget();
        const int64_t handles = sim.handles();
        open_small(&t, true);
        for (int i = 0; i < 6; i++) {
                run_steps(&t, 1);
                if (i >= 2)
                        read_parameters(&t, after[i - 2]);
        }
        close_small(&t);
        for (int64_t n = 0; n <= calls; n++) {
                open_small(&t, false);
                run_steps(&t, first ? 3 : 4);
                const int done = first ? 0 : 1;
                assert_true(lg_synchronize(t.c));
                if (n == 0)
                        calls = -sim.calls(way);
                else
                        sim.fail_at(n, false, way);
                const bool ok = run_step(&t) && lg_synchronize(t.c);
                char name[64];
                snprintf(name, sizeof name, "%.60s", sim.failed());
                sim.fail_at(0, false, way);
                if (n == 0)
                        calls += sim.calls(way);
                else
                        assert_true(*name);
                for (unsigned k = 0; k < 4; k++)
                        met |= (unsigned)!strcmp(name, own[k]) << k;
                listed += ok && !count_graphs(t.recorder);
                if (!ok) {
                        told++;
                        if (!strstr(lg_error(t.c), name))
                                fail_msg("call %lld, %s: %s", (long long)n, name, lg_error(t.c));
                        lg_clear_error(t.c);
                }
                const int now = updates(&t, after, 3);
                assert_in_range(now, done, done + 1);
                assert_true(!ok || now == done + 1);
                run_steps(&t, 3 - now);
                assert_int_equal(updates(&t, after, 3), 3);
                close_small(&t);
                assert_int_equal(sim.bytes(), 0);
                assert_int_equal(sim.handles(), handles);
        }
        print_message("%lld calls: %lld told, %lld times the list ran\n", (long long)calls, (long long)told,
                      (long long)listed);
        assert_true(first ? listed > 10 : calls == told || way == LOAD);
        assert_int_equal(met, way == LOAD ? 0 : first ? 15 : 8);
}

static void the_list_runs_where_capturing_fails(void **state)
{
        (void)state;
        calls_fail_in_turn(CALL, true);
        calls_fail_in_turn(LOAD, true); /* a kernel or a library lacks memory */
}

static void calls_of_a_graph_fail(void **state)
{
        (void)state;
        calls_fail_in_turn(CALL, false);
}

/* ---- what is left ---- */

typedef struct held {
        int64_t bytes, handles;
} held;

static held hold(lg_ctx *c)
{
        assert_true(lg_synchronize(c));
        lg_empty_cache(c);
        return (held){sim.bytes(), sim.handles()};
}

/* Records steps of many shapes, of which two recordings are kept. Returns what is held with them. */
static held record_many(training *t)
{
        enum { SHAPES = 6 };
        t->recorder = lg_recorder_new(t->c, training_step, .user = t, .max_recordings = 2);
        for (int n = 1; n <= SHAPES; n++) {
                lg_scope s = lg_scope_begin(t->c);
                lg_tensor *x = lg_normal(t->c, 0, 1, LG_SHAPE(n, 1, 6, 6));
                lg_tensor *y = lg_zeros(t->c, LG_SHAPE(n), .dtype = LG_I64);
                for (int i = 0; i < 5; i++)
                        assert_non_null(lg_recorder_run(t->recorder, x, y));
                lg_scope_end(t->c, s);
                assert_int_equal(count_graphs(t->recorder), n < 2 ? n : 2);
        }
        return hold(t->c);
}

/* Recordings that push each other out, recorders and contexts leave nothing. */
static void nothing_is_left(void **state)
{
        (void)state;
        sim.forget();
        const held none = {sim.bytes(), sim.handles()};
        training t;
        held with[3], without[3];
        open_small(&t, false);
        run_steps(&t, 1);
        for (int i = 0; i < 3; i++) {
                lg_recorder_free(t.recorder);
                with[i] = record_many(&t);
                lg_recorder_free(t.recorder);
                lg_zero_grad(t.opt);
                without[i] = hold(t.c);
                t.recorder = NULL;
        }
        print_message("two recordings hold %lld handles and %lld bytes\n",
                      (long long)(with[2].handles - without[2].handles), (long long)(with[2].bytes - without[2].bytes));
        for (int i = 1; i < 3; i++) { /* the first time made plans of all shapes */
                assert_int_equal(with[i].handles, with[1].handles);
                assert_int_equal(without[i].handles, without[0].handles);
                assert_int_equal(without[i].bytes, without[0].bytes);
        }
        assert_true(with[2].handles > without[2].handles + 2 && with[2].bytes > without[2].bytes);
        t.recorder = lg_recorder_new(t.c, training_step, .user = &t);
        run_steps(&t, 5);
        close_small(&t); /* with the recorder */
        assert_int_equal(sim.bytes(), none.bytes);
        assert_int_equal(sim.handles(), none.handles);
}

/* ---- threads ---- */

/* Trains in a context of its own; other threads capture, wait and allocate meanwhile. Returns the losses' sum. */
static void *train_in_thread(void *argument)
{
        double *sum = argument;
        training t;
        open_training(&t, open_on_device(), &small, false);
        for (int i = 0; i < 30; i++) {
                lg_scope s = lg_scope_begin(t.c);
                if (i % 10 == 9) { /* record again */
                        lg_recorder_free(t.recorder);
                        t.recorder = lg_recorder_new(t.c, training_step, .user = &t);
                        lg_empty_cache(t.c);
                }
                lg_tensor *loss = lg_recorder_run(t.recorder, t.x, t.y);
                *sum += loss ? lg_item(loss) : NAN;
                if (i % 10 == 8 && count_graphs(t.recorder) != 1)
                        *sum = NAN;
                lg_scope_end(t.c, s);
        }
        lg_close(t.c);
        return NULL;
}

static void threads_capture_at_once(void **state)
{
        enum { THREADS = 4 };
        pthread_t threads[THREADS];
        double sums[THREADS] = {0};
        (void)state;
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, train_in_thread, &sums[i]), 0);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++)
                assert_true(sums[i] > 0 && sums[i] == sums[0]);
}

/* ---- libraries ---- */

static lg_tensor *transform(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_sum(lg_square(lg_rfft(in.items[0])));
}

/* A queue keeps 64 plans of Fourier transforms. Those that others push out stay while a graph may use them. */
static void plans_of_graphs_stay(void **state)
{
        (void)state;
        lg_ctx *c = open_on_device();
        lg_recorder *r = lg_recorder_new(c, transform);
        lg_tensor *x = lg_keep(lg_normal(c, 0, 1, LG_SHAPE(3, 10)));
        const double expected = lg_item(transform(c, LG_LIST(x), NULL));
        const int64_t handles = sim.handles();
        for (int i = 0; i < 5; i++) {
                lg_scope s = lg_scope_begin(c);
                for (int n = 11; i == 4 && n < 11 + 70; n++)
                        assert_non_null(lg_rfft(lg_zeros(c, LG_SHAPE(n))));
                lg_tensor *y = lg_recorder_run(r, x);
                assert_true(y && lg_item(y) == expected);
                lg_scope_end(c, s);
        }
        assert_int_equal(count_graphs(r), 1);
        assert_true(sim.handles() >= handles + 70);
        lg_recorder_free(r);
        assert_non_null(lg_rfft(lg_zeros(c, LG_SHAPE(200))));
        assert_true(sim.handles() <= handles + 64);
        assert_ok(c);
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_recorded_step_is_two_launches),
                cmocka_unit_test(the_list_runs_where_capturing_fails),
                cmocka_unit_test(calls_of_a_graph_fail),
                cmocka_unit_test(nothing_is_left),
                cmocka_unit_test(threads_capture_at_once),
                cmocka_unit_test(plans_of_graphs_stay),
        };
        return cmocka_run_group_tests(tests, find_controls, NULL);
}
