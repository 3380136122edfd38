/* softmax.c - softmax and its logarithm over one dimension.
 *
 * softmax: y = e^x / sum e^x; dx = y (g - sum(g y)). log_softmax: y = log softmax(x); dx = g - e^y sum(g).
 */
#include "graph/op.h"

#define SOFTMAX_FIELDS(FIELD) FIELD(int, dim, 0)
LG__ATTRIBUTES(softmax, SOFTMAX_FIELDS)

static bool infer(lg__call *call)
{
        softmax_attributes *a = call->attributes;
        a->dim = lg__line_dim(call->in[0], call->op->name, a->dim);
        return a->dim >= 0;
}

static bool forward(lg__call *call)
{
        const softmax_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_softmax_args s = {.dtype = x->at.dtype, .log = call->op == LG__OP(log_softmax)};
        lg__split(x->at.shape, a->dim, &s.outer, &s.n, &s.inner);
        s.x = lg__data(x);
        s.y = lg__data(call->out[0]);
        return lg__shape_numel(x->at.shape) == 0 || LG__RUN(call->device, call->op->name, softmax, &s);
}

static bool fused(lg__vjp *v)
{
        const softmax_attributes *a = v->attributes;
        const lg_tensor *y = v->out[0];
        lg_tensor *g = lg_contiguous(v->grad[0]), *dx = g ? lg__tensor_like(y) : NULL;
        if (!dx)
                return false;
        lg_softmax_vjp_args s = {.dtype = y->at.dtype, .log = v->op == LG__OP(log_softmax)};
        lg__split(y->at.shape, a->dim, &s.outer, &s.n, &s.inner);
        s.y = lg__data(y);
        s.g = lg__data(g);
        s.dx = lg__data(dx);
        v->grad_in[0] = dx;
        return lg__shape_numel(y->at.shape) == 0 || LG__RUN(y->storage->device, v->op->name, softmax_vjp, &s);
}

static lg_tensor *sum_over(lg_tensor *t, const lg__vjp *v)
{
        const softmax_attributes *a = v->attributes;
        if (!t || t->at.shape.ndim == 0)
                return t;
        return lg_sum(t, .dims = LG_DIMS(a->dim), .keep_dim = true);
}

static bool vjp_softmax(lg__vjp *v)
{
        lg_tensor *g = v->grad[0], *y = v->out[0];
        return (v->grad_in[0] = lg_mul(y, lg_sub(g, sum_over(lg_mul(g, y), v)))) != NULL;
}

static bool vjp_log_softmax(lg__vjp *v)
{
        lg_tensor *g = v->grad[0];
        return (v->grad_in[0] = lg_sub(g, lg_mul(lg_exp(v->out[0]), sum_over(g, v)))) != NULL;
}

static bool form(lg__form *f, const lg__call *call)
{
        lg__form_expand(f, call, call->op == LG__OP(softmax) ? "Softmax(x, axis=dim)" : "LogSoftmax(x, axis=dim)");
        return call->in[0]->at.shape.ndim > 0;
}

#define SOFTMAX(of)                                                                                                    \
        LG__DEFINE(of, .autocast = LG__F32, LG__OPERANDS({"x", LG__FLOAT, LG__ROW_MAJOR}),                             \
                   LG__RESULTS({"y", .saved_for = LG__BY(0)}), LG__HAS(softmax), .infer = infer, .forward = forward,   \
                   .vjp = vjp_##of, .fused = fused, .form = form)                                                      \
        lg_tensor *lg_##of(lg_tensor *x, int dim)                                                                      \
        {                                                                                                              \
                return LG__APPLY(of, &(softmax_attributes){dim}, x);                                                   \
        }
SOFTMAX(softmax)
SOFTMAX(log_softmax)

static lg_tensor *compose_softmin(const lg__call *call)
{
        return lg_softmax(lg_neg(call->in[0]), *(const int *)call->attributes);
}
LG__DEFINE(softmin, .autocast = LG__F32, .compose = compose_softmin, LG__OPERANDS({"x", LG__FLOAT}))

lg_tensor *lg_softmin(lg_tensor *x, int dim)
{
        return LG__APPLY(softmin, &dim, x);
}
