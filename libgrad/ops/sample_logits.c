/* sample_logits.c - draws a class of each row of scores: temperature, top-k and top-p, then u times the running sums.
 *
 * The scores are sorted first, the greatest first and equal ones by class. In this order top_k and top_p keep a prefix,
 * and the class is the first whose running sum of probabilities, in f64, is above u times the sum of those kept.
 */
#include <math.h>
#include "graph/op.h"

typedef struct rules {
        double temperature, top_p;
        int64_t top_k;
} rules;

static bool take_rules(const lg__call *call, rules *ret)
{
        lg_sample_logits_options o;
        lg_ctx *c = call->ctx;
        const lg_tensor *x = call->in[0];
        const lg_shape s = x->at.shape;
        if (!lg__take(c, "sample_logits", call->attributes, &o, sizeof o))
                return false;
        *ret = (rules){lg__option(o.temperature, 1), lg__option(o.top_p, 1), o.top_k};
        if (s.ndim != 1 && s.ndim != 2)
                return lg__fail(c, LG_ERR_SHAPE, "sample_logits: logits is %s; it is (classes) or (N, classes)",
                                lg__tensor_text(x).s);
        if (s.size[s.ndim - 1] == 0)
                return lg__fail(c, LG_ERR_SHAPE, "sample_logits: logits is %s: there is nothing to draw from",
                                lg__tensor_text(x).s);
        if (!(ret->temperature >= 0) || !isfinite(ret->temperature))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "sample_logits: temperature is %g; it is finite, LG_ZERO or positive",
                                ret->temperature);
        if (!(ret->top_p > 0) || !(ret->top_p <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "sample_logits: top_p is %g; it is above 0 and at most 1",
                                ret->top_p);
        if (ret->top_k < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "sample_logits: top_k is %lld, below 0", (long long)ret->top_k);
        return true;
}

/* Returns weights (N, k) of the sorted scores, in f64: e^((score - greatest) / temperature). NaN, and the scores of a
 * row whose greatest is infinite, have the weights of their limits. */
static lg_tensor *weights_of(lg_tensor *scores, double temperature)
{
        lg_tensor *top = lg_slice(scores, 1, 0, 1);
        lg_tensor *gap = lg_div_scalar(lg_sub(scores, top), temperature);
        lg_tensor *one = lg__constant(scores, 1);
        return one ? lg_where(lg_eq(scores, top), one, lg_exp(gap)) : NULL;
}

/* Sets weights to 0 from the first on before which the running sum reaches top_p of the whole; the first remains. */
static lg_tensor *nucleus(lg_tensor *weights, double top_p)
{
        const int64_t k = weights->at.shape.size[1];
        lg_tensor *sums = lg_cumsum(weights, 1), *all = sums ? lg_slice(sums, 1, k - 1, k) : NULL;
        lg_tensor *left_out = all ? lg_ge(lg_sub(sums, weights), lg_mul_scalar(all, top_p)) : NULL;
        return left_out ? lg_masked_fill(weights, left_out, 0) : NULL;
}

static lg_tensor *sample(lg_tensor *logits, const rules *r)
{
        const lg_shape s = logits->at.shape;
        const int64_t classes = s.size[s.ndim - 1], rows = s.ndim == 2 ? s.size[0] : 1;
        const int64_t k = r->top_k && r->top_k < classes ? r->top_k : classes;
        lg_tensor *x = lg_reshape(lg_detach(logits), LG_SHAPE(rows, classes)), *order = NULL;
        if (!x || r->temperature == 0)
                return x ? lg_argmax(x, .dims = LG_DIMS(1)) : NULL;
        lg_tensor *scores = lg_topk(lg_cast(x, LG_F64), k, 1, .indices = &order);
        lg_tensor *weights = scores ? weights_of(scores, r->temperature) : NULL;
        weights = weights && r->top_p < 1 ? nucleus(weights, r->top_p) : weights;
        lg_tensor *sums = weights ? lg_cumsum(weights, 1) : NULL;
        lg_tensor *u = sums ? lg_uniform(logits->ctx, 0, 1, LG_SHAPE(rows, 1), .dtype = LG_F64,
                                         .device = logits->storage->device->id)
                            : NULL;
        lg_tensor *at = u ? lg_mul(u, lg_slice(sums, 1, k - 1, k)) : NULL;
        lg_tensor *place = at ? lg_sum(lg_le(sums, at), .dims = LG_DIMS(1), .keep_dim = true) : NULL;
        return place ? lg_gather(order, 1, place) : NULL;
}

/* Restores the state of the random generator if the call fails. */
static lg_tensor *compose_sample_logits(const lg__call *call)
{
        lg_ctx *c = call->ctx;
        const lg_random_state was = c->random;
        rules r;
        if (!take_rules(call, &r))
                return NULL;
        lg_shape shape = call->in[0]->at.shape;
        shape.ndim--;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *y = sample(call->in[0], &r);
        y = y ? lg_escape(lg_reshape(y, shape)) : NULL;
        lg_scope_end(c, scope);
        if (!y)
                c->random = was;
        return y;
}

LG__COMPOSITE(sample_logits, {"logits", LG__FLOAT})

lg_tensor *lg_sample_logits_with(lg_tensor *logits, const lg_sample_logits_options *options)
{
        return LG__APPLY(sample_logits, options, logits);
}
