/* gpu_kernels_choice.c - look-up, order, pooling and optimisers, as rows of gpu_bench. */
#include "gpu_bench.h"

/* ---- look-up: each element, or whole rows ---- */

static void make_gather(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->mean = indices(w, LG_SHAPE(w->size[0], w->size[1]), w->size[1]);
        w->w = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes = (2 * width(w) + 8) * (double)(w->size[0] * w->size[1]);
}
static void make_gather_backward(work *w)
{
        make_gather(w);
        w->y = lg_gather(w->x, 1, w->mean);
        w->z = w->w;
}
static void make_scatter_add(work *w)
{
        make_gather(w);
        w->bytes = (3 * width(w) + 8) * (double)(w->size[0] * w->size[1]);
}
static void run_gather(work *w)
{
        drop(lg_gather(w->x, 1, w->mean));
}
static void run_scatter_add(work *w)
{
        drop(lg_scatter_add(w->x, 1, w->mean, w->w));
}

static void make_index_select(work *w)
{
        make_matrix(w);
        w->mean = lg_permutation(w->c, w->size[0], .device = w->device);
}
static void run_index_select(work *w)
{
        drop(lg_index_select(w->x, 0, w->mean));
}

/* size[2] times a row of size[0], drawn at random. */
static void make_embedding(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->mean = indices(w, LG_SHAPE(w->size[2]), w->size[0]);
        w->bytes = 2 * width(w) * (double)(w->size[2] * w->size[1]);
}
static void run_embedding(work *w)
{
        drop(lg_embedding(w->x, w->mean));
}
static void make_embedding_backward(work *w)
{
        make_embedding(w);
        w->y = lg_embedding(w->x, w->mean);
        w->z = values(w, lg_shape_of(w->y));
        w->bytes = width(w) * (double)((w->size[0] + w->size[2]) * w->size[1]);
}

/* ---- order: values and their places ---- */

static void make_sort(work *w)
{
        make_matrix(w);
        w->bytes = (2 * width(w) + 8) * (double)(w->size[0] * w->size[1]);
}
static void make_read(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes = width(w) * (double)(w->size[0] * w->size[1]);
}
static void make_max_backward(work *w)
{
        make_read(w);
        w->y = lg_max(w->x, 1);
        w->z = values(w, LG_SHAPE(w->size[0]));
}
static void run_sort(work *w)
{
        drop(lg_sort(w->x, 1));
}
static void run_topk(work *w)
{
        drop(lg_topk(w->x, 16, 1));
}
static void run_max(work *w)
{
        drop(lg_max(w->x, 1));
}

/* Makes a random mask. The host waits for the number of its elements that are not 0. */
static void make_nonzero(work *w)
{
        make_read(w);
        w->x = lg_gt_scalar(lg_detach(w->x), 0);
        w->bytes = (2 + 8) * (double)(w->size[0] * w->size[1]);
}
static void run_nonzero(work *w)
{
        drop(lg_nonzero(w->x));
}

/* ---- pooling ---- */

static void make_pool(work *w)
{
        w->x = lg_requires_grad(images(w), true);
        w->bytes = 1.25 * image_bytes(w);
}
static void make_max_pool_backward(work *w)
{
        make_pool(w);
        w->y = lg_max_pool2d(w->x, 2);
        w->z = lg_max_pool2d(images(w), 2);
}
static void make_avg_pool_backward(work *w)
{
        make_pool(w);
        w->y = lg_avg_pool2d(w->x, 2);
        w->z = lg_avg_pool2d(images(w), 2);
}
static void run_max_pool(work *w)
{
        drop(lg_max_pool2d(w->x, 2));
}
static void run_avg_pool(work *w)
{
        drop(lg_avg_pool2d(w->x, 2));
}

/* ---- optimisers: size[0] tensors of size[1] elements; bytes: parameters, gradients and states ---- */

static void make_parameters(work *w, double times)
{
        int64_t count = w->size[0] < MOST_PARAMETERS ? w->size[0] : MOST_PARAMETERS;
        for (int64_t i = 0; i < count; i++) {
                w->room[i] = leaf(w, LG_SHAPE(w->size[1]));
                lg_backward(lg_sum(w->room[i]));
        }
        w->parameters = LG_LIST_OF(count, w->room);
        w->bytes = times * width(w) * (double)(count * w->size[1]);
}
static void make_sgd(work *w)
{
        make_parameters(w, 5);
        w->opt = lg_sgd(w->c, w->parameters, 1e-3, .momentum = 0.9);
}
static void make_adam(work *w)
{
        make_parameters(w, 7);
        w->opt = lg_adam(w->c, w->parameters, 1e-3);
}
static void make_scaled(work *w)
{
        make_parameters(w, 9);
        w->opt = lg_adam(w->c, w->parameters, 1e-3);
        w->scaler = lg_scaler_new(w->c);
        w->x = lg_ones(w->c, LG_SHAPE_0D, .device = w->device);
}
static void make_rmsprop(work *w)
{
        make_parameters(w, 5);
        w->opt = lg_rmsprop(w->c, w->parameters, 1e-3);
}
static void make_adagrad(work *w)
{
        make_parameters(w, 5);
        w->opt = lg_adagrad(w->c, w->parameters, 1e-3);
}
static void make_adadelta(work *w)
{
        make_parameters(w, 7);
        w->opt = lg_adadelta(w->c, w->parameters, 1);
}
static void make_clip(work *w)
{
        make_parameters(w, 3);
}
static void run_step(work *w)
{
        lg_step(w->opt);
}
static void run_scaled(work *w)
{
        drop(lg_scaler_scale(w->scaler, w->x));
        lg_scaler_step(w->scaler, w->opt);
        lg_scaler_update(w->scaler);
}
static void run_clip(work *w)
{
        lg_clip_grad_norm(w->parameters, 1);
}

#define SQUARE                                                                                                         \
        {4096, 4096},                                                                                                  \
        {                                                                                                              \
                16, 64                                                                                                 \
        }
#define TABLE                                                                                                          \
        {16384, 512, 16384},                                                                                           \
        {                                                                                                              \
                32, 16, 32                                                                                             \
        }
#define IMAGES                                                                                                         \
        {64, 64, 112},                                                                                                 \
        {                                                                                                              \
                2, 8, 8                                                                                                \
        }
#define PARAMETERS                                                                                                     \
        {160, 65536},                                                                                                  \
        {                                                                                                              \
                8, 64                                                                                                  \
        }
static const row table[] = {
        {"gather", "gather", FLOATS, SQUARE, make_gather, run_gather, false},
        {"gather backward", "scatter_add", FLOATS, SQUARE, make_gather_backward, run_backward, false},
        {"scatter_add", "scatter_add", FLOATS, SQUARE, make_scatter_add, run_scatter_add, false},
        {"index_select", "gather", FLOATS, {16384, 4096}, {32, 64}, make_index_select, run_index_select, false},
        {"embedding", "gather", FLOATS, TABLE, make_embedding, run_embedding, false},
        {"embedding backward", "scatter_add", FLOATS, TABLE, make_embedding_backward, run_backward, false},
        {"sort", "sort", FLOATS, SQUARE, make_sort, run_sort, false},
        {"nonzero", "nonzero", FLOATS, SQUARE, make_nonzero, run_nonzero, false},
        {"topk", "sort", FLOATS, SQUARE, make_read, run_topk, false},
        {"max", "reduce pick", FLOATS, SQUARE, make_read, run_max, false},
        {"max backward", "pick_grad", FLOATS, SQUARE, make_max_backward, run_backward, false},
        {"max_pool2d", "pool", FLOATS, IMAGES, make_pool, run_max_pool, false},
        {"max_pool2d backward", "pool", FLOATS, IMAGES, make_max_pool_backward, run_backward, false},
        {"avg_pool2d", "pool", FLOATS, IMAGES, make_pool, run_avg_pool, false},
        {"avg_pool2d backward", "pool", FLOATS, IMAGES, make_avg_pool_backward, run_backward, false},
        {"sgd momentum", "sgd", FLOATS, PARAMETERS, make_sgd, run_step, false},
        {"adam", "dials adam", FLOATS, PARAMETERS, make_adam, run_step, false},
        {"adam, scaled", "unscale adam rescale", F32, PARAMETERS, make_scaled, run_scaled, false},
        {"rmsprop", "rmsprop", FLOATS, PARAMETERS, make_rmsprop, run_step, false},
        {"adagrad", "adagrad", FLOATS, PARAMETERS, make_adagrad, run_step, false},
        {"adadelta", "adadelta", FLOATS, PARAMETERS, make_adadelta, run_step, false},
        {"clip by norm", "norms scale", FLOATS, PARAMETERS, make_clip, run_clip, false},
};
const rows choice_rows = ROWS(table);
