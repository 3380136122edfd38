/* indexing.c - ONNX's operators that choose and write elements by index. */
#include "import.h"

/* Returns an index as i64, with n added where it counts from the end. */
static lg_tensor *from_start(lg_tensor *index, int64_t n)
{
        lg_tensor *i = index->at.dtype == LG_I64 ? index : lg_cast(index, LG_I64);
        return i ? lg_where(lg_lt_scalar(i, 0), lg_add_scalar(i, (double)n), i) : NULL;
}

/* Reads attribute "axis" and operand 1, the index along it. Returns NULL with an error. */
static lg_tensor *index_along(const lg__onnx_call *c, int *ret_axis)
{
        lg_tensor *x = c->in[0];
        *ret_axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", 0), x->at.shape.ndim);
        return *ret_axis < 0 ? NULL : from_start(c->in[1], x->at.shape.size[*ret_axis]);
}

LG__ONNX(Gather)
{
        lg_tensor *x = c->in[0];
        int axis;
        lg_tensor *index = index_along(c, &axis);
        if (!index)
                return NULL;
        const lg_shape *s = &x->at.shape, *i = &index->at.shape;
        lg_shape shape = {.ndim = s->ndim - 1 + i->ndim};
        if (shape.ndim > LG_MAX_DIMS)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its result has %d dimensions", shape.ndim);
        for (int d = 0; d < shape.ndim; d++)
                shape.size[d] = d < axis             ? s->size[d]
                                : d < axis + i->ndim ? i->size[d - axis]
                                                     : s->size[d - i->ndim + 1];
        lg_tensor *y = lg_index_select(x, axis, lg_reshape(index, LG_SHAPE(lg__shape_numel(*i))));
        return y ? lg_reshape(y, shape) : NULL;
}

LG__ONNX(GatherElements)
{
        int axis;
        lg_tensor *index = index_along(c, &axis);
        return index ? lg_gather(c->in[0], axis, index) : NULL;
}

/* ---- indices that are tuples ---- */

/* Splits tuples (..., k), of which `batch` dimensions are common with x, into k indices of x's dimensions from `batch`
 * on, and makes indices of the dimensions before. Returns their number, or 0 with an error. */
static int64_t split_tuples(const lg__onnx_call *c, int batch, lg_tensor **ret)
{
        lg_tensor *x = c->in[0], *tuples = c->in[1];
        const lg_shape *s = &x->at.shape, *t = &tuples->at.shape;
        const int64_t k = t->ndim ? t->size[t->ndim - 1] : 0;
        if (batch < 0 || batch >= t->ndim || k < 1 || batch + k > s->ndim) {
                lg__onnx_fail(c, LG_ERR_SHAPE, "the indices %s do not fit %s", lg__tensor_text(tuples).s,
                              lg__tensor_text(x).s);
                return 0;
        }
        for (int d = 0; d < batch; d++) {
                lg_shape across = {.ndim = t->ndim - 1};
                for (int i = 0; i < across.ndim; i++)
                        across.size[i] = i == d ? t->size[d] : 1;
                ret[d] = lg_reshape(
                        lg_arange(c->ctx, 0, (double)t->size[d], 1, .dtype = LG_I64, .device = x->storage->device->id),
                        across);
        }
        for (int d = 0; d < k; d++) {
                lg_tensor *one = lg_select(tuples, -1, d);
                ret[batch + d] = one ? from_start(one, s->size[batch + d]) : NULL;
        }
        return lg__ok(c->ctx) ? batch + k : 0;
}

LG__ONNX(GatherND)
{
        lg_tensor *list[LG_MAX_DIMS];
        const int64_t n = split_tuples(c, (int)lg__onnx_int(c, "batch_dims", 0), list);
        return n ? lg_index(c->in[0], (lg_list){n, list}) : NULL;
}

/* Returns the reduction that the node names, or -1 for plain writing. */
static int reduction_of(const lg__onnx_call *c)
{
        static const char *const names[] = {"add", "mul", "mean", "max", "min"}; /* by lg_scatter_reduction */
        const char *name = lg__onnx_text(c, "reduction", "none");
        for (int i = 0; i < 5; i++)
                if (!strcmp(name, names[i]))
                        return i;
        return -1;
}

LG__ONNX(ScatterElements)
{
        int axis;
        lg_tensor *index = index_along(c, &axis);
        const int reduction = reduction_of(c);
        if (!index)
                return NULL;
        return reduction < 0 ? lg_scatter(c->in[0], axis, index, c->in[2])
                             : lg_scatter_reduce(c->in[0], axis, index, c->in[2], (lg_scatter_reduction)reduction);
}

LG__ONNX(Scatter)
{
        return lg__onnx_ScatterElements(c);
}

/* Rows of x, flattened up to the dimension after the tuples, are written by a flat index. */
LG__ONNX(ScatterND)
{
        lg_tensor *x = c->in[0], *list[LG_MAX_DIMS];
        const int64_t n = split_tuples(c, 0, list);
        const int reduction = reduction_of(c);
        if (!n)
                return NULL;
        if (reduction < 0)
                return lg_index_put(x, ((lg_list){n, list}), c->in[2]);
        lg_tensor *flat = NULL;
        int64_t rows = 1, columns = 1;
        for (int d = 0; d < x->at.shape.ndim; d++) {
                const int64_t size = x->at.shape.size[d];
                *(d < n ? &rows : &columns) *= size;
                if (d < n)
                        flat = flat ? lg_add(lg_mul_scalar(flat, (double)size), list[d]) : list[d];
        }
        if (!flat)
                return NULL;
        const int64_t count = lg__shape_numel(flat->at.shape);
        lg_tensor *y = lg_index_reduce(lg_reshape(x, LG_SHAPE(rows, columns)), 0, lg_reshape(flat, LG_SHAPE(count)),
                                       lg_reshape(c->in[2], LG_SHAPE(count, columns)), (lg_scatter_reduction)reduction);
        return y ? lg_reshape(y, x->at.shape) : NULL;
}

/* ---- choosing ---- */

LG__ONNX(OneHot)
{
        const int64_t classes = lg__onnx_whole(c, 1, 0);
        lg_tensor *index = c->in[0], *off_on = c->in[2];
        const int ndim = index->at.shape.ndim + 1;
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", -1), ndim);
        if (axis < 0 || !lg__ok(c->ctx) || classes < 1 || lg__shape_numel(off_on->at.shape) != 2)
                return axis < 0 ? NULL : lg__onnx_fail(c, LG_ERR_ARGUMENT, "%lld classes", (long long)classes);
        index = from_start(index, classes); /* out of range: no class */
        lg_tensor *classes_of =
                lg_arange(c->ctx, 0, (double)classes, 1, .dtype = LG_I64, .device = off_on->storage->device->id);
        lg_shape across = {.ndim = ndim};
        for (int i = 0; i < ndim; i++)
                across.size[i] = i == axis ? classes : 1;
        lg_tensor *is = index ? lg_eq(lg_unsqueeze(index, axis), lg_reshape(classes_of, across)) : NULL;
        return is ? lg_where(is, lg_select(off_on, 0, 1), lg_select(off_on, 0, 0)) : NULL;
}

LG__ONNX(TopK)
{
        lg_tensor *x = c->in[0], *index = NULL;
        const int64_t k = c->in_count > 1 ? lg__onnx_whole(c, 1, 0) : lg__onnx_int(c, "k", 0);
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", -1), x->at.shape.ndim);
        if (axis < 0 || !lg__ok(c->ctx))
                return NULL;
        lg_tensor *y = lg_topk(x, k, axis, .smallest = !lg__onnx_int(c, "largest", 1), .indices = &index);
        c->out[1] = index;
        return y;
}

LG__ONNX(NonZero)
{
        lg_tensor *x = c->in[0], *places = lg_nonzero(x->at.shape.ndim ? x : lg_reshape(x, LG_SHAPE(1)));
        return places ? lg_transpose(places, 0, 1) : NULL;
}

/* Keeps the slices whose entry of the condition, which may be shorter, is true. */
LG__ONNX(Compress)
{
        lg_tensor *x = c->in[0];
        const bool flat = !lg__onnx_attribute_of(c, "axis");
        x = flat ? lg_reshape(x, LG_SHAPE(-1)) : x;
        const int axis = x ? lg__onnx_axis(c, lg__onnx_int(c, "axis", 0), x->at.shape.ndim) : -1;
        lg_tensor *places = axis < 0 ? NULL : lg_nonzero(c->in[1]);
        return places ? lg_index_select(x, axis, lg_reshape(places, LG_SHAPE(-1))) : NULL;
}

LG__ONNX(Unique)
{
        lg_tensor *x = c->in[0], *inverse = NULL, *counts = NULL;
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, "axis");
        x = a ? x : lg_reshape(x, LG_SHAPE(-1));
        const int axis = x ? lg__onnx_axis(c, a ? a->i : 0, x->at.shape.ndim) : -1;
        if (axis < 0)
                return NULL;
        lg_tensor *y = lg_unique(x, .dims = LG_DIMS(axis), .inverse = &inverse, .counts = &counts);
        if (!y)
                return NULL;
        const int64_t n = x->at.shape.size[axis], m = y->at.shape.size[axis];
        lg_tensor *at = lg_arange(c->ctx, 0, (double)n, 1, .dtype = LG_I64, .device = x->storage->device->id);
        lg_tensor *first = lg_full(c->ctx, LG_SHAPE(m), (double)n, .dtype = LG_I64, .device = x->storage->device->id);
        first = lg_scatter_reduce(first, 0, inverse, at, LG_SCATTER_AMIN);
        if (!lg__onnx_int(c, "sorted", 1) && first) { /* in the order of their first places */
                lg_tensor *order = lg_argsort(first, 0), *rank = lg_argsort(order, 0);
                y = lg_index_select(y, axis, order);
                first = lg_index_select(first, 0, order);
                counts = lg_index_select(counts, 0, order);
                inverse = lg_index_select(rank, 0, inverse);
        }
        c->out[1] = first;
        c->out[2] = inverse;
        c->out[3] = counts;
        return y;
}

/* Reverses the first lengths[b] steps of each sequence. */
LG__ONNX(ReverseSequence)
{
        lg_tensor *x = c->in[0], *lengths = c->in[1];
        const int over = lg__onnx_axis(c, lg__onnx_int(c, "batch_axis", 1), x->at.shape.ndim);
        const int along = over < 0 ? -1 : lg__onnx_axis(c, lg__onnx_int(c, "time_axis", 0), x->at.shape.ndim);
        if (along < 0 || over == along || lengths->at.shape.ndim != 1)
                return along < 0 ? NULL : lg__onnx_fail(c, LG_ERR_SHAPE, "lengths %s", lg__tensor_text(lengths).s);
        lg_shape steps = {.ndim = x->at.shape.ndim}, batch = steps;
        for (int i = 0; i < steps.ndim; i++) {
                steps.size[i] = i == along ? x->at.shape.size[i] : 1;
                batch.size[i] = i == over ? x->at.shape.size[i] : 1;
        }
        lg_tensor *t = lg_reshape(lg_arange(c->ctx, 0, (double)x->at.shape.size[along], 1, .dtype = LG_I64,
                                            .device = x->storage->device->id),
                                  steps);
        lg_tensor *n = lg_reshape(lg_cast(lengths, LG_I64), batch);
        lg_tensor *from = lg_where(lg_lt(t, n), lg_sub(lg_add_scalar(n, -1), t), t);
        return from ? lg_gather(x, along, lg_expand(from, x->at.shape)) : NULL;
}
