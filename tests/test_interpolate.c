/* test_interpolate.c - resizing against PyTorch's numbers (data/interpolate.txt), layouts, dtypes, errors. */
#include "golden.h"

#define RESIZE(ROW, name, options, ...) ROW(name, lg_interpolate(x, UNPACK options), __VA_ARGS__)
#define UNPACK(...) __VA_ARGS__
#define BOTH(ROW, name, options, ...)                                                                                  \
        RESIZE(ROW, name, (UNPACK options), __VA_ARGS__)                                                               \
        RESIZE(ROW, name##_corners, (UNPACK options, .align_corners = true), __VA_ARGS__)
#define EACH(ROW, name, mode_)                                                                                         \
        RESIZE(ROW, name##_1d, (.size = LG_INTS(12), .mode = mode_), 2, 2, 7)                                          \
        RESIZE(ROW, name##_2d, (.size = LG_INTS(11, 3), .mode = mode_), 2, 2, 5, 7)                                    \
        RESIZE(ROW, name##_3d, (.size = LG_INTS(2, 9, 8), .mode = mode_), 1, 2, 3, 4, 5)
#define ROWS(ROW)                                                                                                      \
        EACH(ROW, nearest, LG_NEAREST)                                                                                 \
        EACH(ROW, nearest_exact, LG_NEAREST_EXACT)                                                                     \
        EACH(ROW, area, LG_AREA)                                                                                       \
        RESIZE(ROW, nearest_scale, (.scales = LG_NUMBERS(1.7, 2.3)), 2, 2, 5, 7)                                       \
        RESIZE(ROW, nearest_exact_scale, (.scales = LG_NUMBERS(1.7, 2.3), .mode = LG_NEAREST_EXACT), 2, 2, 5, 7)       \
        RESIZE(ROW, area_scale, (.scale = 1.7, .mode = LG_AREA), 2, 2, 5, 7)                                           \
        RESIZE(ROW, nearest_twice, (.scale = 2), 2, 2, 5, 7)                                                           \
        RESIZE(ROW, nearest_recomputed, (.scale = 1.3, .recompute_scale_factor = true), 2, 2, 5, 7)                    \
        BOTH(ROW, linear, (.size = LG_INTS(12), .mode = LG_LINEAR), 2, 2, 7)                                           \
        BOTH(ROW, bilinear, (.size = LG_INTS(8, 4), .mode = LG_BILINEAR), 2, 2, 5, 7)                                  \
        BOTH(ROW, bilinear_scale, (.scales = LG_NUMBERS(2.3, 0.7), .mode = LG_BILINEAR), 2, 2, 5, 7)                   \
        BOTH(ROW, bicubic, (.size = LG_INTS(3, 11), .mode = LG_BICUBIC), 2, 2, 5, 7)                                   \
        BOTH(ROW, trilinear, (.size = LG_INTS(5, 3, 9), .mode = LG_TRILINEAR), 1, 2, 3, 4, 5)                          \
        BOTH(ROW, bilinear_antialias, (.size = LG_INTS(2, 3), .mode = LG_BILINEAR, .antialias = true), 2, 2, 5, 7)     \
        BOTH(ROW, bicubic_antialias, (.size = LG_INTS(2, 9), .mode = LG_BICUBIC, .antialias = true), 2, 2, 5, 7)       \
        RESIZE(ROW, bilinear_same_size, (.scale = 1.1, .mode = LG_BILINEAR), 2, 2, 5, 7)                               \
        RESIZE(ROW, bilinear_antialias_scale, (.scale = 0.45, .mode = LG_BILINEAR, .antialias = true), 2, 2, 5, 7)     \
        RESIZE(ROW, bicubic_scale, (.scale = 1.9, .mode = LG_BICUBIC), 2, 2, 5, 7)                                     \
        RESIZE(ROW, bicubic_recomputed, (.scale = 1.9, .mode = LG_BICUBIC, .recompute_scale_factor = true), 2, 2, 5,   \
               7)                                                                                                      \
        RESIZE(ROW, bicubic_of_one, (.size = LG_INTS(3, 5), .mode = LG_BICUBIC), 1, 2, 1, 2)

GOLDEN_TEST(as_pytorch_computes_it, "interpolate.txt", golden_input, ROWS);

/* The result and the gradient of channels-last images are channels-last, and of the values of row-major ones, whatever
 * the number of channels; 16 bits are rounded once. */
TEST_CASE(layouts_and_dtypes)
{
        static const lg_interpolate_mode modes[] = {LG_NEAREST, LG_BILINEAR, LG_BICUBIC, LG_AREA};
        static const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        static const double limits[] = {1e-13, 1e-5, 4e-3, 3e-2};
        static double wanted[2 * 37 * 19 * 40], gradient[2 * 37 * 9 * 21];
        for (int k = 0; k < 16; k++) {
                const int64_t channels = k & 4 ? 37 : 3, height = k & 8 ? 19 : 5, width = k & 8 ? 40 : 11;
                lg_ctx *c = open_ctx();
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, channels, 9, 21), .dtype = LG_F64);
                for (int d = 0; d < 8; d++) {
                        lg_tensor *in = lg_cast(x, dtypes[d / 2]);
                        if (d & 1)
                                in = lg_permute(lg_contiguous(lg_permute(in, LG_DIMS(0, 2, 3, 1))),
                                                LG_DIMS(0, 3, 1, 2));
                        in = lg_set_requires_grad(lg_detach(in), true);
                        lg_tensor *y = lg_interpolate(in, .size = LG_INTS(height, width), .mode = modes[k & 3]);
                        assert_shape(y, LG_SHAPE(2, channels, height, width));
                        assert_int_equal(lg_dtype_of(y), dtypes[d / 2]);
                        lg_backward(lg_sum(lg_mul(y, lg_cast(lg_sin(y), lg_dtype_of(y)))));
                        lg_tensor *g = lg_grad_of(in);
                        assert_ok(c);
                        if (d == 0) {
                                read_all(y, wanted, lg_numel(y));
                                read_all(g, gradient, lg_numel(g));
                        }
                        assert_values(y, wanted, lg_numel(y), limits[d / 2]);
                        assert_values(g, gradient, lg_numel(g), 20 * limits[d / 2]);
                        assert_int_equal(lg_stride_of(y, 1) == 1, d & 1);
                }
                lg_close(c);
        }
}

/* An infinite element changes only the elements that depend on it. */
TEST_CASE(infinite_elements)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, LG_INFINITY, 3, 4}), LG_SHAPE(1, 1, 4));
        assert_list(lg_interpolate(x, .size = LG_INTS(2)), 0, 1, 3);
        assert_list(lg_interpolate(x, .scale = 0.5, .mode = LG_AREA), 0, LG_INFINITY, 3.5);
        assert_list(lg_interpolate(x, .size = LG_INTS(7), .mode = LG_LINEAR, .align_corners = true), 0, 1, LG_INFINITY,
                    LG_INFINITY, LG_INFINITY, 3, 3.5, 4);
        lg_close(c);
}

TEST_CASE(without_elements)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_set_requires_grad(lg_zeros(c, LG_SHAPE(0, 2, 3, 4)), true),
                  *y = lg_interpolate(x, .scale = 2);
        assert_shape(y, LG_SHAPE(0, 2, 6, 8));
        lg_backward(lg_sum(y));
        assert_shape(lg_grad_of(x), LG_SHAPE(0, 2, 3, 4));
        assert_shape(lg_interpolate(lg_zeros(c, LG_SHAPE(2, 0, 3)), .size = LG_INTS(5), .mode = LG_LINEAR),
                     LG_SHAPE(2, 0, 5));
        assert_ok(c);
        lg_close(c);
}

/* The module has its own copies of the lists. */
TEST_CASE(upsample)
{
        lg_ctx *c = open_ctx();
        double scales[] = {2, 1.5}, wanted[2 * 8 * 9];
        int64_t size[] = {4};
        lg_module *by_scales = lg_nn_upsample(c, .scales = LG_NUMBERS_OF(2, scales), .mode = LG_BICUBIC);
        lg_module *by_size = lg_nn_upsample(c, .size = LG_INTS_OF(1, size));
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(1, 2, 4, 6));
        read_all(lg_interpolate(x, .scales = LG_NUMBERS(2, 1.5), .mode = LG_BICUBIC), wanted, 2 * 8 * 9);
        scales[0] = size[0] = 77;
        assert_values(lg_forward(by_scales, x), wanted, 2 * 8 * 9, 0);
        assert_shape(lg_forward(by_size, x), LG_SHAPE(1, 2, 4, 4));
        assert_fails(c, lg_nn_upsample(c), LG_ERR_ARGUMENT, "lg_nn_upsample: exactly one of size");
        assert_fails(c, lg_nn_upsample(c, .size = LG_INTS(1, 2, 3, 4)), LG_ERR_ARGUMENT, "4 sizes or scales");
        assert_fails(c, lg_nn_upsample(c, .size = LG_INTS_OF(2, NULL)), LG_ERR_ARGUMENT, "lg_nn_upsample");
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 2, 3, 4)), *line = lg_ones(c, LG_SHAPE(1, 2, 3));
        assert_fails(c, lg_interpolate(x), LG_ERR_ARGUMENT, "interpolate: exactly one of size, scale and scales");
        assert_fails(c, lg_interpolate(x, .scale = 2, .size = LG_INTS(2)), LG_ERR_ARGUMENT, "exactly one");
        assert_fails(c, lg_interpolate(x, .size = LG_INTS(1, 2, 3)), LG_ERR_ARGUMENT, "3 sizes for the 2 sides");
        assert_fails(c, lg_interpolate(x, .scales = LG_NUMBERS(2)), LG_ERR_ARGUMENT, "1 scales for the 2 sides");
        assert_fails(c, lg_interpolate(x, .size = LG_INTS(0)), LG_ERR_ARGUMENT, "size 0");
        assert_fails(c, lg_interpolate(x, .size = LG_INTS(1, LG_MAX)), LG_ERR_ARGUMENT, "below 2^31");
        assert_fails(c, lg_interpolate(x, .size = LG_INTS_OF(1, NULL)), LG_ERR_ARGUMENT, "interpolate");
        assert_fails(c, lg_interpolate(x, .scale = -1), LG_ERR_ARGUMENT, "scale -1");
        assert_fails(c, lg_interpolate(x, .scale = NAN), LG_ERR_ARGUMENT, "scale nan");
        assert_fails(c, lg_interpolate(x, .scale = LG_INFINITY), LG_ERR_ARGUMENT, "scale inf");
        assert_fails(c, lg_interpolate(x, .scale = 0.25), LG_ERR_SHAPE, "side 0 has 0 elements");
        assert_fails(c, lg_interpolate(x, .scale = 1e300), LG_ERR_SHAPE, "below 2^31");
        assert_fails(c, lg_interpolate(x, .size = LG_INTS(INT32_MAX)), LG_ERR_SHAPE, "interpolate");
        assert_fails(c, lg_interpolate(x, .size = LG_INTS(2), .recompute_scale_factor = true), LG_ERR_ARGUMENT,
                     "recompute_scale_factor");
        assert_fails(c, lg_interpolate(x, .scale = 2, .mode = LG_LINEAR), LG_ERR_SHAPE, "it is (N, C, L)");
        assert_fails(c, lg_interpolate(line, .scale = 2, .mode = LG_BICUBIC), LG_ERR_SHAPE, "it is (N, C, H, W)");
        assert_fails(c, lg_interpolate(x, .scale = 2, .mode = LG_TRILINEAR), LG_ERR_SHAPE, "it is (N, C, D, H, W)");
        assert_fails(c, lg_interpolate(lg_ones(c, LG_SHAPE(2, 3)), .scale = 2), LG_ERR_SHAPE,
                     "(N, C, L), (N, C, H, W)");
        assert_fails(c, lg_interpolate(lg_ones(c, LG_SHAPE(2, 3, 0)), .size = LG_INTS(2)), LG_ERR_SHAPE, "sides are");
        assert_fails(c, lg_interpolate(x, .scale = 2, .mode = (lg_interpolate_mode)7), LG_ERR_ARGUMENT, "mode 7");
        assert_fails(c, lg_interpolate(x, .scale = 2, .align_corners = true), LG_ERR_ARGUMENT, "align_corners");
        assert_fails(c, lg_interpolate(line, .scale = 2, .mode = LG_LINEAR, .antialias = true), LG_ERR_ARGUMENT,
                     "antialias");
        assert_fails(c, lg_interpolate(lg_cast(x, LG_I64), .scale = 2), LG_ERR_DTYPE, "interpolate: x is i64");
        lg_close(c);
}
