/* forward.c - runs a module in a scope of its own. */
#include <string.h>
#include "nn.h"

#define MAX_INPUTS 16

/* Names the module in the message of an error that arose in it; the innermost module does so first. */
static void tell_where(const lg_module *m)
{
        lg_ctx *c = m->object.ctx;
        char path[LG__PATH];
        size_t used = strlen(c->message);
        if (strstr(c->message, "in module "))
                return;
        lg__module_path(m, path);
        if (*path)
                snprintf(c->message + used, sizeof c->message - used, " (in module \"%s\", %s)", path, m->type);
        else
                snprintf(c->message + used, sizeof c->message - used, " (in module %s)", m->type);
}

static bool in_scope(const lg__scope *s, const lg_tensor *t)
{
        for (; s; s = s->parent) {
                if (s == t->scope)
                        return true;
        }
        return false;
}

/* y goes to the scope around; what else was made in the module's scope goes with it. y may be older than that scope. */
static lg_tensor *leave(lg_ctx *c, lg_scope scope, const lg__scope *outer, lg_tensor *y)
{
        bool mine = y && y->owner == LG__OWNER_SCOPE && !in_scope(outer, y);
        if (mine)
                lg__tensor_own(y);
        bool ended = lg_scope_end(c, scope);
        if (mine)
                lg__tensor_disown(y);
        return ended && !c->error ? y : NULL; /* release functions may have set an error */
}

static lg_tensor *run(lg_module *m, lg_forward_fn *forward, lg_list inputs)
{
        lg_ctx *c = m->object.ctx;
        const lg__scope *outer = c->scope;
        lg__measure measure = lg__measure_begin(c, inputs);
        lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return NULL;
        lg_module *outer_module = c->module;
        c->module = m;
        m->running++;
        lg_tensor *y = forward(m, inputs, m->user);
        c->module = outer_module;
        if (!c->error && !y)
                lg__fail(c, LG_ERR_STATE, "lg_forward: the forward of %s returned NULL without an error", m->type);
        if (c->error || !lg__in_context(c, y, "lg_forward", "the result") || !lg__check(y, "lg_forward", "the result"))
                y = NULL;
        y = leave(c, scope, outer, y);
        lg__measure_end(&measure, m);
        if (y) {
                m->shape = y->at.shape;
                m->has_shape = true;
        } else {
                tell_where(m);
        }
        m->running--; /* last: release functions of what the scope held may try to free m */
        return y;
}

static bool input_is_good(lg_module *m, const lg_tensor *x, int64_t i)
{
        lg_ctx *c = m->object.ctx;
        if (!x)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_forward: input %lld of %s is NULL", (long long)i, m->type);
        if (x->ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_forward: input %lld of %s is of another context", (long long)i,
                                m->type);
        return lg__check(x, "lg_forward", "an input");
}

lg_tensor *lg_forward_(lg_module *m, ...)
{
        lg_tensor *items[MAX_INPUTS];
        int64_t count = 0;
        va_list args;
        bool ok = m && !m->object.ctx->error && lg__object_lasts(&m->object, "lg_forward");
        va_start(args, m);
        for (void *x; (x = va_arg(args, void *)) != LG_END; count++) {
                if (!m && x)
                        lg__fail(lg__ctx_of(x), LG_ERR_ARGUMENT, "lg_forward: the module is NULL");
                if (ok && count == MAX_INPUTS)
                        ok = lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward: more than %d inputs", MAX_INPUTS);
                ok = ok && input_is_good(m, x, count);
                if (ok)
                        items[count] = x;
        }
        va_end(args);
        return ok ? run(m, m->forward, (lg_list){count, items}) : NULL;
}

lg_tensor *lg__forward_as(lg_module *m, lg_forward_fn *forward, lg_tensor *x)
{
        return m->object.ctx->error ? NULL : run(m, forward, (lg_list){1, &x});
}

lg_tensor *lg__module_input(const lg_module *m, lg_list inputs)
{
        if (inputs.count == 1)
                return inputs.items[0];
        return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward: %s takes one input, %lld were given", m->type,
                        (long long)inputs.count);
}
