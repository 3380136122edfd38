/* roster.c - lists of the named tensors and numbers of objects. */
#include <stdlib.h>
#include <string.h>
#include "roster.h"

void lg__roster_begin(lg__roster *r, lg_ctx *c, const char *op)
{
        memset(r, 0, sizeof *r);
        r->c = c;
        r->op = op;
}

void lg__roster_end(lg__roster *r)
{
        for (int64_t i = 0; i < r->count; i++)
                lg__strfree(r->c, r->items[i].name);
        lg__free(r->c, r->items, (size_t)r->room * sizeof *r->items);
        lg__roster_begin(r, r->c, r->op);
}

size_t lg__roster_enter(lg__roster *r, const char *part)
{
        size_t was = r->length;
        int n = snprintf(r->path + was, sizeof r->path - was, "%s%s", was && *part ? "." : "", part);
        if (n < 0 || (size_t)n >= sizeof r->path - was) {
                lg__fail(r->c, LG_ERR_ARGUMENT, "%s: the path to \"%s\" is longer than %d bytes", r->op, part,
                         LG__PATH - 1);
                r->path[was] = 0;
        } else {
                r->length += (size_t)n;
        }
        return was;
}

bool lg__roster_add(lg__roster *r, const char *name, lg__object *o)
{
        size_t was = lg__roster_enter(r, name);
        bool ok = !r->c->error && o->type->visit(o, r);
        lg__roster_leave(r, was);
        return ok && !r->c->error;
}

/* ---- adding items ---- */

static bool hold(lg__roster *r, const char *name, lg__held held)
{
        size_t was = lg__roster_enter(r, name);
        bool ok = !r->c->error && lg__grow(r->c, &r->items, r->count, &r->room, sizeof *r->items);
        held.name = ok ? lg__strdup(r->c, r->path) : NULL;
        if (held.name)
                r->items[r->count++] = held;
        lg__roster_leave(r, was);
        return held.name != NULL;
}

bool lg__hold_tensor_like(lg__roster *r, const char *name, lg_tensor **at, lg_dtype dtype, const lg_tensor *like,
                          unsigned flags)
{
        lg__held h = {.kind = LG__HELD_TENSOR, .flags = flags, .at = at, .device = like->storage->device->id};
        h.like.dtype = dtype;
        h.like.shape = like->at.shape;
        return hold(r, name, h);
}

bool lg__hold_tensor(lg__roster *r, const char *name, lg_tensor **at, unsigned flags)
{
        return lg__hold_tensor_like(r, name, at, (*at)->at.dtype, *at, flags);
}

bool lg__hold_i64(lg__roster *r, const char *name, int64_t *at, unsigned flags)
{
        return hold(r, name, (lg__held){.kind = LG__HELD_I64, .flags = flags, .at = at, .most = -1});
}

bool lg__hold_whole(lg__roster *r, const char *name, int64_t *at, int64_t most)
{
        return hold(r, name, (lg__held){.kind = LG__HELD_I64, .at = at, .most = most});
}

bool lg__hold_count(lg__roster *r, const char *name, int64_t *at)
{
        lg__held h = {.kind = LG__HELD_COUNT, .flags = LG__HELD_MAY_LACK, .at = at};
        h.like.dtype = LG_I64;
        return hold(r, name, h);
}

bool lg__hold_u64(lg__roster *r, const char *name, uint64_t *at)
{
        return hold(r, name, (lg__held){.kind = LG__HELD_U64, .at = at});
}

bool lg__hold_f64(lg__roster *r, const char *name, double *at)
{
        return hold(r, name, (lg__held){.kind = LG__HELD_F64, .at = at});
}

bool lg__hold_bool(lg__roster *r, const char *name, bool *at)
{
        return hold(r, name, (lg__held){.kind = LG__HELD_BOOL, .at = at});
}

bool lg__hold_text(lg__roster *r, const char *name, char *at, size_t size)
{
        return hold(r, name, (lg__held){.kind = LG__HELD_TEXT, .at = at, .most = (int64_t)size});
}

bool lg__hold_type(lg__roster *r, const char *type)
{
        lg__held h = {.kind = LG__HELD_TEXT, .flags = LG__HELD_FIXED | LG__HELD_MAY_LACK, .most = INT64_MAX};
        h.at = (char *)(uintptr_t)type;
        return hold(r, "type", h);
}

/* ---- finding ---- */

static int by_name(const void *a, const void *b)
{
        return strcmp(((const lg__held *)a)->name, ((const lg__held *)b)->name);
}

void lg__roster_sort(lg__roster *r)
{
        if (r->count)
                qsort(r->items, (size_t)r->count, sizeof *r->items, by_name);
}

lg__held *lg__roster_find(const lg__roster *r, const char *name)
{
        const lg__held key = {.name = (char *)(uintptr_t)name};
        return r->count ? bsearch(&key, r->items, (size_t)r->count, sizeof *r->items, by_name) : NULL;
}

const char *lg__roster_name(lg__roster *r, const lg_tensor *t)
{
        for (int64_t i = 0; i < r->count; i++) {
                int64_t k = (r->named + i) % r->count;
                const lg__held *h = &r->items[k];
                if (h->kind != LG__HELD_TENSOR || *(lg_tensor **)h->at != t)
                        continue;
                r->named = k + 1;
                return h->name;
        }
        return NULL;
}
