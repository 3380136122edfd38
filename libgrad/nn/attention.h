/* attention.h - multi-head attention as parts of nn/ see it. Private to nn/. */
#ifndef LG_NN_ATTENTION_H
#define LG_NN_ATTENTION_H

#include "nn.h"

/* Returns whether m is a MultiheadAttention. */
bool lg__is_attention(const lg_module *m);
/* Appends heads[1] and heads[2], keys and values (N, kv_heads, S, elements) or both NULL, to what the cache holds for
 * m, and replaces them by views of all that it then holds. *ret_past: the number of positions before. */
bool lg__kv_cache_extend(lg_kv_cache *k, const lg_module *m, lg_tensor *heads[3], int64_t *ret_past);
/* Returns whether the cache holds positions for m. */
bool lg__kv_cache_holds(const lg_kv_cache *k, const lg_module *m);

#endif
