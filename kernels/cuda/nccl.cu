/* nccl.cu - exchanges with devices of other processes by NCCL.
 *
 * A link has a stream of its own, so that exchanges run beside kernels. A process that has died is not reported by
 * NCCL: its peers' kernels wait for ever, and who waits for their stream does. So the host asks an event instead, until
 * the time limit; then the link is given up: the device's error word is set first, so that optimisers queued behind the
 * exchange leave parameters as they are, and then NCCL's kernels are ended.
 */
#include "nccl.h"
#if LG_NCCL
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef LG_CUDASIM
#include <dlfcn.h>
#endif

#define OLDEST 21400          /* the first one whose calls need not block */
#define SPIN_SECONDS 2e-3     /* of a wait, before it begins to sleep */
#define NAP_NANOSECONDS 50000 /* between two looks */

/* ---- the library ---- */

#ifdef LG_CUDASIM
static bool load(lg_nccl_library *l)
{
        const char *wanted = getenv("CUDASIM_NCCL");
        if (wanted && strcmp(wanted, "0") == 0) {
                snprintf(l->reason, sizeof l->reason, "$CUDASIM_NCCL is 0");
                return false;
        }
#define TAKE(name, function) l->name = function;
        LG_NCCL_FUNCTIONS(TAKE)
#undef TAKE
        return true;
}
#else
static bool load(lg_nccl_library *l)
{
        void *module = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!module) {
                const char *words = dlerror();
                snprintf(l->reason, sizeof l->reason, "%s", words ? words : "libnccl.so.2 could not be loaded");
                return false;
        }
#define TAKE(name, function)                                                                                           \
        l->name = (decltype(l->name))dlsym(module, #function);                                                         \
        if (!l->name) {                                                                                                \
                snprintf(l->reason, sizeof l->reason, "libnccl.so.2 has no " #function);                               \
                dlclose(module);                                                                                       \
                return false;                                                                                          \
        }
        LG_NCCL_FUNCTIONS(TAKE)
#undef TAKE
        return true;
}
#endif

static lg_nccl_library look(void)
{
        lg_nccl_library l;
        memset(&l, 0, sizeof l);
        if (!load(&l))
                return l;
        if (l.version(&l.number) != ncclSuccess)
                l.number = 0;
        l.there = l.number >= OLDEST;
        if (!l.there)
                snprintf(l.reason, sizeof l.reason, "NCCL %d is older than 2.14", l.number);
        return l;
}

/* A library is the process's, and loaded once. */
static const lg_nccl_library *find(void)
{
        static const lg_nccl_library library = look();
        return &library;
}

static bool version(char *ret, size_t size)
{
        const lg_nccl_library *l = find();
        if (l->there)
                snprintf(ret, size, "NCCL %d.%d.%d", l->number / 10000, l->number / 100 % 100, l->number % 100);
        else
                snprintf(ret, size, "%s", l->reason);
        return l->there;
}

/* ---- a link ---- */

struct lg_link {
        lg_link *next;
        ncclComm_t comm; /* NULL: given up */
        int size;
        double seconds, began;            /* the time limit; when the last operation was queued */
        cudaStream_t stream, aside;       /* aside: for the error word, where `stream` does not go on */
        cudaEvent_t before;               /* a place in a stream of the queue */
        cudaEvent_t marks[LG_CUDA_MARKS]; /* as those of the queue */
        uint64_t mark, ended;             /* the last one given; the last one that was seen to have ended */
        const char *doing;                /* the call of the last operation */
        lg_device_error *lost;            /* pinned: what the device's error word becomes */
        char why[200];
};

static double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_since(double start)
{
        const struct timespec nap = {0, NAP_NANOSECONDS};
        if (now() - start < SPIN_SECONDS)
                sched_yield();
        else
                nanosleep(&nap, NULL);
}

/* Whether that has happened; an error of CUDA is for those who wait for the stream to find. */
static bool is_over(cudaEvent_t e)
{
        const cudaError_t s = cudaEventQuery(e);
        if (s != cudaSuccess)
                cudaGetLastError();
        return s != cudaErrorNotReady;
}

static bool is_under_way(lg_link *l)
{
        if (!l->comm || l->ended == l->mark)
                return false;
        if (is_over(l->marks[l->mark % LG_CUDA_MARKS]))
                l->ended = l->mark;
        return l->ended != l->mark;
}

/* The device's error word first: what is queued behind the operation goes on when NCCL's kernels end. */
static void give_up(lg_queue *q, lg_link *l, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        vsnprintf(l->why, sizeof l->why, format, args);
        va_end(args);
        if (is_under_way(l) && (cudaMemcpyAsync(lg_cuda(q)->error, l->lost, sizeof *l->lost, cudaMemcpyHostToDevice,
                                                l->aside) != cudaSuccess ||
                                cudaStreamSynchronize(l->aside) != cudaSuccess))
                cudaGetLastError();
        find()->cancel(l->comm);
        l->comm = NULL;
        l->ended = l->mark;
}

static bool is_lost(lg_queue *q, const lg_link *l)
{
        return !l->comm && !lg_queue_fail(q, LG_LOST, "%s", l->why);
}

/* The end of a call that may go on by itself, within the time limit. */
static ncclResult_t finish(const lg_link *l, ncclResult_t s)
{
        const double start = now();
        while (s == ncclInProgress && now() - start < l->seconds) {
                const ncclResult_t asked = find()->state(l->comm, &s);
                s = asked == ncclSuccess ? s : asked;
                pause_since(start);
        }
        return s;
}

/* After a call of NCCL. False: the link was given up with NCCL's words, as noted in q. */
static bool is_done(lg_queue *q, lg_link *l, const char *call, ncclResult_t s)
{
        s = finish(l, s);
        if (s == ncclSuccess)
                return true;
        if (s == ncclInProgress)
                give_up(q, l, "NCCL: no end after %g s of %s", l->seconds, call);
        else
                give_up(q, l, "%s: %s", call, find()->words(s));
        return !is_lost(q, l);
}

/* ---- waits ---- */

/* One look at an operation under way. False: its link was given up. */
static bool goes_on(lg_queue *q, lg_link *l, double start)
{
        ncclResult_t s = ncclSuccess;
        const ncclResult_t asked = find()->state(l->comm, &s);
        s = asked == ncclSuccess ? s : asked;
        if (s != ncclSuccess && s != ncclInProgress)
                give_up(q, l, "%s: %s", l->doing, find()->words(s));
        else if (now() - start >= l->seconds)
                give_up(q, l, "NCCL: no end after %g s of %s", l->seconds, l->doing);
        return !is_lost(q, l);
}

static lg_link *first_of(lg_queue *q)
{
        return (lg_link *)lg_cuda(q)->links;
}

static bool any_is_under_way(lg_queue *q)
{
        bool any = false;
        for (lg_link *l = first_of(q); l; l = l->next)
                any = is_under_way(l) || any;
        return any;
}

/* Until e has happened, or only CUDA is in its way. */
static bool poll(lg_queue *q, cudaEvent_t e)
{
        const double start = now();
        while (!is_over(e)) {
                bool any = false, good = true;
                for (lg_link *l = first_of(q); l; l = l->next)
                        if (is_under_way(l)) {
                                any = true;
                                good = goes_on(q, l, start) && good;
                        }
                if (!any || !good)
                        return good;
                pause_since(start);
        }
        return true;
}

bool lg_cuda_links_before_event(lg_queue *q, cudaEvent_t e)
{
        return !first_of(q) || !any_is_under_way(q) || poll(q, e);
}

bool lg_cuda_links_before(lg_queue *q, cudaStream_t s)
{
        if (!first_of(q) || !any_is_under_way(q))
                return true;
        cudaEvent_t here = first_of(q)->before;
        return lg_cuda_good(q, "cudaEventRecord", cudaEventRecord(here, s)) && poll(q, here);
}

bool lg_cuda_links_before_all(lg_queue *q)
{
        bool good = true;
        for (lg_link *l = first_of(q); l; l = l->next)
                if (is_under_way(l))
                        good = poll(q, l->marks[l->mark % LG_CUDA_MARKS]) && good;
        return good;
}

/* ---- joining and leaving ---- */

static void free_link(lg_queue *q, lg_link *l)
{
        for (lg_link **at = (lg_link **)&lg_cuda(q)->links; *at; at = &(*at)->next)
                if (*at == l) {
                        *at = l->next;
                        break;
                }
        for (int i = 0; i < LG_CUDA_MARKS; i++)
                if (l->marks[i])
                        cudaEventDestroy(l->marks[i]);
        if (l->before)
                cudaEventDestroy(l->before);
        if (l->aside)
                cudaStreamDestroy(l->aside);
        if (l->stream)
                cudaStreamDestroy(l->stream);
        if (l->lost && lg_cuda_links_before_all(q)) /* of other links: it waits for the whole device */
                cudaFreeHost(l->lost);
        cudaGetLastError();
        free(l);
}

static bool make_parts(lg_queue *q, lg_link *l)
{
        const unsigned apart = cudaStreamNonBlocking, bare = cudaEventDisableTiming;
        bool ok = lg_cuda_good(q, "cudaHostAlloc", cudaHostAlloc((void **)&l->lost, sizeof *l->lost, 0)) &&
                  lg_cuda_good(q, "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&l->stream, apart)) &&
                  lg_cuda_good(q, "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&l->aside, apart)) &&
                  lg_cuda_good(q, "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&l->before, bare));
        for (int i = 0; ok && i < LG_CUDA_MARKS; i++)
                ok = lg_cuda_good(q, "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&l->marks[i], bare));
        if (ok)
                *l->lost = lg_device_error{LG_DEVICE_LOST, 0, 0};
        return ok;
}

static bool is_there(lg_queue *q)
{
        return find()->there || lg_queue_fail(q, LG_BROKEN, "%s", find()->reason);
}

static bool make_id(lg_queue *q, uint8_t *ret)
{
        static_assert(sizeof(ncclUniqueId) == LG_LINK_ID, "NCCL's id has another size");
        ncclUniqueId id;
        if (!is_there(q))
                return false;
        const ncclResult_t s = find()->id(&id);
        if (s != ncclSuccess)
                return lg_queue_fail(q, LG_LOST, "ncclGetUniqueId: %s", find()->words(s));
        memcpy(ret, &id, sizeof id);
        return true;
}

static lg_link *join(lg_queue *q, const uint8_t *name, int rank, int size, double seconds)
{
        lg_on_device here(q->index);
        if (!is_there(q) || !lg_cuda_good(q, here.call, here.error))
                return NULL;
        lg_link *l = (lg_link *)calloc(1, sizeof *l);
        if (!l) {
                lg_queue_fail(q, LG_NO_MEMORY, "no memory for a link");
                return NULL;
        }
        l->size = size;
        l->seconds = seconds;
        ncclUniqueId id;
        memcpy(&id, name, sizeof id);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        const bool ready = make_parts(q, l);
        const ncclResult_t s = ready ? find()->join(&l->comm, size, id, rank, &config) : ncclSuccess;
        if (ready && !l->comm)
                lg_queue_fail(q, LG_LOST, "ncclCommInitRankConfig: %s", find()->words(s));
        if (!l->comm || !is_done(q, l, "ncclCommInitRankConfig", s)) {
                free_link(q, l);
                return NULL;
        }
        l->next = first_of(q);
        lg_cuda(q)->links = l;
        return l;
}

/* What is under way ends by itself, where all ranks are there. */
static void wait_or_give_up(lg_queue *q, lg_link *l, bool broken)
{
        const double start = broken ? l->began : now(), looked = now();
        while (is_under_way(l) && goes_on(q, l, start))
                pause_since(looked);
}

static void leave(lg_queue *q, lg_link *l, bool broken)
{
        if (!l)
                return;
        lg_on_device here(q->index);
        wait_or_give_up(q, l, broken);
        if (l->comm && !broken && finish(l, find()->finalize(l->comm)) == ncclSuccess)
                find()->destroy(l->comm);
        else if (l->comm)
                find()->cancel(l->comm);
        l->comm = NULL;
        free_link(q, l);
}

void lg_cuda_links_close(lg_queue *q)
{
        while (first_of(q))
                leave(q, first_of(q), true);
}

/* ---- operations ---- */

static ncclDataType_t type_of(lg_dtype t)
{
        return t == LG_F32    ? ncclFloat32
               : t == LG_F64  ? ncclFloat64
               : t == LG_F16  ? ncclFloat16
               : t == LG_BF16 ? ncclBfloat16
               : t == LG_I64  ? ncclInt64
               : t == LG_I32  ? ncclInt32
                              : ncclUint8;
}

/* A sum of truth values is whether any is true. */
static ncclRedOp_t reduction_of(const lg_link_args *a)
{
        return a->reduction == LG_LINK_MAX || a->dtype == LG_BOOL ? ncclMax
               : a->reduction == LG_LINK_MEAN                     ? ncclAvg
                                                                  : ncclSum;
}

static const char *const calls[] = {"ncclAllReduce",     "ncclBroadcast", "ncclAllGather",
                                    "ncclReduceScatter", "ncclSend",      "ncclRecv"};

static ncclResult_t call(const lg_link *l, const lg_link_args *a)
{
        const lg_nccl_library *n = find();
        const size_t count = (size_t)a->count;
        const ncclDataType_t t = type_of(a->dtype);
        switch (a->what) {
        case LG_LINK_ALL_REDUCE:
                return n->all_reduce(a->in, a->out, count, t, reduction_of(a), l->comm, l->stream);
        case LG_LINK_BROADCAST:
                return n->broadcast(a->in, a->out, count, t, a->rank, l->comm, l->stream);
        case LG_LINK_ALL_GATHER:
                return n->all_gather(a->in, a->out, count, t, l->comm, l->stream);
        case LG_LINK_REDUCE_SCATTER:
                return n->reduce_scatter(a->in, a->out, count / (size_t)l->size, t, reduction_of(a), l->comm,
                                         l->stream);
        case LG_LINK_SEND:
                return n->send(a->in, count, t, a->rank, l->comm, l->stream);
        default:
                return n->receive(a->out, count, t, a->rank, l->comm, l->stream);
        }
}

/* Without a mark nobody could wait for the operation. */
static bool set_mark(lg_queue *q, lg_link *l, uint64_t *mark)
{
        const cudaError_t e = cudaEventRecord(l->marks[(l->mark + 1) % LG_CUDA_MARKS], l->stream);
        if (e == cudaSuccess) {
                *mark = ++l->mark;
                l->began = now();
                return true;
        }
        give_up(q, l, "cudaEventRecord: %s", cudaGetErrorString(e));
        return lg_cuda_good(q, "cudaEventRecord", e);
}

static bool run(lg_queue *q, lg_link *l, const lg_link_args *a, uint64_t *mark)
{
        if (is_lost(q, l) ||
            !lg_cuda_good(q, "cudaEventRecord", cudaEventRecord(lg_cuda(q)->here, lg_cuda(q)->stream)) ||
            !lg_cuda_good(q, "cudaStreamWaitEvent", cudaStreamWaitEvent(l->stream, lg_cuda(q)->here, 0)))
                return false;
        lg_cuda_count_launch();
        l->doing = calls[a->what];
        return is_done(q, l, l->doing, call(l, a)) && set_mark(q, l, mark);
}

static bool wait(lg_queue *q, lg_link *l, uint64_t mark)
{
        return !is_lost(q, l) &&
               lg_cuda_good(q, "cudaStreamWaitEvent",
                            cudaStreamWaitEvent(lg_cuda(q)->stream, l->marks[mark % LG_CUDA_MARKS], 0));
}

static const char *why(const lg_link *l)
{
        return l->comm ? NULL : l->why;
}

#else /* NCCL's header was not there when this was built */
#include <stdio.h>

static const char *const unknown = "this build knows nothing of NCCL";

static bool version(char *ret, size_t size)
{
        snprintf(ret, size, "%s", unknown);
        return false;
}

static bool make_id(lg_queue *q, uint8_t *)
{
        return lg_queue_fail(q, LG_BROKEN, "%s", unknown);
}

static lg_link *join(lg_queue *q, const uint8_t *, int, int, double)
{
        lg_queue_fail(q, LG_BROKEN, "%s", unknown);
        return NULL;
}

static bool run(lg_queue *q, lg_link *, const lg_link_args *, uint64_t *)
{
        return lg_queue_fail(q, LG_BROKEN, "%s", unknown);
}

static bool wait(lg_queue *q, lg_link *, uint64_t)
{
        return lg_queue_fail(q, LG_BROKEN, "%s", unknown);
}

static const char *why(const lg_link *)
{
        return unknown;
}

static void leave(lg_queue *, lg_link *, bool)
{
}

bool lg_cuda_links_before_event(lg_queue *, cudaEvent_t)
{
        return true;
}

bool lg_cuda_links_before(lg_queue *, cudaStream_t)
{
        return true;
}

bool lg_cuda_links_before_all(lg_queue *)
{
        return true;
}

void lg_cuda_links_close(lg_queue *)
{
}
#endif

extern "C" const lg_device_links lg_cuda_links = {
        version, lg_entry<make_id>::call, join, lg_entry<run>::call, lg_entry<wait>::call, why, leave};
