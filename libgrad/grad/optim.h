/* optim.h - optimisers: one fused pass over all parameters. */
#ifndef LG_OPTIM_H
#define LG_OPTIM_H

#include "grad/base.h"

LG_BEGIN

/* The formulas are PyTorch's (torch.optim.SGD, torch.optim.Adam). Parameters are float leaves that require grad;
 * those without a gradient are left alone. The optimiser belongs to the context. */
typedef struct lg_sgd_options {
        double lr LG_DEFAULT;
        double momentum LG_DEFAULT;
        double dampening LG_DEFAULT;
        double weight_decay LG_DEFAULT;
        bool nesterov LG_DEFAULT;
        bool maximize LG_DEFAULT;
} lg_sgd_options;
#define lg_sgd(c, params, ...) lg_sgd_((c), (params), LG_INIT(lg_sgd_options){.lr = (double)__VA_ARGS__})
LG_API lg_optimizer *lg_sgd_(lg_ctx *c, lg_list params, lg_sgd_options o);

typedef struct lg_adam_options {
        double lr LG_DEFAULT;
        double beta1 LG_DEFAULT; /* 0.9 */
        double beta2 LG_DEFAULT; /* 0.999 */
        double eps LG_DEFAULT;   /* 1e-8 */
        double weight_decay LG_DEFAULT;
        bool decoupled LG_DEFAULT; /* AdamW's weight decay */
        bool maximize LG_DEFAULT;
        bool amsgrad LG_DEFAULT; /* the greatest second moment so far */
} lg_adam_options;
#define lg_adam(c, params, ...) lg_adam_((c), (params), LG_INIT(lg_adam_options){.lr = (double)__VA_ARGS__})
LG_API lg_optimizer *lg_adam_(lg_ctx *c, lg_list params, lg_adam_options o);

/* Adam with .decoupled, whose weight_decay is 0.01 unless it is given. */
#define lg_adamw(c, params, ...) lg_adamw_((c), (params), LG_INIT(lg_adam_options){.lr = (double)__VA_ARGS__})
LG_API lg_optimizer *lg_adamw_(lg_ctx *c, lg_list params, lg_adam_options o);

typedef struct lg_rmsprop_options {
        double lr LG_DEFAULT;
        double alpha LG_DEFAULT; /* 0.99 */
        double eps LG_DEFAULT;   /* 1e-8 */
        double weight_decay LG_DEFAULT;
        double momentum LG_DEFAULT;
        bool centered LG_DEFAULT;
        bool maximize LG_DEFAULT;
} lg_rmsprop_options;
#define lg_rmsprop(c, params, ...) lg_rmsprop_((c), (params), LG_INIT(lg_rmsprop_options){.lr = (double)__VA_ARGS__})
LG_API lg_optimizer *lg_rmsprop_(lg_ctx *c, lg_list params, lg_rmsprop_options o);

typedef struct lg_adagrad_options {
        double lr LG_DEFAULT;
        double lr_decay LG_DEFAULT;
        double eps LG_DEFAULT; /* 1e-10 */
        double weight_decay LG_DEFAULT;
        double initial_accumulator_value LG_DEFAULT;
        bool maximize LG_DEFAULT;
} lg_adagrad_options;
#define lg_adagrad(c, params, ...) lg_adagrad_((c), (params), LG_INIT(lg_adagrad_options){.lr = (double)__VA_ARGS__})
LG_API lg_optimizer *lg_adagrad_(lg_ctx *c, lg_list params, lg_adagrad_options o);

/* More parameters, with a learning rate and weight decay of their own; what is not given is group 0's. The parameters
 * that the optimiser was made with are group 0. lg_add_group(opt, lg_parameters(head), .lr = 1e-2) */
typedef struct lg_group_options {
        lg_list params LG_DEFAULT;
        double lr LG_DEFAULT;
        double weight_decay LG_DEFAULT;
} lg_group_options;
#define lg_add_group(opt, ...) lg_add_group_((opt), LG_INIT(lg_group_options){.params = __VA_ARGS__})
LG_API bool lg_add_group_(lg_optimizer *opt, lg_group_options o);
LG_API int lg_group_count(const lg_optimizer *opt);
LG_API double lg_get_group_lr(const lg_optimizer *opt, int group); /* NAN: there is no such group */
LG_API bool lg_set_group_lr(lg_optimizer *opt, int group, double lr);

/* One update of all parameters. On failure, none is changed. */
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
        double max_norm LG_DEFAULT;
        double p LG_DEFAULT;         /* 2; INFINITY: the greatest element */
        lg_tensor **norm LG_DEFAULT; /* gets the norm before, 0-d */
} lg_clip_options;
#define lg_clip_grad_norm(params, ...)                                                                                 \
        lg_clip_grad_norm_((params), LG_INIT(lg_clip_options){.max_norm = (double)__VA_ARGS__})
LG_API bool lg_clip_grad_norm_(lg_list params, lg_clip_options o);
/* Clamps each element of the gradients to [-value, value], in place. */
LG_API bool lg_clip_grad_value(lg_list params, double value);

LG_END_C
#endif
