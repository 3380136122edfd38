/* conv.h - convolution and pooling over images (N, C, H, W) and signals (N, C, L). */
#ifndef LG_CONV_H
#define LG_CONV_H

#include "grad/base.h"

LG_BEGIN

/* ---- convolution ---- */

/* stride, padding, dilation and output_padding are for both sides; the pairs LG_PAIR(height, width) win where they are
 * given (for signals: an error). */
typedef struct lg_conv_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;         /* 1 */
        int64_t padding LG_DEFAULT;        /* 0; zeros on each side */
        int64_t dilation LG_DEFAULT;       /* 1 */
        int64_t groups LG_DEFAULT;         /* 1 */
        int64_t output_padding LG_DEFAULT; /* 0; transposed only: more on the far side of the output */
        lg_pair strides LG_DEFAULT;
        lg_pair paddings LG_DEFAULT;
        lg_pair dilations LG_DEFAULT;
        lg_pair output_paddings LG_DEFAULT;
} lg_conv_options;
/* y[n, o, i, j] = b[o] + sum over the channels c of o's group and the kernel's k, l of
 * x[n, c, i stride - padding + k dilation, j stride - padding + l dilation] w[o, c, k, l] (PyTorch's conv2d).
 * x (N, C, H, W) or (C, H, W), w (O, C / groups, KH, KW), b (O) or NULL; groups divide C and O. Float dtypes, promoted.
 * Of y each size is floor((size + 2 padding - dilation (K - 1) - 1) / stride) + 1. LG_ERR_SHAPE where the channels do
 * not match or the kernel is greater than the padded input. lg_conv2d(x, w, NULL, .stride = 2, .paddings = LG_PAIR(0,
 * 1)) */
#define lg_conv2d(...) LG_CALL3(lg_conv2d_with, lg_conv_options, lg_conv2d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options);
/* The same over signals: x (N, C, L) or (C, L), w (O, C / groups, K). */
#define lg_conv1d(...) LG_CALL3(lg_conv1d_with, lg_conv_options, lg_conv1d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_conv_options *options);
/* The derivative of lg_conv2d by its input, as a function, plus b (PyTorch's conv_transpose2d): x (N, C, H, W) or
 * (C, H, W), w (C, O / groups, KH, KW), b (O) or NULL. Of y each size is (size - 1) stride - 2 padding +
 * dilation (K - 1) + output_padding + 1; output_padding is below stride or dilation.
 * With b, 16-bit floats are computed with in f32. */
#define lg_conv_transpose2d(...)                                                                                       \
        LG_CALL3(lg_conv_transpose2d_with, lg_conv_options, lg_conv_transpose2d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv_transpose2d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                                  const lg_conv_options *options);
/* The same over signals: x (N, C, L) or (C, L), w (C, O / groups, K). */
#define lg_conv_transpose1d(...)                                                                                       \
        LG_CALL3(lg_conv_transpose1d_with, lg_conv_options, lg_conv_transpose1d_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_conv_transpose1d_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                                  const lg_conv_options *options);

/* ---- pooling ----
 *
 * x (N, C, H, W) or (C, H, W), signals (N, C, L) or (C, L); float dtypes; PyTorch's functions of the same names. One
 * number is for both sides, a pair LG_PAIR(height, width) wins where it is given. LG_ERR_SHAPE: the window is
 * greater than the padded input; LG_ERR_ARGUMENT: a kernel, stride or dilation below 1 or above 2^31 - 1, a padding
 * above half the kernel.
 */
typedef struct lg_pool_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT; /* the kernel */
        int64_t padding LG_DEFAULT;
        int64_t dilation LG_DEFAULT;      /* 1; maximum only */
        bool ceil_mode LG_DEFAULT;        /* a last window that is not full counts, if it begins inside */
        bool no_count_padding LG_DEFAULT; /* average: divide by the pixels that are not padding */
        int64_t divisor LG_DEFAULT;       /* average: divide by this */
        lg_pair kernels LG_DEFAULT;
        lg_pair strides LG_DEFAULT;
        lg_pair paddings LG_DEFAULT;
        lg_pair dilations LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT; /* maximum: gets row * W + column of what was chosen, i64, no gradient */
} lg_pool_options;
/* The greatest of each window (padding is never chosen; NaN is greatest; the first of equals), to which the gradient
 * goes. lg_max_pool2d(x, 3, .stride = 2, .padding = 1, .indices = &i) */
#define lg_max_pool2d(...) LG_CALL2(lg_max_pool2d_with, lg_pool_options, lg_max_pool2d_takes_x_kernel, __VA_ARGS__)
#define lg_max_pool1d(...) LG_CALL2(lg_max_pool1d_with, lg_pool_options, lg_max_pool1d_takes_x_kernel, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_pool2d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);
LG_API LG_NEW lg_tensor *lg_max_pool1d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);
/* The mean of each window; padding counts as zeros. */
#define lg_avg_pool2d(...) LG_CALL2(lg_avg_pool2d_with, lg_pool_options, lg_avg_pool2d_takes_x_kernel, __VA_ARGS__)
#define lg_avg_pool1d(...) LG_CALL2(lg_avg_pool1d_with, lg_pool_options, lg_avg_pool1d_takes_x_kernel, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_avg_pool2d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);
LG_API LG_NEW lg_tensor *lg_avg_pool1d_with(lg_tensor *x, int64_t kernel, const lg_pool_options *options);
typedef struct lg_adaptive_pool_options {
        LG_OPTIONS_HEAD
        lg_pair sizes LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT; /* maximum: as above */
} lg_adaptive_pool_options;
/* As many windows as the output shall have pixels: i covers floor(i in / out) ... ceil((i + 1) in / out) - 1.
 * lg_adaptive_avg_pool2d(x, 1) is the mean of each channel. */
#define lg_adaptive_avg_pool2d(...)                                                                                    \
        LG_CALL2(lg_adaptive_avg_pool2d_with, lg_adaptive_pool_options, lg_adaptive_avg_pool2d_takes_x_size,           \
                 __VA_ARGS__)
#define lg_adaptive_avg_pool1d(...)                                                                                    \
        LG_CALL2(lg_adaptive_avg_pool1d_with, lg_adaptive_pool_options, lg_adaptive_avg_pool1d_takes_x_size,           \
                 __VA_ARGS__)
#define lg_adaptive_max_pool2d(...)                                                                                    \
        LG_CALL2(lg_adaptive_max_pool2d_with, lg_adaptive_pool_options, lg_adaptive_max_pool2d_takes_x_size,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_adaptive_avg_pool2d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_pool_options *options);
LG_API LG_NEW lg_tensor *lg_adaptive_avg_pool1d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_pool_options *options);
LG_API LG_NEW lg_tensor *lg_adaptive_max_pool2d_with(lg_tensor *x, int64_t size,
                                                     const lg_adaptive_pool_options *options);

LG_END_C
#endif
