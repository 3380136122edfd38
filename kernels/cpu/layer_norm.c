/* layer_norm.c - layer norm and its relatives over rows, and their derivative.
 *
 * A row is normalised by one thread while it is in the cache. Gradients of weights and biases are summed over fixed
 * stretches of the outer dimension and joined in order: no result depends on the number of threads.
 */
#include <math.h>
#include "cpu.h"
#include "simd.h"

#define STRETCHES 64 /* at most */
#define SPAN 256     /* elements that are added up in their own type before they are joined in f64 */
#define ROWS 8       /* the same of rows */

/* A row's statistics and place. */
typedef struct row {
        int64_t channels, inner;
        bool rms;
        double mean, rstd;
        int64_t group; /* its first weight */
} row;

/* The rows of one call. */
typedef struct rows {
        const lg_layer_norm_args *a;
        const void *w, *b;
} rows;

/* The derivative of one call. */
typedef struct job {
        const lg_layer_norm_vjp_args *a;
        const void *w;
        int64_t stretch, stretches; /* outer indices of a stretch */
        double *cells;              /* of each stretch: dw, then db */
        double *parts;              /* of each thread: the sums of a few rows */
} job;

/* The stretches' sums of one weight in order; of none: zero. */
static double joined(const job *j, int64_t cell)
{
        double sum = 0;
        for (int64_t s = 0; s < j->stretches; s++)
                sum += j->cells[2 * s * j->a->groups * j->a->channels + cell];
        return sum;
}

#define LG_BOTH "layer_norm.inc"
#include "both.inc"

/* The weights given, or n times `value`. */
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
