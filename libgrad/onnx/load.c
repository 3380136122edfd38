/* load.c - lg_onnx_load(): a module that runs the nodes of an ONNX file. */
#include "import.h"
#include "io/source.h"
#include "nn/nn.h"

#define OP "lg_onnx_load"

/* A value of the graph: an input, an initialiser or the result of a node. */
typedef struct slot {
        const char *name;
        int64_t part;        /* number of the module's part that holds it, or -1 */
        lg_tensor *tensor;   /* of that part of the first module; for building */
        lg_tensor *constant; /* owned by the library, on the CPU, or NULL; then: */
        lg_tensor *copy;     /* a copy on the device that asked for one last, or NULL */
        int64_t last;        /* the last node that reads it; node_count: it is a result of the graph */
} slot;

typedef struct step {
        const lg__onnx_operator *operator;
        int in_count;
        int64_t *in; /* slots of the operands; -1: left out */
        int64_t out[LG__ONNX_MOST_OUT];
} step;

/* A loaded graph, shared by the copies of its module. */
typedef struct program {
        lg_ctx *ctx;
        int uses;
        lg__onnx_model model;
        slot *slots;
        int64_t slot_count, slot_room;
        int64_t *table, table_size; /* slots by a hash of their names; -1: free */
        step *steps;
        int64_t *operands, operand_count; /* memory of all step.in */
        int64_t part_count;
} program;

/* ---- freeing ---- */

static void program_free(program *p)
{
        lg_ctx *c = p->ctx;
        if (--p->uses > 0)
                return;
        for (int64_t i = 0; i < p->slot_count; i++) {
                lg__tensor_release(p->slots[i].constant);
                lg__tensor_release(p->slots[i].copy);
        }
        lg__free(c, p->slots, (size_t)p->slot_room * sizeof *p->slots);
        lg__free(c, p->table, (size_t)p->table_size * sizeof *p->table);
        lg__free(c, p->steps, (size_t)p->model.node_count * sizeof *p->steps);
        lg__free(c, p->operands, (size_t)p->operand_count * sizeof *p->operands);
        lg__onnx_model_free(&p->model);
        lg__free(c, p, sizeof *p);
}

static void release(void *user)
{
        program_free(user);
}

static void *clone(lg_module *copy, void *user)
{
        (void)copy;
        ((program *)user)->uses++;
        return user;
}

/* ---- names ---- */

/* Returns the place in the table of the slot of that name, or of where it would be. */
static int64_t place_of(const program *p, const char *name)
{
        uint64_t hash = 14695981039346656037u; /* FNV-1a */
        for (const char *s = name; *s; s++)
                hash = (hash ^ (unsigned char)*s) * 1099511628211u;
        int64_t at = (int64_t)(hash & (uint64_t)(p->table_size - 1));
        while (p->table[at] >= 0 && strcmp(p->slots[p->table[at]].name, name) != 0)
                at = (at + 1) & (p->table_size - 1);
        return at;
}

/* Adds a slot, or returns that of this name with *ret_new false. */
static slot *slot_of(program *p, const char *name, bool *ret_new)
{
        const int64_t at = place_of(p, name);
        *ret_new = p->table[at] < 0;
        if (*ret_new) {
                p->table[at] = p->slot_count;
                p->slots[p->slot_count++] = (slot){.name = name, .part = -1, .last = -1};
        }
        return &p->slots[p->table[at]];
}

static bool make_room(program *p)
{
        const lg__onnx_model *m = &p->model;
        int64_t names = m->input_count + m->initializer_count, operands = 0;
        for (int64_t i = 0; i < m->node_count; i++) {
                names += m->nodes[i].out_count;
                operands += m->nodes[i].in_count;
        }
        for (p->table_size = 16; p->table_size < 2 * names;)
                p->table_size *= 2;
        p->slot_room = names + 1;
        p->operand_count = operands + 1;
        p->slots = lg__alloc(p->ctx, (size_t)p->slot_room * sizeof *p->slots);
        p->operands = p->slots ? lg__alloc(p->ctx, (size_t)p->operand_count * sizeof *p->operands) : NULL;
        p->table = p->operands ? lg__alloc(p->ctx, (size_t)p->table_size * sizeof *p->table) : NULL;
        p->steps = p->table ? lg__alloc(p->ctx, (size_t)m->node_count * sizeof *p->steps) : NULL;
        for (int64_t i = 0; p->table && i < p->table_size; i++)
                p->table[i] = -1;
        return p->steps || (p->table && m->node_count == 0);
}

static bool damaged(const program *p, const char *what, const char *name, const char *why)
{
        return lg__fail(p->ctx, LG_ERR_FORMAT, OP ": %s: %s %s %s", lg__quoted(p->model.path).s, what,
                        lg__quoted(name).s, why);
}

/* ---- operators and their operands ---- */

/* Reports all operators of the graph that libgrad lacks, each once. */
static bool operators_are_known(const program *p)
{
        char list[600] = "";
        size_t used = 0;
        bool known = true;
        for (int64_t i = 0; i < p->model.node_count; i++) {
                const lg__onnx_node *n = &p->model.nodes[i];
                char name[160];
                if (lg__onnx_find(n->op) && !n->foreign)
                        continue;
                known = false;
                snprintf(name, sizeof name, "%s%s, ", lg__quoted(n->op).s, n->foreign ? " of another domain" : "");
                if (strstr(list, name) || used + strlen(name) + 1 > sizeof list)
                        continue;
                memcpy(list + used, name, strlen(name) + 1);
                used += strlen(name);
        }
        return known || lg__fail(p->ctx, LG_ERR_FORMAT, OP ": %s has operators that libgrad lacks: %.*s",
                                 lg__quoted(p->model.path).s, (int)used - 2, list);
}

/* Finds the slots of the operands of node i, which earlier nodes must have computed, and adds those of its results. */
static bool connect(program *p, int64_t i, int64_t *operands)
{
        const lg__onnx_node *n = &p->model.nodes[i];
        step *s = &p->steps[i];
        *s = (step){.operator= lg__onnx_find(n->op), .in = operands};
        if (n->in_count < s->operator->least_in ||(s->operator->most_in >= 0 && n->in_count> s->operator->most_in))
                return damaged(p, "a node", n->op, "has another number of operands than the operator");
        if (n->out_count > LG__ONNX_MOST_OUT || n->in_count > INT32_MAX)
                return damaged(p, "a node", n->op, "has too many results");
        for (int64_t k = 0; k < n->in_count; k++) {
                operands[k] = *n->in[k] ? p->table[place_of(p, n->in[k])] : -1;
                if (*n->in[k] && operands[k] < 0)
                        return damaged(p, "value", n->in[k], "is needed before a node computes it");
                if (operands[k] >= 0) {
                        p->slots[operands[k]].last = i;
                        s->in_count = (int)k + 1;
                } else if (k < s->operator->least_in)
                        return damaged(p, "a node", n->op, "leaves out an operand that the operator needs");
        }
        for (int64_t k = 0; k < n->out_count; k++) {
                bool new = true;
                slot *to = *n->out[k] ? slot_of(p, n->out[k], &new) : NULL;
                if (!new)
                        return damaged(p, "value", n->out[k], "is computed twice");
                s->out[k] = to ? to - p->slots : -1;
        }
        return true;
}

static bool connect_all(program *p)
{
        const lg__onnx_model *m = &p->model;
        int64_t *operands = p->operands;
        for (int64_t i = 0; i < m->node_count; operands += m->nodes[i++].in_count)
                if (!connect(p, i, operands))
                        return false;
        if (m->output_count < 1 || m->output_count > LG_MAX_OUTPUTS)
                return lg__fail(p->ctx, LG_ERR_FORMAT, OP ": %s has %lld results; 1 to %d are possible",
                                lg__quoted(m->path).s, (long long)m->output_count, LG_MAX_OUTPUTS);
        for (int64_t i = 0; i < m->output_count; i++) {
                const int64_t at = p->table[place_of(p, m->outputs[i].name)];
                if (at < 0)
                        return damaged(p, "result", m->outputs[i].name, "is computed by no node");
                p->slots[at].last = m->node_count;
        }
        return true;
}

/* ---- initialisers ---- */

/* Returns whether the operand is one that its operator does not train. */
static bool is_statistic(const program *p, int64_t at)
{
        for (int64_t i = 0; i < p->model.node_count; i++)
                for (int k = 0; k < p->steps[i].in_count && k < 32; k++)
                        if (p->steps[i].in[k] == at && p->steps[i].operator->stats & 1u << k)
                                return true;
        return false;
}

/* Returns the module in which the tensor with that path belongs, and the rest of the path; makes modules on the way.
 * NULL without an error if the path does not fit: the tensor is then named after its number. */
static lg_module *place_in(lg_module *m, const char *path, const char **ret_name)
{
        for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
                char name[64];
                const size_t length = (size_t)(dot - path);
                if (length == 0 || length >= sizeof name)
                        return NULL;
                memcpy(name, path, length);
                name[length] = '\0';
                lg__part *p = lg__module_part(m, name, length, LG__PARAMETER | LG__BUFFER | LG__CHILD);
                if (p && p->kind != LG__CHILD)
                        return NULL;
                lg_module *child = p ? p->child : lg_module_add(m, name, lg_nn_module(m->object.ctx, "Module"));
                if (!child)
                        return NULL;
                m = child;
        }
        *ret_name = path;
        return *path && strlen(path) < 64 && !lg__module_part(m, path, strlen(path), ~0) ? m : NULL;
}

/* Adds an initialiser of a float dtype to the module, which trains it unless it is one number or a statistic. */
static bool add_part(program *p, lg_module *m, lg_device device, int64_t at, lg_tensor *t)
{
        const char *name;
        char numbered[40];
        lg_module *place = place_in(m, p->slots[at].name, &name);
        if (!lg__ok(p->ctx))
                return false;
        if (!place) {
                snprintf(numbered, sizeof numbered, "initializer_%lld", (long long)at);
                place = m;
                name = numbered;
        }
        t = lg_to(t, device);
        if (!t)
                return false;
        const bool trained = t->at.shape.ndim > 0 && !is_statistic(p, at);
        p->slots[at].tensor = trained ? lg_module_add_parameter(place, name, t) : lg_module_add_buffer(place, name, t);
        return p->slots[at].tensor != NULL;
}

static bool add_initializers(program *p, lg_module *m, lg_device device)
{
        for (int64_t i = 0; i < p->model.initializer_count; i++) {
                const lg__onnx_tensor *given = &p->model.initializers[i];
                const int64_t at = p->table[place_of(p, given->name)];
                if (at < 0 || p->slots[at].last < 0)
                        continue; /* nothing needs it */
                lg_scope scope = lg_scope_begin(p->ctx);
                lg_tensor *t = lg__onnx_tensor_of(&p->model, given);
                bool good = t != NULL;
                if (good && lg__dtype_float(t->at.dtype))
                        good = add_part(p, m, device, at, t);
                else if (good)
                        lg__tensor_hold(&p->slots[at].constant, t);
                lg_scope_end(p->ctx, scope);
                if (!good)
                        return false;
        }
        return true;
}

/* ---- parts ---- */

/* The parts of a module while they are numbered for the program or, with `tensors`, collected for a run. */
typedef struct numbering {
        program *program;
        lg_tensor **tensors;
        int64_t count;
} numbering;

static bool number_part(const char *path, lg__part *part, void *user)
{
        numbering *n = user;
        (void)path;
        for (int64_t i = 0; i < n->program->slot_count; i++)
                if (n->program->slots[i].tensor == part->tensor)
                        n->program->slots[i].part = n->count;
        n->program->part_count = ++n->count;
        return true;
}

static bool collect_part(const char *path, lg__part *part, void *user)
{
        numbering *n = user;
        (void)path;
        if (n->count < n->program->part_count)
                n->tensors[n->count] = part->tensor;
        n->count++;
        return true;
}

/* ---- running ---- */

/* A run of a program: the values of the slots so far. */
typedef struct run {
        program *program;
        lg_ctx *ctx;
        lg_tensor **parts, **values;
} run;

/* Returns a constant on the device, from the copy that was made for it last or a new one. */
static lg_tensor *constant_on(slot *s, lg__device *d)
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

static lg_tensor *value_of(const run *r, int64_t at)
{
        const slot *s = &r->program->slots[at];
        return s->constant ? s->constant : s->part >= 0 ? r->parts[s->part] : r->values[at];
}

/* Fills in the operands of step i. Those on the CPU are copied to the device on which others are, unless the operator
 * reads them on the host. */
static bool take_operands(const run *r, const step *s, lg_tensor **in)
{
        lg__device *d = r->ctx->cpu;
        for (int k = 0; k < s->in_count; k++) {
                in[k] = s->in[k] >= 0 ? value_of(r, s->in[k]) : NULL;
                const bool host = k < 32 && s->operator->host & 1u << k;
                if (in[k] && !host && in[k]->storage->device != r->ctx->cpu)
                        d = in[k]->storage->device;
        }
        for (int k = 0; k < s->in_count; k++) {
                const bool host = k < 32 && s->operator->host & 1u << k;
                if (!in[k] || host || in[k]->storage->device == d)
                        continue;
                slot *from = &r->program->slots[s->in[k]];
                in[k] = from->constant ? constant_on(from, d) : lg_to(in[k], d->id);
                if (!in[k])
                        return false;
        }
        return true;
}

/* Gives a result to its slot, in the scope outside the node's. An operand that is a result becomes a handle of its own,
 * so that both can be freed. */
static bool give(const run *r, const step *s, int k, lg_tensor *t)
{
        if (s->out[k] < 0)
                return true;
        if (!t)
                return lg__fail(r->ctx, LG_ERR_STATE, "%s: result %d is missing", s->operator->name, k);
        if (t->scope != r->ctx->scope && !(t = lg_reshape(t, t->at.shape)))
                return false;
        r->values[s->out[k]] = lg_escape(t);
        return true;
}

static bool run_step(const run *r, int64_t i)
{
        const program *p = r->program;
        const step *s = &p->steps[i];
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
                              .in = in};
        lg_tensor *first = take_operands(r, s, in) ? s->operator->fn(&call) : NULL;
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

/* Runs the nodes whose operands are constants once, and makes constants of their results. */
static bool fold(program *p)
{
        const size_t values = (size_t)p->slot_room * sizeof(lg_tensor *);
        run r = {.program = p, .ctx = p->ctx, .values = lg__alloc(p->ctx, values)};
        bool good = r.values != NULL;
        for (int64_t i = 0; good && i < p->model.node_count; i++) {
                step *s = &p->steps[i];
                bool constant = !s->operator->draws;
                for (int k = 0; k < s->in_count; k++)
                        constant = constant && (s->in[k] < 0 || p->slots[s->in[k]].constant);
                if (!constant)
                        continue;
                const lg_scope scope = lg_scope_begin(p->ctx);
                good = run_step(&r, i);
                for (int64_t k = 0; good && k < p->model.nodes[i].out_count; k++)
                        if (s->out[k] >= 0)
                                lg__tensor_hold(&p->slots[s->out[k]].constant, r.values[s->out[k]]);
                lg_scope_end(p->ctx, scope);
                s->operator= NULL;
        }
        lg__free(p->ctx, r.values, values);
        return good;
}

static bool inputs_fit(const run *r, lg_list inputs)
{
        const lg__onnx_model *m = &r->program->model;
        int64_t needed = 0;
        for (int64_t i = 0; i < m->input_count; i++) {
                const lg__onnx_info *info = &m->inputs[i];
                const slot *s = &r->program->slots[i];
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

static bool run_steps(lg_module *m, run *r, lg_list inputs, lg_outputs *out)
{
        program *p = r->program;
        char path[LG__PATH];
        numbering n = {.program = p, .tensors = r->parts};
        if (!lg__module_visit(m, path, collect_part, &n))
                return false;
        if (n.count != p->part_count)
                return lg__fail(
                        r->ctx, LG_ERR_STATE,
                        "lg_forward: the module of an ONNX file has other parts than the file: %lld in place of "
                        "%lld",
                        (long long)n.count, (long long)p->part_count);
        if (!inputs_fit(r, inputs))
                return false;
        for (int64_t i = 0; i < p->model.node_count; i++)
                if (p->steps[i].operator&& !run_step(r, i))
                        return false;
        out->count = p->model.output_count;
        for (int64_t i = 0; i < out->count; i++) {
                const int64_t at = p->table[place_of(p, p->model.outputs[i].name)];
                lg_tensor *t = value_of(r, at);
                /* parts and constants are not the caller's: it gets views of them */
                out->items[i] = r->values[at] ? t : lg_reshape(t, t->at.shape);
                if (!out->items[i])
                        return false;
        }
        return true;
}

static bool forward(lg_module *m, lg_list inputs, lg_outputs *out, void *user)
{
        program *p = user;
        const size_t parts = (size_t)(p->part_count + 1) * sizeof(lg_tensor *);
        const size_t values = (size_t)p->slot_room * sizeof(lg_tensor *);
        run r = {.program = p, .ctx = p->ctx, .parts = lg__alloc(p->ctx, parts)};
        r.values = r.parts ? lg__alloc(p->ctx, values) : NULL;
        const bool good = r.values && run_steps(m, &r, inputs, out);
        lg__free(p->ctx, r.values, values);
        lg__free(p->ctx, r.parts, parts);
        return good;
}

/* ---- loading ---- */

/* Reads the file's messages and finds the operands of all nodes. */
static bool build(program *p, lg__span file)
{
        const lg__onnx_model *m = &p->model;
        bool new;
        if (!lg__onnx_parse(&p->model, file) || !make_room(p) || !operators_are_known(p))
                return false;
        for (int64_t i = 0; i < m->input_count; i++) {
                slot_of(p, m->inputs[i].name, &new);
                if (!new || !*m->inputs[i].name)
                        return damaged(p, "input", m->inputs[i].name, "is there twice");
        }
        for (int64_t i = 0; i < m->initializer_count; i++) {
                const slot *s = slot_of(p, m->initializers[i].name, &new);
                if (!*m->initializers[i].name || (!new &&s - p->slots >= m->input_count))
                        return damaged(p, "initialiser", m->initializers[i].name, "is there twice");
        }
        return connect_all(p);
}

static lg_module *module_of(program *p, const lg_onnx_load_options *o)
{
        numbering n = {.program = p};
        char path[LG__PATH];
        p->uses++; /* the module's */
        lg_module *m =
                lg_nn_module(p->ctx, "Onnx", .forward_all = forward, .user = p, .release = release, .clone = clone);
        if (!m) /* lg_nn_module() has called release() */
                return NULL;
        if (add_initializers(p, m, o->device) && fold(p) && lg__module_visit(m, path, number_part, &n) &&
            (!o->frozen || lg_freeze(m, true)))
                return m;
        lg_module_free(m);
        return NULL;
}

lg_module *lg_onnx_load_with(lg_ctx *c, const char *path, const lg_onnx_load_options *options)
{
        lg_onnx_load_options o;
        lg__whole file = {0};
        if (!lg__take(c, OP, options, &o, sizeof o))
                return NULL;
        program *p = lg__alloc(c, sizeof *p);
        if (!p)
                return NULL;
        *p = (program){.ctx = c, .uses = 1, .model = {.ctx = c, .op = OP, .path = path}};
        lg_module *m = NULL;
        if (lg__whole_read(c, OP, path, &file) && build(p, (lg__span){file.data, file.bytes}))
                m = module_of(p, &o);
        p->model.path = ""; /* the caller's */
        lg__free(c, file.data, (size_t)file.room);
        program_free(p);
        return m;
}
