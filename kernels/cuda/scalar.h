/* scalar.h - the vocabulary of pointwise.def as device code, for float, double and int64_t by overloading. */
#ifndef LG_CUDA_SCALAR_H
#define LG_CUDA_SCALAR_H

#include "cuda.h"
#include "../scalar.h"

#define LG_MATH1(name)                                                                                                 \
        static __device__ inline float lgm_##name(float x)                                                             \
        {                                                                                                              \
                return name##f(x);                                                                                     \
        }                                                                                                              \
        static __device__ inline double lgm_##name(double x)                                                           \
        {                                                                                                              \
                return name(x);                                                                                        \
        }                                                                                                              \
        static __device__ inline int64_t lgm_##name(int64_t x)                                                         \
        {                                                                                                              \
                return x;                                                                                              \
        }
LG_MATH1(exp)
LG_MATH1(expm1)
LG_MATH1(log)
LG_MATH1(log1p)
LG_MATH1(sqrt)
LG_MATH1(sin)
LG_MATH1(cos)
LG_MATH1(tanh)
LG_MATH1(erf)
LG_MATH1(erfc)
LG_MATH1(exp2)
LG_MATH1(log2)
LG_MATH1(log10)
LG_MATH1(tan)
LG_MATH1(asin)
LG_MATH1(acos)
LG_MATH1(atan)
LG_MATH1(sinh)
LG_MATH1(cosh)
LG_MATH1(asinh)
LG_MATH1(acosh)
LG_MATH1(atanh)
LG_MATH1(floor)
LG_MATH1(ceil)
LG_MATH1(rint)
LG_MATH1(trunc)
#undef LG_MATH1
#define LG_MATH2(name)                                                                                                 \
        static __device__ inline float lgm_##name(float a, float b)                                                    \
        {                                                                                                              \
                return name##f(a, b);                                                                                  \
        }                                                                                                              \
        static __device__ inline double lgm_##name(double a, double b)                                                 \
        {                                                                                                              \
                return name(a, b);                                                                                     \
        }
LG_MATH2(pow)
LG_MATH2(atan2)
LG_MATH2(fmod)
LG_MATH2(copysign)
#undef LG_MATH2
/* Without the divisors that trap: 0, and -1 of the smallest integer. By 0 the quotient is 0 and the rest is a. */
static __device__ inline int64_t lgm_fmod(int64_t a, int64_t b)
{
        return b == 0 ? a : b == -1 ? 0 : a % b;
}
/* Wraps around. A negative power is 0, except one of 1 or -1. */
static __device__ inline int64_t lgm_pow(int64_t a, int64_t b)
{
        uint64_t power = b < 0 && a != 1 && a != -1 ? 0 : 1, factor = (uint64_t)a;
        for (uint64_t n = b < 0 ? 0 - (uint64_t)b : (uint64_t)b; n; n >>= 1, factor *= factor)
                power *= n & 1 ? factor : 1;
        return (int64_t)power;
}
static __device__ inline int64_t lgm_atan2(int64_t a, int64_t b)
{
        (void)b;
        return a;
}

template <typename T> static __device__ inline T lgm_select(bool c, T a, T b)
{
        return c ? a : b;
}
template <typename T> static __device__ inline T lgm_max(T a, T b)
{
        return a > b || a != a ? a : b;
}
template <typename T> static __device__ inline T lgm_min(T a, T b)
{
        return a < b || a != a ? a : b;
}
template <typename T> static __device__ inline T lgm_abs(T x)
{
        return x < 0 || (x == 0 && (T)0.5 != 0) ? (T)(0 - x) : x;
}
static __device__ inline float lgm_abs(float x)
{
        return fabsf(x);
}
static __device__ inline double lgm_abs(double x)
{
        return fabs(x);
}
template <typename T> static __device__ inline T lgm_sign(T x)
{
        return (T)((x > 0) - (x < 0));
}
template <typename T> static __device__ inline T lgm_remainder(T a, T b)
{
        T r = lgm_fmod(a, b), same = lgm_copysign(r, b);
        return same == r ? same : r + b;
}
static __device__ inline int64_t lgm_remainder(int64_t a, int64_t b)
{
        int64_t r = lgm_fmod(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/* By the exponential that cannot overflow. */
template <typename T> static __device__ inline T lgm_sigmoid(T x)
{
        T e = lgm_exp(-lgm_abs(x));
        return (x < 0 ? e : (T)1) / (1 + e);
}
template <typename T> static __device__ inline T lgm_floor_divide(T a, T b)
{
        T r = lgm_fmod(a, b), q = (a - r) / b;
        q -= (T)(r != 0 && (r < 0) != (b < 0));
        T whole = lgm_floor(q);
        whole += (T)(q - whole > (T)0.5);
        whole = whole == 0 ? lgm_copysign((T)0, a / b) : whole;
        return b == 0 ? a / b : whole;
}
static __device__ inline int64_t lgm_floor_divide(int64_t a, int64_t b)
{
        if (b == 0 || b == -1)
                return b == 0 ? 0 : -a;
        return a / b - (int64_t)(a % b != 0 && (a < 0) != (b < 0));
}

#define K(v) ((T)(v))
#define ABS(a) lgm_abs((T)(a))
#define SIGN(a) lgm_sign((T)(a))
#define EXP(a) lgm_exp((T)(a))
#define EXPM1(a) lgm_expm1((T)(a))
#define LOG(a) lgm_log((T)(a))
#define LOG1P(a) lgm_log1p((T)(a))
#define SQRT(a) lgm_sqrt((T)(a))
#define RSQRT(a) (K(1) / lgm_sqrt((T)(a)))
#define SIN(a) lgm_sin((T)(a))
#define COS(a) lgm_cos((T)(a))
#define TANH(a) lgm_tanh((T)(a))
#define ERF(a) lgm_erf((T)(a))
#define ERFC(a) lgm_erfc((T)(a))
#define EXP2(a) lgm_exp2((T)(a))
#define LOG2(a) lgm_log2((T)(a))
#define LOG10(a) lgm_log10((T)(a))
#define TAN(a) lgm_tan((T)(a))
#define ASIN(a) lgm_asin((T)(a))
#define ACOS(a) lgm_acos((T)(a))
#define ATAN(a) lgm_atan((T)(a))
#define ATAN2(a, b) lgm_atan2((T)(a), (T)(b))
#define SINH(a) lgm_sinh((T)(a))
#define COSH(a) lgm_cosh((T)(a))
#define ASINH(a) lgm_asinh((T)(a))
#define ACOSH(a) lgm_acosh((T)(a))
#define ATANH(a) lgm_atanh((T)(a))
#define FLOOR(a) lgm_floor((T)(a))
#define CEIL(a) lgm_ceil((T)(a))
#define ROUND(a) lgm_rint((T)(a))
#define TRUNC(a) lgm_trunc((T)(a))
#define FMOD(a, b) lgm_fmod((T)(a), (T)(b))
#define REMAINDER(a, b) lgm_remainder((T)(a), (T)(b))
#define FLOOR_DIVIDE(a, b) lgm_floor_divide((T)(a), (T)(b))
#define SIGMOID(a) lgm_sigmoid((T)(a))
#define POW(a, b) lgm_pow((T)(a), (T)(b))
#define MIN(a, b) lgm_min((T)(a), (T)(b))
#define MAX(a, b) lgm_max((T)(a), (T)(b))
#define SELECT(c, a, b) lgm_select((c) != 0, (T)(a), (T)(b))

#endif
