/* runtime.cpp - the CUDA runtime's functions in use: settings and failures on purpose, devices, errors. */
#include "runtime.h"
#include <cstdio>
#include <cuda.h>

namespace cudasim
{
std::recursive_mutex &everything()
{
        static std::recursive_mutex &m = *new std::recursive_mutex;
        return m;
}

int64_t number(const char *name, int64_t otherwise)
{
        const char *s = getenv(name);
        return s && *s ? atoll(s) : otherwise;
}

int64_t narrow()
{
        static const int64_t n = number("CUDASIM_NARROW", (int64_t)1 << 31);
        return n;
}

/* What is asked for with every launch. */
static struct settings {
        int order = (int)number("CUDASIM_ORDER", 0);
        bool check = number("CUDASIM_CHECK", 0) != 0;
} now;

bool checking()
{
        return now.check;
}

bool pageable_access()
{
        return number("CUDASIM_PAGEABLE", 0) != 0;
}

int shuffling()
{
        return now.order;
}

uint64_t next_random()
{
        static uint64_t state = (uint64_t)number("CUDASIM_SEED", 1);
        state = state * 6364136223846793005u + 1442695040888963407u;
        return state >> 33;
}

/* ---- failures ---- */

namespace
{
struct failures {
        int64_t calls = 0, at = 0;
        bool from = false;
} failing[3];
const char *failed_name = "";
int64_t waits_so_far, handles_alive, peers_asked;
thread_local cudaError_t last_error;

/* The kernel whose launch was not followed by cudaGetLastError yet. */
thread_local struct unasked {
        const char *kernel = nullptr;
        void look(const char *when) const
        {
                if (kernel)
                        die("%s: no cudaGetLastError follows the launch of %s", when, kernel);
        }
        ~unasked()
        {
                look("the end of the thread");
        }
} launched;
} // namespace

cudaError_t note(cudaError_t e)
{
        if (e != cudaSuccess)
                last_error = e;
        return e;
}

void note_launch(const char *kernel)
{
        launched.look("a launch");
        launched.kernel = kernel;
}

void count_wait()
{
        launched.look("a wait");
        waits_so_far++;
}

void count_handles(int64_t by)
{
        handles_alive += by;
}

bool fails(const char *name, failure way)
{
        failures &f = failing[way];
        f.calls++;
        bool now = f.at && (f.from ? f.calls >= f.at : f.calls == f.at);
        if (now)
                failed_name = name;
        return now;
}

/* ---- devices ---- */

device devices[most_devices];
thread_local int current_device;

int device_count()
{
        static const int n = (int)number("CUDASIM_DEVICES", 2);
        return n < most_devices ? n : most_devices;
}
} // namespace cudasim

using namespace cudasim;

extern "C" {

void cudasim_fail_at(int64_t n, bool from, int way)
{
        failures &f = failing[way];
        f.at = n ? f.calls + n : 0;
        f.from = from;
        failed_name = "";
}

int64_t cudasim_calls(int way)
{
        return failing[way].calls;
}

void cudasim_read_settings(void)
{
        now = settings();
}

int64_t cudasim_waits(void)
{
        return waits_so_far;
}

int64_t cudasim_bytes(void)
{
        int64_t n = 0;
        for (device &d : devices)
                n += (int64_t)d.memory.total;
        return n;
}

int64_t cudasim_peers_asked(void)
{
        return peers_asked;
}

const char *cudasim_failed(void)
{
        return failed_name;
}

int64_t cudasim_handles(void)
{
        return handles_alive + pinned_buffers();
}

/* ---- devices ---- */

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
        LOCK;
        FAIL(cudaErrorInitializationError);
        *count = device_count();
        if (number("CUDASIM_DRIVER", CUDART_VERSION) < CUDART_VERSION)
                return note(cudaErrorInsufficientDriver);
        return *count ? cudaSuccess : note(cudaErrorNoDevice);
}

cudaError_t CUDARTAPI cudaSetDevice(int i)
{
        LOCK;
        FAIL(cudaErrorInvalidDevice);
        if (i < 0 || i >= device_count())
                return note(cudaErrorInvalidDevice);
        current_device = i;
        devices[i].begun = true;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDevice(int *i)
{
        LOCK;
        FAIL(cudaErrorInitializationError);
        *i = current_device;
        return cudaSuccess;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice i, unsigned *flags, int *active)
{
        LOCK;
        if (i < 0 || i >= device_count())
                return CUDA_ERROR_INVALID_DEVICE;
        *flags = 0;
        *active = devices[i].begun;
        return CUDA_SUCCESS;
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int i, int peer)
{
        LOCK;
        peers_asked++;
        FAIL(cudaErrorInvalidDevice);
        if (i < 0 || i >= device_count() || peer < 0 || peer >= device_count())
                return note(cudaErrorInvalidDevice);
        *can = i != peer && number("CUDASIM_PEER", 1) != 0;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
        LOCK;
        NOT_CAPTURED;
        FAIL(cudaErrorInvalidDevice);
        if (flags != 0)
                return note(cudaErrorInvalidValue);
        if (peer < 0 || peer >= device_count() || peer == current_device)
                return note(cudaErrorInvalidDevice);
        if (number("CUDASIM_PEER", 1) == 0)
                return note(cudaErrorPeerAccessUnsupported);
        bool &reached = devices[current_device].peers[peer];
        if (reached)
                return note(cudaErrorPeerAccessAlreadyEnabled);
        reached = true;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp *p, int i)
{
        LOCK;
        FAIL(cudaErrorInvalidDevice);
        if (i < 0 || i >= device_count())
                return note(cudaErrorInvalidDevice);
        memset(p, 0, sizeof *p);
        const bool slices = number("CUDASIM_MIG", 0);
        snprintf(p->name, sizeof p->name, "simulated %s %d", slices ? "MIG" : "device", i);
        snprintf(p->uuid.bytes, sizeof p->uuid.bytes, "simulated %d", slices ? 0 : i % 1000);
        p->pciBusID = slices ? 0 : i;
        p->major = 9;
        p->multiProcessorCount = 4;
        p->totalGlobalMem = (size_t)number("CUDASIM_MEMORY", (int64_t)1 << 30);
        p->sharedMemPerBlock = 48 * 1024;
        p->warpSize = 32;
        p->maxThreadsPerBlock = 1024;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, cudaDeviceAttr a, int i)
{
        LOCK;
        FAIL(cudaErrorInvalidDevice);
        if (i < 0 || i >= device_count())
                return note(cudaErrorInvalidDevice);
        switch (a) {
        case cudaDevAttrMultiProcessorCount:
                *value = 4;
                return cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor:
                *value = 9;
                return cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor:
                *value = 0;
                return cudaSuccess;
        case cudaDevAttrPageableMemoryAccess:
                *value = pageable_access();
                return cudaSuccess;
        case cudaDevAttrMemoryPoolsSupported:
                *value = 1;
                return cudaSuccess;
        default:
                return note(cudaErrorInvalidValue);
        }
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes *a, const void *)
{
        LOCK;
        FAIL(cudaErrorNoKernelImageForDevice);
        memset(a, 0, sizeof *a);
        return number("CUDASIM_OLD", 0) ? note(cudaErrorNoKernelImageForDevice) : cudaSuccess;
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *v)
{
        LOCK;
        *v = (int)number("CUDASIM_DRIVER", CUDART_VERSION);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *v)
{
        LOCK;
        *v = CUDART_VERSION;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
        LOCK;
        FAIL(cudaErrorInvalidDevice);
        need(devices[current_device]);
        *total = devices[current_device].memory.bytes;
        *free_bytes = (size_t)number("CUDASIM_FREE", (int64_t)(*total - devices[current_device].memory.total));
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
        LOCK;
        NOT_CAPTURED;
        if (breaks_capture_on_device())
                return note(cudaErrorStreamCaptureUnsupported);
        FAIL(cudaErrorLaunchFailure);
        count_wait();
        wait_device(current_device);
        return cudaSuccess;
}

/* ---- errors ---- */

cudaError_t CUDARTAPI cudaGetLastError(void)
{
        LOCK;
        cudaError_t e = last_error;
        last_error = cudaSuccess;
        launched.kernel = nullptr;
        return e;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
        LOCK;
        launched.kernel = nullptr;
        return last_error;
}

const char *CUDARTAPI cudaGetErrorName(cudaError_t e)
{
        LOCK;
        return e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
               : e == cudaSuccess             ? "cudaSuccess"
                                              : "cudaError";
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t e)
{
        LOCK;
        return e == cudaErrorMemoryAllocation         ? "out of memory"
               : e == cudaErrorInvalidDevice          ? "invalid device ordinal"
               : e == cudaErrorNoDevice               ? "no CUDA-capable device is detected"
               : e == cudaErrorInvalidConfiguration   ? "invalid configuration argument"
               : e == cudaErrorLaunchFailure          ? "unspecified launch failure"
               : e == cudaErrorInvalidValue           ? "invalid argument"
               : e == cudaErrorInsufficientDriver     ? "CUDA driver version is insufficient for CUDA runtime version"
               : e == cudaErrorInvalidResourceHandle  ? "invalid resource handle"
               : e == cudaErrorNoKernelImageForDevice ? "no kernel image is available for execution on the device"
               : e == cudaErrorNotReady               ? "device not ready"
               : e == cudaSuccess                     ? "no error"
                                                      : "an error";
}
} // extern "C"
