/* test_count.c - counts, histograms, reductions without NaN, pairs of reductions and differences. */
#include "golden.h"

#define HOLED lg_masked_fill(x, lg_gt_scalar(golden_like(lg_detach(x), lg_shape_of(x), 0.7), 1.2), NAN)
#define SRC golden_like(x, LG_SHAPE(2, 3, 4), 0.7)
/* A pair of reductions of x, joined. */
#define PAIR(of, ...) joined(of(x, &second, __VA_ARGS__), &second)
static _Thread_local lg_tensor *second;
static lg_tensor *joined(lg_tensor *first, lg_tensor **ret_second)
{
        return lg_cat(LG_LIST(first, *ret_second), 0);
}

#define ROWS(ROW)                                                                                                      \
        ROW(bincount, lg_cast(lg_bincount(I64(5, 7), .weights = x, .minlength = 6), lg_dtype_of(x)), 7)                \
        ROW(nansum_0, lg_nansum(HOLED, .dims = LG_DIMS(0)), 4, 5)                                                      \
        ROW(nanmean_1, lg_nanmean(HOLED, .dims = LG_DIMS(1)), 2, 3, 4)                                                 \
        ROW(aminmax_1, PAIR(lg_aminmax, .dims = LG_DIMS(1)), 2, 3, 4)                                                  \
        ROW(var_mean, PAIR(lg_var_mean, .dims = LG_DIMS(1)), 2, 3, 4)                                                  \
        ROW(std_mean, PAIR(lg_std_mean, .dims = LG_DIMS(0), .correction = LG_ZERO), 4, 5)                              \
        ROW(diff, lg_diff(x), 4, 5)                                                                                    \
        ROW(diff_2, lg_diff(x, .n = 2, .dim = 1, .prepend = lg_slice(SRC, 1, 0, 2), .append = lg_slice(SRC, 1, 2, 3)), \
            2, 3, 4)                                                                                                   \
        ROW(diff_0, lg_diff(x, .n = 3, .dim = LG_ZERO_INT), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "order.txt", golden_input, ROWS);

#define LIST(dtype_, ...)                                                                                              \
        lg_cast(lg_from(c, ((const double[]){__VA_ARGS__}),                                                            \
                        LG_SHAPE((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))), .dtype = LG_F64), \
                dtype_)

TEST_CASE(counts)
{
        lg_ctx *c = open_ctx();
        const lg_dtype whole[] = {LG_I64, LG_I32, LG_U8};
        for (int d = 0; d < 3; d++) {
                lg_tensor *x = LIST(whole[d], 1, 4, 1, 0), *y = lg_bincount(x);
                assert_int_equal(lg_dtype_of(y), LG_I64);
                assert_list(y, 0, 1, 2, 0, 0, 1);
                assert_list(lg_bincount(x, .minlength = 7), 0, 1, 2, 0, 0, 1, 0, 0);
                y = lg_bincount(x, .weights = LIST(LG_F32, 0.5, 2, 0.25, 1), .minlength = 2);
                assert_int_equal(lg_dtype_of(y), LG_F32);
                assert_list(y, 0, 1, 0.75, 0, 0, 2);
                assert_int_equal(lg_dtype_of(lg_bincount(x, .weights = LIST(LG_I32, 1, 2, 3, 4))), LG_F64);
        }
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64);
        assert_shape(lg_bincount(none), LG_SHAPE(0));
        assert_list(lg_bincount(none, .weights = lg_zeros(c, LG_SHAPE(0)), .minlength = 2), 0, 0, 0);
        lg_tensor *x = lg_reshape(LIST(LG_F32, 0, NAN, 3, 0, 0, -1), LG_SHAPE(2, 3));
        assert_list(lg_count_nonzero(x), 0, 3);
        assert_list(lg_count_nonzero(x, .dims = LG_DIMS(1)), 0, 2, 1);
        assert_list(lg_nansum(x), 0, 2);
        assert_list(lg_nanmean(x, .dims = LG_DIMS(1)), 1e-7, 1.5, -1.0 / 3);
        assert_list(lg_nanmean(lg_full(c, LG_SHAPE(2), NAN)), 0, NAN);
        assert_int_equal(lg_dtype_of(lg_nansum(LIST(LG_U8, 1, 200, 200))), LG_I64);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(histograms)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = LIST(dtypes[d], 0, 0.5, 1, 1.5, 2, 4, -1, 1), *y = lg_histc(x, .bins = 4, .max = 2);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_list(y, 0, 1, 1, 2, 2);
                assert_list(lg_histc(x, .bins = 5), 0, 1, 2, 3, 1, 1);
                assert_list(lg_histc(lg_full_like(x, 2), .bins = 3), 0, 0, 8, 0);
                assert_list(lg_histc(LIST(dtypes[d], 3, NAN), .bins = 3, .max = 4), 0, 0, 0, 1);
        }
        assert_list(lg_histc(lg_zeros(c, LG_SHAPE(2, 0)), .bins = 3), 0, 0, 0, 0);
        assert_shape(lg_histc(lg_zeros(c, LG_SHAPE(2))), LG_SHAPE(100));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(differences)
{
        lg_ctx *c = open_ctx();
        lg_tensor *b = lg_diff(lg_gt_scalar(LIST(LG_F64, 1, 0, 0), 0));
        assert_int_equal(lg_dtype_of(b), LG_BOOL);
        assert_list(b, 0, 1, 0);
        assert_list(lg_diff(LIST(LG_U8, 1, 4, 3)), 0, 3, 255);
        assert_shape(lg_diff(LIST(LG_I64, 1, 2), .n = 5), LG_SHAPE(0));
        assert_shape(lg_diff(lg_zeros(c, LG_SHAPE(2, 0))), LG_SHAPE(2, 0));
        assert_list(lg_diff(LIST(LG_F32, 1, 2), .n = LG_ZERO_INT), 0, 1, 2);
        assert_list(lg_diff(LIST(LG_F32, 1, 2), .append = LIST(LG_F32, 7)), 0, 1, 5);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3)), *i = lg_cast(lg_zeros(c, LG_SHAPE(3)), LG_I64), *max = x;
        assert_fails(c, lg_bincount(x), LG_ERR_SHAPE, "it is 1-d, of integers");
        assert_fails(c, lg_bincount(LIST(LG_I64, 1, -4)), LG_ERR_ARGUMENT, "bincount: x holds -4");
        assert_fails(c, lg_bincount(LIST(LG_I64, 1, 9e18), .minlength = 2), LG_ERR_SHAPE, "");
        assert_fails(c, lg_bincount(i, .minlength = -1), LG_ERR_ARGUMENT, "bincount: .minlength is -1");
        assert_fails(c, lg_bincount(i, .weights = x), LG_ERR_SHAPE, "bincount: x is");
        assert_fails(c, lg_histc(x, .bins = -2), LG_ERR_ARGUMENT, "histc: .bins is -2");
        assert_fails(c, lg_histc(x, .bins = LG_ZERO_INT), LG_ERR_ARGUMENT, "histc: .bins is 0");
        assert_fails(c, lg_histc(x, .min = 2, .max = 1), LG_ERR_ARGUMENT, "histc: the range is [2, 1]");
        assert_fails(c, lg_histc(LIST(LG_F32, 1, NAN)), LG_ERR_ARGUMENT, "histc: the range is");
        assert_fails(c, lg_histc(x, .max = LG_INFINITY), LG_ERR_ARGUMENT, "histc: the range is");
        assert_fails(c, lg_histc(i), LG_ERR_DTYPE, "histc");
        assert_fails(c, lg_aminmax(lg_zeros(c, LG_SHAPE(0)), &max), LG_ERR_SHAPE, "amin");
        assert_fails(c, lg_aminmax(x, NULL), LG_ERR_ARGUMENT, "aminmax: ret_max is NULL");
        assert_fails(c, lg_var_mean(x, NULL), LG_ERR_ARGUMENT, "var_mean: ret_mean is NULL");
        assert_fails(c, lg_diff(lg_scalar(c, 1)), LG_ERR_ARGUMENT, "diff");
        assert_fails(c, lg_diff(x, .n = -1), LG_ERR_ARGUMENT, "diff: .n is -1");
        assert_fails(c, lg_diff(x, .dim = 2), LG_ERR_ARGUMENT, "diff");
        assert_fails(c, lg_diff(x, .prepend = lg_zeros(c, LG_SHAPE(3, 1))), LG_ERR_SHAPE, "cat");
        assert_ptr_equal(max, x);
        lg_close(c);
}
