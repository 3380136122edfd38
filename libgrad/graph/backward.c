/* backward.c - lg_backward() and lg_grad(): visit nodes from the newest to the oldest, one at a time, without
 * recursion.
 *
 * Every input of a node is older than the node. Therefore, when the newest node with a pending gradient is taken, its
 * gradient is complete. Pending gradients are stored in the call's `pending` records, never on tensors. Leaves are
 * older than all other nodes; watched leaves (watch.c) are finished earlier, as soon as no node can still add to their
 * gradients.
 */
#include "pending.h"
#include "core/observer.h"

/* ---- hooks, leaves, results of lg_grad ---- */

static bool run_hook(call *k, pending *p, const lg__hook *h)
{
        lg_tensor *g = p->grads[h->output];
        lg_ctx *c = k->ctx;
        if (!g || !h->fn)
                return true;
        lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return false;
        lg_tensor *other = h->fn(g, h->user);
        bool ok = !c->error;
        if (ok && other && other != g) {
                lg__edge e = {.dtype = g->at.dtype, .size = g->at.shape.size, .ndim = g->at.shape.ndim};
                e.device = g->storage->device->id;
                if (other->ctx != c)
                        ok = lg__fail(c, LG_ERR_ARGUMENT, "lg_hook: the hook returned a tensor of another context");
                ok = ok && lg__check(other, "lg_hook", "the gradient that the hook returned");
                if (ok && !lg__shape_equal(other->at.shape, g->at.shape))
                        ok = lg__fail(c, LG_ERR_SHAPE, "lg_hook: the hook returned %s, but the gradient is %s",
                                      lg__tensor_text(other).s, lg__tensor_text(g).s);
                lg_tensor *reduced = ok ? lg__reduce_to_input(other, &e) : NULL;
                ok = reduced != NULL;
                if (ok) {
                        lg__tensor_release(g);
                        p->grads[h->output] = reduced;
                }
        }
        lg_scope_end(c, scope);
        return ok;
}

/* Runs the hooks that exist at the start; hooks added meanwhile run from the next gradient on. */
static bool run_hooks(call *k, pending *p)
{
        const lg__hook *last = p->node->hooks;
        for (const lg__hook *h = last ? last->next : NULL; h; h = h == last ? NULL : h->next)
                if (!run_hook(k, p, h))
                        return false;
        return true;
}

/* Stores the gradients of p's node as results of lg_grad(), and accumulates those of leaves and retained outputs. */
static bool deliver(call *k, pending *p)
{
        lg__node *n = p->node;
        for (int64_t i = 0; i < k->inputs.count; i++) {
                const lg_tensor *t = k->inputs.items[i];
                lg_tensor *g = t->node == n ? p->grads[t->output] : NULL;
                if (g && !(k->result[i] = lg__alias_of(g)))
                        return false;
        }
        for (int i = 0; i < n->out_count && !k->only_needed; i++) {
                lg_tensor *g = p->grads[i];
                if (!g || !(n->retain >> i & 1))
                        continue;
                lg_tensor *kept = g;
                if (n->op && !(kept = lg__alias_of(g))) /* inner nodes still need g: store an alias */
                        return false;
                if (!n->op)
                        p->grads[i] = NULL;
                if (!lg__node_accumulate(n, i, kept, k->create_graph))
                        return false;
        }
        return true;
}

static bool hand_on(call *k, pending *p)
{
        return run_hooks(k, p) && deliver(k, p) && (!p->watcher || lg__watch_tell(k, p));
}

/* Finishes the watched leaves for which node n was the last node that could add to their gradients. */
static bool finish_leaves(call *k, const lg__node *n)
{
        for (int i = 0; i < n->in_count && k->watched; i++) {
                lg__node *m = n->edges[i].node;
                pending *leaf = m && !m->op ? lg__pending_find(k, m) : NULL;
                if (leaf && leaf->watcher && --leaf->waiting == 0 && !hand_on(k, leaf))
                        return false;
        }
        return true;
}

static bool run(call *k)
{
        while (k->heap.count) {
                pending *p = lg__heap_pop(&k->heap);
                lg__node *n = p->node;
                if (!hand_on(k, p) || (n->op && !(lg__derive_node(k, p) && finish_leaves(k, n))))
                        return false;
                if (!k->retain_graph && n->op && n->saved_count)
                        lg__node_free_saved(n);
                lg__pending_free(p);
        }
        return true;
}

/* ---- which nodes depend on the inputs (lg_grad) ---- */

static bool is_input(const call *k, const lg__node *n)
{
        for (int64_t i = 0; i < k->inputs.count; i++)
                if (k->inputs.items[i]->node == n)
                        return true;
        return false;
}

static bool visit(call *k, stack *s, lg__node *n)
{
        pending *p = lg__pending_get(k, n);
        if (!p || p->visited)
                return p != NULL;
        p->visited = true;
        p->needed = p->asked = is_input(k, n);
        if (!lg__stack_room(k->ctx, s))
                return false;
        s->items[s->count++] = p;
        return true;
}

/* Marks the nodes that lg_grad() must run: the inputs' nodes, and nodes with an input that is needed. Depth-first
 * search with an explicit stack. */
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
                                p->needed = p->needed || (m && lg__pending_find(k, m)->needed);
                        }
                        continue;
                }
                lg__node *m = p->node->edges[p->edge++].node;
                ok = !m || visit(k, &s, m);
        }
        lg__free(k->ctx, s.items, (size_t)s.room * sizeof *s.items);
        return ok;
}

/* ---- lg_backward and lg_grad ---- */

/* Returns the gradient of output y to start from, owned by the caller: the given one, or ones if y has a single
 * element. Returns NULL and sets an error if it does not fit. */
static lg_tensor *first_gradient(const call *k, lg_tensor *y, lg_tensor *given)
{
        lg_ctx *c = k->ctx;
        if (given) {
                if (!lg__in_context(c, given, k->name, "grad") || !lg__check(given, k->name, "grad"))
                        return NULL;
                bool fits = lg__shape_equal(given->at.shape, y->at.shape);
                if (!fits || given->storage->device != y->storage->device)
                        return lg__fail(c, fits ? LG_ERR_DEVICE : LG_ERR_SHAPE, "%s: grad is %s but the output is %s",
                                        k->name, lg__tensor_text(given).s, lg__tensor_text(y).s);
                lg_tensor *cast = c->up->cast(given, y->at.dtype);
                return cast ? lg__alias_of(cast) : NULL;
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
        if (!lg__in_context(k->ctx, y, k->name, "an output") || !lg__check(y, k->name, "the output"))
                return false;
        if (!y->node)
                return lg__fail(
                        k->ctx, LG_ERR_STATE,
                        "%s: the output needs no gradient: nothing it was made of requires grad, or it was made "
                        "under lg_no_grad or by lg_grad without .create_graph",
                        k->name);
        if (k->only_needed && !mark_needed(k, y->node))
                return false;
        if (k->only_needed && !lg__pending_find(k, y->node)->needed)
                return true;
        lg_tensor *g = first_gradient(k, y, given);
        return g && lg__arrive(k, y->node, y->output, g);
}

static bool run_call(call *k, lg_list outputs, lg_list grads)
{
        lg_ctx *c = k->ctx;
        lg__frame span;
        lg__span_begin(c, &span, "backward", NULL, NULL);
        bool ok = true, was = lg_set_grad_mode(c, k->create_graph);
        const lg_dtype region = c->autocast;
        c->autocast = region ? LG_F32 : LG_DTYPE_NONE;
        k->retain_graph = k->retain_graph || k->create_graph;
        lg__link_init(&k->all);
        lg_scope scope = lg__scope_begin(c);
        ok = scope.id != 0;
        for (int64_t i = 0; i < outputs.count && ok; i++)
                ok = start(k, outputs.items[i], grads.count ? grads.items[i] : NULL);
        for (int64_t i = 0; i < outputs.count && k->spends; i++) {
                lg__tensor_release(outputs.items[i]);
                lg__tensor_release(grads.items[i]);
        }
        ok = ok && lg__watch_begin(k) && run(k);
        ok = lg__watch_end(k, ok);
        lg__pending_finish(k);
        lg_scope_end(c, scope);
        lg_set_grad_mode(c, was);
        c->autocast = region;
        lg__span_end(c, &span);
        return ok;
}

bool lg__backward(const char *name, lg_tensor *loss, lg_backward_options o)
{
        call k = {.ctx = loss->ctx, .name = name, .create_graph = o.create_graph, .retain_graph = o.retain_graph};
        return run_call(&k, (lg_list){1, &loss}, (lg_list){o.grad ? 1 : 0, &o.grad});
}

bool lg_backward_with(lg_tensor *loss, const lg_backward_options *options)
{
        lg_backward_options o;
        lg_tensor *given = options && lg__take_without(options, &o, sizeof o) ? o.grad : NULL;
        if (!lg__is_address(loss))
                return lg__fail(lg__ctx_of(given), LG_ERR_ARGUMENT, "lg_backward: loss is %s",
                                loss ? "a number" : "NULL");
        lg__report_error(loss->ctx);
        return lg__same_context(loss, given, "lg_backward", "grad") && lg__check(loss, "lg_backward", "loss") &&
               lg__take(loss->ctx, "lg_backward", options, &o, sizeof o) && lg__backward("lg_backward", loss, o);
}

static bool check_lists(lg_ctx *c, lg_list outputs, lg_list inputs, const lg_grad_options *o)
{
        if (o->grads.count && (o->grads.count != outputs.count || !o->grads.items))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: %lld outputs but %lld .grads%s", (long long)outputs.count,
                                (long long)o->grads.count, o->grads.items ? "" : " in a list that is NULL");
        for (int64_t i = 0; i < outputs.count; i++)
                if (!lg__is_address(outputs.items[i]))
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: output %lld is %s", (long long)i,
                                        outputs.items[i] ? "a number" : "NULL");
        for (int64_t i = 0; i < inputs.count; i++) {
                lg_tensor *t = inputs.items[i];
                if (!lg__is_address(t))
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: input %lld is %s", (long long)i,
                                        t ? "a number" : "NULL");
                if (t->ctx != c)
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: input %lld belongs to another context",
                                        (long long)i);
                if (!lg__check(t, "lg_grad", "an input"))
                        return false;
                if (!t->node)
                        return lg__fail(c, LG_ERR_STATE, "lg_grad: input %lld (%s) does not require grad", (long long)i,
                                        lg__tensor_text(t).s);
        }
        return true;
}

/* Moves the results to the caller's scope, or releases them if the call failed. Returns the first result, or NULL. */
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

static bool run_grad(call *k, lg_list outputs, lg_list grads, lg_tensor **ret, lg_tensor **ret_first)
{
        size_t size = (size_t)k->inputs.count * sizeof(lg_tensor *);
        k->name = "lg_grad";
        k->only_needed = true;
        k->result = lg__alloc(k->ctx, size);
        if (!k->result)
                return false;
        bool ok = run_call(k, outputs, grads);
        *ret_first = give_results(k->result, k->inputs.count, ret, ok);
        lg__free(k->ctx, k->result, size);
        return ok;
}

bool lg__spend_grad(lg_tensor *y, lg_tensor *grad, lg_list inputs, bool create_graph, lg_tensor **ret)
{
        call k = {.ctx = y->ctx, .create_graph = create_graph, .spends = true, .inputs = inputs};
        lg_tensor *first;
        return run_grad(&k, (lg_list){1, &y}, (lg_list){1, &grad}, ret, &first);
}

/* Stores the gradients in o->result, and the first one in *ret_first. On failure, returns false and sets an error. */
static bool gradients(lg_ctx *c, lg_list outputs, lg_list inputs, const lg_grad_options *o, lg_tensor **ret_first)
{
        call k = {.ctx = c, .create_graph = o->create_graph, .retain_graph = o->retain_graph, .inputs = inputs};
        if (outputs.count < 1 || inputs.count < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_grad: the list of %s is empty",
                                outputs.count < 1 ? "outputs" : "inputs");
        return check_lists(c, outputs, inputs, o) && run_grad(&k, outputs, o->grads, o->result, ret_first);
}

lg_tensor *lg_grad_with(lg_list outputs, lg_list inputs, const lg_grad_options *options)
{
        lg_ctx *c = NULL;
        lg_grad_options o;
        lg_tensor *first = NULL, **result = lg__take_without(options, &o, sizeof o) ? o.result : NULL;
        const int64_t asked = inputs.count;
        outputs.count = outputs.items ? outputs.count : 0;
        inputs.count = inputs.items ? inputs.count : 0;
        for (int64_t i = 0; i < outputs.count && !c; i++)
                c = lg__ctx_of(outputs.items[i]);
        for (int64_t i = 0; i < inputs.count && !c; i++)
                c = lg__ctx_of(inputs.items[i]);
        if (lg__take(c, "lg_grad", options, &o, sizeof o) && gradients(c, outputs, inputs, &o, &first))
                return first;
        for (int64_t i = 0; i < asked && result; i++)
                result[i] = NULL;
        return NULL;
}
