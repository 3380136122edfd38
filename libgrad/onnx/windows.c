/* windows.c - ONNX's convolutions and pooling. */
#include <math.h>
#include "import.h"

#define SIDES 3

/* The windows of an operator over images with 1 to 3 sides, each described along d, h and w. Missing sides are 1. */
typedef struct windows {
        int sides;
        int64_t in[SIDES], kernel[SIDES], stride[SIDES], dilation[SIDES], before[SIDES], after[SIDES];
        bool even; /* before and after are equal */
} windows;

/* Reads an attribute with one number for each side, or `each` for all. */
static bool take_sides(const lg__onnx_call *c, const char *name, int sides, int64_t each, int64_t *ret)
{
        lg__onnx_ints v;
        if (!lg__onnx_ints_of(c, name, &v))
                return false;
        if (v.count >= 0 && v.count != sides)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%s has %lld entries for %d sides", name, (long long)v.count,
                                     sides);
        for (int i = 0; i < SIDES; i++)
                ret[i] = i < SIDES - sides ? 1 : v.count < 0 ? each : v.v[i - SIDES + sides];
        for (int i = 0; i < SIDES; i++)
                if (ret[i] < 1 || ret[i] > INT32_MAX)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "%s is %lld", name, (long long)ret[i]);
        return true;
}

/* Sets the padding from "pads" or "auto_pad". */
static bool take_pads(const lg__onnx_call *c, windows *w)
{
        const char *how = lg__onnx_text(c, "auto_pad", "NOTSET");
        lg__onnx_ints pads;
        if (!lg__onnx_ints_of(c, "pads", &pads))
                return false;
        if (pads.count >= 0 && pads.count != 2 * w->sides)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "pads has %lld entries for %d sides", (long long)pads.count,
                                     w->sides);
        w->even = true;
        for (int i = 0; i < SIDES; i++) {
                const int k = i - SIDES + w->sides;
                const int64_t step = w->stride[i], reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
                int64_t *before = &w->before[i], *after = &w->after[i];
                *before = *after = 0;
                if (k >= 0 && !strncmp(how, "SAME", 4)) {
                        const int64_t all = ((w->in[i] + step - 1) / step - 1) * step + reach - w->in[i];
                        *before = all <= 0 ? 0 : strcmp(how, "SAME_LOWER") ? all / 2 : all - all / 2;
                        *after = all <= 0 ? 0 : all - *before;
                } else if (k >= 0 && pads.count > 0 && strcmp(how, "VALID") != 0) {
                        *before = pads.v[k];
                        *after = pads.v[w->sides + k];
                }
                if (*before < 0 || *after < 0 || *before > INT32_MAX || *after > INT32_MAX)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "pads are negative or too large");
                w->even = w->even && *before == *after;
        }
        return true;
}

/* Describes the windows over operand 0, with the kernel's sizes from operand `kernel` or, if that is 0, the attribute.
 */
static bool take_windows(const lg__onnx_call *c, int kernel, windows *ret)
{
        const lg_shape *s = &c->in[0]->at.shape, *k = kernel ? &c->in[kernel]->at.shape : NULL;
        ret->sides = s->ndim - 2;
        if (ret->sides < 1 || ret->sides > SIDES || (k && k->ndim != s->ndim))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its operand is %s; images have 1 to 3 sides",
                                     lg__tensor_text(c->in[0]).s);
        if (!kernel && !lg__onnx_attribute_of(c, "kernel_shape"))
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "kernel_shape is missing");
        if (!take_sides(c, "kernel_shape", ret->sides, 1, ret->kernel) ||
            !take_sides(c, "strides", ret->sides, 1, ret->stride) ||
            !take_sides(c, "dilations", ret->sides, 1, ret->dilation))
                return false;
        for (int i = 0; i < SIDES; i++) {
                const int side = i - SIDES + ret->sides;
                ret->in[i] = side < 0 ? 1 : s->size[2 + side];
                ret->kernel[i] = k ? side < 0 ? 1 : k->size[2 + side] : ret->kernel[i];
                if (ret->in[i] > INT32_MAX || ret->kernel[i] > INT32_MAX)
                        return lg__onnx_fail(c, LG_ERR_SHAPE, "a side has %lld elements", (long long)ret->in[i]);
        }
        return take_pads(c, ret);
}

static lg_triple triple(const int64_t *v)
{
        return LG_TRIPLE(v[0], v[1], v[2]);
}

static lg_pair pair(const int64_t *v)
{
        return LG_PAIR(v[1], v[2]);
}

/* Returns x (N, C, ...) with `value` around it, and sets the padding of the windows to 0. */
static lg_tensor *padded(lg_tensor *x, windows *w, double value)
{
        int64_t pads[2 * SIDES];
        for (int i = 0; i < w->sides; i++) {
                pads[2 * i] = w->before[SIDES - 1 - i];
                pads[2 * i + 1] = w->after[SIDES - 1 - i];
        }
        for (int i = 0; i < SIDES; i++) {
                w->in[i] += w->before[i] + w->after[i];
                w->before[i] = w->after[i] = 0;
        }
        w->even = true;
        return lg_pad(x, ((lg_ints){2 * w->sides, pads}), .value = value);
}

/* Returns x (N, C, L) as (N, C, 1, L), and y (N, C, 1, L) as (N, C, L); images with more sides as they are. */
static lg_tensor *with_height(lg_tensor *x)
{
        return x && x->at.shape.ndim == 3 ? lg_unsqueeze(x, 2) : x;
}

static lg_tensor *without_height(const windows *w, lg_tensor *y)
{
        return y && w->sides == 1 ? lg_squeeze(y, LG_DIMS(2)) : y;
}

/* ---- convolutions ---- */

LG__ONNX(Conv)
{
        windows w;
        lg_tensor *x = c->in[0], *k = c->in[1], *b = lg__onnx_in(c, 2);
        const int64_t groups = lg__onnx_int(c, "group", 1);
        if (!take_windows(c, 1, &w) || (!w.even && !(x = padded(x, &w, 0))))
                return NULL;
        if (w.sides == 3)
                return lg_conv3d(x, k, b, .strides = triple(w.stride), .paddings = triple(w.before),
                                 .dilations = triple(w.dilation), .groups = groups);
        x = with_height(x);
        return without_height(&w, lg_conv2d(x, with_height(k), b, .strides = pair(w.stride), .paddings = pair(w.before),
                                            .dilations = pair(w.dilation), .groups = groups));
}

/* Returns the sums of all windows of a transposed convolution, without padding. */
static lg_tensor *spread(lg__onnx_call *c, const windows *w)
{
        lg_tensor *x = c->in[0], *k = c->in[1];
        const int64_t groups = lg__onnx_int(c, "group", 1);
        if (w->sides == 3)
                return lg_conv_transpose3d(x, k, NULL, .strides = triple(w->stride), .dilations = triple(w->dilation),
                                           .groups = groups);
        return without_height(w, lg_conv_transpose2d(with_height(x), with_height(k), NULL, .strides = pair(w->stride),
                                                     .dilations = pair(w->dilation), .groups = groups));
}

/* Finds how much is cut off before and after each side, a negative number: added, of the sums of all windows. */
static bool take_cuts(const lg__onnx_call *c, const windows *w, int64_t *before, int64_t *after)
{
        const char *how = lg__onnx_text(c, "auto_pad", "NOTSET");
        int64_t more[SIDES] = {0};
        lg__onnx_ints shape, extra;
        if (!lg__onnx_ints_of(c, "output_shape", &shape) || !lg__onnx_ints_of(c, "output_padding", &extra) ||
            !lg__onnx_are_sizes(c, &shape) || !lg__onnx_are_sizes(c, &extra))
                return false;
        if ((shape.count >= 0 && shape.count != w->sides) || (extra.count >= 0 && extra.count != w->sides))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "output_shape or output_padding does not fit %d sides", w->sides);
        for (int i = SIDES - w->sides; i < SIDES; i++) {
                const int k = i - SIDES + w->sides;
                const int64_t full = (w->in[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
                more[i] = extra.count >= 0 ? extra.v[k] : 0;
                before[i] = w->before[i];
                after[i] = w->after[i] - more[i];
                if (shape.count < 0 && strncmp(how, "SAME", 4) != 0)
                        continue;
                const int64_t size = shape.count >= 0 ? shape.v[k] : w->in[i] * w->stride[i];
                const int64_t all = full + more[i] - size;
                before[i] = !strcmp(how, "SAME_LOWER") ? all - all / 2 : all / 2;
                after[i] = full - size - before[i];
        }
        return true;
}

LG__ONNX(ConvTranspose)
{
        windows w;
        lg_tensor *b = lg__onnx_in(c, 2);
        int64_t before[SIDES], after[SIDES], pads[2 * SIDES];
        if (!take_windows(c, 1, &w) || !take_cuts(c, &w, before, after))
                return NULL;
        lg_tensor *y = spread(c, &w);
        for (int i = 0; i < w.sides; i++) {
                pads[2 * i] = -before[SIDES - 1 - i];
                pads[2 * i + 1] = -after[SIDES - 1 - i];
        }
        y = y ? lg_pad(y, ((lg_ints){2 * w.sides, pads})) : NULL;
        if (!y || !b)
                return y;
        lg_shape channels = {.ndim = y->at.shape.ndim};
        for (int i = 0; i < channels.ndim; i++)
                channels.size[i] = i == 1 ? y->at.shape.size[1] : 1;
        return lg_add(y, lg_reshape(b, channels));
}

/* ---- pooling ---- */

static lg_tensor *max_pool(lg_tensor *x, const windows *w, bool ceil, lg_tensor **indices)
{
        if (w->sides == 3)
                return lg_max_pool3d(x, 0, .kernels = triple(w->kernel), .strides = triple(w->stride),
                                     .paddings = triple(w->before), .dilations = triple(w->dilation), .ceil_mode = ceil,
                                     .indices = indices);
        lg_tensor *y = lg_max_pool2d(with_height(x), 0, .kernels = pair(w->kernel), .strides = pair(w->stride),
                                     .paddings = pair(w->before), .dilations = pair(w->dilation), .ceil_mode = ceil,
                                     .indices = indices);
        if (y && indices && *indices)
                *indices = without_height(w, *indices);
        return without_height(w, y);
}

/* Makes indices within the whole tensor of indices within an image, by columns if the node asks for it. */
static lg_tensor *whole_indices(const lg__onnx_call *c, const windows *w, lg_tensor *indices)
{
        const lg_shape *s = &indices->at.shape;
        const int64_t n = s->size[0], channels = s->size[1], size = w->in[0] * w->in[1] * w->in[2];
        if (lg__onnx_int(c, "storage_order", 0)) { /* (d, h, w), of which d is the innermost */
                const double hw = (double)(w->in[1] * w->in[2]), across = (double)w->in[2];
                lg_tensor *d = lg_floor_divide_scalar(indices, hw), *rest = lg_remainder_scalar(indices, hw);
                lg_tensor *column = lg_remainder_scalar(rest, across), *row = lg_floor_divide_scalar(rest, across);
                indices = lg_add(lg_mul_scalar(column, (double)w->in[1]), row);
                indices = w->sides == 3 ? lg_add(lg_mul_scalar(indices, (double)w->in[0]), d) : indices;
        }
        lg_shape planes = {.ndim = s->ndim};
        for (int i = 0; i < planes.ndim; i++)
                planes.size[i] = i == 0 ? n : i == 1 ? channels : 1;
        lg_tensor *first = lg_arange(c->ctx, 0, (double)(n * channels), 1, .dtype = LG_I64,
                                     .device = indices->storage->device->id);
        return lg_add(indices, lg_reshape(lg_mul_scalar(first, (double)size), planes));
}

LG__ONNX(MaxPool)
{
        windows w;
        lg_tensor *x = c->in[0], *indices = NULL;
        const lg_dtype dtype = x->at.dtype;
        const bool ceil = lg__onnx_int(c, "ceil_mode", 0), wanted = lg__onnx_wants(c, 1);
        x = lg__dtype_float(dtype) ? x : lg_cast(x, LG_F32);
        if (!x || !take_windows(c, 0, &w))
                return NULL;
        bool wide = !w.even; /* the library pads evenly, by at most half a kernel */
        for (int i = 0; i < SIDES; i++)
                wide = wide || 2 * w.before[i] > w.kernel[i];
        if (wide && wanted)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "indices with uneven or wide padding");
        if (wide && !(x = padded(x, &w, -INFINITY)))
                return NULL;
        lg_tensor *y = max_pool(x, &w, ceil, wanted ? &indices : NULL);
        if (y && indices)
                c->out[1] = whole_indices(c, &w, indices);
        return y && y->at.dtype != dtype ? lg_cast(y, dtype) : y;
}

static lg_tensor *avg_pool(lg_tensor *x, const windows *w, bool ceil, bool count_padding)
{
        if (w->sides == 3)
                return lg_avg_pool3d(x, 0, .kernels = triple(w->kernel), .strides = triple(w->stride),
                                     .paddings = triple(w->before), .ceil_mode = ceil,
                                     .no_count_padding = !count_padding);
        return without_height(w, lg_avg_pool2d(with_height(x), 0, .kernels = pair(w->kernel),
                                               .strides = pair(w->stride), .paddings = pair(w->before),
                                               .ceil_mode = ceil, .no_count_padding = !count_padding));
}

/* Returns how many elements a window has. */
static double elements_of(const windows *w)
{
        return (double)w->kernel[0] * (double)w->kernel[1] * (double)w->kernel[2];
}

/* Computes the means of windows with gaps by a convolution of each channel with ones. */
static lg_tensor *avg_dilated(lg_tensor *x, const windows *w)
{
        const int64_t channels = x->at.shape.size[1];
        const double size = elements_of(w);
        lg_tensor *k = lg_full(x->ctx, LG_SHAPE(channels, 1, w->kernel[0], w->kernel[1], w->kernel[2]), 1 / size,
                               .dtype = x->at.dtype, .device = x->storage->device->id);
        if (w->sides == 3)
                return lg_conv3d(x, k, NULL, .strides = triple(w->stride), .dilations = triple(w->dilation),
                                 .groups = channels);
        return without_height(w, lg_conv2d(with_height(x), k ? lg_squeeze(k, LG_DIMS(2)) : NULL, NULL,
                                           .strides = pair(w->stride), .dilations = pair(w->dilation),
                                           .groups = channels));
}

LG__ONNX(AveragePool)
{
        windows w, of_ones;
        lg_tensor *x = c->in[0];
        bool ceil = lg__onnx_int(c, "ceil_mode", 0), gaps = false;
        const bool count = lg__onnx_int(c, "count_include_pad", 0);
        if (!take_windows(c, 0, &w))
                return NULL;
        bool wide = !w.even;
        for (int i = 0; i < SIDES; i++) {
                wide = wide || 2 * w.before[i] > w.kernel[i];
                gaps = gaps || w.dilation[i] > 1;
        }
        if (!wide && !gaps)
                return avg_pool(x, &w, ceil, count);
        /* the last windows of .ceil_mode reach beyond the padding, which never counts */
        windows room = w;
        for (int i = 0; i < SIDES && ceil; i++) {
                const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1, all = w.in[i] + w.before[i] + w.after[i];
                const int64_t windows_there = (all - reach + w.stride[i] - 1) / w.stride[i] + 1;
                const bool begins = (windows_there - 1) * w.stride[i] < w.in[i] + w.before[i];
                const int64_t end = (windows_there - 1 - !begins) * w.stride[i] + reach;
                room.after[i] += end > all ? end - all : 0;
        }
        lg_tensor *ones = lg_ones_like(x);
        if (count) { /* padding counts, what is added for .ceil_mode does not */
                of_ones = w;
                ones = padded(ones, &of_ones, 1);
                for (int i = 0; i < SIDES; i++) {
                        of_ones.before[i] = 0;
                        of_ones.after[i] = room.after[i] - w.after[i];
                }
        } else
                of_ones = room;
        ones = ones ? padded(ones, &of_ones, 0) : NULL;
        x = ones ? padded(x, &room, 0) : NULL;
        if (!x)
                return NULL;
        return gaps ? lg_div(avg_dilated(x, &room), avg_dilated(ones, &room))
                    : lg_div(avg_pool(x, &room, false, true), avg_pool(ones, &room, false, true));
}

LG__ONNX(LpPool)
{
        windows w;
        const double p = lg__onnx_attribute_of(c, "p") ? (double)lg__onnx_int(c, "p", 2) : 2;
        lg_tensor *x = c->in[0];
        if (!take_windows(c, 0, &w))
                return NULL;
        const double size = elements_of(&w);
        bool gaps = false;
        for (int i = 0; i < SIDES; i++)
                gaps = gaps || w.dilation[i] > 1;
        x = lg_pow_scalar(lg_abs(x), p);
        x = x ? padded(x, &w, 0) : NULL;
        lg_tensor *y = !x ? NULL : gaps ? avg_dilated(x, &w) : avg_pool(x, &w, lg__onnx_int(c, "ceil_mode", 0), true);
        return y ? lg_pow_scalar(lg_mul_scalar(y, size), 1 / p) : NULL;
}

/* Returns the dimensions of an image's sides. */
static lg_dims sides_of(const lg_tensor *x)
{
        lg_dims dims = {.count = x->at.shape.ndim - 2};
        for (int i = 0; i < dims.count; i++)
                dims.dim[i] = 2 + i;
        return dims;
}

LG__ONNX(GlobalAveragePool)
{
        lg_tensor *x = c->in[0];
        return x->at.shape.ndim < 3 ? x : lg_mean(x, .dims = sides_of(x), .keep_dim = true);
}

LG__ONNX(GlobalMaxPool)
{
        lg_tensor *x = c->in[0];
        return x->at.shape.ndim < 3 ? x : lg_amax(x, .dims = sides_of(x), .keep_dim = true);
}

LG__ONNX(GlobalLpPool)
{
        lg_tensor *x = c->in[0];
        const double p = (double)lg__onnx_int(c, "p", 2);
        return x->at.shape.ndim < 3
                       ? lg_abs(x)
                       : lg_pow_scalar(lg_sum(lg_pow_scalar(lg_abs(x), p), .dims = sides_of(x), .keep_dim = true),
                                       1 / p);
}

/* Writes each value to its place, by index in the whole tensor, in zeros of the size before pooling, and adds zeros or
 * cuts elements off at the ends for the size that is given. */
LG__ONNX(MaxUnpool)
{
        windows w;
        lg__onnx_ints given;
        lg_tensor *x = c->in[0];
        if (!take_windows(c, 0, &w) || !lg__onnx_ints_in(c, 2, &given) || !lg__onnx_are_sizes(c, &given))
                return NULL;
        lg_shape pooled = x->at.shape;
        for (int i = 0; i < w.sides; i++) {
                const int k = SIDES - w.sides + i;
                pooled.size[2 + i] = (w.in[k] - 1) * w.stride[k] + w.kernel[k] - w.before[k] - w.after[k];
        }
        if (given.count >= 0 && given.count != pooled.ndim)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "output_shape has %lld entries", (long long)given.count);
        if (!lg__shape_valid(c->ctx, "MaxUnpool", pooled))
                return NULL;
        lg_tensor *zeros = lg_zeros(c->ctx, LG_SHAPE(lg__shape_numel(pooled)), .dtype = x->at.dtype,
                                    .device = x->storage->device->id);
        lg_tensor *y = lg_put(zeros, lg_cast(c->in[1], LG_I64), x);
        y = y ? lg_reshape(y, pooled) : NULL;
        if (!y || given.count < 0)
                return y;
        int64_t pads[2 * LG_MAX_DIMS] = {0};
        for (int i = 0; i < pooled.ndim; i++)
                pads[2 * (pooled.ndim - 1 - i) + 1] = given.v[i] - pooled.size[i];
        return lg_pad(y, ((lg_ints){2 * pooled.ndim, pads}));
}

LG__ONNX(LRN)
{
        return lg_local_response_norm(c->in[0], lg__onnx_int(c, "size", 0), .alpha = lg__onnx_float(c, "alpha", 1e-4),
                                      .beta = lg__onnx_float(c, "beta", 0.75), .k = lg__onnx_float(c, "bias", 1));
}

/* Sums the columns of windows back into an image: the adjoint of taking windows. */
LG__ONNX(Col2Im)
{
        lg__onnx_ints image, block;
        windows w = {.sides = 2};
        if (!lg__onnx_ints_in(c, 1, &image) || !lg__onnx_ints_in(c, 2, &block))
                return NULL;
        if (!lg__onnx_are_sizes(c, &image) || !lg__onnx_are_sizes(c, &block))
                return NULL;
        if (image.count != 2 || block.count != 2)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "images of %lld sides; libgrad has 2", (long long)image.count);
        for (int i = 1; i < SIDES; i++) {
                w.in[i] = image.v[i - 1];
                w.kernel[i] = block.v[i - 1];
        }
        w.in[0] = w.kernel[0] = 1;
        if (!take_sides(c, "strides", 2, 1, w.stride) || !take_sides(c, "dilations", 2, 1, w.dilation) ||
            !take_pads(c, &w))
                return NULL;
        const int64_t h = w.in[1] + w.before[1] + w.after[1], across = w.in[2] + w.before[2] + w.after[2];
        lg_tensor *y = lg_fold(c->in[0], 0, 0, .sizes = LG_PAIR(h, across), .kernels = pair(w.kernel),
                               .strides = pair(w.stride), .dilations = pair(w.dilation));
        return y ? lg_pad(y, LG_INTS(-w.before[2], -w.after[2], -w.before[1], -w.after[1])) : NULL;
}
