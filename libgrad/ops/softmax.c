/* softmax.c - soft-max and its logarithm over one dimension.
 *
 * y = e^x / sum e^x: dx = y (g - sum(g y)). y = log softmax(x): dx = g - e^y sum(g).
 */
#include "../op.h"

typedef struct softmax_attributes {
        int dim;
} softmax_attributes;

static bool infer(lg__call *call)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = call->in[0]->at.shape;
        return true;
}

static bool forward(lg__call *call, bool log)
{
        const softmax_attributes *a = call->attributes;
        lg_softmax_args s = {.dtype = call->in[0]->at.dtype, .log = log};
        lg__split(call->in[0]->at.shape, a->dim, &s.outer, &s.n, &s.inner);
        if (lg__shape_numel(call->in[0]->at.shape) == 0)
                return true;
        s.x = lg__data(call->in[0]);
        s.y = lg__data(call->out[0]);
        return LG__RUN(call->device, call->op->name, softmax, &s);
}

static bool fused(lg__vjp *v, bool log)
{
        const softmax_attributes *a = v->attributes;
        const lg_tensor *y = v->out[0];
        lg_tensor *g = lg_contiguous(v->grad[0]), *dx = g ? lg__tensor_like(y) : NULL;
        if (!dx)
                return false;
        lg_softmax_vjp_args s = {.dtype = y->at.dtype, .log = log};
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

bool lg__vjp_softmax(lg__vjp *v)
{
        lg_tensor *g = v->grad[0], *y = v->out[0];
        return (v->grad_in[0] = lg_mul(y, lg_sub(g, sum_over(lg_mul(g, y), v)))) != NULL;
}

bool lg__vjp_log_softmax(lg__vjp *v)
{
        lg_tensor *g = v->grad[0];
        return (v->grad_in[0] = lg_sub(g, lg_mul(lg_exp(v->out[0]), sum_over(g, v)))) != NULL;
}

#define SOFTMAX(name, log)                                                                                             \
        bool lg__infer_##name(lg__call *call)                                                                          \
        {                                                                                                              \
                return infer(call);                                                                                    \
        }                                                                                                              \
        bool lg__forward_##name(lg__call *call)                                                                        \
        {                                                                                                              \
                return forward(call, log);                                                                             \
        }                                                                                                              \
        bool lg__fused_##name(lg__vjp *v)                                                                              \
        {                                                                                                              \
                return fused(v, log);                                                                                  \
        }
SOFTMAX(softmax, false)
SOFTMAX(log_softmax, true)

static lg_tensor *apply(const lg__op *op, lg_tensor *x, int dim)
{
        softmax_attributes a = {lg__line_dim(x, op->name, dim)};
        return a.dim < 0 ? NULL : lg__apply1(op, lg_contiguous(x), &a, sizeof a);
}

lg_tensor *lg_softmax(lg_tensor *x, int dim)
{
        return apply(LG__OP(softmax), x, dim);
}

lg_tensor *lg_log_softmax(lg_tensor *x, int dim)
{
        return apply(LG__OP(log_softmax), x, dim);
}
