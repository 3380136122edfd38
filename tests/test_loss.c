/* test_loss.c - losses made of other ops against PyTorch's numbers, and where scores or targets are extreme. */
#include "golden.h"

#define SQUARES(ROW)                                                                                                   \
        ROW(mse, lg_mse(x, golden_ops_y(c)), 3, 4)                                                                     \
        ROW(mse_sum, lg_mse(x, golden_ops_y(c), .reduction = LG_SUM), 3, 4)                                            \
        ROW(mse_none, lg_mse(x, golden_ops_y(c), .reduction = LG_NONE), 3, 4)

GOLDEN_TEST(squares_as_pytorch_computes_them, "ops.txt", golden_ops_input, SQUARES);

#define Y golden_like(x, LG_SHAPE(3, 4), 0.7)
#define Q lg_softmax(Y, 1)
#define LP lg_log_softmax(x, 1)
#define W lg_cast(lg_from(c, ((double[]){0.5, 1, 2, 0.25}), LG_SHAPE(4)), lg_dtype_of(x))
#define SOME_ZERO lg_mul(lg_ge_scalar(Q, 0.1), Q)

#define ROWS(ROW)                                                                                                      \
        ROW(l1, lg_l1(x, Y), 3, 4)                                                                                     \
        ROW(l1_sum, lg_l1(x, Y, .reduction = LG_SUM), 3, 4)                                                            \
        ROW(l1_none, lg_l1(x, Y, .reduction = LG_NONE), 3, 4)                                                          \
        ROW(huber, lg_huber(x, Y), 3, 4)                                                                               \
        ROW(huber_delta, lg_huber(x, Y, .reduction = LG_NONE, .delta = 0.6), 3, 4)                                     \
        ROW(smooth_l1, lg_smooth_l1(x, Y), 3, 4)                                                                       \
        ROW(smooth_l1_beta, lg_smooth_l1(x, Y, .reduction = LG_NONE, .beta = 0.6), 3, 4)                               \
        ROW(smooth_l1_zero, lg_smooth_l1(x, Y, .reduction = LG_SUM, .beta = LG_ZERO), 3, 4)                            \
        ROW(bce, lg_bce(lg_sigmoid(x), Q), 3, 4)                                                                       \
        ROW(bce_none, lg_bce(lg_sigmoid(x), Q, .reduction = LG_NONE), 3, 4)                                            \
        ROW(bce_with_logits, lg_bce_with_logits(lg_mul_scalar(x, 3), Q), 3, 4)                                         \
        ROW(bce_with_logits_weight, lg_bce_with_logits(lg_mul_scalar(x, 3), Q, .reduction = LG_NONE, .pos_weight = W), \
            3, 4)                                                                                                      \
        ROW(kl_div, lg_kl_div(LP, SOME_ZERO), 3, 4)                                                                    \
        ROW(kl_div_none, lg_kl_div(LP, SOME_ZERO, .reduction = LG_NONE), 3, 4)                                         \
        ROW(kl_div_batch, lg_kl_div(LP, SOME_ZERO, .reduction = LG_BATCH_MEAN), 3, 4)                                  \
        ROW(kl_div_log, lg_kl_div(LP, lg_log(Q), .reduction = LG_SUM, .log_target = true), 3, 4)                       \
        ROW(kl_div_of_target, lg_kl_div(lg_log_softmax(Y, 1), lg_softmax(x, 1), .reduction = LG_SUM), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "loss.txt", golden_input, ROWS);
#undef Y
#undef Q
#undef LP
#undef W
#undef SOME_ZERO

#define NUMBERS(...) lg_cast(lg_from(c, ((double[]){__VA_ARGS__}), LG_SHAPE(3, 4)), lg_dtype_of(x))
#define SIGNS NUMBERS(1, -1, -1, 1, 1, -1, 1, -1, -1, 1, -1, 1)
#define COUNTS NUMBERS(0, 1, 2, 5, 0, 3, 1, 7, 2, 2, 1, 4)
#define SIGN_ROWS lg_cast(lg_from(c, ((double[]){1, -1, -1}), LG_SHAPE(3)), lg_dtype_of(x))
#define FOUR lg_cast(lg_from(c, ((double[]){0.5, 1, 2, 0.25}), LG_SHAPE(4)), lg_dtype_of(x))
#define Y golden_like(x, LG_SHAPE(3, 4), 0.7)
#define Z golden_like(x, LG_SHAPE(3, 4), 1.9)
#define VAR lg_square(Y)
#define T lg_from(c, ((int64_t[]){2, 0, 3}), LG_SHAPE(3))
#define LABELS lg_from(c, ((int64_t[]){2, 0, -1, 1, -1, 2, 3, 0, 3, 1, 2, 0}), LG_SHAPE(3, 4))
#define PRESENT lg_gt_scalar(lg_softmax(Y, 1), 0.3)
#define FIRST(t) lg_select(t, 0, 0)
#define MARGINS(ROW)                                                                                                   \
        ROW(soft_margin, lg_soft_margin(x, SIGNS), 3, 4)                                                               \
        ROW(poisson_nll, lg_poisson_nll(x, COUNTS), 3, 4)                                                              \
        ROW(poisson_nll_full, lg_poisson_nll(x, COUNTS, .reduction = LG_NONE, .full = true), 3, 4)                     \
        ROW(poisson_nll_rate,                                                                                          \
            lg_poisson_nll(lg_square(x), COUNTS, .reduction = LG_SUM, .no_log_input = true, .eps = 1e-3), 3, 4)        \
        ROW(gaussian_nll, lg_gaussian_nll(x, Y, VAR), 3, 4)                                                            \
        ROW(gaussian_nll_full,                                                                                         \
            lg_gaussian_nll(x, Y, lg_slice(VAR, 1, 0, 1), .reduction = LG_NONE, .full = true, .eps = 0.3), 3, 4)       \
        ROW(gaussian_nll_rows, lg_gaussian_nll(x, Y, lg_select(VAR, 1, 1), .reduction = LG_SUM), 3, 4)                 \
        ROW(gaussian_nll_of_var, lg_gaussian_nll(Z, Y, lg_square(x), .eps = 0.5), 3, 4)                                \
        ROW(margin_ranking, lg_margin_ranking(x, Y, SIGNS), 3, 4)                                                      \
        ROW(margin_ranking_margin, lg_margin_ranking(x, Y, SIGNS, .reduction = LG_NONE, .margin = 0.6), 3, 4)          \
        ROW(hinge_embedding, lg_hinge_embedding(x, SIGNS), 3, 4)                                                       \
        ROW(hinge_embedding_margin, lg_hinge_embedding(x, SIGNS, .reduction = LG_NONE, .margin = 0.3), 3, 4)           \
        ROW(cosine_embedding, lg_cosine_embedding(x, Y, SIGN_ROWS), 3, 4)                                              \
        ROW(cosine_embedding_margin, lg_cosine_embedding(x, Y, SIGN_ROWS, .reduction = LG_NONE, .margin = -0.5), 3, 4) \
        ROW(cosine_embedding_one, lg_cosine_embedding(FIRST(x), FIRST(Y), FIRST(SIGN_ROWS)), 3, 4)                     \
        ROW(triplet_margin, lg_triplet_margin(x, Y, Z), 3, 4)                                                          \
        ROW(triplet_margin_swap,                                                                                       \
            lg_triplet_margin(Y, x, Z, .reduction = LG_NONE, .margin = 2.5, .p = 1, .swap = true), 3, 4)               \
        ROW(multi_margin, lg_multi_margin(x, T), 3, 4)                                                                 \
        ROW(multi_margin_square, lg_multi_margin(x, T, .reduction = LG_NONE, .p = 2, .margin = 0.5, .weight = FOUR),   \
            3, 4)                                                                                                      \
        ROW(multi_margin_one, lg_multi_margin(FIRST(x), FIRST(T)), 3, 4)                                               \
        ROW(multilabel_margin, lg_multilabel_margin(x, LABELS), 3, 4)                                                  \
        ROW(multilabel_margin_none, lg_multilabel_margin(x, LABELS, .reduction = LG_NONE), 3, 4)                       \
        ROW(multilabel_margin_one, lg_multilabel_margin(FIRST(x), FIRST(LABELS)), 3, 4)                                \
        ROW(multilabel_soft_margin, lg_multilabel_soft_margin(x, PRESENT), 3, 4)                                       \
        ROW(multilabel_soft_margin_weight,                                                                             \
            lg_multilabel_soft_margin(x, PRESENT, .reduction = LG_NONE, .weight = FOUR), 3, 4)                         \
        ROW(pairwise_distance, lg_pairwise_distance(x, Y), 3, 4)                                                       \
        ROW(pairwise_distance_p, lg_pairwise_distance(x, FIRST(Y), .p = 1, .eps = 0.1, .keep_dim = true), 3, 4)

GOLDEN_TEST(margins_as_pytorch_computes_them, "loss.txt", golden_input, MARGINS);

/* Class indices and lengths of test_ctc. */
static lg_tensor *words(lg_ctx *c, const int64_t *values, lg_shape shape)
{
        return lg_from(c, values, shape);
}
#define CLASSES(...) ((int64_t[]){__VA_ARGS__})
#define TIMES words(c, CLASSES(6, 4, 0), LG_SHAPE(3))
#define LENGTHS words(c, CLASSES(3, 1, 0), LG_SHAPE(3))
#define WORDS words(c, CLASSES(1, 1, 2, 3, 9, -1, 9, 9, 9), LG_SHAPE(3, 3))
#define JOINED words(c, CLASSES(1, 1, 2, 3), LG_SHAPE(4))
#define SPEECH lg_log_softmax(x, 2)
#define CTC(ROW)                                                                                                       \
        ROW(ctc, lg_ctc(SPEECH, WORDS, TIMES, LENGTHS), 6, 3, 4)                                                       \
        ROW(ctc_sum, lg_ctc(SPEECH, WORDS, TIMES, LENGTHS, .reduction = LG_SUM), 6, 3, 4)                              \
        ROW(ctc_none, lg_ctc(SPEECH, WORDS, TIMES, LENGTHS, .reduction = LG_NONE), 6, 3, 4)                            \
        ROW(ctc_joined, lg_ctc(SPEECH, JOINED, TIMES, LENGTHS), 6, 3, 4)                                               \
        ROW(ctc_blank,                                                                                                 \
            lg_ctc(SPEECH, words(c, CLASSES(1, 1, 2, 0), LG_SHAPE(4)), TIMES, LENGTHS, .reduction = LG_SUM,            \
                   .blank = 3),                                                                                        \
            6, 3, 4)                                                                                                   \
        ROW(ctc_impossible,                                                                                            \
            lg_ctc(SPEECH, WORDS, words(c, CLASSES(3, 4, 6), LG_SHAPE(3)), LENGTHS, .reduction = LG_NONE,              \
                   .zero_infinity = true),                                                                             \
            6, 3, 4)                                                                                                   \
        ROW(ctc_one, lg_ctc(lg_log_softmax(lg_select(x, 1, 0), 1), FIRST(WORDS), FIRST(TIMES), FIRST(LENGTHS)), 6, 3, 4)

GOLDEN_TEST(ctc_as_pytorch_computes_it, "loss.txt", golden_input, CTC);

/* An impossible target costs infinity and no gradient, whatever stands behind a sequence; no time has one empty target.
 */
TEST_CASE(ctc_at_its_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_full(c, LG_SHAPE(4, 2, 3), NAN), *g[1];
        x = lg_set_requires_grad(lg_cat(LG_LIST(lg_zeros(c, LG_SHAPE(2, 2, 3)), lg_slice(x, 0, 2, 4)), 0), true);
        lg_tensor *y = lg_ctc(lg_log_softmax(x, 2), words(c, CLASSES(1, 1, 2, 1), LG_SHAPE(2, 2)),
                              words(c, CLASSES(2, 2), LG_SHAPE(2)), words(c, CLASSES(2, 2), LG_SHAPE(2)),
                              .reduction = LG_NONE);
        assert_list(y, 1e-6, INFINITY, 2 * log(3)); /* 1 1 needs a blank between, 2 1 is one path of nine */
        lg_grad(LG_LIST(lg_sum(y)), LG_LIST(x), .result = g);
        assert_list(lg_sum(lg_abs(lg_slice(g[0], 0, 0, 2)), .dims = LG_DIMS(0, 2)), 1e-6, 0, 8.0 / 3);
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 2, 3)), *zero = words(c, CLASSES(0, 0), LG_SHAPE(2));
        lg_tensor *two = words(c, CLASSES(1, 2, 1, 2), LG_SHAPE(2, 2));
        assert_list(lg_ctc(none, two, zero, words(c, CLASSES(0, 1), LG_SHAPE(2)), .reduction = LG_NONE), 0, 0,
                    INFINITY);
        y = lg_ctc(lg_zeros(c, LG_SHAPE(3, 0, 3)), lg_zeros(c, LG_SHAPE(0, 2), .dtype = LG_I64),
                   lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64), lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64),
                   .reduction = LG_NONE);
        assert_int_equal(lg_numel(y), 0);
        y = lg_ctc(lg_log_softmax(lg_zeros(c, LG_SHAPE(2, 1, 3)), 2), lg_zeros(c, LG_SHAPE(1, 0), .dtype = LG_I64),
                   lg_full(c, LG_SHAPE(1), 2, .dtype = LG_I64), lg_zeros(c, LG_SHAPE(1), .dtype = LG_I64));
        assert_near(lg_item(y), 2 * log(3), 1e-6);
        assert_ok(c);
        lg_close(c);
}

/* Counts and classes that do not fit are errors; those of data are found by lg_gather(). */
TEST_CASE(later_losses_refuse)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(3, 4)), *t = lg_zeros(c, LG_SHAPE(3), .dtype = LG_I64);
        lg_tensor *lp = lg_zeros(c, LG_SHAPE(4, 2, 3)), *two = words(c, CLASSES(1, 2, 1, 2), LG_SHAPE(2, 2));
        lg_tensor *n = words(c, CLASSES(2, 2), LG_SHAPE(2)), *far = words(c, CLASSES(2, 7), LG_SHAPE(2));
        assert_fails(c, lg_margin_ranking(x, lg_zeros(c, LG_SHAPE(4)), x), LG_ERR_SHAPE, "x1 is");
        assert_fails(c, lg_cosine_embedding(x, x, lg_zeros(c, LG_SHAPE(4))), LG_ERR_SHAPE, "(N, D) and (N)");
        assert_fails(c, lg_triplet_margin(x, x, lg_zeros(c, LG_SHAPE(4))), LG_ERR_SHAPE, "negative");
        assert_fails(c, lg_multi_margin(x, lg_zeros(c, LG_SHAPE(4), .dtype = LG_I64)), LG_ERR_SHAPE, "it must be (3,)");
        assert_fails(c, lg_multi_margin(x, t, .p = 3), LG_ERR_ARGUMENT, "1 or 2");
        assert_fails(c, lg_multi_margin(x, t, .weight = lg_zeros(c, LG_SHAPE(3))), LG_ERR_SHAPE, "4 classes");
        assert_fails(c, lg_multilabel_margin(x, t), LG_ERR_SHAPE, "it must be (3, 4)");
        assert_fails(c, lg_multilabel_soft_margin(x, t), LG_ERR_SHAPE, "one shape");
        assert_fails(c, lg_gaussian_nll(x, x, lg_zeros(c, LG_SHAPE(5))), LG_ERR_SHAPE, "gaussian_nll");
        assert_fails(c, lg_gaussian_nll(x, x, x, .eps = -1), LG_ERR_ARGUMENT, "eps");
        assert_fails(c, lg_poisson_nll(x, x, .eps = -1), LG_ERR_ARGUMENT, "eps");
        assert_fails(c, lg_soft_margin(x, x, .reduction = LG_BATCH_MEAN), LG_ERR_ARGUMENT, "LG_BATCH_MEAN");
        assert_fails(c, lg_ctc(lp, two, n, t), LG_ERR_SHAPE, "(T, N, C), (N, S)");
        assert_fails(c, lg_ctc(lp, two, n, n, .blank = 3), LG_ERR_ARGUMENT, "3 classes");
        assert_fails(c, lg_ctc(lp, words(c, CLASSES(1), LG_SHAPE(1)), n, n), LG_ERR_SHAPE,
                     "sum of target_lengths is 4");
        if (reports_at_once(c)) {
                assert_fails(c, lg_ctc(lp, two, far, n), LG_ERR_ARGUMENT, "gather");
                assert_fails(c, lg_ctc(lp, two, n, far), LG_ERR_ARGUMENT, "gather");
                assert_fails(c, lg_multi_margin(x, lg_full_like(t, 4)), LG_ERR_ARGUMENT, "gather");
        }
        lg_close(c);
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
        for (int target = 0; target < 2; target++) /* no probabilities */
                for (int score = -1; score < 3; score += 3)
                        assert_true(isnan(
                                lg_item(lg_bce(lg_full(c, LG_SHAPE(1), score), lg_full(c, LG_SHAPE(1), target)))));

        lg_tensor *d = lg_from(c, ((float[]){INFINITY, -1e30f, 1, -1, 0}), LG_SHAPE(5), .requires_grad = true);
        y = lg_huber(d, zero, .reduction = LG_NONE);
        assert_list(y, 1e-6, INFINITY, 1e30f, 0.5, 0.5, 0);
        lg_grad(LG_LIST(lg_sum(lg_huber(d, zero, .reduction = LG_NONE, .delta = 2))), LG_LIST(d), .result = g);
        assert_list(g[0], 1e-6, 2, -2, 1, -1, 0);
        assert_ok(c);
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
                          *w = lg_full(c, LG_SHAPE(1), 3);
                x = lg_set_requires_grad(lg_detach(x), true);
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
                lp = lg_set_requires_grad(lg_detach(lp), true);
                p = lg_set_requires_grad(lg_detach(lg_log(p)), true);
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
        lg_tensor *none = lg_full(c, LG_SHAPE(1), -100, .dtype = LG_I64),
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
                        lg_bce_with_logits(lg_full(c, LG_SHAPE(1, 1), INFINITY), one, .reduction = reduction),
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

TEST_CASE(errors_of_losses)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *y = lg_ones(c, LG_SHAPE(3)),
                  *i = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_I64);
        assert_fails(c, lg_mse(x, lg_ones(c, LG_SHAPE(3))), LG_ERR_SHAPE, "mse");
        assert_fails(c, lg_mse(x, x, .reduction = LG_BATCH_MEAN), LG_ERR_ARGUMENT, "mse: reduction");
        assert_fails(c, lg_l1(x, x, .reduction = (lg_reduction)7), LG_ERR_ARGUMENT, "l1: 7 is no reduction");
        assert_fails(c, lg_kl_div(x, x, .reduction = (lg_reduction)7), LG_ERR_ARGUMENT, "kl_div: 7");
        assert_fails(c, lg_kl_div(lg_scalar(c, 1), lg_scalar(c, 1), .reduction = LG_BATCH_MEAN), LG_ERR_SHAPE,
                     "LG_BATCH_MEAN");
        assert_fails(c, lg_l1(x, y), LG_ERR_SHAPE, "l1: x is");
        assert_fails(c, lg_bce(i, x), LG_ERR_DTYPE, "bce: x is i64");
        assert_fails(c, lg_huber(x, y), LG_ERR_SHAPE, "huber: x is");
        assert_fails(c, lg_huber(x, x, .delta = -1), LG_ERR_ARGUMENT, "huber: delta is -1");
        assert_fails(c, lg_smooth_l1(x, x, .beta = NAN), LG_ERR_ARGUMENT, "smooth_l1: beta");
        assert_fails(c, lg_bce_with_logits(NULL, x), LG_ERR_ARGUMENT, "bce_with_logits: x is NULL");
        assert_fails(c, lg_bce_with_logits(x, x, .pos_weight = lg_ones(c, LG_SHAPE(2))), LG_ERR_SHAPE,
                     "bce_with_logits");
        assert_fails(c, lg_bce_with_logits(x, x, .pos_weight = lg_ones(c, LG_SHAPE(4, 2, 3))), LG_ERR_SHAPE,
                     "pos_weight is");
        lg_close(c);
}
