/* scalar.h - the vocabulary of pointwise.def as scalar code, for the type that LG_SCALAR names (f32, f64 or i64). */
#ifndef LG_CPU_SCALAR_H
#define LG_CPU_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LG_2_SQRTPI 1.12837916709551257390
#define LG_SQRT1_2 0.70710678118654752440
#define LG_1_SQRT2PI 0.39894228040143267794
#define LG_SQRT2_PI 0.79788456080286535588

#if LG_MVEC
/* glibc announces its vector functions only under -ffast-math; their errors (4 ulp) are small enough without. */
#define LG_VECTOR __attribute__((simd("notinbranch"))) extern
LG_VECTOR float expf(float);
LG_VECTOR float logf(float);
LG_VECTOR float sinf(float);
LG_VECTOR float cosf(float);
LG_VECTOR float powf(float, float);
LG_VECTOR float expm1f(float);
LG_VECTOR float log1pf(float);
LG_VECTOR float tanhf(float);
LG_VECTOR float erff(float);
LG_VECTOR double exp(double);
LG_VECTOR double log(double);
LG_VECTOR double sin(double);
LG_VECTOR double cos(double);
LG_VECTOR double pow(double, double);
LG_VECTOR double expm1(double);
LG_VECTOR double log1p(double);
LG_VECTOR double tanh(double);
LG_VECTOR double erf(double);
#endif

/* Both sides are computed and the bits chosen: a choice by branch would keep calls from being vectorised. */
static inline float lg_select_f32(int c, float a, float b)
{
        uint32_t x, y, m = 0u - (uint32_t)c;
        memcpy(&x, &a, sizeof x);
        memcpy(&y, &b, sizeof y);
        x = (x & m) | (y & ~m);
        memcpy(&a, &x, sizeof a);
        return a;
}

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
                return lg_select_##sfx(x == x, (type)((x > 0) - (x < 0)), x);                                          \
        }
LG_EXTREMES(float, f32)
LG_EXTREMES(double, f64)
LG_EXTREMES(int64_t, i64)
#undef LG_EXTREMES

#define lg_math_f32(name, ...) name##f(__VA_ARGS__)
#define lg_math_f64(name, ...) name(__VA_ARGS__)
#define lg_abs_f32(x) fabsf(x)
#define lg_abs_f64(x) fabs(x)
#define lg_abs_i64(x) ((x) < 0 ? -(x) : (x))

#define LG_JOIN_(a, b) a##b
#define LG_JOIN(a, b) LG_JOIN_(a, b)
#define LG_OF(name) LG_JOIN(name, LG_SCALAR)
#define LG_MATH(...) LG_OF(lg_math_)(__VA_ARGS__)

#define K(v) ((LG_T)(v))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define ABS(a) LG_OF(lg_abs_)(a)
#define SIGN(a) LG_OF(lg_sign_)(a)
#define SQUARE(a) ((a) * (a))
#define EXP(a) LG_MATH(exp, a)
#define EXPM1(a) LG_MATH(expm1, a)
#define LOG(a) LG_MATH(log, a)
#define LOG1P(a) LG_MATH(log1p, a)
#define SQRT(a) LG_MATH(sqrt, a)
#define RSQRT(a) (K(1) / LG_MATH(sqrt, a))
#define SIN(a) LG_MATH(sin, a)
#define COS(a) LG_MATH(cos, a)
#define TANH(a) LG_MATH(tanh, a)
#define ERF(a) LG_MATH(erf, a)
#define SIGMOID(a) (K(1) / (K(1) + LG_MATH(exp, -(a))))
#define POW(a, b) LG_MATH(pow, a, b)
#define MIN(a, b) LG_OF(lg_min_)(a, b)
#define MAX(a, b) LG_OF(lg_max_)(a, b)
#define SELECT(c, a, b) LG_OF(lg_select_)(c, a, b)
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define AND(a, b) ((a) & (b))
#define GELU_ARG(x) (K(LG_SQRT2_PI) * ((x) + K(0.044715) * ((x) * (x) * (x))))

#endif
