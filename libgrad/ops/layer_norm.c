/* layer_norm.c - layer, RMS, group and instance norm: rows brought to mean 0 and variance 1, then scaled and shifted.
 *
 * One op over x (N, G, C, L) whose rows are the last two dimensions, w and b (G, C, 1). With r = 1 / sqrt(var + eps),
 * t = (x - mean) r and means over a row: y = t w + b; db = g and dw = g t, summed to their shapes,
 * dx = r (g w - mean(g w) - t mean(g w t)). RMS norm takes the mean as 0 and leaves mean(g w) out.
 */
#include <float.h>
#include "norm.h"

typedef struct layer_norm_attributes {
        double eps;
        bool rms;
} layer_norm_attributes;

/* ---- the op ---- */

static bool infer_layer_norm(lg__call *call)
{
        lg_shape s = call->in[0]->at.shape;
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = s;
        for (int i = 1; i < 3; i++) {
                call->out_at[i].dtype = LG_F64;
                call->out_at[i].shape = LG_SHAPE(s.size[0], s.size[1]);
        }
        return true;
}

static bool forward_layer_norm(lg__call *call)
{
        const layer_norm_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        const int64_t *size = x->at.shape.size;
        lg_layer_norm_args k = {.dtype = x->at.dtype,
                                .outer = size[0],
                                .groups = size[1],
                                .channels = size[2],
                                .inner = size[3],
                                .eps = a->eps,
                                .rms = a->rms,
                                .x = lg__data(x),
                                .w = call->in[1] ? lg__data(call->in[1]) : NULL,
                                .b = call->in[2] ? lg__data(call->in[2]) : NULL,
                                .y = lg__data(call->out[0]),
                                .mean = lg__data(call->out[1]),
                                .rstd = lg__data(call->out[2])};
        return LG__RUN(call->device, "layer_norm", layer_norm, &k);
}

static bool fused_layer_norm(lg__vjp *v)
{
        const layer_norm_attributes *a = v->attributes;
        const lg_tensor *x = v->in[0], *g = lg_contiguous(v->grad[0]);
        const int64_t *size = x->at.shape.size;
        lg_layer_norm_vjp_args k = {.dtype = x->at.dtype,
                                    .outer = size[0],
                                    .groups = size[1],
                                    .channels = size[2],
                                    .inner = size[3],
                                    .rms = a->rms};
        void **const wanted[] = {&k.dx, &k.dw, &k.db};
        if (!g)
                return false;
        for (int i = 0; i < v->in_count; i++) {
                lg_shape s = i ? LG_SHAPE(size[1], size[2], 1) : x->at.shape;
                lg_dtype dtype = i ? lg__norm_dtype(x) : x->at.dtype;
                if (!v->needs[i])
                        continue;
                if (!(v->grad_in[i] = lg__tensor_empty(v->ctx, x->storage->device->id, dtype, s)))
                        return false;
                *wanted[i] = lg__data(v->grad_in[i]);
        }
        k.x = lg__data(x);
        k.w = v->in[1] ? lg__data(v->in[1]) : NULL;
        k.g = lg__data(g);
        k.mean = lg__data(v->out[1]);
        k.rstd = lg__data(v->out[2]);
        return LG__RUN(x->storage->device, "layer_norm", layer_norm_vjp, &k);
}

static lg_tensor *row_mean(lg_tensor *x)
{
        return lg_mean(x, .dims = LG_DIMS(2, 3), .keep_dim = true);
}

static bool vjp_layer_norm(lg__vjp *v)
{
        const layer_norm_attributes *a = v->attributes;
        lg_dtype dtype = lg__norm_dtype(v->in[0]);
        lg_tensor *x = lg_cast(v->in[0], dtype), *g = lg_cast(v->grad[0], dtype), *w = v->in[1];
        lg_tensor *var = a->rms ? row_mean(lg_square(x))
                                : lg_var(x, .dims = LG_DIMS(2, 3), .keep_dim = true, .correction = LG_ZERO);
        lg_tensor *r = lg_rsqrt(lg_add_scalar(var, a->eps));
        lg_tensor *t = lg_mul(a->rms ? x : lg_sub(x, row_mean(x)), r);
        if (v->needs[0]) {
                lg_tensor *gw = w ? lg_mul(g, w) : g, *slope = lg_mul(t, row_mean(lg_mul(gw, t)));
                v->grad_in[0] = lg_mul(r, lg_sub(a->rms ? gw : lg_sub(gw, row_mean(gw)), slope));
        }
        if (v->needs[1])
                v->grad_in[1] = lg_mul(g, t);
        if (v->needs[2])
                v->grad_in[2] = g;
        return lg__ok(v->ctx);
}

#define BY_ALL (LG__BY(0) | LG__BY(1) | LG__BY(2))
const lg__op lg__op_layer_norm = {
        .name = "layer_norm",
        LG__OPERANDS({"x", LG__FLOAT, .saved_for = BY_ALL}, {"w", LG__WEIGHT, .optional = true, .saved_for = LG__BY(0)},
                     {"b", LG__WEIGHT, .optional = true}),
        LG__RESULTS({"y"}, {"mean", .saved_for = BY_ALL}, {"rstd", .saved_for = BY_ALL}),
        .attributes_bytes = sizeof(layer_norm_attributes),
        .infer = infer_layer_norm,
        .forward = forward_layer_norm,
        .vjp = vjp_layer_norm,
        .fused = fused_layer_norm,
};

/* ---- the functions ---- */

/* x read as `rows` (N, G, C, L), normalised, in its own shape again. */
static lg_tensor *apply(lg_tensor *x, lg_tensor *w, lg_tensor *b, lg_shape rows, layer_norm_attributes a)
{
        lg_shape weights = LG_SHAPE(rows.size[1], rows.size[2], 1), shape = x->at.shape;
        lg_tensor *out[3],
                *in[] = {lg_reshape(lg_contiguous(x), rows), lg__norm_parameter(w, x), lg__norm_parameter(b, x)};
        for (int i = 1; i < 3; i++)
                in[i] = in[i] ? lg_reshape(in[i], weights) : NULL;
        if (b && !w &&
            !(in[1] = lg_full(x->ctx, 1, weights, .dtype = lg__norm_dtype(x), .device = x->storage->device->id)))
                return NULL;
        if (!lg__apply(LG__OP(layer_norm), in, 3, &a, out))
                return NULL;
        lg__tensor_release(out[1]);
        lg__tensor_release(out[2]);
        return lg_reshape(out[0], shape);
}

/* The last `dims` dimensions. */
static bool last_dims(const lg_tensor *x, int dims, const char *op, lg_shape *ret)
{
        lg_shape s = x->at.shape;
        if (dims < 1 || dims > s.ndim)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: x is %s; its last %d dimensions cannot be normalised", op,
                                lg__tensor_text(x).s, dims);
        *ret = (lg_shape){.ndim = dims};
        for (int i = 0; i < dims; i++)
                ret->size[i] = s.size[s.ndim - dims + i];
        return true;
}

static lg_tensor *over_last(lg_tensor *x, int dims, lg_tensor *w, lg_tensor *b, layer_norm_attributes a, const char *op)
{
        lg_shape last;
        if (!lg__norm_check(x, a.eps, op) || !last_dims(x, dims, op, &last) ||
            !lg__norm_check_parameter(x, w, last, op, "w") || !lg__norm_check_parameter(x, b, last, op, "b"))
                return NULL;
        int64_t rows = 1;
        for (int i = 0; i < x->at.shape.ndim - dims; i++)
                rows *= x->at.shape.size[i];
        return apply(x, w, b, LG_SHAPE(rows, 1, lg__shape_numel(last), 1), a);
}

lg_tensor *lg_layer_norm_with(lg_tensor *x, int dims, lg_tensor *w, lg_tensor *b, const lg_layer_norm_options *options)
{
        lg_layer_norm_options o;
        if (!lg__norm_check_tensors(x, w, b, "layer_norm") || !lg__take(x->ctx, "layer_norm", options, &o, sizeof o))
                return NULL;
        layer_norm_attributes a = {.eps = lg__option(o.eps, 1e-5)};
        return over_last(x, dims, w, b, a, "layer_norm");
}

lg_tensor *lg_rms_norm_with(lg_tensor *x, int dims, lg_tensor *w, const lg_rms_norm_options *options)
{
        static const double epsilon[] = {
                [LG_F32] = FLT_EPSILON, [LG_F64] = DBL_EPSILON, [LG_F16] = 0x1p-10, [LG_BF16] = 0x1p-7};
        lg_rms_norm_options o;
        if (!lg__norm_check_tensors(x, w, NULL, "rms_norm") || !lg__take(x->ctx, "rms_norm", options, &o, sizeof o))
                return NULL;
        layer_norm_attributes a = {.rms = true};
        a.eps = lg__option(o.eps, lg__dtype_float(x->at.dtype) ? epsilon[x->at.dtype] : 0);
        return over_last(x, dims, w, NULL, a, "rms_norm");
}

static lg_tensor *over_groups(lg_tensor *x, int64_t groups, lg_tensor *w, lg_tensor *b, double eps, const char *op)
{
        layer_norm_attributes a = {.eps = lg__option(eps, 1e-5)};
        lg_shape s = x->at.shape;
        int64_t inner = 1;
        if (!lg__norm_check(x, a.eps, op))
                return NULL;
        for (int i = 2; i < s.ndim; i++)
                inner *= s.size[i];
        if (groups < 1 || s.size[1] % groups)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: x is %s; its channels cannot make %lld groups", op,
                                lg__tensor_text(x).s, (long long)groups);
        if (!lg__norm_check_parameter(x, w, LG_SHAPE(s.size[1]), op, "w") ||
            !lg__norm_check_parameter(x, b, LG_SHAPE(s.size[1]), op, "b"))
                return NULL;
        return apply(x, w, b, LG_SHAPE(s.size[0], groups, s.size[1] / groups, inner), a);
}

lg_tensor *lg_group_norm_with(lg_tensor *x, int64_t groups, lg_tensor *w, lg_tensor *b,
                              const lg_layer_norm_options *options)
{
        lg_layer_norm_options o;
        if (!lg__norm_check_tensors(x, w, b, "group_norm") || !lg__take(x->ctx, "group_norm", options, &o, sizeof o))
                return NULL;
        if (x->at.shape.ndim < 2)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "group_norm: x is %s; it is (N, C) or (N, C, ...)",
                                lg__tensor_text(x).s);
        return over_groups(x, groups, w, b, o.eps, "group_norm");
}

lg_tensor *lg_instance_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_layer_norm_options *options)
{
        lg_layer_norm_options o;
        if (!lg__norm_check_tensors(x, w, b, "instance_norm") ||
            !lg__take(x->ctx, "instance_norm", options, &o, sizeof o))
                return NULL;
        int64_t channels = x->at.shape.ndim > 2 ? x->at.shape.size[0] * x->at.shape.size[1] : 0;
        if (x->at.shape.ndim < 3 || (channels && lg__shape_numel(x->at.shape) == channels))
                return lg__fail(x->ctx, LG_ERR_SHAPE,
                                "instance_norm: x is %s; it is (N, C, ...) with more than 1 element in each channel",
                                lg__tensor_text(x).s);
        return over_groups(x, x->at.shape.size[1] ? x->at.shape.size[1] : 1, w, b, o.eps, "instance_norm");
}

/* The square of the norm is kept from zero and not the norm, so that a row of zeros has a derivative. */
lg_tensor *lg_normalize_with(lg_tensor *x, int dim, const lg_normalize_options *options)
{
        lg_normalize_options o;
        if (!lg__check(x, "normalize", "x") || !lg__take(x->ctx, "normalize", options, &o, sizeof o))
                return NULL;
        int ndim = x->at.shape.ndim;
        double eps = lg__option(o.eps, 1e-12);
        dim = lg__dim(x->ctx, "normalize", dim, ndim);
        if (dim < 0 || !lg__norm_check(x, eps, "normalize"))
                return NULL;
        double least = x->at.dtype == LG_F64 ? DBL_MIN : FLT_MIN;
        lg_tensor *wide = lg_cast(x, lg__norm_dtype(x));
        lg_tensor *square = lg_sum(lg_square(wide), .dims = LG_DIMS(dim), .keep_dim = true);
        lg_tensor *norm = lg_sqrt(lg_maximum_scalar(square, eps * eps > least ? eps * eps : least));
        return lg_cast(lg_div(wide, norm), x->at.dtype);
}
