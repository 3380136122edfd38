/* rows.h - reading and writing rows of memory, teams of threads that keep a row in registers, and sums over a team. */
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

/* Evaluates an expression with T, the type in which elements of float dtype t are stored. */
#define LG_WITH_STORED(t, ...)                                                                                         \
        ((t) == LG_F64   ? [&] { typedef double T; return __VA_ARGS__; }()                                             \
         : (t) == LG_F32 ? [&] { typedef float T; return __VA_ARGS__; }()                                              \
         : (t) == LG_F16 ? [&] { typedef __half T; return __VA_ARGS__; }()                                             \
                         : [&] { typedef __nv_bfloat16 T; return __VA_ARGS__; }())

/* The type in which values of T are computed: float for 16-bit floats. */
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
static __device__ inline uint16_t lg_wide(uint16_t x) /* 16-bit patterns that are only copied, not computed with */
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

/* ---- V elements at once, in accesses of up to 16 bytes; p must be aligned to them (lg_even) ---- */

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

/* Returns whether rows of n elements can be accessed v at a time through all pointers, of which NULL is ignored. */
template <typename... P> static inline bool lg_even(int v, int64_t n, P... p)
{
        uintptr_t bits = 0;
        const uintptr_t all[] = {(uintptr_t)p...};
        for (uintptr_t one : all)
                bits |= one;
        return n % v == 0 && bits % 16 == 0;
}

/* The number of elements of T in 16 bytes. */
#define LG_PACK(T) (16 / (int)sizeof(T))

/* ---- teams: a thread, a warp or a block of threads for each row ---- */

template <int TEAM> static __device__ inline int lg_rank(void)
{
        return TEAM == 1 ? 0 : (int)(threadIdx.x % TEAM);
}
#define LG_FIRST_ROW(TEAM) (((int64_t)blockIdx.x * LG_THREADS + threadIdx.x) / (TEAM))
#define LG_ROW_STEP(TEAM) ((int64_t)gridDim.x * (LG_THREADS / (TEAM)))

static inline int64_t lg_row_blocks(lg_queue *q, int64_t rows, int team)
{
        return lg_few_blocks(q, (rows + LG_THREADS / team - 1) / (LG_THREADS / team), team == 1 ? 16 : 32);
}

/* Calls f(k, i) for every V elements, from i on, that this thread handles in a row of n elements; k is their place in
 * the thread's E registers. E = 0 if rows are not kept in registers; k is 0 then. */
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

/* Launches kernel<T, TEAM, E, V> on rows of n elements: a thread for up to 16 elements, a warp for 1024, a block for
 * 8192, all kept in registers; longer rows are read twice. */
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

#define LG_TEAM_WORDS 16 /* shared memory for sums over a team, in elements */

/* Replaces *a and *b by their sums over the team, in each of its threads; the order of additions is fixed. */
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

/* ---- tiles: a block has `across` threads over neighbouring elements and LG_THREADS / across over the rest ---- */

/* Returns the least power of two that is n or more, but at most `most`. */
static inline int lg_across(int64_t n, int most)
{
        int across = 1;
        while (across < n && across < most)
                across *= 2;
        return across;
}

#endif
