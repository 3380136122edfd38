/* tape_watch.c - what a tape depends on, and whether two tapes compute the same. */
#include <string.h>
#include "tape.h"

struct lg__tape_watch {
        struct lg__tape_watch *next;
        lg__weak object;
        const void *p;
        size_t bytes;
        char was[8];
        lg__fits_fn *fits; /* in place of p, or NULL */
        int64_t data;      /* its data's offset in the tape's bytes; bytes: their number */
        lg__prepare_fn *prepare;
};

static struct lg__tape_watch *watch(lg__tape *t, lg__object *o)
{
        struct lg__tape_watch *w = lg__alloc(t->ctx, sizeof *w);
        if (!w)
                return NULL;
        lg__weak_set(&w->object, o);
        w->next = t->watches;
        return t->watches = w;
}

void lg__tape_watch(lg_ctx *c, lg__object *o, const void *p, size_t bytes)
{
        lg__tape *t = c->tape;
        if (!t)
                return;
        for (const struct lg__tape_watch *w = t->watches; w; w = w->next)
                if (w->p == p)
                        return;
        struct lg__tape_watch *w = watch(t, o);
        if (!w)
                return;
        w->p = p;
        w->bytes = bytes;
        memcpy(w->was, p, bytes);
}

void lg__tape_check(lg_ctx *c, lg__object *o, lg__fits_fn *fits, const void *data, size_t bytes,
                    lg__prepare_fn *prepare)
{
        lg__tape *t = c->tape;
        const int64_t at = t ? lg__bytes_put(t->ctx, &t->data, data, bytes) : -1;
        struct lg__tape_watch *w = at >= 0 ? watch(t, o) : NULL;
        if (!w)
                return;
        w->fits = fits;
        w->data = at;
        w->bytes = bytes;
        w->prepare = prepare;
}

bool lg__tape_lasts(const lg__tape *t)
{
        for (const struct lg__tape_watch *w = t->watches; w; w = w->next)
                if (!w->object.object || (w->fits && !w->fits(w->object.object, t->data.p + w->data, w->bytes)))
                        return false;
        return true;
}

bool lg__tape_valid(const lg__tape *t)
{
        if (!lg__tape_lasts(t))
                return false;
        for (const struct lg__tape_watch *w = t->watches; w; w = w->next)
                if (w->p && memcmp(w->was, w->p, w->bytes))
                        return false;
        return true;
}

bool lg__tape_prepare(const lg__tape *t)
{
        for (const struct lg__tape_watch *w = t->watches; w; w = w->next)
                if (w->prepare && !w->prepare(w->object.object))
                        return false;
        return true;
}

static bool same_shape(int n, const int64_t *a, int m, const int64_t *b)
{
        return n == m && memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static bool same_numbers(int kernel, const void *one, const void *two)
{
        if (kernel == LG__KERNEL_fill) {
                const lg_fill_args *a = one, *b = two;
                return a->dtype == b->dtype && a->integer == b->integer &&
                       !memcmp(&a->real, &b->real, sizeof a->real) && same_shape(a->ndim, a->shape, b->ndim, b->shape);
        }
        if (kernel == LG__KERNEL_arange) {
                const lg_arange_args *a = one, *b = two;
                return a->n == b->n && a->dtype == b->dtype && a->start == b->start && a->step == b->step;
        }
        if (kernel == LG__KERNEL_random) {
                const lg_random_args *a = one, *b = two;
                return a->n == b->n && a->dtype == b->dtype && a->kind == b->kind && a->a == b->a && a->b == b->b;
        }
        if (kernel >= LG__KERNEL_POINTWISE) {
                const lg_pointwise_args *a = one, *b = two;
                return a->dtype == b->dtype && !memcmp(&a->p0, &b->p0, 2 * sizeof a->p0) &&
                       same_shape(a->ndim, a->shape, b->ndim, b->shape);
        }
        return true;
}

static bool same_exchange(const lg_link_args *a, const lg_link_args *b)
{
        return a->what == b->what && a->dtype == b->dtype && a->reduction == b->reduction && a->rank == b->rank &&
               a->count == b->count;
}

static bool same_call(const lg__tape_call *x, const void *one, const lg__tape_call *y, const void *two)
{
        if (x->kernel != y->kernel || x->fn != y->fn || x->link != y->link || x->bytes != y->bytes)
                return false;
        if (x->fn)
                return !memcmp(one, two, (size_t)x->bytes);
        if (x->link)
                return x->bytes ? same_exchange(one, two) : x->ticket == y->ticket;
        return same_numbers(x->kernel, one, two);
}

const char *lg__tape_difference(const lg__tape *a, const lg__tape *b)
{
        for (int64_t i = 0; i < a->count && i < b->count; i++) {
                const lg__tape_call *x = &a->calls[i], *y = &b->calls[i];
                if (!same_call(x, a->data.p + x->args, y, b->data.p + y->args))
                        return y->op ? y->op : "work of the host";
        }
        return a->count < b->count ? b->calls[a->count].op : a->count > b->count ? a->calls[b->count].op : NULL;
}

void lg__tape_drop_watches(lg__tape *t)
{
        for (struct lg__tape_watch *w = t->watches, *next; w; w = next) {
                next = w->next;
                lg__weak_set(&w->object, NULL);
                lg__free(t->ctx, w, sizeof *w);
        }
        t->watches = NULL;
}
