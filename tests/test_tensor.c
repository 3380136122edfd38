/* test_tensor.c - making, reading and writing tensors of all dtypes. */
#include "failing.h"

static const lg_dtype all[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
#define ALL ((int)(sizeof all / sizeof *all))

TEST_CASE(constants)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < ALL; i++) {
                double seven = all[i] == LG_BOOL ? 1 : 7;
                lg_tensor *t = lg_full(c, LG_SHAPE(2, 2), 7, .dtype = all[i]);
                assert_int_equal(lg_dtype_of(t), all[i]);
                assert_list(t, 0, seven, seven, seven, seven);
                assert_list(lg_zeros(c, LG_SHAPE(2), .dtype = all[i]), 0, 0, 0);
                assert_list(lg_ones(c, LG_SHAPE(2), .dtype = all[i]), 0, 1, 1);
                assert_list(lg_scalar(c, 1, .dtype = all[i]), 0, 1);
                assert_int_equal(lg_numel(lg_empty(c, LG_SHAPE(3, 5), .dtype = all[i])), 15);
        }
        assert_int_equal(lg_dtype_of(lg_zeros(c, LG_SHAPE(1))), LG_F32);
        assert_near(lg_item(lg_scalar(c, 0.1)), 0.1f, 0);
        assert_near(lg_item(lg_scalar(c, 0.1, .dtype = LG_F64)), 0.1, 0);
        assert_true(isnan(lg_item(lg_full(c, LG_SHAPE_0D, NAN))));
        assert_true(isinf(lg_item(lg_full(c, LG_SHAPE_0D, INFINITY))));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(ranges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = lg_arange(c, 0, 5, 1);
        assert_int_equal(lg_dtype_of(t), LG_I64);
        assert_list(t, 0, 0, 1, 2, 3, 4);
        assert_list(lg_arange(c, 3, -2, -2), 0, 3, 1, -1);
        t = lg_arange(c, 0, 1, 0.25);
        assert_int_equal(lg_dtype_of(t), LG_F32);
        assert_list(t, 0, 0, 0.25, 0.5, 0.75);
        assert_list(lg_arange(c, 1, 2.1, 0.5, .dtype = LG_F64), 1e-15, 1, 1.5, 2);
        assert_int_equal(lg_numel(lg_arange(c, 5, 5, 1)), 0);
        assert_int_equal(lg_numel(lg_arange(c, 5, 0, 1)), 0);
        drop(lg_arange(c, 0, 5, 0));
        assert_error(c, LG_ERR_ARGUMENT, "lg_arange");
        drop(lg_arange(c, 0, INFINITY, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_arange");
        lg_close(c);
}

/* Shape, dtype and device of another tensor, in a layout of their own. */
TEST_CASE(like_another)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < ALL; i++) {
                lg_tensor *x = lg_transpose(lg_full(c, LG_SHAPE(3, 2), 3, .dtype = all[i]), 0, 1), *t[4];
                t[0] = lg_zeros_like(x);
                t[1] = lg_ones_like(x);
                t[2] = lg_full_like(x, 7);
                t[3] = lg_empty_like(x);
                for (int k = 0; k < 4; k++) {
                        assert_int_equal(lg_dtype_of(t[k]), all[i]);
                        assert_int_equal(lg_size_of(t[k], 0), 2);
                        assert_int_equal(lg_size_of(t[k], 1), 3);
                        assert_true(lg_is_contiguous(t[k]));
                        assert_true(lg_device_equal(lg_device_of(t[k]), lg_device_of(x)));
                }
                double seven = all[i] == LG_BOOL ? 1 : 7, three = all[i] == LG_BOOL ? 1 : 3;
                assert_list(t[0], 0, 0, 0, 0, 0, 0, 0);
                assert_list(t[1], 0, 1, 1, 1, 1, 1, 1);
                assert_list(t[2], 0, seven, seven, seven, seven, seven, seven);
                assert_list(x, 0, three, three, three, three, three, three);
        }
        lg_tensor *x = lg_ones(c, LG_SHAPE(2), .dtype = LG_I64), *y = lg_full_like(x, 0.5, .dtype = LG_F64);
        assert_int_equal(lg_dtype_of(y), LG_F64);
        assert_list(y, 0, 0.5, 0.5);
        lg_tensor *w = lg_zeros_like(lg_scalar(c, 2), .requires_grad = true);
        assert_int_equal(lg_ndim_of(w), 0);
        lg_backward(lg_square(w));
        assert_list(lg_grad_of(w), 0, 0);
        assert_int_equal(lg_numel(lg_ones_like(lg_zeros(c, LG_SHAPE(0, 3)))), 0);
        /* where x is, not where new tensors are */
        lg_tensor *host = lg_ones(c, LG_SHAPE(2), .device = lg_cpu());
        assert_int_equal(lg_device_of(lg_zeros_like(host)).type, LG_DEVICE_CPU);
        assert_true(lg_device_equal(lg_device_of(lg_zeros_like(host, .device = test_device(c))), test_device(c)));
        assert_ok(c);
        assert_null(lg_full_like(x, 1e300));
        assert_error(c, LG_ERR_ARGUMENT, "lg_full_like: the value 1.0000000000000001e+300");
        assert_null(lg_ones_like(x, .requires_grad = true));
        assert_error(c, LG_ERR_DTYPE, "lg_ones_like: requires_grad with dtype i64");
        assert_null(lg_empty_like(x, .dtype = (lg_dtype)77));
        assert_error(c, LG_ERR_DTYPE, "lg_empty_like: 77 is no dtype");
        assert_null(lg_zeros_like(NULL));
        lg_free(x);
        assert_null(lg_zeros_like(x));
        assert_error(c, LG_ERR_STATE, "lg_zeros_like: x was freed");
        lg_close(c);
}

TEST_CASE(eyes)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < ALL; i++) {
                lg_tensor *t = lg_eye(c, 2, 3, .dtype = all[i]);
                assert_int_equal(lg_dtype_of(t), all[i]);
                assert_list(t, 0, 1, 0, 0, 0, 1, 0);
                assert_list(lg_eye(c, 3, 2, .dtype = all[i]), 0, 1, 0, 0, 1, 0, 0);
        }
        lg_tensor *t = lg_eye(c, 3, 3, .requires_grad = true);
        assert_int_equal(lg_dtype_of(t), LG_F32);
        assert_list(t, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
        lg_backward(lg_sum(lg_square(t)));
        assert_list(lg_grad_of(t), 0, 2, 0, 0, 0, 2, 0, 0, 0, 2);
        assert_list(lg_eye(c, 1, 1), 0, 1);
        lg_tensor *empty[] = {lg_eye(c, 0, 0), lg_eye(c, 0, 4), lg_eye(c, 4, 0)};
        for (int i = 0; i < 3; i++) {
                assert_int_equal(lg_ndim_of(empty[i]), 2);
                assert_int_equal(lg_numel(empty[i]), 0);
        }
        assert_int_equal(lg_size_of(empty[2], 0), 4);
        t = lg_sum(lg_eye(c, 700, 500));
        assert_near(lg_item(t), 500, 0);
        assert_ok(c);
        assert_null(lg_eye(c, -1, 3));
        assert_error(c, LG_ERR_SHAPE, "lg_eye: the shape (-1, 3)");
        assert_null(lg_eye(c, INT64_MAX, INT64_MAX));
        assert_error(c, LG_ERR_SHAPE, "lg_eye");
        assert_null(lg_eye(c, 2, 2, .dtype = LG_U8, .requires_grad = true));
        assert_error(c, LG_ERR_DTYPE, "lg_eye: requires_grad");
        lg_close(c);
}

/* PyTorch's numbers, torch.linspace in float64. */
TEST_CASE(even_spaces)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = lg_linspace(c, -1, 2, 7);
        assert_int_equal(lg_dtype_of(t), LG_F32);
        assert_list(t, 0, -1, -0.5, 0, 0.5, 1, 1.5, 2);
        assert_list(lg_linspace(c, 0.1, 0.7, 6, .dtype = LG_F64), 1e-16, 0.10000000000000001, 0.22, 0.33999999999999997,
                    0.45999999999999996, 0.57999999999999996, 0.69999999999999996);
        assert_list(lg_linspace(c, 3, -2.2, 5, .dtype = LG_F64), 1e-15, 3, 1.7, 0.39999999999999991,
                    -0.90000000000000013, -2.2000000000000002);
        assert_list(lg_linspace(c, 5, 1, 2), 0, 5, 1);
        assert_list(lg_linspace(c, 5, 1, 1), 0, 5);
        assert_list(lg_linspace(c, 5, 5, 3), 0, 5, 5, 5);
        assert_int_equal(lg_numel(lg_linspace(c, 5, 1, 0)), 0);
        /* both ends are exact, and one half mirrors the other */
        enum { N = 1001 };
        double v[N];
        for (int64_t n = 2; n <= N; n += 37) {
                read_all(lg_linspace(c, -0.1, 0.1, n, .dtype = LG_F64), v, N);
                assert_true(v[0] == -0.1 && v[n - 1] == 0.1);
                for (int64_t i = 0; i < n; i++)
                        assert_true(v[i] == -v[n - 1 - i] || 2 * i + 1 == n);
        }
        /* computed in f64 and rounded once, of any magnitude */
        const lg_dtype dtypes[] = {LG_F32, LG_F16, LG_BF16};
        for (int d = 0; d < 3; d++) {
                double wide[100], narrow[100];
                lg_tensor *exact = lg_linspace(c, 0.3, 77.7, 100, .dtype = LG_F64);
                read_all(lg_cast(exact, dtypes[d]), wide, 100);
                t = lg_linspace(c, 0.3, 77.7, 100, .dtype = dtypes[d]);
                assert_int_equal(lg_dtype_of(t), dtypes[d]);
                read_all(t, narrow, 100);
                assert_memory_equal(wide, narrow, sizeof wide);
        }
        const double most = 0x1.fffffffffffffp1023;
        assert_list(lg_linspace(c, -most, most, 3, .dtype = LG_F64), 0, -most, 0, most);
        assert_list(lg_linspace(c, -most, most, 2, .dtype = LG_F64), 0, -most, most);
        assert_list(lg_linspace(c, 0, 1e39, 2), 0, 0, INFINITY);
        assert_ok(c);
        assert_null(lg_linspace(c, 0, 1, -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_linspace: count is -1");
        assert_null(lg_linspace(c, 0, NAN, 3));
        assert_error(c, LG_ERR_ARGUMENT, "lg_linspace: from 0 to nan");
        assert_null(lg_linspace(c, -INFINITY, 1, 0));
        assert_error(c, LG_ERR_ARGUMENT, "lg_linspace: from -inf");
        assert_null(lg_linspace(c, 0, 1, 3, .dtype = LG_I64));
        assert_error(c, LG_ERR_DTYPE, "lg_linspace: dtype i64");
        assert_null(lg_linspace(c, 0, 1, 3, .dtype = (lg_dtype)99));
        assert_error(c, LG_ERR_DTYPE, "lg_linspace: 99 is no dtype");
        assert_null(lg_linspace(c, 0, 1, INT64_MAX));
        assert_error(c, LG_ERR_SHAPE, "lg_linspace");
        lg_tensor *w = lg_linspace(c, 1, 3, 3, .requires_grad = true);
        lg_backward(lg_sum(lg_square(w)));
        assert_list(lg_grad_of(w), 0, 2, 4, 6);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *make(lg_ctx *c, void *user)
{
        const int k = *(const int *)user;
        return k == 0   ? lg_eye(c, 300, 500, .requires_grad = true)
               : k == 1 ? lg_linspace(c, 0, 1, 100000)
                        : lg_zeros_like(lg_expand(lg_scalar(c, 1), LG_SHAPE(100000)));
}

/* What is made in several steps leaves nothing behind where one of them finds no memory. */
TEST_CASE(made_without_memory)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        drop(lg_ones(c, LG_SHAPE(1)));
        for (int k = 0; k < 3; k++)
                assert_true(fail_each(c, &f, k < 2, make, &k) > 1);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}

/* A message holds the longest shape that there can be, and takes what is no shape. */
TEST_CASE(longest_shapes)
{
        lg_ctx *c = open_ctx();
        lg_shape low = {.ndim = 8}, high = {.ndim = 8};
        for (int i = 0; i < 8; i++) {
                low.size[i] = INT64_MIN;
                high.size[i] = INT64_MAX;
        }
        assert_null(lg_zeros(c, low));
        assert_error(c, LG_ERR_SHAPE, "-9223372036854775808, -9223372036854775808) has a negative size");
        assert_null(lg_zeros(c, high));
        assert_error(c, LG_ERR_SHAPE, "9223372036854775807, 9223372036854775807) has too many elements");
        const int ndims[] = {9, 100, INT32_MAX, -1, INT32_MIN};
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        for (int i = 0; i < 5; i++) {
                low.ndim = ndims[i];
                assert_null(lg_zeros(c, low));
                assert_error(c, LG_ERR_SHAPE, "dimensions");
                assert_null(lg_reshape(x, low));
                assert_error(c, LG_ERR_SHAPE, "reshape");
                assert_null(lg_expand(x, low));
                assert_error(c, LG_ERR_SHAPE, "expand");
        }
        lg_close(c);
}

/* Integer dtypes take what they hold; the limits are those of the types. */
TEST_CASE(constants_out_of_range)
{
        lg_ctx *c = open_ctx();
        const struct {
                lg_dtype dtype;
                double low, high, below, above;
                const char *text;
        } rows[] = {
                {LG_U8, 0, 255, -1, 256, "of u8, 0 to 255"},
                {LG_I32, INT32_MIN, INT32_MAX, INT32_MIN - 1.0, 0x1p31, "of i32, -2147483648 to 2147483647"},
                {LG_I64, -0x1p63, 0x1p63 - 1024, -0x1.0000000000001p63, 0x1p63, "of i64, -9223372036854775808 to"},
        };
        for (int i = 0; i < 3; i++) {
                const lg_dtype d = rows[i].dtype;
                lg_tensor *x = lg_full(c, LG_SHAPE(1), rows[i].low, .dtype = d);
                assert_int_equal(lg_item_i64(x), (int64_t)rows[i].low);
                assert_int_equal(lg_item_i64(lg_scalar(c, rows[i].high, .dtype = d)), (int64_t)rows[i].high);
                const double bad[] = {rows[i].below, rows[i].above, 1e300, -INFINITY, INFINITY, NAN};
                for (int k = 0; k < 6; k++) {
                        assert_null(lg_full(c, LG_SHAPE(2), bad[k], .dtype = d));
                        assert_error(c, LG_ERR_ARGUMENT, rows[i].text);
                        assert_null(lg_full(c, LG_SHAPE(0), bad[k], .dtype = d));
                        assert_error(c, LG_ERR_ARGUMENT, "lg_full");
                        assert_null(lg_scalar(c, bad[k], .dtype = d));
                        assert_error(c, LG_ERR_ARGUMENT, "lg_scalar");
                        assert_false(lg_fill_(x, bad[k]));
                        assert_error(c, LG_ERR_ARGUMENT, "lg_fill_");
                }
                assert_int_equal(lg_item_i64(x), (int64_t)rows[i].low);
        }
        assert_list(lg_full(c, LG_SHAPE(1), 255.9, .dtype = LG_U8), 0, 255); /* cut, as in C */
        assert_list(lg_full(c, LG_SHAPE(1), -0.9, .dtype = LG_U8), 0, 0);
        assert_list(lg_full(c, LG_SHAPE(1), NAN, .dtype = LG_BOOL), 0, 1);
        assert_list(lg_full(c, LG_SHAPE(1), 1e300, .dtype = LG_F16), 0, INFINITY);
        assert_ok(c);
        lg_close(c);
}

/* Whole ranges are exact up to 2^53, where doubles stop to be, and refused beyond; likewise beyond the dtype. */
TEST_CASE(ranges_of_integers)
{
        lg_ctx *c = open_ctx();
        const double top = 0x1p53;
        lg_tensor *t = lg_arange(c, top - 2, top + 2, 2); /* stop itself is no value */
        assert_int_equal(lg_dtype_of(t), LG_I64);
        assert_int_equal(lg_numel(t), 2);
        assert_int_equal(lg_item_i64(lg_select(t, 0, 1)), (int64_t)1 << 53);
        assert_list(lg_arange(c, -top, -top - 2, -2), 0, -top);
        /* (2^53 - 1) / (2^53 - 2) is 1 in doubles, yet there are two */
        t = lg_arange(c, 0, top - 1, top - 2);
        assert_list(t, 0, 0, top - 2);
        assert_list(lg_arange(c, 0, 2.5, 1, .dtype = LG_I32), 0, 0, 1, 2);
        assert_list(lg_arange(c, 2, -0.5, -1, .dtype = LG_I64), 0, 2, 1, 0);
        assert_list(lg_arange(c, 250, 256, 5, .dtype = LG_U8), 0, 250, 255);
        assert_int_equal(lg_numel(lg_arange(c, 300, 0, 1, .dtype = LG_U8)), 0); /* no value at all */
        assert_int_equal(lg_numel(lg_arange(c, 1e300, -1e300, 1, .dtype = LG_F64)), 0);
        const struct {
                double start, stop, step;
                lg_dtype dtype;
                const char *text;
        } bad[] = {
                {top, top + 3, 1, LG_DTYPE_NONE, "2^53"},
                {0, 1e20, 1e19, LG_DTYPE_NONE, "2^53"},
                {0, 0x1p55, top, LG_I64, "2^53"},
                {-1e300, 0, 1e299, LG_DTYPE_NONE, "as i64"},
                {0.5, 3, 1, LG_I64, "whole"},
                {0, 2, 0.5, LG_I32, "whole"},
                {0, 257, 1, LG_U8, "of u8, 0 to 255"},
                {1, -2, -1, LG_U8, "of u8, 0 to 255"},
                {-1, 3, 1, LG_U8, "of u8"},
                {0x1p31 - 2, 0x1p31 + 1, 1, LG_I32, "of i32"},
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                assert_null(lg_arange(c, bad[i].start, bad[i].stop, bad[i].step, .dtype = bad[i].dtype));
                assert_error(c, LG_ERR_ARGUMENT, bad[i].text);
        }
        assert_int_equal(lg_numel(lg_arange(c, 0, 1e20, 1e19, .dtype = LG_F32)), 10);
        assert_null(lg_arange(c, -1e308, 1e308, 1));
        assert_error(c, LG_ERR_SHAPE, "too many");
        assert_null(lg_permutation(c, INT64_MAX));
        assert_error(c, LG_ERR_SHAPE, "lg_permutation");
        lg_close(c);
}

TEST_CASE(shapes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = lg_zeros(c, LG_SHAPE(1, 2, 3, 1, 2, 1, 2, 2));
        assert_int_equal(lg_ndim_of(t), 8);
        assert_int_equal(lg_numel(t), 48);
        assert_int_equal(lg_size_of(t, 2), 3);
        assert_int_equal(lg_size_of(t, -1), 2);
        assert_int_equal(lg_size_of(t, 8), -1);
        assert_int_equal(lg_stride_of(t, 1), 24);
        assert_int_equal(lg_stride_of(t, -1), 1);
        assert_true(lg_is_contiguous(t));
        assert_ptr_equal(lg_ctx_of(t), c);
        t = lg_zeros(c, LG_SHAPE(3, 0, 2));
        assert_int_equal(lg_numel(t), 0);
        double nothing[1];
        assert_true(lg_read(t, nothing, LG_F64, 0));
        assert_int_equal(lg_numel(lg_add(t, t)), 0);
        t = lg_zeros(c, LG_SHAPE_0D);
        assert_int_equal(lg_ndim_of(t), 0);
        assert_int_equal(lg_numel(t), 1);
        drop(lg_zeros(c, LG_SHAPE(2, -3)));
        assert_error(c, LG_ERR_SHAPE, "");
        drop(lg_full(c, ((lg_shape){.ndim = 9}), 0));
        assert_error(c, LG_ERR_SHAPE, "");
        drop(lg_zeros(c, LG_SHAPE(2), .dtype = (lg_dtype)77));
        assert_error(c, LG_ERR_DTYPE, "");
        drop(lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64, .requires_grad = true));
        assert_error(c, LG_ERR_DTYPE, "requires_grad");
        lg_close(c);
}

TEST_CASE(reading_and_writing)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = lg_from(c, ((float[]){1.5f, -2.5f, 3}), LG_SHAPE(3));
        int32_t ints[3];
        assert_true(lg_read(t, ints, LG_I32, sizeof ints));
        assert_int_equal(ints[0], 1);
        assert_int_equal(ints[1], -2);
        bool bools[3];
        assert_true(lg_read(t, bools, LG_BOOL, sizeof bools));
        assert_true(bools[0] && bools[1] && bools[2]);
        assert_true(lg_write(t, ((int64_t[]){4, 5, 6}), LG_I64, 24));
        assert_list(t, 0, 4, 5, 6);
        /* through a view with strides */
        lg_tensor *m = lg_arange(c, 0, 6, 1, .dtype = LG_F32), *column;
        m = lg_reshape(m, LG_SHAPE(2, 3));
        column = lg_select(m, 1, 1);
        assert_list(column, 0, 1, 4);
        assert_true(lg_write(column, ((double[]){10, 40}), LG_F64, 16));
        assert_list(m, 0, 0, 10, 2, 3, 40, 5);
        assert_list(lg_transpose(m, 0, 1), 0, 0, 3, 10, 40, 2, 5);
        lg_read(t, ints, LG_I32, 8);
        assert_error(c, LG_ERR_SHAPE, "8 bytes");
        lg_write(t, ints, LG_I32, 16);
        assert_error(c, LG_ERR_SHAPE, "16 bytes");
        lg_read(t, ints, LG_DTYPE_NONE, 12);
        assert_error(c, LG_ERR_DTYPE, "");
        assert_near(lg_item(lg_select(t, 0, 2)), 6, 0);
        assert_int_equal(lg_item_i64(lg_full(c, LG_SHAPE(1), 9007199254740993.0, .dtype = LG_I64)), 9007199254740992);
        assert_true(isnan(lg_item(t)));
        assert_error(c, LG_ERR_SHAPE, "item");
        int64_t big = INT64_MAX - 1;
        assert_int_equal(lg_item_i64(lg_from(c, &big, LG_SHAPE(1), .dtype = LG_I64)), big);
        lg_close(c);
}

/* Whatever byte stands for true outside, inside it is 1. */
TEST_CASE(bools_from_any_bytes)
{
        lg_ctx *c = open_ctx();
        const uint8_t bytes[6] = {0, 1, 2, 128, 255, 0};
        uint8_t back[6];
        lg_tensor *t = lg_from(c, bytes, LG_SHAPE(2, 3), .dtype = LG_BOOL);
        assert_true(lg_read(t, back, LG_BOOL, sizeof back));
        assert_memory_equal(back, ((uint8_t[]){0, 1, 1, 1, 1, 0}), 6);
        assert_near(lg_item(lg_sum(t)), 4, 0);
        t = lg_zeros(c, LG_SHAPE(3, 2), .dtype = LG_BOOL);
        assert_true(lg_write(lg_transpose(t, 0, 1), bytes, LG_BOOL, sizeof bytes));
        assert_true(lg_read(t, back, LG_BOOL, sizeof back));
        assert_memory_equal(back, ((uint8_t[]){0, 1, 1, 1, 1, 0}), 6);
        t = lg_zeros(c, LG_SHAPE(6)); /* into another dtype, too */
        assert_true(lg_write(t, bytes, LG_BOOL, sizeof bytes));
        assert_list(t, 0, 0, 1, 1, 1, 1, 0);
        assert_int_equal(lg_numel(lg_from(c, NULL, LG_SHAPE(0), .dtype = LG_BOOL)), 0);
        assert_null(lg_from(c, NULL, LG_SHAPE(1), .dtype = LG_BOOL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_from: data is NULL");
        /* memory that is not where numbers of its type may be */
        _Alignas(8) char host[32] = {0};
        assert_false(lg_write(t, host + 1, LG_F32, 24));
        assert_error(c, LG_ERR_ARGUMENT, "lg_write: data is not aligned for f32");
        assert_false(lg_read(lg_sum(t), host + 4, LG_F64, 8));
        assert_error(c, LG_ERR_ARGUMENT, "lg_read: data is not aligned for f64");
        assert_list(lg_from(c, (const void *)(host + 1), LG_SHAPE(2), .dtype = LG_F32), 0, 0, 0); /* is only copied */
        lg_close(c);
}

static int released;
static void release(void *user)
{
        released += *(int *)user;
}

TEST_CASE(borrowing)
{
        lg_ctx *c = lg_open();
        float data[4] = {1, 2, 3, 4};
        int one = 1;
        released = 0;
        lg_scope s = lg_scope_begin(c);
        lg_tensor *t = lg_borrow(c, data, release, &one, LG_SHAPE(2, 2));
        lg_tensor *view = lg_keep(lg_select(t, 0, 1));
        data[3] = 40; /* not a copy */
        assert_list(t, 0, 1, 2, 3, 40);
        lg_fill_(lg_select(t, 0, 0), 9);
        assert_true(data[0] == 9 && data[1] == 9);
        lg_scope_end(c, s);
        assert_int_equal(released, 0); /* the view needs it */
        lg_free(view);
        assert_int_equal(released, 1);
        assert_null(lg_borrow(c, data, release, &one, LG_SHAPE(-2)));
        assert_int_equal(released, 2);
        assert_error(c, LG_ERR_SHAPE, "lg_borrow");
        assert_null(lg_borrow(c, NULL, release, &one, LG_SHAPE(2)));
        assert_int_equal(released, 3);
        assert_error(c, LG_ERR_ARGUMENT, "lg_borrow");
        lg_device shadow = LG_DEVICE(LG_DEVICE_SHADOW, 0); /* refused whether it is there or not */
        assert_null(lg_borrow(c, data, release, &one, LG_SHAPE(2), .device = shadow));
        assert_int_equal(released, 4);
        assert_error(c, LG_ERR_DEVICE, "lg_borrow");
        assert_null(lg_borrow(NULL, data, release, &one, LG_SHAPE(2)));
        assert_int_equal(released, 5);
        assert_null(lg_borrow(c, data, NULL, NULL, LG_SHAPE(2), .device = LG_DEVICE(LG_DEVICE_CPU, 1)));
        assert_error(c, LG_ERR_DEVICE, "cpu:1");
        drop(lg_borrow(c, data, release, &one, LG_SHAPE(4)));
        drop(lg_borrow(c, data, NULL, NULL, LG_SHAPE(4)));
        lg_close(c);
        assert_int_equal(released, 6);
}

/* PyTorch's table: kinds bool < integer < float; within a kind the wider one; f16 and bf16 make f32. */
TEST_CASE(promotion)
{
        const lg_dtype order[] = {LG_BOOL, LG_U8, LG_I32, LG_I64, LG_F16, LG_BF16, LG_F32, LG_F64};
        for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) {
                        lg_dtype wanted = order[i > j ? i : j];
                        if ((order[i] == LG_F16 && order[j] == LG_BF16) || (order[i] == LG_BF16 && order[j] == LG_F16))
                                wanted = LG_F32;
                        assert_int_equal(lg_promote(order[i], order[j]), wanted);
                }
}
