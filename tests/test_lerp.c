/* test_lerp.c - between a and b. */
#include "golden.h"

#define Y golden_like(x, LG_SHAPE(3, 4), 0.7)
#define P lg_add_scalar(lg_square(Y), 0.1)
#define ROWS(ROW)                                                                                                      \
        ROW(lerp_a, lg_lerp_scalar(x, Y, 0.3), 3, 4)                                                                   \
        ROW(lerp_b, lg_lerp_scalar(Y, x, 0.8), 3, 4)                                                                   \
        ROW(lerp_w, lg_lerp(Y, P, x), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "elementwise.txt", golden_input, ROWS);

TEST_CASE(lerp)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_full(c, LG_SHAPE(2, 1), 1e8), *b = lg_full(c, LG_SHAPE(3), 0.1);
        lg_tensor *w = lg_from(c, ((float[]){0, 1, 0.25f}), LG_SHAPE(3));
        /* 1e8 + (0.1 - 1e8) would be 0 */
        assert_near(lg_item(lg_amin(lg_lerp_scalar(a, b, 1))), 0.1f, 0);
        assert_near(lg_item(lg_amax(lg_lerp_scalar(a, b, 1))), 0.1f, 0);
        assert_list(lg_lerp_scalar(a, b, 0), 0, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8);
        lg_tensor *y = lg_lerp(a, b, w);
        assert_list(y, 1e-7, 1e8, 0.1, 75000000.025, 1e8, 0.1, 75000000.025);
        assert_near(lg_item(lg_amin(y)), 0.1f, 0);
        assert_ok(c);
        drop(lg_lerp(a, b, lg_ones(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_SHAPE, "lerp");
        drop(lg_lerp_scalar(a, lg_ones(c, LG_SHAPE(2), .dtype = LG_I64), 0.5));
        assert_error(c, LG_ERR_DTYPE, "lerp_scalar: b is i64");
        drop(lg_lerp(a, NULL, w));
        assert_error(c, LG_ERR_ARGUMENT, "lerp: b is NULL");
        drop(lg_lerp_scalar(NULL, b, 0.5));
        assert_error(c, LG_ERR_ARGUMENT, "lerp_scalar: a is NULL");
        lg_close(c);
}
