/* dlpack.c - shares the memory of tensors with other frameworks, by DLPack. */
#include "tensor/tensor.h"

#include <dlpack/dlpack.h>

static const struct {
        uint8_t code, bits;
        lg_dtype dtype;
} types[] = {{kDLFloat, 32, LG_F32}, {kDLFloat, 64, LG_F64}, {kDLFloat, 16, LG_F16}, {kDLBfloat, 16, LG_BF16},
             {kDLInt, 64, LG_I64},   {kDLInt, 32, LG_I32},   {kDLUInt, 8, LG_U8}};
#define TYPES (sizeof types / sizeof *types)

/* ---- export ---- */

typedef struct exported {
        lg__export export;
        DLManagedTensor m;
        int64_t shape[LG_MAX_DIMS], strides[LG_MAX_DIMS];
} exported;

static void give_back(DLManagedTensor *m)
{
        if (m)
                lg__export_end(m->manager_ctx);
}

static bool type_to(const lg_tensor *t, DLDataType *ret)
{
        for (size_t i = 0; i < TYPES; i++) {
                if (types[i].dtype == t->at.dtype) {
                        *ret = (DLDataType){types[i].code, types[i].bits, 1};
                        return true;
                }
        }
        return lg__fail(t->ctx, LG_ERR_DTYPE, "lg_to_dlpack: t is %s, and DLPack 0.6 has no bool; lg_cast(t, LG_U8)",
                        lg__tensor_text(t).s);
}

static bool device_to(const lg_tensor *t, DLDevice *ret)
{
        lg_device d = t->storage->device->id;
        if (d.type != LG_DEVICE_CPU && d.type != LG_DEVICE_CUDA)
                return lg__fail(t->ctx, LG_ERR_DEVICE,
                                "lg_to_dlpack: t is %s, a device that DLPack does not know; lg_to(t, lg_cpu())",
                                lg__tensor_text(t).s);
        *ret = (DLDevice){d.type == LG_DEVICE_CPU ? kDLCPU : kDLCUDA, d.index};
        return true;
}

/* Waits until all kernels and all copies from pinned memory that use the tensor are done. Returns false on error. */
static bool finish_work(const lg_tensor *t)
{
        lg__storage_finish_copies(t->storage);
        return lg__device_wait(t->storage->device) && lg__ok(t->ctx);
}

struct DLManagedTensor *lg_to_dlpack(lg_tensor *t)
{
        DLTensor d = {.ndim = 0};
        if (t)
                lg__exports_collect(lg__ctx_of(t), true);
        if (!lg__check(t, "lg_to_dlpack", "t"))
                return NULL;
        if (t->node)
                return lg__fail(t->ctx, LG_ERR_STATE,
                                "lg_to_dlpack: t needs a gradient, which the other framework would not give back; "
                                "lg_detach(t) first");
        if (!type_to(t, &d.dtype) || !device_to(t, &d.device) || !finish_work(t))
                return NULL;
        exported *l = (exported *)lg__export_new(t->storage, sizeof *l);
        if (!l)
                return NULL;
        d.data = lg__data(t);
        d.ndim = t->at.shape.ndim;
        d.shape = l->shape;
        d.strides = l->strides;
        for (int i = 0; i < d.ndim; i++) {
                l->shape[i] = t->at.shape.size[i];
                l->strides[i] = t->at.strides[i];
        }
        l->m = (DLManagedTensor){.dl_tensor = d, .manager_ctx = l, .deleter = give_back};
        return &l->m;
}

/* ---- import ---- */

static bool type_from(lg_ctx *c, DLDataType type, lg_dtype *ret)
{
        if (type.lanes != 1)
                return lg__fail(c, LG_ERR_DTYPE, "lg_from_dlpack: elements of %d lanes; only those of 1 can be taken",
                                type.lanes);
        for (size_t i = 0; i < TYPES; i++) {
                if (types[i].code == type.code && types[i].bits == type.bits) {
                        *ret = types[i].dtype;
                        return true;
                }
        }
        return lg__fail(c, LG_ERR_DTYPE,
                        "lg_from_dlpack: elements of type code %d with %d bits; f16, bf16, f32, f64, i32, i64 and u8 "
                        "can be taken",
                        type.code, type.bits);
}

static lg__device *device_from(lg_ctx *c, DLDevice d)
{
        if (d.device_type == kDLCPU || d.device_type == kDLCUDAHost)
                return c->cpu;
        if (d.device_type == kDLCUDA)
                return lg__device_get(c, LG_DEVICE(LG_DEVICE_CUDA, d.device_id));
        return lg__fail(c, LG_ERR_DEVICE,
                        "lg_from_dlpack: memory of device type %d; that of the CPU (1), of CUDA (2) and pinned memory "
                        "(3) can be taken",
                        (int)d.device_type);
}

/* Sets the strides, in elements. Strides of dimensions of size 1 and of empty tensors have no meaning and are replaced.
 * *ret_span: number of elements from the first to the last one in memory. Returns false with an error. */
static bool strides_from(lg_ctx *c, const int64_t *given, lg__layout *at, int64_t *ret_span)
{
        const int64_t most = PTRDIFF_MAX / 16;
        int64_t next = 1, last = 0;
        lg__layout_contiguous(at);
        *ret_span = lg__shape_numel(at->shape);
        if (!given || *ret_span == 0)
                return true;
        for (int i = at->shape.ndim - 1; i >= 0; i--) {
                int64_t steps = at->shape.size[i] - 1, way;
                at->strides[i] = steps ? given[i] : next;
                if (steps && given[i] < 0)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "lg_from_dlpack: stride %lld in dimension %d; strides must not be negative",
                                        (long long)given[i], i);
                if (__builtin_mul_overflow(steps, at->strides[i], &way) || way > most - 1 - last)
                        return lg__fail(c, LG_ERR_SHAPE,
                                        "lg_from_dlpack: stride %lld in dimension %d: elements too far apart",
                                        (long long)given[i], i);
                last += way;
                next = at->strides[i] * at->shape.size[i];
        }
        *ret_span = last + 1;
        return true;
}

static bool layout_from(lg_ctx *c, const DLTensor *d, lg__layout *at, int64_t *ret_span)
{
        at->shape = LG_SHAPE_0D;
        at->shape.ndim = d->ndim;
        if (d->ndim > 0 && d->ndim <= LG_MAX_DIMS) {
                if (!d->shape)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "lg_from_dlpack: shape is NULL, but there are %d dimensions", d->ndim);
                for (int i = 0; i < d->ndim; i++)
                        at->shape.size[i] = d->shape[i];
        }
        return lg__shape_valid(c, "lg_from_dlpack", at->shape) && strides_from(c, d->strides, at, ret_span);
}

/* Finds the address of the first element; NULL for an empty tensor, whose `data` is not checked. */
static bool data_from(lg_ctx *c, const DLTensor *d, size_t bytes, char **ret)
{
        uintptr_t first, end;
        *ret = NULL;
        if (bytes == 0)
                return true;
        if (!d->data)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_from_dlpack: data is NULL");
        if (__builtin_add_overflow((uintptr_t)d->data, d->byte_offset, &first) ||
            __builtin_add_overflow(first, bytes, &end))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_from_dlpack: %zu bytes from byte_offset %llu on are beyond the address space",
                                bytes, (unsigned long long)d->byte_offset);
        *ret = (char *)d->data + d->byte_offset;
        return true;
}

static void let_go(lg_ctx *c, DLManagedTensor *m)
{
        c->user_calls++;
        if (m->deleter)
                m->deleter(m);
        c->user_calls--;
}

typedef struct imported {
        lg__device *device;
        DLManagedTensor *m;
} imported;

static void release(void *user)
{
        imported k = *(imported *)user;
        lg_ctx *c = k.device->cache.ctx;
        lg__device_wait(k.device);
        lg__free(c, user, sizeof k);
        let_go(c, k.m);
}

/* Returns a storage of foreign memory that has no release function yet, or NULL with an error. */
static lg__storage *over(lg__device *d, char *data, size_t bytes)
{
        lg__storage *s = lg__storage_new(d, 0);
        if (s) {
                s->data = data;
                s->bytes = bytes;
        }
        return s;
}

static lg_tensor *share(lg__device *d, DLManagedTensor *m, char *data, size_t bytes, const lg__layout *at)
{
        lg_ctx *c = d->cache.ctx;
        imported *k = lg__alloc(c, sizeof *k);
        lg__storage *s = k ? over(d, data, bytes) : NULL;
        lg_tensor *t = s ? lg__tensor_new(c, s, at) : NULL;
        if (t) {
                *k = (imported){d, m};
                s->release = release;
                s->user = k;
        } else {
                lg__free(c, k, sizeof *k);
        }
        lg__storage_unref(s);
        return t;
}

/* ---- import of data that is not aligned, by copying ---- */

/* Returns a u8 tensor of the bytes of a layout's elements, with one more dimension. If the layout has LG_MAX_DIMS
 * dimensions already, the tensor has only the elements with index i in the first dimension. */
static lg_tensor *bytes_of(lg_ctx *c, lg__storage *s, const lg__layout *at, int64_t i)
{
        const int64_t width = (int64_t)lg__dtype_bytes(at->dtype);
        const int skip = at->shape.ndim == LG_MAX_DIMS, n = at->shape.ndim - skip;
        lg__layout b = {.dtype = LG_U8, .offset = skip ? i * at->strides[0] * width : 0};
        for (int k = 0; k < n; k++) {
                b.shape.size[k] = at->shape.size[k + skip];
                b.strides[k] = at->strides[k + skip] * width;
        }
        b.shape.ndim = n + 1;
        b.shape.size[n] = width;
        b.strides[n] = 1;
        return lg__tensor_new(c, s, &b);
}

static bool copy_bytes(const lg_tensor *to, lg__storage *from, const lg__layout *at)
{
        bool ok = true;
        for (int64_t i = 0; ok && i < (at->shape.ndim == LG_MAX_DIMS ? at->shape.size[0] : 1); i++) {
                lg_tensor *out = bytes_of(to->ctx, to->storage, &to->at, i);
                lg_tensor *in = out ? bytes_of(to->ctx, from, at, i) : NULL;
                ok = in && lg__copy_values(out, in, "lg_from_dlpack");
                lg__tensor_release(in);
                lg__tensor_release(out);
        }
        return ok && lg__device_wait(from->device);
}

static lg_tensor *copy(lg__device *d, DLManagedTensor *m, char *data, size_t bytes, const lg__layout *at)
{
        lg_ctx *c = d->cache.ctx;
        lg_tensor *t = lg__tensor_empty(c, d->id, at->dtype, at->shape);
        lg__storage *s = t ? over(d, data, bytes) : NULL;
        bool ok = s && copy_bytes(t, s, at);
        lg__storage_unref(s);
        if (ok)
                let_go(c, m);
        return lg__created(t, ok, false);
}

lg_tensor *lg_from_dlpack(lg_ctx *c, struct DLManagedTensor *m)
{
        lg__layout at = {.dtype = LG_DTYPE_NONE};
        int64_t span = 0;
        char *data;
        if (c)
                lg__exports_collect(c, true);
        if (!lg__ok(c) || !lg__unrecorded(c, "lg_from_dlpack"))
                return NULL;
        if (!m)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_from_dlpack: m is NULL");
        if (!type_from(c, m->dl_tensor.dtype, &at.dtype) || !layout_from(c, &m->dl_tensor, &at, &span))
                return NULL;
        lg__device *d = device_from(c, m->dl_tensor.device);
        size_t width = lg__dtype_bytes(at.dtype), bytes = (size_t)span * width;
        if (!d || !data_from(c, &m->dl_tensor, bytes, &data))
                return NULL;
        return ((uintptr_t)data % width ? copy : share)(d, m, data, bytes, &at);
}
