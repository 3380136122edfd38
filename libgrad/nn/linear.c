/* linear.c - x W^T + b. */
#include <math.h>
#include "nn.h"

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_tensor *x = lg__module_input(m, inputs);
        const lg__part *weight = m->parts;
        return x ? lg_linear(x, weight->tensor, weight->next ? weight->next->tensor : NULL) : NULL;
}

/* Weights first, then bias: the order in which PyTorch draws them. */
static bool fill(lg_module *m, int64_t in, const lg_linear_options *o)
{
        lg_ctx *c = m->object.ctx;
        double bound = in ? 1 / sqrt((double)in) : 0;
        lg_tensor *w = lg_uniform(c, -bound, bound, LG_SHAPE(o->out, in), .dtype = o->dtype, .device = o->device);
        if (!lg_module_add_parameter(m, "weight", w))
                return false;
        if (o->no_bias)
                return true;
        lg_tensor *b = lg_uniform(c, -bound, bound, LG_SHAPE(o->out), .dtype = o->dtype, .device = o->device);
        return lg_module_add_parameter(m, "bias", b);
}

lg_module *lg_nn_linear_(lg_ctx *c, int64_t in, lg_linear_options o)
{
        if (!lg__ok(c))
                return NULL;
        if (in < 0 || o.out < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_linear: %lld to %lld features; both must be 0 or more",
                                (long long)in, (long long)o.out);
        if (o.dtype && !lg__dtype_float(o.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "lg_nn_linear: dtype %s; parameters are floats",
                                lg_dtype_name(o.dtype));
        lg_random_state state = c->random;
        lg_module *m = lg__module_new(c, "Linear", forward);
        lg_scope scope = m ? lg_scope_begin(c) : (lg_scope){0};
        bool ok = scope.id && fill(m, in, &o);
        lg_scope_end(c, scope);
        if (ok)
                return m;
        c->random = state; /* a second attempt gives the same weights */
        return m ? lg__module_give_up(m) : NULL;
}
