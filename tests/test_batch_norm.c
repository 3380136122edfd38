/* test_batch_norm.c - batch norm against PyTorch's numbers and plain loops. */
#include "norm_loops.h"

/* Both running statistics after three steps; x has a gradient of zero. */
static lg_tensor *running(lg_tensor *x, double momentum)
{
        lg_ctx *c = lg_ctx_of(x);
        lg_tensor *mean = lg_zeros(c, LG_SHAPE(3), .dtype = lg_dtype_of(x));
        lg_tensor *var = lg_ones(c, LG_SHAPE(3), .dtype = lg_dtype_of(x));
        for (int i = 0; i < 3; i++)
                drop(lg_batch_norm(lg_add_scalar(lg_mul_scalar(x, i + 1), i), NULL, NULL, .running_mean = mean,
                                   .running_var = var, .training = true, .momentum = momentum));
        return lg_add(lg_cat(LG_LIST(mean, var), 0), lg_mul_scalar(lg_sum(x), 0));
}

#define V(n, phase) golden_like(x, LG_SHAPE(n), phase)
#define FIXED golden_like(x, LG_SHAPE(2, 3, 2, 2), 1)
#define ROWS(ROW)                                                                                                      \
        ROW(batch_norm, lg_batch_norm(x, V(3, 0.5), V(3, 2), .training = true), 4, 3)                                  \
        ROW(batch_norm_1d, lg_batch_norm(x, V(3, 0.5), V(3, 2), .training = true), 2, 3, 4)                            \
        ROW(batch_norm_2d, lg_batch_norm(x, V(3, 0.5), V(3, 2), .training = true, .eps = 0.1), 2, 3, 2, 2)             \
        ROW(batch_norm_3d, lg_batch_norm(x, NULL, NULL, .training = true), 2, 2, 2, 1, 2)                              \
        ROW(batch_norm_w, lg_batch_norm(FIXED, x, V(3, 2), .training = true), 3)                                       \
        ROW(batch_norm_b, lg_batch_norm(FIXED, V(3, 0.5), x, .training = true), 3)                                     \
        ROW(batch_norm_eval,                                                                                           \
            lg_batch_norm(x, V(3, 0.5), V(3, 2), .running_mean = V(3, 1), .running_var = lg_square(V(3, 0.3))), 2, 3,  \
            2)                                                                                                         \
        ROW(batch_norm_eval_plain,                                                                                     \
            lg_batch_norm(x, NULL, NULL, .running_mean = V(3, 1), .running_var = lg_square(V(3, 0.3)), .eps = 0.1), 4, \
            3)                                                                                                         \
        ROW(running, running(x, 0), 4, 3)                                                                              \
        ROW(running_slow, running(x, 0.01), 2, 3, 2)

GOLDEN_TEST(as_pytorch_computes_it, "norm.txt", golden_input, ROWS);

TEST_CASE(big_batches)
{
        const int64_t channels[] = {1, 3, 8, 63, 64, 700};
        for (int i = 0; i < 6; i++) {
                split s = {.n = 7, .channels = channels[i], .length = 70000 / channels[i] / 7};
                check_big(s, LG_F32, 0.5, 1e-5);
                check_big(s, LG_F32, 1000, 1e-5);
                check_big(s, LG_F64, 1000, 1e-10);
                check_big(s, LG_F16, 0.5, 2e-3);
                check_big(s, LG_BF16, 0.5, 1.6e-2);
        }
        check_big((split){.n = 3000, .channels = 1200, .length = 1}, LG_F32, 1000, 1e-5);
        check_big((split){.n = 90000, .channels = 5, .length = 1}, LG_F32, 1000, 1e-5);
}

/* x in any layout gives what its row-major copy gives. */
TEST_CASE(layouts)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_slice(lg_normal(c, 1, 2, LG_SHAPE(8)), 0, 0, LG_MAX, .step = 2), *x[4];
        other_layouts(lg_normal(c, 1, 2, LG_SHAPE(2, 4, 3, 5)), x);
        for (int i = 0; i < 4; i++) {
                lg_tensor *copy = lg_contiguous(x[i]);
                assert_same_bits(lg_batch_norm(x[i], w, w, .training = true),
                                 lg_batch_norm(copy, w, w, .training = true));
        }
        lg_tensor *y = lg_batch_norm(x[0], w, w, .training = true); /* lies as x does */
        for (int i = 0; i < 4; i++)
                assert_int_equal(lg_stride_of(y, i), lg_stride_of(x[0], i));
        assert_ok(c);
        lg_close(c);
}

/* Half-precision x with f32 weights and running statistics, and with statistics of its own dtype. */
TEST_CASE(mixed_dtypes)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F16, LG_BF16};
        const double limits[] = {2e-3, 1.6e-2};
        for (int d = 0; d < 2; d++) {
                double ref[120], r[3];
                lg_tensor *x = lg_normal(c, 1, 2, LG_SHAPE(4, 3, 10), .dtype = dtypes[d]), *exact = lg_cast(x, LG_F64);
                lg_tensor *w = lg_uniform(c, 0.5, 1.5, LG_SHAPE(3));
                for (int same = 0; same < 2; same++) {
                        lg_dtype of = same ? dtypes[d] : LG_F32;
                        lg_tensor *mean = lg_zeros(c, LG_SHAPE(3), .dtype = of), *m64 = lg_cast(mean, LG_F64);
                        lg_tensor *var = lg_ones(c, LG_SHAPE(3), .dtype = of), *v64 = lg_cast(var, LG_F64);
                        for (int training = 1; training >= 0; training--) {
                                lg_tensor *y = lg_batch_norm(x, w, w, .running_mean = mean, .running_var = var,
                                                             .training = training);
                                read_all(lg_batch_norm(exact, w, w, .running_mean = m64, .running_var = v64,
                                                       .training = training),
                                         ref, 120);
                                assert_values(y, ref, 120, limits[d]);
                                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                        }
                        assert_int_equal(lg_dtype_of(mean), of);
                        read_all(v64, r, 3);
                        assert_values(var, r, 3, same ? limits[d] : 1e-6);
                }
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(running_statistics_change_in_place)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 3, 6}), LG_SHAPE(4, 1));
        lg_tensor *mean = lg_zeros(c, LG_SHAPE(1)), *var = lg_zeros(c, LG_SHAPE(1));
        lg_tensor *p = lg_ones(c, LG_SHAPE(1), .requires_grad = true);
        lg_tensor *product = lg_mul(p, mean); /* saves the mean */
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .training = true, .momentum = 0.5));
        assert_list(mean, 0, 1.5);
        lg_backward(product);
        assert_error(c, LG_ERR_STATE, "changed in place");
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var, .training = true, .momentum = 1));
        assert_list(mean, 0, 3);
        assert_list(var, 1e-6, 14 / 3.0);
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var, .training = true,
                           .momentum = LG_ZERO));
        assert_list(mean, 0, 3);
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var));
        drop(lg_batch_norm(lg_zeros(c, LG_SHAPE(0, 1)), NULL, NULL, .running_mean = mean, .running_var = var,
                           .training = true)); /* nothing to learn from */
        assert_list(mean, 0, 3);
        lg_tensor *strided = lg_slice(lg_zeros(c, LG_SHAPE(4)), 0, 1, LG_MAX, .step = 2);
        drop(lg_batch_norm(lg_reshape(x, LG_SHAPE(2, 2)), NULL, NULL, .running_mean = strided, .training = true,
                           .momentum = 1));
        assert_list(strided, 0, 2, 4);
        assert_ok(c);
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = p, .training = true));
        assert_error(c, LG_ERR_STATE, "running_mean requires grad");
        drop(lg_batch_norm(x, NULL, NULL, .running_var = lg_mul_scalar(p, 2), .training = true));
        assert_error(c, LG_ERR_STATE, "running_var is a result of mul_scalar");
        drop(lg_batch_norm(lg_reshape(x, LG_SHAPE(2, 2)), NULL, NULL, .running_mean = lg_expand(mean, LG_SHAPE(2)),
                           .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "expanded");
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
                lg_backward(lg_batch_norm(x, w, b, .training = true),
                            .grad = lg_from(c, ((float[]){0, 1, 2, 4}), LG_SHAPE(2, 1, 2)));
                assert_list(lg_grad_of(b), 1e-6, 7);
                if (!frozen)
                        assert_list(lg_grad_of(w), 1e-4, 3);
        }
        lg_tensor *w = lg_ones(c, LG_SHAPE(3), .requires_grad = true), *none = lg_zeros(c, LG_SHAPE(0, 3));
        lg_backward(lg_sum(lg_batch_norm(none, w, w, .training = true)));
        assert_list(lg_grad_of(w), 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *flat = lg_full(c, LG_SHAPE(2, 3), 7);
        assert_list(lg_batch_norm(flat, NULL, NULL, .training = true), 0, 0, 0, 0, 0, 0, 0);
        const lg_shape empty[] = {LG_SHAPE(0, 4, 2), LG_SHAPE(2, 4, 0), LG_SHAPE(3, 0, 2)};
        for (int i = 0; i < 3; i++)
                assert_int_equal(lg_numel(lg_batch_norm(lg_ones(c, empty[i]), NULL, NULL, .training = true)), 0);
        /* One NaN or infinity takes its own channel along and no other. */
        lg_tensor *odd = lg_from(c, ((float[]){1, NAN, INFINITY, 3, 2, 5}), LG_SHAPE(2, 3));
        assert_list(lg_batch_norm(odd, NULL, NULL, .training = true), 1e-4, -1, NAN, NAN, 1, NAN, NAN);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(batch_norm_errors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *w = lg_ones(c, LG_SHAPE(3)), *two = lg_ones(c, LG_SHAPE(2));
        drop(lg_batch_norm(lg_slice(x, 0, 0, 1), w, w, .training = true));
        assert_error(c, LG_ERR_SHAPE, "Expected more than 1 value per channel when training");
        drop(lg_batch_norm(w, w, w, .training = true));
        assert_error(c, LG_ERR_SHAPE, "(N, C)");
        drop(lg_batch_norm(x, two, w, .training = true));
        assert_error(c, LG_ERR_SHAPE, "w is f32 (2,)");
        drop(lg_batch_norm(x, w, w, .training = true, .running_var = two));
        assert_error(c, LG_ERR_SHAPE, "running_var");
        drop(lg_batch_norm(x, w, NULL, .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "b is NULL");
        drop(lg_batch_norm(x, NULL, w, .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "w is NULL");
        drop(lg_batch_norm(x, w, w));
        assert_error(c, LG_ERR_ARGUMENT, "running_mean is NULL");
        drop(lg_batch_norm(x, w, w, .running_mean = w));
        assert_error(c, LG_ERR_ARGUMENT, "running_var is NULL");
        drop(lg_batch_norm(x, w, w, .training = true, .eps = -1));
        assert_error(c, LG_ERR_ARGUMENT, "eps");
        drop(lg_batch_norm(lg_cast(x, LG_I64), w, w, .training = true));
        assert_error(c, LG_ERR_DTYPE, "batch_norm: x");
        drop(lg_batch_norm(x, lg_cast(w, LG_I64), w, .training = true));
        assert_error(c, LG_ERR_DTYPE, "batch_norm: w");
        lg_tensor *far = lg_ones(c, LG_SHAPE(3), .device = lg_parse_device(c, "shadow:1"));
        drop(lg_batch_norm(x, w, far, .training = true));
        assert_error(c, LG_ERR_DEVICE, "shadow:1");
        lg_ctx *other = open_ctx();
        drop(lg_batch_norm(x, w, lg_ones(other, LG_SHAPE(3)), .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "another context");
        lg_close(other);
        assert_null(lg_batch_norm(NULL, NULL, NULL));
        lg_close(c);
}
