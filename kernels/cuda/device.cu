/* device.cu - CUDA as a device: queues, memory, copies, synchronisation, and the facts about a device. */
#include "blas.h"
#include "dnn.h"
#include "fft_plan.h"
#include "nccl.h"
#include "solver.h"
#include "transfer.h"
#include "../queue_fail.inc"
#include <stdio.h>
#include <string.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#define LG_NVTX 1
#include <nvtx3/nvToolsExt.h>
#endif

extern "C" const lg_kernels lg_cuda_kernels;

bool lg_cuda_good(lg_queue *q, const char *call, cudaError_t e)
{
        if (e == cudaSuccess)
                return true;
        cudaGetLastError(); /* clears the error, so that the next call does not report it again */
        return lg_queue_fail(q, e == cudaErrorMemoryAllocation ? LG_NO_MEMORY : LG_BROKEN, "%s: %s", call,
                             cudaGetErrorString(e));
}

bool lg_cuda_scarce(void)
{
        size_t free_bytes, total;
        if (cudaMemGetInfo(&free_bytes, &total) == cudaSuccess)
                return free_bytes < (size_t)256 << 20;
        cudaGetLastError();
        return false;
}

bool lg_cuda_again(lg_queue *q, bool lacked_memory)
{
        return (lacked_memory || lg_cuda_scarce()) && q->release_cached(q);
}

/* launches by all queues of the process; tools read the number through the symbol lg_cuda_launches */
static int64_t launches;

void lg_cuda_count_launch(void)
{
        __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
}

/* Returns the number of kernel launches and computing library calls of the process so far. */
extern "C" __attribute__((visibility("default"))) int64_t lg_cuda_launches(void)
{
        return __atomic_load_n(&launches, __ATOMIC_RELAXED);
}

/* ---- opening and closing ---- */

static void version_words(char *words, size_t size, int v)
{
        snprintf(words, size, "%d.%d", v / 1000, v % 1000 / 10);
}

/* Writes CUDA's message to `reason`; for a driver that is too old also its version and the version needed. */
static void tell_why(char *reason, size_t size, const char *call, cudaError_t e)
{
        int driver = 0, runtime = 0;
        char have[16], need[16];
        cudaGetLastError();
        if (e != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess ||
            cudaRuntimeGetVersion(&runtime) != cudaSuccess) {
                snprintf(reason, size, "%s: %s", call, cudaGetErrorString(e));
                return;
        }
        if (driver == 0) {
                snprintf(reason, size, "there is no NVIDIA driver (libcuda.so.1)");
                return;
        }
        version_words(have, sizeof have, driver);
        version_words(need, sizeof need, runtime);
        snprintf(reason, size, "%s: %s; the driver knows CUDA %s, but %s is needed", call, cudaGetErrorString(e), have,
                 need);
}

static int count(char *reason, size_t size)
{
        int n = 0;
        cudaError_t e = cudaGetDeviceCount(&n);
        if (e == cudaSuccess && n > 0)
                return n;
        if (e == cudaSuccess)
                snprintf(reason, size, "the NVIDIA driver finds no GPU");
        else
                tell_why(reason, size, "cudaGetDeviceCount", e);
        return 0;
}

static __global__ void probe()
{
}

/* Creates all parts of a queue on the current device. On failure *call is the CUDA function that failed. */
static cudaError_t make_parts(lg_cuda_queue *q, const char **call)
{
        cudaFuncAttributes kernel;
        cudaError_t e = cudaSuccess;
#define TRY(function, ...)                                                                                             \
        if (e == cudaSuccess) {                                                                                        \
                *call = #function;                                                                                     \
                e = function(__VA_ARGS__);                                                                             \
        }
        TRY(cudaFuncGetAttributes, &kernel, (const void *)probe) /* fails if the GPU is too old for these kernels */
        TRY(cudaDeviceGetAttribute, &q->processors, cudaDevAttrMultiProcessorCount, q->base.index)
        TRY(cudaStreamCreateWithFlags, &q->stream, cudaStreamNonBlocking)
        TRY(cudaStreamCreateWithFlags, &q->copies, cudaStreamNonBlocking)
        TRY(cudaEventCreateWithFlags, &q->here, cudaEventDisableTiming)
        for (int i = 0; i < LG_CUDA_MARKS; i++)
                TRY(cudaEventCreateWithFlags, &q->marks[i], cudaEventDisableTiming)
        for (lg_cuda_piece &piece : q->pieces)
                TRY(cudaEventCreateWithFlags, &piece.read, cudaEventDisableTiming)
        TRY(cudaMalloc, (void **)&q->report, sizeof *q->report)
        TRY(cudaHostAlloc, (void **)&q->landing, sizeof *q->landing, 0)
        TRY(cudaMemsetAsync, q->report, 0, sizeof *q->report, q->stream)
#undef TRY
        if (e == cudaSuccess)
                q->error = &q->report->error;
        return e;
}

static bool open_queue(lg_queue *base, char *reason, size_t size)
{
        lg_on_device here(base->index);
        const char *call = here.call;
        cudaError_t e = here.error == cudaSuccess ? make_parts(lg_cuda(base), &call) : here.error;
        if (e == cudaSuccess)
                return true;
        cudaDeviceProp p;
        tell_why(reason, size, call, e);
        if (e == cudaErrorNoKernelImageForDevice && cudaGetDeviceProperties(&p, base->index) == cudaSuccess)
                snprintf(reason, size, "%.90s has compute capability %d.%d, for which this build has no kernels",
                         p.name, p.major, p.minor);
        cudaGetLastError();
        return false;
}

static void close_queue(lg_queue *base)
{
        lg_cuda_queue *q = lg_cuda(base);
        lg_on_device here(base->index);
        lg_cuda_links_close(base);
        if (q->copies)
                cudaStreamSynchronize(q->copies);
        if (q->stream)
                cudaStreamSynchronize(q->stream);
        lg_cuda_dnn_close(base);
        lg_cuda_blas_close(base);
        lg_cuda_fft_close(base);
        lg_cuda_solver_close(base);
        if (q->report)
                cudaFree(q->report);
        if (q->landing)
                cudaFreeHost(q->landing);
        for (lg_cuda_piece &piece : q->pieces) {
                if (piece.p)
                        cudaFreeHost(piece.p);
                if (piece.read)
                        cudaEventDestroy(piece.read);
        }
        for (int i = 0; i < LG_CUDA_MARKS; i++)
                if (q->marks[i])
                        cudaEventDestroy(q->marks[i]);
        if (q->here)
                cudaEventDestroy(q->here);
        if (q->copies)
                cudaStreamDestroy(q->copies);
        if (q->stream)
                cudaStreamDestroy(q->stream);
        cudaGetLastError();
}

/* ---- memory ---- */

/* Returns NULL if the device is out of memory, or after any other failure, which is recorded in q. */
static void *allocate(lg_queue *q, size_t bytes)
{
        void *p = NULL;
        lg_on_device here(q->index);
        if (!lg_cuda_good(q, here.call, here.error) || !lg_cuda_links_before(q)) /* cudaMalloc may wait */
                return NULL;
        const cudaError_t e = cudaMalloc(&p, bytes);
        if (e == cudaSuccess)
                return p;
        if (e != cudaErrorMemoryAllocation)
                lg_cuda_good(q, "cudaMalloc", e);
        cudaGetLastError();
        return NULL;
}

/* Frees p. cudaFree waits for the device, so nothing uses p any more. */
static void release(lg_queue *q, void *p, size_t bytes)
{
        (void)bytes;
        lg_on_device here(q->index);
        lg_cuda_links_before(q);
        if (cudaFree(p) != cudaSuccess)
                cudaGetLastError();
}

static void *pin(lg_queue *q, size_t bytes)
{
        void *p = NULL;
        lg_on_device here(q->index);
        lg_cuda_links_before(q);
        if (here.error == cudaSuccess && cudaHostAlloc(&p, bytes, cudaHostAllocPortable) == cudaSuccess)
                return p;
        cudaGetLastError();
        return NULL;
}

static void unpin(lg_queue *q, void *p)
{
        lg_on_device here(q->index);
        lg_cuda_links_before(q);
        if (cudaFreeHost(p) != cudaSuccess)
                cudaGetLastError();
}

/* ---- copies ---- */

static bool within(lg_queue *q, void *to, const void *from, size_t bytes)
{
        return bytes == 0 ||
               lg_cuda_good(q, "cudaMemcpyAsync (on the device)",
                            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, lg_cuda(q)->stream));
}

/* Makes stream `later` wait for all that is in stream `first` now. Both belong to q's device, or only `first` does. */
static bool wait_for(lg_queue *q, cudaStream_t first, cudaStream_t later)
{
        cudaEvent_t here = lg_cuda(q)->here;
        return lg_cuda_good(q, "cudaEventRecord", cudaEventRecord(here, first)) &&
               lg_cuda_good(q, "cudaStreamWaitEvent", cudaStreamWaitEvent(later, here, 0));
}

/* Lets q's device, the current one, access the memory of device `other` if it can: copies then bypass the host. */
static void reach(lg_cuda_queue *q, int other)
{
        const uint64_t bit = other < 64 ? (uint64_t)1 << other : 0;
        int can = 0;
        if (!bit || q->peers & bit)
                return;
        q->peers |= bit;
        if (cudaDeviceCanAccessPeer(&can, q->base.index, other) != cudaSuccess ||
            (can && cudaDeviceEnablePeerAccess(other, 0) != cudaSuccess)) /* or another queue enabled it before */
                cudaGetLastError();
}

static bool copy_between(lg_queue *to_queue, void *to, lg_queue *from_queue, const void *from, size_t bytes)
{
        cudaStream_t stream = lg_cuda(to_queue)->stream, source = lg_cuda(from_queue)->stream;
        reach(lg_cuda(to_queue), from_queue->index);
        if (!lg_cuda_links_before(from_queue, source) || !lg_cuda_links_before(to_queue, stream))
                return false; /* both, as each queue knows only the links of its device */
        return lg_entry<wait_for>::call(from_queue, source, stream) &&
               lg_cuda_good(to_queue, "cudaMemcpyPeerAsync",
                            cudaMemcpyPeerAsync(to, to_queue->index, from, from_queue->index, bytes, stream)) &&
               wait_for(to_queue, stream, source);
}

static bool copy_async(lg_queue *base, void *device, const void *pinned, size_t bytes, uint64_t *mark)
{
        lg_cuda_queue *q = lg_cuda(base);
        if (!wait_for(base, q->stream, q->copies) ||
            !lg_cuda_good(base, "cudaMemcpyAsync (from pinned memory)",
                          cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, q->copies)))
                return false;
        cudaError_t e = cudaEventRecord(q->marks[(q->mark + 1) % LG_CUDA_MARKS], q->copies);
        if (e != cudaSuccess)
                cudaStreamSynchronize(q->copies); /* a copy without its mark could not be waited for later */
        else
                *mark = ++q->mark;
        return lg_cuda_good(base, "cudaEventRecord", e);
}

static bool stream_wait(lg_queue *base, uint64_t mark)
{
        lg_cuda_queue *q = lg_cuda(base);
        return lg_cuda_good(base, "cudaStreamWaitEvent",
                            cudaStreamWaitEvent(q->stream, q->marks[mark % LG_CUDA_MARKS], 0));
}

static bool event_query(lg_queue *base, uint64_t mark, bool wait)
{
        cudaEvent_t event = lg_cuda(base)->marks[mark % LG_CUDA_MARKS];
        return lg_cuda_finish(base, event, wait);
}

/* ---- times and ranges, for profilers ---- */

static bool time_mark(lg_queue *q, void **mark)
{
        lg_on_device here(q->index);
        cudaEvent_t event = (cudaEvent_t)*mark;
        if (here.error == cudaSuccess && (event || cudaEventCreate(&event) == cudaSuccess)) {
                *mark = event;
                if (cudaEventRecord(event, lg_cuda(q)->stream) == cudaSuccess)
                        return true;
        }
        cudaGetLastError();
        return false;
}

static bool time_between(lg_queue *q, void *from, void *to, double *ret)
{
        float ms = 0;
        lg_on_device here(q->index);
        if (here.error != cudaSuccess || cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to) != cudaSuccess) {
                cudaGetLastError();
                return false;
        }
        *ret = (double)ms * 1e-3;
        return true;
}

static void time_free(lg_queue *q, void *mark)
{
        lg_on_device here(q->index);
        if (mark && cudaEventDestroy((cudaEvent_t)mark) != cudaSuccess)
                cudaGetLastError();
}

#ifdef LG_NVTX
static void range_begin(const char *name)
{
        nvtxRangePushA(name);
}

static void range_end()
{
        nvtxRangePop();
}
#else
#define range_begin NULL
#define range_end NULL
#endif

/* ---- facts ---- */

static bool facts(int index, lg_device_facts *ret)
{
        cudaDeviceProp p;
        size_t free_bytes = 0, total = 0;
        int driver = 0, runtime = 0;
        if (cudaGetDeviceProperties(&p, index) != cudaSuccess) {
                cudaGetLastError();
                return false;
        }
        snprintf(ret->name, sizeof ret->name, "%.90s", p.name);
        ret->total_bytes = (int64_t)p.totalGlobalMem;
        lg_on_device here(index);
        ret->free_bytes = here.error == cudaSuccess && cudaMemGetInfo(&free_bytes, &total) == cudaSuccess
                                  ? (int64_t)free_bytes
                                  : -1;
        ret->processors = p.multiProcessorCount;
        ret->major = p.major;
        ret->minor = p.minor;
        if (cudaDriverGetVersion(&driver) == cudaSuccess)
                version_words(ret->driver, sizeof ret->driver, driver);
        if (cudaRuntimeGetVersion(&runtime) == cudaSuccess)
                version_words(ret->runtime, sizeof ret->runtime, runtime);
        lg_cuda_blas_version(ret->blas, sizeof ret->blas);
        size_t dnn = lg_cuda_dnn_version();
        if (*lg_cuda_dnn_reason())
                snprintf(ret->dnn, sizeof ret->dnn, "not used: %.110s", lg_cuda_dnn_reason());
        else
                snprintf(ret->dnn, sizeof ret->dnn, "%d.%d.%d", (int)(dnn / 10000), (int)(dnn / 100 % 100),
                         (int)(dnn % 100));
        char links[sizeof ret->links];
        if (lg_cuda_links.version(links, sizeof links))
                snprintf(ret->links, sizeof ret->links, "%.100s", links + strlen("NCCL "));
        else
                snprintf(ret->links, sizeof ret->links, "not used: %.110s", links);
        cudaGetLastError();
        return true;
}

#define ENTRY(f) lg_entry<f>::call
static const lg_device_api api = {LG_DEVICE_ABI,
                                  "cuda",
                                  sizeof(lg_cuda_queue),
                                  count,
                                  open_queue,
                                  close_queue,
                                  allocate,
                                  release,
                                  ENTRY(lg_cuda_upload),
                                  ENTRY(lg_cuda_download),
                                  ENTRY(within),
                                  ENTRY(copy_between),
                                  pin,
                                  unpin,
                                  ENTRY(copy_async),
                                  ENTRY(stream_wait),
                                  event_query,
                                  ENTRY(lg_cuda_synchronize),
                                  ENTRY(lg_cuda_item),
                                  ENTRY(lg_cuda_clear_error),
                                  facts,
                                  &lg_cuda_kernels,
                                  true,
                                  &lg_cuda_links,
                                  lg_cuda_recurrent_reserve,
                                  time_mark,
                                  time_between,
                                  time_free,
                                  range_begin,
                                  range_end,
                                  lg_cuda_capture,
                                  ENTRY(lg_cuda_launch_graph),
                                  lg_cuda_free_graph};

extern "C" __attribute__((visibility("default"))) const lg_device_api *lg_device_module(void)
{
        return &api;
}
