/* vocabulary.h - the words of pointwise.def for the host: what V1, V2 and V3 make of them is up to the includer
 * (calls of ops, or masks of what is saved). */
#define NEG(a) V1(neg, a)
#define ABS(a) V1(abs, a)
#define SIGN(a) V1(sign, a)
#define SQUARE(a) V1(square, a)
#define EXP(a) V1(exp, a)
#define EXPM1(a) V1(expm1, a)
#define LOG(a) V1(log, a)
#define LOG1P(a) V1(log1p, a)
#define SQRT(a) V1(sqrt, a)
#define RSQRT(a) V1(rsqrt, a)
#define SIN(a) V1(sin, a)
#define COS(a) V1(cos, a)
#define TANH(a) V1(tanh, a)
#define ERF(a) V1(erf, a)
#define SIGMOID(a) V1(sigmoid, a)
#define ADD(a, b) V2(add, a, b)
#define SUB(a, b) V2(sub, a, b)
#define MUL(a, b) V2(mul, a, b)
#define DIV(a, b) V2(div, a, b)
#define POW(a, b) V2(pow, a, b)
#define MAX(a, b) V2(maximum, a, b)
#define MIN(a, b) V2(minimum, a, b)
#define EQ(a, b) V2(eq, a, b)
#define NE(a, b) V2(ne, a, b)
#define LT(a, b) V2(lt, a, b)
#define LE(a, b) V2(le, a, b)
#define GT(a, b) V2(gt, a, b)
#define GE(a, b) V2(ge, a, b)
#define AND(a, b) V2(mul, a, b)
#define SELECT(c, a, b) V3(where, c, a, b)
#define GELU_ARG(x) MUL(K(LG_SQRT2_PI), ADD(x, MUL(K(0.044715), MUL(SQUARE(x), x))))

#define LG_2_SQRTPI 1.12837916709551257390
#define LG_SQRT1_2 0.70710678118654752440
#define LG_1_SQRT2PI 0.39894228040143267794
#define LG_SQRT2_PI 0.79788456080286535588
