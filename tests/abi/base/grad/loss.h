/* loss.h - losses. */
#ifndef LG_LOSS_H
#define LG_LOSS_H

#include "grad/base.h"

LG_BEGIN

/* How a loss of many elements becomes one: lg_reduction in types.h, LG_MEAN by default. */
typedef struct lg_cross_entropy_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT;
        lg_tensor *weight LG_DEFAULT;      /* (C), of a float dtype: a factor for each class; no gradient; NULL: 1 */
        int64_t ignore_index LG_DEFAULT;   /* -100; LG_ZERO_INT: class 0; of class indices only */
        double label_smoothing LG_DEFAULT; /* 0; in [0, 1] */
} lg_cross_entropy_options;
/* -log softmax(x)[target]: x (N, C, ...) scores or (C), target (N, ...) i64 or () class indices; rows whose target is
 * ignore_index do not count, a mean of none is NaN. With weight, a mean divides by the sum of weight[target]. A target
 * outside [0, C) is told at the next read or wait.
 * A target of a float dtype and of x's shape holds a weight for each class, a probability as a rule: the loss is -sum
 * of target log softmax(x) over the classes, times weight if there is one; a mean divides by the number of rows. It has
 * a gradient, too. LG_ERR_SHAPE, _DTYPE, _ARGUMENT. PyTorch's cross_entropy. */
#define lg_cross_entropy(...)                                                                                          \
        LG_CALL2(lg_cross_entropy_with, lg_cross_entropy_options, lg_cross_entropy_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cross_entropy_with(lg_tensor *x, lg_tensor *target,
                                               const lg_cross_entropy_options *options);

typedef struct lg_nll_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT;
        lg_tensor *weight LG_DEFAULT;
        int64_t ignore_index LG_DEFAULT;
} lg_nll_options;
/* -x[target]: as lg_cross_entropy, but of logarithms of probabilities x, which lg_log_softmax gives. */
#define lg_nll(...) LG_CALL2(lg_nll_with, lg_nll_options, lg_nll_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_nll_with(lg_tensor *x, lg_tensor *target, const lg_nll_options *options);

/* Of the losses below, x (of a float dtype) and target have one shape: LG_ERR_SHAPE, _DTYPE, _ARGUMENT. */
typedef struct lg_loss_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT;
} lg_loss_options;
/* (x - target)^2 */
#define lg_mse(...) LG_CALL2(lg_mse_with, lg_loss_options, lg_mse_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_mse_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);
/* |x - target|; the derivative where they are equal is 0. */
#define lg_l1(...) LG_CALL2(lg_l1_with, lg_loss_options, lg_l1_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_l1_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);
/* -(target log(x) + (1 - target) log(1 - x)), x a probability in [0, 1] (else NaN). The logarithms are at least -100;
 * where they are that, their derivative is 0 (PyTorch's, which is as large as 1e12, is not). */
#define lg_bce(...) LG_CALL2(lg_bce_with, lg_loss_options, lg_bce_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_bce_with(lg_tensor *x, lg_tensor *target, const lg_loss_options *options);

typedef struct lg_bce_with_logits_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT;
        lg_tensor *pos_weight LG_DEFAULT; /* broadcasts to x: a factor for the part of target; NULL: 1 */
} lg_bce_with_logits_options;
/* lg_bce of sigmoid(x), exact for large |x| too. */
#define lg_bce_with_logits(...)                                                                                        \
        LG_CALL2(lg_bce_with_logits_with, lg_bce_with_logits_options, lg_bce_with_logits_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_bce_with_logits_with(lg_tensor *x, lg_tensor *target,
                                                 const lg_bce_with_logits_options *options);

typedef struct lg_huber_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT;
        double delta LG_DEFAULT; /* 1; greater than 0 */
} lg_huber_options;
/* d^2 / 2 for d = |x - target| <= delta, beyond it delta (d - delta / 2). */
#define lg_huber(...) LG_CALL2(lg_huber_with, lg_huber_options, lg_huber_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_huber_with(lg_tensor *x, lg_tensor *target, const lg_huber_options *options);

typedef struct lg_smooth_l1_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT;
        double beta LG_DEFAULT; /* 1; LG_ZERO is lg_l1 */
} lg_smooth_l1_options;
/* d^2 / (2 beta) for d = |x - target| < beta, beyond it d - beta / 2. */
#define lg_smooth_l1(...) LG_CALL2(lg_smooth_l1_with, lg_smooth_l1_options, lg_smooth_l1_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_smooth_l1_with(lg_tensor *x, lg_tensor *target, const lg_smooth_l1_options *options);

typedef struct lg_kl_div_options {
        LG_OPTIONS_HEAD
        lg_reduction reduction LG_DEFAULT; /* LG_BATCH_MEAN is the divergence of each row, averaged */
        bool log_target LG_DEFAULT;        /* target holds logarithms too */
} lg_kl_div_options;
/* target (log(target) - x), 0 where target is 0: the divergence of target from the probabilities of which x are the
 * logarithms. PyTorch's kl_div. */
#define lg_kl_div(...) LG_CALL2(lg_kl_div_with, lg_kl_div_options, lg_kl_div_takes_x_target, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_kl_div_with(lg_tensor *x, lg_tensor *target, const lg_kl_div_options *options);

LG_END_C
#endif
