/* init.h - filling parameters with first values. */
#ifndef LG_INIT_H
#define LG_INIT_H

#include "grad/nn.h"

LG_BEGIN

/* Each fills t in place with new values (a leaf that requires grad as well: nothing is recorded) and returns whether it
 * could. Formulas and defaults are those of torch.nn.init. Float dtypes; LG_ERR_STATE for a result in the graph. */
LG_API bool lg_init_constant(lg_tensor *t, double value);
LG_API bool lg_init_uniform(lg_tensor *t, double low, double high);
LG_API bool lg_init_normal(lg_tensor *t, double mean, double std);
/* Normal, but values outside [low, high] are drawn again; the interval must reach within 2 std of the mean. */
LG_API bool lg_init_trunc_normal(lg_tensor *t, double mean, double std, double low, double high);

/* Of a weight (out, in, spaces...): fan_in = in * spaces, fan_out = out * spaces; two dimensions or more.
 * Xavier (Glorot and Bengio 2010): variance 2 gain^2 / (fan_in + fan_out). */
typedef struct lg_init_options {
        LG_OPTIONS_HEAD
        double gain LG_DEFAULT;  /* xavier, orthogonal: 1; kaiming: sqrt(2 / (1 + slope^2)) */
        double slope LG_DEFAULT; /* kaiming: of the leaky ReLU that follows; 0 is ReLU */
        bool fan_out LG_DEFAULT; /* kaiming: keep the variance of gradients, not of values */
} lg_init_options;
#define lg_init_xavier_uniform(...)                                                                                    \
        LG_CALL1(lg_init_xavier_uniform_with, lg_init_options, lg_init_xavier_uniform_takes_t, __VA_ARGS__)
#define lg_init_xavier_normal(...)                                                                                     \
        LG_CALL1(lg_init_xavier_normal_with, lg_init_options, lg_init_xavier_normal_takes_t, __VA_ARGS__)
LG_API bool lg_init_xavier_uniform_with(lg_tensor *t, const lg_init_options *options);
LG_API bool lg_init_xavier_normal_with(lg_tensor *t, const lg_init_options *options);
/* Kaiming (He et al. 2015): variance gain^2 / fan. lg_init_kaiming_normal(w, .fan_out = true) */
#define lg_init_kaiming_uniform(...)                                                                                   \
        LG_CALL1(lg_init_kaiming_uniform_with, lg_init_options, lg_init_kaiming_uniform_takes_t, __VA_ARGS__)
#define lg_init_kaiming_normal(...)                                                                                    \
        LG_CALL1(lg_init_kaiming_normal_with, lg_init_options, lg_init_kaiming_normal_takes_t, __VA_ARGS__)
LG_API bool lg_init_kaiming_uniform_with(lg_tensor *t, const lg_init_options *options);
LG_API bool lg_init_kaiming_normal_with(lg_tensor *t, const lg_init_options *options);
/* t as a matrix (size 0, all others) gets orthonormal rows or columns (whichever are fewer), times gain (Saxe et al.
 * 2013). */
#define lg_init_orthogonal(...)                                                                                        \
        LG_CALL1(lg_init_orthogonal_with, lg_init_options, lg_init_orthogonal_takes_t, __VA_ARGS__)
LG_API bool lg_init_orthogonal_with(lg_tensor *t, const lg_init_options *options);

LG_END_C
#endif
