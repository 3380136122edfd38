/* test_kernels_pointwise.c - the CPU pointwise kernels against formulas in f64; half types, the device. */
#include "../kernels/constants.h"
#include "kernels.h"
#define LG_FN static inline
#include "../kernels/variates.h"

/* ---- functions of special.h by other formulas ---- */

static double polygamma_by_sum(double x, double n)
{
        double sum = 0, y = x + 200;
        for (int k = 0; k < 200; k++)
                sum += pow(x + k, -n - 1);
        sum += pow(y, -n) / n + 0.5 * pow(y, -n - 1) + (n + 1) / 12 * pow(y, -n - 2);
        sum -= (n + 1) * (n + 2) * (n + 3) / 720 * pow(y, -n - 4);
        return (fmod(n, 2) != 0 ? 1 : -1) * tgamma(n + 1) * sum;
}

static double digamma_by_sum(double x)
{
        double sum = 0, y = x + 200;
        for (int k = 199; k >= 0; k--)
                sum -= 1 / (x + k);
        return sum + log(y) - 0.5 / y - 1 / (12 * y * y) + 1 / (120 * pow(y, 4));
}

static double erfinv_by_bisection(double y)
{
        double low = -6, high = 6;
        for (int i = 0; i < 80; i++) {
                const double middle = (low + high) / 2;
                *(erf(middle) < y ? &low : &high) = middle;
        }
        return low;
}

/* ---- pointwise: the vocabulary in plain f64 ---- */
typedef struct values {
        double g, a, b, y, p0, p1;
        bool c;
} values;
typedef double (*formula_fn)(values v);

#define G v.g
#define X v.a
#define A v.a
#define B v.b
#define C v.c
#define Y v.y
#define P0 v.p0
#define P1 v.p1
#define K(x) ((double)(x))
#define ADD(x, y) ((x) + (y))
#define SUB(x, y) ((x) - (y))
#define MUL(x, y) ((x) * (y))
#define DIV(x, y) ((x) / (y))
#define NEG(x) (-(x))
#define ABS(x) fabs(x)
#define SIGN(x) ((x) > 0 ? 1.0 : (x) < 0 ? -1.0 : 0.0)
#define SQUARE(x) pow(x, 2)
#define TWICE(x) ((x) + (x))
#define ONE_PLUS(x) (1 + (x))
#define ONE_MINUS(x) (1 - (x))
#define EXP(x) exp(x)
#define EXPM1(x) expm1(x)
#define LOG(x) log(x)
#define LOG1P(x) log1p(x)
#define SQRT(x) sqrt(x)
#define RSQRT(x) pow(x, -0.5)
#define SIN(x) sin(x)
#define COS(x) cos(x)
#define TANH(x) tanh(x)
#define ERF(x) erf(x)
#define ERFC(x) (1 - erf(x))
#define EXP2(x) pow(2, x)
#define LOG2(x) (log(x) / log(2))
#define LOG10(x) (log(x) / log(10))
#define TAN(x) (sin(x) / cos(x))
#define ASIN(x) atan2(x, sqrt(1 - (x) * (x)))
#define ACOS(x) atan2(sqrt(1 - (x) * (x)), x)
#define ATAN(x) atan(x)
#define ATAN2(x, y) (2 * atan((x) / (hypot(x, y) + (y))))
#define SINH(x) ((exp(x) - exp(-(x))) / 2)
#define COSH(x) ((exp(x) + exp(-(x))) / 2)
#define ASINH(x) asinh(x)
#define ACOSH(x) log((x) + sqrt((x) * (x)-1))
#define ATANH(x) (0.5 * log((1 + (x)) / (1 - (x))))
#define FLOOR(x) floor(x)
#define CEIL(x) (-floor(-(x)))
#define ROUND(x) ((x)-remainder(x, 1))
#define DETACH(x) (x)
#define TRUNC(x) ((x) < 0 ? -floor(-(x)) : floor(x))
/* of integers by 0 as well: the quotient is 0, as is a negative power of 0 */
#define FMOD(x, y) ((y) == 0 ? (x) : fmod(x, y))
#define FLOOR_DIVIDE(x, y) ((y) == 0 ? 0 : floor((x) / (y)))
#define REMAINDER(x, y) ((x) - (y)*FLOOR_DIVIDE(x, y))
#define LOG_SIGMOID(x) (-log1p(exp(-(x))))
#define MISH_GATE(x) tanh(log1p(exp(x)))
#define SIGMOID(x) (0.5 * (1 + tanh((x) / 2)))
#define POW(x, y) ((x) == 0 && (y) < 0 ? 0 : pow(x, y))
#define MIN(x, y) fmin(x, y)
#define MAX(x, y) fmax(x, y)
#define SELECT(c, x, y) ((c) ? (x) : (y))
#define EQ(x, y) ((x) == (y))
#define NE(x, y) ((x) != (y))
#define LT(x, y) ((x) < (y))
#define LE(x, y) ((x) <= (y))
#define GT(x, y) ((x) > (y))
#define GE(x, y) ((x) >= (y))
#define AND(x, y) ((x) && (y))
#define OR(x, y) ((x) || (y))

#define HYPOT(x, y) sqrt((x) * (x) + (y) * (y))
#define COPYSIGN(x, y) ((y) < 0 ? -fabs(x) : fabs(x))
#define SIGNBIT(x) ((x) < 0)
#define LGAMMA(x) log(tgamma(x))
#define DIGAMMA(x) digamma_by_sum(x)
#define POLYGAMMA(x, n) polygamma_by_sum(x, n)
#define NUMBER0 P0
#define ERFINV(x) erfinv_by_bisection(x)
#define BITWISE_AND(x, y) ((int64_t)(x) & (int64_t)(y))
#define BITWISE_OR(x, y) ((int64_t)(x) | (int64_t)(y))
#define BITWISE_XOR(x, y) ((int64_t)(x) ^ (int64_t)(y))
#define LEFT_SHIFT(x, y) ((y) < 0 ? 0 : (x)*ldexp(1, (int)(y)))
#define RIGHT_SHIFT(x, y) ((y) < 0 ? -((x) < 0) : floor(ldexp(x, -(int)(y))))
/* test_variates.c measures these */
#define GAMMA_DRAW(x, seed) lg_gamma_draw(x, seed)
#define GAMMA_SLOPE(x, y) lg_gamma_slope(x, y)
#define POISSON_DRAW(x, seed) lg_poisson_draw(x, seed)

#define FORMULA(name, formula)                                                                                         \
        static double reference_##name(values v)                                                                       \
        {                                                                                                              \
                (void)v;                                                                                               \
                return (double)(formula);                                                                              \
        }
#define UNARY(name, types, params, f, da, ...) FORMULA(name, f) FORMULA(name##_da, da)
#define BINARY(name, types, f, da, db, ...) FORMULA(name, f) FORMULA(name##_da, da) FORMULA(name##_db, db)
#define TERNARY(name, types, f, da, db, ...) FORMULA(name, f) FORMULA(name##_da, da) FORMULA(name##_db, db)
#define COMPARE(name, f) FORMULA(name, f)
#define COMPARE_SCALAR(name, f) FORMULA(name, f)
#define TEST(name, f) FORMULA(name, f)
#define PLAIN(name, types, f) FORMULA(name, f)
#define PLAIN_SCALAR(name, types, f) FORMULA(name, f)
#include "../kernels/pointwise.def"

enum { FLOAT, ANY, NUMBER = ANY, INTEGER };
enum { KIND_UNARY, KIND_BINARY, KIND_TERNARY, KIND_COMPARE, KIND_COMPARE_SCALAR, KIND_TEST };
typedef struct op {
        const char *name;
        int kind, types, id;
        formula_fn forward, derivative[2];
        double p0, p1, lo[2], hi[2];
} op;

#define PARAMS0 0, 0
#define PARAMS1(x) x, 0
#define PARAMS2(x, y) x, y
#define LOW_DOMAIN(lo, hi) lo
#define HIGH_DOMAIN(lo, hi) hi
#define UNARY(name, types, params, f, da, domain, kinks)                                                               \
        {#name,        KIND_UNARY,        types,                                                                       \
         LG_PW_##name, reference_##name,  {reference_##name##_da, NULL},                                               \
         params,       {LOW_##domain, 0}, {HIGH_##domain, 0}},
#define TWO_SIDED(kind, name, types, a_domain, b_domain)                                                               \
        {#name,                                                                                                        \
         kind,                                                                                                         \
         types,                                                                                                        \
         LG_PW_##name,                                                                                                 \
         reference_##name,                                                                                             \
         {reference_##name##_da, reference_##name##_db},                                                               \
         0,                                                                                                            \
         0,                                                                                                            \
         {LOW_##a_domain, LOW_##b_domain},                                                                             \
         {HIGH_##a_domain, HIGH_##b_domain}},
#define BINARY(name, types, f, da, db, da_domain, db_domain, kinks)                                                    \
        TWO_SIDED(KIND_BINARY, name, types, da_domain, db_domain)
#define TERNARY(name, types, f, da, db, a_domain, b_domain) TWO_SIDED(KIND_TERNARY, name, types, a_domain, b_domain)
#define COMPARE(name, f)                                                                                               \
        {#name, KIND_COMPARE, ANY, LG_PW_##name, reference_##name, {NULL, NULL}, 0, 0, {-3, -3}, {3, 3}},
#define COMPARE_SCALAR(name, f)                                                                                        \
        {#name, KIND_COMPARE_SCALAR, ANY, LG_PW_##name, reference_##name, {NULL, NULL}, 1, 0, {-3, 0}, {3, 0}},
#define PLAIN(name, types, f)                                                                                          \
        {#name, KIND_BINARY, types, LG_PW_##name, reference_##name, {NULL, NULL}, 0, 0, {0.4, 0.1}, {30, 0.9}},
#define PLAIN_SCALAR(name, types, f)                                                                                   \
        {#name, KIND_UNARY, types, LG_PW_##name, reference_##name, {NULL, NULL}, 2, 0, {-3, 0}, {3, 0}},
#define TEST(name, f) {#name, KIND_TEST, ANY, LG_PW_##name, reference_##name, {NULL, NULL}, 0, 0, {-3, 0}, {3, 0}},
static const op ops[] = {
#include "../kernels/pointwise.def"
};

/* One kernel of an op: which operands it takes, and what they should give. */
typedef struct trial {
        const op *of;
        int id;
        formula_fn formula;
        bool derivative;
        lg_dtype dtype, out_dtype;
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        operand in[LG_PW_INPUTS];
        bool has[LG_PW_INPUTS];
        double *want; /* of each element, by the formula */
} trial;

static void trial_inputs(trial *t, int layout)
{
        const op *o = t->of;
        bool ternary = o->kind == KIND_TERNARY;
        for (int s = 0; s < LG_PW_INPUTS; s++) {
                int which = s; /* 0: A, 1: B; 2: G or Y; 3: C */
                if (t->derivative)
                        which = s == 0 ? 2 : s == 3 ? 2 : ternary ? 3 : s - 1;
                else if (ternary)
                        which = s == 0 ? 3 : s - 1;
                t->has[s] = t->derivative ? (ternary ? s < 2 : s != 2 || o->kind == KIND_BINARY)
                                          : s < (ternary                                             ? 3
                                                 : o->kind == KIND_BINARY || o->kind == KIND_COMPARE ? 2
                                                                                                     : 1);
                if (!t->has[s])
                        continue;
                lg_dtype dtype = which == 3 ? LG_BOOL : t->dtype;
                double lo = which < 2 ? o->lo[which] : which == 3 ? 0 : 0.2, hi = which < 2 ? o->hi[which] : 1;
                if (!is_float(dtype) && which < 2)
                        lo = dtype == LG_U8 ? 0 : -4, hi = 5;
                t->in[s] = make_operand(dtype, t->ndim, t->shape, layout, true, lo, hi);
        }
}

static double trial_value(const trial *t, int64_t i)
{
        values v = {.p0 = t->of->p0, .p1 = t->of->p1};
        double x[LG_PW_INPUTS] = {0};
        bool ternary = t->of->kind == KIND_TERNARY;
        for (int s = 0; s < LG_PW_INPUTS; s++)
                x[s] = t->has[s] ? operand_get(&t->in[s], t->ndim, t->shape, i) : 0;
        if (!is_float(t->dtype) && t->of->kind != KIND_COMPARE_SCALAR)
                v.p0 = trunc(v.p0), v.p1 = trunc(v.p1);
        if (t->derivative)
                v.g = x[0], v.a = x[1], v.b = x[2], v.y = x[3], v.c = x[1] != 0;
        else if (ternary)
                v.c = x[0] != 0, v.a = x[1], v.b = x[2];
        else
                v.a = x[0], v.b = x[1];
        return t->formula(v);
}

#define OLD 0.75 /* what an accumulating kernel adds to */

static operand trial_run(const trial *t, const operand *out, const lg_kernels *k, int threads, bool accumulate)
{
        operand o = *out;
        o.memory = malloc(o.bytes);
        memset(o.memory, 0x77, o.bytes);
        for (size_t i = 0; accumulate && i < o.bytes / size_of[o.dtype]; i++)
                put(o.dtype, o.memory, (int64_t)i, OLD);
        lg_queue q = make_queue(threads);
        lg_pointwise_args a = {.ndim = t->ndim,
                               .dtype = t->dtype,
                               .out = operand_at(&o),
                               .p0 = t->of->p0,
                               .p1 = t->of->p1,
                               .accumulate = accumulate};
        memcpy(a.shape, t->shape, sizeof a.shape);
        memcpy(a.out_strides, o.strides, sizeof a.out_strides);
        for (int s = 0; s < LG_PW_INPUTS; s++) {
                if (!t->has[s])
                        continue;
                a.in[s] = operand_at(&t->in[s]);
                memcpy(a.in_strides[s], t->in[s].strides, sizeof a.in_strides[s]);
        }
        CALL(k->pointwise[t->id], &q, &a);
        return o;
}

/* y = y + f: the sum is rounded once. */
static void check_sum(const trial *t, const operand *out, const lg_kernels *k)
{
        if (!is_float(t->out_dtype))
                return;
        operand one = trial_run(t, out, k, 1, true), two = trial_run(t, out, k, 2, true);
        assert_memory_equal(one.memory, two.memory, out->bytes);
        for (int64_t j = 0; j < count_of(t->ndim, t->shape); j++) {
                double got = operand_get(&one, t->ndim, t->shape, j), want = t->want[j] + OLD;
                if (!close_to(got, want, t->dtype == LG_F64 ? 1e-12 : 4 * tolerance[t->dtype]))
                        fail_msg("%s[%d] dtype %d at %lld, added: %g, not %g", t->of->name, t->id - t->of->id, t->dtype,
                                 (long long)j, got, want);
        }
        free(one.memory);
        free(two.memory);
}

static void check_trial(trial *t, int layout)
{
        operand out = make_operand(t->out_dtype, t->ndim, t->shape, layout, false, 0, 1);
        trial_inputs(t, layout);
        int64_t n = count_of(t->ndim, t->shape);
        t->want = malloc((size_t)n * sizeof *t->want + 1);
        for (int64_t j = 0; j < n; j++)
                t->want[j] = trial_value(t, j);
        for (int i = 0; i < ISAS; i++) {
                const lg_kernels *k = lg__cpu_kernels(isas[i]);
                if (!k)
                        continue;
                operand one = trial_run(t, &out, k, 1, false), two = trial_run(t, &out, k, 2, false);
                check_sum(t, &out, k);
                assert_memory_equal(one.memory, two.memory, out.bytes);
                double scale = t->dtype == LG_F64 ? 1e-12 : 4 * tolerance[t->dtype];
                for (int64_t j = 0; j < n; j++) {
                        double got = operand_get(&one, t->ndim, t->shape, j), want = t->want[j];
                        operand w = {.dtype = t->out_dtype, .memory = (uint8_t[8]){0}};
                        put(t->out_dtype, w.memory, 0, want);
                        if (!is_float(t->out_dtype))
                                want = get(t->out_dtype, w.memory, 0);
                        if (!close_to(got, want, scale))
                                fail_msg("%s[%d] dtype %d %s at %lld of %lld: %g, not %g", t->of->name,
                                         t->id - t->of->id, t->dtype, isas[i], (long long)j, (long long)n, got, want);
                }
                free(one.memory);
                free(two.memory);
        }
        for (int s = 0; s < LG_PW_INPUTS; s++) {
                if (t->has[s])
                        free(t->in[s].memory);
        }
        free(out.memory);
        free(t->want);
}

static void check_op(const op *o, lg_dtype dtype, int which)
{
        int last = !is_float(dtype) || !o->derivative[0] ? 0 : o->derivative[1] ? 2 : 1;
        for (int d = 0; d <= last; d++) {
                trial t = {.of = o, .id = o->id + d, .derivative = d > 0, .dtype = dtype};
                t.formula = d ? o->derivative[d - 1] : o->forward;
                t.out_dtype = o->kind >= KIND_COMPARE ? LG_BOOL : dtype;
                t.ndim = make_shape(which, t.shape);
                check_trial(&t, which % 2 == 1 || which > 4);
        }
}

static bool is_taken(const op *o, lg_dtype t)
{
        return is_float(t) ? o->types != INTEGER : o->types != FLOAT;
}

TEST_CASE(test_pointwise)
{
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
                for (lg_dtype t = LG_F32; t < LG_DTYPE_COUNT; t++) {
                        const int step = SANITIZED ? 3 : 1;
                        for (int which = (int)i % step; which < SHAPES && is_taken(&ops[i], t); which += step)
                                check_op(&ops[i], t, which);
                }
        }
}

#undef G
#undef X
#undef A
#undef B
#undef C
#undef Y
#undef P0
#undef P1
#undef K

/* The nearest f16 or bf16 by search among all of them, ties to even. */
TEST_CASE(test_half)
{
        for (uint32_t h = 0; h < 0x10000; h++) {
                float f = lg_f32_of_f16((uint16_t)h), b = lg_f32_of_bf16((uint16_t)h);
                int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
                double want = e == 31 ? (m ? NAN : INFINITY) : ldexp(e ? 1024 + m : m, (e ? e : 1) - 25);
                assert_true(close_to(f, h & 0x8000 ? -want : want, 0));
                if (!isnan(f))
                        assert_int_equal(lg_f16_of_f32(f), h);
                if (!isnan(b))
                        assert_int_equal(lg_bf16_of_f32(b), h);
                /* Half way to the next one, and a little to either side. */
                if ((h & 0x7FFF) >= 0x7BFF)
                        continue;
                float next = lg_f32_of_f16((uint16_t)(h + 1)), mid = (f + next) / 2;
                assert_int_equal(lg_f16_of_f32(mid), h & 1 ? h + 1 : h);
                assert_int_equal(lg_f16_of_f32(nextafterf(mid, next)), h + 1);
                assert_int_equal(lg_f16_of_f32(nextafterf(mid, f)), h);
        }
        assert_int_equal(lg_f16_of_f32(65519.0f), 0x7BFF);
        assert_int_equal(lg_f16_of_f32(65520.0f), 0x7C00);
        assert_int_equal(lg_f16_of_f32(1e30f), 0x7C00);
        assert_true(isnan(lg_f32_of_f16(lg_f16_of_f32(NAN))) && isnan(lg_f32_of_bf16(lg_bf16_of_f32(NAN))));
}

TEST_CASE(test_device)
{
        const lg_device_api *d = lg_cpu_device();
        lg_queue *q = calloc(1, d->queue_size);
        lg_device_facts facts;
        char reason[100] = "", host[5] = "libg", back[5] = "";
        assert_int_equal(d->abi, LG_DEVICE_ABI);
        assert_int_equal(d->count(reason, sizeof reason), 1);
        assert_true(d->open(q, reason, sizeof reason) && d->facts(0, &facts) && !d->facts(1, &facts));
        assert_true(facts.name[0] && facts.total_bytes > 0 && facts.free_bytes > 0);
        void *p = d->allocate(q, 5);
        assert_true(p && (uintptr_t)p % 64 == 0);
        assert_true(d->upload(q, p, host, 5) && d->download(q, back, p, 5));
        assert_string_equal(back, "libg");
        d->free(q, p, 5);
        d->close(q);
        assert_false(lg_queue_fail(q, LG_BROKEN, "first %d", 1) || lg_queue_fail(q, LG_NO_MEMORY, "second"));
        assert_int_equal(q->status, LG_BROKEN);
        assert_string_equal(q->message, "first 1");
        free(q);
}
