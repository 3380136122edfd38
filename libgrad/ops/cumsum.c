/* cumsum.c - running sums and products along a dimension.
 *
 * cumsum: y[i] = x[0] + ... + x[i]; dx[i] = g[i] + ... + g[n - 1], a running sum from the other end. cumprod is made
 * of products: after the step of length 2^k, y[i] is the product of the 2^(k+1) elements up to i.
 *
 * logcumsumexp: y[i] = log(e^x[0] + ... + e^x[i]) = log(e^y[i - 1] + e^x[i]). The share of y[i - 1] in this sum is
 * s[i] and that of x[i] is the rest: dx[i] = (1 - s[i]) t[i] with t[i] = g[i] + s[i + 1] t[i + 1]. No share is above
 * 1, so nothing overflows.
 */
#include "graph/op.h"

#define CUMSUM_FIELDS(FIELD) FIELD(int, dim, 0) FIELD(bool, reverse, false)
LG__ATTRIBUTES(cumsum, CUMSUM_FIELDS)

static bool infer(lg__call *call)
{
        cumsum_attributes *a = call->attributes;
        a->dim = lg__line_dim(call->in[0], call->op->name, a->dim);
        return a->dim >= 0;
}

static bool forward(lg__call *call)
{
        const cumsum_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_cumsum_args k = {.dtype = x->at.dtype, .reverse = a->reverse, .x = lg__data(x), .y = lg__data(call->out[0])};
        lg__split(x->at.shape, a->dim, &k.outer, &k.n, &k.inner);
        if (lg__shape_numel(x->at.shape) == 0)
                return true;
        return call->op == LG__OP(cumsum) ? LG__RUN(call->device, "cumsum", cumsum, &k)
                                          : LG__RUN(call->device, "logcumsumexp", logcumsumexp, &k);
}

static bool vjp(lg__vjp *v)
{
        cumsum_attributes a = *(const cumsum_attributes *)v->attributes;
        a.reverse = !a.reverse;
        return (v->grad_in[0] = LG__APPLY(cumsum, &a, v->grad[0])) != NULL;
}

LG__DEFINE(cumsum, .autocast = LG__F32, LG__OPERANDS({"x", LG__WHOLE, LG__ROW_MAJOR}), LG__RESULTS({"y"}),
           LG__HAS(cumsum), .infer = infer, .forward = forward, .vjp = vjp, .onnx = "CumSum(x, <dim>, reverse=reverse)")

lg_tensor *lg_cumsum(lg_tensor *x, int dim)
{
        return LG__APPLY(cumsum, &(cumsum_attributes){dim}, x);
}

/* ---- logcumsumexp ---- */

/* Returns e^a / (e^a + e^b); 1/2 where a and b are the same infinity, whose difference is NaN. */
static lg_tensor *share(lg_tensor *a, lg_tensor *b)
{
        lg_tensor *gap = lg_sub(a, b);
        return lg_sigmoid(lg_where(lg_logical_and(lg_eq(a, b), lg_ne_scalar(gap, 0)), lg__constant(gap, 0), gap));
}

/* Computes t, defined above, by doubling: after each step, t[i] includes twice as many gradients, and s[i] is the
 * product of as many shares. The running results are recomputed, in f32 for 16-bit floats. */
static bool vjp_logcumsumexp(lg__vjp *v)
{
        const cumsum_attributes *a = v->attributes;
        const lg_shape shape = v->in[0]->at.shape;
        const int64_t n = shape.ndim ? shape.size[a->dim] : 1;
        lg_tensor *x = lg__widened(v->in[0]), *t = lg__widened(v->grad[0]);
        if (n > 1) {
                lg_tensor *sum = lg_slice(LG__APPLY(logcumsumexp, a, x), a->dim, 0, n - 1);
                lg_tensor *next = lg_slice(x, a->dim, 1, n), *s = share(sum, next);
                for (int64_t step = 1; step < n && t; step *= 2) {
                        if (step > 1)
                                s = lg_mul(lg_slice(s, a->dim, 0, n - step),
                                           lg_slice(s, a->dim, step / 2, n - step / 2));
                        lg_tensor *more = lg_mul(s, lg_slice(t, a->dim, step, n));
                        t = lg_cat(LG_LIST(lg_add(lg_slice(t, a->dim, 0, n - step), more),
                                           lg_slice(t, a->dim, n - step, n)),
                                   a->dim);
                }
                t = lg_cat(LG_LIST(lg_slice(t, a->dim, 0, 1), lg_mul(share(next, sum), lg_slice(t, a->dim, 1, n))),
                           a->dim);
        }
        return (v->grad_in[0] = t) != NULL;
}

/* Adds 16-bit floats in f32. */
static bool form_logcumsumexp(lg__form *f, const lg__call *call)
{
        const bool narrow = lg__dtype_bytes(call->in[0]->at.dtype) == 2;
        lg__form_add(f, narrow ? "w = Cast(x, to=f32); " : "w = x; ");
        lg__form_expand(f, call,
                        "m = ReduceMax(w, [dim], keepdims=1); "
                        "y = Add(m, Log(CumSum(Exp(Sub(w, m)), <dim>, reverse=reverse)))");
        if (narrow)
                lg__form_add(f, "; y = CastLike(y, x)");
        return true;
}

LG__DEFINE(logcumsumexp, LG__OPERANDS({"x", LG__FLOAT, LG__ROW_MAJOR, .saved_for = LG__BY(0)}), LG__RESULTS({"y"}),
           LG__HAS(cumsum), .infer = infer, .forward = forward, .vjp = vjp_logcumsumexp, .form = form_logcumsumexp)

lg_tensor *lg_logcumsumexp(lg_tensor *x, int dim)
{
        return LG__APPLY(logcumsumexp, &(cumsum_attributes){dim}, x);
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
                lg_scope scope = lg_scope_begin(call->ctx);
                lg_tensor *was = y, *far = lg_mul(lg_slice(y, dim, step, n), lg_slice(y, dim, 0, n - step));
                y = lg_escape(lg_cat(LG_LIST(lg_slice(y, dim, 0, step), far), dim));
                lg_scope_end(call->ctx, scope);
                if (was != x)
                        lg__tensor_release(was);
        }
        return lg__made(lg_cast(y, dtype), x);
}

LG__DEFINE(cumprod, .autocast = LG__F32, .compose = compose_cumprod, LG__OPERANDS({"x"}))

lg_tensor *lg_cumprod(lg_tensor *x, int dim)
{
        return LG__APPLY(cumprod, &(cumsum_attributes){dim}, x);
}
