/* pool.c - max, average and L^p pooling over windows of signals, images and volumes.
 *
 * max_pool2d also returns the indices of the maxima: dx = max_pool2d_grad(g, indices), which adds g at these indices
 * and has the derivative max_pool2d_pick(v, indices), the values at these indices. avg_pool2d is linear: dx =
 * avg_pool2d_grad(g), which distributes g over the windows; each is the other's derivative. Images have channels-last
 * layout.
 *
 * L^p pooling is the p-th root of the average of p-th powers, times the size of the kernel.
 *
 * Windows of volumes are pooled twice: each slice (H, W), then the slices along D, as images of D rows of H W pixels.
 */
#include <math.h>
#include "images.h"

#define POOL_FIELDS(FIELD)                                                                                             \
        FIELD(geometry, at, 0)                                                                                         \
        FIELD(i64, divisor, 0) FIELD(bool, adaptive, false) FIELD(bool, no_count_padding, false)
LG__ATTRIBUTES(pool, POOL_FIELDS)

/* ---- the ops: x (N, C, in), y, g and indices (N, C, out) ---- */

static bool infer(lg__call *call)
{
        const pool_attributes *a = call->attributes;
        const bool to_input = call->op == LG__OP(max_pool2d_grad) || call->op == LG__OP(avg_pool2d_grad);
        const int64_t *size = to_input ? a->at.in : a->at.out, *given = call->in[0]->at.shape.size;
        lg__layout *y = &call->out_at[0];
        y->shape = LG_SHAPE(given[0], given[1], size[0], size[1]);
        if (!lg__shape_valid(call->ctx, call->op->name, y->shape))
                return false;
        lg__layout_channels_last(y);
        if (call->op == LG__OP(max_pool2d)) {
                call->out_at[1] = *y;
                call->out_at[1].dtype = LG_I32;
        }
        return true;
}

static bool forward(lg__call *call)
{
        static const lg__op *const ops[] = {[LG_POOL_MAX] = LG__OP(max_pool2d),
                                            [LG_POOL_MAX_GRAD] = LG__OP(max_pool2d_grad),
                                            [LG_POOL_MAX_PICK] = LG__OP(max_pool2d_pick),
                                            [LG_POOL_AVG] = LG__OP(avg_pool2d),
                                            [LG_POOL_AVG_GRAD] = LG__OP(avg_pool2d_grad)};
        const pool_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0], *index = NULL;
        lg_pool_args k = {.dtype = x->at.dtype, .n = x->at.shape.size[0], .at = a->at};
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        while (ops[k.kind] != call->op)
                k.kind++;
        if (call->in_count + call->out_count > 2) /* max pooling: an input or output holds the indices */
                index = call->in_count > 1 ? call->in[1] : call->out[1];
        k.channels = x->at.shape.size[1];
        k.adaptive = a->adaptive;
        k.count_padding = !a->no_count_padding;
        k.divisor = a->divisor;
        k.from = lg__data(x);
        k.to = lg__data(call->out[0]);
        k.index = index ? lg__data(index) : NULL;
        return LG__RUN(call->device, call->op->name, pool, &k);
}

static bool vjp_max(lg__vjp *v)
{
        const lg__op *op = v->op == LG__OP(max_pool2d_grad) ? LG__OP(max_pool2d_pick) : LG__OP(max_pool2d_grad);
        lg_tensor *index = v->op == LG__OP(max_pool2d) ? v->out[1] : v->in[1];
        return (v->grad_in[0] = lg__apply2(op, v->grad[0], index, v->attributes)) != NULL;
}

static bool vjp_avg(lg__vjp *v)
{
        const lg__op *op = v->op == LG__OP(avg_pool2d) ? LG__OP(avg_pool2d_grad) : LG__OP(avg_pool2d);
        return (v->grad_in[0] = lg__apply1(op, v->grad[0], v->attributes)) != NULL;
}

/* Returns whether the windows of side d are those of ONNX without rounding up. */
static bool rounds_down(const lg_conv_geometry *at, int d)
{
        const int64_t reach = at->dilation[d] * (at->kernel[d] - 1) + 1;
        return (at->in[d] + 2 * at->padding[d] - reach) / at->stride[d] + 1 == at->out[d];
}

void lg__form_areas(lg__form *f, const char *x, const char *reduce, int dim, int64_t in, int64_t out)
{
        lg__form_add(f, "Concat(");
        for (int64_t i = 0; i < out && f->length < sizeof f->s; i++)
                lg__form_add(f, "%s(Slice(%s, [%lld], [%lld], [%d]), [%d], keepdims=1), ", reduce, x,
                             (long long)(i * in / out), (long long)(((i + 1) * in + out - 1) / out), dim, dim);
        lg__form_add(f, "axis=%d)", dim);
}

/* Reduces windows that are not equal one by one. */
static bool form_uneven(lg__form *f, const lg_conv_geometry *at, const char *reduce)
{
        lg__form_add(f, "h = ");
        lg__form_areas(f, "x", reduce, 2, at->in[0], at->out[0]);
        lg__form_add(f, "; y = ");
        lg__form_areas(f, "h", reduce, 3, at->in[1], at->out[1]);
        return true;
}

/* Adaptive windows become equal ones if they can. ONNX's indices count through all images and channels. */
static bool form(lg__form *f, const lg__call *call)
{
        const pool_attributes *a = call->attributes;
        lg_conv_geometry at = a->at;
        const bool max = call->op == LG__OP(max_pool2d);
        for (int d = 0; d < 2 && a->adaptive; d++) {
                if (at.in[d] % at.out[d])
                        return (max || call->op == LG__OP(avg_pool2d)) &&
                               form_uneven(f, &at, max ? "ReduceMax" : "ReduceMean");
                at.kernel[d] = at.stride[d] = at.in[d] / at.out[d];
        }
        if (a->adaptive && at.out[0] == 1 && at.out[1] == 1 && !max) {
                lg__form_add(f, "GlobalAveragePool(x)");
                return true;
        }
        const long long k[] = {at.kernel[0], at.kernel[1]}, s[] = {at.stride[0], at.stride[1]},
                        p[] = {at.padding[0], at.padding[1]}, l[] = {at.dilation[0], at.dilation[1]};
        lg__form_add(f, "%s(x, kernel_shape=(%lld %lld), strides=(%lld %lld), pads=(%lld %lld %lld %lld), ceil_mode=%d",
                     max ? "y, i = MaxPool" : "y = AveragePool", k[0], k[1], s[0], s[1], p[0], p[1], p[0], p[1],
                     !a->adaptive && !(rounds_down(&at, 0) && rounds_down(&at, 1)));
        if (max)
                lg__form_add(f, ", dilations=(%lld %lld)); indices = Cast(Mod(i, [%lld]), to=i32)", l[0], l[1],
                             (long long)at.in[0] * at.in[1]);
        else if (a->divisor)
                lg__form_add(f, ", count_include_pad=1); y = Mul(y, {%.17g})",
                             (double)(k[0] * k[1]) / (double)a->divisor);
        else
                lg__form_add(f, ", count_include_pad=%d)", !a->no_count_padding);
        return max || call->op == LG__OP(avg_pool2d);
}

#define POOL2D(of, derivative, ...)                                                                                    \
        LG__DEFINE(of, LG__HAS(pool), .infer = infer, .forward = forward, .vjp = derivative, .form = form, __VA_ARGS__)
#define IMAGE(name) name, LG__FLOAT, LG__CHANNELS_LAST
#define INDICES "indices", LG__ANY, LG__CHANNELS_LAST, .saved_for = LG__BY(0)
POOL2D(max_pool2d, vjp_max, LG__OPERANDS({IMAGE("x")}), LG__RESULTS({"y"}, {"indices", .saved_for = LG__BY(0)}))
POOL2D(max_pool2d_grad, vjp_max, LG__OPERANDS({IMAGE("g")}, {INDICES}), LG__RESULTS({"y"}), .flags = LG__UNORDERED)
POOL2D(max_pool2d_pick, vjp_max, LG__OPERANDS({IMAGE("x")}, {INDICES}), LG__RESULTS({"y"}))
POOL2D(avg_pool2d, vjp_avg, LG__OPERANDS({IMAGE("x")}), LG__RESULTS({"y"}))
POOL2D(avg_pool2d_grad, vjp_avg, LG__OPERANDS({IMAGE("g")}), LG__RESULTS({"y"}))

/* ---- public functions ---- */

/* Union of the options of all pooling functions; options that a function does not have are zero. */
typedef struct pool_options {
        int64_t stride, padding, dilation, divisor;
        bool ceil_mode, no_count_padding;
        lg_triple kernels, strides, paddings, dilations, sizes;
        lg_tensor **indices;
} pool_options;

typedef struct arguments {
        int64_t size; /* size of the kernel, or of the result if adaptive */
        const void *options;
        bool (*read)(const lg__call *call, const void *options, pool_options *ret);
        int spaces; /* number of spatial dimensions */
        bool max, adaptive;
        double p; /* of L^p pooling; else 0 */
} arguments;

/* Returns side d (0 to 2: depth, height, width) of an option: `given` if it is, else `each`, else `otherwise`. Sides
 * that x does not have are `absent`. */
static int64_t side(const arguments *p, int d, lg_triple given, int64_t each, int64_t otherwise, int64_t absent)
{
        const lg_triple sides = lg__sides(given, lg__whole_option(each, otherwise));
        return d < 3 - p->spaces ? absent : d == 0 ? sides.d : d == 1 ? sides.h : sides.w;
}

/* Sets the size of one side of the output by PyTorch's formula. Returns false and sets an error if no window fits. */
static bool output_size(const lg__call *call, lg__side *s, bool ceil_mode)
{
        lg_ctx *c = call->ctx;
        const char *op = call->op->name;
        if (s->kernel < 1 || s->stride < 1 || s->dilation < 1 || s->padding < 0 || s->kernel > INT32_MAX ||
            s->stride > INT32_MAX || s->dilation > INT32_MAX)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: kernel %lld, stride %lld, dilation %lld, padding %lld; the padding must be 0 or more, "
                        "the others above 0 and below 2^31",
                        op, (long long)s->kernel, (long long)s->stride, (long long)s->dilation, (long long)s->padding);
        if (s->padding > s->kernel / 2)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: padding %lld is more than half of kernel %lld", op,
                                (long long)s->padding, (long long)s->kernel);
        const int64_t reach = s->dilation * (s->kernel - 1) + 1, left = s->in + 2 * s->padding - reach;
        if (left < 0)
                return lg__fail(c, LG_ERR_SHAPE,
                                "%s: x is %s: a window of %lld is greater than the input of %lld with padding %lld", op,
                                lg__tensor_text(call->in[0]).s, (long long)reach, (long long)s->in,
                                (long long)s->padding);
        s->out = (left + (ceil_mode ? s->stride - 1 : 0)) / s->stride + 1;
        if (ceil_mode && (s->out - 1) * s->stride >= s->in + s->padding)
                s->out--;
        return true;
}

static bool window_of(const lg__call *call, int d, const pool_options *o, lg__side *s)
{
        const arguments *p = call->attributes;
        s->kernel = side(p, d, o->kernels, p->size, 0, 1);
        s->stride = o->stride || o->strides.given ? side(p, d, o->strides, o->stride, 1, 1) : s->kernel;
        s->padding = side(p, d, o->paddings, o->padding, 0, 0);
        s->dilation = side(p, d, o->dilations, o->dilation, 1, 1);
        return output_size(call, s, o->ceil_mode);
}

static bool adaptive_window_of(const lg__call *call, int d, const pool_options *o, lg__side *s)
{
        const arguments *p = call->attributes;
        s->kernel = s->stride = s->dilation = 1;
        s->out = side(p, d, o->sizes, p->size, 0, 1);
        if (s->out >= 1 && s->in >= 1 && s->out <= INT32_MAX)
                return true;
        return lg__fail(call->ctx, s->out < 1 ? LG_ERR_ARGUMENT : LG_ERR_SHAPE,
                        "%s: %lld of %lld pixels; both must be above 0", call->op->name, (long long)s->out,
                        (long long)s->in);
}

/* Sets the attributes of the pooling of images (H, W), and the geometry along D; for images D is 1. */
static bool windows_of(const lg__call *call, const lg_tensor *x, const pool_options *o, pool_attributes *ret,
                       lg__side *depth)
{
        const arguments *p = call->attributes;
        ret->at.groups = 1;
        ret->adaptive = p->adaptive;
        ret->divisor = lg__whole_option(o->divisor, 0);
        ret->no_count_padding = o->no_count_padding;
        if (ret->divisor < 0)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: divisor %lld is below 0", call->op->name,
                                (long long)ret->divisor);
        for (int d = 0; d < 3; d++) {
                const bool absent = d == 0 && p->spaces < 3;
                lg__side s = {.in = absent ? 1 : x->at.shape.size[x->at.shape.ndim - 3 + d]};
                if (!(p->adaptive ? adaptive_window_of : window_of)(call, d, o, &s))
                        return false;
                if (d == 0)
                        *depth = s;
                else
                        lg__set_side(&ret->at, d - 1, &s);
        }
        return true;
}

/* Checks that an image of `rows` rows has no more pixels than i32 indices can name. */
static bool plane_fits(const lg__call *call, int64_t rows, int64_t columns)
{
        if (rows == 0 || columns <= INT32_MAX / rows)
                return true;
        return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: an image of %lld x %lld has more pixels than indices can name",
                        call->op->name, (long long)rows, (long long)columns);
}

/* Pools images x (N, C, H, W). Stores the indices of max pooling, i64, in *ret_indices unless ret_indices is NULL. */
static lg_tensor *pool_images(lg_tensor *x, bool max, const pool_attributes *a, lg_tensor **ret_indices)
{
        lg_tensor *out[2] = {NULL};
        if (!max)
                return LG__APPLY(avg_pool2d, a, x);
        if (!lg__apply(LG__OP(max_pool2d), &x, 1, a, out))
                return NULL;
        if (ret_indices)
                *ret_indices = lg_cast(out[1], LG_I64);
        lg__tensor_release(out[1]);
        return ret_indices && !*ret_indices ? NULL : out[0];
}

/* Swaps the dimensions C and D of (N, C, D, ...), of 4 or 5 dimensions. */
static lg_tensor *swapped(lg_tensor *x)
{
        return x && x->at.shape.ndim == 5 ? lg_permute(x, LG_DIMS(0, 2, 1, 3, 4)) : lg_permute(x, LG_DIMS(0, 2, 1, 3));
}

/* Returns the indices in volumes of maxima: `second`, of the slices along D, and `first`, in each slice (N, C, D, H'
 * W'), of which second (N, C, D', H' W') selects. */
static lg_tensor *indices_of(lg_tensor *first, lg_tensor *second, int64_t slice)
{
        const lg_shape s = first->at.shape;
        lg_tensor *base =
                lg_arange(first->ctx, 0, (double)s.size[2], 1, .dtype = LG_I64, .device = first->storage->device->id);
        first = lg_add(first, lg_reshape(lg_mul_scalar(base, (double)slice), LG_SHAPE(-1, 1)));
        lg_tensor *flat = lg_reshape(second, LG_SHAPE(s.size[0], s.size[1], second->at.shape.size[2] * s.size[3]));
        return lg_gather(lg_reshape(first, LG_SHAPE(s.size[0], s.size[1], s.size[2] * s.size[3])), 2, flat);
}

/* Pools volumes x (N, C, D, H, W): images of `a`, then along D. */
static lg_tensor *pool_volumes(const lg__call *call, lg_tensor *x, const pool_attributes *a, const lg__side *depth,
                               lg_tensor **ret_indices)
{
        const arguments *p = call->attributes;
        const int64_t n = x->at.shape.size[0], c = x->at.shape.size[1], slice = a->at.in[0] * a->at.in[1];
        const int64_t *out = a->at.out, pixels = out[0] * out[1];
        pool_attributes along = *a, within = *a;
        lg_tensor *first = NULL, *second = NULL, **const wanted = ret_indices ? &first : NULL;
        lg__set_side(&along.at, 0, depth);
        lg__set_side(&along.at, 1, &(lg__side){pixels, 1, pixels, 1, 0, 1});
        within.divisor = a->divisor ? 1 : 0;
        if (!plane_fits(call, out[0], out[1]) || !plane_fits(call, depth->in, pixels))
                return NULL;
        const lg_dtype dtype = x->at.dtype;
        x = lg__channels_last(p->max ? x : lg__widened(x));
        x = lg_reshape(swapped(x), LG_SHAPE(n * depth->in, c, a->at.in[0], a->at.in[1]));
        lg_tensor *y = pool_images(x, p->max, &within, wanted);
        y = pool_images(swapped(lg_reshape(y, LG_SHAPE(n, depth->in, c, pixels))), p->max, &along,
                        wanted ? &second : NULL);
        if (y && wanted) {
                first = swapped(lg_reshape(first, LG_SHAPE(n, depth->in, c, pixels)));
                first = first ? indices_of(first, second, slice) : NULL;
                *ret_indices = lg_reshape(first, LG_SHAPE(n, c, depth->out, out[0], out[1]));
        }
        return lg_cast(lg_reshape(y, LG_SHAPE(n, c, depth->out, out[0], out[1])), dtype);
}

/* Returns the p-th root of y times the size of the kernel; the derivative is 0 where y is 0, as PyTorch's is. */
static lg_tensor *root_of(lg_tensor *y, double p, double kernel)
{
        y = lg_mul(lg_sign(y), lg_relu(lg_abs(y)));
        return lg_pow_scalar(lg_mul_scalar(y, kernel), 1 / p);
}

static lg_tensor *compose(const lg__call *call)
{
        const arguments *p = call->attributes;
        pool_attributes a = {0};
        pool_options o;
        lg__side depth = {0};
        lg_tensor *x = lg__as_images(call, p->spaces), *index = NULL;
        if (!x || ((p->max || !p->adaptive) && !lg__has_pixels(call, x)) || !p->read(call, p->options, &o) ||
            !windows_of(call, x, &o, &a, &depth) || !plane_fits(call, a.at.in[0], a.at.in[1]))
                return NULL;
        lg_tensor **const wanted = o.indices ? &index : NULL;
        const lg_dtype dtype = x->at.dtype;
        x = p->p ? lg_pow_scalar(lg__widened(x), p->p) : x;
        if (!x)
                return NULL;
        lg_tensor *y = p->spaces == 3 ? pool_volumes(call, x, &a, &depth, wanted) : pool_images(x, p->max, &a, wanted);
        if (p->p)
                y = lg_cast(root_of(y, p->p, (double)(a.at.kernel[0] * a.at.kernel[1]) * (double)depth.kernel), dtype);
        index = index ? lg__as_given(call, index, p->spaces) : NULL;
        y = y && (index || !wanted) ? lg__as_given(call, y, p->spaces) : NULL;
        if (y && wanted)
                *o.indices = index;
        return y;
}

#define WINDOWS .stride = o.stride, .padding = o.padding, .ceil_mode = o.ceil_mode
#define SIDES(as) .kernels = as(o.kernels), .strides = as(o.strides), .paddings = as(o.paddings)
#define DILATED(as) .dilations = as(o.dilations)
#define AS_IT_IS(triple) triple
#define MAX .dilation = o.dilation, .indices = o.indices
#define COUNTED .no_count_padding = o.no_count_padding
#define IS(...) __VA_ARGS__
#define POOLING(linkage, of, op, is, ...)                                                                              \
        READING(linkage, of, op, LG__AS_IT_IS, __VA_ARGS__)                                                            \
        lg_tensor *lg_##of##_with(lg_tensor *x, int64_t size, const lg_##of##_options *options)                        \
        {                                                                                                              \
                return lg__apply1(&(op), x, &(arguments){size, options, read_##of, is});                               \
        }
#define READING(linkage, of, op, cast, ...)                                                                            \
        linkage const lg__op op = {.name = #of, .autocast = cast, .compose = compose, LG__OPERANDS({"x", LG__FLOAT})}; \
        static bool read_##of(const lg__call *call, const void *options, pool_options *ret)                            \
        {                                                                                                              \
                lg_##of##_options o;                                                                                   \
                if (!lg__take(call->ctx, #of, options, &o, sizeof o))                                                  \
                        return false;                                                                                  \
                *ret = (pool_options){__VA_ARGS__};                                                                    \
                return true;                                                                                           \
        }
POOLING(static, max_pool2d, any_max_pool2d, IS(2, .max = true), WINDOWS, SIDES(lg__deepened), MAX,
        DILATED(lg__deepened))
POOLING(static, avg_pool2d, any_avg_pool2d, 2, WINDOWS, SIDES(lg__deepened), COUNTED, .divisor = o.divisor)
POOLING(, max_pool1d, lg__op_max_pool1d, IS(1, .max = true), WINDOWS, MAX)
POOLING(, avg_pool1d, lg__op_avg_pool1d, 1, WINDOWS, COUNTED)
POOLING(, max_pool3d, lg__op_max_pool3d, IS(3, .max = true), WINDOWS, SIDES(AS_IT_IS), MAX, DILATED(AS_IT_IS))
POOLING(, avg_pool3d, lg__op_avg_pool3d, 3, WINDOWS, SIDES(AS_IT_IS), COUNTED, .divisor = o.divisor)
#define ADAPTIVE(dims) IS(dims, .adaptive = true)
#define ADAPTIVE_MAX(dims) IS(dims, .max = true, .adaptive = true)
POOLING(, adaptive_avg_pool2d, lg__op_adaptive_avg_pool2d, ADAPTIVE(2), .sizes = lg__deepened(o.sizes))
POOLING(, adaptive_avg_pool3d, lg__op_adaptive_avg_pool3d, ADAPTIVE(3), .sizes = o.sizes)
POOLING(, adaptive_max_pool1d, lg__op_adaptive_max_pool1d, ADAPTIVE_MAX(1), .indices = o.indices)
POOLING(, adaptive_max_pool2d, lg__op_adaptive_max_pool2d, ADAPTIVE_MAX(2), .sizes = lg__deepened(o.sizes),
        .indices = o.indices)
POOLING(, adaptive_max_pool3d, lg__op_adaptive_max_pool3d, ADAPTIVE_MAX(3), .sizes = o.sizes, .indices = o.indices)

#define LP(of, dims, ...)                                                                                              \
        READING(, of, lg__op_##of, LG__F32, .stride = o.stride, .ceil_mode = o.ceil_mode, __VA_ARGS__)                 \
        lg_tensor *lg_##of##_with(lg_tensor *x, double p, int64_t size, const lg_##of##_options *options)              \
        {                                                                                                              \
                if (isfinite(p) && p != 0)                                                                             \
                        return LG__APPLY(of, (&(arguments){size, options, read_##of, dims, .p = p}), x);               \
                return lg__fail(lg__ctx_of(x), LG_ERR_ARGUMENT, #of ": p is %g; it is finite and not 0", p);           \
        }
LP(lp_pool1d, 1, .divisor = 0)
LP(lp_pool2d, 2, .kernels = lg__deepened(o.kernels), .strides = lg__deepened(o.strides))
LP(lp_pool3d, 3, .kernels = o.kernels, .strides = o.strides)

static bool read_nothing(const lg__call *call, const void *options, pool_options *ret)
{
        (void)call, (void)options;
        *ret = (pool_options){0};
        return true;
}

const lg__op lg__op_adaptive_avg_pool1d = {
        .name = "adaptive_avg_pool1d", .compose = compose, LG__OPERANDS({"x", LG__FLOAT})};

lg_tensor *lg_adaptive_avg_pool1d(lg_tensor *x, int64_t size)
{
        return LG__APPLY(adaptive_avg_pool1d, (&(arguments){size, NULL, read_nothing, ADAPTIVE(1)}), x);
}
