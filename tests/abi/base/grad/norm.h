/* norm.h - normalisation and dropout. */
#ifndef LG_NORM_H
#define LG_NORM_H

#include "grad/base.h"

LG_BEGIN

/* Float dtypes. f16 and bf16 compute in f32, and weights, biases and running statistics may then be f32; the result is
 * of x's dtype. */

typedef struct lg_batch_norm_options {
        LG_OPTIONS_HEAD
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
#define lg_batch_norm(...) LG_CALL3(lg_batch_norm_with, lg_batch_norm_options, lg_batch_norm_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_batch_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                            const lg_batch_norm_options *options);

typedef struct lg_layer_norm_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT; /* 1e-5; LG_ZERO: 0 */
} lg_layer_norm_options;
/* (x - mean) / sqrt(var + eps) * w + b over the last `dims` dimensions of x, var divided by the count; w and b of the
 * shape of these dimensions, each may be NULL. lg_layer_norm(x, 1, w, b, .eps = 1e-6) */
#define lg_layer_norm(...)                                                                                             \
        LG_CALL4(lg_layer_norm_with, lg_layer_norm_options, lg_layer_norm_takes_x_dims_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_layer_norm_with(lg_tensor *x, int dims, lg_tensor *w, lg_tensor *b,
                                            const lg_layer_norm_options *options);
/* The same over each of `groups` groups of channels of x (N, C, ...), which divide C; w and b (C), each may be NULL. */
#define lg_group_norm(...)                                                                                             \
        LG_CALL4(lg_group_norm_with, lg_layer_norm_options, lg_group_norm_takes_x_groups_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_group_norm_with(lg_tensor *x, int64_t groups, lg_tensor *w, lg_tensor *b,
                                            const lg_layer_norm_options *options);
/* The same over each channel of x (N, C, L...), which has more than one element: PyTorch's F.instance_norm of the
 * input's own statistics. */
#define lg_instance_norm(...)                                                                                          \
        LG_CALL3(lg_instance_norm_with, lg_layer_norm_options, lg_instance_norm_takes_x_w_b, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_instance_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                               const lg_layer_norm_options *options);
typedef struct lg_rms_norm_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT; /* the distance from 1 to the next number of x's dtype; LG_ZERO: 0 */
} lg_rms_norm_options;
/* x / sqrt(mean(x^2) + eps) * w over the last `dims` dimensions; w of their shape or NULL. */
#define lg_rms_norm(...) LG_CALL3(lg_rms_norm_with, lg_rms_norm_options, lg_rms_norm_takes_x_dims_w, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rms_norm_with(lg_tensor *x, int dims, lg_tensor *w, const lg_rms_norm_options *options);
typedef struct lg_normalize_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT; /* 1e-12 */
} lg_normalize_options;
/* x / max(|x|, eps), |x| = sqrt(sum(x^2)) along one dimension: PyTorch's F.normalize with p = 2.
 * lg_normalize(x, 1) */
#define lg_normalize(...) LG_CALL2(lg_normalize_with, lg_normalize_options, lg_normalize_takes_x_dim, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_normalize_with(lg_tensor *x, int dim, const lg_normalize_options *options);

typedef struct lg_dropout_options {
        LG_OPTIONS_HEAD
        bool off LG_DEFAULT; /* in evaluation: x itself */
} lg_dropout_options;
/* Each element 0 with probability p in [0, 1], else x / (1 - p); drawn from the context's generator in row-major order,
 * so that the same seed drops the same elements on every device and in every layout. lg_dropout(x, 0.5) */
#define lg_dropout(...) LG_CALL2(lg_dropout_with, lg_dropout_options, lg_dropout_takes_x_p, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options);
/* The same for whole channels of x (N, C, ...): PyTorch's F.dropout1d, 2d and 3d. */
#define lg_feature_dropout(...)                                                                                        \
        LG_CALL2(lg_feature_dropout_with, lg_dropout_options, lg_feature_dropout_takes_x_p, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_feature_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options);

LG_END_C
#endif
