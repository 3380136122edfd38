/* pointwise_grad.cu - the derivatives of the functions of one input of pointwise.def. */
#include "pointwise.h"

#define UNARY(name, types, params, formula, dx, ...) FORMULA(name##_da, SLOPE, dx) KERNEL_FLOAT(name##_da, -1, false)
#include "../pointwise.def"
