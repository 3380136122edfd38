/* nccl.h - exchanges with devices of other processes by NCCL: the library, loaded when it is first needed, and waits
 * that end whatever other processes do. */
#ifndef LG_CUDA_NCCL_H
#define LG_CUDA_NCCL_H

#include "cuda.h"

extern "C" const lg_device_links lg_cuda_links;

#if __has_include(<nccl.h>)
#define LG_NCCL 1
#include <nccl.h>

/* Before the host waits for what a stream holds now, for an event, or for all that the device does: returns when no
 * operation of a link is before its end. False: a link was given up, as noted in q. Without such operations under way
 * it calls nothing and returns at once. */
bool lg_cuda_links_before(lg_queue *q, cudaStream_t s);
bool lg_cuda_links_before(lg_queue *q, cudaEvent_t e);
bool lg_cuda_links_before(lg_queue *q);
/* Ends the links that are left. */
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
        char reason[200]; /* why it is not, in words */
        int number;       /* 22709: 2.27.9; 0: no library at all */
#define MEMBER(name, function) decltype(&::function) name;
        LG_NCCL_FUNCTIONS(MEMBER)
#undef MEMBER
} lg_nccl_library;

const lg_nccl_library *lg_nccl_find(void);

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

/* The first of a queue's links. */
lg_link *lg_nccl_links(lg_queue *q);
/* Seconds of a clock, and a pause in a wait that has begun at `start`. */
double lg_nccl_now(void);
void lg_nccl_pause(double start);
/* Whether an operation of a link has not ended yet. */
bool lg_nccl_under_way(lg_link *l);
/* Whether the link was given up, as is noted in q then. */
bool lg_nccl_lost(lg_queue *q, const lg_link *l);
/* The end of a call that may go on by itself, within the time limit. */
ncclResult_t lg_nccl_finish(const lg_link *l, ncclResult_t s);
/* After a call of NCCL. False: the link was given up with NCCL's words, as noted in q. */
bool lg_nccl_done(lg_queue *q, lg_link *l, const char *call, ncclResult_t s);
/* One look at an operation under way. False: the link was given up. */
bool lg_nccl_goes_on(lg_queue *q, lg_link *l, double start);
/* Gives a link up; the words are why. */
void lg_nccl_give_up(lg_queue *q, lg_link *l, const char *format, ...);
#else

/* Without NCCL there are no links. */
template <typename... A> static inline bool lg_cuda_links_before(lg_queue *, A...)
{
        return true;
}
static inline void lg_cuda_links_close(lg_queue *)
{
}
#endif

#endif
