/* muon.c - Muon (Jordan et al. 2024): matrices get updates made orthogonal by Newton-Schulz iterations, other
 * parameters those of AdamW; PyTorch's torch.optim.Muon. */
#include "optim.h"

enum { BUFFER, AVERAGES }; /* the states: that of a matrix, and the first one of AdamW */

static unsigned states_of(const lg_tensor *param)
{
        return param->at.shape.ndim == 2 ? 1u << BUFFER : 3u << AVERAGES;
}

/* Returns the matrix x with singular values near 1. */
static lg_tensor *orthogonal(const lg_muon_options *o, lg_tensor *x)
{
        const bool tall = x->at.shape.size[0] > x->at.shape.size[1];
        x = tall ? lg_transpose(x, 0, 1) : x;
        x = lg_div(x, lg_maximum_scalar(lg_norm(x), o->eps));
        for (int64_t i = 0; i < o->ns_steps; i++) {
                lg_tensor *y = lg_matmul(x, lg_transpose(x, 0, 1));
                lg_tensor *z = lg_add(lg_mul_scalar(y, o->ns_b), lg_mul_scalar(lg_matmul(y, y), o->ns_c));
                x = lg_add(lg_mul_scalar(x, o->ns_a), lg_matmul(z, x));
        }
        return tall ? lg_transpose(x, 0, 1) : x;
}

/* Returns the factor of the rate for a matrix. */
static double adjusted(const lg_muon_options *o, lg_shape shape)
{
        const double rows = (double)shape.size[0], columns = (double)shape.size[1];
        switch (o->adjust_lr) {
        case LG_MUON_MATCH_RMS_ADAMW:
                return 0.2 * sqrt(fmax(rows, columns));
        case LG_MUON_SPECTRAL_UNCLAMPED:
                return sqrt(rows / columns);
        default:
                return sqrt(fmax(1, rows / columns));
        }
}

static void numbers(const lg_optimizer *opt, const lg__slot *s, double *ret)
{
        const lg_muon_options *o = opt->options;
        const lg__group *g = &opt->groups[s->group];
        if (s->param->at.shape.ndim == 2)
                lg__adam_numbers(ret, g->lr * adjusted(o, s->param->at.shape), g->momentum, 0);
        else
                lg__adam_numbers(ret, g->lr, o->beta1, o->beta2);
}

static bool compute(lg__computation *k)
{
        const lg_muon_options *o = k->opt->options;
        lg_tensor *x;
        if (k->param->at.shape.ndim != 2) {
                x = lg__adam_direction(k, AVERAGES, o->adamw_eps, o->maximize);
        } else {
                lg_tensor *grad = o->maximize ? lg_neg(k->grad) : k->grad;
                lg_tensor *b = k->next[BUFFER] = lg_lerp(k->state[BUFFER], grad, lg__number(k, LG__REST1));
                x = orthogonal(o, o->no_nesterov ? b : lg_lerp(grad, b, lg__number(k, LG__BETA1)));
        }
        return (k->change = lg_mul(x, lg__number(k, LG__RATE))) != NULL;
}

static const lg__rule rule = {.name = "lg_muon",
                              .update = LG__UPDATE_descend,
                              .states = {"momentum_buffer", "exp_avg", "exp_avg_sq"},
                              .momentum_state = 1u << BUFFER,
                              .decays = true,
                              .compute = compute,
                              .numbers = numbers,
                              .states_of = states_of};

lg_optimizer *lg_muon_with(lg_ctx *c, lg_list_in params, double lr, const lg_muon_options *options)
{
        lg_muon_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        o.momentum = lg__option(o.momentum, 0.95);
        o.eps = lg__option(o.eps, 1e-7);
        o.ns_a = lg__option(o.ns_a, 3.4445);
        o.ns_b = lg__option(o.ns_b, -4.775);
        o.ns_c = lg__option(o.ns_c, 2.0315);
        o.ns_steps = lg__whole_option(o.ns_steps, 5);
        o.beta1 = lg__option(o.beta1, 0.9);
        o.beta2 = lg__option(o.beta2, 0.999);
        o.adamw_eps = lg__option(o.adamw_eps, 1e-8);
        if (!lg__option_check(c, rule.name, "momentum", o.momentum) || !lg__option_check(c, rule.name, "eps", o.eps) ||
            !lg__fraction_check(c, rule.name, "beta1", o.beta1) ||
            !lg__fraction_check(c, rule.name, "beta2", o.beta2) ||
            !lg__option_check(c, rule.name, "adamw_eps", o.adamw_eps))
                return NULL;
        if (!isfinite(o.ns_a) || !isfinite(o.ns_b) || !isfinite(o.ns_c) || o.ns_steps < 0 || o.ns_steps >= 100)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: ns_steps is %lld, and the coefficients %g, %g, %g; they must be from 0 to 99 and finite",
                        rule.name, (long long)o.ns_steps, o.ns_a, o.ns_b, o.ns_c);
        if ((unsigned)o.adjust_lr > LG_MUON_SPECTRAL_UNCLAMPED)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: adjust_lr %d is no value of lg_muon_lr", rule.name,
                                (int)o.adjust_lr);
        const lg__group first = {
                .lr = lr, .weight_decay = lg__option(o.weight_decay, 0.1), .momentum = o.momentum, .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
