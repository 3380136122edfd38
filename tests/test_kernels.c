/* test_kernels.c - every CPU kernel against plain loops in f64, for all dtypes, layouts, instruction sets, threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../kernels/cpu/half.h"
#include "../kernels/cpu/isa.h"
#include "../kernels/philox.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};
#define ISAS 3
static const lg_dtype float_types[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
static const double tolerance[LG_DTYPE_COUNT] = {0, 1e-5, 1e-12, 2e-3, 1.6e-2, 0, 0, 0, 0};
static const size_t size_of[LG_DTYPE_COUNT] = {0, 4, 8, 2, 2, 8, 4, 1, 1};

/* ---- a queue with scratch memory ---- */
#define PIECES 64
static void *pieces[PIECES];
static int piece_count;

static void *workspace(lg_queue *q, size_t bytes)
{
        void *p = piece_count < PIECES ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
        if (!p) {
                lg_queue_fail(q, LG_NO_MEMORY, "no scratch");
                return NULL;
        }
        memset(p, 0xFF, bytes);
        return pieces[piece_count++] = p;
}

static lg_queue make_queue(int threads)
{
        return (lg_queue){.threads = threads, .workspace = workspace, .api = lg_cpu_device()};
}

static void drop_workspace(void)
{
        while (piece_count > 0)
                free(pieces[--piece_count]);
}

#define CALL(kernel, q, args)                                                                                          \
        do {                                                                                                           \
                bool ok_ = (kernel)(q, args);                                                                          \
                drop_workspace();                                                                                      \
                if (!ok_)                                                                                              \
                        fail_msg("kernel: %s", (q)->message);                                                          \
        } while (0)

/* ---- random numbers, values of dtypes ---- */
static uint64_t seed = 1;

static uint64_t next_random(void)
{
        lg_philox_words b = lg_philox_block(42, seed++);
        return ((uint64_t)b.w[0] << 32) | b.w[1];
}

static int64_t random_int(int64_t lo, int64_t hi)
{
        return lo + (int64_t)(next_random() % (uint64_t)(hi - lo + 1));
}

static double random_real(double lo, double hi)
{
        return lo + (hi - lo) * ((double)(next_random() >> 11) * 0x1p-53);
}

static double get(lg_dtype t, const void *p, int64_t i)
{
        switch (t) {
        case LG_F32:
                return ((const float *)p)[i];
        case LG_F64:
                return ((const double *)p)[i];
        case LG_F16:
                return (double)lg_f32_of_f16(((const uint16_t *)p)[i]);
        case LG_BF16:
                return (double)lg_f32_of_bf16(((const uint16_t *)p)[i]);
        case LG_I64:
                return (double)((const int64_t *)p)[i];
        case LG_I32:
                return ((const int32_t *)p)[i];
        default:
                return ((const uint8_t *)p)[i];
        }
}

static void put(lg_dtype t, void *p, int64_t i, double v)
{
        switch (t) {
        case LG_F32:
                ((float *)p)[i] = (float)v;
                break;
        case LG_F64:
                ((double *)p)[i] = v;
                break;
        case LG_F16:
                ((uint16_t *)p)[i] = lg_f16_of_f32((float)v);
                break;
        case LG_BF16:
                ((uint16_t *)p)[i] = lg_bf16_of_f32((float)v);
                break;
        case LG_I64:
                ((int64_t *)p)[i] = (int64_t)v;
                break;
        case LG_I32:
                ((int32_t *)p)[i] = (int32_t)(uint32_t)(int64_t)v;
                break;
        case LG_U8:
                ((uint8_t *)p)[i] = (uint8_t)(int64_t)v;
                break;
        default:
                ((uint8_t *)p)[i] = v != 0;
        }
}

static bool is_float(lg_dtype t)
{
        return t >= LG_F32 && t <= LG_BF16;
}

static bool close_to(double got, double want, double tol)
{
        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got);
        return got == want || fabs(got - want) <= tol * fmax(1, fabs(want));
}

/* ---- strided operands ---- */
typedef struct operand {
        lg_dtype dtype;
        void *memory; /* all of it */
        size_t bytes;
        int64_t start; /* element 0 within it */
        int64_t strides[LG_MAX_DIMS];
} operand;

static void *operand_at(const operand *o)
{
        return (char *)o->memory + o->start * (int64_t)size_of[o->dtype];
}

/* Dimensions in random order of memory, with gaps, backwards or repeated. `layout` 0: plain. */
static operand make_operand(lg_dtype t, int ndim, const int64_t *shape, int layout, bool may_repeat, double lo,
                            double hi)
{
        operand o = {.dtype = t};
        int order[LG_MAX_DIMS];
        int64_t step = 1, total = 0;
        for (int d = 0; d < ndim; d++)
                order[d] = ndim - 1 - d;
        for (int d = ndim - 1; layout && d > 0; d--) {
                int e = (int)random_int(0, d), swap = order[d];
                order[d] = order[e];
                order[e] = swap;
        }
        for (int i = 0; i < ndim; i++) {
                int d = order[i];
                bool repeat = layout && may_repeat && random_int(0, 3) == 0;
                bool back = layout && random_int(0, 5) == 0;
                if (layout && random_int(0, 3) == 0)
                        step *= 2;
                o.strides[d] = repeat ? 0 : back ? -step : step;
                if (back && !repeat && shape[d] > 0)
                        o.start += step * (shape[d] - 1);
                if (!repeat && shape[d] > 0) {
                        total += step * (shape[d] - 1);
                        step *= shape[d];
                }
        }
        o.bytes = (size_t)(total + 1) * size_of[t];
        o.memory = malloc(o.bytes);
        for (int64_t i = 0; i <= total; i++) {
                double v = random_real(lo, hi);
                put(t, o.memory, i, is_float(t) ? v : floor(t == LG_BOOL ? v - lo > (hi - lo) / 2 : v));
        }
        return o;
}

static int64_t count_of(int ndim, const int64_t *shape)
{
        int64_t n = 1;
        for (int d = 0; d < ndim; d++)
                n *= shape[d];
        return n;
}

static int64_t offset_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t index)
{
        int64_t offset = 0;
        for (int d = ndim - 1; d >= 0; d--) {
                offset += index % shape[d] * strides[d];
                index /= shape[d];
        }
        return offset;
}

static double operand_get(const operand *o, int ndim, const int64_t *shape, int64_t index)
{
        return get(o->dtype, operand_at(o), offset_of(ndim, shape, o->strides, index));
}

/* Small, empty, long-rowed and large shapes. */
static int make_shape(int which, int64_t *shape)
{
        static const int64_t fixed[][4] = {{1, 1, 1, 1}, {3, 0, 2, 1}, {1, 1, 1, 700}, {2, 3, 1, 301}, {40, 2, 5, 110}};
        if (which < 5) {
                memcpy(shape, fixed[which], sizeof fixed[0]);
                return which == 0 ? 0 : 4;
        }
        int ndim = (int)random_int(1, 5);
        for (int d = 0; d < ndim; d++)
                shape[d] = random_int(1, 6);
        return ndim;
}
#define SHAPES 9

/* ---- pointwise: the vocabulary in plain f64 ---- */
typedef struct values {
        double g, a, b, y, p0, p1;
        bool c;
} values;
typedef double (*formula_fn)(values v);

#define LG_2_SQRTPI 1.12837916709551257390
#define LG_SQRT1_2 0.70710678118654752440
#define LG_1_SQRT2PI 0.39894228040143267794
#define LG_SQRT2_PI 0.79788456080286535588
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
#define SIGMOID(x) (0.5 * (1 + tanh((x) / 2)))
#define POW(x, y) pow(x, y)
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
#define GELU_ARG(x) (LG_SQRT2_PI * ((x) + 0.044715 * pow(x, 3)))

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
#include "../kernels/pointwise.def"
#undef UNARY
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef COMPARE_SCALAR

enum { FLOAT, ANY };
enum { KIND_UNARY, KIND_BINARY, KIND_TERNARY, KIND_COMPARE, KIND_COMPARE_SCALAR };
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
#define BINARY(name, types, f, da, db, da_domain, db_domain, kinks)                                                    \
        {#name,                                                                                                        \
         KIND_BINARY,                                                                                                  \
         types,                                                                                                        \
         LG_PW_##name,                                                                                                 \
         reference_##name,                                                                                             \
         {reference_##name##_da, reference_##name##_db},                                                               \
         0,                                                                                                            \
         0,                                                                                                            \
         {LOW_##da_domain, LOW_##db_domain},                                                                           \
         {HIGH_##da_domain, HIGH_##db_domain}},
#define TERNARY(name, types, f, da, db, a_domain, b_domain)                                                            \
        {#name,                                                                                                        \
         KIND_TERNARY,                                                                                                 \
         types,                                                                                                        \
         LG_PW_##name,                                                                                                 \
         reference_##name,                                                                                             \
         {reference_##name##_da, reference_##name##_db},                                                               \
         0,                                                                                                            \
         0,                                                                                                            \
         {LOW_##a_domain, LOW_##b_domain},                                                                             \
         {HIGH_##a_domain, HIGH_##b_domain}},
#define COMPARE(name, f)                                                                                               \
        {#name, KIND_COMPARE, ANY, LG_PW_##name, reference_##name, {NULL, NULL}, 0, 0, {-3, -3}, {3, 3}},
#define COMPARE_SCALAR(name, f)                                                                                        \
        {#name, KIND_COMPARE_SCALAR, ANY, LG_PW_##name, reference_##name, {NULL, NULL}, 1, 0, {-3, 0}, {3, 0}},
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

static operand trial_run(const trial *t, const operand *out, const lg_kernels *k, int threads)
{
        operand o = *out;
        o.memory = malloc(o.bytes);
        memset(o.memory, 0x77, o.bytes);
        lg_queue q = make_queue(threads);
        lg_pointwise_args a = {
                .ndim = t->ndim, .dtype = t->dtype, .out = operand_at(&o), .p0 = t->of->p0, .p1 = t->of->p1};
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

static void check_trial(trial *t, int layout)
{
        operand out = make_operand(t->out_dtype, t->ndim, t->shape, layout, false, 0, 1);
        trial_inputs(t, layout);
        int64_t n = count_of(t->ndim, t->shape);
        for (int i = 0; i < ISAS; i++) {
                const lg_kernels *k = lg__cpu_kernels(isas[i]);
                if (!k)
                        continue;
                operand one = trial_run(t, &out, k, 1), two = trial_run(t, &out, k, 2);
                assert_memory_equal(one.memory, two.memory, out.bytes);
                double scale = t->dtype == LG_F64 ? 1e-12 : 4 * tolerance[t->dtype];
                for (int64_t j = 0; j < n; j++) {
                        double got = operand_get(&one, t->ndim, t->shape, j), want = trial_value(t, j);
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
}

static void check_op(const op *o, lg_dtype dtype, int which)
{
        int last = !is_float(dtype) || !o->derivative[0] ? 0 : o->derivative[1] ? 2 : 1;
        for (int d = 0; d <= last; d++) {
                trial t = {.of = o, .id = o->id + d, .derivative = d > 0, .dtype = dtype};
                t.formula = d ? o->derivative[d - 1] : o->forward;
                t.out_dtype = o->kind == KIND_COMPARE || o->kind == KIND_COMPARE_SCALAR ? LG_BOOL : dtype;
                t.ndim = make_shape(which, t.shape);
                check_trial(&t, which % 2 == 1 || which > 4);
        }
}

static void test_pointwise(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
                for (lg_dtype t = LG_F32; t < LG_DTYPE_COUNT; t++) {
                        for (int which = 0; which < SHAPES && (is_float(t) || ops[i].types == ANY); which++)
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

/* ---- contiguous arrays ---- */
static void *make_array(lg_dtype t, int64_t n, double lo, double hi)
{
        return make_operand(t, 1, &n, 0, false, lo, hi).memory;
}

static void check_array(const char *what, lg_dtype t, const void *got, const double *want, int64_t n, double tol)
{
        for (int64_t i = 0; i < n; i++) {
                /* Beyond f16's range there is only infinity. */
                double limited = t == LG_F16 && fabs(want[i]) >= 65520 ? copysign(INFINITY, want[i]) : want[i];
                if (!close_to(get(t, got, i), limited, tol))
                        fail_msg("%s dtype %d at %lld: %g, not %g", what, t, (long long)i, get(t, got, i), want[i]);
        }
}

/* Runs `call` (of k and q) for every instruction set on 1 and 2 threads; `out` must come out the same for both, and
 * `check` is run on it. */
#define EVERY(out, bytes, call, ...)                                                                                   \
        for (int isa_ = 0; isa_ < ISAS; isa_++) {                                                                      \
                const lg_kernels *k = lg__cpu_kernels(isas[isa_]);                                                     \
                void *first_ = malloc((bytes) + 1);                                                                    \
                for (int threads_ = 1; k && threads_ <= 2; threads_++) {                                               \
                        lg_queue q = make_queue(threads_);                                                             \
                        memset(out, 0x77, bytes);                                                                      \
                        call;                                                                                          \
                        if (threads_ == 1)                                                                             \
                                memcpy(first_, out, bytes);                                                            \
                        assert_memory_equal(first_, out, bytes);                                                       \
                        __VA_ARGS__;                                                                                   \
                }                                                                                                      \
                free(first_);                                                                                          \
        }

static void test_copy(void **state)
{
        (void)state;
        for (lg_dtype from = LG_F32; from < LG_DTYPE_COUNT; from++) {
                for (lg_dtype to = LG_F32; to < LG_DTYPE_COUNT; to++) {
                        for (int which = 0; which < SHAPES; which++) {
                                lg_copy_args a = {.out_dtype = to, .in_dtype = from};
                                a.ndim = make_shape(which, a.shape);
                                bool positive = to == LG_U8;
                                operand in = make_operand(from, a.ndim, a.shape, 1, true, positive ? 0 : -9, 9);
                                operand out = make_operand(to, a.ndim, a.shape, which % 2, false, 0, 1);
                                memcpy(a.in_strides, in.strides, sizeof in.strides);
                                memcpy(a.out_strides, out.strides, sizeof out.strides);
                                a.in = operand_at(&in);
                                a.out = operand_at(&out);
                                int64_t n = count_of(a.ndim, a.shape);
                                EVERY(out.memory, out.bytes, CALL(k->copy, &q, &a), {
                                        for (int64_t i = 0; i < n; i++) {
                                                double one[1], v = operand_get(&in, a.ndim, a.shape, i);
                                                put(to, one, 0, v);
                                                assert_true(operand_get(&out, a.ndim, a.shape, i) == get(to, one, 0));
                                        }
                                });
                                free(in.memory);
                                free(out.memory);
                        }
                }
        }
}

static void test_copy_transposed_and_saturating(void **state)
{
        (void)state;
        static const lg_dtype types[] = {LG_F64, LG_F32, LG_F16, LG_U8};
        for (int t = 0; t < 4; t++) {
                int64_t shape[3] = {3, 101, 77}, n = 3 * 101 * 77;
                void *in = make_array(types[t], n, 0, 99), *out = make_array(types[t], n, 0, 1);
                lg_copy_args a = {.ndim = 3,
                                  .out_dtype = types[t],
                                  .in_dtype = types[t],
                                  .in = in,
                                  .out = out,
                                  .shape = {3, 101, 77},
                                  .out_strides = {101 * 77, 77, 1},
                                  .in_strides = {101 * 77, 1, 101}};
                EVERY(out, (size_t)n * size_of[types[t]], CALL(k->copy, &q, &a), {
                        for (int64_t i = 0; i < n; i++)
                                assert_true(get(types[t], out, i) ==
                                            get(types[t], in, offset_of(3, shape, a.in_strides, i)));
                });
                free(in);
                free(out);
        }
        const double special[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 300, -7.9, 255.9, 3e9, -3e9};
        const int64_t as_i64[] = {0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 300, -7, 255, 3000000000, -3000000000};
        const int32_t as_i32[] = {0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 300, -7, 255, INT32_MAX, INT32_MIN};
        const uint8_t as_u8[] = {0, 255, 0, 255, 0, 255, 0, 255, 255, 0};
        int64_t r64[10];
        int32_t r32[10];
        uint8_t r8[10];
        lg_copy_args a = {
                .ndim = 1, .shape = {10}, .in_dtype = LG_F64, .in = special, .out_strides = {1}, .in_strides = {1}};
        a.out = r64, a.out_dtype = LG_I64;
        EVERY(r64, sizeof r64, CALL(k->copy, &q, &a), assert_memory_equal(r64, as_i64, sizeof r64));
        a.out = r32, a.out_dtype = LG_I32;
        EVERY(r32, sizeof r32, CALL(k->copy, &q, &a), assert_memory_equal(r32, as_i32, sizeof r32));
        a.out = r8, a.out_dtype = LG_U8;
        EVERY(r8, sizeof r8, CALL(k->copy, &q, &a), assert_memory_equal(r8, as_u8, sizeof r8));
}

/* The nearest f16 or bf16 by search among all of them, ties to even. */
static void test_half(void **state)
{
        (void)state;
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

static void test_philox(void **state)
{
        (void)state;
        const uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
        const uint32_t ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
        lg_philox_words all = {{~0u, ~0u, ~0u, ~0u}};
        lg_philox_words b = lg_philox_block(0, 0);
        assert_memory_equal(b.w, zeros, sizeof zeros);
        b = lg_philox(all, ~0u, ~0u);
        assert_memory_equal(b.w, ones, sizeof ones);
}

static void check_random(const lg_random_args *a)
{
        double sum = 0, squares = 0, mean = a->kind == LG_RANDOM_UNIFORM ? (a->a + a->b) / 2 : a->a;
        double deviation = a->kind == LG_RANDOM_UNIFORM ? (a->b - a->a) / sqrt(12) : a->b;
        for (int64_t i = 0; i < a->n; i++) {
                double x = get(a->dtype, a->out, i);
                assert_true(a->kind == LG_RANDOM_NORMAL || (x >= a->a && x < a->b));
                sum += (x - mean) / deviation;
                squares += (x - mean) * (x - mean) / (deviation * deviation);
        }
        assert_true(fabs(sum / (double)a->n) < 5 / sqrt((double)a->n) + tolerance[a->dtype]);
        assert_true(fabs(squares / (double)a->n - 1) < 8 / sqrt((double)a->n) + 2 * tolerance[a->dtype]);
        lg_philox_words w = lg_philox_block(a->seed, a->offset + 1);
        bool wide = a->dtype == LG_F64;
        double u = wide ? lg_philox_uniform53(w.w[2], w.w[3]) : lg_philox_uniform24(w.w[1]);
        if (a->kind == LG_RANDOM_UNIFORM)
                assert_true(
                        close_to(get(a->dtype, a->out, wide ? 3 : 5), a->a + (a->b - a->a) * u, tolerance[a->dtype]));
}

static void test_random_fill_arange(void **state)
{
        (void)state;
        for (int t = 0; t < 4; t++) {
                const lg_dtype dtype = float_types[t];
                const int64_t n = 40001;
                void *out = make_array(dtype, n, 0, 1);
                size_t bytes = (size_t)n * size_of[dtype];
                lg_random_args u = {
                        .n = n, .dtype = dtype, .out = out, .a = -1, .b = 2, .seed = 7, .offset = 1ull << 33};
                EVERY(out, bytes, CALL(k->random, &q, &u), check_random(&u));
                lg_random_args z = {
                        .n = n, .dtype = dtype, .out = out, .kind = LG_RANDOM_NORMAL, .a = 1, .b = 2, .seed = 9};
                EVERY(out, bytes, CALL(k->random, &q, &z), check_random(&z));
                free(out);
        }
        for (lg_dtype t = LG_F32; t < LG_DTYPE_COUNT; t++) {
                double out[1000], want[1000];
                lg_arange_args a = {.n = 100, .dtype = t, .out = out, .start = 3, .step = 2};
                EVERY(out, 100 * size_of[t], CALL(k->arange, &q, &a), {
                        for (int64_t i = 0; i < 100; i++)
                                assert_true(get(t, out, i) == (t == LG_BOOL ? 1 : 3 + 2 * (double)i));
                });
                lg_fill_args f = {.ndim = 2,
                                  .shape = {10, 7},
                                  .strides = {50, 2},
                                  .dtype = t,
                                  .out = out,
                                  .real = 1.5,
                                  .integer = 2};
                double value = is_float(t) ? 1.5 : t == LG_BOOL ? 1 : 2;
                EVERY(out, sizeof out, CALL(k->fill, &q, &f), {
                        for (int64_t i = 0; i < 500; i++) {
                                memset(want, 0x77, sizeof want);
                                bool inside = i % 50 % 2 == 0 && i % 50 < 14;
                                assert_true(get(t, out, i) == (inside ? value : get(t, want, 0)));
                        }
                });
        }
}

/* ---- reductions ---- */
static double reduce_reference(const lg_reduce_args *a, int64_t k)
{
        int64_t n = count_of(a->reduced_ndim, a->reduced), at = 0;
        int64_t base = offset_of(a->kept_ndim, a->kept, a->kept_strides, k);
        double sum = 0, squares = 0, top = 0;
        for (int64_t i = 0; i < n; i++)
                sum += get(a->dtype, a->in, base + offset_of(a->reduced_ndim, a->reduced, a->reduced_strides, i));
        for (int64_t i = 0; i < n; i++) {
                double x = get(a->dtype, a->in, base + offset_of(a->reduced_ndim, a->reduced, a->reduced_strides, i));
                squares += pow(x - sum / (double)n, 2);
                bool more = a->kind == LG_REDUCE_MIN ? x < top : x > top;
                if (i == 0 || more || (isnan(x) && !isnan(top)))
                        top = x, at = i;
        }
        if (a->kind == LG_REDUCE_VAR)
                return squares / fmax(0, (double)n - a->correction);
        return a->kind == LG_REDUCE_SUM ? sum : a->kind == LG_REDUCE_ARGMAX ? (double)at : top;
}

static void check_reduce(lg_reduce_args *a)
{
        int64_t kept = count_of(a->kept_ndim, a->kept);
        bool index = a->kind == LG_REDUCE_ARGMAX || (a->kind == LG_REDUCE_SUM && !is_float(a->dtype));
        lg_dtype t = index ? LG_I64 : a->dtype;
        double *want = malloc((size_t)(kept + 1) * sizeof *want);
        for (int64_t i = 0; i < kept; i++)
                want[i] = reduce_reference(a, i);
        a->out = malloc((size_t)(kept + 1) * 8);
        EVERY(a->out, (size_t)kept * size_of[t], CALL(k->reduce, &q, a),
              check_array("reduce", t, a->out, want, kept, tolerance[t]));
        free(want);
        free(a->out);
}

/* Splits a shape into kept and reduced dimensions by the bits of `mask`. */
static void check_reductions(lg_dtype t, int ndim, const int64_t *shape, int layout, unsigned mask)
{
        for (int kind = LG_REDUCE_SUM; kind <= LG_REDUCE_VAR; kind++) {
                operand in = make_operand(t, ndim, shape, layout, true, is_float(t) ? -1 : 0, is_float(t) ? 2 : 9);
                lg_reduce_args a = {.kind = (lg_reduce_kind)kind, .dtype = t, .in = operand_at(&in), .correction = 1};
                for (int d = 0; d < ndim; d++) {
                        if (mask >> d & 1) {
                                a.reduced[a.reduced_ndim] = shape[d];
                                a.reduced_strides[a.reduced_ndim++] = in.strides[d];
                        } else {
                                a.kept[a.kept_ndim] = shape[d];
                                a.kept_strides[a.kept_ndim++] = in.strides[d];
                        }
                }
                bool empty = count_of(a.reduced_ndim, a.reduced) == 0;
                if (is_float(t) && kind != LG_REDUCE_SUM && kind != LG_REDUCE_VAR && layout == 0 && !empty)
                        put(t, in.memory, 1 < in.bytes / size_of[t] ? 1 : 0, NAN);
                if ((!empty || kind == LG_REDUCE_SUM || kind == LG_REDUCE_VAR) &&
                    (is_float(t) || kind != LG_REDUCE_VAR))
                        check_reduce(&a);
                free(in.memory);
        }
}

static void test_reduce(void **state)
{
        (void)state;
        for (lg_dtype t = LG_F32; t < LG_DTYPE_COUNT; t++) {
                for (int which = 0; which < SHAPES; which++) {
                        int64_t shape[LG_MAX_DIMS];
                        int ndim = make_shape(which, shape);
                        for (unsigned mask = 0; mask < 1u << ndim; mask++)
                                check_reductions(t, ndim, shape, which % 2, mask);
                }
                check_reductions(t, 2, (int64_t[]){3000, 20}, 0, 1);
                check_reductions(t, 2, (int64_t[]){2, 150000}, 0, 2);
                check_reductions(t, 3, (int64_t[]){40, 6, 300}, 0, 5);
                check_reductions(t, 3, (int64_t[]){40, 300, 6}, 0, 3);
        }
}

/* ---- products ---- */
static void check_gemm(lg_dtype t, int64_t m, int64_t n, int64_t k_size, bool ta, bool tb, int beta)
{
        const int64_t batch = 3, ldc = n + 3, lda = (ta ? m : k_size) + 2, ldb = (tb ? k_size : n) + 1;
        int64_t a_n = lda * ((ta ? k_size : m) + 1), b_n = ldb * ((tb ? n : k_size) + 1), c_n = batch * (m * ldc + 5);
        void *a = make_array(t, batch * a_n, -1, 1), *b = make_array(t, b_n, -1, 1), *c = make_array(t, c_n, -1, 1);
        void *start = malloc((size_t)c_n * size_of[t] + 1);
        memcpy(start, c, (size_t)c_n * size_of[t]);
        lg_gemm_args g = {.dtype = t,
                          .m = m,
                          .n = n,
                          .k = k_size,
                          .a = a,
                          .b = b,
                          .c = c,
                          .ldc = ldc,
                          .beta = beta,
                          .a_row = ta ? 1 : lda,
                          .a_col = ta ? lda : 1,
                          .b_row = tb ? 1 : ldb,
                          .b_col = tb ? ldb : 1,
                          .batch_ndim = 1,
                          .batch = {batch},
                          .a_batch = {a_n},
                          .b_batch = {0},
                          .c_batch = {m * ldc + 5}};
        double *want = malloc((size_t)(c_n + 1) * sizeof *want);
        for (int64_t i = 0; i < c_n; i++)
                want[i] = get(t, start, i);
        for (int64_t i = 0; i < batch * m * n; i++) {
                int64_t s = i / (m * n), r = i / n % m, col = i % n;
                double sum = beta ? get(t, start, s * g.c_batch[0] + r * ldc + col) : 0;
                for (int64_t x = 0; x < k_size; x++)
                        sum += get(t, a, s * a_n + r * g.a_row + x * g.a_col) * get(t, b, x * g.b_row + col * g.b_col);
                want[s * g.c_batch[0] + r * ldc + col] = sum;
        }
        EVERY(
                c, (size_t)c_n * size_of[t],
                {
                        memcpy(c, start, (size_t)c_n * size_of[t]);
                        CALL(k->gemm, &q, &g);
                },
                check_array("gemm", t, c, want, c_n, tolerance[t] * 4));
        free(a);
        free(b);
        free(c);
        free(start);
        free(want);
}

static void test_gemm(void **state)
{
        (void)state;
        static const int64_t sizes[][3] = {{1, 1, 1},  {5, 7, 3},  {0, 3, 2},     {3, 4, 0},
                                           {1, 9, 17}, {33, 1, 8}, {150, 220, 90}};
        for (int t = 0; t < 4; t++) {
                for (int s = 0; s < 7; s++) {
                        for (int flags = 0; flags < 8; flags++)
                                check_gemm(float_types[t], sizes[s][0], sizes[s][1], sizes[s][2], flags & 1, flags & 2,
                                           flags >> 2);
                }
        }
}

/* ---- softmax ---- */
static void softmax_reference(const lg_softmax_args *a, double *ret)
{
        for (int64_t i = 0; i < a->outer * a->inner; i++) {
                int64_t base = i / a->inner * a->n * a->inner + i % a->inner;
                double top = -INFINITY, sum = 0;
                for (int64_t j = 0; j < a->n; j++)
                        top = fmax(top, get(a->dtype, a->x, base + j * a->inner));
                for (int64_t j = 0; j < a->n; j++)
                        sum += exp(get(a->dtype, a->x, base + j * a->inner) - top);
                for (int64_t j = 0; j < a->n; j++) {
                        double x = get(a->dtype, a->x, base + j * a->inner) - top;
                        ret[base + j * a->inner] = a->log ? x - log(sum) : exp(x) / sum;
                }
        }
}

static void softmax_vjp_reference(const lg_softmax_vjp_args *a, double *ret)
{
        for (int64_t i = 0; i < a->outer * a->inner; i++) {
                int64_t base = i / a->inner * a->n * a->inner + i % a->inner;
                double sum = 0;
                for (int64_t j = 0; j < a->n; j++) {
                        double g = get(a->dtype, a->g, base + j * a->inner);
                        sum += a->log ? g : g * get(a->dtype, a->y, base + j * a->inner);
                }
                for (int64_t j = 0; j < a->n; j++) {
                        int64_t at = base + j * a->inner;
                        double g = get(a->dtype, a->g, at), y = get(a->dtype, a->y, at);
                        ret[at] = a->log ? g - exp(y) * sum : y * (g - sum);
                }
        }
}

static void check_softmax(lg_dtype t, int64_t outer, int64_t n, int64_t inner, bool logarithm)
{
        int64_t count = outer * n * inner;
        size_t bytes = (size_t)count * size_of[t];
        void *x = make_array(t, count, -5, 5), *y = make_array(t, count, 0, 1), *g = make_array(t, count, -1, 1);
        double *want = malloc((size_t)(count + 1) * sizeof *want);
        for (int64_t j = 0; j < n && count; j++)
                put(t, x, j * inner, -INFINITY);
        lg_softmax_args a = {.dtype = t, .outer = outer, .n = n, .inner = inner, .log = logarithm, .x = x, .y = y};
        softmax_reference(&a, want);
        EVERY(y, bytes, CALL(k->softmax, &q, &a), check_array("softmax", t, y, want, count, tolerance[t]));
        lg_softmax_vjp_args v = {
                .dtype = t, .outer = outer, .n = n, .inner = inner, .log = logarithm, .y = y, .g = g, .dx = x};
        softmax_vjp_reference(&v, want);
        EVERY(x, bytes, CALL(k->softmax_vjp, &q, &v), check_array("vjp", t, x, want, count, 4 * tolerance[t]));
        free(x);
        free(y);
        free(g);
        free(want);
}

static void test_softmax(void **state)
{
        (void)state;
        static const int64_t sizes[][3] = {{5, 7, 1}, {3, 5, 4},    {2, 3, 300}, {0, 3, 2},
                                           {2, 0, 3}, {40, 500, 1}, {1, 1, 1}};
        for (int t = 0; t < 4; t++) {
                for (int s = 0; s < 7; s++) {
                        check_softmax(float_types[t], sizes[s][0], sizes[s][1], sizes[s][2], false);
                        check_softmax(float_types[t], sizes[s][0], sizes[s][1], sizes[s][2], true);
                }
        }
}

/* ---- cross entropy ---- */
/* q of each row and class; the loss and its derivative follow from it by the header's formulas. */
static void weights_reference(const lg_cross_entropy_args *a, double *ret)
{
        int64_t counted = 0;
        for (int64_t i = 0; i < a->rows; i++)
                counted += a->labels[i] != a->ignore_index && a->labels[i] >= 0 && a->labels[i] < a->classes;
        for (int64_t i = 0; i < a->rows * a->classes; i++) {
                int64_t label = a->labels[i / a->classes];
                bool ignored = label == a->ignore_index || label < 0 || label >= a->classes;
                double w = a->reduction == LG_MEAN ? 1.0 / (double)counted : 1, e = a->label_smoothing;
                ret[i] = ignored ? 0 : w * ((1 - e) * (label == i % a->classes) + e / (double)a->classes);
        }
}

static void cross_entropy_reference(const lg_cross_entropy_args *a, double *weights, double *ret_loss, double *ret_dx)
{
        int64_t c = a->classes, count = a->rows * c;
        double *lp = malloc((size_t)(count + 1) * sizeof *lp);
        lg_softmax_args s = {.dtype = a->dtype, .outer = a->rows, .n = c, .inner = 1, .log = true, .x = a->x};
        softmax_reference(&s, lp);
        ret_loss[0] = a->reduction == LG_MEAN && a->rows == 0 ? NAN : 0;
        for (int64_t i = 0; i < a->rows; i++) {
                double total = 0, loss = 0, g = get(a->dtype, a->g, a->reduction == LG_NONE ? i : 0);
                for (int64_t j = 0; j < c; j++) {
                        total += weights[i * c + j];
                        loss -= weights[i * c + j] * lp[i * c + j];
                }
                for (int64_t j = 0; j < c; j++)
                        ret_dx[i * c + j] = g * (exp(lp[i * c + j]) * total - weights[i * c + j]);
                if (a->reduction == LG_NONE)
                        ret_loss[i] = loss;
                else
                        ret_loss[0] += loss;
        }
        free(lp);
}

static void check_cross_entropy(lg_dtype t, int64_t rows, int64_t classes, lg_reduction reduction, double smoothing)
{
        int64_t count = rows * classes, *labels = malloc((size_t)(rows + 1) * sizeof *labels);
        void *x = make_array(t, count, -3, 3), *g = make_array(t, rows + 1, 0.5, 1),
             *out = malloc((size_t)(count + rows + 1) * 8);
        double *weights = calloc((size_t)count + 1, 8), *loss = calloc((size_t)rows + 1, 8),
               *dx = calloc((size_t)count + 1, 8);
        for (int64_t i = 0; i < rows; i++)
                labels[i] = i % 5 == 4 ? -100 : random_int(0, classes - 1);
        if (rows > 2)
                labels[2] = classes + 6, labels[3] = -7;
        lg_cross_entropy_args a = {.dtype = t,
                                   .rows = rows,
                                   .classes = classes,
                                   .reduction = reduction,
                                   .x = x,
                                   .g = g,
                                   .ignore_index = -100,
                                   .label_smoothing = smoothing,
                                   .labels = labels,
                                   .out = out};
        weights_reference(&a, weights);
        cross_entropy_reference(&a, weights, loss, dx);
        int64_t losses = reduction == LG_NONE ? rows : 1;
        EVERY(out, (size_t)losses * size_of[t], CALL(k->cross_entropy, &q, &a), {
                check_array("cross_entropy", t, out, loss, losses, tolerance[t]);
                assert_int_equal(q.fault.code, rows > 2 ? LG_FAULT_LABEL : LG_FAULT_NONE);
                assert_true(q.fault.value == (rows > 2 ? classes + 6 : 0) && q.fault.limit == (rows > 2 ? classes : 0));
        });
        EVERY(out, (size_t)count * size_of[t], CALL(k->cross_entropy_vjp, &q, &a),
              check_array("cross_entropy_vjp", t, out, dx, count, tolerance[t]));
        EVERY(out, (size_t)count * size_of[t], CALL(k->class_weights, &q, &a),
              check_array("class_weights", t, out, weights, count, tolerance[t]));
        free(labels), free(x), free(g), free(out), free(weights), free(loss), free(dx);
}

static void test_cross_entropy(void **state)
{
        (void)state;
        for (int t = 0; t < 4; t++) {
                for (int r = LG_MEAN; r <= LG_NONE; r++) {
                        for (int e = 0; e < 2; e++) {
                                check_cross_entropy(float_types[t], 7, 5, (lg_reduction)r, 0.1 * e);
                                check_cross_entropy(float_types[t], 0, 5, (lg_reduction)r, 0.1 * e);
                                check_cross_entropy(float_types[t], 500, 70, (lg_reduction)r, 0.1 * e);
                        }
                }
        }
}

/* ---- optimisers: the formulas of kernels.h, step by step ---- */

static void sgd_reference(const lg_sgd_args *a, double *p, double g, double *b)
{
        double d = (a->maximize ? -g : g) + a->weight_decay * *p;
        if (a->momentum != 0) {
                *b = a->first ? d : a->momentum * *b + (1 - a->dampening) * d;
                d = a->nesterov ? d + a->momentum * *b : *b;
        }
        *p -= a->lr * d;
}

static void adam_reference(const lg_adam_args *a, double *p, double g, double *m, double *v)
{
        double d = a->maximize ? -g : g;
        if (a->decoupled)
                *p *= 1 - a->lr * a->weight_decay;
        else
                d += a->weight_decay * *p;
        *m = a->beta1 * *m + (1 - a->beta1) * d;
        *v = a->beta2 * *v + (1 - a->beta2) * d * d;
        double step = a->lr / (1 - pow(a->beta1, (double)a->step));
        *p -= step * *m / (sqrt(*v) / sqrt(1 - pow(a->beta2, (double)a->step)) + a->eps);
}

/* 100 steps in f64, fewer where each one rounds, on two tensors; flags choose the variant. */
static void check_optimiser(lg_dtype t, bool adam, int flags)
{
        enum { N = 33001 };
        const int64_t n[2] = {N, 3};
        const bool half = t == LG_F16 || t == LG_BF16;
        const int steps = half ? 3 : t == LG_F64 ? 100 : 10;
        for (int i = 0; i < 2; i++) {
                /* Squares of small gradients would vanish in f16. */
                void *p0 = make_array(t, n[i], -1, 1), *g = make_array(t, n[i], half ? 0.5 : -1, 1);
                void *p = malloc(N * 8), *s0 = malloc(N * 8), *s1 = malloc(N * 8);
                lg_update u[2] = {{.dtype = t, .n = 0},
                                  {.dtype = t, .n = n[i], .param = p, .grad = g, .state = {s0, s1}}};
                lg_sgd_args sgd = {.count = 2,
                                   .updates = u,
                                   .lr = 0.01,
                                   .momentum = flags & 1 ? 0.9 : 0,
                                   .dampening = flags & 2 ? 0.1 : 0,
                                   .weight_decay = flags & 4 ? 0.02 : 0,
                                   .nesterov = (flags & 9) == 9,
                                   .maximize = flags & 2};
                lg_adam_args ad = {.count = 2,
                                   .updates = u,
                                   .lr = 0.01,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .eps = 1e-8,
                                   .weight_decay = flags & 4 ? 0.02 : 0,
                                   .decoupled = flags & 1,
                                   .maximize = flags & 2};
                if (!adam && !(flags & 1))
                        u[1].state[0] = NULL;
                double *want = malloc(N * sizeof *want);
                for (int64_t j = 0; j < n[i]; j++) {
                        double m = 0, v = 0, x = get(t, p0, j);
                        for (int s = 0; s < steps; s++) {
                                sgd.first = s == 0;
                                ad.step = s + 1;
                                if (adam)
                                        adam_reference(&ad, &x, get(t, g, j), &m, &v);
                                else
                                        sgd_reference(&sgd, &x, get(t, g, j), &m);
                        }
                        want[j] = x;
                }
                EVERY(
                        p, (size_t)n[i] * size_of[t],
                        {
                                memcpy(p, p0, (size_t)n[i] * size_of[t]);
                                memset(s0, adam ? 0 : 0xFF, N * 8);
                                memset(s1, 0, N * 8);
                                for (int s = 0; s < steps; s++) {
                                        sgd.first = s == 0;
                                        ad.step = s + 1;
                                        if (adam)
                                                CALL(k->adam, &q, &ad);
                                        else
                                                CALL(k->sgd, &q, &sgd);
                                }
                                q.fault.code = LG_FAULT_LABEL; /* now nothing may change */
                                CALL(k->sgd, &q, &sgd);
                                CALL(k->adam, &q, &ad);
                        },
                        check_array(adam ? "adam" : "sgd", t, p, want, n[i],
                                    t == LG_F64 ? 1e-12
                                    : half      ? 4 * tolerance[t]
                                                : 2e-5));
                free(p0), free(g), free(p), free(s0), free(s1), free(want);
        }
}

static void test_optimisers(void **state)
{
        (void)state;
        for (int t = 0; t < 4; t++) {
                for (int flags = 0; flags < 16; flags++)
                        check_optimiser(float_types[t], false, flags);
                for (int flags = 0; flags < 8; flags++)
                        check_optimiser(float_types[t], true, flags);
        }
}

static void test_device(void **state)
{
        (void)state;
        const lg_device_api *d = lg_cpu_device();
        lg_queue q = make_queue(1);
        lg_device_facts facts;
        char reason[100] = "", host[5] = "libg", back[5] = "";
        q.api = d;
        assert_int_equal(d->abi, LG_DEVICE_ABI);
        assert_int_equal(d->count(reason, sizeof reason), 1);
        assert_true(d->open(&q, reason, sizeof reason) && d->facts(0, &facts) && !d->facts(1, &facts));
        assert_true(facts.name[0] && facts.total_bytes > 0 && facts.free_bytes > 0);
        void *p = d->allocate(&q, 5);
        assert_true(p && (uintptr_t)p % 64 == 0);
        assert_true(d->upload(&q, p, host, 5) && d->download(&q, back, p, 5));
        assert_string_equal(back, "libg");
        d->free(&q, p, 5);
        d->close(&q);
        assert_false(lg_queue_fail(&q, LG_BROKEN, "first %d", 1) || lg_queue_fail(&q, LG_NO_MEMORY, "second"));
        assert_int_equal(q.status, LG_BROKEN);
        assert_string_equal(q.message, "first 1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_half),
                cmocka_unit_test(test_philox),
                cmocka_unit_test(test_device),
                cmocka_unit_test(test_copy),
                cmocka_unit_test(test_copy_transposed_and_saturating),
                cmocka_unit_test(test_random_fill_arange),
                cmocka_unit_test(test_pointwise),
                cmocka_unit_test(test_reduce),
                cmocka_unit_test(test_gemm),
                cmocka_unit_test(test_softmax),
                cmocka_unit_test(test_cross_entropy),
                cmocka_unit_test(test_optimisers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
