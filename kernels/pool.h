/* pool.h - the arguments of pooling; part of kernels.h. */
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
/* Window i of each side covers the input pixels i * stride - padding + k * dilation that there are; adaptive: floor(i *
 * in / out) ... ceil((i + 1) * in / out) - 1. Every window has a pixel, except for averages beyond the padding (0).
 *   MAX       y = the greatest of the window, NaN before all, the first of equals; index = row * width + column of it
 *   MAX_GRAD  dx = 0, then each g is added at its index
 *   MAX_PICK  y = x at the index
 *   AVG       y = sum of the window / size; the size is `divisor`, or if that is 0 the pixels of the window, counting
 *             those in the padding if count_padding
 *   AVG_GRAD  dx = 0, then each g / size is added all over its window
 * x and dx (n, in, channels), y, g and index (n, out, channels): channels last. Float dtypes. `from` is x or g, `to` is
 * y or dx. */
typedef struct lg_pool_args {
        lg_pool_kind kind;
        lg_dtype dtype;
        int64_t n, channels;
        lg_conv_geometry at; /* groups is not looked at */
        bool adaptive, count_padding;
        int64_t divisor;
        const void *from;
        void *to;
        int32_t *index; /* MAX writes it, MAX_GRAD and MAX_PICK read it */
} lg_pool_args;

#endif
