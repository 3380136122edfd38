/* attention.h - scaled dot-product attention.
 *
 * Tensors are of float dtypes, all of the same, which the result has. f16 and bf16 compute in f32.
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
        double softcap LG_DEFAULT; /* c: scores become c tanh(score / c), before the mask; default: they do not */
        double dropout LG_DEFAULT; /* probability that a weight becomes 0, see lg_dropout(); default 0 */
        /* Query i sees keys j >= i + .offset - .window_left and j <= i + .offset + .window_right only. LG_ZERO_INT for 0;
         * default: no limit. */
        int64_t window_left LG_DEFAULT;
        int64_t window_right LG_DEFAULT;
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

LG_END_C
#endif
