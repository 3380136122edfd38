/* test_elementwise.c - functions, activations, roundings and divisions of whole quotient against PyTorch's numbers
 * (data/elementwise.txt), in all dtypes; tests and logic. */
#include "golden.h"

/* ---- PyTorch's numbers ---- */

#define Y golden_like(x, LG_SHAPE(3, 4), 0.7)
#define P lg_add_scalar(lg_square(Y), 0.1)
#define TIMES(s) lg_mul_scalar(x, s)
#define PLUS(s) lg_add_scalar(lg_square(x), s)
#define ROWS(ROW)                                                                                                      \
        ROW(exp2, lg_exp2(x), 3, 4)                                                                                    \
        ROW(log2, lg_log2(PLUS(0.5)), 3, 4)                                                                            \
        ROW(log10, lg_log10(PLUS(0.5)), 3, 4)                                                                          \
        ROW(tan, lg_tan(TIMES(0.6)), 3, 4)                                                                             \
        ROW(asin, lg_asin(TIMES(0.48)), 3, 4)                                                                          \
        ROW(acos, lg_acos(TIMES(0.48)), 3, 4)                                                                          \
        ROW(atan, lg_atan(x), 3, 4)                                                                                    \
        ROW(sinh, lg_sinh(x), 3, 4)                                                                                    \
        ROW(cosh, lg_cosh(x), 3, 4)                                                                                    \
        ROW(asinh, lg_asinh(x), 3, 4)                                                                                  \
        ROW(acosh, lg_acosh(PLUS(1.2)), 3, 4)                                                                          \
        ROW(atanh, lg_atanh(TIMES(0.48)), 3, 4)                                                                        \
        ROW(logit, lg_logit(lg_add_scalar(TIMES(0.2), 0.5)), 3, 4)                                                     \
        ROW(erfc, lg_erfc(x), 3, 4)                                                                                    \
        ROW(log_sigmoid, lg_log_sigmoid(TIMES(3)), 3, 4)                                                               \
        ROW(relu6, lg_relu6(TIMES(4)), 3, 4)                                                                           \
        ROW(selu, lg_selu(x), 3, 4)                                                                                    \
        ROW(celu, lg_celu(x, 2), 3, 4)                                                                                 \
        ROW(mish, lg_mish(TIMES(2)), 3, 4)                                                                             \
        ROW(hardtanh, lg_hardtanh(x, -1, 1.5), 3, 4)                                                                   \
        ROW(hardsigmoid, lg_hardsigmoid(TIMES(2)), 3, 4)                                                               \
        ROW(hardswish, lg_hardswish(TIMES(2)), 3, 4)                                                                   \
        ROW(hardshrink, lg_hardshrink(x, 0.5), 3, 4)                                                                   \
        ROW(softshrink, lg_softshrink(x, 0.5), 3, 4)                                                                   \
        ROW(tanhshrink, lg_tanhshrink(x), 3, 4)                                                                        \
        ROW(floor, lg_floor(TIMES(2)), 3, 4)                                                                           \
        ROW(ceil, lg_ceil(TIMES(2)), 3, 4)                                                                             \
        ROW(round, lg_round(TIMES(2)), 3, 4)                                                                           \
        ROW(trunc, lg_trunc(TIMES(2)), 3, 4)                                                                           \
        ROW(frac, lg_frac(TIMES(2)), 3, 4)                                                                             \
        ROW(fmod_a, lg_fmod(TIMES(3), Y), 3, 4)                                                                        \
        ROW(fmod_b, lg_fmod(lg_mul_scalar(Y, 3), lg_add_scalar(x, 2.5)), 3, 4)                                         \
        ROW(remainder_a, lg_remainder(TIMES(3), Y), 3, 4)                                                              \
        ROW(remainder_b, lg_remainder(lg_mul_scalar(Y, 3), lg_add_scalar(x, 2.5)), 3, 4)                               \
        ROW(floor_divide_a, lg_floor_divide(TIMES(3), Y), 3, 4)                                                        \
        ROW(floor_divide_b, lg_floor_divide(lg_mul_scalar(Y, 3), lg_add_scalar(x, 2.5)), 3, 4)                         \
        ROW(atan2_a, lg_atan2(x, Y), 3, 4)                                                                             \
        ROW(atan2_b, lg_atan2(Y, x), 3, 4)                                                                             \
        ROW(xlogy_a, lg_xlogy(x, P), 3, 4)                                                                             \
        ROW(xlogy_b, lg_xlogy(Y, PLUS(0.1)), 3, 4)                                                                     \
        ROW(logaddexp_a, lg_logaddexp(TIMES(9), Y), 3, 4)                                                              \
        ROW(logaddexp_b, lg_logaddexp(Y, TIMES(9)), 3, 4)                                                              \
        ROW(erfinv, lg_erfinv(TIMES(0.48)), 3, 4)                                                                      \
        ROW(lgamma, lg_lgamma(PLUS(0.4)), 3, 4)                                                                        \
        ROW(digamma, lg_digamma(PLUS(0.4)), 3, 4)                                                                      \
        ROW(polygamma1, lg_polygamma(PLUS(0.4), 1), 3, 4)                                                              \
        ROW(polygamma3, lg_polygamma(PLUS(0.4), 3), 3, 4)                                                              \
        ROW(sinc, lg_sinc(lg_add_scalar(x, 0.1)), 3, 4)                                                                \
        ROW(deg2rad, lg_deg2rad(x), 3, 4)                                                                              \
        ROW(rad2deg, lg_rad2deg(x), 3, 4)                                                                              \
        ROW(threshold, lg_threshold(x, 0.5, -2), 3, 4)                                                                 \
        ROW(fmax_a, lg_fmax(x, Y), 3, 4)                                                                               \
        ROW(fmax_b, lg_fmax(Y, x), 3, 4)                                                                               \
        ROW(fmin_a, lg_fmin(x, Y), 3, 4)                                                                               \
        ROW(fmin_b, lg_fmin(Y, x), 3, 4)                                                                               \
        ROW(hypot_a, lg_hypot(x, Y), 3, 4)                                                                             \
        ROW(hypot_b, lg_hypot(Y, x), 3, 4)                                                                             \
        ROW(copysign_a, lg_copysign(lg_add_scalar(x, 0.1), Y), 3, 4)                                                   \
        ROW(copysign_scalar, lg_copysign_scalar(lg_add_scalar(x, 0.1), -2), 3, 4)                                      \
        ROW(fmod_scalar, lg_fmod_scalar(TIMES(3), 1.3), 3, 4)                                                          \
        ROW(remainder_scalar, lg_remainder_scalar(TIMES(3), 1.3), 3, 4)                                                \
        ROW(xlogy_scalar, lg_xlogy_scalar(x, 1.3), 3, 4)                                                               \
        ROW(rxlogy_scalar, lg_rxlogy_scalar(PLUS(0.1), 1.3), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "elementwise.txt", golden_input, ROWS);
#undef Y
#undef P

#define ACTIVATIONS(ROW)                                                                                               \
        ROW(gelu, lg_gelu(x), 3, 4)                                                                                    \
        ROW(gelu_tanh, lg_gelu_tanh(x), 3, 4)                                                                          \
        ROW(softplus, lg_softplus(x, 1.5, 2.0), 3, 4)                                                                  \
        ROW(elu, lg_elu(x, 1.3), 3, 4)                                                                                 \
        ROW(leaky_relu, lg_leaky_relu(x, 0.1), 3, 4)                                                                   \
        ROW(silu, lg_silu(x), 3, 4)                                                                                    \
        ROW(pow, lg_pow_scalar(lg_add_scalar(lg_mul(x, x), 0.5), 2.5), 3, 4)

GOLDEN_TEST(activations_as_pytorch_computes_them, "ops.txt", golden_ops_input, ACTIVATIONS);

/* ---- dtypes ---- */

static const lg_dtype floats[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
static const double limits[] = {1e-12, 1e-5, 2e-3, 1.6e-2};

typedef struct unary {
        const char *name;
        lg_tensor *(*op)(lg_tensor *x);
        double low, high;
} unary;
#define PARAMS0 (x)
#define PARAMS1(v) (x, v)
#define PARAMS2(v, w) (x, v, w)
#define UNARY(name, types, params, ...)                                                                                \
        static lg_tensor *row_##name(lg_tensor *x)                                                                     \
        {                                                                                                              \
                return lg_##name params;                                                                               \
        }
#define BINARY(...)
#define TERNARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#include "../kernels/pointwise.def"
#undef UNARY
#define DOMAIN(lo, hi) lo, hi
#define UNARY(name, types, params, formula, dx, domain, kinks) {#name, row_##name, domain},
static const unary unaries[] = {
#include "../kernels/pointwise.def"
};

/* All rows in every float dtype, of strides, against f64 of what the dtype holds. */
TEST_CASE(float_dtypes)
{
        enum { N = 77, HALF = 39 };
        lg_ctx *c = open_ctx();
        for (size_t r = 0; r < sizeof unaries / sizeof *unaries; r++)
                for (int d = 1; d < 4; d++) {
                        lg_scope s = lg_scope_begin(c);
                        double low = unaries[r].low, high = unaries[r].high, want[N], every[HALF];
                        lg_tensor *i = lg_remainder(lg_arange(c, 1, N + 1, 1), lg_scalar(c, 13, .dtype = LG_I64));
                        lg_tensor *x = lg_add_scalar(lg_mul_scalar(lg_cast(i, LG_F64), (high - low) / 12.5), low);
                        x = lg_cast(x, floats[d]);
                        read_all(unaries[r].op(lg_cast(x, LG_F64)), want, N);
                        lg_tensor *y = unaries[r].op(x);
                        assert_ok(c);
                        assert_int_equal(lg_dtype_of(y), floats[d]);
                        assert_values(y, want, N, limits[d]);
                        for (int k = 0; k < HALF; k++)
                                every[k] = want[2 * k];
                        assert_values(unaries[r].op(lg_slice(x, 0, 0, LG_MAX, .step = 2)), every, HALF, limits[d]);
                        assert_int_equal(lg_numel(unaries[r].op(lg_slice(x, 0, 0, 0))), 0);
                        lg_scope_end(c, s);
                }
        lg_close(c);
}

TEST_CASE(integers)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_I64, LG_I32};
        for (int d = 0; d < 2; d++) {
                lg_dtype t = dtypes[d];
                lg_tensor *a =
                        lg_cast(lg_from(c, ((int64_t[]){7, -7, 7, -7, 6, -5, 0}), LG_SHAPE(7), .dtype = LG_I64), t);
                lg_tensor *b =
                        lg_cast(lg_from(c, ((int64_t[]){3, 3, -3, -3, 2, 0, 0}), LG_SHAPE(7), .dtype = LG_I64), t);
                assert_int_equal(lg_dtype_of(lg_remainder(a, b)), t);
                assert_list(lg_fmod(a, b), 0, 1, -1, 1, -1, 0, -5, 0);
                assert_list(lg_remainder(a, b), 0, 1, 2, -2, -1, 0, -5, 0);
                assert_list(lg_floor_divide(a, b), 0, 2, -3, -3, 2, 3, 0, 0);
                assert_list(lg_relu6(a), 0, 6, 0, 6, 0, 6, 0, 0);
                assert_list(lg_hardtanh(a, -2, 4.5), 0, 4, -2, 4, -2, 4, -2, 0);
                assert_list(lg_frac(a), 0, 0, 0, 0, 0, 0, 0, 0);
                assert_list(lg_logical_and(a, b), 0, 1, 1, 1, 1, 1, 0, 0);
                assert_list(lg_logical_or(a, b), 0, 1, 1, 1, 1, 1, 1, 0);
                assert_list(lg_logical_xor(a, b), 0, 0, 0, 0, 0, 0, 1, 0);
                assert_list(lg_logical_not(a), 0, 0, 0, 0, 0, 0, 0, 1);
                assert_list(lg_isfinite(a), 0, 1, 1, 1, 1, 1, 1, 1);
                assert_list(lg_isnan(a), 0, 0, 0, 0, 0, 0, 0, 0);
                assert_list(lg_isinf(a), 0, 0, 0, 0, 0, 0, 0, 0);
                assert_int_equal(lg_dtype_of(lg_exp2(b)), LG_F32);
                assert_list(lg_exp2(b), 1e-6, 8, 8, 0.125, 0.125, 4, 1, 1);
                assert_int_equal(lg_dtype_of(lg_atan2(a, b)), LG_F32);
                assert_int_equal(lg_dtype_of(lg_logaddexp(a, b)), LG_F32);
        }
        /* the division that traps, and beyond 2^53 */
        int64_t extremes[] = {INT64_MIN, 9007199254740993, INT64_MAX}, got[3];
        lg_tensor *x = lg_from(c, extremes, LG_SHAPE(3), .dtype = LG_I64);
        lg_tensor *minus = lg_full(c, LG_SHAPE(1), -1, .dtype = LG_I64);
        assert_list(lg_remainder(x, minus), 0, 0, 0, 0);
        assert_list(lg_fmod(x, minus), 0, 0, 0, 0);
        assert_true(lg_read(lg_floor_divide(x, minus), got, LG_I64, sizeof got));
        assert_true(got[0] == INT64_MIN && got[1] == -9007199254740993 && got[2] == -INT64_MAX);
        lg_tensor *(*const roundings[])(lg_tensor *) = {lg_floor, lg_ceil, lg_round, lg_trunc};
        for (int i = 0; i < 4; i++) {
                assert_true(lg_read(roundings[i](x), got, LG_I64, sizeof got));
                assert_memory_equal(got, extremes, sizeof got);
        }
        lg_tensor *u = lg_full(c, LG_SHAPE(2), 250, .dtype = LG_U8),
                  *seven = lg_full(c, LG_SHAPE(2), 7, .dtype = LG_U8);
        assert_list(lg_floor_divide(u, seven), 0, 35, 35);
        assert_list(lg_remainder(u, seven), 0, 5, 5);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(tests_and_logic)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_cast(lg_from(c, ((double[]){0, -0.0, 1, NAN, INFINITY, -INFINITY, -3e4}), LG_SHAPE(7),
                                               .dtype = LG_F64, .requires_grad = true),
                                       floats[d]);
                assert_int_equal(lg_dtype_of(lg_isnan(x)), LG_BOOL);
                assert_false(lg_requires_grad(lg_isnan(x)) || lg_requires_grad(lg_logical_not(x)));
                assert_list(lg_isnan(x), 0, 0, 0, 0, 1, 0, 0, 0);
                assert_list(lg_isinf(x), 0, 0, 0, 0, 0, 1, 1, 0);
                assert_list(lg_isfinite(x), 0, 1, 1, 1, 0, 0, 0, 1);
                assert_list(lg_logical_not(x), 0, 1, 1, 0, 0, 0, 0, 0);
                assert_list(lg_isnan(lg_slice(x, 0, 1, LG_MAX, .step = 2)), 0, 0, 1, 0);
                lg_tensor *one = lg_ones(c, LG_SHAPE(1), .dtype = LG_I64); /* of another dtype, broadcast */
                assert_list(lg_logical_and(x, one), 0, 0, 0, 1, 1, 1, 1, 1);
                assert_list(lg_logical_or(x, lg_logical_not(one)), 0, 0, 0, 1, 1, 1, 1, 1);
                assert_list(lg_logical_xor(x, one), 0, 1, 1, 0, 0, 0, 0, 0);
        }
        lg_tensor *t = lg_from(c, ((bool[]){1, 1, 0, 0}), LG_SHAPE(2, 2), .dtype = LG_BOOL);
        lg_tensor *f = lg_transpose(t, 0, 1);
        assert_list(lg_logical_and(t, f), 0, 1, 0, 0, 0);
        assert_list(lg_logical_or(t, f), 0, 1, 1, 1, 0);
        assert_list(lg_logical_xor(t, f), 0, 0, 1, 1, 0);
        assert_list(lg_logical_not(f), 0, 0, 1, 0, 1);
        assert_list(lg_isfinite(t), 0, 1, 1, 1, 1);
        assert_int_equal(lg_numel(lg_isnan(lg_ones(c, LG_SHAPE(0, 3)))), 0);
        assert_ok(c);
        drop(lg_logical_and(t, lg_ones(c, LG_SHAPE(3))));
        assert_error(c, LG_ERR_SHAPE, "logical_and");
        lg_close(c);
}

/* x - tanh(x) as a sum without cancellation: 2k x^(2k + 1) / (2k + 1)! over cosh(x). */
static double shrunk(double x)
{
        double term = x, sum = 0;
        for (int k = 1; k < 40; k++) {
                term *= x / (2 * k) * x / (2 * k + 1);
                sum += 2 * k * term;
        }
        return sum / cosh(x);
}

TEST_CASE(digits_near_zero)
{
        const double x[] = {1e-12, 1e-7, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.7, 0.99, 1, 1.01, 2, 5};
        const double digits[] = {1e-12, 1e-6, 1e-3, 8e-3}, least[] = {0, 1e-42, 6e-8, 1e-38};
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (int i = 0; i < 26; i++) {
                        lg_tensor *t = lg_scalar(c, i % 2 ? -x[i / 2] : x[i / 2], .dtype = floats[d]);
                        const double want = shrunk(lg_item(t));
                        assert_near(lg_item(lg_tanhshrink(t)), want, digits[d] * fabs(want) + least[d]);
                }
        assert_ok(c);
        lg_close(c);
}

/* What the parts of a formula exceed, the result may not. */
TEST_CASE(results_in_range)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 2; d++) {
                lg_tensor *x = lg_cast(lg_from(c, ((float[]){90, -2, 0, 1000, -800}), LG_SHAPE(5)), floats[d]);
                assert_list(lg_softplus(x, 1, 2000), 1e-5, 90, log1p(exp(-2)), log(2), 1000, 0);
                assert_list(lg_softplus(x, 1e30, 1e38), 1e-5, 90, 0, 0, 1000, 0);
                assert_list(lg_softplus(x, -1, 20), 1e-5, 0, -2 - log1p(exp(-2)), -log(2), 0, -800);
                assert_near(lg_item(lg_softplus(lg_scalar(c, -50, .dtype = floats[d]), 1, 99)), exp(-50), 1e-27);
                assert_near(lg_item(lg_sigmoid(lg_scalar(c, -90, .dtype = floats[d]))), exp(-90), 1e-43);
        }
        assert_ok(c);
        lg_close(c);
}

/* A rest that is 0 has the sign of b, as Python's: -1.0 % 1.0 is 0.0, 1.0 % -1.0 is -0.0. */
TEST_CASE(remainders_of_zero)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                lg_tensor *a = lg_cast(lg_from(c, ((double[]){-1, 1, -6, 6, -0.0, 0}), LG_SHAPE(6)), floats[d]);
                lg_tensor *b = lg_cast(lg_from(c, ((double[]){1, -1, 3, -3, 2, -2}), LG_SHAPE(6)), floats[d]);
                double v[6];
                read_all(lg_remainder(a, b), v, 6);
                for (int i = 0; i < 6; i++)
                        assert_true(v[i] == 0 && (bool)signbit(v[i]) == i % 2);
        }
        assert_ok(c);
        assert_fails(c, lg_fmod(lg_ones(c, LG_SHAPE(2)), NULL), LG_ERR_ARGUMENT, "fmod: b is NULL");
        assert_fails(c, lg_atan2(lg_ones(c, LG_SHAPE(2)), lg_ones(c, LG_SHAPE(3))), LG_ERR_SHAPE, "atan2");
        lg_close(c);
}

/* As PyTorch: exact, of the promoted dtype, wrapping around. */
TEST_CASE(powers_of_integers)
{
        lg_ctx *c = open_ctx();
        const int64_t base[] = {7, 3, -3, -1, -1, 1, 0, 0, 2, -5, 2}, by[] = {15, 40, 39, -3, -2, -9, 0, -1, -1, 1, 64};
        const int64_t want[] = {
                4747561509943, (int64_t)12157665459056928801u, -4052555153018976267, -1, 1, 1, 1, 0, 0, -5, 0};
        int64_t got[11];
        lg_tensor *a = lg_from(c, base, LG_SHAPE(11), .dtype = LG_I64),
                  *b = lg_from(c, by, LG_SHAPE(11), .dtype = LG_I64);
        assert_true(lg_read(lg_pow(a, b), got, LG_I64, sizeof got));
        assert_memory_equal(got, want, sizeof got);
        lg_tensor *p = lg_pow(lg_cast(a, LG_I32), lg_cast(b, LG_I32));
        assert_int_equal(lg_dtype_of(p), LG_I32);
        assert_true(lg_read(p, got, LG_I64, sizeof got));
        for (int i = 0; i < 11; i++)
                assert_int_equal(got[i], (int32_t)want[i]);
        lg_tensor *three = lg_full(c, LG_SHAPE(1), 3, .dtype = LG_U8),
                  *seven = lg_full(c, LG_SHAPE(1), 7, .dtype = LG_U8);
        assert_int_equal(lg_dtype_of(lg_pow(three, seven)), LG_U8);
        assert_list(lg_pow(three, seven), 0, 139); /* 2187 - 8 * 256 */
        assert_int_equal(lg_dtype_of(lg_pow(three, lg_cast(seven, LG_I64))), LG_I64);
        lg_tensor *no = lg_zeros(c, LG_SHAPE(1), .dtype = LG_BOOL);
        assert_int_equal(lg_dtype_of(lg_pow(no, no)), LG_I64);
        assert_list(lg_pow(no, no), 0, 1);
        assert_int_equal(lg_dtype_of(lg_pow(seven, lg_scalar(c, 0.5))), LG_F32);
        assert_int_equal(lg_dtype_of(lg_pow_scalar(seven, 2)), LG_F32);
        assert_ok(c);
        lg_close(c);
}

/* What PyTorch refuses; and takes. */
TEST_CASE(numbers_of_activations)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){-2, -0.5f, 2}), LG_SHAPE(3)), *whole = lg_cast(x, LG_I64);
        drop(lg_softshrink(x, -1));
        assert_error(c, LG_ERR_ARGUMENT, "softshrink: lambda is -1; 0 or more");
        drop(lg_softshrink(x, NAN));
        assert_error(c, LG_ERR_ARGUMENT, "softshrink: lambda is nan");
        drop(lg_celu(x, 0));
        assert_error(c, LG_ERR_ARGUMENT, "celu: alpha is 0");
        drop(lg_hardtanh(x, 1, -1));
        assert_error(c, LG_ERR_ARGUMENT, "hardtanh: low is 1, above high, which is -1");
        drop(lg_hardtanh(whole, 1, 0.5));
        assert_error(c, LG_ERR_ARGUMENT, "hardtanh: low is 1, above high, which is 0.5");
        assert_null(lg_nn_softshrink(c, -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_softshrink: lambda is -1");
        assert_null(lg_nn_celu(c, 0));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_celu: alpha is 0");
        assert_null(lg_nn_hardtanh(c, 2, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_hardtanh: low is 2");
        assert_list(lg_softshrink(x, 0), 0, -2, -0.5, 2);
        assert_list(lg_hardtanh(x, 1, 1), 0, 1, 1, 1);
        assert_list(lg_clamp(x, 1, -1), 0, -1, -1, -1);
        assert_list(lg_hardshrink(x, -1), 0, -2, -0.5, 2);
        assert_list(lg_leaky_relu(x, -1), 0, 2, 0.5, 2);
        assert_list(lg_elu(x, -1), 1e-6, -expm1(-2), -expm1(-0.5), 2);
        assert_list(lg_celu(x, -1), 1e-6, -expm1(2), -expm1(0.5), 2);
        assert_list(lg_softplus(x, 0, 20), 0, INFINITY, INFINITY, INFINITY);
        assert_ok(c);
        lg_close(c);
}
