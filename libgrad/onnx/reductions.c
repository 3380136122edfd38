/* reductions.c - ONNX's operators that combine the elements along dimensions. */
#include <math.h>
#include "import.h"

typedef lg_tensor *reduction(lg_tensor *x, const lg_reduce_options *options);

/* Reads the axes from operand 1 or the attribute. Without axes all dimensions are reduced, or, if the node says so,
 * none: *ret_none is then true. */
static bool take_options(const lg__onnx_call *c, lg_reduce_options *ret, bool *ret_none)
{
        *ret = (lg_reduce_options){.size_ = sizeof(lg_reduce_options), .keep_dim = lg__onnx_int(c, "keepdims", 1) != 0};
        if (!lg__onnx_axes(c, 1, "axes", c->in[0]->at.shape.ndim, &ret->dims))
                return false;
        *ret_none = ret->dims.count == 0 && lg__onnx_int(c, "noop_with_empty_axes", 0);
        return true;
}

/* Computes reduce(before(x)), in x's dtype. before may be NULL. */
static lg_tensor *reduced(lg__onnx_call *c, lg_tensor *(*before)(lg_tensor *x), reduction *reduce,
                          lg_tensor *(*after)(lg_tensor *y))
{
        lg_reduce_options o;
        bool none;
        if (!take_options(c, &o, &none))
                return NULL;
        lg_tensor *x = before ? before(c->in[0]) : c->in[0];
        lg_tensor *y = !x || none || x->at.shape.ndim == 0 ? x : reduce(x, &o);
        y = y && y->at.dtype != c->in[0]->at.dtype ? lg_cast(y, c->in[0]->at.dtype) : y;
        return y && after ? after(y) : y;
}

LG__ONNX(ReduceSum)
{
        return reduced(c, NULL, lg_sum_with, NULL);
}

LG__ONNX(ReduceMean)
{
        lg_tensor *x = c->in[0];
        if (lg__dtype_float(x->at.dtype))
                return reduced(c, NULL, lg_mean_with, NULL);
        lg_tensor *sum = reduced(c, NULL, lg_sum_with, NULL);
        const int64_t n = lg__shape_numel(x->at.shape), m = sum ? lg__shape_numel(sum->at.shape) : 0;
        return m ? lg_cast(lg_trunc(lg_div_scalar(lg_cast(sum, LG_F64), (double)(n / m))), x->at.dtype) : sum;
}

LG__ONNX(ReduceProd)
{
        return reduced(c, NULL, lg_prod_with, NULL);
}

/* The reduction of no elements is the least or greatest value. */
static lg_tensor *extreme(lg__onnx_call *c, reduction *reduce, double of_none)
{
        lg_tensor *x = c->in[0];
        if (x->at.dtype == LG_BOOL)
                return reduced(c, NULL, of_none < 0 ? lg_any_with : lg_all_with, NULL);
        if (lg__shape_numel(x->at.shape))
                return reduced(c, NULL, reduce, NULL);
        lg_tensor *none = reduced(c, NULL, lg_sum_with, NULL);
        return none ? lg_full_like(none, of_none) : NULL;
}

LG__ONNX(ReduceMax)
{
        return extreme(c, lg_amax_with, -INFINITY);
}

LG__ONNX(ReduceMin)
{
        return extreme(c, lg_amin_with, INFINITY);
}

LG__ONNX(ReduceL1)
{
        return reduced(c, lg_abs, lg_sum_with, NULL);
}

LG__ONNX(ReduceL2)
{
        return reduced(c, lg_square, lg_sum_with, lg_sqrt);
}

LG__ONNX(ReduceSumSquare)
{
        return reduced(c, lg_square, lg_sum_with, NULL);
}

LG__ONNX(ReduceLogSum)
{
        return reduced(c, NULL, lg_sum_with, lg_log);
}

LG__ONNX(ReduceLogSumExp)
{
        return reduced(c, NULL, lg_logsumexp_with, NULL);
}

/* ---- soft-max ---- */

/* Before opset 13, the dimensions from the axis on count as one. */
static lg_tensor *softmax(lg__onnx_call *c, lg_tensor *(*fn)(lg_tensor *x, int dim))
{
        lg_tensor *x = c->in[0];
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", c->opset < 13 ? 1 : -1), x->at.shape.ndim);
        if (axis < 0)
                return NULL;
        if (c->opset >= 13)
                return fn(x, axis);
        lg_tensor *flat = lg_flatten(x, .start_dim = axis);
        lg_tensor *y = flat ? fn(flat, axis) : NULL;
        return y ? lg_reshape(y, x->at.shape) : NULL;
}

LG__ONNX(Softmax)
{
        return softmax(c, lg_softmax);
}

LG__ONNX(LogSoftmax)
{
        return softmax(c, lg_log_softmax);
}

/* Returns 1 at the first largest element and 0 elsewhere. */
static lg_tensor *hardmax(lg_tensor *x, int dim)
{
        lg_tensor *at = lg_argmax(x, .dims = LG_DIMS(dim), .keep_dim = true);
        return at ? lg_scatter_scalar(lg_zeros_like(x), dim, at, 1) : NULL;
}

LG__ONNX(Hardmax)
{
        return softmax(c, hardmax);
}

/* ---- norms ---- */

LG__ONNX(LpNormalization)
{
        lg_tensor *x = c->in[0];
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", -1), x->at.shape.ndim);
        if (axis < 0)
                return NULL;
        lg_tensor *norm = lg__onnx_int(c, "p", 2) == 1
                                  ? lg_sum(lg_abs(x), .dims = LG_DIMS(axis), .keep_dim = true)
                                  : lg_sqrt(lg_sum(lg_square(x), .dims = LG_DIMS(axis), .keep_dim = true));
        return norm ? lg_where(lg_eq_scalar(norm, 0), lg_mul_scalar(x, 0), lg_div(x, norm)) : NULL;
}

LG__ONNX(MeanVarianceNormalization)
{
        lg_tensor *x = c->in[0];
        lg_dims dims;
        if (!lg__onnx_axes(c, -1, "axes", x->at.shape.ndim, &dims))
                return NULL;
        if (!lg__onnx_attribute_of(c, "axes"))
                dims = LG_DIMS(0, 2, 3);
        lg_tensor *off = lg_sub(x, lg_mean(x, .dims = dims, .keep_dim = true));
        lg_tensor *deviation = lg_std(x, .dims = dims, .keep_dim = true, .correction = LG_ZERO);
        return lg_div(off, lg_add_scalar(deviation, 1e-9));
}

/* ---- running sums ---- */

static lg_tensor *running(lg__onnx_call *c, lg_tensor *(*fn)(lg_tensor *x, int dim), double first)
{
        lg_tensor *x = c->in[0];
        const int axis = lg__onnx_axis(c, lg__onnx_whole(c, 1, 0), x->at.shape.ndim);
        if (axis < 0)
                return NULL;
        const lg_dims dims = LG_DIMS(axis);
        const int64_t n = x->at.shape.size[axis];
        const bool reverse = lg__onnx_int(c, "reverse", 0);
        x = reverse ? lg_flip(x, dims) : x;
        if (x && lg__onnx_int(c, "exclusive", 0) && n > 0) {
                lg_tensor *begin = lg_full_like(lg_narrow(x, axis, 0, 1), first);
                x = begin ? lg_cat(LG_LIST(begin, lg_narrow(x, axis, 0, n - 1)), axis) : NULL;
        }
        lg_tensor *y = x ? fn(x, axis) : NULL;
        y = y && y->at.dtype != c->in[0]->at.dtype ? lg_cast(y, c->in[0]->at.dtype) : y;
        return y && reverse ? lg_flip(y, dims) : y;
}

LG__ONNX(CumSum)
{
        return running(c, lg_cumsum, 0);
}

LG__ONNX(CumProd)
{
        return running(c, lg_cumprod, 1);
}

/* ---- places of extremes ---- */

static lg_tensor *place(lg__onnx_call *c, reduction *find)
{
        lg_tensor *x = c->in[0];
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", 0), x->at.shape.ndim);
        const bool last = lg__onnx_int(c, "select_last_index", 0);
        if (axis < 0)
                return NULL;
        const lg_reduce_options o = {.size_ = sizeof(lg_reduce_options),
                                     .dims = LG_DIMS(axis),
                                     .keep_dim = lg__onnx_int(c, "keepdims", 1) != 0};
        lg_tensor *y = find(last ? lg_flip(x, LG_DIMS(axis)) : x, &o);
        return y && last ? lg_rsub_scalar(y, (double)(x->at.shape.size[axis] - 1)) : y;
}

LG__ONNX(ArgMax)
{
        return place(c, lg_argmax_with);
}

LG__ONNX(ArgMin)
{
        return place(c, lg_argmin_with);
}
