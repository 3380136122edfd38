/* op.c - applying an op: every check, cast, shape rule, kernel and record goes through lg__apply. */
#include <string.h>
#include "watch.h"

#define MANY 16 /* inputs for which no memory is asked */

static const char *argument(const lg__op *op, int i)
{
        const char *name = op->arguments[i < 3 ? i : 2];
        return name ? name : op->arguments[0] ? op->arguments[0] : "x";
}

static lg_ctx *find_context(lg_tensor *const *in, int n)
{
        for (int i = 0; i < n; i++)
                if (in[i])
                        return in[i]->ctx;
        return NULL;
}

/* In C, a 0 in the place of a tensor is NULL. */
static lg__text number_hint(const lg__op *op)
{
        lg__text text = {""};
        char name[64];
        snprintf(name, sizeof name, "%s_scalar", op->name);
        for (int id = 0; id < LG_PW_COUNT; id++)
                if (lg__pointwise_ops[id].name && !strcmp(lg__pointwise_ops[id].name, name))
                        snprintf(text.s, sizeof text.s, "; for a number there is lg_%s()", name);
        return text;
}

static bool check_inputs(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int n)
{
        for (int i = 0; i < n; i++) {
                if (!in[i] && (op->flags & LG__OPTIONAL) && i == n - 1)
                        continue;
                if (!in[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL%s", op->name, argument(op, i),
                                        number_hint(op).s);
                if (!lg__check(in[i], op->name, argument(op, i)))
                        return false;
        }
        return true;
}

static bool check_devices(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int n)
{
        for (int i = 1; i < n; i++)
                if (in[i] && in[i]->storage->device != in[0]->storage->device)
                        return lg__fail(c, LG_ERR_DEVICE, "%s: %s is %s but %s is %s; move one with lg_to()", op->name,
                                        argument(op, 0), lg__tensor_text(in[0]).s, argument(op, i),
                                        lg__tensor_text(in[i]).s);
        return true;
}

static int category(lg_dtype d)
{
        return lg__dtype_float(d) ? 3 : d == LG_BOOL ? 1 : d == LG_DTYPE_NONE ? 0 : 2;
}

lg_dtype lg__common_dtype(lg_tensor *const *in, int n)
{
        lg_dtype of[2] = {LG_DTYPE_NONE, LG_DTYPE_NONE}; /* of 0-d inputs, of the others */
        for (int i = 0; i < n; i++) {
                if (!in[i])
                        continue;
                lg_dtype *slot = &of[in[i]->at.shape.ndim > 0];
                *slot = *slot ? lg_promote(*slot, in[i]->at.dtype) : in[i]->at.dtype;
        }
        return category(of[0]) > category(of[1]) ? of[0] : of[1];
}

/* Casts the inputs to the dtype that the op computes in; casts are recorded. */
static bool promote(const lg__op *op, lg_ctx *c, lg_tensor **in, int n)
{
        int first = op->flags & LG__CONDITION ? 1 : 0;
        if (first && in[0]->at.dtype != LG_BOOL)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %s is %s, not bool", op->name, argument(op, 0),
                                lg__tensor_text(in[0]).s);
        lg_dtype common = op->flags & LG__PROMOTE ? lg__common_dtype(in + first, n - first) : LG_DTYPE_NONE;
        for (int i = first; i < n; i++) {
                lg_dtype to = in[i] ? (common ? common : in[i]->at.dtype) : LG_DTYPE_NONE;
                if (in[i] && !lg__dtype_float(to) && (op->flags & LG__FLOAT))
                        return lg__fail(c, LG_ERR_DTYPE,
                                        "%s: %s is %s, not of a float dtype; convert it with lg_cast()", op->name,
                                        argument(op, i), lg__tensor_text(in[i]).s);
                if (in[i] && !lg__dtype_float(to) && (op->flags & LG__TO_FLOAT))
                        to = LG_F32;
                if (in[i] && to == LG_BOOL && (op->flags & LG__TO_NUMBER))
                        to = LG_I64;
                if (in[i] && in[i]->at.dtype != to && !(in[i] = lg_cast(in[i], to)))
                        return false;
        }
        return true;
}

static bool make_outputs(lg__call *call)
{
        for (int i = 0; i < call->out_count; i++) {
                lg__layout *at = &call->out_at[i];
                call->out[i] = call->op->flags & LG__VIEW ? lg__tensor_new(call->ctx, call->in[0]->storage, at)
                                                          : lg__tensor_laid(call->ctx, call->device->id, at);
                if (!call->out[i])
                        return false;
        }
        return true;
}

static bool needs_gradient(const lg_tensor *t)
{
        return t && t->node && lg__dtype_float(t->at.dtype);
}

static unsigned saves_of(const lg__call *call)
{
        unsigned saves = call->saves;
        for (int i = 0; i < call->in_count; i++)
                if (needs_gradient(call->in[i]))
                        saves |= call->op->saves[i < 3 ? i : 2];
        return saves;
}

static lg__node *new_node(const lg__call *call, int saved, size_t bytes)
{
        size_t edges = (size_t)call->in_count * sizeof(lg__edge), values = (size_t)saved * sizeof(lg__saved);
        size_t all = sizeof(lg__node) + edges + values + bytes;
        lg__node *n = lg__alloc(call->ctx, all);
        if (!n)
                return NULL;
        *n = (lg__node){.op = call->op, .ctx = call->ctx, .sequence = ++call->ctx->sequence, .refs = 1};
        n->in_count = call->in_count;
        n->out_count = call->out_count;
        n->attributes_bytes = (uint32_t)bytes;
        n->bytes = all;
        n->edges = (lg__edge *)(n + 1);
        n->saved = (lg__saved *)((char *)n->edges + edges);
        n->attributes = (char *)n->saved + values;
        if (bytes)
                memcpy(n->attributes, call->attributes, bytes);
        return n;
}

static void save(lg__node *n, const lg_tensor *t, int slot, bool is_output)
{
        n->saved[n->saved_count++] = (lg__saved){.storage = lg__storage_ref(t->storage),
                                                 .at = t->at,
                                                 .version = t->storage->version,
                                                 .is_output = is_output,
                                                 .slot = (uint8_t)slot};
}

static void connect(lg__node *n, const lg__call *call)
{
        for (int i = 0; i < call->in_count; i++) {
                const lg_tensor *t = call->in[i];
                if (!t)
                        continue;
                n->edges[i] = (lg__edge){.dtype = t->at.dtype, .shape = t->at.shape, .device = t->storage->device->id};
                if (needs_gradient(t)) {
                        n->edges[i].node = t->node;
                        n->edges[i].output = t->output;
                        lg__node_ref(t->node);
                }
        }
}

/* Puts the application into the graph, if a gradient may be asked through it. */
static bool record(lg__call *call, size_t bytes)
{
        bool any = false, floats = false;
        for (int i = 0; i < call->in_count; i++)
                any = any || needs_gradient(call->in[i]);
        for (int i = 0; i < call->out_count; i++)
                floats = floats || lg__dtype_float(call->out_at[i].dtype);
        if (!any || !floats || !call->ctx->recording || (call->op->flags & LG__NO_GRAD))
                return true;
        unsigned saves = saves_of(call);
        lg__node *n = new_node(call, __builtin_popcount(saves), bytes);
        if (!n)
                return false;
        connect(n, call);
        if (call->ctx->watch && call->ctx->module && !(n->where = lg__watch_where(call->ctx))) {
                lg__node_unref(n);
                return false;
        }
        for (int i = 0; i < call->in_count && i < LG__MAX_SAVED; i++)
                if (saves & LG__IN(i))
                        save(n, call->in[i], i, false);
        for (int i = 0; i < call->out_count; i++) {
                if (saves & LG__OUT(i))
                        save(n, call->out[i], i, true);
                if (!lg__dtype_float(call->out_at[i].dtype))
                        continue;
                call->out[i]->node = n;
                call->out[i]->output = i;
                lg__node_ref(n);
        }
        lg__node_unref(n);
        return true;
}

static bool apply(lg__call *call, lg_tensor **in, size_t bytes)
{
        const lg__op *op = call->op;
        lg_ctx *c = call->ctx;
        int n = call->in_count;
        if (!check_inputs(op, c, in, n) || (!(op->flags & LG__ANY_DEVICE) && !check_devices(op, c, in, n)) ||
            !promote(op, c, in, n))
                return false;
        call->device = in[0]->storage->device;
        if (!op->infer(call) || !make_outputs(call))
                return false;
        double start = lg__watch_start(c);
        if ((op->forward && !op->forward(call)) || !record(call, bytes))
                return false;
        return !c->watch || lg__watch_op(call, start);
}

lg_tensor *lg__apply(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int in_count, const void *attributes,
                     size_t bytes, lg_tensor **ret_out)
{
        lg_tensor *few[MANY], **inputs = few;
        if (!c)
                c = find_context(in, in_count);
        for (int i = 0; i < in_count; i++)
                if (!lg__in_context(c, in[i], op->name, argument(op, i)))
                        return NULL;
        if (!lg__ok(c))
                return NULL;
        size_t size = (size_t)in_count * sizeof *inputs;
        if (in_count > MANY && !(inputs = lg__alloc(c, size)))
                return NULL;
        memcpy(inputs, in, size);
        lg__call call; /* most of its layouts are not used: they are not zeroed */
        memset(&call, 0, offsetof(lg__call, out_at) + (size_t)op->out_count * sizeof *call.out_at);
        call.ctx = c;
        call.op = op;
        call.in_count = in_count;
        call.in = inputs;
        call.attributes = attributes;
        call.out_count = op->out_count;
        bool ok = apply(&call, inputs, bytes);
        for (int i = 0; i < call.out_count && ok && ret_out; i++)
                ret_out[i] = call.out[i];
        for (int i = 0; i < call.out_count && !ok; i++)
                lg__tensor_release(call.out[i]);
        /* Casts that the op does not save are not needed any longer. */
        for (int i = 0; i < in_count; i++)
                if (inputs[i] != in[i])
                        lg__tensor_release(inputs[i]);
        if (in_count > MANY)
                lg__free(c, inputs, size);
        return ok ? call.out[0] : NULL;
}

lg_tensor *lg__apply1(const lg__op *op, lg_tensor *x, const void *attributes, size_t bytes)
{
        return lg__apply(op, NULL, &x, 1, attributes, bytes, NULL);
}

lg_tensor *lg__apply2(const lg__op *op, lg_tensor *x, lg_tensor *y, const void *attributes, size_t bytes)
{
        return lg__apply(op, NULL, (lg_tensor *[]){x, y}, 2, attributes, bytes, NULL);
}
