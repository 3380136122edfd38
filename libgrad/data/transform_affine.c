/* transform_affine.c - images turned, moved, scaled and sheared at random, about their centre.
 *
 * y(q) = x(A^-1 (q - c - t) + c), bilinear between the centres of pixels, with A = scale * rotation * shear and c the
 * centre of the image (torchvision's affine and rotate of tensors, but for its mask at the edges). Beside the image x
 * is `value`.
 */
#include <math.h>
#include "transform.h"

/* Where a row of the output comes from: (y, x) and what each column adds. */
typedef struct line {
        double y, x, dy, dx;
} line;

#define NAME(name) name##_u8
#define PIXEL uint8_t
#define REAL float
#define ROUND 0.5f
#include "transform_warp.inc"
#define NAME(name) name##_f32
#define PIXEL float
#define REAL float
#define ROUND 0
#include "transform_warp.inc"
#define NAME(name) name##_f64
#define PIXEL double
#define REAL double
#define ROUND 0
#include "transform_warp.inc"

typedef struct affine {
        lg_transform head;
        lg_affine_options o;
} affine;

/* (y, x) of the input, from the centre: m[0] y + m[1] x + m[2] and m[3] y + m[4] x + m[5]. */
typedef struct matrix {
        double m[6];
} matrix;

static bool affine_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        lg__image x;
        (void)ret, (void)ret_scratch;
        return lg__image_field(c, t->kind->op, in, &x) &&
               lg__dtype_holds(c, t->kind->op, in->dtype, ((const affine *)t)->o.value);
}

/* The inverse of moving by (ty, tx) after turning clockwise by `angle` and shearing by `shear`, in degrees. */
static matrix invert(double angle, double ty, double tx, double scale, double shear)
{
        const double degree = 3.14159265358979323846 / 180;
        const double cosine = cos(angle * degree), sine = sin(angle * degree), lean = tan(shear * degree);
        matrix a = {
                {cosine / scale, -sine / scale, 0, (sine + lean * cosine) / scale, (cosine - lean * sine) / scale, 0}};
        a.m[2] = -a.m[0] * ty - a.m[1] * tx;
        a.m[5] = -a.m[3] * ty - a.m[4] * tx;
        return a;
}

static void warp_row(const lg__step *s, const lg__image *n, const line *l, int64_t channel, int64_t row, double value)
{
        const int64_t from = channel * n->h * n->w, to = from + row * n->w;
        if (s->in->dtype == LG_U8)
                warp_row_u8((const uint8_t *)s->from + from, (uint8_t *)s->to + to, n, l, (float)(int)value);
        else if (s->in->dtype == LG_F32)
                warp_row_f32((const float *)s->from + from, (float *)s->to + to, n, l, (float)value);
        else
                warp_row_f64((const double *)s->from + from, (double *)s->to + to, n, l, value);
}

static void warp(const lg__step *s, const matrix *a, double value)
{
        const lg__image n = lg__image_of(s->in);
        const double cy = (double)(n.h - 1) / 2, cx = (double)(n.w - 1) / 2;
        for (int64_t c = 0; c < n.c; c++) {
                for (int64_t i = 0; i < n.h && n.w; i++) {
                        const double y = (double)i - cy;
                        const line l = {a->m[0] * y - a->m[1] * cx + a->m[2] + cy,
                                        a->m[3] * y - a->m[4] * cx + a->m[5] + cx, a->m[1], a->m[4]};
                        warp_row(s, &n, &l, c, i, value);
                }
        }
}

static double between(lg_rng *r, double low, double high)
{
        return low + (high - low) * lg_rng_uniform(r);
}

static bool affine_run(const lg_transform *t, const lg__step *s)
{
        const lg_affine_options *o = &((const affine *)t)->o;
        const lg__image n = lg__image_of(s->in);
        const double angle = between(s->rng, -o->degrees, o->degrees);
        const double tx = rint(between(s->rng, -o->translate_x, o->translate_x) * (double)n.w);
        const double ty = rint(between(s->rng, -o->translate_y, o->translate_y) * (double)n.h);
        const double scale = between(s->rng, o->scale_min, o->scale_max);
        const matrix a = invert(angle, ty, tx, scale, between(s->rng, -o->shear, o->shear));
        warp(s, &a, o->value);
        return true;
}

static const lg__transform_kind affine_kind = {
        .op = "lg_transform_random_affine",
        .plan = affine_plan,
        .run = affine_run,
        .bytes = sizeof(affine),
        .random = true,
};

lg_transform *lg_transform_random_affine_with(lg_ctx *c, const lg_affine_options *options)
{
        lg_affine_options o;
        const char *op = affine_kind.op;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        o.scale_min = lg__option(o.scale_min, 1);
        o.scale_max = lg__option(o.scale_max, 1);
        if (!lg__number_within(c, op, "degrees", o.degrees, 0, 360) ||
            !lg__number_within(c, op, "translate_x", o.translate_x, 0, 1) ||
            !lg__number_within(c, op, "translate_y", o.translate_y, 0, 1) ||
            !lg__number_within(c, op, "scale_min", o.scale_min, 1e-3, 1e3) ||
            !lg__number_within(c, op, "scale_max", o.scale_max, o.scale_min, 1e3) ||
            !lg__number_within(c, op, "shear", o.shear, 0, 89) ||
            !lg__number_within(c, op, "value", o.value, -LG_INFINITY, LG_INFINITY))
                return NULL;
        return lg__transform_new(c, &affine_kind, &(affine){.o = o});
}

/* ---- turned only ---- */

static bool rotation_run(const lg_transform *t, const lg__step *s)
{
        const lg_affine_options *o = &((const affine *)t)->o;
        const matrix a = invert(-between(s->rng, -o->degrees, o->degrees), 0, 0, 1, 0);
        warp(s, &a, o->value);
        return true;
}

static const lg__transform_kind rotation_kind = {
        .op = "lg_transform_random_rotation",
        .plan = affine_plan,
        .run = rotation_run,
        .bytes = sizeof(affine),
        .random = true,
};

lg_transform *lg_transform_random_rotation_with(lg_ctx *c, double degrees, const lg_rotation_options *options)
{
        lg_rotation_options o;
        const char *op = rotation_kind.op;
        degrees = lg__option(degrees, 0);
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__number_within(c, op, "degrees", degrees, 0, 360) ||
            !lg__number_within(c, op, "value", o.value, -LG_INFINITY, LG_INFINITY))
                return NULL;
        return lg__transform_new(c, &rotation_kind, &(affine){.o = {.degrees = degrees, .value = o.value}});
}
