/* ops.h - ops that combine several elements: reductions, matrix products, soft-max, running sums and products.
 *
 * All except lg_argmax(), lg_argmin(), lg_any() and lg_all() have gradients, of any order. f16 and bf16 are computed in
 * f32 and rounded once. Tensors have any strides, on any device. Along one dimension, a 0-d tensor counts as 1-d.
 *
 *     lg_tensor *p = lg_softmax(lg_linear(x, w, b), -1);
 *     lg_tensor *entropy = lg_neg(lg_sum(lg_xlogy(p, p), .dims = LG_DIMS(-1)));
 */
#ifndef LG_OPS_H
#define LG_OPS_H

#include "grad/base.h"

LG_BEGIN

/* ---- reductions ----
 *
 * A reduction combines the elements along the dimensions .dims, each named once, by default all elements, into one.
 * These dimensions are removed from the result, or have size 1 there with .keep_dim. The result has the dtype of x
 * unless the function's comment names another. NaN counts as nonzero.
 */

/* Options of all reductions except lg_var(), lg_std() and lg_norm(). */
typedef struct lg_reduce_options {
        LG_OPTIONS_HEAD
        lg_dims dims LG_DEFAULT;  /* Dimensions to reduce, negative ones from the end; default all. */
        bool keep_dim LG_DEFAULT; /* Keeps the reduced dimensions with size 1; default false. */
} lg_reduce_options;
/* Computes the sum. Floats accumulate in f32 or better; integers and bool give i64. The sum of an empty tensor is 0.
 * Example: lg_sum(x, .dims = LG_DIMS(1), .keep_dim = true) */
#define lg_sum(...) LG_CALL1(lg_sum_with, lg_reduce_options, lg_sum_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_sum_with(lg_tensor *x, const lg_reduce_options *options);

/* Computes the mean of a tensor of a float dtype. It is finite also where the sum exceeds the range of the dtype; only
 * in f64 the sum must fit, as in NumPy. The mean of an empty tensor is NaN. */
#define lg_mean(...) LG_CALL1(lg_mean_with, lg_reduce_options, lg_mean_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_mean_with(lg_tensor *x, const lg_reduce_options *options);

/* Computes the maximum or the minimum of at least one element; if an element is NaN, the result is NaN. Equal ones
 * share the gradient evenly, as in PyTorch's amax and amin. lg_max() and lg_min() in index.h return indices as well.
 * Examples: lg_amax(x, .dims = LG_DIMS(1)), lg_amin(x) */
#define lg_amax(...) LG_CALL1(lg_amax_with, lg_reduce_options, lg_amax_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_amax_with(lg_tensor *x, const lg_reduce_options *options);
#define lg_amin(...) LG_CALL1(lg_amin_with, lg_reduce_options, lg_amin_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_amin_with(lg_tensor *x, const lg_reduce_options *options);

/* Finds the index of the maximum or minimum, as i64: the position in row-major order within the reduced dimensions,
 * which have at least one element. The first of equal ones is chosen, and the first NaN before all numbers.
 * Examples: lg_argmax(scores, .dims = LG_DIMS(1)), lg_argmin(x) */
#define lg_argmax(...) LG_CALL1(lg_argmax_with, lg_reduce_options, lg_argmax_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_argmax_with(lg_tensor *x, const lg_reduce_options *options);
#define lg_argmin(...) LG_CALL1(lg_argmin_with, lg_reduce_options, lg_argmin_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_argmin_with(lg_tensor *x, const lg_reduce_options *options);

/* Options of lg_var() and lg_std(). */
typedef struct lg_var_options {
        LG_OPTIONS_HEAD
        lg_dims dims LG_DEFAULT;      /* Dimensions to reduce, negative ones from the end; default all. */
        bool keep_dim LG_DEFAULT;     /* Keeps the reduced dimensions with size 1; default false. */
        double correction LG_DEFAULT; /* Subtracted from the count of elements; default 1. LG_ZERO sets 0. */
} lg_var_options;
/* Computes the variance sum((x - mean)^2) / max(0, count - correction) of a tensor of a float dtype. With the default
 * correction of 1, the variance of one element is NaN, as is that of an empty tensor.
 * Example: lg_var(x, .dims = LG_DIMS(0), .correction = LG_ZERO) */
#define lg_var(...) LG_CALL1(lg_var_with, lg_var_options, lg_var_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_var_with(lg_tensor *x, const lg_var_options *options);

/* Computes the standard deviation, the square root of the variance, of a tensor of a float dtype. The variance itself
 * may exceed the range of the dtype, except in f64. Where the result is 0, its gradient is 0.
 * Example: lg_std(x, .dims = LG_DIMS(0)) */
#define lg_std(...) LG_CALL1(lg_std_with, lg_var_options, lg_std_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_std_with(lg_tensor *x, const lg_var_options *options);

/* Computes the product; integers and bool give i64, an empty tensor gives 1. The gradient is correct also at 0.
 * Example: lg_prod(x, .dims = LG_DIMS(1)) */
#define lg_prod(...) LG_CALL1(lg_prod_with, lg_reduce_options, lg_prod_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_prod_with(lg_tensor *x, const lg_reduce_options *options);

/* Computes log(sum(e^x)) of a tensor of a float dtype, without overflow in between. Elements may be infinite: elements
 * of inf share the gradient equally, and if all are -inf, it is 0 (PyTorch: NaN). An empty tensor gives -inf.
 * Example: lg_logsumexp(scores, .dims = LG_DIMS(1), .keep_dim = true) */
#define lg_logsumexp(...) LG_CALL1(lg_logsumexp_with, lg_reduce_options, lg_logsumexp_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_logsumexp_with(lg_tensor *x, const lg_reduce_options *options);

/* Returns a bool tensor: whether any or every element of x, of any dtype, is nonzero; false or true if x is empty.
 * Examples: lg_any(mask, .dims = LG_DIMS(1)), lg_all(mask) */
#define lg_any(...) LG_CALL1(lg_any_with, lg_reduce_options, lg_any_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_any_with(lg_tensor *x, const lg_reduce_options *options);
#define lg_all(...) LG_CALL1(lg_all_with, lg_reduce_options, lg_all_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_all_with(lg_tensor *x, const lg_reduce_options *options);

typedef struct lg_norm_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT;      /* The order, any number or infinity; default 2. LG_ZERO sets 0. */
        lg_dims dims LG_DEFAULT;  /* Dimensions to reduce, negative ones from the end; default all. */
        bool keep_dim LG_DEFAULT; /* Keeps the reduced dimensions with size 1; default false. */
} lg_norm_options;
/* Computes the vector norm sum(|x|^p)^(1/p) of a tensor of a float dtype, as PyTorch's linalg.vector_norm
 * does. If p is LG_INFINITY, the norm is the maximum of |x|, if -LG_INFINITY, the minimum; if p is 0, it is the number
 * of nonzero elements. With a negative p it is 0 if an element is 0. Where the norm is 0, its gradient is 0. Powers on
 * the way may exceed the range of the dtype, except squares in f64 (p = 2). The norm of an empty tensor is 0, except
 * that a negative or infinite p fails with LG_ERR_SHAPE.
 * Example: lg_norm(x, .dims = LG_DIMS(1)) */
#define lg_norm(...) LG_CALL1(lg_norm_with, lg_norm_options, lg_norm_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_norm_with(lg_tensor *x, const lg_norm_options *options);

/* Multiplies each slice of x along dim whose norm of order p, above 0, is above max_norm by max_norm / (norm + 1e-7),
 * as PyTorch's renorm does. x has a float dtype and two dimensions or more. */
LG_API LG_NEW lg_tensor *lg_renorm(lg_tensor *x, double p, int dim, double max_norm);

/* ---- matrix products ----
 *
 * All operands have float dtypes and are promoted to one, or all are integers and bool: these are promoted like the
 * operands of lg_add(), bool to i64, and the result is exact modulo the range of its dtype, without a gradient.
 * lg_set_allow_tf32() makes f32 faster and less accurate on GPUs.
 */

/* Computes the matrix product of a (..., m, k) and b (..., k, n), which has shape (..., m, n), as PyTorch's matmul
 * does. Dimensions before the last two are a batch and broadcast. A 1-d a counts as one row and a 1-d b as one column,
 * and that dimension is removed from the result. */
LG_API LG_NEW lg_tensor *lg_matmul(lg_tensor *a, lg_tensor *b);

/* Computes x w^T + b, a fully connected layer: x (..., in), w (out, in) and b (out) give (..., out). b may be NULL. */
LG_API LG_NEW lg_tensor *lg_linear(lg_tensor *x, lg_tensor *w, lg_tensor *b);

/* ---- soft-max ----
 *
 * x has a float dtype; the result has x's shape and dtype.
 */

/* Computes e^x / sum(e^x) along dim, without overflow in between. The elements along dim sum to 1. */
LG_API LG_NEW lg_tensor *lg_softmax(lg_tensor *x, int dim);

/* Computes log(e^x / sum(e^x)) along dim, accurately also where the quotient rounds to 0. For a classification loss,
 * lg_cross_entropy() takes the scores x themselves. */
LG_API LG_NEW lg_tensor *lg_log_softmax(lg_tensor *x, int dim);

/* Computes e^-x / sum(e^-x) along dim: lg_softmax() of -x. */
LG_API LG_NEW lg_tensor *lg_softmin(lg_tensor *x, int dim);

/* ---- gated linear unit ---- */

/* Computes a sigmoid(b), where a is the first half of x along dim and b the second, as PyTorch's glu does. The result
 * has half of x's size along dim, which must be even, and x's dtype, which is a float dtype. PyTorch's default is -1.
 * Example: lg_glu(lg_linear(x, w, b), -1) */
LG_API LG_NEW lg_tensor *lg_glu(lg_tensor *x, int dim);

/* ---- running sums and products ----
 *
 * The result has x's shape. Its dtype is x's; integers and bool give i64.
 */

/* Computes, along dim: */
LG_API LG_NEW lg_tensor *lg_cumsum(lg_tensor *x, int dim);  /* y[i] = x[0] + ... + x[i]; floats accumulate in f64 */
LG_API LG_NEW lg_tensor *lg_cumprod(lg_tensor *x, int dim); /* y[i] = x[0] * ... * x[i]; differentiable also at 0 */

/* Computes log(e^x[0] + ... + e^x[i]) along dim without overflow: running sums of probabilities kept as logarithms. x
 * has a float dtype and accumulates in f64. The gradient is correct also at -infinity, where PyTorch's may be NaN.
 * Example: lg_logcumsumexp(scores, -1) */
LG_API LG_NEW lg_tensor *lg_logcumsumexp(lg_tensor *x, int dim);

LG_END_C
#endif
