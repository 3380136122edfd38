/* relu_sums.c - derivative of bias + ReLU, by the kernels relu_da and reduce. */
#include "cpu.h"

bool LG_CPU(relu_da)(lg_queue *q, const lg_pointwise_args *a);
bool LG_CPU(reduce)(lg_queue *q, const lg_reduce_args *a);

bool LG_CPU(relu_sums)(lg_queue *q, const lg_relu_sums_args *a)
{
        const lg_pointwise_args passed = {.ndim = 1,
                                          .shape = {a->rows * a->columns},
                                          .dtype = a->dtype,
                                          .out = a->out,
                                          .out_strides = {1},
                                          .in = {a->g, NULL, NULL, a->y},
                                          .in_strides = {{1}, {0}, {0}, {1}}};
        const lg_reduce_args sums = {.kind = LG_REDUCE_SUM,
                                     .dtype = a->dtype,
                                     .kept_ndim = 1,
                                     .reduced_ndim = 1,
                                     .kept = {a->columns},
                                     .kept_strides = {1},
                                     .reduced = {a->rows},
                                     .reduced_strides = {a->columns},
                                     .in = a->out,
                                     .out = a->sums};
        return LG_CPU(relu_da)(q, &passed) && LG_CPU(reduce)(q, &sums);
}
