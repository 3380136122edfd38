/* cholesky.c - Cholesky factorisation of symmetric positive definite matrices: a = l l^T.
 *
 * da = l^-T p l^-1, where p is the symmetric part of the lower triangle of l^T g with half its diagonal (Murray 2016,
 * "Differentiation of the Cholesky decomposition").
 */
#include "linalg.h"

static bool infer_cholesky(lg__call *call)
{
        return lg__takes_matrices(call, 0, true);
}

static bool forward_cholesky(lg__call *call)
{
        const lg_tensor *a = call->in[0], *l = call->out[0];
        lg_cholesky_args k = {.dtype = a->at.dtype, .n = lg__side_of(a, 0), .origin = LG__ORIGIN_CHOLESKY};
        if (lg__shape_numel(a->at.shape) == 0)
                return true;
        k.count = lg__shape_numel(lg__batch_of(a, 2));
        k.a = lg__data(a);
        k.l = lg__data(l);
        return LG__RUN(call->device, "cholesky", cholesky, &k);
}

static bool vjp_cholesky(lg__vjp *v)
{
        lg_tensor *l = v->out[0], *product = lg_matmul(lg__transposed(l), v->grad[0]);
        lg_tensor *both = lg_add(lg_tril(product), lg__transposed(lg_tril(product, .diagonal = -1)));
        lg_tensor *left = lg__triangular(l, lg_mul_scalar(both, 0.5), false, true, false);
        v->grad_in[0] = lg__triangular(l, lg__transposed(left), false, true, false);
        return v->grad_in[0] != NULL;
}

LG__DEFINE(cholesky, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR}),
           LG__RESULTS({"l", .saved_for = LG__BY(0)}), .infer = infer_cholesky, .forward = forward_cholesky,
           .vjp = vjp_cholesky)

lg_tensor *lg_cholesky_with(lg_tensor *a, const lg_cholesky_options *options)
{
        lg_cholesky_options o;
        if (!lg__take(lg__ctx_of(a), "cholesky", options, &o, sizeof o))
                return NULL;
        if (!o.upper || !lg__is_address(a) || a->at.shape.ndim < 2)
                return LG__APPLY(cholesky, NULL, a);
        return lg__transposed(LG__APPLY(cholesky, NULL, lg__transposed(a)));
}
