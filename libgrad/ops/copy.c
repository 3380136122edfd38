/* copy.c - copies: to row-major or channels-last order, to another dtype, to another device. y = x; dx = g, brought
 * back. */
#include "../op.h"

typedef struct copy_attributes {
        lg_device device;
        lg_dtype dtype;
        bool channels_last;
} copy_attributes;

static lg_tensor *apply(const lg__op *op, lg_tensor *x, lg_device device, lg_dtype dtype)
{
        copy_attributes a = {.device = device, .dtype = dtype};
        return lg__apply1(op, x, &a);
}

static bool infer(lg__call *call)
{
        const copy_attributes *a = call->attributes;
        call->device = lg__device_get(call->ctx, a->device);
        call->out_at[0].dtype = a->dtype;
        call->out_at[0].shape = call->in[0]->at.shape;
        if (a->channels_last)
                lg__layout_channels_last(&call->out_at[0]);
        return call->device != NULL;
}

/* The engine casts a gradient to the dtype of the input; only the device is left to do. */
static bool vjp(lg__vjp *v)
{
        return (v->grad_in[0] = lg_to(v->grad[0], lg__input(v, 0)->device)) != NULL;
}

#define COPY_OP(name)                                                                                                  \
        static bool infer_##name(lg__call *call)                                                                       \
        {                                                                                                              \
                return infer(call);                                                                                    \
        }                                                                                                              \
        static bool forward_##name(lg__call *call)                                                                     \
        {                                                                                                              \
                return lg__copy_values(call->out[0], call->in[0], #name);                                              \
        }                                                                                                              \
        static bool vjp_##name(lg__vjp *v)                                                                             \
        {                                                                                                              \
                return vjp(v);                                                                                         \
        }
COPY_OP(contiguous)

const lg__op lg__op_contiguous = {.name = "contiguous",
                                  LG__OPERANDS({"x"}),
                                  LG__RESULTS({"y"}),
                                  .attributes_bytes = sizeof(copy_attributes),
                                  .infer = infer_contiguous,
                                  .forward = forward_contiguous,
                                  .vjp = vjp_contiguous};
COPY_OP(cast)

const lg__op lg__op_cast = {.name = "cast",
                            LG__OPERANDS({"x"}),
                            LG__RESULTS({"y"}),
                            .attributes_bytes = sizeof(copy_attributes),
                            .infer = infer_cast,
                            .forward = forward_cast,
                            .vjp = vjp_cast};
COPY_OP(to)

const lg__op lg__op_to = {.name = "to",
                          LG__OPERANDS({"x"}),
                          LG__RESULTS({"y"}),
                          .flags = LG__ACROSS,
                          .attributes_bytes = sizeof(copy_attributes),
                          .infer = infer_to,
                          .forward = forward_to,
                          .vjp = vjp_to};

lg_tensor *lg_contiguous(lg_tensor *x)
{
        if (!lg__check(x, "contiguous", "x"))
                return NULL;
        if (lg__layout_is_contiguous(&x->at))
                return x;
        return apply(LG__OP(contiguous), x, x->storage->device->id, x->at.dtype);
}

lg_tensor *lg__channels_last(lg_tensor *x)
{
        if (!x || lg__layout_is_channels_last(&x->at))
                return x;
        copy_attributes a = {.device = x->storage->device->id, .dtype = x->at.dtype, .channels_last = true};
        return lg__apply1(LG__OP(contiguous), x, &a);
}

lg_tensor *lg_cast(lg_tensor *x, lg_dtype dtype)
{
        if (!lg__check(x, "cast", "x"))
                return NULL;
        if (lg_dtype_size(dtype) == 0)
                return lg__fail(x->ctx, LG_ERR_DTYPE, "cast: %d is no dtype", (int)dtype);
        return x->at.dtype == dtype ? x : apply(LG__OP(cast), x, x->storage->device->id, dtype);
}

lg_tensor *lg_copy(lg_tensor *x, lg_device device)
{
        if (!lg__check(x, "copy", "x"))
                return NULL;
        return apply(LG__OP(to), x, device.type ? device : x->storage->device->id, x->at.dtype);
}

lg_tensor *lg_to(lg_tensor *x, lg_device device)
{
        if (!lg__check(x, "to", "x"))
                return NULL;
        lg__device *d = lg__device_get(x->ctx, device);
        return !d ? NULL : d == x->storage->device ? x : lg_copy(x, d->id);
}
