/* repeat.c - repeats a tensor a number of times along each dimension; made of expand and reshape. */
#include "graph/op.h"

static lg_tensor *repeat_dim(lg_tensor *x, int dim, int64_t times)
{
        if (!x)
                return NULL;
        lg_shape to = x->at.shape;
        int64_t outer, n, inner;
        lg__split(to, dim, &outer, &n, &inner);
        to.size[dim] *= times;
        lg_tensor *lines = lg_reshape(x, LG_SHAPE(outer, 1, n * inner));
        return lg_reshape(lg_expand(lines, LG_SHAPE(outer, times, n * inner)), to);
}

static lg_tensor *compose_repeat(const lg__call *call)
{
        const lg_shape times = *(const lg_shape *)call->attributes;
        const lg_tensor *x = call->in[0];
        lg_shape s = {.ndim = times.ndim}, all;
        bool ok = times.ndim >= x->at.shape.ndim && times.ndim <= LG_MAX_DIMS;
        int missing = ok ? times.ndim - x->at.shape.ndim : 0;
        for (int i = 0; i < times.ndim && ok; i++)
                s.size[i] = i < missing ? 1 : x->at.shape.size[i - missing];
        all = s;
        for (int i = 0; i < times.ndim && ok; i++)
                ok = times.size[i] >= 0 && !__builtin_mul_overflow(s.size[i], times.size[i], &all.size[i]);
        if (!ok)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "repeat: x is %s; it cannot be repeated %s times",
                                lg__tensor_text(x).s, lg__shape_text(times).s);
        if (!lg__shape_valid(call->ctx, "repeat", all))
                return NULL;
        lg_tensor *y = lg_reshape(call->in[0], s);
        for (int i = times.ndim - 1; i >= 0; i--)
                if (times.size[i] != 1)
                        y = repeat_dim(y, i, times.size[i]);
        return y && !lg__layout_is_contiguous(&y->at) ? lg_copy(y, LG_NO_DEVICE) : lg__made(y, x);
}

LG__COMPOSITE(repeat, {"x"})

lg_tensor *lg_repeat(lg_tensor *x, lg_shape times)
{
        return LG__APPLY(repeat, &times, x);
}
