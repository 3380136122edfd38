/* conv.h - helpers shared by the convolution algorithms. */
#ifndef LG_CUDA_CONV_H
#define LG_CUDA_CONV_H

#include "shape.h"

static inline int64_t lg_conv_weights(const lg_conv_args *a)
{
        return a->outputs * (a->channels / a->at.groups) * a->at.kernel[0] * a->at.kernel[1];
}

/* Copy weights between a's order (a->w, a->out) and (outputs, kernel, channels) of dtype t (`to`, `from`). */
bool lg_conv_weights_last(lg_queue *q, const lg_conv_args *a, void *to, lg_dtype t);
bool lg_conv_weights_back(lg_queue *q, const lg_conv_args *a, const void *from, lg_dtype t);
/* Writes y[n, i, o] = b[o], or y[n, i, o] += b[o] if `add`. */
bool lg_conv_bias(lg_queue *q, const lg_conv_args *a, bool add);

/* Convolution by matrix products: whether that is possible and worthwhile for *a, and the convolution. */
bool lg_conv_has_products(const lg_conv_args *a);
bool lg_conv_products(lg_queue *q, const lg_conv_args *a);

/* V elements next to each other in memory, moved by one access of up to 16 bytes. */
template <typename T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) lg_pack {
        T v[V];
};

static inline bool lg_is_aligned(const void *p, size_t bytes)
{
        return ((uintptr_t)p & (bytes - 1)) == 0;
}

#endif
