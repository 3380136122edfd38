/* run.c - runs the nodes of a loaded ONNX graph. */
#include "program.h"

/* ---- operands and results of a node ---- */

/* Returns a constant on the device, from the copy that was made for it last or a new one. */
static lg_tensor *constant_on(lg__onnx_slot *s, lg__device *d)
{
        if (s->constant->storage->device == d)
                return s->constant;
        if (!s->copy || s->copy->storage->device != d) {
                lg_tensor *t = lg__clone_values(s->constant, d->id, s->constant->at.dtype);
                if (!t)
                        return NULL;
                lg__tensor_hold(&s->copy, t);
        }
        return s->copy;
}

static lg_tensor *value_of(const lg__onnx_run *r, int64_t at)
{
        const lg__onnx_slot *s = &r->program->slots[at];
        return s->constant ? s->constant : s->part >= 0 ? r->parts[s->part] : r->values[at];
}

/* Fills in the operands of step i. Those on the CPU are copied to the device on which others are, unless the operator
 * reads them on the host. */
static bool take_operands(const lg__onnx_run *r, const lg__onnx_step *s, lg_tensor **in)
{
        lg__device *d = r->ctx->cpu;
        for (int k = 0; k < s->in_count; k++) {
                in[k] = s->in[k] >= 0 ? value_of(r, s->in[k]) : NULL;
                const bool host = k < 32 && s->op->host & 1u << k;
                if (in[k] && !host && in[k]->storage->device != r->ctx->cpu)
                        d = in[k]->storage->device;
        }
        for (int k = 0; k < s->in_count; k++) {
                const bool host = k < 32 && s->op->host & 1u << k;
                if (!in[k] || host || in[k]->storage->device == d)
                        continue;
                lg__onnx_slot *from = &r->program->slots[s->in[k]];
                in[k] = from->constant ? constant_on(from, d) : lg_to(in[k], d->id);
                if (!in[k])
                        return false;
        }
        return true;
}

/* Gives a result to its slot, in the scope outside the node's. An operand that is a result becomes a handle of its own,
 * so that both can be freed. */
static bool give(const lg__onnx_run *r, const lg__onnx_step *s, int k, lg_tensor *t)
{
        if (s->out[k] < 0)
                return true;
        if (!t)
                return lg__fail(r->ctx, LG_ERR_STATE, "%s: result %d is missing", s->op->name, k);
        if (t->scope != r->ctx->scope && !(t = lg_reshape(t, t->at.shape)))
                return false;
        r->values[s->out[k]] = lg_escape(t);
        return true;
}

/* Returns the bits of operands whose values do not depend on those of the inputs. */
static uint32_t known_operands(const lg__onnx_program *p, const lg__onnx_step *s)
{
        uint32_t known = 0;
        for (int k = 0; k < s->in_count && k < 32; k++)
                if (s->in[k] >= 0 && (p->slots[s->in[k]].sizes || p->slots[s->in[k]].part >= 0))
                        known |= 1u << k;
        return known;
}

/* Runs the operator. What computes sizes alone is no part of what lg_onnx_save() records. */
static lg_tensor *apply(const lg__onnx_step *s, bool sizes, lg__onnx_call *call)
{
        lg_ctx *c = call->ctx;
        const bool observing = c->observing;
        const char *unread = c->unread;
        if (sizes && unread) {
                c->observing = true;
                c->unread = NULL;
        }
        lg_tensor *y = s->op->fn(call);
        c->observing = observing;
        c->unread = unread;
        return y;
}

bool lg__onnx_run_step(const lg__onnx_run *r, int64_t i)
{
        const lg__onnx_program *p = r->program;
        const lg__onnx_step *s = &p->steps[i];
        lg_tensor *few[LG__ONNX_MOST_IN], **in = few;
        const size_t bytes = (size_t)s->in_count * sizeof *in;
        if (s->in_count > LG__ONNX_MOST_IN && !(in = lg__alloc(r->ctx, bytes)))
                return false;
        lg_scope scope = lg_scope_begin(r->ctx);
        lg__onnx_call call = {.ctx = r->ctx,
                              .model = &p->model,
                              .node = &p->model.nodes[i],
                              .opset = p->model.opset,
                              .in_count = s->in_count,
                              .known = known_operands(p, s),
                              .in = in};
        const bool sizes = s->out[0] >= 0 && p->slots[s->out[0]].sizes;
        lg_tensor *first = take_operands(r, s, in) ? apply(s, sizes, &call) : NULL;
        bool good = first && lg__ok(r->ctx) && give(r, s, 0, first);
        for (int k = 1; good && k < call.node->out_count; k++)
                good = give(r, s, k, call.out[k]);
        lg_scope_end(r->ctx, scope);
        if (in != few)
                lg__free(r->ctx, in, bytes);
        for (int k = 0; good && k < s->in_count; k++) { /* frees what no later node reads */
                const int64_t at = s->in[k];
                if (at >= p->model.input_count && r->values[at] && p->slots[at].last == i) {
                        lg_free(r->values[at]);
                        r->values[at] = NULL;
                }
        }
        return good;
}

/* ---- the module's parts and inputs ---- */

/* The tensors of the parts of a module, while they are collected. */
typedef struct collection {
        lg_tensor **tensors;
        int64_t room, count;
} collection;

static bool collect_part(const char *path, lg__part *part, void *user)
{
        collection *l = user;
        (void)path;
        if (l->count < l->room)
                l->tensors[l->count] = part->tensor;
        l->count++;
        return true;
}

static bool inputs_fit(const lg__onnx_run *r, lg_list inputs)
{
        const lg__onnx_model *m = &r->program->model;
        int64_t needed = 0;
        for (int64_t i = 0; i < m->input_count; i++) {
                const lg__onnx_info *info = &m->inputs[i];
                const lg__onnx_slot *s = &r->program->slots[i];
                if (s->part >= 0 || s->constant) /* an initialiser that old files list as an input, too */
                        continue;
                if (needed == inputs.count)
                        return lg__fail(r->ctx, LG_ERR_ARGUMENT, "lg_forward: input %s is missing",
                                        lg__quoted(info->name).s);
                lg_tensor *t = inputs.items[needed++];
                const lg_shape *shape = &info->shape;
                bool fits = shape->ndim < 0 || shape->ndim == t->at.shape.ndim;
                for (int d = 0; fits && d < shape->ndim; d++)
                        fits = shape->size[d] < 0 || shape->size[d] == t->at.shape.size[d];
                if (!fits)
                        return lg__fail(r->ctx, LG_ERR_SHAPE, "lg_forward: input %s is %s; the file says %s",
                                        lg__quoted(info->name).s, lg__tensor_text(t).s, lg__shape_text(*shape).s);
                const lg_dtype dtype = lg__onnx_dtype(info->type);
                if (dtype && dtype != t->at.dtype && lg__dtype_float(dtype) != lg__dtype_float(t->at.dtype))
                        return lg__fail(r->ctx, LG_ERR_DTYPE, "lg_forward: input %s is %s; the file says %s",
                                        lg__quoted(info->name).s, lg__tensor_text(t).s, lg_dtype_name(dtype));
                r->values[i] = t;
        }
        return needed == inputs.count || lg__fail(r->ctx, LG_ERR_ARGUMENT, "lg_forward: %lld inputs; the file has %lld",
                                                  (long long)inputs.count, (long long)needed);
}

static bool run_steps(lg_module *m, lg__onnx_run *r, lg_list inputs, lg_outputs *out)
{
        lg__onnx_program *p = r->program;
        char path[LG__PATH];
        collection l = {.tensors = r->parts, .room = p->part_count};
        if (!lg__module_visit(m, path, collect_part, &l))
                return false;
        if (l.count != p->part_count)
                return lg__fail(
                        r->ctx, LG_ERR_STATE,
                        "lg_forward: the module of an ONNX file has other parts than the file: %lld in place of "
                        "%lld",
                        (long long)l.count, (long long)p->part_count);
        if (!inputs_fit(r, inputs))
                return false;
        for (int64_t i = 0; i < p->model.node_count; i++)
                if (p->steps[i].op && !lg__onnx_run_step(r, i))
                        return false;
        out->count = p->model.output_count;
        for (int64_t i = 0; i < out->count; i++) {
                const int64_t at = p->table[lg__onnx_place(p, p->model.outputs[i].name)];
                lg_tensor *t = value_of(r, at);
                /* parts and constants are not the caller's: it gets views of them */
                out->items[i] = r->values[at] ? t : lg_reshape(t, t->at.shape);
                if (!out->items[i])
                        return false;
        }
        return true;
}

bool lg__onnx_forward(lg_module *m, lg_list inputs, lg_outputs *out, void *user)
{
        lg__onnx_program *p = user;
        const size_t parts = (size_t)(p->part_count + 1) * sizeof(lg_tensor *);
        const size_t values = (size_t)p->slot_room * sizeof(lg_tensor *);
        lg__onnx_run r = {.program = p, .ctx = p->ctx, .parts = lg__alloc(p->ctx, parts)};
        r.values = r.parts ? lg__alloc(p->ctx, values) : NULL;
        const bool good = r.values && run_steps(m, &r, inputs, out);
        lg__free(p->ctx, r.values, values);
        lg__free(p->ctx, r.parts, parts);
        return good;
}
