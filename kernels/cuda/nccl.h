/* nccl.h - communication between devices of several processes by NCCL, a library loaded when it is first needed. Waits
 * end within a time limit whatever other processes do. */
#ifndef LG_CUDA_NCCL_H
#define LG_CUDA_NCCL_H

#include "cuda.h"

extern "C" const lg_device_links lg_cuda_links;

#if __has_include(<nccl.h>)
#define LG_NCCL 1
#include <nccl.h>

/* Wait, within the time limits of links, for the operations that precede the end of stream s, event e, or all work of
 * the device. Called before the host waits for s, e or the device itself. Return false, with the error in q, if a link
 * was given up. If no operation is under way, they return at once. */
bool lg_cuda_links_before(lg_queue *q, cudaStream_t s);
bool lg_cuda_links_before(lg_queue *q, cudaEvent_t e);
bool lg_cuda_links_before(lg_queue *q);
/* Leaves all links of q as broken and frees them. */
void lg_cuda_links_close(lg_queue *q);

#define LG_NCCL_FUNCTIONS(F)                                                                                           \
        F(version, ncclGetVersion)                                                                                     \
        F(words, ncclGetErrorString)                                                                                   \
        F(id, ncclGetUniqueId)                                                                                         \
        F(join, ncclCommInitRankConfig)                                                                                \
        F(state, ncclCommGetAsyncError)                                                                                \
        F(finalize, ncclCommFinalize)                                                                                  \
        F(destroy, ncclCommDestroy)                                                                                    \
        F(cancel, ncclCommAbort)                                                                                       \
        F(all_reduce, ncclAllReduce)                                                                                   \
        F(broadcast, ncclBroadcast)                                                                                    \
        F(all_gather, ncclAllGather)                                                                                   \
        F(reduce_scatter, ncclReduceScatter)                                                                           \
        F(send, ncclSend)                                                                                              \
        F(receive, ncclRecv)

typedef struct lg_nccl_library {
        bool there;
        char reason[200]; /* message that explains why `there` is false */
        int number;       /* NCCL's version, 22709 for 2.27.9; 0 without a library */
#define MEMBER(name, function) decltype(&::function) name;
        LG_NCCL_FUNCTIONS(MEMBER)
#undef MEMBER
} lg_nccl_library;

const lg_nccl_library *lg_nccl_find(void);

#define LG_NCCL_USED 2048 /* twice the number of this module's kernels */

struct lg_link {
        lg_link *next;
        ncclComm_t comm; /* NCCL's communicator; NULL after the link was given up */
        int size;
        double seconds, began;            /* time limit in seconds; time when the last operation was queued */
        cudaStream_t stream, aside;       /* aside: sets the device's error word while `stream` is blocked */
        cudaEvent_t before;               /* event for waiting for a stream of the queue */
        cudaEvent_t marks[LG_CUDA_MARKS]; /* event m % LG_CUDA_MARKS ends operation m or a later one */
        uint64_t mark, ended;             /* numbers of the last operation, of the last one known to have ended */
        const void *used[LG_NCCL_USED];   /* hash table: what this module has used while l was the first link */
        const char *doing;                /* name of the NCCL call of the last operation */
        lg_device_error *lost;            /* pinned: the error LG_DEVICE_LOST, copied to the device on give-up */
        char why[200];
};

/* Returns the first link in q's list, or NULL. */
lg_link *lg_nccl_links(lg_queue *q);
/* Return the time of a monotonic clock in seconds, and pause inside a wait that began at time `start`. */
double lg_nccl_now(void);
void lg_nccl_pause(double start);
/* Returns whether the last operation of l has not ended yet. */
bool lg_nccl_under_way(lg_link *l);
/* Returns whether l was given up, and then records the cause in q. */
bool lg_nccl_lost(lg_queue *q, const lg_link *l);
/* Waits, within the time limit, for the end of a non-blocking NCCL call that returned s; returns its final result. */
ncclResult_t lg_nccl_finish(const lg_link *l, ncclResult_t s);
/* Completes a NCCL call that returned s. On failure gives l up with NCCL's message, also in q, and returns false. */
bool lg_nccl_done(lg_queue *q, lg_link *l, const char *call, ncclResult_t s);
/* Checks once whether an operation that began at `start` has failed or exceeded the time limit. If so, gives l up,
 * records the cause in q and returns false. */
bool lg_nccl_goes_on(lg_queue *q, lg_link *l, double start);
/* Gives l up and ends its operations; the formatted message is the cause. */
void lg_nccl_give_up(lg_queue *q, lg_link *l, const char *format, ...);
#else

/* Without NCCL there are no links to wait for. */
template <typename... A> static inline bool lg_cuda_links_before(lg_queue *, A...)
{
        return true;
}
static inline void lg_cuda_links_close(lg_queue *)
{
}
#endif

#endif
