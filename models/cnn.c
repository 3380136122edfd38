/* cnn.c - a network of two 3x3 convolutions, max pooling and two linear layers, for Fashion-MNIST. */
#include "models.h"

lg_module *lg_model_cnn(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_conv2d(c, 1, 32, 3), lg_nn_relu(c), lg_nn_conv2d(c, 32, 64, 3), lg_nn_relu(c),
                                lg_nn_max_pool2d(c, 2), lg_nn_flatten(c), lg_nn_linear(c, 64 * 12 * 12, 128),
                                lg_nn_relu(c), lg_nn_linear(c, 128, 10));
}
