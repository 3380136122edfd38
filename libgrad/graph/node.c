/* node.c - nodes of the graph: creation, release, leaves, accumulated gradients, hooks, and public functions. */
#include "core/observer.h"
#include "core/tape.h"
#include "graph/op.h"

void lg__node_ref(lg__node *n)
{
        n->refs++;
}

/* Releases the saved values of a node. */
static void release_values(lg__node *n)
{
        int count = n->saved_count;
        n->saved_count = 0; /* set first, because release functions may inspect the graph */
        for (int i = 0; i < count; i++)
                lg__storage_unsave(n->saved[i].storage);
}

static void release_rest(lg__node *n)
{
        release_values(n);
        if (n->op && n->op->release)
                n->op->release(n->ctx, n->attributes);
        lg__strfree(n->ctx, n->where);
        while (n->hooks) {
                lg__hook *h = n->hooks->next;
                n->hooks->next = h->next;
                n->hooks = h == n->hooks ? NULL : n->hooks;
                lg__free(n->ctx, h, sizeof *h);
        }
        for (int i = 0; n->grads && i < n->out_count; i++)
                lg__tensor_release(n->grads[i]);
        if (n->grads)
                lg__free(n->ctx, n->grads, (size_t)n->out_count * sizeof *n->grads);
        n->grads = NULL;
}

/* Frees nodes from a work list, so that a chain of any length needs no recursion. Accumulated gradients may have nodes
 * of their own: releasing them calls this function again, one level deeper for each order of derivative. */
void lg__node_unref(lg__node *n)
{
        if (!n || --n->refs)
                return;
        n->next = NULL;
        while (n) {
                lg__node *more = n->next;
                for (int i = 0; i < n->in_count; i++) {
                        lg__node *m = n->edges[i].node;
                        if (m && --m->refs == 0) {
                                m->next = more;
                                more = m;
                        }
                }
                release_rest(n);
                lg__free(n->ctx, n, n->bytes);
                n = more;
        }
}

void lg__node_free_saved(lg__node *n)
{
        n->freed = true;
        release_values(n);
}

lg__node *lg__leaf_node(lg_tensor *t)
{
        if (t->node)
                return t->node;
        lg__node *n = lg__alloc(t->ctx, sizeof *n);
        if (!n)
                return NULL;
        *n = (lg__node){.ctx = t->ctx, .sequence = 0, .refs = 1, .out_count = 1, .bytes = sizeof *n, .retain = 1};
        t->node = n;
        t->output = 0;
        return n;
}

void lg__leave_node(lg_tensor *t)
{
        lg__node *n = t->node;
        t->node = NULL;
        lg__drop_cast(n);
        /* The gradient cannot be read any more, and if it has a graph, its graph may refer back to this node. */
        if (!t->alias && (n->retain >> t->output & 1)) {
                lg__node_clear_grad(n, t->output);
                n->retain &= ~(1u << t->output); /* a backward pass in progress must not accumulate here */
        }
        lg__node_unref(n);
}

void lg__node_clear_grad(lg__node *n, int output)
{
        if (!n->grads || !n->grads[output])
                return;
        lg_tensor *g = n->grads[output];
        n->grads[output] = NULL;
        lg__tensor_release(g);
}

static bool grads_ready(lg__node *n)
{
        if (!n->grads)
                n->grads = lg__alloc(n->ctx, (size_t)n->out_count * sizeof *n->grads);
        return n->grads != NULL;
}

/* Returns g, or a copy if g's storage is shared or its layout is neither row-major nor that of channels-last weights:
 * an accumulated gradient owns its values. Takes ownership of g. */
static lg_tensor *for_itself(lg_tensor *g)
{
        if (g->storage->refs == 1 && (lg__layout_is_contiguous(&g->at) || lg__lies_last(g)))
                return g;
        lg_tensor *copy = lg__tensor_own(lg__clone_values(g, g->storage->device->id, g->at.dtype));
        lg__tensor_release(g);
        return copy;
}

bool lg__gradients_meet(const lg_tensor *was, const lg_tensor *g, const char *op)
{
        if (was->storage->device == g->storage->device && was->at.dtype == g->at.dtype)
                return true;
        if (was->at.dtype != g->at.dtype)
                return lg__fail(was->ctx, LG_ERR_DTYPE,
                                "%s: a gradient of dtype %s meets one of dtype %s: lg_module_cast() has changed the "
                                "parameter since a part of the graph was recorded; run the forward again",
                                op, lg_dtype_name(g->at.dtype), lg_dtype_name(was->at.dtype));
        return lg__fail(
                was->ctx, LG_ERR_DEVICE,
                "%s: a gradient on %s meets one on %s: lg_module_to() has moved the parameter since a part of the "
                "graph was recorded; forget what was accumulated and run the forward again",
                op, lg_device_name(g->storage->device->id), lg_device_name(was->storage->device->id));
}

bool lg__node_accumulate(lg__node *n, int output, lg_tensor *g, bool create_graph)
{
        lg_tensor *was = grads_ready(n) ? n->grads[output] : NULL;
        if (!n->grads) {
                lg__tensor_release(g);
                return false;
        }
        if (!was) {
                n->grads[output] = g->node ? g : for_itself(g);
                return n->grads[output] != NULL;
        }
        if (!lg__gradients_meet(was, g, "lg_backward")) {
                lg__tensor_release(g);
                return false;
        }
        if (create_graph || was->node) {
                lg_tensor *sum = lg__tensor_own(n->ctx->up->add(was, g));
                lg__tensor_release(g);
                if (!sum)
                        return false;
                n->grads[output] = sum; /* store first, because releasing the old gradient may call back */
                lg__tensor_release(was);
                return true;
        }
        bool ok = lg__pointwise_run(LG_PW_add, was, (lg_tensor *[LG_PW_INPUTS]){was, g}, 0, 0, "lg_backward");
        lg__storage_changed(was->storage);
        lg__tensor_release(g);
        return ok;
}

bool lg__node_set_grad(lg__node *n, int output, lg_tensor *g)
{
        if (!g || !grads_ready(n)) {
                lg__tensor_release(g);
                return false;
        }
        lg_tensor *was = n->grads[output];
        n->grads[output] = g;
        lg__tensor_release(was);
        return true;
}

/* ---- public functions ---- */

lg_tensor *lg_set_requires_grad(lg_tensor *t, bool on)
{
        if (!lg__check(t, "lg_set_requires_grad", "t"))
                return NULL;
        if (t->node && t->node->op)
                return lg__fail(t->ctx, LG_ERR_STATE,
                                "lg_set_requires_grad: t is a result of %s, not a leaf; lg_detach() it",
                                t->node->op->name);
        if (on && !lg__dtype_float(t->at.dtype))
                return lg__fail(t->ctx, LG_ERR_DTYPE,
                                "lg_set_requires_grad: t is %s; only float tensors have gradients",
                                lg__tensor_text(t).s);
        if (on)
                return lg__leaf_node(t) ? t : NULL;
        if (!lg__may_end(t->ctx, "lg_set_requires_grad"))
                return NULL;
        if (t->node) {
                lg__node *n = t->node;
                t->node = NULL;
                lg__drop_cast(n);
                n->retain = 0; /* a backward pass in progress must not accumulate here */
                lg__node_clear_grad(n, 0);
                lg__node_unref(n);
        }
        return t;
}

static bool alive(const lg_tensor *t)
{
        return t && t->live == LG__LIVE;
}

bool lg_requires_grad(const lg_tensor *t)
{
        return alive(t) && t->node;
}

bool lg_is_leaf(const lg_tensor *t)
{
        return alive(t) && (!t->node || !t->node->op);
}

void lg__leaf_used(const lg_tensor *t, bool read)
{
        if (t->ctx->run && t->node && !t->node->op)
                LG__NOTIFY(t->ctx, leaf, (lg_tensor *)(uintptr_t)t, read);
}

lg_tensor *lg_grad_of(const lg_tensor *t)
{
        if (alive(t))
                lg__leaf_used(t, true);
        return alive(t) && t->node && t->node->grads ? t->node->grads[t->output] : NULL;
}

bool lg_clear_grad(lg_tensor *t)
{
        if (!lg__check(t, "lg_clear_grad", "t") || !lg__may_end(t->ctx, "lg_clear_grad"))
                return false;
        lg__leaf_used(t, false);
        if (t->node)
                lg__node_clear_grad(t->node, t->output);
        return true;
}

lg_tensor *lg_retain_grad(lg_tensor *t)
{
        if (!lg__check(t, "lg_retain_grad", "t"))
                return NULL;
        if (!t->node)
                return lg__fail(t->ctx, LG_ERR_STATE, "lg_retain_grad: t needs no gradient");
        t->node->retain |= 1u << t->output;
        t->alias = false;
        return t;
}

bool lg_hook(lg_tensor *t, lg_hook_fn *fn, void *user)
{
        if (!lg__check(t, "lg_hook", "t") || !lg__unrecorded(t->ctx, "lg_hook"))
                return false;
        if (!fn)
                return lg__fail(t->ctx, LG_ERR_ARGUMENT, "lg_hook: fn is NULL");
        if (!t->node)
                return lg__fail(t->ctx, LG_ERR_STATE, "lg_hook: t needs no gradient");
        lg__hook *h = lg__alloc(t->ctx, sizeof *h), *last = t->node->hooks;
        if (!h)
                return false;
        *h = (lg__hook){last ? last->next : h, fn, user, t->output};
        if (last)
                last->next = h;
        t->node->hooks = h;
        return true;
}

bool lg_unhook(lg_tensor *t, lg_hook_fn *fn, void *user)
{
        if (!lg__check(t, "lg_unhook", "t"))
                return false;
        if (!fn)
                return lg__fail(t->ctx, LG_ERR_ARGUMENT, "lg_unhook: fn is NULL");
        if (!t->node || !t->node->hooks)
                return false;
        lg__hook *last = t->node->hooks, *before = NULL, *at = last;
        do { /* from the first hook to the last one */
                if (at->next->fn == fn && at->next->user == user && at->next->output == t->output)
                        before = at;
                at = at->next;
        } while (at != last);
        if (!before)
                return false;
        lg__hook *found = before->next;
        found->fn = NULL;
        if (t->node->pending) /* a backward runs through the list, which skips a hook without a function */
                return true;
        before->next = found->next;
        t->node->hooks = found == before ? NULL : found == last ? before : last;
        lg__free(t->ctx, found, sizeof *found);
        return true;
}

bool lg_set_grad_mode(lg_ctx *c, bool on)
{
        bool was = c ? c->recording : false;
        if (c)
                c->recording = on;
        return was;
}

bool lg_grad_mode(const lg_ctx *c)
{
        return c && c->recording;
}

lg_tensor *lg_detach(lg_tensor *t)
{
        return lg__check(t, "lg_detach", "t") ? lg__tensor_new(t->ctx, t->storage, &t->at) : NULL;
}
