/* cudasim.h - CUDA without a GPU: what a host compiler lacks to compile .cu files, beside the toolkit's real headers.
 *
 * A .cpp includes this file and then the .cu. The runtime's functions are NVIDIA's prototypes, defined in runtime.cpp;
 * launches run on the host, a block after the other, its threads as fibres (fibre.cpp). See README.md.
 */
#ifndef CUDASIM_H
#define CUDASIM_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#define LG_CUDASIM 1
#define LG_NARROW (cudasim::narrow())

namespace cudasim
{
/* What the running thread is. */
struct place {
        uint3 thread, block;
        dim3 block_size, grid_size;
};
extern place *here;

/* Fewer elements are counted in 32 bits: $CUDASIM_NARROW, or 2^31. */
int64_t narrow();
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Queues a kernel: body runs once for each thread. What goes wrong is the thread's last error, which must be asked for
 * before the next launch, the next wait and the end of the thread. */
void launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> body);
/* Waits until all threads of the block are at the same place. */
void barrier(const char *file, int line);
/* Exchanges a word within the lanes of the mask; returns what `source` gave, whose lane must be in the mask. */
uint64_t exchange(unsigned mask, uint64_t value, int source);
/* One bit from each lane of the mask. */
unsigned ballot(unsigned mask, bool bit);
void warp_barrier(unsigned mask);
int lane();
/* Shared memory of the block, the same for all that name the same key; poisoned when the block begins. */
void *shared(const void *key, size_t bytes);
void *dynamic_shared();

/* Dies unless p is NULL or points into live device memory: what a kernel gets. */
void check_argument(const char *kernel, const void *p);
template <typename T> void check_one(const char *kernel, const T &a)
{
        if constexpr (std::is_pointer_v<T>)
                check_argument(kernel, (const void *)a);
        else
                (void)kernel, (void)a;
}

/* kernel<<<grid, block, bytes, stream>>>(a...) */
template <typename... P, typename... A>
void start(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t bytes, cudaStream_t stream, A... a)
{
        (check_one(name, static_cast<P>(a)), ...);
        launch(name, grid, block, bytes, stream, [=] { kernel(static_cast<P>(a)...); });
}

template <typename T> T shuffle(unsigned mask, T v, int source)
{
        static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
        uint64_t word = 0;
        memcpy(&word, &v, sizeof v);
        word = exchange(mask, word, source);
        memcpy(&v, &word, sizeof v);
        return v;
}
} // namespace cudasim

#define threadIdx (cudasim::here->thread)
#define blockIdx (cudasim::here->block)
#define blockDim (cudasim::here->block_size)
#define gridDim (cudasim::here->grid_size)
#define __syncthreads() cudasim::barrier(__FILE__, __LINE__)
#define __launch_bounds__(...)
/* Shared memory of a kernel: an array of that many elements. */
#define LG_SHARED(type, name, count)                                                                                   \
        static char name##_key;                                                                                        \
        type *name = (type *)cudasim::shared(&name##_key, sizeof(type) * (count))

static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
        cudasim::warp_barrier(mask);
}
static inline unsigned __ballot_sync(unsigned mask, int bit)
{
        return cudasim::ballot(mask, bit != 0);
}
static inline int __any_sync(unsigned mask, int bit)
{
        return cudasim::ballot(mask, bit != 0) != 0;
}
static inline int __all_sync(unsigned mask, int bit)
{
        return cudasim::ballot(mask, bit != 0) == mask;
}
static inline int __popc(unsigned bits)
{
        return __builtin_popcount(bits);
}
/* Never contracted to one rounding. */
static inline double __dadd_rn(double a, double b)
{
        return a + b;
}
static inline double __dmul_rn(double a, double b)
{
        volatile double product = a * b;
        return product;
}

template <typename T> static inline T __shfl_sync(unsigned mask, T v, int source)
{
        return cudasim::shuffle(mask, v, source & 31);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by)
{
        int lane = cudasim::lane(), from = lane + (int)by;
        return cudasim::shuffle(mask, v, from < 32 ? from : lane);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by)
{
        int lane = cudasim::lane(), from = lane - (int)by;
        return cudasim::shuffle(mask, v, from >= 0 ? from : lane);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T v, int bits)
{
        return cudasim::shuffle(mask, v, cudasim::lane() ^ bits);
}

/* One host thread runs all blocks; but ThreadSanitizer takes CUDA's threads for threads, and must see atomic accesses.
 */
template <typename T, typename F> static inline T cudasim_change(T *p, F change)
{
        T was, now;
        __atomic_load(p, &was, __ATOMIC_RELAXED);
        now = change(was);
        __atomic_store(p, &now, __ATOMIC_RELAXED);
        return was;
}
template <typename T, typename V> static inline T atomicAdd(T *p, V v)
{
        return cudasim_change(p, [=](T was) { return (T)(was + (T)v); });
}
template <typename T> static inline T atomicMax(T *p, T v)
{
        return cudasim_change(p, [=](T was) { return v > was ? v : was; });
}
template <typename T> static inline T atomicMin(T *p, T v)
{
        return cudasim_change(p, [=](T was) { return v < was ? v : was; });
}
template <typename T> static inline T atomicExch(T *p, T v)
{
        return cudasim_change(p, [=](T) { return v; });
}
template <typename T> static inline T atomicCAS(T *p, T expected, T v)
{
        return cudasim_change(p, [=](T was) { return was == expected ? v : was; });
}
static inline void __threadfence()
{
}
template <typename T> static inline T __ldg(const T *p)
{
        return *p;
}
static inline float rsqrtf(float x)
{
        return 1 / std::sqrt(x);
}
static inline double rsqrt(double x)
{
        return 1 / std::sqrt(x);
}
static inline float __int_as_float(int i)
{
        float f;
        memcpy(&f, &i, sizeof f);
        return f;
}
static inline int __float_as_int(float f)
{
        int i;
        memcpy(&i, &f, sizeof i);
        return i;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
        return (unsigned)(((uint64_t)a * b) >> 32);
}

#endif
