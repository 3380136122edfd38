/* lion.c - Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms").
 *
 * p *= 1 - lr weight_decay; p -= lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g. */
#include "optim.h"

static const lg__rule rule = {.name = "lg_lion", .update = LG__UPDATE_lion, .states = {"exp_avg"}, .betas = true};

lg_optimizer *lg_lion_with(lg_ctx *c, lg_list_in params, double lr, const lg_lion_options *options)
{
        lg_lion_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        const lg__group first = {.lr = lr,
                                 .weight_decay = lg__option(o.weight_decay, 0),
                                 .beta1 = lg__option(o.beta1, 0.9),
                                 .beta2 = lg__option(o.beta2, 0.99),
                                 .states = 1,
                                 .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
