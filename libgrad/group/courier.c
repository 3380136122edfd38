/* courier.c - operations of groups one after the other. Whoever waits for one carries out those before it, unless the
 * thread is at it; so a single one needs no thread. Without a thread all wait until they are waited for.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include "group/courier.h"

#define SLICE_NANOSECONDS 100000

struct lg__courier {
        pthread_mutex_t lock;
        pthread_cond_t work, news; /* there is an early errand; one is done */
        lg__errand *first, *last;
        bool threads, started, quit;
        lg__errand *now; /* somebody carries it out; it is not in the list any more */
        int waiting;     /* callers */
        pthread_t thread;
};

static bool run(const lg__errand *e)
{
        if (e->part == LG__AGREEMENT)
                return lg__peer_agree(e->peer, &e->joint);
        return e->part == LG__DATA ? lg__peer_move(e->peer, e->in, e->out)
                                   : lg__peer_run(e->peer, &e->joint, e->in, e->out);
}

/* With the lock held. */
static void carry_out(lg__courier *q)
{
        lg__errand *e = q->now = q->first;
        q->first = e->next;
        q->last = q->first ? q->last : NULL;
        lg__peer_be_patient(e->peer, q->waiting == 0);
        pthread_mutex_unlock(&q->lock);
        const lg__calm calm = lg__calm_begin();
        const bool ok = run(e);
        lg__calm_end(&calm);
        e->share = lg__peer_share(e->peer);
        e->weighted = lg__peer_weighted(e->peer);
        e->linked = lg__peer_linked(e->peer);
        e->bits = lg__peer_bits(e->peer);
        pthread_mutex_lock(&q->lock);
        e->ok = ok;
        e->done = true;
        q->now = NULL;
        pthread_cond_broadcast(&q->news);
}

/* A thread that mostly sleeps, and then works briefly, gets a processor at once if it asks for short slices
 * (Linux 6.12; elsewhere this does nothing). With those of a thread that computes, a message waits for milliseconds to
 * be looked at.
 */
static void ask_for_short_slices(void)
{
#if defined __linux__ && defined SYS_sched_getattr && defined SYS_sched_setattr
        struct {
                uint32_t size, policy;
                uint64_t flags;
                int32_t nice;
                uint32_t priority;
                uint64_t runtime, deadline, period; /* nanoseconds */
        } a = {0};                                  /* struct sched_attr of the first version */
        if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) == 0 && a.policy == 0) {
                a.runtime = SLICE_NANOSECONDS;
                (void)syscall(SYS_sched_setattr, 0, &a, 0);
        }
#endif
}

static void *work(void *user)
{
        lg__courier *q = user;
        ask_for_short_slices();
        pthread_mutex_lock(&q->lock);
        while (!q->quit) {
                if (q->first && !q->now)
                        carry_out(q);
                else if (q->first)
                        pthread_cond_wait(&q->news, &q->lock);
                else
                        pthread_cond_wait(&q->work, &q->lock);
        }
        pthread_mutex_unlock(&q->lock);
        return NULL;
}

static void make_locks(lg__courier *q)
{
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->work, NULL);
        pthread_cond_init(&q->news, NULL);
}

lg__courier *lg__courier_new(lg_ctx *c)
{
        lg__courier *q = lg__alloc(c, sizeof *q);
        if (q)
                make_locks(q);
        return q;
}

void lg__courier_orphan(lg__courier *q)
{
        if (q->now) {
                q->now->next = q->first;
                q->first = q->now;
        }
        for (lg__errand *e = q->first; e; e = e->next)
                e->done = true; /* and not ok */
        memset(q, 0, sizeof *q);
        make_locks(q);
}

void lg__courier_allow_thread(lg__courier *q)
{
        q->threads = true;
}

void lg__courier_free(lg_ctx *c, lg__courier *q)
{
        if (!q)
                return;
        lg__courier_rest(q);
        if (q->started) {
                pthread_mutex_lock(&q->lock);
                q->quit = true;
                pthread_cond_signal(&q->work);
                pthread_mutex_unlock(&q->lock);
                pthread_join(q->thread, NULL);
        }
        pthread_mutex_destroy(&q->lock);
        pthread_cond_destroy(&q->work);
        pthread_cond_destroy(&q->news);
        lg__free(c, q, sizeof *q);
}

/* Signals are for the program's own threads. Without a thread the caller does the work when it waits. */
static void start(lg__courier *q)
{
        sigset_t all, was;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &was);
        q->started = pthread_create(&q->thread, NULL, work, q) == 0;
        pthread_sigmask(SIG_SETMASK, &was, NULL);
        q->threads = q->started;
}

void lg__courier_take(lg__courier *q, lg__errand *e, bool early)
{
        e->next = NULL;
        e->done = e->ok = false;
        if (early && q->threads && !q->started)
                start(q);
        pthread_mutex_lock(&q->lock);
        if (q->last)
                q->last->next = e;
        else
                q->first = e;
        q->last = e;
        if (early)
                pthread_cond_signal(&q->work);
        pthread_mutex_unlock(&q->lock);
}

static void wait_until(lg__courier *q, const lg__errand *e)
{
        pthread_mutex_lock(&q->lock);
        q->waiting++;
        if (q->now) /* the thread need not leave the processor to the caller any more */
                lg__peer_be_patient(q->now->peer, false);
        while (e ? !e->done : q->first || q->now) {
                if (q->first && !q->now)
                        carry_out(q);
                else
                        pthread_cond_wait(&q->news, &q->lock);
        }
        q->waiting--;
        pthread_mutex_unlock(&q->lock);
}

void lg__courier_wait(lg__courier *q, const lg__errand *e)
{
        wait_until(q, e);
}

void lg__courier_rest(lg__courier *q)
{
        if (q)
                wait_until(q, NULL);
}

bool lg__courier_is_idle(lg__courier *q)
{
        pthread_mutex_lock(&q->lock);
        const bool idle = !q->first && !q->now;
        pthread_mutex_unlock(&q->lock);
        return idle;
}
