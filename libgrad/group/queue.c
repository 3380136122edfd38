/* queue.c - runs the collectives of groups in order, through host memory or on a device link. A caller that waits runs
 * pending collectives itself, unless the worker thread does.
 *
 * For tensors on the group's device, ranks compare descriptions first. If all can use the link, data is sent from
 * device to device; otherwise all ranks use host memory.
 */
#include "group/queue.h"
#include <string.h>
#include "core/tape.h"
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define SLICE_NANOSECONDS 100000

/* ---- the queue ---- */

/* Runs a request by messages: the comparison, unless done before; then, unless a link may be used, the exchange. */
static bool run_messages(lg__request *r)
{
        lg__comm *m = r->comm;
        if (!r->agreed) {
                if (!lg__comm_agree(m, &r->what))
                        return false;
                r->share = lg__comm_share(m);
                r->weighted = m->weighted;
                r->bits = m->bits;
                r->agreed = true;
                if (r->what.linked) { /* the caller, which waits, decides between link and host */
                        r->linked = m->linked;
                        return true;
                }
        }
        return lg__comm_exchange(m, r->from, r->to);
}

/* Runs the first request. The caller holds the lock, which is released while the request runs. */
static void run_first(lg__queue *q)
{
        lg__request *r = q->running = q->first;
        q->first = r->next;
        q->last = q->first ? q->last : NULL;
        r->comm->background = q->waiting == 0;
        pthread_mutex_unlock(&q->lock);
        const sigset_t mask = lg__sigpipe_guard();
        const bool ok = run_messages(r);
        lg__sigpipe_restore(&mask);
        pthread_mutex_lock(&q->lock);
        r->ok = ok;
        r->done = true;
        q->running = NULL;
        pthread_cond_broadcast(&q->ended);
}

/* Asks for short time slices for this thread, so that it gets a processor at once when it wakes up (from Linux 6.12; no
 * effect elsewhere). With default slices, a message waits milliseconds for a thread that computes. */
static void ask_for_short_slices(void)
{
#if defined __linux__ && defined SYS_sched_getattr && defined SYS_sched_setattr
        struct {
                uint32_t size, policy;
                uint64_t flags;
                int32_t nice;
                uint32_t priority;
                uint64_t runtime, deadline, period; /* in nanoseconds */
        } a = {0};                                  /* first version of Linux's struct sched_attr */
        if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) == 0 && a.policy == 0) {
                a.runtime = SLICE_NANOSECONDS;
                (void)syscall(SYS_sched_setattr, 0, &a, 0);
        }
#endif
}

static void *run_thread(void *user)
{
        lg__queue *q = user;
        ask_for_short_slices();
        pthread_mutex_lock(&q->lock);
        while (!q->quit) {
                if (q->first && !q->running)
                        run_first(q);
                else
                        pthread_cond_wait(q->first ? &q->ended : &q->added, &q->lock);
        }
        pthread_mutex_unlock(&q->lock);
        return NULL;
}

/* Starts the thread, which receives no signals. If that fails, callers run requests when they wait. */
static void start_thread(lg__queue *q)
{
        sigset_t all, was;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &was);
        q->started = pthread_create(&q->thread, NULL, run_thread, q) == 0;
        pthread_sigmask(SIG_SETMASK, &was, NULL);
        q->threaded = q->started;
}

void lg__queue_init(lg__queue *q)
{
        memset(q, 0, sizeof *q);
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->added, NULL);
        pthread_cond_init(&q->ended, NULL);
}

void lg__queue_finish(lg__queue *q)
{
        lg__queue_wait(q, NULL);
        if (q->started) {
                pthread_mutex_lock(&q->lock);
                q->quit = true;
                pthread_cond_signal(&q->added);
                pthread_mutex_unlock(&q->lock);
                pthread_join(q->thread, NULL);
        }
        pthread_mutex_destroy(&q->lock);
        pthread_cond_destroy(&q->added);
        pthread_cond_destroy(&q->ended);
}

/* Resets the queue in a child of fork(), which has no thread. Pending requests count as done and failed. */
static void reset_in_child(lg__queue *q)
{
        if (q->running)
                q->running->done = true; /* done, with ok = false: a failure */
        for (lg__request *r = q->first; r; r = r->next)
                r->done = true;
        lg__queue_init(q);
}

/* Appends a request. early: the caller does not wait for the request yet, so the thread is started or woken. */
static void add(lg__queue *q, lg__request *r, bool early)
{
        r->next = NULL;
        r->done = r->ok = false;
        if (early && q->threaded && !q->started)
                start_thread(q);
        pthread_mutex_lock(&q->lock);
        if (q->last)
                q->last->next = r;
        else
                q->first = r;
        q->last = r;
        if (early)
                pthread_cond_signal(&q->added);
        pthread_mutex_unlock(&q->lock);
}

void lg__queue_wait(lg__queue *q, const lg__request *r)
{
        pthread_mutex_lock(&q->lock);
        q->waiting++;
        if (q->running)
                q->running->comm->background = false;
        while (r ? !r->done : q->first || q->running) {
                if (q->first && !q->running)
                        run_first(q);
                else
                        pthread_cond_wait(&q->ended, &q->lock);
        }
        q->waiting--;
        pthread_mutex_unlock(&q->lock);
}

bool lg__queue_is_idle(lg__queue *q)
{
        pthread_mutex_lock(&q->lock);
        const bool idle = !q->first && !q->running;
        pthread_mutex_unlock(&q->lock);
        return idle;
}

/* ---- groups ---- */

void lg__group_check_process(lg_group *g)
{
        lg__world *w = g->world;
        if (w->pid != getpid()) {
                w->pid = getpid();
                w->open = false;
                w->orphan = true;
                reset_in_child(&w->queue);
        }
        if (w->orphan) {
                lg__comm_orphan(g->comm);
                g->link = NULL;
        }
}

void lg__group_check_link(lg_group *g)
{
        const char *why = g->link ? lg__links_of(g)->why(g->link) : NULL;
        if (why) {
                lg__queue_wait(&g->world->queue, NULL);
                lg__comm_fail(g->comm, why);
        }
        if (g->link && g->comm->broken)
                lg__link_close(g, true);
}

/* Adds a request by messages to the queue. In a group of one, copies the input to the output at once. */
static void begin_messages(lg_group *g, lg__request *r, bool early)
{
        const lg__collective *c = &r->what;
        if (g->comm) {
                lg__group_check_process(g);
                lg__group_check_link(g);
                r->comm = g->comm;
                add(&g->world->queue, r, early);
        } else if (r->from && r->to && r->from != r->to)
                memmove(r->to, r->from, (size_t)lg__shape_numel(c->shape) * lg__dtype_bytes(c->dtype));
}

static bool end_messages(lg_group *g, const char *op, const lg__request *r)
{
        if (!g->comm)
                return true;
        lg__group_check_process(g);
        lg__queue_wait(&g->world->queue, r);
        if (r->ok) {
                *g->object.ctx->cleared = 0;
                return true;
        }
        lg__fail(g->object.ctx, LG_ERR_COMM, "%s: %s", op, g->comm->why);
        lg__group_check_link(g);
        return false;
}

bool lg__group_run(lg_group *g, const char *op, const lg__collective *what, const void *in, void *out)
{
        lg__request r = {.what = *what, .from = in, .to = out};
        begin_messages(g, &r, false);
        return end_messages(g, op, &r);
}

void *lg__group_gather(lg_group *g, const char *op, const char *name, const void *own, size_t bytes)
{
        lg_ctx *c = g->object.ctx;
        lg__collective what = {.kind = LG__ALL_GATHER, .dtype = LG_U8, .shape = LG_SHAPE((int64_t)bytes)};
        void *all = lg__alloc(c, (size_t)g->size * bytes);
        snprintf(what.name, sizeof what.name, "%s", name);
        if (!all || lg__group_run(g, op, &what, own, all))
                return all;
        lg__free(c, all, (size_t)g->size * bytes);
        return NULL;
}

/* ---- requests on tensors ---- */

/* Returns whether this rank can use a link. Opening takes all ranks, so send and receive only use one that is open. */
static bool may_link(const lg_group *g, const lg__device *d, const lg__collective *c)
{
        if (!g->comm || !d->api->links || !lg_device_equal(d->id, g->device))
                return false;
        return g->link || (!g->link_tried && c->kind != LG__SEND && c->kind != LG__RECEIVE);
}

/* Sets r->linked if all ranks can use the device link for r; the first such request opens the link. False: an error. */
static bool agree_on_link(lg_group *g, const char *op, lg__device *d, lg__request *r)
{
        r->agreed = r->linked = false;
        r->what.linked = may_link(g, d, &r->what);
        if (!r->what.linked)
                return true;
        begin_messages(g, r, false);
        if (!end_messages(g, op, r) || (r->linked && !g->link && !lg__link_open(g, d, op)))
                return false;
        if (r->linked && !g->link) /* no link could be opened: all ranks know, and compare again */
                r->agreed = r->linked = r->what.linked = false;
        return true;
}

/* Starts a collective on the device link, concurrent with the device's queue. For a weighted mean, first scales r->out
 * by this rank's share; if the share is 0, fills r->out with 0 unread (if all weights are 0, the share is NaN). */
static bool begin_link(lg_group *g, const char *op, lg__request *r)
{
        _Static_assert((int)LG_LINK_RECEIVE == LG__RECEIVE - LG__ALL_REDUCE, "the order of collectives");
        _Static_assert((int)LG_LINK_MAX == (int)LG_REDUCE_OP_MAX, "the order of reductions");
        const lg__collective *c = &r->what;
        lg_link_args a = {.what = (lg_link_what)(c->kind - LG__ALL_REDUCE),
                          .dtype = c->dtype,
                          .reduction = (lg_link_reduction)c->reduction,
                          .rank = c->root,
                          .count = lg__shape_numel(c->shape),
                          .in = r->in ? lg__data(r->in) : NULL,
                          .out = r->out ? lg__data(r->out) : NULL};
        r->ticket = 0;
        if (c->kind == LG__ALL_REDUCE && r->weighted) {
                a.reduction = LG_LINK_SUM;
                if (r->share == 0 ? !lg__fill_values(r->out, 0, op)
                                  : !lg__pointwise_run(LG_PW_mul_scalar, r->out, (lg_tensor *[LG_PW_INPUTS]){r->out},
                                                       r->share, 0, op))
                        return false;
        }
        lg__tape_watch(g->object.ctx, &g->object, &g->link, sizeof g->link);
        return a.count == 0 || lg__tape_link(g->link_device, op, g->link, &a, &r->ticket);
}

/* Makes later work of the device's queue wait for a collective on the link. The host does not wait. */
static bool end_link(lg_group *g, const char *op, const lg__request *r)
{
        if (r->ticket == 0)
                return true;
        if (!g->link) /* the link was given up, so its collectives have ended */
                return lg__fail(g->object.ctx, LG_ERR_COMM, "%s: the group is broken", op);
        return lg__tape_wait(g->link_device, op, g->link, r->ticket);
}

static void release_host_copies(lg__request *r)
{
        lg__tensor_release(r->host_in);
        if (r->host_out != r->host_in)
                lg__tensor_release(r->host_out);
        r->host_in = r->host_out = NULL;
}

/* Sets r->from and r->to: the memory of the tensors or, if they are on a device, of host copies. False: no memory. */
static bool copy_to_host(lg__request *r)
{
        const lg_tensor *in = r->in, *out = r->out;
        r->host_in = r->host_out = NULL;
        if ((in ? in : out)->storage->device->id.type != LG_DEVICE_CPU) {
                if (in)
                        in = r->host_in = lg__tensor_own(lg__clone_values(in, lg_cpu(), in->at.dtype));
                if (out == r->in)
                        r->host_out = r->host_in;
                else if (out)
                        r->host_out =
                                lg__tensor_own(lg__tensor_empty(out->ctx, lg_cpu(), out->at.dtype, out->at.shape));
                out = r->host_out;
                if ((r->in && !in) || (r->out && !out)) {
                        release_host_copies(r);
                        return false;
                }
        }
        r->from = in ? lg__data(in) : NULL;
        r->to = out ? lg__data(out) : NULL;
        return true;
}

/* Returns whether a recorded step can repeat the exchange of r, which the ranks have agreed on; else sets an error. */
static bool may_record(const lg_group *g, const char *op, const lg__request *r)
{
        lg_ctx *c = g->object.ctx;
        if (!c->run || (r->linked && !r->weighted))
                return true;
        if (g->comm->broken)
                return lg__fail(c, LG_ERR_COMM, "%s: %s", op, g->comm->why);
        return lg__fail(c, LG_ERR_STATE,
                        "%s: is called in the function that lg_recorder_run runs, and exchanges data %s; a recorded "
                        "step cannot repeat that, so call it between the runs",
                        op,
                        r->weighted ? "with weights of the ranks (lg_set_data_parallel_weight)"
                                    : "through the memory of the host");
}

bool lg__request_begin(lg_group *g, const char *op, lg__request *r, bool early)
{
        if (!g->comm)
                return !r->in || !r->out || r->in == r->out || lg__copy_values(r->out, r->in, op);
        r->weighted = r->what.weighted;
        if (!agree_on_link(g, op, (r->in ? r->in : r->out)->storage->device, r) || !may_record(g, op, r))
                return false;
        if (r->linked)
                return begin_link(g, op, r);
        if (!copy_to_host(r))
                return false;
        begin_messages(g, r, early);
        return true;
}

bool lg__request_end(lg_group *g, const char *op, lg__request *r)
{
        bool ok = g && (r->linked ? end_link(g, op, r) : end_messages(g, op, r));
        if (ok && r->host_out)
                ok = lg__copy_values(r->out, r->host_out, op);
        release_host_copies(r);
        return ok;
}

bool lg__group_tensors(lg_group *g, const char *op, const lg__collective *what, const lg_tensor *in, lg_tensor *out)
{
        lg__request r = {.what = *what, .in = in, .out = out};
        return lg__request_begin(g, op, &r, false) && lg__request_end(g, op, &r);
}
