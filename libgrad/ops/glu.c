/* glu.c - the gated linear unit: the first half of x times the sigmoid of the second half, along one dimension. Made
 * of other ops; 16-bit floats are computed in f32. */
#include "graph/op.h"

static lg_tensor *compose_glu(const lg__call *call)
{
        const lg_tensor *x = call->in[0];
        const int dim = lg__line_dim(x, call->op->name, *(const int *)call->attributes);
        int64_t outer, n, inner;
        if (dim < 0)
                return NULL;
        lg__split(x->at.shape, dim, &outer, &n, &inner);
        if (n % 2 != 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "glu: x is %s; dimension %d has size %lld, which must be even",
                                lg__tensor_text(x).s, dim, (long long)n);
        lg_tensor *wide = lg__widened(call->in[0]);
        lg_tensor *a = lg_slice(wide, dim, 0, n / 2), *gate = lg_sigmoid(lg_slice(wide, dim, n / 2, n));
        return lg_cast(lg_mul(a, gate), x->at.dtype);
}

LG__COMPOSITE(glu, {"x", LG__FLOAT})

lg_tensor *lg_glu(lg_tensor *x, int dim)
{
        return LG__APPLY(glu, &dim, x);
}
