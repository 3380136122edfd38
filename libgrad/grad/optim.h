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
} lg_adam_options;
#define lg_adam(c, params, ...) lg_adam_((c), (params), LG_INIT(lg_adam_options){.lr = (double)__VA_ARGS__})
LG_API lg_optimizer *lg_adam_(lg_ctx *c, lg_list params, lg_adam_options o);

/* One update of all parameters. On failure, none is changed. */
LG_API bool lg_step(lg_optimizer *opt);
/* Forgets the gradients of all its parameters. */
LG_API bool lg_zero_grad(lg_optimizer *opt);
LG_API double lg_get_lr(const lg_optimizer *opt);
LG_API bool lg_set_lr(lg_optimizer *opt, double lr);
LG_API void lg_optimizer_free(lg_optimizer *opt);

LG_END_C
#endif
