/* reduce.h - attributes and shapes of reductions, shared by reduce.c and reduce_made.c. Private to libgrad/ops/. */
#ifndef LG_OPS_REDUCE_H
#define LG_OPS_REDUCE_H

#include "graph/op.h"

#define REDUCE_FIELDS(FIELD) FIELD(f64, correction, 1) FIELD(dims, dims, 0) FIELD(bool, keep_dim, false)
LG__ATTRIBUTES(reduce, REDUCE_FIELDS)

/* Converts the options of a composite reduction to attributes with complete, checked dimensions. Returns false and
 * sets an error if they are invalid. */
bool lg__reduce_of(const lg__call *call, const lg_reduce_options *options, reduce_attributes *ret);
/* For complete attributes: whether dim is reduced, the result's shape, the number of elements in each result. */
bool lg__is_reduced(const reduce_attributes *a, int dim);
lg_shape lg__reduced_shape(lg_shape s, const reduce_attributes *a, bool keep_dim);
int64_t lg__reduced_count(lg_shape s, const reduce_attributes *a);

/* Defines a reduction that compose_of() computes with other ops: the op and its public function. */
#define LG__REDUCTION(of, takes, cast)                                                                                 \
        LG__DEFINE(of, LG__OPERANDS({"x", takes}), .compose = compose_##of, .autocast = cast)                          \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_reduce_options *options)                                      \
        {                                                                                                              \
                return LG__APPLY(of, options, x);                                                                      \
        }

#endif
