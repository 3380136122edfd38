/* reduce.h - which dimensions a reduction takes away: what reduce.c and reduce_made.c share. */
#ifndef LG_OPS_REDUCE_H
#define LG_OPS_REDUCE_H

#include "graph/op.h"

#define REDUCE_FIELDS(FIELD) FIELD(f64, correction, 1) FIELD(dims, dims, 0) FIELD(bool, keep_dim, false)
LG__ATTRIBUTES(reduce, REDUCE_FIELDS)

/* The options of a composite, completed. */
bool lg__reduce_of(const lg__call *call, const lg_reduce_options *options, reduce_attributes *ret);
/* Of completed ones: */
bool lg__is_reduced(const reduce_attributes *a, int dim);
lg_shape lg__reduced_shape(lg_shape s, const reduce_attributes *a, bool keep_dim);
int64_t lg__reduced_count(lg_shape s, const reduce_attributes *a);

/* A reduction that compose_of() makes of other ops: the op and the function. */
#define LG__REDUCTION(of, takes, cast)                                                                                 \
        LG__DEFINE(of, LG__OPERANDS({"x", takes}), .compose = compose_##of, .autocast = cast)                          \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_reduce_options *options)                                      \
        {                                                                                                              \
                return LG__APPLY(of, options, x);                                                                      \
        }

#endif
