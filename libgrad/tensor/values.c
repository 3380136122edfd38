/* values.c - copies values between layouts, dtypes and devices, and to and from the host. */
#include <math.h>
#include <string.h>
#include "core/observer.h"
#include "tensor/tensor.h"

/* Copies values on one device between any layouts and dtypes; both tensors have the same shape. */
static bool copy_within(lg_tensor *to, const lg_tensor *from, const char *op)
{
        lg_copy_args a = {.ndim = to->at.shape.ndim,
                          .out_dtype = to->at.dtype,
                          .in_dtype = from->at.dtype,
                          .out = lg__data(to),
                          .in = lg__data(from)};
        memcpy(a.shape, to->at.shape.size, sizeof a.shape);
        memcpy(a.out_strides, to->at.strides, sizeof a.out_strides);
        memcpy(a.in_strides, from->at.strides, sizeof a.in_strides);
        return LG__RUN(to->storage->device, op, copy, &a);
}

static bool is_cpu(const lg_tensor *t)
{
        return t->storage->device->id.type == LG_DEVICE_CPU;
}

bool lg__upload(lg__device *d, void *to, const void *from, size_t bytes, const char *op)
{
        lg_ctx *c = d->cache.ctx;
        lg__frame span;
        lg__span_begin(c, &span, "copy from host", NULL, NULL);
        LG__NOTIFY(c, copied, d, c->cpu, bytes);
        const bool ok =
                (!c->tape || lg__tape_upload(d, op, to, from, bytes)) && d->api->upload(d->queue, to, from, bytes);
        lg__span_end(c, &span);
        return lg__kernel_done(d, op, ok);
}

/* Copies contiguous bytes between two devices; through the host if neither is the CPU and their types differ. */
static bool copy_across(lg_tensor *to, const lg_tensor *from, const char *op)
{
        lg__device *d = to->storage->device, *s = from->storage->device;
        size_t bytes = (size_t)lg__shape_numel(to->at.shape) * lg__dtype_bytes(to->at.dtype);
        if (to->ctx->tape)
                return lg__fail(
                        to->ctx, LG_ERR_STATE,
                        "%s: copies from %s to %s in the function that lg_recorder_run runs; a recorded step computes "
                        "on one device",
                        op, lg_device_name(s->id), lg_device_name(d->id));
        LG__NOTIFY(to->ctx, copied, d, s, bytes);
        if (from->storage->pinned_for == d)
                return lg__pinned_upload(d, lg__data(to), from->storage, lg__data(from), bytes, op);
        if (d->api == s->api && d->api->copy_between) {
                bool ok = d->api->copy_between(d->queue, lg__data(to), s->queue, lg__data(from), bytes);
                bool sent = lg__kernel_done(s, op, true);
                return lg__kernel_done(d, op, ok) && sent;
        }
        if (is_cpu(from))
                return lg__kernel_done(d, op, d->api->upload(d->queue, lg__data(to), lg__data(from), bytes));
        if (is_cpu(to))
                return lg__kernel_done(s, op, s->api->download(s->queue, lg__data(to), lg__data(from), bytes));
        lg__block *host = lg__cache_get(&to->ctx->cpu->cache, bytes);
        bool ok = host && lg__kernel_done(s, op, s->api->download(s->queue, host->p, lg__data(from), bytes)) &&
                  lg__kernel_done(d, op, d->api->upload(d->queue, lg__data(to), host->p, bytes));
        lg__cache_put(host);
        return ok;
}

/* Returns an uninitialised contiguous tensor of t's shape on t's device, with this dtype. */
static lg_tensor *stand_in(const lg_tensor *t, lg_dtype dtype)
{
        return lg__tensor_empty(t->ctx, t->storage->device->id, dtype, t->at.shape);
}

static bool copy_by_stand_ins(lg_tensor *to, const lg_tensor *from, const char *op)
{
        lg_dtype dtype = from->at.dtype;
        lg_tensor *near = NULL, *far = NULL;
        bool ok = true;
        if (!lg__layout_is_contiguous(&from->at)) {
                near = stand_in(from, dtype);
                ok = near && copy_within(near, from, op);
        }
        if (ok && (to->at.dtype != dtype || !lg__layout_is_contiguous(&to->at))) {
                far = stand_in(to, dtype);
                ok = far != NULL;
        }
        ok = ok && copy_across(far ? far : to, near ? near : from, op) && (!far || copy_within(to, far, op));
        lg__tensor_release(near);
        lg__tensor_release(far);
        return ok;
}

bool lg__copy_values(lg_tensor *to, const lg_tensor *from, const char *op)
{
        if (lg__shape_numel(to->at.shape) == 0)
                return true;
        return to->storage->device == from->storage->device ? copy_within(to, from, op)
                                                            : copy_by_stand_ins(to, from, op);
}

bool lg__fill_values(lg_tensor *t, double value, const char *op)
{
        lg_fill_args a = {.ndim = t->at.shape.ndim, .dtype = t->at.dtype, .out = lg__data(t), .real = value};
        if (!lg__dtype_holds(t->ctx, op, t->at.dtype, value))
                return false;
        if (lg__shape_numel(t->at.shape) == 0)
                return true;
        memcpy(a.shape, t->at.shape.size, sizeof a.shape);
        memcpy(a.strides, t->at.strides, sizeof a.strides);
        if (!lg__dtype_float(t->at.dtype))
                a.integer = t->at.dtype == LG_BOOL ? value != 0 : (int64_t)value;
        return LG__RUN(t->storage->device, op, fill, &a);
}

lg_tensor *lg__clone_values(const lg_tensor *t, lg_device device, lg_dtype dtype)
{
        lg_tensor *copy = lg__tensor_empty(t->ctx, device, dtype, t->at.shape);
        return lg__created(copy, copy && lg__copy_values(copy, t, "copy"), false);
}

/* ---- copies to and from the host ---- */

/* Returns a handle on the caller's host memory with t's shape, to be released before the calling function returns. */
static lg_tensor *over_host(const lg_tensor *t, void *data, lg_dtype dtype)
{
        lg__layout at = {.dtype = dtype, .shape = t->at.shape};
        lg__layout_contiguous(&at);
        lg__storage *s = lg__storage_new(t->ctx->cpu, 0);
        if (!s)
                return NULL;
        s->data = data;
        lg_tensor *host = lg__tensor_new(t->ctx, s, &at);
        lg__storage_unref(s);
        return host;
}

static bool check_host(const lg_tensor *t, const char *op, const void *data, lg_dtype dtype, size_t bytes)
{
        lg_ctx *c = t->ctx;
        size_t needed = (size_t)lg__shape_numel(t->at.shape) * lg_dtype_size(dtype);
        if (lg_dtype_size(dtype) == 0)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %d is no dtype", op, (int)dtype);
        if (bytes != needed)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s has %zu bytes as %s, but %zu bytes were given", op,
                                lg__tensor_text(t).s, needed, lg_dtype_name(dtype), bytes);
        if (!data && needed)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: data is NULL", op);
        if ((uintptr_t)data % lg_dtype_size(dtype))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: data is not aligned for %s", op, lg_dtype_name(dtype));
        return true;
}

/* Copies t to host memory, by one transfer and one wait if the device can do so for the only element of t. */
static bool download(const lg_tensor *t, void *data, lg_dtype dtype, bool item)
{
        lg__device *d = t->storage->device;
        if (item && d->api->item) {
                LG__NOTIFY(t->ctx, copied, t->ctx->cpu, d, lg__dtype_bytes(t->at.dtype));
                return lg__device_item(d, lg__data(t), t->at.dtype, data, dtype);
        }
        lg_tensor *host = over_host(t, data, dtype);
        bool ok = host && lg__copy_values(host, t, "lg_read") && lg__device_wait(d);
        lg__tensor_release(host);
        return ok;
}

/* Copies t to host memory even if the context has an error, which is kept. Sets a new error only if there was none. */
static bool read_values(const lg_tensor *t, void *data, lg_dtype dtype, bool item)
{
        lg_ctx *c = t->ctx;
        lg_error_code was = c->error;
        c->error = LG_ERR_NONE;
        char message[sizeof c->message];
        memcpy(message, c->message, sizeof message);
        lg__frame span;
        lg__span_begin(c, &span, "copy to host", NULL, NULL);
        bool ok = download(t, data, dtype, item);
        lg__span_end(c, &span);
        if (was) {
                memcpy(c->message, message, sizeof message);
                c->error = was;
        }
        return ok;
}

/* Returns whether t is live and may be read; else sets an error. Reading is allowed while the context has an error. */
static bool alive_or_error(const lg_tensor *t, const char *op)
{
        if (!t || t->live != LG__LIVE)
                lg__check(t, op, "x");
        else if (t->ctx->unread)
                return lg__fail(t->ctx, LG_ERR_STATE, "%s: reads values on the host, which %s cannot record", op,
                                t->ctx->unread);
        return t && t->live == LG__LIVE;
}

bool lg_read(const lg_tensor *t, void *data, lg_dtype dtype, size_t bytes)
{
        if (!alive_or_error(t, "lg_read"))
                return false;
        return check_host(t, "lg_read", data, dtype, bytes) && read_values(t, data, dtype, false);
}

bool lg__write_values(lg_tensor *t, const char *op, const void *data, lg_dtype dtype, size_t bytes)
{
        if (!check_host(t, op, data, dtype, bytes))
                return false;
        /* Reads bool bytes as u8, so that any byte but 0 becomes 1. */
        const lg_dtype from = dtype == LG_BOOL && t->at.dtype == LG_BOOL ? LG_U8 : dtype;
        lg__frame span;
        lg__span_begin(t->ctx, &span, "copy from host", NULL, NULL);
        lg_tensor *host = t->ctx->run ? lg__tensor_empty(t->ctx, t->storage->device->id, from, t->at.shape)
                                      : over_host(t, (void *)(uintptr_t)data, from);
        bool ok = host && (!t->ctx->run || !bytes || lg__upload(t->storage->device, lg__data(host), data, bytes, op)) &&
                  lg__copy_values(t, host, op);
        lg__tensor_release(host);
        lg__span_end(t->ctx, &span);
        return ok;
}

static bool one_element(const lg_tensor *t)
{
        if (!alive_or_error(t, "lg_item"))
                return false;
        int64_t n = lg__shape_numel(t->at.shape);
        return n == 1 || lg__fail(t->ctx, LG_ERR_SHAPE, "lg_item: %s has %lld elements, not one", lg__tensor_text(t).s,
                                  (long long)n);
}

double lg_item(const lg_tensor *t)
{
        double value = NAN;
        return one_element(t) && read_values(t, &value, LG_F64, true) ? value : NAN;
}

int64_t lg_item_i64(const lg_tensor *t)
{
        int64_t value = 0;
        return one_element(t) && read_values(t, &value, LG_I64, true) ? value : 0;
}
