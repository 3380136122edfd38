/* cumsum.c - running sums and products along a dimension.
 *
 * cumsum: y[i] = x[0] + ... + x[i]; dx[i] = g[i] + ... + g[n - 1], a running sum from the other end. cumprod is made of
 * products: after the step of length 2^k, y[i] is the product of the 2^(k+1) elements up to i.
 */
#include "graph/op.h"

#define CUMSUM_FIELDS(FIELD) FIELD(int, dim, 0) FIELD(bool, reverse, false)
LG__ATTRIBUTES(cumsum, CUMSUM_FIELDS)

static bool infer(lg__call *call)
{
        cumsum_attributes *a = call->attributes;
        a->dim = lg__line_dim(call->in[0], "cumsum", a->dim);
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = call->in[0]->at.shape;
        return a->dim >= 0;
}

static bool forward(lg__call *call)
{
        const cumsum_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_cumsum_args k = {.dtype = x->at.dtype, .reverse = a->reverse, .x = lg__data(x), .y = lg__data(call->out[0])};
        lg__split(x->at.shape, a->dim, &k.outer, &k.n, &k.inner);
        return lg__shape_numel(x->at.shape) == 0 || LG__RUN(call->device, "cumsum", cumsum, &k);
}

static bool vjp(lg__vjp *v)
{
        cumsum_attributes a = *(const cumsum_attributes *)v->attributes;
        a.reverse = !a.reverse;
        return (v->grad_in[0] = LG__APPLY(cumsum, &a, v->grad[0])) != NULL;
}

const lg__op lg__op_cumsum = {
        .name = "cumsum",
        .autocast = LG__F32,
        LG__OPERANDS({"x", LG__WHOLE, LG__ROW_MAJOR}),
        LG__RESULTS({"y"}),
        LG__HAS(cumsum),
        .infer = infer,
        .forward = forward,
        .vjp = vjp,
};

lg_tensor *lg_cumsum(lg_tensor *x, int dim)
{
        return LG__APPLY(cumsum, &(cumsum_attributes){dim}, x);
}

/* ---- cumprod ---- */

static lg_tensor *compose_cumprod(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        const int dim = lg__line_dim(x, "cumprod", ((const cumsum_attributes *)call->attributes)->dim);
        if (dim < 0)
                return NULL;
        int64_t n = x->at.shape.ndim ? x->at.shape.size[dim] : 1;
        lg_dtype dtype = lg__dtype_float(x->at.dtype) ? x->at.dtype : LG_I64;
        lg_tensor *y = lg__widened(lg_cast(x, dtype));
        for (int64_t step = 1; step < n && y; step *= 2) {
                lg_tensor *far = lg_mul(lg_slice(y, dim, step, n), lg_slice(y, dim, 0, n - step));
                y = lg_cat(LG_LIST(lg_slice(y, dim, 0, step), far), dim);
        }
        return lg_cast(y, dtype);
}

LG__COMPOSITE(cumprod, {"x"})

lg_tensor *lg_cumprod(lg_tensor *x, int dim)
{
        return LG__APPLY(cumprod, &(cumsum_attributes){dim}, x);
}
