/* context.c - a context's objects, threads, random state and settings, and the default memory hooks. */
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include "core/core.h"

#define LARGE_PAGE ((size_t)2 << 20)

char lg_end_mark[1];

const char *lg_version(void)
{
        return LG_VERSION;
}

void lg__link_init(lg__link *head)
{
        head->prev = head->next = head;
}

void lg__link_add(lg__link *head, lg__link *link)
{
        link->prev = head->prev;
        link->next = head;
        head->prev->next = link;
        head->prev = link;
}

void lg__link_remove(lg__link *link)
{
        if (!link->next)
                return;
        link->prev->next = link->next;
        link->next->prev = link->prev;
        link->prev = link->next = NULL;
}

bool lg__unrecorded(lg_ctx *c, const char *op)
{
        return !c->run ||
               lg__fail(c, LG_ERR_STATE,
                        "%s: is called in the function that lg_recorder_run runs; a recorded step cannot repeat "
                        "it, so call it between the runs",
                        op);
}

void *lg__object_new(lg_ctx *c, const lg__type *type, size_t bytes)
{
        if (lg__ok(c) && c->run)
                lg__fail(c, LG_ERR_STATE,
                         "lg_recorder_run: the function makes a module, an optimiser or another object, which a "
                         "recorded "
                         "step cannot repeat; make it before the runs");
        lg__object *o = lg__ok(c) ? lg__alloc(c, bytes) : NULL;
        if (!o)
                return NULL;
        o->ctx = c;
        o->type = type;
        o->bytes = bytes;
        lg__link_add(&c->objects, &o->link);
        return o;
}

void *lg__object_destroy(void *record)
{
        lg__object *o = record;
        if (!o || !o->type) /* already being destroyed: called from a release function of the object itself */
                return NULL;
        const lg__type *type = o->type;
        lg_ctx *c = o->ctx;
        lg__link_remove(&o->link);
        o->type = NULL;
        while (o->weak)
                lg__weak_set(o->weak, NULL);
        if (type->destroy)
                type->destroy(o);
        lg__free(c, o, o->bytes);
        return NULL;
}

void lg__weak_set(lg__weak *w, lg__object *o)
{
        if (w->object) {
                *w->at = w->next;
                if (w->next)
                        w->next->at = w->at;
        }
        w->object = o;
        if (o) {
                w->next = o->weak;
                w->at = &o->weak;
                if (w->next)
                        w->next->at = &w->next;
                o->weak = w;
        }
}

void *lg__object_use(void *record)
{
        lg__object *o = record;
        if (o)
                o->uses++;
        return o;
}

void lg__object_done(void *record)
{
        lg__object *o = record;
        if (o && !--o->uses && o->freed)
                lg__object_destroy(o);
}

void lg__object_free(void *record)
{
        lg__object *o = record;
        if (!o || !o->type)
                return;
        o->freed = true;
        if (!o->uses)
                lg__object_destroy(o);
}

bool lg__object_lasts(const lg__object *o, const char *op)
{
        return o->type || lg__fail(o->ctx, LG_ERR_STATE, "%s: what it is given was freed, or is being freed", op);
}

bool lg__may_end(lg_ctx *c, const char *op)
{
        return !c->observing ||
               lg__fail(c, LG_ERR_STATE,
                        "%s: a function given to lg_set_trace cannot do that; do it after the call that is traced", op);
}

/* Allocates host memory. Asks the system for large pages in blocks that contain some: the processor then translates
 * fewer addresses. The bytes after the last large page have small pages, so that none reaches beyond the block. */
static void *alloc_on_host(size_t bytes)
{
        void *p = NULL;
        if (posix_memalign(&p, bytes < LARGE_PAGE ? 64 : LARGE_PAGE, bytes) != 0)
                return NULL;
#ifdef MADV_HUGEPAGE
        if (bytes >= LARGE_PAGE)
                madvise(p, bytes & ~(LARGE_PAGE - 1), MADV_HUGEPAGE); /* where this fails, pages are small */
#endif
        return p;
}

void *lg_system_alloc(lg_ctx *c, lg_device device, size_t bytes)
{
        if (device.type == LG_DEVICE_CPU)
                return bytes > SIZE_MAX - 63 ? NULL : alloc_on_host((bytes + 63) & ~(size_t)63);
        lg__device *d = lg__device_get(c, device);
        return d ? d->api->allocate(d->queue, bytes) : NULL;
}

void lg_system_free(lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        if (device.type == LG_DEVICE_CPU) {
                free(p);
                return;
        }
        lg__device *d = lg__device_get(c, device);
        if (d)
                d->api->free(d->queue, p, bytes);
}

void lg__context_finish(lg_ctx *c)
{
        lg__devices_finish(c);
        lg__pool_finish(c);
        c->free(c->memory_user, NULL, lg_cpu(), c, sizeof *c);
}

void lg_seed(lg_ctx *c, uint64_t seed)
{
        lg_set_random_state(c, (lg_random_state){seed, 0});
}

lg_random_state lg_random_state_of(const lg_ctx *c)
{
        return c ? c->random : (lg_random_state){0, 0};
}

void lg_set_random_state(lg_ctx *c, lg_random_state state)
{
        if (lg__ok(c) && lg__unrecorded(c, "lg_seed"))
                c->random = state;
}

bool lg_set_threads(lg_ctx *c, int threads)
{
        if (!lg__ok(c))
                return false;
        if (threads < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_set_threads: %d threads; give 0 for all cores", threads);
        c->threads = lg__threads_for(threads);
        for (lg__device *d = c->devices; d; d = d->next)
                d->queue->threads = c->threads;
        return true;
}

int lg_threads(const lg_ctx *c)
{
        return c ? c->threads : 0;
}

void lg_set_deterministic(lg_ctx *c, bool on)
{
        if (!lg__ok(c))
                return;
        c->deterministic = on;
        for (lg__device *d = c->devices; d; d = d->next)
                d->queue->deterministic = on;
}

bool lg_deterministic(const lg_ctx *c)
{
        return c && c->deterministic;
}

void lg_set_allow_tf32(lg_ctx *c, bool on)
{
        if (!lg__ok(c))
                return;
        c->tf32 = on;
        for (lg__device *d = c->devices; d; d = d->next)
                d->queue->tf32 = on;
}

bool lg_allow_tf32(const lg_ctx *c)
{
        return c && c->tf32;
}

void lg_set_conv_allow_tf32(lg_ctx *c, bool on)
{
        if (!lg__ok(c))
                return;
        c->conv_tf32 = on;
        for (lg__device *d = c->devices; d; d = d->next)
                d->queue->conv_tf32 = on;
}

bool lg_conv_allow_tf32(const lg_ctx *c)
{
        return c && c->conv_tf32;
}

void lg_clear_error(lg_ctx *c)
{
        if (!c || c->live != LG__CTX_LIVE) /* the error of a context that is being closed must stay set */
                return;
        if (c->error)
                snprintf(c->cleared, sizeof c->cleared, "%.*s", (int)sizeof c->cleared - 1, c->message);
        lg__forget_error(c);
        for (lg__device *d = c->devices; d; d = d->next)
                if (!d->api->clear_error(d->queue))
                        lg__kernel_done(d, "lg_clear_error", false);
}
