/* log.c - the ops of a run: noted in the second, compared in later ones. */
#include <string.h>
#include "graph/op.h"
#include "nn/nn.h"
#include "recorder.h"

static bool note_outer(recording *k, lg_ctx *c, lg_tensor *t, bool firm, const char *name)
{
        for (int64_t i = 0; i < k->outer_count; i++)
                if (k->outers[i].tensor == t)
                        return true;
        if (!lg__grow(c, &k->outers, k->outer_count, &k->outer_room, sizeof *k->outers))
                return false;
        if (t->node && t->node->hooks)
                return lg__fail(c, LG_ERR_STATE,
                                LG__RUN_OP
                                ": a tensor that %s uses has a hook (lg_hook), which a recorded step cannot call",
                                name);
        k->outers[k->outer_count++] = (outer){t, t->serial, lg__storage_ref(t->storage), t->node, firm, false};
        return true;
}

/* Returns a number of an operand: which storage of the run, or which earlier tensor, and its layout. */
static uint64_t operand(lg_recorder *r, const lg__op *op, lg_tensor *t)
{
        lg_ctx *c = r->object.ctx;
        if (!t)
                return 1;
        uint64_t h = lg__mix((uint64_t)t->at.dtype * 31 + (uint64_t)t->at.shape.ndim, (uint64_t)t->at.offset);
        for (int i = 0; i < t->at.shape.ndim; i++)
                h = lg__mix(lg__mix(h, (uint64_t)t->at.shape.size[i]), (uint64_t)t->at.strides[i]);
        if (t->storage->run == c->run)
                return lg__mix(h, t->storage->number);
        if (t->serial > r->since || !t->serial) /* 0: a handle on the stack */
                return h;
        const bool firm = t->owner != LG__OWNER_LIBRARY || t->node;
        note_outer(r->running, c, t, firm, op->name);
        return firm ? lg__mix(h, (uintptr_t)t) : h;
}

/* Returns whether two values of a field are the same. Sizes and dims beyond the count are unset. Fields of u64 place
 * random numbers and do not count. */
static bool same_value(const lg__field *f, const void *a, const void *b, size_t bytes)
{
        if (f->type == LG__FIELD_shape)
                return lg__shape_equal(*(const lg_shape *)a, *(const lg_shape *)b);
        if (f->type == LG__FIELD_dims) {
                const lg_dims *x = a, *y = b;
                return x->count == y->count &&
                       (x->count < 1 || !memcmp(x->dim, y->dim, (size_t)x->count * sizeof *x->dim));
        }
        return f->type == LG__FIELD_u64 || !memcmp(a, b, bytes);
}

/* Returns the field in which two sets of attributes differ, or NULL. */
static const lg__field *difference(const lg__op *op, const void *a, const void *b)
{
        const lg__field *next = op->fields;
        size_t at = 0;
        for (const void *p; (p = lg__next_field(a, &next, &at));) {
                const lg__field *f = next - 1;
                const size_t from = (size_t)((const char *)p - (const char *)a);
                if (!same_value(f, p, (const char *)b + from, at - from))
                        return f;
        }
        return NULL;
}

bool lg__log_differs(lg_recorder *r, const char *name, const char *what)
{
        return lg__fail(r->object.ctx, LG_ERR_STATE,
                        LG__RUN_OP
                        ": %s differs between two runs of the function in %s; what changes from step to step is "
                        "given as an input, or set by an optimiser's rates",
                        name, what);
}

static void note(lg_recorder *r, const lg__op *op, const void *attributes, uint64_t operands)
{
        recording *k = r->running;
        lg_ctx *c = r->object.ctx;
        if (k->runs == 0)
                return;
        if (k->runs == 1) {
                const int64_t at = lg__bytes_put(c, &k->attributes, attributes, op->attributes_bytes);
                if (at >= 0 && lg__grow(c, &k->ops, k->count, &k->room, sizeof *k->ops))
                        k->ops[k->count++] = (noted){op, at, operands};
                return;
        }
        if (k->at >= k->count || k->ops[k->at].op != op) {
                lg__log_differs(r, op->name, "which ops it applies");
                return;
        }
        const noted *n = &k->ops[k->at++];
        const lg__field *f = difference(op, attributes, k->attributes.p + n->attributes);
        if (f)
                lg__log_differs(r, op->name, f->name);
        else if (n->operands != operands)
                lg__log_differs(r, op->name, "its operands");
}

static lg_recorder *recorder_of(lg__observer *o)
{
        return (lg_recorder *)((char *)o - offsetof(lg_recorder, observer));
}

static int64_t bytes_of(lg_tensor *const *t, int count)
{
        int64_t sum = 0;
        for (int i = 0; i < count; i++)
                sum += t[i] ? lg__shape_numel(t[i]->at.shape) * (int64_t)lg__dtype_bytes(t[i]->at.dtype) : 0;
        return sum;
}

/* Tells the tape, if there is one, what the last op computed from so many bytes. */
static void describe(lg__tape *tape, lg_tensor *const *out, int count, int64_t bytes)
{
        int i = 0;
        while (i < count && !out[i])
                i++;
        if (tape && i < count)
                lg__tape_describe(tape, out[i]->at.dtype, out[i]->at.shape, bytes + bytes_of(out, count));
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        lg_recorder *r = recorder_of(o);
        uint64_t h = 0;
        if (!ok || call->op->compose || !call->ctx->run) /* run 0: a tape is paused */
                return;
        describe(call->ctx->tape, call->out, call->out_count, bytes_of(call->in, call->in_count));
        for (int i = 0; i < call->in_count; i++)
                h = lg__mix(h, operand(r, call->op, call->in[i]));
        for (int i = 0; i < call->out_count; i++)
                h = lg__mix(h, operand(r, call->op, call->out[i]));
        note(r, call->op, call->attributes, h);
}

static void fused_end(lg__observer *o, const lg__vjp *v, bool ok)
{
        lg_recorder *r = recorder_of(o);
        uint64_t h = 0;
        if (!ok)
                return;
        describe(v->ctx->tape, v->grad_in, v->in_count, bytes_of(v->in, v->in_count));
        for (int i = 0; i < v->in_count; i++)
                h = lg__mix(lg__mix(h, operand(r, v->op, v->in[i])), operand(r, v->op, v->grad_in[i]));
        note(r, v->op, v->attributes, h);
}

static void leaf_used(lg__observer *o, lg_tensor *t, bool read)
{
        lg_recorder *r = recorder_of(o);
        recording *k = r->running;
        if (!t->serial || t->serial > r->since || !note_outer(k, r->object.ctx, t, true, "the function"))
                return;
        if (read && lg__has_gradient(t) && t->node->grads[0]->storage->run != r->object.ctx->run)
                for (int64_t i = 0; i < k->outer_count; i++)
                        k->outers[i].read = k->outers[i].read || k->outers[i].tensor == t;
}

static void enter(lg__observer *o, const lg__frame *f)
{
        (void)o;
        if (f->module)
                lg__module_seen(f->module);
}

uint64_t lg__log_outcome(lg_recorder *r, const recording *k, lg_tensor *result)
{
        uint64_t h = operand(r, NULL, result);
        if (result && result->storage->run != r->object.ctx->run) /* an input, or not of the run */
                h = lg__mix(h, (uintptr_t)result->storage);
        for (int64_t i = 0; i < k->outer_count; i++)
                if (lg__leaf_of(&k->outers[i]) && lg__has_gradient(k->outers[i].tensor))
                        h = lg__mix(h, (uint64_t)i);
        return h;
}

lg__observer lg__log_observer(void)
{
        return (lg__observer){.op_end = op_end, .fused_end = fused_end, .enter = enter, .leaf = leaf_used};
}
