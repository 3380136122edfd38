/* encoder.c - a transformer encoder that classifies sequences (Vaswani et al. 2017), with norms before the blocks.
 *
 * The input x (8, 128, 256) passes four layers, each of which adds attention(norm(x)) and then mlp(norm(x)) to x; then
 * a norm, the mean over the positions and a linear layer to ten scores. There is no dropout and no embedding.
 */
#include <math.h>
#include "bench.h"

enum { BATCH = 8, LENGTH = 128, DIM = 256, HEADS = 8, HEAD = DIM / HEADS, HIDDEN = 4 * DIM, LAYERS = 4, CLASSES = 10 };

/* Maps queries, keys and values (N, T, 3 DIM) to the outputs of all heads (N, T, DIM). */
static lg_tensor *attention(lg_module *m, lg_list in, void *user)
{
        int64_t n = lg_size_of(in.items[0], 0), t = lg_size_of(in.items[0], 1);
        lg_tensor *qkv = lg_reshape(in.items[0], LG_SHAPE(n, t, 3, HEADS, HEAD));
        qkv = lg_permute(qkv, LG_DIMS(2, 0, 3, 1, 4)); /* shape (3, N, HEADS, T, HEAD) */
        lg_tensor *q = lg_select(qkv, 0, 0), *k = lg_select(qkv, 0, 1), *v = lg_select(qkv, 0, 2);
        lg_tensor *scores = lg_mul_scalar(lg_matmul(q, lg_transpose(k, -2, -1)), 1 / sqrt(HEAD));
        lg_tensor *heads = lg_matmul(lg_softmax(scores, -1), v);
        (void)m;
        (void)user;
        return lg_reshape(lg_transpose(heads, 1, 2), LG_SHAPE(n, t, DIM));
}

static lg_tensor *mean_of_positions(lg_module *m, lg_list in, void *user)
{
        (void)m;
        (void)user;
        return lg_mean(in.items[0], .dims = LG_DIMS(1));
}

static lg_module *layer(lg_ctx *c)
{
        lg_module *heads =
                lg_nn_sequential(c, lg_nn_layer_norm(c, LG_SHAPE(DIM)), lg_nn_linear(c, DIM, 3 * DIM),
                                 lg_nn_module(c, "Attention", .forward = attention), lg_nn_linear(c, DIM, DIM));
        lg_module *mlp = lg_nn_sequential(c, lg_nn_layer_norm(c, LG_SHAPE(DIM)), lg_nn_linear(c, DIM, HIDDEN),
                                          lg_nn_gelu(c), lg_nn_linear(c, HIDDEN, DIM));
        return lg_nn_sequential(c, lg_nn_residual(c, heads), lg_nn_residual(c, mlp));
}

lg_module *encoder_new(lg_ctx *c)
{
        lg_module *net = lg_nn_sequential(c, layer(c));
        for (int i = 1; i < LAYERS; i++)
                lg_module_append(net, layer(c));
        lg_module_append(net, lg_nn_layer_norm(c, LG_SHAPE(DIM)));
        lg_module_append(net, lg_nn_module(c, "Mean", .forward = mean_of_positions));
        lg_module_append(net, lg_nn_linear(c, DIM, CLASSES));
        return net;
}

lg_tensor *encoder_input(lg_ctx *c)
{
        return lg_normal(c, 0, 1, LG_SHAPE(BATCH, LENGTH, DIM));
}

/* Counts forward and both gradients of each product; the first one's input gradient is needed for the norm before it.
 */
double encoder_flops(void)
{
        const double rows = BATCH * LENGTH, forward = 2 * rows * DIM * (3 * DIM + DIM + 2 * HIDDEN);
        const double heads = 2.0 * BATCH * HEADS * LENGTH * LENGTH * HEAD * 2;
        return 3 * (LAYERS * (forward + heads) + 2.0 * BATCH * DIM * CLASSES);
}
