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

/* Options of lg_mse(), lg_l1() and lg_bce(). */
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

LG_END_C
#endif
