/* vgg.c - a small VGG (Simonyan and Zisserman 2014) with batch normalisation and dropout. */
#include "models.h"

static void stage(lg_ctx *c, lg_module *net, int64_t in, int64_t out)
{
        for (int i = 0; i < 2; i++) {
                lg_module_append(net, lg_nn_conv2d(c, i ? out : in, out, 3, .padding = 1, .no_bias = true));
                lg_module_append(net, lg_nn_batch_norm2d(c, out));
                lg_module_append(net, lg_nn_relu(c));
        }
        lg_module_append(net, lg_nn_max_pool2d(c, 2));
}

lg_module *lg_model_vgg(lg_ctx *c)
{
        lg_module *net = lg_nn_sequential(c);
        stage(c, net, 1, 32);
        stage(c, net, 32, 64);
        stage(c, net, 64, 128);
        lg_module_append(net, lg_nn_flatten(c));
        lg_module_append(net, lg_nn_linear(c, 128 * 3 * 3, 256));
        lg_module_append(net, lg_nn_relu(c));
        lg_module_append(net, lg_nn_dropout(c, 0.5));
        lg_module_append(net, lg_nn_linear(c, 256, 10));
        return net;
}
