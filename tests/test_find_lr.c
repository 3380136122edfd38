/* test_find_lr.c - the learning-rate range test: its curve against formulas, and that it leaves everything as it was.
 */
#include "faulty_run.h"

/* ---- the curve ---- */

/* The loss sum(k w^2) / 2 of a parameter w, and what becomes of it at a call. */
typedef struct bowl {
        lg_tensor *w;
        double k;
        int calls, bad_at; /* the call whose loss is `bad` */
        double bad;
        bool flat; /* the loss does not depend on w */
} bowl;

static lg_tensor *bowl_loss(lg_ctx *c, void *user)
{
        bowl *b = user;
        if (++b->calls == b->bad_at)
                return lg_full(c, LG_SHAPE_0D, b->bad, .dtype = LG_F64, .requires_grad = true);
        if (b->flat)
                return lg_full(c, LG_SHAPE_0D, 1, .dtype = LG_F64, .requires_grad = true);
        return lg_mul_scalar(lg_sum(lg_square(b->w)), b->k / 2);
}

static lg_module *holder(lg_ctx *c, bowl *b, double k)
{
        lg_module *m = lg_nn_module(c, "Bowl");
        lg_tensor *w = lg_from(c, ((double[]){1, -2, 0.5}), LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        *b = (bowl){.w = lg_module_add_parameter(m, "w", w), .k = k};
        return m;
}

/* The mean of the losses 0 to i, with weights beta^(i - j). */
static double mean_of(const double *loss, int64_t i, double beta)
{
        double sum = 0, weights = 0;
        for (int64_t j = 0; j <= i; j++) {
                sum += pow(beta, (double)(i - j)) * loss[j];
                weights += pow(beta, (double)(i - j));
        }
        return sum / weights;
}

/* Gradient descent of a parabola of curvature k multiplies w by 1 - rate k, so the loss rises from 2 / k on. */
TEST_CASE(descent_of_a_parabola)
{
        const double betas[] = {0, 0.5, 0.9};
        for (int at = 0; at < 3; at++)
                for (double k = 0.5; k < 100; k *= 10) {
                        lg_ctx *c = open_ctx();
                        bowl b;
                        lg_module *m = holder(c, &b, k);
                        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.3);
                        lg_lr_point p[200];
                        int64_t n = -1;
                        const double beta = betas[at];
                        double found =
                                lg_find_lr(m, opt, bowl_loss, &b, .from = 1e-5, .to = 100, .steps = 200,
                                           .smoothing = beta ? beta : LG_ZERO, .stop = 3, .curve = p, .count = &n);
                        assert_ok(c);
                        assert_in_range(n, 30, 199);
                        assert_int_equal(b.calls, n);
                        double loss[200], smoothed[200], lowest = INFINITY, w2 = 5.25, best = 0, slope = 0;
                        for (int64_t i = 0; i < n; i++) {
                                const double rate = pow(10, -5 + 7 * (double)i / 199);
                                loss[i] = k * w2 / 2;
                                smoothed[i] = mean_of(loss, i, beta);
                                assert_near(p[i].lr, rate, rate * 1e-12);
                                assert_near(p[i].loss, loss[i], loss[i] * 1e-9);
                                assert_near(p[i].smoothed, smoothed[i], smoothed[i] * 1e-9);
                                if (i)
                                        assert_true((p[i].loss > p[i - 1].loss) == (p[i - 1].lr > 2 / k));
                                assert_true((smoothed[i] > 3 * lowest) == (i == n - 1));
                                lowest = fmin(lowest, smoothed[i]);
                                w2 *= (1 - rate * k) * (1 - rate * k);
                        }
                        int64_t bottom = 20;
                        for (int64_t i = 20; i < n; i++)
                                bottom = smoothed[i] < smoothed[bottom] ? i : bottom;
                        for (int64_t i = 20; i < bottom; i++) {
                                const int64_t to = i + 20 > bottom ? bottom : i + 20;
                                if (smoothed[to] - smoothed[i] < slope) {
                                        slope = smoothed[to] - smoothed[i];
                                        best = p[(i + to) / 2].lr;
                                }
                        }
                        assert_true(found == best && found < 2 / k);
                        assert_list(b.w, 0, 1, -2, 0.5);
                        assert_near(lg_lr(opt), 0.3, 0);
                        lg_close(c);
                }
}

TEST_CASE(without_options)
{
        lg_ctx *c = open_ctx();
        bowl b;
        lg_module *m = holder(c, &b, 1);
        lg_optimizer *opt = lg_adam(c, lg_parameters(m), 0.3);
        const double found = lg_find_lr(m, opt, bowl_loss, &b);
        assert_ok(c);
        assert_true(found > 1e-3 && found < 2);
        assert_in_range(b.calls, 50, 100);
        const double same = lg_find_lr_with(m, opt, bowl_loss, &b, NULL);
        assert_true(same == found);
        lg_close(c);
}

/* The loss jumps when it has diverged, and falls from there faster than before. */
static lg_tensor *cliff_loss(lg_ctx *c, void *user)
{
        bowl *b = user;
        lg_tensor *loss = lg_full(c, LG_SHAPE_0D, b->calls < 40 ? 10 - 0.1 * b->calls : 100 - 0.5 * b->calls,
                                  .dtype = LG_F64, .requires_grad = true);
        b->calls++;
        return loss;
}

TEST_CASE(no_suggestion_beyond_the_lowest_loss)
{
        lg_ctx *c = open_ctx();
        bowl b;
        lg_lr_point p[100];
        int64_t n;
        lg_module *m = holder(c, &b, 1);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.3);
        const double found =
                lg_find_lr(m, opt, cliff_loss, &b, .stop = INFINITY, .smoothing = LG_ZERO, .curve = p, .count = &n);
        assert_ok(c);
        assert_int_equal(n, 100);
        assert_true(found >= p[10].lr && found <= p[39].lr);
        lg_close(c);
}

TEST_CASE(negative_losses_may_diverge_too)
{
        lg_ctx *c = open_ctx();
        bowl b;
        lg_module *m = holder(c, &b, 1);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.3, .maximize = true);
        lg_lr_point p[100];
        int64_t n;
        b.k = -1;
        assert_true(lg_find_lr(m, opt, bowl_loss, &b, .curve = p, .count = &n) == 0);
        assert_error(c, LG_ERR_STATE, "lg_find_lr: the loss did not fall at any rate from 6.");
        assert_true(n == 100 || p[n - 1].smoothed > 0 || p[n - 1].smoothed < p[0].smoothed);
        lg_close(c);
}

/* ---- what is no suggestion ---- */

TEST_CASE(losses_that_are_not_finite)
{
        lg_ctx *c = open_ctx();
        bowl b;
        lg_module *m = holder(c, &b, 1);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.3);
        const double bad[] = {NAN, INFINITY, -INFINITY};
        lg_lr_point p[100];
        for (int i = 0; i < 3; i++) {
                int64_t n = -1;
                b.calls = 0;
                b.bad_at = 1;
                b.bad = bad[i];
                assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .curve = p, .count = &n), LG_ERR_STATE,
                             "before the first step");
                assert_int_equal(n, 0);
                b.calls = 0;
                b.bad_at = 61;
                const double found = lg_find_lr(m, opt, bowl_loss, &b, .from = 1e-4, .curve = p, .count = &n);
                assert_ok(c);
                assert_int_equal(n, 60);
                assert_true(found > 1e-4 && found < p[59].lr);
                b.calls = 0;
                b.bad_at = 11;
                assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .curve = p, .count = &n), LG_ERR_STATE,
                             "lg_find_lr: the loss diverged after 10 steps, at a rate of 5.3");
                assert_int_equal(n, 10);
                assert_list(b.w, 0, 1, -2, 0.5);
        }
        lg_close(c);
}

TEST_CASE(a_loss_that_falls_nowhere)
{
        lg_ctx *c = open_ctx();
        bowl b;
        lg_module *m = holder(c, &b, 1);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.3);
        b.flat = true;
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b), LG_ERR_STATE, "did not fall at any rate");
        b.flat = false;
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .from = 3, .to = 1000), LG_ERR_STATE,
                     "the loss diverged after");
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        bowl b;
        lg_module *m = holder(c, &b, 1), *far = lg_nn_relu(other);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.3);
        lg_lr_point p[10];
        int64_t n;
        const lg_error_code bad = LG_ERR_ARGUMENT;
        assert_fails(c, lg_find_lr(NULL, opt, bowl_loss, &b), bad, "lg_find_lr: the module is NULL");
        assert_fails(c, lg_find_lr(far, opt, bowl_loss, &b), bad, "lg_find_lr: the module is of another context");
        assert_fails(c, lg_find_lr(m, opt, NULL, &b), bad, "lg_find_lr: fn is NULL");
        assert_fails(c, lg_find_lr(m, NULL, bowl_loss, &b), bad, "lg_find_lr: the optimiser is NULL");
        assert_true(lg_find_lr(NULL, NULL, bowl_loss, &b) == 0);
        lg_tensor *x = lg_zeros(other, LG_SHAPE(2), .device = lg_cpu());
        lg_loader *l = lg_loader_open(other, lg_dataset_tensors(other, x, x), 1);
        assert_ok(other);
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .loader = l), bad, "the loader is of another context");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .from = -1), bad, ".from is -1");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .from = LG_ZERO), bad, ".from is 0");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .from = 10), bad, ".from is 10 and .to is 10");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .from = NAN), bad, ".from is nan");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .to = INFINITY), bad, ".to is inf");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .to = -1), bad, ".to is -1");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .steps = 9), bad, ".steps is 9; it must be from 10");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .steps = -1), bad, ".steps is -1");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .steps = INT64_MAX), bad, ".steps is 9223372036854775807");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .smoothing = 1), bad, ".smoothing is 1");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .smoothing = NAN), bad, ".smoothing is nan");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .stop = 1), bad, ".stop is 1; it must be above 1");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .stop = NAN), bad, ".stop is nan");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .curve = p), bad, ".curve and .count are given together");
        assert_fails(c, lg_find_lr(m, opt, bowl_loss, &b, .count = &n), bad, ".curve and .count are given together");
        assert_int_equal(b.calls, 0);
        assert_true(lg_find_lr(m, opt, bowl_loss, &b, .steps = 10, .from = 1e-3, .to = 1, .curve = p, .count = &n) > 0);
        assert_int_equal(n, 10);
        lg_close(other);
        lg_close(c);
}

/* ---- everything is as before ---- */

typedef struct job {
        run *r;
        int calls, fail_at;
        lg_tensor *extra; /* another parameter of the optimiser, or NULL */
} job;

/* The loss of a batch with noise; it changes the training modes on the way. */
static lg_tensor *batch_loss(lg_ctx *c, void *user)
{
        job *j = user;
        lg_batch b;
        lg_train(j->r->net, ++j->calls % 3);
        if (j->calls == j->fail_at)
                return lg_set_error(c, LG_ERR_IO, "call %d fails", j->calls), NULL;
        if (!lg_loader_next(j->r->batches, &b) && !lg_loader_next(j->r->batches, &b))
                return NULL;
        lg_tensor *noisy = lg_add(b.x, lg_normal(c, 0, 0.1, lg_shape_of(b.x)));
        lg_tensor *loss = lg_cross_entropy(lg_forward(j->r->net, noisy), b.y);
        return j->extra ? lg_add(loss, lg_sum(lg_square(j->extra))) : loss;
}

/* A run that has ended an epoch after `epochs` of them, and has another optimiser if that is asked. */
static void begin_at_end(run *r, int epochs, int optimizer)
{
        lg_batch b;
        begin(r, 2, 0);
        if (optimizer) {
                lg_checkpoint_free(r->k);
                r->k = lg_checkpoint_new(r->c);
                r->opt = optimizer == 1   ? lg_sgd(r->c, lg_parameters(r->net), 0.01, .momentum = 0.9)
                         : optimizer == 2 ? lg_rmsprop(r->c, lg_parameters(r->net), 0.01)
                                          : lg_muon(r->c, lg_parameters(r->net), 0.01);
                r->rate = lg_one_cycle_lr(r->opt, 0.1, 100, .no_cycle_momentum = true);
                assert_true(lg_checkpoint_add(r->k, "model", r->net) && lg_checkpoint_add(r->k, "optimizer", r->opt) &&
                            lg_checkpoint_add(r->k, "rate", r->rate) && lg_checkpoint_add(r->k, "batches", r->batches));
        }
        steps(r, 3 * epochs);
        if (epochs)
                assert_false(lg_loader_next(r->batches, &b));
        lg_train(lg_child(r->net, 1), false);
}

static void check_modes(const run *r)
{
        assert_true(lg_is_training(r->net) && lg_is_training(lg_child(r->net, 4)));
        assert_false(lg_is_training(lg_child(r->net, 1)));
}

/* A training after the test has the bits of one without it. */
TEST_CASE_WITH(training_after_it_has_the_same_bits, prepare, remove_folder)
{
        for (int optimizer = 0; optimizer < 4; optimizer++)
                for (int epochs = 0; epochs < 3; epochs += 2) {
                        run r;
                        begin_at_end(&r, epochs, optimizer);
                        contents before = state_of(&r);
                        steps(&r, 4);
                        contents later = state_of(&r);
                        end(&r);
                        for (int fail_at = 0; fail_at < 30; fail_at += 13) {
                                begin_at_end(&r, epochs, optimizer);
                                job j = {.r = &r, .fail_at = fail_at};
                                const int64_t live = lg_live_tensors(r.c);
                                const double found = lg_find_lr(r.net, r.opt, batch_loss, &j, .steps = 40, .from = 1e-5,
                                                                .to = 3, .loader = r.batches);
                                if (fail_at)
                                        assert_error(r.c, LG_ERR_IO, "call");
                                assert_ok(r.c);
                                assert_true((found > 0) == !fail_at);
                                assert_true(j.calls > 12);
                                assert_true(!epochs || lg_live_tensors(r.c) == live);
                                check_modes(&r);
                                assert_state(&r, before, "lg_find_lr", fail_at);
                                steps(&r, 4);
                                assert_state(&r, later, "steps after lg_find_lr", fail_at);
                                end(&r);
                        }
                        free(before.data);
                        free(later.data);
                }
}

/* Also in the middle of an epoch, after a checkpoint. */
TEST_CASE_WITH(a_loader_goes_on_where_it_was, prepare, remove_folder)
{
        run r;
        begin(&r, 2, 4);
        contents before = state_of(&r);
        steps(&r, 4);
        contents later = state_of(&r);
        end(&r);
        begin(&r, 5, 0);
        put_file(at("w"), before.data, before.bytes);
        assert_true(lg_checkpoint_load(r.k, at("w")));
        job j = {.r = &r};
        assert_true(lg_find_lr(r.net, r.opt, batch_loss, &j, .from = 1e-4, .loader = r.batches) > 0);
        assert_state(&r, before, "lg_find_lr", 0);
        steps(&r, 4);
        assert_state(&r, later, "steps after lg_find_lr", 0);
        end(&r);
        free(before.data);
        free(later.data);
}

TEST_CASE_WITH(gradients_and_other_parameters_stay, prepare, remove_folder)
{
        run r;
        begin_at_end(&r, 1, 0);
        lg_list all = lg_parameters(r.net);
        job j = {.r = &r, .extra = lg_full(r.c, LG_SHAPE(2), 3, .requires_grad = true)};
        lg_tensor *outside = lg_ones(r.c, LG_SHAPE(2), .requires_grad = true);
        assert_true(lg_add_param_group(r.opt, LG_LIST(j.extra), .lr = 0.5));
        lg_tensor *grads[8];
        double was[8][64], now[64];
        lg_clear_grad(all.items[0]);
        lg_backward(lg_sum(lg_square(j.extra)));
        lg_backward(lg_sum(lg_mul(outside, outside)));
        for (int64_t i = 0; i < all.count; i++) {
                grads[i] = lg_grad_of(all.items[i]);
                assert_true(!grads[i] == !i);
                if (grads[i])
                        read_all(grads[i], was[i], 64);
        }
        lg_set_param_group_lr(r.opt, 0, 0.125);
        assert_true(lg_find_lr(r.net, r.opt, batch_loss, &j, .from = 1e-4, .loader = r.batches) > 0);
        for (int64_t i = 0; i < all.count; i++) {
                assert_ptr_equal(lg_grad_of(all.items[i]), grads[i]);
                if (grads[i] && read_all(grads[i], now, 64))
                        assert_memory_equal(now, was[i], (size_t)lg_numel(grads[i]) * sizeof *now);
        }
        assert_list(j.extra, 0, 3, 3);
        assert_list(lg_grad_of(j.extra), 0, 6, 6);
        assert_list(lg_grad_of(outside), 0, 2, 2);
        assert_near(lg_param_group_lr(r.opt, 0), 0.125, 0);
        assert_near(lg_param_group_lr(r.opt, 1), 0.5, 0);
        end(&r);
}

/* Masters of 16-bit parameters, too. */
TEST_CASE(masters_stay)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w[2];
        double got[2][3];
        for (int tested = 0; tested < 2; tested++) {
                bowl b = {.w = lg_full(c, LG_SHAPE(3), 1, .dtype = LG_BF16, .requires_grad = true), .k = 0.1};
                lg_module *m = lg_nn_module(c, "None");
                lg_optimizer *opt = lg_adam(c, LG_LIST(b.w), 1e-3, .master = true);
                w[tested] = b.w;
                for (int i = 0; i < 6; i++) {
                        assert_true(lg_step_closure(opt, bowl_loss, &b, NULL));
                        if (tested && i == 3)
                                assert_true(lg_find_lr(m, opt, bowl_loss, &b, .from = 1e-4) > 0);
                }
                assert_ok(c);
                read_all(w[tested], got[tested], 3);
        }
        assert_memory_equal(got[0], got[1], sizeof got[0]);
        lg_close(c);
}

static lg_tensor *fitted(lg_ctx *c, void *user)
{
        lg_tensor *y = lg_forward(user, lg_from(c, ((float[]){1, 2, 3, 5, 4, 1}), LG_SHAPE(3, 2)));
        return lg_mean(lg_square(lg_sub_scalar(y, 1)));
}

TEST_CASE(with_lbfgs)
{
        double was[2], now[2], loss[2];
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_linear(c, 2, 1);
        lg_optimizer *opt = lg_lbfgs(c, lg_parameters(net), 0.5, .max_iter = 2);
        lg_step_closure(opt, fitted, net, NULL);
        lg_module *twin = lg_module_clone(net);
        read_all(lg_parameter(net, "weight"), was, 2);
        lg_find_lr(net, opt, fitted, net, .from = 1e-3, .to = 2, .steps = 20);
        lg_clear_error(c); /* it may find no descent */
        read_all(lg_parameter(net, "weight"), now, 2);
        assert_memory_equal(was, now, sizeof was);
        assert_true(lg_step_closure(opt, fitted, net, &loss[0]));
        assert_near(loss[0], lg_item(fitted(c, twin)), 0);
        lg_close(c);
}

/* ---- failures and misuse ---- */

TEST_CASE_WITH(whichever_allocation_fails, prepare, remove_folder)
{
        run r;
        begin_at_end(&r, 1, 0);
        contents before = state_of(&r);
        const int64_t live = lg_live_tensors(r.c);
        int64_t n = 0;
        for (bool done = false; !done;) {
                job j = {.r = &r};
                lg_empty_cache(r.c);
                arm(&r.f, ++n, false);
                done = lg_find_lr(r.net, r.opt, batch_loss, &j, .from = 1e-3, .to = 1, .steps = 20,
                                  .smoothing = LG_ZERO, .loader = r.batches) > 0;
                arm(&r.f, 0, false);
                if (!done)
                        assert_error(r.c, LG_ERR_MEMORY, "memory");
                assert_int_equal(lg_live_tensors(r.c), live);
                check_modes(&r);
                assert_state(&r, before, "lg_find_lr", n);
        }
        assert_true(n > 10);
        free(before.data);
        end(&r);
}

typedef enum misuse {
        FREE_LOADER,
        FREE_PARAMETER,
        REPLACE_PARAMETER,
        ADD_GROUP,
        STEP,
        NESTED,
        FREE_OPTIMIZER,
        FREE_MODULE,
        UNPARAMETRIZE,
        NOTHING,
        MISUSES
} misuse;

typedef struct misuser {
        job j;
        misuse what;
} misuser;

static lg_tensor *misused(lg_ctx *c, void *user)
{
        misuser *m = user;
        run *r = m->j.r;
        lg_tensor *loss = m->what == NOTHING && m->j.calls == 5 ? NULL : batch_loss(c, &m->j);
        if (m->j.calls != 5)
                return loss;
        switch (m->what) {
        case FREE_LOADER:
                lg_loader_close(r->batches);
                r->batches = NULL;
                break;
        case REPLACE_PARAMETER:
        case FREE_PARAMETER:
                lg_free(m->j.extra);
                m->j.extra = NULL;
                if (m->what == REPLACE_PARAMETER)
                        lg_keep(lg_full(c, LG_SHAPE(5), 7, .requires_grad = true));
                break;
        case ADD_GROUP:
                lg_add_param_group(r->opt, LG_LIST(lg_keep(lg_ones(c, LG_SHAPE(2), .requires_grad = true))));
                break;
        case STEP:
                lg_step_closure(r->opt, batch_loss, &m->j, NULL);
                break;
        case NESTED:
                lg_find_lr(r->net, r->opt, batch_loss, &m->j);
                break;
        case FREE_OPTIMIZER:
                lg_optimizer_free(r->opt);
                break;
        case FREE_MODULE:
                lg_module_free(r->net);
                break;
        case UNPARAMETRIZE:
                lg_remove_parametrizations(lg_child(r->net, 0), "weight");
                break;
        default:
                break;
        }
        return loss;
}

TEST_CASE_WITH(a_function_that_does_wrong, prepare, remove_folder)
{
        static const char *const texts[MISUSES] = {
                "lg_find_lr: the loss was freed",
                "lg_find_lr: parameter 4 of lg_adam was freed",
                "lg_find_lr: parameter 4 of lg_adam was freed",
                "lg_add_param_group: lg_find_lr() tests the optimiser",
                "lg_step_closure: a step of the optimiser has not returned",
                "lg_find_lr: a step of the optimiser has not returned",
                "lg_optimizer_free: a call that uses the optimiser has not returned",
                "lg_module_free: ",
                "lg_remove_parametrizations: the Conv2d is running",
                "lg_find_lr: the function returned NULL without an error",
        };
        for (int what = 0; what < MISUSES; what++) {
                run r;
                begin(&r, 2, 0);
                if (what == UNPARAMETRIZE)
                        assert_true(lg_parametrize(lg_child(r.net, 0), "weight", lg_nn_tanh(r.c)));
                misuser m = {{.r = &r, .extra = lg_full(r.c, LG_SHAPE(2), 3, .requires_grad = true)}, (misuse)what};
                lg_list all = lg_parameters(r.net);
                lg_optimizer *opt = r.opt = lg_adam(r.c, lg_parameters(r.net), 0.01);
                assert_true(lg_add_param_group(opt, LG_LIST(m.j.extra)));
                double was[64], now[64];
                read_all(all.items[2], was, 64);
                assert_true(lg_find_lr(r.net, r.opt, misused, &m, .from = 1e-3, .loader = r.batches) == 0);
                if (!lg_error(r.c) || !strstr(lg_error(r.c), texts[what]))
                        fail_msg("%d: \"%s\", not \"%s\"", what, lg_error(r.c) ? lg_error(r.c) : "none", texts[what]);
                lg_clear_error(r.c);
                read_all(all.items[2], now, 64);
                assert_memory_equal(was, now, sizeof was[0] * (size_t)lg_numel(all.items[2]));
                assert_near(lg_lr(opt), 0.01, 0);
                end(&r);
        }
}

/* A loader inside its own step cannot give other batches; the step goes on. */
TEST_CASE_WITH(inside_a_step_of_the_loader, prepare, remove_folder)
{
        run r;
        lg_batch b;
        begin(&r, 2, 0);
        assert_true(lg_loader_next(r.batches, &b));
        job j = {.r = &r};
        assert_fails(r.c, lg_find_lr(r.net, r.opt, batch_loss, &j, .loader = r.batches), LG_ERR_STATE,
                     "a call that began inside this loader's step has not returned");
        assert_int_equal(lg_size_of(b.x, 0), 4);
        for (int i = 1; i < 3; i++)
                assert_true(lg_loader_next(r.batches, &b) && b.index == i);
        assert_false(lg_loader_next(r.batches, &b));
        assert_ok(r.c);
        end(&r);
}
