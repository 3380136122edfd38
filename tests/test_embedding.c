/* test_embedding.c - rows of a table by index, and class indices as rows of zeros and a one. */
#include "golden.h"

/* The rows that are read, and then the table, which has changed. */
static lg_tensor *limited(lg_tensor *index, lg_tensor *x, double max_norm, double norm_type)
{
        lg_tensor *y = lg_embedding(index, x, .max_norm = max_norm, .norm_type = norm_type);
        return lg_cat(LG_LIST(lg_reshape(y, LG_SHAPE(6, 5)), x), 0);
}

static lg_tensor *limited_bags(lg_tensor *index, lg_tensor *x)
{
        lg_tensor *y = lg_embedding_bag(index, x, .max_norm = 1.5, .mode = LG_BAG_SUM);
        return lg_cat(LG_LIST(y, x), 0);
}

#define ROWS(ROW)                                                                                                      \
        ROW(embedding, lg_embedding(I64(4, 2, 3), x), 4, 5)                                                            \
        ROW(embedding_padding, lg_embedding(I64(4, 2, 3), x, .padding_idx = 2), 4, 5)                                  \
        ROW(embedding_padding_zero, lg_embedding(I64(4, 2, 3), x, .padding_idx = LG_ZERO_INT), 4, 5)                   \
        ROW(embedding_padding_end, lg_embedding(I64(4, 2, 3), x, .padding_idx = -1), 4, 5)                             \
        ROW(embedding_max_norm, limited(I64(4, 2, 3), x, 1.5, 0), 4, 5)                                                \
        ROW(embedding_bag_max_norm, limited_bags(I64(4, 2, 3), x), 4, 5)                                               \
        ROW(embedding_max_norm_1, limited(I64(3, 2, 3), x, 2.5, 1), 4, 5)                                              \
        ROW(embedding_max_norm_far, limited(I64(4, 2, 3), x, 1.2, LG_INFINITY), 4, 5)                                  \
        ROW(embedding_max_norm_zero, limited(I64(2, 2, 3), x, LG_ZERO, 0), 4, 5)                                       \
        ROW(one_hot, lg_matmul(x, lg_cast(lg_one_hot(I64(7, 5), 7), lg_dtype_of(x))), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

TEST_CASE(half_precision)
{
        lg_ctx *c = open_ctx();
        const double limits[] = {2e-3, 1.6e-2};
        lg_tensor *w = lg_normal(c, 0, 1, LG_SHAPE(9, 8), .dtype = LG_F64), *i = I64(9, 5, 30);
        double rows_of[1200];
        read_all(lg_embedding(i, w), rows_of, 1200);
        for (int d = 0; d < 2; d++)
                assert_values(lg_embedding(i, lg_cast(w, d ? LG_BF16 : LG_F16)), rows_of, 1200, limits[d]);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(layouts_and_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(3, 4)), *m = lg_ones(c, LG_SHAPE(3, 2));
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64), *zero = lg_zeros(c, LG_SHAPE_0D, .dtype = LG_I64);
        assert_list(
                lg_embedding(lg_transpose(lg_reshape(LIST64(0, 1, 3, 2), LG_SHAPE(2, 2)), 0, 1), lg_transpose(x, 0, 1)),
                0, 0, 4, 8, 3, 7, 11, 1, 5, 9, 2, 6, 10);
        assert_shape(lg_embedding(none, m), LG_SHAPE(0, 2));
        assert_shape(lg_embedding(zero, m), LG_SHAPE(2));
        assert_shape(lg_one_hot(none, 4), LG_SHAPE(0, 4));
        assert_list(lg_one_hot(zero, 2), 0, 1, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(rows_of_limited_norm)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-7, 1e-6, 2e-3, 1.6e-2};
        for (int d = 0; d < 4; d++) {
                lg_module *m = lg_nn_embedding(c, 3, 2, .max_norm = 5, .dtype = dtypes[d]);
                lg_tensor *w = lg_parameter(m, "weight");
                lg_no_grad(c) lg_copy_(w, lg_from(c, ((float[]){6, 8, 6, 8, 0.3f, 0.4f}), LG_SHAPE(3, 2)));
                lg_tensor *y = lg_forward(m, LIST64(0, 2, 0));
                assert_list(y, limits[d] * 8, 3, 4, 0.3, 0.4, 3, 4);
                lg_backward(lg_sum(y));
                assert_list(lg_grad_of(w), 0, 2, 2, 0, 0, 1, 1);
                assert_list(w, limits[d] * 8, 3, 4, 6, 8, 0.3, 0.4);
        }
        lg_tensor *w = lg_full(c, LG_SHAPE(3, 2), 2), *i = LIST64(0);
        assert_int_equal(lg_numel(lg_embedding(lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64), w, .max_norm = 1)), 0);
        assert_int_equal(lg_numel(lg_embedding(i, lg_ones(c, LG_SHAPE(3, 0)), .max_norm = 1)), 0);
        assert_list(w, 0, 2, 2, 2, 2, 2, 2);
        lg_tensor *turned = lg_transpose(lg_reshape(lg_arange(c, 0, 6, 1, .dtype = LG_F64), LG_SHAPE(2, 3)), 0, 1);
        assert_list(lg_embedding(LIST64(2, 2), turned, .max_norm = 1, .norm_type = 1), 1e-6, 2.0 / 7, 5.0 / 7, 2.0 / 7,
                    5.0 / 7);
        assert_list(turned, 1e-6, 0, 3, 1, 4, 2.0 / 7, 5.0 / 7);
        lg_tensor *leaf = lg_set_requires_grad(lg_ones(c, LG_SHAPE(3, 2)), true);
        assert_fails(c, lg_embedding(i, lg_mul_scalar(leaf, 2), .max_norm = 1), LG_ERR_STATE, "weight is a result of");
        assert_fails(c, lg_embedding(i, lg_expand(lg_ones(c, LG_SHAPE(1, 2)), LG_SHAPE(3, 2)), .max_norm = 1),
                     LG_ERR_ARGUMENT, "weight is expanded");
        assert_fails(c, lg_embedding(i, w, .max_norm = -1), LG_ERR_ARGUMENT, "embedding: max_norm is -1");
        assert_fails(c, lg_embedding(i, w, .max_norm = NAN), LG_ERR_ARGUMENT, "embedding: max_norm is nan");
        assert_fails(c, lg_embedding(i, w, .max_norm = 1, .norm_type = -2), LG_ERR_ARGUMENT, "norm_type -2");
        assert_fails(c, lg_embedding_bag(lg_reshape(i, LG_SHAPE(1, 1)), w, .max_norm = -1), LG_ERR_ARGUMENT,
                     "embedding_bag: max_norm is -1");
        lg_module *m = lg_nn_embedding_bag(c, 3, 2, .max_norm = 0.5, .mode = LG_BAG_SUM);
        drop(lg_forward(m, lg_reshape(LIST64(0, 1, 2), LG_SHAPE(1, 3))));
        assert_true(lg_item(lg_amax(lg_norm(lg_parameter(m, "weight"), .dims = LG_DIMS(1)))) <= 0.5 + 1e-6);
        assert_fails(c, lg_nn_embedding(c, 3, 2, .max_norm = -1), LG_ERR_ARGUMENT, "lg_nn_embedding: max_norm is -1");
        lg_tensor *y = lg_mul(leaf, leaf);
        drop(lg_embedding(i, leaf, .max_norm = 1));
        assert_ok(c);
        assert_false(lg_backward(lg_sum(y)));
        assert_error(c, LG_ERR_STATE, "");
        assert_no_index(lg_embedding(LIST64(1, 3), lg_ones(c, LG_SHAPE(3, 2)), .max_norm = 1),
                        "embedding: index holds 3");
        lg_close(c);
}

TEST_CASE(indices_out_of_range)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2)), *bad = LIST64(1, 3);
        assert_no_index(lg_embedding(lg_reshape(bad, LG_SHAPE(2, 1)), x), "embedding: index holds 3, but there are 3");
        assert_no_index(lg_one_hot(LIST64(0, 7, 9), 4), "but there are 4 places");
        assert_no_index(lg_one_hot(LIST64(INT64_MIN), 4), "one_hot: index holds -9223372036854775808");
        lg_close(c);
}

TEST_CASE(wrong_shapes_and_dtypes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2)), *one = LIST64(0);
        lg_tensor *deep = lg_zeros(c, LG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), .dtype = LG_I64);
        assert_fails(c, lg_embedding(x, x), LG_ERR_DTYPE, "embedding: index is f32");
        assert_fails(c, lg_embedding(x, one), LG_ERR_DTYPE,
                     "lg_cast(index, LG_I64); the order is (index, weight)"); /* that of libgrad 0.2 */
        assert_fails(c, lg_embedding(one, one), LG_ERR_SHAPE, "embedding: weight is i64 (1,)");
        assert_fails(c, lg_embedding(NULL, x), LG_ERR_ARGUMENT, "embedding: index is NULL");
        assert_fails(c, lg_embedding(one, NULL), LG_ERR_ARGUMENT, "embedding: weight is NULL");
        assert_fails(c, lg_embedding(one, x, .padding_idx = 3), LG_ERR_ARGUMENT,
                     "padding_idx is 3, but weight has 3 rows");
        assert_fails(c, lg_embedding(one, x, .padding_idx = -4), LG_ERR_ARGUMENT, "padding_idx is -4");
        assert_fails(c, lg_embedding(deep, x), LG_ERR_SHAPE, "embedding: index is i64 (1, 1, 1, 1, 1, 1, 1, 1)");
        assert_fails(c, lg_one_hot(deep, 2), LG_ERR_SHAPE, "one_hot: index is");
        assert_fails(c, lg_one_hot(x, 2), LG_ERR_DTYPE, "one_hot: index is f32");
        assert_fails(c, lg_one_hot(one, 0), LG_ERR_ARGUMENT, "one_hot: 0 classes");
        lg_close(c);
}

/* The gradient of a table from very many tokens: rows are added up in the tokens' order, in f32. */
TEST_CASE(gradients_of_many_tokens)
{
        enum { TOKENS = 20000, WORDS = 37, WIDTH = 3 };
        lg_ctx *c = open_ctx();
        int64_t *tokens = calloc(TOKENS, sizeof *tokens);
        double *slopes = calloc(TOKENS * WIDTH, sizeof *slopes);
        assert_true(tokens && slopes);
        float sums[WORDS * WIDTH] = {0};
        double expected[WORDS * WIDTH];
        for (int64_t i = 0; i < TOKENS; i++)
                tokens[i] = i * i % 1009 % WORDS;
        lg_tensor *table = lg_set_requires_grad(lg_detach(lg_normal(c, 0, 1, LG_SHAPE(WORDS, WIDTH))), true);
        lg_tensor *at = lg_from(c, tokens, LG_SHAPE(TOKENS), .dtype = LG_I64), *dx;
        lg_tensor *g = lg_normal(c, 0, 1, LG_SHAPE(TOKENS, WIDTH));
        lg_grad(LG_LIST(lg_embedding(at, table)), LG_LIST(table), .grads = LG_LIST(g), .result = &dx);
        read_all(g, slopes, TOKENS * WIDTH);
        for (int64_t i = 0; i < TOKENS * WIDTH; i++)
                sums[tokens[i / WIDTH] * WIDTH + i % WIDTH] += (float)slopes[i];
        for (int i = 0; i < WORDS * WIDTH; i++)
                expected[i] = sums[i];
        assert_values(dx, expected, WORDS * WIDTH, 0);
        assert_ok(c);
        free(tokens), free(slopes);
        lg_close(c);
}
