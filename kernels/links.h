/* links.h - what devices of several processes do together, without the memory of the host: a part of kernels.h. It
 * knows nothing of libgrad. */
#ifndef LG_LINKS_H
#define LG_LINKS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lg_queue;

/* One end of the connections between devices, one of each process: ranks 0, 1, ... Operations are those of all ranks,
 * which must ask for them in the same order with the same arguments; who differs may wait for ever. */
typedef struct lg_link lg_link;

#define LG_LINK_ID 128 /* bytes of the name by which processes find each other */

typedef enum lg_link_what {
        LG_LINK_ALL_REDUCE,
        LG_LINK_BROADCAST,
        LG_LINK_ALL_GATHER,
        LG_LINK_REDUCE_SCATTER,
        LG_LINK_SEND,
        LG_LINK_RECEIVE
} lg_link_what;

typedef enum lg_link_reduction { LG_LINK_SUM, LG_LINK_MEAN, LG_LINK_MAX } lg_link_reduction;

/* count: elements of what a rank gives, or receives; all_gather gives `size` times as many to out, reduce_scatter the
 * size-th part. Both contiguous; out may be in where both have as many elements. send has no out, receive no in. Sums
 * are added in any order, each element the same bits on all ranks; integers wrap around, bool is true where any is; a
 * mean is of floats; a maximum may leave NaN out. */
typedef struct lg_link_args {
        lg_link_what what;
        lg_dtype dtype;
        lg_link_reduction reduction; /* of all_reduce and reduce_scatter */
        int rank;                    /* the root of a broadcast; of send and receive the other one */
        int64_t count;
        const void *in;
        void *out;
} lg_link_args;

/* Functions that return false or NULL have noted why in q: LG_LOST if other processes have to do with it. The host
 * waits for others in join(), leave() and, briefly, in a link's first operations; never longer than `seconds`. */
typedef struct lg_device_links {
        /* The library's name and version; or false, and why there is none: the other functions may be NULL then. */
        bool (*version)(char *ret, size_t size);
        /* The device, in words that no other one on this machine has, the same in all processes. */
        bool (*place)(struct lg_queue *q, char *ret, size_t size);
        /* A new name, LG_LINK_ID bytes, for all ranks of one link: one of them asks and tells the others. */
        bool (*id)(struct lg_queue *q, uint8_t *ret);
        /* All ranks call it. No two of them may be on the same device. seconds: the time limit of this link. */
        lg_link *(*join)(struct lg_queue *q, const uint8_t *id, int rank, int size, double seconds);
        /* Queues an operation beside the queue's work, but after what the queue holds now; *mark > 0 names it. */
        bool (*run)(struct lg_queue *q, lg_link *link, const lg_link_args *a, uint64_t *mark);
        /* What the queue gets later comes after that operation; the host does not wait. */
        bool (*wait)(struct lg_queue *q, lg_link *link, uint64_t mark);
        /* Why the link was given up, and does nothing any more; NULL: it is whole. Wherever the host waits for the
         * device, it waits for operations of links within their time limits only: then the link is given up, the
         * device's error is LG_DEVICE_LOST before anything behind the operation runs, and the wait fails with LG_LOST.
         */
        const char *(*why)(const lg_link *link);
        /* Ends a link and frees it, as all ranks do. broken: not all may be there any more; what is under way has the
         * rest of the time limit, and is given up then. */
        void (*leave)(struct lg_queue *q, lg_link *link, bool broken);
} lg_device_links;

#ifdef __cplusplus
}
#endif
#endif
