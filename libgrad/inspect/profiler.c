/* profiler.c - lg_profiler_open(), its steps and its end; regions. */
#include <string.h>
#include "profiler.h"

struct lg__region {
        lg__frame frame;
        lg__region *next; /* begun before */
        uint64_t id;
        size_t bytes;
};

/* Removes the frames of the newest region from the stack of frames, and frees it. */
static void drop_region(lg_profiler *p)
{
        lg_ctx *c = p->object.ctx;
        lg__region *r = p->regions;
        p->regions = r->next;
        if (c->frame == &r->frame)
                c->frame = r->frame.outer;
        for (const lg__frame *f = c->frame; f; f = f->outer)
                if (f->outer == &r->frame)
                        ((lg__frame *)(uintptr_t)f)->outer = r->frame.outer;
        c->free(c->memory_user, c, lg_cpu(), r, r->bytes);
}

static void destroy(lg__object *o)
{
        lg_profiler *p = (lg_profiler *)o;
        lg_ctx *c = o->ctx;
        lg__profiler_stop(p);
        lg__profiler_free_marks(p);
        while (p->regions)
                drop_region(p);
#define FREE(items, room)                                                                                              \
        if (p->items)                                                                                                  \
        c->free(c->memory_user, c, lg_cpu(), p->items, (size_t)p->room * sizeof *p->items)
        FREE(spans, span_room);
        FREE(rows, row_room);
        FREE(keys, key_room);
        FREE(events, event_room);
        FREE(words, word_room);
        FREE(device_spans, device_span_room);
#undef FREE
        lg__strfree(c, p->path);
        c->profiler = NULL;
}

static const lg__type type = {.destroy = destroy};

static bool options_are_good(lg_ctx *c, const lg_profiler_options *o)
{
        if (o->skip < 0 || o->steps < 0)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_profiler_open: .skip = %lld, .steps = %lld; 0 or more can be had",
                                (long long)o->skip, (long long)o->steps);
        if (o->path && !*o->path)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_profiler_open: .path is empty");
        return !c->profiler ||
               lg__fail(c, LG_ERR_STATE, "lg_profiler_open: the context has a profiler; close it first");
}

lg_profiler *lg_profiler_open_with(lg_ctx *c, const lg_profiler_options *options)
{
        lg_profiler_options o;
        if (!lg__take(c, "lg_profiler_open", options, &o, sizeof o) || !options_are_good(c, &o))
                return NULL;
        lg_profiler *p = lg__object_new(c, &type, sizeof *p);
        if (!p)
                return NULL;
        c->profiler = p;
        p->skip = o.skip;
        p->steps = o.steps;
        if ((o.path && !(p->path = lg__strdup(c, o.path))) ||
            (!lg__profiler_first_rows(p) && !lg__fail(c, LG_ERR_MEMORY, "lg_profiler_open: there is no memory")))
                return lg__object_destroy(p);
        lg__profiler_attach(p);
        if (!p->skip)
                lg__profiler_start(p);
        return p;
}

/* Stops recording and writes the file, if that is to be done. Returns false with an error. */
static bool finish(lg_profiler *p, const char *op)
{
        lg__profiler_stop(p);
        if (!lg__ok(p->object.ctx) || !lg__profiler_resolve(p))
                return false;
        if (!p->path || p->written || p->failed)
                return true;
        p->written = true;
        return lg__profiler_write(p, op);
}

bool lg_profiler_step(lg_profiler *p)
{
        if (!p || !lg__ok(p->object.ctx))
                return false;
        if (p->stopped)
                return true;
        if (p->skip) {
                if (--p->skip == 0)
                        lg__profiler_start(p);
                return true;
        }
        return ++p->done != p->steps || finish(p, "lg_profiler_step");
}

bool lg_profiler_close(lg_profiler *p)
{
        bool ok = p && finish(p, "lg_profiler_close");
        if (ok && p->failed)
                ok = lg__fail(p->object.ctx, LG_ERR_MEMORY,
                              "lg_profiler_close: there was no memory for more of the profile, which ends after %lld "
                              "steps",
                              (long long)p->done);
        lg__object_destroy(p);
        return ok;
}

/* ---- regions ---- */

uint64_t lg_region_begin(lg_ctx *c, const char *name)
{
        if (lg__ok(c) && !name)
                lg__fail(c, LG_ERR_ARGUMENT, "lg_region_begin: the name is NULL");
        lg_profiler *p = lg__ok(c) && !c->observing ? c->profiler : NULL;
        if (!p || p->stopped)
                return 0;
        const size_t length = strlen(name) + 1, bytes = sizeof(lg__region) + length;
        lg__region *r = c->alloc(c->memory_user, c, lg_cpu(), bytes);
        if (!r) { /* the program goes on; lg_profiler_close() reports it */
                p->failed = true;
                lg__profiler_stop(p);
                return 0;
        }
        *r = (lg__region){.next = p->regions, .id = ++c->scope_ids, .bytes = bytes};
        r->frame = (lg__frame){.outer = c->frame, .label = memcpy(r + 1, name, length), .region = true};
        p->regions = r;
        c->frame = &r->frame;
        LG__NOTIFY(c, enter, &r->frame);
        return r->id;
}

void lg_region_end(lg_ctx *c, uint64_t region)
{
        lg_profiler *p = c && region ? c->profiler : NULL;
        lg__region *r = p ? p->regions : NULL;
        while (r && r->id != region)
                r = r->next;
        if (!r)
                return;
        LG__NOTIFY(c, leave, &r->frame);
        while (p->regions != r)
                drop_region(p);
        drop_region(p);
}
