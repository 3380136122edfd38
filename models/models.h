/* models.h - networks that are written with libgrad. */
#ifndef LG_MODELS_H
#define LG_MODELS_H

#include <grad.h>

/* Each takes images (N, 1, 28, 28) and gives scores (N, 10), but for resnet18 (N, channels, H, W), (N, classes). */
lg_module *lg_model_mlp(lg_ctx *c);   /* 784-128-10 with ReLU */
lg_module *lg_model_lenet(lg_ctx *c); /* LeNet-5 with ReLU and maximum pooling */
lg_module *lg_model_cnn(lg_ctx *c);   /* 3x3 convolutions to 32 and 64 channels, pooling, 128 */
lg_module *lg_model_vgg(lg_ctx *c);   /* three stages of two 3x3 convolutions with batch norm, dropout */
lg_module *lg_model_resnet18(lg_ctx *c, int64_t channels, int64_t classes); /* CIFAR style: a 3x3 stem, no pooling */

/* One of the above for Fashion-MNIST by its name; NULL and LG_ERR_ARGUMENT if there is none. */
lg_module *lg_model(lg_ctx *c, const char *name);
/* The name of the i-th of them; NULL: there are not so many. */
const char *lg_model_name(int i);
/* "mlp, lenet, ..." */
const char *lg_model_names(void);

#endif
