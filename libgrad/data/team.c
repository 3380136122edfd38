/* team.c - worker threads that make batches ahead. They read rows and write buffers; all else is the caller's. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include "data.h"

#define MAX_WORKERS 64

/* A buffer of the ring: batch b is made in buffer b % buffers. */
typedef struct buffer {
        void *x, *y;
        int64_t ready; /* the batch in it; -1: none */
} buffer;

struct lg__team {
        const lg__job *job;
        lg__device *device; /* its pinned memory is what the ring is made of; NULL: plain memory */
        int workers, buffers;
        size_t x_bytes, y_bytes;
        buffer *ring;
        pthread_t threads[MAX_WORKERS];
        int started;
        pthread_mutex_t lock;
        pthread_cond_t work, news; /* there is something to do; a batch is ready or a thread rests */
        int64_t next, done;        /* the next batch to make; batches before `done` are not needed any more */
        int busy;
        bool resting, quit;
};

static bool something_to_do(const lg__team *t)
{
        return !t->resting && t->next < t->job->batches && t->next < t->done + t->buffers;
}

static void make(lg__team *t, int64_t b)
{
        buffer *r = &t->ring[b % t->buffers];
        const lg__job *j = t->job;
        lg__rows_gather(j->x, j->order, b * j->batch, lg__job_rows(j, b), r->x);
        lg__rows_gather(j->y, j->order, b * j->batch, lg__job_rows(j, b), r->y);
}

static void *work(void *user)
{
        lg__team *t = user;
        pthread_mutex_lock(&t->lock);
        for (;;) {
                while (!t->quit && !something_to_do(t))
                        pthread_cond_wait(&t->work, &t->lock);
                if (t->quit)
                        break;
                int64_t b = t->next++;
                t->busy++;
                pthread_mutex_unlock(&t->lock);
                make(t, b);
                pthread_mutex_lock(&t->lock);
                t->busy--;
                t->ring[b % t->buffers].ready = b;
                pthread_cond_signal(&t->news);
        }
        pthread_mutex_unlock(&t->lock);
        return NULL;
}

/* Signals are for the program's own threads. */
static bool start_threads(lg__team *t)
{
        sigset_t all, was;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &was);
        while (t->started < t->workers && !pthread_create(&t->threads[t->started], NULL, work, t))
                t->started++;
        pthread_sigmask(SIG_SETMASK, &was, NULL);
        return t->started == t->workers;
}

static void *take(lg_ctx *c, const lg__team *t, size_t bytes)
{
        if (!t->device)
                return lg__alloc(c, bytes);
        void *p = t->device->api->pin(t->device->queue, bytes);
        return p ? p
                 : lg__fail(c, LG_ERR_MEMORY, "lg_loader_open: the system gives no %zu bytes of pinned memory for %s",
                            bytes, lg_device_name(t->device->id));
}

static void give(lg_ctx *c, const lg__team *t, void *p, size_t bytes)
{
        if (!t->device)
                lg__free(c, p, bytes);
        else if (p)
                t->device->api->unpin(t->device->queue, p);
}

static bool make_ring(lg_ctx *c, lg__team *t)
{
        t->ring = lg__alloc(c, (size_t)t->buffers * sizeof *t->ring);
        for (int i = 0; t->ring && i < t->buffers; i++) {
                t->ring[i].ready = -1;
                t->ring[i].x = take(c, t, t->x_bytes);
                t->ring[i].y = t->ring[i].x ? take(c, t, t->y_bytes) : NULL;
                if (!t->ring[i].y)
                        return false;
        }
        return t->ring != NULL;
}

lg__team *lg__team_new(lg_ctx *c, const lg__job *job, int workers, lg__device *device)
{
        if (workers < 0 || workers > MAX_WORKERS)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: %d workers; 0 to %d can be had", workers,
                                MAX_WORKERS);
        lg__team *t = lg__alloc(c, sizeof *t);
        if (!t)
                return NULL;
        int64_t most = job->batch < job->rows ? job->batch : job->rows;
        t->job = job;
        t->device = device->api->pin ? device : NULL;
        t->workers = workers;
        t->buffers = workers + 2 + (t->device ? 2 : 0); /* two are still read while the next one is made */
        t->x_bytes = lg__batch_bytes(job->x, most) + 1;
        t->y_bytes = lg__batch_bytes(job->y, most) + 1;
        t->resting = true;
        pthread_mutex_init(&t->lock, NULL);
        pthread_cond_init(&t->work, NULL);
        pthread_cond_init(&t->news, NULL);
        bool ok = make_ring(c, t);
        if (ok && !start_threads(t))
                ok = lg__fail(c, LG_ERR_MEMORY, "lg_loader_open: the system gave %d of %d threads", t->started,
                              workers);
        if (ok)
                return t;
        lg__team_free(c, t);
        return NULL;
}

void lg__team_free(lg_ctx *c, lg__team *t)
{
        if (!t)
                return;
        pthread_mutex_lock(&t->lock);
        t->quit = true;
        pthread_cond_broadcast(&t->work);
        pthread_mutex_unlock(&t->lock);
        for (int i = 0; i < t->started; i++)
                pthread_join(t->threads[i], NULL);
        for (int i = 0; t->ring && i < t->buffers; i++) {
                give(c, t, t->ring[i].x, t->x_bytes);
                give(c, t, t->ring[i].y, t->y_bytes);
        }
        lg__free(c, t->ring, (size_t)t->buffers * sizeof *t->ring);
        pthread_cond_destroy(&t->news);
        pthread_cond_destroy(&t->work);
        pthread_mutex_destroy(&t->lock);
        lg__free(c, t, sizeof *t);
}

void lg__team_start(lg__team *t, int64_t first)
{
        pthread_mutex_lock(&t->lock);
        t->next = t->done = first;
        for (int i = 0; i < t->buffers; i++)
                t->ring[i].ready = -1;
        t->resting = false;
        pthread_cond_broadcast(&t->work);
        pthread_mutex_unlock(&t->lock);
}

void lg__team_rest(lg__team *t)
{
        pthread_mutex_lock(&t->lock);
        t->resting = true;
        while (t->busy)
                pthread_cond_wait(&t->news, &t->lock);
        pthread_mutex_unlock(&t->lock);
}

bool lg__team_ready(lg__team *t, int64_t b)
{
        pthread_mutex_lock(&t->lock);
        bool ready = !t->workers || t->ring[b % t->buffers].ready == b;
        pthread_mutex_unlock(&t->lock);
        return ready;
}

void lg__team_wait(lg__team *t, int64_t b, const void **ret_x, const void **ret_y)
{
        buffer *r = &t->ring[b % t->buffers];
        pthread_mutex_lock(&t->lock);
        while (t->workers && r->ready != b)
                pthread_cond_wait(&t->news, &t->lock);
        pthread_mutex_unlock(&t->lock);
        if (r->ready != b) { /* without workers */
                make(t, b);
                r->ready = b;
        }
        *ret_x = r->x;
        *ret_y = r->y;
}

void lg__team_done(lg__team *t, int64_t b)
{
        pthread_mutex_lock(&t->lock);
        t->done = b + 1;
        pthread_cond_broadcast(&t->work);
        pthread_mutex_unlock(&t->lock);
}
