/* flip.c - reverses dimensions (flip, a view) or shifts one cyclically (roll, a copy).
 *
 * flip: y[i] = x[n - 1 - i]; dx = g, flipped back. roll: y[(i + shift) mod n] = x[i]; dx = g, rolled back.
 */
#include "graph/op.h"

#define FLIP_FIELDS(FIELD) FIELD(dims, dims, 0)
LG__ATTRIBUTES(flip, FLIP_FIELDS)

static bool infer_flip(lg__call *call)
{
        lg_dims *dims = &((flip_attributes *)call->attributes)->dims;
        lg__layout *y = &call->out_at[0];
        if (!lg__dims(call->ctx, "flip", dims, y->shape.ndim))
                return false;
        const bool empty = lg__shape_numel(y->shape) == 0;
        for (int i = 0; i < dims->count; i++) {
                const int d = dims->dim[i];
                if (empty || y->shape.size[d] == 1)
                        continue;
                y->offset += (y->shape.size[d] - 1) * y->strides[d];
                y->strides[d] = -y->strides[d];
        }
        return true;
}

static bool vjp_flip(lg__vjp *v)
{
        return (v->grad_in[0] = LG__APPLY(flip, v->attributes, v->grad[0])) != NULL;
}

/* Takes a slice with steps of -1. */
static bool form_flip(lg__form *f, const lg__call *call)
{
        static const char *const texts[] = {"-1 ", "-9223372036854775807 ", NULL, "-1 "};
        const int count = ((const flip_attributes *)call->attributes)->dims.count;
        lg__form_add(f, count ? "Slice(x" : "x");
        for (int k = 0; k < 4 && count; k++) {
                lg__form_add(f, ", [");
                for (int i = 0; i < count && texts[k]; i++)
                        lg__form_add(f, "%s", texts[k]);
                if (!texts[k])
                        lg__form_expand(f, call, "dims");
                lg__form_add(f, "]");
        }
        lg__form_add(f, count ? ")" : "");
        return true;
}

LG__DEFINE(flip, .flags = LG__ALIASES, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(flip), .infer = infer_flip,
           .vjp = vjp_flip, .form = form_flip)

lg_tensor *lg_flip(lg_tensor *x, lg_dims dims)
{
        return LG__APPLY(flip, &(flip_attributes){dims}, x);
}

/* ---- roll ---- */

#define ROLL_FIELDS(FIELD) FIELD(i64, shift, 0) FIELD(int, dim, 0)
LG__ATTRIBUTES(roll, ROLL_FIELDS)

static bool infer_roll(lg__call *call)
{
        roll_attributes *a = call->attributes;
        const lg_shape s = call->in[0]->at.shape;
        a->dim = lg__dim(call->ctx, "roll", a->dim, s.ndim);
        if (a->dim < 0)
                return false;
        const int64_t n = s.size[a->dim];
        a->shift = n ? a->shift % n : 0;
        a->shift += a->shift < 0 ? n : 0;
        return true;
}

/* Copies x[from ... from + count) to out[to ... to + count) along dimension dim. */
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

static bool form_roll(lg__form *f, const lg__call *call)
{
        const roll_attributes *a = call->attributes;
        const lg_shape s = call->in[0]->at.shape;
        const int64_t n = s.ndim ? s.size[a->dim] : 0, shift = n ? ((a->shift % n) + n) % n : 0;
        if (!shift)
                lg__form_add(f, "x");
        else
                lg__form_add(
                        f,
                        "Concat(Slice(x, [%lld], [9223372036854775807], [%d]), Slice(x, [0], [%lld], [%d]), axis=%d)",
                        -(long long)shift, a->dim, -(long long)shift, a->dim, a->dim);
        return true;
}

LG__DEFINE(roll, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(roll), .infer = infer_roll, .forward = forward_roll,
           .vjp = vjp_roll, .form = form_roll)

lg_tensor *lg_roll(lg_tensor *x, int64_t shift, int dim)
{
        return LG__APPLY(roll, (&(roll_attributes){shift, dim}), x);
}
