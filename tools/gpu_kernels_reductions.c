/* gpu_kernels_reductions.c - reductions, soft-max, norms, losses and running sums, as rows of gpu_bench. */
#include "gpu_bench.h"

static void make_reduce(work *w)
{
        make_matrix(w);
        w->bytes /= 2;
}
static void run_sum(work *w)
{
        drop(lg_sum(w->x));
}
static void run_sum_rows(work *w)
{
        drop(lg_sum(w->x, .dims = LG_DIMS(1)));
}
static void run_sum_columns(work *w)
{
        drop(lg_sum(w->x, .dims = LG_DIMS(0)));
}
static void run_amax(work *w)
{
        drop(lg_amax(w->x));
}
static void run_amax_rows(work *w)
{
        drop(lg_amax(w->x, .dims = LG_DIMS(1)));
}
static void run_amax_columns(work *w)
{
        drop(lg_amax(w->x, .dims = LG_DIMS(0)));
}
static void run_argmax(work *w)
{
        drop(lg_argmax(w->x));
}
static void run_argmax_rows(work *w)
{
        drop(lg_argmax(w->x, .dims = LG_DIMS(1)));
}
static void run_argmax_columns(work *w)
{
        drop(lg_argmax(w->x, .dims = LG_DIMS(0)));
}
static void run_var(work *w)
{
        drop(lg_var(w->x));
}
static void run_var_rows(work *w)
{
        drop(lg_var(w->x, .dims = LG_DIMS(1)));
}
static void run_var_columns(work *w)
{
        drop(lg_var(w->x, .dims = LG_DIMS(0)));
}

/* ---- soft-max and running sums ---- */

static void make_rows_backward(work *w, lg_tensor *(*f)(lg_tensor *x, int dim))
{
        make_matrix(w);
        w->y = f(lg_requires_grad(w->x, true), 1);
        w->z = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes *= 1.5;
}
/* The gradient of the bias alone: no product is computed. */
static void make_bias_of_relu(work *w)
{
        w->net = lg_nn_sequential(w->c, lg_nn_linear(w->c, 16, w->size[1], .dtype = w->dtype, .device = w->device),
                                  lg_nn_relu(w->c));
        w->w = lg_parameter(w->net, "0.bias");
        w->y = lg_forward(w->net, values(w, LG_SHAPE(w->size[0], 16)));
        w->z = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes = 3 * width(w) * (double)(w->size[0] * w->size[1]);
}
static void make_softmax_backward(work *w)
{
        make_rows_backward(w, lg_softmax);
}
static void make_log_softmax_backward(work *w)
{
        make_rows_backward(w, lg_log_softmax);
}
static void run_softmax(work *w)
{
        drop(lg_softmax(w->x, 1));
}
static void run_log_softmax(work *w)
{
        drop(lg_log_softmax(w->x, 1));
}
static void run_cumsum_rows(work *w)
{
        drop(lg_cumsum(w->x, 1));
}
static void run_cumsum_columns(work *w)
{
        drop(lg_cumsum(w->x, 0));
}
static void run_logcumsumexp_rows(work *w)
{
        drop(lg_logcumsumexp(w->x, 1));
}
static void run_logcumsumexp_columns(work *w)
{
        drop(lg_logcumsumexp(w->x, 0));
}

/* ---- norms; a layer's backward has the gradients of weight and bias, too ---- */

static void make_layer_norm(work *w)
{
        make_matrix(w);
        lg_requires_grad(w->x, true);
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->z = leaf(w, LG_SHAPE(w->size[1]));
}
static void run_layer_norm(work *w)
{
        drop(lg_layer_norm(w->x, 1, w->w, w->z));
}
static void make_layer_norm_backward(work *w)
{
        make_layer_norm(w);
        w->y = lg_layer_norm(w->x, 1, w->w, w->z);
        w->z = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes *= 1.5;
}

static void make_batch_norm(work *w)
{
        w->x = lg_requires_grad(images(w), true);
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->z = leaf(w, LG_SHAPE(w->size[1]));
        w->mean = values(w, LG_SHAPE(w->size[1]));
        w->var = lg_full(w->c, 1, LG_SHAPE(w->size[1]), .dtype = w->dtype, .device = w->device);
        w->bytes = 2 * image_bytes(w);
}
static void run_batch_norm(work *w)
{
        drop(lg_batch_norm(w->x, w->w, w->z, .running_mean = w->mean, .running_var = w->var, .training = true));
}
static void run_batch_norm_evaluation(work *w)
{
        drop(lg_batch_norm(w->x, w->w, w->z, .running_mean = w->mean, .running_var = w->var));
}
static void make_batch_norm_backward(work *w)
{
        make_batch_norm(w);
        w->y = lg_batch_norm(w->x, w->w, w->z, .training = true);
        w->z = images(w);
        w->bytes = 3 * image_bytes(w);
}

static void make_group_norm(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1], w->size[2], w->size[2]));
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->z = leaf(w, LG_SHAPE(w->size[1]));
        w->bytes = 2 * image_bytes(w);
}
static lg_tensor *group_norm(work *w)
{
        return lg_group_norm(w->x, w->size[1] / 2, w->w, w->z);
}
static void run_group_norm(work *w)
{
        group_norm(w);
}
static void make_group_norm_backward(work *w)
{
        make_group_norm(w);
        w->y = group_norm(w);
        w->z = values(w, lg_shape_of(w->y));
        w->bytes *= 1.5;
}

/* ---- cross-entropy ---- */

static void make_cross_entropy(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->y = indices(w, LG_SHAPE(w->size[0]), w->size[1]);
        w->w = lg_full(w->c, 0.5, LG_SHAPE(w->size[1]), .dtype = w->dtype, .device = w->device);
        w->bytes = width(w) * (double)(w->size[0] * w->size[1]);
}
static void run_cross_entropy(work *w)
{
        drop(lg_cross_entropy(w->x, w->y));
}
static void run_cross_entropy_weighted(work *w)
{
        drop(lg_cross_entropy(w->x, w->y, .weight = w->w));
}
static void make_cross_entropy_backward(work *w)
{
        make_cross_entropy(w);
        w->y = lg_cross_entropy(w->x, w->y);
        w->z = lg_full(w->c, 1, LG_SHAPE_0D, .dtype = w->dtype, .device = w->device);
        w->bytes *= 2;
}

#define WIDE                                                                                                           \
        {16384, 4096},                                                                                                 \
        {                                                                                                              \
                32, 64                                                                                                 \
        }
#define IMAGES                                                                                                         \
        {64, 64, 112},                                                                                                 \
        {                                                                                                              \
                2, 4, 8                                                                                                \
        }
static const row table[] = {
        {"sum", "reduce", FLOATS, WIDE, make_reduce, run_sum, false},
        {"sum of rows", "reduce", FLOATS, WIDE, make_reduce, run_sum_rows, false},
        {"sum of columns", "reduce", FLOATS, WIDE, make_reduce, run_sum_columns, false},
        {"amax", "reduce", FLOATS, WIDE, make_reduce, run_amax, false},
        {"amax of rows", "reduce", FLOATS, WIDE, make_reduce, run_amax_rows, false},
        {"amax of columns", "reduce", FLOATS, WIDE, make_reduce, run_amax_columns, false},
        {"argmax", "reduce", FLOATS, WIDE, make_reduce, run_argmax, false},
        {"argmax of rows", "reduce", FLOATS, WIDE, make_reduce, run_argmax_rows, false},
        {"argmax of columns", "reduce", FLOATS, WIDE, make_reduce, run_argmax_columns, false},
        {"var", "reduce", FLOATS, WIDE, make_reduce, run_var, false},
        {"var of rows", "reduce", FLOATS, WIDE, make_reduce, run_var_rows, false},
        {"var of columns", "reduce", FLOATS, WIDE, make_reduce, run_var_columns, false},
        {"softmax", "softmax", FLOATS, WIDE, make_matrix, run_softmax, false},
        {"bias and relu backward", "relu_sums", FLOATS, WIDE, make_bias_of_relu, run_backward_w, false},
        {"softmax backward", "softmax_vjp", FLOATS, WIDE, make_softmax_backward, run_backward, false},
        {"log_softmax", "softmax", FLOATS, WIDE, make_matrix, run_log_softmax, false},
        {"log_softmax backward", "softmax_vjp", FLOATS, WIDE, make_log_softmax_backward, run_backward, false},
        {"cumsum of rows", "cumsum", FLOATS, WIDE, make_matrix, run_cumsum_rows, false},
        {"cumsum of columns", "cumsum", FLOATS, WIDE, make_matrix, run_cumsum_columns, false},
        {"logcumsumexp of rows", "logcumsumexp", FLOATS, WIDE, make_matrix, run_logcumsumexp_rows, false},
        {"logcumsumexp of columns", "logcumsumexp", FLOATS, WIDE, make_matrix, run_logcumsumexp_columns, false},
        {"layer_norm", "layer_norm", FLOATS, WIDE, make_layer_norm, run_layer_norm, false},
        {"layer_norm backward", "layer_norm_vjp", FLOATS, WIDE, make_layer_norm_backward, run_backward_both, false},
        {"group_norm", "layer_norm", FLOATS, IMAGES, make_group_norm, run_group_norm, false},
        {"group_norm backward", "layer_norm_vjp", FLOATS, IMAGES, make_group_norm_backward, run_backward_both, false},
        {"batch_norm", "batch_norm", FLOATS, IMAGES, make_batch_norm, run_batch_norm, false},
        {"batch_norm backward", "batch_norm_vjp", FLOATS, IMAGES, make_batch_norm_backward, run_backward_both, false},
        {"batch_norm in evaluation", "batch_norm", FLOATS, IMAGES, make_batch_norm, run_batch_norm_evaluation, false},
        {"cross_entropy", "cross_entropy", FLOATS, WIDE, make_cross_entropy, run_cross_entropy, false},
        {"cross_entropy by weight", "class_weights softmax reduce", FLOATS, WIDE, make_cross_entropy,
         run_cross_entropy_weighted, false},
        {"cross_entropy backward", "cross_entropy_vjp", FLOATS, WIDE, make_cross_entropy_backward, run_backward, false},
};
const rows reduction_rows = ROWS(table);
