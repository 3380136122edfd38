/* lenet.c - LeNet-5 (LeCun et al. 1998) with ReLU and max pooling. */
#include "models.h"

lg_module *lg_model_lenet(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_conv2d(c, 1, 6, 5, .padding = 2), lg_nn_relu(c), lg_nn_max_pool2d(c, 2),
                                lg_nn_conv2d(c, 6, 16, 5), lg_nn_relu(c), lg_nn_max_pool2d(c, 2), lg_nn_flatten(c),
                                lg_nn_linear(c, 16 * 5 * 5, 120), lg_nn_relu(c), lg_nn_linear(c, 120, 84),
                                lg_nn_relu(c), lg_nn_linear(c, 84, 10));
}
