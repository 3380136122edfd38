/* pinv.c - pseudo-inverses of matrices of any rank, and least squares.
 *
 * With p the pseudo-inverse of a and g = dp^T, da = -p^T g^T p^T + (g - a p g) p p^T + p^T p (g - g p a) where the rank
 * does not change (Golub and Pereyra, 1973).
 */
#include <math.h>
#include "linalg.h"

lg_tensor *lg__above(const lg__call *call, lg_tensor *s, const lg_pinv_options *o)
{
        const lg_tensor *a = call->in[0];
        const int64_t m = lg__side_of(a, 1), n = lg__side_of(a, 0);
        const double eps = a->at.dtype == LG_F64 ? 0x1p-52 : 0x1p-23, atol = lg__option(o->atol, 0);
        const double rtol = lg__option(o->rtol, o->atol > 0 ? 0 : eps * (double)(m > n ? m : n));
        if (!(atol >= 0) || !(rtol >= 0))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: atol is %g and rtol %g; they are 0 or more",
                                call->op->name, atol, rtol);
        lg_tensor *most = s && lg__side_of(s, 0) ? lg_amax(s, .dims = LG_DIMS(-1), .keep_dim = true) : s;
        return lg_gt(s, lg_maximum_scalar(lg_mul_scalar(most, rtol), atol));
}

/* Returns the pseudo-inverse, unrecorded. */
static lg_tensor *value(const lg__call *call, const lg_pinv_options *o)
{
        lg_tensor *a = lg_detach(call->in[0]), *s, *u, *vt, *v;
        if (o->hermitian ? !lg_eigh(a, &s, &u) : !lg_svd(a, &u, &s, &vt))
                return NULL;
        v = o->hermitian ? u : lg__transposed(vt);
        lg_tensor *above = lg__above(call, o->hermitian ? lg_abs(s) : s, o);
        lg_tensor *inverse = above ? lg_where(above, lg_reciprocal(s), lg__constant(s, 0)) : NULL;
        return inverse ? lg_matmul(lg_mul(v, lg_unsqueeze(inverse, -2)), lg__transposed(u)) : NULL;
}

/* pinv_of: its result is a copy of its first input, the pseudo-inverse of the second. */
static bool forward(lg__call *call)
{
        return lg__copy_values(call->out[0], call->in[0], "pinv");
}

static bool vjp(lg__vjp *v)
{
        lg_tensor *a = v->in[1], *p = v->out[0], *g = lg__transposed(v->grad[0]), *pt = lg__transposed(p);
        lg_tensor *pg = lg_matmul(p, g), *gp = lg_matmul(g, p);
        lg_tensor *inside = lg_matmul(lg_matmul(pt, v->grad[0]), pt);
        lg_tensor *left = lg_matmul(lg_matmul(lg_sub(g, lg_matmul(a, pg)), p), pt);
        lg_tensor *right = lg_matmul(pt, lg_matmul(p, lg_sub(g, lg_matmul(gp, a))));
        return (v->grad_in[1] = lg_sub(lg_add(left, right), inside)) != NULL;
}

LG__DEFINE(pinv_of, LG__OPERANDS({"value", LG__FLOAT}, {"a", LG__FLOAT, .saved_for = LG__BY(1)}),
           LG__RESULTS({"y", .saved_for = LG__BY(1)}), .forward = forward, .vjp = vjp)

static lg_tensor *compose_pinv(const lg__call *call)
{
        lg_pinv_options o;
        if (!lg__take(call->ctx, "pinv", call->attributes, &o, sizeof o) || !lg__takes_matrices(call, 0, o.hermitian))
                return NULL;
        lg_tensor *p = value(call, &o);
        return p ? LG__APPLY(pinv_of, NULL, p, call->in[0]) : NULL;
}
LG__DEFINE(pinv, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_pinv)

lg_tensor *lg_pinv_with(lg_tensor *a, const lg_pinv_options *options)
{
        return LG__APPLY(pinv, options, a);
}

/* ---- least squares ---- */

/* Returns the solution for a matrix of full rank, by the QR factorisation of a or, if it is wide, of its transpose. */
static lg_tensor *full_rank(lg_tensor *a, lg_tensor *b)
{
        const bool wide = lg__side_of(a, 1) < lg__side_of(a, 0);
        lg_tensor *q, *r;
        if (!lg_qr(wide ? lg__transposed(a) : a, &q, &r))
                return NULL;
        return wide ? lg_matmul(q, lg__triangular(r, b, true, true, false))
                    : lg__triangular(r, lg_matmul(lg__transposed(q), b), true, false, false);
}

static lg_tensor *compose_lstsq(const lg__call *call)
{
        lg_lstsq_options o;
        lg_tensor *a = call->in[0], *b = call->in[1];
        if (!lg__take(call->ctx, "lstsq", call->attributes, &o, sizeof o) || !lg__takes_matrices(call, 0, false))
                return NULL;
        lg_shape rows = a->at.shape;
        rows.ndim--;
        const bool vector = lg__shape_equal(rows, b->at.shape);
        b = vector ? lg_unsqueeze(b, -1) : b;
        if (!b)
                return NULL;
        if (b->at.shape.ndim < 2 || lg__side_of(b, 1) != lg__side_of(a, 1))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "lstsq: a is %s and b %s; b is (..., m, k) for an a of (..., m, n), or (..., m)",
                                lg__tensor_text(a).s, lg__tensor_text(call->in[1]).s);
        lg_tensor *x = o.rcond != 0 ? lg_matmul(lg_pinv(a, .rtol = o.rcond), b) : full_rank(a, b);
        return x && vector ? lg_squeeze(x, LG_DIMS(-1)) : x;
}
LG__DEFINE(lstsq, .flags = LG__PROMOTE, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}, {"b", LG__FLOAT}),
           .compose = compose_lstsq)

lg_tensor *lg_lstsq_with(lg_tensor *a, lg_tensor *b, const lg_lstsq_options *options)
{
        return LG__APPLY(lstsq, options, a, b);
}
