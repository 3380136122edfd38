/* unfold.c - the windows of images as columns (unfold), and sums of such columns (fold).
 *
 * im2col: y[n, (c, k, l), (i, j)] = x[n, c, i s + k d, j s + l d], for all windows (i, j) and elements (k, l) of a
 * window; dx = col2im(g), which adds each element of g where it is from. Each is the derivative of the other. unfold
 * pads x first, and fold crops its result.
 */
#include "images.h"

#define IM2COL_FIELDS(FIELD) FIELD(geometry, at, 0)
LG__ATTRIBUTES(im2col, IM2COL_FIELDS)

/* ---- the ops: images (N, C, in), columns (N, C kernel, out) ---- */

static bool infer_im2col(lg__call *call)
{
        const lg_conv_geometry *at = &((const im2col_attributes *)call->attributes)->at;
        const int64_t *s = call->in[0]->at.shape.size, taps = at->kernel[0] * at->kernel[1];
        call->out_at[0].shape = call->op == LG__OP(im2col) ? LG_SHAPE(s[0], s[1] * taps, at->out[0] * at->out[1])
                                                           : LG_SHAPE(s[0], s[1] / taps, at->in[0], at->in[1]);
        return lg__shape_valid(call->ctx, call->op->name, call->out_at[0].shape);
}

/* Sets the layouts of handles on images and columns to (N, C, kernel, out): windows of the images overlap. */
static void as_windows(const lg_conv_geometry *at, lg_tensor *images, lg_tensor *columns)
{
        const int64_t *i = images->at.strides, *c = columns->at.strides, *kernel = at->kernel, *out = at->out;
        const int64_t of_images[] = {
                i[0], i[1], at->dilation[0] * i[2], at->dilation[1] * i[3], at->stride[0] * i[2], at->stride[1] * i[3]};
        const int64_t of_columns[] = {c[0], kernel[0] * kernel[1] * c[1], kernel[1] * c[1], c[1], out[1] * c[2], c[2]};
        images->at.shape = columns->at.shape =
                LG_SHAPE(images->at.shape.size[0], images->at.shape.size[1], kernel[0], kernel[1], out[0], out[1]);
        for (int d = 0; d < 6; d++) {
                images->at.strides[d] = of_images[d];
                columns->at.strides[d] = of_columns[d];
        }
}

static bool forward_im2col(lg__call *call)
{
        lg_tensor images = *call->in[0], columns = *call->out[0];
        as_windows(&((const im2col_attributes *)call->attributes)->at, &images, &columns);
        return lg__copy_values(&columns, &images, "im2col");
}

/* Returns t as (N, C, out), for element (k, l) of all windows. */
static lg_tensor element_of(const lg_tensor *windows, int64_t k, int64_t l)
{
        lg_tensor t = *windows;
        t.at.offset += k * t.at.strides[2] + l * t.at.strides[3];
        t.at.shape = LG_SHAPE(t.at.shape.size[0], t.at.shape.size[1], t.at.shape.size[4], t.at.shape.size[5]);
        t.at.strides[2] = windows->at.strides[4];
        t.at.strides[3] = windows->at.strides[5];
        return t;
}

/* Sets images to the sums of the columns. Windows of one element (k, l) do not overlap. */
static bool add_columns(const lg_conv_geometry *at, lg_tensor images, lg_tensor columns)
{
        if (!lg__fill_values(&images, 0, "col2im") || lg__shape_numel(columns.at.shape) == 0)
                return images.ctx->error == LG_ERR_NONE;
        as_windows(at, &images, &columns);
        bool ok = true;
        for (int64_t k = 0; k < at->kernel[0]; k++)
                for (int64_t l = 0; l < at->kernel[1] && ok; l++) {
                        lg_tensor to = element_of(&images, k, l), from = element_of(&columns, k, l);
                        ok = lg__pointwise_run(LG_PW_add, &to, (lg_tensor *[LG_PW_INPUTS]){&to, &from}, 0, 0, "col2im");
                }
        return ok;
}

/* 16-bit floats are added in f32. */
static bool forward_col2im(lg__call *call)
{
        const lg_conv_geometry *at = &((const im2col_attributes *)call->attributes)->at;
        lg_tensor *g = call->in[0], *y = call->out[0];
        if (g->at.dtype == LG_F32 || g->at.dtype == LG_F64)
                return add_columns(at, *y, *g);
        lg_tensor *wide = lg__clone_values(g, g->storage->device->id, LG_F32);
        lg_tensor *sum = lg__tensor_empty(call->ctx, y->storage->device->id, LG_F32, y->at.shape);
        const bool ok = wide && sum && add_columns(at, *sum, *wide) && lg__copy_values(y, sum, "col2im");
        lg__tensor_release(wide);
        lg__tensor_release(sum);
        return ok;
}

static bool vjp_im2col(lg__vjp *v)
{
        const lg__op *op = v->op == LG__OP(im2col) ? LG__OP(col2im) : LG__OP(im2col);
        return (v->grad_in[0] = lg__apply1(op, v->grad[0], v->attributes)) != NULL;
}

static bool form(lg__form *f, const lg__call *call)
{
        const lg_conv_geometry *at = &((const im2col_attributes *)call->attributes)->at;
        const lg_shape s = call->in[0]->at.shape;
        const long long taps = at->kernel[0] * at->kernel[1];
        if (call->op == LG__OP(im2col)) { /* a convolution of each channel with the identity */
                lg__form_add(f, "o = Expand({1}, [%lld %lld]); o = Trilu(Trilu(o, <0>, upper=0), <0>, upper=1); ", taps,
                             taps);
                lg__form_add(f, "o = Tile(Reshape(o, [%lld 1 %lld %lld]), [%lld 1 1 1]); ", taps,
                             (long long)at->kernel[0], (long long)at->kernel[1], (long long)s.size[1]);
                lg__form_add(f, "o = Conv(x, o, strides=(%lld %lld), dilations=(%lld %lld), group=%lld); ",
                             (long long)at->stride[0], (long long)at->stride[1], (long long)at->dilation[0],
                             (long long)at->dilation[1], (long long)s.size[1]);
                lg__form_add(f, "Reshape(o, [%lld %lld %lld])", (long long)s.size[0], (long long)s.size[1] * taps,
                             (long long)at->out[0] * at->out[1]);
                return true;
        }
        lg__form_add(f, "Col2Im(x, [%lld %lld], [%lld %lld], strides=(%lld %lld), dilations=(%lld %lld))",
                     (long long)at->in[0], (long long)at->in[1], (long long)at->kernel[0], (long long)at->kernel[1],
                     (long long)at->stride[0], (long long)at->stride[1], (long long)at->dilation[0],
                     (long long)at->dilation[1]);
        return true;
}

#define IM2COL(of)                                                                                                     \
        LG__DEFINE(of, LG__OPERANDS({"x", LG__FLOAT}), LG__RESULTS({"y"}), LG__HAS(im2col), .infer = infer_im2col,     \
                   .forward = forward_##of, .vjp = vjp_im2col, .form = form)
IM2COL(im2col)
IM2COL(col2im)

/* ---- unfold and fold ---- */

typedef struct arguments {
        int64_t size, kernel;
        const void *options;
} arguments;

/* Sets the sides of padded images of these sides, and the number of windows. Returns false and sets an error. */
static bool windows_of(const lg__call *call, const lg_fold_options *o, const int64_t side[2], lg_conv_geometry *ret)
{
        const char *op = call->op->name;
        const arguments *p = call->attributes;
        const lg_triple kernels = lg__sides(lg__deepened(o->kernels), p->kernel);
        const lg_triple strides = lg__sides(lg__deepened(o->strides), lg__whole_option(o->stride, 1));
        const lg_triple paddings = lg__sides(lg__deepened(o->paddings), lg__whole_option(o->padding, 0));
        const lg_triple dilations = lg__sides(lg__deepened(o->dilations), lg__whole_option(o->dilation, 1));
        for (int d = 0; d < 2; d++) {
                const int64_t kernel = d ? kernels.w : kernels.h, stride = d ? strides.w : strides.h;
                const int64_t padding = d ? paddings.w : paddings.h, dilation = d ? dilations.w : dilations.h;
                if (kernel < 1 || stride < 1 || dilation < 1 || padding < 0 || kernel > INT32_MAX ||
                    stride > INT32_MAX || dilation > INT32_MAX || padding > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                        "%s: kernel %lld, stride %lld, dilation %lld, padding %lld; the padding must "
                                        "be 0 or more, the others above 0, and all below 2^31",
                                        op, (long long)kernel, (long long)stride, (long long)dilation,
                                        (long long)padding);
                const int64_t reach = dilation * (kernel - 1) + 1, in = side[d] > INT32_MAX ? 0 : side[d] + 2 * padding;
                if (side[d] < 1 || reach > in)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "%s: a window of %lld does not fit in a side of %lld with padding %lld; a side "
                                        "is above 0 and below 2^31",
                                        op, (long long)reach, (long long)side[d], (long long)padding);
                const int64_t out = (in - reach) / stride + 1;
                lg__set_side(ret, d, &(lg__side){in, kernel, out, stride, padding, dilation});
        }
        return true;
}

/* Returns images with padding, or without it, added to or removed from all four sides. */
static lg_tensor *padded(lg_tensor *images, const lg_conv_geometry *at, int sign)
{
        const int64_t h = sign * at->padding[0], w = sign * at->padding[1];
        return h || w ? lg_pad(images, LG_INTS(w, w, h, h)) : images;
}

static lg_tensor *compose_unfold(const lg__call *call)
{
        const arguments *p = call->attributes;
        lg_unfold_options o;
        im2col_attributes a = {.at.groups = 1};
        lg_tensor *x = lg__as_images(call, 2);
        int64_t rows;
        if (!x || !lg__take(call->ctx, "unfold", p->options, &o, sizeof o) || !lg__has_pixels(call, x))
                return NULL;
        const lg_fold_options all = {.stride = o.stride,
                                     .padding = o.padding,
                                     .dilation = o.dilation,
                                     .kernels = o.kernels,
                                     .strides = o.strides,
                                     .paddings = o.paddings,
                                     .dilations = o.dilations};
        if (!windows_of(call, &all, &x->at.shape.size[2], &a.at))
                return NULL;
        if (__builtin_mul_overflow(a.at.kernel[0] * a.at.kernel[1], x->at.shape.size[1], &rows))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "unfold: the rows would exceed 2^63");
        lg_tensor *y = LG__APPLY(im2col, &a, padded(x, &a.at, 1));
        return call->in[0]->at.shape.ndim == 3 ? lg_squeeze(y, LG_DIMS(0)) : y;
}

static lg_tensor *compose_fold(const lg__call *call)
{
        const arguments *p = call->attributes;
        lg_fold_options o;
        im2col_attributes a = {.at.groups = 1};
        lg_tensor *x = call->in[0];
        const bool alone = x->at.shape.ndim == 2;
        if (!lg__take(call->ctx, "fold", p->options, &o, sizeof o))
                return NULL;
        if (!alone && x->at.shape.ndim != 3)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "fold: x is %s; it is (N, C K, L) or (C K, L)",
                                lg__tensor_text(x).s);
        const lg_triple sides = lg__sides(lg__deepened(o.sizes), p->size);
        if (!lg__has_pixels(call, x = alone ? lg_unsqueeze(x, 0) : x) ||
            !windows_of(call, &o, (int64_t[]){sides.h, sides.w}, &a.at))
                return NULL;
        const int64_t *s = x->at.shape.size, taps = a.at.kernel[0] * a.at.kernel[1],
                      windows = a.at.out[0] * a.at.out[1];
        if (s[1] % taps || s[2] != windows)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "fold: x is %s; for %lld x %lld windows of %lld x %lld it has a multiple of %lld rows "
                                "and %lld columns",
                                lg__tensor_text(call->in[0]).s, (long long)a.at.out[0], (long long)a.at.out[1],
                                (long long)a.at.kernel[0], (long long)a.at.kernel[1], (long long)taps,
                                (long long)windows);
        lg_tensor *y = padded(LG__APPLY(col2im, &a, x), &a.at, -1);
        return alone ? lg_squeeze(y, LG_DIMS(0)) : y;
}

LG__COMPOSITE(unfold, {"x", LG__FLOAT})
LG__COMPOSITE(fold, {"x", LG__FLOAT})

lg_tensor *lg_unfold_with(lg_tensor *x, int64_t kernel, const lg_unfold_options *options)
{
        return LG__APPLY(unfold, (&(arguments){0, kernel, options}), x);
}

lg_tensor *lg_fold_with(lg_tensor *x, int64_t size, int64_t kernel, const lg_fold_options *options)
{
        return LG__APPLY(fold, (&(arguments){size, kernel, options}), x);
}
