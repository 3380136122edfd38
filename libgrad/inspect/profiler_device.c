/* profiler_device.c - how long devices work for a span: marks in their queues, turned into times at the end. */
#include "profiler.h"

int lg__profiler_device(lg_profiler *p, lg__device *d)
{
        int i = 0;
        while (i < p->device_count && p->devices[i] != d)
                i++;
        if (i == LG__PROFILED_DEVICES)
                return -1;
        if (i == p->device_count) {
                p->devices[p->device_count++] = d;
                p->used[i] = -1;
        }
        return i;
}

void lg__profiler_begin_mark(lg_profiler *p, lg__open_span *s, lg__device *d)
{
        if (!d || !d->api->time_mark || p->marking || lg__profiler_device(p, d) < 0)
                return;
        p->marking = d->api->time_mark(d->queue, &s->mark);
        s->device = d;
}

bool lg__profiler_end_mark(lg_profiler *p, lg__open_span *s)
{
        lg__device_span d = {.device = s->device, .from = s->mark, .at = s->event.at};
        const lg_device_api *api = s->device->api;
        const bool has_room = lg__profiler_room(p, &p->device_spans, p->device_span_count, &p->device_span_room,
                                                sizeof *p->device_spans);
        p->marking = false;
        if (has_room && api->time_mark(s->device->queue, &d.to)) {
                p->device_spans[p->device_span_count++] = d;
                return true;
        }
        api->time_free(s->device->queue, d.to);
        api->time_free(s->device->queue, d.from);
        return has_room;
}

/* Sets the times of a span, of which `last` was passed at `time`, ns since the recording began. Returns false if the
 * device does not tell. Spans of a device follow each other: the clock of the marks is coarse. */
static bool set_times(lg__device_span *d, void *last, int64_t time, int64_t *after)
{
        double took, before;
        if (!d->device->api->time_between(d->device->queue, d->from, d->to, &took) ||
            !d->device->api->time_between(d->device->queue, d->from, last, &before))
                return false;
        const int64_t start = time - (int64_t)(before * 1e9), end = start + (int64_t)(took * 1e9);
        d->start = start > *after ? start : *after;
        d->end = end > d->start ? end : d->start;
        *after = d->end;
        return true;
}

static bool resolve_device(lg_profiler *p, lg__device *d)
{
        void *last = NULL;
        bool any = false;
        for (int64_t i = 0; i < p->device_span_count && !any; i++)
                any = p->device_spans[i].device == d && p->device_spans[i].from;
        if (!any)
                return true;
        bool good = d->api->time_mark(d->queue, &last);
        if (!lg__device_wait(d))
                good = false;
        const int64_t time = lg__profiler_clock() - p->start;
        int64_t after = 0;
        for (int64_t i = 0; i < p->device_span_count && good; i++) {
                lg__device_span *s = &p->device_spans[i];
                if (s->device != d || !set_times(s, last, time, &after))
                        continue;
                const uint32_t rows[] = {s->at.op, s->at.module, s->at.region};
                for (int k = 0; k < 3; k++)
                        p->rows[rows[k]].device += (double)(s->end - s->start) * 1e-9;
        }
        d->api->time_free(d->queue, last);
        return !d->cache.ctx->error;
}

bool lg__profiler_resolve(lg_profiler *p)
{
        bool ok = true;
        for (int i = 0; i < p->device_count && ok; i++)
                ok = resolve_device(p, p->devices[i]);
        lg__profiler_free_marks(p);
        return ok;
}

void lg__profiler_free_marks(lg_profiler *p)
{
        for (int64_t i = 0; i < p->device_span_count; i++) {
                lg__device_span *s = &p->device_spans[i];
                if (s->from) {
                        s->device->api->time_free(s->device->queue, s->from);
                        s->device->api->time_free(s->device->queue, s->to);
                }
                s->from = s->to = NULL;
        }
}
