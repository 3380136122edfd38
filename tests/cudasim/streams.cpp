/* streams.cpp - streams, events and launches. The work of a stream runs as late as CUDA allows: when somebody waits for
 * it. */
#include "runtime.h"

struct CUevent_st {
        cudaStream_t stream; /* where it was recorded last; NULL: never, or done */
        uint64_t number;
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
void run_until(stream_record *s, uint64_t number)
{
        bool was_open[most_devices];
        if (s->done >= number || s->work.empty())
                return;
        for (int i = 0; i < most_devices; i++) {
                was_open[i] = devices[i].memory.open;
                set_open(devices[i], true);
        }
        while (s->done < number && !s->work.empty()) {
                std::function<void()> work = std::move(s->work.front());
                s->work.pop_front();
                s->done++;
                work();
        }
        for (int i = 0; i < most_devices; i++)
                set_open(devices[i], was_open[i]);
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

void enqueue(cudaStream_t stream, std::function<void()> work)
{
        stream_record *s = record_of(stream);
        s->work.push_back(std::move(work));
        s->queued++;
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
        enqueue(stream, [=] {
                run_grid(name, grid, block, shared, body);
                check_after(name);
        });
        return cudaSuccess;
}

void launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> body)
{
        std::lock_guard<std::recursive_mutex> guard(everything());
        note_launch(name);
        note(try_launch(name, grid, block, shared, stream, std::move(body)));
}
} // namespace cudasim

using namespace cudasim;

extern "C" {
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
        run_all(r);
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
        FAIL(cudaErrorLaunchFailure);
        count_wait();
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
        e->stream = (cudaStream_t)r;
        e->number = r->queued;
        return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t e)
{
        LOCK;
        FAIL(cudaErrorLaunchFailure);
        count_wait();
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
