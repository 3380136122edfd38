/* norm.h - normalisation and dropout. */
#ifndef LG_NORM_H
#define LG_NORM_H

#include "grad/base.h"

LG_BEGIN

/* Float dtypes. f16 and bf16 compute in f32, and weights, biases and running statistics may then be f32; the result is
 * of x's dtype. */

typedef struct lg_batch_norm_options {
        lg_tensor *b LG_DEFAULT;
        lg_tensor *running_mean LG_DEFAULT;
        lg_tensor *running_var LG_DEFAULT;
        bool training LG_DEFAULT;
        double momentum LG_DEFAULT; /* 0.1; LG_ZERO: 0 */
        double eps LG_DEFAULT;      /* 1e-5; LG_ZERO: 0 */
} lg_batch_norm_options;
/* (x - mean) / sqrt(var + eps) * w + b for each channel of x (N, C, ...), PyTorch's F.batch_norm; w and b (C), or both
 * NULL. In training mean and var are those of the batch (var divided by the count; a count of 1 is LG_ERR_SHAPE), and
 * running statistics (C) that are given move by momentum towards them (var divided by count - 1), unrecorded and in
 * place: LG_ERR_STATE if they are in the graph. Otherwise mean and var are the running statistics, both needed.
 * lg_batch_norm(x, w, b, .running_mean = m, .running_var = v, .training = true) */
#define lg_batch_norm(x, w, ...) lg_batch_norm_((x), (w), LG_INIT(lg_batch_norm_options){.b = __VA_ARGS__})
LG_API lg_tensor *lg_batch_norm_(lg_tensor *x, lg_tensor *w, lg_batch_norm_options o);

LG_END_C
#endif
