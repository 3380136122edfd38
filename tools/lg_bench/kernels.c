/* kernels.c - single kernels: an op on one array without recording, and the gradients of its result (NAME-grad).
 *
 * An array has 65,536 or 16,777,216 numbers in f32: (rows, 1024), (N, 64, 16, 16) with channels last, or square.
 * `passes` is the least number of arrays of the input's size that a kernel must read or write.
 */
#include <math.h>
#include "bench.h"

enum { COLUMNS = 1024, CHANNELS = 64, SIDE = 16 };

/* ---- inputs ---- */

static void make_rows(work *w)
{
        w->x = lg_uniform(w->c, -1, 1, LG_SHAPE(w->count / COLUMNS, COLUMNS));
        w->w = lg_ones(w->c, LG_SHAPE(COLUMNS), .requires_grad = true);
        w->b = lg_zeros(w->c, LG_SHAPE(COLUMNS), .requires_grad = true);
        w->y = lg_randint(w->c, 0, COLUMNS, LG_SHAPE(w->count / COLUMNS));
}

static void make_square(work *w)
{
        int64_t side = (int64_t)sqrt((double)w->count);
        w->x = lg_uniform(w->c, -1, 1, LG_SHAPE(side, side));
}

static void make_images(work *w)
{
        lg_tensor *x = lg_uniform(w->c, -1, 1, LG_SHAPE(w->count / (CHANNELS * SIDE * SIDE), SIDE, SIDE, CHANNELS));
        w->x = lg_permute(x, LG_DIMS(0, 3, 1, 2));
        w->w = lg_ones(w->c, LG_SHAPE(CHANNELS), .requires_grad = true);
        w->b = lg_zeros(w->c, LG_SHAPE(CHANNELS), .requires_grad = true);
}

/* ---- ops ---- */

static lg_tensor *op_gelu(work *w)
{
        return lg_gelu(w->x);
}

static lg_tensor *op_softmax(work *w)
{
        return lg_softmax(w->x, -1);
}

static lg_tensor *op_layer_norm(work *w)
{
        return lg_layer_norm(w->x, LG_SHAPE(lg_size_of(w->x, -1)), w->w, w->b);
}

static lg_tensor *op_batch_norm(work *w)
{
        return lg_batch_norm(w->x, w->w, w->b, .training = true);
}

static lg_tensor *op_dropout(work *w)
{
        return lg_dropout(w->x, 0.5, .training = true);
}

static lg_tensor *op_cross_entropy(work *w)
{
        return lg_cross_entropy(w->x, w->y);
}

static lg_tensor *op_max_pool(work *w)
{
        return lg_max_pool2d(w->x, 2);
}

/* run_NAME runs the op without recording. make_NAME_grad runs it with recording, for run_grad() to differentiate. */
#define FORWARD(name)                                                                                                  \
        static void run_##name(work *w)                                                                                \
        {                                                                                                              \
                lg_no_grad(w->c) drop(op_##name(w));                                                                   \
        }
#define GRADIENT(name, make_input)                                                                                     \
        static void make_##name##_grad(work *w)                                                                        \
        {                                                                                                              \
                make_input(w);                                                                                         \
                w->x = lg_set_requires_grad(lg_detach(w->x), true);                                                    \
                w->y = op_##name(w);                                                                                   \
                w->g = lg_neg(lg_detach(w->y)); /* incoming gradient, with the layout of y */                          \
        }
FORWARD(gelu)
FORWARD(softmax)
FORWARD(layer_norm)
FORWARD(batch_norm)
FORWARD(dropout)
FORWARD(cross_entropy)
FORWARD(max_pool)
GRADIENT(gelu, make_rows)
GRADIENT(softmax, make_rows)
GRADIENT(layer_norm, make_rows)
GRADIENT(batch_norm, make_images)
GRADIENT(dropout, make_rows)
GRADIENT(cross_entropy, make_rows)
GRADIENT(max_pool, make_images)

static void run_grad(work *w)
{
        lg_grad(LG_LIST(w->y), LG_LIST(w->x), .grads = LG_LIST(w->g), .retain_graph = true);
}

static void run_grad_all(work *w)
{
        lg_grad(LG_LIST(w->y), LG_LIST(w->x, w->w, w->b), .grads = LG_LIST(w->g), .retain_graph = true);
}

/* ---- others ---- */

static void run_sum(work *w)
{
        drop(lg_sum(w->x));
}

static void run_transpose_copy(work *w)
{
        drop(lg_contiguous(lg_transpose(w->x, 0, 1)));
}

/* Makes a parameter with a gradient that all steps use. */
static void make_adam(work *w)
{
        w->w = lg_uniform(w->c, -1, 1, LG_SHAPE(w->count), .requires_grad = true);
        w->opt = lg_adam(w->c, LG_LIST(w->w), 1e-3);
        lg_scope scope = lg_scope_begin(w->c);
        lg_backward(lg_sum(lg_square(w->w)));
        lg_scope_end(w->c, scope);
}

static void run_adam(work *w)
{
        lg_step(w->opt);
}

const kernel kernels[] = {
        {"gelu", "x Phi(x)", make_rows, run_gelu, 2},
        {"gelu-grad", "its gradient", make_gelu_grad, run_grad, 3},
        {"softmax", "over rows of 1024", make_rows, run_softmax, 2},
        {"softmax-grad", "its gradient", make_softmax_grad, run_grad, 3},
        {"layer_norm", "over rows of 1024", make_rows, run_layer_norm, 2},
        {"layer_norm-grad", "its gradients by x, weight and bias", make_layer_norm_grad, run_grad_all, 3},
        {"batch_norm", "in training, 64 channels of 16 x 16", make_images, run_batch_norm, 3},
        {"batch_norm-grad", "its gradients by x, weight and bias", make_batch_norm_grad, run_grad_all, 5},
        {"adam", "an update of one parameter", make_adam, run_adam, 7},
        {"sum", "of all elements", make_rows, run_sum, 1},
        {"transpose-copy", "of a square matrix", make_square, run_transpose_copy, 2},
        {"dropout", "of one half", make_rows, run_dropout, 2},
        {"dropout-grad", "its gradient", make_dropout_grad, run_grad, 2},
        {"cross-entropy", "of 1024 classes", make_rows, run_cross_entropy, 1},
        {"cross-entropy-grad", "its gradient", make_cross_entropy_grad, run_grad, 2},
        {"max-pool", "2 x 2, 64 channels of 16 x 16", make_images, run_max_pool, 1.25},
        {"max-pool-grad", "its gradient", make_max_pool_grad, run_grad, 1.25},
};
const int kernel_count = sizeof kernels / sizeof *kernels;
