/* memory.cpp - device memory and pinned memory, and the CUDA runtime's functions for them.
 *
 * Device memory is closed to the host (mprotect) but while work runs. Fresh memory is 0xff: NaN as a float.
 */
#include "runtime.h"
#include <cstdio>
#include <memory>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cudasim
{
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

void need(device &d)
{
        if (d.memory.base)
                return;
        d.begun = true;
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

device *owner(const void *p)
{
        for (device &d : devices)
                if (d.memory.base && (const char *)p >= d.memory.base &&
                    (const char *)p < d.memory.base + d.memory.bytes)
                        return &d;
        return nullptr;
}

namespace
{
constexpr size_t unit = 512, guard = 512;
std::map<const char *, size_t> pinned;
int64_t copies, copies_through_host;

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

int64_t pinned_buffers()
{
        return (int64_t)pinned.size();
}

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
        const bool on = checking();
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

using namespace cudasim;

extern "C" {
int64_t cudasim_copies_through_host(void)
{
        return copies_through_host;
}

int64_t cudasim_copies(void)
{
        return copies;
}

cudaError_t CUDARTAPI cudaMalloc(void **p, size_t bytes)
{
        LOCK;
        NOT_CAPTURED;
        FAIL(cudaErrorLaunchFailure); /* of a kernel before */
        FAIL_MEMORY;
        *p = take(devices[current_device], bytes);
        return *p ? cudaSuccess : note(cudaErrorMemoryAllocation);
}

cudaError_t CUDARTAPI cudaFree(void *p)
{
        LOCK;
        NOT_CAPTURED;
        if (!p)
                return cudaSuccess;
        device *d = owner(p);
        if (!d)
                die("cudaFree: %p is not device memory", p);
        count_wait();
        wait_device((int)(d - devices));
        give(p);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMallocAsync(void **p, size_t bytes, cudaStream_t s)
{
        LOCK;
        NOT_CAPTURED;
        (void)s;
        FAIL_MEMORY;
        *p = take(devices[current_device], bytes);
        return *p ? cudaSuccess : note(cudaErrorMemoryAllocation);
}

cudaError_t CUDARTAPI cudaFreeAsync(void *p, cudaStream_t s)
{
        LOCK;
        NOT_CAPTURED;
        if (!owner(p))
                die("cudaFreeAsync: %p is not device memory", p);
        enqueue(s, [=] { give(p); });
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaHostAlloc(void **p, size_t bytes, unsigned)
{
        LOCK;
        NOT_CAPTURED;
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
        NOT_CAPTURED;
        return cudaHostAlloc(p, bytes, 0);
}

cudaError_t CUDARTAPI cudaFreeHost(void *p)
{
        LOCK;
        NOT_CAPTURED;
        if (!p)
                return cudaSuccess;
        if (!pinned.erase((const char *)p))
                die("cudaFreeHost: %p is not pinned memory", p);
        for (int i = 0; i < device_count(); i++) /* it waits for what may still read it */
                wait_device(i);
        free(p);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        memset(a, 0, sizeof *a);
        a->type = owner(p) ? cudaMemoryTypeDevice : is_pinned(p, 1) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        NOT_BROKEN(s);
        copies++;
        bool to_device = owner(to), from_device = owner(from);
        if ((!to_device && !is_pinned(to, bytes)) || (!from_device && !is_pinned(from, bytes)))
                NOT_CAPTURED_IN(record_of(s)); /* a graph would read what the host has there later */
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
        } else if (to_device && (pageable_access() || is_pinned(from, bytes))) {
                enqueue(s, [=] { memcpy(to, from, bytes); });
        } else if (to_device) { /* pageable memory is read before the call returns */
                auto stage = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
                enqueue(s, [=] { memcpy(to, stage->data(), bytes); });
        } else if (is_pinned(to, bytes)) {
                enqueue(s, [=] { memcpy(to, from, bytes); });
        } else {
                count_wait();
                enqueue(s, [=] { memcpy(to, from, bytes); });
                wait_all(record_of(s));
        }
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                          cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        NOT_BROKEN(s);
        if (owner(to) != &devices[to_device] || owner(from) != &devices[from_device])
                die("cudaMemcpyPeerAsync: a pointer is not of the device that is named");
        check_device("cudaMemcpyPeerAsync", to, bytes);
        check_device("cudaMemcpyPeerAsync", from, bytes);
        copies_through_host += !devices[to_device].peers[from_device];
        enqueue(s, [=] { memcpy(to, from, bytes); });
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
        LOCK;
        NOT_CAPTURED;
        cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
        if (e == cudaSuccess) {
                count_wait();
                wait_device(current_device);
        }
        return e;
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        NOT_BROKEN(s);
        check_device("cudaMemsetAsync", p, bytes);
        enqueue(s, [=] { memset(p, value, bytes); });
        return cudaSuccess;
}
} // extern "C"
