/* scalar.h - the vocabulary of pointwise.def as scalar code, for the type that LG_SCALAR names (f32, f64 or i64). */
#ifndef LG_CPU_SCALAR_H
#define LG_CPU_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#define NORMAL_CDF(x) LG_OF(lg_normal_cdf_)(x)
#define NORMAL_PDF(x) (K(LG_1_SQRT2PI) * LG_OF(lg_bell_)(x))
#include "../scalar.h"
#include "vecmath.h"

#if LG_MVEC
/* glibc announces its vector functions only under -ffast-math; their errors (4 ulp) are small enough without. */
#define LG_VECTOR __attribute__((simd("notinbranch"))) extern
LG_VECTOR float powf(float, float);
LG_VECTOR float exp2f(float);
LG_VECTOR float log2f(float);
LG_VECTOR float log10f(float);
LG_VECTOR float tanf(float);
LG_VECTOR float asinf(float);
LG_VECTOR float acosf(float);
LG_VECTOR float atanf(float);
LG_VECTOR float atan2f(float, float);
LG_VECTOR float sinhf(float);
LG_VECTOR float coshf(float);
LG_VECTOR float asinhf(float);
LG_VECTOR float acoshf(float);
LG_VECTOR float atanhf(float);
LG_VECTOR float erfcf(float);
LG_VECTOR double exp(double);
LG_VECTOR double log(double);
LG_VECTOR double sin(double);
LG_VECTOR double cos(double);
LG_VECTOR double pow(double, double);
LG_VECTOR double expm1(double);
LG_VECTOR double log1p(double);
LG_VECTOR double tanh(double);
LG_VECTOR double erf(double);
LG_VECTOR double exp2(double);
LG_VECTOR double log2(double);
LG_VECTOR double log10(double);
LG_VECTOR double tan(double);
LG_VECTOR double asin(double);
LG_VECTOR double acos(double);
LG_VECTOR double atan(double);
LG_VECTOR double atan2(double, double);
LG_VECTOR double sinh(double);
LG_VECTOR double cosh(double);
LG_VECTOR double asinh(double);
LG_VECTOR double acosh(double);
LG_VECTOR double atanh(double);
LG_VECTOR double erfc(double);
#endif

static inline double lg_select_f64(int c, double a, double b)
{
        uint64_t x, y, m = 0u - (uint64_t)c;
        memcpy(&x, &a, sizeof x);
        memcpy(&y, &b, sizeof y);
        x = (x & m) | (y & ~m);
        memcpy(&a, &x, sizeof a);
        return a;
}

static inline int64_t lg_select_i64(int c, int64_t a, int64_t b)
{
        return c ? a : b;
}

/* A NaN on either side is the result. */
#define LG_EXTREMES(type, sfx)                                                                                         \
        static inline type lg_max_##sfx(type a, type b)                                                                \
        {                                                                                                              \
                return lg_select_##sfx((a > b) | (a != a), a, b);                                                      \
        }                                                                                                              \
        static inline type lg_min_##sfx(type a, type b)                                                                \
        {                                                                                                              \
                return lg_select_##sfx((a < b) | (a != a), a, b);                                                      \
        }                                                                                                              \
        static inline type lg_sign_##sfx(type x)                                                                       \
        {                                                                                                              \
                return (type)((x > 0) - (x < 0));                                                                      \
        }
LG_EXTREMES(float, f32)
LG_EXTREMES(double, f64)
LG_EXTREMES(int64_t, i64)
#undef LG_EXTREMES

#define lg_math_f32(name, ...) name##f(__VA_ARGS__)
#define lg_math_f64(name, ...) name(__VA_ARGS__)
#define lg_math_i64(name, ...) (__VA_ARGS__) /* of integers there are only roundings */
#define lg_abs_f32(x) fabsf(x)
#define lg_abs_f64(x) fabs(x)
#define lg_abs_i64(x) ((x) < 0 ? -(x) : (x))

#define lg_fmod_f32(a, b) fmodf(a, b)
#define lg_fmod_f64(a, b) fmod(a, b)
/* Without the divisors that trap: 0, and -1 of the smallest integer. By 0 the quotient is 0 and the rest is a. */
static inline int64_t lg_fmod_i64(int64_t a, int64_t b)
{
        return b == 0 ? a : b == -1 ? 0 : a % b;
}

static inline int64_t lg_floor_divide_i64(int64_t a, int64_t b)
{
        if (b == 0 || b == -1)
                return b == 0 ? 0 : -a;
        return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}

/* Wraps around. A negative power is 0, except one of 1 or -1. */
static inline int64_t lg_pow_i64(int64_t a, int64_t b)
{
        uint64_t power = b < 0 && a != 1 && a != -1 ? 0 : 1, factor = (uint64_t)a;
        for (uint64_t n = b < 0 ? 0 - (uint64_t)b : (uint64_t)b; n; n >>= 1, factor *= factor)
                power *= n & 1 ? factor : 1;
        return (int64_t)power;
}

static inline int64_t lg_remainder_i64(int64_t a, int64_t b)
{
        const int64_t r = lg_fmod_i64(a, b);
        return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

/* The sign of b, of 0 as well; and the quotient from the rest, which is exact: floor(a / b) may be one too much. */
#define LG_REMAINDER(type, sfx)                                                                                        \
        static inline type lg_remainder_##sfx(type a, type b)                                                          \
        {                                                                                                              \
                type r = lg_fmod_##sfx(a, b), same = lg_math_##sfx(copysign, r, b);                                    \
                return lg_select_##sfx(same == r, same, r + b);                                                        \
        }
#define LG_FLOOR_DIVIDE(type, sfx)                                                                                     \
        static inline type lg_floor_divide_##sfx(type a, type b)                                                       \
        {                                                                                                              \
                type r = lg_fmod_##sfx(a, b), q = (a - r) / b;                                                         \
                q -= (type)((r != 0) & ((r < 0) != (b < 0)));                                                          \
                type whole = lg_math_##sfx(floor, q);                                                                  \
                whole += (type)(q - whole > (type)0.5);                                                                \
                whole = lg_select_##sfx(whole == 0, lg_math_##sfx(copysign, 0, a / b), whole);                         \
                return lg_select_##sfx(b == 0, a / b, whole);                                                          \
        }
LG_REMAINDER(float, f32)
LG_REMAINDER(double, f64)
LG_FLOOR_DIVIDE(float, f32)
LG_FLOOR_DIVIDE(double, f64)
#undef LG_REMAINDER
#undef LG_FLOOR_DIVIDE

#define lg_pow_f32(a, b) powf(a, b)
#define lg_pow_f64(a, b) pow(a, b)
/* The passes of a loop over a formula: see pointwise_loops.inc. */
enum { LG_ASKING, LG_FAR, LG_NEAR };

/* Computes sin and cos, those of large angles in f64. */
#define LG_ANGLES(name)                                                                                                \
        LG_LANE float lg_##name##_f32(float x, int pass, int *far)                                                     \
        {                                                                                                              \
                const int is_far = fabsf(x) > LG_ANGLE_MOST;                                                           \
                if (pass == LG_ASKING)                                                                                 \
                        *far |= is_far;                                                                                \
                if (pass == LG_FAR)                                                                                    \
                        return lg_select_f32(is_far, (float)name((double)x), lg_near_##name##_f32(x));                 \
                return lg_near_##name##_f32(x);                                                                        \
        }
LG_ANGLES(sin)
LG_ANGLES(cos)
#undef LG_ANGLES
#define lg_sin_f64(x, pass, far) sin(x)
#define lg_cos_f64(x, pass, far) cos(x)

#define lg_exp_f64(x) exp(x)
#define lg_exp_minus_f64(x) exp(-(x))
#define lg_expm1_f64(x) expm1(x)
#define lg_log_f64(x) log(x)
#define lg_log1p_f64(x) log1p(x)
#define lg_tanh_f64(x) tanh(x)
#define lg_erf_f64(x) erf(x)
static inline double lg_sigmoid_f64(double x)
{
        const double e = exp(-fabs(x));
        return lg_select_f64(x < 0, e, 1) / (1 + e);
}

static inline double lg_normal_cdf_f64(double x)
{
        return 0.5 * erfc(x * -LG_SQRT1_2);
}
static inline double lg_bell_f64(double x)
{
        return exp(-0.5 * x * x);
}

#define LG_JOIN_(a, b) a##b
#define LG_JOIN(a, b) LG_JOIN_(a, b)
#define LG_OF(name) LG_JOIN(name, LG_SCALAR)
#define LG_MATH(...) LG_OF(lg_math_)(__VA_ARGS__)

#define K(v) ((LG_T)(v))
#define ABS(a) LG_OF(lg_abs_)(a)
#define SIGN(a) LG_OF(lg_sign_)(a)
#define EXP(a) LG_OF(lg_exp_)(a)
#define EXPM1(a) LG_OF(lg_expm1_)(a)
#define LOG(a) LG_OF(lg_log_)(a)
#define LOG1P(a) LG_OF(lg_log1p_)(a)
#define SQRT(a) LG_MATH(sqrt, a)
#define RSQRT(a) (K(1) / LG_MATH(sqrt, a))
#define SIN(a) LG_OF(lg_sin_)(a, pass, &far)
#define COS(a) LG_OF(lg_cos_)(a, pass, &far)
#define TANH(a) LG_OF(lg_tanh_)(a)
#define ERF(a) LG_OF(lg_erf_)(a)
#define ERFC(a) LG_MATH(erfc, a)
#define EXP2(a) LG_MATH(exp2, a)
#define LOG2(a) LG_MATH(log2, a)
#define LOG10(a) LG_MATH(log10, a)
#define TAN(a) LG_MATH(tan, a)
#define ASIN(a) LG_MATH(asin, a)
#define ACOS(a) LG_MATH(acos, a)
#define ATAN(a) LG_MATH(atan, a)
#define ATAN2(a, b) LG_MATH(atan2, a, b)
#define SINH(a) LG_MATH(sinh, a)
#define COSH(a) LG_MATH(cosh, a)
#define ASINH(a) LG_MATH(asinh, a)
#define ACOSH(a) LG_MATH(acosh, a)
#define ATANH(a) LG_MATH(atanh, a)
#define FLOOR(a) LG_MATH(floor, a)
#define CEIL(a) LG_MATH(ceil, a)
#define ROUND(a) LG_MATH(rint, a)
#define TRUNC(a) LG_MATH(trunc, a)
#define FMOD(a, b) LG_OF(lg_fmod_)(a, b)
#define REMAINDER(a, b) LG_OF(lg_remainder_)(a, b)
#define FLOOR_DIVIDE(a, b) LG_OF(lg_floor_divide_)(a, b)
#define SIGMOID(a) LG_OF(lg_sigmoid_)(a)
#define POW(a, b) LG_OF(lg_pow_)(a, b)
#define MIN(a, b) LG_OF(lg_min_)(a, b)
#define MAX(a, b) LG_OF(lg_max_)(a, b)
#define SELECT(c, a, b) LG_OF(lg_select_)(c, a, b)

#endif
