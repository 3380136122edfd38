/* index.h - arguments of gather, scatter_add and nonzero. Part of kernels.h. */
#ifndef LG_KERNELS_INDEX_H
#define LG_KERNELS_INDEX_H

#include "types.h"

/* Gathers or adds elements: for each position p of `shape`, with q equal to p except that q[dim] = index[p]:
 *   gather:       to[p] = from[q]
 *   scatter_add:  to[q] += from[p]
 * `index` and `from` may have any strides (0 where an index is constant along a dimension). `to` is dense: its to_count
 * elements begin at the pointer. scatter_add adds to each element in the order of p[dim], whatever the number of
 * threads; it takes all dtypes but bool, and f16 and bf16 accumulate in f32. An index outside [0, limit) is recorded as
 * a device error with code `origin`; then gather writes zeros and scatter_add adds nothing. */
typedef struct lg_gather_args {
        lg_dtype dtype;
        int ndim, dim;
        int64_t shape[LG_MAX_DIMS];
        const int64_t *index;
        int64_t index_strides[LG_MAX_DIMS];
        int64_t limit; /* size of dimension `dim` of the indexed side (q) */
        int origin;    /* error code for a bad index; not LG_DEVICE_OK */
        const void *from;
        int64_t from_strides[LG_MAX_DIMS];
        void *to;
        int64_t to_strides[LG_MAX_DIMS];
        int64_t to_count;
} lg_gather_args;

/* Finds the non-zero elements of x, which is contiguous (NaN is non-zero, -0 is zero). If `places` is NULL, sets
 * starts[k] to their number before chunk k of LG_NONZERO_CHUNK elements, for all chunks and the end. Else, with these
 * starts, writes the coordinates of all non-zero elements to places (count, ndim) in row-major order. Any dtype. */
#define LG_NONZERO_CHUNK 4096
typedef struct lg_nonzero_args {
        lg_dtype dtype;
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        const void *x;
        int64_t *starts, *places;
} lg_nonzero_args;

#endif
