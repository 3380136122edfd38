/* sequential.c - modules made of modules: one after the other, a list, a block with a shortcut. */
#include <string.h>
#include "nn.h"

/* A Linear and the ReLU behind it are one op. */
static bool fuses(const lg__part *p)
{
        const lg_module *linear = p->child, *relu = p->next ? p->next->child : NULL;
        return linear && relu && linear->forward == lg__linear_forward && relu->forward == lg__relu_forward;
}

static lg_tensor *forward_linear_relu(lg_module *linear, lg_module *relu, lg_tensor *x)
{
        lg_tensor *y = lg__forward_as(linear, lg__linear_relu_forward, x);
        if (y) {
                relu->shape = y->at.shape;
                relu->has_shape = true;
                relu->kept_bytes = relu->most_bytes = 0;
        }
        return y;
}

/* An activation that the graph does not need is gone before the next layer but one runs. */
static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_ctx *c = m->object.ctx;
        lg_tensor *first = lg__module_input(m, inputs), *x = first;
        for (lg__part *p = m->parts; p && x; p = p->next) {
                bool fused = fuses(p);
                lg_tensor *y = fused ? forward_linear_relu(p->child, p->next->child, x) : lg_forward(p->child, x);
                p = fused ? p->next : p;
                if (x != first && x != y && x->live == LG__LIVE && x->scope == c->scope)
                        lg__tensor_release(x);
                x = y;
        }
        return x;
}

static lg_tensor *no_forward(lg_module *m, lg_list inputs, void *user)
{
        (void)inputs, (void)user;
        return lg__fail(m->object.ctx, LG_ERR_STATE,
                        "lg_forward: a ModuleList has no forward of its own; run its children: lg_child(list, i)");
}

/* Takes children up to LG_END under the next numbers. */
static lg_module *take_all(lg_module *m, const char *op, lg_module *const *children)
{
        char name[24];
        bool ok = m != NULL;
        for (int i = 0; ok && children && children[i] != LG_END; i++) {
                snprintf(name, sizeof name, "%d", i);
                ok = lg__module_attach(m, name, children[i], op);
        }
        return ok ? m : m ? lg__module_give_up(m) : NULL;
}

lg_module *lg_nn_sequential_list(lg_ctx *c, lg_module *const *children)
{
        return take_all(lg__module_new(c, "Sequential", forward), "lg_nn_sequential", children);
}

lg_module *lg_nn_module_list_list(lg_ctx *c, lg_module *const *children)
{
        return take_all(lg__module_new(c, "ModuleList", no_forward), "lg_nn_module_list", children);
}

lg_module *lg_module_append(lg_module *m, lg_module *child)
{
        if (!m || m->object.ctx->error)
                return NULL;
        if (m->forward != forward && m->forward != no_forward)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                                "lg_module_append: a %s has no numbered children; lg_module_add() takes a name",
                                m->type);
        char name[24];
        snprintf(name, sizeof name, "%d", lg_child_count(m));
        return lg__module_attach(m, name, child, "lg_module_append") ? child : NULL;
}

/* ---- a block with a shortcut ---- */

static lg_tensor *forward_residual(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_tensor *x = lg__module_input(m, inputs);
        lg__part *block = m->parts, *shortcut = block->next;
        lg_tensor *y = x ? lg_forward(block->child, x) : NULL;
        lg_tensor *s = !y ? NULL : shortcut ? lg_forward(shortcut->child, x) : x;
        return s ? lg_add(y, s) : NULL;
}

lg_module *lg_nn_residual_with(lg_ctx *c, lg_module *block, const lg_residual_options *options)
{
        lg_residual_options o;
        lg_module *m = lg__take(c, "lg_nn_residual", options, &o, sizeof o)
                               ? lg__module_new(c, "Residual", forward_residual)
                               : NULL;
        if (!m)
                return NULL;
        bool ok = lg__module_attach(m, "block", block, "lg_nn_residual") &&
                  (!o.shortcut || lg__module_attach(m, "shortcut", o.shortcut, "lg_nn_residual"));
        return ok ? m : lg__module_give_up(m);
}
