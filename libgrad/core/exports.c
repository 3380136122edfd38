/* exports.c - storages that other programs use, and give back in any thread, even after lg_close.
 *
 * A context is used by one thread at a time, and so are the reference counts of its storages. An export that is given
 * back is therefore only put on a list, by one atomic operation, which is the last time that this thread touches it;
 * whoever has the context ends it. At first that is the thread that uses the context. lg_close leaves a context that
 * has exports to nobody; then the list holds a mark, and who gives an export back takes the context in its place, ends
 * what is in the list, and puts the mark back or, if that was the last export, frees the context.
 */
#include "core/core.h"

static lg__export nobody; /* its address is the mark */

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

/* From the list of all threads into the context's own. */
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

/* One by one: a release function may collect, too. */
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

/* Of a closed context that this thread has. */
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
