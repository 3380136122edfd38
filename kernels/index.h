/* index.h - arguments of gather, scatter and nonzero. Part of kernels.h. */
#ifndef LG_KERNELS_INDEX_H
#define LG_KERNELS_INDEX_H

#include "types.h"

/* Modes of scatter, by which t = to[q] and f = from[p] are joined. */
typedef enum lg_put_mode {
        LG_PUT_SUM, /* t + f; any dtype but bool; f16 and bf16 accumulate in f32 */
        LG_PUT_SET, /* f; any dtype */
        LG_PUT_MAX, /* the greater one, NaN if one is NaN; any dtype */
        LG_PUT_MIN  /* the smaller one, NaN if one is NaN; any dtype */
} lg_put_mode;

/* Gathers or puts elements: for each position p of `shape`, with q equal to p except that q[dim] = index[p]:
 *   gather:   to[p] = from[q]
 *   scatter:  to[q] = to[q] and from[p], combined as `mode` says
 * `index` and `from` may have any strides (0 where an index is constant along a dimension). `to` is dense: its to_count
 * elements begin at the pointer. scatter changes each element in the order of p[dim], whatever the number of threads.
 * An index outside [0, limit) is recorded as a device error with code `origin`; then gather writes zeros and scatter
 * puts nothing. */
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
        lg_put_mode mode; /* scatter only */
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
