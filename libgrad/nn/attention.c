/* attention.c - MultiheadAttention: out_proj(attention(q Wq^T + bq, k Wk^T + bk, v Wv^T + bv)) by heads. */
#include <math.h>
#include "attention.h"

typedef struct sizes {
        int64_t dim, heads, kv_heads, kdim, vdim;
        bool packed; /* one weight for q, k and v */
        lg_multihead_attention_options o;
} sizes;

/* Arguments of lg_run_attention(), with a batch. Without .cache, k and v are given. */
typedef struct arguments {
        lg_tensor *q, *k, *v;
        lg_run_attention_options o;
} arguments;

/* ---- projections ---- */

static lg_tensor *rows(lg_tensor *t, int64_t first, int64_t count)
{
        return !t || lg_size_of(t, 0) == count ? t : lg_slice(t, 0, first, first + count);
}

/* Projects x by `count` of the projections of q, k and v from number `first` on, which are packed in one weight if
 * count is not 1. */
static lg_tensor *project(const lg_module *m, lg_tensor *x, int first, int count)
{
        static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
        const sizes *s = m->user;
        const int64_t kv = s->kv_heads * (s->dim / s->heads), at = first ? s->dim + (first - 1) * kv : 0;
        const int64_t each = first || count > 1 ? kv : s->dim;
        lg_tensor *w = lg__module_tensor(m, s->packed ? "in_proj_weight" : names[first]);
        lg_tensor *b = rows(lg__module_tensor(m, "in_proj_bias"), at, count * each);
        return lg_linear(x, s->packed ? rows(w, at, count * each) : w, b);
}

/* Returns x (N, T, elements), or (T, N, elements) without .batch_first, as (N, heads, T, elements / heads). */
static lg_tensor *split_heads(const sizes *s, lg_tensor *x, int64_t heads)
{
        if (!x)
                return NULL;
        const int64_t *n = x->at.shape.size;
        const bool first = s->o.batch_first;
        x = lg_reshape(x, LG_SHAPE(n[0], n[1], heads, s->dim / s->heads));
        return lg_permute(x, first ? LG_DIMS(0, 2, 1, 3) : LG_DIMS(1, 2, 0, 3));
}

/* Computes the heads of `count` projections of x into ret. */
static bool project_heads(const lg_module *m, lg_tensor *x, int first, int count, lg_tensor **ret)
{
        const sizes *s = m->user;
        const int64_t heads = first ? s->kv_heads : s->heads;
        lg_tensor *y = split_heads(s, project(m, x, first, count), count * heads);
        if (y && count > 1)
                return lg_split(y, heads, 1, ret, count) == count;
        return (*ret = y) != NULL;
}

/* Reverses split_heads(). */
static lg_tensor *join_heads(const sizes *s, lg_tensor *x)
{
        x = lg_permute(x, s->o.batch_first ? LG_DIMS(0, 2, 1, 3) : LG_DIMS(2, 0, 1, 3));
        return x ? lg_reshape(x, LG_SHAPE(x->at.shape.size[0], x->at.shape.size[1], s->dim)) : NULL;
}

/* Computes the heads of q, and of k and v, which may be NULL, into ret. Equal inputs share a product. */
static bool make_heads(const lg_module *m, const arguments *a, lg_tensor *ret[3])
{
        const sizes *s = m->user;
        const bool shared = s->packed && a->k == a->v;
        if (shared && a->q == a->k)
                return project_heads(m, a->q, 0, 3, ret);
        return project_heads(m, a->q, 0, 1, ret) && (!a->k || (project_heads(m, a->k, 1, shared ? 2 : 1, ret + 1) &&
                                                               (shared || project_heads(m, a->v, 2, 1, ret + 2))));
}

/* ---- keys of all samples ---- */

/* Returns the number of keys that all samples have. They stand before their own, so that .causal hides none of them. */
static int64_t shared_keys(const sizes *s)
{
        return s->o.add_bias_kv + s->o.add_zero_attn;
}

/* Puts the module's tensor of that name and a zero, as far as it has them, before x (N, kv_heads, S, elements). */
static lg_tensor *share(const lg_module *m, const char *name, lg_tensor *x)
{
        const sizes *s = m->user;
        const int64_t kv = s->kv_heads, each = s->dim / s->heads, count = shared_keys(s);
        if (!count)
                return x;
        lg_tensor *zero = lg_zeros(x->ctx, LG_SHAPE(1), .dtype = x->at.dtype, .device = x->storage->device->id);
        lg_tensor *parts[3] = {zero, zero};
        if (s->o.add_bias_kv)
                parts[0] = lg_cast(lg_reshape(lg__module_tensor(m, name), LG_SHAPE(kv, 1, each)), x->at.dtype);
        for (int i = 0; i < count; i++)
                parts[i] = lg_expand(parts[i], LG_SHAPE(x->at.shape.size[0], kv, 1, each));
        parts[count] = x;
        return lg_cat(LG_LIST_OF(count + 1, parts), 2);
}

/* ---- masks ---- */

/* Returns a mask to add: 0 for true and -inf for false. */
static lg_tensor *added(lg_tensor *mask)
{
        return mask->at.dtype == LG_BOOL ? lg_log(lg_cast(mask, LG_F32)) : mask;
}

/* Joins the two masks into *ret, NULL if there is none, for keys (N, kv_heads, S, elements) and this number of heads.
 */
static bool join_masks(const lg_run_attention_options *o, const lg_tensor *keys, int64_t heads, lg_tensor **ret)
{
        lg_tensor *mask = o->mask, *key_mask = o->key_mask;
        const int64_t n = keys->at.shape.size[0], length = keys->at.shape.size[2];
        if (mask && !lg__check(mask, "lg_run_attention", "mask"))
                return false;
        const lg_shape given = mask ? mask->at.shape : LG_SHAPE_0D;
        if (given.ndim == 3 && n > 1 && given.size[0] == n * heads &&
            !(mask = lg_reshape(mask, LG_SHAPE(n, heads, given.size[1], given.size[2]))))
                return false;
        *ret = mask;
        if (!key_mask)
                return true;
        if (!lg__check(key_mask, "lg_run_attention", "key_mask"))
                return false;
        const lg_shape s = key_mask->at.shape;
        if (!lg__shape_equal(s, LG_SHAPE(n, length)) && !(n == 1 && lg__shape_equal(s, LG_SHAPE(length))))
                return lg__fail(keys->ctx, LG_ERR_SHAPE, "lg_run_attention: key_mask is %s; with these keys it is %s",
                                lg__tensor_text(key_mask).s, lg__shape_text(LG_SHAPE(n, length)).s);
        key_mask = lg_reshape(key_mask, LG_SHAPE(n, 1, 1, length));
        if (!mask)
                *ret = key_mask;
        else if (mask->at.dtype == LG_BOOL && key_mask && key_mask->at.dtype == LG_BOOL)
                *ret = lg_logical_and(mask, key_mask);
        else
                *ret = key_mask ? lg_add(added(mask), added(key_mask)) : NULL;
        return *ret != NULL;
}

/* Lets every query see the shared keys; `length`: number of the other ones. */
static lg_tensor *see_shared(const sizes *s, lg_tensor *mask, int64_t length)
{
        const int64_t count = shared_keys(s);
        if (!mask || !count)
                return mask;
        lg_shape shape = mask->at.shape.ndim ? mask->at.shape : LG_SHAPE(1);
        if (shape.size[shape.ndim - 1] == 1)
                shape.size[shape.ndim - 1] = length;
        return lg_pad(lg_expand(mask, shape), LG_INTS(count, 0), .value = mask->at.dtype == LG_BOOL);
}

/* ---- forward ---- */

/* Computes the attention of the heads, and its weights by attending over the rows of an identity matrix. */
static lg_tensor *weigh(lg_tensor *const h[3], const lg_attention_options *o, lg_tensor **ret_weights)
{
        const lg_tensor *k = h[1];
        const int64_t *n = h[0]->at.shape.size, kv = k->at.shape.size[1], length = k->at.shape.size[2];
        lg_tensor *one = lg_eye(k->ctx, length, length, .dtype = k->at.dtype, .device = k->storage->device->id);
        lg_tensor *w = lg_attention_with(h[0], h[1], lg_expand(one, LG_SHAPE(kv, length, length)), o);
        lg_tensor *groups = lg_reshape(w, LG_SHAPE(n[0], kv, kv ? n[1] / kv * n[2] : 0, length));
        *ret_weights = w;
        return lg_reshape(lg_matmul(groups, h[2]), LG_SHAPE(n[0], n[1], n[2], h[2]->at.shape.size[3]));
}

/* Returns whether there is one query for many keys, all of which it sees, as where a cache is used. */
static bool is_step(lg_tensor *const h[3], const lg_attention_options *o)
{
        const lg_dtype dtype = h[0]->at.dtype;
        return h[0]->at.shape.size[2] == 1 && h[1]->at.shape.size[2] > 0 && !o->mask && !o->dropout &&
               !h[0]->ctx->recording && (dtype == LG_F32 || dtype == LG_F64);
}

/* Computes the attention of one query for each head as two products, which read the keys and values in place. */
static lg_tensor *attend_step(lg_tensor *const h[3])
{
        const int64_t *n = h[0]->at.shape.size, kv = h[1]->at.shape.size[1];
        lg_tensor *q = lg_mul_scalar(h[0], 1 / sqrt((double)n[3]));
        lg_tensor *scores = lg_matmul(lg_reshape(q, LG_SHAPE(n[0], kv, n[1] / kv, n[3])), lg_transpose(h[1], 2, 3));
        return lg_reshape(lg_matmul(lg_softmax(scores, 3), h[2]), h[0]->at.shape);
}

/* Runs on inputs with a batch. */
static bool run_batched(lg_module *m, const arguments *a, lg_outputs *ret)
{
        const sizes *s = m->user;
        const int64_t shared = shared_keys(s);
        lg_tensor *h[3] = {NULL}, *weights = NULL, *mask;
        int64_t past = lg__whole_option(a->o.offset, 0);
        if (!make_heads(m, a, h) || (a->o.cache && !lg__kv_cache_extend(a->o.cache, m, h, &past)) ||
            !join_masks(&a->o, h[1], s->heads, &mask))
                return false;
        mask = see_shared(s, mask, h[1]->at.shape.size[2]);
        h[1] = share(m, "bias_k", h[1]);
        h[2] = share(m, "bias_v", h[2]);
        if (!h[1] || !h[2])
                return false;
        const lg_attention_options o = {.size_ = sizeof o,
                                        .causal = a->o.causal,
                                        .offset = past + shared,
                                        .mask = mask,
                                        .dropout = m->training ? s->o.dropout : 0};
        lg_tensor *y = a->o.weights                   ? weigh(h, &o, &weights)
                       : a->o.cache && is_step(h, &o) ? attend_step(h)
                                                      : lg_attention_with(h[0], h[1], h[2], &o);
        y = lg_forward(lg_child(m, 0), join_heads(s, y));
        if (a->o.weights && !a->o.per_head)
                weights = lg_mean(weights, .dims = LG_DIMS(1));
        if (weights && shared)
                weights = lg_roll(weights, -shared, -1);
        *ret = (lg_outputs){.count = 1 + (a->o.weights != NULL), .items = {y, weights}};
        return y != NULL;
}

static bool check_input(const lg_module *m, const lg_tensor *x, const char *name, int64_t elements, int ndim)
{
        const lg_shape shape = x->at.shape;
        if (shape.ndim == ndim && (ndim == 2 || ndim == 3) && shape.size[ndim - 1] == elements)
                return true;
        return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: %s is %s; it takes %s%lld), or (T, %lld) without a batch", m->type,
                        name, lg__tensor_text(x).s, ((const sizes *)m->user)->o.batch_first ? "(N, T, " : "(T, N, ",
                        (long long)elements, (long long)elements);
}

/* The function behind all forwards: adds the dimension N if it is missing, and removes it from the results. The inputs
 * are q, k and v. */
static bool run(lg_module *m, lg_list in, lg_outputs *ret, void *options)
{
        const sizes *s = m->user;
        const int batch = s->o.batch_first ? 0 : 1;
        lg_tensor *q = in.items[0], *k = in.items[1], *v = in.items[2];
        const int ndim = q->at.shape.ndim;
        if (!check_input(m, q, "q", s->dim, ndim) ||
            (k && (!check_input(m, k, "k", s->kdim, ndim) || !check_input(m, v, "v", s->vdim, ndim))))
                return false;
        arguments a = {.q = q, .k = k, .v = v, .o = *(const lg_run_attention_options *)options};
        if (ndim == 3)
                return run_batched(m, &a, ret);
        a.q = lg_unsqueeze(q, batch);
        a.k = k == q ? a.q : k ? lg_unsqueeze(k, batch) : NULL;
        a.v = v == q ? a.q : v == k ? a.k : lg_unsqueeze(v, batch);
        if (!a.q || (k && (!a.k || !a.v)) || !run_batched(m, &a, ret))
                return false;
        ret->items[0] = lg_squeeze(ret->items[0], LG_DIMS(batch));
        if (ret->count > 1)
                ret->items[1] = lg_squeeze(ret->items[1], LG_DIMS(0));
        return ret->items[0] != NULL;
}

static lg_tensor *forward(lg_module *m, lg_list in, void *user)
{
        lg_outputs all;
        (void)user;
        if (in.count != 1 && in.count != 3)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                                "lg_forward: %s takes one input, or q, k and v; %lld were given", m->type,
                                (long long)in.count);
        const int other = in.count == 3;
        lg_tensor *inputs[] = {in.items[0], in.items[other], in.items[2 * other]};
        return run(m, (lg_list){3, inputs}, &all, &(lg_run_attention_options){.size_ = 0}) ? all.items[0] : NULL;
}

bool lg__is_attention(const lg_module *m)
{
        return m->forward == forward;
}

lg_tensor *lg_run_attention_with(lg_module *m, lg_tensor *q, lg_tensor *k, lg_tensor *v,
                                 const lg_run_attention_options *options)
{
        static const char op[] = "lg_run_attention";
        lg_ctx *c = m ? m->object.ctx : lg__ctx_of(q);
        lg_tensor *inputs[] = {q, k, v};
        lg_run_attention_options o;
        lg_outputs all;
        lg__take_without(options, &o, sizeof o);
        if (o.weights)
                *o.weights = NULL;
        if (!lg__take(c, op, options, &o, sizeof o) || (m && !lg__object_lasts(&m->object, op)))
                return NULL;
        if (m && !lg__is_attention(m))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: m is a %s; it takes a MultiheadAttention", op, m->type);
        if (m && (!k || !v) && (k || v || !o.cache))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL%s", op, k ? "v" : "k",
                                o.cache ? "; with a cache, k and v are both given or both NULL" : "");
        if (o.cache && o.offset)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: offset is given, but with a cache it is the cached length",
                                op);
        if (!lg__forward_typed(m, (lg_list){3, inputs}, &(lg__typed_call){op, run, &o}, &all))
                return NULL;
        if (o.weights)
                *o.weights = all.items[1];
        return all.items[0];
}

/* ---- construction ---- */

static bool fill_weight(lg_module *m, const char *name, int64_t out, int64_t in)
{
        const sizes *s = m->user;
        return lg__module_uniform(m, name, sqrt(6 / ((double)in + (double)out)), LG_SHAPE(out, in), s->o.dtype,
                                  s->o.device);
}

/* Adds the key or value that all samples share: normal, as lg_init_xavier_normal() has it. */
static bool fill_shared(lg_module *m, const char *name)
{
        const sizes *s = m->user;
        const int64_t kv = s->kv_heads * (s->dim / s->heads);
        lg_tensor *t = lg_normal(m->object.ctx, 0, 1 / sqrt((double)kv), LG_SHAPE(1, 1, kv), .dtype = s->o.dtype,
                                 .device = s->o.device);
        return lg_module_add_parameter(m, name, t) != NULL;
}

/* Draws the weight of the output, then those of the input, in PyTorch's order. */
static bool fill(lg_module *m, const void *options)
{
        const sizes *s = options;
        const int64_t kv = s->kv_heads * (s->dim / s->heads);
        lg_module *out = lg_nn_linear(m->object.ctx, s->dim, s->dim, .no_bias = s->o.no_bias, .dtype = s->o.dtype,
                                      .device = s->o.device);
        bool ok = out && (s->o.no_bias || lg_init_constant(lg_parameter(out, "bias"), 0));
        ok = ok && (s->packed ? fill_weight(m, "in_proj_weight", 3 * s->dim, s->dim)
                              : fill_weight(m, "q_proj_weight", s->dim, s->dim) &&
                                        fill_weight(m, "k_proj_weight", kv, s->kdim) &&
                                        fill_weight(m, "v_proj_weight", kv, s->vdim));
        ok = ok && (s->o.no_bias || lg__module_constant(m, LG__PARAMETER, "in_proj_bias", 0, LG_SHAPE(s->dim + 2 * kv),
                                                        s->o.dtype, s->o.device));
        ok = ok && (!s->o.add_bias_kv || (fill_shared(m, "bias_k") && fill_shared(m, "bias_v")));
        if (ok && lg__module_attach(m, "out_proj", out, "lg_nn_multihead_attention"))
                return true;
        lg__object_destroy(out);
        return false;
}

lg_module *lg_nn_multihead_attention_with(lg_ctx *c, int64_t dim, int64_t heads,
                                          const lg_multihead_attention_options *options)
{
        static const char op[] = "lg_nn_multihead_attention";
        sizes s = {.dim = dim, .heads = heads};
        if (!lg__take(c, op, options, &s.o, sizeof s.o))
                return NULL;
        s.kv_heads = lg__whole_option(s.o.kv_heads, heads);
        s.kdim = lg__whole_option(s.o.kdim, dim);
        s.vdim = lg__whole_option(s.o.vdim, dim);
        s.packed = s.kv_heads == heads && s.kdim == dim && s.vdim == dim;
        if (dim < 1 || heads < 1 || dim % heads)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: dim %lld is not a positive multiple of %lld heads", op,
                                (long long)dim, (long long)heads);
        if (dim > LG_MAX / 4) /* the sizes of the parameters must be numbers */
                return lg__fail(c, LG_ERR_SHAPE, "%s: dim %lld is too large", op, (long long)dim);
        if (s.kv_heads < 1 || heads % s.kv_heads)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld heads do not go into %lld kv_heads", op, (long long)heads,
                                (long long)s.kv_heads);
        if (s.kdim < 1 || s.vdim < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: kdim is %lld and vdim %lld; both must be 1 or more", op,
                                (long long)s.kdim, (long long)s.vdim);
        if (!(s.o.dropout >= 0 && s.o.dropout <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: dropout is %g, not in [0, 1]", op, s.o.dropout);
        return lg__module_dtype(c, op, s.o.dtype)
                       ? lg__module_build(c, "MultiheadAttention", forward, &s, sizeof s, fill, &s)
                       : NULL;
}
