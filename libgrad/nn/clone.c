/* clone.c - lg_module_clone(): a copy of a module with parameters and buffers of its own. */
#include "nn.h"

static bool clone_user(const lg_module *m, lg_module *copy)
{
        lg_ctx *c = m->object.ctx;
        if (!m->user || m->config)
                return true;
        if (!m->clone)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_module_clone: the %s has .user, which only the program can copy; give lg_nn_module "
                                "a .clone",
                                m->type);
        copy->running++;
        copy->copied = true;
        c->user_calls++;
        copy->user = m->clone(copy, m->user);
        c->user_calls--;
        copy->copied = false;
        copy->running--;
        copy->release = copy->user ? m->release : NULL;
        if (!copy->user && !c->error)
                lg__fail(c, LG_ERR_STATE, "lg_module_clone: .clone of the %s returned NULL", m->type);
        return !c->error;
}

static lg_module *clone(const lg_module *m, lg_device device);

static bool clone_part(const lg__part *p, lg_module *copy, lg_device device)
{
        const char *op = "lg_module_clone";
        if (p->kind == LG__COMPUTED)
                return lg__module_add_computed(copy, p->name) != NULL;
        if (p->child) {
                lg_module *child = clone(p->child, device);
                if (!child || lg__module_attach(copy, p->name, child, op))
                        return child != NULL;
                lg__object_destroy(child);
                return false;
        }
        lg_tensor *t =
                lg__clone_values(p->tensor, device.type ? device : p->tensor->storage->device->id, p->tensor->at.dtype);
        t = t && copy->convolves ? lg__laid_for_device(t) : t;
        if (t && p->kind == LG__BUFFER)
                return lg_module_add_buffer(copy, p->name, t) != NULL;
        return t && lg_module_add_parameter(copy, p->name, t) && lg_set_requires_grad(t, lg_requires_grad(p->tensor));
}

static lg_module *clone(const lg_module *m, lg_device device)
{
        lg_module *copy = lg__module_with(m->object.ctx, m->type, m->forward, m->config, m->config_bytes);
        if (!copy)
                return NULL;
        copy->forward_all = m->forward_all;
        lg__module_set_epilogues(copy, m->forward_epilogue, m->epilogues);
        copy->clone = m->clone;
        copy->training = m->training;
        copy->counts_batches = m->counts_batches;
        copy->convolves = m->convolves;
        copy->every = m->every;
        copy->batches = m->batches;
        bool ok = true;
        for (const lg__part *p = m->parts; ok && p; p = p->next)
                ok = clone_part(p, copy, device);
        return ok && clone_user(m, copy) ? copy : lg__object_destroy(copy);
}

lg_module *lg_module_clone_with(lg_module *m, const lg_clone_options *options)
{
        const char *op = "lg_module_clone";
        lg_ctx *c = lg_module_ctx(m);
        lg_clone_options o;
        lg_module *copy = NULL;
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__object_lasts(&m->object, op) ||
            !lg__module_is_whole(m, op) || (o.device.type && !lg__device_get(c, o.device)))
                return NULL;
        const lg__scope *outer = c->scope;
        lg_scope scope = lg__scope_begin(c);
        uint32_t made;
        if (!scope.id)
                return NULL;
        m->running++; /* so that the .clone callback cannot free m */
        copy = clone(m, o.device);
        m->running--;
        return lg__scope_leave(c, scope, outer, NULL, 0, &made) ? copy : lg__object_destroy(copy);
}
