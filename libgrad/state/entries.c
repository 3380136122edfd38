/* entries.c - lists of the named tensors and numbers of objects. */
#include <stdlib.h>
#include <string.h>
#include "entries.h"

void lg__state_entries_begin(lg__state_entries *list, lg_ctx *c, const char *op)
{
        memset(list, 0, sizeof *list);
        list->c = c;
        list->op = op;
}

void lg__state_entries_end(lg__state_entries *list)
{
        for (int64_t i = 0; i < list->count; i++)
                lg__strfree(list->c, list->items[i].name);
        lg__free(list->c, list->items, (size_t)list->room * sizeof *list->items);
        lg__state_entries_begin(list, list->c, list->op);
}

size_t lg__state_entries_enter(lg__state_entries *list, const char *part)
{
        size_t was = list->length;
        int n = snprintf(list->path + was, sizeof list->path - was, "%s%s", was && *part ? "." : "", part);
        if (n < 0 || (size_t)n >= sizeof list->path - was) {
                lg__fail(list->c, LG_ERR_ARGUMENT, "%s: the path to \"%s\" is longer than %d bytes", list->op, part,
                         LG__PATH - 1);
                list->path[was] = 0;
        } else {
                list->length += (size_t)n;
        }
        return was;
}

bool lg__state_add_object(lg__state_entries *list, const char *name, lg__object *o)
{
        size_t was = lg__state_entries_enter(list, name);
        bool ok = !list->c->error && o->type->visit(o, list);
        lg__state_entries_leave(list, was);
        return ok && !list->c->error;
}

/* ---- adding entries ---- */

static bool add(lg__state_entries *list, const char *name, lg__state_entry entry)
{
        size_t was = lg__state_entries_enter(list, name);
        bool ok = !list->c->error && lg__grow(list->c, &list->items, list->count, &list->room, sizeof *list->items);
        entry.name = ok ? lg__strdup(list->c, list->path) : NULL;
        if (entry.name)
                list->items[list->count++] = entry;
        lg__state_entries_leave(list, was);
        return entry.name != NULL;
}

bool lg__state_add_tensor_shaped(lg__state_entries *list, const char *name, lg_tensor **at, lg_dtype dtype,
                                 lg_shape shape, lg_device device, unsigned flags)
{
        lg__state_entry entry = {.kind = LG__ENTRY_TENSOR, .flags = flags, .at = at, .device = device};
        entry.like.dtype = dtype;
        entry.like.shape = shape;
        return add(list, name, entry);
}

bool lg__state_add_tensor_like(lg__state_entries *list, const char *name, lg_tensor **at, lg_dtype dtype,
                               const lg_tensor *like, unsigned flags)
{
        return lg__state_add_tensor_shaped(list, name, at, dtype, like->at.shape, like->storage->device->id, flags);
}

bool lg__state_add_tensor(lg__state_entries *list, const char *name, lg_tensor **at, unsigned flags)
{
        return lg__state_add_tensor_like(list, name, at, (*at)->at.dtype, *at, flags);
}

bool lg__state_add_i64(lg__state_entries *list, const char *name, int64_t *at, unsigned flags)
{
        return add(list, name, (lg__state_entry){.kind = LG__ENTRY_I64, .flags = flags, .at = at, .most = -1});
}

bool lg__state_add_whole(lg__state_entries *list, const char *name, int64_t *at, int64_t most)
{
        return add(list, name, (lg__state_entry){.kind = LG__ENTRY_I64, .at = at, .most = most});
}

bool lg__state_add_count(lg__state_entries *list, const char *name, int64_t *at)
{
        lg__state_entry entry = {.kind = LG__ENTRY_COUNT, .flags = LG__ENTRY_OPTIONAL, .at = at};
        entry.like.dtype = LG_I64;
        return add(list, name, entry);
}

bool lg__state_add_u64(lg__state_entries *list, const char *name, uint64_t *at)
{
        return add(list, name, (lg__state_entry){.kind = LG__ENTRY_U64, .at = at});
}

bool lg__state_add_f64(lg__state_entries *list, const char *name, double *at)
{
        return add(list, name, (lg__state_entry){.kind = LG__ENTRY_F64, .at = at});
}

bool lg__state_add_bool(lg__state_entries *list, const char *name, bool *at)
{
        return add(list, name, (lg__state_entry){.kind = LG__ENTRY_BOOL, .at = at});
}

bool lg__state_add_text(lg__state_entries *list, const char *name, char *at, size_t size)
{
        return add(list, name, (lg__state_entry){.kind = LG__ENTRY_TEXT, .at = at, .most = (int64_t)size});
}

bool lg__state_add_type(lg__state_entries *list, const char *type)
{
        lg__state_entry entry = {
                .kind = LG__ENTRY_TEXT, .flags = LG__ENTRY_FIXED | LG__ENTRY_OPTIONAL, .most = INT64_MAX};
        entry.at = (char *)(uintptr_t)type;
        return add(list, "type", entry);
}

/* ---- finding ---- */

static int by_name(const void *a, const void *b)
{
        return strcmp(((const lg__state_entry *)a)->name, ((const lg__state_entry *)b)->name);
}

void lg__state_entries_sort(lg__state_entries *list)
{
        if (list->count)
                qsort(list->items, (size_t)list->count, sizeof *list->items, by_name);
}

lg__state_entry *lg__state_entries_find(const lg__state_entries *list, const char *name)
{
        const lg__state_entry key = {.name = (char *)(uintptr_t)name};
        return list->count ? bsearch(&key, list->items, (size_t)list->count, sizeof *list->items, by_name) : NULL;
}

const char *lg__state_entries_name(lg__state_entries *list, const lg_tensor *t)
{
        for (int64_t i = 0; i < list->count; i++) {
                int64_t k = (list->named + i) % list->count;
                const lg__state_entry *entry = &list->items[k];
                if (entry->kind != LG__ENTRY_TENSOR || *(lg_tensor **)entry->at != t)
                        continue;
                list->named = k + 1;
                return entry->name;
        }
        return NULL;
}
