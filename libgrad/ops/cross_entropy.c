/* cross_entropy.c - cross-entropy of scores x (rows, classes) against class indices, or a weight for each class.
 *
 * With weights q (class_weights: one-hot, smoothed, ignored rows zero, divided by the count for a mean):
 * loss = -sum q log_softmax(x); dx = g (softmax(x) sum_c(q) - q). nll is -sum q x of logarithms x; it, and all that
 * has weights w of classes (q is then q w, and a mean divides by the sum of w[t]), is made of other ops; so is the loss
 * of a target that is q itself.
 */
#include <math.h>
#include "../op.h"

typedef struct entropy_attributes {
        int64_t classes, ignore_index;
        double label_smoothing;
        lg_reduction reduction;
        lg_dtype dtype; /* of class_weights */
        lg__fault fault;
} entropy_attributes;

static lg_cross_entropy_args kernel_args(const entropy_attributes *a, const lg_tensor *target, lg_dtype dtype)
{
        return (lg_cross_entropy_args){.dtype = dtype,
                                       .rows = lg__shape_numel(target->at.shape),
                                       .classes = a->classes,
                                       .reduction = a->reduction,
                                       .ignore_index = a->ignore_index,
                                       .label_smoothing = a->label_smoothing,
                                       .labels = lg__data(target),
                                       .fault = a->fault};
}

static bool infer_cross_entropy(lg__call *call)
{
        const entropy_attributes *a = call->attributes;
        call->out_at[0].dtype = call->in[0]->at.dtype;
        if (a->reduction == LG_NONE)
                call->out_at[0].shape = LG_SHAPE(call->in[0]->at.shape.size[0]);
        return true;
}

static bool forward_cross_entropy(lg__call *call)
{
        lg_cross_entropy_args k = kernel_args(call->attributes, call->in[1], call->in[0]->at.dtype);
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        k.x = lg__data(call->in[0]);
        k.out = lg__data(call->out[0]);
        return LG__RUN(call->device, "cross_entropy", cross_entropy, &k);
}

static bool fused_cross_entropy(lg__vjp *v)
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

static bool vjp_cross_entropy(lg__vjp *v)
{
        entropy_attributes a = *(const entropy_attributes *)v->attributes;
        lg_tensor *x = v->in[0], *g = v->grad[0];
        a.dtype = x->at.dtype;
        lg_tensor *q = lg__apply1(LG__OP(class_weights), v->in[1], &a);
        lg_tensor *slope = lg_sub(lg_mul(lg_softmax(x, 1), lg_sum(q, .dims = LG_DIMS(1), .keep_dim = true)), q);
        if (a.reduction == LG_NONE)
                g = lg_unsqueeze(g, 1);
        return (v->grad_in[0] = lg_mul(g, slope)) != NULL;
}

const lg__op lg__op_cross_entropy = {
        .name = "cross_entropy",
        LG__OPERANDS({"x", .saved_for = LG__BY(0)}, {"target", LG__INDEX, .saved_for = LG__BY(0)}),
        LG__RESULTS({"y"}),
        .attributes_bytes = sizeof(entropy_attributes),
        .infer = infer_cross_entropy,
        .forward = forward_cross_entropy,
        .vjp = vjp_cross_entropy,
        .fused = fused_cross_entropy};

static bool infer_class_weights(lg__call *call)
{
        const entropy_attributes *a = call->attributes;
        call->out_at[0].dtype = a->dtype;
        call->out_at[0].shape = LG_SHAPE(call->in[0]->at.shape.size[0], a->classes);
        return true;
}

static bool forward_class_weights(lg__call *call)
{
        const entropy_attributes *a = call->attributes;
        lg_cross_entropy_args k = kernel_args(a, call->in[0], a->dtype);
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        k.out = lg__data(call->out[0]);
        return LG__RUN(call->device, "class_weights", class_weights, &k);
}

const lg__op lg__op_class_weights = {.name = "class_weights",
                                     LG__OPERANDS({"target", LG__INDEX}),
                                     LG__RESULTS({"y"}),
                                     .attributes_bytes = sizeof(entropy_attributes),
                                     .infer = infer_class_weights,
                                     .forward = forward_class_weights};

/* ---- the function ---- */

static bool check_weight(const char *op, const lg_tensor *x, const lg_tensor *w)
{
        int64_t classes = x->at.shape.size[x->at.shape.ndim > 1];
        if (!lg__same_context(x, w, op, "weight") || !lg__check(w, op, "weight"))
                return false;
        if (!lg__dtype_float(w->at.dtype))
                return lg__fail(x->ctx, LG_ERR_DTYPE, "%s: weight is %s, not of a float dtype", op,
                                lg__tensor_text(w).s);
        if (!lg__shape_equal(w->at.shape, LG_SHAPE(classes)))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: weight is %s; of %lld classes it has shape (%lld)", op,
                                lg__tensor_text(w).s, (long long)classes, (long long)classes);
        return true;
}

static bool check_options(const char *op, const lg_tensor *x, const lg_cross_entropy_options *o)
{
        if (x->at.shape.size[x->at.shape.ndim > 1] == 0)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s: it has no classes", op, lg__tensor_text(x).s);
        if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: label_smoothing is %g, not in [0, 1]", op,
                                o->label_smoothing);
        return lg__check_reduction(x->ctx, op, o->reduction, false) && (!o->weight || check_weight(op, x, o->weight));
}

static bool check_scores(const char *op, const lg_tensor *x)
{
        return lg__dtype_float(x->at.dtype) ||
               lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s, not of a float dtype", op, lg__tensor_text(x).s);
}

/* x (N, C, d...) and target (N, d...); or x (C) and target (). */
static bool check(const char *op, bool scores, const lg_tensor *x, const lg_tensor *t,
                  const lg_cross_entropy_options *o)
{
        lg_ctx *c = x->ctx;
        lg_shape rest = x->at.shape;
        int dim = rest.ndim > 1;
        if (!check_scores(op, x))
                return false;
        if (t->at.dtype != LG_I64)
                return lg__fail(c, LG_ERR_DTYPE, "%s: target is %s; class indices are i64: lg_cast(target, LG_I64)%s",
                                op, lg__tensor_text(t).s, scores ? "; probabilities are floats of x's shape" : "");
        for (int i = dim; i + 1 < rest.ndim; i++)
                rest.size[i] = rest.size[i + 1];
        if (--rest.ndim < 0 || !lg__shape_equal(rest, t->at.shape))
                return lg__fail(c, LG_ERR_SHAPE, "%s: x is %s and target %s; they are (N, C, ...) and (N, ...)", op,
                                lg__tensor_text(x).s, lg__tensor_text(t).s);
        return check_options(op, x, o);
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

/* q, not divided for a mean, times w. */
static lg_tensor *weights(lg_tensor *labels, entropy_attributes a, lg_tensor *w)
{
        a.reduction = LG_SUM;
        lg_tensor *q = lg__apply1(LG__OP(class_weights), labels, &a);
        return w ? lg_mul(q, w) : q;
}

/* -sum q lp with weights w: what the op cross_entropy does not do. lp is (rows, classes). */
static lg_tensor *weighted(lg_tensor *lp, lg_tensor *labels, entropy_attributes a, lg_tensor *w)
{
        lg_tensor *some = NULL;
        a.dtype = lp->at.dtype;
        w = w ? lg_cast(lg_detach(w), a.dtype) : NULL;
        lg_tensor *q = weights(labels, a, w);
        if (a.reduction == LG_MEAN) {
                entropy_attributes hard = a;
                hard.label_smoothing = 0;
                lg_tensor *total = lg_sum(a.label_smoothing > 0 ? weights(labels, hard, w) : q);
                some = lg_ne_scalar(total, 0); /* the mean of nothing is NaN, but its gradient is 0 */
                q = lg_div(q, lg_where(some, total, lg__constant(lp, 1)));
        }
        /* A factor of 0 would make NaN of a class that cannot be. */
        lg_tensor *each = lg_mul(q, lg_where(lg_ne_scalar(q, 0), lp, lg__constant(lp, 0)));
        if (a.reduction == LG_NONE)
                return lg_neg(lg_sum(each, .dims = LG_DIMS(1)));
        lg_tensor *loss = lg_neg(lg_sum(each));
        return a.reduction == LG_MEAN ? lg_where(some, loss, lg__constant(lp, NAN)) : loss;
}

/* Of scores, or of logarithms of probabilities; 16-bit ones are computed with in f32. */
static lg_tensor *weighted_wide(lg_tensor *x, bool scores, lg_tensor *labels, const entropy_attributes *a, lg_tensor *w)
{
        lg_tensor *wide = lg__widened(x), *lp = scores ? lg_log_softmax(wide, 1) : wide;
        return lp && labels ? lg_cast(weighted(lp, labels, *a, w), x->at.dtype) : NULL;
}

static bool check_operands(const char *op, const lg_tensor *x, const lg_tensor *t)
{
        if (!x || !t)
                return lg__fail(x ? x->ctx : lg__ctx_of(t), LG_ERR_ARGUMENT, "%s: %s is NULL", op, x ? "target" : "x");
        return lg__same_context(x, t, op, "target") && lg__check(x, op, "x") && lg__check(t, op, "target");
}

/* Both losses: of scores, or of logarithms of probabilities. */
static lg_tensor *classify(const char *op, bool scores, lg_tensor *x, lg_tensor *t, const lg_cross_entropy_options *o)
{
        if (!check(op, scores, x, t, o))
                return NULL;
        lg_shape shape = t->at.shape;
        entropy_attributes a = {.classes = x->at.shape.size[x->at.shape.ndim > 1],
                                .ignore_index = lg__whole_option(o->ignore_index, -100),
                                .label_smoothing = o->label_smoothing,
                                .reduction = o->reduction,
                                .fault = scores ? LG__FAULT_CROSS_ENTROPY : LG__FAULT_NLL};
        lg_tensor *labels = lg_contiguous(lg_reshape(t, LG_SHAPE(lg__shape_numel(shape)))), *loss;
        x = as_rows(x, a.classes);
        if (scores && !o->weight)
                loss = lg__apply2(LG__OP(cross_entropy), x, labels, &a);
        else
                loss = weighted_wide(x, scores, labels, &a, o->weight);
        return loss && o->reduction == LG_NONE ? lg_reshape(loss, shape) : loss;
}

/* Of scores against weights q of the shape of x: -sum q log_softmax(x) w. */
static lg_tensor *soft(lg_tensor *x, lg_tensor *q, const lg_cross_entropy_options *o)
{
        const char *op = "cross_entropy";
        lg_shape s = x->at.shape, of_weight = {.ndim = s.ndim};
        int dim = s.ndim > 1;
        if (!check_scores(op, x) || !check_options(op, x, o))
                return NULL;
        if (o->ignore_index)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: ignore_index is for class indices, but target is %s", op,
                                lg__tensor_text(q).s);
        lg_dtype dtype = lg__common_dtype((lg_tensor *[]){x, q}, 2);
        lg_tensor *lp = lg_log_softmax(lg__widened(x), dim);
        q = lg__widened(q);
        if (o->label_smoothing > 0)
                q = lg_add_scalar(lg_mul_scalar(q, 1 - o->label_smoothing), o->label_smoothing / (double)s.size[dim]);
        /* 0 times the -inf of a class that cannot be is 0 */
        lg_tensor *none = lg_logical_and(lg_eq_scalar(q, 0), lg_eq_scalar(lp, -INFINITY));
        lg_tensor *each = lg_mul(q, lg_where(none, lg__constant(lp, 0), lp));
        for (int i = 0; i < s.ndim; i++)
                of_weight.size[i] = i == dim ? s.size[dim] : 1;
        if (each && o->weight)
                each = lg_mul(each, lg_reshape(lg_cast(lg_detach(o->weight), each->at.dtype), of_weight));
        if (o->reduction == LG_NONE)
                return lg_cast(lg_neg(lg_sum(each, .dims = LG_DIMS(dim))), dtype);
        lg_tensor *loss = lg_neg(lg_sum(each));
        if (o->reduction == LG_MEAN)
                loss = lg_div_scalar(loss, (double)(lg__shape_numel(s) / s.size[dim]));
        return lg_cast(loss, dtype);
}

lg_tensor *lg_cross_entropy_with(lg_tensor *x, lg_tensor *target, const lg_cross_entropy_options *options)
{
        lg_cross_entropy_options o;
        if (!check_operands("cross_entropy", x, target) || !lg__take(x->ctx, "cross_entropy", options, &o, sizeof o))
                return NULL;
        o.label_smoothing = lg__option(o.label_smoothing, 0);
        if (lg__dtype_float(target->at.dtype) && x->at.shape.ndim && lg__shape_equal(x->at.shape, target->at.shape))
                return soft(x, target, &o);
        return classify("cross_entropy", true, x, target, &o);
}

lg_tensor *lg_nll_with(lg_tensor *x, lg_tensor *target, const lg_nll_options *options)
{
        lg_nll_options o;
        if (!check_operands("nll", x, target) || !lg__take(x->ctx, "nll", options, &o, sizeof o))
                return NULL;
        return classify("nll", false, x, target,
                        LG_OPTIONS(lg_cross_entropy_options, .reduction = o.reduction, .weight = o.weight,
                                   .ignore_index = o.ignore_index));
}
