/* pad.c - adds elements around a tensor, or removes elements at its edges. With a constant: dx = g, padded by the
 * negative amounts. Other modes select elements of x along each dimension. */
#include "graph/op.h"

/* Numbers of elements added before and after each dimension, from the last one backwards; negative: removed. */
#define PAD_FIELDS(FIELD) FIELD(f64, value, 0) FIELD(shape, before, 0) FIELD(shape, after, 0)
LG__ATTRIBUTES(pad, PAD_FIELDS)

/* Returns the entry of pads for dimension i of ndim. */
static int64_t padding(const lg_shape *pads, int i, int ndim)
{
        return ndim - 1 - i < pads->ndim ? pads->size[ndim - 1 - i] : 0;
}

static bool infer(lg__call *call)
{
        const pad_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_shape s = x->at.shape;
        if (a->before.ndim != a->after.ndim || a->before.ndim < 0 || a->before.ndim > s.ndim)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "pad: %lld pads for x, %s; they are pairs, one a dimension from the last backwards",
                                (long long)a->before.ndim + a->after.ndim, lg__tensor_text(x).s);
        for (int i = 0; i < s.ndim; i++) {
                const int64_t before = padding(&a->before, i, s.ndim), after = padding(&a->after, i, s.ndim);
                int64_t size;
                if (before == INT64_MIN || after == INT64_MIN)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT, "pad: pad %d is out of range",
                                        2 * (s.ndim - 1 - i) + (before != INT64_MIN));
                if (__builtin_add_overflow(s.size[i], before, &size) || __builtin_add_overflow(size, after, &size) ||
                    size < 0)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "pad: x is %s; dimension %d cannot be padded by %lld and %lld",
                                        lg__tensor_text(x).s, i, (long long)before, (long long)after);
                s.size[i] = size;
        }
        call->out_at[0].shape = s;
        return lg__shape_valid(call->ctx, "pad", s);
}

/* Narrows x and y to the elements of x that appear in y. Returns false if there are none. */
static bool common_part(const pad_attributes *a, lg_tensor *y, lg_tensor *x)
{
        const int ndim = x->at.shape.ndim;
        for (int i = 0; i < ndim; i++) {
                const int64_t before = padding(&a->before, i, ndim), after = padding(&a->after, i, ndim);
                int64_t cut = before < 0 ? -before : 0, count = x->at.shape.size[i] - cut + (after < 0 ? after : 0);
                if (count <= 0)
                        return false;
                x->at.offset += cut * x->at.strides[i];
                y->at.offset += (before + cut) * y->at.strides[i];
                x->at.shape.size[i] = y->at.shape.size[i] = count;
        }
        return true;
}

static bool forward(lg__call *call)
{
        const pad_attributes *a = call->attributes;
        lg_tensor x = *call->in[0], y = *call->out[0];
        bool any = common_part(a, &y, &x);
        if (!any || !lg__shape_equal(y.at.shape, call->out[0]->at.shape))
                if (!lg__fill_values(call->out[0], a->value, "pad"))
                        return false;
        return !any || lg__copy_values(&y, &x, "pad");
}

static bool vjp(lg__vjp *v)
{
        pad_attributes back = *(const pad_attributes *)v->attributes;
        back.value = 0;
        for (int i = 0; i < back.before.ndim; i++) {
                back.before.size[i] = -back.before.size[i];
                back.after.size[i] = -back.after.size[i];
        }
        return (v->grad_in[0] = LG__APPLY(pad, &back, v->grad[0])) != NULL;
}

static bool form(lg__form *f, const lg__call *call)
{
        const pad_attributes *a = call->attributes;
        const int ndim = call->in[0]->at.shape.ndim;
        int64_t pads[2 * LG_MAX_DIMS];
        bool grows = false, crops = false;
        for (int i = 0; i < 2 * ndim; i++) {
                pads[i] = padding(i < ndim ? &a->before : &a->after, i % ndim, ndim);
                grows = grows || pads[i] > 0;
                crops = crops || pads[i] < 0;
        }
        lg__form_add(f, grows ? "y = Pad(x, [" : "y = x");
        for (int i = 0; i < 2 * ndim && grows; i++)
                lg__form_add(f, "%lld ", (long long)(pads[i] > 0 ? pads[i] : 0));
        if (grows)
                lg__form_expand(f, call, "], {value})");
        lg__form_add(f, crops ? "; y = Slice(y, [" : "");
        for (int i = 0; i < 2 * ndim && crops; i++) {
                lg__form_add(f, i == ndim ? "], [" : "");
                if (i < ndim)
                        lg__form_add(f, "%lld ", (long long)(pads[i] < 0 ? -pads[i] : 0));
                else
                        lg__form_add(f, "%lld ", (long long)(pads[i] < 0 ? pads[i] : INT64_MAX));
        }
        lg__form_add(f, crops ? "])" : "");
        return true;
}

LG__DEFINE(pad, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(pad), .infer = infer, .forward = forward, .vjp = vjp,
           .form = form)

/* ---- modes that repeat elements of x: reflect, replicate, circular ---- */

typedef struct padding_by {
        lg_pad_mode mode;
        pad_attributes pads;
} padding_by;

/* Returns x padded by elements of x before and after dimension dim; negative amounts remove elements. */
static lg_tensor *pad_along(const lg__call *call, lg_tensor *x, int dim, int64_t before, int64_t after,
                            lg_pad_mode mode)
{
        const int64_t n = x->at.shape.size[dim], most = mode == LG_PAD_REFLECT ? n - 1 : n;
        const int64_t longer = before > after ? before : after;
        if (longer > 0 && (n == 0 || (mode != LG_PAD_REPLICATE && longer > most)))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "pad: x is %s; pads of dimension %d are %lld and %lld, but at most %lld in this mode",
                                lg__tensor_text(call->in[0]).s, dim, (long long)before, (long long)after,
                                (long long)(n == 0 ? 0 : most));
        const int64_t size = n + before + after;
        int64_t *sources = lg__alloc(call->ctx, (size_t)(size + 1) * sizeof *sources);
        if (!sources)
                return NULL;
        for (int64_t i = 0; i < size; i++)
                sources[i] = lg__pad_source(i - before, n, mode);
        lg_tensor *index =
                lg_from(call->ctx, sources, LG_SHAPE(size), .dtype = LG_I64, .device = x->storage->device->id);
        lg__free(call->ctx, sources, (size_t)(size + 1) * sizeof *sources);
        return index ? lg_index_select(x, dim, index) : NULL;
}

static lg_tensor *compose_pad_by(const lg__call *call)
{
        const padding_by *p = call->attributes;
        pad_attributes pads = p->pads;
        lg_tensor *x = call->in[0];
        lg__call sizes = *call; /* infer() checks the pads and the size of the result */
        sizes.attributes = &pads;
        if (!infer(&sizes))
                return NULL;
        for (int i = 0; x && i < x->at.shape.ndim; i++) {
                const int64_t before = padding(&p->pads.before, i, x->at.shape.ndim);
                const int64_t after = padding(&p->pads.after, i, x->at.shape.ndim);
                if (before || after)
                        x = pad_along(call, x, i, before, after, p->mode);
        }
        return x == call->in[0] ? lg_copy(x, x->storage->device->id) : x;
}

static const lg__op pad_by = {.name = "pad", .compose = compose_pad_by, LG__OPERANDS({"x"})};

lg_tensor *lg_pad_with(lg_tensor *x, lg_ints pads, const lg_pad_options *options)
{
        lg_pad_options o;
        if (!lg__take(lg__ctx_of(x), "pad", options, &o, sizeof o) ||
            !lg__list_ok(lg__ctx_of(x), "pad", pads.count, pads.items))
                return NULL;
        const int64_t n = pads.count < INT32_MAX ? pads.count : INT32_MAX;
        pad_attributes a = {.value = lg__option(o.value, 0)};
        a.before.ndim = (int)(n - n / 2);
        a.after.ndim = (int)(n / 2);
        for (int64_t i = 0; i < n && i < 2 * LG_MAX_DIMS; i++)
                (i % 2 ? &a.after : &a.before)->size[i / 2] = pads.items[i];
        if (o.mode < LG_PAD_CONSTANT || o.mode > LG_PAD_CIRCULAR)
                return lg__fail(lg__ctx_of(x), LG_ERR_ARGUMENT, "pad: mode is %d; it is an lg_pad_mode", (int)o.mode);
        return o.mode ? lg__apply1(&pad_by, x, &(padding_by){o.mode, a}) : LG__APPLY(pad, &a, x);
}
