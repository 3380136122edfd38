/* test_loss.c - soft-max, losses and friends against PyTorch's numbers (data/ops.txt and loss.txt, made by the scripts
 * beside them). */
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

#define ROW(name, expression) GOLDEN_RUN(name, expression)
#define ROWS                                                                                                           \
        ROW(softmax_0, lg_softmax(x, 0))                                                                               \
        ROW(softmax_1, lg_softmax(x, 1))                                                                               \
        ROW(log_softmax_1, lg_log_softmax(x, -1))                                                                      \
        ROW(log_softmax_0, lg_log_softmax(x, 0))                                                                       \
        ROW(glu_1, lg_glu(x, -1))                                                                                      \
        ROW(glu_image, lg_glu(x, 2))                                                                                   \
        ROW(cross_entropy, lg_cross_entropy(x, labels(c)))                                                             \
        ROW(cross_entropy_sum, lg_cross_entropy(x, labels(c), .reduction = LG_SUM))                                    \
        ROW(cross_entropy_none, lg_cross_entropy(x, labels(c), .reduction = LG_NONE))                                  \
        ROW(cross_entropy_ignore, lg_cross_entropy(x, labels(c), .ignore_index = LG_ZERO_INT))                         \
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
#define ROW(name, expression) {#name, {.ndim = 0}, run_##name},
        static const golden rows[] = {ROWS};

static lg_tensor *input_of(lg_ctx *c, const golden *r)
{
        if (strstr(r->name, "image"))
                return lg_reshape(lg_sin(lg_arange(c, 0, 24, 1, .dtype = LG_F64)), LG_SHAPE(2, 3, 4));
        return lg_from(c, x_values, LG_SHAPE(3, 4), .dtype = LG_F64);
}

TEST_CASE(as_pytorch_computes_it)
{
        golden_check("ops.txt", input_of, rows, sizeof rows / sizeof *rows);
}

/* ---- loss.txt ---- */

static lg_tensor *like(lg_tensor *t, const lg_tensor *x)
{
        return lg_cast(t, lg_dtype_of(x));
}

static lg_tensor *weights(lg_ctx *c, const lg_tensor *x)
{
        return like(lg_from(c, ((double[]){0.5, 1, 2, 0.25}), LG_SHAPE(4), .dtype = LG_F64), x);
}

static lg_tensor *image_weights(lg_ctx *c)
{
        return lg_from(c, ((double[]){0.5, 0, 2}), LG_SHAPE(3), .dtype = LG_F64);
}

#define Y like(golden_tensor(c, LG_SHAPE(3, 4), 0.7), x)
#define Q lg_softmax(Y, 1)
#define IMAGE_Q lg_softmax(like(golden_tensor(c, LG_SHAPE(2, 3, 4), 0.7), x), 1)
#define LP lg_log_softmax(x, 1)
#define W weights(c, x)

static lg_tensor *some_zero(lg_ctx *c, const lg_tensor *x)
{
        lg_tensor *q = Q;
        return lg_mul(lg_ge_scalar(q, 0.1), q);
}

#define LOSSES                                                                                                         \
        ROW(nll, lg_nll(LP, labels(c)))                                                                                \
        ROW(nll_sum, lg_nll(LP, labels(c), .reduction = LG_SUM))                                                       \
        ROW(nll_none, lg_nll(LP, labels(c), .reduction = LG_NONE))                                                     \
        ROW(nll_ignore, lg_nll(x, labels(c), .ignore_index = LG_ZERO_INT))                                             \
        ROW(nll_weight, lg_nll(x, labels(c), .weight = W))                                                             \
        ROW(nll_weight_ignore, lg_nll(x, labels(c), .reduction = LG_SUM, .weight = W, .ignore_index = 3))              \
        ROW(nll_weight_none, lg_nll(x, labels(c), .reduction = LG_NONE, .weight = W, .ignore_index = 3))               \
        ROW(nll_one, lg_nll(lg_select(x, 0, 0), lg_select(labels(c), 0, 0)))                                           \
        ROW(nll_image, lg_nll(LP, image_labels(c), .weight = image_weights(c)))                                        \
        ROW(nll_image_none, lg_nll(LP, image_labels(c), .reduction = LG_NONE))                                         \
        ROW(cross_entropy_weight, lg_cross_entropy(x, labels(c), .weight = W))                                         \
        ROW(cross_entropy_weight_smooth, lg_cross_entropy(x, labels(c), .weight = W, .label_smoothing = 0.2))          \
        ROW(cross_entropy_weight_ignore,                                                                               \
            lg_cross_entropy(x, labels(c), .weight = W, .label_smoothing = 0.2, .ignore_index = LG_ZERO_INT))          \
        ROW(cross_entropy_weight_sum, lg_cross_entropy(x, labels(c), .reduction = LG_SUM, .weight = W))                \
        ROW(cross_entropy_weight_none,                                                                                 \
            lg_cross_entropy(x, labels(c), .reduction = LG_NONE, .weight = W, .label_smoothing = 0.2))                 \
        ROW(cross_entropy_weight_image, lg_cross_entropy(x, image_labels(c), .weight = image_weights(c)))              \
        ROW(cross_entropy_soft, lg_cross_entropy(x, Q))                                                                \
        ROW(cross_entropy_soft_sum, lg_cross_entropy(x, Q, .reduction = LG_SUM))                                       \
        ROW(cross_entropy_soft_none, lg_cross_entropy(x, some_zero(c, x), .reduction = LG_NONE))                       \
        ROW(cross_entropy_soft_smooth, lg_cross_entropy(x, Q, .label_smoothing = 0.2))                                 \
        ROW(cross_entropy_soft_weight, lg_cross_entropy(x, Q, .weight = W))                                            \
        ROW(cross_entropy_soft_weight_none,                                                                            \
            lg_cross_entropy(x, Q, .reduction = LG_NONE, .weight = W, .label_smoothing = 0.2))                         \
        ROW(cross_entropy_soft_image, lg_cross_entropy(x, IMAGE_Q, .weight = image_weights(c)))                        \
        ROW(cross_entropy_soft_image_none, lg_cross_entropy(x, IMAGE_Q, .reduction = LG_NONE, .label_smoothing = 0.1)) \
        ROW(cross_entropy_soft_one, lg_cross_entropy(lg_select(x, 0, 0), lg_select(Q, 0, 0), .weight = W))             \
        ROW(cross_entropy_soft_of_target, lg_cross_entropy(Y, x, .weight = W, .label_smoothing = 0.2))                 \
        ROW(l1, lg_l1(x, Y))                                                                                           \
        ROW(l1_sum, lg_l1(x, Y, .reduction = LG_SUM))                                                                  \
        ROW(l1_none, lg_l1(x, Y, .reduction = LG_NONE))                                                                \
        ROW(huber, lg_huber(x, Y))                                                                                     \
        ROW(huber_delta, lg_huber(x, Y, .reduction = LG_NONE, .delta = 0.6))                                           \
        ROW(smooth_l1, lg_smooth_l1(x, Y))                                                                             \
        ROW(smooth_l1_beta, lg_smooth_l1(x, Y, .reduction = LG_NONE, .beta = 0.6))                                     \
        ROW(smooth_l1_zero, lg_smooth_l1(x, Y, .reduction = LG_SUM, .beta = LG_ZERO))                                  \
        ROW(bce, lg_bce(lg_sigmoid(x), Q))                                                                             \
        ROW(bce_none, lg_bce(lg_sigmoid(x), Q, .reduction = LG_NONE))                                                  \
        ROW(bce_with_logits, lg_bce_with_logits(lg_mul_scalar(x, 3), Q))                                               \
        ROW(bce_with_logits_weight, lg_bce_with_logits(lg_mul_scalar(x, 3), Q, .reduction = LG_NONE, .pos_weight = W)) \
        ROW(kl_div, lg_kl_div(LP, some_zero(c, x)))                                                                    \
        ROW(kl_div_none, lg_kl_div(LP, some_zero(c, x), .reduction = LG_NONE))                                         \
        ROW(kl_div_batch, lg_kl_div(LP, some_zero(c, x), .reduction = LG_BATCH_MEAN))                                  \
        ROW(kl_div_log, lg_kl_div(LP, lg_log(Q), .reduction = LG_SUM, .log_target = true))                             \
        ROW(kl_div_of_target, lg_kl_div(lg_log_softmax(Y, 1), lg_softmax(x, 1), .reduction = LG_SUM))
#undef ROW
#define ROW(name, expression)                                                                                          \
        static lg_tensor *loss_##name(lg_ctx *c, lg_tensor *x)                                                         \
        {                                                                                                              \
                return expression;                                                                                     \
        }
LOSSES
#undef ROW
#define ROW(name, expression) {#name, {.ndim = 0}, loss_##name},
static const golden losses[] = {LOSSES};
#undef Y
#undef Q
#undef IMAGE_Q
#undef LP
#undef W

static lg_tensor *loss_input(lg_ctx *c, const golden *r)
{
        return golden_tensor(c, strstr(r->name, "image") ? LG_SHAPE(2, 3, 4) : LG_SHAPE(3, 4), 0);
}

TEST_CASE(losses_as_pytorch_computes_them)
{
        golden_check("loss.txt", loss_input, losses, sizeof losses / sizeof *losses);
}

/* Of scores and probabilities at the ends there is a loss and a gradient; of nothing, NaN and 0. */
TEST_CASE(losses_far_out)
{
        lg_ctx *c = open_ctx();
        lg_tensor *g[1], *x = lg_from(c, ((float[]){-1000, 1000, -20, 20, 0}), LG_SHAPE(5), .requires_grad = true);
        lg_tensor *zero = lg_zeros(c, LG_SHAPE(5)), *one = lg_ones(c, LG_SHAPE(5));
        lg_tensor *y = lg_bce_with_logits(x, zero, .reduction = LG_NONE);
        assert_list(y, 1e-7, 0, 1000, 2.0611536e-9, 20, M_LN2);
        assert_near(lg_item(lg_select(y, 0, 2)), 2.0611536e-9, 1e-14); /* not lost in a difference of large numbers */
        lg_grad(LG_LIST(lg_sum(y)), LG_LIST(x), .result = g);
        assert_list(g[0], 1e-6, 0, 1, 0, 1, 0.5);
        y = lg_bce_with_logits(x, one, .reduction = LG_NONE);
        assert_list(y, 1e-7, 1000, 0, 20, 0, M_LN2);
        lg_grad(LG_LIST(lg_sum(y)), LG_LIST(x), .result = g);
        assert_list(g[0], 1e-6, -1, 0, -1, 0, -0.5);

        lg_tensor *p = lg_from(c, ((float[]){0, 1, 0.25f, NAN, -0.5f}), LG_SHAPE(5), .requires_grad = true);
        y = lg_bce(p, one, .reduction = LG_NONE);
        assert_list(y, 1e-6, 100, 0, log(4), NAN, NAN);
        lg_grad(LG_LIST(lg_sum(lg_slice(y, 0, 0, 3))), LG_LIST(p), .result = g);
        assert_list(lg_slice(g[0], 0, 0, 3), 1e-6, 0, -1, -4);
        assert_list(lg_slice(lg_bce(p, zero, .reduction = LG_NONE), 0, 0, 3), 1e-6, 0, 100, -log(0.75));

        lg_tensor *d = lg_from(c, ((float[]){INFINITY, -1e30f, 1, -1, 0}), LG_SHAPE(5), .requires_grad = true);
        y = lg_huber(d, zero, .reduction = LG_NONE);
        assert_list(y, 1e-6, INFINITY, 1e30f, 0.5, 0.5, 0);
        lg_grad(LG_LIST(lg_sum(lg_huber(d, zero, .reduction = LG_NONE, .delta = 2))), LG_LIST(d), .result = g);
        assert_list(g[0], 1e-6, 2, -2, 1, -1, 0);
        assert_ok(c);
        lg_close(c);
}

/* Two equal scores have the loss log 2, whatever they are. */
TEST_CASE(scores_far_from_zero)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F32, LG_F32, LG_F32, LG_F64, LG_F64, LG_BF16, LG_F16};
        const double far[] = {1e4, 1e12, -1e16, 1e30, 1e18, -1e300, 1e30, 6e4};
        for (int i = 0; i < 8; i++) {
                lg_tensor *x = lg_full(c, far[i], LG_SHAPE(3, 2), .dtype = dtypes[i]);
                lg_tensor *t = lg_from(c, ((int64_t[]){1, 0, 1}), LG_SHAPE(3));
                lg_tensor *w = lg_from(c, ((float[]){3, 3}), LG_SHAPE(2)), *q = lg_full(c, 0.5, LG_SHAPE(3, 2));
                for (int k = 0; k < 2; k++) {
                        const double e = k ? 0.1 : LG_ZERO, limit = dtypes[i] == LG_F64 ? 1e-15 : 1e-7;
                        assert_near(lg_item(lg_cross_entropy(x, t, .label_smoothing = e)), M_LN2, limit);
                        assert_list(lg_cross_entropy(x, t, .label_smoothing = e, .reduction = LG_NONE), limit, M_LN2,
                                    M_LN2, M_LN2);
                        assert_near(lg_item(lg_cross_entropy(x, t, .label_smoothing = e, .weight = w)), M_LN2, limit);
                        assert_near(lg_item(lg_cross_entropy(x, q, .label_smoothing = e)), M_LN2, 1e-7);
                        assert_near(lg_item(lg_nll(lg_log_softmax(x, 1), t)), M_LN2, 2e-3);
                }
                assert_ok(c);
        }
        lg_close(c);
}

/* A score that is infinite has no loss where it is right, and an infinite one where it is not. */
TEST_CASE(infinite_scores)
{
        lg_ctx *c = open_ctx();
        const float i = INFINITY;
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_cast(lg_from(c, ((float[]){i, -i, i, -i, i, NAN}), LG_SHAPE(6)), dtypes[d]), *g[2];
                lg_tensor *t = lg_from(c, ((float[]){1, 0, 0, 1, 0.5, 1}), LG_SHAPE(6)),
                          *w = lg_full(c, 3, LG_SHAPE(1));
                x = lg_requires_grad(lg_detach(x), true);
                lg_tensor *y = lg_bce_with_logits(x, t, .reduction = LG_NONE);
                assert_list(y, 0, 0, 0, INFINITY, INFINITY, INFINITY, NAN);
                assert_list(lg_bce_with_logits(x, t, .reduction = LG_NONE, .pos_weight = w), 0, 0, 0, INFINITY,
                            INFINITY, INFINITY, NAN);
                for (int create = 0; create < 2; create++) {
                        y = lg_bce_with_logits(x, t, .reduction = LG_SUM);
                        lg_grad(LG_LIST(y), LG_LIST(x), .create_graph = create, .result = g);
                        assert_list(g[0], 0, 0, 0, 1, -1, 0.5, NAN);
                }
                lg_tensor *lp = lg_cast(lg_from(c, ((float[]){-i, -1, -i}), LG_SHAPE(3)), dtypes[d]);
                lg_tensor *p = lg_from(c, ((float[]){0, 0, 1}), LG_SHAPE(3));
                lp = lg_requires_grad(lg_detach(lp), true);
                p = lg_requires_grad(lg_detach(lg_log(p)), true);
                y = lg_kl_div(lp, lg_exp(p), .reduction = LG_NONE);
                assert_list(y, 0, 0, 0, INFINITY);
                y = lg_kl_div(lp, p, .reduction = LG_NONE, .log_target = true);
                assert_list(y, 0, 0, 0, INFINITY);
                lg_grad(LG_LIST(lg_sum(lg_slice(y, 0, 0, 2))), LG_LIST(lp, p), .result = g);
                assert_list(g[0], 0, 0, 0, 0);
                assert_list(lg_slice(g[1], 0, 0, 2), 0, 0, 0);
                assert_ok(c);
        }
        /* Targets get the slopes of the logarithms, also where they are 0 and 1. */
        lg_tensor *t = lg_from(c, ((double[]){0, 1}), LG_SHAPE(2), .requires_grad = true), *g[1];
        lg_tensor *x = lg_from(c, ((double[]){2, -3}), LG_SHAPE(2));
        lg_grad(LG_LIST(lg_bce_with_logits(x, t, .reduction = LG_SUM)), LG_LIST(t), .result = g);
        assert_list(g[0], 1e-14, -2, 3);
        lg_close(c);
}

/* Losses of 0 are not -0. */
TEST_CASE(no_loss_is_positive)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){-1, -2}), LG_SHAPE(1, 2)), *one = lg_ones(c, LG_SHAPE(1, 1));
        lg_tensor *none = lg_full(c, -100, LG_SHAPE(1), .dtype = LG_I64),
                  *first = lg_zeros(c, LG_SHAPE(1), .dtype = LG_I64);
        lg_tensor *w = lg_ones(c, LG_SHAPE(2)), *zero = lg_zeros(c, LG_SHAPE(1, 2));
        for (int r = 0; r < 2; r++) {
                const lg_reduction reduction = r ? LG_SUM : LG_NONE;
                lg_tensor *const losses[] = {
                        lg_nll(x, none, .reduction = reduction),
                        lg_nll(zero, first, .reduction = reduction),
                        lg_cross_entropy(x, none, .reduction = reduction),
                        lg_cross_entropy(x, none, .reduction = reduction, .weight = w),
                        lg_cross_entropy(x, zero, .reduction = reduction),
                        lg_cross_entropy(one, first, .reduction = reduction),
                        lg_cross_entropy(one, first, .reduction = reduction, .label_smoothing = 0.1),
                        lg_cross_entropy(one, one, .reduction = reduction),
                        lg_bce(one, one, .reduction = reduction),
                        lg_bce_with_logits(lg_full(c, INFINITY, LG_SHAPE(1, 1)), one, .reduction = reduction),
                        lg_kl_div(x, zero, .reduction = reduction),
                        lg_kl_div(x, x, .reduction = reduction, .log_target = true),
                };
                for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
                        double v[2];
                        for (int64_t k = read_all(losses[i], v, 2); k-- > 0;)
                                if (v[k] != 0 || signbit(v[k]))
                                        fail_msg("loss %zu is %g, not 0", i, v[k]);
                }
        }
        assert_ok(c);
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
        labels = lg_remainder(labels, lg_full(c, 4, LG_SHAPE(1), .dtype = LG_I64));
        lg_tensor *even = lg_slice(labels, 0, 0, LG_MAX, .step = 2);
        lg_tensor *part = lg_slice(lg_transpose(x, 0, 1), 0, 0, LG_MAX, .step = 2);
        assert_near(lg_item(lg_nll(lg_log_softmax(part, 1), even)), lg_item(lg_cross_entropy(part, even)), 1e-14);
        assert_near(lg_item(lg_cross_entropy(part, even, .weight = lg_full(c, 7, LG_SHAPE(4)))),
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
                lg_tensor *lp = lg_full(c, -2.5, LG_SHAPE(MANY, 2), .dtype = dtypes[d]);
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

TEST_CASE(errors_of_losses)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *y = lg_ones(c, LG_SHAPE(3)),
                  *i = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_I64);
        lg_tensor *t = lg_ones(c, LG_SHAPE(2), .dtype = LG_I64);
        drop(lg_nll(x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "nll: target is NULL");
        drop(lg_nll(i, t));
        assert_error(c, LG_ERR_DTYPE, "nll: x is i64");
        drop(lg_nll(x, x));
        assert_error(c, LG_ERR_DTYPE, "nll: target is f32");
        drop(lg_nll(x, i));
        assert_error(c, LG_ERR_SHAPE, "nll: x is");
        drop(lg_nll(x, t, .weight = lg_ones(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_SHAPE, "nll: weight is");
        drop(lg_cross_entropy(x, t, .weight = lg_ones(c, LG_SHAPE(3, 1))));
        assert_error(c, LG_ERR_SHAPE, "(3)");
        drop(lg_cross_entropy(x, t, .weight = lg_ones(c, LG_SHAPE(3), .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "cross_entropy: weight is i64");
        drop(lg_cross_entropy(x, t, .reduction = LG_BATCH_MEAN));
        assert_error(c, LG_ERR_ARGUMENT, "only kl_div");
        drop(lg_nll(x, t, .reduction = LG_BATCH_MEAN));
        assert_error(c, LG_ERR_ARGUMENT, "nll: reduction");
        drop(lg_mse(x, x, .reduction = LG_BATCH_MEAN));
        assert_error(c, LG_ERR_ARGUMENT, "mse: reduction");
        drop(lg_l1(x, x, .reduction = (lg_reduction)7));
        assert_error(c, LG_ERR_ARGUMENT, "l1: 7 is no reduction");
        drop(lg_kl_div(x, x, .reduction = (lg_reduction)7));
        assert_error(c, LG_ERR_ARGUMENT, "kl_div: 7");
        drop(lg_kl_div(lg_scalar(c, 1), lg_scalar(c, 1), .reduction = LG_BATCH_MEAN));
        assert_error(c, LG_ERR_SHAPE, "LG_BATCH_MEAN");
        drop(lg_l1(x, y));
        assert_error(c, LG_ERR_SHAPE, "l1: x is");
        drop(lg_bce(i, x));
        assert_error(c, LG_ERR_DTYPE, "bce: x is i64");
        drop(lg_huber(x, y));
        assert_error(c, LG_ERR_SHAPE, "huber: x is");
        drop(lg_huber(x, x, .delta = -1));
        assert_error(c, LG_ERR_ARGUMENT, "huber: delta is -1");
        drop(lg_smooth_l1(x, x, .beta = NAN));
        assert_error(c, LG_ERR_ARGUMENT, "smooth_l1: beta");
        drop(lg_bce_with_logits(NULL, x));
        assert_error(c, LG_ERR_ARGUMENT, "bce_with_logits: x is NULL");
        drop(lg_bce_with_logits(x, x, .pos_weight = lg_ones(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_SHAPE, "bce_with_logits");
        drop(lg_bce_with_logits(x, x, .pos_weight = lg_ones(c, LG_SHAPE(4, 2, 3))));
        assert_error(c, LG_ERR_SHAPE, "pos_weight is");
        lg_close(c);
}

TEST_CASE(big_scores_do_not_overflow)
{
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

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)),
                  *y = lg_from(c, ((int64_t[]){-100, -100}), LG_SHAPE(2), .dtype = LG_I64);
        assert_true(isnan(lg_item(lg_cross_entropy(x, y)))); /* all ignored */
        assert_near(lg_item(lg_cross_entropy(x, y, .reduction = LG_SUM)), 0, 0);
        drop(lg_cross_entropy(x, lg_ones(c, LG_SHAPE(3), .dtype = LG_I64)));
        assert_error(c, LG_ERR_SHAPE, "cross_entropy");
        drop(lg_cross_entropy(x, lg_ones(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_DTYPE, "cross_entropy");
        drop(lg_cross_entropy(x, y, .label_smoothing = 1.5));
        assert_error(c, LG_ERR_ARGUMENT, "smoothing");
        drop(lg_mse(x, lg_ones(c, LG_SHAPE(3))));
        assert_error(c, LG_ERR_SHAPE, "mse");
        drop(lg_softmax(x, 2));
        assert_error(c, LG_ERR_ARGUMENT, "softmax");
        drop(lg_softmax(lg_ones(c, LG_SHAPE(2), .dtype = LG_I64), 0));
        assert_error(c, LG_ERR_DTYPE, "softmax");
        assert_int_equal(lg_numel(lg_softmax(lg_ones(c, LG_SHAPE(0, 3)), 1)), 0);
        assert_near(lg_item(lg_softmax(lg_scalar(c, 5), 0)), 1, 0);
        lg_close(c);
}

TEST_CASE(half_precision)
{
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

/* A view of the shape that begins one element into its memory, so that nothing lies on even addresses. */
static lg_tensor *shifted(lg_tensor *x)
{
        lg_tensor *flat = lg_reshape(x, LG_SHAPE(lg_numel(x)));
        lg_tensor *room = lg_cat(LG_LIST(lg_slice(flat, 0, 0, 1), flat), 0);
        return lg_reshape(lg_slice(room, 0, 1, LG_MAX), lg_shape_of(x));
}

/* Soft-max, its logarithm, and their derivatives along the middle of (2, n, inner), against loops in f64. */
static void check_lines(lg_ctx *c, lg_dtype dtype, int64_t n, int64_t inner, bool shift, double limit)
{
        lg_scope scope = lg_scope_begin(c);
        const int64_t count = 2 * n * inner;
        lg_tensor *x = lg_normal(c, 0, 2, LG_SHAPE(2, n, inner), .dtype = dtype);
        lg_tensor *g = lg_normal(c, 0, 1, LG_SHAPE(2, n, inner), .dtype = dtype), *dx;
        double *v = calloc((size_t)count * 4, sizeof *v), *slope = v + count, *y = v + 2 * count, *want = v + 3 * count;
        x = lg_requires_grad(lg_detach(shift ? shifted(x) : x), true);
        g = shift ? shifted(g) : g;
        read_all(x, v, count);
        read_all(g, slope, count);
        for (int log_of = 0; log_of < 2; log_of++) {
                for (int64_t l = 0; l < 2 * inner; l++) {
                        const int64_t at = l / inner * n * inner + l % inner;
                        double top = -INFINITY, sum = 0, product = 0;
                        for (int64_t i = 0; i < n; i++)
                                top = fmax(top, v[at + i * inner]);
                        for (int64_t i = 0; i < n; i++)
                                sum += exp(v[at + i * inner] - top);
                        for (int64_t i = 0; i < n; i++) {
                                double d = v[at + i * inner] - top, s = slope[at + i * inner];
                                y[at + i * inner] = log_of ? d - log(sum) : exp(d) / sum;
                                product += log_of ? s : s * exp(d) / sum;
                        }
                        for (int64_t i = 0; i < n; i++) {
                                double own = y[at + i * inner], s = slope[at + i * inner];
                                want[at + i * inner] = log_of ? s - exp(own) * product : own * (s - product);
                        }
                }
                lg_tensor *r = log_of ? lg_log_softmax(x, 1) : lg_softmax(x, 1);
                assert_values(r, y, count, limit);
                lg_grad(LG_LIST(r), LG_LIST(x), .grads = LG_LIST(g), .result = &dx);
                assert_ok(c);
                assert_values(dx, want, count, limit);
        }
        free(v);
        lg_scope_end(c, scope);
}

TEST_CASE(lines_of_any_length)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {2, 16, 17, 40, 1024, 1040, 8192, 8200, 9001};
        for (int i = 0; i < 9; i++)
                for (int shift = 0; shift < 2; shift++) {
                        check_lines(c, LG_F32, lengths[i], 1, shift, 2e-6);
                        check_lines(c, LG_F64, lengths[i], 1, shift, 1e-13);
                        check_lines(c, LG_F16, lengths[i], 1, shift, 4e-3);
                        check_lines(c, LG_BF16, lengths[i], 1, shift, 4e-2);
                }
        for (int64_t inner = 2; inner < 80; inner = inner * 3 + 1)
                for (int i = 0; i < 4; i++) {
                        check_lines(c, LG_F32, lengths[i] * 5, inner, false, 2e-6);
                        check_lines(c, LG_F64, lengths[i] * 5, inner, false, 1e-13);
                }
        lg_close(c);
}

/* What is not finite in rows of each length, as it is in short ones. */
TEST_CASE(scores_out_of_range)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {5, 100, 2000, 9000};
        for (int k = 0; k < 4; k++) {
                const int64_t n = lengths[k];
                lg_tensor *x = lg_full(c, -INFINITY, LG_SHAPE(4, n));
                lg_copy_(lg_slice(lg_select(x, 0, 0), 0, 3, 5), lg_zeros(c, LG_SHAPE(2))); /* two that count */
                lg_copy_(lg_slice(lg_select(x, 0, 2), 0, 1, 2), lg_full(c, NAN, LG_SHAPE(1)));
                lg_copy_(lg_slice(lg_select(x, 0, 3), 0, 4, 5), lg_full(c, INFINITY, LG_SHAPE(1)));
                for (int across = 0; across < 2; across++) {
                        lg_tensor *y = across ? lg_softmax(lg_contiguous(lg_transpose(x, 0, 1)), 0) : lg_softmax(x, 1);
                        double *v = calloc((size_t)(4 * n), sizeof *v);
                        assert_ok(c);
                        read_all(across ? lg_contiguous(lg_transpose(y, 0, 1)) : y, v, 4 * n);
                        for (int64_t i = 0; i < n; i++)
                                assert_near(v[i], i == 3 || i == 4 ? 0.5 : 0, 1e-6);
                        for (int64_t i = n; i < 4 * n; i++)
                                assert_true(isnan(v[i]));
                        free(v);
                }
        }
        lg_close(c);
}

/* Cross-entropy over classes of any number against loops in f64; row 1 is ignored. */
static void check_classes(lg_ctx *c, lg_dtype dtype, int64_t n, double smoothing, lg_reduction reduction, double limit)
{
        enum { COUNT = 3 };
        lg_scope scope = lg_scope_begin(c);
        const int64_t label[COUNT] = {n - 1, -100, 0};
        lg_tensor *x = lg_requires_grad(lg_detach(lg_normal(c, 0, 2, LG_SHAPE(COUNT, n), .dtype = dtype)), true), *dx;
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
