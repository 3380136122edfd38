/* parallel.h - gradients averaged over the ranks of a group, in buckets: the records and functions that data_parallel.c
 * and buckets.c share. Private to these two. */
#ifndef LG_PARALLEL_H
#define LG_PARALLEL_H

#include "group/group.h"
#include "nn/nn.h"

/* A set of gradients, or of buffers, of one dtype and device that one collective exchanges: its members. */
typedef struct lg__bucket {
        int64_t first, count;      /* the members are the entries [first, first + count) of the plan's `order` */
        int64_t elements, waiting; /* elements: of all members; waiting: number of gradients that are not complete */
        lg__device *device;
        lg_dtype dtype;
        bool buffers, begun;
        char name[LG__COLLECTIVE_NAME]; /* path of the first member */
        lg_tensor *flat;                /* the values of all members; owned, while the exchange runs */
        lg__request request;
} lg__bucket;

/* The division of a module's tensors into buckets. Tensors are numbered, parameters first, then buffers. */
typedef struct lg__plan {
        size_t bytes; /* of this record and its arrays */
        int64_t params, count;
        int64_t ordered; /* number of parameters that require grad: they come first in `order`, before all buffers */
        int64_t arrived; /* number of gradients that are complete in this backward */
        int64_t gradients, buckets, next; /* number of buckets of gradients, of all buckets; the next bucket to start */
        bool order_known;                 /* `order` is the order in which gradients arrived on rank 0 */
        lg_tensor **tensors;
        int64_t *order, *arrival, *bucket_of; /* order, arrival: tensor numbers, by bucket and as gradients arrive;
                                                 bucket_of: by number; -1: no gradient needed */
        lg__bucket *bucket;
} lg__plan;

typedef struct lg__parallel {
        lg__watcher watcher;
        lg_module *module;
        lg__weak group;
        int64_t bucket_bytes;
        double weight;
        int64_t plans;     /* number of plans and of their orders so far */
        bool silent;       /* gradients are not exchanged */
        bool keep_buffers; /* buffers are not copied from rank 0 */
        lg__plan *plan;
} lg__parallel;

/* Returns the plan, rebuilt if the tensors of the module have changed; NULL with an error. */
lg__plan *lg__parallel_plan(lg__parallel *p);
void lg__parallel_forget(lg__parallel *p);
/* Divides the tensors into buckets, in the order of the plan. */
void lg__parallel_cut(lg__parallel *p);
/* Starts the collective of bucket b. Returns false with an error. */
bool lg__bucket_begin(lg__parallel *p, lg_group *g, lg__bucket *b);
/* Waits for the collective of b, if it was started, and writes its result to the members of b if `ok` (no error so
 * far). Returns false if `ok` is false or with an error. */
bool lg__bucket_end(lg__parallel *p, lg_group *g, lg__bucket *b, bool ok);

#endif
