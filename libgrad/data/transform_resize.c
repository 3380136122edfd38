/* transform_resize.c - resizes images by bilinear interpolation, antialiased if they become smaller.
 *
 * y(i) = sum over k of w(k) x(k), where w is a triangle centred at (i + 1/2) in / out, its base two pixels of the input
 * or output, whichever are larger, its sum 1. Rows are resized first, then columns (Pillow's BILINEAR, torchvision's
 * with antialias). u8 pixels are rounded after each pass; their weights are integers scaled by 2^22, as in Pillow.
 */
#include <math.h>
#include <string.h>
#include "transform.h"

/* Weights for one dimension: output i is the weighted sum of count[i] inputs from first[i] on. */
typedef struct axis {
        int64_t in, out, taps; /* sizes of input and output; most weights of an output */
        double scale;          /* half the base of the triangle, in pixels of the input */
        int64_t *first, *count;
        void *weights; /* (out, taps) weights, of the type that sums are computed in */
} axis;

static uint8_t byte_of(uint32_t sum)
{
        sum = (sum + (1u << 21)) >> 22;
        return (uint8_t)(sum > 255 ? 255 : sum);
}

/* Resizes row `row` of one channel from a->in to a->out pixels, each a weighted sum of neighbouring pixels. */
static void resize_across(lg_dtype dtype, const void *from, void *to, const axis *a, int64_t row)
{
        LG__WITH_PIXEL(dtype, uint32_t, {
                const pixel *x = (const pixel *)from + row * a->in;
                pixel *y = (pixel *)to + row * a->out;
                const real *weights = a->weights;
                for (int64_t j = 0; j < a->out; j++, weights += a->taps) {
                        real sum = 0;
                        for (int64_t k = 0; k < a->count[j]; k++)
                                sum += (real)x[a->first[j] + k] * weights[k];
                        y[j] = is_bytes ? (pixel)byte_of((uint32_t)sum) : (pixel)sum;
                }
        });
}

/* Computes row i of the resized channel, a weighted sum of rows of `from`. `sums` is memory for one row of sums. */
static void resize_down(lg_dtype dtype, const void *from, void *to, int64_t width, const axis *a, int64_t i, void *sums)
{
        LG__WITH_PIXEL(dtype, uint32_t, {
                pixel *y = (pixel *)to + i * width;
                real *sum = sums;
                for (int64_t j = 0; j < width; j++)
                        sum[j] = 0;
                for (int64_t k = 0; k < a->count[i]; k++) {
                        const pixel *row = (const pixel *)from + (a->first[i] + k) * width;
                        const real w = ((const real *)a->weights)[i * a->taps + k];
                        for (int64_t j = 0; j < width; j++)
                                sum[j] += (real)row[j] * w;
                }
                for (int64_t j = 0; j < width; j++)
                        y[j] = is_bytes ? (pixel)byte_of((uint32_t)sum[j]) : (pixel)sum[j];
        });
}

/* Scratch memory: weights of both dimensions, float weights of one output, sums of a row, a channel between passes. */
typedef struct layout {
        axis y, x;
        double *one;
        void *sums, *between;
        size_t bytes;
} layout;

static size_t sum_bytes(lg_dtype dtype)
{
        return dtype == LG_F64 ? 8 : 4;
}

/* Returns the next `bytes` of scratch memory and advances *at; returns NULL if scratch is NULL, to find the total. */
static void *place(char *scratch, size_t *at, size_t bytes)
{
        void *p = scratch ? scratch + *at : NULL;
        *at += lg__aligned(bytes + 1);
        return p;
}

static axis lay_axis(int64_t in, int64_t out, lg_dtype dtype, char *scratch, size_t *at)
{
        axis a = {.in = in, .out = out, .scale = in > out ? (double)in / (double)out : 1};
        a.taps = 2 * (int64_t)ceil(a.scale) + 1;
        a.first = place(scratch, at, (size_t)out * sizeof *a.first);
        a.count = place(scratch, at, (size_t)out * sizeof *a.count);
        a.weights = place(scratch, at, (size_t)(out * a.taps) * sum_bytes(dtype));
        return a;
}

static layout lay(const lg__resizing *r, const lg__image *n, lg_dtype dtype, char *scratch)
{
        layout l = {.bytes = 0};
        l.y = lay_axis(n->h, r->height, dtype, scratch, &l.bytes);
        l.x = lay_axis(n->w, r->width, dtype, scratch, &l.bytes);
        l.one = place(scratch, &l.bytes, (size_t)(l.x.taps > l.y.taps ? l.x.taps : l.y.taps) * sizeof *l.one);
        l.sums = place(scratch, &l.bytes, (size_t)r->width * sum_bytes(dtype));
        l.between = place(scratch, &l.bytes, (size_t)(n->h * r->width) * lg__dtype_bytes(dtype));
        return l;
}

static bool infer_resize(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const lg__resizing *r = (const lg__resizing *)t;
        const lg__image n = lg__image_of(in);
        if (n.h < 1 || n.w < 1 || n.h > 1 << 24 || n.w > 1 << 24)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s; height and width must be from 1 to %d", t->kind->op,
                                in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s, 1 << 24);
        *ret_scratch = lay(r, &n, in->dtype, NULL).bytes;
        return lg__shape_valid(c, t->kind->op, LG_SHAPE(n.h, r->width)) &&
               lg__infer_resized(t, c, in, ret, ret_scratch);
}

static void find_weights(axis *a, lg_dtype dtype, double *one)
{
        const double step = (double)a->in / (double)a->out;
        for (int64_t i = 0; i < a->out; i++) {
                const double center = ((double)i + 0.5) * step, low = center - a->scale + 0.5;
                const int64_t end = (int64_t)(center + a->scale + 0.5);
                double sum = 0;
                a->first[i] = low < 0 ? 0 : (int64_t)low;
                a->count[i] = (end < a->in ? end : a->in) - a->first[i];
                for (int64_t k = 0; k < a->count[i]; k++) {
                        double off = fabs(((double)(a->first[i] + k) - center + 0.5) / a->scale);
                        one[k] = off < 1 ? 1 - off : 0;
                        sum += one[k];
                }
                LG__WITH_PIXEL(dtype, uint32_t, {
                        real *weights = (real *)a->weights + i * a->taps;
                        for (int64_t k = 0; k < a->count[i]; k++)
                                weights[k] = (real)(is_bytes ? one[k] / sum * (1 << 22) + 0.5 : one[k] / sum);
                });
        }
}

static bool run_resize(const lg_transform *t, const lg__step *s)
{
        const lg__resizing *r = (const lg__resizing *)t;
        const lg_dtype dtype = s->in->dtype;
        const size_t size = lg__dtype_bytes(dtype);
        const lg__image n = lg__image_of(s->in);
        layout l = lay(r, &n, dtype, s->scratch);
        find_weights(&l.x, dtype, l.one);
        find_weights(&l.y, dtype, l.one);
        for (int64_t c = 0; c < n.c; c++) {
                const char *from = (const char *)s->from + (size_t)(c * n.h * n.w) * size;
                char *to = (char *)s->to + (size_t)(c * r->height * r->width) * size;
                for (int64_t i = 0; i < n.h && n.w != r->width; i++)
                        resize_across(dtype, from, l.between, &l.x, i);
                const char *rows = n.w == r->width ? from : l.between;
                for (int64_t i = 0; i < r->height && n.h != r->height; i++)
                        resize_down(dtype, rows, to, r->width, &l.y, i, l.sums);
                if (n.h == r->height)
                        memcpy(to, rows, (size_t)(r->height * r->width) * size);
        }
        return true;
}

static const lg__transform_kind resize_kind = {
        .op = "lg_transform_resize",
        .infer = infer_resize,
        .run = run_resize,
        .bytes = sizeof(lg__resizing),
        .images = true,
};

lg_transform *lg_transform_resize(lg_ctx *c, int64_t height, int64_t width)
{
        return lg__transform_of_size(c, &resize_kind, height, width);
}
