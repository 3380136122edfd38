/* trace.c - lg_set_trace(): calls a function of the user after each op. */
#include <string.h>
#include <time.h>
#include "place.h"

typedef struct trace {
        lg__object object;
        lg__observer observer;
        lg_trace_fn *fn; /* NULL: the trace was ended while the function runs */
        lg_trace_options options;
        double op_start, fused_start; /* start of the running op; start of the running fused derivative; in seconds */
} trace;

static trace *trace_of(lg__observer *o)
{
        return (trace *)((char *)o - offsetof(trace, observer));
}

static double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void put(lg_tensor *const *t, int count, int *n, lg_shape *shape, lg_dtype *dtype)
{
        for (int i = 0; i < count && *n < LG_TRACE_MAX; i++)
                if (t[i]) {
                        shape[*n] = t[i]->at.shape;
                        dtype[(*n)++] = t[i]->at.dtype;
                }
}

static void report(trace *t, lg_trace_record *r, lg__device *d, double start)
{
        lg_ctx *c = t->object.ctx;
        lg__place place = lg__place_now(c);
        r->module = place.s;
        r->device = d->id;
        if (t->options.synchronize)
                lg__device_wait(d);
        r->seconds = now() - start;
        r->bytes_used = d->cache.stats.used;
        lg_scope scope = lg__scope_begin(c); /* opens no scope if an error is set */
        t->fn(r, t->options.user);
        lg_scope_end(c, scope);
        if (!t->fn)
                lg__object_destroy(t);
}

static void op_begin(lg__observer *o, const lg__call *call)
{
        if (!call->op->compose)
                trace_of(o)->op_start = now();
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        const lg__op *of = lg__derived_now(call->ctx);
        if (!ok || call->op->compose)
                return;
        lg__attributes_text attributes = lg__attributes_text_of(call->op, call->attributes);
        lg_trace_record r = {.op = call->op->name, .of = of ? of->name : NULL, .attributes = attributes.s};
        put(call->in, call->in_count, &r.in_count, r.in, r.in_dtype);
        put(call->out, call->out_count, &r.out_count, r.out, r.out_dtype);
        report(trace_of(o), &r, call->device, trace_of(o)->op_start);
}

static void fused_begin(lg__observer *o, const lg__vjp *v)
{
        (void)v;
        trace_of(o)->fused_start = now();
}

static void fused_end(lg__observer *o, const lg__vjp *v, bool ok)
{
        lg__attributes_text attributes = lg__attributes_text_of(v->op, v->attributes);
        lg_trace_record r = {.op = v->op->name, .of = v->op->name, .attributes = attributes.s};
        lg__device *d = NULL;
        for (int i = 0; i < v->in_count && !d; i++)
                d = v->grad_in[i] ? v->grad_in[i]->storage->device : NULL;
        if (!ok || !d)
                return;
        put(v->grad, v->out_count, &r.in_count, r.in, r.in_dtype);
        put(v->in, v->in_count, &r.in_count, r.in, r.in_dtype);
        put(v->out, v->out_count, &r.in_count, r.in, r.in_dtype);
        put(v->grad_in, v->in_count, &r.out_count, r.out, r.out_dtype);
        report(trace_of(o), &r, d, trace_of(o)->fused_start);
}

/* ---- on and off ---- */

static void destroy(lg__object *object)
{
        lg__unobserve(object->ctx, &((trace *)object)->observer);
}

static const lg__type type = {.destroy = destroy};

static trace *begin(lg_ctx *c)
{
        trace *t = lg__object_new(c, &type, sizeof *t);
        if (!t)
                return NULL;
        t->observer = (lg__observer){.op_begin = op_begin,
                                     .op_end = op_end,
                                     .recorded = lg__note_place,
                                     .fused_begin = fused_begin,
                                     .fused_end = fused_end};
        lg__observe(c, &t->observer);
        return t;
}

bool lg_set_trace_with(lg_ctx *c, lg_trace_fn *fn, const lg_trace_options *options)
{
        lg_trace_options o;
        if (!lg__take(c, "lg_set_trace", options, &o, sizeof o))
                return false;
        lg__observer *found = c->observers;
        while (found && found->op_end != op_end)
                found = found->next;
        trace *t = found ? trace_of(found) : fn ? begin(c) : NULL;
        if (!t)
                return !fn;
        t->fn = fn;
        t->options = o;
        if (!fn && !c->observing)
                lg__object_destroy(t);
        return true;
}

/* ---- as text ---- */

static void print_list(FILE *f, int count, const lg_shape *shape, const lg_dtype *dtype)
{
        for (int i = 0; i < count; i++)
                fprintf(f, "%s%s %s", i ? ", " : "", lg_dtype_name(dtype[i]), lg__shape_text(shape[i]).s);
}

void lg_trace_print(const lg_trace_record *r, void *user)
{
        FILE *f = user;
        char name[80];
        if (!r || !f)
                return;
        locale_t was = lg__point_begin();
        bool fused = r->of && !strcmp(r->of, r->op);
        snprintf(name, sizeof name, "%s%s%s%s", r->op,
                 !r->of  ? ""
                 : fused ? " (derivative)"
                         : " (of ",
                 r->of && !fused ? r->of : "", r->of && !fused ? ")" : "");
        fprintf(f, "%-28s %-7s %9.1f us  ", name, lg_device_name(r->device), r->seconds * 1e6);
        print_list(f, r->in_count, r->in, r->in_dtype);
        fputs(" -> ", f);
        print_list(f, r->out_count, r->out, r->out_dtype);
        if (r->attributes && *r->attributes)
                fprintf(f, "  (%s)", r->attributes);
        fprintf(f, "%s%s\n", *r->module ? "  in " : "", r->module);
        lg__point_end(was);
}
