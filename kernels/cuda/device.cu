/* device.cu - CUDA as a device: memory, copies, waiting, and what there is. */
#include "cuda.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#ifndef LG_CUDASIM
#include <dlfcn.h>
#endif

extern "C" const lg_kernels lg_cuda_kernels;

/* libgrad links its own; a module brings one for itself. */
bool lg_queue_fail(lg_queue *q, lg_status status, const char *format, ...)
{
        if (q->status != LG_OK)
                return false;
        va_list args;
        va_start(args, format);
        vsnprintf(q->message, sizeof q->message, format, args);
        va_end(args);
        q->status = status;
        return false;
}

bool lg_cuda_good(lg_queue *q, const char *call, cudaError_t e)
{
        if (e == cudaSuccess)
                return true;
        cudaGetLastError(); /* so that the next call does not report it again */
        return lg_queue_fail(q, e == cudaErrorMemoryAllocation ? LG_NO_MEMORY : LG_BROKEN, "%s: %s", call,
                             cudaGetErrorString(e));
}

static bool select_device(lg_queue *q)
{
        return lg_cuda_good(q, "cudaSetDevice", cudaSetDevice(q->index));
}

static int count(char *reason, size_t size)
{
        int n = 0;
#ifndef LG_CUDASIM
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY); /* cheap where there is none */
        if (!driver) {
                snprintf(reason, size, "there is no NVIDIA driver (libcuda.so.1)");
                return 0;
        }
        dlclose(driver);
#endif
        cudaError_t e = cudaGetDeviceCount(&n);
        if (e == cudaSuccess && n > 0)
                return n;
        snprintf(reason, size, "%s", e == cudaSuccess ? "no device is there" : cudaGetErrorString(e));
        cudaGetLastError();
        return 0;
}

static void close_queue(lg_queue *base)
{
        lg_cuda_queue *q = lg_cuda(base);
        cudaSetDevice(base->index);
        if (q->stream)
                cudaStreamSynchronize(q->stream);
        if (q->fault)
                cudaFree(q->fault);
        if (q->landing)
                cudaFreeHost(q->landing);
        if (q->stream)
                cudaStreamDestroy(q->stream);
        q->fault = q->landing = NULL;
        q->stream = NULL;
}

static bool open_queue(lg_queue *base, char *reason, size_t size)
{
        lg_cuda_queue *q = lg_cuda(base);
        cudaError_t e = cudaSetDevice(base->index);
        const char *call = "cudaSetDevice";
        if (e == cudaSuccess) {
                call = "cudaStreamCreate";
                e = cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking);
        }
        if (e == cudaSuccess) {
                call = "cudaMalloc";
                e = cudaMalloc((void **)&q->fault, sizeof *q->fault);
        }
        if (e == cudaSuccess) {
                call = "cudaHostAlloc";
                e = cudaHostAlloc((void **)&q->landing, sizeof *q->landing, 0);
        }
        if (e == cudaSuccess) {
                call = "cudaMemsetAsync";
                e = cudaMemsetAsync(q->fault, 0, sizeof *q->fault, q->stream);
        }
        if (e == cudaSuccess) {
                call = "cudaDeviceGetAttribute";
                e = cudaDeviceGetAttribute(&q->processors, cudaDevAttrMultiProcessorCount, base->index);
        }
        if (e != cudaSuccess) {
                snprintf(reason, size, "%s: %s", call, cudaGetErrorString(e));
                cudaGetLastError();
                return false;
        }
        return true;
}

static void *allocate(lg_queue *q, size_t bytes)
{
        void *p = NULL;
        if (cudaSetDevice(q->index) == cudaSuccess && cudaMalloc(&p, bytes) == cudaSuccess)
                return p;
        cudaGetLastError();
        return NULL;
}

static void release(lg_queue *q, void *p, size_t bytes)
{
        (void)bytes;
        cudaSetDevice(q->index);
        cudaFree(p);
}

static bool copy(lg_queue *q, const char *what, void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
        return bytes == 0 ||
               (select_device(q) && lg_cuda_good(q, what, cudaMemcpyAsync(to, from, bytes, kind, lg_cuda(q)->stream)));
}

static bool upload(lg_queue *q, void *device, const void *host, size_t bytes)
{
        return copy(q, "cudaMemcpyAsync (to the device)", device, host, bytes, cudaMemcpyHostToDevice);
}

static bool download(lg_queue *q, void *host, const void *device, size_t bytes)
{
        return copy(q, "cudaMemcpyAsync (to the host)", host, device, bytes, cudaMemcpyDeviceToHost) &&
               lg_cuda_good(q, "cudaStreamSynchronize", cudaStreamSynchronize(lg_cuda(q)->stream));
}

static bool within(lg_queue *q, void *to, const void *from, size_t bytes)
{
        return copy(q, "cudaMemcpyAsync (on the device)", to, from, bytes, cudaMemcpyDeviceToDevice);
}

static bool synchronize(lg_queue *base, lg_fault *ret)
{
        lg_cuda_queue *q = lg_cuda(base);
        *ret = base->fault;
        base->fault = lg_fault{0, 0, 0};
        if (!select_device(base) ||
            !lg_cuda_good(base, "cudaMemcpyAsync (fault)",
                          cudaMemcpyAsync(q->landing, q->fault, sizeof *q->fault, cudaMemcpyDeviceToHost, q->stream)) ||
            !lg_cuda_good(base, "cudaStreamSynchronize", cudaStreamSynchronize(q->stream)))
                return false;
        if (q->landing->code == LG_FAULT_NONE)
                return true;
        *ret = *q->landing;
        return lg_cuda_good(base, "cudaMemsetAsync", cudaMemsetAsync(q->fault, 0, sizeof *q->fault, q->stream));
}

static bool facts(int index, lg_device_facts *ret)
{
        cudaDeviceProp p;
        size_t free_bytes = 0, total = 0;
        if (cudaGetDeviceProperties(&p, index) != cudaSuccess) {
                cudaGetLastError();
                return false;
        }
        snprintf(ret->name, sizeof ret->name, "%.90s", p.name);
        ret->total_bytes = (int64_t)p.totalGlobalMem;
        ret->free_bytes = cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&free_bytes, &total) == cudaSuccess
                                  ? (int64_t)free_bytes
                                  : -1;
        return true;
}

static const lg_device_api api = {
        LG_DEVICE_ABI, "cuda", sizeof(lg_cuda_queue), count, open_queue,      close_queue, allocate, release, upload,
        download,      within, synchronize,           facts, &lg_cuda_kernels};

extern "C" __attribute__((visibility("default"))) const lg_device_api *lg_device_module(void)
{
        return &api;
}
