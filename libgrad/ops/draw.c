/* draw.c - random draws with the probabilities in a tensor: bernoulli and multinomial, made of other ops.
 *
 * All decisions use uniform random numbers in f64, so that they are the same for every dtype. multinomial with
 * replacement searches for u times the total in the running sums of the weights. Without replacement, it draws an
 * exponential random number e for each weight w, and takes the greatest values of w / e.
 */
#include <float.h>
#include "graph/op.h"

#define PIECE ((int64_t)1 << 22) /* maximum number of elements drawn at once */

static lg_tensor *uniform(const lg_tensor *like, lg_shape shape)
{
        return lg_uniform(like->ctx, 0, 1, shape, .dtype = LG_F64, .device = like->storage->device->id);
}

static lg_tensor *bernoulli(lg_tensor *p)
{
        lg_tensor *u = uniform(p, p->at.shape), *hit = u ? lg_lt(u, lg_cast(lg_detach(p), LG_F64)) : NULL;
        return hit ? lg_cast(hit, p->at.dtype) : NULL;
}

/* ---- multinomial ---- */

/* Returns the weights (rows, classes), in f64, divided by the greatest of their row; weights not above 0 become 0. */
static lg_tensor *shares_of(lg_tensor *w)
{
        lg_tensor *zero = lg__constant(w, 0), *one = lg__constant(w, 1);
        w = lg_where(lg_gt_scalar(w, 0), lg_minimum_scalar(w, DBL_MAX), zero);
        lg_tensor *top = lg_amax(w, .dims = LG_DIMS(1), .keep_dim = true);
        return lg_div(w, lg_where(lg_gt_scalar(top, 0), top, one));
}

/* Returns the running sums of the shares along each row, at most 2^62. The shares are rounded to multiples of a small
 * unit: sums of integers are exact in any order of addition, and a share of 0 adds nothing. */
static lg_tensor *sums_of(lg_tensor *shares, int64_t classes)
{
        int digits = 62;
        while (classes > (int64_t)1 << (62 - digits))
                digits--;
        lg_tensor *units = lg_round(lg_mul_scalar(shares, (double)((int64_t)1 << digits)));
        return lg_cast(lg_cumsum(lg_cast(units, LG_I64), 1), LG_F64);
}

/* Does one step of a binary search: advances each of the places (rows, n) by `step` if the sum before the new place is
 * not above `at`. Takes over `places`. */
static lg_tensor *advanced(lg_tensor *places, lg_tensor *sums, lg_tensor *at, int64_t step)
{
        lg_ctx *c = sums->ctx;
        int64_t last = sums->at.shape.size[1] - 1;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *next = lg_add_scalar(places, (double)step);
        lg_tensor *before = lg_gather(sums, 1, lg_minimum_scalar(lg_sub_scalar(next, 1), (double)last));
        next = lg_escape(lg_where(lg_le(before, at), next, places));
        lg_scope_end(c, scope);
        lg__tensor_release(places);
        return next;
}

/* Draws n classes in each row: the number of sums that are not above u times the last sum, for uniform u. That product
 * is below the last sum, so no class of weight 0 is found. Rows without weights search for -1: class 0. */
static lg_tensor *search(lg_tensor *sums, int64_t n)
{
        lg_shape s = sums->at.shape;
        int64_t step = 1;
        lg_tensor *all = lg_slice(sums, 1, s.size[1] - 1, s.size[1]), *u = uniform(sums, LG_SHAPE(s.size[0], n));
        lg_tensor *at = lg_where(lg_gt_scalar(all, 0), lg_mul(u, all), lg__constant(sums, -1));
        lg_tensor *places = at ? lg_zeros_like(at, .dtype = LG_I64) : NULL;
        while (step < s.size[1])
                step *= 2;
        for (step /= 2; step > 0 && places; step /= 2)
                places = advanced(places, sums, at, step);
        return places;
}

/* Draws in pieces, so that the temporary memory does not grow with `count`. */
static lg_tensor *with_replacement(lg_tensor *w, int64_t count)
{
        lg_ctx *c = w->ctx;
        int64_t rows = w->at.shape.size[0], classes = w->at.shape.size[1];
        int64_t most = rows < PIECE ? PIECE / rows : 1;
        lg_tensor *y = lg_empty(c, LG_SHAPE(rows, count), .dtype = LG_I64, .device = w->storage->device->id);
        lg_tensor *shares = y ? shares_of(w) : NULL, *sums = shares ? sums_of(shares, classes) : NULL;
        bool ok = sums != NULL;
        for (int64_t i = 0; i < count && ok; i += most) {
                int64_t n = count - i < most ? count - i : most;
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *to = lg_slice(y, 1, i, i + n), *found = to ? search(sums, n) : NULL;
                ok = found && lg__copy_values(to, found, "multinomial");
                lg_scope_end(c, scope);
        }
        return ok ? y : NULL;
}

static lg_tensor *without_replacement(lg_tensor *w, int64_t count)
{
        lg_tensor *u = uniform(w, w->at.shape), *shares = u ? shares_of(w) : NULL, *y = NULL;
        lg_tensor *e = shares ? lg_maximum_scalar(lg_neg(lg_log1p(lg_neg(u))), DBL_MIN) : NULL;
        lg_tensor *score = e ? lg_where(lg_gt_scalar(w, 0), lg_div(shares, e), lg__constant(w, -1)) : NULL;
        return score && lg_topk(score, count, 1, .indices = &y) ? y : NULL;
}

typedef struct draws {
        int64_t count;
        const lg_multinomial_options *options;
} draws;

static lg_tensor *multinomial(lg_tensor *weights, const draws *d)
{
        lg_ctx *c = weights->ctx;
        const int64_t count = d->count;
        lg_multinomial_options o;
        lg_shape s = weights->at.shape;
        if (!lg__take(c, "multinomial", d->options, &o, sizeof o))
                return NULL;
        if (s.ndim != 1 && s.ndim != 2)
                return lg__fail(c, LG_ERR_SHAPE, "multinomial: weights is %s; it is (C) or (N, C)",
                                lg__tensor_text(weights).s);
        int64_t classes = s.size[s.ndim - 1], rows = s.ndim == 2 ? s.size[0] : 1;
        if (count < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "multinomial: count is %lld, below 0", (long long)count);
        if (classes == 0 && count > 0)
                return lg__fail(c, LG_ERR_SHAPE, "multinomial: weights is %s: there is nothing to draw from",
                                lg__tensor_text(weights).s);
        if (!o.replacement && count > classes)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "multinomial: %lld draws without replacement, but weights is %s: give .replacement = "
                                "true, or draw at most %lld",
                                (long long)count, lg__tensor_text(weights).s, (long long)classes);
        s.size[s.ndim - 1] = count;
        if (!lg__shape_valid(c, "multinomial", s))
                return NULL;
        if (rows == 0 || count == 0)
                return lg_zeros(c, s, .dtype = LG_I64, .device = weights->storage->device->id);
        lg_tensor *w = lg_cast(lg_detach(weights), LG_F64), *y;
        w = w ? lg_reshape(w, LG_SHAPE(rows, classes)) : NULL;
        y = !w ? NULL : o.replacement ? with_replacement(w, count) : without_replacement(w, count);
        return y ? lg_reshape(y, s) : NULL;
}

/* ---- public functions ---- */

/* Restores the state of the random generator if the call fails. */
static lg_tensor *compose(const lg__call *call)
{
        lg_ctx *c = call->ctx;
        const lg_random_state was = c->random;
        lg_scope scope = lg_scope_begin(c);
        const bool weights = call->op == LG__OP(multinomial);
        lg_tensor *y = weights ? multinomial(call->in[0], call->attributes) : bernoulli(call->in[0]);
        lg_escape(y);
        lg_scope_end(c, scope);
        if (!y)
                c->random = was;
        return y;
}

LG__DEFINE(bernoulli, .compose = compose, LG__OPERANDS({"p", LG__FLOAT}))
LG__DEFINE(multinomial, .compose = compose, LG__OPERANDS({"weights", LG__FLOAT}))

lg_tensor *lg_bernoulli(lg_tensor *p)
{
        return LG__APPLY(bernoulli, NULL, p);
}

lg_tensor *lg_multinomial_with(lg_tensor *weights, int64_t count, const lg_multinomial_options *options)
{
        return LG__APPLY(multinomial, (&(draws){count, options}), weights);
}
