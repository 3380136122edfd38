/* storage.c - reference-counted memory on one device. */
#include "core/core.h"

lg__storage *lg__storage_new(lg__device *d, size_t bytes)
{
        lg_ctx *c = d->cache.ctx;
        lg__storage *s = lg__alloc_unset(c, sizeof *s);
        if (!s)
                return NULL;
        *s = (lg__storage){.ctx = c, .device = d, .bytes = bytes, .refs = 1};
        if (c->run) {
                s->run = c->run;
                s->number = ++c->run_storages;
        }
        if (bytes) {
                s->block = lg__cache_get(d->arena ? d->arena : &d->cache, bytes);
                if (!s->block) {
                        lg__free(c, s, sizeof *s);
                        return NULL;
                }
                s->data = s->block->p;
        }
        return s;
}

lg__storage *lg__storage_ref(lg__storage *s)
{
        s->refs++;
        return s;
}

/* Frees a recipe and its reference to the source storage. Returns the source if the caller must call leave() for it. */
static lg__storage *forget(lg_ctx *c, lg__recipe *recipe)
{
        lg__storage *from = recipe ? recipe->from : NULL;
        if (recipe)
                lg__free(c, recipe, recipe->bytes);
        return from && --from->refs == from->savers ? from : NULL;
}

/* Called when only derivatives, or nothing, still refer to s. Frees s if nothing does; otherwise frees only its memory
 * if its recipe is still valid. A chain of recipes of any length is freed without recursion. */
static void leave(lg__storage *s)
{
        while (s && !s->refs) {
                lg_ctx *c = s->ctx;
                lg__recipe *recipe = s->recipe;
                lg__cache_put(s->block);
                lg__release(c, s->release, s->user);
                lg__free(c, s, sizeof *s);
                s = forget(c, recipe);
        }
        if (s && s->version == s->recipe->version && s->recipe->from->version == s->recipe->from_version) {
                lg__cache_put(s->block);
                s->block = NULL;
                s->data = NULL;
        }
}

void lg__storage_unref(lg__storage *s)
{
        if (s && --s->refs == s->savers)
                leave(s);
}

lg__storage *lg__storage_save(lg__storage *s)
{
        s->savers += s->recipe != NULL;
        return lg__storage_ref(s);
}

void lg__storage_unsave(lg__storage *s)
{
        lg__recipe *recipe = s->recipe;
        s->savers -= recipe != NULL;
        if (--s->refs == 0) {
                leave(s);
        } else if (recipe && s->savers == 0) { /* frees a recipe that is no longer needed */
                s->recipe = NULL;
                leave(forget(s->ctx, recipe));
        }
}

bool lg__storage_refill(lg__storage *s)
{
        s->block = lg__cache_get(s->device->arena ? s->device->arena : &s->device->cache, s->bytes);
        s->data = s->block ? s->block->p : NULL;
        return s->block;
}
