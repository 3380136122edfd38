/* watch.c - traces of the ops that run, and the op that first made a NaN. */
#include <string.h>
#include <time.h>
#include "nn/nn.h"
#include "watch.h"

#define FEW 16

/* ---- on and off ---- */

static lg__watch *watch_of(lg_ctx *c)
{
        if (!c->watch)
                c->watch = lg__alloc(c, sizeof *c->watch);
        return c->watch;
}

void lg__watch_finish(lg_ctx *c)
{
        lg__free(c, c->watch, sizeof *c->watch);
        c->watch = NULL;
}

/* Ops look at c->watch only, so it is not there when nobody looks on. */
static void forget_if_idle(lg_ctx *c)
{
        if (!c->watch->trace_fn && !c->watch->anomaly_on && !c->watch->busy && !c->watch->of)
                lg__watch_finish(c);
}

bool lg_trace_with(lg_ctx *c, lg_trace_fn *fn, const lg_trace_options *options)
{
        lg_trace_options o;
        if (!lg__take(c, "lg_trace", options, &o, sizeof o) || !watch_of(c))
                return false;
        c->watch->trace_fn = fn;
        c->watch->trace = o;
        forget_if_idle(c);
        return true;
}

bool lg_anomaly_with(lg_ctx *c, bool on, const lg_anomaly_options *options)
{
        lg_anomaly_options o;
        if (!lg__take(c, "lg_anomaly", options, &o, sizeof o) || !watch_of(c))
                return false;
        c->watch->anomaly_on = on;
        c->watch->anomaly = o;
        forget_if_idle(c);
        return true;
}

bool lg_get_anomaly(const lg_ctx *c)
{
        return c && c->watch && c->watch->anomaly_on;
}

bool lg__may_end(lg_ctx *c, const char *op)
{
        return !c->watch || !c->watch->busy ||
               lg__fail(c, LG_ERR_STATE,
                        "%s: a function given to lg_trace cannot do that; do it after the call that is traced", op);
}

/* ---- what is told ---- */

static double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double lg__watch_start(lg_ctx *c)
{
        return c->watch && c->watch->trace_fn ? now() : 0;
}

typedef struct place {
        char s[LG__PATH + 80];
} place;

static place place_of(const lg_module *m)
{
        place p = {""};
        char path[LG__PATH];
        if (!m)
                return p;
        lg__module_path(m, path);
        if (*path)
                snprintf(p.s, sizeof p.s, "%s (%s)", path, m->type);
        else
                snprintf(p.s, sizeof p.s, "(%s)", m->type);
        return p;
}

char *lg__watch_where(lg_ctx *c)
{
        return c->module ? lg__strdup(c, place_of(c->module).s) : NULL;
}

/* An application as both kinds see it: an op, or a fused derivative. */
typedef struct event {
        lg_ctx *ctx;
        const char *op, *of;
        place where;
        int in_count, out_count;
        lg_tensor *const *in, *const *out;
} event;

static int put(lg_tensor *const *t, int count, lg_shape *shape, lg_dtype *dtype)
{
        int n = 0;
        for (int i = 0; i < count && n < LG_TRACE_MAX; i++)
                if (t[i]) {
                        shape[n] = t[i]->at.shape;
                        dtype[n++] = t[i]->at.dtype;
                }
        return n;
}

static void tell(lg__watch *w, const event *e, lg__device *d, double start)
{
        lg_trace_record r = {.op = e->op, .of = e->of, .module = e->where.s, .device = d->id};
        if (w->trace.synchronize)
                lg__device_wait(d);
        r.seconds = now() - start;
        r.in_count = put(e->in, e->in_count, r.in, r.in_dtype);
        r.out_count = put(e->out, e->out_count, r.out, r.out_dtype);
        r.bytes_used = d->cache.stats.used;
        w->busy = true;
        lg_scope scope = lg__scope_begin(e->ctx); /* none while an error is set */
        w->trace_fn(&r, w->trace.user);
        if (scope.id)
                lg_scope_end(e->ctx, scope);
        w->busy = false;
}

/* ---- the first NaN ---- */

/* True where t is what is looked for: NaN, or not finite. */
static lg_tensor *bad(const lg__watch *w, lg_tensor *t)
{
        return w->anomaly.nan_only ? lg_isnan(t) : lg_logical_not(lg_isfinite(t));
}

static bool any_bad(const lg__watch *w, lg_tensor *t)
{
        if (!t || !lg__dtype_float(t->at.dtype) || lg__shape_numel(t->at.shape) == 0)
                return false;
        return lg_item_i64(lg_any(bad(w, t))) != 0;
}

static bool report(const lg__watch *w, const event *e, lg_tensor *t)
{
        lg_tensor *flat = lg_reshape(t, LG_SHAPE(-1));
        int64_t i = lg_item_i64(lg_argmax(lg_cast(bad(w, flat), LG_U8)));
        double value = lg_item(lg_select(flat, 0, i));
        char of[160] = "";
        if (e->of)
                snprintf(of, sizeof of, " in the backward of %s", e->of);
        if (e->of && !strcmp(e->of, e->op))
                snprintf(of, sizeof of, " (its derivative)");
        return lg__fail(e->ctx, LG_ERR_STATE, "anomaly: %s%s made %g, element %lld of %s, from finite inputs%s%.300s",
                        e->op, of, value, (long long)i, lg__tensor_text(t).s, *e->where.s ? ", in module " : "",
                        e->where.s);
}

/* Looks at the results, and only if one is bad at the inputs. */
static bool examine(lg__watch *w, const event *e)
{
        lg_ctx *c = e->ctx;
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return false;
        bool recording = lg_grad_mode(c, false);
        lg_tensor *found = NULL;
        w->busy = true;
        for (int i = 0; i < e->out_count && !found && !c->error; i++)
                found = any_bad(w, e->out[i]) ? e->out[i] : NULL;
        bool inherited = false;
        for (int i = 0; i < e->in_count && found && !inherited; i++)
                inherited = any_bad(w, e->in[i]);
        if (found && !inherited)
                report(w, e, found);
        w->busy = false;
        lg_grad_mode(c, recording);
        lg_scope_end(c, scope);
        return !c->error;
}

static bool look(const event *e, lg__device *d, double start)
{
        lg__watch *w = e->ctx->watch;
        if (w->trace_fn)
                tell(w, e, d, start);
        return (!w->anomaly_on || examine(w, e)) && !e->ctx->error;
}

static place place_now(const lg_ctx *c)
{
        place p = {""};
        const lg__node *of = c->watch->of;
        if (!of)
                return place_of(c->module);
        if (of->where)
                snprintf(p.s, sizeof p.s, "%s", of->where);
        return p;
}

bool lg__watch_op(const lg__call *call, double start)
{
        lg__watch *w = call->ctx->watch;
        if (w->busy)
                return true;
        event e = {.ctx = call->ctx, .op = call->op->name, .where = place_now(call->ctx)};
        e.of = w->of ? w->of->op->name : NULL;
        e.in_count = call->in_count;
        e.in = call->in;
        e.out_count = call->out_count;
        e.out = call->out;
        return look(&e, call->device, start);
}

bool lg__watch_fused(const lg__vjp *v, double start)
{
        lg_tensor *in[FEW + 2 * LG__MAX_OUT];
        int count = 0;
        if (v->ctx->watch->busy)
                return true;
        for (int i = 0; i < v->out_count; i++)
                in[count++] = v->grad[i];
        for (int i = 0; i < v->in_count && i < FEW; i++)
                in[count++] = v->in[i];
        for (int i = 0; i < v->out_count; i++)
                in[count++] = v->out[i];
        event e = {.ctx = v->ctx, .op = v->op->name, .of = v->op->name, .where = place_now(v->ctx)};
        e.in_count = count;
        e.in = in;
        e.out_count = v->in_count;
        e.out = v->grad_in;
        lg__device *d = NULL;
        for (int i = 0; i < v->in_count && !d; i++)
                d = v->grad_in[i] ? v->grad_in[i]->storage->device : NULL;
        return !d || look(&e, d, start);
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
        fprintf(f, "%s%s\n", *r->module ? "  in " : "", r->module);
        lg__point_end(was);
}
