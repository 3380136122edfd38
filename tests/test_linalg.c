/* test_linalg.c - Cholesky and LU factorisations, systems of equations, inverses, determinants: PyTorch's numbers,
 * backward errors, singular matrices, edge cases, wrong calls. */
#include <float.h>
#include "golden.h"

#define Y(phase, ...) golden_like(x, LG_SHAPE(__VA_ARGS__), phase)
/* x with a diagonal that makes it regular, and a positive definite matrix of x. */
static lg_tensor *near_one(lg_tensor *x)
{
        const int64_t m = lg_size_of(x, -2), n = lg_size_of(x, -1);
        return lg_add(x, lg_mul_scalar(lg_eye(lg_ctx_of(x), m, n, .dtype = lg_dtype_of(x)), 3));
}

static lg_tensor *positive(lg_tensor *x)
{
        const int64_t n = lg_size_of(x, -2);
        return lg_add(lg_matmul(x, lg_transpose(x, -2, -1)), lg_eye(lg_ctx_of(x), n, n, .dtype = lg_dtype_of(x)));
}

static lg_tensor *factor(lg_tensor *x, bool upper)
{
        lg_tensor *l = NULL, *u = NULL;
        return lg_lu(x, .l = &l, .u = &u) ? upper ? u : l : NULL;
}

static lg_tensor *by_factors(lg_tensor *x, lg_tensor *b, bool transposed)
{
        lg_tensor *p = NULL, *lu = lg_lu(x, .permutation = &p);
        return lg_lu_solve(lu, p, b, .transposed = transposed);
}

static lg_tensor *sign_and_log(lg_tensor *x)
{
        lg_tensor *log = NULL, *sign = lg_slogdet(x, &log);
        return lg_stack(LG_LIST(sign, log), 0);
}

#define ROWS(ROW)                                                                                                      \
        ROW(cholesky, lg_cholesky(positive(x)), 4, 4)                                                                  \
        ROW(cholesky_batch, lg_cholesky(positive(x)), 2, 3, 5)                                                         \
        ROW(cholesky_upper, lg_cholesky(positive(x), .upper = true), 2, 3, 3)                                          \
        ROW(cholesky_solve, lg_cholesky_solve(lg_cholesky(positive(x)), Y(0.5, 4, 2)), 4, 4)                           \
        ROW(cholesky_solve_b, lg_cholesky_solve(lg_cholesky(positive(Y(0, 3, 3)), .upper = true), x, .upper = true),   \
            2, 3, 2)                                                                                                   \
        ROW(solve, lg_solve(near_one(x), Y(0.5, 4, 3)), 4, 4)                                                          \
        ROW(solve_vector, lg_solve(near_one(x), Y(0.5, 4)), 4, 4)                                                      \
        ROW(solve_vectors, lg_solve(near_one(x), Y(0.5, 2, 3)), 2, 3, 3)                                               \
        ROW(solve_batch, lg_solve(near_one(x), Y(0.5, 2, 3, 1)), 2, 3, 3)                                              \
        ROW(solve_broadcast, lg_solve(near_one(x), Y(0.5, 3, 2)), 2, 3, 3)                                             \
        ROW(solve_broadcast_a, lg_solve(near_one(x), Y(0.5, 2, 1, 5, 2)), 2, 5, 5)                                     \
        ROW(solve_b, lg_solve(near_one(Y(0.5, 3, 3)), x), 2, 3, 2)                                                     \
        ROW(solve_b_vector, lg_solve(near_one(Y(0.5, 3, 3)), x), 3)                                                    \
        ROW(triangular, lg_triangular_solve(near_one(x), Y(0.5, 4, 3)), 4, 4)                                          \
        ROW(triangular_upper, lg_triangular_solve(near_one(x), Y(0.5, 4, 3), .upper = true), 4, 4)                     \
        ROW(triangular_unit, lg_triangular_solve(x, Y(0.5, 3, 2), .unit = true), 2, 3, 3)                              \
        ROW(triangular_transposed, lg_triangular_solve(near_one(x), Y(0.5, 3, 2), .transposed = true), 2, 3, 3)        \
        ROW(triangular_upper_transposed,                                                                               \
            lg_triangular_solve(near_one(x), Y(0.5, 3, 2), .upper = true, .transposed = true), 2, 3, 3)                \
        ROW(triangular_right, lg_triangular_solve(near_one(x), Y(0.5, 2, 3), .upper = true, .right = true), 2, 3, 3)   \
        ROW(triangular_b, lg_triangular_solve(near_one(Y(0, 2, 1, 3, 3)), x), 2, 3, 2)                                 \
        ROW(lu, lg_lu(near_one(x)), 4, 4)                                                                              \
        ROW(lu_batch, lg_lu(near_one(x)), 2, 2, 5, 5)                                                                  \
        ROW(lu_wide, lg_lu(near_one(x)), 2, 3, 5)                                                                      \
        ROW(lu_tall, lg_lu(near_one(x)), 2, 5, 3)                                                                      \
        ROW(lu_l, factor(near_one(x), false), 5, 3)                                                                    \
        ROW(lu_u, factor(near_one(x), true), 3, 5)                                                                     \
        ROW(lu_solve, by_factors(near_one(x), Y(0.5, 3, 2), false), 2, 3, 3)                                           \
        ROW(lu_solve_transposed, by_factors(near_one(x), Y(0.5, 3, 2), true), 2, 3, 3)                                 \
        ROW(inverse, lg_inverse(near_one(x)), 4, 4)                                                                    \
        ROW(inverse_batch, lg_inverse(near_one(x)), 2, 2, 5, 5)                                                        \
        ROW(inverse_1, lg_inverse(near_one(x)), 3, 1, 1)                                                               \
        ROW(det, lg_det(near_one(x)), 4, 4)                                                                            \
        ROW(det_batch, lg_det(near_one(x)), 2, 2, 5, 5)                                                                \
        ROW(det_0, lg_det(x), 3, 0, 0)                                                                                 \
        ROW(slogdet, sign_and_log(near_one(x)), 2, 2, 5, 5)                                                            \
        ROW(logdet, lg_logdet(near_one(x)), 2, 2, 3, 3)

GOLDEN_TEST(as_pytorch_computes_them, "linalg.txt", golden_input, ROWS);

/* ---- backward errors: at most 10 n eps ---- */

static double norm(lg_tensor *x)
{
        return lg_item(lg_norm(lg_cast(x, LG_F64)));
}

static lg_tensor *product(lg_tensor *a, lg_tensor *b)
{
        return lg_matmul(lg_cast(a, LG_F64), lg_cast(b, LG_F64));
}

static void check_errors(lg_dtype dtype, int64_t n, int64_t k)
{
        lg_ctx *c = open_ctx();
        const double limit = 10 * (double)n * (dtype == LG_F64 ? DBL_EPSILON : (double)FLT_EPSILON) / 2;
        lg_tensor *a = lg_normal(c, 0, 1, LG_SHAPE(2, n, n), .dtype = dtype);
        lg_tensor *b = lg_normal(c, 0, 1, LG_SHAPE(2, n, k), .dtype = dtype);
        lg_tensor *s = lg_cast(lg_add(product(a, lg_transpose(a, 1, 2)), lg_eye(c, n, n, .dtype = LG_F64)), dtype);
        lg_tensor *l = lg_cholesky(s), *x = lg_solve(a, b), *y = lg_inverse(a), *p = NULL;
        lg_tensor *lu = lg_lu(a, .permutation = &p), *z = lg_lu_solve(lu, p, b, .transposed = true);
        assert_true(norm(lg_sub(product(l, lg_transpose(l, 1, 2)), s)) <= limit * norm(s));
        assert_true(norm(lg_sub(product(a, x), b)) <= limit * norm(a) * norm(x));
        assert_true(norm(lg_sub(product(lg_transpose(a, 1, 2), z), b)) <= limit * norm(a) * norm(z));
        assert_true(norm(lg_sub(product(a, y), lg_eye(c, n, n, .dtype = LG_F64))) <= limit * norm(a) * norm(y));
        assert_near(lg_item(lg_sum(lg_abs(lg_triu(l, .diagonal = 1)))), 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(errors_are_small)
{
        const int64_t n[] = {1, 2, 7, 14, 17, 31, 32, 33, 64, 65, 130};
        for (int i = 0; i < 11; i++) {
                check_errors(LG_F32, n[i], 1 + 7 * i % 40);
                check_errors(LG_F64, n[i], 1 + 5 * i % 40);
        }
}

TEST_CASE(same_bits_for_any_number_of_threads)
{
        const int64_t sizes[][2] = {{1, 200}, {3, 100}, {9, 33}};
        for (int i = 0; i < 6; i++) {
                lg_ctx *c = open_ctx();
                const int64_t count = sizes[i / 2][0], n = sizes[i / 2][1];
                lg_tensor *a = lg_normal(c, 0, 1, LG_SHAPE(count, n, n), .dtype = i % 2 ? LG_F64 : LG_F32);
                lg_tensor *s = positive(a), *first[4] = {NULL};
                for (int threads = 1; threads < 5; threads++) {
                        lg_set_threads(c, threads);
                        lg_tensor *y[] = {lg_cholesky(s), lg_lu(a), lg_inverse(a), lg_solve(a, s)};
                        for (int k = 0; k < 4; k++) {
                                first[k] = first[k] ? first[k] : y[k];
                                assert_same_bits(first[k], y[k]);
                        }
                }
                assert_ok(c);
                lg_close(c);
        }
}

/* ---- matrices without a result ---- */

static lg_tensor *with(lg_ctx *c, int64_t count, int64_t n, int64_t which, lg_tensor *bad)
{
        lg_tensor *all = lg_mul_scalar(lg_eye(c, n, n, .dtype = lg_dtype_of(bad)), 2);
        lg_tensor *list[8];
        for (int64_t i = 0; i < count; i++)
                list[i] = i == which ? bad : all;
        return lg_stack(LG_LIST_OF(count, list), 0);
}

static void assert_refused(lg_ctx *c, lg_tensor *y, const char *text)
{
        lg_synchronize(c);
        (void)y;
        assert_error(c, LG_ERR_ARGUMENT, text);
}

TEST_CASE(matrices_that_cannot_be_factorised)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64};
        for (int d = 0; d < 2; d++) {
                lg_tensor *i = lg_arange(c, 1, 21, 1, .dtype = dtypes[d]);
                lg_tensor *hilbert = lg_reciprocal(lg_sub_scalar(lg_add(i, lg_unsqueeze(i, -1)), 1));
                assert_refused(c, lg_cholesky(hilbert), "cholesky: matrix 0 of the batch is not positive definite");
        }
        lg_tensor *minus = lg_from(c, ((float[]){1, 0, 0, 0, 1, 0, 0, 0, -1}), LG_SHAPE(3, 3));
        lg_tensor *twice = lg_from(c, ((float[]){1, 2, 3, 2, 4, 6, 1, 0, 1}), LG_SHAPE(3, 3));
        lg_tensor *nan = lg_full(c, LG_SHAPE(3, 3), NAN);
        assert_refused(c, lg_cholesky(with(c, 5, 3, 3, minus)),
                       "cholesky: matrix 3 of the batch is not positive definite (the leading minor of order 3)");
        assert_refused(c, lg_cholesky(with(c, 2, 3, 1, nan)), "matrix 1 of the batch is not positive definite");
        assert_refused(c, lg_solve(with(c, 4, 3, 2, twice), lg_ones(c, LG_SHAPE(3, 1))),
                       "solve: matrix 2 of the batch is singular");
        assert_refused(c, lg_inverse(twice), "inverse: matrix 0 of the batch is singular");
        assert_refused(c, lg_inverse(with(c, 3, 3, 1, nan)), "inverse: matrix 1 of the batch is singular");
        assert_refused(c, lg_inverse(lg_zeros(c, LG_SHAPE(40, 40), .dtype = LG_F64)), "singular");
        assert_refused(c, lg_solve(lg_full(c, LG_SHAPE(50, 50), NAN), lg_ones(c, LG_SHAPE(50))), "singular");
        lg_close(c);
}

TEST_CASE(only_one_triangle_is_read)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_from(c, ((float[]){4, NAN, 2, 5}), LG_SHAPE(2, 2)), *at = lg_transpose(a, 0, 1);
        lg_tensor *l = lg_cholesky(a), *u = lg_cholesky(at, .upper = true);
        assert_list(lg_reshape(l, LG_SHAPE(4)), 1e-6, 2, 0, 1, 2);
        assert_list(lg_reshape(lg_contiguous(u), LG_SHAPE(4)), 1e-6, 2, 1, 0, 2);
        assert_list(lg_triangular_solve(a, lg_ones(c, LG_SHAPE(2, 1))), 1e-6, 0.25, 0.1);
        assert_list(lg_triangular_solve(at, lg_ones(c, LG_SHAPE(2, 1)), .upper = true, .unit = true), 1e-6, -1, 1);
        assert_ok(c);
        lg_close(c);
}

/* ---- singular matrices: determinants and their derivatives ---- */

TEST_CASE(determinants_of_singular_matrices)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64};
        for (int d = 0; d < 2; d++) {
                const double v[] = {1, 2, 3, 2, 4, 6, 1, 0, 1}, jordan[] = {0, 1, 0, 0, 0, 1, 0, 0, 0};
                lg_tensor *a = lg_cast(lg_from(c, v, LG_SHAPE(3, 3), .dtype = LG_F64), dtypes[d]), *log = NULL;
                lg_tensor *n = lg_cast(lg_from(c, jordan, LG_SHAPE(3, 3), .dtype = LG_F64), dtypes[d]);
                lg_tensor *x = lg_set_requires_grad(
                        lg_detach(lg_stack(LG_LIST(a, n, lg_zeros_like(a), lg_ones_like(a)), 0)), true);
                lg_tensor *det = lg_det(x);
                assert_list(det, 1e-5, 0, 0, 0, 0);
                assert_true(lg_backward(lg_sum(det)));
                lg_tensor *g = lg_grad_of(x);
                assert_list(lg_reshape(lg_select(g, 0, 0), LG_SHAPE(9)), 1e-5, 4, 4, -4, -2, -2, 2, 0, 0, 0);
                assert_list(lg_reshape(lg_select(g, 0, 1), LG_SHAPE(9)), 1e-5, 0, 0, 0, 0, 0, 0, 1, 0, 0);
                assert_list(lg_reshape(lg_narrow(g, 0, 2, 2), LG_SHAPE(18)), 1e-5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                            0, 0, 0, 0, 0, 0);
                lg_tensor *sign = lg_slogdet(x, &log);
                assert_list(sign, 1e-5, 0, 0, 0, 0);
                assert_list(log, 1e-5, -INFINITY, -INFINITY, -INFINITY, -INFINITY);
                assert_list(lg_logdet(lg_neg(lg_eye(c, 3, 3))), 1e-5, NAN);
        }
        assert_ok(c);
        lg_close(c);
}

/* ---- factors ---- */

TEST_CASE(factors_multiply_to_the_matrix)
{
        lg_ctx *c = open_ctx();
        const int64_t sizes[][2] = {{3, 5}, {5, 3}, {40, 70}, {70, 40}, {1, 4}, {4, 1}, {0, 3}, {3, 0}, {33, 33}};
        for (int i = 0; i < 9; i++) {
                lg_tensor *a = lg_normal(c, 0, 1, LG_SHAPE(2, sizes[i][0], sizes[i][1]), .dtype = LG_F64);
                lg_tensor *p = NULL, *l = NULL, *u = NULL, *lu = lg_lu(a, .permutation = &p, .l = &l, .u = &u);
                assert_non_null(lu);
                lg_tensor *rows = lg_take_along_dim(a, lg_unsqueeze(p, -1), 1);
                assert_true(lg_allclose(lg_matmul(l, u), rows, .rtol = 1e-12, .atol = 1e-12));
                assert_true(lg_numel(l) == 0 || lg_item(lg_max(lg_flatten(lg_abs(l)), 0)) <= 1);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(nothing_to_solve)
{
        lg_ctx *c = open_ctx();
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 3, 3)), *empty = lg_zeros(c, LG_SHAPE(2, 0, 0)), *log = NULL;
        assert_int_equal(lg_numel(lg_cholesky(none)), 0);
        assert_int_equal(lg_numel(lg_inverse(none)), 0);
        assert_int_equal(lg_numel(lg_lu(none)), 0);
        assert_int_equal(lg_numel(lg_cholesky(empty)), 0);
        assert_int_equal(lg_numel(lg_inverse(empty)), 0);
        assert_int_equal(lg_size_of(lg_solve(none, lg_ones(c, LG_SHAPE(3, 2))), 2), 2);
        assert_int_equal(lg_numel(lg_solve(lg_eye(c, 3, 3), lg_ones(c, LG_SHAPE(3, 0)))), 0);
        assert_int_equal(lg_size_of(lg_solve(empty, lg_ones(c, LG_SHAPE(2, 0, 4))), 2), 4);
        assert_int_equal(lg_numel(lg_triangular_solve(empty, lg_ones(c, LG_SHAPE(0, 4)))), 0);
        assert_list(lg_det(empty), 1e-5, 1, 1);
        assert_list(lg_slogdet(empty, &log), 1e-5, 1, 1);
        assert_list(log, 1e-5, 0, 0);
        assert_int_equal(lg_numel(lg_det(none)), 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(strided_operands)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = near_one(golden_tensor(c, LG_SHAPE(2, 4, 4), 0)), *b = golden_tensor(c, LG_SHAPE(2, 4, 3), 0.5);
        lg_tensor *at = lg_transpose(lg_contiguous(lg_transpose(a, 1, 2)), 1, 2);
        lg_tensor *bs = lg_slice(lg_repeat_interleave(b, 2, 2), 2, 0, LG_MAX, .step = 2);
        assert_true(lg_equal(lg_solve(a, b), lg_solve(at, bs)));
        assert_true(lg_equal(lg_inverse(a), lg_inverse(at)));
        assert_true(lg_equal(lg_det(a), lg_det(at)));
        assert_true(lg_equal(lg_triangular_solve(a, b), lg_triangular_solve(at, bs)));
        lg_tensor *same = lg_expand(lg_select(a, 0, 0), LG_SHAPE(3, 4, 4)), *y = lg_inverse(same);
        assert_true(lg_equal(lg_select(y, 0, 2), lg_inverse(lg_select(a, 0, 0))));
        assert_ok(c);
        lg_close(c);
}

/* ---- wrong calls ---- */

TEST_CASE(wrong_operands)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_eye(c, 3, 3), *wide = lg_ones(c, LG_SHAPE(3, 4)), *v = lg_ones(c, LG_SHAPE(3)), *p = NULL;
        lg_tensor *half = lg_cast(a, LG_F16), *whole = lg_cast(a, LG_I64), *lu = lg_lu(a, .permutation = &p);
        assert_null(lg_cholesky(wide));
        assert_error(c, LG_ERR_SHAPE, "cholesky: a is f32 (3, 4)");
        assert_null(lg_cholesky(v));
        assert_error(c, LG_ERR_SHAPE, "cholesky: a is f32 (3,)");
        assert_null(lg_cholesky(half));
        assert_error(c, LG_ERR_DTYPE, "must be f32 or f64");
        assert_null(lg_inverse(whole));
        assert_error(c, LG_ERR_DTYPE, "inverse");
        assert_null(lg_det(half));
        assert_error(c, LG_ERR_DTYPE, "det: a is f16 (3, 3)");
        assert_null(lg_solve(a, lg_ones(c, LG_SHAPE(4, 2))));
        assert_error(c, LG_ERR_SHAPE, "b is (..., n, k), or vectors (..., n)");
        assert_null(lg_solve(a, lg_ones(c, LG_SHAPE_0D)));
        assert_error(c, LG_ERR_SHAPE, "solve");
        assert_null(lg_solve(lg_ones(c, LG_SHAPE(2, 3, 3)), lg_ones(c, LG_SHAPE(4, 3, 1))));
        assert_error(c, LG_ERR_SHAPE, "solve");
        assert_null(lg_solve(wide, v));
        assert_error(c, LG_ERR_SHAPE, "must be square");
        assert_null(lg_triangular_solve(a, v));
        assert_error(c, LG_ERR_SHAPE, "triangular_solve: b is f32 (3,)");
        assert_null(lg_triangular_solve(a, v, .right = true));
        assert_error(c, LG_ERR_SHAPE, "triangular_solve: b is f32 (3,)");
        assert_null(lg_triangular_solve(a, wide, .right = true));
        assert_error(c, LG_ERR_SHAPE, "triangular_solve");
        assert_null(lg_lu_solve(lu, lg_zeros(c, LG_SHAPE(4), .dtype = LG_I64), v));
        assert_error(c, LG_ERR_SHAPE, "lu_solve: permutation is i64 (4,)");
        assert_null(lg_lu_solve(lu, v, v));
        assert_error(c, LG_ERR_DTYPE, "lu_solve");
        assert_null(lg_slogdet(a, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "slogdet: ret_logabs is NULL");
        assert_null(lg_lu(v));
        assert_error(c, LG_ERR_SHAPE, "lu: a is f32 (3,)");
        lg_close(c);
}

/* Two dtypes are promoted, as PyTorch's products promote them. */
TEST_CASE(dtypes_of_two_operands)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 2; i++) {
                lg_tensor *a = lg_add(lg_normal(c, 0, 0.1, LG_SHAPE(2, 3, 3), .dtype = i ? LG_F64 : LG_F32),
                                      lg_eye(c, 3, 3, .dtype = i ? LG_F64 : LG_F32));
                lg_tensor *b = lg_normal(c, 0, 1, LG_SHAPE(3, 2), .dtype = i ? LG_F32 : LG_F64);
                lg_tensor *p = NULL, *lu = lg_lu(a, .permutation = &p);
                lg_tensor *x[] = {lg_solve(a, b), lg_lu_solve(lu, p, b), lg_lstsq(a, b), lg_matmul(lg_inverse(a), b)};
                for (int k = 0; k < 4; k++) {
                        assert_non_null(x[k]);
                        assert_int_equal(lg_dtype_of(x[k]), LG_F64);
                        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_matmul(a, x[k]), b)))) < 1e-5);
                }
        }
        lg_close(c);
}
