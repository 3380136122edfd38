/* recorder.c - lg_recorder_run(): a step that is recorded as a list of kernel calls and run again from the list.
 *
 * The first run of a step is an ordinary one. The ops of the second are noted; those of the third are compared with
 * them and put on a tape. Further runs copy their inputs and run the tape. */
#include <string.h>
#include "core/observer.h"
#include "core/tape.h"
#include "graph/op.h"

#define MOST_INPUTS 8
#define OP "lg_recorder_run"

/* An op of a run: its attributes, and a number made of its operands. */
typedef struct noted {
        const lg__op *op;
        int64_t attributes; /* offset in the log's bytes */
        uint64_t operands;
} noted;

/* A tensor made before the run that an op of the run uses. */
typedef struct outer {
        lg_tensor *tensor;
        uint64_t serial;
        lg__storage *storage;
} outer;

/* A leaf that got a gradient. */
typedef struct leaf {
        lg__node *node;
        lg_tensor *grad; /* after the recorded run: the gradient, which the list computes again */
        bool had;        /* a gradient before the run */
} leaf;

typedef struct recording {
        struct recording *next;
        int input_count;
        lg__layout given[MOST_INPUTS]; /* layouts of the inputs */
        int runs;
        noted *ops;
        int64_t count, room, at;
        char *bytes;
        int64_t used, bytes_room;
        outer *outers;
        int64_t outer_count, outer_room;
        leaf *leaves;
        int64_t leaf_count, leaf_room;
        lg__tape tape;
        lg_tensor *in[MOST_INPUTS]; /* the tensors that the list reads */
        lg_tensor *result;          /* of the list; NULL: none */
} recording;

struct lg_recorder {
        lg__object object;
        lg_function *fn;
        lg_recorder_options o;
        recording *recordings;
        recording *running;
        lg__observer observer;
        uint64_t since; /* the last tensor made before the run */
};

/* ---- the log ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
        return (h ^ v) * UINT64_C(0x9E3779B97F4A7C15) ^ (h >> 29);
}

static bool note_outer(recording *k, lg_ctx *c, lg_tensor *t)
{
        for (int64_t i = 0; i < k->outer_count; i++)
                if (k->outers[i].tensor == t)
                        return true;
        if (!lg__grow(c, &k->outers, k->outer_count, &k->outer_room, sizeof *k->outers))
                return false;
        k->outers[k->outer_count++] = (outer){t, t->serial, lg__storage_ref(t->storage)};
        return true;
}

/* Returns a number of an operand: which storage of the run, or which earlier tensor, and its layout. */
static uint64_t operand(lg_recorder *r, lg_tensor *t)
{
        lg_ctx *c = r->object.ctx;
        if (!t)
                return 1;
        uint64_t h = mix((uint64_t)t->at.dtype * 31 + (uint64_t)t->at.shape.ndim, (uint64_t)t->at.offset);
        for (int i = 0; i < t->at.shape.ndim; i++)
                h = mix(mix(h, (uint64_t)t->at.shape.size[i]), (uint64_t)t->at.strides[i]);
        if (t->storage->run == c->run)
                return mix(h, t->storage->number);
        const bool leaf = t->node && !t->node->op;
        if (t->serial <= r->since && (t->owner != LG__OWNER_LIBRARY || leaf)) {
                note_outer(r->running, c, t);
                h = mix(h, (uintptr_t)t);
        }
        return h;
}

static int64_t keep(recording *k, lg_ctx *c, const void *data, size_t bytes)
{
        const int64_t at = k->used, end = at + (int64_t)(bytes + 15) / 16 * 16;
        while (k->bytes_room < end) {
                const int64_t room = k->bytes_room ? 2 * k->bytes_room : 1024;
                char *more = lg__alloc(c, (size_t)room);
                if (!more)
                        return -1;
                if (k->used)
                        memcpy(more, k->bytes, (size_t)k->used);
                lg__free(c, k->bytes, (size_t)k->bytes_room);
                k->bytes = more;
                k->bytes_room = room;
        }
        if (bytes)
                memcpy(k->bytes + at, data, bytes);
        k->used = end;
        return at;
}

/* Returns the field in which two sets of attributes differ, or NULL. Fields of u64 place random numbers. */
static const lg__field *difference(const lg__op *op, const void *a, const void *b)
{
        const lg__field *next = op->fields;
        size_t at = 0;
        for (const void *p; (p = lg__next_field(a, &next, &at));) {
                const lg__field *f = next - 1;
                const size_t from = (size_t)((const char *)p - (const char *)a);
                if (f->type != LG__FIELD_u64 && memcmp(p, (const char *)b + from, at - from))
                        return f;
        }
        return NULL;
}

static bool differs(lg_recorder *r, const char *name, const char *what)
{
        return lg__fail(r->object.ctx, LG_ERR_STATE,
                        OP ": %s differs between two runs of the function in %s; what changes from step to step is "
                           "given as an input, or set by an optimiser's rates",
                        name, what);
}

static void note(lg_recorder *r, const lg__op *op, const void *attributes, uint64_t operands)
{
        recording *k = r->running;
        lg_ctx *c = r->object.ctx;
        if (k->runs == 1) {
                const int64_t at = keep(k, c, attributes, op->attributes_bytes);
                if (at >= 0 && lg__grow(c, &k->ops, k->count, &k->room, sizeof *k->ops))
                        k->ops[k->count++] = (noted){op, at, operands};
                return;
        }
        if (k->at >= k->count || k->ops[k->at].op != op) {
                differs(r, op->name, "which ops it applies");
                return;
        }
        const noted *n = &k->ops[k->at++];
        const lg__field *f = difference(op, attributes, k->bytes + n->attributes);
        if (f)
                differs(r, op->name, f->name);
        else if (n->operands != operands)
                differs(r, op->name, "its operands");
}

static lg_recorder *recorder_of(lg__observer *o)
{
        return (lg_recorder *)((char *)o - offsetof(lg_recorder, observer));
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        lg_recorder *r = recorder_of(o);
        uint64_t h = 0;
        if (!ok || call->op->compose)
                return;
        for (int i = 0; i < call->in_count; i++)
                h = mix(h, operand(r, call->in[i]));
        for (int i = 0; i < call->out_count; i++)
                h = mix(h, operand(r, call->out[i]));
        note(r, call->op, call->attributes, h);
}

static void fused_end(lg__observer *o, const lg__vjp *v, bool ok)
{
        lg_recorder *r = recorder_of(o);
        uint64_t h = 0;
        if (!ok)
                return;
        for (int i = 0; i < v->in_count; i++)
                h = mix(mix(h, operand(r, v->in[i])), operand(r, v->grad_in[i]));
        note(r, v->op, v->attributes, h);
}

/* ---- runs ---- */

static recording *find(const lg_recorder *r, lg_list in)
{
        for (recording *k = r->recordings; k; k = k->next) {
                bool same = k->input_count == (int)in.count;
                for (int i = 0; i < k->input_count && same; i++) {
                        const lg__layout *at = &k->given[i];
                        same = at->dtype == in.items[i]->at.dtype && lg__same_shape(at, &in.items[i]->at);
                }
                if (same)
                        return k;
        }
        return NULL;
}

static void forget(lg_recorder *r, recording *k)
{
        lg_ctx *c = r->object.ctx;
        for (recording **at = &r->recordings; *at; at = &(*at)->next)
                if (*at == k) {
                        *at = k->next;
                        break;
                }
        for (int i = 0; i < MOST_INPUTS; i++)
                lg__tensor_release(k->in[i]);
        for (int64_t i = 0; i < k->outer_count; i++)
                lg__storage_unref(k->outers[i].storage);
        lg__tensor_release(k->result);
        lg__tape_free(&k->tape);
        lg__free(c, k->ops, (size_t)k->room * sizeof *k->ops);
        lg__free(c, k->bytes, (size_t)k->bytes_room);
        lg__free(c, k->outers, (size_t)k->outer_room * sizeof *k->outers);
        lg__free(c, k->leaves, (size_t)k->leaf_room * sizeof *k->leaves);
        lg__free(c, k, sizeof *k);
}

static bool still_valid(const recording *k)
{
        for (int64_t i = 0; i < k->outer_count; i++) {
                const outer *o = &k->outers[i];
                if (o->tensor->live != LG__LIVE || o->tensor->serial != o->serial || o->tensor->storage != o->storage)
                        return false;
        }
        return true;
}

static recording *begin(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        recording *k = lg__alloc(c, sizeof *k);
        if (!k)
                return NULL;
        k->input_count = (int)in.count;
        for (int i = 0; i < k->input_count; i++)
                lg__layout_copy(&k->given[i], &in.items[i]->at);
        k->next = r->recordings;
        r->recordings = k;
        return k;
}

static lg_tensor *call(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        const lg__scope *outer = c->scope;
        lg_scope scope = lg__scope_begin(c);
        lg_tensor *y = scope.id ? r->fn(c, in, r->o.user) : NULL;
        uint32_t fresh = 0;
        (void)outer;
        (void)fresh;
        if (y)
                lg_escape(y);
        lg_scope_end(c, scope);
        return c->error ? NULL : y;
}

/* Makes the tensors that the list reads. */
static bool make_inputs(lg_recorder *r, recording *k, lg_list in)
{
        for (int i = 0; i < k->input_count; i++) {
                k->in[i] = lg__tensor_own(lg__clone_values(in.items[i], in.items[i]->storage->device->id,
                                                           in.items[i]->at.dtype));
                if (!k->in[i])
                        return false;
        }
        (void)r;
        return true;
}

static lg_tensor *observed(lg_recorder *r, recording *k, lg_list in)
{
        static uint32_t number;
        lg_ctx *c = r->object.ctx;
        lg_tensor *fixed[MOST_INPUTS], *y = NULL;
        const bool records = k->runs == 2;
        if (records && !make_inputs(r, k, in))
                return NULL;
        r->running = k;
        r->since = c->sequence;
        c->run = ++number;
        c->run_storages = 0;
        k->at = 0;
        for (int i = 0; i < k->input_count; i++) { /* new handles, so that inputs of two runs are alike */
                const lg_tensor *t = records ? k->in[i] : in.items[i];
                fixed[i] = lg__tensor_new(c, t->storage, &t->at);
        }
        if (!records || lg__tape_begin(&k->tape, c, in.items[0]->storage->device)) {
                lg__observe(c, &r->observer);
                y = call(r, (lg_list){in.count, fixed});
                lg__unobserve(c, &r->observer);
        }
        if (records)
                lg__tape_end(&k->tape);
        c->run = 0;
        if (c->error || !records || !y)
                return c->error ? NULL : y;
        k->result = lg__tensor_own(lg_detach(y));
        lg__tensor_release(y);
        return k->result ? lg__clone_values(k->result, k->result->storage->device->id, k->result->at.dtype) : NULL;
}

static lg_tensor *replay(recording *k, lg_list in)
{
        for (int i = 0; i < k->input_count; i++)
                if (!lg__copy_values(k->in[i], in.items[i], OP))
                        return NULL;
        if (!lg__tape_run(&k->tape) || !k->result)
                return NULL;
        return lg__clone_values(k->result, k->result->storage->device->id, k->result->at.dtype);
}

lg_tensor *lg_recorder_run_list(lg_recorder *r, lg_list_in given)
{
        const lg_list in = given;
        recording *k = find(r, in);
        if (r->o.eager)
                return call(r, in);
        if (k && k->runs > 2 && !still_valid(k)) {
                forget(r, k);
                k = NULL;
        }
        if (!k && !(k = begin(r, in)))
                return NULL;
        lg_tensor *y = k->runs == 0 ? call(r, in) : k->runs < 3 ? observed(r, k, in) : replay(k, in);
        k->runs++;
        return y;
}

/* ---- the recorder ---- */

static void destroy(lg__object *o)
{
        lg_recorder *r = (lg_recorder *)o;
        while (r->recordings)
                forget(r, r->recordings);
}

static const lg__type type = {.destroy = destroy};

lg_recorder *lg_recorder_new_with(lg_ctx *c, lg_function *fn, const lg_recorder_options *options)
{
        lg_recorder_options o;
        if (!lg__take(c, "lg_recorder_new", options, &o, sizeof o))
                return NULL;
        lg_recorder *r = lg__object_new(c, &type, sizeof *r);
        if (!r)
                return NULL;
        r->fn = fn;
        r->o = o;
        r->observer = (lg__observer){.op_end = op_end, .fused_end = fused_end};
        return r;
}

void lg_recorder_free(lg_recorder *r)
{
        lg__object_destroy(r);
}
