/* transform_resize.c - images of another size, bilinear, and smoothed where they become smaller.
 *
 * y(i) = sum over k of w(k) x(k), with w a triangle about (i + 1/2) in / out as wide as two pixels of the input or of
 * the output, whichever is more, of sum 1: first along rows, then along columns (Pillow's BILINEAR, torchvision's with
 * antialias). Bytes are rounded after each; their weights have 22 bits behind the point, as Pillow's.
 */
#include <math.h>
#include <string.h>
#include "transform.h"

/* The weights of one dimension: output i sums `count` inputs from `first` on. */
typedef struct axis {
        int64_t in, out, taps; /* taps: of one output, at most */
        double scale;          /* of the triangle, in inputs */
        int64_t *first, *count;
        void *weights; /* of the type that sums are made in */
} axis;

static uint8_t byte_of(uint32_t sum)
{
        sum = (sum + (1u << 21)) >> 22;
        return (uint8_t)(sum > 255 ? 255 : sum);
}

#define NAME(name) name##_u8
#define PIXEL uint8_t
#define SUM uint32_t
#define WEIGHT(w) (uint32_t)((w) * (1 << 22) + 0.5)
#define STORE(sum) byte_of(sum)
#include "transform_resize.inc"
#define NAME(name) name##_f32
#define PIXEL float
#define SUM float
#define WEIGHT(w) (float)(w)
#define STORE(sum) (sum)
#include "transform_resize.inc"
#define NAME(name) name##_f64
#define PIXEL double
#define SUM double
#define WEIGHT(w) (w)
#define STORE(sum) (sum)
#include "transform_resize.inc"

typedef struct resize {
        lg_transform head;
        int64_t height, width;
} resize;

/* The scratch: the weights of both dimensions, those of one output, the sums of a row, a channel after the first pass.
 */
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

static void *take(char *scratch, size_t *at, size_t bytes)
{
        void *p = scratch ? scratch + *at : NULL;
        *at += lg__aligned(bytes + 1);
        return p;
}

static axis lay_axis(int64_t in, int64_t out, lg_dtype dtype, char *scratch, size_t *at)
{
        axis a = {.in = in, .out = out, .scale = in > out ? (double)in / (double)out : 1};
        a.taps = 2 * (int64_t)ceil(a.scale) + 1;
        a.first = take(scratch, at, (size_t)out * sizeof *a.first);
        a.count = take(scratch, at, (size_t)out * sizeof *a.count);
        a.weights = take(scratch, at, (size_t)(out * a.taps) * sum_bytes(dtype));
        return a;
}

static layout lay(const resize *r, const lg__image *n, lg_dtype dtype, char *scratch)
{
        layout l = {.bytes = 0};
        l.y = lay_axis(n->h, r->height, dtype, scratch, &l.bytes);
        l.x = lay_axis(n->w, r->width, dtype, scratch, &l.bytes);
        l.one = take(scratch, &l.bytes, (size_t)(l.x.taps > l.y.taps ? l.x.taps : l.y.taps) * sizeof *l.one);
        l.sums = take(scratch, &l.bytes, (size_t)r->width * sum_bytes(dtype));
        l.between = take(scratch, &l.bytes, (size_t)(n->h * r->width) * lg__dtype_bytes(dtype));
        return l;
}

static bool resize_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const resize *r = (const resize *)t;
        lg__image n;
        if (!lg__image_field(c, t->kind->op, in, &n))
                return false;
        if (n.h < 1 || n.w < 1 || n.h > 1 << 24 || n.w > 1 << 24)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s; height and width must be from 1 to %d", t->kind->op,
                                in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s, 1 << 24);
        *ret_scratch = lay(r, &n, in->dtype, NULL).bytes;
        return lg__shape_valid(c, t->kind->op, LG_SHAPE(n.h, r->width)) &&
               lg__image_resized(c, t->kind->op, r->height, r->width, ret);
}

static void weigh(lg_dtype dtype, const double *weights, axis *a, int64_t i)
{
        void *to = (char *)a->weights + (size_t)(i * a->taps) * sum_bytes(dtype);
        (dtype == LG_U8 ? weigh_u8 : dtype == LG_F32 ? weigh_f32 : weigh_f64)(weights, to, a->count[i]);
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
                for (int64_t k = 0; k < a->count[i]; k++)
                        one[k] /= sum;
                weigh(dtype, one, a, i);
        }
}

static void across(lg_dtype dtype, const void *x, void *y, const axis *a, int64_t row)
{
        if (dtype == LG_U8)
                across_u8((const uint8_t *)x + row * a->in, (uint8_t *)y + row * a->out, a);
        else if (dtype == LG_F32)
                across_f32((const float *)x + row * a->in, (float *)y + row * a->out, a);
        else
                across_f64((const double *)x + row * a->in, (double *)y + row * a->out, a);
}

static void down(lg_dtype dtype, const void *x, void *y, const layout *l, int64_t row)
{
        const int64_t width = l->x.out;
        if (dtype == LG_U8)
                down_u8(x, (uint8_t *)y + row * width, width, &l->y, row, l->sums);
        else if (dtype == LG_F32)
                down_f32(x, (float *)y + row * width, width, &l->y, row, l->sums);
        else
                down_f64(x, (double *)y + row * width, width, &l->y, row, l->sums);
}

static bool resize_run(const lg_transform *t, const lg__step *s)
{
        const resize *r = (const resize *)t;
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
                        across(dtype, from, l.between, &l.x, i);
                const char *rows = n.w == r->width ? from : l.between;
                for (int64_t i = 0; i < r->height && n.h != r->height; i++)
                        down(dtype, rows, to, &l, i);
                if (n.h == r->height)
                        memcpy(to, rows, (size_t)(r->height * r->width) * size);
        }
        return true;
}

static const lg__transform_kind resize_kind = {
        .op = "lg_transform_resize",
        .plan = resize_plan,
        .run = resize_run,
        .bytes = sizeof(resize),
};

lg_transform *lg_transform_resize(lg_ctx *c, int64_t height, int64_t width)
{
        if (!lg__ok(c) || !lg__image_size(c, resize_kind.op, height, width))
                return NULL;
        return lg__transform_new(c, &resize_kind, &(resize){.height = height, .width = width});
}
