/* test_recorder_misuse.c - what a recorded step cannot repeat is an error, or is seen, and never a wrong result. */
#include "recorded_trial.h"

AROUND_TESTS(begin, end);

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
                uses_fill,      uses_factor,   uses_dropout,   uses_shape,        uses_other_op,    uses_values,
                uses_converted, uses_more_ops, uses_fewer_ops, uses_other_tensor, uses_other_order,
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

/* ---- results ---- */

static lg_tensor *returns_other(lg_ctx *c, lg_list in, void *user)
{
        trial *t = user;
        lg_tensor *a = lg_exp(in.items[0]), *b = lg_sin(in.items[0]);
        (void)c;
        t->calls++;
        return t->calls >= t->at ? b : a;
}

TEST_CASE(another_result)
{
        for (int at = 3; at <= 5; at++) {
                trial t = {.at = at};
                open_trial(&t);
                t.run.recorder = lg_recorder_new(t.run.c, returns_other, .user = &t, .verify_every = 1);
                for (int n = 1; n < at; n++)
                        assert_non_null(run_once(&t));
                assert_fails(t.run.c, run_once(&t), LG_ERR_STATE, "the end differs between two runs");
                lg_close(t.run.c);
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

static double late(const trial *t, double before, double after)
{
        return t->calls < 5 ? before : after;
}

static bool counts_late(trial *t, lg_tensor *x)
{
        (void)x;
        return lg_arange(t->run.c, 0, late(t, 4, 2), late(t, 1, 0.5));
}

static bool draws_late(trial *t, lg_tensor *x)
{
        return lg_add(x, lg_normal(t->run.c, 0, late(t, 1, 2), LG_SHAPE(8)));
}

static bool draws_integers_late(trial *t, lg_tensor *x)
{
        return lg_add(x, lg_randint(t->run.c, (int64_t)late(t, 0, 1), 9, LG_SHAPE(8), .dtype = LG_F32));
}

static bool changes_late(trial *t, lg_tensor *x)
{
        return lg_mul_scalar_(lg_neg(x), late(t, 1, 2));
}

static bool clamps_late(trial *t, lg_tensor *x)
{
        return lg_clamp_(lg_neg(x), 0, late(t, 1, 2));
}

static bool refills_late(trial *t, lg_tensor *x)
{
        return lg_fill_(lg_neg(x), late(t, 1, 2));
}

static bool makes_scalar_late(trial *t, lg_tensor *x)
{
        return lg_mul(x, lg_scalar(t->run.c, late(t, 1, 2)));
}

static bool smooths_late(trial *t, lg_tensor *x)
{
        return lg_cross_entropy(x, t->in[1], .label_smoothing = late(t, 0.1, 0.2));
}

static bool slices_late(trial *t, lg_tensor *x)
{
        return lg_select(x, 0, (int64_t)late(t, 1, 2));
}

static bool clips_late(trial *t, lg_tensor *x)
{
        (void)x;
        lg_list params = lg_parameters(t->run.net);
        return lg_zero_grad(t->run.opt) && lg_backward(lg_sum(lg_square(params.items[0]))) &&
               lg_clip_grad_norm(params, late(t, 1, 0.5));
}

static bool clips_values_late(trial *t, lg_tensor *x)
{
        (void)x;
        lg_list params = lg_parameters(t->run.net);
        return lg_zero_grad(t->run.opt) && lg_backward(lg_sum(lg_square(params.items[0]))) &&
               lg_clip_grad_value(params, late(t, 1, 0.5));
}

static bool omits_late(trial *t, lg_tensor *x)
{
        return t->calls >= 5 || lg_exp(x);
}

TEST_CASE(verified_runs)
{
        static bool (*const rows[])(trial * t, lg_tensor * x) = {
                fills_late,        writes_late,  scales_late,         swaps_late,   computes_late,    omits_late,
                counts_late,       draws_late,   draws_integers_late, changes_late, clamps_late,      refills_late,
                makes_scalar_late, smooths_late, slices_late,         clips_late,   clips_values_late};
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
