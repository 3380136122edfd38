/* conv.c - convolution and transposed convolution.
 *
 * Three ops share one geometry (kernels/conv.h). Each is linear in both inputs, and the derivatives of each are the
 * others:
 *   conv2d(x, w, b):            dx = input_grad(g, w), dw = weight_grad(g, x), db = g summed over images and pixels
 *   conv2d_input_grad(g, w):    dg = conv2d(v, w), dw = weight_grad(g, v)
 *   conv2d_weight_grad(g, x):   dg = conv2d(x, v), dx = input_grad(g, v)
 * A transposed convolution is input_grad. Images have channels-last layout. Weights are row-major or, on devices that
 * support it, channels last; their gradients then have that layout, too (`last`).
 *
 * conv2d_relu is conv2d with fused ReLU; its result is saved, because g passes where the result is above 0. conv2d_end
 * has no derivative and may also fuse a batch norm in evaluation and a residual: relu(conv2d(x, w, b) * scale + shift
 * + residual).
 */
#include "images.h"

#define CONV2D_FIELDS(FIELD) FIELD(geometry, at, 0) FIELD(bool, relu, false) FIELD(bool, last, false)
LG__ATTRIBUTES(conv2d, CONV2D_FIELDS)

/* ---- the ops: x (N, C, in), w (O, C / groups, kernel), g and y (N, O, out) ---- */

static bool infer(lg__call *call)
{
        const conv2d_attributes *a = call->attributes;
        const lg_conv_geometry *at = &a->at;
        const int64_t *first = call->in[0]->at.shape.size, *second = call->in[1]->at.shape.size;
        lg__layout *y = &call->out_at[0];
        if (call->op == LG__OP(conv2d_input_grad))
                y->shape = LG_SHAPE(first[0], second[1] * at->groups, at->in[0], at->in[1]);
        else if (call->op == LG__OP(conv2d_weight_grad))
                y->shape = LG_SHAPE(first[1], second[1] / at->groups, at->kernel[0], at->kernel[1]);
        else
                y->shape = LG_SHAPE(first[0], second[0], at->out[0], at->out[1]);
        if (!lg__shape_valid(call->ctx, call->op->name, y->shape))
                return false;
        if (call->op != LG__OP(conv2d_weight_grad) || a->last)
                lg__layout_channels_last(y);
        return true;
}

/* Returns the elements of input i, or NULL if that input is absent or the op does not have it. */
static const void *optional(const lg__call *call, int i)
{
        return i < call->in_count && call->in[i] ? lg__data(call->in[i]) : NULL;
}

static bool forward(lg__call *call)
{
        const conv2d_attributes *a = call->attributes;
        const bool to_input = call->op == LG__OP(conv2d_input_grad);
        const bool plain = !to_input && call->op != LG__OP(conv2d_weight_grad);
        const lg_tensor *first = call->in[0], *second = call->in[1], *out = call->out[0];
        const lg_tensor *x = plain ? first : to_input ? out : second, *g = plain ? out : first;
        lg_conv_args k = {.dtype = out->at.dtype, .at = a->at, .out = lg__data(out)};
        if (lg__shape_numel(out->at.shape) == 0)
                return true;
        k.kind = plain ? LG_CONV_FORWARD : to_input ? LG_CONV_INPUT_GRAD : LG_CONV_WEIGHT_GRAD;
        k.n = first->at.shape.size[0];
        k.channels = x->at.shape.size[1];
        k.outputs = g->at.shape.size[1];
        k.x = to_input ? NULL : lg__data(x);
        k.g = plain ? NULL : lg__data(g);
        k.w = plain || to_input ? lg__data(second) : NULL;
        k.b = optional(call, 2);
        k.scale = optional(call, 3);
        k.shift = optional(call, 4);
        k.z = optional(call, 5);
        k.relu = a->relu;
        k.weights_last = k.w ? lg__lies_last(second) : a->last;
        return LG__RUN(call->device, call->op->name, conv, &k);
}

static bool vjp_conv2d(lg__vjp *v)
{
        const bool relu = v->op == LG__OP(conv2d_relu);
        conv2d_attributes a = *(const conv2d_attributes *)v->attributes;
        a.relu = false;
        lg_tensor *g = lg__channels_last(v->grad[0]);
        g = relu ? lg__grad_of_relu(v, g) : g;
        if (v->needs[0])
                v->grad_in[0] = LG__APPLY(conv2d_input_grad, &a, g, v->in[1]);
        if (v->needs[1])
                v->grad_in[1] = LG__APPLY(conv2d_weight_grad, &a, g, v->in[0]);
        if (v->needs[2] && !v->grad_in[2])
                v->grad_in[2] = lg_sum(g, .dims = LG_DIMS(0, 2, 3));
        return lg__ok(v->ctx);
}

static bool vjp_conv2d_input_grad(lg__vjp *v)
{
        lg_tensor *u = lg__channels_last(v->grad[0]);
        if (v->needs[0])
                v->grad_in[0] = LG__APPLY(conv2d, v->attributes, u, v->in[1], NULL);
        if (v->needs[1])
                v->grad_in[1] = LG__APPLY(conv2d_weight_grad, v->attributes, v->in[0], u);
        return lg__ok(v->ctx);
}

static bool vjp_conv2d_weight_grad(lg__vjp *v)
{
        lg_tensor *u = v->grad[0];
        if (v->needs[0])
                v->grad_in[0] = LG__APPLY(conv2d, v->attributes, v->in[1], u, NULL);
        if (v->needs[1])
                v->grad_in[1] = LG__APPLY(conv2d_input_grad, v->attributes, v->in[0], u);
        return lg__ok(v->ctx);
}

#define CONV2D(of, order, saved, derivative, ...)                                                                      \
        LG__DEFINE(of, .flags = LG__PROMOTE | (order), .autocast = LG__LOW, LG__OPERANDS(__VA_ARGS__),                 \
                   LG__RESULTS({"y", .saved_for = saved}), LG__HAS(conv2d), .infer = infer, .forward = forward,        \
                   .vjp = derivative)
#define X_W_B                                                                                                          \
        {"x", LG__FLOAT, LG__CHANNELS_LAST, .saved_for = LG__BY(1)},                                                   \
                {"w", LG__FLOAT, LG__KERNEL, .saved_for = LG__BY(0)},                                                  \
        {                                                                                                              \
                "b", LG__FLOAT, LG__ROW_MAJOR, .optional = true                                                        \
        }
CONV2D(conv2d, 0, 0, vjp_conv2d, X_W_B)
CONV2D(conv2d_relu, 0, LG__BY(0) | LG__BY(1) | LG__BY(2), vjp_conv2d, X_W_B)
CONV2D(conv2d_end, 0, 0, NULL, X_W_B, {"scale", LG__WEIGHT, LG__ROW_MAJOR, .optional = true},
       {"shift", LG__WEIGHT, LG__ROW_MAJOR, .optional = true},
       {"residual", LG__FLOAT, LG__CHANNELS_LAST, .optional = true})
CONV2D(conv2d_input_grad, LG__UNORDERED, 0, vjp_conv2d_input_grad,
       {"g", LG__FLOAT, LG__CHANNELS_LAST, .saved_for = LG__BY(1)},
       {"w", LG__FLOAT, LG__KERNEL, .saved_for = LG__BY(0)})
CONV2D(conv2d_weight_grad, LG__UNORDERED, 0, vjp_conv2d_weight_grad,
       {"g", LG__FLOAT, LG__CHANNELS_LAST, .saved_for = LG__BY(1)},
       {"x", LG__FLOAT, LG__CHANNELS_LAST, .saved_for = LG__BY(0)})

/* ---- public functions ---- */

/* Converts the options of one public function to lg__conv_options. Returns false and sets an error on failure. */
typedef bool read_fn(const lg__call *call, const void *options, lg__conv_options *ret);

typedef struct arguments {
        const void *options;
        read_fn *read; /* NULL if options points to an lg__conv_options */
        bool signal, transposed;
        const lg__conv_epilogue *epilogue; /* fused operations of a convolution that is not transposed; NULL: none */
} arguments;

/* Sets ret to an option as (height, width): `pair` if given, else `both` for both, else `unset`. For signals the
 * height is `unset`. Fails if a number is below `least`. */
static bool choose(const lg__call *call, const char *name, int64_t both, lg_pair pair, int64_t unset, int64_t least,
                   int64_t ret[2])
{
        const arguments *p = call->attributes;
        const lg_pair sides = lg__sides(pair, lg__whole_option(both, unset));
        for (int d = 0; d < 2; d++) {
                ret[d] = d ? sides.w : sides.h;
                if (ret[d] < least || ret[d] > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                        "%s: %s is %lld; it must be at least %lld and below 2^31", call->op->name, name,
                                        (long long)ret[d], (long long)least);
        }
        if (p->signal)
                ret[0] = unset;
        return true;
}

const char *lg__layout_hint(const lg_tensor *x, int spaces, int64_t channels)
{
        const lg_shape s = x->at.shape;
        const bool image = spaces == 2;
        const int more = s.ndim - spaces; /* number of dimensions that are not spatial */
        if ((!image && spaces != 1) || more < 0 || more > 2)
                return "";
        if (more == 1 && s.size[0] == channels)
                return image ? "; if it is one image, (C, H, W), lg_unsqueeze(x, 0) makes a batch of it"
                             : "; if it is one signal, (C, L), lg_unsqueeze(x, 0) makes a batch of it";
        if (more && s.size[s.ndim - 1] == channels)
                return image       ? more == 2 ? "; if it is (N, H, W, C), take lg_permute(x, LG_DIMS(0, 3, 1, 2))"
                                               : "; if it is (H, W, C), take lg_permute(x, LG_DIMS(2, 0, 1))"
                       : more == 2 ? "; if it is (N, L, C), take lg_permute(x, LG_DIMS(0, 2, 1))"
                                   : "; if it is (L, C), take lg_permute(x, LG_DIMS(1, 0))";
        if (channels != 1 || more == 2)
                return "";
        if (more)
                return image ? "; if it is (N, H, W), lg_unsqueeze(x, 1) adds the channel"
                             : "; if it is (N, L), lg_unsqueeze(x, 1) adds the channel";
        return image ? "; if it is (H, W), lg_unsqueeze(x, 0) adds the channel"
                     : "; if it is (L), lg_unsqueeze(x, 0) adds the channel";
}

/* Checks the shapes of w and b against x, which has this number of channels. */
static bool check_shapes(const lg__call *call, int64_t channels, int64_t groups)
{
        const arguments *p = call->attributes;
        const lg_tensor *x = call->in[0], *w = call->in[1], *b = call->in[2];
        lg_ctx *c = call->ctx;
        const char *op = call->op->name;
        if (w->at.shape.ndim != (p->signal ? 3 : 4))
                return lg__fail(c, LG_ERR_SHAPE, "%s: w is %s; it takes (%s / groups, %s)", op, lg__tensor_text(w).s,
                                p->transposed ? "C, O" : "O, C", p->signal ? "K" : "KH, KW");
        const int64_t first = w->at.shape.size[0], second = w->at.shape.size[1];
        int64_t of_groups; /* second * groups */
        if (groups < 1 || groups > INT32_MAX || first % groups != 0)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: %lld groups; they must divide the %lld of w %s, and be below 2^31", op,
                                (long long)groups, (long long)first, lg__tensor_text(w).s);
        if (__builtin_mul_overflow(second, groups, &of_groups))
                return lg__fail(c, LG_ERR_SHAPE, "%s: w is %s: too many channels in %lld groups", op,
                                lg__tensor_text(w).s, (long long)groups);
        const int64_t inputs = p->transposed ? first : of_groups, outputs = p->transposed ? of_groups : first;
        if (channels != inputs)
                return lg__fail(c, LG_ERR_SHAPE,
                                "%s: x is %s and w is %s with %lld groups: w takes %lld channels, not %lld%s", op,
                                lg__tensor_text(x).s, lg__tensor_text(w).s, (long long)groups, (long long)inputs,
                                (long long)channels, lg__layout_hint(x, p->signal ? 1 : 2, inputs));
        if (b && (b->at.shape.ndim != 1 || b->at.shape.size[0] != outputs))
                return lg__fail(c, LG_ERR_SHAPE, "%s: b is %s, but w is %s with %lld groups: b takes (%lld,)", op,
                                lg__tensor_text(b).s, lg__tensor_text(w).s, (long long)groups, (long long)outputs);
        return true;
}

/* Sets the input and output size of dimension d of a convolution whose input has `size`. */
static bool forward_size(const lg__call *call, lg_conv_geometry *at, int d, int64_t size)
{
        const int64_t padded = size + 2 * at->padding[d];
        at->in[d] = size;
        if (padded < 1 || at->kernel[d] - 1 > (padded - 1) / at->dilation[d])
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "%s: x is %s: a kernel of %lld with dilation %lld is greater than the padded input of "
                                "%lld",
                                call->op->name, lg__tensor_text(call->in[0]).s, (long long)at->kernel[d],
                                (long long)at->dilation[d], (long long)padded);
        at->out[d] = (padded - 1 - (at->kernel[d] - 1) * at->dilation[d]) / at->stride[d] + 1;
        return true;
}

static bool transposed_size(const lg__call *call, lg_conv_geometry *at, int d, int64_t size, int64_t extra)
{
        at->out[d] = size;
        if (extra >= at->stride[d] && extra >= at->dilation[d])
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: output_padding is %lld; it must be below the stride %lld or the dilation %lld",
                                call->op->name, (long long)extra, (long long)at->stride[d], (long long)at->dilation[d]);
        at->in[d] = (size - 1) * at->stride[d] + (at->kernel[d] - 1) * at->dilation[d] + 1 + extra - 2 * at->padding[d];
        if (size < 1 || at->in[d] < 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: an input of %lld with padding %lld leaves no output",
                                call->op->name, (long long)size, (long long)at->padding[d]);
        return true;
}

/* Sets the geometry of a convolution of x (N, C, H, W) with w (., ., KH, KW). */
static bool geometry_of(const lg__call *call, const lg_tensor *x, const lg_tensor *w, const lg__conv_options *o,
                        lg_conv_geometry *ret)
{
        const arguments *p = call->attributes;
        int64_t extra[2];
        if (!choose(call, "stride", o->stride, o->strides, 1, 1, ret->stride) ||
            !choose(call, "padding", o->padding, o->paddings, 0, 0, ret->padding) ||
            !choose(call, "dilation", o->dilation, o->dilations, 1, 1, ret->dilation) ||
            !choose(call, "output_padding", o->output_padding, o->output_paddings, 0, 0, extra))
                return false;
        for (int d = 0; d < 2; d++) {
                const int64_t size = x->at.shape.size[2 + d];
                ret->kernel[d] = w->at.shape.size[2 + d];
                if (ret->kernel[d] < 1 || ret->kernel[d] > INT32_MAX || size > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "%s: x is %s and w is %s: sizes must be above 0 and below 2^31", call->op->name,
                                        lg__tensor_text(call->in[0]).s, lg__tensor_text(call->in[1]).s);
                if (!(p->transposed ? transposed_size(call, ret, d, size, extra[d]) : forward_size(call, ret, d, size)))
                        return false;
        }
        return true;
}

/* Adds the bias before rounding to 16 bits. */
static lg_tensor *transposed(lg_tensor *x, lg_tensor *w, lg_tensor *b, const conv2d_attributes *a)
{
        if (!b)
                return LG__APPLY(conv2d_input_grad, a, x, w);
        lg_dtype dtype = lg__common_dtype((lg_tensor *[]){x, w, b}, 3);
        lg_tensor *y = LG__APPLY(conv2d_input_grad, a, lg__widened(x), lg__widened(w));
        return y ? lg_cast(lg_add(y, lg_reshape(b, LG_SHAPE(-1, 1, 1))), dtype) : NULL;
}

/* Runs a convolution with fused operations. A residual is fused if nothing is recorded and the residual has the shape
 * of the result; otherwise the residual is added by an op of its own, followed by ReLU. */
static lg_tensor *with_epilogue(const lg__call *call, lg_tensor *x, lg_tensor *w, const conv2d_attributes *a)
{
        const arguments *p = call->attributes;
        const lg__conv_epilogue *e = p->epilogue;
        const lg_shape s = LG_SHAPE(x->at.shape.size[0], w->at.shape.size[0], a->at.out[0], a->at.out[1]);
        const bool separate = e->residual && (call->ctx->recording || !lg__shape_equal(e->residual->at.shape, s));
        const conv2d_attributes with = {a->at, e->relu && !separate, a->last};
        lg_tensor *b = call->in[2], *residual = separate ? NULL : e->residual;
        lg_tensor *y = e->scale || residual ? LG__APPLY(conv2d_end, &with, x, w, b, e->scale, e->shift, residual)
                       : with.relu          ? LG__APPLY(conv2d_relu, &with, x, w, b)
                                            : LG__APPLY(conv2d, &with, x, w, b);
        y = lg__as_given(call, y, p->signal);
        y = separate ? lg_add(y, e->residual) : y;
        return separate && e->relu ? lg_relu(y) : y;
}

static lg_tensor *compose(const lg__call *call)
{
        const arguments *p = call->attributes;
        lg__conv_options o;
        if (!p->read)
                o = *(const lg__conv_options *)p->options;
        else if (!p->read(call, p->options, &o))
                return NULL;
        conv2d_attributes a = {.at.groups = lg__whole_option(o.groups, 1)};
        lg_tensor *x = lg__as_images(call, p->signal), *w = call->in[1], *b = call->in[2];
        if (!x || !check_shapes(call, x->at.shape.size[1], a.at.groups))
                return NULL;
        w = p->signal ? lg_unsqueeze(w, -2) : w;
        if (!w || !geometry_of(call, x, w, &o, &a.at))
                return NULL;
        a.last = lg__lies_last(w);
        if (p->epilogue)
                return with_epilogue(call, x, w, &a);
        lg_tensor *y = p->transposed ? transposed(x, w, b, &a) : LG__APPLY(conv2d, &a, x, w, b);
        return lg__as_given(call, y, p->signal);
}

#define NUMBERS .stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups
#define PAIRS .strides = o.strides, .paddings = o.paddings, .dilations = o.dilations
#define ADDED .output_padding = o.output_padding
#define SIGNAL(is_transposed, read_of) .read = read_of, .signal = true, .transposed = is_transposed
#define IMAGE(is_transposed, read_of) .read = read_of, .transposed = is_transposed
#define CONVOLUTION(linkage, of, op, kind, is_transposed, ...)                                                         \
        linkage const lg__op op = {                                                                                    \
                .name = #of,                                                                                           \
                .autocast = LG__LOW,                                                                                   \
                .compose = compose,                                                                                    \
                LG__OPERANDS({"x", LG__FLOAT}, {"w", LG__FLOAT}, {"b", LG__FLOAT, .optional = true}),                  \
        };                                                                                                             \
        static bool read_##of(const lg__call *call, const void *options, lg__conv_options *ret)                        \
        {                                                                                                              \
                lg_##of##_options o;                                                                                   \
                if (!lg__take(call->ctx, #of, options, &o, sizeof o))                                                  \
                        return false;                                                                                  \
                *ret = (lg__conv_options){__VA_ARGS__};                                                                \
                return true;                                                                                           \
        }                                                                                                              \
        lg_tensor *lg_##of##_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_##of##_options *options)          \
        {                                                                                                              \
                return lg__apply(&(op), (lg_tensor *[]){x, w, b}, 3,                                                   \
                                 &(arguments){options, kind(is_transposed, read_##of)}, NULL);                         \
        }
CONVOLUTION(static, conv2d, any_conv2d, IMAGE, false, NUMBERS, PAIRS)
CONVOLUTION(, conv1d, lg__op_conv1d, SIGNAL, false, NUMBERS)
CONVOLUTION(, conv_transpose2d, lg__op_conv_transpose2d, IMAGE, true, NUMBERS, PAIRS, ADDED,
            .output_paddings = o.output_paddings)
CONVOLUTION(, conv_transpose1d, lg__op_conv_transpose1d, SIGNAL, true, NUMBERS, ADDED)

lg_tensor *lg__conv_with_epilogue(lg_tensor *x, lg_tensor *w, lg_tensor *b, bool signal,
                                  const lg__conv_options *options, const lg__conv_epilogue *epilogue)
{
        return lg__apply(signal ? LG__OP(conv1d) : &any_conv2d, (lg_tensor *[]){x, w, b}, 3,
                         &(arguments){options, .signal = signal, .epilogue = epilogue}, NULL);
}

lg_tensor *lg__conv_transpose2d(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg__conv_options *options)
{
        return LG__APPLY(conv_transpose2d, (&(arguments){options, .transposed = true}), x, w, b);
}
