/* matrix_exp.c - the exponential of matrices, by scaling and squaring, and powers of matrices.
 *
 * e^a = (T(a / 2^s))^(2^s), where T is the Taylor polynomial of degree 18 and s makes the 1-norm of a / 2^s small
 * enough for it (Bader, Blanes and Casas, 2019). The derivative is that of these products.
 */
#include <math.h>
#include "linalg.h"

enum { DEGREE = 18 };

/* Returns the Taylor polynomial, by powers of a^3 (Paterson and Stockmeyer, 1973). */
static lg_tensor *taylor(lg_tensor *a)
{
        lg_tensor *a2 = lg_matmul(a, a), *a3 = lg_matmul(a2, a), *one = a3 ? lg__identity_like(a3) : NULL, *y = NULL;
        double c[DEGREE + 1] = {1};
        for (int i = 1; i <= DEGREE; i++)
                c[i] = c[i - 1] / i;
        for (int i = DEGREE - 3; i >= 0; i -= 3) {
                lg_tensor *next = lg_add(lg_mul_scalar(a, c[i + 1]), lg_mul_scalar(a2, c[i + 2]));
                next = lg_add(next, lg_mul_scalar(one, c[i]));
                y = lg_add(next, y ? lg_matmul(y, a3) : lg_mul_scalar(a3, c[DEGREE]));
        }
        return y;
}

static lg_tensor *compose_matrix_exp(const lg__call *call)
{
        lg_tensor *a = call->in[0];
        if (!lg__takes_matrices(call, 0, true))
                return NULL;
        if (lg__shape_numel(a->at.shape) == 0)
                return lg_mul_scalar(a, 1);
        const double most = a->at.dtype == LG_F64 ? 1.09 : 3.01;
        lg_tensor *norm = lg_matrix_norm(lg_detach(a), .ord = 1, .keep_dim = true), *by = lg__constant(a, 1);
        const double greatest = lg_item(lg_amax(norm));
        if (!lg__ok(call->ctx))
                return NULL;
        const int steps = isfinite(greatest) && greatest > most ? (int)ceil(log2(greatest / most)) : 0;
        for (int i = 0; i < steps; i++)
                by = lg_where(lg_gt_scalar(norm, ldexp(most, i)), lg_mul_scalar(by, 0.5), by);
        lg_tensor *y = taylor(steps ? lg_mul(a, by) : a);
        for (int i = 0; i < steps; i++)
                y = lg_where(lg_gt_scalar(norm, ldexp(most, i)), lg_matmul(y, y), y);
        return y;
}
LG__DEFINE(matrix_exp, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_matrix_exp)

lg_tensor *lg_matrix_exp(lg_tensor *a)
{
        return lg__apply1(LG__OP(matrix_exp), a, NULL);
}

static lg_tensor *compose_matrix_power(const lg__call *call)
{
        const int64_t n = *(const int64_t *)call->attributes;
        uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
        lg_tensor *a = call->in[0], *y = NULL;
        if (!lg__takes_matrices(call, 0, true))
                return NULL;
        a = n < 0 ? lg_inverse(a) : a;
        if (left == 0)
                return a ? lg_contiguous(lg__identity_like(a)) : NULL;
        for (; a && left; left /= 2) {
                if (left % 2)
                        y = y ? lg_matmul(y, a) : a;
                a = left > 1 ? lg_matmul(a, a) : a;
        }
        return a ? lg__made(y, call->in[0]) : NULL;
}
LG__DEFINE(matrix_power, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT}), .compose = compose_matrix_power)

lg_tensor *lg_matrix_power(lg_tensor *a, int64_t n)
{
        return lg__apply1(LG__OP(matrix_power), a, &n);
}
