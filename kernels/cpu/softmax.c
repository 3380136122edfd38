/* softmax.c - softmax and log-softmax over the middle of three dimensions, and their derivatives. */
#include "cpu.h"
#include "scalar.h"

#define COLUMNS 256

/* One row (step 1) or some columns side by side of an (outer, n, inner) tensor. */
typedef struct part {
        int64_t n, cols, step, offset;
        bool log;
} part;

#define LG_T float
#define LG_SCALAR f32
#include "softmax.inc"
#undef LG_T
#undef LG_SCALAR
#define LG_T double
#define LG_SCALAR f64
#include "softmax.inc"

static int64_t parts_of(int64_t outer, int64_t inner)
{
        return outer * lg_ceil_div(inner, COLUMNS);
}

static part part_of(int64_t i, int64_t n, int64_t inner, bool log)
{
        int64_t blocks = lg_ceil_div(inner, COLUMNS), first = i % blocks * COLUMNS;
        return (part){.n = n,
                      .cols = lg_least(COLUMNS, inner - first),
                      .step = inner,
                      .offset = i / blocks * n * inner + first,
                      .log = log};
}

typedef struct job {
        lg_dtype dtype;
        int64_t n, inner;
        bool log;
        const void *x, *y, *g;
        void *out; /* y or dx */
} job;

static void softmax_parts(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                part p = part_of(i, j->n, j->inner, j->log);
                if (j->dtype == LG_F64)
                        softmax_part_f64(&p, j->x, j->out);
                else
                        softmax_part_f32(&p, j->x, j->out);
        }
}

static void vjp_parts(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                part p = part_of(i, j->n, j->inner, j->log);
                if (j->dtype == LG_F64)
                        vjp_part_f64(&p, j->y, j->g, j->out);
                else
                        vjp_part_f32(&p, j->y, j->g, j->out);
        }
}

static void run_parts(lg_queue *q, int64_t outer, const job *j, lg_range_fn *run)
{
        lg_parallel(q, parts_of(outer, j->inner), lg_grain(4 * j->n * lg_least(j->inner, COLUMNS)), run, j);
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
