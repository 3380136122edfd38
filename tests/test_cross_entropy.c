/* test_cross_entropy.c - cross-entropy and the negative log-likelihood against PyTorch's numbers and plain loops. */
#include "golden.h"

static lg_tensor *labels(lg_ctx *c)
{
        return lg_from(c, ((int64_t[]){2, 0, 3}), LG_SHAPE(3), .dtype = LG_I64);
}

static lg_tensor *image_labels(lg_ctx *c)
{
        return lg_from(c, ((int64_t[]){0, 1, 2, 1, 2, 2, 0, 1}), LG_SHAPE(2, 4), .dtype = LG_I64);
}

#define ROWS(ROW)                                                                                                      \
        ROW(cross_entropy, lg_cross_entropy(x, labels(c)), 3, 4)                                                       \
        ROW(cross_entropy_sum, lg_cross_entropy(x, labels(c), .reduction = LG_SUM), 3, 4)                              \
        ROW(cross_entropy_none, lg_cross_entropy(x, labels(c), .reduction = LG_NONE), 3, 4)                            \
        ROW(cross_entropy_ignore, lg_cross_entropy(x, labels(c), .ignore_index = LG_ZERO_INT), 3, 4)                   \
        ROW(cross_entropy_smooth, lg_cross_entropy(x, labels(c), .label_smoothing = 0.1), 3, 4)                        \
        ROW(cross_entropy_smooth_ignore, lg_cross_entropy(x, labels(c), .ignore_index = 3, .label_smoothing = 0.3), 3, \
            4)                                                                                                         \
        ROW(cross_entropy_image, lg_cross_entropy(x, image_labels(c), .label_smoothing = 0.2), 2, 3, 4)                \
        ROW(cross_entropy_one, lg_cross_entropy(lg_select(x, 0, 0), lg_select(labels(c), 0, 0)), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "ops.txt", golden_ops_input, ROWS);

static lg_tensor *weights(lg_ctx *c, const lg_tensor *x)
{
        return lg_cast(lg_from(c, ((double[]){0.5, 1, 2, 0.25}), LG_SHAPE(4), .dtype = LG_F64), lg_dtype_of(x));
}

static lg_tensor *image_weights(lg_ctx *c)
{
        return lg_from(c, ((double[]){0.5, 0, 2}), LG_SHAPE(3), .dtype = LG_F64);
}

#define Y golden_like(x, LG_SHAPE(3, 4), 0.7)
#define Q lg_softmax(Y, 1)
#define IMAGE_Q lg_softmax(golden_like(x, LG_SHAPE(2, 3, 4), 0.7), 1)
#define LP lg_log_softmax(x, 1)
#define W weights(c, x)
#define SOME_ZERO lg_mul(lg_ge_scalar(Q, 0.1), Q)

#define WEIGHTED(ROW)                                                                                                  \
        ROW(nll, lg_nll(LP, labels(c)), 3, 4)                                                                          \
        ROW(nll_sum, lg_nll(LP, labels(c), .reduction = LG_SUM), 3, 4)                                                 \
        ROW(nll_none, lg_nll(LP, labels(c), .reduction = LG_NONE), 3, 4)                                               \
        ROW(nll_ignore, lg_nll(x, labels(c), .ignore_index = LG_ZERO_INT), 3, 4)                                       \
        ROW(nll_weight, lg_nll(x, labels(c), .weight = W), 3, 4)                                                       \
        ROW(nll_weight_ignore, lg_nll(x, labels(c), .reduction = LG_SUM, .weight = W, .ignore_index = 3), 3, 4)        \
        ROW(nll_weight_none, lg_nll(x, labels(c), .reduction = LG_NONE, .weight = W, .ignore_index = 3), 3, 4)         \
        ROW(nll_one, lg_nll(lg_select(x, 0, 0), lg_select(labels(c), 0, 0)), 3, 4)                                     \
        ROW(nll_image, lg_nll(LP, image_labels(c), .weight = image_weights(c)), 2, 3, 4)                               \
        ROW(nll_image_none, lg_nll(LP, image_labels(c), .reduction = LG_NONE), 2, 3, 4)                                \
        ROW(cross_entropy_weight, lg_cross_entropy(x, labels(c), .weight = W), 3, 4)                                   \
        ROW(cross_entropy_weight_smooth, lg_cross_entropy(x, labels(c), .weight = W, .label_smoothing = 0.2), 3, 4)    \
        ROW(cross_entropy_weight_ignore,                                                                               \
            lg_cross_entropy(x, labels(c), .weight = W, .label_smoothing = 0.2, .ignore_index = LG_ZERO_INT), 3, 4)    \
        ROW(cross_entropy_weight_sum, lg_cross_entropy(x, labels(c), .reduction = LG_SUM, .weight = W), 3, 4)          \
        ROW(cross_entropy_weight_none,                                                                                 \
            lg_cross_entropy(x, labels(c), .reduction = LG_NONE, .weight = W, .label_smoothing = 0.2), 3, 4)           \
        ROW(cross_entropy_weight_image, lg_cross_entropy(x, image_labels(c), .weight = image_weights(c)), 2, 3, 4)     \
        ROW(cross_entropy_soft, lg_cross_entropy(x, Q), 3, 4)                                                          \
        ROW(cross_entropy_soft_sum, lg_cross_entropy(x, Q, .reduction = LG_SUM), 3, 4)                                 \
        ROW(cross_entropy_soft_none, lg_cross_entropy(x, SOME_ZERO, .reduction = LG_NONE), 3, 4)                       \
        ROW(cross_entropy_soft_smooth, lg_cross_entropy(x, Q, .label_smoothing = 0.2), 3, 4)                           \
        ROW(cross_entropy_soft_weight, lg_cross_entropy(x, Q, .weight = W), 3, 4)                                      \
        ROW(cross_entropy_soft_weight_none,                                                                            \
            lg_cross_entropy(x, Q, .reduction = LG_NONE, .weight = W, .label_smoothing = 0.2), 3, 4)                   \
        ROW(cross_entropy_soft_image, lg_cross_entropy(x, IMAGE_Q, .weight = image_weights(c)), 2, 3, 4)               \
        ROW(cross_entropy_soft_image_none, lg_cross_entropy(x, IMAGE_Q, .reduction = LG_NONE, .label_smoothing = 0.1), \
            2, 3, 4)                                                                                                   \
        ROW(cross_entropy_soft_one, lg_cross_entropy(lg_select(x, 0, 0), lg_select(Q, 0, 0), .weight = W), 3, 4)       \
        ROW(cross_entropy_soft_of_target, lg_cross_entropy(Y, x, .weight = W, .label_smoothing = 0.2), 3, 4)

GOLDEN_TEST(with_weights_and_soft_targets, "loss.txt", golden_input, WEIGHTED);
#undef Y
#undef Q
#undef IMAGE_Q
#undef LP
#undef W
#undef SOME_ZERO

/* Two equal scores have the loss log 2, whatever they are. */
TEST_CASE(scores_far_from_zero)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F32, LG_F32, LG_F32, LG_F64, LG_F64, LG_BF16, LG_F16};
        const double far[] = {1e4, 1e12, -1e16, 1e30, 1e18, -1e300, 1e30, 6e4};
        for (int i = 0; i < 8; i++) {
                lg_tensor *x = lg_full(c, LG_SHAPE(3, 2), far[i], .dtype = dtypes[i]);
                lg_tensor *t = lg_from(c, ((int64_t[]){1, 0, 1}), LG_SHAPE(3));
                lg_tensor *w = lg_from(c, ((float[]){3, 3}), LG_SHAPE(2)), *q = lg_full(c, LG_SHAPE(3, 2), 0.5);
                for (int k = 0; k < 2; k++) {
                        const double e = k ? 0.1 : LG_ZERO,
                                     limit = dtypes[i] == LG_F64 ? 1e-15 : 3e-7; /* 3 ulp of a GPU's logarithm */
                        assert_near(lg_item(lg_cross_entropy(x, t, .label_smoothing = e)), M_LN2, limit);
                        assert_list(lg_cross_entropy(x, t, .label_smoothing = e, .reduction = LG_NONE), limit, M_LN2,
                                    M_LN2, M_LN2);
                        assert_near(lg_item(lg_cross_entropy(x, t, .label_smoothing = e, .weight = w)), M_LN2, limit);
                        assert_near(lg_item(lg_cross_entropy(x, q, .label_smoothing = e)), M_LN2, 3e-7);
                        assert_near(lg_item(lg_nll(lg_log_softmax(x, 1), t)), M_LN2, 2e-3);
                }
                assert_ok(c);
        }
        lg_close(c);
}

/* A class that cannot be makes no NaN of the others; a target that cannot be is infinitely wrong. */
TEST_CASE(weighted_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *lp = lg_from(c, ((double[]){-INFINITY, -0.5, -1, -INFINITY}), LG_SHAPE(2, 2), .dtype = LG_F64,
                                .requires_grad = true),
                  *g[1];
        lg_tensor *t = lg_from(c, ((int64_t[]){1, 0}), LG_SHAPE(2), .dtype = LG_I64);
        lg_tensor *other = lg_from(c, ((int64_t[]){0, 0}), LG_SHAPE(2), .dtype = LG_I64);
        lg_tensor *none = lg_from(c, ((int64_t[]){-100, -100}), LG_SHAPE(2), .dtype = LG_I64);
        lg_tensor *w = lg_from(c, ((float[]){3, 1}), LG_SHAPE(2), .requires_grad = true);
        assert_near(lg_item(lg_nll(lp, t)), 0.75, 1e-15);
        lg_tensor *y = lg_nll(lp, t, .weight = w);
        assert_near(lg_item(y), (0.5 + 3) / 4, 1e-15);
        lg_backward(y);
        assert_list(lg_grad_of(lp), 1e-15, 0, -0.25, -0.75, 0);
        assert_null(lg_grad_of(w));
        assert_list(lg_nll(lp, other, .reduction = LG_NONE), 0, INFINITY, 1);

        y = lg_nll(lp, none);
        assert_true(isnan(lg_item(y)) && isnan(lg_item(lg_cross_entropy(lp, none, .weight = w))));
        lg_grad(LG_LIST(y), LG_LIST(lp), .result = g);
        assert_list(g[0], 0, 0, 0, 0, 0);
        assert_near(lg_item(lg_nll(lp, none, .reduction = LG_SUM)), 0, 0);
        assert_true(isnan(lg_item(lg_nll(lg_ones(c, LG_SHAPE(0, 2)), lg_ones(c, LG_SHAPE(0), .dtype = LG_I64)))));
        assert_ok(c);

        /* strided scores; a label that is none */
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 6), .dtype = LG_F64), *labels = lg_arange(c, 0, 6, 1);
        labels = lg_remainder(labels, lg_full(c, LG_SHAPE(1), 4, .dtype = LG_I64));
        lg_tensor *even = lg_slice(labels, 0, 0, LG_MAX, .step = 2);
        lg_tensor *part = lg_slice(lg_transpose(x, 0, 1), 0, 0, LG_MAX, .step = 2);
        assert_near(lg_item(lg_nll(lg_log_softmax(part, 1), even)), lg_item(lg_cross_entropy(part, even)), 1e-14);
        assert_near(lg_item(lg_cross_entropy(part, even, .weight = lg_full(c, LG_SHAPE(4), 7))),
                    lg_item(lg_cross_entropy(part, even)), 1e-14);
        assert_ok(c);
        lg_item(lg_nll(lp, lg_add_scalar(t, 1)));
        assert_int_equal(strncmp(lg_error(c), "nll: target holds the class index 2", 35), 0);
        lg_clear_error(c);
        lg_item(lg_cross_entropy(lp, lg_add_scalar(t, 1), .weight = lg_ones(c, LG_SHAPE(lg_size_of(lp, 1)))));
        assert_int_equal(strncmp(lg_error(c), "cross_entropy: target holds the class index 2", 45), 0);
        lg_close(c);
}

/* A target of weights: one-hot ones are class indices, what is -infinite counts only where it is wanted, and mixed
 * dtypes are promoted. */
TEST_CASE(soft_targets)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3, 4), .dtype = LG_F64), *g[2];
        lg_tensor *hot = lg_cast(lg_one_hot(labels(c), 4), LG_F64);
        assert_near(lg_item(lg_cross_entropy(x, hot)), lg_item(lg_cross_entropy(x, labels(c))), 1e-15);
        assert_near(lg_item(lg_cross_entropy(x, hot, .label_smoothing = 0.3)),
                    lg_item(lg_cross_entropy(x, labels(c), .label_smoothing = 0.3)), 1e-15);
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        const double limits[] = {1e-6, 1e-14, 2e-3, 1.6e-2};
        for (int i = 0; i < 4; i++)
                for (int k = 0; k < 4; k++) {
                        lg_tensor *y = lg_cross_entropy(lg_cast(x, dtypes[i]), lg_cast(hot, dtypes[k]));
                        assert_int_equal(lg_dtype_of(y), dtypes[i] == LG_F64 || dtypes[k] == LG_F64 ? LG_F64 : LG_F32);
                        assert_near(lg_item(y), lg_item(lg_cross_entropy(lg_cast(lg_cast(x, dtypes[i]), LG_F64), hot)),
                                    4 * fmax(limits[i], limits[k]));
                }

        /* a class that cannot be */
        lg_tensor *far = lg_from(c, ((double[]){-INFINITY, 0, 0}), LG_SHAPE(3), .requires_grad = true);
        lg_tensor *q = lg_from(c, ((double[]){0, 0.25, 0.75}), LG_SHAPE(3), .requires_grad = true);
        lg_tensor *y = lg_cross_entropy(far, q);
        assert_near(lg_item(y), M_LN2, 1e-15);
        lg_grad(LG_LIST(y), LG_LIST(far, q), .result = g);
        assert_list(g[0], 1e-15, 0, 0.25, -0.25);
        assert_list(g[1], 1e-15, 0, M_LN2, M_LN2);
        assert_list(lg_cross_entropy(far, lg_full_like(q, 1.0 / 3), .reduction = LG_SUM), 0, INFINITY);

        /* weight has no gradient; of nothing there is no mean */
        lg_tensor *w = lg_ones(c, LG_SHAPE(3), .requires_grad = true);
        lg_backward(lg_cross_entropy(lg_detach(q), q, .weight = w));
        assert_null(lg_grad_of(w));
        assert_non_null(lg_grad_of(q));
        lg_tensor *empty = lg_zeros(c, LG_SHAPE(0, 3), .requires_grad = true);
        assert_true(isnan(lg_item(lg_cross_entropy(empty, empty))));
        assert_list(lg_cross_entropy(empty, empty, .reduction = LG_SUM), 0, 0);
        assert_int_equal(lg_numel(lg_cross_entropy(empty, empty, .reduction = LG_NONE)), 0);
        lg_backward(lg_cross_entropy(empty, empty));
        assert_int_equal(lg_numel(lg_grad_of(empty)), 0);
        assert_ok(c);

        /* refused */
        const char *const texts[] = {"cross_entropy: ignore_index is for class indices, but target is f64 (3, 4)",
                                     "cross_entropy: label_smoothing is 2, not in [0, 1]",
                                     "cross_entropy: reduction is LG_BATCH_MEAN, which only kl_div has"};
        assert_null(lg_cross_entropy(x, hot, .ignore_index = LG_ZERO_INT));
        assert_error(c, LG_ERR_ARGUMENT, texts[0]);
        assert_null(lg_cross_entropy(x, hot, .ignore_index = 2));
        assert_error(c, LG_ERR_ARGUMENT, texts[0]);
        assert_null(lg_cross_entropy(x, hot, .label_smoothing = 2));
        assert_error(c, LG_ERR_ARGUMENT, texts[1]);
        assert_null(lg_cross_entropy(x, hot, .reduction = LG_BATCH_MEAN));
        assert_error(c, LG_ERR_ARGUMENT, texts[2]);
        assert_null(lg_cross_entropy(x, hot, .weight = lg_ones(c, LG_SHAPE(3))));
        assert_error(c, LG_ERR_SHAPE, "cross_entropy: weight is f32 (3,)");
        assert_null(lg_cross_entropy(x, lg_transpose(hot, 0, 1)));
        assert_error(c, LG_ERR_DTYPE, "probabilities are floats of x's shape");
        assert_null(lg_cross_entropy(lg_cast(x, LG_I64), hot));
        assert_error(c, LG_ERR_DTYPE, "cross_entropy: x is i64");
        assert_null(lg_cross_entropy(x, lg_cast(hot, LG_I64)));
        assert_error(c, LG_ERR_SHAPE, "(N, C, ...) and (N, ...)");
        lg_tensor *narrow = lg_zeros(c, LG_SHAPE(3, 0));
        assert_null(lg_cross_entropy(narrow, narrow));
        assert_error(c, LG_ERR_SHAPE, "it has no classes");
        assert_null(lg_cross_entropy(lg_scalar(c, 1), lg_scalar(c, 1)));
        assert_error(c, LG_ERR_DTYPE, "cross_entropy: target is f32 ()");
        assert_null(lg_nll(x, hot));
        assert_error(c, LG_ERR_DTYPE, "nll: target is f64");
        lg_close(c);
}

/* In 16 bits neither the count nor the sum of many rows would have a place. */
TEST_CASE(many_rows_of_half)
{
        lg_ctx *c = open_ctx();
        enum { MANY = 70000 };
        const lg_dtype dtypes[] = {LG_F16, LG_BF16};
        for (int d = 0; d < 2; d++) {
                lg_tensor *lp = lg_full(c, LG_SHAPE(MANY, 2), -2.5, .dtype = dtypes[d]);
                lg_tensor *t = lg_zeros(c, LG_SHAPE(MANY), .dtype = LG_I64),
                          *w = lg_ones(c, LG_SHAPE(2), .dtype = dtypes[d]);
                lg_tensor *y = lg_nll(lp, t, .weight = w);
                assert_int_equal(lg_dtype_of(y), LG_F32);
                assert_near(lg_item(y), 2.5, 1e-6);
                assert_near(lg_item(lg_cross_entropy(lp, t, .weight = w, .label_smoothing = 0.5)), M_LN2, 2e-3);
                assert_near(lg_item(lg_l1(lp, lg_mul_scalar(lp, 0))), 2.5, 1e-6);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)),
                  *y = lg_from(c, ((int64_t[]){-100, -100}), LG_SHAPE(2), .dtype = LG_I64);
        assert_true(isnan(lg_item(lg_cross_entropy(x, y)))); /* all ignored */
        assert_near(lg_item(lg_cross_entropy(x, y, .reduction = LG_SUM)), 0, 0);
        assert_fails(c, lg_cross_entropy(x, lg_ones(c, LG_SHAPE(3), .dtype = LG_I64)), LG_ERR_SHAPE, "cross_entropy");
        assert_fails(c, lg_cross_entropy(x, lg_ones(c, LG_SHAPE(2))), LG_ERR_DTYPE, "cross_entropy");
        assert_fails(c, lg_cross_entropy(x, y, .label_smoothing = 1.5), LG_ERR_ARGUMENT, "smoothing");
        lg_close(c);
}

TEST_CASE(errors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *i = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_I64);
        lg_tensor *t = lg_ones(c, LG_SHAPE(2), .dtype = LG_I64);
        assert_fails(c, lg_nll(x, NULL), LG_ERR_ARGUMENT, "nll: target is NULL");
        assert_fails(c, lg_nll(i, t), LG_ERR_DTYPE, "nll: x is i64");
        assert_fails(c, lg_nll(t, x), LG_ERR_DTYPE, "nll: x is i64 (2,)");
        assert_fails(c, lg_cross_entropy(i, x), LG_ERR_DTYPE, "the order is (x, target");
        assert_fails(c, lg_nll(x, x), LG_ERR_DTYPE, "nll: target is f32");
        assert_fails(c, lg_nll(x, i), LG_ERR_SHAPE, "nll: x is");
        assert_fails(c, lg_nll(x, t, .weight = lg_ones(c, LG_SHAPE(2))), LG_ERR_SHAPE, "nll: weight is");
        assert_fails(c, lg_cross_entropy(x, t, .weight = lg_ones(c, LG_SHAPE(3, 1))), LG_ERR_SHAPE, "(3)");
        assert_fails(c, lg_cross_entropy(x, t, .weight = lg_ones(c, LG_SHAPE(3), .dtype = LG_I64)), LG_ERR_DTYPE,
                     "cross_entropy: weight is i64");
        assert_fails(c, lg_cross_entropy(x, t, .reduction = LG_BATCH_MEAN), LG_ERR_ARGUMENT, "only kl_div");
        assert_fails(c, lg_nll(x, t, .reduction = LG_BATCH_MEAN), LG_ERR_ARGUMENT, "nll: reduction");
        lg_close(c);
}

/* Cross-entropy over classes of any number against loops in f64; row 1 is ignored. */
static void check_classes(lg_ctx *c, lg_dtype dtype, int64_t n, double smoothing, lg_reduction reduction, double limit)
{
        enum { COUNT = 3 };
        lg_scope scope = lg_scope_begin(c);
        const int64_t label[COUNT] = {n - 1, -100, 0};
        lg_tensor *x = lg_set_requires_grad(lg_detach(lg_normal(c, 0, 2, LG_SHAPE(COUNT, n), .dtype = dtype)), true),
                  *dx;
        lg_tensor *t = lg_from(c, label, LG_SHAPE(COUNT), .dtype = LG_I64);
        double *v = calloc((size_t)(COUNT * n * 2), sizeof *v), *slope = v + COUNT * n, loss[COUNT] = {0}, total = 0;
        const double weight = reduction == LG_MEAN ? 0.5 : 1;
        read_all(x, v, COUNT * n);
        for (int r = 0; r < COUNT; r += 2) {
                double sum = 0;
                for (int64_t i = 0; i < n; i++)
                        sum += exp(v[r * n + i]);
                for (int64_t i = 0; i < n; i++) {
                        double q = smoothing / (double)n + (i == label[r] ? 1 - smoothing : 0);
                        loss[r] -= q * (v[r * n + i] - log(sum));
                        slope[r * n + i] = weight * (exp(v[r * n + i]) / sum - q);
                }
                total += weight * loss[r];
        }
        lg_tensor *y = lg_cross_entropy(x, t, .label_smoothing = smoothing, .reduction = reduction);
        assert_values(y, reduction == LG_NONE ? loss : &total, reduction == LG_NONE ? COUNT : 1, limit);
        lg_grad(LG_LIST((reduction == LG_NONE ? lg_sum(y) : y)), LG_LIST(x), .result = &dx);
        assert_ok(c);
        assert_values(dx, slope, COUNT * n, limit);
        free(v);
        lg_scope_end(c, scope);
}

TEST_CASE(classes_of_any_number)
{
        lg_ctx *c = open_ctx();
        const int64_t classes[] = {2, 10, 40, 1001, 1024, 8192, 9001, 9008};
        const lg_reduction reductions[] = {LG_MEAN, LG_SUM, LG_NONE};
        for (int i = 0; i < 8; i++)
                for (int r = 0; r < 3; r++) {
                        check_classes(c, LG_F32, classes[i], r * 0.1, reductions[r], 3e-6);
                        check_classes(c, LG_F64, classes[i], r * 0.1, reductions[r], 1e-13);
                        check_classes(c, LG_F16, classes[i], r * 0.1, reductions[r], 4e-3);
                }
        lg_close(c);
}
