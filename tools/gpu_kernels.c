/* gpu_kernels.c - the kernels that gpu_bench measures, one row each, with the bytes and operations of a call.
 *
 * Bytes are those that must move: each input read once, each output written once.
 */
#include "gpu_bench.h"

static lg_tensor *values(work *w, lg_shape shape)
{
        return lg_uniform(w->c, -1, 1, shape, .dtype = w->dtype, .device = w->device);
}

static lg_tensor *leaf(work *w, lg_shape shape)
{
        return lg_requires_grad(values(w, shape), true);
}

static double width(const work *w)
{
        return (double)lg_dtype_size(w->dtype);
}

/* ---- pointwise and copies ---- */

static void make_flat(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0]));
        w->bytes = 2 * width(w) * (double)w->size[0];
}

static void make_two(work *w)
{
        make_flat(w);
        w->y = values(w, LG_SHAPE(w->size[0]));
        w->bytes = 3 * width(w) * (double)w->size[0];
}

static void make_matrix(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes = 2 * width(w) * (double)(w->size[0] * w->size[1]);
}

static void make_bias(work *w)
{
        make_matrix(w);
        w->y = values(w, LG_SHAPE(w->size[1]));
}

/* Every second column: whole lines are read for half of their elements. */
static void make_strided(work *w)
{
        make_matrix(w);
        w->x = lg_slice(w->x, 1, 0, LG_MAX, .step = 2);
        w->bytes *= 0.75;
}

static void make_transposed(work *w)
{
        make_matrix(w);
        w->x = lg_transpose(w->x, 0, 1);
}

static void make_random(work *w)
{
        w->bytes = width(w) * (double)w->size[0];
}

static void run_copy(work *w)
{
        lg_copy(w->x, (lg_device){0});
}
static void run_add(work *w)
{
        lg_add(w->x, w->y);
}
static void run_relu(work *w)
{
        lg_relu(w->x);
}
static void run_gelu(work *w)
{
        lg_gelu(w->x);
}
static void run_contiguous(work *w)
{
        lg_contiguous(w->x);
}
static void run_uniform(work *w)
{
        values(w, LG_SHAPE(w->size[0]));
}

/* ---- reductions, norms, losses ---- */

static void make_reduce(work *w)
{
        make_matrix(w);
        w->bytes /= 2;
}
static void run_sum(work *w)
{
        lg_sum(w->x);
}
static void run_sum_rows(work *w)
{
        lg_sum(w->x, .dims = LG_DIMS(1));
}
static void run_sum_columns(work *w)
{
        lg_sum(w->x, .dims = LG_DIMS(0));
}
static void run_softmax(work *w)
{
        lg_softmax(w->x, 1);
}

/* The derivative of y by x, for a gradient of y's shape. */
static void run_backward(work *w)
{
        lg_grad(LG_LIST(w->y), LG_LIST(w->x), .grads = LG_LIST(w->z), .retain_graph = true);
}

static void make_layer_norm(work *w)
{
        make_matrix(w);
        w->y = values(w, LG_SHAPE(w->size[1]));
        w->z = values(w, LG_SHAPE(w->size[1]));
}
static void run_layer_norm(work *w)
{
        lg_layer_norm(w->x, 1, w->y, w->z);
}
/* The gradients of weight and bias belong to it: a layer's backward has all three. */
static void run_norm_backward(work *w)
{
        lg_grad(LG_LIST(w->y), LG_LIST(w->x, w->w), .grads = LG_LIST(w->z), .retain_graph = true);
}
static void make_layer_norm_backward(work *w)
{
        make_matrix(w);
        lg_requires_grad(w->x, true);
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->y = lg_layer_norm(w->x, 1, w->w, leaf(w, LG_SHAPE(w->size[1])));
        w->z = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes *= 1.5;
}

static lg_shape images(const work *w)
{
        return LG_SHAPE(w->size[0], w->size[1], w->size[2], w->size[2]);
}
static double image_bytes(const work *w)
{
        return width(w) * (double)(w->size[0] * w->size[1] * w->size[2] * w->size[2]);
}
static void make_batch_norm(work *w)
{
        w->x = leaf(w, images(w));
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->z = values(w, LG_SHAPE(w->size[1]));
        w->bytes = 2 * image_bytes(w);
}
static void run_batch_norm(work *w)
{
        lg_batch_norm(w->x, w->w, w->z, .training = true);
}
static void make_batch_norm_backward(work *w)
{
        make_batch_norm(w);
        w->y = lg_batch_norm(w->x, w->w, lg_requires_grad(w->z, true), .training = true);
        w->z = values(w, images(w));
        w->bytes = 3 * image_bytes(w);
}

static void make_cross_entropy(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->y = lg_cast(lg_uniform(w->c, 0, w->size[1], LG_SHAPE(w->size[0]), .device = w->device), LG_I64);
        w->y = lg_minimum(w->y, lg_full(w->c, w->size[1] - 1, LG_SHAPE(1), .dtype = LG_I64, .device = w->device));
        w->bytes = width(w) * (double)(w->size[0] * w->size[1]);
}
static void run_cross_entropy(work *w)
{
        lg_cross_entropy(w->x, w->y);
}
static void make_cross_entropy_backward(work *w)
{
        make_cross_entropy(w);
        w->y = lg_cross_entropy(w->x, w->y);
        w->z = lg_full(w->c, 1, LG_SHAPE_0D, .dtype = w->dtype, .device = w->device);
        w->bytes *= 2;
}

static void make_pool(work *w)
{
        w->x = leaf(w, images(w));
        w->bytes = 1.25 * image_bytes(w);
}
static void run_pool(work *w)
{
        lg_max_pool2d(w->x, 2);
}
static void make_pool_backward(work *w)
{
        make_pool(w);
        w->y = lg_max_pool2d(w->x, 2);
        w->z = values(w, lg_shape_of(w->y));
}

/* ---- look-up and order ---- */

static void make_embedding(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->y = lg_permutation(w->c, w->size[0], .device = w->device);
        w->bytes = 2 * width(w) * (double)(w->size[0] * w->size[1]);
}
static void run_embedding(work *w)
{
        lg_index_select(w->x, 0, w->y);
}
static void make_sort(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0], w->size[1]));
}
static void run_sort(work *w)
{
        lg_sort(w->x, 1);
}

/* ---- optimisers: size[0] tensors of size[1] elements ---- */

enum { MOST_PARAMETERS = 256 };

static void make_parameters(work *w, bool adam)
{
        lg_tensor *p[MOST_PARAMETERS];
        int64_t count = w->size[0];
        for (int64_t i = 0; i < count; i++) {
                p[i] = leaf(w, LG_SHAPE(w->size[1]));
                lg_backward(lg_sum(p[i]));
        }
        lg_list list = {count, p};
        w->opt = adam ? lg_adam(w->c, list, 1e-3) : lg_sgd(w->c, list, 1e-3, .momentum = 0.9);
        w->bytes = (adam ? 7 : 5) * width(w) * (double)(count * w->size[1]);
}
static void make_adam(work *w)
{
        make_parameters(w, true);
}
static void make_sgd(work *w)
{
        make_parameters(w, false);
}
static void run_step(work *w)
{
        lg_step(w->opt);
}

/* ---- products: (size[3] times) m x k by k x n ---- */

static void make_gemm(work *w)
{
        int64_t m = w->size[0], n = w->size[1], k = w->size[2], batch = w->size[3] ? w->size[3] : 1;
        w->x = values(w, batch > 1 ? LG_SHAPE(batch, m, k) : LG_SHAPE(m, k));
        w->y = values(w, batch > 1 ? LG_SHAPE(batch, k, n) : LG_SHAPE(k, n));
        w->flops = 2 * (double)batch * (double)m * (double)n * (double)k;
        w->bytes = width(w) * (double)batch * (double)(m * k + k * n + m * n);
}
static void run_gemm(work *w)
{
        lg_matmul(w->x, w->y);
}

/* 3x3, padding 1: size[0] images of size[1] channels, size[2] wide, to as many channels. */
static void make_conv(work *w)
{
        int64_t channels = w->size[1];
        w->x = leaf(w, images(w));
        w->w = leaf(w, LG_SHAPE(channels, channels, 3, 3));
        w->flops = 2 * 9 * (double)channels * image_bytes(w) / width(w);
        w->bytes = 2 * image_bytes(w);
}
static void run_conv(work *w)
{
        lg_conv2d(w->x, w->w, NULL, .padding = 1);
}
static void make_conv_backward(work *w)
{
        make_conv(w);
        w->y = lg_conv2d(w->x, w->w, NULL, .padding = 1);
        w->z = values(w, images(w));
        w->flops *= 2;
        w->bytes = 3 * image_bytes(w);
}

const row kernel_rows[] = {
        {"copy", LG_F32, {1 << 28}, {1 << 16}, make_flat, run_copy, false},
        {"add", LG_F32, {1 << 26}, {1 << 14}, make_two, run_add, false},
        {"add", LG_F16, {1 << 26}, {1 << 14}, make_two, run_add, false},
        {"add a row", LG_F32, {16384, 4096}, {64, 128}, make_bias, run_add, false},
        {"relu", LG_F32, {1 << 26}, {1 << 14}, make_flat, run_relu, false},
        {"relu", LG_F16, {1 << 26}, {1 << 14}, make_flat, run_relu, false},
        {"gelu", LG_F32, {1 << 26}, {1 << 14}, make_flat, run_gelu, false},
        {"copy every second", LG_F32, {16384, 4096}, {64, 128}, make_strided, run_contiguous, false},
        {"copy transposed", LG_F32, {16384, 4096}, {64, 128}, make_transposed, run_contiguous, false},
        {"uniform", LG_F32, {1 << 26}, {1 << 14}, make_random, run_uniform, false},
        {"sum", LG_F32, {16384, 4096}, {64, 128}, make_reduce, run_sum, false},
        {"sum of rows", LG_F32, {16384, 4096}, {64, 128}, make_reduce, run_sum_rows, false},
        {"sum of columns", LG_F32, {16384, 4096}, {64, 128}, make_reduce, run_sum_columns, false},
        {"softmax", LG_F32, {16384, 4096}, {64, 128}, make_matrix, run_softmax, false},
        {"softmax", LG_F16, {16384, 4096}, {64, 128}, make_matrix, run_softmax, false},
        {"layer_norm", LG_F32, {16384, 4096}, {64, 128}, make_layer_norm, run_layer_norm, false},
        {"layer_norm backward", LG_F32, {16384, 4096}, {64, 128}, make_layer_norm_backward, run_norm_backward, false},
        {"batch_norm", LG_F32, {64, 64, 112}, {2, 4, 16}, make_batch_norm, run_batch_norm, false},
        {"batch_norm backward", LG_F32, {64, 64, 112}, {2, 4, 16}, make_batch_norm_backward, run_norm_backward, false},
        {"cross_entropy", LG_F32, {16384, 4096}, {64, 128}, make_cross_entropy, run_cross_entropy, false},
        {"cross_entropy backward", LG_F32, {16384, 4096}, {64, 128}, make_cross_entropy_backward, run_backward, false},
        {"max_pool2d", LG_F32, {64, 64, 112}, {2, 4, 16}, make_pool, run_pool, false},
        {"max_pool2d backward", LG_F32, {64, 64, 112}, {2, 4, 16}, make_pool_backward, run_backward, false},
        {"index_select", LG_F32, {16384, 4096}, {64, 128}, make_embedding, run_embedding, false},
        {"sort", LG_F32, {4096, 4096}, {8, 64}, make_sort, run_sort, false},
        {"adam", LG_F32, {160, 65536}, {16, 64}, make_adam, run_step, false},
        {"sgd momentum", LG_F32, {160, 65536}, {16, 64}, make_sgd, run_step, false},
        {"gemm", LG_F32, {512, 512, 512}, {32, 32, 32}, make_gemm, run_gemm, true},
        {"gemm", LG_F32, {2048, 2048, 2048}, {32, 32, 32}, make_gemm, run_gemm, true},
        {"gemm", LG_F32, {8192, 8192, 8192}, {32, 32, 32}, make_gemm, run_gemm, true},
        {"gemm", LG_F32, {64, 128, 784}, {8, 16, 49}, make_gemm, run_gemm, true},
        {"gemm", LG_F32, {512, 512, 64, 96}, {8, 8, 8, 4}, make_gemm, run_gemm, true},
        {"gemm", LG_F16, {2048, 2048, 2048}, {32, 32, 32}, make_gemm, run_gemm, false},
        {"gemm", LG_F16, {8192, 8192, 8192}, {32, 32, 32}, make_gemm, run_gemm, false},
        {"gemm", LG_BF16, {2048, 2048, 2048}, {32, 32, 32}, make_gemm, run_gemm, false},
        {"gemm", LG_BF16, {8192, 8192, 8192}, {32, 32, 32}, make_gemm, run_gemm, false},
        {"gemm", LG_F64, {4096, 4096, 4096}, {32, 32, 32}, make_gemm, run_gemm, false},
        {"conv2d", LG_F32, {64, 64, 56}, {1, 8, 8}, make_conv, run_conv, true},
        {"conv2d backward", LG_F32, {64, 64, 56}, {1, 8, 8}, make_conv_backward, run_norm_backward, true},
        {"conv2d", LG_F32, {64, 256, 14}, {1, 8, 8}, make_conv, run_conv, true},
        {"conv2d backward", LG_F32, {64, 256, 14}, {1, 8, 8}, make_conv_backward, run_norm_backward, true},
        {"conv2d", LG_F16, {64, 64, 56}, {1, 8, 8}, make_conv, run_conv, false},
        {"conv2d backward", LG_F16, {64, 64, 56}, {1, 8, 8}, make_conv_backward, run_norm_backward, false},
        {"conv2d", LG_F16, {64, 256, 14}, {1, 8, 8}, make_conv, run_conv, false},
        {"conv2d backward", LG_F16, {64, 256, 14}, {1, 8, 8}, make_conv_backward, run_norm_backward, false},
        {"copy", LG_F32, {1 << 28}, {1 << 16}, make_flat, run_copy, false}, /* again, with the clocks up */
};
const int kernel_row_count = (int)(sizeof kernel_rows / sizeof *kernel_rows);
