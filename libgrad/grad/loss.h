/* loss.h - loss functions for classification and regression.
 *
 * A loss function compares x, the output of a network, with a target. All have gradients of any order with respect to
 * x. .reduction says how the losses of single elements become one: LG_MEAN (the default) and LG_SUM return a 0-d
 * tensor, LG_NONE returns one loss for each element. The mean of no elements is NaN.
 *
 *     lg_tensor *loss = lg_cross_entropy(lg_forward(net, x), y, .label_smoothing = 0.1);
 *     lg_backward(loss);
 *
 * x has a float dtype. The loss is f64 if x or target is, else f32: f16 and bf16 are computed in f32.
 */
#ifndef LG_LOSS_H
#define LG_LOSS_H

#include "grad/base.h"

LG_BEGIN

/* ---- classification with several classes ----
 *
 * x has shape (N, C, ...), or (C) for one row, where C is the number of classes, at least 1. The C values at one
 * position of the other dimensions are called a row.
 *
 * Class indices are i64, of shape (N, ...), or 0-d for x of shape (C). With an index that is neither in [0, C) nor
 * .ignore_index, the call fails with LG_ERR_ARGUMENT on the CPU. On a GPU it counts as ignored, and the next lg_item(),
 * lg_read() or lg_synchronize() reports it as LG_ERR_ARGUMENT.
 */

typedef struct lg_cross_entropy_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        lg_tensor *weight LG_DEFAULT;      /* (C), float dtype: factor of each class; gets no gradient; default 1. */
        int64_t ignore_index LG_DEFAULT;   /* Class index whose rows do not count; default -100. LG_ZERO_INT sets 0. */
        double label_smoothing LG_DEFAULT; /* e in [0, 1]: the part of the target spread over all classes; default 0. */
} lg_cross_entropy_options;
/* Computes the cross entropy of scores x (logits, not probabilities) and class indices or class probabilities, like
 * PyTorch's cross_entropy. e stands for .label_smoothing.
 *
 * Class indices: the loss of a row is -weight[target] log_softmax(x)[target]. With label smoothing it is the sum over
 * all classes c of -((1 - e) [c = target] + e / C) weight[c] log_softmax(x)[c]. Rows of .ignore_index have loss 0.
 * LG_MEAN divides by the sum of weight[target] over the other rows; if there are none, it is NaN with gradient 0.
 *
 * Class probabilities: target has a float dtype and x's shape (else LG_ERR_DTYPE), without .ignore_index. The loss of a
 * row is the sum over all classes c of -((1 - e) target[c] + e / C) weight[c] log_softmax(x)[c]. LG_MEAN divides by the
 * number of rows. Probabilities need not sum to 1 and receive a gradient if they need one; 0 adds 0 even for a score of
 * -inf.
 * Example: lg_cross_entropy(x, target, .reduction = LG_SUM, .label_smoothing = 0.1) */
#define lg_cross_entropy(...)                                                                                          \
        LG_CALL2(lg_cross_entropy_with, lg_cross_entropy_options, lg_cross_entropy_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cross_entropy_with(lg_tensor *x, lg_tensor *target,
                                               const lg_cross_entropy_options *options);

typedef struct lg_nll_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        lg_tensor *weight LG_DEFAULT;      /* (C), float dtype: factor of each class; gets no gradient; default 1. */
        int64_t ignore_index LG_DEFAULT;   /* Class index whose rows do not count; default -100. LG_ZERO_INT sets 0. */
} lg_nll_options;
/* Computes the negative log-likelihood -weight[target] x[target] of log-probabilities x, as lg_log_softmax() returns
 * them, and class indices. Ignored rows and LG_MEAN are treated as in lg_cross_entropy(), which takes scores instead.
 * Example: lg_nll(lg_log_softmax(x, 1), target) */
#define lg_nll(...) LG_CALL2(lg_nll_with, lg_nll_options, lg_nll_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_nll_with(lg_tensor *x, lg_tensor *target, const lg_nll_options *options);

/* ---- elementwise losses ----
 *
 * target has the shape of x and any dtype, and receives a gradient if it needs one. In formulas, d is |x - target|.
 */

/* Options of losses without numbers of their own. */
typedef struct lg_loss_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
} lg_loss_options;
/* Computes the squared error (x - target)^2. */
#define lg_mse(...) LG_CALL2(lg_mse_with, lg_loss_options, lg_mse_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_mse_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);

/* Computes the absolute error |x - target|. Its derivative is 0 where x equals target.
 * Example: lg_l1(x, target) */
#define lg_l1(...) LG_CALL2(lg_l1_with, lg_loss_options, lg_l1_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_l1_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);

/* Computes the binary cross entropy -(target log(x) + (1 - target) log(1 - x)) of a probability x in [0, 1]; outside,
 * the result is NaN. The logarithms are bounded from below by -100; where a bound applies, the derivative is 0 (in
 * PyTorch it is as large as 1e12). For scores use lg_bce_with_logits().
 * Example: lg_bce(lg_sigmoid(x), target) */
#define lg_bce(...) LG_CALL2(lg_bce_with, lg_loss_options, lg_bce_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_bce_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);

typedef struct lg_bce_with_logits_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        lg_tensor *pos_weight LG_DEFAULT;  /* Factor of the target's term, broadcast to x; default 1. */
} lg_bce_with_logits_options;
/* Computes the binary cross entropy of a score x, -(pos_weight target log(sigmoid(x)) + (1 - target) log(1 -
 * sigmoid(x))), accurate for large |x|; at infinite x a term of factor 0 is 0. .pos_weight gets a gradient if needed.
 * Example: lg_bce_with_logits(x, target, .reduction = LG_SUM) */
#define lg_bce_with_logits(...)                                                                                        \
        LG_CALL2(lg_bce_with_logits_with, lg_bce_with_logits_options, lg_bce_with_logits_takes_x_target, V, V,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_bce_with_logits_with(lg_tensor *x, lg_tensor *target,
                                                 const lg_bce_with_logits_options *options);

typedef struct lg_huber_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        double delta LG_DEFAULT;           /* Error from which the loss is linear; default 1; greater than 0. */
} lg_huber_options;
/* Computes the Huber loss: d^2 / 2 if d <= delta, else delta (d - delta / 2).
 * Example: lg_huber(x, target, .delta = 2) */
#define lg_huber(...) LG_CALL2(lg_huber_with, lg_huber_options, lg_huber_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_huber_with(lg_tensor *x, lg_tensor *target, const lg_huber_options *options);

typedef struct lg_smooth_l1_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        double beta LG_DEFAULT;            /* Error from which the loss is linear; default 1. LG_ZERO gives lg_l1(). */
} lg_smooth_l1_options;
/* Computes the smooth L1 loss: d^2 / (2 beta) if d < beta, else d - beta / 2.
 * Example: lg_smooth_l1(x, target, .beta = 0.5) */
#define lg_smooth_l1(...)                                                                                              \
        LG_CALL2(lg_smooth_l1_with, lg_smooth_l1_options, lg_smooth_l1_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_smooth_l1_with(lg_tensor *x, lg_tensor *target, const lg_smooth_l1_options *options);

typedef struct lg_kl_div_options {
        LG_OPTIONS_HEAD
        /* LG_MEAN, LG_SUM, LG_NONE or LG_BATCH_MEAN (the sum divided by the size of dimension 0); default LG_MEAN. */
        lg_reduction reduction LG_DEFAULT;
        bool log_target LG_DEFAULT; /* Whether target holds log-probabilities; default false. */
} lg_kl_div_options;
/* Computes the terms target (log(target) - x) of the Kullback-Leibler divergence of probabilities target from the
 * probabilities whose logarithms are x, like PyTorch's kl_div. A target of 0 gives 0. With .log_target, computes
 * e^target (target - x), which is 0 for a target of -inf. LG_BATCH_MEAN gives the divergence by its mathematical
 * definition, averaged over the rows of an x that is not 0-d.
 * Example: lg_kl_div(lg_log_softmax(x, 1), p, .reduction = LG_BATCH_MEAN) */
#define lg_kl_div(...) LG_CALL2(lg_kl_div_with, lg_kl_div_options, lg_kl_div_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_kl_div_with(lg_tensor *x, lg_tensor *target, const lg_kl_div_options *options);

/* Computes log(1 + e^(-target x)) for targets 1 and -1. Example: lg_soft_margin(x, target) */
#define lg_soft_margin(...)                                                                                            \
        LG_CALL2(lg_soft_margin_with, lg_loss_options, lg_soft_margin_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_soft_margin_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);

typedef struct lg_poisson_nll_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        bool no_log_input LG_DEFAULT;      /* Whether x is a rate, not the logarithm of one; default false. */
        bool full LG_DEFAULT;              /* Whether to add Stirling's approximation of log(target!); default false. */
        double eps LG_DEFAULT;             /* Added to x before its logarithm if .no_log_input; default 1e-8. */
} lg_poisson_nll_options;
/* Computes the negative log-likelihood of a count under a Poisson distribution of rate e^x: e^x - target x, or for
 * .no_log_input of rate x: x - target log(x + eps). .full adds target log(target) - target + log(2 pi target) / 2 where
 * target > 1.
 * Example: lg_poisson_nll(x, target, .full = true) */
#define lg_poisson_nll(...)                                                                                            \
        LG_CALL2(lg_poisson_nll_with, lg_poisson_nll_options, lg_poisson_nll_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_poisson_nll_with(lg_tensor *x, lg_tensor *target, const lg_poisson_nll_options *options);

typedef struct lg_gaussian_nll_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        bool full LG_DEFAULT;              /* Whether to add the constant log(2 pi) / 2; default false. */
        double eps LG_DEFAULT;             /* Least variance to divide by; default 1e-6. */
} lg_gaussian_nll_options;
/* Computes the negative log-likelihood (log(v) + (x - target)^2 / v) / 2 under a normal distribution of variance v, the
 * greater of var and .eps. var has the shape of x, or 1 or no element where x has its last dimension. As in PyTorch,
 * the gradient of var is that of v; unlike there, a negative var is no error, which would wait for the device. Example:
 * lg_gaussian_nll(x, target, var, .full = true) */
#define lg_gaussian_nll(...)                                                                                           \
        LG_CALL3(lg_gaussian_nll_with, lg_gaussian_nll_options, lg_gaussian_nll_takes_x_target_var, V, V, V,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_gaussian_nll_with(lg_tensor *x, lg_tensor *target, lg_tensor *var,
                                              const lg_gaussian_nll_options *options);

/* ---- losses with a margin ----
 *
 * [v]+ stands for max(v, 0), m for .margin. Targets of the first three are 1 or -1; terms of other targets are 0.
 */

/* Options of lg_margin_ranking(), lg_hinge_embedding() and lg_cosine_embedding(). */
typedef struct lg_margin_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        double margin LG_DEFAULT;          /* Default 1 for lg_hinge_embedding() (LG_ZERO sets 0), 0 for the others. */
} lg_margin_options;
/* Computes [m - target (x1 - x2)]+ for x1 and x2 of one shape, to which target broadcasts: x1 is to be the greater one
 * where target is 1.
 * Example: lg_margin_ranking(x, y, target, .margin = 0.5) */
#define lg_margin_ranking(...)                                                                                         \
        LG_CALL3(lg_margin_ranking_with, lg_margin_options, lg_margin_ranking_takes_x1_x2_target, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_margin_ranking_with(lg_tensor *x1, lg_tensor *x2, lg_tensor *target,
                                                const lg_margin_options *options);

/* Computes x where target is 1 and [m - x]+ where it is -1; x is a distance.
 * Example: lg_hinge_embedding(x, target, .margin = 2) */
#define lg_hinge_embedding(...)                                                                                        \
        LG_CALL2(lg_hinge_embedding_with, lg_margin_options, lg_hinge_embedding_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_hinge_embedding_with(lg_tensor *x, lg_tensor *target, const lg_margin_options *options);

/* Computes 1 - cos(x1, x2) for the rows whose target is 1 and [cos(x1, x2) - m]+ for those whose target is -1; x1 and
 * x2 are (N, D) and target (N), or (D) and 0-d.
 * Example: lg_cosine_embedding(x, y, target, .margin = 0.5) */
#define lg_cosine_embedding(...)                                                                                       \
        LG_CALL3(lg_cosine_embedding_with, lg_margin_options, lg_cosine_embedding_takes_x1_x2_target, V, V, V,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cosine_embedding_with(lg_tensor *x1, lg_tensor *x2, lg_tensor *target,
                                                  const lg_margin_options *options);

typedef struct lg_triplet_margin_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        double margin LG_DEFAULT;          /* Default 1; LG_ZERO sets 0. */
        double p LG_DEFAULT;               /* Order of the norm; default 2. */
        double eps LG_DEFAULT;             /* Added to differences; default 1e-6. */
        bool swap LG_DEFAULT; /* Whether the distance of positive and negative counts where less; default false. */
} lg_triplet_margin_options;
/* Computes [d(anchor, positive) - d(anchor, negative) + m]+ for rows, where d is lg_pairwise_distance() (Schroff et
 * al., 2015). The three have one shape (..., D), and there is one loss for each row. With distances a and b of one's
 * own the loss is lg_margin_ranking(b, a, target, .margin = m) with a target of ones. Example:
 * lg_triplet_margin(anchor, positive, negative, .margin = 0.2, .swap = true) */
#define lg_triplet_margin(...)                                                                                         \
        LG_CALL3(lg_triplet_margin_with, lg_triplet_margin_options, lg_triplet_margin_takes_anchor_positive_negative,  \
                 V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_triplet_margin_with(lg_tensor *anchor, lg_tensor *positive, lg_tensor *negative,
                                                const lg_triplet_margin_options *options);

typedef struct lg_multi_margin_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        double p LG_DEFAULT;               /* 1 or 2; default 1. */
        double margin LG_DEFAULT;          /* Default 1; LG_ZERO sets 0. */
        lg_tensor *weight LG_DEFAULT;      /* (C), float dtype: factor of each class; default 1. */
} lg_multi_margin_options;
/* Computes for each row of scores the sum over the classes j other than target of
 * weight[target] [m - x[target] + x[j]]+^p / C. x is (N, C) and target, class indices, (N), or x is (C) and target 0-d.
 * Example: lg_multi_margin(x, target, .p = 2) */
#define lg_multi_margin(...)                                                                                           \
        LG_CALL2(lg_multi_margin_with, lg_multi_margin_options, lg_multi_margin_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_multi_margin_with(lg_tensor *x, lg_tensor *target, const lg_multi_margin_options *options);

/* Computes for each row of scores the sum over its targets t and the classes j that are none of
 * [1 - x[t] + x[j]]+ / C. x and target, class indices, are (N, C) or (C); the targets of a row end before the first
 * negative one. Takes memory for N C^2 elements.
 * Example: lg_multilabel_margin(x, target) */
#define lg_multilabel_margin(...)                                                                                      \
        LG_CALL2(lg_multilabel_margin_with, lg_loss_options, lg_multilabel_margin_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_multilabel_margin_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);

typedef struct lg_multilabel_soft_margin_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_MEAN, LG_SUM or LG_NONE; default LG_MEAN. */
        lg_tensor *weight LG_DEFAULT;      /* Factor of each class, broadcast to x; default 1. */
} lg_multilabel_soft_margin_options;
/* Computes for each row of scores x (..., C) the mean over the classes of weight lg_bce_with_logits(x, target), where
 * target has x's shape and is 1 for the classes of the row.
 * Example: lg_multilabel_soft_margin(x, target) */
#define lg_multilabel_soft_margin(...)                                                                                 \
        LG_CALL2(lg_multilabel_soft_margin_with, lg_multilabel_soft_margin_options,                                    \
                 lg_multilabel_soft_margin_takes_x_target, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_multilabel_soft_margin_with(lg_tensor *x, lg_tensor *target,
                                                        const lg_multilabel_soft_margin_options *options);

/* ---- sequences ---- */

typedef struct lg_ctc_options {
        LG_OPTIONS_HEAD
        /* LG_MEAN (each loss divided by its target's length, of at least 1, then their mean), LG_SUM or LG_NONE;
         * default LG_MEAN. */
        lg_reduction reduction LG_DEFAULT;
        int64_t blank LG_DEFAULT;      /* Class of the blank; default 0. */
        bool zero_infinity LG_DEFAULT; /* Whether losses of impossible targets are 0, not infinite; default false. */
} lg_ctc_options;
/* Computes the loss of connectionist temporal classification (PyTorch's ctc_loss): minus the logarithm of the
 * probability that the classes of a sequence, once repeats and then blanks are removed, are its target. log_probs (T,
 * N, C) are log-probabilities as lg_log_softmax() returns them; the others are i64: target (N, S) classes, or
 * those of all sequences one after the other in one dimension (this form waits for the device); input_lengths (N) up to
 * T, target_lengths (N) up to S. Without N, the shapes are (T, C), (S), 0-d and 0-d. A loss that is impossible has the
 * gradient 0. The gradient is that of log_probs; PyTorch returns a sum that differs unless lg_log_softmax() made them.
 * Example: lg_ctc(lg_log_softmax(x, 2), target, times, lengths, .zero_infinity = true) */
#define lg_ctc(...)                                                                                                    \
        LG_CALL4(lg_ctc_with, lg_ctc_options, lg_ctc_takes_log_probs_target_input_lengths_target_lengths, V, V, V, V,  \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_ctc_with(lg_tensor *log_probs, lg_tensor *target, lg_tensor *input_lengths,
                                     lg_tensor *target_lengths, const lg_ctc_options *options);

LG_END_C
#endif
