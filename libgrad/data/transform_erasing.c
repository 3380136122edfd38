/* transform_erasing.c - fills a random rectangle of an image with a value or with noise.
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

typedef struct box {
        int64_t top, left, height, width;
} box;

/* Chooses a box of random area and aspect ratio inside the image. Returns false if none of ten random boxes fits. */
static bool choose_box(const lg_erasing_options *o, const lg__image *n, lg_rng *r, box *ret)
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
        LG__WITH_PIXEL(s->in->dtype, float, {
                for (int64_t i = at; i < at + n; i++)
                        ((pixel *)s->to)[i] =
                                is_bytes ? (pixel)lg_rng_below(s->rng, 256) : (pixel)lg_rng_normal(s->rng);
        });
}

static bool run_erasing(const lg_transform *t, const lg__step *s)
{
        const lg_erasing_options *o = &((const erasing *)t)->o;
        const lg__image n = lg__image_of(s->in);
        const size_t size = lg__dtype_bytes(s->in->dtype);
        box b;
        memcpy(s->to, s->from, lg__field_bytes(s->in));
        if (!(lg_rng_uniform(s->rng) < o->p) || !choose_box(o, &n, s->rng, &b))
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

static const lg__number erasing_numbers[] = {
        LG__NUMBER(lg_erasing_options, p, 0.5, 0, 1),
        LG__NUMBER(lg_erasing_options, scale_min, 0.02, 0, 1),
        LG__NUMBER(lg_erasing_options, scale_max, 0.33, 0, 1, .above_previous = true),
        LG__NUMBER(lg_erasing_options, ratio_min, 0.3, 1e-6, 1e6),
        LG__NUMBER(lg_erasing_options, ratio_max, 3.3, 0, 1e6, .above_previous = true),
        LG__NUMBER(lg_erasing_options, value, 0, -LG_INFINITY, LG_INFINITY),
        {NULL}};
LG__RANDOM_TRANSFORM(random_erasing, erasing, lg_erasing_options, .run = run_erasing,
                     .value = offsetof(erasing, o.value), .numbers = erasing_numbers)
