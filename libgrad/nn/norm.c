/* norm.c - BatchNorm and InstanceNorm of 1 to 3 dimensions, LayerNorm, RMSNorm, GroupNorm. */
#include "core/tape.h"
#include "graph/op.h"
#include "group/group.h"
#include "nn.h"

static lg_tensor *tensor(const lg_module *m, const char *name)
{
        return lg__module_tensor(m, name);
}

/* ---- batch norms ---- */

typedef struct batch {
        int64_t channels;
        int spaces;     /* spatial dimensions, 1 to 3 */
        uint64_t group; /* id of the group whose ranks share statistics; 0: none */
        lg_batch_norm_layer_options o;
} batch;

static void count_batch(void *owner, const void *data, size_t bytes)
{
        (void)data;
        (void)bytes;
        ((lg_module *)owner)->batches++;
}

static lg_tensor *batch_norm(lg_module *m, lg_tensor *x, lg__epilogue epilogue)
{
        const batch *k = m->user;
        lg_tensor *plus = epilogue.plus;
        static const char *const taken[] = {"(N, C) or (N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)"};
        int ndim = x->at.shape.ndim;
        if (ndim != k->spaces + 2 && (k->spaces > 1 || ndim != 2))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s; it takes %s%s", m->type, lg__tensor_text(x).s,
                                taken[k->spaces - 1], lg__layout_hint(x, k->spaces, k->channels));
        const bool alike = plus && lg__shape_equal(plus->at.shape, x->at.shape) && plus->at.dtype == x->at.dtype;
        const bool separate = plus && !alike; /* the sum broadcasts or promotes, so it is a separate op */
        const lg_batch_norm_options o = {.size_ = sizeof o,
                                         .running_mean = tensor(m, "running_mean"),
                                         .running_var = tensor(m, "running_var"),
                                         .training = m->training || k->o.no_running,
                                         .eps = k->o.eps,
                                         .momentum = k->o.momentum,
                                         .residual = separate ? NULL : plus,
                                         .relu = epilogue.relu && !separate};
        lg_tensor *w = tensor(m, "weight"), *b = tensor(m, "bias"), *y;
        lg__tape_watch(m->object.ctx, &m->object, &k->group, sizeof k->group);
        if (!k->group || !m->training)
                y = lg_batch_norm_with(x, w, b, &o);
        else if (x->at.shape.size[1] == k->channels)
                y = lg__sync_batch_norm(x, k->group, w, b, o);
        else
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s; it has %lld channels%s", m->type,
                                lg__tensor_text(x).s, (long long)k->channels,
                                lg__layout_hint(x, ndim - 2, k->channels));
        if (y && m->training && m->counts_batches && !m->object.ctx->recomputing) {
                count_batch(m, NULL, 0);
                lg__tape_host(m->object.ctx, count_batch, m, NULL, 0);
        }
        if (separate)
                y = lg_add(y, plus);
        return separate && epilogue.relu ? lg_relu(y) : y;
}

bool lg__norm_is_affine(const lg_module *m, int ndim, int64_t channels)
{
        const batch *k = m->user;
        return m->forward_epilogue == batch_norm && !m->training && !k->o.no_running && k->channels == channels &&
               ndim == k->spaces + 2;
}

bool lg__norm_affine(const lg_module *m, lg_dtype beside, lg_tensor **ret_scale, lg_tensor **ret_shift)
{
        const batch *k = m->user;
        const lg_dtype dtype = beside == LG_F64 ? LG_F64 : LG_F32;
        lg_tensor *w = tensor(m, "weight"), *b = tensor(m, "bias"), *mean = tensor(m, "running_mean");
        lg_tensor *var = lg_cast(tensor(m, "running_var"), dtype);
        lg_tensor *scale = lg_rsqrt(lg_add_scalar(var, lg__option(k->o.eps, 1e-5)));
        scale = w ? lg_mul(scale, lg_cast(w, dtype)) : scale;
        lg_tensor *shift = lg_neg(lg_mul(lg_cast(mean, dtype), scale));
        *ret_scale = scale;
        *ret_shift = b ? lg_add(shift, lg_cast(b, dtype)) : shift;
        return *ret_shift != NULL;
}

static bool fill_batch(lg_module *m, const void *options)
{
        const batch *k = options;
        const lg_batch_norm_layer_options *o = &k->o;
        lg_shape s = LG_SHAPE(k->channels);
        bool affine = !o->no_affine, running = !o->no_running;
        const lg_dtype wide = o->dtype == LG_F16 || o->dtype == LG_BF16 ? LG_F32 : o->dtype;
        m->counts_batches = running;
        return (!affine || lg__module_constant(m, LG__PARAMETER, "weight", 1, s, o->dtype, o->device)) &&
               (!affine || lg__module_constant(m, LG__PARAMETER, "bias", 0, s, o->dtype, o->device)) &&
               (!running || lg__module_constant(m, LG__BUFFER, "running_mean", 0, s, wide, o->device)) &&
               (!running || lg__module_constant(m, LG__BUFFER, "running_var", 1, s, wide, o->device));
}

static lg_module *make_batch(lg_ctx *c, const char *op, const char *type, lg_forward_fn *forward, batch k)
{
        if (k.channels < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld channels; 1 or more", op, (long long)k.channels);
        if (!lg__module_dtype(c, op, k.o.dtype))
                return NULL;
        return lg__module_build(c, type, forward, &k, sizeof k, fill_batch, &k);
}

#define BATCH_NORM(dims)                                                                                               \
        lg_module *lg_nn_batch_norm##dims##d_with(lg_ctx *c, int64_t channels,                                         \
                                                  const lg_batch_norm_layer_options *options)                          \
        {                                                                                                              \
                static const char name[] = "lg_nn_batch_norm" #dims "d";                                               \
                batch k = {.channels = channels, .spaces = dims};                                                      \
                lg_module *m = lg__take(c, name, options, &k.o, sizeof k.o)                                            \
                                       ? make_batch(c, name, "BatchNorm" #dims "d", NULL, k)                           \
                                       : NULL;                                                                         \
                return lg__module_set_epilogues(m, batch_norm, LG__EPILOGUE_SUM | LG__EPILOGUE_RELU);                  \
        }
BATCH_NORM(1)
BATCH_NORM(2)
BATCH_NORM(3)

bool lg__norm_is_shared(const lg_module *m)
{
        return m->forward_epilogue == batch_norm && ((const batch *)m->user)->group;
}

bool lg_sync_batch_norm(lg_module *m, lg_group *g)
{
        if (!m || !lg__object_lasts(&m->object, "lg_sync_batch_norm") ||
            !lg__group_ready(m->object.ctx, g, "lg_sync_batch_norm") ||
            !lg__unrecorded(m->object.ctx, "lg_sync_batch_norm"))
                return false;
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                if (inner->forward_epilogue == batch_norm) {
                        ((batch *)inner->user)->group = lg_group_size(g) > 1 ? g->id : 0;
                        inner->changes++;
                }
        return true;
}

/* ---- norms within a sample ---- */

/* Moves a running statistic towards the mean over the samples of `now` (N, C), unrecorded. */
static bool follow(const batch *k, lg_tensor *running, lg_tensor *now)
{
        lg_tensor *to = lg_cast(lg_mean(now, .dims = LG_DIMS(0)), running->at.dtype);
        return lg_add_(running, lg_mul_scalar(lg_sub(to, running), lg__option(k->o.momentum, 0.1)));
}

static lg_tensor *instance_norm(lg_module *m, lg_list inputs, void *user)
{
        const batch *k = user;
        const lg_dims dims = k->spaces == 1 ? LG_DIMS(-1) : k->spaces == 2 ? LG_DIMS(-2, -1) : LG_DIMS(-3, -2, -1);
        lg_tensor *given = lg__module_input(m, inputs), *x = given, *y;
        lg_tensor *w = tensor(m, "weight"), *b = tensor(m, "bias");
        const bool alone = x && x->at.shape.ndim == k->spaces + 1, running = !k->o.no_running;
        x = alone ? lg_unsqueeze(x, 0) : x;
        if (!x)
                return NULL;
        if (x->at.shape.ndim != k->spaces + 2 || x->at.shape.size[1] != k->channels)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s; it takes %s with %lld channels%s", m->type,
                                lg__tensor_text(given).s, lg__images_text(k->spaces), (long long)k->channels,
                                lg__layout_hint(given, k->spaces, k->channels));
        if (running && !m->training)
                y = lg_batch_norm(x, w, b, .running_mean = tensor(m, "running_mean"),
                                  .running_var = tensor(m, "running_var"), .eps = k->o.eps);
        else
                y = lg_instance_norm(x, w, b, .eps = k->o.eps);
        if (y && running && m->training && !x->ctx->recomputing && lg__shape_numel(x->at.shape))
                lg_no_grad(x->ctx)
                {
                        lg_tensor *wide = lg__widened(x);
                        if (!follow(k, tensor(m, "running_mean"), lg_mean(wide, .dims = dims)) ||
                            !follow(k, tensor(m, "running_var"), lg_var(wide, .dims = dims)))
                                y = NULL;
                }
        return alone ? lg_squeeze(y, LG_DIMS(0)) : y;
}

#define INSTANCE_NORM(dims)                                                                                            \
        lg_module *lg_nn_instance_norm##dims##d_with(lg_ctx *c, int64_t channels,                                      \
                                                     const lg_instance_norm_layer_options *options)                    \
        {                                                                                                              \
                static const char name[] = "lg_nn_instance_norm" #dims "d";                                            \
                lg_instance_norm_layer_options o;                                                                      \
                if (!lg__take(c, name, options, &o, sizeof o))                                                         \
                        return NULL;                                                                                   \
                return make_batch(c, name, "InstanceNorm" #dims "d", instance_norm,                                    \
                                  (batch){channels,                                                                    \
                                          dims,                                                                        \
                                          0,                                                                           \
                                          {.eps = o.eps,                                                               \
                                           .momentum = o.momentum,                                                     \
                                           .no_affine = !o.affine,                                                     \
                                           .no_running = !o.running,                                                   \
                                           .dtype = o.dtype,                                                           \
                                           .device = o.device}});                                                      \
        }
INSTANCE_NORM(1)
INSTANCE_NORM(2)
INSTANCE_NORM(3)

typedef struct last {
        lg_shape shape;
        lg_layer_norm_layer_options o;
} last;

static lg_tensor *layer_norm(lg_module *m, lg_list inputs, void *user)
{
        const last *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_layer_norm(x, k->shape, tensor(m, "weight"), tensor(m, "bias"), .eps = k->o.eps) : NULL;
}

static lg_tensor *rms_norm(lg_module *m, lg_list inputs, void *user)
{
        const last *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_rms_norm(x, k->shape, tensor(m, "weight"), .eps = k->o.eps) : NULL;
}

static bool fill_last(lg_module *m, const void *options)
{
        const last *k = options;
        const lg_layer_norm_layer_options *o = &k->o;
        if (o->no_affine)
                return true;
        return lg__module_constant(m, LG__PARAMETER, "weight", 1, k->shape, o->dtype, o->device) &&
               (o->no_bias || lg__module_constant(m, LG__PARAMETER, "bias", 0, k->shape, o->dtype, o->device));
}

static lg_module *make_last(lg_ctx *c, const char *op, const char *type, lg_forward_fn *forward, last k)
{
        if (k.shape.ndim < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the shape has no dimensions", op);
        if (!lg__shape_valid(c, op, k.shape) || !lg__module_dtype(c, op, k.o.dtype))
                return NULL;
        return lg__module_build(c, type, forward, &k, sizeof k, fill_last, &k);
}

lg_module *lg_nn_layer_norm_with(lg_ctx *c, lg_shape shape, const lg_layer_norm_layer_options *options)
{
        last k = {.shape = shape};
        return lg__take(c, "lg_nn_layer_norm", options, &k.o, sizeof k.o)
                       ? make_last(c, "lg_nn_layer_norm", "LayerNorm", layer_norm, k)
                       : NULL;
}

lg_module *lg_nn_rms_norm_with(lg_ctx *c, lg_shape shape, const lg_rms_norm_layer_options *options)
{
        lg_rms_norm_layer_options o;
        if (!lg__take(c, "lg_nn_rms_norm", options, &o, sizeof o))
                return NULL;
        return make_last(c, "lg_nn_rms_norm", "RMSNorm", rms_norm,
                         (last){shape,
                                {.eps = o.eps,
                                 .no_affine = o.no_affine,
                                 .no_bias = true,
                                 .dtype = o.dtype,
                                 .device = o.device}});
}

typedef struct group {
        int64_t groups, channels;
        lg_group_norm_layer_options o;
} group;

static lg_tensor *group_norm(lg_module *m, lg_list inputs, void *user)
{
        const group *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_group_norm(x, k->groups, tensor(m, "weight"), tensor(m, "bias"), .eps = k->o.eps) : NULL;
}

static bool fill_group(lg_module *m, const void *options)
{
        const group *k = options;
        const lg_group_norm_layer_options *o = &k->o;
        lg_shape s = LG_SHAPE(k->channels);
        return o->no_affine || (lg__module_constant(m, LG__PARAMETER, "weight", 1, s, o->dtype, o->device) &&
                                lg__module_constant(m, LG__PARAMETER, "bias", 0, s, o->dtype, o->device));
}

lg_module *lg_nn_group_norm_with(lg_ctx *c, int64_t groups, int64_t channels,
                                 const lg_group_norm_layer_options *options)
{
        group k = {.groups = groups, .channels = channels};
        if (!lg__take(c, "lg_nn_group_norm", options, &k.o, sizeof k.o))
                return NULL;
        if (groups < 1 || channels < 1 || channels % groups)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_group_norm: %lld channels do not go into %lld groups",
                                (long long)channels, (long long)groups);
        if (!lg__module_dtype(c, "lg_nn_group_norm", k.o.dtype))
                return NULL;
        return lg__module_build(c, "GroupNorm", group_norm, &k, sizeof k, fill_group, &k);
}
