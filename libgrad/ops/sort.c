/* sort.c - sort, topk, max and min along a dimension: values and their indices.
 *
 * sort: y[j] = x[index[j]] for the first k elements in order; dx[index[j]] = g[j], and 0 elsewhere. pick is the same
 * formula for given indices, and pick_grad is its derivative; each is the other's derivative.
 */
#include "graph/op.h"

/* Attribute size: number of sorted elements kept in each line, -1: all; for pick_grad, the size of its result's lines.
 */
#define SORT_FIELDS(FIELD) FIELD(int, dim, 0) FIELD(bool, descending, false) FIELD(i64, size, 0)
LG__ATTRIBUTES(sort, SORT_FIELDS)

static int64_t size_along(lg_shape s, int dim)
{
        return s.ndim ? s.size[dim] : 1;
}

/* Sets y to x's dtype and shape, with `size` elements along dim. */
static void resize(lg__layout *y, const lg_tensor *x, int dim, int64_t size)
{
        y->dtype = x->at.dtype;
        y->shape = x->at.shape;
        if (y->shape.ndim)
                y->shape.size[dim] = size;
}

static bool infer_sort(lg__call *call)
{
        sort_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        if ((a->dim = lg__line_dim(x, "sort", a->dim)) < 0)
                return false;
        if (a->size < 0)
                a->size = size_along(x->at.shape, a->dim);
        resize(&call->out_at[0], x, a->dim, a->size);
        resize(&call->out_at[1], x, a->dim, a->size);
        call->out_at[1].dtype = LG_I64;
        return true;
}

static bool forward_sort(lg__call *call)
{
        const sort_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_sort_args k = {.dtype = x->at.dtype, .k = a->size, .descending = a->descending};
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        lg__split(x->at.shape, a->dim, &k.outer, &k.n, &k.inner);
        k.x = lg__data(x);
        k.values = lg__data(call->out[0]);
        k.indices = lg__data(call->out[1]);
        return LG__RUN(call->device, "sort", sort, &k);
}

/* Derivative of sort and of pick. The indices are a result of sort, but an input of pick. */
static bool vjp_lines(lg__vjp *v)
{
        sort_attributes back = {.dim = ((const sort_attributes *)v->attributes)->dim};
        back.size = size_along(lg__input_shape(v, 0), back.dim);
        lg_tensor *indices = v->op == LG__OP(sort) ? v->out[1] : v->in[1];
        return (v->grad_in[0] = LG__APPLY(pick_grad, &back, v->grad[0], indices)) != NULL;
}

static bool form_sort(lg__form *f, const lg__call *call)
{
        const sort_attributes *a = call->attributes;
        const lg_shape s = call->out[0]->at.shape;
        if (s.ndim)
                lg__form_add(f, "values, indices = TopK(x, [%lld], axis=%d, largest=%d)", (long long)s.size[a->dim],
                             a->dim, a->descending);
        return s.ndim > 0;
}

LG__DEFINE(sort, LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR}),
           LG__RESULTS({"values"}, {"indices", .saved_for = LG__BY(0)}), LG__HAS(sort), .infer = infer_sort,
           .forward = forward_sort, .vjp = vjp_lines, .form = form_sort)

/* ---- pick and pick_grad ---- */

static bool infer_pick(lg__call *call)
{
        sort_attributes *a = call->attributes;
        if (call->op == LG__OP(pick))
                a->size = size_along(call->in[1]->at.shape, a->dim);
        resize(&call->out_at[0], call->in[0], a->dim, a->size);
        return true;
}

static bool forward_pick(lg__call *call)
{
        const int dim = ((const sort_attributes *)call->attributes)->dim;
        const lg_tensor *x = call->in[0], *indices = call->in[1], *y = call->out[0];
        const bool back = call->op == LG__OP(pick_grad);
        lg_pick_args k = {.dtype = x->at.dtype, .k = size_along(indices->at.shape, dim)};
        if (lg__shape_numel(y->at.shape) == 0)
                return true;
        lg__split(back ? y->at.shape : x->at.shape, dim, &k.outer, &k.n, &k.inner);
        k.x = lg__data(x);
        k.indices = lg__data(indices);
        k.y = lg__data(y);
        return back ? LG__RUN(call->device, call->op->name, pick_grad, &k)
                    : LG__RUN(call->device, call->op->name, pick, &k);
}

static bool vjp_pick_grad(lg__vjp *v)
{
        return (v->grad_in[0] = LG__APPLY(pick, v->attributes, v->grad[0], v->in[1])) != NULL;
}

LG__DEFINE(pick,
           LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR}, {"indices", LG__INDEX, LG__ROW_MAJOR, .saved_for = LG__BY(0)}),
           LG__RESULTS({"y"}), LG__HAS(sort), .infer = infer_pick, .forward = forward_pick, .vjp = vjp_lines,
           .onnx = "GatherElements(x, indices, axis=dim)")

LG__DEFINE(pick_grad, .flags = LG__UNORDERED,
           LG__OPERANDS({"g", LG__ANY, LG__ROW_MAJOR}, {"indices", LG__INDEX, LG__ROW_MAJOR, .saved_for = LG__BY(0)}),
           LG__RESULTS({"y"}), LG__HAS(sort), .infer = infer_pick, .forward = forward_pick, .vjp = vjp_pick_grad)

/* ---- public functions ---- */

/* Arguments of the composites. */
typedef struct line_call {
        int dim;
        int64_t k;
        const void *options;
} line_call;

/* Sorts x and returns the first k values. Stores the indices in *ret_indices unless ret_indices is NULL. */
static lg_tensor *sorted(lg_tensor *x, int dim, int64_t k, bool descending, lg_tensor **ret_indices)
{
        lg_tensor *out[LG__MAX_OUT];
        if (!lg__apply(LG__OP(sort), &x, 1, &(sort_attributes){dim, descending, k}, out))
                return NULL;
        if (ret_indices)
                *ret_indices = out[1];
        else
                lg__tensor_release(out[1]);
        return out[0];
}

lg_tensor *lg_sort_with(lg_tensor *x, int dim, const lg_sort_options *options)
{
        lg_sort_options o;
        if (!lg__take(lg__ctx_of(x), "sort", options, &o, sizeof o))
                return NULL;
        return sorted(x, dim, -1, o.descending, o.indices);
}

static lg_tensor *compose_argsort(const lg__call *call)
{
        const line_call *given = call->attributes;
        const int dim = lg__line_dim(call->in[0], "argsort", given->dim);
        lg_argsort_options o;
        if (dim < 0 || !lg__take(call->ctx, "argsort", given->options, &o, sizeof o))
                return NULL;
        lg_tensor *indices = NULL, *values = sorted(call->in[0], dim, -1, o.descending, &indices);
        lg__tensor_release(values);
        return indices;
}

LG__COMPOSITE(argsort, {"x"})

lg_tensor *lg_argsort_with(lg_tensor *x, int dim, const lg_argsort_options *options)
{
        return LG__APPLY(argsort, (&(line_call){.dim = dim, .options = options}), x);
}

static lg_tensor *compose_topk(const lg__call *call)
{
        const line_call *given = call->attributes;
        const int64_t k = given->k;
        lg_tensor *x = call->in[0];
        const int dim = lg__line_dim(x, "topk", given->dim);
        lg_topk_options o;
        if (dim < 0 || !lg__take(call->ctx, "topk", given->options, &o, sizeof o))
                return NULL;
        const int64_t n = size_along(x->at.shape, dim);
        if (k < 0 || k > n || (k == 0 && x->at.shape.ndim == 0))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "topk: k is %lld, but dimension %d of x, which is %s, has %lld", (long long)k, dim,
                                lg__tensor_text(x).s, (long long)n);
        return sorted(x, dim, k, !o.smallest, o.indices);
}

LG__COMPOSITE(topk, {"x"})

lg_tensor *lg_topk_with(lg_tensor *x, int64_t k, int dim, const lg_topk_options *options)
{
        return LG__APPLY(topk, (&(line_call){dim, k, options}), x);
}

static lg_tensor *extreme(const lg__call *call)
{
        const line_call *given = call->attributes;
        const char *name = call->op->name;
        lg_tensor *x = call->in[0];
        sort_attributes a = {.dim = lg__line_dim(x, name, given->dim)};
        lg_max_options o;
        if (a.dim < 0 || !lg__take(call->ctx, name, given->options, &o, sizeof o))
                return NULL;
        if (size_along(x->at.shape, a.dim) == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s: dimension %d has no element to pick from", name,
                                lg__tensor_text(x).s, a.dim);
        lg_dims dims = LG_DIMS(a.dim);
        if (x->at.shape.ndim == 0)
                dims.count = 0;
        lg_tensor *index = call->op == LG__OP(max) ? lg_argmax(x, .dims = dims, .keep_dim = true)
                                                   : lg_argmin(x, .dims = dims, .keep_dim = true);
        lg_tensor *y = LG__APPLY(pick, &a, x, index);
        if (y && dims.count && !o.keep_dim) {
                y = lg_squeeze(y, dims);
                index = lg_squeeze(index, dims);
        }
        if (y && index && o.indices)
                *o.indices = index;
        return y;
}

LG__DEFINE(max, .compose = extreme, LG__OPERANDS({"x"}))
LG__DEFINE(min, .compose = extreme, LG__OPERANDS({"x"}))

lg_tensor *lg_max_with(lg_tensor *x, int dim, const lg_max_options *options)
{
        return LG__APPLY(max, (&(line_call){.dim = dim, .options = options}), x);
}

lg_tensor *lg_min_with(lg_tensor *x, int dim, const lg_max_options *options)
{
        return LG__APPLY(min, (&(line_call){.dim = dim, .options = options}), x);
}
