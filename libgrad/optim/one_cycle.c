/* one_cycle.c - one cycle of the learning rate: up, down, and further down (Smith and Topin 2018; OneCycleLR). */
#include "schedule.h"

typedef struct phase {
        double end; /* step */
        double from, to, momentum_from, momentum_to;
} phase;

static double between(bool linear, double from, double to, double share)
{
        return linear ? from + (to - from) * share : to + (from - to) / 2 * (1 + cos(M_PI * share));
}

/* The phases of the cycle, which are 2 or 3. */
static int phases_of(const lg_scheduler *s, phase p[3])
{
        const lg_one_cycle_options *o = &s->o.cycle;
        double top = s->max_lr, first = top / o->div_factor, last = first / o->final_div_factor;
        double up = o->pct_start * (double)s->span - 1, end = (double)(s->span - 1);
        double high = o->max_momentum, low = o->base_momentum;
        p[0] = (phase){up, first, top, high, low};
        if (!o->three_phase) {
                p[1] = (phase){end, top, last, low, high};
                return 2;
        }
        p[1] = (phase){2 * o->pct_start * (double)s->span - 2, top, first, low, high};
        p[2] = (phase){end, first, last, high, high};
        return 3;
}

static bool apply(const lg_scheduler *s)
{
        const lg_one_cycle_options *o = &s->o.cycle;
        phase p[3];
        int count = phases_of(s, p), i = 0;
        double step = (double)s->epoch, begin = 0;
        while (i + 1 < count && step > p[i].end)
                begin = p[i++].end;
        /* A phase of no length is at its end, and so is the step after the last batch. */
        double share = p[i].end > begin ? fmin(1, (step - begin) / (p[i].end - begin)) : 1;
        for (int g = 0; g < s->groups; g++) {
                if (!lg__scheduler_set(s, g, between(o->linear, p[i].from, p[i].to, share)))
                        return false;
                if (!o->no_cycle_momentum)
                        s->opt->groups[g].momentum = between(o->linear, p[i].momentum_from, p[i].momentum_to, share);
        }
        return true;
}

static bool step(lg_scheduler *s)
{
        if (s->epoch >= s->span) /* the one after the last batch is let pass, as in PyTorch */
                return lg__fail(s->object.ctx, LG_ERR_STATE,
                                "lg_scheduler_step: one cycle has %lld steps; this is one more", (long long)s->span);
        s->epoch++;
        return apply(s);
}

/* Momentum is there to be cycled: a group with none has no buffer for it. */
static bool has_momentum(const lg_optimizer *opt, const char *name)
{
        lg_ctx *c = opt->object.ctx;
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
        if (!o.no_cycle_momentum &&
            (!lg__fraction_check(c, name, "base_momentum", o.base_momentum) ||
             !lg__fraction_check(c, name, "max_momentum", o.max_momentum) || !has_momentum(opt, name)))
                return NULL;
        lg_scheduler *s = lg__scheduler_new(
                opt, &(lg_scheduler){.name = name, .step = step, .span = total_steps, .o.cycle = o, .max_lr = max_lr});
        if (!s)
                return NULL;
        for (int g = 0; g < s->groups; g++)
                opt->groups[g].initial_lr = max_lr / o.div_factor;
        return apply(s) ? s : lg__scheduler_give_up(s);
}
