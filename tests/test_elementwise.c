/* test_elementwise.c - functions, activations, roundings and divisions of whole quotient against PyTorch's numbers
 * (data/elementwise.txt); what they make of infinities, NaN, -0 and kinks; all dtypes; tests and logic. */
#include "golden.h"

/* ---- PyTorch's numbers ---- */

static lg_tensor *like(lg_tensor *t, const lg_tensor *x)
{
        return lg_cast(t, lg_dtype_of(x));
}
#define Y like(golden_tensor(c, LG_SHAPE(3, 4), 0.7), x)
#define P lg_add_scalar(lg_square(Y), 0.1)
#define TIMES(s) lg_mul_scalar(x, s)
#define PLUS(s) lg_add_scalar(lg_square(x), s)
#define ROWS                                                                                                           \
        ROW(exp2, lg_exp2(x))                                                                                          \
        ROW(log2, lg_log2(PLUS(0.5)))                                                                                  \
        ROW(log10, lg_log10(PLUS(0.5)))                                                                                \
        ROW(tan, lg_tan(TIMES(0.6)))                                                                                   \
        ROW(asin, lg_asin(TIMES(0.48)))                                                                                \
        ROW(acos, lg_acos(TIMES(0.48)))                                                                                \
        ROW(atan, lg_atan(x))                                                                                          \
        ROW(sinh, lg_sinh(x))                                                                                          \
        ROW(cosh, lg_cosh(x))                                                                                          \
        ROW(asinh, lg_asinh(x))                                                                                        \
        ROW(acosh, lg_acosh(PLUS(1.2)))                                                                                \
        ROW(atanh, lg_atanh(TIMES(0.48)))                                                                              \
        ROW(erfc, lg_erfc(x))                                                                                          \
        ROW(log_sigmoid, lg_log_sigmoid(TIMES(3)))                                                                     \
        ROW(relu6, lg_relu6(TIMES(4)))                                                                                 \
        ROW(selu, lg_selu(x))                                                                                          \
        ROW(celu, lg_celu(x, 2))                                                                                       \
        ROW(mish, lg_mish(TIMES(2)))                                                                                   \
        ROW(hardtanh, lg_hardtanh(x, -1, 1.5))                                                                         \
        ROW(hardsigmoid, lg_hardsigmoid(TIMES(2)))                                                                     \
        ROW(hardswish, lg_hardswish(TIMES(2)))                                                                         \
        ROW(hardshrink, lg_hardshrink(x, 0.5))                                                                         \
        ROW(softshrink, lg_softshrink(x, 0.5))                                                                         \
        ROW(tanhshrink, lg_tanhshrink(x))                                                                              \
        ROW(floor, lg_floor(TIMES(2)))                                                                                 \
        ROW(ceil, lg_ceil(TIMES(2)))                                                                                   \
        ROW(round, lg_round(TIMES(2)))                                                                                 \
        ROW(trunc, lg_trunc(TIMES(2)))                                                                                 \
        ROW(frac, lg_frac(TIMES(2)))                                                                                   \
        ROW(fmod_a, lg_fmod(TIMES(3), Y))                                                                              \
        ROW(fmod_b, lg_fmod(lg_mul_scalar(Y, 3), lg_add_scalar(x, 2.5)))                                               \
        ROW(remainder_a, lg_remainder(TIMES(3), Y))                                                                    \
        ROW(remainder_b, lg_remainder(lg_mul_scalar(Y, 3), lg_add_scalar(x, 2.5)))                                     \
        ROW(floor_divide_a, lg_floor_divide(TIMES(3), Y))                                                              \
        ROW(floor_divide_b, lg_floor_divide(lg_mul_scalar(Y, 3), lg_add_scalar(x, 2.5)))                               \
        ROW(atan2_a, lg_atan2(x, Y))                                                                                   \
        ROW(atan2_b, lg_atan2(Y, x))                                                                                   \
        ROW(xlogy_a, lg_xlogy(x, P))                                                                                   \
        ROW(xlogy_b, lg_xlogy(Y, PLUS(0.1)))                                                                           \
        ROW(lerp_a, lg_lerp_scalar(x, Y, 0.3))                                                                         \
        ROW(lerp_b, lg_lerp_scalar(Y, x, 0.8))                                                                         \
        ROW(lerp_w, lg_lerp(Y, P, x))
#define ROW(name, expression)                                                                                          \
        static lg_tensor *run_##name(lg_ctx *c, lg_tensor *x)                                                          \
        {                                                                                                              \
                (void)c;                                                                                               \
                return expression;                                                                                     \
        }
ROWS
#undef ROW
#define ROW(name, expression) {#name, {2, {3, 4}}, run_##name},
        static const golden rows[] = {ROWS};
#undef Y
#undef P

static void as_pytorch_computes_it(void **state)
{
        (void)state;
        golden_check("elementwise.txt", golden_input, rows, sizeof rows / sizeof *rows);
}

/* ---- the ends of the number line ---- */

static const lg_dtype floats[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
static const double limits[] = {1e-12, 1e-5, 2e-3, 1.6e-2};

/* Relative to the value itself, and zeros have their sign. */
static void assert_one(const char *what, lg_dtype dtype, double got, double want, double limit)
{
        bool same = got == want && (want != 0 || signbit(got) == signbit(want));
        if (!same && !(isnan(got) && isnan(want)) && !(fabs(got - want) <= limit * fabs(want)))
                fail_msg("%s in %s: %.17g, not %.17g", what, lg_dtype_name(dtype), got, want);
}

typedef struct one {
        const char *name;
        lg_tensor *(*op)(lg_tensor *x);
        double x, y;
} one;
#define ONE(name, x, y)                                                                                                \
        {                                                                                                              \
#name, lg_##name, x, y                                                                                 \
        }
#define CALL(name, ...)                                                                                                \
        static lg_tensor *call_##name(lg_tensor *x)                                                                    \
        {                                                                                                              \
                return lg_##name(x, __VA_ARGS__);                                                                      \
        }
CALL(celu, 2)
CALL(hardtanh, -1, 2)
CALL(hardshrink, 0.5)
CALL(softshrink, 0.5)
#define CALLED(name, x, y)                                                                                             \
        {                                                                                                              \
#name, call_##name, x, y                                                                               \
        }

static void special_values(void **state)
{
        (void)state;
        const double inf = INFINITY, nan = NAN, pi = acos(-1);
        /* Every value can be told in f16; what overflows does so in f64 too. */
        const one ones[] = {
                ONE(exp2, inf, inf),
                ONE(exp2, -inf, 0),
                ONE(exp2, 2000, inf),
                ONE(exp2, -2000, 0),
                ONE(exp2, 3, 8),
                ONE(log2, 0, -inf),
                ONE(log2, -0.0, -inf),
                ONE(log2, -1, nan),
                ONE(log2, inf, inf),
                ONE(log2, 1, 0),
                ONE(log2, 1024, 10),
                ONE(log10, 0, -inf),
                ONE(log10, -2, nan),
                ONE(log10, inf, inf),
                ONE(log10, 1, 0),
                ONE(log10, 1000, 3),
                ONE(tan, 0, 0),
                ONE(tan, -0.0, -0.0),
                ONE(tan, inf, nan),
                ONE(tan, 30000, sin(30000.0) / cos(30000.0)),
                ONE(asin, -0.0, -0.0),
                ONE(asin, 1, pi / 2),
                ONE(asin, -1, -pi / 2),
                ONE(asin, 1.5, nan),
                ONE(asin, -inf, nan),
                ONE(acos, 1, 0),
                ONE(acos, -1, pi),
                ONE(acos, 0, pi / 2),
                ONE(acos, -2, nan),
                ONE(atan, inf, pi / 2),
                ONE(atan, -inf, -pi / 2),
                ONE(atan, -0.0, -0.0),
                ONE(sinh, 1000, inf),
                ONE(sinh, -1000, -inf),
                ONE(sinh, -0.0, -0.0),
                ONE(cosh, -1000, inf),
                ONE(cosh, 0, 1),
                ONE(cosh, inf, inf),
                ONE(asinh, 30000, log(30000 + sqrt(9e8 + 1))),
                ONE(asinh, -inf, -inf),
                ONE(asinh, -0.0, -0.0),
                ONE(acosh, 1, 0),
                ONE(acosh, 0.5, nan),
                ONE(acosh, -3, nan),
                ONE(acosh, inf, inf),
                ONE(acosh, 30000, log(30000 + sqrt(9e8 - 1))),
                ONE(atanh, 1, inf),
                ONE(atanh, -1, -inf),
                ONE(atanh, 2, nan),
                ONE(atanh, -0.0, -0.0),
                ONE(erfc, 0, 1),
                ONE(erfc, -inf, 2),
                ONE(erfc, inf, 0),
                ONE(erfc, 2, 0.004677734981047266),
                ONE(log_sigmoid, -1000, -1000),
                ONE(log_sigmoid, -inf, -inf),
                ONE(log_sigmoid, 8, -0.0003354063728956096),
                ONE(log_sigmoid, 0, -M_LN2),
                ONE(relu6, inf, 6),
                ONE(relu6, -inf, 0),
                ONE(relu6, 6, 6),
                ONE(selu, inf, inf),
                ONE(selu, -inf, -1.7580993408473766),
                CALLED(celu, -inf, -2),
                CALLED(celu, 1000, 1000),
                ONE(mish, 1000, 1000),
                ONE(mish, inf, inf),
                ONE(mish, -1000, -0.0),
                CALLED(hardtanh, -inf, -1),
                CALLED(hardtanh, inf, 2),
                ONE(hardsigmoid, inf, 1),
                ONE(hardsigmoid, -inf, 0),
                ONE(hardsigmoid, 0, 0.5),
                ONE(hardswish, inf, inf),
                ONE(hardswish, 1000, 1000),
                ONE(hardswish, -1000, -0.0),
                CALLED(hardshrink, inf, inf),
                CALLED(hardshrink, 0.5, 0),
                CALLED(hardshrink, -0.75, -0.75),
                CALLED(softshrink, -inf, -inf),
                CALLED(softshrink, -0.75, -0.25),
                CALLED(softshrink, 0.25, 0),
                ONE(tanhshrink, 1000, 999),
                ONE(tanhshrink, -inf, -inf),
                ONE(floor, -0.5, -1),
                ONE(floor, -0.0, -0.0),
                ONE(floor, 2.75, 2),
                ONE(floor, -inf, -inf),
                ONE(ceil, -0.5, -0.0),
                ONE(ceil, 2.25, 3),
                ONE(ceil, inf, inf),
                ONE(round, 0.5, 0),
                ONE(round, 1.5, 2),
                ONE(round, 2.5, 2),
                ONE(round, -2.5, -2),
                ONE(round, -3.5, -4),
                ONE(round, -0.25, -0.0),
                ONE(round, 0.75, 1),
                ONE(round, inf, inf),
                ONE(trunc, -0.75, -0.0),
                ONE(trunc, -2.75, -2),
                ONE(trunc, 2.75, 2),
                ONE(trunc, -inf, -inf),
                ONE(frac, -1.25, -0.25),
                ONE(frac, 2.5, 0.5),
                ONE(frac, inf, nan),
        };
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
                        lg_tensor *x = lg_full(c, ones[i].x, LG_SHAPE(3), .dtype = floats[d]);
                        double v[3], in[3];
                        read_all(x, in, 3);
                        if (in[0] != ones[i].x && !isnan(in[0]))
                                continue; /* 30000 in bf16 is another number */
                        read_all(ones[i].op(x), v, 3);
                        assert_one(ones[i].name, floats[d], v[2], ones[i].y, limits[d]);
                }
        assert_ok(c);
        /* where the neighbours of a double or float are whole, and where 1 - erf is nothing */
        double v[4];
        lg_tensor *x = lg_from(c, ((double[]){4503599627370497, -4503599627370497.5, 0.49999999999999994, 1e300}),
                               LG_SHAPE(4), .dtype = LG_F64);
        assert_list(lg_round(x), 0, 4503599627370497, -4503599627370498, 0, 1e300);
        assert_list(lg_floor(x), 0, 4503599627370497, -4503599627370498, 0, 1e300);
        x = lg_from(c, ((float[]){8388609, -4194305.5, 0.49999997f, 3e38f}), LG_SHAPE(4));
        read_all(lg_trunc(x), v, 4);
        assert_true(v[0] == 8388609 && v[1] == -4194305 && v[2] == 0 && v[3] == 3e38f);
        assert_list(lg_round(x), 0, 8388609, -4194306, 0, 3e38f);
        assert_one("erfc", LG_F64, lg_item(lg_erfc(lg_scalar(c, 5, .dtype = LG_F64))), 1.5374597944280349e-12, 1e-13);
        assert_one("log_sigmoid", LG_F64, lg_item(lg_log_sigmoid(lg_scalar(c, 40, .dtype = LG_F64))),
                   -4.248354255291589e-18, 1e-13);
        assert_one("log_sigmoid", LG_F32, lg_item(lg_log_sigmoid(lg_scalar(c, 40))), -4.248354255291589e-18, 1e-5);
        lg_close(c);
}

typedef struct two {
        const char *name;
        lg_tensor *(*op)(lg_tensor *a, lg_tensor *b);
        double a, b, y;
} two;
#define TWO(name, a, b, y)                                                                                             \
        {                                                                                                              \
#name, lg_##name, a, b, y                                                                              \
        }

static void special_pairs(void **state)
{
        (void)state;
        const double inf = INFINITY, nan = NAN, pi = acos(-1);
        const two twos[] = {
                TWO(fmod, 5, 3, 2),
                TWO(fmod, -5, 3, -2),
                TWO(fmod, 5, -3, 2),
                TWO(fmod, 5, inf, 5),
                TWO(fmod, 1, 0, nan),
                TWO(fmod, inf, 2, nan),
                TWO(fmod, -6, 3, -0.0),
                TWO(remainder, 5, 3, 2),
                TWO(remainder, -5, 3, 1),
                TWO(remainder, 5, -3, -1),
                TWO(remainder, -5, -3, -2),
                TWO(remainder, -5, inf, inf),
                TWO(remainder, 5, inf, 5),
                TWO(remainder, 1, 0, nan),
                TWO(floor_divide, 7, 2, 3),
                TWO(floor_divide, -7, 2, -4),
                TWO(floor_divide, 7, -2, -4),
                TWO(floor_divide, 1, 0, inf),
                TWO(floor_divide, -1, 0, -inf),
                TWO(floor_divide, 0, 0, nan),
                TWO(floor_divide, -5, inf, -1),
                TWO(floor_divide, 5, inf, 0),
                TWO(floor_divide, -0.0, 2, -0.0),
                TWO(floor_divide, inf, 2, nan),
                TWO(atan2, 0, -1, pi),
                TWO(atan2, -0.0, -1, -pi),
                TWO(atan2, 1, 0, pi / 2),
                TWO(atan2, -1, -0.0, -pi / 2),
                TWO(atan2, 0, 0, 0),
                TWO(atan2, -0.0, 1, -0.0),
                TWO(atan2, -1, -1, -3 * pi / 4),
                TWO(atan2, inf, inf, pi / 4),
                TWO(atan2, 1, -inf, pi),
                TWO(xlogy, 0, 0, 0),
                TWO(xlogy, 0, inf, 0),
                TWO(xlogy, 0, -1, 0),
                TWO(xlogy, 0, nan, nan),
                TWO(xlogy, 2, 0, -inf),
                TWO(xlogy, 1, -1, nan),
                TWO(xlogy, nan, 1, nan),
        };
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) {
                        lg_tensor *a = lg_full(c, twos[i].a, LG_SHAPE(3), .dtype = floats[d]);
                        lg_tensor *b = lg_full(c, twos[i].b, LG_SHAPE(3), .dtype = floats[d]);
                        double v[3];
                        read_all(twos[i].op(a, b), v, 3);
                        assert_one(twos[i].name, floats[d], v[1], twos[i].y, limits[d]);
                }
        /* 1 / 0.1 is 10, but 0.1 goes into 1 nine times, as the double next to 0.1 is greater */
        lg_tensor *a = lg_scalar(c, 1, .dtype = LG_F64), *b = lg_scalar(c, 0.1, .dtype = LG_F64);
        assert_near(lg_item(lg_floor_divide(a, b)), 9, 0);
        assert_near(lg_item(lg_remainder(a, b)), 0.09999999999999995, 1e-18);
        assert_ok(c);
        lg_close(c);
}

/* ---- derivatives where they are told, and far out ---- */

static lg_tensor *slope(lg_tensor *(*op)(lg_tensor *x), lg_tensor *x, int order)
{
        lg_tensor *y = op(x), *g = NULL;
        for (int i = 0; i < order; i++) {
                lg_tensor *r[1];
                lg_grad(LG_LIST(lg_sum(y)), LG_LIST(x), .result = r, .create_graph = i + 1 < order);
                y = g = r[0];
        }
        return g;
}

static void derivatives_at_kinks(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x =
                lg_from(c, ((double[]){-3, -1, 0, 0.5, 2, 3, 6}), LG_SHAPE(7), .dtype = LG_F64, .requires_grad = true);
        assert_list(slope(lg_relu6, x, 1), 0, 0, 0, 0, 1, 1, 1, 0);
        assert_list(slope(call_hardtanh, x, 1), 0, 0, 0, 1, 1, 0, 0, 0);
        assert_list(slope(lg_hardsigmoid, x, 1), 1e-15, 0, 1 / 6.0, 1 / 6.0, 1 / 6.0, 1 / 6.0, 0, 0);
        assert_list(slope(lg_hardswish, x, 1), 1e-15, 0, 1 / 6.0, 0.5, 2 / 3.0, 7 / 6.0, 1, 1);
        assert_list(slope(call_hardshrink, x, 1), 0, 1, 1, 0, 0, 1, 1, 1);
        assert_list(slope(call_softshrink, x, 1), 0, 1, 1, 0, 0, 1, 1, 1);
        assert_list(slope(lg_round, x, 1), 0, 0, 0, 0, 0, 0, 0, 0);
        assert_list(slope(lg_frac, x, 1), 0, 1, 1, 1, 1, 1, 1, 1);
        assert_near(lg_item(lg_select(slope(lg_selu, x, 1), 0, 2)), 1.0507009873554805 * 1.6732632423543772, 1e-12);
        lg_close(c);
}

static lg_tensor *elu(lg_tensor *x)
{
        return lg_elu(x, 2);
}

/* Neither infinity nor NaN comes of the side that is not chosen. */
static void derivatives_far_out(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *(*const ops[])(lg_tensor *) = {lg_log_sigmoid, lg_mish, lg_selu, call_celu, elu};
        const double left[] = {1, 0, 0, 0, 0}, right[] = {0, 1, 1.0507009873554805, 1, 1};
        for (int d = 0; d < 2; d++)
                for (int i = 0; i < 5; i++) {
                        lg_tensor *x = lg_from(c, ((double[]){-1000, 1000}), LG_SHAPE(2), .dtype = LG_F64);
                        x = lg_requires_grad(lg_cast(x, floats[d]), true);
                        assert_list(slope(ops[i], x, 1), 1e-6, left[i], right[i]);
                        assert_list(slope(ops[i], x, 2), 1e-6, 0, 0);
                        assert_list(slope(ops[i], x, 3), 1e-6, 0, 0);
                        assert_ok(c);
                }
        /* 0 log 0: no NaN */
        lg_tensor *a = lg_from(c, ((double[]){0, 0, 2}), LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        lg_tensor *b = lg_from(c, ((double[]){0, 3, 4}), LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true), *g[2];
        lg_grad(LG_LIST(lg_sum(lg_xlogy(a, b))), LG_LIST(a, b), .result = g);
        assert_list(g[0], 1e-15, 0, log(3), log(4));
        assert_list(g[1], 1e-15, 0, 0, 0.5);
        assert_ok(c);
        lg_close(c);
}

/* ---- dtypes ---- */

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
static void float_dtypes(void **state)
{
        (void)state;
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

static void integers(void **state)
{
        (void)state;
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
        }
        /* the division that traps, and beyond 2^53 */
        int64_t extremes[] = {INT64_MIN, 9007199254740993, INT64_MAX}, got[3];
        lg_tensor *x = lg_from(c, extremes, LG_SHAPE(3), .dtype = LG_I64);
        lg_tensor *minus = lg_full(c, -1, LG_SHAPE(1), .dtype = LG_I64);
        assert_list(lg_remainder(x, minus), 0, 0, 0, 0);
        assert_list(lg_fmod(x, minus), 0, 0, 0, 0);
        assert_true(lg_read(lg_floor_divide(x, minus), got, LG_I64, sizeof got));
        assert_true(got[0] == INT64_MIN && got[1] == -9007199254740993 && got[2] == -INT64_MAX);
        lg_tensor *(*const roundings[])(lg_tensor *) = {lg_floor, lg_ceil, lg_round, lg_trunc};
        for (int i = 0; i < 4; i++) {
                assert_true(lg_read(roundings[i](x), got, LG_I64, sizeof got));
                assert_memory_equal(got, extremes, sizeof got);
        }
        lg_tensor *u = lg_full(c, 250, LG_SHAPE(2), .dtype = LG_U8),
                  *seven = lg_full(c, 7, LG_SHAPE(2), .dtype = LG_U8);
        assert_list(lg_floor_divide(u, seven), 0, 35, 35);
        assert_list(lg_remainder(u, seven), 0, 5, 5);
        assert_ok(c);
        lg_close(c);
}

static void tests_and_logic(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_cast(lg_from(c, ((double[]){0, -0.0, 1, NAN, INFINITY, -INFINITY, -3e4}), LG_SHAPE(7),
                                               .dtype = LG_F64, .requires_grad = true),
                                       floats[d]);
                assert_int_equal(lg_dtype_of(lg_isnan(x)), LG_BOOL);
                assert_false(lg_needs_grad(lg_isnan(x)) || lg_needs_grad(lg_logical_not(x)));
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
        lg_logical_and(t, lg_ones(c, LG_SHAPE(3)));
        assert_error(c, LG_ERR_SHAPE, "logical_and");
        lg_close(c);
}

static void lerp(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_full(c, 0.1, LG_SHAPE(2, 1)), *b = lg_full(c, 1e8, LG_SHAPE(3));
        assert_list(lg_lerp_scalar(a, b, 1), 0, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8); /* 0.1 + (1e8 - 0.1) is not quite */
        assert_list(lg_lerp_scalar(a, b, 0), 0, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f);
        lg_tensor *w = lg_from(c, ((float[]){0, 1, 0.25f}), LG_SHAPE(3));
        assert_list(lg_lerp(a, b, w), 1e-7, 0.1f, 1e8, 25000000.075, 0.1f, 1e8, 25000000.075);
        assert_ok(c);
        lg_lerp(a, b, lg_ones(c, LG_SHAPE(2)));
        assert_error(c, LG_ERR_SHAPE, "lerp");
        lg_lerp_scalar(a, lg_ones(c, LG_SHAPE(2), .dtype = LG_I64), 0.5);
        assert_error(c, LG_ERR_DTYPE, "lerp_scalar: b is i64");
        lg_lerp(a, NULL, w);
        assert_error(c, LG_ERR_ARGUMENT, "lerp: b is NULL");
        lg_lerp_scalar(NULL, b, 0.5);
        assert_error(c, LG_ERR_ARGUMENT, "lerp_scalar: a is NULL");
        lg_fmod(a, NULL);
        assert_error(c, LG_ERR_ARGUMENT, "fmod: b is NULL");
        lg_atan2(lg_ones(c, LG_SHAPE(2)), b);
        assert_error(c, LG_ERR_SHAPE, "atan2");
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(as_pytorch_computes_it),
                cmocka_unit_test(special_values),
                cmocka_unit_test(special_pairs),
                cmocka_unit_test(derivatives_at_kinks),
                cmocka_unit_test(derivatives_far_out),
                cmocka_unit_test(float_dtypes),
                cmocka_unit_test(integers),
                cmocka_unit_test(tests_and_logic),
                cmocka_unit_test(lerp),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
