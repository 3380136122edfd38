/* storage.c - counted memory of one device. */
#include "core/core.h"

lg__storage *lg__storage_new(lg__device *d, size_t bytes)
{
        lg_ctx *c = d->cache.ctx;
        lg__storage *s = lg__alloc_unset(c, sizeof *s);
        if (!s)
                return NULL;
        *s = (lg__storage){.ctx = c, .device = d, .bytes = bytes, .refs = 1};
        if (bytes) {
                s->block = lg__cache_get(&d->cache, bytes);
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

void lg__storage_unref(lg__storage *s)
{
        if (!s || --s->refs)
                return;
        lg__cache_put(&s->device->cache, s->block);
        lg__release(s->ctx, s->release, s->user);
        lg__free(s->ctx, s, sizeof *s);
}
