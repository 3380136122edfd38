/* embedding.c - Embedding and EmbeddingBag: look up rows of a table of weights by index. */
#include "graph/op.h"
#include "nn.h"

typedef struct table {
        int64_t count, dim, padding_idx;
        lg_dtype dtype;
        lg_device device;
        lg_bag_mode mode;         /* of bags */
        bool include_last_offset; /* of bags */
        double max_norm, norm_type;
} table;

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        const table *t = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_embedding(x, m->parts->tensor, .padding_idx = t->padding_idx, .max_norm = t->max_norm,
                                .norm_type = t->norm_type)
                 : NULL;
}

static lg_tensor *forward_bags(lg_module *m, lg_list inputs, void *user)
{
        const table *t = user;
        if (inputs.count < 1 || inputs.count > 3)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                                "lg_forward: EmbeddingBag takes an index, offsets and weights, %lld inputs were given",
                                (long long)inputs.count);
        lg_tensor *second = inputs.count > 1 ? inputs.items[1] : NULL;
        const bool weights_only = second && lg_dtype_of(second) != LG_I64; /* of an index (bags, length) */
        return lg_embedding_bag(inputs.items[0], m->parts->tensor, .offsets = weights_only ? NULL : second,
                                .per_sample_weights = weights_only        ? second
                                                      : inputs.count == 3 ? inputs.items[2]
                                                                          : NULL,
                                .mode = t->mode, .padding_idx = t->padding_idx,
                                .include_last_offset = t->include_last_offset, .max_norm = t->max_norm,
                                .norm_type = t->norm_type);
}

static bool fill(lg_module *m, const void *options)
{
        const table *t = options;
        lg_tensor *w =
                lg_normal(m->object.ctx, 0, 1, LG_SHAPE(t->count, t->dim), .dtype = t->dtype, .device = t->device);
        if (w && t->padding_idx && !lg_fill_(lg_select(w, 0, lg__whole_option(t->padding_idx, 0)), 0))
                return false;
        return lg_module_add_parameter(m, "weight", w) != NULL;
}

static lg_module *build(lg_ctx *c, const char *name, const char *type, lg_forward_fn *run, const table *t)
{
        const int64_t index = lg__whole_option(t->padding_idx, 0);
        if (t->count < 1 || t->dim < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld rows of %lld; both must be 1 or more", name,
                                (long long)t->count, (long long)t->dim);
        if (index < -t->count || index >= t->count)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: padding_idx %lld is not a row; there are %lld", name,
                                (long long)index, (long long)t->count);
        if (!lg__module_dtype(c, name, t->dtype) || !lg__is_max_norm(c, name, t->max_norm, t->norm_type))
                return NULL;
        return lg__module_build(c, type, run, t, sizeof *t, fill, t);
}

lg_module *lg_nn_embedding_with(lg_ctx *c, int64_t count, int64_t dim, const lg_embedding_layer_options *options)
{
        lg_embedding_layer_options o;
        if (!lg__take(c, "lg_nn_embedding", options, &o, sizeof o))
                return NULL;
        const table t = {count, dim, o.padding_idx, o.dtype, o.device, LG_BAG_MEAN, false, o.max_norm, o.norm_type};
        return build(c, "lg_nn_embedding", "Embedding", forward, &t);
}

lg_module *lg_nn_embedding_bag_with(lg_ctx *c, int64_t count, int64_t dim,
                                    const lg_embedding_bag_layer_options *options)
{
        lg_embedding_bag_layer_options o;
        if (!lg__take(c, "lg_nn_embedding_bag", options, &o, sizeof o))
                return NULL;
        const table t = {count,      dim,        o.padding_idx, o.dtype, o.device, o.mode, o.include_last_offset,
                         o.max_norm, o.norm_type};
        if (o.mode != LG_BAG_MEAN && o.mode != LG_BAG_SUM && o.mode != LG_BAG_MAX)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_embedding_bag: there is no mode %d", (int)o.mode);
        return build(c, "lg_nn_embedding_bag", "EmbeddingBag", forward_bags, &t);
}
