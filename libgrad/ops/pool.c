/* pool.c - max and average pooling over windows of images.
 *
 * max_pool2d also returns the indices of the maxima: dx = max_pool2d_grad(g, indices), which adds g at these indices
 * and has the derivative max_pool2d_pick(v, indices), the values at these indices. avg_pool2d is linear: dx =
 * avg_pool2d_grad(g), which distributes g over the windows; each is the other's derivative. Images have channels-last
 * layout.
 */
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

#define POOL2D(of, derivative, ...)                                                                                    \
        LG__DEFINE(of, LG__HAS(pool), .infer = infer, .forward = forward, .vjp = derivative, __VA_ARGS__)
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
        lg_pair kernels, strides, paddings, dilations, sizes;
        lg_tensor **indices;
} pool_options;

typedef struct arguments {
        int64_t size; /* size of the kernel, or of the result if adaptive */
        const void *options;
        bool (*read)(const lg__call *call, const void *options, pool_options *ret);
        bool max, adaptive, signal;
} arguments;

/* Sets ret to (height, width): `given` if it is given, else `both` for both, else `otherwise`, the default. For
 * signals the height is `otherwise`. */
static void pair(int64_t *ret, lg_pair given, int64_t both, int64_t otherwise, bool signal)
{
        lg_pair sides = lg__sides(given, lg__whole_option(both, otherwise));
        ret[0] = sides.h;
        ret[1] = sides.w;
        if (signal)
                ret[0] = otherwise;
}

/* Sets the size of one side of the output by PyTorch's formula. Returns false and sets an error if no window fits. */
static bool output_size(const lg__call *call, lg_conv_geometry *g, int side, bool ceil_mode)
{
        lg_ctx *c = call->ctx;
        const char *op = call->op->name;
        int64_t in = g->in[side], k = g->kernel[side], s = g->stride[side], p = g->padding[side], d = g->dilation[side];
        if (k < 1 || s < 1 || d < 1 || p < 0 || k > INT32_MAX || s > INT32_MAX || d > INT32_MAX)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: kernel %lld, stride %lld, dilation %lld, padding %lld; the padding must be 0 or more, "
                        "the others above 0 and below 2^31",
                        op, (long long)k, (long long)s, (long long)d, (long long)p);
        if (p > k / 2)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: padding %lld is more than half of kernel %lld", op,
                                (long long)p, (long long)k);
        int64_t left = in + 2 * p - d * (k - 1) - 1;
        if (left < 0)
                return lg__fail(c, LG_ERR_SHAPE,
                                "%s: x is %s: a window of %lld is greater than the input of %lld with padding %lld", op,
                                lg__tensor_text(call->in[0]).s, (long long)(d * (k - 1) + 1), (long long)in,
                                (long long)p);
        int64_t out = (left + (ceil_mode ? s - 1 : 0)) / s + 1;
        if (ceil_mode && (out - 1) * s >= in + p)
                out--;
        g->out[side] = out;
        return true;
}

/* Checks that no dimension of x (N, C, H, W) but the batch is empty. A single image has a batch of 1. */
static bool has_pixels(const lg__call *call, const lg_tensor *x)
{
        const int64_t *size = x->at.shape.size;
        return (size[1] && size[2] && size[3]) ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; no dimension but that of the batch may be empty",
                        call->op->name, lg__tensor_text(call->in[0]).s);
}

static bool windows_of(const lg__call *call, const lg_tensor *x, const pool_options *o, pool_attributes *ret)
{
        const arguments *p = call->attributes;
        const char *op = call->op->name;
        lg_conv_geometry *g = &ret->at;
        ret->divisor = lg__whole_option(o->divisor, 0);
        ret->no_count_padding = o->no_count_padding;
        pair(g->kernel, o->kernels, p->size, 0, false);
        if (p->signal)
                g->kernel[0] = 1;
        g->stride[0] = g->kernel[0], g->stride[1] = g->kernel[1];
        if (o->stride || o->strides.given)
                pair(g->stride, o->strides, o->stride, 1, p->signal);
        pair(g->padding, o->paddings, o->padding, 0, p->signal);
        pair(g->dilation, o->dilations, o->dilation, 1, p->signal);
        if (ret->divisor < 0)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: divisor %lld is below 0", op, (long long)ret->divisor);
        for (int i = 0; i < 2; i++) {
                g->in[i] = x->at.shape.size[2 + i];
                if (!output_size(call, g, i, o->ceil_mode))
                        return false;
        }
        return true;
}

static bool adaptive_of(const lg__call *call, const lg_tensor *x, const pool_options *o, pool_attributes *ret)
{
        const arguments *p = call->attributes;
        lg_conv_geometry *g = &ret->at;
        ret->adaptive = true;
        pair(g->out, o->sizes, p->size, 0, false);
        if (p->signal)
                g->out[0] = 1;
        for (int i = 0; i < 2; i++) {
                g->in[i] = x->at.shape.size[2 + i];
                g->kernel[i] = g->stride[i] = g->dilation[i] = 1;
                if (g->out[i] < 1 || g->in[i] < 1 || g->out[i] > INT32_MAX)
                        return lg__fail(call->ctx, g->out[i] < 1 ? LG_ERR_ARGUMENT : LG_ERR_SHAPE,
                                        "%s: %lld of %lld pixels; both must be above 0", call->op->name,
                                        (long long)g->out[i], (long long)g->in[i]);
        }
        return true;
}

static bool plane_fits(const lg__call *call, const lg_conv_geometry *g)
{
        if (g->in[0] == 0 || g->in[1] <= INT32_MAX / g->in[0])
                return true;
        return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: an image of %lld x %lld has more pixels than indices can name",
                        call->op->name, (long long)g->in[0], (long long)g->in[1]);
}

/* Returns the values of max pooling, and stores the indices in *ret_indices unless ret_indices is NULL. */
static lg_tensor *greatest(const lg__call *call, lg_tensor *x, const pool_attributes *a, lg_tensor **ret_indices)
{
        const arguments *p = call->attributes;
        lg_tensor *out[2];
        if (!lg__apply(LG__OP(max_pool2d), &x, 1, a, out))
                return NULL;
        lg_tensor *index = ret_indices ? lg__as_given(call, lg_cast(out[1], LG_I64), p->signal) : NULL;
        lg__tensor_release(out[1]);
        lg_tensor *y = !ret_indices || index ? lg__as_given(call, out[0], p->signal) : NULL;
        if (y && ret_indices)
                *ret_indices = index;
        return y;
}

static lg_tensor *compose(const lg__call *call)
{
        const arguments *p = call->attributes;
        pool_attributes a = {.at.groups = 1};
        pool_options o;
        lg_tensor *x = lg__as_images(call, p->signal);
        if (!x || ((p->max || !p->adaptive) && !has_pixels(call, x)) || !p->read(call, p->options, &o) ||
            !(p->adaptive ? adaptive_of : windows_of)(call, x, &o, &a) || !plane_fits(call, &a.at))
                return NULL;
        return p->max ? greatest(call, x, &a, o.indices) : lg__as_given(call, LG__APPLY(avg_pool2d, &a, x), p->signal);
}

#define WINDOWS .stride = o.stride, .padding = o.padding, .ceil_mode = o.ceil_mode
#define PAIRS .kernels = o.kernels, .strides = o.strides, .paddings = o.paddings
#define MAX .dilation = o.dilation, .indices = o.indices
#define ADAPTIVE .sizes = o.sizes
#define IS(...) __VA_ARGS__
#define POOLING(linkage, of, op, is, ...)                                                                              \
        linkage const lg__op op = {.name = #of, .compose = compose, LG__OPERANDS({"x", LG__FLOAT})};                   \
        static bool read_##of(const lg__call *call, const void *options, pool_options *ret)                            \
        {                                                                                                              \
                lg_##of##_options o;                                                                                   \
                if (!lg__take(call->ctx, #of, options, &o, sizeof o))                                                  \
                        return false;                                                                                  \
                *ret = (pool_options){__VA_ARGS__};                                                                    \
                return true;                                                                                           \
        }                                                                                                              \
        lg_tensor *lg_##of##_with(lg_tensor *x, int64_t size, const lg_##of##_options *options)                        \
        {                                                                                                              \
                return lg__apply1(&(op), x, &(arguments){size, options, read_##of, is});                               \
        }
POOLING(static, max_pool2d, any_max_pool2d, IS(.max = true), WINDOWS, PAIRS, MAX, .dilations = o.dilations)
POOLING(static, avg_pool2d, any_avg_pool2d, IS(.max = false), WINDOWS, PAIRS, .no_count_padding = o.no_count_padding,
        .divisor = o.divisor)
POOLING(, max_pool1d, lg__op_max_pool1d, IS(.max = true, .signal = true), WINDOWS, MAX)
POOLING(, avg_pool1d, lg__op_avg_pool1d, IS(.signal = true), WINDOWS, .no_count_padding = o.no_count_padding)
POOLING(, adaptive_max_pool2d, lg__op_adaptive_max_pool2d, IS(.adaptive = true, .max = true), ADAPTIVE,
        .indices = o.indices)
POOLING(, adaptive_avg_pool2d, lg__op_adaptive_avg_pool2d, IS(.adaptive = true), ADAPTIVE)

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
        return LG__APPLY(adaptive_avg_pool1d,
                         (&(arguments){size, NULL, read_nothing, .adaptive = true, .signal = true}), x);
}
