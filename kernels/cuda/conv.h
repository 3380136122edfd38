/* conv.h - what the ways to convolve share. */
#ifndef LG_CUDA_CONV_H
#define LG_CUDA_CONV_H

#include "shape.h"

static inline int64_t lg_conv_weights(const lg_conv_args *a)
{
        return a->outputs * (a->channels / a->at.groups) * a->at.kernel[0] * a->at.kernel[1];
}

/* Weights (outputs, channels, kernel) as (outputs, kernel, channels) of dtype t: a->w to `to`, or `from` to a->out. */
bool lg_conv_weights_last(lg_queue *q, const lg_conv_args *a, void *to, lg_dtype t);
bool lg_conv_weights_back(lg_queue *q, const lg_conv_args *a, const void *from, lg_dtype t);
/* y[n, i, o] = b[o], or += */
bool lg_conv_bias(lg_queue *q, const lg_conv_args *a, bool add);

/* Convolution by matrix products; whether it can, and shall, for these arguments. */
bool lg_conv_has_products(const lg_conv_args *a);
bool lg_conv_products(lg_queue *q, const lg_conv_args *a);

/* V elements next to each other in memory, moved at once. */
template <typename T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) lg_pack {
        T v[V];
};

static inline bool lg_is_aligned(const void *p, size_t bytes)
{
        return ((uintptr_t)p & (bytes - 1)) == 0;
}

#endif
