/* index.h - the arguments of picking and placing by index, and of finding what to pick; part of kernels.h. */
#ifndef LG_KERNELS_INDEX_H
#define LG_KERNELS_INDEX_H

#include "types.h"

/* For each p of `shape`, and q the same place but for q[dim] = index[p]:
 *   gather:       to[p] = from[q]
 *   scatter_add:  to[q] += from[p]
 * The strides of `index` and `from` are any (an index that does not change along a dimension has stride 0 there); `to`
 * is dense, its to_count elements beginning at the pointer. What is added to one element is added in the order of
 * p[dim], on any number of threads. scatter_add: all dtypes but bool; f16 and bf16 add up in f32. An index outside [0,
 * limit) is noted with `origin`; gather then gives zeros and scatter_add adds nothing. */
typedef struct lg_gather_args {
        lg_dtype dtype;
        int ndim, dim;
        int64_t shape[LG_MAX_DIMS];
        const int64_t *index;
        int64_t index_strides[LG_MAX_DIMS];
        int64_t limit; /* the size of dimension `dim` at q */
        int origin;    /* not LG_DEVICE_OK */
        const void *from;
        int64_t from_strides[LG_MAX_DIMS];
        void *to;
        int64_t to_strides[LG_MAX_DIMS];
        int64_t to_count;
} lg_gather_args;

/* Where x, which is contiguous, is not 0; NaN is not. places NULL: starts[k] = how many such elements come before chunk
 * k of LG_NONZERO_CHUNK elements, up to one chunk behind the last. Else with these starts: places (how many, ndim) are
 * their coordinates in row-major order. Any dtype. */
#define LG_NONZERO_CHUNK 4096
typedef struct lg_nonzero_args {
        lg_dtype dtype;
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        const void *x;
        int64_t *starts, *places;
} lg_nonzero_args;

#endif
