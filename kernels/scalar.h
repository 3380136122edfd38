/* scalar.h - the operators and functions of pointwise.def that are the same C code for the CPU and for CUDA. A device
 * defines beforehand: LG_FN1(name, a) and LG_FN2(name, a, b), which call its function `name` for the type of the
 * formula, and LG_FN, the specifiers of function declarations. */
#ifndef LG_SCALAR_H
#define LG_SCALAR_H

#include "constants.h"
#include "variates.h"

#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define SQUARE(a) ((a) * (a))
#define TWICE(a) (K(2) * (a))
#define ONE_PLUS(a) (K(1) + (a))
#define ONE_MINUS(a) (K(1) - (a))
#define DETACH(a) (a)
#define ABS(a) LG_FN1(abs, a)
#define SIGN(a) LG_FN1(sign, a)
#define EXP(a) LG_FN1(exp, a)
#define EXPM1(a) LG_FN1(expm1, a)
#define LOG(a) LG_FN1(log, a)
#define LOG1P(a) LG_FN1(log1p, a)
#define SQRT(a) LG_FN1(sqrt, a)
#define RSQRT(a) (K(1) / SQRT(a))
#define TANH(a) LG_FN1(tanh, a)
#define ERF(a) LG_FN1(erf, a)
#define ERFC(a) LG_FN1(erfc, a)
#define EXP2(a) LG_FN1(exp2, a)
#define LOG2(a) LG_FN1(log2, a)
#define LOG10(a) LG_FN1(log10, a)
#define TAN(a) LG_FN1(tan, a)
#define ASIN(a) LG_FN1(asin, a)
#define ACOS(a) LG_FN1(acos, a)
#define ATAN(a) LG_FN1(atan, a)
#define ATAN2(a, b) LG_FN2(atan2, a, b)
#define SINH(a) LG_FN1(sinh, a)
#define COSH(a) LG_FN1(cosh, a)
#define ASINH(a) LG_FN1(asinh, a)
#define ACOSH(a) LG_FN1(acosh, a)
#define ATANH(a) LG_FN1(atanh, a)
#define FLOOR(a) LG_FN1(floor, a)
#define CEIL(a) LG_FN1(ceil, a)
#define ROUND(a) LG_FN1(rint, a)
#define TRUNC(a) LG_FN1(trunc, a)
#define FMOD(a, b) LG_FN2(fmod, a, b)
#define REMAINDER(a, b) LG_FN2(remainder, a, b)
#define FLOOR_DIVIDE(a, b) LG_FN2(floor_divide, a, b)
#define SIGMOID(a) LG_FN1(sigmoid, a)
#define POW(a, b) LG_FN2(pow, a, b)
#define MIN(a, b) LG_FN2(min, a, b)
#define MAX(a, b) LG_FN2(max, a, b)
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define AND(a, b) ((int)(a) & (int)(b))
#define OR(a, b) ((int)(a) | (int)(b))
#define HYPOT(a, b) LG_FN2(hypot, a, b)
#define COPYSIGN(a, b) LG_FN2(copysign, a, b)
#define SIGNBIT(a) LG_FN1(signbit, a)
#define LGAMMA(a) LG_FN1(lgamma, a)
#define DIGAMMA(a) LG_FN1(digamma, a)
#define POLYGAMMA(a, n) LG_FN2(polygamma, a, n)
#define NUMBER0 P0
#define ERFINV(a) LG_FN1(erfinv, a)
#define GAMMA_DRAW(a, seed) LG_FN2(gamma_draw, a, seed)
#define GAMMA_SLOPE(a, x) LG_FN2(gamma_slope, a, x)
#define POISSON_DRAW(a, seed) LG_FN2(poisson_draw, a, seed)
#define BITWISE_AND(a, b) ((a) & (b))
#define BITWISE_OR(a, b) ((a) | (b))
#define BITWISE_XOR(a, b) ((a) ^ (b))
#define LEFT_SHIFT(a, b) lg_left_shift_i64(a, b)
#define RIGHT_SHIFT(a, b) lg_right_shift_i64(a, b)
#define LOG_SIGMOID(a) (MIN(a, K(0)) - LOG1P(EXP(-ABS(a))))
#define MISH_GATE(x) TANH(MAX(x, K(0)) + LOG1P(EXP(-ABS(x))))

/* Functions of libm with one argument, without an implementation of their own in vecmath.h. */
#define LG_LIBM(F)                                                                                                     \
        F(exp2)                                                                                                        \
        F(log2) F(log10) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(asinh) F(acosh) F(atanh) F(erfc)
/* Functions that vecmath.h implements for f32; f64 calls libm. */
#define LG_LIBM_F64(F) F(exp) F(expm1) F(log) F(log1p) F(sin) F(cos) F(tanh) F(erf)
/* Functions whose results are correctly rounded (IEEE 754). */
#define LG_LIBM_EXACT(F) F(sqrt) F(floor) F(ceil) F(rint) F(trunc)

/* Returns a % b without the divisions that trap: division by 0 gives quotient 0 and remainder a; by -1, remainder 0. */
LG_FN int64_t lg_fmod_i64(int64_t a, int64_t b)
{
        return b == 0 ? a : b == -1 ? 0 : a % b;
}

LG_FN int64_t lg_floor_divide_i64(int64_t a, int64_t b)
{
        if (b == 0 || b == -1)
                return b == 0 ? 0 : -a;
        return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}

LG_FN int64_t lg_remainder_i64(int64_t a, int64_t b)
{
        const int64_t r = lg_fmod_i64(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Shifts by less than 0 or more than 63 bits: all bits leave; the sign remains on the right. */
LG_FN int64_t lg_left_shift_i64(int64_t a, int64_t b)
{
        return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

LG_FN int64_t lg_right_shift_i64(int64_t a, int64_t b)
{
        return a >> (b < 0 || b > 63 ? 63 : b);
}

/* Returns a^b modulo 2^64. Negative powers are 0, except those of 1 and -1. */
LG_FN int64_t lg_pow_i64(int64_t a, int64_t b)
{
        uint64_t power = b < 0 && a != 1 && a != -1 ? 0 : 1, factor = (uint64_t)a;
        for (uint64_t n = b < 0 ? 0 - (uint64_t)b : (uint64_t)b; n; n >>= 1, factor *= factor)
                power *= n & 1 ? factor : 1;
        return (int64_t)power;
}

#endif
