/* links.h - collective operations between devices of several processes, without host memory. Part of kernels.h. */
#ifndef LG_LINKS_H
#define LG_LINKS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lg_queue;

/* One rank's end of the connections between the devices of ranks 0, 1, ... (one device per process). Operations are
 * collective: all ranks must queue them in the same order with the same arguments, or they may wait for ever. */
typedef struct lg_link lg_link;

#define LG_LINK_ID 128 /* bytes of the identifier by which the processes of a link find each other */

typedef enum lg_link_what {
        LG_LINK_ALL_REDUCE,
        LG_LINK_BROADCAST,
        LG_LINK_ALL_GATHER,
        LG_LINK_REDUCE_SCATTER,
        LG_LINK_SEND,
        LG_LINK_RECEIVE
} lg_link_what;

typedef enum lg_link_reduction { LG_LINK_SUM, LG_LINK_MEAN, LG_LINK_MAX } lg_link_reduction;

/* Arguments of one operation. count is the number of elements of `in` (for receive: of `out`). `out` has size * count
 * elements for all_gather, count / size for reduce_scatter, else count. Both are contiguous; out may equal in where
 * both have the same number of elements. send has no out, receive no in. The order of additions is unspecified, but
 * every rank gets the same bits; integers wrap around, a sum of bools is true if any is true, a mean needs a float
 * dtype, and a maximum may ignore NaN. */
typedef struct lg_link_args {
        lg_link_what what;
        lg_dtype dtype;
        lg_link_reduction reduction; /* reduction for all_reduce and reduce_scatter */
        int rank;                    /* root of a broadcast; for send and receive the peer's rank */
        int64_t count;
        const void *in;
        void *out;
} lg_link_args;

/* Functions for links. A function that returns false or NULL has recorded the reason in q, with status LG_LOST if
 * another process is the cause. The host waits for other ranks in join(), leave() and, briefly, in a link's first
 * operations, at most the time limit `seconds` of join(). */
typedef struct lg_device_links {
        /* Writes the library's name and version to ret. Or returns false and writes why no library is available; then
         * the other functions may be NULL. */
        bool (*version)(char *ret, size_t size);
        /* Writes an identifier of the device to ret that is unique on this machine and equal in all processes. */
        bool (*place)(struct lg_queue *q, char *ret, size_t size);
        /* Makes a new identifier of LG_LINK_ID bytes for a link. One rank calls it and distributes the bytes to all. */
        bool (*id)(struct lg_queue *q, uint8_t *ret);
        /* Creates a link. Collective. No two ranks may use the same device. seconds: the time limit of this link. */
        lg_link *(*join)(struct lg_queue *q, const uint8_t *id, int rank, int size, double seconds);
        /* Queues an operation to run after the work queued so far, concurrently with later work. *mark > 0 names it. */
        bool (*run)(struct lg_queue *q, lg_link *link, const lg_link_args *a, uint64_t *mark);
        /* Makes work queued later wait for operation `mark`; the host does not wait. */
        bool (*wait)(struct lg_queue *q, lg_link *link, uint64_t mark);
        /* Returns why the link was abandoned and does nothing any more, or NULL if it works. Whenever the host waits
         * for the device, it waits for a link operation no longer than the time limit. Then the link is abandoned, the
         * device's error becomes LG_DEVICE_LOST before any work queued after the operation runs, and the wait fails
         * (LG_LOST). */
        const char *(*why)(const lg_link *link);
        /* Closes a link and frees it. Collective. broken: some ranks may be missing; running operations are then
         * abandoned after the rest of their time limit. */
        void (*leave)(struct lg_queue *q, lg_link *link, bool broken);
} lg_device_links;

#ifdef __cplusplus
}
#endif
#endif
