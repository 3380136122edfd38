/* test_grid_sample.c - reading at points and affine grids, against PyTorch's numbers (data/interpolate.txt); dtypes,
 * layouts, errors. */
#include "golden.h"

#define IMAGE golden_like(x, LG_SHAPE(2, 2, 5, 7), 0)
#define VOLUME golden_like(x, LG_SHAPE(1, 2, 3, 4, 5), 0)
#define GRID golden_like(x, LG_SHAPE(2, 3, 4, 2), 0.7)
#define PLACES golden_like(x, LG_SHAPE(1, 2, 3, 2, 3), 0.7)
/* The grid of phase 0.7, with x's gradient: x itself has phase 0. */
static lg_tensor *phased(lg_tensor *x)
{
        return lg_add(x, lg_detach(lg_sub(golden_like(x, lg_shape_of(x), 0.7), x)));
}
/* A number times 0 is added, so that x gets a gradient if it is a grid of LG_GRID_NEAREST. */
#define READ(in, at, mode_, padding, corners)                                                                          \
        lg_add(lg_grid_sample(in, at, .mode = mode_, .padding_mode = padding, .align_corners = corners),               \
               lg_mul_scalar(lg_sum(x), 0))
#define IMAGES(ROW, name, ...)                                                                                         \
        ROW(name, READ(x, GRID, __VA_ARGS__, false), 2, 2, 5, 7)                                                       \
        ROW(name##_corners, READ(x, GRID, __VA_ARGS__, true), 2, 2, 5, 7)                                              \
        ROW(name##_grid, READ(IMAGE, phased(x), __VA_ARGS__, false), 2, 3, 4, 2)                                       \
        ROW(name##_corners_grid, READ(IMAGE, phased(x), __VA_ARGS__, true), 2, 3, 4, 2)
#define VOLUMES(ROW, name, ...)                                                                                        \
        ROW(volume_##name, READ(x, PLACES, __VA_ARGS__, false), 1, 2, 3, 4, 5)                                         \
        ROW(volume_##name##_corners, READ(x, PLACES, __VA_ARGS__, true), 1, 2, 3, 4, 5)                                \
        ROW(volume_##name##_grid, READ(VOLUME, phased(x), __VA_ARGS__, false), 1, 2, 3, 2, 3)                          \
        ROW(volume_##name##_corners_grid, READ(VOLUME, phased(x), __VA_ARGS__, true), 1, 2, 3, 2, 3)
#define PADDING(ROW, name, padding)                                                                                    \
        IMAGES(ROW, bilinear_##name, LG_GRID_BILINEAR, padding)                                                        \
        IMAGES(ROW, nearest_##name, LG_GRID_NEAREST, padding)                                                          \
        IMAGES(ROW, bicubic_##name, LG_GRID_BICUBIC, padding)                                                          \
        VOLUMES(ROW, bilinear_##name, LG_GRID_BILINEAR, padding)                                                       \
        VOLUMES(ROW, nearest_##name, LG_GRID_NEAREST, padding)
#define ROWS(ROW)                                                                                                      \
        PADDING(ROW, zeros, LG_GRID_ZEROS)                                                                             \
        PADDING(ROW, border, LG_GRID_BORDER)                                                                           \
        PADDING(ROW, reflection, LG_GRID_REFLECTION)                                                                   \
        ROW(affine, lg_affine_grid(x, LG_SHAPE(2, 1, 3, 4)), 2, 2, 3)                                                  \
        ROW(affine_corners, lg_affine_grid(x, LG_SHAPE(2, 1, 3, 4), .align_corners = true), 2, 2, 3)                   \
        ROW(affine_volume, lg_affine_grid(x, LG_SHAPE(2, 1, 3, 1, 2)), 2, 3, 4)                                        \
        ROW(affine_volume_corners, lg_affine_grid(x, LG_SHAPE(2, 1, 3, 1, 2), .align_corners = true), 2, 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "interpolate.txt", golden_input, ROWS);

/* Reading at the centres of all elements gives x itself, in every dtype and layout. */
TEST_CASE(identity)
{
        static const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 8; k++) {
                lg_tensor *x = lg_cast(lg_normal(c, 0, 1, LG_SHAPE(2, 3, 5, 8), .dtype = LG_F64), dtypes[k / 2]);
                lg_tensor *theta =
                        lg_expand(lg_from(c, ((double[]){1, 0, 0, 0, 1, 0}), LG_SHAPE(2, 3)), LG_SHAPE(2, 2, 3));
                lg_tensor *grid = lg_affine_grid(theta, lg_shape_of(x), .align_corners = true);
                double wanted[240];
                read_all(x, wanted, 240);
                lg_tensor *y = lg_grid_sample(k & 1 ? golden_turned(x) : x, grid, .align_corners = true);
                assert_int_equal(lg_dtype_of(y), dtypes[k / 2]);
                assert_values(y, wanted, 240, k < 2 ? 1e-12 : k < 4 ? 1e-5 : 2e-2);
        }
        assert_shape(lg_grid_sample(lg_ones(c, LG_SHAPE(0, 3, 4, 4)), lg_zeros(c, LG_SHAPE(0, 2, 2, 2))),
                     LG_SHAPE(0, 3, 2, 2));
        assert_shape(lg_grid_sample(lg_ones(c, LG_SHAPE(1, 3, 4, 4)), lg_zeros(c, LG_SHAPE(1, 0, 2, 2))),
                     LG_SHAPE(1, 3, 0, 2));
        assert_ok(c);
        lg_close(c);
}

/* Points far outside are 0, infinite ones too; no point, not even NaN, reads memory that is not x's. */
TEST_CASE(points_outside)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 1, 3, 3));
        lg_tensor *grid = lg_from(c, ((float[]){1e30f, 0, 0, -1e30f, LG_INFINITY, 0, 0, -3e9f}), LG_SHAPE(1, 1, 4, 2));
        for (int mode = LG_GRID_BILINEAR; mode <= LG_GRID_NEAREST; mode++)
                assert_list(lg_grid_sample(x, grid, .mode = (lg_grid_mode)mode), 0, 0, 0, 0, 0);
        grid = lg_full(c, LG_SHAPE(1, 1, 1, 2), NAN);
        for (int i = 0; i < 9; i++)
                assert_int_equal(lg_numel(lg_grid_sample(x, grid, .mode = (lg_grid_mode)(i % 3),
                                                         .padding_mode = (lg_grid_padding)(i / 3))),
                                 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 2, 3, 4)), *grid = lg_zeros(c, LG_SHAPE(1, 2, 2, 2));
        lg_tensor *volume = lg_ones(c, LG_SHAPE(1, 2, 3, 4, 5)), *places = lg_zeros(c, LG_SHAPE(1, 2, 2, 2, 3));
        lg_tensor *theta = lg_zeros(c, LG_SHAPE(1, 2, 3));
        assert_fails(c, lg_grid_sample(x, places), LG_ERR_SHAPE, "grid_sample: x is f32 (1, 2, 3, 4)");
        assert_fails(c, lg_grid_sample(x, lg_zeros(c, LG_SHAPE(2, 2, 2, 2))), LG_ERR_SHAPE, "grid is f32 (2, 2, 2, 2)");
        assert_fails(c, lg_grid_sample(x, lg_zeros(c, LG_SHAPE(1, 2, 2, 3))), LG_ERR_SHAPE, "grid is f32 (1, 2, 2, 3)");
        assert_fails(c, lg_grid_sample(volume, places, .mode = LG_GRID_BICUBIC), LG_ERR_SHAPE, "LG_GRID_BICUBIC takes");
        assert_fails(c, lg_grid_sample(lg_ones(c, LG_SHAPE(1, 2, 0, 4)), grid), LG_ERR_SHAPE, "sides are above 0");
        assert_fails(c, lg_grid_sample(x, grid, .mode = (lg_grid_mode)3), LG_ERR_ARGUMENT, "mode 3");
        assert_fails(c, lg_grid_sample(x, grid, .padding_mode = (lg_grid_padding)-1), LG_ERR_ARGUMENT,
                     "padding_mode -1");
        assert_fails(c, lg_grid_sample(lg_cast(x, LG_I64), grid), LG_ERR_DTYPE, "grid_sample: x is i64");
        assert_fails(c, lg_grid_sample(x, NULL), LG_ERR_ARGUMENT, "grid_sample: grid is NULL");
        assert_fails(c, lg_affine_grid(theta, LG_SHAPE(1, 2, 3)), LG_ERR_SHAPE, "affine_grid: theta is f32 (1, 2, 3)");
        assert_fails(c, lg_affine_grid(theta, LG_SHAPE(2, 1, 3, 3)), LG_ERR_SHAPE, "size (2, 1, 3, 3)");
        assert_fails(c, lg_affine_grid(theta, LG_SHAPE(1, 1, 3, 0)), LG_ERR_SHAPE, "sides above 0");
        assert_fails(c, lg_affine_grid(theta, LG_SHAPE(1, 1, -3, 2)), LG_ERR_SHAPE, "affine_grid");
        lg_close(c);
}
