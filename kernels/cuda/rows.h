/* rows.h - rows of memory, the teams of threads that hold one in their registers, and what a pool adds up. */
#ifndef LG_CUDA_ROWS_H
#define LG_CUDA_ROWS_H

#include "cuda.h"
#include <string.h>
#include <type_traits>

#ifdef LG_CUDASIM
#define LG_UNROLL
#define LG_UNROLL_BY(n)
#else
#define LG_PRAGMA(x) _Pragma(#x)
#define LG_UNROLL LG_PRAGMA(unroll)
#define LG_UNROLL_BY(n) LG_PRAGMA(unroll n)
#endif

/* Calls f with T, the type that elements of a float dtype are stored in. */
#define LG_WITH_STORED(t, ...)                                                                                         \
        ((t) == LG_F64   ? [&] { typedef double T; return __VA_ARGS__; }()                                             \
         : (t) == LG_F32 ? [&] { typedef float T; return __VA_ARGS__; }()                                              \
         : (t) == LG_F16 ? [&] { typedef __half T; return __VA_ARGS__; }()                                             \
                         : [&] { typedef __nv_bfloat16 T; return __VA_ARGS__; }())

/* What T is computed in. */
template <typename T> struct lg_compute_of {
        typedef float type;
};
template <> struct lg_compute_of<double> {
        typedef double type;
};
template <> struct lg_compute_of<int64_t> {
        typedef int64_t type;
};
#define LG_COMPUTE(T) typename lg_compute_of<T>::type

static __device__ inline float lg_wide(float x)
{
        return x;
}
static __device__ inline double lg_wide(double x)
{
        return x;
}
static __device__ inline int64_t lg_wide(int64_t x)
{
        return x;
}
static __device__ inline uint16_t lg_wide(uint16_t x) /* bits that are only moved */
{
        return x;
}
static __device__ inline float lg_wide(__half x)
{
        return __half2float(x);
}
static __device__ inline float lg_wide(__nv_bfloat16 x)
{
        return __bfloat162float(x);
}

static __device__ inline void lg_put(float *p, float x)
{
        *p = x;
}
static __device__ inline void lg_put(float *p, double x)
{
        *p = (float)x;
}
static __device__ inline void lg_put(double *p, double x)
{
        *p = x;
}
static __device__ inline void lg_put(int64_t *p, int64_t x)
{
        *p = x;
}
template <typename H> static __device__ inline void lg_put(__half *p, H x)
{
        *p = __float2half(lg_short_of(x));
}
template <typename H> static __device__ inline void lg_put(__nv_bfloat16 *p, H x)
{
        *p = __float2bfloat16(lg_short_of(x));
}

/* ---- V elements at once, in accesses of up to 16 bytes; p is aligned to them (lg_even) ---- */

template <typename T, int V> static __device__ inline void lg_read(const T *p, LG_COMPUTE(T) * to)
{
        T raw[V];
        const int bytes = (int)sizeof raw;
        if (bytes % 16 == 0) {
                uint4 part[bytes < 16 ? 1 : bytes / 16];
                LG_UNROLL
                for (int i = 0; i < bytes / 16; i++)
                        part[i] = ((const uint4 *)(const void *)p)[i];
                memcpy((void *)raw, part, bytes < 16 ? 0 : sizeof raw);
        } else if (bytes == 8 && V > 1) {
                uint2 part = *(const uint2 *)(const void *)p;
                memcpy((void *)raw, &part, bytes == 8 ? 8 : 0);
        } else {
                LG_UNROLL
                for (int i = 0; i < V; i++)
                        raw[i] = p[i];
        }
        LG_UNROLL
        for (int i = 0; i < V; i++)
                to[i] = lg_wide(raw[i]);
}

template <typename T, int V> static __device__ inline void lg_write(T *p, const LG_COMPUTE(T) * from)
{
        T raw[V];
        const int bytes = (int)sizeof raw;
        LG_UNROLL
        for (int i = 0; i < V; i++)
                lg_put(&raw[i], from[i]);
        if (bytes % 16 == 0) {
                uint4 part[bytes < 16 ? 1 : bytes / 16];
                memcpy(part, (const void *)raw, bytes < 16 ? 0 : sizeof raw);
                LG_UNROLL
                for (int i = 0; i < bytes / 16; i++)
                        ((uint4 *)(void *)p)[i] = part[i];
        } else if (bytes == 8 && V > 1) {
                uint2 part;
                memcpy(&part, (const void *)raw, bytes == 8 ? 8 : 0);
                *(uint2 *)(void *)p = part;
        } else {
                LG_UNROLL
                for (int i = 0; i < V; i++)
                        p[i] = raw[i];
        }
}

/* True if rows of n elements may be read V at a time from all of the pointers; NULL does not count. */
template <typename... P> static inline bool lg_even(int v, int64_t n, P... p)
{
        uintptr_t bits = 0;
        const uintptr_t all[] = {(uintptr_t)p...};
        for (uintptr_t one : all)
                bits |= one;
        return n % v == 0 && bits % 16 == 0;
}

/* Elements of 16 bytes. */
#define LG_PACK(T) (16 / (int)sizeof(T))

/* ---- teams: a thread, a warp or a block for each row ---- */

template <int TEAM> static __device__ inline int lg_rank(void)
{
        return TEAM == 1 ? 0 : (int)(threadIdx.x % TEAM);
}
#define LG_FIRST_ROW(TEAM) (((int64_t)blockIdx.x * LG_THREADS + threadIdx.x) / (TEAM))
#define LG_ROW_STEP(TEAM) ((int64_t)gridDim.x * (LG_THREADS / (TEAM)))

static inline int64_t lg_row_blocks(lg_queue *q, int64_t rows, int pool)
{
        return lg_few_blocks(q, (rows + LG_THREADS / pool - 1) / (LG_THREADS / pool), pool == 1 ? 16 : 32);
}

/* f(k, i) for each V elements from i on of a row of n that this thread has, at k in its E registers; E 0: not kept. */
template <int TEAM, int E, int V, typename F> static __device__ inline void lg_each(int64_t n, const F &f)
{
        if (E == 0) {
                for (int64_t i = lg_rank<TEAM>() * V; i < n; i += TEAM * V)
                        f(0, i);
                return;
        }
        const int count = (int)n, first = lg_rank<TEAM>() * V;
        LG_UNROLL
        for (int k = 0; k < E; k += V) {
                if (k * TEAM >= count)
                        break;
                if (k * TEAM + first < count)
                        f(k, k * TEAM + first);
        }
}

/* Launches kernel<T, TEAM, E, V> on rows of n elements: up to 16 by a thread, 1024 by a warp, 8192 by a block, all kept
 * in registers; longer ones are read twice. */
#define LG_LAUNCH_ROWS(q, name, kernel, rows, n, even, ...)                                                            \
        ((n) <= 16     ? lg_launch(q, name, kernel<T, 1, 16, 1>, lg_row_blocks(q, rows, 1), __VA_ARGS__)               \
         : (n) <= 1024 ? lg_launch(q, name, (even) ? kernel<T, 32, 32, LG_PACK(T)> : kernel<T, 32, 32, 1>,             \
                                   lg_row_blocks(q, rows, 32), __VA_ARGS__)                                            \
         : (n) <= 8192                                                                                                 \
                 ? lg_launch(q, name, (even) ? kernel<T, LG_THREADS, 32, LG_PACK(T)> : kernel<T, LG_THREADS, 32, 1>,   \
                             lg_row_blocks(q, rows, LG_THREADS), __VA_ARGS__)                                          \
                 : lg_launch(q, name, (even) ? kernel<T, LG_THREADS, 0, LG_PACK(T)> : kernel<T, LG_THREADS, 0, 1>,     \
                             lg_row_blocks(q, rows, LG_THREADS), __VA_ARGS__))

template <typename H> static __device__ inline H lg_greater(H a, H b)
{
        return b > a || b != b ? b : a;
}

#define LG_TEAM_WORDS 16 /* of shared memory that a pool's sums want */

/* All threads of the pool get the sums of both, added in a fixed order. */
template <int TEAM, typename H> static __device__ inline void lg_team_sums(H *a, H *b, H *shared)
{
        for (int by = TEAM > 1 ? 16 : 0; by; by /= 2) {
                *a += __shfl_xor_sync(0xffffffffu, *a, by);
                *b += __shfl_xor_sync(0xffffffffu, *b, by);
        }
        if constexpr (TEAM == LG_THREADS) {
                __syncthreads();
                if (threadIdx.x % 32 == 0) {
                        shared[threadIdx.x / 32] = *a;
                        shared[LG_THREADS / 32 + threadIdx.x / 32] = *b;
                }
                __syncthreads();
                *a = *b = 0;
                for (int i = 0; i < LG_THREADS / 32; i++) {
                        *a += shared[i];
                        *b += shared[LG_THREADS / 32 + i];
                }
        } else {
                (void)shared;
        }
}

template <int TEAM, typename H> static __device__ inline H lg_team_sum(H v, H *shared)
{
        if constexpr (TEAM == LG_THREADS) {
                return lg_block_sum(v, shared);
        } else {
                for (int by = TEAM / 2; by; by /= 2)
                        v += __shfl_xor_sync(0xffffffffu, v, by);
                return v;
        }
}

template <int TEAM, typename H> static __device__ inline H lg_team_max(H v, H *shared)
{
        if constexpr (TEAM == LG_THREADS) {
                return lg_block_max(v, shared);
        } else {
                for (int by = TEAM / 2; by; by /= 2)
                        v = lg_greater(v, __shfl_xor_sync(0xffffffffu, v, by));
                return v;
        }
}

/* ---- tiles: a block of `across` threads over neighbouring elements and LG_THREADS / across over the rest ---- */

/* The least power of two that is n or more, of at most `most`. */
static inline int lg_across(int64_t n, int most)
{
        int across = 1;
        while (across < n && across < most)
                across *= 2;
        return across;
}

#endif
