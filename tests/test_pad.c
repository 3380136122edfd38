/* test_pad.c - a constant around a tensor, or its rim cut off. */
#include "golden.h"

#define ROWS(ROW)                                                                                                      \
        ROW(pad, lg_pad(x, LG_INTS(1, 2, 0, 1), .value = -0.5), 2, 3, 4)                                               \
        ROW(pad_reflect, lg_pad(x, LG_INTS(2, 1, 1, 0), .mode = LG_PAD_REFLECT), 2, 3, 4)                              \
        ROW(pad_replicate, lg_pad(x, LG_INTS(2, 1, 3, 0), .mode = LG_PAD_REPLICATE), 2, 3, 4)                          \
        ROW(pad_circular, lg_pad(x, LG_INTS(4, 1, 0, 2), .mode = LG_PAD_CIRCULAR), 2, 3, 4)                            \
        ROW(pad_crop, lg_pad(x, LG_INTS(-1, 1, 2, -2)), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

TEST_CASE(layouts_and_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *b = lg_gt_scalar(lg_arange(c, 0, 4, 1), 1);
        lg_tensor *turned = lg_transpose(lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(3, 4)), 0, 1);
        lg_tensor *m = lg_ones(c, LG_SHAPE(3, 2)), *hollow = lg_zeros(c, LG_SHAPE(0, 2));
        assert_list(lg_pad(b, LG_INTS(1, 1), .value = 1), 0, 1, 0, 0, 1, 1, 1);
        assert_list(lg_pad(turned, LG_INTS(-2, 1, 0, -2), .value = 7), 0, 8, 7, 9, 7);
        assert_list(lg_pad(hollow, LG_INTS(0, 0, 0, 1), .value = 2), 0, 2, 2);
        assert_shape(lg_pad(m, LG_INTS(-1, -1)), LG_SHAPE(3, 0));
        assert_list(lg_pad(lg_scalar(c, 3), LG_INTS_OF(0, NULL)), 0, 3);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(elements_of_x_itself)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 0, 4, 1, .dtype = LG_I64), *m = lg_reshape(lg_arange(c, 0, 6, 1), LG_SHAPE(2, 3));
        assert_list(lg_pad(x, LG_INTS(3, 3), .mode = LG_PAD_REFLECT), 0, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0);
        assert_list(lg_pad(x, LG_INTS(2, 5), .mode = LG_PAD_REPLICATE), 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3);
        assert_list(lg_pad(x, LG_INTS(4, 1), .mode = LG_PAD_CIRCULAR), 0, 0, 1, 2, 3, 0, 1, 2, 3, 0);
        assert_list(lg_pad(x, LG_INTS(-1, 1), .mode = LG_PAD_CIRCULAR), 0, 1, 2, 3, 0);
        assert_list(lg_pad(m, LG_INTS(1, 0, 0, 1), .mode = LG_PAD_REFLECT), 0, 1, 0, 1, 2, 4, 3, 4, 5, 1, 0, 1, 2);
        assert_shape(lg_pad(lg_zeros(c, LG_SHAPE(0, 2)), LG_INTS(1, 1), .mode = LG_PAD_REFLECT), LG_SHAPE(0, 4));
        lg_fill_(lg_pad(x, LG_INTS(0, 0), .mode = LG_PAD_REFLECT), 7); /* a copy even of all */
        assert_list(x, 0, 0, 1, 2, 3);
        assert_ok(c);
        assert_fails(c, lg_pad(x, LG_INTS(0, 4), .mode = LG_PAD_REFLECT), LG_ERR_SHAPE,
                     "pads of dimension 0 are 0 and 4, but at most 3 in this mode");
        assert_fails(c, lg_pad(x, LG_INTS(5, 0), .mode = LG_PAD_CIRCULAR), LG_ERR_SHAPE, "pad: x is i64 (4,)");
        assert_fails(c, lg_pad(lg_zeros(c, LG_SHAPE(0)), LG_INTS(1, 0), .mode = LG_PAD_REPLICATE), LG_ERR_SHAPE,
                     "at most 0");
        assert_fails(c, lg_pad(x, LG_INTS(1), .mode = LG_PAD_REFLECT), LG_ERR_ARGUMENT, "1 pads");
        assert_fails(c, lg_pad(x, LG_INTS(1, 1), .mode = (lg_pad_mode)4), LG_ERR_ARGUMENT, "mode is 4");
        assert_null(lg_pad(NULL, LG_INTS(1, 1), .mode = LG_PAD_REFLECT));
        lg_close(c);
}

TEST_CASE(a_copy_even_of_all)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(5));
        lg_fill_(lg_pad(x, LG_INTS(0, 0)), 1);
        assert_list(x, 0, 0, 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_pads)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2));
        assert_fails(c, lg_pad(x, LG_INTS(1)), LG_ERR_ARGUMENT, "pad: 1 pads for x, f32 (3, 2)");
        assert_fails(c, lg_pad(x, LG_INTS(1, 1, 1, 1, 1, 1)), LG_ERR_ARGUMENT, "pad: 6 pads");
        assert_fails(c, lg_pad(x, LG_INTS(-2, -1)), LG_ERR_SHAPE, "dimension 1 cannot be padded by -2 and -1");
        assert_fails(c, lg_pad(x, LG_INTS(INT64_MAX, 1)), LG_ERR_SHAPE, "pad: x is f32 (3, 2)");
        assert_fails(c, lg_pad(x, LG_INTS(INT64_MIN, 1)), LG_ERR_ARGUMENT, "pad: pad 0 is out of range");
        lg_close(c);
}
