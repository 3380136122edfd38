/* conv.h - the arguments of convolutions; part of kernels.h. */
#ifndef LG_KERNELS_CONV_H
#define LG_KERNELS_CONV_H

#include "types.h"

/* How a kernel moves over an image; pairs are (height, width). Output pixel i sees input pixel i * stride - padding + k
 * * dilation through element k of the kernel, where there is such a pixel. Channels and outputs fall into `groups`. */
typedef struct lg_conv_geometry {
        int64_t in[2], kernel[2], out[2];
        int64_t stride[2], padding[2], dilation[2];
        int64_t groups;
} lg_conv_geometry;

typedef enum lg_conv_kind { LG_CONV_FORWARD, LG_CONV_INPUT_GRAD, LG_CONV_WEIGHT_GRAD } lg_conv_kind;
/* With i, k and the geometry as above, c a channel of o's group:
 *   FORWARD       y[n, o, i] = b[o] + sum_{c, k} x[n, c, i * stride - padding + k * dilation] w[o, c, k]
 *   INPUT_GRAD    dx[n, c, j] = sum of g[n, o, i] w[o, c, k] over o, i, k with j = i * stride - padding + k * dilation
 *   WEIGHT_GRAD   dw[o, c, k] = sum_{n, i} g[n, o, i] x[n, c, i * stride - padding + k * dilation]
 * x and dx (n, in, channels), y and g (n, out, outputs): channels last; w and dw (outputs, channels / groups, kernel);
 * b (outputs) or NULL. Float dtypes; f16 and bf16 compute in f32. weights_last: w and dw have channels last, too,
 * (outputs, kernel, channels / groups): for devices that say so in lg_device_api.
 *
 * FORWARD may have an end:
 *   y[n, o, i] = relu((sum + b[o]) * scale[o] + shift[o] + z[n, o, i])
 * scale, shift (outputs), of f64 if dtype is f64, else of f32: both or neither; batch norm in evaluation. z: as y,
 * which it does not overlap, or NULL. relu: if it is asked for; NaN stays. Other kinds have none: NULL and false. Of
 * f16 and bf16, devices may round the sum before its end. */
typedef struct lg_conv_args {
        lg_conv_kind kind;
        lg_dtype dtype;
        int64_t n, channels, outputs;
        lg_conv_geometry at;
        const void *x; /* FORWARD, WEIGHT_GRAD */
        const void *g; /* INPUT_GRAD, WEIGHT_GRAD */
        const void *w; /* FORWARD, INPUT_GRAD */
        const void *b; /* FORWARD */
        void *out;
        const void *scale, *shift, *z;
        bool relu, weights_last;
} lg_conv_args;

#endif
