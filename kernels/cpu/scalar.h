/* scalar.h - the operators of pointwise.def as scalar C code for the type LG_T (see both.inc). */
#ifndef LG_CPU_SCALAR_H
#define LG_CPU_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "vecmath.h"
#define LG_FN static inline
#define LG_FN1(name, a) LG_OF(lg_##name)(a)
#define LG_FN2(name, a, b) LG_OF(lg_##name)(a, b)
#define K(v) ((LG_T)(v))
#define SIN(a) LG_OF(lg_sin_of)(a, pass, &far)
#define COS(a) LG_OF(lg_cos_of)(a, pass, &far)
#define SELECT(c, a, b) LG_OF(lg_select)(c, a, b)
#define NORMAL_CDF(x) LG_OF(lg_normal_cdf)(x)
#define NORMAL_PDF(x) (K(LG_1_SQRT2PI) * LG_OF(lg_bell)(x))
#include "../scalar.h"

#if LG_MVEC
/* Declares glibc's vector functions, which its headers declare only under -ffast-math. Their errors (up to 4 ulp) are
 * acceptable without this flag, too. */
#define LG_MVEC_CLONE __attribute__((simd("notinbranch"))) extern
#define LG_MVEC_F64(name) LG_MVEC_CLONE double name(double);
#define LG_MVEC_BOTH(name)                                                                                             \
        LG_MVEC_CLONE float name##f(float);                                                                            \
        LG_MVEC_CLONE double name(double);
LG_LIBM(LG_MVEC_BOTH)
LG_LIBM_F64(LG_MVEC_F64)
LG_MVEC_CLONE float powf(float, float);
LG_MVEC_CLONE double pow(double, double);
LG_MVEC_CLONE float atan2f(float, float);
LG_MVEC_CLONE double atan2(double, double);
#endif

#define LG_FUNCTION_F64(name)                                                                                          \
        LG_LANE double lg_##name##_f64(double x)                                                                       \
        {                                                                                                              \
                return name(x);                                                                                        \
        }
#define LG_FUNCTION_BOTH(name)                                                                                         \
        LG_FUNCTION_F64(name)                                                                                          \
        LG_LANE float lg_##name##_f32(float x)                                                                         \
        {                                                                                                              \
                return name##f(x);                                                                                     \
        }
LG_LIBM(LG_FUNCTION_BOTH)
LG_LIBM_EXACT(LG_FUNCTION_BOTH)
LG_LIBM_F64(LG_FUNCTION_F64)
/* Functions of special.h and variates.h: f32 is computed in f64. */
#define LG_F64_FOR_F32(name, parameters, ...)                                                                          \
        static inline double lg_##name##_f64 parameters(double)                                                        \
        {                                                                                                              \
                return lg_##name(__VA_ARGS__);                                                                         \
        }                                                                                                              \
        static inline float lg_##name##_f32 parameters(float)                                                          \
        {                                                                                                              \
                return (float)lg_##name(__VA_ARGS__);                                                                  \
        }
#define LG_ONE(type) (type a)
#define LG_TWO(type) (type a, type b)
#define LG_SPECIAL_OF_ONE(name) LG_F64_FOR_F32(name, LG_ONE, a)
#define LG_SPECIAL_OF_TWO(name) LG_F64_FOR_F32(name, LG_TWO, a, b)
LG_SPECIAL1(LG_SPECIAL_OF_ONE)
LG_SPECIAL2(LG_SPECIAL_OF_TWO)
#undef LG_F64_FOR_F32
#undef LG_ONE
#undef LG_TWO
#undef LG_SPECIAL_OF_ONE
#undef LG_SPECIAL_OF_TWO
/* Rounding functions do nothing for integers. */
#define lg_floor_i64(x) (x)
#define lg_ceil_i64(x) (x)
#define lg_rint_i64(x) (x)
#define lg_trunc_i64(x) (x)
#define lg_atan2_f32 atan2f
#define lg_atan2_f64 atan2
#define lg_copysign_f32 copysignf
#define lg_copysign_f64 copysign
#define lg_hypot_f32 hypotf
#define lg_hypot_f64 hypot
#define lg_signbit_f32(x) (signbit(x) != 0)
#define lg_signbit_f64(x) (signbit(x) != 0)
#define lg_signbit_i64(x) ((x) < 0)
#define lg_pow_f32 powf
#define lg_pow_f64 pow
#define lg_fmod_f32 fmodf
#define lg_fmod_f64 fmod
#define lg_abs_f32 fabsf
#define lg_abs_f64 fabs
#define lg_abs_i64(x) ((x) < 0 ? -(x) : (x))

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

/* Maximum and minimum, which return NaN if a or b is NaN, and the sign of x. */
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

/* Remainder with the sign of b, also for a zero result, and floor(a / b) computed from the exact remainder, because
 * floor of the rounded quotient may be one too large. */
#define LG_REMAINDER(type, sfx)                                                                                        \
        static inline type lg_remainder_##sfx(type a, type b)                                                          \
        {                                                                                                              \
                type r = lg_fmod_##sfx(a, b), same = lg_copysign_##sfx(r, b);                                          \
                return lg_select_##sfx(same == r, same, r + b);                                                        \
        }
#define LG_FLOOR_DIVIDE(type, sfx)                                                                                     \
        static inline type lg_floor_divide_##sfx(type a, type b)                                                       \
        {                                                                                                              \
                type r = lg_fmod_##sfx(a, b), q = (a - r) / b;                                                         \
                q -= (type)((r != 0) & ((r < 0) != (b < 0)));                                                          \
                type whole = lg_floor_##sfx(q);                                                                        \
                whole += (type)(q - whole > (type)0.5);                                                                \
                whole = lg_select_##sfx(whole == 0, lg_copysign_##sfx(0, a / b), whole);                               \
                return lg_select_##sfx(b == 0, a / b, whole);                                                          \
        }
LG_REMAINDER(float, f32)
LG_REMAINDER(double, f64)
LG_FLOOR_DIVIDE(float, f32)
LG_FLOOR_DIVIDE(double, f64)
#undef LG_REMAINDER
#undef LG_FLOOR_DIVIDE

/* Values of `pass`, the pass of a loop over a formula: see pointwise_loops.inc. */
enum { LG_ASKING, LG_FAR, LG_NEAR };

/* sin and cos for formulas. In the pass LG_FAR, angles above LG_ANGLE_MOST are computed in f64; LG_ASKING sets *far. */
#define LG_ANGLES(name)                                                                                                \
        LG_LANE float lg_##name##_of_f32(float x, int pass, int *far)                                                  \
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
#define lg_sin_of_f64(x, pass, far) sin(x)
#define lg_cos_of_f64(x, pass, far) cos(x)
#define lg_exp_minus_f64(x) exp(-(x))
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

#endif
