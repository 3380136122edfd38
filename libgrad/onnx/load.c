/* load.c - lg_onnx_load(): a module that runs the nodes of an ONNX file. */
#include "io/source.h"
#include "program.h"

#define OP "lg_onnx_load"

/* ---- freeing ---- */

static void program_free(lg__onnx_program *p)
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
        ((lg__onnx_program *)user)->uses++;
        return user;
}

/* ---- names ---- */

/* Returns the place in the table of the slot of that name, or of where it would be. */
int64_t lg__onnx_place(const lg__onnx_program *p, const char *name)
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
static lg__onnx_slot *slot_of(lg__onnx_program *p, const char *name, bool *ret_new)
{
        const int64_t at = lg__onnx_place(p, name);
        *ret_new = p->table[at] < 0;
        if (*ret_new) {
                p->table[at] = p->slot_count;
                p->slots[p->slot_count++] = (lg__onnx_slot){.name = name, .part = -1, .last = -1};
        }
        return &p->slots[p->table[at]];
}

static bool make_room(lg__onnx_program *p)
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

static bool damaged(const lg__onnx_program *p, const char *what, const char *name, const char *why)
{
        return lg__fail(p->ctx, LG_ERR_FORMAT, OP ": %s: %s %s %s", lg__quoted(p->model.path).s, what,
                        lg__quoted(name).s, why);
}

/* ---- operators and their operands ---- */

/* Reports all operators of the graph that libgrad lacks, each once. */
static bool operators_are_known(const lg__onnx_program *p)
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

/* Returns whether the results of a step depend on sizes and constants alone. */
static bool computes_sizes(const lg__onnx_program *p, const lg__onnx_step *s)
{
        if (!strcmp(s->op->name, "Shape") || !strcmp(s->op->name, "Size"))
                return true;
        for (int k = 0; k < s->in_count; k++)
                if (s->in[k] >= 0 && !p->slots[s->in[k]].sizes)
                        return false;
        return !s->op->draws;
}

/* Finds the slots of the operands of node i, which earlier nodes must have computed, and adds those of its results. */
static bool connect(lg__onnx_program *p, int64_t i, int64_t *operands)
{
        const lg__onnx_node *n = &p->model.nodes[i];
        lg__onnx_step *s = &p->steps[i];
        *s = (lg__onnx_step){.op = lg__onnx_find(n->op), .in = operands};
        if (n->in_count < s->op->least_in || (s->op->most_in >= 0 && n->in_count > s->op->most_in))
                return damaged(p, "a node", n->op, "has another number of operands than the operator");
        if (n->out_count > LG__ONNX_MOST_OUT || n->in_count > INT32_MAX)
                return damaged(p, "a node", n->op, "has too many results");
        for (int64_t k = 0; k < n->in_count; k++) {
                operands[k] = *n->in[k] ? p->table[lg__onnx_place(p, n->in[k])] : -1;
                if (*n->in[k] && operands[k] < 0)
                        return damaged(p, "value", n->in[k], "is needed before a node computes it");
                if (operands[k] >= 0) {
                        p->slots[operands[k]].last = i;
                        s->in_count = (int)k + 1;
                } else if (k < s->op->least_in)
                        return damaged(p, "a node", n->op, "leaves out an operand that the operator needs");
        }
        const bool sizes = computes_sizes(p, s);
        for (int64_t k = 0; k < n->out_count; k++) {
                bool new = true;
                lg__onnx_slot *to = *n->out[k] ? slot_of(p, n->out[k], &new) : NULL;
                if (!new)
                        return damaged(p, "value", n->out[k], "is computed twice");
                s->out[k] = to ? to - p->slots : -1;
                if (to)
                        to->sizes = sizes;
        }
        return true;
}

static bool connect_all(lg__onnx_program *p)
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
                const int64_t at = p->table[lg__onnx_place(p, m->outputs[i].name)];
                if (at < 0)
                        return damaged(p, "result", m->outputs[i].name, "is computed by no node");
                p->slots[at].last = m->node_count;
        }
        return true;
}

/* ---- initialisers ---- */

/* Returns whether the operand is one that its operator does not train. */
static bool is_statistic(const lg__onnx_program *p, int64_t at)
{
        for (int64_t i = 0; i < p->model.node_count; i++)
                for (int k = 0; k < p->steps[i].in_count && k < 32; k++)
                        if (p->steps[i].in[k] == at && p->steps[i].op->stats & 1u << k)
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
static bool add_part(lg__onnx_program *p, lg_module *m, lg_device device, int64_t at, lg_tensor *t)
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

static bool add_initializers(lg__onnx_program *p, lg_module *m, lg_device device)
{
        for (int64_t i = 0; i < p->model.initializer_count; i++) {
                const lg__onnx_tensor *given = &p->model.initializers[i];
                const int64_t at = p->table[lg__onnx_place(p, given->name)];
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

/* ---- parts and constants ---- */

/* The parts of a module while they are numbered for the program. */
typedef struct numbering {
        lg__onnx_program *program;
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

/* Runs the nodes whose operands are constants once, and makes constants of their results. */
static bool fold(lg__onnx_program *p)
{
        const size_t values = (size_t)p->slot_room * sizeof(lg_tensor *);
        lg__onnx_run r = {.program = p, .ctx = p->ctx, .values = lg__alloc(p->ctx, values)};
        bool good = r.values != NULL;
        for (int64_t i = 0; good && i < p->model.node_count; i++) {
                lg__onnx_step *s = &p->steps[i];
                bool constant = !s->op->draws;
                for (int k = 0; k < s->in_count; k++)
                        constant = constant && (s->in[k] < 0 || p->slots[s->in[k]].constant);
                if (!constant)
                        continue;
                const lg_scope scope = lg_scope_begin(p->ctx);
                good = lg__onnx_run_step(&r, i);
                for (int64_t k = 0; good && k < p->model.nodes[i].out_count; k++)
                        if (s->out[k] >= 0)
                                lg__tensor_hold(&p->slots[s->out[k]].constant, r.values[s->out[k]]);
                lg_scope_end(p->ctx, scope);
                s->op = NULL;
        }
        lg__free(p->ctx, r.values, values);
        return good;
}

/* ---- loading ---- */

/* Reads the file's messages and finds the operands of all nodes. */
static bool build(lg__onnx_program *p, lg__span file)
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
                lg__onnx_slot *s = slot_of(p, m->initializers[i].name, &new);
                s->sizes = new && !lg__dtype_float(lg__onnx_dtype(m->initializers[i].type));
                if (!*m->initializers[i].name || (!new &&s - p->slots >= m->input_count))
                        return damaged(p, "initialiser", m->initializers[i].name, "is there twice");
        }
        return connect_all(p);
}

static lg_module *module_of(lg__onnx_program *p, const lg_onnx_load_options *o)
{
        numbering n = {.program = p};
        char path[LG__PATH];
        p->uses++; /* the module's */
        lg_module *m = lg_nn_module(p->ctx, "Onnx", .forward_all = lg__onnx_forward, .user = p, .release = release,
                                    .clone = clone);
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
        lg__onnx_program *p = lg__alloc(c, sizeof *p);
        if (!p)
                return NULL;
        *p = (lg__onnx_program){.ctx = c, .uses = 1, .model = {.ctx = c, .op = OP, .path = path}};
        lg_module *m = NULL;
        if (lg__whole_read(c, OP, path, &file) && build(p, (lg__span){file.data, file.bytes}))
                m = module_of(p, &o);
        p->model.path = ""; /* the caller's */
        lg__free(c, file.data, (size_t)file.room);
        program_free(p);
        return m;
}
