/* create.c - creates tensors: constants, ranges, and tensors from host memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tensor/tensor.h"

bool lg__take_like(const lg_tensor *x, const char *op, const lg_create_options *options, lg_create_options *ret)
{
        if (!lg__check(x, op, "x") || !lg__take(x->ctx, op, options, ret, sizeof *ret))
                return false;
        if (!ret->dtype)
                ret->dtype = x->at.dtype;
        if (!ret->device.type)
                ret->device = x->storage->device->id;
        return true;
}

bool lg__may_create(lg_ctx *c, const char *op, lg_shape shape, const lg_create_options *o)
{
        if (o->dtype && lg_dtype_size(o->dtype) == 0)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %d is no dtype", op, (int)o->dtype);
        if (!lg__shape_valid(c, op, shape))
                return false;
        return !o->requires_grad || !o->dtype || lg__dtype_float(o->dtype) ||
               lg__fail(c, LG_ERR_DTYPE, "%s: requires_grad with dtype %s; only floats have gradients", op,
                        lg_dtype_name(o->dtype));
}

lg_tensor *lg__create(lg_ctx *c, const char *op, lg_shape shape, const lg_create_options *o)
{
        return lg__may_create(c, op, shape, o) ? lg__tensor_empty(c, o->device, o->dtype ? o->dtype : LG_F32, shape)
                                               : NULL;
}

lg_tensor *lg__created(lg_tensor *t, bool ok, bool requires_grad)
{
        if (t && ok && (!requires_grad || t->ctx->up->leaf_node(t)))
                return t;
        lg__tensor_release(t);
        return NULL;
}

/* ---- constants ---- */

lg_tensor *lg_empty_with(lg_ctx *c, lg_shape shape, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take(c, "lg_empty", options, &o, sizeof o)
                       ? lg__created(lg__create(c, "lg_empty", shape, &o), true, o.requires_grad)
                       : NULL;
}

lg_tensor *lg_empty_like_with(lg_tensor *x, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take_like(x, "lg_empty_like", options, &o)
                       ? lg__created(lg__create(x->ctx, "lg_empty_like", x->at.shape, &o), true, o.requires_grad)
                       : NULL;
}

static lg_tensor *filled(lg_ctx *c, const char *op, double value, lg_shape shape, const lg_create_options *o)
{
        lg_tensor *t = lg__create(c, op, shape, o);
        return t ? lg__created(t, lg__fill_values(t, value, op), o->requires_grad) : NULL;
}

static lg_tensor *full(lg_ctx *c, const char *op, double value, lg_shape shape, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take(c, op, options, &o, sizeof o) ? filled(c, op, value, shape, &o) : NULL;
}

static lg_tensor *full_like(const lg_tensor *x, const char *op, double value, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take_like(x, op, options, &o) ? filled(x->ctx, op, value, x->at.shape, &o) : NULL;
}

lg_tensor *lg_zeros_with(lg_ctx *c, lg_shape shape, const lg_create_options *options)
{
        return full(c, "lg_zeros", 0, shape, options);
}

lg_tensor *lg_ones_with(lg_ctx *c, lg_shape shape, const lg_create_options *options)
{
        return full(c, "lg_ones", 1, shape, options);
}

lg_tensor *lg_full_with(lg_ctx *c, lg_shape shape, double value, const lg_create_options *options)
{
        return full(c, "lg_full", value, shape, options);
}

lg_tensor *lg_scalar_with(lg_ctx *c, double value, const lg_create_options *options)
{
        return full(c, "lg_scalar", value, LG_SHAPE_0D, options);
}

lg_tensor *lg_zeros_like_with(lg_tensor *x, const lg_create_options *options)
{
        return full_like(x, "lg_zeros_like", 0, options);
}

lg_tensor *lg_ones_like_with(lg_tensor *x, const lg_create_options *options)
{
        return full_like(x, "lg_ones_like", 1, options);
}

lg_tensor *lg_full_like_with(lg_tensor *x, double value, const lg_create_options *options)
{
        return full_like(x, "lg_full_like", value, options);
}

/* Returns a 1-d view of n elements of t's storage, from element `first`, `step` elements apart. */
static lg_tensor *line_of(const lg_tensor *t, int64_t first, int64_t n, int64_t step)
{
        lg__layout at = {.dtype = t->at.dtype, .shape = LG_SHAPE(n), .strides = {step}, .offset = first};
        return lg__tensor_new(t->ctx, t->storage, &at);
}

lg_tensor *lg_eye_with(lg_ctx *c, int64_t rows, int64_t columns, const lg_create_options *options)
{
        lg_tensor *t = full(c, "lg_eye", 0, LG_SHAPE(rows, columns), options);
        lg_tensor *diagonal = t ? line_of(t, 0, rows < columns ? rows : columns, columns + 1) : NULL;
        bool ok = diagonal && lg__fill_values(diagonal, 1, "lg_eye");
        lg__tensor_release(diagonal);
        return t ? lg__created(t, ok, false) : NULL;
}

/* ---- ranges ---- */

static bool whole(double x)
{
        return x == floor(x);
}

/* Returns the number of elements of a range of integers from start to stop, without stop; in integers, because a
 * quotient of doubles may be rounded. Returns -1 and sets an error if a value is above 2^53 or out of dtype's range. */
static int64_t count_whole(lg_ctx *c, double start, double stop, double step, lg_dtype dtype)
{
        const double most = 0x1p53, far = 0x1p55; /* a stop beyond `far` counts as `far` */
        double end = step > 0 ? ceil(stop) : floor(stop);
        if (whole(start) && whole(step) && fabs(start) <= most && fabs(step) <= most) {
                int64_t a = (int64_t)start, by = (int64_t)step, z = (int64_t)fmax(-far, fmin(end, far));
                if (by > 0 ? z <= a : z >= a)
                        return 0;
                int64_t n = (z - a + by - (by > 0 ? 1 : -1)) / by, last = a + (n - 1) * by;
                bool held = lg__dtype_holds(c, "lg_arange", dtype, start) &&
                            lg__dtype_holds(c, "lg_arange", dtype, (double)last);
                if (llabs(last) <= (int64_t)most)
                        return held ? n : -1;
        }
        lg__fail(c, LG_ERR_ARGUMENT,
                 "lg_arange: from %g to %g by %g as %s: the values must be whole numbers and at most 2^53; see .dtype",
                 start, stop, step, lg_dtype_name(dtype));
        return -1;
}

/* Writes n values, start, start + step, ..., to t from element `first` on. */
static bool fill_range(lg_tensor *t, int64_t first, int64_t n, double start, double step, const char *op)
{
        char *out = lg__data(t);
        if (n == 0)
                return true;
        out += first * (int64_t)lg__dtype_bytes(t->at.dtype);
        lg_arange_args a = {n, t->at.dtype, out, start, step};
        return LG__RUN(t->storage->device, op, arange, &a);
}

lg_tensor *lg_arange_with(lg_ctx *c, double start, double stop, double step, const lg_create_options *options)
{
        lg_create_options o;
        if (!lg__take(c, "lg_arange", options, &o, sizeof o))
                return NULL;
        if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_arange: from %g to %g by %g has no end", start, stop, step);
        double n = fmax(0, ceil((stop - start) / step));
        if (n >= 0x1p53)
                return lg__fail(c, LG_ERR_SHAPE, "lg_arange: from %g to %g by %g has too many elements", start, stop,
                                step);
        if (!o.dtype)
                o.dtype = whole(start) && whole(stop) && whole(step) ? LG_I64 : LG_F32;
        int64_t count = lg__dtype_float(o.dtype) ? (int64_t)n : count_whole(c, start, stop, step, o.dtype);
        lg_tensor *t = count < 0 ? NULL : lg__create(c, "lg_arange", LG_SHAPE(count), &o);
        if (!t)
                return NULL;
        return lg__created(t, fill_range(t, 0, count, start, step, "lg_arange"), o.requires_grad);
}

/* Fills the n elements of t from `first` to its end with ..., stop - step, stop: computed backwards, then reversed. */
static bool fill_back(lg_tensor *t, int64_t first, int64_t n, double stop, double step)
{
        lg_tensor *order = lg__tensor_empty(t->ctx, t->storage->device->id, t->at.dtype, LG_SHAPE(n)), *from, *to;
        from = order ? line_of(order, n - 1, n, -1) : NULL;
        to = from ? line_of(t, first, n, 1) : NULL;
        bool ok = to && fill_range(order, 0, n, stop, -step, "lg_linspace") && lg__copy_values(to, from, "lg_linspace");
        lg__tensor_release(to);
        lg__tensor_release(from);
        lg__tensor_release(order);
        return ok;
}

lg_tensor *lg_linspace_with(lg_ctx *c, double start, double stop, int64_t count, const lg_create_options *options)
{
        lg_create_options o;
        if (!lg__take(c, "lg_linspace", options, &o, sizeof o))
                return NULL;
        if (!isfinite(start) || !isfinite(stop))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_linspace: from %g to %g: the ends are not finite", start, stop);
        if (count < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_linspace: count is %lld, below 0", (long long)count);
        if (lg_dtype_size(o.dtype) && !lg__dtype_float(o.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "lg_linspace: dtype %s; its values are floats",
                                lg_dtype_name(o.dtype));
        lg_tensor *t = lg__create(c, "lg_linspace", LG_SHAPE(count), &o);
        if (!t)
                return NULL;
        /* Each half is computed from its own end, so that both ends are exact. stop - start may be infinite. */
        double steps = (double)(count - 1), whole_way = stop - start;
        double step = count < 3 ? 0 : isfinite(whole_way) ? whole_way / steps : stop / steps - start / steps;
        int64_t half = count == 1 ? 1 : count / 2;
        bool ok = fill_range(t, 0, half, start, step, "lg_linspace") &&
                  (half == count || fill_back(t, half, count - half, stop, step));
        return lg__created(t, ok, o.requires_grad);
}

/* ---- tensors from the caller's memory ---- */

/* Returns the dtype of the elements at `data`: `typed`, from the pointer's type or, for void *, `given`, from .dtype.
 * Returns LG_DTYPE_NONE and sets an error if both are none. */
static lg_dtype memory_dtype(lg_ctx *c, const char *op, const void *data, lg_dtype typed, lg_dtype given)
{
        if (!data && !typed && !given)
                return LG_F32; /* valid for an empty tensor; otherwise data is reported as NULL */
        if (!typed && !given)
                lg__fail(c, LG_ERR_DTYPE, "%s: data is a void *, which has no dtype; give .dtype = LG_F32 or another",
                         op);
        return typed ? typed : given;
}

lg_tensor *lg_from_with(lg_ctx *c, const void *data, lg_dtype memory, lg_shape shape, const lg_create_options *options)
{
        lg_create_options o;
        if (!lg__take(c, "lg_from", options, &o, sizeof o) ||
            !(memory = memory_dtype(c, "lg_from", data, memory, o.dtype)))
                return NULL;
        o.dtype = o.dtype ? o.dtype : memory;
        lg_tensor *t = lg__create(c, "lg_from", shape, &o);
        size_t bytes = t ? (size_t)lg__shape_numel(shape) * lg__dtype_bytes(memory) : 0;
        if (t && bytes && !data) {
                lg__fail(c, LG_ERR_ARGUMENT, "lg_from: data is NULL");
                return lg__created(t, false, false);
        }
        bool ok = t != NULL;
        if (ok && (o.dtype == LG_BOOL || o.dtype != memory))
                ok = lg__write_values(t, "lg_from", data, memory, bytes);
        else if (ok && bytes)
                ok = lg__upload(t->storage->device, lg__data(t), data, bytes, "lg_from");
        return lg__created(t, ok, o.requires_grad);
}

static lg_tensor *borrow(lg_ctx *c, void *data, lg_dtype memory, lg_shape shape, const lg_create_options *options,
                         void (*release)(void *user), void *user)
{
        lg_create_options o;
        if (!lg__take(c, "lg_borrow", options, &o, sizeof o) || !lg__unrecorded(c, "lg_borrow") ||
            !(memory = memory_dtype(c, "lg_borrow", data, memory, o.dtype)) || !lg__shape_valid(c, "lg_borrow", shape))
                return NULL;
        lg_device device = o.device.type ? o.device : lg_cpu();
        lg__layout at = {.dtype = memory, .shape = shape};
        if (device.type != LG_DEVICE_CPU)
                return lg__fail(c, LG_ERR_DEVICE,
                                "lg_borrow: host memory is on the cpu, not on %s; lg_to() copies it there",
                                lg_device_name(device));
        if (!lg__device_get(c, device))
                return NULL;
        if (lg_dtype_size(memory) == 0)
                return lg__fail(c, LG_ERR_DTYPE, "lg_borrow: %d is no dtype", (int)memory);
        if (o.dtype && o.dtype != memory)
                return lg__fail(c, LG_ERR_DTYPE, "lg_borrow: data is %s, but .dtype is %s; lg_from() converts a copy",
                                lg_dtype_name(memory), lg_dtype_name(o.dtype));
        if (o.requires_grad && !lg__dtype_float(memory))
                return lg__fail(c, LG_ERR_DTYPE, "lg_borrow: requires_grad with dtype %s; only floats have gradients",
                                lg_dtype_name(memory));
        size_t bytes = (size_t)lg__shape_numel(shape) * lg__dtype_bytes(memory);
        if (!data && bytes)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_borrow: data is NULL");
        if ((uintptr_t)data % lg__dtype_bytes(memory))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_borrow: data is not aligned for %s", lg_dtype_name(memory));
        lg__layout_contiguous(&at);
        lg__storage *s = lg__storage_new(c->cpu, 0);
        if (!s)
                return NULL;
        s->data = data;
        s->bytes = bytes;
        lg_tensor *t = lg__created(lg__tensor_new(c, s, &at), true, o.requires_grad);
        if (t) { /* on failure, lg_borrow_with() calls release */
                s->release = release;
                s->user = user;
        }
        lg__storage_unref(s);
        return t;
}

lg_tensor *lg_borrow_with(lg_ctx *c, void *data, lg_dtype memory, void (*release)(void *user), void *user,
                          lg_shape shape, const lg_create_options *options)
{
        lg_tensor *t = borrow(c, data, memory, shape, options, release, user);
        if (!t)
                lg__release(c, release, user);
        return t;
}
