/* sequential.c - modules one after the other. */
#include "nn.h"

/* An activation that the graph does not need is gone before the next layer but one runs. */
static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_ctx *c = m->object.ctx;
        lg_tensor *first = lg__module_input(m, inputs), *x = first;
        for (lg__part *p = m->parts; p && x; p = p->next) {
                lg_tensor *y = lg_forward(p->child, x);
                if (x != first && x != y && x->live == LG__LIVE && x->scope == c->scope)
                        lg__tensor_release(x);
                x = y;
        }
        return x;
}

lg_module *lg_nn_sequential_(lg_ctx *c, ...)
{
        lg_module *m = lg__module_new(c, "Sequential", forward);
        if (!m)
                return NULL;
        char name[16];
        bool ok = true;
        int i = 0;
        va_list args;
        va_start(args, c);
        for (void *child; ok && (child = va_arg(args, void *)) != LG_END; i++) {
                snprintf(name, sizeof name, "%d", i);
                ok = lg__module_attach(m, name, child, "lg_nn_sequential");
        }
        va_end(args);
        return ok ? m : lg__module_give_up(m);
}
