/* test_scaler.c - loss scaling: PyTorch's scales and skipped steps, and what the user does wrong. */
#include <math.h>
#include <stdlib.h>
#include "failing.h"
#include "temporary.h"

static lg_tensor *weight(lg_ctx *c, double value)
{
        return lg_set_requires_grad(lg_full(c, LG_SHAPE_0D, value), true);
}

/* The gradient of w is slope times the scale. */
static void backward(lg_scaler *s, lg_tensor *w, double slope)
{
        lg_clear_grad(w);
        assert_true(lg_scaler_backward(s, lg_mul_scalar(w, slope)));
}

/* ---- the scale ---- */

static double draw_slope(uint32_t *seed, int t)
{
        *seed = (*seed * 1103515245u + 12345u) & 0x7fffffffu;
        const uint32_t draw = *seed >> 8;
        const bool odd = t < 3000 || t >= 6100 ? draw % 40 == 0 : t >= 6000;
        return !odd ? 1 : draw / 40 % 2 ? INFINITY : NAN;
}

static void read_line(FILE *f, const char *name, int optimisers, int *t, double *scale, int *updates)
{
        char found[8];
        assert_int_equal(fscanf(f, "%7s %d %la %d", found, t, scale, &updates[0]), 4);
        assert_string_equal(found, name);
        if (optimisers == 2)
                assert_int_equal(fscanf(f, "%d", &updates[1]), 1);
}

/* Ten thousand steps beside the lines of data/scaler.txt. */
static void follow_pytorch(FILE *f, const char *name, int optimisers)
{
        lg_ctx *c = lg_open(.threads = 1);
        test_device(c);
        lg_scaler *s = lg_scaler_new(c, .init_scale = 1024, .growth_interval = 20);
        lg_tensor *w[2];
        lg_optimizer *opt[2];
        int updates[2], next = -1;
        double scale = 1024, now = 1024;
        uint32_t seed = 1;
        for (int k = 0; k < optimisers; k++)
                w[k] = weight(c, 0), opt[k] = lg_sgd(c, LG_LIST(w[k]), 1);
        for (int t = 0; t < 10000; t++) {
                if (t > next)
                        read_line(f, name, optimisers, &next, &scale, updates);
                lg_scope scope = lg_scope_begin(c);
                for (int k = 0; k < optimisers; k++)
                        backward(s, w[k], draw_slope(&seed, t));
                for (int k = 0; k < optimisers; k++)
                        assert_true(lg_scaler_step(s, opt[k]));
                assert_true(lg_scaler_update(s));
                now = t == next ? scale : now;
                assert_true(lg_scaler_scale_of(s) == now);
                for (int k = 0; k < optimisers && t == next; k++)
                        assert_true(lg_item(w[k]) == -updates[k]);
                lg_scope_end(c, scope);
        }
        assert_int_equal(next, 9999);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(scales_are_pytorchs)
{
        char data[4096];
        const char *folder = getenv("LG_TEST_DATA");
        snprintf(data, sizeof data, "%s/scaler.txt", folder ? folder : "tests/data");
        FILE *f = fopen(data, "r");
        assert_non_null(f);
        follow_pytorch(f, "one", 1);
        follow_pytorch(f, "two", 2);
        char rest[2];
        assert_int_equal(fscanf(f, "%1s", rest), EOF);
        fclose(f);
}

TEST_CASE(a_growth_beyond_f32_is_refused)
{
        lg_ctx *c = open_ctx();
        lg_scaler *s = lg_scaler_new(c, .init_scale = 0x1p126, .growth_interval = 1, .growth_factor = 4);
        lg_tensor *w = weight(c, 0);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(w), 1);
        for (int t = 0; t < 3; t++) {
                backward(s, w, 1);
                assert_true(lg_scaler_step(s, opt) && lg_scaler_update(s));
        }
        assert_true(lg_scaler_scale_of(s) == 0x1p126);
        assert_true(lg_item(w) == -3);
        lg_close(c);
}

/* ---- steps ---- */

static lg_optimizer *optimiser(lg_ctx *c, int kind, lg_list_in p)
{
        switch (kind) {
        case 0:
                return lg_sgd(c, p, 0.1, .momentum = 0.9, .dampening = 0.5);
        case 1:
                return lg_adam(c, p, 0.1);
        case 2:
                return lg_adamw(c, p, 0.1, .amsgrad = true);
        case 3:
                return lg_adagrad(c, p, 0.1, .lr_decay = 0.1);
        case 4:
                return lg_rmsprop(c, p, 0.1, .centered = true, .momentum = 0.5);
        case 5:
                return lg_adadelta(c, p, 1);
        case 6:
                return lg_adamax(c, p, 0.1);
        case 7:
                return lg_nadam(c, p, 0.1);
        case 8:
                return lg_radam(c, p, 0.1, .beta2 = 0.5);
        case 9:
                return lg_asgd(c, p, 0.1, .lambd = 0.1, .t0 = 2);
        case 10:
                return lg_rprop(c, p, 0.1);
        case 11:
                return lg_lion(c, p, 0.1);
        case 12:
                return lg_lamb(c, p, 0.1);
        case 13:
                return lg_adafactor(c, p, 0.1, .weight_decay = 0.1);
        default:
                return lg_muon(c, p, 0.1);
        }
}
enum { KINDS = 15, SIZE = 5000 };

/* A long and a short parameter, and one that lies in no order, as a weight for a convolution may. */
typedef struct net {
        lg_tensor *p[3];
} net;

static net make_net(lg_ctx *c, lg_dtype dtype)
{
        lg_tensor *line = lg_arange(c, 0, SIZE, 1, .dtype = LG_F64);
        lg_tensor *values = lg_cast(lg_sin(line), dtype), *first = lg_cast(lg_slice(line, 0, 0, 12), dtype);
        return (net){{lg_set_requires_grad(lg_copy(values, lg_device_of(values)), true),
                      lg_set_requires_grad(lg_copy(lg_slice(first, 0, 0, 3), lg_device_of(first)), true),
                      lg_set_requires_grad(lg_transpose(lg_reshape(first, LG_SHAPE(3, 4)), 0, 1), true)}};
}

static lg_tensor *loss_of(const net *n, int t)
{
        lg_tensor *sum = NULL;
        for (int i = 0; i < 3; i++) {
                if (i == 1 && t == 1)
                        continue; /* no gradient, and no step that counts */
                lg_tensor *part = lg_mean(lg_square(lg_sub_scalar(n->p[i], 0.3 * t + i)));
                sum = sum ? lg_add(sum, part) : part;
        }
        return sum;
}

/* An optimiser under a scaler whose steps are skipped now and then is where one is that never had these steps; so are
 * its further plain steps. */
TEST_CASE(skipped_steps_leave_no_trace)
{
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_BF16};
        for (int kind = 0; kind < KINDS; kind++) {
                for (int d = 0; d < 3; d++) {
                        lg_ctx *c = open_ctx();
                        net a = make_net(c, dtypes[d]), b = make_net(c, dtypes[d]);
                        lg_optimizer *of_a = optimiser(c, kind, LG_LIST(a.p[0], a.p[1], a.p[2])),
                                     *of_b = optimiser(c, kind, LG_LIST(b.p[0], b.p[1], b.p[2]));
                        lg_scaler *s = lg_scaler_new(c);
                        for (int t = 0; t < 6; t++) {
                                lg_zero_grad(of_a), lg_zero_grad(of_b);
                                const bool skips = t == 0 || t == 3;
                                lg_tensor *loss = loss_of(&a, t);
                                assert_true(lg_scaler_backward(s, skips ? lg_mul_scalar(loss, INFINITY) : loss));
                                assert_true(lg_scaler_step(s, of_a) && lg_scaler_update(s));
                                if (!skips)
                                        assert_true(lg_backward(loss_of(&b, t)) && lg_step(of_b));
                        }
                        lg_zero_grad(of_a), lg_zero_grad(of_b);
                        assert_true(lg_backward(loss_of(&a, 7)) && lg_step(of_a));
                        assert_true(lg_backward(loss_of(&b, 7)) && lg_step(of_b));
                        for (int i = 0; i < 3; i++)
                                assert_same_bits(a.p[i], b.p[i]);
                        assert_true(lg_scaler_scale_of(s) == 16384);
                        lg_close(c);
                }
        }
}

TEST_CASE(clipping_sees_gradients_without_the_scale)
{
        lg_ctx *c = open_ctx();
        net n = make_net(c, LG_F32);
        lg_list p = LG_LIST(n.p[0], n.p[2]);
        lg_optimizer *opt = lg_sgd(c, p, 1);
        lg_scaler *s = lg_scaler_new(c);
        lg_tensor *norm, *plain;
        assert_true(lg_backward(loss_of(&n, 1)));
        assert_true(lg_clip_grad_norm(p, 1e9, .norm = &plain));
        lg_zero_grad(opt);
        assert_true(lg_scaler_backward(s, loss_of(&n, 1)));
        assert_true(lg_scaler_unscale(s, opt) && lg_clip_grad_norm(p, 1e9, .norm = &norm));
        assert_near(lg_item(norm), lg_item(plain), 1e-6 * lg_item(plain));
        assert_true(lg_scaler_step(s, opt) && lg_scaler_update(s));
        assert_ok(c);
        lg_close(c);
}

/* Two losses, one of them with a weight of its own, into one gradient; and a gradient by lg_grad(). */
TEST_CASE(several_losses_are_scaled)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = weight(c, 2);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(w), 0.1);
        lg_scaler *s = lg_scaler_new(c);
        assert_true(lg_scaler_backward(s, lg_square(w)));
        assert_true(lg_scaler_backward(s, lg_square(w), .grad = lg_full(c, LG_SHAPE_0D, 0.5)));
        assert_true(lg_scaler_backward(s, lg_reshape(w, LG_SHAPE(1, 1))));
        lg_tensor *g = lg_grad(LG_LIST(lg_scaler_scale(s, lg_square(w))), LG_LIST(w));
        assert_near(lg_item(g) / lg_scaler_scale_of(s), 4, 1e-6);
        assert_true(lg_scaler_unscale(s, opt));
        assert_near(lg_item(lg_grad_of(w)), 7, 1e-6);
        assert_true(lg_scaler_step(s, opt) && lg_scaler_update(s));
        assert_near(lg_item(w), 1.3, 1e-6);
        assert_ok(c);
        lg_close(c);
}

/* The gradient of a leaf is not the scale itself. */
TEST_CASE(a_leaf_as_a_loss)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = weight(c, 2);
        lg_scaler *s = lg_scaler_new(c);
        assert_true(lg_scaler_backward(s, w) && lg_scaler_backward(s, w));
        assert_true(lg_item(lg_grad_of(w)) == 131072);
        assert_true(lg_scaler_scale_of(s) == 65536);
        lg_close(c);
}

/* An optimiser without non-finite gradients steps, and the scale is halved all the same. */
TEST_CASE(optimisers_skip_for_themselves)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = weight(c, 0), *b = weight(c, 0);
        lg_optimizer *of_a = lg_sgd(c, LG_LIST(a), 1), *of_b = lg_sgd(c, LG_LIST(b), 1);
        lg_scaler *s = lg_scaler_new(c);
        backward(s, a, NAN);
        backward(s, b, 1);
        assert_true(lg_scaler_step(s, of_a) && lg_scaler_step(s, of_b));
        lg_optimizer_free(of_a); /* what it found counts */
        assert_true(lg_scaler_update(s));
        assert_true(lg_item(a) == 0 && lg_item(b) == -1 && lg_scaler_scale_of(s) == 32768);
        lg_close(c);
}

/* After a backward again in the same round, as a step that failed is repeated, its gradients are unscaled, too; what
 * was found in those before does not count. */
TEST_CASE(gradients_are_unscaled_once)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = weight(c, 0), *b = weight(c, 0);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(a, b), 1);
        lg_scaler *s = lg_scaler_new(c);
        backward(s, a, NAN);
        assert_true(lg_scaler_unscale(s, opt));
        backward(s, a, 1);
        backward(s, b, 2);
        assert_true(lg_scaler_unscale(s, opt));
        backward(s, b, 3);
        lg_list both = LG_LIST(a, b);
        assert_true(lg_clip_grad_value(both, 65536 * 4.0)); /* in place: the gradients stay who they are */
        assert_true(lg_scaler_step(s, opt));
        assert_true(lg_item(a) == -1 && lg_item(b) == -3);
        assert_true(lg_scaler_update(s));
        /* A parameter with another leaf, as of requires_grad off and on, has a gradient to unscale. */
        backward(s, a, 1);
        assert_true(lg_scaler_unscale(s, opt));
        lg_set_requires_grad(b, false);
        lg_set_requires_grad(b, true);
        backward(s, b, 2);
        assert_true(lg_scaler_step(s, opt) && lg_scaler_update(s));
        assert_true(lg_item(a) == -2 && lg_item(b) == -5);
        /* Gradients that stay are unscaled in each round: here of 1 / 65536 once more. */
        assert_true(lg_scaler_backward(s, lg_mul_scalar(a, 0)) && lg_scaler_step(s, opt));
        assert_true(lg_item(a) < -2 && lg_item(a) > -2.1);
        lg_close(c);
}

/* ---- checkpoints ---- */

static void run_steps(lg_scaler *s, lg_optimizer *opt, const net *n, int from, int to)
{
        for (int t = from; t < to; t++) {
                lg_zero_grad(opt);
                lg_tensor *loss = loss_of(n, t);
                assert_true(lg_scaler_backward(s, t % 4 == 2 ? lg_mul_scalar(loss, NAN) : loss));
                assert_true(lg_scaler_step(s, opt) && lg_scaler_update(s));
        }
}

static lg_checkpoint *checkpoint(lg_ctx *c, lg_scaler *s, lg_optimizer *opt)
{
        lg_checkpoint *k = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add(k, "scaler", s) && lg_checkpoint_add(k, "optimizer", opt));
        return k;
}

/* Saved after skipped steps and loaded into a new run, which goes on to the same bits as the run that went on. */
TEST_CASE_WITH(a_checkpoint_keeps_scale_and_counts, begin, end)
{
        for (int kind = 0; kind < KINDS; kind++) {
                lg_ctx *c = open_ctx();
                net a = make_net(c, LG_F32), b = make_net(c, LG_F32), never = make_net(c, LG_F32);
                lg_optimizer *of_a = optimiser(c, kind, LG_LIST(a.p[0], a.p[1], a.p[2])),
                             *of_b = optimiser(c, kind, LG_LIST(b.p[0], b.p[1], b.p[2])),
                             *of_never = optimiser(c, kind, LG_LIST(never.p[0], never.p[1], never.p[2]));
                lg_scaler *s = lg_scaler_new(c, .growth_interval = 3, .growth_factor = 3),
                          *again = lg_scaler_new(c, .init_scale = 7),
                          *plain = lg_scaler_new(c, .growth_interval = 3, .growth_factor = 3);
                run_steps(s, of_a, &a, 0, 6);
                assert_true(lg_checkpoint_save(checkpoint(c, s, of_a), path));
                assert_true(lg_checkpoint_load(checkpoint(c, again, of_b), path));
                for (int i = 0; i < 3; i++)
                        lg_no_grad(c) lg_copy_(b.p[i], a.p[i]);
                assert_true(lg_scaler_scale_of(again) == lg_scaler_scale_of(s));
                run_steps(s, of_a, &a, 6, 11);
                run_steps(again, of_b, &b, 6, 11);
                run_steps(plain, of_never, &never, 0, 11); /* what was never saved */
                for (int i = 0; i < 3; i++) {
                        assert_same_bits(a.p[i], b.p[i]);
                        assert_same_bits(a.p[i], never.p[i]);
                }
                assert_true(lg_scaler_scale_of(again) == lg_scaler_scale_of(s));
                assert_ok(c);
                lg_close(c);
        }
}

/* ---- errors ---- */

TEST_CASE(wrong_options_are_told)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_scaler_new(c, .init_scale = -1));
        assert_error(c, LG_ERR_ARGUMENT, "init_scale is -1");
        assert_null(lg_scaler_new(c, .init_scale = 1e39));
        assert_error(c, LG_ERR_ARGUMENT, "init_scale");
        assert_null(lg_scaler_new(c, .growth_factor = 1));
        assert_error(c, LG_ERR_ARGUMENT, "growth_factor is 1");
        assert_null(lg_scaler_new(c, .growth_factor = INFINITY));
        assert_error(c, LG_ERR_ARGUMENT, "growth_factor");
        assert_null(lg_scaler_new(c, .backoff_factor = 1));
        assert_error(c, LG_ERR_ARGUMENT, "backoff_factor is 1");
        assert_null(lg_scaler_new(c, .backoff_factor = NAN));
        assert_error(c, LG_ERR_ARGUMENT, "backoff_factor");
        assert_null(lg_scaler_new(c, .growth_interval = -5));
        assert_error(c, LG_ERR_ARGUMENT, "growth_interval is -5");
        assert_null(lg_scaler_new(NULL));
        lg_close(c);
}

TEST_CASE(wrong_order_is_told)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = weight(c, 1);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(w), 1);
        lg_scaler *s = lg_scaler_new(c);
        assert_false(lg_scaler_update(s));
        assert_error(c, LG_ERR_STATE, "lg_scaler_update: no gradients were unscaled");
        lg_backward(lg_square(w));
        assert_false(lg_scaler_step(s, opt));
        assert_error(c, LG_ERR_STATE, "lg_scaler_step: nothing was scaled since the last lg_scaler_update()");
        lg_zero_grad(opt);
        lg_free(lg_scaler_scale(s, w));
        assert_false(lg_scaler_step(s, opt));
        assert_error(c, LG_ERR_STATE, "lg_scaler_step: no parameter of lg_sgd has a gradient");
        backward(s, w, 1);
        assert_true(lg_scaler_unscale(s, opt));
        assert_false(lg_scaler_unscale(s, opt));
        assert_error(c, LG_ERR_STATE, "lg_scaler_unscale: the gradients of this optimiser are unscaled since");
        assert_true(lg_scaler_step(s, opt));
        assert_false(lg_scaler_step(s, opt));
        assert_error(c, LG_ERR_STATE, "lg_scaler_step: this optimiser has had its lg_scaler_step()");
        assert_false(lg_scaler_unscale(s, opt));
        assert_error(c, LG_ERR_STATE, "lg_scaler_unscale: this optimiser has had");
        assert_true(lg_item(w) == 0 && lg_scaler_update(s));
        lg_scaler_free(s);
        lg_scaler_free(NULL);
        lg_close(c);
}

TEST_CASE(wrong_arguments_are_told)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_tensor *w = weight(c, 1), *half = lg_set_requires_grad(lg_full(c, LG_SHAPE(2), 1, .dtype = LG_F16), true);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(w), 1), *theirs = lg_sgd(other, LG_LIST(weight(other, 1)), 1),
                     *in_f16 = lg_sgd(c, LG_LIST(w, half), 1);
        lg_scaler *s = lg_scaler_new(c);
        assert_false(lg_scaler_backward(s, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_scaler_backward: loss is NULL");
        assert_false(lg_scaler_backward(s, weight(other, 1)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_scaler_backward: loss");
        assert_false(lg_scaler_backward(s, lg_square(half)));
        assert_error(c, LG_ERR_SHAPE, "lg_scaler_backward: ");
        assert_false(lg_scaler_backward(s, lg_ones(c, LG_SHAPE_0D)));
        assert_error(c, LG_ERR_STATE, "lg_scaler_backward: ");
        assert_null(lg_scaler_scale(s, lg_ones(c, LG_SHAPE_0D, .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "lg_scaler_scale: loss is i64");
        assert_false(lg_scaler_step(s, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_scaler_step: the optimiser is NULL");
        assert_false(lg_scaler_unscale(s, theirs));
        assert_error(c, LG_ERR_ARGUMENT, "lg_scaler_unscale: the optimiser is of another context");
        assert_true(lg_scaler_backward(s, lg_sum(lg_mul(half, w))));
        assert_false(lg_scaler_step(s, in_f16));
        assert_error(c, LG_ERR_DTYPE, "lg_scaler_step: the gradient of parameter 1 is f16 (2,)");
        assert_true(lg_scaler_step(s, opt) && lg_scaler_update(s));
        assert_false(lg_scaler_backward(NULL, w) || lg_scaler_step(NULL, opt) || lg_scaler_update(NULL));
        assert_true(isnan(lg_scaler_scale_of(NULL)));
        assert_ok(c);
        lg_close(other);
        lg_close(c);
}

/* ---- memory ---- */

static lg_module *little(lg_ctx *c)
{
        lg_module *m = lg_nn_linear(c, 3, 2);
        lg_module_to(m, lg_default_device(c));
        return m;
}

/* A step that fails for want of memory is an error, and done again it does what it should. */
static lg_tensor *scaled_step(lg_ctx *c, void *user)
{
        lg_scope scope = lg_scope_begin(c);
        lg_scaler *s = lg_scaler_new(c);
        lg_optimizer *opt = lg_adam(c, lg_parameters(user), 0.1);
        bool ok = false;
        lg_autocast(c, LG_F16)
        {
                ok = lg_scaler_backward(
                        s, lg_mse(lg_forward(user, lg_ones(c, LG_SHAPE(4, 3))), lg_ones(c, LG_SHAPE(4, 2))));
        }
        ok = ok && lg_scaler_unscale(s, opt) && lg_scaler_step(s, opt) && lg_scaler_update(s) &&
             lg_scaler_scale_of(s) == 65536;
        lg_optimizer_free(opt);
        lg_scaler_free(s);
        if (scope.id)
                lg_scope_end(c, scope);
        return ok ? lg_ones(c, LG_SHAPE(1)) : NULL;
}

TEST_CASE(without_memory_nothing_is_lost)
{
        fail_each_of_step(scaled_step, little);
}

AROUND_TESTS(begin, end);
