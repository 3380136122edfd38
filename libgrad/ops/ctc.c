/* ctc.c - connectionist temporal classification: minus the logarithm of the probability that a sequence of classes,
 * once repeats and then blanks are removed, is the target (Graves et al., 2006).
 *
 * With blanks between, before and behind the targets the states are e[0], ..., e[L - 1], L = 2 S + 1, and
 *
 *   a[t, s] = lp[t, e[s]] + logaddexp over r = s, s - 1 and, if e[s] is neither a blank nor e[s - 2], s - 2 of a[t - 1,
 * r]
 *
 * The loss is -logaddexp(a[T - 1, L - 1], a[T - 1, L - 2]). The derivative is that of these ops. UNLIKELY stands for
 * the logarithm of 0, which has no derivative.
 */
#include <math.h>
#include "loss.h"

#define UNLIKELY (-1e30)

/* Inputs of a call: lp (T, N, C), targets (N, S), lengths (N). */
typedef struct sequences {
        lg_ctx *ctx;
        lg_tensor *lp, *targets, *times, *lengths;
        int64_t T, N, S;
        double blank;
} sequences;

/* Returns {0, ..., n - 1}, on the device of the sequences. */
static lg_tensor *numbers(const sequences *q, int64_t n)
{
        return lg_arange(q->ctx, 0, (double)n, 1, .dtype = LG_I64, .device = lg_device_of(q->lp));
}

/* ---- inputs ---- */

/* Sets q->targets (N, S) from targets one after the other. Reads the lengths, since S is the greatest. */
static bool pad_targets(sequences *q, lg_tensor *targets)
{
        const int64_t total = targets->at.shape.size[0];
        const double sum = lg_item(lg_sum(q->lengths));
        if (!lg_error(q->ctx) && sum != (double)total)
                return lg__fail(q->ctx, LG_ERR_SHAPE, "ctc: target is %s, but the sum of target_lengths is %g",
                                lg__tensor_text(targets).s, sum);
        q->S = q->N && total ? lg_item_i64(lg_amax(q->lengths)) : 0;
        lg_tensor *from = lg_sub(lg_cumsum(q->lengths, 0), q->lengths);
        lg_tensor *at = lg_add(lg_unsqueeze(from, 1), numbers(q, q->S));
        at = lg_reshape(lg_clamp(at, 0, total > 0 ? (double)(total - 1) : 0), LG_SHAPE(q->N * q->S));
        q->targets = lg_reshape(lg_index_select(targets, 0, at), LG_SHAPE(q->N, q->S));
        return lg__ok(q->ctx);
}

static bool shapes_fit(const lg__call *call)
{
        const lg_shape lp = call->in[0]->at.shape, targets = call->in[1]->at.shape;
        const int64_t n = lp.ndim == 3 ? lp.size[1] : 1;
        bool fits = (lp.ndim == 2 || lp.ndim == 3) && targets.ndim >= 1 && targets.ndim < lp.ndim;
        fits = fits && (targets.ndim == 1 || targets.size[0] == n);
        for (int i = 2; i < 4; i++) {
                const lg_shape s = call->in[i]->at.shape;
                fits = fits && (lp.ndim == 3 || s.ndim == 0 ? s.ndim == lp.ndim - 2 : s.ndim == 1);
                fits = fits && (s.ndim == 0 || s.size[0] == n);
        }
        if (!fits)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "ctc: log_probs is %s, target %s, input_lengths %s and target_lengths %s; they are "
                                "(T, N, C), (N, S) or (sum of lengths), (N) and (N), or (T, C), (S), 0-d and 0-d",
                                lg__tensor_text(call->in[0]).s, lg__tensor_text(call->in[1]).s,
                                lg__tensor_text(call->in[2]).s, lg__tensor_text(call->in[3]).s);
        return true;
}

static bool take_sequences(const operands *n, int64_t blank, sequences *q)
{
        const lg__call *call = n->call;
        if (!shapes_fit(call))
                return false;
        const lg_shape s = call->in[0]->at.shape;
        const int64_t classes = s.size[s.ndim - 1];
        if (blank < 0 || blank >= classes)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "ctc: blank is %lld; there are %lld classes",
                                (long long)blank, (long long)classes);
        *q = (sequences){.ctx = call->ctx, .T = s.size[0], .N = s.ndim == 3 ? s.size[1] : 1, .blank = (double)blank};
        q->lp = s.ndim == 3 ? n->x : lg_unsqueeze(n->x, 1);
        if (q->T == 0) /* one time, which no sequence reaches */
                q->T = 1, q->lp = lg_zeros(call->ctx, LG_SHAPE(1, q->N, classes), .dtype = lg_dtype_of(n->x),
                                           .device = lg_device_of(n->x));
        q->times = lg_reshape(call->in[2], LG_SHAPE(q->N));
        q->lengths = lg_reshape(call->in[3], LG_SHAPE(q->N));
        lg_tensor *targets = call->in[1];
        if (!q->lp || !q->times || !q->lengths)
                return false;
        if (s.ndim == 3 && targets->at.shape.ndim == 1)
                return pad_targets(q, targets);
        q->S = targets->at.shape.size[targets->at.shape.ndim - 1];
        q->targets = lg_reshape(targets, LG_SHAPE(q->N, q->S));
        return q->targets != NULL;
}

/* ---- states ---- */

/* Returns x (N, L) moved by k states to the right, with UNLIKELY in the first k. */
static lg_tensor *moved(lg_tensor *x, int64_t k)
{
        return lg_pad(lg_slice(x, 1, 0, -k), LG_INTS(k, 0), .value = UNLIKELY);
}

/* Returns the states' classes (N, L): blanks, and between them the targets, blanks behind a sequence's length. */
static lg_tensor *states_of(const sequences *q)
{
        lg_tensor *behind = lg_ge(numbers(q, q->S), lg_unsqueeze(q->lengths, 1));
        lg_tensor *known = lg_masked_fill(q->targets, behind, q->blank);
        lg_tensor *pairs = lg_stack(LG_LIST(lg_full_like(known, q->blank), known), 2);
        return lg_pad(lg_reshape(pairs, LG_SHAPE(q->N, 2 * q->S)), LG_INTS(0, 1), .value = q->blank);
}

/* Returns what is added where a state is entered from the one two before it: 0, or UNLIKELY where that may not be. */
static lg_tensor *jumps_of(const sequences *q, lg_tensor *states)
{
        lg_tensor *before = lg_pad(lg_slice(states, 1, 0, -2), LG_INTS(2, 0), .value = q->blank);
        lg_tensor *none = lg_logical_or(lg_eq_scalar(states, q->blank), lg_eq(states, before));
        return lg_mul_scalar(lg_cast(none, lg_dtype_of(q->lp)), UNLIKELY);
}

/* Returns a (T, N, L). What log_probs holds at times behind a sequence's length does not matter. */
static lg_tensor *alphas(const sequences *q, lg_tensor *states)
{
        const int64_t L = 2 * q->S + 1;
        const size_t bytes = (size_t)q->T * sizeof(lg_tensor *);
        lg_tensor *late = lg_ge(lg_unsqueeze(numbers(q, q->T), 1), q->times); /* (T, N) */
        lg_tensor *e = lg_gather(q->lp, 2, lg_expand(lg_unsqueeze(states, 0), LG_SHAPE(q->T, q->N, L)));
        e = lg_maximum_scalar(lg_masked_fill(e, lg_unsqueeze(late, 2), 0), UNLIKELY);
        lg_tensor *jumps = q->S > 0 ? jumps_of(q, states) : NULL, **a = e ? lg__alloc(q->ctx, bytes) : NULL;
        if (!a || lg_unbind(e, 0, a, q->T) != q->T) {
                lg__free(q->ctx, a, bytes);
                return NULL;
        }
        a[0] = lg_masked_fill(a[0], lg_gt_scalar(numbers(q, L), 1), UNLIKELY);
        for (int64_t t = 1; t < q->T; t++) {
                lg_tensor *reached = a[t - 1];
                if (q->S > 0) {
                        reached = lg_logaddexp(reached, moved(a[t - 1], 1));
                        reached = lg_logaddexp(reached, lg_add(moved(a[t - 1], 2), jumps));
                }
                a[t] = lg_add(reached, a[t]);
        }
        lg_tensor *all = lg__ok(q->ctx) ? lg_stack((lg_list){q->T, a}, 0) : NULL;
        lg__free(q->ctx, a, bytes);
        return all;
}

/* Returns the loss of each sequence (N). Indices out of range are reported by lg_gather(). */
static lg_tensor *losses(const sequences *q, bool zero_infinity)
{
        const lg_shape last = LG_SHAPE(1, q->N, 2 * q->S + 1);
        lg_tensor *all = alphas(q, states_of(q)), *none = lg_eq_scalar(q->times, 0),
                  *empty = lg_eq_scalar(q->lengths, 0);
        lg_tensor *at = lg_masked_fill(lg_sub_scalar(q->times, 1), none, 0);
        lg_tensor *a = lg_select(lg_gather(all, 0, lg_expand(lg_reshape(at, LG_SHAPE(1, q->N, 1)), last)), 0, 0);
        lg_tensor *end = lg_unsqueeze(lg_mul_scalar(q->lengths, 2), 1);
        lg_tensor *on_target = lg_masked_fill(lg_sub_scalar(end, 1), lg_unsqueeze(empty, 1), 0);
        on_target = lg_masked_fill(lg_gather(a, 1, on_target), lg_unsqueeze(empty, 1), UNLIKELY);
        lg_tensor *p = lg_squeeze(lg_logaddexp(lg_gather(a, 1, end), on_target), LG_DIMS(1));
        p = lg_masked_fill(lg_masked_fill(p, lg_logical_and(none, empty), 0),
                           lg_logical_and(none, lg_logical_not(empty)), UNLIKELY);
        return lg_masked_fill(lg_neg(p), lg_lt_scalar(p, UNLIKELY / 2), zero_infinity ? 0 : INFINITY);
}

static lg_tensor *ctc(const operands *n, const lg_ctc_options *o)
{
        sequences q = {.ctx = NULL};
        if (!take_sequences(n, o->blank, &q))
                return NULL;
        lg_tensor *each = losses(&q, o->zero_infinity);
        if (n->reduction == LG_MEAN)
                each = lg_div(each, lg_cast(lg_maximum_scalar(q.lengths, 1), lg_dtype_of(q.lp)));
        return n->x->at.shape.ndim == 3 ? each : lg_reshape(each, LG_SHAPE_0D);
}

LOSS(ctc, false, lg_ctc_options, ctc(&n, &o), {"log_probs", LG__FLOAT}, {"target", LG__INDEX},
     {"input_lengths", LG__INDEX}, {"target_lengths", LG__INDEX})

lg_tensor *lg_ctc_with(lg_tensor *log_probs, lg_tensor *target, lg_tensor *input_lengths, lg_tensor *target_lengths,
                       const lg_ctc_options *options)
{
        return LG__APPLY(ctc, options, log_probs, target, input_lengths, target_lengths);
}
