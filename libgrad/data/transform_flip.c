/* transform_flip.c - images turned over at random, from left to right or upside down. */
#include <string.h>
#include "transform.h"

typedef struct flip {
        lg_transform head;
        double p;
} flip;

static bool flip_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        lg__image x;
        (void)ret, (void)ret_scratch;
        return lg__image_field(c, t->kind->op, in, &x);
}

static void reverse_u8(const uint8_t *x, uint8_t *y, int64_t n)
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

static void reverse_f32(const float *x, float *y, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                y[i] = x[n - 1 - i];
}

static void reverse_f64(const double *x, double *y, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                y[i] = x[n - 1 - i];
}

static bool horizontal_run(const lg_transform *t, const lg__step *s)
{
        const lg__image x = lg__image_of(s->in);
        const bool turn = lg_rng_uniform(s->rng) < ((const flip *)t)->p;
        if (!turn) {
                memcpy(s->to, s->from, lg__field_bytes(s->in));
                return true;
        }
        for (int64_t at = 0; at < x.c * x.h * x.w; at += x.w) {
                if (s->in->dtype == LG_U8)
                        reverse_u8((const uint8_t *)s->from + at, (uint8_t *)s->to + at, x.w);
                else if (s->in->dtype == LG_F32)
                        reverse_f32((const float *)s->from + at, (float *)s->to + at, x.w);
                else
                        reverse_f64((const double *)s->from + at, (double *)s->to + at, x.w);
        }
        return true;
}

static bool vertical_run(const lg_transform *t, const lg__step *s)
{
        const lg__image x = lg__image_of(s->in);
        const bool turn = lg_rng_uniform(s->rng) < ((const flip *)t)->p;
        const size_t row = (size_t)x.w * lg__dtype_bytes(s->in->dtype);
        const char *from = s->from;
        char *to = s->to;
        if (!turn) {
                memcpy(to, from, lg__field_bytes(s->in));
                return true;
        }
        for (int64_t c = 0; c < x.c; c++) {
                for (int64_t i = 0; i < x.h; i++)
                        memcpy(to + (size_t)(c * x.h + i) * row, from + (size_t)(c * x.h + x.h - 1 - i) * row, row);
        }
        return true;
}

static const lg__transform_kind horizontal_kind = {
        .op = "lg_transform_random_horizontal_flip",
        .plan = flip_plan,
        .run = horizontal_run,
        .bytes = sizeof(flip),
        .random = true,
};

static const lg__transform_kind vertical_kind = {
        .op = "lg_transform_random_vertical_flip",
        .plan = flip_plan,
        .run = vertical_run,
        .bytes = sizeof(flip),
        .random = true,
};

static lg_transform *make(lg_ctx *c, const lg__transform_kind *kind, const lg_flip_options *options)
{
        lg_flip_options o;
        if (!lg__take(c, kind->op, options, &o, sizeof o))
                return NULL;
        const flip f = {.p = lg__option(o.p, 0.5)};
        return lg__number_within(c, kind->op, "p", f.p, 0, 1) ? lg__transform_new(c, kind, &f) : NULL;
}

lg_transform *lg_transform_random_horizontal_flip_with(lg_ctx *c, const lg_flip_options *options)
{
        return make(c, &horizontal_kind, options);
}

lg_transform *lg_transform_random_vertical_flip_with(lg_ctx *c, const lg_flip_options *options)
{
        return make(c, &vertical_kind, options);
}
