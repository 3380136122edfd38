/* pointwise.cu - the functions of one input of pointwise.def. */
#include "pointwise.h"

#define BINARY(...)
#define TERNARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#define X v0
#define UNARY(name, types, params, formula, ...) FORMULA(name, formula) KERNEL_##types(name, -1, false)
#include "../pointwise.def"
