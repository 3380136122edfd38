/* parallel.h - what data_parallel.c and buckets.c share: gradients that are averaged over the ranks of a group, many at
 * a time. Private to these two. */
#ifndef LG_PARALLEL_H
#define LG_PARALLEL_H

#include "group/group.h"
#include "nn/nn.h"

/* Gradients, or buffers, of one dtype and device that go together. */
typedef struct lg__bucket {
        int64_t first, count; /* in the plan's order */
        int64_t elements, waiting;
        lg__device *device;
        lg_dtype dtype;
        bool buffers, begun;
        bool linked;               /* it goes from device to device */
        char name[LG__JOINT_NAME]; /* of the first of them */
        lg_tensor *flat;           /* owned, while it is on its way: the values one behind the other */
        lg_tensor *host;           /* the same in the host's memory; NULL: flat goes as it is */
        lg__errand errand;
        uint64_t mark; /* of the link */
} lg__bucket;

/* Which tensors go together, and in which order. Tensors have numbers: parameters come first, then buffers. */
typedef struct lg__plan {
        size_t bytes; /* of this record with its arrays */
        int64_t params, count;
        int64_t ordered; /* parameters that need a gradient: those in `order`, with all buffers behind them */
        int64_t arrived; /* of this backward's */
        int64_t gradients, buckets, next; /* buckets of gradients, all buckets, the next one to begin */
        bool settled;                     /* the order is that of the gradients on rank 0 */
        lg_tensor **tensors;
        int64_t *order, *arrival, *bucket_of; /* numbers; numbers as they arrive; by number, -1: needs no gradient */
        lg__bucket *bucket;
} lg__plan;

typedef struct lg__parallel {
        lg__watcher watcher;
        lg_module *module;
        lg__weak group;
        int64_t bucket_bytes;
        double weight;
        bool silent;       /* gradients stay this rank's */
        bool keep_buffers; /* buffers stay this rank's */
        lg__plan *plan;
} lg__parallel;

/* Makes a plan, or keeps the one there is if it still fits; NULL: no memory. */
lg__plan *lg__parallel_plan(lg__parallel *p);
void lg__parallel_forget(lg__parallel *p);
/* Cuts the order of the plan into buckets. */
void lg__parallel_cut(lg__parallel *p, lg__plan *plan);
/* What the plan needs before a backward. */
void lg__plan_reset(lg__plan *plan);
/* A bucket sets off. */
bool lg__bucket_begin(lg__parallel *p, lg_group *g, lg__bucket *b);
/* Waits for a bucket that has begun, and if all is well puts its values where they belong; false: an error is set. */
bool lg__bucket_end(lg__parallel *p, lg_group *g, lg__bucket *b, bool ok);

#endif
