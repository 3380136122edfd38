/* lamb.c - LAMB (You et al. 2020, "Large batch optimization for deep learning"), and the update of Adam by ops.
 *
 * u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p; p -= lr |p| / |u| u. */
#include "optim.h"

void lg__adam_numbers(double *ret, double lr, double beta1, double beta2)
{
        ret[LG__RATE] = lr;
        ret[LG__BETA1] = beta1;
        ret[LG__REST1] = 1 - beta1;
        ret[LG__LOG_BETA1] = log(beta1);
        ret[LG__BETA2] = beta2;
        ret[LG__REST2] = 1 - beta2;
        ret[LG__LOG_BETA2] = log(beta2);
}

/* Returns 1 - beta^step, 0-d. */
static lg_tensor *correction(const lg__computation *k, int log_beta)
{
        lg_tensor *power = lg_exp(lg_mul(k->step, lg_select(k->exact, 0, log_beta)));
        return lg_cast(lg_rsub_scalar(power, 1), k->param->at.dtype);
}

lg_tensor *lg__adam_direction(lg__computation *k, int first, double eps, bool maximize)
{
        lg_tensor *g = maximize ? lg_neg(k->grad) : k->grad, *m = k->state[first], *v = k->state[first + 1];
        m = lg_add(lg_mul(m, lg__number(k, LG__BETA1)), lg_mul(g, lg__number(k, LG__REST1)));
        v = lg_add(lg_mul(v, lg__number(k, LG__BETA2)), lg_mul(lg_square(g), lg__number(k, LG__REST2)));
        k->next[first] = m;
        k->next[first + 1] = v;
        lg_tensor *root = lg_sqrt(lg_div(v, correction(k, LG__LOG_BETA2)));
        return lg_div(lg_div(m, correction(k, LG__LOG_BETA1)), lg_add_scalar(root, eps));
}

static void numbers(const lg_optimizer *opt, const lg__slot *s, double *ret)
{
        const lg__group *g = &opt->groups[s->group];
        lg__adam_numbers(ret, g->lr, g->beta1, g->beta2);
        ret[LG__DECAY] = g->weight_decay;
}

static bool compute(lg__computation *k)
{
        const lg_lamb_options *o = k->opt->options;
        lg_tensor *u = lg__adam_direction(k, 0, k->group->eps, o->maximize);
        u = lg_add(u, lg_mul(k->param, lg__number(k, LG__DECAY)));
        lg_tensor *p_norm = lg_norm(k->param), *u_norm = lg_norm(u), *some = lg_gt_scalar(lg_mul(p_norm, u_norm), 0);
        lg_tensor *ratio = lg_where(some, lg_div(p_norm, u_norm), lg_ones_like(u_norm));
        return (k->change = lg_mul(u, lg_mul(ratio, lg__number(k, LG__RATE)))) != NULL;
}

static const lg__rule rule = {.name = "lg_lamb",
                              .update = LG__UPDATE_descend,
                              .states = {"exp_avg", "exp_avg_sq"},
                              .betas = true,
                              .eps = true,
                              .compute = compute,
                              .numbers = numbers};

lg_optimizer *lg_lamb_with(lg_ctx *c, lg_list_in params, double lr, const lg_lamb_options *options)
{
        lg_lamb_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        const lg__group first = {.lr = lr,
                                 .weight_decay = lg__option(o.weight_decay, 0.01),
                                 .beta1 = lg__option(o.beta1, 0.9),
                                 .beta2 = lg__option(o.beta2, 0.999),
                                 .eps = lg__option(o.eps, 1e-6),
                                 .states = 3,
                                 .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
