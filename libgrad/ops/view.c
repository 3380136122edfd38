/* view.c - views: the same storage with another shape, strides or offset.
 *
 * view, permute, expand: y[i] = x[p(i)] for a map p of indices; dx[p(i)] += g[i]. slice: y = x[start : stop : step]
 * along one dimension; its derivative slice_grad writes g to that region of a tensor of zeros, and has the derivative
 * slice.
 */
#include <string.h>
#include "graph/op.h"

#define VIEW_FIELDS(FIELD) FIELD(shape, shape, 0)
LG__ATTRIBUTES(view, VIEW_FIELDS)
#define PERMUTE_FIELDS(FIELD) FIELD(dims, order, 0)
LG__ATTRIBUTES(permute, PERMUTE_FIELDS)
#define SLICE_FIELDS(FIELD) FIELD(int, dim, 0) FIELD(i64, start, 0) FIELD(i64, stop, 0) FIELD(i64, step, 1)
LG__ATTRIBUTES(slice, SLICE_FIELDS)
/* Attributes of slice_grad: those of the slice that is differentiated, and the sliced dimension's size before slicing.
 */
#define SLICE_GRAD_FIELDS(FIELD) SLICE_FIELDS(FIELD) FIELD(i64, size, 0)
LG__ATTRIBUTES(slice_grad, SLICE_GRAD_FIELDS)

#define VIEW(of, attributes, ...)                                                                                      \
        LG__DEFINE(of, .flags = LG__ALIASES, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(attributes),             \
                   .infer = infer_##of, .vjp = vjp_##of, __VA_ARGS__)
/* Defines the public function lg_of(x, ...), which compose_of() computes from x and these attributes. */
#define MADE(of, attributes, ...)                                                                                      \
        static const lg__op lg__op_##of = {.name = #of, .compose = compose_##of, LG__OPERANDS({"x"})};                 \
        lg_tensor *lg_##of(lg_tensor *x, __VA_ARGS__)                                                                  \
        {                                                                                                              \
                return LG__APPLY(of, attributes, x);                                                                   \
        }

/* ---- reshape ---- */

/* Replaces a size of -1 in *s. Returns false and sets an error if the number of elements would change. */
static bool complete(const lg_tensor *x, const char *op, lg_shape *s)
{
        const int64_t n = lg__shape_numel(x->at.shape);
        const lg_shape asked = *s;
        int unknown = -1;
        for (int i = 0; i < s->ndim && i < LG_MAX_DIMS; i++)
                if (s->size[i] == -1 && unknown < 0)
                        s->size[unknown = i] = 1;
        if (!lg__shape_valid(x->ctx, op, *s))
                return false;
        const int64_t known = lg__shape_numel(*s);
        if (unknown >= 0 && known != 0 && n % known == 0)
                s->size[unknown] = n / known;
        return (lg__shape_numel(*s) == n && (unknown < 0 || known != 0)) ||
               lg__fail(x->ctx, LG_ERR_SHAPE, "%s: %s with %lld elements cannot take the shape %s", op,
                        lg__tensor_text(x).s, (long long)n, lg__shape_text(asked).s);
}

/* Sets the strides that read x with the shape `to` without a copy; returns false if there are none. Matches groups of
 * x's dimensions with groups of new dimensions that have equally many elements. Within a group, x's dimensions must be
 * contiguous with each other. */
static bool reshape_strides(const lg__layout *x, lg_shape to, int64_t *strides)
{
        lg_shape from = LG_SHAPE_0D;
        int64_t own[LG_MAX_DIMS];
        for (int i = 0; i < x->shape.ndim; i++)
                if (x->shape.size[i] != 1) {
                        own[from.ndim] = x->strides[i];
                        from.size[from.ndim++] = x->shape.size[i];
                }
        int i = 0, j = 0;
        while (i < from.ndim && j < to.ndim) {
                int i1 = i + 1, j1 = j + 1;
                int64_t a = from.size[i], b = to.size[j];
                while (a != b) {
                        if (a < b)
                                a *= from.size[i1++];
                        else
                                b *= to.size[j1++];
                }
                for (int k = i; k + 1 < i1; k++)
                        if (own[k] != own[k + 1] * from.size[k + 1])
                                return false;
                int64_t stride = own[i1 - 1];
                for (int k = j1 - 1; k >= j; k--) {
                        strides[k] = stride;
                        stride *= to.size[k];
                }
                i = i1;
                j = j1;
        }
        for (; j < to.ndim; j++)
                strides[j] = 1;
        return true;
}

/* Sets y to the layout of x viewed with the shape `to`; returns false if that needs a copy. */
static bool reshaped(const lg__layout *x, lg_shape to, lg__layout *y)
{
        const bool contiguous = lg__layout_is_contiguous(x);
        y->dtype = x->dtype;
        y->shape = to;
        if (contiguous)
                lg__layout_contiguous(y);
        y->offset = x->offset;
        return contiguous || reshape_strides(x, to, y->strides);
}

static bool infer_view(lg__call *call)
{
        const view_attributes *a = call->attributes;
        return reshaped(&call->in[0]->at, a->shape, &call->out_at[0]);
}

static bool vjp_view(lg__vjp *v)
{
        return (v->grad_in[0] = lg_reshape(v->grad[0], lg__input_shape(v, 0))) != NULL;
}

static bool form_view(lg__form *f, const lg__call *call)
{
        const lg_shape s = call->out[0]->at.shape;
        lg__form_add(f, "Reshape(x, [");
        for (int i = 0; i < s.ndim; i++)
                lg__form_add(f, "%lld ", (long long)s.size[i]);
        lg__form_add(f, lg__shape_numel(s) ? "])" : "], allowzero=1)");
        return true;
}

VIEW(view, view, .form = form_view)

static lg_tensor *view(lg_tensor *x, lg_shape shape)
{
        return LG__APPLY(view, &(view_attributes){shape}, x);
}

static lg_tensor *reshape(const lg__call *call, lg_shape shape)
{
        lg_tensor *x = call->in[0];
        lg__layout y;
        if (!complete(x, call->op->name, &shape))
                return NULL;
        return view(reshaped(&x->at, shape, &y) ? x : lg_contiguous(x), shape);
}

static lg_tensor *compose_reshape(const lg__call *call)
{
        return reshape(call, *(const lg_shape *)call->attributes);
}
MADE(reshape, &shape, lg_shape shape)

static lg_tensor *compose_flatten(const lg__call *call)
{
        const lg_shape s = call->in[0]->at.shape;
        lg_flatten_options o;
        if (!lg__take(call->ctx, "flatten", call->attributes, &o, sizeof o))
                return NULL;
        const int first = lg__scalar_dim(call->ctx, "flatten", o.start_dim, s.ndim);
        const int last = first < 0 ? -1 : lg__scalar_dim(call->ctx, "flatten", lg__whole_option(o.end_dim, -1), s.ndim);
        if (last < 0)
                return NULL;
        if (last < first)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "flatten: end_dim %d lies before start_dim %d", last,
                                first);
        lg_shape to = s.ndim ? LG_SHAPE_0D : LG_SHAPE(1);
        for (int i = 0; i < s.ndim; i++)
                if (i > first && i <= last)
                        to.size[to.ndim - 1] *= s.size[i];
                else
                        to.size[to.ndim++] = s.size[i];
        return reshape(call, to);
}
LG__COMPOSITE(flatten, {"x"})

lg_tensor *lg_flatten_with(lg_tensor *x, const lg_flatten_options *options)
{
        return LG__APPLY(flatten, options, x);
}

static lg_tensor *compose_squeeze(const lg__call *call)
{
        const lg_dims *dims = call->attributes;
        const lg_shape s = call->in[0]->at.shape;
        lg_shape to = LG_SHAPE_0D;
        unsigned chosen = dims->count ? 0 : ~0u;
        if (dims->count < 0 || dims->count > LG_MAX_DIMS)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "squeeze: a set of %d dimensions", dims->count);
        for (int i = 0; i < dims->count; i++) {
                const int d = lg__scalar_dim(call->ctx, "squeeze", dims->dim[i], s.ndim);
                if (d < 0)
                        return NULL;
                chosen |= 1u << d;
        }
        for (int i = 0; i < s.ndim; i++)
                if (s.size[i] != 1 || !(chosen >> i & 1))
                        to.size[to.ndim++] = s.size[i];
        return reshape(call, to);
}
MADE(squeeze, &dims, lg_dims dims)

static lg_tensor *compose_unsqueeze(const lg__call *call)
{
        lg_shape s = call->in[0]->at.shape;
        const int dim = lg__dim(call->ctx, "unsqueeze", *(const int *)call->attributes, s.ndim + 1);
        if (dim < 0)
                return NULL;
        if (s.ndim == LG_MAX_DIMS)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "unsqueeze: %s has %d dimensions already",
                                lg__tensor_text(call->in[0]).s, LG_MAX_DIMS);
        memmove(s.size + dim + 1, s.size + dim, (size_t)(s.ndim++ - dim) * sizeof *s.size);
        s.size[dim] = 1;
        return reshape(call, s);
}
MADE(unsqueeze, &dim, int dim)

/* ---- permute ---- */

static bool infer_permute(lg__call *call)
{
        lg_dims *order = &((permute_attributes *)call->attributes)->order;
        const lg__layout *x = &call->in[0]->at;
        lg__layout *y = &call->out_at[0];
        unsigned seen = 0;
        if (order->count != x->shape.ndim)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "permute: %d dimensions are listed, but x is %s",
                                order->count, lg__tensor_text(call->in[0]).s);
        for (int i = 0; i < order->count; i++) {
                const int d = order->dim[i] = lg__dim(call->ctx, "permute", order->dim[i], x->shape.ndim);
                if (d < 0)
                        return false;
                if (seen >> d & 1)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT, "permute: dimension %d is listed twice", d);
                seen |= 1u << d;
                y->shape.size[i] = x->shape.size[d];
                y->strides[i] = x->strides[d];
        }
        return true;
}

static bool vjp_permute(lg__vjp *v)
{
        const lg_dims order = ((const permute_attributes *)v->attributes)->order;
        lg_dims back = {.count = order.count};
        for (int i = 0; i < order.count; i++)
                back.dim[order.dim[i]] = i;
        return (v->grad_in[0] = lg_permute(v->grad[0], back)) != NULL;
}

VIEW(permute, permute, .onnx = "Transpose(x, perm=(order))")

lg_tensor *lg_permute(lg_tensor *x, lg_dims order)
{
        return LG__APPLY(permute, &(permute_attributes){order}, x);
}

static lg_tensor *compose_transpose(const lg__call *call)
{
        const int ndim = call->in[0]->at.shape.ndim, *pair = call->attributes;
        const int a = lg__scalar_dim(call->ctx, "transpose", pair[0], ndim);
        const int b = a < 0 ? -1 : lg__scalar_dim(call->ctx, "transpose", pair[1], ndim);
        if (b < 0)
                return NULL;
        lg_dims order = {.count = ndim};
        for (int i = 0; i < ndim; i++)
                order.dim[i] = i == a ? b : i == b ? a : i;
        return lg_permute(call->in[0], order);
}
MADE(transpose, ((const int[]){dim0, dim1}), int dim0, int dim1)

/* ---- slice ---- */

static int64_t clip(int64_t i, int64_t size)
{
        i = i < 0 ? i + size : i;
        return i < 0 ? 0 : i > size ? size : i;
}

static bool infer_slice(lg__call *call)
{
        slice_attributes *a = call->attributes;
        lg__layout *y = &call->out_at[0];
        a->dim = lg__dim(call->ctx, "slice", a->dim, y->shape.ndim);
        if (a->dim < 0)
                return false;
        if (a->step < 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "slice: the step is %lld; it must be above 0",
                                (long long)a->step);
        a->start = clip(a->start, y->shape.size[a->dim]);
        a->stop = clip(a->stop, y->shape.size[a->dim]);
        const int64_t count = a->stop > a->start ? 1 + (a->stop - a->start - 1) / a->step : 0;
        if (count <= 1) { /* the step has no effect, and its product with a stride could overflow */
                a->stop = a->start + count;
                a->step = 1;
        }
        y->shape.size[a->dim] = count;
        y->offset += count ? a->start * y->strides[a->dim] : 0;
        y->strides[a->dim] *= a->step;
        return true;
}

static bool vjp_slice(lg__vjp *v)
{
        const slice_attributes *a = v->attributes;
        const int64_t size = lg__input(v, 0)->size[a->dim];
        const slice_grad_attributes back = {a->dim, a->start, a->stop, a->step, size};
        return (v->grad_in[0] = LG__APPLY(slice_grad, &back, v->grad[0])) != NULL;
}

VIEW(slice, slice, .onnx = "Slice(x, [start], [stop], [dim], [step])")

lg_tensor *lg_slice_with(lg_tensor *x, int dim, int64_t start, int64_t stop, const lg_slice_options *options)
{
        lg_slice_options o;
        if (!lg__take(lg__ctx_of(x), "lg_slice", options, &o, sizeof o))
                return NULL;
        return LG__APPLY(slice, (&(slice_attributes){dim, start, stop, o.step ? o.step : 1}), x);
}

static lg_tensor *compose_select(const lg__call *call)
{
        const slice_attributes *a = call->attributes;
        lg_shape s = call->in[0]->at.shape;
        const int dim = lg__dim(call->ctx, "select", a->dim, s.ndim);
        if (dim < 0)
                return NULL;
        const int64_t size = s.size[dim], i = a->start < 0 ? a->start + size : a->start;
        if (i < 0 || i >= size)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "select: index %lld is outside dimension %d of size %lld",
                                (long long)a->start, dim, (long long)size);
        memmove(s.size + dim, s.size + dim + 1, (size_t)(--s.ndim - dim) * sizeof *s.size);
        return view(LG__APPLY(slice, (&(slice_attributes){dim, i, i + 1, 1}), call->in[0]), s);
}
MADE(select, (&(slice_attributes){.dim = dim, .start = index}), int dim, int64_t index)

static bool infer_slice_grad(lg__call *call)
{
        const slice_grad_attributes *a = call->attributes;
        call->out_at[0].shape.size[a->dim] = a->size;
        return true;
}

static bool forward_slice_grad(lg__call *call)
{
        const slice_grad_attributes *a = call->attributes;
        lg_tensor region = *call->out[0];
        region.at.shape = call->in[0]->at.shape;
        region.at.offset += a->start * region.at.strides[a->dim];
        region.at.strides[a->dim] *= a->step;
        return lg__fill_values(call->out[0], 0, "slice_grad") && lg__copy_values(&region, call->in[0], "slice_grad");
}

static bool vjp_slice_grad(lg__vjp *v)
{
        return (v->grad_in[0] = LG__APPLY(slice, v->attributes, v->grad[0])) != NULL;
}

LG__DEFINE(slice_grad, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(slice_grad), .infer = infer_slice_grad,
           .forward = forward_slice_grad, .vjp = vjp_slice_grad)

/* ---- expand ---- */

static bool infer_expand(lg__call *call)
{
        lg_shape *to = &((view_attributes *)call->attributes)->shape;
        const lg__layout *x = &call->in[0]->at;
        const lg_shape asked = *to, from = x->shape;
        const int missing = asked.ndim > 0 ? asked.ndim - from.ndim : -from.ndim;
        for (int i = 0; i < asked.ndim && i < LG_MAX_DIMS; i++)
                if (asked.size[i] == -1 && i >= missing)
                        to->size[i] = from.size[i - missing];
        if (!lg__shape_valid(call->ctx, "expand", *to))
                return false;
        for (int i = 0; i < to->ndim || missing < 0; i++)
                if (missing < 0 ||
                    (i >= missing && to->size[i] != from.size[i - missing] && from.size[i - missing] != 1))
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "expand: %s cannot be expanded to %s",
                                        lg__tensor_text(call->in[0]).s, lg__shape_text(asked).s);
        call->out_at[0].shape = *to;
        lg__broadcast_strides(x, *to, call->out_at[0].strides);
        return true;
}

/* Passes the gradient on: lg__reduce_to_input() sums the gradient to the shape of the input. */
static bool vjp_expand(lg__vjp *v)
{
        v->grad_in[0] = v->grad[0];
        return true;
}

/* ONNX broadcasts both ways: 1 stands for the sizes that stay. */
static bool form_expand(lg__form *f, const lg__call *call)
{
        const lg_shape from = call->in[0]->at.shape, to = call->out[0]->at.shape;
        const int missing = to.ndim - from.ndim;
        lg__form_add(f, "Expand(x, [");
        for (int i = 0; i < to.ndim; i++)
                lg__form_add(f, "%lld ",
                             (long long)(i >= missing && from.size[i - missing] == to.size[i] ? 1 : to.size[i]));
        lg__form_add(f, "])");
        return true;
}

VIEW(expand, view, .form = form_expand)

lg_tensor *lg_expand(lg_tensor *x, lg_shape shape)
{
        return LG__APPLY(expand, &(view_attributes){shape}, x);
}
