/* anomaly.c - lg_set_anomaly(): sets an error for the first op that makes a NaN from inputs without NaN, or an infinity
 * from finite inputs. */
#include <string.h>
#include "place.h"

/* Findings, before an op or derivative runs, in tensors that it may change: gradients, and sums that it adds to. */
typedef struct came {
        bool nan, infinite; /* infinite: an infinity or a NaN */
} came;

typedef struct anomaly {
        lg__object object;
        lg__observer observer;
        lg_anomaly_options options;
        came op, derivative; /* findings for the op and for the derivative that run */
} anomaly;

/* An op, or a derivative that is a kernel, that has run. of: the op whose derivative ran or called op; NULL: none. */
typedef struct event {
        const char *op, *of;
        int in_count, out_count;
        uint32_t changed; /* bit LG__BY(i): the op has changed input i in place */
        came came;        /* findings in inputs that are not in `in`, or were changed */
        lg_tensor *const *in, *const *out;
} event;

static anomaly *anomaly_of(lg__observer *o)
{
        return (anomaly *)((char *)o - offsetof(anomaly, observer));
}

/* Returns a bool tensor: where t is NaN or, if !nan, where t is not finite. */
static lg_tensor *bad(lg_tensor *t, bool nan)
{
        return nan ? lg_isnan(t) : lg_logical_not(lg_isfinite(t));
}

/* Returns the first tensor with a NaN (or, if !nan, an infinity); NULL: none. skipped: bits LG__BY(i) of inputs. */
static lg_tensor *first_bad(const lg_ctx *c, lg_tensor *const *t, int count, uint32_t skipped, bool nan)
{
        for (int i = 0; i < count && !c->error; i++)
                if (t[i] && !(i < 32 && skipped & LG__BY(i)) && lg__dtype_float(t[i]->at.dtype) &&
                    lg__shape_numel(t[i]->at.shape) && lg_item_i64(lg_any(bad(t[i], nan))))
                        return t[i];
        return NULL;
}

static void report(lg_ctx *c, const event *e, lg_tensor *t, bool nan, bool finite)
{
        lg_tensor *flat = lg_reshape(t, LG_SHAPE(-1));
        int64_t i = lg_item_i64(lg_argmax(lg_cast(bad(flat, nan), LG_U8)));
        double value = lg_item(lg_select(flat, 0, i));
        lg__place place = lg__place_now(c);
        char of[160] = "";
        if (e->of)
                snprintf(of, sizeof of, " in the backward of %s", e->of);
        if (e->of && !strcmp(e->of, e->op))
                snprintf(of, sizeof of, " (its derivative)");
        lg__fail(c, LG_ERR_STATE, "anomaly: %s%s made %g, element %lld of %s, from %s%s%.300s", e->op, of, value,
                 (long long)i, lg__tensor_text(t).s, finite ? "finite inputs" : "infinite inputs, none of them NaN",
                 *place.s ? ", in module " : "", place.s);
}

/* Checks the results and, only if a result is bad, the inputs. nan: infinities are no anomaly. */
static void look(lg_ctx *c, const event *e, bool nan)
{
        lg_tensor *found = first_bad(c, e->out, e->out_count, 0, nan);
        if (!found)
                return;
        const bool finite = !e->came.infinite && !first_bad(c, e->in, e->in_count, e->changed, false);
        if (!finite && !nan)
                found = first_bad(c, e->out, e->out_count, 0, true);
        if (found && !c->error && (finite || !(e->came.nan || first_bad(c, e->in, e->in_count, e->changed, true))))
                report(c, e, found, nan || !finite, finite);
}

static void examine(const anomaly *a, const event *e)
{
        lg_ctx *c = a->object.ctx;
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return;
        bool recording = lg_set_grad_mode(c, false);
        look(c, e, a->options.nan_only);
        lg_set_grad_mode(c, recording);
        lg_scope_end(c, scope);
}

/* Records in ret whether the tensors, which may change before the results are checked, hold NaN or infinities. */
static void note(lg_ctx *c, came *ret, lg_tensor *const *t, int count)
{
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return;
        bool recording = lg_set_grad_mode(c, false);
        if (first_bad(c, t, count, 0, false)) {
                ret->infinite = true;
                ret->nan = ret->nan || first_bad(c, t, count, 0, true);
        }
        lg_set_grad_mode(c, recording);
        lg_scope_end(c, scope);
}

static void op_begin(lg__observer *o, const lg__call *call)
{
        came *op = &anomaly_of(o)->op;
        *op = (came){.nan = false};
        if (call->op->flags & LG__ADDS)
                note(call->ctx, op, call->in, 1);
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        const lg__op *of = lg__derived_now(call->ctx);
        event e = {.op = call->op->name, .of = of ? of->name : NULL, .in_count = call->in_count, .in = call->in};
        e.changed = call->moved;
        e.came = anomaly_of(o)->op;
        e.out_count = call->out_count;
        e.out = call->out;
        if (ok && !call->op->compose)
                examine(anomaly_of(o), &e);
}

static void fused_begin(lg__observer *o, const lg__vjp *v)
{
        came *derivative = &anomaly_of(o)->derivative;
        *derivative = (came){.nan = false};
        note(v->ctx, derivative, v->grad, v->out_count);
        note(v->ctx, derivative, v->sums, v->in_count);
}

static void fused_end(lg__observer *o, const lg__vjp *v, bool ok)
{
        enum { most = 16 }; /* inputs of the derivative that are checked, at most */
        lg_tensor *in[most + LG__MAX_OUT];
        const anomaly *a = anomaly_of(o);
        event e = {.op = v->op->name, .of = v->op->name, .in = in, .out_count = v->in_count, .out = v->grad_in};
        e.came = a->derivative;
        if (!ok)
                return;
        for (int i = 0; i < v->out_count; i++)
                in[e.in_count++] = v->out[i];
        for (int i = 0; i < v->in_count && i < most; i++)
                in[e.in_count++] = v->in[i];
        examine(a, &e);
}

/* ---- on and off ---- */

static void destroy(lg__object *object)
{
        lg__unobserve(object->ctx, &((anomaly *)object)->observer);
}

static const lg__type type = {.destroy = destroy};

static lg__observer *find(const lg_ctx *c)
{
        lg__observer *o = c->observers;
        while (o && o->op_end != op_end)
                o = o->next;
        return o;
}

bool lg_set_anomaly_with(lg_ctx *c, bool on, const lg_anomaly_options *options)
{
        lg_anomaly_options o;
        if (!lg__take(c, "lg_set_anomaly", options, &o, sizeof o))
                return false;
        lg__observer *found = find(c);
        anomaly *a = found ? anomaly_of(found) : on ? lg__object_new(c, &type, sizeof *a) : NULL;
        if (on && a && !found) {
                a->observer = (lg__observer){.op_begin = op_begin,
                                             .op_end = op_end,
                                             .recorded = lg__note_place,
                                             .fused_begin = fused_begin,
                                             .fused_end = fused_end};
                lg__observe(c, &a->observer);
        }
        if (on && a)
                a->options = o;
        else
                lg__object_destroy(a);
        return a || !on;
}

bool lg_anomaly(const lg_ctx *c)
{
        return c && find(c);
}
