/* norm.h - dtypes, checks and gradients shared by the normalisation ops. Private to ops/. */
#ifndef LG_OPS_NORM_H
#define LG_OPS_NORM_H

#include "graph/op.h"

/* Returns the dtype of weights, biases, their gradients and intermediate values for an input x. */
static inline lg_dtype lg__norm_dtype(const lg_tensor *x)
{
        return x->at.dtype == LG_F64 ? LG_F64 : LG_F32;
}

static inline bool lg__norm_check_eps(const lg__call *call, double eps)
{
        return eps >= 0 || lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: eps is %g, not 0 or more", call->op->name, eps);
}

/* Checks that inputs 1 to end - 1, where given, have this shape: (C,) for x (N, C, ...) if by_channel, else that of
 * the last dimensions of x. Sets an error if not. */
static inline bool lg__norm_check_shapes(const lg__call *call, int end, lg_shape shape, bool by_channel)
{
        for (int i = 1; i < end; i++)
                if (call->in[i] && !lg__shape_equal(call->in[i]->at.shape, shape))
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s but %s is %s; it needs shape %s%s",
                                        call->op->name, lg__tensor_text(call->in[0]).s, lg__operand_name(call->op, i),
                                        lg__tensor_text(call->in[i]).s, lg__shape_text(shape).s,
                                        by_channel ? lg__layout_hint(call->in[0], call->in[0]->at.shape.ndim - 2,
                                                                     lg__shape_numel(call->in[i]->at.shape))
                                                   : "");
        return true;
}

/* Creates the gradients that are needed, that of input 0 in the layout of input 0, and stores the address of their
 * elements in *data[i]. `data` has an entry for each input; inputs whose entry is NULL are skipped. */
static inline bool lg__norm_make_gradients(lg__vjp *v, void **const data[])
{
        for (int i = 0; i < v->in_count; i++) {
                if (!v->needs[i] || !data[i])
                        continue;
                v->grad_in[i] = i ? lg__tensor_empty(v->ctx, v->in[0]->storage->device->id, lg__input(v, i)->dtype,
                                                     lg__input_shape(v, i))
                                  : lg__tensor_beside(v->in[0]);
                if (!v->grad_in[i])
                        return false;
                *data[i] = lg__data(v->grad_in[i]);
        }
        return true;
}

#endif
