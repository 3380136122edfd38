/* norm.h - arguments of batch norm, layer norm and dropout. Part of kernels.h.
 *
 * x, y and their gradients have the dtype `dtype`. Weights, biases and their gradients are f64 if `dtype` is f64, else
 * f32. Statistics are always f64: in f32, a mean that is large compared with the deviation would lose its digits. */
#ifndef LG_KERNELS_NORM_H
#define LG_KERNELS_NORM_H

#include "types.h"

/* Running statistic: elements of any float dtype, `stride` elements from each other, the first at `at`; NULL: none. */
typedef struct lg_running_stat {
        lg_dtype dtype;
        int64_t stride;
        void *at;
} lg_running_stat;

/* Batch norm over x (rows, channels), contiguous:
 *   y = relu((x - mean[c]) / sqrt(var[c] + eps) * w[c] + b[c] + z), ReLU only if `relu` (NaN stays NaN).
 * mean and var (channels) are outputs. If `trains`, they are those of each column of x (var divided by rows), and each
 * running statistic that is given is updated: r += momentum * (mean or var * rows / (rows - 1) - r). Otherwise they are
 * copied from the running statistics. w and b may be NULL for 1 and 0; z has x's shape and dtype or is NULL for 0.
 * Without rows nothing is updated, and `trains` gives mean 0 and var NaN. */
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

/* Derivative of batch norm. With r[c] = 1 / sqrt(var[c] + eps), n = (x - mean[c]) r[c], G = g where y > 0, else 0 (y
 * NULL: G = g), and sums over the rows: dz = G, db[c] = sum(G), dw[c] = sum(G n), dx = w[c] r[c] (G - db[c] / rows - n
 * dw[c] / rows), or dx = w[c] r[c] G unless `trains`. Outputs that are not needed are NULL; dz requires y. */
typedef struct lg_batch_norm_vjp_args {
        lg_dtype dtype;
        int64_t rows, channels;
        double eps;
        bool trains;
        const void *x, *w, *g, *y;
        const double *mean, *var;
        void *dx, *dw, *db, *dz;
} lg_batch_norm_vjp_args;

/* Layer, group, instance and, with `rms`, RMS norm. x is (outer, groups, channels, inner), contiguous; each (outer,
 * group) is a row of n = channels * inner elements. y = (x - mean) rstd w[group, channel] + b[group, channel]; mean and
 * rstd = 1 / sqrt(var + eps) are outputs per row, var is divided by n; `rms` uses mean 0. w, b: NULL for 1 and 0. */
typedef struct lg_layer_norm_args {
        lg_dtype dtype;
        int64_t outer, groups, channels, inner;
        double eps;
        bool rms;
        const void *x, *w, *b;
        void *y;
        double *mean, *rstd;
} lg_layer_norm_args;

/* Derivative of layer norm. With t = (x - mean) rstd and means over a row: db = sum(g) and dw = sum(g t) over outer and
 * inner, dx = rstd (g w - mean(g w) - t mean(g w t)), for `rms` without mean(g w). dx, dw and db may be NULL. */
typedef struct lg_layer_norm_vjp_args {
        lg_dtype dtype;
        int64_t outer, groups, channels, inner;
        bool rms;
        const void *x, *w, *g;
        const double *mean, *rstd;
        void *dx, *dw, *db;
} lg_layer_norm_vjp_args;

/* Dropout: y[i] = u[i] >= p ? x[i] / (1 - p) : 0 over a common shape with any strides. i counts in row-major order;
 * u[i] is the 24-bit uniform of word i % 4 of Philox block `offset` + i / 4 (philox.h), for all float dtypes. */
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
        const uint64_t *moved; /* two numbers in device memory that are added to seed and offset; NULL: none */
} lg_dropout_args;

#endif
