/* test_order.c - order statistics and running extremes: PyTorch's numbers, ties, NaN, empty and 0-d tensors, dtypes. */
#include "golden.h"

#define HOLED lg_masked_fill(x, lg_gt_scalar(golden_like(lg_detach(x), lg_shape_of(x), 0.7), 1.2), NAN)
#define THREE(how) lg_quantile(x, LG_NUMBERS(0.3, 0.5, 1), .dims = LG_DIMS(1), .interpolation = LG_QUANTILE_##how)
#define ROWS(ROW)                                                                                                      \
        ROW(kthvalue_2_1, lg_kthvalue(x, 2, 1), 4, 5)                                                                  \
        ROW(kthvalue_keep, lg_kthvalue(x, 3, -2, .keep_dim = true), 2, 3, 4)                                           \
        ROW(median_all, lg_median(x), 4, 5)                                                                            \
        ROW(median_1, lg_median(x, .dims = LG_DIMS(1)), 2, 3, 4)                                                       \
        ROW(median_keep, lg_median(x, .dims = LG_DIMS(-1), .keep_dim = true), 2, 3, 4)                                 \
        ROW(nanmedian_all, lg_nanmedian(HOLED), 4, 5)                                                                  \
        ROW(nanmedian_0, lg_nanmedian(HOLED, .dims = LG_DIMS(0)), 4, 5)                                                \
        ROW(mode_1, lg_mode(lg_add(lg_mul_scalar(x, 0.4), lg_round(x)), 1), 2, 3, 4)                                   \
        ROW(quantile_linear, THREE(LINEAR), 2, 3, 4)                                                                   \
        ROW(quantile_lower, THREE(LOWER), 2, 3, 4)                                                                     \
        ROW(quantile_higher, THREE(HIGHER), 2, 3, 4)                                                                   \
        ROW(quantile_midpoint, THREE(MIDPOINT), 2, 3, 4)                                                               \
        ROW(quantile_nearest, THREE(NEAREST), 2, 3, 4)                                                                 \
        ROW(quantile_all, lg_quantile(x, LG_NUMBERS(0.37)), 4, 5)                                                      \
        ROW(quantile_keep, lg_quantile(x, LG_NUMBERS(0, 0.9), .dims = LG_DIMS(0), .keep_dim = true), 2, 3, 4)          \
        ROW(nanquantile_1, lg_nanquantile(HOLED, LG_NUMBERS(0.6), .dims = LG_DIMS(1)), 4, 5)                           \
        ROW(nanquantile_all, lg_nanquantile(HOLED, LG_NUMBERS(0.1, 0.6)), 2, 3, 4)                                     \
        ROW(cummax_1, lg_cummax(x, 1), 2, 3, 4)                                                                        \
        ROW(cummax_0, lg_mul(lg_cummax(lg_round(x), 0), x), 4, 5)                                                      \
        ROW(cummin_last, lg_cummin(x, -1), 2, 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "order.txt", golden_input, ROWS);

#define LIST(dtype_, ...)                                                                                              \
        lg_cast(lg_from(c, ((const double[]){__VA_ARGS__}),                                                            \
                        LG_SHAPE((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))), .dtype = LG_F64), \
                dtype_)
static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

TEST_CASE(every_dtype)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < DTYPES; d++) {
                lg_tensor *x = LIST(dtypes[d], 3, 1, 3, 2, 1, 3, 7, 1), *i = NULL, *y;
                y = lg_kthvalue(x, 4, 0, .indices = &i);
                assert_list(y, 0, 2);
                assert_list(i, 0, 3);
                y = lg_median(x, .indices = &i);
                assert_list(y, 0, 2);
                assert_list(i, 0, 3);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                y = lg_mode(x, -1, .indices = &i);
                assert_list(y, 0, 1);
                assert_list(i, 0, 7);
                y = lg_cummax(x, 0, .indices = &i);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_list(y, 0, 3, 3, 3, 3, 3, 3, 7, 7);
                assert_list(i, 0, 0, 0, 2, 2, 2, 5, 6, 6);
                y = lg_cummin(x, 0, .indices = &i);
                assert_list(y, 0, 3, 1, 1, 1, 1, 1, 1, 1);
                assert_list(i, 0, 0, 1, 1, 1, 4, 4, 4, 7);
                assert_ok(c);
        }
        lg_tensor *b = lg_gt_scalar(LIST(LG_F64, 0, 1, 0, 1, 1), 0), *i = NULL;
        assert_list(lg_cummax(b, 0, .indices = &i), 0, 0, 1, 1, 1, 1);
        assert_list(i, 0, 0, 1, 1, 3, 4);
        assert_list(lg_mode(b, 0), 0, 1);
        lg_close(c);
}

TEST_CASE(not_a_number)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = LIST(dtypes[d], 1, NAN, 3, NAN, 2), *i = NULL;
                assert_list(lg_cummax(x, 0, .indices = &i), 0, 1, NAN, NAN, NAN, NAN);
                assert_list(i, 0, 0, 1, 1, 3, 3);
                assert_list(lg_cummin(x, 0, .indices = &i), 0, 1, NAN, NAN, NAN, NAN);
                assert_list(i, 0, 0, 1, 1, 3, 3);
                assert_list(lg_median(x, .dims = LG_DIMS(0), .indices = &i), 0, NAN);
                assert_list(i, 0, 1);
                assert_list(lg_nanmedian(x, .dims = LG_DIMS(0), .indices = &i), 0, 2);
                assert_list(i, 0, 4);
                assert_list(lg_nanmedian(LIST(dtypes[d], NAN, NAN), .indices = &i), 0, NAN);
                assert_list(i, 0, 0);
                assert_list(lg_kthvalue(x, 4, 0, .indices = &i), 0, NAN);
                assert_list(i, 0, 1);
                assert_list(lg_mode(x, 0), 0, 1); /* each NaN is alone */
                assert_list(lg_quantile(x, LG_NUMBERS(0, 0.5)), 0, NAN, NAN);
                assert_list(lg_nanquantile(x, LG_NUMBERS(0, 0.5, 1)), 0, 1, 2, 3);
                assert_list(lg_nanquantile(LIST(dtypes[d], NAN, NAN), LG_NUMBERS(0.5)), 0, NAN);
                x = LIST(dtypes[d], 1, INFINITY, 0);
                assert_list(lg_quantile(x, LG_NUMBERS(0.5, 1)), 0, 1, NAN);
                assert_list(lg_quantile(x, LG_NUMBERS(1), .interpolation = LG_QUANTILE_NEAREST), 0, INFINITY);
        }
        assert_list(lg_median(lg_zeros(c, LG_SHAPE(0))), 0, NAN);
        assert_ok(c);
        lg_close(c);
}

/* Long lines, for blocks of several warps and threads, along each dimension, against plain loops. */
TEST_CASE(long_running_extremes)
{
        lg_ctx *c = open_ctx();
        const lg_shape shapes[] = {LG_SHAPE(3, 1000, 1), LG_SHAPE(1, 33, 70), LG_SHAPE(2, 5000, 3)};
        for (int s = 0; s < 3; s++) {
                const int64_t n = shapes[s].size[1], inner = shapes[s].size[2], all = lg_numel(lg_zeros(c, shapes[s]));
                lg_tensor *x = lg_randint(c, 0, 50, shapes[s], .dtype = LG_F32), *i = NULL;
                double *v = calloc((size_t)all, sizeof *v), *at = calloc((size_t)all, sizeof *at);
                read_all(x, v, all);
                for (int64_t k = 0; k < all; k++) {
                        const int64_t j = k / inner % n, start = k - j * inner, before = k - inner;
                        const double best = j ? v[before] : 0;
                        at[k] = j == 0 || v[k] >= best ? (double)j : at[before];
                        v[k] = v[start + (int64_t)at[k] * inner];
                }
                assert_values(lg_cummax(x, 1, .indices = &i), v, all, 0);
                assert_values(i, at, all, 0);
                for (int64_t k = 0; k < all; k++)
                        v[k] = -v[k];
                assert_values(lg_cummin(lg_neg(x), 1, .indices = &i), v, all, 0);
                assert_values(i, at, all, 0);
                free(v), free(at);
        }
        lg_close(c);
}

TEST_CASE(shapes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = golden_tensor(c, LG_SHAPE(2, 3, 4), 0), *zero = lg_scalar(c, 5), *i = NULL;
        assert_shape(lg_median(x, .dims = LG_DIMS(1), .keep_dim = true, .indices = &i), LG_SHAPE(2, 1, 4));
        assert_shape(i, LG_SHAPE(2, 1, 4));
        assert_shape(lg_median(x, .keep_dim = true), LG_SHAPE(1, 1, 1));
        assert_shape(lg_quantile(x, LG_NUMBERS(0.5), .dims = LG_DIMS(1)), LG_SHAPE(2, 4));
        assert_shape(lg_quantile(x, LG_NUMBERS(0.5, 1), .dims = LG_DIMS(1), .keep_dim = true), LG_SHAPE(2, 2, 1, 4));
        assert_shape(lg_quantile(x, LG_NUMBERS(0.5), .keep_dim = true), LG_SHAPE(1, 1, 1));
        assert_shape(lg_quantile(x, LG_NUMBERS(0.5, 1)), LG_SHAPE(2));
        assert_shape(lg_mode(x, 0), LG_SHAPE(3, 4));
        assert_list(lg_median(zero, .dims = LG_DIMS(0), .indices = &i), 0, 5);
        assert_list(i, 0, 0);
        assert_list(lg_kthvalue(zero, 1, -1, .keep_dim = true), 0, 5);
        assert_list(lg_mode(zero, 0, .indices = &i), 0, 5);
        assert_shape(i, LG_SHAPE_0D);
        assert_list(lg_cummax(zero, 0, .indices = &i), 0, 5);
        assert_list(lg_quantile(zero, LG_NUMBERS(0.5), .dims = LG_DIMS(-1)), 0, 5);
        lg_tensor *none = lg_zeros(c, LG_SHAPE(3, 0));
        assert_shape(lg_median(none, .dims = LG_DIMS(0), .indices = &i), LG_SHAPE(0));
        assert_shape(i, LG_SHAPE(0));
        assert_shape(lg_mode(lg_transpose(none, 0, 1), 1), LG_SHAPE(0));
        assert_shape(lg_cummin(none, 1), LG_SHAPE(3, 0));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3)), *none = lg_zeros(c, LG_SHAPE(2, 0)), *i = x;
        assert_fails(c, lg_kthvalue(x, 0, 1), LG_ERR_ARGUMENT, "kthvalue: k is 0; it is from 1 to");
        assert_fails(c, lg_kthvalue(x, 4, 1, .indices = &i), LG_ERR_ARGUMENT, "kthvalue: k is 4");
        assert_fails(c, lg_kthvalue(x, 1, 2), LG_ERR_ARGUMENT, "kthvalue");
        assert_fails(c, lg_median(x, .dims = LG_DIMS(0, 1)), LG_ERR_ARGUMENT, "median: .dims lists 2 dimensions");
        assert_fails(c, lg_nanmedian(x, .dims = LG_DIMS(5)), LG_ERR_ARGUMENT, "nanmedian");
        assert_fails(c, lg_median(none, .dims = LG_DIMS(1)), LG_ERR_SHAPE, "median: x is f32 (2, 0)");
        assert_fails(c, lg_median(lg_cast(none, LG_I64)), LG_ERR_SHAPE, "median");
        assert_fails(c, lg_mode(none, 1, .indices = &i), LG_ERR_SHAPE, "mode");
        assert_fails(c, lg_quantile(x, LG_NUMBERS(1.5)), LG_ERR_ARGUMENT, "quantile: q is 1.5; it is from 0 to 1");
        assert_fails(c, lg_quantile(x, LG_NUMBERS(NAN)), LG_ERR_ARGUMENT, "quantile: q is nan");
        assert_fails(c, lg_quantile(x, LG_NUMBERS_OF(0, NULL)), LG_ERR_ARGUMENT, "quantile: the list of q is empty");
        assert_fails(c, lg_nanquantile(x, LG_NUMBERS(0.5), .interpolation = (lg_interpolation)9), LG_ERR_ARGUMENT,
                     "nanquantile: .interpolation is 9");
        assert_fails(c, lg_quantile(none, LG_NUMBERS(0.5)), LG_ERR_SHAPE, "quantile: x is f32 (2, 0)");
        assert_fails(c, lg_quantile(lg_cast(x, LG_I64), LG_NUMBERS(0.5)), LG_ERR_DTYPE, "quantile: x is i64");
        assert_fails(c, lg_cummax(x, 2), LG_ERR_ARGUMENT, "cummax");
        assert_ptr_equal(i, x);
        lg_close(c);
}
