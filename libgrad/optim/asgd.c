/* asgd.c - averaged stochastic gradient descent (Polyak and Juditsky 1992); PyTorch's torch.optim.ASGD.
 *
 * e = lr / (1 + lambd lr (t - 1))^alpha; p -= e (g + lambd p); a += (p - a) / max(1, t - 1 - t0). */
#include "optim.h"

static const lg__rule rule = {.name = "lg_asgd", .update = LG__UPDATE_asgd, .states = {"ax"}};

lg_optimizer *lg_asgd_with(lg_ctx *c, lg_list_in params, double lr, const lg_asgd_options *options)
{
        lg_asgd_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        o.lambd = lg__option(o.lambd, 1e-4);
        o.alpha = lg__option(o.alpha, 0.75);
        o.t0 = lg__option(o.t0, 1e6);
        if (!lg__option_check(c, rule.name, "lambd", o.lambd) || !lg__option_check(c, rule.name, "alpha", o.alpha) ||
            !lg__option_check(c, rule.name, "t0", o.t0))
                return NULL;
        const lg__group first = {
                .lr = lr, .weight_decay = lg__option(o.weight_decay, 0), .states = 1, .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
