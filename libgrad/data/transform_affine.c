/* transform_affine.c - rotates, moves, scales and shears images at random, about their centre.
 *
 * y(q) = x(A^-1 (q - c - t) + c) with A = scale * rotation * shear, translation t, and c the centre of the image. x is
 * interpolated linearly between the centres of pixels, and is `value` outside the image. Equal to torchvision's affine
 * and rotate of tensors, except for torchvision's mask at the edges.
 */
#include <math.h>
#include "transform.h"

/* Position in the input of the first pixel of an output row, and the change of the position from column to column. */
typedef struct line {
        double y, x, dy, dx;
} line;

typedef struct affine {
        lg_transform head;
        lg_affine_options o;
} affine;

/* An affine map (m[0] y + m[1] x + m[2], m[3] y + m[4] x + m[5]) from a pixel (y, x) of the output image to one of the
 * input image, both relative to the centre of the image. */
typedef struct matrix {
        double m[6];
} matrix;

/* Returns the inverse of: shear, rotate clockwise (both in degrees), multiply by `scale`, move by (ty, tx) pixels. */
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

/* Writes row `row` of the output, 0 to C * H - 1, by bilinear interpolation; pixels outside the input are `outside`. */
static void warp_row(const lg__step *s, const lg__image *n, line l, int64_t row, double outside)
{
        const int64_t h = n->h, w = n->w;
        LG__WITH_PIXEL(s->in->dtype, float, {
                const pixel *x = (const pixel *)s->from + row / h * h * w;
                pixel *y = (pixel *)s->to + row * w;
                const real value = (real)(pixel)outside, half = (real)(is_bytes ? 0.5 : 0);
                for (int64_t j = 0; j < w; j++) {
                        const double sy = l.y + l.dy * (double)j, sx = l.x + l.dx * (double)j;
                        real out = value;
                        if (sy > -1 && sx > -1 && sy < (double)h && sx < (double)w) {
                                const int64_t i0 = (int64_t)(sy + 1) - 1, j0 = (int64_t)(sx + 1) - 1; /* rounds down */
                                const real fy = (real)(sy - (double)i0), fx = (real)(sx - (double)j0);
                                const int64_t at = i0 * w + j0;
                                real a, b, c, d;
                                if (i0 >= 0 && j0 >= 0 && i0 + 1 < h && j0 + 1 < w) {
                                        a = (real)x[at], b = (real)x[at + 1], c = (real)x[at + w];
                                        d = (real)x[at + w + 1];
                                } else {
                                        const bool up = i0 >= 0, down = i0 + 1 < h, left = j0 >= 0, right = j0 + 1 < w;
                                        a = up && left ? (real)x[at] : value, b = up && right ? (real)x[at + 1] : value;
                                        c = down && left ? (real)x[at + w] : value;
                                        d = down && right ? (real)x[at + w + 1] : value;
                                }
                                out = (1 - fy) * ((1 - fx) * a + fx * b) + fy * ((1 - fx) * c + fx * d);
                        }
                        y[j] = (pixel)(out + half);
                }
        });
}

static void warp(const lg__step *s, const matrix *a, double value)
{
        const lg__image n = lg__image_of(s->in);
        const double cy = (double)(n.h - 1) / 2, cx = (double)(n.w - 1) / 2;
        for (int64_t row = 0; row < n.c * n.h && n.w; row++) {
                const double y = (double)(row % n.h) - cy;
                const line l = {a->m[0] * y - a->m[1] * cx + a->m[2] + cy, a->m[3] * y - a->m[4] * cx + a->m[5] + cx,
                                a->m[1], a->m[4]};
                warp_row(s, &n, l, row, value);
        }
}

static double between(lg_rng *r, double low, double high)
{
        return low + (high - low) * lg_rng_uniform(r);
}

static bool run_affine(const lg_transform *t, const lg__step *s)
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

static const lg__number affine_numbers[] = {LG__NUMBER(lg_affine_options, degrees, 0, 0, 360),
                                            LG__NUMBER(lg_affine_options, translate_x, 0, 0, 1),
                                            LG__NUMBER(lg_affine_options, translate_y, 0, 0, 1),
                                            LG__NUMBER(lg_affine_options, scale_min, 1, 1e-3, 1e3),
                                            LG__NUMBER(lg_affine_options, scale_max, 1, 0, 1e3, .above_previous = true),
                                            LG__NUMBER(lg_affine_options, shear, 0, 0, 89),
                                            LG__NUMBER(lg_affine_options, value, 0, -LG_INFINITY, LG_INFINITY),
                                            {NULL}};
LG__RANDOM_TRANSFORM(random_affine, affine, lg_affine_options, .run = run_affine, .value = offsetof(affine, o.value),
                     .numbers = affine_numbers)

/* ---- rotation ---- */

static bool run_rotation(const lg_transform *t, const lg__step *s)
{
        const lg_affine_options *o = &((const affine *)t)->o;
        const matrix a = invert(-between(s->rng, -o->degrees, o->degrees), 0, 0, 1, 0);
        warp(s, &a, o->value);
        return true;
}

static const lg__transform_kind rotation_kind = {
        .op = "lg_transform_random_rotation",
        .run = run_rotation,
        .bytes = sizeof(affine),
        .random = true,
        .images = true,
        .value = offsetof(affine, o.value),
};

lg_transform *lg_transform_random_rotation_with(lg_ctx *c, double degrees, const lg_rotation_options *options)
{
        lg_rotation_options o;
        const char *op = rotation_kind.op;
        degrees = lg__option(degrees, 0);
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__number_within(c, op, "degrees", degrees, 0, 360) ||
            !lg__number_within(c, op, "value", o.value, -LG_INFINITY, LG_INFINITY))
                return NULL;
        affine *t = (affine *)lg__transform_new(c, &rotation_kind);
        if (!t)
                return NULL;
        t->o.degrees = degrees;
        t->o.value = o.value;
        return &t->head;
}
