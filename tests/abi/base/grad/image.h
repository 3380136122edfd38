/* image.h - resizing images, rearranging their elements, and reading them at given points.
 *
 * Images are tensors (N, C, H, W) of float dtypes: N images of C channels. Signals are (N, C, L), volumes (N, C, D, H,
 * W). f16 and bf16 are computed in f32 and rounded once. An image in channels-last layout gives results in that layout
 * where a comment says so; other layouts are read, and the results are row-major.
 */
#ifndef LG_IMAGE_H
#define LG_IMAGE_H

#include "grad/base.h"

LG_BEGIN

/* ---- resizing ---- */

/* How lg_interpolate() computes the elements between those of x. */
typedef enum lg_interpolate_mode {
        LG_NEAREST = 0,       /* PyTorch's "nearest": element floor(i * in / out) of x */
        LG_NEAREST_EXACT = 1, /* element floor((i + 1/2) * in / out), as image programs do */
        LG_LINEAR = 2,        /* straight lines between elements of signals (N, C, L) */
        LG_BILINEAR = 3,      /* the same along both sides of images (N, C, H, W) */
        LG_BICUBIC = 4,       /* cubic curves through four elements along both sides of images */
        LG_TRILINEAR = 5,     /* straight lines along the three sides of volumes (N, C, D, H, W) */
        LG_AREA = 6,          /* averages of elements floor(i * in / out) to ceil((i + 1) * in / out) - 1 */
} lg_interpolate_mode;

/* Options of lg_interpolate() and lg_nn_upsample(). Exactly one of .size, .scale and .scales is given. */
typedef struct lg_interpolate_options {
        LG_OPTIONS_HEAD
        lg_ints_in size LG_DEFAULT;          /* sizes of the result without N and C: one for all sides, or one a side */
        double scale LG_DEFAULT;             /* factor of all sides, finite and above 0; a size is rounded down */
        lg_numbers_in scales LG_DEFAULT;     /* a factor for each side */
        lg_interpolate_mode mode LG_DEFAULT; /* default LG_NEAREST */
        /* The centres of the first and last elements of x and of the result coincide; else the outer edges of these
         * elements do. For linear, bilinear, bicubic and trilinear modes. Default false. */
        bool align_corners LG_DEFAULT;
        /* Widens the curves of a smaller image's elements, so that all elements of x contribute. For LG_BILINEAR and
         * LG_BICUBIC. Default false. */
        bool antialias LG_DEFAULT;
        /* Positions follow from the sizes of x and the result and not from the factor, from which they differ if a size
         * was rounded. Default false. */
        bool recompute_scale_factor LG_DEFAULT;
} lg_interpolate_options;
/* Resizes x (N, C, L), (N, C, H, W) or (N, C, D, H, W), of a float dtype, to other sizes of its sides (PyTorch's
 * F.interpolate). LG_NEAREST, LG_NEAREST_EXACT and LG_AREA take all three. A channels-last x gives a channels-last
 * result. N and C may be 0, sides may not. Gradients of any order.
 * Examples: lg_interpolate(x, .scale = 2), lg_interpolate(x, .size = LG_INTS(32, 48), .mode = LG_BILINEAR) */
#define lg_interpolate(...)                                                                                            \
        LG_CALL1(lg_interpolate_with, lg_interpolate_options, lg_interpolate_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_interpolate_with(lg_tensor *x, const lg_interpolate_options *options);

/* Upsample: lg_interpolate() with these options (PyTorch's Upsample; UpsamplingNearest2d without a mode,
 * UpsamplingBilinear2d with .mode = LG_BILINEAR and .align_corners = true).
 * Example: lg_nn_upsample(c, .scale = 2, .mode = LG_BILINEAR) */
#define lg_nn_upsample(...)                                                                                            \
        LG_CALL1(lg_nn_upsample_with, lg_interpolate_options, lg_nn_upsample_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_upsample_with(lg_ctx *c, const lg_interpolate_options *options);

/* ---- rearranging ----
 *
 * x has any dtype, and the result has its elements in another order. Gradients of any order.
 */

/* Makes an image larger by a whole factor, at least 1, from its channels (PyTorch's F.pixel_shuffle): x (..., C
 * factor^2, H, W) gives (..., C, H factor, W factor), where element (c, h factor + i, w factor + j) is (c factor^2 + i
 * factor + j, h, w) of x. */
LG_API LG_NEW lg_tensor *lg_pixel_shuffle(lg_tensor *x, int64_t factor);

/* Reverses lg_pixel_shuffle() (PyTorch's F.pixel_unshuffle): x (..., C, H factor, W factor) gives (..., C factor^2, H,
 * W). */
LG_API LG_NEW lg_tensor *lg_pixel_unshuffle(lg_tensor *x, int64_t factor);

/* Interleaves the channels of groups (PyTorch's F.channel_shuffle): in x (N, C, ...), of 3 dimensions or more, channel
 * i of group g becomes channel i groups + g. groups divides C. */
LG_API LG_NEW lg_tensor *lg_channel_shuffle(lg_tensor *x, int64_t groups);

/* Make layers that apply the ops of these names. */
LG_API LG_NEW lg_module *lg_nn_pixel_shuffle(lg_ctx *c, int64_t factor);
LG_API LG_NEW lg_module *lg_nn_pixel_unshuffle(lg_ctx *c, int64_t factor);
LG_API LG_NEW lg_module *lg_nn_channel_shuffle(lg_ctx *c, int64_t groups);

/* ---- reading at points ---- */

typedef struct lg_affine_grid_options {
        LG_OPTIONS_HEAD
        bool align_corners LG_DEFAULT; /* -1 and 1 are the centres of the outer elements; default false: their edges */
} lg_affine_grid_options;
/* Returns a grid for lg_grid_sample() (PyTorch's F.affine_grid): the points of an output of this size, transformed by
 * the matrices theta, of a float dtype. theta (N, 2, 3) and size (N, C, H, W) give (N, H, W, 2), theta (N, 3, 4) and
 * size (N, C, D, H, W) give (N, D, H, W, 3). Sides of the size are above 0.
 * Example: lg_affine_grid(theta, LG_SHAPE(1, 3, 32, 32), .align_corners = true) */
#define lg_affine_grid(...)                                                                                            \
        LG_CALL2(lg_affine_grid_with, lg_affine_grid_options, lg_affine_grid_takes_theta_size, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_affine_grid_with(lg_tensor *theta, lg_shape size, const lg_affine_grid_options *options);

/* How lg_grid_sample() computes values between elements. */
typedef enum lg_grid_mode {
        LG_GRID_BILINEAR = 0, /* from the 4 elements around a point, in volumes from the 8 */
        LG_GRID_NEAREST = 1,  /* the nearest element; halves go to the even one */
        LG_GRID_BICUBIC = 2,  /* from 16 elements; for images only */
} lg_grid_mode;

/* Values that lg_grid_sample() takes outside of x. */
typedef enum lg_grid_padding {
        LG_GRID_ZEROS = 0,      /* 0 */
        LG_GRID_BORDER = 1,     /* the element at the border */
        LG_GRID_REFLECTION = 2, /* reflected at the border, as often as needed */
} lg_grid_padding;

typedef struct lg_grid_sample_options {
        LG_OPTIONS_HEAD
        lg_grid_mode mode LG_DEFAULT;            /* default LG_GRID_BILINEAR */
        lg_grid_padding padding_mode LG_DEFAULT; /* default LG_GRID_ZEROS */
        bool align_corners LG_DEFAULT; /* -1 and 1 are the centres of the outer elements; default false: their edges */
} lg_grid_sample_options;
/* Reads x at the points of a grid (PyTorch's F.grid_sample, ONNX's GridSample): x (N, C, H, W) and grid (N, H2, W2, 2)
 * give (N, C, H2, W2), x (N, C, D, H, W) and grid (N, D2, H2, W2, 3) give (N, C, D2, H2, W2). A point is (x, y) or
 * (x, y, z), from -1 to 1 within x, where x runs along W. Both have float dtypes; the result has x's. Gradients flow to
 * both; that of the grid is 0 for LG_GRID_NEAREST. Sides of x are above 0, with fewer than 2^31 elements in all.
 * Example: lg_grid_sample(x, grid, .padding_mode = LG_GRID_BORDER) */
#define lg_grid_sample(...)                                                                                            \
        LG_CALL2(lg_grid_sample_with, lg_grid_sample_options, lg_grid_sample_takes_x_grid, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_grid_sample_with(lg_tensor *x, lg_tensor *grid, const lg_grid_sample_options *options);

LG_END_C

#endif
