/* test_mask.c - elements replaced where a mask says so, and triangles of matrices. */
#include "golden.h"

#define ROWS(ROW)                                                                                                      \
        ROW(masked_fill, lg_masked_fill(x, lg_eq_scalar(I64(2, 3, 1), 1), -4.5), 2, 3, 4)                              \
        ROW(masked_fill_wide, lg_masked_fill(x, lg_eq_scalar(I64(3, 2, 1, 5), 1), 2), 4, 5)                            \
        ROW(tril, lg_tril(x), 4, 5)                                                                                    \
        ROW(tril_1, lg_tril(x, .diagonal = 1), 2, 3, 4)                                                                \
        ROW(triu_minus, lg_triu(x, .diagonal = -1), 4, 5)                                                              \
        ROW(triu_far, lg_triu(x, .diagonal = 9), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

/* What is masked or cut away may be NaN and leaves no trace in values or gradients. */
TEST_CASE(nan_is_masked)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, NAN, 3, 4}), LG_SHAPE(2, 2), .requires_grad = true);
        lg_tensor *y = lg_tril(x);
        assert_list(y, 0, 1, 0, 3, 4);
        lg_backward(lg_sum(lg_mul(y, lg_masked_fill(x, lg_ne(x, x), 5))));
        assert_list(lg_grad_of(x), 0, 2, 0, 6, 8);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(layouts_and_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *b = lg_gt_scalar(lg_arange(c, 0, 4, 1), 1);
        lg_tensor *turned = lg_transpose(lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(3, 4)), 0, 1);
        lg_tensor *m = lg_ones(c, LG_SHAPE(3, 2));
        assert_int_equal(lg_dtype_of(lg_masked_fill(lg_arange(c, 0, 4, 1), b, 9)), LG_I64);
        assert_list(lg_masked_fill(lg_arange(c, 0, 4, 1), b, 9), 0, 0, 1, 9, 9);
        assert_int_equal(lg_dtype_of(lg_masked_fill(lg_ones(c, LG_SHAPE(4), .dtype = LG_F16), b, 9)), LG_F16);
        assert_list(lg_tril(lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_BOOL)), 0, 1, 0, 1, 1);
        assert_int_equal(lg_dtype_of(lg_triu(lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_U8))), LG_U8);
        assert_list(lg_tril(lg_slice(turned, 0, 0, 3)), 0, 0, 0, 0, 1, 5, 0, 2, 6, 10);
        assert_shape(lg_tril(lg_zeros(c, LG_SHAPE(0, 3))), LG_SHAPE(0, 3));
        assert_list(lg_triu(m, .diagonal = INT64_MIN), 0, 1, 1, 1, 1, 1, 1);
        assert_list(lg_tril(m, .diagonal = INT64_MIN), 0, 0, 0, 0, 0, 0, 0);
        assert_list(lg_masked_fill(lg_scalar(c, 3), lg_ones(c, LG_SHAPE(2), .dtype = LG_BOOL), 1), 0, 1, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_masks)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2)), *one = LIST64(0);
        assert_fails(c, lg_masked_fill(x, x, 1), LG_ERR_DTYPE, "masked_fill: mask is f32 (3, 2)");
        assert_fails(c, lg_masked_fill(x, NULL, 1), LG_ERR_ARGUMENT, "masked_fill: mask is NULL");
        assert_fails(c, lg_masked_fill(x, lg_ones(c, LG_SHAPE(4), .dtype = LG_BOOL), 1), LG_ERR_SHAPE,
                     "masked_fill: the shapes");
        assert_fails(c, lg_tril(one), LG_ERR_SHAPE, "tril: x is i64 (1,)");
        assert_fails(c, lg_triu(lg_scalar(c, 1)), LG_ERR_SHAPE, "triu: x is f32 ()");
        lg_close(c);
}
