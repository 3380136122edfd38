/* flip.c - dimensions read backwards (a view) or rolled round (a copy).
 *
 * flip: y[i] = x[n - 1 - i]; dx = g, flipped back. roll: y[(i + shift) mod n] = x[i]; dx = g, rolled back.
 */
#include "../op.h"

typedef struct flip_attributes {
        lg__layout at; /* of y */
        lg_dims dims;
} flip_attributes;

static bool infer_flip(lg__call *call)
{
        call->out_at[0] = ((const flip_attributes *)call->attributes)->at;
        return true;
}

static bool forward_flip(lg__call *call)
{
        return call->out[0] != NULL;
}

static bool vjp_flip(lg__vjp *v)
{
        return (v->grad_in[0] = lg_flip(v->grad[0], ((const flip_attributes *)v->attributes)->dims)) != NULL;
}

const lg__op lg__op_flip = {.name = "flip",
                            LG__OPERANDS({"x"}),
                            LG__RESULTS({"y"}),
                            .flags = LG__ALIASES,
                            .attributes_bytes = sizeof(flip_attributes),
                            .infer = infer_flip,
                            .forward = forward_flip,
                            .vjp = vjp_flip};

lg_tensor *lg_flip(lg_tensor *x, lg_dims dims)
{
        if (!lg__check(x, "flip", "x"))
                return NULL;
        int ndim = x->at.shape.ndim;
        flip_attributes a = {.at = x->at};
        unsigned seen = 0;
        bool empty = lg__shape_numel(x->at.shape) == 0;
        if (dims.count < 0 || dims.count > LG_MAX_DIMS)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "flip: a set of %d dimensions", dims.count);
        a.dims.count = dims.count ? dims.count : ndim;
        for (int i = 0; i < a.dims.count; i++) {
                int d = dims.count ? lg__dim(x->ctx, "flip", dims.dim[i], ndim) : i;
                if (d < 0)
                        return NULL;
                if (seen >> d & 1)
                        return lg__fail(x->ctx, LG_ERR_ARGUMENT, "flip: dimension %d is given twice", d);
                seen |= 1u << d;
                a.dims.dim[i] = d;
                if (empty || x->at.shape.size[d] == 1)
                        continue;
                a.at.offset += (x->at.shape.size[d] - 1) * x->at.strides[d];
                a.at.strides[d] = -x->at.strides[d];
        }
        return lg__apply1(LG__OP(flip), x, &a);
}

/* ---- roll ---- */

typedef struct roll_attributes {
        int64_t shift; /* 0 ... n - 1 */
        int dim;
} roll_attributes;

static bool infer_roll(lg__call *call)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = call->in[0]->at.shape;
        return true;
}

/* out[to ... to + count) = x[from ... from + count) */
static bool move(lg__call *call, int dim, int64_t to, int64_t from, int64_t count)
{
        lg_tensor out = *call->out[0], x = *call->in[0];
        out.at.shape.size[dim] = x.at.shape.size[dim] = count;
        out.at.offset += to * out.at.strides[dim];
        x.at.offset += from * x.at.strides[dim];
        return lg__copy_values(&out, &x, "roll");
}

static bool forward_roll(lg__call *call)
{
        const roll_attributes *a = call->attributes;
        int64_t left = call->in[0]->at.shape.size[a->dim] - a->shift;
        return move(call, a->dim, a->shift, 0, left) && move(call, a->dim, 0, left, a->shift);
}

static bool vjp_roll(lg__vjp *v)
{
        const roll_attributes *a = v->attributes;
        return (v->grad_in[0] = lg_roll(v->grad[0], -a->shift, a->dim)) != NULL;
}

const lg__op lg__op_roll = {.name = "roll",
                            LG__OPERANDS({"x"}),
                            LG__RESULTS({"y"}),
                            .attributes_bytes = sizeof(roll_attributes),
                            .infer = infer_roll,
                            .forward = forward_roll,
                            .vjp = vjp_roll};

lg_tensor *lg_roll(lg_tensor *x, int64_t shift, int dim)
{
        if (!lg__check(x, "roll", "x"))
                return NULL;
        roll_attributes a = {.dim = lg__dim(x->ctx, "roll", dim, x->at.shape.ndim)};
        if (a.dim < 0)
                return NULL;
        int64_t n = x->at.shape.size[a.dim];
        a.shift = n ? shift % n : 0;
        a.shift += a.shift < 0 ? n : 0;
        return lg__apply1(LG__OP(roll), x, &a);
}
