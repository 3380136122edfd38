/* attention.c - ONNX's Attention. */
#include <math.h>
#include "import.h"

/* Returns x (batch, steps, heads * size) as (batch, heads, steps, size); x with four dimensions as it is. */
static lg_tensor *by_heads(const lg__onnx_call *c, lg_tensor *x, const char *name)
{
        const lg_shape *s = &x->at.shape;
        const int64_t heads = lg__onnx_int(c, name, 0);
        if (s->ndim == 4)
                return x;
        if (s->ndim != 3 || heads < 1 || s->size[2] % heads)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%s in %lld heads", lg__tensor_text(x).s, (long long)heads);
        lg_tensor *split = lg_reshape(x, LG_SHAPE(s->size[0], s->size[1], heads, s->size[2] / heads));
        return split ? lg_transpose(split, 1, 2) : NULL;
}

/* Returns which keys each query sees by .causal and windows where the last query of batch b is at place lengths[b] - 1:
 * bool (batch, 1, queries, keys). */
static lg_tensor *seen_by_lengths(const lg__onnx_call *c, lg_tensor *lengths, int64_t queries, int64_t keys)
{
        const lg_device device = lengths->storage->device->id;
        const int64_t batch = lg__shape_numel(lengths->at.shape);
        const bool causal = lg__onnx_int(c, "is_causal", 0);
        const int64_t left = lg__onnx_int(c, "left_window_size", -1), right = lg__onnx_int(c, "right_window_size", -1);
        lg_tensor *i = lg_reshape(lg_arange(c->ctx, 0, (double)queries, 1, .dtype = LG_I64, .device = device),
                                  LG_SHAPE(queries, 1));
        lg_tensor *j = lg_arange(c->ctx, 0, (double)keys, 1, .dtype = LG_I64, .device = device);
        lg_tensor *first =
                lg_reshape(lg_add_scalar(lg_cast(lengths, LG_I64), -(double)queries), LG_SHAPE(batch, 1, 1, 1));
        lg_tensor *ahead = lg_sub(j, lg_add(i, first)),
                  *seen = lg_le_scalar(ahead, causal ? 0 : (double)keys + (double)queries);
        if (left >= 0)
                seen = lg_logical_and(seen, lg_ge_scalar(ahead, -(double)left));
        if (right >= 0)
                seen = lg_logical_and(seen, lg_le_scalar(ahead, (double)right));
        return seen;
}

/* Joins two masks, either of which may be NULL and may be bool or added. */
static lg_tensor *joined(lg_tensor *mask, lg_tensor *seen, lg_dtype dtype)
{
        if (!mask || !seen)
                return mask ? mask : seen;
        if (mask->at.dtype == LG_BOOL)
                return lg_logical_and(mask, seen);
        return lg_where(
                seen, mask,
                lg_full(mask->ctx, LG_SHAPE_0D, -INFINITY, .dtype = dtype, .device = mask->storage->device->id));
}

/* Pads a mask of fewer keys: those that it lacks are hidden. */
static lg_tensor *of_all_keys(lg_tensor *mask, int64_t keys)
{
        const lg_shape *s = &mask->at.shape;
        const int64_t missing = keys - (s->ndim ? s->size[s->ndim - 1] : keys);
        return missing <= 0 ? mask
                            : lg_pad(mask, LG_INTS(0, missing), .value = mask->at.dtype == LG_BOOL ? 0 : -INFINITY);
}

typedef struct attention {
        lg_tensor *q, *k, *v, *mask, *lengths; /* mask: all that hides keys but causal, windows and lengths */
        int64_t past;
        bool by_lengths; /* causal and windows are in the mask */
} attention;

/* Computes the scores of result 3 before (mode 0) and after softcap (1) and mask (2), or the weights (3). */
static lg_tensor *scores_of(const lg__onnx_call *c, const attention *a, double scale)
{
        const int64_t mode = lg__onnx_int(c, "qk_matmul_output_mode", 0);
        const int64_t heads = a->q->at.shape.size[1], kv_heads = a->k->at.shape.size[1];
        const int64_t t = a->q->at.shape.size[2], s = a->k->at.shape.size[2];
        const double cap = lg__onnx_float(c, "softcap", 0);
        lg_tensor *k = heads == kv_heads ? a->k : lg_repeat_interleave(a->k, heads / kv_heads, 1);
        lg_tensor *y = lg_mul_scalar(lg_matmul(a->q, lg_transpose(k, 2, 3)), scale);
        if (mode >= 1 && cap > 0)
                y = lg_mul_scalar(lg_tanh(lg_div_scalar(y, cap)), cap);
        if (mode < 2 || !y)
                return y;
        lg_tensor *mask = a->mask, *last = lg_full(c->ctx, LG_SHAPE(1), (double)(a->past + t), .dtype = LG_I64,
                                                   .device = y->storage->device->id);
        if (!a->by_lengths)
                mask = joined(mask, seen_by_lengths(c, last, t, s), y->at.dtype);
        if (a->lengths) {
                lg_tensor *j = lg_arange(c->ctx, 0, (double)s, 1, .dtype = LG_I64, .device = y->storage->device->id);
                mask = joined(mask, lg_lt(j, lg_reshape(a->lengths, LG_SHAPE(-1, 1, 1, 1))), y->at.dtype);
        }
        lg_tensor *low =
                lg_full(c->ctx, LG_SHAPE_0D, -INFINITY, .dtype = y->at.dtype, .device = y->storage->device->id);
        y = !mask ? y : mask->at.dtype == LG_BOOL ? lg_where(mask, y, low) : lg_add(y, mask);
        if (mode < 3 || !y)
                return y;
        lg_tensor *none = lg_eq_scalar(lg_amax(y, .dims = LG_DIMS(-1), .keep_dim = true), -INFINITY);
        return lg_where(none, lg_mul_scalar(lg_zeros_like(y), 0), lg_softmax(y, -1));
}

LG__ONNX(Attention)
{
        attention a = {.q = by_heads(c, c->in[0], "q_num_heads")};
        a.k = a.q ? by_heads(c, c->in[1], "kv_num_heads") : NULL;
        a.v = a.k ? by_heads(c, c->in[2], "kv_num_heads") : NULL;
        if (!a.v)
                return NULL;
        lg_tensor *past_k = lg__onnx_in(c, 4), *past_v = lg__onnx_in(c, 5), *lengths = lg__onnx_in(c, 6);
        if ((past_k && past_k->at.shape.ndim != 4) || (past_v && past_v->at.shape.ndim != 4) ||
            a.k->at.shape.size[1] < 1)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "keys are %s", lg__tensor_text(a.k).s);
        if (past_k && past_v) {
                a.past = past_k->at.shape.size[2];
                a.k = lg_cat(LG_LIST(past_k, a.k), 2);
                a.v = a.k ? lg_cat(LG_LIST(past_v, a.v), 2) : NULL;
        }
        if (!a.v)
                return NULL;
        c->out[1] = a.k;
        c->out[2] = a.v;
        const int64_t t = a.q->at.shape.size[2], s = a.k->at.shape.size[2];
        const int64_t left = lg__onnx_int(c, "left_window_size", -1), right = lg__onnx_int(c, "right_window_size", -1);
        const bool causal = lg__onnx_int(c, "is_causal", 0);
        const double scale = lg__onnx_float(c, "scale", 0), cap = lg__onnx_float(c, "softcap", 0);
        const double usual = 1 / sqrt((double)a.q->at.shape.size[3]);
        a.mask = lg__onnx_in(c, 3) ? of_all_keys(c->in[3], s) : NULL;
        a.lengths = lengths ? lg_cast(lengths, LG_I64) : NULL;
        a.by_lengths = a.lengths && (causal || left >= 0 || right >= 0);
        if (a.by_lengths)
                a.mask = joined(a.mask, seen_by_lengths(c, a.lengths, t, s), a.q->at.dtype);
        if (!lg__ok(c->ctx))
                return NULL;
        if (lg__onnx_wants(c, 3))
                c->out[3] = scores_of(c, &a, scale ? scale : usual);
        const bool plain = !a.by_lengths;
        lg_tensor *y = lg_attention(a.q, a.k, a.v, .mask = a.mask, .kv_lengths = a.lengths, .scale = scale,
                                    .softcap = cap, .causal = causal && plain, .offset = plain ? a.past : 0,
                                    .window_left = !plain || left < 0 ? 0
                                                   : left             ? left
                                                                      : LG_ZERO_INT,
                                    .window_right = !plain || right < 0 ? 0
                                                    : right             ? right
                                                                        : LG_ZERO_INT);
        if (!y || c->in[0]->at.shape.ndim == 4)
                return y;
        const lg_shape *o = &y->at.shape;
        return lg_reshape(lg_transpose(y, 1, 2), LG_SHAPE(o->size[0], o->size[2], o->size[1] * o->size[3]));
}
