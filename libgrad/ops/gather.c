/* gather.c - picking by index along a dimension, and its counterpart, adding where an index points.
 *
 * With q(p) the place p but for q[dim] = index[p]: gather: y[p] = x[q(p)]; dx = scatter_add of g into zeros.
 * scatter_add: y = x, then y[q(p)] += src[p]; dx = g, dsrc[p] = g[q(p)], and 0 where src reaches beyond the index.
 * index_select and index_add are the two with an index that is repeated over all other dimensions.
 */
#include <string.h>
#include "gather.h"

typedef struct gather_attributes {
        int dim;
        lg__fault fault; /* names the function that was called, if an index is out of range */
} gather_attributes;

/* `shape` is the one of the index; a 0-d tensor is one of one element. */
static lg_gather_args kernel_args(const gather_attributes *a, const lg_tensor *index, const lg_tensor *from,
                                  const lg_tensor *to, const lg_tensor *pointed)
{
        int ndim = index->at.shape.ndim;
        lg_gather_args k = {.dtype = from->at.dtype,
                            .ndim = ndim,
                            .dim = a->dim,
                            .index = lg__data(index),
                            .limit = ndim ? pointed->at.shape.size[a->dim] : 1,
                            .fault = a->fault,
                            .from = lg__data(from),
                            .to = lg__data(to),
                            .to_count = lg__shape_numel(to->at.shape)};
        memcpy(k.shape, index->at.shape.size, sizeof k.shape);
        memcpy(k.index_strides, index->at.strides, sizeof k.index_strides);
        memcpy(k.from_strides, from->at.strides, sizeof k.from_strides);
        memcpy(k.to_strides, to->at.strides, sizeof k.to_strides);
        return k;
}

/* ---- gather ---- */

/* True if `index` lies within `over` in every dimension but `dim` (-1: none is left out). */
static bool fits(const lg_tensor *index, const lg_tensor *over, int dim)
{
        const lg_shape *s = &index->at.shape, *o = &over->at.shape;
        bool ok = s->ndim == o->ndim;
        for (int i = 0; i < s->ndim && ok; i++)
                ok = i == dim || s->size[i] <= o->size[i];
        return ok;
}

static bool check_index(const lg__call *call, const lg_tensor *index)
{
        const char *op = call->op->name;
        int dim = ((const gather_attributes *)call->attributes)->dim;
        if (index->at.dtype != LG_I64)
                return lg__fail(call->ctx, LG_ERR_DTYPE, "%s: index is %s; indices are i64: lg_cast(index, LG_I64)", op,
                                lg__tensor_text(index).s);
        return fits(index, call->in[0], dim) ||
               lg__fail(call->ctx, LG_ERR_SHAPE,
                        "%s: index is %s and x is %s; the index has x's dimensions, none larger but dimension %d", op,
                        lg__tensor_text(index).s, lg__tensor_text(call->in[0]).s, dim);
}

static bool infer_gather(lg__call *call)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = call->in[1]->at.shape;
        return check_index(call, call->in[1]);
}

static bool forward_gather(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        lg_gather_args k = kernel_args(call->attributes, call->in[1], x, call->out[0], x);
        return k.to_count == 0 || LG__RUN(call->device, "gather", gather, &k);
}

lg_tensor *lg__gather(lg_tensor *x, int dim, lg_tensor *index, lg__fault fault)
{
        gather_attributes a = {dim, fault};
        return lg__apply2(LG__OP(gather), x, index, &a);
}

static bool vjp_gather(lg__vjp *v)
{
        const gather_attributes *a = v->attributes;
        lg_tensor *zeros = lg_expand(lg__constant(v->grad[0], 0), lg__input(v, 0)->shape);
        return (v->grad_in[0] = lg__scatter_add(zeros, a->dim, v->in[1], v->grad[0], a->fault)) != NULL;
}

const lg__op lg__op_gather = {.name = "gather",
                              LG__OPERANDS({"x"}, {"index", LG__INDEX, .saved_for = LG__BY(0)}),
                              LG__RESULTS({"y"}),
                              .attributes_bytes = sizeof(gather_attributes),
                              .infer = infer_gather,
                              .forward = forward_gather,
                              .vjp = vjp_gather};

/* ---- scatter_add ---- */

static bool infer_scatter_add(lg__call *call)
{
        const lg_tensor *x = call->in[0], *src = call->in[1], *index = call->in[2];
        call->out_at[0].dtype = x->at.dtype;
        call->out_at[0].shape = x->at.shape;
        if (!check_index(call, index))
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

lg_tensor *lg__scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__fault fault)
{
        gather_attributes a = {dim, fault};
        return LG__APPLY(scatter_add, &a, x, src, index);
}

/* t, with zeros behind it in every dimension, so that it has that shape. */
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
        const gather_attributes *a = v->attributes;
        v->grad_in[0] = v->grad[0];
        if (!v->needs[1])
                return true;
        lg_tensor *picked = lg__gather(v->grad[0], a->dim, v->in[2], a->fault);
        return (v->grad_in[1] = extended(picked, lg__input(v, 1)->shape)) != NULL;
}

const lg__op lg__op_scatter_add = {.name = "scatter_add",
                                   LG__OPERANDS({"x"}, {"src"}, {"index", LG__INDEX, .saved_for = LG__BY(1)}),
                                   LG__RESULTS({"y"}),
                                   .attributes_bytes = sizeof(gather_attributes),
                                   .infer = infer_scatter_add,
                                   .forward = forward_scatter_add,
                                   .vjp = vjp_scatter_add};

/* ---- the functions ---- */

static int dim_of(const lg_tensor *x, const char *op, int dim)
{
        int ndim = x->at.shape.ndim;
        return lg__dim(x->ctx, op, dim, ndim ? ndim : 1);
}

lg_tensor *lg_gather(lg_tensor *x, int dim, lg_tensor *index)
{
        if (!lg__same_context(x, index, "gather", "index") || !lg__check(x, "gather", "x"))
                return NULL;
        dim = dim_of(x, "gather", dim);
        return dim < 0 ? NULL : lg__gather(x, dim, index, LG__FAULT_GATHER);
}

lg_tensor *lg_scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        if (!lg__same_context(x, index, "scatter_add", "index") || !lg__same_context(x, src, "scatter_add", "src") ||
            !lg__check(x, "scatter_add", "x"))
                return NULL;
        dim = dim_of(x, "scatter_add", dim);
        return dim < 0 ? NULL : lg__scatter_add(x, dim, index, src, LG__FAULT_SCATTER_ADD);
}

/* A 1-d index as x's index along `dim`, repeated over the other dimensions without a copy. */
static lg_tensor *repeated(lg_tensor *index, const lg_tensor *x, int dim, const char *op)
{
        lg_shape one = {.ndim = x->at.shape.ndim}, all = x->at.shape;
        if (!index)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: index is NULL", op);
        if (!lg__check(index, op, "index"))
                return NULL;
        if (index->at.dtype != LG_I64)
                return lg__fail(x->ctx, LG_ERR_DTYPE, "%s: index is %s; indices are i64: lg_cast(index, LG_I64)", op,
                                lg__tensor_text(index).s);
        if (index->at.shape.ndim != 1)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: index is %s, not of one dimension", op,
                                lg__tensor_text(index).s);
        for (int i = 0; i < one.ndim; i++)
                one.size[i] = 1;
        one.size[dim] = all.size[dim] = index->at.shape.size[0];
        return lg_expand(lg_reshape(index, one), all);
}

lg_tensor *lg__index_select(lg_tensor *x, int dim, lg_tensor *index, const char *op, lg__fault fault)
{
        if (!lg__same_context(x, index, op, "index") || !lg__check(x, op, "x"))
                return NULL;
        dim = lg__dim(x->ctx, op, dim, x->at.shape.ndim);
        lg_tensor *all = dim < 0 ? NULL : repeated(index, x, dim, op);
        return all ? lg__gather(x, dim, all, fault) : NULL;
}

lg_tensor *lg_index_select(lg_tensor *x, int dim, lg_tensor *index)
{
        return lg__index_select(x, dim, index, "index_select", LG__FAULT_INDEX_SELECT);
}

lg_tensor *lg_index_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src)
{
        if (!lg__same_context(x, index, "index_add", "index") || !lg__same_context(x, src, "index_add", "src") ||
            !lg__check(x, "index_add", "x"))
                return NULL;
        dim = lg__dim(x->ctx, "index_add", dim, x->at.shape.ndim);
        lg_tensor *all = dim < 0 ? NULL : repeated(index, x, dim, "index_add");
        if (!all)
                return NULL;
        if (!src)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "index_add: src is NULL");
        if (!lg__check(src, "index_add", "src"))
                return NULL;
        if (!lg__shape_equal(src->at.shape, all->at.shape))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "index_add: src is %s; for x %s and %lld indices it must be %s",
                                lg__tensor_text(src).s, lg__tensor_text(x).s, (long long)all->at.shape.size[dim],
                                lg__shape_text(all->at.shape).s);
        return lg__scatter_add(x, dim, all, src, LG__FAULT_INDEX_ADD);
}
