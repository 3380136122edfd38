/* test_recorder_plan.c - a recording takes as much memory as a step of its function, and gives all back. */
#include "recorded_models.h"

static lg_tensor *mean_of_positions(lg_module *m, lg_list in, void *user)
{
        (void)m;
        (void)user;
        return lg_mean(in.items[0], .dims = LG_DIMS(1));
}

static lg_module *encoder(lg_ctx *c)
{
        return lg_nn_sequential(c,
                                lg_nn_transformer_encoder(c, 64, 4, 3, .feedforward = 256, .dropout = LG_ZERO,
                                                          .norm_first = true, .batch_first = true),
                                lg_nn_module(c, "Mean", .forward = mean_of_positions), lg_nn_linear(c, 64, 10));
}

static const recorded_model models[] = {{"mlp", lg_model_mlp, 16, 3, {1, 28, 28}},
                                        {"lenet", lg_model_lenet, 4, 3, {1, 28, 28}},
                                        {"cnn", lg_model_cnn, 2, 3, {1, 28, 28}},
                                        {"resnet18", resnet18_for_colours, 2, 3, {3, 8, 8}},
                                        {"encoder", encoder, 4, 2, {16, 64}}};

/* Makes a step of the function in a scope. */
static void plain_step(training *t)
{
        lg_scope s = lg_scope_begin(t->c);
        assert_non_null(training_step(t->c, LG_LIST(t->x, t->y), t));
        lg_scope_end(t->c, s);
}

/* Its pieces of memory are planned, so that they take hardly more than those that the step has at once. Only on the
 * CPU, or with $LG_TEST_LONG, is resnet18 fast enough. */
TEST_CASE(a_recording_takes_the_memory_of_a_step)
{
        for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
                training t;
                lg_ctx *c = open_ctx();
                const lg_device d = test_device(c);
                if (d.type != LG_DEVICE_CPU && !strcmp(models[i].name, "resnet18") && !getenv("LG_TEST_LONG")) {
                        lg_close(c);
                        continue;
                }
                open_training(&t, c, &models[i], false);
                for (int n = 0; n < 3; n++)
                        plain_step(&t);
                lg_zero_grad(t.opt);
                const int64_t before = lg_memory_stats(c, d).used; /* of parameters, states and inputs */
                lg_reset_peak_memory(c, d);
                plain_step(&t);
                const int64_t step = lg_memory_stats(c, d).peak - before;
                const int64_t gradients = lg_memory_stats(c, d).used - before;
                lg_reset_peak_memory(c, d);
                plain_step(&t);
                const int64_t beside = lg_memory_stats(c, d).peak - before - gradients;
                run_steps(&t, 5);
                const int64_t recording = printed(t.recorder, "bytes of memory");
                print_message("%-9s %9lld bytes, of a step %9lld: %.3f; beside gradients %.3f\n", models[i].name,
                              (long long)recording, (long long)step, (double)recording / (double)step,
                              (double)(recording - gradients) / (double)beside);
                assert_true(recording > 0 && (double)recording <= 1.02 * (double)step);
                assert_true((double)(recording - gradients) <= 1.02 * (double)beside);
                assert_ok(c);
                lg_close(c);
        }
}

/* What a recorder took is there again when it is freed, but the gradients of the last step. */
TEST_CASE(a_freed_recorder_gives_its_memory_back)
{
        training t;
        lg_ctx *c = open_ctx();
        const lg_device d = test_device(c);
        open_training(&t, c, &models[1], false);
        plain_step(&t);
        lg_zero_grad(t.opt);
        int64_t before = 0;
        for (int i = 0; i < 3; i++) {
                if (!t.recorder)
                        t.recorder = lg_recorder_new(c, training_step, .user = &t);
                run_steps(&t, 6);
                lg_recorder_free(t.recorder);
                t.recorder = NULL;
                assert_true(lg_zero_grad(t.opt) && lg_synchronize(c));
                lg_empty_cache(c);
                const lg_memory_stats_t now = lg_memory_stats(c, d);
                if (i == 0)
                        before = now.used + now.cached;
                assert_int_equal(now.used + now.cached, before);
        }
        assert_ok(c);
        lg_close(c);
}

/* A step that returns memory sooner in one call than in others, of which its ops do not know. */
typedef struct freeing {
        training t;
        int calls, at;
} freeing;

static lg_tensor *step_that_frees(lg_ctx *c, lg_list in, void *user)
{
        freeing *f = user;
        lg_tensor *x = lg_reshape(in.items[0], LG_SHAPE(-1, 784)), *a = lg_square(x), *b = lg_exp(lg_neg(a));
        f->calls++;
        if (f->calls == f->at)
                lg_free(a);
        lg_tensor *y = lg_sin(b), *z = lg_reshape(lg_mul(lg_cos(y), y), LG_SHAPE(-1, 1, 28, 28));
        lg_tensor *loss = training_step(c, LG_LIST(z, in.items[1]), &f->t);
        lg_tensor *large = lg_zeros(c, LG_SHAPE(128, 784));
        return lg_add(loss, lg_mean(lg_add_scalar(large, 1)));
}

/* Reads the gradients that the last of some runs leaves; all begin without. */
static int64_t gradients_of_runs(freeing *f, bool eager, double *losses, int runs, double *out, int64_t most)
{
        lg_ctx *c = open_ctx();
        open_training(&f->t, c, &models[0], true);
        lg_recorder *r = lg_recorder_new(c, step_that_frees, .user = f, .eager = eager);
        for (int i = 0; i < runs; i++) {
                lg_scope s = lg_scope_begin(c);
                lg_zero_grad(f->t.opt);
                lg_tensor *loss = lg_recorder_run(r, f->t.x, f->t.y);
                losses[i] = loss ? lg_item(loss) : NAN;
                lg_scope_end(c, s);
        }
        assert_ok(c);
        assert_int_equal(lg_recorder_replays(r), eager ? 0 : runs - 3);
        int64_t n = 0;
        lg_list list = lg_parameters(f->t.net);
        for (int i = 0; i < list.count; i++)
                n += read_all(lg_grad_of(list.items[i]), out + n, most - n);
        lg_close(c);
        return n;
}

TEST_CASE(memory_that_is_returned_in_another_order)
{
        enum { RUNS = 8, MOST = 110000 };
        double *expected = malloc(MOST * sizeof *expected), *got = malloc(MOST * sizeof *got);
        for (int at = 1; at <= 4; at++) {
                double losses[2][RUNS];
                freeing one = {.at = at}, two = {.at = at};
                const int64_t n = gradients_of_runs(&one, true, losses[0], RUNS, expected, MOST);
                assert_int_equal(gradients_of_runs(&two, false, losses[1], RUNS, got, MOST), n);
                assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
                assert_memory_equal(got, expected, (size_t)n * sizeof *got);
        }
        free(expected);
        free(got);
}
