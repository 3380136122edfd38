/* dot.c - lg_graph_dot(): writes a recorded graph in Graphviz's language.
 *
 * The walk is breadth first: the list of nodes found so far is also the work list, so deep graphs need no recursion.
 */
#include <string.h>
#include "graph/op.h"

/* A node and the first edge found to it, which has the shape of its output. Its number is its index in the list. */
typedef struct found {
        const lg__node *node;
        const lg__edge *by;
} found;

typedef struct walk {
        lg_ctx *c;
        lg_module *module; /* module whose parameters are named; NULL: none are */
        found *list;
        int64_t *table; /* hash table of 4 * room slots: number + 1 of a node; 0: free */
        int64_t count, room;
} walk;

static int64_t *slot_of(const walk *w, const lg__node *n)
{
        uint64_t mask = (uint64_t)w->room * 4 - 1;
        uint64_t i = ((uint64_t)(uintptr_t)n >> 4) * 0x9e3779b97f4a7c15u >> 20;
        for (;; i++) {
                int64_t *slot = &w->table[i & mask];
                if (!*slot || w->list[*slot - 1].node == n)
                        return slot;
        }
}

static void walk_finish(walk *w)
{
        lg__free(w->c, w->list, (size_t)w->room * sizeof *w->list);
        lg__free(w->c, w->table, (size_t)w->room * 4 * sizeof *w->table);
}

/* Makes room for one more node. Returns false if there is no memory. */
static bool grow(walk *w)
{
        if (w->count < w->room)
                return true;
        walk more = {.c = w->c, .module = w->module, .count = w->count, .room = w->room ? 2 * w->room : 64};
        more.list = lg__alloc(w->c, (size_t)more.room * sizeof *more.list);
        more.table = lg__alloc(w->c, (size_t)more.room * 4 * sizeof *more.table);
        if (!more.list || !more.table) {
                walk_finish(&more);
                return false;
        }
        for (int64_t i = 0; i < w->count; i++) {
                more.list[i] = w->list[i];
                *slot_of(&more, w->list[i].node) = i + 1;
        }
        walk_finish(w);
        *w = more;
        return true;
}

/* Returns the number of node n, which edge `by` points to, and appends n to the list if it is new. -1: no memory. */
static int64_t number_of(walk *w, const lg__node *n, const lg__edge *by)
{
        if (!grow(w))
                return -1;
        int64_t *slot = slot_of(w, n);
        if (!*slot) {
                w->list[w->count++] = (found){n, by};
                *slot = w->count;
        }
        return *slot - 1;
}

/* Escapes quotes and backslashes, because names of custom ops are arbitrary. */
static void write_escaped(FILE *f, const char *s)
{
        for (; *s; s++) {
                if (*s == '"' || *s == '\\')
                        fputc('\\', f);
                fputc(*s, f);
        }
}

/* State of a search for the parameter whose leaf node is `leaf`. */
typedef struct search {
        const lg__node *leaf;
        FILE *f;
        bool found;
} search;

static void write_if_it(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        search *s = user;
        if (is_buffer || s->found || t->node != s->leaf)
                return;
        write_escaped(s->f, path);
        fputs("\\n", s->f);
        s->found = true;
}

static void write_leaf(FILE *f, const walk *w, int64_t number, const found *n)
{
        const lg__edge *e = n->by;
        search s = {n->node, f, false};
        fprintf(f, "        n%lld [shape=ellipse, label=\"", (long long)number);
        if (w->module)
                lg_each_tensor(w->module, write_if_it, &s);
        fprintf(f, "%s %s\\n%s\"%s];\n", lg_dtype_name(e->dtype), lg__shape_text(lg__shape_of(e->size, e->ndim)).s,
                lg_device_name(e->device), s.found ? ", style=filled, fillcolor=\"#d6e6f5\"" : "");
}

/* Writes a node: an op as a box, a view, which copies nothing, as plain text. */
static void write_node(FILE *f, const walk *w, int64_t number, const found *n)
{
        if (!n->node->op) {
                write_leaf(f, w, number, n);
                return;
        }
        const char *look = n->node->op->flags & LG__ALIASES ? "plaintext" : "box";
        fprintf(f, "        n%lld [shape=%s, label=\"", (long long)number, look);
        write_escaped(f, n->node->op->name ? n->node->op->name : "?");
        lg__attributes_text attributes = lg__attributes_text_of(n->node->op, n->node->attributes);
        fprintf(f, "%s%s\\n%s\"];\n", *attributes.s ? "\\n" : "", attributes.s,
                lg__shape_text(lg__shape_of(n->by->size, n->by->ndim)).s);
}

/* Draws a frame around the nodes of each module. Takes quadratic time, so graphs of more than 5,000 nodes, too large to
 * look at, get no frames. */
static void write_frames(FILE *f, const walk *w)
{
        enum { most = 5000 };
        if (w->count > most)
                return;
        for (int64_t i = 0; i < w->count && !ferror(f); i++) {
                const char *where = w->list[i].node->where;
                bool earlier = !where;
                for (int64_t k = 0; k < i && !earlier; k++)
                        earlier = w->list[k].node->where && !strcmp(w->list[k].node->where, where);
                if (earlier)
                        continue;
                fprintf(f, "        subgraph cluster_%lld { color=gray; fontcolor=gray30; label=\"", (long long)i);
                write_escaped(f, where);
                fputs("\";", f);
                for (int64_t k = i; k < w->count; k++)
                        if (w->list[k].node->where && !strcmp(w->list[k].node->where, where))
                                fprintf(f, " n%lld;", (long long)k);
                fputs(" }\n", f);
        }
}

#define HEAD                                                                                                           \
        "digraph libgrad {\n        node [fontname=Helvetica, fontsize=10];\n"                                         \
        "        edge [fontname=Helvetica, fontsize=8, color=gray40];\n"

static bool write_graph(FILE *f, walk *w, const lg__edge *root)
{
        fputs(HEAD, f);
        if (number_of(w, root->node, root) < 0)
                return false;
        for (int64_t i = 0; i < w->count && !ferror(f); i++) {
                const lg__node *n = w->list[i].node;
                write_node(f, w, i, &w->list[i]);
                for (int k = 0; k < n->in_count; k++) {
                        const lg__edge *e = &n->edges[k];
                        int64_t from = e->node ? number_of(w, e->node, e) : 0;
                        if (from < 0)
                                return false;
                        if (e->node)
                                fprintf(f, "        n%lld -> n%lld;\n", (long long)from, (long long)i);
                }
        }
        write_frames(f, w);
        fputs("}\n", f);
        return true;
}

static void write_lone_leaf(FILE *f, const lg__edge *root)
{
        const lg__node leaf = {.out_count = 1};
        fputs(HEAD, f);
        write_leaf(f, &(walk){.c = NULL}, 0, &(found){&leaf, root});
        fputs("}\n", f);
}

bool lg_graph_dot_with(FILE *f, const lg_tensor *t, const lg_graph_dot_options *options)
{
        lg_graph_dot_options o;
        if (!t || t->live != LG__LIVE) {
                lg__check(t, "lg_graph_dot", "t");
                return false;
        }
        lg_ctx *c = t->ctx;
        if (!f)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_graph_dot: f is NULL");
        if (!lg__take_without(options, &o, sizeof o))
                return lg__take(c, "lg_graph_dot", options, &o, sizeof o);
        lg__edge root = {.node = t->node, .output = t->output, .dtype = t->at.dtype, .ndim = t->at.shape.ndim};
        root.size = t->at.shape.size;
        root.device = t->storage->device->id;
        walk w = {.c = c, .module = o.module};
        bool ok = true;
        if (t->node)
                ok = write_graph(f, &w, &root);
        else
                write_lone_leaf(f, &root);
        walk_finish(&w);
        return ok && lg__written(c, f, "lg_graph_dot");
}
