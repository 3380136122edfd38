/* cache.c - the caching allocator of one device: freed blocks are kept in lists by size class and reused.
 *
 * Requests below LARGE bytes reuse only blocks of their own class. Larger requests take a block of the smallest
 * sufficient class that has one; the rest of the block is split off as a block of its own. Free neighbours are joined
 * again.
 */
#include <stdio.h>
#include <string.h>
#include "observer.h"
#include "poison.h"
#include "tape.h"

#define LARGE ((size_t)1 << 20) /* minimum bytes of requests that split blocks, and of split-off parts */

/* Rounds a size up to a power of two or one of three steps between two powers of two, at least 64 bytes, and returns
 * its class. A buffer wastes at most a fifth, and a class is found without a search. */
static int class_of(size_t bytes, size_t *ret_rounded)
{
        size_t units = (bytes + 63) / 64;
        int shift = 0;
        while ((units - 1) >> (shift + 3))
                shift++;
        size_t quarter = (units + ((size_t)1 << shift) - 1) >> shift; /* 1 to 8 */
        *ret_rounded = (quarter << shift) * 64;
        return shift * 8 + (int)quarter - 1;
}

/* Returns the greatest class whose requests a block of this size, a multiple of 64, can serve. */
static int class_served(size_t bytes)
{
        size_t units = bytes / 64, rounded;
        int top = 63 - __builtin_clzll(units);
        if (top > 2)
                units = units >> (top - 2) << (top - 2);
        return class_of(units * 64, &rounded);
}

static void list_add(lg__cache *cache, lg__block *block)
{
        int k = class_served(block->bytes);
        block->prev = NULL;
        block->next = cache->free[k];
        if (block->next)
                block->next->prev = block;
        cache->free[k] = block;
        cache->some[k / 64] |= (uint64_t)1 << (k % 64);
        block->free = true;
        cache->stats.cached += (int64_t)block->bytes;
}

static void list_remove(lg__cache *cache, lg__block *block)
{
        int k = class_served(block->bytes);
        if (block->next)
                block->next->prev = block->prev;
        if (block->prev)
                block->prev->next = block->next;
        else
                cache->free[k] = block->next;
        if (!cache->free[k])
                cache->some[k / 64] &= ~((uint64_t)1 << (k % 64));
        block->next = block->prev = NULL;
        block->free = false;
        cache->stats.cached -= (int64_t)block->bytes;
}

/* Returns a free block of class k or, if `any`, of the next greater class that has one; NULL if there is none. */
static lg__block *find(const lg__cache *cache, int k, bool any)
{
        if (cache->free[k] || !any)
                return cache->free[k];
        for (int word = k / 64; word < (int)(sizeof cache->some / sizeof *cache->some); word++) {
                uint64_t bits = cache->some[word];
                if (word == k / 64)
                        bits &= ~(uint64_t)0 << (k % 64);
                if (bits)
                        return cache->free[word * 64 + __builtin_ctzll(bits)];
        }
        return NULL;
}

/* Splits the bytes beyond `bytes` off a block, if they are LARGE or more. Returns false and sets an error if there is
 * no memory for the new record. */
static bool split(lg__cache *cache, lg__block *block, size_t bytes)
{
        if (block->bytes - bytes < LARGE)
                return true;
        lg__block *rest = lg__alloc(cache->ctx, sizeof *rest);
        if (!rest)
                return false;
        rest->cache = cache;
        rest->p = (char *)block->p + bytes;
        rest->bytes = block->bytes - bytes;
        rest->lower = block;
        rest->upper = block->upper;
        if (rest->upper)
                rest->upper->lower = rest;
        block->upper = rest;
        block->bytes = bytes;
        list_add(cache, rest);
        return true;
}

/* Joins a block with its upper neighbour, which is free and was removed from its list. */
static void join(lg__cache *cache, lg__block *block)
{
        lg__block *upper = block->upper;
        block->bytes += upper->bytes;
        block->upper = upper->upper;
        if (block->upper)
                block->upper->lower = block;
        lg__free(cache->ctx, upper, sizeof *upper);
}

/* Lets only the first `bytes` of a block be accessed, under AddressSanitizer. Does nothing for device memory. */
static void expose(const lg__cache *cache, lg__block *block, size_t bytes)
{
        if (cache->device.type != LG_DEVICE_CPU || cache->whole) /* tapes use free blocks again */
                return;
        lg__poison(block->p, block->bytes);
        lg__unpoison(block->p, bytes);
}

static void forget(lg__cache *cache, lg__block *block)
{
        expose(cache, block, block->bytes);
        lg__cache *whole = cache->whole ? cache->whole : cache;
        whole->stats.system_frees++;
        if (cache->whole)
                whole->stats.used -= (int64_t)block->bytes;
        cache->ctx->free(cache->ctx->memory_user, cache->ctx, cache->device, block->p, block->bytes);
        lg__free(cache->ctx, block, sizeof *block);
}

static void *out_of_memory(lg__cache *cache, size_t bytes)
{
        lg_device_facts facts = {.free_bytes = -1, .total_bytes = -1};
        lg__device *d = lg__device_get(cache->ctx, cache->device);
        char limit[64] = "";
        if (d)
                d->api->facts(cache->device.index, &facts);
        if (cache->limit)
                snprintf(limit, sizeof limit, ", %lld at most by lg_set_memory_limit", (long long)cache->limit);
        return lg__fail(cache->ctx, LG_ERR_MEMORY,
                        "out of memory on %s: %zu bytes asked, %lld in use, %lld cached, %lld free of %lld%s; try a "
                        "smaller batch",
                        lg_device_name(cache->device), bytes, (long long)cache->stats.used,
                        (long long)cache->stats.cached, (long long)facts.free_bytes, (long long)facts.total_bytes,
                        limit);
}

/* Allocates from the memory hooks. Returns NULL if they fail or the memory limit would be exceeded. */
static void *take(lg__cache *cache, size_t bytes)
{
        lg_ctx *c = cache->ctx;
        const lg__cache *whole = cache->whole ? cache->whole : cache;
        int64_t held = whole->stats.used + whole->stats.cached;
        if (whole->limit && (held > whole->limit || (int64_t)bytes > whole->limit - held))
                return NULL;
        return c->alloc(c->memory_user, c, cache->device, bytes);
}

/* Returns the cache's device if its queue has failed for another reason than memory, else NULL. */
static lg__device *broken(const lg__cache *cache)
{
        for (lg__device *d = cache->ctx->devices; d; d = d->next)
                if (lg_device_equal(d->id, cache->device))
                        return d->queue->status == LG_BROKEN ? d : NULL;
        return NULL;
}

static lg__block *fresh(lg__cache *cache, size_t bytes)
{
        lg_ctx *c = cache->ctx;
        lg__block *block = lg__alloc(c, sizeof *block);
        if (!block)
                return NULL;
        block->bytes = bytes;
        block->cache = cache;
        block->p = take(cache, bytes);
        if (!block->p && !broken(cache)) {
                lg_empty_cache(c);
                block->p = take(cache, bytes);
        }
        if (!block->p) {
                lg__free(c, block, sizeof *block);
                lg__device *d = broken(cache);
                if (!d)
                        return out_of_memory(cache, bytes);
                lg__kernel_done(d, "allocation", false);
                return NULL;
        }
        lg__cache *whole = cache->whole ? cache->whole : cache;
        whole->stats.system_allocs++;
        if (cache->whole) {
                whole->stats.used += (int64_t)bytes;
                if (whole->stats.used > whole->stats.peak)
                        whole->stats.peak = whole->stats.used;
        }
        return block;
}

static void notify_observers(lg__cache *cache, int64_t bytes)
{
        if (!cache->ctx->observers)
                return;
        const lg__device *d = cache->ctx->devices;
        while (!lg_device_equal(d->id, cache->device))
                d = d->next;
        LG__NOTIFY(cache->ctx, allocated, d, bytes);
}

/* ---- the memory of a tape ---- */

static lg__arena *arena_of(lg__cache *cache)
{
        return cache->whole ? (lg__arena *)(void *)cache : NULL;
}

/* Returns the bytes of a planned piece. Those of the large ones come first, and stay aligned to 256 bytes. */
static int64_t planned_bytes(size_t bytes)
{
        const int64_t unit = bytes < 4096 ? 64 : 256;
        return ((int64_t)bytes + unit - 1) / unit * unit;
}

/* Returns a block of the device's cache, whose request it notes. */
static lg__block *note_request(lg__arena *a, size_t bytes)
{
        lg__block *block = lg__cache_get(a->cache.whole, bytes);
        if (!block || !lg__grow(a->cache.ctx, &a->lives, a->count, &a->room, sizeof *a->lives)) {
                lg__cache_put(block);
                return NULL;
        }
        a->lives[a->count++] =
                (lg__life){.block = block, .bytes = planned_bytes(bytes), .from = a->events++, .to = INT64_MAX};
        return block;
}

static void note_return(lg__arena *a, const lg__block *block)
{
        int64_t i = (a->noting ? a->count : a->next) - 1;
        while (i >= 0 && a->lives[i].block != block)
                i--;
        if (i < 0)
                return;
        lg__life *l = &a->lives[i];
        a->follows = a->follows && l->to == a->events;
        l->to = a->events++;
        l->block = NULL;
}

bool lg__arena_plan(lg__arena *a, lg__arena *noted)
{
        lg_ctx *c = a->cache.ctx;
        const int64_t count = noted->count;
        if (!count)
                return true;
        lg__life **order = lg__alloc(c, (size_t)count * sizeof *order);
        if (!order)
                return false;
        const int64_t bytes = lg__place_lives(noted->lives, count, order);
        lg__free(c, order, (size_t)count * sizeof *order);
        a->planned = fresh(&a->cache, (size_t)bytes);
        if (!a->planned)
                return false;
        a->cache.stats.cached = bytes;
        a->lives = noted->lives;
        a->count = count;
        a->room = noted->room;
        a->follows = true;
        noted->lives = NULL;
        noted->count = noted->room = 0;
        return true;
}

/* Returns a block at its planned place, or NULL if there is none for this request. */
static lg__block *planned_block(lg__arena *a, size_t bytes)
{
        lg__life *l = a->next < a->count ? &a->lives[a->next] : NULL;
        a->follows = a->follows && l && l->from == a->events && l->bytes == planned_bytes(bytes);
        lg__block *block = a->follows ? lg__alloc(a->cache.ctx, sizeof *block) : NULL;
        if (!block)
                return NULL;
        *block = (lg__block){.cache = &a->cache, .p = (char *)a->planned->p + l->at, .bytes = (size_t)l->bytes};
        l->block = block;
        a->next++;
        a->events++;
        a->cache.stats.cached -= l->bytes;
        return block;
}

/* Returns whether a block was at a planned place; if so, frees its record. */
static bool leave_place(lg__arena *a, lg__block *block)
{
        const uintptr_t at = (uintptr_t)block->p, from = a->planned ? (uintptr_t)a->planned->p : 0;
        if (!a->planned || at < from || at - from >= a->planned->bytes)
                return false;
        a->cache.stats.cached += (int64_t)block->bytes;
        lg__free(a->cache.ctx, block, sizeof *block);
        return true;
}

/* ---- requests and returns ---- */

lg__block *lg__cache_get(lg__cache *cache, size_t bytes)
{
        size_t rounded;
        lg__arena *arena = arena_of(cache);
        if (bytes > SIZE_MAX / 4)
                return out_of_memory(cache, bytes);
        if (arena && arena->noting)
                return note_request(arena, bytes);
        int k = class_of(bytes, &rounded);
        lg__block *planned = arena ? planned_block(arena, bytes) : NULL;
        lg__block *block = planned ? planned : find(cache, k, rounded >= LARGE);
        if (block && !planned) {
                list_remove(cache, block);
                if (rounded >= LARGE && !split(cache, block, rounded)) {
                        list_add(cache, block);
                        return NULL;
                }
        } else if (!block) {
                block = fresh(cache, rounded);
                if (!block)
                        return NULL;
        }
        block->next = NULL;
        expose(cache, block, bytes);
        cache->stats.used += (int64_t)block->bytes;
        if (cache->stats.used > cache->stats.peak)
                cache->stats.peak = cache->stats.used;
        notify_observers(cache, (int64_t)block->bytes);
        return block;
}

void lg__cache_put(lg__block *block)
{
        if (!block)
                return;
        lg__cache *cache = block->cache;
        lg__arena *arena = arena_of(cache);
        const lg__tape *tape = cache->ctx->tape;
        if (tape && tape->memory)
                note_return(tape->memory, block);
        expose(cache, block, 0);
        cache->stats.used -= (int64_t)block->bytes;
        notify_observers(cache, -(int64_t)block->bytes);
        if (arena && leave_place(arena, block)) {
                if (cache->left)
                        lg__cache_leave(cache);
                return;
        }
        if (block->upper && block->upper->free) {
                list_remove(cache, block->upper);
                join(cache, block);
        }
        if (block->lower && block->lower->free) {
                block = block->lower;
                list_remove(cache, block);
                join(cache, block);
        }
        list_add(cache, block);
        if (cache->left)
                lg__cache_leave(cache);
}

void lg__cache_leave(lg__cache *cache)
{
        cache->left = true;
        if (cache->stats.used)
                return;
        lg__arena *a = arena_of(cache);
        lg__cache_empty(cache);
        if (a->planned)
                forget(cache, a->planned);
        lg__free(cache->ctx, a->lives, (size_t)a->room * sizeof *a->lives);
        lg__free(cache->ctx, a, sizeof *a);
}

/* Blocks with a part in use are kept. */
void lg__cache_empty(lg__cache *cache)
{
        for (int k = 0; k < LG__CLASSES; k++) {
                for (lg__block *block = cache->free[k], *next; block; block = next) {
                        next = block->next;
                        if (block->lower || block->upper)
                                continue;
                        list_remove(cache, block);
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

lg_memory_stats_t *lg_memory_stats_with(const lg_ctx *c, lg_device device, lg_memory_stats_t *ret, size_t size)
{
        const lg_memory_stats_t none = {.used = 0};
        const lg__cache *cache = cache_of(c, device);
        if (ret)
                lg__give(ret, size, cache ? &cache->stats : &none, sizeof none);
        return ret;
}

void lg_reset_peak_memory(lg_ctx *c, lg_device device)
{
        lg__cache *cache = cache_of(c, device);
        if (cache)
                cache->stats.peak = cache->stats.used;
}

bool lg_set_memory_limit(lg_ctx *c, lg_device device, int64_t bytes)
{
        lg__device *d = lg__ok(c) ? lg__device_get(c, device) : NULL;
        if (!d)
                return false;
        if (bytes < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_set_memory_limit: %lld bytes; give 0 for no limit",
                                (long long)bytes);
        d->cache.limit = bytes;
        return true;
}

int64_t lg_memory_limit(const lg_ctx *c, lg_device device)
{
        const lg__cache *cache = cache_of(c, device);
        return cache ? cache->limit : 0;
}

void lg_empty_cache(lg_ctx *c)
{
        if (!c)
                return;
        c->up->collect(c, false);
        for (lg__device *d = c->devices; d; d = d->next)
                lg__cache_empty(&d->cache);
}
