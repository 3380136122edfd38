/* models.h - networks that are written with libgrad. */
#ifndef LG_MODELS_H
#define LG_MODELS_H

#include <grad.h>

/* 784-128-10 with ReLU, for images (N, 1, 28, 28): scores (N, 10). */
lg_module *lg_model_mlp(lg_ctx *c);

#endif
