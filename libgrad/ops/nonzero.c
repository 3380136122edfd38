/* nonzero.c - the places and the elements that a mask picks: nonzero, masked_select. Made of cumsum, scatter_add and
 * gather; the host waits for one number, how many there are. */
#include "gather.h"

/* The places i of a 1-d mask (bool) that are true, i64. The running count less one is where i goes; what is not picked
 * adds 0 to the place before it. */
static lg_tensor *places_of(lg_tensor *mask)
{
        int64_t all = mask->at.shape.size[0];
        lg_device device = mask->storage->device->id;
        lg_tensor *count = lg_cumsum(mask, 0);
        int64_t n = count && all ? lg_item_i64(lg_select(count, 0, all - 1)) : 0;
        if (!lg__ok(mask->ctx))
                return NULL;
        lg_tensor *places = lg_zeros(mask->ctx, LG_SHAPE(n), .dtype = LG_I64, .device = device);
        if (n == 0)
                return places;
        lg_tensor *at = lg_maximum_scalar(lg_sub_scalar(count, 1), 0);
        lg_tensor *i = lg_arange(mask->ctx, 0, (double)all, 1, .dtype = LG_I64, .device = device);
        return lg__scatter_add(places, 0, at, lg_mul(i, mask), LG__ORIGIN_SCATTER_ADD);
}

static lg_tensor *flat(lg_tensor *x)
{
        return x ? lg_reshape(x, LG_SHAPE(lg__shape_numel(x->at.shape))) : NULL;
}

/* Places in row-major order as coordinates (n, ndim), ndim > 0. */
static lg_tensor *coordinates(lg_tensor *places, lg_shape s)
{
        lg_tensor *along[LG_MAX_DIMS];
        if (places && s.ndim == 1)
                return lg_unsqueeze(places, 1);
        for (int i = s.ndim - 1; i >= 0; i--) {
                lg_tensor *size = i ? lg__constant(places, (double)s.size[i]) : NULL;
                along[i] = i ? lg_remainder(places, size) : places;
                places = i ? lg_floor_divide(places, size) : NULL;
        }
        return lg_stack(LG_LIST_OF(s.ndim, along), 1);
}

static lg_tensor *nonzero(lg_tensor *x)
{
        lg_shape s = x->at.shape;
        lg_tensor *mask = flat(x->at.dtype == LG_BOOL ? x : lg_ne_scalar(lg_detach(x), 0));
        lg_tensor *places = mask ? places_of(mask) : NULL;
        if (s.ndim > 0)
                return coordinates(places, s);
        return places ? lg_zeros(x->ctx, LG_SHAPE(places->at.shape.size[0], 0), .dtype = LG_I64,
                                 .device = x->storage->device->id)
                      : NULL;
}

static lg_tensor *masked_select(lg_tensor *x, lg_tensor *mask)
{
        lg_shape s;
        if (!lg__broadcast(x->ctx, "masked_select", x->at.shape, mask->at.shape, &s))
                return NULL;
        lg_tensor *wide = flat(lg_expand(mask, s)), *places = wide ? places_of(wide) : NULL;
        return lg__gather(flat(lg_expand(x, s)), 0, places, LG__ORIGIN_GATHER);
}

static lg_tensor *compose(const lg__call *call)
{
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *y =
                lg_escape(call->op == LG__OP(nonzero) ? nonzero(call->in[0]) : masked_select(call->in[0], call->in[1]));
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__DEFINE(nonzero, .compose = compose, LG__OPERANDS({"x"}))
LG__DEFINE(masked_select, .compose = compose, LG__OPERANDS({"x"}, {"mask", LG__MASK}))

lg_tensor *lg_nonzero(lg_tensor *x)
{
        return LG__APPLY(nonzero, NULL, x);
}

lg_tensor *lg_masked_select(lg_tensor *x, lg_tensor *mask)
{
        return LG__APPLY(masked_select, NULL, x, mask);
}
