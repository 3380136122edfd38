/* svd.c - singular values and vectors of matrices, and of them matrix_norm, matrix_rank and cond.
 *
 * a = u diag(s) v^T with k = min(m, n) columns of u and v. With skew(x) = x - x^T, E[i][j] = s[j]^2 - s[i]^2 (1 on the
 * diagonal), P = skew(u^T du) / E and Q = skew(v^T dv) / E:
 * da = u (P diag(s) + diag(s) Q + diag(ds)) v^T + (I - u u^T) du diag(s)^-1 v^T + u diag(s)^-1 dv^T (I - v v^T).
 */
#include <math.h>
#include "linalg.h"

/* Attribute vectors: whether u and v^T are results. */
#define SVD_FIELDS(FIELD) FIELD(bool, full, false) FIELD(bool, vectors, true)
LG__ATTRIBUTES(svd, SVD_FIELDS)

static bool infer(lg__call *call)
{
        const svd_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        if (!lg__takes_matrices(call, 0, false))
                return false;
        const int64_t m = lg__side_of(x, 1), n = lg__side_of(x, 0), k = m < n ? m : n;
        call->out_count = a->vectors ? 3 : 1;
        call->out_at[1].dtype = call->out_at[2].dtype = x->at.dtype;
        call->out_at[0].shape = lg__lines_of(lg__batch_of(x, 2), k);
        call->out_at[1].shape = lg__matrices_of(lg__batch_of(x, 2), m, a->full ? m : k);
        call->out_at[2].shape = lg__matrices_of(lg__batch_of(x, 2), a->full ? n : k, n);
        return true;
}

/* Makes u and v^T, of matrices without elements, identities. */
static bool fill_empty(lg__call *call)
{
        const lg_scope scope = lg_scope_begin(call->ctx);
        bool ok = scope.id;
        for (int i = 1; ok && i < call->out_count; i++) {
                lg_tensor *one = lg__identity_like(call->out[i]);
                ok = one && lg__copy_values(call->out[i], one, "svd");
        }
        lg_scope_end(call->ctx, scope);
        return ok;
}

static bool forward(lg__call *call)
{
        const svd_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        if (lg__shape_numel(x->at.shape) == 0)
                return call->out_count == 1 || !a->full || fill_empty(call);
        const lg_svd_args k = {.dtype = x->at.dtype,
                               .count = lg__shape_numel(lg__batch_of(x, 2)),
                               .m = lg__side_of(x, 1),
                               .n = lg__side_of(x, 0),
                               .full = a->full,
                               .a = lg__data(x),
                               .s = lg__data(call->out[0]),
                               .u = call->out_count > 1 ? lg__data(call->out[1]) : NULL,
                               .vt = call->out_count > 1 ? lg__data(call->out[2]) : NULL,
                               .origin = LG__ORIGIN_SVD};
        return LG__RUN(call->device, "svd", svd, &k);
}

static lg_tensor *skew(lg_tensor *x)
{
        return lg_sub(x, lg__transposed(x));
}

/* Returns a + b; either may be NULL. */
static lg_tensor *sum(lg_tensor *a, lg_tensor *b)
{
        return a && b ? lg_add(a, b) : a ? a : b;
}

/* Returns x - u (u^T x). */
static lg_tensor *outside(lg_tensor *u, lg_tensor *x)
{
        return lg_sub(x, lg_matmul(u, lg_matmul(lg__transposed(u), x)));
}

/* Returns the sum of the terms in which s, u and v turn into each other, between u and v^T. */
static lg_tensor *vjp_inside(lg_tensor *s, lg_tensor *u, lg_tensor *v, lg_tensor *ds, lg_tensor *du, lg_tensor *dv)
{
        lg_tensor *across = lg_unsqueeze(s, -2), *down = lg_unsqueeze(s, -1), *inside = ds ? lg_diag_embed(ds) : NULL;
        if (!du && !dv)
                return inside;
        lg_tensor *apart = lg_mul(lg_sub(across, down), lg_add(across, down));
        apart = apart ? lg_add(apart, lg__identity_like(apart)) : NULL;
        if (du)
                inside = sum(inside, lg_mul(lg_div(skew(lg_matmul(lg__transposed(u), du)), apart), across));
        if (dv)
                inside = sum(inside, lg_mul(lg_div(skew(lg_matmul(lg__transposed(v), dv)), apart), down));
        return inside;
}

static bool vjp(lg__vjp *call)
{
        lg_tensor *s = call->out[0], *ds = call->grad[0], *du = call->grad[1], *dvt = call->grad[2];
        const int64_t m = lg__side_of(call->out[1], 1), n = lg__side_of(call->out[2], 0), k = m < n ? m : n;
        lg_tensor *u = lg_slice(call->out[1], -1, 0, k), *vt = lg_slice(call->out[2], -2, 0, k);
        lg_tensor *v = lg__transposed(vt), *dv = dvt ? lg__transposed(lg_slice(dvt, -2, 0, k)) : NULL;
        du = du ? lg_slice(du, -1, 0, k) : NULL;
        lg_tensor *da = lg_matmul(lg_matmul(u, vjp_inside(s, u, v, ds, du, dv)), vt);
        if (du && m > k)
                da = lg_add(da, lg_matmul(outside(u, lg_div(du, lg_unsqueeze(s, -2))), vt));
        if (dv && n > k)
                da = lg_add(da, lg_matmul(u, lg__transposed(outside(v, lg_div(dv, lg_unsqueeze(s, -2))))));
        return (call->grad_in[0] = da) != NULL;
}

LG__DEFINE(svd, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR}),
           LG__RESULTS({"s", .saved_for = LG__BY(0)}, {"u", .saved_for = LG__BY(0)}, {"vt", .saved_for = LG__BY(0)}),
           LG__HAS(svd), .infer = infer, .forward = forward, .vjp = vjp)

bool lg_svd_with(lg_tensor *a, lg_tensor **ret_u, lg_tensor **ret_s, lg_tensor **ret_vt, const lg_svd_options *options)
{
        lg_tensor *out[LG__MAX_OUT];
        lg_svd_options o;
        if (!lg__take(lg__ctx_of(a), "svd", options, &o, sizeof o))
                return false;
        const svd_attributes at = {.full = o.full, .vectors = ret_u || ret_vt || lg__is_recorded(a)};
        if (!lg__apply(LG__OP(svd), &a, 1, &at, out))
                return false;
        lg__give_results(at.vectors ? 3 : 1, out, (lg_tensor * *[]){ret_s, ret_u, ret_vt});
        return true;
}

/* The singular values alone; the op finds vectors too where a derivative may need them. */
static lg_tensor *compose_svdvals(const lg__call *call)
{
        lg_tensor *a = call->in[0], *s;
        return lg__takes_matrices(call, 0, false) && lg_svd(a, NULL, &s, NULL) ? s : NULL;
}
LG__DEFINE(svdvals, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_svdvals)

lg_tensor *lg_svdvals(lg_tensor *a)
{
        return lg__apply1(LG__OP(svdvals), a, NULL);
}

/* ---- of the singular values ---- */

/* Returns the norm of order p (1 or infinity, or the negative of these): the greatest or least sum of magnitudes. */
static lg_tensor *sums_norm(lg_tensor *a, double p)
{
        lg_tensor *sums = lg_sum(lg_abs(a), .dims = LG_DIMS(isinf(p) ? -1 : -2));
        return p > 0 ? lg_amax(sums, .dims = LG_DIMS(-1)) : lg_amin(sums, .dims = LG_DIMS(-1));
}

static bool takes_order(const lg__call *call, double p)
{
        return p == 0 || fabs(p) == 1 || fabs(p) == 2 || isinf(p) ||
               lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: ord is %g; it is 1, 2, LG_INFINITY or the negative of these",
                        call->op->name, p);
}

static lg_tensor *compose_matrix_norm(const lg__call *call)
{
        lg_matrix_norm_options o;
        lg_tensor *a = call->in[0], *y;
        if (!lg__take(call->ctx, "matrix_norm", call->attributes, &o, sizeof o) || !lg__takes_matrices(call, 0, false))
                return NULL;
        const double p = o.ord, size = fabs(p);
        if (!takes_order(call, p))
                return NULL;
        if (p != 0 && o.nuclear)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "matrix_norm: ord is %g and nuclear is given, too", p);
        if (p != 0 && (lg__side_of(a, 1) == 0 || lg__side_of(a, 0) == 0))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "matrix_norm: a is %s: there is no %s element",
                                lg__tensor_text(a).s, p < 0 ? "least" : "greatest");
        if (size == 1 || isinf(p))
                y = sums_norm(a, p);
        else if (p == 0 && !o.nuclear)
                y = lg_norm(a, .dims = LG_DIMS(-2, -1));
        else if (o.nuclear)
                y = lg_sum(lg_svdvals(a), .dims = LG_DIMS(-1));
        else
                y = lg_select(lg_svdvals(a), -1, p > 0 ? 0 : -1);
        return o.keep_dim ? lg_unsqueeze(lg_unsqueeze(y, -1), -1) : y;
}
LG__DEFINE(matrix_norm, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_matrix_norm)

lg_tensor *lg_matrix_norm_with(lg_tensor *a, const lg_matrix_norm_options *options)
{
        return LG__APPLY(matrix_norm, options, a);
}

static lg_tensor *compose_matrix_rank(const lg__call *call)
{
        lg_pinv_options o;
        if (!lg__take(call->ctx, "matrix_rank", call->attributes, &o, sizeof o) ||
            !lg__takes_matrices(call, 0, o.hermitian))
                return NULL;
        lg_tensor *a = lg_detach(call->in[0]);
        lg_tensor *above = lg__above(call, o.hermitian ? lg_abs(lg_eigvalsh(a)) : lg_svdvals(a), &o);
        return above ? lg_sum(above, .dims = LG_DIMS(-1)) : NULL;
}
LG__DEFINE(matrix_rank, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_matrix_rank)

lg_tensor *lg_matrix_rank_with(lg_tensor *a, const lg_pinv_options *options)
{
        return LG__APPLY(matrix_rank, options, a);
}

static lg_tensor *compose_cond(const lg__call *call)
{
        lg_tensor *a = call->in[0];
        const double *p = call->attributes, size = fabs(*p);
        if (!takes_order(call, *p) || !lg__takes_matrices(call, 0, *p != 0 && size != 2))
                return NULL;
        if (lg__side_of(a, 1) == 0 || lg__side_of(a, 0) == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "cond: a is %s: there is no element", lg__tensor_text(a).s);
        if (*p == 0 || size == 2) {
                lg_tensor *s = lg_svdvals(a), *most = lg_select(s, -1, 0), *least = lg_select(s, -1, -1);
                return *p < 0 ? lg_div(least, most) : lg_div(most, least);
        }
        return lg_mul(lg_matrix_norm(a, .ord = *p), lg_matrix_norm(lg_inverse(a), .ord = *p));
}
LG__DEFINE(cond, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_cond)

lg_tensor *lg_cond_with(lg_tensor *a, const lg_cond_options *options)
{
        lg_cond_options o;
        return lg__take(lg__ctx_of(a), "cond", options, &o, sizeof o) ? lg__apply1(LG__OP(cond), a, &o.ord) : NULL;
}
