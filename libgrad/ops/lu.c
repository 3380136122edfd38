/* lu.c - LU factorisation with partial pivoting, solutions of systems of equations, and inverses.
 *
 * lu: rows permutation of a are l u. With square factors, the gradients h of l and k of u, and T the strictly lower, U
 * the upper triangle: d(l u) = l^-T (T(l^T h) + U(k u^T)) u^-T. If a has more rows, the other rows of l are a2 u^-1,
 * which adds to k and gives da2; more columns of u are l^-1 a2. solve: a x = b; db = a^-T g, da = -db x^T. inverse:
 * da = -y^T g y^T.
 */
#include "linalg.h"

/* ---- lu ---- */

/* Describes the results lu, permutation and signs of factorising a, as results `first` and on. */
static void describe_lu(lg__call *call, int first)
{
        const lg_tensor *a = call->in[0];
        call->out_at[first].dtype = call->out_at[first + 2].dtype = a->at.dtype;
        call->out_at[first].shape = a->at.shape;
        call->out_at[first + 1].dtype = LG_I64;
        call->out_at[first + 1].shape = lg__batch_of(a, 1);
        call->out_at[first + 2].shape = lg__batch_of(a, 2);
}

static bool infer_lu(lg__call *call)
{
        if (!lg__takes_matrices(call, 0, false))
                return false;
        describe_lu(call, 0);
        return true;
}

/* Factorises a. A matrix that is singular is an error of `origin`, or none if that is 0. */
static bool factorize(lg__device *d, const lg_tensor *a, lg_tensor *const factors[3], lg__origin origin)
{
        lg_lu_args k = {.dtype = a->at.dtype, .m = lg__side_of(a, 1), .n = lg__side_of(a, 0), .origin = (int)origin};
        k.count = lg__shape_numel(lg__batch_of(a, 2));
        if (k.count == 0)
                return true;
        k.a = lg__data(a);
        k.lu = lg__data(factors[0]);
        k.permutation = lg__data(factors[1]);
        k.signs = lg__data(factors[2]);
        return LG__RUN(d, "lu", lu, &k);
}

static bool forward_lu(lg__call *call)
{
        return factorize(call->device, call->in[0], call->out, 0);
}

static lg_tensor *rows_of(lg_tensor *x, int64_t from, int64_t count)
{
        return x ? lg_narrow(x, -2, from, count) : NULL;
}

static lg_tensor *columns_of(lg_tensor *x, int64_t from, int64_t count)
{
        return x ? lg_narrow(x, -1, from, count) : NULL;
}

/* Returns x t^-1, or x t^-T if `transposed`, for triangular t. */
static lg_tensor *right_solve(lg_tensor *x, lg_tensor *t, bool upper, bool transposed, bool unit)
{
        return lg__transposed(lg__triangular(t, lg__transposed(x), upper, !transposed, unit));
}

lg_tensor *lg__unpermuted(lg_tensor *x, lg_tensor *permutation)
{
        lg_tensor *index = x ? lg_unsqueeze(lg_argsort(permutation, -1), -1) : NULL;
        return index ? lg_gather(x, -2, lg_expand(index, x->at.shape)) : NULL;
}

static bool vjp_lu(lg__vjp *v)
{
        lg_tensor *lu = v->out[0], *g = v->grad[0];
        if (!g)
                return true;
        const int64_t m = lg__side_of(lu, 1), n = lg__side_of(lu, 0), rank = m < n ? m : n;
        lg_tensor *square = rows_of(columns_of(lu, 0, rank), 0, rank), *other = NULL;
        lg_tensor *l = lg_add(lg_tril(square, .diagonal = -1), lg__identity_like(square)), *u = lg_triu(square);
        lg_tensor *gs = rows_of(columns_of(g, 0, rank), 0, rank);
        lg_tensor *gl = lg_tril(gs, .diagonal = -1), *gu = lg_triu(gs);
        if (m > n) {
                other = right_solve(rows_of(g, n, m - n), u, true, true, false);
                gu = lg_sub(gu, lg_matmul(lg__transposed(rows_of(lu, n, m - n)), other));
        } else if (n > m) {
                other = lg__triangular(l, columns_of(g, m, n - m), false, true, true);
                gl = lg_sub(gl, lg_matmul(other, lg__transposed(columns_of(lu, m, n - m))));
        }
        lg_tensor *both = lg_add(lg_tril(lg_matmul(lg__transposed(l), gl), .diagonal = -1),
                                 lg_triu(lg_matmul(gu, lg__transposed(u))));
        lg_tensor *y = right_solve(lg__triangular(l, both, false, true, true), u, true, true, false);
        if (m != n)
                y = lg_cat(LG_LIST(y, other), m > n ? -2 : -1);
        v->grad_in[0] = lg__unpermuted(y, v->out[1]);
        return v->grad_in[0] != NULL;
}

LG__DEFINE(lu, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR}),
           LG__RESULTS({"lu", .saved_for = LG__BY(0)}, {"permutation", .saved_for = LG__BY(0)}, {"signs"}),
           .infer = infer_lu, .forward = forward_lu, .vjp = vjp_lu)

lg_tensor *lg_lu_with(lg_tensor *a, const lg_lu_options *options)
{
        lg_lu_options o;
        lg_tensor *out[LG__MAX_OUT];
        if (!lg__take(lg__ctx_of(a), "lu", options, &o, sizeof o) || !lg__apply(LG__OP(lu), &a, 1, NULL, out))
                return NULL;
        const int64_t m = lg__side_of(a, 1), n = lg__side_of(a, 0), rank = m < n ? m : n;
        lg_tensor *l = o.l ? lg_tril(columns_of(out[0], 0, rank), .diagonal = -1) : NULL;
        lg_tensor *one = l ? lg_eye(a->ctx, m, rank, .dtype = l->at.dtype, .device = lg_device_of(l)) : NULL;
        lg_tensor *u = o.u ? lg_triu(rows_of(out[0], 0, rank)) : NULL;
        l = one ? lg_add(l, one) : NULL;
        if ((o.l && !l) || (o.u && !u))
                return NULL;
        if (o.l)
                *o.l = l;
        if (o.u)
                *o.u = u;
        if (o.permutation)
                *o.permutation = out[1];
        return out[0];
}

/* ---- solve_system: a x = b by the factors lu and permutation of a, which it computes unless they are given ---- */

#define SYSTEM_FIELDS(FIELD) FIELD(bool, transposed, false)
LG__ATTRIBUTES(system, SYSTEM_FIELDS)

enum { A, B, LU, PERMUTATION };

static bool infer_system(lg__call *call)
{
        const lg_tensor *a = call->in[A], *b = call->in[B];
        lg_shape batch;
        if (!lg__broadcast(call->ctx, "solve", lg__batch_of(a, 2), lg__batch_of(b, 2), &batch))
                return false;
        if (batch.ndim > LG_MAX_DIMS - 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "solve: the result has more than %d dimensions", LG_MAX_DIMS);
        call->out_at[0].shape = lg__matrices_of(batch, lg__side_of(b, 1), lg__side_of(b, 0));
        if (call->in[LU])
                return lg__shape_valid(call->ctx, "solve", call->out_at[0].shape);
        describe_lu(call, 1);
        call->out_count = 4;
        return lg__shape_valid(call->ctx, "solve", call->out_at[0].shape);
}

/* Solves by the factors, both contiguous and with the batch of x; y is scratch like x. */
static bool solve_factored(lg__device *d, lg_tensor *const factors[2], const lg_tensor *b, bool transposed,
                           lg_tensor *y, lg_tensor *x)
{
        lg_triangular_args k = {.dtype = x->at.dtype, .n = lg__side_of(x, 1), .k = lg__side_of(x, 0)};
        k.count = lg__shape_numel(lg__batch_of(x, 2));
        k.a = lg__data(factors[0]);
        k.b = lg__data(b);
        k.x = lg__data(y);
        k.transposed = transposed;
        k.upper = transposed;
        k.unit = !transposed;
        k.permutation = transposed ? NULL : lg__data(factors[1]);
        if (!LG__RUN(d, "solve", triangular, &k))
                return false;
        k.upper = !transposed;
        k.unit = transposed;
        k.permutation = transposed ? lg__data(factors[1]) : NULL;
        k.scatter = transposed;
        k.b = k.x;
        k.x = lg__data(x);
        return LG__RUN(d, "solve", triangular, &k);
}

static bool forward_system(lg__call *call)
{
        const bool transposed = ((const system_attributes *)call->attributes)->transposed, given = call->in[LU] != NULL;
        lg_tensor *x = call->out[0], *lu = given ? call->in[LU] : call->out[1];
        lg_tensor *permutation = given ? call->in[PERMUTATION] : call->out[2];
        const lg_shape batch = lg__batch_of(x, 2);
        if (!given && !factorize(call->device, call->in[A], call->out + 1, LG__ORIGIN_SOLVE))
                return false;
        if (lg__shape_numel(x->at.shape) == 0)
                return true;
        lg_tensor *factors[] = {lg__in_batch(lu, batch, 2), lg__in_batch(permutation, batch, 1)};
        lg_tensor *b = lg__in_batch(call->in[B], batch, 2), *y = lg__tensor_like(x);
        const bool ok =
                factors[0] && factors[1] && b && y && solve_factored(call->device, factors, b, transposed, y, x);
        if (factors[0] != lu)
                lg__tensor_release(factors[0]);
        if (factors[1] != permutation)
                lg__tensor_release(factors[1]);
        if (b != call->in[B])
                lg__tensor_release(b);
        lg__tensor_release(y);
        return ok;
}

lg_tensor *lg__solve_system(lg_tensor *a, lg_tensor *b, lg_tensor *lu, lg_tensor *permutation, bool transposed)
{
        return LG__APPLY(solve_system, (&(system_attributes){transposed}), a, b, lg_detach(lu), permutation);
}

static bool vjp_system(lg__vjp *v)
{
        const bool transposed = ((const system_attributes *)v->attributes)->transposed, given = v->in[LU] != NULL;
        lg_tensor *x = v->out[0];
        lg_tensor *db = lg__solve_system(v->in[A], v->grad[0], given ? v->in[LU] : v->out[1],
                                         given ? v->in[PERMUTATION] : v->out[2], !transposed);
        if (!db)
                return false;
        v->grad_in[B] = v->needs[B] ? db : NULL;
        if (v->needs[A])
                v->grad_in[A] =
                        lg_neg(transposed ? lg_matmul(x, lg__transposed(db)) : lg_matmul(db, lg__transposed(x)));
        return !v->needs[A] || v->grad_in[A];
}

#define BY_BOTH (LG__BY(A) | LG__BY(B))
LG__DEFINE(solve_system, .flags = LG__PROMOTE,
           LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR, .saved_for = BY_BOTH}, {"b", LG__FLOAT, LG__ROW_MAJOR},
                        {"lu", LG__FLOAT, LG__ROW_MAJOR, .optional = true, .saved_for = BY_BOTH},
                        {"permutation", LG__INDEX, LG__ROW_MAJOR, .optional = true, .saved_for = BY_BOTH}),
           LG__RESULTS({"x", .saved_for = LG__BY(A)}, {"lu", .saved_for = BY_BOTH},
                       {"permutation", .saved_for = BY_BOTH}, {"signs"}),
           LG__HAS(system), .infer = infer_system, .forward = forward_system, .vjp = vjp_system)

/* Returns whether b holds vectors for the matrices a by PyTorch's rule: it has one dimension, or the shape (..., n) of
 * the batch of a. */
static bool has_vectors(const lg_tensor *a, const lg_tensor *b)
{
        const lg_shape s = lg__batch_of(a, 1);
        return b->at.shape.ndim == 1 || lg__sizes_equal(&b->at, s.size, s.ndim);
}

/* Checks the matrices and right sides of a composite. Returns b as matrices, and sets *ret_vectors if it was vectors.
 */
static lg_tensor *right_sides(const lg__call *call, lg_tensor *b, bool *ret_vectors)
{
        lg_tensor *a = call->in[0];
        if (!lg__takes_matrices(call, 0, true))
                return NULL;
        *ret_vectors = has_vectors(a, b);
        lg_tensor *columns = *ret_vectors ? lg_unsqueeze(b, -1) : b;
        if (columns && (columns->at.shape.ndim < 2 || lg__side_of(columns, 1) != lg__side_of(a, 0)))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "%s: a is %s but b is %s: b is (..., n, k), or vectors (..., n)", call->op->name,
                                lg__tensor_text(a).s, lg__tensor_text(b).s);
        return columns;
}

static lg_tensor *compose_solve(const lg__call *call)
{
        bool vectors;
        lg_tensor *b = right_sides(call, call->in[1], &vectors), *out[LG__MAX_OUT];
        lg_tensor *in[] = {call->in[0], b, NULL, NULL};
        if (!b || !lg__apply(LG__OP(solve_system), in, 4, &(system_attributes){false}, out))
                return NULL;
        for (int i = 1; i < 4; i++)
                lg__tensor_release(out[i]);
        return vectors ? lg_squeeze(out[0], LG_DIMS(-1)) : out[0];
}
LG__DEFINE(solve, .compose = compose_solve, .flags = LG__PROMOTE, .autocast = LG__F32,
           LG__OPERANDS({"a", LG__FLOAT}, {"b", LG__FLOAT}))

lg_tensor *lg_solve(lg_tensor *a, lg_tensor *b)
{
        return LG__APPLY(solve, NULL, a, b);
}

/* ---- lu_solve: by triangular systems, whose derivatives reach the factors ---- */

static lg_tensor *compose_lu_solve(const lg__call *call)
{
        lg_lu_solve_options o;
        bool vectors;
        lg_tensor *lu = call->in[0], *permutation = call->in[1];
        if (!lg__take(call->ctx, "lu_solve", call->attributes, &o, sizeof o))
                return NULL;
        lg_tensor *b = right_sides(call, call->in[2], &vectors);
        if (!b)
                return NULL;
        const lg_shape lines = lg__batch_of(lu, 1);
        lg_shape batch;
        if (!lg__sizes_equal(&permutation->at, lines.size, lines.ndim))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "lu_solve: permutation is %s; lg_lu() gives it as %s",
                                lg__tensor_text(permutation).s, lg__shape_text(lines).s);
        if (!lg__broadcast(call->ctx, "lu_solve", lg__batch_of(lu, 2), lg__batch_of(b, 2), &batch))
                return NULL;
        if (batch.ndim > LG_MAX_DIMS - 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "lu_solve: the result has more than %d dimensions",
                                LG_MAX_DIMS);
        const lg_shape s = lg__matrices_of(batch, lg__side_of(b, 1), lg__side_of(b, 0));
        lg_tensor *index = lg_unsqueeze(o.transposed ? lg_argsort(permutation, -1) : permutation, -1), *x;
        index = lg_expand(index, s);
        if (o.transposed) {
                x = lg__triangular(lu, lg__triangular(lu, b, true, true, false), false, true, true);
                x = x ? lg_gather(x, -2, index) : NULL;
        } else {
                b = lg_gather(lg_expand(b, s), -2, index);
                x = lg__triangular(lu, lg__triangular(lu, b, false, false, true), true, false, false);
        }
        return x && vectors ? lg_squeeze(x, LG_DIMS(-1)) : x;
}
LG__DEFINE(lu_solve, .compose = compose_lu_solve, .autocast = LG__F32,
           LG__OPERANDS({"lu", LG__FLOAT}, {"permutation", LG__INDEX}, {"b", LG__FLOAT}))

lg_tensor *lg_lu_solve_with(lg_tensor *lu, lg_tensor *permutation, lg_tensor *b, const lg_lu_solve_options *options)
{
        return LG__APPLY(lu_solve, options, lu, permutation, b);
}

/* ---- inverse ---- */

static bool infer_inverse(lg__call *call)
{
        return lg__takes_matrices(call, 0, true);
}

static bool forward_inverse(lg__call *call)
{
        lg_tensor *a = call->in[0], *y = call->out[0], region = *y;
        if (lg__shape_numel(a->at.shape) == 0)
                return true;
        const lg_shape lines = lg__batch_of(a, 1);
        lg_tensor *const factors[] = {lg__tensor_like(a),
                                      lg__tensor_empty(call->ctx, a->storage->device->id, LG_I64, lines),
                                      lg__tensor_empty(call->ctx, a->storage->device->id, a->at.dtype, lines)};
        lg_tensor *scratch = lg__tensor_like(a);
        /* The diagonal of the result, which holds identity matrices at first. */
        region.at.shape = lines;
        region.at.strides[lines.ndim - 1] = lg__side_of(a, 0) + 1;
        const bool ok = factors[0] && factors[1] && factors[2] && scratch &&
                        factorize(call->device, a, factors, LG__ORIGIN_INVERSE) && lg__fill_values(y, 0, "inverse") &&
                        lg__fill_values(&region, 1, "inverse") &&
                        solve_factored(call->device, factors, y, false, scratch, y);
        for (int i = 0; i < 3; i++)
                lg__tensor_release(factors[i]);
        lg__tensor_release(scratch);
        return ok;
}

static bool vjp_inverse(lg__vjp *v)
{
        lg_tensor *y = lg__transposed(v->out[0]);
        v->grad_in[0] = lg_neg(lg_matmul(y, lg_matmul(v->grad[0], y)));
        return v->grad_in[0] != NULL;
}

LG__DEFINE(inverse, .autocast = LG__F32, LG__OPERANDS({"a", LG__FLOAT, LG__ROW_MAJOR}),
           LG__RESULTS({"y", .saved_for = LG__BY(0)}), .infer = infer_inverse, .forward = forward_inverse,
           .vjp = vjp_inverse)

lg_tensor *lg_inverse(lg_tensor *a)
{
        return LG__APPLY(inverse, NULL, a);
}
