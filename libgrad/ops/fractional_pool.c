/* fractional_pool.c - fractional_max_pool2d and 3d: the maxima of windows at random places. Made of other ops.
 *
 * Along a side with n elements, window i of m begins at floor((i + u) a) - floor(u a), where a = (n - kernel) / (m - 1)
 * and u is a random number of the image's channel; the last window ends at the last element (Graham, 2014).
 */
#include "gather.h"
#include "images.h"

/* Union of the options of both functions. */
typedef struct fractional_options {
        int64_t size;
        lg_triple kernels, sizes;
        double ratio;
        lg_numbers_in ratios;
        lg_tensor **indices;
} fractional_options;

typedef struct arguments {
        int64_t kernel;
        int spaces; /* number of spatial dimensions, 2 or 3 */
        fractional_options o;
} arguments;

/* Sets the sizes of the result from those of x. Exactly one of the options says them. */
static bool sizes_of(const lg__call *call, const fractional_options *o, const int64_t *in, int64_t *out)
{
        const int spaces = ((const arguments *)call->attributes)->spaces;
        const bool by_size = o->size || o->sizes.given;
        if (by_size + (o->ratio != 0) + (o->ratios.count != 0) != 1 || (o->ratios.count && o->ratios.count != spaces))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: exactly one of size, sizes, ratio and ratios, a ratio for each side, is given",
                                call->op->name);
        for (int d = 0; d < spaces; d++) {
                const double ratio = o->ratios.count ? o->ratios.items[d] : o->ratio;
                if (!by_size && !(ratio > 0 && ratio < 1))
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: ratio %g; it is between 0 and 1",
                                        call->op->name, ratio);
                out[d] = by_size ? lg__side_of(spaces, d, o->sizes, o->size) : (int64_t)((double)in[d] * ratio);
        }
        return true;
}

/* Returns the coordinates (n, windows, kernel) along a side of the elements of each window; u is (n, 1). */
static lg_tensor *places_of(lg_tensor *u, int64_t in, int64_t out, int64_t kernel)
{
        double a = out > 1 ? (double)(in - kernel) / (double)(out - 1) : 0;
        if (u->at.dtype == LG_F32 && out > 1)
                a = (float)(in - kernel) / (float)(out - 1);
        lg_tensor *numbers = lg_cast(lg__numbers(u, out - 1), u->at.dtype);
        lg_tensor *first = lg_floor(lg_mul_scalar(u, a));
        lg_tensor *start = lg_sub(lg_floor(lg_mul_scalar(lg_add(u, numbers), a)), first);
        start = lg_cast(lg_clamp(start, 0, (double)(in - kernel)), LG_I64);
        lg_tensor *last = start ? lg_full_like(lg_slice(first, 1, 0, 1), (double)(in - kernel), .dtype = LG_I64) : NULL;
        start = lg_unsqueeze(lg_cat(LG_LIST(start, last), 1), 2);
        return start ? lg_add(start, lg__numbers(u, kernel)) : NULL;
}

/* Returns the indices (n, windows, elements) of the elements of each window; random numbers are (n, spaces). */
static lg_tensor *windows_of(lg_tensor *samples, int spaces, const int64_t *in, const int64_t *out,
                             const int64_t *kernel)
{
        const int64_t n = samples->at.shape.size[0];
        int64_t windows = 1, elements = 1;
        lg_tensor *index = NULL;
        for (int d = 0; d < spaces && (index || !d); d++) {
                const int from = spaces == 2 ? 1 - d : d; /* as in PyTorch */
                lg_tensor *u = lg_slice(samples, 1, from, from + 1);
                lg_tensor *place = u ? places_of(u, in[d], out[d], kernel[d]) : NULL;
                if (!place)
                        return NULL;
                place = lg_reshape(place, LG_SHAPE(n, 1, out[d], 1, kernel[d]));
                if (index) {
                        index = lg_mul_scalar(index, (double)in[d]);
                        place = lg_add(lg_reshape(index, LG_SHAPE(n, windows, 1, elements, 1)), place);
                }
                windows *= out[d];
                elements *= kernel[d];
                index = lg_reshape(place, LG_SHAPE(n, windows, elements));
        }
        return index;
}

/* Returns the random numbers (N C, spaces) of samples (N, C, spaces), or new ones; in f32 for 16-bit floats. */
static lg_tensor *samples_of(const lg__call *call, const lg_shape *s, int spaces)
{
        lg_tensor *x = call->in[0], *given = call->in[1];
        const lg_shape shape = LG_SHAPE(s->size[0], s->size[1], spaces),
                       lines = LG_SHAPE(s->size[0] * s->size[1], spaces);
        if (!given)
                return lg_uniform(call->ctx, 0, 1, lines, .dtype = x->at.dtype == LG_F64 ? LG_F64 : LG_F32,
                                  .device = x->storage->device->id);
        if (!lg__shape_equal(given->at.shape, shape) || given->at.dtype != x->at.dtype)
                return lg__fail(call->ctx, given->at.dtype != x->at.dtype ? LG_ERR_DTYPE : LG_ERR_SHAPE,
                                "%s: x is %s and samples are %s; they are of x's dtype and %s", call->op->name,
                                lg__tensor_text(x).s, lg__tensor_text(given).s, lg__shape_text(shape).s);
        return lg_reshape(lg__widened(lg_detach(given)), lines);
}

/* Checks that windows fit, and that the product of all sides fits an index. */
static bool windows_fit(const lg__call *call, const fractional_options *o, const int64_t *in, const int64_t *out,
                        int64_t *kernel)
{
        const arguments *p = call->attributes;
        for (int d = 0; d < p->spaces; d++) {
                kernel[d] = lg__side_of(p->spaces, d, o->kernels, p->kernel);
                if (kernel[d] < 1 || out[d] < 1 || out[d] > in[d] || kernel[d] > in[d] - out[d] + 1)
                        return lg__fail(call->ctx, kernel[d] < 1 || out[d] < 1 ? LG_ERR_ARGUMENT : LG_ERR_SHAPE,
                                        "%s: %lld windows of %lld in a side of %lld; both are above 0, and their sum "
                                        "is at most the side + 1",
                                        call->op->name, (long long)out[d], (long long)kernel[d], (long long)in[d]);
        }
        return true;
}

static lg_tensor *compose(const lg__call *call)
{
        const arguments *p = call->attributes;
        const fractional_options *o = &p->o;
        int64_t out[3], kernel[3];
        lg_tensor *x = lg__as_images(call, p->spaces);
        if (!x || !lg__has_pixels(call, x))
                return NULL;
        lg_shape s = x->at.shape;
        const int64_t *in = &s.size[2], n = s.size[0] * s.size[1];
        if (!sizes_of(call, o, in, out) || !windows_fit(call, o, in, out, kernel))
                return NULL;
        int64_t pixels = in[0] * in[1] * (p->spaces == 3 ? in[2] : 1);
        lg_tensor *lines = lg_reshape(x, LG_SHAPE(n, pixels)), *samples = samples_of(call, &s, p->spaces);
        lg_tensor *index = samples ? windows_of(samples, p->spaces, in, out, kernel) : NULL;
        if (!index)
                return NULL;
        const int64_t windows = index->at.shape.size[1], elements = index->at.shape.size[2];
        lg_tensor *values = lg_gather(lg_detach(lines), 1, lg_reshape(index, LG_SHAPE(n, windows * elements)));
        lg_tensor *best =
                lg_unsqueeze(lg_argmax(lg_reshape(values, LG_SHAPE(n, windows, elements)), .dims = LG_DIMS(-1)), 2);
        index = best ? lg_squeeze(lg_gather(index, 2, best), LG_DIMS(2)) : NULL;
        lg_tensor *y = index ? lg_gather(lines, 1, index) : NULL;
        for (int d = 0; d < p->spaces; d++)
                s.size[2 + d] = out[d];
        y = lg__as_given(call, lg_reshape(y, s), p->spaces);
        index = lg__as_given(call, lg_reshape(index, s), p->spaces);
        if (y && index && o->indices)
                *o->indices = index;
        return index ? y : NULL;
}

#define AS_IT_IS(triple) triple
#define FRACTIONAL(of, dims, as)                                                                                       \
        LG__DEFINE(of, .compose = compose, LG__OPERANDS({"x", LG__FLOAT}, {"samples", LG__FLOAT, .optional = true}))   \
        lg_tensor *lg_##of##_with(lg_tensor *x, int64_t kernel, const lg_##of##_options *options)                      \
        {                                                                                                              \
                lg_##of##_options o;                                                                                   \
                if (!lg__take(lg__ctx_of(x), #of, options, &o, sizeof o) ||                                            \
                    !lg__list_ok(lg__ctx_of(x), #of, o.ratios.count, o.ratios.items))                                  \
                        return NULL;                                                                                   \
                return LG__APPLY(of,                                                                                   \
                                 (&(arguments){kernel,                                                                 \
                                               dims,                                                                   \
                                               {o.size, as(o.kernels), as(o.sizes), o.ratio, o.ratios, o.indices}}),   \
                                 x, o.samples);                                                                        \
        }
FRACTIONAL(fractional_max_pool2d, 2, lg__deepened)
FRACTIONAL(fractional_max_pool3d, 3, AS_IT_IS)
