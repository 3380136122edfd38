/* group.c - groups of processes: opening, splitting and leaving groups. */
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "group/queue.h"

#define HOST 256
#define SECONDS 300

static const lg__type type;

/* ---- leaving ---- */

static void leave_world(lg_ctx *c, lg__world *w)
{
        if (!w || --w->groups > 0)
                return;
        lg__queue_finish(&w->queue);
        lg__free(c, w->hosts, w->t ? (size_t)w->t->size * HOST : 0);
        const sigset_t mask = lg__sigpipe_guard();
        if (w->open)
                w->api->close(w->t, w->broken);
        lg__sigpipe_restore(&mask);
        lg__free(c, w->t, w->api ? w->api->bytes : 0);
        lg__free(c, w, sizeof *w);
}

static void destroy(lg__object *o)
{
        lg_group *g = (lg_group *)o;
        if (g->comm) {
                lg__group_check_process(g);
                lg__group_check_link(g);
                lg__queue_wait(&g->world->queue, NULL);
                const bool broken = !lg__comm_free(g->comm);
                g->world->broken = broken || g->world->broken;
                lg__link_close(g, broken);
        }
        lg__free(o->ctx, g->members, (size_t)g->size * sizeof *g->members);
        leave_world(o->ctx, g->world);
}

static const lg__type type = {.destroy = destroy};

void lg_group_close(lg_group *g)
{
        if (!g || !lg__may_end(g->object.ctx, "lg_group_close"))
                return;
        lg__report_error(g->object.ctx);
        lg__object_free(g);
}

/* Leaves all groups of t if the process exits without lg_close(), so that other ranks learn of the exit, or of the
 * context's error, at once and not after their time limit. If that breaks a group, waits a second, in which others can
 * report why, because launchers end all processes with this one. Leaves links open: devices may have ended before. */
static void leave_at_exit(lg_transport *t)
{
        lg__world *w = t->user;
        lg_ctx *c = w->ctx;
        if (!lg__queue_is_idle(&w->queue))
                return;
        if (!c->error)
                snprintf(c->cleared, sizeof c->cleared, "it exits without lg_close()");
        w->groups++; /* keeps w until the end of this function */
        for (lg__link *link = c->objects.next, *next; link != &c->objects; link = next) {
                lg_group *g = (lg_group *)link;
                next = link->next;
                if (((lg__object *)link)->type != &type || g->world != w)
                        continue;
                g->link = NULL;
                if (g->comm && c->error)
                        lg__comm_fail(g->comm, c->message);
                lg__object_destroy(g);
        }
        if (w->broken)
                nanosleep(&(struct timespec){1, 0}, NULL);
        leave_world(c, w);
}

bool lg__group_ready(lg_ctx *c, lg_group *g, const char *op)
{
        if (!g || (c && g->object.ctx != c))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the group is %s", op, g ? "of another context" : "NULL");
        return lg__object_lasts(&g->object, op) && lg__enter(g->object.ctx);
}

lg_group *lg__group_find(lg_ctx *c, uint64_t id, const char *op)
{
        for (lg__link *link = c->objects.next; link != &c->objects; link = link->next)
                if (((lg__object *)link)->type == &type && ((lg_group *)link)->id == id)
                        return (lg_group *)link;
        return lg__fail(c, LG_ERR_STATE, "%s: the group was freed", op);
}

/* ---- opening ---- */

/* Breaks all groups of a context and reports the context's error to the other ranks. */
static void report_error(lg_ctx *c)
{
        for (lg__link *link = c->objects.next; link != &c->objects; link = link->next) {
                lg_group *g = (lg_group *)link;
                if (((lg__object *)link)->type != &type || !g->comm)
                        continue;
                lg__group_check_process(g);
                lg__queue_wait(&g->world->queue, NULL);
                lg__comm_fail(g->comm, c->message);
                lg__group_check_link(g);
        }
}

static lg_group *new_group(lg_ctx *c, lg__world *w, int rank, int size)
{
        lg_group *g = lg__object_new(c, &type, sizeof *g);
        if (!g)
                return NULL;
        g->id = ++c->sequence;
        g->rank = rank;
        g->size = size;
        g->device = c->default_device;
        if (w) {
                c->report_error = report_error;
                g->world = w;
                w->groups++;
                g->members = lg__alloc(c, (size_t)size * sizeof *g->members);
                for (int r = 0; r < size && g->members; r++)
                        g->members[r] = r;
        }
        return !w || g->members ? g : lg__object_destroy(g);
}

static bool join(lg_group *g, int tag)
{
        lg__world *w = g->world;
        if (tag > w->t->most_tag - 2)
                return lg__fail(g->object.ctx, LG_ERR_COMM, "lg_group_split: there are no more than %d groups",
                                tag / 2);
        w->next_tag = tag + 2;
        g->comm = lg__comm_new(g->object.ctx, w->t, g->rank, g->size, g->members, tag, w->seconds);
        return g->comm != NULL;
}

/* Returns the number of ranks below `end` that are on this host. */
static int ranks_here(const lg_group *g, int end)
{
        const lg__world *w = g->world;
        int count = 0;
        for (int r = 0; r < end; r++)
                count += strcmp(w->hosts + (size_t)g->members[r] * HOST, w->t->host) == 0;
        return count;
}

/* Returns whether exchanging messages on a thread during computation is faster: if some ranks are on other hosts, since
 * a network takes time, or if cores are idle, since messages within a host are copies that need a core. */
static bool wants_thread(const lg_group *g)
{
        const int here = ranks_here(g, g->size);
        return g->world->t->any_thread && (here < g->size || here * g->object.ctx->threads < lg__processors());
}

/* Sets the group's device: the one asked for or, if the default is cuda:0, the CUDA device numbered by local rank. */
static void choose_device(lg_group *g, lg_device asked)
{
        if (asked.type != LG_DEVICE_NONE)
                g->device = asked;
        else if (g->device.type == LG_DEVICE_CUDA && g->device.index == 0)
                g->device.index = g->local_rank;
}

/* Opens the transport; w->t stays NULL if this process is alone. Once it is open, other ranks wait for this one.
 * Returns false with an error. */
static bool enter_world(lg_ctx *c, lg__world *w)
{
        int launched;
        w->api = lg__transport_module(c, &launched);
        if (!w->api)
                return !c->error;
        w->t = lg__alloc(c, w->api->bytes);
        if (!w->t)
                return false;
        w->t->api = w->api;
        w->t->exits = leave_at_exit;
        w->t->user = w;
        const sigset_t mask = lg__sigpipe_guard();
        const bool opened = w->api->open(w->t, w->seconds);
        lg__sigpipe_restore(&mask);
        if (!opened)
                return lg__fail(c, LG_ERR_COMM, "lg_group_open: %s: %s", w->api->name, w->t->why);
        w->open = true;
        w->api->version(w->version, sizeof w->version);
        return launched == 1 || w->t->size > 1 ||
               lg__fail(c, LG_ERR_COMM,
                        "lg_group_open: the launcher has started %d processes, but %s sees this one alone: "
                        "start them by its own mpirun (libgrad-openmpi.so.1 is for Open MPI's, or srun "
                        "--mpi=pmix, libgrad-mpich.so.1 for MPICH's, or srun --mpi=pmi2)",
                        launched, w->api->name);
}

/* Makes the group of all processes. After an error, now or earlier, reports the error to the other ranks and returns
 * NULL. */
static lg_group *enter_group(lg_ctx *c, lg__world *w)
{
        lg_group *g = c->error ? NULL : new_group(c, w, w->t->rank, w->t->size);
        char host[HOST] = "";
        memcpy(host, w->t->host, strnlen(w->t->host, HOST - 1));
        if (g && join(g, 0) && (w->hosts = lg__group_gather(g, "lg_group_open", "the names of hosts", host, HOST))) {
                g->local_rank = ranks_here(g, g->rank);
                w->queue.threaded = wants_thread(g);
                return g;
        }
        for (int r = 0; r < w->t->size && !(g && g->comm); r++)
                if (r != w->t->rank)
                        lg__comm_refuse(w->t, w->t->rank, r, 0, c->message);
        lg__report_error(c);
        lg__object_destroy(g);
        w->broken = true;
        return NULL;
}

static bool take_options(lg_ctx *c, const lg_group_open_options *options, lg_group_open_options *o)
{
        if (!lg__take(c, "lg_group_open", options, o, sizeof *o))
                return false;
        o->timeout = lg__option(o->timeout, SECONDS);
        return o->timeout > 0 ||
               lg__fail(c, LG_ERR_ARGUMENT, "lg_group_open: .timeout is %g seconds; it must be above 0", o->timeout);
}

/* Opens the transport even after an error: the other processes would wait in MPI for this one. */
lg_group *lg_group_open_with(lg_ctx *c, const lg_group_open_options *options)
{
        lg_group_open_options o;
        const bool good = take_options(c, options, &o);
        lg__world *w = c ? lg__alloc(c, sizeof *w) : NULL;
        if (!w)
                return NULL;
        w->ctx = c;
        w->seconds = good ? o.timeout : SECONDS;
        w->pid = getpid();
        w->groups = 1; /* a reference of this function, until its end */
        lg__queue_init(&w->queue);
        lg_group *g = NULL;
        if (enter_world(c, w)) {
                if (w->t && w->t->size > 1)
                        g = enter_group(c, w);
                else if (!c->error)
                        g = new_group(c, NULL, 0, 1);
        }
        leave_world(c, w);
        if (g && g->world)
                c->rank_seed = (uint64_t)g->rank * 0x9e3779b97f4a7c15u; /* rank 0 draws the numbers of a lone process */
        if (g)
                choose_device(g, o.device);
        return g;
}

/* ---- splitting ---- */

typedef struct wish {
        int32_t color, next_tag;
} wish;

static lg_group *split(lg_group *g, int color, const wish *wishes)
{
        int size = 0, rank = 0, tag = 0;
        for (int r = 0; r < g->size; r++) {
                rank += r < g->rank && wishes[r].color == color;
                size += wishes[r].color == color;
                tag = wishes[r].next_tag > tag ? wishes[r].next_tag : tag;
        }
        g->world->next_tag = tag + 2;
        if (color < 0)
                return NULL;
        lg_group *part = new_group(g->object.ctx, g->world, rank, size);
        for (int r = 0, i = 0; part && r < g->size; r++)
                if (wishes[r].color == color)
                        part->members[i++] = g->members[r];
        if (part && (size == 1 || join(part, tag))) {
                part->local_rank = ranks_here(part, part->rank);
                part->device = g->device;
                return part;
        }
        for (int r = 0; r < g->size; r++)
                if (r != g->rank && wishes[r].color == color)
                        lg__comm_refuse(g->world->t, rank, g->members[r], tag, g->object.ctx->message);
        lg__report_error(g->object.ctx);
        return lg__object_destroy(part);
}

lg_group *lg_group_split(lg_group *g, int color)
{
        if (!g || !lg__group_ready(g->object.ctx, g, "lg_group_split") ||
            !lg__unrecorded(g->object.ctx, "lg_group_split"))
                return NULL;
        lg_ctx *c = g->object.ctx;
        if (!g->comm) {
                lg_group *alone = color < 0 ? NULL : new_group(c, NULL, 0, 1);
                if (alone)
                        alone->device = g->device;
                return alone;
        }
        const wish own = {color, g->world->next_tag};
        wish *wishes = lg__group_gather(g, "lg_group_split", "lg_group_split", &own, sizeof own);
        lg_group *part = wishes ? split(g, color, wishes) : NULL;
        lg__free(c, wishes, (size_t)g->size * sizeof own);
        return part;
}

/* ---- properties ---- */

int lg_group_rank(const lg_group *g)
{
        return g ? g->rank : 0;
}

int lg_group_size(const lg_group *g)
{
        return g ? g->size : 1;
}

int lg_group_local_rank(const lg_group *g)
{
        return g ? g->local_rank : 0;
}

lg_device lg_group_device(const lg_group *g)
{
        return g ? g->device : LG_NO_DEVICE;
}

const char *lg_group_host(const lg_group *g, int rank)
{
        if (!g || rank < 0 || rank >= g->size)
                return NULL;
        return g->world ? g->world->hosts + (size_t)g->members[rank] * HOST : "localhost";
}

const char *lg_group_transport(const lg_group *g)
{
        return g && g->world ? g->world->version : "none";
}

bool lg_barrier(lg_group *g)
{
        return g && lg__group_ready(g->object.ctx, g, "lg_barrier") && lg__unrecorded(g->object.ctx, "lg_barrier") &&
               lg__group_run(g, "lg_barrier", &(lg__collective){.kind = LG__BARRIER}, NULL, NULL);
}
