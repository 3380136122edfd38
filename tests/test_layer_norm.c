/* test_layer_norm.c - layer, RMS, group and instance norm and normalize against PyTorch's numbers and plain loops. */
#include "norm_loops.h"

#define V(n, phase) golden_like(x, LG_SHAPE(n), phase)
#define FIXED golden_like(x, LG_SHAPE(2, 3, 2, 2), 1)
#define ROWS(ROW)                                                                                                      \
        ROW(layer_norm, lg_layer_norm(x, LG_SHAPE(4), V(4, 0.5), V(4, 2)), 3, 4)                                       \
        ROW(layer_norm_2, lg_layer_norm(x, LG_SHAPE(3, 2), lg_reshape(V(6, 0.5), LG_SHAPE(3, 2)), NULL, .eps = 0.1),   \
            2, 3, 2)                                                                                                   \
        ROW(layer_norm_plain, lg_layer_norm(x, LG_SHAPE(3), NULL, NULL), 2, 2, 3)                                      \
        ROW(layer_norm_all, lg_layer_norm(x, LG_SHAPE(5), NULL, NULL), 5)                                              \
        ROW(layer_norm_w, lg_layer_norm(FIXED, LG_SHAPE(2, 2), x, lg_reshape(V(4, 2), LG_SHAPE(2, 2))), 2, 2)          \
        ROW(layer_norm_b, lg_layer_norm(FIXED, LG_SHAPE(2, 2), NULL, x), 2, 2)                                         \
        ROW(rms_norm, lg_rms_norm(x, LG_SHAPE(4), V(4, 0.5), .eps = 1e-3), 3, 4)                                       \
        ROW(rms_norm_w, lg_rms_norm(FIXED, LG_SHAPE(2), x), 2)                                                         \
        ROW(group_norm, lg_group_norm(x, 2, V(4, 0.5), V(4, 2)), 2, 4, 3)                                              \
        ROW(group_norm_plain, lg_group_norm(x, 2, NULL, NULL), 2, 6)                                                   \
        ROW(group_norm_w, lg_group_norm(FIXED, 1, x, V(3, 2), .eps = 0.1), 3)                                          \
        ROW(group_norm_b, lg_group_norm(FIXED, 3, V(3, 0.5), x), 3)                                                    \
        ROW(instance_norm, lg_instance_norm(x, V(3, 0.5), V(3, 2)), 2, 3, 4)                                           \
        ROW(normalize, lg_normalize(x, 1), 2, 3, 2)                                                                    \
        ROW(cosine_similarity, lg_cosine_similarity(x, golden_like(x, LG_SHAPE(2, 3, 2), 2), 1), 2, 3, 2)              \
        ROW(cosine_similarity_wide, lg_cosine_similarity(golden_like(x, LG_SHAPE(4, 3), 0), x, -1, .eps = 2), 3)       \
        ROW(normalize_last, lg_normalize(x, -1, .eps = 3), 4, 3)

GOLDEN_TEST(as_pytorch_computes_it, "norm.txt", golden_input, ROWS);

TEST_CASE(big_rows)
{
        const split splits[] = {{3, 2, 9000, -1}, {300, 20, 17, -1}, {5, 16, 501, 4},
                                {40, 64, 49, 64}, {90, 12, 70, 1},   {900, 96, 1, 8}};
        check_big((split){1, 2, 9001, -1}, LG_F32, 1000, 1e-5);
        check_big((split){1, 2, 9001, -1}, LG_F64, 1000, 1e-10);
        check_big((split){1, 2, 9001, -1}, LG_F16, 0.5, 2e-3);
        check_big((split){1, 2, 9001, -1}, LG_BF16, 0.5, 1.6e-2);
        check_big((split){1, 2, 2001, -1}, LG_F64, 1000, 1e-10);
        check_big((split){2, 2, 5000, 1}, LG_F32, 1000, 1e-5);
        check_big((split){2, 2, 5001, 2}, LG_F16, 0.5, 2e-3);
        check_big((split){30, 6, 3, 2}, LG_F64, 1000, 1e-10);
        check_big((split){40, 1, 1500, -1}, LG_F32, 1000, 1e-5);
        for (int i = 0; i < 6; i++) {
                check_big(splits[i], LG_F32, 0.5, 1e-5);
                check_big(splits[i], LG_F32, 1000, 1e-5);
                check_big(splits[i], LG_F64, 1000, 1e-10);
                check_big(splits[i], LG_F16, 0.5, 2e-3);
                check_big(splits[i], LG_BF16, 0.5, 1.6e-2);
        }
}

/* x in any layout gives what its row-major copy gives. */
TEST_CASE(layouts)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_slice(lg_normal(c, 1, 2, LG_SHAPE(8)), 0, 0, LG_MAX, .step = 2), *x[4];
        other_layouts(lg_normal(c, 1, 2, LG_SHAPE(2, 4, 3, 5)), x);
        for (int i = 0; i < 4; i++) {
                lg_tensor *copy = lg_contiguous(x[i]);
                assert_same_bits(lg_group_norm(x[i], 2, w, w), lg_group_norm(copy, 2, w, w));
                const lg_shape at = lg_shape_of(copy), row = LG_SHAPE(at.size[3]),
                               most = LG_SHAPE(at.size[1], at.size[2], at.size[3]);
                assert_same_bits(lg_layer_norm(x[i], row, NULL, NULL), lg_layer_norm(copy, row, NULL, NULL));
                assert_same_bits(lg_rms_norm(x[i], most, NULL), lg_rms_norm(copy, most, NULL));
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(half_precision)
{
        lg_ctx *c = open_ctx();
        const double limits[] = {2e-3, 1.6e-2};
        for (int d = 0; d < 2; d++) {
                double ref[120];
                lg_tensor *x = lg_normal(c, 1, 2, LG_SHAPE(4, 3, 10), .dtype = d ? LG_BF16 : LG_F16);
                lg_tensor *exact = lg_cast(x, LG_F64);
                read_all(lg_rms_norm(exact, LG_SHAPE(3, 10), NULL, .eps = d ? 0x1p-7 : 0x1p-10), ref, 120);
                assert_values(lg_rms_norm(x, LG_SHAPE(3, 10), NULL), ref, 120, limits[d]);
                read_all(lg_normalize(exact, 1), ref, 120);
                assert_values(lg_normalize(x, 1), ref, 120, limits[d]);
        }
        assert_ok(c);
        lg_close(c);
}

/* A loss that no x reaches: only weights have gradients. */
TEST_CASE(gradients_of_weights_alone)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){-1, 1, -1, 1}), LG_SHAPE(2, 1, 2));
        for (int frozen = 0; frozen < 2; frozen++) {
                lg_tensor *w = lg_ones(c, LG_SHAPE(1), .requires_grad = !frozen);
                lg_tensor *b = lg_zeros(c, LG_SHAPE(1), .requires_grad = true);
                lg_backward(lg_group_norm(x, 1, w, b), .grad = lg_from(c, ((float[]){0, 1, 2, 4}), LG_SHAPE(2, 1, 2)));
                assert_list(lg_grad_of(b), 1e-6, 7);
                if (!frozen)
                        assert_list(lg_grad_of(w), 1e-4, 3);
        }
        lg_tensor *w = lg_ones(c, LG_SHAPE(3), .requires_grad = true), *none = lg_zeros(c, LG_SHAPE(0, 3));
        lg_backward(lg_sum(lg_layer_norm(none, lg_shape_of(w), w, w)));
        assert_list(lg_grad_of(w), 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *flat = lg_full(c, LG_SHAPE(2, 3), 7);
        assert_list(lg_layer_norm(flat, LG_SHAPE(3), NULL, NULL), 0, 0, 0, 0, 0, 0, 0); /* no deviation */
        assert_list(lg_layer_norm(lg_full(c, LG_SHAPE(2, 1), 7), LG_SHAPE(1), NULL, NULL), 0, 0, 0);
        assert_list(lg_rms_norm(lg_from(c, ((float[]){3, 4}), LG_SHAPE(2)), LG_SHAPE(2), NULL, .eps = LG_ZERO), 1e-6,
                    0.8485281374, 1.1313708499);
        const lg_shape empty[] = {LG_SHAPE(0, 4, 2), LG_SHAPE(2, 4, 0), LG_SHAPE(3, 0, 2)};
        for (int i = 0; i < 3; i++) {
                lg_tensor *x = lg_ones(c, empty[i]);
                assert_int_equal(lg_numel(lg_layer_norm(x, LG_SHAPE(empty[i].size[1], empty[i].size[2]), NULL, NULL)),
                                 0);
                if (i == 0)
                        assert_int_equal(lg_numel(lg_group_norm(x, 2, NULL, NULL)), 0);
                assert_int_equal(lg_numel(lg_instance_norm(x, NULL, NULL)), 0);
                assert_int_equal(lg_numel(lg_normalize(x, 1)), 0);
        }
        /* A row of zeros stays, and so does its gradient a number. */
        lg_tensor *zero = lg_zeros(c, LG_SHAPE(1, 2), .requires_grad = true), *y = lg_normalize(zero, 1);
        assert_list(y, 0, 0, 0);
        lg_backward(lg_sum(y));
        assert_list(lg_grad_of(zero), 1, 1e12, 1e12);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(layer_norm_errors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 4, 3)), *w = lg_ones(c, LG_SHAPE(3)), *i = lg_cast(x, LG_I64);
        drop(lg_layer_norm(x, LG_SHAPE_0D, w, w));
        assert_error(c, LG_ERR_ARGUMENT, "a shape without dimensions");
        drop(lg_layer_norm(x, LG_SHAPE(1, 2, 4, 3), w, w));
        assert_error(c, LG_ERR_SHAPE, "; its last dimensions must be (1, 2, 4, 3)");
        drop(lg_layer_norm(x, LG_SHAPE(4), w, w));
        assert_error(c, LG_ERR_SHAPE, "its last dimensions must be (4,)");
        drop(lg_layer_norm(x, LG_SHAPE(-3), w, w));
        assert_error(c, LG_ERR_SHAPE, "-3");
        drop(lg_layer_norm(x, LG_SHAPE(4, 3), w, w));
        assert_error(c, LG_ERR_SHAPE, "it needs shape (4, 3)");
        drop(lg_layer_norm(x, LG_SHAPE(3), w, lg_ones(c, LG_SHAPE(4))));
        assert_error(c, LG_ERR_SHAPE, "b is");
        drop(lg_layer_norm(i, LG_SHAPE(3), w, w));
        assert_error(c, LG_ERR_DTYPE, "layer_norm: x");
        drop(lg_layer_norm(x, LG_SHAPE(3), w, w, .eps = -1));
        assert_error(c, LG_ERR_ARGUMENT, "eps is -1");
        drop(lg_rms_norm(x, LG_SHAPE(5), w));
        assert_error(c, LG_ERR_SHAPE, "rms_norm");
        drop(lg_rms_norm(i, LG_SHAPE(3), w));
        assert_error(c, LG_ERR_DTYPE, "rms_norm");
        drop(lg_group_norm(x, 3, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "3 groups");
        drop(lg_group_norm(x, 0, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "0 groups");
        drop(lg_group_norm(w, 1, NULL, NULL));
        assert_error(c, LG_ERR_SHAPE, "group_norm");
        const lg_shape few[] = {LG_SHAPE(2, 0, 3), LG_SHAPE(2, 0), LG_SHAPE(2, 4, 0),
                                LG_SHAPE(0, 4, 0), LG_SHAPE(1, 4), LG_SHAPE(1, 4, 1)};
        for (int k = 0; k < 6; k++) {
                drop(lg_group_norm(lg_ones(c, few[k]), 4, NULL, NULL));
                assert_error(c, LG_ERR_SHAPE, "it needs channels");
        }
        assert_shape(lg_group_norm(lg_ones(c, LG_SHAPE(2, 4)), 4, NULL, NULL), LG_SHAPE(2, 4));
        drop(lg_group_norm(x, 2, w, NULL));
        assert_error(c, LG_ERR_SHAPE, "it needs shape (4,)");
        drop(lg_instance_norm(lg_ones(c, LG_SHAPE(2, 4)), NULL, NULL));
        assert_error(c, LG_ERR_SHAPE, "instance_norm");
        drop(lg_instance_norm(lg_ones(c, LG_SHAPE(2, 4, 1)), NULL, NULL));
        assert_error(c, LG_ERR_SHAPE, "more than 1 element");
        drop(lg_normalize(x, 3));
        assert_error(c, LG_ERR_ARGUMENT, "normalize");
        drop(lg_normalize(i, 1));
        assert_error(c, LG_ERR_DTYPE, "normalize");
        assert_null(lg_layer_norm(NULL, LG_SHAPE(3), NULL, NULL));
        assert_null(lg_layer_norm(NULL, LG_SHAPE(3), w, w));
        assert_error(c, LG_ERR_ARGUMENT, "layer_norm: x is NULL");
        lg_close(c);
}

/* The root mean square of rows of any length: y and dx against loops in f64. */
TEST_CASE(rms_of_any_length)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {3, 16, 33, 1024, 1025, 9000, 9001};
        for (int k = 0; k < 7; k++) {
                const int64_t n = lengths[k];
                double *x = numbers(n), *g = numbers(n), *y = numbers(n), *slope = numbers(n), sum = 0, product = 0;
                lg_tensor *a = lg_set_requires_grad(lg_detach(lg_normal(c, 3, 1, LG_SHAPE(1, n))), true), *dx;
                lg_tensor *b = lg_normal(c, 0, 1, LG_SHAPE(1, n)), *r = lg_rms_norm(a, LG_SHAPE(n), NULL, .eps = 1e-5);
                lg_grad(LG_LIST(r), LG_LIST(a), .grads = LG_LIST(b), .result = &dx);
                assert_ok(c);
                read_all(a, x, n);
                read_all(b, g, n);
                for (int64_t i = 0; i < n; i++)
                        sum += x[i] * x[i];
                const double root = sqrt(sum / (double)n + 1e-5);
                for (int64_t i = 0; i < n; i++)
                        product += g[i] * x[i] / root;
                for (int64_t i = 0; i < n; i++) {
                        y[i] = x[i] / root;
                        slope[i] = (g[i] - y[i] * product / (double)n) / root;
                }
                assert_values(r, y, n, 1e-5);
                assert_values(dx, slope, n, 1e-5);
                free(x), free(g), free(y), free(slope);
        }
        lg_close(c);
}

/* Rows of any size have the same result as rows about 1, to the rounding of f32, as the variance is no f32 number. */
TEST_CASE(rows_of_any_magnitude)
{
        enum { LENGTH = 24 };
        const double sizes[] = {1e-25, 1e-21, 1e-17, 1e-15, 1e-12, 1, 1e12, 1e15, 1e17, 1e25};
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 3, 1, LG_SHAPE(2, LENGTH));
        for (int i = 0; i < 10; i++) {
                lg_tensor *big = lg_mul_scalar(x, sizes[i]), *wide = lg_cast(big, LG_F64);
                lg_tensor *y = lg_layer_norm(big, LG_SHAPE(LENGTH), NULL, NULL, .eps = 1e-70);
                lg_tensor *rms = lg_rms_norm(big, LG_SHAPE(LENGTH), NULL, .eps = 1e-70);
                double expected[2 * LENGTH];
                read_all(lg_layer_norm(wide, LG_SHAPE(LENGTH), NULL, NULL, .eps = 1e-70), expected, 2 * LENGTH);
                assert_values(y, expected, 2 * LENGTH, 5e-7);
                read_all(lg_rms_norm(wide, LG_SHAPE(LENGTH), NULL, .eps = 1e-70), expected, 2 * LENGTH);
                assert_values(rms, expected, 2 * LENGTH, 5e-7);
        }
        assert_ok(c);
        lg_close(c);
}
