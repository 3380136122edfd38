/* test_optim.c - optimisers against PyTorch (data/optim.py), and what may not go wrong around them. */
#include "temporary.h"

#define N 6

/* The problem of data/optim.py: the gradient at step t, set through a loss that is linear in p. */
static void set_gradient(lg_ctx *c, lg_tensor *p, int t)
{
        double values[N], g[N];
        read_all(p, values, N);
        for (int i = 0; i < N; i++)
                g[i] = values[i] * (1 + i / 4.0) + cos(t + i);
        lg_clear_grad(p);
        lg_backward(lg_sum(lg_mul(p, lg_from(c, g, lg_shape_of(p), .dtype = LG_F64, .device = lg_device_of(p)))));
}

static lg_tensor *start(lg_ctx *c, lg_shape shape)
{
        double values[N];
        for (int i = 0; i < N; i++)
                values[i] = sin(i + 1);
        return lg_from(c, values, shape, .dtype = LG_F64, .requires_grad = true);
}

static lg_optimizer *make(lg_ctx *c, const char *name, lg_list p)
{
        if (!strcmp(name, "sgd"))
                return lg_sgd(c, p, 0.01);
        if (!strcmp(name, "sgd_decay"))
                return lg_sgd(c, p, 0.01, .weight_decay = 0.1);
        if (!strcmp(name, "sgd_momentum"))
                return lg_sgd(c, p, 0.01, .momentum = 0.9);
        if (!strcmp(name, "sgd_dampening"))
                return lg_sgd(c, p, 0.01, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1);
        if (!strcmp(name, "sgd_nesterov"))
                return lg_sgd(c, p, 0.01, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true);
        if (!strcmp(name, "sgd_maximize"))
                return lg_sgd(c, p, 0.001, .momentum = 0.5, .maximize = true);
        if (!strcmp(name, "adam"))
                return lg_adam(c, p, 0.01);
        if (!strcmp(name, "adam_decay"))
                return lg_adam(c, p, 0.01, .weight_decay = 0.1);
        if (!strcmp(name, "adam_betas"))
                return lg_adam(c, p, 0.01, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3);
        if (!strcmp(name, "adam_beta_zero"))
                return lg_adam(c, p, 0.01, .beta1 = LG_ZERO, .beta2 = 0.9);
        if (!strcmp(name, "adam_maximize"))
                return lg_adam(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "adamw"))
                return lg_adam(c, p, 0.01, .weight_decay = 0.1, .decoupled = true);
        if (!strcmp(name, "nadam"))
                return lg_nadam(c, p, 0.01);
        if (!strcmp(name, "nadam_betas"))
                return lg_nadam(c, p, 0.02, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1,
                                .momentum_decay = 0.1);
        if (!strcmp(name, "nadam_decoupled"))
                return lg_nadam(c, p, 0.01, .weight_decay = 0.1, .decoupled = true);
        if (!strcmp(name, "nadam_maximize"))
                return lg_nadam(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "radam"))
                return lg_radam(c, p, 0.01);
        if (!strcmp(name, "radam_betas"))
                return lg_radam(c, p, 0.02, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1);
        if (!strcmp(name, "radam_short"))
                return lg_radam(c, p, 0.01, .beta2 = 0.5);
        if (!strcmp(name, "radam_decoupled"))
                return lg_radam(c, p, 0.01, .weight_decay = 0.1, .decoupled = true);
        if (!strcmp(name, "radam_maximize"))
                return lg_radam(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "asgd"))
                return lg_asgd(c, p, 0.01);
        if (!strcmp(name, "asgd_decay"))
                return lg_asgd(c, p, 0.1, .lambd = 0.1, .alpha = 0.5, .t0 = 20, .weight_decay = 0.1);
        if (!strcmp(name, "asgd_maximize"))
                return lg_asgd(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "asgd_average"))
                return lg_asgd(c, p, 0.1, .lambd = 0.1, .alpha = 0.5, .t0 = 20);
        if (!strcmp(name, "rprop"))
                return lg_rprop(c, p, 0.01);
        if (!strcmp(name, "rprop_sizes"))
                return lg_rprop(c, p, 0.1, .eta_minus = 0.3, .eta_plus = 1.5, .step_min = 1e-2, .step_max = 0.2);
        if (!strcmp(name, "rprop_maximize"))
                return lg_rprop(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "lion"))
                return lg_lion(c, p, 0.01);
        if (!strcmp(name, "lion_decay"))
                return lg_lion(c, p, 0.01, .beta1 = 0.5, .beta2 = 0.8, .weight_decay = 0.1);
        if (!strcmp(name, "lion_maximize"))
                return lg_lion(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "lamb"))
                return lg_lamb(c, p, 0.01);
        if (!strcmp(name, "lamb_decay"))
                return lg_lamb(c, p, 0.01, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1);
        if (!strcmp(name, "lamb_maximize"))
                return lg_lamb(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "adafactor") || !strcmp(name, "adafactor_matrix"))
                return lg_adafactor(c, p, 0.01);
        if (!strcmp(name, "adafactor_rates_tall"))
                return lg_adafactor(c, p, 0.1, .beta2_decay = -0.5, .eps1 = 1e-3, .eps2 = 1e-2, .d = 2,
                                    .weight_decay = 0.1);
        if (!strcmp(name, "adafactor_maximize"))
                return lg_adafactor(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "muon_matrix"))
                return lg_muon(c, p, 0.001);
        if (!strcmp(name, "muon_tall"))
                return lg_muon(c, p, 0.01, .momentum = 0.8, .weight_decay = 0.2, .no_nesterov = true);
        if (!strcmp(name, "muon_steps_matrix"))
                return lg_muon(c, p, 0.01, .ns_a = 2, .ns_b = -1.5, .ns_c = 0.5, .ns_steps = 3, .eps = 10);
        if (!strcmp(name, "muon_rms_tall"))
                return lg_muon(c, p, 0.01, .adjust_lr = LG_MUON_MATCH_RMS_ADAMW);
        if (!strcmp(name, "muon_unclamped_matrix"))
                return lg_muon(c, p, 0.01, .adjust_lr = LG_MUON_SPECTRAL_UNCLAMPED);
        if (!strcmp(name, "muon_vector"))
                return lg_muon(c, p, 0.01);
        if (!strcmp(name, "clip_greatest"))
                return lg_adam(c, p, 0.01);
        if (!strncmp(name, "clip", 4) || !strcmp(name, "average"))
                return lg_sgd(c, p, 0.01, .momentum = 0.9);
        if (!strcmp(name, "adamw_default"))
                return lg_adamw(c, p, 0.01);
        if (!strcmp(name, "adam_amsgrad"))
                return lg_adam(c, p, 0.01, .amsgrad = true);
        if (!strcmp(name, "adamax"))
                return lg_adamax(c, p, 0.01);
        if (!strcmp(name, "adamax_betas"))
                return lg_adamax(c, p, 0.02, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1);
        if (!strcmp(name, "adamax_maximize"))
                return lg_adamax(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "rmsprop"))
                return lg_rmsprop(c, p, 0.01);
        if (!strcmp(name, "rmsprop_decay"))
                return lg_rmsprop(c, p, 0.01, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.1);
        if (!strcmp(name, "rmsprop_centered"))
                return lg_rmsprop(c, p, 0.01, .centered = true);
        if (!strcmp(name, "rmsprop_momentum"))
                return lg_rmsprop(c, p, 0.001, .momentum = 0.9, .centered = true);
        if (!strcmp(name, "rmsprop_maximize"))
                return lg_rmsprop(c, p, 0.001, .maximize = true);
        if (!strcmp(name, "adagrad"))
                return lg_adagrad(c, p, 0.1);
        if (!strcmp(name, "adagrad_decay"))
                return lg_adagrad(c, p, 0.1, .lr_decay = 0.01, .weight_decay = 0.1);
        if (!strcmp(name, "adagrad_initial"))
                return lg_adagrad(c, p, 0.1, .eps = 1e-3, .initial_accumulator_value = 0.5);
        if (!strcmp(name, "adagrad_maximize"))
                return lg_adagrad(c, p, 0.01, .maximize = true);
        if (!strcmp(name, "adadelta"))
                return lg_adadelta(c, p, 1);
        if (!strcmp(name, "adadelta_rho"))
                return lg_adadelta(c, p, 0.5, .rho = 0.5, .eps = 1e-3, .weight_decay = 0.1);
        if (!strcmp(name, "adadelta_rho_zero"))
                return lg_adadelta(c, p, 0.1, .rho = LG_ZERO, .eps = 1e-2);
        if (!strcmp(name, "adadelta_maximize"))
                return lg_adadelta(c, p, 0.1, .maximize = true);
        return NULL;
}

static void clip(const char *name, lg_list p)
{
        if (!strcmp(name, "clip_norm"))
                assert_true(lg_clip_grad_norm(p, 1.5));
        if (!strcmp(name, "clip_three"))
                assert_true(lg_clip_grad_norm(p, 1, .p = 3));
        if (!strcmp(name, "clip_greatest"))
                assert_true(lg_clip_grad_norm(p, 0.5, .p = INFINITY));
        if (!strcmp(name, "clip_value"))
                assert_true(lg_clip_grad_value(p, 0.4));
}

static lg_tensor *no_forward(lg_module *m, lg_list inputs, void *user)
{
        (void)m, (void)user;
        return inputs.items[0];
}

static lg_shape shape_of_variant(const char *name)
{
        return strstr(name, "_matrix") ? LG_SHAPE(2, 3) : strstr(name, "_tall") ? LG_SHAPE(3, 2) : LG_SHAPE(N);
}

/* Compares the average of lg_asgd(), which only checkpoints have. */
static void assert_average(lg_ctx *c, lg_optimizer *opt, const double *wanted)
{
        lg_checkpoint *k = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add(k, "opt", opt) && lg_checkpoint_save(k, path));
        lg_weights *w = lg_weights_open(c, path);
        assert_values(lg_weights_read(w, "opt.state.0.ax"), wanted, N, 1e-10);
        lg_weights_close(w);
}

TEST_CASE_WITH(two_hundred_steps_are_pytorchs, begin, end)
{
        char file[4096], name[40];
        double ref[N];
        int variants = 0;
        const char *folder = getenv("LG_TEST_DATA");
        snprintf(file, sizeof file, "%s/optim.txt", folder ? folder : "tests/data");
        FILE *f = fopen(file, "r");
        assert_non_null(f);
        while (fscanf(f, "%39s %lf %lf %lf %lf %lf %lf", name, &ref[0], &ref[1], &ref[2], &ref[3], &ref[4], &ref[5]) ==
               7) {
                lg_ctx *c = open_ctx();
                lg_tensor *p = start(c, shape_of_variant(name));
                lg_module *m = lg_nn_module(c, "Holder", .forward = no_forward);
                lg_module_add_parameter(m, "p", p);
                lg_optimizer *opt = make(c, name, LG_LIST(p));
                lg_ema *ema = lg_ema_new(m, 0.95);
                assert_non_null(opt);
                for (int t = 0; t < 200; t++) {
                        lg_scope scope = lg_scope_begin(c);
                        set_gradient(c, p, t);
                        clip(name, LG_LIST(p));
                        assert_true(lg_step(opt) && lg_ema_update(ema));
                        lg_scope_end(c, scope);
                }
                if (!strcmp(name, "average"))
                        lg_ema_swap(ema);
                if (!strcmp(name, "asgd_average"))
                        assert_average(c, opt, ref);
                else
                        assert_values(p, ref, N, 1e-10);
                variants++;
                lg_close(c);
        }
        fclose(f);
        assert_int_equal(variants, 67);
}

/* Runs twenty steps of a variant from the usual start, converted to dtype, and reads the parameter. */
static void run_twenty(const char *name, lg_dtype dtype, double *ret)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = lg_set_requires_grad(lg_cast(lg_detach(start(c, shape_of_variant(name))), dtype), true);
        lg_optimizer *opt = make(c, name, LG_LIST(p));
        assert_non_null(opt);
        for (int t = 0; t < 20; t++) {
                lg_scope scope = lg_scope_begin(c);
                set_gradient(c, p, t);
                clip(name, LG_LIST(p));
                assert_true(lg_step(opt));
                lg_scope_end(c, scope);
        }
        assert_true(lg_read(p, ret, LG_F64, N * sizeof *ret));
        lg_close(c);
}

TEST_CASE(twenty_steps_in_f32_are_those_in_f64)
{
        char file[4096], name[40];
        double ref[N], got[N];
        const char *folder = getenv("LG_TEST_DATA");
        snprintf(file, sizeof file, "%s/optim.txt", folder ? folder : "tests/data");
        FILE *f = fopen(file, "r");
        assert_non_null(f);
        while (fscanf(f, "%39s %*[^\n]", name) == 1) {
                run_twenty(name, LG_F64, ref);
                run_twenty(name, LG_F32, got);
                for (int i = 0; i < N; i++)
                        if (!(fabs(got[i] - ref[i]) <= 1e-4 * fmax(1, fabs(ref[i]))))
                                fail_msg("%s: %.9g, not %.9g", name, got[i], ref[i]);
        }
        fclose(f);
}

/* Steps that a parameter sits out for want of a gradient do not count for it; a strided leaf is updated in its place.
 */
TEST_CASE(each_parameter_has_its_own_step_count)
{
        lg_ctx *c = open_ctx();
        double ref[N];
        lg_tensor *alone = start(c, LG_SHAPE(N)), *p = start(c, LG_SHAPE(N)), *late = start(c, LG_SHAPE(N));
        lg_optimizer *one = lg_adam(c, LG_LIST(alone), 0.01), *both = lg_adam(c, LG_LIST(p, late), 0.01);
        for (int t = 0; t < 20; t++) {
                set_gradient(c, alone, t);
                lg_step(one);
        }
        for (int t = 0; t < 25; t++) {
                set_gradient(c, p, t);
                if (t >= 5)
                        set_gradient(c, late, t - 5);
                lg_step(both);
        }
        read_all(alone, ref, N);
        assert_values(late, ref, N, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(strided_leaves_are_updated)
{
        lg_ctx *c = open_ctx();
        double values[N] = {1, 2, 3, 4, 5, 6};
        lg_tensor *base = lg_from(c, values, LG_SHAPE(2, 3), .dtype = LG_F64);
        lg_tensor *p = lg_set_requires_grad(lg_transpose(base, 0, 1), true);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(p), 0.5, .momentum = 0.9);
        lg_backward(lg_sum(lg_mul(p, p)));
        assert_true(lg_step(opt));
        assert_list(base, 1e-14, 0, 0, 0, 0, 0, 0);
        assert_list(p, 1e-14, 0, 0, 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(state_follows_its_parameter)
{
        lg_ctx *c = lg_open();
        lg_device d = test_device(c);
        double here[6], there[6];
        for (int moved = 0; moved < 2; moved++) {
                lg_seed(c, 3);
                lg_module *m = lg_nn_linear(c, 3, 2, .no_bias = true, .device = lg_cpu(), .dtype = LG_F64);
                lg_optimizer *opt = lg_adam(c, lg_parameters(m), 0.1);
                for (int t = 0; t < 6; t++) {
                        if (moved && t == 3)
                                lg_module_to(m, d);
                        set_gradient(c, lg_parameter(m, "weight"), t);
                        assert_true(lg_step(opt));
                }
                read_all(lg_parameter(m, "weight"), moved ? there : here, 6);
        }
        for (int i = 0; i < 6; i++)
                assert_near(here[i], there[i], 1e-14);
        lg_close(c);
}

TEST_CASE(wrong_arguments_are_told)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = start(c, LG_SHAPE(N)), *fixed = lg_ones(c, LG_SHAPE(2)), *inner = lg_square(p);
        assert_null(lg_sgd(c, LG_LIST(p), -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_sgd: lr is -1");
        assert_null(lg_sgd(c, LG_LIST(p), NAN));
        assert_error(c, LG_ERR_ARGUMENT, "lr");
        assert_null(lg_sgd(c, LG_LIST(p), 1, .momentum = -0.1));
        assert_error(c, LG_ERR_ARGUMENT, "momentum");
        assert_null(lg_sgd(c, LG_LIST(p), 1, .nesterov = true));
        assert_error(c, LG_ERR_ARGUMENT, "nesterov needs momentum");
        assert_null(lg_sgd(c, LG_LIST(p), 1, .momentum = 0.5, .dampening = 0.1, .nesterov = true));
        assert_error(c, LG_ERR_ARGUMENT, "no dampening");
        assert_null(lg_adam(c, LG_LIST(p), 1, .beta1 = 1));
        assert_error(c, LG_ERR_ARGUMENT, "beta1 is 1");
        assert_null(lg_adam(c, LG_LIST(p), 1, .eps = -1));
        assert_error(c, LG_ERR_ARGUMENT, "eps");
        assert_null(lg_adamax(c, LG_LIST(p), 1, .beta2 = 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_adamax: beta2 is 1");
        assert_null(lg_adadelta(c, LG_LIST(p), 1, .rho = 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_adadelta: rho is 1");
        assert_null(lg_adadelta(c, LG_LIST(p), 1, .eps = -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_adadelta: eps is -1");
        assert_null(lg_adam(c, ((lg_list){0, NULL}), 1));
        assert_error(c, LG_ERR_ARGUMENT, "empty");
        assert_null(lg_adam(c, LG_LIST(p, NULL), 1));
        assert_error(c, LG_ERR_ARGUMENT, "parameter 1 is NULL");
        assert_null(lg_adam(c, LG_LIST(p, p), 1));
        assert_error(c, LG_ERR_ARGUMENT, "0 and 1 are the same");
        assert_null(lg_adam(c, LG_LIST(p, fixed), 1));
        assert_error(c, LG_ERR_ARGUMENT, "does not require grad; call lg_set_requires_grad()");
        assert_null(lg_adam(c, LG_LIST(inner), 1));
        assert_error(c, LG_ERR_ARGUMENT, "not a leaf");
        lg_optimizer *opt = lg_sgd(c, LG_LIST(p), 0.5);
        assert_true(lg_set_lr(opt, 0.25) && lg_lr(opt) == 0.25);
        assert_false(lg_set_lr(opt, INFINITY));
        assert_error(c, LG_ERR_ARGUMENT, "lr");
        assert_true(lg_lr(opt) == 0.25 && isnan(lg_lr(NULL)));
        lg_optimizer_free(opt);
        lg_optimizer_free(NULL);
        lg_close(c);
}

TEST_CASE(a_freed_parameter_is_noticed)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_linear(c, 3, 2);
        lg_tensor *p = start(c, LG_SHAPE(N));
        lg_optimizer *opt = lg_adam(c, LG_LIST(p, lg_parameter(m, "weight")), 0.1);
        double before[N], after[N];
        set_gradient(c, p, 0);
        read_all(p, before, N);
        lg_module_free(m);
        assert_false(lg_step(opt));
        assert_error(c, LG_ERR_STATE, "parameter 1 of lg_adam was freed");
        read_all(p, after, N);
        assert_memory_equal(before, after, sizeof before);
        assert_true(lg_zero_grad(opt));
        assert_null(lg_grad_of(p));
        lg_close(c);
}

TEST_CASE(freezing_a_parameter_is_no_error)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = start(c, LG_SHAPE(N));
        lg_optimizer *opt = lg_sgd(c, LG_LIST(p), 1);
        double before[N], g[N];
        lg_set_requires_grad(p, false);
        assert_true(lg_step(opt));
        lg_set_requires_grad(p, true);
        set_gradient(c, p, 0);
        read_all(p, before, N);
        read_all(lg_grad_of(p), g, N);
        assert_true(lg_step(opt));
        for (int i = 0; i < N; i++)
                before[i] -= g[i];
        assert_values(p, before, N, 1e-14);
        lg_close(c);
}

TEST_CASE(a_step_under_an_error_changes_nothing)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = start(c, LG_SHAPE(N));
        lg_optimizer *opt = lg_sgd(c, LG_LIST(p), 1);
        double before[N], after[N];
        set_gradient(c, p, 0);
        read_all(p, before, N);
        lg_set_error(c, LG_ERR_STATE, "stop");
        assert_false(lg_step(opt));
        assert_false(lg_zero_grad(opt));
        assert_non_null(lg_grad_of(p));
        read_all(p, after, N);
        assert_memory_equal(before, after, sizeof before);
        lg_close(c);
}

/* What a kernel found stops optimisers until it is reported. Clearing the error forgets it, reported or not. */
TEST_CASE(clearing_the_error_lets_steps_go_on)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_zeros(c, LG_SHAPE(1, 2), .requires_grad = true);
        lg_tensor *good = lg_zeros(c, LG_SHAPE(1), .dtype = LG_I64), *bad = lg_full(c, LG_SHAPE(1), 7, .dtype = LG_I64);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(w), 1);
        for (int i = 0; i < 2; i++) {
                lg_backward(lg_cross_entropy(w, bad));
                assert_int_equal(lg_step(opt), !reports_at_once(c));
                if (i)
                        lg_set_error(c, LG_ERR_IO, "another one");
                lg_clear_error(c);
                lg_zero_grad(opt);
                lg_no_grad(c)
                {
                        lg_fill_(w, 0);
                }
                lg_backward(lg_cross_entropy(w, good));
                assert_true(lg_step(opt));
                assert_true(lg_synchronize(c));
                assert_list(w, 1e-6, 0.5, -0.5);
        }
        /* what is found afterwards is told again */
        lg_backward(lg_cross_entropy(w, bad));
        assert_int_equal(lg_step(opt), !reports_at_once(c));
        assert_false(lg_synchronize(c));
        assert_error(c, LG_ERR_ARGUMENT, "class index 7");
        assert_list(w, 1e-6, 0.5, -0.5);
        lg_close(c);
}

/* A step that a device-side error stops leaves the states as they are, too. */
TEST_CASE(a_stopped_step_changes_no_state)
{
        lg_ctx *c = open_ctx();
        double ref[N];
        lg_tensor *alone = start(c, LG_SHAPE(N)), *p = start(c, LG_SHAPE(N)), *scores = lg_zeros(c, LG_SHAPE(1, 2));
        lg_optimizer *one = lg_adadelta(c, LG_LIST(alone), 1), *other = lg_adadelta(c, LG_LIST(p), 1);
        for (int t = 0; t < 5; t++) {
                set_gradient(c, alone, t);
                set_gradient(c, p, t);
                assert_true(lg_step(one) && lg_step(other));
                drop(lg_cross_entropy(scores, lg_full(c, LG_SHAPE(1), 7, .dtype = LG_I64)));
                assert_int_equal(lg_step(other), !reports_at_once(c));
                lg_clear_error(c);
        }
        read_all(alone, ref, N);
        assert_values(p, ref, N, 0);
        assert_ok(c);
        lg_close(c);
}

/* 16-bit parameters and states, computed in f32. */
TEST_CASE(half_precision)
{
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 6; k++) {
                double g[N] = {0.5, -1, 2, 0.25, 1, -0.75}, exact[N], v[N];
                lg_tensor *p = start(c, LG_SHAPE(N)),
                          *h = lg_set_requires_grad(lg_cast(lg_detach(p), k & 1 ? LG_BF16 : LG_F16), true);
                lg_optimizer *a = k & 4   ? lg_adadelta(c, LG_LIST(p), 1)
                                  : k & 2 ? lg_adagrad(c, LG_LIST(p), 0.1)
                                          : lg_rmsprop(c, LG_LIST(p), 0.01, .momentum = 0.5, .centered = true);
                lg_optimizer *b = k & 4   ? lg_adadelta(c, LG_LIST(h), 1)
                                  : k & 2 ? lg_adagrad(c, LG_LIST(h), 0.1)
                                          : lg_rmsprop(c, LG_LIST(h), 0.01, .momentum = 0.5, .centered = true);
                lg_tensor *slope = lg_from(c, g, LG_SHAPE(N), .dtype = LG_F64);
                for (int t = 0; t < 3; t++) {
                        lg_clear_grad(p), lg_clear_grad(h);
                        lg_backward(lg_sum(lg_mul(p, slope)));
                        lg_backward(lg_sum(lg_mul(h, lg_cast(slope, lg_dtype_of(h)))));
                        assert_true(lg_step(a) && lg_step(b));
                }
                read_all(p, exact, N);
                read_all(h, v, N);
                for (int i = 0; i < N; i++)
                        assert_near(v[i], exact[i], k & 1 ? 0.04 : 5e-3);
        }
        assert_ok(c);
        lg_close(c);
}

/* More parameters than a launch takes, of all float dtypes, long and short ones, on even addresses and not: SGD and the
 * bound of their norm against loops. */
TEST_CASE(many_parameters)
{
        enum { COUNT = 150, MOST = 9001 };
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        const double limits[] = {1e-6, 1e-13, 2e-3, 1.6e-2};
        lg_tensor *p[COUNT], *norm = NULL;
        double *before = calloc(COUNT * MOST, sizeof *before), *g = calloc(MOST, sizeof *g), squares = 0;
        for (int i = 0; i < COUNT; i++) {
                const int64_t n = i % 50 == 7 ? MOST - i / 50 : i % 30;
                lg_tensor *whole = lg_normal(c, 0, 1, LG_SHAPE(n + 1), .dtype = dtypes[i % 4]);
                p[i] = lg_set_requires_grad(lg_detach(lg_slice(whole, 0, i % 3 == 0, n + (i % 3 == 0))), true);
                lg_backward(lg_sum(lg_mul(p[i], lg_normal(c, 0, 1, LG_SHAPE(n), .dtype = dtypes[i % 4]))));
                read_all(lg_grad_of(p[i]), g, MOST);
                read_all(p[i], before + i * MOST, MOST);
                for (int64_t j = 0; j < n; j++)
                        squares += g[j] * g[j];
                for (int64_t j = 0; j < n; j++)
                        before[i * MOST + j] -= g[j];
        }
        lg_list all = {COUNT, p};
        assert_true(lg_clip_grad_norm(all, 1e6, .norm = &norm));
        assert_near(lg_item(norm), sqrt(squares), 1e-5 * sqrt(squares));
        lg_optimizer *opt = lg_sgd(c, all, 1);
        assert_true(lg_step(opt));
        for (int i = 0; i < COUNT; i++)
                assert_values(p[i], before + i * MOST, lg_numel(p[i]), limits[i % 4]);
        read_all(lg_grad_of(p[57]), g, MOST);
        assert_true(lg_clip_grad_norm(all, sqrt(squares) / 4));
        for (int64_t j = 0; j < lg_numel(p[57]); j++)
                g[j] /= 4;
        assert_values(lg_grad_of(p[57]), g, lg_numel(p[57]), 1e-6);
        assert_true(lg_clip_grad_norm(all, 1, .norm = &norm));
        assert_near(lg_item(norm), sqrt(squares) / 4, 1e-4 * sqrt(squares));
        assert_ok(c);
        free(before), free(g);
        lg_close(c);
}

/* The rules over whole packs of elements are what they are element by element. */
TEST_CASE(long_parameters)
{
        enum { LENGTH = 4103, PIECE = 3 };
        lg_ctx *c = open_ctx();
        for (int rule = 0; rule < 5; rule++) {
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(LENGTH)), *slope = lg_normal(c, 0, 1, LG_SHAPE(LENGTH));
                lg_tensor *whole = lg_set_requires_grad(lg_detach(lg_mul_scalar(x, 1)), true);
                lg_tensor *piece =
                        lg_set_requires_grad(lg_detach(lg_mul_scalar(lg_slice(x, 0, 4097, 4097 + PIECE), 1)), true);
                lg_tensor *part = lg_slice(slope, 0, 4097, 4097 + PIECE);
                lg_optimizer *opt[2];
                for (int k = 0; k < 2; k++) {
                        lg_list p = LG_LIST(k ? piece : whole);
                        opt[k] = rule == 0   ? lg_sgd(c, p, 0.1, .momentum = 0.9, .nesterov = true)
                                 : rule == 1 ? lg_adam(c, p, 0.1, .amsgrad = true)
                                 : rule == 2 ? lg_rmsprop(c, p, 0.1, .momentum = 0.5, .centered = true)
                                 : rule == 3 ? lg_adagrad(c, p, 0.1)
                                             : lg_adadelta(c, p, 1);
                }
                for (int t = 0; t < 3; t++) {
                        lg_clear_grad(whole), lg_clear_grad(piece);
                        lg_backward(lg_sum(lg_mul(whole, slope)));
                        lg_backward(lg_sum(lg_mul(piece, part)));
                        assert_true(lg_step(opt[0]) && lg_step(opt[1]));
                }
                double want[PIECE];
                read_all(piece, want, PIECE);
                assert_values(lg_slice(whole, 0, 4097, 4097 + PIECE), want, PIECE, 1e-6);
        }
        assert_ok(c);
        lg_close(c);
}

/* Where gradients stay as they are, v - a^2 is lost in rounding: a step is still a number, and at most lr g / eps. */
TEST_CASE(centered_rmsprop_of_constant_gradients)
{
        enum { COUNT = 64 };
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 4; k++) {
                const lg_dtype dtype = k & 1 ? LG_F64 : LG_F32;
                double g[COUNT], was[COUNT], now[COUNT];
                for (int i = 0; i < COUNT; i++)
                        g[i] = 0.1 + 1.7 * i;
                lg_tensor *p = lg_set_requires_grad(lg_zeros(c, LG_SHAPE(COUNT), .dtype = dtype), true);
                lg_tensor *slope = lg_from(c, g, LG_SHAPE(COUNT), .dtype = LG_F64);
                lg_optimizer *opt = k & 2 ? lg_rmsprop(c, LG_LIST(p), 1e-3, .alpha = 0.9, .centered = true)
                                          : lg_rmsprop(c, LG_LIST(p), 1e-3, .alpha = 0.5, .centered = true);
                lg_backward(lg_sum(lg_mul(p, lg_cast(slope, dtype))));
                read_all(p, now, COUNT);
                for (int step = 0; step < 400; step++) {
                        memcpy(was, now, sizeof was);
                        assert_true(lg_step(opt));
                        read_all(p, now, COUNT);
                        for (int i = 0; i < COUNT; i++)
                                if (!(now[i] < was[i] && was[i] - now[i] <= 1.001e-3 * g[i] / 1e-8))
                                        fail_msg("gradient %g, step %d: from %g to %g", g[i], step, was[i], now[i]);
                }
        }
        assert_ok(c);
        lg_close(c);
}

/* Elements that share memory would be updated more than once: neither within a parameter nor in two. */
TEST_CASE(parameters_that_share_memory)
{
        lg_ctx *c = open_ctx();
        lg_tensor *base = lg_ones(c, LG_SHAPE(6)), *all = lg_set_requires_grad(lg_detach(base), true);
        lg_tensor *wide = lg_set_requires_grad(lg_expand(lg_slice(base, 0, 0, 1), LG_SHAPE(2000)), true);
        lg_tensor *again = lg_set_requires_grad(lg_reshape(base, LG_SHAPE(2, 3)), true);
        lg_tensor *part = lg_set_requires_grad(lg_slice(base, 0, 2, 4), true);
        lg_tensor *matrix = lg_reshape(base, LG_SHAPE(2, 3));
        lg_tensor *left = lg_set_requires_grad(lg_slice(matrix, 1, 0, 1), true);
        lg_tensor *right = lg_set_requires_grad(lg_slice(matrix, 1, 1, 3), true);
        assert_null(lg_adam(c, LG_LIST(wide), 0.1));
        assert_error(c, LG_ERR_ARGUMENT, "is expanded: its elements share memory");
        assert_null(lg_sgd(c, LG_LIST(all, again), 0.1));
        assert_error(c, LG_ERR_ARGUMENT, "parameters 0 and 1 share memory");
        assert_null(lg_sgd(c, LG_LIST(part, left, all), 0.1));
        assert_error(c, LG_ERR_ARGUMENT, "parameters 0 and 2 share memory");
        lg_optimizer *opt = lg_sgd(c, LG_LIST(left), 0.5);
        assert_true(lg_add_param_group(opt, LG_LIST(right)));
        assert_false(lg_add_param_group(opt, LG_LIST(wide)));
        assert_error(c, LG_ERR_ARGUMENT, "is expanded");
        assert_false(lg_add_param_group(opt, LG_LIST(all)));
        assert_error(c, LG_ERR_ARGUMENT, "parameter 0 is in group 0 already");
        lg_backward(lg_add(lg_sum(left), lg_sum(right)));
        assert_true(lg_step(opt));
        assert_list(base, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5);
        assert_ok(c);
        lg_close(c);
}

/* A gradient with a graph may be expanded: it is clipped once, not once for each element. */
TEST_CASE(expanded_gradients_are_clipped_once)
{
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 2; k++) {
                lg_tensor *p = lg_ones(c, LG_SHAPE(1 << 15), .requires_grad = true);
                lg_tensor *q = lg_full(c, LG_SHAPE(1), 8, .requires_grad = true);
                lg_backward(lg_sum(lg_mul(q, lg_sum(p))), .create_graph = true);
                assert_int_equal(lg_stride_of(lg_grad_of(p), 0), 0);
                if (k)
                        assert_true(lg_clip_grad_value(LG_LIST(p), 2));
                else
                        assert_true(lg_clip_grad_norm(LG_LIST(p), 2 * sqrt(1 << 15)));
                assert_list(lg_amin(lg_grad_of(p)), 1e-6, 2);
                assert_list(lg_amax(lg_grad_of(p)), 1e-6, 2);
                assert_list(q, 0, 8);
        }
        assert_ok(c);
        lg_close(c);
}

/* A record that was freed and is used again by a leaf of the same shape is not the parameter. */
TEST_CASE(a_reused_record_is_noticed)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = lg_keep(lg_ones(c, LG_SHAPE(3), .requires_grad = true));
        lg_optimizer *opt = lg_sgd(c, LG_LIST(p), 1);
        lg_free(p);
        lg_tensor *again = NULL;
        for (int i = 0; i < 5000 && again != p; i++) {
                again = lg_keep(lg_ones(c, LG_SHAPE(3), .requires_grad = true));
                if (again != p)
                        lg_free(again);
        }
        assert_ptr_equal(again, p);
        lg_backward(lg_sum(again));
        assert_false(lg_step(opt));
        assert_error(c, LG_ERR_STATE, "was freed");
        assert_list(again, 0, 1, 1, 1);
        assert_true(lg_zero_grad(opt));
        assert_non_null(lg_grad_of(again)); /* it is not this optimiser's */
        lg_free(again);
        lg_close(c);
}

/* An optimiser takes frozen parameters of a module, skips them, and updates them once they are unfrozen. */
TEST_CASE(frozen_parameters_are_skipped)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 2), lg_nn_linear(c, 2, 1));
        for (int64_t i = 0; i < 4; i++)
                lg_init_constant(lg_parameters(net).items[i], 1);
        assert_true(lg_freeze(lg_child(net, 0), true));
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 1, .momentum = 0.5);
        for (int frozen = 1; frozen >= 0; frozen--) {
                lg_freeze(lg_child(net, 0), frozen);
                lg_zero_grad(opt);
                lg_backward(lg_sum(lg_forward(net, lg_ones(c, LG_SHAPE(1, 2)))));
                assert_true(lg_step(opt));
                /* hidden values 3, 3: 1 - 3; then the gradient of the first layer is the weight -2, on ones */
                assert_list(lg_parameter(net, "0.bias"), 0, frozen ? 1 : 3, frozen ? 1 : 3);
        }
        assert_ok(c);
        lg_close(c);
}
