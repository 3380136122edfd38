/* link.c - tensors of a group on devices: from device to device by a link where all ranks have one, else through the
 * memory of the host.
 *
 * The first operation of all ranks on the group's device joins the link. Before each operation, processes compare what
 * they are about to do as ever; a rank whose tensor is elsewhere says so, and then all go through the host.
 */
#include <string.h>
#include "group/link.h"

/* What a rank says of its device. */
typedef struct card {
        char place[64]; /* of the device on this machine */
        bool there;
        char words[128]; /* the library's version, or why there is none */
} card;

/* Why all ranks go through the host; empty: they need not. */
typedef struct reason {
        char words[256];
} reason;

static const lg_device_links *links_of(const lg_group *g)
{
        return g->linked->api->links;
}

const char *lg__link_why(const lg_group *g)
{
        return g->link ? links_of(g)->why(g->link) : NULL;
}

/* What has failed is not the next kernel's fault. */
static void take_words(lg__device *d, const char *otherwise, reason *ret)
{
        snprintf(ret->words, sizeof ret->words, "%s", d->queue->status ? d->queue->message : otherwise);
        d->queue->status = LG_OK;
}

void lg__link_leave(lg_group *g, bool broken)
{
        reason why;
        if (!g->link)
                return;
        const lg_status before = g->linked->queue->status;
        links_of(g)->leave(g->linked->queue, g->link, broken);
        g->link = NULL;
        if (before == LG_OK && broken)
                take_words(g->linked, "", &why);
        else
                lg__kernel_done(g->linked, "lg_group_free", true);
}

/* ---- joining ---- */

/* The same on all ranks, from the same cards. */
static reason compare(const lg_group *g, const card *cards)
{
        reason why = {""};
        for (int r = 0; r < g->size && !*why.words; r++) {
                const card *own = &cards[r];
                if (!own->there)
                        snprintf(why.words, sizeof why.words, "rank %d has no NCCL: %.127s", r, own->words);
                else if (strcmp(own->words, cards[0].words) != 0)
                        snprintf(why.words, sizeof why.words, "rank 0 has %.100s, but rank %d %.100s", cards[0].words,
                                 r, own->words);
                for (int other = 0; other < r && !*why.words; other++)
                        if (strcmp(cards[other].place, own->place) == 0 &&
                            strcmp(lg_group_host(g, other), lg_group_host(g, r)) == 0)
                                snprintf(why.words, sizeof why.words, "ranks %d and %d use the same device of %.150s",
                                         other, r, lg_group_host(g, r));
        }
        return why;
}

static bool hear_cards(lg_group *g, const char *op, reason *ret)
{
        lg_ctx *c = g->object.ctx;
        card own = {.there = links_of(g)->version(own.words, sizeof own.words)};
        if (own.there &&
            !lg__kernel_done(g->linked, op, links_of(g)->place(g->linked->queue, own.place, sizeof own.place)))
                return false;
        const size_t bytes = (size_t)g->size * sizeof own;
        card *cards = lg__alloc(c, bytes);
        if (!cards)
                return false;
        const lg__joint j = lg__bytes_joint(LG__ALL_GATHER, sizeof own, "the devices of all ranks");
        const bool ok = lg__group_run(g, op, &j, &own, cards);
        if (ok)
                *ret = compare(g, cards);
        lg__free(c, cards, bytes);
        return ok;
}

/* The first rank's reason becomes that of all. */
static bool share_reason(lg_group *g, const char *op, reason *why)
{
        lg_ctx *c = g->object.ctx;
        const size_t bytes = (size_t)g->size * sizeof *why;
        reason *all = lg__alloc(c, bytes);
        if (!all)
                return false;
        const lg__joint j = lg__bytes_joint(LG__ALL_GATHER, sizeof *why, "the end of joining");
        const bool ok = lg__group_run(g, op, &j, why, all);
        for (int r = g->size - 1; ok && r >= 0; r--)
                if (*all[r].words)
                        snprintf(why->words, sizeof why->words, "rank %d: %.230s", r, all[r].words);
        lg__free(c, all, bytes);
        return ok;
}

typedef struct invitation {
        uint8_t id[LG_LINK_ID];
        reason why; /* there is none */
} invitation;

static bool meet(lg_group *g, const char *op, reason *why)
{
        lg__device *d = g->linked;
        invitation all = {{0}, {""}};
        if (g->rank == 0 && !links_of(g)->id(d->queue, all.id))
                take_words(d, "there is no name for a link", &all.why);
        const lg__joint j = lg__bytes_joint(LG__BROADCAST, sizeof all, "the name of a link");
        if (!lg__group_run(g, op, &j, &all, &all))
                return false;
        *why = all.why;
        if (*why->words)
                return true;
        g->link = links_of(g)->join(d->queue, all.id, g->rank, g->size, g->seconds);
        if (!g->link)
                take_words(d, "there is no link", why);
        if (!share_reason(g, op, why))
                return false;
        if (*why->words)
                lg__link_leave(g, true);
        return true;
}

static void tell(const lg_group *g, const reason *why)
{
        if (g->rank == 0)
                lg__message(g->object.ctx,
                            "the group's tensors on %s devices go through the memory of the host, not by NCCL: %s",
                            g->linked->api->name, why->words);
}

/* All ranks call it together. False: an error is set; else g->link is there on all ranks or on none. */
static bool join(lg_group *g, lg__device *d, const char *op)
{
        reason why = {""};
        g->linkless = true;
        g->linked = d;
        if (!hear_cards(g, op, &why) || (!*why.words && !meet(g, op, &why)))
                return false;
        if (*why.words)
                tell(g, &why);
        return true;
}

/* ---- operations ---- */

/* A link is joined by all ranks, so that two of them that exchange something alone use the one there is. */
static bool may_link(const lg_group *g, const lg__device *d, const lg__joint *j)
{
        if (!g->peer || !d->api->links || !lg_device_equal(d->id, g->device))
                return false;
        return g->link || (!g->linkless && j->what != LG__SEND && j->what != LG__RECEIVE);
}

bool lg__group_agree(lg_group *g, const char *op, lg__device *d, lg__errand *e)
{
        e->part = LG__ALL_OF_IT;
        e->linked = false;
        e->joint.linked = may_link(g, d, &e->joint);
        if (!e->joint.linked)
                return true;
        e->part = LG__AGREEMENT;
        if (!lg__group_errand(g, op, e))
                return false;
        const bool all = e->linked;
        e->part = LG__DATA;
        if (all && !g->link && !join(g, d, op))
                return false;
        e->linked = all && g->link;
        if (all && !e->linked) { /* all of them know, and agree anew */
                e->part = LG__ALL_OF_IT;
                e->joint.linked = false;
        }
        return true;
}

bool lg__group_link(lg_group *g, const char *op, const lg__joint *j, const void *in, void *out, uint64_t *ret_mark)
{
        static const lg_link_what whats[] = {[LG__ALL_REDUCE] = LG_LINK_ALL_REDUCE,
                                             [LG__BROADCAST] = LG_LINK_BROADCAST,
                                             [LG__ALL_GATHER] = LG_LINK_ALL_GATHER,
                                             [LG__REDUCE_SCATTER] = LG_LINK_REDUCE_SCATTER,
                                             [LG__SEND] = LG_LINK_SEND,
                                             [LG__RECEIVE] = LG_LINK_RECEIVE};
        static const lg_link_reduction reductions[] = {
                [LG__RANKS_SUM] = LG_LINK_SUM, [LG__RANKS_MEAN] = LG_LINK_MEAN, [LG__RANKS_MAX] = LG_LINK_MAX};
        const lg_link_args a = {.what = whats[j->what],
                                .dtype = j->dtype,
                                .reduction = reductions[j->reduction],
                                .rank = j->root,
                                .count = lg__shape_numel(j->shape),
                                .in = in,
                                .out = out};
        *ret_mark = 0;
        return a.count == 0 ||
               lg__kernel_done(g->linked, op, links_of(g)->run(g->linked->queue, g->link, &a, ret_mark));
}

bool lg__group_linked(lg_group *g, const char *op, uint64_t mark)
{
        if (!g->link) /* it was given up, and its operations have ended */
                return mark == 0 || lg__fail(g->object.ctx, LG_ERR_COMM, "%s: the group is broken", op);
        return mark == 0 || lg__kernel_done(g->linked, op, links_of(g)->wait(g->linked->queue, g->link, mark));
}

/* On the host; t itself if it lies there. */
static lg_tensor *on_host(const lg_tensor *t, bool with_values)
{
        if (with_values)
                return lg__clone_values(t, lg_cpu(), t->at.dtype);
        return lg__tensor_empty(t->ctx, lg_cpu(), t->at.dtype, t->at.shape);
}

static bool through_host(lg_group *g, const char *op, lg__errand *e, const lg_tensor *in, lg_tensor *out)
{
        lg_ctx *c = g->object.ctx;
        const lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return false;
        lg_tensor *from = in ? on_host(in, true) : NULL, *to = in == out ? from : out ? on_host(out, false) : NULL;
        bool ok = (from || !in) && (to || !out);
        e->in = from ? lg__data(from) : NULL;
        e->out = to ? lg__data(to) : NULL;
        ok = ok && lg__group_errand(g, op, e) && (!out || lg__copy_values(out, to, op));
        lg_scope_end(c, scope);
        return ok;
}

bool lg__group_tensors(lg_group *g, const char *op, const lg__joint *j, const lg_tensor *in, lg_tensor *out)
{
        lg__device *d = (in ? in : out)->storage->device;
        lg__errand e = {.joint = *j};
        uint64_t mark;
        if (d->id.type == LG_DEVICE_CPU)
                return lg__group_run(g, op, j, in ? lg__data(in) : NULL, out ? lg__data(out) : NULL);
        if (!lg__group_agree(g, op, d, &e))
                return false;
        if (!e.linked)
                return through_host(g, op, &e, in, out);
        return lg__group_link(g, op, j, in ? lg__data(in) : NULL, out ? lg__data(out) : NULL, &mark) &&
               lg__group_linked(g, op, mark);
}
