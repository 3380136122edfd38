/* gpt.h - language models: GPT-2 and Llama, from configurations and files of the Hugging Face Hub. */
#ifndef GPT_H
#define GPT_H

#include <grad.h>

/* The part of a config.json that the network depends on. */
typedef struct gpt_config {
        bool llama; /* model_type: "llama", else "gpt2" */
        int64_t vocab, positions, dim, layers;
        int64_t heads, kv_heads, head_dim; /* of attention; each head of k and v serves heads / kv_heads heads of q */
        int64_t hidden;                    /* size of the feed-forward layers */
        double eps;                        /* of the norms */
        double embd_dropout, attn_dropout, resid_dropout;
        bool tied;                  /* the head's weight is that of the token embedding */
        bool attn_bias, mlp_bias;   /* Llama's projections have biases */
        double rope_theta;          /* base of the rotary frequencies */
        double rope_factor;         /* of Llama 3's scaling of low frequencies; 0: none */
        double rope_low, rope_high; /* low_freq_factor and high_freq_factor of that scaling */
        int64_t rope_positions;     /* original_max_position_embeddings of that scaling */
} gpt_config;

/* Reads a configuration from the text of a config.json; `name` is that of the file in messages. Fails with
 * LG_ERR_FORMAT, naming the member, if the text is no JSON object, a member is missing or malformed, or the network is
 * of another kind. */
bool gpt_config_parse(lg_ctx *c, const char *text, const char *name, gpt_config *ret);
/* Returns the text of the config.json of a new model with that name and vocabulary, or NULL with LG_ERR_ARGUMENT. The
 * caller frees it. */
char *gpt_config_text(lg_ctx *c, const char *model, int64_t vocab);
/* Returns the contents of a text file, which the caller frees, or NULL with LG_ERR_IO. */
char *gpt_read_text(lg_ctx *c, const char *path);
/* Writes the text as a config.json whose dtype is float32. */
bool gpt_config_write(lg_ctx *c, const char *text, const char *path);

/* A network and the state that its modules share. It belongs to its module and is freed with it. */
typedef struct gpt {
        gpt_config o;
        lg_module *net;         /* lg_forward(net, tokens) maps i64 tokens (N, T) to logits (N, T, vocab) */
        bool recompute;         /* layers of a recorded forward keep their input only, and run again in the backward */
        int64_t capacity, past; /* positions for which the cache has room, and that it holds; 0: there is no cache */
        lg_tensor **cache;      /* keys and values of each layer, (N, kv_heads, capacity, head_dim) */
} gpt;

/* Makes a network with random weights. The paths of its parameters are those of transformers' GPT2LMHeadModel and
 * LlamaForCausalLM; weights of linear layers are (out, in), also GPT-2's, whose files have (in, out). */
gpt *gpt_new(lg_ctx *c, const gpt_config *config);
/* Returns the mean cross entropy, a 0-d tensor, of the next tokens y, i64 (N, T) as x is. */
lg_tensor *gpt_loss(gpt *g, lg_tensor *x, lg_tensor *y);
/* Begins to generate: forwards, under lg_no_grad(), append their tokens to an empty cache of up to `capacity`
 * positions, and return the logits of the last one only, (N, vocab). 0 ends this and frees the cache. */
void gpt_set_cache(gpt *g, int64_t capacity);

/* Reads the weights in a folder: model.safetensors, or the files that model.safetensors.index.json names. Names may
 * lack "transformer." or "model.". Fails with LG_ERR_ARGUMENT, naming tensors, if names or shapes do not fit, and as
 * lg_weights_open() does. */
bool gpt_load(gpt *g, const char *folder);
/* Writes model.safetensors and config.json, which has the text, to a folder, which is made if it is missing. */
bool gpt_save(gpt *g, const char *text, const char *folder);

#endif
