/* softmax.c - softmax and log-softmax over the middle of three dimensions, and their derivatives. */
#include "cpu.h"
#include "scalar.h"

#define COLUMNS 256 /* of a block */
#define SPAN 1024   /* elements of a row that are added up in their own type before they are joined in f64 */

/* A pass over an (outer, n, inner) tensor. */
typedef struct job {
        lg_dtype dtype;
        int64_t n, inner;
        bool log;
        const void *x, *y, *g;
        void *out; /* y or dx */
} job;

/* Some columns side by side, and where the first begins. */
typedef struct block {
        int64_t cols, at;
} block;

static block block_of(const job *j, int64_t i)
{
        const int64_t blocks = lg_ceil_div(j->inner, COLUMNS), first = i % blocks * COLUMNS;
        return (block){lg_least(COLUMNS, j->inner - first), i / blocks * j->n * j->inner + first};
}

#define LG_BOTH "softmax.inc"
#include "both.inc"

static void softmax_parts(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        (void)thread;
        (j->dtype == LG_F64 ? softmax_parts_f64 : softmax_parts_f32)(j, first, end);
}

static void vjp_parts(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        (void)thread;
        (j->dtype == LG_F64 ? vjp_parts_f64 : vjp_parts_f32)(j, first, end);
}

static void run_parts(lg_queue *q, int64_t outer, const job *j, lg_range_fn *run)
{
        lg_parallel(q, outer * lg_ceil_div(j->inner, COLUMNS), lg_grain(4 * j->n * lg_least(j->inner, COLUMNS)), run,
                    j);
}

bool LG_CPU(softmax)(lg_queue *q, const lg_softmax_args *a)
{
        int64_t count = a->outer * a->n * a->inner;
        job j = {.dtype = a->dtype, .n = a->n, .inner = a->inner, .log = a->log, .x = a->x, .out = a->y};
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "softmax: no kernel for dtype %d", (int)a->dtype);
        if (count == 0)
                return true;
        if (lg_is_half(a->dtype) && !(j.x = j.out = lg_widen(q, a->dtype, count, a->x)))
                return false;
        run_parts(q, a->outer, &j, softmax_parts);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->y, j.out);
        return true;
}

bool LG_CPU(softmax_vjp)(lg_queue *q, const lg_softmax_vjp_args *a)
{
        int64_t count = a->outer * a->n * a->inner;
        job j = {.dtype = a->dtype, .n = a->n, .inner = a->inner, .log = a->log, .y = a->y, .g = a->g, .out = a->dx};
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "softmax_vjp: no kernel for dtype %d", (int)a->dtype);
        if (count == 0)
                return true;
        if (lg_is_half(a->dtype)) {
                if (!(j.y = lg_widen(q, a->dtype, count, a->y)) || !(j.g = j.out = lg_widen(q, a->dtype, count, a->g)))
                        return false;
        }
        run_parts(q, a->outer, &j, vjp_parts);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->dx, j.out);
        return true;
}
