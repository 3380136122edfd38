/* test_arrange.c - diagonals, grids, repetitions and other arrangements: PyTorch's numbers, edge cases, wrong calls. */
#include "golden.h"

/* The views that a function stores, stacked. */
static lg_tensor *stacked(lg_list list, bool broadcasts, bool xy)
{
        lg_tensor *views[4];
        const int64_t n = broadcasts ? lg_broadcast_tensors(list, views, 4) : lg_meshgrid(list, views, 4, .xy = xy);
        return n ? lg_stack(LG_LIST_OF(n, views), 0) : NULL;
}

#define V(n) lg_slice(golden_like(x, LG_SHAPE(4), 0), 0, 0, n)
#define ROWS(ROW)                                                                                                      \
        ROW(diag, lg_diag(x, .offset = -1), 4)                                                                         \
        ROW(diag_matrix, lg_diag(x, .offset = 1), 3, 4)                                                                \
        ROW(diag_below, lg_diag(x, .offset = -2), 3, 4)                                                                \
        ROW(diagonal, lg_diagonal(x, .offset = 1, .dim1 = 1, .dim2 = 2), 2, 3, 4)                                      \
        ROW(diagonal_crossed, lg_diagonal(x, .offset = -1, .dim1 = -1, .dim2 = LG_ZERO_INT), 2, 3, 4)                  \
        ROW(diagonal_beyond, lg_diagonal(x, .offset = 9), 3, 4)                                                        \
        ROW(diagonal_twice, lg_mul(lg_diagonal(x), lg_sum(lg_diagonal(lg_slice(x, 0, 1, LG_MAX), .offset = 1))), 3, 4) \
        ROW(diag_embed, lg_diag_embed(x, .offset = 1), 3, 4)                                                           \
        ROW(diag_embed_dims, lg_diag_embed(x, .offset = -1, .dim1 = LG_ZERO_INT, .dim2 = 2), 3, 4)                     \
        ROW(diagflat, lg_diagflat(x, .offset = -1), 3, 4)                                                              \
        ROW(trace, lg_trace(x), 3, 4)                                                                                  \
        ROW(block_diag,                                                                                                \
            lg_block_diag(                                                                                             \
                    LG_LIST(x, V(4), lg_slice(lg_slice(x, 0, 0, 1), 1, 0, 2), lg_select(lg_select(x, 0, 0), 0, 0))),   \
            3, 4)                                                                                                      \
        ROW(movedim, lg_movedim(x, LG_DIMS(0, 1), LG_DIMS(-1, 0)), 2, 3, 4)                                            \
        ROW(movedim_one, lg_movedim(x, LG_DIMS(-1), LG_DIMS(0)), 2, 3, 4)                                              \
        ROW(rot90, lg_rot90(x, 1, LG_DIMS(0, 1)), 3, 4)                                                                \
        ROW(rot90_3, lg_rot90(x, -1, LG_DIMS(2, 0)), 2, 3, 4)                                                          \
        ROW(rot90_2, lg_rot90(x, 6, LG_DIMS(1, 2)), 2, 3, 4)                                                           \
        ROW(rot90_0, lg_rot90(x, 4, LG_DIMS(0, 1)), 3, 4)                                                              \
        ROW(fliplr, lg_fliplr(x), 3, 4)                                                                                \
        ROW(flipud, lg_flipud(x), 3, 4)                                                                                \
        ROW(narrow, lg_narrow(x, -1, -3, 2), 2, 3, 4)                                                                  \
        ROW(unflatten, lg_unflatten(x, 2, LG_SHAPE(2, -1)), 2, 3, 4)                                                   \
        ROW(atleast, lg_atleast_3d(x), 3, 4)                                                                           \
        ROW(tile, lg_tile(x, LG_SHAPE(2)), 3, 4)                                                                       \
        ROW(tile_more, lg_tile(x, LG_SHAPE(2, 1, 3)), 3, 4)                                                            \
        ROW(repeat_interleave, lg_repeat_interleave(x, 3, 0), 3, 4)                                                    \
        ROW(repeat_interleave_last, lg_repeat_interleave(x, 2, -1), 2, 3, 4)                                           \
        ROW(repeat_interleave_by, lg_repeat_interleave_by(x, LIST64(2, 0, 3), 1), 2, 3, 4)                             \
        ROW(cartesian_prod, lg_cartesian_prod(LG_LIST(x, V(2), lg_slice(x, 0, 1, 4))), 4)                              \
        ROW(combinations, lg_combinations(x, 3), 5)                                                                    \
        ROW(combinations_again, lg_combinations(x, 2, .with_replacement = true), 4)                                    \
        ROW(meshgrid, stacked(LG_LIST(x, lg_mul(V(3), lg_select(x, 0, 0))), false, false), 4)                          \
        ROW(meshgrid_xy, stacked(LG_LIST(x, V(3), lg_slice(x, 0, 1, 3)), false, true), 4)                              \
        ROW(broadcast_tensors, stacked(LG_LIST(x, V(4), golden_like(x, LG_SHAPE(2, 1, 1), 0.5)), true, false), 3, 4)

GOLDEN_TEST(as_pytorch_arranges_them, "arrange.txt", golden_input, ROWS);

TEST_CASE(diagonals_are_views)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3));
        assert_true(lg_fill_(lg_diagonal(x, .offset = 1), 5));
        assert_list(x, 0, 0, 5, 0, 0, 0, 5);
        assert_true(lg_fill_(lg_diag(x), 7));
        assert_list(x, 0, 0, 5, 0, 0, 0, 5);
        assert_shape(lg_diagonal(x, .offset = -2), LG_SHAPE(0));
        assert_shape(lg_diagonal(x, .offset = INT64_MAX), LG_SHAPE(0));
        assert_shape(lg_diagonal(x, .offset = INT64_MIN), LG_SHAPE(0));
        assert_shape(lg_diagonal(lg_zeros(c, LG_SHAPE(0, 4, 2))), LG_SHAPE(2, 0));
        assert_shape(lg_diag_embed(lg_zeros(c, LG_SHAPE(3, 0))), LG_SHAPE(3, 0, 0));
        assert_shape(lg_diag_embed(lg_zeros(c, LG_SHAPE(0)), .offset = -2), LG_SHAPE(2, 2));
        assert_list(lg_diagflat(lg_scalar(c, 3)), 0, 3);
        assert_list(lg_trace(lg_zeros(c, LG_SHAPE(0, 3))), 0, 0);
        assert_int_equal(lg_dtype_of(lg_trace(lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_BOOL))), LG_I64);
        assert_shape(lg_block_diag(LG_LIST(lg_zeros(c, LG_SHAPE(0)), lg_ones(c, LG_SHAPE(2, 0)))), LG_SHAPE(3, 0));
        assert_null(lg_block_diag(LG_LIST(NULL)));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(gradients_of_overlapping_diagonals)
{
        lg_ctx *c = open_ctx();
        for (int order = 0; order < 2; order++) {
                lg_tensor *x = lg_set_requires_grad(lg_ones(c, LG_SHAPE(3, 3)), true);
                lg_tensor *y = lg_add(lg_sum(lg_diagonal(x)), lg_sum(lg_mul_scalar(lg_select(x, 0, 1), 2)));
                y = lg_add(y, lg_sum(lg_diagonal(lg_slice(x, 1, 1, 3), .offset = -1)));
                assert_true(lg_backward(y, .create_graph = order));
                assert_list(lg_grad_of(x), 0, 1, 0, 0, 2, 4, 2, 0, 0, 2);
        }
        lg_close(c);
}

TEST_CASE(grids)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 0, 2, 1), *none = lg_arange(c, 0, 0, 1), *ret[3] = {x, x, x};
        assert_int_equal(lg_meshgrid(LG_LIST(x, lg_arange(c, 5, 8, 1)), ret, 3), 2);
        assert_list(ret[0], 0, 0, 0, 0, 1, 1, 1);
        assert_list(ret[1], 0, 5, 6, 7, 5, 6, 7);
        assert_int_equal(lg_meshgrid(LG_LIST(x, none), ret, 2, .xy = true), 2);
        assert_shape(ret[0], LG_SHAPE(0, 2));
        assert_int_equal(lg_meshgrid(LG_LIST(lg_scalar(c, 4)), ret, 1, .xy = true), 1);
        assert_shape(ret[0], LG_SHAPE(1));
        assert_int_equal(lg_meshgrid(LG_LIST(NULL, NULL), ret, 2), 0);
        assert_int_equal(lg_broadcast_tensors(LG_LIST(NULL), ret, 2), 0);
        assert_ok(c);
        ret[0] = NULL;
        assert_fails(c, lg_meshgrid(LG_LIST(x, x), ret, 1), LG_ERR_ARGUMENT, "2 tensors, but there is room for 1");
        assert_fails(c, lg_meshgrid(LG_LIST(x, x), NULL, 2), LG_ERR_ARGUMENT, "room for 0");
        assert_fails(c, lg_meshgrid(LG_LIST(x, lg_ones(c, LG_SHAPE(2))), ret, 2), LG_ERR_DTYPE, "all have one dtype");
        assert_fails(c, lg_meshgrid(LG_LIST(lg_ones(c, LG_SHAPE(2, 1))), ret, 2), LG_ERR_SHAPE, "not a vector");
        assert_fails(c, lg_meshgrid(LG_LIST(x, x, x, x, x, x, x, x, x), ret, 9), LG_ERR_SHAPE, "at most 8 dimensions");
        assert_fails(c, lg_broadcast_tensors(LG_LIST(x, lg_arange(c, 0, 3, 1)), ret, 2), LG_ERR_SHAPE, "broadcast");
        assert_null(ret[0]);
        assert_shape(lg_cartesian_prod(LG_LIST(x)), LG_SHAPE(2));
        assert_shape(lg_cartesian_prod(LG_LIST(x, none, x)), LG_SHAPE(0, 3));
        assert_list(lg_cartesian_prod(LG_LIST(x, lg_scalar(c, 0.5))), 0, 0, 0.5, 1, 0.5);
        assert_shape(lg_cartesian_prod(LG_LIST(x, x, x, x, x, x, x, x, x, x)), LG_SHAPE(1024, 10));
        assert_fails(c, lg_cartesian_prod(LG_LIST(x, lg_ones(c, LG_SHAPE(1, 1)))), LG_ERR_SHAPE,
                     "tensor 1 is f32 (1, 1)");
        lg_close(c);
}

TEST_CASE(combinations_and_indices)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 0, 3, 1);
        assert_shape(lg_combinations(x, 0), LG_SHAPE(0));
        assert_shape(lg_combinations(x, 4), LG_SHAPE(0, 4));
        assert_list(lg_combinations(x, 3), 0, 0, 1, 2);
        assert_shape(lg_combinations(x, 4, .with_replacement = true), LG_SHAPE(15, 4));
        assert_shape(lg_combinations(lg_arange(c, 0, 0, 1), 2, .with_replacement = true), LG_SHAPE(0, 2));
        assert_fails(c, lg_combinations(x, -1), LG_ERR_ARGUMENT, "r is -1");
        assert_fails(c, lg_combinations(lg_ones(c, LG_SHAPE(2, 2)), 2), LG_ERR_SHAPE, "not a vector");
        assert_fails(c, lg_combinations(lg_arange(c, 0, 200, 1), 100), LG_ERR_SHAPE, "too many of 100 of 200");
        assert_list(lg_tril_indices(c, 3, 2), 0, 0, 1, 1, 2, 2, 0, 0, 1, 0, 1);
        assert_list(lg_triu_indices(c, 2, 3, .offset = 1), 0, 0, 0, 1, 1, 2, 2);
        assert_shape(lg_tril_indices(c, 3, 3, .offset = -3), LG_SHAPE(2, 0));
        assert_shape(lg_triu_indices(c, 0, 3), LG_SHAPE(2, 0));
        assert_int_equal(lg_dtype_of(lg_triu_indices(c, 2, 2, .offset = INT64_MIN)), LG_I64);
        assert_fails(c, lg_tril_indices(c, -1, 2), LG_ERR_ARGUMENT, "lg_tril_indices: -1 rows");
        assert_fails(c, lg_triu_indices(c, INT64_MAX, INT64_MAX), LG_ERR_SHAPE, "lg_triu_indices");
        assert_list(lg_logspace(c, -1, 1, 3), 1e-6, 0.1, 1, 10);
        assert_list(lg_logspace(c, 0, 3, 4, .base = 2, .dtype = LG_F64), 0, 1, 2, 4, 8);
        assert_true(lg_requires_grad(lg_logspace(c, 0, 1, 2, .requires_grad = true)));
        assert_shape(lg_logspace(c, 0, 1, 0), LG_SHAPE(0));
        assert_fails(c, lg_logspace(c, 0, NAN, 2), LG_ERR_ARGUMENT, "lg_logspace: from 0 to nan");
        assert_fails(c, lg_logspace(c, 0, 1, -2), LG_ERR_ARGUMENT, "count is -2");
        assert_fails(c, lg_logspace(c, 0, 1, 2, .dtype = LG_I32), LG_ERR_DTYPE, "dtype i32");
        lg_close(c);
}

TEST_CASE(repetitions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 1, 3, 1), *zero_d = lg_scalar(c, 5), *y = lg_repeat_interleave(x, 1, 0);
        assert_true(lg_fill_(y, 9));
        assert_list(x, 0, 1, 2);
        assert_list(lg_repeat_interleave(zero_d, 2, -1), 0, 5, 5);
        assert_shape(lg_repeat_interleave(x, 0, 0), LG_SHAPE(0));
        assert_shape(lg_repeat_interleave(lg_ones(c, LG_SHAPE(2, 0)), 3, 0), LG_SHAPE(6, 0));
        assert_list(lg_repeat_interleave_by(x, LIST64(2), 0), 0, 1, 1, 2, 2);
        assert_list(lg_repeat_interleave_by(x, lg_scalar(c, 2, .dtype = LG_I64), 0), 0, 1, 1, 2, 2);
        assert_shape(lg_repeat_interleave_by(x, LIST64(0, 0), 0), LG_SHAPE(0));
        assert_shape(lg_repeat_interleave_by(lg_ones(c, LG_SHAPE(0)), lg_ones(c, LG_SHAPE(0), .dtype = LG_I64), 0),
                     LG_SHAPE(0));
        assert_list(lg_tile(zero_d, LG_SHAPE(2)), 0, 5, 5);
        assert_shape(lg_tile(lg_ones(c, LG_SHAPE(2, 3)), LG_SHAPE_0D), LG_SHAPE(2, 3));
        assert_fails(c, lg_repeat_interleave(x, -1, 0), LG_ERR_ARGUMENT, "times is -1");
        assert_fails(c, lg_repeat_interleave(x, 2, 1), LG_ERR_ARGUMENT, "repeat_interleave: there is no dimension 1");
        assert_fails(c, lg_repeat_interleave(x, INT64_MAX, 0), LG_ERR_SHAPE, "2^63");
        assert_fails(c, lg_repeat_interleave_by(x, LIST64(1, -1), 0), LG_ERR_ARGUMENT, "a count is -1");
        assert_fails(c, lg_repeat_interleave_by(x, LIST64(1, 1, 1), 0), LG_ERR_SHAPE, "for 2 slices it has 2 elements");
        assert_fails(c, lg_repeat_interleave_by(x, LIST64(INT64_MAX, INT64_MAX), 0), LG_ERR_SHAPE,
                     "add up beyond 2^60");
        assert_fails(c, lg_repeat_interleave_by(x, zero_d, 0), LG_ERR_DTYPE, "counts is f32");
        assert_fails(c, lg_tile(x, LG_SHAPE(-1)), LG_ERR_SHAPE, "tile: x is i64 (2,)");
        lg_close(c);
}

TEST_CASE(forms)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 4)), *v = lg_ones(c, LG_SHAPE(3)), *zero_d = lg_scalar(c, 1);
        assert_shape(lg_atleast_1d(zero_d), LG_SHAPE(1));
        assert_shape(lg_atleast_2d(zero_d), LG_SHAPE(1, 1));
        assert_shape(lg_atleast_2d(v), LG_SHAPE(1, 3));
        assert_shape(lg_atleast_3d(v), LG_SHAPE(1, 3, 1));
        assert_shape(lg_atleast_3d(zero_d), LG_SHAPE(1, 1, 1));
        assert_true(lg_atleast_1d(x) != x);
        assert_shape(lg_atleast_1d(x), LG_SHAPE(2, 3, 4));
        assert_shape(lg_movedim(x, LG_DIMS(2, 0), LG_DIMS(0, 1)), LG_SHAPE(4, 2, 3));
        assert_shape(lg_narrow(x, 1, 3, 0), LG_SHAPE(2, 0, 4));
        assert_shape(lg_unflatten(lg_ones(c, LG_SHAPE(2, 0)), 1, LG_SHAPE(3, -1)), LG_SHAPE(2, 3, 0));
        assert_shape(lg_unflatten(lg_ones(c, LG_SHAPE(0, 4)), -1, LG_SHAPE(-1, 2)), LG_SHAPE(0, 2, 2));
        assert_fails(c, lg_movedim(x, LG_DIMS(0), LG_DIMS(0, 1)), LG_ERR_ARGUMENT,
                     "from has 1 dimensions, but to has 2");
        assert_fails(c, lg_movedim(x, LG_DIMS(0, 0), LG_DIMS(0, 1)), LG_ERR_ARGUMENT, "dimension 0 is given twice");
        assert_fails(c, lg_rot90(x, 1, LG_DIMS(0)), LG_ERR_ARGUMENT, "dims has 1 dimensions");
        assert_fails(c, lg_rot90(x, 1, LG_DIMS(1, -2)), LG_ERR_ARGUMENT, "twice");
        assert_fails(c, lg_fliplr(v), LG_ERR_ARGUMENT, "fliplr: there is no dimension 1");
        assert_fails(c, lg_flipud(zero_d), LG_ERR_ARGUMENT, "flipud: there is no dimension 0");
        assert_fails(c, lg_narrow(x, 1, 2, 2), LG_ERR_ARGUMENT, "narrow: start 2 and length 2 are outside dimension 1");
        assert_fails(c, lg_narrow(x, 1, -4, 1), LG_ERR_ARGUMENT, "start -4");
        assert_fails(c, lg_narrow(x, 1, 0, -1), LG_ERR_ARGUMENT, "length -1");
        assert_fails(c, lg_unflatten(x, 2, LG_SHAPE(3, -1)), LG_ERR_SHAPE, "cannot be replaced by (3, -1)");
        assert_fails(c, lg_unflatten(x, 2, LG_SHAPE(-1, -1)), LG_ERR_SHAPE, "cannot be replaced");
        assert_fails(c, lg_unflatten(x, 2, LG_SHAPE_0D), LG_ERR_SHAPE, "cannot be replaced");
        assert_fails(c, lg_unflatten(lg_ones(c, LG_SHAPE(0)), 0, LG_SHAPE(0, -1)), LG_ERR_SHAPE, "cannot be replaced");
        assert_fails(c, lg_diag(x), LG_ERR_SHAPE, "diag: x is f32 (2, 3, 4)");
        assert_fails(c, lg_diagonal(v), LG_ERR_ARGUMENT, "no dimension 1");
        assert_fails(c, lg_diagonal(x, .dim1 = 1), LG_ERR_ARGUMENT, "dim1 and dim2 are both dimension 1");
        assert_fails(c, lg_diagonal(x, .dim1 = INT64_MIN), LG_ERR_ARGUMENT, "no dimension");
        assert_fails(c, lg_diag_embed(zero_d), LG_ERR_SHAPE, "diag_embed: x is f32 ()");
        assert_fails(c, lg_diag_embed(v, .offset = INT64_MIN), LG_ERR_SHAPE, "too large");
        assert_fails(c, lg_diag_embed(v, .offset = INT64_MAX), LG_ERR_SHAPE, "too large");
        assert_fails(c, lg_diag_embed(v, .dim1 = -1), LG_ERR_ARGUMENT, "both dimension 1");
        assert_fails(c, lg_trace(v), LG_ERR_SHAPE, "trace: x is f32 (3,)");
        assert_fails(c, lg_block_diag(LG_LIST(v, x)), LG_ERR_SHAPE, "block_diag: tensor 1 is f32 (2, 3, 4)");
        lg_close(c);
}
