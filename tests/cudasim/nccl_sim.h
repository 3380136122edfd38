/* nccl_sim.h - what the parts of the simulated NCCL share: communicators and operations. */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

#include "runtime.h"
#include <atomic>
#include <memory>
#include <nccl.h>
#include <sys/mman.h>

namespace cudasim
{
constexpr size_t piece = 1 << 16;

enum kind { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };

struct meaning {
        int64_t number; /* 1, 2, ...: of this communicator, or of this pair of ranks */
        int what, type, reduction, root;
        size_t count; /* of elements as the call has it */
};

struct area {
        std::atomic<int64_t> shown{0}, seen{0}; /* rounds */
        meaning about;
        int device;
        alignas(64) char data[piece];
};

/* What all ranks map: an area of each, then one for each pair. */
struct segment {
        alignas(64) std::atomic<int> ranks;
};

struct member {
        int rank, size;
        char name[64];
        segment *shared = nullptr;
        bool joined = false, aborted = false;
        int in_progress = 0;            /* polls left */
        std::function<void()> later;    /* what the call in progress queues at its end */
        int64_t rounds = 0, number = 0; /* of collective operations */
        int64_t pending = 0;            /* operations that have not ended */
        int64_t sent[most_devices] = {}, received[most_devices] = {};
        bool called = false;

        size_t bytes() const
        {
                return sizeof(segment) + sizeof(area) * (size_t)(size + size * size);
        }
        area &of(int r) const
        {
                return ((area *)(shared + 1))[r];
        }
        area &pair(int from, int to) const
        {
                return of(size + from * size + to);
        }
        ~member()
        {
                if (shared)
                        munmap(shared, bytes());
        }
};

struct operation {
        std::shared_ptr<member> on;
        stream_record *stream;
        meaning about;
        const char *in;
        char *out;
        size_t total, at = 0; /* bytes that are shown; those that are done */
        int64_t rounds = 0;   /* of a pair */
        bool shown = false;
};

/* How many operations each stream holds. */
extern std::map<stream_record *, int64_t> &busy;

size_t size_of(int type);
/* Goes on with an operation as far as others let it; true: it has ended. */
bool go_on(operation &o);
} // namespace cudasim

#endif
