/* pool.h - arguments of the pooling kernel. Part of kernels.h. */
#ifndef LG_KERNELS_POOL_H
#define LG_KERNELS_POOL_H

#include "conv.h"

typedef enum lg_pool_kind {
        LG_POOL_MAX,
        LG_POOL_MAX_GRAD,
        LG_POOL_MAX_PICK,
        LG_POOL_AVG,
        LG_POOL_AVG_GRAD
} lg_pool_kind;
/* Along each side, window i covers the pixels i * stride - padding + k * dilation that are inside the input. An
 * adaptive window i covers the pixels floor(i * in / out) to ceil((i + 1) * in / out) - 1. Every window has at least
 * one pixel, except that averages may have windows entirely beyond the padding, whose result is 0.
 *   MAX       y = maximum of the window, the first of equals; NaN counts as greatest. index = row * width + column of y
 *   MAX_GRAD  dx = 0, then each g is added to dx at its index
 *   MAX_PICK  y = x at the index
 *   AVG       y = sum of the window / size; size: `divisor`, or if 0 the pixels (and if count_padding the padding's)
 *   AVG_GRAD  dx = 0, then each g / size is added to all pixels of its window
 * x and dx are (n, in, channels), y, g, index (n, out, channels). Float dtypes. `from` is x or g, `to` is y or dx. */
typedef struct lg_pool_args {
        lg_pool_kind kind;
        lg_dtype dtype;
        int64_t n, channels;
        lg_conv_geometry at; /* geometry; `groups` is ignored */
        bool adaptive, count_padding;
        int64_t divisor;
        const void *from;
        void *to;
        int32_t *index; /* written by MAX, read by MAX_GRAD and MAX_PICK */
} lg_pool_args;

#endif
