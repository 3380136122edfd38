/* init.h - initialising parameters: constants, distributions, Xavier, Kaiming and orthogonal weights.
 *
 * Layers initialise their parameters as PyTorch's do. Use these functions to give parameters other first values:
 *
 *     lg_init_kaiming_normal(lg_parameter(net, "0.weight"));
 *     lg_init_constant(lg_parameter(net, "0.bias"), 0);
 *
 * Each function fills t in place and returns true. Nothing is recorded, so t may be a leaf that requires grad. Random
 * values come from the context's generator; see lg_seed(). Formulas and defaults are those of torch.nn.init.
 */
#ifndef LG_INIT_H
#define LG_INIT_H

#include "grad/nn.h"

LG_BEGIN

/* ---- constants and distributions ----
 *
 * t has a float dtype. Numbers are finite, bounds also in that dtype, and low is not above high. LG_ERR_STATE if t is
 * the result of a recorded op; LG_ERR_ARGUMENT if t is an expanded view, whose elements share memory.
 */

/* Fills t with: */
LG_API bool lg_init_constant(lg_tensor *t, double value);           /* one value */
LG_API bool lg_init_uniform(lg_tensor *t, double low, double high); /* uniform values from [low, high) */
LG_API bool lg_init_normal(lg_tensor *t, double mean, double std);  /* normal values; std is not negative */

/* Fills t with values from the normal distribution, cut off outside [low, high]: values outside the interval are drawn
 * again. std > 0, low < high, and part of the interval is within 2 std of the mean (else LG_ERR_ARGUMENT). */
LG_API bool lg_init_trunc_normal(lg_tensor *t, double mean, double std, double low, double high);

/* ---- initialisation by fan-in and fan-out ----
 *
 * t is a weight of two or more dimensions, (out, in) or (out, in, spatial dimensions...). Its fan_in is in times the
 * spatial sizes, and its fan_out is out times the spatial sizes. The fans say how many terms are added up in the
 * forward and in the backward, and the variance is chosen so that values or gradients keep their scale from layer to
 * layer. A uniform distribution of variance v is over [-sqrt(3 v), sqrt(3 v)). Errors are those of the section above.
 */

typedef struct lg_init_xavier_options {
        LG_OPTIONS_HEAD
        double gain LG_DEFAULT; /* a factor of all values; default 1; LG_ZERO for 0 */
} lg_init_xavier_options;
/* Fills t with values of mean 0 and variance 2 gain^2 / (fan_in + fan_out), for tanh or sigmoid (Glorot, Bengio 2010).
 * Examples: lg_init_xavier_uniform(w, .gain = 2), lg_init_xavier_normal(w) */
#define lg_init_xavier_uniform(...)                                                                                    \
        LG_CALL1(lg_init_xavier_uniform_with, lg_init_xavier_options, lg_init_xavier_uniform_takes_t, V, __VA_ARGS__)
LG_API bool lg_init_xavier_uniform_with(lg_tensor *t, const lg_init_xavier_options *options);
#define lg_init_xavier_normal(...)                                                                                     \
        LG_CALL1(lg_init_xavier_normal_with, lg_init_xavier_options, lg_init_xavier_normal_takes_t, V, __VA_ARGS__)
LG_API bool lg_init_xavier_normal_with(lg_tensor *t, const lg_init_xavier_options *options);

typedef struct lg_init_kaiming_options {
        LG_OPTIONS_HEAD
        double gain LG_DEFAULT;  /* a factor of all values; default sqrt(2 / (1 + slope^2)); LG_ZERO for 0 */
        double slope LG_DEFAULT; /* negative slope of the leaky ReLU that follows; default 0, ReLU */
        bool fan_out LG_DEFAULT; /* use fan_out, to keep the variance of gradients; default false, fan_in */
} lg_init_kaiming_options;
/* Fills t with values of mean 0 and variance gain^2 / fan_in or gain^2 / fan_out, for (leaky) ReLU (He et al. 2015).
 * Examples: lg_init_kaiming_uniform(w, .slope = 0.01), lg_init_kaiming_normal(w, .fan_out = true) */
#define lg_init_kaiming_uniform(...)                                                                                   \
        LG_CALL1(lg_init_kaiming_uniform_with, lg_init_kaiming_options, lg_init_kaiming_uniform_takes_t, V, __VA_ARGS__)
LG_API bool lg_init_kaiming_uniform_with(lg_tensor *t, const lg_init_kaiming_options *options);
#define lg_init_kaiming_normal(...)                                                                                    \
        LG_CALL1(lg_init_kaiming_normal_with, lg_init_kaiming_options, lg_init_kaiming_normal_takes_t, V, __VA_ARGS__)
LG_API bool lg_init_kaiming_normal_with(lg_tensor *t, const lg_init_kaiming_options *options);

typedef struct lg_init_orthogonal_options {
        LG_OPTIONS_HEAD
        double gain LG_DEFAULT; /* a factor of all values; default 1; LG_ZERO for 0 */
} lg_init_orthogonal_options;
/* Fills t with a random orthogonal matrix, times gain (Saxe et al. 2013): as a matrix of its first dimension by all
 * others, t has orthonormal rows or orthonormal columns, whichever are fewer. Computed in f64.
 * Example: lg_init_orthogonal(w) */
#define lg_init_orthogonal(...)                                                                                        \
        LG_CALL1(lg_init_orthogonal_with, lg_init_orthogonal_options, lg_init_orthogonal_takes_t, V, __VA_ARGS__)
LG_API bool lg_init_orthogonal_with(lg_tensor *t, const lg_init_orthogonal_options *options);

LG_END_C
#endif
