/* order.c - order statistics along a dimension: kthvalue, median, mode and quantiles.
 *
 * Made of sort and gather: x is sorted without recording, the index of the element is found in the order, and gather
 * takes the element, whose gradient is thus that of gather. Quantiles interpolate between two elements by lerp.
 */
#include <math.h>
#include "gather.h"

/* Returns x's element at the index, which has size 1 along dim, and stores the index unless ret_index is NULL. */
static lg_tensor *chosen(lg_tensor *x, int dim, lg_tensor *index, bool keep_dim, lg_tensor **ret_index)
{
        lg_tensor *y = index ? lg__gather(x, dim, index, LG__ORIGIN_GATHER) : NULL;
        if (y && x->at.shape.ndim && !keep_dim) {
                y = lg_squeeze(y, LG_DIMS(dim));
                index = lg_squeeze(index, LG_DIMS(dim));
        }
        if (ret_index && y && !(*ret_index = lg_contiguous(index)))
                return NULL;
        return y;
}

/* Moves a result and its index out of the innermost scope, and stores the index unless ret_index is NULL. */
static lg_tensor *escaped(lg_tensor *y, lg_tensor *index, lg_tensor **ret_index)
{
        if (y && ret_index)
                *ret_index = lg_escape(index);
        return lg_escape(y);
}

static int64_t size_along(const lg_tensor *x, int dim)
{
        return x->at.shape.ndim ? x->at.shape.size[dim] : 1;
}

/* Returns the part of t from index i on, of size 1 along dim; a 0-d t itself. */
static lg_tensor *one_of(lg_tensor *t, int dim, int64_t i)
{
        return t && t->at.shape.ndim ? lg_slice(t, dim, i, i + 1) : t;
}

/* Returns whether dimension dim of x has an element, or the result none; if not, sets an error. */
static bool has_elements(const lg__call *call, const lg_tensor *x, int dim)
{
        lg_shape rest = x->at.shape;
        if (rest.ndim)
                rest.size[dim] = 1;
        return size_along(x, dim) > 0 || lg__shape_numel(rest) == 0 ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: dimension %d has no element to choose from",
                        call->op->name, lg__tensor_text(x).s, dim);
}

/* Returns a tensor without elements, of the shape of x with size 1 along dim. */
static lg_tensor *no_index(const lg_tensor *x, int dim)
{
        lg_shape s = x->at.shape;
        s.size[dim] = 1;
        return lg_zeros(x->ctx, s, .dtype = LG_I64, .device = x->storage->device->id);
}

/* ---- kthvalue and mode ---- */

typedef struct line_call {
        int dim;
        int64_t k;
        const lg_kthvalue_options *options;
} line_call;

static lg_tensor *compose_kthvalue(const lg__call *call)
{
        const line_call *given = call->attributes;
        lg_tensor *x = call->in[0], *order = NULL, *index = NULL;
        const int dim = lg__line_dim(x, "kthvalue", given->dim);
        lg_kthvalue_options o;
        if (dim < 0 || !lg__take(call->ctx, "kthvalue", given->options, &o, sizeof o))
                return NULL;
        if (given->k < 1 || given->k > size_along(x, dim))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "kthvalue: k is %lld; it is from 1 to the size of dimension %d of x, which is %s",
                                (long long)given->k, dim, lg__tensor_text(x).s);
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *sorted = lg_topk(lg_detach(x), given->k, dim, .smallest = true, .indices = &order);
        lg_tensor *y = sorted ? chosen(x, dim, one_of(order, dim, given->k - 1), o.keep_dim, &index) : NULL;
        y = escaped(y, index, o.indices);
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__COMPOSITE(kthvalue, {"x"})

lg_tensor *lg_kthvalue_with(lg_tensor *x, int64_t k, int dim, const lg_kthvalue_options *options)
{
        return LG__APPLY(kthvalue, (&(line_call){dim, k, options}), x);
}

/* Returns the index of the last element of the first longest run of equal elements in x, which has dimensions. */
static lg_tensor *longest_run(lg_tensor *x, int dim)
{
        const int64_t n = x->at.shape.size[dim];
        lg_tensor *order = NULL, *s = lg_sort(lg_detach(x), dim, .indices = &order);
        lg_shape line = {.ndim = x->at.shape.ndim};
        for (int i = 0; i < line.ndim; i++)
                line.size[i] = i == dim ? n : 1;
        lg_tensor *at = s ? lg_reshape(lg__numbers(x, n), line) : NULL;
        lg_tensor *begins = at ? lg_ne(lg_slice(s, dim, 1, n), lg_slice(s, dim, 0, n - 1)) : NULL;
        lg_tensor *start = begins ? lg_mul(lg_slice(at, dim, 1, n), begins) : NULL;
        start = start ? lg_cummax(start, dim) : NULL;
        lg_tensor *before = start ? lg_sub(lg_slice(at, dim, 1, n), start) : NULL;
        lg_tensor *one = before ? one_of(order, dim, 0) : NULL;
        lg_tensor *first = one ? lg_expand(lg__constant(at, 0), one->at.shape) : NULL;
        lg_tensor *runs = first ? lg_cat(LG_LIST(first, before), dim) : NULL;
        lg_tensor *top = runs ? lg_argmax(runs, .dims = LG_DIMS(dim), .keep_dim = true) : NULL;
        return top ? lg_gather(order, dim, top) : NULL;
}

static lg_tensor *compose_mode(const lg__call *call)
{
        const line_call *given = call->attributes;
        lg_tensor *x = call->in[0];
        const int dim = lg__line_dim(x, "mode", given->dim);
        lg_kthvalue_options o;
        if (dim < 0 || !lg__take(call->ctx, "mode", given->options, &o, sizeof o) || !has_elements(call, x, dim))
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *index = x->at.shape.ndim == 0     ? lg_zeros_like(x, .dtype = LG_I64)
                           : size_along(x, dim) == 0 ? no_index(x, dim)
                                                     : longest_run(x, dim);
        lg_tensor *y = escaped(chosen(x, dim, index, o.keep_dim, &index), index, o.indices);
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__COMPOSITE(mode, {"x"})

lg_tensor *lg_mode_with(lg_tensor *x, int dim, const lg_kthvalue_options *options)
{
        return LG__APPLY(mode, (&(line_call){dim, 0, options}), x);
}

/* ---- medians ---- */

/* Sets *ret_dim to the dimension that .dims lists and returns x, or returns x as one dimension if it lists none. */
static lg_tensor *line_of(const lg__call *call, lg_dims dims, int *ret_dim)
{
        lg_tensor *x = call->in[0];
        *ret_dim = 0;
        if ((unsigned)dims.count > 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: .dims lists %d dimensions; at most one is possible",
                                call->op->name, dims.count);
        if (dims.count == 0)
                return lg__flat(x);
        *ret_dim = lg__line_dim(x, call->op->name, dims.dim[0]);
        return *ret_dim < 0 ? NULL : x;
}

/* Returns the result for a flat x, 0-d, as a result for x given, in which .keep_dim keeps dimensions of size 1. */
static lg_tensor *with_dims(lg_tensor *t, const lg_tensor *given)
{
        lg_shape s = {.ndim = given->at.shape.ndim};
        for (int i = 0; i < s.ndim; i++)
                s.size[i] = 1;
        return t ? lg_reshape(t, s) : NULL;
}

/* Returns the number of elements along dim that are not NaN, of size 1 along dim. */
static lg_tensor *valid_of(lg_tensor *x, int dim)
{
        lg_tensor *there = lg_logical_not(lg_isnan(x));
        return x->at.shape.ndim ? lg_sum(there, .dims = LG_DIMS(dim), .keep_dim = true) : lg_cast(there, LG_I64);
}

/* Returns the index of the median along dim. The first NaN follows the elements that are not NaN. */
static lg_tensor *middle(lg_tensor *x, int dim, bool ignore_nan)
{
        const int64_t n = size_along(x, dim);
        lg_tensor *order = lg_argsort(lg_detach(x), dim);
        if (!lg__dtype_float(x->at.dtype) || !order)
                return one_of(order, dim, (n - 1) / 2);
        lg_tensor *valid = valid_of(lg_detach(x), dim), *half = NULL;
        if (valid && ignore_nan)
                half = lg_floor_divide(lg_maximum_scalar(lg_sub_scalar(valid, 1), 0), lg__constant(valid, 2));
        else if (valid)
                half = lg_where(lg_lt_scalar(valid, (double)n), valid, lg__constant(valid, (double)((n - 1) / 2)));
        return half ? lg_gather(order, dim, half) : NULL;
}

static lg_tensor *compose_median(const lg__call *call)
{
        lg_median_options o;
        int dim;
        lg_tensor *given = call->in[0], *x, *index = NULL, *y = NULL;
        if (!lg__take(call->ctx, call->op->name, call->attributes, &o, sizeof o))
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        x = line_of(call, o.dims, &dim);
        if (x && o.dims.count == 0 && size_along(x, 0) == 0 && lg__dtype_float(x->at.dtype) && !o.indices) {
                y = lg_add_scalar(lg_sum(x), NAN);
        } else if (x && has_elements(call, x, dim)) {
                lg_tensor *at = size_along(x, dim) ? middle(x, dim, call->op == LG__OP(nanmedian)) : no_index(x, dim);
                y = at ? chosen(x, dim, at, o.keep_dim && o.dims.count, &index) : NULL;
        }
        if (o.dims.count == 0 && o.keep_dim) {
                y = with_dims(y, given);
                index = with_dims(index, given);
        }
        y = escaped(y, index, o.indices);
        lg_scope_end(call->ctx, scope);
        return y;
}

#define MEDIAN(of)                                                                                                     \
        LG__DEFINE(of, .compose = compose_median, LG__OPERANDS({"x"}))                                                 \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_median_options *options)                                      \
        {                                                                                                              \
                return LG__APPLY(of, options, x);                                                                      \
        }
MEDIAN(median)
MEDIAN(nanmedian)

/* ---- quantiles ---- */

typedef struct quantile_call {
        lg_numbers q;
        const lg_quantile_options *options;
} quantile_call;

/* Returns the ranks (..., q) of the quantiles in the sorted lines of x (..., n), computed as PyTorch does in x's dtype,
 * or in f64 where that cannot count to n. */
static lg_tensor *ranks_of(lg_tensor *x, lg_numbers q, bool ignore_nan)
{
        const int last = x->at.shape.ndim - 1;
        const int64_t n = x->at.shape.size[last];
        const lg_dtype dtype = n > (1 << 24) ? LG_F64 : x->at.dtype;
        lg_tensor *valid = valid_of(lg_detach(x), last);
        lg_tensor *qs = valid ? lg_from_with(x->ctx, q.items, LG_F64, LG_SHAPE(q.count),
                                             LG_OPTIONS(lg_create_options, .device = x->storage->device->id))
                              : NULL;
        lg_tensor *end = !qs ? NULL
                         : ignore_nan
                                 ? lg_cast(lg_maximum_scalar(lg_sub_scalar(valid, 1), 0), dtype)
                                 : lg_expand(lg_cast(lg__constant(valid, (double)(n - 1)), dtype), valid->at.shape);
        lg_tensor *ranks = end ? lg_mul(lg_cast(qs, dtype), end) : NULL;
        return ranks && !ignore_nan ? lg_where(lg_lt_scalar(valid, (double)n), end, ranks) : ranks;
}

/* Returns the quantiles (..., q) of the lines of x (..., n). */
static lg_tensor *quantiles(lg_tensor *x, lg_numbers q, lg_interpolation how, bool ignore_nan)
{
        lg_tensor *sorted = lg_sort(x, -1), *ranks = sorted ? ranks_of(x, q, ignore_nan) : NULL;
        if (!ranks)
                return NULL;
        lg_tensor *low = how == LG_QUANTILE_HIGHER    ? lg_ceil(ranks)
                         : how == LG_QUANTILE_NEAREST ? lg_round(ranks)
                                                      : lg_floor(ranks);
        lg_tensor *below = lg_gather(sorted, -1, lg_cast(low, LG_I64));
        if (how != LG_QUANTILE_LINEAR && how != LG_QUANTILE_MIDPOINT)
                return below;
        lg_tensor *above = lg_gather(sorted, -1, lg_cast(lg_ceil(ranks), LG_I64));
        if (how == LG_QUANTILE_MIDPOINT)
                return lg_lerp_scalar(below, above, 0.5);
        return lg_lerp(below, above, lg_cast(lg_sub(ranks, low), x->at.dtype));
}

static bool check_quantile(const lg__call *call, const quantile_call *given, const lg_quantile_options *o)
{
        const char *op = call->op->name;
        if (given->q.count < 1 || !given->q.items)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: the list of q is empty", op);
        for (int64_t i = 0; i < given->q.count; i++)
                if (!(given->q.items[i] >= 0 && given->q.items[i] <= 1))
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: q is %g; it is from 0 to 1", op,
                                        given->q.items[i]);
        if ((unsigned)o->interpolation > LG_QUANTILE_NEAREST)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: .interpolation is %d; it is LG_QUANTILE_LINEAR to LG_QUANTILE_NEAREST", op,
                                (int)o->interpolation);
        return lg__shape_numel(call->in[0]->at.shape) > 0 ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: there is no element to choose from", op,
                        lg__tensor_text(call->in[0]).s);
}

/* Returns x, which may be NULL, with dimension dim moved to the end, as (..., n). */
static lg_tensor *lines_last(lg_tensor *x, int dim)
{
        lg_dims order = LG_ALL_DIMS;
        const int n = x ? x->at.shape.ndim : 0;
        if (n == 0)
                return lg__flat(x);
        for (int i = 0; i < n; i++)
                order.dim[order.count++] = i == n - 1 ? dim : i < dim ? i : i + 1;
        return lg_permute(x, order);
}

/* Returns y (..., q) as a result for x: q first, unless it is one, and the dimension kept where it was. */
static lg_tensor *arranged(const lg__call *call, lg_tensor *y, lg_dims dims, int dim, bool keep_dim)
{
        lg_dims order = LG_ALL_DIMS;
        lg_shape s = call->in[0]->at.shape, to = LG_SHAPE_0D;
        const int last = y->at.shape.ndim - 1;
        for (int i = 0; i <= last; i++)
                order.dim[order.count++] = i ? i - 1 : last;
        if (y->at.shape.size[last] > 1)
                to.size[to.ndim++] = y->at.shape.size[last];
        if (s.ndim + to.ndim > LG_MAX_DIMS && keep_dim)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: the result would have more than %d dimensions",
                                call->op->name, LG_MAX_DIMS);
        for (int i = 0; i < s.ndim; i++) {
                const bool gone = dims.count == 0 || i == dim;
                if (!gone || keep_dim)
                        to.size[to.ndim++] = gone ? 1 : s.size[i];
        }
        return lg_contiguous(lg_reshape(lg_permute(y, order), to));
}

static lg_tensor *compose_quantile(const lg__call *call)
{
        const quantile_call *given = call->attributes;
        lg_quantile_options o;
        int dim;
        lg_tensor *y = NULL;
        if (!lg__take(call->ctx, call->op->name, given->options, &o, sizeof o) || !check_quantile(call, given, &o))
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *x = line_of(call, o.dims, &dim), *lines = x ? lines_last(lg__widened(x), dim) : NULL;
        if (lines && (y = quantiles(lines, given->q, o.interpolation, call->op == LG__OP(nanquantile))))
                y = (y = lg_cast(y, x->at.dtype)) ? arranged(call, y, o.dims, dim, o.keep_dim) : NULL;
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

#define QUANTILE(of)                                                                                                   \
        LG__DEFINE(of, .compose = compose_quantile, LG__OPERANDS({"x", LG__FLOAT}))                                    \
        lg_tensor *lg_##of##_with(lg_tensor *x, lg_numbers q, const lg_quantile_options *options)                      \
        {                                                                                                              \
                return LG__APPLY(of, (&(quantile_call){q, options}), x);                                               \
        }
QUANTILE(quantile)
QUANTILE(nanquantile)
