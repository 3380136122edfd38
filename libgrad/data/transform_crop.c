/* transform_crop.c - windows of images, at random and in the middle, with what is beside the image padded. */
#include <string.h>
#include "transform.h"

typedef struct crop {
        lg_transform head;
        int64_t height, width, padding;
        lg_pad_mode mode;
        double value;
} crop;

/* y(i, j) = x(i + top, j + left). */
typedef struct window {
        const crop *crop;
        lg_dtype dtype;
        size_t size; /* of a pixel */
        int64_t top, left;
        lg__image in;
} window;

/* The row or column of n that stands for i, which may be outside. */
static int64_t inside(int64_t i, int64_t n, lg_pad_mode mode)
{
        if (mode == LG_PAD_REFLECT)
                return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
        return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Columns first to end of a row, which are outside. */
static void pad(const window *w, const char *row, char *to, int64_t first, int64_t end)
{
        if (w->crop->mode == LG_PAD_ZEROS) {
                lg__pixels_fill(to + (size_t)first * w->size, w->dtype, w->crop->value, end - first);
                return;
        }
        for (int64_t j = first; j < end; j++)
                memcpy(to + (size_t)j * w->size, row + (size_t)inside(j + w->left, w->in.w, w->crop->mode) * w->size,
                       w->size);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
        return x < low ? low : x > high ? high : x;
}

static void cut_channel(const window *w, const char *from, char *to)
{
        const int64_t width = w->crop->width, first = clamp(-w->left, 0, width);
        const int64_t end = clamp(w->in.w - w->left, first, width);
        for (int64_t i = 0; i < w->crop->height; i++, to += (size_t)width * w->size) {
                int64_t y = i + w->top;
                if ((y < 0 || y >= w->in.h) && w->crop->mode == LG_PAD_ZEROS) {
                        lg__pixels_fill(to, w->dtype, w->crop->value, width);
                        continue;
                }
                const char *row = from + (size_t)(inside(y, w->in.h, w->crop->mode) * w->in.w) * w->size;
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
                            (char *)s->to + (size_t)(c * t->height * t->width) * size);
        return true;
}

/* ---- at random ---- */

static bool random_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const crop *k = (const crop *)t;
        lg__image x;
        (void)ret_scratch;
        if (!lg__image_field(c, t->kind->op, in, &x) || !lg__dtype_holds(c, t->kind->op, in->dtype, k->value))
                return false;
        if (x.h + 2 * k->padding < k->height || x.w + 2 * k->padding < k->width)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s; with padding %lld it is smaller than %lld by %lld",
                                t->kind->op, in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s,
                                (long long)k->padding, (long long)k->height, (long long)k->width);
        if (k->mode != LG_PAD_ZEROS && (x.h <= (k->mode == LG_PAD_REFLECT ? k->padding : 0) ||
                                        x.w <= (k->mode == LG_PAD_REFLECT ? k->padding : 0)))
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s, too small for padding %lld by %s", t->kind->op,
                                in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s, (long long)k->padding,
                                k->mode == LG_PAD_REFLECT ? "reflection" : "replication");
        return lg__image_resized(c, t->kind->op, k->height, k->width, ret);
}

static bool random_run(const lg_transform *t, const lg__step *s)
{
        const crop *k = (const crop *)t;
        const lg__image x = lg__image_of(s->in);
        const int64_t top = lg_rng_below(s->rng, x.h + 2 * k->padding - k->height + 1);
        const int64_t left = lg_rng_below(s->rng, x.w + 2 * k->padding - k->width + 1);
        return cut(k, s, top - k->padding, left - k->padding);
}

static const lg__transform_kind random_kind = {
        .op = "lg_transform_random_crop",
        .plan = random_plan,
        .run = random_run,
        .bytes = sizeof(crop),
        .random = true,
};

lg_transform *lg_transform_random_crop_with(lg_ctx *c, int64_t height, int64_t width, const lg_crop_options *options)
{
        lg_crop_options o;
        const char *op = random_kind.op;
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__image_size(c, op, height, width) ||
            !lg__number_within(c, op, "padding", (double)o.padding, 0, 1 << 24) ||
            !lg__number_within(c, op, "mode", o.mode, LG_PAD_ZEROS, LG_PAD_REPLICATE) ||
            !lg__number_within(c, op, "value", o.value, -LG_INFINITY, LG_INFINITY))
                return NULL;
        const crop k = {.height = height, .width = width, .padding = o.padding, .mode = o.mode, .value = o.value};
        return lg__transform_new(c, &random_kind, &k);
}

/* ---- in the middle ---- */

static bool center_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const crop *k = (const crop *)t;
        lg__image x;
        (void)ret_scratch;
        return lg__image_field(c, t->kind->op, in, &x) && lg__image_resized(c, t->kind->op, k->height, k->width, ret);
}

/* Half of what is cut off, to even; of what is added, the smaller half. */
static int64_t begin(int64_t from, int64_t to)
{
        const int64_t half = (from - to) / 2;
        return from < to ? half : half + ((from - to) % 2 && half % 2);
}

static bool center_run(const lg_transform *t, const lg__step *s)
{
        const crop *k = (const crop *)t;
        const lg__image x = lg__image_of(s->in);
        return cut(k, s, begin(x.h, k->height), begin(x.w, k->width));
}

static const lg__transform_kind center_kind = {
        .op = "lg_transform_center_crop",
        .plan = center_plan,
        .run = center_run,
        .bytes = sizeof(crop),
};

lg_transform *lg_transform_center_crop(lg_ctx *c, int64_t height, int64_t width)
{
        if (!lg__ok(c) || !lg__image_size(c, center_kind.op, height, width))
                return NULL;
        return lg__transform_new(c, &center_kind, &(crop){.height = height, .width = width});
}
