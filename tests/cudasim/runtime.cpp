/* runtime.cpp - the CUDA runtime's functions in use: devices, memory, streams, events, errors.
 *
 * Work of a stream runs as late as CUDA allows: when somebody waits for it. Device memory is closed to the host
 * (mprotect) but while work runs. Fresh memory is 0xff: NaN as a float.
 */
#include "sim.h"
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cudasim
{
std::recursive_mutex &everything()
{
        static std::recursive_mutex &m = *new std::recursive_mutex;
        return m;
}

void open_memory(const void *p, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
        ASAN_UNPOISON_MEMORY_REGION(p, bytes);
#else
        (void)p, (void)bytes;
#endif
}

void close_memory(const void *p, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
        ASAN_POISON_MEMORY_REGION(p, bytes);
#else
        (void)p, (void)bytes;
#endif
}

static int64_t number(const char *name, int64_t otherwise)
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

/* ---- failures --------------------------------------------------------------------------------------------------- */

namespace
{
struct failures {
        int64_t calls = 0, at = 0;
        bool from = false;
} failing[3];
const char *failed_name = "";
int64_t waits_so_far, handles_alive;
thread_local cudaError_t last_error;

cudaError_t note(cudaError_t e)
{
        if (e != cudaSuccess)
                last_error = e;
        return e;
}
} // namespace

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

/* ---- memory ----------------------------------------------------------------------------------------------------- */

namespace
{
constexpr size_t unit = 512, guard = 512;

struct arena {
        char *base = nullptr;
        size_t bytes = 0;
        std::map<size_t, size_t> used; /* offset: bytes asked */
        size_t total = 0;
        bool open = false;
};

struct stream_record;
struct device {
        arena memory;
        std::vector<stream_record *> streams;
        stream_record *standard = nullptr;
};

device devices[8];
thread_local int current_device;
bool inside; /* work of a stream runs */
std::map<const char *, size_t> pinned;

int device_count()
{
        static const int n = (int)number("CUDASIM_DEVICES", 2);
        return n < 8 ? n : 8;
}

void need(device &d)
{
        if (d.memory.base)
                return;
        d.memory.bytes = (size_t)number("CUDASIM_MEMORY", (int64_t)1 << 30);
        const size_t huge = (size_t)2 << 20;
        char *p = (char *)mmap(nullptr, d.memory.bytes + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                               -1, 0);
        if (p == MAP_FAILED)
                die("no address space for a device");
        d.memory.base = p + (huge - (uintptr_t)p % huge) % huge;
        /* Opening and closing costs by the page. */
        madvise(d.memory.base, d.memory.bytes, MADV_HUGEPAGE);
        close_memory(d.memory.base, d.memory.bytes);
}

void set_open(device &d, bool open)
{
        if (d.memory.base && d.memory.open != open) {
                mprotect(d.memory.base, d.memory.bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
                d.memory.open = open;
        }
}

/* First fit, with a closed gap behind each piece. */
char *take(device &d, size_t bytes)
{
        arena &m = d.memory;
        need(d);
        size_t at = 0, size = (bytes + unit - 1) / unit * unit + guard;
        for (auto &u : m.used) {
                if (u.first - at >= size)
                        break;
                at = u.first + (u.second + unit - 1) / unit * unit + guard;
        }
        if (at + size > m.bytes || m.total + bytes > m.bytes)
                return nullptr;
        m.used[at] = bytes;
        m.total += bytes;
        bool was = m.open;
        set_open(d, true);
        open_memory(m.base + at, size);
        memset(m.base + at, 0xff, size);
        close_memory(m.base + at + bytes, size - bytes);
        set_open(d, was);
        return m.base + at;
}

device *owner(const void *p)
{
        for (device &d : devices)
                if (d.memory.base && (const char *)p >= d.memory.base &&
                    (const char *)p < d.memory.base + d.memory.bytes)
                        return &d;
        return nullptr;
}

void give(const void *p)
{
        device *d = owner(p);
        arena *m = d ? &d->memory : nullptr;
        auto it = m ? m->used.find((size_t)((const char *)p - m->base)) : std::map<size_t, size_t>::iterator();
        if (!m || it == m->used.end())
                die("a pointer is freed that no device allocated, or twice");
        bool was = m->open;
        set_open(*d, true);
        memset((void *)p, 0xff, it->second);
        set_open(*d, was);
        close_memory(p, it->second);
        m->total -= it->second;
        m->used.erase(it);
}

/* Bytes from p to the end of its allocation; 0: in none. */
size_t room_at(const void *p)
{
        device *d = owner(p);
        if (!d)
                return 0;
        size_t at = (size_t)((const char *)p - d->memory.base);
        auto it = d->memory.used.upper_bound(at);
        if (it == d->memory.used.begin())
                return 0;
        --it;
        return at - it->first < it->second ? it->second - (at - it->first) : 0;
}

bool is_pinned(const void *p, size_t bytes)
{
        auto it = pinned.upper_bound((const char *)p);
        if (it == pinned.begin())
                return false;
        --it;
        return (const char *)p + bytes <= it->first + it->second;
}
} // namespace

void check_argument(const char *kernel, const void *p)
{
        if (p && !owner(p))
                die("%s: %p is not device memory", kernel, p);
        if (p && room_at(p) == 0)
                die("%s: %p points into memory that was freed", kernel, p);
}

/* What lies between allocations, and what was freed, is still as it was made: else a kernel wrote beyond its memory. */
static void check_gaps(const char *what, const arena &m)
{
        size_t at = 0;
        auto clean = [&](size_t from, size_t to) {
                for (size_t i = from; i < to; i++)
                        if ((unsigned char)m.base[i] != 0xff)
                                die("%s wrote at %p, which no allocation holds", what, (void *)(m.base + i));
        };
        for (auto &u : m.used) {
                clean(at, u.first);
                at = u.first + u.second;
        }
        if (at)
                clean(at, (at + guard + unit - 1) / unit * unit);
}

void check_after(const char *what)
{
#if defined(__SANITIZE_ADDRESS__)
        const bool on = false; /* which sees it at once */
#else
        const bool on = now.check;
#endif
        for (device &d : devices)
                if (on && d.memory.base)
                        check_gaps(what, d.memory);
}

void check_device(const char *call, const void *p, size_t bytes)
{
        device *d = owner(p);
        if (bytes == 0)
                return;
        if (!d)
                die("%s: %p is not device memory", call, p);
        if (room_at(p) < bytes)
                die("%s: %zu bytes at %p reach beyond their allocation", call, bytes, p);
}
} // namespace cudasim

/* ---- streams and events ------------------------------------------------------------------------------------------ */

struct CUevent_st {
        cudaStream_t stream; /* where it was recorded last; NULL: never, or done */
        uint64_t number;
};

namespace cudasim
{
namespace
{
struct stream_record {
        int device;
        std::deque<std::function<void()>> work;
        uint64_t queued = 0, done = 0;
};

stream_record *record_of(cudaStream_t s)
{
        if (s)
                return (stream_record *)s;
        device &d = devices[current_device];
        if (!d.standard) {
                d.standard = new stream_record;
                d.standard->device = current_device;
                d.streams.push_back(d.standard);
        }
        return d.standard;
}

/* Runs the work of a stream up to a number. */
/* Memory stays open from the first piece of work to the last. */
void run_until(stream_record *s, uint64_t number)
{
        bool was = inside, was_open[8];
        if (s->done >= number || s->work.empty())
                return;
        inside = true;
        for (int i = 0; i < 8; i++) {
                was_open[i] = devices[i].memory.open;
                set_open(devices[i], true);
        }
        while (s->done < number && !s->work.empty()) {
                std::function<void()> work = std::move(s->work.front());
                s->work.pop_front();
                s->done++;
                work();
        }
        for (int i = 0; i < 8; i++)
                set_open(devices[i], was_open[i]);
        inside = was;
}

void run_all(stream_record *s)
{
        run_until(s, s->queued);
}

void run_device(int i)
{
        for (stream_record *s : devices[i].streams)
                run_all(s);
}
} // namespace

void enqueue(cudaStream_t stream, std::function<void()> work)
{
        stream_record *s = record_of(stream);
        s->work.push_back(std::move(work));
        s->queued++;
}

cudaError_t launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                   std::function<void()> body)
{
        std::lock_guard<std::recursive_mutex> guard(everything());
        if (fails(name))
                return note(cudaErrorLaunchFailure);
        if (fails(name, LOAD))
                return note(cudaErrorMemoryAllocation);
        size_t threads = (size_t)block.x * block.y * block.z;
        if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024 || grid.y > 65535 || grid.z > 65535)
                return note(cudaErrorInvalidConfiguration);
        if (shared > 227 * 1024)
                return note(cudaErrorInvalidValue);
        enqueue(stream, [=] {
                run_grid(name, grid, block, shared, body);
                check_after(name);
        });
        return cudaSuccess;
}
} // namespace cudasim

using namespace cudasim;

/* Several threads of the host may call at once. */
#define LOCK std::lock_guard<std::recursive_mutex> guard_(everything())

#define FAIL(error)                                                                                                    \
        if (fails(__func__))                                                                                           \
        return note(error)
#define FAIL_MEMORY                                                                                                    \
        if (fails(__func__, ALLOCATION))                                                                               \
        return note(cudaErrorMemoryAllocation)

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

const char *cudasim_failed(void)
{
        return failed_name;
}

int64_t cudasim_handles(void)
{
        return handles_alive + (int64_t)pinned.size();
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
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDevice(int *i)
{
        LOCK;
        *i = current_device;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp *p, int i)
{
        LOCK;
        FAIL(cudaErrorInvalidDevice);
        if (i < 0 || i >= device_count())
                return note(cudaErrorInvalidDevice);
        memset(p, 0, sizeof *p);
        snprintf(p->name, sizeof p->name, "simulated device %d", i);
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
        *free_bytes = *total - devices[current_device].memory.total;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
        LOCK;
        FAIL(cudaErrorLaunchFailure);
        waits_so_far++;
        run_device(current_device);
        return cudaSuccess;
}

/* ---- errors ---- */

cudaError_t CUDARTAPI cudaGetLastError(void)
{
        LOCK;
        cudaError_t e = last_error;
        last_error = cudaSuccess;
        return e;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
        LOCK;
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
               : e == cudaErrorNoKernelImageForDevice ? "no kernel image is available for execution on the device"
               : e == cudaErrorNotReady               ? "device not ready"
               : e == cudaSuccess                     ? "no error"
                                                      : "an error";
}

/* ---- memory ---- */

cudaError_t CUDARTAPI cudaMalloc(void **p, size_t bytes)
{
        LOCK;
        FAIL_MEMORY;
        *p = take(devices[current_device], bytes);
        return *p ? cudaSuccess : note(cudaErrorMemoryAllocation);
}

cudaError_t CUDARTAPI cudaFree(void *p)
{
        LOCK;
        if (!p)
                return cudaSuccess;
        device *d = owner(p);
        if (!d)
                die("cudaFree: %p is not device memory", p);
        waits_so_far++;
        run_device((int)(d - devices));
        give(p);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMallocAsync(void **p, size_t bytes, cudaStream_t s)
{
        LOCK;
        (void)s;
        FAIL_MEMORY;
        *p = take(devices[current_device], bytes);
        return *p ? cudaSuccess : note(cudaErrorMemoryAllocation);
}

cudaError_t CUDARTAPI cudaFreeAsync(void *p, cudaStream_t s)
{
        LOCK;
        if (!owner(p))
                die("cudaFreeAsync: %p is not device memory", p);
        enqueue(s, [=] { give(p); });
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaHostAlloc(void **p, size_t bytes, unsigned)
{
        LOCK;
        FAIL_MEMORY;
        *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        if (!*p)
                return note(cudaErrorMemoryAllocation);
        pinned[(const char *)*p] = bytes;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMallocHost(void **p, size_t bytes)
{
        LOCK;
        return cudaHostAlloc(p, bytes, 0);
}

cudaError_t CUDARTAPI cudaFreeHost(void *p)
{
        LOCK;
        if (!p)
                return cudaSuccess;
        if (!pinned.erase((const char *)p))
                die("cudaFreeHost: %p is not pinned memory", p);
        for (int i = 0; i < device_count(); i++) /* it waits for what may still read it */
                run_device(i);
        free(p);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        bool to_device = owner(to), from_device = owner(from);
        if (kind == cudaMemcpyHostToDevice     ? !to_device || from_device
            : kind == cudaMemcpyDeviceToHost   ? to_device || !from_device
            : kind == cudaMemcpyDeviceToDevice ? !to_device || !from_device
                                               : false)
                die("cudaMemcpyAsync: the pointers do not go with the direction %d", (int)kind);
        if (to_device)
                check_device("cudaMemcpyAsync", to, bytes);
        if (from_device)
                check_device("cudaMemcpyAsync", from, bytes);
        if (to_device && from_device) {
                enqueue(s, [=] { memcpy(to, from, bytes); });
        } else if (to_device && is_pinned(from, bytes)) {
                enqueue(s, [=] { memcpy(to, from, bytes); });
        } else if (to_device) { /* pageable memory is read before the call returns */
                auto stage = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
                enqueue(s, [=] { memcpy(to, stage->data(), bytes); });
        } else if (is_pinned(to, bytes)) {
                enqueue(s, [=] { memcpy(to, from, bytes); });
        } else {
                waits_so_far++;
                enqueue(s, [=] { memcpy(to, from, bytes); });
                run_all(record_of(s));
        }
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                          cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        if (owner(to) != &devices[to_device] || owner(from) != &devices[from_device])
                die("cudaMemcpyPeerAsync: a pointer is not of the device that is named");
        check_device("cudaMemcpyPeerAsync", to, bytes);
        check_device("cudaMemcpyPeerAsync", from, bytes);
        enqueue(s, [=] { memcpy(to, from, bytes); });
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
        LOCK;
        cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
        if (e == cudaSuccess) {
                waits_so_far++;
                run_device(current_device);
        }
        return e;
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        check_device("cudaMemsetAsync", p, bytes);
        enqueue(s, [=] { memset(p, value, bytes); });
        return cudaSuccess;
}

/* ---- streams and events ---- */

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
        LOCK;
        FAIL(cudaErrorMemoryAllocation);
        stream_record *r = new stream_record;
        r->device = current_device;
        devices[current_device].streams.push_back(r);
        handles_alive++;
        *s = (cudaStream_t)r;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t s)
{
        LOCK;
        stream_record *r = (stream_record *)s;
        run_all(r);
        auto &list = devices[r->device].streams;
        for (size_t i = 0; i < list.size(); i++)
                if (list[i] == r) {
                        list.erase(list.begin() + (long)i);
                        break;
                }
        static std::vector<stream_record *> &ended = *new std::vector<stream_record *>;
        ended.push_back(r); /* events and other streams may still name it */
        handles_alive--;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorLaunchFailure);
        waits_so_far++;
        run_all(record_of(s));
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        if (e->stream) {
                stream_record *other = (stream_record *)e->stream;
                uint64_t number = e->number;
                enqueue(s, [=] { run_until(other, number); });
        }
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
        LOCK;
        FAIL(cudaErrorMemoryAllocation);
        *e = new CUevent_st{nullptr, 0};
        handles_alive++;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t *e)
{
        LOCK;
        return cudaEventCreateWithFlags(e, 0);
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t e)
{
        LOCK;
        delete e;
        handles_alive--;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        stream_record *r = record_of(s);
        e->stream = (cudaStream_t)r;
        e->number = r->queued;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t e)
{
        LOCK;
        FAIL(cudaErrorLaunchFailure);
        waits_so_far++;
        if (e->stream)
                run_until((stream_record *)e->stream, e->number);
        return cudaSuccess;
}

/* Time passes between two queries: the first one that finds work gets it done. */
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t e)
{
        LOCK;
        FAIL(cudaErrorLaunchFailure);
        if (!e->stream || ((stream_record *)e->stream)->done >= e->number)
                return cudaSuccess;
        run_until((stream_record *)e->stream, e->number);
        return note(cudaErrorNotReady);
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
        LOCK;
        *ms = 1;
        return cudaSuccess;
}
} // extern "C"
