/* test_layout.c - elementwise results lie as their inputs do, and nobody notices. */
#include "test.h"

/* (2, 3, 4, 5) whose elements lie as (2, 4, 5, 3): 0 ... 119 in row-major order of the shape. */
static lg_tensor *channels_last(lg_ctx *c, lg_tensor **ret_plain)
{
        *ret_plain = lg_reshape(lg_arange(c, 0, 120, 1, .dtype = LG_F64), LG_SHAPE(2, 3, 4, 5));
        return lg_permute(lg_contiguous(lg_permute(*ret_plain, LG_DIMS(0, 2, 3, 1))), LG_DIMS(0, 3, 1, 2));
}

static void assert_laid(const lg_tensor *t, int64_t a, int64_t b, int64_t x, int64_t y)
{
        const int64_t wanted[] = {a, b, x, y};
        for (int i = 0; i < 4; i++)
                assert_int_equal(lg_stride_of(t, i), wanted[i]);
}

static void same_values(lg_tensor *a, lg_tensor *b)
{
        double v[120];
        int64_t n = read_all(b, v, 120);
        assert_values(a, v, n, 0);
}

static void results_lie_as_their_inputs(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *plain, *x = channels_last(c, &plain);
        assert_laid(x, 60, 1, 15, 3);
        assert_false(lg_is_contiguous(x));
        lg_tensor *y = lg_mul_scalar(x, 2);
        assert_laid(y, 60, 1, 15, 3);
        same_values(y, lg_mul_scalar(plain, 2));
        assert_laid(lg_add(x, plain), 60, 1, 15, 3); /* the first input decides */
        assert_laid(lg_add(plain, x), 60, 20, 5, 1);
        same_values(lg_sub(plain, x), lg_zeros(c, LG_SHAPE(2, 3, 4, 5), .dtype = LG_F64));
        lg_tensor *bias = lg_reshape(lg_arange(c, 0, 3, 1, .dtype = LG_F64), LG_SHAPE(3, 1, 1));
        assert_laid(lg_add(bias, x), 60, 1, 15, 3);
        same_values(lg_add(bias, x), lg_add(bias, plain));
        assert_laid(lg_where(lg_gt_scalar(plain, 50), x, bias), 60, 20, 5, 1);
        same_values(lg_where(lg_gt_scalar(x, 50), x, bias), lg_where(lg_gt_scalar(plain, 50), plain, bias));
        assert_true(lg_is_contiguous(lg_contiguous(y)));
        same_values(lg_reshape(y, LG_SHAPE(6, 20)), lg_reshape(lg_mul_scalar(plain, 2), LG_SHAPE(6, 20)));
        assert_ok(c);
        lg_close(c);
}

/* Gaps, overlaps and broadcast inputs give row-major results. */
static void only_dense_layouts_are_kept(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *plain, *x = channels_last(c, &plain);
        assert_true(lg_is_contiguous(lg_neg(lg_slice(x, 1, 0, 2))));
        assert_true(lg_is_contiguous(lg_neg(lg_expand(lg_slice(x, 0, 0, 1), LG_SHAPE(2, 3, 4, 5)))));
        same_values(lg_neg(lg_slice(x, 1, 0, 2)), lg_neg(lg_slice(plain, 1, 0, 2)));
        assert_true(lg_is_contiguous(lg_neg(lg_transpose(lg_ones(c, LG_SHAPE(0, 3)), 0, 1))));
        lg_tensor *one = lg_transpose(lg_ones(c, LG_SHAPE(1, 3)), 0, 1);
        assert_true(lg_is_contiguous(lg_neg(one)));
        assert_ok(c);
        lg_close(c);
}

static void gradients_do_not_see_it(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        for (int create_graph = 0; create_graph < 2; create_graph++) {
                lg_tensor *plain, *x = channels_last(c, &plain);
                x = lg_requires_grad(lg_detach(x), true);
                plain = lg_requires_grad(lg_detach(plain), true);
                lg_tensor *a = lg_mul_scalar(x, 0.01), *b = lg_mul_scalar(plain, 0.01);
                lg_backward(lg_sum(lg_mul(lg_tanh(a), lg_add(a, plain))), .create_graph = create_graph);
                lg_tensor *gx = lg_mul_scalar(lg_grad_of(x), 1);
                lg_clear_grad(plain);
                lg_clear_grad(x);
                lg_backward(lg_sum(lg_mul(lg_tanh(b), lg_add(b, x))), .create_graph = create_graph);
                double v[120];
                read_all(lg_grad_of(plain), v, 120);
                assert_values(gx, v, 120, 1e-15);
        }
        assert_ok(c);
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(results_lie_as_their_inputs),
                cmocka_unit_test(only_dense_layouts_are_kept),
                cmocka_unit_test(gradients_do_not_see_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
