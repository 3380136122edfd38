/* test_recorder_wrong.c - wrong arguments of recorders, functions that fail, and objects that are freed between runs.
 */
#include "recorded_trial.h"

AROUND_TESTS(begin, end);

static lg_tensor *keep_gradient(lg_tensor *grad, void *user)
{
        (void)grad, (void)user;
        return NULL;
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

/* Ends in call `at` in another way than in others: 1, with another result; 2, with none; 3, without gradients. */
typedef struct ending {
        trial t;
        int way;
} ending;

static lg_tensor *step_with_end(lg_ctx *c, lg_list in, void *user)
{
        ending *e = user;
        lg_tensor *other = lg_mean(in.items[0]), *loss = train(c, LG_LIST(in.items[0], e->t.in[1]), &e->t.run);
        const bool now = ++e->t.calls == e->t.at;
        if (now && e->way == 3)
                lg_zero_grad(e->t.run.opt);
        return !now || e->way == 3 ? loss : e->way == 1 ? other : NULL;
}

TEST_CASE(another_end)
{
        for (int way = 1; way <= 3; way++)
                for (int at = 2; at <= 4; at++) {
                        ending e = {.t.at = at, .way = way};
                        open_trial(&e.t);
                        e.t.run.recorder = lg_recorder_new(e.t.run.c, step_with_end, .user = &e, .verify_every = 1);
                        for (int i = 1; i < at && !lg_error(e.t.run.c); i++) {
                                lg_zero_grad(e.t.run.opt);
                                assert_non_null(run_once(&e.t));
                        }
                        for (int i = 0; i < 2 && !lg_error(e.t.run.c); i++) {
                                lg_zero_grad(e.t.run.opt);
                                run_once(&e.t);
                        }
                        assert_error(e.t.run.c, LG_ERR_STATE, "the end differs between two runs of the function");
                        lg_close(e.t.run.c);
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
        assert_non_null(strstr(text, ", 1 dial, "));
        assert_non_null(strstr(text, "lg_step (adam)"));
        assert_usable(&t);
}
