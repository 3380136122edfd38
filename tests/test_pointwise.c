/* test_pointwise.c - every row of pointwise.def against libm in f64: dtypes, layouts, broadcasting, integers,
 * promotion. */
#include "test.h"

#define N 60 /* elements of the vectors that are compared */

/* What a row computes, written independently of its formula in pointwise.def. References are weak symbols: a row
 * without one is held by test_kernels.c against its formula in f64, and by test_gradients.c. */
#define UNARY(name, ...) double ref_##name(double x) __attribute__((weak));
#define BINARY(name, ...) double ref_##name(double a, double b) __attribute__((weak));
#define COMPARE(name, ...) BINARY(name, 0)
#define TERNARY(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#include "../kernels/pointwise.def"

#define REF1(name, value)                                                                                              \
        double ref_##name(double x)                                                                                    \
        {                                                                                                              \
                return value;                                                                                          \
        }
#define REF2(name, value)                                                                                              \
        double ref_##name(double a, double b)                                                                          \
        {                                                                                                              \
                return value;                                                                                          \
        }
REF1(abs, fabs(x))
REF1(exp, exp(x))
REF1(expm1, expm1(x))
REF1(log, log(x))
REF1(log1p, log1p(x))
REF1(sqrt, sqrt(x))
REF1(sin, sin(x))
REF1(cos, cos(x))
REF1(tanh, tanh(x))
REF1(erf, erf(x))
REF1(neg, -x)
REF1(square, x *x)
REF1(sign, (x > 0) - (x < 0))
REF1(rsqrt, 1 / sqrt(x))
REF1(reciprocal, 1 / x)
REF1(sigmoid, 1 / (1 + exp(-x)))
REF1(relu, isnan(x) || x > 0 ? x : 0)
REF1(silu, x / (1 + exp(-x)))
REF1(gelu, 0.5 * x * erfc(-x / sqrt(2)))
REF1(gelu_tanh, 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))))
REF1(leaky_relu, x > 0 ? x : 0.1 * x)
REF1(elu, x > 0 ? x : 1.3 * (exp(x) - 1))
REF1(softplus, log(1 + exp(1.5 * x)) / 1.5)
REF1(clamp, isnan(x) ? x : fmin(fmax(x, -1), 1.5))
REF1(add_scalar, x + 0.7)
REF1(sub_scalar, x - 0.7)
REF1(rsub_scalar, 0.7 - x)
REF1(mul_scalar, x * -1.7)
REF1(div_scalar, x / 1.7)
REF1(rdiv_scalar, 1.7 / x)
REF1(pow_scalar, pow(x, 2.5))
REF1(rpow_scalar, pow(1.6, x))
REF1(maximum_scalar, isnan(x) || x > 0.5 ? x : 0.5)
REF1(minimum_scalar, isnan(x) || x < 0.5 ? x : 0.5)
REF2(add, a + b)
REF2(sub, a - b)
REF2(mul, a *b)
REF2(div, a / b)
REF2(maximum, isnan(a) || a > b ? a : b)
REF2(minimum, isnan(a) || a < b ? a : b)
REF2(eq, a == b)
REF2(ne, a != b)
REF2(lt, a < b)
REF2(le, a <= b)
REF2(gt, a > b)
REF2(ge, a >= b)
REF2(pow, pow(a, b))

typedef struct unary {
        const char *name;
        lg_tensor *(*op)(lg_tensor *x);
        double (*ref)(double x);
        double low, high;
} unary;
typedef struct binary {
        const char *name;
        lg_tensor *(*op)(lg_tensor *a, lg_tensor *b);
        double (*ref)(double a, double b);
        double low[2], high[2];
        bool compares, any;
} binary;

#define PARAMS0 (x)
#define PARAMS1(v) (x, v)
#define PARAMS2(v, w) (x, v, w)
#define UNARY(name, types, params, ...)                                                                                \
        static lg_tensor *run_##name(lg_tensor *x)                                                                     \
        {                                                                                                              \
                return lg_##name params;                                                                               \
        }
#define BINARY(...)
#define TERNARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#include "../kernels/pointwise.def"

#define DOMAIN(lo, hi) lo, hi
#define RANGE(lo, hi) .low = lo, .high = hi
#define RANGE2(...) RANGE(__VA_ARGS__)
#define UNARY(name_, types, params, formula, dx, domain, kinks)                                                        \
        {.name = #name_, .op = run_##name_, .ref = ref_##name_, RANGE2(domain)},
#define BINARY(...)
#define COMPARE(...)
static const unary unaries[] = {
#include "../kernels/pointwise.def"
};

#define ANY true
#define FLOAT false
#define NUMBER false
#define RANGES(a_lo, a_hi, b_lo, b_hi) .low = {a_lo, b_lo}, .high = {a_hi, b_hi}
#define RANGES2(...) RANGES(__VA_ARGS__)
#define UNARY(...)
#define BINARY(name_, types, f, da, db, domain_a, domain_b, kinks)                                                     \
        {.name = #name_, .op = lg_##name_, .ref = ref_##name_, RANGES2(domain_a, domain_b), .any = types},
#define COMPARE(name_, f)                                                                                              \
        {.name = #name_,                                                                                               \
         .op = lg_##name_,                                                                                             \
         .ref = ref_##name_,                                                                                           \
         .low = {-2, -2},                                                                                              \
         .high = {2, 2},                                                                                               \
         .compares = true,                                                                                             \
         .any = true},
static const binary binaries[] = {
#include "../kernels/pointwise.def"
};
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static double spread(double low, double high, int i, double shift)
{
        return low + (high - low) * fmod((i + 1) * 0.6180339887498949 + shift, 1);
}

static const lg_dtype floats[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
static const double tolerance[] = {1e-12, 1e-5, 2e-3, 1.6e-2};

static lg_tensor *from(lg_ctx *c, const double *v, int n, lg_dtype dtype)
{
        return lg_cast(lg_from(c, v, LG_SHAPE(n), .dtype = LG_F64), dtype);
}

static void check(const char *name, lg_dtype dtype, const lg_tensor *t, const double *ref, int n, double limit)
{
        double got[N], scale = 1;
        if (!t)
                fail_msg("%s in %s: no result", name, lg_dtype_name(dtype));
        read_all(t, got, N);
        for (int i = 0; i < n; i++)
                scale = fmax(scale, fabs(ref[i]));
        for (int i = 0; i < n; i++)
                if (!(fabs(got[i] - ref[i]) <= limit * scale))
                        fail_msg("%s in %s, element %d: %.17g is not %.17g", name, lg_dtype_name(dtype), i, got[i],
                                 ref[i]);
}

/* The reference sees the inputs as the dtype rounds them. */
TEST_CASE(every_unary_row)
{
        lg_ctx *c = open_ctx();
        int tested = 0;
        for (int r = 0; r < COUNT(unaries); r++)
                for (int d = 0; d < 4 && unaries[r].ref; d++) {
                        lg_scope s = lg_scope_begin(c);
                        double v[N], ref[N], half[N];
                        tested += d == 0;
                        for (int i = 0; i < N; i++)
                                v[i] = spread(unaries[r].low, unaries[r].high, i, 0);
                        lg_tensor *x = from(c, v, N, floats[d]);
                        read_all(x, v, N);
                        for (int i = 0; i < N; i++)
                                ref[i] = unaries[r].ref(v[i]);
                        for (int i = 0; i < N / 2; i++)
                                half[i] = ref[2 * i];
                        lg_tensor *y = unaries[r].op(x);
                        assert_ok(c);
                        assert_int_equal(lg_dtype_of(y), floats[d]);
                        check(unaries[r].name, floats[d], y, ref, N, tolerance[d]);
                        y = unaries[r].op(lg_slice(x, 0, 0, LG_MAX, .step = 2));
                        check(unaries[r].name, floats[d], y, half, N / 2, tolerance[d]);
                        assert_int_equal(lg_numel(unaries[r].op(lg_slice(x, 0, 0, 0))), 0);
                        lg_scope_end(c, s);
                }
        print_message("%d of %d ops of one input have a reference of their own\n", tested, COUNT(unaries));
        assert_true(tested >= 34);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(every_binary_row)
{
        lg_ctx *c = open_ctx();
        for (int r = 0; r < COUNT(binaries); r++)
                for (int d = 0; d < 4 && binaries[r].ref; d++) {
                        const binary *op = &binaries[r];
                        lg_scope s = lg_scope_begin(c);
                        double a[N], b[N], ref[N];
                        for (int i = 0; i < N; i++) {
                                a[i] = spread(op->low[0], op->high[0], i, 0);
                                b[i] = i % 5 || !op->any ? spread(op->low[1], op->high[1], i, 0.37) : a[i];
                        }
                        lg_tensor *x = from(c, a, N, floats[d]), *y = from(c, b, N, floats[d]);
                        read_all(x, a, N);
                        read_all(y, b, N);
                        for (int i = 0; i < N; i++)
                                ref[i] = op->ref(a[i], b[i]);
                        lg_tensor *z = op->op(x, y);
                        assert_ok(c);
                        assert_int_equal(lg_dtype_of(z), op->compares ? LG_BOOL : floats[d]);
                        check(op->name, floats[d], z, ref, N, tolerance[d]);
                        /* a column against a row: every pair, through strides of 0 */
                        lg_tensor *column = lg_slice(lg_unsqueeze(x, 1), 0, 0, 6),
                                  *row = lg_slice(y, 0, 0, LG_MAX, .step = 6);
                        z = op->op(column, row);
                        for (int i = 0; i < 6; i++)
                                for (int j = 0; j < 10; j++)
                                        ref[10 * i + j] = op->ref(a[i], b[6 * j]);
                        assert_int_equal(lg_ndim_of(z), 2);
                        check(op->name, floats[d], z, ref, N, tolerance[d]);
                        z = op->op(lg_transpose(lg_expand(column, LG_SHAPE(6, 10)), 0, 1), lg_unsqueeze(row, 1));
                        for (int i = 0; i < 6; i++)
                                for (int j = 0; j < 10; j++)
                                        ref[6 * j + i] = op->ref(a[i], b[6 * j]);
                        check(op->name, floats[d], z, ref, N, tolerance[d]);
                        lg_scope_end(c, s);
                }
        print_message("%d ops of two inputs\n", COUNT(binaries));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(integers)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_I64, LG_I32, LG_U8};
        for (int d = 0; d < 3; d++) {
                lg_dtype t = dtypes[d];
                lg_tensor *a = lg_cast(lg_from(c, ((int64_t[]){5, 3, 7}), LG_SHAPE(3), .dtype = LG_I64), t);
                lg_tensor *b = lg_cast(lg_from(c, ((int64_t[]){2, 3, 1}), LG_SHAPE(3), .dtype = LG_I64), t);
                assert_int_equal(lg_dtype_of(lg_add(a, b)), t);
                assert_list(lg_add(a, b), 0, 7, 6, 8);
                assert_list(lg_sub(a, b), 0, 3, 0, 6);
                assert_list(lg_mul(a, b), 0, 10, 9, 7);
                assert_list(lg_maximum(a, b), 0, 5, 3, 7);
                assert_list(lg_minimum(a, b), 0, 2, 3, 1);
                assert_int_equal(lg_dtype_of(lg_square(b)), t);
                assert_list(lg_square(b), 0, 4, 9, 1);
                assert_list(lg_relu(b), 0, 2, 3, 1);
                assert_list(lg_clamp(a, 4, 6), 0, 5, 4, 6);
                assert_list(lg_add_scalar(a, 2.9), 0, 7, 5, 9); /* the number is truncated */
                assert_list(lg_mul_scalar(a, 3), 0, 15, 9, 21);
                assert_list(lg_gt(a, b), 0, 1, 0, 1);
                assert_list(lg_eq_scalar(a, 3), 0, 0, 1, 0);
                assert_list(lg_where(lg_lt_scalar(a, 6), a, b), 0, 5, 3, 1);
                assert_int_equal(lg_dtype_of(lg_div(a, b)), LG_F32);
                assert_list(lg_div(a, b), 1e-6, 2.5, 1, 7);
                assert_int_equal(lg_dtype_of(lg_exp(b)), LG_F32);
                assert_list(lg_exp(b), 1e-6, exp(2), exp(3), exp(1));
        }
        lg_tensor *s = lg_from(c, ((int64_t[]){-5, 0, 4}), LG_SHAPE(3), .dtype = LG_I64);
        assert_list(lg_neg(s), 0, 5, 0, -4);
        assert_list(lg_abs(s), 0, 5, 0, 4);
        assert_list(lg_sign(s), 0, -1, 0, 1);
        /* beyond 2^53, where doubles have gaps; wrapping, not undefined */
        int64_t big[] = {INT64_MAX - 1, 9007199254740993, INT64_MIN}, got[3];
        lg_tensor *x = lg_from(c, big, LG_SHAPE(3), .dtype = LG_I64);
        assert_true(lg_read(lg_add(x, lg_ones(c, LG_SHAPE(3), .dtype = LG_I64)), got, LG_I64, sizeof got));
        assert_true(got[0] == INT64_MAX && got[1] == 9007199254740994 && got[2] == INT64_MIN + 1);
        assert_true(lg_read(lg_sub(x, lg_ones(c, LG_SHAPE(3), .dtype = LG_I64)), got, LG_I64, sizeof got));
        assert_true(got[2] == INT64_MAX);
        assert_list(lg_lt(lg_select(x, 0, 1), lg_add_scalar(lg_select(x, 0, 1), 1)), 0, 1);
        lg_tensor *t = lg_from(c, ((bool[]){1, 1, 0, 0}), LG_SHAPE(4), .dtype = LG_BOOL);
        lg_tensor *f = lg_from(c, ((bool[]){1, 0, 1, 0}), LG_SHAPE(4), .dtype = LG_BOOL);
        assert_list(lg_mul(t, f), 0, 1, 0, 0, 0);
        assert_list(lg_add(t, f), 0, 1, 1, 1, 0); /* or, as in PyTorch */
        assert_list(lg_eq(t, f), 0, 1, 0, 0, 1);
        assert_int_equal(lg_dtype_of(lg_square(t)), LG_I64); /* as in PyTorch */
        assert_list(lg_square(t), 0, 1, 1, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(promotion_of_results)
{
        lg_ctx *c = open_ctx();
        for (int i = LG_F32; i <= LG_BOOL; i++)
                for (int j = LG_F32; j <= LG_BOOL; j++) {
                        lg_tensor *a = lg_ones(c, LG_SHAPE(2), .dtype = (lg_dtype)i);
                        lg_tensor *b = lg_ones(c, LG_SHAPE(2), .dtype = (lg_dtype)j), *y = lg_mul(a, b);
                        lg_dtype both = lg_promote((lg_dtype)i, (lg_dtype)j);
                        assert_int_equal(lg_dtype_of(y), both);
                        assert_list(y, 0, 1, 1);
                        assert_int_equal(lg_dtype_of(lg_eq(a, b)), LG_BOOL);
                        assert_list(lg_eq(a, b), 0, 1, 1);
                        assert_int_equal(lg_dtype_of(lg_div(a, b)), lg_dtype_is_float(both) ? both : LG_F32);
                }
        /* a 0-d tensor raises the kind, not the width within a kind, as in PyTorch */
        lg_tensor *f32 = lg_ones(c, LG_SHAPE(2)), *i32 = lg_ones(c, LG_SHAPE(2), .dtype = LG_I32);
        assert_int_equal(lg_dtype_of(lg_mul(f32, lg_scalar(c, 2, .dtype = LG_F64))), LG_F32);
        assert_int_equal(lg_dtype_of(lg_mul(lg_scalar(c, 2, .dtype = LG_I64), i32)), LG_I32);
        assert_int_equal(lg_dtype_of(lg_mul(i32, lg_scalar(c, 2, .dtype = LG_F16))), LG_F16);
        assert_int_equal(lg_dtype_of(lg_mul(lg_scalar(c, 2), lg_scalar(c, 2, .dtype = LG_F64))), LG_F64);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(not_a_number_goes_through)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_full(c, LG_SHAPE(9), NAN, .dtype = floats[d]),
                          *one = lg_ones(c, LG_SHAPE(9), .dtype = floats[d]);
                double v[9];
                for (int r = 0; r < COUNT(unaries); r++) {
                        read_all(unaries[r].op(x), v, 9);
                        for (int i = 0; i < 9; i++)
                                if (!strcmp(unaries[r].name, "sign") ? v[i] != 0 : !isnan(v[i]))
                                        fail_msg("%s of NaN in %s is %g", unaries[r].name, lg_dtype_name(floats[d]),
                                                 v[i]);
                }
                for (int r = 0; r < COUNT(binaries); r++)
                        for (int side = 0; side < 2; side++) {
                                read_all(side ? binaries[r].op(one, x) : binaries[r].op(x, one), v, 9);
                                bool is_one_to_nan = !strcmp(binaries[r].name, "pow") && side;
                                /* in test_pointwise_made.c */
                                if (strstr("fmax fmin heaviside copysign", binaries[r].name))
                                        continue;
                                /* it differs from everything, and is not zero */
                                const char *holds = "ne logical_and logical_or";
                                double wanted = binaries[r].compares ? strstr(holds, binaries[r].name) != NULL : NAN;
                                if (!is_one_to_nan && !(v[3] == wanted || (isnan(v[3]) && isnan(wanted))))
                                        fail_msg("%s with NaN on side %d in %s is %g", binaries[r].name, side,
                                                 lg_dtype_name(floats[d]), v[3]);
                        }
        }
        lg_close(c);
}

TEST_CASE(extremes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((double[]){-1000, -50, 0, 50, 1000}), LG_SHAPE(5), .dtype = LG_F64);
        for (int d = 0; d < 2; d++) {
                lg_tensor *y = lg_cast(x, floats[d]);
                assert_list(lg_sigmoid(y), 1e-6, 0, 0, 0.5, 1, 1);
                assert_list(lg_tanh(y), 1e-6, -1, -1, 0, 1, 1);
                assert_list(lg_silu(y), 1e-6, 0, 0, 0, 50, 1000);
                assert_list(lg_gelu(y), 1e-6, 0, 0, 0, 50, 1000);
                assert_list(lg_gelu_tanh(y), 1e-6, 0, 0, 0, 50, 1000);
                assert_list(lg_softplus(y, 1, 20), 1e-6, 0, 0, log(2), 50, 1000);
                assert_list(lg_elu(y, 1), 1e-6, -1, -1, 0, 50, 1000);
                assert_list(lg_clamp(y, -INFINITY, 7), 1e-6, -1000, -50, 0, 7, 7);
        }
        lg_tensor *small = lg_scalar(c, 1e-10, .dtype = LG_F64);
        assert_near(lg_item(lg_expm1(small)), 1e-10, 1e-19);
        assert_near(lg_item(lg_log1p(small)), 1e-10, 1e-19);
        assert_near(lg_item(lg_pow(lg_scalar(c, -2), lg_scalar(c, 3))), -8, 1e-5);
        assert_true(isnan(lg_item(lg_log(lg_scalar(c, -1)))));
        assert_true(isinf(lg_item(lg_log(lg_scalar(c, 0)))));
        assert_true(isnan(lg_item(lg_sqrt(lg_scalar(c, -1)))));
        assert_true(isinf(lg_item(lg_div(lg_scalar(c, 1), lg_scalar(c, 0)))));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(scalar_comparisons_and_where)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 3}), LG_SHAPE(3));
        assert_list(lg_eq_scalar(x, 2), 0, 0, 1, 0);
        assert_list(lg_ne_scalar(x, 2), 0, 1, 0, 1);
        assert_list(lg_lt_scalar(x, 2), 0, 1, 0, 0);
        assert_list(lg_le_scalar(x, 2), 0, 1, 1, 0);
        assert_list(lg_gt_scalar(x, 2), 0, 0, 0, 1);
        assert_list(lg_ge_scalar(x, 2), 0, 0, 1, 1);
        lg_tensor *w = lg_where(lg_gt_scalar(x, 1), lg_full(c, LG_SHAPE(1), 5, .dtype = LG_F64), x);
        assert_int_equal(lg_dtype_of(w), LG_F64);
        assert_int_equal(lg_dtype_of(lg_where(lg_gt_scalar(x, 1), lg_scalar(c, 5, .dtype = LG_F64), x)), LG_F32);
        assert_list(w, 0, 1, 5, 5);
        drop(lg_where(x, x, x));
        assert_error(c, LG_ERR_DTYPE, "where");
        drop(lg_where(lg_ones(c, LG_SHAPE(2), .dtype = LG_BOOL), x, x));
        assert_error(c, LG_ERR_SHAPE, "where");
        assert_false(lg_requires_grad(lg_gt_scalar(lg_set_requires_grad(x, true), 1)));
        lg_close(c);
}
