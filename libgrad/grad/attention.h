/* attention.h - scaled dot-product attention, modules made of it, transformers, caches of keys and values.
 *
 * Tensors are of float dtypes, all of the same, which the result has. f16 and bf16 compute in f32; on a GPU,
 * weights may be rounded to the dtype, too.
 *
 * In a mask of dtype bool, true means that a position is seen, in the op and in modules. PyTorch's op means the same,
 * but the masks of PyTorch's modules mean the reverse: there true hides a position.
 */
#ifndef LG_ATTENTION_H
#define LG_ATTENTION_H

#include "grad/base.h"

LG_BEGIN

typedef struct lg_attention_options {
        LG_OPTIONS_HEAD
        bool causal LG_DEFAULT; /* query i sees keys j <= i + .offset only; default false */
        /* The position of query 0 among the keys, for .causal and windows: with a cache of past keys, the length of the
         * past. Default 0, as in PyTorch. */
        int64_t offset LG_DEFAULT;
        /* Broadcasts to (..., heads, T, S). Of dtype bool: true where a query sees a key. Of a float dtype: added to
         * the scores; -inf hides a key. A float mask that requires grad gets a gradient. Default: none. */
        lg_tensor *mask LG_DEFAULT;
        lg_tensor *kv_lengths LG_DEFAULT; /* i64, one for each batch: later keys are hidden; default: none */
        double scale LG_DEFAULT;          /* factor of the scores; default 1 / sqrt(D); LG_ZERO for 0 */
        double softcap LG_DEFAULT;      /* c: scores become c tanh(score / c), before the mask; default: they do not */
        double dropout LG_DEFAULT;      /* probability that a weight becomes 0, see lg_dropout(); default 0 */
        int64_t window_left LG_DEFAULT; /* query i sees keys from i + .offset - this on; LG_ZERO_INT: 0; default: all */
        int64_t window_right LG_DEFAULT; /* and keys up to i + .offset + this; LG_ZERO_INT: 0; default: all */
} lg_attention_options;
/* Computes softmax(scale q k^T + mask) v (PyTorch's F.scaled_dot_product_attention, ONNX's Attention). q is (...,
 * heads, T, D), k (..., kv_heads, S, D), v (..., kv_heads, S, E), the result (..., heads, T, E); leading dimensions
 * broadcast, and missing dimensions are 1. Fewer heads of k and v each serve heads / kv_heads consecutive heads of q. A
 * query that sees no key has the result and gradients 0. Memory is linear in T and S: the scores are not stored. In an
 * lg_autocast() region q, k and v are cast to its dtype. A length outside of 0 to S is LG_ERR_ARGUMENT, reported as a
 * wrong index is (index.h). Random numbers of .dropout are the context's; the same seed drops the same weights on every
 * device.
 * Example: lg_attention(q, k, v, .causal = true) */
#define lg_attention(...)                                                                                              \
        LG_CALL3(lg_attention_with, lg_attention_options, lg_attention_takes_q_k_v, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_attention_with(lg_tensor *q, lg_tensor *k, lg_tensor *v,
                                           const lg_attention_options *options);

/* ---- multi-head attention ---- */

typedef struct lg_multihead_attention_options {
        LG_OPTIONS_HEAD
        int64_t kv_heads LG_DEFAULT; /* heads of k and v, a divisor of heads; default: heads */
        int64_t kdim LG_DEFAULT;     /* size of the keys that it takes; default: dim */
        int64_t vdim LG_DEFAULT;     /* size of the values that it takes; default: dim */
        double dropout LG_DEFAULT;   /* probability that a weight becomes 0 in training mode; default 0 */
        bool no_bias LG_DEFAULT;     /* without "in_proj_bias" and "out_proj.bias"; default false */
        bool batch_first LG_DEFAULT; /* tensors are (N, T, ...), not (T, N, ...); default false, as in PyTorch */
        /* One more key and value for all samples, the parameters "bias_k" and "bias_v". Default false. */
        bool add_bias_kv LG_DEFAULT;
        bool add_zero_attn LG_DEFAULT; /* one more key and value, of zeros; default false */
        lg_dtype dtype LG_DEFAULT;     /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;   /* of the parameters; default: the context's default device */
} lg_multihead_attention_options;
/* Makes a module of attention between projections to `heads` heads of dim / heads elements each (PyTorch's
 * nn.MultiheadAttention): lg_forward(m, x) for self-attention or lg_forward(m, q, k, v), both without a mask, or
 * lg_run_attention(). Without .batch_first, q is (T, N, dim), k (S, N, kdim), v (S, N, vdim) and the result (T, N,
 * dim); without a batch, the dimension N is missing.
 *
 * The parameters are "in_proj_weight" (3 dim, dim) or, if .kdim, .vdim or .kv_heads make q, k and v differ,
 * "q_proj_weight" (dim, dim), "k_proj_weight" and "v_proj_weight" (kv_heads dim / heads, kdim or vdim); "in_proj_bias";
 * "out_proj.weight" (dim, dim) and "out_proj.bias"; with .add_bias_kv "bias_k" and "bias_v" (1, 1, kv_heads dim /
 * heads). The projections of the input are uniform as by lg_init_xavier_uniform(), "out_proj.weight" as in
 * lg_nn_linear(), "bias_k" and "bias_v" normal as by lg_init_xavier_normal(), the other biases 0.
 *
 * Every query sees the keys that .add_bias_kv and .add_zero_attn add, in this order after its S keys, whatever masks
 * and .causal hide. Masks do not have them, the weights of lg_run_attention() do: S is then larger by their number.
 * Example: lg_nn_multihead_attention(c, 512, 8, .batch_first = true) */
#define lg_nn_multihead_attention(...)                                                                                 \
        LG_CALL3(lg_nn_multihead_attention_with, lg_multihead_attention_options,                                       \
                 lg_nn_multihead_attention_takes_c_dim_heads, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_multihead_attention_with(lg_ctx *c, int64_t dim, int64_t heads,
                                                        const lg_multihead_attention_options *options);

typedef struct lg_run_attention_options {
        LG_OPTIONS_HEAD
        /* Which keys each query sees, as in lg_attention(): (T, S), any shape that broadcasts to (N, heads, T, S), or
         * PyTorch's (N heads, T, S). Default: none. */
        lg_tensor *mask LG_DEFAULT;
        /* Which keys of each sample are seen, for batches of sequences with padding: bool, or a float that is added;
         * (N, S), or (S) without a batch. Together with .mask, both hold. Default: none. */
        lg_tensor *key_mask LG_DEFAULT;
        bool causal LG_DEFAULT;    /* query i sees keys j <= i + .offset only; default false */
        int64_t offset LG_DEFAULT; /* position of query 0 among the keys, as in lg_attention(); default 0 */
        /* Receives the weights of the keys, after dropout: means over the heads (N, T, S), or (N, heads, T, S) with
         * .per_head. The weights are then computed as a whole and need T x S elements for each head. */
        lg_tensor **weights LG_DEFAULT;
        bool per_head LG_DEFAULT; /* .weights receives those of each head; default false */
        /* Appends k and v to the cache and attends over all positions that it then holds; default: none. */
        lg_kv_cache *cache LG_DEFAULT;
} lg_run_attention_options;
/* Runs a module of lg_nn_multihead_attention() with masks or a cache, as a forward of m (see nn.h). The same tensor as
 * q, k and v, or as k and v, is projected by one product. A query that sees no key has the attention 0. With .cache, S
 * counts the positions that were cached before, too, and .offset is their number; k and v may then both be NULL, which
 * appends nothing.
 * Example: lg_run_attention(m, x, x, x, .key_mask = seen, .causal = true) */
#define lg_run_attention(...)                                                                                          \
        LG_CALL4(lg_run_attention_with, lg_run_attention_options, lg_run_attention_takes_m_q_k_v, V, V, V, V,          \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_run_attention_with(lg_module *m, lg_tensor *q, lg_tensor *k, lg_tensor *v,
                                               const lg_run_attention_options *options);

/* ---- caches of keys and values ----
 *
 * A model that generates a sequence runs on one new position at a time. A cache keeps the keys and values of the
 * positions before, so that each new one costs one position:
 *
 *     lg_kv_cache *cache = lg_kv_cache_new(blocks, 1, 1024);
 *     lg_no_grad(c)
 *             while (lg_kv_cache_length(cache) < 1024 && !lg_error(c))
 *                     x = next(lg_run_encoder(blocks, x, .causal = true, .cache = cache));
 *     lg_kv_cache_free(cache);
 *
 * Each module of lg_nn_multihead_attention() inside the model has keys and values of its own in the cache.
 */

typedef struct lg_kv_cache_options {
        LG_OPTIONS_HEAD
        lg_dtype dtype LG_DEFAULT; /* of the cached values; default: that of the keys of the first forward */
} lg_kv_cache_options;
/* Makes an empty cache of up to `capacity` positions for each attention in m, for batches of `batch` samples. The
 * memory of an attention, 2 batch capacity kv_heads dim / heads elements, is allocated on its device when it first runs
 * with the cache. LG_ERR_ARGUMENT if m contains no multi-head attention.
 *
 * A forward with the cache fails with LG_ERR_STATE if the cache is full, and outside lg_no_grad(), since it changes
 * values in place. After a failed forward the attentions may hold different numbers of positions: reset the cache.
 * Example: lg_kv_cache_new(gpt, 1, 1024, .dtype = LG_BF16) */
#define lg_kv_cache_new(...)                                                                                           \
        LG_CALL3(lg_kv_cache_new_with, lg_kv_cache_options, lg_kv_cache_new_takes_m_batch_capacity, V, I, I,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_kv_cache *lg_kv_cache_new_with(lg_module *m, int64_t batch, int64_t capacity,
                                                const lg_kv_cache_options *options);

/* Returns the number of positions that the cache holds: those of the first attention, in registration order, that has
 * run with it, and 0 before. */
LG_API int64_t lg_kv_cache_length(const lg_kv_cache *k);

/* Empties the cache, which keeps its memory.
 * Example: lg_kv_cache_reset(cache) */
LG_API bool lg_kv_cache_reset(lg_kv_cache *k);

/* Replaces sample i of the batch by sample index[i], for beam search. index is i64 (batch); an index outside of 0 to
 * batch - 1 fails as in lg_index_select().
 * Example: lg_kv_cache_select(cache, index) */
LG_API bool lg_kv_cache_select(lg_kv_cache *k, lg_tensor *index);

/* Frees a cache. lg_close() frees those that are left. */
LG_API void lg_kv_cache_free(lg_kv_cache *k);

/* ---- transformers ----
 *
 * Encoders and decoders of Vaswani et al. 2017, "Attention is all you need", with the parameters of PyTorch's modules
 * of the same names. A layer of an encoder is self-attention and a network of two linear layers, each followed by
 * dropout, the sum with its input and a layer norm; with .norm_first the norm is applied to the input of the attention
 * and of the network instead. A layer of a decoder has attention over the encoder's result, the memory, in between.
 *
 * Tensors are (T, N, dim), or (N, T, dim) with .batch_first; the dimension N may be missing. Calls with masks or a
 * cache have functions of their own; lg_forward() runs without. Masks are those of lg_run_attention().
 */

/* Options of the five functions below. */
typedef struct lg_transformer_options {
        LG_OPTIONS_HEAD
        int64_t encoder_layers LG_DEFAULT; /* of lg_nn_transformer() only; default 6; LG_ZERO_INT for 0 */
        int64_t decoder_layers LG_DEFAULT; /* of lg_nn_transformer() only; default 6; LG_ZERO_INT for 0 */
        int64_t feedforward LG_DEFAULT;    /* size between the two linear layers; default 2048 */
        double dropout LG_DEFAULT;         /* probability of dropout in training mode; default 0.1; LG_ZERO for 0 */
        double eps LG_DEFAULT;             /* of the layer norms; default 1e-5; LG_ZERO for 0 */
        bool gelu LG_DEFAULT;              /* lg_gelu() between the linear layers; default: lg_relu() */
        bool norm_first LG_DEFAULT;        /* norms of inputs, not of sums; default false */
        bool final_norm LG_DEFAULT;        /* a norm after the last layer of an encoder or decoder; default false */
        bool batch_first LG_DEFAULT;       /* tensors are (N, T, dim); default false, as in PyTorch */
        bool no_bias LG_DEFAULT;           /* without biases, those of the norms included; default false */
        lg_dtype dtype LG_DEFAULT;         /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;       /* of the parameters; default: the context's default device */
} lg_transformer_options;

/* Makes one layer: "self_attn", for a decoder "multihead_attn", "linear1", "linear2", "norm1", "norm2" and for a
 * decoder "norm3". lg_forward(m, x), or lg_forward(m, x, memory) for a decoder's layer.
 * Example: lg_nn_transformer_encoder_layer(c, 256, 4, .feedforward = 1024, .batch_first = true)
 * Example: lg_nn_transformer_decoder_layer(c, 256, 4, .norm_first = true) */
#define lg_nn_transformer_encoder_layer(...)                                                                           \
        LG_CALL3(lg_nn_transformer_encoder_layer_with, lg_transformer_options,                                         \
                 lg_nn_transformer_encoder_layer_takes_c_dim_heads, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_transformer_encoder_layer_with(lg_ctx *c, int64_t dim, int64_t heads,
                                                              const lg_transformer_options *options);
#define lg_nn_transformer_decoder_layer(...)                                                                           \
        LG_CALL3(lg_nn_transformer_decoder_layer_with, lg_transformer_options,                                         \
                 lg_nn_transformer_decoder_layer_takes_c_dim_heads, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_transformer_decoder_layer_with(lg_ctx *c, int64_t dim, int64_t heads,
                                                              const lg_transformer_options *options);

/* Makes a stack of 0 to 10000 such layers, "layers.0", "layers.1", ..., and with .final_norm a layer norm "norm". The
 * layers begin with different random values, whereas PyTorch's TransformerEncoder copies one layer.
 * Examples: lg_nn_transformer_encoder(c, 256, 4, 6, .norm_first = true, .final_norm = true),
 * lg_nn_transformer_decoder(c, 256, 4, 6, .batch_first = true) */
#define lg_nn_transformer_encoder(...)                                                                                 \
        LG_CALL4(lg_nn_transformer_encoder_with, lg_transformer_options,                                               \
                 lg_nn_transformer_encoder_takes_c_dim_heads_layers, V, I, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_transformer_encoder_with(lg_ctx *c, int64_t dim, int64_t heads, int64_t layers,
                                                        const lg_transformer_options *options);
#define lg_nn_transformer_decoder(...)                                                                                 \
        LG_CALL4(lg_nn_transformer_decoder_with, lg_transformer_options,                                               \
                 lg_nn_transformer_decoder_takes_c_dim_heads_layers, V, I, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_transformer_decoder_with(lg_ctx *c, int64_t dim, int64_t heads, int64_t layers,
                                                        const lg_transformer_options *options);

/* Makes an encoder, "encoder", and a decoder, "decoder", both with a final norm; lg_forward(m, source, target). All
 * weights of two dimensions are initialised by lg_init_xavier_uniform(), as PyTorch's nn.Transformer does.
 * Example: lg_nn_transformer(c, 128, 4, .encoder_layers = 2, .decoder_layers = 2, .batch_first = true) */
#define lg_nn_transformer(...)                                                                                         \
        LG_CALL3(lg_nn_transformer_with, lg_transformer_options, lg_nn_transformer_takes_c_dim_heads, V, I, I,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_transformer_with(lg_ctx *c, int64_t dim, int64_t heads,
                                                const lg_transformer_options *options);

typedef struct lg_run_encoder_options {
        LG_OPTIONS_HEAD
        lg_tensor *mask LG_DEFAULT;     /* which positions each position sees; default: all */
        lg_tensor *key_mask LG_DEFAULT; /* which positions of each sample are seen; default: all */
        bool causal LG_DEFAULT;         /* each position sees itself and earlier ones only; default false */
        lg_kv_cache *cache LG_DEFAULT;  /* as in lg_run_attention(); default: none */
} lg_run_encoder_options;
/* Runs an encoder or a layer of one, as a forward of m. With .causal it is a decoder without a memory, as GPT is.
 * Example: lg_run_encoder(m, x, .key_mask = seen) */
#define lg_run_encoder(...)                                                                                            \
        LG_CALL2(lg_run_encoder_with, lg_run_encoder_options, lg_run_encoder_takes_m_x, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_run_encoder_with(lg_module *m, lg_tensor *x, const lg_run_encoder_options *options);

typedef struct lg_run_decoder_options {
        LG_OPTIONS_HEAD
        lg_tensor *mask LG_DEFAULT;            /* which positions of x each one sees; default: all */
        lg_tensor *key_mask LG_DEFAULT;        /* which positions of each sample of x are seen; default: all */
        bool causal LG_DEFAULT;                /* each position of x sees itself and earlier ones only; default false */
        lg_tensor *memory_mask LG_DEFAULT;     /* which positions of the memory each one of x sees; default: all */
        lg_tensor *memory_key_mask LG_DEFAULT; /* which positions of each sample's memory are seen; default: all */
        /* As in lg_run_attention(). The memory is projected once, in the first call after the cache was made or reset,
         * and its length is at most the capacity, too. Default: none. */
        lg_kv_cache *cache LG_DEFAULT;
} lg_run_decoder_options;
/* Runs a decoder or a layer of one on x and the encoder's result, memory, as a forward of m.
 * Example: lg_run_decoder(m, x, memory, .causal = true, .memory_key_mask = seen) */
#define lg_run_decoder(...)                                                                                            \
        LG_CALL3(lg_run_decoder_with, lg_run_decoder_options, lg_run_decoder_takes_m_x_memory, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_run_decoder_with(lg_module *m, lg_tensor *x, lg_tensor *memory,
                                             const lg_run_decoder_options *options);

typedef struct lg_run_transformer_options {
        LG_OPTIONS_HEAD
        lg_tensor *source_mask LG_DEFAULT;     /* which positions of source each one sees; default: all */
        lg_tensor *source_key_mask LG_DEFAULT; /* which positions of each sample of source are seen; default: all */
        lg_tensor *mask LG_DEFAULT;            /* which positions of target each one sees; default: all */
        lg_tensor *key_mask LG_DEFAULT;        /* which positions of each sample of target are seen; default: all */
        bool causal LG_DEFAULT;                /* those of target see themselves and earlier ones only; default false */
        lg_tensor *memory_mask LG_DEFAULT;     /* which positions of source each one of target sees; default: all */
        lg_tensor *memory_key_mask LG_DEFAULT; /* which positions of each sample's source target sees; default: all */
} lg_run_transformer_options;
/* Runs a module of lg_nn_transformer(), as a forward of m. To generate, run its encoder once, by lg_run_encoder() of
 * lg_child_named(m, "encoder"), and its decoder with a cache.
 * Example: lg_run_transformer(m, source, target, .source_key_mask = seen, .causal = true, .memory_key_mask = seen) */
#define lg_run_transformer(...)                                                                                        \
        LG_CALL3(lg_run_transformer_with, lg_run_transformer_options, lg_run_transformer_takes_m_source_target, V, V,  \
                 V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_run_transformer_with(lg_module *m, lg_tensor *source, lg_tensor *target,
                                                 const lg_run_transformer_options *options);

LG_END_C
#endif
