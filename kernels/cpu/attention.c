/* attention.c - attention, forward and derivative, by blocks of queries and keys: the scores of a block are in the
 * cache only.
 *
 * Scores are stored transposed, a row for each key and a lane for each query. So the largest score and the sum of a
 * query are vertical operations, numbers of a query are vectors, and the weights are A of the next product as they are.
 * The factor of the scores and log2(e) are in the copy of q, so weights are powers of 2. The forward stores the largest
 * score, in powers of 2, and 1 / sum; the derivative repeats its operations. Other dtypes than LG_T, and rows that are
 * not whole vectors or whose addresses collide in the cache, are copied to scratch memory block by block.
 *
 * Where processors multiply pairs of bf16 faster than f32, both factors of a product are words of two values along its
 * sums: rows as they are, or two rows of keys or queries interleaved. Weights and derivatives of scores are rounded to
 * bf16; in the derivative the former are whole, since g is not divided by their sum. All sums are f32.
 */
#include <math.h>
#include "cpu.h"
#include "block.h"
#include "draws.h"
#include "product_half.h"
#include "vecmath.h"

enum {
        BLOCK = 64,        /* queries, and keys, of a block */
        PAIRS_BLOCK = 128, /* the same, if products are of pairs of bf16 */
        SOME_KEYS = 28, /* keys whose scores are differentiated while they are in the nearest cache, a multiple of 4 */
        LEAST_KEYS = 256,                            /* keys of a task of the derivative, at least */
        FEW = 8 < LG_BLOCK_ROWS ? 8 : LG_BLOCK_ROWS, /* queries of a head of k that are computed by lanes of keys */
        TASKS = 16 /* tasks that the derivative makes at least, if there are keys enough */
};
#define LOG2E 1.44269504088896340736

typedef enum mode { STORE, ADD, SCALE_AND_ADD } mode;
/* Forms in which rows are read: as numbers; or as words, of pairs along a row or, ACROSS, of two rows. */
typedef enum form { WIDE, ALONG, ACROSS } form;

/* Sizes that follow from the arguments, and the scratch memory of a thread. */
typedef struct job {
        const lg_attention_args *a;
        const lg_attention_vjp_args *vjp; /* NULL: forward */
        int64_t dim, v_dim;               /* elements of a row in scratch memory: whole vectors */
        int64_t block, blocks;            /* queries, and keys, of a block; blocks of queries */
        int64_t few, padded_keys;         /* a few queries for each head of k, or 0; then keys, in whole vectors */
        ptrdiff_t row;                    /* distance of the keys' rows of scores */
        int64_t groups, group_keys;       /* derivative: tasks of a head of k, and the keys of each but the last */
        double log_scale;                 /* factor of q: scores are powers of 2, or arguments of tanh */
        double kept_scale;                /* 1 / (1 - p) */
        const lg_half_words *pairs;       /* NULL, or the words of bf16 that products multiply */
        size_t thread_bytes;
        char *scratch;  /* thread_bytes for each thread */
        void *partial;  /* gradients of q by all tasks but those that write dq, (groups, batch, heads, queries, dim) */
        bool dq_is_own; /* the tasks of group 0 write their part of dq to dq itself */
} job;

/* Returns the keys that the first `queries` of b may see by length and window: [*ret_first, the result). */
static int64_t key_range(const lg_attention_args *a, int64_t b, int64_t first, int64_t queries, int64_t *ret_first)
{
        int64_t end = a->kv_lengths ? a->kv_lengths[b] : a->keys;
        if (a->right >= 0)
                end = lg_least(end, first + queries + a->offset + a->right);
        *ret_first = a->left >= 0 ? lg_most(0, first + a->offset - a->left) : 0;
        return end;
}

typedef int32_t integer_f32;
typedef int64_t integer_f64;
#define COMPUTE_f32 LG_COMPUTE_F32
#define COMPUTE_f64 LG_COMPUTE_F64
#define tanh_of_f32 lg_tanh_f32
#define tanh_of_f64 tanh
/* Adding ROUNDER leaves an integer with the bias of exponents in the low bits. LOWEST gives an exponent of 0, the
 * number 0. The polynomial of f64 is Taylor's, that of f32 has the least error on [-1/2, 1/2]. */
#define ROUNDER_f32 (0x1.8p23f + 127)
#define ROUNDER_f64 (0x1.8p52 + 1023)
#define LOWEST_f32 (-127)
#define LOWEST_f64 (-1023)
#define EXPONENT_AT_f32 23
#define EXPONENT_AT_f64 52
#define EXP2_TERMS_f32                                                                                                 \
        {                                                                                                              \
                0x1.5bba12p-10f, 0x1.3cea88p-7f, 0x1.c6b752p-5f, 0x1.ebf9bcp-3f, 0x1.62e42ap-1f, 1                     \
        }
#define EXP2_TERMS_f64                                                                                                 \
        {                                                                                                              \
                0x1.816193166d0f7p-40, 0x1.c3bd650fc2983p-36, 0x1.e8cac7351bb22p-32, 0x1.e4cf5158b8ec7p-28,            \
                        0x1.b5253d395e7c1p-24, 0x1.62c0223a5c822p-20, 0x1.ffcbfc588b0c5p-17, 0x1.430912f86c786p-13,    \
                        0x1.5d87fe78a6730p-10, 0x1.3b2ab6fba4e77p-7, 0x1.c6b08d704a0bfp-5, 0x1.ebfbdff82c58ep-3,       \
                        0x1.62e42fefa39efp-1, 1                                                                        \
        }

/* Products of pairs of bf16: of f32, where vectors of words have them. */
#if LG_VECTOR == 64
#define PAIRS_f32 true
#define multiply_pairs_f32 lg_vec_dot_pairs
#define pairs_along_f32 lg_pairs_of_vecs
#define pairs_low_f32 lg_pairs_low
#define pairs_high_f32 lg_pairs_high
#else
#define PAIRS_f32 false
#define multiply_pairs_f32 lg_vec_fma_f32
#define pairs_along_f32(a, b) (a)
#define pairs_low_f32(a, b) (a)
#define pairs_high_f32(a, b) (b)
#endif
#define PAIRS_f64 false
#define multiply_pairs_f64 lg_vec_fma_f64
#define pairs_along_f64(a, b) (a)
#define pairs_low_f64(a, b) (a)
#define pairs_high_f64(a, b) (b)
#define log2_of_f32 log2f
#define log2_of_f64 log2

#define LG_BOTH "attention.inc"
#include "both.inc"
#define LG_BOTH "attention_few.inc"
#include "both.inc"
#define LG_BOTH "attention_vjp.inc"
#include "both.inc"

static bool check_lengths(lg_queue *q, const lg_attention_args *a)
{
        for (int64_t i = 0; a->kv_lengths && i < a->batch; i++)
                if (a->kv_lengths[i] < 0 || a->kv_lengths[i] > a->keys) {
                        if (q->error.code == LG_DEVICE_OK)
                                q->error = (lg_device_error){a->origin, a->kv_lengths[i], a->keys + 1};
                        return false;
                }
        return true;
}

static int64_t whole_vectors(lg_dtype dtype, int64_t n)
{
        const int64_t lanes = dtype == LG_F64 ? LG_LANES_f64 : LG_LANES_f32;
        return lg_ceil_div(n, lanes) * lanes;
}

static job job_of(const lg_attention_args *a, const lg_attention_vjp_args *vjp)
{
        const lg_half_words *pairs = a->dtype == LG_BF16 ? lg_bf16_pairs() : NULL;
        return (job){.a = a, .vjp = vjp, .pairs = pairs, .block = pairs ? PAIRS_BLOCK : BLOCK};
}

static bool prepare(lg_queue *q, job *j)
{
        const lg_attention_args *a = j->a;
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "attention: no kernel for dtype %d", (int)a->dtype);
        const size_t size = a->dtype == LG_F64 ? sizeof(double) : sizeof(float);
        j->dim = whole_vectors(a->dtype, a->dim);
        j->v_dim = whole_vectors(a->dtype, a->v_dim);
        j->blocks = lg_ceil_div(a->queries, j->block);
        j->padded_keys = whole_vectors(LG_F32, a->keys);
        j->kept_scale = a->p < 1 ? 1 / (1 - a->p) : 0;
        j->log_scale = a->softcap > 0 ? a->scale / a->softcap : a->scale * LOG2E;
        const int64_t elements = a->dtype == LG_F64 ? scratch_f64(j) : scratch_f32(j);
        j->thread_bytes = ((size_t)elements * size + 63) / 64 * 64;
        j->scratch = q->workspace(q, j->thread_bytes * (size_t)q->threads);
        return j->scratch != NULL;
}

bool LG_CPU(attention)(lg_queue *q, const lg_attention_args *a)
{
        job j = job_of(a, NULL);
        if (!check_lengths(q, a))
                return true;
        const int64_t few = a->kv_heads ? a->heads / a->kv_heads * a->queries : 0;
        j.few = few <= FEW && a->p == 0 ? few : 0;
        if (!prepare(q, &j))
                return false;
        const bool wide = a->dtype == LG_F64;
        if (j.few)
                lg_parallel(q, a->batch * a->kv_heads, lg_grain(a->keys * (a->dim + a->v_dim)),
                            wide ? forward_few_heads_f64 : forward_few_heads_f32, &j);
        else
                lg_parallel(q, a->batch * a->heads * j.blocks, lg_grain(a->keys * (a->dim + a->v_dim)),
                            wide ? forward_f64 : forward_f32, &j);
        return true;
}

/* Divides the keys of a head into groups, by the shape alone: a task computes dk and dv of one group. */
static bool prepare_groups(lg_queue *q, job *j)
{
        const lg_attention_args *a = j->a;
        const int64_t heads = a->batch * a->kv_heads, wanted = heads ? lg_ceil_div(TASKS, heads) : 1;
        j->group_keys = lg_ceil_div(lg_most(lg_ceil_div(a->keys, wanted), LEAST_KEYS), j->block) * j->block;
        j->groups = lg_most(1, lg_ceil_div(a->keys, j->group_keys));
        j->group_keys = lg_least(j->group_keys, lg_ceil_div(a->keys, j->block) * j->block);
        j->dq_is_own = j->groups == 1 || !lg_is_half(a->dtype);
        const int64_t kept = j->groups - j->dq_is_own;
        const size_t size = a->dtype == LG_F64 ? sizeof(double) : sizeof(float);
        if (kept)
                j->partial = q->workspace(q, (size_t)(kept * a->batch * a->heads * a->queries * a->dim + 1) * size);
        return !kept || j->partial;
}

bool LG_CPU(attention_vjp)(lg_queue *q, const lg_attention_vjp_args *v)
{
        job j = job_of(&v->of, v);
        const lg_attention_args *a = j.a;
        if (!check_lengths(q, a))
                return true;
        if (!prepare_groups(q, &j) || !prepare(q, &j))
                return false;
        const bool wide = a->dtype == LG_F64;
        const int64_t heads = a->kv_heads ? a->heads / a->kv_heads : 0;
        lg_parallel(q, a->batch * a->kv_heads * j.groups,
                    lg_grain(j.group_keys * a->queries * heads * (a->dim + a->v_dim) / 32),
                    wide ? backward_f64 : backward_f32, &j);
        if (j.partial)
                lg_parallel(q, a->batch * a->heads * a->queries, lg_grain(j.groups * a->dim),
                            wide ? join_f64 : join_f32, &j);
        return true;
}
