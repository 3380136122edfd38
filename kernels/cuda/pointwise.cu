/* pointwise.cu - the functions of one input of pointwise.def. */
#include "pointwise.h"

#define UNARY(name, types, params, formula, ...) FORMULA(name, INPUTS, formula) KERNEL_##types(name, -1, false)
#include "../pointwise.def"
