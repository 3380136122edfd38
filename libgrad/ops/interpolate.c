/* interpolate.c - resizes signals, images and volumes: nearest, linear, cubic and area interpolation.
 *
 * An axis is resampled by a table: y[i] = sum over taps t of weight[i][t] x[index[i][t]]. All modes are this one op,
 * `resample`, with other tables, along two axes at once. It is linear in x; dx is g resampled by the transposed tables.
 */
#include <math.h>
#include <string.h>
#include "images.h"

enum { LINEAR_ANTIALIAS = LG_AREA + 1, CUBIC_ANTIALIAS }; /* further values of the attribute `mode` */

/* Resampling of dimensions dim and dim + 1 of x, h and w, by the table `back` of which is transposed. A scale is the
 * step of x for a step of y; 0: that of the sizes. */
#define RESAMPLE_FIELDS(FIELD)                                                                                         \
        FIELD(int, mode, 0)                                                                                            \
        FIELD(int, dim, 2)                                                                                             \
        FIELD(i64, h_in, 0)                                                                                            \
        FIELD(i64, h_out, 0)                                                                                           \
        FIELD(i64, w_in, 0)                                                                                            \
        FIELD(i64, w_out, 0)                                                                                           \
        FIELD(f64, h_scale, 0) FIELD(f64, w_scale, 0) FIELD(bool, align_corners, 0) FIELD(bool, back, 0)
LG__ATTRIBUTES(resample, RESAMPLE_FIELDS)

/* ---- tables ---- */

typedef struct axis {
        int mode;
        int64_t in, out;
        double step; /* of x for a step of y */
        bool align_corners;
} axis;

/* Elements [first, first + count) of x from which an element of y is computed; `at`, `total`: what weight_of needs. */
typedef struct window {
        int64_t first, count;
        double at, total;
} window;

/* Returns the cubic convolution kernel (Keys 1981) at a distance x. */
static double cubic(double x, double a)
{
        x = fabs(x);
        if (x < 1)
                return ((a + 2) * x - (a + 3)) * x * x + 1;
        return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static double weight_of(const axis *a, const window *w, int64_t t)
{
        const double narrow = a->step > 1 ? 1 / a->step : 1, x = ((double)(w->first + t) - w->at) * narrow;
        switch (a->mode) {
        case LG_LINEAR:
                return t ? w->at : 1 - w->at;
        case LG_BICUBIC:
                return cubic(w->at + 1 - (double)t, -0.75);
        case LINEAR_ANTIALIAS:
                return (fabs(x) < 1 ? 1 - fabs(x) : 0) / w->total;
        case CUBIC_ANTIALIAS:
                return cubic(x, -0.5) / w->total;
        default:
                return 1 / (double)w->count;
        }
}

/* Returns the window of a filter of this support, in elements, around the place of element i; as in PyTorch, corners
 * are aligned by the step alone. */
static window antialias_window(const axis *a, int64_t i, double support)
{
        const double wide = a->step > 1 ? support * a->step : support;
        const double center = a->step * ((double)i + 0.5);
        const double first = fmax(floor(center - wide + 0.5), 0);
        const double end = fmin(floor(center + wide + 0.5), (double)a->in);
        window w = {(int64_t)first, (int64_t)fmax(end - first, 0), center - 0.5, 1};
        double total = 0;
        for (int64_t t = 0; t < w.count; t++)
                total += weight_of(a, &w, t);
        w.total = total != 0 ? total : 1;
        return w;
}

/* Returns the window of element i of y. Nearest modes compute in f32, as PyTorch does, to choose the same elements. */
static window window_of(const axis *a, int64_t i)
{
        const double place = a->align_corners ? a->step * (double)i : a->step * ((double)i + 0.5) - 0.5;
        double last = (double)(a->in - 1), first;
        switch (a->mode) {
        case LG_NEAREST:
                first = floorf((float)i * (float)a->step);
                return (window){(int64_t)fmin(first, last), 1};
        case LG_NEAREST_EXACT:
                first = floorf(((float)i + 0.5f) * (float)a->step);
                return (window){(int64_t)fmin(first, last), 1};
        case LG_LINEAR:
                first = fmin(floor(fmax(place, 0)), last);
                return (window){(int64_t)first, 2, fmin(fmax(place, 0) - first, 1)};
        case LG_BICUBIC:
                first = fmin(floor(place), last);
                return (window){(int64_t)first - 1, 4, fmin(place - first, 1)};
        case LINEAR_ANTIALIAS:
                return antialias_window(a, i, 1);
        case CUBIC_ANTIALIAS:
                return antialias_window(a, i, 2);
        default: { /* area */
                const int64_t from = i * a->in / a->out;
                return (window){from, ((i + 1) * a->in + a->out - 1) / a->out - from};
        }
        }
}

typedef struct table {
        int64_t taps, columns, room; /* room: the number of entries for which memory was taken */
        int32_t *index;              /* (taps, columns) */
        double *weight;
        int64_t *count; /* (columns): entries so far */
} table;

/* Counts the taps of each column or, once there is memory for them, stores them. `back`: a column for each element of
 * x, not of y. Returns the greatest count. */
static int64_t fill_table(const axis *a, bool back, table *ret)
{
        int64_t most = 0;
        memset(ret->count, 0, (size_t)ret->columns * sizeof *ret->count);
        for (int64_t i = 0; i < a->out; i++) {
                const window w = window_of(a, i);
                for (int64_t t = 0; t < w.count; t++) {
                        const double weight = weight_of(a, &w, t);
                        const int64_t x = w.first + t < 0 ? 0 : w.first + t >= a->in ? a->in - 1 : w.first + t;
                        const int64_t column = back ? x : i, at = ret->count[column];
                        if (weight == 0)
                                continue;
                        if (ret->index) {
                                ret->index[at * ret->columns + column] = (int32_t)(back ? i : x);
                                ret->weight[at * ret->columns + column] = weight;
                        }
                        ret->count[column]++;
                        most = at >= most ? at + 1 : most;
                }
        }
        return most;
}

static void free_table(lg_ctx *c, table *t)
{
        lg__free(c, t->count, (size_t)t->columns * sizeof *t->count);
        lg__free(c, t->index, (size_t)t->room * sizeof *t->index);
        lg__free(c, t->weight, (size_t)t->room * sizeof *t->weight);
}

/* Makes the table of an axis, which free_table() frees, also after a failure. */
static bool make_table(lg_ctx *c, const axis *a, bool back, table *ret)
{
        *ret = (table){.columns = back ? a->in : a->out};
        if (!(ret->count = lg__alloc(c, (size_t)ret->columns * sizeof *ret->count)))
                return false;
        ret->taps = fill_table(a, back, ret);
        int64_t room;
        if (__builtin_mul_overflow(ret->taps, ret->columns, &room) || room > INT64_MAX / 16)
                return lg__fail(c, LG_ERR_MEMORY, "interpolate: a table of %lld by %lld entries", (long long)ret->taps,
                                (long long)ret->columns);
        ret->room = room;
        ret->index = lg__alloc(c, (size_t)room * sizeof *ret->index);
        ret->weight = ret->index ? lg__alloc(c, (size_t)room * sizeof *ret->weight) : NULL;
        if (!ret->weight)
                return false;
        memset(ret->index, 0, (size_t)room * sizeof *ret->index);
        memset(ret->weight, 0, (size_t)room * sizeof *ret->weight);
        fill_table(a, back, ret);
        return true;
}

/* ---- resample ---- */

/* Table of an axis in device memory; both tensors are NULL for an axis that stays as it is. */
typedef struct held_table {
        lg_tensor *index, *weight;
} held_table;

/* Describes axis h or w for the kernel. Returns false and sets an error on failure. */
static bool axis_of(lg__call *call, bool h, held_table *held, lg_resample_axis *ret)
{
        const resample_attributes *at = call->attributes;
        const lg_tensor *x = call->in[0];
        const double scale = h ? at->h_scale : at->w_scale;
        axis a = {at->mode, h ? at->h_in : at->w_in, h ? at->h_out : at->w_out, scale, at->align_corners};
        *ret = (lg_resample_axis){.in = at->back ? a.out : a.in, .out = at->back ? a.in : a.out, .taps = 1};
        /* In these modes, as in PyTorch, a scale counts even if the size stays. */
        if (a.in == a.out && (scale == 0 || (a.mode != LG_NEAREST_EXACT && a.mode != LG_BICUBIC)))
                return true;
        if (a.align_corners)
                a.step = a.out > 1 ? (double)(a.in - 1) / (double)(a.out - 1) : 0;
        else if (scale == 0)
                a.step = a.mode == LG_NEAREST || a.mode == LG_NEAREST_EXACT ? (float)a.in / (float)a.out
                                                                            : (double)a.in / (double)a.out;
        const lg_device device = x->storage->device->id;
        table t;
        if (make_table(call->ctx, &a, at->back, &t)) {
                const lg_shape shape = LG_SHAPE(t.taps, t.columns);
                held->index = lg_from(call->ctx, t.index, shape, .device = device);
                held->weight = lg_from(call->ctx, t.weight, shape, .device = device,
                                       .dtype = x->at.dtype == LG_F64 ? LG_F64 : LG_F32);
                ret->taps = t.taps;
        }
        free_table(call->ctx, &t);
        if (!held->index || !held->weight)
                return false;
        ret->index = lg__data(held->index);
        ret->weight = lg__data(held->weight);
        return true;
}

static bool infer_resample(lg__call *call)
{
        const resample_attributes *a = call->attributes;
        lg__layout *y = &call->out_at[0];
        const bool last = lg__layout_is_channels_last(&call->in[0]->at) && !lg__layout_is_contiguous(&call->in[0]->at);
        y->shape.size[a->dim] = a->back ? a->h_in : a->h_out;
        y->shape.size[a->dim + 1] = a->back ? a->w_in : a->w_out;
        if (!lg__shape_valid(call->ctx, "interpolate", y->shape))
                return false;
        if (last)
                lg__layout_channels_last(y);
        else
                lg__layout_contiguous(y);
        return true;
}

static bool forward_resample(lg__call *call)
{
        const resample_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        const int64_t *size = x->at.shape.size;
        const int ndim = x->at.shape.ndim;
        lg_resample_args k = {.dtype = x->at.dtype, .outer = size[0], .inner = 1};
        held_table h = {0}, w = {0};
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        const bool last = !lg__layout_is_contiguous(&x->at);
        for (int i = 2; i < ndim; i++)
                if (i < a->dim || i > a->dim + 1)
                        *(i < a->dim ? &k.outer : &k.inner) *= size[i];
        *(last ? &k.inner : &k.outer) *= size[1];
        k.x = lg__data(x);
        k.y = lg__data(call->out[0]);
        const bool ok = axis_of(call, true, &h, &k.h) && axis_of(call, false, &w, &k.w) &&
                        LG__RUN(call->device, "interpolate", resample, &k);
        lg__tensor_release(h.index);
        lg__tensor_release(h.weight);
        lg__tensor_release(w.index);
        lg__tensor_release(w.weight);
        return ok;
}

/* Applies `resample` to x of any layout: the kernel needs a dense one. */
static lg_tensor *resampled(lg_tensor *x, const resample_attributes *a)
{
        return LG__APPLY(resample, a, x && lg__layout_is_channels_last(&x->at) ? x : lg_contiguous(x));
}

static bool vjp_resample(lg__vjp *v)
{
        resample_attributes a = *(const resample_attributes *)v->attributes;
        a.back = !a.back;
        return (v->grad_in[0] = resampled(v->grad[0], &a)) != NULL;
}

/* Areas: means of windows or, in a larger image, elements that are repeated. */
static bool form_area(lg__form *f, const resample_attributes *a)
{
        lg__form_add(f, "y = x");
        for (int d = 0; d < 2; d++) {
                const int64_t in = d ? a->w_in : a->h_in, out = d ? a->w_out : a->h_out;
                if (in == out)
                        continue;
                lg__form_add(f, "; y = ");
                lg__form_areas(f, "y", "ReduceMean", a->dim + d, in, out);
        }
        return true;
}

static bool form(lg__form *f, const lg__call *call)
{
        static const char *const modes[] = {
                [LG_NEAREST] = "mode='nearest', nearest_mode='floor', coordinate_transformation_mode=",
                [LG_NEAREST_EXACT] =
                        "mode='nearest', nearest_mode='round_prefer_ceil', coordinate_transformation_mode=",
                [LG_LINEAR] = "mode='linear', coordinate_transformation_mode=",
                [LG_BICUBIC] = "mode='cubic', cubic_coeff_a=-0.75, coordinate_transformation_mode=",
                [LINEAR_ANTIALIAS] = "mode='linear', antialias=1, exclude_outside=1, coordinate_transformation_mode=",
                [CUBIC_ANTIALIAS] = "mode='cubic', antialias=1, exclude_outside=1, cubic_coeff_a=-0.5, "
                                    "coordinate_transformation_mode="};
        const resample_attributes *a = call->attributes;
        const lg_shape to = call->out[0]->at.shape;
        const bool whole = a->h_in % a->h_out == 0 && a->w_in % a->w_out == 0;
        if (a->mode == LG_AREA && whole && to.ndim == 4 && !a->back) { /* equal windows */
                const long long h = a->h_in / a->h_out, w = a->w_in / a->w_out;
                lg__form_add(f, "AveragePool(x, kernel_shape=(%lld %lld), strides=(%lld %lld))", h, w, h, w);
                return true;
        }
        if (a->mode == LG_AREA && !a->back)
                return form_area(f, a);
        const bool scaled = a->h_scale != 0 || a->w_scale != 0;
        lg__form_add(f, scaled ? "Resize(x, , {f32" : "Resize(x, , , [");
        for (int i = 0; i < to.ndim; i++) {
                const double step = i == a->dim ? a->h_scale : i == a->dim + 1 ? a->w_scale : 0;
                if (scaled)
                        lg__form_add(f, " %.17g", step != 0 ? 1 / step : 1);
                else
                        lg__form_add(f, "%lld ", (long long)to.size[i]);
        }
        lg__form_add(f, scaled ? "}, , " : "], ");
        if (a->back)
                return false;
        lg__form_add(f, "%s'%s')", modes[a->mode],
                     a->mode == LG_NEAREST ? "asymmetric"
                     : a->align_corners    ? "align_corners"
                                           : "half_pixel");
        return true;
}

LG__DEFINE(resample, LG__OPERANDS({"x", LG__FLOAT}), LG__RESULTS({"y"}), LG__HAS(resample), .infer = infer_resample,
           .forward = forward_resample, .vjp = vjp_resample, .form = form)

/* ---- interpolate ---- */

#define SIDES 3

/* Sizes of the result, and steps of x for a step of the result, 0 where the sizes determine them. */
typedef struct sides {
        int64_t out[SIDES];
        double step[SIDES];
} sides;

static bool out_of_sizes(const lg__call *call, const lg_interpolate_options *o, int count, sides *ret)
{
        for (int i = 0; i < count; i++) {
                ret->out[i] = o->size.items[o->size.count == 1 ? 0 : i];
                ret->step[i] = 0;
                if (ret->out[i] < 1 || ret->out[i] > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                        "interpolate: size %lld; sizes are above 0 and below 2^31",
                                        (long long)ret->out[i]);
        }
        return true;
}

static bool out_of_scales(const lg__call *call, const lg_interpolate_options *o, int count, sides *ret)
{
        const lg_tensor *x = call->in[0];
        for (int i = 0; i < count; i++) {
                const double scale = o->scales.count ? o->scales.items[i] : o->scale;
                if (!(scale > 0) || !isfinite(scale))
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                        "interpolate: scale %g; scales are finite and above 0", scale);
                const double out = floor((double)x->at.shape.size[2 + i] * scale);
                if (!(out >= 1 && out <= INT32_MAX))
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "interpolate: x is %s; scaled by %g, side %d has %.0f elements; sides are "
                                        "above 0 and below 2^31",
                                        lg__tensor_text(x).s, scale, i, out);
                ret->out[i] = (int64_t)out;
                ret->step[i] = o->recompute_scale_factor ? 0 : 1 / scale;
        }
        return true;
}

/* Checks the options that say how large the result is, and sets *ret. */
static bool sides_of(const lg__call *call, const lg_interpolate_options *o, int count, sides *ret)
{
        lg_ctx *c = call->ctx;
        const int64_t given = o->scales.count ? o->scales.count : o->size.count;
        if (!lg__list_ok(c, "interpolate", o->size.count, o->size.items) ||
            !lg__list_ok(c, "interpolate", o->scales.count, o->scales.items))
                return false;
        if ((o->size.count != 0) + (o->scale != 0) + (o->scales.count != 0) != 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "interpolate: exactly one of size, scale and scales is given");
        if (given && given != count && (o->scales.count || given != 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "interpolate: %lld %s for the %d sides of x, %s", (long long)given,
                                o->scales.count ? "scales" : "sizes", count, lg__tensor_text(call->in[0]).s);
        if (o->recompute_scale_factor && o->size.count)
                return lg__fail(c, LG_ERR_ARGUMENT, "interpolate: recompute_scale_factor is for scales, not for sizes");
        return (o->size.count ? out_of_sizes : out_of_scales)(call, o, count, ret);
}

/* Checks the mode and the options that depend on it. */
static bool mode_fits(const lg__call *call, const lg_interpolate_options *o)
{
        static const int sides_of_mode[] = {[LG_LINEAR] = 1, [LG_BILINEAR] = 2, [LG_BICUBIC] = 2, [LG_TRILINEAR] = 3};
        const lg_tensor *x = call->in[0];
        const int mode = (int)o->mode, ndim = x->at.shape.ndim;
        const int sides = mode >= LG_LINEAR && mode <= LG_TRILINEAR ? sides_of_mode[mode] : 0;
        if (mode < LG_NEAREST || mode > LG_AREA)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "interpolate: mode %d; it is LG_NEAREST to LG_AREA", mode);
        if (ndim < 3 || ndim > 5 || (sides && ndim != 2 + sides))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "interpolate: x is %s; in this mode it is %s%s",
                                lg__tensor_text(x).s,
                                sides == 1   ? "(N, C, L)"
                                : sides == 2 ? "(N, C, H, W)"
                                : sides == 3 ? "(N, C, D, H, W)"
                                             : "(N, C, L), (N, C, H, W) or (N, C, D, H, W)",
                                lg__layout_hint(x, sides ? sides : 2, 1));
        if (o->align_corners && !sides)
                return lg__fail(
                        call->ctx, LG_ERR_ARGUMENT,
                        "interpolate: align_corners is for LG_LINEAR, LG_BILINEAR, LG_BICUBIC and LG_TRILINEAR");
        if (o->antialias && mode != LG_BILINEAR && mode != LG_BICUBIC)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "interpolate: antialias is for LG_BILINEAR and LG_BICUBIC");
        for (int i = 2; i < ndim; i++)
                if (x->at.shape.size[i] < 1 || x->at.shape.size[i] > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "interpolate: x is %s; its sides are above 0 and below 2^31",
                                        lg__tensor_text(x).s);
        return true;
}

static lg_tensor *compose_interpolate(const lg__call *call)
{
        lg_interpolate_options o;
        lg_tensor *x = call->in[0];
        const int ndim = x->at.shape.ndim, count = ndim - 2;
        sides s;
        if (!lg__take(call->ctx, "interpolate", call->attributes, &o, sizeof o) || !mode_fits(call, &o) ||
            !sides_of(call, &o, count, &s))
                return NULL;
        const int64_t *in = x->at.shape.size + 2;
        resample_attributes a = {
                .mode = o.mode == LG_NEAREST || o.mode == LG_NEAREST_EXACT || o.mode == LG_AREA ? (int)o.mode
                        : o.mode == LG_BICUBIC ? (o.antialias ? (int)CUBIC_ANTIALIAS : (int)LG_BICUBIC)
                                               : (o.antialias ? (int)LINEAR_ANTIALIAS : (int)LG_LINEAR),
                .align_corners = o.align_corners};
        const int w = count - 1, h = count - 2; /* the last two sides */
        if (o.mode == LG_AREA)
                memset(s.step, 0, sizeof s.step);
        resample_attributes plane = a, depth = a;
        plane.dim = ndim == 5 ? 3 : 2;
        plane.w_in = in[w], plane.w_out = s.out[w], plane.w_scale = s.step[w];
        plane.h_in = h >= 0 ? in[h] : 1, plane.h_out = h >= 0 ? s.out[h] : 1, plane.h_scale = h >= 0 ? s.step[h] : 0;
        if (ndim == 3)
                return lg_squeeze(resampled(lg_unsqueeze(x, 2), &plane), LG_DIMS(2));
        if (ndim == 4)
                return resampled(x, &plane);
        depth.dim = 2;
        depth.h_in = in[0], depth.h_out = s.out[0], depth.h_scale = s.step[0];
        const lg_dtype dtype = x->at.dtype;
        x = lg__widened(x);     /* rounded once, after the second pass */
        if (s.out[0] > in[0]) { /* the order in which the result between the two is smaller */
                depth.w_in = depth.w_out = s.out[1];
                return lg_cast(resampled(resampled(x, &plane), &depth), dtype);
        }
        depth.w_in = depth.w_out = in[1];
        return lg_cast(resampled(resampled(x, &depth), &plane), dtype);
}

LG__DEFINE(interpolate, .compose = compose_interpolate, .autocast = LG__F32, LG__OPERANDS({"x", LG__FLOAT}))

lg_tensor *lg_interpolate_with(lg_tensor *x, const lg_interpolate_options *options)
{
        return LG__APPLY(interpolate, options, x);
}
