/* pointwise_grad.cu - the derivatives of the functions of one input of pointwise.def. */
#include "pointwise.h"

#define BINARY(...)
#define TERNARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#define G v0
#define X v1
#define Y v3
#define UNARY(name, types, params, formula, dx, ...) FORMULA(name##_da, dx) KERNEL_FLOAT(name##_da, -1, false)
#include "../pointwise.def"
