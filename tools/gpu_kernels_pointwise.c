/* gpu_kernels_pointwise.c - copies, values from nothing and elementwise functions, as rows of gpu_bench.
 *
 * Bytes are those that must move: each input read once, each output written once.
 */
#include "gpu_bench.h"

static void make_two(work *w)
{
        make_flat(w);
        w->y = values(w, LG_SHAPE(w->size[0]));
        w->bytes *= 1.5;
}

static void make_bias(work *w)
{
        make_matrix(w);
        w->y = values(w, LG_SHAPE(w->size[1]));
}

/* From f32, or to it. */
static void make_convert(work *w)
{
        const lg_dtype from = w->dtype == LG_F32 ? LG_F16 : LG_F32;
        w->x = lg_uniform(w->c, -1, 1, LG_SHAPE(w->size[0]), .dtype = from, .device = w->device);
        w->bytes = (double)(lg_dtype_size(from) + lg_dtype_size(w->dtype)) * (double)w->size[0];
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

/* x is written only. */
static void make_written(work *w)
{
        make_flat(w);
        w->bytes /= 2;
}

/* A bool, one byte, out. */
static void make_test(work *w)
{
        make_flat(w);
        w->bytes = (width(w) + 1) * (double)w->size[0];
}
static void make_comparison(work *w)
{
        make_two(w);
        w->bytes = (2 * width(w) + 1) * (double)w->size[0];
}

static void make_where(work *w)
{
        lg_shape shape = LG_SHAPE(w->size[0]);
        w->x = leaf(w, shape);
        w->w = leaf(w, shape);
        w->mean = lg_gt_scalar(values(w, shape), 0); /* the condition */
        w->bytes = (3 * width(w) + 1) * (double)w->size[0];
}
static void make_where_backward(work *w)
{
        make_where(w);
        w->y = lg_where(w->mean, w->x, w->w);
        w->z = values(w, LG_SHAPE(w->size[0]));
}

/* y = f(x) and a gradient for it. */
static void make_slope(work *w, lg_tensor *(*f)(lg_tensor *x))
{
        make_flat(w);
        w->y = f(lg_requires_grad(w->x, true));
        w->z = values(w, LG_SHAPE(w->size[0]));
        w->bytes *= 1.5;
}
static void make_relu_backward(work *w)
{
        make_slope(w, lg_relu);
}
static void make_gelu_backward(work *w)
{
        make_slope(w, lg_gelu);
}

static void make_mul_backward(work *w)
{
        make_flat(w);
        lg_requires_grad(w->x, true);
        w->w = leaf(w, LG_SHAPE(w->size[0]));
        w->y = lg_mul(w->x, w->w);
        w->z = values(w, LG_SHAPE(w->size[0]));
        w->bytes *= 2.5;
}

static void run_copy(work *w)
{
        drop(lg_copy(w->x, LG_NO_DEVICE));
}
static void run_convert(work *w)
{
        drop(lg_cast(w->x, w->dtype));
}
static void run_contiguous(work *w)
{
        drop(lg_contiguous(w->x));
}
static void run_fill(work *w)
{
        lg_fill_(w->x, 0.5);
}
static void run_arange(work *w)
{
        drop(lg_arange(w->c, 0, w->size[0], 1, .dtype = w->dtype, .device = w->device));
}
static void run_uniform(work *w)
{
        values(w, LG_SHAPE(w->size[0]));
}
static void run_normal(work *w)
{
        drop(lg_normal(w->c, 0, 1, LG_SHAPE(w->size[0]), .dtype = w->dtype, .device = w->device));
}
static void run_dropout(work *w)
{
        drop(lg_dropout(w->x, 0.5));
}
static void run_relu(work *w)
{
        drop(lg_relu(w->x));
}
static void run_gelu(work *w)
{
        drop(lg_gelu(w->x));
}
static void run_add(work *w)
{
        drop(lg_add(w->x, w->y));
}
static void run_gt(work *w)
{
        drop(lg_gt(w->x, w->y));
}
static void run_gt_scalar(work *w)
{
        drop(lg_gt_scalar(w->x, 0.5));
}
static void run_isfinite(work *w)
{
        drop(lg_isfinite(w->x));
}
static void run_where(work *w)
{
        drop(lg_where(w->mean, w->x, w->w));
}

#define FLAT                                                                                                           \
        {1 << 26},                                                                                                     \
        {                                                                                                              \
                1 << 12                                                                                                \
        }
#define WIDE                                                                                                           \
        {16384, 4096},                                                                                                 \
        {                                                                                                              \
                32, 64                                                                                                 \
        }
static const row table[] = {
        {"copy", "copy", F32, {1 << 28}, {1 << 14}, make_flat, run_copy, false}, /* the first: others are shares of it
                                                                                  */
        {"copy", "copy", F16 | BF16, FLAT, make_flat, run_copy, false},
        {"convert", "copy", FLOATS, FLAT, make_convert, run_convert, false},
        {"copy every second", "copy", FLOATS, WIDE, make_strided, run_contiguous, false},
        {"copy transposed", "copy", FLOATS, WIDE, make_transposed, run_contiguous, false},
        {"fill", "fill", FLOATS, FLAT, make_written, run_fill, false},
        {"arange", "arange", F32, FLAT, make_written, run_arange, false},
        {"uniform", "random", FLOATS, FLAT, make_written, run_uniform, false},
        {"normal", "random", FLOATS, FLAT, make_written, run_normal, false},
        {"dropout", "dropout", FLOATS, FLAT, make_flat, run_dropout, false},
        {"relu", "relu", FLOATS, FLAT, make_flat, run_relu, false},
        {"relu backward", "relu_da", FLOATS, FLAT, make_relu_backward, run_backward, false},
        {"gelu", "gelu", FLOATS, FLAT, make_flat, run_gelu, false},
        {"gelu backward", "gelu_da", FLOATS, FLAT, make_gelu_backward, run_backward, false},
        {"add", "add", FLOATS, FLAT, make_two, run_add, false},
        {"add a row", "add", FLOATS, WIDE, make_bias, run_add, false},
        {"mul backward", "mul_da mul_db", FLOATS, FLAT, make_mul_backward, run_backward_both, false},
        {"gt", "gt", FLOATS, FLAT, make_comparison, run_gt, false},
        {"gt_scalar", "gt_scalar", FLOATS, FLAT, make_test, run_gt_scalar, false},
        {"isfinite", "isfinite", FLOATS, FLAT, make_test, run_isfinite, false},
        {"where", "where", FLOATS, FLAT, make_where, run_where, false},
        {"where backward", "where_da where_db", FLOATS, FLAT, make_where_backward, run_backward_both, false},
};
const rows pointwise_rows = ROWS(table);
