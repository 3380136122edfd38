/* nonzero.cu - the indices of elements that are not 0: chunks are counted first, so that each block knows where to
 * write. */
#include "cuda.h"

#define WARPS (LG_THREADS / 32)

/* Returns whether element i is not 0; NaN counts as not 0. */
static __device__ inline bool is_nonzero(const lg_nonzero_args &a, int64_t i)
{
        return a.dtype == LG_F64      ? lg_load<double>(a.x, a.dtype, i) != 0
               : lg_is_float(a.dtype) ? lg_load<float>(a.x, a.dtype, i) != 0
                                      : lg_load<int64_t>(a.x, a.dtype, i) != 0;
}

/* Returns how many threads of the block before this one have `here` set; *ret_all counts those of the whole block. */
static __device__ inline int before_me(bool here, int *ret_all, int *shared)
{
        const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
        const unsigned bits = __ballot_sync(0xffffffffu, here);
        int before = __popc(bits & ((1u << lane) - 1)), all = 0;
        __syncthreads();
        if (lane == 0)
                shared[warp] = __popc(bits);
        __syncthreads();
        for (int w = 0; w < WARPS; w++) {
                before += w < warp ? shared[w] : 0;
                all += shared[w];
        }
        *ret_all = all;
        return before;
}

static __global__ void find_chunks(lg_nonzero_args a, int64_t n, int64_t chunks)
{
        LG_SHARED(int, shared, WARPS);
        for (int64_t k = blockIdx.x; k < chunks; k += gridDim.x) {
                const int64_t end = (k + 1) * LG_NONZERO_CHUNK < n ? (k + 1) * LG_NONZERO_CHUNK : n;
                int64_t found = a.places ? a.starts[k] : 0;
                if (a.places && found == a.starts[k + 1])
                        continue;
                for (int64_t tile = k * LG_NONZERO_CHUNK; tile < end; tile += LG_THREADS) {
                        int64_t i = tile + threadIdx.x;
                        const bool here = i < end && is_nonzero(a, i);
                        int all;
                        const int64_t place = found + before_me(here, &all, shared);
                        for (int d = a.ndim - 1; here && a.places && d >= 0; i /= a.shape[d], d--)
                                a.places[place * a.ndim + d] = d ? i % a.shape[d] : i;
                        found += all;
                }
                if (!a.places && threadIdx.x == 0)
                        a.starts[k + 1] = found;
        }
}

/* Replaces counts by their running sums, in one block; each thread has a range of chunks. */
static __global__ void sum_chunks(int64_t *starts, int64_t chunks)
{
        LG_SHARED(int64_t, sums, LG_THREADS);
        const int64_t share = (chunks + LG_THREADS - 1) / LG_THREADS, first = 1 + threadIdx.x * share;
        const int64_t end = first + share <= chunks ? first + share : chunks + 1;
        int64_t sum = 0;
        for (int64_t k = first; k < end; k++)
                sum += starts[k];
        sums[threadIdx.x] = sum;
        __syncthreads();
        sum = 0;
        for (unsigned t = 0; t < threadIdx.x; t++)
                sum += sums[t];
        if (threadIdx.x == 0)
                starts[0] = 0;
        for (int64_t k = first; k < end; k++)
                sum = starts[k] += sum;
}

extern "C" bool lg_cuda_nonzero(lg_queue *q, const lg_nonzero_args *a)
{
        const int64_t n = lg_count(a->ndim, a->shape), chunks = (n + LG_NONZERO_CHUNK - 1) / LG_NONZERO_CHUNK;
        return (n == 0 || lg_launch(q, "nonzero", find_chunks, lg_few_blocks(q, chunks, 8), *a, n, chunks)) &&
               (a->places || lg_launch(q, "nonzero (sums)", sum_chunks, 1, a->starts, chunks));
}
