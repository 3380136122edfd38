/* conv_volumes.c - convolution of volumes by convolutions of images.
 *
 * The slices that a window covers along the depth become the channels of one image: with x_t the slices at i * stride -
 * padding + t * dilation, zero outside the volume, output slice i is the 2-d convolution of the channels (t, c) of
 * x_t with the weights w[o, (t, c)]. The derivative by x gathers the slices of g, that by w the slices of x. Slices are
 * gathered for a part of the result at a time.
 */
#include <string.h>
#include "images.h"

#define HOST_BYTES 0x1p22   /* bytes of the gathered slices of a part: caches keep them */
#define DEVICE_BYTES 0x1p28 /* the same for other devices, where few launches count more */

/* Slices of `from` (N, C, D, H, W), gathered for slices [first, first + count) of `samples` samples of the result. */
typedef struct part {
        const lg_tensor *from;
        lg_tensor *to; /* (samples, count, pixels, groups, taps, C / groups), contiguous */
        const lg__side *depth;
        int64_t taps, groups, channels, pixels; /* channels: of a group */
        int64_t sample, samples, first, count;
} part;

static int64_t ceil_div(int64_t a, int64_t b)
{
        return a >= 0 ? a / b + (a % b > 0) : -(-a / b);
}

static int64_t limited(int64_t x, int64_t low, int64_t high)
{
        return x < low ? low : x > high ? high : x;
}

/* Returns channel c of tap `tap` in every `step`th slice of p->to from slice `at` of the part on, `count` of them. */
static lg_tensor slots(const part *p, int64_t tap, int64_t at, int64_t step, int64_t count)
{
        lg_tensor t = *p->to;
        const int64_t row = p->groups * p->taps * p->channels, image = p->pixels * row;
        const int64_t strides[] = {p->count * image, step * image, row, p->taps * p->channels, 1};
        t.at.shape = LG_SHAPE(p->samples, count, p->pixels, p->groups, p->channels);
        memcpy(t.at.strides, strides, sizeof strides);
        t.at.offset += at * image + tap * p->channels;
        return t;
}

/* Returns every `step`th slice of p->from from slice `at` on, `count` of them. */
static lg_tensor slices(const part *p, int64_t at, int64_t step, int64_t count)
{
        lg_tensor t = *p->from;
        const int64_t row = p->groups * p->channels, image = p->pixels * row, depth = t.at.shape.size[2];
        const int64_t strides[] = {depth * image, step * image, row, p->channels, 1};
        t.at.shape = LG_SHAPE(p->samples, count, p->pixels, p->groups, p->channels);
        memcpy(t.at.strides, strides, sizeof strides);
        t.at.offset += p->sample * strides[0] + at * image;
        return t;
}

static bool clear(const part *p, int64_t tap, int64_t at, int64_t count)
{
        lg_tensor t = slots(p, tap, at, 1, count > 0 ? count : 0);
        return count <= 0 || lg__fill_values(&t, 0, "conv");
}

/* Gathers the slices of one tap. `back`: a slice of the result gets the slices of the windows that contain it. */
static bool gather(const part *p, int64_t tap, bool back)
{
        const lg__side *d = p->depth;
        const int64_t depth = p->from->at.shape.size[2], stride = d->stride, shift = tap * d->dilation - d->padding;
        const int64_t end = p->first + p->count;
        int64_t low, high, at; /* the gathered slices: of the result, or if `back` of p->from */
        if (back) {
                low = limited(ceil_div(p->first - shift, stride), 0, depth);
                high = limited(ceil_div(end - shift, stride), low, depth);
                at = low * stride + shift - p->first;
        } else {
                low = limited(ceil_div(-shift, stride), p->first, end);
                high = limited(ceil_div(depth - shift, stride), low, end);
                at = low - p->first;
        }
        const int64_t count = high - low, step = back ? stride : 1;
        const bool between = step > 1 || count == 0;
        if (between ? !clear(p, tap, 0, p->count)
                    : !clear(p, tap, 0, at) || !clear(p, tap, at + count, p->count - at - count))
                return false;
        if (count == 0)
                return true;
        lg_tensor to = slots(p, tap, at, step, count);
        const lg_tensor from = slices(p, back ? low : low * stride + shift, back ? 1 : stride, count);
        return lg__copy_values(&to, &from, "conv");
}

/* Copies `from` (outer, a, b, inner) to `to` (outer, b, a, inner). */
static bool turn(const lg_tensor *from, lg_tensor *to, int64_t outer, int64_t a, int64_t b, int64_t inner)
{
        lg_tensor x = *from, y = *to;
        const int64_t of_x[] = {a * b * inner, b * inner, inner, 1}, of_y[] = {a * b * inner, inner, a * inner, 1};
        x.at.shape = y.at.shape = LG_SHAPE(outer, a, b, inner);
        memcpy(x.at.strides, of_x, sizeof of_x);
        memcpy(y.at.strides, of_y, sizeof of_y);
        return lg__copy_values(&y, &x, "conv");
}

static const void *beyond(const void *data, int64_t elements, lg_dtype dtype)
{
        return data ? (const char *)data + elements * (int64_t)lg__dtype_bytes(dtype) : NULL;
}

/* Convolves slices [first, first + count) of samples of the result, or gathers all for the derivative by w. */
static bool convolve_part(const lg__call *call, const lg_conv_args *k, part *p, int64_t slices_of_result)
{
        const bool back = k->kind == LG_CONV_INPUT_GRAD;
        const int64_t image = back ? k->at.in[0] * k->at.in[1] * k->channels : k->at.out[0] * k->at.out[1] * k->outputs;
        const int64_t done = (p->sample * slices_of_result + p->first) * image;
        lg_conv_args a = *k;
        for (int64_t t = 0; t < p->taps; t++)
                if (!gather(p, t, back))
                        return false;
        *(back ? &a.g : &a.x) = lg__data(p->to);
        *(back ? &a.outputs : &a.channels) *= p->taps;
        a.n = p->samples * p->count;
        if (k->kind != LG_CONV_WEIGHT_GRAD) {
                a.out = (void *)(uintptr_t)beyond(k->out, done, k->dtype);
                a.z = beyond(k->z, done, k->dtype);
        }
        return LG__RUN(call->device, call->op->name, conv, &a);
}

/* Convolves all parts, with weights k->w in the order of the gathered channels. */
static bool convolve(const lg__call *call, const lg_conv_args *k, part *p, int64_t result)
{
        const bool all = k->kind == LG_CONV_WEIGHT_GRAD, host = call->device->id.type == LG_DEVICE_CPU;
        const double slice = (double)p->pixels * (double)p->groups * (double)p->taps * (double)p->channels *
                             (double)lg__dtype_bytes(k->dtype);
        const double fit = (host ? HOST_BYTES : DEVICE_BYTES) / (slice > 1 ? slice : 1);
        const int64_t each = fit < 1 ? 1 : (int64_t)fit, parts = ceil_div(result, each);
        const int64_t samples = all ? k->n : limited(each / (result ? result : 1), 1, k->n ? k->n : 1);
        const int64_t count = all || parts <= 1 ? result : ceil_div(result, parts);
        p->to = lg_empty(call->ctx, LG_SHAPE(samples, count, p->pixels, p->groups, p->taps, p->channels),
                         .dtype = k->dtype, .device = call->device->id);
        bool ok = p->to != NULL;
        for (p->sample = 0; ok && (p->sample < k->n || (all && p->sample == 0)); p->sample += samples ? samples : 1)
                for (p->first = 0; ok && (p->first < result || (all && p->first == 0)); p->first += count ? count : 1) {
                        p->samples = limited(samples, 0, k->n - p->sample);
                        p->count = limited(count, 0, result - p->first);
                        ok = convolve_part(call, k, p, result);
                }
        return ok;
}

static bool by_images(const lg__call *call, const lg_conv_args *k, const lg__side *depth)
{
        const bool back = k->kind == LG_CONV_INPUT_GRAD, by_weight = k->kind == LG_CONV_WEIGHT_GRAD;
        const int64_t groups = k->at.groups, area = k->at.kernel[0] * k->at.kernel[1], taps = depth->kernel;
        const int64_t each = k->channels / groups, pixels[] = {k->at.in[0] * k->at.in[1], k->at.out[0] * k->at.out[1]};
        const lg_tensor *from = call->in[by_weight ? 1 : 0];
        part p = {from, NULL, depth, taps, groups, back ? k->outputs / groups : each, pixels[back ? 1 : 0]};
        lg_tensor *w = lg_empty(call->ctx, LG_SHAPE(k->outputs, taps, each, area), .dtype = k->dtype,
                                .device = call->device->id);
        lg_conv_args a = *k;
        if (!w || (back && !turn(call->in[1], w, groups, k->outputs / groups * each, taps, area)) ||
            (!back && !by_weight && !turn(call->in[1], w, k->outputs, each, taps, area)))
                return false;
        if (by_weight)
                a.out = lg__data(w);
        else
                a.w = lg__data(w);
        return convolve(call, &a, &p, back ? depth->in : depth->out) &&
               (!by_weight || turn(w, call->out[0], k->outputs, taps, each, area));
}

bool lg__conv_volumes(const lg__call *call, const lg_conv_args *k, const lg__side *depth)
{
        if (depth->kernel == 1 && depth->stride == 1 && depth->padding == 0) {
                lg_conv_args flat = *k; /* a batch of all slices */
                if (__builtin_mul_overflow(k->n, depth->in, &flat.n))
                        flat.n = 0; /* images without pixels or channels */
                return LG__RUN(call->device, call->op->name, conv, &flat);
        }
        const lg_scope scope = lg_scope_begin(call->ctx);
        const bool done = scope.id && by_images(call, k, depth);
        lg_scope_end(call->ctx, scope);
        return done;
}
