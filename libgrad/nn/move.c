/* move.c - moves a module to a device: handles stay, storages are replaced. */
#include "nn.h"

/* A tensor that moves and its copy on the new device, in the scope of the move. */
typedef struct copy_of {
        lg_tensor *t, *copy;
} copy_of;

static int64_t count_tensors(const lg_module *m)
{
        int64_t count = 0;
        for (const lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                for (const lg__part *p = inner->parts; p; p = p->next)
                        count += p->tensor != NULL;
        return count;
}

static bool copy_one(lg_tensor *t, lg_device device, copy_of *list, int64_t *count)
{
        if (!t || lg_device_equal(t->storage->device->id, device))
                return true;
        lg_tensor *copy = lg__clone_values(t, device, t->at.dtype);
        if (copy)
                list[(*count)++] = (copy_of){t, copy};
        return copy != NULL;
}

static bool copy_all(lg_module *m, lg_device device, copy_of *list, int64_t *count)
{
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m)) {
                for (lg__part *p = inner->parts; p; p = p->next) {
                        if (p->tensor && (!copy_one(p->tensor, device, list, count) ||
                                          !copy_one(lg_grad_of(p->tensor), device, list, count)))
                                return false;
                }
        }
        return true;
}

/* The copy's handle takes the old storage with it when its scope ends; and of a gradient with a graph, which is on the
 * old device, that graph. */
static void swap(copy_of *m)
{
        lg__storage *s = m->t->storage;
        lg__layout at = m->t->at;
        m->t->storage = m->copy->storage;
        m->t->at = m->copy->at;
        m->copy->storage = s;
        m->copy->at = at;
        if (m->t->node && m->t->node->op) {
                m->copy->node = m->t->node;
                m->copy->output = m->t->output;
                m->copy->alias = true;
                m->t->node = NULL;
        }
}

static bool may_move(lg_module *m)
{
        for (const lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                if (inner->lent)
                        return lg__fail(m->object.ctx, LG_ERR_STATE,
                                        "lg_module_to: lg_forward_params runs the %s; move it when that has returned",
                                        inner->type);
        return true;
}

bool lg_module_to(lg_module *m, lg_device device)
{
        lg_ctx *c = lg_module_ctx(m);
        lg__device *d = lg__ok(c) && lg__may_end(c, "lg_module_to") && may_move(m) ? lg__device_get(c, device) : NULL;
        lg_scope scope = d ? lg_scope_begin(c) : (lg_scope){0};
        if (!scope.id)
                return false;
        size_t bytes = (size_t)count_tensors(m) * 2 * sizeof(copy_of) + 1;
        int64_t count = 0;
        copy_of *list = lg__alloc(c, bytes);
        bool ok = list && copy_all(m, d->id, list, &count);
        for (int64_t i = 0; ok && i < count; i++)
                swap(&list[i]);
        lg__free(c, list, bytes);
        lg_scope_end(c, scope);
        return ok;
}
