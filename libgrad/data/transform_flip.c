/* transform_flip.c - mirrors images at random, from left to right or upside down. */
#include <string.h>
#include "transform.h"

typedef struct flip {
        lg_transform head;
        lg_flip_options o;
} flip;

/* Returns true with probability p: the image is to be flipped. Otherwise copies the image unchanged to the output. */
static bool draws_flip(const lg_transform *t, const lg__step *s)
{
        if (lg_rng_uniform(s->rng) < ((const flip *)t)->o.p)
                return true;
        memcpy(s->to, s->from, lg__field_bytes(s->in));
        return false;
}

static void reverse_bytes(const uint8_t *x, uint8_t *y, int64_t n)
{
        int64_t i = 0;
        for (; i + 8 <= n; i += 8) {
                uint64_t eight;
                memcpy(&eight, x + n - 8 - i, 8);
                eight = __builtin_bswap64(eight);
                memcpy(y + i, &eight, 8);
        }
        for (; i < n; i++)
                y[i] = x[n - 1 - i];
}

static void reverse_row(lg_dtype dtype, const void *from, void *to, int64_t at, int64_t n)
{
        if (dtype == LG_U8) {
                reverse_bytes((const uint8_t *)from + at, (uint8_t *)to + at, n);
                return;
        }
        LG__WITH_PIXEL(dtype, float, {
                const pixel *x = (const pixel *)from + at;
                pixel *y = (pixel *)to + at;
                for (int64_t i = 0; i < n; i++)
                        y[i] = x[n - 1 - i];
        });
}

static bool run_horizontal_flip(const lg_transform *t, const lg__step *s)
{
        const lg__image x = lg__image_of(s->in);
        if (!draws_flip(t, s))
                return true;
        for (int64_t at = 0; at < x.c * x.h * x.w; at += x.w)
                reverse_row(s->in->dtype, s->from, s->to, at, x.w);
        return true;
}

static bool run_vertical_flip(const lg_transform *t, const lg__step *s)
{
        const lg__image x = lg__image_of(s->in);
        const size_t row = (size_t)x.w * lg__dtype_bytes(s->in->dtype);
        if (!draws_flip(t, s))
                return true;
        for (int64_t c = 0; c < x.c; c++) {
                for (int64_t i = 0; i < x.h; i++)
                        memcpy((char *)s->to + (size_t)(c * x.h + i) * row,
                               (const char *)s->from + (size_t)(c * x.h + x.h - 1 - i) * row, row);
        }
        return true;
}

static const lg__number numbers[] = {LG__NUMBER(lg_flip_options, p, 0.5, 0, 1), {NULL}};
LG__RANDOM_TRANSFORM(random_horizontal_flip, flip, lg_flip_options, .run = run_horizontal_flip, .numbers = numbers)
LG__RANDOM_TRANSFORM(random_vertical_flip, flip, lg_flip_options, .run = run_vertical_flip, .numbers = numbers)
