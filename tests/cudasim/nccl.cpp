/* nccl.cpp - NCCL between the simulated devices of several processes, over shared memory.
 *
 * A communicator is a segment that all its ranks map; its name goes when the last one has, so that no death leaves it
 * behind. An operation is rounds of a piece each: a rank shows its piece and what it is about, and goes on when all
 * have looked at it. As on a GPU, operations run by themselves while the host does other things: a thread sees to it.
 * What nobody waits for otherwise runs as late as ever.
 */
#include "runtime.h"
#if __has_include(<nccl.h>)
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <nccl.h>
#include <string>
#include <thread>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace cudasim;

namespace
{
constexpr size_t piece = 1 << 16;
constexpr int polls = 3; /* how often a call is seen in progress */

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
        char data[piece];
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

int alive;                                                                          /* communicators */
std::map<stream_record *, int64_t> &busy = *new std::map<stream_record *, int64_t>; /* operations on each stream */
std::thread *progress;
std::atomic<bool> quit;
int group_depth;

size_t size_of(int type)
{
        return type == ncclFloat64 || type == ncclInt64 || type == ncclUint64   ? 8
               : type == ncclFloat32 || type == ncclInt32 || type == ncclUint32 ? 4
               : type == ncclFloat16 || type == ncclBfloat16                    ? 2
                                                                                : 1;
}

std::string words(const meaning &m)
{
        static const char *const names[] = {"AllReduce", "Broadcast", "AllGather", "ReduceScatter", "Send", "Recv"};
        char text[160];
        snprintf(text, sizeof text, "nccl%s of %zu elements of type %d, reduction %d, root %d", names[m.what], m.count,
                 m.type, m.reduction, m.root);
        return text;
}

bool same(const meaning &a, const meaning &b)
{
        return a.what == b.what && a.type == b.type && a.reduction == b.reduction && a.root == b.root &&
               a.count == b.count;
}

/* ---- sums, in an order that is not that of the ranks ---- */

template <typename S> S together(int reduction, S a, S b)
{
        if (reduction == ncclMax) /* which takes numbers before NaN */
                return a != a ? b : b > a ? b : a;
        if constexpr (std::is_integral_v<S>)
                return (S)((uint64_t)a + (uint64_t)b);
        else
                return a + b;
}

template <typename T, typename S, S (*widen)(T), T (*round)(S)>
void reduce(const member &l, int reduction, size_t n, T *to)
{
        const S part = (S)1 / (S)l.size;
        for (size_t i = 0; i < n; i++) {
                T sum{};
                for (int r = l.size - 1; r >= 0; r--) {
                        T x = ((const T *)l.of(r).data)[i];
                        if (reduction == ncclAvg)
                                x = round(widen(x) * part);
                        sum = r == l.size - 1 ? x : round(together<S>(reduction, widen(sum), widen(x)));
                }
                to[i] = sum;
        }
}

template <typename T> T same_of(T x)
{
        return x;
}
float of_f16(__half x)
{
        return __half2float(x);
}
__half to_f16(float x)
{
        return __float2half(x);
}
float of_bf16(__nv_bfloat16 x)
{
        return __bfloat162float(x);
}
__nv_bfloat16 to_bf16(float x)
{
        return __float2bfloat16(x);
}

/* The reduction of what all show, n elements. */
void reduce_shown(const member &l, const meaning &m, size_t n, char *to)
{
        switch (m.type) {
        case ncclFloat32:
                return reduce<float, float, same_of<float>, same_of<float>>(l, m.reduction, n, (float *)to);
        case ncclFloat64:
                return reduce<double, double, same_of<double>, same_of<double>>(l, m.reduction, n, (double *)to);
        case ncclFloat16:
                return reduce<__half, float, of_f16, to_f16>(l, m.reduction, n, (__half *)to);
        case ncclBfloat16:
                return reduce<__nv_bfloat16, float, of_bf16, to_bf16>(l, m.reduction, n, (__nv_bfloat16 *)to);
        case ncclInt64:
                return reduce<int64_t, int64_t, same_of<int64_t>, same_of<int64_t>>(l, m.reduction, n, (int64_t *)to);
        case ncclInt32:
                return reduce<int32_t, int32_t, same_of<int32_t>, same_of<int32_t>>(l, m.reduction, n, (int32_t *)to);
        case ncclUint8:
                return reduce<uint8_t, uint8_t, same_of<uint8_t>, same_of<uint8_t>>(l, m.reduction, n, (uint8_t *)to);
        default:
                die("NCCL: type %d is not simulated", m.type);
        }
}

/* ---- operations ---- */

/* n bytes from o.at on that all show become the result. */
void take_shown(operation &o, size_t n)
{
        const member &l = *o.on;
        const size_t size = size_of(o.about.type);
        alignas(16) static char sums[piece];
        switch (o.about.what) {
        case ALL_REDUCE:
                reduce_shown(l, o.about, n / size, o.out + o.at);
                return;
        case BROADCAST:
                memcpy(o.out + o.at, l.of(o.about.root).data, n);
                return;
        case ALL_GATHER:
                for (int r = 0; r < l.size; r++)
                        memcpy(o.out + (size_t)r * o.total + o.at, l.of(r).data, n);
                return;
        default: /* of the sums, those of this rank */
                reduce_shown(l, o.about, n / size, sums);
                const size_t first = o.about.count * size * (size_t)l.rank, end = first + o.about.count * size;
                const size_t from = std::max(first, o.at), to = std::min(end, o.at + n);
                if (from < to)
                        memcpy(o.out + (from - first), sums + (from - o.at), to - from);
        }
}

void compare(const operation &o, const meaning &other, int rank)
{
        if (!same(o.about, other))
                die("NCCL: operation %lld is %s on rank %d, but %s on rank %d", (long long)o.about.number,
                    words(o.about).c_str(), o.on->rank, words(other).c_str(), rank);
}

/* One round; false: others are not there yet. */
bool round_of_all(operation &o, size_t n)
{
        member &l = *o.on;
        area &mine = l.of(l.rank);
        for (int r = 0; r < l.size && !o.shown; r++)
                if (l.of(r).seen < l.rounds)
                        return false;
        if (!o.shown) {
                if (o.about.what != BROADCAST || l.rank == o.about.root)
                        memcpy(mine.data, o.in + o.at, n);
                mine.about = o.about;
                mine.shown = ++l.rounds;
                o.shown = true;
        }
        for (int r = 0; r < l.size; r++)
                if (l.of(r).shown < l.rounds)
                        return false;
        for (int r = 0; r < l.size; r++)
                compare(o, l.of(r).about, r);
        take_shown(o, n);
        mine.seen = l.rounds;
        return true;
}

bool round_of_pair(operation &o, size_t n)
{
        member &l = *o.on;
        const bool sends = o.about.what == SEND;
        const int other = o.about.root;
        area &a = sends ? l.pair(l.rank, other) : l.pair(other, l.rank);
        int64_t &rounds = sends ? l.sent[other] : l.received[other];
        if (sends && !o.shown) {
                memcpy(a.data, o.in + o.at, n);
                a.about = o.about;
                a.shown = ++rounds;
                o.shown = true;
        }
        if (sends)
                return a.seen >= rounds;
        if (a.shown <= rounds)
                return false;
        if (a.about.count != o.about.count || a.about.type != o.about.type)
                die("NCCL: rank %d sends as %s what rank %d receives as %s", other, words(a.about).c_str(), l.rank,
                    words(o.about).c_str());
        memcpy(o.out + o.at, a.data, n);
        a.seen = ++rounds;
        return true;
}

/* $CUDASIM_NCCL_STALL: operations of this process do not begin, as where its GPU or the way to it has failed. */
bool stalls()
{
        return number("CUDASIM_NCCL_STALL", 0) != 0;
}

bool go_on(operation &o)
{
        if (!o.on->aborted && stalls())
                return false;
        const bool pair = o.about.what == SEND || o.about.what == RECEIVE;
        while (!o.on->aborted) {
                const size_t n = std::min(piece, o.total - o.at);
                if (!(pair ? round_of_pair(o, n) : round_of_all(o, n)))
                        return false;
                o.shown = false;
                o.at += n;
                if (o.at >= o.total)
                        break;
        }
        o.on->pending--;
        busy[o.stream]--;
        return true;
}

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
        if (!l.joined) {
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
