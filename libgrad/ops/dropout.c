/* dropout.c - elements or channels dropped at random: y = x m, m 0 or 1 / (1 - p); dx = g m.
 *
 * The mask m is not kept: attributes hold where its random numbers come from, and the derivative is the op itself.
 */
#include <string.h>
#include "norm.h"

typedef struct dropout_attributes {
        double p;
        uint64_t seed, offset;
} dropout_attributes;

static bool infer_dropout(lg__call *call)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = call->in[0]->at.shape;
        lg__keep_layout(&call->out_at[0], &call->in[0]->at);
        return true;
}

static bool forward_dropout(lg__call *call)
{
        const dropout_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0], *y = call->out[0];
        lg_dropout_args k = {.ndim = x->at.shape.ndim,
                             .dtype = x->at.dtype,
                             .x = lg__data(x),
                             .y = lg__data(y),
                             .p = a->p,
                             .seed = a->seed,
                             .offset = a->offset};
        memcpy(k.shape, x->at.shape.size, sizeof k.shape);
        memcpy(k.x_strides, x->at.strides, sizeof k.x_strides);
        memcpy(k.y_strides, y->at.strides, sizeof k.y_strides);
        return lg__shape_numel(x->at.shape) == 0 || LG__RUN(call->device, "dropout", dropout, &k);
}

static bool vjp_dropout(lg__vjp *v)
{
        return (v->grad_in[0] = lg__apply1(v->op, v->grad[0], v->attributes)) != NULL;
}

const lg__op lg__op_dropout = {.name = "dropout",
                               LG__OPERANDS({"x", LG__FLOAT}),
                               LG__RESULTS({"y"}),
                               .attributes_bytes = sizeof(dropout_attributes),
                               .infer = infer_dropout,
                               .forward = forward_dropout,
                               .vjp = vjp_dropout};

static bool check(const lg_tensor *x, double p, const char *op, const lg_dropout_options *options,
                  lg_dropout_options *ret)
{
        if (!lg__check(x, op, "x") || !lg__take(x->ctx, op, options, ret, sizeof *ret) || !lg__norm_check_float(x, op))
                return false;
        return (p >= 0 && p <= 1) || lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: p is %g, not in [0, 1]", op, p);
}

/* Takes a block of the generator for each four elements; the counter moves only if the call works. */
static lg_tensor *drop(lg_tensor *x, double p)
{
        lg_random_state *random = &x->ctx->random;
        dropout_attributes a = {.p = p, .seed = random->seed, .offset = random->counter};
        lg_tensor *y = lg__apply1(LG__OP(dropout), x, &a);
        if (y)
                random->counter += (uint64_t)(lg__shape_numel(x->at.shape) + 3) / 4;
        return y;
}

lg_tensor *lg_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options)
{
        lg_dropout_options o;
        if (!check(x, p, "dropout", options, &o))
                return NULL;
        return o.off || p == 0 ? x : drop(x, p);
}

lg_tensor *lg_feature_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options)
{
        lg_dropout_options o;
        if (!check(x, p, "feature_dropout", options, &o))
                return NULL;
        lg_shape s = x->at.shape;
        if (s.ndim < 2)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "feature_dropout: x is %s; it is (N, C, ...)",
                                lg__tensor_text(x).s);
        if (o.off || p == 0)
                return x;
        for (int i = 2; i < s.ndim; i++)
                s.size[i] = 1;
        lg_tensor *ones = lg_ones(x->ctx, s, .dtype = lg__norm_dtype(x), .device = x->storage->device->id);
        return ones ? lg_cast(lg_mul(x, drop(ones, p)), x->at.dtype) : NULL;
}
