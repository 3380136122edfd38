/* conv.h - arguments of the convolution kernel. Part of kernels.h. */
#ifndef LG_KERNELS_CONV_H
#define LG_KERNELS_CONV_H

#include "types.h"

/* Geometry of a 2-D convolution or pooling; pairs are (height, width). Output pixel i reads input pixel i * stride -
 * padding + k * dilation through kernel element k; pixels outside the input are 0. groups: of channels. */
typedef struct lg_conv_geometry {
        int64_t in[2], kernel[2], out[2];
        int64_t stride[2], padding[2], dilation[2];
        int64_t groups;
} lg_conv_geometry;

typedef enum lg_conv_kind { LG_CONV_FORWARD, LG_CONV_INPUT_GRAD, LG_CONV_WEIGHT_GRAD } lg_conv_kind;
/* Computes one of the following, with i, k and the geometry as above; c runs over the channels of o's group:
 *   FORWARD       y[n, o, i] = b[o] + sum_{c, k} x[n, c, i * stride - padding + k * dilation] w[o, c, k]
 *   INPUT_GRAD    dx[n, c, j] = sum of g[n, o, i] w[o, c, k] over o, i, k with j = i * stride - padding + k * dilation
 *   WEIGHT_GRAD   dw[o, c, k] = sum_{n, i} g[n, o, i] x[n, c, i * stride - padding + k * dilation]
 * x and dx are (n, in, channels), y and g (n, out, outputs), all channels last; w and dw are (outputs, channels /
 * groups, kernel), or with weights_last (for devices that set lg_device_api.weights_last) (outputs, kernel, channels /
 * groups); b is (outputs) or NULL. Float dtypes; f16 and bf16 are computed in f32.
 *
 * FORWARD may have an epilogue; the other kinds have NULL and false in these members:
 *   y[n, o, i] = relu((sum + b[o]) * scale[o] + shift[o] + z[n, o, i])
 * scale and shift (outputs) are both given or both NULL, f64 if dtype is f64, else f32 (batch norm in evaluation mode).
 * z has y's shape and must not overlap y; NULL for 0. relu applies the ReLU and keeps NaN. With f16 and bf16 a device
 * may round the sum before the epilogue. */
typedef struct lg_conv_args {
        lg_conv_kind kind;
        lg_dtype dtype;
        int64_t n, channels, outputs;
        lg_conv_geometry at;
        const void *x; /* input of FORWARD, WEIGHT_GRAD */
        const void *g; /* output gradient for INPUT_GRAD, WEIGHT_GRAD */
        const void *w; /* weights of FORWARD, INPUT_GRAD */
        const void *b; /* bias of FORWARD, or NULL */
        void *out;
        const void *scale, *shift, *z;
        bool relu, weights_last;
} lg_conv_args;

#endif
