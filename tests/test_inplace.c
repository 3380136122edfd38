/* test_inplace.c - changes in place: what they do, where they are refused, and that a stale saved value is told. */
#include "test.h"

TEST_CASE(results)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
        for (int d = 0; d < 7; d++) {
                lg_tensor *x = lg_full(c, LG_SHAPE(2, 2), 6, .dtype = dtypes[d]);
                lg_tensor *y = lg_cast(lg_from(c, ((float[]){1, 2}), LG_SHAPE(2)), dtypes[d]);
                assert_true(lg_add_(x, y));
                assert_list(x, 0, 7, 8, 7, 8);
                assert_true(lg_sub_(x, y));
                assert_true(lg_mul_(x, y));
                assert_list(x, 0, 6, 12, 6, 12);
                assert_true(lg_copy_(x, lg_scalar(c, 3)));
                assert_list(x, 0, 3, 3, 3, 3);
                assert_true(lg_fill_(lg_select(x, 1, 0), 2));
                assert_list(x, 0, 2, 3, 2, 3);
        }
        lg_tensor *x = lg_full(c, LG_SHAPE(2), 6);
        assert_true(lg_div_(x, lg_scalar(c, 4, .dtype = LG_F64)));
        assert_list(x, 0, 1.5, 1.5);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(of_numbers)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, -2, 3.5}), LG_SHAPE(3)), *i = lg_arange(c, 5, 8, 1);
        assert_true(lg_add_scalar_(x, 1) && lg_mul_scalar_(x, 2) && lg_sub_scalar_(x, 1) && lg_div_scalar_(x, 2));
        assert_list(x, 0, 1.5, -1.5, 4);
        assert_true(lg_fmod_scalar_(lg_slice(x, 0, 0, 2), 1) && lg_remainder_scalar_(x, 1.25));
        assert_list(x, 0, 0.5, 0.75, 0.25);
        assert_true(lg_pow_scalar_(x, 2) && lg_clamp_(x, 0.1, 0.25));
        assert_list(x, 1e-8, 0.25, 0.25, 0.1f);
        assert_true(lg_maximum_scalar_(x, 0.2) && lg_minimum_scalar_(x, 0.21) && lg_floor_divide_scalar_(x, 0.1));
        assert_list(x, 0, 2, 2, 2);
        assert_true(lg_floor_divide_scalar_(i, 2) && lg_mul_scalar_(i, 3) && lg_clamp_(i, 7, 1e30));
        assert_list(i, 0, 7, 9, 9);
        assert_false(lg_div_scalar_(i, 2));
        assert_error(c, LG_ERR_DTYPE, "lg_div_scalar_: x is");
        assert_false(lg_add_scalar_(lg_cast(i, LG_U8), -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_add_scalar_");
        assert_false(lg_mul_scalar_(lg_square(lg_ones(c, LG_SHAPE(2), .requires_grad = true)), 2));
        assert_error(c, LG_ERR_STATE, "lg_mul_scalar_: x is a result of square");
        lg_close(c);
}

TEST_CASE(through_views_and_overlaps)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 0, 5, 1, .dtype = LG_F32);
        assert_true(lg_copy_(lg_slice(x, 0, 1, 5), lg_slice(x, 0, 0, 4)));
        assert_list(x, 0, 0, 0, 1, 2, 3);
        lg_tensor *m = lg_reshape(lg_arange(c, 0, 4, 1, .dtype = LG_F32), LG_SHAPE(2, 2));
        assert_true(lg_add_(m, lg_transpose(m, 0, 1)));
        assert_list(m, 0, 0, 3, 3, 6);
        assert_true(lg_mul_(lg_transpose(m, 0, 1), lg_from(c, ((float[]){1, 10}), LG_SHAPE(2))));
        assert_list(m, 0, 0, 3, 30, 60);
        lg_close(c);
}

TEST_CASE(refusals)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_ones(c, LG_SHAPE(2), .requires_grad = true), *h = lg_square(w), *x = lg_ones(c, LG_SHAPE(2));
        assert_false(lg_add_(w, x));
        assert_error(c, LG_ERR_STATE, "lg_no_grad");
        assert_false(lg_fill_(h, 0));
        assert_error(c, LG_ERR_STATE, "square");
        assert_false(lg_write(w, (float[]){1, 2}, LG_F32, 8));
        assert_error(c, LG_ERR_STATE, "lg_write");
        lg_no_grad(c)
        {
                assert_true(lg_add_(w, x));
                assert_false(lg_add_(h, x));
        }
        assert_error(c, LG_ERR_STATE, "square");
        assert_list(w, 0, 2, 2);
        assert_true(lg_requires_grad(w) && lg_is_leaf(w));
        assert_false(lg_add_(x, lg_ones(c, LG_SHAPE(3))));
        assert_error(c, LG_ERR_SHAPE, "lg_add_");
        assert_false(lg_add_(x, lg_ones(c, LG_SHAPE(2, 2)))); /* x would have to grow */
        assert_error(c, LG_ERR_SHAPE, "lg_add_");
        lg_tensor *i = lg_ones(c, LG_SHAPE(2), .dtype = LG_I64);
        assert_false(lg_div_(i, i));
        assert_error(c, LG_ERR_DTYPE, "lg_div_");
        assert_false(lg_mul_(x, lg_ones(c, LG_SHAPE(2), .device = lg_parse_device(c, "shadow:1"))));
        assert_error(c, LG_ERR_DEVICE, "lg_mul_");
        assert_list(x, 0, 1, 1);
        lg_close(c);
}

/* x has no place in the graph, so a y of the graph would lose its gradient unnoticed. */
TEST_CASE(operands_that_need_a_gradient)
{
        lg_ctx *c = open_ctx();
        bool (*const all[])(lg_tensor *, lg_tensor *) = {lg_copy_, lg_add_, lg_sub_, lg_mul_, lg_div_};
        const char *const names[] = {"lg_copy_", "lg_add_", "lg_sub_", "lg_mul_", "lg_div_"};
        lg_tensor *w = lg_full(c, LG_SHAPE(2), 2, .requires_grad = true), *h = lg_square(w);
        for (int i = 0; i < 5; i++) {
                lg_tensor *x = lg_ones(c, LG_SHAPE(2));
                const double expected[] = {4, 5, -3, 4, 0.25};
                assert_false(all[i](x, w));
                assert_error(c, LG_ERR_STATE, names[i]);
                assert_false(all[i](x, h));
                assert_error(c, LG_ERR_STATE, "lg_detach(y)");
                assert_true(lg_set_grad_mode(c, true)); /* as it was */
                assert_list(x, 0, 1, 1);
                lg_no_grad(c) assert_true(all[i](x, w));
                assert_true(lg_fill_(x, 1) && all[i](x, lg_detach(h)));
                assert_list(x, 0, expected[i], expected[i]);
                assert_false(lg_requires_grad(x));
        }
        assert_true(lg_backward(lg_sum(h)));
        assert_list(lg_grad_of(w), 0, 4, 4);
        lg_close(c);
}

TEST_CASE(a_saved_value_that_changed_is_an_error)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2), .requires_grad = true), *k = lg_full(c, LG_SHAPE(2), 3);
        lg_tensor *y = lg_sum(lg_mul(x, k));
        lg_fill_(lg_select(k, 0, 0), 4); /* through a view, too */
        assert_false(lg_backward(y));
        assert_non_null(strstr(lg_error(c), "mul"));
        assert_error(c, LG_ERR_STATE, "changed in place");
        y = lg_sum(lg_add(x, k)); /* add saves nothing */
        lg_fill_(k, 5);
        assert_true(lg_backward(y));
        /* a change before the op is no harm; nor one of a copy */
        lg_tensor *copy = lg_copy(k, LG_NO_DEVICE);
        y = lg_sum(lg_mul(x, k));
        lg_fill_(copy, 9);
        lg_clear_grad(x);
        assert_true(lg_backward(y));
        assert_list(lg_grad_of(x), 0, 5, 5);
        /* a failing change changes no version */
        y = lg_sum(lg_mul(x, k));
        assert_false(lg_copy_(k, lg_ones(c, LG_SHAPE(7))));
        lg_clear_error(c);
        assert_true(lg_backward(y));
        /* an output that was saved; it is reached through detach, which shares the storage */
        lg_tensor *e = lg_exp(x);
        lg_fill_(lg_detach(e), 0);
        assert_false(lg_backward(lg_sum(e)));
        assert_error(c, LG_ERR_STATE, "exp");
        lg_close(c);
}

/* A result that is no view is nobody else's, where there was nothing to do, too. */
TEST_CASE(results_are_their_own)
{
        lg_ctx *c = open_ctx();
        test_device(c);
        lg_tensor *x = lg_full(c, LG_SHAPE(3, 1), 5), *one = lg_full(c, LG_SHAPE_0D, 5);
        lg_tensor *const results[] = {lg_prod(x, .dims = LG_DIMS(1)),
                                      lg_cumprod(x, 1),
                                      lg_repeat(x, LG_SHAPE(1, 1)),
                                      lg_repeat(x, LG_SHAPE(2, 1, 1)),
                                      lg_repeat(x, LG_SHAPE(2, 3, 1)),
                                      lg_prod(one),
                                      lg_cumprod(one, 0)};
        for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
                assert_true(lg_is_contiguous(results[i]) && results[i] != x && results[i] != one);
                assert_non_null(lg_fill_(results[i], 0));
        }
        assert_list(x, 0, 5, 5, 5);
        assert_list(one, 0, 5);
        assert_ok(c);
        lg_close(c);
}
