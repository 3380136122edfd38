/* test_index.c - indexing with lists of tensors, by places in row-major order and by mask, against PyTorch's numbers.
 */
#include "golden.h"

#define SRC golden_like(x, LG_SHAPE(2, 3, 4), 0.7)
#define I LIST64(1, 0, -1, 1)
#define J lg_reshape(LIST64(2, 0), LG_SHAPE(2, 1))
#define FEW(n) lg_slice(lg_flatten(SRC), 0, 0, n)
#define ROWS(ROW)                                                                                                      \
        ROW(index_rows, lg_index(x, LG_LIST(I)), 4, 5)                                                                 \
        ROW(index_both, lg_index(x, LG_LIST(I, J)), 4, 5)                                                              \
        ROW(index_middle, lg_index(x, LG_LIST(LG_ALL, J)), 2, 3, 4)                                                    \
        ROW(index_apart, lg_index(x, LG_LIST(lg_reshape(LIST64(0, 1), LG_SHAPE(1, 2)), LG_ALL, J)), 2, 3, 4)           \
        ROW(index_last_two, lg_index(x, LG_LIST(LG_ALL, LIST64(0, 2), LIST64(-1, 1))), 2, 3, 4)                        \
        ROW(index_mask, lg_index(x, LG_LIST(lg_eq_scalar(I64(3, 2, 3), 1))), 2, 3, 4)                                  \
        ROW(index_mask_late, lg_index(x, LG_LIST(LG_ALL, lg_eq_scalar(I64(3, 3, 4), 1))), 2, 3, 4)                     \
        ROW(index_put, lg_index_put(x, LG_LIST(LIST64(2, 0), LIST64(-1, 3)), FEW(2)), 4, 5)                            \
        ROW(index_put_values, lg_index_put(SRC, LG_LIST(LIST64(1, 0), LIST64(2, 0)), x), 2, 4)                         \
        ROW(index_put_wide, lg_index_put(SRC, LG_LIST(LIST64(1, 0, 1)), x, .accumulate = true), 1, 4)                  \
        ROW(take, lg_take(x, lg_reshape(LIST64(3, -1, 3, 0), LG_SHAPE(2, 2))), 4, 5)                                   \
        ROW(take_along_dim, lg_take_along_dim(x, lg_reshape(LIST64(2, 0, 2), LG_SHAPE(1, 3)), 1), 4, 5)                \
        ROW(put, lg_put(x, LIST64(3, -1), FEW(2)), 4, 5)                                                               \
        ROW(put_sum_src, lg_put(SRC, LIST64(3, -1, 3, 4, 5, 6, 7), x, .accumulate = true), 7)                          \
        ROW(masked_scatter, lg_masked_scatter(x, lg_eq_scalar(I64(2, 3, 1), 1), SRC), 2, 3, 4)                         \
        ROW(masked_scatter_src, lg_masked_scatter(SRC, lg_eq_scalar(I64(3, 2, 3, 4), 1), x), 4, 5)

/* The row of M[:2, :4] is not a tensor by the formula of its own shape. */
static lg_tensor *input(lg_ctx *c, const golden *row)
{
        return strcmp(row->name, "index_put_values")
                       ? golden_input(c, row)
                       : lg_slice(lg_slice(golden_tensor(c, LG_SHAPE(4, 5), 0), 0, 0, 2), 1, 0, 4);
}
GOLDEN_TEST(as_pytorch_computes_it, "order.txt", input, ROWS);

TEST_CASE(every_dtype)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
        for (int d = 0; d < 8; d++) {
                const bool b = dtypes[d] == LG_BOOL;
                lg_tensor *x = lg_cast(lg_reshape(lg_arange(c, 0, 6, 1), LG_SHAPE(2, 3)), dtypes[d]);
                lg_tensor *y = lg_index(x, LG_LIST(LIST64(1, 0), LIST64(-1, 0)));
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_list(y, 0, b ? 1 : 5, 0);
                y = lg_index_put(x, LG_LIST(LG_ALL, LIST64(0, 0)), lg_take(x, LIST64(0, 2)));
                assert_list(y, 0, b ? 1 : 2, 1, b ? 1 : 2, b ? 1 : 2, b ? 1 : 4, b ? 1 : 5);
                y = lg_put(x, LIST64(-1, 0), lg_take(x, LIST64(0, 2)));
                assert_list(y, 0, b ? 1 : 2, 1, b ? 1 : 2, b ? 1 : 3, b ? 1 : 4, 0);
                y = lg_masked_scatter(x, lg_lt_scalar(lg_cast(x, LG_I64), 1), lg_take(x, LIST64(1, 0, 1, 0, 1)));
                assert_list(y, 0, 1, 1, b ? 1 : 2, b ? 1 : 3, b ? 1 : 4, b ? 1 : 5);
                assert_ok(c);
        }
        lg_close(c);
}

/* Several values for one place: the last one in row-major order of the indices remains, on every device. */
TEST_CASE(the_last_one_remains)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3)), *v = lg_arange(c, 1, 5, 1, .dtype = LG_F32);
        lg_tensor *at = lg_reshape(LIST64(1, 1, 1, 0), LG_SHAPE(2, 2));
        assert_list(lg_index_put(x, LG_LIST(at, LIST64(2, 2)), lg_reshape(v, LG_SHAPE(2, 2))), 0, 0, 0, 4, 0, 0, 3);
        assert_list(lg_put(x, LIST64(1, 5, 1, -1), v), 0, 0, 3, 0, 0, 0, 4);
        assert_list(lg_index_put(x, LG_LIST(LIST64(0, 0)), lg_scalar(c, 2), .accumulate = true), 0, 4, 4, 4, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(shapes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3, 4, 5)), *at = lg_zeros(c, LG_SHAPE(7, 1), .dtype = LG_I64);
        lg_tensor *one = lg_scalar(c, 1, .dtype = LG_I64), *none = lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64);
        assert_shape(lg_index(x, LG_LIST(LG_ALL, at, at)), LG_SHAPE(2, 7, 1, 5));
        assert_shape(lg_index(x, LG_LIST(at, LG_ALL, LIST64(0, 1))), LG_SHAPE(7, 2, 3, 5));
        assert_shape(lg_index(x, LG_LIST(LG_ALL, LG_ALL, LG_ALL, one)), LG_SHAPE(2, 3, 4));
        assert_shape(lg_index(x, LG_LIST(one, one, one, one)), LG_SHAPE_0D);
        assert_shape(lg_index(x, LG_LIST(LG_ALL, none)), LG_SHAPE(2, 0, 4, 5));
        assert_shape(lg_index(lg_zeros(c, LG_SHAPE(3, 0)), LG_LIST(at)), LG_SHAPE(7, 1, 0));
        assert_shape(lg_index_put(x, LG_LIST(LG_ALL, none), lg_zeros(c, LG_SHAPE(5))), LG_SHAPE(2, 3, 4, 5));
        assert_shape(lg_take(x, none), LG_SHAPE(0));
        assert_shape(lg_take(lg_scalar(c, 3), at), LG_SHAPE(7, 1));
        assert_shape(lg_masked_scatter(lg_zeros(c, LG_SHAPE(3, 1)), lg_gt_scalar(lg_zeros(c, LG_SHAPE(4)), 0), x),
                     LG_SHAPE(3, 4));
        assert_list(lg_masked_scatter(lg_ones(c, LG_SHAPE(2)), lg_gt_scalar(lg_zeros(c, LG_SHAPE(2)), 0),
                                      lg_zeros(c, LG_SHAPE(0))),
                    0, 1, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3)), *at = LIST64(0, 1), *three = LIST64(0, 0, 0);
        lg_tensor *mask = lg_gt_scalar(x, -1);
        assert_fails(c, lg_index(x, LG_LIST_OF(0, NULL)), LG_ERR_ARGUMENT, "index: there are 0 indices; 1 to 8");
        assert_fails(c, lg_index(x, LG_LIST(LG_ALL, LG_ALL)), LG_ERR_ARGUMENT,
                     "index: the list of indices has no tensor");
        assert_fails(c, lg_index(x, LG_LIST(at, at, at)), LG_ERR_ARGUMENT,
                     "index: there are indices for more dimensions");
        assert_fails(c, lg_index(x, LG_LIST(at, mask)), LG_ERR_ARGUMENT,
                     "index: there are indices for more dimensions");
        assert_fails(c, lg_index(x, LG_LIST(at, three)), LG_ERR_SHAPE, "index");
        assert_fails(c, lg_index(x, LG_LIST(x)), LG_ERR_DTYPE, "index: tensor 0 of the indices is f32 (2, 3)");
        assert_fails(c, lg_index(x, LG_LIST(lg_transpose(mask, 0, 1))), LG_ERR_SHAPE, "has not the sizes of x");
        assert_fails(c, lg_index_put(x, LG_LIST(at), lg_zeros(c, LG_SHAPE(2, 2))), LG_ERR_SHAPE, "index_put");
        assert_fails(c, lg_index_put(x, LG_LIST(at), lg_zeros(c, LG_SHAPE(1, 2, 3))), LG_ERR_SHAPE,
                     "does not broadcast to (2, 3)");
        assert_fails(c, lg_index_put(x, LG_LIST(at), at), LG_ERR_DTYPE, "index_put: x is f32 (2, 3)");
        assert_fails(c, lg_index_put(mask, LG_LIST(at), mask, .accumulate = true), LG_ERR_DTYPE, "not bool");
        assert_fails(c, lg_put(x, at, x), LG_ERR_SHAPE, "they have the same shape");
        assert_fails(c, lg_put(x, at, at), LG_ERR_DTYPE, "put: x is f32 (2, 3)");
        assert_fails(c, lg_take_along_dim(x, at, 0), LG_ERR_SHAPE, "they have equally many dimensions");
        assert_fails(c, lg_masked_scatter(x, mask, at), LG_ERR_DTYPE, "masked_scatter: x is f32 (2, 3)");
        assert_no_index(lg_index(x, LG_LIST(at, LIST64(0, 3))),
                        "index: index holds 3, but there are 3 places to point at, from -3 on");
        assert_no_index(lg_index_put(x, LG_LIST(LIST64(0, -3)), x), "index_put: index holds -3");
        assert_no_index(lg_take(x, LIST64(6, 0)), "take: index holds 6, but there are 6 places");
        assert_no_index(lg_put(x, LIST64(-7, 0), lg_ones(c, LG_SHAPE(2))), "put: index holds -7");
        assert_no_index(lg_take_along_dim(x, lg_reshape(LIST64(-1, 0), LG_SHAPE(2, 1)), 1),
                        "take_along_dim: index holds -1");
        assert_no_index(lg_masked_scatter(x, mask, lg_ones(c, LG_SHAPE(5))), "masked_scatter: the mask has more true");
        assert_no_index(lg_masked_scatter(x, mask, lg_ones(c, LG_SHAPE(0))), "masked_scatter: the mask has more true");
        lg_close(c);
}
