/* exports.c - storages used by other programs (DLPack), which may release them in any thread, even after lg_close().
 *
 * A context is used by one thread at a time, and so are the reference counts of its storages. Therefore a released
 * export is only put on a list, by one atomic operation, after which its thread no longer accesses it. The thread that
 * owns the context frees the exports on the list. Before lg_close(), the owner is the thread that uses the context.
 * lg_close() leaves a context with exports without an owner, and stores a mark in the list. A thread that then
 * releases an export replaces the mark and so becomes the owner: it frees the exports on the list and stores the mark
 * again or, after the last export, frees the context.
 */
#include "core/core.h"

static lg__export nobody; /* its address in given_back marks a closed context without an owner */

lg__export *lg__export_new(lg__storage *s, size_t bytes)
{
        lg__export *e = lg__alloc(s->ctx, bytes);
        if (!e)
                return NULL;
        e->storage = lg__storage_ref(s);
        e->bytes = bytes;
        s->ctx->exports++;
        return e;
}

static void end(lg_ctx *c, lg__export *e)
{
        lg__storage *s = e->storage;
        lg__free(c, e, e->bytes);
        c->exports--;
        lg__storage_unref(s);
}

/* Moves the exports that other threads released to the context's own list. */
static void take(lg_ctx *c)
{
        lg__export *e = NULL, *next;
        if (atomic_load_explicit(&c->given_back, memory_order_relaxed))
                e = atomic_exchange_explicit(&c->given_back, NULL, memory_order_acquire);
        for (; e; e = next) {
                next = e->next;
                e->next = c->collected;
                c->collected = e;
        }
}

/* Takes exports one by one, because a release function may call this function, too. */
void lg__exports_collect(lg_ctx *c, bool all)
{
        while (c->exports) {
                take(c);
                lg__export **at = &c->collected, *e;
                while (*at && !all && (*at)->storage->release && (*at)->storage->refs == 1)
                        at = &(*at)->next;
                e = *at;
                if (!e)
                        return;
                *at = e->next;
                end(c, e);
        }
}

/* Frees the released exports of a closed context that this thread owns, then frees the context if no exports are left,
 * else gives up the ownership. */
static void leave(lg_ctx *c)
{
        lg__export *none;
        do {
                lg__exports_collect(c, true);
                if (!c->exports) {
                        lg__context_finish(c);
                        return;
                }
                lg__devices_empty(c);
                none = NULL;
        } while (!atomic_compare_exchange_strong_explicit(&c->given_back, &none, &nobody, memory_order_release,
                                                          memory_order_relaxed));
}

void lg__export_end(lg__export *e)
{
        lg_ctx *c = e->storage->ctx;
        lg__export *was = atomic_load_explicit(&c->given_back, memory_order_relaxed);
        do {
                e->next = was == &nobody ? NULL : was;
        } while (!atomic_compare_exchange_weak_explicit(&c->given_back, &was, was == &nobody ? NULL : e,
                                                        memory_order_acq_rel, memory_order_relaxed));
        if (was != &nobody)
                return;
        end(c, e);
        leave(c);
}

void lg__exports_close(lg_ctx *c)
{
        leave(c);
}
