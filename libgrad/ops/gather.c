/* gather.c - selects elements by index along a dimension (gather), or adds to selected elements (scatter_add).
 *
 * Let q(p) be position p with its coordinate in dimension dim replaced by index[p]. gather: y[p] = x[q(p)]; dx =
 * scatter_add of g into zeros. scatter_add: y = x, then y[q(p)] += src[p]; dx = g, dsrc[p] = g[q(p)], and 0 where src
 * extends beyond the index. index_select and index_add repeat a 1-d index over all other dimensions.
 */
#include <string.h>
#include "gather.h"

/* The attribute origin identifies the public function that was called, for errors about an index out of range. */
#define GATHER_FIELDS(FIELD) FIELD(int, dim, 0) FIELD(origin, origin, LG__ORIGIN_GATHER)
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

/* Common part of the shape rules: sets the shape of the result, and checks dim and that the index fits x. */
static bool infer(lg__call *call, const lg_tensor *index, lg_shape shape)
{
        gather_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        const char *op = call->op->name;
        call->out_at[0].shape = shape;
        a->dim = lg__line_dim(x, op, a->dim);
        if (a->dim < 0 || fits(index, x, a->dim))
                return a->dim >= 0;
        return lg__fail(call->ctx, LG_ERR_SHAPE,
                        "%s: index is %s and x is %s; the index has x's dimensions, none larger but dimension %d", op,
                        lg__tensor_text(index).s, lg__tensor_text(x).s, a->dim);
}

/* ---- gather ---- */

static bool infer_gather(lg__call *call)
{
        return infer(call, call->in[1], call->in[1]->at.shape);
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
        return lg__shape_numel(g->at.shape) == 0 || LG__RUN(to->storage->device, "gather", scatter_add, &k);
}

LG__DEFINE(gather, LG__OPERANDS({"x"}, {"index", LG__INDEX, .saved_for = LG__BY(0)}), LG__RESULTS({"y"}),
           LG__HAS(gather), .infer = infer_gather, .forward = forward_gather, .vjp = vjp_gather, .fused = fused_gather)

lg_tensor *lg__gather(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin)
{
        return LG__APPLY(gather, (&(gather_attributes){dim, origin}), x, index);
}

lg_tensor *lg_gather(lg_tensor *x, int dim, lg_tensor *index)
{
        return lg__gather(x, dim, index, LG__ORIGIN_GATHER);
}

/* ---- scatter_add ---- */

static bool infer_scatter_add(lg__call *call)
{
        const lg_tensor *x = call->in[0], *src = call->in[1], *index = call->in[2];
        if (!infer(call, index, x->at.shape))
                return false;
        if (x->at.dtype != src->at.dtype || x->at.dtype == LG_BOOL)
                return lg__fail(call->ctx, LG_ERR_DTYPE,
                                "scatter_add: x is %s and src is %s; both are of one dtype, not bool: use lg_cast()",
                                lg__tensor_text(x).s, lg__tensor_text(src).s);
        return fits(index, src, -1) ||
               lg__fail(call->ctx, LG_ERR_SHAPE,
                        "scatter_add: index is %s and src is %s; the index has src's dimensions, none larger",
                        lg__tensor_text(index).s, lg__tensor_text(src).s);
}

static bool forward_scatter_add(lg__call *call)
{
        lg_tensor *out = call->out[0];
        lg_gather_args k = kernel_args(call->attributes, call->in[2], call->in[1], out, out);
        if (!lg__copy_values(out, call->in[0], "scatter_add"))
                return false;
        return lg__shape_numel(call->in[2]->at.shape) == 0 || LG__RUN(call->device, "scatter_add", scatter_add, &k);
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

LG__DEFINE(scatter_add, .autocast = LG__WIDEST,
           LG__OPERANDS({"x"}, {"src"}, {"index", LG__INDEX, .saved_for = LG__BY(1)}), LG__RESULTS({"y"}),
           LG__HAS(gather), .infer = infer_scatter_add, .forward = forward_scatter_add, .vjp = vjp_scatter_add)

lg_tensor *lg__scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin)
{
        return LG__APPLY(scatter_add, (&(gather_attributes){dim, origin}), x, src, index);
}

lg_tensor *lg_scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        return lg__scatter_add(x, dim, index, src, LG__ORIGIN_SCATTER_ADD);
}

/* ---- index_select, index_add ---- */

/* Computes index_select by gather and index_add by scatter_add, with the 1-d index expanded to the other dimensions. */
static lg_tensor *compose(const lg__call *call)
{
        gather_attributes a = *(const gather_attributes *)call->attributes;
        lg_tensor *x = call->in[0], *index = call->in[1], *src = call->in_count > 2 ? call->in[2] : NULL;
        lg_shape all = x->at.shape, one = {.ndim = all.ndim};
        const char *op = call->op->name;
        if ((a.dim = lg__dim(call->ctx, op, a.dim, all.ndim)) < 0)
                return NULL;
        if (index->at.shape.ndim != 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: index is %s, not of one dimension", op,
                                lg__tensor_text(index).s);
        for (int i = 0; i < one.ndim; i++)
                one.size[i] = 1;
        one.size[a.dim] = all.size[a.dim] = index->at.shape.size[0];
        if (src && !lg__shape_equal(src->at.shape, all))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: src is %s; for x %s and %lld indices it must be %s", op,
                                lg__tensor_text(src).s, lg__tensor_text(x).s, (long long)all.size[a.dim],
                                lg__shape_text(all).s);
        index = lg_expand(lg_reshape(index, one), all);
        return src ? LG__APPLY(scatter_add, &a, x, src, index) : LG__APPLY(gather, &a, x, index);
}

LG__DEFINE(index_select, .compose = compose, LG__OPERANDS({"x"}, {"index", LG__INDEX}))
LG__DEFINE(index_add, .compose = compose, LG__OPERANDS({"x"}, {"index", LG__INDEX}, {"src"}))

lg_tensor *lg__index_select(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin)
{
        return LG__APPLY(index_select, (&(gather_attributes){dim, origin}), x, index);
}

lg_tensor *lg_index_select(lg_tensor *x, int dim, lg_tensor *index)
{
        return lg__index_select(x, dim, index, LG__ORIGIN_INDEX_SELECT);
}

lg_tensor *lg_index_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        return LG__APPLY(index_add, (&(gather_attributes){dim, LG__ORIGIN_INDEX_ADD}), x, index, src);
}
