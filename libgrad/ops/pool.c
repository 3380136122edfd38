/* pool.c - pooling: the greatest or the mean of windows that move over an image.
 *
 * max_pool2d gives the indices of what it chose as well: dx = max_pool2d_grad(g, indices), which adds g there, whose
 * derivative is max_pool2d_pick(v, indices), the values found there. avg_pool2d is linear: dx = avg_pool2d_grad(g),
 * which spreads g over the windows; each is the other's derivative. Images lie with channels last.
 */
#include "../op.h"

typedef struct pool_attributes {
        lg_conv_geometry at;
        int64_t divisor;
        bool adaptive, count_padding;
} pool_attributes;

/* ---- the ops: x (N, C, in), y, g and indices (N, C, out) ---- */

static bool infer(lg__call *call, bool to_input)
{
        const pool_attributes *a = call->attributes;
        const int64_t *size = to_input ? a->at.in : a->at.out;
        lg_shape s = call->in[0]->at.shape;
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = LG_SHAPE(s.size[0], s.size[1], size[0], size[1]);
        if (!lg__shape_valid(call->ctx, call->op->name, call->out_at[0].shape))
                return false;
        lg__layout_channels_last(&call->out_at[0]);
        return true;
}

static bool forward(lg__call *call, lg_pool_kind kind, lg_tensor *index)
{
        const pool_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_pool_args k = {.kind = kind, .dtype = x->at.dtype, .n = x->at.shape.size[0], .at = a->at};
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        k.channels = x->at.shape.size[1];
        k.adaptive = a->adaptive;
        k.count_padding = a->count_padding;
        k.divisor = a->divisor;
        k.from = lg__data(x);
        k.to = lg__data(call->out[0]);
        k.index = index ? lg__data(index) : NULL;
        return LG__RUN(call->device, call->op->name, pool, &k);
}

static bool infer_max_pool2d(lg__call *call)
{
        if (!infer(call, false))
                return false;
        call->out_at[1] = call->out_at[0];
        call->out_at[1].dtype = LG_I32;
        return true;
}

static bool forward_max_pool2d(lg__call *call)
{
        return forward(call, LG_POOL_MAX, call->out[1]);
}

static bool infer_max_pool2d_grad(lg__call *call)
{
        return infer(call, true);
}

static bool forward_max_pool2d_grad(lg__call *call)
{
        return forward(call, LG_POOL_MAX_GRAD, call->in[1]);
}

static bool infer_max_pool2d_pick(lg__call *call)
{
        return infer(call, false);
}

static bool forward_max_pool2d_pick(lg__call *call)
{
        return forward(call, LG_POOL_MAX_PICK, call->in[1]);
}

static bool infer_avg_pool2d(lg__call *call)
{
        return infer(call, false);
}

static bool forward_avg_pool2d(lg__call *call)
{
        return forward(call, LG_POOL_AVG, NULL);
}

static bool infer_avg_pool2d_grad(lg__call *call)
{
        return infer(call, true);
}

static bool forward_avg_pool2d_grad(lg__call *call)
{
        return forward(call, LG_POOL_AVG_GRAD, NULL);
}

static lg_tensor *run(const lg__op *op, lg_tensor *x, const pool_attributes *a)
{
        return lg__apply1(op, lg__channels_last(x), a);
}

static lg_tensor *run_with(const lg__op *op, lg_tensor *x, lg_tensor *index, const pool_attributes *a)
{
        return lg__apply2(op, lg__channels_last(x), lg__channels_last(index), a);
}

static bool vjp_max_pool2d(lg__vjp *v)
{
        return (v->grad_in[0] = run_with(LG__OP(max_pool2d_grad), v->grad[0], v->out[1], v->attributes)) != NULL;
}

const lg__op lg__op_max_pool2d = {.name = "max_pool2d",
                                  LG__OPERANDS({"x", LG__FLOAT}),
                                  LG__RESULTS({"y"}, {"indices", .saved_for = LG__BY(0)}),
                                  .attributes_bytes = sizeof(pool_attributes),
                                  .infer = infer_max_pool2d,
                                  .forward = forward_max_pool2d,
                                  .vjp = vjp_max_pool2d};

static bool vjp_max_pool2d_grad(lg__vjp *v)
{
        return (v->grad_in[0] = run_with(LG__OP(max_pool2d_pick), v->grad[0], v->in[1], v->attributes)) != NULL;
}

const lg__op lg__op_max_pool2d_grad = {.name = "max_pool2d_grad",
                                       LG__OPERANDS({"g"}, {"indices", .saved_for = LG__BY(0)}),
                                       LG__RESULTS({"y"}),
                                       .attributes_bytes = sizeof(pool_attributes),
                                       .infer = infer_max_pool2d_grad,
                                       .forward = forward_max_pool2d_grad,
                                       .vjp = vjp_max_pool2d_grad};

static bool vjp_max_pool2d_pick(lg__vjp *v)
{
        return (v->grad_in[0] = run_with(LG__OP(max_pool2d_grad), v->grad[0], v->in[1], v->attributes)) != NULL;
}

const lg__op lg__op_max_pool2d_pick = {.name = "max_pool2d_pick",
                                       LG__OPERANDS({"x"}, {"indices", .saved_for = LG__BY(0)}),
                                       LG__RESULTS({"y"}),
                                       .attributes_bytes = sizeof(pool_attributes),
                                       .infer = infer_max_pool2d_pick,
                                       .forward = forward_max_pool2d_pick,
                                       .vjp = vjp_max_pool2d_pick};

static bool vjp_avg_pool2d(lg__vjp *v)
{
        return (v->grad_in[0] = run(LG__OP(avg_pool2d_grad), v->grad[0], v->attributes)) != NULL;
}

const lg__op lg__op_avg_pool2d = {.name = "avg_pool2d",
                                  LG__OPERANDS({"x", LG__FLOAT}),
                                  LG__RESULTS({"y"}),
                                  .attributes_bytes = sizeof(pool_attributes),
                                  .infer = infer_avg_pool2d,
                                  .forward = forward_avg_pool2d,
                                  .vjp = vjp_avg_pool2d};

static bool vjp_avg_pool2d_grad(lg__vjp *v)
{
        return (v->grad_in[0] = run(LG__OP(avg_pool2d), v->grad[0], v->attributes)) != NULL;
}

const lg__op lg__op_avg_pool2d_grad = {.name = "avg_pool2d_grad",
                                       LG__OPERANDS({"g", LG__FLOAT}),
                                       LG__RESULTS({"y"}),
                                       .attributes_bytes = sizeof(pool_attributes),
                                       .infer = infer_avg_pool2d_grad,
                                       .forward = forward_avg_pool2d_grad,
                                       .vjp = vjp_avg_pool2d_grad};

/* ---- the functions ---- */

/* Before and after the op: an image alone is a batch of one, a signal an image of height 1. */
static lg_tensor *as_images(lg_tensor *x, const char *op, bool signal)
{
        if (!lg__check(x, op, "x"))
                return NULL;
        int n = x->at.shape.ndim, most = signal ? 3 : 4;
        if (n != most && n != most - 1)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s; it takes %s", op, lg__tensor_text(x).s,
                                signal ? "(N, C, L) or (C, L)" : "(N, C, H, W) or (C, H, W)");
        x = signal ? lg_unsqueeze(x, n - 1) : x;
        return x && n < most ? lg_unsqueeze(x, 0) : x;
}

static lg_tensor *as_given(lg_tensor *y, const lg_tensor *x, bool signal)
{
        y = y && x->at.shape.ndim < (signal ? 3 : 4) ? lg_squeeze(y, LG_DIMS(0)) : y;
        return y && signal ? lg_squeeze(y, LG_DIMS(-2)) : y;
}

/* A pair, where it is given, else the number on both sides, else what stands for "not given". */
static void pair(int64_t *ret, lg_pair given, int64_t both, int64_t otherwise, bool signal)
{
        lg_pair sides = lg__sides(given, lg__whole_option(both, otherwise));
        ret[0] = sides.h;
        ret[1] = sides.w;
        if (signal)
                ret[0] = otherwise;
}

/* The size of one side of the output, PyTorch's formula; false and an error if there is none. */
static bool output_size(lg_ctx *c, const char *op, lg_conv_geometry *g, int side, bool ceil_mode)
{
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
                                "%s: a window of %lld is greater than the input of %lld with padding %lld", op,
                                (long long)(d * (k - 1) + 1), (long long)in, (long long)p);
        int64_t out = (left + (ceil_mode ? s - 1 : 0)) / s + 1;
        if (ceil_mode && (out - 1) * s >= in + p)
                out--;
        g->out[side] = out;
        return true;
}

static bool plane_fits(lg_ctx *c, const char *op, const lg_conv_geometry *g)
{
        if (g->in[0] == 0 || g->in[1] <= INT32_MAX / g->in[0])
                return true;
        return lg__fail(c, LG_ERR_SHAPE, "%s: an image of %lld x %lld has more pixels than indices can name", op,
                        (long long)g->in[0], (long long)g->in[1]);
}

static bool attributes_of(const lg_tensor *x, const char *op, int64_t kernel, const lg_pool_options *o, bool signal,
                          pool_attributes *ret)
{
        *ret = (pool_attributes){.divisor = lg__whole_option(o->divisor, 0), .count_padding = !o->no_count_padding};
        lg_conv_geometry *g = &ret->at;
        pair(g->kernel, o->kernels, kernel, signal ? 1 : 0, signal);
        g->stride[0] = g->kernel[0], g->stride[1] = g->kernel[1];
        if (o->stride || o->strides.given)
                pair(g->stride, o->strides, o->stride, 1, signal);
        pair(g->padding, o->paddings, o->padding, 0, signal);
        pair(g->dilation, o->dilations, o->dilation, 1, signal);
        g->groups = 1;
        if (ret->divisor < 0)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: divisor %lld is below 0", op, (long long)ret->divisor);
        for (int i = 0; i < 2; i++) {
                g->in[i] = x->at.shape.size[2 + i];
                if (!output_size(x->ctx, op, g, i, o->ceil_mode))
                        return false;
        }
        return plane_fits(x->ctx, op, g);
}

static bool adaptive_of(const lg_tensor *x, const char *op, int64_t size, const lg_adaptive_pool_options *o,
                        bool signal, pool_attributes *ret)
{
        *ret = (pool_attributes){.adaptive = true};
        lg_conv_geometry *g = &ret->at;
        pair(g->out, o->sizes, size, 0, false);
        if (signal)
                g->out[0] = 1;
        g->groups = 1;
        for (int i = 0; i < 2; i++) {
                g->in[i] = x->at.shape.size[2 + i];
                g->kernel[i] = g->stride[i] = g->dilation[i] = 1;
                if (g->out[i] < 1 || g->in[i] < 1 || g->out[i] > INT32_MAX)
                        return lg__fail(x->ctx, g->out[i] < 1 ? LG_ERR_ARGUMENT : LG_ERR_SHAPE,
                                        "%s: %lld of %lld pixels; both must be above 0", op, (long long)g->out[i],
                                        (long long)g->in[i]);
        }
        return plane_fits(x->ctx, op, g);
}

/* Values, and the indices if they are asked for. */
static lg_tensor *greatest(lg_tensor *x, lg_tensor *images, const pool_attributes *a, bool signal,
                           lg_tensor **ret_indices)
{
        lg_tensor *out[2] = {NULL, NULL}, *in = lg__channels_last(images);
        if (!in || !lg__apply(LG__OP(max_pool2d), &in, 1, a, out))
                return NULL;
        lg_tensor *index = ret_indices ? as_given(lg_cast(out[1], LG_I64), x, signal) : NULL;
        lg__tensor_release(out[1]);
        lg_tensor *y = !ret_indices || index ? as_given(out[0], x, signal) : NULL;
        if (y && ret_indices)
                *ret_indices = index;
        return y;
}

static lg_tensor *max_pool(lg_tensor *x, const char *op, int64_t kernel, const lg_pool_options *options, bool signal)
{
        pool_attributes a;
        lg_pool_options o;
        lg_tensor *images = as_images(x, op, signal);
        return images && lg__take(x->ctx, op, options, &o, sizeof o) &&
                               attributes_of(images, op, kernel, &o, signal, &a)
                       ? greatest(x, images, &a, signal, o.indices)
                       : NULL;
}

static lg_tensor *avg_pool(lg_tensor *x, const char *op, int64_t kernel, const lg_pool_options *options, bool signal)
{
        pool_attributes a;
        lg_pool_options o;
        lg_tensor *images = as_images(x, op, signal);
        if (!images || !lg__take(x->ctx, op, options, &o, sizeof o) ||
            !attributes_of(images, op, kernel, &o, signal, &a))
                return NULL;
        if (a.at.dilation[0] != 1 || a.at.dilation[1] != 1)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: a window of averages has no dilation", op);
        return as_given(run(LG__OP(avg_pool2d), images, &a), x, signal);
}

lg_tensor *lg_max_pool2d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options)
{
        return max_pool(x, "max_pool2d", kernel, options, false);
}

lg_tensor *lg_max_pool1d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options)
{
        return max_pool(x, "max_pool1d", kernel, options, true);
}

lg_tensor *lg_avg_pool2d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options)
{
        return avg_pool(x, "avg_pool2d", kernel, options, false);
}

lg_tensor *lg_avg_pool1d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options)
{
        return avg_pool(x, "avg_pool1d", kernel, options, true);
}

static lg_tensor *adaptive(lg_tensor *x, const char *op, int64_t size, const lg_adaptive_pool_options *options,
                           bool signal, bool max)
{
        pool_attributes a;
        lg_adaptive_pool_options o;
        lg_tensor *images = as_images(x, op, signal);
        if (!images || !lg__take(x->ctx, op, options, &o, sizeof o) || !adaptive_of(images, op, size, &o, signal, &a))
                return NULL;
        return max ? greatest(x, images, &a, signal, o.indices)
                   : as_given(run(LG__OP(avg_pool2d), images, &a), x, signal);
}

lg_tensor *lg_adaptive_avg_pool2d_with(lg_tensor *x, int64_t size, const lg_adaptive_pool_options *options)
{
        return adaptive(x, "adaptive_avg_pool2d", size, options, false, false);
}

lg_tensor *lg_adaptive_avg_pool1d_with(lg_tensor *x, int64_t size, const lg_adaptive_pool_options *options)
{
        return adaptive(x, "adaptive_avg_pool1d", size, options, true, false);
}

lg_tensor *lg_adaptive_max_pool2d_with(lg_tensor *x, int64_t size, const lg_adaptive_pool_options *options)
{
        return adaptive(x, "adaptive_max_pool2d", size, options, false, true);
}
