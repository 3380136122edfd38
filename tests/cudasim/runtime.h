/* runtime.h - what the parts of the simulated runtime share: devices, their memory, streams, failures. */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include "sim.h"
#include <cstdlib>
#include <deque>
#include <map>
#include <thread>
#include <vector>

namespace cudasim
{
/* A number from the environment. */
int64_t number(const char *name, int64_t otherwise);
/* $CUDASIM_CHECK: each launch is followed by a look at the gaps between allocations. */
bool checking();
/* $CUDASIM_PAGEABLE: devices read pageable host memory by themselves. */
bool pageable_access();

/* A device's memory, closed to the host but while work runs. */
struct arena {
        char *base = nullptr;
        size_t bytes = 0;
        std::map<size_t, size_t> used; /* offset: bytes asked */
        size_t total = 0;
        bool open = false;
};

/* Work says whether it is done; what is not is asked again later, and what is behind it waits. */
struct stream_record {
        int device;
        std::deque<std::function<bool()>> work;
        uint64_t queued = 0, done = 0;
        bool running = false;
        bool captures = false; /* work is kept in `captured` instead of being queued */
        bool broken = false;   /* a call was made that cannot be captured */
        std::thread::id by;    /* the thread that captures */
        std::vector<std::function<bool()>> captured;
};

constexpr int most_devices = 8;
struct device {
        arena memory;
        std::vector<stream_record *> streams;
        stream_record *standard = nullptr;
        bool begun = false;            /* it has its context */
        bool peers[most_devices] = {}; /* whose memory it reaches */
};

extern device devices[most_devices];
int device_count();

/* Maps the memory of a device that has none yet. */
void need(device &d);
void set_open(device &d, bool open);
/* The device whose memory p points into, or NULL. */
device *owner(const void *p);
/* Dies if something was written between allocations. */
void check_after(const char *what);

/* The record behind a stream; NULL is the current device's standard one. */
stream_record *record_of(cudaStream_t s);
/* Runs what a stream holds, up to a number, as far as it goes by itself; true if it came there. */
bool run_until(stream_record *s, uint64_t number);
/* The host waits until that is done: other threads go on meanwhile. */
void wait_until(stream_record *s, uint64_t number);
void wait_all(stream_record *s);
void wait_device(int i);

/* Whether s captures, which a call that asks what it has done breaks; whether a stream of the current device does,
 * which a call that waits for the device breaks. */
bool breaks_capture_in(stream_record *s);
bool breaks_capture_on_device();
/* e, which becomes the thread's last error unless it is success. */
cudaError_t note(cudaError_t e);
/* Of this thread's last launch nobody has asked for the error yet; dies if that is still so of the one before. */
void note_launch(const char *kernel);
/* One more wait of the host, for which the error of the last launch was asked. */
void count_wait();
/* Pinned buffers that are alive. */
int64_t pinned_buffers();
} // namespace cudasim

namespace cudasim
{
/* Several threads of the host may call at once. Who waits lets go of all that its calls hold. */
struct calling {
        calling();
        ~calling();
        calling(const calling &) = delete;
        calling &operator=(const calling &) = delete;
};
} // namespace cudasim
#define LOCK cudasim::calling calling_

#define FAIL(error)                                                                                                    \
        if (fails(__func__))                                                                                           \
        return note(error)
/* In functions that a thread which captures must not call; and in those that a stream which captures does not allow. */
#define NOT_CAPTURED                                                                                                   \
        if (breaks_capture())                                                                                          \
        return note(cudaErrorStreamCaptureUnsupported)
#define NOT_CAPTURED_IN(stream)                                                                                        \
        if (breaks_capture_in(stream))                                                                                 \
        return note(cudaErrorStreamCaptureUnsupported)
/* In functions that queue work: a stream whose capture is broken takes none. */
#define NOT_BROKEN(stream)                                                                                             \
        if (record_of(stream)->captures && record_of(stream)->broken)                                                  \
        return note(cudaErrorStreamCaptureInvalidated)
#define FAIL_MEMORY                                                                                                    \
        if (fails(__func__, ALLOCATION))                                                                               \
        return note(cudaErrorMemoryAllocation)

#endif
