/* products.c - products and distances made of other ops: tensordot, outer, kron, cross, addmm, addmv, baddbmm,
 * bilinear, dist, cdist, pdist. 16-bit floats are computed in f32 and rounded once. */
#include <math.h>
#include <stdio.h>
#include "graph/op.h"

/* Returns y, computed in f32 from 16-bit operands, in the common dtype of all inputs of the call. */
static lg_tensor *rounded(const lg__call *call, lg_tensor *y)
{
        return y ? lg_cast(y, lg__common_dtype(call->in, call->in_count)) : NULL;
}

/* ---- tensordot, by einsum ---- */

/* Sets the pairs of dimensions: the given ones, or the last ones of a and the first ones of b. */
static bool take_pairs(const lg__call *call, lg_dims *a, lg_dims *b)
{
        lg_tensordot_options o;
        const int in_a = call->in[0]->at.shape.ndim, in_b = call->in[1]->at.shape.ndim;
        if (!lg__take(call->ctx, "tensordot", call->attributes, &o, sizeof o))
                return false;
        const int64_t count = lg__whole_option(o.count, 2);
        *a = o.dims_a;
        *b = o.dims_b;
        if (a->count != b->count || (a->count && o.count))
                return lg__fail(
                        call->ctx, LG_ERR_ARGUMENT,
                        "tensordot: dims_a has %d dimensions and dims_b %d; they have equally many, and count is "
                        "not given with them",
                        a->count, b->count);
        if (a->count)
                return lg__dim(call->ctx, "tensordot", a->dim[0], in_a) >= 0 &&
                       lg__dim(call->ctx, "tensordot", b->dim[0], in_b) >= 0 &&
                       lg__dims(call->ctx, "tensordot", a, in_a) && lg__dims(call->ctx, "tensordot", b, in_b);
        if (count < 0 || count > in_a || count > in_b)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "tensordot: count is %lld, but a is %s and b is %s",
                                (long long)count, lg__tensor_text(call->in[0]).s, lg__tensor_text(call->in[1]).s);
        for (a->count = b->count = 0; a->count < count; a->count = ++b->count) {
                a->dim[a->count] = in_a - (int)count + a->count;
                b->dim[b->count] = b->count;
        }
        return true;
}

static lg_tensor *compose_tensordot(const lg__call *call)
{
        lg_tensor *a = call->in[0], *b = call->in[1];
        lg_dims pairs_a, pairs_b;
        char letters_a[LG_MAX_DIMS + 1] = "", letters_b[LG_MAX_DIMS + 1] = "", result[2 * LG_MAX_DIMS + 1] = "";
        char equation[4 * LG_MAX_DIMS + 8], *out = result;
        if (!take_pairs(call, &pairs_a, &pairs_b))
                return NULL;
        for (int i = 0; i < a->at.shape.ndim; i++)
                *out++ = letters_a[i] = (char)('a' + i);
        for (int i = 0; i < b->at.shape.ndim; i++)
                letters_b[i] = (char)('A' + i);
        for (int k = 0; k < pairs_a.count; k++) {
                const int i = pairs_a.dim[k], j = pairs_b.dim[k];
                const int64_t m = a->at.shape.size[i], n = b->at.shape.size[j];
                if (m != n && m != 1 && n != 1)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "tensordot: dimension %d of a, %s, does not meet dimension %d of b, %s", i,
                                        lg__tensor_text(a).s, j, lg__tensor_text(b).s);
                letters_b[j] = letters_a[i];
                result[i] = ' ';
        }
        for (int i = 0; i < b->at.shape.ndim; i++)
                if (letters_b[i] == 'A' + i)
                        *out++ = letters_b[i];
        snprintf(equation, sizeof equation, "%s,%s->%s", letters_a, letters_b, result);
        return lg_einsum(equation, LG_LIST(a, b));
}
LG__DEFINE(tensordot, .autocast = LG__LOW, .compose = compose_tensordot,
           LG__OPERANDS({"a", LG__NUMBER}, {"b", LG__NUMBER}))

lg_tensor *lg_tensordot_with(lg_tensor *a, lg_tensor *b, const lg_tensordot_options *options)
{
        return LG__APPLY(tensordot, options, a, b);
}

/* ---- outer, kron, cross ---- */

static lg_tensor *compose_outer(const lg__call *call)
{
        for (int i = 0; i < 2; i++)
                if (call->in[i]->at.shape.ndim != 1)
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "outer: %s is %s, not a vector", i ? "b" : "a",
                                        lg__tensor_text(call->in[i]).s);
        return lg_mul(lg_unsqueeze(call->in[0], 1), call->in[1]);
}
LG__COMPOSITE(outer, {"a"}, {"b"})

lg_tensor *lg_outer(lg_tensor *a, lg_tensor *b)
{
        return lg__apply2(LG__OP(outer), a, b, NULL);
}

/* Returns x with n dimensions, each followed (`after`) or preceded by one of size 1. */
static lg_tensor *spaced(lg_tensor *x, int n, bool after)
{
        lg_shape s = {.ndim = 2 * n};
        const int missing = n - x->at.shape.ndim;
        for (int i = 0; i < n; i++) {
                s.size[2 * i + after] = 1;
                s.size[2 * i + !after] = i < missing ? 1 : x->at.shape.size[i - missing];
        }
        return lg_reshape(x, s);
}

static lg_tensor *compose_kron(const lg__call *call)
{
        lg_tensor *a = call->in[0], *b = call->in[1];
        const int n = a->at.shape.ndim > b->at.shape.ndim ? a->at.shape.ndim : b->at.shape.ndim;
        if (n > LG_MAX_DIMS / 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "kron: a is %s and b is %s; they have at most %d dimensions",
                                lg__tensor_text(a).s, lg__tensor_text(b).s, LG_MAX_DIMS / 2);
        lg_tensor *y = lg_mul(spaced(a, n, true), spaced(b, n, false));
        if (!y)
                return NULL;
        lg_shape to = {.ndim = n};
        for (int i = 0; i < n; i++)
                to.size[i] = y->at.shape.size[2 * i] * y->at.shape.size[2 * i + 1];
        return lg_reshape(y, to);
}
LG__COMPOSITE(kron, {"a"}, {"b"})

lg_tensor *lg_kron(lg_tensor *a, lg_tensor *b)
{
        return lg__apply2(LG__OP(kron), a, b, NULL);
}

static lg_tensor *compose_cross(const lg__call *call)
{
        lg_shape s;
        if (!lg__broadcast(call->ctx, "cross", call->in[0]->at.shape, call->in[1]->at.shape, &s))
                return NULL;
        const int dim = lg__dim(call->ctx, "cross", *(const int *)call->attributes, s.ndim), from_end = dim - s.ndim;
        if (dim < 0)
                return NULL;
        for (int i = 0; i < 2; i++) {
                const lg_shape own = call->in[i]->at.shape;
                if (own.ndim < -from_end || own.size[own.ndim + from_end] != 3)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "cross: %s is %s; it has 3 elements along dimension %d", i ? "b" : "a",
                                        lg__tensor_text(call->in[i]).s, dim);
        }
        lg_tensor *a = lg__widened(call->in[0]), *b = lg__widened(call->in[1]);
        lg_tensor *forth = lg_mul(lg_roll(a, -1, from_end), lg_roll(b, -2, from_end));
        return rounded(call, lg_sub(forth, lg_mul(lg_roll(a, -2, from_end), lg_roll(b, -1, from_end))));
}
LG__DEFINE(cross, .autocast = LG__WIDEST, .compose = compose_cross, LG__OPERANDS({"a", LG__NUMBER}, {"b", LG__NUMBER}))

lg_tensor *lg_cross(lg_tensor *a, lg_tensor *b, int dim)
{
        return lg__apply2(LG__OP(cross), a, b, &dim);
}

/* ---- addmm, addmv, baddbmm ---- */

static bool are_factors(const lg__call *call, int in_a, int in_b)
{
        const lg_shape a = call->in[1]->at.shape, b = call->in[2]->at.shape;
        const int shared = in_a == 3 ? 1 : 0;
        return (a.ndim == in_a && b.ndim == in_b && a.size[in_a - 1] == b.size[shared] &&
                (!shared || a.size[0] == b.size[0])) ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: a is %s and b is %s; it takes %s", call->op->name,
                        lg__tensor_text(call->in[1]).s, lg__tensor_text(call->in[2]).s,
                        shared      ? "(N, m, k) and (N, k, n)"
                        : in_b == 2 ? "(m, k) and (k, n)"
                                    : "(m, k) and (k)");
}

static lg_tensor *scaled(lg_tensor *x, double factor)
{
        return factor == 1 ? x : lg_mul_scalar(x, factor);
}

/* Computes beta x + alpha a b. With the dimensions of a bias, that is one op, which rounds once. */
static lg_tensor *compose_addmm(const lg__call *call)
{
        lg_tensor *x = call->in[0], *a = call->in[1], *b = call->in[2];
        const lg_dtype dtype = lg__common_dtype(call->in, 3);
        const int in_a = call->op == LG__OP(baddbmm) ? 3 : 2, in_b = call->op == LG__OP(addmv) ? 1 : in_a;
        lg_addmm_options o;
        lg_shape to = {.ndim = in_b}, s;
        if (!lg__take(call->ctx, call->op->name, call->attributes, &o, sizeof o) || !are_factors(call, in_a, in_b))
                return NULL;
        const double beta = lg__option(o.beta, 1), alpha = lg__option(o.alpha, 1);
        if (!lg__dtype_float(dtype) && (beta != trunc(beta) || alpha != trunc(alpha)))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: beta is %g and alpha is %g; for %s they are whole numbers", call->op->name, beta,
                                alpha, lg_dtype_name(dtype));
        for (int i = 0; i < in_b; i++)
                to.size[i] = i == in_b - 1 && in_b > 1 ? b->at.shape.size[i] : a->at.shape.size[i];
        if (!lg__broadcast(NULL, "", x->at.shape, to, &s) || !lg__shape_equal(s, to))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s, which does not broadcast to the product, %s",
                                call->op->name, lg__tensor_text(x).s, lg__shape_text(to).s);
        if (beta == 1 && alpha == 1 && in_a == 2 && in_b == 2 && x->at.shape.ndim == 1 && lg__dtype_float(dtype) &&
            x->at.shape.size[0] == to.size[1])
                return lg_linear(lg_cast(a, dtype), lg_transpose(b, 0, 1), x);
        lg_tensor *y = scaled(lg_matmul(lg__widened(lg_cast(a, dtype)), lg__widened(lg_cast(b, dtype))), alpha);
        return lg_cast(beta == 0 ? y : lg_add(scaled(lg__widened(x), beta), y), dtype);
}

#define ADDMM(of)                                                                                                      \
        LG__DEFINE(of, .autocast = LG__LOW, .compose = compose_addmm,                                                  \
                   LG__OPERANDS({"x", LG__NUMBER}, {"a", LG__NUMBER}, {"b", LG__NUMBER}))                              \
        lg_tensor *lg_##of##_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_addmm_options *options)           \
        {                                                                                                              \
                return LG__APPLY(of, options, x, a, b);                                                                \
        }
ADDMM(addmm)
ADDMM(addmv)
ADDMM(baddbmm)

/* ---- bilinear ---- */

static lg_tensor *compose_bilinear(const lg__call *call)
{
        lg_tensor *x1 = call->in[0], *x2 = call->in[1], *w = call->in[2], *b = call->in[3];
        lg_shape s1 = x1->at.shape, s2 = x2->at.shape;
        const lg_shape sw = w->at.shape;
        const int64_t in1 = s1.ndim ? s1.size[s1.ndim - 1] : -1, in2 = s2.ndim ? s2.size[s2.ndim - 1] : -1;
        s1.ndim -= s1.ndim > 0;
        s2.ndim -= s2.ndim > 0;
        if (in1 < 0 || in2 < 0 || !lg__shape_equal(s1, s2) || sw.ndim != 3 || sw.size[1] != in1 || sw.size[2] != in2)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "bilinear: x1 is %s, x2 is %s and w is %s; it takes (..., in1), (..., in2) and (out, "
                                "in1, in2)",
                                lg__tensor_text(x1).s, lg__tensor_text(x2).s, lg__tensor_text(w).s);
        if (b && (b->at.shape.ndim != 1 || b->at.shape.size[0] != sw.size[0]))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "bilinear: b is %s, but w is %s: it takes (%lld,)",
                                lg__tensor_text(b).s, lg__tensor_text(w).s, (long long)sw.size[0]);
        lg_tensor *y = lg_einsum("...i,oij,...j->...o", LG_LIST(lg__widened(x1), lg__widened(w), lg__widened(x2)));
        return rounded(call, b ? lg_add(y, lg__widened(b)) : y);
}
LG__DEFINE(bilinear, .autocast = LG__LOW, .compose = compose_bilinear,
           LG__OPERANDS({"x1", LG__FLOAT}, {"x2", LG__FLOAT}, {"w", LG__FLOAT}, {"b", LG__FLOAT, .optional = true}))

lg_tensor *lg_bilinear(lg_tensor *x1, lg_tensor *x2, lg_tensor *w, lg_tensor *b)
{
        return LG__APPLY(bilinear, NULL, x1, x2, w, b);
}

/* ---- distances ---- */

static bool take_order(const lg__call *call, double *ret_p)
{
        lg_distance_options o;
        if (!lg__take(call->ctx, call->op->name, call->attributes, &o, sizeof o))
                return false;
        *ret_p = lg__option(o.p, 2);
        return *ret_p >= 0 || lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: p is %g; it is 0 or more, or LG_INFINITY",
                                       call->op->name, *ret_p);
}

/* Returns the norms of a - b over these dimensions. Rows without elements have distance 0. */
static lg_tensor *distance(const lg__call *call, lg_tensor *a, lg_tensor *b, double p, lg_dims dims)
{
        lg_tensor *d = a && b ? lg_sub(a, b) : NULL;
        const bool empty = d && dims.count && d->at.shape.size[d->at.shape.ndim - 1] == 0;
        return rounded(call, empty ? lg_sum(d, .dims = dims) : lg_norm(d, .p = p == 0 ? LG_ZERO : p, .dims = dims));
}

static lg_tensor *compose_distance(const lg__call *call)
{
        double p;
        if (!take_order(call, &p))
                return NULL;
        return distance(call, lg__widened(call->in[0]), lg__widened(call->in[1]), p, LG_ALL_DIMS);
}

/* Returns x with its squares summed over each row, and a column of ones, as its last two columns in the order given. */
static lg_tensor *with_squares(lg_tensor *x, double factor, bool squares_first)
{
        lg_shape s = x->at.shape;
        s.size[s.ndim - 1] = 1;
        lg_tensor *squares = lg_sum(lg_square(x), .dims = LG_DIMS(-1), .keep_dim = true);
        lg_tensor *ones = lg_expand(lg__constant(x, 1), s), *scaled_x = scaled(x, factor);
        return squares_first ? lg_cat(LG_LIST(scaled_x, squares, ones), -1)
                             : lg_cat(LG_LIST(scaled_x, ones, squares), -1);
}

/* Returns the Euclidean distances of rows of a and b by one product: |a|^2 - 2 a b + |b|^2 is (-2 a, |a|^2, 1) times
 * (b, 1, |b|^2). Rounding may make it negative, which counts as 0. */
static lg_tensor *distances_by_product(lg_tensor *a, lg_tensor *b)
{
        lg_tensor *left = with_squares(a, -2, true), *right = with_squares(b, 1, false);
        lg_tensor *squares = lg_matmul(left, lg_transpose(right, -2, -1));
        lg_tensor *zero = lg_le_scalar(squares, 0), *root = lg_sqrt(lg_where(zero, lg__constant(squares, 1), squares));
        return lg_where(zero, lg__constant(squares, 0), root);
}

#define MOST_EXACT 25 /* PyTorch computes distances of more rows by a product */
static lg_tensor *compose_cdist(const lg__call *call)
{
        lg_tensor *a = call->in[0], *b = call->in[1];
        const int in_a = a->at.shape.ndim, in_b = b->at.shape.ndim;
        double p;
        if (!take_order(call, &p))
                return NULL;
        if (in_a < 2 || in_b < 2 || in_a == LG_MAX_DIMS || in_b == LG_MAX_DIMS ||
            a->at.shape.size[in_a - 1] != b->at.shape.size[in_b - 1])
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "cdist: a is %s and b is %s; it takes (..., P, M) and (..., R, M)",
                                lg__tensor_text(a).s, lg__tensor_text(b).s);
        a = lg__widened(a);
        b = a ? lg__widened(b) : NULL;
        if (b && p == 2 && (a->at.shape.size[in_a - 2] > MOST_EXACT || b->at.shape.size[in_b - 2] > MOST_EXACT))
                return rounded(call, distances_by_product(a, b));
        return distance(call, lg_unsqueeze(a, -2), lg_unsqueeze(b, -3), p, LG_DIMS(-1));
}

static lg_tensor *compose_pdist(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        double p;
        if (!take_order(call, &p))
                return NULL;
        if (x->at.shape.ndim != 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "pdist: x is %s, not (N, M)", lg__tensor_text(x).s);
        lg_tensor *rows =
                lg_arange(call->ctx, 0, (double)x->at.shape.size[0], 1, .dtype = LG_I64, .device = call->device->id);
        lg_tensor *pairs = lg_combinations(rows, 2), *wide = lg__widened(x);
        return pairs ? distance(call, lg_index_select(wide, 0, lg_select(pairs, 1, 0)),
                                lg_index_select(wide, 0, lg_select(pairs, 1, 1)), p, LG_DIMS(-1))
                     : NULL;
}

LG__DEFINE(distance, .autocast = LG__F32, .compose = compose_distance, LG__OPERANDS({"a", LG__FLOAT}, {"b", LG__FLOAT}))
LG__DEFINE(cdist, .autocast = LG__F32, .compose = compose_cdist, LG__OPERANDS({"a", LG__FLOAT}, {"b", LG__FLOAT}))
LG__DEFINE(pdist, .autocast = LG__F32, .compose = compose_pdist, LG__OPERANDS({"x", LG__FLOAT}))

lg_tensor *lg_distance_with(lg_tensor *a, lg_tensor *b, const lg_distance_options *options)
{
        return LG__APPLY(distance, options, a, b);
}

lg_tensor *lg_cdist_with(lg_tensor *a, lg_tensor *b, const lg_distance_options *options)
{
        return LG__APPLY(cdist, options, a, b);
}

lg_tensor *lg_pdist_with(lg_tensor *x, const lg_distance_options *options)
{
        return LG__APPLY(pdist, options, x);
}
