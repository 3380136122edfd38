/* constants.h - numeric constants and sub-formulas for formulas of pointwise.def, in kernels and in libgrad/ops. */
#ifndef LG_CONSTANTS_H
#define LG_CONSTANTS_H

#define LG_LN2 0.69314718055994530942
#define LG_LN10 2.30258509299404568402
#define LG_2_SQRTPI 1.12837916709551257390
#define LG_PI 3.14159265358979323846
#define LG_SQRTPI_2 0.88622692545275801365
#define LG_SQRT1_2 0.70710678118654752440
#define LG_1_SQRT2PI 0.39894228040143267794
#define LG_SQRT2_PI 0.79788456080286535588
/* Constants of SELU, for which mean 0 and variance 1 are a fixed point (Klambauer et al., 2017). */
#define LG_SELU_ALPHA 1.67326324235437728482
#define LG_SELU_SCALE 1.05070098735548049342

/* Clamps x to [-25, 25]: beyond, tanh is +-1 and the sigmoid 0 or 1. Powers of the result are finite in every dtype. */
#define WITHIN25(x) MAX(MIN(x, K(25)), K(-25))
/* Clamps x to [-40, 40]: beyond, e^(-x^2 / 2) is 0, and products of a few clamped x are finite in every dtype. */
#define WITHIN40(x) MAX(MIN(x, K(40)), K(-40))
/* Distribution function and density of the standard normal distribution, for devices without functions of their own. */
#ifndef NORMAL_CDF
#define NORMAL_CDF(x) MUL(K(0.5), ERFC(MUL(x, K(-LG_SQRT1_2))))
#define NORMAL_PDF(x) MUL(K(LG_1_SQRT2PI), EXP(MUL(K(-0.5), SQUARE(WITHIN40(x)))))
#endif
/* gelu_tanh(x) = x sigmoid(GELU_ARG(x)). GELU_SLOPE is the derivative of GELU_ARG. */
#define GELU_ARG(x) MUL(K(2 * LG_SQRT2_PI), MUL(WITHIN25(x), ADD(K(1), MUL(K(0.044715), SQUARE(WITHIN25(x))))))
#define GELU_SLOPE(x) MUL(K(2 * LG_SQRT2_PI), ADD(K(1), MUL(K(0.134145), SQUARE(WITHIN25(x)))))
/* Tests whether a^b is constant in a (b is 0) although the formula b a^(b - 1) would compute 0 times infinity. */
#define POW_IS_FLAT(a, b) AND(EQ(b, K(0)), NE(MUL(K(0), DIV(K(1), a)), K(0)))
/* 1 - x^2 without cancellation near 1: (1 - x)(1 + x). For |x| < 0.5 the derivative of the product would cancel, and at
 * |x| = 1 it would be infinite twice: there x is squared. */
#define BY_SQUARE(x) OR(LT(ABS(x), K(0.5)), EQ(ABS(x), K(1)))
#define ONE_MINUS_SQUARE(x) SELECT(BY_SQUARE(x), SUB(K(1), SQUARE(x)), MUL(SUB(K(1), x), ADD(K(1), x)))
/* 1 + x^2 = (1 + FOLDED(x)^2) / FOLD(x)^2, with squares that cannot overflow: FOLD is 1 and FOLDED is x if |x| < 1,
 * else both are 1 / x. */
#define FOLD(x) DIV(K(1), SELECT(LT(ABS(x), K(1)), K(1), x))
#define FOLDED(x) SELECT(LT(ABS(x), K(1)), x, FOLD(x))
/* Zeros with the shape of g, also where g is infinite or NaN. */
#define NONE_OF(g) SELECT(NE(K(0), K(0)), g, K(0))
/* a^2 + b^2 = REACH(a, b)^2 (1 + TILT(a, b)^2), with squares that cannot overflow: REACH is the operand with the
 * greater magnitude, or infinity if 1 / REACH would overflow; TILT is the other operand divided by REACH. */
#define IS_STEEP(a, b) GT(ABS(a), ABS(b))
#define FARTHER(a, b) SELECT(IS_STEEP(a, b), a, b)
#define REACH(a, b) SELECT(EQ(ABS(DIV(K(1), FARTHER(a, b))), K(INFINITY)), K(INFINITY), FARTHER(a, b))
#define TILT(a, b) DIV(SELECT(IS_STEEP(a, b), b, a), REACH(a, b))
/* Replaces the divisor by infinity where a = b = 0, so that the quotient and all of its derivatives are 0 there. */
#define OR_INFINITE(divisor, a, b) SELECT(AND(EQ(a, K(0)), EQ(b, K(0))), K(INFINITY), divisor)
/* a - b, or 0 where a and b are the same infinity. */
#define GAP(a, b) SELECT(AND(EQ(a, b), NE(SUB(a, b), K(0))), K(0), SUB(a, b))
/* min(x, 0) whose derivative at 0 is 0; MIN would give a half. */
#define AT_MOST_0(x) SELECT(GE(x, K(0)), K(0), x)
/* x - tanh(x). For |x| < 1, where the subtraction would cancel, a fraction of polynomials is used: the continued
 * fraction of tanh up to the term 15 (error 2^-45). */
#define TANHSHRINK_TOP(s) ADD(K(675675), MUL(s, ADD(K(45045), MUL(s, ADD(K(594), s)))))
#define TANHSHRINK_BOTTOM(s) ADD(K(2027025), MUL(s, ADD(K(945945), MUL(s, ADD(K(51975), MUL(s, ADD(K(630), s)))))))
#define TANHSHRINK(x)                                                                                                  \
        SELECT(LT(ABS(x), K(1)), MUL(x, MUL(SQUARE(x), DIV(TANHSHRINK_TOP(SQUARE(x)), TANHSHRINK_BOTTOM(SQUARE(x))))), \
               SUB(x, TANH(x)))
/* x, or 1 where x is 0: a divisor. */
#define OR_ONE(x) SELECT(EQ(x, K(0)), K(1), x)
/* Whether fmax and fmin take a: it is on the right side of b, or b is NaN. */
#define IS_TAKEN(compare, a, b) OR(compare(a, b), NE(b, b))
#define LOGADDEXP(a, b) ADD(MAX(a, b), LOG1P(EXP(NEG(ABS(GAP(a, b))))))

#endif
