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
 * dilation (K - 1) + output_padding + 1; output_padding is below stride or dilation. */
#define lg_conv_transpose2d(x, w, ...) lg_conv_transpose2d_((x), (w), LG_INIT(lg_conv_options){.b = __VA_ARGS__})
LG_API lg_tensor *lg_conv_transpose2d_(lg_tensor *x, lg_tensor *w, lg_conv_options o);
/* The same over signals: x (N, C, L) or (C, L), w (C, O / groups, K). */
#define lg_conv_transpose1d(x, w, ...) lg_conv_transpose1d_((x), (w), LG_INIT(lg_conv_options){.b = __VA_ARGS__})
LG_API lg_tensor *lg_conv_transpose1d_(lg_tensor *x, lg_tensor *w, lg_conv_options o);

LG_END_C
#endif
