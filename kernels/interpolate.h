/* interpolate.h - arguments of resample and sample. Part of kernels.h. */
#ifndef LG_KERNELS_INTERPOLATE_H
#define LG_KERNELS_INTERPOLATE_H

#include "types.h"

/* Table of an axis that is resampled from `in` to `out` elements: element i is the sum over t < taps of
 * weight[t * out + i] times element index[t * out + i]. A weight of 0 marks a tap without meaning, whose element does
 * not count even if it is infinite. `index` is NULL for an axis that stays as it is; then in equals out. The tables are
 * in the memory of the device; weights are f64 if the kernel's dtype is, else f32. */
typedef struct lg_resample_axis {
        int64_t in, out, taps;
        const int32_t *index;
        const void *weight;
} lg_resample_axis;

/* Resamples x (outer, h.in, w.in, inner) along h and w to y (outer, h.out, w.out, inner), contiguous, of a float dtype;
 * 16-bit floats are summed in f32. */
typedef struct lg_resample_args {
        lg_dtype dtype;
        int64_t outer, inner;
        lg_resample_axis h, w;
        const void *x;
        void *y;
} lg_resample_args;

typedef enum lg_sample_kind { LG_SAMPLE, LG_SAMPLE_X_GRAD, LG_SAMPLE_WEIGHT_GRAD } lg_sample_kind;
/* Weighted elements of x (n, channels, size) at points that all channels share; y (n, channels, points); index and
 * weight (n, taps, points). With i = index[n, t, p]; taps whose i is outside [0, size) do not count:
 *   SAMPLE       y[n, c, p] = sum over t of weight[n, t, p] x[n, c, i]
 *   X_GRAD       x = 0, then x[n, c, i] += weight[n, t, p] y[n, c, p] for all p and t
 *   WEIGHT_GRAD  weight[n, t, p] = sum over c of x[n, c, i] y[n, c, p], or 0
 * All contiguous; x and y have a float dtype and weights are f64 if it is, else f32; sums are in the weights' dtype. */
typedef struct lg_sample_args {
        lg_sample_kind kind;
        lg_dtype dtype;
        int64_t n, channels, size, points, taps;
        const int32_t *index;
        void *x, *weight, *y;
} lg_sample_args;

#endif
