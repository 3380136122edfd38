/* gpt.c - a small GPT written by hand, trained on the bytes of a text file.
 *
 * Look at attention(), which is written in ops, lg_nn_module, which makes a module of a function, and lg_dataset_text.
 *
 *     cc -std=c11 gpt.c $(pkg-config --cflags --libs libgrad) -lm && ./a.out FILE [EPOCHS]
 * ends with a loss and a continuation of "The":
 *     epoch 20  loss 1.232
 *     The Nacatebe acch. `lg_dem = RClg_ch_mrabrabe` andefo `lg_forw`, and(` libe)` lis and or mket);
 */
#include <grad.h>
#include <math.h>
#include <stdlib.h>

enum { LENGTH = 64, DIM = 64, HEADS = 4, HEAD = DIM / HEADS, BATCH = 16, SAMPLE = 300 };

/* Causal self-attention: maps queries, keys and values (N, T, 3 DIM) to the outputs of all heads (N, T, DIM). */
static lg_tensor *attention(lg_module *m, lg_list in, void *user)
{
        int64_t n = lg_size_of(in.items[0], 0), t = lg_size_of(in.items[0], 1);
        lg_tensor *qkv = lg_reshape(in.items[0], LG_SHAPE(n, t, 3, HEADS, HEAD));
        qkv = lg_permute(qkv, LG_DIMS(2, 0, 3, 1, 4)); /* shape (3, N, HEADS, T, HEAD) */
        lg_tensor *q = lg_select(qkv, 0, 0), *k = lg_select(qkv, 0, 1), *v = lg_select(qkv, 0, 2);
        lg_tensor *scores = lg_div_scalar(lg_matmul(q, lg_transpose(k, -2, -1)), sqrt(HEAD));
        lg_tensor *future = lg_triu(lg_ones(lg_module_ctx(m), LG_SHAPE(t, t), .dtype = LG_BOOL), .diagonal = 1);
        lg_tensor *weights = lg_softmax(lg_masked_fill(scores, future, -LG_INFINITY), -1);
        (void)user;
        return lg_reshape(lg_transpose(lg_matmul(weights, v), 1, 2), LG_SHAPE(n, t, DIM));
}

/* Adds a learned vector for each position to x (N, T, DIM). */
static lg_tensor *add_positions(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return lg_add(in.items[0], lg_slice(lg_parameter(m, "weight"), 0, 0, lg_size_of(in.items[0], 1)));
}

static lg_module *make_block(lg_ctx *c)
{
        lg_module *heads =
                lg_nn_sequential(c, lg_nn_layer_norm(c, LG_SHAPE(DIM)), lg_nn_linear(c, DIM, 3 * DIM),
                                 lg_nn_module(c, "Attention", .forward = attention), lg_nn_linear(c, DIM, DIM));
        lg_module *mlp = lg_nn_sequential(c, lg_nn_layer_norm(c, LG_SHAPE(DIM)), lg_nn_linear(c, DIM, 4 * DIM),
                                          lg_nn_gelu(c), lg_nn_linear(c, 4 * DIM, DIM));
        return lg_nn_sequential(c, lg_nn_residual(c, heads), lg_nn_residual(c, mlp));
}

static lg_module *make_gpt(lg_ctx *c)
{
        lg_module *positions = lg_nn_module(c, "Positions", .forward = add_positions);
        lg_module_add_parameter(positions, "weight", lg_normal(c, 0, 1, LG_SHAPE(LENGTH, DIM)));
        return lg_nn_sequential(c, lg_nn_embedding(c, 256, DIM), positions, make_block(c), make_block(c),
                                lg_nn_layer_norm(c, LG_SHAPE(DIM)), lg_nn_linear(c, DIM, 256));
}

/* Prints "The" and a continuation, each byte drawn from the probabilities given the last LENGTH bytes. */
static void print_sample(lg_ctx *c, lg_module *gpt)
{
        int64_t text[SAMPLE] = {'T', 'h', 'e'};
        printf("The");
        lg_no_grad(c)
                for (int n = 3, seen = 3; n < SAMPLE && !lg_error(c); n++, seen = n < LENGTH ? n : LENGTH) {
                        lg_scope s = lg_scope_begin(c);
                        lg_tensor *logits = lg_forward(gpt, lg_from(c, text + n - seen, LG_SHAPE(1, seen)));
                        text[n] = lg_item_i64(lg_multinomial(lg_softmax(lg_select(logits, 1, -1), -1), 1));
                        lg_scope_end(c, s);
                        putchar((int)text[n]);
                }
        putchar('\n');
}

int main(int argc, char **argv)
{
        if (argc < 2)
                return fprintf(stderr, "usage: %s FILE [EPOCHS]\n", argv[0]), 2;
        lg_ctx *c = lg_open(.seed = 1);
        lg_dataset *text = lg_dataset_text(c, argv[1], LENGTH, .stride = LENGTH / 2);
        lg_loader *batches = lg_loader_open(c, text, BATCH, .shuffle = true);
        lg_module *gpt = make_gpt(c);
        lg_optimizer *opt = lg_adamw(c, lg_parameters(gpt), 2e-3);
        for (int epoch = 1, last = argc > 2 ? atoi(argv[2]) : 20; epoch <= last && !lg_error(c); epoch++) {
                double sum = 0;
                lg_each_batch(b, batches) {
                        lg_tensor *logits = lg_flatten(lg_forward(gpt, b.x), .end_dim = 1); /* shape (N T, 256) */
                        lg_tensor *loss = lg_cross_entropy(logits, lg_flatten(b.y, .end_dim = 1));
                        lg_zero_grad(opt);
                        lg_backward(loss);
                        lg_step(opt);
                        sum += lg_item(loss);
                }
                printf("epoch %2d  loss %.3f\n", epoch, sum / (double)lg_loader_batches(batches));
        }
        if (!lg_error(c))
                print_sample(c, gpt);
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
