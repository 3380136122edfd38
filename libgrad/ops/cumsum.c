/* cumsum.c - running sums and products along a dimension.
 *
 * cumsum: y[i] = x[0] + ... + x[i]; dx[i] = g[i] + ... + g[n - 1], a running sum from the other end. cumprod is made of
 * products: after the step of length 2^k, y[i] is the product of the 2^(k+1) elements up to i.
 */
#include "../op.h"

typedef struct cumsum_attributes {
        int dim;
        bool reverse;
} cumsum_attributes;

bool lg__infer_cumsum(lg__call *call)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = call->in[0]->at.shape;
        return true;
}

bool lg__forward_cumsum(lg__call *call)
{
        const cumsum_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_cumsum_args k = {.dtype = x->at.dtype, .reverse = a->reverse, .x = lg__data(x), .y = lg__data(call->out[0])};
        lg__split(x->at.shape, a->dim, &k.outer, &k.n, &k.inner);
        return lg__shape_numel(x->at.shape) == 0 || LG__RUN(call->device, "cumsum", cumsum, &k);
}

static lg_tensor *cumsum(lg_tensor *x, int dim, bool reverse)
{
        cumsum_attributes a = {dim, reverse};
        return lg__apply1(LG__OP(cumsum), lg_contiguous(x), &a, sizeof a);
}

bool lg__vjp_cumsum(lg__vjp *v)
{
        const cumsum_attributes *a = v->attributes;
        return (v->grad_in[0] = cumsum(v->grad[0], a->dim, !a->reverse)) != NULL;
}

lg_tensor *lg_cumsum(lg_tensor *x, int dim)
{
        dim = lg__line_dim(x, "cumsum", dim);
        return dim < 0 ? NULL : cumsum(lg__dtype_float(x->at.dtype) ? x : lg_cast(x, LG_I64), dim, false);
}

lg_tensor *lg_cumprod(lg_tensor *x, int dim)
{
        dim = lg__line_dim(x, "cumprod", dim);
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
