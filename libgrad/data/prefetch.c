/* prefetch.c - batches that are copied to a device ahead, from pinned memory. */
#include "loader.h"

bool lg__loader_prefetches(const lg_loader *l)
{
        return l->pool && l->device->api->copy_async;
}

void lg__loader_finish_copies(lg_loader *l)
{
        lg__device *d = l->device;
        for (int i = 0; lg__loader_prefetches(l) && i < 2; i++) {
                lg__prefetch *f = &l->prefetched[i];
                if (f->mark)
                        d->api->stream_wait(d->queue, f->mark); /* memory is freed in the order of the queue */
                if (f->mark > l->last_mark)
                        l->last_mark = f->mark;
                for (int p = 0; p < l->job.parts; p++)
                        lg__storage_unref(f->parts[p]);
                *f = (lg__prefetch){.index = -1};
        }
        if (l->last_mark)
                lg__kernel_done(d, "lg_loader_next", d->api->event_query(d->queue, l->last_mark, true));
        l->last_mark = 0;
}

static bool fetch(lg_loader *l, lg__prefetch *f, int part, const void *from)
{
        lg__device *d = l->device;
        lg__layout at = lg__loader_layout(l, part, &f->made);
        size_t bytes = (size_t)lg__shape_numel(at.shape) * lg__dtype_bytes(at.dtype);
        lg__storage *s = f->parts[part] = lg__storage_new(d, bytes);
        return s && (!bytes || lg__kernel_done(d, "lg_loader_next",
                                               d->api->copy_async(d->queue, s->data, from, bytes, &f->mark)));
}

/* Batch b is under way afterwards. */
static bool start(lg_loader *l, int64_t b, const lg__made *made)
{
        lg__prefetch *f = &l->prefetched[b % 2];
        f->made = *made;
        bool ok = true;
        for (int p = 0; ok && p < l->job.parts; p++)
                ok = fetch(l, f, p, made->data[p]);
        if (ok)
                f->index = b;
        else
                lg__loader_finish_copies(l); /* the other one, too: it is made again */
        return ok;
}

/* The batch whose turn it is. */
static bool start_now(lg_loader *l, int64_t b)
{
        if (l->prefetched[b % 2].index == b)
                return true;
        const lg__made *made = lg__loader_wait(l, b);
        if (!made || (made->code && !lg__loader_failed(l, made)))
                return false;
        return start(l, b, made);
}

/* The one after it, unless that waits for a thread. If it failed, or is behind the end, that is for its own turn. */
static bool start_ahead(lg_loader *l, int64_t b)
{
        if (b >= l->job.batches || l->prefetched[b % 2].index == b || !lg__worker_pool_ready(l->pool, b))
                return true;
        const lg__made *made = lg__loader_wait(l, b);
        return made && (made->code || !made->count || start(l, b, made));
}

static bool arrive(lg_loader *l, lg__prefetch *f, lg_batch *ret)
{
        bool ok = true;
        for (int p = 0; p < l->job.parts; p++) {
                lg__layout at = lg__loader_layout(l, p, &f->made);
                lg_tensor *t = ok ? lg__tensor_new(l->object.ctx, f->parts[p], &at) : NULL;
                lg__storage_unref(f->parts[p]);
                f->parts[p] = NULL;
                ok = ok && t;
                lg__loader_put(l, ret, p, t);
        }
        return ok;
}

bool lg__loader_take_prefetched(lg_loader *l, int64_t b, lg_batch *ret, int64_t *ret_count)
{
        lg__device *d = l->device;
        lg__prefetch *f = &l->prefetched[b % 2];
        if (l->last_mark && !lg__kernel_done(d, "lg_loader_next", d->api->event_query(d->queue, l->last_mark, true)))
                return false;
        l->last_mark = 0;
        if (b > 0)
                lg__worker_pool_done(l->pool, b - 1);
        if (!start_now(l, b) || (f->made.count && !start_ahead(l, b + 1)) ||
            (f->mark && !lg__kernel_done(d, "lg_loader_next", d->api->stream_wait(d->queue, f->mark))))
                return false;
        l->last_mark = f->mark;
        f->index = -1;
        f->mark = 0;
        *ret_count = f->made.count;
        return arrive(l, f, ret);
}
