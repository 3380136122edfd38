/* pointwise.h - the elementwise ops of kernels/pointwise.def: y[i] = f(x[i]).
 *
 * Any shape, any strides, any device. Two inputs broadcast as in NumPy and are promoted as in PyTorch. Functions that
 * are not closed over the integers give f32 for integer inputs. LG_ERR_SHAPE, _DEVICE, _ARGUMENT (NULL).
 */
#ifndef LG_POINTWISE_H
#define LG_POINTWISE_H

#include "grad/base.h"

LG_BEGIN

LG_API LG_NEW lg_tensor *lg_neg(lg_tensor *x);         /* -x */
LG_API LG_NEW lg_tensor *lg_abs(lg_tensor *x);         /* |x|; the derivative at 0 is 0 */
LG_API LG_NEW lg_tensor *lg_sign(lg_tensor *x);        /* -1, 0 or 1, 0 of NaN; the derivative is 0 */
LG_API LG_NEW lg_tensor *lg_square(lg_tensor *x);      /* x x; i64 of bool */
LG_API LG_NEW lg_tensor *lg_exp(lg_tensor *x);         /* e^x */
LG_API LG_NEW lg_tensor *lg_expm1(lg_tensor *x);       /* e^x - 1, exact near 0 */
LG_API LG_NEW lg_tensor *lg_log(lg_tensor *x);         /* natural logarithm */
LG_API LG_NEW lg_tensor *lg_log1p(lg_tensor *x);       /* log(1 + x), exact near 0 */
LG_API LG_NEW lg_tensor *lg_sqrt(lg_tensor *x);        /* square root */
LG_API LG_NEW lg_tensor *lg_rsqrt(lg_tensor *x);       /* 1 / sqrt(x) */
LG_API LG_NEW lg_tensor *lg_reciprocal(lg_tensor *x);  /* 1 / x */
LG_API LG_NEW lg_tensor *lg_sin(lg_tensor *x);         /* sine, radians */
LG_API LG_NEW lg_tensor *lg_cos(lg_tensor *x);         /* cosine, radians */
LG_API LG_NEW lg_tensor *lg_tanh(lg_tensor *x);        /* hyperbolic tangent */
LG_API LG_NEW lg_tensor *lg_erf(lg_tensor *x);         /* error function */
LG_API LG_NEW lg_tensor *lg_sigmoid(lg_tensor *x);     /* 1 / (1 + e^-x) */
LG_API LG_NEW lg_tensor *lg_relu(lg_tensor *x);        /* max(x, 0) */
LG_API LG_NEW lg_tensor *lg_softsign(lg_tensor *x);    /* x / (1 + |x|) */
LG_API LG_NEW lg_tensor *lg_silu(lg_tensor *x);        /* x sigmoid(x) */
LG_API LG_NEW lg_tensor *lg_gelu(lg_tensor *x);        /* x Phi(x), exact (erf) form */
LG_API LG_NEW lg_tensor *lg_gelu_tanh(lg_tensor *x);   /* gelu by the tanh formula, PyTorch's approximate="tanh" */
LG_API LG_NEW lg_tensor *lg_exp2(lg_tensor *x);        /* 2^x */
LG_API LG_NEW lg_tensor *lg_log2(lg_tensor *x);        /* logarithm to the base 2 */
LG_API LG_NEW lg_tensor *lg_log10(lg_tensor *x);       /* logarithm to the base 10 */
LG_API LG_NEW lg_tensor *lg_tan(lg_tensor *x);         /* tangent, radians */
LG_API LG_NEW lg_tensor *lg_asin(lg_tensor *x);        /* the inverse of sin on [-1, 1], NaN outside */
LG_API LG_NEW lg_tensor *lg_acos(lg_tensor *x);        /* the inverse of cos on [-1, 1], in [0, pi]; NaN outside */
LG_API LG_NEW lg_tensor *lg_atan(lg_tensor *x);        /* the inverse of tan, in [-pi/2, pi/2] */
LG_API LG_NEW lg_tensor *lg_sinh(lg_tensor *x);        /* hyperbolic sine */
LG_API LG_NEW lg_tensor *lg_cosh(lg_tensor *x);        /* hyperbolic cosine */
LG_API LG_NEW lg_tensor *lg_asinh(lg_tensor *x);       /* the inverse of sinh */
LG_API LG_NEW lg_tensor *lg_acosh(lg_tensor *x);       /* the inverse of cosh, NaN below 1 */
LG_API LG_NEW lg_tensor *lg_atanh(lg_tensor *x);       /* the inverse of tanh on [-1, 1], NaN outside */
LG_API LG_NEW lg_tensor *lg_erfc(lg_tensor *x);        /* 1 - erf(x), exact where that is small */
LG_API LG_NEW lg_tensor *lg_log_sigmoid(lg_tensor *x); /* log(sigmoid(x)), exact where sigmoid(x) is 0 or 1 */
LG_API LG_NEW lg_tensor *lg_relu6(lg_tensor *x);       /* min(max(x, 0), 6); the derivative at 0 and 6 is 0 */
LG_API LG_NEW lg_tensor *lg_selu(lg_tensor *x);        /* 1.0507 (x > 0 ? x : 1.6733 (e^x - 1)) */
LG_API LG_NEW lg_tensor *lg_mish(lg_tensor *x);        /* x tanh(log(1 + e^x)) */
LG_API LG_NEW lg_tensor *lg_hardsigmoid(lg_tensor *x); /* relu6(x + 3) / 6; the derivative at -3 and 3 is 0 */
LG_API LG_NEW lg_tensor *lg_hardswish(lg_tensor *x);   /* x relu6(x + 3) / 6; the derivative at -3 is 0, at 3 it is 1 */
LG_API LG_NEW lg_tensor *lg_tanhshrink(lg_tensor *x);  /* x - tanh(x) */

/* Roundings: whole numbers of x's dtype. Their derivative is 0, that of frac is 1. */
LG_API LG_NEW lg_tensor *lg_floor(lg_tensor *x); /* towards -infinity */
LG_API LG_NEW lg_tensor *lg_ceil(lg_tensor *x);  /* towards infinity */
LG_API LG_NEW lg_tensor *lg_round(lg_tensor *x); /* to the nearest, halves to the even one */
LG_API LG_NEW lg_tensor *lg_trunc(lg_tensor *x); /* towards 0 */
LG_API LG_NEW lg_tensor *lg_frac(lg_tensor *x);  /* x - trunc(x) */

LG_API LG_NEW lg_tensor *lg_leaky_relu(lg_tensor *x, double slope);  /* x > 0 ? x : slope x (PyTorch's slope: 0.01) */
LG_API LG_NEW lg_tensor *lg_elu(lg_tensor *x, double alpha);         /* x > 0 ? x : alpha (e^x - 1) */
LG_API LG_NEW lg_tensor *lg_celu(lg_tensor *x, double alpha);        /* x > 0 ? x : alpha (e^(x / alpha) - 1) */
LG_API LG_NEW lg_tensor *lg_hardshrink(lg_tensor *x, double lambda); /* |x| > lambda ? x : 0 (PyTorch: 0.5) */
LG_API LG_NEW lg_tensor *lg_softshrink(lg_tensor *x, double lambda); /* x - clamp(x, -lambda, lambda) (PyTorch: 0.5) */
/* min(max(x, low), high) (PyTorch: -1, 1); as clamp, but that the derivative at low and high is 0 */
LG_API LG_NEW lg_tensor *lg_hardtanh(lg_tensor *x, double low, double high);
/* log(1 + e^(beta x)) / beta; x itself where beta x > threshold (PyTorch: 1, 20) */
LG_API LG_NEW lg_tensor *lg_softplus(lg_tensor *x, double beta, double threshold);
LG_API LG_NEW lg_tensor *lg_clamp(lg_tensor *x, double low,
                                  double high); /* min(max(x, low), high); INFINITY for no bound */

/* With a number s. Integer tensors stay integer for add, sub, mul, maximum, minimum, clamp and hardtanh; s is then cut
 * to a whole number, and NaN or one out of the dtype's range is LG_ERR_ARGUMENT, as in lg_full: -1 is no u8. A bound
 * may be out of the range on its own side, where it bounds nothing: 300 from above, -1 from below. bool tensors stay
 * bool, and s is whether it is not zero. */
LG_API LG_NEW lg_tensor *lg_add_scalar(lg_tensor *x, double s);     /* x + s */
LG_API LG_NEW lg_tensor *lg_sub_scalar(lg_tensor *x, double s);     /* x - s */
LG_API LG_NEW lg_tensor *lg_rsub_scalar(lg_tensor *x, double s);    /* s - x */
LG_API LG_NEW lg_tensor *lg_mul_scalar(lg_tensor *x, double s);     /* x s */
LG_API LG_NEW lg_tensor *lg_div_scalar(lg_tensor *x, double s);     /* x / s */
LG_API LG_NEW lg_tensor *lg_rdiv_scalar(lg_tensor *x, double s);    /* s / x */
LG_API LG_NEW lg_tensor *lg_pow_scalar(lg_tensor *x, double s);     /* x^s */
LG_API LG_NEW lg_tensor *lg_rpow_scalar(lg_tensor *x, double s);    /* s^x */
LG_API LG_NEW lg_tensor *lg_maximum_scalar(lg_tensor *x, double s); /* max(x, s) */
LG_API LG_NEW lg_tensor *lg_minimum_scalar(lg_tensor *x, double s); /* min(x, s) */

/* Of two tensors. maximum and minimum share the gradient of equals evenly. */
LG_API LG_NEW lg_tensor *lg_add(lg_tensor *a, lg_tensor *b);     /* a + b */
LG_API LG_NEW lg_tensor *lg_sub(lg_tensor *a, lg_tensor *b);     /* a - b */
LG_API LG_NEW lg_tensor *lg_mul(lg_tensor *a, lg_tensor *b);     /* a b */
LG_API LG_NEW lg_tensor *lg_div(lg_tensor *a, lg_tensor *b);     /* a / b, true division */
LG_API LG_NEW lg_tensor *lg_pow(lg_tensor *a, lg_tensor *b);     /* a^b */
LG_API LG_NEW lg_tensor *lg_maximum(lg_tensor *a, lg_tensor *b); /* the greater */
LG_API LG_NEW lg_tensor *lg_minimum(lg_tensor *a, lg_tensor *b); /* the smaller */
LG_API LG_NEW lg_tensor *lg_atan2(lg_tensor *a, lg_tensor *b);   /* the angle of the point (b, a), in [-pi, pi] */
LG_API LG_NEW lg_tensor *lg_xlogy(lg_tensor *a, lg_tensor *b);   /* a log(b); 0 where a is 0 and b is no NaN */
/* Division with a whole quotient, by which integers stay integers. By 0: floats become as in PyTorch (an infinity or
 * NaN, the rest NaN); for integers the quotient is 0 and the rest is a (where PyTorch raises an error). The derivative
 * of a rest is 1 by a and minus the quotient by b, that of floor_divide is 0. */
LG_API LG_NEW lg_tensor *lg_floor_divide(lg_tensor *a, lg_tensor *b); /* floor(a / b) */
LG_API LG_NEW lg_tensor *lg_remainder(lg_tensor *a, lg_tensor *b); /* a - b floor(a / b), Python's %: the sign of b */
LG_API LG_NEW lg_tensor *lg_fmod(lg_tensor *a, lg_tensor *b);      /* a - b trunc(a / b), C's fmod: the sign of a */
/* a + w (b - a), float dtypes: exactly a for w = 0 and b for w = 1. All three broadcast. PyTorch's lerp. */
LG_API LG_NEW lg_tensor *lg_lerp(lg_tensor *a, lg_tensor *b, lg_tensor *w);
LG_API LG_NEW lg_tensor *lg_lerp_scalar(lg_tensor *a, lg_tensor *b, double w);
/* condition ? a : b, elementwise; condition is bool. */
LG_API LG_NEW lg_tensor *lg_where(lg_tensor *condition, lg_tensor *a, lg_tensor *b);

/* Comparisons and tests: bool results without gradients. */
LG_API LG_NEW lg_tensor *lg_eq(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_ne(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_lt(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_le(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_gt(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_ge(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_eq_scalar(lg_tensor *x, double s);
LG_API LG_NEW lg_tensor *lg_ne_scalar(lg_tensor *x, double s);
LG_API LG_NEW lg_tensor *lg_lt_scalar(lg_tensor *x, double s);
LG_API LG_NEW lg_tensor *lg_le_scalar(lg_tensor *x, double s);
LG_API LG_NEW lg_tensor *lg_gt_scalar(lg_tensor *x, double s);
LG_API LG_NEW lg_tensor *lg_ge_scalar(lg_tensor *x, double s);

/* Of whatever dtype: a value counts as true if it is not zero, as NaN is. */
LG_API LG_NEW lg_tensor *lg_logical_and(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_logical_or(lg_tensor *a, lg_tensor *b);
LG_API LG_NEW lg_tensor *lg_logical_xor(lg_tensor *a, lg_tensor *b); /* one of them, not both */
LG_API LG_NEW lg_tensor *lg_logical_not(lg_tensor *x);
LG_API LG_NEW lg_tensor *lg_isnan(lg_tensor *x);
LG_API LG_NEW lg_tensor *lg_isinf(lg_tensor *x); /* either infinity */
LG_API LG_NEW lg_tensor *lg_isfinite(lg_tensor *x);

LG_END_C

#ifdef __cplusplus
/* A number in the place of a tensor does not compile, not even 0: lg_mul_scalar(x, 2). */
#define LG_NO_NUMBER(f)                                                                                                \
        template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>>                                     \
        lg_tensor *f(lg_tensor *, N) = delete;                                                                         \
        template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>>                                     \
        lg_tensor *f(N, lg_tensor *) = delete;
LG_NO_NUMBER(lg_add)
LG_NO_NUMBER(lg_sub)
LG_NO_NUMBER(lg_mul)
LG_NO_NUMBER(lg_div)
LG_NO_NUMBER(lg_pow)
LG_NO_NUMBER(lg_maximum)
LG_NO_NUMBER(lg_minimum)
LG_NO_NUMBER(lg_atan2)
LG_NO_NUMBER(lg_xlogy)
LG_NO_NUMBER(lg_floor_divide)
LG_NO_NUMBER(lg_remainder)
LG_NO_NUMBER(lg_fmod)
LG_NO_NUMBER(lg_eq)
LG_NO_NUMBER(lg_ne)
LG_NO_NUMBER(lg_lt)
LG_NO_NUMBER(lg_le)
LG_NO_NUMBER(lg_gt)
LG_NO_NUMBER(lg_ge)
template <class A, class B, class = std::enable_if_t<std::is_arithmetic<A>::value || std::is_arithmetic<B>::value>>
lg_tensor *lg_where(lg_tensor *, A, B) = delete;
#endif
#endif
