/* conv.c - convolution and transposed convolution.
 *
 * Three ops, each linear in both inputs, over one geometry (kernels/conv.h), whose derivatives are each other:
 *   conv2d(x, w, b):            dx = input_grad(g, w), dw = weight_grad(g, x), db = g summed over images and pixels
 *   conv2d_input_grad(g, w):    dg = conv2d(v, w), dw = weight_grad(g, v)
 *   conv2d_weight_grad(g, x):   dg = conv2d(x, v), dx = input_grad(g, v)
 * A transposed convolution is input_grad. Images lie with channels last, weights in row-major order.
 */
#include "../op.h"

/* ---- the ops: x (N, C, in), w (O, C / groups, kernel), g and y (N, O, out) ---- */

static bool infer(lg__call *call, int64_t first, int64_t second, const int64_t size[2], bool image)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = LG_SHAPE(first, second, size[0], size[1]);
        if (!lg__shape_valid(call->ctx, call->op->name, call->out_at[0].shape))
                return false;
        if (image)
                lg__layout_channels_last(&call->out_at[0]);
        return true;
}

static bool infer_conv2d(lg__call *call)
{
        const lg_conv_geometry *at = call->attributes;
        return infer(call, call->in[0]->at.shape.size[0], call->in[1]->at.shape.size[0], at->out, true);
}

static bool infer_conv2d_input_grad(lg__call *call)
{
        const lg_conv_geometry *at = call->attributes;
        return infer(call, call->in[0]->at.shape.size[0], call->in[1]->at.shape.size[1] * at->groups, at->in, true);
}

static bool infer_conv2d_weight_grad(lg__call *call)
{
        const lg_conv_geometry *at = call->attributes;
        return infer(call, call->in[0]->at.shape.size[1], call->in[1]->at.shape.size[1] / at->groups, at->kernel,
                     false);
}

/* t in the layout that the kernel knows; a copy where it is another. NULL: no memory. */
static lg_tensor *laid(lg_tensor *t, bool image)
{
        lg__layout at = {.dtype = t->at.dtype, .shape = t->at.shape};
        if (image ? lg__layout_is_channels_last(&t->at) : lg__layout_is_contiguous(&t->at))
                return t;
        if (image)
                lg__layout_channels_last(&at);
        lg_tensor *copy = lg__tensor_laid(t->ctx, t->storage->device->id, &at);
        if (copy && !lg__copy_values(copy, t, "conv2d")) {
                lg__tensor_release(copy);
                return NULL;
        }
        return copy;
}

/* Runs the kernel on inputs 0 and 1 and a bias; `image` tells of input 1 whether it is one. */
static bool forward(lg__call *call, lg_conv_kind kind, bool image)
{
        lg_tensor *out = call->out[0], *in[3] = {NULL};
        bool ok = true;
        for (int i = 0; i < call->in_count && ok; i++)
                if (call->in[i])
                        ok = (in[i] = laid(call->in[i], i == 0 || (i == 1 && image))) != NULL;
        if (ok && lg__shape_numel(out->at.shape) > 0) {
                const lg_shape inputs = kind == LG_CONV_WEIGHT_GRAD ? in[1]->at.shape
                                        : kind == LG_CONV_FORWARD   ? in[0]->at.shape
                                                                    : out->at.shape;
                const lg_shape outputs = kind == LG_CONV_FORWARD ? out->at.shape : in[0]->at.shape;
                lg_conv_args k = {.kind = kind, .dtype = out->at.dtype, .n = inputs.size[0]};
                k.channels = inputs.size[1];
                k.outputs = outputs.size[1];
                k.at = *(const lg_conv_geometry *)call->attributes;
                k.x = kind == LG_CONV_FORWARD ? lg__data(in[0]) : kind == LG_CONV_WEIGHT_GRAD ? lg__data(in[1]) : NULL;
                k.g = kind != LG_CONV_FORWARD ? lg__data(in[0]) : NULL;
                k.w = kind != LG_CONV_WEIGHT_GRAD ? lg__data(in[1]) : NULL;
                k.b = in[2] ? lg__data(in[2]) : NULL;
                k.out = lg__data(out);
                ok = LG__RUN(call->device, call->op->name, conv, &k);
        }
        for (int i = 0; i < call->in_count; i++)
                if (in[i] != call->in[i])
                        lg__tensor_release(in[i]);
        return ok;
}

static bool forward_conv2d(lg__call *call)
{
        return forward(call, LG_CONV_FORWARD, false);
}

static bool forward_conv2d_input_grad(lg__call *call)
{
        return forward(call, LG_CONV_INPUT_GRAD, false);
}

static bool forward_conv2d_weight_grad(lg__call *call)
{
        return forward(call, LG_CONV_WEIGHT_GRAD, true);
}

static lg_tensor *convolved(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_geometry *at)
{
        lg_tensor *in[3] = {lg__channels_last(x), w, b};
        return in[0] ? lg__apply(LG__OP(conv2d), in, 3, at, NULL) : NULL;
}

static lg_tensor *input_grad(lg_tensor *g, lg_tensor *w, const lg_conv_geometry *at)
{
        return lg__apply2(LG__OP(conv2d_input_grad), lg__channels_last(g), w, at);
}

static lg_tensor *weight_grad(lg_tensor *g, lg_tensor *x, const lg_conv_geometry *at)
{
        return lg__apply2(LG__OP(conv2d_weight_grad), lg__channels_last(g), lg__channels_last(x), at);
}

static bool vjp_conv2d(lg__vjp *v)
{
        lg_tensor *g = lg__channels_last(v->grad[0]);
        if (!g || (v->needs[0] && !(v->grad_in[0] = input_grad(g, v->in[1], v->attributes))) ||
            (v->needs[1] && !(v->grad_in[1] = weight_grad(g, v->in[0], v->attributes))))
                return false;
        return !v->needs[2] || (v->grad_in[2] = lg_sum(g, .dims = LG_DIMS(0, 2, 3))) != NULL;
}

const lg__op lg__op_conv2d = {.name = "conv2d",
                              LG__OPERANDS({"x", LG__FLOAT, .saved_for = LG__BY(1)},
                                           {"w", LG__FLOAT, .saved_for = LG__BY(0)},
                                           {"b", LG__FLOAT, .optional = true}),
                              LG__RESULTS({"y"}),
                              .flags = LG__PROMOTE,
                              .attributes_bytes = sizeof(lg_conv_geometry),
                              .infer = infer_conv2d,
                              .forward = forward_conv2d,
                              .vjp = vjp_conv2d};

static bool vjp_conv2d_input_grad(lg__vjp *v)
{
        lg_tensor *u = lg__channels_last(v->grad[0]);
        if (!u || (v->needs[0] && !(v->grad_in[0] = convolved(u, v->in[1], NULL, v->attributes))))
                return false;
        return !v->needs[1] || (v->grad_in[1] = weight_grad(v->in[0], u, v->attributes)) != NULL;
}

const lg__op lg__op_conv2d_input_grad = {
        .name = "conv2d_input_grad",
        LG__OPERANDS({"x", LG__FLOAT, .saved_for = LG__BY(1)}, {"w", LG__FLOAT, .saved_for = LG__BY(0)}),
        LG__RESULTS({"y"}),
        .flags = LG__PROMOTE,
        .attributes_bytes = sizeof(lg_conv_geometry),
        .infer = infer_conv2d_input_grad,
        .forward = forward_conv2d_input_grad,
        .vjp = vjp_conv2d_input_grad};

static bool vjp_conv2d_weight_grad(lg__vjp *v)
{
        lg_tensor *u = lg_contiguous(v->grad[0]);
        if (!u || (v->needs[0] && !(v->grad_in[0] = convolved(v->in[1], u, NULL, v->attributes))))
                return false;
        return !v->needs[1] || (v->grad_in[1] = input_grad(v->in[0], u, v->attributes)) != NULL;
}

const lg__op lg__op_conv2d_weight_grad = {
        .name = "conv2d_weight_grad",
        LG__OPERANDS({"g", LG__FLOAT, .saved_for = LG__BY(1)}, {"x", LG__FLOAT, .saved_for = LG__BY(0)}),
        LG__RESULTS({"y"}),
        .flags = LG__PROMOTE,
        .attributes_bytes = sizeof(lg_conv_geometry),
        .infer = infer_conv2d_weight_grad,
        .forward = forward_conv2d_weight_grad,
        .vjp = vjp_conv2d_weight_grad};

/* ---- the functions ---- */

typedef struct variant {
        const char *name;
        int spatial; /* 1: a signal, which is run as an image of height 1; 2: an image */
        bool transposed;
        const char *x, *w; /* in words */
} variant;
static const variant conv1d = {"conv1d", 1, false, "(N, C, L) or (C, L)", "(O, C / groups, K)"};
static const variant conv2d = {"conv2d", 2, false, "(N, C, H, W) or (C, H, W)", "(O, C / groups, KH, KW)"};
static const variant conv_transpose1d = {"conv_transpose1d", 1, true, "(N, C, L) or (C, L)", "(C, O / groups, K)"};
static const variant conv_transpose2d = {"conv_transpose2d", 2, true, "(N, C, H, W) or (C, H, W)",
                                         "(C, O / groups, KH, KW)"};

/* An option as a pair: `pair` if it is given, else `both`, else the default. */
static bool choose(lg_ctx *c, const variant *v, const char *name, int64_t both, lg_pair pair, int64_t unset,
                   int64_t least, int64_t ret[2])
{
        const lg_pair sides = lg__sides(pair, lg__whole_option(both, unset));
        if (pair.given && v->spatial == 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .%ss is a pair for images; give .%s", v->name, name, name);
        for (int d = 0; d < 2; d++) {
                ret[d] = d ? sides.w : sides.h;
                if (ret[d] < least || ret[d] > INT32_MAX)
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is %lld; it must be at least %lld and below 2^31",
                                        v->name, name, (long long)ret[d], (long long)least);
        }
        if (v->spatial == 1)
                ret[0] = unset;
        return true;
}

static bool check_tensors(lg_ctx *c, const variant *v, lg_tensor *x, lg_tensor *w, lg_tensor *b, int64_t groups)
{
        const int n = v->spatial, xn = x->at.shape.ndim;
        if (xn != n + 1 && xn != n + 2)
                return lg__fail(c, LG_ERR_SHAPE, "%s: x is %s; it takes %s", v->name, lg__tensor_text(x).s, v->x);
        if (w->at.shape.ndim != n + 2)
                return lg__fail(c, LG_ERR_SHAPE, "%s: w is %s; it takes %s", v->name, lg__tensor_text(w).s, v->w);
        lg_tensor *const all[3] = {x, w, b};
        for (int i = 0; i < 3; i++)
                if (all[i] && !lg__dtype_float(all[i]->at.dtype))
                        return lg__fail(c, LG_ERR_DTYPE,
                                        "%s: %c is %s, not of a float dtype; convert it with lg_cast()", v->name,
                                        "xwb"[i], lg__tensor_text(all[i]).s);
        const int64_t channels = x->at.shape.size[xn - n - 1];
        const int64_t first = w->at.shape.size[0], second = w->at.shape.size[1];
        int64_t of_groups; /* second, as often as there are groups */
        if (groups < 1 || groups > INT32_MAX || first % groups != 0)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: %lld groups; they must divide the %lld of w %s, and be below 2^31", v->name,
                                (long long)groups, (long long)first, lg__tensor_text(w).s);
        if (__builtin_mul_overflow(second, groups, &of_groups))
                return lg__fail(c, LG_ERR_SHAPE, "%s: w is %s: too many channels in %lld groups", v->name,
                                lg__tensor_text(w).s, (long long)groups);
        if (v->transposed ? channels != first : channels % groups != 0 || channels / groups != second)
                return lg__fail(c, LG_ERR_SHAPE,
                                "%s: x is %s and w is %s with %lld groups: w takes %lld channels, not %lld", v->name,
                                lg__tensor_text(x).s, lg__tensor_text(w).s, (long long)groups,
                                (long long)(v->transposed ? first : of_groups), (long long)channels);
        const int64_t outputs = v->transposed ? of_groups : first;
        if (b && (b->at.shape.ndim != 1 || b->at.shape.size[0] != outputs))
                return lg__fail(c, LG_ERR_SHAPE, "%s: b is %s, but w is %s with %lld groups: b takes (%lld,)", v->name,
                                lg__tensor_text(b).s, lg__tensor_text(w).s, (long long)groups, (long long)outputs);
        return true;
}

/* The sizes of one dimension of a convolution from those of x and w. */
static bool forward_size(lg_ctx *c, const variant *v, lg_conv_geometry *at, int d, int64_t size)
{
        const int64_t padded = size + 2 * at->padding[d];
        at->in[d] = size;
        if (padded < 1 || at->kernel[d] - 1 > (padded - 1) / at->dilation[d])
                return lg__fail(c, LG_ERR_SHAPE,
                                "%s: a kernel of %lld with dilation %lld is greater than the padded input of %lld",
                                v->name, (long long)at->kernel[d], (long long)at->dilation[d], (long long)padded);
        at->out[d] = (padded - 1 - (at->kernel[d] - 1) * at->dilation[d]) / at->stride[d] + 1;
        return true;
}

static bool transposed_size(lg_ctx *c, const variant *v, lg_conv_geometry *at, int d, int64_t size, int64_t extra)
{
        at->out[d] = size;
        if (extra >= at->stride[d] && extra >= at->dilation[d])
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: output_padding is %lld; it must be below the stride %lld or the dilation %lld",
                                v->name, (long long)extra, (long long)at->stride[d], (long long)at->dilation[d]);
        at->in[d] = (size - 1) * at->stride[d] + (at->kernel[d] - 1) * at->dilation[d] + 1 + extra - 2 * at->padding[d];
        if (size < 1 || at->in[d] < 1)
                return lg__fail(c, LG_ERR_SHAPE, "%s: an input of %lld with padding %lld leaves no output", v->name,
                                (long long)size, (long long)at->padding[d]);
        return true;
}

/* The geometry of x and w, from their trailing dimensions. */
static bool geometry_of(lg_ctx *c, const variant *v, lg_tensor *x, lg_tensor *w, const lg_conv_options *o,
                        lg_conv_geometry *ret)
{
        int64_t extra[2];
        ret->groups = lg__whole_option(o->groups, 1);
        if (!choose(c, v, "stride", o->stride, o->strides, 1, 1, ret->stride) ||
            !choose(c, v, "padding", o->padding, o->paddings, 0, 0, ret->padding) ||
            !choose(c, v, "dilation", o->dilation, o->dilations, 1, 1, ret->dilation) ||
            !choose(c, v, "output_padding", o->output_padding, o->output_paddings, 0, 0, extra))
                return false;
        if (!v->transposed && (extra[0] || extra[1]))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: output_padding is for transposed convolutions", v->name);
        for (int d = 2 - v->spatial; d < 2; d++) {
                const int64_t size = x->at.shape.size[x->at.shape.ndim - 2 + d];
                ret->kernel[d] = w->at.shape.size[w->at.shape.ndim - 2 + d];
                if (ret->kernel[d] < 1 || ret->kernel[d] > INT32_MAX || size > INT32_MAX)
                        return lg__fail(c, LG_ERR_SHAPE,
                                        "%s: x is %s and w is %s: sizes must be above 0 and below 2^31", v->name,
                                        lg__tensor_text(x).s, lg__tensor_text(w).s);
                if (!(v->transposed ? transposed_size(c, v, ret, d, size, extra[d]) : forward_size(c, v, ret, d, size)))
                        return false;
        }
        if (v->spatial == 1)
                ret->in[0] = ret->kernel[0] = ret->out[0] = 1;
        return true;
}

/* (N, O, ...) from (N, C, ...): 4-d tensors. What a bias is added to is not rounded to 16 bits before. */
static lg_tensor *run(const variant *v, lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_geometry *at)
{
        if (!v->transposed)
                return convolved(x, w, b, at);
        if (!b)
                return input_grad(x, w, at);
        lg_dtype dtype = lg__common_dtype((lg_tensor *[]){x, w, b}, 3);
        lg_tensor *y = input_grad(lg__widened(x), lg__widened(w), at);
        return y ? lg_cast(lg_add(y, lg_reshape(b, LG_SHAPE(-1, 1, 1))), dtype) : NULL;
}

static lg_tensor *apply(const variant *v, lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options)
{
        lg_conv_options o;
        lg_ctx *c = x ? x->ctx : lg__ctx_of(w);
        lg_conv_geometry at = {.groups = 0};
        if (!x || !w)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL", v->name, x ? "w" : "x");
        if (!lg__in_context(c, w, v->name, "w") || !lg__in_context(c, b, v->name, "b"))
                return NULL;
        if (!lg__check(x, v->name, "x") || !lg__check(w, v->name, "w") || (b && !lg__check(b, v->name, "b")) ||
            !lg__take(c, v->name, options, &o, sizeof o) ||
            !check_tensors(c, v, x, w, b, lg__whole_option(o.groups, 1)) || !geometry_of(c, v, x, w, &o, &at))
                return NULL;
        const bool batch = x->at.shape.ndim == v->spatial + 2;
        if (v->spatial == 1) {
                x = lg_unsqueeze(x, -2);
                w = lg_unsqueeze(w, -2);
        }
        if (!batch)
                x = lg_unsqueeze(x, 0);
        lg_tensor *y = x && w ? run(v, x, w, b, &at) : NULL;
        if (v->spatial == 1)
                y = lg_squeeze(y, LG_DIMS(-2));
        return batch ? y : lg_squeeze(y, LG_DIMS(0));
}

lg_tensor *lg_conv1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options)
{
        return apply(&conv1d, x, w, b, options);
}

lg_tensor *lg_conv2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options)
{
        return apply(&conv2d, x, w, b, options);
}

lg_tensor *lg_conv_transpose1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options)
{
        return apply(&conv_transpose1d, x, w, b, options);
}

lg_tensor *lg_conv_transpose2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options)
{
        return apply(&conv_transpose2d, x, w, b, options);
}
