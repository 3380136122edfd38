/* layers.c - layers without parameters: one op each. */
#include "nn.h"

static lg_tensor *flatten(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_flatten(x, 1, -1) : NULL;
}

lg_module *lg_nn_flatten(lg_ctx *c)
{
        return lg__module_new(c, "Flatten", flatten);
}

static lg_tensor *relu(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_relu(x) : NULL;
}

lg_module *lg_nn_relu(lg_ctx *c)
{
        return lg__module_new(c, "ReLU", relu);
}
