/* resnet.c - ResNet-18 for small images (He et al. 2015): a 3x3 stem without pooling, four stages of two blocks. */
#include "models.h"

static lg_module *conv_norm(lg_ctx *c, int64_t in, int64_t out, int64_t kernel, int64_t stride)
{
        return lg_nn_sequential(
                c, lg_nn_conv2d(c, in, out, kernel, .stride = stride, .padding = kernel / 2, .no_bias = true),
                lg_nn_batch_norm2d(c, out));
}

/* Two convolutions added to the identity, or to a 1x1 convolution if the shape changes; then ReLU. */
static lg_module *block(lg_ctx *c, int64_t in, int64_t out, int64_t stride)
{
        lg_module *body =
                lg_nn_sequential(c, conv_norm(c, in, out, 3, stride), lg_nn_relu(c), conv_norm(c, out, out, 3, 1));
        lg_module *shortcut = stride != 1 || in != out ? conv_norm(c, in, out, 1, stride) : NULL;
        return lg_nn_sequential(c, lg_nn_residual(c, body, .shortcut = shortcut), lg_nn_relu(c));
}

lg_module *lg_model_resnet18(lg_ctx *c, int64_t channels, int64_t classes)
{
        lg_module *net = lg_nn_sequential(c, conv_norm(c, channels, 64, 3, 1), lg_nn_relu(c));
        int64_t in = 64;
        for (int stage = 0; stage < 4; stage++) {
                int64_t out = (int64_t)64 << stage;
                lg_module_append(net, block(c, in, out, stage ? 2 : 1));
                lg_module_append(net, block(c, out, out, 1));
                in = out;
        }
        lg_module_append(net, lg_nn_adaptive_avg_pool2d(c, 1));
        lg_module_append(net, lg_nn_flatten(c));
        lg_module_append(net, lg_nn_linear(c, 512, classes));
        return net;
}
