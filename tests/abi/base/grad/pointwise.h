/* pointwise.h - elementwise ops: y[i] = f(x[i]).
 *
 * The functions take tensors of any shape and strides, on any device, and have gradients of any order unless noted. The
 * operands of functions of several tensors broadcast as in NumPy and are promoted as in PyTorch: to the common dtype
 * (lg_promote()), where a 0-d tensor counts only if it is of a higher category (bool, integer, float) than the others.
 *
 *     lg_tensor *y = lg_add(lg_mul_scalar(x, 2), b);
 *
 * f16 and bf16 are computed in f32 and rounded once. Integers wrap around on overflow. Where a bool tensor stays bool,
 * false counts as 0, true as 1, and a nonzero result is true. Where a function is not defined, the result is NaN or
 * infinite, which is no error. The result has the memory layout of the first operand that has its shape and no gaps
 * between elements, else it is row-major. "PyTorch: 0.5" is PyTorch's default for an argument that is required here.
 */
#ifndef LG_POINTWISE_H
#define LG_POINTWISE_H

#include "grad/base.h"

LG_BEGIN

/* ---- sign and square ----
 *
 * The result has the dtype of x.
 */

LG_API LG_NEW lg_tensor *lg_neg(lg_tensor *x);      /* -x */
LG_API LG_NEW lg_tensor *lg_abs(lg_tensor *x);      /* |x|; the derivative at 0 is 0 */
LG_API LG_NEW lg_tensor *lg_sign(lg_tensor *x);     /* -1, 0 or 1; NaN gives 0; the derivative is 0 */
LG_API LG_NEW lg_tensor *lg_square(lg_tensor *x);   /* x^2; bool gives i64 */
LG_API LG_NEW lg_tensor *lg_positive(lg_tensor *x); /* +x: a copy of x */

/* ---- powers and logarithms ----
 *
 * Integers and bool become f32.
 */

LG_API LG_NEW lg_tensor *lg_exp(lg_tensor *x);        /* e^x */
LG_API LG_NEW lg_tensor *lg_exp2(lg_tensor *x);       /* 2^x */
LG_API LG_NEW lg_tensor *lg_expm1(lg_tensor *x);      /* e^x - 1, accurate near 0 */
LG_API LG_NEW lg_tensor *lg_log(lg_tensor *x);        /* natural logarithm */
LG_API LG_NEW lg_tensor *lg_log2(lg_tensor *x);       /* logarithm to the base 2 */
LG_API LG_NEW lg_tensor *lg_log10(lg_tensor *x);      /* logarithm to the base 10 */
LG_API LG_NEW lg_tensor *lg_log1p(lg_tensor *x);      /* log(1 + x), accurate near 0 */
LG_API LG_NEW lg_tensor *lg_logit(lg_tensor *x);      /* log(x / (1 - x)), the inverse of lg_sigmoid() */
LG_API LG_NEW lg_tensor *lg_sqrt(lg_tensor *x);       /* square root */
LG_API LG_NEW lg_tensor *lg_rsqrt(lg_tensor *x);      /* 1 / sqrt(x) */
LG_API LG_NEW lg_tensor *lg_reciprocal(lg_tensor *x); /* 1 / x */

/* ---- trigonometric, hyperbolic and error functions ----
 *
 * Angles are in radians. Integers and bool become f32.
 */

LG_API LG_NEW lg_tensor *lg_sin(lg_tensor *x);     /* sine */
LG_API LG_NEW lg_tensor *lg_cos(lg_tensor *x);     /* cosine */
LG_API LG_NEW lg_tensor *lg_tan(lg_tensor *x);     /* tangent */
LG_API LG_NEW lg_tensor *lg_asin(lg_tensor *x);    /* inverse of sin on [-1, 1], NaN outside; in [-pi/2, pi/2] */
LG_API LG_NEW lg_tensor *lg_acos(lg_tensor *x);    /* inverse of cos on [-1, 1], NaN outside; in [0, pi] */
LG_API LG_NEW lg_tensor *lg_atan(lg_tensor *x);    /* inverse of tan, in [-pi/2, pi/2] */
LG_API LG_NEW lg_tensor *lg_sinh(lg_tensor *x);    /* hyperbolic sine */
LG_API LG_NEW lg_tensor *lg_cosh(lg_tensor *x);    /* hyperbolic cosine */
LG_API LG_NEW lg_tensor *lg_tanh(lg_tensor *x);    /* hyperbolic tangent */
LG_API LG_NEW lg_tensor *lg_asinh(lg_tensor *x);   /* inverse of sinh */
LG_API LG_NEW lg_tensor *lg_acosh(lg_tensor *x);   /* inverse of cosh, NaN below 1 */
LG_API LG_NEW lg_tensor *lg_atanh(lg_tensor *x);   /* inverse of tanh on [-1, 1], NaN outside */
LG_API LG_NEW lg_tensor *lg_erf(lg_tensor *x);     /* error function */
LG_API LG_NEW lg_tensor *lg_erfc(lg_tensor *x);    /* 1 - erf(x), accurate where the result is small */
LG_API LG_NEW lg_tensor *lg_erfinv(lg_tensor *x);  /* inverse of erf; infinite at -1 and 1, NaN outside */
LG_API LG_NEW lg_tensor *lg_sinc(lg_tensor *x);    /* sin(pi x) / (pi x), and 1 at 0 */
LG_API LG_NEW lg_tensor *lg_deg2rad(lg_tensor *x); /* degrees to radians: x pi / 180 */
LG_API LG_NEW lg_tensor *lg_rad2deg(lg_tensor *x); /* radians to degrees: x 180 / pi */
LG_API LG_NEW lg_tensor *lg_lgamma(lg_tensor *x);  /* log|Gamma(x)|; infinite at 0, -1, -2, ... */
LG_API LG_NEW lg_tensor *lg_digamma(lg_tensor *x); /* the derivative of lgamma; NaN at -1, -2, ..., infinite at 0 */

/* Computes the derivative of order n of lg_digamma(), with a whole n of 0 or more: n = 1 is the trigamma function. It
 * is infinite at 0, -1, -2, ... (PyTorch's polygamma(n, x)). */
LG_API LG_NEW lg_tensor *lg_polygamma(lg_tensor *x, double n);

/* ---- activation functions ----
 *
 * Integers and bool become f32, except in lg_relu(), lg_relu6() and lg_hardtanh(), which keep the dtype of x.
 *
 * The derivatives of lg_sigmoid() and lg_tanh() are computed from the result alone, so that x need not be kept. They
 * lose digits where the result is near 1 (or -1) and are 0 where it is rounded to 1, in f32 from about 17 and 9 on.
 * lg_log_sigmoid() and the losses that take logits have exact derivatives there. The second derivative of lg_elu(),
 * lg_celu() and lg_selu() at 0 is 0, as from the right.
 */

LG_API LG_NEW lg_tensor *lg_sigmoid(lg_tensor *x);     /* 1 / (1 + e^-x) */
LG_API LG_NEW lg_tensor *lg_log_sigmoid(lg_tensor *x); /* log(sigmoid(x)), accurate for every x */
LG_API LG_NEW lg_tensor *lg_relu(lg_tensor *x);        /* max(x, 0); the derivative at 0 is 0 */
LG_API LG_NEW lg_tensor *lg_relu6(lg_tensor *x);       /* min(max(x, 0), 6); the derivative at 0 and 6 is 0 */
LG_API LG_NEW lg_tensor *lg_silu(lg_tensor *x);        /* x sigmoid(x) */
LG_API LG_NEW lg_tensor *lg_gelu(lg_tensor *x);        /* x Phi(x), the exact form with erf */
LG_API LG_NEW lg_tensor *lg_gelu_tanh(lg_tensor *x);   /* gelu approximated with tanh, PyTorch's approximate="tanh" */
LG_API LG_NEW lg_tensor *lg_selu(lg_tensor *x);        /* 1.0507 (x > 0 ? x : 1.6733 (e^x - 1)) */
LG_API LG_NEW lg_tensor *lg_mish(lg_tensor *x);        /* x tanh(log(1 + e^x)) */
LG_API LG_NEW lg_tensor *lg_softsign(lg_tensor *x);    /* x / (1 + |x|) */
LG_API LG_NEW lg_tensor *lg_hardsigmoid(lg_tensor *x); /* relu6(x + 3) / 6; the derivative at -3 and 3 is 0 */
LG_API LG_NEW lg_tensor *lg_hardswish(lg_tensor *x);   /* x relu6(x + 3) / 6; the derivative at -3 is 0, at 3 it is 1 */
LG_API LG_NEW lg_tensor *lg_tanhshrink(lg_tensor *x);  /* x - tanh(x) */
LG_API LG_NEW lg_tensor *lg_leaky_relu(lg_tensor *x, double slope);  /* x > 0 ? x : slope x; PyTorch: 0.01 */
LG_API LG_NEW lg_tensor *lg_elu(lg_tensor *x, double alpha);         /* x > 0 ? x : alpha (e^x - 1); PyTorch: 1 */
LG_API LG_NEW lg_tensor *lg_hardshrink(lg_tensor *x, double lambda); /* |x| > lambda ? x : 0; PyTorch: 0.5 */

/* Computes x > 0 ? x : alpha (e^(x / alpha) - 1), with an alpha other than 0 (PyTorch: 1). */
LG_API LG_NEW lg_tensor *lg_celu(lg_tensor *x, double alpha);

/* Computes x - clamp(x, -lambda, lambda), with a lambda of at least 0 (PyTorch: 0.5). */
LG_API LG_NEW lg_tensor *lg_softshrink(lg_tensor *x, double lambda);

/* Computes min(max(x, low), high) like lg_clamp(), but with a derivative of 0 at low and high (PyTorch: -1 and 1). low
 * must not be above high. For integers and bool the bounds are converted as by lg_clamp(). */
LG_API LG_NEW lg_tensor *lg_hardtanh(lg_tensor *x, double low, double high);

/* Computes log(1 + e^(beta x)) / beta without overflow, and x itself where beta x > threshold (PyTorch: 1 and 20). */
LG_API LG_NEW lg_tensor *lg_softplus(lg_tensor *x, double beta, double threshold);

/* Replaces elements of at most `threshold` by value; their derivative is 0. Numbers are converted to integers as by
 * lg_add_scalar(). */
LG_API LG_NEW lg_tensor *lg_threshold(lg_tensor *x, double threshold, double value);

/* Options of lg_rrelu(). */
typedef struct lg_rrelu_options {
        LG_OPTIONS_HEAD
        double lower LG_DEFAULT;  /* least slope; default 1/8. LG_ZERO sets 0. */
        double upper LG_DEFAULT;  /* greatest slope, at least .lower; default 1/3. LG_ZERO sets 0. */
        bool training LG_DEFAULT; /* draws slopes; default false: the slope is (lower + upper) / 2 */
} lg_rrelu_options;
/* Computes x > 0 ? x : s x with a slope s that is drawn for each element, uniformly between two bounds, from the
 * context's random generator (PyTorch's F.rrelu). x has a float dtype.
 * Example: lg_rrelu(x, .lower = 0.1, .upper = 0.3, .training = true) */
#define lg_rrelu(...) LG_CALL1(lg_rrelu_with, lg_rrelu_options, lg_rrelu_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rrelu_with(lg_tensor *x, const lg_rrelu_options *options);

/* ---- rounding ----
 *
 * The result has the dtype of x, so integers and bool stay as they are. The derivative is 0; that of lg_frac() is 1.
 */

LG_API LG_NEW lg_tensor *lg_floor(lg_tensor *x); /* rounds towards -infinity */
LG_API LG_NEW lg_tensor *lg_ceil(lg_tensor *x);  /* rounds towards infinity */
LG_API LG_NEW lg_tensor *lg_round(lg_tensor *x); /* rounds to the nearest whole number, halves to the even one */
LG_API LG_NEW lg_tensor *lg_trunc(lg_tensor *x); /* rounds towards 0 */
LG_API LG_NEW lg_tensor *lg_frac(lg_tensor *x);  /* x - trunc(x), the fraction with the sign of x */

/* Rounds x, of a float dtype, to a number of decimals, or to a power of ten with negative ones: round(x 10^d) / 10^d,
 * as PyTorch's round with decimals. */
LG_API LG_NEW lg_tensor *lg_round_decimals(lg_tensor *x, int decimals);

/* ---- arithmetic with a number ----
 *
 * lg_div_scalar(), lg_rdiv_scalar(), lg_pow_scalar(), lg_rpow_scalar(), lg_xlogy_scalar(), lg_rxlogy_scalar() and
 * lg_copysign_scalar() turn integers and bool into f32 whatever s is; the others keep the dtype of x and convert s to
 * it. For integers s is truncated towards 0; LG_ERR_ARGUMENT if it is NaN or out of the dtype's range, such as -1 for
 * u8. For bool s counts as true if it is nonzero.
 *
 * The s of lg_maximum_scalar() and lg_minimum_scalar() and the arguments of lg_clamp() are bounds: a lower bound below
 * the range of the dtype and an upper bound above it have no effect and are no error; for bool a bound is clipped to
 * [0, 1] and truncated. Elements equal to s get half of the gradient in lg_maximum_scalar() and lg_minimum_scalar().
 */

LG_API LG_NEW lg_tensor *lg_add_scalar(lg_tensor *x, double s);          /* x + s */
LG_API LG_NEW lg_tensor *lg_sub_scalar(lg_tensor *x, double s);          /* x - s */
LG_API LG_NEW lg_tensor *lg_rsub_scalar(lg_tensor *x, double s);         /* s - x */
LG_API LG_NEW lg_tensor *lg_mul_scalar(lg_tensor *x, double s);          /* x s */
LG_API LG_NEW lg_tensor *lg_div_scalar(lg_tensor *x, double s);          /* x / s */
LG_API LG_NEW lg_tensor *lg_rdiv_scalar(lg_tensor *x, double s);         /* s / x */
LG_API LG_NEW lg_tensor *lg_pow_scalar(lg_tensor *x, double s);          /* x^s */
LG_API LG_NEW lg_tensor *lg_rpow_scalar(lg_tensor *x, double s);         /* s^x */
LG_API LG_NEW lg_tensor *lg_maximum_scalar(lg_tensor *x, double s);      /* max(x, s) */
LG_API LG_NEW lg_tensor *lg_minimum_scalar(lg_tensor *x, double s);      /* min(x, s) */
LG_API LG_NEW lg_tensor *lg_floor_divide_scalar(lg_tensor *x, double s); /* floor(x / s), see lg_floor_divide() */
LG_API LG_NEW lg_tensor *lg_remainder_scalar(lg_tensor *x, double s);    /* x - s floor(x / s), see lg_remainder() */
LG_API LG_NEW lg_tensor *lg_fmod_scalar(lg_tensor *x, double s);         /* x - s trunc(x / s), see lg_fmod() */
LG_API LG_NEW lg_tensor *lg_xlogy_scalar(lg_tensor *x, double s);        /* x log(s), see lg_xlogy() */
LG_API LG_NEW lg_tensor *lg_rxlogy_scalar(lg_tensor *x, double s);       /* s log(x), see lg_xlogy() */
LG_API LG_NEW lg_tensor *lg_copysign_scalar(lg_tensor *x, double s);     /* |x| with the sign of s */

/* Computes min(max(x, low), high), which is high where low is above it; low = -LG_INFINITY or high = LG_INFINITY means
 * no bound. NaN elements stay NaN. The derivative is 1 from low to high, both included, and 0 outside. */
LG_API LG_NEW lg_tensor *lg_clamp(lg_tensor *x, double low, double high);

/* ---- arithmetic of two tensors ----
 *
 * The result has the promoted dtype, or f32 from lg_div(), lg_atan2(), lg_xlogy(), lg_hypot(), lg_copysign() and
 * lg_logaddexp() if that is not a float dtype, and i64 from lg_pow() if it is bool. lg_pow() of integers is exact;
 * negative powers are 0, except those of 1 and -1. lg_maximum() and lg_minimum() give NaN if one operand is NaN; equal
 * elements share the gradient evenly. lg_fmax() and lg_fmin() give the gradient of equal elements to a.
 */

LG_API LG_NEW lg_tensor *lg_add(lg_tensor *a, lg_tensor *b);       /* a + b */
LG_API LG_NEW lg_tensor *lg_sub(lg_tensor *a, lg_tensor *b);       /* a - b */
LG_API LG_NEW lg_tensor *lg_mul(lg_tensor *a, lg_tensor *b);       /* a b */
LG_API LG_NEW lg_tensor *lg_div(lg_tensor *a, lg_tensor *b);       /* a / b, true division */
LG_API LG_NEW lg_tensor *lg_pow(lg_tensor *a, lg_tensor *b);       /* a^b */
LG_API LG_NEW lg_tensor *lg_maximum(lg_tensor *a, lg_tensor *b);   /* the greater one */
LG_API LG_NEW lg_tensor *lg_minimum(lg_tensor *a, lg_tensor *b);   /* the smaller one */
LG_API LG_NEW lg_tensor *lg_atan2(lg_tensor *a, lg_tensor *b);     /* the angle of the point (b, a), in [-pi, pi] */
LG_API LG_NEW lg_tensor *lg_xlogy(lg_tensor *a, lg_tensor *b);     /* a log(b); 0 where a is 0 and b is not NaN */
LG_API LG_NEW lg_tensor *lg_fmax(lg_tensor *a, lg_tensor *b);      /* the greater one, or the one that is not NaN */
LG_API LG_NEW lg_tensor *lg_fmin(lg_tensor *a, lg_tensor *b);      /* the smaller one, or the one that is not NaN */
LG_API LG_NEW lg_tensor *lg_hypot(lg_tensor *a, lg_tensor *b);     /* sqrt(a^2 + b^2) without overflow */
LG_API LG_NEW lg_tensor *lg_copysign(lg_tensor *a, lg_tensor *b);  /* |a| with the sign of b, also that of -0 */
LG_API LG_NEW lg_tensor *lg_heaviside(lg_tensor *a, lg_tensor *b); /* 0 where a < 0, b where a = 0, 1 where a > 0 */

/* Computes log(e^a + e^b) without overflow: the sum of two probabilities that are kept as their logarithms. Equal
 * infinities share the gradient evenly, where PyTorch's is NaN.
 * Example: lg_logaddexp(lg_log(x), lg_log(y)) */
LG_API LG_NEW lg_tensor *lg_logaddexp(lg_tensor *a, lg_tensor *b);

/* ---- floor division and remainders ----
 *
 * The result has the promoted dtype, so integers stay integers. Floats divided by 0 give what PyTorch gives: an
 * infinite or NaN quotient and a NaN remainder. Integers divided by 0 give the quotient 0 and the remainder a, where
 * PyTorch raises an error. lg_remainder() is Python's %, lg_fmod() is C's fmod(). The derivative of a remainder with
 * respect to a is 1, with respect to b minus the quotient; that of lg_floor_divide() is 0.
 */

LG_API LG_NEW lg_tensor *lg_floor_divide(lg_tensor *a, lg_tensor *b); /* floor(a / b) */
LG_API LG_NEW lg_tensor *lg_remainder(lg_tensor *a, lg_tensor *b);    /* a - b floor(a / b); has the sign of b, 0 too */
LG_API LG_NEW lg_tensor *lg_fmod(lg_tensor *a, lg_tensor *b);         /* a - b trunc(a / b); has the sign of a */

/* ---- products and quotients added to a tensor ----
 *
 * The result has the promoted dtype. All tensors broadcast.
 */

/* Options of lg_addcmul() and lg_addcdiv(). */
typedef struct lg_value_options {
        LG_OPTIONS_HEAD
        double value LG_DEFAULT; /* factor of what is added; default 1. LG_ZERO sets 0. */
} lg_value_options;
/* Compute x + value a b, and x + value a / b for float dtypes, rounded to 16-bit dtypes once.
 * Examples: lg_addcmul(x, a, b, .value = 0.1), lg_addcdiv(x, a, b) */
#define lg_addcmul(...) LG_CALL3(lg_addcmul_with, lg_value_options, lg_addcmul_takes_x_a_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_addcmul_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_value_options *options);
#define lg_addcdiv(...) LG_CALL3(lg_addcdiv_with, lg_value_options, lg_addcdiv_takes_x_a_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_addcdiv_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_value_options *options);

/* Computes a^b in f64, whatever the dtypes are (PyTorch's float_power). */
LG_API LG_NEW lg_tensor *lg_float_power(lg_tensor *a, lg_tensor *b);

/* ---- interpolation and selection ----
 *
 * The result has the promoted dtype. All tensors broadcast.
 */

/* Computes a + w (b - a), which is exactly a for w = 0 and exactly b for w = 1, as PyTorch's lerp does. All three have
 * float dtypes. lg_lerp_scalar() has the same weight w for all elements. */
LG_API LG_NEW lg_tensor *lg_lerp(lg_tensor *a, lg_tensor *b, lg_tensor *w);
LG_API LG_NEW lg_tensor *lg_lerp_scalar(lg_tensor *a, lg_tensor *b, double w);

/* Takes each element from a where condition, a bool tensor, is true and from b where it is false. condition takes no
 * part in the promotion. Only the elements that were taken receive a gradient. */
LG_API LG_NEW lg_tensor *lg_where(lg_tensor *condition, lg_tensor *a, lg_tensor *b);

/* Options of lg_nan_to_num(). */
typedef struct lg_nan_to_num_options {
        LG_OPTIONS_HEAD
        double nan LG_DEFAULT;    /* replaces NaN; default 0 */
        double posinf LG_DEFAULT; /* replaces infinity; default: the greatest number of the dtype. LG_ZERO sets 0. */
        double neginf LG_DEFAULT; /* replaces -infinity; default: the least number of the dtype. LG_ZERO sets 0. */
} lg_nan_to_num_options;
/* Replaces elements that are not finite; they receive no gradient. Integers and bool are copied.
 * Example: lg_nan_to_num(x, .posinf = 1e6) */
#define lg_nan_to_num(...) LG_CALL1(lg_nan_to_num_with, lg_nan_to_num_options, lg_nan_to_num_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_nan_to_num_with(lg_tensor *x, const lg_nan_to_num_options *options);

/* ---- comparisons ----
 *
 * The result is a bool tensor without a gradient. Two tensors are promoted before they are compared. A number s is
 * compared with integers and bool as f64; for f32, f16 and bf16 it is rounded to f32, so that an f32 element of 0.1
 * equals 0.1, but no f16 element does. A comparison with NaN is false, or true for not equal.
 */

LG_API LG_NEW lg_tensor *lg_eq(lg_tensor *a, lg_tensor *b);    /* a == b */
LG_API LG_NEW lg_tensor *lg_ne(lg_tensor *a, lg_tensor *b);    /* a != b */
LG_API LG_NEW lg_tensor *lg_lt(lg_tensor *a, lg_tensor *b);    /* a < b */
LG_API LG_NEW lg_tensor *lg_le(lg_tensor *a, lg_tensor *b);    /* a <= b */
LG_API LG_NEW lg_tensor *lg_gt(lg_tensor *a, lg_tensor *b);    /* a > b */
LG_API LG_NEW lg_tensor *lg_ge(lg_tensor *a, lg_tensor *b);    /* a >= b */
LG_API LG_NEW lg_tensor *lg_eq_scalar(lg_tensor *x, double s); /* x == s */
LG_API LG_NEW lg_tensor *lg_ne_scalar(lg_tensor *x, double s); /* x != s */
LG_API LG_NEW lg_tensor *lg_lt_scalar(lg_tensor *x, double s); /* x < s */
LG_API LG_NEW lg_tensor *lg_le_scalar(lg_tensor *x, double s); /* x <= s */
LG_API LG_NEW lg_tensor *lg_gt_scalar(lg_tensor *x, double s); /* x > s */
LG_API LG_NEW lg_tensor *lg_ge_scalar(lg_tensor *x, double s); /* x >= s */

/* Options of lg_isclose() and lg_allclose(). */
typedef struct lg_close_options {
        LG_OPTIONS_HEAD
        double rtol LG_DEFAULT;    /* tolerance relative to b, 0 or more; default 1e-5. LG_ZERO sets 0. */
        double atol LG_DEFAULT;    /* absolute tolerance, 0 or more; default 1e-8. LG_ZERO sets 0. */
        bool equal_nan LG_DEFAULT; /* two NaN count as close; default false */
} lg_close_options;
/* Tests whether a and b are equal or |a - b| <= atol + rtol |b|; integers are compared in f64, 16-bit floats in f32.
 * lg_allclose() returns whether this holds for all elements, and waits for the device; false on failure.
 * Examples: lg_isclose(a, b, .rtol = 1e-3), lg_allclose(a, b) */
#define lg_isclose(...) LG_CALL2(lg_isclose_with, lg_close_options, lg_isclose_takes_a_b, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_isclose_with(lg_tensor *a, lg_tensor *b, const lg_close_options *options);
#define lg_allclose(...) LG_CALL2(lg_allclose_with, lg_close_options, lg_allclose_takes_a_b, V, V, __VA_ARGS__)
LG_API bool lg_allclose_with(lg_tensor *a, lg_tensor *b, const lg_close_options *options);

/* Returns whether a and b have the same shape and, after promotion, equal elements; NaN equals nothing. Waits for the
 * device; false on failure. */
LG_API bool lg_equal(lg_tensor *a, lg_tensor *b);

/* ---- logic and tests ----
 *
 * The result is a bool tensor without a gradient. Operands may have any dtype; nonzero elements and NaN are true.
 */

LG_API LG_NEW lg_tensor *lg_logical_and(lg_tensor *a, lg_tensor *b); /* whether both are true */
LG_API LG_NEW lg_tensor *lg_logical_or(lg_tensor *a, lg_tensor *b);  /* whether at least one is true */
LG_API LG_NEW lg_tensor *lg_logical_xor(lg_tensor *a, lg_tensor *b); /* whether exactly one is true */
LG_API LG_NEW lg_tensor *lg_logical_not(lg_tensor *x);               /* whether x is false */
LG_API LG_NEW lg_tensor *lg_isnan(lg_tensor *x);                     /* whether x is NaN; false for integers and bool */
LG_API LG_NEW lg_tensor *lg_isinf(lg_tensor *x);                     /* whether x is infinite, with either sign */
LG_API LG_NEW lg_tensor *lg_isfinite(lg_tensor *x);                  /* whether x is neither infinite nor NaN */
LG_API LG_NEW lg_tensor *lg_isposinf(lg_tensor *x);                  /* whether x is infinity */
LG_API LG_NEW lg_tensor *lg_isneginf(lg_tensor *x);                  /* whether x is -infinity */
LG_API LG_NEW lg_tensor *lg_signbit(lg_tensor *x); /* whether the sign is negative, also that of -0 and of NaN */

/* ---- bits ----
 *
 * Operands are integers or bool, and so is the result, which has no gradient. Shifts by less than 0 bits, or by more
 * than there are, shift all bits out: on the right the sign remains. Numbers are converted to the dtype of x.
 */

LG_API LG_NEW lg_tensor *lg_bitwise_not(lg_tensor *x);                          /* ~x; of bool, whether x is false */
LG_API LG_NEW lg_tensor *lg_bitwise_and(lg_tensor *a, lg_tensor *b);            /* a & b */
LG_API LG_NEW lg_tensor *lg_bitwise_or(lg_tensor *a, lg_tensor *b);             /* a | b */
LG_API LG_NEW lg_tensor *lg_bitwise_xor(lg_tensor *a, lg_tensor *b);            /* a ^ b */
LG_API LG_NEW lg_tensor *lg_bitwise_left_shift(lg_tensor *a, lg_tensor *b);     /* a << b */
LG_API LG_NEW lg_tensor *lg_bitwise_right_shift(lg_tensor *a, lg_tensor *b);    /* a >> b, keeping the sign */
LG_API LG_NEW lg_tensor *lg_bitwise_and_scalar(lg_tensor *x, double s);         /* x & s */
LG_API LG_NEW lg_tensor *lg_bitwise_or_scalar(lg_tensor *x, double s);          /* x | s */
LG_API LG_NEW lg_tensor *lg_bitwise_xor_scalar(lg_tensor *x, double s);         /* x ^ s */
LG_API LG_NEW lg_tensor *lg_bitwise_left_shift_scalar(lg_tensor *x, double s);  /* x << s */
LG_API LG_NEW lg_tensor *lg_bitwise_right_shift_scalar(lg_tensor *x, double s); /* x >> s, keeping the sign */

LG_END_C

#ifdef __cplusplus
/* In C++ a number in place of a tensor does not compile, not even 0; write lg_mul_scalar(x, 2). */
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
LG_NO_NUMBER(lg_logaddexp)
LG_NO_NUMBER(lg_fmax)
LG_NO_NUMBER(lg_fmin)
LG_NO_NUMBER(lg_hypot)
LG_NO_NUMBER(lg_copysign)
LG_NO_NUMBER(lg_heaviside)
LG_NO_NUMBER(lg_bitwise_and)
LG_NO_NUMBER(lg_bitwise_or)
LG_NO_NUMBER(lg_bitwise_xor)
LG_NO_NUMBER(lg_bitwise_left_shift)
LG_NO_NUMBER(lg_bitwise_right_shift)
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
