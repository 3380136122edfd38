/* pointwise_pairs_grad.cu - the derivatives of the functions of two and three inputs of pointwise.def. */
#include "pointwise.h"

#define UNARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#define G v0
#define Y v3

#define A v1
#define B v2
#define BINARY(name, types, formula, da, db, ...)                                                                      \
        FORMULA(name##_da, da)                                                                                         \
        KERNEL_FLOAT(name##_da, -1, false) FORMULA(name##_db, db) KERNEL_FLOAT(name##_db, -1, false)
#define TERNARY(...)
#include "../pointwise.def"
#undef A
#undef B
#undef BINARY
#undef TERNARY

#define BINARY(...)
#define C v1
#define TERNARY(name, types, formula, da, db, ...)                                                                     \
        FORMULA(name##_da, da)                                                                                         \
        KERNEL_FLOAT(name##_da, 1, false) FORMULA(name##_db, db) KERNEL_FLOAT(name##_db, 1, false)
#include "../pointwise.def"
