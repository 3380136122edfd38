/* constants.h - the numbers and the parts that formulas of pointwise.def name: for the kernels and for the derivatives
 * in ops. */
#ifndef LG_CONSTANTS_H
#define LG_CONSTANTS_H

#define LG_LN2 0.69314718055994530942
#define LG_LN10 2.30258509299404568402
#define LG_2_SQRTPI 1.12837916709551257390
#define LG_SQRT1_2 0.70710678118654752440
#define LG_1_SQRT2PI 0.39894228040143267794
#define LG_SQRT2_PI 0.79788456080286535588
/* selu's fixed point: mean 0 and variance 1 go through (Klambauer et al., 2017) */
#define LG_SELU_ALPHA 1.67326324235437728482
#define LG_SELU_SCALE 1.05070098735548049342

/* tanh is 1 and the sigmoid 0 or 1 from here on, and powers are finite in every dtype */
#define WITHIN25(x) MAX(MIN(x, K(25)), K(-25))
/* e^(-x^2 / 2) is 0 from here on, and products of a few such x are finite in every dtype */
#define WITHIN40(x) MAX(MIN(x, K(40)), K(-40))
/* The normal distribution and its density, for devices that have none of their own. */
#ifndef NORMAL_CDF
#define NORMAL_CDF(x) MUL(K(0.5), ERFC(MUL(x, K(-LG_SQRT1_2))))
#define NORMAL_PDF(x) MUL(K(LG_1_SQRT2PI), EXP(MUL(K(-0.5), SQUARE(WITHIN40(x)))))
#endif
/* gelu_tanh is x sigmoid(GELU_ARG(x)) */
#define GELU_ARG(x) MUL(K(2 * LG_SQRT2_PI), MUL(WITHIN25(x), ADD(K(1), MUL(K(0.044715), SQUARE(WITHIN25(x))))))
#define GELU_SLOPE(x) MUL(K(2 * LG_SQRT2_PI), ADD(K(1), MUL(K(0.134145), SQUARE(WITHIN25(x)))))
/* a^b does not change with a, though b a^(b - 1) says 0 times infinity. */
#define POW_IS_FLAT(a, b) AND(EQ(b, K(0)), NE(MUL(K(0), DIV(K(1), a)), K(0)))
/* 1 - x^2 without cancellation near 1; near 0, where its derivative would cancel, and at 1, where that is infinite
 * twice, by the square. */
#define BY_SQUARE(x) OR(LT(ABS(x), K(0.5)), EQ(ABS(x), K(1)))
#define ONE_MINUS_SQUARE(x) SELECT(BY_SQUARE(x), SUB(K(1), SQUARE(x)), MUL(SUB(K(1), x), ADD(K(1), x)))
/* 1 + x^2 is (1 + FOLDED(x)^2) / FOLD(x)^2, of squares that do not overflow: FOLD is 1 and FOLDED x where |x| < 1, else
 * both are 1 / x. */
#define FOLD(x) DIV(K(1), SELECT(LT(ABS(x), K(1)), K(1), x))
#define FOLDED(x) SELECT(LT(ABS(x), K(1)), x, FOLD(x))
/* 0 of g's shape, of an infinite g, too. */
#define NONE_OF(g) SELECT(NE(K(0), K(0)), g, K(0))
/* a^2 + b^2 is REACH(a, b)^2 (1 + TILT(a, b)^2), again of squares that do not overflow: REACH is the number that is
 * farther from 0, or infinite where 1 / REACH would be, and TILT the other one divided by it. */
#define IS_STEEP(a, b) GT(ABS(a), ABS(b))
#define FARTHER(a, b) SELECT(IS_STEEP(a, b), a, b)
#define REACH(a, b) SELECT(EQ(ABS(DIV(K(1), FARTHER(a, b))), K(INFINITY)), K(INFINITY), FARTHER(a, b))
#define TILT(a, b) DIV(SELECT(IS_STEEP(a, b), b, a), REACH(a, b))
/* A divisor; at a = b = 0 one that makes the quotient and all of its derivatives 0. */
#define OR_INFINITE(divisor, a, b) SELECT(AND(EQ(a, K(0)), EQ(b, K(0))), K(INFINITY), divisor)
/* a - b, which is 0 also of equal infinities. */
#define GAP(a, b) SELECT(AND(EQ(a, b), NE(SUB(a, b), K(0))), K(0), SUB(a, b))
/* min(x, 0), whose derivative at 0 is 0, where that of MIN is a half. */
#define AT_MOST_0(x) SELECT(GE(x, K(0)), K(0), x)
/* x - tanh(x): below 1, where subtracting would leave few digits, by the continued fraction of tanh up to 15 (2^-45).
 */
#define TANHSHRINK_TOP(s) ADD(K(675675), MUL(s, ADD(K(45045), MUL(s, ADD(K(594), s)))))
#define TANHSHRINK_BOTTOM(s) ADD(K(2027025), MUL(s, ADD(K(945945), MUL(s, ADD(K(51975), MUL(s, ADD(K(630), s)))))))
#define TANHSHRINK(x)                                                                                                  \
        SELECT(LT(ABS(x), K(1)), MUL(x, MUL(SQUARE(x), DIV(TANHSHRINK_TOP(SQUARE(x)), TANHSHRINK_BOTTOM(SQUARE(x))))), \
               SUB(x, TANH(x)))
#define LOGADDEXP(a, b) ADD(MAX(a, b), LOG1P(EXP(NEG(ABS(GAP(a, b))))))

#endif
