/* transform_crop.c - crops images to a window, at random or at the centre, and pads windows that exceed the image. */
#include <string.h>
#include "transform.h"

typedef struct crop {
        lg__resizing to;
        int64_t padding;
        lg_pad_mode mode;
        double value;
} crop;

/* A window of the input image: pixel (i, j) of the output is pixel (i + top, j + left) of the input. */
typedef struct window {
        const crop *crop;
        lg_dtype dtype;
        size_t size; /* bytes of a pixel in one channel */
        int64_t top, left;
        lg__image in;
} window;

/* Fills columns [first, end) of an output row, which are outside the image, with padding. `row` is the input row. */
static void pad(const window *w, const char *row, char *to, int64_t first, int64_t end)
{
        if (w->crop->mode == LG_PAD_CONSTANT) {
                lg__pixels_fill(to + (size_t)first * w->size, w->dtype, w->crop->value, end - first);
                return;
        }
        for (int64_t j = first; j < end; j++)
                memcpy(to + (size_t)j * w->size,
                       row + (size_t)lg__pad_source(j + w->left, w->in.w, w->crop->mode) * w->size, w->size);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
        return x < low ? low : x > high ? high : x;
}

static void cut_channel(const window *w, const char *from, char *to)
{
        const int64_t width = w->crop->to.width, first = clamp(-w->left, 0, width);
        const int64_t end = clamp(w->in.w - w->left, first, width);
        for (int64_t i = 0; i < w->crop->to.height; i++, to += (size_t)width * w->size) {
                int64_t y = i + w->top;
                if ((y < 0 || y >= w->in.h) && w->crop->mode == LG_PAD_CONSTANT) {
                        lg__pixels_fill(to, w->dtype, w->crop->value, width);
                        continue;
                }
                const char *row = from + (size_t)(lg__pad_source(y, w->in.h, w->crop->mode) * w->in.w) * w->size;
                if (first)
                        pad(w, row, to, 0, first);
                if (end > first)
                        memcpy(to + (size_t)first * w->size, row + (size_t)(first + w->left) * w->size,
                               (size_t)(end - first) * w->size);
                if (end < width)
                        pad(w, row, to, end, width);
        }
}

static bool cut(const crop *t, const lg__step *s, int64_t top, int64_t left)
{
        const lg__image in = lg__image_of(s->in);
        const size_t size = lg__dtype_bytes(s->in->dtype);
        const window w = {t, s->in->dtype, size, top, left, in};
        for (int64_t c = 0; c < in.c; c++)
                cut_channel(&w, (const char *)s->from + (size_t)(c * in.h * in.w) * size,
                            (char *)s->to + (size_t)(c * t->to.height * t->to.width) * size);
        return true;
}

/* ---- random crops ---- */

static bool infer_random_crop(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const crop *k = (const crop *)t;
        const lg__image x = lg__image_of(in);
        if (x.h + 2 * k->padding < k->to.height || x.w + 2 * k->padding < k->to.width)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s; with padding %lld it is smaller than %lld by %lld",
                                t->kind->op, in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s,
                                (long long)k->padding, (long long)k->to.height, (long long)k->to.width);
        if (k->mode != LG_PAD_CONSTANT && (x.h <= (k->mode == LG_PAD_REFLECT ? k->padding : 0) ||
                                           x.w <= (k->mode == LG_PAD_REFLECT ? k->padding : 0)))
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s, too small for padding %lld by %s", t->kind->op,
                                in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s, (long long)k->padding,
                                k->mode == LG_PAD_REFLECT ? "reflection" : "replication");
        return lg__infer_resized(t, c, in, ret, ret_scratch);
}

static bool run_random_crop(const lg_transform *t, const lg__step *s)
{
        const crop *k = (const crop *)t;
        const lg__image x = lg__image_of(s->in);
        const int64_t top = lg_rng_below(s->rng, x.h + 2 * k->padding - k->to.height + 1);
        const int64_t left = lg_rng_below(s->rng, x.w + 2 * k->padding - k->to.width + 1);
        return cut(k, s, top - k->padding, left - k->padding);
}

static const lg__transform_kind random_kind = {
        .op = "lg_transform_random_crop",
        .infer = infer_random_crop,
        .run = run_random_crop,
        .bytes = sizeof(crop),
        .random = true,
        .images = true,
        .value = offsetof(crop, value),
};

lg_transform *lg_transform_random_crop_with(lg_ctx *c, int64_t height, int64_t width, const lg_crop_options *options)
{
        lg_crop_options o;
        const char *op = random_kind.op;
        if (!lg__take(c, op, options, &o, sizeof o) ||
            !lg__number_within(c, op, "padding", (double)o.padding, 0, 1 << 24) ||
            !lg__number_within(c, op, "mode", o.mode, LG_PAD_CONSTANT, LG_PAD_REPLICATE) ||
            !lg__number_within(c, op, "value", o.value, -LG_INFINITY, LG_INFINITY))
                return NULL;
        crop *k = (crop *)lg__transform_of_size(c, &random_kind, height, width);
        if (!k)
                return NULL;
        k->padding = o.padding;
        k->mode = o.mode;
        k->value = o.value;
        return &k->to.head;
}

/* ---- centred crops ---- */

/* Returns the offset at which a centred crop of size `to` begins in an image of size `from`, halves rounded to even. If
 * `to` is larger, the offset is 0 or negative, so that the smaller half of the padding comes first. */
static int64_t center_offset(int64_t from, int64_t to)
{
        const int64_t half = (from - to) / 2;
        return from < to ? half : half + ((from - to) % 2 && half % 2);
}

static bool run_center_crop(const lg_transform *t, const lg__step *s)
{
        const crop *k = (const crop *)t;
        const lg__image x = lg__image_of(s->in);
        return cut(k, s, center_offset(x.h, k->to.height), center_offset(x.w, k->to.width));
}

static const lg__transform_kind center_kind = {
        .op = "lg_transform_center_crop",
        .infer = lg__infer_resized,
        .run = run_center_crop,
        .bytes = sizeof(crop),
        .images = true,
};

lg_transform *lg_transform_center_crop(lg_ctx *c, int64_t height, int64_t width)
{
        return lg__transform_of_size(c, &center_kind, height, width);
}
