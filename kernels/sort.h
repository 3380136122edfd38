/* sort.h - arguments of sorting, searching, running extremes and picking elements by index. Part of kernels.h. */
#ifndef LG_KERNELS_SORT_H
#define LG_KERNELS_SORT_H

#include "types.h"

/* Sorts each line along the middle dimension n of (outer, n, inner) and writes its first k elements: values[o, j, i] =
 * x[o, indices[o, j, i], i] for j < k <= n, ascending or descending. NaN is the greatest, -0 equals 0, and of equal
 * elements the one with the lower index comes first. Contiguous; any dtype. */
typedef struct lg_sort_args {
        lg_dtype dtype;
        int64_t outer, n, inner, k;
        bool descending;
        const void *x;
        void *values;
        int64_t *indices;
} lg_sort_args;

/* pick: y[o, j, i] = x[o, indices[o, j, i], i]; x is (outer, n, inner), indices and y are (outer, k, inner).
 * pick_grad: y[o, indices[o, j, i], i] = x[o, j, i] and 0 elsewhere; x and indices are (outer, k, inner), y is (outer,
 * n, inner). The indices of a line must be distinct and in [0, n). Contiguous; any dtype. */
typedef struct lg_pick_args {
        lg_dtype dtype;
        int64_t outer, n, inner, k;
        const void *x;
        const int64_t *indices;
        void *y;
} lg_pick_args;

/* cummax: values[o, j, i] is the greatest (`min`: the smallest) of x[o, 0 ... j, i], and indices its last place among
 * them. NaN is chosen over every number. Contiguous (outer, n, inner); any dtype. */
typedef struct lg_cummax_args {
        lg_dtype dtype;
        int64_t outer, n, inner;
        bool min;
        const void *x;
        void *values;
        int64_t *indices;
} lg_cummax_args;

/* searchsorted: places[l, j] is the number of elements of the line sorted[l] before which values[l, j] does not belong:
 * the leading ones that are less than it or, if `right`, not greater. NaN is greater than every number and equals NaN.
 * sorted is (lines, n), values and places are (lines, count). Contiguous; f32, f64, f16, bf16 and i64. */
typedef struct lg_searchsorted_args {
        lg_dtype dtype;
        int64_t lines, n, count;
        bool right;
        const void *sorted, *values;
        int64_t *places;
} lg_searchsorted_args;

#endif
