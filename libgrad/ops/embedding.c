/* embedding.c - rows of a table by index, and class indices as rows of zeros and a one; made of gather and its
 * counterpart. */
#include "gather.h"

static bool padding_of(const lg_tensor *weight, const lg_embedding_options *o, int64_t *ret_row)
{
        int64_t rows = weight->at.shape.size[0], i = lg__whole_option(o->padding_idx, 0);
        *ret_row = !o->padding_idx ? -1 : i < 0 ? i + rows : i;
        if (o->padding_idx && (*ret_row < 0 || *ret_row >= rows))
                return lg__fail(weight->ctx, LG_ERR_ARGUMENT,
                                "embedding: padding_idx is %lld, but weight has %lld rows", (long long)i,
                                (long long)rows);
        return true;
}

/* index's shape and one dimension more. */
static bool with_last(const lg_tensor *index, const char *op, int64_t size, lg_shape *ret)
{
        *ret = index->at.shape;
        if (ret->ndim == LG_MAX_DIMS)
                return lg__fail(index->ctx, LG_ERR_SHAPE, "%s: index is %s: it has %d dimensions already", op,
                                lg__tensor_text(index).s, LG_MAX_DIMS);
        ret->size[ret->ndim++] = size;
        return lg__shape_valid(index->ctx, op, *ret);
}

lg_tensor *lg_embedding_with(lg_tensor *weight, lg_tensor *index, const lg_embedding_options *options)
{
        lg_embedding_options o;
        lg_shape shape;
        int64_t padding;
        if (!weight || !index)
                return lg__fail(weight ? weight->ctx : lg__ctx_of(index), LG_ERR_ARGUMENT, "embedding: %s is NULL",
                                weight ? "index" : "weight");
        if (!lg__same_context(weight, index, "embedding", "index") || !lg__check(weight, "embedding", "weight") ||
            !lg__check(index, "embedding", "index") || !lg__take(weight->ctx, "embedding", options, &o, sizeof o))
                return NULL;
        if (weight->at.shape.ndim != 2)
                return lg__fail(weight->ctx, LG_ERR_SHAPE, "embedding: weight is %s; it is (rows, features)",
                                lg__tensor_text(weight).s);
        if (!padding_of(weight, &o, &padding) || !with_last(index, "embedding", weight->at.shape.size[1], &shape))
                return NULL;
        lg_tensor *flat = lg_reshape(index, LG_SHAPE(lg__shape_numel(index->at.shape)));
        lg_tensor *rows = lg__index_select(weight, 0, flat, "embedding", LG__FAULT_EMBEDDING);
        if (rows && rows->node && padding >= 0)
                rows = lg_where(lg_unsqueeze(lg_eq_scalar(flat, (double)padding), 1), lg_detach(rows), rows);
        return lg_reshape(rows, shape);
}

lg_tensor *lg_one_hot(lg_tensor *index, int64_t classes)
{
        lg_shape shape;
        if (!lg__check(index, "one_hot", "index"))
                return NULL;
        if (index->at.dtype != LG_I64)
                return lg__fail(index->ctx, LG_ERR_DTYPE,
                                "one_hot: index is %s; class indices are i64: lg_cast(index, LG_I64)",
                                lg__tensor_text(index).s);
        if (classes < 1)
                return lg__fail(index->ctx, LG_ERR_ARGUMENT, "one_hot: %lld classes; there must be at least 1",
                                (long long)classes);
        if (!with_last(index, "one_hot", classes, &shape))
                return NULL;
        lg_tensor *at = lg_unsqueeze(index, -1), *zeros = lg_expand(lg__constant(index, 0), shape);
        lg_tensor *ones = at ? lg_expand(lg__constant(index, 1), at->at.shape) : NULL;
        return lg__scatter_add(zeros, shape.ndim - 1, at, ones, LG__FAULT_ONE_HOT);
}
