/* parametrize.h - tensors of modules that are computed from others in each forward: weight norm, spectral norm, own
 * ones.
 *
 * As in torch.nn.utils.parametrize, the parameter "weight" of a module becomes "parametrizations.weight.original",
 * which is trained and saved, and the module's forward reads the result of a module that is applied to it:
 *
 *     lg_weight_norm(lg_child_named(net, "fc"), "weight");
 *     lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
 *
 * An optimiser is made afterwards, since the parameters are others then. The functions return false with an error if m
 * has no such parameter (LG_ERR_ARGUMENT), or while m runs (LG_ERR_STATE). Modules that read a tensor outside of their
 * own forward do not see the computed one.
 */
#ifndef LG_PARAMETRIZE_H
#define LG_PARAMETRIZE_H

#include "grad/nn.h"

LG_BEGIN

/* Lets the forward of m read f(t) where it read its parameter t of that name; m owns f from then on. f gives a tensor
 * of t's shape and dtype (else LG_ERR_SHAPE or LG_ERR_DTYPE). t becomes "parametrizations.NAME.original" and keeps its
 * values, f "parametrizations.NAME.0". A second call adds f "1", which is applied to the result of "0".
 * Example: lg_parametrize(m, "weight", lg_nn_tanh(c)) */
LG_API bool lg_parametrize(lg_module *m, const char *name, lg_module *f);

typedef struct lg_weight_norm_options {
        LG_OPTIONS_HEAD
        int64_t dim LG_DEFAULT; /* dimension with a length for each index; default 0 */
        bool whole
                LG_DEFAULT; /* whether there is one length for the whole tensor (PyTorch's dim=None); default false */
} lg_weight_norm_options;
/* Splits the parameter into lengths g ("parametrizations.NAME.original0") and directions v ("original1"), of which the
 * forward computes g v / |v|; |v| is the 2-norm over the dimensions other than .dim (Salimans and Kingma, 2016). v is
 * the former parameter.
 * Example: lg_weight_norm(m, "weight", .dim = 1) */
#define lg_weight_norm(...)                                                                                            \
        LG_CALL2(lg_weight_norm_with, lg_weight_norm_options, lg_weight_norm_takes_m_name, V, V, __VA_ARGS__)
LG_API bool lg_weight_norm_with(lg_module *m, const char *name, const lg_weight_norm_options *options);

typedef struct lg_spectral_norm_options {
        LG_OPTIONS_HEAD
        int64_t dim LG_DEFAULT; /* dimension that is the rows of the matrix; default 0 (1: transposed convolutions) */
        int64_t iterations LG_DEFAULT; /* steps of the power method in each training forward; default 1 */
        double eps LG_DEFAULT;         /* least norm to divide by; default 1e-12 */
} lg_spectral_norm_options;
/* Divides the parameter, as a matrix of the rows .dim, by its greatest singular value, which the power method estimates
 * (Miyato et al., 2018). The estimate's vectors are the buffers "parametrizations.NAME.0._u" and "_v"; they begin
 * random and are improved by 15 steps at once. A parameter of one dimension is divided by its 2-norm.
 * Example: lg_spectral_norm(m, "weight", .iterations = 2) */
#define lg_spectral_norm(...)                                                                                          \
        LG_CALL2(lg_spectral_norm_with, lg_spectral_norm_options, lg_spectral_norm_takes_m_name, V, V, __VA_ARGS__)
LG_API bool lg_spectral_norm_with(lg_module *m, const char *name, const lg_spectral_norm_options *options);

/* How an orthogonal matrix is made of a lower triangular x. */
typedef enum lg_orthogonal_map {
        LG_ORTHOGONAL_AUTO = 0,        /* the exponential of square matrices, else reflectors */
        LG_ORTHOGONAL_MATRIX_EXP = 1,  /* e^a of the skew-symmetric a = x - x^T */
        LG_ORTHOGONAL_CAYLEY = 2,      /* (1 - a / 2)^-1 (1 + a / 2) */
        LG_ORTHOGONAL_HOUSEHOLDER = 3, /* the product of the reflectors whose vectors are x's columns */
} lg_orthogonal_map;
typedef struct lg_orthogonal_options {
        LG_OPTIONS_HEAD
        lg_orthogonal_map map LG_DEFAULT; /* default LG_ORTHOGONAL_AUTO */
} lg_orthogonal_options;
/* Makes the columns of the matrices in the last two dimensions of the parameter orthonormal, or their rows if there are
 * more columns than rows (PyTorch's parametrizations.orthogonal; Lezcano, 2019). The matrix is the buffer
 * "parametrizations.NAME.0.base" times the map's; it begins as the parameter made orthonormal by lg_qr(), and the new
 * parameter as minus the identity.
 * Example: lg_orthogonal(m, "weight", .map = LG_ORTHOGONAL_CAYLEY) */
#define lg_orthogonal(...)                                                                                             \
        LG_CALL2(lg_orthogonal_with, lg_orthogonal_options, lg_orthogonal_takes_m_name, V, V, __VA_ARGS__)
LG_API bool lg_orthogonal_with(lg_module *m, const char *name, const lg_orthogonal_options *options);

/* Ends the parametrizations of that tensor: a parameter of the old name with the computed values takes their place.
 * Example: lg_remove_parametrizations(m, "weight") */
LG_API bool lg_remove_parametrizations(lg_module *m, const char *name);

LG_END_C
#endif
