/* reduce.c - sum, mean, amax, amin, argmax, argmin, var over any set of dimensions.
 *
 * sum: dx = g, repeated. amax, amin: dx = g * (x == y) / (number of equals). mean = sum / count.
 * var: dx = g * 2 (x - mean) / (count - correction).
 */
#include <string.h>
#include "reduce.h"

lg_shape lg__reduced_shape(lg_shape s, const lg__reduced *a, bool keep_dim)
{
        lg_shape to = LG_SHAPE_0D;
        for (int i = 0; i < s.ndim; i++)
                if (!lg__is_reduced(a, i))
                        to.size[to.ndim++] = s.size[i];
                else if (keep_dim)
                        to.size[to.ndim++] = 1;
        return to;
}

int64_t lg__reduced_count(lg_shape s, const lg__reduced *a)
{
        int64_t n = 1;
        for (int i = 0; i < s.ndim; i++)
                n *= lg__is_reduced(a, i) ? s.size[i] : 1;
        return n;
}

lg_dims lg__reduced_dims(int ndim, const lg__reduced *a)
{
        lg_dims dims = LG_ALL_DIMS;
        for (int i = 0; i < ndim; i++)
                if (lg__is_reduced(a, i))
                        dims.dim[dims.count++] = i;
        return dims;
}

static bool infer(lg__call *call, lg_dtype dtype)
{
        const lg__reduced *a = call->attributes;
        call->out_at[0].dtype = dtype;
        call->out_at[0].shape = lg__reduced_shape(call->in[0]->at.shape, a, a->keep_dim);
        return true;
}

static bool infer_not_empty(lg__call *call, lg_dtype dtype)
{
        lg_shape s = call->in[0]->at.shape;
        infer(call, dtype);
        if (lg__reduced_count(s, call->attributes) == 0 && lg__shape_numel(call->out_at[0].shape) > 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: there is no element to choose from",
                                call->op->name, lg__tensor_text(call->in[0]).s);
        return true;
}

static bool forward(lg__call *call, lg_reduce_kind kind)
{
        const lg__reduced *a = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        lg_reduce_args r = {.kind = kind, .dtype = x->dtype, .correction = a->correction};
        for (int i = 0; i < x->shape.ndim; i++) {
                if (lg__is_reduced(a, i)) {
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
        return lg_reshape(t, lg__reduced_shape(lg__input(v, 0)->shape, v->attributes, true));
}

/* ---- the ops ---- */

static bool infer_sum(lg__call *call)
{
        lg_dtype d = call->in[0]->at.dtype;
        return infer(call, lg__dtype_float(d) ? d : LG_I64);
}

static bool forward_sum(lg__call *call)
{
        return forward(call, LG_REDUCE_SUM);
}

static bool vjp_sum(lg__vjp *v)
{
        return (v->grad_in[0] = lg_expand(restore(v->grad[0], v), lg__input(v, 0)->shape)) != NULL;
}

const lg__op lg__op_sum = {.name = "sum",
                           LG__OPERANDS({"x"}),
                           LG__RESULTS({"y"}),
                           .attributes_bytes = sizeof(lg__reduced),
                           .infer = infer_sum,
                           .forward = forward_sum,
                           .vjp = vjp_sum};

#define EXTREME(name, kind)                                                                                            \
        static bool infer_##name(lg__call *call)                                                                       \
        {                                                                                                              \
                return infer_not_empty(call, call->in[0]->at.dtype);                                                   \
        }                                                                                                              \
        static bool forward_##name(lg__call *call)                                                                     \
        {                                                                                                              \
                return forward(call, kind);                                                                            \
        }                                                                                                              \
        static bool vjp_##name(lg__vjp *v)                                                                             \
        {                                                                                                              \
                return vjp_extreme(v);                                                                                 \
        }

static bool vjp_extreme(lg__vjp *v)
{
        const lg__reduced *a = v->attributes;
        lg_dims dims = lg__reduced_dims(lg__input(v, 0)->shape.ndim, a);
        lg_tensor *equal = lg_cast(lg_eq(v->in[0], restore(v->out[0], v)), v->grad[0]->at.dtype);
        lg_tensor *number = dims.count ? lg_sum(equal, .dims = dims, .keep_dim = true) : equal;
        return (v->grad_in[0] = lg_mul(restore(v->grad[0], v), lg_div(equal, number))) != NULL;
}
EXTREME(amax, LG_REDUCE_MAX)

const lg__op lg__op_amax = {.name = "amax",
                            LG__OPERANDS({"x", .saved_for = LG__BY(0)}),
                            LG__RESULTS({"y", .saved_for = LG__BY(0)}),
                            .attributes_bytes = sizeof(lg__reduced),
                            .infer = infer_amax,
                            .forward = forward_amax,
                            .vjp = vjp_amax};
EXTREME(amin, LG_REDUCE_MIN)

const lg__op lg__op_amin = {.name = "amin",
                            LG__OPERANDS({"x", .saved_for = LG__BY(0)}),
                            LG__RESULTS({"y", .saved_for = LG__BY(0)}),
                            .attributes_bytes = sizeof(lg__reduced),
                            .infer = infer_amin,
                            .forward = forward_amin,
                            .vjp = vjp_amin};

static bool infer_argmax(lg__call *call)
{
        return infer_not_empty(call, LG_I64);
}

static bool forward_argmax(lg__call *call)
{
        return forward(call, LG_REDUCE_ARGMAX);
}

const lg__op lg__op_argmax = {.name = "argmax",
                              LG__OPERANDS({"x"}),
                              LG__RESULTS({"y"}),
                              .attributes_bytes = sizeof(lg__reduced),
                              .infer = infer_argmax,
                              .forward = forward_argmax};

static bool infer_argmin(lg__call *call)
{
        return infer_not_empty(call, LG_I64);
}

static bool forward_argmin(lg__call *call)
{
        return forward(call, LG_REDUCE_ARGMIN);
}

const lg__op lg__op_argmin = {.name = "argmin",
                              LG__OPERANDS({"x"}),
                              LG__RESULTS({"y"}),
                              .attributes_bytes = sizeof(lg__reduced),
                              .infer = infer_argmin,
                              .forward = forward_argmin};

static bool infer_var(lg__call *call)
{
        return infer(call, call->in[0]->at.dtype);
}

static bool forward_var(lg__call *call)
{
        return forward(call, LG_REDUCE_VAR);
}

static bool vjp_var(lg__vjp *v)
{
        const lg__reduced *a = v->attributes;
        lg_shape s = lg__input(v, 0)->shape;
        lg_dims dims = lg__reduced_dims(s.ndim, a);
        double left = (double)lg__reduced_count(s, a) - a->correction;
        lg_tensor *mean = dims.count ? lg_mean(v->in[0], .dims = dims, .keep_dim = true) : v->in[0];
        lg_tensor *slope = lg_mul_scalar(lg_sub(v->in[0], mean), 2 / (left > 0 ? left : 0));
        return (v->grad_in[0] = lg_mul(restore(v->grad[0], v), slope)) != NULL;
}

const lg__op lg__op_var = {.name = "var",
                           LG__OPERANDS({"x", LG__FLOAT, .saved_for = LG__BY(0)}),
                           LG__RESULTS({"y"}),
                           .attributes_bytes = sizeof(lg__reduced),
                           .infer = infer_var,
                           .forward = forward_var,
                           .vjp = vjp_var};

/* ---- the functions ---- */

bool lg__reduced_of(const char *name, const lg_tensor *x, const lg_reduce_options *options, lg__reduced *ret)
{
        lg_reduce_options o;
        if (!lg__check(x, name, "x") || !lg__take(x->ctx, name, options, &o, sizeof o))
                return false;
        int ndim = x->at.shape.ndim;
        memset(ret, 0, sizeof *ret);
        ret->keep_dim = o.keep_dim;
        ret->correction = lg__option(o.correction, 1);
        if (o.dims.count < 0 || o.dims.count > LG_MAX_DIMS)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: a set of %d dimensions", name, o.dims.count);
        for (int i = 0; i < (o.dims.count ? o.dims.count : ndim); i++) {
                int d = o.dims.count ? lg__dim(x->ctx, name, o.dims.dim[i], ndim) : i;
                if (d < 0)
                        return false;
                if (lg__is_reduced(ret, d))
                        return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: dimension %d is given twice", name, d);
                ret->dims |= 1u << d;
        }
        return true;
}

bool lg__reduced_of_float(const char *name, const lg_tensor *x, const lg_reduce_options *options, lg__reduced *ret)
{
        if (!lg__reduced_of(name, x, options, ret))
                return false;
        return lg__dtype_float(x->at.dtype) ||
               lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s, not of a float dtype; convert it with lg_cast()", name,
                        lg__tensor_text(x).s);
}

static lg_tensor *apply(const lg__op *op, lg_tensor *x, const lg_reduce_options *options)
{
        lg__reduced a;
        return lg__reduced_of(op->name, x, options, &a) ? lg__apply1(op, x, &a) : NULL;
}

lg_tensor *lg_sum_with(lg_tensor *x, const lg_reduce_options *options)
{
        return apply(LG__OP(sum), x, options);
}

lg_tensor *lg_amax_with(lg_tensor *x, const lg_reduce_options *options)
{
        return apply(LG__OP(amax), x, options);
}

lg_tensor *lg_amin_with(lg_tensor *x, const lg_reduce_options *options)
{
        return apply(LG__OP(amin), x, options);
}

lg_tensor *lg_argmax_with(lg_tensor *x, const lg_reduce_options *options)
{
        return apply(LG__OP(argmax), x, options);
}

lg_tensor *lg_argmin_with(lg_tensor *x, const lg_reduce_options *options)
{
        return apply(LG__OP(argmin), x, options);
}

lg_tensor *lg_var_with(lg_tensor *x, const lg_reduce_options *options)
{
        return apply(LG__OP(var), x, options);
}

lg_tensor *lg_mean_with(lg_tensor *x, const lg_reduce_options *options)
{
        lg__reduced a;
        if (!lg__reduced_of_float("mean", x, options, &a))
                return NULL;
        double count = (double)lg__reduced_count(x->at.shape, &a);
        return lg_cast(lg_div_scalar(lg_sum_with(lg__widened(x), options), count), x->at.dtype);
}
