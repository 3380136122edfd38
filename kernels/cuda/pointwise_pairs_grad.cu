/* pointwise_pairs_grad.cu - the derivatives of the functions of two and three inputs of pointwise.def. */
#include "pointwise.h"

#define SLOPES(name, slots, condition, da, db)                                                                         \
        FORMULA(name##_da, slots, da)                                                                                  \
        KERNEL_FLOAT(name##_da, condition, false)                                                                      \
        FORMULA(name##_db, slots, db) KERNEL_FLOAT(name##_db, condition, false)
#define BINARY(name, types, formula, da, db, ...) SLOPES(name, SLOPE, -1, da, db)
#define TERNARY(name, types, formula, da, db, ...) SLOPES(name, CHOICE_SLOPE, 1, da, db)
#include "../pointwise.def"
