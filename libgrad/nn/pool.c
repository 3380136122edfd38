/* pool.c - MaxPool2d, AvgPool2d, AdaptiveAvgPool2d: one op each. */
#include "nn.h"

typedef struct pool {
        lg_tensor *(*op)(lg_tensor *x, int64_t kernel, const lg_pool_options *options);
        int64_t kernel;
        lg_pool_options o;
} pool;

typedef struct adaptive {
        int64_t size;
        lg_adaptive_pool_options o;
} adaptive;

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        const pool *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? k->op(x, k->kernel, &k->o) : NULL;
}

static lg_tensor *adaptive_avg_pool2d(lg_module *m, lg_list inputs, void *user)
{
        const adaptive *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_adaptive_avg_pool2d_with(x, k->size, &k->o) : NULL;
}

/* The options go on to the op at each forward: with the size that they have here, and without .indices, which are of
 * the caller's frame and gone by then. */
static lg_module *make(lg_ctx *c, const char *name, const char *type, pool k, const lg_pool_options *options)
{
        if (!lg__take(c, name, options, &k.o, sizeof k.o))
                return NULL;
        k.o.size_ = sizeof k.o;
        k.o.indices = NULL;
        return lg__module_with(c, type, forward, &k, sizeof k);
}

lg_module *lg_nn_max_pool2d_with(lg_ctx *c, int64_t kernel, const lg_pool_options *options)
{
        return make(c, "lg_nn_max_pool2d", "MaxPool2d", (pool){.op = lg_max_pool2d_with, .kernel = kernel}, options);
}

lg_module *lg_nn_avg_pool2d_with(lg_ctx *c, int64_t kernel, const lg_pool_options *options)
{
        return make(c, "lg_nn_avg_pool2d", "AvgPool2d", (pool){.op = lg_avg_pool2d_with, .kernel = kernel}, options);
}

lg_module *lg_nn_adaptive_avg_pool2d_with(lg_ctx *c, int64_t size, const lg_adaptive_pool_options *options)
{
        adaptive k = {.size = size};
        if (!lg__take(c, "lg_nn_adaptive_avg_pool2d", options, &k.o, sizeof k.o))
                return NULL;
        k.o.size_ = sizeof k.o;
        k.o.indices = NULL;
        return lg__module_with(c, "AdaptiveAvgPool2d", adaptive_avg_pool2d, &k, sizeof k);
}
