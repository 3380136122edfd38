/* checkpoint.c - a whole run in one file: named objects, numbers and texts of the program, the random state. */
#include <limits.h>
#include <string.h>
#include "load.h"

typedef struct entry {
        struct entry *next;
        char *name;
        bool is_object;
        lg__weak object;     /* the object, if is_object; NULL: the object was freed */
        lg__entry_kind kind; /* kind of number, or LG__ENTRY_TEXT, unless is_object */
        void *number;
        size_t size; /* of a text, in bytes */
} entry;

struct lg_checkpoint {
        lg__object object;
        entry *first, **end;
};

static void destroy(lg__object *o)
{
        lg_checkpoint *k = (lg_checkpoint *)o;
        while (k->first) {
                entry *e = k->first;
                k->first = e->next;
                lg__weak_set(&e->object, NULL);
                lg__strfree(o->ctx, e->name);
                lg__free(o->ctx, e, sizeof *e);
        }
}

static const lg__type type = {.destroy = destroy};

lg_checkpoint *lg_checkpoint_new(lg_ctx *c)
{
        lg_checkpoint *k = lg__object_new(c, &type, sizeof *k);
        if (k)
                k->end = &k->first;
        return k;
}

void lg_checkpoint_free(lg_checkpoint *k)
{
        lg__object_destroy(k);
}

/* ---- adding entries ---- */

static bool name_is_good(const lg_checkpoint *k, const char *name)
{
        lg_ctx *c = k->object.ctx;
        if (!name || !*name || strchr(name, '.') || !strcmp(name, "random"))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_checkpoint_add: the name %s%.80s%s", name && *name ? "\"" : "",
                                name ? name : "",
                                !name               ? "is NULL"
                                : !*name            ? "is empty"
                                : strchr(name, '.') ? "\" has a dot in it"
                                                    : "\" is that of the context's random state");
        for (const entry *e = k->first; e; e = e->next)
                if (!strcmp(e->name, name))
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_checkpoint_add: there is a \"%.80s\" already", name);
        return true;
}

static bool add(lg_checkpoint *k, const char *name, lg__object *object, entry what)
{
        lg_ctx *c = k ? k->object.ctx : NULL;
        if (!lg__ok(c) || !name_is_good(k, name))
                return false;
        entry *e = lg__alloc(c, sizeof *e);
        if (!e)
                return false;
        *e = what;
        e->name = lg__strdup(c, name);
        if (!e->name) {
                lg__free(c, e, sizeof *e);
                return false;
        }
        e->is_object = object != NULL;
        lg__weak_set(&e->object, object);
        *k->end = e;
        k->end = &e->next;
        return true;
}

bool lg_checkpoint_add_with(lg_checkpoint *k, const char *name, lg_state_kind kind, void *object)
{
        lg_ctx *c = k ? k->object.ctx : NULL;
        lg__object *o = object; /* the first member of each kind of object */
        if (!lg__ok(c) || !lg__object_lasts(&k->object, "lg_checkpoint_add"))
                return false;
        if (kind < LG_STATE_MODULE || kind > LG_STATE_SCALER)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_checkpoint_add: %d is no kind of object", (int)kind);
        if (!o || o->ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_checkpoint_add: \"%.80s\" is %s", name ? name : "",
                                o ? "of another context" : "NULL");
        return lg__object_lasts(o, "lg_checkpoint_add") && add(k, name, o, (entry){.number = NULL});
}

static bool add_number(lg_checkpoint *k, const char *name, lg__entry_kind kind, void *number)
{
        if (k && lg__ok(k->object.ctx) && !number)
                return lg__fail(k->object.ctx, LG_ERR_ARGUMENT, "lg_checkpoint_add: the number \"%.80s\" is NULL",
                                name ? name : "");
        return add(k, name, NULL, (entry){.kind = kind, .number = number});
}

bool lg_checkpoint_add_number(lg_checkpoint *k, const char *name, double *number)
{
        return add_number(k, name, LG__ENTRY_F64, number);
}

bool lg_checkpoint_add_i64(lg_checkpoint *k, const char *name, int64_t *number)
{
        return add_number(k, name, LG__ENTRY_I64, number);
}

bool lg_checkpoint_add_text(lg_checkpoint *k, const char *name, char *text, size_t size)
{
        lg_ctx *c = k ? k->object.ctx : NULL;
        if (lg__ok(c) && (!text || size < 1 || size > INT_MAX))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_checkpoint_add_text: \"%.80s\" %s", name ? name : "",
                                !text  ? "is NULL"
                                : size ? "has more than 2^31 - 1 bytes"
                                       : "has no bytes");
        return add(k, name, NULL, (entry){.kind = LG__ENTRY_TEXT, .number = text, .size = size});
}

/* ---- to and from files ---- */

static bool add_all(const lg_checkpoint *k, lg__state_entries *list)
{
        lg_ctx *c = k->object.ctx;
        bool ok = lg__state_add_u64(list, "random.seed", &c->random.seed) &&
                  lg__state_add_u64(list, "random.counter", &c->random.counter);
        for (const entry *e = k->first; e && ok; e = e->next)
                ok = e->is_object                ? lg__state_add_object(list, e->name, e->object.object)
                     : e->kind == LG__ENTRY_I64  ? lg__state_add_i64(list, e->name, e->number, 0)
                     : e->kind == LG__ENTRY_TEXT ? lg__state_add_text(list, e->name, e->number, e->size)
                                                 : lg__state_add_f64(list, e->name, e->number);
        return ok;
}

static bool texts_end(const lg_checkpoint *k)
{
        for (const entry *e = k->first; e; e = e->next)
                if (e->kind == LG__ENTRY_TEXT && !memchr(e->number, '\0', e->size))
                        return lg__fail(k->object.ctx, LG_ERR_ARGUMENT,
                                        "lg_checkpoint_save: the text \"%.80s\" has no end within its %zu bytes",
                                        e->name, e->size);
        return true;
}

static bool objects_live(const lg_checkpoint *k, const char *op)
{
        for (const entry *e = k->first; e; e = e->next)
                if (e->is_object && !e->object.object)
                        return lg__fail(k->object.ctx, LG_ERR_STATE, "%s: \"%.80s\" was freed", op, e->name);
        return true;
}

bool lg_checkpoint_save(lg_checkpoint *k, const char *path)
{
        lg__state_entries list;
        lg_ctx *c = k ? k->object.ctx : NULL;
        if (!lg__ok(c))
                return false;
        lg__state_entries_begin(&list, c, "lg_checkpoint_save");
        bool ok = objects_live(k, "lg_checkpoint_save") && texts_end(k) && add_all(k, &list) &&
                  lg__state_save(&list, path);
        lg__state_entries_end(&list);
        return ok;
}

static bool may_change(const lg_checkpoint *k)
{
        bool ok = objects_live(k, "lg_checkpoint_load");
        for (const entry *e = k->first; e && ok; e = e->next)
                ok = !e->is_object || !e->object.object->type->may_change ||
                     e->object.object->type->may_change(e->object.object, "lg_checkpoint_load");
        return ok;
}

bool lg_checkpoint_load(lg_checkpoint *k, const char *path)
{
        lg__state_entries list;
        lg_ctx *c = k ? k->object.ctx : NULL;
        const lg_load_options *o = LG_OPTIONS(lg_load_options, .partial = false);
        if (!lg__ok(c))
                return false;
        lg__state_entries_begin(&list, c, "lg_checkpoint_load");
        list.all_numbers = true;
        bool ok = may_change(k) && add_all(k, &list) && lg__state_load(&list, path, o);
        lg__state_entries_end(&list);
        for (const entry *e = k->first; e && ok; e = e->next)
                if (e->is_object && e->object.object->type->restored)
                        e->object.object->type->restored(e->object.object);
        return ok;
}
