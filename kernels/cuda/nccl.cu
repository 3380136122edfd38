/* nccl.cu - communication between devices of several processes by NCCL: the library, joining and leaving links, and
 * operations. A link has a stream of its own, so that operations run in parallel with kernels. */
#include "nccl.h"
#if LG_NCCL
#include "loaded.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST 21400 /* NCCL 2.14, the first version with non-blocking calls */

/* ---- the library ---- */

static lg_nccl_library load_library(void)
{
        lg_nccl_library library = {}, *l = &library;
        const lg_loaded_function table[] = {LG_NCCL_FUNCTIONS(LG_LOADED)};
        if (!lg_load_functions("libnccl.so.2", "CUDASIM_NCCL", table, sizeof table / sizeof *table, l->reason,
                               sizeof l->reason))
                return library;
        if (l->version(&l->number) != ncclSuccess)
                l->number = 0;
        l->there = l->number >= OLDEST;
        if (!l->there)
                snprintf(l->reason, sizeof l->reason, "NCCL %d is older than 2.14", l->number);
        return library;
}

/* Returns the NCCL library, which is loaded once per process. */
const lg_nccl_library *lg_nccl_find(void)
{
        static const lg_nccl_library library = load_library();
        return &library;
}

static bool version(char *ret, size_t size)
{
        const lg_nccl_library *l = lg_nccl_find();
        if (l->there)
                snprintf(ret, size, "NCCL %d.%d.%d", l->number / 10000, l->number / 100 % 100, l->number % 100);
        else
                snprintf(ret, size, "%s", l->reason);
        return l->there;
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
        lg_cuda_links_before(q); /* waits for other links, as cudaFreeHost waits for the whole device */
        if (l->lost)
                cudaFreeHost(l->lost);
        cudaGetLastError();
        free(l);
}

static bool make_parts(lg_queue *q, lg_link *l)
{
        const unsigned non_blocking = cudaStreamNonBlocking, no_timing = cudaEventDisableTiming;
        bool ok = lg_cuda_good(q, "cudaHostAlloc", cudaHostAlloc((void **)&l->lost, sizeof *l->lost, 0)) &&
                  lg_cuda_good(q, "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&l->stream, non_blocking)) &&
                  lg_cuda_good(q, "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&l->aside, non_blocking)) &&
                  lg_cuda_good(q, "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&l->before, no_timing));
        for (int i = 0; ok && i < LG_CUDA_MARKS; i++)
                ok = lg_cuda_good(q, "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&l->marks[i], no_timing));
        if (ok)
                *l->lost = lg_device_error{LG_DEVICE_LOST, 0, 0};
        return ok;
}

/* Writes the UUID and the PCI address of the device; for a slice of a GPU (MIG) also its name, as older drivers give
 * all slices the UUID of the GPU. Device numbers differ between processes that see different devices. */
static bool place(lg_queue *q, char *ret, size_t size)
{
        cudaDeviceProp p;
        if (!lg_cuda_good(q, "cudaGetDeviceProperties", cudaGetDeviceProperties(&p, q->index)))
                return false;
        char uuid[2 * sizeof p.uuid.bytes + 1];
        for (size_t i = 0; i < sizeof p.uuid.bytes; i++)
                snprintf(uuid + 2 * i, 3, "%02x", (unsigned char)p.uuid.bytes[i]);
        const char *slice = strstr(p.name, "MIG ");
        snprintf(ret, size, "%s %x:%x:%x %s", uuid, (unsigned)p.pciDomainID, (unsigned)p.pciBusID,
                 (unsigned)p.pciDeviceID, slice ? slice : "");
        return true;
}

static bool is_there(lg_queue *q)
{
        return lg_nccl_find()->there || lg_queue_fail(q, LG_BROKEN, "%s", lg_nccl_find()->reason);
}

static bool make_id(lg_queue *q, uint8_t *ret)
{
        static_assert(sizeof(ncclUniqueId) == LG_LINK_ID, "NCCL's id has another size");
        ncclUniqueId id;
        if (!is_there(q))
                return false;
        const ncclResult_t s = lg_nccl_find()->id(&id);
        if (s != ncclSuccess)
                return lg_queue_fail(q, LG_LOST, "ncclGetUniqueId: %s", lg_nccl_find()->words(s));
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
        l->seconds = seconds / 2; /* half for joining, as a rank that cannot join waits for this one */
        ncclUniqueId id;
        memcpy(&id, name, sizeof id);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        const bool ready = make_parts(q, l);
        const ncclResult_t s = ready ? lg_nccl_find()->join(&l->comm, size, id, rank, &config) : ncclSuccess;
        if (ready && !l->comm)
                lg_queue_fail(q, LG_LOST, "ncclCommInitRankConfig: %s", lg_nccl_find()->words(s));
        if (!l->comm || !lg_nccl_done(q, l, "ncclCommInitRankConfig", s)) {
                free_link(q, l);
                return NULL;
        }
        l->seconds = seconds;
        l->next = lg_nccl_links(q);
        lg_cuda(q)->links = l;
        return l;
}

/* Waits for the operations of l; gives l up at the time limit, counted from now or, if broken, from the last one. */
static void wait_or_give_up(lg_queue *q, lg_link *l, bool broken)
{
        const double start = broken ? l->began : lg_nccl_now(), looked = lg_nccl_now();
        while (lg_nccl_under_way(l) && lg_nccl_goes_on(q, l, start))
                lg_nccl_pause(looked);
}

static void leave(lg_queue *q, lg_link *l, bool broken)
{
        if (!l)
                return;
        lg_on_device here(q->index);
        wait_or_give_up(q, l, broken);
        if (l->comm && !broken && lg_nccl_finish(l, lg_nccl_find()->finalize(l->comm)) == ncclSuccess)
                lg_nccl_find()->destroy(l->comm);
        else if (l->comm)
                lg_nccl_find()->cancel(l->comm);
        l->comm = NULL;
        free_link(q, l);
}

void lg_cuda_links_close(lg_queue *q)
{
        while (lg_nccl_links(q))
                leave(q, lg_nccl_links(q), true);
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

/* Returns NCCL's reduction. A sum of bools is their maximum: whether any is true. */
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
        const lg_nccl_library *n = lg_nccl_find();
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

/* Records the event by which later calls wait for the operation. If that fails, gives the link up. */
static bool set_mark(lg_queue *q, lg_link *l, uint64_t *mark)
{
        const cudaError_t e = cudaEventRecord(l->marks[(l->mark + 1) % LG_CUDA_MARKS], l->stream);
        if (e == cudaSuccess) {
                *mark = ++l->mark;
                l->began = lg_nccl_now();
                return true;
        }
        lg_nccl_give_up(q, l, "cudaEventRecord: %s", cudaGetErrorString(e));
        return lg_cuda_good(q, "cudaEventRecord", e);
}

static bool run(lg_queue *q, lg_link *l, const lg_link_args *a, uint64_t *mark)
{
        if (lg_nccl_lost(q, l) ||
            !lg_cuda_good(q, "cudaEventRecord", cudaEventRecord(lg_cuda(q)->here, lg_cuda(q)->stream)) ||
            !lg_cuda_good(q, "cudaStreamWaitEvent", cudaStreamWaitEvent(l->stream, lg_cuda(q)->here, 0)))
                return false;
        lg_cuda_count_launch();
        l->doing = calls[a->what];
        return lg_nccl_done(q, l, l->doing, call(l, a)) && set_mark(q, l, mark);
}

static bool wait(lg_queue *q, lg_link *l, uint64_t mark)
{
        return !lg_nccl_lost(q, l) &&
               lg_cuda_good(q, "cudaStreamWaitEvent",
                            cudaStreamWaitEvent(lg_cuda(q)->stream, l->marks[mark % LG_CUDA_MARKS], 0));
}

static const char *why(const lg_link *l)
{
        return l->comm ? NULL : l->why;
}

extern "C" const lg_device_links lg_cuda_links = {
        version, lg_entry<place>::call, lg_entry<make_id>::call, join, lg_entry<run>::call, lg_entry<wait>::call, why,
        leave};

#else /* built without NCCL's header */
#include <stdio.h>

static bool version(char *ret, size_t size)
{
        snprintf(ret, size, "this build knows nothing of NCCL");
        return false;
}

extern "C" const lg_device_links lg_cuda_links = {version, nullptr, nullptr, nullptr,
                                                  nullptr, nullptr, nullptr, nullptr};
#endif
