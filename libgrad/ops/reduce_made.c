/* reduce_made.c - reductions made of other ops, which bring their derivatives: prod, std, norm, logsumexp, any, all. */
#include <math.h>
#include "reduce.h"

/* The product along a dimension of n > 0 elements, half by half: a division by an element, which may be 0, has no part
 * in the derivative. */
static lg_tensor *halved(lg_tensor *x, int dim, int64_t n)
{
        lg_tensor *odd = NULL; /* product of what had no partner */
        for (; n > 1; n /= 2) {
                int64_t half = n / 2;
                lg_tensor *last = n % 2 ? lg_slice(x, dim, n - 1, n) : NULL;
                if (last)
                        odd = odd ? lg_mul(odd, last) : last;
                x = lg_mul(lg_slice(x, dim, 0, half), lg_slice(x, dim, half, 2 * half));
        }
        return odd ? lg_mul(x, odd) : x;
}

lg_tensor *lg_prod_with(lg_tensor *x, const lg_reduce_options *options)
{
        lg__reduced a;
        if (!lg__reduced_of("prod", x, options, &a))
                return NULL;
        lg_shape s = x->at.shape, flat = lg__reduced_shape(s, &a, false);
        lg_dtype dtype = lg__dtype_float(x->at.dtype) ? x->at.dtype : LG_I64;
        int64_t n = lg__reduced_count(s, &a);
        if (n == 0)
                return lg_add_scalar(lg_sum_with(x, options), 1);
        lg_dims order = LG_ALL_DIMS;
        for (int reduced = 0; reduced < 2; reduced++)
                for (int i = 0; i < s.ndim; i++)
                        if (lg__is_reduced(&a, i) == reduced)
                                order.dim[order.count++] = i;
        flat.size[flat.ndim++] = n;
        x = dtype == LG_I64 ? lg_cast(x, LG_I64) : lg__widened(x);
        lg_tensor *y = halved(lg_reshape(lg_permute(x, order), flat), flat.ndim - 1, n);
        return lg_cast(lg_reshape(y, lg__reduced_shape(s, &a, a.keep_dim)), dtype);
}

/* x^p for x >= 0 and p > 0, where the derivative at 0 is taken to be 0, whatever p is. */
static lg_tensor *power(lg_tensor *x, double p)
{
        lg_tensor *zero = lg_eq_scalar(x, 0), *safe = lg_where(zero, lg__constant(x, 1), x);
        return lg_where(zero, lg__constant(x, 0), p == 0.5 ? lg_sqrt(safe) : lg_pow_scalar(safe, p));
}

lg_tensor *lg_std_with(lg_tensor *x, const lg_reduce_options *options)
{
        lg__reduced a;
        if (!lg__reduced_of_float("std", x, options, &a))
                return NULL;
        return lg_cast(power(lg_var_with(lg__widened(x), options), 0.5), x->at.dtype);
}

/* 1 where x is not 0; a constant, but one with a gradient of zeros. */
static lg_tensor *not_zero(lg_tensor *x)
{
        return lg_where(lg_ne_scalar(x, 0), lg__constant(x, 1), lg_mul_scalar(x, 0));
}

lg_tensor *lg_norm_with(lg_tensor *x, double p, const lg_norm_options *options)
{
        lg__reduced a;
        lg_norm_options o;
        if (!lg__check(x, "norm", "x") || !lg__take(x->ctx, "norm", options, &o, sizeof o))
                return NULL;
        const lg_reduce_options *r = LG_OPTIONS(lg_reduce_options, .dims = o.dims, .keep_dim = o.keep_dim);
        if (!lg__reduced_of_float("norm", x, r, &a))
                return NULL;
        if (!(p >= 0))
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "norm: p is %g; it must be 0 or above", p);
        if (isinf(p) && lg__reduced_count(x->at.shape, &a) == 0)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "norm: x is %s: there is no greatest element",
                                lg__tensor_text(x).s);
        lg_dtype dtype = x->at.dtype;
        x = lg__widened(x);
        x = p == 0 ? not_zero(x) : p == 2 ? lg_square(x) : lg_abs(x);
        if (p != 0 && p != 1 && p != 2 && !isinf(p))
                x = power(x, p);
        lg_tensor *y = isinf(p) ? lg_amax_with(x, r) : lg_sum_with(x, r);
        return lg_cast(p == 0 || p == 1 || isinf(p) ? y : power(y, 1 / p), dtype);
}

lg_tensor *lg_logsumexp_with(lg_tensor *x, const lg_reduce_options *options)
{
        lg__reduced a;
        if (!lg__reduced_of_float("logsumexp", x, options, &a))
                return NULL;
        lg_dtype dtype = x->at.dtype;
        lg_dims dims = lg__reduced_dims(x->at.shape.ndim, &a);
        lg_shape to = lg__reduced_shape(x->at.shape, &a, a.keep_dim);
        bool empty = lg__reduced_count(x->at.shape, &a) == 0;
        x = lg__widened(x);
        if (empty)
                return lg_cast(lg_log(lg_sum_with(lg_exp(x), options)), dtype);
        /* inf - inf would be NaN. */
        lg_tensor *top = lg_amax(lg_detach(x), .dims = dims, .keep_dim = true);
        top = lg_where(lg_eq_scalar(lg_abs(top), INFINITY), lg__constant(top, 0), top);
        lg_tensor *sum = lg_sum(lg_exp(lg_sub(x, top)), .dims = dims, .keep_dim = true);
        return lg_cast(lg_reshape(lg_add(lg_log(sum), top), to), dtype);
}

lg_tensor *lg_any_with(lg_tensor *x, const lg_reduce_options *options)
{
        lg__reduced a;
        if (!lg__reduced_of("any", x, options, &a))
                return NULL;
        return lg_gt_scalar(lg_sum_with(lg_ne_scalar(x, 0), options), 0);
}

lg_tensor *lg_all_with(lg_tensor *x, const lg_reduce_options *options)
{
        lg__reduced a;
        if (!lg__reduced_of("all", x, options, &a))
                return NULL;
        return lg_eq_scalar(lg_sum_with(lg_eq_scalar(x, 0), options), 0);
}
