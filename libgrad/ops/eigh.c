/* eigh.c - eigenvalues and eigenvectors of symmetric matrices.
 *
 * a = v diag(w) v^T. da = v (diag(dw) + F) v^T, where F[i][j] = (v^T dv - dv^T v)[i][j] / (2 (w[j] - w[i])), and 0 on
 * the diagonal.
 */
#include "linalg.h"

/* Attribute vectors: whether the eigenvectors are a result. */
#define EIGH_FIELDS(FIELD) FIELD(bool, vectors, true)
LG__ATTRIBUTES(eigh, EIGH_FIELDS)

static bool infer(lg__call *call)
{
        const eigh_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        if (!lg__takes_matrices(call, 0, true))
                return false;
        call->out_count = a->vectors ? 2 : 1;
        call->out_at[1].dtype = x->at.dtype;
        call->out_at[0].shape = lg__lines_of(lg__batch_of(x, 2), lg__side_of(x, 1));
        call->out_at[1].shape = x->at.shape;
        return true;
}

static bool forward(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        if (lg__shape_numel(x->at.shape) == 0)
                return true;
        const lg_eigh_args k = {.dtype = x->at.dtype,
                                .count = lg__shape_numel(lg__batch_of(x, 2)),
                                .n = lg__side_of(x, 1),
                                .a = lg__data(x),
                                .values = lg__data(call->out[0]),
                                .vectors = call->out_count > 1 ? lg__data(call->out[1]) : NULL,
                                .origin = LG__ORIGIN_EIGH};
        return LG__RUN(call->device, "eigh", eigh, &k);
}

static bool vjp(lg__vjp *v)
{
        lg_tensor *w = v->out[0], *u = v->out[1], *dw = v->grad[0], *du = v->grad[1], *da = NULL;
        if (du) {
                lg_tensor *turn = lg_matmul(lg__transposed(u), du);
                lg_tensor *apart = lg_sub(lg_unsqueeze(w, -2), lg_unsqueeze(w, -1));
                apart = lg_add(apart, lg__identity_like(u));
                da = lg_div(lg_mul_scalar(lg_sub(turn, lg__transposed(turn)), 0.5), apart);
                da = dw ? lg_add(da, lg_diag_embed(dw)) : da;
                da = lg_matmul(u, lg_matmul(da, lg__transposed(u)));
        } else {
                da = lg_matmul(lg_mul(u, lg_unsqueeze(dw, -2)), lg__transposed(u));
        }
        return (v->grad_in[0] = da) != NULL;
}

LG__DEFINE(eigh, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR}),
           LG__RESULTS({"values", .saved_for = LG__BY(0)}, {"vectors", .saved_for = LG__BY(0)}), LG__HAS(eigh),
           .infer = infer, .forward = forward, .vjp = vjp)

bool lg_eigh_with(lg_tensor *a, lg_tensor **ret_values, lg_tensor **ret_vectors, const lg_eigh_options *options)
{
        lg_tensor *out[LG__MAX_OUT];
        lg_eigh_options o;
        if (!lg__take(lg__ctx_of(a), "eigh", options, &o, sizeof o))
                return false;
        const eigh_attributes at = {.vectors = ret_vectors || lg__is_recorded(a)};
        if (o.upper && lg__is_address(a) && a->at.shape.ndim > 1)
                a = lg__transposed(a);
        if (!lg__apply(LG__OP(eigh), &a, 1, &at, out))
                return false;
        lg__give_results(at.vectors ? 2 : 1, out, (lg_tensor * *[]){ret_values, ret_vectors});
        return true;
}

static lg_tensor *compose_eigvalsh(const lg__call *call)
{
        lg_tensor *w;
        return lg__takes_matrices(call, 0, true) && lg_eigh_with(call->in[0], &w, NULL, call->attributes) ? w : NULL;
}
LG__DEFINE(eigvalsh, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_eigvalsh)

lg_tensor *lg_eigvalsh_with(lg_tensor *a, const lg_eigh_options *options)
{
        return LG__APPLY(eigvalsh, options, a);
}
