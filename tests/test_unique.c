/* test_unique.c - distinct values and slices, and searching in sorted values, against PyTorch's results and loops. */
#include "golden.h"

#define LIST(dtype_, ...)                                                                                              \
        lg_cast(lg_from(c, ((const double[]){__VA_ARGS__}),                                                            \
                        LG_SHAPE((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))), .dtype = LG_F64), \
                dtype_)
static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

TEST_CASE(elements)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < DTYPES; d++) {
                lg_tensor *i = NULL, *n = NULL, *x = LIST(dtypes[d], 3, 1, 1, 2, 3, 1);
                lg_tensor *y =
                        lg_unique(lg_transpose(lg_reshape(x, LG_SHAPE(2, 3)), 0, 1), .inverse = &i, .counts = &n);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_int_equal(lg_dtype_of(i), LG_I64);
                assert_list(y, 0, 1, 2, 3);
                assert_shape(i, LG_SHAPE(3, 2));
                assert_list(i, 0, 2, 1, 0, 2, 0, 0);
                assert_list(n, 0, 3, 1, 2);
                y = lg_unique_consecutive(x, .inverse = &i, .counts = &n);
                assert_list(y, 0, 3, 1, 2, 3, 1);
                assert_list(i, 0, 0, 1, 1, 2, 3, 4);
                assert_list(n, 0, 1, 2, 1, 1, 1);
        }
        lg_tensor *i = NULL, *n = NULL;
        assert_list(lg_unique(lg_gt_scalar(LIST(LG_F64, 0, 1, 0), 0)), 0, 0, 1);
        assert_list(lg_unique(LIST(LG_F32, NAN, 1, NAN), .inverse = &i, .counts = &n), 0, 1, NAN, NAN);
        assert_list(i, 0, 1, 0, 2);
        assert_list(n, 0, 1, 1, 1);
        assert_shape(lg_unique(lg_zeros(c, LG_SHAPE(3, 0)), .inverse = &i, .counts = &n), LG_SHAPE(0));
        assert_shape(i, LG_SHAPE(3, 0));
        assert_shape(n, LG_SHAPE(0));
        assert_list(lg_unique(lg_scalar(c, 4), .inverse = &i), 0, 4);
        assert_shape(i, LG_SHAPE_0D);
        assert_false(lg_requires_grad(lg_unique(lg_zeros(c, LG_SHAPE(3), .requires_grad = true))));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(slices)
{
        lg_ctx *c = open_ctx();
        const double v[] = {2, 1, 0, 1, 5, 9, 2, 1, 0, 1, 5, 8, 2, 1, 0};
        lg_tensor *i = NULL, *n = NULL, *x = lg_from(c, v, LG_SHAPE(5, 3), .dtype = LG_F64);
        assert_list(lg_unique(x, .dims = LG_DIMS(0), .inverse = &i, .counts = &n), 0, 1, 5, 8, 1, 5, 9, 2, 1, 0);
        assert_list(i, 0, 2, 1, 2, 0, 2);
        assert_list(n, 0, 1, 1, 3);
        assert_list(lg_unique(lg_transpose(x, 0, 1), .dims = LG_DIMS(-1)), 0, 1, 1, 2, 5, 5, 1, 8, 9, 0);
        lg_tensor *pairs = lg_cat(LG_LIST(x, x), 1);
        assert_shape(lg_unique(pairs, .dims = LG_DIMS(0)), LG_SHAPE(3, 6));
        assert_shape(lg_unique(lg_reshape(lg_cat(LG_LIST(x, x), 0), LG_SHAPE(2, 5, 3)), .dims = LG_DIMS(0)),
                     LG_SHAPE(1, 5, 3));
        lg_tensor *runs = lg_index_select(x, 0, LIST64(0, 2, 1, 1, 0, 4));
        assert_list(lg_unique_consecutive(runs, .dims = LG_DIMS(0), .inverse = &i, .counts = &n), 0, 2, 1, 0, 1, 5, 9,
                    2, 1, 0);
        assert_list(i, 0, 0, 0, 1, 1, 2, 2);
        assert_list(n, 0, 2, 2, 2);
        assert_shape(lg_unique(lg_zeros(c, LG_SHAPE(0, 2)), .dims = LG_DIMS(0), .inverse = &i, .counts = &n),
                     LG_SHAPE(0, 2));
        assert_shape(i, LG_SHAPE(0));
        assert_ok(c);
        lg_close(c);
}

/* The result and the inverse give x again, the result ascends strictly, and the counts add up. */
TEST_CASE(many)
{
        lg_ctx *c = open_ctx();
        lg_tensor *i = NULL, *n = NULL, *x = lg_randint(c, 0, 300, LG_SHAPE(7000)), *y;
        y = lg_unique(x, .inverse = &i, .counts = &n);
        assert_int_equal(lg_item_i64(lg_sum(lg_ne(lg_take(y, i), x))), 0);
        assert_int_equal(lg_item_i64(lg_sum(lg_le_scalar(lg_diff(y), 0))), 0);
        assert_int_equal(lg_item_i64(lg_sum(lg_ne(n, lg_bincount(i)))), 0);
        x = lg_randint(c, 0, 3, LG_SHAPE(700, 5));
        y = lg_unique(x, .dims = LG_DIMS(0), .inverse = &i, .counts = &n);
        assert_int_equal(lg_item_i64(lg_sum(lg_ne(lg_index_select(y, 0, i), x))), 0);
        assert_int_equal(lg_item_i64(lg_sum(n)), 700);
        lg_tensor *key = lg_sum(lg_mul(y, LIST64(81, 27, 9, 3, 1)), .dims = LG_DIMS(1));
        assert_int_equal(lg_item_i64(lg_sum(lg_le_scalar(lg_diff(key), 0))), 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(searching)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < DTYPES; d++) {
                lg_tensor *sorted = LIST(dtypes[d], 1, 3, 3, 5), *values = LIST(dtypes[d], 0, 1, 3, 4, 5, 6);
                assert_list(lg_searchsorted(sorted, values), 0, 0, 0, 1, 3, 3, 4);
                assert_list(lg_searchsorted(sorted, values, .right = true), 0, 0, 1, 3, 3, 4, 4);
                assert_list(lg_bucketize(values, sorted, .right = true), 0, 0, 1, 3, 3, 4, 4);
        }
        const double v[] = {1, 2, 3, 10, 20, 30};
        lg_tensor *lines = lg_from(c, v, LG_SHAPE(2, 3), .dtype = LG_F64), *x = LIST(LG_F32, 2.5, 15, 2.5, 15);
        assert_list(lg_searchsorted(lines, lg_reshape(x, LG_SHAPE(2, 2))), 0, 2, 3, 0, 1);
        lg_tensor *turned = lg_transpose(lg_contiguous(lg_transpose(lines, 0, 1)), 0, 1);
        assert_list(lg_searchsorted(turned, lg_reshape(x, LG_SHAPE(2, 2))), 0, 2, 3, 0, 1);
        assert_list(lg_searchsorted(LIST(LG_I32, 1, 2, 3), LIST(LG_F32, 2.5, NAN)), 0, 2, 3);
        assert_list(lg_searchsorted(LIST(LG_F32, 1, NAN, NAN), LIST(LG_F32, 2, NAN, -1)), 0, 1, 1, 0);
        assert_list(lg_searchsorted(LIST(LG_F32, 1, NAN), LIST(LG_F32, 2, NAN), .right = true), 0, 1, 2);
        assert_list(lg_searchsorted(lg_zeros(c, LG_SHAPE(0)), x), 0, 0, 0, 0, 0);
        assert_shape(lg_searchsorted(lines, lg_zeros(c, LG_SHAPE(2, 0))), LG_SHAPE(2, 0));
        assert_shape(lg_bucketize(lg_scalar(c, 3), LIST(LG_F32, 1, 2)), LG_SHAPE_0D);
        assert_list(lg_isin(lines, LIST(LG_I64, 30, 2, 7, 2)), 0, 0, 1, 0, 0, 0, 1);
        assert_list(lg_isin(lines, lg_reshape(LIST(LG_F64, 30, 2), LG_SHAPE(2, 1)), .invert = true), 0, 1, 0, 1, 1, 1,
                    0);
        assert_list(lg_isin(LIST(LG_F32, NAN, 2, 9), LIST(LG_F32, NAN, 2, NAN, 1)), 0, 0, 1, 0);
        assert_list(lg_isin(LIST(LG_F32, 1, 2), lg_zeros(c, LG_SHAPE(0))), 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3)), *i = x;
        assert_fails(c, lg_unique(x, .dims = LG_DIMS(0, 1)), LG_ERR_ARGUMENT, "unique: .dims lists 2 dimensions");
        assert_fails(c, lg_unique(x, .dims = LG_DIMS(2), .inverse = &i), LG_ERR_ARGUMENT, "unique");
        assert_fails(c, lg_unique_consecutive(lg_zeros(c, LG_SHAPE(2, 0)), .dims = LG_DIMS(0), .counts = &i),
                     LG_ERR_SHAPE, "the slices along dimension 0 have no elements");
        assert_fails(c, lg_searchsorted(x, lg_zeros(c, LG_SHAPE(3, 3))), LG_ERR_SHAPE, "searchsorted: sorted is");
        assert_fails(c, lg_searchsorted(lg_scalar(c, 1), x), LG_ERR_SHAPE, "searchsorted: sorted is");
        assert_fails(c, lg_bucketize(x, x), LG_ERR_SHAPE, "bucketize: boundaries is f32 (2, 3)");
        assert_ptr_equal(i, x);
        lg_close(c);
}
