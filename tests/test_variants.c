/* test_variants.c - sizes and dtypes that choose rare variants of kernels, beside the same ops in f64 on the CPU. */
#include "test.h"
#include "tests.h"

enum { MOST_INPUTS = 3 };
typedef lg_tensor *op_fn(lg_ctx *c, lg_tensor *const *x, int64_t n);

static lg_tensor *leaf(lg_tensor *x)
{
        return lg_set_requires_grad(lg_detach(x), true);
}

static double error_of(lg_tensor *t, lg_tensor *wide)
{
        lg_tensor *there = lg_cast(lg_copy(t, lg_cpu()), LG_F64), *apart = lg_abs(lg_sub(there, wide));
        return lg_item(lg_amax(apart)) / (1 + lg_item(lg_amax(lg_abs(wide))));
}

/* Computes f and its gradients with `inputs` normal tensors of these shapes in a dtype on the tested device, and in f64
 * on the CPU. n is passed to f. */
static void compare(op_fn *f, int64_t n, lg_dtype dtype, int inputs, const lg_shape *shapes)
{
        static const double tolerance[] = {[LG_F32] = 1e-5, [LG_F64] = 1e-12, [LG_F16] = 4e-3, [LG_BF16] = 3e-2};
        lg_ctx *c = open_ctx();
        lg_tensor *x[MOST_INPUTS], *wide[MOST_INPUTS], *slopes[MOST_INPUTS], *wide_slopes[MOST_INPUTS];
        const lg_device device = lg_default_device(c);
        lg_set_default_device(c, lg_cpu());
        for (int i = 0; i < inputs; i++) {
                lg_tensor *drawn = lg_cast(lg_normal(c, 0, 1, shapes[i], .dtype = LG_F64), dtype);
                wide[i] = leaf(lg_cast(drawn, LG_F64));
                x[i] = leaf(lg_copy(drawn, device));
        }
        lg_tensor *wide_y = f(c, wide, n);
        lg_set_default_device(c, device);
        lg_tensor *y = f(c, x, n),
                  *g = lg_cast(lg_normal(c, 0, 1, lg_shape_of(wide_y), .dtype = LG_F64, .device = lg_cpu()),
                               lg_dtype_of(y));
        assert_ok(c);
        assert_true(error_of(y, wide_y) < tolerance[dtype]);
        lg_grad(LG_LIST(y), LG_LIST_OF(inputs, x), .grads = LG_LIST(lg_copy(g, device)), .result = slopes);
        lg_grad(LG_LIST(wide_y), LG_LIST_OF(inputs, wide), .grads = LG_LIST(lg_cast(g, LG_F64)), .result = wide_slopes);
        assert_ok(c);
        for (int i = 0; i < inputs; i++) {
                const double error = error_of(slopes[i], wide_slopes[i]);
                if (!(error < 4 * tolerance[dtype]))
                        fail_msg("gradient of input %d, n = %lld, %s: error %g", i, (long long)n, lg_dtype_name(dtype),
                                 error);
        }
        lg_close(c);
}

static const lg_dtype floats[] = {LG_F32, LG_F64, LG_F16, LG_BF16};

static lg_tensor *convolve(lg_ctx *c, lg_tensor *const *x, int64_t n)
{
        (void)c, (void)n;
        return lg_conv2d(x[0], x[1], x[2], .padding = 1);
}

TEST_CASE(convolutions_by_packs_of_channels)
{
        for (int d = 0; d < 4; d++)
                for (int64_t channels = 5; channels <= 8; channels += 3)
                        compare(convolve, 0, floats[d], 3,
                                (const lg_shape[]){LG_SHAPE(2, channels, 11, 10), LG_SHAPE(channels, channels, 3, 3),
                                                   LG_SHAPE(channels)});
}

static lg_tensor *loss(lg_ctx *c, lg_tensor *const *x, int64_t n)
{
        const int64_t labels[] = {0, n - 1, n / 2};
        return lg_cross_entropy(x[0], lg_from(c, labels, LG_SHAPE(3), .dtype = LG_I64));
}

TEST_CASE(losses_of_many_classes)
{
        static const int64_t classes[] = {1000, 1001, 5000, 5001, 9000, 9001};
        for (int d = 0; d < 4; d++)
                for (int i = 0; i < 6; i++)
                        compare(loss, classes[i], floats[d], 1, (const lg_shape[]){LG_SHAPE(3, classes[i])});
}

static lg_tensor *group_norm(lg_ctx *c, lg_tensor *const *x, int64_t n)
{
        (void)c;
        return lg_group_norm(x[0], n, x[1], x[2]);
}

TEST_CASE(groups_of_large_images)
{
        for (int d = 0; d < 4; d++)
                compare(group_norm, 2, floats[d], 3,
                        (const lg_shape[]){LG_SHAPE(2, 4, 4100), LG_SHAPE(4), LG_SHAPE(4)});
}

static lg_tensor *linear_relu(lg_ctx *c, lg_tensor *const *x, int64_t n)
{
        lg_module *m = lg_nn_sequential(c, lg_nn_linear(c, 4, n), lg_nn_relu(c));
        return lg_forward_params(m, LG_LIST(x[1], x[2]), x[0]);
}

TEST_CASE(biases_of_many_columns)
{
        for (int d = 0; d < 4; d++)
                for (int64_t columns = 64; columns <= 66; columns += 2)
                        compare(linear_relu, columns, floats[d], 3,
                                (const lg_shape[]){LG_SHAPE(600, 4), LG_SHAPE(columns, 4), LG_SHAPE(columns)});
}

static lg_tensor *norm_of(lg_ctx *c, lg_tensor *const *x, int64_t n)
{
        (void)c, (void)n;
        return lg_norm(x[0]);
}

TEST_CASE(norms_of_long_rows)
{
        for (int d = 0; d < 4; d++)
                compare(norm_of, 0, floats[d], 1, (const lg_shape[]){LG_SHAPE(70000)});
}

/* Ops that pass their gradient on; a second use of x has one that it is added to. */
static lg_tensor *used_twice(lg_ctx *c, lg_tensor *const *x, int64_t n)
{
        (void)c;
        lg_tensor *b = lg_add_scalar(lg_abs(x[1]), 1);
        lg_tensor *y = n == 0   ? lg_frac(x[0])
                       : n == 1 ? lg_fmod(x[0], b)
                       : n == 2 ? lg_remainder(x[0], b)
                       : n == 3 ? lg_sub_scalar(x[0], 0.5)
                                : lg_add(x[0], b);
        lg_tensor *z = lg_sin(x[0]);
        return n % 2 ? lg_add(lg_mul(y, b), lg_mul(z, y)) : lg_add(lg_mul(z, y), lg_mul(y, b));
}

TEST_CASE(gradients_are_added_to)
{
        for (int d = 0; d < 2; d++)
                for (int64_t n = 0; n < 5; n++)
                        compare(used_twice, n, floats[d], 2, (const lg_shape[]){LG_SHAPE(7, 9), LG_SHAPE(7, 9)});
}

/* 0, 1, ..., m - 1, 0, 1, ... */
static lg_tensor *cycle(lg_ctx *c, int64_t n, int64_t m)
{
        static int64_t numbers[20000];
        for (int64_t i = 0; i < n; i++)
                numbers[i] = i % m;
        return lg_from(c, numbers, LG_SHAPE(n), .dtype = LG_I64);
}

static lg_tensor *embed(lg_ctx *c, lg_tensor *const *x, int64_t n)
{
        return lg_embedding(cycle(c, n, 7), x[0]);
}

TEST_CASE(embeddings_of_many_tokens)
{
        for (int d = 0; d < 2; d++)
                compare(embed, 17000, floats[d], 1, (const lg_shape[]){LG_SHAPE(7, 2)});
}

/* ---- integers and bools ---- */

TEST_CASE(integers_in_long_rows)
{
        static const int64_t lengths[] = {10, 16, 601, 608, 30000};
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 5; i++) {
                const int64_t n = lengths[i];
                lg_tensor *x = lg_reshape(lg_arange(c, 0, (double)(2 * n), 1, .dtype = LG_I64), LG_SHAPE(2, n));
                assert_near(lg_item(lg_amax(x)), (double)(2 * n - 1), 0);
                lg_tensor *most = lg_amax(x, .dims = LG_DIMS(1)), *sum = lg_sum(x, .dims = LG_DIMS(1));
                assert_near(lg_item(lg_select(most, 0, 0)), (double)(n - 1), 0);
                assert_near(lg_item(lg_select(sum, 0, 1)), (double)(n * n + n * (n - 1) / 2), 0);
                assert_near(lg_item(lg_sum(lg_cast(lg_ne(x, lg_add_scalar(x, 1)), LG_I64))), (double)(2 * n), 0);
        }
        lg_tensor *wide = lg_arange(c, 0, 100, 1, .dtype = LG_F64);
        assert_near(lg_item(lg_sum(lg_cast(lg_ge_scalar(wide, 60), LG_I64))), 40, 0);
        assert_near(lg_item(lg_sum(lg_cast(lg_le_scalar(wide, 60), LG_I64))), 61, 0);
        lg_tensor *index = cycle(c, 20000, 5);
        lg_tensor *added = lg_scatter_add(lg_zeros(c, LG_SHAPE(5), .dtype = LG_I64), 0, index,
                                          lg_ones(c, LG_SHAPE(20000), .dtype = LG_I64));
        assert_near(lg_item(lg_amin(added)), 4000, 0);
        lg_tensor *numbers = lg_arange(c, 0, 100, 1, .dtype = LG_I64);
        assert_near(lg_item(lg_sum(lg_cast(lg_le_scalar(numbers, 60.5), LG_I64))), 61, 0);
        lg_tensor *bits = lg_ge_scalar(lg_reshape(lg_arange(c, 0, 130 * 70, 1), LG_SHAPE(130, 70)), 4000);
        lg_tensor *turned = lg_contiguous(lg_transpose(bits, 0, 1));
        assert_near(lg_item(lg_sum(lg_cast(lg_eq(lg_transpose(turned, 0, 1), bits), LG_I64))), 130 * 70, 0);
        assert_ok(c);
        lg_close(c);
}

/* Functions of whole numbers, and derivatives and draws in f32 and f64, that other tests have in other dtypes only. */
TEST_CASE(functions_in_other_dtypes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *i = lg_arange(c, -2, 3, 1, .dtype = LG_I64);
        assert_list(lg_cast(lg_isposinf(i), LG_I64), 0, 0, 0, 0, 0, 0);
        assert_list(lg_cast(lg_isneginf(i), LG_I64), 0, 0, 0, 0, 0, 0);
        assert_list(lg_heaviside(i, lg_add_scalar(i, 7)), 0, 0, 0, 7, 1, 1);
        assert_list(lg_bitwise_or_scalar(i, 5), 0, -1, -1, 5, 5, 7);
        assert_list(lg_bitwise_and_scalar(i, 3), 0, 2, 3, 0, 1, 2);
        assert_list(lg_bitwise_xor_scalar(i, 1), 0, -1, -2, 1, 0, 3);
        assert_list(lg_bitwise_left_shift_scalar(i, 2), 0, -8, -4, 0, 4, 8);
        assert_list(lg_bitwise_right_shift_scalar(i, 1), 0, -1, -1, 0, 0, 1);
        assert_list(lg_fmin(i, lg_neg(i)), 0, -2, -1, 0, -1, -2);
        assert_list(lg_fmax(i, lg_neg(i)), 0, 2, 1, 0, 1, 2);
        assert_list(lg_fmod_scalar(i, 2), 0, 0, -1, 0, 1, 0);
        assert_list(lg_remainder_scalar(i, 2), 0, 0, 1, 0, 1, 0);
        for (int d = 0; d < 2; d++) {
                const lg_dtype dtype = d ? LG_F64 : LG_F32;
                lg_tensor *x = lg_set_requires_grad(lg_full(c, LG_SHAPE(3), 3.5, .dtype = dtype), true);
                lg_tensor *rest = lg_add(lg_fmod_scalar(x, 2), lg_remainder_scalar(x, 2));
                lg_tensor *g = lg_standard_gamma(x), *n = lg_poisson(lg_detach(x));
                assert_true(lg_backward(lg_sum(lg_add(rest, g))));
                assert_true(lg_item(lg_amin(g)) > 0 && lg_item(lg_amin(n)) >= 0);
                assert_true(lg_item(lg_amin(lg_grad_of(x))) > 2);
        }
        assert_ok(c);
        lg_close(c);
}
