/* softmax.c - softmax and log-softmax over the middle of three dimensions, and their derivatives. */
#include "cpu.h"
#include "scalar.h"

#define COLUMNS 256 /* maximum columns of a block */
#define SPAN 1024   /* elements of a row that are summed in their own type before their sum is added to one in f64 */

/* Neighbouring columns: their number and the offset of the first. */
typedef struct block {
        int64_t cols, at;
} block;

static block block_of(int64_t n, int64_t inner, int64_t i)
{
        const int64_t blocks = lg_ceil_div(inner, COLUMNS), first = i % blocks * COLUMNS;
        return (block){lg_least(COLUMNS, inner - first), i / blocks * n * inner + first};
}

#define LG_BOTH "softmax.inc"
#include "both.inc"

static bool run_parts(lg_queue *q, int64_t outer, int64_t n, int64_t inner, lg_range_fn *run, const void *args)
{
        lg_parallel(q, n ? outer * lg_ceil_div(inner, COLUMNS) : 0, lg_grain(4 * n * lg_least(inner, COLUMNS)), run,
                    args);
        return true;
}

static bool softmax(lg_queue *q, const lg_softmax_args *a)
{
        return run_parts(q, a->outer, a->n, a->inner, a->dtype == LG_F64 ? softmax_parts_f64 : softmax_parts_f32, a);
}
LG_FLOAT_KERNEL(softmax, lg_softmax_args, a->outer * a->n * a->inner, LG_READS(x), LG_WRITES_IN_PLACE(y))

static bool softmax_vjp(lg_queue *q, const lg_softmax_vjp_args *a)
{
        return run_parts(q, a->outer, a->n, a->inner, a->dtype == LG_F64 ? vjp_parts_f64 : vjp_parts_f32, a);
}
LG_FLOAT_KERNEL(softmax_vjp, lg_softmax_vjp_args, a->outer * a->n * a->inner, LG_READS(y), LG_READS(g),
                LG_WRITES_IN_PLACE(dx))
