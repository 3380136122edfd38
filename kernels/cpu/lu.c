/* lu.c - LU factorisation with partial pivoting.
 *
 * Strips of columns from the first to the last: a strip is factorised, recursively by halves; then for each panel of
 * the other columns rows are exchanged, and to the right a triangular system and a product finish the strip's rows and
 * subtract its part from what is below. */
#include <math.h>
#include "linalg.h"

#define STRIP 32 /* columns of a strip */
#define LEAF 4   /* columns that are subtracted from each other one at a time */

typedef struct matrix {
        void *lu, *sign;
        int64_t *permutation;
        int64_t m, n, first, cols; /* first row and column of the strip, and its columns */
        void *strip;               /* the strip, transposed: a column each `step` elements */
        int64_t step;
        int64_t pivots[STRIP];
        char *buffers; /* panel of each thread of a loop over panels, of `buffer` bytes */
        int64_t buffer;
} matrix;

#define transpose_f32 lg_transpose_f32_to
#define transpose_f64 lg_transpose_f64_to
#define LG_DTYPE (sizeof(LG_T) == sizeof(double) ? LG_F64 : LG_F32)
#define LG_BOTH "lu.inc"
#include "both.inc"

typedef struct job {
        lg_queue *q;
        const lg_lu_args *a;
        int64_t step, buffer, strip, room; /* step of a strip; bytes of a panel, of a strip, and of a thread */
        char *scratch;
        int64_t *failed;
} job;

static void spoil(const lg_lu_args *a, const matrix *m)
{
        for (int64_t i = 0; i < a->m * a->n; i++)
                if (a->dtype == LG_F64)
                        ((double *)m->lu)[i] = NAN;
                else
                        ((float *)m->lu)[i] = NAN;
}

static void factor_items(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        const lg_lu_args *a = j->a;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype), bytes = a->m * a->n * size;
        char *scratch = j->scratch + thread * j->room;
        for (int64_t i = first; i < end; i++) {
                matrix m = {.lu = lg_byte_at(a->lu, i * bytes), .permutation = a->permutation + i * a->m};
                m.sign = lg_byte_at(a->signs, i * size);
                m.m = a->m;
                m.n = a->n;
                m.strip = scratch;
                m.step = j->step;
                m.buffers = scratch + j->strip;
                m.buffer = j->buffer;
                memcpy(m.lu, lg_byte_at(a->a, i * bytes), (size_t)bytes);
                j->failed[i] = a->dtype == LG_F64 ? factor_f64(j->q, &m) : factor_f32(j->q, &m);
                if (j->failed[i] && a->origin)
                        spoil(a, &m);
        }
}

/* Sets the results for matrices without elements. */
static void set_empty(const lg_lu_args *a)
{
        for (int64_t i = 0; i < a->count * a->m; i++)
                a->permutation[i] = i % a->m;
        for (int64_t i = 0; i < a->count; i++)
                if (a->dtype == LG_F64)
                        ((double *)a->signs)[i] = 1;
                else
                        ((float *)a->signs)[i] = 1;
}

bool LG_CPU(lu)(lg_queue *q, const lg_lu_args *a)
{
        const bool f64 = a->dtype == LG_F64;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype), rank = lg_least(a->m, a->n);
        const bool few = a->count < q->threads; /* one after the other, each with all threads */
        job j = {.q = q, .a = a, .buffer = STRIP * LG_VECTOR * LG_BLOCK_VECTORS};
        if (a->dtype != LG_F32 && !f64)
                return lg_queue_fail(q, LG_BROKEN, "lu: no kernel for dtype %d", (int)a->dtype);
        if (a->count == 0)
                return true;
        if (rank == 0) {
                set_empty(a);
                return true;
        }
        /* An odd number of cache lines, so that columns do not share sets of the cache. */
        j.step = (lg_ceil_div(a->m * size, 128) * 128 + 64) / size;
        j.strip = j.step * size * (STRIP + 1); /* with a column of a small matrix */
        j.room = j.strip + j.buffer * (few ? q->threads : 1);
        j.failed = q->workspace(q, (size_t)a->count * sizeof *j.failed);
        const int64_t threads = few ? 1 : lg_least(q->threads, a->count);
        if (!j.failed || !(j.scratch = q->workspace(q, (size_t)(threads * j.room))))
                return false;
        if (few)
                factor_items(&j, 0, a->count, 0);
        else
                lg_parallel(q, a->count, lg_grain(a->m * (a->n / 2 + 16) * (rank / 64 + 1)), factor_items, &j);
        if (a->origin)
                lg_note_failed(q, a->origin, a->count, j.failed);
        return true;
}
