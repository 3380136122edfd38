/* records.c - small host records (tensors, nodes, scopes), cut from slabs that are freed when the context closes. */
#include <string.h>
#include "core/core.h"
#include "poison.h"

#define SLAB_BYTES 65536

struct lg__slab {
        struct lg__slab *next;
        size_t used;
};

void *lg__host_alloc(lg_ctx *c, size_t bytes)
{
        void *p = c->alloc(c->memory_user, c, lg_cpu(), bytes);
        if (!p && c->cpu) {
                lg_empty_cache(c);
                p = c->alloc(c->memory_user, c, lg_cpu(), bytes);
        }
        if (p && c->cpu)
                c->cpu->cache.stats.system_allocs++;
        return p ? p : lg__fail(c, LG_ERR_MEMORY, "out of memory on the host: %zu bytes asked", bytes);
}

void lg__host_free(lg_ctx *c, void *p, size_t bytes)
{
        if (c->cpu)
                c->cpu->cache.stats.system_frees++;
        c->free(c->memory_user, c, lg_cpu(), p, bytes);
}

static void *cut(lg_ctx *c, size_t bytes)
{
        struct lg__slab *slab = c->pool.slabs;
        if (!slab || slab->used + bytes > SLAB_BYTES) {
                slab = lg__host_alloc(c, SLAB_BYTES);
                if (!slab)
                        return NULL;
                slab->next = c->pool.slabs;
                slab->used = 64;
                c->pool.slabs = slab;
        }
        void *p = (char *)slab + slab->used;
        slab->used += bytes;
        return p;
}

/* Allocates a record too large for the pool; the pointer to its block is stored 64 bytes before the record. */
static void *alloc_big(lg_ctx *c, size_t bytes)
{
        if (bytes > SIZE_MAX / 2)
                return lg__fail(c, LG_ERR_MEMORY, "out of memory on the host: %zu bytes asked", bytes);
        lg__block *block = lg__cache_get(&c->cpu->cache, bytes + 64);
        if (!block)
                return NULL;
        *(lg__block **)block->p = block;
        return (char *)block->p + 64;
}

/* Returns the size of a record in units of 16 bytes, at least 1, because a free record holds a pointer to the next. */
static size_t slot_of(size_t bytes)
{
        return bytes ? (bytes + 15) / 16 : 1;
}

void *lg__alloc_unset(lg_ctx *c, size_t bytes)
{
        if (bytes > LG__POOL_MAX)
                return alloc_big(c, bytes);
        size_t slot = slot_of(bytes);
        void *p = c->pool.free[slot];
        if (!p)
                return cut(c, slot * 16);
        lg__unpoison(p, slot * 16);
        c->pool.free[slot] = *(void **)p;
        return p;
}

void *lg__alloc(lg_ctx *c, size_t bytes)
{
        void *p = lg__alloc_unset(c, bytes);
        return p ? memset(p, 0, bytes) : NULL;
}

void lg__free(lg_ctx *c, void *p, size_t bytes)
{
        if (!p)
                return;
        if (bytes > LG__POOL_MAX) {
                lg__cache_put(*(lg__block **)((char *)p - 64));
                return;
        }
        size_t slot = slot_of(bytes);
        *(void **)p = c->pool.free[slot];
        c->pool.free[slot] = p;
        lg__poison(p, slot * 16);
}

bool lg__grow(lg_ctx *c, void *items, int64_t count, int64_t *room, size_t item_bytes)
{
        const int64_t more = *room ? 2 * *room : 32;
        void *old, *new = count < *room ? NULL : lg__alloc(c, (size_t)more * item_bytes);
        if (!new)
                return count < *room;
        memcpy(&old, items, sizeof old);
        if (old)
                memcpy(new, old, (size_t)count * item_bytes);
        lg__free(c, old, (size_t)*room * item_bytes);
        memcpy(items, &new, sizeof new);
        *room = more;
        return true;
}

char *lg__strdup(lg_ctx *c, const char *s)
{
        size_t bytes = strlen(s) + 1;
        char *p = lg__alloc(c, bytes);
        return p ? memcpy(p, s, bytes) : NULL;
}

void lg__strfree(lg_ctx *c, char *s)
{
        if (s)
                lg__free(c, s, strlen(s) + 1);
}

void lg__pool_finish(lg_ctx *c)
{
        while (c->pool.slabs) {
                struct lg__slab *slab = c->pool.slabs;
                c->pool.slabs = slab->next;
                lg__unpoison(slab, SLAB_BYTES);
                lg__host_free(c, slab, SLAB_BYTES);
        }
}
