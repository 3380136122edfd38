/* test_embedding_bag.c - rows of a table, reduced by bag: PyTorch's values and gradients, empty bags, errors. */
#include "golden.h"

#define INDEX lg_reshape(LIST64(1, 0, 3, 3, 3, 1), LG_SHAPE(2, 3))
#define FLAT LIST64(1, 0, 3, 3, 3, 1, 2)
#define OFFSETS .offsets = LIST64(0, 0, 3, 3, 7)
#define W golden_like(x, LG_SHAPE(4, 5), 0)
#define FACTORS golden_like(x, LG_SHAPE(7), 0.5)
#define ROWS(ROW)                                                                                                      \
        ROW(bag_mean, lg_embedding_bag(INDEX, x), 4, 5)                                                                \
        ROW(bag_sum, lg_embedding_bag(INDEX, x, .mode = LG_BAG_SUM), 4, 5)                                             \
        ROW(bag_max, lg_embedding_bag(INDEX, x, .mode = LG_BAG_MAX), 4, 5)                                             \
        ROW(bag_offsets, lg_embedding_bag(FLAT, x, OFFSETS), 4, 5)                                                     \
        ROW(bag_offsets_sum, lg_embedding_bag(FLAT, x, OFFSETS, .mode = LG_BAG_SUM), 4, 5)                             \
        ROW(bag_offsets_max, lg_embedding_bag(FLAT, x, OFFSETS, .mode = LG_BAG_MAX), 4, 5)                             \
        ROW(bag_last_offset, lg_embedding_bag(FLAT, x, OFFSETS, .mode = LG_BAG_SUM, .include_last_offset = true), 4,   \
            5)                                                                                                         \
        ROW(bag_padding, lg_embedding_bag(FLAT, x, OFFSETS, .padding_idx = 3), 4, 5)                                   \
        ROW(bag_padding_sum, lg_embedding_bag(INDEX, x, .mode = LG_BAG_SUM, .padding_idx = LG_ZERO_INT), 4, 5)         \
        ROW(bag_padding_max, lg_embedding_bag(FLAT, x, OFFSETS, .mode = LG_BAG_MAX, .padding_idx = -1), 4, 5)          \
        ROW(bag_factors, lg_embedding_bag(FLAT, x, OFFSETS, .mode = LG_BAG_SUM, .per_sample_weights = FACTORS), 4, 5)  \
        ROW(bag_of_factors, lg_embedding_bag(FLAT, W, OFFSETS, .mode = LG_BAG_SUM, .per_sample_weights = x), 7)        \
        ROW(bag_of_factors_padding,                                                                                    \
            lg_embedding_bag(FLAT, W, OFFSETS, .mode = LG_BAG_SUM, .per_sample_weights = x, .padding_idx = 3), 7)

GOLDEN_TEST(as_pytorch_computes_it, "sequence.txt", golden_input, ROWS);

TEST_CASE(empty_bags)
{
        lg_ctx *c = open_ctx();
        const lg_bag_mode modes[] = {LG_BAG_MEAN, LG_BAG_SUM, LG_BAG_MAX};
        lg_tensor *w = lg_full(c, LG_SHAPE(3, 2), -5), *none = lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64);
        for (int i = 0; i < 3; i++) {
                lg_tensor *y = lg_embedding_bag(none, w, .mode = modes[i], .offsets = LIST64(0, 0));
                assert_shape(y, LG_SHAPE(2, 2));
                assert_list(y, 0, 0, 0, 0, 0);
                y = lg_embedding_bag(lg_zeros(c, LG_SHAPE(2, 0), .dtype = LG_I64), w, .mode = modes[i]);
                assert_shape(y, LG_SHAPE(2, 2));
                assert_list(y, 0, 0, 0, 0, 0);
                assert_shape(lg_embedding_bag(none, w, .mode = modes[i], .offsets = none), LG_SHAPE(0, 2));
                assert_list(lg_embedding_bag(LIST64(1, 1), w, .mode = modes[i], .offsets = LIST64(0), .padding_idx = 1),
                            0, 0, 0);
        }
        assert_ok(c);
        lg_close(c);
}

/* Padding is left out even if its row is not a number; 16-bit sums are those of f32. */
TEST_CASE(padding_and_half_precision)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_from(c, ((float[]){NAN, LG_INFINITY, 1, 2}), LG_SHAPE(2, 2));
        assert_list(lg_embedding_bag(LIST64(0, 1, 1), w, .offsets = LIST64(0), .padding_idx = LG_ZERO_INT), 0, 1, 2);
        lg_tensor *one = lg_ones(c, LG_SHAPE(1, 1)), *many = lg_zeros(c, LG_SHAPE(1, 3000), .dtype = LG_I64);
        assert_list(lg_embedding_bag(many, lg_cast(one, LG_F16), .mode = LG_BAG_SUM), 0, 3000);
        assert_list(lg_embedding_bag(many, lg_cast(one, LG_BF16)), 0, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_ones(c, LG_SHAPE(3, 2)), *flat = LIST64(0, 1, 2),
                  *pairs = lg_reshape(LIST64(0, 1), LG_SHAPE(1, 2));
        lg_tensor *three = lg_ones(c, LG_SHAPE(3));
        assert_fails(c, lg_embedding_bag(flat, w), LG_ERR_SHAPE, "index is i64 (3,) on");
        assert_fails(c, lg_embedding_bag(pairs, w, .offsets = LIST64(0)), LG_ERR_SHAPE, "index is i64 (1, 2)");
        assert_fails(c, lg_embedding_bag(flat, three, .offsets = LIST64(0)), LG_ERR_SHAPE, "weight is f32 (3,)");
        assert_fails(c, lg_embedding_bag(flat, w, .offsets = pairs), LG_ERR_SHAPE, ".offsets is i64 (1, 2)");
        assert_fails(c, lg_embedding_bag(flat, w, .offsets = three), LG_ERR_DTYPE, "offsets is f32");
        assert_fails(c, lg_embedding_bag(pairs, w, .include_last_offset = true), LG_ERR_ARGUMENT,
                     "without a last offset");
        assert_fails(c, lg_embedding_bag(pairs, w, .mode = (lg_bag_mode)3), LG_ERR_ARGUMENT, "no mode 3");
        assert_fails(c, lg_embedding_bag(flat, w, .offsets = LIST64(0), .per_sample_weights = three), LG_ERR_ARGUMENT,
                     "not LG_BAG_SUM");
        assert_fails(c, lg_embedding_bag(pairs, w, .mode = LG_BAG_SUM, .per_sample_weights = three), LG_ERR_SHAPE,
                     ".per_sample_weights is f32 (3,)");
        assert_fails(c, lg_embedding_bag(pairs, w, .padding_idx = 3), LG_ERR_ARGUMENT, "padding_idx is 3");
        assert_fails(c, lg_embedding_bag(w, w), LG_ERR_DTYPE, "index is f32");
        assert_no_index(lg_embedding_bag(LIST64(0, 3), w, .offsets = LIST64(0)), "embedding: index holds 3");
        assert_no_index(lg_embedding_bag(flat, w, .offsets = LIST64(1)), "index_add: index holds -1");
        assert_no_index(lg_embedding_bag(flat, w, .offsets = LIST64(0, 4)), "embedding: index holds 4");
        assert_no_index(lg_embedding_bag(flat, w, .offsets = LIST64(0, 2), .include_last_offset = true),
                        "index_add: index holds 1");
        lg_close(c);
}
