/* norm.h - the arguments of normalisation and dropout; part of kernels.h.
 *
 * x, y and their gradients are of `dtype`. Weights, biases and their gradients are f64 for f64, else f32. Statistics
 * are f64 always: a mean that is large beside the deviation would lose it in f32.
 */
#ifndef LG_KERNELS_NORM_H
#define LG_KERNELS_NORM_H

#include "types.h"

/* A running statistic: `stride` elements apart, of any float dtype; at NULL: none. */
typedef struct lg_running_stat {
        lg_dtype dtype;
        int64_t stride;
        void *at;
} lg_running_stat;

/* Over x (rows, channels), contiguous:
 *   y = relu((x - mean[c]) / sqrt(var[c] + eps) * w[c] + b[c] + z), the ReLU if it is asked for; NaN stays.
 * mean and var are written. trains: they are those of each column, var divided by rows, and running statistics that are
 * given move: r += momentum * (mean or var * rows / (rows - 1) - r). Else they are the running ones. w, b: NULL for 1
 * and 0; z, of x's shape and dtype: NULL for 0. No rows: nothing moves; of `trains` mean is 0 and var NaN. */
typedef struct lg_batch_norm_args {
        lg_dtype dtype;
        int64_t rows, channels;
        double eps, momentum;
        bool trains, relu;
        const void *x, *w, *b, *z;
        void *y;
        double *mean, *var;
        lg_running_stat running_mean, running_var;
} lg_batch_norm_args;

/* With r[c] = 1 / sqrt(var[c] + eps), n = (x - mean[c]) r[c], G = g where y > 0, else 0 (y NULL: G = g), and sums over
 * the rows: dz = G, db[c] = sum(G), dw[c] = sum(G n), dx = w[c] r[c] (G - db[c] / rows - n dw[c] / rows), or w[c] r[c]
 * G unless `trains`. NULL: not wanted; dz only with y. */
typedef struct lg_batch_norm_vjp_args {
        lg_dtype dtype;
        int64_t rows, channels;
        double eps;
        bool trains;
        const void *x, *w, *g, *y;
        const double *mean, *var;
        void *dx, *dw, *db, *dz;
} lg_batch_norm_vjp_args;

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
