/* conv.h - convolution and pooling over images (N, C, H, W) and signals (N, C, L).
 *
 * The ops have PyTorch's names, shapes and options. N is the size of the batch, C the number of channels; a single
 * image (C, H, W) or signal (C, L) is accepted as well and gives a result without the batch dimension. The layers of
 * layers.h, such as lg_nn_conv2d(), apply these ops with weights of their own.
 *
 * Results for images are stored with channels last, which the next convolution reads without a copy; lg_contiguous()
 * makes a row-major copy.
 *
 * In addition to the errors named below, calls fail with LG_ERR_ARGUMENT if tensors belong to two contexts, with
 * LG_ERR_STATE if a tensor was freed, and with LG_ERR_MEMORY.
 */
#ifndef LG_CONV_H
#define LG_CONV_H

#include "grad/base.h"

LG_BEGIN

/* ---- convolution ----
 *
 * Tensors are of float dtypes, which are promoted. O is the number of output channels; the channels of x and of the
 * result are divided into groups, and each group of outputs sees one group of inputs. b (O) is added to each channel
 * and may be NULL. Results belong to the innermost open scope.
 *
 * LG_ERR_SHAPE if a tensor has the wrong number of dimensions, if the channels of x, w and b do not match, if the
 * kernel is empty or larger than the padded input, or if a side is larger than 2^31 - 1; LG_ERR_DTYPE if a tensor is
 * not of a float dtype; LG_ERR_DEVICE if tensors are on two devices; LG_ERR_ARGUMENT if x or w is NULL, if an option is
 * below its minimum or above 2^31 - 1, if groups do not divide the first dimension of w, or if a pair is given for
 * signals.
 */

/* Options of lg_conv2d(), lg_conv1d(), lg_conv_transpose2d() and lg_conv_transpose1d(). A number applies to both sides
 * of an image; where sides differ, give the pair LG_PAIR(height, width), which replaces the number. */
typedef struct lg_conv_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;          /* step of the kernel over the input, at least 1; default 1 */
        int64_t padding LG_DEFAULT;         /* zeros added on each side of the input, at least 0; default 0 */
        int64_t dilation LG_DEFAULT;        /* spacing of kernel elements, at least 1; default 1 */
        int64_t groups LG_DEFAULT;          /* number of groups, at least 1; default 1 */
        int64_t output_padding LG_DEFAULT;  /* transposed only: added to the size of the output; default 0 */
        lg_pair strides LG_DEFAULT;         /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;        /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT;       /* replaces .dilation; default: not given */
        lg_pair output_paddings LG_DEFAULT; /* replaces .output_padding; default: not given */
} lg_conv_options;
/* Computes a 2-d convolution (PyTorch's conv2d):
 *
 *   y[n, o, i, j] = b[o] + sum over c, k, l of x[n, c, i s - p + k d, j s - p + l d] w[o, c, k, l]
 *
 * with stride s, padding p and dilation d, over the channels c of o's group and the elements k, l of the kernel. x is
 * (N, C, H, W) or (C, H, W), w (O, C / groups, KH, KW), b (O) or NULL. For a kernel of size K, the sides of y are
 *
 *   floor((side + 2 p - d (K - 1) - 1) / s) + 1
 *
 * where side is that of x. Fails with LG_ERR_ARGUMENT also if .output_padding is given.
 * Example: lg_conv2d(x, w, NULL, .stride = 2, .paddings = LG_PAIR(0, 1)) */
#define lg_conv2d(...) LG_CALL3(lg_conv2d_with, lg_conv_options, lg_conv2d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options);

/* Computes a 1-d convolution: lg_conv2d() for signals x (N, C, L) or (C, L) and w (O, C / groups, K).
 * Example: lg_conv1d(x, w, b, .padding = 1) */
#define lg_conv1d(...) LG_CALL3(lg_conv1d_with, lg_conv_options, lg_conv1d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options);

/* Computes a transposed 2-d convolution (PyTorch's conv_transpose2d): the backward of lg_conv2d() with respect to its
 * input, applied to x, plus b. x is (N, C, H, W) or (C, H, W), w (C, O / groups, KH, KW), b (O) or NULL. The sides of
 * the result are
 *
 *   (side - 1) s - 2 p + d (K - 1) + output_padding + 1
 *
 * With b, 16-bit floats are converted to f32 first, so that the result is rounded once. Fails with LG_ERR_SHAPE also if
 * a side of the result would be below 1, and with LG_ERR_ARGUMENT unless .output_padding is less than the stride or the
 * dilation.
 * Example: lg_conv_transpose2d(x, w, b, .stride = 2, .output_padding = 1) */
#define lg_conv_transpose2d(...)                                                                                       \
        LG_CALL3(lg_conv_transpose2d_with, lg_conv_options, lg_conv_transpose2d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv_transpose2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                                  const lg_conv_options *options);

/* Computes a transposed 1-d convolution: lg_conv_transpose2d() for signals x (N, C, L) or (C, L) and w
 * (C, O / groups, K).
 * Example: lg_conv_transpose1d(x, w, NULL, .stride = 2) */
#define lg_conv_transpose1d(...)                                                                                       \
        LG_CALL3(lg_conv_transpose1d_with, lg_conv_options, lg_conv_transpose1d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv_transpose1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                                  const lg_conv_options *options);

/* ---- pooling ----
 *
 * Pooling reduces windows of each channel to their maximum or mean. x is (N, C, H, W) or (C, H, W), or for signals
 * (N, C, L) or (C, L), of a float dtype. Results belong to the innermost open scope. If x is NULL, the result is NULL
 * and no error is set.
 *
 * For a kernel of size K with stride s, padding p and dilation d, the sides of the result are
 *
 *   floor((side + 2 p - d (K - 1) - 1) / s) + 1
 *
 * where side is that of x. With .ceil_mode the quotient is rounded up, but a window that would begin after the end of
 * the input is left out.
 *
 * LG_ERR_SHAPE if x has the wrong number of dimensions, if one other than N is 0, if the window is larger than the
 * padded input, or if an image has more than 2^31 - 1 pixels; LG_ERR_DTYPE if x is not of a float dtype;
 * LG_ERR_ARGUMENT if a kernel, stride or dilation is below 1 or above 2^31 - 1, if the padding is below 0 or above half
 * the kernel, or if the divisor is below 0.
 */

/* Options of lg_max_pool2d(), lg_max_pool1d(), lg_avg_pool2d() and lg_avg_pool1d(). A number applies to both sides of
 * an image; where sides differ, give the pair LG_PAIR(height, width), which replaces the number. For signals only its
 * width counts. */
typedef struct lg_pool_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;        /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;       /* added on each side, at most half the kernel; default 0 */
        int64_t dilation LG_DEFAULT;      /* maximum only: spacing of the elements of a window; default 1 */
        bool ceil_mode LG_DEFAULT;        /* keep a last window that is not full; default false */
        bool no_count_padding LG_DEFAULT; /* mean: divide by the elements that are not padding; default false */
        int64_t divisor LG_DEFAULT;       /* mean: divide by this number; default: the size of the window */
        lg_pair kernels LG_DEFAULT;       /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;       /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;      /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT;     /* replaces .dilation; default: not given */
        /* Maximum only: receives row * W + column of each maximum, i64, without a gradient; default: not wanted. */
        lg_tensor **indices LG_DEFAULT;
} lg_pool_options;
/* Computes the maximum of each window of an image. Padding is never selected, NaN is larger than every number, and ties
 * go to the first element in row-major order. The gradient flows to the selected element.
 * Example: lg_max_pool2d(x, 3, .stride = 2, .padding = 1, .indices = &i) */
#define lg_max_pool2d(...) LG_CALL2(lg_max_pool2d_with, lg_pool_options, lg_max_pool2d_takes_x_kernel, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_pool2d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);

/* Computes the maximum of each window of a signal, as lg_max_pool2d() does for images.
 * Example: lg_max_pool1d(x, 2) */
#define lg_max_pool1d(...) LG_CALL2(lg_max_pool1d_with, lg_pool_options, lg_max_pool1d_takes_x_kernel, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_pool1d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);

/* Computes the mean of each window of an image. Padding counts as zeros unless .no_count_padding is set; what a window
 * of .ceil_mode has beyond the padding never counts. Fails with LG_ERR_ARGUMENT also if a dilation other than 1 is
 * given; .indices is ignored.
 * Example: lg_avg_pool2d(x, 3, .padding = 1, .no_count_padding = true) */
#define lg_avg_pool2d(...) LG_CALL2(lg_avg_pool2d_with, lg_pool_options, lg_avg_pool2d_takes_x_kernel, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_avg_pool2d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);

/* Computes the mean of each window of a signal, as lg_avg_pool2d() does for images.
 * Example: lg_avg_pool1d(x, 2) */
#define lg_avg_pool1d(...) LG_CALL2(lg_avg_pool1d_with, lg_pool_options, lg_avg_pool1d_takes_x_kernel, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_avg_pool1d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);

/* ---- adaptive pooling ----
 *
 * Adaptive pooling takes the size of the result in place of a kernel: one window per output element, window i of a side
 * covering the elements floor(i in / out) to ceil((i + 1) in / out) - 1. size is that of both sides. x is as for
 * pooling above. Results belong to the innermost open scope. If x is NULL, the result is NULL and no error is set.
 *
 * LG_ERR_SHAPE if x has the wrong number of dimensions or an empty side (for maxima also no channels), or if a size or
 * the number of pixels is larger than 2^31 - 1; LG_ERR_DTYPE if x is not of a float dtype; LG_ERR_ARGUMENT if a size is
 * below 1.
 */

/* Options of lg_adaptive_avg_pool2d(), lg_adaptive_avg_pool1d() and lg_adaptive_max_pool2d(). */
typedef struct lg_adaptive_pool_options {
        LG_OPTIONS_HEAD
        lg_pair sizes LG_DEFAULT;       /* LG_PAIR(height, width), replaces the argument size; default: not given */
        lg_tensor **indices LG_DEFAULT; /* maximum only: as in lg_pool_options; default: not wanted */
} lg_adaptive_pool_options;
/* Computes the mean of each adaptive window of an image; with size 1, the mean of each channel.
 * Example: lg_adaptive_avg_pool2d(x, 1) */
#define lg_adaptive_avg_pool2d(...)                                                                                    \
        LG_CALL2(lg_adaptive_avg_pool2d_with, lg_adaptive_pool_options, lg_adaptive_avg_pool2d_takes_x_size,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_avg_pool2d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_pool_options *options);

/* Computes the mean of each adaptive window of a signal (N, C, L) or (C, L).
 * Example: lg_adaptive_avg_pool1d(x, 4) */
#define lg_adaptive_avg_pool1d(...)                                                                                    \
        LG_CALL2(lg_adaptive_avg_pool1d_with, lg_adaptive_pool_options, lg_adaptive_avg_pool1d_takes_x_size,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_avg_pool1d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_pool_options *options);

/* Computes the maximum of each adaptive window of an image, with ties, NaN and the gradient as in lg_max_pool2d().
 * Example: lg_adaptive_max_pool2d(x, 0, .sizes = LG_PAIR(2, 3), .indices = &i) */
#define lg_adaptive_max_pool2d(...)                                                                                    \
        LG_CALL2(lg_adaptive_max_pool2d_with, lg_adaptive_pool_options, lg_adaptive_max_pool2d_takes_x_size,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_max_pool2d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_pool_options *options);

LG_END_C
#endif
