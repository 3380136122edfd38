/* conv.h - convolution and pooling over volumes (N, C, D, H, W), images (N, C, H, W) and signals (N, C, L).
 *
 * The ops have PyTorch's names, shapes and options. N is the size of the batch, C the number of channels; a single
 * volume (C, D, H, W), image (C, H, W) or signal (C, L) is accepted as well and gives a result without the batch
 * dimension. The layers of conv_layers.h, such as lg_nn_conv2d(), apply these ops with weights of their own. Tensors
 * are of float dtypes.
 *
 * With a kernel of size K, stride s, padding p and dilation d, a convolution or pooling gives a result with the sides
 *
 *   floor((side + 2 p - d (K - 1) - 1) / s) + 1
 *
 * where side is that of x. A kernel is not larger than the padded input, and a side or the pixels of an image are at
 * most 2^31 - 1 (else LG_ERR_SHAPE). Kernels, strides, dilations and groups are at least 1, paddings and divisors at
 * least 0, and all at most 2^31 - 1. In options, a number applies to all sides of an image or volume; where sides
 * differ, give LG_PAIR(height, width) or LG_TRIPLE(depth, height, width), which replaces the number.
 *
 * Results for images and volumes have channels last, which convolutions read without a copy; lg_contiguous() makes them
 * row-major.
 */
#ifndef LG_CONV_H
#define LG_CONV_H

#include "grad/base.h"

LG_BEGIN

/* ---- convolution ----
 *
 * The dtypes are promoted. O is the number of output channels; the channels of x and of the result form groups, each
 * group of outputs sees one group of inputs, and groups divide the first dimension of w. b (O) is added unless NULL.
 */

typedef struct lg_conv2d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;    /* step of the kernel over the input, at least 1; default 1 */
        int64_t padding LG_DEFAULT;   /* zeros added on each side of the input, at least 0; default 0 */
        int64_t dilation LG_DEFAULT;  /* spacing of kernel elements, at least 1; default 1 */
        int64_t groups LG_DEFAULT;    /* number of groups, at least 1; default 1 */
        lg_pair strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT; /* replaces .dilation; default: not given */
} lg_conv2d_options;
/* Computes a 2-d convolution (PyTorch's conv2d):
 *
 *   y[n, o, i, j] = b[o] + sum over c, k, l of x[n, c, i s - p + k d, j s - p + l d] w[o, c, k, l]
 *
 * over the channels c of o's group and k, l of the kernel; x is (N, C, H, W) or (C, H, W), w (O, C / groups, KH, KW).
 * Example: lg_conv2d(x, w, NULL, .stride = 2, .paddings = LG_PAIR(0, 1)) */
#define lg_conv2d(...) LG_CALL3(lg_conv2d_with, lg_conv2d_options, lg_conv2d_takes_x_w_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv2d_options *options);

typedef struct lg_conv1d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;   /* step of the kernel over the input, at least 1; default 1 */
        int64_t padding LG_DEFAULT;  /* zeros added on each side of the input, at least 0; default 0 */
        int64_t dilation LG_DEFAULT; /* spacing of kernel elements, at least 1; default 1 */
        int64_t groups LG_DEFAULT;   /* number of groups, at least 1; default 1 */
} lg_conv1d_options;
/* Computes a 1-d convolution, of signals x (N, C, L) or (C, L) and w (O, C / groups, K).
 * On the CPU a long kernel, such as of 1,000 taps, is applied by Fourier transforms, in f32 and f64 with stride and
 * dilation 1 and one group, if that is faster.
 * Example: lg_conv1d(x, w, b, .padding = 1) */
#define lg_conv1d(...) LG_CALL3(lg_conv1d_with, lg_conv1d_options, lg_conv1d_takes_x_w_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv1d_options *options);

typedef struct lg_conv3d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;      /* step of the kernel over the input, at least 1; default 1 */
        int64_t padding LG_DEFAULT;     /* zeros added on each side of the input, at least 0; default 0 */
        int64_t dilation LG_DEFAULT;    /* spacing of kernel elements, at least 1; default 1 */
        int64_t groups LG_DEFAULT;      /* number of groups, at least 1; default 1 */
        lg_triple strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_triple dilations LG_DEFAULT; /* replaces .dilation; default: not given */
} lg_conv3d_options;
/* Computes a 3-d convolution, of volumes x (N, C, D, H, W) or (C, D, H, W) and w (O, C / groups, KD, KH, KW). While it
 * runs it holds a copy of a part of x for each of the KD elements, in the derivative by w of all of x.
 * Example: lg_conv3d(x, w, b, .padding = 1, .strides = LG_TRIPLE(1, 2, 2)) */
#define lg_conv3d(...) LG_CALL3(lg_conv3d_with, lg_conv3d_options, lg_conv3d_takes_x_w_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv3d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv3d_options *options);

typedef struct lg_conv_transpose2d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;          /* step of the kernel over the input, at least 1; default 1 */
        int64_t padding LG_DEFAULT;         /* zeros added on each side of the input, at least 0; default 0 */
        int64_t dilation LG_DEFAULT;        /* spacing of kernel elements, at least 1; default 1 */
        int64_t groups LG_DEFAULT;          /* number of groups, at least 1; default 1 */
        int64_t output_padding LG_DEFAULT;  /* added to the size of the output; default 0 */
        lg_pair strides LG_DEFAULT;         /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;        /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT;       /* replaces .dilation; default: not given */
        lg_pair output_paddings LG_DEFAULT; /* replaces .output_padding; default: not given */
} lg_conv_transpose2d_options;
/* Computes a transposed 2-d convolution (PyTorch's conv_transpose2d): the backward of lg_conv2d() with respect to its
 * input, applied to x, plus b. x is (N, C, H, W) or (C, H, W), w (C, O / groups, KH, KW). The sides of the result,
 * which must be above 0, are
 *
 *   (side - 1) s - 2 p + d (K - 1) + output_padding + 1
 *
 * .output_padding is less than the stride or the dilation. With b, 16-bit floats compute in f32 and are rounded once.
 * Example: lg_conv_transpose2d(x, w, b, .stride = 2, .output_padding = 1) */
#define lg_conv_transpose2d(...)                                                                                       \
        LG_CALL3(lg_conv_transpose2d_with, lg_conv_transpose2d_options, lg_conv_transpose2d_takes_x_w_b, V, V, V,      \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv_transpose2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                                  const lg_conv_transpose2d_options *options);

typedef struct lg_conv_transpose1d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;         /* step of the kernel over the input, at least 1; default 1 */
        int64_t padding LG_DEFAULT;        /* zeros added on each side of the input, at least 0; default 0 */
        int64_t dilation LG_DEFAULT;       /* spacing of kernel elements, at least 1; default 1 */
        int64_t groups LG_DEFAULT;         /* number of groups, at least 1; default 1 */
        int64_t output_padding LG_DEFAULT; /* added to the size of the output; default 0 */
} lg_conv_transpose1d_options;
/* Computes a transposed 1-d convolution, of signals x (N, C, L) or (C, L) and w (C, O / groups, K).
 * Example: lg_conv_transpose1d(x, w, NULL, .stride = 2) */
#define lg_conv_transpose1d(...)                                                                                       \
        LG_CALL3(lg_conv_transpose1d_with, lg_conv_transpose1d_options, lg_conv_transpose1d_takes_x_w_b, V, V, V,      \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv_transpose1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                                  const lg_conv_transpose1d_options *options);

typedef struct lg_conv_transpose3d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;            /* step of the kernel over the input, at least 1; default 1 */
        int64_t padding LG_DEFAULT;           /* zeros added on each side of the input, at least 0; default 0 */
        int64_t dilation LG_DEFAULT;          /* spacing of kernel elements, at least 1; default 1 */
        int64_t groups LG_DEFAULT;            /* number of groups, at least 1; default 1 */
        int64_t output_padding LG_DEFAULT;    /* added to the size of the output; default 0 */
        lg_triple strides LG_DEFAULT;         /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT;        /* replaces .padding; default: not given */
        lg_triple dilations LG_DEFAULT;       /* replaces .dilation; default: not given */
        lg_triple output_paddings LG_DEFAULT; /* replaces .output_padding; default: not given */
} lg_conv_transpose3d_options;
/* Computes a transposed 3-d convolution, of volumes x (N, C, D, H, W) or (C, D, H, W) and w (C, O / groups, KD, KH,
 * KW).
 * Example: lg_conv_transpose3d(x, w, NULL, .stride = 2, .output_padding = 1) */
#define lg_conv_transpose3d(...)                                                                                       \
        LG_CALL3(lg_conv_transpose3d_with, lg_conv_transpose3d_options, lg_conv_transpose3d_takes_x_w_b, V, V, V,      \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv_transpose3d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                                  const lg_conv_transpose3d_options *options);

/* ---- pooling ----
 *
 * Pooling reduces windows of each channel to their maximum or mean. x is (N, C, H, W) or (C, H, W), for signals
 * (N, C, L) or (C, L), for volumes (N, C, D, H, W) or (C, D, H, W); only N may be 0. With .ceil_mode the quotient in
 * the sides of the result is rounded up, but a window that would begin after the end of the input is left out.
 */

typedef struct lg_max_pool2d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;    /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;   /* added on each side, at most half the kernel; default 0 */
        int64_t dilation LG_DEFAULT;  /* spacing of the elements of a window; default 1 */
        bool ceil_mode LG_DEFAULT;    /* keep a last window that is not full; default false */
        lg_pair kernels LG_DEFAULT;   /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT; /* replaces .dilation; default: not given */
        lg_tensor **indices
                LG_DEFAULT; /* receives row * W + column of each maximum, i64, without a gradient; default NULL */
} lg_max_pool2d_options;
typedef struct lg_max_pool1d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;   /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;  /* added on each side, at most half the kernel; default 0 */
        int64_t dilation LG_DEFAULT; /* spacing of the elements of a window; default 1 */
        bool ceil_mode LG_DEFAULT;   /* keep a last window that is not full; default false */
        lg_tensor **indices
                LG_DEFAULT; /* receives the position of each maximum, i64, without a gradient; default NULL */
} lg_max_pool1d_options;
typedef struct lg_max_pool3d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;      /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;     /* added on each side, at most half the kernel; default 0 */
        int64_t dilation LG_DEFAULT;    /* spacing of the elements of a window; default 1 */
        bool ceil_mode LG_DEFAULT;      /* keep a last window that is not full; default false */
        lg_triple kernels LG_DEFAULT;   /* replaces the argument kernel, which may then be 0; default: not given */
        lg_triple strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_triple dilations LG_DEFAULT; /* replaces .dilation; default: not given */
        /* Receives (plane * H + row) * W + column of each maximum, i64, without a gradient; default NULL. */
        lg_tensor **indices LG_DEFAULT;
} lg_max_pool3d_options;
/* Computes the maximum of each window. Padding is never selected, NaN is larger than every number, and ties go to the
 * first element in row-major order. The gradient flows to the selected element.
 * Examples: lg_max_pool2d(x, 3, .stride = 2, .padding = 1, .indices = &i), lg_max_pool1d(x, 2),
 * lg_max_pool3d(x, 2) */
#define lg_max_pool2d(...)                                                                                             \
        LG_CALL2(lg_max_pool2d_with, lg_max_pool2d_options, lg_max_pool2d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_pool2d_with(lg_tensor *x, int64_t kernel, const lg_max_pool2d_options *options);
#define lg_max_pool1d(...)                                                                                             \
        LG_CALL2(lg_max_pool1d_with, lg_max_pool1d_options, lg_max_pool1d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_pool1d_with(lg_tensor *x, int64_t kernel, const lg_max_pool1d_options *options);
#define lg_max_pool3d(...)                                                                                             \
        LG_CALL2(lg_max_pool3d_with, lg_max_pool3d_options, lg_max_pool3d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_pool3d_with(lg_tensor *x, int64_t kernel, const lg_max_pool3d_options *options);

typedef struct lg_avg_pool2d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;        /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;       /* added on each side, at most half the kernel; default 0 */
        bool ceil_mode LG_DEFAULT;        /* keep a last window that is not full; default false */
        bool no_count_padding LG_DEFAULT; /* divide by the elements that are not padding; default false */
        int64_t divisor LG_DEFAULT;       /* divide by this number; default: the size of the window */
        lg_pair kernels LG_DEFAULT;       /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;       /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;      /* replaces .padding; default: not given */
} lg_avg_pool2d_options;
typedef struct lg_avg_pool1d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;        /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;       /* added on each side, at most half the kernel; default 0 */
        bool ceil_mode LG_DEFAULT;        /* keep a last window that is not full; default false */
        bool no_count_padding LG_DEFAULT; /* divide by the elements that are not padding; default false */
} lg_avg_pool1d_options;
typedef struct lg_avg_pool3d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;        /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;       /* added on each side, at most half the kernel; default 0 */
        bool ceil_mode LG_DEFAULT;        /* keep a last window that is not full; default false */
        bool no_count_padding LG_DEFAULT; /* divide by the elements that are not padding; default false */
        int64_t divisor LG_DEFAULT;       /* divide by this number; default: the size of the window */
        lg_triple kernels LG_DEFAULT;     /* replaces the argument kernel, which may then be 0; default: not given */
        lg_triple strides LG_DEFAULT;     /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT;    /* replaces .padding; default: not given */
} lg_avg_pool3d_options;
/* Computes the mean of each window. Padding counts as zeros unless .no_count_padding is set; what a window of
 * .ceil_mode has beyond the padding never counts.
 * Examples: lg_avg_pool2d(x, 3, .padding = 1, .no_count_padding = true), lg_avg_pool1d(x, 2),
 * lg_avg_pool3d(x, 2) */
#define lg_avg_pool2d(...)                                                                                             \
        LG_CALL2(lg_avg_pool2d_with, lg_avg_pool2d_options, lg_avg_pool2d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_avg_pool2d_with(lg_tensor *x, int64_t kernel, const lg_avg_pool2d_options *options);
#define lg_avg_pool1d(...)                                                                                             \
        LG_CALL2(lg_avg_pool1d_with, lg_avg_pool1d_options, lg_avg_pool1d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_avg_pool1d_with(lg_tensor *x, int64_t kernel, const lg_avg_pool1d_options *options);
#define lg_avg_pool3d(...)                                                                                             \
        LG_CALL2(lg_avg_pool3d_with, lg_avg_pool3d_options, lg_avg_pool3d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_avg_pool3d_with(lg_tensor *x, int64_t kernel, const lg_avg_pool3d_options *options);

/* ---- adaptive pooling ----
 *
 * Adaptive pooling takes the size of the result, that of all sides, in place of a kernel: one window per output
 * element, window i of a side covering the elements floor(i in / out) to ceil((i + 1) in / out) - 1. x is as for
 * pooling above, except that it may have no channels for means.
 */

typedef struct lg_adaptive_avg_pool2d_options {
        LG_OPTIONS_HEAD
        lg_pair sizes LG_DEFAULT; /* LG_PAIR(height, width), replaces the argument size; default: not given */
} lg_adaptive_avg_pool2d_options;
typedef struct lg_adaptive_avg_pool3d_options {
        LG_OPTIONS_HEAD
        lg_triple sizes
                LG_DEFAULT; /* LG_TRIPLE(depth, height, width), replaces the argument size; default: not given */
} lg_adaptive_avg_pool3d_options;
/* Computes the mean of each adaptive window; with size 1, the mean of each channel.
 * Examples: lg_adaptive_avg_pool2d(x, 1), lg_adaptive_avg_pool1d(x, 4),
 * lg_adaptive_avg_pool3d(x, 0, .sizes = LG_TRIPLE(1, 2, 2)) */
#define lg_adaptive_avg_pool2d(...)                                                                                    \
        LG_CALL2(lg_adaptive_avg_pool2d_with, lg_adaptive_avg_pool2d_options, lg_adaptive_avg_pool2d_takes_x_size, V,  \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_avg_pool2d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_avg_pool2d_options *options);
LG_API LG_NEW lg_tensor *lg_adaptive_avg_pool1d(lg_tensor *x, int64_t size);
#define lg_adaptive_avg_pool3d(...)                                                                                    \
        LG_CALL2(lg_adaptive_avg_pool3d_with, lg_adaptive_avg_pool3d_options, lg_adaptive_avg_pool3d_takes_x_size, V,  \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_avg_pool3d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_avg_pool3d_options *options);

typedef struct lg_adaptive_max_pool2d_options {
        LG_OPTIONS_HEAD
        lg_pair sizes LG_DEFAULT; /* LG_PAIR(height, width), replaces the argument size; default: not given */
        lg_tensor **indices
                LG_DEFAULT; /* receives row * W + column of each maximum, i64, without a gradient; default NULL */
} lg_adaptive_max_pool2d_options;
typedef struct lg_adaptive_max_pool1d_options {
        LG_OPTIONS_HEAD
        lg_tensor **indices
                LG_DEFAULT; /* receives the position of each maximum, i64, without a gradient; default NULL */
} lg_adaptive_max_pool1d_options;
typedef struct lg_adaptive_max_pool3d_options {
        LG_OPTIONS_HEAD
        lg_triple sizes
                LG_DEFAULT; /* LG_TRIPLE(depth, height, width), replaces the argument size; default: not given */
        /* Receives (plane * H + row) * W + column of each maximum, i64, without a gradient; default NULL. */
        lg_tensor **indices LG_DEFAULT;
} lg_adaptive_max_pool3d_options;
/* Computes the maximum of each adaptive window, with ties, NaN and the gradient as in lg_max_pool2d().
 * Examples: lg_adaptive_max_pool2d(x, 0, .sizes = LG_PAIR(2, 3), .indices = &i), lg_adaptive_max_pool1d(x, 4),
 * lg_adaptive_max_pool3d(x, 1) */
#define lg_adaptive_max_pool2d(...)                                                                                    \
        LG_CALL2(lg_adaptive_max_pool2d_with, lg_adaptive_max_pool2d_options, lg_adaptive_max_pool2d_takes_x_size, V,  \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_max_pool2d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_max_pool2d_options *options);
#define lg_adaptive_max_pool1d(...)                                                                                    \
        LG_CALL2(lg_adaptive_max_pool1d_with, lg_adaptive_max_pool1d_options, lg_adaptive_max_pool1d_takes_x_size, V,  \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_max_pool1d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_max_pool1d_options *options);
#define lg_adaptive_max_pool3d(...)                                                                                    \
        LG_CALL2(lg_adaptive_max_pool3d_with, lg_adaptive_max_pool3d_options, lg_adaptive_max_pool3d_takes_x_size, V,  \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_max_pool3d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_max_pool3d_options *options);

LG_END_C
#endif
