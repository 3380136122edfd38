/* norm.c - BatchNorm1d, BatchNorm2d, LayerNorm, RMSNorm, GroupNorm. */
#include "nn.h"

static lg_tensor *tensor(const lg_module *m, const char *name)
{
        return lg__module_tensor(m, name);
}

/* ---- over the batch ---- */

typedef struct batch {
        int spaces; /* 1 or 2 */
        lg_batch_norm_layer_options o;
} batch;

static lg_tensor *batch_norm(lg_module *m, lg_list inputs, void *user)
{
        const batch *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        if (!x)
                return NULL;
        int ndim = x->at.shape.ndim;
        if (k->spaces == 2 ? ndim != 4 : ndim != 2 && ndim != 3)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s; it takes %s", m->type, lg__tensor_text(x).s,
                                k->spaces == 2 ? "(N, C, H, W)" : "(N, C) or (N, C, L)");
        lg_batch_norm_options o = {.b = tensor(m, "bias"), .eps = k->o.eps, .momentum = k->o.momentum};
        o.running_mean = tensor(m, "running_mean");
        o.running_var = tensor(m, "running_var");
        o.training = m->training || k->o.no_running;
        return lg_batch_norm_(x, tensor(m, "weight"), o);
}

static bool fill_batch(lg_module *m, const void *options)
{
        const lg_batch_norm_layer_options *o = options;
        lg_shape s = LG_SHAPE(o->channels);
        bool affine = !o->no_affine, running = !o->no_running;
        return (!affine || lg__module_constant(m, LG__PARAMETER, "weight", 1, s, o->dtype, o->device)) &&
               (!affine || lg__module_constant(m, LG__PARAMETER, "bias", 0, s, o->dtype, o->device)) &&
               (!running || lg__module_constant(m, LG__BUFFER, "running_mean", 0, s, o->dtype, o->device)) &&
               (!running || lg__module_constant(m, LG__BUFFER, "running_var", 1, s, o->dtype, o->device));
}

static lg_module *make_batch(lg_ctx *c, const char *op, const char *type, int spaces, lg_batch_norm_layer_options o)
{
        if (!lg__ok(c))
                return NULL;
        if (o.channels < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld channels; 1 or more", op, (long long)o.channels);
        if (!lg__module_dtype(c, op, o.dtype))
                return NULL;
        batch k = {spaces, o};
        return lg__module_build(c, type, batch_norm, &k, sizeof k, fill_batch, &o);
}

lg_module *lg_nn_batch_norm1d_(lg_ctx *c, lg_batch_norm_layer_options o)
{
        return make_batch(c, "lg_nn_batch_norm1d", "BatchNorm1d", 1, o);
}

lg_module *lg_nn_batch_norm2d_(lg_ctx *c, lg_batch_norm_layer_options o)
{
        return make_batch(c, "lg_nn_batch_norm2d", "BatchNorm2d", 2, o);
}

/* ---- within a sample ---- */

static bool ends_with(lg_shape x, lg_shape end)
{
        int skip = x.ndim - end.ndim;
        for (int i = 0; i < end.ndim && skip >= 0; i++)
                if (x.size[skip + i] != end.size[i])
                        return false;
        return skip >= 0;
}

static lg_tensor *last_dims(lg_module *m, lg_list inputs, const lg_norm_layer_options *o)
{
        lg_tensor *x = lg__module_input(m, inputs);
        if (x && !ends_with(x->at.shape, o->shape))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s; its last dimensions must be %s", m->type,
                                lg__tensor_text(x).s, lg__shape_text(o->shape).s);
        return x;
}

static lg_tensor *layer_norm(lg_module *m, lg_list inputs, void *user)
{
        const lg_norm_layer_options *o = user;
        lg_tensor *x = last_dims(m, inputs, o);
        lg_layer_norm_options l = {.b = tensor(m, "bias"), .eps = o->eps};
        return x ? lg_layer_norm_(x, o->shape.ndim, tensor(m, "weight"), l) : NULL;
}

static lg_tensor *rms_norm(lg_module *m, lg_list inputs, void *user)
{
        const lg_norm_layer_options *o = user;
        lg_tensor *x = last_dims(m, inputs, o);
        lg_rms_norm_options l = {.w = tensor(m, "weight"), .eps = o->eps};
        return x ? lg_rms_norm_(x, o->shape.ndim, l) : NULL;
}

static bool fill_last(lg_module *m, const void *options)
{
        const lg_norm_layer_options *o = options;
        if (o->no_affine)
                return true;
        return lg__module_constant(m, LG__PARAMETER, "weight", 1, o->shape, o->dtype, o->device) &&
               (o->no_bias || lg__module_constant(m, LG__PARAMETER, "bias", 0, o->shape, o->dtype, o->device));
}

static lg_module *make_last(lg_ctx *c, const char *op, const char *type, lg_forward_fn *forward,
                            lg_norm_layer_options o)
{
        if (!lg__ok(c))
                return NULL;
        if (o.shape.ndim < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the shape has no dimensions", op);
        if (!lg__shape_valid(c, op, o.shape) || !lg__module_dtype(c, op, o.dtype))
                return NULL;
        return lg__module_build(c, type, forward, &o, sizeof o, fill_last, &o);
}

lg_module *lg_nn_layer_norm_(lg_ctx *c, lg_norm_layer_options o)
{
        return make_last(c, "lg_nn_layer_norm", "LayerNorm", layer_norm, o);
}

lg_module *lg_nn_rms_norm_(lg_ctx *c, lg_norm_layer_options o)
{
        o.no_bias = true;
        return make_last(c, "lg_nn_rms_norm", "RMSNorm", rms_norm, o);
}

typedef struct group {
        int64_t groups;
        lg_group_norm_layer_options o;
} group;

static lg_tensor *group_norm(lg_module *m, lg_list inputs, void *user)
{
        const group *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        lg_layer_norm_options l = {.b = tensor(m, "bias"), .eps = k->o.eps};
        return x ? lg_group_norm_(x, k->groups, tensor(m, "weight"), l) : NULL;
}

static bool fill_group(lg_module *m, const void *options)
{
        const lg_group_norm_layer_options *o = options;
        lg_shape s = LG_SHAPE(o->channels);
        return o->no_affine || (lg__module_constant(m, LG__PARAMETER, "weight", 1, s, o->dtype, o->device) &&
                                lg__module_constant(m, LG__PARAMETER, "bias", 0, s, o->dtype, o->device));
}

lg_module *lg_nn_group_norm_(lg_ctx *c, int64_t groups, lg_group_norm_layer_options o)
{
        if (!lg__ok(c))
                return NULL;
        if (groups < 1 || o.channels < 1 || o.channels % groups)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_group_norm: %lld channels do not go into %lld groups",
                                (long long)o.channels, (long long)groups);
        if (!lg__module_dtype(c, "lg_nn_group_norm", o.dtype))
                return NULL;
        group k = {groups, o};
        return lg__module_build(c, "GroupNorm", group_norm, &k, sizeof k, fill_group, &o);
}
