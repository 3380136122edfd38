/* streams.cpp - streams, events and launches. The work of a stream runs as late as CUDA allows: when somebody waits for
 * it. */
#include "runtime.h"
#include <ctime>
#include <memory>
#include <set>
#include <string>

struct CUevent_st {
        cudaStream_t stream; /* where it was recorded last; NULL: never, or done */
        uint64_t number;
        std::shared_ptr<double> passed; /* when the stream passed it, in ms; 0: not yet. NULL: without times */
        bool captured;                  /* it was recorded last while the stream captured */
};

namespace cudasim
{
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

/* Memory stays open from the first piece of work to the last. */
bool run_until(stream_record *s, uint64_t number)
{
        bool was_open[most_devices], goes_on = true;
        if (s->done >= number || s->work.empty() || s->running)
                return s->done >= number;
        for (int i = 0; i < most_devices; i++) {
                was_open[i] = devices[i].memory.open;
                set_open(devices[i], true);
        }
        s->running = true;
        while (goes_on && s->done < number && !s->work.empty()) {
                goes_on = s->work.front()();
                if (goes_on) {
                        s->work.pop_front();
                        s->done++;
                }
        }
        s->running = false;
        for (int i = 0; i < most_devices; i++)
                set_open(devices[i], was_open[i]);
        return s->done >= number;
}

/* How many calls of this thread are in each other. */
static thread_local int depth;

calling::calling()
{
        everything().lock();
        depth++;
}

calling::~calling()
{
        depth--;
        everything().unlock();
}

static double now_ms()
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void wait_until(stream_record *s, uint64_t number)
{
        const struct timespec nap = {0, 50000};
        while (!run_until(s, number)) {
                for (int i = 0; i < depth; i++)
                        everything().unlock();
                nanosleep(&nap, nullptr);
                for (int i = 0; i < depth; i++)
                        everything().lock();
        }
}

void wait_all(stream_record *s)
{
        wait_until(s, s->queued);
}

void wait_device(int i)
{
        for (size_t k = 0; k < devices[i].streams.size(); k++)
                wait_all(devices[i].streams[k]);
}

void enqueue_step(cudaStream_t stream, std::function<bool()> work)
{
        stream_record *s = record_of(stream);
        if (s->captures) {
                if (!s->broken)
                        s->captured.push_back(std::move(work));
                return;
        }
        s->work.push_back(std::move(work));
        s->queued++;
}

void enqueue(cudaStream_t stream, std::function<void()> work)
{
        enqueue_step(stream, [work = std::move(work)] {
                work();
                return true;
        });
}

/* ---- captures ---- */

template <typename F> static bool break_captures(const device &d, F which)
{
        bool any = false;
        for (stream_record *s : d.streams)
                if (s->captures && which(s))
                        any = s->broken = true;
        return any;
}

bool breaks_capture()
{
        bool any = false;
        for (const device &d : devices)
                any = break_captures(d, [](stream_record *s) { return s->by == std::this_thread::get_id(); }) || any;
        return any;
}

bool breaks_capture_in(stream_record *s)
{
        s->broken = s->broken || s->captures;
        return s->captures;
}

bool breaks_capture_on_device()
{
        return break_captures(devices[current_device], [](stream_record *) { return true; });
}

static cudaError_t try_launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                              std::function<void()> body)
{
        if (fails(name))
                return cudaErrorLaunchFailure;
        if (fails(name, LOAD))
                return cudaErrorMemoryAllocation;
        size_t threads = (size_t)block.x * block.y * block.z;
        if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024 || grid.y > 65535 || grid.z > 65535)
                return cudaErrorInvalidConfiguration;
        if (shared > 227 * 1024)
                return cudaErrorInvalidValue;
        if (record_of(stream)->device != current_device)
                return cudaErrorInvalidResourceHandle;
        NOT_BROKEN(stream);
        static std::set<std::string> &loaded = *new std::set<std::string>;
        if (number("CUDASIM_LAZY", 0) && loaded.insert(name).second) {
                NOT_CAPTURED;
                wait_device(current_device);
        }
        enqueue(stream, [=] {
                run_grid(name, grid, block, shared, body);
                check_after(name);
        });
        return cudaSuccess;
}

void launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> body)
{
        LOCK;
        note_launch(name);
        note(try_launch(name, grid, block, shared, stream, std::move(body)));
}
} // namespace cudasim

using namespace cudasim;

struct CUgraph_st {
        std::vector<std::function<bool()>> work;
};
struct CUgraphExec_st {
        std::vector<std::function<bool()>> work;
};

/* Only the thread that captures is kept from calls that may wait or take memory (cudaStreamCaptureModeThreadLocal).
 * Forks into other streams are not simulated. */
extern "C" {
cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
        LOCK;
        FAIL(cudaErrorStreamCaptureUnsupported);
        static const bool refused = number("CUDASIM_CAPTURE", 1) == 0;
        if (refused || !s || mode != cudaStreamCaptureModeThreadLocal)
                return note(cudaErrorStreamCaptureUnsupported);
        stream_record *r = record_of(s);
        if (r->captures)
                return note(cudaErrorIllegalState);
        r->captures = true;
        r->broken = false;
        r->by = std::this_thread::get_id();
        r->captured.clear();
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
        LOCK;
        stream_record *r = record_of(s);
        *graph = nullptr;
        if (!r->captures)
                return note(cudaErrorIllegalState);
        if (r->by != std::this_thread::get_id())
                return note(cudaErrorStreamCaptureWrongThread);
        r->captures = false;
        std::vector<std::function<bool()>> captured = std::move(r->captured);
        r->captured.clear();
        if (r->broken)
                return note(cudaErrorStreamCaptureInvalidated);
        FAIL(cudaErrorMemoryAllocation);
        *graph = new CUgraph_st{std::move(captured)};
        count_handles(1);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status)
{
        LOCK;
        const stream_record *r = record_of(s);
        *status = !r->captures ? cudaStreamCaptureStatusNone
                  : r->broken  ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t *ready, cudaGraph_t graph, unsigned long long)
{
        LOCK;
        NOT_CAPTURED;
        FAIL(cudaErrorMemoryAllocation);
        *ready = new CUgraphExec_st{graph->work};
        count_handles(1);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph)
{
        LOCK;
        delete graph;
        count_handles(-1);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t ready)
{
        LOCK;
        delete ready;
        count_handles(-1);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorLaunchFailure);
        NOT_CAPTURED_IN(record_of(s));
        for (const auto &work : ready->work)
                enqueue_step(s, work);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
        LOCK;
        FAIL(cudaErrorMemoryAllocation);
        stream_record *r = new stream_record;
        r->device = current_device;
        devices[current_device].streams.push_back(r);
        count_handles(1);
        *s = (cudaStream_t)r;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t s)
{
        LOCK;
        stream_record *r = (stream_record *)s;
        wait_all(r);
        auto &list = devices[r->device].streams;
        for (size_t i = 0; i < list.size(); i++)
                if (list[i] == r) {
                        list.erase(list.begin() + (long)i);
                        break;
                }
        static std::vector<stream_record *> &ended = *new std::vector<stream_record *>;
        ended.push_back(r); /* events and other streams may still name it */
        count_handles(-1);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t s)
{
        LOCK;
        NOT_CAPTURED_IN(record_of(s));
        FAIL(cudaErrorLaunchFailure);
        count_wait();
        wait_all(record_of(s));
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t s)
{
        LOCK;
        NOT_CAPTURED_IN(record_of(s));
        FAIL(cudaErrorLaunchFailure);
        const stream_record *r = record_of(s);
        return r->done >= r->queued ? cudaSuccess : note(cudaErrorNotReady);
}

/* In functions that ask about an event, or let another stream wait for it. */
#define NOT_CAPTURED_AT(e)                                                                                             \
        if ((e)->captured) {                                                                                           \
                breaks_capture_in(record_of((e)->stream));                                                             \
                return note(cudaErrorCapturedEvent);                                                                   \
        }

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        stream_record *r = record_of(s);
        NOT_BROKEN(s);
        if (r->captures && e->captured && e->stream == (cudaStream_t)r)
                return cudaSuccess;
        if (breaks_capture_in(r))
                return note(cudaErrorStreamCaptureIsolation);
        NOT_CAPTURED_AT(e);
        if (e->stream) {
                stream_record *other = (stream_record *)e->stream;
                uint64_t number = e->number;
                enqueue_step(s, [=] { return run_until(other, number); });
        }
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
        LOCK;
        FAIL(cudaErrorMemoryAllocation);
        *e = new CUevent_st{nullptr, 0, flags & cudaEventDisableTiming ? nullptr : std::make_shared<double>(0), false};
        count_handles(1);
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
        count_handles(-1);
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        stream_record *r = record_of(s);
        NOT_BROKEN(s);
        e->stream = (cudaStream_t)r;
        e->captured = r->captures;
        if (e->captured)
                return cudaSuccess;
        if (e->passed) {
                *e->passed = 0;
                enqueue(s, [passed = e->passed] { *passed = now_ms(); });
        }
        e->number = r->queued;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t e)
{
        LOCK;
        NOT_CAPTURED_AT(e);
        FAIL(cudaErrorLaunchFailure);
        count_wait();
        if (e->stream)
                wait_until((stream_record *)e->stream, e->number);
        return cudaSuccess;
}

/* Time passes between two queries: the first one that finds work gets it done. */
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t e)
{
        LOCK;
        NOT_CAPTURED_AT(e);
        FAIL(cudaErrorLaunchFailure);
        if (!e->stream || ((stream_record *)e->stream)->done >= e->number)
                return cudaSuccess;
        run_until((stream_record *)e->stream, e->number);
        return note(cudaErrorNotReady);
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
        LOCK;
        FAIL(cudaErrorInvalidValue);
        if (!from->passed || !to->passed || !from->stream || !to->stream || from->captured || to->captured)
                return note(cudaErrorInvalidResourceHandle);
        if (*from->passed == 0 || *to->passed == 0)
                return note(cudaErrorNotReady);
        *ms = (float)(*to->passed - *from->passed);
        return cudaSuccess;
}
} // extern "C"
