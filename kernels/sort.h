/* sort.h - the arguments of sorting and choosing; part of kernels.h. */
#ifndef LG_KERNELS_SORT_H
#define LG_KERNELS_SORT_H

#include "types.h"

/* The first k of the n elements of each line along the middle dimension of (outer, n, inner), in order:
 * values[o, j, i] = x[o, indices[o, j, i], i] for j < k; ascending or descending. NaN is the greatest, -0 equals 0,
 * the lower index goes before an equal. Contiguous; any dtype; k <= n. */
typedef struct lg_sort_args {
        lg_dtype dtype;
        int64_t outer, n, inner, k;
        bool descending;
        const void *x;
        void *values;
        int64_t *indices;
} lg_sort_args;

/* pick: y[o, j, i] = x[o, indices[o, j, i], i]; x is (outer, n, inner), indices and y are (outer, k, inner).
 * pick_grad: y[o, indices[o, j, i], i] = x[o, j, i] and 0 elsewhere; x and indices are (outer, k, inner), y is
 * (outer, n, inner). The indices of a line lie in [0, n) and no two are equal. Contiguous; any dtype. */
typedef struct lg_pick_args {
        lg_dtype dtype;
        int64_t outer, n, inner, k;
        const void *x;
        const int64_t *indices;
        void *y;
} lg_pick_args;

#endif
