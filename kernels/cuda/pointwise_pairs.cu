/* pointwise_pairs.cu - the functions of two and three inputs, comparisons and tests of pointwise.def. */
#include "pointwise.h"

/* Compares elements with a number; integers are converted to f64 first. */
#define KERNEL_SCALAR(name)                                                                                            \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                FLOATS(name, -1, true)                                                                                 \
                return lg_pointwise<int64_t, double, f_##name<double>>(q, #name, a, -1, true, a->p0, a->p1);           \
        }

#define BINARY(name, types, formula, ...) FORMULA(name, INPUTS, formula) KERNEL_##types(name, -1, false)
#define TERNARY(name, types, formula, ...) FORMULA(name, CHOICE, formula) KERNEL_##types(name, 0, false)
#define COMPARE(name, formula) FORMULA(name, INPUTS, formula) KERNEL_ANY(name, -1, true)
#define COMPARE_SCALAR(name, formula) FORMULA(name, INPUTS, formula) KERNEL_SCALAR(name)
#define TEST COMPARE
#define PLAIN(name, types, formula) FORMULA(name, INPUTS, formula) KERNEL_##types(name, -1, false)
#define PLAIN_SCALAR PLAIN
#include "../pointwise.def"
