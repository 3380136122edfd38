/* ops.h - ops that see more than one element at a time: reductions, products, soft-max. */
#ifndef LG_OPS_H
#define LG_OPS_H

#include "grad/base.h"

LG_BEGIN

/* lg_sum(x), lg_sum(x, .dims = LG_DIMS(1), .keep_dim = true) */
typedef struct lg_reduce_options {
        LG_OPTIONS_HEAD
        lg_dims dims LG_DEFAULT;      /* all */
        bool keep_dim LG_DEFAULT;     /* keep reduced dimensions with size 1 */
        double correction LG_DEFAULT; /* var: 1; LG_ZERO divides by the count */
} lg_reduce_options;
/* Sum; f32 accumulation or better; integers and bool give i64. */
#define lg_sum(...) LG_CALL1(lg_sum_with, lg_reduce_options, lg_sum_takes_x, __VA_ARGS__)
/* sum / count; float dtypes; of nothing: NaN. */
#define lg_mean(...) LG_CALL1(lg_mean_with, lg_reduce_options, lg_mean_takes_x, __VA_ARGS__)
/* Greatest and smallest; the gradient is shared evenly by equals (PyTorch's amax). Of nothing: LG_ERR_SHAPE. */
#define lg_amax(...) LG_CALL1(lg_amax_with, lg_reduce_options, lg_amax_takes_x, __VA_ARGS__)
#define lg_amin(...) LG_CALL1(lg_amin_with, lg_reduce_options, lg_amin_takes_x, __VA_ARGS__)
/* Index (i64) of the greatest, the smallest within the reduced dimensions, row-major; the first of equals, and the
 * first NaN before all; no gradient. */
#define lg_argmax(...) LG_CALL1(lg_argmax_with, lg_reduce_options, lg_argmax_takes_x, __VA_ARGS__)
#define lg_argmin(...) LG_CALL1(lg_argmin_with, lg_reduce_options, lg_argmin_takes_x, __VA_ARGS__)
/* sum((x - mean)^2) / max(0, count - correction); float dtypes. */
#define lg_var(...) LG_CALL1(lg_var_with, lg_reduce_options, lg_var_takes_x, __VA_ARGS__)
/* sqrt(var); the gradient where it is 0 is 0. */
#define lg_std(...) LG_CALL1(lg_std_with, lg_reduce_options, lg_std_takes_x, __VA_ARGS__)
/* Product; of nothing 1; integers and bool give i64. The gradient is right where elements are 0. */
#define lg_prod(...) LG_CALL1(lg_prod_with, lg_reduce_options, lg_prod_takes_x, __VA_ARGS__)
/* log(sum(e^x)), safe from overflow and for elements of -inf and inf; float dtypes; of nothing: -inf. */
#define lg_logsumexp(...) LG_CALL1(lg_logsumexp_with, lg_reduce_options, lg_logsumexp_takes_x, __VA_ARGS__)
/* Is any, is each element not zero (NaN is not)? Any dtype in, bool out; of nothing false and true. */
#define lg_any(...) LG_CALL1(lg_any_with, lg_reduce_options, lg_any_takes_x, __VA_ARGS__)
#define lg_all(...) LG_CALL1(lg_all_with, lg_reduce_options, lg_all_takes_x, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_sum_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_mean_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_amax_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_amin_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_argmax_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_argmin_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_var_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_std_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_prod_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_logsumexp_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_any_with(lg_tensor *x, const lg_reduce_options *options);
LG_API LG_NEW lg_tensor *lg_all_with(lg_tensor *x, const lg_reduce_options *options);
typedef struct lg_norm_options {
        LG_OPTIONS_HEAD
        lg_dims dims LG_DEFAULT;  /* all */
        bool keep_dim LG_DEFAULT; /* keep reduced dimensions with size 1 */
} lg_norm_options;
/* sum(|x|^p)^(1/p), PyTorch's linalg.vector_norm; p INFINITY: the greatest |x|; p 0: the number of elements that are
 * not zero; p < 0 is LG_ERR_ARGUMENT. Float dtypes. Where the norm is 0 so is the gradient. lg_norm(x, 2) */
#define lg_norm(...) LG_CALL2(lg_norm_with, lg_norm_options, lg_norm_takes_x_p, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_norm_with(lg_tensor *x, double p, const lg_norm_options *options);

/* Matrix product, PyTorch's matmul: (m, k) (k, n) -> (m, n); dimensions before the last two are a batch and broadcast;
 * a 1-d a is a row, a 1-d b a column, and that dimension goes from the result. Float dtypes. */
LG_API LG_NEW lg_tensor *lg_matmul(lg_tensor *a, lg_tensor *b);
/* x w^T + b: x (..., in), w (out, in), b (out) or NULL -> (..., out). */
LG_API LG_NEW lg_tensor *lg_linear(lg_tensor *x, lg_tensor *w, lg_tensor *b);

/* e^x / sum(e^x) over one dimension, and its logarithm; safe from overflow. */
LG_API LG_NEW lg_tensor *lg_softmax(lg_tensor *x, int dim);
LG_API LG_NEW lg_tensor *lg_log_softmax(lg_tensor *x, int dim);

/* Running sums along a dimension: y[i] = x[0] + ... + x[i]; integers and bool give i64. */
LG_API LG_NEW lg_tensor *lg_cumsum(lg_tensor *x, int dim);
/* Running products: y[i] = x[0] ... x[i]; integers and bool give i64. */
LG_API LG_NEW lg_tensor *lg_cumprod(lg_tensor *x, int dim);

LG_END_C
#endif
