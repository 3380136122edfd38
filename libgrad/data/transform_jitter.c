/* transform_jitter.c - brightness and contrast of images, changed at random.
 *
 * Brightness: y = r x. Contrast: y = r x + (1 - r) mean, with the mean of the grey image. Each is cut to what images
 * have, 0 to 255 or to 1; bytes lose their fraction (torchvision's ColorJitter of tensors).
 */
#include <string.h>
#include "transform.h"

typedef struct jitter {
        lg_transform head;
        double brightness, contrast;
} jitter;

static bool jitter_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        lg__image x;
        (void)ret, (void)ret_scratch;
        if (!lg__image_field(c, t->kind->op, in, &x))
                return false;
        return x.c == 1 || x.c == 3 ||
               lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s; images have 1 channel or 3: red, green and blue",
                        t->kind->op, in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s);
}

/* y = ratio x + (1 - ratio) other, cut off. x and y may be the same. */
static void blend(lg_dtype dtype, const void *from, void *to, int64_t n, double ratio, double other)
{
        const float r = (float)ratio, k = (float)(1 - ratio) * (float)other;
        if (dtype == LG_U8) {
                uint8_t of_byte[256];
                for (int i = 0; i < 256; i++) {
                        float y = r * (float)i + k;
                        of_byte[i] = (uint8_t)(y < 0 ? 0 : y > 255 ? 255 : y);
                }
                for (int64_t i = 0; i < n; i++)
                        ((uint8_t *)to)[i] = of_byte[((const uint8_t *)from)[i]];
        } else if (dtype == LG_F32) {
                for (int64_t i = 0; i < n; i++) {
                        float y = r * ((const float *)from)[i] + k;
                        ((float *)to)[i] = y < 0 ? 0 : y > 1 ? 1 : y;
                }
        } else {
                for (int64_t i = 0; i < n; i++) {
                        double y = ratio * ((const double *)from)[i] + (1 - ratio) * other;
                        ((double *)to)[i] = y < 0 ? 0 : y > 1 ? 1 : y;
                }
        }
}

/* The grey of pixel i, of three planes. */
static double grey(lg_dtype dtype, const void *x, int64_t i, int64_t plane)
{
        if (dtype == LG_U8) {
                const uint8_t *p = (const uint8_t *)x + i;
                return (int)(0.2989f * (float)p[0] + 0.587f * (float)p[plane] + 0.114f * (float)p[2 * plane]);
        }
        if (dtype == LG_F32) {
                const float *p = (const float *)x + i;
                return 0.2989f * p[0] + 0.587f * p[plane] + 0.114f * p[2 * plane];
        }
        const double *p = (const double *)x + i;
        return 0.2989 * p[0] + 0.587 * p[plane] + 0.114 * p[2 * plane];
}

static double mean(lg_dtype dtype, const void *x, const lg__image *n)
{
        const int64_t plane = n->h * n->w;
        double sum = 0;
        int64_t whole = 0;
        for (int64_t i = 0; n->c == 3 && i < plane; i++)
                sum += grey(dtype, x, i, plane);
        for (int64_t i = 0; n->c == 1 && dtype == LG_U8 && i < plane; i++)
                whole += ((const uint8_t *)x)[i];
        for (int64_t i = 0; n->c == 1 && dtype == LG_F32 && i < plane; i++)
                sum += ((const float *)x)[i];
        for (int64_t i = 0; n->c == 1 && dtype == LG_F64 && i < plane; i++)
                sum += ((const double *)x)[i];
        return (sum + (double)whole) / (double)plane;
}

static double factor(lg_rng *r, double most)
{
        const double low = most < 1 ? 1 - most : 0;
        return low + (1 + most - low) * lg_rng_uniform(r);
}

static bool jitter_run(const lg_transform *t, const lg__step *s)
{
        const jitter *j = (const jitter *)t;
        const lg__image n = lg__image_of(s->in);
        const int64_t count = n.c * n.h * n.w;
        const double bright = factor(s->rng, j->brightness), contrast = factor(s->rng, j->contrast);
        const int first = (int)lg_rng_below(s->rng, 2);
        const void *x = s->from;
        for (int i = 0; i < 2 && count; i++) {
                const bool is_contrast = (i ^ first) & 1;
                if (is_contrast ? j->contrast > 0 : j->brightness > 0) {
                        double other = is_contrast ? mean(s->in->dtype, x, &n) : 0;
                        blend(s->in->dtype, x, s->to, count, is_contrast ? contrast : bright, other);
                        x = s->to;
                }
        }
        if (x == s->from && count)
                memcpy(s->to, s->from, lg__field_bytes(s->in));
        return true;
}

static const lg__transform_kind jitter_kind = {
        .op = "lg_transform_color_jitter",
        .plan = jitter_plan,
        .run = jitter_run,
        .bytes = sizeof(jitter),
        .random = true,
};

lg_transform *lg_transform_color_jitter_with(lg_ctx *c, const lg_jitter_options *options)
{
        lg_jitter_options o;
        const char *op = jitter_kind.op;
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__number_within(c, op, "brightness", o.brightness, 0, 1e6) ||
            !lg__number_within(c, op, "contrast", o.contrast, 0, 1e6))
                return NULL;
        return lg__transform_new(c, &jitter_kind, &(jitter){.brightness = o.brightness, .contrast = o.contrast});
}
