/* build.c - construction of built-in modules: the options that they store, parameters with initial values. */
#include <string.h>
#include "nn.h"

lg_module *lg__module_with(lg_ctx *c, const char *type, lg_forward_fn *forward, const void *config, size_t bytes)
{
        lg_module *m = lg__module_new(c, type, forward);
        if (!m || !bytes)
                return m;
        m->config = lg__alloc(c, bytes);
        if (!m->config)
                return lg__module_give_up(m);
        m->config_bytes = bytes;
        m->user = memcpy(m->config, config, bytes);
        return m;
}

lg_module *lg__module_build(lg_ctx *c, const char *type, lg_forward_fn *forward, const void *config, size_t bytes,
                            lg__fill_fn *fill, const void *options)
{
        if (!lg__ok(c))
                return NULL;
        lg_random_state state = c->random;
        lg_module *m = lg__module_with(c, type, forward, config, bytes);
        lg_scope scope = m ? lg_scope_begin(c) : (lg_scope){0};
        bool ok = scope.id && fill(m, options);
        lg_scope_end(c, scope);
        if (ok)
                return m;
        c->random = state; /* so that a second attempt draws the same weights */
        return m ? lg__object_destroy(m) : NULL;
}

bool lg__module_uniform(lg_module *m, const char *name, double bound, lg_shape shape, lg_dtype dtype, lg_device device)
{
        lg_tensor *t = lg_uniform(m->object.ctx, -bound, bound, shape, .dtype = dtype, .device = device);
        t = t && m->convolves ? lg__laid_for_device(t) : t;
        return lg_module_add_parameter(m, name, t) != NULL;
}

bool lg__module_constant(lg_module *m, lg__part_kind kind, const char *name, double value, lg_shape shape,
                         lg_dtype dtype, lg_device device)
{
        lg_tensor *t = lg_full(m->object.ctx, shape, value, .dtype = dtype, .device = device);
        return (kind == LG__BUFFER ? lg_module_add_buffer(m, name, t) : lg_module_add_parameter(m, name, t)) != NULL;
}

lg_tensor *lg__module_tensor(const lg_module *m, const char *name)
{
        lg__part *p = lg__module_part(m, name, strlen(name), LG__PARAMETER | LG__BUFFER | LG__COMPUTED);
        return p ? p->tensor : NULL;
}

bool lg__module_dtype(lg_ctx *c, const char *op, lg_dtype dtype)
{
        if (!dtype || lg__dtype_float(dtype))
                return true;
        return lg__fail(c, LG_ERR_DTYPE, "%s: dtype %s; parameters are floats", op, lg_dtype_name(dtype));
}
