/* seq2seq.c - a transformer that learns to reverse sequences of digits of different lengths.
 *
 * Look at lg_run_transformer with masks, which hide padding, and at solve(), which runs the encoder once and the
 * decoder with a lg_kv_cache, one token at a time.
 *
 *     cc -std=c11 seq2seq.c $(pkg-config --cflags --libs libgrad) -lm && ./a.out [STEPS]
 * prints the loss and the share of new sequences that the network reverses without a mistake:
 *     step 1500  loss 0.003  right 0.99
 */
#include <grad.h>
#include <stdlib.h>

enum { PAD, BEGIN, END, DIGIT, TOKENS = DIGIT + 10, LONGEST = 10, DIM = 64, BATCH = 64 };

/* Token vectors with their positions, from `past` on. */
static lg_tensor *embed(lg_module *m, lg_tensor *tokens, int64_t past)
{
        lg_tensor *x = lg_forward(lg_child_named(m, "embedding"), tokens);
        return lg_add(x, lg_sinusoidal_positions(lg_module_ctx(m), lg_size_of(tokens, 1), DIM, .offset = past));
}

/* Maps source and target tokens (N, T) to scores of the token behind each one of target. */
static lg_tensor *run(lg_module *m, lg_list in, void *user)
{
        lg_tensor *seen = lg_ne_scalar(in.items[0], PAD);
        lg_tensor *y =
                lg_run_transformer(lg_child_named(m, "transformer"), embed(m, in.items[0], 0), embed(m, in.items[1], 0),
                                   .causal = true, .source_key_mask = seen, .memory_key_mask = seen);
        (void)user;
        return lg_forward(lg_child_named(m, "head"), y);
}

static lg_module *make_net(lg_ctx *c)
{
        lg_module *net = lg_nn_module(c, "Reverser", .forward = run);
        lg_module_add(net, "embedding", lg_nn_embedding(c, TOKENS, DIM));
        lg_module_add(net, "transformer",
                      lg_nn_transformer(c, DIM, 4, .encoder_layers = 2, .decoder_layers = 2, .feedforward = 2 * DIM,
                                        .norm_first = true, .dropout = LG_ZERO, .batch_first = true));
        lg_module_add(net, "head", lg_nn_linear(c, DIM, TOKENS));
        return net;
}

/* Makes random sequences, padded at the end, and BEGIN, the reversed sequence, END. */
static void make_batch(lg_ctx *c, lg_tensor **source, lg_tensor **target)
{
        int64_t x[BATCH][LONGEST] = {{PAD}}, y[BATCH][LONGEST + 2] = {{PAD}};
        for (int i = 0; i < BATCH; i++) {
                int length = 1 + rand() % LONGEST;
                y[i][0] = BEGIN;
                y[i][length + 1] = END;
                for (int t = 0; t < length; t++)
                        x[i][t] = y[i][length - t] = DIGIT + rand() % 10;
        }
        *source = lg_from(c, &x[0][0], LG_SHAPE(BATCH, LONGEST));
        *target = lg_from(c, &y[0][0], LG_SHAPE(BATCH, LONGEST + 2));
}

/* Reverses new sequences token by token, and returns the share of those without a mistake. */
static double solve(lg_ctx *c, lg_module *net)
{
        lg_module *decoder = lg_child_named(net, "transformer.decoder");
        lg_kv_cache *cache = lg_kv_cache_new(decoder, BATCH, LONGEST + 1);
        lg_tensor *source, *target, *token, *right = lg_ones(c, LG_SHAPE(BATCH, 1), .dtype = LG_BOOL);
        make_batch(c, &source, &target);
        token = lg_slice(target, 1, 0, 1);
        lg_no_grad(c) {
                lg_tensor *seen = lg_ne_scalar(source, PAD);
                lg_tensor *memory = lg_run_encoder(lg_child_named(net, "transformer.encoder"), embed(net, source, 0),
                                                   .key_mask = seen);
                for (int t = 0; t <= LONGEST; t++) {
                        lg_tensor *y = lg_run_decoder(decoder, embed(net, token, t), memory, .causal = true,
                                                      .memory_key_mask = seen, .cache = cache);
                        lg_tensor *wanted = lg_slice(target, 1, t + 1, t + 2);
                        token = lg_argmax(lg_forward(lg_child_named(net, "head"), y), .dims = LG_DIMS(2));
                        right = lg_logical_and(right, lg_logical_or(lg_eq(token, wanted), lg_eq_scalar(wanted, PAD)));
                }
        }
        lg_kv_cache_free(cache);
        return lg_item(lg_mean(lg_cast(right, LG_F32)));
}

int main(int argc, char **argv)
{
        lg_ctx *c = lg_open(.seed = 1);
        lg_module *net = make_net(c);
        lg_optimizer *opt = lg_adamw(c, lg_parameters(net), 1e-3);
        for (int step = 1, last = argc > 1 ? atoi(argv[1]) : 1500; step <= last && !lg_error(c); step++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *source, *target;
                make_batch(c, &source, &target);
                lg_tensor *scores = lg_forward(net, source, lg_slice(target, 1, 0, LONGEST + 1));
                lg_tensor *wanted = lg_flatten(lg_slice(target, 1, 1, LONGEST + 2), .end_dim = 1);
                lg_tensor *loss =
                        lg_cross_entropy(lg_flatten(scores, .end_dim = 1), wanted, .ignore_index = LG_ZERO_INT);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                if (step % 250 == 0 || step == last)
                        printf("step %4d  loss %.3f  right %.2f\n", step, lg_item(loss), solve(c, net));
                lg_scope_end(c, s);
        }
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
