/* cumsum.cu - running sums: a thread, warp or block for each line. */
#include "rows.h"

/* What sums are kept in. */
template <typename T> struct sum_of {
        typedef double type;
};
template <> struct sum_of<int64_t> {
        typedef int64_t type;
};

template <typename T> static __global__ void cumsum_lines(lg_cumsum_args a)
{
        typedef typename sum_of<T>::type S;
        const int64_t step = a.reverse ? -a.inner : a.inner;
        for (int64_t l = LG_FIRST; l < a.outer * a.inner; l += LG_STEP) {
                int64_t at = l / a.inner * a.n * a.inner + l % a.inner + (a.reverse ? (a.n - 1) * a.inner : 0);
                S sum = 0;
                for (int64_t k = 0; k < a.n; k++, at += step) {
                        sum += (S)lg_wide(((const T *)a.x)[at]);
                        lg_put((T *)a.y + at, sum);
                }
        }
}

/* The sum of v over the threads of the pool before this one; *ret_all: over all of them. */
template <int TEAM, typename S> static __device__ inline S before_me(S v, S *ret_all, S *shared)
{
        const int lane = (int)threadIdx.x % 32;
        S up = v;
        for (int by = 1; by < 32; by *= 2) {
                S other = __shfl_up_sync(0xffffffffu, up, by);
                up += lane >= by ? other : (S)0;
        }
        S all = __shfl_sync(0xffffffffu, up, 31), before = 0, own = __shfl_up_sync(0xffffffffu, up, 1);
        if (TEAM == LG_THREADS) {
                __syncthreads();
                if (lane == 31)
                        shared[threadIdx.x / 32] = up;
                __syncthreads();
                all = 0;
                for (unsigned i = 0; i < LG_THREADS / 32; i++) {
                        before += i < threadIdx.x / 32 ? shared[i] : (S)0;
                        all += shared[i];
                }
        }
        *ret_all = all;
        return before + (lane ? own : (S)0); /* up - v were NaN beside an infinity */
}

/* Tiles of V elements a thread, one after the other; V is 1 where a.inner is not. */
template <typename T, int TEAM, int V> static __global__ void cumsum_rows(lg_cumsum_args a)
{
        typedef typename sum_of<T>::type S;
        LG_SHARED(S, shared, LG_THREADS / 32);
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.outer * a.inner; row += LG_ROW_STEP(TEAM)) {
                const int64_t base = row / a.inner * a.n * a.inner + row % a.inner;
                S carry = 0;
                for (int64_t tile = 0; tile < a.n; tile += TEAM * V) {
                        const int64_t i = tile + lg_rank<TEAM>() * V;
                        const bool there = i < a.n;
                        const int64_t at = base + (a.reverse ? a.n - V - i : i) * a.inner;
                        LG_COMPUTE(T) v[V] = {0};
                        S sum[V], all;
                        if (there)
                                lg_read<T, V>((const T *)a.x + at, v);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                sum[j] = (S)v[a.reverse ? V - 1 - j : j] + (j ? sum[j ? j - 1 : 0] : (S)0);
                        const S before = carry + before_me<TEAM>(sum[V - 1], &all, shared);
                        T out[V];
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                lg_put(&out[a.reverse ? V - 1 - j : j], before + sum[j]);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                v[j] = lg_wide(out[j]);
                        if (there)
                                lg_write<T, V>((T *)a.y + at, v);
                        carry += all;
                }
        }
}

template <typename T> static bool cumsum(lg_queue *q, const lg_cumsum_args *a)
{
        const bool even = a->inner == 1 && lg_even(LG_PACK(T), a->n, a->x, a->y);
        const int64_t lines = a->outer * a->inner, busy = (int64_t)lg_cuda(q)->processors * LG_THREADS;
        if (a->n <= 16 || (a->inner > 1 && (a->n <= 1024 || lines >= busy)))
                return lg_launch(q, "cumsum", cumsum_lines<T>, lg_blocks(q, lines), *a);
        if (a->n <= 1024)
                return lg_launch(q, "cumsum", even ? cumsum_rows<T, 32, LG_PACK(T)> : cumsum_rows<T, 32, 1>,
                                 lg_row_blocks(q, lines, 32), *a);
        return lg_launch(q, "cumsum", even ? cumsum_rows<T, LG_THREADS, LG_PACK(T)> : cumsum_rows<T, LG_THREADS, 1>,
                         lg_row_blocks(q, lines, LG_THREADS), *a);
}

extern "C" bool lg_cuda_cumsum(lg_queue *q, const lg_cumsum_args *a)
{
        if (a->outer * a->inner * a->n == 0)
                return true;
        return a->dtype == LG_I64 ? cumsum<int64_t>(q, a) : LG_WITH_STORED(a->dtype, cumsum<T>(q, a));
}
