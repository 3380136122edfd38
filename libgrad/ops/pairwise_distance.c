/* pairwise_distance.c - the p-norm of the difference of two tensors along the last dimension, |x - y + eps|. */
#include "graph/op.h"

static lg_tensor *compose_pairwise_distance(const lg__call *call)
{
        lg_tensor *x = call->in[0], *y = call->in[1];
        lg_pairwise_distance_options o;
        lg_shape shape;
        if (!lg__take(call->ctx, "pairwise_distance", call->attributes, &o, sizeof o) ||
            !lg__broadcast(call->ctx, "pairwise_distance", x->at.shape, y->at.shape, &shape))
                return NULL;
        if (shape.ndim < 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "pairwise_distance: x is %s; it has at least one dimension",
                                lg__tensor_text(x).s);
        lg_tensor *d = lg_add_scalar(lg_sub(lg__widened(x), lg__widened(y)), lg__option(o.eps, 1e-6));
        return lg_cast(lg_norm(d, .dims = LG_DIMS(-1), .p = o.p, .keep_dim = o.keep_dim), x->at.dtype);
}

LG__DEFINE(pairwise_distance, .flags = LG__PROMOTE, .autocast = LG__F32, .compose = compose_pairwise_distance,
           LG__OPERANDS({"x", LG__FLOAT}, {"y", LG__FLOAT}))

lg_tensor *lg_pairwise_distance_with(lg_tensor *x, lg_tensor *y, const lg_pairwise_distance_options *options)
{
        return LG__APPLY(pairwise_distance, options, x, y);
}
