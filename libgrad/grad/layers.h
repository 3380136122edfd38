/* layers.h - the modules that come with libgrad. */
#ifndef LG_LAYERS_H
#define LG_LAYERS_H

#include "grad/nn.h"

LG_BEGIN

/* x W^T + b. W (out, in) and b (out) are uniform in +-1/sqrt(in), as in PyTorch. lg_nn_linear(c, 784, 10, .no_bias =
 * true) */
typedef struct lg_linear_options {
        int64_t out LG_DEFAULT;
        bool no_bias LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
} lg_linear_options;
#define lg_nn_linear(c, in, ...) lg_nn_linear_((c), (in), LG_INIT(lg_linear_options){.out = __VA_ARGS__})
LG_API lg_module *lg_nn_linear_(lg_ctx *c, int64_t in, lg_linear_options o);
/* All dimensions but the first as one. */
LG_API lg_module *lg_nn_flatten(lg_ctx *c);
LG_API lg_module *lg_nn_relu(lg_ctx *c);
/* One after the other; children are named "0", "1", ... A child that is NULL or has a parent is an error. */
#define lg_nn_sequential(...) lg_nn_sequential_(__VA_ARGS__, LG_END)
LG_API lg_module *lg_nn_sequential_(lg_ctx *c, ...);

LG_END_C
#endif
