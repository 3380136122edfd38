/* rmsprop.c - RMSprop (Hinton 2012, Graves 2013); PyTorch's torch.optim.RMSprop.
 *
 * v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + eps); .centered: v - (running mean of g)^2 replaces v; with
 * momentum, b = momentum b + the quotient, p -= lr b. */
#include "optim.h"

static const lg__rule rule = {.name = "lg_rmsprop",
                              .update = LG__UPDATE_rmsprop,
                              .states = {"square_avg", "grad_avg", "momentum_buffer"},
                              .momentum_state = 4,
                              .eps = true};

lg_optimizer *lg_rmsprop_with(lg_ctx *c, lg_list_in params, double lr, const lg_rmsprop_options *options)
{
        lg_rmsprop_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        o.alpha = lg__option(o.alpha, 0.99);
        o.eps = lg__option(o.eps, 1e-8);
        o.momentum = lg__option(o.momentum, 0);
        if (!lg__option_check(c, rule.name, "alpha", o.alpha) || !lg__option_check(c, rule.name, "eps", o.eps) ||
            !lg__option_check(c, rule.name, "momentum", o.momentum))
                return NULL;
        lg__group first = {.lr = lr,
                           .weight_decay = lg__option(o.weight_decay, 0),
                           .momentum = o.momentum,
                           .eps = o.eps,
                           .states = 1u | (o.centered ? 2u : 0) | (o.momentum != 0 ? rule.momentum_state : 0),
                           .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
