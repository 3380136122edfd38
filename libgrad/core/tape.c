/* tape.c - the kernel calls of a step as a list that can be run again. */
#include <stdio.h>
#include <string.h>
#include "tape.h"

#define KERNEL(name, args)                                                                                             \
        static bool run_##name(lg_queue *q, const void *a)                                                             \
        {                                                                                                              \
                return q->api->kernels->name(q, a);                                                                    \
        }
#include "../../kernels/kernels.def"

static bool (*const runs[])(lg_queue *q, const void *args) = {
#define KERNEL(name, args) [LG__KERNEL_##name] = run_##name,
#include "../../kernels/kernels.def"
};

/* Whether the arguments of a kernel begin with a count and an array of lg_update in host memory. */
static const bool passes[LG__KERNEL_POINTWISE + 1] = {
#define UPDATE(name, ...) [LG__KERNEL_##name] = true,
#include "../../kernels/updates.def"
        [LG__KERNEL_norms] = true, [LG__KERNEL_scale] = true, [LG__KERNEL_unscale] = true};

/* Appends bytes, aligned, to those of the tape. Returns their offset; -1: no memory. */
static int64_t put(lg__tape *t, const void *data, size_t bytes)
{
        const int64_t at = t->used, end = at + (int64_t)(bytes + 15) / 16 * 16;
        while (t->bytes_room < end) {
                const int64_t room = t->bytes_room ? 2 * t->bytes_room : 4096;
                char *more = lg__alloc(t->ctx, (size_t)room);
                if (!more)
                        return -1;
                if (t->used)
                        memcpy(more, t->bytes, (size_t)t->used);
                lg__free(t->ctx, t->bytes, (size_t)t->bytes_room);
                t->bytes = more;
                t->bytes_room = room;
        }
        memcpy(t->bytes + at, data, bytes);
        t->used = end;
        return at;
}

static bool append(lg__tape *t, lg__tape_call call)
{
        if (!lg__grow(t->ctx, &t->calls, t->count, &t->room, sizeof *t->calls))
                return false;
        t->calls[t->count++] = call;
        return true;
}

bool lg__tape_add(lg__device *d, const char *op, int kernel, const void *args, size_t bytes)
{
        lg__tape *t = d->cache.ctx->tape;
        if (d != t->device)
                t->refused = "it computes on several devices";
        lg__tape_call call = {.op = op, .refresh = t->refresh, .owner = t->owner, .index = t->index, .updates = -1};
        t->refresh = NULL;
        call.run = kernel < LG__KERNEL_POINTWISE ? runs[kernel] : NULL;
        call.kernel = kernel;
        call.args = put(t, args, bytes);
        if (call.args >= 0 && call.run && passes[kernel]) {
                const lg_pass *pass = args;
                call.updates = put(t, pass->updates, (size_t)pass->count * sizeof *pass->updates);
                if (call.updates < 0)
                        return false;
        }
        return call.args >= 0 && append(t, call);
}

/* The arguments of a copy from the host; the values follow. */
typedef struct upload {
        void *to;
        size_t bytes;
} upload;

static bool run_upload(lg_queue *q, const void *args)
{
        const upload *u = args;
        return q->api->upload(q, u->to, u + 1, u->bytes);
}

bool lg__tape_upload(lg__device *d, const char *op, void *to, const void *from, size_t bytes)
{
        lg__tape *t = d->cache.ctx->tape;
        const int64_t at = put(t, &(upload){to, bytes}, sizeof(upload));
        if (d != t->device)
                t->refused = "it computes on several devices";
        return at >= 0 && put(t, from, bytes) >= 0 &&
               append(t, (lg__tape_call){
                                 .op = op, .run = run_upload, .kernel = LG__KERNEL_UPLOAD, .args = at, .updates = -1});
}

void lg__tape_host(lg_ctx *c, lg__tape_fn *fn, void *owner, int64_t index)
{
        if (c->tape)
                append(c->tape,
                       (lg__tape_call){.refresh = fn, .owner = owner, .index = index, .args = -1, .updates = -1});
}

void lg__tape_refresh(lg_ctx *c, lg__tape_fn *fn, void *owner, int64_t index)
{
        lg__tape *t = c->tape;
        if (!t)
                return;
        t->refresh = fn;
        t->owner = owner;
        t->index = index;
}

static void change(void *owner, int64_t index, void *args)
{
        (void)index;
        (void)args;
        ((lg__storage *)owner)->version++;
}

void lg__storage_changed(lg__storage *s)
{
        s->version++;
        if (s->ctx->tape && s->run != s->ctx->run)
                lg__tape_host(s->ctx, change, lg__storage_ref(s), 0);
}

/* ---- what must stay the same ---- */

struct lg__tape_watch {
        struct lg__tape_watch *next;
        lg__weak object;
        const void *p;
        size_t bytes;
        char was[8];
};

void lg__tape_watch(lg_ctx *c, lg__object *o, const void *p, size_t bytes)
{
        lg__tape *t = c->tape;
        if (!t)
                return;
        for (const struct lg__tape_watch *w = t->watches; w; w = w->next)
                if (w->p == p)
                        return;
        struct lg__tape_watch *w = lg__alloc(c, sizeof *w);
        if (!w)
                return;
        lg__weak_set(&w->object, o);
        w->p = p;
        w->bytes = bytes;
        memcpy(w->was, p, bytes);
        w->next = t->watches;
        t->watches = w;
}

bool lg__tape_valid(const lg__tape *t)
{
        for (const struct lg__tape_watch *w = t->watches; w; w = w->next)
                if (!w->object.object || memcmp(w->was, w->p, w->bytes))
                        return false;
        return true;
}

static bool same_shape(int n, const int64_t *a, int m, const int64_t *b)
{
        return n == m && memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static bool same_numbers(int kernel, const void *one, const void *two)
{
        if (kernel == LG__KERNEL_UPLOAD) {
                const upload *a = one, *b = two;
                return a->bytes == b->bytes && !memcmp(a + 1, b + 1, a->bytes);
        }
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

const char *lg__tape_difference(const lg__tape *a, const lg__tape *b)
{
        for (int64_t i = 0; i < a->count && i < b->count; i++) {
                const lg__tape_call *x = &a->calls[i], *y = &b->calls[i];
                if (x->kernel != y->kernel || x->refresh != y->refresh || (x->args < 0) != (y->args < 0) ||
                    (x->args >= 0 && (!x->refresh || x->kernel == LG__KERNEL_random) &&
                     !same_numbers(x->kernel, a->bytes + x->args, b->bytes + y->args)))
                        return y->op ? y->op : "a step of the host";
        }
        return a->count < b->count ? b->calls[a->count].op : a->count > b->count ? a->calls[b->count].op : NULL;
}

/* ---- memory ---- */

static lg__tape *tape_of(const lg_queue *q)
{
        return ((lg__device *)q->owner)->cache.ctx->replayed;
}

/* Returns the workspace that the call had when it was recorded. */
static void *same_scratch(lg_queue *q, size_t bytes)
{
        (void)bytes;
        lg__tape *t = tape_of(q);
        return t->next_scratch < t->scratch_count ? t->scratch[t->next_scratch++] : NULL;
}

bool lg__tape_begin(lg__tape *t, lg_ctx *c, lg__device *d, bool memory)
{
        *t = (lg__tape){.ctx = c, .device = d, .counter = c->random.counter};
        if (memory) {
                t->arena = lg__alloc(c, sizeof *t->arena);
                if (!t->arena)
                        return false;
                t->arena->ctx = c;
                t->arena->device = d->id;
                t->arena->whole = &d->cache;
        }
        c->tape = t;
        d->arena = t->arena;
        return true;
}

void lg__tape_end(lg__tape *t)
{
        t->ctx->tape = NULL;
        t->device->arena = NULL;
        t->draws = t->ctx->random.counter - t->counter;
        for (int64_t i = 0; i < t->count; i++) {
                const lg__tape_call *call = &t->calls[i];
                if (call->updates >= 0)
                        ((lg_pass *)(void *)(t->bytes + call->args))->updates =
                                (const lg_update *)(const void *)(t->bytes + call->updates);
        }
}

bool lg__tape_run(lg__tape *t)
{
        lg_queue *q = t->device->queue;
        const lg_kernels *kernels = t->device->api->kernels;
        void *(*const workspace)(lg_queue *, size_t) = q->workspace;
        bool ok = true;
        t->next_scratch = 0;
        t->ctx->replayed = t;
        q->workspace = same_scratch;
        const lg__tape_call *call = t->calls, *end = call + t->count;
        for (; call < end && ok; call++) {
                void *args = call->args < 0 ? NULL : t->bytes + call->args;
                if (call->refresh)
                        call->refresh(call->owner, call->index, args);
                if (args)
                        ok = call->run ? call->run(q, args)
                                       : kernels->pointwise[call->kernel - LG__KERNEL_POINTWISE](q, args);
        }
        q->workspace = workspace;
        t->ctx->replayed = NULL;
        t->ctx->random.counter += t->draws;
        return lg__kernel_done(t->device, ok ? "lg_recorder_run" : call[-1].op, ok);
}

void lg__tape_free(lg__tape *t)
{
        if (!t->ctx)
                return;
        for (int64_t i = 0; i < t->count; i++)
                if (t->calls[i].refresh == change)
                        lg__storage_unref(t->calls[i].owner);
        lg__free(t->ctx, t->calls, (size_t)t->room * sizeof *t->calls);
        lg__free(t->ctx, t->bytes, (size_t)t->bytes_room);
        for (struct lg__tape_watch *w = t->watches, *next; w; w = next) {
                next = w->next;
                lg__weak_set(&w->object, NULL);
                lg__free(t->ctx, w, sizeof *w);
        }
        lg__free(t->ctx, t->scratch, (size_t)t->scratch_room * sizeof *t->scratch);
        if (t->arena)
                lg__cache_leave(t->arena);
        *t = (lg__tape){.ctx = NULL};
}

lg__tape *lg__tape_pause(lg_ctx *c)
{
        lg__tape *t = c->tape;
        c->tape = NULL;
        if (t)
                t->device->arena = NULL;
        return t;
}

void lg__tape_resume(lg__tape *t)
{
        if (!t)
                return;
        t->ctx->tape = t;
        t->device->arena = t->arena;
}

void lg__tape_print(FILE *f, const lg__tape *t)
{
        static const char *const names[] = {
#define KERNEL(name, args) #name,
#include "../../kernels/kernels.def"
        };
        fprintf(f, ", %lld kernel calls, %lld bytes of arguments, %lld of memory\n", (long long)t->count,
                (long long)t->used, (long long)(t->arena->stats.used + t->arena->stats.cached));
        for (const lg__tape_call *call = t->calls; call < t->calls + t->count; call++)
                if (call->args >= 0)
                        fprintf(f, "  %s (%s)%s\n", call->op,
                                call->kernel == LG__KERNEL_UPLOAD     ? "values of the host"
                                : call->kernel < LG__KERNEL_POINTWISE ? names[call->kernel]
                                                                      : "elementwise",
                                call->refresh ? ", its numbers change" : "");
}
