/* models.h - example networks, written with libgrad. */
#ifndef LG_MODELS_H
#define LG_MODELS_H

#include <grad.h>

/* Each network maps images (N, 1, 28, 28) to scores (N, 10), but resnet18 (N, channels, H, W) to (N, classes). */
lg_module *lg_model_mlp(lg_ctx *c);   /* 784-128-10 with ReLU */
lg_module *lg_model_lenet(lg_ctx *c); /* LeNet-5 with ReLU and max pooling */
lg_module *lg_model_cnn(lg_ctx *c);   /* 3x3 convolutions with 32 and 64 channels, pooling, 128 hidden units */
lg_module *lg_model_vgg(lg_ctx *c);   /* VGG: three stages of two 3x3 convolutions with batch norm, then dropout */
lg_module *lg_model_resnet18(lg_ctx *c, int64_t channels, int64_t classes); /* CIFAR style: a 3x3 stem, no pooling */

/* Returns a new network for Fashion-MNIST by its name, or NULL with LG_ERR_ARGUMENT if the name is unknown. */
lg_module *lg_model(lg_ctx *c, const char *name);
/* Returns the name of the i-th network, or NULL if i is out of range. */
const char *lg_model_name(int i);
/* Returns all names as text: "mlp, lenet, ...". */
const char *lg_model_names(void);

#endif
