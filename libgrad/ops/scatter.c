/* scatter.c - writing by index along a dimension, made of gather, scatter and scatter_add: numbers, reductions, slices.
 *
 * A product sorts the index of each line, multiplies in steps of doubled length within runs of equal indices, and
 * scatters the products: the last one of a run is that of all, and the last one written remains. So the derivative
 * divides by no element, which might be 0.
 */
#include "gather.h"

typedef struct put_call {
        int dim;
        double value;
        lg_scatter_reduction reduction;
        const lg_scatter_reduce_options *options;
} put_call;

/* Returns x with `value` where the index points. */
static lg_tensor *filled(lg_tensor *x, int dim, lg_tensor *index, double value, lg__origin origin)
{
        lg_tensor *number = index ? lg__constant(x, value) : NULL;
        return number ? lg__scatter(x, dim, index, lg_expand(number, index->at.shape), origin) : NULL;
}

/* ---- reductions ---- */

typedef struct reduction {
        lg_tensor *x, *index, *src; /* src has the shape of the index */
        int dim;
        bool exclude_self;
        lg__origin origin;
} reduction;

static lg_tensor *sum_of(const reduction *r)
{
        lg_tensor *from = r->exclude_self ? filled(r->x, r->dim, r->index, 0, r->origin) : r->x;
        return lg__scatter_add(from, r->dim, r->index, r->src, r->origin);
}

static lg_tensor *mean_of(const reduction *r)
{
        lg_tensor *x = r->x, *one = lg__constant(x, 1), *start = lg__constant(x, r->exclude_self ? 0 : 1);
        if (x->at.dtype == LG_U8 || x->at.dtype == LG_I32) { /* whose counts might not fit */
                one = lg_cast(one, LG_I64);
                start = lg_cast(start, LG_I64);
        }
        lg_tensor *ones = lg_expand(one, r->index->at.shape);
        lg_tensor *counts = lg__scatter_add(lg_expand(start, x->at.shape), r->dim, r->index, ones, r->origin);
        counts = lg_maximum(counts, one);
        lg_tensor *sum = sum_of(r);
        return lg__dtype_float(x->at.dtype) ? lg_div(sum, counts) : lg_cast(lg_floor_divide(sum, counts), x->at.dtype);
}

static lg_tensor *product_of(const reduction *r)
{
        const int dim = r->dim;
        const int64_t n = r->index->at.shape.ndim ? r->index->at.shape.size[dim] : 1;
        lg_tensor *order = lg_argsort(r->index, dim), *key = order ? lg_gather(r->index, dim, order) : NULL;
        lg_tensor *y = key ? lg_gather(r->src, dim, order) : NULL, *one = lg__constant(r->x, 1);
        for (int64_t step = 1; step < n && y; step *= 2) {
                lg_tensor *same = lg_eq(lg_slice(key, dim, step, n), lg_slice(key, dim, 0, n - step));
                lg_tensor *before = lg_where(same, lg_slice(y, dim, 0, n - step), one);
                y = lg_cat(LG_LIST(lg_slice(y, dim, 0, step), lg_mul(lg_slice(y, dim, step, n), before)), dim);
        }
        if (r->exclude_self)
                return lg__scatter(r->x, dim, key, y, r->origin);
        return lg_mul(r->x, lg__scatter(one ? lg_expand(one, r->x->at.shape) : NULL, dim, key, y, r->origin));
}

static lg_tensor *extreme_of(const reduction *r, bool max)
{
        lg_tensor *x = r->x;
        if (r->exclude_self) /* an integer has no infinity, but no gradient either */
                x = lg__dtype_float(x->at.dtype)
                            ? filled(x, r->dim, r->index, max ? -LG_INFINITY : LG_INFINITY, r->origin)
                            : lg__scatter(x, r->dim, r->index, r->src, r->origin);
        return lg__scatter_extreme(x, r->dim, r->index, r->src, max, r->origin);
}

static lg_tensor *reduced(reduction *r, lg_scatter_reduction how)
{
        const lg_dtype dtype = r->x->at.dtype;
        if (how == LG_SCATTER_AMAX || how == LG_SCATTER_AMIN)
                return extreme_of(r, how == LG_SCATTER_AMAX);
        if (how == LG_SCATTER_SUM)
                return sum_of(r);
        lg_tensor *given = r->x;
        r->x = lg__widened(r->x);
        r->src = lg__widened(r->src);
        lg_tensor *y = r->x && r->src ? how == LG_SCATTER_MEAN ? mean_of(r) : product_of(r) : NULL;
        return lg__made(lg_cast(y, dtype), given);
}

static lg_tensor *compose_scatter_reduce(const lg__call *call)
{
        const put_call *given = call->attributes;
        const char *op = call->op->name;
        const bool slices = call->op == LG__OP(index_reduce);
        lg_scatter_reduce_options o;
        reduction r = {call->in[0], call->in[1], call->in[2], given->dim};
        if (!lg__take(call->ctx, op, given->options, &o, sizeof o))
                return NULL;
        if ((unsigned)given->reduction > LG_SCATTER_AMIN)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: reduction %d; it is LG_SCATTER_SUM to LG_SCATTER_AMIN",
                                op, (int)given->reduction);
        if (slices && !(r.index = lg__expanded_index(op, r.x, &r.dim, r.index, r.src)))
                return NULL;
        if ((r.dim = lg__scatter_dim(op, r.x, r.dim, r.index, r.src, given->reduction < LG_SCATTER_AMAX)) < 0)
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        r.exclude_self = o.exclude_self;
        r.origin = slices ? LG__ORIGIN_INDEX_REDUCE : LG__ORIGIN_SCATTER_REDUCE;
        lg_tensor *y = (r.src = lg__cut(r.src, r.index->at.shape)) ? reduced(&r, given->reduction) : NULL;
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

#define REDUCTION(of)                                                                                                  \
        LG__DEFINE(of, .autocast = LG__WIDEST, .compose = compose_scatter_reduce,                                      \
                   LG__OPERANDS({"x"}, {"index", LG__INDEX}, {"src"}))                                                 \
        lg_tensor *lg_##of##_with(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg_scatter_reduction how,   \
                                  const lg_scatter_reduce_options *options)                                            \
        {                                                                                                              \
                return LG__APPLY(of, (&(put_call){dim, 0, how, options}), x, index, src);                              \
        }
REDUCTION(scatter_reduce)
REDUCTION(index_reduce)

/* ---- numbers and slices ---- */

static lg_tensor *compose_scatter_scalar(const lg__call *call)
{
        const put_call *given = call->attributes;
        lg_tensor *x = call->in[0];
        return lg__scatter_dim("scatter_scalar", x, given->dim, call->in[1], NULL, false) >= 0 &&
                               lg__dtype_holds(call->ctx, "scatter_scalar", x->at.dtype, given->value)
                       ? filled(x, given->dim, call->in[1], given->value, LG__ORIGIN_SCATTER_SCALAR)
                       : NULL;
}

LG__COMPOSITE(scatter_scalar, {"x"}, {"index", LG__INDEX})

lg_tensor *lg_scatter_scalar(lg_tensor *x, int dim, lg_tensor *index, double value)
{
        return LG__APPLY(scatter_scalar, (&(put_call){dim, value}), x, index);
}

static lg_tensor *compose_index_copy(const lg__call *call)
{
        int dim = ((const put_call *)call->attributes)->dim;
        lg_tensor *x = call->in[0], *src = call->in[2];
        lg_tensor *index = lg__expanded_index("index_copy", x, &dim, call->in[1], src);
        return index && lg__scatter_dim("index_copy", x, dim, index, src, false) >= 0
                       ? lg__scatter(x, dim, index, src, LG__ORIGIN_INDEX_COPY)
                       : NULL;
}

LG__DEFINE(index_copy, .autocast = LG__WIDEST, .compose = compose_index_copy,
           LG__OPERANDS({"x"}, {"index", LG__INDEX}, {"src"}))

lg_tensor *lg_index_copy(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        return LG__APPLY(index_copy, &(put_call){dim}, x, index, src);
}

static lg_tensor *compose_index_fill(const lg__call *call)
{
        const put_call *given = call->attributes;
        int dim = given->dim;
        lg_tensor *x = call->in[0], *index = lg__expanded_index("index_fill", x, &dim, call->in[1], NULL);
        return index && lg__dtype_holds(call->ctx, "index_fill", x->at.dtype, given->value)
                       ? filled(x, dim, lg__wrapped(index, x->at.shape.size[dim]), given->value, LG__ORIGIN_INDEX_FILL)
                       : NULL;
}

LG__COMPOSITE(index_fill, {"x"}, {"index", LG__INDEX})

lg_tensor *lg_index_fill(lg_tensor *x, int dim, lg_tensor *index, double value)
{
        return LG__APPLY(index_fill, (&(put_call){dim, value}), x, index);
}
