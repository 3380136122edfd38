/* scalar.h - the vocabulary of pointwise.def as device code, overloaded for float, double and int64_t. */
#ifndef LG_CUDA_SCALAR_H
#define LG_CUDA_SCALAR_H

#include "cuda.h"
#define LG_FN static __device__ inline
#define LG_FN1(name, a) lgm_##name((T)(a))
#define LG_FN2(name, a, b) lgm_##name((T)(a), (T)(b))
#define K(v) ((T)(v))
#define SIN(a) LG_FN1(sin, a)
#define COS(a) LG_FN1(cos, a)
#define SELECT(c, a, b) lgm_select((c) != 0, (T)(a), (T)(b))
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
LG_LIBM(LG_MATH1)
LG_LIBM_F64(LG_MATH1)
LG_LIBM_EXACT(LG_MATH1)
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
LG_MATH2(hypot)
#undef LG_MATH2
#define LG_MATH_I64(name)                                                                                              \
        static __device__ inline int64_t lgm_##name(int64_t a, int64_t b)                                              \
        {                                                                                                              \
                return lg_##name##_i64(a, b);                                                                          \
        }
LG_MATH_I64(fmod)
LG_MATH_I64(pow)
LG_MATH_I64(remainder)
LG_MATH_I64(floor_divide)
#undef LG_MATH_I64

/* Functions of special.h and variates.h: f32 is computed in f64. */
#define LG_MATH_F64_1(name)                                                                                            \
        template <typename T> static __device__ inline T lgm_##name(T x)                                               \
        {                                                                                                              \
                return (T)lg_##name((double)x);                                                                        \
        }
#define LG_MATH_F64_2(name)                                                                                            \
        template <typename T> static __device__ inline T lgm_##name(T a, T b)                                          \
        {                                                                                                              \
                return (T)lg_##name((double)a, (double)b);                                                             \
        }
LG_SPECIAL1(LG_MATH_F64_1)
LG_SPECIAL2(LG_MATH_F64_2)
#undef LG_MATH_F64_1
#undef LG_MATH_F64_2
template <typename T> static __device__ inline bool lgm_signbit(T x)
{
        return lgm_copysign((T)1, x) < 0;
}
static __device__ inline bool lgm_signbit(int64_t x)
{
        return x < 0;
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
/* The sigmoid. Uses e^-|x|, which cannot overflow. */
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
#endif
