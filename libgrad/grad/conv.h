/* conv.h - convolution and pooling over images (N, C, H, W) and signals (N, C, L). */
#ifndef LG_CONV_H
#define LG_CONV_H

#include "grad/base.h"

LG_BEGIN

/* ---- convolution ---- */

/* stride, padding, dilation and output_padding are for both sides; the pairs {height, width} win where one of the two
 * is not zero (for signals: an error). */
typedef struct lg_conv_options {
        lg_tensor *b LG_DEFAULT;           /* bias (O), or NULL */
        int64_t stride LG_DEFAULT;         /* 1 */
        int64_t padding LG_DEFAULT;        /* 0; zeros on each side */
        int64_t dilation LG_DEFAULT;       /* 1 */
        int64_t groups LG_DEFAULT;         /* 1 */
        int64_t output_padding LG_DEFAULT; /* 0; transposed only: more on the far side of the output */
        int64_t strides[2] LG_DEFAULT;
        int64_t paddings[2] LG_DEFAULT;
        int64_t dilations[2] LG_DEFAULT;
        int64_t output_paddings[2] LG_DEFAULT;
} lg_conv_options;
/* y[n, o, i, j] = b[o] + sum over the channels c of o's group and the kernel's k, l of
 * x[n, c, i stride - padding + k dilation, j stride - padding + l dilation] w[o, c, k, l] (PyTorch's conv2d).
 * x (N, C, H, W) or (C, H, W), w (O, C / groups, KH, KW), b (O) or NULL; groups divide C and O. Float dtypes, promoted.
 * Of y each size is floor((size + 2 padding - dilation (K - 1) - 1) / stride) + 1. LG_ERR_SHAPE where the channels do
 * not match or the kernel is greater than the padded input. lg_conv2d(x, w, NULL, .stride = 2, .paddings = {0, 1}) */
#define lg_conv2d(x, w, ...) lg_conv2d_((x), (w), LG_INIT(lg_conv_options){.b = __VA_ARGS__})
LG_API lg_tensor *lg_conv2d_(lg_tensor *x, lg_tensor *w, lg_conv_options o);
/* The same over signals: x (N, C, L) or (C, L), w (O, C / groups, K). */
#define lg_conv1d(x, w, ...) lg_conv1d_((x), (w), LG_INIT(lg_conv_options){.b = __VA_ARGS__})
LG_API lg_tensor *lg_conv1d_(lg_tensor *x, lg_tensor *w, lg_conv_options o);
/* The derivative of lg_conv2d by its input, as a function, plus b (PyTorch's conv_transpose2d): x (N, C, H, W) or
 * (C, H, W), w (C, O / groups, KH, KW), b (O) or NULL. Of y each size is (size - 1) stride - 2 padding +
 * dilation (K - 1) + output_padding + 1; output_padding is below stride or dilation.
 * With b, 16-bit floats are computed with in f32. */
#define lg_conv_transpose2d(x, w, ...) lg_conv_transpose2d_((x), (w), LG_INIT(lg_conv_options){.b = __VA_ARGS__})
LG_API lg_tensor *lg_conv_transpose2d_(lg_tensor *x, lg_tensor *w, lg_conv_options o);
/* The same over signals: x (N, C, L) or (C, L), w (C, O / groups, K). */
#define lg_conv_transpose1d(x, w, ...) lg_conv_transpose1d_((x), (w), LG_INIT(lg_conv_options){.b = __VA_ARGS__})
LG_API lg_tensor *lg_conv_transpose1d_(lg_tensor *x, lg_tensor *w, lg_conv_options o);

/* ---- pooling ----
 *
 * x (N, C, H, W) or (C, H, W), signals (N, C, L) or (C, L); float dtypes; PyTorch's functions of the same names. One
 * number says both sides, a pair {height, width} wins where one of the two is not zero. LG_ERR_SHAPE: the window is
 * greater than the padded input; LG_ERR_ARGUMENT: a kernel, stride or dilation below 1 or above 2^31 - 1, a padding
 * above half the kernel.
 */
typedef struct lg_pool_options {
        int64_t kernel LG_DEFAULT;
        int64_t stride LG_DEFAULT; /* the kernel */
        int64_t padding LG_DEFAULT;
        int64_t dilation LG_DEFAULT;      /* 1; maximum only */
        bool ceil_mode LG_DEFAULT;        /* a last window that is not full counts, if it begins inside */
        bool no_count_padding LG_DEFAULT; /* average: divide by the pixels that are not padding */
        int64_t divisor LG_DEFAULT;       /* average: divide by this */
        int64_t kernels[2] LG_DEFAULT;
        int64_t strides[2] LG_DEFAULT;
        int64_t paddings[2] LG_DEFAULT;
        int64_t dilations[2] LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT; /* maximum: gets row * W + column of what was chosen, i64, no gradient */
} lg_pool_options;
/* The greatest of each window (padding is never chosen; NaN is greatest; the first of equals), to which the gradient
 * goes. lg_max_pool2d(x, 3, .stride = 2, .padding = 1, .indices = &i) */
#define lg_max_pool2d(x, ...) lg_max_pool2d_((x), LG_INIT(lg_pool_options){.kernel = __VA_ARGS__})
#define lg_max_pool1d(x, ...) lg_max_pool1d_((x), LG_INIT(lg_pool_options){.kernel = __VA_ARGS__})
LG_API lg_tensor *lg_max_pool2d_(lg_tensor *x, lg_pool_options o);
LG_API lg_tensor *lg_max_pool1d_(lg_tensor *x, lg_pool_options o);
/* The mean of each window; padding counts as zeros. */
#define lg_avg_pool2d(x, ...) lg_avg_pool2d_((x), LG_INIT(lg_pool_options){.kernel = __VA_ARGS__})
#define lg_avg_pool1d(x, ...) lg_avg_pool1d_((x), LG_INIT(lg_pool_options){.kernel = __VA_ARGS__})
LG_API lg_tensor *lg_avg_pool2d_(lg_tensor *x, lg_pool_options o);
LG_API lg_tensor *lg_avg_pool1d_(lg_tensor *x, lg_pool_options o);
typedef struct lg_adaptive_pool_options {
        int64_t size LG_DEFAULT;
        int64_t sizes[2] LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT; /* maximum: as above */
} lg_adaptive_pool_options;
/* As many windows as the output shall have pixels: i covers floor(i in / out) ... ceil((i + 1) in / out) - 1.
 * lg_adaptive_avg_pool2d(x, 1) is the mean of each channel. */
#define lg_adaptive_avg_pool2d(x, ...)                                                                                 \
        lg_adaptive_avg_pool2d_((x), LG_INIT(lg_adaptive_pool_options){.size = __VA_ARGS__})
#define lg_adaptive_avg_pool1d(x, ...)                                                                                 \
        lg_adaptive_avg_pool1d_((x), LG_INIT(lg_adaptive_pool_options){.size = __VA_ARGS__})
#define lg_adaptive_max_pool2d(x, ...)                                                                                 \
        lg_adaptive_max_pool2d_((x), LG_INIT(lg_adaptive_pool_options){.size = __VA_ARGS__})
LG_API lg_tensor *lg_adaptive_avg_pool2d_(lg_tensor *x, lg_adaptive_pool_options o);
LG_API lg_tensor *lg_adaptive_avg_pool1d_(lg_tensor *x, lg_adaptive_pool_options o);
LG_API lg_tensor *lg_adaptive_max_pool2d_(lg_tensor *x, lg_adaptive_pool_options o);

LG_END_C
#endif
