/* batch_norm.c - batch norm: x (N, C, ...) normalised to mean 0 and variance 1 by channel, then scaled and shifted;
 * optionally with a residual added and ReLU applied.
 *
 * With r = 1 / sqrt(var + eps), n = (x - mean) r, G = g (with ReLU: where y > 0, else 0) and means over all dimensions
 * but the channels: y = relu(n w + b + residual); d residual = G, db = sum(G), dw = sum(G n). In training, mean and
 * var are those of x, and dx = r (G w - mean(G w) - n mean(G w n)); otherwise they are the running statistics, which
 * are constants, and dx = r G w.
 */
#include "core/tape.h"
#include "norm.h"

#define BATCH_NORM_FIELDS(FIELD) FIELD(f64, eps, 1e-5) FIELD(f64, momentum, 0.1) FIELD(bool, training, false)
LG__ATTRIBUTES(batch_norm, BATCH_NORM_FIELDS)

enum { X, W, B, MEAN, VAR, RESIDUAL, INPUTS };

/* ---- the ops batch_norm and batch_norm_relu ---- */

static bool infer(lg__call *call)
{
        const lg__layout *x = &call->in[X]->at;
        lg__layout *y = &call->out_at[0];
        if (x->shape.ndim > 2)
                lg__layout_channels_last(y);
        for (int i = 1; i < 3; i++) {
                call->out_at[i].dtype = LG_F64;
                call->out_at[i].shape = LG_SHAPE(x->shape.size[1]);
        }
        return true;
}

static const void *data_of(const lg_tensor *t)
{
        return t ? lg__data(t) : NULL;
}

static lg_running_stat running(const lg_tensor *t)
{
        return t ? (lg_running_stat){t->at.dtype, t->at.strides[0], lg__data(t)} : (lg_running_stat){.at = NULL};
}

/* Records that the kernel changed the running statistics in place. */
static void note_moves(lg__call *call)
{
        for (int i = MEAN; i <= VAR; i++)
                if (call->in[i]) {
                        lg__storage_changed(call->in[i]->storage);
                        call->moved |= LG__BY(i);
                }
}

static bool forward(lg__call *call)
{
        const batch_norm_attributes *a = call->attributes;
        const lg_tensor *x = call->in[X];
        const int64_t channels = x->at.shape.size[1];
        if (channels == 0)
                return true;
        const int64_t rows = lg__shape_numel(x->at.shape) / channels;
        lg_batch_norm_args k = {.dtype = x->at.dtype,
                                .rows = rows,
                                .channels = channels,
                                .eps = a->eps,
                                .momentum = a->momentum,
                                .trains = a->training,
                                .relu = call->op == LG__OP(batch_norm_relu),
                                .x = lg__data(x),
                                .w = data_of(call->in[W]),
                                .b = data_of(call->in[B]),
                                .z = data_of(call->in[RESIDUAL]),
                                .y = lg__data(call->out[0]),
                                .mean = lg__data(call->out[1]),
                                .var = lg__data(call->out[2]),
                                .running_mean = running(call->in[MEAN]),
                                .running_var = running(call->in[VAR])};
        if (!LG__RUN(call->device, "batch_norm", batch_norm, &k))
                return false;
        if (a->training && rows > 0)
                note_moves(call);
        return true;
}

static bool fused(lg__vjp *v)
{
        const batch_norm_attributes *a = v->attributes;
        const bool relu = v->op == LG__OP(batch_norm_relu);
        lg_tensor *x = v->in[X], *g = x->at.shape.ndim > 2 ? lg__channels_last(v->grad[0]) : lg_contiguous(v->grad[0]);
        const int64_t channels = x->at.shape.size[1];
        lg_batch_norm_vjp_args k = {.dtype = x->at.dtype, .channels = channels, .eps = a->eps, .trains = a->training};
        if (!g || !lg__norm_make_gradients(v, (void **const[INPUTS]){&k.dx, &k.dw, &k.db}) ||
            (v->needs[RESIDUAL] && !(v->grad_in[RESIDUAL] = relu ? lg__tensor_beside(x) : g)))
                return false;
        if (channels == 0)
                return true;
        k.rows = lg__shape_numel(x->at.shape) / channels;
        k.x = lg__data(x);
        k.w = data_of(v->in[W]);
        k.g = lg__data(g);
        k.y = relu ? lg__data(v->out[0]) : NULL;
        k.dz = relu && v->needs[RESIDUAL] ? lg__data(v->grad_in[RESIDUAL]) : NULL;
        k.mean = lg__data(v->out[1]);
        k.var = lg__data(v->out[2]);
        return LG__RUN(x->storage->device, "batch_norm", batch_norm_vjp, &k);
}

/* Returns all dimensions but the channels. */
static lg_dims batch_dims(lg_shape s)
{
        lg_dims d = {.count = s.ndim - 1};
        for (int i = 1; i < d.count; i++)
                d.dim[i] = i + 1;
        return d;
}

/* Returns t, shape (C), reshaped to (C, 1, ...), which broadcasts to x. */
static lg_tensor *by_channel(lg_tensor *t, const lg_tensor *x)
{
        lg_shape s = {.ndim = x->at.shape.ndim - 1, .size = {x->at.shape.size[1]}};
        for (int i = 1; i < s.ndim; i++)
                s.size[i] = 1;
        return lg_reshape(t, s);
}

/* Returns (x - mean) r, and in *ret_r the factor r = 1 / sqrt(var + eps), which broadcasts to x. */
static lg_tensor *normalised(const lg__vjp *v, lg_tensor *x, lg_tensor **ret_r)
{
        const batch_norm_attributes *a = v->attributes;
        const lg_dims dims = batch_dims(x->at.shape);
        lg_tensor *d, *var;
        if (a->training) {
                d = lg__centered(x, dims);
                var = lg_var(x, .dims = dims, .keep_dim = true, .correction = LG_ZERO);
        } else {
                d = lg_sub(x, by_channel(lg_cast(lg_detach(v->out[1]), x->at.dtype), x));
                var = by_channel(lg_cast(lg_detach(v->out[2]), x->at.dtype), x);
        }
        *ret_r = lg_rsqrt(lg_add_scalar(var, a->eps));
        return lg_mul(d, *ret_r);
}

static bool vjp(lg__vjp *v)
{
        const batch_norm_attributes *a = v->attributes;
        const lg_dtype dtype = lg__norm_dtype(v->in[X]);
        const bool relu = v->op == LG__OP(batch_norm_relu);
        lg_tensor *passed = relu ? LG__APPLY(relu_grad, NULL, v->grad[0], v->out[0]) : v->grad[0], *r;
        lg_tensor *x = lg_cast(v->in[X], dtype), *g = lg_cast(passed, dtype), *w = v->in[W];
        if (!x || !g)
                return false;
        const lg_dims dims = batch_dims(x->at.shape);
        lg_tensor *n = normalised(v, x, &r), *gw = w ? lg_mul(g, by_channel(w, x)) : g;
        if (v->needs[X] && a->training) {
                lg_tensor *slope = lg_mean(lg_mul(gw, n), .dims = dims, .keep_dim = true);
                gw = lg_sub(gw, lg_mean(gw, .dims = dims, .keep_dim = true));
                gw = lg_sub(gw, lg_mul(n, slope));
        }
        v->grad_in[X] = v->needs[X] ? lg_mul(r, gw) : NULL;
        v->grad_in[W] = v->needs[W] ? lg_sum(lg_mul(g, n), .dims = dims) : NULL;
        v->grad_in[B] = v->needs[B] ? lg_sum(g, .dims = dims) : NULL;
        v->grad_in[RESIDUAL] = v->needs[RESIDUAL] ? passed : NULL;
        return lg__ok(v->ctx);
}

#define BY_ALL (LG__BY(X) | LG__BY(W) | LG__BY(B) | LG__BY(RESIDUAL))
static bool form(lg__form *f, const lg__call *call)
{
        const batch_norm_attributes *a = call->attributes;
        const long long channels = call->in[0]->at.shape.size[1];
        char one[32], zero[32];
        snprintf(one, sizeof one, "{1*%lld}", channels);
        snprintf(zero, sizeof zero, "{0*%lld}", channels);
        lg__form_add(f, "y = BatchNormalization(x, %s, %s, running_mean, running_var, epsilon=%.9g); ",
                     call->in[W] ? "w" : one, call->in[B] ? "b" : zero, a->eps);
        if (a->training) {
                static const char *const rest[] = {"0", "0 2", "0 2 3", "0 2 3 4"}, *const ones[] = {"", "1", "1 1",
                                                                                                     "1 1 1"};
                const int spaces = call->in[0]->at.shape.ndim - 2;
                f->length = 0;
                lg__form_add(f,
                             "d = Sub(x, ReduceMean(x, [%s])); y = Div(d, Sqrt(Add(ReduceMean(Mul(d, d), [%s]), "
                             "{%.17g}))); y = Add(Mul(y, Reshape(%s, [-1 %s])), Reshape(%s, [-1 %s])); ",
                             rest[spaces], rest[spaces], a->eps, call->in[W] ? "CastLike(w, x)" : one, ones[spaces],
                             call->in[B] ? "CastLike(b, x)" : zero, ones[spaces]);
        }
        if (call->in[RESIDUAL])
                lg__form_add(f, "y = Add(y, residual); ");
        if (call->op == LG__OP(batch_norm_relu))
                lg__form_add(f, "y = Relu(y)");
        return a->training || (call->in[MEAN] && call->in[VAR]);
}

#define BATCH_NORM(of, saved)                                                                                          \
        LG__DEFINE(                                                                                                    \
                of,                                                                                                    \
                LG__OPERANDS({"x", LG__FLOAT, LG__CHANNELS_LAST, .saved_for = BY_ALL},                                 \
                             {"w", LG__WEIGHT, LG__ROW_MAJOR, .optional = true, .saved_for = LG__BY(X)},               \
                             {"b", LG__WEIGHT, LG__ROW_MAJOR, .optional = true},                                       \
                             {"running_mean", LG__FLOAT, .optional = true},                                            \
                             {"running_var", LG__FLOAT, .optional = true},                                             \
                             {"residual", LG__FLOAT, LG__CHANNELS_LAST, .optional = true}),                            \
                LG__RESULTS({"y", .saved_for = saved}, {"mean", .saved_for = BY_ALL}, {"var", .saved_for = BY_ALL}),   \
                LG__HAS(batch_norm), .infer = infer, .forward = forward, .vjp = vjp, .fused = fused, .form = form)
BATCH_NORM(batch_norm, 0)
BATCH_NORM(batch_norm_relu, BY_ALL)

/* ---- lg_batch_norm ---- */

/* Checks, for training, that each channel has more than one value and that the running statistics may be changed. */
static bool may_train(const lg_tensor *x, const lg_batch_norm_options *o)
{
        const int64_t channels = x->at.shape.size[1];
        if (channels && lg__shape_numel(x->at.shape) == channels)
                return lg__fail(x->ctx, LG_ERR_SHAPE,
                                "batch_norm: x is %s. Expected more than 1 value per channel when training",
                                lg__tensor_text(x).s);
        return (!o->running_mean || lg__may_change(o->running_mean, "batch_norm", "running_mean")) &&
               (!o->running_var || lg__may_change(o->running_var, "batch_norm", "running_var"));
}

/* Checks, for evaluation, that both running statistics are given, and detaches them, because they are constants. */
static bool may_evaluate(const lg_tensor *x, lg_batch_norm_options *o)
{
        if (!o->running_mean || !o->running_var)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT,
                                "batch_norm: %s is NULL; without .training = true both running statistics are needed",
                                o->running_mean ? "running_var" : "running_mean");
        o->running_mean = o->running_mean->node ? lg_detach(o->running_mean) : o->running_mean;
        o->running_var = o->running_var->node ? lg_detach(o->running_var) : o->running_var;
        return o->running_mean && o->running_var;
}

static bool check_residual(const lg_tensor *x, const lg_tensor *residual)
{
        return !residual || (residual->at.dtype == x->at.dtype && lg__shape_equal(residual->at.shape, x->at.shape)) ||
               lg__fail(x->ctx, residual->at.dtype == x->at.dtype ? LG_ERR_SHAPE : LG_ERR_DTYPE,
                        "batch_norm: x is %s but residual is %s; they need the same shape and dtype",
                        lg__tensor_text(x).s, lg__tensor_text(residual).s);
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
        if (!lg__norm_check_eps(call, o.eps) || !check_residual(x, o.residual) ||
            !lg__norm_check_shapes(call, RESIDUAL, LG_SHAPE(x->at.shape.size[1]), true) ||
            !(o.training ? may_train(x, &o) : may_evaluate(x, &o)))
                return NULL;
        lg_tensor *in[INPUTS] = {x, w, b, o.running_mean, o.running_var, o.residual};
        /* A recomputed forward pass has momentum 0, so that the running statistics are not updated twice. */
        batch_norm_attributes a = {o.eps, call->ctx->recomputing ? 0 : o.momentum, o.training};
        lg_tensor *out[3];
        if (!lg__apply(o.relu ? LG__OP(batch_norm_relu) : LG__OP(batch_norm), in, INPUTS, &a, out))
                return NULL;
        lg__tensor_release(out[1]);
        lg__tensor_release(out[2]);
        return out[0];
}

static const lg__op any_batch_norm = {
        .name = "batch_norm",
        .compose = compose,
        LG__OPERANDS({"x", LG__FLOAT}, {"w", LG__WEIGHT, .optional = true}, {"b", LG__WEIGHT, .optional = true},
                     {"running_mean", LG__FLOAT, .optional = true}, {"running_var", LG__FLOAT, .optional = true},
                     {"residual", LG__FLOAT, .optional = true}),
};

/* Reads only the tensors among the options; compose() reports unknown options. */
lg_tensor *lg_batch_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_batch_norm_options *options)
{
        lg_batch_norm_options o;
        lg__take_without(options, &o, sizeof o);
        return lg__apply(&any_batch_norm, (lg_tensor *[]){x, w, b, o.running_mean, o.running_var, o.residual}, INPUTS,
                         options, NULL);
}
