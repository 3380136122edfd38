/* transform_erasing.c - a rectangle of an image, at random, becomes a value or noise.
 *
 * Zhong et al., "Random erasing data augmentation", 2020 (torchvision's RandomErasing).
 */
#include <math.h>
#include <string.h>
#include "transform.h"

typedef struct erasing {
        lg_transform head;
        lg_erasing_options o;
} erasing;

static bool erasing_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        lg__image x;
        (void)ret, (void)ret_scratch;
        return lg__image_field(c, t->kind->op, in, &x) &&
               lg__dtype_holds(c, t->kind->op, in->dtype, ((const erasing *)t)->o.value);
}

typedef struct box {
        int64_t top, left, height, width;
} box;

/* A box of a random area and shape in the image; false: none of ten fits. */
static bool choose(const lg_erasing_options *o, const lg__image *n, lg_rng *r, box *ret)
{
        const double area = (double)n->h * (double)n->w, low = log(o->ratio_min), high = log(o->ratio_max);
        for (int i = 0; i < 10; i++) {
                const double part = area * (o->scale_min + (o->scale_max - o->scale_min) * lg_rng_uniform(r));
                const double ratio = exp(low + (high - low) * lg_rng_uniform(r));
                const double height = rint(sqrt(part * ratio)), width = rint(sqrt(part / ratio));
                if (!(height < (double)n->h && width < (double)n->w))
                        continue;
                ret->height = (int64_t)height;
                ret->width = (int64_t)width;
                ret->top = lg_rng_below(r, n->h - ret->height + 1);
                ret->left = lg_rng_below(r, n->w - ret->width + 1);
                return true;
        }
        return false;
}

static void fill_noise(const lg__step *s, int64_t at, int64_t n)
{
        for (int64_t i = at; i < at + n; i++) {
                if (s->in->dtype == LG_U8)
                        ((uint8_t *)s->to)[i] = (uint8_t)lg_rng_below(s->rng, 256);
                else if (s->in->dtype == LG_F32)
                        ((float *)s->to)[i] = (float)lg_rng_normal(s->rng);
                else
                        ((double *)s->to)[i] = lg_rng_normal(s->rng);
        }
}

static bool erasing_run(const lg_transform *t, const lg__step *s)
{
        const lg_erasing_options *o = &((const erasing *)t)->o;
        const lg__image n = lg__image_of(s->in);
        const size_t size = lg__dtype_bytes(s->in->dtype);
        box b;
        memcpy(s->to, s->from, lg__field_bytes(s->in));
        if (!(lg_rng_uniform(s->rng) < o->p) || !choose(o, &n, s->rng, &b))
                return true;
        for (int64_t c = 0; c < n.c; c++) {
                for (int64_t i = b.top; i < b.top + b.height; i++) {
                        const int64_t at = (c * n.h + i) * n.w + b.left;
                        if (o->random)
                                fill_noise(s, at, b.width);
                        else
                                lg__pixels_fill((char *)s->to + (size_t)at * size, s->in->dtype, o->value, b.width);
                }
        }
        return true;
}

static const lg__transform_kind erasing_kind = {
        .op = "lg_transform_random_erasing",
        .plan = erasing_plan,
        .run = erasing_run,
        .bytes = sizeof(erasing),
        .random = true,
};

lg_transform *lg_transform_random_erasing_with(lg_ctx *c, const lg_erasing_options *options)
{
        lg_erasing_options o;
        const char *op = erasing_kind.op;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        o.p = lg__option(o.p, 0.5);
        o.scale_min = lg__option(o.scale_min, 0.02);
        o.scale_max = lg__option(o.scale_max, 0.33);
        o.ratio_min = lg__option(o.ratio_min, 0.3);
        o.ratio_max = lg__option(o.ratio_max, 3.3);
        if (!lg__number_within(c, op, "p", o.p, 0, 1) || !lg__number_within(c, op, "scale_min", o.scale_min, 0, 1) ||
            !lg__number_within(c, op, "scale_max", o.scale_max, o.scale_min, 1) ||
            !lg__number_within(c, op, "ratio_min", o.ratio_min, 1e-6, 1e6) ||
            !lg__number_within(c, op, "ratio_max", o.ratio_max, o.ratio_min, 1e6) ||
            !lg__number_within(c, op, "value", o.value, -LG_INFINITY, LG_INFINITY))
                return NULL;
        return lg__transform_new(c, &erasing_kind, &(erasing){.o = o});
}
