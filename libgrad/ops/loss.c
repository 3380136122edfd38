/* loss.c - losses made of other ops, whose derivatives they use; t is the target, d = x - t.
 *
 * mse: d^2. l1: |d|. huber: c (d - c/2) with c = clamp(d, -delta, delta), that is d^2/2 or delta (|d| - delta/2).
 * smooth_l1: huber with delta = beta, divided by beta. bce: -(t log x + (1 - t) log(1 - x)), with logarithms of at
 * least -100. bce_with_logits: bce of sigmoid(x), computed with log_sigmoid. kl_div: t (log t - x), or e^t (t - x) if
 * the target is given as log t. soft_margin: -log sigmoid(t x). poisson_nll: e^x - t x, or x - t log(x + eps); with
 * Stirling's t log t - t + log(2 pi t) / 2 where t > 1. gaussian_nll: (log v + d^2 / v) / 2 for v of at least eps,
 * whose gradient passes the bound unchanged. 16-bit floats are computed in f32, and the loss is f32.
 */
#include <math.h>
#include "loss.h"

bool lg__check_reduction(lg_ctx *c, const char *op, lg_reduction reduction, bool batch_mean)
{
        if (reduction == LG_BATCH_MEAN && !batch_mean)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: reduction is LG_BATCH_MEAN, which only kl_div has", op);
        if (reduction < LG_MEAN || reduction > LG_BATCH_MEAN)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %d is no reduction", op, (int)reduction);
        return true;
}

/* ---- weighted: y = q x, but 0 where q = 0; dx = g q; dq = g x, but 0 where q = 0 and x is infinite ---- */

static bool forward_weighted(lg__call *call)
{
        lg_tensor *q = call->in[0], *x = call->in[1], *y = call->out[0];
        return lg__pointwise_run(LG_PW_mul, y, (lg_tensor *[LG_PW_INPUTS]){q, x}, 0, 0, "weighted") &&
               lg__pointwise_run(LG_PW_hardshrink_da, y, (lg_tensor *[LG_PW_INPUTS]){y, q}, 0, 0, "weighted");
}

static bool vjp_weighted(lg__vjp *v)
{
        lg_tensor *g = v->grad[0], *q = v->in[0], *x = v->in[1];
        if (v->needs[0]) {
                lg_tensor *none = lg_logical_and(lg_eq_scalar(q, 0), lg_isinf(x));
                v->grad_in[0] = lg_mul(g, lg_where(none, lg__constant(x, 0), x));
        }
        v->grad_in[1] = v->needs[1] ? lg_mul(g, q) : NULL;
        return lg__ok(v->ctx);
}

LG__DEFINE(weighted, .flags = LG__PROMOTE,
           LG__OPERANDS({"q", LG__REAL, .saved_for = LG__BY(0) | LG__BY(1)}, {"x", LG__REAL, .saved_for = LG__BY(0)}),
           LG__RESULTS({"y"}), .forward = forward_weighted, .vjp = vjp_weighted)

/* ---- the losses ---- */

/* Returns whether two shapes are equal apart from dimensions of size 1. */
static bool same_but_ones(lg_shape a, lg_shape b)
{
        for (int i = 0, k = 0;; i++, k++) {
                while (i < a.ndim && a.size[i] == 1)
                        i++;
                while (k < b.ndim && b.size[k] == 1)
                        k++;
                if (i == a.ndim || k == b.ndim)
                        return i == a.ndim && k == b.ndim;
                if (a.size[i] != b.size[k])
                        return false;
        }
}

bool lg__loss_begin(const lg__call *call, bool elementwise, operands *n, void *ret, size_t size,
                    lg_reduction *reduction)
{
        const lg_tensor *x = call->in[0], *t = call->in[1];
        const char *op = call->op->name;
        if (!lg__take(call->ctx, op, call->attributes, ret, size))
                return false;
        if (elementwise && !lg__shape_equal(x->at.shape, t->at.shape)) {
                const char *a = call->op->operands[0].name, *b = call->op->operands[1].name;
                char hint[80] = "";
                if (same_but_ones(x->at.shape, t->at.shape))
                        snprintf(hint, sizeof hint, ": lg_reshape(%s, lg_shape_of(%s))", b, a);
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: %s is %s but %s is %s; they need one shape%s", op, a,
                                lg__tensor_text(x).s, b, lg__tensor_text(t).s, hint);
        }
        if (!lg__check_reduction(call->ctx, op, *reduction, call->op == LG__OP(kl_div)))
                return false;
        if (*reduction == LG_BATCH_MEAN && x->at.shape.ndim == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: LG_BATCH_MEAN needs a dimension to divide by",
                                op, lg__tensor_text(x).s);
        *n = (operands){.call = call, .reduction = *reduction};
        n->x = lg__widened(call->in[0]);
        n->t = lg__widened(call->in[1]);
        n->w = call->in_count > 2 ? lg__widened(call->in[2]) : NULL;
        return n->x && n->t && (n->w || call->in_count < 3 || !call->in[2]);
}

lg_tensor *lg__loss_reduce(const operands *n, lg_tensor *each)
{
        lg_tensor *loss = n->reduction == LG_NONE ? each : n->reduction == LG_MEAN ? lg_mean(each) : lg_sum(each);
        if (n->reduction == LG_BATCH_MEAN)
                loss = lg_div_scalar(loss, (double)n->x->at.shape.size[0]);
        return loss;
}

LOSS_OF_TWO(mse, lg_loss_options, lg_square(lg_sub(n.x, n.t)))
LOSS_OF_TWO(l1, lg_loss_options, lg_abs(lg_sub(n.x, n.t)))

static lg_tensor *clipped(const operands *n, double delta)
{
        lg_tensor *d = lg_sub(n->x, n->t), *c = lg_clamp(d, -delta, delta);
        return lg_mul(c, lg_sub(d, lg_mul_scalar(c, 0.5)));
}

static lg_tensor *huber(const operands *n, double delta)
{
        if (!(delta > 0))
                return lg__fail(n->call->ctx, LG_ERR_ARGUMENT, "huber: delta is %g, not greater than 0", delta);
        return clipped(n, delta);
}

LOSS_OF_TWO(huber, lg_huber_options, huber(&n, lg__option(o.delta, 1)))

static lg_tensor *smooth_l1(const operands *n, double beta)
{
        if (beta == 0)
                return lg_abs(lg_sub(n->x, n->t));
        if (!(beta > 0))
                return lg__fail(n->call->ctx, LG_ERR_ARGUMENT, "smooth_l1: beta is %g; it is at least 0 (LG_ZERO)",
                                beta);
        return lg_div_scalar(clipped(n, beta), beta);
}

LOSS_OF_TWO(smooth_l1, lg_smooth_l1_options, smooth_l1(&n, lg__option(o.beta, 1)))

/* Returns max(log(x), -100), without the infinite derivative of log at 0. */
static lg_tensor *bounded_log(lg_tensor *x)
{
        lg_tensor *low = lg_logical_and(lg_ge_scalar(x, 0), lg_le_scalar(x, 3.720075976020836e-44)); /* e^-100 */
        return lg_where(low, lg__constant(x, -100), lg_log(lg_where(low, lg__constant(x, 1), x)));
}

/* Returns the binary cross-entropy from the logarithms of the probabilities of 1 and of 0. */
static lg_tensor *bce(const operands *n, lg_tensor *log_one, lg_tensor *log_zero)
{
        lg_tensor *one = LG__APPLY(weighted, NULL, n->t, log_one);
        lg_tensor *zero = LG__APPLY(weighted, NULL, lg_rsub_scalar(n->t, 1), log_zero);
        return lg_rsub_scalar(lg_add(n->w ? lg_mul(one, n->w) : one, zero), 0);
}

static lg_tensor *bce_of_probability(const operands *n)
{
        lg_tensor *outside = lg_logical_or(lg_lt_scalar(n->x, 0), lg_gt_scalar(n->x, 1));
        lg_tensor *p = lg_where(outside, lg__constant(n->x, NAN), n->x);
        return bce(n, bounded_log(p), bounded_log(lg_rsub_scalar(p, 1)));
}

LOSS_OF_TWO(bce, lg_loss_options, bce_of_probability(&n))

/* Computes both logarithms with log_sigmoid, so that neither is a difference of large numbers. */
static lg_tensor *bce_with_logits(const operands *n)
{
        const lg_tensor *x = n->call->in[0], *w = n->call->in[2];
        lg_ctx *c = n->call->ctx;
        lg_shape shape;
        if (w && !lg__broadcast(c, "bce_with_logits", x->at.shape, w->at.shape, &shape))
                return NULL;
        if (w && !lg__shape_equal(x->at.shape, shape))
                return lg__fail(c, LG_ERR_SHAPE, "bce_with_logits: pos_weight is %s, which does not broadcast to x, %s",
                                lg__tensor_text(w).s, lg__tensor_text(x).s);
        return bce(n, lg_log_sigmoid(n->x), lg_log_sigmoid(lg_neg(n->x)));
}

LOSS(bce_with_logits, true, lg_bce_with_logits_options, bce_with_logits(&n), {"x", LG__FLOAT}, {"target"},
     {"pos_weight", .optional = true})

lg_tensor *lg_bce_with_logits_with(lg_tensor *x, lg_tensor *target, const lg_bce_with_logits_options *options)
{
        lg_bce_with_logits_options o;
        lg__take_without(options, &o, sizeof o);
        return LG__APPLY(bce_with_logits, options, x, target, o.pos_weight);
}

static lg_tensor *kl_div(const operands *n, bool log_target)
{
        lg_tensor *x = n->x, *t = n->t;
        if (!log_target)
                return lg_sub(lg_xlogy(t, t), LG__APPLY(weighted, NULL, t, x));
        lg_tensor *none = lg_eq_scalar(t, -INFINITY), *zero = lg__constant(x, 0);
        return lg_mul(lg_exp(t), lg_sub(lg_where(none, zero, t), lg_where(none, zero, x)));
}

LOSS_OF_TWO(kl_div, lg_kl_div_options, kl_div(&n, o.log_target))

LOSS_OF_TWO(soft_margin, lg_loss_options, lg_neg(lg_log_sigmoid(lg_mul(n.x, n.t))))

/* Returns Stirling's approximation of log(t!) where t > 1, else 0. */
static lg_tensor *stirling(lg_tensor *t)
{
        lg_tensor *large = lg_gt_scalar(t, 1), *s = lg_where(large, t, lg__constant(t, 1));
        lg_tensor *root = lg_mul_scalar(lg_log(lg_mul_scalar(s, 2 * M_PI)), 0.5);
        return lg_where(large, lg_add(lg_sub(lg_mul(s, lg_log(s)), s), root), lg__constant(t, 0));
}

static lg_tensor *poisson_nll(const operands *n, const lg_poisson_nll_options *o)
{
        const double eps = lg__option(o->eps, 1e-8);
        if (!(eps >= 0))
                return lg__fail(n->call->ctx, LG_ERR_ARGUMENT, "poisson_nll: eps is %g; it is at least 0", eps);
        lg_tensor *loss = o->no_log_input ? lg_sub(n->x, lg_mul(n->t, lg_log(lg_add_scalar(n->x, eps))))
                                          : lg_sub(lg_exp(n->x), lg_mul(n->t, n->x));
        return o->full ? lg_add(loss, stirling(n->t)) : loss;
}

LOSS_OF_TWO(poisson_nll, lg_poisson_nll_options, poisson_nll(&n, &o))

static lg_tensor *gaussian_nll(const operands *n, const lg_gaussian_nll_options *o)
{
        const double eps = lg__option(o->eps, 1e-6);
        lg_tensor *v = n->w, *d = lg_sub(n->x, n->t);
        lg_shape shape;
        if (!(eps >= 0))
                return lg__fail(n->call->ctx, LG_ERR_ARGUMENT, "gaussian_nll: eps is %g; it is at least 0", eps);
        if (v && v->at.shape.ndim == n->x->at.shape.ndim - 1)
                v = lg_unsqueeze(v, -1);
        if (v && (!lg__broadcast(n->call->ctx, "gaussian_nll", n->x->at.shape, v->at.shape, &shape) ||
                  !lg__shape_equal(n->x->at.shape, shape)))
                return lg__fail(n->call->ctx, LG_ERR_SHAPE,
                                "gaussian_nll: var is %s; it has the shape of x, %s, or one value for each row",
                                lg__tensor_text(n->w).s, lg__tensor_text(n->x).s);
        v = lg_add(v, lg_detach(lg_sub(lg_maximum_scalar(v, eps), v)));
        lg_tensor *loss = lg_mul_scalar(lg_add(lg_log(v), lg_div(lg_square(d), v)), 0.5);
        return o->full ? lg_add_scalar(loss, 0.5 * log(2 * M_PI)) : loss;
}

LOSS_OF_THREE(gaussian_nll, true, lg_gaussian_nll_options, gaussian_nll(&n, &o), {"x", LG__FLOAT}, {"target"},
              {"var", LG__FLOAT})
