/* transform_jitter.c - changes the brightness and contrast of images at random.
 *
 * Brightness: y = r x. Contrast: y = r x + (1 - r) m, with m the mean of the grey image. Results are clamped, to [0,
 * 255] for u8 and [0, 1] for floats; u8 results are rounded down (torchvision's ColorJitter of tensors).
 */
#include <string.h>
#include "transform.h"

typedef struct jitter {
        lg_transform head;
        lg_jitter_options o;
} jitter;

static bool infer_jitter(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const lg__image x = lg__image_of(in);
        (void)ret, (void)ret_scratch;
        return x.c == 1 || x.c == 3 ||
               lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s; images have 1 channel or 3: red, green and blue",
                        t->kind->op, in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s);
}

/* Computes y = ratio x + (1 - ratio) other, clamped to the range of images. `from` and `to` may be equal. */
static void blend(lg_dtype dtype, const void *from, void *to, int64_t n, double ratio, double other)
{
        if (dtype == LG_U8) {
                const float r = (float)ratio, k = (float)(1 - ratio) * (float)other;
                uint8_t of_byte[256];
                for (int i = 0; i < 256; i++) {
                        float y = r * (float)i + k;
                        of_byte[i] = (uint8_t)(y < 0 ? 0 : y > 255 ? 255 : y);
                }
                for (int64_t i = 0; i < n; i++)
                        ((uint8_t *)to)[i] = of_byte[((const uint8_t *)from)[i]];
                return;
        }
        LG__WITH_PIXEL(dtype, float, {
                const real r = (real)ratio, k = (real)(1 - ratio) * (real)other;
                for (int64_t i = 0; i < n; i++) {
                        const real y = r * ((const real *)from)[i] + k;
                        ((real *)to)[i] = y < 0 ? 0 : y > 1 ? 1 : y;
                }
        });
}

/* Returns the mean of the image in grey: of its only channel, or of 0.2989 red + 0.587 green + 0.114 blue. */
static double mean_grey(lg_dtype dtype, const void *x, const lg__image *n)
{
        const int64_t plane = n->h * n->w;
        double sum = 0;
        if (dtype == LG_U8) {
                const uint8_t *p = x;
                int64_t whole = 0;
                for (int64_t i = 0; i < plane; i++)
                        whole += n->c == 1 ? p[i]
                                           : (int)(0.2989f * (float)p[i] + 0.587f * (float)p[plane + i] +
                                                   0.114f * (float)p[2 * plane + i]);
                return (double)whole / (double)plane;
        }
        LG__WITH_PIXEL(dtype, float, {
                const real *p = x;
                for (int64_t i = 0; i < plane; i++)
                        sum += n->c == 1 ? p[i]
                                         : (real)0.2989 * p[i] + (real)0.587 * p[plane + i] +
                                                   (real)0.114 * p[2 * plane + i];
        });
        return sum / (double)plane;
}

/* Draws a factor uniformly from [max(0, 1 - most), 1 + most). */
static double factor(lg_rng *r, double most)
{
        const double low = most < 1 ? 1 - most : 0;
        return low + (1 + most - low) * lg_rng_uniform(r);
}

static bool run_jitter(const lg_transform *t, const lg__step *s)
{
        const jitter *j = (const jitter *)t;
        const lg__image n = lg__image_of(s->in);
        const int64_t count = n.c * n.h * n.w;
        const double bright = factor(s->rng, j->o.brightness), contrast = factor(s->rng, j->o.contrast);
        const int first = (int)lg_rng_below(s->rng, 2);
        const void *x = s->from;
        for (int i = 0; i < 2 && count; i++) {
                const bool is_contrast = (i ^ first) & 1;
                if (is_contrast ? j->o.contrast > 0 : j->o.brightness > 0) {
                        double other = is_contrast ? mean_grey(s->in->dtype, x, &n) : 0;
                        blend(s->in->dtype, x, s->to, count, is_contrast ? contrast : bright, other);
                        x = s->to;
                }
        }
        if (x == s->from && count)
                memcpy(s->to, s->from, lg__field_bytes(s->in));
        return true;
}

static const lg__number jitter_numbers[] = {LG__NUMBER(lg_jitter_options, brightness, 0, 0, 1e6),
                                            LG__NUMBER(lg_jitter_options, contrast, 0, 0, 1e6),
                                            {NULL}};
LG__RANDOM_TRANSFORM(color_jitter, jitter, lg_jitter_options, .infer = infer_jitter, .run = run_jitter,
                     .numbers = jitter_numbers)
