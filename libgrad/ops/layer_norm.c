/* layer_norm.c - layer, RMS, group and instance norm: rows normalised to mean 0 and variance 1, then scaled and
 * shifted.
 *
 * One op computes all of them. It views x as (N, G, C, L), whose rows are the last two dimensions, and w and b as (G,
 * C, 1). With r = 1 / sqrt(var + eps), t = (x - mean) r and means over a row: y = t w + b; db = g and dw = g t, summed
 * to the shapes of b and w; dx = r (g w - mean(g w) - t mean(g w t)). RMS norm takes the mean as 0 and omits mean(g
 * w).
 */
#include <float.h>
#include "norm.h"

#define LAYER_NORM_FIELDS(FIELD) FIELD(f64, eps, 1e-5) FIELD(bool, rms, false)
LG__ATTRIBUTES(layer_norm, LAYER_NORM_FIELDS)

/* ---- the op layer_norm ---- */

static bool infer(lg__call *call)
{
        lg_shape s = call->in[0]->at.shape;
        for (int i = 1; i < 3; i++) {
                call->out_at[i].dtype = LG_F64;
                call->out_at[i].shape = LG_SHAPE(s.size[0], s.size[1]);
        }
        return true;
}

static bool forward(lg__call *call)
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

static bool fused(lg__vjp *v)
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
        if (!g || !lg__norm_make_gradients(v, (void **const[]){&k.dx, &k.dw, &k.db}))
                return false;
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

static bool vjp(lg__vjp *v)
{
        const layer_norm_attributes *a = v->attributes;
        lg_dtype dtype = lg__norm_dtype(v->in[0]);
        lg_tensor *x = lg_cast(v->in[0], dtype), *g = lg_cast(v->grad[0], dtype), *w = v->in[1];
        lg_tensor *var = a->rms ? row_mean(lg_square(x))
                                : lg_var(x, .dims = LG_DIMS(2, 3), .keep_dim = true, .correction = LG_ZERO);
        lg_tensor *r = lg_rsqrt(lg_add_scalar(var, a->eps));
        lg_tensor *t = lg_mul(a->rms ? x : lg__centered(x, LG_DIMS(2, 3)), r);
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
LG__DEFINE(layer_norm, .autocast = LG__F32,
           LG__OPERANDS({"x", LG__FLOAT, LG__ROW_MAJOR, .saved_for = BY_ALL},
                        {"w", LG__WEIGHT, LG__ROW_MAJOR, .optional = true, .saved_for = LG__BY(0)},
                        {"b", LG__WEIGHT, LG__ROW_MAJOR, .optional = true}),
           LG__RESULTS({"y"}, {"mean", .saved_for = BY_ALL}, {"rstd", .saved_for = BY_ALL}), LG__HAS(layer_norm),
           .infer = infer, .forward = forward, .vjp = vjp, .fused = fused)

/* ---- public functions ---- */

typedef struct arguments {
        const void *options;
        int64_t count;  /* number of groups; for normalize and cosine_similarity, the dimension */
        lg_shape shape; /* layer and RMS norm: the sizes of the last dimensions of x */
} arguments;

/* Normalises x viewed with the shape `rows`, (N, G, C, L), and returns the result in x's own shape. */
static lg_tensor *apply(const lg__call *call, lg_shape rows, layer_norm_attributes a)
{
        lg_tensor *x = call->in[0], *out[3], *in[3] = {lg_reshape(x, rows)};
        lg_shape weights = LG_SHAPE(rows.size[1], rows.size[2], 1);
        for (int i = 1; i < call->in_count; i++)
                in[i] = call->in[i] ? lg_reshape(call->in[i], weights) : NULL;
        if (in[2] && !in[1] &&
            !(in[1] = lg_full(x->ctx, weights, 1, .dtype = lg__norm_dtype(x), .device = x->storage->device->id)))
                return NULL;
        if (!lg__apply(LG__OP(layer_norm), in, 3, &a, out))
                return NULL;
        lg__tensor_release(out[1]);
        lg__tensor_release(out[2]);
        return lg_reshape(out[0], x->at.shape);
}

/* Returns the option eps, or its default. */
static double eps_of(const lg__call *call)
{
        static const double epsilon[] = {
                [LG_F32] = FLT_EPSILON, [LG_F64] = DBL_EPSILON, [LG_F16] = 0x1p-10, [LG_BF16] = 0x1p-7};
        const void *options = ((const arguments *)call->attributes)->options;
        lg_layer_norm_options o;
        lg_rms_norm_options r;
        if (call->op != LG__OP(rms_norm)) {
                lg__take_without(options, &o, sizeof o);
                return lg__option(o.eps, 1e-5);
        }
        lg__take_without(options, &r, sizeof r);
        return lg__option(r.eps, epsilon[call->in[0]->at.dtype]);
}

/* Computes layer or RMS norm, over the last dimensions of x. */
static lg_tensor *compose_last(const lg__call *call)
{
        const arguments *p = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        const bool rms = call->op == LG__OP(rms_norm);
        lg_layer_norm_options o;
        lg_rms_norm_options r;
        if (!lg__take(call->ctx, call->op->name, p->options, rms ? (void *)&r : &o, rms ? sizeof r : sizeof o))
                return NULL;
        layer_norm_attributes a = {eps_of(call), rms};
        if (!lg__norm_check_eps(call, a.eps))
                return NULL;
        int64_t rows = 1;
        if (!lg__shape_valid(call->ctx, call->op->name, p->shape))
                return NULL;
        const int first = x->shape.ndim - p->shape.ndim;
        if (p->shape.ndim < 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: a shape without dimensions; give that of the last dimensions of x",
                                call->op->name);
        for (int i = 0; i < x->shape.ndim; i++) {
                if (first < 0 || (i >= first && x->shape.size[i] != p->shape.size[i - first]))
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; its last dimensions must be %s",
                                        call->op->name, lg__tensor_text(call->in[0]).s, lg__shape_text(p->shape).s);
                rows *= i < first ? x->shape.size[i] : 1;
        }
        return lg__norm_check_shapes(call, call->in_count, p->shape, false)
                       ? apply(call, LG_SHAPE(rows, 1, lg__shape_numel(p->shape), 1), a)
                       : NULL;
}

/* Computes group or instance norm, over the channels of a group and all dimensions after the channels. The groups of
 * instance norm are single channels. */
static lg_tensor *compose_groups(const lg__call *call)
{
        const arguments *p = call->attributes;
        const lg_tensor *x = call->in[0];
        const lg_shape s = x->at.shape;
        const bool instance = call->op == LG__OP(instance_norm);
        lg_layer_norm_options o;
        if (!lg__take(call->ctx, call->op->name, p->options, &o, sizeof o))
                return NULL;
        const layer_norm_attributes a = {.eps = eps_of(call)};
        const int64_t channels = s.ndim > 1 ? s.size[1] : 0, groups = !instance ? p->count : channels ? channels : 1;
        int64_t inner = 1;
        for (int i = 2; i < s.ndim; i++)
                inner *= s.size[i];
        if (s.ndim < 2 || (instance && (s.ndim < 3 || (inner == 1 && lg__shape_numel(s)))))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; it is (N, C, ...)%s", call->op->name,
                                lg__tensor_text(x).s, instance ? " with more than 1 element in each channel" : "");
        if (!lg__norm_check_eps(call, a.eps))
                return NULL;
        if (!instance && (channels == 0 || inner == 0 || lg__shape_numel(s) == groups))
                return lg__fail(
                        call->ctx, LG_ERR_SHAPE,
                        "group_norm: x is %s; it needs channels, elements in them and more than 1 element in a group",
                        lg__tensor_text(x).s);
        if (groups < 1 || channels % groups)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: x is %s; its channels cannot make %lld groups",
                                call->op->name, lg__tensor_text(x).s, (long long)groups);
        return lg__norm_check_shapes(call, call->in_count, LG_SHAPE(channels), true)
                       ? apply(call, LG_SHAPE(s.size[0], groups, channels / groups, inner), a)
                       : NULL;
}

/* Writes parameter i in the dtype of x or, if it is absent, `otherwise`. */
static void add_parameter(lg__form *f, const lg__call *call, int i, const char *otherwise)
{
        const char *const name = call->op->operands[i].name;
        if (!call->in[i])
                lg__form_add(f, "%s", otherwise);
        else
                lg__form_add(f, call->in[i]->at.dtype == call->in[0]->at.dtype ? "%s" : "CastLike(%s, x)", name);
}

/* Writes LayerNormalization or RMSNormalization. Weights that are absent are ones. */
static bool form_last(lg__form *f, const lg__call *call)
{
        const arguments *p = call->attributes;
        const bool rms = call->op == LG__OP(rms_norm);
        lg__form_add(f, "one = Expand({1}, [");
        for (int i = 0; i < p->shape.ndim; i++)
                lg__form_add(f, "%lld ", (long long)p->shape.size[i]);
        lg__form_add(f, "]); %s(x, ", rms ? "RMSNormalization" : "LayerNormalization");
        add_parameter(f, call, 1, "one");
        if (!rms) {
                lg__form_add(f, ", ");
                add_parameter(f, call, 2, "");
        }
        lg__form_add(f, ", axis=%d, epsilon=%.9g)", -p->shape.ndim, eps_of(call));
        return true;
}

static bool form_groups(lg__form *f, const lg__call *call)
{
        const arguments *p = call->attributes;
        const bool instance = call->op == LG__OP(instance_norm);
        const long long channels = call->in[0]->at.shape.size[1];
        char one[32], zero[32];
        snprintf(one, sizeof one, "{1*%lld}", channels);
        snprintf(zero, sizeof zero, "{0*%lld}", channels);
        lg__form_add(f, "%sNormalization(x, ", instance ? "Instance" : "Group");
        add_parameter(f, call, 1, one);
        lg__form_add(f, ", ");
        add_parameter(f, call, 2, zero);
        lg__form_add(f, ", epsilon=%.9g", eps_of(call));
        if (!instance)
                lg__form_add(f, ", num_groups=%lld", (long long)p->count);
        lg__form_add(f, ")");
        return true;
}

static lg_tensor *compose_normalize(const lg__call *call)
{
        const arguments *p = call->attributes;
        lg_tensor *x = call->in[0];
        lg_normalize_options o;
        if (!lg__take(call->ctx, "normalize", p->options, &o, sizeof o))
                return NULL;
        const double eps = lg__option(o.eps, 1e-12), least = x->at.dtype == LG_F64 ? DBL_MIN : FLT_MIN;
        const int dim = lg__scalar_dim(call->ctx, "normalize", (int)p->count, x->at.shape.ndim);
        if (dim < 0 || !lg__norm_check_eps(call, eps))
                return NULL;
        lg_tensor *wide = lg_cast(x, lg__norm_dtype(x));
        lg_tensor *norm = lg_norm(wide, .dims = LG_DIMS(dim), .keep_dim = true);
        return lg_cast(lg_div(wide, lg_maximum_scalar(norm, eps > least ? eps : least)), x->at.dtype);
}

LG__DEFINE(normalize, .autocast = LG__F32, .compose = compose_normalize, LG__OPERANDS({"x", LG__FLOAT}))

static lg_tensor *compose_cosine_similarity(const lg__call *call)
{
        const arguments *p = call->attributes;
        lg_tensor *a = call->in[0], *b = call->in[1];
        lg_cosine_similarity_options o;
        lg_shape shape;
        if (!lg__take(call->ctx, "cosine_similarity", p->options, &o, sizeof o) ||
            !lg__broadcast(call->ctx, "cosine_similarity", a->at.shape, b->at.shape, &shape))
                return NULL;
        const int dim = lg__scalar_dim(call->ctx, "cosine_similarity", (int)p->count, shape.ndim);
        const double eps = lg__option(o.eps, 1e-8);
        if (dim < 0 || !lg__norm_check_eps(call, eps))
                return NULL;
        a = lg_normalize(lg_expand(lg__widened(a), shape), dim, .eps = eps > 0 ? eps : LG_ZERO);
        b = lg_normalize(lg_expand(lg__widened(b), shape), dim, .eps = eps > 0 ? eps : LG_ZERO);
        return lg_cast(lg_sum(lg_mul(a, b), .dims = LG_DIMS(dim)), call->in[0]->at.dtype);
}

LG__DEFINE(cosine_similarity, .flags = LG__PROMOTE, .autocast = LG__F32, .compose = compose_cosine_similarity,
           LG__OPERANDS({"a", LG__FLOAT}, {"b", LG__FLOAT}))

#define NORM(linkage, of, op, class, dims, ...)                                                                        \
        linkage const lg__op op = {                                                                                    \
                .name = #of,                                                                                           \
                .autocast = class,                                                                                     \
                .compose = compose_##dims,                                                                             \
                .form = form_##dims,                                                                                   \
                LG__OPERANDS({"x", LG__FLOAT}, __VA_ARGS__),                                                           \
        };
#define PARAMETER(name) name, LG__WEIGHT, .optional = true
NORM(static, layer_norm, any_layer_norm, LG__F32, last, {PARAMETER("w")}, {PARAMETER("b")})
NORM(, rms_norm, lg__op_rms_norm, LG__F32, last, {PARAMETER("w")})
NORM(, group_norm, lg__op_group_norm, LG__F32, groups, {PARAMETER("w")}, {PARAMETER("b")})
NORM(, instance_norm, lg__op_instance_norm, LG__AS_IT_IS, groups, {PARAMETER("w")}, {PARAMETER("b")})

lg_tensor *lg_layer_norm_with(lg_tensor *x, lg_shape shape, lg_tensor *w, lg_tensor *b,
                              const lg_layer_norm_options *options)
{
        return lg__apply(&any_layer_norm, (lg_tensor *[]){x, w, b}, 3, &(arguments){options, .shape = shape}, NULL);
}

lg_tensor *lg_rms_norm_with(lg_tensor *x, lg_shape shape, lg_tensor *w, const lg_rms_norm_options *options)
{
        return LG__APPLY(rms_norm, (&(arguments){options, .shape = shape}), x, w);
}

lg_tensor *lg_group_norm_with(lg_tensor *x, int64_t groups, lg_tensor *w, lg_tensor *b,
                              const lg_layer_norm_options *options)
{
        return LG__APPLY(group_norm, (&(arguments){options, groups}), x, w, b);
}

lg_tensor *lg_instance_norm_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg_layer_norm_options *options)
{
        return LG__APPLY(instance_norm, (&(arguments){options}), x, w, b);
}

lg_tensor *lg_normalize_with(lg_tensor *x, int dim, const lg_normalize_options *options)
{
        return LG__APPLY(normalize, (&(arguments){options, dim}), x);
}

lg_tensor *lg_cosine_similarity_with(lg_tensor *a, lg_tensor *b, int dim, const lg_cosine_similarity_options *options)
{
        return LG__APPLY(cosine_similarity, (&(arguments){options, dim}), a, b);
}
