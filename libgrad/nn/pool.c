/* pool.c - MaxPool2d, AvgPool2d, AdaptiveAvgPool2d: one op each. */
#include "nn.h"

/* Defines the record, forward and constructor of a layer of op lg_`of`. The op's options are stored with size_ set to
 * the size of their struct in this library, because lg_`of`_with() checks it. */
#define POOLING(of, type, op_options)                                                                                  \
        typedef struct of {                                                                                            \
                int64_t size;                                                                                          \
                op_options o;                                                                                          \
        } of;                                                                                                          \
        static lg_tensor *forward_##of(lg_module *m, lg_list inputs, void *user)                                       \
        {                                                                                                              \
                const of *k = user;                                                                                    \
                lg_tensor *x = lg__module_input(m, inputs);                                                            \
                return x ? lg_##of##_with(x, k->size, &k->o) : NULL;                                                   \
        }                                                                                                              \
        static lg_module *make_##of(lg_ctx *c, of k)                                                                   \
        {                                                                                                              \
                k.o.size_ = sizeof k.o;                                                                                \
                return lg__module_with(c, type, forward_##of, &k, sizeof k);                                           \
        }
POOLING(max_pool2d, "MaxPool2d", lg_max_pool2d_options)
POOLING(avg_pool2d, "AvgPool2d", lg_avg_pool2d_options)
POOLING(adaptive_avg_pool2d, "AdaptiveAvgPool2d", lg_adaptive_avg_pool2d_options)

lg_module *lg_nn_max_pool2d_with(lg_ctx *c, int64_t kernel, const lg_max_pool2d_layer_options *options)
{
        lg_max_pool2d_layer_options o;
        if (!lg__take(c, "lg_nn_max_pool2d", options, &o, sizeof o))
                return NULL;
        return make_max_pool2d(c, (max_pool2d){kernel,
                                               {.stride = o.stride,
                                                .padding = o.padding,
                                                .dilation = o.dilation,
                                                .ceil_mode = o.ceil_mode,
                                                .kernels = o.kernels,
                                                .strides = o.strides,
                                                .paddings = o.paddings,
                                                .dilations = o.dilations}});
}

lg_module *lg_nn_avg_pool2d_with(lg_ctx *c, int64_t kernel, const lg_avg_pool2d_options *options)
{
        avg_pool2d k = {.size = kernel};
        return lg__take(c, "lg_nn_avg_pool2d", options, &k.o, sizeof k.o) ? make_avg_pool2d(c, k) : NULL;
}

lg_module *lg_nn_adaptive_avg_pool2d_with(lg_ctx *c, int64_t size, const lg_adaptive_avg_pool2d_options *options)
{
        adaptive_avg_pool2d k = {.size = size};
        return lg__take(c, "lg_nn_adaptive_avg_pool2d", options, &k.o, sizeof k.o) ? make_adaptive_avg_pool2d(c, k)
                                                                                   : NULL;
}
