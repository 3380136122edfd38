/* test_clip.c - gradients clipped by norm and by value. */
#include "test.h"

/* 3 and 4, 12: a norm of 13. */
TEST_CASE(clipping)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_zeros(c, LG_SHAPE(2), .dtype = LG_F64, .requires_grad = true);
        lg_tensor *b = lg_zeros(c, LG_SHAPE_0D, .requires_grad = true),
                  *none = lg_zeros(c, LG_SHAPE(1), .requires_grad = true);
        lg_tensor *g = lg_from(c, ((double[]){3, -4}), LG_SHAPE(2), .dtype = LG_F64), *norm = NULL;
        for (int i = 0; i < 4; i++) {
                lg_clear_grad(a), lg_clear_grad(b);
                lg_backward(lg_sum(lg_mul(a, g)));
                lg_backward(lg_mul_scalar(b, 12));
                lg_list p = LG_LIST(a, none, b);
                if (i == 0) {
                        assert_true(lg_clip_grad_norm(p, 6.5, .norm = &norm));
                        assert_near(lg_item(norm), 13, 1e-6);
                        assert_list(lg_grad_of(a), 1e-6, 1.5, -2);
                        assert_near(lg_item(lg_grad_of(b)), 6, 1e-5);
                } else if (i == 1) {
                        assert_true(lg_clip_grad_norm(p, 20));
                        assert_list(lg_grad_of(a), 0, 3, -4);
                } else if (i == 2) {
                        assert_true(lg_clip_grad_norm(p, 6, .p = INFINITY, .norm = &norm));
                        assert_near(lg_item(norm), 12, 0);
                        assert_list(lg_grad_of(a), 1e-6, 1.5, -2);
                } else {
                        assert_true(lg_clip_grad_value(p, 3.5));
                        assert_list(lg_grad_of(a), 0, 3, -3.5);
                        assert_near(lg_item(lg_grad_of(b)), 3.5, 0);
                }
        }
        assert_true(lg_clip_grad_norm(LG_LIST(none), 1, .norm = &norm));
        assert_near(lg_item(norm), 0, 0);
        assert_ok(c);
        assert_false(lg_clip_grad_norm(LG_LIST(a), -1));
        assert_error(c, LG_ERR_ARGUMENT, "max_norm -1");
        assert_false(lg_clip_grad_value(LG_LIST(a), NAN));
        assert_error(c, LG_ERR_ARGUMENT, "value");
        assert_false(lg_clip_grad_value(LG_LIST(a, NULL), 1));
        assert_error(c, LG_ERR_ARGUMENT, "parameter 1 is NULL");
        lg_close(c);
}

/* A norm that is infinite or NaN, also one that overflows, leaves the gradients as they are. */
TEST_CASE(norms_that_are_not_finite)
{
        lg_ctx *c = open_ctx();
        const float values[] = {INFINITY, -INFINITY, NAN};
        lg_tensor *a = lg_zeros(c, LG_SHAPE(2), .requires_grad = true), *norm = NULL;
        for (int i = 0; i < 3; i++) {
                lg_clear_grad(a);
                lg_backward(lg_sum(lg_mul(a, lg_from(c, ((float[]){values[i], 2}), LG_SHAPE(2)))));
                assert_ok(c);
                assert_false(lg_clip_grad_norm(LG_LIST(a), 1, .norm = &norm, .error_if_nonfinite = true));
                assert_null(norm);
                assert_error(c, LG_ERR_STATE, "the norm of the gradients is");
                assert_list(lg_grad_of(a), 0, values[i], 2);
        }
        assert_true(lg_clip_grad_norm(LG_LIST(a), 1, .norm = &norm));
        assert_true(isnan(lg_item(norm)));
        assert_list(lg_isnan(lg_grad_of(a)), 0, 1, 1);
        lg_clear_grad(a);
        lg_backward(lg_sum(lg_mul(a, lg_from(c, ((float[]){3, 4}), LG_SHAPE(2)))));
        assert_true(lg_clip_grad_norm(LG_LIST(a), 1, .norm = &norm, .error_if_nonfinite = true));
        assert_near(lg_item(norm), 5, 1e-6);
        assert_list(lg_grad_of(a), 1e-6, 0.6, 0.8);
        assert_true(lg_clip_grad_norm(LG_LIST(a), 1, .error_if_nonfinite = true, .p = LG_INFINITY));
        lg_close(c);
}
