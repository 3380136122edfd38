/* view.c - views: other strides over the same storage.
 *
 * view, permute, expand: y[i] = x[p(i)]; dx[p(i)] += g[i]. slice: y = x[start : stop : step] of one dimension; its
 * derivative slice_grad writes g into that region of zeros, whose derivative is slice.
 */
#include <string.h>
#include "../op.h"

/* What a view's derivative has to know beside the layout. */
typedef struct view_attributes {
        lg__layout at;                  /* of y */
        int order[LG_MAX_DIMS];         /* permute */
        int64_t dim, start, step, size; /* slice; size of x's dimension */
} view_attributes;

/* The caller has worked out the layout, and no kernel is needed. */
#define VIEW_OP(name)                                                                                                  \
        static bool infer_##name(lg__call *call)                                                                       \
        {                                                                                                              \
                call->out_at[0] = ((const view_attributes *)call->attributes)->at;                                     \
                return true;                                                                                           \
        }                                                                                                              \
        static bool forward_##name(lg__call *call)                                                                     \
        {                                                                                                              \
                return call->out[0] != NULL;                                                                           \
        }
VIEW_OP(view)
VIEW_OP(permute)
VIEW_OP(slice)
VIEW_OP(expand)

/* ---- reshape ---- */

static bool vjp_view(lg__vjp *v)
{
        return (v->grad_in[0] = lg_reshape(v->grad[0], lg__input(v, 0)->shape)) != NULL;
}

const lg__op lg__op_view = {.name = "view",
                            LG__OPERANDS({"x"}),
                            LG__RESULTS({"y"}),
                            .flags = LG__ALIASES,
                            .attributes_bytes = sizeof(view_attributes),
                            .infer = infer_view,
                            .forward = forward_view,
                            .vjp = vjp_view};

/* Replaces a -1 and checks that the number of elements stays. */
static bool complete(const lg_tensor *x, const char *op, lg_shape *s)
{
        lg_ctx *c = x->ctx;
        int64_t n = lg__shape_numel(x->at.shape), known = 1;
        int unknown = -1;
        lg_shape asked = *s, test = *s;
        for (int i = 0; i < s->ndim && i < LG_MAX_DIMS; i++) {
                if (s->size[i] == -1 && unknown < 0)
                        test.size[unknown = i] = 1;
        }
        if (!lg__shape_valid(c, op, test))
                return false;
        known = lg__shape_numel(test);
        if (unknown >= 0 && known != 0 && n % known == 0)
                test.size[unknown] = n / known;
        if (lg__shape_numel(test) != n || (unknown >= 0 && known == 0))
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s with %lld elements cannot take the shape %s", op,
                                lg__tensor_text(x).s, (long long)n, lg__shape_text(asked).s);
        *s = test;
        return true;
}

/* Strides that read x in another shape without a copy, or false. Works through groups of x's dimensions that together
 * hold as many elements as a group of the new ones; within a group x must lie evenly. */
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

static lg_tensor *reshape(lg_tensor *x, lg_shape shape, const char *op)
{
        if (!complete(x, op, &shape))
                return NULL;
        view_attributes a = {.at = {.dtype = x->at.dtype, .shape = shape}};
        if (lg__layout_is_contiguous(&x->at) || !reshape_strides(&x->at, shape, a.at.strides)) {
                lg__layout_contiguous(&a.at);
                if (!(x = lg_contiguous(x)))
                        return NULL;
        }
        a.at.offset = x->at.offset;
        return lg__apply1(LG__OP(view), x, &a);
}

lg_tensor *lg_reshape(lg_tensor *x, lg_shape shape)
{
        return lg__check(x, "reshape", "x") ? reshape(x, shape, "reshape") : NULL;
}

lg_tensor *lg_flatten(lg_tensor *x, int first, int last)
{
        if (!lg__check(x, "flatten", "x"))
                return NULL;
        lg_shape s = x->at.shape, to = LG_SHAPE_0D;
        if (s.ndim == 0)
                return reshape(x, LG_SHAPE(1), "flatten");
        first = lg__dim(x->ctx, "flatten", first, s.ndim);
        last = first < 0 ? -1 : lg__dim(x->ctx, "flatten", last, s.ndim);
        if (last < 0)
                return NULL;
        if (last < first)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "flatten: last dimension %d lies before the first, %d", last,
                                first);
        for (int i = 0; i < s.ndim; i++)
                if (i > first && i <= last)
                        to.size[to.ndim - 1] *= s.size[i];
                else
                        to.size[to.ndim++] = s.size[i];
        return reshape(x, to, "flatten");
}

lg_tensor *lg_squeeze(lg_tensor *x, lg_dims dims)
{
        if (!lg__check(x, "squeeze", "x"))
                return NULL;
        lg_shape s = x->at.shape, to = LG_SHAPE_0D;
        unsigned chosen = dims.count ? 0 : ~0u;
        if (dims.count < 0 || dims.count > LG_MAX_DIMS)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "squeeze: a set of %d dimensions", dims.count);
        for (int i = 0; i < dims.count; i++) {
                int d = lg__dim(x->ctx, "squeeze", dims.dim[i], s.ndim);
                if (d < 0)
                        return NULL;
                chosen |= 1u << d;
        }
        for (int i = 0; i < s.ndim; i++)
                if (s.size[i] != 1 || !(chosen >> i & 1))
                        to.size[to.ndim++] = s.size[i];
        return reshape(x, to, "squeeze");
}

lg_tensor *lg_unsqueeze(lg_tensor *x, int dim)
{
        if (!lg__check(x, "unsqueeze", "x"))
                return NULL;
        lg_shape s = x->at.shape;
        dim = lg__dim(x->ctx, "unsqueeze", dim, s.ndim + 1);
        if (dim < 0)
                return NULL;
        if (s.ndim == LG_MAX_DIMS)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "unsqueeze: %s has %d dimensions already", lg__tensor_text(x).s,
                                LG_MAX_DIMS);
        memmove(s.size + dim + 1, s.size + dim, (size_t)(s.ndim - dim) * sizeof *s.size);
        s.size[dim] = 1;
        s.ndim++;
        return reshape(x, s, "unsqueeze");
}

/* ---- permute ---- */

static bool vjp_permute(lg__vjp *v)
{
        const view_attributes *a = v->attributes;
        lg_dims back = {.count = a->at.shape.ndim};
        for (int i = 0; i < back.count; i++)
                back.dim[a->order[i]] = i;
        return (v->grad_in[0] = lg_permute(v->grad[0], back)) != NULL;
}

const lg__op lg__op_permute = {.name = "permute",
                               LG__OPERANDS({"x"}),
                               LG__RESULTS({"y"}),
                               .flags = LG__ALIASES,
                               .attributes_bytes = sizeof(view_attributes),
                               .infer = infer_permute,
                               .forward = forward_permute,
                               .vjp = vjp_permute};

lg_tensor *lg_permute(lg_tensor *x, lg_dims order)
{
        if (!lg__check(x, "permute", "x"))
                return NULL;
        const lg__layout *from = &x->at;
        view_attributes a = {.at = *from};
        unsigned seen = 0;
        if (order.count != from->shape.ndim)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "permute: %d dimensions are listed, but x is %s", order.count,
                                lg__tensor_text(x).s);
        for (int i = 0; i < order.count; i++) {
                int d = lg__dim(x->ctx, "permute", order.dim[i], from->shape.ndim);
                if (d < 0)
                        return NULL;
                if (seen >> d & 1)
                        return lg__fail(x->ctx, LG_ERR_ARGUMENT, "permute: dimension %d is listed twice", d);
                seen |= 1u << d;
                a.order[i] = d;
                a.at.shape.size[i] = from->shape.size[d];
                a.at.strides[i] = from->strides[d];
        }
        return lg__apply1(LG__OP(permute), x, &a);
}

lg_tensor *lg_transpose(lg_tensor *x, int dim0, int dim1)
{
        if (!lg__check(x, "transpose", "x"))
                return NULL;
        int ndim = x->at.shape.ndim;
        dim0 = lg__dim(x->ctx, "transpose", dim0, ndim);
        dim1 = dim0 < 0 ? -1 : lg__dim(x->ctx, "transpose", dim1, ndim);
        if (dim1 < 0)
                return NULL;
        lg_dims order = {.count = ndim};
        for (int i = 0; i < ndim; i++)
                order.dim[i] = i == dim0 ? dim1 : i == dim1 ? dim0 : i;
        return lg_permute(x, order);
}

/* ---- slice ---- */

static lg_tensor *slice_grad(lg_tensor *g, const view_attributes *a)
{
        return lg__apply1(LG__OP(slice_grad), g, a);
}

static bool vjp_slice(lg__vjp *v)
{
        return (v->grad_in[0] = slice_grad(v->grad[0], v->attributes)) != NULL;
}

const lg__op lg__op_slice = {.name = "slice",
                             LG__OPERANDS({"x"}),
                             LG__RESULTS({"y"}),
                             .flags = LG__ALIASES,
                             .attributes_bytes = sizeof(view_attributes),
                             .infer = infer_slice,
                             .forward = forward_slice,
                             .vjp = vjp_slice};

static lg_tensor *slice(lg_tensor *x, int64_t dim, int64_t start, int64_t step, int64_t count)
{
        if (count <= 1) /* nothing is stepped over, and the product with a stride could overflow */
                step = 1;
        view_attributes a = {.at = x->at, .dim = dim, .start = start, .step = step, .size = x->at.shape.size[dim]};
        a.at.shape.size[dim] = count;
        a.at.offset += count ? start * x->at.strides[dim] : 0;
        a.at.strides[dim] *= step;
        return lg__apply1(LG__OP(slice), x, &a);
}

static int64_t clip(int64_t i, int64_t size)
{
        i = i < 0 ? i + size : i;
        return i < 0 ? 0 : i > size ? size : i;
}

lg_tensor *lg_slice_with(lg_tensor *x, int dim, int64_t start, int64_t stop, const lg_slice_options *options)
{
        lg_slice_options o;
        if (!lg__check(x, "slice", "x") || !lg__take(x->ctx, "lg_slice", options, &o, sizeof o))
                return NULL;
        int64_t step = o.step ? o.step : 1;
        dim = lg__dim(x->ctx, "slice", dim, x->at.shape.ndim);
        if (dim < 0)
                return NULL;
        if (step < 1)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "slice: the step is %lld; it must be above 0",
                                (long long)step);
        int64_t size = x->at.shape.size[dim];
        int64_t first = clip(start, size), end = clip(stop, size);
        return slice(x, dim, first, step, end > first ? 1 + (end - first - 1) / step : 0);
}

lg_tensor *lg_select(lg_tensor *x, int dim, int64_t index)
{
        if (!lg__check(x, "select", "x"))
                return NULL;
        dim = lg__dim(x->ctx, "select", dim, x->at.shape.ndim);
        if (dim < 0)
                return NULL;
        int64_t size = x->at.shape.size[dim], i = index < 0 ? index + size : index;
        if (i < 0 || i >= size)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "select: index %lld is outside dimension %d of size %lld",
                                (long long)index, dim, (long long)size);
        return lg_squeeze(slice(x, dim, i, 1, 1), LG_DIMS(dim));
}

/* The attributes are those of the slice whose derivative this is. */
static bool infer_slice_grad(lg__call *call)
{
        const view_attributes *a = call->attributes;
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = call->in[0]->at.shape;
        call->out_at[0].shape.size[a->dim] = a->size;
        return true;
}

static bool forward_slice_grad(lg__call *call)
{
        const view_attributes *a = call->attributes;
        lg_tensor region = *call->out[0];
        region.at.shape = call->in[0]->at.shape;
        region.at.offset += a->start * region.at.strides[a->dim];
        region.at.strides[a->dim] *= a->step;
        return lg__fill_values(call->out[0], 0, "slice_grad") && lg__copy_values(&region, call->in[0], "slice_grad");
}

static bool vjp_slice_grad(lg__vjp *v)
{
        const view_attributes *a = v->attributes;
        int64_t count = lg__input(v, 0)->shape.size[a->dim];
        return (v->grad_in[0] = slice(v->grad[0], a->dim, a->start, a->step, count)) != NULL;
}

const lg__op lg__op_slice_grad = {.name = "slice_grad",
                                  LG__OPERANDS({"x"}),
                                  LG__RESULTS({"y"}),
                                  .attributes_bytes = sizeof(view_attributes),
                                  .infer = infer_slice_grad,
                                  .forward = forward_slice_grad,
                                  .vjp = vjp_slice_grad};

/* ---- expand ---- */

/* Nothing to do: the engine sums the gradient to the shape of the input. */
static bool vjp_expand(lg__vjp *v)
{
        v->grad_in[0] = v->grad[0];
        return true;
}

const lg__op lg__op_expand = {.name = "expand",
                              LG__OPERANDS({"x"}),
                              LG__RESULTS({"y"}),
                              .flags = LG__ALIASES,
                              .attributes_bytes = sizeof(view_attributes),
                              .infer = infer_expand,
                              .forward = forward_expand,
                              .vjp = vjp_expand};

lg_tensor *lg_expand(lg_tensor *x, lg_shape shape)
{
        if (!lg__check(x, "expand", "x"))
                return NULL;
        const lg_shape from = x->at.shape;
        int missing = shape.ndim > 0 ? shape.ndim - from.ndim : -from.ndim;
        lg_shape to = shape;
        for (int i = 0; i < shape.ndim && i < LG_MAX_DIMS; i++)
                if (shape.size[i] == -1 && i >= missing)
                        to.size[i] = from.size[i - missing];
        if (!lg__shape_valid(x->ctx, "expand", to))
                return NULL;
        for (int i = 0; i < to.ndim || missing < 0; i++)
                if (missing < 0 ||
                    (i >= missing && to.size[i] != from.size[i - missing] && from.size[i - missing] != 1))
                        return lg__fail(x->ctx, LG_ERR_SHAPE, "expand: %s cannot be expanded to %s",
                                        lg__tensor_text(x).s, lg__shape_text(shape).s);
        view_attributes a = {.at = {.dtype = x->at.dtype, .shape = to, .offset = x->at.offset}};
        lg__broadcast_strides(&x->at, to, a.at.strides);
        return lg__apply1(LG__OP(expand), x, &a);
}
