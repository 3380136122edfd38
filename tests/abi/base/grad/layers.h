/* layers.h - the modules that come with libgrad. */
#ifndef LG_LAYERS_H
#define LG_LAYERS_H

#include "grad/conv.h"
#include "grad/nn.h"

LG_BEGIN

/* x W^T + b. W (out, in) and b (out) are uniform in +-1/sqrt(in), as in PyTorch. lg_nn_linear(c, 784, 10, .no_bias =
 * true) */
typedef struct lg_linear_options {
        LG_OPTIONS_HEAD
        bool no_bias LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_linear_options;
#define lg_nn_linear(...) LG_CALL3(lg_nn_linear_with, lg_linear_options, lg_nn_linear_takes_c_in_out, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_linear_with(lg_ctx *c, int64_t in, int64_t out, const lg_linear_options *options);
/* One after the other; children are named "0", "1", ... A child that is NULL or has a parent is an error. */
#define lg_nn_sequential(...) lg_nn_sequential_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_module, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_module *lg_nn_sequential_list(lg_ctx *c, lg_module *const *children);

/* Appends a child to a Sequential or ModuleList, under the next number; returns the child. */
LG_API lg_module *lg_module_append(lg_module *m, lg_module *child);
/* Children by number that an own module runs as it likes: lg_child(list, i). It has no forward. May be empty:
 * lg_nn_module_list(c) */
#define lg_nn_module_list(...) lg_nn_module_list_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_module, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_module *lg_nn_module_list_list(lg_ctx *c, lg_module *const *children);
/* block(x) + shortcut(x), children "block" and "shortcut"; without a shortcut: block(x) + x.
 * lg_nn_residual(c, block), lg_nn_residual(c, block, .shortcut = lg_nn_conv2d(c, 64, 128, 1)) */
typedef struct lg_residual_options {
        LG_OPTIONS_HEAD
        lg_module *shortcut LG_DEFAULT;
} lg_residual_options;
#define lg_nn_residual(...)                                                                                            \
        LG_CALL2(lg_nn_residual_with, lg_residual_options, lg_nn_residual_takes_c_block, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_residual_with(lg_ctx *c, lg_module *block, const lg_residual_options *options);

/* Convolutions: lg_conv2d, lg_conv1d and lg_conv_transpose2d with a weight and a bias, uniform in +-1/sqrt(fan_in) as
 * in PyTorch. One number says both sides, a pair {height, width} wins where it is given (1-d: one number).
 * lg_nn_conv2d(c, 1, 32, 3, .padding = 1), lg_nn_conv2d(c, 3, 8, 0, .kernels = LG_PAIR(3, 5)) */
typedef struct lg_conv_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT; /* 1 */
        int64_t padding LG_DEFAULT;
        int64_t dilation LG_DEFAULT;       /* 1 */
        int64_t groups LG_DEFAULT;         /* 1 */
        int64_t output_padding LG_DEFAULT; /* conv_transpose2d */
        bool no_bias LG_DEFAULT;
        lg_pair kernels LG_DEFAULT;
        lg_pair strides LG_DEFAULT;
        lg_pair paddings LG_DEFAULT;
        lg_pair dilations LG_DEFAULT;
        lg_pair output_paddings LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_conv_layer_options;
#define lg_nn_conv2d(...)                                                                                              \
        LG_CALL4(lg_nn_conv2d_with, lg_conv_layer_options, lg_nn_conv2d_takes_c_in_out_kernel, __VA_ARGS__)
#define lg_nn_conv1d(...)                                                                                              \
        LG_CALL4(lg_nn_conv1d_with, lg_conv_layer_options, lg_nn_conv1d_takes_c_in_out_kernel, __VA_ARGS__)
#define lg_nn_conv_transpose2d(...)                                                                                    \
        LG_CALL4(lg_nn_conv_transpose2d_with, lg_conv_layer_options, lg_nn_conv_transpose2d_takes_c_in_out_kernel,     \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_conv2d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                           const lg_conv_layer_options *options);
LG_API LG_NEW lg_module *lg_nn_conv1d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                           const lg_conv_layer_options *options);
LG_API LG_NEW lg_module *lg_nn_conv_transpose2d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                                     const lg_conv_layer_options *options);

/* Pooling: the ops of the same names. */
#define lg_nn_max_pool2d(...)                                                                                          \
        LG_CALL2(lg_nn_max_pool2d_with, lg_pool_options, lg_nn_max_pool2d_takes_c_kernel, __VA_ARGS__)
#define lg_nn_avg_pool2d(...)                                                                                          \
        LG_CALL2(lg_nn_avg_pool2d_with, lg_pool_options, lg_nn_avg_pool2d_takes_c_kernel, __VA_ARGS__)
#define lg_nn_adaptive_avg_pool2d(...)                                                                                 \
        LG_CALL2(lg_nn_adaptive_avg_pool2d_with, lg_adaptive_pool_options, lg_nn_adaptive_avg_pool2d_takes_c_size,     \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_max_pool2d_with(lg_ctx *c, int64_t kernel, const lg_pool_options *options);
LG_API LG_NEW lg_module *lg_nn_avg_pool2d_with(lg_ctx *c, int64_t kernel, const lg_pool_options *options);
LG_API LG_NEW lg_module *lg_nn_adaptive_avg_pool2d_with(lg_ctx *c, int64_t size,
                                                        const lg_adaptive_pool_options *options);

/* Normalisation of each channel over the batch: x (N, C) or (N, C, L), and (N, C, H, W). Parameters "weight" (1) and
 * "bias" (0), buffers "running_mean" (0) and "running_var" (1), which training moves and evaluation uses. */
typedef struct lg_batch_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT;      /* 1e-5 */
        double momentum LG_DEFAULT; /* 0.1 */
        bool no_affine LG_DEFAULT;  /* without weight and bias */
        bool no_running LG_DEFAULT; /* statistics of the batch, in evaluation too */
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_batch_norm_layer_options;
#define lg_nn_batch_norm1d(...)                                                                                        \
        LG_CALL2(lg_nn_batch_norm1d_with, lg_batch_norm_layer_options, lg_nn_batch_norm1d_takes_c_channels, __VA_ARGS__)
#define lg_nn_batch_norm2d(...)                                                                                        \
        LG_CALL2(lg_nn_batch_norm2d_with, lg_batch_norm_layer_options, lg_nn_batch_norm2d_takes_c_channels, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_batch_norm1d_with(lg_ctx *c, int64_t channels,
                                                 const lg_batch_norm_layer_options *options);
LG_API LG_NEW lg_module *lg_nn_batch_norm2d_with(lg_ctx *c, int64_t channels,
                                                 const lg_batch_norm_layer_options *options);

/* Normalisation within a sample: over the last dimensions, of that shape (layer, rms), or over groups of channels. */
typedef struct lg_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT;     /* 1e-5; rms_norm: the smallest step of the input's dtype */
        bool no_affine LG_DEFAULT; /* without weight and bias */
        bool no_bias LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_norm_layer_options;
#define lg_nn_layer_norm(...)                                                                                          \
        LG_CALL2(lg_nn_layer_norm_with, lg_norm_layer_options, lg_nn_layer_norm_takes_c_shape, __VA_ARGS__)
#define lg_nn_rms_norm(...)                                                                                            \
        LG_CALL2(lg_nn_rms_norm_with, lg_norm_layer_options, lg_nn_rms_norm_takes_c_shape, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_layer_norm_with(lg_ctx *c, lg_shape shape, const lg_norm_layer_options *options);
LG_API LG_NEW lg_module *lg_nn_rms_norm_with(lg_ctx *c, lg_shape shape, const lg_norm_layer_options *options);
typedef struct lg_group_norm_layer_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT; /* 1e-5 */
        bool no_affine LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_group_norm_layer_options;
/* lg_nn_group_norm(c, groups, channels) */
#define lg_nn_group_norm(...)                                                                                          \
        LG_CALL3(lg_nn_group_norm_with, lg_group_norm_layer_options, lg_nn_group_norm_takes_c_groups_channels,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_group_norm_with(lg_ctx *c, int64_t groups, int64_t channels,
                                               const lg_group_norm_layer_options *options);

/* In training, zeroes elements with probability p and scales the others by 1/(1 - p). */
LG_API LG_NEW lg_module *lg_nn_dropout(lg_ctx *c, double p);

/* Rows of a weight (count, dim), standard normal, for i64 indices of any shape. */
typedef struct lg_embedding_layer_options {
        LG_OPTIONS_HEAD
        int64_t padding_idx LG_DEFAULT; /* that row is zero and gets no gradient; row 0: LG_ZERO_INT */
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_embedding_layer_options;
#define lg_nn_embedding(...)                                                                                           \
        LG_CALL3(lg_nn_embedding_with, lg_embedding_layer_options, lg_nn_embedding_takes_c_count_dim, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_embedding_with(lg_ctx *c, int64_t count, int64_t dim,
                                              const lg_embedding_layer_options *options);

/* All dimensions but the first as one; x itself. */
LG_API LG_NEW lg_module *lg_nn_flatten(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_identity(lg_ctx *c);

/* Activations: the ops of the same names; PyTorch's defaults are told there. */
LG_API LG_NEW lg_module *lg_nn_relu(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_relu6(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_selu(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_gelu(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_gelu_tanh(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_silu(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_mish(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_sigmoid(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_log_sigmoid(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_tanh(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_tanhshrink(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_softsign(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_hardsigmoid(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_hardswish(lg_ctx *c);
LG_API LG_NEW lg_module *lg_nn_leaky_relu(lg_ctx *c, double slope);
LG_API LG_NEW lg_module *lg_nn_elu(lg_ctx *c, double alpha);
LG_API LG_NEW lg_module *lg_nn_celu(lg_ctx *c, double alpha);
LG_API LG_NEW lg_module *lg_nn_hardshrink(lg_ctx *c, double lambda);
LG_API LG_NEW lg_module *lg_nn_softshrink(lg_ctx *c, double lambda);
LG_API LG_NEW lg_module *lg_nn_hardtanh(lg_ctx *c, double low, double high);
LG_API LG_NEW lg_module *lg_nn_softplus(lg_ctx *c, double beta, double threshold);
LG_API LG_NEW lg_module *lg_nn_softmax(lg_ctx *c, int dim);
LG_API LG_NEW lg_module *lg_nn_log_softmax(lg_ctx *c, int dim);
/* x where x > 0, else w x, with a parameter w (0.25) for each channel, or one for all. */
typedef struct lg_prelu_layer_options {
        LG_OPTIONS_HEAD
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_prelu_layer_options;
/* lg_nn_prelu(c, 64), lg_nn_prelu(c, 1, .dtype = LG_F16) */
#define lg_nn_prelu(...) LG_CALL2(lg_nn_prelu_with, lg_prelu_layer_options, lg_nn_prelu_takes_c_channels, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_prelu_with(lg_ctx *c, int64_t channels, const lg_prelu_layer_options *options);

LG_END_C
#endif
