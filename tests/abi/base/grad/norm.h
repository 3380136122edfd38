/* norm.h - normalisation and dropout.
 *
 * Normalisation subtracts a mean from the elements of x and divides them by a standard deviation: over the batch
 * (batch norm) or within each sample (layer, group, instance and RMS norm). The layers of layers.h, such as
 * lg_nn_batch_norm2d(), apply these ops with parameters of their own.
 *
 * Tensors are of float dtypes, and the result has x's dtype and shape. f16 and bf16 compute in f32. Weights, biases and
 * running statistics may be of another dtype than x, so those of a 16-bit x can be f32. var is the mean square of the
 * deviations, divided by the count; .eps is at least 0.
 */
#ifndef LG_NORM_H
#define LG_NORM_H

#include "grad/base.h"

LG_BEGIN

/* ---- batch norm ---- */

typedef struct lg_batch_norm_options {
        LG_OPTIONS_HEAD
        lg_tensor *running_mean LG_DEFAULT; /* (C): updated in training, otherwise used; default: none */
        lg_tensor *running_var LG_DEFAULT;  /* (C): updated in training, otherwise used; default: none */
        bool training LG_DEFAULT;           /* normalise by the statistics of the batch; default false */
        double momentum LG_DEFAULT;     /* weight of the batch in the running statistics; default 0.1; LG_ZERO for 0 */
        double eps LG_DEFAULT;          /* added to var; default 1e-5; LG_ZERO for 0 */
        lg_tensor *residual LG_DEFAULT; /* of x's shape and dtype: added to the result; default: none */
        bool relu LG_DEFAULT;           /* ReLU at the end, after the residual; default false */
} lg_batch_norm_options;
/* Computes (x - mean) / sqrt(var + eps) * w + b for each channel of x (N, C, ...) (PyTorch's F.batch_norm). w and b are
 * (C), or both are NULL. With .residual and .relu the result is relu(... + residual), in the same pass over memory.
 *
 * With .training, mean and var are those of the batch, over all dimensions but C, of which each channel must have more
 * than one element. Running statistics that are given are then updated in place and unrecorded: running += momentum *
 * (batch - running), where the var of the batch is divided by count - 1. They must not be results in the graph, nor
 * require grad outside of lg_no_grad() (else LG_ERR_STATE). Without .training, mean and var are the running statistics,
 * and both are required; no gradient goes to them.
 * Example: lg_batch_norm(x, w, b, .running_mean = mean, .running_var = var, .training = true) */
#define lg_batch_norm(...)                                                                                             \
        LG_CALL3(lg_batch_norm_with, lg_batch_norm_options, lg_batch_norm_takes_x_w_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_batch_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                            const lg_batch_norm_options *options);

/* ---- normalisation within a sample ----
 *
 * These functions compute (x - mean) / sqrt(var + eps) * w + b unless stated otherwise; w and b each may be NULL.
 */

/* Options of lg_layer_norm(), lg_group_norm() and lg_instance_norm(). */
typedef struct lg_layer_norm_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT; /* added to var; default 1e-5; LG_ZERO for 0 */
} lg_layer_norm_options;
/* Normalises over the last dimensions of x, at least one, which have the given shape, as w and b do (PyTorch's
 * F.layer_norm with its normalized_shape).
 * Example: lg_layer_norm(x, LG_SHAPE(16), w, b, .eps = 1e-6) */
#define lg_layer_norm(...)                                                                                             \
        LG_CALL4(lg_layer_norm_with, lg_layer_norm_options, lg_layer_norm_takes_x_shape_w_b, V, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_layer_norm_with(lg_tensor *x, lg_shape shape, lg_tensor *w, lg_tensor *b,
                                            const lg_layer_norm_options *options);

/* Normalises with mean and var over each of `groups` groups of channels of x (N, C, ...) (PyTorch's F.group_norm). w
 * and b are (C), and C is a multiple of groups. Only N may be 0; if N is 1, each group has more than one element.
 * Example: lg_group_norm(x, 8, w, b) */
#define lg_group_norm(...)                                                                                             \
        LG_CALL4(lg_group_norm_with, lg_layer_norm_options, lg_group_norm_takes_x_groups_w_b, V, I, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_group_norm_with(lg_tensor *x, int64_t groups, lg_tensor *w, lg_tensor *b,
                                            const lg_layer_norm_options *options);

/* Normalises with mean and var over each channel, of more than one element, of each sample of x (N, C, L...) (PyTorch's
 * F.instance_norm with use_input_stats). w and b are (C).
 * Example: lg_instance_norm(x, NULL, NULL) */
#define lg_instance_norm(...)                                                                                          \
        LG_CALL3(lg_instance_norm_with, lg_layer_norm_options, lg_instance_norm_takes_x_w_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_instance_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b,
                                               const lg_layer_norm_options *options);

typedef struct lg_rms_norm_options {
        LG_OPTIONS_HEAD
        /* Added to the mean square; default: the distance from 1 to the next number of x's dtype; LG_ZERO for 0. */
        double eps LG_DEFAULT;
} lg_rms_norm_options;
/* Computes x / sqrt(mean(x^2) + eps) * w, with the mean over the last dimensions of x, at least one, which have the
 * given shape, as w does (PyTorch's F.rms_norm with its normalized_shape).
 * Example: lg_rms_norm(x, LG_SHAPE(16), w) */
#define lg_rms_norm(...)                                                                                               \
        LG_CALL3(lg_rms_norm_with, lg_rms_norm_options, lg_rms_norm_takes_x_shape_w, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rms_norm_with(lg_tensor *x, lg_shape shape, lg_tensor *w,
                                          const lg_rms_norm_options *options);

typedef struct lg_normalize_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT; /* the least norm to divide by; default 1e-12 */
} lg_normalize_options;
/* Divides x by its norm along one dimension: x / max(|x|, eps), where |x| = sqrt(sum(x^2)) (PyTorch's F.normalize with
 * p = 2). The divisor is at least 2e-38 (f64: 3e-308), so a line of zeros stays 0 and has a gradient.
 * Example: lg_normalize(x, 1) */
#define lg_normalize(...) LG_CALL2(lg_normalize_with, lg_normalize_options, lg_normalize_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_normalize_with(lg_tensor *x, int dim, const lg_normalize_options *options);

typedef struct lg_cosine_similarity_options {
        LG_OPTIONS_HEAD
        double eps LG_DEFAULT; /* the least norm to divide by; default 1e-8 */
} lg_cosine_similarity_options;
/* Computes the cosine of the angle between a and b along one dimension, which is removed: the sum of the products of
 * lg_normalize(a, dim) and lg_normalize(b, dim), broadcast to one shape (PyTorch's F.cosine_similarity).
 * Example: lg_cosine_similarity(x, y, -1) */
#define lg_cosine_similarity(...)                                                                                      \
        LG_CALL3(lg_cosine_similarity_with, lg_cosine_similarity_options, lg_cosine_similarity_takes_a_b_dim, V, V, I, \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cosine_similarity_with(lg_tensor *a, lg_tensor *b, int dim,
                                                   const lg_cosine_similarity_options *options);

typedef struct lg_pairwise_distance_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT;      /* order of the norm, as for lg_norm(); default 2 */
        double eps LG_DEFAULT;    /* added to the difference, so that the derivative is finite at 0; default 1e-6 */
        bool keep_dim LG_DEFAULT; /* whether the last dimension stays, of size 1; default false */
} lg_pairwise_distance_options;
/* Computes the p-norm of x - y + eps along the last dimension, which is removed; x and y are broadcast to one shape
 * (PyTorch's F.pairwise_distance).
 * Example: lg_pairwise_distance(x, y, .p = 1) */
#define lg_pairwise_distance(...)                                                                                      \
        LG_CALL2(lg_pairwise_distance_with, lg_pairwise_distance_options, lg_pairwise_distance_takes_x_y, V, V,        \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_pairwise_distance_with(lg_tensor *x, lg_tensor *y,
                                                   const lg_pairwise_distance_options *options);

typedef struct lg_local_response_norm_options {
        LG_OPTIONS_HEAD
        double alpha LG_DEFAULT; /* factor of the mean of the squares; default 1e-4; LG_ZERO for 0 */
        double beta LG_DEFAULT;  /* exponent; default 0.75; LG_ZERO for 0 */
        double k LG_DEFAULT;     /* added to the mean; default 1; LG_ZERO for 0 */
} lg_local_response_norm_options;
/* Divides x (N, C, ...), of a float dtype, by a power of the mean square over neighbouring channels (PyTorch's
 * F.local_response_norm): y[n, c] = x[n, c] / (k + alpha m[n, c])^beta, where m is the sum of x^2 over the `size`
 * channels from c - floor(size / 2) on, without those that x does not have, divided by size.
 * Example: lg_local_response_norm(x, 5, .k = 2) */
#define lg_local_response_norm(...)                                                                                    \
        LG_CALL2(lg_local_response_norm_with, lg_local_response_norm_options, lg_local_response_norm_takes_x_size, V,  \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_local_response_norm_with(lg_tensor *x, int64_t size,
                                                     const lg_local_response_norm_options *options);

/* ---- dropout ----
 *
 * Dropout sets elements to 0 at random, with a probability p in [0, 1]. As lg_batch_norm(), these functions are in
 * evaluation unless .training is set, and then return x itself (PyTorch's F.dropout trains by default). The random
 * numbers come from the context's generator in row-major order, so the same seed drops the same elements on every
 * device and in every layout. The result is x itself if nothing can be dropped.
 */

/* Options of lg_dropout(), lg_feature_dropout(), lg_alpha_dropout() and lg_feature_alpha_dropout(). */
typedef struct lg_dropout_options {
        LG_OPTIONS_HEAD
        bool training LG_DEFAULT; /* drops elements; default false: the result is x itself */
} lg_dropout_options;
/* Sets each element of x to 0 with probability p and multiplies the others by 1 / (1 - p).
 * Example: lg_dropout(x, 0.5, .training = lg_is_training(m)) */
#define lg_dropout(...) LG_CALL2(lg_dropout_with, lg_dropout_options, lg_dropout_takes_x_p, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options);

/* Multiplies each whole channel of x (N, C, ...) by 0 with probability p and by 1 / (1 - p) otherwise (PyTorch's
 * F.dropout1d, F.dropout2d and F.dropout3d).
 * Example: lg_feature_dropout(x, 0.2, .training = true) */
#define lg_feature_dropout(...)                                                                                        \
        LG_CALL2(lg_feature_dropout_with, lg_dropout_options, lg_feature_dropout_takes_x_p, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_feature_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options);

/* Sets each element of x, or each whole channel of x (N, C, ...), to the limit of SELU, -1.7581, with probability p and
 * computes a x + b of all elements, with the numbers a and b that keep mean 0 and variance 1 (PyTorch's F.alpha_dropout
 * and F.feature_alpha_dropout). It goes with lg_selu(). With p = 1 the result is 0.
 * Examples: lg_alpha_dropout(x, 0.1, .training = true), lg_feature_alpha_dropout(x, 0.2, .training = true) */
#define lg_alpha_dropout(...)                                                                                          \
        LG_CALL2(lg_alpha_dropout_with, lg_dropout_options, lg_alpha_dropout_takes_x_p, V, V, __VA_ARGS__)
#define lg_feature_alpha_dropout(...)                                                                                  \
        LG_CALL2(lg_feature_alpha_dropout_with, lg_dropout_options, lg_feature_alpha_dropout_takes_x_p, V, V,          \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_alpha_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options);
LG_API LG_NEW lg_tensor *lg_feature_alpha_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options);

LG_END_C
#endif
