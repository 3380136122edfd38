/* parallel.h - what data_parallel.c and buckets.c share: gradients that are averaged over the ranks of a group in
 * buckets. Private to these two. */
#ifndef LG_PARALLEL_H
#define LG_PARALLEL_H

#include "group/group.h"
#include "nn/nn.h"

/* Gradients, or buffers, of one dtype and device that are exchanged together. */
typedef struct lg__bucket {
        int64_t first, count;      /* in the plan's order */
        int64_t elements, waiting; /* waiting: gradients that are not complete */
        lg__device *device;
        lg_dtype dtype;
        bool buffers, begun;
        char name[LG__COLLECTIVE_NAME]; /* of the first of them */
        lg_tensor *flat;                /* owned, from the beginning to the end: all values */
        lg__request request;
} lg__bucket;

/* The division of a module's tensors into buckets. Tensors have numbers: parameters come first, then buffers. */
typedef struct lg__plan {
        size_t bytes; /* of this record with its arrays */
        int64_t params, count;
        int64_t ordered; /* parameters that require grad: the first ones in `order`, before all buffers */
        int64_t arrived; /* gradients of this backward */
        int64_t gradients, buckets, next; /* buckets of gradients, all buckets, the next one to begin */
        bool settled;                     /* the order is that in which gradients arrived on rank 0 */
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

/* Returns the plan, made anew unless the old one still fits; NULL: no memory. */
lg__plan *lg__parallel_plan(lg__parallel *p);
void lg__parallel_forget(lg__parallel *p);
/* Cuts the order of the plan into buckets. */
void lg__parallel_cut(lg__parallel *p);
/* Begins the exchange of a bucket. */
bool lg__bucket_begin(lg__parallel *p, lg_group *g, lg__bucket *b);
/* Waits for a bucket if it has begun, and writes its values to its members if ok. Returns false with an error. */
bool lg__bucket_end(lg__parallel *p, lg_group *g, lg__bucket *b, bool ok);

#endif
