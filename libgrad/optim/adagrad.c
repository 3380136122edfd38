/* adagrad.c - Adagrad (Duchi et al. 2011); PyTorch's torch.optim.Adagrad.
 *
 * s += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps), t counted for each parameter. */
#include "optim.h"

static const lg__rule rule = {.name = "lg_adagrad", .update = LG__UPDATE_adagrad, .states = {"sum"}, .eps = true};

lg_optimizer *lg_adagrad_with(lg_ctx *c, lg_list_in params, double lr, const lg_adagrad_options *options)
{
        lg_adagrad_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        o.lr_decay = lg__option(o.lr_decay, 0);
        o.eps = lg__option(o.eps, 1e-10);
        o.initial_accumulator_value = lg__option(o.initial_accumulator_value, 0);
        if (!lg__option_check(c, rule.name, "lr_decay", o.lr_decay) || !lg__option_check(c, rule.name, "eps", o.eps) ||
            !lg__option_check(c, rule.name, "initial_accumulator_value", o.initial_accumulator_value))
                return NULL;
        lg__group first = {
                .lr = lr, .weight_decay = lg__option(o.weight_decay, 0), .eps = o.eps, .states = 1, .master = o.master};
        lg_optimizer *opt = lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
        if (opt)
                opt->first_state = o.initial_accumulator_value;
        return opt;
}
