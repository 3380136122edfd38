/* nonzero.c - nonzero and masked_select: the coordinates or the elements that a mask selects. The host waits for the
 * device once, to read their number. */
#include <string.h>
#include "gather.h"

lg_tensor *lg__places_of(lg_tensor *x)
{
        if (!(x = lg_contiguous(lg_detach(x))))
                return NULL;
        lg__device *d = x->storage->device;
        const lg_shape s = x->at.shape;
        const int64_t chunks = (lg__shape_numel(s) + LG_NONZERO_CHUNK - 1) / LG_NONZERO_CHUNK;
        lg_tensor *starts = lg__tensor_empty(x->ctx, d->id, LG_I64, LG_SHAPE(chunks + 1));
        if (!starts)
                return NULL;
        lg_nonzero_args a = {.dtype = x->at.dtype, .ndim = s.ndim, .x = lg__data(x), .starts = lg__data(starts)};
        memcpy(a.shape, s.size, sizeof a.shape);
        if (!LG__RUN(d, "nonzero", nonzero, &a))
                return NULL;
        const int64_t n = lg_item_i64(lg_select(starts, 0, chunks));
        lg_tensor *places = lg__ok(x->ctx) ? lg__tensor_empty(x->ctx, d->id, LG_I64, LG_SHAPE(n, s.ndim)) : NULL;
        if (!places || !(a.places = lg__data(places)))
                return places;
        return LG__RUN(d, "nonzero", nonzero, &a) ? places : NULL;
}

static lg_tensor *masked_select(lg_tensor *x, lg_tensor *mask)
{
        lg_shape s;
        if (!lg__broadcast(x->ctx, "masked_select", x->at.shape, mask->at.shape, &s))
                return NULL;
        lg_tensor *places = lg__places_of(lg__flat(lg_expand(mask, s)));
        return lg__gather(lg__flat(lg_expand(x, s)), 0, lg__flat(places), LG__ORIGIN_GATHER);
}

static lg_tensor *compose(const lg__call *call)
{
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *y = lg_escape(call->op == LG__OP(nonzero) ? lg__places_of(call->in[0])
                                                             : masked_select(call->in[0], call->in[1]));
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
