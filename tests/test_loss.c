/* test_loss.c - soft-max, losses and friends against PyTorch's numbers (data/ops.txt, made by data/ops.py). */
#include "golden.h"

static double x_values[12] = {0.5, -1.25, 2.0, 0.1, 1.5, 0.3, -0.7, 2.2, -0.4, 0.9, 0.25, -1.1};

static lg_tensor *target_y(lg_ctx *c)
{
        lg_tensor *y = lg_reshape(lg_arange(c, 0, 12, 1, .dtype = LG_F64), LG_SHAPE(3, 4));
        return lg_sub_scalar(lg_div_scalar(y, 4), 1);
}

static lg_tensor *labels(lg_ctx *c)
{
        return lg_from(c, ((int64_t[]){2, 0, 3}), LG_SHAPE(3), .dtype = LG_I64);
}

static lg_tensor *image_labels(lg_ctx *c)
{
        return lg_from(c, ((int64_t[]){0, 1, 2, 1, 2, 2, 0, 1}), LG_SHAPE(2, 4), .dtype = LG_I64);
}

#define ROW(name, expression)                                                                                          \
        static lg_tensor *run_##name(lg_ctx *c, lg_tensor *x)                                                          \
        {                                                                                                              \
                (void)c;                                                                                               \
                return expression;                                                                                     \
        }
#define ROWS                                                                                                           \
        ROW(softmax_0, lg_softmax(x, 0))                                                                               \
        ROW(softmax_1, lg_softmax(x, 1))                                                                               \
        ROW(log_softmax_1, lg_log_softmax(x, -1))                                                                      \
        ROW(log_softmax_0, lg_log_softmax(x, 0))                                                                       \
        ROW(cross_entropy, lg_cross_entropy(x, labels(c)))                                                             \
        ROW(cross_entropy_sum, lg_cross_entropy(x, labels(c), .reduction = LG_SUM))                                    \
        ROW(cross_entropy_none, lg_cross_entropy(x, labels(c), .reduction = LG_NONE))                                  \
        ROW(cross_entropy_ignore, lg_cross_entropy(x, labels(c), .ignore_zero = true))                                 \
        ROW(cross_entropy_smooth, lg_cross_entropy(x, labels(c), .label_smoothing = 0.1))                              \
        ROW(cross_entropy_smooth_ignore, lg_cross_entropy(x, labels(c), .ignore_index = 3, .label_smoothing = 0.3))    \
        ROW(cross_entropy_image, lg_cross_entropy(x, image_labels(c), .label_smoothing = 0.2))                         \
        ROW(cross_entropy_one, lg_cross_entropy(lg_select(x, 0, 0), lg_select(labels(c), 0, 0)))                       \
        ROW(mse, lg_mse(x, target_y(c)))                                                                               \
        ROW(mse_sum, lg_mse(x, target_y(c), .reduction = LG_SUM))                                                      \
        ROW(mse_none, lg_mse(x, target_y(c), .reduction = LG_NONE))                                                    \
        ROW(var_1, lg_var(x, .dims = LG_DIMS(1)))                                                                      \
        ROW(var_all_biased, lg_var(x, .correction = LG_ZERO))                                                          \
        ROW(amax_0, lg_amax(x, .dims = LG_DIMS(0)))                                                                    \
        ROW(gelu, lg_gelu(x))                                                                                          \
        ROW(gelu_tanh, lg_gelu_tanh(x))                                                                                \
        ROW(softplus, lg_softplus(x, 1.5, 2.0))                                                                        \
        ROW(elu, lg_elu(x, 1.3))                                                                                       \
        ROW(leaky_relu, lg_leaky_relu(x, 0.1))                                                                         \
        ROW(silu, lg_silu(x))                                                                                          \
        ROW(pow, lg_pow_scalar(lg_add_scalar(lg_mul(x, x), 0.5), 2.5))                                                 \
        ROW(linear, lg_linear(x, target_y(c), lg_select(target_y(c), 1, 0)))
ROWS
#undef ROW
#define ROW(name, expression) {#name, {0}, run_##name},
        static const golden rows[] = {ROWS};

static lg_tensor *input_of(lg_ctx *c, const golden *r)
{
        if (strstr(r->name, "image"))
                return lg_reshape(lg_sin(lg_arange(c, 0, 24, 1, .dtype = LG_F64)), LG_SHAPE(2, 3, 4));
        return lg_from(c, x_values, LG_SHAPE(3, 4), .dtype = LG_F64);
}

static void as_pytorch_computes_it(void **state)
{
        (void)state;
        golden_check("ops.txt", input_of, rows, sizeof rows / sizeof *rows);
}

static void big_scores_do_not_overflow(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1000, 1000, -1000, 0, -20000, 10}), LG_SHAPE(2, 3));
        assert_list(lg_softmax(x, 1), 1e-6, 0.5, 0.5, 0, 4.539787e-5, 0, 0.9999546);
        assert_list(lg_log_softmax(x, 1), 1e-5, -M_LN2, -M_LN2, -2000 - M_LN2, -10.0000454, -20010.0000454, -4.54e-5);
        lg_tensor *t = lg_from(c, ((int64_t[]){2, 1}), LG_SHAPE(2), .dtype = LG_I64);
        assert_list(lg_cross_entropy(x, t, .reduction = LG_NONE), 1e-5, 2000 + M_LN2, 20010.0000454);
        lg_tensor *h = lg_softmax(lg_cast(x, LG_F16), 1);
        assert_list(h, 2e-3, 0.5, 0.5, 0, 0, 0, 1);
        assert_ok(c);
        lg_close(c);
}

static void edges(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)),
                  *y = lg_from(c, ((int64_t[]){-100, -100}), LG_SHAPE(2), .dtype = LG_I64);
        assert_true(isnan(lg_item(lg_cross_entropy(x, y)))); /* all ignored */
        assert_near(lg_item(lg_cross_entropy(x, y, .reduction = LG_SUM)), 0, 0);
        lg_cross_entropy(x, lg_ones(c, LG_SHAPE(3), .dtype = LG_I64));
        assert_error(c, LG_ERR_SHAPE, "cross_entropy");
        lg_cross_entropy(x, lg_ones(c, LG_SHAPE(2)));
        assert_error(c, LG_ERR_DTYPE, "cross_entropy");
        lg_cross_entropy(x, y, .label_smoothing = 1.5);
        assert_error(c, LG_ERR_ARGUMENT, "smoothing");
        lg_mse(x, lg_ones(c, LG_SHAPE(3)));
        assert_error(c, LG_ERR_SHAPE, "mse");
        lg_softmax(x, 2);
        assert_error(c, LG_ERR_ARGUMENT, "softmax");
        lg_softmax(lg_ones(c, LG_SHAPE(2), .dtype = LG_I64), 0);
        assert_error(c, LG_ERR_DTYPE, "softmax");
        assert_int_equal(lg_numel(lg_softmax(lg_ones(c, LG_SHAPE(0, 3)), 1)), 0);
        assert_near(lg_item(lg_softmax(lg_scalar(c, 5), 0)), 1, 0);
        lg_close(c);
}

static void half_precision(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F16, LG_BF16};
        const double limits[] = {2e-3, 1.6e-2};
        enum { ROWS_ = 8, CLASSES = 50 };
        for (int d = 0; d < 2; d++) {
                lg_tensor *x = lg_normal(c, 0, 2, LG_SHAPE(ROWS_, CLASSES), .dtype = dtypes[d]);
                lg_tensor *exact = lg_cast(x, LG_F64), *t = lg_arange(c, 0, ROWS_, 1);
                double ref[ROWS_ * CLASSES];
                read_all(lg_softmax(exact, 1), ref, ROWS_ * CLASSES);
                assert_values(lg_softmax(x, 1), ref, ROWS_ * CLASSES, limits[d]);
                read_all(lg_log_softmax(exact, 1), ref, ROWS_ * CLASSES);
                assert_values(lg_log_softmax(x, 1), ref, ROWS_ * CLASSES, limits[d]);
                ref[0] = lg_item(lg_cross_entropy(exact, t));
                assert_values(lg_cross_entropy(x, t), ref, 1, limits[d]);
        }
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(as_pytorch_computes_it),
                cmocka_unit_test(big_scores_do_not_overflow),
                cmocka_unit_test(edges),
                cmocka_unit_test(half_precision),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
