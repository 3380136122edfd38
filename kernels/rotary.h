/* rotary.h - arguments of rotary. Part of kernels.h. */
#ifndef LG_KERNELS_ROTARY_H
#define LG_KERNELS_ROTARY_H

#include "types.h"

/* Rotates the pairs of the first `dims` elements of each row of x: (a, b) becomes (a cos - b sin, b cos + a sin) or, if
 * `back`, (a cos + b sin, b cos - a sin). The other elements are copied. Pair i is elements 2 i and 2 i + 1 if
 * `interleaved`, else i and i + dims / 2. There is a row for each position of `shape`; rows of x and of the tables are
 * contiguous, and the strides are those between rows. y is row-major. The tables cos and sin, which have the same
 * strides, are f64 if dtype is, else f32. */
typedef struct lg_rotary_args {
        lg_dtype dtype;
        int ndim;
        int64_t shape[LG_MAX_DIMS], x_strides[LG_MAX_DIMS], table_strides[LG_MAX_DIMS];
        int64_t width, dims; /* elements of a row; of these, elements that rotate, an even number */
        bool interleaved, back;
        const void *x, *cos, *sin;
        void *y;
} lg_rotary_args;

#endif
