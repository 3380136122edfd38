/* tensor.c - tensor handles: creation, release, and queries of shape, dtype and device. */
#include <math.h>
#include <string.h>
#include "tensor/tensor.h"

/* Number of freed tensor records that wait in a queue before reuse, so that uses of freed tensors are detected. */
#define LATE 1024

static lg_tensor *take_record(lg_ctx *c)
{
        lg_tensor *t = c->dead;
        if (c->dead_count >= LATE) {
                c->dead = t->next_dead;
                c->dead_count--;
        } else if (!(t = lg__alloc_unset(c, sizeof *t))) {
                return NULL;
        }
        memset(t, 0, offsetof(lg_tensor, at));
        return t;
}

static void bury(lg_tensor *t)
{
        lg_ctx *c = t->ctx;
        t->next_dead = NULL;
        if (c->dead_count++)
                c->dead_tail->next_dead = t;
        else
                c->dead = t;
        c->dead_tail = t;
}

lg_tensor *lg__tensor_new(lg_ctx *c, lg__storage *s, const lg__layout *at)
{
        lg_tensor *t = c->scope ? take_record(c) : NULL; /* no scope: the context is being closed */
        if (!t)
                return NULL;
        t->live = LG__LIVE;
        t->ctx = c;
        t->serial = ++c->sequence;
        t->storage = lg__storage_ref(s);
        lg__layout_copy(&t->at, at);
        lg__tensor_disown(t);
        c->live_count++;
        if (!c->scope->parent)
                lg__scope_outermost(c);
        return t;
}

lg_tensor *lg__tensor_on(lg__device *d, const lg__layout *at)
{
        lg__storage *s = lg__storage_new(d, (size_t)lg__layout_numel(at) * lg__dtype_bytes(at->dtype));
        if (!s)
                return NULL;
        lg_tensor *t = lg__tensor_new(d->cache.ctx, s, at);
        lg__storage_unref(s);
        if (t && (at->shape.ndim == 0 || at->strides[at->shape.ndim - 1] == 0))
                lg__layout_contiguous(&t->at);
        return t;
}

lg_tensor *lg__tensor_laid(lg_ctx *c, lg_device device, const lg__layout *at)
{
        lg__device *d = lg__device_get(c, device);
        return d ? lg__tensor_on(d, at) : NULL;
}

lg_tensor *lg__tensor_empty(lg_ctx *c, lg_device device, lg_dtype dtype, lg_shape shape)
{
        return lg__tensor_laid(c, device, &(lg__layout){.dtype = dtype, .shape = shape});
}

lg_tensor *lg__tensor_beside(const lg_tensor *t)
{
        lg__layout at;
        lg__layout_copy(&at, &t->at);
        at.offset = 0;
        if (lg__layout_is_contiguous(&t->at) || !lg__layout_is_dense(&t->at))
                lg__layout_contiguous(&at);
        return lg__tensor_on(t->storage->device, &at);
}

lg_tensor *lg__tensor_like(const lg_tensor *t)
{
        return lg__tensor_empty(t->ctx, t->storage->device->id, t->at.dtype, t->at.shape);
}

void lg__tensor_release(lg_tensor *t)
{
        if (!t || t->live != LG__LIVE)
                return;
        t->live = LG__DEAD; /* set first: release functions called below must see a freed tensor */
        lg__link_remove(&t->link);
        t->ctx->live_count--;
        if (t->node)
                t->ctx->up->leave_node(t);
        lg__storage_unref(t->storage);
        t->storage = NULL;
        bury(t);
}

lg_ctx *lg__ctx_of(const lg_tensor *t)
{
        return lg__is_address(t) ? t->ctx : NULL;
}

bool lg__in_context(lg_ctx *c, const lg_tensor *t, const char *op, const char *argument)
{
        if (t && !lg__is_address(t))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is the number %d, not a tensor", op, argument,
                                (int)(intptr_t)t);
        if (!t || t->ctx == c)
                return true;
        return lg__fail(c->error ? t->ctx : c, LG_ERR_ARGUMENT, "%s: %s belongs to another context", op, argument);
}

bool lg__check(const lg_tensor *t, const char *op, const char *argument)
{
        if (!lg__is_address(t))
                return false;
        if (t->live != LG__LIVE) {
                lg__fail(t->ctx, LG_ERR_STATE,
                         "%s: %s was freed: by the end of its scope (lg_escape() or lg_keep() it before, or make it "
                         "outside), by "
                         "lg_free(), or, if it is a gradient, by a later call",
                         op, argument);
                return false;
        }
        return !t->ctx->error;
}

/* ---- queries ---- */

static bool alive(const lg_tensor *t)
{
        return t && t->live == LG__LIVE;
}

lg_shape lg_shape_of(const lg_tensor *t)
{
        lg_shape s = {.ndim = alive(t) ? t->at.shape.ndim : 0};
        for (int i = 0; i < s.ndim; i++)
                s.size[i] = t->at.shape.size[i];
        return s;
}

int lg_ndim_of(const lg_tensor *t)
{
        return alive(t) ? t->at.shape.ndim : 0;
}

static int own_dim(const lg_tensor *t, int dim)
{
        int ndim = lg_ndim_of(t);
        dim = dim < 0 ? dim + ndim : dim;
        return dim >= 0 && dim < ndim ? dim : -1;
}

int64_t lg_size_of(const lg_tensor *t, int dim)
{
        int i = own_dim(t, dim);
        return i < 0 ? -1 : t->at.shape.size[i];
}

int64_t lg_stride_of(const lg_tensor *t, int dim)
{
        int i = own_dim(t, dim);
        return i < 0 ? 0 : t->at.strides[i];
}

int64_t lg_numel(const lg_tensor *t)
{
        return alive(t) ? lg__shape_numel(t->at.shape) : 0;
}

lg_dtype lg_dtype_of(const lg_tensor *t)
{
        return alive(t) ? t->at.dtype : LG_DTYPE_NONE;
}

lg_device lg_device_of(const lg_tensor *t)
{
        return alive(t) ? t->storage->device->id : LG_NO_DEVICE;
}

lg_ctx *lg_ctx_of(const lg_tensor *t)
{
        return alive(t) ? t->ctx : NULL;
}

bool lg_is_contiguous(const lg_tensor *t)
{
        return alive(t) && lg__layout_is_contiguous(&t->at);
}
