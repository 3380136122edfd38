/* cholesky.c - Cholesky factorisation.
 *
 * Computes u = l^T from the first rows to the last, in panels of columns whose rows are contiguous: each strip of rows
 * is a product with the strips above it, a small factorisation on the diagonal and a triangular system. Blocks above
 * the diagonal hold -u, so that products subtract. */
#include <math.h>
#include "linalg.h"

typedef struct matrix {
        const void *a;
        void *l;
        int64_t n, strip;
        void *panels, *negated; /* panels of u; u above the diagonal block of the strip's panel */
} matrix;

static inline float root_f32(float x)
{
        return sqrtf(x);
}

static inline double root_f64(double x)
{
        return sqrt(x);
}

#define transpose_f32 lg_transpose_f32_to
#define transpose_f64 lg_transpose_f64_to
#define LG_DTYPE (sizeof(LG_T) == sizeof(double) ? LG_F64 : LG_F32)
#define LG_BOTH "cholesky.inc"
#include "both.inc"

typedef struct job {
        lg_queue *q;
        const lg_cholesky_args *a;
        int64_t negated, room; /* bytes of panels, and of these with negated rows */
        char *scratch;
        int64_t *failed;
} job;

static void factor_items(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        const lg_cholesky_args *a = j->a;
        const int64_t bytes = a->n * a->n * (int64_t)lg_bytes_of(a->dtype);
        char *scratch = j->scratch + thread * j->room;
        for (int64_t i = first; i < end; i++) {
                matrix m = {.a = lg_byte_at(a->a, i * bytes), .l = lg_byte_at(a->l, i * bytes), .n = a->n};
                m.panels = scratch;
                m.negated = scratch + j->negated;
                j->failed[i] = a->dtype == LG_F64 ? factor_f64(j->q, &m) : factor_f32(j->q, &m);
        }
}

bool LG_CPU(cholesky)(lg_queue *q, const lg_cholesky_args *a)
{
        const bool f64 = a->dtype == LG_F64;
        const int64_t width = f64 ? LG_PANEL_f64 : LG_PANEL_f32, panels = lg_ceil_div(a->n, width);
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        job j = {.q = q, .a = a};
        if (a->dtype != LG_F32 && !f64)
                return lg_queue_fail(q, LG_BROKEN, "cholesky: no kernel for dtype %d", (int)a->dtype);
        if (a->count == 0 || a->n == 0)
                return true;
        j.negated = size * (f64 ? panel_at_f64(panels) : panel_at_f32(panels));
        j.room = j.negated + size * panels * width * width;
        const int64_t threads = lg_least(q->threads, a->count);
        j.failed = q->workspace(q, (size_t)a->count * sizeof *j.failed);
        if (!j.failed || !(j.scratch = q->workspace(q, (size_t)(threads * j.room))))
                return false;
        /* Few large matrices are factorised one after the other with all threads. */
        if (a->count < q->threads)
                factor_items(&j, 0, a->count, 0);
        else
                lg_parallel(q, a->count, lg_grain(a->n * (a->n / 4 + 16) * (a->n / 64 + 1)), factor_items, &j);
        lg_note_failed(q, a->origin, a->count, j.failed);
        return true;
}
