/* test_graph.c - backward, lg_grad, higher orders, hooks, retained gradients, no_grad, detach. */
#include "test.h"

static lg_tensor *leaf(lg_ctx *c, double value)
{
        return lg_scalar(c, value, .dtype = LG_F64, .requires_grad = true);
}

TEST_CASE(leaves_accumulate)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 3);
        assert_true(lg_is_leaf(x) && lg_requires_grad(x));
        assert_null(lg_grad_of(x));
        lg_backward(lg_square(x));
        assert_near(lg_item(lg_grad_of(x)), 6, 0);
        lg_backward(lg_mul_scalar(x, 5));
        assert_near(lg_item(lg_grad_of(x)), 11, 0);
        assert_true(lg_clear_grad(x));
        assert_null(lg_grad_of(x));
        lg_backward(lg_exp(x));
        assert_near(lg_item(lg_grad_of(x)), exp(3), 1e-12);
        assert_false(lg_requires_grad(lg_grad_of(x)));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(gradients_of_vectors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 3}), LG_SHAPE(3), .requires_grad = true), *y = lg_square(x);
        assert_false(lg_backward(y)); /* three elements and no gradient given */
        assert_error(c, LG_ERR_SHAPE, "backward");
        assert_false(lg_backward(y, .grad = lg_ones(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_SHAPE, "backward");
        assert_true(lg_backward(y, .grad = lg_from(c, ((float[]){1, 10, 100}), LG_SHAPE(3))));
        assert_list(lg_grad_of(x), 0, 2, 40, 600);
        assert_false(lg_backward(lg_ones(c, LG_SHAPE(1)))); /* needs no gradient */
        assert_error(c, LG_ERR_STATE, "backward");
        lg_close(c);
}

TEST_CASE(lg_grad_accumulates_nowhere)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 2), *w = leaf(c, 5), *unused = leaf(c, 1);
        lg_tensor *h = lg_mul(x, w), *y = lg_square(h), *z = lg_exp(x), *r[4];
        lg_tensor *same[] = {x, w}; /* the array of inputs gets the results */
        assert_non_null(lg_grad(LG_LIST(y, z), LG_LIST_OF(2, same), .result = same, .retain_graph = true));
        assert_near(lg_item(same[1]), 40, 0);
        assert_non_null(lg_grad(LG_LIST(y, z), LG_LIST(x, h, w, unused), .result = r, .retain_graph = true));
        assert_ok(c);
        assert_near(lg_item(r[0]), 2 * 10 * 5 + exp(2), 1e-12);
        assert_near(lg_item(r[1]), 20, 0); /* by an inner tensor */
        assert_near(lg_item(r[2]), 40, 0);
        assert_null(r[3]);
        assert_null(lg_grad_of(x));
        assert_null(lg_grad_of(w));
        lg_tensor *two = lg_scalar(c, 2, .dtype = LG_F64), *three = lg_scalar(c, 3, .dtype = LG_F64);
        lg_tensor *g = lg_grad(LG_LIST(y, z), LG_LIST(x), .grads = LG_LIST(two, three));
        assert_near(lg_item(g), 200 + 3 * exp(2), 1e-12);
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x))); /* the graph is gone now */
        assert_error(c, LG_ERR_STATE, "retain_graph");
        lg_grad(LG_LIST(lg_square(x)), LG_LIST(lg_scalar(c, 1)));
        assert_error(c, LG_ERR_STATE, "");
        lg_close(c);
}

TEST_CASE(higher_orders)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 0.7), *y = lg_mul(lg_sin(x), lg_exp(x));
        double e = exp(0.7), s = sin(0.7), k = cos(0.7);
        const double wanted[] = {e * (s + k), 2 * e * k, 2 * e * (k - s), -4 * e * s, -4 * e * (s + k)};
        for (int order = 0; order < 5; order++) {
                y = lg_grad(LG_LIST(y), LG_LIST(x), .create_graph = true);
                assert_ok(c);
                assert_near(lg_item(y), wanted[order], 1e-11);
        }
        /* a gradient penalty: d/dw of (d(w x^2)/dx)^2 = 8 w x^2 */
        lg_tensor *w = leaf(c, 3), *z = lg_mul(w, lg_square(x));
        lg_tensor *g = lg_grad(LG_LIST(z), LG_LIST(x), .create_graph = true);
        lg_backward(lg_square(g));
        assert_near(lg_item(lg_grad_of(w)), 8 * 3 * 0.49, 1e-12);
        assert_near(lg_item(lg_grad_of(x)), 8 * 9 * 0.7, 1e-12);
        lg_clear_grad(x);
        lg_backward(lg_mul(lg_square(x), x), .create_graph = true);
        assert_true(lg_requires_grad(lg_grad_of(x)));
        assert_near(lg_item(lg_grad(LG_LIST(lg_grad_of(x)), LG_LIST(x))), 6 * 0.7, 1e-12);
        lg_clear_grad(x); /* a gradient with a graph holds the leaf it belongs to */
        assert_ok(c);
        lg_close(c);
}

/* d/dx of what two backward calls added to the gradient of x. */
TEST_CASE(gradients_with_a_graph_accumulate)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 2);
        assert_true(lg_backward(lg_mul(lg_square(x), x), .create_graph = true));
        assert_true(lg_backward(lg_square(x), .create_graph = true));
        assert_near(lg_item(lg_grad_of(x)), 16, 0); /* 3 x^2 + 2 x */
        assert_near(lg_item(lg_grad(LG_LIST(lg_grad_of(x)), LG_LIST(x), .retain_graph = true)), 14, 0); /* 6 x + 2 */
        assert_true(lg_backward(lg_exp(x)));
        assert_near(lg_item(lg_grad_of(x)), 16 + exp(2), 1e-12);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(recording_can_be_off)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 3), *y = NULL;
        lg_no_grad(c)
        {
                y = lg_square(x);
                lg_no_grad(c) drop(lg_exp(x));
                assert_false(lg_requires_grad(lg_exp(x)));
        }
        assert_false(lg_requires_grad(y));
        assert_true(lg_requires_grad(lg_square(x)));
        bool was = lg_set_grad_mode(c, false);
        assert_true(was);
        assert_false(lg_set_grad_mode(c, was));
        lg_tensor *d = lg_detach(lg_square(x));
        assert_false(lg_requires_grad(d));
        assert_near(lg_item(d), 9, 0);
        lg_backward(lg_mul(d, x));
        assert_near(lg_item(lg_grad_of(x)), 9, 0);
        lg_set_requires_grad(lg_square(x), false);
        assert_error(c, LG_ERR_STATE, "leaf");
        lg_set_requires_grad(lg_ones(c, LG_SHAPE(1), .dtype = LG_I32), true);
        assert_error(c, LG_ERR_DTYPE, "lg_set_requires_grad");
        lg_set_requires_grad(x, false);
        assert_false(lg_requires_grad(lg_square(x)));
        lg_close(c);
}

TEST_CASE(inner_gradients_on_request)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 2), *h = lg_square(x), *k = lg_exp(x), *y = lg_mul(h, k);
        assert_ptr_equal(lg_retain_grad(h), h);
        lg_backward(y);
        assert_near(lg_item(lg_grad_of(h)), exp(2), 1e-12);
        assert_null(lg_grad_of(k));
        lg_retain_grad(lg_scalar(c, 1));
        assert_error(c, LG_ERR_STATE, "lg_retain_grad");
        lg_close(c);
}

static lg_tensor *count(lg_tensor *g, void *user)
{
        *(double *)user += lg_item(g);
        return NULL;
}

static lg_tensor *tenfold(lg_tensor *g, void *user)
{
        (void)user;
        return lg_mul_scalar(g, 10);
}

static lg_tensor *bad(lg_tensor *g, void *user)
{
        (void)user;
        lg_set_error(lg_ctx_of(g), LG_ERR_IO, "the hook failed");
        return NULL;
}

TEST_CASE(hooks)
{
        lg_ctx *c = open_ctx();
        double seen = 0, leaf_seen = 0;
        lg_tensor *x = leaf(c, 2), *h = lg_square(x), *y = lg_add(lg_mul_scalar(h, 3), lg_mul_scalar(h, 4));
        assert_true(lg_hook(h, count, &seen));
        assert_true(lg_hook(h, tenfold, NULL));
        assert_true(lg_hook(x, count, &leaf_seen));
        lg_backward(y);
        assert_ok(c);
        assert_near(seen, 7, 0); /* once, with the whole sum */
        assert_near(leaf_seen, 280, 0);
        assert_near(lg_item(lg_grad_of(x)), 280, 0);
        h = lg_square(x);
        lg_hook(h, bad, NULL);
        assert_false(lg_backward(h));
        assert_error(c, LG_ERR_IO, "the hook failed");
        lg_hook(x, NULL, NULL);
        assert_error(c, LG_ERR_ARGUMENT, "lg_hook");
        lg_close(c);
}

/* Removes itself, and the hook after it, which then does not run either. */
static lg_tensor *once(lg_tensor *g, void *user)
{
        lg_tensor *x = user;
        assert_true(lg_unhook(x, once, x));
        assert_true(lg_unhook(x, tenfold, NULL));
        return lg_mul_scalar(g, 2);
}

TEST_CASE(hooks_are_removed)
{
        lg_ctx *c = open_ctx();
        double seen = 0;
        lg_tensor *x = leaf(c, 1);
        assert_false(lg_unhook(x, tenfold, NULL)); /* there is none */
        for (int i = 0; i < 3; i++)
                assert_true(lg_hook(x, tenfold, NULL));
        assert_true(lg_hook(x, count, &seen));
        assert_false(lg_unhook(x, count, NULL)); /* of another user */
        assert_true(lg_unhook(x, tenfold, NULL));
        lg_backward(lg_mul_scalar(x, 1));
        assert_near(lg_item(lg_grad_of(x)), 100, 0);
        assert_near(seen, 100, 0);
        assert_true(lg_unhook(x, count, &seen) && lg_unhook(x, tenfold, NULL) && lg_unhook(x, tenfold, NULL));
        assert_false(lg_unhook(x, tenfold, NULL));
        assert_true(lg_hook(x, once, x) && lg_hook(x, tenfold, NULL));
        lg_clear_grad(x);
        lg_backward(lg_mul_scalar(x, 1));
        assert_near(lg_item(lg_grad_of(x)), 2, 0);
        lg_backward(lg_mul_scalar(x, 1));
        assert_near(lg_item(lg_grad_of(x)), 3, 0);
        assert_false(lg_unhook(lg_ones(c, LG_SHAPE(1)), tenfold, NULL));
        assert_ok(c);
        assert_false(lg_unhook(x, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_unhook: fn is NULL");
        assert_false(lg_unhook(NULL, tenfold, NULL));
        lg_close(c);
}

/* Gradients do not depend on the order in which branches were recorded. */
TEST_CASE(a_diamond_of_many_paths)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 1), *y = x;
        for (int i = 0; i < 40; i++)
                y = lg_add(y, y); /* 2^40 paths, visited once each */
        lg_backward(y);
        assert_near(lg_item(lg_grad_of(x)), 0x1p40, 0);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *give(lg_tensor *grad, void *user)
{
        (void)grad;
        return user;
}

TEST_CASE(refused_lists_and_hooks)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_list none = {2, NULL};
        lg_tensor *x = leaf(c, 2);
        assert_null(lg_cat(none, 0));
        assert_null(lg_grad(LG_LIST(x), none));
        assert_error(c, LG_ERR_ARGUMENT, "inputs is empty");
        lg_hook(x, give, lg_scalar(other, 1));
        assert_false(lg_backward(lg_square(x)));
        assert_error(c, LG_ERR_ARGUMENT, "another context");
        lg_tensor *y = leaf(c, 3);
        lg_hook(y, give, lg_ones(c, LG_SHAPE(7)));
        assert_false(lg_backward(lg_square(y)));
        assert_error(c, LG_ERR_SHAPE, "lg_hook");
        lg_close(other);
        lg_close(c);
}

TEST_CASE(tensors_of_two_contexts)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_tensor *x = leaf(c, 2), *y = lg_square(x), *theirs = leaf(other, 3), *of_theirs = lg_square(theirs);
        lg_tensor *r[2] = {x, x};
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x, theirs), .result = r));
        assert_error(c, LG_ERR_ARGUMENT, "input 1 belongs to another context");
        assert_true(!r[0] && !r[1]);
        assert_null(lg_grad(LG_LIST(y, of_theirs), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "output belongs to another context");
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(lg_scalar(other, 1, .dtype = LG_F64))));
        assert_error(c, LG_ERR_ARGUMENT, "grad belongs to another context");
        assert_false(lg_backward(y, .grad = lg_scalar(other, 1)));
        assert_error(c, LG_ERR_ARGUMENT, "grad belongs to another context");
        /* a dead one is told where the call was */
        lg_free(of_theirs);
        assert_null(lg_grad(LG_LIST(y, of_theirs), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "another context");
        assert_ok(other);
        assert_true(lg_backward(y));
        assert_list(lg_grad_of(x), 0, 4);
        lg_close(other);
        lg_close(c);
}

TEST_CASE(refused_gradients_and_results_of_a_failure)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 2), *y = lg_square(x), *z = lg_square(leaf(c, 1)), *r[2];
        lg_device second = lg_parse_device(c, "shadow:1");
        lg_list none = {1, NULL}, fewer = {-1, LG_LIST(x).items};
        assert_false(lg_backward(y, .grad = lg_ones(c, LG_SHAPE(3))));
        assert_error(c, LG_ERR_SHAPE, "(3,)");
        assert_false(lg_backward(y, .grad = lg_scalar(c, 1, .device = second)));
        assert_error(c, LG_ERR_DEVICE, "shadow:1");
        assert_false(lg_backward(NULL, .grad = x));
        assert_error(c, LG_ERR_ARGUMENT, "loss is NULL");
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x), .grads = none));
        assert_error(c, LG_ERR_ARGUMENT, ".grads");
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x), .grads = fewer));
        assert_error(c, LG_ERR_ARGUMENT, ".grads");
        assert_null(lg_grad(none, LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "outputs is empty");
        assert_null(lg_grad(LG_LIST(y), fewer, .result = r));
        assert_error(c, LG_ERR_ARGUMENT, "inputs is empty");
        assert_null(lg_grad(none, none));
        assert_ok(c);
        r[0] = r[1] = y;
        lg_free(z);
        assert_null(lg_grad(LG_LIST(y, z), LG_LIST(x, x), .result = r)); /* fails on the way */
        assert_error(c, LG_ERR_STATE, "the output was freed");
        assert_true(!r[0] && !r[1]);
        r[0] = r[1] = y;
        lg_set_error(c, LG_ERR_IO, "before");
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x, x), .result = r));
        assert_error(c, LG_ERR_IO, "before");
        assert_true(!r[0] && !r[1]);
        assert_list(lg_grad(LG_LIST(y), LG_LIST(x)), 0, 4);
        lg_close(c);
}

static lg_tensor *free_user(lg_tensor *grad, void *user)
{
        (void)grad;
        lg_free(user);
        return NULL;
}

static lg_tensor *turn_off(lg_tensor *grad, void *user)
{
        (void)grad;
        lg_set_requires_grad(user, false);
        return NULL;
}

/* A gradient that has a graph leads back to its leaf: kept for a leaf that is gone it would live as long as the
 * context. */
TEST_CASE(leaves_that_go_while_gradients_flow)
{
        lg_ctx *c = open_ctx();
        int64_t live = lg_live_tensors(c);
        for (int i = 0; i < 8; i++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *x = leaf(c, 2), *y = lg_mul(lg_square(x), x);
                lg_hook(i & 1 ? x : y, i & 2 ? turn_off : free_user, x);
                assert_true(lg_backward(y, .create_graph = i & 4));
                assert_null(lg_grad_of(x));
                lg_scope_end(c, s);
                assert_int_equal(lg_live_tensors(c), live);
        }
        lg_close(c);
}

static int added;

static lg_tensor *add_hook(lg_tensor *grad, void *user)
{
        (void)grad;
        if (++added < 1000)
                lg_hook(user, add_hook, user);
        return NULL;
}

/* A hook that is added by a hook waits for the next gradient. */
TEST_CASE(a_hook_that_adds_hooks_ends)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2), .requires_grad = true);
        added = 0;
        lg_hook(x, add_hook, x);
        for (int i = 1; i <= 4; i++) {
                assert_true(lg_backward(lg_sum(x)));
                assert_int_equal(added, (1 << i) - 1);
        }
        assert_list(lg_grad_of(x), 0, 4, 4);
        lg_close(c);
}

static intptr_t in_order;

static lg_tensor *count_in_order(lg_tensor *grad, void *user)
{
        (void)grad;
        in_order += (intptr_t)user == in_order;
        return NULL;
}

/* Where each walked along those before it, this would take ten seconds. */
TEST_CASE(hooks_in_great_numbers)
{
        enum { HOOKS = 100000 };
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(1), .requires_grad = true);
        in_order = 0;
        for (intptr_t i = 0; i < HOOKS; i++)
                assert_true(lg_hook(x, count_in_order, (void *)i));
        assert_true(lg_backward(lg_sum(x)));
        assert_int_equal(in_order, HOOKS);
        lg_close(c);
}

/* What a backward takes of memory at most, in units of 2^18 f32. */
static double backward_takes(lg_ctx *c, lg_tensor *loss)
{
        const lg_device d = test_device(c);
        const int64_t before = lg_memory_stats(c, d).used;
        lg_reset_peak_memory(c, d);
        assert_true(lg_backward(loss));
        return (double)(lg_memory_stats(c, d).peak - before) / ((1 << 18) * sizeof(float));
}

TEST_CASE(gradients_that_nobody_sees_change_in_place)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_set_requires_grad(lg_full(c, LG_SHAPE(4096, 64), 0.5), true);
        assert_true(backward_takes(c, lg_sum(lg_tanh(lg_tanh(lg_tanh(x))))) < 1.5);
        lg_tensor *y = lg_tanh(x), *z = lg_tanh(lg_retain_grad(y));
        assert_true(backward_takes(c, lg_sum(lg_tanh(z))) > 1.5); /* y's is kept */
        const double dz = 1 - pow(tanh(tanh(tanh(0.5))), 2), dy = dz * (1 - pow(tanh(tanh(0.5)), 2));
        assert_near(lg_item(lg_mean(lg_grad_of(y))), dy, 1e-6);
        assert_near(lg_item(lg_mean(lg_grad_of(x))), 2 * dy * (1 - pow(tanh(0.5), 2)), 1e-6);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 64, 64), lg_nn_relu(c));
        lg_freeze(net, true);
        lg_tensor *w = lg_tanh(lg_forward(net, lg_set_requires_grad(lg_full(c, LG_SHAPE(4096, 64), 1), true)));
        assert_true(backward_takes(c, lg_sum(w)) < 2.5);
        assert_ok(c);
        lg_close(c);
}

/* Two backward calls over halves of a batch give the gradient of the whole. */
TEST_CASE(gradients_add_up)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4, .dtype = LG_F64), lg_nn_tanh(c),
                                          lg_nn_linear(c, 4, 2, .dtype = LG_F64));
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, 3), .dtype = LG_F64), *w = lg_parameter(net, "0.weight");
        double whole[12];
        lg_backward(lg_mean(lg_square(lg_forward(net, x))));
        read_all(lg_grad_of(w), whole, 12);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
        assert_true(lg_zero_grad(opt));
        for (int i = 0; i < 2; i++) {
                lg_tensor *half = lg_slice(x, 0, 3 * i, 3 * i + 3);
                lg_backward(lg_div_scalar(lg_mean(lg_square(lg_forward(net, half))), 2));
        }
        assert_values(lg_grad_of(w), whole, 12, 1e-14);
        assert_ok(c);
        lg_close(c);
}
