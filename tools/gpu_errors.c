/* gpu_errors.c - how far results on a device are from those in f64 on the CPU, for every op, as a part of gpu_bench.
 *
 * Both get the same inputs, rounded to the dtype. The error is max|x - ref| / max(1, max|ref|), of the result and of
 * the gradients by the inputs for a gradient in [-1, 1). Limits: of f32 a hundred roundings (2^-24), of f16 (2^-11) and
 * bf16 (2^-8) four, since they are computed in f32 and rounded when they are stored, once for each op that a composite
 * or a derivative takes. A product of TF32 rounds each factor by up to 2^-11; over k terms the error grows as sqrt(k),
 * and so does the result to which it is compared: four roundings for any k.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "gpu_bench.h"

enum { MOST_INPUTS = 5, MOST_KINKS = 4, MOST_SIZES = 4 };

typedef struct error_row {
        const char *name;
        lg_tensor *(*run)(lg_ctx *c, lg_tensor *const *x);
        int inputs, gradients;
        int64_t shape[MOST_INPUTS][MOST_SIZES];
        double low[MOST_INPUTS], high[MOST_INPUTS];
        int64_t below, index[MOST_SIZES];
        int kink_count;
        double kinks[MOST_KINKS]; /* kept away from */
        double grid;              /* values are whole parts of 1 / grid ... */
        bool apart;               /* ... and those of input 1 half a part beside those of input 0 */
        bool product;
} error_row;

/* ---- the table ---- */

#define PARAMS0 (x[0])
#define PARAMS1(v) (x[0], v)
#define PARAMS2(v, w) (x[0], v, w)
#define OP(name, call, ...)                                                                                            \
        static lg_tensor *op_##name(lg_ctx *c, lg_tensor *const *x)                                                    \
        {                                                                                                              \
                (void)c;                                                                                               \
                return call;                                                                                           \
        }
#define UNARY(name, types, params, formula, dx, domain, kinks) OP(name, lg_##name params, )
#define BINARY(name, types, formula, da, db, domain_a, domain_b, kinks) OP(name, lg_##name(x[0], x[1]), )
#define TERNARY(name, types, formula, da, db, domain_a, domain_b)                                                      \
        OP(name, lg_##name(lg_gt(lg_detach(x[0]), lg_detach(x[1])), x[0], x[1]), )
#define COMPARE(name, formula) OP(name, lg_##name(x[0], x[1]), )
#define COMPARE_SCALAR(name, formula) OP(name, lg_##name(x[0], 0.5), )
#define TEST(name, formula) OP(name, lg_##name(lg_reciprocal(x[0])), )
#include "../kernels/pointwise.def"
#include "gpu_errors.def"
#undef OP
#undef UNARY
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef COMPARE_SCALAR
#undef TEST

#define FLAT                                                                                                           \
        {                                                                                                              \
                4099                                                                                                   \
        } /* neither of whole packs nor of whole blocks */
#define DOMAIN(lo, hi) lo, hi
#define SMOOTH .kink_count = 0
#define KINKS(...) .kink_count = sizeof((double[]){__VA_ARGS__}) / sizeof(double), .kinks = {__VA_ARGS__}
#define KINK_EQUAL .grid = 10, .apart = true
#define RANGES(a_lo, a_hi, b_lo, b_hi) .low = {a_lo, b_lo}, .high = {a_hi, b_hi}
#define RANGES2(...) RANGES(__VA_ARGS__)
#define OP(name_, call, ...) {.name = #name_, .run = op_##name_, __VA_ARGS__},
#define ONE .inputs = 1, .shape = {FLAT}
#define TWO .inputs = 2, .shape = {FLAT, FLAT}
#define UNARY(name, types, params, formula, dx, domain, kinks)                                                         \
        OP(name, , ONE, .gradients = 1, RANGES2(domain, 0, 0), kinks)
#define BINARY(name, types, formula, da, db, domain_a, domain_b, kinks)                                                \
        OP(name, , TWO, .gradients = 2, RANGES2(domain_a, domain_b), kinks)
#define TERNARY(name, types, formula, da, db, domain_a, domain_b)                                                      \
        OP(name, , TWO, .gradients = 2, RANGES2(domain_a, domain_b), .grid = 4)
#define COMPARE(name, formula) OP(name, , TWO, RANGES(-3, 3, -3, 3), .grid = 4)
#define COMPARE_SCALAR(name, formula) OP(name, , ONE, RANGES(-3, 3, 0, 0), .grid = 4)
#define TEST(name, formula) OP(name, , ONE, RANGES(-3, 3, 0, 0), .grid = 4)
static const error_row table[] = {
#include "../kernels/pointwise.def"
#include "gpu_errors.def"
};

/* ---- inputs ---- */

static lg_shape shape_of(const int64_t *size)
{
        lg_shape shape = LG_SHAPE_0D;
        while (shape.ndim < MOST_SIZES && size[shape.ndim]) {
                shape.size[shape.ndim] = size[shape.ndim];
                shape.ndim++;
        }
        return shape;
}

static double adjusted(const error_row *r, int which, double v)
{
        if (r->grid > 0)
                v = (floor(v * r->grid) + (r->apart && which ? 0.5 : 0)) / r->grid;
        for (int k = 0; k < r->kink_count; k++)
                if (fabs(v - r->kinks[k]) < 0.05)
                        v = r->kinks[k] + (v < r->kinks[k] ? -0.05 : 0.05);
        return v;
}

/* On the CPU, rounded to dtype. */
static lg_tensor *input(lg_ctx *c, const error_row *r, int which, lg_dtype dtype)
{
        double low = r->low[which], high = r->high[which];
        const bool given = low < high;
        lg_shape shape = shape_of(r->shape[which]);
        lg_tensor *x = lg_uniform(c, given ? low : -1, given ? high : 1, shape, .dtype = LG_F64, .device = lg_cpu());
        const size_t bytes = (size_t)lg_numel(x) * sizeof(double);
        double *v = malloc(bytes);
        if (v && lg_read(x, v, LG_F64, bytes)) {
                for (int64_t i = 0; i < lg_numel(x); i++)
                        v[i] = adjusted(r, which, v[i]);
                lg_write(x, v, LG_F64, bytes);
        }
        free(v);
        return lg_cast(x, dtype);
}

/* ---- runs ---- */

typedef struct result {
        lg_tensor *y, *gradient[MOST_INPUTS];
} result;

/* Of inputs as they are on the CPU, on a device in a dtype. The same random numbers are drawn each time. */
static result compute(lg_ctx *c, const error_row *r, lg_tensor *const *rounded, lg_device device, lg_dtype dtype)
{
        lg_tensor *x[MOST_INPUTS + 1] = {NULL};
        result ret = {.y = NULL};
        for (int i = 0; i < r->inputs; i++)
                x[i] = lg_requires_grad(lg_to(lg_cast(rounded[i], dtype), device), i < r->gradients);
        if (r->below)
                x[r->inputs] = lg_to(rounded[r->inputs], device);
        lg_set_random_state(c, (lg_random_state){7, 0});
        ret.y = r->run(c, x);
        if (!lg_needs_grad(ret.y))
                return ret;
        lg_set_random_state(c, (lg_random_state){8, 0});
        lg_tensor *g = lg_uniform(c, -1, 1, lg_shape_of(ret.y), .dtype = LG_BF16, .device = device);
        g = lg_cast(g, lg_dtype_of(ret.y)); /* the same values in every dtype */
        lg_grad(LG_LIST(ret.y), LG_LIST_OF(r->gradients, x), .grads = LG_LIST(g), .result = ret.gradient);
        return ret;
}

/* INFINITY where only one of both is finite, or they are infinite in two ways. */
static double error_of(lg_tensor *x, lg_tensor *reference)
{
        const int64_t n = lg_numel(reference);
        const size_t bytes = (size_t)n * sizeof(double);
        double *a = malloc(bytes + 1), *b = malloc(bytes + 1), worst = 0, greatest = 1;
        bool good = a && b && n == lg_numel(x) && lg_read(x, a, LG_F64, bytes) && lg_read(reference, b, LG_F64, bytes);
        for (int64_t i = 0; good && i < n; i++) {
                if (isfinite(a[i]) && isfinite(b[i])) {
                        worst = fmax(worst, fabs(a[i] - b[i]));
                        greatest = fmax(greatest, fabs(b[i]));
                } else if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])))
                        worst = INFINITY;
        }
        free(a);
        free(b);
        return good ? worst / greatest : INFINITY;
}

static double limit_of(const bench *b, lg_dtype dtype)
{
        return b->tf32 ? 2e-3 : dtype == LG_F32 ? 1e-5 : dtype == LG_F16 ? 2e-3 : 1.6e-2;
}

static void report(bench *b, const error_row *r, const char *what, lg_dtype dtype, double error, double limit)
{
        printf("{\"part\": \"errors\", \"name\": \"%s%s\", \"dtype\": \"%s\", \"limit\": %g", r->name, what,
               b->tf32 ? "tf32" : lg_dtype_name(dtype), limit);
        if (lg_error(b->c) || error <= limit) {
                end_figure(b, "error", error);
                return;
        }
        if (isfinite(error))
                printf(", \"error\": %.6g", error);
        end_failed(b,
                   isfinite(error) ? "the error is above its limit" : "values that are not finite, or of another size");
}

static void measure_row(bench *b, const error_row *r, lg_dtype dtype)
{
        lg_scope scope = lg_scope_begin(b->c);
        lg_tensor *rounded[MOST_INPUTS + 1] = {NULL};
        for (int i = 0; i < r->inputs; i++)
                rounded[i] = input(b->c, r, i, dtype);
        if (r->below)
                rounded[r->inputs] =
                        lg_cast(lg_uniform(b->c, 0, r->below, shape_of(r->index), .device = lg_cpu()), LG_I64);
        result reference = compute(b->c, r, rounded, lg_cpu(), LG_F64);
        result found = compute(b->c, r, rounded, b->device, dtype);
        /* What is no number of a float dtype is exact. */
        const double limit = lg_dtype_is_float(lg_dtype_of(found.y)) ? limit_of(b, dtype) : 0;
        double error = lg_error(b->c) ? INFINITY : error_of(found.y, reference.y), slope = 0;
        report(b, r, "", dtype, error, limit);
        for (int i = 0; i < r->gradients; i++)
                if (reference.gradient[i])
                        slope = fmax(slope, error_of(found.gradient[i], reference.gradient[i]));
        if (reference.gradient[0])
                report(b, r, " backward", dtype, slope, limit_of(b, dtype));
        lg_scope_end(b->c, scope);
}

void measure_errors(bench *b)
{
        const lg_dtype dtypes[] = {LG_F32, LG_F16, LG_BF16};
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
                for (int k = 0; k < (b->tf32 ? 1 : 3); k++)
                        if ((table[i].product || !b->tf32) && !time_is_over(b))
                                measure_row(b, &table[i], dtypes[k]);
}
