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

/* The derivative of one call. */
typedef struct job {
        const lg_layer_norm_vjp_args *a;
        const void *x, *w, *g;
        void *dx;
        int64_t stretch, stretches; /* outer indices of a stretch */
        double *cells;              /* of each stretch: dw, then db */
        double *parts;              /* of each thread: the sums of a few rows */
} job;

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

/* The rows of one call. */
typedef struct rows {
        const lg_layer_norm_args *a;
        const void *x, *w, *b;
        void *y;
} rows;

static void normalise_rows(const void *user, int64_t first, int64_t end, int thread)
{
        const rows *j = user;
        const lg_layer_norm_args *a = j->a;
        const int64_t n = a->channels * a->inner;
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                row r = {a->channels, a->inner, a->rms, 0, 0, i % a->groups * a->channels};
                if (a->dtype == LG_F64)
                        normalise_f64(&r, a->eps, (const double *)j->x + i * n, j->w, j->b, (double *)j->y + i * n);
                else
                        normalise_f32(&r, a->eps, (const float *)j->x + i * n, j->w, j->b, (float *)j->y + i * n);
                a->mean[i] = r.mean;
                a->rstd[i] = r.rstd;
        }
}

bool LG_CPU(layer_norm)(lg_queue *q, const lg_layer_norm_args *a)
{
        int64_t count = a->outer * a->groups, n = a->channels * a->inner;
        rows j = {.a = a, .x = a->x, .y = a->y};
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "layer_norm: no kernel for dtype %d", (int)a->dtype);
        if (count * n == 0)
                return true;
        j.w = weights_or(q, a->dtype, a->w, a->groups * a->channels, 1);
        j.b = weights_or(q, a->dtype, a->b, a->groups * a->channels, 0);
        if (!j.w || !j.b || (lg_is_half(a->dtype) && !(j.x = j.y = lg_widen(q, a->dtype, count * n, a->x))))
                return false;
        lg_parallel(q, count, lg_grain(4 * n), normalise_rows, &j);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count * n, a->y, j.y);
        return true;
}

/* ---- the derivative ---- */

static void derive_stretches(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        const int64_t groups = j->a->groups;
        double *part = j->parts + 2 * thread * j->a->channels;
        for (int64_t i = first; i < end; i++)
                if (j->a->dtype == LG_F64)
                        derive_stretch_f64(j, i / groups, i % groups, part);
                else
                        derive_stretch_f32(j, i / groups, i % groups, (float *)part);
}

/* The stretches' sums in order; of none: zero. */
static void join_weights(const job *j, const double *cells, void *to)
{
        int64_t weights = j->a->groups * j->a->channels;
        for (int64_t c = 0; to && c < weights; c++) {
                double sum = 0;
                for (int64_t s = 0; s < j->stretches; s++)
                        sum += cells[2 * s * weights + c];
                if (j->a->dtype == LG_F64)
                        ((double *)to)[c] = sum;
                else
                        ((float *)to)[c] = (float)sum;
        }
}

bool LG_CPU(layer_norm_vjp)(lg_queue *q, const lg_layer_norm_vjp_args *a)
{
        int64_t n = a->channels * a->inner, weights = a->groups * a->channels, count = a->outer * a->groups * n;
        job j = {.a = a, .x = a->x, .g = a->g, .dx = a->dx};
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "layer_norm_vjp: no kernel for dtype %d", (int)a->dtype);
        j.stretch = lg_most(lg_ceil_div(a->outer, STRETCHES), lg_ceil_div(32, lg_most(a->inner, 1)));
        j.stretches = count ? lg_ceil_div(a->outer, j.stretch) : 0;
        if (count) {
                j.w = weights_or(q, a->dtype, a->w, weights, 1);
                j.cells = q->workspace(q, (size_t)(2 * j.stretches * weights) * sizeof(double));
                j.parts = q->workspace(q, (size_t)(2 * q->threads * a->channels) * sizeof(double));
                if (!j.w || !j.cells || !j.parts)
                        return false;
        }
        if (count && lg_is_half(a->dtype)) {
                if (!(j.x = lg_widen(q, a->dtype, count, a->x)) || !(j.g = lg_widen(q, a->dtype, count, a->g)))
                        return false;
                j.dx = a->dx ? (void *)j.g : NULL;
        }
        lg_parallel(q, j.stretches * a->groups, lg_grain(4 * j.stretch * n), derive_stretches, &j);
        join_weights(&j, j.cells, a->dw);
        join_weights(&j, j.cells ? j.cells + weights : NULL, a->db);
        if (lg_is_half(a->dtype) && a->dx)
                lg_narrow(q, a->dtype, count, a->dx, j.dx);
        return true;
}
