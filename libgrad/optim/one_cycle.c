/* one_cycle.c - the learning rate rises, falls, and falls further (Smith and Topin 2018; PyTorch's OneCycleLR). */
#include "schedule.h"

/* Returns the number at step t that changes through value[0 .. 3] in three phases; the last one may have no length. */
static double cycle(const lg_scheduler *s, int64_t t, const double value[4])
{
        const lg_one_cycle_options *o = &s->o.cycle;
        const double rise = o->pct_start * (double)s->span, end = (double)(s->span - 1), step = (double)t;
        const double ends[] = {rise - 1, o->three_phase ? 2 * rise - 2 : end, end};
        double begin = 0;
        int i = 0;
        while (i < 2 && step > ends[i])
                begin = ends[i++];
        /* A phase of no length, and the step after the last batch, have the value at the end of the phase. */
        const double share = ends[i] > begin ? fmin(1, (step - begin) / (ends[i] - begin)) : 1;
        const double from = value[i], to = value[i + 1];
        return o->linear ? from + (to - from) * share : to + (from - to) / 2 * (1 + cos(M_PI * share));
}

static double rate(const lg_scheduler *s, int64_t t, double lr0)
{
        const lg_one_cycle_options *o = &s->o.cycle;
        const double top = s->end, first = top / o->div_factor, last = first / o->final_div_factor;
        (void)lr0;
        if (t > s->span) /* the step after the last batch is allowed, as in PyTorch */
                lg__fail(s->object.ctx, LG_ERR_STATE, "lg_scheduler_step: one cycle has %lld steps; this is one more",
                         (long long)s->span);
        return cycle(s, t, (const double[]){first, top, o->three_phase ? first : last, last});
}

static double momentum(const lg_scheduler *s, int64_t t)
{
        const double high = s->o.cycle.max_momentum, low = s->o.cycle.base_momentum;
        return cycle(s, t, (const double[]){high, low, high, high});
}

bool lg__schedule_momentum(const lg_optimizer *opt, const char *name, double base, double most)
{
        lg_ctx *c = opt->object.ctx;
        if (!lg__fraction_check(c, name, "base_momentum", base) || !lg__fraction_check(c, name, "max_momentum", most))
                return false;
        for (int i = 0; i < opt->group_count; i++)
                if (!(opt->groups[i].momentum > 0))
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "%s: group %d of the optimiser has no momentum to be cycled; give it some, or "
                                        "set .no_cycle_momentum",
                                        name, i);
        return true;
}

lg_scheduler *lg_one_cycle_lr_with(lg_optimizer *opt, double max_lr, int64_t total_steps,
                                   const lg_one_cycle_options *options)
{
        const char *name = "lg_one_cycle_lr";
        lg_one_cycle_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o))
                return NULL;
        lg_ctx *c = opt->object.ctx;
        o.pct_start = lg__option(o.pct_start, 0.3);
        o.div_factor = lg__option(o.div_factor, 25);
        o.final_div_factor = lg__option(o.final_div_factor, 1e4);
        o.base_momentum = lg__option(o.base_momentum, 0.85);
        o.max_momentum = lg__option(o.max_momentum, 0.95);
        if (total_steps < 1 || !(o.pct_start >= 0 && o.pct_start <= 1) || !(max_lr > 0) || isinf(max_lr) ||
            !(o.div_factor > 0) || !(o.final_div_factor > 0))
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: total_steps %lld, max_lr %g, div_factor %g and final_div_factor %g must be above 0, "
                        "max_lr finite, pct_start %g in [0, 1]",
                        name, (long long)total_steps, max_lr, o.div_factor, o.final_div_factor, o.pct_start);
        if (!o.no_cycle_momentum && !lg__schedule_momentum(opt, name, o.base_momentum, o.max_momentum))
                return NULL;
        lg_scheduler *s = lg__scheduler_new(opt, &(lg_scheduler){.name = name,
                                                                 .rate = rate,
                                                                 .absolute = true,
                                                                 .momentum = o.no_cycle_momentum ? NULL : momentum,
                                                                 .span = total_steps,
                                                                 .end = max_lr,
                                                                 .o.cycle = o});
        for (int g = 0; s && g < s->groups; g++)
                opt->groups[g].initial_lr = max_lr / o.div_factor;
        return s;
}
