/* index.c - indexing with lists of tensors, with places in row-major order, and by mask: index, index_put, take, put,
 * take_along_dim and masked_scatter, made of gather, scatter and index_add.
 *
 * index moves the indexed dimensions to the front and joins them; the places in the joined one are sums of the indices
 * times the sizes of what follows. A table of each dimension's places is gathered, so that each index is checked.
 */
#include "gather.h"

lg_tensor *lg__flat(lg_tensor *x)
{
        return x ? lg_reshape(x, LG_SHAPE(lg__shape_numel(x->at.shape))) : NULL;
}

lg_tensor *lg__numbers(const lg_tensor *like, int64_t n)
{
        return like ? lg_arange(like->ctx, 0, (double)n, 1, .dtype = LG_I64, .device = like->storage->device->id)
                    : NULL;
}

lg_tensor *lg__wrapped(lg_tensor *index, int64_t n)
{
        lg_tensor *inside = lg_logical_and(lg_lt_scalar(index, 0), lg_ge_scalar(index, -(double)n));
        return lg_add(index, lg_mul_scalar(lg_cast(inside, LG_I64), (double)n));
}

/* ---- lists of indices ---- */

/* The indices of a call, and how they rearrange x. */
typedef struct plan {
        const char *op;
        lg__origin origin;
        lg_tensor *x, *at[LG_MAX_DIMS]; /* i64 index of each dimension of x, or NULL */
        lg_shape picked;                /* common shape of the indices */
        lg_dims order;                  /* x's dimensions, the indexed ones first */
        int indexed, first;             /* number of indexed dimensions; place of `picked` in the result */
} plan;

/* Replaces a mask for the dimensions from `dim` on by the coordinates where it is true. */
static bool add_mask(plan *p, int dim, lg_tensor *mask)
{
        const lg_shape s = mask->at.shape, x = p->x->at.shape;
        bool ok = s.ndim > 0;
        for (int i = 0; i < s.ndim && ok; i++)
                ok = s.size[i] == x.size[dim + i];
        if (!ok)
                return lg__fail(p->x->ctx, LG_ERR_SHAPE,
                                "%s: the mask %s has not the sizes of x, %s, from dimension %d on", p->op,
                                lg__tensor_text(mask).s, lg__tensor_text(p->x).s, dim);
        lg_tensor *places = lg__places_of(mask);
        for (int i = 0; i < s.ndim && places; i++)
                p->at[dim + i] = lg_select(places, 1, i);
        return places != NULL;
}

/* Sets p->at from the list of indices. */
static bool take_indices(plan *p, lg_tensor *const *list, int count)
{
        int dim = 0;
        for (int i = 0; i < count; i++) {
                lg_tensor *t = list[i];
                const int dims = t && t->at.dtype == LG_BOOL ? t->at.shape.ndim : 1;
                if (t && t->at.dtype != LG_I64 && t->at.dtype != LG_BOOL)
                        return lg__fail(p->x->ctx, LG_ERR_DTYPE, "%s: tensor %d of the indices is %s, not i64 or bool",
                                        p->op, i, lg__tensor_text(t).s);
                if (dim + dims > p->x->at.shape.ndim)
                        return lg__fail(p->x->ctx, LG_ERR_ARGUMENT,
                                        "%s: there are indices for more dimensions than x has, %s", p->op,
                                        lg__tensor_text(p->x).s);
                if (t && t->at.dtype == LG_BOOL && !add_mask(p, dim, t))
                        return false;
                if (t && t->at.dtype == LG_I64)
                        p->at[dim] = t;
                dim += dims;
        }
        return true;
}

static bool arrange(plan *p)
{
        const int n = p->x->at.shape.ndim;
        int last = -1;
        p->first = n;
        for (int i = 0; i < n; i++) {
                if (!p->at[i])
                        continue;
                if (!lg__broadcast(p->x->ctx, p->op, p->picked, p->at[i]->at.shape, &p->picked))
                        return false;
                p->first = p->first < i ? p->first : i;
                last = i;
                p->order.dim[p->order.count++] = i;
        }
        p->indexed = p->order.count;
        if (p->indexed == 0)
                return lg__fail(p->x->ctx, LG_ERR_ARGUMENT, "%s: the list of indices has no tensor", p->op);
        if (last - p->first + 1 != p->indexed)
                p->first = 0;
        for (int i = 0; i < n; i++)
                if (!p->at[i])
                        p->order.dim[p->order.count++] = i;
        return n - p->indexed + p->picked.ndim <= LG_MAX_DIMS ||
               lg__fail(p->x->ctx, LG_ERR_SHAPE, "%s: the result would have %d dimensions, more than %d", p->op,
                        n - p->indexed + p->picked.ndim, LG_MAX_DIMS);
}

/* Returns x as (indexed elements, other elements). */
static lg_tensor *rows_of(const plan *p)
{
        int64_t sizes[2] = {1, 1};
        for (int i = 0; i < p->order.count; i++)
                sizes[i >= p->indexed] *= p->x->at.shape.size[p->order.dim[i]];
        return lg_reshape(lg_permute(p->x, p->order), LG_SHAPE(sizes[0], sizes[1]));
}

/* Returns the rows that the indices select, as a 1-d index. */
static lg_tensor *row_index(const plan *p)
{
        lg_tensor *sum = NULL;
        int64_t stride = 1;
        for (int i = p->indexed - 1; i >= 0; i--) {
                lg_tensor *at = p->at[p->order.dim[i]];
                const int64_t n = p->x->at.shape.size[p->order.dim[i]];
                lg_tensor *table = lg_mul_scalar(lg__numbers(at, n), (double)stride);
                lg_tensor *places = lg__gather(table, 0, lg__flat(lg__wrapped(at, n)), p->origin);
                places = places ? lg_reshape(places, at->at.shape) : NULL;
                if (!places)
                        return NULL;
                sum = sum ? lg_add(sum, places) : places;
                stride *= n;
        }
        return lg__flat(lg_expand(sum, p->picked));
}

/* Returns the shape of the selected rows: that of the indices, then the sizes of the other dimensions. */
static lg_shape rows_shape(const plan *p)
{
        lg_shape s = p->picked;
        for (int i = p->indexed; i < p->order.count; i++)
                s.size[s.ndim++] = p->x->at.shape.size[p->order.dim[i]];
        return s;
}

/* Moves the `moved` dimensions at `from` to `to`; the others keep their order. */
static lg_tensor *move(lg_tensor *t, int from, int to, int moved)
{
        lg_dims order = LG_ALL_DIMS;
        for (int i = 0, other = 0; t && i < t->at.shape.ndim; i++)
                if (i >= to && i < to + moved)
                        order.dim[order.count++] = from + i - to;
                else {
                        order.dim[order.count++] = other < from ? other : other + moved;
                        other++;
                }
        return from == to || !order.count ? t : lg_permute(t, order);
}

static bool plan_init(plan *p, const lg__call *call, lg__origin origin, int first)
{
        *p = (plan){.op = call->op->name, .origin = origin, .x = call->in[0]};
        return take_indices(p, call->in + first, call->in_count - first) && arrange(p);
}

static lg_tensor *compose_index(const lg__call *call)
{
        plan p;
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *index = plan_init(&p, call, LG__ORIGIN_INDEX, 1) ? row_index(&p) : NULL;
        lg_tensor *rows = index ? lg__index_select(rows_of(&p), 0, index, LG__ORIGIN_INDEX) : NULL;
        lg_tensor *y = rows ? move(lg_reshape(rows, rows_shape(&p)), 0, p.first, p.picked.ndim) : NULL;
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__COMPOSITE(index, {"x"}, {"index", .optional = true, .variadic = true})

/* Returns x with the values put at the indices. */
static lg_tensor *written(const plan *p, lg_tensor *values, bool accumulate)
{
        lg_shape rows = rows_shape(p), to = LG_SHAPE_0D, s, moved = LG_SHAPE_0D;
        const int others = rows.ndim - p->picked.ndim;
        for (int i = 0; i < rows.ndim; i++)
                to.size[to.ndim++] = i < p->first                    ? rows.size[p->picked.ndim + i]
                                     : i < p->first + p->picked.ndim ? rows.size[i - p->first]
                                                                     : rows.size[i];
        if (!lg__broadcast(p->x->ctx, p->op, to, values->at.shape, &s))
                return NULL;
        if (!lg__shape_equal(s, to))
                return lg__fail(p->x->ctx, LG_ERR_SHAPE, "%s: values is %s and does not broadcast to %s", p->op,
                                lg__tensor_text(values).s, lg__shape_text(to).s);
        int64_t all = 1;
        for (int i = 0; i < others; i++)
                all *= rows.size[p->picked.ndim + i];
        lg_tensor *from = move(lg_expand(values, to), p->first, 0, p->picked.ndim);
        from = from ? lg_reshape(from, LG_SHAPE(lg__shape_numel(p->picked), all)) : NULL;
        lg_tensor *x = from ? rows_of(p) : NULL, *index = x ? row_index(p) : NULL;
        index = index ? lg_expand(lg_unsqueeze(index, 1), from->at.shape) : NULL;
        lg_tensor *y = !index       ? NULL
                       : accumulate ? lg__scatter_add(x, 0, index, from, p->origin)
                                    : lg__scatter(x, 0, index, from, p->origin);
        lg_dims back = {.count = p->order.count};
        for (int i = 0; i < p->order.count; i++) {
                back.dim[p->order.dim[i]] = i;
                moved.size[moved.ndim++] = p->x->at.shape.size[p->order.dim[i]];
        }
        return y ? lg_contiguous(lg_permute(lg_reshape(y, moved), back)) : NULL;
}

static bool same_dtype(const lg__call *call, const lg_tensor *src, bool numeric)
{
        const lg_tensor *x = call->in[0];
        return (x->at.dtype == src->at.dtype && !(numeric && x->at.dtype == LG_BOOL)) ||
               lg__fail(call->ctx, LG_ERR_DTYPE, "%s: x is %s but %s is %s; both are of one dtype%s: use lg_cast()",
                        call->op->name, lg__tensor_text(x).s, call->op == LG__OP(index_put) ? "values" : "src",
                        lg__tensor_text(src).s, numeric ? ", not bool" : "");
}

static lg_tensor *compose_index_put(const lg__call *call)
{
        lg_put_options o;
        plan p;
        if (!lg__take(call->ctx, "index_put", call->attributes, &o, sizeof o) ||
            !same_dtype(call, call->in[1], o.accumulate))
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *y = plan_init(&p, call, LG__ORIGIN_INDEX_PUT, 2) ? written(&p, call->in[1], o.accumulate) : NULL;
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__DEFINE(index_put, .autocast = LG__WIDEST, .compose = compose_index_put,
           LG__OPERANDS({"x"}, {"values"}, {"index", .optional = true, .variadic = true}))

/* Applies an op to some tensors followed by a list of indices, which may be NULL. */
static lg_tensor *apply_to_list(const lg__op *op, lg_tensor *x, lg_tensor *values, lg_list indices, const void *options)
{
        lg_tensor *in[2 + LG_MAX_DIMS] = {x, values};
        const int first = op == LG__OP(index) ? 1 : 2;
        lg_ctx *c = lg__ctx_of(x);
        if (indices.count < 1 || indices.count > LG_MAX_DIMS || !indices.items)
                return lg__ok(c) ? lg__fail(c, LG_ERR_ARGUMENT, "%s: there are %lld indices; 1 to %d are possible",
                                            op->name, (long long)indices.count, LG_MAX_DIMS)
                                 : NULL;
        for (int64_t i = 0; i < indices.count; i++)
                in[first + i] = indices.items[i];
        return lg__apply(op, in, first + (int)indices.count, options, NULL);
}

lg_tensor *lg_index(lg_tensor *x, lg_list indices)
{
        return apply_to_list(LG__OP(index), x, NULL, indices, NULL);
}

lg_tensor *lg_index_put_with(lg_tensor *x, lg_list indices, lg_tensor *values, const lg_put_options *options)
{
        return apply_to_list(LG__OP(index_put), x, values, indices, options);
}

/* ---- places in row-major order ---- */

static lg_tensor *compose_take(const lg__call *call)
{
        lg_tensor *x = call->in[0], *index = call->in[1];
        const int64_t n = lg__shape_numel(x->at.shape);
        lg_tensor *y = lg__gather(lg__flat(x), 0, lg__flat(lg__wrapped(index, n)), LG__ORIGIN_TAKE);
        return y ? lg_reshape(y, index->at.shape) : NULL;
}

LG__COMPOSITE(take, {"x"}, {"index", LG__INDEX})

lg_tensor *lg_take(lg_tensor *x, lg_tensor *index)
{
        return LG__APPLY(take, NULL, x, index);
}

static lg_tensor *compose_put(const lg__call *call)
{
        lg_put_options o;
        lg_tensor *x = call->in[0], *index = call->in[1], *src = call->in[2];
        const int64_t n = lg__shape_numel(x->at.shape);
        if (!lg__take(call->ctx, "put", call->attributes, &o, sizeof o) || !same_dtype(call, src, o.accumulate))
                return NULL;
        if (!lg__shape_equal(index->at.shape, src->at.shape))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "put: index is %s and src is %s; they have the same shape",
                                lg__tensor_text(index).s, lg__tensor_text(src).s);
        index = lg__flat(lg__wrapped(index, n));
        lg_tensor *y = !index         ? NULL
                       : o.accumulate ? lg__scatter_add(lg__flat(x), 0, index, lg__flat(src), LG__ORIGIN_PUT)
                                      : lg__scatter(lg__flat(x), 0, index, lg__flat(src), LG__ORIGIN_PUT);
        return y ? lg_reshape(y, x->at.shape) : NULL;
}

LG__DEFINE(put, .autocast = LG__WIDEST, .compose = compose_put, LG__OPERANDS({"x"}, {"index", LG__INDEX}, {"src"}))

lg_tensor *lg_put_with(lg_tensor *x, lg_tensor *index, lg_tensor *src, const lg_put_options *options)
{
        return LG__APPLY(put, options, x, index, src);
}

static lg_tensor *compose_take_along_dim(const lg__call *call)
{
        lg_tensor *x = call->in[0], *index = call->in[1];
        const int dim = lg__line_dim(x, "take_along_dim", *(const int *)call->attributes);
        lg_shape a = x->at.shape, b = index->at.shape, both;
        if (dim < 0)
                return NULL;
        if (a.ndim != b.ndim)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "take_along_dim: x is %s and index is %s; they have equally many "
                                "dimensions",
                                lg__tensor_text(x).s, lg__tensor_text(index).s);
        if (a.ndim)
                a.size[dim] = b.size[dim] = 1;
        if (!lg__broadcast(call->ctx, "take_along_dim", a, b, &both))
                return NULL;
        a = b = both;
        if (a.ndim) {
                a.size[dim] = x->at.shape.size[dim];
                b.size[dim] = index->at.shape.size[dim];
        }
        return lg__gather(lg_expand(x, a), dim, lg_expand(index, b), LG__ORIGIN_TAKE_ALONG_DIM);
}

LG__COMPOSITE(take_along_dim, {"x"}, {"index", LG__INDEX})

lg_tensor *lg_take_along_dim(lg_tensor *x, lg_tensor *index, int dim)
{
        return LG__APPLY(take_along_dim, &dim, x, index);
}

/* ---- by mask ---- */

/* Gathers src at the number of true elements before each place, or at that of the last true one. An empty src is
 * replaced by one element, to which no true element of the mask points. */
static lg_tensor *compose_masked_scatter(const lg__call *call)
{
        lg_tensor *x = call->in[0], *mask = call->in[1], *src = lg__flat(call->in[2]);
        lg_shape s;
        if (!src || !same_dtype(call, src, false) ||
            !lg__broadcast(call->ctx, "masked_scatter", x->at.shape, mask->at.shape, &s))
                return NULL;
        lg_scope scope = lg_scope_begin(call->ctx);
        const bool empty = src->at.shape.size[0] == 0;
        lg_tensor *wide = lg_expand(mask, s), *number = lg_cumsum(lg__flat(wide), 0);
        lg_tensor *place = number ? lg_maximum_scalar(lg_sub_scalar(number, empty ? 0 : 1), 0) : NULL;
        src = empty ? lg_reshape(lg__constant(x, 0), LG_SHAPE(1)) : src;
        lg_tensor *from = place ? lg__gather(src, 0, place, LG__ORIGIN_MASKED_SCATTER) : NULL;
        lg_tensor *y = from ? lg_escape(lg_where(wide, lg_reshape(from, s), x)) : NULL;
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__DEFINE(masked_scatter, .autocast = LG__WIDEST, .compose = compose_masked_scatter,
           LG__OPERANDS({"x"}, {"mask", LG__MASK}, {"src"}))

lg_tensor *lg_masked_scatter(lg_tensor *x, lg_tensor *mask, lg_tensor *src)
{
        return LG__APPLY(masked_scatter, NULL, x, mask, src);
}
