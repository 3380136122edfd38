/* forward.c - runs a module in a scope of its own. */
#include <string.h>
#include "core/observer.h"
#include "nn.h"

static const lg__epilogue no_epilogue;

/* Appends the path and type of m to the context's error message, unless a module inside m has done so. */
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

static bool results_are_good(const lg_module *m, const lg_outputs *y)
{
        lg_ctx *c = m->object.ctx;
        if (y->count < 1 || y->count > LG_MAX_OUTPUTS)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_forward: the forward of %s gave %lld results; 1 to %d are possible", m->type,
                                (long long)y->count, LG_MAX_OUTPUTS);
        for (int64_t i = 0; i < y->count; i++) {
                if (!y->items[i])
                        return lg__fail(c, LG_ERR_STATE, "lg_forward: the forward of %s left result %lld NULL", m->type,
                                        (long long)i);
                if (!lg__in_context(c, y->items[i], "lg_forward", "the result") ||
                    !lg__check(y->items[i], "lg_forward", "the result"))
                        return false;
        }
        return true;
}

/* Calls the function of `typed` or, if that is NULL, whichever of m's three forward functions is set, with `epilogue`
 * if it takes one, and checks the results. */
static bool call(lg_module *m, lg_list inputs, const lg__typed_call *typed, lg__epilogue epilogue, lg_outputs *ret)
{
        lg_ctx *c = m->object.ctx;
        if (typed) {
                *ret = (lg_outputs){.count = 0};
                return typed->forward(m, inputs, ret, typed->user) && results_are_good(m, ret);
        }
        *ret = (lg_outputs){.count = !m->forward_all};
        if (m->forward)
                ret->items[0] = m->forward(m, inputs, m->user);
        else if (m->forward_epilogue && lg__module_input(m, inputs))
                ret->items[0] = m->forward_epilogue(m, inputs.items[0], epilogue);
        else if (m->forward_all && !m->forward_all(m, inputs, ret, m->user))
                return lg__fail(c, LG_ERR_STATE, "lg_forward: the forward of %s returned false without an error",
                                m->type);
        else if (!m->forward_epilogue && !m->forward_all)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_forward: %s has no forward of its own; run its children, or give "
                                "lg_nn_module() a .forward",
                                m->type);
        if (!m->forward_all && !ret->items[0])
                return lg__fail(c, LG_ERR_STATE, "lg_forward: the forward of %s returned NULL without an error",
                                m->type);
        return !c->error && results_are_good(m, ret);
}

bool lg__compute_parts(lg_module *m)
{
        for (lg__part *p = m->parts; p; p = p->next) {
                const lg_module *list =
                        p->kind == LG__COMPUTED && !p->tensor ? lg__parametrizations_of(m, p->name) : NULL;
                lg_tensor *t[LG__MAX_INPUTS + 1];
                int n = 0;
                for (const lg__part *q = list ? list->parts : NULL; q; q = q->next)
                        if (q->kind == LG__PARAMETER)
                                t[n++] = q->tensor;
                for (const lg__part *q = list ? list->parts : NULL; q; q = q->next) {
                        if (q->kind != LG__CHILD)
                                continue;
                        t[n] = LG_END;
                        t[0] = lg_forward_list(q->child, t);
                        n = 1;
                }
                if (list && !(p->tensor = t[0]))
                        return false;
        }
        return true;
}

void lg__forget_parts(lg_module *m)
{
        for (lg__part *p = m->parts; p; p = p->next)
                if (p->kind == LG__COMPUTED)
                        p->tensor = NULL;
}

static bool run(lg_module *m, lg_list inputs, const lg__typed_call *typed, lg__epilogue epilogue, lg_outputs *ret,
                uint32_t *ret_new)
{
        lg_ctx *c = m->object.ctx;
        const lg__scope *outer = c->scope;
        lg__frame frame = {.outer = c->frame, .module = m, .name = lg__module_title};
        frame.device = inputs.count ? inputs.items[0]->storage->device : NULL;
        ret->count = 0;
        if (m->running == LG_MAX_MODULE_DEPTH)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_forward: the forward of %s runs itself, %d levels deep; children are run by "
                                "lg_forward(lg_child(m, 0), ...)",
                                m->type, LG_MAX_MODULE_DEPTH);
        lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return false;
        c->frame = &frame;
        m->running++;
        LG__NOTIFY(c, enter, &frame);
        bool ok = !c->error && lg__compute_parts(m) && call(m, inputs, typed, epilogue, ret);
        if (m->running == 1)
                lg__forget_parts(m);
        c->frame = frame.outer;
        if (!ok)
                ret->count = 0;
        ok = lg__scope_leave(c, scope, outer, ret->items, ret->count, ret_new) && ok;
        LG__NOTIFY(c, leave, &frame);
        if (ok) {
                m->shape = ret->items[0]->at.shape;
                m->has_shape = true;
        } else {
                *ret = (lg_outputs){.count = 0};
                tell_where(m);
        }
        m->running--; /* last: release functions called by lg__scope_leave() may try to free m */
        return ok;
}

static bool input_is_good(lg_module *m, const char *name, const lg_tensor *x, int64_t i)
{
        lg_ctx *c = m->object.ctx;
        if (!x)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: input %lld of %s is NULL", name, (long long)i, m->type);
        if (x->ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: input %lld of %s is of another context", name, (long long)i,
                                m->type);
        return lg__check(x, name, "an input");
}

/* The inputs of a forward. Entries from `count` on are NULL, since a forward may read more inputs than were given. */
typedef struct input_array {
        int64_t count;
        lg_tensor *items[LG__MAX_INPUTS];
} input_array;

/* Copies the inputs up to LG_END to ret and checks them. Returns false with an error. */
static bool take_inputs(lg_module *m, lg_tensor *const *inputs, input_array *ret)
{
        bool ok = m && lg__ok(m->object.ctx) && lg__object_lasts(&m->object, "lg_forward");
        int64_t count = 0;
        *ret = (input_array){.count = 0};
        for (; inputs && inputs[count] != LG_END; count++) {
                if (!m && inputs[count])
                        lg__fail(lg__ctx_of(inputs[count]), LG_ERR_ARGUMENT, "lg_forward: the module is NULL");
                if (ok && count == LG__MAX_INPUTS)
                        ok = lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward: more than %d inputs",
                                      LG__MAX_INPUTS);
                ok = ok && input_is_good(m, "lg_forward", inputs[count], count);
                if (ok)
                        ret->items[count] = inputs[count];
        }
        ret->count = count;
        return ok;
}

lg_tensor *lg_forward_list(lg_module *m, lg_tensor *const *inputs)
{
        input_array in;
        uint32_t new;
        lg_outputs all;
        if (!take_inputs(m, inputs, &in) || !run(m, (lg_list){in.count, in.items}, NULL, no_epilogue, &all, &new))
                return NULL;
        for (int64_t i = 1; i < all.count; i++)
                if (all.items[i] != all.items[0] && new & 1u << i)
                        lg__tensor_release(all.items[i]);
        return all.items[0];
}

bool lg_forward_all_list(lg_module *m, lg_outputs *ret, size_t size, lg_tensor *const *inputs)
{
        input_array in;
        uint32_t new;
        lg_outputs all = {.count = 0};
        bool ok = take_inputs(m, inputs, &in);
        if (ok && !ret)
                ok = lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward_all: out is NULL");
        ok = ok && run(m, (lg_list){in.count, in.items}, NULL, no_epilogue, &all, &new);
        if (ret)
                lg__give(ret, size, &all, sizeof all);
        return ok;
}

lg_tensor *lg__forward_with_epilogue(lg_module *m, lg_tensor *x, lg__epilogue epilogue)
{
        uint32_t new;
        lg_outputs all;
        return lg__ok(m->object.ctx) && run(m, (lg_list){1, &x}, NULL, epilogue, &all, &new) ? all.items[0] : NULL;
}

bool lg__forward_typed(lg_module *m, lg_list inputs, const lg__typed_call *call, lg_outputs *ret)
{
        uint32_t new;
        *ret = (lg_outputs){.count = 0};
        for (int64_t i = 0; i < inputs.count && !m; i++)
                if (inputs.items[i])
                        return lg__fail(lg__ctx_of(inputs.items[i]), LG_ERR_ARGUMENT, "%s: the module is NULL",
                                        call->name);
        if (!m || !lg__ok(m->object.ctx) || !lg__object_lasts(&m->object, call->name))
                return false;
        for (int64_t i = 0; i < inputs.count; i++)
                if ((!i || inputs.items[i]) && !input_is_good(m, call->name, inputs.items[i], i))
                        return false;
        return run(m, inputs, call, no_epilogue, ret, &new);
}

lg_tensor *lg__module_input(const lg_module *m, lg_list inputs)
{
        if (inputs.count == 1)
                return inputs.items[0];
        return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward: %s takes one input, %lld were given", m->type,
                        (long long)inputs.count);
}
