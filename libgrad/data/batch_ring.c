/* batch_ring.c - a ring of batches, made ahead of time by worker threads or, without threads, when requested.
 *
 * Worker threads read samples and write host memory; the caller's thread does everything else. A child of fork() has a
 * copy of the ring but no worker threads: lg__batch_ring_stop() starts them again.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "data.h"

struct lg__batch_ring {
        const lg__batch_plan *plan;
        lg__device *device;
        bool pinned;   /* slots have pinned memory, which the device copies asynchronously */
        bool in_place; /* slots have no memory: samples are written into the batch's tensors */
        int depth, thread_count;
        lg__batch_slot *slots;
        lg__batch_builder *builders; /* one per thread; without threads one for the caller */
        int builder_count, builders_begun, builders_in_use;
        pthread_t threads[LG__MAX_WORKERS];
        int started;
        pid_t process; /* id of the process that has the threads */
        pthread_mutex_t lock;
        pthread_cond_t work, batch_done; /* signalled: a batch can be made; a thread has made one */
        int64_t next, released;          /* next batch to be made; batches below `released` are no longer used */
        int64_t end;                     /* first batch not to be made (end of stream, or failure) */
        int busy;                        /* number of threads that are making a batch */
        bool stopped, quit;
};

static bool can_make_one(const lg__batch_ring *r)
{
        return !r->stopped && r->next < r->end && r->next < r->released + r->depth;
}

static lg__batch_slot *slot_of(lg__batch_ring *r, int64_t b)
{
        return &r->slots[b % r->depth];
}

/* Records that batch b is made. A failed batch, or an incomplete one of a stream, becomes the last of the epoch. */
static void record_batch(lg__batch_ring *r, int64_t b)
{
        lg__batch_slot *s = slot_of(r, b);
        s->ready = b;
        if (s->batch.code || (r->plan->rows < 0 && s->batch.count < r->plan->batch))
                r->end = b + 1 < r->end ? b + 1 : r->end;
}

static void *run_thread(void *user)
{
        lg__batch_ring *r = user;
        pthread_mutex_lock(&r->lock);
        lg__batch_builder *builder = &r->builders[r->builders_in_use++];
        for (;;) {
                while (!r->quit && !can_make_one(r))
                        pthread_cond_wait(&r->work, &r->lock);
                if (r->quit)
                        break;
                const int64_t b = r->next++;
                r->busy++;
                pthread_mutex_unlock(&r->lock);
                lg__batch_build(r->plan, builder, b, &slot_of(r, b)->batch);
                pthread_mutex_lock(&r->lock);
                r->busy--;
                record_batch(r, b);
                pthread_cond_signal(&r->batch_done);
        }
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

/* ---- copies to the device ---- */

static bool allocate_parts(const lg__batch_ring *r, lg__batch_slot *s)
{
        for (int p = 0; p < r->plan->parts; p++) {
                const lg_shape shape = lg__part_shape(r->plan, p, &s->batch);
                s->parts[p] = lg__storage_new(r->device,
                                              (size_t)lg__shape_numel(shape) * lg__dtype_bytes(r->plan->part[p].dtype));
                if (!s->parts[p])
                        return false;
        }
        return true;
}

bool lg__batch_ring_copy(const lg__batch_ring *r, lg__batch_slot *s)
{
        lg__device *d = r->device;
        if (s->copied)
                return true;
        bool ok = r->in_place || allocate_parts(r, s);
        for (int p = 0; ok && !r->in_place && p < r->plan->parts; p++) {
                void *to = s->parts[p]->data, *from = s->batch.data[p];
                const size_t bytes = s->parts[p]->bytes;
                if (bytes && d->api->copy_async)
                        ok = lg__kernel_done(d, "lg_loader_next",
                                             d->api->copy_async(d->queue, to, from, bytes, &s->mark));
                else if (bytes)
                        ok = lg__upload(d, to, from, bytes, "lg_loader_next");
        }
        return s->copied = ok;
}

/* Waits until the asynchronous copy of a batch no longer reads the slot's host memory. Returns false with an error. */
static bool end_copy(const lg__batch_ring *r, lg__batch_slot *s)
{
        lg__device *d = r->device;
        const bool ok = !s->mark || lg__kernel_done(d, "lg_loader_next", d->api->event_query(d->queue, s->mark, true));
        s->mark = ok ? 0 : s->mark;
        return ok;
}

void lg__batch_ring_drop_copies(lg__batch_ring *r)
{
        lg__device *d = r->device;
        for (lg__batch_slot *s = r->slots; s && s < r->slots + r->depth; s++) {
                if (s->mark)
                        d->api->stream_wait(d->queue, s->mark); /* the queue may reuse the memory that is freed next */
                for (int p = 0; p < r->plan->parts; p++) {
                        lg__storage_unref(s->parts[p]);
                        s->parts[p] = NULL;
                }
                s->copied = false;
                if (r->in_place)
                        s->ready = -1; /* the batch was stored in the memory just freed */
                end_copy(r, s);
        }
}

/* ---- creation and destruction ---- */

/* Sets the state of a ring whose threads are not started. */
static void reset_threads(lg__batch_ring *r)
{
        r->process = getpid();
        r->started = r->builders_in_use = r->busy = 0;
        r->stopped = true;
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->work, NULL);
        pthread_cond_init(&r->batch_done, NULL);
}

bool lg__batch_ring_lost(const lg__batch_ring *r)
{
        return !r->in_place && r->process != getpid(); /* in-place rings have no threads to lose */
}

/* Starts worker threads that block all signals, as those are for the program's threads. Returns false if some fail. */
static bool start_threads(lg__batch_ring *r)
{
        sigset_t all, was;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &was);
        while (r->started < r->thread_count && !pthread_create(&r->threads[r->started], NULL, run_thread, r))
                r->started++;
        pthread_sigmask(SIG_SETMASK, &was, NULL);
        return r->started == r->thread_count;
}

static bool allocate_slots(lg_ctx *c, lg__batch_ring *r)
{
        lg__device *d = r->pinned ? r->device : NULL;
        r->slots = lg__alloc(c, (size_t)r->depth * sizeof *r->slots);
        for (int i = 0; r->slots && !r->in_place && i < r->depth; i++) {
                for (int p = 0; p < r->plan->parts; p++) {
                        const size_t bytes = lg__part_bytes(r->plan, p) + 1;
                        void *data = d ? d->api->pin(d->queue, bytes) : lg__alloc(c, bytes);
                        if (!data && d)
                                lg__fail(c, LG_ERR_MEMORY,
                                         "lg_loader_open: the system gives no %zu bytes of pinned memory for %s", bytes,
                                         lg_device_name(d->id));
                        if (!data)
                                return false;
                        r->slots[i].batch.data[p] = data;
                }
        }
        return r->slots != NULL;
}

static bool allocate_builders(lg_ctx *c, lg__batch_ring *r)
{
        r->builders = lg__alloc(c, (size_t)r->builder_count * sizeof *r->builders);
        bool ok = r->builders != NULL;
        while (ok && r->builders_begun < r->builder_count)
                ok = lg__batch_builder_init(&r->builders[r->builders_begun++], c, r->plan);
        return ok;
}

lg__batch_ring *lg__batch_ring_new(lg_ctx *c, const lg__batch_plan *plan, int threads, int ahead, lg__device *device)
{
        lg__batch_ring *r = lg__alloc(c, sizeof *r);
        if (!r)
                return NULL;
        r->plan = plan;
        r->device = device;
        r->pinned = device->api->pin != NULL;
        r->in_place = !threads && device->id.type == LG_DEVICE_CPU && plan->rows >= 0 && lg__batch_plan_is_direct(plan);
        r->thread_count = plan->rows < 0 && threads ? 1 : threads; /* only one thread reads a stream */
        r->builder_count = r->thread_count ? r->thread_count : 1;
        /* The caller uses one slot for the current batch and, with pinned memory, one for the next, which is being
         * copied. With threads there are twice as many, so that the threads need not wait for the caller. */
        r->depth = ahead + (r->pinned ? 2 : 1) * (threads ? 2 : 1);
        reset_threads(r);
        bool ok = allocate_slots(c, r) && allocate_builders(c, r);
        if (ok && !start_threads(r))
                ok = lg__fail(c, LG_ERR_MEMORY, "lg_loader_open: the system gave %d of %d threads", r->started,
                              r->thread_count);
        if (ok)
                return r;
        lg__batch_ring_free(c, r);
        return NULL;
}

static void free_memory(lg_ctx *c, lg__batch_ring *r)
{
        lg__device *d = r->pinned ? r->device : NULL;
        for (int i = 0; r->slots && !r->in_place && i < r->depth; i++) {
                for (int p = 0; p < r->plan->parts; p++) {
                        void *data = r->slots[i].batch.data[p];
                        if (!d)
                                lg__free(c, data, lg__part_bytes(r->plan, p) + 1);
                        else if (data)
                                d->api->unpin(d->queue, data);
                }
        }
        lg__free(c, r->slots, (size_t)r->depth * sizeof *r->slots);
        for (int i = 0; i < r->builders_begun; i++)
                lg__batch_builder_free(&r->builders[i], c, r->plan);
        lg__free(c, r->builders, (size_t)r->builder_count * sizeof *r->builders);
}

void lg__batch_ring_free(lg_ctx *c, lg__batch_ring *r)
{
        if (!r)
                return;
        if (lg__batch_ring_lost(r))
                reset_threads(r);
        pthread_mutex_lock(&r->lock);
        r->quit = true;
        pthread_cond_broadcast(&r->work);
        pthread_mutex_unlock(&r->lock);
        for (int i = 0; i < r->started; i++)
                pthread_join(r->threads[i], NULL);
        lg__batch_ring_drop_copies(r);
        free_memory(c, r);
        pthread_cond_destroy(&r->batch_done);
        pthread_cond_destroy(&r->work);
        pthread_mutex_destroy(&r->lock);
        lg__free(c, r, sizeof *r);
}

/* ---- epochs and batches ---- */

void lg__batch_ring_start(lg__batch_ring *r, int64_t first)
{
        pthread_mutex_lock(&r->lock);
        r->next = r->released = first;
        r->end = r->plan->batches;
        for (int i = 0; i < r->depth; i++)
                r->slots[i].ready = -1;
        r->stopped = false;
        pthread_cond_broadcast(&r->work);
        pthread_mutex_unlock(&r->lock);
}

void lg__batch_ring_stop(lg__batch_ring *r)
{
        lg__batch_ring_drop_copies(r);
        if (lg__batch_ring_lost(r)) {
                reset_threads(r);
                if (!start_threads(r))
                        r->thread_count = r->started;
        }
        pthread_mutex_lock(&r->lock);
        r->stopped = true;
        while (r->busy)
                pthread_cond_wait(&r->batch_done, &r->lock);
        pthread_mutex_unlock(&r->lock);
}

bool lg__batch_ring_ready(lg__batch_ring *r, int64_t b)
{
        pthread_mutex_lock(&r->lock);
        const bool ready = slot_of(r, b)->ready == b || (!r->thread_count && b < r->end);
        pthread_mutex_unlock(&r->lock);
        return ready;
}

int lg__batch_ring_threads(const lg__batch_ring *r)
{
        return r->thread_count;
}

lg__batch_slot *lg__batch_ring_wait(lg__batch_ring *r, int64_t b)
{
        lg__batch_slot *s = slot_of(r, b);
        pthread_mutex_lock(&r->lock);
        const bool ended = b >= r->end;
        while (r->thread_count && !ended && s->ready != b)
                pthread_cond_wait(&r->batch_done, &r->lock);
        pthread_mutex_unlock(&r->lock);
        if (ended) {
                s->batch.count = 0;
                s->batch.code = LG_ERR_NONE;
        } else if (r->in_place) {
                s->batch.count = lg__batch_places(r->plan, b).count;
                if (!allocate_parts(r, s))
                        return NULL;
                for (int p = 0; p < r->plan->parts; p++)
                        s->batch.data[p] = s->parts[p]->data;
        }
        if (!ended && s->ready != b) { /* no thread has made the batch, because there are no threads */
                lg__batch_build(r->plan, r->builders, b, &s->batch);
                record_batch(r, b);
        }
        return s;
}

bool lg__batch_ring_release(lg__batch_ring *r, int64_t b)
{
        if (r->released > b)
                return true;
        if (!end_copy(r, slot_of(r, b)))
                return false;
        pthread_mutex_lock(&r->lock);
        r->released = b + 1;
        pthread_cond_broadcast(&r->work);
        pthread_mutex_unlock(&r->lock);
        return true;
}
