/* worker_pool.c - worker threads that make batches ahead. They read rows and write buffers; all else is the caller's.
 *
 * A child of fork() has a copy of the pool and none of the threads. It begins anew when it rests.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "data.h"

/* Batch b is made in buffer b % buffers. */
typedef struct buffer {
        lg__made made;
        int64_t ready; /* the batch in it; -1: none */
} buffer;

struct lg__worker_pool {
        const lg__job *job;
        lg__device *device; /* its pinned memory is what the ring is made of; NULL: plain memory */
        int workers, buffers;
        buffer *ring;
        lg__maker *makers;         /* one of each thread, or of the caller's */
        int makers_begun, at_work; /* how many of them are ready, and have a thread */
        pthread_t threads[LG__MAX_WORKERS];
        int started;
        pid_t process; /* whose threads they are */
        pthread_mutex_t lock;
        pthread_cond_t work, news; /* there is something to do; a batch is ready or a thread rests */
        int64_t next, done;        /* the next batch to make; batches before `done` are not needed any more */
        int64_t end;               /* batches from there on are not made: a stream has ended, or one has failed */
        int busy;
        bool resting, quit;
};

static bool something_to_do(const lg__worker_pool *t)
{
        return !t->resting && t->next < t->end && t->next < t->done + t->buffers;
}

/* Notes a batch that was made; nothing follows one that is not full. */
static void note(lg__worker_pool *t, int64_t b)
{
        buffer *r = &t->ring[b % t->buffers];
        r->ready = b;
        if (r->made.code || (t->job->rows < 0 && r->made.count < t->job->batch))
                t->end = b + 1 < t->end ? b + 1 : t->end;
}

static void *work(void *user)
{
        lg__worker_pool *t = user;
        pthread_mutex_lock(&t->lock);
        lg__maker *maker = &t->makers[t->at_work++];
        for (;;) {
                while (!t->quit && !something_to_do(t))
                        pthread_cond_wait(&t->work, &t->lock);
                if (t->quit)
                        break;
                int64_t b = t->next++;
                t->busy++;
                pthread_mutex_unlock(&t->lock);
                lg__batch_make(t->job, maker, b, &t->ring[b % t->buffers].made);
                pthread_mutex_lock(&t->lock);
                t->busy--;
                note(t, b);
                pthread_cond_signal(&t->news);
        }
        pthread_mutex_unlock(&t->lock);
        return NULL;
}

/* The pool without threads. */
static void begin(lg__worker_pool *t)
{
        t->process = getpid();
        t->started = t->at_work = t->busy = 0;
        t->resting = true;
        pthread_mutex_init(&t->lock, NULL);
        pthread_cond_init(&t->work, NULL);
        pthread_cond_init(&t->news, NULL);
}

bool lg__worker_pool_lost(const lg__worker_pool *t)
{
        return t->process != getpid();
}

/* Signals are for the program's own threads. */
static bool start_threads(lg__worker_pool *t)
{
        sigset_t all, was;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &was);
        while (t->started < t->workers && !pthread_create(&t->threads[t->started], NULL, work, t))
                t->started++;
        pthread_sigmask(SIG_SETMASK, &was, NULL);
        return t->started == t->workers;
}

static void *take(lg_ctx *c, const lg__worker_pool *t, size_t bytes)
{
        if (!t->device)
                return lg__alloc(c, bytes);
        void *p = t->device->api->pin(t->device->queue, bytes);
        return p ? p
                 : lg__fail(c, LG_ERR_MEMORY, "lg_loader_open: the system gives no %zu bytes of pinned memory for %s",
                            bytes, lg_device_name(t->device->id));
}

static void give(lg_ctx *c, const lg__worker_pool *t, void *p, size_t bytes)
{
        if (!t->device)
                lg__free(c, p, bytes);
        else if (p)
                t->device->api->unpin(t->device->queue, p);
}

static bool make_ring(lg_ctx *c, lg__worker_pool *t)
{
        t->ring = lg__alloc(c, (size_t)t->buffers * sizeof *t->ring);
        for (int i = 0; t->ring && i < t->buffers; i++) {
                t->ring[i].ready = -1;
                for (int p = 0; p < t->job->parts; p++) {
                        void *data = take(c, t, lg__part_bytes(t->job, p) + 1);
                        t->ring[i].made.data[p] = data;
                        if (!data)
                                return false;
                }
        }
        return t->ring != NULL;
}

static int maker_count(const lg__worker_pool *t)
{
        return t->workers ? t->workers : 1;
}

static bool make_makers(lg_ctx *c, lg__worker_pool *t)
{
        t->makers = lg__alloc(c, (size_t)maker_count(t) * sizeof *t->makers);
        bool ok = t->makers != NULL;
        while (ok && t->makers_begun < maker_count(t))
                ok = lg__maker_begin(&t->makers[t->makers_begun++], c, t->job);
        return ok;
}

lg__worker_pool *lg__worker_pool_new(lg_ctx *c, const lg__job *job, int workers, int ahead, lg__device *device)
{
        lg__worker_pool *t = lg__alloc(c, sizeof *t);
        if (!t)
                return NULL;
        t->job = job;
        t->device = device->api->pin ? device : NULL;
        t->workers = job->rows < 0 && workers ? 1 : workers; /* a stream has one reader */
        t->buffers = ahead + 2 + (t->device ? 2 : 0);        /* two are still read while the next one is made */
        begin(t);
        bool ok = make_ring(c, t) && make_makers(c, t);
        if (ok && !start_threads(t))
                ok = lg__fail(c, LG_ERR_MEMORY, "lg_loader_open: the system gave %d of %d threads", t->started,
                              t->workers);
        if (ok)
                return t;
        lg__worker_pool_free(c, t);
        return NULL;
}

static void free_memory(lg_ctx *c, lg__worker_pool *t)
{
        for (int i = 0; t->ring && i < t->buffers; i++) {
                for (int p = 0; p < t->job->parts; p++)
                        give(c, t, t->ring[i].made.data[p], lg__part_bytes(t->job, p) + 1);
        }
        lg__free(c, t->ring, (size_t)t->buffers * sizeof *t->ring);
        for (int i = 0; i < t->makers_begun; i++)
                lg__maker_end(&t->makers[i], c, t->job);
        lg__free(c, t->makers, (size_t)maker_count(t) * sizeof *t->makers);
}

void lg__worker_pool_free(lg_ctx *c, lg__worker_pool *t)
{
        if (!t)
                return;
        if (lg__worker_pool_lost(t))
                begin(t);
        pthread_mutex_lock(&t->lock);
        t->quit = true;
        pthread_cond_broadcast(&t->work);
        pthread_mutex_unlock(&t->lock);
        for (int i = 0; i < t->started; i++)
                pthread_join(t->threads[i], NULL);
        free_memory(c, t);
        pthread_cond_destroy(&t->news);
        pthread_cond_destroy(&t->work);
        pthread_mutex_destroy(&t->lock);
        lg__free(c, t, sizeof *t);
}

void lg__worker_pool_start(lg__worker_pool *t, int64_t first)
{
        pthread_mutex_lock(&t->lock);
        t->next = t->done = first;
        t->end = t->job->batches;
        for (int i = 0; i < t->buffers; i++)
                t->ring[i].ready = -1;
        t->resting = false;
        pthread_cond_broadcast(&t->work);
        pthread_mutex_unlock(&t->lock);
}

void lg__worker_pool_rest(lg__worker_pool *t)
{
        if (lg__worker_pool_lost(t)) {
                begin(t);
                if (!start_threads(t))
                        t->workers = t->started;
        }
        pthread_mutex_lock(&t->lock);
        t->resting = true;
        while (t->busy)
                pthread_cond_wait(&t->news, &t->lock);
        pthread_mutex_unlock(&t->lock);
}

bool lg__worker_pool_ready(lg__worker_pool *t, int64_t b)
{
        const buffer *r = &t->ring[b % t->buffers];
        pthread_mutex_lock(&t->lock);
        bool ready = r->ready == b || (!t->workers && b < t->end);
        pthread_mutex_unlock(&t->lock);
        return ready;
}

const lg__made *lg__worker_pool_wait(lg__worker_pool *t, int64_t b)
{
        static const lg__made nothing;
        buffer *r = &t->ring[b % t->buffers];
        pthread_mutex_lock(&t->lock);
        const bool ended = b >= t->end;
        while (t->workers && !ended && r->ready != b)
                pthread_cond_wait(&t->news, &t->lock);
        pthread_mutex_unlock(&t->lock);
        if (ended)
                return &nothing;
        if (r->ready != b) { /* without workers */
                lg__batch_make(t->job, t->makers, b, &r->made);
                note(t, b);
        }
        return &r->made;
}

void lg__worker_pool_done(lg__worker_pool *t, int64_t b)
{
        pthread_mutex_lock(&t->lock);
        t->done = b + 1;
        pthread_cond_broadcast(&t->work);
        pthread_mutex_unlock(&t->lock);
}
