/* scalar.h - the words of pointwise.def's vocabulary that mean the same in C for the CPU and for CUDA. */
#ifndef LG_SCALAR_H
#define LG_SCALAR_H

#include "constants.h"

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
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define AND(a, b) ((int)(a) & (int)(b))
#define OR(a, b) ((int)(a) | (int)(b))
#define LOG_SIGMOID(a) (MIN(a, K(0)) - LOG1P(EXP(-ABS(a))))
#define MISH_GATE(x) TANH(MAX(x, K(0)) + LOG1P(EXP(-ABS(x))))

#endif
