/* attention.c - scaled dot-product attention: o = W v, where W = D o P, P = softmax(S) by rows, S = cap(scale q k^T) +
 * mask, and D is the dropout's mask. Rows of P that see no key are 0.
 *
 * With g for o: dv = W^T g; dP = D o (g v^T); dS = P o (dP - the row sums of dP o P), which is the mask's gradient; dR
 * = dS cap'(R) scale with cap(x) = c tanh(x / c); dq = dR k, dk = dR^T q. The row sums are those of g o o.
 *
 * The kernel does not store P; the derivative recomputes it from two numbers for each row. The second order is that of
 * the formulas above, written in ops.
 */
#include <float.h>
#include <math.h>
#include "core/tape.h"
#include "dropout.h"

#define ATTENTION_FIELDS(FIELD)                                                                                        \
        FIELD(f64, scale, 1)                                                                                           \
        FIELD(f64, softcap, 0)                                                                                         \
        FIELD(i64, offset, 0)                                                                                          \
        FIELD(i64, left, -1) FIELD(i64, right, -1) FIELD(f64, p, 0) FIELD(u64, seed, 0) FIELD(u64, counter, 0)
LG__ATTRIBUTES(attention, ATTENTION_FIELDS)

enum { Q, K, V, MASK, LENGTHS, INPUTS };

/* ---- the op attention: q (B, heads, T, D), k (B, kv_heads, S, D), v (B, kv_heads, S, E) ---- */

static lg_dtype wide_dtype(const lg_tensor *q)
{
        return q->at.dtype == LG_F64 ? LG_F64 : LG_F32;
}

static lg_tensor *places(const lg_tensor *x, int64_t first, int64_t end)
{
        return lg_arange(x->ctx, (double)first, (double)end, 1, .dtype = LG_I64, .device = x->storage->device->id);
}

static lg_tensor *both(lg_tensor *a, lg_tensor *b)
{
        return a && b ? lg_logical_and(a, b) : a ? a : b;
}

/* Returns the bool tensor, which broadcasts to (B, heads, T, S), of the keys that each query sees; NULL if all are. */
static lg_tensor *visible(const attention_attributes *a, lg_tensor *const *in)
{
        const int64_t queries = in[Q]->at.shape.size[2], keys = in[K]->at.shape.size[2];
        lg_tensor *seen = NULL, *mask = in[MASK], *key = places(in[Q], 0, keys);
        lg_tensor *ahead = lg_sub(key, lg_unsqueeze(places(in[Q], a->offset, a->offset + queries), 1));
        if (a->right >= 0)
                seen = lg_le_scalar(ahead, (double)a->right);
        if (a->left >= 0)
                seen = both(seen, lg_ge_scalar(ahead, -(double)a->left));
        if (in[LENGTHS])
                seen = both(seen, lg_lt(key, lg_reshape(in[LENGTHS], LG_SHAPE(-1, 1, 1, 1))));
        if (mask)
                seen = both(seen, mask->at.dtype == LG_BOOL ? mask : lg_ne_scalar(lg_detach(mask), -LG_INFINITY));
        return seen;
}

/* Returns k or v, which may be NULL, with a head for each of q's. */
static lg_tensor *heads_of(lg_tensor *x, int64_t heads)
{
        if (!x)
                return NULL;
        const int64_t *size = x->at.shape.size, each = size[1] ? heads / size[1] : 1;
        return each == 1 ? x
                         : lg_reshape(lg_expand(lg_unsqueeze(x, 2), LG_SHAPE(size[0], size[1], each, size[2], size[3])),
                                      LG_SHAPE(size[0], heads, size[2], size[3]));
}

/* Returns the sums of a gradient over the heads of q that share a head of k or v. */
static lg_tensor *shared_heads(lg_tensor *g, const lg_tensor *x)
{
        const int64_t *size = x->at.shape.size;
        return !g || g->at.shape.size[1] == size[1]
                       ? g
                       : lg_sum(lg_reshape(g, LG_SHAPE(size[0], size[1], -1, size[2], size[3])), .dims = LG_DIMS(2));
}

/* The parts of a composed attention, in f32 or f64. */
typedef struct parts {
        lg_tensor *q, *k, *v; /* with a head of k and v for each of q's */
        lg_tensor *capped;    /* scores before the mask */
        lg_tensor *weights;   /* P */
        lg_tensor *drop;      /* D; NULL: 1 */
} parts;

static lg_tensor *drop_mask(const attention_attributes *a, const lg_tensor *like)
{
        const int64_t *size = like->at.shape.size, rows = size[0] * size[1] * size[2], padded = (size[3] + 3) / 4 * 4;
        lg_tensor *ones = lg_ones(like->ctx, LG_SHAPE(rows, padded), .dtype = like->at.dtype,
                                  .device = like->storage->device->id);
        return lg_reshape(lg_slice(lg__dropout(ones, a->p, a->seed, a->counter), 1, 0, size[3]), like->at.shape);
}

static bool compose_parts(const attention_attributes *a, lg_tensor *const *in, parts *ret)
{
        const lg_dtype dtype = wide_dtype(in[Q]);
        const int64_t heads = in[Q]->at.shape.size[1];
        lg_tensor *seen = visible(a, in), *mask = in[MASK] && in[MASK]->at.dtype != LG_BOOL ? in[MASK] : NULL;
        ret->q = lg_cast(in[Q], dtype);
        ret->k = heads_of(lg_cast(in[K], dtype), heads);
        ret->v = heads_of(lg_cast(in[V], dtype), heads);
        lg_tensor *s = lg_mul_scalar(lg_matmul(ret->q, lg_transpose(ret->k, 2, 3)), a->scale);
        if (a->softcap > 0)
                s = lg_mul_scalar(lg_tanh(lg_mul_scalar(s, 1 / a->softcap)), a->softcap);
        ret->capped = s;
        if (mask)
                s = lg_add(s, lg_cast(mask, dtype));
        if (seen) /* a finite number, so that rows without keys and their derivatives are finite */
                s = lg_where(seen, s, lg__constant(s, -FLT_MAX / 4));
        s = lg_softmax(s, 3);
        ret->weights = seen ? lg_where(seen, s, lg__constant(s, 0)) : s;
        ret->drop = a->p > 0 && s ? drop_mask(a, s) : NULL;
        return ret->weights && (a->p == 0 || ret->drop);
}

static lg_tensor *dropped(const parts *p, lg_tensor *w)
{
        return p->drop ? lg_mul(w, p->drop) : w;
}

static bool vjp(lg__vjp *v)
{
        const attention_attributes *a = v->attributes;
        parts p;
        if (!compose_parts(a, v->in, &p))
                return false;
        lg_tensor *g = lg_cast(v->grad[0], p.weights->at.dtype);
        if (v->needs[V])
                v->grad_in[V] = shared_heads(lg_matmul(lg_transpose(dropped(&p, p.weights), 2, 3), g), v->in[V]);
        lg_tensor *dp = lg_mul(dropped(&p, lg_matmul(g, lg_transpose(p.v, 2, 3))), p.weights);
        lg_tensor *ds = lg_sub(dp, lg_mul(p.weights, lg_sum(dp, .dims = LG_DIMS(3), .keep_dim = true)));
        if (v->needs[MASK])
                v->grad_in[MASK] = ds;
        if (a->softcap > 0)
                ds = lg_mul(ds, lg_rsub_scalar(lg_square(lg_mul_scalar(p.capped, 1 / a->softcap)), 1));
        ds = lg_mul_scalar(ds, a->scale);
        if (v->needs[Q])
                v->grad_in[Q] = lg_matmul(ds, p.k);
        if (v->needs[K])
                v->grad_in[K] = shared_heads(lg_matmul(lg_transpose(ds, 2, 3), p.q), v->in[K]);
        return true;
}

/* Sets strides in which the positions of a batch come first and their heads follow, if x has that order, so that the
 * heads of a result can be joined without a copy. */
static void order_like(lg__layout *at, const lg__layout *x)
{
        const int64_t *size = at->shape.size;
        if (x->strides[1] >= x->strides[2] || size[1] < 2)
                return;
        at->strides[3] = 1;
        at->strides[1] = size[3];
        at->strides[2] = size[1] * size[3];
        at->strides[0] = size[2] * at->strides[2];
}

static lg_head_strides strides_of(const lg_tensor *x)
{
        return (lg_head_strides){x->at.strides[0], x->at.strides[1], x->at.strides[2]};
}

static lg_attention_args arguments(const attention_attributes *a, lg_tensor *const *in, const lg_tensor *o,
                                   const lg_tensor *stats)
{
        const lg_tensor *q = in[Q], *k = in[K], *v = in[V], *mask = in[MASK];
        lg_attention_args x = {.dtype = q->at.dtype,
                               .batch = q->at.shape.size[0],
                               .heads = q->at.shape.size[1],
                               .kv_heads = k->at.shape.size[1],
                               .queries = q->at.shape.size[2],
                               .keys = k->at.shape.size[2],
                               .dim = q->at.shape.size[3],
                               .v_dim = v->at.shape.size[3],
                               .scale = a->scale,
                               .softcap = a->softcap,
                               .p = a->p,
                               .offset = a->offset,
                               .left = a->left,
                               .right = a->right,
                               .seed = a->seed,
                               .counter = a->counter,
                               .moved = a->p > 0 ? lg__tape_moved(q->ctx) : NULL,
                               .q = lg__data(q),
                               .k = lg__data(k),
                               .v = lg__data(v),
                               .q_at = strides_of(q),
                               .k_at = strides_of(k),
                               .v_at = strides_of(v),
                               .o_at = strides_of(o),
                               .o = lg__data(o),
                               .stats = lg__data(stats),
                               .origin = LG__ORIGIN_ATTENTION};
        if (mask) {
                x.mask = lg__data(mask);
                x.mask_dtype = mask->at.dtype;
                for (int i = 0; i < 4; i++)
                        x.mask_strides[i] = mask->at.shape.size[i] == 1 ? 0 : mask->at.strides[i];
        }
        if (in[LENGTHS])
                x.kv_lengths = lg__data(in[LENGTHS]);
        return x;
}

static bool infer(lg__call *call)
{
        const lg_tensor *q = call->in[Q];
        const int64_t *size = q->at.shape.size;
        call->out_at[0].shape.size[3] = call->in[V]->at.shape.size[3];
        order_like(&call->out_at[0], &q->at);
        call->out_at[1] = (lg__layout){.dtype = wide_dtype(q), .shape = LG_SHAPE(size[0], size[1], size[2], 2)};
        return true;
}

/* Returns the floating-point operations of a product for each query and key, of q and k so often and of v so often. */
static double work_of(const lg_attention_args *x, int keys, int values)
{
        return 2.0 * (double)x->batch * (double)x->heads * (double)x->queries * (double)x->keys *
               (keys * (double)x->dim + values * (double)x->v_dim);
}

static bool forward(lg__call *call)
{
        const lg_attention_args x = arguments(call->attributes, call->in, call->out[0], call->out[1]);
        lg__device_work(call->device, work_of(&x, 1, 1));
        return lg__shape_numel(call->out[1]->at.shape) == 0 || LG__RUN(call->device, "attention", attention, &x);
}

/* Returns a new tensor of x's dtype and shape, with the order of x's heads and positions. */
static lg_tensor *gradient_like(const lg_tensor *x)
{
        lg__layout at = {.dtype = x->at.dtype, .shape = x->at.shape};
        order_like(&at, &x->at);
        return lg__tensor_on(x->storage->device, &at);
}

/* Returns a layout of q, k and v together, with a last dimension of 3, if they are the three parts of one tensor, as
 * lg_split() makes them; otherwise one without elements. */
static lg__layout joined_layout(lg_tensor *const *in)
{
        lg__layout at = in[Q]->at;
        const int64_t step = in[K]->at.offset - at.offset;
        bool joined = step > 0 && in[V]->at.offset - in[K]->at.offset == step;
        for (int i = K; i <= V; i++)
                joined = joined && in[i]->storage == in[Q]->storage && lg__layout_same(&in[i]->at, &at);
        at.offset = 0;
        at.strides[at.shape.ndim] = step;
        at.shape.size[at.shape.ndim++] = 3;
        if (!joined || !lg__layout_is_dense(&at))
                at.shape = LG_SHAPE(0);
        return at;
}

/* Makes the gradients of q, k and v. If these are parts of one tensor, so are the gradients, which the derivative of
 * lg_split() then does not copy. */
static bool make_gradients(lg_tensor *const *in, lg_tensor *ret[3])
{
        const lg__layout at = joined_layout(in);
        lg_tensor *all = lg__layout_numel(&at) ? lg__tensor_on(in[Q]->storage->device, &at) : NULL;
        for (int i = Q; i <= V; i++)
                if (!(ret[i] = all ? lg_select(all, 4, i) : gradient_like(in[i])))
                        return false;
        lg__tensor_release(all);
        return true;
}

/* Returns x with neighbouring elements in its last dimension: x itself, or a recorded copy. */
static lg_tensor *with_rows(lg_tensor *x)
{
        return x && x->at.strides[3] != 1 && x->at.shape.size[3] > 1 ? lg_contiguous(x) : x;
}

static bool fused(lg__vjp *v)
{
        if (v->needs[MASK])
                return vjp(v);
        lg_tensor *g = with_rows(v->grad[0]), *made[3];
        if (!g || !make_gradients(v->in, made))
                return false;
        lg_attention_vjp_args x = {
                .of = arguments(v->attributes, v->in, v->out[0], v->out[1]), .g = lg__data(g), .g_at = strides_of(g)};
        void **const data[] = {&x.dq, &x.dk, &x.dv};
        lg_head_strides *const strides[] = {&x.dq_at, &x.dk_at, &x.dv_at};
        for (int i = Q; i <= V; i++) {
                *data[i] = lg__data(made[i]);
                *strides[i] = strides_of(made[i]);
                if (v->needs[i])
                        v->grad_in[i] = made[i];
        }
        lg__device_work(g->storage->device, work_of(&x.of, 3, 2));
        return LG__RUN(g->storage->device, "attention", attention_vjp, &x);
}

#define ALWAYS .saved_for = LG__BY(Q) | LG__BY(K) | LG__BY(V) | LG__BY(MASK)
/* Adds "ones below (above) a diagonal", a bool mask (queries, keys), to the form as `name`. */
static void add_triangle(lg__form *f, const char *name, const lg__call *call, int64_t diagonal, bool upper)
{
        lg__form_add(f, "%s = Cast(Trilu(Expand({1}, [%lld %lld]), <%lld>, upper=%d), to=bool); ", name,
                     (long long)call->in[Q]->at.shape.size[2], (long long)call->in[K]->at.shape.size[2],
                     (long long)diagonal, upper);
}

/* Joins the limits of the keys that a query sees to one bool mask m; a float mask becomes -infinity where m is false.
 */
static bool form(lg__form *f, const lg__call *call)
{
        const attention_attributes *a = call->attributes;
        const lg_tensor *mask = call->in[MASK];
        const bool square = call->in[Q]->at.shape.size[2] == call->in[K]->at.shape.size[2];
        const bool causal = square && a->right == 0 && a->offset == 0 && a->left < 0 && !mask && !call->in[LENGTHS];
        const char *const parts[] = {a->right >= 0 && !causal ? "r" : NULL, a->left >= 0 ? "l" : NULL,
                                     call->in[LENGTHS] ? "n" : NULL, mask && mask->at.dtype == LG_BOOL ? "mask" : NULL};
        bool limits = false;
        if (parts[0])
                add_triangle(f, "r", call, a->offset + a->right, false);
        if (parts[1])
                add_triangle(f, "l", call, a->offset - a->left, true);
        if (parts[2])
                lg__form_add(f, "n = Less(Range(<0>, Squeeze(Shape(k, start=2, end=3)), <1>), "
                                "Reshape(kv_lengths, [-1 1 1 1])); ");
        for (int i = 0; i < 4; i++)
                if (parts[i]) {
                        lg__form_add(f, limits ? "m = And(m, %s); " : "m = Identity(%s); ", parts[i]);
                        limits = true;
                }
        if (limits && mask && mask->at.dtype != LG_BOOL)
                lg__form_add(f, "m = Where(m, mask, CastLike({-inf}, mask)); ");
        lg__form_add(f, "o = Attention(q, k, v, %s, is_causal=%d", limits ? "m" : mask ? "mask" : "", causal);
        lg__form_expand(f, call, ", scale=scale, softcap=softcap)");
        return a->p == 0;
}

LG__DEFINE(attention,
           LG__OPERANDS({"q", LG__FLOAT, ALWAYS}, {"k", LG__FLOAT, ALWAYS}, {"v", LG__FLOAT, ALWAYS},
                        {"mask", LG__ANY, .optional = true, ALWAYS},
                        {"kv_lengths", LG__INDEX, LG__ROW_MAJOR, .optional = true, ALWAYS}),
           LG__RESULTS({"o", ALWAYS}, {"stats", ALWAYS}), LG__HAS(attention), .infer = infer, .forward = forward,
           .vjp = vjp, .fused = fused, .form = form)

/* ---- the public function ---- */

/* Returns x as (B, heads, positions, elements), where B is the product of the leading dimensions `lead`. */
static lg_tensor *as_heads(lg_tensor *x, lg_shape lead)
{
        const lg_shape s = x->at.shape;
        const int64_t heads = s.ndim > 2 ? s.size[s.ndim - 3] : 1, rows = s.size[s.ndim - 2], each = s.size[s.ndim - 1];
        lg_shape full = lead;
        if (lead.ndim == 1 && s.ndim == 4 && s.size[0] == lead.size[0])
                return with_rows(x);
        full.ndim += 3;
        full.size[lead.ndim] = heads;
        full.size[lead.ndim + 1] = rows;
        full.size[lead.ndim + 2] = each;
        return with_rows(lg_reshape(lg_expand(x, full), LG_SHAPE(lg__shape_numel(lead), heads, rows, each)));
}

static lg_shape leading(const lg_tensor *x)
{
        lg_shape s = x->at.shape;
        s.ndim = s.ndim > 3 ? s.ndim - 3 : 0;
        return s;
}

/* Checks the shapes of q, k and v, and sets *ret to their leading dimensions, broadcast. */
static bool check_operands(const lg__call *call, lg_shape *ret)
{
        lg_ctx *c = call->ctx;
        const lg_tensor *q = call->in[Q], *k = call->in[K], *v = call->in[V];
        const lg_shape qs = q->at.shape, ks = k->at.shape, vs = v->at.shape;
        for (int i = Q; i <= V; i++)
                if (call->in[i]->at.dtype != q->at.dtype)
                        return lg__fail(c, LG_ERR_DTYPE, "attention: q is %s but %s is %s; their dtypes must be equal",
                                        lg__tensor_text(q).s, lg__operand_name(call->op, i),
                                        lg__tensor_text(call->in[i]).s);
                else if (call->in[i]->at.shape.ndim < 2)
                        return lg__fail(c, LG_ERR_SHAPE, "attention: %s is %s; it is (..., heads, positions, elements)",
                                        lg__operand_name(call->op, i), lg__tensor_text(call->in[i]).s);
        const int64_t heads = qs.ndim > 2 ? qs.size[qs.ndim - 3] : 1, k_heads = ks.ndim > 2 ? ks.size[ks.ndim - 3] : 1,
                      v_heads = vs.ndim > 2 ? vs.size[vs.ndim - 3] : 1;
        if (qs.size[qs.ndim - 1] != ks.size[ks.ndim - 1])
                return lg__fail(c, LG_ERR_SHAPE, "attention: q is %s but k is %s; their last dimensions must be equal",
                                lg__tensor_text(q).s, lg__tensor_text(k).s);
        if (ks.size[ks.ndim - 2] != vs.size[vs.ndim - 2] || k_heads != v_heads)
                return lg__fail(c, LG_ERR_SHAPE,
                                "attention: k is %s but v is %s; they must have the same heads and positions",
                                lg__tensor_text(k).s, lg__tensor_text(v).s);
        if (k_heads ? heads % k_heads : heads)
                return lg__fail(c, LG_ERR_SHAPE,
                                "attention: q is %s and has %lld heads, which are not a multiple of k's %lld, %s",
                                lg__tensor_text(q).s, (long long)heads, (long long)k_heads, lg__tensor_text(k).s);
        return lg__broadcast(c, "attention", leading(q), leading(k), ret) &&
               lg__broadcast(c, "attention", *ret, leading(v), ret);
}

/* Returns the mask as (B, heads, T, S) with sizes of 1 where it is broadcast, of dtype bool or that of the scores. */
static lg_tensor *as_mask(const lg__call *call, lg_shape lead)
{
        lg_tensor *mask = call->in[MASK];
        if (!mask)
                return NULL;
        const lg_shape qs = call->in[Q]->at.shape, ks = call->in[K]->at.shape;
        lg_shape full = lead;
        full.size[full.ndim++] = qs.ndim > 2 ? qs.size[qs.ndim - 3] : 1;
        full.size[full.ndim++] = qs.size[qs.ndim - 2];
        full.size[full.ndim++] = ks.size[ks.ndim - 2];
        const lg_dtype dtype = mask->at.dtype;
        if (dtype != LG_BOOL && !lg__dtype_float(dtype))
                return lg__fail(call->ctx, LG_ERR_DTYPE,
                                "attention: mask is %s; it is bool, true where a query sees a key, or a float to add",
                                lg__tensor_text(mask).s);
        bool fits = mask->at.shape.ndim <= full.ndim;
        for (int i = 1; fits && i <= mask->at.shape.ndim; i++) {
                const int64_t size = mask->at.shape.size[mask->at.shape.ndim - i];
                fits = size == 1 || size == full.size[full.ndim - i];
        }
        if (!fits)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "attention: mask is %s; it must broadcast to (..., heads, queries, keys), %s",
                                lg__tensor_text(mask).s, lg__shape_text(full).s);
        if (dtype != LG_BOOL)
                mask = lg_cast(mask, wide_dtype(call->in[Q]));
        if (!mask || mask->at.shape.ndim > 4 || lead.ndim > 1)
                return lg_reshape(lg_expand(mask, full), LG_SHAPE(lg__shape_numel(lead), full.size[full.ndim - 3],
                                                                  full.size[full.ndim - 2], full.size[full.ndim - 1]));
        lg_shape s = LG_SHAPE(1, 1, 1, 1);
        for (int i = 0; i < mask->at.shape.ndim; i++)
                s.size[4 - mask->at.shape.ndim + i] = mask->at.shape.size[i];
        return lg_reshape(mask, s);
}

static bool check_options(lg_ctx *c, const lg_attention_options *o, attention_attributes *ret)
{
        static const int64_t most = (int64_t)1 << 53; /* positions that f64 counts exactly */
        if (!(o->dropout >= 0 && o->dropout <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "attention: dropout is %g, not in [0, 1]", o->dropout);
        if (!(o->softcap >= 0 && o->softcap < LG_INFINITY))
                return lg__fail(c, LG_ERR_ARGUMENT, "attention: softcap is %g; it must be 0 or more and finite",
                                o->softcap);
        if (!(ret->scale > -LG_INFINITY && ret->scale < LG_INFINITY))
                return lg__fail(c, LG_ERR_ARGUMENT, "attention: scale is %g, which is not finite", ret->scale);
        if (ret->offset < -most || ret->offset > most)
                return lg__fail(c, LG_ERR_ARGUMENT, "attention: offset is %lld; it must be from -2^53 to 2^53",
                                (long long)ret->offset);
        const int64_t windows[] = {o->window_left, o->window_right};
        int64_t *const to[] = {&ret->left, &ret->right};
        for (int i = 0; i < 2; i++) {
                *to[i] = lg__whole_option(windows[i], -1);
                if (windows[i] && *to[i] < 0)
                        return lg__fail(c, LG_ERR_ARGUMENT, "attention: window_%s is %lld; it must be 0 or more",
                                        i ? "right" : "left", (long long)windows[i]);
                *to[i] = *to[i] > most ? most : *to[i];
        }
        if (o->causal)
                ret->right = 0;
        return true;
}

/* Uses one block of the random generator for every four keys of a query; advances it only if the call succeeds. */
static lg_tensor *compose(const lg__call *call)
{
        lg_attention_options o;
        lg_ctx *c = call->ctx;
        lg_random_state *random = &c->random;
        lg_shape lead;
        if (!lg__take(c, "attention", call->attributes, &o, sizeof o) || !check_operands(call, &lead))
                return NULL;
        lg_tensor *in[INPUTS] = {as_heads(call->in[Q], lead), as_heads(call->in[K], lead), as_heads(call->in[V], lead),
                                 as_mask(call, lead), call->in[LENGTHS]};
        if (!in[Q] || !in[K] || !in[V] || (call->in[MASK] && !in[MASK]))
                return NULL;
        const lg_shape s = in[Q]->at.shape;
        const int64_t dim = s.size[3], keys = in[K]->at.shape.size[2];
        attention_attributes a = {.scale = lg__option(o.scale, dim ? 1 / sqrt((double)dim) : 1),
                                  .softcap = o.softcap,
                                  .offset = lg__whole_option(o.offset, 0),
                                  .p = o.dropout,
                                  .seed = random->seed + c->rank_seed,
                                  .counter = random->counter};
        if (!check_options(c, &o, &a))
                return NULL;
        if (in[LENGTHS] && !lg__shape_equal(in[LENGTHS]->at.shape, LG_SHAPE(s.size[0])))
                return lg__fail(c, LG_ERR_SHAPE,
                                "attention: kv_lengths is %s; it has a length for each of %lld batches",
                                lg__tensor_text(in[LENGTHS]).s, (long long)s.size[0]);
        lg_tensor *y = lg__apply(LG__OP(attention), in, INPUTS, &a, NULL);
        if (y && a.p > 0)
                random->counter += (uint64_t)(s.size[0] * s.size[1] * s.size[2]) * (uint64_t)((keys + 3) / 4);
        lg_shape full = lead;
        if (call->in[Q]->at.shape.ndim > 2 || lead.ndim)
                full.size[full.ndim++] = s.size[1];
        full.size[full.ndim++] = s.size[2];
        full.size[full.ndim++] = in[V]->at.shape.size[3];
        return lg_reshape(y, full);
}

static const lg__op composite = {
        .name = "attention",
        .autocast = LG__LOW,
        .compose = compose,
        LG__OPERANDS({"q", LG__FLOAT}, {"k", LG__FLOAT}, {"v", LG__FLOAT}, {"mask", LG__ANY, .optional = true},
                     {"kv_lengths", LG__INDEX, .optional = true}),
};

lg_tensor *lg_attention_with(lg_tensor *q, lg_tensor *k, lg_tensor *v, const lg_attention_options *options)
{
        lg_attention_options o;
        lg__take_without(options, &o, sizeof o);
        return lg__apply(&composite, (lg_tensor *[]){q, k, v, o.mask, o.kv_lengths}, INPUTS, options, NULL);
}
