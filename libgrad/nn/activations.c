/* activations.c - modules that apply one op with at most two numbers (activations, Flatten, ...), and PReLU. */
#include <math.h>
#include "graph/op.h"
#include "nn.h"

typedef struct numbers {
        double a, b;
} numbers;

#define FORWARD(name, expression)                                                                                      \
        static lg_tensor *forward_##name(lg_module *m, lg_list inputs, void *user)                                     \
        {                                                                                                              \
                const numbers *n = user;                                                                               \
                lg_tensor *x = lg__module_input(m, inputs);                                                            \
                (void)n;                                                                                               \
                return x ? (expression) : NULL;                                                                        \
        }
#define LAYER0(name, type, expression)                                                                                 \
        FORWARD(name, expression)                                                                                      \
        lg_module *lg_nn_##name(lg_ctx *c)                                                                             \
        {                                                                                                              \
                return lg__module_new(c, type, forward_##name);                                                        \
        }
#define LAYER1(name, type, expression)                                                                                 \
        FORWARD(name, expression)                                                                                      \
        lg_module *lg_nn_##name(lg_ctx *c, double a)                                                                   \
        {                                                                                                              \
                const bool takes = lg__pointwise_takes(c, "lg_nn_" #name, LG_PW_##name, a, 0);                         \
                return takes ? lg__module_with(c, type, forward_##name, &(numbers){a, 0}, sizeof(numbers)) : NULL;     \
        }
#define LAYER2(name, type, expression)                                                                                 \
        FORWARD(name, expression)                                                                                      \
        lg_module *lg_nn_##name(lg_ctx *c, double a, double b)                                                         \
        {                                                                                                              \
                const bool takes = lg__pointwise_takes(c, "lg_nn_" #name, LG_PW_##name, a, b);                         \
                return takes ? lg__module_with(c, type, forward_##name, &(numbers){a, b}, sizeof(numbers)) : NULL;     \
        }
#define LAYER_ALONG(name, type, expression)                                                                            \
        FORWARD(name, expression)                                                                                      \
        lg_module *lg_nn_##name(lg_ctx *c, int dim)                                                                    \
        {                                                                                                              \
                return lg__module_with(c, type, forward_##name, &(numbers){dim, 0}, sizeof(numbers));                  \
        }

LAYER0(flatten, "Flatten", lg_flatten(x, .start_dim = 1))
LAYER0(identity, "Identity", x)
LAYER0(relu6, "ReLU6", lg_relu6(x))
LAYER0(selu, "SELU", lg_selu(x))
LAYER0(gelu, "GELU", lg_gelu(x))
LAYER0(gelu_tanh, "GELUTanh", lg_gelu_tanh(x))
LAYER0(silu, "SiLU", lg_silu(x))
LAYER0(mish, "Mish", lg_mish(x))
LAYER0(sigmoid, "Sigmoid", lg_sigmoid(x))
LAYER0(log_sigmoid, "LogSigmoid", lg_log_sigmoid(x))
LAYER0(tanh, "Tanh", lg_tanh(x))
LAYER0(tanhshrink, "Tanhshrink", lg_tanhshrink(x))
LAYER0(softsign, "Softsign", lg_softsign(x))
LAYER0(hardsigmoid, "Hardsigmoid", lg_hardsigmoid(x))
LAYER0(hardswish, "Hardswish", lg_hardswish(x))
LAYER1(leaky_relu, "LeakyReLU", lg_leaky_relu(x, n->a))
LAYER1(elu, "ELU", lg_elu(x, n->a))
LAYER1(celu, "CELU", lg_celu(x, n->a))
LAYER1(hardshrink, "Hardshrink", lg_hardshrink(x, n->a))
LAYER1(softshrink, "Softshrink", lg_softshrink(x, n->a))
LAYER_ALONG(softmax, "Softmax", lg_softmax(x, (int)n->a))
LAYER_ALONG(softmin, "Softmin", lg_softmin(x, (int)n->a))
LAYER_ALONG(log_softmax, "LogSoftmax", lg_log_softmax(x, (int)n->a))
LAYER_ALONG(glu, "GLU", lg_glu(x, (int)n->a))
LAYER2(hardtanh, "Hardtanh", lg_hardtanh(x, n->a, n->b))
LAYER2(threshold, "Threshold", lg_threshold(x, n->a, n->b))
LAYER2(softplus, "Softplus", lg_softplus(x, n->a, n->b))

typedef struct division {
        int dim;
        lg_shape sizes;
} division;

static lg_tensor *forward_unflatten(lg_module *m, lg_list inputs, void *user)
{
        const division *d = user;
        return lg_unflatten(lg__module_input(m, inputs), d->dim, d->sizes);
}

lg_module *lg_nn_unflatten(lg_ctx *c, int dim, lg_shape sizes)
{
        return lg__module_with(c, "Unflatten", forward_unflatten, &(division){dim, sizes}, sizeof(division));
}

static lg_tensor *softmax_of_channels(lg_tensor *x)
{
        const int n = x->at.shape.ndim;
        if (n == 3 || n == 4)
                return lg_softmax(x, -3);
        return lg__fail(x->ctx, LG_ERR_SHAPE, "Softmax2d: x is %s; it is (N, C, H, W) or (C, H, W)",
                        lg__tensor_text(x).s);
}
LAYER0(softmax2d, "Softmax2d", softmax_of_channels(x))

FORWARD(rrelu, lg_rrelu(x, .lower = n->a, .upper = n->b, .training = lg_is_training(m)))

lg_module *lg_nn_rrelu(lg_ctx *c, double lower, double upper)
{
        if (lg__ok(c) && !(lower <= upper && isfinite(lower) && isfinite(upper)))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_rrelu: lower is %g and upper %g; they are finite, in order",
                                lower, upper);
        const numbers bounds = {lower == 0 ? LG_ZERO : lower, upper == 0 ? LG_ZERO : upper};
        return lg__module_with(c, "RReLU", forward_rrelu, &bounds, sizeof bounds);
}

lg_tensor *lg__relu_forward(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_relu(x) : NULL;
}

lg_module *lg_nn_relu(lg_ctx *c)
{
        return lg__module_new(c, "ReLU", lg__relu_forward);
}

FORWARD(dropout, lg_dropout(x, n->a, .training = lg_is_training(m)))
FORWARD(channels, lg_feature_dropout(x, n->a, .training = lg_is_training(m)))
FORWARD(alpha, lg_alpha_dropout(x, n->a, .training = lg_is_training(m)))
FORWARD(feature_alpha, lg_feature_alpha_dropout(x, n->a, .training = lg_is_training(m)))

#define DROPOUT(name, type, forward)                                                                                   \
        lg_module *lg_nn_##name(lg_ctx *c, double p)                                                                   \
        {                                                                                                              \
                if (lg__ok(c) && !(p >= 0 && p <= 1))                                                                  \
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_" #name ": p is %g, not in [0, 1]", p);             \
                return lg__module_with(c, type, forward, &(numbers){p, 0}, sizeof(numbers));                           \
        }
DROPOUT(dropout, "Dropout", forward_dropout)
DROPOUT(dropout2d, "Dropout2d", forward_channels)
DROPOUT(dropout3d, "Dropout3d", forward_channels)
DROPOUT(alpha_dropout, "AlphaDropout", forward_alpha)
DROPOUT(feature_alpha_dropout, "FeatureAlphaDropout", forward_feature_alpha)

/* Computes PReLU: x where x > 0, else w x, with one weight for each channel (dimension 1 of x) or one for all. */
static lg_tensor *compose_prelu(const lg__call *call)
{
        lg_tensor *x = call->in[0], *w = call->in[1];
        lg_shape s = {.ndim = x->at.shape.ndim > 1 ? x->at.shape.ndim - 1 : 0};
        for (int i = 0; i < s.ndim; i++)
                s.size[i] = 1;
        if (s.ndim)
                s.size[0] = w->at.shape.size[0];
        if (w->at.shape.size[0] > 1 && (s.ndim == 0 || x->at.shape.size[1] != s.size[0]))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "PReLU: x is %s, but there are weights for %lld channels",
                                lg__tensor_text(x).s, (long long)w->at.shape.size[0]);
        /* 0 where x > 0: there the weight's gradient is 0 times this, which would be NaN for an infinite x */
        lg_tensor *above = lg_gt_scalar(x, 0), *below = lg_masked_fill(x, above, 0);
        return lg_where(above, x, lg_mul(lg_reshape(w, s), below));
}

static const lg__op prelu = {
        .name = "prelu", .autocast = LG__LOW, .compose = compose_prelu, LG__OPERANDS({"x"}, {"w", LG__FLOAT})};

static lg_tensor *forward_prelu(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg__apply2(&prelu, x, m->parts->tensor, NULL) : NULL;
}

typedef struct weights {
        int64_t channels;
        lg_prelu_layer_options o;
} weights;

static bool fill_prelu(lg_module *m, const void *options)
{
        const weights *k = options;
        return lg__module_constant(m, LG__PARAMETER, "weight", 0.25, LG_SHAPE(k->channels), k->o.dtype, k->o.device);
}

lg_module *lg_nn_prelu_with(lg_ctx *c, int64_t channels, const lg_prelu_layer_options *options)
{
        weights k = {.channels = channels};
        if (!lg__take(c, "lg_nn_prelu", options, &k.o, sizeof k.o))
                return NULL;
        if (channels < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_prelu: %lld channels; 1 or more", (long long)channels);
        if (!lg__module_dtype(c, "lg_nn_prelu", k.o.dtype))
                return NULL;
        return lg__module_build(c, "PReLU", forward_prelu, NULL, 0, fill_prelu, &k);
}
