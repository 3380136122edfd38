/* gather.c - selects elements by index along a dimension (gather), or writes to selected elements (scatter_add,
 * scatter).
 *
 * Let q(p) be position p with its coordinate in dimension dim replaced by index[p]. gather: y[p] = x[q(p)]; dx =
 * scatter_add of g into zeros. scatter_add: y = x, then y[q(p)] += src[p]; dx = g, dsrc[p] = g[q(p)], and 0 where src
 * extends beyond the index. scatter: y = x, then y[q(p)] = src[p]; dx = g, and 0 at each q(p), dsrc[p] = g[q(p)] where
 * src[p] is what was written last, else 0, except for max_unpool, whose equal indices are of equal elements: as in
 * PyTorch, each gets g[q(p)]. scatter_extreme: y[q(p)] is the maximum or minimum of itself and src[p], and
 * the elements that equal it share g evenly. index_select and index_add repeat a 1-d index over all other dimensions.
 */
#include <string.h>
#include "core/tape.h"
#include "gather.h"

/* The attribute origin identifies the public function that was called, for errors about an index out of range. */
#define GATHER_FIELDS(FIELD) FIELD(int, dim, 0) FIELD(origin, origin, LG__ORIGIN_GATHER) FIELD(int, mode, LG_PUT_SUM)
LG__ATTRIBUTES(gather, GATHER_FIELDS)

/* Returns the kernel arguments; the kernel's shape is that of the index. Indices point into `pointed`. A 0-d tensor
 * counts as a line of one element. */
static lg_gather_args kernel_args(const gather_attributes *a, const lg_tensor *index, const lg_tensor *from,
                                  const lg_tensor *to, const lg_tensor *pointed)
{
        int ndim = index->at.shape.ndim;
        lg_gather_args k = {.dtype = from->at.dtype,
                            .ndim = ndim,
                            .dim = a->dim,
                            .index = lg__data(index),
                            .limit = ndim ? pointed->at.shape.size[a->dim] : 1,
                            .origin = a->origin,
                            .from = lg__data(from),
                            .to = lg__data(to),
                            .to_count = lg__shape_numel(to->at.shape)};
        memcpy(k.shape, index->at.shape.size, sizeof k.shape);
        memcpy(k.index_strides, index->at.strides, sizeof k.index_strides);
        memcpy(k.from_strides, from->at.strides, sizeof k.from_strides);
        memcpy(k.to_strides, to->at.strides, sizeof k.to_strides);
        return k;
}

/* Returns whether no dimension of `index` but dim (-1: none is excepted) is larger than that of `over`. */
static bool fits(const lg_tensor *index, const lg_tensor *over, int dim)
{
        const lg_shape *s = &index->at.shape, *o = &over->at.shape;
        bool ok = s->ndim == o->ndim;
        for (int i = 0; i < s->ndim && ok; i++)
                ok = i == dim || s->size[i] <= o->size[i];
        return ok;
}

static bool index_fits(const char *op, const lg_tensor *index, const lg_tensor *x, int dim)
{
        return fits(index, x, dim) ||
               lg__fail(x->ctx, LG_ERR_SHAPE,
                        "%s: index is %s and x is %s; the index has x's dimensions, none larger but dimension %d", op,
                        lg__tensor_text(index).s, lg__tensor_text(x).s, dim);
}

/* ---- gather ---- */

static bool infer_gather(lg__call *call)
{
        gather_attributes *a = call->attributes;
        call->out_at[0].shape = call->in[1]->at.shape;
        a->dim = lg__line_dim(call->in[0], "gather", a->dim);
        return a->dim >= 0 && index_fits("gather", call->in[1], call->in[0], a->dim);
}

static bool forward_gather(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        lg_gather_args k = kernel_args(call->attributes, call->in[1], x, call->out[0], x);
        return k.to_count == 0 || LG__RUN(call->device, "gather", gather, &k);
}

static bool vjp_gather(lg__vjp *v)
{
        lg_tensor *zeros = lg_expand(lg__constant(v->grad[0], 0), lg__input_shape(v, 0));
        return (v->grad_in[0] = LG__APPLY(scatter_add, v->attributes, zeros, v->grad[0], v->in[1])) != NULL;
}

/* Adds g to the pending gradient of x, or to zeros if there is none, at the gathered elements only. */
static bool fused_gather(lg__vjp *v)
{
        lg_tensor *g = v->grad[0], *to = v->sums[0];
        if (!to) {
                to = lg__tensor_empty(v->ctx, lg__input(v, 0)->device, g->at.dtype, lg__input_shape(v, 0));
                if (!to || !lg__fill_values(to, 0, "gather"))
                        return false;
        }
        v->grad_in[0] = to;
        const lg_gather_args k = kernel_args(v->attributes, v->in[1], g, to, to);
        return lg__shape_numel(g->at.shape) == 0 || LG__RUN(to->storage->device, "gather", scatter, &k);
}

LG__DEFINE(gather, LG__OPERANDS({"x"}, {"index", LG__INDEX, .saved_for = LG__BY(0)}), LG__RESULTS({"y"}),
           LG__HAS(gather), .infer = infer_gather, .forward = forward_gather, .vjp = vjp_gather, .fused = fused_gather,
           .onnx = "GatherElements(x, index, axis=dim)")

lg_tensor *lg__gather(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin)
{
        return LG__APPLY(gather, (&(gather_attributes){.dim = dim, .origin = origin}), x, index);
}

lg_tensor *lg_gather(lg_tensor *x, int dim, lg_tensor *index)
{
        return lg__gather(x, dim, index, LG__ORIGIN_GATHER);
}

/* ---- scatter_add ---- */

int lg__scatter_dim(const char *op, const lg_tensor *x, int dim, const lg_tensor *index, const lg_tensor *src,
                    bool numeric)
{
        dim = lg__line_dim(x, op, dim);
        if (dim < 0 || !index_fits(op, index, x, dim))
                return -1;
        if (src && (x->at.dtype != src->at.dtype || (numeric && x->at.dtype == LG_BOOL))) {
                lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s and src is %s; both are of one dtype%s: use lg_cast()", op,
                         lg__tensor_text(x).s, lg__tensor_text(src).s, numeric ? ", not bool" : "");
                return -1;
        }
        if (!src || fits(index, src, -1))
                return dim;
        lg__fail(x->ctx, LG_ERR_SHAPE, "%s: index is %s and src is %s; the index has src's dimensions, none larger", op,
                 lg__tensor_text(index).s, lg__tensor_text(src).s);
        return -1;
}

/* Shape rule of scatter_add and scatter. */
static bool infer_scatter(lg__call *call)
{
        gather_attributes *a = call->attributes;
        call->out_at[0].shape = call->in[0]->at.shape;
        a->dim = lg__scatter_dim(call->op->name, call->in[0], a->dim, call->in[2], call->in[1], a->mode == LG_PUT_SUM);
        return a->dim >= 0;
}

static bool forward_scatter(lg__call *call)
{
        const gather_attributes *a = call->attributes;
        lg_tensor *out = call->out[0];
        lg_gather_args k = kernel_args(a, call->in[2], call->in[1], out, out);
        k.mode = (lg_put_mode)a->mode;
        if (!lg__copy_values(out, call->in[0], call->op->name))
                return false;
        return lg__shape_numel(call->in[2]->at.shape) == 0 || LG__RUN(call->device, call->op->name, scatter, &k);
}

/* Returns t padded with zeros at the end of each dimension to this shape; t may be NULL. */
static lg_tensor *extended(lg_tensor *t, lg_shape shape)
{
        int64_t pads[2 * LG_MAX_DIMS] = {0};
        if (!t || lg__shape_equal(t->at.shape, shape))
                return t;
        for (int i = 0; i < shape.ndim; i++)
                pads[2 * (shape.ndim - 1 - i) + 1] = shape.size[i] - t->at.shape.size[i];
        return lg_pad(t, LG_INTS_OF(2 * shape.ndim, pads));
}

static bool vjp_scatter_add(lg__vjp *v)
{
        v->grad_in[0] = v->grad[0];
        if (!v->needs[1])
                return true;
        lg_tensor *picked = LG__APPLY(gather, v->attributes, v->grad[0], v->in[2]);
        return (v->grad_in[1] = extended(picked, lg__input_shape(v, 1))) != NULL;
}

static bool form_scatter(lg__form *f, const lg__call *call)
{
        const gather_attributes *a = call->attributes;
        const char *how = call->op == LG__OP(scatter)       ? "none"
                          : call->op == LG__OP(scatter_add) ? "add"
                          : a->mode == LG_PUT_MAX           ? "max"
                                                            : "min";
        lg__form_add(f, "ScatterElements(x, index, src, axis=%d, reduction='%s')", a->dim, how);
        return lg__shape_equal(call->in[1]->at.shape, call->in[2]->at.shape);
}

LG__DEFINE(scatter_add, .autocast = LG__WIDEST,
           LG__OPERANDS({"x"}, {"src"}, {"index", LG__INDEX, .saved_for = LG__BY(1)}), LG__RESULTS({"y"}),
           LG__HAS(gather), .infer = infer_scatter, .forward = forward_scatter, .vjp = vjp_scatter_add,
           .form = form_scatter)

lg_tensor *lg__scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin)
{
        return LG__APPLY(scatter_add, (&(gather_attributes){.dim = dim, .origin = origin}), x, src, index);
}

lg_tensor *lg_scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        return lg__scatter_add(x, dim, index, src, LG__ORIGIN_SCATTER_ADD);
}

/* ---- scatter ---- */

lg_tensor *lg__cut(lg_tensor *t, lg_shape shape)
{
        for (int i = 0; i < shape.ndim && t; i++)
                if (t->at.shape.size[i] != shape.size[i])
                        t = lg_slice(t, i, 0, shape.size[i]);
        return t;
}

/* Returns, for each element of the index, whether it is the last one in its line that points where it does. */
static lg_tensor *is_last(const gather_attributes *a, lg_tensor *index, lg_shape to)
{
        const lg_shape at = index->at.shape;
        lg_shape line = {.ndim = at.ndim};
        for (int i = 0; i < at.ndim; i++)
                line.size[i] = i == a->dim ? at.size[i] : 1;
        lg_tensor *numbers = lg__numbers(index, at.ndim ? at.size[a->dim] : 1);
        lg_tensor *own = lg_expand(lg_reshape(numbers, line), at);
        lg_tensor *last = LG__APPLY(scatter, a, lg_expand(lg__constant(index, 0), to), own, index);
        return lg_eq(LG__APPLY(gather, a, last, index), own);
}

static bool vjp_scatter(lg__vjp *v)
{
        const gather_attributes *a = v->attributes;
        lg_tensor *index = v->in[2], *g = v->grad[0], *zero = lg__constant(g, 0);
        if (v->needs[0]) {
                lg_tensor *zeros = lg_expand(zero, index->at.shape);
                v->grad_in[0] = LG__APPLY(scatter, a, g, zeros, index);
        }
        if (v->needs[1]) {
                lg_tensor *picked = LG__APPLY(gather, a, g, index);
                if (a->origin != LG__ORIGIN_MAX_UNPOOL)
                        picked = lg_where(is_last(a, index, lg__input_shape(v, 0)), picked, zero);
                v->grad_in[1] = extended(picked, lg__input_shape(v, 1));
        }
        return (!v->needs[0] || v->grad_in[0]) && (!v->needs[1] || v->grad_in[1]);
}

static bool vjp_scatter_extreme(lg__vjp *v)
{
        const gather_attributes *a = v->attributes;
        lg_tensor *index = v->in[2], *y = v->out[0], *g = lg__widened(v->grad[0]);
        lg_tensor *src = lg__cut(v->in[1], index->at.shape);
        if (!g || !src)
                return false;
        lg_tensor *in_src = lg_cast(lg_eq(src, LG__APPLY(gather, a, y, index)), g->at.dtype);
        lg_tensor *in_x = lg_cast(lg_eq(v->in[0], y), g->at.dtype);
        g = lg_div(g, lg__scatter_add(in_x, a->dim, index, in_src, a->origin));
        v->grad_in[0] = lg_mul(g, in_x);
        v->grad_in[1] = extended(lg_mul(LG__APPLY(gather, a, g, index), in_src), lg__input_shape(v, 1));
        return v->grad_in[0] && v->grad_in[1];
}

#define BOTH (LG__BY(0) | LG__BY(1))
LG__DEFINE(scatter, .autocast = LG__WIDEST, LG__OPERANDS({"x"}, {"src"}, {"index", LG__INDEX, .saved_for = BOTH}),
           LG__RESULTS({"y"}), LG__HAS(gather), .infer = infer_scatter, .forward = forward_scatter, .vjp = vjp_scatter,
           .form = form_scatter)
LG__DEFINE(scatter_extreme, .autocast = LG__WIDEST,
           LG__OPERANDS({"x", .saved_for = BOTH}, {"src", .saved_for = BOTH}, {"index", LG__INDEX, .saved_for = BOTH}),
           LG__RESULTS({"y", .saved_for = BOTH}), LG__HAS(gather), .infer = infer_scatter, .forward = forward_scatter,
           .vjp = vjp_scatter_extreme, .form = form_scatter)

lg_tensor *lg__scatter(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin)
{
        return LG__APPLY(scatter, (&(gather_attributes){dim, origin, LG_PUT_SET}), x, src, index);
}

lg_tensor *lg__scatter_extreme(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, bool max, lg__origin origin)
{
        return LG__APPLY(scatter_extreme, (&(gather_attributes){dim, origin, max ? LG_PUT_MAX : LG_PUT_MIN}), x, src,
                         index);
}

bool lg__scatter_rows(lg_tensor *x, lg_tensor *index, lg_tensor *src, lg__origin origin)
{
        const gather_attributes a = {.origin = origin};
        lg_tensor *all = lg_expand(lg_unsqueeze(index, 1), src->at.shape);
        if (!all)
                return false;
        lg_gather_args k = kernel_args(&a, all, src, x, x);
        k.mode = LG_PUT_SET;
        lg__storage_changed(x->storage);
        return LG__RUN(x->storage->device, "scatter", scatter, &k);
}

lg_tensor *lg_scatter(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        return lg__scatter(x, dim, index, src, LG__ORIGIN_SCATTER);
}

/* ---- index_select, index_add ---- */

lg_tensor *lg__expanded_index(const char *op, const lg_tensor *x, int *dim, lg_tensor *index, const lg_tensor *src)
{
        lg_shape all = x->at.shape, one = {.ndim = all.ndim};
        if ((*dim = lg__scalar_dim(x->ctx, op, *dim, all.ndim)) < 0)
                return NULL;
        const int64_t count = index->at.shape.ndim ? index->at.shape.size[0] : 1;
        if (index->at.shape.ndim > 1 || (!all.ndim && count != 1))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: index is %s, not %s", op, lg__tensor_text(index).s,
                                all.ndim ? "of one dimension" : "one index, for x is 0-d");
        for (int i = 0; i < one.ndim; i++)
                one.size[i] = 1;
        if (all.ndim)
                one.size[*dim] = all.size[*dim] = count;
        if (src && !lg__shape_equal(src->at.shape, all))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: src is %s; for x %s and %lld indices it must be %s", op,
                                lg__tensor_text(src).s, lg__tensor_text(x).s, (long long)count, lg__shape_text(all).s);
        return lg_expand(lg_reshape(index, one), all);
}

/* Computes index_select by gather and index_add by scatter_add, with the 1-d index expanded to the other dimensions. */
static lg_tensor *compose(const lg__call *call)
{
        gather_attributes a = *(const gather_attributes *)call->attributes;
        lg_tensor *x = call->in[0], *src = call->in_count > 2 ? call->in[2] : NULL;
        lg_tensor *index = lg__expanded_index(call->op->name, x, &a.dim, call->in[1], src);
        if (!index)
                return NULL;
        return src ? LG__APPLY(scatter_add, &a, x, src, index) : LG__APPLY(gather, &a, x, index);
}

static bool form_index_select(lg__form *f, const lg__call *call)
{
        const int ndim = call->in[0]->at.shape.ndim, dim = ((const gather_attributes *)call->attributes)->dim;
        lg__form_add(f, "Gather(x, index, axis=%d)", dim);
        return ndim > 0 && call->in[1]->at.shape.ndim == 1;
}

LG__DEFINE(index_select, .compose = compose, .form = form_index_select, LG__OPERANDS({"x"}, {"index", LG__INDEX}))
LG__DEFINE(index_add, .compose = compose, LG__OPERANDS({"x"}, {"index", LG__INDEX}, {"src"}))

lg_tensor *lg__index_select(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin)
{
        return LG__APPLY(index_select, (&(gather_attributes){.dim = dim, .origin = origin}), x, index);
}

lg_tensor *lg_index_select(lg_tensor *x, int dim, lg_tensor *index)
{
        return lg__index_select(x, dim, index, LG__ORIGIN_INDEX_SELECT);
}

lg_tensor *lg_index_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        return LG__APPLY(index_add, (&(gather_attributes){.dim = dim, .origin = LG__ORIGIN_INDEX_ADD}), x, index, src);
}
