/* leaves.c - leaves that a recorded step uses, and their gradients before and after its runs. */
#include "graph/op.h"
#include "nn/nn.h"
#include "recorder.h"

uint64_t lg__graded(const lg_recorder *r, int64_t count)
{
        uint64_t h = 0;
        for (int64_t i = 0; i < count; i++) {
                const outer *o = &r->leaves[i];
                h = lg__mix(h, lg__outer_lives(o) && lg__has_gradient(o->tensor));
        }
        return h;
}

bool lg__leaf_is_same(const recording *k, const leaf *l)
{
        const lg_tensor *t = k->outers[l->outer].tensor;
        return t->node == l->node && !t->node->hooks && lg__has_gradient(t) == l->had;
}

void lg__forget_leaves(lg_ctx *c, recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                lg__tensor_release(k->leaves[i].before);
                lg__tensor_release(k->leaves[i].grad);
                lg__tensor_release(k->leaves[i].next);
                lg__node_unref(k->leaves[i].node);
        }
        lg__free(c, k->leaves, (size_t)k->leaf_room * sizeof *k->leaves);
        k->leaves = NULL;
        k->leaf_count = k->leaf_room = 0;
}

/* Adds a leaf to those of all recordings. */
static bool know_leaf(lg_recorder *r, const outer *o)
{
        for (int64_t i = 0; i < r->leaf_count; i++)
                if (r->leaves[i].tensor == o->tensor && r->leaves[i].serial == o->serial)
                        return true;
        if (!lg__grow(r->object.ctx, &r->leaves, r->leaf_count, &r->leaf_room, sizeof *r->leaves))
                return false;
        r->leaves[r->leaf_count++] = *o;
        return true;
}

bool lg__list_leaves(lg_recorder *r, recording *k)
{
        lg_ctx *c = r->object.ctx;
        int64_t n = 0;
        lg__forget_leaves(c, k);
        for (int64_t i = 0; i < k->outer_count; i++)
                n += lg__leaf_of(&k->outers[i]) != NULL;
        k->leaves = lg__alloc(c, (size_t)n * sizeof *k->leaves);
        if (!k->leaves)
                return false;
        k->leaf_room = n;
        for (int64_t i = 0; i < k->outer_count; i++) {
                lg__node *node = lg__leaf_of(&k->outers[i]);
                if (!node)
                        continue;
                if (!know_leaf(r, &k->outers[i]))
                        return false;
                lg__node_ref(node);
                k->leaves[k->leaf_count++] = (leaf){.outer = i, .node = node};
        }
        return true;
}

void lg__note_gradients_before(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                const lg_tensor *t = k->outers[l->outer].tensor;
                l->had = lg__has_gradient(t);
                lg__tensor_release(l->before);
                l->before = l->had ? lg__alias_of(t->node->grads[0]) : NULL;
        }
}

void lg__note_gradients_after(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                const outer *o = &k->outers[l->outer];
                l->grad = lg__has_gradient(o->tensor) ? lg__alias_of(o->tensor->node->grads[0]) : NULL;
                const bool kept = l->before && l->grad && l->before->storage == l->grad->storage;
                if (kept || o->read)
                        continue;
                lg__tensor_release(l->before);
                l->before = NULL;
        }
}

static bool has_other_gradient(const leaf *l)
{
        const lg_tensor *now = l->node->grads ? l->node->grads[0] : NULL;
        return (now ? now->storage : NULL) != (l->grad ? l->grad->storage : NULL);
}

bool lg__prepare_gradients(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                if (!l->next && l->grad && has_other_gradient(l) && !(l->next = lg__alias_of(l->grad)))
                        return false;
        }
        return true;
}

bool lg__copy_gradients(const recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                const leaf *l = &k->leaves[i];
                const lg_tensor *now = l->before ? l->node->grads[0] : NULL;
                if (now && now->storage != l->before->storage && !lg__copy_values(l->before, now, LG__RUN_OP))
                        return false;
        }
        return true;
}

bool lg__set_gradients(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                if (!has_other_gradient(l))
                        continue;
                lg_tensor *next = l->next;
                l->next = NULL;
                if (!next)
                        lg__node_clear_grad(l->node, 0);
                else if (!lg__node_set_grad(l->node, 0, next))
                        return false;
        }
        return true;
}
