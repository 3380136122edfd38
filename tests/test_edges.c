/* test_edges.c - elementwise functions at infinities, NaN, -0 and halves, and their derivatives at kinks and far out.
 */
#include "test.h"

static const lg_dtype floats[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
static const double limits[] = {1e-12, 1e-5, 2e-3, 1.6e-2};

/* Relative to the value itself, and zeros have their sign. */
static void assert_one(const char *what, lg_dtype dtype, double got, double want, double limit)
{
        bool same = got == want && (want != 0 || signbit(got) == signbit(want));
        bool near = want != 0 && fabs(got - want) <= limit * fabs(want);
        if (!same && !near && !(isnan(got) && isnan(want)))
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

TEST_CASE(special_values)
{
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
                        lg_tensor *x = lg_full(c, LG_SHAPE(3), ones[i].x, .dtype = floats[d]);
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

TEST_CASE(special_pairs)
{
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
                TWO(logaddexp, inf, inf, inf),
                TWO(logaddexp, -inf, -inf, -inf),
                TWO(logaddexp, inf, -inf, inf),
                TWO(logaddexp, -inf, 2, 2),
                TWO(logaddexp, 2, inf, inf),
                TWO(logaddexp, -1000, 1000, 1000),
                TWO(logaddexp, -1000, -1000, -1000 + M_LN2),
                TWO(logaddexp, nan, inf, nan),
                TWO(logaddexp, -inf, nan, nan),
        };
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) {
                        lg_tensor *a = lg_full(c, LG_SHAPE(3), twos[i].a, .dtype = floats[d]);
                        lg_tensor *b = lg_full(c, LG_SHAPE(3), twos[i].b, .dtype = floats[d]);
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

TEST_CASE(derivatives_at_kinks)
{
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
TEST_CASE(derivatives_far_out)
{
        lg_ctx *c = open_ctx();
        lg_tensor *(*const ops[])(lg_tensor *) = {lg_log_sigmoid, lg_mish, lg_selu, call_celu, elu};
        const double left[] = {1, 0, 0, 0, 0}, right[] = {0, 1, 1.0507009873554805, 1, 1};
        for (int d = 0; d < 2; d++)
                for (int i = 0; i < 5; i++) {
                        lg_tensor *x = lg_from(c, ((double[]){-1000, 1000}), LG_SHAPE(2), .dtype = LG_F64);
                        x = lg_set_requires_grad(lg_cast(x, floats[d]), true);
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

/* ---- derivatives where a factor is infinite and the other 0 ---- */

typedef struct at_pair {
        const char *name;
        lg_tensor *(*op)(lg_tensor *a, lg_tensor *b);
        double a, b, slope[2], second[2][2]; /* NaN: not looked at */
} at_pair;

static void check_number(const char *what, const char *name, double a, double b, lg_tensor *t, double want,
                         double limit)
{
        double got = t ? lg_item(t) : 0;
        if (!isnan(want) && got != want && !(fabs(got - want) <= limit * fabs(want)))
                fail_msg("%s of %s at (%g, %g): %.17g, not %.17g", what, name, a, b, got, want);
}

static void check_pair(lg_ctx *c, const at_pair *p, lg_dtype dtype, double limit)
{
        lg_tensor *a = lg_scalar(c, p->a, .dtype = dtype, .requires_grad = true), *fused[2], *ops[2], *second[2];
        lg_tensor *b = lg_scalar(c, p->b, .dtype = dtype, .requires_grad = true), *y = p->op(a, b);
        lg_grad(LG_LIST(y), LG_LIST(a, b), .result = ops, .create_graph = true);
        for (int i = 0; i < 2; i++) {
                lg_grad(LG_LIST(ops[i]), LG_LIST(a, b), .result = second, .retain_graph = true);
                assert_ok(c);
                for (int k = 0; k < 2; k++)
                        check_number("second derivative", p->name, p->a, p->b, second[k], p->second[i][k], limit);
        }
        lg_grad(LG_LIST(y), LG_LIST(a, b), .result = fused);
        assert_ok(c);
        for (int i = 0; i < 2; i++) {
                check_number("derivative", p->name, p->a, p->b, fused[i], p->slope[i], limit);
                check_number("derivative in ops", p->name, p->a, p->b, ops[i], p->slope[i], limit);
        }
}

TEST_CASE(derivatives_of_pairs_where_a_slope_is_infinite)
{
        const double inf = INFINITY, any = NAN, ln2 = M_LN2;
        const at_pair pairs[] = {
                {"atan2", lg_atan2, 0, 0, {0, 0}, {{0, 0}, {0, 0}}},
                {"atan2", lg_atan2, 0, 2, {0.5, 0}, {{0, -0.25}, {-0.25, 0}}},
                {"pow", lg_pow, 0, 0, {0, 0}, {{0, 0}, {0, 0}}},
                {"pow", lg_pow, 0, 1, {1, 0}, {{0, any}, {any, 0}}},
                {"pow", lg_pow, 0, 2, {0, 0}, {{2, 0}, {0, 0}}},
                {"pow", lg_pow, 0, 0.5, {inf, 0}, {{-inf, any}, {any, 0}}},
                {"pow", lg_pow, 0, -1, {-inf, -inf}, {{inf, any}, {any, any}}},
                {"pow", lg_pow, 2, 0, {0, ln2}, {{0, 0.5}, {0.5, ln2 * ln2}}},
                {"pow", lg_pow, -2, 2, {-4, any}, {{2, any}, {any, any}}},
                {"xlogy", lg_xlogy, 0, 0, {0, 0}, {{0, 0}, {0, 0}}},
                {"xlogy", lg_xlogy, 0, -1, {0, 0}, {{0, any}, {any, 0}}},
                {"xlogy", lg_xlogy, 0, 2, {ln2, 0}, {{0, 0.5}, {0.5, 0}}},
                {"xlogy", lg_xlogy, 1, 0, {-inf, inf}, {{0, inf}, {inf, -inf}}},
                {"logaddexp", lg_logaddexp, inf, inf, {0.5, 0.5}, {{0, 0}, {0, 0}}},
                {"logaddexp", lg_logaddexp, -inf, -inf, {0.5, 0.5}, {{0, 0}, {0, 0}}},
                {"logaddexp", lg_logaddexp, inf, -inf, {1, 0}, {{0, 0}, {0, 0}}},
                {"logaddexp", lg_logaddexp, -inf, 2, {0, 1}, {{0, 0}, {0, 0}}},
                {"logaddexp", lg_logaddexp, -1000, 1000, {0, 1}, {{0, 0}, {0, 0}}},
                {"logaddexp", lg_logaddexp, 1000, 1000, {0.5, 0.5}, {{0.25, -0.25}, {-0.25, 0.25}}},
        };
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
                        check_pair(c, &pairs[i], floats[d], limits[d]);
        lg_close(c);
}

#define POWER(name, p)                                                                                                 \
        static lg_tensor *name(lg_tensor *x)                                                                           \
        {                                                                                                              \
                return lg_pow_scalar(x, p);                                                                            \
        }
POWER(power0, 0)
POWER(power1, 1)
POWER(power2, 2)
POWER(power_half, 0.5)
static lg_tensor *zero_to_the(lg_tensor *x)
{
        return lg_rpow_scalar(x, 0);
}

TEST_CASE(derivatives_where_a_slope_is_infinite)
{
        const double inf = INFINITY, any = NAN;
        const struct {
                const char *name;
                lg_tensor *(*op)(lg_tensor *x);
                double x, slope[3];
        } rows[] = {
                {"pow_scalar 0", power0, 0, {0, 0, 0}},
                {"pow_scalar 1", power1, 0, {1, 0, 0}},
                {"pow_scalar 2", power2, 0, {0, 2, 0}},
                {"pow_scalar 2", power2, -3, {-6, 2, 0}},
                {"pow_scalar 0.5", power_half, 0, {inf, -inf, inf}},
                {"rpow_scalar 0", zero_to_the, 0, {0, 0, 0}},
                {"rpow_scalar 0", zero_to_the, 1.5, {0, 0, 0}},
                {"rpow_scalar 0", zero_to_the, -1, {-inf, any, any}},
                {"hardswish", lg_hardswish, inf, {1, 0, any}},
                {"hardswish", lg_hardswish, -inf, {0, 0, any}},
                {"gelu", lg_gelu, 10000, {1, 0, 0}},
                {"gelu", lg_gelu, -10000, {0, 0, 0}},
                {"gelu_tanh", lg_gelu_tanh, 60000, {1, 0, 0}},
                {"gelu_tanh", lg_gelu_tanh, -60000, {0, 0, 0}},
                {"gelu_tanh", lg_gelu_tanh, 1e30, {1, 0, 0}},
                {"gelu_tanh", lg_gelu_tanh, -1e30, {0, 0, 0}},
                {"sign", lg_sign, any, {0, any, any}},
        };
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                        for (int order = 1; order <= 3 && !isnan(rows[i].slope[order - 1]); order++) {
                                lg_tensor *x = lg_scalar(c, rows[i].x, .dtype = floats[d], .requires_grad = true);
                                lg_tensor *g = slope(rows[i].op, x, order);
                                assert_ok(c);
                                check_number("derivative", rows[i].name, rows[i].x, order, g, rows[i].slope[order - 1],
                                             limits[d]);
                        }
        lg_close(c);
}

/* ---- tails ---- */

/* gelu is x P(x), P the normal distribution: P' = p, p' = -x p. Every number of the left tail to its own size. */
TEST_CASE(tails_of_gelu)
{
        lg_ctx *c = open_ctx();
        for (int i = -120; i <= 60; i++) {
                double x = i / 8.0 < -12 ? -12 : i / 8.0, p = exp(-x * x / 2) / sqrt(2 * acos(-1));
                double t = x * sqrt(2 / acos(-1)) * (1 + 0.044715 * x * x), s = 1 / (1 + exp(-2 * t));
                double slope_of_t = sqrt(2 / acos(-1)) * (1 + 0.134145 * x * x);
                double whole = erfc(-x / sqrt(2)) / 2, want[] = {x * whole, whole + x * p, p * (2 - x * x)};
                double of_tanh[] = {x * s, s + 2 * x * s / (1 + exp(2 * t)) * slope_of_t};
                for (int d = 0; d < 2; d++) {
                        lg_tensor *leaf = lg_scalar(c, x, .dtype = floats[d], .requires_grad = true);
                        double limit = d ? 2e-5 : 1e-12, least = d ? 1e-36 : 0;
                        for (int order = 0; order < 3; order++)
                                assert_near(lg_item(order ? slope(lg_gelu, leaf, order) : lg_gelu(leaf)), want[order],
                                            limit * (x < -1 ? fabs(want[order]) : 1));
                        for (int order = 0; order < 2; order++)
                                assert_near(lg_item(order ? slope(lg_gelu_tanh, leaf, 1) : lg_gelu_tanh(leaf)),
                                            of_tanh[order],
                                            least + (d ? 1e-4 : 1e-11) * (x < -1 ? fabs(of_tanh[order]) : 1));
                        assert_ok(c);
                }
        }
        lg_close(c);
}
