/* tape_run.c - the memory of a tape; running its calls, from the list or as graphs. */
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

static double clock_now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
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
                        ((lg_pass *)(void *)(t->data.p + call->args))->updates =
                                (const lg_update *)(const void *)(t->data.p + call->updates);
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
        call->fn(call->owner, t->data.p + call->args, (size_t)call->bytes);
}

/* Runs an operation of a link, or a wait for one, again. */
static bool exchange(lg__tape *t, lg__tape_call *call)
{
        const lg_device_links *links = t->device->api->links;
        const void *args = t->data.p + call->args;
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
                const void *args = t->data.p + call->args;
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

void lg__tape_drop_graphs(lg__tape *t)
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
                lg__tape_drop_graphs(t);
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
