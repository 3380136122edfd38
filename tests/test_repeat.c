/* test_repeat.c - a tensor beside itself. */
#include <limits.h>
#include "golden.h"

#define ROWS(ROW)                                                                                                      \
        ROW(repeat, lg_repeat(x, LG_SHAPE(2, 3)), 4, 5)                                                                \
        ROW(repeat_front, lg_repeat(x, LG_SHAPE(2, 1, 1, 2)), 2, 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

TEST_CASE(layouts_and_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *turned = lg_transpose(lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(3, 4)), 0, 1);
        lg_tensor *m = lg_ones(c, LG_SHAPE(3, 2)), *hollow = lg_zeros(c, LG_SHAPE(0, 2));
        assert_list(lg_repeat(turned, LG_SHAPE(1, 2)), 0, 0, 4, 8, 0, 4, 8, 1, 5, 9, 1, 5, 9, 2, 6, 10, 2, 6, 10, 3, 7,
                    11, 3, 7, 11);
        assert_shape(lg_repeat(m, LG_SHAPE(2, 0, 1)), LG_SHAPE(2, 0, 2));
        assert_shape(lg_repeat(hollow, LG_SHAPE(2, 2)), LG_SHAPE(0, 4));
        assert_list(lg_repeat(lg_scalar(c, 3), LG_SHAPE(2)), 0, 3, 3);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(a_copy_even_of_one)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(5));
        lg_fill_(lg_repeat(x, LG_SHAPE(1)), 1);
        lg_fill_(lg_repeat(lg_reshape(x, LG_SHAPE(5, 1)), LG_SHAPE(1, 1)), 1);
        assert_list(x, 0, 0, 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_shapes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2));
        assert_fails(c, lg_repeat(x, LG_SHAPE(2)), LG_ERR_SHAPE, "repeat: x is f32 (3, 2)");
        assert_fails(c, lg_repeat(x, ((lg_shape){.ndim = INT_MIN})), LG_ERR_SHAPE, "repeat: x is f32 (3, 2)");
        assert_fails(c, lg_repeat(x, LG_SHAPE(2, -1)), LG_ERR_SHAPE, "(2, -1) times");
        assert_fails(c, lg_repeat(x, LG_SHAPE(INT64_MAX, 1)), LG_ERR_SHAPE, "repeat");
        lg_close(c);
}
