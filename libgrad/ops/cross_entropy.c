/* cross_entropy.c - cross-entropy of scores x (rows, classes) and class indices, or probabilities of the classes.
 *
 * The op class_weights turns indices into weights q: one-hot, smoothed, zero in ignored rows and, for a mean, divided
 * by the number of rows that count. loss = -sum q log_softmax(x); dx = g (softmax(x) sum_c(q) - q). nll is -sum q x
 * for logarithms x. Composites compute nll, all losses with class weights w (q is then q w, and a mean divides by the
 * sum of w[t]) and losses whose target is q itself.
 */
#include <math.h>
#include <string.h>
#include "graph/op.h"

#define ENTROPY_FIELDS(FIELD)                                                                                          \
        FIELD(i64, ignore_index, -100)                                                                                 \
        FIELD(f64, label_smoothing, 0)                                                                                 \
        FIELD(reduction, reduction, LG_MEAN) FIELD(origin, origin, LG__ORIGIN_CROSS_ENTROPY)
LG__ATTRIBUTES(entropy, ENTROPY_FIELDS)

/* Returns the kernel arguments for x (rows, classes); class_weights reads only the shape and dtype of x. */
static lg_cross_entropy_args kernel_args(const entropy_attributes *a, const lg_tensor *x, const lg_tensor *target,
                                         const lg_tensor *out)
{
        return (lg_cross_entropy_args){.dtype = x->at.dtype,
                                       .rows = x->at.shape.size[0],
                                       .classes = x->at.shape.size[1],
                                       .reduction = a->reduction,
                                       .ignore_index = a->ignore_index,
                                       .label_smoothing = a->label_smoothing,
                                       .labels = lg__data(target),
                                       .x = lg__data(x),
                                       .out = lg__data(out),
                                       .origin = a->origin};
}

static bool infer(lg__call *call)
{
        const entropy_attributes *a = call->attributes;
        if (call->op == LG__OP(cross_entropy)) {
                call->out_at[0].shape.ndim = a->reduction == LG_NONE ? 1 : 0;
                call->out_at[0].dtype = call->in[0]->at.dtype == LG_F64 ? LG_F64 : LG_F32;
        }
        return true;
}

static bool forward(lg__call *call)
{
        const lg_cross_entropy_args k = kernel_args(call->attributes, call->in[0], call->in[1], call->out[0]);
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        return call->op == LG__OP(class_weights) ? LG__RUN(call->device, "class_weights", class_weights, &k)
                                                 : LG__RUN(call->device, "cross_entropy", cross_entropy, &k);
}

static bool fused(lg__vjp *v)
{
        lg_tensor *x = v->in[0], *g = lg_contiguous(v->grad[0]), *dx = g ? lg__tensor_like(x) : NULL;
        if (!dx)
                return false;
        lg_cross_entropy_args k = kernel_args(v->attributes, x, v->in[1], dx);
        k.g = lg__data(g);
        v->grad_in[0] = dx;
        return lg__shape_numel(x->at.shape) == 0 || LG__RUN(x->storage->device, "cross_entropy", cross_entropy_vjp, &k);
}

static bool vjp(lg__vjp *v)
{
        const entropy_attributes *a = v->attributes;
        lg_tensor *x = v->in[0], *g = v->grad[0], *q = LG__APPLY(class_weights, a, x, v->in[1]);
        lg_tensor *slope = lg_sub(lg_mul(lg_softmax(x, 1), lg_sum(q, .dims = LG_DIMS(1), .keep_dim = true)), q);
        if (a->reduction == LG_NONE)
                g = lg_unsqueeze(g, 1);
        return (v->grad_in[0] = lg_mul(g, slope)) != NULL;
}

LG__DEFINE(cross_entropy, .autocast = LG__F32,
           LG__OPERANDS({"x", LG__FLOAT, LG__ROW_MAJOR, .saved_for = LG__BY(0)},
                        {"target", LG__INDEX, LG__ROW_MAJOR, .saved_for = LG__BY(0)}),
           LG__RESULTS({"y"}), LG__HAS(entropy), .infer = infer, .forward = forward, .vjp = vjp, .fused = fused)

LG__DEFINE(class_weights, LG__OPERANDS({"x", LG__FLOAT}, {"target", LG__INDEX, LG__ROW_MAJOR}), LG__RESULTS({"q"}),
           LG__HAS(entropy), .infer = infer, .forward = forward)

/* ---- public functions, composites of x, target and weight ---- */

/* Returns the dimension of the classes in x, which is (N, C, ...) or (C). */
static int class_dim(const lg_tensor *x)
{
        return x->at.shape.ndim > 1;
}

static bool check_options(const lg__call *call, const lg_cross_entropy_options *o)
{
        const lg_tensor *x = call->in[0], *w = call->in[2];
        const char *op = call->op->name;
        const int64_t classes = x->at.shape.size[class_dim(x)];
        if (classes == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: it has no classes", op, lg__tensor_text(x).s);
        if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: label_smoothing is %g, not in [0, 1]", op,
                                o->label_smoothing);
        if (!lg__check_reduction(call->ctx, op, o->reduction, false))
                return false;
        return !w || lg__shape_equal(w->at.shape, LG_SHAPE(classes)) ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: weight is %s; of %lld classes it has shape (%lld)", op,
                        lg__tensor_text(w).s, (long long)classes, (long long)classes);
}

/* Returns the end of an error message that suggests how to convert target to class indices, or x to (N, C, ...), if
 * the shapes show how; else "". */
static lg__text shapes_hint(const lg_tensor *x, const lg_tensor *t)
{
        lg__text hint = {""};
        const lg_shape s = x->at.shape;
        lg_shape first = s;
        first.ndim--;
        char order[LG_MAX_DIMS * 4] = "";
        for (int i = 1; i < first.ndim; i++)
                snprintf(order + strlen(order), sizeof order - strlen(order), ", %d", i);
        if (s.ndim > 2 && lg__shape_equal(first, t->at.shape))
                snprintf(hint.s, sizeof hint.s,
                         "; if the classes of x are last, take lg_permute(x, LG_DIMS(0, %d%s)) for x", first.ndim,
                         order);
        else if (s.ndim && lg__shape_equal(s, t->at.shape))
                snprintf(hint.s, sizeof hint.s, "; if target is one-hot, take lg_argmax(target, .dims = LG_DIMS(%d))",
                         class_dim(x));
        else if (t->at.shape.ndim == s.ndim && s.ndim > 1 && t->at.shape.size[1] == 1)
                snprintf(hint.s, sizeof hint.s, "; take lg_squeeze(target, LG_DIMS(1)) for target");
        return hint;
}

/* Checks that target is i64 of shape (N, ...), or () if x is (C). Sets an error if not. */
static bool check_indices(const lg__call *call)
{
        const lg_tensor *x = call->in[0], *t = call->in[1];
        lg_shape rest = x->at.shape;
        if (t->at.dtype != LG_I64)
                return lg__fail(call->ctx, LG_ERR_DTYPE,
                                "%s: target is %s; class indices are i64: lg_cast(target, LG_I64); probabilities are "
                                "floats of x's shape",
                                call->op->name, lg__tensor_text(t).s);
        for (int i = class_dim(x); i + 1 < rest.ndim; i++)
                rest.size[i] = rest.size[i + 1];
        return (--rest.ndim >= 0 && lg__shape_equal(rest, t->at.shape)) ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s and target %s; they are (N, C, ...) and (N, ...)%s",
                        call->op->name, lg__tensor_text(x).s, lg__tensor_text(t).s, shapes_hint(x, t).s);
}

/* Returns x as rows (rows, classes). */
static lg_tensor *as_rows(lg_tensor *x)
{
        const lg_shape s = x->at.shape;
        const int64_t classes = s.size[class_dim(x)];
        lg_dims order = {.count = s.ndim};
        for (int i = 0; i < s.ndim; i++)
                order.dim[i] = i == 0 ? 0 : i + 1 < s.ndim ? i + 1 : 1;
        return lg_reshape(s.ndim > 2 ? lg_permute(x, order) : x, LG_SHAPE(lg__shape_numel(s) / classes, classes));
}

/* Returns q w, or q if w is NULL, not divided for a mean. */
static lg_tensor *weights(lg_tensor *lp, lg_tensor *labels, entropy_attributes a, lg_tensor *w)
{
        a.reduction = LG_SUM;
        lg_tensor *q = LG__APPLY(class_weights, &a, lp, labels);
        return w ? lg_mul(q, w) : q;
}

/* Returns the loss -sum q w lp; w are class weights or NULL, and lp (rows, classes) log-probabilities. */
static lg_tensor *weighted(lg_tensor *lp, lg_tensor *labels, entropy_attributes a, lg_tensor *w)
{
        lg_tensor *some = NULL;
        w = w ? lg_cast(lg_detach(w), lp->at.dtype) : NULL;
        lg_tensor *q = weights(lp, labels, a, w);
        if (a.reduction == LG_MEAN) {
                entropy_attributes hard = a;
                hard.label_smoothing = 0;
                lg_tensor *total = lg_sum(a.label_smoothing > 0 ? weights(lp, labels, hard, w) : q);
                some = lg_ne_scalar(total, 0); /* a mean over a total weight of 0 is NaN, but its gradient is 0 */
                q = lg_div(q, lg_where(some, total, lg__constant(lp, 1)));
        }
        lg_tensor *each = LG__APPLY(weighted, NULL, q, lp);
        lg_tensor *loss = a.reduction == LG_NONE ? lg_sum(each, .dims = LG_DIMS(1)) : lg_sum(each);
        loss = lg_rsub_scalar(loss, 0);
        return a.reduction == LG_MEAN ? lg_where(some, loss, lg__constant(lp, NAN)) : loss;
}

/* Returns the cross_entropy or nll loss for class indices; computed in f32 for 16-bit floats if made of other ops. */
static lg_tensor *of_indices(const lg__call *call, const lg_cross_entropy_options *o)
{
        const bool scores = call->op != LG__OP(nll);
        lg_tensor *t = call->in[1], *w = call->in[2], *loss;
        if (!check_indices(call) || !check_options(call, o))
                return NULL;
        const lg_shape shape = t->at.shape;
        const entropy_attributes a = {.ignore_index = lg__whole_option(o->ignore_index, -100),
                                      .label_smoothing = o->label_smoothing,
                                      .reduction = o->reduction,
                                      .origin = scores ? LG__ORIGIN_CROSS_ENTROPY : LG__ORIGIN_NLL};
        lg_tensor *labels = lg_reshape(t, LG_SHAPE(lg__shape_numel(shape))), *x = as_rows(call->in[0]);
        if (scores && !w) {
                loss = LG__APPLY(cross_entropy, &a, x, labels);
        } else {
                lg_tensor *wide = lg__widened(x), *lp = scores ? lg_log_softmax(wide, 1) : wide;
                loss = lp ? weighted(lp, labels, a, w) : NULL;
        }
        return loss && o->reduction == LG_NONE ? lg_reshape(loss, shape) : loss;
}

/* Returns the cross-entropy of scores x and probabilities q of x's shape: -sum q log_softmax(x) w. */
static lg_tensor *of_probabilities(const lg__call *call, const lg_cross_entropy_options *o)
{
        lg_tensor *x = call->in[0], *q = call->in[1], *w = call->in[2];
        const lg_shape s = x->at.shape;
        const int dim = class_dim(x);
        lg_shape of_weight = {.ndim = s.ndim};
        if (!check_options(call, o))
                return NULL;
        if (o->ignore_index)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "cross_entropy: ignore_index is for class indices, but target is %s",
                                lg__tensor_text(q).s);
        lg_tensor *lp = lg_log_softmax(lg__widened(x), dim);
        q = lg__widened(q);
        if (o->label_smoothing > 0)
                q = lg_add_scalar(lg_mul_scalar(q, 1 - o->label_smoothing), o->label_smoothing / (double)s.size[dim]);
        lg_tensor *each = LG__APPLY(weighted, NULL, q, lp);
        for (int i = 0; i < s.ndim; i++)
                of_weight.size[i] = i == dim ? s.size[dim] : 1;
        if (each && w)
                each = lg_mul(each, lg_reshape(lg_cast(lg_detach(w), each->at.dtype), of_weight));
        lg_tensor *loss = o->reduction == LG_NONE ? lg_sum(each, .dims = LG_DIMS(dim)) : lg_sum(each);
        loss = lg_rsub_scalar(loss, 0);
        if (o->reduction == LG_MEAN)
                loss = lg_div_scalar(loss, (double)(lg__shape_numel(s) / s.size[dim]));
        return loss;
}

static lg_tensor *compose_cross_entropy(const lg__call *call)
{
        lg_cross_entropy_options o;
        const lg_tensor *x = call->in[0], *t = call->in[1];
        if (!lg__take(call->ctx, "cross_entropy", call->attributes, &o, sizeof o))
                return NULL;
        o.label_smoothing = lg__option(o.label_smoothing, 0);
        if (lg__dtype_float(t->at.dtype) && x->at.shape.ndim && lg__shape_equal(x->at.shape, t->at.shape))
                return of_probabilities(call, &o);
        return of_indices(call, &o);
}

static lg_tensor *compose_nll(const lg__call *call)
{
        lg_nll_options o;
        if (!lg__take(call->ctx, "nll", call->attributes, &o, sizeof o))
                return NULL;
        return of_indices(
                call, LG_OPTIONS(lg_cross_entropy_options, .reduction = o.reduction, .ignore_index = o.ignore_index));
}

#define LOSS(of, target)                                                                                               \
        {                                                                                                              \
                .name = #of, .autocast = LG__F32,                                                                      \
                LG__OPERANDS({"x", LG__FLOAT}, {"target", target}, {"weight", LG__FLOAT, .optional = true}),           \
                .compose = compose_##of,                                                                               \
        }
static const lg__op composite = LOSS(cross_entropy, LG__ANY);
const lg__op lg__op_nll = LOSS(nll, LG__INDEX);

lg_tensor *lg_cross_entropy_with(lg_tensor *x, lg_tensor *target, const lg_cross_entropy_options *options)
{
        lg_cross_entropy_options o;
        lg__take_without(options, &o, sizeof o);
        return lg__apply(&composite, (lg_tensor *[]){x, target, o.weight}, 3, options, NULL);
}

lg_tensor *lg_nll_with(lg_tensor *x, lg_tensor *target, const lg_nll_options *options)
{
        lg_nll_options o;
        lg__take_without(options, &o, sizeof o);
        return LG__APPLY(nll, options, x, target, o.weight);
}
