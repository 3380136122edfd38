/* test_flip.c - dimensions read backwards, which is a view, or rolled round. */
#include "golden.h"

#define ROWS(ROW)                                                                                                      \
        ROW(flip, lg_mul(lg_flip(x, LG_DIMS(0, 2)), x), 2, 3, 4)                                                       \
        ROW(roll, lg_roll(x, 2, 1), 2, 3, 4)                                                                           \
        ROW(roll_back, lg_roll(x, -7, -1), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

TEST_CASE(flip_is_a_view)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 6, 1, .dtype = LG_F32), LG_SHAPE(2, 3)), *f = lg_flip(x, LG_ALL_DIMS);
        assert_int_equal(lg_stride_of(f, 0), -3);
        assert_int_equal(lg_stride_of(f, 1), -1);
        assert_false(lg_is_contiguous(f));
        assert_list(f, 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_contiguous(f), 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_reshape(f, LG_SHAPE(3, 2)), 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_flatten(lg_flip(x, LG_DIMS(1)), .end_dim = 1), 0, 2, 1, 0, 5, 4, 3);
        assert_list(lg_slice(f, 1, 1, LG_MAX), 0, 4, 3, 1, 0);
        assert_list(lg_sum(f, .dims = LG_DIMS(0)), 0, 7, 5, 3);
        assert_list(lg_cumsum(f, 1), 0, 5, 9, 12, 2, 3, 3);
        assert_list(lg_amax(f, .dims = LG_DIMS(1)), 0, 5, 2);
        assert_list(lg_matmul(f, lg_transpose(f, 0, 1)), 0, 50, 14, 14, 5);
        assert_list(lg_add(f, x), 0, 5, 5, 5, 5, 5, 5);
        assert_list(lg_cast(f, LG_I32), 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_cat(LG_LIST(f, f), 0), 0, 5, 4, 3, 2, 1, 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_softmax(lg_mul_scalar(lg_flip(lg_zeros(c, LG_SHAPE(2)), LG_DIMS(0)), 2), 0), 0, 0.5, 0.5);
        assert_true(lg_write(f, (float[]){9, 8, 7, 6, 5, 4}, LG_F32, 6 * sizeof(float)));
        assert_list(x, 0, 4, 5, 6, 7, 8, 9);
        assert_true(lg_add_(f, lg_ones(c, LG_SHAPE(3))));
        assert_list(x, 0, 5, 6, 7, 8, 9, 10);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(layouts_and_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *b = lg_gt_scalar(lg_arange(c, 0, 4, 1), 1);
        lg_tensor *turned = lg_transpose(lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(3, 4)), 0, 1);
        lg_tensor *hollow = lg_zeros(c, LG_SHAPE(0, 2));
        assert_list(lg_roll(b, 1, 0), 0, 1, 0, 0, 1);
        assert_list(lg_roll(turned, 1, 0), 0, 3, 7, 11, 0, 4, 8, 1, 5, 9, 2, 6, 10);
        assert_shape(lg_flip(hollow, LG_DIMS(0, 1)), LG_SHAPE(0, 2));
        assert_list(lg_flip(lg_scalar(c, 3), LG_ALL_DIMS), 0, 3);
        assert_shape(lg_roll(hollow, 3, 0), LG_SHAPE(0, 2));
        assert_list(lg_roll(lg_arange(c, 0, 3, 1), INT64_MIN, 0), 0, 2, 0, 1); /* -2^63 mod 3 is 1 */
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(a_copy_even_by_nothing)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(5));
        lg_fill_(lg_roll(x, 0, 0), 1);
        assert_list(x, 0, 0, 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_dimensions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2));
        assert_fails(c, lg_flip(x, LG_DIMS(0, -2)), LG_ERR_ARGUMENT, "flip: dimension 0 is given twice");
        assert_fails(c, lg_flip(x, LG_DIMS(2)), LG_ERR_ARGUMENT, "flip: there is no dimension 2");
        assert_fails(c, lg_flip(x, (lg_dims){.count = 9}), LG_ERR_ARGUMENT, "flip: a set of 9");
        assert_fails(c, lg_roll(x, 1, 2), LG_ERR_ARGUMENT, "roll: there is no dimension 2");
        lg_close(c);
}
