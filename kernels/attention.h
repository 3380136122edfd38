/* attention.h - arguments of the kernels of attention: o = softmax(scale q k^T + mask) v, without the scores in memory.
 */
#ifndef LG_ATTENTION_ARGS_H
#define LG_ATTENTION_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include "types.h"

/* Strides of a tensor (batch, head, position, element), in elements. Elements of a position are contiguous. */
typedef struct lg_head_strides {
        int64_t batch, head, row;
} lg_head_strides;

/* q and o have `heads` heads and `queries` positions, k and v `kv_heads` heads, a divisor of heads, and `keys`
 * positions. Elements: `dim` of q and k, `v_dim` of v and o; o may have its own strides.
 *
 * Query i of batch b sees keys j with max(0, p - left) <= j <= p + right, where p = i + offset and a negative left or
 * right means no limit; j < kv_lengths[b], unless kv_lengths is NULL; and those that the mask does not hide. The score
 * of a visible key is scale q.k, capped to softcap tanh(score / softcap) if softcap > 0, plus the mask's element if
 * the mask has a float dtype: LG_F64 for f64, else LG_F32. Its element -inf hides the key, as false of a mask of
 * LG_BOOL does. mask_strides are those of (batch, head, query, key), 0 where it is broadcast.
 *
 * A weight is dropped with probability p: word j % 4 of the Philox block counter + row * ceil(keys / 4) + j / 4, where
 * row counts (batch, head, query), drops it if it is below p as a number in [0, 1); the others are divided by 1 - p,
 * after the softmax.
 *
 * stats, f32 or, for f64, f64, is (batch, head, query, 2): the largest score and 1 / the sum of e^(score - largest);
 * both are 0 for a query that sees no key, whose o is 0. A device may store the largest score in other units. A length
 * outside of 0 to keys is a device error with code `origin`, value the length and limit keys + 1. */
typedef struct lg_attention_args {
        lg_dtype dtype;
        int64_t batch, heads, kv_heads, queries, keys, dim, v_dim;
        double scale, softcap, p;
        int64_t offset, left, right;
        uint64_t seed, counter;
        const uint64_t *moved; /* two numbers in device memory that are added to seed and counter; NULL: none */
        const void *q, *k, *v;
        lg_head_strides q_at, k_at, v_at, o_at;
        void *o, *stats;
        const void *mask; /* NULL: none */
        lg_dtype mask_dtype;
        int64_t mask_strides[4];
        const int64_t *kv_lengths;
        int origin;
} lg_attention_args;

/* The derivative: o and stats are inputs, g is the gradient of o. dq, dk, dv have strides of their own and are
 * overwritten. */
typedef struct lg_attention_vjp_args {
        lg_attention_args of;
        const void *g;
        void *dq, *dk, *dv;
        lg_head_strides g_at, dq_at, dk_at, dv_at;
} lg_attention_vjp_args;

#endif
