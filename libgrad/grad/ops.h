/* ops.h - ops that see more than one element at a time: reductions, products, soft-max. */
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

/* Running sums along a dimension: y[i] = x[0] + ... + x[i]; integers and bool give i64. */
LG_API lg_tensor *lg_cumsum(lg_tensor *x, int dim);

LG_END_C
#endif
