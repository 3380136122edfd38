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

bool LG_CPU(softmax)(lg_queue *q, const lg_softmax_args *a)
{
        int64_t count = a->outer * a->n * a->inner;
        const void *x = a->x;
        void *y = a->y;
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "softmax: no kernel for dtype %d", (int)a->dtype);
        if (count == 0)
                return true;
        if (lg_is_half(a->dtype) && !(x = y = lg_widen(q, a->dtype, count, x)))
                return false;
        LG_PARALLEL_FOR(q, count >= LG_PARALLEL_MIN / 4)
        for (int64_t i = 0; i < parts_of(a->outer, a->inner); i++) {
                part p = part_of(i, a->n, a->inner, a->log);
                if (a->dtype == LG_F64)
                        softmax_part_f64(&p, x, y);
                else
                        softmax_part_f32(&p, x, y);
        }
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->y, y);
        return true;
}

bool LG_CPU(softmax_vjp)(lg_queue *q, const lg_softmax_vjp_args *a)
{
        int64_t count = a->outer * a->n * a->inner;
        const void *y = a->y, *g = a->g;
        void *dx = a->dx;
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "softmax_vjp: no kernel for dtype %d", (int)a->dtype);
        if (count == 0)
                return true;
        if (lg_is_half(a->dtype)) {
                if (!(y = lg_widen(q, a->dtype, count, y)) || !(g = dx = lg_widen(q, a->dtype, count, g)))
                        return false;
        }
        LG_PARALLEL_FOR(q, count >= LG_PARALLEL_MIN / 4)
        for (int64_t i = 0; i < parts_of(a->outer, a->inner); i++) {
                part p = part_of(i, a->n, a->inner, a->log);
                if (a->dtype == LG_F64)
                        vjp_part_f64(&p, y, g, dx);
                else
                        vjp_part_f32(&p, y, g, dx);
        }
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->dx, dx);
        return true;
}
