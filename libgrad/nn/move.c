/* move.c - moves a module to a device: handles stay, storages are replaced. */
#include "nn.h"
#include "state/roster.h"

/* A tensor that moves and its copy on the new device, in the scope of the move. */
typedef struct copy_of {
        lg_tensor *t, *copy;
} copy_of;

static bool copy_one(lg_tensor *t, lg_device device, copy_of *list, int64_t *count)
{
        if (!t || lg_device_equal(t->storage->device->id, device))
                return true;
        lg_tensor *copy = lg__clone_values(t, device, t->at.dtype);
        if (copy)
                list[(*count)++] = (copy_of){t, copy};
        return copy != NULL;
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

/* Tensors and their gradients: all of them, or none. */
static bool move_all(const lg__roster *r, lg_device device)
{
        const size_t bytes = (size_t)r->count * 2 * sizeof(copy_of) + 1;
        int64_t count = 0;
        copy_of *list = lg__alloc(r->c, bytes);
        bool ok = list != NULL;
        for (int64_t i = 0; ok && i < r->count; i++) {
                lg_tensor *t = r->items[i].kind == LG__HELD_TENSOR ? *(lg_tensor **)r->items[i].at : NULL;
                ok = copy_one(t, device, list, &count) && (!t || copy_one(lg_grad_of(t), device, list, &count));
        }
        for (int64_t i = 0; ok && i < count; i++)
                swap(&list[i]);
        lg__free(r->c, list, bytes);
        return ok;
}

bool lg_module_to(lg_module *m, lg_device device)
{
        const char *op = "lg_module_to";
        lg_ctx *c = lg_module_ctx(m);
        lg__roster r;
        lg__device *d =
                lg__ok(c) && lg__may_end(c, op) && lg__module_is_whole(m, op) ? lg__device_get(c, device) : NULL;
        lg_scope scope = d ? lg_scope_begin(c) : (lg_scope){0};
        if (!scope.id)
                return false;
        lg__roster_begin(&r, c, op);
        bool ok = lg__roster_add(&r, "", &m->object) && move_all(&r, d->id);
        lg__roster_end(&r);
        lg_scope_end(c, scope);
        return ok;
}
