/* embedding.c - embedding selects rows of a table by index; one_hot makes rows of zeros with a 1 at the index. Both
 * are made of gather and scatter_add. */
#include "gather.h"

/* Sets *ret to index's shape with one more dimension, of this size. Returns false and sets an error if too large. */
static bool with_last(const lg_tensor *index, const char *op, int64_t size, lg_shape *ret)
{
        *ret = index->at.shape;
        if (ret->ndim == LG_MAX_DIMS)
                return lg__fail(index->ctx, LG_ERR_SHAPE, "%s: index is %s: it has %d dimensions already", op,
                                lg__tensor_text(index).s, LG_MAX_DIMS);
        ret->size[ret->ndim++] = size;
        return lg__shape_valid(index->ctx, op, *ret);
}

bool lg__padding_row(const lg_tensor *weight, const char *op, int64_t padding_idx, int64_t *ret)
{
        const int64_t rows = weight->at.shape.size[0], i = lg__whole_option(padding_idx, 0);
        *ret = i < 0 ? i + rows : i;
        return !padding_idx || (*ret >= 0 && *ret < rows) ||
               lg__fail(weight->ctx, LG_ERR_ARGUMENT, "%s: padding_idx is %lld, but weight has %lld rows", op,
                        (long long)i, (long long)rows);
}

bool lg__is_max_norm(lg_ctx *c, const char *op, double max_norm, double norm_type)
{
        return ((max_norm == LG_ZERO || max_norm >= 0) && lg__option(norm_type, 2) > 0) ||
               lg__fail(c, LG_ERR_ARGUMENT,
                        "%s: max_norm is %g and norm_type %g; max_norm is 0 or more, norm_type above 0", op,
                        lg__option(max_norm, 0), lg__option(norm_type, 2));
}

/* A row that is named twice is written twice, with the same values. */
bool lg__limit_rows(lg_tensor *weight, lg_tensor *index, double max_norm, double norm_type, const char *op)
{
        lg_ctx *c = weight->ctx;
        if (!lg__is_max_norm(c, op, max_norm, norm_type))
                return false;
        if (c->unread)
                return lg__fail(c, LG_ERR_STATE, "%s: .max_norm changes the weight, which %s cannot record", op,
                                c->unread);
        const bool was = lg_set_grad_mode(c, false);
        const lg_scope scope = lg_scope_begin(c);
        bool ok = lg__may_change(weight, op, "weight");
        if (ok && lg__shape_numel(index->at.shape) && weight->at.shape.size[1]) {
                lg_tensor *rows = lg__index_select(weight, 0, index, LG__ORIGIN_EMBEDDING);
                rows = rows ? lg_renorm(rows, lg__option(norm_type, 2), 0, lg__option(max_norm, 0)) : NULL;
                ok = rows && lg__scatter_rows(weight, index, rows, LG__ORIGIN_EMBEDDING);
        }
        lg_set_grad_mode(c, was);
        lg_scope_end(c, scope);
        return ok;
}

static lg_tensor *compose_embedding(const lg__call *call)
{
        lg_embedding_options o;
        lg_tensor *index = call->in[0], *weight = call->in[1];
        lg_shape shape;
        int64_t padding;
        if (!lg__take(call->ctx, "embedding", call->attributes, &o, sizeof o))
                return NULL;
        if (weight->at.shape.ndim != 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "embedding: weight is %s; it is (rows, features)",
                                lg__tensor_text(weight).s);
        if (!lg__padding_row(weight, "embedding", o.padding_idx, &padding) ||
            !with_last(index, "embedding", weight->at.shape.size[1], &shape))
                return NULL;
        lg_tensor *flat = lg_reshape(index, LG_SHAPE(lg__shape_numel(index->at.shape)));
        if (o.max_norm != 0 && (!flat || !lg__limit_rows(weight, flat, o.max_norm, o.norm_type, "embedding")))
                return NULL;
        lg_tensor *y = lg__index_select(weight, 0, flat, LG__ORIGIN_EMBEDDING);
        if (y && y->node && o.padding_idx)
                y = lg_where(lg_unsqueeze(lg_eq_scalar(flat, (double)padding), 1), lg_detach(y), y);
        return lg_reshape(y, shape);
}

/* With max_norm, a forward changes the weights. */
static bool form(lg__form *f, const lg__call *call)
{
        lg_embedding_options o;
        lg__take_without(call->attributes, &o, sizeof o);
        lg__form_add(f, "Gather(weight, index, axis=0)");
        return o.max_norm == 0;
}

LG__DEFINE(embedding, .compose = compose_embedding, LG__OPERANDS({"index", LG__INDEX}, {"weight"}), .form = form)

lg_tensor *lg_embedding_with(lg_tensor *index, lg_tensor *weight, const lg_embedding_options *options)
{
        return LG__APPLY(embedding, options, index, weight);
}

static lg_tensor *compose_one_hot(const lg__call *call)
{
        const int64_t classes = *(const int64_t *)call->attributes;
        lg_tensor *index = call->in[0];
        lg_shape shape;
        if (classes < 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "one_hot: %lld classes; there must be at least 1",
                                (long long)classes);
        if (!with_last(index, "one_hot", classes, &shape))
                return NULL;
        lg_tensor *at = lg_unsqueeze(index, -1), *zeros = lg_expand(lg__constant(index, 0), shape);
        lg_tensor *ones = at ? lg_expand(lg__constant(index, 1), at->at.shape) : NULL;
        return lg__scatter_add(zeros, shape.ndim - 1, at, ones, LG__ORIGIN_ONE_HOT);
}

LG__COMPOSITE(one_hot, {"index", LG__INDEX})

lg_tensor *lg_one_hot(lg_tensor *index, int64_t classes)
{
        return LG__APPLY(one_hot, &classes, index);
}
