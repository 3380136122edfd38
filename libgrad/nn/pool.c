/* pool.c - pooling, shuffling of pixels and channels, and padding: layers of one op each, without parameters. */
#include <string.h>
#include "nn.h"

/* Defines the record, forward and constructor of a layer of op lg_`of`, which takes options of type `taken`. The op's
 * options are stored with size_ set to the size of their struct in this library, because lg_`of`_with() checks it. */
#define POOLING(of, type, taken, ...)                                                                                  \
        typedef struct of {                                                                                            \
                int64_t size;                                                                                          \
                lg_##of##_options o;                                                                                   \
        } of;                                                                                                          \
        static lg_tensor *forward_##of(lg_module *m, lg_list inputs, void *user)                                       \
        {                                                                                                              \
                const of *k = user;                                                                                    \
                lg_tensor *x = lg__module_input(m, inputs);                                                            \
                return x ? lg_##of##_with(x, k->size, &k->o) : NULL;                                                   \
        }                                                                                                              \
        lg_module *lg_nn_##of##_with(lg_ctx *c, int64_t size, const taken *options)                                    \
        {                                                                                                              \
                taken o;                                                                                               \
                if (!lg__take(c, "lg_nn_" #of, options, &o, sizeof o))                                                 \
                        return NULL;                                                                                   \
                of k = {size, {__VA_ARGS__}};                                                                          \
                k.o.size_ = sizeof k.o;                                                                                \
                return lg__module_with(c, type, forward_##of, &k, sizeof k);                                           \
        }
#define WINDOWS .stride = o.stride, .padding = o.padding, .ceil_mode = o.ceil_mode
#define SIDES .kernels = o.kernels, .strides = o.strides, .paddings = o.paddings
#define COUNTED .no_count_padding = o.no_count_padding
POOLING(max_pool1d, "MaxPool1d", lg_max_pool1d_layer_options, WINDOWS, .dilation = o.dilation)
POOLING(max_pool2d, "MaxPool2d", lg_max_pool2d_layer_options, WINDOWS, SIDES, .dilation = o.dilation,
        .dilations = o.dilations)
POOLING(max_pool3d, "MaxPool3d", lg_max_pool3d_layer_options, WINDOWS, SIDES, .dilation = o.dilation,
        .dilations = o.dilations)
POOLING(avg_pool1d, "AvgPool1d", lg_avg_pool1d_options, WINDOWS, COUNTED)
POOLING(avg_pool2d, "AvgPool2d", lg_avg_pool2d_options, WINDOWS, SIDES, COUNTED, .divisor = o.divisor)
POOLING(avg_pool3d, "AvgPool3d", lg_avg_pool3d_options, WINDOWS, SIDES, COUNTED, .divisor = o.divisor)
POOLING(adaptive_avg_pool2d, "AdaptiveAvgPool2d", lg_adaptive_avg_pool2d_options, .sizes = o.sizes)
POOLING(adaptive_avg_pool3d, "AdaptiveAvgPool3d", lg_adaptive_avg_pool3d_options, .sizes = o.sizes)
POOLING(adaptive_max_pool2d, "AdaptiveMaxPool2d", lg_adaptive_avg_pool2d_options, .sizes = o.sizes)
POOLING(adaptive_max_pool3d, "AdaptiveMaxPool3d", lg_adaptive_avg_pool3d_options, .sizes = o.sizes)

#define ONE_NUMBER(of, type)                                                                                           \
        static lg_tensor *forward_##of(lg_module *m, lg_list inputs, void *user)                                       \
        {                                                                                                              \
                lg_tensor *x = lg__module_input(m, inputs);                                                            \
                return x ? lg_##of(x, *(const int64_t *)user) : NULL;                                                  \
        }                                                                                                              \
        lg_module *lg_nn_##of(lg_ctx *c, int64_t size)                                                                 \
        {                                                                                                              \
                return lg__module_with(c, type, forward_##of, &size, sizeof size);                                     \
        }
ONE_NUMBER(adaptive_avg_pool1d, "AdaptiveAvgPool1d")
ONE_NUMBER(adaptive_max_pool1d, "AdaptiveMaxPool1d")
ONE_NUMBER(pixel_shuffle, "PixelShuffle")
ONE_NUMBER(pixel_unshuffle, "PixelUnshuffle")
ONE_NUMBER(channel_shuffle, "ChannelShuffle")

typedef struct pad {
        lg_pad_options o;
        int64_t count, pads[2 * LG_MAX_DIMS];
} pad;

static lg_tensor *forward_pad(lg_module *m, lg_list inputs, void *user)
{
        const pad *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_pad_with(x, LG_INTS_OF(k->count, k->pads), &k->o) : NULL;
}

lg_module *lg_nn_pad_with(lg_ctx *c, lg_ints_in pads, const lg_pad_options *options)
{
        pad k = {.count = pads.count};
        if (!lg__take(c, "lg_nn_pad", options, &k.o, sizeof k.o) ||
            !lg__list_ok(c, "lg_nn_pad", pads.count, pads.items))
                return NULL;
        if (pads.count % 2 || pads.count > 2 * LG_MAX_DIMS)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_pad: %lld pads; they are pairs, one a dimension, at most %d",
                                (long long)pads.count, LG_MAX_DIMS);
        if (pads.count)
                memcpy(k.pads, pads.items, (size_t)pads.count * sizeof *k.pads);
        k.o.size_ = sizeof k.o;
        return lg__module_with(c, "Pad", forward_pad, &k, sizeof k);
}
