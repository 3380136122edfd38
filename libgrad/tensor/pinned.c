/* pinned.c - pinned host memory, from which a device copies asynchronously. */
#include "tensor/tensor.h"

static void release(void *user)
{
        lg__storage *s = user;
        const lg_device_api *api = s->pinned_for->api;
        lg__storage_finish_copies(s);
        if (s->data)
                api->unpin(s->pinned_for->queue, s->data);
}

/* Returns an uninitialised contiguous tensor of like's dtype and shape in host memory pinned for device d. */
static lg_tensor *pinned_empty(lg_ctx *c, lg__device *d, const lg_tensor *like)
{
        lg__layout at = {.dtype = like->at.dtype, .shape = like->at.shape};
        lg__layout_contiguous(&at);
        size_t bytes = (size_t)lg__shape_numel(at.shape) * lg__dtype_bytes(at.dtype);
        lg__storage *s = lg__storage_new(c->cpu, 0);
        if (!s)
                return NULL;
        *s = (lg__storage){.ctx = c, .device = c->cpu, .bytes = bytes, .refs = 1, .pinned_for = d};
        s->release = release;
        s->user = s;
        s->data = bytes ? d->api->pin(d->queue, bytes) : NULL;
        lg_tensor *t = NULL;
        if (s->data || !bytes)
                t = lg__tensor_new(c, s, &at);
        else
                lg__fail(c, LG_ERR_MEMORY, "lg_pin: the system gives no %zu bytes of pinned memory for %s", bytes,
                         lg_device_name(d->id));
        lg__storage_unref(s);
        return t;
}

lg_tensor *lg_pin(lg_tensor *x, lg_device device)
{
        if (!lg__check(x, "lg_pin", "x"))
                return NULL;
        lg__device *d = lg__device_get(x->ctx, device);
        if (!d || !d->api->pin || x->storage->pinned_for == d)
                return d ? x : NULL;
        if (x->storage->device->id.type != LG_DEVICE_CPU)
                return lg__fail(x->ctx, LG_ERR_DEVICE, "lg_pin: x is %s; what is pinned is memory of the cpu",
                                lg__tensor_text(x).s);
        if (x->node)
                return lg__fail(x->ctx, LG_ERR_STATE, "lg_pin: x needs a gradient; pin data, or lg_detach() it first");
        lg_tensor *t = pinned_empty(x->ctx, d, x);
        return lg__created(t, t && lg__copy_values(t, x, "lg_pin"), false);
}

bool lg__pinned_upload(lg__device *d, void *to, lg__storage *s, const void *from, size_t bytes, const char *op)
{
        uint64_t mark = 0;
        bool ok = d->api->copy_async(d->queue, to, from, bytes, &mark);
        if (mark)
                s->mark = mark;
        return lg__kernel_done(d, op, ok && d->api->stream_wait(d->queue, mark));
}

void lg__storage_finish_copies(lg__storage *s)
{
        if (!s->mark)
                return;
        lg__device *d = s->pinned_for;
        lg__kernel_done(d, "lg_pin", d->api->event_query(d->queue, s->mark, true));
        s->mark = 0;
}
