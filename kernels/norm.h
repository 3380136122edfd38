/* norm.h - the arguments of normalisation and dropout; part of kernels.h.
 *
 * x, y and their gradients are of `dtype`. Weights, biases and their gradients are f64 for f64, else f32. Statistics
 * are f64 always: a mean that is large beside the deviation would lose it in f32.
 */
#ifndef LG_KERNELS_NORM_H
#define LG_KERNELS_NORM_H

#include "types.h"

/* Over x (rows, channels), contiguous: mean[c] and var[c] (divided by rows) of each column;
 * y = (x - mean[c]) / sqrt(var[c] + eps) * w[c] + b[c]. w, b: NULL for 1 and 0. No rows: mean 0, var NaN. */
typedef struct lg_batch_norm_args {
        lg_dtype dtype;
        int64_t rows, channels;
        double eps;
        const void *x, *w, *b;
        void *y;
        double *mean, *var;
} lg_batch_norm_args;

/* With r[c] = 1 / sqrt(var[c] + eps), n = (x - mean[c]) r[c] and sums over the rows: db[c] = sum(g), dw[c] = sum(g n),
 * dx = w[c] r[c] (g - db[c] / rows - n dw[c] / rows). NULL: not wanted. */
typedef struct lg_batch_norm_vjp_args {
        lg_dtype dtype;
        int64_t rows, channels;
        double eps;
        const void *x, *w, *g;
        const double *mean, *var;
        void *dx, *dw, *db;
} lg_batch_norm_vjp_args;

/* r[i] += weight * (factor * v[i] - r[i]); r of any float dtype, `stride` elements apart. */
typedef struct lg_running_args {
        lg_dtype dtype;
        int64_t n, stride;
        void *r;
        const double *v;
        double weight, factor;
} lg_running_args;

/* x is (outer, groups, channels, inner), contiguous, each (outer, groups) a row of n = channels * inner elements;
 * mean and rstd[row] = 1 / sqrt(var + eps), var divided by n; y = (x - mean) rstd w[group, channel] + b[group,
 * channel]. rms: the mean is taken as 0. w, b: NULL for 1 and 0. */
typedef struct lg_layer_norm_args {
        lg_dtype dtype;
        int64_t outer, groups, channels, inner;
        double eps;
        bool rms;
        const void *x, *w, *b;
        void *y;
        double *mean, *rstd;
} lg_layer_norm_args;

/* With t = (x - mean) rstd and means over a row: db = sum(g), dw = sum(g t) over outer and inner,
 * dx = rstd (g w - mean(g w) - t mean(g w t)), for rms without mean(g w). dx, dw, db NULL: not wanted. */
typedef struct lg_layer_norm_vjp_args {
        lg_dtype dtype;
        int64_t outer, groups, channels, inner;
        bool rms;
        const void *x, *w, *g;
        const double *mean, *rstd;
        void *dx, *dw, *db;
} lg_layer_norm_vjp_args;

/* y[i] = u[i] >= p ? x[i] / (1 - p) : 0 over a common shape, any strides; i counts in row-major order and u[i] is the
 * f32 uniform of word i % 4 of Philox's block offset + i / 4 (philox.h), whatever the dtype. Float dtypes. */
typedef struct lg_dropout_args {
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        lg_dtype dtype;
        const void *x;
        int64_t x_strides[LG_MAX_DIMS];
        void *y;
        int64_t y_strides[LG_MAX_DIMS];
        double p;
        uint64_t seed, offset;
} lg_dropout_args;

#endif
