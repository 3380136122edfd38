/* test_split.c - a tensor taken apart: split, chunk, unbind. */
#include "golden.h"

static lg_tensor *weighted(lg_tensor *x, int64_t size, int64_t chunks, int dim)
{
        lg_tensor *p[8];
        int64_t n = chunks ? lg_chunk(x, chunks, dim, p, 8) : lg_split(x, size, dim, p, 8);
        for (int64_t i = 0; i < n; i++)
                p[i] = lg_mul_scalar(p[i], (double)i + 2);
        return lg_cat((lg_list){n, p}, dim);
}

#define ROWS(ROW)                                                                                                      \
        ROW(split, weighted(x, 2, 0, 1), 4, 5)                                                                         \
        ROW(chunk, weighted(x, 0, 3, 0), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

TEST_CASE(pieces_are_views)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(5)), *p[5] = {NULL};
        assert_int_equal(lg_split(x, 2, 0, p, 3), 3);
        assert_int_equal(lg_numel(p[2]), 1);
        lg_fill_(p[1], 3);
        assert_list(x, 0, 0, 0, 3, 3, 0);
        assert_int_equal(lg_chunk(x, 4, -1, p, 4), 3); /* ceil(5 / 4) = 2 each: there are three of them */
        assert_int_equal(lg_chunk(x, 9, 0, p, 9), 5);
        assert_int_equal(lg_split(x, 100, 0, p, 1), 1);
        assert_int_equal(lg_split(lg_zeros(c, LG_SHAPE(0)), 0, 0, p, 1), 1);
        assert_int_equal(lg_chunk(lg_zeros(c, LG_SHAPE(2, 0)), 3, 1, p, 3), 3);
        assert_int_equal(lg_numel(p[2]), 0);
        lg_tensor *steps = lg_from(c, ((float[]){1, 2, 3, 4, 5, 6}), LG_SHAPE(2, 3));
        assert_int_equal(lg_unbind(steps, -1, p, 5), 3);
        assert_shape(p[2], LG_SHAPE(2));
        assert_list(p[2], 0, 3, 6);
        assert_int_equal(lg_unbind(lg_zeros(c, LG_SHAPE(2, 0)), 1, NULL, 0), 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_pieces)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2)), *p[2] = {x, x};
        assert_fails(c, lg_split(x, 1, 0, p, 2), LG_ERR_ARGUMENT, "split: x, f32 (3, 2) on");
        assert_fails(c, lg_split(x, 1, 0, NULL, 9), LG_ERR_ARGUMENT, "gives 3 pieces, but there is room for 0");
        assert_fails(c, lg_split(x, 0, 0, p, 2), LG_ERR_ARGUMENT, "split: pieces of size 0");
        assert_fails(c, lg_split(x, 1, 2, p, 2), LG_ERR_ARGUMENT, "split: there is no dimension 2");
        assert_fails(c, lg_unbind(x, 0, p, 2), LG_ERR_ARGUMENT, "unbind: x, f32 (3, 2) on");
        assert_fails(c, lg_unbind(x, 0, NULL, 9), LG_ERR_ARGUMENT, "gives 3 pieces, but there is room for 0");
        assert_fails(c, lg_unbind(x, 2, p, 2), LG_ERR_ARGUMENT, "unbind: there is no dimension 2");
        assert_fails(c, lg_unbind(lg_ones(c, LG_SHAPE_0D), 0, p, 2), LG_ERR_ARGUMENT,
                     "unbind: there is no dimension 0");
        assert_fails(c, lg_chunk(x, 0, 0, p, 2), LG_ERR_ARGUMENT, "chunk: 0 chunks");
        assert_fails(c, lg_chunk(x, 3, 0, p, 2), LG_ERR_ARGUMENT, "gives 3 pieces, but there is room for 2");
        assert_fails(c, lg_chunk(x, 2, -3, p, 2), LG_ERR_ARGUMENT, "chunk: there is no dimension -3");
        assert_ptr_equal(p[0], x);
        assert_ptr_equal(p[1], x);
        assert_int_equal(lg_split(NULL, 1, 0, p, 2), 0);
        lg_close(c);
}
