/* move.c - moves a module to a device or casts it to a dtype: tensor handles stay valid, storages are replaced. */
#include "nn.h"
#include "state/entries.h"

/* A tensor that is moved or cast, and its copy, which belongs to the scope of the call. */
typedef struct copy_of {
        lg_tensor *t, *copy;
} copy_of;

/* The target: if `moves`, a device for all tensors; else a dtype for tensors of float dtypes. */
typedef struct target {
        bool moves;
        lg_device device;
        lg_dtype dtype;
} target;

static bool copy_one(lg_tensor *t, const target *to, lg_dtype dtype, bool is_kernel, copy_of *list, int64_t *count)
{
        if (!t)
                return true;
        const lg_device at = t->storage->device->id, device = to->moves ? to->device : at;
        if (to->moves || !lg__dtype_float(t->at.dtype))
                dtype = t->at.dtype;
        if (lg_device_equal(at, device) && dtype == t->at.dtype)
                return true;
        lg_tensor *copy = lg__clone_values(t, device, dtype);
        copy = copy && is_kernel ? lg__laid_for_device(copy) : copy;
        if (copy)
                list[(*count)++] = (copy_of){t, copy};
        return copy != NULL;
}

lg_tensor *lg__laid_for_device(lg_tensor *w)
{
        lg__layout at = {.dtype = w->at.dtype, .shape = w->at.shape};
        if (!w->storage->device->api->weights_last || w->at.shape.ndim != 4)
                return w;
        lg__layout_channels_last(&at);
        lg_tensor *laid = lg__tensor_laid(w->ctx, w->storage->device->id, &at);
        return laid && lg__copy_values(laid, w, "copy") ? laid : NULL;
}

/* Exchanges storages and layouts, so that the end of the scope frees the old storage with the copy's handle. If t is a
 * gradient with a graph, the graph, which uses the old device, passes to the copy, too, and is freed. */
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

/* Copies the tensor of an entry, and its gradient, to the target, where needed. */
static bool copy_entry(const lg__state_entry *entry, const target *to, copy_of *list, int64_t *count)
{
        lg_tensor *t = entry->kind == LG__ENTRY_TENSOR ? *(lg_tensor **)entry->at : NULL;
        const bool widens = entry->flags & LG__ENTRY_WIDE && lg__dtype_bytes(to->dtype) == 2;
        const lg_dtype dtype = widens ? LG_F32 : to->dtype;
        const bool is_kernel = entry->flags & LG__ENTRY_KERNEL;
        return !t || (copy_one(t, to, dtype, is_kernel, list, count) &&
                      copy_one(lg_grad_of(t), to, dtype, is_kernel, list, count));
}

/* Moves or casts all tensors of the entries, or, if a copy fails, none. */
static bool change_all(const lg__state_entries *entries, const target *to)
{
        const size_t bytes = (size_t)entries->count * 2 * sizeof(copy_of) + 1;
        int64_t count = 0;
        copy_of *list = lg__alloc(entries->c, bytes);
        bool ok = list != NULL;
        for (int64_t i = 0; ok && i < entries->count; i++)
                ok = copy_entry(&entries->items[i], to, list, &count);
        for (int64_t i = 0; ok && i < count; i++)
                swap(&list[i]);
        lg__free(entries->c, list, bytes);
        return ok;
}

static bool change(lg_module *m, const char *op, const target *to)
{
        lg_ctx *c = m->object.ctx;
        lg__state_entries entries;
        lg_scope scope = lg_scope_begin(c);
        lg__state_entries_begin(&entries, c, op);
        bool ok = scope.id && lg__state_add_object(&entries, "", &m->object) && change_all(&entries, to);
        lg__state_entries_end(&entries);
        lg_scope_end(c, scope);
        return ok;
}

static bool may_change(lg_module *m, const char *op)
{
        lg_ctx *c = lg_module_ctx(m);
        return lg__ok(c) && lg__object_lasts(&m->object, op) && lg__unrecorded(c, op) && lg__may_end(c, op) &&
               lg__module_is_whole(m, op);
}

bool lg_module_to(lg_module *m, lg_device device)
{
        const char *op = "lg_module_to";
        lg__device *d = may_change(m, op) ? lg__device_get(m->object.ctx, device) : NULL;
        return d && change(m, op, &(target){.moves = true, .device = d->id});
}

bool lg_module_cast(lg_module *m, lg_dtype dtype)
{
        const char *op = "lg_module_cast";
        if (!may_change(m, op))
                return false;
        if (!lg__dtype_float(dtype))
                return lg__fail(m->object.ctx, LG_ERR_DTYPE, "%s: dtype is %s; it can be f32, f64, f16 or bf16", op,
                                lg_dtype_name(dtype));
        return change(m, op, &(target){.dtype = dtype});
}
