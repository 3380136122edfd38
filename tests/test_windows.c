/* test_windows.c - windows of images and images in another order: PyTorch's numbers (data/windows.txt), layers, empty
 * tensors, dtypes, wrong arguments. */
#include "golden.h"

/* Element i of the first dimension. */
static lg_tensor *first(lg_tensor *x)
{
        return lg_select(x, 0, 0);
}

/* (7 i + 3) mod 64 / 64 of x's dtype: the random numbers of fractional pools. */
static lg_tensor *samples_of(lg_ctx *c, const lg_tensor *x, lg_shape shape)
{
        return lg_cast(lg_div_scalar(lg_cast(golden_index(c, shape, 64), LG_F64), 64), lg_dtype_of(x));
}

/* A fractional pool, or its indices as a result of y. */
#define FRACTIONAL_OF(sides)                                                                                           \
        static lg_tensor *fractional##sides(lg_ctx *c, lg_tensor *x, int64_t kernel, bool indices,                     \
                                            lg_fractional_max_pool##sides##d_options o)                                \
        {                                                                                                              \
                lg_tensor *i = NULL;                                                                                   \
                o.samples = samples_of(c, x, LG_SHAPE(lg_size_of(x, 0), lg_size_of(x, 1), sides));                     \
                o.indices = &i;                                                                                        \
                lg_tensor *y = lg_fractional_max_pool##sides##d_with(x, kernel, &o);                                   \
                return indices ? lg_add(lg_mul_scalar(y, 0), lg_cast(i, lg_dtype_of(y))) : y;                          \
        }
FRACTIONAL_OF(2)
FRACTIONAL_OF(3)
#define UNPACK(...) __VA_ARGS__
#define FRACTIONAL(ROW, name, sides, kernel, options, ...)                                                             \
        FRACTIONAL_ROW(ROW, name, sides, kernel, false, (UNPACK options), __VA_ARGS__)                                 \
        FRACTIONAL_ROW(ROW, name##_indices, sides, kernel, true, (UNPACK options), __VA_ARGS__)
#define FRACTIONAL_ROW(ROW, name, sides, kernel, indices, options, ...)                                                \
        ROW(name,                                                                                                      \
            fractional##sides(c, x, kernel, indices,                                                                   \
                              *LG_OPTIONS(lg_fractional_max_pool##sides##d_options, UNPACK options)),                  \
            __VA_ARGS__)
#define ROWS(ROW)                                                                                                      \
        ROW(unfold, lg_unfold(x, 2), 2, 3, 5, 7)                                                                       \
        ROW(unfold_padded, lg_unfold(x, 3, .padding = 1, .stride = 2), 2, 3, 5, 7)                                     \
        ROW(unfold_pairs,                                                                                              \
            lg_unfold(x, 0, .kernels = LG_PAIR(2, 3), .dilations = LG_PAIR(2, 1), .paddings = LG_PAIR(0, 2),           \
                      .strides = LG_PAIR(1, 3)),                                                                       \
            2, 3, 5, 7)                                                                                                \
        ROW(unfold_alone, lg_unfold(first(x), 0, .kernels = LG_PAIR(5, 1), .stride = 3), 2, 3, 5, 7)                   \
        ROW(fold, lg_fold(x, 4, 2), 2, 8, 9)                                                                           \
        ROW(fold_apart, lg_fold(x, 4, 2, .stride = 2), 2, 8, 4)                                                        \
        ROW(fold_padded, lg_fold(x, 0, 3, .sizes = LG_PAIR(5, 7), .padding = 1, .stride = 2), 1, 18, 12)               \
        ROW(fold_pairs,                                                                                                \
            lg_fold(x, 0, 0, .sizes = LG_PAIR(5, 7), .kernels = LG_PAIR(2, 3), .dilations = LG_PAIR(2, 1),             \
                    .paddings = LG_PAIR(0, 2), .strides = LG_PAIR(1, 3)),                                              \
            2, 6, 9)                                                                                                   \
        ROW(fold_alone, lg_fold(first(x), 0, 2, .sizes = LG_PAIR(5, 4), .dilation = 2), 2, 8, 6)                       \
        ROW(pixel_shuffle, lg_pixel_shuffle(x, 2), 2, 8, 3, 2)                                                         \
        ROW(pixel_shuffle_alone, lg_pixel_shuffle(x, 3), 9, 2, 1)                                                      \
        ROW(pixel_shuffle_more, lg_pixel_shuffle(x, 2), 2, 1, 2, 4, 2, 3)                                              \
        ROW(pixel_unshuffle, lg_pixel_unshuffle(x, 2), 2, 3, 4, 6)                                                     \
        ROW(pixel_unshuffle_more, lg_pixel_unshuffle(x, 3), 1, 2, 2, 3, 6)                                             \
        ROW(channel_shuffle, lg_channel_shuffle(x, 3), 2, 6, 3, 2)                                                     \
        ROW(channel_shuffle_signals, lg_channel_shuffle(x, 2), 2, 8, 3)                                                \
        ROW(channel_shuffle_volumes, lg_channel_shuffle(x, 2), 1, 4, 2, 1, 3)                                          \
        ROW(response, lg_local_response_norm(x, 5), 2, 7, 3, 2)                                                        \
        ROW(response_even, lg_local_response_norm(x, 4, .alpha = 2, .beta = 0.5, .k = 0.7), 2, 7, 3, 2)                \
        ROW(response_wide, lg_local_response_norm(x, 9, .alpha = 1, .beta = -1.5, .k = 3), 2, 3, 2)                    \
        ROW(response_volumes, lg_local_response_norm(x, 3, .alpha = 1), 2, 5, 2, 1, 2)                                 \
        ROW(lp_2, lg_lp_pool2d(x, 2, 2), 2, 3, 5, 7)                                                                   \
        ROW(lp_3, lg_lp_pool2d(lg_abs(x), 3, 0, .kernels = LG_PAIR(2, 3), .strides = LG_PAIR(1, 2)), 2, 3, 5, 7)       \
        ROW(lp_ceil, lg_lp_pool2d(x, 2, 3, .stride = 2, .ceil_mode = true), 2, 3, 5, 7)                                \
        ROW(lp_root, lg_lp_pool2d(lg_abs(x), 0.5, 2, .stride = 3), 2, 3, 5, 7)                                         \
        ROW(lp_of_zeros, lg_lp_pool2d(lg_relu(x), 2, 0, .kernels = LG_PAIR(1, 2)), 2, 3, 5, 7)                         \
        ROW(lp_alone, lg_lp_pool2d(first(x), 4, 2, .stride = 1), 2, 3, 5, 7)                                           \
        ROW(lp_1d, lg_lp_pool1d(first(x), 2, 3, .stride = 2), 2, 3, 5, 7)                                              \
        ROW(lp_1d_ceil, lg_lp_pool1d(first(first(x)), 2, 3, .stride = 2, .ceil_mode = true), 2, 3, 5, 7)               \
        ROW(lp_3d, lg_lp_pool3d(x, 2, 2), 2, 2, 3, 4, 5)                                                               \
        ROW(lp_3d_ceil,                                                                                                \
            lg_lp_pool3d(x, 2, 0, .kernels = LG_TRIPLE(1, 2, 3), .strides = LG_TRIPLE(1, 2, 2), .ceil_mode = true), 2, \
            2, 3, 4, 5)                                                                                                \
        ROW(unpool, lg_max_unpool2d(x, I64(24, 2, 2, 2, 3), 2), 2, 2, 2, 3)                                            \
        ROW(unpool_equal, lg_max_unpool2d(x, I64(4, 2, 2, 2, 3), 2), 2, 2, 2, 3)                                       \
        ROW(unpool_padded, lg_max_unpool2d(x, I64(15, 2, 2, 2, 3), 3, .stride = 2, .padding = 1), 2, 2, 2, 3)          \
        ROW(unpool_pairs,                                                                                              \
            lg_max_unpool2d(x, I64(20, 2, 2, 2, 3), 0, .kernels = LG_PAIR(2, 3), .strides = LG_PAIR(3, 1),             \
                            .paddings = LG_PAIR(0, 1), .sizes = LG_PAIR(7, 3)),                                        \
            2, 2, 2, 3)                                                                                                \
        ROW(unpool_alone, lg_max_unpool2d(first(x), I64(35, 2, 2, 3), 2, .sizes = LG_PAIR(5, 7)), 2, 2, 2, 3)          \
        ROW(unpool_1d, lg_max_unpool1d(first(x), I64(6, 2, 2, 3), 2), 2, 2, 2, 3)                                      \
        ROW(unpool_1d_size, lg_max_unpool1d(first(first(x)), I64(8, 2, 3), 3, .stride = 2, .size = 8), 2, 2, 2, 3)     \
        ROW(unpool_3d, lg_max_unpool3d(x, I64(48, 2, 1, 2, 1, 3), 2), 2, 1, 2, 1, 3)                                   \
        ROW(unpool_3d_size, lg_max_unpool3d(first(x), I64(40, 1, 2, 1, 3), 2, .sizes = LG_TRIPLE(4, 2, 5)), 2, 1, 2,   \
            1, 3)                                                                                                      \
        FRACTIONAL(ROW, fractional, 2, 2, (.size = 5), 2, 3, 9, 11)                                                    \
        FRACTIONAL(ROW, fractional_pairs, 2, 0, (.sizes = LG_PAIR(4, 7), .kernels = LG_PAIR(3, 2)), 2, 3, 9, 11)       \
        FRACTIONAL(ROW, fractional_ratio, 2, 2, (.ratio = 0.6), 2, 3, 9, 11)                                           \
        FRACTIONAL(ROW, fractional_ratios, 2, 2, (.ratios = LG_NUMBERS(0.4, 0.8)), 2, 3, 9, 11)                        \
        FRACTIONAL(ROW, fractional_one, 2, 0, (.sizes = LG_PAIR(1, 9), .kernels = LG_PAIR(2, 3)), 2, 3, 9, 11)         \
        FRACTIONAL(ROW, fractional_3d, 3, 2, (.sizes = LG_TRIPLE(3, 4, 4)), 2, 2, 5, 6, 7)                             \
        FRACTIONAL(ROW, fractional_3d_ratio, 3, 0, (.ratio = 0.5, .kernels = LG_TRIPLE(1, 2, 3)), 2, 2, 5, 6, 7)

GOLDEN_TEST(as_pytorch_computes_it, "windows.txt", golden_input, ROWS);

/* ---- layers ---- */

#define SAME_AS(op, layer, ...)                                                                                        \
        do {                                                                                                           \
                double v_[400];                                                                                        \
                const int64_t n_ = read_all(op, v_, 400);                                                              \
                assert_values(lg_forward(layer, __VA_ARGS__), v_, n_, 0);                                              \
                assert_ok(c);                                                                                          \
        } while (0)

TEST_CASE(layers)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 4, 4, 6)), *line = lg_select(x, 2, 0), *i = NULL;
        lg_tensor *v = lg_reshape(x, LG_SHAPE(2, 1, 4, 4, 6));
        double ratios[] = {0.5, 0.6};
        SAME_AS(lg_pixel_shuffle(x, 2), lg_nn_pixel_shuffle(c, 2), x);
        SAME_AS(lg_pixel_unshuffle(x, 2), lg_nn_pixel_unshuffle(c, 2), x);
        SAME_AS(lg_channel_shuffle(x, 2), lg_nn_channel_shuffle(c, 2), x);
        SAME_AS(lg_unfold(x, 2, .stride = 2), lg_nn_unfold(c, 2, .stride = 2), x);
        SAME_AS(lg_fold(line, 0, 2, .sizes = LG_PAIR(3, 4)), lg_nn_fold(c, 0, 2, .sizes = LG_PAIR(3, 4)), line);
        SAME_AS(lg_local_response_norm(x, 3, .alpha = 2), lg_nn_local_response_norm(c, 3, .alpha = 2), x);
        SAME_AS(lg_lp_pool1d(line, 2, 3), lg_nn_lp_pool1d(c, 2, 3), line);
        SAME_AS(lg_lp_pool2d(x, 4, 2), lg_nn_lp_pool2d(c, 4, 2), x);
        SAME_AS(lg_lp_pool3d(v, 2, 2), lg_nn_lp_pool3d(c, 2, 2), v);
        lg_tensor *y = lg_max_pool1d(line, 2, .indices = &i);
        SAME_AS(lg_max_unpool1d(y, i, 2), lg_nn_max_unpool1d(c, 2), y, i);
        y = lg_max_pool2d(x, 2, .indices = &i);
        SAME_AS(lg_max_unpool2d(y, i, 2), lg_nn_max_unpool2d(c, 2), y, i);
        y = lg_max_pool3d(v, 2, .indices = &i);
        SAME_AS(lg_max_unpool3d(y, i, 2), lg_nn_max_unpool3d(c, 2), y, i);
        lg_module *by_ratios = lg_nn_fractional_max_pool2d(c, 2, .ratios = LG_NUMBERS_OF(2, ratios));
        ratios[0] = 77;
        assert_shape(lg_forward(by_ratios, x), LG_SHAPE(2, 4, 2, 3));
        assert_shape(lg_forward(lg_nn_fractional_max_pool3d(c, 2, .size = 2), v), LG_SHAPE(2, 1, 2, 2, 2));
        assert_ok(c);
        assert_fails(c, lg_forward(lg_nn_max_unpool2d(c, 2), y), LG_ERR_ARGUMENT, "takes x and indices, 1 inputs");
        assert_fails(c, lg_nn_fractional_max_pool2d(c, 2, .ratios = LG_NUMBERS(0.1, 0.1, 0.1, 0.1)), LG_ERR_ARGUMENT,
                     "lg_nn_fractional_max_pool2d: 4 ratios");
        assert_fails(c, lg_nn_fractional_max_pool3d(c, 2, .ratios = LG_NUMBERS_OF(2, NULL)), LG_ERR_ARGUMENT,
                     "lg_nn_fractional_max_pool3d");
        lg_close(c);
}

/* ---- properties ---- */

/* Unpooling puts each maximum back at its place; random windows are within x, and their maxima are those of x. */
TEST_CASE(indices)
{
        lg_ctx *c = open_ctx();
        double v[2000];
        lg_tensor *x = lg_uniform(c, 0.1, 1, LG_SHAPE(2, 3, 9, 8)), *i = NULL;
        lg_tensor *y = lg_max_pool2d(x, 3, .stride = 2, .padding = 1, .indices = &i);
        lg_tensor *back = lg_max_unpool2d(y, i, 3, .stride = 2, .padding = 1, .sizes = LG_PAIR(9, 8));
        int64_t n = read_all(lg_mul(lg_cast(lg_eq(x, back), LG_F32), x), v, 2000);
        assert_values(back, v, n, 0);
        for (int k = 0; k < 20; k++) {
                y = lg_fractional_max_pool2d(x, 2, .sizes = LG_PAIR(1 + k % 8, 7 - k % 7), .indices = &i);
                n = read_all(y, v, 2000);
                lg_tensor *lines = lg_reshape(x, LG_SHAPE(6, 72));
                assert_values(lg_gather(lines, 1, lg_reshape(i, LG_SHAPE(6, -1))), v, n, 0);
                assert_int_equal(lg_dtype_of(i), LG_I64);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(no_elements)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_set_requires_grad(lg_zeros(c, LG_SHAPE(0, 4, 4, 6)), true), *i = NULL;
        lg_tensor *v = lg_reshape(x, LG_SHAPE(0, 4, 2, 2, 6)), *line = lg_reshape(x, LG_SHAPE(0, 16, 6));
        lg_tensor *whole = lg_zeros(c, LG_SHAPE(0, 4, 2, 3), .dtype = LG_I64);
        const struct {
                lg_tensor *y;
                lg_shape shape;
        } rows[] = {
                {lg_pixel_shuffle(x, 2), LG_SHAPE(0, 1, 8, 12)},
                {lg_pixel_unshuffle(x, 2), LG_SHAPE(0, 16, 2, 3)},
                {lg_channel_shuffle(x, 2), LG_SHAPE(0, 4, 4, 6)},
                {lg_unfold(x, 2, .padding = 1), LG_SHAPE(0, 16, 35)},
                {lg_fold(line, 0, 2, .sizes = LG_PAIR(3, 4)), LG_SHAPE(0, 4, 3, 4)},
                {lg_local_response_norm(x, 3), LG_SHAPE(0, 4, 4, 6)},
                {lg_local_response_norm(lg_reshape(x, LG_SHAPE(2, 0, 8)), 3), LG_SHAPE(2, 0, 8)},
                {lg_lp_pool1d(line, 2, 2), LG_SHAPE(0, 16, 3)},
                {lg_lp_pool2d(x, 2, 2), LG_SHAPE(0, 4, 2, 3)},
                {lg_lp_pool3d(v, 2, 2), LG_SHAPE(0, 4, 1, 1, 3)},
                {lg_max_unpool2d(lg_slice(lg_slice(x, 2, 0, 2), 3, 0, 3), whole, 2), LG_SHAPE(0, 4, 4, 6)},
                {lg_fractional_max_pool2d(x, 2, .size = 3, .indices = &i), LG_SHAPE(0, 4, 3, 3)},
                {lg_fractional_max_pool3d(v, 1, .size = 2), LG_SHAPE(0, 4, 2, 2, 2)},
                {lg_pixel_shuffle(lg_zeros(c, LG_SHAPE(2, 0, 3, 4)), 3), LG_SHAPE(2, 0, 9, 12)},
        };
        assert_ok(c);
        assert_shape(i, LG_SHAPE(0, 4, 3, 3));
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
                assert_shape(rows[k].y, rows[k].shape);
                if (lg_requires_grad(rows[k].y))
                        lg_backward(lg_sum(rows[k].y));
        }
        assert_shape(lg_grad_of(x), LG_SHAPE(0, 4, 4, 6));
        assert_ok(c);
        lg_close(c);
}

/* Sums of 16-bit floats are rounded once. Order and copies have any dtype where the comment says so. */
TEST_CASE(dtypes)
{
        lg_ctx *c = open_ctx();
        double v[600];
        const lg_dtype halves[] = {LG_F16, LG_BF16};
        lg_tensor *whole = lg_reshape(lg_arange(c, 0, 8, 1, .dtype = LG_I64), LG_SHAPE(4, 1, 2));
        assert_list(lg_pixel_shuffle(whole, 2), 0, 0, 2, 1, 3, 4, 6, 5, 7);
        assert_list(lg_channel_shuffle(lg_reshape(whole, LG_SHAPE(1, 4, 2)), 2), 0, 0, 1, 4, 5, 2, 3, 6, 7);
        for (int k = 0; k < 2; k++) {
                lg_tensor *h = lg_cast(lg_normal(c, 0, 1, LG_SHAPE(2, 18, 12)), halves[k]), *wide = lg_cast(h, LG_F32);
                int64_t n = read_all(lg_cast(lg_fold(wide, 0, 3, .sizes = LG_PAIR(5, 6)), halves[k]), v, 600);
                assert_values(lg_fold(h, 0, 3, .sizes = LG_PAIR(5, 6)), v, n, 0);
                n = read_all(lg_cast(lg_lp_pool1d(wide, 2, 3), halves[k]), v, 600);
                assert_values(lg_lp_pool1d(h, 2, 3), v, n, 0);
                n = read_all(lg_cast(lg_local_response_norm(wide, 5, .alpha = 3), halves[k]), v, 600);
                assert_values(lg_local_response_norm(h, 5, .alpha = 3), v, n, 0);
                lg_tensor *samples = lg_cast(lg_full(c, LG_SHAPE(2, 18, 2), 0.3), halves[k]);
                lg_tensor *image = lg_reshape(h, LG_SHAPE(2, 18, 3, 4));
                n = read_all(lg_fractional_max_pool2d(lg_cast(image, LG_F32), 2, .size = 2,
                                                      .samples = lg_cast(samples, LG_F32)),
                             v, 600);
                assert_values(lg_fractional_max_pool2d(image, 2, .size = 2, .samples = samples), v, n, 0);
        }
        assert_ok(c);
        lg_close(c);
}

/* A window whose sum is 0 gives 0 and no gradient; one whose sum is below 0 has no odd root. */
TEST_CASE(lp_pool_at_the_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){0, 0, 3, 4, -3, 1, -2, -2}), LG_SHAPE(1, 8));
        lg_set_requires_grad(x, true);
        lg_tensor *y = lg_lp_pool1d(x, 2, 2);
        assert_list(y, 1e-6, 0, 5, sqrt(10), sqrt(8));
        lg_backward(lg_sum(y));
        assert_list(lg_grad_of(x), 1e-6, 0, 0, 0.6, 0.8, -3 / sqrt(10), 1 / sqrt(10), -sqrt(0.5), -sqrt(0.5));
        double v[4];
        read_all(lg_lp_pool1d(x, 3, 2), v, 4);
        assert_true(isnan(v[2]) && isnan(v[3]) && v[0] == 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_shuffles)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 8, 3, 4)), *flat = lg_ones(c, LG_SHAPE(4, 4));
        assert_fails(c, lg_pixel_shuffle(x, 3), LG_ERR_SHAPE, "pixel_shuffle: x is f32 (2, 8, 3, 4)");
        assert_fails(c, lg_pixel_shuffle(x, 0), LG_ERR_ARGUMENT, "pixel_shuffle: factor 0");
        assert_fails(c, lg_pixel_shuffle(flat, 2), LG_ERR_SHAPE, "it is (..., C, H, W)");
        assert_fails(c, lg_pixel_shuffle(lg_zeros(c, LG_SHAPE(0, 3, 4)), LG_MAX), LG_ERR_SHAPE, "pixel_shuffle");
        assert_fails(c, lg_pixel_unshuffle(x, 2), LG_ERR_SHAPE, "pixel_unshuffle: x is");
        assert_fails(c, lg_pixel_unshuffle(x, -1), LG_ERR_ARGUMENT, "pixel_unshuffle: factor -1");
        assert_fails(c, lg_pixel_unshuffle(lg_zeros(c, LG_SHAPE(2, 0, 0)), LG_MAX), LG_ERR_SHAPE, "pixel_unshuffle");
        assert_fails(c, lg_channel_shuffle(x, 3), LG_ERR_SHAPE, "channel_shuffle: 3 groups of 8");
        assert_fails(c, lg_channel_shuffle(x, 0), LG_ERR_ARGUMENT, "channel_shuffle: 0 groups");
        assert_fails(c, lg_channel_shuffle(flat, 2), LG_ERR_SHAPE, "channel_shuffle: x is");
        assert_fails(c, lg_local_response_norm(flat, 2), LG_ERR_SHAPE, "local_response_norm: x is");
        assert_fails(c, lg_local_response_norm(x, 0), LG_ERR_ARGUMENT, "local_response_norm: size 0");
        assert_fails(c, lg_local_response_norm(lg_cast(x, LG_I64), 2), LG_ERR_DTYPE, "local_response_norm");
        lg_close(c);
}

TEST_CASE(wrong_windows)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 8, 3, 4)), *columns = lg_ones(c, LG_SHAPE(2, 8, 9));
        assert_fails(c, lg_unfold(x, 0), LG_ERR_ARGUMENT, "unfold: kernel 0");
        assert_fails(c, lg_unfold(x, 2, .stride = -1), LG_ERR_ARGUMENT, "stride -1");
        assert_fails(c, lg_unfold(x, 2, .padding = -1), LG_ERR_ARGUMENT, "padding -1");
        assert_fails(c, lg_unfold(x, 2, .dilation = LG_MAX), LG_ERR_ARGUMENT, "below 2^31");
        assert_fails(c, lg_unfold(x, 4), LG_ERR_SHAPE, "unfold: a window of 4 does not fit in a side of 3");
        assert_fails(c, lg_unfold(lg_ones(c, LG_SHAPE(3, 4)), 2), LG_ERR_SHAPE, "(N, C, H, W) or (C, H, W)");
        assert_fails(c, lg_unfold(lg_zeros(c, LG_SHAPE(1, 0, 3, 4)), 2), LG_ERR_SHAPE, "unfold: x is");
        assert_fails(c, lg_unfold(lg_cast(x, LG_I64), 2), LG_ERR_DTYPE, "unfold: x is i64");
        assert_fails(c, lg_unfold(lg_expand(x, LG_SHAPE(2, 8, 3, 4)), INT32_MAX, .padding = INT32_MAX), LG_ERR_SHAPE,
                     "unfold");
        assert_fails(c, lg_fold(x, 4, 2), LG_ERR_SHAPE, "fold: x is f32 (2, 8, 3, 4)");
        assert_fails(c, lg_fold(columns, 0, 2), LG_ERR_SHAPE, "fold: a window of 2 does not fit in a side of 0");
        assert_fails(c, lg_fold(columns, 5, 2), LG_ERR_SHAPE, "4 x 4 windows of 2 x 2");
        assert_fails(c, lg_fold(columns, 5, 3), LG_ERR_SHAPE, "multiple of 9 rows and 9 columns");
        assert_fails(c, lg_lp_pool2d(x, 0, 2), LG_ERR_ARGUMENT, "lp_pool2d: p is 0");
        assert_fails(c, lg_lp_pool1d(columns, NAN, 2), LG_ERR_ARGUMENT, "lp_pool1d: p is nan");
        assert_fails(c, lg_lp_pool2d(x, 2, 0), LG_ERR_ARGUMENT, "lp_pool2d: kernel 0");
        assert_fails(c, lg_lp_pool3d(x, 2, 9), LG_ERR_SHAPE, "lp_pool3d: x is");
        lg_close(c);
}

TEST_CASE(wrong_unpooling)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 2, 2, 2)), *i = lg_zeros(c, LG_SHAPE(1, 2, 2, 2), .dtype = LG_I64);
        assert_fails(c, lg_max_unpool2d(x, x, 2), LG_ERR_DTYPE, "max_unpool2d: indices");
        assert_fails(c, lg_max_unpool2d(x, lg_select(i, 0, 0), 2), LG_ERR_SHAPE, "max_unpool2d: x is");
        assert_fails(c, lg_max_unpool1d(x, i, 2), LG_ERR_SHAPE, "(N, C, L) or (C, L)");
        assert_fails(c, lg_max_unpool2d(x, i, 0), LG_ERR_ARGUMENT, "max_unpool2d: kernel 0");
        assert_fails(c, lg_max_unpool2d(x, i, 2, .padding = 3), LG_ERR_SHAPE, "a side of the result would be -2");
        assert_fails(c, lg_max_unpool2d(x, i, 2, .sizes = LG_PAIR(4, 6)), LG_ERR_ARGUMENT, "size 6; it is from 3 to 5");
        assert_fails(c, lg_max_unpool3d(x, i, 2, .stride = INT32_MAX), LG_ERR_SHAPE, "max_unpool3d");
        assert_no_index(lg_max_unpool2d(x, lg_add_scalar(i, 16), 2), "max_unpool: index holds 16");
        lg_clear_error(c);
        assert_no_index(lg_max_unpool2d(x, lg_sub_scalar(i, 1), 2), "max_unpool: index holds -1");
        lg_clear_error(c);
        lg_close(c);
}

TEST_CASE(wrong_fractions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 6, 5)), *i = NULL;
        assert_fails(c, lg_fractional_max_pool2d(x, 2), LG_ERR_ARGUMENT, "fractional_max_pool2d: exactly one of size");
        assert_fails(c, lg_fractional_max_pool2d(x, 2, .size = 2, .ratio = 0.5), LG_ERR_ARGUMENT, "exactly one");
        assert_fails(c, lg_fractional_max_pool2d(x, 2, .ratio = 1), LG_ERR_ARGUMENT, "ratio 1; it is between");
        assert_fails(c, lg_fractional_max_pool2d(x, 2, .ratio = NAN), LG_ERR_ARGUMENT, "ratio nan");
        assert_fails(c, lg_fractional_max_pool2d(x, 2, .ratios = LG_NUMBERS(0.5)), LG_ERR_ARGUMENT, "exactly one");
        assert_fails(c, lg_fractional_max_pool2d(x, 2, .ratio = 0.1), LG_ERR_ARGUMENT, "0 windows of 2 in a side of 6");
        assert_fails(c, lg_fractional_max_pool2d(x, 2, .size = 5, .indices = &i), LG_ERR_SHAPE, "in a side of 5");
        assert_null(i);
        assert_fails(c, lg_fractional_max_pool2d(x, 0, .size = 2), LG_ERR_ARGUMENT, "2 windows of 0");
        assert_fails(c, lg_fractional_max_pool3d(lg_select(x, 0, 0), 2, .size = 2), LG_ERR_SHAPE, "(N, C, D, H, W)");
        assert_fails(c, lg_fractional_max_pool2d(x, 2, .size = 2, .samples = x), LG_ERR_SHAPE, "samples are");
        assert_fails(
                c,
                lg_fractional_max_pool2d(x, 2, .size = 2, .samples = lg_zeros(c, LG_SHAPE(2, 3, 2), .dtype = LG_F64)),
                LG_ERR_DTYPE, "samples are f64");
        lg_close(c);
}
