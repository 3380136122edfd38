/* backward.c - gradients flow from the newest node to the oldest, one node at a time, without recursion.
 *
 * Every input of a node is older than the node, so taking the newest node that has a gradient means that all of its
 * gradient has arrived. Gradients on their way live in `pending` records of the call, never on tensors.
 */
#include <string.h>
#include "op.h"

typedef struct lg__pending {
        struct lg__pending *outer; /* the same node's in a backward call that this one runs inside of */
        struct lg__pending *next;  /* in the call's list of all */
        const struct call *call;
        lg__node *node;
        bool queued, needed, visited;
        int edge; /* next one to visit */
        size_t bytes;
        lg_tensor *grads[]; /* by output, owned */
} pending;

typedef struct stack {
        pending **items;
        int64_t count, room;
} stack;

typedef struct call {
        lg_ctx *ctx;
        const char *name;
        stack heap;
        pending *all;
        bool create_graph, retain_graph;
        bool only_needed; /* lg_grad: go only where the inputs are, keep nothing on leaves */
        lg_list inputs;
        lg_tensor **result;
} call;

/* ---- pending records and the heap ----------------------------------------------------------------------------------
 */

static bool stack_room(lg_ctx *c, stack *s)
{
        if (s->count < s->room)
                return true;
        int64_t room = s->room ? 2 * s->room : 32;
        pending **items = lg__alloc(c, (size_t)room * sizeof *items);
        if (!items)
                return false;
        if (s->items) {
                memcpy(items, s->items, (size_t)s->count * sizeof *items);
                lg__free(c, s->items, (size_t)s->room * sizeof *items);
        }
        s->items = items;
        s->room = room;
        return true;
}

static void stack_finish(lg_ctx *c, stack *s)
{
        if (s->items)
                lg__free(c, s->items, (size_t)s->room * sizeof *s->items);
}

static bool heap_push(call *k, pending *p)
{
        stack *h = &k->heap;
        if (!stack_room(k->ctx, h))
                return false;
        int64_t i = h->count++;
        while (i > 0 && h->items[(i - 1) / 2]->node->sequence < p->node->sequence) {
                h->items[i] = h->items[(i - 1) / 2];
                i = (i - 1) / 2;
        }
        h->items[i] = p;
        p->queued = true;
        return true;
}

static pending *heap_pop(stack *h)
{
        pending *top = h->items[0], *p = h->items[--h->count];
        int64_t i = 0;
        for (;;) {
                int64_t child = 2 * i + 1;
                if (child >= h->count)
                        break;
                if (child + 1 < h->count && h->items[child + 1]->node->sequence > h->items[child]->node->sequence)
                        child++;
                if (h->items[child]->node->sequence <= p->node->sequence)
                        break;
                h->items[i] = h->items[child];
                i = child;
        }
        h->items[i] = p;
        return top;
}

static pending *find_pending(const call *k, const lg__node *n)
{
        return n->pending && n->pending->call == k ? n->pending : NULL;
}

static pending *get_pending(call *k, lg__node *n)
{
        pending *p = find_pending(k, n);
        if (p)
                return p;
        size_t bytes = sizeof *p + (size_t)n->out_count * sizeof *p->grads;
        p = lg__alloc(k->ctx, bytes);
        if (!p)
                return NULL;
        p->outer = n->pending;
        p->call = k;
        p->node = n;
        p->bytes = bytes;
        p->next = k->all;
        k->all = p;
        n->pending = p;
        lg__node_ref(n);
        return p;
}

static void drop_grads(pending *p)
{
        for (int i = 0; i < p->node->out_count; i++) {
                lg__tensor_release(p->grads[i]);
                p->grads[i] = NULL;
        }
}

static void finish(call *k)
{
        while (k->all) {
                pending *p = k->all;
                k->all = p->next;
                p->node->pending = p->outer;
                drop_grads(p);
                lg__node_unref(p->node);
                lg__free(k->ctx, p, p->bytes);
        }
        stack_finish(k->ctx, &k->heap);
}

/* Adds g, which this takes over, to what has arrived at an output. */
static bool arrive(call *k, lg__node *n, int output, lg_tensor *g)
{
        pending *p = get_pending(k, n);
        if (!p || (!p->queued && !heap_push(k, p))) {
                lg__tensor_release(g);
                return false;
        }
        lg_tensor *was = p->grads[output];
        if (!was) {
                p->grads[output] = g;
                return true;
        }
        bool in_place = !k->create_graph && was->storage->refs == 1 && lg__layout_is_contiguous(&was->at);
        lg_tensor *sum = was;
        if (!in_place)
                sum = lg__tensor_own(lg_add(was, g));
        else if (!lg__pointwise_run(LG_PW_add, was, (lg_tensor *[LG_PW_INPUTS]){was, g}, 0, 0, "lg_backward"))
                sum = NULL;
        lg__tensor_release(g);
        if (!sum)
                return false;
        if (sum != was)
                lg__tensor_release(was);
        p->grads[output] = sum;
        return true;
}

/* ---- one node ------------------------------------------------------------------------------------------------------
 */

static lg_tensor *unpack(const call *k, lg__node *n, const lg__saved *s)
{
        lg_ctx *c = k->ctx;
        if (s->storage->version != s->version) {
                const char *name = s->is_output ? "its output" : n->op->arguments[s->slot < 3 ? s->slot : 2];
                return lg__fail(c, LG_ERR_STATE,
                                "%s: %s saved %s, a %s tensor of shape %s, and it was changed in place since; "
                                "change a copy (lg_copy), or after lg_backward",
                                k->name, n->op->name, name ? name : "a value", lg_dtype_name(s->at.dtype),
                                lg__shape_text(s->at.shape).s);
        }
        lg_tensor *t = lg__tensor_new(c, s->storage, &s->at);
        lg__node *from = s->is_output ? n : n->edges[s->slot].node;
        if (t && k->create_graph && from) {
                t->node = from;
                t->output = s->is_output ? s->slot : n->edges[s->slot].output;
                lg__node_ref(from);
        }
        return t;
}

/* A result of a derivative as a handle that the call owns, cast and summed to what the input was. */
static lg_tensor *settle(lg_tensor *g, const lg__edge *e)
{
        lg_ctx *c = g->ctx;
        g = lg_cast(lg__sum_to(g, e->shape), e->dtype);
        if (!g)
                return NULL;
        if (!lg__shape_equal(g->at.shape, e->shape))
                return lg__fail(c, LG_ERR_SHAPE, "backward: a gradient is %s, but the input was %s",
                                lg__shape_text(g->at.shape).s, lg__shape_text(e->shape).s);
        if (g->owner == LG__OWNER_SCOPE && g->scope == c->scope)
                return lg__tensor_own(g);
        lg_tensor *alias = lg__tensor_new(c, g->storage, &g->at);
        if (alias && g->node) {
                alias->node = g->node;
                alias->output = g->output;
                lg__node_ref(g->node);
        }
        return lg__tensor_own(alias);
}

static bool wanted(const call *k, const lg__edge *e)
{
        if (!e->node || !k->only_needed)
                return e->node;
        const pending *p = find_pending(k, e->node);
        return p && p->needed;
}

static bool run_vjp(call *k, pending *p, lg__vjp *v)
{
        lg__node *n = p->node;
        for (int i = 0; i < n->saved_count; i++) {
                const lg__saved *s = &n->saved[i];
                lg_tensor *t = unpack(k, n, s);
                if (!t)
                        return false;
                *(s->is_output ? &v->out[s->slot] : &v->in[s->slot]) = t;
        }
        for (int i = 0; i < n->out_count; i++)
                v->grad[i] = p->grads[i];
        bool (*derive)(lg__vjp *) = n->op->fused && !k->create_graph ? n->op->fused : n->op->vjp;
        if (!derive(v) || k->ctx->error)
                return lg__fail(k->ctx, LG_ERR_STATE, "%s: the derivative of %s failed", k->name, n->op->name);
        return true;
}

/* Runs a node's derivative in a scope of its own and hands the results on. */
static bool derive(call *k, pending *p, lg__vjp *v, bool *needs)
{
        lg__node *n = p->node;
        bool any = false;
        for (int i = 0; i < n->in_count; i++)
                any |= needs[i] = wanted(k, &n->edges[i]);
        if (!any)
                return true;
        if (n->freed)
                return lg__fail(
                        k->ctx, LG_ERR_STATE,
                        "%s: what %s saved was freed by an earlier lg_backward; give that one .retain_graph = true",
                        k->name, n->op->name);
        lg_scope scope = lg_scope_begin(k->ctx);
        if (!scope.id)
                return false;
        bool ok = run_vjp(k, p, v);
        for (int i = 0; i < n->in_count && ok; i++) {
                if (!needs[i] || !v->grad_in[i])
                        continue;
                lg_tensor *g = settle(v->grad_in[i], &n->edges[i]);
                ok = g && arrive(k, n->edges[i].node, n->edges[i].output, g);
        }
        lg_scope_end(k->ctx, scope);
        return ok;
}

static bool derive_node(call *k, pending *p)
{
        enum { few = 16 };
        lg_tensor *results[few] = {NULL};
        bool flags[few];
        lg__node *n = p->node;
        size_t size = (size_t)n->in_count * sizeof *results;
        lg__vjp v = {
                .ctx = k->ctx, .op = n->op, .node = n, .attributes = n->attributes, .grad_in = results, .needs = flags};
        v.in_count = n->in_count;
        v.out_count = n->out_count;
        if (n->in_count <= few)
                return derive(k, p, &v, flags);
        v.grad_in = lg__alloc(k->ctx, size);
        bool *needs = lg__alloc(k->ctx, (size_t)n->in_count);
        v.needs = needs;
        bool ok = v.grad_in && needs && derive(k, p, &v, needs);
        lg__free(k->ctx, needs, (size_t)n->in_count);
        lg__free(k->ctx, v.grad_in, size);
        return ok;
}

/* ---- hooks, leaves, wanted inputs -----------------------------------------------------------------------------------
 */

static lg_tensor *alias_of(const lg_tensor *g)
{
        lg_tensor *t = lg__tensor_new(g->ctx, g->storage, &g->at);
        if (t && g->node) {
                t->node = g->node;
                t->output = g->output;
                lg__node_ref(g->node);
        }
        return lg__tensor_own(t);
}

static bool run_hook(call *k, pending *p, const lg__hook *h)
{
        lg_tensor *g = p->grads[h->output];
        lg_ctx *c = k->ctx;
        if (!g)
                return true;
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return false;
        lg_tensor *other = h->fn(g, h->user);
        bool ok = !c->error;
        if (ok && other && other != g) {
                lg__edge e = {.dtype = g->at.dtype, .shape = g->at.shape};
                ok = lg__check(other, "lg_hook", "the gradient that the hook returned");
                lg_tensor *settled = ok ? settle(other, &e) : NULL;
                ok = settled != NULL;
                if (ok) {
                        lg__tensor_release(g);
                        p->grads[h->output] = settled;
                }
        }
        lg_scope_end(c, scope);
        return ok;
}

/* Gives what has arrived to those who asked for it: results of lg_grad, leaves, retained outputs. */
static bool deliver(call *k, pending *p)
{
        lg__node *n = p->node;
        for (int64_t i = 0; i < k->inputs.count; i++) {
                const lg_tensor *t = k->inputs.items[i];
                lg_tensor *g = t->node == n ? p->grads[t->output] : NULL;
                if (g && !(k->result[i] = alias_of(g)))
                        return false;
        }
        for (int i = 0; i < n->out_count && !k->only_needed; i++) {
                lg_tensor *g = p->grads[i];
                if (!g || !(n->retain >> i & 1))
                        continue;
                lg_tensor *kept = g;
                if (n->op && !(kept = alias_of(g))) /* a leaf takes it, an inner node still needs it */
                        return false;
                if (!n->op)
                        p->grads[i] = NULL;
                if (!lg__node_accumulate(n, i, kept, k->create_graph))
                        return false;
        }
        return true;
}

static bool run(call *k)
{
        while (k->heap.count) {
                pending *p = heap_pop(&k->heap);
                lg__node *n = p->node;
                for (const lg__hook *h = n->hooks; h; h = h->next)
                        if (!run_hook(k, p, h))
                                return false;
                if (!deliver(k, p) || (n->op && !derive_node(k, p)))
                        return false;
                if (!k->retain_graph && n->op && n->saved_count)
                        lg__node_free_saved(n);
                drop_grads(p);
        }
        return true;
}

/* ---- which nodes lead to the inputs (lg_grad)
 * ------------------------------------------------------------------------ */

static bool is_input(const call *k, const lg__node *n)
{
        for (int64_t i = 0; i < k->inputs.count; i++)
                if (k->inputs.items[i]->node == n)
                        return true;
        return false;
}

static bool visit(call *k, stack *s, lg__node *n)
{
        pending *p = get_pending(k, n);
        if (!p || p->visited)
                return p != NULL;
        p->visited = true;
        p->needed = is_input(k, n);
        if (!stack_room(k->ctx, s))
                return false;
        s->items[s->count++] = p;
        return true;
}

/* Depth first with a stack of its own; a node is needed if it is an input or one of its inputs is needed. */
static bool mark_needed(call *k, lg__node *root)
{
        stack s = {0};
        bool ok = visit(k, &s, root);
        while (ok && s.count) {
                pending *p = s.items[s.count - 1];
                if (p->edge == p->node->in_count) {
                        s.count--;
                        for (int i = 0; i < p->node->in_count; i++) {
                                lg__node *m = p->node->edges[i].node;
                                p->needed = p->needed || (m && find_pending(k, m)->needed);
                        }
                        continue;
                }
                lg__node *m = p->node->edges[p->edge++].node;
                ok = !m || visit(k, &s, m);
        }
        stack_finish(k->ctx, &s);
        return ok;
}

/* ---- the two calls
 * ---------------------------------------------------------------------------------------------------- */

/* The gradient of an output, owned: the given one, or ones for a single element. */
static lg_tensor *first_gradient(const call *k, lg_tensor *y, lg_tensor *given)
{
        lg_ctx *c = k->ctx;
        if (given) {
                if (!lg__check(given, k->name, "grad"))
                        return NULL;
                if (!lg__shape_equal(given->at.shape, y->at.shape) || given->storage->device != y->storage->device)
                        return lg__fail(c, LG_ERR_SHAPE, "%s: grad is %s but the output is %s", k->name,
                                        lg__tensor_text(given).s, lg__tensor_text(y).s);
                lg_tensor *cast = lg_cast(given, y->at.dtype);
                return cast ? alias_of(cast) : NULL;
        }
        if (lg__shape_numel(y->at.shape) != 1)
                return lg__fail(c, LG_ERR_SHAPE,
                                "%s: %s has not one element; reduce it (lg_sum, lg_mean) or give .grad", k->name,
                                lg__tensor_text(y).s);
        lg_tensor *ones = lg__tensor_own(lg__tensor_like(y));
        if (ones && !lg__fill_values(ones, 1, k->name)) {
                lg__tensor_release(ones);
                return NULL;
        }
        return ones;
}

static bool start(call *k, lg_tensor *y, lg_tensor *given)
{
        if (!lg__check(y, k->name, "the output"))
                return false;
        if (!y->node)
                return lg__fail(
                        k->ctx, LG_ERR_STATE,
                        "%s: the output needs no gradient: nothing it was made of requires grad, or it was made "
                        "under lg_no_grad",
                        k->name);
        if (k->only_needed && !mark_needed(k, y->node))
                return false;
        if (k->only_needed && !find_pending(k, y->node)->needed)
                return true;
        lg_tensor *g = first_gradient(k, y, given);
        return g && arrive(k, y->node, y->output, g);
}

static bool run_call(call *k, lg_list outputs, lg_list grads)
{
        lg_ctx *c = k->ctx;
        bool ok = true, was = lg_grad_mode(c, k->create_graph);
        k->retain_graph = k->retain_graph || k->create_graph;
        lg_scope scope = lg_scope_begin(c);
        ok = scope.id != 0;
        for (int64_t i = 0; i < outputs.count && ok; i++)
                ok = start(k, outputs.items[i], grads.count ? grads.items[i] : NULL);
        ok = ok && run(k);
        finish(k);
        lg_scope_end(c, scope);
        lg_grad_mode(c, was);
        return ok;
}

bool lg_backward_(lg_backward_options o)
{
        if (!lg__check(o.loss, "lg_backward", "loss"))
                return false;
        call k = {.ctx = o.loss->ctx, .name = "lg_backward", .create_graph = o.create_graph};
        k.retain_graph = o.retain_graph;
        return run_call(&k, (lg_list){1, &o.loss}, (lg_list){o.grad ? 1 : 0, &o.grad});
}

static bool check_lists(lg_ctx *c, lg_list outputs, const lg_grad_options *o)
{
        if (o->grads.count && o->grads.count != outputs.count)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: %lld outputs but %lld .grads", (long long)outputs.count,
                                (long long)o->grads.count);
        for (int64_t i = 0; i < outputs.count; i++)
                if (!outputs.items[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: output %lld is NULL", (long long)i);
        for (int64_t i = 0; i < o->inputs.count; i++) {
                lg_tensor *t = o->inputs.items[i];
                if (!t)
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: input %lld is NULL", (long long)i);
                if (!lg__check(t, "lg_grad", "an input"))
                        return false;
                if (!t->node)
                        return lg__fail(c, LG_ERR_STATE, "lg_grad: input %lld (%s) does not require grad", (long long)i,
                                        lg__tensor_text(t).s);
        }
        return true;
}

/* Hands the results to the caller's scope, or drops them after a failure. */
static lg_tensor *give_results(lg_tensor **result, int64_t count, lg_tensor **ret, bool ok)
{
        for (int64_t i = 0; i < count; i++) {
                if (result[i] && ok)
                        lg__tensor_disown(result[i]);
                else
                        lg__tensor_release(result[i]);
                if (ok && ret)
                        ret[i] = result[i];
        }
        return ok ? result[0] : NULL;
}

lg_tensor *lg_grad_(lg_list outputs, lg_grad_options o)
{
        lg_ctx *c = NULL;
        for (int64_t i = 0; i < outputs.count && !c; i++)
                c = lg__ctx_of(outputs.items[i]);
        for (int64_t i = 0; i < o.inputs.count && !c; i++)
                c = lg__ctx_of(o.inputs.items[i]);
        if (!lg__ok(c))
                return NULL;
        if (outputs.count < 1 || o.inputs.count < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: the list of %s is empty",
                                outputs.count < 1 ? "outputs" : "inputs");
        if (!check_lists(c, outputs, &o))
                return NULL;
        size_t size = (size_t)o.inputs.count * sizeof(lg_tensor *);
        lg_tensor **result = lg__alloc(c, size);
        if (!result)
                return NULL;
        call k = {.ctx = c, .name = "lg_grad", .create_graph = o.create_graph, .retain_graph = o.retain_graph};
        k.only_needed = true;
        k.inputs = o.inputs;
        k.result = result;
        bool ok = run_call(&k, outputs, o.grads);
        lg_tensor *first = give_results(result, o.inputs.count, o.result, ok);
        lg__free(c, result, size);
        return first;
}
