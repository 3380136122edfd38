/* test_svd.c - singular values, norms, ranks and condition numbers: PyTorch's numbers, backward errors, NaN, refusals.
 */
#include "matrices.h"

#define APART lg_exp(lg_mul_scalar(x, 0.5))

/* u^2, s, vt^2 and u vt, flattened: without the vectors' signs. */
static lg_tensor *parts(lg_tensor *a)
{
        lg_tensor *u, *s, *vt;
        if (!lg_svd(a, &u, &s, &vt))
                return NULL;
        return lg_cat(LG_LIST(lg_flatten(lg_square(u)), lg_flatten(s), lg_flatten(lg_square(vt)),
                              lg_flatten(lg_matmul(u, vt))),
                      0);
}

#define NORM(...) lg_matrix_norm(APART, __VA_ARGS__)
#define ROWS(ROW)                                                                                                      \
        ROW(svd_square, parts(APART), 4, 4)                                                                            \
        ROW(svd_tall, parts(APART), 5, 3)                                                                              \
        ROW(svd_wide, parts(APART), 3, 5)                                                                              \
        ROW(svd_batch, parts(APART), 2, 1, 4, 3)                                                                       \
        ROW(svdvals_square, lg_svdvals(APART), 4, 4)                                                                   \
        ROW(svdvals_tall, lg_svdvals(APART), 5, 3)                                                                     \
        ROW(svdvals_wide, lg_svdvals(APART), 3, 5)                                                                     \
        ROW(svdvals_batch, lg_svdvals(APART), 2, 1, 4, 3)                                                              \
        ROW(norm_fro, lg_matrix_norm(APART), 2, 1, 4, 3)                                                               \
        ROW(norm_nuc, NORM(.nuclear = true), 2, 1, 4, 3)                                                               \
        ROW(norm_1, NORM(.ord = 1), 2, 1, 4, 3)                                                                        \
        ROW(norm_2, NORM(.ord = 2), 2, 1, 4, 3)                                                                        \
        ROW(norm_inf, NORM(.ord = LG_INFINITY), 2, 1, 4, 3)                                                            \
        ROW(norm__1, NORM(.ord = -1), 2, 1, 4, 3)                                                                      \
        ROW(norm__2, NORM(.ord = -2), 2, 1, 4, 3)                                                                      \
        ROW(norm__inf, NORM(.ord = -LG_INFINITY), 2, 1, 4, 3)                                                          \
        ROW(cond_1, lg_cond(APART, .ord = 1), 2, 3, 3)                                                                 \
        ROW(cond_2, lg_cond(APART), 2, 3, 3)                                                                           \
        ROW(cond_inf, lg_cond(APART, .ord = LG_INFINITY), 2, 3, 3)                                                     \
        ROW(cond__1, lg_cond(APART, .ord = -1), 2, 3, 3)                                                               \
        ROW(cond__2, lg_cond(APART, .ord = -2), 2, 3, 3)                                                               \
        ROW(cond__inf, lg_cond(APART, .ord = -LG_INFINITY), 2, 3, 3)
GOLDEN_TEST(as_pytorch_computes_it, "factorizations.txt", golden_input, ROWS);

static void check(lg_ctx *c, lg_tensor *a)
{
        const lg_shape shape = lg_shape_of(a);
        const int64_t m = shape.size[1], n = shape.size[2], k = m < n ? m : n;
        (void)c;
        for (int full = 0; full < 2; full++) {
                lg_tensor *u, *s, *vt;
                assert_true(lg_svd(a, &u, &s, &vt, .full = full));
                assert_shape(u, LG_SHAPE(2, m, full ? m : k));
                assert_shape(vt, LG_SHAPE(2, full ? n : k, n));
                assert_true(turn_error(u) <= 10);
                assert_true(turn_error(turned(vt)) <= 10);
                u = lg_slice(u, -1, 0, k);
                vt = lg_slice(vt, -2, 0, k);
                assert_true(backward_error(scaled_product(u, s, vt), a) <= 10);
                assert_true(lg_item(lg_amin(s)) >= 0);
                assert_near(lg_item(lg_amax(lg_diff(s, .prepend = lg_slice(s, -1, 0, 1)))), 0, 0);
                assert_alike(lg_svdvals(a), s);
        }
}

TEST_CASE(backward_errors)
{
        each_matrices(check);
}

TEST_CASE(large)
{
        lg_ctx *c = open_ctx();
        check(c, matrices(c, RANDOM, 150, 120, LG_F32, 1));
        check(c, matrices(c, RANDOM, 90, 140, LG_F64, 1));
        lg_close(c);
}

TEST_CASE(empty)
{
        lg_ctx *c = open_ctx();
        lg_tensor *u, *s, *vt;
        assert_true(lg_svd(lg_zeros(c, LG_SHAPE(2, 0, 3)), &u, &s, &vt));
        assert_shape(u, LG_SHAPE(2, 0, 0));
        assert_shape(s, LG_SHAPE(2, 0));
        assert_shape(vt, LG_SHAPE(2, 0, 3));
        assert_true(lg_svd(lg_zeros(c, LG_SHAPE(0, 2)), &u, &s, &vt, .full = true));
        assert_list(vt, 0, 1, 0, 0, 1);
        assert_true(lg_svd(lg_zeros(c, LG_SHAPE(2, 2, 0)), &u, &s, &vt, .full = true));
        assert_list(u, 0, 1, 0, 0, 1, 1, 0, 0, 1);
        assert_list(lg_matrix_norm(lg_zeros(c, LG_SHAPE(2, 0, 3))), 0, 0, 0);
        assert_list(lg_matrix_norm(lg_zeros(c, LG_SHAPE(3, 0)), .nuclear = true), 0, 0);
        assert_list(lg_matrix_rank(lg_zeros(c, LG_SHAPE(2, 0, 3))), 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(not_a_number)
{
        lg_ctx *c = open_ctx();
        const double bad[] = {NAN, INFINITY};
        for (int i = 0; i < 2; i++) {
                lg_tensor *u, *s, *vt, *a = matrices(c, RANDOM, 6, 5, LG_F64, 1);
                lg_copy_(lg_select(lg_select(lg_select(a, 0, 1), 0, 4), 0, 2), lg_scalar(c, bad[i], .dtype = LG_F64));
                assert_true(lg_svd(a, &u, &s, &vt));
                assert_true(all_nan(lg_select(u, 0, 1)) && lg_item(lg_sum(lg_isnan(u))) == 30);
                assert_true(all_nan(lg_select(s, 0, 1)) && lg_item(lg_sum(lg_isnan(s))) == 5);
                assert_true(all_nan(lg_select(vt, 0, 1)) && lg_item(lg_sum(lg_isnan(vt))) == 25);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(ranks)
{
        lg_ctx *c = open_ctx();
        assert_list(lg_matrix_rank(matrices(c, EQUAL, 5, 7, LG_F32, 1)), 0, 1, 1);
        assert_list(lg_matrix_rank(matrices(c, RANDOM, 5, 7, LG_F64, 1)), 0, 5, 5);
        assert_list(lg_matrix_rank(matrices(c, ZERO, 4, 4, LG_F64, 1)), 0, 0, 0);
        assert_list(lg_matrix_rank(matrices(c, IDENTITY, 4, 4, LG_F64, 1), .atol = 2), 0, 0, 0);
        assert_list(lg_matrix_rank(lg_neg(matrices(c, IDENTITY, 4, 4, LG_F64, 1)), .hermitian = true), 0, 4, 4);
        assert_list(lg_matrix_rank(matrices(c, HILBERT, 9, 9, LG_F64, 1), .rtol = 1e-3), 0, 4, 4);
        assert_int_equal(lg_dtype_of(lg_matrix_rank(matrices(c, EQUAL, 2, 2, LG_F32, 1))), LG_I64);
        assert_fails(c, lg_matrix_rank(lg_ones(c, LG_SHAPE(2, 2)), .rtol = -1), LG_ERR_ARGUMENT, "rtol -1");
        lg_close(c);
}

TEST_CASE(singular)
{
        lg_ctx *c = open_ctx();
        assert_list(lg_cond(lg_from(c, ((double[]){1, 0, 0, 0}), LG_SHAPE(2, 2), .dtype = LG_F64)), 0, INFINITY);
        assert_shape(lg_matrix_norm(lg_ones(c, LG_SHAPE(2, 3, 4)), .ord = 2, .keep_dim = true), LG_SHAPE(2, 1, 1));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(refuses)
{
        lg_ctx *c = open_ctx();
        lg_tensor *u, *s, *vt, *a = lg_ones(c, LG_SHAPE(2, 3)), *none = lg_ones(c, LG_SHAPE(2, 0));
        assert_refuses(lg_svd(x, &u, &s, &vt));
        assert_refuses(lg_svdvals(x));
        assert_refuses(lg_matrix_norm(x));
        assert_refuses(lg_matrix_rank(x));
        assert_refuses(lg_cond(x));
        assert_fails(c, lg_matrix_norm(a, .ord = 3), LG_ERR_ARGUMENT, "ord is 3");
        assert_fails(c, lg_matrix_norm(a, .ord = NAN), LG_ERR_ARGUMENT, "ord is nan");
        assert_fails(c, lg_matrix_norm(a, .ord = 2, .nuclear = true), LG_ERR_ARGUMENT, "nuclear");
        assert_fails(c, lg_matrix_norm(none, .ord = -2), LG_ERR_SHAPE, "no least");
        assert_fails(c, lg_cond(none), LG_ERR_SHAPE, "no element");
        assert_fails(c, lg_cond(a, .ord = 1), LG_ERR_SHAPE, "f32 (2, 3)");
        assert_fails(c, lg_cond(lg_ones(c, LG_SHAPE(2, 2)), .ord = 5), LG_ERR_ARGUMENT, "ord is 5");
        assert_fails(c, lg_matrix_rank(a, .hermitian = true), LG_ERR_SHAPE, "f32 (2, 3)");
        lg_close(c);
}

static lg_tensor *step(lg_ctx *c, void *user)
{
        const lg_scope s = lg_scope_begin(c);
        lg_tensor *u, *vt, *y = NULL;
        if (s.id && lg_svd(user, &u, NULL, &vt))
                y = lg_escape(vt);
        lg_scope_end(c, s);
        return y;
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_matrices(step);
}
