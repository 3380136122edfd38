/* batch_norm.c - batch norm: x (N, C, ...) brought to mean 0 and variance 1 by channel, then scaled and shifted.
 *
 * With r = 1 / sqrt(var + eps), n = (x - mean) r and means over all but the channels: y = n w + b; db = sum(g),
 * dw = sum(g n), dx = r (g w - mean(g w) - n mean(g w n)). mean and var are those of x and no inputs.
 */
#include "norm.h"

#define BATCH_NORM_FIELDS(FIELD) FIELD(f64, eps, 1e-5)
LG__ATTRIBUTES(batch_norm, BATCH_NORM_FIELDS)

/* ---- the op ---- */

static bool infer(lg__call *call)
{
        const lg__layout *x = &call->in[0]->at;
        lg__layout *y = &call->out_at[0];
        if (x->shape.ndim > 2)
                lg__layout_channels_last(y);
        for (int i = 1; i < 3; i++) {
                call->out_at[i].dtype = LG_F64;
                call->out_at[i].shape = LG_SHAPE(x->shape.size[1]);
        }
        return true;
}

static bool forward(lg__call *call)
{
        const batch_norm_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        int64_t channels = x->at.shape.size[1];
        lg_batch_norm_args k = {.dtype = x->at.dtype, .channels = channels, .eps = a->eps, .x = lg__data(x)};
        if (channels == 0)
                return true;
        k.rows = lg__shape_numel(x->at.shape) / channels;
        k.w = call->in[1] ? lg__data(call->in[1]) : NULL;
        k.b = call->in[2] ? lg__data(call->in[2]) : NULL;
        k.y = lg__data(call->out[0]);
        k.mean = lg__data(call->out[1]);
        k.var = lg__data(call->out[2]);
        return LG__RUN(call->device, "batch_norm", batch_norm, &k);
}

static bool fused(lg__vjp *v)
{
        const batch_norm_attributes *a = v->attributes;
        lg_tensor *x = v->in[0];
        const lg_tensor *g = x->at.shape.ndim > 2 ? lg__channels_last(v->grad[0]) : lg_contiguous(v->grad[0]);
        int64_t channels = x->at.shape.size[1];
        lg_batch_norm_vjp_args k = {.dtype = x->at.dtype, .channels = channels, .eps = a->eps};
        if (!g || !lg__norm_make_gradients(v, (void **const[]){&k.dx, &k.dw, &k.db}))
                return false;
        if (channels == 0)
                return true;
        k.rows = lg__shape_numel(x->at.shape) / channels;
        k.x = lg__data(x);
        k.w = v->in[1] ? lg__data(v->in[1]) : NULL;
        k.g = lg__data(g);
        k.mean = lg__data(v->out[1]);
        k.var = lg__data(v->out[2]);
        return LG__RUN(x->storage->device, "batch_norm", batch_norm_vjp, &k);
}

/* All dimensions but the channels. */
static lg_dims batch_dims(lg_shape s)
{
        lg_dims d = {.count = s.ndim - 1};
        for (int i = 1; i < d.count; i++)
                d.dim[i] = i + 1;
        return d;
}

/* (C) as (C, 1, ...), which broadcasts to x. */
static lg_tensor *by_channel(lg_tensor *t, const lg_tensor *x)
{
        lg_shape s = {.ndim = x->at.shape.ndim - 1, .size = {x->at.shape.size[1]}};
        for (int i = 1; i < s.ndim; i++)
                s.size[i] = 1;
        return lg_reshape(t, s);
}

static bool vjp(lg__vjp *v)
{
        const batch_norm_attributes *a = v->attributes;
        lg_dtype dtype = lg__norm_dtype(v->in[0]);
        lg_tensor *x = lg_cast(v->in[0], dtype), *g = lg_cast(v->grad[0], dtype), *w = v->in[1];
        if (!x)
                return false;
        lg_dims dims = batch_dims(x->at.shape);
        lg_tensor *mean = lg_mean(x, .dims = dims, .keep_dim = true);
        lg_tensor *var = lg_var(x, .dims = dims, .keep_dim = true, .correction = LG_ZERO);
        lg_tensor *r = lg_rsqrt(lg_add_scalar(var, a->eps)), *n = lg_mul(lg_sub(x, mean), r);
        if (v->needs[0]) {
                lg_tensor *gw = w ? lg_mul(g, by_channel(w, x)) : g;
                lg_tensor *slope = lg_mean(lg_mul(gw, n), .dims = dims, .keep_dim = true);
                gw = lg_sub(gw, lg_mean(gw, .dims = dims, .keep_dim = true));
                v->grad_in[0] = lg_mul(r, lg_sub(gw, lg_mul(n, slope)));
        }
        if (v->needs[1])
                v->grad_in[1] = lg_sum(lg_mul(g, n), .dims = dims);
        if (v->needs[2])
                v->grad_in[2] = lg_sum(g, .dims = dims);
        return lg__ok(v->ctx);
}

#define BY_ALL (LG__BY(0) | LG__BY(1) | LG__BY(2))
LG__DEFINE(batch_norm,
           LG__OPERANDS({"x", LG__FLOAT, LG__CHANNELS_LAST, .saved_for = BY_ALL},
                        {"w", LG__WEIGHT, LG__ROW_MAJOR, .optional = true, .saved_for = LG__BY(0)},
                        {"b", LG__WEIGHT, LG__ROW_MAJOR, .optional = true}),
           LG__RESULTS({"y"}, {"mean", .saved_for = BY_ALL}, {"var", .saved_for = BY_ALL}), LG__HAS(batch_norm),
           .infer = infer, .forward = forward, .vjp = vjp, .fused = fused)

/* ---- the function ---- */

/* running += momentum (factor batch - running) */
static bool update_running(lg_tensor *running, const lg_tensor *batch, double momentum, double factor)
{
        if (!running)
                return true;
        lg_running_args k = {.dtype = running->at.dtype,
                             .n = running->at.shape.size[0],
                             .stride = running->at.strides[0],
                             .r = lg__data(running),
                             .v = lg__data(batch),
                             .weight = momentum,
                             .factor = factor};
        running->storage->version++;
        return k.n == 0 || LG__RUN(running->storage->device, "batch_norm", running, &k);
}

static lg_tensor *train(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_batch_norm_options *o)
{
        int64_t channels = x->at.shape.size[1], numel = lg__shape_numel(x->at.shape);
        int64_t count = channels ? numel / channels : 0;
        if (count == 1)
                return lg__fail(x->ctx, LG_ERR_SHAPE,
                                "batch_norm: x is %s. Expected more than 1 value per channel when training",
                                lg__tensor_text(x).s);
        if ((o->running_mean && !lg__may_change(o->running_mean, "batch_norm", "running_mean")) ||
            (o->running_var && !lg__may_change(o->running_var, "batch_norm", "running_var")))
                return NULL;
        lg_tensor *out[3];
        lg_tensor *y =
                lg__apply(LG__OP(batch_norm), (lg_tensor *[]){x, w, b}, 3, &(batch_norm_attributes){o->eps}, out);
        if (!y)
                return NULL;
        double n = (double)count;
        bool ok = count == 0 || (update_running(o->running_mean, out[1], o->momentum, 1) &&
                                 update_running(o->running_var, out[2], o->momentum, n / (n - 1)));
        for (int i = ok ? 1 : 0; i < 3; i++)
                lg__tensor_release(out[i]);
        return ok ? y : NULL;
}

/* x scale + shift, in the statistics' dtype. */
static lg_tensor *evaluate(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_batch_norm_options *o)
{
        lg_dtype dtype = lg__norm_dtype(x);
        if (!o->running_mean || !o->running_var)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT,
                                "batch_norm: %s is NULL; without .training = true both running statistics are needed",
                                o->running_mean ? "running_var" : "running_mean");
        lg_tensor *scale = lg_rsqrt(lg_add_scalar(lg_cast(o->running_var, dtype), o->eps));
        if (w)
                scale = lg_mul(lg_cast(w, dtype), scale);
        lg_tensor *shift = lg_neg(lg_mul(lg_cast(o->running_mean, dtype), scale));
        if (w)
                shift = lg_add(lg_cast(b, dtype), shift);
        lg_tensor *y = lg_add(lg_mul(x, by_channel(scale, x)), by_channel(shift, x));
        return lg_cast(y, x->at.dtype);
}

static lg_tensor *compose(const lg__call *call)
{
        lg_tensor *x = call->in[0], *w = call->in[1], *b = call->in[2];
        lg_batch_norm_options o;
        if (!lg__take(call->ctx, "batch_norm", call->attributes, &o, sizeof o))
                return NULL;
        o.momentum = lg__option(o.momentum, 0.1);
        o.eps = lg__option(o.eps, 1e-5);
        if (x->at.shape.ndim < 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "batch_norm: x is %s; it is (N, C) or (N, C, ...)",
                                lg__tensor_text(x).s);
        if (!w != !b)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "batch_norm: %s is NULL; w and b are both given or both NULL", w ? "b" : "w");
        if (!lg__norm_check_eps(call, o.eps) || !lg__norm_check_shapes(call, LG_SHAPE(x->at.shape.size[1])))
                return NULL;
        return o.training ? train(x, w, b, &o) : evaluate(x, w, b, &o);
}

static const lg__op any_batch_norm = {
        .name = "batch_norm",
        .compose = compose,
        LG__OPERANDS({"x", LG__FLOAT}, {"w", LG__WEIGHT, .optional = true}, {"b", LG__WEIGHT, .optional = true},
                     {"running_mean", LG__WEIGHT, .optional = true}, {"running_var", LG__WEIGHT, .optional = true}),
};

/* Options that the library does not know are an error of compose. */
lg_tensor *lg_batch_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_batch_norm_options *options)
{
        lg_batch_norm_options o;
        lg__take_without(options, &o, sizeof o);
        return lg__apply(&any_batch_norm, (lg_tensor *[]){x, w, b, o.running_mean, o.running_var}, 5, options, NULL);
}
