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
/* Index (i64) of the greatest, the smallest within the reduced dimensions, row-major; the first of equals, and the
 * first NaN before all; no gradient. */
#define lg_argmax(...) lg_argmax_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
#define lg_argmin(...) lg_argmin_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* sum((x - mean)^2) / max(0, count - correction); float dtypes. */
#define lg_var(...) lg_var_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* sqrt(var); the gradient where it is 0 is 0. */
#define lg_std(...) lg_std_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* Product; of nothing 1; integers and bool give i64. The gradient is right where elements are 0. */
#define lg_prod(...) lg_prod_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* log(sum(e^x)), safe from overflow and for elements of -inf and inf; float dtypes; of nothing: -inf. */
#define lg_logsumexp(...) lg_logsumexp_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
/* Is any, is each element not zero (NaN is not)? Any dtype in, bool out; of nothing false and true. */
#define lg_any(...) lg_any_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
#define lg_all(...) lg_all_(LG_INIT(lg_reduce_options){.x = __VA_ARGS__})
LG_API lg_tensor *lg_sum_(lg_reduce_options o);
LG_API lg_tensor *lg_mean_(lg_reduce_options o);
LG_API lg_tensor *lg_amax_(lg_reduce_options o);
LG_API lg_tensor *lg_amin_(lg_reduce_options o);
LG_API lg_tensor *lg_argmax_(lg_reduce_options o);
LG_API lg_tensor *lg_argmin_(lg_reduce_options o);
LG_API lg_tensor *lg_var_(lg_reduce_options o);
LG_API lg_tensor *lg_std_(lg_reduce_options o);
LG_API lg_tensor *lg_prod_(lg_reduce_options o);
LG_API lg_tensor *lg_logsumexp_(lg_reduce_options o);
LG_API lg_tensor *lg_any_(lg_reduce_options o);
LG_API lg_tensor *lg_all_(lg_reduce_options o);
typedef struct lg_norm_options {
        double p LG_DEFAULT;
        lg_dims dims LG_DEFAULT;  /* all */
        bool keep_dim LG_DEFAULT; /* keep reduced dimensions with size 1 */
} lg_norm_options;
/* sum(|x|^p)^(1/p), PyTorch's linalg.vector_norm; p INFINITY: the greatest |x|; p 0: the number of elements that are
 * not zero; p < 0 is LG_ERR_ARGUMENT. Float dtypes. Where the norm is 0 so is the gradient. lg_norm(x, 2) */
#define lg_norm(x, ...) lg_norm_((x), LG_INIT(lg_norm_options){.p = (double)__VA_ARGS__})
LG_API lg_tensor *lg_norm_(lg_tensor *x, lg_norm_options o);

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
/* Running products: y[i] = x[0] ... x[i]; integers and bool give i64. */
LG_API lg_tensor *lg_cumprod(lg_tensor *x, int dim);

LG_END_C
#endif
