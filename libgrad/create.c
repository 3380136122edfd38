/* create.c - new tensors: constants, ranges, host memory, random numbers. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "../kernels/philox.h"

/* An uninitialised tensor after the checks that every creation makes. */
static lg_tensor *create(lg_ctx *c, const char *op, lg_shaped o)
{
        if (!lg__ok(c))
                return NULL;
        lg_dtype dtype = o.dtype ? o.dtype : LG_F32;
        if (lg_dtype_size(dtype) == 0)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %d is no dtype", op, (int)dtype);
        if (!lg__shape_valid(c, op, o.shape))
                return NULL;
        if (o.requires_grad && !lg__dtype_float(dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: requires_grad with dtype %s; only floats have gradients", op,
                                lg_dtype_name(dtype));
        return lg__tensor_empty(c, o.device, dtype, o.shape);
}

/* Ends a creation: t if all went well and, where asked, as a leaf; else it is freed. */
static lg_tensor *created(lg_tensor *t, bool ok, bool requires_grad)
{
        if (t && ok && (!requires_grad || lg__leaf_node(t)))
                return t;
        lg__tensor_release(t);
        return NULL;
}

lg_tensor *lg_empty_(lg_ctx *c, lg_shaped o)
{
        return created(create(c, "lg_empty", o), true, o.requires_grad);
}

static lg_tensor *full(lg_ctx *c, const char *op, double value, lg_shaped o)
{
        lg_tensor *t = create(c, op, o);
        return created(t, t && lg__fill_values(t, value, op), o.requires_grad);
}

lg_tensor *lg_full_(lg_ctx *c, double value, lg_shaped o)
{
        return full(c, "lg_full", value, o);
}

lg_tensor *lg_scalar_(lg_ctx *c, lg_ranged o)
{
        lg_shaped s = {.dtype = o.dtype, .device = o.device, .requires_grad = o.requires_grad};
        return full(c, "lg_scalar", o.b, s);
}

/* ---- ranges
 * ------------------------------------------------------------------------------------------------------------ */

static bool whole(double x)
{
        return x == floor(x);
}

/* The number of elements below `stop` of whole numbers, worked out in integers: a quotient of doubles may round. Every
 * value must be one that a double tells from its neighbours, and in the range of the dtype. -1 and an error else. */
static int64_t count_whole(lg_ctx *c, double start, double stop, double step, lg_dtype dtype)
{
        const double most = 0x1p53, far = 0x1p55; /* no value up to `most` lies behind `far` */
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

lg_tensor *lg_arange_(lg_ctx *c, double start, double stop, lg_ranged o)
{
        double step = o.b;
        if (!lg__ok(c))
                return NULL;
        if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_arange: from %g to %g by %g has no end", start, stop, step);
        double n = fmax(0, ceil((stop - start) / step));
        if (n >= 0x1p53)
                return lg__fail(c, LG_ERR_SHAPE, "lg_arange: from %g to %g by %g has too many elements", start, stop,
                                step);
        lg_dtype dtype = o.dtype ? o.dtype : whole(start) && whole(stop) && whole(step) ? LG_I64 : LG_F32;
        int64_t count = lg__dtype_float(dtype) ? (int64_t)n : count_whole(c, start, stop, step, dtype);
        if (count < 0)
                return NULL;
        lg_shaped s = {.shape = LG_SHAPE(count), .dtype = dtype, .device = o.device};
        s.requires_grad = o.requires_grad;
        lg_tensor *t = create(c, "lg_arange", s);
        if (!t)
                return NULL;
        lg_arange_args a = {s.shape.size[0], dtype, lg__data(t), start, step};
        return created(t, a.n == 0 || LG__RUN(t->storage->device, "lg_arange", arange, &a), o.requires_grad);
}

lg_tensor *lg_from_(lg_ctx *c, const void *data, lg_shaped o)
{
        lg_tensor *t = create(c, "lg_from", o);
        size_t bytes = t ? (size_t)lg__shape_numel(o.shape) * lg__dtype_bytes(t->at.dtype) : 0;
        if (t && bytes && !data) {
                lg__fail(c, LG_ERR_ARGUMENT, "lg_from: data is NULL");
                return created(t, false, false);
        }
        lg__device *d = t ? t->storage->device : NULL;
        bool ok = t != NULL;
        if (ok && t->at.dtype == LG_BOOL)
                ok = lg__write_values(t, "lg_from", data, LG_BOOL, bytes);
        else if (ok && bytes)
                ok = lg__kernel_done(d, "lg_from", d->api->upload(d->queue, lg__data(t), data, bytes));
        return created(t, ok, o.requires_grad);
}

static lg_tensor *borrow(lg_ctx *c, void *data, lg_shaped o, void (*release)(void *user), void *user)
{
        lg_device device = o.device.type ? o.device : lg_cpu();
        lg__layout at = {.dtype = o.dtype ? o.dtype : LG_F32, .shape = o.shape};
        if (!lg__ok(c) || !lg__shape_valid(c, "lg_borrow", o.shape))
                return NULL;
        if (device.type != LG_DEVICE_CPU)
                return lg__fail(c, LG_ERR_DEVICE,
                                "lg_borrow: host memory is on the cpu, not on %s; lg_to() copies it there",
                                lg_device_name(device));
        if (!lg__device_get(c, device))
                return NULL;
        if (lg_dtype_size(at.dtype) == 0)
                return lg__fail(c, LG_ERR_DTYPE, "lg_borrow: %d is no dtype", (int)at.dtype);
        if (o.requires_grad && !lg__dtype_float(at.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "lg_borrow: requires_grad with dtype %s; only floats have gradients",
                                lg_dtype_name(at.dtype));
        size_t bytes = (size_t)lg__shape_numel(o.shape) * lg__dtype_bytes(at.dtype);
        if (!data && bytes)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_borrow: data is NULL");
        if ((uintptr_t)data % lg__dtype_bytes(at.dtype))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_borrow: data is not aligned for %s", lg_dtype_name(at.dtype));
        lg__layout_contiguous(&at);
        lg__storage *s = lg__storage_new(c->cpu, 0);
        if (!s)
                return NULL;
        s->data = data;
        s->bytes = bytes;
        lg_tensor *t = created(lg__tensor_new(c, s, &at), true, o.requires_grad);
        if (t) { /* only now: the caller of this function releases on failure */
                s->release = release;
                s->user = user;
        }
        lg__storage_unref(s);
        return t;
}

lg_tensor *lg_borrow_(lg_ctx *c, void *data, void (*release)(void *user), void *user, lg_shaped o)
{
        lg_tensor *t = borrow(c, data, o, release, user);
        if (!t)
                lg__release(c, release, user);
        return t;
}

/* ---- random numbers
 * ---------------------------------------------------------------------------------------------------- */

/* Each call takes as many blocks of the generator as its elements need; the counter moves only if the call works. */
static lg_tensor *random_tensor(lg_ctx *c, const char *op, lg_random_kind kind, double a, double b, lg_shaped o)
{
        if (lg__ok(c) && o.dtype && lg_dtype_size(o.dtype) && !lg__dtype_float(o.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: dtype %s; random tensors are floats", op, lg_dtype_name(o.dtype));
        if (lg__ok(c) && (!isfinite(a) || !isfinite(b)))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the parameters %g and %g are not finite", op, a, b);
        lg_tensor *t = create(c, op, o);
        if (!t)
                return NULL;
        int64_t n = lg__shape_numel(o.shape), each = t->at.dtype == LG_F64 ? 2 : 4;
        lg_random_args r = {n, t->at.dtype, lg__data(t), kind, a, b, c->random.seed, c->random.counter};
        t = created(t, n == 0 || LG__RUN(t->storage->device, op, random, &r), o.requires_grad);
        if (t)
                c->random.counter += (uint64_t)((n + each - 1) / each);
        return t;
}

lg_tensor *lg_uniform_(lg_ctx *c, double low, double high, lg_shaped o)
{
        if (lg__ok(c) && low > high)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_uniform: low is %g, above high, %g", low, high);
        lg_dtype d = o.dtype ? o.dtype : LG_F32;
        double most = d == LG_F64 ? DBL_MAX : d == LG_F16 ? 65504 : d == LG_BF16 ? 0xFFp120 : (double)FLT_MAX;
        if (lg__ok(c) && isfinite(low) && isfinite(high) && !(fmax(-low, high) <= most && high - low <= DBL_MAX))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_uniform: low %g and high %g are too far apart for %s", low,
                                high, lg_dtype_name(d));
        return random_tensor(c, "lg_uniform", LG_RANDOM_UNIFORM, low, high, o);
}

lg_tensor *lg_normal_(lg_ctx *c, double mean, double std, lg_shaped o)
{
        if (lg__ok(c) && std < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_normal: std is %g, below 0", std);
        return random_tensor(c, "lg_normal", LG_RANDOM_NORMAL, mean, std, o);
}

/* Fisher and Yates on the host; the order takes one block of the generator for each two elements. */
static void shuffle(int64_t *order, int64_t n, lg_random_state state)
{
        for (int64_t i = 0; i < n; i++)
                order[i] = i;
        for (int64_t i = n - 1; i > 0; i--) {
                lg_philox_words b = lg_philox_block(state.seed, state.counter + (uint64_t)i / 2);
                uint64_t r = (uint64_t)b.w[i % 2 * 2] << 32 | b.w[i % 2 * 2 + 1];
                int64_t j = (int64_t)(r % (uint64_t)(i + 1));
                int64_t swap = order[i];
                order[i] = order[j];
                order[j] = swap;
        }
}

lg_tensor *lg_permutation_(lg_ctx *c, lg_ranged o)
{
        if (!lg__ok(c))
                return NULL;
        if (!whole(o.b) || o.b < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_permutation: n is %g, not a whole number of 0 or more", o.b);
        if (o.b > INT32_MAX)
                return lg__fail(c, LG_ERR_SHAPE, "lg_permutation: n is %g; at most 2^31 - 1 are possible", o.b);
        if (o.dtype && o.dtype != LG_I64)
                return lg__fail(c, LG_ERR_DTYPE, "lg_permutation: dtype %s; it is i64", lg_dtype_name(o.dtype));
        int64_t n = (int64_t)o.b;
        lg_shaped s = {.shape = LG_SHAPE(n), .dtype = LG_I64, .device = o.device};
        size_t bytes = (size_t)n * sizeof(int64_t);
        int64_t *order = lg__alloc(c, bytes + 1);
        if (!order)
                return NULL;
        shuffle(order, n, c->random);
        lg_tensor *t = lg_from_(c, order, s);
        lg__free(c, order, bytes + 1);
        if (t)
                c->random.counter += (uint64_t)(n + 1) / 2;
        return t;
}
