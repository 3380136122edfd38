/* test_transformer.c - transformers, their stacks and layers: PyTorch's values, names, first values, caches, wrong
 * calls. */
#include "sequences.h"

#define OPTIONS(...) .feedforward = 6, .dropout = LG_ZERO, .dtype = lg_dtype_of(x), .batch_first = true, __VA_ARGS__
#define LAYER(kind, ...) filled(lg_nn_transformer_##kind##_layer(c, 4, 2, OPTIONS(.eps = 0.01, __VA_ARGS__)))
#define POST(kind) LAYER(kind, .gelu = false)
#define PRE(kind) LAYER(kind, .gelu = true, .norm_first = true)
#define TIME_FIRST                                                                                                     \
        filled(lg_nn_transformer_encoder_layer(c, 4, 2, .feedforward = 6, .dropout = LG_ZERO, .dtype = lg_dtype_of(x)))
#define ENCODER filled(lg_nn_transformer_encoder(c, 4, 2, 2, OPTIONS(.final_norm = true)))
#define DECODER filled(lg_nn_transformer_decoder(c, 4, 2, 2, OPTIONS(.gelu = false)))
#define WHOLE filled(lg_nn_transformer(c, 4, 2, OPTIONS(.norm_first = true, .encoder_layers = 1, .decoder_layers = 2)))
#define SOURCE golden_like(x, LG_SHAPE(2, 3, 4), 1)
#define Y golden_like(x, LG_SHAPE(2, 4, 4), 2)
#define LAST BOOLS(LG_SHAPE(2, 3), 1, 1, 1, 1, 1, 0)
#define LAST4 BOOLS(LG_SHAPE(2, 4), 1, 1, 1, 1, 1, 0, 1, 0)
#define MASK BOOLS(LG_SHAPE(3, 4), 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1)

static lg_tensor *masked_decoder(lg_ctx *c, lg_module *m, lg_tensor *x)
{
        return lg_run_decoder(m, x, Y, .causal = true, .key_mask = LAST, .memory_mask = MASK, .memory_key_mask = LAST4);
}

#define ROWS(ROW)                                                                                                      \
        ROW(encoder_layer, lg_forward(POST(encoder), x), 2, 3, 4)                                                      \
        ROW(encoder_layer_pre, lg_forward(PRE(encoder), x), 2, 3, 4)                                                   \
        ROW(encoder_layer_no_bias, lg_forward(LAYER(encoder, .no_bias = true), x), 2, 3, 4)                            \
        ROW(encoder_layer_masks, lg_run_encoder(POST(encoder), x, .causal = true, .key_mask = LAST), 2, 3, 4)          \
        ROW(encoder_layer_time_first, lg_forward(TIME_FIRST, x), 3, 2, 4)                                              \
        ROW(encoder_layer_unbatched, lg_forward(PRE(encoder), x), 3, 4)                                                \
        ROW(decoder_layer, lg_forward(POST(decoder), x, Y), 2, 3, 4)                                                   \
        ROW(decoder_layer_pre, lg_forward(PRE(decoder), x, Y), 2, 3, 4)                                                \
        ROW(decoder_layer_memory, lg_forward(POST(decoder), SOURCE, x), 2, 4, 4)                                       \
        ROW(decoder_layer_masks, masked_decoder(c, POST(decoder), x), 2, 3, 4)                                         \
        ROW(encoder, lg_run_encoder(ENCODER, x, .causal = true, .key_mask = LAST), 2, 3, 4)                            \
        ROW(decoder, lg_run_decoder(DECODER, x, Y, .causal = true, .memory_key_mask = LAST4), 2, 3, 4)                 \
        ROW(transformer,                                                                                               \
            lg_run_transformer(WHOLE, x, Y, .causal = true, .source_key_mask = LAST, .memory_key_mask = LAST), 2, 3,   \
            4)                                                                                                         \
        ROW(transformer_target, lg_forward(WHOLE, SOURCE, x), 2, 4, 4)                                                 \
        ROW(encoder_layer_by_params, by_params(POST(encoder), x, SOURCE, NULL, NULL), 154)                             \
        ROW(encoder_layer_pre_by_params, by_params(PRE(encoder), x, SOURCE, NULL, NULL), 154)                          \
        ROW(decoder_layer_by_params, by_params(POST(decoder), x, SOURCE, Y, NULL), 242)                                \
        ROW(encoder_by_params, by_params(ENCODER, x, SOURCE, NULL, NULL), 316)                                         \
        ROW(transformer_by_params, by_params(WHOLE, x, SOURCE, Y, NULL), 654)
GOLDEN_TEST(pytorch, "transformer.txt", golden_input, ROWS);

/* The layers of a stack begin with different weights, those of a transformer all within the bounds of Xavier. */
TEST_CASE(first_values)
{
        lg_ctx *c = open_ctx();
        lg_module *stack = lg_nn_transformer_encoder(c, 8, 2, 2, .feedforward = 16);
        lg_tensor *first = lg_parameter(stack, "layers.0.linear1.weight");
        assert_true(largest_difference(first, lg_parameter(stack, "layers.1.linear1.weight")) > 0.1);
        assert_true(lg_item(lg_amax(first)) <= 1 / sqrt(8) && lg_item(lg_amax(first)) > 0.3);
        assert_false(lg_has_child(stack, "norm"));
        lg_module *whole = lg_nn_transformer(c, 8, 2, .feedforward = 64, .decoder_layers = 1, .encoder_layers = 2);
        lg_list all = lg_parameters(whole);
        assert_int_equal(all.count, 2 * 12 + 2 + 18 + 2);
        for (int64_t i = 0; i < all.count; i++) {
                if (lg_ndim_of(all.items[i]) < 2)
                        continue;
                const double bound = sqrt(6.0 / (double)(lg_size_of(all.items[i], 0) + lg_size_of(all.items[i], 1)));
                const double most = lg_item(lg_amax(lg_abs(all.items[i])));
                assert_true(most <= bound && most > 0.9 * bound);
        }
        const char *const names[] = {"encoder.layers.1.self_attn.in_proj_bias", "encoder.norm.weight",
                                     "decoder.layers.0.multihead_attn.out_proj.weight", "decoder.layers.0.norm3.bias",
                                     "decoder.norm.bias"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                assert_non_null(lg_parameter(whole, names[i]));
        assert_int_equal(lg_parameter_numel(lg_nn_transformer_encoder_layer(c, 8, 2)),
                         4 * 72 + 2 * 8 * 2048 + 2056 + 32);
        assert_int_equal(lg_child_count(lg_child(lg_nn_transformer_encoder(c, 8, 2, 0), 0)), 0);
        assert_ok(c);
        lg_close(c);
}

/* Dropout in training only; a recomputed forward draws the same numbers and gives the same gradients. */
TEST_CASE(training)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_transformer_encoder(c, 8, 2, 2, .feedforward = 16, .dropout = 0.3, .batch_first = true);
        lg_module *copy = lg_module_clone(m);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 8)), *y[2], *g[2];
        for (int i = 0; i < 2; i++) {
                lg_module *n = i ? copy : m;
                lg_seed(c, 7);
                y[i] = i ? lg_recompute(n, x) : lg_forward(n, x);
                assert_true(lg_backward(lg_sum(lg_square(y[i]))));
                g[i] = lg_grad_of(lg_parameter(n, "layers.0.self_attn.in_proj_weight"));
        }
        assert_near(largest_difference(y[0], y[1]), 0, 0);
        assert_near(largest_difference(g[0], g[1]), 0, 1e-6);
        assert_true(largest_difference(y[0], lg_forward(m, x)) > 1e-3);
        lg_train(m, false);
        assert_near(largest_difference(lg_forward(m, x), lg_forward(m, x)), 0, 0);
        assert_true(largest_difference(y[0], lg_forward(m, x)) > 1e-3);
        assert_ok(c);
        lg_close(c);
}

/* Position by position with a cache, a decoder gives what it gives for whole sequences. */
TEST_CASE(cache)
{
        for (int norm_first = 0; norm_first < 2; norm_first++) {
                lg_ctx *c = open_ctx();
                lg_module *encoder =
                        lg_nn_transformer_encoder(c, 8, 2, 2, .norm_first = norm_first, .batch_first = true);
                lg_module *decoder =
                        lg_nn_transformer_decoder(c, 8, 2, 2, .norm_first = norm_first, .batch_first = true);
                lg_kv_cache *k = lg_kv_cache_new(encoder, 3, 5), *k2 = lg_kv_cache_new(decoder, 3, 5);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3, 5, 8)), *memory = lg_normal(c, 0, 1, LG_SHAPE(3, 4, 8));
                lg_tensor *seen = BOOLS(LG_SHAPE(3, 4), 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0);
                lg_train(encoder, false);
                lg_train(decoder, false);
                lg_no_grad(c)
                {
                        lg_tensor *y = lg_run_encoder(encoder, x, .causal = true);
                        lg_tensor *z = lg_run_decoder(decoder, x, memory, .causal = true, .memory_key_mask = seen);
                        for (int64_t t = 0; t < 5; t++) {
                                lg_tensor *part = lg_slice(x, 1, t, t + 1);
                                lg_tensor *one = lg_run_encoder(encoder, part, .causal = true, .cache = k);
                                assert_near(largest_difference(one, lg_slice(y, 1, t, t + 1)), 0, 2e-6);
                                one = lg_run_decoder(decoder, part, memory, .causal = true, .memory_key_mask = seen,
                                                     .cache = k2);
                                assert_near(largest_difference(one, lg_slice(z, 1, t, t + 1)), 0, 2e-6);
                                assert_int_equal(lg_kv_cache_length(k), t + 1);
                                assert_int_equal(lg_kv_cache_length(k2), t + 1);
                        }
                        drop(lg_run_decoder(decoder, lg_slice(x, 1, 0, 1), memory, .cache = k2));
                        assert_error(c, LG_ERR_STATE, "the cache is full");
                }
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_module *encoder = lg_nn_transformer_encoder(c, 4, 2, 1, .final_norm = true, .batch_first = true);
        lg_module *decoder = lg_nn_transformer_decoder(c, 4, 2, 1, .batch_first = true);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 4)), *none = lg_zeros(c, LG_SHAPE(2, 0, 4));
        assert_shape(lg_forward(encoder, none), LG_SHAPE(2, 0, 4));
        assert_shape(lg_forward(decoder, none, x), LG_SHAPE(2, 0, 4));
        lg_tensor *y = lg_forward(decoder, x, none);
        assert_true(lg_item(lg_all(lg_isfinite(y))) == 1);
        lg_tensor *one = lg_slice(x, 0, 1, 2);
        lg_train(encoder, false);
        assert_near(largest_difference(lg_forward(encoder, one), lg_slice(lg_forward(encoder, x), 0, 1, 2)), 0, 1e-6);
        assert_true(lg_forward(lg_nn_transformer_encoder(c, 4, 2, 0), x) == x);
        assert_ok(c);
        lg_close(c);
}

/* A layer whose parts were replaced runs the new ones. */
TEST_CASE(replaced)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_transformer_encoder_layer(c, 4, 2, .feedforward = 4, .dropout = LG_ZERO);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3, 2, 4)), *before = lg_forward(m, x);
        lg_module *path = lg_nn_sequential(c, lg_nn_linear(c, 4, 6), lg_nn_linear(c, 6, 4));
        assert_ptr_equal(lg_module_replace(m, "linear1", path), path);
        assert_true(largest_difference(before, lg_forward(m, x)) > 1e-3);
        assert_ok(c);
        drop(lg_module_replace(m, "self_attn", lg_nn_linear(c, 4, 4)));
        drop(lg_forward(m, x));
        assert_error(c, LG_ERR_ARGUMENT, "it takes a MultiheadAttention");
        lg_close(c);
}

TEST_CASE(wrong)
{
        lg_ctx *c = open_ctx();
        lg_module *encoder = lg_nn_transformer_encoder_layer(c, 4, 2),
                  *decoder = lg_nn_transformer_decoder_layer(c, 4, 2);
        lg_module *whole = lg_nn_transformer(c, 4, 2, .encoder_layers = 1, .decoder_layers = 1);
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2, 4));
        drop(lg_forward(encoder, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "TransformerEncoderLayer takes one input, 2 inputs were given");
        drop(lg_forward(decoder, x));
        assert_error(c, LG_ERR_ARGUMENT, "takes x and memory, 1 inputs were given");
        drop(lg_forward(whole, x));
        assert_error(c, LG_ERR_ARGUMENT, "takes source and target");
        drop(lg_run_encoder(decoder, x));
        assert_error(c, LG_ERR_ARGUMENT, "m is a TransformerDecoderLayer; it takes a TransformerEncoder");
        drop(lg_run_decoder(encoder, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "it takes a TransformerDecoder");
        drop(lg_run_transformer(encoder, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "it takes a Transformer");
        drop(lg_run_decoder(decoder, x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "memory is NULL");
        drop(lg_forward(whole, x, lg_ones(c, LG_SHAPE(3, 2, 5))));
        assert_error(c, LG_ERR_SHAPE, "(in module \"decoder.layers.0.self_attn\", MultiheadAttention)");
        assert_null(lg_nn_transformer_encoder(c, 4, 2, -1));
        assert_error(c, LG_ERR_ARGUMENT, "-1 layers");
        assert_null(lg_nn_transformer(c, 4, 2, .decoder_layers = -2));
        assert_error(c, LG_ERR_ARGUMENT, "-2 layers");
        assert_null(lg_nn_transformer_encoder(c, 4, 2, 1, .encoder_layers = 2));
        assert_error(c, LG_ERR_ARGUMENT, "options of lg_nn_transformer");
        assert_null(lg_nn_transformer_decoder_layer(c, 4, 2, .final_norm = true));
        assert_error(c, LG_ERR_ARGUMENT, "final_norm is an option of encoders and decoders");
        assert_null(lg_nn_transformer_encoder_layer(c, 4, 3));
        assert_error(c, LG_ERR_ARGUMENT, "dim 4 is not a positive multiple of 3 heads");
        assert_null(lg_nn_transformer_encoder_layer(c, 4, 2, .feedforward = -1));
        assert_error(c, LG_ERR_ARGUMENT, "feedforward is -1");
        assert_null(lg_nn_transformer_encoder_layer(c, 4, 2, .dropout = 2));
        assert_error(c, LG_ERR_ARGUMENT, "dropout is 2");
        assert_null(lg_nn_transformer_encoder_layer(c, 4, 2, .dtype = LG_BOOL));
        assert_error(c, LG_ERR_DTYPE, "bool");
        lg_close(c);
}
