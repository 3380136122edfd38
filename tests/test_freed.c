/* test_freed.c - every function that takes a tensor, with one that was freed: LG_ERR_STATE, and neither memory nor
 * other objects are touched. freed.inc has the calls, which sweep.py makes of the headers.
 */
#include "test.h"

typedef struct world {
        lg_ctx *c;
        lg_tensor *good, *freed, *index, *host;
        lg_module *module, *attention, *encoder, *decoder, *transformer, *rnn;
        lg_kv_cache *cache;
        lg_tokenizer *tokenizer;
        lg_board *board;
        lg_group *group;
        lg_optimizer *optimizer;
        lg_scaler *scaler;
        lg_recorder *recorder;
        lg_dataset *dataset;
        lg_outputs outputs;
        FILE *nowhere;
        lg_tensor *room[4];
        double memory[4];
} world;

static lg_tensor *hook(lg_tensor *grad, void *user)
{
        (void)user;
        return grad;
}

static lg_tensor *check(lg_ctx *c, lg_list inputs, void *user)
{
        (void)c, (void)user;
        return lg_sum(inputs.items[0]);
}

static bool forward(lg_custom_call *call)
{
        call->out[0] = lg_neg(call->in[0]);
        return true;
}

#include "freed.inc"

static lg_tensor *ones(lg_ctx *c, lg_dtype dtype)
{
        return lg_ones(c, LG_SHAPE(1, 4), .dtype = dtype);
}

/* With tensors of a dtype that the function does not take, it may say that instead. */
TEST_CASE(every_call)
{
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_I64, LG_BOOL};
        int wrong = 0;
        lg_ctx *c = open_ctx();
        world w = {.c = c, .module = lg_nn_linear(c, 4, 2), .scaler = lg_scaler_new(c), .nowhere = tmpfile()};
        w.optimizer = lg_sgd(c, lg_parameters(w.module), 0.1);
        w.attention = lg_nn_multihead_attention(c, 4, 1);
        w.encoder = lg_nn_transformer_encoder(c, 4, 1, 1);
        w.decoder = lg_nn_transformer_decoder(c, 4, 1, 1);
        w.transformer = lg_nn_transformer(c, 4, 1, .encoder_layers = 1, .decoder_layers = 1);
        w.rnn = lg_nn_lstm(c, 4, 2);
        w.recorder = lg_recorder_new(c, check);
        w.cache = lg_kv_cache_new(w.attention, 1, 4);
        char name[] = "freed-XXXXXX";
        FILE *json = fdopen(mkstemp(name), "w");
        assert_true(json && fputs("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0},\"merges\":[]},\"pre_tokenizer\":"
                                  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}}",
                                  json) >= 0);
        fclose(json);
        w.tokenizer = lg_tokenizer_open(c, name);
        remove(name);
        char boards[] = "boards-XXXXXX", command[64];
        w.board = lg_board_open(c, mkdtemp(boards));
        snprintf(command, sizeof command, "rm -r %s", boards); /* the file stays open */
        assert_int_equal(system(command), 0);
        w.host = lg_ones(c, LG_SHAPE(1, 4), .device = lg_cpu());
        w.dataset = lg_dataset_list(c, LG_LIST(w.host));
        w.group = lg_group_open(c);
        w.index = lg_zeros(c, LG_SHAPE(1), .dtype = LG_I64);
        assert_ok(c);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
                bool ok = true, noticed = false;
                for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                        lg_scope scope = lg_scope_begin(c);
                        w.good = ones(c, dtypes[d]);
                        w.freed = ones(c, dtypes[d]);
                        lg_free(w.freed);
                        const bool nothing = calls[i].call(&w);
                        const lg_error_code code = lg_error_code_of(c);
                        noticed = noticed || code == LG_ERR_STATE;
                        ok = ok && (calls[i].quiet ? code == LG_ERR_NONE : nothing && code != LG_ERR_NONE);
                        lg_clear_error(c);
                        lg_scope_end(c, scope);
                }
                if (ok && (calls[i].quiet || noticed))
                        continue;
                print_error("%s does not notice that %s was freed\n", calls[i].function, calls[i].argument);
                wrong++;
        }
        assert_int_equal(wrong, 0);
        lg_close(c);
        fclose(w.nowhere);
}
