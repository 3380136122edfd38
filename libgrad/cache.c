/* cache.c - the caching allocator of one device: freed buffers wait by size class to be used again. */
#include <string.h>
#include "core.h"

/* Sizes are rounded up to a power of two or a quarter between two of them, at least 64 bytes: a buffer wastes a fifth
 * at most, and a class is found without a search. */
static int class_of(size_t bytes, size_t *ret_rounded)
{
        size_t units = (bytes + 63) / 64;
        int shift = 0;
        while ((units - 1) >> (shift + 3))
                shift++;
        size_t quarter = (units + ((size_t)1 << shift) - 1) >> shift; /* 1 ... 8 */
        *ret_rounded = (quarter << shift) * 64;
        return shift * 8 + (int)quarter - 1;
}

static void forget(lg__cache *cache, lg__block *block)
{
        cache->stats.system_frees++;
        cache->ctx->memory.free(cache->ctx->memory.user, cache->ctx, cache->device, block->p, block->bytes);
        lg__free(cache->ctx, block, sizeof *block);
}

static void *out_of_memory(lg__cache *cache, size_t bytes)
{
        lg_device_info_t info = {.free_bytes = -1};
        lg__device *d = lg__device_get(cache->ctx, cache->device);
        lg_device_facts facts;
        if (d && d->api->facts(cache->device.index, &facts))
                info.free_bytes = facts.free_bytes;
        return lg__fail(
                cache->ctx, LG_ERR_MEMORY,
                "out of memory on %s: %zu bytes asked, %lld in use, %lld cached, %lld free; try a smaller batch",
                lg_device_name(cache->device), bytes, (long long)cache->stats.used, (long long)cache->stats.cached,
                (long long)info.free_bytes);
}

static lg__block *fresh(lg__cache *cache, size_t bytes)
{
        lg_ctx *c = cache->ctx;
        lg__block *block = lg__alloc(c, sizeof *block);
        if (!block)
                return NULL;
        block->bytes = bytes;
        block->p = c->memory.alloc(c->memory.user, c, cache->device, bytes);
        if (!block->p) {
                lg_empty_cache(c);
                block->p = c->memory.alloc(c->memory.user, c, cache->device, bytes);
        }
        if (!block->p) {
                lg__free(c, block, sizeof *block);
                return out_of_memory(cache, bytes);
        }
        cache->stats.system_allocs++;
        return block;
}

lg__block *lg__cache_get(lg__cache *cache, size_t bytes)
{
        size_t rounded;
        if (bytes > SIZE_MAX / 4)
                return out_of_memory(cache, bytes);
        int k = class_of(bytes, &rounded);
        lg__block *block = cache->free[k];
        if (block) {
                cache->free[k] = block->next;
                cache->stats.cached -= (int64_t)block->bytes;
        } else {
                block = fresh(cache, rounded);
                if (!block)
                        return NULL;
        }
        block->next = NULL;
        cache->stats.used += (int64_t)block->bytes;
        if (cache->stats.used > cache->stats.peak)
                cache->stats.peak = cache->stats.used;
        return block;
}

void lg__cache_put(lg__cache *cache, lg__block *block)
{
        if (!block)
                return;
        size_t rounded;
        int k = class_of(block->bytes, &rounded);
        block->next = cache->free[k];
        cache->free[k] = block;
        cache->stats.used -= (int64_t)block->bytes;
        cache->stats.cached += (int64_t)block->bytes;
}

void lg__cache_empty(lg__cache *cache)
{
        for (int k = 0; k < LG__CLASSES; k++) {
                while (cache->free[k]) {
                        lg__block *block = cache->free[k];
                        cache->free[k] = block->next;
                        cache->stats.cached -= (int64_t)block->bytes;
                        forget(cache, block);
                }
        }
}

static lg__cache *cache_of(const lg_ctx *c, lg_device device)
{
        if (!c)
                return NULL;
        if (device.type == LG_DEVICE_NONE)
                device = c->default_device;
        for (lg__device *d = c->devices; d; d = d->next)
                if (lg_device_equal(d->id, device))
                        return &d->cache;
        return NULL;
}

lg_memory_stats_t lg_memory_stats(const lg_ctx *c, lg_device device)
{
        lg__cache *cache = cache_of(c, device);
        return cache ? cache->stats : (lg_memory_stats_t){0};
}

void lg_reset_peak_memory(lg_ctx *c, lg_device device)
{
        lg__cache *cache = cache_of(c, device);
        if (cache)
                cache->stats.peak = cache->stats.used;
}

void lg_empty_cache(lg_ctx *c)
{
        if (!c)
                return;
        for (lg__device *d = c->devices; d; d = d->next)
                lg__cache_empty(&d->cache);
}
