/* adadelta.c - Adadelta (Zeiler 2012); PyTorch's torch.optim.Adadelta.
 *
 * v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2; p -= lr d. */
#include "optim.h"

static const lg__rule rule = {
        .name = "lg_adadelta", .update = LG__UPDATE_adadelta, .states = {"square_avg", "acc_delta"}, .eps = true};

lg_optimizer *lg_adadelta_with(lg_ctx *c, lg_list_in params, double lr, const lg_adadelta_options *options)
{
        lg_adadelta_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        o.rho = lg__option(o.rho, 0.9);
        o.eps = lg__option(o.eps, 1e-6);
        if (!lg__fraction_check(c, rule.name, "rho", o.rho) || !lg__option_check(c, rule.name, "eps", o.eps))
                return NULL;
        lg__group first = {
                .lr = lr, .weight_decay = lg__option(o.weight_decay, 0), .eps = o.eps, .states = 3, .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
