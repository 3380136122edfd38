/* sgd.c - stochastic gradient descent with momentum; PyTorch's torch.optim.SGD.
 *
 * d = g + weight_decay p; b = momentum b + (1 - dampening) d, at first b = d; p -= lr (nesterov ? d + momentum b : b).
 */
#include "optim.h"

static bool accepts(const lg_optimizer *opt, const lg__group *g, const char *op)
{
        const lg_sgd_options *o = opt->options;
        return !o->nesterov || g->momentum > 0 ||
               lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "%s: nesterov needs momentum above 0; it is %g", op,
                        g->momentum);
}

static const lg__rule rule = {.name = "lg_sgd",
                              .update = LG__UPDATE_sgd,
                              .states = {"momentum_buffer"},
                              .momentum_state = 1,
                              .accepts = accepts};

lg_optimizer *lg_sgd_with(lg_ctx *c, lg_list_in params, double lr, const lg_sgd_options *options)
{
        lg_sgd_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        o.momentum = lg__option(o.momentum, 0);
        o.dampening = lg__option(o.dampening, 0);
        o.weight_decay = lg__option(o.weight_decay, 0);
        if (!lg__option_check(c, rule.name, "momentum", o.momentum))
                return NULL;
        if (!isfinite(o.dampening))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_sgd: dampening is %g", o.dampening);
        if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_sgd: nesterov needs momentum above 0 and no dampening; they are %g and %g",
                                o.momentum, o.dampening);
        lg__group first = {.lr = lr,
                           .weight_decay = o.weight_decay,
                           .momentum = o.momentum,
                           .states = o.momentum != 0 ? rule.momentum_state : 0,
                           .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
