/* reflectors.c - Householder reflectors in blocks (Schreiber and Van Loan 1989) and plane rotations in sweeps. */
#include <math.h>
#include "reflectors.h"

int64_t lg_products_bytes(lg_dtype t, int64_t n)
{
        const int64_t wide = n + LG_WIDE_VECTORS * LG_LANES_f32; /* room for a panel that is not full */
        const lg_gemm_args g = {.dtype = t, .m = n, .n = wide, .k = n, .a_row = n, .a_col = 1, .b_row = 1, .b_col = n};
        const size_t strips = lg_multiply_bytes(&g, LG_BY_STRIPS), both = lg_multiply_bytes(&g, LG_BY_SHORT_STRIPS);
        return lg_aligned((int64_t)(strips > both ? strips : both));
}

bool lg_each_matrix(lg_queue *q, const void *args, int64_t count, int64_t cost, int64_t bytes, int origin,
                    lg_range_fn *fn)
{
        const int64_t grain = lg_grain(cost), threads = lg_most(1, lg_least(q->threads, lg_ceil_div(count, grain)));
        lg_matrices_job j = {.args = args, .bytes = lg_aligned(bytes)};
        j.failed = q->workspace(q, (size_t)count * sizeof *j.failed);
        if (!j.failed || !(j.scratch = q->workspace(q, (size_t)(threads * j.bytes))))
                return false;
        lg_parallel(q, count, grain, fn, &j);
        for (int64_t i = 0; i < count && q->error.code == LG_DEVICE_OK; i++)
                if (j.failed[i])
                        q->error = (lg_device_error){.code = origin, .value = i, .limit = j.failed[i]};
        return true;
}

#define LG_BOTH "reflectors.inc"
#include "both.inc"
