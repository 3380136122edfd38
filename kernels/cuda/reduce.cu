/* reduce.cu - sums, greatest and smallest elements, their places, variances: a block for each kept element, in a fixed
 * order. */
#include "cuda.h"

/* Better than what was found: greater (smaller), NaN before all, of equals the first. */
template <typename H> static __device__ inline bool better(bool least, H x, int64_t at, H than, int64_t than_at)
{
        if (than_at < 0 || at < 0)
                return than_at < 0 && at >= 0;
        bool x_nan = x != x, than_nan = than != than;
        if (x_nan || than_nan)
                return x_nan && (!than_nan || at < than_at);
        return (least ? x < than : x > than) || (x == than && at < than_at);
}

template <typename H, typename S> static __global__ void reduce_loop(lg_reduce_args a, int64_t kept, int64_t count)
{
        LG_SHARED(S, sums, LG_THREADS / 32);
        LG_SHARED(H, tops, LG_THREADS);
        LG_SHARED(int64_t, places, LG_THREADS);
        const bool extreme = a.kind != LG_REDUCE_SUM && a.kind != LG_REDUCE_VAR;
        const bool least = a.kind == LG_REDUCE_MIN || a.kind == LG_REDUCE_ARGMIN;
        const bool place = a.kind == LG_REDUCE_ARGMAX || a.kind == LG_REDUCE_ARGMIN;
        for (int64_t k = blockIdx.x; k < kept; k += gridDim.x) {
                int64_t base = lg_offset(a.kept_ndim, a.kept, a.kept_strides, k), at = -1;
                S sum = 0, mean = 0;
                H top = 0;
                for (int64_t i = threadIdx.x; i < count; i += LG_THREADS) {
                        H x = lg_load<H>(a.in, a.dtype,
                                         base + lg_offset(a.reduced_ndim, a.reduced, a.reduced_strides, i));
                        if (extreme && better<H>(least, x, i, top, at))
                                top = x, at = i;
                        sum += (S)x;
                }
                if (extreme) {
                        __syncthreads();
                        tops[threadIdx.x] = top;
                        places[threadIdx.x] = at;
                        __syncthreads();
                        if (threadIdx.x == 0) {
                                for (int i = 1; i < LG_THREADS; i++)
                                        if (better<H>(least, tops[i], places[i], top, at))
                                                top = tops[i], at = places[i];
                                if (place)
                                        ((int64_t *)a.out)[k] = at;
                                else
                                        lg_store<H>(a.out, a.dtype, k, top);
                        }
                        continue;
                }
                sum = lg_block_sum(sum, sums);
                if (a.kind == LG_REDUCE_VAR) {
                        mean = sum / (S)count;
                        sum = 0;
                        for (int64_t i = threadIdx.x; i < count; i += LG_THREADS) {
                                S d = (S)lg_load<H>(a.in, a.dtype,
                                                    base + lg_offset(a.reduced_ndim, a.reduced, a.reduced_strides, i)) -
                                      mean;
                                sum += d * d;
                        }
                        sum = lg_block_sum(sum, sums);
                        double left = (double)count - a.correction;
                        sum = (S)((double)sum / (left > 0 ? left : 0));
                }
                if (threadIdx.x == 0)
                        lg_store<S>(a.out, lg_is_float(a.dtype) ? a.dtype : LG_I64, k, sum);
        }
}

extern "C" bool lg_cuda_reduce(lg_queue *q, const lg_reduce_args *a)
{
        int64_t kept = lg_count(a->kept_ndim, a->kept), count = lg_count(a->reduced_ndim, a->reduced);
        int64_t blocks = kept < 65536 ? kept : 65536;
        if (a->dtype == LG_F64)
                return lg_launch(q, "reduce", reduce_loop<double, double>, blocks, *a, kept, count);
        if (lg_is_float(a->dtype))
                return lg_launch(q, "reduce", reduce_loop<float, double>, blocks, *a, kept, count);
        return lg_launch(q, "reduce", reduce_loop<int64_t, int64_t>, blocks, *a, kept, count);
}
