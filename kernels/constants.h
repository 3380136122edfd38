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
/* exp(-x^2 / 2) is 0 from here on, and x^2 is finite in every dtype */
#define WITHIN40(x) MAX(MIN(x, K(40)), K(-40))
/* gelu_tanh is x sigmoid(GELU_ARG(x)) */
#define GELU_ARG(x) MUL(K(2 * LG_SQRT2_PI), MUL(WITHIN25(x), ADD(K(1), MUL(K(0.044715), SQUARE(WITHIN25(x))))))
#define GELU_SLOPE(x) MUL(K(2 * LG_SQRT2_PI), ADD(K(1), MUL(K(0.134145), SQUARE(WITHIN25(x)))))
/* a^b does not change with a, though b a^(b - 1) says 0 times infinity. */
#define POW_IS_FLAT(a, b) AND(EQ(b, K(0)), NE(MUL(K(0), DIV(K(1), a)), K(0)))
/* A divisor; at a = b = 0 one that makes the quotient and all of its derivatives 0. */
#define OR_INFINITE(divisor, a, b) SELECT(AND(EQ(a, K(0)), EQ(b, K(0))), K(INFINITY), divisor)

#endif
