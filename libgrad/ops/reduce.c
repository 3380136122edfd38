/* reduce.c - sum, mean, amax, amin, argmax, argmin, var, std and the Euclidean norm over any set of dimensions.
 *
 * sum: dx = g, expanded to x. mean: dx = g / count, expanded to x. amax, amin: dx = g * (x == y) / (number of equals).
 * var: dx = g * 2 (x - mean) / (count - correction). std: dx = g * (x - mean) / ((count - correction) y).
 * norm2: dx = g * x / y. Where y = 0, dx = 0.
 */
#include <math.h>
#include <stdio.h>
#include "reduce.h"

bool lg__is_reduced(const reduce_attributes *a, int dim)
{
        for (int i = 0; i < a->dims.count; i++)
                if (a->dims.dim[i] == dim)
                        return true;
        return false;
}

lg_shape lg__reduced_shape(lg_shape s, const reduce_attributes *a, bool keep_dim)
{
        lg_shape to = LG_SHAPE_0D;
        for (int i = 0; i < s.ndim; i++)
                if (!lg__is_reduced(a, i))
                        to.size[to.ndim++] = s.size[i];
                else if (keep_dim)
                        to.size[to.ndim++] = 1;
        return to;
}

int64_t lg__reduced_count(lg_shape s, const reduce_attributes *a)
{
        int64_t n = 1;
        for (int i = 0; i < a->dims.count; i++)
                n *= s.size[a->dims.dim[i]];
        return n;
}

static bool take(lg_ctx *c, const char *op, const lg_reduce_options *options, reduce_attributes *ret)
{
        lg_reduce_options o;
        if (!lg__take(c, op, options, &o, sizeof o))
                return false;
        *ret = (reduce_attributes){1, o.dims, o.keep_dim};
        return true;
}

bool lg__reduce_of(const lg__call *call, const lg_reduce_options *options, reduce_attributes *ret)
{
        return take(call->ctx, call->op->name, options, ret) &&
               lg__dims(call->ctx, call->op->name, &ret->dims, call->in[0]->at.shape.ndim);
}

/* ---- shape rule, kernel call and derivatives of reductions ---- */

static lg_reduce_kind kind_of(const lg__op *op)
{
        return op == LG__OP(sum)      ? LG_REDUCE_SUM
               : op == LG__OP(amax)   ? LG_REDUCE_MAX
               : op == LG__OP(amin)   ? LG_REDUCE_MIN
               : op == LG__OP(argmax) ? LG_REDUCE_ARGMAX
               : op == LG__OP(argmin) ? LG_REDUCE_ARGMIN
               : op == LG__OP(mean)   ? LG_REDUCE_MEAN
               : op == LG__OP(norm2)  ? LG_REDUCE_NORM
               : op == LG__OP(std)    ? LG_REDUCE_STD
                                      : LG_REDUCE_VAR;
}

static bool infer(lg__call *call)
{
        reduce_attributes *a = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        lg__layout *y = &call->out_at[0];
        const lg_reduce_kind kind = kind_of(call->op);
        const bool sum = kind == LG_REDUCE_SUM, place = kind == LG_REDUCE_ARGMAX || kind == LG_REDUCE_ARGMIN;
        const bool chooses = place || kind == LG_REDUCE_MAX || kind == LG_REDUCE_MIN;
        if (!lg__dims(call->ctx, call->op->name, &a->dims, x->shape.ndim))
                return false;
        y->dtype = place || (sum && !lg__dtype_float(x->dtype)) ? LG_I64 : x->dtype;
        y->shape = lg__reduced_shape(x->shape, a, a->keep_dim);
        return !chooses || lg__reduced_count(x->shape, a) > 0 || lg__shape_numel(y->shape) == 0 ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: there is no element to choose from", call->op->name,
                        lg__tensor_text(call->in[0]).s);
}

static bool forward(lg__call *call)
{
        const reduce_attributes *a = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        lg_reduce_args r = {.kind = kind_of(call->op), .dtype = x->dtype, .correction = a->correction};
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

/* Returns t, a reduced tensor (g or y), with the reduced dimensions as size 1, so that t broadcasts to x. */
static lg_tensor *restore(lg_tensor *t, const lg__vjp *v)
{
        return lg_reshape(t, lg__reduced_shape(lg__input_shape(v, 0), v->attributes, true));
}

static bool vjp_sum(lg__vjp *v)
{
        return (v->grad_in[0] = lg_expand(restore(v->grad[0], v), lg__input_shape(v, 0))) != NULL;
}

static bool vjp_extreme(lg__vjp *v)
{
        const lg_dims dims = ((const reduce_attributes *)v->attributes)->dims;
        lg_tensor *equal = lg_cast(lg_eq(v->in[0], restore(v->out[0], v)), v->grad[0]->at.dtype);
        lg_tensor *number = dims.count ? lg_sum(equal, .dims = dims, .keep_dim = true) : equal;
        return (v->grad_in[0] = lg_mul(restore(v->grad[0], v), lg_div(equal, number))) != NULL;
}

static bool vjp_mean(lg__vjp *v)
{
        const lg_shape s = lg__input_shape(v, 0);
        const int64_t count = lg__reduced_count(s, v->attributes);
        lg_tensor *g = lg_div_scalar(restore(v->grad[0], v), count ? (double)count : 1);
        return (v->grad_in[0] = lg_expand(g, s)) != NULL;
}

/* Subtracts the mean twice: the first mean is rounded; the mean of the differences is small, and so is its rounding. */
lg_tensor *lg__centered(lg_tensor *x, lg_dims dims)
{
        for (int i = 0; i < 2 && dims.count; i++)
                x = lg_sub(x, lg_mean(x, .dims = dims, .keep_dim = true));
        return dims.count ? x : lg_sub(x, x);
}

/* Returns g / y, and 0 with derivatives of 0 where y is 0. For 16-bit inputs, y is recomputed in f32. */
static lg_tensor *over_result(const lg__vjp *v, lg_tensor *g)
{
        lg_tensor *wide = lg__widened(v->in[0]);
        lg_tensor *y = restore(wide == v->in[0] ? v->out[0] : lg__apply1(v->op, wide, v->attributes), v);
        return lg_div(g, lg_where(lg_eq_scalar(y, 0), lg__constant(y, INFINITY), y));
}

static bool vjp_var(lg__vjp *v)
{
        const reduce_attributes *a = v->attributes;
        const bool root = v->op == LG__OP(std);
        const double count = (double)lg__reduced_count(lg__input_shape(v, 0), a), left = count - a->correction;
        const double factor = (root ? 1 : 2) / (left > 0 ? left : 0);
        if (count == 0)
                return vjp_sum(v); /* without elements, the gradient is empty */
        lg_tensor *d = lg__centered(lg__widened(v->in[0]), a->dims), *g = restore(lg__widened(v->grad[0]), v);
        g = lg_mul_scalar(root ? over_result(v, g) : g, factor);
        return (v->grad_in[0] = lg_mul(g, d)) != NULL;
}

static bool vjp_norm2(lg__vjp *v)
{
        lg_tensor *g = over_result(v, restore(lg__widened(v->grad[0]), v));
        return (v->grad_in[0] = lg_mul(g, lg__widened(v->in[0]))) != NULL;
}

lg_tensor *lg__sum_to(lg_tensor *x, lg_shape shape)
{
        if (!x || lg__shape_equal(x->at.shape, shape))
                return x;
        lg_dims dims = LG_ALL_DIMS;
        int missing = x->at.shape.ndim - shape.ndim;
        for (int i = 0; i < x->at.shape.ndim; i++)
                if (i < missing || (shape.size[i - missing] == 1 && x->at.shape.size[i] != 1))
                        dims.dim[dims.count++] = i;
        if (dims.count)
                x = lg_sum(x, .dims = dims, .keep_dim = true);
        return lg_reshape(x, shape);
}

static lg_tensor *apply(const lg__op *op, lg_tensor *x, const lg_reduce_options *options)
{
        reduce_attributes a;
        return take(lg__ctx_of(x), op->name, options, &a) ? lg__apply1(op, x, &a) : NULL;
}

#define REDUCTION_OP(of, takes, x_saved_for, y_saved_for, ...)                                                         \
        LG__DEFINE(of, LG__OPERANDS({"x", takes, .saved_for = x_saved_for}),                                           \
                   LG__RESULTS({"y", .saved_for = y_saved_for}), LG__HAS(reduce), .infer = infer, .forward = forward,  \
                   .form = form, __VA_ARGS__)
#define REDUCTION(of, ...)                                                                                             \
        REDUCTION_OP(of, __VA_ARGS__)                                                                                  \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_reduce_options *options)                                      \
        {                                                                                                              \
                return apply(LG__OP(of), x, options);                                                                  \
        }
/* Writes "name(x, [dims], keepdims=...)", of x as i64 where the result is. */
static void add_reduction(lg__form *f, const lg__call *call, const char *name, const char *of)
{
        const bool cast = call->out[0]->at.dtype != call->in[0]->at.dtype;
        char text[96];
        snprintf(text, sizeof text,
                 cast ? "%s(Cast(%s, to=i64), [dims], keepdims=keep_dim)" : "%s(%s, [dims], keepdims=keep_dim)", name,
                 of);
        lg__form_expand(f, call, text);
}

static bool form(lg__form *f, const lg__call *call)
{
        const reduce_attributes *a = call->attributes;
        const lg_reduce_kind kind = kind_of(call->op);
        const double n = (double)lg__reduced_count(call->in[0]->at.shape, a), left = n - a->correction;
        static const char *const names[] = {
                [LG_REDUCE_SUM] = "ReduceSum",   [LG_REDUCE_MAX] = "ReduceMax", [LG_REDUCE_MIN] = "ReduceMin",
                [LG_REDUCE_MEAN] = "ReduceMean", [LG_REDUCE_NORM] = "ReduceL2", [LG_REDUCE_ARGMAX] = "ArgMax",
                [LG_REDUCE_ARGMIN] = "ArgMin"};
        const int ndim = call->in[0]->at.shape.ndim;
        if (!a->dims.count)
                return false;
        if (kind == LG_REDUCE_ARGMAX || kind == LG_REDUCE_ARGMIN) {
                if (a->dims.count == 1)
                        lg__form_add(f, "%s(x, axis=%d, keepdims=%d)", names[kind], a->dims.dim[0], a->keep_dim);
                else if (a->dims.count == ndim && !a->keep_dim)
                        lg__form_add(f, "%s(Reshape(x, [-1]), axis=0, keepdims=0)", names[kind]);
                return f->length;
        }
        if (kind != LG_REDUCE_VAR && kind != LG_REDUCE_STD) {
                add_reduction(f, call, names[kind], "x");
                return true;
        }
        lg__form_expand(f, call, "d = Sub(x, ReduceMean(x, [dims], keepdims=1)); ");
        lg__form_add(f, "y = %sMul({%.17g}, ", kind == LG_REDUCE_STD ? "Sqrt(" : "", left > 0 ? n / left : LG_INFINITY);
        add_reduction(f, call, "ReduceMean", "Mul(d, d)");
        lg__form_add(f, kind == LG_REDUCE_STD ? "))" : ")");
        return true;
}

REDUCTION(sum, LG__ANY, 0, 0, .vjp = vjp_sum, .autocast = LG__F32)
REDUCTION(mean, LG__FLOAT, 0, 0, .vjp = vjp_mean)
REDUCTION(amax, LG__ANY, LG__BY(0), LG__BY(0), .vjp = vjp_extreme)
REDUCTION(amin, LG__ANY, LG__BY(0), LG__BY(0), .vjp = vjp_extreme)
REDUCTION(argmax, LG__ANY, 0, 0, .vjp = NULL)
REDUCTION(argmin, LG__ANY, 0, 0, .vjp = NULL)
REDUCTION_OP(var, LG__FLOAT, LG__BY(0), 0, .vjp = vjp_var)
REDUCTION_OP(std, LG__FLOAT, LG__BY(0), LG__BY(0), .vjp = vjp_var)
REDUCTION_OP(norm2, LG__FLOAT, LG__BY(0), LG__BY(0), .vjp = vjp_norm2)

#define DEVIATION(of)                                                                                                  \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_var_options *options)                                         \
        {                                                                                                              \
                lg_var_options o;                                                                                      \
                return lg__take(lg__ctx_of(x), #of, options, &o, sizeof o)                                             \
                               ? LG__APPLY(of,                                                                         \
                                           (&(reduce_attributes){lg__option(o.correction, 1), o.dims, o.keep_dim}), x) \
                               : NULL;                                                                                 \
        }
DEVIATION(var)
DEVIATION(std)
