/* reduce.c - sum, mean, amax, amin, argmax, var over any set of dimensions.
 *
 * sum: dx = g, repeated. amax, amin: dx = g * (x == y) / (number of equals). mean = sum / count.
 * var: dx = g * 2 (x - mean) / (count - correction).
 */
#include <string.h>
#include "../op.h"

typedef struct reduce_attributes {
        double correction;
        uint32_t reduced; /* dimensions, by bit */
        bool keep_dim;
} reduce_attributes;

static bool chosen(const reduce_attributes *a, int dim)
{
        return a->reduced >> dim & 1;
}

static lg_shape reduced_shape(lg_shape s, const reduce_attributes *a, bool keep_dim)
{
        lg_shape to = {0};
        for (int i = 0; i < s.ndim; i++)
                if (!chosen(a, i))
                        to.size[to.ndim++] = s.size[i];
                else if (keep_dim)
                        to.size[to.ndim++] = 1;
        return to;
}

static int64_t reduced_count(lg_shape s, const reduce_attributes *a)
{
        int64_t n = 1;
        for (int i = 0; i < s.ndim; i++)
                n *= chosen(a, i) ? s.size[i] : 1;
        return n;
}

static bool infer(lg__call *call, lg_dtype dtype)
{
        const reduce_attributes *a = call->attributes;
        call->out_at[0].dtype = dtype;
        call->out_at[0].shape = reduced_shape(call->in[0]->at.shape, a, a->keep_dim);
        return true;
}

static bool infer_not_empty(lg__call *call, lg_dtype dtype)
{
        lg_shape s = call->in[0]->at.shape;
        infer(call, dtype);
        if (reduced_count(s, call->attributes) == 0 && lg__shape_numel(call->out_at[0].shape) > 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: there is no element to choose from",
                                call->op->name, lg__tensor_text(call->in[0]).s);
        return true;
}

static bool forward(lg__call *call, lg_reduce_kind kind)
{
        const reduce_attributes *a = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        lg_reduce_args r = {.kind = kind, .dtype = x->dtype, .correction = a->correction};
        for (int i = 0; i < x->shape.ndim; i++) {
                if (chosen(a, i)) {
                        r.reduced[r.reduced_ndim] = x->shape.size[i];
                        r.reduced_strides[r.reduced_ndim++] = x->strides[i];
                } else {
                        r.kept[r.kept_ndim] = x->shape.size[i];
                        r.kept_strides[r.kept_ndim++] = x->strides[i];
                }
        }
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        r.in = lg__data(call->in[0]);
        r.out = lg__data(call->out[0]);
        return LG__RUN(call->device, call->op->name, reduce, &r);
}

/* A reduced tensor (g or y) with its dimensions of size 1 back, so that it broadcasts to x. */
static lg_tensor *restore(lg_tensor *t, const lg__vjp *v)
{
        return lg_reshape(t, reduced_shape(lg__input(v, 0)->shape, v->attributes, true));
}

/* ---- the ops
 * ------------------------------------------------------------------------------------------------------------- */

bool lg__infer_sum(lg__call *call)
{
        lg_dtype d = call->in[0]->at.dtype;
        return infer(call, lg__dtype_float(d) ? d : LG_I64);
}

bool lg__forward_sum(lg__call *call)
{
        return forward(call, LG_REDUCE_SUM);
}

bool lg__vjp_sum(lg__vjp *v)
{
        return (v->grad_in[0] = lg_expand(restore(v->grad[0], v), lg__input(v, 0)->shape)) != NULL;
}

#define EXTREME(name, kind)                                                                                            \
        bool lg__infer_##name(lg__call *call)                                                                          \
        {                                                                                                              \
                return infer_not_empty(call, call->in[0]->at.dtype);                                                   \
        }                                                                                                              \
        bool lg__forward_##name(lg__call *call)                                                                        \
        {                                                                                                              \
                return forward(call, kind);                                                                            \
        }                                                                                                              \
        bool lg__vjp_##name(lg__vjp *v)                                                                                \
        {                                                                                                              \
                return vjp_extreme(v);                                                                                 \
        }

static bool vjp_extreme(lg__vjp *v)
{
        const reduce_attributes *a = v->attributes;
        lg_dims dims = {0};
        for (int i = 0; i < lg__input(v, 0)->shape.ndim; i++)
                if (chosen(a, i))
                        dims.dim[dims.count++] = i;
        lg_tensor *equal = lg_cast(lg_eq(v->in[0], restore(v->out[0], v)), v->grad[0]->at.dtype);
        lg_tensor *number = dims.count ? lg_sum(equal, .dims = dims, .keep_dim = true) : equal;
        return (v->grad_in[0] = lg_mul(restore(v->grad[0], v), lg_div(equal, number))) != NULL;
}
EXTREME(amax, LG_REDUCE_MAX)
EXTREME(amin, LG_REDUCE_MIN)

bool lg__infer_argmax(lg__call *call)
{
        return infer_not_empty(call, LG_I64);
}

bool lg__forward_argmax(lg__call *call)
{
        return forward(call, LG_REDUCE_ARGMAX);
}

bool lg__infer_var(lg__call *call)
{
        return infer(call, call->in[0]->at.dtype);
}

bool lg__forward_var(lg__call *call)
{
        return forward(call, LG_REDUCE_VAR);
}

bool lg__vjp_var(lg__vjp *v)
{
        const reduce_attributes *a = v->attributes;
        lg_shape s = lg__input(v, 0)->shape;
        lg_dims dims = {0};
        for (int i = 0; i < s.ndim; i++)
                if (chosen(a, i))
                        dims.dim[dims.count++] = i;
        double left = (double)reduced_count(s, a) - a->correction;
        lg_tensor *mean = dims.count ? lg_mean(v->in[0], .dims = dims, .keep_dim = true) : v->in[0];
        lg_tensor *slope = lg_mul_scalar(lg_sub(v->in[0], mean), 2 / (left > 0 ? left : 0));
        return (v->grad_in[0] = lg_mul(restore(v->grad[0], v), slope)) != NULL;
}

/* ---- the functions
 * --------------------------------------------------------------------------------------------------------- */

static bool attributes_of(const lg__op *op, const lg_reduce_options *o, reduce_attributes *ret)
{
        if (!lg__check(o->x, op->name, "x"))
                return false;
        int ndim = o->x->at.shape.ndim;
        memset(ret, 0, sizeof *ret);
        ret->keep_dim = o->keep_dim;
        if (o->dims.count < 0 || o->dims.count > LG_MAX_DIMS)
                return lg__fail(o->x->ctx, LG_ERR_ARGUMENT, "%s: a set of %d dimensions", op->name, o->dims.count);
        for (int i = 0; i < (o->dims.count ? o->dims.count : ndim); i++) {
                int d = o->dims.count ? lg__dim(o->x->ctx, op->name, o->dims.dim[i], ndim) : i;
                if (d < 0)
                        return false;
                if (chosen(ret, d))
                        return lg__fail(o->x->ctx, LG_ERR_ARGUMENT, "%s: dimension %d is given twice", op->name, d);
                ret->reduced |= 1u << d;
        }
        return true;
}

static lg_tensor *apply(const lg__op *op, lg_reduce_options o, double correction)
{
        reduce_attributes a;
        if (!attributes_of(op, &o, &a))
                return NULL;
        a.correction = correction;
        return lg__apply1(op, o.x, &a, sizeof a);
}

lg_tensor *lg_sum_(lg_reduce_options o)
{
        return apply(LG__OP(sum), o, 0);
}

lg_tensor *lg_amax_(lg_reduce_options o)
{
        return apply(LG__OP(amax), o, 0);
}

lg_tensor *lg_amin_(lg_reduce_options o)
{
        return apply(LG__OP(amin), o, 0);
}

lg_tensor *lg_argmax_(lg_reduce_options o)
{
        return apply(LG__OP(argmax), o, 0);
}

lg_tensor *lg_var_(lg_reduce_options o)
{
        return apply(LG__OP(var), o, o.correction == LG_ZERO ? 0 : o.correction == 0 ? 1 : o.correction);
}

lg_tensor *lg_mean_(lg_reduce_options o)
{
        reduce_attributes a;
        if (!attributes_of(LG__OP(sum), &o, &a))
                return NULL;
        if (!lg__dtype_float(o.x->at.dtype))
                return lg__fail(o.x->ctx, LG_ERR_DTYPE,
                                "mean: x is %s, not of a float dtype; convert it with lg_cast()",
                                lg__tensor_text(o.x).s);
        lg_dtype dtype = o.x->at.dtype;
        double count = (double)reduced_count(o.x->at.shape, &a);
        if (dtype == LG_F16 || dtype == LG_BF16) /* whose sum may be out of range where their mean is not */
                o.x = lg_cast(o.x, LG_F32);
        return lg_cast(lg_div_scalar(lg_sum_(o), count), dtype);
}
