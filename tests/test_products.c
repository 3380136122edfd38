/* test_products.c - products and distances made of other ops: PyTorch's numbers, dtypes, edge cases, wrong calls. */
#include "golden.h"

#define Y(phase, ...) golden_like(x, LG_SHAPE(__VA_ARGS__), phase)
#define DISTANCES(ROW, order, number)                                                                                  \
        ROW(dist_##order, lg_distance(x, Y(0.5, 3, 4), .p = number), 3, 4)                                             \
        ROW(cdist_##order, lg_cdist(x, Y(0.5, 2, 4), .p = number), 2, 3, 4)                                            \
        ROW(pdist_##order, lg_pdist(x, .p = number), 3, 4)
#define ROWS(ROW)                                                                                                      \
        ROW(tensordot, lg_tensordot(x, Y(0.5, 3, 4, 2)), 2, 3, 4)                                                      \
        ROW(tensordot_1, lg_tensordot(x, Y(0.5, 4, 2), .count = 1), 2, 3, 4)                                           \
        ROW(tensordot_0, lg_tensordot(x, Y(0.5, 2), .count = LG_ZERO_INT), 3, 4)                                       \
        ROW(tensordot_dims, lg_tensordot(x, Y(0.5, 4, 2, 5), .dims_a = LG_DIMS(2, 0), .dims_b = LG_DIMS(0, 1)), 2, 3,  \
            4)                                                                                                         \
        ROW(outer, lg_outer(x, Y(0.5, 3)), 5)                                                                          \
        ROW(kron, lg_kron(x, Y(0.5, 2, 3)), 3, 4)                                                                      \
        ROW(kron_vector, lg_kron(Y(0.5, 2, 2), x), 5)                                                                  \
        ROW(cross, lg_cross(x, Y(0.5, 3, 4), 0), 3, 4)                                                                 \
        ROW(cross_broadcast, lg_cross(x, Y(0.5, 1, 3), -1), 4, 3)                                                      \
        ROW(addmm, lg_addmm(x, Y(0.5, 3, 2), Y(0.9, 2, 4), .beta = 0.5, .alpha = -2), 3, 4)                            \
        ROW(addmm_bias, lg_addmm(x, Y(0.5, 3, 2), Y(0.9, 2, 4)), 4)                                                    \
        ROW(addmm_a, lg_addmm(Y(0, 2), x, Y(0.9, 4, 2)), 3, 4)                                                         \
        ROW(addmv, lg_addmv(Y(0.5, 3), x, Y(0.9, 4), .alpha = 3), 3, 4)                                                \
        ROW(baddbmm, lg_baddbmm(Y(0.5, 3, 1), x, Y(0.9, 2, 4, 2), .beta = 2), 2, 3, 4)                                 \
        ROW(bilinear, lg_bilinear(x, Y(0.5, 2, 3, 2), Y(0.7, 3, 4, 2), Y(0.9, 3)), 2, 3, 4)                            \
        ROW(bilinear_w, lg_bilinear(Y(0.5, 5, 3), Y(0.7, 5, 4), x, NULL), 2, 3, 4)                                     \
        DISTANCES(ROW, 0, LG_ZERO)                                                                                     \
        DISTANCES(ROW, 1, 1)                                                                                           \
        DISTANCES(ROW, 2, 2)                                                                                           \
        DISTANCES(ROW, 3, 3)                                                                                           \
        DISTANCES(ROW, half, 0.5)                                                                                      \
        DISTANCES(ROW, greatest, LG_INFINITY)                                                                          \
        ROW(cdist_same, lg_cdist(x, lg_detach(x)), 3, 4)                                                               \
        ROW(cdist_product, lg_cdist(x, Y(0.5, 3, 4)), 26, 4)                                                           \
        ROW(cdist_product_b, lg_cdist(Y(0.5, 2, 27, 3), x), 2, 3)

GOLDEN_TEST(as_pytorch_computes_them, "products.txt", golden_input, ROWS);

TEST_CASE(distances_of_zero)
{
        lg_ctx *c = open_ctx();
        for (int rows = 3; rows < 40; rows += 30) {
                lg_tensor *x = lg_set_requires_grad(golden_tensor(c, LG_SHAPE(rows, 2), 0), true);
                lg_tensor *d = lg_cdist(x, x), *zero = lg_sum(lg_diagonal(d));
                assert_near(lg_item(zero), 0, rows < 26 ? 0 : 1e-5);
                assert_true(lg_backward(lg_sum(d)));
                assert_int_equal((int)lg_item(lg_all(lg_isfinite(lg_grad_of(x)))), 1);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(rows_and_elements_of_none)
{
        lg_ctx *c = open_ctx();
        lg_tensor *none = lg_zeros(c, LG_SHAPE(2, 0)), *no_rows = lg_zeros(c, LG_SHAPE(0, 3));
        const double orders[] = {LG_ZERO, 1, 2, 3, LG_INFINITY};
        for (int i = 0; i < 5; i++) {
                assert_list(lg_cdist(none, none, .p = orders[i]), 0, 0, 0, 0, 0);
                assert_list(lg_pdist(none, .p = orders[i]), 0, 0);
                assert_shape(lg_cdist(no_rows, lg_ones(c, LG_SHAPE(4, 3)), .p = orders[i]), LG_SHAPE(0, 4));
                assert_shape(lg_pdist(no_rows, .p = orders[i]), LG_SHAPE(0));
                assert_shape(lg_pdist(lg_ones(c, LG_SHAPE(1, 3)), .p = orders[i]), LG_SHAPE(0));
        }
        assert_shape(lg_cdist(lg_zeros(c, LG_SHAPE(30, 0)), none), LG_SHAPE(30, 2));
        assert_shape(lg_addmm(lg_ones(c, LG_SHAPE(2, 2)), none, lg_zeros(c, LG_SHAPE(0, 2))), LG_SHAPE(2, 2));
        assert_shape(lg_kron(none, lg_ones(c, LG_SHAPE(3))), LG_SHAPE(2, 0));
        assert_shape(lg_outer(lg_zeros(c, LG_SHAPE(0)), lg_ones(c, LG_SHAPE(3))), LG_SHAPE(0, 3));
        assert_shape(lg_tensordot(none, none, .dims_a = LG_DIMS(1), .dims_b = LG_DIMS(1)), LG_SHAPE(2, 2));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(unused_operands_and_dtypes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *nan = lg_full(c, LG_SHAPE(2, 2), NAN), *x = lg_eye(c, 2, 2);
        assert_list(lg_addmm(nan, x, x, .beta = LG_ZERO, .alpha = 2), 0, 2, 0, 0, 2);
        lg_tensor *i = lg_arange(c, 1, 4, 1), *b = lg_ones(c, LG_SHAPE(2), .dtype = LG_BOOL);
        assert_int_equal(lg_dtype_of(lg_outer(i, lg_cast(i, LG_I32))), LG_I64);
        assert_list(lg_outer(i, b), 0, 1, 1, 2, 2, 3, 3);
        assert_list(lg_kron(lg_cast(i, LG_U8), i), 0, 1, 2, 3, 2, 4, 6, 3, 6, 9);
        assert_list(lg_cross(i, lg_flip(i, LG_ALL_DIMS), 0), 0, -4, 8, -4);
        assert_int_equal(lg_dtype_of(lg_cross(lg_cast(i, LG_F16), lg_cast(i, LG_BF16), 0)), LG_F32);
        assert_int_equal(lg_dtype_of(lg_cdist(lg_cast(x, LG_F16), lg_cast(x, LG_F16))), LG_F16);
        assert_int_equal(lg_dtype_of(lg_distance(lg_cast(x, LG_F16), lg_cast(x, LG_F64))), LG_F64);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_products)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *v = lg_ones(c, LG_SHAPE(3)), *w = lg_ones(c, LG_SHAPE(4, 2, 3));
        lg_tensor *i = lg_arange(c, 0, 3, 1), *five = lg_ones(c, LG_SHAPE(1, 1, 1, 1, 1));
        assert_fails(c, lg_tensordot(x, lg_transpose(x, 0, 1), .count = 1, .dims_a = LG_DIMS(0), .dims_b = LG_DIMS(1)),
                     LG_ERR_ARGUMENT, "tensordot: dims_a has 1 dimensions and dims_b 1; they have equally many");
        assert_fails(c, lg_tensordot(x, x, .dims_a = LG_DIMS(0)), LG_ERR_ARGUMENT, "1 dimensions and dims_b 0");
        assert_fails(c, lg_tensordot(x, x, .dims_a = LG_DIMS(0, 0), .dims_b = LG_DIMS(0, 1)), LG_ERR_ARGUMENT, "twice");
        assert_fails(c, lg_tensordot(x, x, .dims_a = LG_DIMS(0), .dims_b = LG_DIMS(2)), LG_ERR_ARGUMENT, "dimension 2");
        assert_fails(c, lg_tensordot(x, x, .count = 1), LG_ERR_SHAPE, "dimension 1 of a, f32 (2, 3) on");
        assert_fails(c, lg_tensordot(x, v), LG_ERR_ARGUMENT, "count is 2, but a is f32 (2, 3)");
        assert_fails(c, lg_tensordot(x, v, .count = -1), LG_ERR_ARGUMENT, "count is -1");
        assert_fails(c, lg_outer(x, v), LG_ERR_SHAPE, "outer: a is f32 (2, 3)");
        assert_fails(c, lg_outer(v, x), LG_ERR_SHAPE, "outer: b is f32 (2, 3)");
        assert_fails(c, lg_kron(x, five), LG_ERR_SHAPE, "at most 4 dimensions");
        assert_fails(c, lg_cross(x, x, 0), LG_ERR_SHAPE, "cross: a is f32 (2, 3)");
        assert_fails(c, lg_cross(x, x, 2), LG_ERR_ARGUMENT, "dimension 2");
        assert_fails(c, lg_cross(v, lg_ones(c, LG_SHAPE(1)), 0), LG_ERR_SHAPE, "cross: b is f32 (1,)");
        assert_fails(c, lg_addmm(x, x, x), LG_ERR_SHAPE, "addmm: a is f32 (2, 3)");
        assert_fails(c, lg_addmm(w, x, lg_transpose(x, 0, 1)), LG_ERR_SHAPE,
                     "does not broadcast to the product, (2, 2)");
        assert_fails(c, lg_addmv(v, x, x), LG_ERR_SHAPE, "(m, k) and (k)");
        assert_fails(c, lg_baddbmm(w, w, lg_ones(c, LG_SHAPE(5, 3, 1))), LG_ERR_SHAPE, "(N, m, k) and (N, k, n)");
        assert_fails(c, lg_addmv(i, lg_cast(x, LG_I64), i, .alpha = 0.5), LG_ERR_ARGUMENT, "alpha is 0.5; for i64");
        assert_fails(c, lg_bilinear(x, x, w, NULL), LG_ERR_SHAPE, "bilinear: x1 is f32 (2, 3)");
        assert_fails(c, lg_bilinear(lg_ones(c, LG_SHAPE(2)), v, w, v), LG_ERR_SHAPE, "bilinear: b is f32 (3,)");
        assert_fails(c, lg_distance(x, lg_ones(c, LG_SHAPE(2))), LG_ERR_SHAPE, "do not broadcast");
        assert_fails(c, lg_distance(x, x, .p = -1), LG_ERR_ARGUMENT, "distance: p is -1");
        assert_fails(c, lg_cdist(x, lg_ones(c, LG_SHAPE(2, 2))), LG_ERR_SHAPE, "cdist: a is f32 (2, 3)");
        assert_fails(c, lg_cdist(x, v), LG_ERR_SHAPE, "b is f32 (3,)");
        assert_fails(c, lg_cdist(x, x, .p = NAN), LG_ERR_ARGUMENT, "p is nan");
        assert_fails(c, lg_cdist(lg_cast(x, LG_I64), x), LG_ERR_DTYPE, "cdist: a is i64");
        assert_fails(c, lg_pdist(v), LG_ERR_SHAPE, "pdist: x is f32 (3,)");
        lg_close(c);
}
