/* loss.h - losses. */
#ifndef LG_LOSS_H
#define LG_LOSS_H

#include "grad/base.h"

LG_BEGIN

/* How a loss of many elements becomes one: lg_reduction in types.h, LG_MEAN by default. */
typedef struct lg_cross_entropy_options {
        lg_tensor *target LG_DEFAULT;
        lg_reduction reduction LG_DEFAULT;
        int64_t ignore_index LG_DEFAULT;   /* -100; to ignore class 0 set ignore_zero */
        double label_smoothing LG_DEFAULT; /* 0; in [0, 1] */
        bool ignore_zero LG_DEFAULT;
} lg_cross_entropy_options;
/* -log softmax(x)[target]: x (N, C, ...) scores or (C), target (N, ...) i64 or () class indices; rows whose target is
 * ignore_index do not count. A target outside [0, C) is told at the next read or wait. */
#define lg_cross_entropy(x, ...) lg_cross_entropy_((x), LG_INIT(lg_cross_entropy_options){.target = __VA_ARGS__})
LG_API lg_tensor *lg_cross_entropy_(lg_tensor *x, lg_cross_entropy_options o);
typedef struct lg_loss_options {
        lg_tensor *target LG_DEFAULT;
        lg_reduction reduction LG_DEFAULT;
} lg_loss_options;
/* (x - target)^2; x and target of one shape. */
#define lg_mse(x, ...) lg_mse_((x), LG_INIT(lg_loss_options){.target = __VA_ARGS__})
LG_API lg_tensor *lg_mse_(lg_tensor *x, lg_loss_options o);

LG_END_C
#endif
