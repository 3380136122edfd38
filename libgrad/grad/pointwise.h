/* pointwise.h - the elementwise ops of kernels/pointwise.def: y[i] = f(x[i]).
 *
 * Any shape, any strides, any device. Two inputs broadcast as in NumPy and are promoted as in PyTorch. Functions that
 * are not closed over the integers give f32 for integer inputs. LG_ERR_SHAPE, _DEVICE, _ARGUMENT (NULL).
 */
#ifndef LG_POINTWISE_H
#define LG_POINTWISE_H

#include "grad/base.h"

LG_BEGIN

LG_API lg_tensor *lg_neg(lg_tensor *x);        /* -x */
LG_API lg_tensor *lg_abs(lg_tensor *x);        /* |x|; the derivative at 0 is 0 */
LG_API lg_tensor *lg_sign(lg_tensor *x);       /* -1, 0 or 1; the derivative is 0 */
LG_API lg_tensor *lg_square(lg_tensor *x);     /* x x */
LG_API lg_tensor *lg_exp(lg_tensor *x);        /* e^x */
LG_API lg_tensor *lg_expm1(lg_tensor *x);      /* e^x - 1, exact near 0 */
LG_API lg_tensor *lg_log(lg_tensor *x);        /* natural logarithm */
LG_API lg_tensor *lg_log1p(lg_tensor *x);      /* log(1 + x), exact near 0 */
LG_API lg_tensor *lg_sqrt(lg_tensor *x);       /* square root */
LG_API lg_tensor *lg_rsqrt(lg_tensor *x);      /* 1 / sqrt(x) */
LG_API lg_tensor *lg_reciprocal(lg_tensor *x); /* 1 / x */
LG_API lg_tensor *lg_sin(lg_tensor *x);        /* sine, radians */
LG_API lg_tensor *lg_cos(lg_tensor *x);        /* cosine, radians */
LG_API lg_tensor *lg_tanh(lg_tensor *x);       /* hyperbolic tangent */
LG_API lg_tensor *lg_erf(lg_tensor *x);        /* error function */
LG_API lg_tensor *lg_sigmoid(lg_tensor *x);    /* 1 / (1 + e^-x) */
LG_API lg_tensor *lg_relu(lg_tensor *x);       /* max(x, 0) */
LG_API lg_tensor *lg_softsign(lg_tensor *x);   /* x / (1 + |x|) */
LG_API lg_tensor *lg_silu(lg_tensor *x);       /* x sigmoid(x) */
LG_API lg_tensor *lg_gelu(lg_tensor *x);       /* x Phi(x), exact (erf) form */
LG_API lg_tensor *lg_gelu_tanh(lg_tensor *x);  /* gelu by the tanh formula, PyTorch's approximate="tanh" */

LG_API lg_tensor *lg_leaky_relu(lg_tensor *x, double slope); /* x > 0 ? x : slope x (PyTorch's slope: 0.01) */
LG_API lg_tensor *lg_elu(lg_tensor *x, double alpha);        /* x > 0 ? x : alpha (e^x - 1) */
/* log(1 + e^(beta x)) / beta; x itself where beta x > threshold (PyTorch: 1, 20) */
LG_API lg_tensor *lg_softplus(lg_tensor *x, double beta, double threshold);
LG_API lg_tensor *lg_clamp(lg_tensor *x, double low, double high); /* min(max(x, low), high); INFINITY for no bound */

/* With a number s. Integer tensors stay integer for add, sub, mul, maximum and minimum; s is then truncated. */
LG_API lg_tensor *lg_add_scalar(lg_tensor *x, double s);     /* x + s */
LG_API lg_tensor *lg_sub_scalar(lg_tensor *x, double s);     /* x - s */
LG_API lg_tensor *lg_rsub_scalar(lg_tensor *x, double s);    /* s - x */
LG_API lg_tensor *lg_mul_scalar(lg_tensor *x, double s);     /* x s */
LG_API lg_tensor *lg_div_scalar(lg_tensor *x, double s);     /* x / s */
LG_API lg_tensor *lg_rdiv_scalar(lg_tensor *x, double s);    /* s / x */
LG_API lg_tensor *lg_pow_scalar(lg_tensor *x, double s);     /* x^s */
LG_API lg_tensor *lg_rpow_scalar(lg_tensor *x, double s);    /* s^x */
LG_API lg_tensor *lg_maximum_scalar(lg_tensor *x, double s); /* max(x, s) */
LG_API lg_tensor *lg_minimum_scalar(lg_tensor *x, double s); /* min(x, s) */

/* Of two tensors. maximum and minimum share the gradient of equals evenly. */
LG_API lg_tensor *lg_add(lg_tensor *a, lg_tensor *b);     /* a + b */
LG_API lg_tensor *lg_sub(lg_tensor *a, lg_tensor *b);     /* a - b */
LG_API lg_tensor *lg_mul(lg_tensor *a, lg_tensor *b);     /* a b */
LG_API lg_tensor *lg_div(lg_tensor *a, lg_tensor *b);     /* a / b, true division */
LG_API lg_tensor *lg_pow(lg_tensor *a, lg_tensor *b);     /* a^b */
LG_API lg_tensor *lg_maximum(lg_tensor *a, lg_tensor *b); /* the greater */
LG_API lg_tensor *lg_minimum(lg_tensor *a, lg_tensor *b); /* the smaller */
/* condition ? a : b, elementwise; condition is bool. */
LG_API lg_tensor *lg_where(lg_tensor *condition, lg_tensor *a, lg_tensor *b);

/* Comparisons: bool results without gradients. */
LG_API lg_tensor *lg_eq(lg_tensor *a, lg_tensor *b);
LG_API lg_tensor *lg_ne(lg_tensor *a, lg_tensor *b);
LG_API lg_tensor *lg_lt(lg_tensor *a, lg_tensor *b);
LG_API lg_tensor *lg_le(lg_tensor *a, lg_tensor *b);
LG_API lg_tensor *lg_gt(lg_tensor *a, lg_tensor *b);
LG_API lg_tensor *lg_ge(lg_tensor *a, lg_tensor *b);
LG_API lg_tensor *lg_eq_scalar(lg_tensor *x, double s);
LG_API lg_tensor *lg_ne_scalar(lg_tensor *x, double s);
LG_API lg_tensor *lg_lt_scalar(lg_tensor *x, double s);
LG_API lg_tensor *lg_le_scalar(lg_tensor *x, double s);
LG_API lg_tensor *lg_gt_scalar(lg_tensor *x, double s);
LG_API lg_tensor *lg_ge_scalar(lg_tensor *x, double s);

LG_END_C
#endif
