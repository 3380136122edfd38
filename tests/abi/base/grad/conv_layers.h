/* conv_layers.h - layers of convolution, pooling and padding.
 *
 * layers.h says what holds for all layers. Running a layer fails with the codes of the op that it applies; all numbers
 * of pooling and padding layers are checked when the layer runs, those of convolutions when it is made.
 */
#ifndef LG_CONV_LAYERS_H
#define LG_CONV_LAYERS_H

#include "grad/conv.h"
#include "grad/index.h"
#include "grad/nn.h"

LG_BEGIN

/* ---- convolution ----
 *
 * Layers over the ops of conv.h, where the shapes, formulas and ranges of options are. in and out are numbers of
 * channels; kernel is the size of the kernel on both sides. The parameters "weight" and "bias" (out) are uniform in
 * [-1/sqrt(fan_in), 1/sqrt(fan_in)), where fan_in is in / groups times the sides of the kernel; for transposed
 * convolutions, out / groups takes the place of in / groups.
 */

typedef struct lg_conv2d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;           /* step of the kernel over the input; default 1 */
        int64_t padding LG_DEFAULT;          /* zeros added on each side of the input; default 0 */
        int64_t dilation LG_DEFAULT;         /* spacing of kernel elements; default 1 */
        int64_t groups LG_DEFAULT;           /* groups of channels, convolved separately; default 1 */
        lg_pair kernels LG_DEFAULT;          /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;          /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;         /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT;        /* replaces .dilation; default: not given */
        bool no_bias LG_DEFAULT;             /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;           /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;         /* of the parameters; default: the context's default device */
        lg_pad_mode padding_mode LG_DEFAULT; /* what .padding adds; default LG_PAD_CONSTANT, zeros */
} lg_conv2d_layer_options;
/* Makes a layer that applies lg_conv2d() to x (N, in, H, W) or (in, H, W), with "weight" (out, in / groups, KH, KW).
 * Examples: lg_nn_conv2d(c, 1, 32, 3, .padding = 1), lg_nn_conv2d(c, 3, 8, 0, .kernels = LG_PAIR(3, 5)) */
#define lg_nn_conv2d(...)                                                                                              \
        LG_CALL4(lg_nn_conv2d_with, lg_conv2d_layer_options, lg_nn_conv2d_takes_c_in_out_kernel, V, I, I, I,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_conv2d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                           const lg_conv2d_layer_options *options);

typedef struct lg_conv1d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;           /* step of the kernel over the input; default 1 */
        int64_t padding LG_DEFAULT;          /* zeros added on each side of the input; default 0 */
        int64_t dilation LG_DEFAULT;         /* spacing of kernel elements; default 1 */
        int64_t groups LG_DEFAULT;           /* groups of channels, convolved separately; default 1 */
        bool no_bias LG_DEFAULT;             /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;           /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;         /* of the parameters; default: the context's default device */
        lg_pad_mode padding_mode LG_DEFAULT; /* what .padding adds; default LG_PAD_CONSTANT, zeros */
} lg_conv1d_layer_options;
/* Makes a layer that applies lg_conv1d() to x (N, in, L) or (in, L), with "weight" (out, in / groups, kernel).
 * Example: lg_nn_conv1d(c, 16, 32, 5, .stride = 2) */
#define lg_nn_conv1d(...)                                                                                              \
        LG_CALL4(lg_nn_conv1d_with, lg_conv1d_layer_options, lg_nn_conv1d_takes_c_in_out_kernel, V, I, I, I,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_conv1d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                           const lg_conv1d_layer_options *options);

typedef struct lg_conv3d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;           /* step of the kernel over the input; default 1 */
        int64_t padding LG_DEFAULT;          /* zeros added on each side of the input; default 0 */
        int64_t dilation LG_DEFAULT;         /* spacing of kernel elements; default 1 */
        int64_t groups LG_DEFAULT;           /* groups of channels, convolved separately; default 1 */
        lg_triple kernels LG_DEFAULT;        /* replaces the argument kernel, which may then be 0; default: not given */
        lg_triple strides LG_DEFAULT;        /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT;       /* replaces .padding; default: not given */
        lg_triple dilations LG_DEFAULT;      /* replaces .dilation; default: not given */
        bool no_bias LG_DEFAULT;             /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;           /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;         /* of the parameters; default: the context's default device */
        lg_pad_mode padding_mode LG_DEFAULT; /* what .padding adds; default LG_PAD_CONSTANT, zeros */
} lg_conv3d_layer_options;
/* Makes a layer that applies lg_conv3d() to x (N, in, D, H, W) or (in, D, H, W), with "weight" (out, in / groups, KD,
 * KH, KW).
 * Example: lg_nn_conv3d(c, 1, 32, 3, .padding = 1) */
#define lg_nn_conv3d(...)                                                                                              \
        LG_CALL4(lg_nn_conv3d_with, lg_conv3d_layer_options, lg_nn_conv3d_takes_c_in_out_kernel, V, I, I, I,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_conv3d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                           const lg_conv3d_layer_options *options);

typedef struct lg_conv_transpose2d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;          /* step of the kernel over the input; default 1 */
        int64_t padding LG_DEFAULT;         /* zeros added on each side of the input; default 0 */
        int64_t dilation LG_DEFAULT;        /* spacing of kernel elements; default 1 */
        int64_t groups LG_DEFAULT;          /* groups of channels, convolved separately; default 1 */
        int64_t output_padding LG_DEFAULT;  /* size added to one side of the output; default 0 */
        lg_pair kernels LG_DEFAULT;         /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;         /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;        /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT;       /* replaces .dilation; default: not given */
        lg_pair output_paddings LG_DEFAULT; /* replaces .output_padding; default: not given */
        bool no_bias LG_DEFAULT;            /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;          /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;        /* of the parameters; default: the context's default device */
} lg_conv_transpose2d_layer_options;
/* Makes a layer that applies lg_conv_transpose2d() to such an x, with "weight" (in, out / groups, KH, KW).
 * Example: lg_nn_conv_transpose2d(c, 32, 16, 2, .stride = 2) */
#define lg_nn_conv_transpose2d(...)                                                                                    \
        LG_CALL4(lg_nn_conv_transpose2d_with, lg_conv_transpose2d_layer_options,                                       \
                 lg_nn_conv_transpose2d_takes_c_in_out_kernel, V, I, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_conv_transpose2d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                                     const lg_conv_transpose2d_layer_options *options);

typedef struct lg_conv_transpose1d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;         /* step of the kernel over the input; default 1 */
        int64_t padding LG_DEFAULT;        /* zeros added on each side of the input; default 0 */
        int64_t dilation LG_DEFAULT;       /* spacing of kernel elements; default 1 */
        int64_t groups LG_DEFAULT;         /* groups of channels, convolved separately; default 1 */
        int64_t output_padding LG_DEFAULT; /* size added to one side of the output; default 0 */
        bool no_bias LG_DEFAULT;           /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;         /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;       /* of the parameters; default: the context's default device */
} lg_conv_transpose1d_layer_options;
typedef struct lg_conv_transpose3d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;         /* step of the kernel over the input; default 1 */
        int64_t padding LG_DEFAULT;        /* zeros added on each side of the input; default 0 */
        int64_t dilation LG_DEFAULT;       /* spacing of kernel elements; default 1 */
        int64_t groups LG_DEFAULT;         /* groups of channels, convolved separately; default 1 */
        int64_t output_padding LG_DEFAULT; /* size added to one side of the output; default 0 */
        lg_triple kernels LG_DEFAULT;      /* replaces the argument kernel, which may then be 0; default: not given */
        lg_triple strides LG_DEFAULT;      /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT;     /* replaces .padding; default: not given */
        lg_triple dilations LG_DEFAULT;    /* replaces .dilation; default: not given */
        lg_triple output_paddings LG_DEFAULT; /* replaces .output_padding; default: not given */
        bool no_bias LG_DEFAULT;              /* without "bias"; default false */
        lg_dtype dtype LG_DEFAULT;            /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;          /* of the parameters; default: the context's default device */
} lg_conv_transpose3d_layer_options;
/* Make layers that apply lg_conv_transpose1d() and lg_conv_transpose3d() to such an x, with "weight" (in, out / groups,
 * kernel) and (in, out / groups, KD, KH, KW).
 * Examples: lg_nn_conv_transpose1d(c, 32, 16, 4, .stride = 2, .padding = 1),
 * lg_nn_conv_transpose3d(c, 32, 16, 2, .stride = 2) */
#define lg_nn_conv_transpose1d(...)                                                                                    \
        LG_CALL4(lg_nn_conv_transpose1d_with, lg_conv_transpose1d_layer_options,                                       \
                 lg_nn_conv_transpose1d_takes_c_in_out_kernel, V, I, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_conv_transpose1d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                                     const lg_conv_transpose1d_layer_options *options);
#define lg_nn_conv_transpose3d(...)                                                                                    \
        LG_CALL4(lg_nn_conv_transpose3d_with, lg_conv_transpose3d_layer_options,                                       \
                 lg_nn_conv_transpose3d_takes_c_in_out_kernel, V, I, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_conv_transpose3d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                                     const lg_conv_transpose3d_layer_options *options);

/* ---- pooling ----
 *
 * Layers without parameters that apply the ops of the same names, which conv.h describes, to x (N, C, H, W) or
 * (C, H, W), with the options of the ops but .indices.
 */

typedef struct lg_max_pool2d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;    /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;   /* added on each side, at most half the kernel; default 0 */
        int64_t dilation LG_DEFAULT;  /* spacing of the elements of a window; default 1 */
        bool ceil_mode LG_DEFAULT;    /* keep a last window that is not full; default false */
        lg_pair kernels LG_DEFAULT;   /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT; /* replaces .dilation; default: not given */
} lg_max_pool2d_layer_options;
typedef struct lg_max_pool1d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;   /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;  /* added on each side, at most half the kernel; default 0 */
        int64_t dilation LG_DEFAULT; /* spacing of the elements of a window; default 1 */
        bool ceil_mode LG_DEFAULT;   /* keep a last window that is not full; default false */
} lg_max_pool1d_layer_options;
typedef struct lg_max_pool3d_layer_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;      /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;     /* added on each side, at most half the kernel; default 0 */
        int64_t dilation LG_DEFAULT;    /* spacing of the elements of a window; default 1 */
        bool ceil_mode LG_DEFAULT;      /* keep a last window that is not full; default false */
        lg_triple kernels LG_DEFAULT;   /* replaces the argument kernel, which may then be 0; default: not given */
        lg_triple strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_triple dilations LG_DEFAULT; /* replaces .dilation; default: not given */
} lg_max_pool3d_layer_options;
/* Makes a layer that applies the op of the same name: the maximum or mean of windows of the given size.
 * Examples: lg_nn_max_pool2d(c, 3, .stride = 2, .padding = 1), lg_nn_max_pool1d(c, 2), lg_nn_avg_pool1d(c, 2),
 * lg_nn_avg_pool2d(c, 2), lg_nn_avg_pool3d(c, 2),
 * lg_nn_max_pool3d(c, 0, .kernels = LG_TRIPLE(1, 2, 2)) */
#define lg_nn_max_pool1d(...)                                                                                          \
        LG_CALL2(lg_nn_max_pool1d_with, lg_max_pool1d_layer_options, lg_nn_max_pool1d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_max_pool1d_with(lg_ctx *c, int64_t kernel, const lg_max_pool1d_layer_options *options);
#define lg_nn_max_pool2d(...)                                                                                          \
        LG_CALL2(lg_nn_max_pool2d_with, lg_max_pool2d_layer_options, lg_nn_max_pool2d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_max_pool2d_with(lg_ctx *c, int64_t kernel, const lg_max_pool2d_layer_options *options);
#define lg_nn_max_pool3d(...)                                                                                          \
        LG_CALL2(lg_nn_max_pool3d_with, lg_max_pool3d_layer_options, lg_nn_max_pool3d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_max_pool3d_with(lg_ctx *c, int64_t kernel, const lg_max_pool3d_layer_options *options);
#define lg_nn_avg_pool1d(...)                                                                                          \
        LG_CALL2(lg_nn_avg_pool1d_with, lg_avg_pool1d_options, lg_nn_avg_pool1d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_avg_pool1d_with(lg_ctx *c, int64_t kernel, const lg_avg_pool1d_options *options);
#define lg_nn_avg_pool2d(...)                                                                                          \
        LG_CALL2(lg_nn_avg_pool2d_with, lg_avg_pool2d_options, lg_nn_avg_pool2d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_avg_pool2d_with(lg_ctx *c, int64_t kernel, const lg_avg_pool2d_options *options);
#define lg_nn_avg_pool3d(...)                                                                                          \
        LG_CALL2(lg_nn_avg_pool3d_with, lg_avg_pool3d_options, lg_nn_avg_pool3d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_avg_pool3d_with(lg_ctx *c, int64_t kernel, const lg_avg_pool3d_options *options);

/* Makes a layer that applies the op of the same name: the mean or maximum of windows that give an output with all sides
 * of the given size. The options are those of the mean, for the maximum, too.
 * Examples: lg_nn_adaptive_avg_pool2d(c, 1), lg_nn_adaptive_max_pool2d(c, 0, .sizes = LG_PAIR(2, 3)),
 * lg_nn_adaptive_avg_pool3d(c, 1), lg_nn_adaptive_max_pool3d(c, 2), lg_nn_adaptive_avg_pool1d(c, 4),
 * lg_nn_adaptive_max_pool1d(c, 4) */
#define lg_nn_adaptive_avg_pool2d(...)                                                                                 \
        LG_CALL2(lg_nn_adaptive_avg_pool2d_with, lg_adaptive_avg_pool2d_options,                                       \
                 lg_nn_adaptive_avg_pool2d_takes_c_size, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_adaptive_avg_pool2d_with(lg_ctx *c, int64_t size,
                                                        const lg_adaptive_avg_pool2d_options *options);
#define lg_nn_adaptive_avg_pool3d(...)                                                                                 \
        LG_CALL2(lg_nn_adaptive_avg_pool3d_with, lg_adaptive_avg_pool3d_options,                                       \
                 lg_nn_adaptive_avg_pool3d_takes_c_size, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_adaptive_avg_pool3d_with(lg_ctx *c, int64_t size,
                                                        const lg_adaptive_avg_pool3d_options *options);
#define lg_nn_adaptive_max_pool2d(...)                                                                                 \
        LG_CALL2(lg_nn_adaptive_max_pool2d_with, lg_adaptive_avg_pool2d_options,                                       \
                 lg_nn_adaptive_max_pool2d_takes_c_size, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_adaptive_max_pool2d_with(lg_ctx *c, int64_t size,
                                                        const lg_adaptive_avg_pool2d_options *options);
#define lg_nn_adaptive_max_pool3d(...)                                                                                 \
        LG_CALL2(lg_nn_adaptive_max_pool3d_with, lg_adaptive_avg_pool3d_options,                                       \
                 lg_nn_adaptive_max_pool3d_takes_c_size, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_adaptive_max_pool3d_with(lg_ctx *c, int64_t size,
                                                        const lg_adaptive_avg_pool3d_options *options);
LG_API LG_NEW lg_module *lg_nn_adaptive_avg_pool1d(lg_ctx *c, int64_t size);
LG_API LG_NEW lg_module *lg_nn_adaptive_max_pool1d(lg_ctx *c, int64_t size);

/* ---- padding ---- */

/* Makes a layer that applies lg_pad() to x. It stands for PyTorch's ZeroPad1d, ConstantPad1d, ReflectionPad1d,
 * ReplicationPad1d and CircularPad1d, for their forms of 2 and 3 dimensions, and takes their pads: a pair of numbers
 * for each dimension from the last to the first, at most LG_MAX_DIMS pairs.
 * Examples: lg_nn_pad(c, LG_INTS(1, 1)),
 * lg_nn_pad(c, LG_INTS(1, 1, 2, 2), .mode = LG_PAD_REFLECT) */
#define lg_nn_pad(...) LG_CALL2(lg_nn_pad_with, lg_pad_options, lg_nn_pad_takes_c_pads, V, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_pad_with(lg_ctx *c, lg_ints_in pads, const lg_pad_options *options);

LG_END_C
#endif
