/* qr.c - QR factorisation of matrices.
 *
 * a (m, n) = q r. For m >= n, with M = r dr^T - dq^T q and S(M) its lower triangle mirrored to the upper one,
 * da = (dq + q S(M)) r^-T (Walter and Lehmann, 2012). For m < n, a = (x y), r = (u v) and y = q v: dx is that of q and
 * u with y dv^T added to dq, and dy = q dv.
 */
#include "linalg.h"

/* Attribute vectors: whether q is a result. */
#define QR_FIELDS(FIELD) FIELD(bool, complete, false) FIELD(bool, vectors, true)
LG__ATTRIBUTES(qr, QR_FIELDS)

static bool infer(lg__call *call)
{
        const qr_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        if (!lg__takes_matrices(call, 0, false))
                return false;
        const int64_t m = lg__side_of(x, 1), n = lg__side_of(x, 0), rank = a->complete || m < n ? m : n;
        call->out_count = a->vectors ? 2 : 1;
        call->out_at[1].dtype = x->at.dtype;
        call->out_at[0].shape = lg__matrices_of(lg__batch_of(x, 2), rank, n);
        call->out_at[1].shape = lg__matrices_of(lg__batch_of(x, 2), m, rank);
        return true;
}

static bool forward(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        lg_tensor *r = call->out[0], *q = call->out_count > 1 ? call->out[1] : NULL;
        if (lg__shape_numel(r->at.shape) == 0 && (!q || lg__shape_numel(q->at.shape) == 0))
                return true;
        const lg_qr_args k = {.dtype = x->at.dtype,
                              .count = lg__shape_numel(lg__batch_of(x, 2)),
                              .m = lg__side_of(x, 1),
                              .n = lg__side_of(x, 0),
                              .rank = lg__side_of(r, 1),
                              .a = lg__data(x),
                              .q = q ? lg__data(q) : NULL,
                              .r = lg__data(r)};
        return LG__RUN(call->device, "qr", qr, &k);
}

/* Returns da for m >= n; dq or dr may be NULL. */
static lg_tensor *vjp_tall(lg_tensor *q, lg_tensor *r, lg_tensor *dq, lg_tensor *dr)
{
        lg_tensor *m = dr ? lg_matmul(r, lg__transposed(dr)) : NULL,
                  *of_q = dq ? lg_matmul(lg__transposed(dq), q) : NULL;
        m = dr && dq ? lg_sub(m, of_q) : dr ? m : lg_neg(of_q);
        lg_tensor *mirrored = lg_add(lg_tril(m), lg__transposed(lg_tril(m, .diagonal = -1)));
        lg_tensor *sum = lg_matmul(q, mirrored);
        sum = dq ? lg_add(dq, sum) : sum;
        return lg__transposed(lg__triangular(r, lg__transposed(sum), true, false, false));
}

static lg_tensor *vjp_wide(lg_tensor *q, lg_tensor *r, lg_tensor *dq, lg_tensor *dr)
{
        const int64_t m = lg__side_of(r, 1);
        lg_tensor *u = lg_slice(r, -1, 0, m), *v = lg_slice(r, -1, m, LG_MAX);
        if (!dr)
                dr = lg_mul_scalar(r, 0);
        lg_tensor *du = lg_slice(dr, -1, 0, m), *dv = lg_slice(dr, -1, m, LG_MAX);
        lg_tensor *more = lg_matmul(lg_matmul(q, v), lg__transposed(dv));
        lg_tensor *dx = vjp_tall(q, u, dq ? lg_add(dq, more) : more, du);
        return lg_cat(LG_LIST(dx, lg_matmul(q, dv)), -1);
}

static bool vjp(lg__vjp *v)
{
        lg_tensor *r = v->out[0], *q = v->out[1];
        const int64_t m = lg__side_of(q, 1), n = lg__side_of(r, 0);
        if (lg__side_of(q, 0) > n)
                return lg__fail(v->ctx, LG_ERR_STATE,
                                "qr: the complete q of a matrix with more rows than columns, (%lld, %lld), has no "
                                "derivative",
                                (long long)m, (long long)n);
        v->grad_in[0] = (m < n ? vjp_wide : vjp_tall)(q, r, v->grad[1], v->grad[0]);
        return v->grad_in[0] != NULL;
}

LG__DEFINE(qr, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR}),
           LG__RESULTS({"r", .saved_for = LG__BY(0)}, {"q", .saved_for = LG__BY(0)}), LG__HAS(qr), .infer = infer,
           .forward = forward, .vjp = vjp)

bool lg_qr_with(lg_tensor *a, lg_tensor **ret_q, lg_tensor **ret_r, const lg_qr_options *options)
{
        lg_tensor *out[LG__MAX_OUT];
        lg_qr_options o;
        if (!lg__take(lg__ctx_of(a), "qr", options, &o, sizeof o))
                return false;
        const qr_attributes at = {.complete = o.complete, .vectors = ret_q || lg__is_recorded(a)};
        if (!lg__apply(LG__OP(qr), &a, 1, &at, out))
                return false;
        lg__give_results(at.vectors ? 2 : 1, out, (lg_tensor * *[]){ret_r, ret_q});
        return true;
}
