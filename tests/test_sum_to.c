/* test_sum_to.c - gradients of broadcast inputs. */
#include "test.h"

TEST_CASE(broadcasts_are_summed)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_ones(c, LG_SHAPE(2, 1, 3), .requires_grad = true),
                  *b = lg_full(c, LG_SHAPE(4, 1), 2, .requires_grad = true);
        lg_tensor *s = lg_full(c, LG_SHAPE_0D, 5, .dtype = LG_F64, .requires_grad = true);
        lg_backward(lg_sum(lg_mul(lg_mul(a, b), lg_cast(s, LG_F32))));
        assert_list(lg_grad_of(a), 0, 40, 40, 40, 40, 40, 40);
        assert_list(lg_grad_of(b), 0, 30, 30, 30, 30);
        assert_int_equal(lg_dtype_of(lg_grad_of(s)), LG_F64);
        assert_list(lg_grad_of(s), 0, 48);
        assert_ok(c);
        lg_close(c);
}
