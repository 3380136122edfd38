/* test_pointwise_made.c - functions of pointwise_made.c, norms and softmin against PyTorch's numbers
 * (data/elementwise.txt), values that are not finite, comparisons within a tolerance, bits, errors. */
#include <math.h>
#include "golden.h"

#define Y golden_like(x, LG_SHAPE(3, 4), 0.7)
#define P lg_add_scalar(lg_square(Y), 0.1)
#define TIMES(s) lg_mul_scalar(x, s)
#define PLUS(s) lg_add_scalar(lg_square(x), s)
#define ROWS(ROW)                                                                                                      \
        ROW(addcmul_x, lg_addcmul(x, Y, P, .value = 0.7), 3, 4)                                                        \
        ROW(addcmul_a, lg_addcmul(Y, x, P, .value = 0.7), 3, 4)                                                        \
        ROW(addcdiv_a, lg_addcdiv(Y, x, P, .value = -0.7), 3, 4)                                                       \
        ROW(addcdiv_b, lg_addcdiv(Y, P, PLUS(0.1)), 3, 4)                                                              \
        ROW(float_power, lg_float_power(PLUS(0.1), Y), 3, 4)                                                           \
        ROW(round_decimals, lg_round_decimals(x, 1), 3, 4)                                                             \
        ROW(round_tens, lg_round_decimals(TIMES(17), -1), 3, 4)                                                        \
        ROW(rrelu, lg_rrelu(x, .lower = 0.2, .upper = 0.3), 3, 4)                                                      \
        ROW(softmin, lg_softmin(x, 1), 3, 4)                                                                           \
        ROW(norm_less, lg_norm(lg_add_scalar(x, 0.1), .p = -1.5, .dims = LG_DIMS(1)), 3, 4)                            \
        ROW(norm_least, lg_norm(x, .p = -LG_INFINITY, .dims = LG_DIMS(0)), 3, 4)                                       \
        ROW(norm_half, lg_norm(lg_add_scalar(x, 0.1), .p = -0.5), 3, 4)                                                \
        ROW(renorm, lg_renorm(x, 2, 0, 2.5), 3, 4)                                                                     \
        ROW(renorm_1, lg_renorm(x, 1, 1, 2.5), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "elementwise.txt", golden_input, ROWS);

#define REALS(...) lg_from(c, ((const double[]){__VA_ARGS__}), LG_SHAPE(COUNT_OF(__VA_ARGS__)), .dtype = LG_F64)
#define WHOLE(...) lg_from(c, ((const int64_t[]){__VA_ARGS__}), LG_SHAPE(COUNT_OF(__VA_ARGS__)), .dtype = LG_I64)
#define COUNT_OF(...) ((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

TEST_CASE(poles_and_ends)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_cast(REALS(0, -0.0, -1, INFINITY, -INFINITY, NAN), dtypes[d]);
                assert_list(lg_lgamma(x), 0, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, NAN);
                assert_list(lg_digamma(x), 0, -INFINITY, INFINITY, NAN, INFINITY, NAN, NAN);
                assert_list(lg_polygamma(x, 1), 0, INFINITY, INFINITY, INFINITY, 0, INFINITY, NAN);
                assert_list(lg_polygamma(x, 2), 0, -INFINITY, -INFINITY, -INFINITY, 0, -INFINITY, NAN);
                x = lg_cast(REALS(1, -1, 1.5, -2, NAN, 0), dtypes[d]);
                assert_list(lg_erfinv(x), 0, INFINITY, -INFINITY, NAN, NAN, NAN, 0);
                assert_list(lg_lgamma(lg_cast(REALS(1, 2), dtypes[d])), 0, 0, 0);
                x = lg_cast(REALS(NAN, 1, INFINITY, -INFINITY, -0.0, 0), dtypes[d]);
                lg_tensor *y = lg_cast(REALS(2, NAN, 3, 3, 5, 5), dtypes[d]);
                assert_list(lg_fmax(x, y), 0, 2, 1, INFINITY, 3, 5, 5);
                assert_list(lg_fmin(x, y), 0, 2, 1, 3, -INFINITY, 0, 0);
                assert_list(lg_heaviside(x, y), 0, 0, 1, 1, 0, 5, 5);
                assert_list(lg_isposinf(x), 0, 0, 0, 1, 0, 0, 0);
                assert_list(lg_isneginf(x), 0, 0, 0, 0, 1, 0, 0);
                assert_list(lg_signbit(lg_slice(x, 0, 1, LG_MAX)), 0, 0, 0, 1, 1, 0);
                assert_list(lg_hypot(lg_cast(REALS(3, 2e4, INFINITY), dtypes[d]), lg_cast(REALS(4, 0, NAN), dtypes[d])),
                            2e-2, 5, 2e4, INFINITY);
                assert_list(lg_sinc(lg_cast(REALS(0, 0.5), dtypes[d])), 1e-2, 1, 2 / acos(-1));
        }
        assert_list(lg_lgamma(WHOLE(5)), 1e-6, log(24));
        assert_list(lg_hypot(REALS(1e300), REALS(1e300)), 1e287, sqrt(2) * 1e300);
        assert_null(lg_polygamma(REALS(1), 1.5));
        assert_error(c, LG_ERR_ARGUMENT, "polygamma: n is 1.5");
        assert_null(lg_polygamma(REALS(1), -1));
        assert_error(c, LG_ERR_ARGUMENT, "polygamma: n is -1");
        lg_close(c);
}

/* f32 against f64, in units of the last place of the result. */
static void check_f32(lg_ctx *c, lg_tensor *(*f)(lg_tensor *x), double low, double high)
{
        enum { N = 4001 };
        static double got[N], want[N];
        lg_tensor *x = lg_add_scalar(lg_mul_scalar(lg_arange(c, 0, N, 1), (high - low) / N), low);
        read_all(f(x), got, N);
        read_all(f(lg_cast(x, LG_F64)), want, N);
        for (int i = 0; i < N; i++)
                assert_true(!isfinite(want[i]) || fabs(got[i] - want[i]) <= 1.2e-7 * fabs(want[i]));
}

TEST_CASE(accuracy_of_f32)
{
        lg_ctx *c = open_ctx();
        check_f32(c, lg_lgamma, 1e-3, 30);
        check_f32(c, lg_lgamma, -7.3, 0);
        check_f32(c, lg_digamma, 0.9, 3);
        check_f32(c, lg_digamma, -5.2, 0);
        check_f32(c, lg_erfinv, -0.9999, 0.9999);
        lg_close(c);
}

/* Values of 30 digits by mpmath. */
TEST_CASE(accuracy_of_f64)
{
        lg_ctx *c = open_ctx();
        double y[8];
        const double lgammas[] = {11.512919692895825626, 1.0957979948180755606, -0.000057713342220471268005,
                                  1.4280723266653881292, 55.585686044869429708, 220258509288.81058147,
                                  1.3145245899433899435, -3.9506776482750192749},
                     digammas[] = {-100000.57719921567289, -3.5025242222001331249, -0.57705118351433486812,
                                   1.1671535393615114409,  3.2088934898690552952,  23.02585092989045684,
                                   0.95938078610680936572, 4.0415908454100283905},
                     inverses[] = {8.8622692545275803586e-301, 8.8622692545275806908e-10, 0.22531205501217810473,
                                   0.4769251504153165835,      0.47694740211169773652,    2.3267537655135244939,
                                   -4.3200053881053620459,     5.8635847487551679272};
        lg_tensor *x = REALS(1e-5, 0.3, 1.0001, 3.7, 25.25, 1e10, -0.4, -5.3);
        read_all(lg_lgamma(x), y, 8);
        for (int i = 0; i < 8; i++)
                assert_true(fabs(y[i] / lgammas[i] - 1) < 1e-13);
        read_all(lg_digamma(x), y, 8);
        for (int i = 0; i < 8; i++)
                assert_true(fabs(y[i] / digammas[i] - 1) < 1e-13);
        read_all(lg_erfinv(REALS(1e-300, 1e-9, 0.25, 0.49999, 0.50001, 0.999, -0.999999999, 0.9999999999999999)), y, 8);
        for (int i = 0; i < 8; i++)
                assert_true(fabs(y[i] / inverses[i] - 1) < 1e-13);
        lg_close(c);
}

TEST_CASE(values_that_are_not_finite)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_set_requires_grad(REALS(NAN, INFINITY, -INFINITY, 3), true);
        lg_tensor *y = lg_nan_to_num(x);
        assert_list(y, 0, 0, 1.7976931348623157e308, -1.7976931348623157e308, 3);
        assert_true(lg_backward(lg_sum(lg_mul_scalar(y, 2))));
        assert_list(lg_grad_of(x), 0, 0, 0, 0, 2);
        assert_list(lg_nan_to_num(x, .nan = 1, .posinf = LG_ZERO, .neginf = -7), 0, 1, 0, -7, 3);
        assert_list(lg_nan_to_num(lg_cast(x, LG_F16)), 0, 0, 65504, -65504, 3);
        assert_list(lg_nan_to_num(lg_cast(x, LG_F32)), 0, 0, 3.4028234663852886e38, -3.4028234663852886e38, 3);
        assert_list(lg_nan_to_num(lg_cast(x, LG_BF16)), 0, 0, 3.3895313892515355e38, -3.3895313892515355e38, 3);
        assert_list(lg_nan_to_num(WHOLE(1, -2)), 0, 1, -2);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(integers_and_bits)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_I64, LG_I32, LG_U8};
        for (int d = 0; d < 3; d++) {
                lg_tensor *a = lg_cast(WHOLE(12, 255, 0), dtypes[d]), *b = lg_cast(WHOLE(10, 15, 3), dtypes[d]);
                assert_list(lg_bitwise_and(a, b), 0, 8, 15, 0);
                assert_list(lg_bitwise_or(a, b), 0, 14, 255, 3);
                assert_list(lg_bitwise_xor(a, b), 0, 6, 240, 3);
                assert_list(lg_bitwise_and_scalar(a, 9), 0, 8, 9, 0);
                assert_list(lg_bitwise_right_shift_scalar(a, 2), 0, 3, 63, 0);
                assert_list(
                        lg_bitwise_left_shift(lg_cast(WHOLE(1, 3, 5), dtypes[d]), lg_cast(WHOLE(0, 2, 90), dtypes[d])),
                        0, 1, 12, 0);
                assert_int_equal(lg_dtype_of(lg_bitwise_not(a)), dtypes[d]);
                assert_list(lg_bitwise_not(lg_slice(a, 0, 0, 2)), 0, d == 2 ? 243 : -13, d == 2 ? 0 : -256);
                assert_list(lg_signbit(a), 0, 0, 0, 0);
                assert_list(lg_threshold(a, 100, 1), 0, 1, 255, 1);
                assert_list(lg_remainder_scalar(a, 7), 0, 5, 3, 0);
                assert_list(lg_floor_divide_scalar(a, 7), 0, 1, 36, 0);
                assert_list(lg_fmax(a, b), 0, 12, 255, 3);
                assert_list(lg_addcmul(a, b, b, .value = 2), 0, d == 2 ? 212 : 212, d == 2 ? 193 : 705, 18);
        }
        assert_list(lg_bitwise_left_shift(WHOLE(1, 1, -5), WHOLE(-1, 64, 2)), 0, 0, 0, -20);
        assert_list(lg_bitwise_right_shift(WHOLE(8, -8, -5), WHOLE(-1, 64, 1)), 0, 0, -1, -3);
        lg_tensor *t = lg_cast(WHOLE(1, 0), LG_BOOL);
        assert_int_equal(lg_dtype_of(lg_bitwise_not(t)), LG_BOOL);
        assert_list(lg_bitwise_not(t), 0, 0, 1);
        assert_list(lg_bitwise_xor(t, lg_bitwise_not(t)), 0, 1, 1);
        assert_int_equal(lg_dtype_of(lg_bitwise_and(t, WHOLE(3))), LG_I64);
        assert_int_equal(lg_numel(lg_bitwise_or(lg_slice(t, 0, 0, 0), lg_slice(t, 0, 0, 1))), 0);
        assert_null(lg_bitwise_and(t, REALS(1)));
        assert_error(c, LG_ERR_DTYPE, "bitwise_and: b");
        assert_null(lg_bitwise_not(REALS(1)));
        assert_error(c, LG_ERR_DTYPE, "bitwise_not: x");
        assert_null(lg_bitwise_or_scalar(lg_cast(WHOLE(1), LG_U8), 256));
        assert_error(c, LG_ERR_ARGUMENT, "bitwise_or_scalar");
        assert_null(lg_round_decimals(WHOLE(1), 1));
        assert_error(c, LG_ERR_DTYPE, "round_decimals");
        lg_close(c);
}

TEST_CASE(comparisons_within_a_tolerance)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = REALS(1, 1, NAN, INFINITY, INFINITY, 0), *b = REALS(1.000001, 1.1, NAN, INFINITY, 1e308, 1e-9);
        assert_list(lg_isclose(a, b), 0, 1, 0, 0, 1, 0, 1);
        assert_list(lg_isclose(a, b, .equal_nan = true, .rtol = 0.2), 0, 1, 1, 1, 1, 0, 1);
        assert_list(lg_isclose(a, b, .rtol = LG_ZERO, .atol = LG_ZERO), 0, 0, 0, 0, 1, 0, 0);
        assert_list(lg_isclose(WHOLE(100000, 3), WHOLE(100001, 4)), 0, 1, 0);
        assert_false(lg_allclose(a, b) || lg_equal(a, a) || lg_equal(a, b));
        assert_true(lg_allclose(lg_ones(c, LG_SHAPE(2, 3)), lg_ones(c, LG_SHAPE(3), .dtype = LG_F64)));
        assert_true(lg_equal(WHOLE(1, 2), REALS(1, 2)));
        assert_false(lg_equal(WHOLE(1, 1), WHOLE(1)));
        assert_true(lg_equal(lg_ones(c, LG_SHAPE(0, 3)), lg_ones(c, LG_SHAPE(0, 3))));
        assert_ok(c);
        assert_false(lg_allclose(a, b, .rtol = -1));
        assert_error(c, LG_ERR_ARGUMENT, "isclose: rtol is -1");
        assert_false(lg_equal(a, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "equal: b");
        assert_false(lg_allclose(a, lg_ones(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_SHAPE, "eq");
        lg_close(c);
}

TEST_CASE(random_slopes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_full(c, LG_SHAPE(1000), -2), *y = lg_rrelu(x, .lower = 0.1, .upper = 0.3, .training = true);
        assert_true(lg_item(lg_amax(y)) <= -0.2f && lg_item(lg_amin(y)) >= -0.6f);
        assert_float_equal(lg_item(lg_mean(y)), -0.4, 0.02);
        assert_true(lg_item(lg_std(y)) > 0.1);
        assert_list(lg_rrelu(REALS(3, -8), .training = true, .lower = 0.5, .upper = 0.5), 0, 3, -4);
        assert_null(lg_rrelu(x, .lower = 0.5));
        assert_error(c, LG_ERR_ARGUMENT, "rrelu: lower is 0.5");
        lg_module *m = lg_nn_rrelu(c, 0.1, 0.3);
        lg_train(m, false);
        assert_list(lg_forward(m, REALS(3, -8)), 1e-12, 3, -1.6);
        assert_list(lg_forward(lg_nn_threshold(c, 0.5, 7), REALS(0.5, 1)), 0, 7, 1);
        assert_list(lg_forward(lg_nn_softmin(c, 0), REALS(2, 2)), 1e-12, 0.5, 0.5);
        assert_list(lg_forward(lg_nn_softmax2d(c), lg_ones(c, LG_SHAPE(2, 1, 1))), 1e-6, 0.5, 0.5);
        assert_null(lg_forward(lg_nn_softmax2d(c), x));
        assert_error(c, LG_ERR_SHAPE, "Softmax2d");
        assert_null(lg_nn_rrelu(c, 0.5, 0.1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_rrelu");
        lg_close(c);
}

TEST_CASE(norms)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_set_requires_grad(REALS(0, 3), true), *y = lg_norm(x, .p = -1);
        assert_list(y, 0, 0);
        assert_true(lg_backward(y));
        assert_list(lg_grad_of(x), 0, 0, 0);
        assert_list(lg_norm(lg_detach(x), .p = -LG_INFINITY), 0, 0);
        assert_null(lg_norm(lg_ones(c, LG_SHAPE(0)), .p = -1));
        assert_error(c, LG_ERR_SHAPE, "norm: x is");
        assert_null(lg_norm(x, .p = NAN));
        assert_error(c, LG_ERR_ARGUMENT, "norm: p is NaN");
        assert_null(lg_renorm(x, 2, 0, 1));
        assert_error(c, LG_ERR_SHAPE, "renorm");
        assert_null(lg_renorm(lg_ones(c, LG_SHAPE(2, 2)), -1, 0, 1));
        assert_error(c, LG_ERR_ARGUMENT, "renorm: p is -1");
        assert_null(lg_renorm(lg_ones(c, LG_SHAPE(2, 2)), 2, 2, 1));
        assert_error(c, LG_ERR_ARGUMENT, "renorm");
        lg_close(c);
}
