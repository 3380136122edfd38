/* adam.c - Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019); PyTorch's torch.optim.Adam and AdamW.
 *
 * m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps), t counted for each parameter.
 */
#include "optim.h"

static bool run(const lg_optimizer *opt, lg__device *d, const lg_update *updates, int64_t count, int64_t step)
{
        const lg_adam_options *o = &opt->o.adam;
        lg_adam_args a = {.count = count,
                          .updates = updates,
                          .lr = opt->lr,
                          .beta1 = o->beta1,
                          .beta2 = o->beta2,
                          .eps = o->eps,
                          .weight_decay = o->weight_decay,
                          .decoupled = o->decoupled,
                          .maximize = o->maximize,
                          .step = step + 1};
        return LG__RUN(d, "lg_step (adam)", adam, &a);
}

static const lg__rule rule = {"lg_adam", run};

static bool beta_is_good(lg_ctx *c, const char *name, double beta)
{
        if (beta >= 0 && beta < 1)
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "lg_adam: %s is %g; it must be in [0, 1)", name, beta);
}

lg_optimizer *lg_adam_(lg_ctx *c, lg_list params, lg_adam_options o)
{
        o.beta1 = lg__option(o.beta1, 0.9);
        o.beta2 = lg__option(o.beta2, 0.999);
        o.eps = lg__option(o.eps, 1e-8);
        o.weight_decay = lg__option(o.weight_decay, 0);
        if (!lg__ok(c) || !beta_is_good(c, "beta1", o.beta1) || !beta_is_good(c, "beta2", o.beta2) ||
            !lg__option_check(c, rule.name, "eps", o.eps) ||
            !lg__option_check(c, rule.name, "weight_decay", o.weight_decay))
                return NULL;
        lg_optimizer *opt = lg__optimizer_new(c, &rule, params, o.lr, 2);
        if (opt)
                opt->o.adam = o;
        return opt;
}
