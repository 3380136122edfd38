/* test_attention_modules.c - multi-head attention as a module: PyTorch's values, masks, shapes, caches, wrong calls. */
#include "sequences.h"

#define ATTENTION(...) filled(lg_nn_multihead_attention(c, 4, 2, .dtype = lg_dtype_of(x), __VA_ARGS__))
#define FIRST ATTENTION(.batch_first = true)
#define SIZED ATTENTION(.kdim = 3, .vdim = 5, .batch_first = true)
#define SHARED ATTENTION(.batch_first = true, .add_bias_kv = true, .add_zero_attn = true)
#define Y golden_like(x, LG_SHAPE(2, 4, 4), 2)
#define KEYS golden_like(x, LG_SHAPE(2, 4, 3), 2)
#define VALUES golden_like(x, LG_SHAPE(2, 4, 5), 3)
#define QUERIES golden_like(x, LG_SHAPE(2, 3, 4), 1)
#define LAST BOOLS(LG_SHAPE(2, 3), 1, 1, 1, 1, 1, 0)
#define LAST4 BOOLS(LG_SHAPE(2, 4), 1, 1, 1, 1, 1, 0, 1, 0)
#define MASK_OF_HEADS                                                                                                  \
        BOOLS(LG_SHAPE(4, 3, 4), 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0,   \
              1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1)
#define MASK BOOLS(LG_SHAPE(3, 4), 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1)

/* Self-attention by the module, or its weights. */
static lg_tensor *self_attention(lg_module *m, lg_tensor *x, bool per_head, bool weights)
{
        lg_tensor *w, *y = lg_run_attention(m, x, x, x, .weights = &w, .per_head = per_head);
        return weights ? w : y;
}

static lg_tensor *cross_attention(lg_module *m, lg_tensor *x, lg_tensor *y, lg_tensor *mask, lg_tensor *key_mask)
{
        return lg_run_attention(m, x, y, y, .mask = mask, .key_mask = key_mask);
}

static lg_tensor *cross_weights(lg_module *m, lg_tensor *x, lg_tensor *y, lg_tensor *mask, lg_tensor *key_mask)
{
        lg_tensor *w;
        drop(lg_run_attention(m, x, y, y, .mask = mask, .key_mask = key_mask, .weights = &w));
        return w;
}

#define ROWS(ROW)                                                                                                      \
        ROW(self, lg_forward(FIRST, x), 2, 3, 4)                                                                       \
        ROW(self_weights, self_attention(FIRST, x, false, true), 2, 3, 4)                                              \
        ROW(self_weights_of_heads, self_attention(FIRST, x, true, true), 2, 3, 4)                                      \
        ROW(self_time_first, lg_forward(ATTENTION(.no_bias = false), x), 3, 2, 4)                                      \
        ROW(self_unbatched, lg_forward(ATTENTION(.no_bias = false), x), 3, 4)                                          \
        ROW(self_unbatched_weights, self_attention(ATTENTION(.no_bias = false), x, false, true), 3, 4)                 \
        ROW(self_no_bias, lg_forward(ATTENTION(.no_bias = true), x), 3, 2, 4)                                          \
        ROW(self_causal, lg_run_attention(FIRST, x, x, x, .causal = true), 2, 3, 4)                                    \
        ROW(self_keys, lg_run_attention(FIRST, x, x, x, .key_mask = LAST), 2, 3, 4)                                    \
        ROW(cross, lg_forward(FIRST, x, Y, Y), 2, 3, 4)                                                                \
        ROW(cross_memory, lg_forward(FIRST, QUERIES, x, x), 2, 4, 4)                                                   \
        ROW(cross_mask, cross_attention(FIRST, x, Y, MASK, NULL), 2, 3, 4)                                             \
        ROW(cross_masks, cross_attention(FIRST, x, Y, MASK, LAST4), 2, 3, 4)                                           \
        ROW(cross_mask_of_heads, cross_attention(FIRST, x, Y, golden_like(x, LG_SHAPE(4, 3, 4), 3), NULL), 2, 3, 4)    \
        ROW(cross_mask_of_heads_keys, cross_attention(FIRST, x, Y, MASK_OF_HEADS, LAST4), 2, 3, 4)                     \
        ROW(cross_added, cross_attention(FIRST, x, Y, golden_like(x, LG_SHAPE(3, 4), 3), NULL), 2, 3, 4)               \
        ROW(cross_added_keys, cross_attention(FIRST, x, Y, golden_like(x, LG_SHAPE(3, 4), 3), LAST4), 2, 3, 4)         \
        ROW(cross_masks_weights, cross_weights(FIRST, x, Y, MASK, LAST4), 2, 3, 4)                                     \
        ROW(three, lg_forward(FIRST, x, Y, golden_like(x, LG_SHAPE(2, 4, 4), 5)), 2, 3, 4)                             \
        ROW(bias_kv, lg_forward(ATTENTION(.batch_first = true, .add_bias_kv = true), x), 2, 3, 4)                      \
        ROW(zero_attn, lg_forward(ATTENTION(.batch_first = true, .add_zero_attn = true), x), 2, 3, 4)                  \
        ROW(bias_zero, lg_forward(SHARED, x), 2, 3, 4)                                                                 \
        ROW(bias_zero_causal, lg_run_attention(SHARED, x, x, x, .causal = true), 2, 3, 4)                              \
        ROW(bias_zero_masks, cross_attention(SHARED, x, Y, MASK, LAST4), 2, 3, 4)                                      \
        ROW(bias_zero_added, cross_attention(SHARED, x, Y, golden_like(x, LG_SHAPE(3, 4), 3), NULL), 2, 3, 4)          \
        ROW(bias_zero_weights, cross_weights(SHARED, x, Y, MASK, LAST4), 2, 3, 4)                                      \
        ROW(bias_zero_by_params, by_params(SHARED, x, QUERIES, Y, Y), 88)                                              \
        ROW(sized, lg_forward(SIZED, x, KEYS, VALUES), 2, 3, 4)                                                        \
        ROW(sized_keys, lg_forward(SIZED, QUERIES, x, VALUES), 2, 4, 3)                                                \
        ROW(self_by_params, by_params(FIRST, x, QUERIES, NULL, NULL), 80)                                              \
        ROW(cross_by_params, by_params(FIRST, x, QUERIES, Y, Y), 80)                                                   \
        ROW(sized_by_params, by_params(SIZED, x, QUERIES, KEYS, VALUES), 80)
GOLDEN_TEST(pytorch, "transformer.txt", golden_input, ROWS);

/* Copies of the weights of each head of k and v turn grouped heads into as many heads as q has. */
TEST_CASE(grouped_heads)
{
        lg_ctx *c = open_ctx();
        lg_module *grouped = filled(lg_nn_multihead_attention(c, 8, 4, .kv_heads = 2, .batch_first = true));
        lg_module *plain = lg_nn_multihead_attention(c, 8, 4, .batch_first = true);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3, 5, 8)), *w, *w2;
        assert_shape(lg_parameter(grouped, "q_proj_weight"), LG_SHAPE(8, 8));
        assert_shape(lg_parameter(grouped, "k_proj_weight"), LG_SHAPE(4, 8));
        assert_shape(lg_parameter(grouped, "in_proj_bias"), LG_SHAPE(16));
        lg_no_grad(c)
        {
                lg_tensor *rows[6] = {lg_parameter(grouped, "q_proj_weight"),
                                      NULL,
                                      NULL,
                                      lg_slice(lg_parameter(grouped, "in_proj_bias"), 0, 0, 8),
                                      NULL,
                                      NULL};
                for (int i = 1; i < 3; i++) {
                        lg_tensor *weight = lg_parameter(grouped, i == 1 ? "k_proj_weight" : "v_proj_weight");
                        lg_tensor *bias = lg_slice(lg_parameter(grouped, "in_proj_bias"), 0, 4 + 4 * i, 8 + 4 * i);
                        lg_tensor *twice = LIST64(0, 1, 0, 1, 2, 3, 2, 3);
                        rows[i] = lg_index_select(weight, 0, twice);
                        rows[3 + i] = lg_index_select(bias, 0, twice);
                }
                assert_true(lg_copy_(lg_parameter(plain, "in_proj_weight"), lg_cat(LG_LIST_OF(3, rows), 0)));
                assert_true(lg_copy_(lg_parameter(plain, "in_proj_bias"), lg_cat(LG_LIST_OF(3, rows + 3), 0)));
                assert_true(lg_copy_state(lg_child(plain, 0), lg_child(grouped, 0)));
        }
        lg_tensor *y = lg_run_attention(grouped, x, x, x, .causal = true);
        assert_near(largest_difference(y, lg_run_attention(plain, x, x, x, .causal = true)), 0, 1e-6);
        y = lg_run_attention(grouped, x, x, x, .weights = &w, .per_head = true);
        assert_near(largest_difference(y, lg_run_attention(plain, x, x, x, .weights = &w2, .per_head = true)), 0, 1e-6);
        assert_near(largest_difference(w, w2), 0, 1e-6);
        assert_shape(w, LG_SHAPE(3, 4, 5, 5));
        assert_ok(c);
        lg_close(c);
}

/* Keys of all samples: grouped heads, a cache, masks that broadcast, no other key. */
TEST_CASE(shared_keys)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_multihead_attention(c, 8, 4, .kv_heads = 2, .batch_first = true, .add_bias_kv = true,
                                                 .add_zero_attn = true);
        lg_kv_cache *k = lg_kv_cache_new(m, 2, 5);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 8)), *w, *none = lg_slice(x, 1, 0, 0);
        assert_shape(lg_parameter(m, "bias_k"), LG_SHAPE(1, 1, 4));
        lg_tensor *whole = lg_run_attention(m, x, x, x, .causal = true, .weights = &w);
        assert_shape(w, LG_SHAPE(2, 5, 7));
        assert_near(largest_difference(lg_sum(w, .dims = LG_DIMS(2)), lg_ones(c, LG_SHAPE(2, 5))), 0, 1e-6);
        assert_near(lg_item(lg_amax(lg_select(lg_slice(w, 2, 1, 5), 1, 0))), 0, 0); /* later than query 0 */
        assert_true(lg_item(lg_amin(lg_slice(w, 2, 5, 7))) > 0);
        assert_near(largest_difference(lg_run_attention(m, x, x, x, .causal = true), whole), 0, 1e-6);
        lg_no_grad(c)
        {
                for (int i = 0; i < 5; i++) {
                        lg_tensor *one = lg_slice(x, 1, i, i + 1);
                        lg_tensor *y = lg_run_attention(m, one, one, one, .causal = true, .cache = k);
                        assert_near(largest_difference(y, lg_slice(whole, 1, i, i + 1)), 0, 1e-6);
                }
                assert_int_equal(lg_kv_cache_length(k), 5);
        }
        lg_tensor *nothing = lg_zeros(c, LG_SHAPE(5, 1), .dtype = LG_BOOL);
        whole = lg_run_attention(m, x, x, x, .mask = nothing);
        assert_near(largest_difference(whole, lg_forward(m, x, none, none)), 0, 1e-6);
        assert_near(largest_difference(whole,
                                       lg_run_attention(m, x, x, x, .mask = lg_select(lg_select(nothing, 0, 0), 0, 0))),
                    0, 1e-6);
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(whole, lg_parameter(m, "out_proj.bias"))))) > 1e-3);
        assert_ok(c);
        drop(lg_run_attention(m, x, x, x, .mask = lg_ones(c, LG_SHAPE(5, 4))));
        assert_error(c, LG_ERR_SHAPE, "mask is");
        lg_close(c);
}

/* The weights of the input are uniform up to sqrt(6 / (in + out)), drawn after that of the output; biases are 0. */
TEST_CASE(first_values)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 5);
        lg_module *m = lg_nn_multihead_attention(c, 4, 2);
        lg_seed(c, 5);
        assert_near(largest_difference(lg_parameter(m, "out_proj.weight"), lg_uniform(c, -0.5, 0.5, LG_SHAPE(4, 4))), 0,
                    1e-7);
        drop(lg_uniform(c, -0.5, 0.5, LG_SHAPE(4))); /* the bias of the output, which then becomes 0 */
        const double bound = sqrt(6.0 / 16);
        assert_near(
                largest_difference(lg_parameter(m, "in_proj_weight"), lg_uniform(c, -bound, bound, LG_SHAPE(12, 4))), 0,
                1e-7);
        assert_near(lg_item(lg_amax(lg_abs(lg_parameter(m, "in_proj_bias")))), 0, 0);
        assert_near(lg_item(lg_amax(lg_abs(lg_parameter(m, "out_proj.bias")))), 0, 0);
        const char *const names[] = {"q_proj_weight", "k_proj_weight",   "v_proj_weight",
                                     "in_proj_bias",  "out_proj.weight", "out_proj.bias"};
        m = lg_nn_multihead_attention(c, 256, 2, .add_bias_kv = true);
        assert_near(lg_item(lg_std(lg_parameter(m, "bias_k"))), 1.0 / 16, 0.01);
        m = lg_nn_multihead_attention(c, 4, 2, .kdim = 3);
        for (int i = 0; i < 6; i++)
                assert_ptr_equal(lg_parameters(m).items[i], lg_parameter(m, names[i]));
        assert_int_equal(lg_parameters(m).count, 6);
        assert_ok(c);
        lg_close(c);
}

/* A call with options is a forward: traces name it, results leave its scope, nothing else does. */
TEST_CASE(typed_calls)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_multihead_attention(c, 4, 2, .batch_first = true);
        lg_module *copy = lg_module_clone(m);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 4)), *w = NULL;
        const int64_t before = lg_memory_stats(c, lg_default_device(c)).used;
        lg_no_grad(c)
        {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *y = lg_run_attention(m, x, x, x, .weights = &w);
                assert_shape(y, LG_SHAPE(2, 3, 4));
                assert_shape(w, LG_SHAPE(2, 3, 3));
                assert_near(largest_difference(lg_sum(w, .dims = LG_DIMS(2)), lg_ones(c, LG_SHAPE(2, 3))), 0, 1e-6);
                assert_near(largest_difference(y, lg_forward(copy, x)), 0, 1e-6);
                lg_scope_end(c, s);
        }
        assert_int_equal(lg_memory_stats(c, lg_default_device(c)).used, before);
        drop(lg_run_attention(m, x, lg_ones(c, LG_SHAPE(2, 3, 5)), x));
        assert_error(c, LG_ERR_SHAPE, "k is");
        drop(lg_run_attention(m, x, x, x, .mask = lg_ones(c, LG_SHAPE(7, 7)), .weights = &w));
        assert_error(c, LG_ERR_SHAPE, "(in module MultiheadAttention)");
        assert_null(w);
        lg_close(c);
}

/* In evaluation dropout does nothing; in training it scales what is left. */
TEST_CASE(dropout)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_multihead_attention(c, 8, 2, .dropout = 0.5, .batch_first = true);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 32, 8)), *dropped, *all;
        drop(lg_run_attention(m, x, x, x, .weights = &dropped, .per_head = true));
        lg_train(m, false);
        drop(lg_run_attention(m, x, x, x, .weights = &all, .per_head = true));
        lg_tensor *kept = lg_ne_scalar(dropped, 0);
        assert_near(lg_item(lg_mean(lg_cast(kept, LG_F32))), 0.5, 0.05);
        assert_near(largest_difference(dropped, lg_mul(lg_mul_scalar(all, 2), lg_cast(kept, LG_F32))), 0, 1e-6);
        assert_ok(c);
        lg_close(c);
}

/* Queries without keys: only the bias of the output is left. */
TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_module *m = filled(lg_nn_multihead_attention(c, 4, 2, .batch_first = true));
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 4)), *none = lg_zeros(c, LG_SHAPE(2, 0, 4));
        lg_tensor *bias = lg_parameter(m, "out_proj.bias");
        assert_near(largest_difference(lg_forward(m, x, none, none), bias), 0, 0);
        lg_tensor *nothing = lg_zeros(c, LG_SHAPE(2, 3), .dtype = LG_BOOL);
        assert_near(largest_difference(lg_run_attention(m, x, x, x, .key_mask = nothing), bias), 0, 0);
        assert_shape(lg_forward(m, none, x, x), LG_SHAPE(2, 0, 4));
        assert_shape(lg_forward(m, none), LG_SHAPE(2, 0, 4));
        assert_shape(lg_forward(m, lg_zeros(c, LG_SHAPE(0, 3, 4))), LG_SHAPE(0, 3, 4));
        lg_tensor *one = lg_slice(x, 0, 0, 1);
        assert_near(largest_difference(lg_forward(m, one), lg_slice(lg_forward(m, x), 0, 0, 1)), 0, 1e-6);
        assert_true(lg_backward(lg_sum(lg_forward(m, x, none, none))));
        assert_near(lg_item(lg_amax(lg_abs(lg_grad_of(lg_parameter(m, "in_proj_weight"))))), 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_multihead_attention(c, 4, 2, .batch_first = true), *linear = lg_nn_linear(c, 4, 4);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 4));
        drop(lg_forward(m, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "takes one input, or q, k and v; 2 were given");
        drop(lg_forward(m, lg_ones(c, LG_SHAPE(2, 3, 5))));
        assert_error(c, LG_ERR_SHAPE, "(N, T, 4), or (T, 4) without a batch");
        drop(lg_forward(m, lg_ones(c, LG_SHAPE(4))));
        assert_error(c, LG_ERR_SHAPE, "(N, T, 4)");
        drop(lg_forward(m, x, lg_ones(c, LG_SHAPE(3, 4)), x));
        assert_error(c, LG_ERR_SHAPE, "k is");
        drop(lg_run_attention(linear, x, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "m is a Linear");
        drop(lg_run_attention(m, x, NULL, x));
        assert_error(c, LG_ERR_ARGUMENT, "k is NULL");
        drop(lg_run_attention(m, x, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "k is NULL");
        drop(lg_run_attention(m, x, x, x, .key_mask = lg_ones(c, LG_SHAPE(3, 2), .dtype = LG_BOOL)));
        assert_error(c, LG_ERR_SHAPE, "key_mask is");
        drop(lg_run_attention(m, x, x, x, .key_mask = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "mask is");
        assert_null(lg_nn_multihead_attention(c, 5, 2));
        assert_error(c, LG_ERR_ARGUMENT, "dim 5 is not a positive multiple of 2 heads");
        assert_null(lg_nn_multihead_attention(c, 4, 0));
        assert_error(c, LG_ERR_ARGUMENT, "0 heads");
        assert_null(lg_nn_multihead_attention(c, 4, 4, .kv_heads = 3));
        assert_error(c, LG_ERR_ARGUMENT, "do not go into 3 kv_heads");
        assert_null(lg_nn_multihead_attention(c, 4, 4, .kdim = -1));
        assert_error(c, LG_ERR_ARGUMENT, "kdim is -1");
        assert_null(lg_nn_multihead_attention(c, 4, 4, .dropout = 1.5));
        assert_error(c, LG_ERR_ARGUMENT, "dropout is 1.5");
        assert_null(lg_nn_multihead_attention(c, 4, 4, .dtype = LG_I64));
        assert_error(c, LG_ERR_DTYPE, "i64");
        lg_close(c);
}

/* ---- caches ---- */

/* Runs positions [first, end) of x with the cache. */
static lg_tensor *run_part(lg_module *m, lg_tensor *x, int64_t first, int64_t end, lg_kv_cache *k)
{
        lg_tensor *part = lg_slice(x, lg_ndim_of(x) - 2, first, end);
        return lg_run_attention(m, part, part, part, .causal = true, .cache = k);
}

/* Parts of a sequence through a cache give what the whole sequence gives. */
TEST_CASE(cache)
{
        for (int unbatched = 0; unbatched < 2; unbatched++) {
                lg_ctx *c = open_ctx();
                lg_module *m = lg_nn_multihead_attention(c, 8, 4, .kv_heads = 2, .batch_first = true);
                lg_kv_cache *k = lg_kv_cache_new(m, unbatched ? 1 : 3, 7);
                lg_tensor *x = lg_normal(c, 0, 1, unbatched ? LG_SHAPE(7, 8) : LG_SHAPE(3, 7, 8));
                const int64_t ends[] = {0, 4, 5, 6, 7};
                lg_no_grad(c)
                {
                        lg_tensor *whole = lg_run_attention(m, x, x, x, .causal = true);
                        assert_int_equal(lg_kv_cache_length(k), 0);
                        for (int twice = 0; twice < 2; twice++) {
                                for (int i = 0; i < 4; i++) {
                                        lg_tensor *y = run_part(m, x, ends[i], ends[i + 1], k);
                                        lg_tensor *wanted = lg_slice(whole, -2, ends[i], ends[i + 1]);
                                        assert_near(largest_difference(y, wanted), 0, 1e-6);
                                        assert_int_equal(lg_kv_cache_length(k), ends[i + 1]);
                                }
                                assert_true(lg_kv_cache_reset(k));
                                assert_int_equal(lg_kv_cache_length(k), 0);
                        }
                }
                assert_ok(c);
                lg_kv_cache_free(k);
                lg_close(c);
        }
}

/* Selected samples continue as the samples that they come from would. */
TEST_CASE(cache_select)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_multihead_attention(c, 8, 2, .batch_first = true);
        lg_kv_cache *k = lg_kv_cache_new(m, 3, 6);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3, 6, 8)), *index = LIST64(2, 0, 2);
        lg_no_grad(c)
        {
                lg_tensor *whole = lg_run_attention(m, x, x, x, .causal = true);
                assert_true(lg_kv_cache_select(k, index)); /* empty */
                drop(run_part(m, x, 0, 5, k));
                assert_true(lg_kv_cache_select(k, index));
                lg_tensor *y = run_part(m, lg_index_select(x, 0, index), 5, 6, k);
                assert_near(largest_difference(y, lg_slice(lg_index_select(whole, 0, index), 1, 5, 6)), 0, 1e-6);
        }
        assert_ok(c);
        assert_false(lg_kv_cache_select(k, lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64)));
        assert_error(c, LG_ERR_SHAPE, "a sample for each of 3");
        lg_close(c);
}

/* A 16-bit cache, keys that are cached once, and masks over all cached keys. */
TEST_CASE(cache_uses)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_multihead_attention(c, 8, 2, .batch_first = true);
        lg_kv_cache *half = lg_kv_cache_new(m, 2, 5, .dtype = LG_BF16), *k = lg_kv_cache_new(m, 2, 5);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 8)), *q = lg_slice(x, 1, 4, 5);
        lg_tensor *seen = BOOLS(LG_SHAPE(2, 5), 0, 1, 1, 1, 1, 1, 1, 0, 1, 1);
        lg_no_grad(c)
        {
                lg_tensor *whole = lg_forward(m, q, x, x);
                assert_near(largest_difference(lg_run_attention(m, q, x, x, .cache = half), whole), 0, 0.02);
                assert_near(largest_difference(lg_run_attention(m, q, x, x, .cache = k), whole), 0, 1e-6);
                assert_near(largest_difference(lg_run_attention(m, q, NULL, NULL, .cache = k), whole), 0, 1e-6);
                assert_int_equal(lg_kv_cache_length(k), 5);
                assert_near(largest_difference(lg_run_attention(m, q, NULL, NULL, .cache = k, .key_mask = seen),
                                               lg_run_attention(m, q, x, x, .key_mask = seen)),
                            0, 1e-6);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(cache_wrong)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_multihead_attention(c, 4, 2, .batch_first = true);
        lg_module *other = lg_nn_multihead_attention(c, 4, 2, .batch_first = true);
        lg_kv_cache *k = lg_kv_cache_new(m, 2, 5);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 4));
        drop(lg_run_attention(m, x, x, x, .cache = k));
        assert_error(c, LG_ERR_STATE, "use it under lg_no_grad()");
        lg_no_grad(c)
        {
                drop(lg_run_attention(other, x, x, x, .cache = k));
                assert_error(c, LG_ERR_ARGUMENT, "does not contain this attention");
                drop(lg_run_attention(m, x, x, x, .cache = k, .offset = 3));
                assert_error(c, LG_ERR_ARGUMENT, "offset is given");
                drop(lg_run_attention(m, x, NULL, NULL, .cache = k));
                assert_error(c, LG_ERR_STATE, "holds none");
                drop(lg_run_attention(m, x, x, NULL, .cache = k));
                assert_error(c, LG_ERR_ARGUMENT, "both given or both NULL");
                lg_tensor *one = lg_ones(c, LG_SHAPE(1, 3, 4));
                drop(lg_run_attention(m, one, one, one, .cache = k));
                assert_error(c, LG_ERR_SHAPE, "the batch has 1 samples, but the cache 2");
                drop(lg_run_attention(m, x, x, x, .cache = k));
                assert_ok(c);
                drop(lg_run_attention(m, x, x, x, .cache = k));
                assert_error(c, LG_ERR_STATE, "the cache is full: it holds 3 of 5 positions, and 3 more do not fit");
        }
        assert_null(lg_kv_cache_new(lg_nn_linear(c, 2, 2), 1, 1));
        assert_error(c, LG_ERR_ARGUMENT, "contains no MultiheadAttention");
        assert_null(lg_kv_cache_new(m, 0, 1));
        assert_error(c, LG_ERR_ARGUMENT, "batch is 0");
        assert_null(lg_kv_cache_new(m, 1, 1, .dtype = LG_I64));
        assert_error(c, LG_ERR_DTYPE, "i64");
        lg_module_free(m); /* before its cache */
        assert_int_equal(lg_kv_cache_length(k), 3);
        lg_kv_cache_free(k);
        lg_kv_cache_free(NULL);
        lg_close(c);
}
