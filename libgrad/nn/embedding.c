/* embedding.c - rows of a table by index. */
#include "nn.h"

typedef struct table {
        int64_t count;
        lg_embedding_layer_options o;
} table;

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        const table *t = user;
        lg_tensor *x = lg__module_input(m, inputs);
        lg_embedding_options o = {.index = x};
        if (t->o.padding) {
                o.padding_idx = t->o.padding_idx;
                o.padding_zero = t->o.padding_idx == 0;
        }
        return x ? lg_embedding_(m->parts->tensor, o) : NULL;
}

static bool fill(lg_module *m, const void *options)
{
        const table *t = options;
        lg_shaped o = {.shape = LG_SHAPE(t->count, t->o.dim), .dtype = t->o.dtype, .device = t->o.device};
        lg_tensor *w = lg_normal_(m->object.ctx, 0, 1, o);
        if (w && t->o.padding && !lg_fill_(lg_select(w, 0, t->o.padding_idx), 0))
                return false;
        return lg_module_add_parameter(m, "weight", w) != NULL;
}

lg_module *lg_nn_embedding_(lg_ctx *c, int64_t count, lg_embedding_layer_options o)
{
        if (!lg__ok(c))
                return NULL;
        if (count < 1 || o.dim < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_embedding: %lld rows of %lld; both must be 1 or more",
                                (long long)count, (long long)o.dim);
        if (o.padding && (o.padding_idx < 0 || o.padding_idx >= count))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_embedding: padding_idx %lld is not a row; there are %lld",
                                (long long)o.padding_idx, (long long)count);
        if (!lg__module_dtype(c, "lg_nn_embedding", o.dtype))
                return NULL;
        table t = {count, o};
        return lg__module_build(c, "Embedding", forward, &t, sizeof t, fill, &t);
}
