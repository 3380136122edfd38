/* loss.c - losses made of other ops, whose derivatives are theirs; t is the target, d = x - t.
 *
 * mse: d^2. l1: |d|. huber: c (d - c/2) with c = clamp(d, -delta, delta), that is d^2/2 or delta (|d| - delta/2).
 * smooth_l1: huber with delta = beta, divided by beta. bce: -(t log x + (1 - t) log(1 - x)), the logarithms at least
 * -100. bce_with_logits: the same of sigmoid(x), by log_sigmoid. kl_div: t (log t - x), or e^t (t - x) of log t.
 * 16-bit floats are computed with in f32, so that a loss is rounded once.
 */
#include "../op.h"

bool lg__check_reduction(lg_ctx *c, const char *op, lg_reduction reduction, bool batch_mean)
{
        if (reduction == LG_BATCH_MEAN && !batch_mean)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: reduction is LG_BATCH_MEAN, which only kl_div has", op);
        if (reduction < LG_MEAN || reduction > LG_BATCH_MEAN)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %d is no reduction", op, (int)reduction);
        return true;
}

/* The options into ret, of `size` bytes, and the tensors checked. */
static bool check(const char *op, const lg_tensor *x, const lg_tensor *t, const void *options, void *ret, size_t size)
{
        if (!x || !t) {
                lg__fail(x ? x->ctx : lg__ctx_of(t), LG_ERR_ARGUMENT, "%s: %s is NULL", op, x ? "target" : "x");
                return false;
        }
        if (!lg__same_context(x, t, op, "target") || !lg__check(x, op, "x") || !lg__check(t, op, "target") ||
            !lg__take(x->ctx, op, options, ret, size))
                return false;
        if (!lg__dtype_float(x->at.dtype))
                return lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s, not of a float dtype; convert it with lg_cast()",
                                op, lg__tensor_text(x).s);
        if (!lg__shape_equal(x->at.shape, t->at.shape))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s but target is %s; they need one shape", op,
                                lg__tensor_text(x).s, lg__tensor_text(t).s);
        return true;
}

/* What a loss is computed of, widened, and the dtype that it is to have. */
typedef struct operands {
        lg_tensor *x, *t, *w; /* w: pos_weight or NULL */
        lg_dtype dtype;
} operands;

static operands operands_of(lg_tensor *x, lg_tensor *t, lg_tensor *w)
{
        operands n = {.dtype = lg__common_dtype((lg_tensor *[]){x, t, w}, 3)};
        n.x = lg__widened(x);
        n.t = lg__widened(t);
        n.w = lg__widened(w);
        return n;
}

static lg_tensor *reduce(lg_tensor *each, lg_reduction reduction, lg_dtype dtype)
{
        return lg_cast(reduction == LG_NONE ? each : reduction == LG_SUM ? lg_sum(each) : lg_mean(each), dtype);
}

lg_tensor *lg_mse_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options)
{
        lg_loss_options o;
        if (!check("mse", x, target, options, &o, sizeof o) || !lg__check_reduction(x->ctx, "mse", o.reduction, false))
                return NULL;
        operands n = operands_of(x, target, NULL);
        return reduce(lg_square(lg_sub(n.x, n.t)), o.reduction, n.dtype);
}

lg_tensor *lg_l1_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options)
{
        lg_loss_options o;
        if (!check("l1", x, target, options, &o, sizeof o) || !lg__check_reduction(x->ctx, "l1", o.reduction, false))
                return NULL;
        operands n = operands_of(x, target, NULL);
        return reduce(lg_abs(lg_sub(n.x, n.t)), o.reduction, n.dtype);
}

static lg_tensor *huber(const operands *n, double delta)
{
        lg_tensor *d = lg_sub(n->x, n->t), *c = lg_clamp(d, -delta, delta);
        return lg_mul(c, lg_sub(d, lg_mul_scalar(c, 0.5)));
}

lg_tensor *lg_huber_with(lg_tensor *x, lg_tensor *target, const lg_huber_options *options)
{
        lg_huber_options o;
        if (!check("huber", x, target, options, &o, sizeof o) ||
            !lg__check_reduction(x->ctx, "huber", o.reduction, false))
                return NULL;
        double delta = lg__option(o.delta, 1);
        if (!(delta > 0))
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "huber: delta is %g, not greater than 0", delta);
        operands n = operands_of(x, target, NULL);
        return reduce(huber(&n, delta), o.reduction, n.dtype);
}

lg_tensor *lg_smooth_l1_with(lg_tensor *x, lg_tensor *target, const lg_smooth_l1_options *options)
{
        lg_smooth_l1_options o;
        if (!check("smooth_l1", x, target, options, &o, sizeof o) ||
            !lg__check_reduction(x->ctx, "smooth_l1", o.reduction, false))
                return NULL;
        double beta = lg__option(o.beta, 1);
        if (beta == 0)
                return lg_l1(x, target, .reduction = o.reduction);
        if (!(beta > 0))
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "smooth_l1: beta is %g; it is at least 0 (LG_ZERO)", beta);
        operands n = operands_of(x, target, NULL);
        return reduce(lg_div_scalar(huber(&n, beta), beta), o.reduction, n.dtype);
}

/* max(log(x), -100), without the infinite derivative of log at 0. */
static lg_tensor *bounded_log(lg_tensor *x)
{
        lg_tensor *low = lg_logical_and(lg_ge_scalar(x, 0), lg_le_scalar(x, 3.720075976020836e-44)); /* e^-100 */
        return lg_where(low, lg__constant(x, -100), lg_log(lg_where(low, lg__constant(x, 1), x)));
}

lg_tensor *lg_bce_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options)
{
        lg_loss_options o;
        if (!check("bce", x, target, options, &o, sizeof o) || !lg__check_reduction(x->ctx, "bce", o.reduction, false))
                return NULL;
        operands n = operands_of(x, target, NULL);
        lg_tensor *one = lg_mul(n.t, bounded_log(n.x));
        lg_tensor *zero = lg_mul(lg_rsub_scalar(n.t, 1), bounded_log(lg_rsub_scalar(n.x, 1)));
        return reduce(lg_neg(lg_add(one, zero)), o.reduction, n.dtype);
}

/* Both logarithms by log_sigmoid: neither term is a difference of large numbers. */
lg_tensor *lg_bce_with_logits_with(lg_tensor *x, lg_tensor *target, const lg_bce_with_logits_options *options)
{
        lg_bce_with_logits_options o;
        const char *op = "bce_with_logits";
        lg_shape shape;
        if (!check(op, x, target, options, &o, sizeof o) || !lg__check_reduction(x->ctx, op, o.reduction, false))
                return NULL;
        lg_tensor *w = o.pos_weight;
        if (w && (!lg__same_context(x, w, op, "pos_weight") || !lg__check(w, op, "pos_weight")))
                return NULL;
        if (w && !lg__broadcast(x->ctx, op, x->at.shape, w->at.shape, &shape))
                return NULL;
        if (w && !lg__shape_equal(x->at.shape, shape))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: pos_weight is %s, which does not broadcast to x, %s", op,
                                lg__tensor_text(w).s, lg__tensor_text(x).s);
        operands n = operands_of(x, target, w);
        lg_tensor *one = lg_mul(n.t, lg_log_sigmoid(n.x));
        lg_tensor *zero = lg_mul(lg_rsub_scalar(n.t, 1), lg_log_sigmoid(lg_neg(n.x)));
        return reduce(lg_neg(lg_add(w ? lg_mul(one, n.w) : one, zero)), o.reduction, n.dtype);
}

lg_tensor *lg_kl_div_with(lg_tensor *x, lg_tensor *target, const lg_kl_div_options *options)
{
        lg_kl_div_options o;
        if (!check("kl_div", x, target, options, &o, sizeof o) ||
            !lg__check_reduction(x->ctx, "kl_div", o.reduction, true))
                return NULL;
        bool batch = o.reduction == LG_BATCH_MEAN;
        if (batch && x->at.shape.ndim == 0)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "kl_div: x is %s: LG_BATCH_MEAN needs a dimension to divide by",
                                lg__tensor_text(x).s);
        operands n = operands_of(x, target, NULL);
        lg_tensor *each =
                o.log_target ? lg_mul(lg_exp(n.t), lg_sub(n.t, n.x)) : lg_sub(lg_xlogy(n.t, n.t), lg_mul(n.t, n.x));
        if (batch)
                return lg_cast(lg_div_scalar(lg_sum(each), (double)x->at.shape.size[0]), n.dtype);
        return reduce(each, o.reduction, n.dtype);
}
