/* test_cat.c - tensors joined along a dimension, or along a new one. */
#include "golden.h"

#define SRC golden_like(x, LG_SHAPE(2, 3, 4), 0.7)
#define ROWS(ROW)                                                                                                      \
        ROW(stack, lg_stack(LG_LIST(x, lg_mul_scalar(x, 2), SRC), 1), 2, 3, 4)                                         \
        ROW(stack_last, lg_stack(LG_LIST(x, lg_square(x)), -1), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

TEST_CASE(cat)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_reshape(lg_arange(c, 0, 4, 1, .dtype = LG_F32), LG_SHAPE(2, 2)),
                  *b = lg_full(c, LG_SHAPE(2, 1), 9, .dtype = LG_F64);
        lg_tensor *y = lg_cat(LG_LIST(a, b, a), -1);
        assert_int_equal(lg_dtype_of(y), LG_F64);
        assert_shape(y, LG_SHAPE(2, 5));
        assert_list(y, 0, 0, 1, 9, 0, 1, 2, 3, 9, 2, 3);
        assert_list(lg_cat(LG_LIST(lg_transpose(a, 0, 1), a), 0), 0, 0, 2, 1, 3, 0, 1, 2, 3);
        drop(lg_cat(LG_LIST(a, b), 0));
        assert_error(c, LG_ERR_SHAPE, "cat");
        drop(lg_cat(LG_LIST(NULL, NULL, a), 0));
        assert_error(c, LG_ERR_ARGUMENT, "cat: tensor 0 is NULL");
        drop(lg_cat(LG_LIST(lg_scalar(c, 1), lg_scalar(c, 2)), 0));
        assert_error(c, LG_ERR_ARGUMENT, "there is no dimension 0");
        const lg_list nothing[] = {{3, NULL}, {0, NULL}, {-1, NULL}, LG_LIST(NULL, NULL), {-1, LG_LIST(a).items}};
        for (int i = 0; i < 5; i++)
                assert_null(lg_cat(nothing[i], 0));
        assert_ok(c);
        drop(lg_cat(LG_LIST(a, a), 2));
        assert_error(c, LG_ERR_ARGUMENT, "cat");
        lg_tensor *many[40];
        for (int i = 0; i < 40; i++)
                many[i] = lg_full(c, LG_SHAPE(1), i, .requires_grad = true);
        y = lg_cat((lg_list){40, many}, 0);
        assert_shape(y, LG_SHAPE(40));
        lg_backward(lg_sum(lg_square(y)));
        assert_list(lg_grad_of(many[33]), 0, 66);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(stacks)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(5));
        lg_tensor *m = lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(3, 4)), *hollow = lg_zeros(c, LG_SHAPE(0, 2));
        lg_fill_(lg_stack(LG_LIST(x), 0), 1);
        assert_list(x, 0, 0, 0, 0, 0, 0);
        assert_list(lg_stack(LG_LIST(lg_select(m, 1, 0), lg_select(m, 1, 3)), 0), 0, 0, 4, 8, 3, 7, 11);
        assert_shape(lg_stack(LG_LIST(hollow, hollow), -1), LG_SHAPE(0, 2, 2));
        assert_ok(c);
        lg_scope s = lg_scope_begin(c);
        int64_t before = lg_live_tensors(c);
        lg_tensor *many[30];
        for (int i = 0; i < 30; i++)
                many[i] = x;
        assert_shape(lg_stack((lg_list){30, many}, 1), LG_SHAPE(5, 30));
        assert_int_equal(lg_live_tensors(c), before + 1); /* the views in between are gone */
        lg_scope_end(c, s);
        lg_close(c);
}

TEST_CASE(wrong_stacks)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2));
        lg_tensor *deep = lg_zeros(c, LG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), .dtype = LG_I64);
        assert_fails(c, lg_stack(LG_LIST(x, lg_ones(c, LG_SHAPE(2, 3))), 0), LG_ERR_SHAPE,
                     "stack: tensor 1 is f32 (2, 3)");
        assert_fails(c, lg_stack(LG_LIST(x, NULL), 0), LG_ERR_ARGUMENT, "stack: tensor 1 is NULL");
        assert_fails(c, lg_stack(LG_LIST(x, x), 3), LG_ERR_ARGUMENT, "stack: there is no dimension 3");
        assert_fails(c, lg_stack(LG_LIST(deep, deep), 0), LG_ERR_SHAPE, "8 dimensions already");
        assert_null(lg_stack((lg_list){0, NULL}, 0));
        assert_ok(c);
        lg_close(c);
}
