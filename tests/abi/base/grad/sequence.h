/* sequence.h - padding, masks, positions and sampling for sequences.
 *
 * A sequence has a dimension of time, T. Padded sequences of a batch have the same T, and their lengths say how many of
 * their positions are valid; a mask is a bool tensor that is true at valid positions.
 */
#ifndef LG_SEQUENCE_H
#define LG_SEQUENCE_H

#include "grad/base.h"

LG_BEGIN

/* ---- positions ---- */

typedef struct lg_rotary_options {
        LG_OPTIONS_HEAD
        bool interleaved LG_DEFAULT; /* pairs are neighbours; default false: element i and element i + dims / 2 */
        int64_t dims LG_DEFAULT;     /* the first elements of the last dimension, which rotate; default: all */
} lg_rotary_options;
/* Rotates pairs (a, b) of the last dimension of x (..., T, D) by an angle for each position and pair, which gives
 * (a cos - b sin, b cos + a sin): rotary position embedding (Su et al. 2021; ONNX's RotaryEmbedding). x has a float
 * dtype; 16-bit floats are computed in f32. cos and sin have one shape, float dtypes, and dims / 2 elements in their
 * last dimension: (T, dims / 2), or (N, T, dims / 2) for x (N, heads, T, D), or a shape of as many dimensions as x that
 * broadcasts to x's, such as (T, 1, dims / 2) for x (T, heads, D). The default pairs are those of Llama's files of
 * Hugging Face, .interleaved ones those of the original paper. Gradients flow to x, cos and sin.
 * Example: lg_rotary(q, cos, sin, .interleaved = true) */
#define lg_rotary(...) LG_CALL3(lg_rotary_with, lg_rotary_options, lg_rotary_takes_x_cos_sin, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rotary_with(lg_tensor *x, lg_tensor *cos, lg_tensor *sin, const lg_rotary_options *options);

/* Options of lg_rotary_table() and lg_sinusoidal_positions(). */
typedef struct lg_position_options {
        LG_OPTIONS_HEAD
        double base LG_DEFAULT;      /* finite and positive; default 10000, Llama 3: 500000 */
        int64_t offset LG_DEFAULT;   /* first position, such as the number of tokens in a cache; default 0 */
        double scale LG_DEFAULT;     /* of positions, finite and not 0: 1 / 4 stretches them to 4 times; default 1 */
        lg_dtype dtype LG_DEFAULT;   /* a float dtype; default LG_F32 */
        lg_device device LG_DEFAULT; /* default: the context's default device */
} lg_position_options;
/* Returns the cosines, and stores in *ret_sin the sines, of the angles scale t / base^(2 i / dims) of lg_rotary(), for
 * `length` positions t from .offset on and i from 0 to dims / 2 - 1: tensors (length, dims / 2), computed in f64 and
 * rounded. dims is even and positive. Rows for other positions are lg_embedding(positions, cos). On failure, *ret_sin
 * is left alone.
 * Example: cos = lg_rotary_table(c, 1024, 64, &sin, .base = 500000) */
#define lg_rotary_table(...)                                                                                           \
        LG_CALL4(lg_rotary_table_with, lg_position_options, lg_rotary_table_takes_c_length_dims_ret_sin, V, I, I, V,   \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rotary_table_with(lg_ctx *c, int64_t length, int64_t dims, lg_tensor **ret_sin,
                                              const lg_position_options *options);

/* Returns the sinusoidal position encodings of "Attention is all you need", (length, dims): at position t, column 2 i
 * is the sine and column 2 i + 1 the cosine of scale t / base^(2 i / dims), computed in f64 and rounded.
 * Example: lg_sinusoidal_positions(c, 128, 512, .offset = 16) */
#define lg_sinusoidal_positions(...)                                                                                   \
        LG_CALL3(lg_sinusoidal_positions_with, lg_position_options, lg_sinusoidal_positions_takes_c_length_dims, V, I, \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_sinusoidal_positions_with(lg_ctx *c, int64_t length, int64_t dims,
                                                      const lg_position_options *options);

/* ---- padding and masks ---- */

typedef struct lg_pad_sequence_options {
        LG_OPTIONS_HEAD
        bool batch_first LG_DEFAULT;    /* the result is (N, T, ...); default false, (T, N, ...) */
        double value LG_DEFAULT;        /* of padding, converted to the result's dtype as by lg_full(); default 0 */
        lg_tensor **lengths LG_DEFAULT; /* receives the lengths, i64 (N), on the result's device; default: not wanted */
} lg_pad_sequence_options;
/* Joins N sequences (length, ...), whose sizes are equal but for the first, to one tensor, padded at the end to the
 * greatest length T (PyTorch's pad_sequence). Dtypes and lists are as for lg_cat(). A call that fails leaves .lengths
 * alone.
 * Example: lg_pad_sequence(LG_LIST(x, y), .batch_first = true, .lengths = &lengths) */
#define lg_pad_sequence(...)                                                                                           \
        LG_CALL1(lg_pad_sequence_with, lg_pad_sequence_options, lg_pad_sequence_takes_list, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_pad_sequence_with(lg_list_in list, const lg_pad_sequence_options *options);

/* Returns the mask of sequences of these lengths, an i64 tensor (...), padded to `length` positions: a bool tensor
 * (..., length) that is true at positions below the length. lg_logical_not() of it is PyTorch's key_padding_mask. */
LG_API LG_NEW lg_tensor *lg_sequence_mask(lg_tensor *lengths, int64_t length);

/* ---- bags of embeddings ---- */

/* How lg_embedding_bag() reduces the rows of a bag. */
typedef enum lg_bag_mode {
        LG_BAG_MEAN = 0, /* their mean, the default */
        LG_BAG_SUM = 1,  /* their sum */
        LG_BAG_MAX = 2,  /* the maximum of each feature, whose gradient flows to the first of equal ones */
} lg_bag_mode;

typedef struct lg_embedding_bag_options {
        LG_OPTIONS_HEAD
        lg_tensor *offsets LG_DEFAULT; /* i64 (bags): the first index of each bag; ascending, beginning with 0 */
        lg_bag_mode mode LG_DEFAULT;   /* default LG_BAG_MEAN */
        lg_tensor *per_sample_weights LG_DEFAULT; /* factors of the rows, of the index's shape; with LG_BAG_SUM only */
        /* An index that is left out of its bag; negative: counted from the end; default: none; LG_ZERO_INT for 0. */
        int64_t padding_idx LG_DEFAULT;
        bool include_last_offset LG_DEFAULT; /* .offsets has one more, the number of indices; default false */
        double max_norm LG_DEFAULT;          /* limits the norm of the rows in place, as for lg_embedding() */
        double norm_type LG_DEFAULT;         /* the order of that norm, above 0; default 2 */
} lg_embedding_bag_options;
/* Looks up rows of weight (rows, features) and reduces those of each bag: (bags, features) (PyTorch's F.embedding_bag).
 * The bags are the rows of an i64 index (bags, length), or parts of an index (n) that begin at .offsets. A bag without
 * an index gives 0. Gradients flow to weight and .per_sample_weights. A wrong index or offset fails as an index of
 * lg_embedding() or lg_index_add(). LG_BAG_MAX with .offsets waits for the device and takes memory for all bags of the
 * size of the largest.
 * Example: lg_embedding_bag(ids, w, .offsets = starts, .mode = LG_BAG_SUM) */
#define lg_embedding_bag(...)                                                                                          \
        LG_CALL2(lg_embedding_bag_with, lg_embedding_bag_options, lg_embedding_bag_takes_index_weight, V, V,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_embedding_bag_with(lg_tensor *index, lg_tensor *weight,
                                               const lg_embedding_bag_options *options);

/* ---- sampling ---- */

typedef struct lg_sample_logits_options {
        LG_OPTIONS_HEAD
        double temperature LG_DEFAULT; /* divides the scores; default 1; LG_ZERO: the greatest, nothing is drawn */
        int64_t top_k LG_DEFAULT;      /* draw from the k greatest; default: from all */
        /* Draw from the most probable classes, as few as have this probability together; above 0; default 1, all. */
        double top_p LG_DEFAULT;
} lg_sample_logits_options;
/* Draws a class for each row of unnormalised log-probabilities, (N, classes) or (classes), such as a language model's
 * next token: an i64 tensor (N), or 0-d. Applies .temperature, .top_k and .top_p in this order, as Hugging Face's
 * generation does; of equal scores the first classes are kept. Takes one random number for each row from the context's
 * random state, and computes in f64, so that devices differ only where e^x differs in its last bit. NaN is greater than
 * every score; among scores of infinity, or of -infinity if there are no others, each is as probable. The result has no
 * gradient.
 * Example: lg_sample_logits(logits, .temperature = 0.8, .top_k = 40, .top_p = 0.95) */
#define lg_sample_logits(...)                                                                                          \
        LG_CALL1(lg_sample_logits_with, lg_sample_logits_options, lg_sample_logits_takes_logits, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_sample_logits_with(lg_tensor *logits, const lg_sample_logits_options *options);

LG_END_C
#endif
