/* derive.c - runs the derivative of a node: restores saved values, calls the op's rule, passes the results to the
 * inputs. */
#include <string.h>
#include "pending.h"
#include "core/observer.h"

bool lg__grad_is_unseen(const lg_tensor *g)
{
        return !g->ctx->recording && g->storage->refs == 1 && lg__layout_is_dense(&g->at);
}

bool lg__arrive(call *k, lg__node *n, int output, lg_tensor *g)
{
        pending *p = lg__pending_get(k, n);
        if (!p || (!p->queued && !lg__heap_push(k, p))) {
                lg__tensor_release(g);
                return false;
        }
        lg_tensor *was = p->grads[output];
        if (!was) {
                p->grads[output] = g;
                return true;
        }
        if (!lg__gradients_meet(was, g, k->name)) {
                lg__tensor_release(g);
                return false;
        }
        lg_tensor *sum = was;
        if (!lg__grad_is_unseen(was))
                sum = lg__tensor_own(k->ctx->up->add(was, g));
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

/* maximum number of saved values passed as handles on the stack, in first-order derivatives */
#define MOST_BORROWED 4

static bool is_there(const call *k, const lg__node *n, const lg__saved *s)
{
        const char *name = s->is_output ? "its output" : lg__operand_name(n->op, s->slot);
        if (s->storage->version == s->version)
                return lg__remake(s->storage, k->name);
        return lg__fail(k->ctx, LG_ERR_STATE,
                        "%s: %s saved %s, a %s tensor of shape %s, and it was changed in place since; "
                        "change a copy (lg_copy), or after lg_backward",
                        k->name, n->op->name, name, lg_dtype_name(s->dtype),
                        lg__shape_text(lg__shape_of(s->size, s->ndim)).s);
}

static void restore(lg__layout *at, const lg__saved *s)
{
        at->dtype = s->dtype;
        at->offset = s->offset;
        at->shape.ndim = s->ndim;
        for (int i = 0; i < s->ndim; i++) {
                at->shape.size[i] = s->size[i];
                at->strides[i] = s->size[s->ndim + i];
        }
}

static lg_tensor *borrow(const call *k, lg_tensor *t, const lg__saved *s)
{
        memset(t, 0, offsetof(lg_tensor, at));
        t->live = LG__LIVE;
        t->owner = LG__OWNER_LIBRARY;
        t->ctx = k->ctx;
        t->storage = s->storage;
        restore(&t->at, s);
        return t;
}

static lg_tensor *unpack(const call *k, lg__node *n, const lg__saved *s)
{
        lg_ctx *c = k->ctx;
        lg__layout at;
        restore(&at, s);
        lg_tensor *t = lg__tensor_new(c, s->storage, &at);
        lg__node *from = s->is_output ? n : n->edges[s->slot].node;
        if (t && k->create_graph && from) {
                t->node = from;
                t->alias = true;
                t->output = s->is_output ? s->slot : n->edges[s->slot].output;
                lg__node_ref(from);
        }
        return t;
}

lg_tensor *lg__alias_of(const lg_tensor *g)
{
        lg_tensor *t = lg__tensor_new(g->ctx, g->storage, &g->at);
        if (t && g->node) {
                t->alias = true;
                t->node = g->node;
                t->output = g->output;
                lg__node_ref(g->node);
        }
        return lg__tensor_own(t);
}

lg_tensor *lg__reduce_to_input(lg_tensor *g, const lg__edge *e)
{
        lg_ctx *c = g->ctx;
        if (g->at.dtype != e->dtype || !lg__sizes_equal(&g->at, e->size, e->ndim))
                g = c->up->cast(c->up->sum_to(g, lg__shape_of(e->size, e->ndim)), e->dtype);
        if (!g)
                return NULL;
        if (!lg__sizes_equal(&g->at, e->size, e->ndim))
                return lg__fail(c, LG_ERR_SHAPE, "backward: a gradient is %s, but the input was %s",
                                lg__shape_text(g->at.shape).s, lg__shape_text(lg__shape_of(e->size, e->ndim)).s);
        if (!lg_device_equal(g->storage->device->id, e->device))
                return lg__fail(c, LG_ERR_DEVICE, "backward: a gradient is %s, but the input was on %s",
                                lg__tensor_text(g).s, lg_device_name(e->device));
        if (g->owner == LG__OWNER_SCOPE && g->scope == c->scope)
                return lg__tensor_own(g);
        return lg__alias_of(g);
}

static bool wanted(const call *k, const lg__edge *e)
{
        if (!e->node || !k->only_needed)
                return e->node;
        const pending *p = lg__pending_find(k, e->node);
        return p && p->needed;
}

static bool unpack_all(const call *k, lg__node *n, lg__vjp *v, lg_tensor borrowed[MOST_BORROWED])
{
        const bool borrows = !k->create_graph && n->saved_count <= MOST_BORROWED && !(n->op->flags & LG__HANDLES);
        for (int i = 0; i < n->saved_count; i++) {
                const lg__saved *s = &n->saved[i];
                lg_tensor *t = !is_there(k, n, s) ? NULL : borrows ? borrow(k, &borrowed[i], s) : unpack(k, n, s);
                if (!t)
                        return false;
                *(s->is_output ? &v->out[s->slot] : &v->in[s->slot]) = t;
        }
        return true;
}

static bool run_fused(lg__vjp *v)
{
        LG__NOTIFY(v->ctx, fused_begin, v);
        const bool ok = v->op->fused(v);
        LG__NOTIFY(v->ctx, fused_end, v, ok);
        return ok;
}

static bool run_vjp(call *k, pending *p, lg__vjp *v)
{
        lg__node *n = p->node;
        for (int i = 0; i < n->out_count; i++)
                v->grad[i] = p->grads[i];
        const bool first_order = !k->create_graph, views = first_order && n->op->flags & LG__ALIASES;
        lg__frame frame = {.outer = k->ctx->frame, .node = n};
        k->ctx->frame = &frame;
        LG__NOTIFY(k->ctx, enter, &frame);
        bool ok;
        if (!views || !lg__derive_view(k, v, &ok))
                ok = first_order && n->op->fused ? run_fused(v) : n->op->vjp(v);
        for (int i = 0; i < n->out_count; i++)
                p->grads[i] = v->grad[i];
        LG__NOTIFY(k->ctx, leave, &frame);
        k->ctx->frame = frame.outer;
        if (!ok || k->ctx->error)
                return lg__fail(k->ctx, LG_ERR_STATE, "%s: the derivative of %s failed", k->name, n->op->name);
        return true;
}

/* Returns the gradient accumulated so far at the target of edge e if a derivative may add to it in place, else NULL. */
static lg_tensor *sum_at(const call *k, const lg__edge *e)
{
        const pending *p = lg__pending_find(k, e->node);
        lg_tensor *sum = p ? p->grads[e->output] : NULL;
        return sum && lg__grad_is_unseen(sum) && sum->at.dtype == e->dtype &&
                               lg_device_equal(sum->storage->device->id, e->device)
                       ? sum
                       : NULL;
}

/* Runs a node's derivative in its own scope and adds the results to the pending gradients of the inputs. */
static bool derive(call *k, pending *p, lg__vjp *v, bool *needs, lg_tensor **sums)
{
        lg__node *n = p->node;
        bool any = false;
        for (int i = 0; i < n->in_count; i++) {
                v->in[i] = v->grad_in[i] = NULL;
                any |= needs[i] = wanted(k, &n->edges[i]);
                sums[i] = needs[i] ? sum_at(k, &n->edges[i]) : NULL;
        }
        if (!any)
                return true;
        if (n->freed)
                return lg__fail(
                        k->ctx, LG_ERR_STATE,
                        "%s: what %s saved was freed by an earlier lg_backward; give that one .retain_graph = true",
                        k->name, n->op->name);
        lg__scope record;
        lg_tensor borrowed[MOST_BORROWED];
        lg_scope scope = lg__scope_enter(k->ctx, &record);
        bool ok = unpack_all(k, n, v, borrowed) && run_vjp(k, p, v);
        for (int i = 0; i < n->in_count && ok; i++) {
                if (!needs[i] || !v->grad_in[i] || v->grad_in[i] == v->sums[i])
                        continue;
                lg_tensor *g = lg__reduce_to_input(v->grad_in[i], &n->edges[i]);
                ok = g && lg__arrive(k, n->edges[i].node, n->edges[i].output, g);
        }
        lg_scope_end(k->ctx, scope);
        return ok;
}

bool lg__derive_node(call *k, pending *p)
{
        enum { few = 16 };
        lg_tensor *tensors[3 * few]; /* left uninitialised */
        bool flags[few];
        lg__node *n = p->node;
        const size_t count = (size_t)n->in_count, size = 3 * count * sizeof *tensors;
        lg__vjp v = {.ctx = k->ctx, .op = n->op, .node = n, .attributes = n->attributes};
        v.in_count = n->in_count;
        v.out_count = n->out_count;
        v.in = n->in_count <= few ? tensors : lg__alloc(k->ctx, size);
        bool *needs = n->in_count <= few ? flags : lg__alloc(k->ctx, count);
        v.needs = needs;
        bool ok = v.in && needs;
        if (ok) {
                v.grad_in = v.in + count;
                v.sums = v.in + 2 * count;
                ok = derive(k, p, &v, needs, v.in + 2 * count);
        }
        if (needs != flags)
                lg__free(k->ctx, needs, count);
        if (v.in != tensors)
                lg__free(k->ctx, v.in, size);
        return ok;
}
