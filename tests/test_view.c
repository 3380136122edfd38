/* test_view.c - views: same storage, other shape and strides; what they refuse; gradients through them. */
#include "test.h"

static lg_tensor *counting(lg_ctx *c, lg_shape shape)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        return lg_reshape(lg_arange(c, 0, (double)n, 1, .dtype = LG_F32), shape);
}

/* A change of the view is a change of x. */
static void check_shared(lg_tensor *view, lg_tensor *x)
{
        double before[64], after[64];
        int64_t n = read_all(x, before, 64);
        assert_true(lg_fill_(view, -1));
        read_all(x, after, 64);
        assert_memory_not_equal(before, after, (size_t)n * sizeof *after);
        lg_write(x, before, LG_F64, (size_t)n * sizeof *before);
}

TEST_CASE(reshape)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = counting(c, LG_SHAPE(2, 6));
        lg_tensor *y = lg_reshape(x, LG_SHAPE(3, -1));
        assert_shape(y, LG_SHAPE(3, 4));
        check_shared(y, x);
        assert_list(y, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
        assert_shape(lg_reshape(lg_ones(c, LG_SHAPE(1)), LG_SHAPE_0D), LG_SHAPE_0D);
        /* a transposed tensor has no such view: a copy in row-major order of what is seen */
        lg_tensor *t = lg_reshape(lg_transpose(counting(c, LG_SHAPE(2, 3)), 0, 1), LG_SHAPE(6));
        assert_list(t, 0, 0, 3, 1, 4, 2, 5);
        assert_shape(lg_flatten(lg_ones(c, LG_SHAPE(2, 3, 4)), .start_dim = 1), LG_SHAPE(2, 12));
        assert_shape(lg_reshape(lg_ones(c, LG_SHAPE(0, 3)), LG_SHAPE(3, 0, 5)), LG_SHAPE(3, 0, 5));
        drop(lg_reshape(x, LG_SHAPE(5, 2)));
        assert_error(c, LG_ERR_SHAPE, "(2, 6)");
        drop(lg_reshape(x, LG_SHAPE(-1, -1)));
        assert_error(c, LG_ERR_SHAPE, "reshape");
        drop(lg_reshape(x, LG_SHAPE(5, -1)));
        assert_error(c, LG_ERR_SHAPE, "reshape");
        drop(lg_reshape(lg_ones(c, LG_SHAPE(0, 3)), LG_SHAPE(0, -1)));
        assert_error(c, LG_ERR_SHAPE, "reshape");
        lg_close(c);
}

TEST_CASE(transpose_and_permute)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = counting(c, LG_SHAPE(2, 3)), *t = lg_transpose(x, 0, -1);
        assert_shape(t, LG_SHAPE(3, 2));
        check_shared(lg_select(t, 0, 1), x);
        assert_list(t, 0, 0, 3, 1, 4, 2, 5);
        assert_false(lg_is_contiguous(t));
        assert_true(lg_is_contiguous(lg_contiguous(t)));
        assert_ptr_equal(lg_contiguous(x), x);
        lg_tensor *p = lg_permute(counting(c, LG_SHAPE(2, 3, 4)), LG_DIMS(2, 0, 1));
        assert_shape(p, LG_SHAPE(4, 2, 3));
        assert_list(lg_select(p, 0, 1), 0, 1, 5, 9, 13, 17, 21);
        drop(lg_permute(x, LG_DIMS(0, 0)));
        assert_error(c, LG_ERR_ARGUMENT, "permute");
        drop(lg_permute(x, LG_DIMS(0)));
        assert_error(c, LG_ERR_ARGUMENT, "permute");
        drop(lg_transpose(x, 0, 2));
        assert_error(c, LG_ERR_ARGUMENT, "transpose");
        lg_close(c);
}

TEST_CASE(slice_and_select)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = counting(c, LG_SHAPE(10));
        assert_list(lg_slice(x, 0, 2, 7), 0, 2, 3, 4, 5, 6);
        assert_list(lg_slice(x, 0, 1, LG_MAX, .step = 4), 0, 1, 5, 9);
        assert_list(lg_slice(x, 0, -3, -1), 0, 7, 8);
        assert_list(lg_slice(x, 0, -100, 2), 0, 0, 1);
        assert_int_equal(lg_numel(lg_slice(x, 0, 5, 3)), 0);
        assert_int_equal(lg_numel(lg_slice(x, 0, 50, LG_MAX)), 0);
        check_shared(lg_slice(x, 0, 1, 3), x);
        lg_tensor *m = counting(c, LG_SHAPE(3, 4));
        assert_list(lg_slice(lg_slice(m, 0, 1, 3), 1, 0, 4, .step = 3), 0, 4, 7, 8, 11);
        assert_list(lg_select(m, -1, -1), 0, 3, 7, 11);
        assert_shape(lg_select(m, 0, 0), LG_SHAPE(4));
        drop(lg_slice(x, 0, 0, 5, .step = -1));
        assert_error(c, LG_ERR_ARGUMENT, "slice");
        drop(lg_slice(x, 1, 0, 5));
        assert_error(c, LG_ERR_ARGUMENT, "slice");
        drop(lg_select(x, 0, 10));
        assert_error(c, LG_ERR_ARGUMENT, "10");
        drop(lg_select(x, 0, -11));
        assert_error(c, LG_ERR_ARGUMENT, "select");
        lg_close(c);
}

TEST_CASE(squeeze_and_expand)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = counting(c, LG_SHAPE(1, 3, 1));
        assert_shape(lg_squeeze(x, LG_ALL_DIMS), LG_SHAPE(3));
        assert_shape(lg_squeeze(x, LG_DIMS(-1)), LG_SHAPE(1, 3));
        assert_null(lg_squeeze(x, (lg_dims){.count = 9}));
        assert_error(c, LG_ERR_ARGUMENT, "squeeze: a set of 9 dimensions");
        assert_null(lg_squeeze(x, (lg_dims){.count = -1}));
        assert_error(c, LG_ERR_ARGUMENT, "squeeze: a set of -1 dimensions");
        assert_shape(lg_squeeze(x, LG_DIMS(1)), LG_SHAPE(1, 3, 1));
        assert_shape(lg_unsqueeze(x, 0), LG_SHAPE(1, 1, 3, 1));
        assert_shape(lg_unsqueeze(x, -1), LG_SHAPE(1, 3, 1, 1));
        drop(lg_unsqueeze(x, 5));
        assert_error(c, LG_ERR_ARGUMENT, "unsqueeze");
        lg_tensor *e = lg_expand(x, LG_SHAPE(2, -1, 2));
        assert_shape(e, LG_SHAPE(2, 3, 2));
        assert_int_equal(lg_stride_of(e, 0), 0);
        assert_list(e, 0, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2);
        assert_shape(lg_expand(lg_scalar(c, 1), LG_SHAPE(2, 2)), LG_SHAPE(2, 2));
        drop(lg_expand(x, LG_SHAPE(2, 4, 2)));
        assert_error(c, LG_ERR_SHAPE, "expand");
        drop(lg_expand(x, LG_SHAPE(3)));
        assert_error(c, LG_ERR_SHAPE, "expand");
        lg_fill_(e, 1);
        assert_error(c, LG_ERR_ARGUMENT, "expanded");
        lg_tensor *deep = lg_ones(c, LG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
        drop(lg_unsqueeze(deep, 0));
        assert_error(c, LG_ERR_SHAPE, "");
        lg_close(c);
}

TEST_CASE(gradients_through_views)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_set_requires_grad(lg_copy(counting(c, LG_SHAPE(2, 3)), LG_NO_DEVICE), true);
        lg_tensor *y = lg_slice(lg_transpose(x, 0, 1), 0, 0, LG_MAX, .step = 2); /* columns 0 and 2 */
        lg_backward(lg_sum(lg_mul(y, lg_from(c, ((float[]){1, 2, 3, 4}), LG_SHAPE(2, 2)))));
        assert_list(lg_grad_of(x), 0, 1, 0, 3, 2, 0, 4);
        lg_clear_grad(x);
        lg_backward(lg_sum(lg_expand(lg_unsqueeze(lg_select(x, 0, 1), 0), LG_SHAPE(5, 3))));
        assert_list(lg_grad_of(x), 0, 0, 0, 0, 5, 5, 5);
        assert_ok(c);
        lg_close(c);
}
