/* mlp.c - a perceptron with one hidden layer, for Fashion-MNIST. */
#include "models.h"

lg_module *lg_model_mlp(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 784, 128), lg_nn_relu(c),
                                lg_nn_linear(c, 128, 10));
}
