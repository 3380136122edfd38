/* test_pool.c - pooling against PyTorch's numbers (data/pool.txt) and plain loops. */
#include "golden.h"

static lg_tensor *signals(lg_tensor *x)
{
        return lg_select(x, 2, 0);
}

#define ROWS(ROW)                                                                                                      \
        ROW(max_2, lg_max_pool2d(x, 2), 2, 2, 6, 5)                                                                    \
        ROW(max_3_2_1, lg_max_pool2d(x, 3, .stride = 2, .padding = 1), 2, 2, 6, 5)                                     \
        ROW(max_pairs,                                                                                                 \
            lg_max_pool2d(x, 0, .kernels = LG_PAIR(3, 2), .strides = LG_PAIR(2, 1), .paddings = LG_PAIR(1, 0),         \
                          .dilations = LG_PAIR(1, 2)),                                                                 \
            2, 2, 6, 5)                                                                                                \
        ROW(max_ceil, lg_max_pool2d(x, 3, .stride = 2, .ceil_mode = true), 2, 2, 6, 5)                                 \
        ROW(max_alone, lg_max_pool2d(lg_select(x, 0, 0), 2), 2, 2, 6, 5)                                               \
        ROW(avg_2, lg_avg_pool2d(x, 2), 2, 2, 6, 5)                                                                    \
        ROW(avg_3_2_1, lg_avg_pool2d(x, 3, .stride = 2, .padding = 1), 2, 2, 6, 5)                                     \
        ROW(avg_pairs,                                                                                                 \
            lg_avg_pool2d(x, 0, .kernels = LG_PAIR(3, 2), .strides = LG_PAIR(2, 1), .paddings = LG_PAIR(1, 0)), 2, 2,  \
            6, 5)                                                                                                      \
        ROW(avg_ceil, lg_avg_pool2d(x, 3, .stride = 2, .padding = 1, .ceil_mode = true), 2, 2, 6, 5)                   \
        ROW(avg_ceil_no_count,                                                                                         \
            lg_avg_pool2d(x, 3, .stride = 2, .padding = 1, .ceil_mode = true, .no_count_padding = true), 2, 2, 6, 5)   \
        ROW(avg_divisor, lg_avg_pool2d(x, 2, .divisor = 3), 2, 2, 6, 5)                                                \
        ROW(adaptive_avg_1, lg_adaptive_avg_pool2d(x, 1), 2, 2, 6, 5)                                                  \
        ROW(adaptive_avg_pair, lg_adaptive_avg_pool2d(x, 0, .sizes = LG_PAIR(4, 3)), 2, 2, 6, 5)                       \
        ROW(adaptive_avg_more, lg_adaptive_avg_pool2d(x, 0, .sizes = LG_PAIR(7, 8)), 2, 2, 6, 5)                       \
        ROW(adaptive_max, lg_adaptive_max_pool2d(x, 0, .sizes = LG_PAIR(4, 3)), 2, 2, 6, 5)                            \
        ROW(max_1d, lg_max_pool1d(signals(x), 2, .stride = 1), 2, 2, 6, 5)                                             \
        ROW(avg_1d, lg_avg_pool1d(signals(x), 3, .stride = 2, .padding = 1), 2, 2, 6, 5)                               \
        ROW(adaptive_avg_1d, lg_adaptive_avg_pool1d(lg_select(signals(x), 0, 0), 3), 2, 2, 6, 5)                       \
        ROW(adaptive_max_1d, lg_adaptive_max_pool1d(signals(x), 3), 2, 2, 6, 5)                                        \
        ROW(max_3d, lg_max_pool3d(x, 2), 2, 2, 5, 4, 6)                                                                \
        ROW(max_3d_3_2_1, lg_max_pool3d(x, 3, .stride = 2, .padding = 1, .ceil_mode = true), 2, 2, 5, 4, 6)            \
        ROW(max_3d_triples,                                                                                            \
            lg_max_pool3d(x, 0, .kernels = LG_TRIPLE(3, 2, 1), .strides = LG_TRIPLE(1, 2, 3),                          \
                          .paddings = LG_TRIPLE(1, 0, 0), .dilations = LG_TRIPLE(1, 2, 1)),                            \
            2, 2, 5, 4, 6)                                                                                             \
        ROW(max_3d_alone, lg_max_pool3d(lg_select(x, 0, 0), 0, .kernels = LG_TRIPLE(2, 1, 3)), 2, 2, 5, 4, 6)          \
        ROW(avg_3d, lg_avg_pool3d(x, 2), 2, 2, 5, 4, 6)                                                                \
        ROW(avg_3d_3_2_1, lg_avg_pool3d(x, 3, .stride = 2, .padding = 1, .ceil_mode = true), 2, 2, 5, 4, 6)            \
        ROW(avg_3d_no_count,                                                                                           \
            lg_avg_pool3d(x, 3, .stride = 2, .padding = 1, .ceil_mode = true, .no_count_padding = true), 2, 2, 5, 4,   \
            6)                                                                                                         \
        ROW(avg_3d_divisor, lg_avg_pool3d(x, 0, .kernels = LG_TRIPLE(2, 3, 1), .divisor = 5), 2, 2, 5, 4, 6)           \
        ROW(adaptive_avg_3d, lg_adaptive_avg_pool3d(x, 0, .sizes = LG_TRIPLE(3, 5, 4)), 2, 2, 5, 4, 6)                 \
        ROW(adaptive_avg_3d_1, lg_adaptive_avg_pool3d(lg_select(x, 0, 0), 1), 2, 2, 5, 4, 6)                           \
        ROW(adaptive_max_3d, lg_adaptive_max_pool3d(x, 0, .sizes = LG_TRIPLE(3, 2, 4)), 2, 2, 5, 4, 6)

GOLDEN_TEST(as_pytorch_computes_it, "pool.txt", golden_input, ROWS);

/* The places in volumes, (plane * height + row) * width + column, of the first of equals in row-major order. */
TEST_CASE(indices_in_volumes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *i = NULL, *x = lg_zeros(c, LG_SHAPE(2, 3, 5, 4, 6));
        lg_copy_(lg_select(lg_select(lg_select(x, 2, 3), 2, 1), 2, 2), lg_ones(c, LG_SHAPE(2, 3)));
        lg_copy_(lg_select(lg_select(lg_select(x, 2, 3), 2, 2), 2, 0), lg_ones(c, LG_SHAPE(2, 3)));
        lg_tensor *y = lg_adaptive_max_pool3d(x, 1, .indices = &i);
        assert_list(y, 0, 1, 1, 1, 1, 1, 1);
        assert_int_equal(lg_dtype_of(i), LG_I64);
        assert_list(i, 0, 80, 80, 80, 80, 80, 80);
        x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 5, 4, 6));
        y = lg_max_pool3d(x, 3, .stride = 2, .padding = 1, .indices = &i);
        assert_shape(i, lg_shape_of(y));
        double v[200];
        int64_t n = read_all(y, v, 200);
        lg_tensor *at = lg_gather(lg_reshape(x, LG_SHAPE(2, 3, 120)), 2, lg_reshape(i, LG_SHAPE(2, 3, -1)));
        assert_values(lg_reshape(at, lg_shape_of(y)), v, n, 0);
        lg_tensor *alone = lg_max_pool3d(lg_select(x, 0, 1), 2, .indices = &i);
        assert_shape(alone, LG_SHAPE(3, 2, 2, 3));
        assert_shape(i, LG_SHAPE(3, 2, 2, 3));
        assert_list(lg_adaptive_max_pool1d(lg_from(c, ((float[]){3, 1, 2, 7}), LG_SHAPE(1, 4)), 2, .indices = &i), 0, 3,
                    7);
        assert_list(i, 0, 0, 3);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(volumes_of_other_dtypes_and_sizes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 4, 6, 5), .dtype = LG_F64), *i;
        double v[400];
        int64_t n = read_all(lg_max_pool3d(x, 2), v, 400);
        assert_values(lg_max_pool3d(lg_cast(x, LG_F16), 2), v, n, 2e-3);
        n = read_all(lg_avg_pool3d(x, 3, .padding = 1), v, 400);
        lg_tensor *half = lg_avg_pool3d(lg_cast(x, LG_BF16), 3, .padding = 1);
        assert_int_equal(lg_dtype_of(half), LG_BF16);
        assert_values(half, v, n, 1e-2);
        assert_shape(lg_max_pool3d(lg_zeros(c, LG_SHAPE(0, 2, 4, 4, 4)), 2, .indices = &i), LG_SHAPE(0, 2, 2, 2, 2));
        assert_shape(lg_avg_pool3d(lg_zeros(c, LG_SHAPE(0, 2, 4, 4, 4)), 2), LG_SHAPE(0, 2, 2, 2, 2));
        assert_shape(lg_adaptive_avg_pool3d(lg_zeros(c, LG_SHAPE(2, 0, 4, 4, 4)), 3), LG_SHAPE(2, 0, 3, 3, 3));
        assert_ok(c);
        assert_fails(c, lg_max_pool3d(lg_zeros(c, LG_SHAPE(2, 3, 4)), 2), LG_ERR_SHAPE, "(N, C, D, H, W)");
        assert_fails(c, lg_max_pool3d(x, 5), LG_ERR_SHAPE, "max_pool3d: x is");
        assert_fails(c, lg_max_pool3d(x, 0), LG_ERR_ARGUMENT, "max_pool3d: kernel 0");
        assert_fails(c, lg_avg_pool3d(x, 2, .paddings = LG_TRIPLE(2, 0, 0)), LG_ERR_ARGUMENT, "half of kernel 2");
        assert_fails(c, lg_avg_pool3d(x, 2, .divisor = -1), LG_ERR_ARGUMENT, "divisor -1");
        assert_fails(c, lg_adaptive_avg_pool3d(x, 0), LG_ERR_ARGUMENT, "0 of 4 pixels");
        assert_fails(c, lg_max_pool3d(lg_zeros(c, LG_SHAPE(1, 2, 0, 4, 4)), 2), LG_ERR_SHAPE, "may be empty");
        lg_close(c);
}

/* The places that PyTorch names: row * width + column. */
TEST_CASE(indices)
{
        lg_ctx *c = open_ctx();
        lg_tensor *i = NULL, *x = lg_from(c, ((float[]){1, 5, 2, 0, 5, 3, 9, 9, 4, 4, 4, 4}), LG_SHAPE(1, 1, 3, 4));
        assert_list(lg_max_pool2d(x, 2, .stride = 1, .indices = &i), 0, 5, 9, 9, 5, 9, 9);
        assert_int_equal(lg_dtype_of(i), LG_I64);
        assert_int_equal(lg_ndim_of(i), 4);
        assert_list(i, 0, 1, 6, 6, 4, 6, 6);
        assert_list(lg_adaptive_max_pool2d(x, 1, .indices = &i), 0, 9);
        assert_list(i, 0, 6);
        lg_tensor *signal = lg_from(c, ((float[]){3, 1, NAN, 2, NAN, 7}), LG_SHAPE(1, 6));
        assert_list(lg_max_pool1d(signal, 3, .indices = &i), 0, NAN, NAN);
        assert_list(i, 0, 2, 4);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(strided_and_other_dtypes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 7, 4), .dtype = LG_F64);
        lg_tensor *turned = lg_permute(lg_contiguous(lg_permute(x, LG_DIMS(3, 1, 0, 2))), LG_DIMS(2, 1, 3, 0));
        double v[2 * 5 * 7 * 4];
        int64_t n = read_all(lg_max_pool2d(x, 2), v, 280);
        assert_values(lg_max_pool2d(turned, 2), v, n, 0);
        assert_values(lg_max_pool2d(lg_cast(x, LG_F16), 2), v, n, 2e-3);
        assert_values(lg_max_pool2d(lg_cast(x, LG_BF16), 2), v, n, 1.6e-2);
        n = read_all(lg_avg_pool2d(x, 3, .padding = 1), v, 280);
        assert_values(lg_avg_pool2d(turned, 3, .padding = 1), v, n, 1e-15);
        assert_values(lg_avg_pool2d(lg_cast(x, LG_F16), 3, .padding = 1), v, n, 2e-3);
        assert_values(lg_avg_pool2d(lg_cast(x, LG_BF16), 3, .padding = 1), v, n, 1.6e-2);
        static const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                lg_tensor *one = lg_set_requires_grad(lg_cast(lg_detach(x), dtypes[d]), true);
                lg_backward(lg_sum(lg_add(lg_max_pool2d(one, 2), lg_slice(lg_avg_pool2d(one, 2), 0, 0, LG_MAX))));
                assert_near(lg_item(lg_sum(lg_cast(lg_grad_of(one), LG_F64))), 2 * 2 * 5 * 3 * 2, 1e-2);
        }
        assert_int_equal(lg_numel(lg_max_pool2d(lg_zeros(c, LG_SHAPE(0, 2, 4, 4)), 2)), 0);
        assert_int_equal(lg_numel(lg_adaptive_avg_pool2d(lg_zeros(c, LG_SHAPE(2, 0, 4, 4)), 2)), 0);
        assert_ok(c);
        lg_close(c);
}

/* The derivative of the gradient picks from where the greatest elements were: of x itself, it gives them again. */
TEST_CASE(second_derivatives)
{
        lg_ctx *c = open_ctx();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int i = 0; i < 8; i++) {
                double v[2 * 16 * 3 * 2];
                const lg_shape shape = LG_SHAPE(2, i % 2 ? 16 : 3, 6, 5);
                lg_tensor *x = lg_normal(c, 0, 1, shape, .dtype = dtypes[i / 2], .requires_grad = true), *dx, *picked;
                lg_tensor *y = lg_max_pool2d(x, 2);
                lg_tensor *g = lg_set_requires_grad(lg_detach(lg_mul_scalar(y, 0)), true);
                lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(g), .create_graph = true, .result = &dx);
                lg_grad(LG_LIST(lg_sum(lg_mul(dx, lg_detach(x)))), LG_LIST(g), .result = &picked);
                assert_ok(c);
                int64_t n = read_all(y, v, 2 * 16 * 3 * 2);
                assert_values(picked, v, n, 0);
        }
        lg_close(c);
}

/* Big enough for several threads: the same bits with one and with two. */
TEST_CASE(threads)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, 16, 33, 31), .requires_grad = true);
        float *a = malloc(sizeof *a * 6 * 16 * 33 * 31), *b = malloc(sizeof *a * 6 * 16 * 33 * 31);
        size_t bytes = sizeof *a * 6 * 16 * 33 * 31;
        for (int t = 1; t < 3; t++) {
                lg_set_threads(c, t);
                lg_clear_grad(x);
                lg_tensor *y = lg_max_pool2d(x, 3, .stride = 2, .padding = 1),
                          *m = lg_avg_pool2d(x, 3, .stride = 2, .padding = 1);
                lg_backward(lg_sum(lg_mul(y, m)));
                assert_true(lg_read(lg_grad_of(x), t == 1 ? a : b, LG_F32, bytes));
        }
        assert_memory_equal(a, b, bytes);
        free(a);
        free(b);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 2, 4, 5));
        drop(lg_max_pool2d(x, 0));
        assert_error(c, LG_ERR_ARGUMENT, "kernel 0");
        drop(lg_max_pool2d(x, 6));
        assert_error(c, LG_ERR_SHAPE, "greater than the input of 4");
        drop(lg_max_pool2d(x, 2, .padding = 2));
        assert_error(c, LG_ERR_ARGUMENT, "more than half");
        drop(lg_max_pool2d(x, 2, .stride = -1));
        assert_error(c, LG_ERR_ARGUMENT, "stride -1");
        drop(lg_max_pool2d(lg_ones(c, LG_SHAPE(4, 5)), 2));
        assert_error(c, LG_ERR_SHAPE, "(N, C, H, W)");
        drop(lg_max_pool1d(x, 2));
        assert_error(c, LG_ERR_SHAPE, "(N, C, L)");
        drop(lg_avg_pool2d(lg_cast(x, LG_I64), 2));
        assert_error(c, LG_ERR_DTYPE, "avg_pool2d");
        drop(lg_adaptive_max_pool2d(lg_cast(x, LG_I64), 2));
        assert_error(c, LG_ERR_DTYPE, "adaptive_max_pool2d: x is i64");
        drop(lg_avg_pool2d(x, 2, .divisor = -1));
        assert_error(c, LG_ERR_ARGUMENT, "divisor");
        drop(lg_adaptive_avg_pool2d(x, 0));
        assert_error(c, LG_ERR_ARGUMENT, "above 0");
        drop(lg_adaptive_avg_pool2d(lg_ones(c, LG_SHAPE(1, 2, 0, 4)), 2));
        assert_error(c, LG_ERR_SHAPE, "0 pixels");
        drop(lg_max_pool2d(x, INT32_MAX, .dilation = 4));
        assert_error(c, LG_ERR_SHAPE, "greater than the input of 4");
        lg_tensor *signal = lg_select(x, 2, 0);
        drop(lg_max_pool1d(signal, 0));
        assert_error(c, LG_ERR_ARGUMENT, "max_pool1d: kernel 0");
        drop(lg_avg_pool1d(signal, 0));
        assert_error(c, LG_ERR_ARGUMENT, "avg_pool1d: kernel 0");
        drop(lg_max_pool1d(signal, LG_ZERO_INT));
        assert_error(c, LG_ERR_ARGUMENT, "max_pool1d: kernel 0");
        drop(lg_max_pool1d(signal, 2, .stride = LG_ZERO_INT));
        assert_error(c, LG_ERR_ARGUMENT, "stride 0");
        drop(lg_max_pool1d(signal, 2, .dilation = LG_ZERO_INT));
        assert_error(c, LG_ERR_ARGUMENT, "dilation 0");
        drop(lg_adaptive_avg_pool1d(signal, 0));
        assert_error(c, LG_ERR_ARGUMENT, "above 0");
        lg_close(c);
}

/* PyTorch's errors: no dimension is empty but that of the batch. */
TEST_CASE(empty_images)
{
        lg_ctx *c = open_ctx();
        const lg_shape empty[] = {LG_SHAPE(2, 0, 4, 4), LG_SHAPE(2, 3, 0, 4), LG_SHAPE(2, 3, 4, 0),
                                  LG_SHAPE(0, 4, 4),    LG_SHAPE(3, 0, 4),    LG_SHAPE(2, 0, 10),
                                  LG_SHAPE(2, 3, 0),    LG_SHAPE(0, 10),      LG_SHAPE(3, 0)};
        for (int i = 0; i < 9; i++) {
                const int n = empty[i].ndim;
                lg_tensor *x = lg_zeros(c, empty[i]);
                for (int64_t padding = 0; padding < 2; padding++) {
                        drop(n > 3 || i < 5 ? lg_max_pool2d(x, 2, .padding = padding)
                                            : lg_max_pool1d(x, 2, .padding = padding));
                        assert_error(c, LG_ERR_SHAPE, "but that of the batch may be empty");
                        drop(n > 3 || i < 5 ? lg_avg_pool2d(x, 2, .padding = padding)
                                            : lg_avg_pool1d(x, 2, .padding = padding));
                        assert_error(c, LG_ERR_SHAPE, "but that of the batch may be empty");
                }
        }
        assert_shape(lg_max_pool1d(lg_zeros(c, LG_SHAPE(0, 3, 10)), 2), LG_SHAPE(0, 3, 5));
        assert_shape(lg_adaptive_avg_pool1d(lg_zeros(c, LG_SHAPE(2, 0, 10)), 2), LG_SHAPE(2, 0, 2));
        assert_ok(c);
        drop(lg_adaptive_max_pool2d(lg_zeros(c, LG_SHAPE(2, 0, 4, 4)), 2));
        assert_error(c, LG_ERR_SHAPE, "may be empty");
        lg_close(c);
}
