/* triangular.c - triangular systems of equations, solutions by a Cholesky factor, and what linear algebra shares.
 *
 * triangular_solve: op(a) x = b for triangular a, where op transposes or not. With h = op(a)^-T g: db = h, and da is
 * the triangle of -h x^T, or of its transpose if op transposes; without the diagonal if that counts as 1.
 */
#include <string.h>
#include "linalg.h"

/* ---- shared ---- */

bool lg__takes_matrices(const lg__call *call, int i, bool square)
{
        const lg_tensor *t = call->in[i];
        const char *name = call->op->name, *operand = lg__operand_name(call->op, i);
        if (t->at.dtype != LG_F32 && t->at.dtype != LG_F64)
                return lg__fail(call->ctx, LG_ERR_DTYPE,
                                "%s: %s is %s; it must be f32 or f64: convert it with lg_cast()", name, operand,
                                lg__tensor_text(t).s);
        if (t->at.shape.ndim < 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: %s is %s; it is a matrix, or a batch (..., %s)", name,
                                operand, lg__tensor_text(t).s, square ? "n, n" : "m, n");
        if (square && lg__side_of(t, 0) != lg__side_of(t, 1))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: %s is %s; its matrices must be square", name, operand,
                                lg__tensor_text(t).s);
        return true;
}

lg_tensor *lg__in_batch(lg_tensor *t, lg_shape batch, int last)
{
        const int n = t->at.shape.ndim;
        lg_tensor spread = *t;
        for (int i = n - last; i < n; i++)
                batch.size[batch.ndim++] = t->at.shape.size[i];
        if (lg__sizes_equal(&t->at, batch.size, batch.ndim))
                return t;
        spread.at.shape = batch;
        lg__broadcast_strides(&t->at, batch, spread.at.strides);
        return lg__clone_values(&spread, t->storage->device->id, t->at.dtype);
}

lg_tensor *lg__identity_like(const lg_tensor *a)
{
        const int64_t n = lg__side_of(a, 0);
        lg_tensor *one = lg_eye(a->ctx, n, n, .dtype = a->at.dtype, .device = a->storage->device->id);
        return one ? lg_expand(one, a->at.shape) : NULL;
}

/* ---- triangular_solve ---- */

#define TRIANGULAR_FIELDS(FIELD) FIELD(bool, upper, false) FIELD(bool, transposed, false) FIELD(bool, unit, false)
LG__ATTRIBUTES(triangular, TRIANGULAR_FIELDS)

static bool infer_triangular(lg__call *call)
{
        lg_tensor *a = call->in[0], *b = call->in[1];
        lg_shape batch;
        if (!lg__takes_matrices(call, 0, true) || !lg__takes_matrices(call, 1, false))
                return false;
        if (lg__side_of(b, 1) != lg__side_of(a, 0))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: a is %s but b is %s: b must have %lld rows",
                                call->op->name, lg__tensor_text(a).s, lg__tensor_text(b).s,
                                (long long)lg__side_of(a, 0));
        if (!lg__broadcast(call->ctx, call->op->name, lg__batch_of(a, 2), lg__batch_of(b, 2), &batch))
                return false;
        if (batch.ndim > LG_MAX_DIMS - 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: the result has more than %d dimensions", call->op->name,
                                LG_MAX_DIMS);
        call->out_at[0].shape = lg__matrices_of(batch, lg__side_of(b, 1), lg__side_of(b, 0));
        return lg__shape_valid(call->ctx, call->op->name, call->out_at[0].shape);
}

static bool forward_triangular(lg__call *call)
{
        const triangular_attributes *t = call->attributes;
        lg_tensor *x = call->out[0];
        const lg_shape batch = lg__batch_of(x, 2);
        lg_triangular_args k = {.dtype = x->at.dtype, .count = lg__shape_numel(batch), .n = lg__side_of(x, 1)};
        if (lg__shape_numel(x->at.shape) == 0)
                return true;
        lg_tensor *a = lg__in_batch(call->in[0], batch, 2), *b = a ? lg__in_batch(call->in[1], batch, 2) : NULL;
        if (b) {
                k.k = lg__side_of(x, 0);
                k.upper = t->upper;
                k.transposed = t->transposed;
                k.unit = t->unit;
                k.a = lg__data(a);
                k.b = lg__data(b);
                k.x = lg__data(x);
        }
        const bool ok = b && LG__RUN(call->device, "triangular_solve", triangular, &k);
        if (a != call->in[0])
                lg__tensor_release(a);
        if (b != call->in[1])
                lg__tensor_release(b);
        return ok;
}

static bool vjp_triangular(lg__vjp *v)
{
        const triangular_attributes *t = v->attributes;
        const triangular_attributes back = {t->upper, !t->transposed, t->unit};
        lg_tensor *h = LG__APPLY(triangular_solve, &back, v->in[0], v->grad[0]), *x = v->out[0];
        if (!h)
                return false;
        v->grad_in[1] = v->needs[1] ? h : NULL;
        if (!v->needs[0])
                return true;
        lg_tensor *da = lg_neg(t->transposed ? lg_matmul(x, lg__transposed(h)) : lg_matmul(h, lg__transposed(x)));
        v->grad_in[0] = t->upper ? lg_triu(da, .diagonal = t->unit) : lg_tril(da, .diagonal = -(int64_t)t->unit);
        return v->grad_in[0] != NULL;
}

LG__DEFINE(triangular_solve, .flags = LG__PROMOTE, .autocast = LG__F32,
           LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR, .saved_for = LG__BY(0) | LG__BY(1)},
                        {"b", LG__FLOAT, LG__ROW_MAJOR}),
           LG__RESULTS({"x", .saved_for = LG__BY(0)}), LG__HAS(triangular), .infer = infer_triangular,
           .forward = forward_triangular, .vjp = vjp_triangular)

lg_tensor *lg__triangular(lg_tensor *a, lg_tensor *b, bool upper, bool transposed, bool unit)
{
        return a && b ? LG__APPLY(triangular_solve, (&(triangular_attributes){upper, transposed, unit}), a, b) : NULL;
}

lg_tensor *lg_triangular_solve_with(lg_tensor *a, lg_tensor *b, const lg_triangular_solve_options *options)
{
        lg_triangular_solve_options o;
        if (!lg__take(lg__ctx_of(a), "triangular_solve", options, &o, sizeof o))
                return NULL;
        triangular_attributes t = {o.upper, o.transposed != o.right, o.unit};
        if (!o.right || !lg__is_address(b) || b->at.shape.ndim < 2)
                return LG__APPLY(triangular_solve, &t, a, b);
        return lg__transposed(LG__APPLY(triangular_solve, &t, a, lg__transposed(b)));
}

/* ---- cholesky_solve ---- */

static lg_tensor *compose_cholesky_solve(const lg__call *call)
{
        lg_cholesky_options o;
        if (!lg__take(call->ctx, "cholesky_solve", call->attributes, &o, sizeof o))
                return NULL;
        if (!lg__takes_matrices(call, 0, true) || !lg__takes_matrices(call, 1, false))
                return NULL;
        lg_tensor *l = call->in[0];
        return lg__triangular(l, lg__triangular(l, call->in[1], o.upper, o.upper, false), o.upper, !o.upper, false);
}
LG__DEFINE(cholesky_solve, .compose = compose_cholesky_solve, .flags = LG__PROMOTE, .autocast = LG__F32,
           LG__OPERANDS({"l", LG__FLOAT}, {"b", LG__FLOAT}))

lg_tensor *lg_cholesky_solve_with(lg_tensor *l, lg_tensor *b, const lg_cholesky_options *options)
{
        return LG__APPLY(cholesky_solve, options, l, b);
}
