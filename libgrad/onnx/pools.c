/* pools.c - ONNX's pooling. */
#include <math.h>
#include "windows.h"

static lg_tensor *max_pool(lg_tensor *x, const lg__onnx_windows *w, bool ceil, lg_tensor **indices)
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
static lg_tensor *whole_indices(const lg__onnx_call *c, const lg__onnx_windows *w, lg_tensor *indices)
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
        lg__onnx_windows w;
        lg_tensor *x = c->in[0], *indices = NULL;
        const lg_dtype dtype = x->at.dtype;
        const bool ceil = lg__onnx_int(c, "ceil_mode", 0), wanted = lg__onnx_wants(c, 1);
        x = lg__dtype_float(dtype) ? x : lg_cast(x, LG_F32);
        if (!x || !lg__onnx_windows_of(c, 0, &w))
                return NULL;
        bool wide = !w.even; /* the library pads evenly, by at most half a kernel */
        for (int i = 0; i < SIDES; i++)
                wide = wide || 2 * w.before[i] > w.kernel[i];
        if (wide && wanted)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "indices with uneven or wide padding");
        if (wide && !(x = lg__onnx_padded(x, &w, -INFINITY)))
                return NULL;
        lg_tensor *y = max_pool(x, &w, ceil, wanted ? &indices : NULL);
        if (y && indices)
                c->out[1] = whole_indices(c, &w, indices);
        return y && y->at.dtype != dtype ? lg_cast(y, dtype) : y;
}

static lg_tensor *avg_pool(lg_tensor *x, const lg__onnx_windows *w, bool ceil, bool count_padding)
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
static double elements_of(const lg__onnx_windows *w)
{
        return (double)w->kernel[0] * (double)w->kernel[1] * (double)w->kernel[2];
}

/* Computes the means of windows with gaps by a convolution of each channel with ones. */
static lg_tensor *avg_dilated(lg_tensor *x, const lg__onnx_windows *w)
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
        lg__onnx_windows w, of_ones;
        lg_tensor *x = c->in[0];
        bool ceil = lg__onnx_int(c, "ceil_mode", 0), gaps = false;
        const bool count = lg__onnx_int(c, "count_include_pad", 0);
        if (!lg__onnx_windows_of(c, 0, &w))
                return NULL;
        bool wide = !w.even;
        for (int i = 0; i < SIDES; i++) {
                wide = wide || 2 * w.before[i] > w.kernel[i];
                gaps = gaps || w.dilation[i] > 1;
        }
        if (!wide && !gaps)
                return avg_pool(x, &w, ceil, count);
        /* the last windows of .ceil_mode reach beyond the padding, which never counts */
        lg__onnx_windows room = w;
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
                ones = lg__onnx_padded(ones, &of_ones, 1);
                for (int i = 0; i < SIDES; i++) {
                        of_ones.before[i] = 0;
                        of_ones.after[i] = room.after[i] - w.after[i];
                }
        } else
                of_ones = room;
        ones = ones ? lg__onnx_padded(ones, &of_ones, 0) : NULL;
        x = ones ? lg__onnx_padded(x, &room, 0) : NULL;
        if (!x)
                return NULL;
        return gaps ? lg_div(avg_dilated(x, &room), avg_dilated(ones, &room))
                    : lg_div(avg_pool(x, &room, false, true), avg_pool(ones, &room, false, true));
}

LG__ONNX(LpPool)
{
        lg__onnx_windows w;
        const double p = lg__onnx_attribute_of(c, "p") ? (double)lg__onnx_int(c, "p", 2) : 2;
        lg_tensor *x = c->in[0];
        if (!lg__onnx_windows_of(c, 0, &w))
                return NULL;
        const double size = elements_of(&w);
        bool gaps = false;
        for (int i = 0; i < SIDES; i++)
                gaps = gaps || w.dilation[i] > 1;
        x = lg_pow_scalar(lg_abs(x), p);
        x = x ? lg__onnx_padded(x, &w, 0) : NULL;
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
        lg__onnx_windows w;
        lg__onnx_ints given;
        lg_tensor *x = c->in[0];
        if (!lg__onnx_windows_of(c, 0, &w) || !lg__onnx_ints_in(c, 2, &given) || !lg__onnx_are_sizes(c, &given))
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
