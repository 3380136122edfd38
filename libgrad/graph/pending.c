/* pending.c - the records of one backward call, and a heap that returns the record of the newest node first. */
#include "pending.h"

bool lg__stack_room(lg_ctx *c, stack *s)
{
        return s->count < s->room || lg__grow(c, &s->items, s->count, &s->room, sizeof *s->items);
}

bool lg__heap_push(call *k, pending *p)
{
        stack *h = &k->heap;
        if (!lg__stack_room(k->ctx, h))
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

pending *lg__heap_pop(stack *h)
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

pending *lg__pending_find(const call *k, const lg__node *n)
{
        return n->pending && n->pending->owner == k ? n->pending : NULL;
}

pending *lg__pending_get(call *k, lg__node *n)
{
        pending *p = lg__pending_find(k, n);
        if (p)
                return p;
        size_t bytes = sizeof *p + (size_t)n->out_count * sizeof *p->grads;
        p = lg__alloc(k->ctx, bytes);
        if (!p)
                return NULL;
        p->outer = n->pending;
        p->owner = k;
        p->node = n;
        p->bytes = bytes;
        lg__link_add(&k->all, &p->link);
        n->pending = p;
        lg__node_ref(n);
        return p;
}

void lg__pending_free(pending *p)
{
        lg_ctx *c = p->node->ctx;
        lg__link_remove(&p->link);
        p->node->pending = p->outer;
        for (int i = 0; i < p->node->out_count; i++)
                lg__tensor_release(p->grads[i]);
        lg__node_unref(p->node);
        lg__free(c, p, p->bytes);
}

void lg__pending_finish(call *k)
{
        while (k->all.prev != &k->all)
                lg__pending_free((pending *)k->all.prev);
        lg__free(k->ctx, k->heap.items, (size_t)k->heap.room * sizeof *k->heap.items);
}
