/* nccl.cpp - NCCL between the simulated devices of several processes, over shared memory: its functions.
 *
 * A communicator is a segment that all its ranks map; its name goes when the last one has, so that no death leaves it
 * behind. As on a GPU, operations run by themselves while the host does other things: a thread sees to it. What nobody
 * waits for otherwise runs as late as ever.
 */
#if __has_include(<nccl.h>)
#include "nccl_sim.h"
#include <cstdio>
#include <thread>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace cudasim;

namespace
{
constexpr int polls = 3; /* how often a call is seen in progress */

int alive; /* communicators */
std::thread *progress;
std::atomic<bool> quit;
int group_depth;

void run_by_themselves()
{
        const struct timespec nap = {0, 100000};
        while (!quit) {
                {
                        LOCK;
                        for (auto &b : busy)
                                if (b.second > 0)
                                        run_until(b.first, b.first->queued);
                }
                nanosleep(&nap, nullptr);
        }
}

/* With the lock not held: the thread may want it to end. */
void end_thread(std::thread *t)
{
        if (t) {
                quit = true;
                t->join();
                delete t;
        }
}
} // namespace

struct ncclComm {
        std::shared_ptr<member> inner = std::make_shared<member>();
        int device = 0;
        bool finalized = false;
};

namespace
{
void check_end()
{
        if (alive)
                die("NCCL: %d communicators were neither destroyed nor aborted", alive);
        if (group_depth)
                die("NCCL: %d groups were not ended", group_depth);
}

bool attach(member &l)
{
        const int f = shm_open(l.name, O_RDWR | O_CREAT, 0600);
        void *p = f >= 0 && ftruncate(f, (off_t)l.bytes()) == 0
                          ? mmap(nullptr, l.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, f, 0)
                          : MAP_FAILED;
        if (f >= 0)
                close(f);
        if (p == MAP_FAILED)
                return false;
        l.shared = (segment *)p;
        l.of(l.rank).device = current_device;
        if (++l.shared->ranks == l.size)
                shm_unlink(l.name);
        return true;
}

/* When all have come: no two may have the same device. */
ncclResult_t join_state(member &l)
{
        l.joined = l.shared->ranks >= l.size;
        for (int a = 0; l.joined && a < l.size; a++)
                for (int b = 0; b < a; b++)
                        if (l.of(a).device == l.of(b).device)
                                return ncclInvalidUsage;
        return l.joined ? ncclSuccess : ncclInProgress;
}

/* Ends a communicator; gives the thread that is not needed any more. */
std::thread *forget(ncclComm *c)
{
        if (!c->inner->joined)
                shm_unlink(c->inner->name);
        delete c;
        count_handles(-1);
        std::thread *last = --alive == 0 ? progress : nullptr;
        progress = last ? nullptr : progress;
        return last;
}

ncclResult_t begin(ncclComm_t c, cudaStream_t s, meaning m, const void *in, void *out, size_t in_count,
                   size_t out_count, size_t shown_count)
{
        member &l = *c->inner;
        const size_t size = size_of(m.type);
        const char *call = "an operation of NCCL";
        if (l.aborted || c->finalized || !l.joined)
                die("%s on a communicator that is not ready for it", call);
        if (l.later)
                die("%s while another one is in progress", call);
        if (record_of(s)->device != c->device)
                die("%s on a stream of another device", call);
        if (in_count)
                check_device(call, in, in_count * size);
        if (out_count)
                check_device(call, out, out_count * size);
        const bool pair = m.what == SEND || m.what == RECEIVE;
        m.number = pair ? 0 : ++l.number;
        auto o = std::make_shared<operation>(
                operation{c->inner, record_of(s), m, (const char *)in, (char *)out, shown_count * size});
        auto queue = [=] {
                o->on->pending++;
                busy[o->stream]++;
                enqueue_step(s, [=] { return go_on(*o); });
        };
        if (l.called) {
                queue();
                return ncclSuccess;
        }
        l.called = true; /* the first one connects, and is queued later */
        l.later = queue;
        l.in_progress = polls;
        return ncclInProgress;
}
} // namespace

#define FAIL_NCCL                                                                                                      \
        if (fails(__func__))                                                                                           \
        return ncclSystemError

extern "C" {
ncclResult_t ncclGetVersion(int *version)
{
        *version = NCCL_VERSION_CODE;
        return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t e)
{
        return e == ncclSuccess              ? "no error"
               : e == ncclUnhandledCudaError ? "unhandled cuda error"
               : e == ncclSystemError        ? "unhandled system error"
               : e == ncclInternalError      ? "internal error"
               : e == ncclInvalidArgument    ? "invalid argument"
               : e == ncclInvalidUsage       ? "invalid usage"
               : e == ncclRemoteError        ? "remote process exited or there was a network error"
               : e == ncclInProgress         ? "NCCL operation in progress"
                                             : "unknown result code";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
        LOCK;
        FAIL_NCCL;
        uint64_t drawn = 0;
        FILE *f = fopen("/dev/urandom", "rb");
        const bool ok = f && fread(&drawn, sizeof drawn, 1, f) == 1;
        if (f)
                fclose(f);
        memset(id, 0, sizeof *id);
        snprintf(id->internal, 64, "/cudasim-nccl-%d-%016llx", (int)getpid(), (unsigned long long)drawn);
        return ok ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
        LOCK;
        *comm = nullptr;
        FAIL_NCCL;
        if (number("CUDASIM_NCCL_REFUSE", 0))
                return ncclSystemError;
        if (size < 1 || size > most_devices || rank < 0 || rank >= size || config->blocking != 0)
                return ncclInvalidArgument;
        auto *c = new ncclComm;
        c->device = current_device;
        member &l = *c->inner;
        l.rank = rank;
        l.size = size;
        snprintf(l.name, sizeof l.name, "%.63s", id.internal);
        if (!attach(l)) {
                delete c;
                return ncclSystemError;
        }
        static const int registered = atexit(check_end);
        (void)registered;
        count_handles(1);
        if (alive++ == 0) {
                quit = false;
                progress = new std::thread(run_by_themselves);
        }
        *comm = c;
        return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
        LOCK;
        FAIL_NCCL;
        member &l = *c->inner;
        if (number("CUDASIM_NCCL_ERROR", 0)) {
                *state = ncclRemoteError;
        } else if (!l.joined) {
                *state = join_state(l);
        } else if (l.later && --l.in_progress > 0) {
                *state = ncclInProgress;
        } else {
                if (l.later)
                        l.later();
                l.later = nullptr;
                *state = c->finalized && l.pending ? ncclInProgress : ncclSuccess;
        }
        return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
        LOCK;
        FAIL_NCCL;
        c->finalized = true;
        return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
        std::thread *last;
        {
                LOCK;
                if (c->inner->pending)
                        die("ncclCommDestroy: %lld operations have not ended", (long long)c->inner->pending);
                last = forget(c);
        }
        end_thread(last);
        return ncclSuccess;
}

/* Its operations end at once, and what they have written so far is void. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
        std::thread *last;
        {
                LOCK;
                c->inner->aborted = true;
                last = forget(c);
        }
        end_thread(last);
        return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
        LOCK;
        group_depth++;
        return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
        LOCK;
        if (group_depth-- == 0)
                die("ncclGroupEnd without ncclGroupStart");
        return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t s)
{
        LOCK;
        FAIL_NCCL;
        return begin(c, s, {0, ALL_REDUCE, t, op, 0, n}, in, out, n, n, n);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t t, int root, ncclComm_t c,
                           cudaStream_t s)
{
        LOCK;
        FAIL_NCCL;
        return begin(c, s, {0, BROADCAST, t, 0, root, n}, in, out, root == c->inner->rank ? n : 0, n, n);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{
        LOCK;
        FAIL_NCCL;
        return begin(c, s, {0, ALL_GATHER, t, 0, 0, n}, in, out, n, n * (size_t)c->inner->size, n);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                               cudaStream_t s)
{
        LOCK;
        FAIL_NCCL;
        const size_t all = n * (size_t)c->inner->size;
        return begin(c, s, {0, REDUCE_SCATTER, t, op, 0, n}, in, out, all, n, all);
}

ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{
        LOCK;
        FAIL_NCCL;
        return begin(c, s, {0, SEND, t, 0, peer, n}, in, nullptr, n, 0, n);
}

ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{
        LOCK;
        FAIL_NCCL;
        return begin(c, s, {0, RECEIVE, t, 0, peer, n}, nullptr, out, 0, n, n);
}
} // extern "C"
#endif
