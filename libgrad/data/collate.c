/* collate.c - functions of the program that make batches of samples. */
#include "data.h"

static void destroy(lg__object *o)
{
        lg_collate *m = (lg_collate *)o;
        lg_ctx *c = o->ctx;
        lg__release(c, m->release, m->user);
        lg__fields_free(c, &m->fields);
        lg__free(c, m, sizeof *m);
}

static const lg__type type = {.destroy = destroy};

lg_collate *lg__collate_new(lg_ctx *c, lg_collate_fn *fn, void *user, void (*release)(void *user))
{
        lg_collate *m = lg__alloc(c, sizeof *m);
        if (!m) {
                lg__release(c, release, user);
                return NULL;
        }
        m->fn = fn;
        m->user = user;
        m->release = release;
        lg__object_register(c, &m->object, &type);
        return m;
}

static bool are_fixed(lg_ctx *c, const lg_fields *fields)
{
        for (int f = 0; f < fields->count; f++) {
                if (fields->field[f].ragged)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "lg_collate_new: field %s is ragged; what a function makes has fixed shapes",
                                        fields->field[f].name);
        }
        return true;
}

lg_collate *lg_collate_new_with(lg_ctx *c, lg_fields fields, lg_collate_fn *fn, void *user,
                                const lg_collate_options *options)
{
        lg_collate_options o;
        lg__take_without(options, &o, sizeof o); /* .release is called in any case */
        bool ok = lg__take(c, "lg_collate_new", options, &o, sizeof o);
        if (ok && !fn)
                ok = lg__fail(c, LG_ERR_ARGUMENT, "lg_collate_new: the function is NULL");
        if (!ok) {
                lg__release(c, o.release, user);
                return NULL;
        }
        lg_collate *m = lg__collate_new(c, fn, user, o.release);
        if (!m || (lg__fields_take(c, "lg_collate_new", &m->fields, &fields) && are_fixed(c, &fields)))
                return m;
        lg__object_destroy(&m->object);
        return NULL;
}

void lg_collate_free(lg_collate *m)
{
        lg__object_free(m);
}
