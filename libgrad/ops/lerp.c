/* lerp.c - linear interpolation a + w (b - a), made of other ops; 16-bit floats are computed in f32.
 *
 * For w >= 0.5 the formula is b - (1 - w) (b - a), so that w = 0 gives exactly a and w = 1 exactly b.
 */
#include "graph/op.h"

/* Checks that the operands broadcast, and stores them in ret, 16-bit floats cast to f32. */
static bool widened(const lg__call *call, lg_tensor *ret[3])
{
        lg_shape shape = call->in[0]->at.shape;
        for (int i = 0; i < call->in_count; i++)
                if (!lg__broadcast(call->ctx, call->op->name, shape, call->in[i]->at.shape, &shape) ||
                    !(ret[i] = lg__widened(call->in[i])))
                        return false;
        return true;
}

static lg_tensor *compose_lerp_scalar(const lg__call *call)
{
        const double w = *(const double *)call->attributes;
        lg_tensor *in[3];
        if (!widened(call, in))
                return NULL;
        lg_tensor *a = in[0], *b = in[1], *way = lg_sub(b, a);
        return lg_cast(w < 0.5 ? lg_add(a, lg_mul_scalar(way, w)) : lg_sub(b, lg_mul_scalar(way, 1 - w)),
                       lg__common_dtype(call->in, 2));
}

LG__COMPOSITE(lerp_scalar, {"a", LG__FLOAT}, {"b", LG__FLOAT})

lg_tensor *lg_lerp_scalar(lg_tensor *a, lg_tensor *b, double w)
{
        return LG__APPLY(lerp_scalar, &w, a, b);
}

static lg_tensor *compose_lerp(const lg__call *call)
{
        lg_tensor *in[3];
        if (!widened(call, in))
                return NULL;
        lg_tensor *a = in[0], *b = in[1], *w = in[2];
        lg_tensor *way = lg_sub(b, a), *from_b = lg_sub(b, lg_mul(way, lg_rsub_scalar(w, 1)));
        return lg_cast(lg_where(lg_lt_scalar(w, 0.5), lg_add(a, lg_mul(way, w)), from_b),
                       lg__common_dtype(call->in, 3));
}

LG__COMPOSITE(lerp, {"a", LG__FLOAT}, {"b", LG__FLOAT}, {"w", LG__FLOAT})

lg_tensor *lg_lerp(lg_tensor *a, lg_tensor *b, lg_tensor *w)
{
        return LG__APPLY(lerp, NULL, a, b, w);
}
