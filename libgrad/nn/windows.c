/* windows.c - layers of one op each, without parameters: unfold, fold, L^p pooling, unpooling, fractional pooling, and
 * local response normalisation. */
#include "nn.h"

#define IS(...) __VA_ARGS__
/* Defines the record and the constructor of a layer, whose forward runs `run`. `numbers` are the constructor's
 * parameters, which `stored` puts into the record k. */
#define LAYER(of, type, run, numbers, stored)                                                                          \
        typedef struct of {                                                                                            \
                double p;                                                                                              \
                int64_t size, kernel;                                                                                  \
                lg_##of##_options o;                                                                                   \
        } of;                                                                                                          \
        static lg_tensor *forward_##of(lg_module *m, lg_list inputs, void *user)                                       \
        {                                                                                                              \
                const of *k = user;                                                                                    \
                IS run                                                                                                 \
        }                                                                                                              \
        lg_module *lg_nn_##of##_with(lg_ctx *c, IS numbers, const lg_##of##_options *options)                          \
        {                                                                                                              \
                of k = {IS stored};                                                                                    \
                if (!lg__take(c, "lg_nn_" #of, options, &k.o, sizeof k.o))                                             \
                        return NULL;                                                                                   \
                k.o.size_ = sizeof k.o;                                                                                \
                return lg__module_with(c, type, forward_##of, &k, sizeof k);                                           \
        }
#define ONE(...) (lg_tensor *x = lg__module_input(m, inputs); return x ? __VA_ARGS__ : NULL;)
LAYER(unfold, "Unfold", ONE(lg_unfold_with(x, k->kernel, &k->o)), (int64_t kernel), (.kernel = kernel))
LAYER(fold, "Fold", ONE(lg_fold_with(x, k->size, k->kernel, &k->o)), (int64_t size, int64_t kernel),
      (.size = size, .kernel = kernel))
LAYER(local_response_norm, "LocalResponseNorm", ONE(lg_local_response_norm_with(x, k->size, &k->o)), (int64_t size),
      (.size = size))
#define LP(of, type)                                                                                                   \
        LAYER(of, type, ONE(lg_##of##_with(x, k->p, k->kernel, &k->o)), (double p, int64_t kernel),                    \
              (.p = p, .kernel = kernel))
LP(lp_pool1d, "LPPool1d")
LP(lp_pool2d, "LPPool2d")
LP(lp_pool3d, "LPPool3d")

static bool has_two(const lg_module *m, lg_list inputs)
{
        return inputs.count == 2 ||
               lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward: %s takes x and indices, %lld inputs were given",
                        m->type, (long long)inputs.count);
}
#define UNPOOL(of, type)                                                                                               \
        LAYER(of, type,                                                                                                \
              (return has_two(m, inputs) ? lg_##of##_with(inputs.items[0], inputs.items[1], k->kernel, &k->o)          \
                                         : NULL;),                                                                     \
              (int64_t kernel), (.kernel = kernel))
UNPOOL(max_unpool1d, "MaxUnpool1d")
UNPOOL(max_unpool2d, "MaxUnpool2d")
UNPOOL(max_unpool3d, "MaxUnpool3d")

/* ---- fractional pooling, with a copy of the list of ratios ---- */

static bool copy_ratios(lg_ctx *c, const char *name, lg_numbers given, double ratios[3])
{
        if (!lg__list_ok(c, name, given.count, given.items))
                return false;
        if (given.count > 3)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld ratios; there is one for each side", name,
                                (long long)given.count);
        for (int64_t i = 0; i < given.count; i++)
                ratios[i] = given.items[i];
        return true;
}
#define FRACTIONAL(of, type)                                                                                           \
        typedef struct of {                                                                                            \
                int64_t kernel;                                                                                        \
                double ratios[3];                                                                                      \
                lg_##of##_layer_options o;                                                                             \
        } of;                                                                                                          \
        static lg_tensor *forward_##of(lg_module *m, lg_list inputs, void *user)                                       \
        {                                                                                                              \
                const of *k = user;                                                                                    \
                lg_tensor *x = lg__module_input(m, inputs);                                                            \
                const lg_numbers ratios = LG_NUMBERS_OF(k->o.ratios.count, k->ratios);                                 \
                return x ? lg_##of(x, k->kernel, .size = k->o.size, .sizes = k->o.sizes, .ratio = k->o.ratio,          \
                                   .ratios = ratios, .kernels = k->o.kernels)                                          \
                         : NULL;                                                                                       \
        }                                                                                                              \
        lg_module *lg_nn_##of##_with(lg_ctx *c, int64_t kernel, const lg_##of##_layer_options *options)                \
        {                                                                                                              \
                of k = {.kernel = kernel};                                                                             \
                if (!lg__take(c, "lg_nn_" #of, options, &k.o, sizeof k.o) ||                                           \
                    !copy_ratios(c, "lg_nn_" #of, k.o.ratios, k.ratios))                                               \
                        return NULL;                                                                                   \
                return lg__module_with(c, type, forward_##of, &k, sizeof k);                                           \
        }
FRACTIONAL(fractional_max_pool2d, "FractionalMaxPool2d")
FRACTIONAL(fractional_max_pool3d, "FractionalMaxPool3d")
