/* watch.c - watchers of backward passes: calls them when the gradients of their leaves are complete.
 *
 * Before the nodes run, the edges that lead to each watched leaf are counted; a leaf is complete when all nodes with
 * such edges have run. A leaf without such edges is complete at once. A node that receives no gradient does not run;
 * leaves that wait for such a node are completed at the end.
 */
#include "graph/pending.h"

void lg__watcher_add(lg_ctx *c, lg__watcher *w)
{
        w->next = c->watchers;
        c->watchers = w;
}

void lg__watcher_remove(lg_ctx *c, lg__watcher *w)
{
        lg__watcher **at = &c->watchers;
        while (*at && *at != w)
                at = &(*at)->next;
        if (*at)
                *at = w->next;
}

/* ---- watched leaves ---- */

static bool mark(call *k, lg__watcher *w)
{
        const lg_list tensors = w->tensors(w);
        for (int64_t i = 0; i < tensors.count; i++) {
                lg__node *n = tensors.items[i]->node;
                pending *p = n && !n->op ? lg__pending_get(k, n) : NULL;
                if (n && !n->op && !p)
                        return false;
                if (p) {
                        p->watcher = w;
                        p->number = i;
                        k->watched = true;
                }
        }
        return !k->ctx->error;
}

static bool come_to(call *k, stack *s, lg__node *n)
{
        pending *p = n->op ? lg__pending_get(k, n) : lg__pending_find(k, n);
        if (p && !n->op)
                p->waiting++;
        if (!p || !n->op || p->visited)
                return p || !n->op;
        p->visited = true;
        if (!lg__stack_room(k->ctx, s))
                return false;
        s->items[s->count++] = p;
        return true;
}

static bool count_edges(call *k)
{
        stack s = {0};
        bool ok = true;
        for (int64_t i = 0; i < k->heap.count && ok; i++)
                ok = come_to(k, &s, k->heap.items[i]->node);
        while (ok && s.count) {
                const lg__node *n = s.items[--s.count]->node;
                for (int i = 0; i < n->in_count && ok; i++)
                        ok = !n->edges[i].node || come_to(k, &s, n->edges[i].node);
        }
        lg__free(k->ctx, s.items, (size_t)s.room * sizeof *s.items);
        return ok;
}

/* ---- calls of watchers ---- */

static bool reaches(const call *k, const lg__watcher *w)
{
        for (const lg__link *link = k->all.next; link != &k->all; link = link->next) {
                const pending *p = (const pending *)link;
                if (p->watcher == w && p->waiting > 0)
                        return true;
        }
        return false;
}

static bool begin(call *k, lg__watcher *w)
{
        if (w->call)
                return lg__fail(k->ctx, LG_ERR_STATE,
                                "%s: another lg_backward() that reaches the same parameters runs %s", w->name,
                                "around it");
        if (k->create_graph)
                return lg__fail(k->ctx, LG_ERR_STATE,
                                "%s: lg_backward() with .create_graph; use lg_grad(), and lg_all_reduce() the result",
                                w->name);
        w->call = k;
        return w->begin(w);
}

bool lg__watch_tell(const call *k, pending *leaf)
{
        lg__watcher *w = leaf->watcher;
        leaf->watcher = NULL;
        return w->call != k || w->complete(w, leaf->number);
}

/* Calls the watchers of leaves that can receive no gradient or, if `all`, of all leaves not yet reported. */
static bool tell_rest(const call *k, bool all)
{
        for (lg__link *link = k->all.next; link != &k->all; link = link->next) {
                pending *p = (pending *)link;
                if (p->watcher && (all || p->waiting == 0) && !lg__watch_tell(k, p))
                        return false;
        }
        return true;
}

bool lg__watch_begin(call *k)
{
        if (k->only_needed)
                return true;
        for (lg__watcher *w = k->ctx->watchers; w; w = w->next)
                if (!mark(k, w))
                        return false;
        if (!k->watched)
                return true;
        if (!count_edges(k))
                return false;
        for (lg__watcher *w = k->ctx->watchers; w; w = w->next)
                if (reaches(k, w) && !begin(k, w))
                        return false;
        return tell_rest(k, false);
}

bool lg__watch_end(call *k, bool ok)
{
        ok = ok && (!k->watched || tell_rest(k, true));
        for (lg__watcher *w = k->ctx->watchers; w && k->watched; w = w->next) {
                if (w->call != k)
                        continue;
                ok = w->end(w, ok) && ok;
                w->call = NULL;
        }
        return ok;
}
