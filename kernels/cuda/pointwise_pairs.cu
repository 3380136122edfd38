/* pointwise_pairs.cu - the functions of two and three inputs, comparisons and tests of pointwise.def. */
#include "pointwise.h"

/* Integers are compared with a number in f64. */
#define KERNEL_SCALAR(name)                                                                                            \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                FLOATS(name, -1, true)                                                                                 \
                return lg_pointwise<int64_t, double, f_##name<double>>(q, #name, a, -1, true, a->p0, a->p1);           \
        }

#define UNARY(...)
#define X v0
#define A v0
#define B v1
#define BINARY(name, types, formula, ...) FORMULA(name, formula) KERNEL_##types(name, -1, false)
#define TERNARY(...)
#define COMPARE(name, formula) FORMULA(name, formula) KERNEL_ANY(name, -1, true)
#define COMPARE_SCALAR(name, formula) FORMULA(name, formula) KERNEL_SCALAR(name)
#define TEST(name, formula) FORMULA(name, formula) KERNEL_ANY(name, -1, true)
#include "../pointwise.def"
#undef A
#undef B
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef COMPARE_SCALAR
#undef TEST

#define BINARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#define C v0
#define A v1
#define B v2
#define TERNARY(name, types, formula, ...) FORMULA(name, formula) KERNEL_##types(name, 0, false)
#include "../pointwise.def"
