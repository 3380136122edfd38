/* layers.h - the layers that come with libgrad: linear, normalisation, embedding, activations; more in conv_layers.h.
 *
 * Each function makes a module. Formulas, names of parameters and first values are those of PyTorch's layers of the
 * same names. Combine layers by lg_nn_sequential() or in a module of your own, and run them by lg_forward(); see nn.h:
 *
 *     lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 16, 3, .padding = 1), lg_nn_relu(c),
 *                                       lg_nn_max_pool2d(c, 2), lg_nn_flatten(c), lg_nn_linear(c, 16 * 14 * 14, 10));
 *
 * A new layer belongs to the context c until it becomes the child of another module, which then owns it. Layers with
 * parameters have the options .dtype, a float dtype (f32 by default), and .device (the context's default device).
 * Random first values come from the context's generator: the same seed gives the same weights on every device, up to
 * rounding for the normal ones of lg_nn_embedding(). If making a layer fails, the random state is as it was.
 *
 * Running a layer with lg_forward() takes one input, and fails with the codes of the op that it applies. Sizes, numbers
 * of channels and of groups are at least 1 unless stated otherwise; a dimension, .eps and all numbers of pooling layers
 * are checked when the layer runs, others when it is made.
 */
#ifndef LG_LAYERS_H
#define LG_LAYERS_H

#include "grad/conv_layers.h"
#include "grad/nn.h"
#include "grad/norm.h"
#include "grad/sequence.h"

LG_BEGIN

/* ---- containers and linear layers ----
 *
 * A module that is made of others owns them. A child that has a parent already or occurs twice is LG_ERR_ARGUMENT, and
 * so are more than LG_MAX_MODULE_DEPTH levels of modules.
 */

/* Makes a module that runs its children one after the other, each on the result of the one before. The children are
 * named "0", "1", ... Without children, the result is the input.
 *
 * A ReLU behind a linear layer, a convolution or a batch norm is done in the same pass over memory, as one op. While
 * nothing is recorded (lg_no_grad()), a convolution also does a batch norm in evaluation that is behind it.
 * Example: lg_nn_sequential(c, lg_nn_linear(c, 784, 128), lg_nn_relu(c), lg_nn_linear(c, 128, 10)) */
#define lg_nn_sequential(...) lg_nn_sequential_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_module, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_module *lg_nn_sequential_list(lg_ctx *c, lg_module *const *children);

/* Makes a list of children named "0", "1", ..., which the forward of another module runs as it likes:
 * lg_child(list, i). The list may be empty at first. It has no forward itself: lg_forward() fails with LG_ERR_STATE.
 * Example: lg_nn_module_list(c) */
#define lg_nn_module_list(...) lg_nn_module_list_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_module, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_module *lg_nn_module_list_list(lg_ctx *c, lg_module *const *children);

/* Appends a child, which m then owns, to a module of the two functions above under the next number, and returns it. */
LG_API lg_module *lg_module_append(lg_module *m, lg_module *child);

/* Makes a dictionary of children: lg_module_add(m, "name", child) adds one and lg_child_named(m, "name") returns it. It
 * has no forward itself, as lg_nn_module_list().
 * Example: lg_nn_module_dict(c) */
LG_API LG_NEW lg_module *lg_nn_module_dict(lg_ctx *c);

/* Makes a list of parameters named "0", "1", ... out of tensors, which are as for lg_module_add_parameter() and may be
 * none at first: lg_parameters(m).items[i], lg_parameter(m, "0"). It has no forward. If a tensor does not fit, those
 * before it are freed.
 * Example: lg_nn_parameter_list(c, x, lg_copy(w, LG_NO_DEVICE)) */
#define lg_nn_parameter_list(...)                                                                                      \
        lg_nn_parameter_list_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_tensor, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_module *lg_nn_parameter_list_list(lg_ctx *c, lg_tensor *const *tensors);

/* Adds a tensor to such a list under the next number and returns it, as lg_module_add_parameter() does. */
LG_API lg_tensor *lg_module_append_parameter(lg_module *m, lg_tensor *t);

/* Makes a dictionary of parameters: lg_module_add_parameter(m, "name", t) adds one and lg_parameter(m, "name") returns
 * it. It has no forward.
 * Example: lg_nn_parameter_dict(c) */
LG_API LG_NEW lg_module *lg_nn_parameter_dict(lg_ctx *c);

typedef struct lg_residual_options {
        LG_OPTIONS_HEAD
        lg_module *shortcut LG_DEFAULT; /* applied to x before it is added; default: none, x itself */
} lg_residual_options;
/* Makes a module that computes block(x) + shortcut(x), or block(x) + x without a shortcut. The children are named
 * "block" and "shortcut"; the shortcut runs first.
 * Example: lg_nn_residual(c, block, .shortcut = lg_nn_conv2d(c, 64, 128, 1)) */
#define lg_nn_residual(...)                                                                                            \
        LG_CALL2(lg_nn_residual_with, lg_residual_options, lg_nn_residual_takes_c_block, V, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_residual_with(lg_ctx *c, lg_module *block, const lg_residual_options *options);

typedef struct lg_linear_options {
        LG_OPTIONS_HEAD
        bool no_bias LG_DEFAULT;     /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;   /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameters; default: the context's default device */
} lg_linear_options;
/* Makes a linear layer: x W^T + b for x (..., in), with the result (..., out). The parameters "weight" (out, in) and
 * "bias" (out) are uniform in [-1/sqrt(in), 1/sqrt(in)). in and out may be 0.
 * Example: lg_nn_linear(c, 784, 10, .no_bias = true) */
#define lg_nn_linear(...)                                                                                              \
        LG_CALL3(lg_nn_linear_with, lg_linear_options, lg_nn_linear_takes_c_in_out, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_linear_with(lg_ctx *c, int64_t in, int64_t out, const lg_linear_options *options);

/* Makes a layer that applies lg_bilinear() to two inputs (..., in1) and (..., in2): (..., out). The options are those
 * of lg_nn_linear(); "weight" (out, in1, in2) and "bias" (out) are uniform in [-1/sqrt(in1), 1/sqrt(in1)).
 * lg_forward(m, x1, x2) runs it.
 * Example: lg_nn_bilinear(c, 32, 32, 8) */
#define lg_nn_bilinear(...)                                                                                            \
        LG_CALL4(lg_nn_bilinear_with, lg_linear_options, lg_nn_bilinear_takes_c_in1_in2_out, V, I, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_bilinear_with(lg_ctx *c, int64_t in1, int64_t in2, int64_t out,
                                             const lg_linear_options *options);

typedef struct lg_adaptive_log_softmax_options {
        LG_OPTIONS_HEAD
        double div_value LG_DEFAULT; /* cluster i has in / div_value^(i + 1) hidden features; default 4; above 0 */
        bool head_bias LG_DEFAULT;   /* with "head.bias"; default false */
        lg_dtype dtype LG_DEFAULT;   /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameters; default: the context's default device */
} lg_adaptive_log_softmax_options;
/* Makes the soft-max of many classes by clusters (PyTorch's AdaptiveLogSoftmaxWithLoss), for classes in the order of
 * their frequency. cutoffs increase from 1 to classes - 1: the head scores the classes before the first one and the
 * clusters, of which each begins at a cutoff. The parameters are "head.weight", "tail.0.0.weight", "tail.0.1.weight",
 * "tail.1.0.weight", ...
 *
 * lg_forward(m, x, target) of x (N, in) and classes target (N) gives the loss, which is the mean of the negative
 * log-probabilities of the targets; lg_forward_all() gives the loss, then these log-probabilities (N). lg_forward(m, x)
 * gives the log-probabilities of all classes (..., classes), and lg_argmax() of them is PyTorch's predict(). With a
 * target, the host waits for the device; a class out of range is LG_ERR_ARGUMENT. A sample x (in) has a target ().
 * Example: lg_nn_adaptive_log_softmax(c, 256, 50000, LG_INTS(2000, 10000), .head_bias = true) */
#define lg_nn_adaptive_log_softmax(...)                                                                                \
        LG_CALL4(lg_nn_adaptive_log_softmax_with, lg_adaptive_log_softmax_options,                                     \
                 lg_nn_adaptive_log_softmax_takes_c_in_classes_cutoffs, V, I, I, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_adaptive_log_softmax_with(lg_ctx *c, int64_t in, int64_t classes, lg_ints_in cutoffs,
                                                         const lg_adaptive_log_softmax_options *options);

/* ---- normalisation ----
 *
 * Layers over the ops of norm.h, where the formulas are. At first the parameters "weight" are 1 and "bias" 0.
 */

/* Options of lg_nn_batch_norm1d(), 2d and 3d. */
typedef struct lg_batch_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT;       /* added to the variance; default 1e-5; LG_ZERO for 0 */
        double momentum LG_DEFAULT;  /* weight of the batch in the running statistics; default 0.1; LG_ZERO for 0 */
        bool no_affine LG_DEFAULT;   /* without "weight" and "bias"; default false */
        bool no_running LG_DEFAULT;  /* normalise by the batch in evaluation mode, too; no buffers; default false */
        lg_dtype dtype LG_DEFAULT;   /* of parameters and buffers; default LG_F32 */
        lg_device device LG_DEFAULT; /* of parameters and buffers; default: the context's default device */
} lg_batch_norm_layer_options;
/* Makes a layer that applies lg_batch_norm() to x (N, channels) or (N, channels, L), to x (N,
 * channels, H, W) for lg_nn_batch_norm2d(), or to x (N, channels, D, H, W) for lg_nn_batch_norm3d(). In training mode
 * it normalises by the statistics of the batch and updates the buffers "running_mean" (0 at first) and "running_var" (1
 * at first); in evaluation mode (lg_train()) it normalises by them.
 * Examples: lg_nn_batch_norm1d(c, 64), lg_nn_batch_norm3d(c, 64),
 * lg_nn_batch_norm2d(c, 64, .momentum = 0.01) */
#define lg_nn_batch_norm1d(...)                                                                                        \
        LG_CALL2(lg_nn_batch_norm1d_with, lg_batch_norm_layer_options, lg_nn_batch_norm1d_takes_c_channels, V, I,      \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_batch_norm1d_with(lg_ctx *c, int64_t channels,
                                                 const lg_batch_norm_layer_options *options);
#define lg_nn_batch_norm2d(...)                                                                                        \
        LG_CALL2(lg_nn_batch_norm2d_with, lg_batch_norm_layer_options, lg_nn_batch_norm2d_takes_c_channels, V, I,      \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_batch_norm2d_with(lg_ctx *c, int64_t channels,
                                                 const lg_batch_norm_layer_options *options);
#define lg_nn_batch_norm3d(...)                                                                                        \
        LG_CALL2(lg_nn_batch_norm3d_with, lg_batch_norm_layer_options, lg_nn_batch_norm3d_takes_c_channels, V, I,      \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_batch_norm3d_with(lg_ctx *c, int64_t channels,
                                                 const lg_batch_norm_layer_options *options);

/* Options of lg_nn_instance_norm1d(), 2d and 3d. */
typedef struct lg_instance_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT;       /* added to the variance; default 1e-5; LG_ZERO for 0 */
        double momentum LG_DEFAULT;  /* weight of the batch in the running statistics; default 0.1; LG_ZERO for 0 */
        bool affine LG_DEFAULT;      /* with "weight" and "bias"; default false */
        bool running LG_DEFAULT;     /* keep running statistics; default false */
        lg_dtype dtype LG_DEFAULT;   /* of parameters and buffers; default LG_F32 */
        lg_device device LG_DEFAULT; /* of parameters and buffers; default: the context's default device */
} lg_instance_norm_layer_options;
/* Makes a layer that applies lg_instance_norm() to x (N, channels, L), (N, channels, H, W) or (N, channels, D, H, W),
 * or to one sample without N. With .running, the buffers "running_mean" (0 at first) and "running_var" (1 at first)
 * follow the means of the statistics of the samples in training mode; in evaluation mode they are those that normalise.
 * Examples: lg_nn_instance_norm1d(c, 64), lg_nn_instance_norm2d(c, 64, .affine = true), lg_nn_instance_norm3d(c, 8) */
#define lg_nn_instance_norm1d(...)                                                                                     \
        LG_CALL2(lg_nn_instance_norm1d_with, lg_instance_norm_layer_options, lg_nn_instance_norm1d_takes_c_channels,   \
                 V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_instance_norm1d_with(lg_ctx *c, int64_t channels,
                                                    const lg_instance_norm_layer_options *options);
#define lg_nn_instance_norm2d(...)                                                                                     \
        LG_CALL2(lg_nn_instance_norm2d_with, lg_instance_norm_layer_options, lg_nn_instance_norm2d_takes_c_channels,   \
                 V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_instance_norm2d_with(lg_ctx *c, int64_t channels,
                                                    const lg_instance_norm_layer_options *options);
#define lg_nn_instance_norm3d(...)                                                                                     \
        LG_CALL2(lg_nn_instance_norm3d_with, lg_instance_norm_layer_options, lg_nn_instance_norm3d_takes_c_channels,   \
                 V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_instance_norm3d_with(lg_ctx *c, int64_t channels,
                                                    const lg_instance_norm_layer_options *options);

typedef struct lg_layer_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT;       /* added to the variance; default 1e-5; LG_ZERO for 0 */
        bool no_affine LG_DEFAULT;   /* without "weight" and "bias"; default false */
        bool no_bias LG_DEFAULT;     /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;   /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameters; default: the context's default device */
} lg_layer_norm_layer_options;
/* Makes a layer that applies lg_layer_norm() over the last dimensions of x, at least one, which must be those of shape.
 * The parameters have that shape.
 * Example: lg_nn_layer_norm(c, LG_SHAPE(128)) */
#define lg_nn_layer_norm(...)                                                                                          \
        LG_CALL2(lg_nn_layer_norm_with, lg_layer_norm_layer_options, lg_nn_layer_norm_takes_c_shape, V, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_layer_norm_with(lg_ctx *c, lg_shape shape, const lg_layer_norm_layer_options *options);

typedef struct lg_rms_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT;       /* added to the mean square; default: the epsilon of x's dtype; LG_ZERO for 0 */
        bool no_affine LG_DEFAULT;   /* without "weight"; default false */
        lg_dtype dtype LG_DEFAULT;   /* of the parameter; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameter; default: the context's default device */
} lg_rms_norm_layer_options;
/* Makes a layer that applies lg_rms_norm() over the last dimensions of x as lg_nn_layer_norm() does. There is no bias.
 * Example: lg_nn_rms_norm(c, LG_SHAPE(128), .eps = 1e-6) */
#define lg_nn_rms_norm(...)                                                                                            \
        LG_CALL2(lg_nn_rms_norm_with, lg_rms_norm_layer_options, lg_nn_rms_norm_takes_c_shape, V, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_rms_norm_with(lg_ctx *c, lg_shape shape, const lg_rms_norm_layer_options *options);

typedef struct lg_group_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT;       /* added to the variance; default 1e-5; LG_ZERO for 0 */
        bool no_affine LG_DEFAULT;   /* without "weight" and "bias"; default false */
        lg_dtype dtype LG_DEFAULT;   /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameters; default: the context's default device */
} lg_group_norm_layer_options;
/* Makes a layer that applies lg_group_norm() to x (N, channels, ...), with parameters (channels), a multiple of groups.
 * Example: lg_nn_group_norm(c, 8, 64) */
#define lg_nn_group_norm(...)                                                                                          \
        LG_CALL3(lg_nn_group_norm_with, lg_group_norm_layer_options, lg_nn_group_norm_takes_c_groups_channels, V, I,   \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_group_norm_with(lg_ctx *c, int64_t groups, int64_t channels,
                                               const lg_group_norm_layer_options *options);

/* Makes a layer that applies lg_local_response_norm().
 * Example: lg_nn_local_response_norm(c, 5) */
#define lg_nn_local_response_norm(...)                                                                                 \
        LG_CALL2(lg_nn_local_response_norm_with, lg_local_response_norm_options,                                       \
                 lg_nn_local_response_norm_takes_c_size, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_local_response_norm_with(lg_ctx *c, int64_t size,
                                                        const lg_local_response_norm_options *options);

/* ---- dropout, embedding, flatten ---- */

/* Makes a layer that in training mode sets each element to 0 with probability p and scales the others by 1 / (1 - p);
 * see lg_dropout(). In evaluation mode the result is x itself. */
LG_API LG_NEW lg_module *lg_nn_dropout(lg_ctx *c, double p);
/* Makes a layer that does so to whole channels of (N, C, ...); see lg_feature_dropout().
 * Examples: lg_nn_dropout2d(c, 0.2), lg_nn_dropout3d(c, 0.2) */
LG_API LG_NEW lg_module *lg_nn_dropout2d(lg_ctx *c, double p);
LG_API LG_NEW lg_module *lg_nn_dropout3d(lg_ctx *c, double p);
/* Makes a layer that in training mode applies lg_alpha_dropout() or lg_feature_alpha_dropout(), for networks of SELU.
 * Examples: lg_nn_alpha_dropout(c, 0.1), lg_nn_feature_alpha_dropout(c, 0.1) */
LG_API LG_NEW lg_module *lg_nn_alpha_dropout(lg_ctx *c, double p);
LG_API LG_NEW lg_module *lg_nn_feature_alpha_dropout(lg_ctx *c, double p);

typedef struct lg_embedding_layer_options {
        LG_OPTIONS_HEAD
        /* A row that is 0 at first and gets no gradient; negative: from the end; default: none; LG_ZERO_INT: row 0. */
        int64_t padding_idx LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;   /* of the parameter; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameter; default: the context's default device */
        /* The rows that a forward reads are first scaled down to this norm in place, as by lg_embedding(). */
        double max_norm LG_DEFAULT;
        double norm_type LG_DEFAULT; /* the order of that norm, above 0; default 2 */
} lg_embedding_layer_options;
/* Makes a layer that replaces each index of x (...), an i64 tensor, by a row of "weight" (count, dim): the result is
 * (..., dim). The weight has the standard normal distribution. Other indices fail as in lg_embedding().
 * Example: lg_nn_embedding(c, 10000, 64, .padding_idx = LG_ZERO_INT) */
#define lg_nn_embedding(...)                                                                                           \
        LG_CALL3(lg_nn_embedding_with, lg_embedding_layer_options, lg_nn_embedding_takes_c_count_dim, V, I, I,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_embedding_with(lg_ctx *c, int64_t count, int64_t dim,
                                              const lg_embedding_layer_options *options);

typedef struct lg_embedding_bag_layer_options {
        LG_OPTIONS_HEAD
        lg_bag_mode mode LG_DEFAULT; /* default LG_BAG_MEAN */
        /* An index that is left out and whose row is 0 at first, as in lg_nn_embedding(). */
        int64_t padding_idx LG_DEFAULT;
        bool include_last_offset LG_DEFAULT; /* offsets have one more, the number of indices; default false */
        lg_dtype dtype LG_DEFAULT;           /* of the parameter; default LG_F32 */
        lg_device device LG_DEFAULT;         /* of the parameter; default: the context's default device */
        double max_norm LG_DEFAULT;          /* limits the norm of rows in place, as for lg_nn_embedding() */
        double norm_type LG_DEFAULT;         /* the order of that norm, above 0; default 2 */
} lg_embedding_bag_layer_options;
/* Makes a layer with the parameter of lg_nn_embedding() that reduces the rows of bags as lg_embedding_bag() does:
 * lg_forward(m, index) of an index (bags, length), lg_forward(m, index, offsets) of an index (n). The last input may be
 * the weights of the indices, of a float dtype, for LG_BAG_SUM.
 * Example: lg_nn_embedding_bag(c, 10000, 64, .mode = LG_BAG_SUM) */
#define lg_nn_embedding_bag(...)                                                                                       \
        LG_CALL3(lg_nn_embedding_bag_with, lg_embedding_bag_layer_options, lg_nn_embedding_bag_takes_c_count_dim, V,   \
                 I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_embedding_bag_with(lg_ctx *c, int64_t count, int64_t dim,
                                                  const lg_embedding_bag_layer_options *options);

/* Makes a layer that joins all dimensions but the first, at least one, into one: (N, C, H, W) becomes (N, C H W). */
LG_API LG_NEW lg_module *lg_nn_flatten(lg_ctx *c);

/* Makes a layer that applies lg_unflatten(): it splits a dimension into dimensions of these sizes.
 * Example: lg_nn_unflatten(c, 1, LG_SHAPE(16, 7, 7)) */
LG_API LG_NEW lg_module *lg_nn_unflatten(lg_ctx *c, int dim, lg_shape sizes);

/* Makes a layer whose result is its input x itself. */
LG_API LG_NEW lg_module *lg_nn_identity(lg_ctx *c);

/* ---- activations ----
 *
 * Layers without parameters, except for lg_nn_prelu(), that apply the ops of the same names to x of any shape;
 * pointwise.h and ops.h describe these ops. PyTorch's defaults are slope 0.01, alpha 1 and lambda 0.5; the alpha of
 * lg_nn_celu() is not 0, and the lambda of lg_nn_softshrink() not negative.
 */

/* Makes a layer that computes, elementwise: */
LG_API LG_NEW lg_module *lg_nn_relu(lg_ctx *c);        /* max(x, 0) */
LG_API LG_NEW lg_module *lg_nn_relu6(lg_ctx *c);       /* min(max(x, 0), 6) */
LG_API LG_NEW lg_module *lg_nn_selu(lg_ctx *c);        /* 1.0507 (x > 0 ? x : 1.6733 (e^x - 1)) */
LG_API LG_NEW lg_module *lg_nn_gelu(lg_ctx *c);        /* x Phi(x), exact (erf) form */
LG_API LG_NEW lg_module *lg_nn_gelu_tanh(lg_ctx *c);   /* gelu by the tanh formula, PyTorch's approximate="tanh" */
LG_API LG_NEW lg_module *lg_nn_silu(lg_ctx *c);        /* x sigmoid(x) */
LG_API LG_NEW lg_module *lg_nn_mish(lg_ctx *c);        /* x tanh(log(1 + e^x)) */
LG_API LG_NEW lg_module *lg_nn_sigmoid(lg_ctx *c);     /* 1 / (1 + e^-x) */
LG_API LG_NEW lg_module *lg_nn_log_sigmoid(lg_ctx *c); /* log(sigmoid(x)) */
LG_API LG_NEW lg_module *lg_nn_tanh(lg_ctx *c);        /* hyperbolic tangent */
LG_API LG_NEW lg_module *lg_nn_tanhshrink(lg_ctx *c);  /* x - tanh(x) */
LG_API LG_NEW lg_module *lg_nn_softsign(lg_ctx *c);    /* x / (1 + |x|) */
LG_API LG_NEW lg_module *lg_nn_hardsigmoid(lg_ctx *c); /* relu6(x + 3) / 6 */
LG_API LG_NEW lg_module *lg_nn_hardswish(lg_ctx *c);   /* x relu6(x + 3) / 6 */
LG_API LG_NEW lg_module *lg_nn_leaky_relu(lg_ctx *c, double slope);  /* x > 0 ? x : slope x */
LG_API LG_NEW lg_module *lg_nn_elu(lg_ctx *c, double alpha);         /* x > 0 ? x : alpha (e^x - 1) */
LG_API LG_NEW lg_module *lg_nn_celu(lg_ctx *c, double alpha);        /* x > 0 ? x : alpha (e^(x / alpha) - 1) */
LG_API LG_NEW lg_module *lg_nn_hardshrink(lg_ctx *c, double lambda); /* |x| > lambda ? x : 0 */
LG_API LG_NEW lg_module *lg_nn_softshrink(lg_ctx *c, double lambda); /* x - clamp(x, -lambda, lambda) */

/* Makes a layer that computes min(max(x, low), high), with a low of at most high (PyTorch: -1 and 1). */
LG_API LG_NEW lg_module *lg_nn_hardtanh(lg_ctx *c, double low, double high);

/* Makes a layer that computes log(1 + e^(beta x)) / beta, and x itself where beta x > threshold (PyTorch: 1 and 20). */
LG_API LG_NEW lg_module *lg_nn_softplus(lg_ctx *c, double beta, double threshold);

/* Makes a layer that computes x > threshold ? x : value.
 * Example: lg_nn_threshold(c, 0.1, 20) */
LG_API LG_NEW lg_module *lg_nn_threshold(lg_ctx *c, double threshold, double value);

/* Makes a layer that computes lg_rrelu(): x > 0 ? x : s x, with random slopes s from lower to upper in training and
 * their mean in evaluation (PyTorch: 1/8 and 1/3).
 * Example: lg_nn_rrelu(c, 1.0 / 8, 1.0 / 3) */
LG_API LG_NEW lg_module *lg_nn_rrelu(lg_ctx *c, double lower, double upper);

/* Makes a layer that computes lg_softmax() over the channels of images (N, C, H, W) or (C, H, W).
 * Example: lg_nn_softmax2d(c) */
LG_API LG_NEW lg_module *lg_nn_softmax2d(lg_ctx *c);

/* Make layers that compute, along a dimension, what the comments behind them say.
 * Example: lg_nn_softmin(c, 1) */
LG_API LG_NEW lg_module *lg_nn_softmax(lg_ctx *c, int dim);     /* lg_softmax(): e^x / sum(e^x) */
LG_API LG_NEW lg_module *lg_nn_softmin(lg_ctx *c, int dim);     /* lg_softmin(): e^-x / sum(e^-x) */
LG_API LG_NEW lg_module *lg_nn_log_softmax(lg_ctx *c, int dim); /* lg_log_softmax(): its logarithm */

/* Makes a layer that applies lg_glu(): the first half of x along a dimension of even size times sigmoid of the second.
 * Example: lg_nn_sequential(c, lg_nn_linear(c, 64, 2 * 32), lg_nn_glu(c, -1)) */
LG_API LG_NEW lg_module *lg_nn_glu(lg_ctx *c, int dim);

typedef struct lg_prelu_layer_options {
        LG_OPTIONS_HEAD
        lg_dtype dtype LG_DEFAULT;   /* of the parameter; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameter; default: the context's default device */
} lg_prelu_layer_options;
/* Makes a layer that computes x where x > 0, else w x, with a trainable w: the parameter "weight" (channels) is 0.25 at
 * first and has one element for each channel of x (N, channels, ...), or one for all with channels = 1.
 * Example: lg_nn_prelu(c, 64) */
#define lg_nn_prelu(...)                                                                                               \
        LG_CALL2(lg_nn_prelu_with, lg_prelu_layer_options, lg_nn_prelu_takes_c_channels, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_prelu_with(lg_ctx *c, int64_t channels, const lg_prelu_layer_options *options);

LG_END_C
#endif
