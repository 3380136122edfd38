/* cumsum.cu - cumulative sums of numbers, or of numbers given by their logarithms: a thread, warp or block for each
 * line. */
#include "rows.h"
#include "scalar.h"

/* The type in which sums of elements of type T are computed. */
template <typename T> struct sum_of {
        typedef double type;
};
template <> struct sum_of<int64_t> {
        typedef int64_t type;
};

/* The kinds of addition: of numbers, and of numbers given by their logarithms. */
struct numbers {
        template <typename S> static __device__ inline S nothing(void)
        {
                return 0;
        }
        template <typename S> static __device__ inline S plus(S a, S b)
        {
                return a + b;
        }
};
struct logarithms {
        template <typename T> static __device__ inline T nothing(void)
        {
                return K(-INFINITY);
        }
        template <typename T> static __device__ inline T plus(T a, T b)
        {
                return LOGADDEXP(a, b);
        }
};

template <typename T, typename KIND> static __global__ void cumsum_lines(lg_cumsum_args a)
{
        typedef typename sum_of<T>::type S;
        const int64_t step = a.reverse ? -a.inner : a.inner;
        for (int64_t l = LG_FIRST; l < a.outer * a.inner; l += LG_STEP) {
                int64_t at = l / a.inner * a.n * a.inner + l % a.inner + (a.reverse ? (a.n - 1) * a.inner : 0);
                S sum = KIND::template nothing<S>();
                for (int64_t k = 0; k < a.n; k++, at += step) {
                        sum = KIND::plus(sum, (S)lg_wide(((const T *)a.x)[at]));
                        lg_put((T *)a.y + at, sum);
                }
        }
}

/* Returns the sum of v over the threads of the team before this one; *ret_all is the sum over the whole team. */
template <int TEAM, typename KIND, typename S> static __device__ inline S before_me(S v, S *ret_all, S *shared)
{
        const int lane = (int)threadIdx.x % 32;
        S up = v;
        for (int by = 1; by < 32; by *= 2) {
                S other = __shfl_up_sync(0xffffffffu, up, by);
                up = lane >= by ? KIND::plus(up, other) : up;
        }
        const S nothing = KIND::template nothing<S>();
        S all = __shfl_sync(0xffffffffu, up, 31), before = nothing, own = __shfl_up_sync(0xffffffffu, up, 1);
        if (TEAM == LG_THREADS) {
                __syncthreads();
                if (lane == 31)
                        shared[threadIdx.x / 32] = up;
                __syncthreads();
                all = nothing;
                for (unsigned i = 0; i < LG_THREADS / 32; i++) {
                        before = i < threadIdx.x / 32 ? KIND::plus(before, shared[i]) : before;
                        all = KIND::plus(all, shared[i]);
                }
        }
        *ret_all = all;
        return KIND::plus(before, lane ? own : nothing); /* `up` - v would be NaN if v is infinite */
}

/* Sums rows in tiles of V elements per thread, one tile after the other; V must be 1 unless a.inner is 1. */
template <typename T, typename KIND, int TEAM, int V> static __global__ void cumsum_rows(lg_cumsum_args a)
{
        typedef typename sum_of<T>::type S;
        LG_SHARED(S, shared, LG_THREADS / 32);
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.outer * a.inner; row += LG_ROW_STEP(TEAM)) {
                const int64_t base = row / a.inner * a.n * a.inner + row % a.inner;
                const S nothing = KIND::template nothing<S>();
                S carry = nothing;
                for (int64_t tile = 0; tile < a.n; tile += TEAM * V) {
                        const int64_t i = tile + lg_rank<TEAM>() * V;
                        const bool there = i < a.n;
                        const int64_t at = base + (a.reverse ? a.n - V - i : i) * a.inner;
                        LG_COMPUTE(T) v[V];
                        S sum[V], all;
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                v[j] = (LG_COMPUTE(T))nothing;
                        if (there)
                                lg_read<T, V>((const T *)a.x + at, v);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                sum[j] = KIND::plus((S)v[a.reverse ? V - 1 - j : j], j ? sum[j ? j - 1 : 0] : nothing);
                        const S before = KIND::plus(carry, before_me<TEAM, KIND>(sum[V - 1], &all, shared));
                        T out[V];
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                lg_put(&out[a.reverse ? V - 1 - j : j], KIND::plus(before, sum[j]));
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                v[j] = lg_wide(out[j]);
                        if (there)
                                lg_write<T, V>((T *)a.y + at, v);
                        carry = KIND::plus(carry, all);
                }
        }
}

template <typename T, typename KIND> static bool cumsum(lg_queue *q, const char *name, const lg_cumsum_args *a)
{
        const bool even = a->inner == 1 && lg_even(LG_PACK(T), a->n, a->x, a->y);
        const int64_t lines = a->outer * a->inner, busy = (int64_t)lg_cuda(q)->processors * LG_THREADS;
        if (lines * a->n == 0)
                return true;
        if (a->n <= 16 || (a->inner > 1 && (a->n <= 1024 || lines >= busy)))
                return lg_launch(q, name, cumsum_lines<T, KIND>, lg_blocks(q, lines), *a);
        if (a->n <= 1024)
                return lg_launch(q, name, even ? cumsum_rows<T, KIND, 32, LG_PACK(T)> : cumsum_rows<T, KIND, 32, 1>,
                                 lg_row_blocks(q, lines, 32), *a);
        return lg_launch(q, name,
                         even ? cumsum_rows<T, KIND, LG_THREADS, LG_PACK(T)> : cumsum_rows<T, KIND, LG_THREADS, 1>,
                         lg_row_blocks(q, lines, LG_THREADS), *a);
}

extern "C" bool lg_cuda_cumsum(lg_queue *q, const lg_cumsum_args *a)
{
        return a->dtype == LG_I64 ? cumsum<int64_t, numbers>(q, "cumsum", a)
                                  : LG_WITH_STORED(a->dtype, cumsum<T, numbers>(q, "cumsum", a));
}

extern "C" bool lg_cuda_logcumsumexp(lg_queue *q, const lg_cumsum_args *a)
{
        return LG_WITH_STORED(a->dtype, cumsum<T, logarithms>(q, "logcumsumexp", a));
}
