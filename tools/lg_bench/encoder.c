/* encoder.c - transformers: an encoder that classifies sequences (Vaswani et al. 2017), with norms before the blocks,
 * and a GPT of the size of GPT-2's smallest (Radford et al. 2019).
 *
 * The encoder's input x (batch, 128, 256) passes four layers and a norm; then the mean over the positions and a linear
 * layer give ten scores. The GPT predicts the next of 50,257 tokens by the weight of their vectors. There is no
 * dropout.
 */
#include "bench.h"

enum { LENGTH = 128, DIM = 256, HEADS = 8, HEAD = DIM / HEADS, HIDDEN = 4 * DIM, LAYERS = 4, CLASSES = 10 };
enum { GPT_DIM = 768, GPT_HEADS = 12, GPT_LAYERS = 12, GPT_LENGTH = 1024, GPT_TOKENS = 50257 };

static lg_tensor *mean_of_positions(lg_module *m, lg_list in, void *user)
{
        (void)m;
        (void)user;
        return lg_mean(in.items[0], .dims = LG_DIMS(1));
}

static lg_module *blocks(lg_ctx *c, int64_t dim, int64_t heads, int64_t layers)
{
        return lg_nn_transformer_encoder(c, dim, heads, layers, .feedforward = 4 * dim, .dropout = LG_ZERO,
                                         .gelu = true, .norm_first = true, .final_norm = true, .batch_first = true);
}

lg_module *encoder_new(lg_ctx *c)
{
        return lg_nn_sequential(c, blocks(c, DIM, HEADS, LAYERS), lg_nn_module(c, "Mean", .forward = mean_of_positions),
                                lg_nn_linear(c, DIM, CLASSES));
}

lg_tensor *encoder_input(lg_ctx *c, int64_t batch)
{
        return lg_normal(c, 0, 1, LG_SHAPE(batch, LENGTH, DIM));
}

/* Counts forward and both gradients of each product; the first one's input gradient is needed for the norm before it.
 */
double encoder_flops(double batch)
{
        const double rows = batch * LENGTH, forward = 2 * rows * DIM * (3 * DIM + DIM + 2 * HIDDEN);
        const double heads = 2.0 * batch * HEADS * LENGTH * LENGTH * HEAD * 2;
        return 3 * (LAYERS * (forward + heads) + 2.0 * batch * DIM * CLASSES);
}

static lg_tensor *run_gpt(lg_module *m, lg_list in, void *user)
{
        lg_tensor *places = lg_slice(lg_parameter(m, "positions"), 0, 0, lg_size_of(in.items[0], 1));
        lg_tensor *x = lg_add(lg_forward(lg_child(m, 0), in.items[0]), places);
        (void)user;
        x = lg_run_encoder(lg_child(m, 1), x, .causal = true);
        return lg_linear(lg_flatten(x, .end_dim = 1), lg_parameter(m, "tokens.weight"), NULL);
}

lg_module *gpt_new(lg_ctx *c)
{
        lg_module *m = lg_nn_module(c, "GPT", .forward = run_gpt);
        lg_module_add(m, "tokens", lg_nn_embedding(c, GPT_TOKENS, GPT_DIM));
        lg_init_normal(lg_parameter(m, "tokens.weight"), 0, 0.02);
        lg_module_add_parameter(m, "positions", lg_normal(c, 0, 0.02, LG_SHAPE(GPT_LENGTH, GPT_DIM)));
        lg_module_add(m, "blocks", blocks(c, GPT_DIM, GPT_HEADS, GPT_LAYERS));
        return m;
}

lg_tensor *gpt_tokens(lg_ctx *c, int64_t batch, int64_t length)
{
        return lg_randint(c, 0, GPT_TOKENS, LG_SHAPE(batch, length));
}

/* Counts half of the attention, since no position sees a later one. */
double gpt_flops(double batch, double length)
{
        const double rows = batch * length;
        return 3 * (2 * rows * GPT_DIM * (GPT_LAYERS * 12.0 * GPT_DIM + GPT_TOKENS) +
                    GPT_LAYERS * 2 * rows * length * GPT_DIM);
}
