/* cummax.cu - running maxima and minima with the place of each: a warp for each line, which combines places. */
#include "rows.h"

/* Returns which of two places of a line, p before q, holds the extreme; -1 is no place. */
template <typename H>
static __device__ inline int64_t better(const lg_cummax_args &a, int64_t base, int64_t p, int64_t q)
{
        if (p < 0 || q < 0)
                return p < 0 ? q : p;
        const H u = lg_load<H>(a.x, a.dtype, base + p * a.inner), v = lg_load<H>(a.x, a.dtype, base + q * a.inner);
        return v != v || (u == u && (a.min ? v <= u : v >= u)) ? q : p;
}

template <typename H> static __global__ void cummax_rows(lg_cummax_args a)
{
        const int lane = (int)threadIdx.x % 32;
        for (int64_t row = LG_FIRST_ROW(32); row < a.outer * a.inner; row += LG_ROW_STEP(32)) {
                const int64_t base = row / a.inner * a.n * a.inner + row % a.inner;
                int64_t carry = -1;
                for (int64_t tile = 0; tile < a.n; tile += 32) {
                        const int64_t i = tile + lane, at = base + i * a.inner;
                        int64_t best = i < a.n ? i : -1;
                        for (int by = 1; by < 32; by *= 2) {
                                const int64_t other = __shfl_up_sync(0xffffffffu, best, by);
                                best = lane >= by ? better<H>(a, base, other, best) : best;
                        }
                        best = better<H>(a, base, carry, best);
                        if (i < a.n) {
                                a.indices[at] = best;
                                lg_store<H>(a.values, a.dtype, at, lg_load<H>(a.x, a.dtype, base + best * a.inner));
                        }
                        carry = __shfl_sync(0xffffffffu, best, 31);
                }
        }
}

extern "C" bool lg_cuda_cummax(lg_queue *q, const lg_cummax_args *a)
{
        return LG_WITH_COMPUTE(a->dtype, lg_launch(q, "cummax", cummax_rows<H>,
                                                   lg_row_blocks(q, a->n ? a->outer * a->inner : 0, 32), *a));
}
