/* test_matrix_exp.c - exponentials and powers of matrices: PyTorch's numbers, known values, large norms, refusals. */
#include "matrices.h"

#define APART lg_exp(lg_mul_scalar(x, 0.5))

/* Two matrices, one 0.3 times as large and one 4 times. */
static lg_tensor *small_and_large(lg_tensor *x)
{
        const double by[] = {0.3, 4};
        return lg_mul(x, lg_cast(lg_from(lg_ctx_of(x), by, LG_SHAPE(2, 1, 1), .dtype = LG_F64), lg_dtype_of(x)));
}

#define ROWS(ROW)                                                                                                      \
        ROW(exp_small, lg_matrix_exp(lg_mul_scalar(x, 0.1)), 4, 4)                                                     \
        ROW(exp_large, lg_matrix_exp(small_and_large(x)), 2, 3, 3)                                                     \
        ROW(power_5, lg_matrix_power(lg_mul_scalar(x, 0.5), 5), 4, 4)                                                  \
        ROW(power__2, lg_matrix_power(APART, -2), 4, 4)
GOLDEN_TEST(as_pytorch_computes_it, "factorizations.txt", golden_input, ROWS);

/* A turn by t: the exponential of (0, -t; t, 0). */
TEST_CASE(turns)
{
        lg_ctx *c = open_ctx();
        for (double t = 0; t < 200; t = 3 * t + 0.1) {
                lg_tensor *a = lg_from(c, ((double[]){0, -t, t, 0}), LG_SHAPE(2, 2), .dtype = LG_F64);
                assert_list(lg_matrix_exp(a), 1e-13 * (1 + t), cos(t), -sin(t), sin(t), cos(t));
                assert_list(lg_matrix_exp(lg_cast(a, LG_F32)), 1e-6 * (1 + t), cos(t), -sin(t), sin(t), cos(t));
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(not_finite)
{
        lg_ctx *c = open_ctx();
        assert_true(all_nan(lg_matrix_exp(lg_full(c, LG_SHAPE(2, 2), NAN))));
        assert_near(lg_item(lg_sum(lg_isfinite(lg_matrix_exp(lg_full(c, LG_SHAPE(2, 2), INFINITY))))), 0, 0);
        assert_true(lg_item(lg_matrix_exp(lg_full(c, LG_SHAPE(1, 1), 1e30))) > 1e38);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(powers)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_from(c, ((double[]){1, 1, 0, 1}), LG_SHAPE(2, 2), .dtype = LG_F64);
        assert_list(lg_matrix_power(a, 0), 0, 1, 0, 0, 1);
        assert_list(lg_matrix_power(a, 1), 0, 1, 1, 0, 1);
        assert_list(lg_matrix_power(a, 10), 0, 1, 10, 0, 1);
        assert_list(lg_matrix_power(a, -3), 0, 1, -3, 0, 1);
        assert_list(lg_matrix_power(lg_eye(c, 1, 1), INT64_MIN), 0, 1);
        lg_tensor *once = lg_matrix_power(a, 1);
        lg_fill_(once, 7);
        assert_list(a, 0, 1, 1, 0, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(empty)
{
        lg_ctx *c = open_ctx();
        assert_shape(lg_matrix_exp(lg_zeros(c, LG_SHAPE(2, 0, 0))), LG_SHAPE(2, 0, 0));
        assert_shape(lg_matrix_exp(lg_zeros(c, LG_SHAPE(0, 3, 3))), LG_SHAPE(0, 3, 3));
        assert_shape(lg_matrix_power(lg_zeros(c, LG_SHAPE(0, 3, 3)), 3), LG_SHAPE(0, 3, 3));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(refuses)
{
        lg_ctx *c = open_ctx();
        assert_refuses(lg_matrix_exp(x));
        assert_refuses(lg_matrix_power(x, 2));
        assert_fails(c, lg_matrix_exp(lg_ones(c, LG_SHAPE(2, 3))), LG_ERR_SHAPE, "f32 (2, 3)");
        lg_close(c);
}

static lg_tensor *step(lg_ctx *c, void *user)
{
        const lg_scope s = lg_scope_begin(c);
        lg_tensor *y = s.id ? lg_escape(lg_matrix_exp(user)) : NULL;
        lg_scope_end(c, s);
        return y;
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_matrices(step);
}
