/* gemm.cu - matrix products, tile by tile through shared memory. */
#include "cuda.h"

#define TILE 16

/* A block computes TILE x TILE elements of C. */
template <typename H> static __global__ void gemm_loop(lg_gemm_args g, int64_t batches, int64_t across, int64_t down)
{
        LG_SHARED(H, a, TILE * TILE);
        LG_SHARED(H, b, TILE * TILE);
        const int row = (int)threadIdx.x / TILE, column = (int)threadIdx.x % TILE;
        for (int64_t block = blockIdx.x; block < batches * across * down; block += gridDim.x) {
                int64_t batch = block / (across * down), at_a = 0, at_b = 0, at_c = 0, rest = batch;
                for (int d = g.batch_ndim - 1; d >= 0; d--) {
                        int64_t i = rest % g.batch[d];
                        rest /= g.batch[d];
                        at_a += i * g.a_batch[d];
                        at_b += i * g.b_batch[d];
                        at_c += i * g.c_batch[d];
                }
                int64_t i = block / across % down * TILE + row, j = block % across * TILE + column;
                H sum = 0;
                for (int64_t k = 0; k < g.k; k += TILE) {
                        __syncthreads();
                        a[row * TILE + column] =
                                i < g.m && k + column < g.k
                                        ? lg_load<H>(g.a, g.dtype, at_a + i * g.a_row + (k + column) * g.a_col)
                                        : (H)0;
                        b[row * TILE + column] =
                                k + row < g.k && j < g.n
                                        ? lg_load<H>(g.b, g.dtype, at_b + (k + row) * g.b_row + j * g.b_col)
                                        : (H)0;
                        __syncthreads();
                        for (int l = 0; l < TILE; l++)
                                sum += a[row * TILE + l] * b[l * TILE + column];
                }
                if (i < g.m && j < g.n) {
                        int64_t at = at_c + i * g.ldc + j;
                        lg_store<H>(g.c, g.dtype, at, g.beta ? sum + lg_load<H>(g.c, g.dtype, at) : sum);
                }
        }
}

extern "C" bool lg_cuda_gemm(lg_queue *q, const lg_gemm_args *g)
{
        int64_t batches = lg_count(g->batch_ndim, g->batch), across = (g->n + TILE - 1) / TILE,
                down = (g->m + TILE - 1) / TILE;
        int64_t blocks = batches * across * down;
        if (!lg_is_float(g->dtype))
                return lg_queue_fail(q, LG_BROKEN, "gemm: no kernel for dtype %d", (int)g->dtype);
        return LG_WITH_FLOAT(g->dtype, lg_launch(q, "gemm", gemm_loop<H>, blocks < 65536 ? blocks : 65536, *g, batches,
                                                 across, down));
}
