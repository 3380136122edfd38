/* test_recorder_misuse.c - what a recorded step cannot repeat is an error, or is seen, and never a wrong result. */
#include "recorded.h"

AROUND_TESTS(begin, end);

/* What a step of these tests does in its n-th call, beside training. */
typedef struct trial {
        run run;
        int calls, at; /* of the step; the call in which it does it, 0: in all */
        bool (*act)(struct trial *t, lg_tensor *x);
        lg_tensor *made, *other;
        lg_loader *loader;
        lg_tensor *in[9];
} trial;

static lg_tensor *step(lg_ctx *c, lg_list in, void *user)
{
        trial *t = user;
        t->calls++;
        if (t->act && (!t->at || t->calls == t->at) && !t->act(t, in.items[0]))
                return NULL;
        return train(c, LG_LIST(in.items[0], t->in[1]), &t->run);
}

static void open_trial(trial *t)
{
        lg_ctx *c = t->run.c = open_ctx();
        t->run.net = small_network(c);
        t->run.opt = lg_adam(c, lg_parameters(t->run.net), 1e-2);
        t->run.schedule = lg_cosine_lr(t->run.opt, 100);
        t->in[0] = rows_of_8(c, 4);
        t->in[1] = lg_randint(c, 0, 3, LG_SHAPE(4));
        t->other = rows_of_8(c, 4);
        t->loader = lg_loader_open(c, lg_dataset_list(c, LG_LIST(lg_zeros(c, LG_SHAPE(4, 2), .device = lg_cpu()))), 2);
        t->run.recorder = lg_recorder_new(c, step, .user = t);
        assert_ok(c);
}

static lg_tensor *run_once(trial *t)
{
        return lg_recorder_run(t->run.recorder, t->in[0]);
}

/* The recorder works after an error, and uses recordings. */
static void assert_usable(trial *t)
{
        const int64_t before = lg_recorder_replays(t->run.recorder);
        t->act = NULL;
        for (int i = 0; i < 8; i++)
                if (!run_once(t))
                        fail_msg("%s", lg_error(t->run.c));
        assert_true(lg_recorder_replays(t->run.recorder) > before + 2);
        lg_close(t->run.c);
}

/* ---- calls that are refused ---- */

static bool reads_item(trial *t, lg_tensor *x)
{
        (void)t;
        return !isnan(lg_item(lg_sum(x)));
}

static bool reads(trial *t, lg_tensor *x)
{
        float v[32];
        (void)t;
        return lg_read(x, v, LG_F32, sizeof v);
}

static bool writes(trial *t, lg_tensor *x)
{
        const float v[] = {1, 2};
        (void)x;
        return lg_write(lg_zeros(t->run.c, LG_SHAPE(2)), v, LG_F32, sizeof v);
}

static bool borrows(trial *t, lg_tensor *x)
{
        static float values[2];
        (void)x;
        return lg_borrow(t->run.c, values, NULL, NULL, LG_SHAPE(2));
}

static bool counts(trial *t, lg_tensor *x)
{
        (void)t;
        return lg_nonzero(x);
}

static bool finds_unique(trial *t, lg_tensor *x)
{
        (void)t;
        return lg_unique(x);
}

static bool schedules(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_scheduler_step(t->run.schedule);
}

static bool sets_lr(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_set_lr(t->run.opt, 1e-3);
}

static bool sets_group_lr(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_set_param_group_lr(t->run.opt, 0, 1e-3);
}

static bool saves(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_save(t->run.net, path);
}

static bool loads(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_load(t->run.net, path);
}

static lg_tensor *keep_gradient(lg_tensor *grad, void *user)
{
        (void)grad, (void)user;
        return NULL;
}

static bool hooks(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_hook(lg_parameter(t->run.net, "0.weight"), keep_gradient, NULL);
}

static bool loads_batch(trial *t, lg_tensor *x)
{
        lg_batch b;
        (void)x;
        return lg_loader_next(t->loader, &b);
}

static bool seeds(trial *t, lg_tensor *x)
{
        (void)x;
        lg_seed(t->run.c, 1);
        return !lg_error(t->run.c);
}

static bool moves(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_module_to(t->run.net, lg_cpu());
}

static bool nests(trial *t, lg_tensor *x)
{
        return lg_recorder_run(t->run.recorder, x);
}

static bool makes_module(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_nn_linear(t->run.c, 2, 2);
}

static bool keeps(trial *t, lg_tensor *x)
{
        t->made = lg_keep(lg_square(x));
        return t->made;
}

static bool lets_escape(trial *t, lg_tensor *x)
{
        t->made = lg_escape(lg_escape(lg_square(x)));
        return t->made;
}

static bool leaves_mode(trial *t, lg_tensor *x)
{
        (void)x;
        lg_set_threads(t->run.c, 5);
        return true;
}

static bool makes_optimiser(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_sgd(t->run.c, lg_parameters(t->run.net), 1);
}

TEST_CASE(refused_calls)
{
        static const struct {
                bool (*act)(trial *t, lg_tensor *x);
                const char *text;
        } rows[] = {
                {reads_item, "lg_recorder_run"},
                {reads, "lg_recorder_run"},
                {writes, "lg_write: is called in"},
                {borrows, "lg_borrow: is called in"},
                {counts, "lg_recorder_run"},
                {finds_unique, "lg_recorder_run"},
                {schedules, "lg_scheduler_step: is called in the function"},
                {sets_lr, "lg_set_lr: is called in"},
                {sets_group_lr, "lg_set_param_group_lr: is called in"},
                {saves, "lg_save: is called in"},
                {loads, "lg_load: is called in"},
                {hooks, "lg_hook: is called in"},
                {loads_batch, "is called in the function"},
                {seeds, "lg_seed: is called in"},
                {moves, "lg_module_to: is called in"},
                {nests, "lg_recorder_run: is called in"},
                {makes_module, "makes a module"},
                {makes_optimiser, "makes a module, an optimiser"},
                {keeps, "keeps a tensor that it has made, "},
                {lets_escape, "keeps a tensor that it has made, "},
                {leaves_mode, "does not restore it"},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                for (int at = 1; at <= (rows[i].act == keeps || rows[i].act == lets_escape ? 2 : 3); at++) {
                        trial t = {.act = rows[i].act, .at = at};
                        open_trial(&t);
                        assert_true(lg_save(t.run.net, path));
                        for (int n = 1; n < at; n++)
                                assert_non_null(run_once(&t));
                        if (run_once(&t))
                                fail_msg("%s: no error in run %d", rows[i].text, at);
                        assert_error(t.run.c, LG_ERR_STATE, rows[i].text);
                        lg_free(t.made);
                        lg_set_threads(t.run.c, 1);
                        assert_usable(&t);
                }
}

/* ---- steps that differ ---- */

static bool uses_fill(trial *t, lg_tensor *x)
{
        return lg_add(x, lg_full(t->run.c, LG_SHAPE(8), 100 + t->calls));
}

static bool uses_values(trial *t, lg_tensor *x)
{
        return lg_mul(x, lg_from(t->run.c, ((float[]){(float)t->calls}), LG_SHAPE(1)));
}

static bool uses_converted(trial *t, lg_tensor *x)
{
        return lg_mul(x, lg_from(t->run.c, ((int[]){t->calls}), LG_SHAPE(1), .dtype = LG_F32));
}

static bool uses_permutation(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_permutation(t->run.c, 100);
}

static bool uses_factor(trial *t, lg_tensor *x)
{
        return lg_mul_scalar(x, t->calls);
}

static bool uses_dropout(trial *t, lg_tensor *x)
{
        return lg_dropout(x, 1.0 / (2 + t->calls), .training = true);
}

static bool uses_shape(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_zeros(t->run.c, LG_SHAPE(t->calls));
}

static bool uses_other_op(trial *t, lg_tensor *x)
{
        return t->calls % 2 ? lg_exp(x) : lg_sin(x);
}

static bool uses_more_ops(trial *t, lg_tensor *x)
{
        return t->calls < 3 || lg_exp(x);
}

static bool uses_fewer_ops(trial *t, lg_tensor *x)
{
        return t->calls > 2 || lg_exp(x);
}

static bool uses_other_tensor(trial *t, lg_tensor *x)
{
        return lg_mul(x, t->calls % 2 ? t->in[0] : t->other);
}

static bool uses_other_order(trial *t, lg_tensor *x)
{
        lg_tensor *a = lg_exp(x), *b = lg_sin(x);
        return lg_sub(t->calls % 2 ? a : b, t->calls % 2 ? b : a);
}

TEST_CASE(steps_that_differ)
{
        static bool (*const rows[])(trial * t, lg_tensor * x) = {
                uses_fill,      uses_factor,      uses_dropout,  uses_shape,     uses_other_op,     uses_values,
                uses_converted, uses_permutation, uses_more_ops, uses_fewer_ops, uses_other_tensor, uses_other_order,
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                trial t = {.act = rows[i]};
                open_trial(&t);
                assert_non_null(run_once(&t));
                assert_non_null(run_once(&t));
                if (run_once(&t))
                        fail_msg("row %d", (int)i);
                assert_error(t.run.c, LG_ERR_STATE, "differs between two runs of the function");
                assert_usable(&t);
        }
}

/* ---- numbers that change late: found by .verify_every ---- */

static bool fills_late(trial *t, lg_tensor *x)
{
        return lg_add(x, lg_full(t->run.c, LG_SHAPE(8), t->calls < 5 ? 1 : 2));
}

static bool writes_late(trial *t, lg_tensor *x)
{
        return lg_mul(x, lg_from(t->run.c, ((float[]){t->calls < 5 ? 1 : 2}), LG_SHAPE(1)));
}

static bool scales_late(trial *t, lg_tensor *x)
{
        return lg_mul_scalar(x, t->calls < 5 ? 1 : 2);
}

static bool swaps_late(trial *t, lg_tensor *x)
{
        return lg_mul(x, t->calls < 5 ? t->in[0] : t->other);
}

static bool computes_late(trial *t, lg_tensor *x)
{
        return t->calls < 5 || lg_exp(x);
}

TEST_CASE(verified_runs)
{
        static bool (*const rows[])(trial * t, lg_tensor * x) = {fills_late, writes_late, scales_late, swaps_late,
                                                                 computes_late};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                for (int every = 1; every <= 3; every++) {
                        trial t = {.act = rows[i]};
                        open_trial(&t);
                        lg_recorder_free(t.run.recorder);
                        t.run.recorder = lg_recorder_new(t.run.c, step, .user = &t, .verify_every = every);
                        for (int n = 0; n < 3 + 2 * every - 1; n++)
                                if (!run_once(&t))
                                        fail_msg("row %d, run %d: %s", (int)i, n, lg_error(t.run.c));
                        assert_int_equal(t.calls, 4);
                        assert_fails(t.run.c, run_once(&t), LG_ERR_STATE, "differs between two runs of the function");
                        lg_recorder_free(t.run.recorder);
                        t.run.recorder = lg_recorder_new(t.run.c, step, .user = &t);
                        assert_usable(&t);
                }
}

/* ---- arguments ---- */

TEST_CASE(wrong_arguments)
{
        trial t = {0};
        open_trial(&t);
        lg_ctx *c = t.run.c, *other = open_ctx();
        lg_recorder *r = t.run.recorder;
        lg_tensor *x = t.in[0], *freed = lg_ones(c, LG_SHAPE(2));
        lg_free(freed);
        assert_fails(c, lg_recorder_new(c, NULL), LG_ERR_ARGUMENT, "lg_recorder_new: fn is NULL");
        assert_fails(c, lg_recorder_new(c, step, .max_recordings = -1), LG_ERR_ARGUMENT, "not negative");
        assert_fails(c, lg_recorder_new(c, step, .verify_every = -1), LG_ERR_ARGUMENT, "not negative");
        assert_null(lg_recorder_new(NULL, step));
        assert_null(lg_recorder_run(NULL, x));
        assert_fails(c, lg_recorder_run_list(r, (lg_tensor *[]){LG_END}), LG_ERR_ARGUMENT, "0 inputs; 1 to 8");
        assert_fails(c, lg_recorder_run_list(r, NULL), LG_ERR_ARGUMENT, "0 inputs; 1 to 8");
        assert_fails(c, lg_recorder_run(r, x, x, x, x, x, x, x, x, x), LG_ERR_ARGUMENT, "9 inputs; 1 to 8");
        assert_fails(c, lg_recorder_run(r, x, NULL), LG_ERR_ARGUMENT, "input 1 is NULL");
        assert_fails(c, lg_recorder_run(r, freed), LG_ERR_STATE, "an input");
        assert_fails(c, lg_recorder_run(r, lg_ones(other, LG_SHAPE(2))), LG_ERR_ARGUMENT, "an input");
        assert_fails(c, lg_recorder_run(r, lg_parameter(t.run.net, "0.weight")), LG_ERR_STATE, "input 0 requires grad");
        assert_fails(c, lg_recorder_run(r, lg_exp(lg_parameter(t.run.net, "0.weight"))), LG_ERR_STATE, "requires grad");
        if (lg_default_device(c).type != LG_DEVICE_CPU)
                assert_fails(c, lg_recorder_run(r, x, lg_to(x, lg_cpu())), LG_ERR_DEVICE, "input 0 is on ");
        assert_int_equal(lg_recorder_replays(NULL), 0);
        assert_false(lg_recorder_print(NULL, r));
        assert_false(lg_recorder_print(stdout, NULL));
        lg_close(other);
        assert_usable(&t);
}

static bool fails(trial *t, lg_tensor *x)
{
        (void)t;
        return lg_matmul(x, x);
}

static bool frees_recorder(trial *t, lg_tensor *x)
{
        (void)x;
        lg_recorder_free(t->run.recorder);
        return true;
}

TEST_CASE(the_function_fails)
{
        for (int at = 1; at <= 3; at++) {
                trial t = {.act = fails, .at = at};
                open_trial(&t);
                for (int n = 1; n < at; n++)
                        assert_non_null(run_once(&t));
                assert_fails(t.run.c, run_once(&t), LG_ERR_SHAPE, "matmul");
                assert_usable(&t);
        }
}

TEST_CASE(recorder_is_freed_by_its_function)
{
        for (int at = 1; at <= 3; at++) {
                trial t = {.act = frees_recorder, .at = at};
                open_trial(&t);
                for (int n = 1; n < at; n++)
                        assert_non_null(run_once(&t));
                assert_non_null(run_once(&t));
                t.run.recorder = lg_recorder_new(t.run.c, step, .user = &t);
                assert_usable(&t);
        }
}

static void on_record(const lg_trace_record *record, void *user)
{
        (void)record;
        ++*(int *)user;
}

/* A trace sees every run, which then uses no recording. */
TEST_CASE(trace_during_runs)
{
        trial t = {0};
        int seen = 0;
        open_trial(&t);
        for (int i = 0; i < 5; i++)
                assert_non_null(run_once(&t));
        lg_set_trace(t.run.c, on_record, .user = &seen);
        assert_non_null(run_once(&t));
        lg_set_trace(t.run.c, NULL);
        assert_true(seen > 5);
        assert_int_equal(t.calls, 4);
        assert_int_equal(lg_recorder_replays(t.run.recorder), 2);
        assert_usable(&t);
}

/* The first run after a hook was added to a parameter fails, and those after it was removed do not. */
TEST_CASE(hook_on_a_parameter)
{
        trial t = {0};
        open_trial(&t);
        lg_tensor *w = lg_parameter(t.run.net, "0.weight");
        for (int n = 0; n < 2; n++) {
                for (int i = 0; i < 6 * n; i++)
                        assert_non_null(run_once(&t));
                assert_true(lg_hook(w, keep_gradient, NULL));
                assert_fails(t.run.c, run_once(&t), LG_ERR_STATE, "has a hook (lg_hook)");
                assert_true(lg_unhook(w, keep_gradient, NULL));
        }
        assert_usable(&t);
}

static lg_tensor *step_if_it_can(lg_ctx *c, lg_list in, void *user)
{
        trial *t = user;
        t->calls++;
        return t->run.opt   ? train(c, LG_LIST(in.items[0], t->in[1]), &t->run)
               : t->run.net ? loss_of(&t->run, LG_LIST(in.items[0], t->in[1]))
                            : lg_sum(in.items[0]);
}

/* A recording is not used after its optimiser or module was freed. */
TEST_CASE(objects_are_freed_between)
{
        trial t = {0};
        open_trial(&t);
        t.run.recorder = lg_recorder_new(t.run.c, step_if_it_can, .user = &t);
        for (int round = 0; round < 3; round++) {
                t.calls = 0;
                for (int i = 0; i < 6; i++)
                        assert_non_null(run_once(&t));
                assert_int_equal(t.calls, 3);
                if (round == 0) {
                        lg_scheduler_free(t.run.schedule);
                        lg_optimizer_free(t.run.opt);
                        t.run.opt = NULL;
                } else if (round == 1) {
                        lg_module_free(t.run.net);
                        t.run.net = NULL;
                }
        }
        lg_close(t.run.c);
}

static bool trains(trial *t, lg_tensor *x)
{
        lg_train(t->run.net, false);
        drop(lg_forward(t->run.net, x));
        lg_train(t->run.net, true);
        return true;
}

static bool leaves_scope(trial *t, lg_tensor *x)
{
        lg_scope s = lg_scope_begin(t->run.c);
        return s.id && lg_exp(x);
}

static bool trains_on(trial *t, lg_tensor *x)
{
        (void)x;
        lg_train(t->run.net, true);
        return true;
}

/* Runs of such steps are right, with or without recordings. */
TEST_CASE(odd_steps)
{
        static bool (*const rows[])(trial * t, lg_tensor * x) = {trains, leaves_scope, trains_on};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                double last[2];
                for (int eager = 0; eager < 2; eager++) {
                        trial t = {.act = rows[i]};
                        open_trial(&t);
                        t.run.recorder = lg_recorder_new(t.run.c, step, .user = &t, .eager = eager);
                        for (int n = 0; n < 12; n++) {
                                lg_tensor *y = run_once(&t);
                                assert_ok(t.run.c);
                                last[eager] = lg_item(y);
                        }
                        lg_close(t.run.c);
                }
                assert_near(last[0], last[1], 0);
        }
}

TEST_CASE(printing)
{
        trial t = {0};
        char text[4096] = "";
        open_trial(&t);
        for (int i = 0; i < 5; i++)
                assert_non_null(run_once(&t));
        FILE *f = tmpfile();
        assert_true(lg_recorder_print(f, t.run.recorder));
        rewind(f);
        assert_true(fread(text, 1, sizeof text - 1, f) > 0);
        fclose(f);
        assert_non_null(strstr(text, "recorder: 5 runs, 2 of recordings\ninputs f32 (4, 8): 5 runs, "));
        assert_non_null(strstr(text, "its numbers change"));
        assert_usable(&t);
}
