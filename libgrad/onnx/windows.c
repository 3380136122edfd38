/* windows.c - ONNX's convolutions, and the windows that they and pooling have. */
#include "windows.h"

bool lg__onnx_sides(const lg__onnx_call *c, const char *name, int sides, int64_t each, int64_t *ret)
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

bool lg__onnx_pads(const lg__onnx_call *c, lg__onnx_windows *w)
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

bool lg__onnx_windows_of(const lg__onnx_call *c, int kernel, lg__onnx_windows *ret)
{
        const lg_shape *s = &c->in[0]->at.shape, *k = kernel ? &c->in[kernel]->at.shape : NULL;
        ret->sides = s->ndim - 2;
        if (ret->sides < 1 || ret->sides > SIDES || (k && k->ndim != s->ndim))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its operand is %s; images have 1 to 3 sides",
                                     lg__tensor_text(c->in[0]).s);
        if (!kernel && !lg__onnx_attribute_of(c, "kernel_shape"))
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "kernel_shape is missing");
        if (!lg__onnx_sides(c, "kernel_shape", ret->sides, 1, ret->kernel) ||
            !lg__onnx_sides(c, "strides", ret->sides, 1, ret->stride) ||
            !lg__onnx_sides(c, "dilations", ret->sides, 1, ret->dilation))
                return false;
        for (int i = 0; i < SIDES; i++) {
                const int side = i - SIDES + ret->sides;
                ret->in[i] = side < 0 ? 1 : s->size[2 + side];
                ret->kernel[i] = k ? side < 0 ? 1 : k->size[2 + side] : ret->kernel[i];
                if (ret->in[i] > INT32_MAX || ret->kernel[i] > INT32_MAX)
                        return lg__onnx_fail(c, LG_ERR_SHAPE, "a side has %lld elements", (long long)ret->in[i]);
        }
        return lg__onnx_pads(c, ret);
}

lg_tensor *lg__onnx_padded(lg_tensor *x, lg__onnx_windows *w, double value)
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

/* ---- convolutions ---- */

LG__ONNX(Conv)
{
        lg__onnx_windows w;
        lg_tensor *x = c->in[0], *k = c->in[1], *b = lg__onnx_in(c, 2);
        const int64_t groups = lg__onnx_int(c, "group", 1);
        if (!lg__onnx_windows_of(c, 1, &w) || (!w.even && !(x = lg__onnx_padded(x, &w, 0))))
                return NULL;
        if (w.sides == 3)
                return lg_conv3d(x, k, b, .strides = triple(w.stride), .paddings = triple(w.before),
                                 .dilations = triple(w.dilation), .groups = groups);
        x = with_height(x);
        return without_height(&w, lg_conv2d(x, with_height(k), b, .strides = pair(w.stride), .paddings = pair(w.before),
                                            .dilations = pair(w.dilation), .groups = groups));
}

/* Returns the sums of all windows of a transposed convolution, without padding. */
static lg_tensor *spread(lg__onnx_call *c, const lg__onnx_windows *w)
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
static bool take_cuts(const lg__onnx_call *c, const lg__onnx_windows *w, int64_t *before, int64_t *after)
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

/* Returns y (N, C, ...) with b (C), which may be NULL, added. */
static lg_tensor *with_bias(lg_tensor *y, lg_tensor *b)
{
        lg_shape channels = {.ndim = y->at.shape.ndim};
        for (int i = 0; i < channels.ndim; i++)
                channels.size[i] = i == 1 ? y->at.shape.size[1] : 1;
        return b ? lg_add(y, lg_reshape(b, channels)) : y;
}

LG__ONNX(ConvTranspose)
{
        lg__onnx_windows w;
        lg_tensor *b = lg__onnx_in(c, 2);
        int64_t before[SIDES], after[SIDES], pads[2 * SIDES];
        if (!lg__onnx_windows_of(c, 1, &w) || !take_cuts(c, &w, before, after))
                return NULL;
        lg_tensor *y = spread(c, &w);
        for (int i = 0; i < w.sides; i++) {
                pads[2 * i] = -before[SIDES - 1 - i];
                pads[2 * i + 1] = -after[SIDES - 1 - i];
        }
        y = y ? lg_pad(y, ((lg_ints){2 * w.sides, pads})) : NULL;
        return y ? with_bias(y, b) : NULL;
}

/* Returns the sums of columns (N, C * elements, windows) of an image with 3 sides. */
static lg_tensor *spread_columns(const lg__onnx_call *c, const lg__onnx_windows *w)
{
        lg_tensor *x = c->in[0];
        const int64_t elements = w->kernel[0] * w->kernel[1] * w->kernel[2];
        int64_t windows[SIDES], pads[2 * SIDES];
        if (elements < 1 || elements > INT16_MAX || x->at.shape.size[1] % elements)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%s does not have windows of %lld elements", lg__tensor_text(x).s,
                                     (long long)elements);
        for (int i = 0; i < SIDES; i++) {
                const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1,
                              all = w->in[i] + w->before[i] + w->after[i];
                windows[i] = all < reach ? 0 : (all - reach) / w->stride[i] + 1;
                pads[2 * (SIDES - 1 - i)] = -w->before[i];
                pads[2 * (SIDES - 1 - i) + 1] = w->before[i] + w->in[i] - (windows[i] - 1) * w->stride[i] - reach;
        }
        const int64_t channels = x->at.shape.size[1] / elements;
        x = lg_reshape(x, LG_SHAPE(x->at.shape.size[0], x->at.shape.size[1], windows[0], windows[1], windows[2]));
        lg_tensor *one = lg_eye(c->ctx, elements, elements, .dtype = c->in[0]->at.dtype,
                                .device = c->in[0]->storage->device->id);
        one = lg_reshape(one, LG_SHAPE(elements, 1, w->kernel[0], w->kernel[1], w->kernel[2]));
        one = one ? lg_tile(one, LG_SHAPE(channels, 1, 1, 1, 1)) : NULL;
        lg_tensor *y = lg_conv_transpose3d(x, one, NULL, .strides = triple(w->stride), .dilations = triple(w->dilation),
                                           .groups = channels);
        return y ? lg_pad(y, ((lg_ints){2 * SIDES, pads})) : NULL;
}

/* Sums the columns of windows back into an image: the adjoint of taking windows. Those of images with 3 sides are
 * spread by a kernel for each place of a window. */
LG__ONNX(Col2Im)
{
        lg__onnx_ints image, block;
        lg__onnx_windows w = {.sides = 2};
        if (!lg__onnx_ints_in(c, 1, &image) || !lg__onnx_ints_in(c, 2, &block))
                return NULL;
        if (!lg__onnx_are_sizes(c, &image) || !lg__onnx_are_sizes(c, &block))
                return NULL;
        w.sides = (int)image.count;
        if (image.count != block.count || w.sides < 2 || w.sides > SIDES || c->in[0]->at.shape.ndim != 3)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "images of %lld sides; libgrad has 2 or 3",
                                     (long long)image.count);
        for (int i = 0; i < SIDES; i++) {
                const int k = i - SIDES + w.sides;
                w.in[i] = k < 0 ? 1 : image.v[k];
                w.kernel[i] = k < 0 ? 1 : block.v[k];
        }
        if (!lg__onnx_sides(c, "strides", w.sides, 1, w.stride) ||
            !lg__onnx_sides(c, "dilations", w.sides, 1, w.dilation) || !lg__onnx_pads(c, &w))
                return NULL;
        if (w.sides == 3)
                return spread_columns(c, &w);
        const int64_t h = w.in[1] + w.before[1] + w.after[1], across = w.in[2] + w.before[2] + w.after[2];
        lg_tensor *y = lg_fold(c->in[0], 0, 0, .sizes = LG_PAIR(h, across), .kernels = pair(w.kernel),
                               .strides = pair(w.stride), .dilations = pair(w.dilation));
        return y ? lg_pad(y, LG_INTS(-w.before[2], -w.after[2], -w.before[1], -w.after[1])) : NULL;
}

/* ---- deformable convolution ---- */

/* Returns where the windows read along side i, from -1 to 1 within the image, for each place of the kernel and of the
 * result: (N * groups, places * o1, o2, ...), of the offsets (N * groups, k1, k2, ..., sides, o1, o2, ...). */
static lg_tensor *places_along(const lg__onnx_windows *w, lg_tensor *offsets, int i)
{
        const lg_shape *o = &offsets->at.shape;
        const int k = SIDES - w->sides + i;
        const int64_t step = w->stride[k], gap = w->dilation[k], out = o->size[2 + w->sides + i];
        const double size = (double)w->in[k], first = (double)-w->before[k];
        const lg_device device = offsets->storage->device->id;
        lg_shape kernel = {.ndim = 2 * w->sides}, steps = kernel, places = {.ndim = 1 + w->sides};
        for (int d = 0; d < kernel.ndim; d++) {
                kernel.size[d] = d == i ? w->kernel[k] : 1;
                steps.size[d] = d == w->sides + i ? out : 1;
        }
        places.size[0] = o->size[0];
        places.size[1] = w->kernel[0] * w->kernel[1] * w->kernel[2] * o->size[2 + w->sides];
        for (int d = 2; d < places.ndim; d++)
                places.size[d] = o->size[1 + w->sides + d];
        lg_tensor *within = lg_arange(offsets->ctx, 0, (double)(w->kernel[k] * gap), (double)gap,
                                      .dtype = offsets->at.dtype, .device = device);
        lg_tensor *begins = lg_arange(offsets->ctx, first, first + (double)(out * step), (double)step,
                                      .dtype = offsets->at.dtype, .device = device);
        lg_tensor *fixed = lg_add(lg_reshape(within, kernel), lg_reshape(begins, steps));
        lg_tensor *at = fixed ? lg_add(lg_select(offsets, 1 + w->sides, i), fixed) : NULL;
        return at ? lg_reshape(lg_add_scalar(lg_mul_scalar(at, 2 / size), 1 / size - 1), places) : NULL;
}

/* Returns the elements that the windows read: (N, C, places, results). */
static lg_tensor *deformed_columns(const lg__onnx_call *c, const lg__onnx_windows *w, int64_t offset_groups)
{
        lg_tensor *x = c->in[0], *offsets = c->in[2], *mask = lg__onnx_in(c, 4), *places[SIDES];
        const lg_shape *s = &x->at.shape, *o = &offsets->at.shape;
        const int64_t elements = w->kernel[0] * w->kernel[1] * w->kernel[2], n = s->size[0] * offset_groups;
        lg_shape split = {.ndim = 2 + 2 * w->sides}, image = *s, ones = image;
        split.size[0] = image.size[0] = n;
        split.size[1 + w->sides] = w->sides;
        image.size[1] = s->size[1] / offset_groups;
        for (int i = 0; i < w->sides; i++) {
                split.size[1 + i] = w->kernel[SIDES - w->sides + i];
                split.size[2 + w->sides + i] = o->size[2 + i];
        }
        offsets = lg_reshape(offsets, split);
        for (int i = 0; i < w->sides && offsets; i++)
                places[w->sides - 1 - i] = places_along(w, offsets, i); /* a point is (x, y, z) */
        lg_tensor *grid = lg__ok(c->ctx) ? lg_stack((lg_list){w->sides, places}, -1) : NULL;
        lg_tensor *y = grid ? lg_grid_sample(lg_reshape(x, image), grid) : NULL;
        if (!y)
                return NULL;
        ones = y->at.shape;
        ones.size[1] = 1;
        y = mask ? lg_mul(y, lg_reshape(mask, ones)) : y;
        return y ? lg_reshape(y, LG_SHAPE(s->size[0], s->size[1], elements, -1)) : NULL;
}

/* Reads x where offsets move the windows to, between its elements, and multiplies by the kernel. */
LG__ONNX(DeformConv)
{
        lg__onnx_windows w;
        const int64_t groups = lg__onnx_int(c, "group", 1), offset_groups = lg__onnx_int(c, "offset_group", 1);
        const lg_shape *s = &c->in[0]->at.shape, *k = &c->in[1]->at.shape, *o = &c->in[2]->at.shape;
        if (!lg__onnx_windows_of(c, 1, &w))
                return NULL;
        const int64_t elements = lg__shape_numel(*k) == 0 ? 0 : w.kernel[0] * w.kernel[1] * w.kernel[2];
        if (w.sides < 2 || o->ndim != s->ndim || groups < 1 || groups > INT32_MAX || offset_groups < 1 ||
            offset_groups > INT32_MAX || s->size[1] % offset_groups || k->size[0] % groups ||
            lg__shape_numel(*s) == 0 || lg__shape_numel(*o) == 0 || elements == 0 || s->size[1] % groups ||
            k->size[1] != s->size[1] / groups || o->size[0] != s->size[0] || o->size[1] % offset_groups ||
            o->size[1] / offset_groups != elements * w.sides)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "operands %s, %s and %s", lg__tensor_text(c->in[0]).s,
                                     lg__tensor_text(c->in[1]).s, lg__tensor_text(c->in[2]).s);
        lg_shape shape = *o;
        shape.size[1] = k->size[0];
        lg_tensor *columns = deformed_columns(c, &w, offset_groups);
        columns = columns ? lg_reshape(columns, LG_SHAPE(s->size[0], groups, k->size[1] * elements, -1)) : NULL;
        lg_tensor *y =
                lg_matmul(lg_reshape(c->in[1], LG_SHAPE(groups, k->size[0] / groups, k->size[1] * elements)), columns);
        y = y ? lg_reshape(y, shape) : NULL;
        return y ? with_bias(y, lg__onnx_in(c, 3)) : NULL;
}
