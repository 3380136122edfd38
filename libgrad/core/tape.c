/* tape.c - the kernel calls of a step as a list that can be run again. */
#include <string.h>
#include <time.h>
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
        if (bytes)
                memcpy(t->bytes + at, data, bytes);
        t->used = end;
        return at;
}

static bool append(lg__tape *t, lg__tape_call call)
{
        if (!lg__grow(t->ctx, &t->calls, t->count, &t->room, sizeof *t->calls) ||
            (t->arena && !lg__grow(t->ctx, &t->notes, t->count, &t->note_room, sizeof *t->notes)))
                return false;
        if (t->arena)
                t->notes[t->count] = (lg__tape_note){0};
        t->calls[t->count++] = call;
        return true;
}

static double clock_now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool lg__tape_add(lg__device *d, const char *op, int kernel, const void *args, size_t bytes)
{
        lg__tape *t = d->cache.ctx->tape;
        if (d != t->device)
                t->refused = "it computes on several devices";
        lg__tape_call call = {.op = op, .kernel = kernel, .bytes = (int64_t)bytes, .updates = -1};
        call.args = put(t, args, bytes);
        if (call.args >= 0 && kernel < LG__KERNEL_POINTWISE && passes[kernel]) {
                const lg_pass *pass = args;
                call.updates = put(t, pass->updates, (size_t)pass->count * sizeof *pass->updates);
                if (call.updates < 0)
                        return false;
        }
        if (call.args < 0 || !append(t, call))
                return false;
        t->timing = t->arena && d->api->time_mark && d->api->time_mark(d->queue, &t->notes[t->count - 1].from);
        return true;
}

void lg__tape_done(lg__tape *t)
{
        if (t->timing)
                t->device->api->time_mark(t->device->queue, &t->notes[t->count - 1].to);
        t->timing = false;
}

void lg__tape_describe(lg__tape *t, lg_dtype dtype, lg_shape shape, int64_t bytes)
{
        for (; t->arena && t->described < t->count; t->described++) {
                lg__tape_note *n = &t->notes[t->described];
                n->dtype = dtype;
                n->shape = shape;
                n->bytes = bytes;
        }
}

/* Takes memory that calls of the tape do not use for anything else: of the device's cache, not the arena's. Returns
 * NULL with an error. */
static void *keep(lg__tape *t, size_t bytes)
{
        lg__block *block = lg__cache_get(&t->device->cache, bytes);
        if (!block)
                return NULL;
        block->next = t->kept;
        t->kept = block;
        return block->p;
}

/* Stands for values of the host, which two tapes of the same step have alike. */
static void compare(void *owner, const void *data, size_t bytes)
{
        (void)owner;
        (void)data;
        (void)bytes;
}

bool lg__tape_upload(lg__device *d, const char *op, void *to, const void *from, size_t bytes)
{
        lg__tape *t = d->cache.ctx->tape;
        lg_copy_args a = {.ndim = 1, .shape = {(int64_t)bytes}, .out_dtype = LG_U8, .in_dtype = LG_U8, .out = to};
        const int64_t at = put(t, from, bytes);
        a.out_strides[0] = a.in_strides[0] = 1;
        if (at < 0 ||
            !append(t, (lg__tape_call){.op = op, .fn = compare, .args = at, .bytes = (int64_t)bytes, .updates = -1}))
                return false;
        if (t->arena) {
                void *kept = keep(t, bytes);
                if (!kept || !d->api->upload(d->queue, kept, from, bytes))
                        return false;
                a.in = kept;
        }
        return lg__tape_add(d, op, LG__KERNEL_copy, &a, sizeof a);
}

void lg__tape_host(lg_ctx *c, lg__host_fn *fn, void *owner, const void *data, size_t bytes)
{
        lg__tape *t = c->tape;
        const int64_t at = t ? put(t, data, bytes) : -1;
        if (at >= 0)
                append(t,
                       (lg__tape_call){.fn = fn, .owner = owner, .args = at, .bytes = (int64_t)bytes, .updates = -1});
}

bool lg__tape_link(lg__device *d, const char *op, lg_link *link, const lg_link_args *a, uint64_t *ticket)
{
        lg__tape *t = d->cache.ctx->tape;
        const int64_t at = t ? put(t, a, sizeof *a) : 0;
        if (at < 0 ||
            (t && !append(t, (lg__tape_call){.op = op, .link = link, .args = at, .bytes = sizeof *a, .updates = -1})))
                return false;
        const bool ok = d->api->links->run(d->queue, link, a, ticket);
        if (t) {
                t->calls[t->count - 1].ticket = *ticket;
                t->refused = d != t->device ? "it computes on several devices" : t->refused;
        }
        return lg__kernel_done(d, op, ok);
}

bool lg__tape_wait(lg__device *d, const char *op, lg_link *link, uint64_t ticket)
{
        lg__tape *t = d->cache.ctx->tape;
        if (!lg__kernel_done(d, op, d->api->links->wait(d->queue, link, ticket)))
                return false;
        int64_t i = t ? t->count - 1 : 0;
        while (t && i >= 0 && !(t->calls[i].link == link && t->calls[i].bytes && t->calls[i].ticket == ticket))
                i--;
        if (i < 0)
                t->refused = "it waits for an exchange that began before it";
        return !t || append(t, (lg__tape_call){.op = op, .link = link, .ticket = (uint64_t)i, .updates = -1});
}

static void change(void *owner, const void *data, size_t bytes)
{
        (void)data;
        (void)bytes;
        ((lg__storage *)owner)->version++;
}

void lg__storage_changed(lg__storage *s)
{
        s->version++;
        if (s->ctx->tape && s->run != s->ctx->run)
                lg__tape_host(s->ctx, change, lg__storage_ref(s), NULL, 0);
}

bool lg__tape_changes(const lg_ctx *c, const lg__storage *s)
{
        const lg__tape *t = c->tape;
        for (int64_t i = 0; t && i < t->count; i++)
                if (t->calls[i].fn == change && t->calls[i].owner == s)
                        return true;
        return false;
}

/* ---- dials ---- */

/* Adds a dial. Calls that are before it on the tape run after it is set. */
static lg_dial *add_dial(lg__tape *t, lg__dial_fn *refresh, void *owner, int64_t index)
{
        lg__tape_dial dial = {.refresh = refresh, .owner = owner, .index = index};
        double *to;
        if (!lg__grow(t->ctx, &t->dials, t->dial_count, &t->dial_room, sizeof *t->dials) ||
            !lg__grow(t->ctx, &t->values, t->dial_count, &t->value_room, sizeof *t->values) ||
            !(to = keep(t, sizeof t->values->value)))
                return NULL;
        for (int64_t i = 0; i < t->count; i++)
                dial.ahead += t->calls[i].fn && t->calls[i].owner == owner;
        t->dials[t->dial_count] = dial;
        t->values[t->dial_count] = (lg_dial){.to = to};
        return &t->values[t->dial_count++];
}

double *lg__dial(lg__device *d, const char *op, double *to, lg__dial_fn *refresh, void *owner, int64_t index)
{
        lg__tape *t = d->cache.ctx->tape;
        lg_dial own = {.to = to}, *dial = t && t->arena ? add_dial(t, refresh, owner, index) : &own;
        if (!dial)
                return NULL;
        refresh(owner, index, 0, dial->value);
        const lg_dials_args a = {1, dial};
        return lg__kernel_done(d, op, d->api->kernels->dials(d->queue, &a)) ? dial->to : NULL;
}

/* Writes by how much the seed and the position of the random generator differ from those at the beginning. */
static void refresh_random(void *owner, int64_t index, int64_t ahead, double *value)
{
        const lg__tape *t = owner;
        const lg_ctx *c = t->ctx;
        const uint64_t moved[2] = {c->random.seed + c->rank_seed - t->random.seed - t->rank_seed,
                                   c->random.counter - t->random.counter};
        (void)index;
        (void)ahead;
        memset(value, 0, LG_STEP_INPUTS * sizeof *value);
        if (c->replayed)
                memcpy(value, moved, sizeof moved);
}

const uint64_t *lg__tape_moved(lg_ctx *c)
{
        lg__tape *t = c->tape;
        if (!t || !t->arena)
                return NULL;
        for (int64_t i = 0; i < t->dial_count; i++)
                if (t->dials[i].refresh == refresh_random)
                        return (const uint64_t *)(const void *)t->values[i].to;
        return (const uint64_t *)(const void *)lg__dial(t->device, "random", NULL, refresh_random, t, 0);
}

/* ---- what must stay the same ---- */

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
        const int64_t at = t ? put(t, data, bytes) : -1;
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
                if (!w->object.object || (w->fits && !w->fits(w->object.object, t->bytes + w->data, w->bytes)))
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
                if (!same_call(x, a->bytes + x->args, y, b->bytes + y->args))
                        return y->op ? y->op : "work of the host";
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

bool lg__tape_begin(lg__tape *t, lg_ctx *c, lg__device *d, lg__tape *before)
{
        *t = (lg__tape){.ctx = c, .device = d, .random = c->random, .rank_seed = c->rank_seed};
        t->memory = lg__alloc(c, sizeof *t->memory);
        if (!t->memory)
                return false;
        t->memory->cache = (lg__cache){.ctx = c, .device = d->id, .whole = &d->cache};
        t->memory->noting = !before;
        if (before) {
                t->arena = &t->memory->cache;
                if (!lg__arena_plan(t->memory, before->memory))
                        return false;
        }
        c->tape = t;
        d->arena = &t->memory->cache;
        return true;
}

void lg__tape_end(lg__tape *t)
{
        t->ctx->tape = NULL;
        t->device->arena = NULL;
        t->draws = t->ctx->random.counter - t->random.counter;
        for (int64_t i = 0; i < t->count; i++) {
                const lg__tape_call *call = &t->calls[i];
                if (call->updates >= 0)
                        ((lg_pass *)(void *)(t->bytes + call->args))->updates =
                                (const lg_update *)(const void *)(t->bytes + call->updates);
        }
}

static bool set_dials(lg__tape *t)
{
        const lg_dials_args a = {t->dial_count, t->values};
        for (int64_t i = 0; i < t->dial_count; i++) {
                const lg__tape_dial *dial = &t->dials[i];
                dial->refresh(dial->owner, dial->index, dial->ahead, t->values[i].value);
        }
        return !a.count || t->device->api->kernels->dials(t->device->queue, &a);
}

static void work(const lg__tape *t, const lg__tape_call *call)
{
        call->fn(call->owner, t->bytes + call->args, (size_t)call->bytes);
}

/* Runs an operation of a link, or a wait for one, again. */
static bool exchange(lg__tape *t, lg__tape_call *call)
{
        const lg_device_links *links = t->device->api->links;
        const void *args = t->bytes + call->args;
        return call->bytes ? links->run(t->device->queue, call->link, args, &call->ticket)
                           : links->wait(t->device->queue, call->link, t->calls[call->ticket].ticket);
}

/* Runs the calls from `first` to before `end`, the first time with a clock, and the work of the host if `works`.
 * Returns the failed call, or NULL. */
static const lg__tape_call *run_calls(lg__tape *t, int64_t first, int64_t end, bool works)
{
        lg_queue *q = t->device->queue;
        const lg_kernels *kernels = t->device->api->kernels;
        void *(*const workspace)(lg_queue *, size_t) = q->workspace;
        const bool timed = works && !t->timed;
        bool ok = true;
        q->workspace = same_scratch;
        for (; first < end && ok; first++) {
                lg__tape_call *call = &t->calls[first];
                const void *args = t->bytes + call->args;
                if (timed)
                        t->notes[first].seconds = -clock_now();
                if (call->link)
                        ok = exchange(t, call);
                else if (!call->fn)
                        ok = call->kernel < LG__KERNEL_POINTWISE
                                     ? runs[call->kernel](q, args)
                                     : kernels->pointwise[call->kernel - LG__KERNEL_POINTWISE](q, args);
                else if (works)
                        work(t, call);
                if (timed)
                        t->notes[first].seconds += clock_now();
        }
        t->timed = t->timed || works;
        q->workspace = workspace;
        return ok ? NULL : &t->calls[first - 1];
}

/* ---- graphs ---- */

/* Returns where the graph of the kernel calls before call i is, or of the last ones if there is no such call; NULL:
 * call i is not one that ends a graph. */
static void **graph_before(lg__tape *t, int64_t i)
{
        return i == t->count ? &t->graph : t->calls[i].link ? &t->calls[i].graph : NULL;
}

static void free_graphs(lg__tape *t)
{
        for (int64_t i = 0; i <= t->count; i++) {
                void **graph = graph_before(t, i);
                if (graph && *graph)
                        t->device->api->free_graph(t->device->queue, *graph);
                if (graph)
                        *graph = NULL;
        }
}

typedef struct segment {
        lg__tape *t;
        int64_t first, end; /* calls [first, end) */
} segment;

static bool run_segment(void *user)
{
        const segment *s = user;
        return !run_calls(s->t, s->first, s->end, false);
}

static bool refuse_release(lg_queue *q)
{
        (void)q;
        return false;
}

/* Captures the kernel calls between the calls of links as a graph each, once. Returns whether all are captured. */
static bool capture(lg__tape *t)
{
        lg_queue *q = t->device->queue;
        if (t->tried || !t->device->api->capture)
                return t->captured;
        bool (*const release_cached)(lg_queue *) = q->release_cached;
        int64_t kernels = 0;
        segment s = {t, 0, 0};
        q->release_cached = refuse_release;
        t->tried = t->captured = true;
        t->next_scratch = 0;
        for (; s.end <= t->count && t->captured; s.end++) {
                void **graph = graph_before(t, s.end);
                if (graph && kernels)
                        t->captured = (*graph = t->device->api->capture(q, run_segment, &s)) != NULL;
                if (graph) {
                        s.first = s.end + 1;
                        kernels = 0;
                } else
                        kernels += !t->calls[s.end].fn;
        }
        q->release_cached = release_cached;
        if (!t->captured)
                free_graphs(t);
        return t->captured;
}

/* Launches the graphs, with the calls of links between them. Returns the name of what failed, or NULL. */
static const char *launch(lg__tape *t, const char *op)
{
        for (int64_t i = 0; i <= t->count; i++) {
                void *const *graph = graph_before(t, i);
                if (graph && *graph && !t->device->api->launch(t->device->queue, *graph))
                        return op;
                if (graph && i < t->count && !exchange(t, &t->calls[i]))
                        return t->calls[i].op;
        }
        return NULL;
}

/* On the CPU, calls and work of the host alternate as in the recorded run, because an optimiser's step counts only if
 * no error was found before it. */
bool lg__tape_run(lg__tape *t)
{
        const char *op = "lg_recorder_run";
        t->ctx->replayed = t;
        bool ok = set_dials(t);
        if (ok && capture(t)) {
                const char *failed = launch(t, op);
                for (const lg__tape_call *call = t->calls; !failed && call < t->calls + t->count; call++)
                        if (call->fn)
                                work(t, call);
                op = failed ? failed : op;
                ok = !failed;
        } else if (ok) {
                t->next_scratch = 0;
                const lg__tape_call *failed = run_calls(t, 0, t->count, true);
                op = failed ? failed->op : op;
                ok = !failed;
        }
        t->ctx->replayed = NULL;
        t->ctx->random.counter += t->draws;
        return lg__kernel_done(t->device, op, ok);
}

void lg__tape_free(lg__tape *t)
{
        if (!t->ctx)
                return;
        free_graphs(t);
        for (int64_t i = 0; i < t->count; i++)
                if (t->calls[i].fn == change)
                        lg__storage_unref(t->calls[i].owner);
        for (int64_t i = 0; t->device->api->time_mark && t->notes && i < t->count; i++) {
                t->device->api->time_free(t->device->queue, t->notes[i].from);
                t->device->api->time_free(t->device->queue, t->notes[i].to);
        }
        lg__free(t->ctx, t->notes, (size_t)t->note_room * sizeof *t->notes);
        lg__free(t->ctx, t->calls, (size_t)t->room * sizeof *t->calls);
        lg__free(t->ctx, t->bytes, (size_t)t->bytes_room);
        for (struct lg__tape_watch *w = t->watches, *next; w; w = next) {
                next = w->next;
                lg__weak_set(&w->object, NULL);
                lg__free(t->ctx, w, sizeof *w);
        }
        lg__free(t->ctx, t->scratch, (size_t)t->scratch_room * sizeof *t->scratch);
        for (lg__block *block = t->kept, *after; block; block = after) {
                after = block->next;
                lg__cache_put(block);
        }
        lg__free(t->ctx, t->dials, (size_t)t->dial_room * sizeof *t->dials);
        lg__free(t->ctx, t->values, (size_t)t->value_room * sizeof *t->values);
        if (t->memory)
                lg__cache_leave(&t->memory->cache);
        *t = (lg__tape){.ctx = NULL};
}

lg__tape *lg__tape_pause(lg_ctx *c)
{
        lg__tape *t = c->tape;
        c->tape = NULL;
        if (t) {
                t->device->arena = NULL;
                t->run = c->run;
                c->run = 0;
        }
        return t;
}

void lg__tape_resume(lg__tape *t)
{
        if (!t)
                return;
        t->ctx->tape = t;
        t->ctx->run = t->run;
        t->device->arena = &t->memory->cache;
}
