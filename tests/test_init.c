/* test_init.c - first values of parameters, and freezing them. */
#include "test.h"

static double mean_of(lg_tensor *t)
{
        return lg_item(lg_mean(t));
}

static double std_of(lg_tensor *t)
{
        return sqrt(lg_item(lg_var(t)));
}

TEST_CASE(plain_distributions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = lg_set_requires_grad(lg_zeros(c, LG_SHAPE(100, 100)), true);
        assert_true(lg_init_constant(t, 3));
        assert_near(lg_item(lg_amin(t)), 3, 0);
        assert_true(lg_init_uniform(t, -1, 3));
        assert_near(mean_of(t), 1, 0.06);
        assert_true(lg_item(lg_amin(t)) >= -1 && lg_item(lg_amax(t)) < 3);
        assert_true(lg_init_normal(t, 2, 0.5));
        assert_near(mean_of(t), 2, 0.03);
        assert_near(std_of(t), 0.5, 0.02);
        assert_true(lg_init_trunc_normal(t, 0, 1, -2, 2));
        assert_true(lg_item(lg_amax(lg_abs(t))) <= 2);
        assert_near(std_of(t), 0.8796, 0.03);                                            /* of a normal cut at 2 */
        assert_near(lg_item(lg_sum(lg_cast(lg_ge_scalar(lg_abs(t), 2), LG_F32))), 0, 0); /* drawn again, not clamped */
        assert_true(lg_is_leaf(t) && lg_requires_grad(t));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(by_fans)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = lg_zeros(c, LG_SHAPE(64, 32, 3, 3)); /* fan_in 288, fan_out 576 */
        lg_init_xavier_uniform(t);
        assert_near(lg_item(lg_amax(t)), sqrt(6.0 / 864), 1e-3);
        lg_init_xavier_normal(t, .gain = 2);
        assert_near(std_of(t), 2 * sqrt(2.0 / 864), 3e-3);
        lg_init_kaiming_uniform(t);
        assert_near(lg_item(lg_amax(t)), sqrt(6.0 / 288), 1e-3);
        lg_init_kaiming_normal(t, .fan_out = true);
        assert_near(std_of(t), sqrt(2.0 / 576), 2e-3);
        lg_init_kaiming_normal(t, .slope = 1);
        assert_near(std_of(t), sqrt(1.0 / 288), 2e-3);
        assert_ok(c);
        assert_true(lg_init_kaiming_normal(lg_zeros(c, LG_SHAPE(0, 0))));
        assert_false(lg_init_xavier_normal(lg_zeros(c, LG_SHAPE(5))));
        assert_error(c, LG_ERR_SHAPE, "two dimensions");
        lg_close(c);
}

TEST_CASE(rows_are_orthonormal)
{
        lg_ctx *c = open_ctx();
        const lg_shape shapes[] = {LG_SHAPE(5, 5), LG_SHAPE(4, 3, 3), LG_SHAPE(9, 4)};
        for (int i = 0; i < 3; i++) {
                lg_tensor *t = lg_zeros(c, shapes[i], .dtype = LG_F64);
                assert_true(lg_init_orthogonal(t, .gain = 3));
                lg_tensor *m = lg_reshape(t, LG_SHAPE(shapes[i].size[0], -1));
                if (lg_size_of(m, 0) > lg_size_of(m, 1))
                        m = lg_transpose(m, 0, 1);
                lg_tensor *p = lg_matmul(m, lg_transpose(m, 0, 1));
                double v[25];
                int64_t n = lg_size_of(m, 0);
                read_all(p, v, 25);
                for (int64_t k = 0; k < n * n; k++)
                        assert_near(v[k], k % (n + 1) ? 0 : 9, 1e-12);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        assert_false(lg_init_normal(lg_zeros(c, LG_SHAPE(3), .dtype = LG_I64), 0, 1));
        assert_error(c, LG_ERR_DTYPE, "lg_init_normal");
        lg_random_state before = lg_random_state_of(c);
        lg_tensor *x = lg_set_requires_grad(lg_ones(c, LG_SHAPE(3)), true);
        assert_false(lg_init_trunc_normal(x, 0, 1, 5, 6));
        assert_error(c, LG_ERR_ARGUMENT, "trunc_normal");
        assert_int_equal(before.counter, lg_random_state_of(c).counter);
        assert_near(lg_item(lg_sum(x)), 3, 0);
        lg_close(c);
}

TEST_CASE(frozen_parameters_stay)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_linear(c, 4, 2));
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
        double before[12], after[12], head[8], moved[8];
        assert_true(lg_freeze(lg_child(net, 0), true));
        assert_false(lg_requires_grad(lg_parameter(net, "0.weight")));
        read_all(lg_parameter(net, "0.weight"), before, 12);
        read_all(lg_parameter(net, "1.weight"), head, 8);
        lg_backward(lg_sum(lg_square(lg_forward(net, lg_ones(c, LG_SHAPE(2, 3))))));
        assert_null(lg_grad_of(lg_parameter(net, "0.weight")));
        assert_true(lg_step(opt));
        read_all(lg_parameter(net, "0.weight"), after, 12);
        read_all(lg_parameter(net, "1.weight"), moved, 8);
        assert_memory_equal(before, after, sizeof before);
        assert_memory_not_equal(head, moved, sizeof head);
        assert_true(lg_freeze(net, false));
        lg_backward(lg_sum(lg_square(lg_forward(net, lg_ones(c, LG_SHAPE(2, 3))))));
        assert_true(lg_step(opt));
        read_all(lg_parameter(net, "0.weight"), after, 12);
        assert_memory_not_equal(before, after, sizeof before);
        assert_ok(c);
        lg_close(c);
}
