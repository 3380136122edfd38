/* test_eigh.c - eigenvalues of symmetric matrices: PyTorch's numbers, backward errors, close eigenvalues, NaN,
 * refusals. */
#include "matrices.h"

static lg_tensor *symmetric(lg_tensor *x)
{
        lg_tensor *a = lg_exp(lg_mul_scalar(x, 0.5));
        return lg_add(a, turned(a));
}

/* The eigenvalues and the squares of the vectors, flattened. */
static lg_tensor *parts(lg_tensor *a)
{
        lg_tensor *w, *v;
        return lg_eigh(a, &w, &v) ? lg_cat(LG_LIST(lg_flatten(w), lg_flatten(lg_square(v))), 0) : NULL;
}

#define ROWS(ROW)                                                                                                      \
        ROW(eigh_square, parts(symmetric(x)), 4, 4)                                                                    \
        ROW(eigh_batch, parts(symmetric(x)), 2, 3, 3)                                                                  \
        ROW(eigvalsh_square, lg_eigvalsh(symmetric(x)), 4, 4)                                                          \
        ROW(eigvalsh_batch, lg_eigvalsh(symmetric(x)), 2, 3, 3)
GOLDEN_TEST(as_pytorch_computes_it, "factorizations.txt", golden_input, ROWS);

static void check_symmetric(lg_tensor *a)
{
        lg_tensor *w, *v;
        assert_true(lg_eigh(a, &w, &v));
        assert_true(backward_error(scaled_product(v, w, turned(v)), a) <= 10);
        assert_true(turn_error(v) <= 10);
        assert_near(lg_item(lg_amin(lg_diff(w, .prepend = lg_slice(w, -1, 0, 1)))), 0, 0);
        assert_alike(lg_eigvalsh(a), w);
}

static void check(lg_ctx *c, lg_tensor *a)
{
        const lg_shape s = lg_shape_of(a);
        (void)c;
        if (s.size[1] == s.size[2])
                check_symmetric(lg_add(lg_tril(a), turned(lg_tril(a, .diagonal = -1))));
}

TEST_CASE(backward_errors)
{
        each_matrices(check);
}

TEST_CASE(large)
{
        lg_ctx *c = open_ctx();
        check(c, matrices(c, RANDOM, 150, 150, LG_F32, 1));
        check(c, matrices(c, EQUAL, 130, 130, LG_F64, 1));
        lg_close(c);
}

/* Wilkinson's matrix of size 21, whose greatest eigenvalues agree to 14 digits. */
TEST_CASE(close_eigenvalues)
{
        lg_ctx *c = open_ctx();
        double v[21 * 21] = {0};
        for (int i = 0; i < 21; i++)
                for (int j = 0; j < 21; j++)
                        v[21 * i + j] = i == j ? abs(i - 10) : abs(i - j) == 1;
        for (int d = 0; d < 2; d++) {
                lg_tensor *a = lg_cast(lg_from(c, v, LG_SHAPE(1, 21, 21), .dtype = LG_F64), d ? LG_F32 : LG_F64);
                check_symmetric(a);
                lg_tensor *w = lg_flatten(lg_eigvalsh(a));
                const double top = lg_item(lg_select(w, 0, 20)), next = lg_item(lg_select(w, 0, 19));
                assert_near(top, 10.746194182903393, 21 * 10.7 * epsilon(a));
                assert_near(next, 10.746194182903322, 21 * 10.7 * epsilon(a));
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(reads_one_triangle)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = matrices(c, RANDOM, 9, 9, LG_F64, 1), *low = lg_tril(a), *up = lg_triu(a);
        assert_alike(lg_eigvalsh(a), lg_eigvalsh(low));
        assert_alike(lg_eigvalsh(a, .upper = true), lg_eigvalsh(up, .upper = true));
        assert_alike(lg_eigvalsh(turned(a)), lg_eigvalsh(a, .upper = true));
        assert_ok(c);
        lg_close(c);
}

/* The gradient of eigenvalues alone does not divide by their distance. */
TEST_CASE(equal_eigenvalues)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_set_requires_grad(lg_eye(c, 4, 4, .dtype = LG_F64), true);
        lg_backward(lg_sum(lg_exp(lg_eigvalsh(a))));
        assert_near(lg_item(lg_norm(lg_sub(lg_grad_of(a), lg_mul_scalar(lg_eye(c, 4, 4, .dtype = LG_F64), exp(1))))), 0,
                    1e-14);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(empty)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w, *v;
        assert_true(lg_eigh(lg_zeros(c, LG_SHAPE(2, 0, 0)), &w, &v));
        assert_shape(w, LG_SHAPE(2, 0));
        assert_shape(v, LG_SHAPE(2, 0, 0));
        assert_shape(lg_eigvalsh(lg_zeros(c, LG_SHAPE(0, 3, 3))), LG_SHAPE(0, 3));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(not_a_number)
{
        lg_ctx *c = open_ctx();
        const double bad[] = {NAN, INFINITY};
        for (int i = 0; i < 2; i++) {
                lg_tensor *w, *v, *a = matrices(c, RANDOM, 6, 6, LG_F32, 1);
                lg_copy_(lg_select(lg_select(lg_select(a, 0, 1), 0, 4), 0, 2), lg_scalar(c, bad[i]));
                assert_true(lg_eigh(a, &w, &v));
                assert_true(all_nan(lg_select(w, 0, 1)) && lg_item(lg_sum(lg_isnan(w))) == 6);
                assert_true(all_nan(lg_select(v, 0, 1)) && lg_item(lg_sum(lg_isnan(v))) == 36);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(refuses)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w, *v;
        assert_refuses(lg_eigh(x, &w, &v));
        assert_refuses(lg_eigvalsh(x, .upper = true));
        assert_fails(c, lg_eigvalsh(lg_ones(c, LG_SHAPE(2, 3))), LG_ERR_SHAPE, "f32 (2, 3)");
        lg_close(c);
}

static lg_tensor *step(lg_ctx *c, void *user)
{
        const lg_scope s = lg_scope_begin(c);
        lg_tensor *w, *v, *y = NULL;
        if (s.id && lg_eigh(user, &w, &v))
                y = lg_escape(v);
        lg_scope_end(c, s);
        return y;
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_matrices(step);
}
