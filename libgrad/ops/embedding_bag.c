/* embedding_bag.c - looks up rows of a table by index and reduces those of each bag to one: their sum, mean or maximum.
 *
 * Made of embedding and, for sums, index_add by the number of the bag; for the maximum, bags are padded to one length.
 * 16-bit floats are computed in f32.
 */
#include "gather.h"

/* The bags of the indices `index` (n): the first index and the number of indices of each, and the bag of each index. */
typedef struct bags {
        lg_tensor *index, *weight;
        lg_tensor *scales;  /* (n), or NULL */
        lg_tensor *padding; /* bool (n), true for indices that are left out; NULL: none */
        lg_tensor *starts, *counts, *bag_of;
        int64_t n, count, longest; /* longest: number of indices of the longest bag; -1: not known */
} bags;

/* Describes the bags of an index (bags, length). */
static bool rows_as_bags(bags *b, int64_t length)
{
        lg_tensor *k = lg__numbers(b->index, b->count);
        b->longest = b->n ? length : 0;
        b->starts = lg_mul_scalar(k, (double)length);
        b->counts = k ? lg_full_like(k, (double)length) : NULL;
        b->bag_of = lg_reshape(lg_expand(lg_unsqueeze(k, 1), LG_SHAPE(b->count, length)), LG_SHAPE(b->n));
        return b->starts && b->counts && b->bag_of;
}

/* Describes the bags that begin at the offsets: the bag of an index is the number of offsets up to it, less 1. */
static bool bags_from(bags *b, lg_tensor *offsets, bool include_last)
{
        lg_tensor *zeros = lg_zeros_like(lg__numbers(offsets, b->n + 1)), *ones = lg_ones_like(offsets);
        lg_tensor *begun = lg_cumsum(lg__scatter_add(zeros, 0, offsets, ones, LG__ORIGIN_EMBEDDING), 0);
        lg_tensor *all = offsets;
        if (begun && !include_last)
                all = lg_cat(LG_LIST(offsets, lg_unsqueeze(lg__constant(offsets, (double)b->n), 0)), 0);
        b->starts = begun ? lg_slice(all, 0, 0, b->count) : NULL;
        b->counts = b->starts ? lg_sub(lg_slice(all, 0, 1, b->count + 1), b->starts) : NULL;
        b->bag_of = b->counts ? lg_sub_scalar(lg_slice(begun, 0, 0, b->n), 1) : NULL;
        return b->bag_of != NULL;
}

static lg_tensor *zero_rows(const bags *b, lg_tensor *like)
{
        return like ? lg_expand(lg__constant(like, 0), LG_SHAPE(b->count, b->weight->at.shape.size[1])) : NULL;
}

/* Returns the number of indices of each bag that are not left out. */
static lg_tensor *counts_of(const bags *b)
{
        if (!b->padding)
                return b->counts;
        lg_tensor *zeros = lg_zeros_like(b->counts);
        return zeros ? lg_index_add(zeros, 0, b->bag_of, lg_cast(lg_logical_not(b->padding), LG_I64)) : NULL;
}

static lg_tensor *sum_of_bags(const bags *b, bool mean)
{
        lg_tensor *rows = lg__widened(lg_embedding(b->index, b->weight));
        if (b->padding)
                rows = lg_masked_fill(rows, lg_unsqueeze(b->padding, 1), 0);
        if (b->scales && rows)
                rows = lg_mul(rows, lg_unsqueeze(lg_cast(b->scales, rows->at.dtype), 1));
        lg_tensor *zeros = zero_rows(b, rows), *sums = zeros ? lg_index_add(zeros, 0, b->bag_of, rows) : NULL;
        if (!sums || !mean)
                return sums;
        lg_tensor *counts = lg_maximum_scalar(counts_of(b), 1);
        return lg_div(sums, lg_cast(lg_unsqueeze(counts, 1), sums->at.dtype));
}

/* Pads all bags to the length of the longest, a number that the host reads if it is not known. */
static lg_tensor *max_of_bags(const bags *b)
{
        const int64_t longest = b->longest >= 0    ? b->longest
                                : b->n && b->count ? (int64_t)lg_item(lg_amax(b->counts))
                                                   : 0;
        if (lg_error(b->index->ctx) || longest < 1)
                return zero_rows(b, b->weight);
        const lg_shape shape = LG_SHAPE(b->count, longest);
        lg_tensor *k = lg__numbers(b->index, longest), *valid = lg_lt(k, lg_unsqueeze(b->counts, 1));
        lg_tensor *at = lg_minimum_scalar(lg_add(lg_unsqueeze(b->starts, 1), k), (double)(b->n - 1));
        at = lg_reshape(at, LG_SHAPE(b->count * longest));
        if (b->padding && at)
                valid = lg_logical_and(valid, lg_logical_not(lg_reshape(lg_index_select(b->padding, 0, at), shape)));
        lg_tensor *index = at ? lg_reshape(lg_index_select(b->index, 0, at), shape) : NULL;
        lg_tensor *rows = index ? lg_embedding(index, b->weight) : NULL;
        rows = lg_masked_fill(rows, lg_unsqueeze(lg_logical_not(valid), 2), -LG_INFINITY);
        lg_tensor *none = lg_logical_not(lg_any(valid, .dims = LG_DIMS(1), .keep_dim = true));
        return none && rows ? lg_masked_fill(lg_max(rows, 1), none, 0) : NULL;
}

/* ---- arguments ---- */

static bool check_shapes(const lg__call *call, const lg_embedding_bag_options *o)
{
        const lg_tensor *index = call->in[0], *weight = call->in[1], *offsets = call->in[2], *scales = call->in[3];
        lg_ctx *c = call->ctx;
        if (weight->at.shape.ndim != 2)
                return lg__fail(c, LG_ERR_SHAPE, "embedding_bag: weight is %s; it is (rows, features)",
                                lg__tensor_text(weight).s);
        if (index->at.shape.ndim != (offsets ? 1 : 2))
                return lg__fail(c, LG_ERR_SHAPE,
                                "embedding_bag: index is %s; it is (bags, length), or (n) with .offsets",
                                lg__tensor_text(index).s);
        if (offsets && offsets->at.shape.ndim != 1)
                return lg__fail(c, LG_ERR_SHAPE, "embedding_bag: .offsets is %s; it has one dimension",
                                lg__tensor_text(offsets).s);
        if (o->include_last_offset && (!offsets || offsets->at.shape.size[0] < 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "embedding_bag: .include_last_offset without a last offset");
        if (o->mode != LG_BAG_MEAN && o->mode != LG_BAG_SUM && o->mode != LG_BAG_MAX)
                return lg__fail(c, LG_ERR_ARGUMENT, "embedding_bag: there is no mode %d", (int)o->mode);
        if (scales && o->mode != LG_BAG_SUM)
                return lg__fail(c, LG_ERR_ARGUMENT, "embedding_bag: .per_sample_weights, but .mode is not LG_BAG_SUM");
        if (scales && !lg__shape_equal(scales->at.shape, index->at.shape))
                return lg__fail(c, LG_ERR_SHAPE, "embedding_bag: .per_sample_weights is %s, but index is %s",
                                lg__tensor_text(scales).s, lg__tensor_text(index).s);
        return true;
}

static lg_tensor *compose_embedding_bag(const lg__call *call)
{
        lg_embedding_bag_options o;
        lg_tensor *index = call->in[0], *weight = call->in[1], *offsets = call->in[2], *scales = call->in[3];
        int64_t padding;
        if (!lg__take(call->ctx, "embedding_bag", call->attributes, &o, sizeof o) || !check_shapes(call, &o) ||
            !lg__padding_row(weight, "embedding_bag", o.padding_idx, &padding))
                return NULL;
        const lg_shape flat = LG_SHAPE(lg__shape_numel(index->at.shape));
        bags b = {.index = lg_reshape(index, flat), .weight = weight, .n = flat.size[0], .longest = -1};
        if (o.max_norm != 0 && (!b.index || !lg__limit_rows(weight, b.index, o.max_norm, o.norm_type, "embedding_bag")))
                return NULL;
        b.count = offsets ? offsets->at.shape.size[0] - o.include_last_offset : index->at.shape.size[0];
        b.scales = scales ? lg_reshape(scales, flat) : NULL;
        b.padding = o.padding_idx ? lg_eq_scalar(b.index, (double)padding) : NULL;
        if (!(offsets ? bags_from(&b, offsets, o.include_last_offset) : rows_as_bags(&b, index->at.shape.size[1])))
                return NULL;
        lg_tensor *y = o.mode == LG_BAG_MAX ? max_of_bags(&b) : sum_of_bags(&b, o.mode == LG_BAG_MEAN);
        return y ? lg__made(lg_cast(y, weight->at.dtype), weight) : NULL;
}

/* Has a form for an index (bags, length). */
static bool form(lg__form *f, const lg__call *call)
{
        static const char *const reduce[] = {[LG_BAG_MEAN] = "Mean", [LG_BAG_SUM] = "Sum", [LG_BAG_MAX] = "Max"};
        lg_embedding_bag_options o;
        int64_t padding;
        lg__take_without(call->attributes, &o, sizeof o);
        if (call->in[2] || call->in[0]->at.shape.size[1] == 0 ||
            !lg__padding_row(call->in[1], "embedding_bag", o.padding_idx, &padding))
                return false;
        lg__form_add(f, "rows = Gather(weight, index, axis=0); ");
        if (call->in[3])
                lg__form_add(f, "rows = Mul(rows, Unsqueeze(CastLike(per_sample_weights, weight), [2])); ");
        if (!o.padding_idx) {
                lg__form_add(f, "Reduce%s(rows, [1], keepdims=0)", reduce[o.mode]);
                return true;
        }
        lg__form_add(f,
                     "seen = CastLike(Unsqueeze(Not(Equal(Cast(index, to=i64), <%lld>)), [2]), weight); "
                     "sum = ReduceSum(Mul(rows, seen), [1], keepdims=0); ",
                     (long long)padding);
        lg__form_add(f, o.mode == LG_BAG_MEAN ? "Div(sum, Max(ReduceSum(seen, [1], keepdims=0), CastLike(<1>, weight)))"
                                              : "sum");
        return o.mode != LG_BAG_MAX;
}

LG__DEFINE(embedding_bag, .compose = compose_embedding_bag, .form = form,
           LG__OPERANDS({"index", LG__INDEX}, {"weight", LG__FLOAT}, {"offsets", LG__INDEX, .optional = true},
                        {"per_sample_weights", LG__FLOAT, .optional = true}))

lg_tensor *lg_embedding_bag_with(lg_tensor *index, lg_tensor *weight, const lg_embedding_bag_options *options)
{
        lg_embedding_bag_options o;
        lg__take_without(options, &o, sizeof o);
        return LG__APPLY(embedding_bag, options, index, weight, o.offsets, o.per_sample_weights);
}
