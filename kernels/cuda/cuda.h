/* cuda.h - declarations shared by all CUDA kernels: queue, launches, dtypes, device-side errors, sums over a block. */
#ifndef LG_CUDA_H
#define LG_CUDA_H

#ifdef LG_CUDASIM
#define LG_HOST_DEVICE
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define LG_SHARED(type, name, count) __shared__ type name[count]
#endif
#include <math.h>
#include <stdint.h>
#include "../kernels.h"

#define LG_CUDA_MARKS 16
#define LG_CUDA_PIECES 2
#define LG_CUDA_PIECE ((size_t)4 << 20) /* bytes of a piece, a multiple of 64 */

/* Pinned host memory by way of which uploads go. */
typedef struct lg_cuda_piece {
        char *p;          /* NULL until an upload needs it */
        cudaEvent_t read; /* ends the copies that read the piece, recorded when it is full */
} lg_cuda_piece;

/* The data that the host reads by one copy. */
typedef struct lg_cuda_report {
        lg_device_error error; /* the first error that a kernel found */
        int64_t item;          /* the bits of the value that lg_device_api.item() reads */
} lg_cuda_report;

/* A CUDA device of one context. Kernels run in order on `stream`, copies from pinned memory on `copies`. */
typedef struct lg_cuda_queue {
        lg_queue base;
        cudaStream_t stream, copies;
        cudaEvent_t here;                 /* event recorded in one stream for another stream to wait for */
        cudaEvent_t marks[LG_CUDA_MARKS]; /* event m % LG_CUDA_MARKS ends copy m, or a later one that reused it */
        uint64_t mark;                    /* number of the latest copy from pinned memory */
        uint64_t ended;                   /* number of the latest copy that synchronize() has waited for */
        lg_cuda_report *report;           /* on the device */
        lg_cuda_report *landing;          /* pinned host memory, into which *report is copied */
        lg_device_error *error;           /* &report->error */
        lg_cuda_piece pieces[LG_CUDA_PIECES];
        int piece;     /* index of the piece that uploads fill now */
        size_t filled; /* bytes of it in use */
        int processors;
        uint64_t peers; /* bit i: access to the memory of device i has been requested */
        void *dnn;      /* cuDNN's handle and plans for this device, shared by all its queues (dnn.cu) */
        void *blas;     /* cuBLASLt handle and plans (blas.cu), made by the first product */
        void *fft;      /* cuFFT's plans (fft_plan.cu) */
        void *solver;   /* handles of cuSOLVER and cuBLAS (solver_library.cu) */
        void *links;    /* list of the NCCL links of this device (nccl.cu) */
} lg_cuda_queue;

static inline lg_cuda_queue *lg_cuda(lg_queue *q)
{
        return (lg_cuda_queue *)q;
}

/* Returns whether e is cudaSuccess; if not, records `call` and CUDA's message in q (LG_NO_MEMORY or LG_BROKEN). */
bool lg_cuda_good(lg_queue *q, const char *call, cudaError_t e);
/* Returns whether less than 256 MiB of the current device are free: libraries that load kernels late then report a
 * general error. */
bool lg_cuda_scarce(void);
/* Returns whether a failed library call is worth another try: memory was short (lacked_memory, or it is scarce) and
 * cached memory was released. */
bool lg_cuda_again(lg_queue *q, bool lacked_memory);
/* Is called before the first use of what may be loaded then: a kernel, or a library's plan, by its address or hash.
 * CUDA may wait for the device in it; so this waits, within the time limit, for operations of links that are under way.
 */
bool lg_cuda_wait_for_links(lg_queue *q, const void *what);
static inline bool lg_cuda_before_first(lg_queue *q, const void *what)
{
        return !lg_cuda(q)->links || lg_cuda_wait_for_links(q, what);
}
/* Counts a kernel launch, or a library call that computes, for lg_cuda_launches(). */
void lg_cuda_count_launch(void);

/* Makes device `index` current in this thread while the object exists. Afterwards the previous device is current again,
 * unless the process does not use that device yet: making it current would take memory there. */
struct lg_on_device {
        const char *call; /* CUDA call that failed, unless error is cudaSuccess; `index` may not be current then */
        cudaError_t error;
        int before;
        bool moved;

        explicit lg_on_device(int index);
        ~lg_on_device();
        lg_on_device(const lg_on_device &) = delete;
        lg_on_device &operator=(const lg_on_device &) = delete;
};

/* Calls f with q's device current; used for all kernels and all device functions that report errors through q. */
template <auto f> struct lg_entry;
template <typename... A, bool (*f)(lg_queue *, A...)> struct lg_entry<f> {
        static bool call(lg_queue *q, A... a)
        {
                lg_on_device here(q->index);
                return lg_cuda_good(q, here.call, here.error) && f(q, a...);
        }
};

#define LG_THREADS 256
/* Returns `blocks`, but at most `most` per multiprocessor. */
static inline int64_t lg_few_blocks(lg_queue *q, int64_t blocks, int most)
{
        const int64_t all = (int64_t)lg_cuda(q)->processors * most;
        return blocks < all ? blocks : all;
}

/* Returns the number of blocks for n elements, of which each thread takes one per step of a grid-stride loop. */
static inline unsigned lg_blocks(lg_queue *q, int64_t n)
{
        const int64_t blocks = lg_few_blocks(q, (n + LG_THREADS - 1) / LG_THREADS, 16);
        return (unsigned)(blocks < 1 ? 1 : blocks);
}

/* Launches kernel with LG_THREADS threads per block on q's stream; nothing if blocks < 1. Returns false on failure. */
template <typename... P, typename... A>
static bool lg_launch(lg_queue *q, const char *name, void (*kernel)(P...), int64_t blocks, A... a)
{
        if (blocks < 1)
                return true;
        if (!lg_cuda_before_first(q, (const void *)kernel))
                return false;
        cudaError_t e;
        lg_cuda_count_launch();
        do { /* the first launch of a kernel takes memory for its code: retry with more */
#ifdef LG_CUDASIM
                cudasim::start(name, kernel, dim3((unsigned)blocks), dim3(LG_THREADS), 0, lg_cuda(q)->stream, a...);
#else
                kernel<<<(unsigned)blocks, LG_THREADS, 0, lg_cuda(q)->stream>>>(a...);
#endif
                e = cudaGetLastError();
        } while (e == cudaErrorMemoryAllocation && q->release_cached(q));
        return lg_cuda_good(q, name, e);
}

/* The index of this thread in the grid, and the number of threads in the grid. */
#define LG_FIRST ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define LG_STEP ((int64_t)gridDim.x * blockDim.x)

/* ---- dtypes ---- */

static __host__ __device__ inline bool lg_is_float(lg_dtype t)
{
        return t >= LG_F32 && t <= LG_BF16;
}

static inline size_t lg_bytes_of(lg_dtype t)
{
        return t == LG_F64 || t == LG_I64 ? 8 : t == LG_F32 || t == LG_I32 ? 4 : t == LG_F16 || t == LG_BF16 ? 2 : 1;
}

/* Rounds a double to float "to odd": rounding the result further to f16 or bf16 equals rounding the double once. */
static __host__ __device__ inline float lg_odd(double x)
{
        float f = (float)x;
        if ((double)f == x || !(x == x))
                return f;
        union {
                float f;
                uint32_t u;
        } v;
        v.f = f;
        v.u = (v.u - (fabs((double)f) > fabs(x) ? 1u : 0u)) | 1u;
        return v.f;
}

static __host__ __device__ inline int64_t lg_to_i64(double x)
{
        return x >= 9223372036854775808.0   ? INT64_MAX
               : x < -9223372036854775808.0 ? INT64_MIN
               : x == x                     ? (int64_t)x
                                            : 0;
}

/* Returns element i of an array of dtype t as H: float, double or int64_t. */
template <typename H> static __device__ inline H lg_load(const void *p, lg_dtype t, int64_t i)
{
        switch (t) {
        case LG_F32:
                return sizeof(H) == 8 && (H)0.5 == 0 ? (H)lg_to_i64(((const float *)p)[i]) : (H)((const float *)p)[i];
        case LG_F64:
                return sizeof(H) == 8 && (H)0.5 == 0 ? (H)lg_to_i64(((const double *)p)[i]) : (H)((const double *)p)[i];
        case LG_F16: {
                float f = __half2float(((const __half *)p)[i]);
                return (H)0.5 == 0 ? (H)lg_to_i64(f) : (H)f;
        }
        case LG_BF16: {
                float f = __bfloat162float(((const __nv_bfloat16 *)p)[i]);
                return (H)0.5 == 0 ? (H)lg_to_i64(f) : (H)f;
        }
        case LG_I64:
                return (H)((const int64_t *)p)[i];
        case LG_I32:
                return (H)((const int32_t *)p)[i];
        case LG_BOOL:
                return (H)(((const uint8_t *)p)[i] != 0);
        default:
                return (H)((const uint8_t *)p)[i];
        }
}

static __device__ inline double lg_between(double x, double low, double high)
{
        return x < low ? low : x > high ? high : x == x ? x : 0;
}

static __device__ inline float lg_short_of(float x)
{
        return x;
}
static __device__ inline float lg_short_of(double x)
{
        return lg_odd(x);
}
static __device__ inline float lg_short_of(int64_t x)
{
        int64_t folded = (x | ((x & 0x7FF) + 0x7FF)) & ~(int64_t)0x7FF;
        return lg_odd((double)(x >= -((int64_t)1 << 53) && x <= (int64_t)1 << 53 ? x : folded));
}

/* Stores x as element i of dtype t. Floats become integers towards zero, saturating; integers keep their low bits. */
template <typename H> static __device__ inline void lg_store(void *p, lg_dtype t, int64_t i, H x)
{
        const bool whole = (H)0.5 == 0;
        switch (t) {
        case LG_F32:
                ((float *)p)[i] = (float)x;
                return;
        case LG_F64:
                ((double *)p)[i] = (double)x;
                return;
        case LG_F16:
                ((__half *)p)[i] = __float2half(lg_short_of(x));
                return;
        case LG_BF16:
                ((__nv_bfloat16 *)p)[i] = __float2bfloat16(lg_short_of(x));
                return;
        case LG_I64:
                ((int64_t *)p)[i] = whole ? (int64_t)x : lg_to_i64((double)x);
                return;
        case LG_I32:
                ((int32_t *)p)[i] = whole ? (int32_t)(uint32_t)(uint64_t)(int64_t)x
                                          : (int32_t)lg_between((double)x, -2147483648.0, 2147483647.0);
                return;
        case LG_BOOL:
                ((uint8_t *)p)[i] = x != 0;
                return;
        default:
                ((uint8_t *)p)[i] = whole ? (uint8_t)(uint64_t)(int64_t)x : (uint8_t)lg_between((double)x, 0, 255);
                return;
        }
}

/* Evaluates an expression with H, the compute type of t: double, float or int64_t (LG_WITH_FLOAT: of float dtypes). */
#define LG_WITH_COMPUTE(t, ...)                                                                                        \
        ((t) == LG_F64 ? [&] { typedef double H; return __VA_ARGS__; }()                                               \
         : lg_is_float(t) ? [&] { typedef float H; return __VA_ARGS__; }()                                             \
                          : [&] { typedef int64_t H; return __VA_ARGS__; }())
#define LG_WITH_FLOAT(t, ...)                                                                                          \
        ((t) == LG_F64 ? [&] { typedef double H; return __VA_ARGS__; }()                                               \
                       : [&] { typedef float H; return __VA_ARGS__; }())

/* ---- shapes ---- */

typedef struct lg_place {
        int ndim;
        int64_t shape[LG_MAX_DIMS];
} lg_place;

static inline int64_t lg_count(int ndim, const int64_t *shape)
{
        int64_t n = 1;
        for (int i = 0; i < ndim; i++)
                n *= shape[i];
        return n;
}

/* Returns the offset of element i, counted in row-major order of `shape`, under `strides`. */
static __device__ inline int64_t lg_offset(int ndim, const int64_t *shape, const int64_t *strides, int64_t i)
{
        int64_t at = 0;
        for (int d = ndim - 1; d >= 0; d--) {
                at += i % shape[d] * strides[d];
                i /= shape[d];
        }
        return at;
}

/* ---- device-side errors ---- */

/* Records an error in *f, unless one is recorded there already. */
static __device__ inline void lg_note(lg_device_error *f, int64_t code, int64_t value, int64_t limit)
{
        if (atomicCAS((unsigned long long *)&f->code, 0ull, (unsigned long long)code) == 0) {
                f->value = value;
                f->limit = limit;
        }
}

/* ---- sums and maxima over a block of LG_THREADS threads, in a fixed order ---- */

template <typename H> static __device__ inline H lg_block_sum(H v, H *shared)
{
        for (int by = 16; by; by /= 2)
                v += __shfl_down_sync(0xffffffffu, v, by);
        __syncthreads();
        if (threadIdx.x % 32 == 0)
                shared[threadIdx.x / 32] = v;
        __syncthreads();
        v = 0;
        for (int i = 0; i < LG_THREADS / 32; i++)
                v += shared[i];
        return v;
}

template <typename H> static __device__ inline H lg_block_max(H v, H *shared)
{
        for (int by = 16; by; by /= 2) {
                H other = __shfl_down_sync(0xffffffffu, v, by);
                v = other > v || other != other ? other : v;
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0)
                shared[threadIdx.x / 32] = v;
        __syncthreads();
        v = shared[0];
        for (int i = 1; i < LG_THREADS / 32; i++)
                v = shared[i] > v || shared[i] != shared[i] ? shared[i] : v;
        return v;
}

#define KERNEL(name, args) bool lg_cuda_##name(lg_queue *q, const args *a);
extern "C" {
#include "../kernels.def"
int64_t lg_cuda_recurrent_reserve(lg_queue *q, const lg_recurrent_args *a); /* lg_device_api.recurrent_reserve */
/* lg_device_api.capture, launch and free_graph */
void *lg_cuda_capture(lg_queue *q, bool (*run)(void *user), void *user);
bool lg_cuda_launch_graph(lg_queue *q, void *graph);
void lg_cuda_free_graph(lg_queue *q, void *graph);
}

#endif
