/* margin_losses.c - losses that ask for a margin between scores; [v]+ is max(v, 0) and m the margin.
 *
 * margin_ranking: [m - t (x1 - x2)]+. hinge_embedding: x where t is 1, [m - x]+ where t is -1. cosine_embedding of
 * rows: 1 - cos where t is 1, [cos - m]+ where t is -1. triplet_margin: [|a - p| - |a - n| + m]+. multi_margin, for a
 * row of C scores: the sum over j != t of w[t] [m - x[t] + x[j]]+^p / C. multilabel_margin: the sum over targets t and
 * all j that are none of [1 - x[t] + x[j]]+ / C. multilabel_soft_margin: the mean over a row of the weighted
 * bce_with_logits.
 */
#include "loss.h"

static lg_tensor *positive(lg_tensor *x)
{
        return lg_maximum_scalar(x, 0);
}

static lg_tensor *ranking(const operands *n, double margin)
{
        return positive(lg_add_scalar(lg_neg(lg_mul(n->w, lg_sub(n->x, n->t))), margin));
}

LOSS_OF_THREE(margin_ranking, true, lg_margin_options, ranking(&n, lg__option(o.margin, 0)), {"x1", LG__FLOAT}, {"x2"},
              {"target"})

/* Returns `one` where target is 1, plus `other` where it is -1. */
static lg_tensor *by_sign(lg_tensor *target, lg_tensor *one, lg_tensor *other)
{
        return lg_add(lg_masked_fill(one, lg_ne_scalar(target, 1), 0),
                      lg_masked_fill(other, lg_ne_scalar(target, -1), 0));
}

LOSS_OF_TWO(hinge_embedding, lg_margin_options,
            by_sign(n.t, n.x, positive(lg_rsub_scalar(n.x, lg__option(o.margin, 1)))))

/* PyTorch adds 1e-12 to the squares of both norms. */
static lg_tensor *cosine_embedding(const operands *n, double margin)
{
        const lg_shape rows = n->x->at.shape, each = n->w->at.shape;
        if (rows.ndim < 1 || rows.ndim > 2 || each.ndim != rows.ndim - 1 || (each.ndim && each.size[0] != rows.size[0]))
                return lg__fail(n->call->ctx, LG_ERR_SHAPE,
                                "cosine_embedding: x1 is %s and target is %s; they are (N, D) and (N), or (D) and 0-d",
                                lg__tensor_text(n->x).s, lg__tensor_text(n->w).s);
        const lg_dims last = LG_DIMS(-1);
        lg_tensor *a = lg_add_scalar(lg_sum(lg_square(n->x), .dims = last), 1e-12);
        lg_tensor *b = lg_add_scalar(lg_sum(lg_square(n->t), .dims = last), 1e-12);
        lg_tensor *cosine = lg_div(lg_sum(lg_mul(n->x, n->t), .dims = last), lg_sqrt(lg_mul(a, b)));
        return by_sign(n->w, lg_rsub_scalar(cosine, 1), positive(lg_add_scalar(cosine, -margin)));
}

LOSS_OF_THREE(cosine_embedding, true, lg_margin_options, cosine_embedding(&n, lg__option(o.margin, 0)),
              {"x1", LG__FLOAT}, {"x2"}, {"target"})

static lg_tensor *triplet(const operands *n, const lg_triplet_margin_options *o)
{
        const lg_pairwise_distance_options *how = LG_OPTIONS(lg_pairwise_distance_options, .p = o->p, .eps = o->eps);
        if (!lg__shape_equal(n->x->at.shape, n->w->at.shape))
                return lg__fail(n->call->ctx, LG_ERR_SHAPE, "triplet_margin: anchor is %s but negative is %s",
                                lg__tensor_text(n->x).s, lg__tensor_text(n->w).s);
        lg_tensor *near = lg_pairwise_distance_with(n->x, n->t, how);
        lg_tensor *far = lg_pairwise_distance_with(n->x, n->w, how);
        if (o->swap)
                far = lg_minimum(far, lg_pairwise_distance_with(n->t, n->w, how));
        return positive(lg_add_scalar(lg_sub(near, far), lg__option(o->margin, 1)));
}

LOSS_OF_THREE(triplet_margin, true, lg_triplet_margin_options, triplet(&n, &o), {"anchor", LG__FLOAT}, {"positive"},
              {"negative"})

/* ---- rows of scores: x is (N, C) or (C) ---- */

/* Returns {0, ..., C - 1} on the device of x, where C is the size of the last dimension. */
static lg_tensor *columns_of(const lg_tensor *x)
{
        return lg_arange(x->ctx, 0, (double)x->at.shape.size[x->at.shape.ndim - 1], 1, .dtype = LG_I64,
                         .device = x->storage->device->id);
}

/* Checks that x has rows of at least one score and that target has the shape `shape` of its targets. */
static bool check_rows(const operands *n, lg_shape shape)
{
        const lg_shape s = n->x->at.shape;
        const char *op = n->call->op->name;
        if (s.ndim < 1 || s.ndim > 2 || s.size[s.ndim - 1] < 1)
                return lg__fail(n->call->ctx, LG_ERR_SHAPE, "%s: x is %s; it is (N, C) or (C), with C at least 1", op,
                                lg__tensor_text(n->x).s);
        if (!lg__shape_equal(n->t->at.shape, shape))
                return lg__fail(n->call->ctx, LG_ERR_SHAPE, "%s: x is %s but target is %s; it must be %s", op,
                                lg__tensor_text(n->x).s, lg__tensor_text(n->t).s, lg__shape_text(shape).s);
        return true;
}

static lg_tensor *multi_margin(const operands *n, const lg_multi_margin_options *o)
{
        const lg_shape s = n->x->at.shape;
        lg_tensor *w = n->w;
        const double p = lg__option(o->p, 1);
        if (p != 1 && p != 2)
                return lg__fail(n->call->ctx, LG_ERR_ARGUMENT, "multi_margin: p is %g; it is 1 or 2", p);
        if (!check_rows(n, s.ndim == 2 ? LG_SHAPE(s.size[0]) : LG_SHAPE_0D))
                return NULL;
        if (w && (w->at.shape.ndim != 1 || w->at.shape.size[0] != s.size[s.ndim - 1]))
                return lg__fail(n->call->ctx, LG_ERR_SHAPE,
                                "multi_margin: weight is %s; it has one factor for each of "
                                "the %lld classes",
                                lg__tensor_text(w).s, (long long)s.size[s.ndim - 1]);
        lg_tensor *at = lg_unsqueeze(n->t, -1), *score = lg_gather(n->x, -1, at);
        lg_tensor *over = positive(lg_add_scalar(lg_sub(n->x, score), lg__option(o->margin, 1)));
        over = lg_masked_fill(p == 2 ? lg_square(over) : over, lg_eq(columns_of(n->x), at), 0);
        if (w)
                over = lg_mul(over, lg_gather(lg_expand(w, s), -1, at));
        return lg_mean(over, .dims = LG_DIMS(-1));
}

LOSS(multi_margin, false, lg_multi_margin_options, multi_margin(&n, &o), {"x", LG__FLOAT}, {"target", LG__INDEX},
     {"weight", LG__FLOAT, .optional = true})

/* Compares each target of a row, of which there are up to C before the first -1, with all C scores. */
static lg_tensor *multilabel_margin(const operands *n)
{
        if (!check_rows(n, n->x->at.shape))
                return NULL;
        lg_tensor *end = lg_cast(lg_lt_scalar(n->t, 0), LG_I64);
        lg_tensor *past = lg_gt_scalar(lg_cumsum(end, -1), 0), *at = lg_masked_fill(n->t, past, 0);
        lg_tensor *given = lg_cast(lg_logical_not(past), n->x->at.dtype);
        lg_tensor *is_target = lg_gt_scalar(lg_scatter_add(lg_zeros_like(n->x), -1, at, given), 0);
        lg_tensor *score = lg_unsqueeze(lg_gather(n->x, -1, at), -1);
        lg_tensor *over = positive(lg_add_scalar(lg_sub(lg_unsqueeze(n->x, -2), score), 1));
        lg_tensor *none = lg_logical_or(lg_unsqueeze(past, -1), lg_unsqueeze(is_target, -2));
        over = lg_sum(lg_masked_fill(over, none, 0), .dims = LG_DIMS(-2, -1));
        return lg_div_scalar(over, (double)n->x->at.shape.size[n->x->at.shape.ndim - 1]);
}

LOSS(multilabel_margin, false, lg_loss_options, multilabel_margin(&n), {"x", LG__FLOAT}, {"target", LG__INDEX})

static lg_tensor *multilabel_soft_margin(const operands *n)
{
        if (n->x->at.shape.ndim < 1)
                return lg__fail(n->call->ctx, LG_ERR_SHAPE, "multilabel_soft_margin: x is %s; it has rows of scores",
                                lg__tensor_text(n->x).s);
        lg_tensor *each = lg_bce_with_logits(n->x, n->t, .reduction = LG_NONE);
        return lg_mean(n->w ? lg_mul(each, n->w) : each, .dims = LG_DIMS(-1));
}

LOSS(multilabel_soft_margin, true, lg_multilabel_soft_margin_options, multilabel_soft_margin(&n), {"x", LG__FLOAT},
     {"target"}, {"weight", LG__FLOAT, .optional = true})

lg_tensor *lg_multi_margin_with(lg_tensor *x, lg_tensor *target, const lg_multi_margin_options *options)
{
        lg_multi_margin_options o;
        lg__take_without(options, &o, sizeof o);
        return LG__APPLY(multi_margin, options, x, target, o.weight);
}

lg_tensor *lg_multilabel_margin_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options)
{
        return LG__APPLY(multilabel_margin, options, x, target);
}

lg_tensor *lg_multilabel_soft_margin_with(lg_tensor *x, lg_tensor *target,
                                          const lg_multilabel_soft_margin_options *options)
{
        lg_multilabel_soft_margin_options o;
        lg__take_without(options, &o, sizeof o);
        return LG__APPLY(multilabel_soft_margin, options, x, target, o.weight);
}
