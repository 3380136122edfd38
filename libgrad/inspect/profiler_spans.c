/* profiler_spans.c - the observer of a profiler: a stack of open spans, whose times and memory count to rows. */
#include <time.h>
#include "profiler.h"

static lg_profiler *profiler_of(lg__observer *o)
{
        return (lg_profiler *)((char *)o - offsetof(lg_profiler, observer));
}

int64_t lg__profiler_clock(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t lg__profiler_wall(const lg_profiler *p)
{
        return p->recording ? lg__profiler_clock() - p->start : p->wall;
}

/* ---- the end of spans ---- */

/* Adds an event that shows how many bytes of a device are in use. */
static bool show_memory(lg_profiler *p, int64_t time)
{
        for (int i = 0; i < p->device_count; i++) {
                if (p->used[i] < 0)
                        continue;
                if (!lg__profiler_room(p, &p->events, p->event_count, &p->event_room, sizeof *p->events))
                        return false;
                p->events[p->event_count++] = (lg__event){
                        .kind = LG__EVENT_MEMORY, .start = time, .shape_words = i, .number = (double)p->used[i]};
                p->used[i] = -1;
        }
        return true;
}

static void close_row(lg__row *r, int64_t took)
{
        if (--r->open > 0)
                return;
        r->calls++;
        r->total += took;
}

/* Ends the innermost span. Returns false if there is no memory. */
static bool pop(lg_profiler *p, int64_t end)
{
        lg__open_span *s = &p->spans[--p->depth];
        lg__event *e = &s->event;
        const int64_t took = end - e->start, self = took - s->inside;
        const double work = p->object.ctx->work - s->work, own_work = work - s->work_inside;
        const uint32_t rows[] = {e->at.op, e->at.module, e->at.region};
        for (int i = 0; i < 3; i++) {
                p->rows[rows[i]].self += self;
                p->rows[rows[i]].flops += own_work;
        }
        if (e->kind != LG__EVENT_REGION)
                close_row(&p->rows[e->at.op], took);
        if (e->kind == LG__EVENT_MODULE || e->kind == LG__EVENT_REGION)
                close_row(&p->rows[e->kind == LG__EVENT_MODULE ? e->at.module : e->at.region], took);
        if (p->depth) {
                p->spans[p->depth - 1].inside += took;
                p->spans[p->depth - 1].work_inside += work;
        }
        if (s->range)
                s->range->range_end();
        bool ok = !s->mark || lg__profiler_end_mark(p, s);
        if (!p->path)
                return ok;
        e->end = end;
        e->number = work;
        ok = ok && lg__profiler_room(p, &p->events, p->event_count, &p->event_room, sizeof *p->events);
        if (ok)
                p->events[p->event_count++] = *e;
        return ok && show_memory(p, end);
}

void lg__profiler_stop(lg_profiler *p)
{
        if (p->stopped)
                return;
        if (p->recording) {
                const int64_t end = lg__profiler_clock();
                bool ok = true;
                while (p->depth)
                        ok = pop(p, end - p->start) && ok;
                p->failed = p->failed || !ok;
                p->wall = end - p->start;
        }
        p->until = p->object.ctx->sequence;
        p->recording = false;
        p->stopped = true;
        lg__unobserve(p->object.ctx, &p->observer);
}

/* Stops recording for lack of memory. */
static void give_up(lg_profiler *p)
{
        p->failed = true;
        lg__profiler_stop(p);
}

/* Ends the span of this call or frame, and spans inside it that were left open. */
static void leave(lg_profiler *p, const void *key)
{
        const int64_t end = p->recording ? lg__profiler_clock() - p->start : 0;
        int64_t i = p->depth - 1;
        bool ok = true;
        while (i >= 0 && p->spans[i].key != key)
                i--;
        while (i >= 0 && p->depth > i)
                ok = pop(p, end) && ok;
        if (!ok)
                give_up(p);
}

/* ---- the beginning of spans ---- */

/* Begins a span of this kind; row: 0 if there was no memory for it. Returns the span, or NULL if recording stopped. */
static lg__open_span *enter(lg_profiler *p, const void *key, lg__event_kind kind, uint32_t row, lg__device *d)
{
        if (!row || !lg__profiler_room(p, &p->spans, p->depth, &p->span_room, sizeof *p->spans)) {
                give_up(p);
                return NULL;
        }
        const lg__places none = {LG__OTHER, LG__NO_MODULE, LG__NO_REGION};
        lg__open_span *s = &p->spans[p->depth];
        *s = (lg__open_span){.key = key, .work = p->object.ctx->work};
        s->event = (lg__event){.kind = kind, .at = p->depth ? s[-1].event.at : none, .shapes = p->word_count};
        if (kind == LG__EVENT_MODULE)
                s->event.at.module = row;
        else if (kind == LG__EVENT_REGION)
                s->event.at.region = row;
        s->event.at.op = kind == LG__EVENT_MODULE ? LG__FORWARD : kind == LG__EVENT_REGION ? LG__OTHER : row;
        p->rows[row].open++;
        p->rows[LG__FORWARD].open += kind == LG__EVENT_MODULE;
        lg__profiler_begin_mark(p, s, d);
        if (p->ranges) {
                p->ranges->range_begin(p->rows[row].name);
                s->range = p->ranges;
        }
        p->depth++;
        s->event.start = lg__profiler_clock() - p->start;
        return s;
}

/* Notes the shape of an input for the trace. */
static void note_shape(lg_profiler *p, lg__open_span *s, lg_dtype dtype, int ndim, const int64_t *size)
{
        if (!lg__profiler_room(p, &p->words, p->word_count + ndim, &p->word_room, sizeof *p->words))
                return; /* an event without a shape */
        p->words[p->word_count++] = (int64_t)dtype * 256 + ndim;
        for (int i = 0; i < ndim; i++)
                p->words[p->word_count++] = size[i];
        s->event.shape_words += 1 + ndim;
}

static void count_bytes(lg_profiler *p, const lg__open_span *s, lg_tensor *const *t, int count)
{
        int64_t bytes = 0;
        for (int i = 0; i < count; i++)
                if (t[i]) {
                        const int64_t size = lg__shape_numel(t[i]->at.shape) * (int64_t)lg__dtype_bytes(t[i]->at.dtype);
                        const int64_t most = (int64_t)t[i]->storage->bytes; /* of a broadcast view */
                        bytes += most && most < size ? most : size;
                }
        const uint32_t rows[] = {s->event.at.op, s->event.at.module, s->event.at.region};
        for (int i = 0; i < 3; i++)
                p->rows[rows[i]].bytes += bytes;
}

/* ---- callbacks ---- */

static void op_begin(lg__observer *o, const lg__call *call)
{
        lg_profiler *p = profiler_of(o);
        const lg__op *op = call->op;
        if (!p->recording)
                return;
        lg__open_span *s = enter(p, call, LG__EVENT_OP, lg__profiler_row(p, LG__ROW_OP, op, NULL, op->name, NULL),
                                 op->forward ? call->device : NULL);
        for (int i = 0; s && p->path && i < call->in_count && i < LG_TRACE_MAX; i++)
                if (call->in[i])
                        note_shape(p, s, call->in[i]->at.dtype, call->in[i]->at.shape.ndim, call->in[i]->at.shape.size);
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        lg_profiler *p = profiler_of(o);
        const lg__open_span *s = p->depth ? &p->spans[p->depth - 1] : NULL;
        if (ok && s && s->key == call && call->op->forward) {
                count_bytes(p, s, call->in, call->in_count);
                count_bytes(p, s, call->out, call->out_count);
        }
        leave(p, call);
}

static void recorded(lg__observer *o, lg__node *n)
{
        lg_profiler *p = profiler_of(o);
        if (!p->depth)
                return;
        lg__event *e = &p->spans[p->depth - 1].event;
        if (e->kind == LG__EVENT_OP)
                e->node = n->sequence;
        n->place = e->at.module;
}

static void fused_begin(lg__observer *o, const lg__vjp *v)
{
        lg_profiler *p = profiler_of(o);
        if (p->depth && v->grad[0])
                lg__profiler_begin_mark(p, &p->spans[p->depth - 1], v->grad[0]->storage->device);
}

static void fused_end(lg__observer *o, const lg__vjp *v, bool ok)
{
        lg_profiler *p = profiler_of(o);
        if (!ok || !p->depth)
                return;
        const lg__open_span *s = &p->spans[p->depth - 1];
        count_bytes(p, s, v->in, v->in_count);
        count_bytes(p, s, v->grad_in, v->in_count);
        count_bytes(p, s, v->out, v->out_count);
        count_bytes(p, s, v->grad, v->out_count);
}

static void enter_derivative(lg_profiler *p, const lg__frame *f)
{
        static const char derivative[] = "(derivative)";
        const lg__node *n = f->node;
        const uint32_t row = lg__profiler_row(p, LG__ROW_OP, n->op, derivative, n->op->name, derivative);
        lg__open_span *s = enter(p, f, LG__EVENT_DERIVATIVE, row, NULL);
        if (!s)
                return;
        s->event.node = n->sequence;
        if (n->sequence > p->since && n->place && n->place < p->row_count)
                s->event.at.module = n->place;
        for (int i = 0; p->path && i < n->in_count && i < LG_TRACE_MAX; i++)
                if (n->edges[i].size)
                        note_shape(p, s, n->edges[i].dtype, n->edges[i].ndim, n->edges[i].size);
}

static void enter_frame(lg__observer *o, const lg__frame *f)
{
        lg_profiler *p = profiler_of(o);
        if (!p->recording)
                return;
        if (f->node)
                enter_derivative(p, f);
        else if (f->module)
                enter(p, f, LG__EVENT_MODULE, lg__profiler_module_row(p, f), NULL);
        else if (f->region)
                enter(p, f, LG__EVENT_REGION, lg__profiler_row(p, LG__ROW_REGION, NULL, NULL, f->label, NULL), NULL);
        else
                enter(p, f, LG__EVENT_SPAN,
                      lg__profiler_row(p, LG__ROW_OP, f->label, f->of, f->of ? f->of : f->label,
                                       f->of ? f->label : NULL),
                      f->device);
}

static void leave_frame(lg__observer *o, const lg__frame *f)
{
        leave(profiler_of(o), f);
}

static void allocated(lg__observer *o, const lg__device *d, int64_t bytes)
{
        lg_profiler *p = profiler_of(o);
        if (!p->recording)
                return;
        const lg__places none = {LG__OTHER, LG__NO_MODULE, LG__NO_REGION};
        const lg__places at = p->depth ? p->spans[p->depth - 1].event.at : none;
        const uint32_t rows[] = {at.op, at.module, at.region};
        for (int i = 0; i < 3; i++) {
                lg__row *r = &p->rows[rows[i]];
                r->allocated += bytes > 0 ? bytes : 0;
                r->kept += bytes;
                r->peak = d->cache.stats.used > r->peak ? d->cache.stats.used : r->peak;
        }
        const int number = lg__profiler_device(p, (lg__device *)(uintptr_t)d);
        if (number >= 0)
                p->used[number] = d->cache.stats.used;
}

/* ---- recording ---- */

/* Enters the frames that are open when recording begins, the outermost first. */
static void enter_open(lg_profiler *p, const lg__frame *f)
{
        if (f) {
                enter_open(p, f->outer);
                enter_frame(&p->observer, f);
        }
}

void lg__profiler_start(lg_profiler *p)
{
        lg_ctx *c = p->object.ctx;
        for (lg__device *d = c->devices; d; d = d->next) {
                const int i = lg__profiler_device(p, d);
                if (i >= 0)
                        p->used[i] = d->cache.stats.used;
                if (d->api->range_begin)
                        p->ranges = d->api;
        }
        p->since = c->sequence;
        p->start = lg__profiler_clock();
        p->recording = true;
        if (p->path && !show_memory(p, 0))
                give_up(p);
        enter_open(p, c->frame);
}

void lg__profiler_attach(lg_profiler *p)
{
        p->observer = (lg__observer){.op_begin = op_begin,
                                     .op_end = op_end,
                                     .recorded = recorded,
                                     .fused_begin = fused_begin,
                                     .fused_end = fused_end,
                                     .enter = enter_frame,
                                     .leave = leave_frame,
                                     .allocated = allocated};
        lg__observe(p->object.ctx, &p->observer);
}
