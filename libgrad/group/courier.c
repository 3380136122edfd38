/* courier.c - operations of groups one after the other. Whoever waits for one carries out those before it, unless the
 * thread is at it; so a single one needs no thread. Without a thread all wait until they are waited for.
 */
#include <pthread.h>
#include <signal.h>
#include "group/courier.h"

struct lg__courier {
        pthread_mutex_t lock;
        pthread_cond_t work, news; /* there is an early errand; one is done */
        lg__errand *first, *last;
        bool threads, started, quit;
        bool busy; /* somebody carries out an errand, which is not in the list any more */
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
static void carry_out(lg__courier *q, bool patient)
{
        lg__errand *e = q->first;
        q->first = e->next;
        q->last = q->first ? q->last : NULL;
        q->busy = true;
        pthread_mutex_unlock(&q->lock);
        lg__peer_be_patient(e->peer, patient);
        const bool ok = run(e);
        e->weight = lg__peer_weight(e->peer);
        e->weighted = lg__peer_weighted(e->peer);
        e->linked = lg__peer_linked(e->peer);
        e->bits = lg__peer_bits(e->peer);
        pthread_mutex_lock(&q->lock);
        e->ok = ok;
        e->done = true;
        q->busy = false;
        pthread_cond_broadcast(&q->news);
}

static void *work(void *user)
{
        lg__courier *q = user;
        pthread_mutex_lock(&q->lock);
        while (!q->quit) {
                if (q->first && !q->busy)
                        carry_out(q, true);
                else if (q->first)
                        pthread_cond_wait(&q->news, &q->lock);
                else
                        pthread_cond_wait(&q->work, &q->lock);
        }
        pthread_mutex_unlock(&q->lock);
        return NULL;
}

lg__courier *lg__courier_new(lg_ctx *c, bool threads)
{
        lg__courier *q = lg__alloc(c, sizeof *q);
        if (!q)
                return NULL;
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->work, NULL);
        pthread_cond_init(&q->news, NULL);
        q->threads = threads;
        return q;
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
        while (e ? !e->done : q->first || q->busy) {
                if (q->first && !q->busy)
                        carry_out(q, false);
                else
                        pthread_cond_wait(&q->news, &q->lock);
        }
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
