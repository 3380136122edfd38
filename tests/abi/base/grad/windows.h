/* windows.h - windows of images: as columns (unfold, fold), their L^p norms, maxima at random places, and the reverse
 * of max pooling.
 *
 * Tensors are of float dtypes; indices are i64. x is (N, C, H, W) or (C, H, W), for signals (N, C, L) or (C, L), for
 * volumes (N, C, D, H, W) or (C, D, H, W); only N may be 0. As in conv.h, a number applies to all sides; where sides
 * differ, give LG_PAIR(height, width) or LG_TRIPLE(depth, height, width), which replaces the number. Kernels, strides
 * and dilations are at least 1, paddings at least 0, and all at most 2^31 - 1. 16-bit floats are computed in f32 and
 * rounded once. Gradients have any order. The layers, lg_nn_..., apply the ops of their names with their options.
 */
#ifndef LG_WINDOWS_H
#define LG_WINDOWS_H

#include "grad/base.h"

LG_BEGIN

/* ---- columns ----
 *
 * A window of KH x KW elements is at each of OH x OW places of an image:
 *
 *   OH = floor((H + 2 p - d (KH - 1) - 1) / s) + 1
 *
 * and the same for the width, with padding p, dilation d and stride s.
 */

/* Options of lg_unfold() and lg_nn_unfold(). */
typedef struct lg_unfold_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;    /* step of the window; default 1 */
        int64_t padding LG_DEFAULT;   /* zeros added on each side; default 0 */
        int64_t dilation LG_DEFAULT;  /* spacing of the elements of a window; default 1 */
        lg_pair kernels LG_DEFAULT;   /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT; /* replaces .dilation; default: not given */
} lg_unfold_options;
/* Copies the windows of images to columns (PyTorch's F.unfold, im2col): x (N, C, H, W) gives (N, C KH KW, OH OW), x (C,
 * H, W) gives (C KH KW, OH OW). Row (c KH + k) KW + l and column i OW + j hold x[n, c, i s - p + k d, j s - p + l d].
 * Example: lg_unfold(x, 3, .padding = 1) */
#define lg_unfold(...) LG_CALL2(lg_unfold_with, lg_unfold_options, lg_unfold_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_unfold_with(lg_tensor *x, int64_t kernel, const lg_unfold_options *options);

/* Options of lg_fold() and lg_nn_fold(). */
typedef struct lg_fold_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;    /* step of the window; default 1 */
        int64_t padding LG_DEFAULT;   /* removed on each side; default 0 */
        int64_t dilation LG_DEFAULT;  /* spacing of the elements of a window; default 1 */
        lg_pair sizes LG_DEFAULT;     /* replaces the argument size, which may then be 0; default: not given */
        lg_pair kernels LG_DEFAULT;   /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;   /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT;  /* replaces .padding; default: not given */
        lg_pair dilations LG_DEFAULT; /* replaces .dilation; default: not given */
} lg_fold_options;
/* Adds columns to images of a given size (PyTorch's F.fold, col2im): x (N, C KH KW, OH OW) or (C KH KW, OH OW) gives
 * (N, C, H, W) or (C, H, W), where each element is the sum of the elements of x at which lg_unfold() would write it.
 * Example: lg_fold(x, 8, 3, .padding = 1) */
#define lg_fold(...) LG_CALL3(lg_fold_with, lg_fold_options, lg_fold_takes_x_size_kernel, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_fold_with(lg_tensor *x, int64_t size, int64_t kernel, const lg_fold_options *options);

/* Make layers of these ops.
 * Examples: lg_nn_unfold(c, 3, .stride = 2),
 * lg_nn_fold(c, 0, 2, .sizes = LG_PAIR(4, 6)) */
#define lg_nn_unfold(...) LG_CALL2(lg_nn_unfold_with, lg_unfold_options, lg_nn_unfold_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_unfold_with(lg_ctx *c, int64_t kernel, const lg_unfold_options *options);
#define lg_nn_fold(...) LG_CALL3(lg_nn_fold_with, lg_fold_options, lg_nn_fold_takes_c_size_kernel, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_fold_with(lg_ctx *c, int64_t size, int64_t kernel, const lg_fold_options *options);

/* ---- L^p pooling ---- */

typedef struct lg_lp_pool1d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT; /* step of the window; default: the size of the kernel */
        bool ceil_mode LG_DEFAULT; /* keep a last window that is not full; default false */
} lg_lp_pool1d_options;
typedef struct lg_lp_pool2d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;  /* step of the window; default: the size of the kernel */
        bool ceil_mode LG_DEFAULT;  /* keep a last window that is not full; default false */
        lg_pair kernels LG_DEFAULT; /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT; /* replaces .stride; default: not given */
} lg_lp_pool2d_options;
typedef struct lg_lp_pool3d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;    /* step of the window; default: the size of the kernel */
        bool ceil_mode LG_DEFAULT;    /* keep a last window that is not full; default false */
        lg_triple kernels LG_DEFAULT; /* replaces the argument kernel, which may then be 0; default: not given */
        lg_triple strides LG_DEFAULT; /* replaces .stride; default: not given */
} lg_lp_pool3d_options;
/* Computes (sum of x^p)^(1 / p) over each window (PyTorch's F.lp_pool1d, 2d and 3d); p is finite and not 0. There is no
 * absolute value: with an odd p, a window whose sum is below 0 gives NaN. A window of .ceil_mode that is not full
 * counts as if its missing elements were like the mean of the others. The gradient is 0 where the sum is 0.
 * Examples: lg_lp_pool1d(x, 2, 3, .stride = 1), lg_lp_pool2d(x, 2, 2),
 * lg_lp_pool3d(x, 3, 0, .kernels = LG_TRIPLE(1, 2, 2)) */
#define lg_lp_pool1d(...)                                                                                              \
        LG_CALL3(lg_lp_pool1d_with, lg_lp_pool1d_options, lg_lp_pool1d_takes_x_p_kernel, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_lp_pool1d_with(lg_tensor *x, double p, int64_t kernel, const lg_lp_pool1d_options *options);
#define lg_lp_pool2d(...)                                                                                              \
        LG_CALL3(lg_lp_pool2d_with, lg_lp_pool2d_options, lg_lp_pool2d_takes_x_p_kernel, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_lp_pool2d_with(lg_tensor *x, double p, int64_t kernel, const lg_lp_pool2d_options *options);
#define lg_lp_pool3d(...)                                                                                              \
        LG_CALL3(lg_lp_pool3d_with, lg_lp_pool3d_options, lg_lp_pool3d_takes_x_p_kernel, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_lp_pool3d_with(lg_tensor *x, double p, int64_t kernel, const lg_lp_pool3d_options *options);
/* Make layers of these ops.
 * Examples: lg_nn_lp_pool1d(c, 2, 3), lg_nn_lp_pool2d(c, 2, 2, .ceil_mode = true),
 * lg_nn_lp_pool3d(c, 2, 2) */
#define lg_nn_lp_pool1d(...)                                                                                           \
        LG_CALL3(lg_nn_lp_pool1d_with, lg_lp_pool1d_options, lg_nn_lp_pool1d_takes_c_p_kernel, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_lp_pool1d_with(lg_ctx *c, double p, int64_t kernel, const lg_lp_pool1d_options *options);
#define lg_nn_lp_pool2d(...)                                                                                           \
        LG_CALL3(lg_nn_lp_pool2d_with, lg_lp_pool2d_options, lg_nn_lp_pool2d_takes_c_p_kernel, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_lp_pool2d_with(lg_ctx *c, double p, int64_t kernel, const lg_lp_pool2d_options *options);
#define lg_nn_lp_pool3d(...)                                                                                           \
        LG_CALL3(lg_nn_lp_pool3d_with, lg_lp_pool3d_options, lg_nn_lp_pool3d_takes_c_p_kernel, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_lp_pool3d_with(lg_ctx *c, double p, int64_t kernel, const lg_lp_pool3d_options *options);

/* ---- unpooling ---- */

typedef struct lg_max_unpool1d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;  /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT; /* added on each side; default 0 */
        int64_t size LG_DEFAULT;    /* size of the result; default: see below */
} lg_max_unpool1d_options;
typedef struct lg_max_unpool2d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;   /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;  /* added on each side; default 0 */
        lg_pair kernels LG_DEFAULT;  /* replaces the argument kernel, which may then be 0; default: not given */
        lg_pair strides LG_DEFAULT;  /* replaces .stride; default: not given */
        lg_pair paddings LG_DEFAULT; /* replaces .padding; default: not given */
        lg_pair sizes LG_DEFAULT;    /* sizes of the result; default: see below */
} lg_max_unpool2d_options;
typedef struct lg_max_unpool3d_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT;     /* step of the window; default: the size of the kernel */
        int64_t padding LG_DEFAULT;    /* added on each side; default 0 */
        lg_triple kernels LG_DEFAULT;  /* replaces the argument kernel, which may then be 0; default: not given */
        lg_triple strides LG_DEFAULT;  /* replaces .stride; default: not given */
        lg_triple paddings LG_DEFAULT; /* replaces .padding; default: not given */
        lg_triple sizes LG_DEFAULT;    /* sizes of the result; default: see below */
} lg_max_unpool3d_options;
/* Reverses max pooling with this kernel (PyTorch's F.max_unpool1d, 2d and 3d): returns zeros but for the elements of x,
 * at the indices that lg_max_pool2d() and the others store, of x's shape. An index beyond the result is
 * LG_ERR_ARGUMENT. If indices of an image's channel are equal, the last one is written, and each gets its gradient, as
 * in PyTorch. A side of the result has (side - 1) s - 2 p + K elements, or as many as the option says, which differ by
 * less than the stride s.
 * Examples: lg_max_unpool1d(x, i, 2), lg_max_unpool2d(x, i, 2, .sizes = LG_PAIR(5, 4)),
 * lg_max_unpool3d(x, i, 3, .stride = 2, .padding = 1) */
#define lg_max_unpool1d(...)                                                                                           \
        LG_CALL3(lg_max_unpool1d_with, lg_max_unpool1d_options, lg_max_unpool1d_takes_x_indices_kernel, V, V, I,       \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_unpool1d_with(lg_tensor *x, lg_tensor *indices, int64_t kernel,
                                              const lg_max_unpool1d_options *options);
#define lg_max_unpool2d(...)                                                                                           \
        LG_CALL3(lg_max_unpool2d_with, lg_max_unpool2d_options, lg_max_unpool2d_takes_x_indices_kernel, V, V, I,       \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_unpool2d_with(lg_tensor *x, lg_tensor *indices, int64_t kernel,
                                              const lg_max_unpool2d_options *options);
#define lg_max_unpool3d(...)                                                                                           \
        LG_CALL3(lg_max_unpool3d_with, lg_max_unpool3d_options, lg_max_unpool3d_takes_x_indices_kernel, V, V, I,       \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_unpool3d_with(lg_tensor *x, lg_tensor *indices, int64_t kernel,
                                              const lg_max_unpool3d_options *options);
/* Make layers of these ops, which take x and indices: lg_forward(layer, x, indices).
 * Examples: lg_nn_max_unpool1d(c, 2), lg_nn_max_unpool2d(c, 3, .stride = 2, .padding = 1),
 * lg_nn_max_unpool3d(c, 2) */
#define lg_nn_max_unpool1d(...)                                                                                        \
        LG_CALL2(lg_nn_max_unpool1d_with, lg_max_unpool1d_options, lg_nn_max_unpool1d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_max_unpool1d_with(lg_ctx *c, int64_t kernel, const lg_max_unpool1d_options *options);
#define lg_nn_max_unpool2d(...)                                                                                        \
        LG_CALL2(lg_nn_max_unpool2d_with, lg_max_unpool2d_options, lg_nn_max_unpool2d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_max_unpool2d_with(lg_ctx *c, int64_t kernel, const lg_max_unpool2d_options *options);
#define lg_nn_max_unpool3d(...)                                                                                        \
        LG_CALL2(lg_nn_max_unpool3d_with, lg_max_unpool3d_options, lg_nn_max_unpool3d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_max_unpool3d_with(lg_ctx *c, int64_t kernel, const lg_max_unpool3d_options *options);

/* ---- fractional pooling ---- */

typedef struct lg_fractional_max_pool2d_options {
        LG_OPTIONS_HEAD
        int64_t size LG_DEFAULT;         /* size of all sides of the result */
        lg_pair sizes LG_DEFAULT;        /* sizes of the result */
        double ratio LG_DEFAULT;         /* factor of all sides, between 0 and 1; a size is rounded down */
        lg_numbers_in ratios LG_DEFAULT; /* a factor for each side */
        lg_pair kernels LG_DEFAULT;      /* replaces the argument kernel, which may then be 0; default: not given */
        lg_tensor *samples LG_DEFAULT;   /* (N, C, 2), of x's dtype, in [0, 1); default: random numbers */
        lg_tensor **indices
                LG_DEFAULT; /* receives the index of each maximum, as that of lg_max_pool2d(); default NULL */
} lg_fractional_max_pool2d_options;
typedef struct lg_fractional_max_pool3d_options {
        LG_OPTIONS_HEAD
        int64_t size LG_DEFAULT;         /* size of all sides of the result */
        lg_triple sizes LG_DEFAULT;      /* sizes of the result */
        double ratio LG_DEFAULT;         /* factor of all sides, between 0 and 1; a size is rounded down */
        lg_numbers_in ratios LG_DEFAULT; /* a factor for each side */
        lg_triple kernels LG_DEFAULT;    /* replaces the argument kernel, which may then be 0; default: not given */
        lg_tensor *samples LG_DEFAULT;   /* (N, C, 3), of x's dtype, in [0, 1); default: random numbers */
        lg_tensor **indices
                LG_DEFAULT; /* receives the index of each maximum, as that of lg_max_pool3d(); default NULL */
} lg_fractional_max_pool3d_options;
/* Computes the maxima of windows at places that are random (PyTorch's F.fractional_max_pool2d and 3d; Graham, 2014), so
 * that the result has a given size: exactly one of .size, .sizes, .ratio and .ratios is given. Along a side of n
 * elements, window i of m begins at floor((i + u) a) - floor(u a) with a = (n - kernel) / (m - 1), and the last one at
 * n - kernel. The random numbers u, for each channel of each image, are those of .samples in the order (width, height)
 * or (depth, height, width), or the context's. m + kernel is at most n + 1. Ties and gradients are as in
 * lg_max_pool2d(). Needs memory for the i64 index of each element of each window.
 * Examples: lg_fractional_max_pool2d(x, 2, .ratio = 0.7, .indices = &i),
 * lg_fractional_max_pool3d(x, 2, .sizes = LG_TRIPLE(2, 3, 3)) */
#define lg_fractional_max_pool2d(...)                                                                                  \
        LG_CALL2(lg_fractional_max_pool2d_with, lg_fractional_max_pool2d_options,                                      \
                 lg_fractional_max_pool2d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_fractional_max_pool2d_with(lg_tensor *x, int64_t kernel,
                                                       const lg_fractional_max_pool2d_options *options);
#define lg_fractional_max_pool3d(...)                                                                                  \
        LG_CALL2(lg_fractional_max_pool3d_with, lg_fractional_max_pool3d_options,                                      \
                 lg_fractional_max_pool3d_takes_x_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_fractional_max_pool3d_with(lg_tensor *x, int64_t kernel,
                                                       const lg_fractional_max_pool3d_options *options);

typedef struct lg_fractional_max_pool2d_layer_options {
        LG_OPTIONS_HEAD
        int64_t size LG_DEFAULT;         /* size of all sides of the result */
        lg_pair sizes LG_DEFAULT;        /* sizes of the result */
        double ratio LG_DEFAULT;         /* factor of all sides, between 0 and 1; a size is rounded down */
        lg_numbers_in ratios LG_DEFAULT; /* a factor for each side */
        lg_pair kernels LG_DEFAULT;      /* replaces the argument kernel, which may then be 0; default: not given */
} lg_fractional_max_pool2d_layer_options;
typedef struct lg_fractional_max_pool3d_layer_options {
        LG_OPTIONS_HEAD
        int64_t size LG_DEFAULT;         /* size of all sides of the result */
        lg_triple sizes LG_DEFAULT;      /* sizes of the result */
        double ratio LG_DEFAULT;         /* factor of all sides, between 0 and 1; a size is rounded down */
        lg_numbers_in ratios LG_DEFAULT; /* a factor for each side */
        lg_triple kernels LG_DEFAULT;    /* replaces the argument kernel, which may then be 0; default: not given */
} lg_fractional_max_pool3d_layer_options;
/* Make layers of these ops.
 * Examples: lg_nn_fractional_max_pool2d(c, 2, .size = 5),
 * lg_nn_fractional_max_pool3d(c, 3, .ratios = LG_NUMBERS(0.5, 0.7, 0.7)) */
#define lg_nn_fractional_max_pool2d(...)                                                                               \
        LG_CALL2(lg_nn_fractional_max_pool2d_with, lg_fractional_max_pool2d_layer_options,                             \
                 lg_nn_fractional_max_pool2d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_fractional_max_pool2d_with(lg_ctx *c, int64_t kernel,
                                                          const lg_fractional_max_pool2d_layer_options *options);
#define lg_nn_fractional_max_pool3d(...)                                                                               \
        LG_CALL2(lg_nn_fractional_max_pool3d_with, lg_fractional_max_pool3d_layer_options,                             \
                 lg_nn_fractional_max_pool3d_takes_c_kernel, V, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_fractional_max_pool3d_with(lg_ctx *c, int64_t kernel,
                                                          const lg_fractional_max_pool3d_layer_options *options);

LG_END_C
#endif
