/* cross_entropy.c - cross-entropy of scores x (rows, classes) against class indices.
 *
 * With weights q (class_weights: one-hot, smoothed, ignored rows zero, divided by the count for a mean):
 * loss = -sum q log_softmax(x); dx = g (softmax(x) sum_c(q) - q).
 */
#include "../op.h"

typedef struct entropy_attributes {
        int64_t classes, ignore_index;
        double label_smoothing;
        lg_reduction reduction;
        lg_dtype dtype; /* of class_weights */
} entropy_attributes;

static lg_cross_entropy_args kernel_args(const entropy_attributes *a, const lg_tensor *target, lg_dtype dtype)
{
        return (lg_cross_entropy_args){.dtype = dtype,
                                       .rows = lg__shape_numel(target->at.shape),
                                       .classes = a->classes,
                                       .reduction = a->reduction,
                                       .ignore_index = a->ignore_index,
                                       .label_smoothing = a->label_smoothing,
                                       .labels = lg__data(target)};
}

bool lg__infer_cross_entropy(lg__call *call)
{
        const entropy_attributes *a = call->attributes;
        call->out_at[0].dtype = call->in[0]->at.dtype;
        if (a->reduction == LG_NONE)
                call->out_at[0].shape = LG_SHAPE(call->in[0]->at.shape.size[0]);
        return true;
}

bool lg__forward_cross_entropy(lg__call *call)
{
        lg_cross_entropy_args k = kernel_args(call->attributes, call->in[1], call->in[0]->at.dtype);
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        k.x = lg__data(call->in[0]);
        k.out = lg__data(call->out[0]);
        return LG__RUN(call->device, "cross_entropy", cross_entropy, &k);
}

bool lg__fused_cross_entropy(lg__vjp *v)
{
        lg_tensor *x = v->in[0], *g = lg_contiguous(v->grad[0]), *dx = g ? lg__tensor_like(x) : NULL;
        if (!dx)
                return false;
        lg_cross_entropy_args k = kernel_args(v->attributes, v->in[1], x->at.dtype);
        v->grad_in[0] = dx;
        if (lg__shape_numel(x->at.shape) == 0)
                return true;
        k.x = lg__data(x);
        k.g = lg__data(g);
        k.out = lg__data(dx);
        return LG__RUN(x->storage->device, "cross_entropy", cross_entropy_vjp, &k);
}

bool lg__vjp_cross_entropy(lg__vjp *v)
{
        entropy_attributes a = *(const entropy_attributes *)v->attributes;
        lg_tensor *x = v->in[0], *g = v->grad[0];
        a.dtype = x->at.dtype;
        lg_tensor *q = lg__apply1(LG__OP(class_weights), v->in[1], &a, sizeof a);
        lg_tensor *slope = lg_sub(lg_mul(lg_softmax(x, 1), lg_sum(q, .dims = LG_DIMS(1), .keep_dim = true)), q);
        if (a.reduction == LG_NONE)
                g = lg_unsqueeze(g, 1);
        return (v->grad_in[0] = lg_mul(g, slope)) != NULL;
}

bool lg__infer_class_weights(lg__call *call)
{
        const entropy_attributes *a = call->attributes;
        call->out_at[0].dtype = a->dtype;
        call->out_at[0].shape = LG_SHAPE(call->in[0]->at.shape.size[0], a->classes);
        return true;
}

bool lg__forward_class_weights(lg__call *call)
{
        const entropy_attributes *a = call->attributes;
        lg_cross_entropy_args k = kernel_args(a, call->in[0], a->dtype);
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        k.out = lg__data(call->out[0]);
        return LG__RUN(call->device, "class_weights", class_weights, &k);
}

/* ---- the function
 * --------------------------------------------------------------------------------------------------------- */

/* x (N, C, d...) and target (N, d...); or x (C) and target (). */
static bool check(const lg_tensor *x, const lg_tensor *t, const lg_cross_entropy_options *o)
{
        lg_ctx *c = x->ctx;
        lg_shape rest = x->at.shape;
        int dim = rest.ndim > 1;
        if (!lg__dtype_float(x->at.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "cross_entropy: x is %s, not of a float dtype", lg__tensor_text(x).s);
        if (t->at.dtype != LG_I64)
                return lg__fail(c, LG_ERR_DTYPE,
                                "cross_entropy: target is %s; class indices are i64: lg_cast(target, LG_I64)",
                                lg__tensor_text(t).s);
        for (int i = dim; i + 1 < rest.ndim; i++)
                rest.size[i] = rest.size[i + 1];
        if (--rest.ndim < 0 || !lg__shape_equal(rest, t->at.shape))
                return lg__fail(c, LG_ERR_SHAPE,
                                "cross_entropy: x is %s and target %s; they are (N, C, ...) and (N, ...)",
                                lg__tensor_text(x).s, lg__tensor_text(t).s);
        if (x->at.shape.size[dim] == 0)
                return lg__fail(c, LG_ERR_SHAPE, "cross_entropy: x is %s: it has no classes", lg__tensor_text(x).s);
        if (o->reduction < LG_MEAN || o->reduction > LG_NONE)
                return lg__fail(c, LG_ERR_ARGUMENT, "cross_entropy: %d is no reduction", (int)o->reduction);
        if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "cross_entropy: label_smoothing is %g, not in [0, 1]",
                                o->label_smoothing);
        return true;
}

/* x with its classes last, as rows. */
static lg_tensor *as_rows(lg_tensor *x, int64_t classes)
{
        int n = x->at.shape.ndim;
        lg_dims order = {.count = n};
        for (int i = 0; i < n; i++)
                order.dim[i] = i == 0 ? 0 : i + 1 < n ? i + 1 : 1;
        lg_tensor *moved = n > 2 ? lg_permute(x, order) : x;
        int64_t rows = lg__shape_numel(x->at.shape) / classes;
        return moved ? lg_contiguous(lg_reshape(moved, LG_SHAPE(rows, classes))) : NULL;
}

lg_tensor *lg_cross_entropy_(lg_tensor *x, lg_cross_entropy_options o)
{
        lg_tensor *t = o.target;
        if (!x || !t)
                return lg__fail(x ? x->ctx : lg__ctx_of(t), LG_ERR_ARGUMENT, "cross_entropy: %s is NULL",
                                x ? "target" : "x");
        if (!lg__check(x, "cross_entropy", "x") || !lg__check(t, "cross_entropy", "target") || !check(x, t, &o))
                return NULL;
        lg_shape shape = t->at.shape;
        entropy_attributes a = {.classes = x->at.shape.size[x->at.shape.ndim > 1],
                                .ignore_index = o.ignore_zero    ? 0
                                                : o.ignore_index ? o.ignore_index
                                                                 : -100,
                                .label_smoothing = o.label_smoothing,
                                .reduction = o.reduction};
        lg_tensor *labels = lg_contiguous(lg_reshape(t, LG_SHAPE(lg__shape_numel(shape))));
        lg_tensor *loss = lg__apply2(LG__OP(cross_entropy), as_rows(x, a.classes), labels, &a, sizeof a);
        return loss && o.reduction == LG_NONE ? lg_reshape(loss, shape) : loss;
}
