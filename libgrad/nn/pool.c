/* pool.c - MaxPool2d, AvgPool2d, AdaptiveAvgPool2d: one op each. */
#include "nn.h"

static lg_tensor *max_pool2d(lg_module *m, lg_list inputs, void *user)
{
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_max_pool2d_(x, *(const lg_pool_options *)user) : NULL;
}

static lg_tensor *avg_pool2d(lg_module *m, lg_list inputs, void *user)
{
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_avg_pool2d_(x, *(const lg_pool_options *)user) : NULL;
}

static lg_tensor *adaptive_avg_pool2d(lg_module *m, lg_list inputs, void *user)
{
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_adaptive_avg_pool2d_(x, *(const lg_adaptive_pool_options *)user) : NULL;
}

lg_module *lg_nn_max_pool2d_(lg_ctx *c, lg_pool_options o)
{
        o.indices = NULL; /* of the caller's frame, which is gone when the module runs */
        return lg__module_with(c, "MaxPool2d", max_pool2d, &o, sizeof o);
}

lg_module *lg_nn_avg_pool2d_(lg_ctx *c, lg_pool_options o)
{
        return lg__module_with(c, "AvgPool2d", avg_pool2d, &o, sizeof o);
}

lg_module *lg_nn_adaptive_avg_pool2d_(lg_ctx *c, lg_adaptive_pool_options o)
{
        return lg__module_with(c, "AdaptiveAvgPool2d", adaptive_avg_pool2d, &o, sizeof o);
}
