/* reduce_made.c - reductions made of other ops, whose derivatives they use: prod, norm, logsumexp, any, all. */
#include <float.h>
#include <math.h>
#include "reduce.h"

/* Returns the product along a dimension of n > 0 elements by multiplying halves: the derivative then divides by no
 * element, which might be 0. */
static lg_tensor *halved(lg_tensor *x, int dim, int64_t n)
{
        lg_tensor *odd = NULL; /* product of the elements left over by odd sizes */
        for (; n > 1; n /= 2) {
                int64_t half = n / 2;
                lg_tensor *last = n % 2 ? lg_slice(x, dim, n - 1, n) : NULL;
                if (last)
                        odd = odd ? lg_mul(odd, last) : last;
                x = lg_mul(lg_slice(x, dim, 0, half), lg_slice(x, dim, half, 2 * half));
        }
        return odd ? lg_mul(x, odd) : x;
}

/* Divides dimension dim, of *n integers, into parts of *n / PIECES and multiplies the parts element by element, so
 * that few elements are i64 at once. Returns the products and sets *n to their number along dim. */
#define PIECES 16
static lg_tensor *by_pieces(lg_tensor *x, int dim, int64_t *n)
{
        const int64_t all = *n, part = all / PIECES;
        if (part == 0)
                return lg_cast(x, LG_I64);
        lg_tensor *y =
                lg_mul(lg_cast(lg_slice(x, dim, 0, part), LG_I64), lg_cast(lg_slice(x, dim, part, 2 * part), LG_I64));
        for (int64_t first = 2 * part, end; y && first < all; first = end) {
                end = first + part < all ? first + part : all;
                lg_scope scope = lg_scope_begin(x->ctx);
                const bool ok = scope.id && lg_mul_(lg_slice(y, dim, 0, end - first), lg_slice(x, dim, first, end));
                lg_scope_end(x->ctx, scope);
                y = ok ? y : NULL;
        }
        *n = part;
        return y;
}

static lg_tensor *compose_prod(const lg__call *call)
{
        reduce_attributes a;
        lg_tensor *x = call->in[0];
        if (!lg__reduce_of(call, call->attributes, &a))
                return NULL;
        lg_shape s = x->at.shape, flat = lg__reduced_shape(s, &a, false);
        lg_dtype dtype = lg__dtype_float(x->at.dtype) ? x->at.dtype : LG_I64;
        int64_t n = lg__reduced_count(s, &a);
        if (n == 0)
                return lg_add_scalar(LG__APPLY(sum, &a, x), 1);
        lg_dims order = LG_ALL_DIMS;
        for (int reduced = 0; reduced < 2; reduced++)
                for (int i = 0; i < s.ndim; i++)
                        if (lg__is_reduced(&a, i) == reduced)
                                order.dim[order.count++] = i;
        flat.size[flat.ndim++] = n;
        x = lg_reshape(lg_permute(dtype == LG_I64 ? x : lg__widened(x), order), flat);
        x = dtype == LG_I64 && x ? by_pieces(x, flat.ndim - 1, &n) : x;
        lg_tensor *y = halved(x, flat.ndim - 1, n);
        return lg__made(lg_cast(lg_reshape(y, lg__reduced_shape(s, &a, a.keep_dim)), dtype), call->in[0]);
}
LG__REDUCTION(prod, LG__ANY, LG__F32)

/* Returns x^p for x >= 0, or 0 for x = 0, where the derivative is 0 for every p. */
static lg_tensor *power(lg_tensor *x, double p)
{
        lg_tensor *zero = lg_eq_scalar(x, 0), *safe = lg_where(zero, lg__constant(x, 1), x);
        return lg_where(zero, lg__constant(x, 0), p == 0.5 ? lg_sqrt(safe) : lg_pow_scalar(safe, p));
}

/* Returns 1 where x is not 0, else 0; differentiable, with a gradient of zeros. */
static lg_tensor *not_zero(lg_tensor *x)
{
        return lg_where(lg_ne_scalar(x, 0), lg__constant(x, 1), lg_mul_scalar(x, 0));
}

static lg_tensor *compose_norm(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        const lg_dtype dtype = x->at.dtype;
        reduce_attributes a;
        lg_norm_options o;
        if (!lg__take(call->ctx, "norm", call->attributes, &o, sizeof o) ||
            !lg__reduce_of(call, LG_OPTIONS(lg_reduce_options, .dims = o.dims, .keep_dim = o.keep_dim), &a))
                return NULL;
        const double p = lg__option(o.p, 2);
        if (isnan(p))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "norm: p is NaN; it must be a number");
        if ((p < 0 || isinf(p)) && lg__reduced_count(x->at.shape, &a) == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "norm: x is %s: there is no %s element", lg__tensor_text(x).s,
                                p < 0 ? "least" : "greatest");
        if (p == 2)
                return LG__APPLY(norm2, &a, x);
        const lg_shape to = lg__reduced_shape(x->at.shape, &a, a.keep_dim);
        const bool empty = lg__reduced_count(x->at.shape, &a) == 0;
        x = lg__widened(x);
        x = p == 0 ? not_zero(x) : lg_abs(x);
        if (p == 0 || p == 1 || isinf(p) || empty)
                return lg_cast(!isinf(p) ? LG__APPLY(sum, &a, x)
                               : p > 0   ? LG__APPLY(amax, &a, x)
                                         : LG__APPLY(amin, &a, x),
                               dtype);
        /* dividing by the greatest element, the least for negative powers, keeps the powers from overflowing */
        a.keep_dim = true;
        lg_tensor *top = p > 0 ? LG__APPLY(amax, &a, lg_detach(x)) : LG__APPLY(amin, &a, lg_detach(x));
        lg_tensor *zero = lg_eq_scalar(top, 0);
        top = lg_where(lg_logical_and(lg_gt_scalar(top, 0), lg_isfinite(top)), top, lg__constant(top, 1));
        lg_tensor *sum = LG__APPLY(sum, &a, power(lg_div(x, top), p));
        lg_tensor *y = lg_mul(power(sum, 1 / p), top);
        return lg_cast(lg_reshape(p > 0 ? y : lg_masked_fill(y, zero, 0), to), dtype);
}

LG__DEFINE(norm, .autocast = LG__F32, LG__OPERANDS({"x", LG__FLOAT}), .compose = compose_norm)

lg_tensor *lg_norm_with(lg_tensor *x, const lg_norm_options *options)
{
        return LG__APPLY(norm, options, x);
}

typedef struct slices {
        double p, most;
        int dim;
} slices;

/* Multiplies the slices along a dimension whose norm is above `most` by most / (norm + 1e-7). */
static lg_tensor *compose_renorm(const lg__call *call)
{
        const slices *r = call->attributes;
        lg_tensor *x = call->in[0], *wide = lg__widened(x);
        lg_shape s = x->at.shape;
        lg_dims others = LG_ALL_DIMS;
        if (s.ndim < 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "renorm: x is %s; it needs two dimensions at least",
                                lg__tensor_text(x).s);
        if (!(r->p > 0) || !(r->most >= 0))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "renorm: p is %g and max_norm %g; p is above 0, max_norm 0 or more", r->p, r->most);
        const int dim = lg__dim(call->ctx, "renorm", r->dim, s.ndim);
        if (dim < 0)
                return NULL;
        for (int i = 0; i < s.ndim; i++)
                if (i != dim)
                        others.dim[others.count++] = i;
        lg_tensor *norm = lg_norm(wide, .p = r->p, .dims = others, .keep_dim = true);
        lg_tensor *above = norm ? lg_gt_scalar(norm, r->most) : NULL;
        lg_tensor *scale = above ? lg_rdiv_scalar(lg_add_scalar(norm, 1e-7), r->most) : NULL;
        return scale ? lg_cast(lg_mul(wide, lg_where(above, scale, lg__constant(norm, 1))), x->at.dtype) : NULL;
}
LG__DEFINE(renorm, .autocast = LG__F32, LG__OPERANDS({"x", LG__FLOAT}), .compose = compose_renorm)

lg_tensor *lg_renorm(lg_tensor *x, double p, int dim, double max_norm)
{
        return LG__APPLY(renorm, (&(slices){p, max_norm, dim}), x);
}

static lg_tensor *compose_logsumexp(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        const lg_dtype dtype = x->at.dtype;
        reduce_attributes a;
        if (!lg__reduce_of(call, call->attributes, &a))
                return NULL;
        const lg_shape to = lg__reduced_shape(x->at.shape, &a, a.keep_dim);
        const double most = dtype == LG_F64 ? DBL_MAX : FLT_MAX;
        const bool empty = lg__reduced_count(x->at.shape, &a) == 0;
        x = lg__widened(x);
        a.keep_dim = true;
        lg_tensor *top = empty ? lg__constant(x, -INFINITY) : LG__APPLY(amax, &a, lg_detach(x));
        lg_tensor *below = lg_sub(x, lg_clamp(top, -most, most));
        /* The clamp avoids inf - inf = NaN; the limit 0 makes an element of inf count as the greatest, with its
         * gradient. */
        if (!below ||
            !lg__pointwise_run(LG_PW_minimum_scalar, below, (lg_tensor *[LG_PW_INPUTS]){below}, 0, 0, "logsumexp"))
                return NULL;
        /* The sum is 0 only if all elements are -inf; log(1) instead of log(0) makes their gradients 0. */
        lg_tensor *sum = LG__APPLY(sum, &a, lg_exp(below));
        sum = lg_where(lg_eq_scalar(sum, 0), lg__constant(x, 1), sum);
        return lg_cast(lg_reshape(lg_add(lg_log(sum), top), to), dtype);
}
LG__REDUCTION(logsumexp, LG__FLOAT, LG__F32)

/* Returns x if the sum of its elements is the number of elements that are not 0 or, for `any`, is above 0 if there are
 * any; else returns a bool tensor of which elements are not 0. */
static lg_tensor *as_counts(lg_tensor *x, bool any)
{
        return x->at.dtype == LG_BOOL || (any && x->at.dtype == LG_U8) ? x : lg_ne_scalar(x, 0);
}

static lg_tensor *compose_any(const lg__call *call)
{
        reduce_attributes a;
        return !lg__reduce_of(call, call->attributes, &a)
                       ? NULL
                       : lg_gt_scalar(LG__APPLY(sum, &a, as_counts(call->in[0], true)), 0);
}
LG__REDUCTION(any, LG__ANY, LG__AS_IT_IS)

static lg_tensor *compose_all(const lg__call *call)
{
        reduce_attributes a;
        lg_tensor *x = call->in[0];
        return !lg__reduce_of(call, call->attributes, &a) ? NULL
                                                          : lg_eq_scalar(LG__APPLY(sum, &a, as_counts(x, false)),
                                                                         (double)lg__reduced_count(x->at.shape, &a));
}
LG__REDUCTION(all, LG__ANY, LG__AS_IT_IS)
