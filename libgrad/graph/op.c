/* op.c - applies ops. All checks, casts, shape rules, kernel calls and recording happen in lg__apply(). */
#include <string.h>
#include "core/observer.h"
#include "graph/op.h"

#define FEW 16 /* number of inputs up to which the array is on the stack */

static bool drop_outputs(lg__call *call, int count)
{
        for (int i = 0; i < count; i++)
                lg__tensor_release(call->out[i]);
        return false;
}

static bool make_outputs(lg__call *call)
{
        for (int i = 0; i < call->out_count; i++) {
                lg__layout *at = &call->out_at[i];
                call->out[i] = call->op->flags & LG__ALIASES ? lg__tensor_new(call->ctx, call->in[0]->storage, at)
                                                             : lg__tensor_on(call->device, at);
                if (!call->out[i])
                        return drop_outputs(call, i);
        }
        return true;
}

static bool needs_gradient(const lg_tensor *t)
{
        return t && t->node && lg__dtype_float(t->at.dtype);
}

/* Returns a mask of the operands that have an input which needs a gradient, bits LG__BY(operand). */
static uint32_t needs_of(const lg__call *call)
{
        uint32_t needs = 0;
        for (int i = 0; i < call->in_count; i++)
                if (needs_gradient(call->in[i]))
                        needs |= LG__BY(lg__operand_of(call->op, i) - call->op->operands);
        return needs;
}

static bool saves_input(const lg__call *call, int i, uint32_t needs)
{
        return call->in[i] && lg__operand_of(call->op, i)->saved_for & needs;
}

static bool saves_output(const lg__call *call, int i, uint32_t needs)
{
        return i < call->op->result_count && call->op->results[i].saved_for & needs;
}

static int count_saved(const lg__call *call, uint32_t needs)
{
        int count = 0;
        for (int i = 0; i < call->in_count; i++)
                count += saves_input(call, i, needs);
        for (int i = 0; i < call->out_count; i++)
                count += saves_output(call, i, needs);
        return count;
}

/* Returns the number of int64_t in a node: the sizes of all inputs, and the sizes and strides of saved values. */
static size_t count_sizes(const lg__call *call, uint32_t needs)
{
        size_t count = 0;
        for (int i = 0; i < call->in_count; i++)
                if (call->in[i])
                        count += (size_t)call->in[i]->at.shape.ndim * (saves_input(call, i, needs) ? 3 : 1);
        for (int i = 0; i < call->out_count; i++)
                count += saves_output(call, i, needs) ? 2 * (size_t)call->out[i]->at.shape.ndim : 0;
        return count;
}

static lg__node *new_node(const lg__call *call, uint32_t needs)
{
        const size_t edges = (size_t)call->in_count * sizeof(lg__edge), bytes = call->op->attributes_bytes;
        const size_t values = (size_t)count_saved(call, needs) * sizeof(lg__saved);
        const size_t sizes = count_sizes(call, needs) * sizeof(int64_t);
        const size_t all = sizeof(lg__node) + edges + values + sizes + bytes;
        lg__node *n = lg__alloc_unset(call->ctx, all);
        if (!n)
                return NULL;
        *n = (lg__node){.op = call->op, .ctx = call->ctx, .sequence = ++call->ctx->sequence, .refs = 1};
        n->in_count = call->in_count;
        n->out_count = call->out_count;
        n->bytes = all;
        n->edges = (lg__edge *)(n + 1);
        n->saved = (lg__saved *)((char *)n->edges + edges);
        n->attributes = (char *)n->saved + values + sizes;
        if (bytes)
                memcpy(n->attributes, call->attributes, bytes);
        return n;
}

/* Appends `count` items at *next and advances *next. Returns where the items were stored. */
static const int64_t *put_sizes(int64_t **next, const int64_t *items, int count)
{
        int64_t *at = *next;
        for (int i = 0; i < count; i++)
                at[i] = items[i];
        *next += count;
        return at;
}

static void save(lg__node *n, const lg_tensor *t, int slot, bool is_output, int64_t **next)
{
        lg__saved *s = &n->saved[n->saved_count++];
        s->storage = lg__storage_save(t->storage);
        s->version = t->storage->version;
        s->is_output = is_output;
        s->slot = slot;
        s->dtype = t->at.dtype;
        s->offset = t->at.offset;
        s->ndim = t->at.shape.ndim;
        s->size = put_sizes(next, t->at.shape.size, s->ndim);
        put_sizes(next, t->at.strides, s->ndim);
}

static void connect(lg__node *n, const lg__call *call, int64_t **next)
{
        for (int i = 0; i < call->in_count; i++) {
                const lg_tensor *t = call->in[i];
                lg__edge *e = &n->edges[i];
                e->node = needs_gradient(t) ? t->node : NULL;
                e->size = NULL;
                if (!t)
                        continue;
                e->dtype = t->at.dtype;
                e->device = t->storage->device->id;
                e->ndim = t->at.shape.ndim;
                e->size = put_sizes(next, t->at.shape.size, e->ndim);
                e->output = t->output;
                if (e->node)
                        lg__node_ref(e->node);
        }
}

/* Fails if a recomputed forward uses a tensor that requires grad and is neither an input nor a parameter of the
 * module: its gradient would be lost. */
static bool rerun_knows(const lg__call *call, const lg__rerun *r)
{
        for (int i = 0; i < call->in_count; i++) {
                const lg_tensor *t = call->in[i];
                bool known = !needs_gradient(t) || t->node->sequence > r->since;
                for (int k = 0; k < r->count && !known; k++)
                        known = r->given[k] != LG_END && r->given[k]->node == t->node;
                if (!known)
                        return lg__fail(call->ctx, LG_ERR_STATE,
                                        "lg_recompute: the forward of %s uses a tensor that requires grad, in %s, and "
                                        "that is neither an input nor a parameter of it; make it an input",
                                        r->name, call->op->name);
        }
        return true;
}

/* Records the application as a node if an input needs a gradient, the op has a derivative and an output is a float. */
static bool record(lg__call *call)
{
        const uint32_t needs = call->op->vjp && call->ctx->recording ? needs_of(call) : 0;
        bool floats = false;
        for (int i = 0; i < call->out_count; i++)
                floats = floats || lg__dtype_float(call->out_at[i].dtype);
        if (!needs || !floats)
                return true;
        if (call->ctx->rerun && !rerun_knows(call, call->ctx->rerun))
                return false;
        lg__node *n = new_node(call, needs);
        if (!n)
                return false;
        int64_t *next = (int64_t *)(n->saved + count_saved(call, needs));
        connect(n, call, &next);
        LG__NOTIFY(call->ctx, recorded, n);
        if (call->ctx->error) {
                lg__node_unref(n);
                return false;
        }
        for (int i = 0; i < call->in_count; i++)
                if (saves_input(call, i, needs))
                        save(n, call->in[i], i, false, &next);
        for (int i = 0; i < call->out_count; i++) {
                if (saves_output(call, i, needs))
                        save(n, call->out[i], i, true, &next);
                if (!lg__dtype_float(call->out_at[i].dtype))
                        continue;
                call->out[i]->node = n;
                call->out[i]->output = i;
                lg__node_ref(n);
        }
        lg__node_unref(n);
        return lg__remember(call);
}

/* Creates the outputs, computes and records them. */
static bool compute(lg__call *call)
{
        const lg__op *op = call->op;
        if ((op->infer && !op->infer(call)) || !make_outputs(call))
                return false;
        return ((!op->forward || op->forward(call)) && record(call)) || drop_outputs(call, call->out_count);
}

static bool run(lg__call *call, lg_tensor **in)
{
        const lg__op *op = call->op;
        if (!lg__prepare(op, in, call->in_count))
                return false;
        call->device = in[0]->storage->device;
        if (op->flags & LG__ALIASES)
                lg__layout_copy(&call->out_at[0], &in[0]->at);
        call->out_at[0].dtype = in[0]->at.dtype;
        call->out_at[0].shape = in[0]->at.shape;
        LG__NOTIFY(call->ctx, op_begin, call);
        const bool ok = compute(call);
        LG__NOTIFY(call->ctx, op_end, call, ok);
        return ok && (!call->ctx->error || drop_outputs(call, call->out_count));
}

/* Applies an op to inputs that lg__accept() has checked. Casts replace the entries of `inputs`, a copy of `in`, and
 * are released at the end. */
static lg_tensor *apply(const lg__op *op, lg_ctx *c, lg_tensor **inputs, lg_tensor *const *in, int in_count,
                        const void *attributes, lg_tensor **ret_out)
{
        _Alignas(16) char copy[LG__MAX_ATTRIBUTES];
        lg__call call; /* not zeroed as a whole, because most layouts are unused */
        call.ctx = c;
        call.op = op;
        call.in_count = in_count;
        call.in = inputs;
        call.attributes = copy;
        call.moved = 0;
        call.out_count = op->result_count;
        for (int i = 0; i < op->result_count; i++)
                call.out_at[i] = (lg__layout){.offset = 0};
        if (op->attributes_bytes)
                memcpy(copy, attributes, op->attributes_bytes);
        bool ok = run(&call, inputs);
        for (int i = 0; i < call.out_count && ok && ret_out; i++)
                ret_out[i] = call.out[i];
        /* Releases the casts; values that the derivative needs are saved in the node. */
        for (int i = 0; i < in_count; i++)
                if (inputs[i] != in[i])
                        lg__tensor_release(inputs[i]);
        return ok ? call.out[0] : NULL;
}

static lg_tensor *compose(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int in_count, const void *options)
{
        lg__call call; /* layouts are not zeroed, because composites use none */
        memset(&call, 0, offsetof(lg__call, out_at));
        call.ctx = c;
        call.op = op;
        call.in = in;
        call.in_count = in_count;
        call.device = in[0]->storage->device;
        call.attributes = (void *)(uintptr_t)options;
        LG__NOTIFY(c, op_begin, &call);
        call.out[0] = op->compose(&call);
        call.out_count = 1;
        LG__NOTIFY(c, op_end, &call, call.out[0] != NULL);
        return c->error ? NULL : call.out[0];
}

lg_tensor *lg__apply(const lg__op *op, lg_tensor *const *in, int in_count, const void *attributes, lg_tensor **ret_out)
{
        lg_tensor *few[FEW], **inputs = few;
        lg_ctx *c = lg__accept(op, in, in_count);
        const size_t bytes = (size_t)in_count * sizeof *inputs;
        if (!c)
                return NULL;
        if ((c->autocast == LG_BF16 || c->autocast == LG_F16) && (op->autocast || op->compose))
                return lg__apply_cast(op, c, in, in_count, attributes, ret_out);
        if (op->compose)
                return compose(op, c, in, in_count, attributes);
        if (in_count > FEW && !(inputs = lg__alloc(c, bytes)))
                return NULL;
        memcpy(inputs, in, bytes);
        lg_tensor *y = apply(op, c, inputs, in, in_count, attributes, ret_out);
        if (inputs != few)
                lg__free(c, inputs, bytes);
        return y;
}

lg_tensor *lg__apply1(const lg__op *op, lg_tensor *x, const void *attributes)
{
        return lg__apply(op, &x, 1, attributes, NULL);
}

lg_tensor *lg__apply2(const lg__op *op, lg_tensor *x, lg_tensor *y, const void *attributes)
{
        return lg__apply(op, (lg_tensor *[]){x, y}, 2, attributes, NULL);
}

lg_tensor *lg__apply_list(const lg__op *op, lg_list list, const void *attributes)
{
        if (!list.items || list.count < 1)
                return NULL;
        if (list.count > INT32_MAX)
                return lg__fail(lg__ctx_of(list.items[0]), LG_ERR_ARGUMENT, "%s: %lld tensors are too many", op->name,
                                (long long)list.count);
        return lg__apply(op, list.items, (int)list.count, attributes, NULL);
}
