/* loss.h - how losses are defined: their operands, reduction and public function. */
#ifndef LG_OPS_LOSS_H
#define LG_OPS_LOSS_H

#include "graph/op.h"

/* Operands of a loss, 16-bit floats cast to f32, and its reduction. */
typedef struct operands {
        const lg__call *call;
        lg_tensor *x, *t, *w; /* the first input, the second, and the third or NULL */
        lg_reduction reduction;
} operands;

/* Copies the options of a loss to ret, which has `size` bytes and contains *reduction, and sets the operands n.
 * Returns false and sets an error if an option is invalid or, for an elementwise loss, x and the second input differ in
 * shape. */
bool lg__loss_begin(const lg__call *call, bool elementwise, operands *n, void *ret, size_t size,
                    lg_reduction *reduction);
/* Returns the mean or the sum of `each`, or `each` itself, as the reduction says. */
lg_tensor *lg__loss_reduce(const operands *n, lg_tensor *each);

/* Defines the composite loss `of`, whose values are `each`, an expression of the operands n and options o. */
#define LOSS(of, elementwise, options_type, each, ...)                                                                 \
        static lg_tensor *compose_##of(const lg__call *call)                                                           \
        {                                                                                                              \
                options_type o;                                                                                        \
                operands n;                                                                                            \
                return lg__loss_begin(call, elementwise, &n, &o, sizeof o, &o.reduction) ? lg__loss_reduce(&n, each)   \
                                                                                         : NULL;                       \
        }                                                                                                              \
        LG__DEFINE(of, .autocast = LG__F32, LG__OPERANDS(__VA_ARGS__), .compose = compose_##of)
/* Defines a loss of x and target, and its public function. */
#define LOSS_OF_TWO(of, options_type, each)                                                                            \
        LOSS(of, true, options_type, each, {"x", LG__FLOAT}, {"target"})                                               \
        lg_tensor *lg_##of##_with(lg_tensor *x, lg_tensor *target, const options_type *options)                        \
        {                                                                                                              \
                return LG__APPLY(of, options, x, target);                                                              \
        }
/* Defines a loss of three tensors, and its public function. */
#define LOSS_OF_THREE(of, elementwise, options_type, each, ...)                                                        \
        LOSS(of, elementwise, options_type, each, __VA_ARGS__)                                                         \
        lg_tensor *lg_##of##_with(lg_tensor *x, lg_tensor *t, lg_tensor *w, const options_type *options)               \
        {                                                                                                              \
                return LG__APPLY(of, options, x, t, w);                                                                \
        }

#endif
