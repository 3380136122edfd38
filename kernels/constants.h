/* constants.h - the numbers that formulas of pointwise.def name: for the kernels and for the derivatives in ops. */
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

#endif
