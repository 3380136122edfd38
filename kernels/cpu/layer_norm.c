/* layer_norm.c - layer, group, instance and RMS norm over rows, and their derivative.
 *
 * Each row is normalised by one thread while it is in the cache. Gradients of weights and biases are summed over
 * stretches (fixed ranges of the outer dimension), then added in order: no result depends on the number of threads. */
#include <math.h>
#include "cpu.h"
#include "simd.h"

#define STRETCHES 64 /* maximum number of ranges of the outer dimension */
#define SPAN 256     /* elements that are summed in their own type before their sum is added to one in f64 */
#define ROWS 8       /* rows whose gradients are summed in their own type before their sum is added to one in f64 */

/* Sizes and statistics of a row. */
typedef struct row {
        int64_t channels, inner;
        bool rms;
        double mean, rstd;
        int64_t group; /* index of the first weight of the row's group */
} row;

/* One forward call; w and b are never NULL. */
typedef struct rows {
        const lg_layer_norm_args *a;
        const void *w, *b;
} rows;

/* One call of the derivative. */
typedef struct job {
        const lg_layer_norm_vjp_args *a;
        const void *w;
        int64_t stretch, stretches; /* outer indices per stretch; number of stretches */
        double *cells;              /* for each stretch: sums for dw, then for db */
        double *parts;              /* for each thread: sums of up to ROWS rows */
} job;

/* Returns the sum over all stretches of cell number `cell`, added in order; 0 if there are no stretches. */
static double joined(const job *j, int64_t cell)
{
        double sum = 0;
        for (int64_t s = 0; s < j->stretches; s++)
                sum += j->cells[2 * s * j->a->groups * j->a->channels + cell];
        return sum;
}

#define LG_BOTH "layer_norm.inc"
#include "both.inc"

/* Returns `given`, or if NULL, n copies of `value` in scratch memory (NULL if memory is exhausted). */
static const void *weights_or(lg_queue *q, lg_dtype t, const void *given, int64_t n, double value)
{
        void *made = given ? NULL : q->workspace(q, (size_t)n * sizeof(double));
        for (int64_t i = 0; made && i < n; i++) {
                if (t == LG_F64)
                        ((double *)made)[i] = value;
                else
                        ((float *)made)[i] = (float)value;
        }
        return given ? given : made;
}

static bool layer_norm(lg_queue *q, const lg_layer_norm_args *a)
{
        const int64_t count = a->outer * a->groups, n = a->channels * a->inner;
        rows j = {.a = a};
        if (count * n == 0)
                return true;
        j.w = weights_or(q, a->dtype, a->w, a->groups * a->channels, 1);
        j.b = weights_or(q, a->dtype, a->b, a->groups * a->channels, 0);
        if (!j.w || !j.b)
                return false;
        lg_parallel(q, count, lg_grain(4 * n), a->dtype == LG_F64 ? normalise_rows_f64 : normalise_rows_f32, &j);
        return true;
}
LG_FLOAT_KERNEL(layer_norm, lg_layer_norm_args, a->outer * a->groups * a->channels * a->inner, LG_READS(x),
                LG_WRITES_IN_PLACE(y))

static bool layer_norm_vjp(lg_queue *q, const lg_layer_norm_vjp_args *a)
{
        const int64_t n = a->channels * a->inner, weights = a->groups * a->channels;
        job j = {.a = a};
        j.stretch = lg_most(lg_ceil_div(a->outer, STRETCHES), lg_ceil_div(32, lg_most(a->inner, 1)));
        j.stretches = n * a->groups > 0 ? lg_ceil_div(a->outer, j.stretch) : 0;
        if (j.stretches) {
                j.w = weights_or(q, a->dtype, a->w, weights, 1);
                j.cells = q->workspace(q, (size_t)(2 * j.stretches * weights) * sizeof(double));
                j.parts = q->workspace(q, (size_t)(2 * q->threads * a->channels) * sizeof(double));
                if (!j.w || !j.cells || !j.parts)
                        return false;
        }
        lg_parallel(q, j.stretches * a->groups, lg_grain(4 * j.stretch * n),
                    a->dtype == LG_F64 ? derive_stretches_f64 : derive_stretches_f32, &j);
        (a->dtype == LG_F64 ? join_weights_f64 : join_weights_f32)(&j);
        return true;
}
LG_FLOAT_KERNEL(layer_norm_vjp, lg_layer_norm_vjp_args, a->outer * a->groups * a->channels * a->inner, LG_READS(x),
                LG_READS(g), LG_WRITES_IN_PLACE(dx))
