/* ops.h - ops that see more than one element at a time: reductions, products, soft-max, losses, joining. */
#ifndef LG_OPS_H
#define LG_OPS_H

#include "grad/base.h"

LG_BEGIN

/* lg_sum(x), lg_sum(x, .dims = LG_DIMS(1), .keep_dim = true) */
typedef struct lg_reduce_options {
        lg_tensor *x LG_DEFAULT;
        lg_dims dims LG_DEFAULT;      /* all */
        bool keep_dim LG_DEFAULT;     /* keep reduced dimensions with size 1 */
        double correction LG_DEFAULT; /* var: 1; LG_ZERO divides by the count */
} lg_reduce_options;
/* Sum; f32 accumulation or better; integers and bool give i64. */
#define lg_sum(...) lg_sum_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* sum / count; float dtypes; of nothing: NaN. */
#define lg_mean(...) lg_mean_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* Greatest and smallest; the gradient is shared evenly by equals (PyTorch's amax). Of nothing: LG_ERR_SHAPE. */
#define lg_amax(...) lg_amax_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
#define lg_amin(...) lg_amin_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* Index (i64) of the greatest within the reduced dimensions, row-major; the first of equals; no gradient. */
#define lg_argmax(...) lg_argmax_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* sum((x - mean)^2) / max(0, count - correction); float dtypes. */
#define lg_var(...) lg_var_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
LG_API lg_tensor *lg_sum_(lg_reduce_options o);
LG_API lg_tensor *lg_mean_(lg_reduce_options o);
LG_API lg_tensor *lg_amax_(lg_reduce_options o);
LG_API lg_tensor *lg_amin_(lg_reduce_options o);
LG_API lg_tensor *lg_argmax_(lg_reduce_options o);
LG_API lg_tensor *lg_var_(lg_reduce_options o);

/* Matrix product, PyTorch's matmul: (m, k) (k, n) -> (m, n); dimensions before the last two are a batch and broadcast;
 * a 1-d a is a row, a 1-d b a column, and that dimension goes from the result. Float dtypes. */
LG_API lg_tensor *lg_matmul(lg_tensor *a, lg_tensor *b);
/* x w^T + b: x (..., in), w (out, in), b (out) or NULL -> (..., out). */
LG_API lg_tensor *lg_linear(lg_tensor *x, lg_tensor *w, lg_tensor *b);

/* e^x / sum(e^x) over one dimension, and its logarithm; safe from overflow. */
LG_API lg_tensor *lg_softmax(lg_tensor *x, int dim);
LG_API lg_tensor *lg_log_softmax(lg_tensor *x, int dim);

/* How a loss of many elements becomes one: lg_reduction in types.h, LG_MEAN by default. */
typedef struct lg_cross_entropy_options {
        lg_tensor *target LG_DEFAULT;
        lg_reduction reduction LG_DEFAULT;
        int64_t ignore_index LG_DEFAULT;   /* -100; to ignore class 0 set ignore_zero */
        double label_smoothing LG_DEFAULT; /* 0; in [0, 1] */
        bool ignore_zero LG_DEFAULT;
} lg_cross_entropy_options;
/* -log softmax(x)[target]: x (N, C, ...) scores or (C), target (N, ...) i64 or () class indices; rows whose target is
 * ignore_index do not count. A target outside [0, C) is told at the next read or wait. */
#define lg_cross_entropy(x, ...) lg_cross_entropy_((x), LG_INIT(lg_cross_entropy_options){.target = __VA_ARGS__})
LG_API lg_tensor *lg_cross_entropy_(lg_tensor *x, lg_cross_entropy_options o);
typedef struct lg_loss_options {
        lg_tensor *target LG_DEFAULT;
        lg_reduction reduction LG_DEFAULT;
} lg_loss_options;
/* (x - target)^2; x and target of one shape. */
#define lg_mse(x, ...) lg_mse_((x), LG_INIT(lg_loss_options){.target = __VA_ARGS__})
LG_API lg_tensor *lg_mse_(lg_tensor *x, lg_loss_options o);

/* Running sums along a dimension: y[i] = x[0] + ... + x[i]; integers and bool give i64. */
LG_API lg_tensor *lg_cumsum(lg_tensor *x, int dim);

/* The tensors of the list joined along a dimension; all other sizes are equal; dtypes are promoted. */
LG_API lg_tensor *lg_cat(lg_list list, int dim);

LG_END_C
#endif
