/* shapes.c - ONNX's operators that arrange elements, and those that make shapes and constants. */
#include "import.h"

/* Returns a tensor i64 on the CPU with these numbers, of one dimension. */
static lg_tensor *numbers(lg__onnx_call *c, const int64_t *v, int64_t n)
{
        return lg_from(c->ctx, v, LG_SHAPE(n), .device = lg_cpu());
}

static bool shape_of_ints(const lg__onnx_call *c, const lg__onnx_ints *ints, lg_shape *ret)
{
        if (ints->count > LG_MAX_DIMS)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%lld dimensions; at most %d are possible",
                                     (long long)ints->count, LG_MAX_DIMS);
        ret->ndim = (int)ints->count;
        for (int i = 0; i < ret->ndim; i++)
                ret->size[i] = ints->v[i];
        return true;
}

/* ---- constants ---- */

LG__ONNX(Constant)
{
        const lg__onnx_attribute *a = c->node->attribute_count == 1 ? &c->node->attributes[0] : NULL;
        lg_tensor *y = NULL;
        if (a && a->type == TYPE_TENSOR)
                return lg__onnx_tensor_of(c->model, &a->t);
        if (a && a->type == TYPE_INT)
                return lg_full(c->ctx, LG_SHAPE_0D, (double)a->i, .dtype = LG_I64, .device = lg_cpu());
        if (a && a->type == TYPE_FLOAT)
                return lg_full(c->ctx, LG_SHAPE_0D, a->f, .device = lg_cpu());
        if (a && a->type == TYPE_INTS)
                return numbers(c, a->ints, a->count);
        if (a && a->type == TYPE_FLOATS && (y = lg__tensor_empty(c->ctx, lg_cpu(), LG_F32, LG_SHAPE(a->count))))
                for (int64_t i = 0; i < a->count; i++)
                        ((float *)lg__data(y))[i] = (float)a->floats[i];
        return y ? y : lg__onnx_fail(c, LG_ERR_FORMAT, "its value is none that libgrad knows");
}

LG__ONNX(ConstantOfShape)
{
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, "value");
        lg__onnx_ints sizes;
        lg_shape shape;
        if (!lg__onnx_ints_in(c, 0, &sizes) || !shape_of_ints(c, &sizes, &shape))
                return NULL;
        lg_tensor *one = a && a->type == TYPE_TENSOR ? lg__onnx_tensor_of(c->model, &a->t)
                                                     : lg_zeros(c->ctx, LG_SHAPE_0D, .device = lg_cpu());
        return one ? lg_expand(lg_reshape(one, LG_SHAPE_0D), shape) : NULL; /* one element, whatever the shape */
}

LG__ONNX(EyeLike)
{
        const lg_tensor *x = c->in[0];
        const int64_t to = lg__onnx_int(c, "dtype", 0), k = lg__onnx_int(c, "k", 0);
        const lg_dtype dtype = to ? lg__onnx_dtype(to) : x->at.dtype;
        if (!dtype || x->at.shape.ndim != 2)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its operand is %s, not a matrix of a dtype that libgrad has",
                                     lg__tensor_text(x).s);
        lg_tensor *ones = lg_ones(c->ctx, x->at.shape, .dtype = LG_F32, .device = x->storage->device->id);
        return lg_cast(lg_triu(lg_tril(ones, .diagonal = (int)k), .diagonal = (int)k), dtype);
}

LG__ONNX(Range)
{
        lg_tensor *start = c->in[0];
        const double from = lg__onnx_number(c, 0, 0), to = lg__onnx_number(c, 1, 0), step = lg__onnx_number(c, 2, 1);
        return lg__ok(c->ctx) ? lg_arange(c->ctx, from, to, step, .dtype = start->at.dtype, .device = lg_cpu()) : NULL;
}

/* ---- shapes ---- */

/* Returns start or end, which may count from the end, within 0 to ndim. */
static int bound(int64_t at, int ndim)
{
        at = at < 0 ? at + ndim : at;
        return (int)(at < 0 ? 0 : at > ndim ? ndim : at);
}

LG__ONNX(Shape)
{
        const lg_shape *s = &c->in[0]->at.shape;
        const int start = bound(lg__onnx_int(c, "start", 0), s->ndim);
        const int end = bound(lg__onnx_int(c, "end", s->ndim), s->ndim);
        return numbers(c, s->size + start, end > start ? end - start : 0);
}

LG__ONNX(Size)
{
        const int64_t n = lg__shape_numel(c->in[0]->at.shape);
        return lg_reshape(numbers(c, &n, 1), LG_SHAPE_0D);
}

/* 0 stands for the size of x there, unless .allowzero; -1 for what is left. */
LG__ONNX(Reshape)
{
        lg_tensor *x = c->in[0];
        lg__onnx_ints sizes;
        lg_shape shape;
        if (!(c->in_count > 1 ? lg__onnx_ints_in(c, 1, &sizes) : lg__onnx_ints_of(c, "shape", &sizes)) ||
            !shape_of_ints(c, &sizes, &shape))
                return NULL;
        for (int i = 0; i < shape.ndim && !lg__onnx_int(c, "allowzero", 0); i++)
                if (shape.size[i] == 0 && i < x->at.shape.ndim)
                        shape.size[i] = x->at.shape.size[i];
        return lg_reshape(x, shape);
}

LG__ONNX(Flatten)
{
        lg_tensor *x = c->in[0];
        const lg_shape *s = &x->at.shape;
        int64_t axis = lg__onnx_int(c, "axis", 1), rows = 1, columns = 1;
        axis = axis < 0 ? axis + s->ndim : axis;
        bool fits = axis >= 0 && axis <= s->ndim;
        for (int i = 0; i < s->ndim && fits; i++) {
                int64_t *to = i < axis ? &rows : &columns;
                fits = !__builtin_mul_overflow(*to, s->size[i], to);
        }
        if (!fits)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "axis %lld of %s", (long long)axis, lg__tensor_text(x).s);
        return lg_reshape(x, LG_SHAPE(rows, columns));
}

LG__ONNX(Squeeze)
{
        lg_dims dims;
        const lg_shape *s = &c->in[0]->at.shape;
        if (!lg__onnx_axes(c, 1, "axes", s->ndim, &dims))
                return NULL;
        for (int i = 0; i < dims.count; i++)
                if (s->size[dims.dim[i]] != 1)
                        return lg__onnx_fail(c, LG_ERR_SHAPE, "dimension %d of %s is not 1", dims.dim[i],
                                             lg__tensor_text(c->in[0]).s);
        return lg_squeeze(c->in[0], dims);
}

LG__ONNX(Unsqueeze)
{
        lg__onnx_ints axes;
        lg_tensor *x = c->in[0];
        if (!(c->in_count > 1 ? lg__onnx_ints_in(c, 1, &axes) : lg__onnx_ints_of(c, "axes", &axes)))
                return NULL;
        const int ndim = x->at.shape.ndim + (int)axes.count;
        bool new[LG_MAX_DIMS] = {false};
        if (axes.count < 0 || axes.count > LG_MAX_DIMS || ndim > LG_MAX_DIMS)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "%lld axes", (long long)axes.count);
        for (int64_t i = 0; i < axes.count; i++) {
                const int axis = lg__onnx_axis(c, axes.v[i], ndim);
                if (axis < 0 || new[axis])
                        return axis < 0 ? NULL : lg__onnx_fail(c, LG_ERR_ARGUMENT, "axis %d is there twice", axis);
                new[axis] = true;
        }
        lg_shape shape = {.ndim = ndim};
        for (int i = 0, from = 0; i < ndim; i++)
                shape.size[i] = new[i] ? 1 : x->at.shape.size[from++];
        return lg_reshape(x, shape);
}

/* Sizes of 1 in the operand stand for the sizes of x. */
LG__ONNX(Expand)
{
        lg_tensor *x = c->in[0];
        lg__onnx_ints sizes;
        lg_shape shape;
        if (!lg__onnx_ints_in(c, 1, &sizes) || !shape_of_ints(c, &sizes, &shape))
                return NULL;
        const lg_shape *s = &x->at.shape;
        lg_shape full = s->ndim > shape.ndim ? *s : shape;
        for (int i = 1; i <= full.ndim; i++) {
                const int64_t own = i <= s->ndim ? s->size[s->ndim - i] : 1;
                const int64_t other = i <= shape.ndim ? shape.size[shape.ndim - i] : 1;
                full.size[full.ndim - i] = other == 1 ? own : other;
        }
        return lg_expand(x, full);
}

LG__ONNX(Tile)
{
        lg__onnx_ints times;
        lg_shape shape;
        if (!lg__onnx_ints_in(c, 1, &times) || !shape_of_ints(c, &times, &shape))
                return NULL;
        return shape.ndim ? lg_tile(c->in[0], shape) : c->in[0];
}

/* ---- order and parts ---- */

LG__ONNX(Transpose)
{
        const int ndim = c->in[0]->at.shape.ndim;
        lg__onnx_ints order;
        lg_dims dims = {.count = ndim};
        if (!lg__onnx_ints_of(c, "perm", &order))
                return NULL;
        if (order.count >= 0 && order.count != ndim)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "perm has %lld entries; the operand is %s",
                                     (long long)order.count, lg__tensor_text(c->in[0]).s);
        for (int i = 0; i < ndim; i++)
                dims.dim[i] = order.count < 0 ? ndim - 1 - i : (int)order.v[i];
        return ndim ? lg_permute(c->in[0], dims) : c->in[0];
}

LG__ONNX(Concat)
{
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", 1), c->in[0]->at.shape.ndim);
        return axis < 0 ? NULL : lg_cat((lg_list){c->in_count, c->in}, axis);
}

/* The parts have the sizes in operand 1 or attribute "split"; else they are equal but for the last. */
LG__ONNX(Split)
{
        lg_tensor *x = c->in[0];
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", 0), x->at.shape.ndim);
        const int64_t parts = c->node->out_count;
        lg__onnx_ints sizes;
        if (axis < 0 || !(lg__onnx_in(c, 1) ? lg__onnx_ints_in(c, 1, &sizes) : lg__onnx_ints_of(c, "split", &sizes)))
                return NULL;
        const int64_t n = x->at.shape.size[axis], each = (n + parts - 1) / parts;
        if (!lg__onnx_are_sizes(c, &sizes))
                return NULL;
        if (sizes.count >= 0 && sizes.count != parts)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%lld sizes for %lld results", (long long)sizes.count,
                                     (long long)parts);
        lg_tensor *first = NULL;
        int64_t at = 0;
        for (int i = 0; i < parts && lg__ok(c->ctx); i++) {
                int64_t size = sizes.count >= 0 ? sizes.v[i] : each;
                size = sizes.count < 0 && at + size > n ? n - at : size;
                c->out[i] = lg_narrow(x, axis, at, size);
                first = i ? first : c->out[0];
                at += size;
        }
        if (at != n && lg__ok(c->ctx))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "the sizes add up to %lld; the dimension has %lld", (long long)at,
                                     (long long)n);
        return first;
}

/* Returns the size that all parts of a dimension of n elements have, by operand 1; 0 with an error. */
static int64_t part_size(const lg__onnx_call *c, int64_t n)
{
        lg__onnx_ints sizes;
        if (!lg__onnx_ints_in(c, 1, &sizes))
                return 0;
        const int64_t each = sizes.count > 0 ? sizes.v[0] : 1;
        bool equal = each > 0 && n % each == 0;
        for (int64_t i = 1; i < sizes.count; i++)
                equal = equal && sizes.v[i] == each;
        if (!equal)
                lg__onnx_fail(c, LG_ERR_ARGUMENT, "libgrad has sequences of equal parts only");
        return equal ? each : 0;
}

/* Returns the parts stacked along a new first dimension, in place of a sequence. */
LG__ONNX(SplitToSequence)
{
        lg_tensor *x = c->in[0];
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", 0), x->at.shape.ndim);
        const int64_t n = axis < 0 ? 0 : x->at.shape.size[axis], each = axis < 0 ? 0 : part_size(c, n);
        if (!each)
                return NULL;
        if (!lg__onnx_in(c, 1) && !lg__onnx_int(c, "keepdims", 1))
                return lg_movedim(x, LG_DIMS(axis), LG_DIMS(0));
        lg_tensor *parts = lg_unflatten(x, axis, LG_SHAPE(n / each, each));
        return parts ? lg_movedim(parts, LG_DIMS(axis), LG_DIMS(0)) : NULL;
}

LG__ONNX(SequenceAt)
{
        lg_tensor *parts = c->in[0];
        const int32_t i = lg__onnx_whole(c, 1, 0);
        return lg__ok(c->ctx) ? lg_select(parts, 0, i) : NULL;
}

/* A tensor is an element of what is optional; an operand that is left out has none. */
LG__ONNX(OptionalHasElement)
{
        return lg_full(c->ctx, LG_SHAPE_0D, lg__onnx_in(c, 0) != NULL, .dtype = LG_BOOL, .device = lg_cpu());
}

/* Takes x[start], x[start + step], ... up to but not including x[end] of one dimension. */
static lg_tensor *sliced(lg_tensor *x, int axis, int64_t start, int64_t end, int64_t step)
{
        const int64_t n = x->at.shape.size[axis], low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
        step = step < -n - 1 ? -n - 1 : step;
        start = start < 0 ? start + n : start;
        end = end < 0 ? (end < -n ? -1 : end + n) : end;
        start = start < 0 ? 0 : start > high ? high : start;
        end = end < low ? low : end > n ? n : end;
        if (step > 0)
                end = end < start ? start : end;
        if (step == 1 || step == -1 ? false : step > 0 && start < end)
                return lg_slice(x, axis, start, end, .step = step);
        if (step > 0)
                return lg_slice(x, axis, start, end);
        if (end >= start)
                return lg_slice(x, axis, 0, 0);
        /* from the last one back: those of the flipped dimension */
        const int64_t count = (start - end + -step - 1) / -step, first = n - 1 - start;
        lg_tensor *back = lg_flip(x, LG_DIMS(axis));
        return back ? lg_slice(back, axis, first, first + (count - 1) * -step + 1, .step = -step) : NULL;
}

LG__ONNX(Slice)
{
        lg_tensor *x = c->in[0];
        lg__onnx_ints starts, ends, axes, steps;
        const bool given = c->in_count > 1; /* attributes before opset 10 */
        if (!(given ? lg__onnx_ints_in(c, 1, &starts) : lg__onnx_ints_of(c, "starts", &starts)) ||
            !(given ? lg__onnx_ints_in(c, 2, &ends) : lg__onnx_ints_of(c, "ends", &ends)) ||
            !(given ? lg__onnx_ints_in(c, 3, &axes) : lg__onnx_ints_of(c, "axes", &axes)) ||
            !lg__onnx_ints_in(c, 4, &steps))
                return NULL;
        if (starts.count != ends.count || (axes.count >= 0 && axes.count != starts.count) ||
            (steps.count >= 0 && steps.count != starts.count))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "starts, ends, axes and steps have other numbers of entries");
        for (int64_t i = 0; i < starts.count && x; i++) {
                const int axis = lg__onnx_axis(c, axes.count >= 0 ? axes.v[i] : i, x->at.shape.ndim);
                const int64_t step = steps.count >= 0 ? steps.v[i] : 1;
                if (axis < 0 || step == 0 || step == INT64_MIN)
                        return axis < 0 ? NULL : lg__onnx_fail(c, LG_ERR_ARGUMENT, "a step of %lld", (long long)step);
                x = sliced(x, axis, starts.v[i], ends.v[i], step);
        }
        return x;
}

LG__ONNX(Trilu)
{
        const int diagonal = lg__onnx_whole(c, 1, 0);
        if (!lg__ok(c->ctx))
                return NULL;
        return lg__onnx_int(c, "upper", 1) ? lg_triu(c->in[0], .diagonal = diagonal)
                                           : lg_tril(c->in[0], .diagonal = diagonal);
}

/* Returns x (N, C, H, W), or NULL with an error unless it has four dimensions and b is at least 1. */
static const lg_shape *image(const lg__onnx_call *c, int64_t b)
{
        const lg_shape *s = &c->in[0]->at.shape;
        return s->ndim == 4 && b > 0 && b <= INT16_MAX && s->size[2] <= INT32_MAX && s->size[3] <= INT32_MAX
                       ? s
                       : lg__onnx_fail(c, LG_ERR_SHAPE, "blocks of %lld of %s", (long long)b,
                                       lg__tensor_text(c->in[0]).s);
}

LG__ONNX(DepthToSpace)
{
        const int64_t b = lg__onnx_int(c, "blocksize", 0);
        const lg_shape *s = image(c, b);
        if (!s)
                return NULL;
        const int64_t n = s->size[0], d = s->size[1] / b / b, h = s->size[2], w = s->size[3];
        const bool by_depth = !strcmp(lg__onnx_text(c, "mode", "DCR"), "DCR");
        lg_tensor *x =
                by_depth ? lg_permute(lg_reshape(c->in[0], LG_SHAPE(n, b, b, d, h, w)), LG_DIMS(0, 3, 4, 1, 5, 2))
                         : lg_permute(lg_reshape(c->in[0], LG_SHAPE(n, d, b, b, h, w)), LG_DIMS(0, 1, 4, 2, 5, 3));
        return lg_reshape(x, LG_SHAPE(n, d, h * b, w * b));
}

LG__ONNX(SpaceToDepth)
{
        const int64_t b = lg__onnx_int(c, "blocksize", 0);
        const lg_shape *s = image(c, b);
        if (!s)
                return NULL;
        const int64_t n = s->size[0], d = s->size[1], h = s->size[2] / b, w = s->size[3] / b;
        const bool by_depth = !strcmp(lg__onnx_text(c, "mode", "DCR"), "DCR");
        lg_tensor *x = lg_permute(lg_reshape(c->in[0], LG_SHAPE(n, d, h, b, w, b)),
                                  by_depth ? LG_DIMS(0, 3, 5, 1, 2, 4) : LG_DIMS(0, 1, 3, 5, 2, 4));
        return lg_reshape(x, LG_SHAPE(n, d * b * b, h, w));
}
