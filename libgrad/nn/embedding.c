/* embedding.c - Embedding: looks up rows of a table of weights by index. */
#include "nn.h"

typedef struct table {
        int64_t count, dim;
        lg_embedding_layer_options o;
} table;

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        const table *t = user;
        lg_tensor *x = lg__module_input(m, inputs);
        return x ? lg_embedding(x, m->parts->tensor, .padding_idx = t->o.padding_idx) : NULL;
}

static bool fill(lg_module *m, const void *options)
{
        const table *t = options;
        lg_tensor *w =
                lg_normal(m->object.ctx, 0, 1, LG_SHAPE(t->count, t->dim), .dtype = t->o.dtype, .device = t->o.device);
        if (w && t->o.padding_idx && !lg_fill_(lg_select(w, 0, lg__whole_option(t->o.padding_idx, 0)), 0))
                return false;
        return lg_module_add_parameter(m, "weight", w) != NULL;
}

lg_module *lg_nn_embedding_with(lg_ctx *c, int64_t count, int64_t dim, const lg_embedding_layer_options *options)
{
        table t = {.count = count, .dim = dim};
        if (!lg__take(c, "lg_nn_embedding", options, &t.o, sizeof t.o))
                return NULL;
        const int64_t index = lg__whole_option(t.o.padding_idx, 0);
        if (count < 1 || dim < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_embedding: %lld rows of %lld; both must be 1 or more",
                                (long long)count, (long long)dim);
        if (index < -count || index >= count)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_embedding: padding_idx %lld is not a row; there are %lld",
                                (long long)index, (long long)count);
        if (!lg__module_dtype(c, "lg_nn_embedding", t.o.dtype))
                return NULL;
        return lg__module_build(c, "Embedding", forward, &t, sizeof t, fill, &t);
}
