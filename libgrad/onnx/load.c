/* load.c - lg_onnx_load(): a module that runs the nodes of an ONNX file. */
#include "import.h"
#include "io/source.h"
#include "nn/nn.h"

#define OP "lg_onnx_load"

/* A value of the graph: an input, an initialiser or the result of a node. */
typedef struct slot {
        const char *name;
        int64_t part;        /* number of the module's part that holds it, or -1 */
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

/* The program and the parts of a module, in order. */
typedef struct bound {
        program *program;
        lg__part *parts[];
} bound;

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

static size_t bytes_of(const program *p)
{
        return sizeof(bound) + (size_t)p->part_count * sizeof(lg__part *);
}

static void release(void *user)
{
        bound *b = user;
        program *p = b->program;
        lg__free(p->ctx, b, bytes_of(p));
        program_free(p);
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
        for (int64_t i = 0; i < p->model.node_count; i++) {
                const lg__onnx_node *n = &p->model.nodes[i];
                char name[96];
                snprintf(name, sizeof name, "%s%s%s", used ? ", " : "", n->foreign ? "(another domain's) " : "", n->op);
                if ((lg__onnx_find(n->op) && !n->foreign) || strstr(list, name + (used ? 2 : 0)) ||
                    used + strlen(name) + 1 > sizeof list)
                        continue;
                memcpy(list + used, name, strlen(name) + 1);
                used += strlen(name);
        }
        return !used || lg__fail(p->ctx, LG_ERR_FORMAT, OP ": %s has operators that libgrad lacks: %s",
                                 lg__quoted(p->model.path).s, list);
}

/* Finds the slots of the operands of node i, which earlier nodes must have computed, and adds those of its results. */
static bool connect(program *p, int64_t i, int64_t *operands)
{
        const lg__onnx_node *n = &p->model.nodes[i];
        step *s = &p->steps[i];
        *s = (step){.operator = lg__onnx_find(n->op), .in = operands};
        if (s->operator->most_in >= 0 && n->in_count > s->operator->most_in)
                return damaged(p, "a node", n->op, "has more operands than the operator");
        if (n->out_count > LG__ONNX_MOST_OUT || n->in_count > INT32_MAX)
                return damaged(p, "a node", n->op, "has too many results");
        for (int64_t k = 0; k < n->in_count; k++) {
                operands[k] = *n->in[k] ? p->table[place_of(p, n->in[k])] : -1;
                if (*n->in[k] && operands[k] < 0)
                        return damaged(p, "value", n->in[k], "is needed before a node computes it");
                if (operands[k] >= 0) {
                        p->slots[operands[k]].last = i;
                        s->in_count = (int)k + 1;
                }
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
