/* pointwise.h - loops of pointwise kernels, and the function that runs them over strided operands. */
#ifndef LG_CPU_POINTWISE_H
#define LG_CPU_POINTWISE_H

#include "cpu.h"

/* Loops are called with multiples of this number of elements, so that none has a scalar remainder: equal inputs give
 * equal bits at every position. */
#define LG_LOOP_STEP 16

/* Loop out[i] = formula(in0[i], ...) over contiguous values of a compute type. Slots without use may be NULL. */
typedef void (*lg_loop_fn)(int64_t n, void *out, const void *in0, const void *in1, const void *in2, const void *in3,
                           double p0, double p1);

typedef struct lg_loops {
        const char *name;
        lg_loop_fn of_compute[LG_COMPUTE_COUNT]; /* loop for each compute type; NULL: unsupported */
        int condition;                           /* slot of the bool input (TERNARY's C), or -1 */
        bool compare;                            /* the output is bool: a comparison or a test */
        bool scalar_compare;                     /* integers are compared with P0 in f64 */
} lg_loops;

#define lg_pointwise_run LG_CPU(pointwise_run)
bool lg_pointwise_run(lg_queue *q, const lg_pointwise_args *a, const lg_loops *loops);

#endif
