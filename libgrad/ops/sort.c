/* sort.c - sort, topk, max and min along a dimension: values and where they were.
 *
 * sort: y[j] = x[index[j]], the first k in order; dx[index[j]] = g[j] and 0 elsewhere. choose is that formula for
 * indices from elsewhere, choose_grad its derivative; each is the other's derivative.
 */
#include "../op.h"

typedef struct sort_attributes {
        int dim;
        bool descending;
        int64_t size; /* of the result's dimension */
} sort_attributes;

static lg_shape resized(lg_shape s, const sort_attributes *a)
{
        if (s.ndim)
                s.size[a->dim] = a->size;
        return s;
}

static lg_tensor *choose_grad(lg_tensor *g, lg_tensor *indices, int dim, int64_t size)
{
        sort_attributes a = {.dim = dim, .size = size};
        return lg__apply2(LG__OP(choose_grad), lg_contiguous(g), indices, &a);
}

static lg_tensor *choose(lg_tensor *x, lg_tensor *indices, int dim)
{
        sort_attributes a = {.dim = dim, .size = lg_ndim_of(indices) ? lg_size_of(indices, dim) : 1};
        return lg__apply2(LG__OP(choose), lg_contiguous(x), lg_contiguous(indices), &a);
}

static int64_t size_along(lg_shape s, int dim)
{
        return s.ndim ? s.size[dim] : 1;
}

/* ---- the ops ---- */

static bool infer_sort(lg__call *call)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[1].dtype = LG_I64;
        call->out_at[0].shape = call->out_at[1].shape = resized(call->in[0]->at.shape, call->attributes);
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

static bool vjp_sort(lg__vjp *v)
{
        int dim = ((const sort_attributes *)v->attributes)->dim;
        int64_t size = size_along(lg__input(v, 0)->shape, dim);
        return (v->grad_in[0] = choose_grad(v->grad[0], v->out[1], dim, size)) != NULL;
}

const lg__op lg__op_sort = {.name = "sort",
                            LG__OPERANDS({"x"}),
                            LG__RESULTS({"values"}, {"indices", .saved_for = LG__BY(0)}),
                            .attributes_bytes = sizeof(sort_attributes),
                            .infer = infer_sort,
                            .forward = forward_sort,
                            .vjp = vjp_sort};

static bool infer_chosen(lg__call *call)
{
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = resized(call->in[0]->at.shape, call->attributes);
        return true;
}

/* The arguments of both directions: `lines` has lines of n elements, the indices have those of k. */
static lg_choose_args arguments(const lg__call *call, lg_shape lines)
{
        int dim = ((const sort_attributes *)call->attributes)->dim;
        lg_choose_args k = {.dtype = call->in[0]->at.dtype, .k = size_along(call->in[1]->at.shape, dim)};
        lg__split(lines, dim, &k.outer, &k.n, &k.inner);
        k.x = lg__data(call->in[0]);
        k.indices = lg__data(call->in[1]);
        k.y = lg__data(call->out[0]);
        return k;
}

static bool infer_choose(lg__call *call)
{
        return infer_chosen(call);
}

static bool forward_choose(lg__call *call)
{
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        lg_choose_args k = arguments(call, call->in[0]->at.shape);
        return LG__RUN(call->device, "choose", choose, &k);
}

static bool vjp_choose(lg__vjp *v)
{
        int dim = ((const sort_attributes *)v->attributes)->dim;
        int64_t size = size_along(lg__input(v, 0)->shape, dim);
        return (v->grad_in[0] = choose_grad(v->grad[0], v->in[1], dim, size)) != NULL;
}

const lg__op lg__op_choose = {.name = "choose",
                              LG__OPERANDS({"x"}, {"indices", LG__INDEX, .saved_for = LG__BY(0)}),
                              LG__RESULTS({"y"}),
                              .attributes_bytes = sizeof(sort_attributes),
                              .infer = infer_choose,
                              .forward = forward_choose,
                              .vjp = vjp_choose};

static bool infer_choose_grad(lg__call *call)
{
        return infer_chosen(call);
}

static bool forward_choose_grad(lg__call *call)
{
        if (lg__shape_numel(call->out_at[0].shape) == 0)
                return true;
        lg_choose_args k = arguments(call, call->out_at[0].shape);
        return LG__RUN(call->device, "choose_grad", choose_grad, &k);
}

static bool vjp_choose_grad(lg__vjp *v)
{
        int dim = ((const sort_attributes *)v->attributes)->dim;
        return (v->grad_in[0] = choose(v->grad[0], v->in[1], dim)) != NULL;
}

const lg__op lg__op_choose_grad = {.name = "choose_grad",
                                   LG__OPERANDS({"g"}, {"indices", LG__INDEX, .saved_for = LG__BY(0)}),
                                   LG__RESULTS({"y"}),
                                   .attributes_bytes = sizeof(sort_attributes),
                                   .infer = infer_choose_grad,
                                   .forward = forward_choose_grad,
                                   .vjp = vjp_choose_grad};

/* ---- the functions ---- */

/* The first k (-1: all) of each line in order; the indices where they are wanted, else they go at once. */
static lg_tensor *sorted(lg_tensor *x, const char *name, int dim, int64_t k, bool descending, lg_tensor **ret_indices)
{
        lg_tensor *out[LG__MAX_OUT];
        sort_attributes a = {.dim = lg__line_dim(x, name, dim), .descending = descending};
        if (a.dim < 0)
                return NULL;
        int64_t n = size_along(x->at.shape, a.dim);
        a.size = k < 0 ? n : k;
        lg_tensor *lines = lg_contiguous(x);
        if (!lines || !lg__apply(LG__OP(sort), &lines, 1, &a, out))
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
        if (!lg__check(x, "sort", "x") || !lg__take(x->ctx, "sort", options, &o, sizeof o))
                return NULL;
        return sorted(x, "sort", dim, -1, o.descending, o.indices);
}

lg_tensor *lg_argsort_with(lg_tensor *x, int dim, const lg_argsort_options *options)
{
        lg_argsort_options o;
        if (!lg__check(x, "argsort", "x") || !lg__take(x->ctx, "argsort", options, &o, sizeof o))
                return NULL;
        lg_tensor *indices = NULL, *values = sorted(x, "argsort", dim, -1, o.descending, &indices);
        if (values)
                lg__tensor_release(values);
        return indices;
}

lg_tensor *lg_topk_with(lg_tensor *x, int64_t k, int dim, const lg_topk_options *options)
{
        lg_topk_options o;
        dim = lg__line_dim(x, "topk", dim);
        if (dim < 0 || !lg__take(x->ctx, "topk", options, &o, sizeof o))
                return NULL;
        int64_t n = size_along(x->at.shape, dim);
        if (k < 0 || k > n || (k == 0 && x->at.shape.ndim == 0))
                return lg__fail(x->ctx, LG_ERR_ARGUMENT,
                                "topk: k is %lld, but dimension %d of x, which is %s, has %lld", (long long)k, dim,
                                lg__tensor_text(x).s, (long long)n);
        return sorted(x, "topk", dim, k, !o.smallest, o.indices);
}

static lg_tensor *extreme(lg_tensor *x, const char *name, int dim,
                          lg_tensor *(*place)(lg_tensor *, const lg_reduce_options *), const lg_max_options *options)
{
        lg_max_options o;
        dim = lg__line_dim(x, name, dim);
        if (dim < 0 || !lg__take(x->ctx, name, options, &o, sizeof o))
                return NULL;
        if (size_along(x->at.shape, dim) == 0)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s: dimension %d has no element to choose from", name,
                                lg__tensor_text(x).s, dim);
        lg_dims dims = LG_DIMS(dim);
        if (x->at.shape.ndim == 0)
                dims.count = 0;
        lg_tensor *index = place(x, LG_OPTIONS(lg_reduce_options, .dims = dims, .keep_dim = true));
        lg_tensor *y = index ? choose(x, index, dim) : NULL;
        if (y && dims.count && !o.keep_dim) {
                y = lg_squeeze(y, dims);
                index = lg_squeeze(index, dims);
        }
        if (y && index && o.indices)
                *o.indices = index;
        return y;
}

lg_tensor *lg_max_with(lg_tensor *x, int dim, const lg_max_options *options)
{
        return extreme(x, "max", dim, lg_argmax_with, options);
}

lg_tensor *lg_min_with(lg_tensor *x, int dim, const lg_max_options *options)
{
        return extreme(x, "min", dim, lg_argmin_with, options);
}
