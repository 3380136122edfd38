/* optim.h - optimisers: one fused pass over all parameters. */
#ifndef LG_OPTIM_H
#define LG_OPTIM_H

#include "grad/base.h"

LG_BEGIN

/* The formulas are PyTorch's (torch.optim.SGD, torch.optim.Adam). Parameters are float leaves that require grad;
 * those without a gradient are left alone. The optimiser belongs to the context. */
typedef struct lg_sgd_options {
        LG_OPTIONS_HEAD
        double momentum LG_DEFAULT;
        double dampening LG_DEFAULT;
        double weight_decay LG_DEFAULT;
        bool nesterov LG_DEFAULT;
        bool maximize LG_DEFAULT;
} lg_sgd_options;
#define lg_sgd(...) LG_CALL3(lg_sgd_with, lg_sgd_options, lg_sgd_takes_c_params_lr, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_sgd_with(lg_ctx *c, lg_list_in params, double lr, const lg_sgd_options *options);

typedef struct lg_adam_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT; /* 0.9 */
        double beta2 LG_DEFAULT; /* 0.999 */
        double eps LG_DEFAULT;   /* 1e-8 */
        double weight_decay LG_DEFAULT;
        bool decoupled LG_DEFAULT; /* AdamW's weight decay */
        bool maximize LG_DEFAULT;
        bool amsgrad LG_DEFAULT; /* the greatest second moment so far */
} lg_adam_options;
#define lg_adam(...) LG_CALL3(lg_adam_with, lg_adam_options, lg_adam_takes_c_params_lr, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adam_with(lg_ctx *c, lg_list_in params, double lr, const lg_adam_options *options);

/* Adam with .decoupled, whose weight_decay is 0.01 unless it is given. */
#define lg_adamw(...) LG_CALL3(lg_adamw_with, lg_adam_options, lg_adamw_takes_c_params_lr, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adamw_with(lg_ctx *c, lg_list_in params, double lr, const lg_adam_options *options);

typedef struct lg_rmsprop_options {
        LG_OPTIONS_HEAD
        double alpha LG_DEFAULT; /* 0.99 */
        double eps LG_DEFAULT;   /* 1e-8 */
        double weight_decay LG_DEFAULT;
        double momentum LG_DEFAULT;
        bool centered LG_DEFAULT;
        bool maximize LG_DEFAULT;
} lg_rmsprop_options;
#define lg_rmsprop(...) LG_CALL3(lg_rmsprop_with, lg_rmsprop_options, lg_rmsprop_takes_c_params_lr, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_rmsprop_with(lg_ctx *c, lg_list_in params, double lr, const lg_rmsprop_options *options);

typedef struct lg_adagrad_options {
        LG_OPTIONS_HEAD
        double lr_decay LG_DEFAULT;
        double eps LG_DEFAULT; /* 1e-10 */
        double weight_decay LG_DEFAULT;
        double initial_accumulator_value LG_DEFAULT;
        bool maximize LG_DEFAULT;
} lg_adagrad_options;
#define lg_adagrad(...) LG_CALL3(lg_adagrad_with, lg_adagrad_options, lg_adagrad_takes_c_params_lr, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adagrad_with(lg_ctx *c, lg_list_in params, double lr, const lg_adagrad_options *options);

/* More parameters, with numbers of their own; what is not given is what group 0 has now, LG_ZERO is zero. Group 0 are
 * the parameters that the optimiser was made with. An option that the optimiser does not have (momentum of Adam, beta1
 * of SGD) is LG_ERR_ARGUMENT. lg_add_group(opt, lg_parameters(head), .lr = 1e-2) */
typedef struct lg_group_options {
        LG_OPTIONS_HEAD
        double lr LG_DEFAULT;
        double weight_decay LG_DEFAULT;
        double momentum LG_DEFAULT; /* SGD, RMSprop */
        double beta1 LG_DEFAULT;    /* Adam */
        double beta2 LG_DEFAULT;
        double eps LG_DEFAULT; /* Adam, RMSprop, Adagrad */
} lg_group_options;
#define lg_add_group(...) LG_CALL2(lg_add_group_with, lg_group_options, lg_add_group_takes_opt_params, __VA_ARGS__)
LG_API bool lg_add_group_with(lg_optimizer *opt, lg_list_in params, const lg_group_options *options);
LG_API int lg_group_count(const lg_optimizer *opt);
LG_API double lg_get_group_lr(const lg_optimizer *opt, int group); /* NAN: there is no such group */
LG_API bool lg_set_group_lr(lg_optimizer *opt, int group, double lr);

/* One update of all parameters. On failure, none is changed; only where an update takes several kernels (parameters on
 * several devices, or of unequal numbers of steps) and a later one fails, those updated before stay updated. */
LG_API bool lg_step(lg_optimizer *opt);
/* Forgets the gradients of all its parameters. */
LG_API bool lg_zero_grad(lg_optimizer *opt);
LG_API double lg_get_lr(const lg_optimizer *opt);    /* of group 0 */
LG_API bool lg_set_lr(lg_optimizer *opt, double lr); /* of all groups */
LG_API void lg_optimizer_free(lg_optimizer *opt);

/* Scales the gradients of the parameters, in place, so that the p-norm of all of them together is at most max_norm:
 * by min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. Nothing waits. Parameters without a
 * gradient are left out; gradients on two devices are LG_ERR_DEVICE. lg_clip_grad_norm(lg_parameters(net), 1) */
typedef struct lg_clip_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT;         /* 2; INFINITY: the greatest element */
        lg_tensor **norm LG_DEFAULT; /* gets the norm before, 0-d */
} lg_clip_options;
#define lg_clip_grad_norm(...)                                                                                         \
        LG_CALL2(lg_clip_grad_norm_with, lg_clip_options, lg_clip_grad_norm_takes_params_max_norm, __VA_ARGS__)
LG_API bool lg_clip_grad_norm_with(lg_list_in params, double max_norm, const lg_clip_options *options);
/* Clamps each element of the gradients to [-value, value], in place. */
LG_API bool lg_clip_grad_value(lg_list_in params, double value);

LG_END_C
#endif
