/* unique.c - distinct values, and searching in sorted ones: unique, unique_consecutive, searchsorted, bucketize, isin.
 *
 * Slices are compared as whole numbers, keys in their order: the elements of each column are replaced by their rank
 * among the column's distinct values, and neighbouring columns are joined pairwise to pairs of ranks, which are ranked
 * again, until one column is left.
 */
#include "gather.h"

/* ---- distinct values ---- */

/* Returns, for sorted lines, 1 where an element differs from the one before along dim, and 0 first, as i64. */
static lg_tensor *changes(lg_tensor *sorted, int dim, int64_t n)
{
        lg_tensor *differs = lg_ne(lg_slice(sorted, dim, 1, n), lg_slice(sorted, dim, 0, n - 1));
        lg_shape s = sorted->at.shape;
        s.size[dim] = 1;
        lg_tensor *first = differs ? lg_expand(lg__constant(differs, 0), s) : NULL;
        return first ? lg_cast(lg_cat(LG_LIST(first, differs), dim), LG_I64) : NULL;
}

/* Returns the ranks of the elements of each line of x (lines, n) among the distinct ones of the line. */
static lg_tensor *ranks_of(lg_tensor *x, int64_t n)
{
        lg_tensor *order = NULL, *sorted = lg_sort(x, 1, .indices = &order);
        lg_tensor *ranks = sorted ? lg_cumsum(changes(sorted, 1, n), 1) : NULL;
        return ranks ? lg_scatter(ranks, 1, order, ranks) : NULL;
}

/* Returns keys (n), whose order is that of the rows (n, m), where n and m are not 0. */
static lg_tensor *keys_of(lg_tensor *rows)
{
        const int64_t n = rows->at.shape.size[0];
        lg_tensor *ranks = ranks_of(lg_transpose(rows, 0, 1), n);
        for (int64_t m = rows->at.shape.size[1]; m > 1 && ranks; m = m / 2 + m % 2) {
                lg_tensor *left = lg_slice(ranks, 0, 0, m / 2 * 2, .step = 2);
                lg_tensor *right = lg_slice(ranks, 0, 1, m / 2 * 2, .step = 2);
                lg_tensor *rest = lg_slice(ranks, 0, m / 2 * 2, m);
                lg_tensor *pairs = ranks_of(lg_add(lg_mul_scalar(left, (double)n), right), n);
                ranks = pairs ? lg_cat(LG_LIST(pairs, rest), 0) : NULL;
        }
        return ranks ? lg_select(ranks, 0, 0) : NULL;
}

/* Returns x as rows (n, m): the elements, or the slices along a dimension. */
static lg_tensor *rows_of(const lg__call *call, const lg_unique_options *o, int *ret_dim)
{
        lg_tensor *x = call->in[0];
        lg_dims order = LG_ALL_DIMS;
        const int64_t all = lg__shape_numel(x->at.shape);
        if ((unsigned)o->dims.count > 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: .dims lists %d dimensions; at most one is possible",
                                call->op->name, o->dims.count);
        if (o->dims.count == 0)
                return lg_reshape(x, LG_SHAPE(all, 1));
        if ((*ret_dim = lg__dim(call->ctx, call->op->name, o->dims.dim[0], x->at.shape.ndim)) < 0)
                return NULL;
        const int64_t n = x->at.shape.size[*ret_dim];
        int64_t m = 1;
        for (int i = 0; i < x->at.shape.ndim; i++) {
                m *= i == *ret_dim ? 1 : x->at.shape.size[i];
                order.dim[order.count++] = i == 0 ? *ret_dim : i <= *ret_dim ? i - 1 : i;
        }
        if (m == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: the slices along dimension %d have no elements",
                                call->op->name, lg__tensor_text(x).s, *ret_dim);
        return lg_reshape(lg_permute(x, order), LG_SHAPE(n, m));
}

/* Distinct rows: the first place of each, how often it occurs, and which one each row is. */
typedef struct distinct {
        lg_tensor *places, *counts, *inverse;
} distinct;

static bool find_distinct(lg_tensor *rows, bool consecutive, distinct *ret)
{
        const int64_t n = rows->at.shape.size[0], m = rows->at.shape.size[1];
        lg_tensor *order = NULL, *fresh = NULL;
        if (n == 0) {
                ret->places = ret->counts = ret->inverse = lg__numbers(rows, 0);
                return ret->places != NULL;
        }
        if (consecutive) {
                lg_tensor *changed = changes(rows, 0, n);
                fresh = changed ? lg_cast(lg_any(changed, .dims = LG_DIMS(1)), LG_I64) : NULL;
        } else {
                lg_tensor *keys = m == 1 ? lg__flat(rows) : keys_of(rows);
                lg_tensor *sorted = keys ? lg_sort(keys, 0, .indices = &order) : NULL;
                fresh = sorted ? changes(sorted, 0, n) : NULL;
        }
        lg_tensor *number = fresh ? lg_cumsum(fresh, 0) : NULL;
        lg_tensor *later = number ? lg__flat(lg_nonzero(fresh)) : NULL;
        lg_tensor *zero = later ? lg_reshape(lg__constant(later, 0), LG_SHAPE(1)) : NULL;
        lg_tensor *end = zero ? lg_reshape(lg__constant(later, (double)n), LG_SHAPE(1)) : NULL;
        lg_tensor *starts = end ? lg_cat(LG_LIST(zero, later), 0) : NULL;
        ret->counts = starts ? lg_sub(lg_cat(LG_LIST(later, end), 0), starts) : NULL;
        ret->places = consecutive || !starts ? starts : lg_gather(order, 0, starts);
        ret->inverse = consecutive || !number ? number : lg_scatter(number, 0, order, number);
        return ret->counts && ret->places && ret->inverse;
}

static lg_tensor *compose_unique(const lg__call *call)
{
        lg_unique_options o;
        distinct d = {0};
        int dim = 0;
        if (!lg__take(call->ctx, call->op->name, call->attributes, &o, sizeof o))
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *x = lg_detach(call->in[0]), *rows = x ? rows_of(call, &o, &dim) : NULL, *y = NULL;
        if (rows && find_distinct(lg_detach(rows), call->op == LG__OP(unique_consecutive), &d)) {
                y = o.dims.count ? lg_index_select(x, dim, d.places) : lg_gather(lg__flat(x), 0, d.places);
                d.inverse = o.dims.count ? d.inverse : lg_reshape(d.inverse, x->at.shape);
        }
        if (y && o.inverse)
                *o.inverse = lg_escape(d.inverse);
        if (y && o.counts)
                *o.counts = lg_escape(d.counts == d.inverse ? lg_copy(d.counts, LG_NO_DEVICE) : d.counts);
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

#define UNIQUE(of)                                                                                                     \
        LG__DEFINE(of, .compose = compose_unique, LG__OPERANDS({"x"}))                                                 \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_unique_options *options)                                      \
        {                                                                                                              \
                return LG__APPLY(of, options, x);                                                                      \
        }
UNIQUE(unique)
UNIQUE(unique_consecutive)

/* ---- searching ---- */

#define SEARCH_FIELDS(FIELD) FIELD(bool, right, false)
LG__ATTRIBUTES(search, SEARCH_FIELDS)

static bool infer_searchsorted(lg__call *call)
{
        const lg_tensor *sorted = call->in[0], *values = call->in[1];
        lg_shape s = sorted->at.shape, v = values->at.shape;
        const bool lines = s.ndim > 1 && s.ndim == v.ndim;
        call->out_at[0] = (lg__layout){.dtype = LG_I64, .shape = v};
        if (lines)
                s.size[s.ndim - 1] = v.size[v.ndim - 1];
        return s.ndim == 1 || (lines && lg__shape_equal(s, v)) ||
               lg__fail(call->ctx, LG_ERR_SHAPE,
                        "searchsorted: sorted is %s and values is %s; sorted is 1-d, or they differ in the size of the "
                        "last dimension only",
                        lg__tensor_text(sorted).s, lg__tensor_text(values).s);
}

static bool forward_searchsorted(lg__call *call)
{
        const lg_tensor *sorted = call->in[0], *values = call->in[1];
        const lg_shape s = sorted->at.shape;
        const bool lines = s.ndim > 1;
        const int64_t count = lg__shape_numel(values->at.shape);
        lg_searchsorted_args k = {.dtype = sorted->at.dtype,
                                  .n = s.size[s.ndim - 1],
                                  .count = lines ? values->at.shape.size[s.ndim - 1] : count,
                                  .right = ((const search_attributes *)call->attributes)->right,
                                  .sorted = lg__data(sorted),
                                  .values = lg__data(values),
                                  .places = lg__data(call->out[0])};
        k.lines = k.count ? count / k.count : 0;
        return count == 0 || LG__RUN(call->device, "searchsorted", searchsorted, &k);
}

LG__DEFINE(searchsorted, .flags = LG__PROMOTE,
           LG__OPERANDS({"sorted", LG__WHOLE, LG__ROW_MAJOR}, {"values", LG__WHOLE, LG__ROW_MAJOR}),
           LG__RESULTS({"places"}), LG__HAS(search), .infer = infer_searchsorted, .forward = forward_searchsorted)

lg_tensor *lg_searchsorted_with(lg_tensor *sorted, lg_tensor *values, const lg_searchsorted_options *options)
{
        lg_searchsorted_options o;
        if (!lg__take(lg__ctx_of(sorted), "searchsorted", options, &o, sizeof o))
                return NULL;
        return LG__APPLY(searchsorted, &(search_attributes){o.right}, sorted, values);
}

static lg_tensor *compose_bucketize(const lg__call *call)
{
        lg_searchsorted_options o;
        lg_tensor *boundaries = call->in[1];
        if (!lg__take(call->ctx, "bucketize", call->attributes, &o, sizeof o))
                return NULL;
        if (boundaries->at.shape.ndim != 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "bucketize: boundaries is %s, not of one dimension",
                                lg__tensor_text(boundaries).s);
        return LG__APPLY(searchsorted, &(search_attributes){o.right}, boundaries, call->in[0]);
}

LG__COMPOSITE(bucketize, {"x"}, {"boundaries"})

lg_tensor *lg_bucketize_with(lg_tensor *x, lg_tensor *boundaries, const lg_searchsorted_options *options)
{
        return LG__APPLY(bucketize, options, x, boundaries);
}

static lg_tensor *compose_isin(const lg__call *call)
{
        lg_isin_options o;
        lg_tensor *x = call->in[0], *y = NULL;
        const int64_t n = lg__shape_numel(call->in[1]->at.shape);
        if (!lg__take(call->ctx, "isin", call->attributes, &o, sizeof o))
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *sorted = n ? lg_sort(lg__flat(call->in[1]), 0) : NULL;
        if (n == 0)
                y = lg_zeros_like(x, .dtype = LG_BOOL);
        else if (sorted) {
                lg_tensor *place = LG__APPLY(searchsorted, &(search_attributes){false}, sorted, lg__flat(x));
                place = place ? lg_minimum_scalar(place, (double)(n - 1)) : NULL;
                y = place ? lg_eq(lg_reshape(lg_gather(sorted, 0, place), x->at.shape), x) : NULL;
        }
        y = y && o.invert ? lg_logical_not(y) : y;
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__COMPOSITE(isin, {"x"}, {"test"})

lg_tensor *lg_isin_with(lg_tensor *x, lg_tensor *test, const lg_isin_options *options)
{
        return LG__APPLY(isin, options, x, test);
}
