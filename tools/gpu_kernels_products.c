/* gpu_kernels_products.c - matrix products and convolutions, as rows of gpu_bench. */
#include "gpu_bench.h"

/* ---- (size[3] times) m x n from m x k and k x n ---- */

static void make_gemm(work *w)
{
        int64_t m = w->size[0], n = w->size[1], k = w->size[2], batch = w->size[3] ? w->size[3] : 1;
        w->x = values(w, batch > 1 ? LG_SHAPE(batch, m, k) : LG_SHAPE(m, k));
        w->y = values(w, batch > 1 ? LG_SHAPE(batch, k, n) : LG_SHAPE(k, n));
        w->flops = 2 * (double)batch * (double)m * (double)n * (double)k;
        w->bytes = width(w) * (double)batch * (double)(m * k + k * n + m * n);
}
/* Of squares. */
static void make_gemm_nt(work *w)
{
        make_gemm(w);
        w->y = lg_transpose(w->y, 0, 1);
}
static void make_gemm_tn(work *w)
{
        make_gemm(w);
        w->x = lg_transpose(w->x, 0, 1);
}
static void run_gemm(work *w)
{
        drop(lg_matmul(w->x, w->y));
}

/* ---- size[0] images of size[1] channels, size[2] wide, to as many of the same size by kernels size[3] wide ---- */

static lg_tensor *conv(work *w)
{
        return lg_conv2d(w->x, w->w, NULL, .padding = w->size[3] / 2);
}
static void make_conv(work *w)
{
        int64_t channels = w->size[1], wide = w->size[3];
        w->x = images(w);
        w->w = values(w, LG_SHAPE(channels, channels, wide, wide));
        w->flops = 2 * (double)(wide * wide * channels) * image_bytes(w) / width(w);
        w->bytes = 2 * image_bytes(w);
}
static void run_conv(work *w)
{
        conv(w);
}
static void make_conv_dgrad(work *w)
{
        make_conv(w);
        lg_requires_grad(w->x, true);
        w->y = conv(w);
        w->z = images(w);
}
static void make_conv_wgrad(work *w)
{
        make_conv(w);
        lg_requires_grad(w->w, true);
        w->y = conv(w);
        w->z = images(w);
}

/* Each channel by itself: bytes matter, not operations. */
static lg_tensor *depthwise(work *w)
{
        return lg_conv2d(w->x, w->w, NULL, .padding = w->size[3] / 2, .groups = w->size[1]);
}
static void make_depthwise(work *w)
{
        w->x = images(w);
        w->w = values(w, LG_SHAPE(w->size[1], 1, w->size[3], w->size[3]));
        w->bytes = 2 * image_bytes(w);
}
static void run_depthwise(work *w)
{
        depthwise(w);
}
static void make_depthwise_dgrad(work *w)
{
        make_depthwise(w);
        lg_requires_grad(w->x, true);
        w->y = depthwise(w);
        w->z = images(w);
}
static void make_depthwise_wgrad(work *w)
{
        make_depthwise(w);
        lg_requires_grad(w->w, true);
        w->y = depthwise(w);
        w->z = images(w);
}

#define CUBE(n)                                                                                                        \
        {n, n, n},                                                                                                     \
        {                                                                                                              \
                32, 32, 32                                                                                             \
        }
#define WIDE                                                                                                           \
        {64, 64, 56, 3},                                                                                               \
        {                                                                                                              \
                1, 8, 6, 3                                                                                             \
        }
#define DEEP                                                                                                           \
        {64, 256, 14, 3},                                                                                              \
        {                                                                                                              \
                1, 8, 6, 3                                                                                             \
        }
#define POINTS                                                                                                         \
        {64, 256, 56, 1},                                                                                              \
        {                                                                                                              \
                1, 8, 6, 1                                                                                             \
        }
static const row table[] = {
        {"gemm", "gemm", FLOATS, CUBE(512), make_gemm, run_gemm, true},
        {"gemm", "gemm", FLOATS, CUBE(2048), make_gemm, run_gemm, true},
        {"gemm", "gemm", FLOATS, CUBE(8192), make_gemm, run_gemm, true},
        {"gemm", "gemm", F64, CUBE(4096), make_gemm, run_gemm, false},
        {"gemm small", "gemm", FLOATS, {64, 128, 784}, {8, 16, 49}, make_gemm, run_gemm, true},
        {"gemm batched", "gemm", FLOATS, {512, 512, 64, 96}, {8, 8, 8, 4}, make_gemm, run_gemm, true},
        {"gemm, b transposed", "gemm", FLOATS, CUBE(2048), make_gemm_nt, run_gemm, true},
        {"gemm, a transposed", "gemm", FLOATS, CUBE(2048), make_gemm_tn, run_gemm, true},
        {"conv2d", "conv", FLOATS, WIDE, make_conv, run_conv, true},
        {"conv2d dgrad", "conv", FLOATS, WIDE, make_conv_dgrad, run_backward, true},
        {"conv2d wgrad", "conv", FLOATS, WIDE, make_conv_wgrad, run_backward_w, true},
        {"conv2d", "conv", FLOATS, DEEP, make_conv, run_conv, true},
        {"conv2d dgrad", "conv", FLOATS, DEEP, make_conv_dgrad, run_backward, true},
        {"conv2d wgrad", "conv", FLOATS, DEEP, make_conv_wgrad, run_backward_w, true},
        {"conv2d", "conv", FLOATS, POINTS, make_conv, run_conv, true},
        {"conv2d dgrad", "conv", FLOATS, POINTS, make_conv_dgrad, run_backward, true},
        {"conv2d wgrad", "conv", FLOATS, POINTS, make_conv_wgrad, run_backward_w, true},
        {"conv2d depthwise", "conv", FLOATS, WIDE, make_depthwise, run_depthwise, false},
        {"conv2d depthwise dgrad", "conv", FLOATS, WIDE, make_depthwise_dgrad, run_backward, false},
        {"conv2d depthwise wgrad", "conv", FLOATS, WIDE, make_depthwise_wgrad, run_backward_w, false},
};
const rows product_rows = ROWS(table);
