/* gpt.c - a small GPT, trained on the bytes of a text file, which then continues a text.
 *
 * Look at lg_nn_transformer_encoder, which with .causal is a GPT, and at lg_kv_cache, by which each new byte of the
 * sample costs one position, and not all before it again.
 *
 *     cc -std=c11 gpt.c $(pkg-config --cflags --libs libgrad) -lm && ./a.out FILE [EPOCHS]
 * ends with a loss and a continuation of "The":
 *     epoch 20  loss 1.232
 *     The Nacatebe acch. `lg_dem = RClg_ch_mrabrabe` andefo `lg_forw`, and(` libe)` lis and or mket);
 */
#include <grad.h>
#include <stdlib.h>

enum { LENGTH = 64, DIM = 64, HEADS = 4, LAYERS = 2, BATCH = 16, SAMPLE = 300 };

/* Maps bytes (N, T) to logits (N, T, 256). user: the cache of what came before, NULL in training. */
static lg_tensor *run_gpt(lg_module *m, lg_list in, void *user)
{
        lg_kv_cache *cache = *(lg_kv_cache **)user;
        int64_t past = lg_kv_cache_length(cache), t = lg_size_of(in.items[0], 1);
        lg_tensor *positions = lg_slice(lg_parameter(m, "positions"), 0, past, past + t);
        lg_tensor *x = lg_add(lg_forward(lg_child_named(m, "bytes"), in.items[0]), positions);
        x = lg_run_encoder(lg_child_named(m, "blocks"), x, .causal = true, .cache = cache);
        return lg_forward(lg_child_named(m, "head"), x);
}

static lg_module *make_gpt(lg_ctx *c, lg_kv_cache **cache)
{
        lg_module *gpt = lg_nn_module(c, "GPT", .forward = run_gpt, .user = cache);
        lg_module_add(gpt, "bytes", lg_nn_embedding(c, 256, DIM));
        lg_module_add_parameter(gpt, "positions", lg_normal(c, 0, 1, LG_SHAPE(LENGTH, DIM)));
        lg_module_add(gpt, "blocks",
                      lg_nn_transformer_encoder(c, DIM, HEADS, LAYERS, .feedforward = 4 * DIM, .gelu = true,
                                                .norm_first = true, .final_norm = true, .dropout = LG_ZERO,
                                                .batch_first = true));
        lg_module_add(gpt, "head", lg_nn_linear(c, DIM, 256));
        return gpt;
}

/* Prints "The" and a continuation. Each forward gets the bytes that are not in the cache yet: all at first, then one.
 * Where the cache is full, it begins again with the last half. */
static void print_sample(lg_ctx *c, lg_module *gpt, lg_kv_cache **cache)
{
        int64_t text[SAMPLE] = {'T', 'h', 'e'};
        printf("The");
        *cache = lg_kv_cache_new(gpt, 1, LENGTH);
        lg_no_grad(c)
                for (int n = 3, cached = 0; n < SAMPLE && !lg_error(c); n++) {
                        lg_scope s = lg_scope_begin(c);
                        if (lg_kv_cache_length(*cache) == LENGTH && lg_kv_cache_reset(*cache))
                                cached = n - LENGTH / 2;
                        lg_tensor *logits = lg_forward(gpt, lg_from(c, text + cached, LG_SHAPE(1, n - cached)));
                        text[n] = lg_item_i64(lg_sample_logits(lg_select(logits, 1, -1), .top_k = 40));
                        cached = n;
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
        lg_kv_cache *cache = NULL;
        lg_module *gpt = make_gpt(c, &cache);
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
                print_sample(c, gpt, &cache);
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
