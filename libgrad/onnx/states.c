/* states.c - ONNX's operators of decoders that keep a state between calls. */
#include <math.h>
#include "import.h"

/* Writes the steps of an update into a cache, from a place on that each sample of the batch has. */
LG__ONNX(TensorScatter)
{
        lg_tensor *past = c->in[0], *update = c->in[1], *from = lg__onnx_in(c, 2);
        const lg_shape *s = &past->at.shape, *u = &update->at.shape;
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", -2), s->ndim);
        const bool wraps = !strcmp(lg__onnx_text(c, "mode", "linear"), "circular");
        bool fits = axis > 0 && s->ndim == u->ndim && u->size[axis] <= s->size[axis];
        for (int i = 0; i < s->ndim && fits; i++)
                fits = i == axis || s->size[i] == u->size[i];
        if (!fits || (from && !lg__shape_equal(from->at.shape, LG_SHAPE(s->size[0]))))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "an update %s of a cache %s along axis %d",
                                     lg__tensor_text(update).s, lg__tensor_text(past).s, axis);
        if (lg__shape_numel(*u) == 0)
                return past;
        lg_shape steps = {.ndim = s->ndim}, batch = steps;
        for (int i = 0; i < s->ndim; i++) {
                steps.size[i] = i == axis ? u->size[i] : 1;
                batch.size[i] = i == 0 ? s->size[0] : 1;
        }
        lg_tensor *index = lg_reshape(
                lg_arange(c->ctx, 0, (double)u->size[axis], 1, .dtype = LG_I64, .device = past->storage->device->id),
                steps);
        index = from ? lg_add(index, lg_reshape(lg_cast(from, LG_I64), batch)) : index;
        index = wraps ? lg_remainder_scalar(index, (double)s->size[axis]) : index;
        return index ? lg_scatter(past, axis, lg_expand(index, *u), update) : NULL;
}

/* Convolves each channel with its own kernel, which reaches back only; the state has the elements before the first. */
LG__ONNX(CausalConvWithState)
{
        lg_tensor *x = c->in[0], *w = c->in[1], *past = lg__onnx_in(c, 3);
        const char *activation = lg__onnx_text(c, "activation", "none");
        const lg_shape *s = &x->at.shape, *k = &w->at.shape;
        if (s->ndim != 3 || k->ndim != 3 || k->size[2] < 1)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its operands are %s and %s", lg__tensor_text(x).s,
                                     lg__tensor_text(w).s);
        const int64_t before = k->size[2] - 1;
        if (past && !lg__shape_equal(past->at.shape, LG_SHAPE(s->size[0], s->size[1], before)))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its state is %s", lg__tensor_text(past).s);
        x = past ? lg_cat(LG_LIST(past, x), 2) : lg_pad(x, LG_INTS(before, 0));
        lg_tensor *y = x ? lg_conv1d(x, w, lg__onnx_in(c, 2), .groups = s->size[1]) : NULL;
        if (!y)
                return NULL;
        c->out[1] = lg_narrow(x, 2, s->size[2], before);
        return strcmp(activation, "none") ? lg_silu(y) : y;
}

/* ---- linear attention ---- */

/* Returns x (batch, steps, heads * size) as (batch, steps, heads, size), in f32 if it has half precision. */
static lg_tensor *by_heads(const lg__onnx_call *c, lg_tensor *x, int64_t heads)
{
        const lg_shape *s = &x->at.shape, *q = &c->in[0]->at.shape;
        if (s->ndim != 3 || q->ndim != 3 || s->size[0] != q->size[0] || s->size[1] != q->size[1] || heads < 1 ||
            s->size[2] % heads)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%s does not have %lld heads", lg__tensor_text(x).s,
                                     (long long)heads);
        x = lg_reshape(x, LG_SHAPE(s->size[0], s->size[1], heads, s->size[2] / heads));
        return x && lg_dtype_size(x->at.dtype) < 4 ? lg_cast(x, LG_F32) : x;
}

/* The operands of linear attention, with heads as their third dimension; decay and beta may be NULL. */
typedef struct linear_attention {
        lg_tensor *q, *k, *v, *decay, *beta, *state;
} linear_attention;

/* Computes step t: S = exp(g) S + k (x) v, where v is beta (v - (exp(g) S)' k) by the delta rule. Returns q' S. */
static lg_tensor *attend_step(linear_attention *a, int64_t t)
{
        lg_tensor *k = lg_select(a->k, 1, t), *v = lg_unsqueeze(lg_select(a->v, 1, t), -2);
        if (a->decay)
                a->state = lg_mul(a->state, lg_exp(lg_unsqueeze(lg_select(a->decay, 1, t), -1)));
        if (a->beta)
                v = lg_mul(lg_unsqueeze(lg_select(a->beta, 1, t), -1),
                           lg_sub(v, lg_matmul(lg_unsqueeze(k, -2), a->state)));
        a->state = lg_add(a->state, lg_mul(lg_unsqueeze(k, -1), v));
        return lg_matmul(lg_select(a->q, 1, t), a->state);
}

static bool take_operands(const lg__onnx_call *c, int64_t heads, linear_attention *a)
{
        const char *rule = lg__onnx_text(c, "update_rule", "gated_delta");
        lg_tensor *past = lg__onnx_in(c, 3), *decay = lg__onnx_in(c, 4), *beta = lg__onnx_in(c, 5);
        if (!strncmp(rule, "gated", 5) != (decay != NULL) || (strstr(rule, "delta") != NULL) != (beta != NULL))
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "decay or beta does not fit update_rule %s", rule);
        a->k = by_heads(c, c->in[1], heads);
        a->v = a->k ? by_heads(c, c->in[2], heads) : NULL;
        a->decay = a->v && decay ? by_heads(c, decay, heads) : NULL;
        const bool common = beta && beta->at.shape.ndim == 3 && beta->at.shape.size[2] == 1; /* to all heads */
        a->beta = a->v && beta ? by_heads(c, beta, common ? 1 : heads) : NULL;
        if (!lg__ok(c->ctx))
                return false;
        const lg_shape state = LG_SHAPE(a->k->at.shape.size[0], heads, a->k->at.shape.size[3], a->v->at.shape.size[3]);
        if (past && !lg__shape_equal(past->at.shape, state))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its state is %s", lg__tensor_text(past).s);
        a->state = past ? lg_cast(past, a->k->at.dtype)
                        : lg_zeros(c->ctx, state, .dtype = a->k->at.dtype, .device = a->k->storage->device->id);
        return a->state != NULL;
}

LG__ONNX(LinearAttention)
{
        lg_tensor *past = lg__onnx_in(c, 3), *y = NULL;
        const int64_t heads = lg__onnx_int(c, "kv_num_heads", 0), q_heads = lg__onnx_int(c, "q_num_heads", 0);
        double scale = lg__onnx_float(c, "scale", 0);
        linear_attention a = {.q = by_heads(c, c->in[0], q_heads)};
        if (!a.q || !take_operands(c, heads, &a))
                return NULL;
        const lg_shape *q = &a.q->at.shape;
        const int64_t batch = q->size[0], steps = q->size[1], size = q->size[3], out = a.v->at.shape.size[3];
        if (q_heads % heads || size != a.k->at.shape.size[3] || steps < 1)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%lld heads of keys for %lld of queries, %lld steps",
                                     (long long)heads, (long long)q_heads, (long long)steps);
        a.q = lg_reshape(a.q, LG_SHAPE(batch, steps, heads, q_heads / heads, size));
        lg_tensor **ys = lg__alloc(c->ctx, (size_t)steps * sizeof *ys);
        for (int64_t t = 0; t < steps && ys && lg__ok(c->ctx); t++)
                ys[t] = attend_step(&a, t);
        if (ys && lg__ok(c->ctx))
                y = lg_stack((lg_list){steps, ys}, 1);
        lg__free(c->ctx, ys, (size_t)steps * sizeof *ys);
        c->out[1] = y ? lg_cast(a.state, past ? past->at.dtype : c->in[0]->at.dtype) : NULL;
        scale = scale != 0 ? scale : 1 / sqrt((double)size);
        y = y ? lg_reshape(lg_mul_scalar(y, scale), LG_SHAPE(batch, steps, q_heads * out)) : NULL;
        return y ? lg_cast(y, c->in[0]->at.dtype) : NULL;
}
