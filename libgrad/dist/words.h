/* words.h - words of the formulas of distributions, as ops. The includer defines A, the first parameter, for the dtype
 * and device of constants. Private to libgrad/dist/. */
#ifndef LG_DIST_WORDS_H
#define LG_DIST_WORDS_H

#include <math.h>
#include "../kernels/constants.h"

#define V1(op, a) lg_##op(a)
#define V2(op, a, b) lg_##op(a, b)
#define VN(op, a, number) lg_##op(a, number)
#define V3(op, a, b, c) lg_##op(a, b, c)
#include "ops/vocabulary.h"
#define K(value) lg__constant(A, value)
#define COPY(a) lg_positive(a)
#define EXPM1(a) lg_expm1(a)
#define LOG1P(a) lg_log1p(a)
#define TAN(a) lg_tan(a)
#define FLOOR(a) lg_floor(a)
#define LGAMMA(a) lg_lgamma(a)
#define XLOGY(a, b) lg_xlogy(a, b)
/* Sum over the last dimension, which is removed or, in LINE_TOTAL, kept. */
#define TOTAL(a) lg_sum(a, .dims = LG_DIMS(-1))
#define LINE_TOTAL(a) lg_sum(a, .dims = LG_DIMS(-1), .keep_dim = true)
#define LOG_BETA(a, b) SUB(ADD(LGAMMA(a), LGAMMA(b)), LGAMMA(ADD(a, b)))

#define LG_EULER 0.57721566490153286061
#define LG_LOG_SQRT_2PI 0.91893853320467274178
#define LG_NORMAL_ENTROPY (0.5 + LG_LOG_SQRT_2PI)
#define NORMAL_LOG_PROB(x, loc, scale)                                                                                 \
        SUB(MUL(K(-0.5), SQUARE(DIV(SUB(x, loc), scale))), ADD(LOG(scale), K(LG_LOG_SQRT_2PI)))

#endif
