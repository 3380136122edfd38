/* profiler_trace.c - writes a profile as a trace in Chrome's JSON format, which Perfetto reads as well. */
#include <string.h>
#include "io/json.h"
#include "io/sink.h"
#include "profiler.h"

enum { HOST = 1 }; /* thread of the host; devices have the next ones */

/* Bits of a node: an op that recorded it and its derivative are in the trace; its arrow has been written. */
enum { RECORDED = 1, DERIVED = 2, BEGUN = 4, ENDED = 8 };

typedef struct writer {
        lg__sink sink;
        const lg_profiler *p;
        unsigned char *nodes; /* bits of the nodes after p->since */
} writer;

static bool put(void *to, const char *piece, size_t bytes)
{
        return lg__sink_put(&((writer *)to)->sink, piece, bytes);
}

static bool put_text(writer *w, const char *format, ...) LG_PRINTF(2, 3);
static bool put_text(writer *w, const char *format, ...)
{
        char text[400];
        va_list args;
        va_start(args, format);
        const int n = vsnprintf(text, sizeof text, format, args);
        va_end(args);
        return n >= 0 && (size_t)n < sizeof text && put(w, text, (size_t)n);
}

/* Begins an event. Times are microseconds with three digits, which are the nanoseconds. */
static bool put_head(writer *w, const char *phase, int thread, int64_t time, const char *name)
{
        return put_text(w, ",\n{\"ph\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%lld.%03d,\"name\":", phase, thread,
                        (long long)(time / 1000), (int)(time % 1000)) &&
               lg__json_put_string(name, put, w);
}

static bool put_duration(writer *w, const char *category, int64_t took)
{
        return put_text(w, ",\"cat\":\"%s\",\"dur\":%lld.%03d", category, (long long)(took / 1000), (int)(took % 1000));
}

static bool put_name(writer *w, bool first, const char *what, int thread, const char *name)
{
        return put_text(w, "%s\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"ts\":0,\"name\":\"%s\",\"args\":{\"name\":",
                        first ? "" : ",", thread, what) &&
               lg__json_put_string(name, put, w) && put_text(w, "}}");
}

/* ---- arrows ---- */

static unsigned char *bits_of(const writer *w, const lg__event *e)
{
        const lg_profiler *p = w->p;
        const bool has = e->kind == LG__EVENT_OP || e->kind == LG__EVENT_DERIVATIVE;
        return has && e->node > p->since && e->node <= p->until ? &w->nodes[e->node - p->since - 1] : NULL;
}

/* Writes the beginning of the arrow from an op to its derivative, or its end, if both are in the trace. */
static bool put_arrow(writer *w, const lg__event *e)
{
        unsigned char *bits = bits_of(w, e);
        const bool end = e->kind == LG__EVENT_DERIVATIVE;
        if (!bits || (*bits & (RECORDED | DERIVED)) != (RECORDED | DERIVED) || *bits & (end ? ENDED : BEGUN))
                return true;
        *bits |= end ? ENDED : BEGUN;
        return put_head(w, end ? "f" : "s", HOST, e->start, "derivative") &&
               put_text(w, ",\"cat\":\"derivative\",\"id\":%llu%s}", (unsigned long long)e->node,
                        end ? ",\"bp\":\"e\"" : "");
}

/* ---- events ---- */

static bool put_shapes(writer *w, const lg__event *e)
{
        const int64_t *words = w->p->words + e->shapes;
        bool ok = put_text(w, ",\"shapes\":\"");
        for (int i = 0; ok && i < e->shape_words;) {
                const int ndim = (int)(words[i] % 256);
                ok = put_text(w, "%s%s (", i ? ", " : "", lg_dtype_name((lg_dtype)(words[i] / 256)));
                i++;
                for (int k = 0; ok && k < ndim; k++)
                        ok = put_text(w, "%s%lld", k ? ", " : "", (long long)words[i + k]);
                ok = ok && put_text(w, ")");
                i += ndim;
        }
        return ok && put_text(w, "\"");
}

static bool put_memory(writer *w, const lg__event *e)
{
        char name[64];
        snprintf(name, sizeof name, "bytes in use, %s", lg_device_name(w->p->devices[e->shape_words]->id));
        return put_head(w, "C", HOST, e->start, name) && put_text(w, ",\"args\":{\"bytes\":%.0f}}", e->number);
}

static bool put_event(writer *w, const lg__event *e)
{
        static const char *const categories[] = {[LG__EVENT_OP] = "op",
                                                 [LG__EVENT_DERIVATIVE] = "derivative",
                                                 [LG__EVENT_SPAN] = "span",
                                                 [LG__EVENT_MODULE] = "module",
                                                 [LG__EVENT_REGION] = "region"};
        if (e->kind == LG__EVENT_MEMORY)
                return put_memory(w, e);
        const lg__row *rows = w->p->rows;
        const uint32_t row = e->kind == LG__EVENT_MODULE   ? e->at.module
                             : e->kind == LG__EVENT_REGION ? e->at.region
                                                           : e->at.op;
        return put_head(w, "X", HOST, e->start, rows[row].name) &&
               put_duration(w, categories[e->kind], e->end - e->start) && put_text(w, ",\"args\":{\"module\":") &&
               lg__json_put_string(e->at.module >= LG__ROWS ? rows[e->at.module].name : "", put, w) &&
               (!e->shape_words || put_shapes(w, e)) &&
               (!(e->number > 0) || put_text(w, ",\"flops\":%.0f", e->number)) && put_text(w, "}}") && put_arrow(w, e);
}

static bool put_device_span(writer *w, const lg__device_span *s)
{
        int thread = HOST + 1;
        while (w->p->devices[thread - HOST - 1] != s->device)
                thread++;
        return s->end == s->start || (put_head(w, "X", thread, s->start, w->p->rows[s->at.op].name) &&
                                      put_duration(w, "device", s->end - s->start) && put_text(w, "}"));
}

static bool put_all(writer *w)
{
        const lg_profiler *p = w->p;
        bool ok = put_text(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[") &&
                  put_name(w, true, "process_name", HOST, "libgrad") && put_name(w, false, "thread_name", HOST, "host");
        for (int i = 0; i < p->device_count && ok; i++)
                if (p->devices[i]->api->time_mark)
                        ok = put_name(w, false, "thread_name", HOST + 1 + i, lg_device_name(p->devices[i]->id));
        for (int64_t i = 0; i < p->event_count; i++) {
                unsigned char *bits = bits_of(w, &p->events[i]);
                if (bits)
                        *bits |= p->events[i].kind == LG__EVENT_OP ? RECORDED : DERIVED;
        }
        for (int64_t i = 0; i < p->event_count && ok; i++)
                ok = put_event(w, &p->events[i]);
        for (int64_t i = 0; i < p->device_span_count && ok; i++)
                ok = put_device_span(w, &p->device_spans[i]);
        return ok && put_text(w, "\n]}\n");
}

bool lg__profiler_write(lg_profiler *p, const char *op)
{
        lg_ctx *c = p->object.ctx;
        const size_t bytes = (size_t)(p->until - p->since) + 1;
        writer w = {.sink = {.ctx = c, .op = op, .path = p->path}, .p = p, .nodes = lg__host_alloc(c, bytes)};
        if (!w.nodes)
                return false;
        memset(w.nodes, 0, bytes);
        locale_t was = lg__point_begin();
        const bool ok = lg__sink_open(&w.sink) && put_all(&w) && lg__sink_commit(&w.sink);
        lg__point_end(was);
        lg__sink_close(&w.sink);
        lg__host_free(c, w.nodes, bytes);
        return ok;
}
