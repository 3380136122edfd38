/* nccl.h - exchanges with devices of other processes by NCCL: the library, loaded when it is first needed, and waits
 * that end whatever other processes do. */
#ifndef LG_CUDA_NCCL_H
#define LG_CUDA_NCCL_H

#include "cuda.h"

extern "C" const lg_device_links lg_cuda_links;

/* Before the host waits for what a stream holds now, for an event, or for all that the device does: returns when no
 * operation of a link is before its end. False: a link was given up, as noted in q. Without such operations under way
 * it calls nothing and returns at once. */
bool lg_cuda_links_before(lg_queue *q, cudaStream_t s);
bool lg_cuda_links_before_event(lg_queue *q, cudaEvent_t e);
bool lg_cuda_links_before_all(lg_queue *q);
/* Ends the links that are left. */
void lg_cuda_links_close(lg_queue *q);

#if __has_include(<nccl.h>)
#define LG_NCCL 1
#include <nccl.h>

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
#endif

#endif
