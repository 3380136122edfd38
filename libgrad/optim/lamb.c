/* lamb.c - LAMB (You et al. 2020, "Large batch optimization for deep learning"), and the update of Adam by ops.
 *
 * u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p; p -= lr |p| / |u| u. */
#include "optim.h"

/* Returns 1 - beta^step, 0-d. */
static lg_tensor *correction(const lg__computation *k, double beta)
{
        lg_tensor *power = lg_exp(lg_mul_scalar(k->step, log(beta)));
        return lg_cast(lg_rsub_scalar(power, 1), k->param->at.dtype);
}

lg_tensor *lg__adam_direction(lg__computation *k, int first, lg__adam_numbers a, bool maximize)
{
        lg_tensor *g = maximize ? lg_neg(k->grad) : k->grad, *m = k->state[first], *v = k->state[first + 1];
        m = lg_add(lg_mul_scalar(m, a.beta1), lg_mul_scalar(g, 1 - a.beta1));
        v = lg_add(lg_mul_scalar(v, a.beta2), lg_mul_scalar(lg_square(g), 1 - a.beta2));
        k->next[first] = m;
        k->next[first + 1] = v;
        lg_tensor *root = lg_sqrt(lg_div(v, correction(k, a.beta2)));
        return lg_div(lg_div(m, correction(k, a.beta1)), lg_add_scalar(root, a.eps));
}

lg_tensor *lg__times_rate(const lg__computation *k, lg_tensor *x, double factor)
{
        lg_tensor *rate = factor == 1 ? k->lr : lg_mul_scalar(k->lr, factor);
        return lg_mul(x, lg_cast(rate, k->param->at.dtype));
}

static bool compute(lg__computation *k)
{
        const lg_lamb_options *o = k->opt->options;
        const lg__group *g = k->group;
        const lg__adam_numbers a = {g->beta1, g->beta2, g->eps};
        lg_tensor *u = lg__adam_direction(k, 0, a, o->maximize);
        u = lg_add(u, lg_mul_scalar(k->param, g->weight_decay));
        lg_tensor *p_norm = lg_norm(k->param), *u_norm = lg_norm(u), *some = lg_gt_scalar(lg_mul(p_norm, u_norm), 0);
        lg_tensor *ratio = lg_where(some, lg_div(p_norm, u_norm), lg_ones_like(u_norm));
        return (k->change = lg_mul(u, lg__times_rate(k, ratio, 1))) != NULL;
}

static const lg__rule rule = {.name = "lg_lamb",
                              .update = LG__UPDATE_descend,
                              .states = {"exp_avg", "exp_avg_sq"},
                              .betas = true,
                              .eps = true,
                              .compute = compute};

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
