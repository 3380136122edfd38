/* conv.c - convolution and transposed convolution of signals, images and volumes.
 *
 * Three ops share one geometry (kernels/conv.h). Each is linear in both inputs, and the derivatives of each are the
 * others:
 *   conv2d(x, w, b):            dx = input_grad(g, w), dw = weight_grad(g, x), db = g summed over images and pixels
 *   conv2d_input_grad(g, w):    dg = conv2d(v, w), dw = weight_grad(g, v)
 *   conv2d_weight_grad(g, x):   dg = conv2d(x, v), dx = input_grad(g, v)
 * A transposed convolution is input_grad. The ops take images, or volumes (N, C, D, H, W) if `depth` is set
 * (conv_volumes.c). Images have channels-last layout. Weights are row-major or, on devices that
 * support it, channels last; their gradients then have that layout, too (`last`).
 *
 * conv2d_relu is conv2d with fused ReLU; its result is saved, because g passes where the result is above 0. conv2d_end
 * has no derivative and may also fuse a batch norm in evaluation and a residual: relu(conv2d(x, w, b) * scale + shift
 * + residual).
 */
#include "images.h"

#define CONV2D_FIELDS(FIELD)                                                                                           \
        FIELD(geometry, at, 0) FIELD(bool, relu, false) FIELD(bool, last, false) FIELD(side, depth, 0)
LG__ATTRIBUTES(conv2d, CONV2D_FIELDS)

/* ---- the ops: x (N, C, in), w (O, C / groups, kernel), g and y (N, O, out) ---- */

/* Returns (n, channels, H, W), or if the op takes volumes (n, channels, depth, H, W). */
static lg_shape shape_of(const conv2d_attributes *a, int64_t n, int64_t channels, int64_t depth, const int64_t side[2])
{
        return a->depth.kernel ? LG_SHAPE(n, channels, depth, side[0], side[1])
                               : LG_SHAPE(n, channels, side[0], side[1]);
}

static bool infer(lg__call *call)
{
        const conv2d_attributes *a = call->attributes;
        const lg_conv_geometry *at = &a->at;
        const int64_t *first = call->in[0]->at.shape.size, *second = call->in[1]->at.shape.size;
        lg__layout *y = &call->out_at[0];
        if (call->op == LG__OP(conv2d_input_grad))
                y->shape = shape_of(a, first[0], second[1] * at->groups, a->depth.in, at->in);
        else if (call->op == LG__OP(conv2d_weight_grad))
                y->shape = shape_of(a, first[1], second[1] / at->groups, a->depth.kernel, at->kernel);
        else
                y->shape = shape_of(a, first[0], second[0], a->depth.out, at->out);
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

/* Returns the floating-point operations of a convolution without its epilogue; depth->kernel is 0 for images. */
static double work_of(const lg_conv_args *k, const lg__side *depth)
{
        const double slices = depth->kernel ? (double)depth->out * (double)depth->kernel : 1;
        const double pixels =
                (double)k->at.out[0] * (double)k->at.out[1] * (double)k->at.kernel[0] * (double)k->at.kernel[1];
        return 2 * slices * pixels * (double)k->n * (double)k->outputs * (double)(k->channels / k->at.groups);
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
        lg__device_work(call->device, work_of(&k, &a->depth));
        return a->depth.kernel ? lg__conv_volumes(call, &k, &a->depth)
                               : LG__RUN(call->device, call->op->name, conv, &k);
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
                v->grad_in[2] =
                        a.depth.kernel ? lg_sum(g, .dims = LG_DIMS(0, 2, 3, 4)) : lg_sum(g, .dims = LG_DIMS(0, 2, 3));
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

/* Writes the attributes of Conv and ConvTranspose: for each side, from D or H on. */
static void add_sides(lg__form *f, const conv2d_attributes *a)
{
        const bool volumes = a->depth.kernel != 0;
        const int64_t *const sides[][3] = {{&a->depth.stride, &a->at.stride[0], &a->at.stride[1]},
                                           {&a->depth.padding, &a->at.padding[0], &a->at.padding[1]},
                                           {&a->depth.dilation, &a->at.dilation[0], &a->at.dilation[1]}};
        static const char *const names[] = {"strides", "pads", "dilations"};
        for (int k = 0; k < 3; k++) {
                lg__form_add(f, ", %s=(", names[k]);
                for (int twice = 0; twice < 1 + (k == 1); twice++)
                        for (int d = volumes ? 0 : 1; d < 3; d++)
                                lg__form_add(f, "%lld ", (long long)*sides[k][d]);
                lg__form_add(f, ")");
        }
        lg__form_add(f, ", group=%lld", (long long)a->at.groups);
}

static int64_t output_padding(const lg__side *s)
{
        return s->in - ((s->out - 1) * s->stride + (s->kernel - 1) * s->dilation + 1 - 2 * s->padding);
}

static bool form(lg__form *f, const lg__call *call)
{
        const conv2d_attributes *a = call->attributes;
        const bool end = call->op == LG__OP(conv2d_end);
        const int first = a->depth.kernel ? 0 : 1;
        if (call->op == LG__OP(conv2d_weight_grad))
                return false;
        if (call->op == LG__OP(conv2d_input_grad)) {
                lg__form_add(f, "ConvTranspose(g, w");
                add_sides(f, a);
                lg__form_add(f, ", output_padding=(");
                for (int d = first; d < 3; d++) {
                        const lg__side s = d ? lg__side_at(&a->at, d - 1) : a->depth;
                        lg__form_add(f, "%lld ", (long long)output_padding(&s));
                }
                lg__form_add(f, "))");
                return true;
        }
        lg__form_add(f, "y = Conv(x, w, b");
        add_sides(f, a);
        lg__form_add(f, "); ");
        const char *const sides = first ? "1 1" : "1 1 1";
        if (end && call->in[3])
                lg__form_add(f, "y = Add(Mul(y, Reshape(scale, [-1 %s])), Reshape(shift, [-1 %s])); ", sides, sides);
        if (end && call->in[5])
                lg__form_add(f, "y = Add(y, residual); ");
        if (a->relu)
                lg__form_add(f, "y = Relu(y)");
        return true;
}

#define CONV2D(of, order, saved, derivative, ...)                                                                      \
        LG__DEFINE(of, .flags = LG__PROMOTE | (order), .autocast = LG__LOW, LG__OPERANDS(__VA_ARGS__),                 \
                   LG__RESULTS({"y", .saved_for = saved}), LG__HAS(conv2d), .infer = infer, .forward = forward,        \
                   .vjp = derivative, .form = form)
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
        int spaces;    /* number of spatial dimensions */
        bool transposed;
        const lg__conv_epilogue *epilogue; /* fused operations of a convolution that is not transposed; NULL: none */
} arguments;

/* Sets ret to an option as (depth, height, width): `given` if it is, else `each` for each, else `unset`. For signals
 * the height is `unset`. Fails if a number is below `least`. */
static bool choose(const lg__call *call, const char *name, int64_t each, lg_triple given, int64_t unset, int64_t least,
                   int64_t ret[3])
{
        const arguments *p = call->attributes;
        const lg_triple sides = lg__sides(given, lg__whole_option(each, unset));
        for (int d = 0; d < 3; d++) {
                ret[d] = d == 0 ? sides.d : d == 1 ? sides.h : sides.w;
                if (d == 0 && p->spaces < 3)
                        continue;
                if (ret[d] < least || ret[d] > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                        "%s: %s is %lld; it must be at least %lld and below 2^31", call->op->name, name,
                                        (long long)ret[d], (long long)least);
        }
        if (p->spaces == 1)
                ret[1] = unset;
        return true;
}

#define BATCH "lg_unsqueeze(x, 0) makes a batch of it"
#define CHANNEL "adds the channel"
const char *lg__layout_hint(const lg_tensor *x, int spaces, int64_t channels)
{
        /* By spatial dimensions: without a batch; channels last, of a batch and of one; without channels, as well. */
        static const char *const hints[3][5] = {
                {"; if it is one signal, (C, L), " BATCH, "; if it is (N, L, C), take lg_permute(x, LG_DIMS(0, 2, 1))",
                 "; if it is (L, C), take lg_permute(x, LG_DIMS(1, 0))",
                 "; if it is (N, L), lg_unsqueeze(x, 1) " CHANNEL, "; if it is (L), lg_unsqueeze(x, 0) " CHANNEL},
                {"; if it is one image, (C, H, W), " BATCH,
                 "; if it is (N, H, W, C), take lg_permute(x, LG_DIMS(0, 3, 1, 2))",
                 "; if it is (H, W, C), take lg_permute(x, LG_DIMS(2, 0, 1))",
                 "; if it is (N, H, W), lg_unsqueeze(x, 1) " CHANNEL, "; if it is (H, W), lg_unsqueeze(x, 0) " CHANNEL},
                {"; if it is one volume, (C, D, H, W), " BATCH,
                 "; if it is (N, D, H, W, C), take lg_permute(x, LG_DIMS(0, 4, 1, 2, 3))",
                 "; if it is (D, H, W, C), take lg_permute(x, LG_DIMS(3, 0, 1, 2))",
                 "; if it is (N, D, H, W), lg_unsqueeze(x, 1) " CHANNEL,
                 "; if it is (D, H, W), lg_unsqueeze(x, 0) " CHANNEL}};
        const lg_shape s = x->at.shape;
        const int more = s.ndim - spaces; /* number of dimensions that are not spatial */
        if (spaces < 1 || spaces > 3 || more < 0 || more > 2)
                return "";
        if (more == 1 && s.size[0] == channels)
                return hints[spaces - 1][0];
        if (more && s.size[s.ndim - 1] == channels)
                return hints[spaces - 1][more == 2 ? 1 : 2];
        return channels != 1 || more == 2 ? "" : hints[spaces - 1][more ? 3 : 4];
}

/* Checks the shapes of w and b against x, which has this number of channels. */
static bool check_shapes(const lg__call *call, int64_t channels, int64_t groups)
{
        const arguments *p = call->attributes;
        const lg_tensor *x = call->in[0], *w = call->in[1], *b = call->in[2];
        lg_ctx *c = call->ctx;
        const char *op = call->op->name;
        if (w->at.shape.ndim != p->spaces + 2)
                return lg__fail(c, LG_ERR_SHAPE, "%s: w is %s; it takes (%s / groups, %s)", op, lg__tensor_text(w).s,
                                p->transposed ? "C, O" : "O, C",
                                p->spaces == 1   ? "K"
                                : p->spaces == 2 ? "KH, KW"
                                                 : "KD, KH, KW");
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
                                (long long)channels, lg__layout_hint(x, p->spaces, inputs));
        if (b && (b->at.shape.ndim != 1 || b->at.shape.size[0] != outputs))
                return lg__fail(c, LG_ERR_SHAPE, "%s: b is %s, but w is %s with %lld groups: b takes (%lld,)", op,
                                lg__tensor_text(b).s, lg__tensor_text(w).s, (long long)groups, (long long)outputs);
        return true;
}

/* Sets the input and output size of a side of a convolution whose input has `size`. */
static bool forward_size(const lg__call *call, lg__side *s, int64_t size)
{
        const int64_t padded = size + 2 * s->padding;
        s->in = size;
        if (padded < 1 || s->kernel - 1 > (padded - 1) / s->dilation)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "%s: x is %s: a kernel of %lld with dilation %lld is greater than the padded input of "
                                "%lld",
                                call->op->name, lg__tensor_text(call->in[0]).s, (long long)s->kernel,
                                (long long)s->dilation, (long long)padded);
        s->out = (padded - 1 - (s->kernel - 1) * s->dilation) / s->stride + 1;
        return true;
}

static bool transposed_size(const lg__call *call, lg__side *s, int64_t size, int64_t extra)
{
        s->out = size;
        if (extra >= s->stride && extra >= s->dilation)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: output_padding is %lld; it must be below the stride %lld or the dilation %lld",
                                call->op->name, (long long)extra, (long long)s->stride, (long long)s->dilation);
        s->in = (size - 1) * s->stride + (s->kernel - 1) * s->dilation + 1 + extra - 2 * s->padding;
        if (size < 1 || s->in < 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: an input of %lld with padding %lld leaves no output",
                                call->op->name, (long long)size, (long long)s->padding);
        return true;
}

/* Sets the geometry of a convolution of x (N, C, H, W) with w (., ., KH, KW), or of volumes. */
static bool geometry_of(const lg__call *call, const lg_tensor *x, const lg_tensor *w, const lg__conv_options *o,
                        conv2d_attributes *ret)
{
        const arguments *p = call->attributes;
        int64_t stride[3], padding[3], dilation[3], extra[3];
        if (!choose(call, "stride", o->stride, o->strides, 1, 1, stride) ||
            !choose(call, "padding", o->padding, o->paddings, 0, 0, padding) ||
            !choose(call, "dilation", o->dilation, o->dilations, 1, 1, dilation) ||
            !choose(call, "output_padding", o->output_padding, o->output_paddings, 0, 0, extra))
                return false;
        for (int d = p->spaces == 3 ? 0 : 1; d < 3; d++) {
                const int64_t size = x->at.shape.size[x->at.shape.ndim - 3 + d];
                lg__side s = {.kernel = w->at.shape.size[w->at.shape.ndim - 3 + d],
                              .stride = stride[d],
                              .padding = padding[d],
                              .dilation = dilation[d]};
                if (s.kernel < 1 || s.kernel > INT32_MAX || size > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "%s: x is %s and w is %s: sizes must be above 0 and below 2^31", call->op->name,
                                        lg__tensor_text(call->in[0]).s, lg__tensor_text(call->in[1]).s);
                if (!(p->transposed ? transposed_size(call, &s, size, extra[d]) : forward_size(call, &s, size)))
                        return false;
                if (d == 0)
                        ret->depth = s;
                else
                        lg__set_side(&ret->at, d - 1, &s);
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
        return y ? lg_cast(lg_add(y, lg_reshape(b, a->depth.kernel ? LG_SHAPE(-1, 1, 1, 1) : LG_SHAPE(-1, 1, 1))),
                           dtype)
                 : NULL;
}

/* Runs a convolution with fused operations. A residual is fused if nothing is recorded and the residual has the shape
 * of the result; otherwise the residual is added by an op of its own, followed by ReLU. */
static lg_tensor *with_epilogue(const lg__call *call, lg_tensor *x, lg_tensor *w, const conv2d_attributes *a)
{
        const arguments *p = call->attributes;
        const lg__conv_epilogue *e = p->epilogue;
        const lg_shape s = shape_of(a, x->at.shape.size[0], w->at.shape.size[0], a->depth.out, a->at.out);
        const bool separate = e->residual && (call->ctx->recording || !lg__shape_equal(e->residual->at.shape, s));
        const conv2d_attributes with = {a->at, e->relu && !separate, a->last, a->depth};
        lg_tensor *b = call->in[2], *residual = separate ? NULL : e->residual;
        lg_tensor *y = e->scale || residual ? LG__APPLY(conv2d_end, &with, x, w, b, e->scale, e->shift, residual)
                       : with.relu          ? LG__APPLY(conv2d_relu, &with, x, w, b)
                                            : LG__APPLY(conv2d, &with, x, w, b);
        y = lg__as_given(call, y, p->spaces);
        y = separate ? lg_add(y, e->residual) : y;
        return separate && e->relu ? lg_relu(y) : y;
}

/* Runs a convolution of signals with a long kernel and its fused operations, but a scale. Sets *ret_y to NULL if the
 * kernel is not long. Returns false with an error. */
static bool long_kernel(const lg__call *call, lg_tensor *x, lg_tensor *w, const conv2d_attributes *a, lg_tensor **ret_y)
{
        const arguments *p = call->attributes;
        const lg__conv_epilogue *e = p->epilogue;
        const lg__side s = lg__side_at(&a->at, 1);
        *ret_y = NULL;
        if (p->spaces != 1 || p->transposed || (e && e->scale) || a->at.groups != 1 || s.stride != 1 ||
            s.dilation != 1 || !lg__conv_is_long(x, w, s.padding))
                return true;
        lg_tensor *y = lg__as_given(call, lg__conv_long(x, w, call->in[2], s.padding), 1);
        y = y && e && e->residual ? lg_add(y, e->residual) : y;
        return (*ret_y = y && e && e->relu ? lg_relu(y) : y) != NULL;
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
        lg_tensor *x = lg__as_images(call, p->spaces), *w = call->in[1], *b = call->in[2];
        if (!x || !check_shapes(call, x->at.shape.size[1], a.at.groups))
                return NULL;
        w = p->spaces == 1 ? lg_unsqueeze(w, -2) : w;
        if (!w || !geometry_of(call, x, w, &o, &a))
                return NULL;
        lg_tensor *signal;
        if (!long_kernel(call, x, w, &a, &signal) || signal)
                return signal;
        a.last = lg__lies_last(w);
        if (p->epilogue)
                return with_epilogue(call, x, w, &a);
        lg_tensor *y = p->transposed ? transposed(x, w, b, &a) : LG__APPLY(conv2d, &a, x, w, b);
        return lg__as_given(call, y, p->spaces);
}

#define NUMBERS .stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups
#define SIDES(as) .strides = as(o.strides), .paddings = as(o.paddings), .dilations = as(o.dilations)
#define ADDED .output_padding = o.output_padding
#define AS_IT_IS(triple) triple
#define CONVOLUTION(linkage, of, op, dims, is_transposed, ...)                                                         \
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
                                 &(arguments){options, read_##of, dims, is_transposed}, NULL);                         \
        }
CONVOLUTION(static, conv2d, any_conv2d, 2, false, NUMBERS, SIDES(lg__deepened))
CONVOLUTION(, conv1d, lg__op_conv1d, 1, false, NUMBERS)
CONVOLUTION(, conv3d, lg__op_conv3d, 3, false, NUMBERS, SIDES(AS_IT_IS))
CONVOLUTION(, conv_transpose2d, lg__op_conv_transpose2d, 2, true, NUMBERS, SIDES(lg__deepened), ADDED,
            .output_paddings = lg__deepened(o.output_paddings))
CONVOLUTION(, conv_transpose1d, lg__op_conv_transpose1d, 1, true, NUMBERS, ADDED)
CONVOLUTION(, conv_transpose3d, lg__op_conv_transpose3d, 3, true, NUMBERS, SIDES(AS_IT_IS), ADDED,
            .output_paddings = o.output_paddings)

lg_tensor *lg__conv_with_epilogue(lg_tensor *x, lg_tensor *w, lg_tensor *b, int spaces, const lg__conv_options *options,
                                  const lg__conv_epilogue *epilogue)
{
        static const lg__op *const ops[] = {LG__OP(conv1d), &any_conv2d, LG__OP(conv3d)};
        return lg__apply(ops[spaces - 1], (lg_tensor *[]){x, w, b}, 3,
                         &(arguments){options, .spaces = spaces, .epilogue = epilogue}, NULL);
}

lg_tensor *lg__conv_transpose(lg_tensor *x, lg_tensor *w, lg_tensor *b, int spaces, const lg__conv_options *options)
{
        static const lg__op *const ops[] = {LG__OP(conv_transpose1d), LG__OP(conv_transpose2d),
                                            LG__OP(conv_transpose3d)};
        return lg__apply(ops[spaces - 1], (lg_tensor *[]){x, w, b}, 3,
                         &(arguments){options, .spaces = spaces, .transposed = true}, NULL);
}
