/* rotary.c - rotary position embedding: rotates pairs of the last dimension by angles that depend on the position.
 *
 * y = (a cos - b sin, b cos + a sin) for each pair (a, b) of the first dims elements, and y = x for the others. dx is g
 * rotated back. With g = (p, q): dcos = p a + q b, dsin = q a - p b.
 */
#include <string.h>
#include "graph/op.h"

#define ROTATE_FIELDS(FIELD) FIELD(i64, dims, 0) FIELD(bool, interleaved, 0) FIELD(bool, back, 0)
LG__ATTRIBUTES(rotate, ROTATE_FIELDS)

static bool forward_rotate(lg__call *call)
{
        const rotate_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0], *cos = call->in[1];
        lg_rotary_args k = {.dtype = x->at.dtype,
                            .ndim = x->at.shape.ndim - 1,
                            .width = x->at.shape.size[x->at.shape.ndim - 1],
                            .dims = a->dims,
                            .interleaved = a->interleaved,
                            .back = a->back,
                            .x = lg__data(x),
                            .cos = lg__data(cos),
                            .sin = lg__data(call->in[2]),
                            .y = lg__data(call->out[0])};
        lg_shape rows = x->at.shape;
        rows.size[k.ndim] = a->dims / 2;
        memcpy(k.shape, rows.size, sizeof k.shape);
        memcpy(k.x_strides, x->at.strides, sizeof k.x_strides);
        lg__broadcast_strides(&cos->at, rows, k.table_strides);
        return lg__shape_numel(x->at.shape) == 0 || LG__RUN(call->device, "rotary", rotary, &k);
}

/* Applies `rotate` to x, of any layout: the kernel needs contiguous rows. */
static lg_tensor *rotated(lg_tensor *x, lg_tensor *cos, lg_tensor *sin, const rotate_attributes *a)
{
        const bool packed = x && x->at.strides[x->at.shape.ndim - 1] == 1;
        return LG__APPLY(rotate, a, packed ? x : lg_contiguous(x), cos, sin);
}

/* Returns the first (second) members of all pairs. */
static lg_tensor *members(lg_tensor *t, const rotate_attributes *a, bool second)
{
        if (a->interleaved)
                return lg_slice(t, -1, second, a->dims, .step = 2);
        return second ? lg_slice(t, -1, a->dims / 2, a->dims) : lg_slice(t, -1, 0, a->dims / 2);
}

static bool vjp_rotate(lg__vjp *v)
{
        rotate_attributes a = *(const rotate_attributes *)v->attributes;
        if (v->needs[1] || v->needs[2]) {
                lg_tensor *g = lg__widened(v->grad[0]), *x = lg__widened(v->in[0]);
                lg_tensor *p = members(g, &a, false), *q = members(g, &a, true);
                lg_tensor *first = members(x, &a, false), *second = members(x, &a, true);
                lg_tensor *turn = v->needs[2] ? lg_sub(lg_mul(q, first), lg_mul(p, second)) : NULL;
                v->grad_in[1] = v->needs[1] ? lg_add(lg_mul(p, first), lg_mul(q, second)) : NULL;
                v->grad_in[2] = a.back && turn ? lg_neg(turn) : turn;
        }
        a.back = !a.back;
        if (v->needs[0])
                v->grad_in[0] = rotated(v->grad[0], v->in[1], v->in[2], &a);
        for (int i = 0; i < 3; i++)
                if (v->needs[i] && !v->grad_in[i])
                        return false;
        return true;
}

/* Computes in the dtype of cos and sin, and casts the result. */
static bool form(lg__form *f, const lg__call *call)
{
        const rotate_attributes *a = call->attributes;
        const lg_shape s = call->in[0]->at.shape;
        const long long n = a->dims, half = n / 2, width = s.size[s.ndim - 1];
        const char *const dtype = lg_dtype_name(call->in[1]->at.dtype);
        lg__form_add(f, "w = Cast(x, to=%s); ", dtype);
        if (a->interleaved)
                lg__form_add(f, "a = Slice(w, [0], [%lld], [-1], [2]); b = Slice(w, [1], [%lld], [-1], [2]); ", n, n);
        else
                lg__form_add(f, "a = Slice(w, [0], [%lld], [-1]); b = Slice(w, [%lld], [%lld], [-1]); ", half, half, n);
        lg__form_add(f, "p = %s(Mul(a, cos), Mul(b, sin)); q = %s(Mul(b, cos), Mul(a, sin)); ", a->back ? "Add" : "Sub",
                     a->back ? "Sub" : "Add");
        if (a->interleaved) {
                lg__form_add(f, "t = Reshape(Concat(Unsqueeze(p, [-1]), Unsqueeze(q, [-1]), axis=-1), [");
                for (int i = 0; i < s.ndim - 1; i++)
                        lg__form_add(f, "%lld ", (long long)s.size[i]);
                lg__form_add(f, "%lld]); ", n);
        } else {
                lg__form_add(f, "t = Concat(p, q, axis=-1); ");
        }
        if (n < width)
                lg__form_add(f, "t = Concat(t, Slice(w, [%lld], [%lld], [-1]), axis=-1); ", n, width);
        lg__form_add(f, "y = Cast(t, to=%s)", lg_dtype_name(call->in[0]->at.dtype));
        return lg__shape_numel(s) > 0;
}

LG__DEFINE(rotate,
           LG__OPERANDS({"x", LG__FLOAT, .saved_for = LG__BY(1) | LG__BY(2)},
                        {"cos", LG__WEIGHT, LG__ROW_MAJOR, .saved_for = LG__BY(0)},
                        {"sin", LG__WEIGHT, LG__ROW_MAJOR, .saved_for = LG__BY(0)}),
           LG__RESULTS({"y"}), LG__HAS(rotate), .forward = forward_rotate, .vjp = vjp_rotate, .form = form)

/* Returns t, of three dimensions, with dimensions of size 1 after the first, so that it has `ndim`; else t itself. */
static lg_tensor *for_heads(lg_tensor *t, int ndim)
{
        while (t && t->at.shape.ndim >= 3 && t->at.shape.ndim < ndim)
                t = lg_unsqueeze(t, 1);
        return t;
}

/* Returns whether cos or sin, as for_heads() returns it, has an angle for each pair, and broadcasts to x's shape. */
static bool fits(const lg_tensor *x, const lg_tensor *t, int64_t dims)
{
        const lg_shape *s = &t->at.shape, *of = &x->at.shape;
        bool ok = s->ndim >= 1 && s->ndim <= of->ndim && s->size[s->ndim - 1] == dims / 2;
        for (int i = 2; i <= s->ndim && ok; i++)
                ok = s->size[s->ndim - i] == 1 || s->size[s->ndim - i] == of->size[of->ndim - i];
        return ok;
}

static lg_tensor *compose_rotary(const lg__call *call)
{
        lg_rotary_options o;
        lg_ctx *c = call->ctx;
        lg_tensor *x = call->in[0], *cos = call->in[1], *sin = call->in[2];
        const int ndim = x->at.shape.ndim;
        if (!lg__take(c, "rotary", call->attributes, &o, sizeof o))
                return NULL;
        if (ndim < 2)
                return lg__fail(c, LG_ERR_SHAPE, "rotary: x is %s; it is (..., T, D)", lg__tensor_text(x).s);
        const int64_t d = x->at.shape.size[ndim - 1];
        const rotate_attributes a = {.dims = o.dims ? o.dims : d, .interleaved = o.interleaved};
        if (o.dims && (o.dims < 0 || o.dims > d))
                return lg__fail(c, LG_ERR_ARGUMENT, "rotary: dims is %lld, but x is %s", (long long)o.dims,
                                lg__tensor_text(x).s);
        if (a.dims % 2 != 0)
                return lg__fail(c, LG_ERR_SHAPE, "rotary: %lld elements of x, %s, are to rotate in pairs",
                                (long long)a.dims, lg__tensor_text(x).s);
        lg_tensor *c_of = for_heads(cos, ndim), *s_of = for_heads(sin, ndim);
        if (!c_of || !s_of)
                return NULL;
        if (!lg__shape_equal(cos->at.shape, sin->at.shape) || !fits(x, c_of, a.dims))
                return lg__fail(c, LG_ERR_SHAPE,
                                "rotary: x is %s, cos is %s and sin is %s; for %lld pairs, both are (T, %lld), or "
                                "broadcast to x's dimensions but the last",
                                lg__tensor_text(x).s, lg__tensor_text(cos).s, lg__tensor_text(sin).s,
                                (long long)(a.dims / 2), (long long)(a.dims / 2));
        return rotated(x, c_of, s_of, &a);
}

LG__COMPOSITE(rotary, {"x", LG__FLOAT}, {"cos", LG__WEIGHT}, {"sin", LG__WEIGHT})

lg_tensor *lg_rotary_with(lg_tensor *x, lg_tensor *cos, lg_tensor *sin, const lg_rotary_options *options)
{
        return LG__APPLY(rotary, options, x, cos, sin);
}
