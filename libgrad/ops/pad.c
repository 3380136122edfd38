/* pad.c - a constant around a tensor, or its rim cut off. dx = g, padded the other way round. */
#include <string.h>
#include "../op.h"

typedef struct pad_attributes {
        double value;
        int64_t before[LG_MAX_DIMS], after[LG_MAX_DIMS]; /* negative: cut off */
} pad_attributes;

static bool infer_pad(lg__call *call)
{
        const pad_attributes *a = call->attributes;
        lg_shape s = call->in[0]->at.shape;
        for (int i = 0; i < s.ndim; i++) {
                int64_t size;
                if (__builtin_add_overflow(s.size[i], a->before[i], &size) ||
                    __builtin_add_overflow(size, a->after[i], &size) || size < 0)
                        return lg__fail(
                                call->ctx, LG_ERR_SHAPE, "pad: x is %s; dimension %d cannot be padded by %lld and %lld",
                                lg__tensor_text(call->in[0]).s, i, (long long)a->before[i], (long long)a->after[i]);
                s.size[i] = size;
        }
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = s;
        return lg__shape_valid(call->ctx, "pad", s);
}

/* What of x is seen in y, as a part of each; false: nothing. */
static bool common_part(const pad_attributes *a, lg_tensor *y, lg_tensor *x)
{
        for (int i = 0; i < x->at.shape.ndim; i++) {
                int64_t cut = a->before[i] < 0 ? -a->before[i] : 0, count = x->at.shape.size[i] - cut;
                count += a->after[i] < 0 ? a->after[i] : 0;
                if (count <= 0)
                        return false;
                x->at.offset += cut * x->at.strides[i];
                y->at.offset += (a->before[i] + cut) * y->at.strides[i];
                x->at.shape.size[i] = y->at.shape.size[i] = count;
        }
        return true;
}

static bool forward_pad(lg__call *call)
{
        const pad_attributes *a = call->attributes;
        lg_tensor x = *call->in[0], y = *call->out[0];
        bool any = common_part(a, &y, &x);
        if (!any || !lg__shape_equal(y.at.shape, call->out[0]->at.shape))
                if (!lg__fill_values(call->out[0], a->value, "pad"))
                        return false;
        return !any || lg__copy_values(&y, &x, "pad");
}

static bool vjp_pad(lg__vjp *v)
{
        pad_attributes back = *(const pad_attributes *)v->attributes;
        back.value = 0;
        for (int i = 0; i < LG_MAX_DIMS; i++) {
                back.before[i] = -back.before[i];
                back.after[i] = -back.after[i];
        }
        return (v->grad_in[0] = lg__apply1(LG__OP(pad), v->grad[0], &back)) != NULL;
}

const lg__op lg__op_pad = {.name = "pad",
                           LG__OPERANDS({"x"}),
                           LG__RESULTS({"y"}),
                           .attributes_bytes = sizeof(pad_attributes),
                           .infer = infer_pad,
                           .forward = forward_pad,
                           .vjp = vjp_pad};

lg_tensor *lg_pad_with(lg_tensor *x, lg_ints pads, const lg_pad_options *options)
{
        lg_pad_options o;
        if (!lg__check(x, "pad", "x") || !lg__take(x->ctx, "pad", options, &o, sizeof o))
                return NULL;
        const int64_t n = pads.items ? pads.count : 0, ndim = x->at.shape.ndim;
        pad_attributes a;
        if (n < 0 || n % 2 || n > 2 * ndim)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT,
                                "pad: %lld pads for x, %s; they are pairs, one a dimension from the last backwards",
                                (long long)n, lg__tensor_text(x).s);
        memset(&a, 0, sizeof a);
        a.value = lg__option(o.value, 0);
        for (int64_t i = 0; i < n; i++) {
                if (pads.items[i] == INT64_MIN)
                        return lg__fail(x->ctx, LG_ERR_ARGUMENT, "pad: pad %lld is out of range", (long long)i);
                (i % 2 ? a.after : a.before)[ndim - 1 - i / 2] = pads.items[i];
        }
        return lg__apply1(LG__OP(pad), x, &a);
}
