/* resize.c - ONNX's Resize: one dimension after another, by a matrix of weights or, for the nearest element, by index.
 */
#include <math.h>
#include "import.h"

typedef enum curve { NEAREST, LINEAR, CUBIC } curve;

/* How the elements of one dimension become others. */
typedef struct axis {
        int64_t in, out;
        double scale, begin, end; /* begin and end: the part of the dimension that is taken, for tf_crop_and_resize */
} axis;

typedef struct resizing {
        curve curve;
        const char *place, *nearest; /* coordinate_transformation_mode, nearest_mode */
        double a, extrapolation;     /* a: the cubic curve's coefficient */
        bool antialias, exclude_outside, crops;
} resizing;

/* Reads operand i as numbers, at most `most`. *ret_count is -1 if it is left out or empty. */
static bool take_numbers(const lg__onnx_call *c, int i, int64_t most, double *ret, int64_t *ret_count)
{
        lg_tensor *t = i < 0 ? NULL : lg__onnx_in(c, i);
        const int64_t n = t ? lg__shape_numel(t->at.shape) : 0;
        *ret_count = n ? n : -1;
        if (n > most)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "operand %d is %s", i, lg__tensor_text(t).s);
        return n == 0 || lg__onnx_read(c, i, ret, LG_F64, (size_t)n * sizeof *ret);
}

/* ---- positions and weights ---- */

/* Returns where element i of the result lies among the elements of x. */
static double position(const resizing *r, const axis *a, double i)
{
        const double out = a->scale * (double)a->in, in = (double)a->in;
        if (!strcmp(r->place, "align_corners"))
                return out == 1 ? 0 : i * (in - 1) / (out - 1);
        if (!strcmp(r->place, "asymmetric"))
                return i / a->scale;
        if (r->crops) {
                const double part = (a->end - a->begin) * (in - 1);
                return a->begin * (in - 1) + (out == 1 ? part / 2 : i * part / (out - 1));
        }
        if (!strcmp(r->place, "pytorch_half_pixel") && out == 1)
                return -0.5;
        if (!strcmp(r->place, "half_pixel_symmetric"))
                return in / 2 * (1 - (double)a->out / out) + (i + 0.5) / a->scale - 0.5;
        return (i + 0.5) / a->scale - 0.5;
}

static double weight(const resizing *r, double t)
{
        const double x = fabs(t), a = r->a;
        if (r->curve == LINEAR)
                return x < 1 ? 1 - x : 0;
        return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t inside(int64_t i, int64_t n)
{
        return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Fills row i of the matrix of weights, zeros before. Returns false if the position is outside of x. */
static bool fill_row(const resizing *r, const axis *a, int64_t i, double *row)
{
        const double x = position(r, a, (double)i), narrow = r->antialias && a->scale < 1 ? a->scale : 1;
        const double reach = (r->curve == LINEAR ? 1 : 2) / narrow;
        double sum = 0;
        if (r->crops && !(x >= 0 && x <= (double)(a->in - 1)))
                return false;
        const int64_t first = (int64_t)ceil(x - reach), last = (int64_t)floor(x + reach);
        for (int64_t j = first; j <= last; j++) {
                const double w = weight(r, ((double)j - x) * narrow);
                if (r->exclude_outside && (j < 0 || j >= a->in))
                        continue;
                row[inside(j, a->in)] += w;
                sum += w;
        }
        for (int64_t j = 0; j < a->in && sum != 0; j++)
                row[j] /= sum;
        return true;
}

static int64_t nearest_of(const resizing *r, double x)
{
        const double low = floor(x), part = x - low;
        const bool up = !strcmp(r->nearest, "floor")               ? false
                        : !strcmp(r->nearest, "ceil")              ? part > 0
                        : !strcmp(r->nearest, "round_prefer_ceil") ? part >= 0.5
                                                                   : part > 0.5;
        return (int64_t)low + up;
}

/* ---- one dimension ---- */

static lg_tensor *choose(const resizing *r, const axis *a, lg_tensor *x, int dim)
{
        lg_tensor *index = lg__tensor_empty(x->ctx, lg_cpu(), LG_I64, LG_SHAPE(a->out));
        for (int64_t i = 0; index && i < a->out; i++)
                ((int64_t *)lg__data(index))[i] = inside(nearest_of(r, position(r, a, (double)i)), a->in);
        index = index ? lg_to(index, x->storage->device->id) : NULL;
        return index ? lg_index_select(x, dim, index) : NULL;
}

/* Multiplies the dimension by the matrix of weights, and writes the given value where the position is outside of x. */
static lg_tensor *weigh(const resizing *r, const axis *a, lg_tensor *x, int dim)
{
        const lg_device device = x->storage->device->id;
        lg_tensor *w = lg_zeros(x->ctx, LG_SHAPE(a->out, a->in), .dtype = LG_F64, .device = lg_cpu());
        lg_tensor *out = w ? lg_zeros(x->ctx, LG_SHAPE(a->out), .dtype = LG_BOOL, .device = lg_cpu()) : NULL;
        if (!out)
                return NULL;
        bool some = false;
        for (int64_t i = 0; i < a->out; i++) {
                const bool beyond = !fill_row(r, a, i, (double *)lg__data(w) + i * a->in);
                ((char *)lg__data(out))[i] = beyond;
                some = some || beyond;
        }
        w = lg_to(lg_cast(w, x->at.dtype), device);
        lg_tensor *last = lg_transpose(x, dim, -1);
        lg_tensor *y = last ? lg_matmul(last, lg_transpose(w, 0, 1)) : NULL;
        if (y && some)
                y = lg_masked_fill(y, lg_to(out, device), r->extrapolation);
        return y ? lg_transpose(y, dim, -1) : NULL;
}

/* ---- the operator ---- */

static bool take_options(const lg__onnx_call *c, resizing *r)
{
        const char *mode = lg__onnx_text(c, "mode", "nearest");
        const bool old = c->opset < 11; /* Upsample, and Resize as it was first */
        r->curve = !strcmp(mode, "nearest") ? NEAREST : !strcmp(mode, "cubic") ? CUBIC : LINEAR;
        r->place = lg__onnx_text(c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
        r->nearest = lg__onnx_text(c, "nearest_mode", old ? "floor" : "round_prefer_floor");
        r->a = lg__onnx_float(c, "cubic_coeff_a", -0.75);
        r->extrapolation = lg__onnx_float(c, "extrapolation_value", 0);
        r->antialias = lg__onnx_int(c, "antialias", 0);
        r->exclude_outside = lg__onnx_int(c, "exclude_outside", 0);
        r->crops = !strcmp(r->place, "tf_crop_and_resize");
        return !r->crops || r->curve != NEAREST || lg__onnx_fail(c, LG_ERR_ARGUMENT, "cropping by the nearest element");
}

/* Sets the size and scale of the dimensions in dims from factors or, if these are left out, from sizes. */
static bool take_sizes(const lg__onnx_call *c, lg_dims dims, const double *scales, int64_t scale_count,
                       const double *sizes, int64_t size_count, axis *axes)
{
        const char *policy = lg__onnx_text(c, "keep_aspect_ratio_policy", "stretch");
        const bool keeps = strcmp(policy, "stretch") != 0;
        double common = 0;
        if ((scale_count < 0) == (size_count < 0) || (scale_count < 0 ? size_count : scale_count) != dims.count)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "it needs %d factors or %d sizes", dims.count, dims.count);
        for (int i = 0; i < dims.count; i++) {
                axis *a = &axes[dims.dim[i]];
                if (a->in < 1)
                        return lg__onnx_fail(c, LG_ERR_SHAPE, "dimension %d is empty", dims.dim[i]);
                a->scale = scale_count < 0 ? sizes[i] / (double)a->in : scales[i];
                const double size = scale_count < 0 ? sizes[i] : floor(scales[i] * (double)a->in);
                if (!(size >= 0 && size < INT32_MAX) || !(a->scale > 0) || a->in > INT32_MAX)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "dimension %d: factor %g, size %g", dims.dim[i],
                                             a->scale, size);
                a->out = (int64_t)size;
                common = i == 0                           ? a->scale
                         : !strcmp(policy, "not_smaller") ? fmax(common, a->scale)
                                                          : fmin(common, a->scale);
        }
        for (int i = 0; i < dims.count && keeps && size_count >= 0; i++) {
                axis *a = &axes[dims.dim[i]];
                a->scale = common;
                a->out = (int64_t)(common * (double)a->in + 0.5);
        }
        return true;
}

static lg_tensor *resize(const lg__onnx_call *c, int scales_at, int sizes_at, int roi_at)
{
        lg_tensor *x = c->in[0];
        const int ndim = x->at.shape.ndim;
        double scales[LG_MAX_DIMS], sizes[LG_MAX_DIMS], roi[2 * LG_MAX_DIMS];
        int64_t scale_count, size_count, roi_count;
        axis axes[LG_MAX_DIMS];
        resizing r;
        lg_dims dims;
        if (!take_options(c, &r) || !lg__onnx_axes(c, -1, "axes", ndim, &dims) ||
            !take_numbers(c, scales_at, LG_MAX_DIMS, scales, &scale_count) ||
            !take_numbers(c, sizes_at, LG_MAX_DIMS, sizes, &size_count) ||
            !take_numbers(c, roi_at, 2 * LG_MAX_DIMS, roi, &roi_count))
                return NULL;
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, "scales"); /* Upsample before opset 9 */
        if (scale_count < 0 && a && a->count <= LG_MAX_DIMS && a->floats) {
                memcpy(scales, a->floats, (size_t)a->count * sizeof *scales);
                scale_count = a->count;
        }
        for (; dims.count < ndim && !lg__onnx_attribute_of(c, "axes"); dims.count++)
                dims.dim[dims.count] = dims.count;
        for (int i = 0; i < ndim; i++)
                axes[i] = (axis){x->at.shape.size[i], x->at.shape.size[i], 1, 0, 1};
        for (int i = 0; i < dims.count && roi_count == 2 * dims.count && r.crops; i++) {
                axes[dims.dim[i]].begin = roi[i];
                axes[dims.dim[i]].end = roi[dims.count + i];
        }
        if (!take_sizes(c, dims, scales, scale_count, sizes, size_count, axes))
                return NULL;
        const lg_dtype dtype = x->at.dtype;
        const bool widen = r.curve != NEAREST && !lg__dtype_float(dtype);
        x = widen ? lg_cast(x, LG_F32) : x;
        for (int i = 0; i < dims.count && x; i++) {
                const axis *of = &axes[dims.dim[i]];
                if (of->scale == 1 && of->out == of->in && of->begin == 0 && of->end == 1)
                        continue;
                x = r.curve == NEAREST ? choose(&r, of, x, dims.dim[i]) : weigh(&r, of, x, dims.dim[i]);
        }
        return x && widen ? lg_cast(x, dtype) : x;
}

LG__ONNX(Resize)
{
        return c->opset < 11 ? resize(c, 1, -1, -1) : resize(c, 2, 3, 1);
}

LG__ONNX(Upsample)
{
        return resize(c, 1, -1, -1);
}
