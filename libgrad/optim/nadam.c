/* nadam.c - NAdam (Dozat 2016) and RAdam (Liu et al. 2020); PyTorch's torch.optim.NAdam and RAdam.
 *
 * NAdam is Adam with Nesterov momentum, which rises from half of beta1 to beta1. RAdam divides by sqrt(v) only when the
 * average of v is long enough, and then rectifies its variance. */
#include "optim.h"

static const lg__rule nadam = {.name = "lg_nadam",
                               .update = LG__UPDATE_nadam,
                               .states = {"exp_avg", "exp_avg_sq"},
                               .betas = true,
                               .eps = true},
                      radam = {.name = "lg_radam",
                               .update = LG__UPDATE_radam,
                               .states = {"exp_avg", "exp_avg_sq"},
                               .betas = true,
                               .eps = true};

lg_optimizer *lg_nadam_with(lg_ctx *c, lg_list_in params, double lr, const lg_nadam_options *options)
{
        lg_nadam_options o;
        if (!lg__take(c, nadam.name, options, &o, sizeof o))
                return NULL;
        o.momentum_decay = lg__option(o.momentum_decay, 4e-3);
        const lg__group first = {.lr = lr,
                                 .weight_decay = lg__option(o.weight_decay, 0),
                                 .beta1 = lg__option(o.beta1, 0.9),
                                 .beta2 = lg__option(o.beta2, 0.999),
                                 .eps = lg__option(o.eps, 1e-8),
                                 .states = 3,
                                 .master = o.master};
        return lg__option_check(c, nadam.name, "momentum_decay", o.momentum_decay)
                       ? lg__optimizer_new(c, &nadam, params, first, &o, sizeof o)
                       : NULL;
}

lg_optimizer *lg_radam_with(lg_ctx *c, lg_list_in params, double lr, const lg_radam_options *options)
{
        lg_radam_options o;
        if (!lg__take(c, radam.name, options, &o, sizeof o))
                return NULL;
        const lg__group first = {.lr = lr,
                                 .weight_decay = lg__option(o.weight_decay, 0),
                                 .beta1 = lg__option(o.beta1, 0.9),
                                 .beta2 = lg__option(o.beta2, 0.999),
                                 .eps = lg__option(o.eps, 1e-8),
                                 .states = 3,
                                 .master = o.master};
        return lg__optimizer_new(c, &radam, params, first, &o, sizeof o);
}
