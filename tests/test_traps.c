/* test_traps.c - mistakes that such libraries have made, one test each. */
#include <pthread.h>
#include "test.h"

static void accumulates_once(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_scalar(c, 3, .requires_grad = true);
        lg_tensor *y = lg_mul(x, x), *z = lg_add(y, y);
        lg_backward(z);
        assert_near(lg_item(lg_grad_of(x)), 12, 0);
        assert_ok(c);
        lg_close(c);
}

static void second_loss_gets_its_own_gradient(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_scalar(c, 2, .requires_grad = true);
        lg_tensor *shared = lg_square(x);
        lg_tensor *first = lg_mul_scalar(shared, 3), *second = lg_mul_scalar(shared, 5);
        lg_backward(first, .retain_graph = true);
        assert_near(lg_item(lg_grad_of(x)), 12, 0);
        lg_clear_grad(x);
        lg_backward(second);
        assert_near(lg_item(lg_grad_of(x)), 20, 0);
        lg_close(c);
}

/* The shadow device opens and closes its memory for each op: there a shorter chain has to do. */
static int chain_length(lg_ctx *c)
{
        return test_device(c).type == LG_DEVICE_SHADOW ? 5000 : 1000000;
}

static void *long_chain(void *user)
{
        lg_ctx *c = user;
        const int length = chain_length(c);
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = lg_scalar(c, 1, .requires_grad = true), *y = x;
        for (int i = 0; i < length; i++) {
                lg_tensor *next = lg_add_scalar(y, 1);
                if (y != x)
                        lg_free(y);
                y = next;
        }
        bool ok = lg_item(y) == 1 + length && lg_backward(y) && lg_item(lg_grad_of(x)) == 1;
        /* And one that is never run backward, only freed. */
        lg_tensor *h = lg_mul(x, x);
        for (int i = 0; i < length; i++) {
                lg_tensor *next = lg_mul(h, x);
                lg_free(h);
                h = next;
        }
        lg_scope_end(c, scope);
        return ok ? user : NULL;
}

static void long_chains_on_a_small_stack(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        pthread_attr_t attr;
        pthread_t thread;
        void *result = NULL;
        int64_t before = lg_live_tensors(c);
        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
        assert_int_equal(pthread_create(&thread, &attr, long_chain, c), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        pthread_attr_destroy(&attr);
        assert_ok(c);
        assert_ptr_equal(result, c);
        assert_int_equal(lg_live_tensors(c), before);
        lg_close(c);
}

static void leaf_used_a_thousand_times(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_full(c, 0.5, LG_SHAPE(3), .requires_grad = true), *sum = lg_sum(x);
        for (int i = 1; i < 1000; i++)
                sum = lg_add(sum, lg_sum(lg_mul_scalar(x, 2)));
        lg_backward(sum);
        assert_list(lg_grad_of(x), 0, 1999, 1999, 1999);
        lg_close(c);
}

static void backward_twice_is_an_error(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_scalar(c, 3, .requires_grad = true), *y = lg_mul(x, x);
        assert_true(lg_backward(y, .retain_graph = true));
        assert_true(lg_backward(y));
        assert_near(lg_item(lg_grad_of(x)), 12, 0);
        assert_false(lg_backward(y));
        assert_error(c, LG_ERR_STATE, "retain_graph");
        lg_close(c);
}

static void saved_value_changed_in_place(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true), *w = lg_ones(c, LG_SHAPE(2, 3));
        lg_tensor *y = lg_sum(lg_mul(x, w));
        assert_true(lg_fill_(w, 5));
        assert_false(lg_backward(y));
        assert_non_null(strstr(lg_error(c), "mul saved b"));
        assert_error(c, LG_ERR_STATE, "(2, 3)");
        lg_close(c);
}

/* ---- loaders and modules ---------------------------------------------------------------------------------------------------- */

static lg_dataset *numbers(lg_ctx *c, int n)
{
        lg_device cpu = lg_cpu();
        lg_tensor *x = lg_reshape(lg_arange(c, 0, n, 1, .dtype = LG_F32, .device = cpu), LG_SHAPE(n, 1));
        return lg_dataset_tensors(c, x, lg_arange(c, 0, n, 1, .device = cpu));
}

static void made_before_the_loop_lives_after_it(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *total = lg_zeros(c, LG_SHAPE(1));
        lg_loader *l = lg_loader_open(c, numbers(c, 10), 3);
        for (lg_batch b; lg_loader_next(l, &b);)
                lg_add_(total, lg_sum(b.x, .dims = LG_DIMS(0)));
        assert_ok(c);
        assert_near(lg_item(total), 45, 0);
        lg_close(c);
}

static void break_leaks_nothing(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_loader *l = lg_loader_open(c, numbers(c, 10), 2);
        int64_t before = lg_live_tensors(c);
        for (int i = 0; i < 5; i++) {
                lg_batch b;
                assert_true(lg_loader_next(l, &b));
                lg_exp(b.x);
                lg_loader_restart(l);
                assert_int_equal(lg_live_tensors(c), before);
        }
        lg_batch b;
        assert_true(lg_loader_next(l, &b));
        assert_int_equal(b.index, 0);
        assert_true(lg_loader_next(l, &b)); /* as after a break: the epoch goes on */
        assert_int_equal(b.index, 1);
        assert_near(lg_item(lg_sum(b.x)), 5, 0);
        assert_ok(c);
        lg_close(c);
}

static void interleaved_loaders_keep_their_steps(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_loader *l = lg_loader_open(c, numbers(c, 8), 2), *m = lg_loader_open(c, numbers(c, 8), 4);
        lg_batch a, b;
        assert_true(lg_loader_next(l, &a) && lg_loader_next(m, &b) && lg_loader_next(l, &a));
        assert_near(lg_item(lg_sum(a.x)), 5, 0);
        assert_near(lg_item(lg_sum(b.x)), 6, 0);
        assert_true(lg_loader_next(m, &b));
        assert_near(lg_item(lg_sum(a.x)), 5, 0);
        assert_near(lg_item(lg_sum(b.x)), 22, 0);
        assert_ok(c);
        lg_close(c);
}

static void nested_loaders_keep_their_steps(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_loader *outer = lg_loader_open(c, numbers(c, 4), 2), *inner = lg_loader_open(c, numbers(c, 6), 3);
        double sum = 0;
        int steps = 0;
        for (lg_batch a; lg_loader_next(outer, &a);)
                for (lg_batch b; lg_loader_next(inner, &b); steps++)
                        sum += lg_item(lg_mul(lg_sum(a.x), lg_sum(b.x)));
        assert_ok(c);
        assert_int_equal(steps, 4);
        assert_near(sum, 6 * 15, 1e-9);
        lg_close(c);
}

static void failing_layer_is_reported_as_itself(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 4, 5), lg_nn_relu(c), lg_nn_linear(c, 6, 2));
        assert_ok(c);
        assert_null(lg_forward(net, lg_ones(c, LG_SHAPE(1, 4))));
        assert_non_null(strstr(lg_error(c), "linear"));
        assert_error(c, LG_ERR_SHAPE, "(2, 6)");
        assert_null(lg_nn_sequential(c, lg_nn_relu(c), lg_nn_linear(c, -1, 2), lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "linear");
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(accumulates_once),
                cmocka_unit_test(second_loss_gets_its_own_gradient),
                cmocka_unit_test(long_chains_on_a_small_stack),
                cmocka_unit_test(leaf_used_a_thousand_times),
                cmocka_unit_test(backward_twice_is_an_error),
                cmocka_unit_test(saved_value_changed_in_place),
                cmocka_unit_test(made_before_the_loop_lives_after_it),
                cmocka_unit_test(break_leaks_nothing),
                cmocka_unit_test(interleaved_loaders_keep_their_steps),
                cmocka_unit_test(nested_loaders_keep_their_steps),
                cmocka_unit_test(failing_layer_is_reported_as_itself),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
