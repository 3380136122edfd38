/* device_link.c - opens and closes the link between the devices of a group's ranks. */
#include <string.h>
#include "group/queue.h"

/* One rank's end of the link. */
typedef struct endpoint {
        char place[64]; /* identifies the device on its host */
        bool available;
        char words[128]; /* the link library's version, or why the library is not available */
} endpoint;

/* Why no link can be opened; empty: no reason so far. */
typedef struct reason {
        char words[256];
} reason;

/* Copies the queue's message, or `otherwise`, and clears its status, so that the next kernel is not blamed. */
static void take_message(lg__device *d, const char *otherwise, reason *ret)
{
        snprintf(ret->words, sizeof ret->words, "%s", d->queue->status ? d->queue->message : otherwise);
        d->queue->status = LG_OK;
}

void lg__link_close(lg_group *g, bool broken)
{
        reason why;
        if (!g->link)
                return;
        const lg_status before = g->link_device->queue->status;
        lg__links_of(g)->leave(g->link_device->queue, g->link, broken);
        g->link = NULL;
        if (before == LG_OK && broken)
                take_message(g->link_device, "", &why);
        else
                lg__kernel_done(g->link_device, "lg_group_close", true);
}

/* Sets *why unless all ranks have the same link library and devices of their own. Returns false with an error. */
static bool compare_endpoints(lg_group *g, const char *op, reason *why)
{
        const lg_device_links *links = lg__links_of(g);
        endpoint own = {0};
        own.available = links->version(own.words, sizeof own.words);
        if (own.available &&
            !lg__kernel_done(g->link_device, op, links->place(g->link_device->queue, own.place, sizeof own.place)))
                return false;
        endpoint *all = lg__group_gather(g, op, "the devices of all ranks", &own, sizeof own);
        if (!all)
                return false;
        for (int r = 0; r < g->size && !*why->words; r++) {
                if (!all[r].available)
                        snprintf(why->words, sizeof why->words, "rank %d has no NCCL: %.127s", r, all[r].words);
                else if (strcmp(all[r].words, all[0].words) != 0)
                        snprintf(why->words, sizeof why->words, "rank 0 has %.100s, but rank %d %.100s", all[0].words,
                                 r, all[r].words);
                for (int other = 0; other < r && !*why->words; other++)
                        if (strcmp(all[other].place, all[r].place) == 0 &&
                            strcmp(lg_group_host(g, other), lg_group_host(g, r)) == 0)
                                snprintf(why->words, sizeof why->words, "ranks %d and %d use the same device of %.150s",
                                         other, r, lg_group_host(g, r));
        }
        lg__free(g->object.ctx, all, (size_t)g->size * sizeof *all);
        return true;
}

/* Connects this rank to the link. If that fails on some rank, *why is the first such rank's reason, on all ranks. */
static bool connect_endpoints(lg_group *g, const char *op, reason *why)
{
        const lg_device_links *links = lg__links_of(g);
        lg__device *d = g->link_device;
        struct {
                uint8_t id[LG_LINK_ID];
                reason why; /* why rank 0 could not create an id; empty: it could */
        } name = {{0}, {""}};
        const lg__collective what = {
                .kind = LG__BROADCAST, .dtype = LG_U8, .shape = LG_SHAPE(sizeof name), .name = "the name of a link"};
        if (g->rank == 0 && !links->id(d->queue, name.id))
                take_message(d, "there is no name for a link", &name.why);
        if (!lg__group_run(g, op, &what, &name, &name))
                return false;
        *why = name.why;
        if (*why->words)
                return true;
        g->link = links->join(d->queue, name.id, g->rank, g->size, g->world->seconds);
        if (!g->link)
                take_message(d, "there is no link", why);
        reason *all = lg__group_gather(g, op, "the end of joining", why, sizeof *why);
        if (!all)
                return false;
        for (int r = g->size - 1; r >= 0; r--)
                if (*all[r].words)
                        snprintf(why->words, sizeof why->words, "rank %d: %.230s", r, all[r].words);
        lg__free(g->object.ctx, all, (size_t)g->size * sizeof *all);
        if (*why->words)
                lg__link_close(g, true);
        return true;
}

bool lg__link_open(lg_group *g, lg__device *d, const char *op)
{
        reason why = {""};
        g->link_tried = true;
        g->link_device = d;
        if (!compare_endpoints(g, op, &why) || (!*why.words && !connect_endpoints(g, op, &why)))
                return false;
        if (*why.words && g->rank == 0)
                lg__message(g->object.ctx,
                            "the group's tensors on %s devices go through the memory of the host, not by NCCL: %s",
                            d->api->name, why.words);
        return true;
}
