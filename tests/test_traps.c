/* test_traps.c - what other frameworks fell into: shared intermediates, deep graphs, lost scopes, wrong blame. */
#include <pthread.h>
#include "test.h"

static lg_tensor *leaf(lg_ctx *c, double value)
{
        return lg_scalar(c, value, .requires_grad = true);
}

TEST_CASE(a_shared_intermediate_counts_twice)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 3), *y = lg_mul(x, x), *z = lg_add(y, y);
        lg_backward(z);
        assert_near(lg_item(lg_grad_of(x)), 12, 0);
        lg_close(c);
}

TEST_CASE(a_second_loss_gets_its_own_gradient)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 3), *h = lg_mul(x, x);
        lg_backward(lg_mul_scalar(h, 5), .retain_graph = true);
        assert_near(lg_item(lg_grad_of(x)), 30, 0);
        lg_clear_grad(x);
        lg_backward(lg_mul_scalar(h, 7));
        assert_near(lg_item(lg_grad_of(x)), 42, 0);
        assert_ok(c);
        lg_close(c);
}

/* ---- a chain of a million ops on a small stack ---- */

#define CHAIN (SANITIZED ? 100000 : 1000000)

static void *run_chain(void *user)
{
        char *problem = user;
        lg_ctx *c = lg_open(.threads = 1);
        const char *name = getenv("LG_TEST_DEVICE");
        lg_set_default_device(c, lg_parse_device(c, name ? name : "cpu"));
        lg_tensor *x = leaf(c, 3), *y = x;
        int64_t live = lg_live_tensors(c);
        for (int i = 0; i < CHAIN && y; i++) {
                lg_tensor *next = i % 2 ? lg_neg(y) : lg_reshape(y, i % 4 ? LG_SHAPE_0D : LG_SHAPE(1));
                if (y != x)
                        lg_free(y);
                y = next;
        }
        lg_backward(y, .retain_graph = true); /* so that the whole graph is there to be freed */
        double g = lg_item(lg_grad_of(x));
        if (lg_error(c))
                snprintf(problem, 200, "%s", lg_error(c));
        else if (g != 1)
                snprintf(problem, 200, "the gradient is %g", g);
        lg_free(y);
        if (lg_live_tensors(c) > live + 1)
                snprintf(problem, 200, "%lld tensors are left", (long long)lg_live_tensors(c));
        lg_close(c);
        return NULL;
}

TEST_CASE(a_million_ops_on_a_small_stack)
{
        pthread_attr_t attr;
        pthread_t thread;
        char problem[200] = "";
        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
        assert_int_equal(pthread_create(&thread, &attr, run_chain, problem), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attr);
        assert_string_equal(problem, "");
}

static void visit_nothing(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)path, (void)t, (void)is_buffer, (void)user;
}

/* All that recurses over modules, over the deepest tree that there can be. */
static void *run_nested(void *user)
{
        char *problem = user;
        lg_ctx *c = lg_open(.threads = 1);
        const char *name = getenv("LG_TEST_DEVICE");
        lg_device d = lg_set_default_device(c, lg_parse_device(c, name ? name : "cpu"));
        lg_module *m = lg_nn_linear(c, 2, 2), *net = m;
        while (m && (m = lg_nn_sequential(c, m)))
                net = m;
        lg_clear_error(c);
        FILE *f = tmpfile();
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 2));
        lg_train(net, false);
        bool ok = lg_backward(lg_sum(lg_forward(net, x))) && lg_module_to(net, d) &&
                  lg_module_print(f, net, .input = LG_SHAPE(1, 2)) &&
                  lg_module_print_memory(f, net, .input = LG_SHAPE(1, 2)) && lg_each_tensor(net, visit_nothing, NULL) &&
                  lg_parameter_numel(net) == 6 && lg_parameters_matching(net, "*.bias").count == 1;
        lg_module_free(net);
        fclose(f);
        if (!ok || lg_error(c))
                snprintf(problem, 200, "%s", lg_error(c) ? lg_error(c) : "a result is wrong");
        lg_close(c);
        return NULL;
}

TEST_CASE(the_deepest_modules_on_a_small_stack)
{
        pthread_attr_t attr;
        pthread_t thread;
        char problem[200] = "";
        pthread_attr_init(&attr);
        assert_int_equal(pthread_attr_setstacksize(&attr, 512 * 1024), 0);
        assert_int_equal(pthread_create(&thread, &attr, run_nested, problem), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attr);
        assert_string_equal(problem, "");
}

TEST_CASE(a_leaf_used_a_thousand_times)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 2), *sum = lg_scalar(c, 0);
        for (int i = 1; i <= 1000; i++)
                sum = lg_add(sum, lg_mul_scalar(x, i));
        lg_backward(sum);
        assert_near(lg_item(lg_grad_of(x)), 500500, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(backward_twice_is_an_error)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = leaf(c, 2), *y = lg_exp(x);
        assert_true(lg_backward(y));
        assert_false(lg_backward(y));
        assert_error(c, LG_ERR_STATE, "retain_graph");
        y = lg_exp(x);
        assert_true(lg_backward(y, .retain_graph = true));
        assert_true(lg_backward(y));
        assert_near(lg_item(lg_grad_of(x)), 3 * exp(2), 1e-4);
        lg_close(c);
}

TEST_CASE(a_changed_value_is_told_with_op_and_tensor)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 5), .requires_grad = true), *k = lg_ones(c, LG_SHAPE(2, 5));
        lg_tensor *y = lg_sum(lg_mul(x, k));
        lg_add_(k, k);
        assert_false(lg_backward(y));
        assert_non_null(strstr(lg_error(c), "mul"));
        assert_non_null(strstr(lg_error(c), "saved b"));
        assert_error(c, LG_ERR_STATE, "(2, 5)");
        assert_null(lg_grad_of(x));
        lg_close(c);
}

/* ---- loops ---- */

/* Rows 0 ... n-1 with labels 100 ... */
static lg_dataset *rows(lg_ctx *c, int n, double first)
{
        lg_tensor *x = lg_unsqueeze(lg_arange(c, first, first + n, 1, .dtype = LG_F32, .device = lg_cpu()), 1);
        return lg_dataset_tensors(c, lg_contiguous(x), lg_arange(c, 0, n, 1, .device = lg_cpu()));
}

TEST_CASE(what_was_made_before_the_loop_outlives_it)
{
        lg_ctx *c = open_ctx();
        lg_tensor *before = lg_ones(c, LG_SHAPE(2)), *last = NULL;
        lg_loader *l = lg_loader_open(c, rows(c, 10, 0), 4);
        double sum = 0;
        int steps = 0;
        for (lg_batch b; lg_loader_next(l, &b); steps++) {
                last = lg_sum(b.x);
                sum += lg_item(last);
                assert_int_equal(b.index, steps);
                assert_int_equal(b.count, 3);
        }
        assert_ok(c);
        assert_int_equal(steps, 3);
        assert_near(sum, 45, 0);
        assert_list(before, 0, 1, 1);
        assert_null(lg_neg(last));
        assert_error(c, LG_ERR_STATE, "scope");
        lg_close(c);
}

TEST_CASE(break_leaks_nothing)
{
        lg_ctx *c = open_ctx();
        lg_loader *l = lg_loader_open(c, rows(c, 10, 0), 4);
        int64_t live = lg_live_tensors(c);
        lg_batch b;
        for (int round = 0; round < 20; round++) {
                while (lg_loader_next(l, &b)) {
                        drop(lg_exp(b.x));
                        if (b.index == 1)
                                break;
                }
                lg_loader_restart(l);
                assert_int_equal(lg_live_tensors(c), live);
        }
        assert_true(lg_loader_next(l, &b)); /* after break without a restart, the epoch goes on */
        assert_near(lg_item(lg_sum(b.x)), 0 + 1 + 2 + 3, 0);
        assert_true(lg_loader_next(l, &b));
        assert_near(lg_item(lg_sum(b.x)), 4 + 5 + 6 + 7, 0);
        lg_set_error(c, LG_ERR_IO, "x");
        assert_false(lg_loader_next(l, &b)); /* an error ends the loop */
        lg_clear_error(c);
        lg_loader_close(l);
        assert_true(lg_live_tensors(c) <= live);
        lg_close(c);
}

TEST_CASE(nested_loaders)
{
        lg_ctx *c = open_ctx();
        lg_loader *outer = lg_loader_open(c, rows(c, 6, 0), 2), *inner = lg_loader_open(c, rows(c, 6, 100), 3);
        double sum = 0;
        for (lg_batch a; lg_loader_next(outer, &a);) {
                int steps = 0;
                for (lg_batch b; lg_loader_next(inner, &b); steps++)
                        sum += lg_item(lg_sum(b.x));
                assert_int_equal(steps, 2);
                assert_near(lg_item(lg_sum(a.x)), 4 * a.index + 1, 0); /* still alive */
        }
        assert_ok(c);
        assert_near(sum, 3 * 615, 0);
        lg_close(c);
}

TEST_CASE(interleaved_loaders)
{
        lg_ctx *c = open_ctx();
        lg_loader *one = lg_loader_open(c, rows(c, 6, 0), 2), *two = lg_loader_open(c, rows(c, 6, 100), 2);
        int64_t live = lg_live_tensors(c);
        lg_batch a, b;
        for (int i = 0; i < 3; i++) {
                assert_true(lg_loader_next(one, &a));
                assert_true(lg_loader_next(two, &b));
                assert_int_equal(a.index, i);
                assert_int_equal(b.index, i);
                assert_near(lg_item(lg_sum(a.x)), 4 * i + 1, 0);
                assert_near(lg_item(lg_sum(b.x)), 200 + 4 * i + 1, 0);
        }
        assert_false(lg_loader_next(one, &a));
        assert_false(lg_loader_next(two, &b));
        assert_ok(c);
        assert_int_equal(lg_live_tensors(c), live);
        assert_true(lg_loader_next(two, &b)); /* the next epoch */
        assert_int_equal(b.index, 0);
        lg_loader_close(two);
        assert_true(lg_live_tensors(c) <= live); /* what the loader had of its own went, too */
        lg_close(c);
}

TEST_CASE(a_failing_layer_is_reported_as_itself)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 4, 8), lg_nn_relu(c), lg_nn_linear(c, 9, 2));
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 4));
        int64_t live = lg_live_tensors(c);
        assert_null(lg_forward(net, x));
        assert_non_null(strstr(lg_error(c), "linear"));
        assert_non_null(strstr(lg_error(c), "(3, 8)"));
        assert_non_null(strstr(lg_error(c), "\"2\""));
        assert_error(c, LG_ERR_SHAPE, "Linear");
        assert_int_equal(lg_live_tensors(c), live);
        /* a child that could not be made is the error, not the list that it cuts short */
        assert_null(lg_nn_sequential(c, lg_nn_linear(c, 4, 8), lg_nn_linear(c, -1, 2), lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_linear");
        assert_null(lg_nn_sequential(c, lg_nn_relu(c), NULL, lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_sequential");
        lg_close(c);
}
