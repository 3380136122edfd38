/* copy.c - copies to row-major or channels-last layout, another dtype or another device; dx = g, converted back. */
#include "graph/op.h"

#define CONTIGUOUS_FIELDS(FIELD) FIELD(bool, channels_last, false)
LG__ATTRIBUTES(contiguous, CONTIGUOUS_FIELDS)
#define CAST_FIELDS(FIELD) FIELD(dtype, dtype, 0)
LG__ATTRIBUTES(cast, CAST_FIELDS)
#define TO_FIELDS(FIELD) FIELD(device, device, 0)
LG__ATTRIBUTES(to, TO_FIELDS)

static bool infer_contiguous(lg__call *call)
{
        if (((const contiguous_attributes *)call->attributes)->channels_last)
                lg__layout_channels_last(&call->out_at[0]);
        return true;
}

static bool infer_cast(lg__call *call)
{
        const lg_dtype dtype = ((const cast_attributes *)call->attributes)->dtype;
        call->out_at[0].dtype = dtype;
        return lg_dtype_size(dtype) || lg__fail(call->ctx, LG_ERR_DTYPE, "cast: %d is no dtype", (int)dtype);
}

static bool infer_to(lg__call *call)
{
        call->device = lg__device_get(call->ctx, ((const to_attributes *)call->attributes)->device);
        return call->device != NULL;
}

static bool forward(lg__call *call)
{
        return lg__copy_values(call->out[0], call->in[0], call->op->name);
}

/* Restores only the device; lg__reduce_to_input() casts the gradient to the dtype of the input. */
static bool vjp(lg__vjp *v)
{
        return (v->grad_in[0] = lg_to(v->grad[0], lg__input(v, 0)->device)) != NULL;
}

#define COPY(of, bits, to)                                                                                             \
        LG__DEFINE(of, .flags = bits, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(of), .infer = infer_##of,       \
                   .forward = forward, .vjp = vjp, .onnx = to)
COPY(contiguous, 0, "x")
COPY(cast, 0, "Cast(x, to=dtype)")
COPY(to, LG__ACROSS, "x")

/* ---- the functions, which return x itself if no copy is needed (lg_copy excepted) ---- */

lg_tensor *lg_contiguous(lg_tensor *x)
{
        if (lg__accept(LG__OP(contiguous), &x, 1) && lg__layout_is_contiguous(&x->at))
                return x;
        return LG__APPLY(contiguous, &(contiguous_attributes){false}, x);
}

lg_tensor *lg__channels_last(lg_tensor *x)
{
        if (x && lg__layout_is_channels_last(&x->at))
                return x;
        return LG__APPLY(contiguous, &(contiguous_attributes){true}, x);
}

lg_tensor *lg_cast(lg_tensor *x, lg_dtype dtype)
{
        if (lg__accept(LG__OP(cast), &x, 1) && x->at.dtype == dtype)
                return x;
        return LG__APPLY(cast, &(cast_attributes){dtype}, x);
}

lg_tensor *lg_to(lg_tensor *x, lg_device device)
{
        lg_ctx *c = lg__accept(LG__OP(to), &x, 1);
        const lg__device *d = c ? lg__device_get(c, device) : NULL;
        return !d ? NULL : d == x->storage->device ? x : LG__APPLY(to, &(to_attributes){d->id}, x);
}

static lg_tensor *compose_copy(const lg__call *call)
{
        const lg_device asked = *(const lg_device *)call->attributes;
        return LG__APPLY(to, &(to_attributes){asked.type ? asked : call->device->id}, call->in[0]);
}

static const lg__op copy = {.name = "copy", .compose = compose_copy, LG__OPERANDS({"x"})};

lg_tensor *lg_copy(lg_tensor *x, lg_device device)
{
        return lg__apply1(&copy, x, &device);
}
