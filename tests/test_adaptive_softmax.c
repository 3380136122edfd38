/* test_adaptive_softmax.c - AdaptiveLogSoftmaxWithLoss: PyTorch's values, dtypes, derivatives, errors. */
#include "golden.h"

/* Sets the parameters to those of adaptive_softmax.py. */
static lg_module *parameters(lg_module *m, lg_dtype dtype)
{
        const lg_list all = lg_parameters(m);
        lg_module_cast(m, dtype);
        lg_no_grad(lg_module_ctx(m)) for (int64_t k = 0; k < all.count; k++)
        {
                lg_tensor *p = all.items[k];
                lg_copy_(p, lg_div_scalar(golden_like(p, lg_shape_of(p), 0.1 + (double)k), 4));
        }
        return m;
}
#define MODULE(...) parameters(lg_nn_adaptive_log_softmax(c, 8, 20, __VA_ARGS__), lg_dtype_of(x))

/* The second result, which is the log-probabilities of the targets. */
static lg_tensor *output(lg_module *m, lg_tensor *x, lg_tensor *target)
{
        lg_outputs out;
        return lg_forward_all(m, &out, x, target) ? out.items[1] : NULL;
}

static lg_tensor *number(lg_ctx *c, int64_t i)
{
        return lg_full(c, LG_SHAPE_0D, (double)i, .dtype = LG_I64);
}

#define ROWS(ROW)                                                                                                      \
        ROW(loss, lg_forward(MODULE(LG_INTS(4, 11)), x, I64(20, 6)), 6, 8)                                             \
        ROW(output, output(MODULE(LG_INTS(4, 11)), x, I64(20, 6)), 6, 8)                                               \
        ROW(log_prob, lg_forward(MODULE(LG_INTS(4, 11)), x), 6, 8)                                                     \
        ROW(biased, output(MODULE(LG_INTS(5), .div_value = 2, .head_bias = true), x, I64(20, 6)), 6, 8)                \
        ROW(biased_log_prob, lg_forward(MODULE(LG_INTS(5), .div_value = 2, .head_bias = true), x), 6, 8)               \
        ROW(without_features, output(MODULE(LG_INTS(4, 11, 19), .div_value = 3), x, I64(20, 6)), 6, 8)                 \
        ROW(frequent, output(MODULE(LG_INTS(4, 11)), x, lg_remainder_scalar(I64(20, 6), 4)), 6, 8)                     \
        ROW(one_sample, output(MODULE(LG_INTS(4, 11)), x, number(c, 13)), 8)                                           \
        ROW(one_loss, lg_forward(MODULE(LG_INTS(4, 11)), x, number(c, 2)), 8)
GOLDEN_TEST(as_pytorch_computes_it, "adaptive_softmax.txt", golden_input, ROWS);

static lg_tensor *loss_of(lg_ctx *c, lg_list in, void *user)
{
        return lg_forward_params(user, LG_LIST_OF(in.count - 1, in.items + 1), in.items[0], I64(20, 6));
}

TEST_CASE(derivatives)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = golden_tensor(c, LG_SHAPE(6, 8), 0);
        lg_module *m = MODULE(LG_INTS(4, 11), .head_bias = true);
        const lg_list all = lg_parameters(m);
        assert_int_equal(all.count, 6);
        lg_tensor *in[7] = {x};
        memcpy(in + 1, all.items, 6 * sizeof *in);
        if (!lg_gradcheck(c, loss_of, LG_LIST_OF(7, in), .user = m) ||
            !lg_gradgradcheck(c, loss_of, LG_LIST_OF(7, in), .user = m))
                fail_msg("%s", lg_error(c));
        lg_close(c);
}

TEST_CASE(names_and_sizes)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_adaptive_log_softmax(c, 16, 100, LG_INTS(10, 30), .head_bias = true);
        assert_shape(lg_parameter(m, "head.weight"), LG_SHAPE(12, 16));
        assert_shape(lg_parameter(m, "head.bias"), LG_SHAPE(12));
        assert_shape(lg_parameter(m, "tail.0.0.weight"), LG_SHAPE(4, 16));
        assert_shape(lg_parameter(m, "tail.0.1.weight"), LG_SHAPE(20, 4));
        assert_shape(lg_parameter(m, "tail.1.0.weight"), LG_SHAPE(1, 16));
        assert_shape(lg_parameter(m, "tail.1.1.weight"), LG_SHAPE(70, 1));
        assert_int_equal(lg_parameters(m).count, 6);
        lg_module *copy = lg_module_clone(m);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 16)), *y = lg_forward(m, x);
        assert_shape(y, LG_SHAPE(2, 3, 100));
        assert_same_bits(lg_forward(copy, x), y);
        assert_near(lg_item(lg_sum(lg_exp(y))), 6, 1e-5);
        y = lg_forward(m, lg_ones(c, LG_SHAPE(0, 16)));
        assert_shape(y, LG_SHAPE(0, 100));
        y = output(m, lg_ones(c, LG_SHAPE(0, 16)), lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64));
        assert_shape(y, LG_SHAPE(0));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(halves)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F16, LG_BF16};
        for (int d = 0; d < 2; d++) {
                lg_tensor *x = lg_cast(golden_tensor(c, LG_SHAPE(6, 8), 0), dtypes[d]);
                lg_module *m = MODULE(LG_INTS(4, 11));
                lg_tensor *y = lg_forward(m, x, I64(20, 6));
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                const double got = lg_item(y);
                x = lg_cast(x, LG_F32);
                assert_near(got, lg_item(lg_forward(MODULE(LG_INTS(4, 11)), x, I64(20, 6))), d ? 0.1 : 0.02);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(errors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(6, 8)), *t = I64(20, 6);
        lg_module *m = lg_nn_adaptive_log_softmax(c, 8, 20, LG_INTS(4, 11));
        assert_fails(c, lg_forward(m, x, lg_add_scalar(t, 15)), LG_ERR_ARGUMENT, "targets are not in [0, 20)");
        assert_fails(c, lg_forward(m, x, lg_sub_scalar(t, 4)), LG_ERR_ARGUMENT, "targets are not in [0, 20)");
        assert_fails(c, lg_forward(m, x, I64(20, 5)), LG_ERR_SHAPE, "it takes (N, 8) and (N)");
        assert_fails(c, lg_forward(m, lg_ones(c, LG_SHAPE(6, 7)), t), LG_ERR_SHAPE, "it takes (N, 8) and (N)");
        assert_fails(c, lg_forward(m, lg_ones(c, LG_SHAPE(6, 7))), LG_ERR_SHAPE, "it takes (N, 8)");
        assert_fails(c, lg_forward(m, lg_scalar(c, 1)), LG_ERR_SHAPE, "it takes (N, 8)");
        assert_fails(c, lg_forward(m, x, lg_ones(c, LG_SHAPE(6))), LG_ERR_DTYPE, "classes are i64");
        assert_fails(c, lg_forward(m, x, t, t), LG_ERR_ARGUMENT, "takes x and, for a loss, a target");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 0, 20, LG_INTS(4)), LG_ERR_ARGUMENT, "0 features");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 8, 1, LG_INTS(4)), LG_ERR_ARGUMENT, "1 classes");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 8, 20, LG_INTS(4, 4)), LG_ERR_ARGUMENT, "cutoff 1 is 4");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 8, 20, LG_INTS(0)), LG_ERR_ARGUMENT, "cutoff 0 is 0");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 8, 20, LG_INTS(4, 20)), LG_ERR_ARGUMENT, "cutoff 1 is 20");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 8, 20, LG_INTS_OF(0, NULL)), LG_ERR_ARGUMENT, "0 cutoffs");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 8, 20, LG_INTS(4), .div_value = -1), LG_ERR_ARGUMENT,
                     "div_value is -1");
        assert_fails(c, lg_nn_adaptive_log_softmax(c, 8, 20, LG_INTS(4), .dtype = LG_I64), LG_ERR_DTYPE,
                     "parameters are floats");
        lg_close(c);
}
