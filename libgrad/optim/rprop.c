/* rprop.c - Rprop (Riedmiller and Braun 1993); PyTorch's torch.optim.Rprop.
 *
 * Each element has a step size s, which grows while its gradient keeps its sign and shrinks when the sign changes;
 * p -= s sign(g), but no step after a change. */
#include "optim.h"

static const lg__rule rule = {
        .name = "lg_rprop", .update = LG__UPDATE_rprop, .states = {"prev", "step_size"}, .no_decay = true};

lg_optimizer *lg_rprop_with(lg_ctx *c, lg_list_in params, double lr, const lg_rprop_options *options)
{
        lg_rprop_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        o.eta_minus = lg__option(o.eta_minus, 0.5);
        o.eta_plus = lg__option(o.eta_plus, 1.2);
        o.step_min = lg__option(o.step_min, 1e-6);
        o.step_max = lg__option(o.step_max, 50);
        if (!(o.eta_minus > 0 && o.eta_minus < 1 && o.eta_plus > 1 && isfinite(o.eta_plus)))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: eta_minus is %g and eta_plus %g; they must be in (0, 1) and above 1", rule.name,
                                o.eta_minus, o.eta_plus);
        if (!(o.step_min >= 0 && o.step_max >= o.step_min && isfinite(o.step_max)))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: step_min is %g and step_max %g; they must be 0 or more and rise", rule.name,
                                o.step_min, o.step_max);
        const lg__group first = {.lr = lr, .states = 3, .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
