/* adam.c - Adam and Adamax (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019), AMSGrad (Reddi et al. 2018);
 * PyTorch's torch.optim.Adam, Adamax and AdamW.
 *
 * m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps), t counted for each parameter. Adamax divides m by u
 * = max(beta2 u, |g| + eps). */
#include "optim.h"

static const lg__rule adam = {.name = "lg_adam",
                              .update = LG__UPDATE_adam,
                              .states = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
                              .betas = true,
                              .eps = true},
                      adamw = {.name = "lg_adamw",
                               .update = LG__UPDATE_adam,
                               .states = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
                               .betas = true,
                               .eps = true};

static lg_optimizer *make(lg_ctx *c, const lg__rule *rule, lg_list params, double lr, lg_adam_options o,
                          double weight_decay)
{
        o.beta1 = lg__option(o.beta1, 0.9);
        o.beta2 = lg__option(o.beta2, 0.999);
        o.eps = lg__option(o.eps, 1e-8);
        o.weight_decay = lg__option(o.weight_decay, weight_decay);
        lg__group first = {.lr = lr,
                           .weight_decay = o.weight_decay,
                           .beta1 = o.beta1,
                           .beta2 = o.beta2,
                           .eps = o.eps,
                           .states = o.amsgrad ? 7 : 3,
                           .master = o.master};
        return lg__optimizer_new(c, rule, params, first, &o, sizeof o);
}

lg_optimizer *lg_adam_with(lg_ctx *c, lg_list_in params, double lr, const lg_adam_options *options)
{
        lg_adam_options o;
        return lg__take(c, adam.name, options, &o, sizeof o) ? make(c, &adam, params, lr, o, 0) : NULL;
}

lg_optimizer *lg_adamw_with(lg_ctx *c, lg_list_in params, double lr, const lg_adamw_options *options)
{
        lg_adamw_options o;
        if (!lg__take(c, adamw.name, options, &o, sizeof o))
                return NULL;
        const lg_adam_options a = {.beta1 = o.beta1,
                                   .beta2 = o.beta2,
                                   .eps = o.eps,
                                   .weight_decay = o.weight_decay,
                                   .decoupled = true,
                                   .maximize = o.maximize,
                                   .amsgrad = o.amsgrad,
                                   .master = o.master};
        return make(c, &adamw, params, lr, a, 0.01);
}

static const lg__rule adamax = {
        .name = "lg_adamax", .update = LG__UPDATE_adamax, .states = {"exp_avg", "exp_inf"}, .betas = true, .eps = true};

lg_optimizer *lg_adamax_with(lg_ctx *c, lg_list_in params, double lr, const lg_adamax_options *options)
{
        lg_adamax_options o;
        if (!lg__take(c, adamax.name, options, &o, sizeof o))
                return NULL;
        lg__group first = {.lr = lr,
                           .weight_decay = lg__option(o.weight_decay, 0),
                           .beta1 = lg__option(o.beta1, 0.9),
                           .beta2 = lg__option(o.beta2, 0.999),
                           .eps = lg__option(o.eps, 1e-8),
                           .states = 3,
                           .master = o.master};
        return lg__optimizer_new(c, &adamax, params, first, &o, sizeof o);
}
