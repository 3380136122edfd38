/* determinant.c - determinants, and logarithms of their magnitudes, by an LU factorisation.
 *
 * Values are computed unrecorded; the ops det_value, logdet_value and cofactors give them the derivatives of functions
 * of a. det: da = g c with the matrix of cofactors c = det(a) a^-T, which exists if a is singular, too. Logarithm of
 * |det(a)|: da = g a^-T. Cofactors, with t = a^-T: da = det(a) (<g, t> t - t g^T t).
 */
#include <float.h>
#include <math.h>
#include "linalg.h"

/* Describes the value of an op below, a copy of operand 1. */
static bool infer_value(lg__call *call)
{
        call->out_at[0].shape = call->in[1]->at.shape;
        return true;
}

static bool forward_value(lg__call *call)
{
        return lg__copy_values(call->out[0], call->in[1], call->op->name);
}

/* Returns g, of the shape of a batch, with two more dimensions. */
static lg_tensor *beside(lg_tensor *g)
{
        return g ? lg_unsqueeze(lg_unsqueeze(g, -1), -1) : NULL;
}

static lg_tensor *diagonal_of(lg_tensor *x)
{
        return lg_diagonal(x, .dim1 = -2, .dim2 = -1);
}

/* ---- cofactors ---- */

static bool vjp_cofactors(lg__vjp *v)
{
        lg_tensor *a = v->in[0], *g = v->grad[0], *t = lg__transposed(lg_inverse(a));
        lg_tensor *part = lg_sum(lg_mul(g, t), .dims = LG_DIMS(-2, -1), .keep_dim = true);
        lg_tensor *rest = lg_matmul(t, lg_matmul(lg__transposed(g), t));
        v->grad_in[0] = lg_mul(beside(lg_det(a)), lg_sub(lg_mul(part, t), rest));
        return v->grad_in[0] != NULL;
}

LG__DEFINE(cofactors, LG__OPERANDS({"a", LG__FLOAT, .saved_for = LG__BY(0)}, {"value", LG__FLOAT}), LG__RESULTS({"c"}),
           .infer = infer_value, .forward = forward_value, .vjp = vjp_cofactors)

/* Returns det(a) a^-T by the factors of a, where pivots of 0 are replaced by numbers that are too small to matter:
 * cofactors are polynomials. The determinant comes first into the systems, so that its smallness and the greatness of
 * their solutions cancel step by step. */
static lg_tensor *cofactors_of(lg_tensor *lu, lg_tensor *permutation, lg_tensor *signs)
{
        const lg_dtype dtype = lu->at.dtype;
        if (lg__side_of(lu, 0) == 0)
                return lg_zeros_like(lu);
        lg_tensor *m = lg_cast(lu, LG_F64), *d = diagonal_of(m);
        lg_tensor *most = lg_amax(lg_abs(m), .dims = LG_DIMS(-2, -1));
        lg_tensor *small = lg_maximum_scalar(lg_mul_scalar(most, dtype == LG_F64 ? DBL_EPSILON : 1e-10), 1e-300);
        lg_tensor *pivots = small ? lg_where(lg_eq_scalar(d, 0), lg_unsqueeze(small, -1), d) : NULL;
        lg_tensor *det = lg_mul(lg_cast(signs, LG_F64), lg_prod(pivots, .dims = LG_DIMS(-1)));
        if (!det)
                return NULL;
        m = lg_add(m, lg_diag_embed(lg_sub(pivots, d)));
        lg_tensor *scaled = m ? lg_mul(lg__identity_like(m), beside(det)) : NULL;
        lg_tensor *rows = lg__triangular(m, lg__triangular(m, scaled, true, true, false), false, true, true);
        return lg_cast(lg__unpermuted(rows, permutation), dtype);
}

/* ---- det_value and logdet_value ---- */

static bool vjp_det(lg__vjp *v)
{
        const bool recording = lg_set_grad_mode(v->ctx, false);
        lg_tensor *value = cofactors_of(v->in[2], v->in[3], v->in[4]);
        lg_set_grad_mode(v->ctx, recording);
        lg_tensor *c = value ? LG__APPLY(cofactors, NULL, v->in[0], value) : NULL;
        v->grad_in[0] = lg_mul(beside(v->grad[0]), c);
        return v->grad_in[0] != NULL;
}

static bool vjp_logdet(lg__vjp *v)
{
        lg_tensor *a = v->in[0], *scaled = lg_mul(lg__identity_like(a), beside(v->grad[0]));
        v->grad_in[0] = lg__solve_system(a, scaled, v->in[2], v->in[3], true);
        return v->grad_in[0] != NULL;
}

#define FACTORS                                                                                                        \
        LG__OPERANDS({"a", LG__FLOAT, .saved_for = LG__BY(0)}, {"value", LG__FLOAT},                                   \
                     {"lu", LG__FLOAT, .saved_for = LG__BY(0)}, {"permutation", LG__INDEX, .saved_for = LG__BY(0)},    \
                     {"signs", LG__FLOAT, .saved_for = LG__BY(0)})
LG__DEFINE(det_value, FACTORS, LG__RESULTS({"y"}), .infer = infer_value, .forward = forward_value, .vjp = vjp_det)
LG__DEFINE(logdet_value, FACTORS, LG__RESULTS({"y"}), .infer = infer_value, .forward = forward_value, .vjp = vjp_logdet)

/* ---- composites ---- */

/* Computes det(a), or log|det(a)| if `logarithm`, and then the sign of det(a) to *ret_sign. */
static lg_tensor *determinant(const lg__call *call, bool logarithm, lg_tensor **ret_sign)
{
        lg_tensor *a = call->in[0], *out[LG__MAX_OUT], *value = NULL;
        if (!lg__takes_matrices(call, 0, true))
                return NULL;
        const bool recording = lg_set_grad_mode(call->ctx, false);
        if (lg__apply(LG__OP(lu), &a, 1, NULL, out)) {
                lg_tensor *d = diagonal_of(out[0]);
                value = logarithm ? lg_sum(lg_log(lg_abs(d)), .dims = LG_DIMS(-1))
                                  : lg_mul(out[2], lg_prod(d, .dims = LG_DIMS(-1)));
                if (logarithm)
                        *ret_sign = lg_mul(out[2], lg_prod(lg_sign(d), .dims = LG_DIMS(-1)));
        }
        lg_set_grad_mode(call->ctx, recording);
        if (!value || (logarithm && !*ret_sign))
                return NULL;
        return logarithm ? LG__APPLY(logdet_value, NULL, a, value, out[0], out[1], out[2])
                         : LG__APPLY(det_value, NULL, a, value, out[0], out[1], out[2]);
}

static lg_tensor *compose_det(const lg__call *call)
{
        return determinant(call, false, NULL);
}
LG__DEFINE(det, .compose = compose_det, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}))

lg_tensor *lg_det(lg_tensor *a)
{
        return LG__APPLY(det, NULL, a);
}

static lg_tensor *compose_slogdet(const lg__call *call)
{
        lg_tensor **const *ret = call->attributes, *sign = NULL, *logabs = determinant(call, true, &sign);
        if (!logabs)
                return NULL;
        **ret = logabs;
        return sign;
}
LG__DEFINE(slogdet, .compose = compose_slogdet, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}))

lg_tensor *lg_slogdet(lg_tensor *a, lg_tensor **ret_logabs)
{
        if (!ret_logabs && lg__is_address(a) && lg__ok(lg__ctx_of(a)))
                return lg__fail(lg__ctx_of(a), LG_ERR_ARGUMENT, "slogdet: ret_logabs is NULL");
        return ret_logabs ? LG__APPLY(slogdet, &ret_logabs, a) : NULL;
}

static lg_tensor *compose_logdet(const lg__call *call)
{
        lg_tensor *sign = NULL, *y = determinant(call, true, &sign);
        return y ? lg_where(lg_lt_scalar(sign, 0), lg__constant(y, NAN), y) : NULL;
}
LG__DEFINE(logdet, .compose = compose_logdet, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}))

lg_tensor *lg_logdet(lg_tensor *a)
{
        return LG__APPLY(logdet, NULL, a);
}
