/* cyclic.c - schedules that repeat: cosines with warm restarts (Loshchilov and Hutter 2017; PyTorch's
 * CosineAnnealingWarmRestarts) and cycles (Smith 2017; PyTorch's CyclicLR). */
#include "schedule.h"

static double restarts_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        double period = (double)s->span, at = (double)t;
        if (s->factor == 1)
                at = fmod(at, period);
        for (; at >= period; period *= s->factor)
                at -= period;
        return s->low + (lr0 - s->low) * (1 + cos(M_PI * at / period)) / 2;
}

lg_scheduler *lg_cosine_restarts_lr_with(lg_optimizer *opt, int64_t t_0, const lg_cosine_restarts_options *options)
{
        lg_cosine_restarts_options o;
        lg_scheduler like = {.name = "lg_cosine_restarts_lr", .rate = restarts_rate, .span = t_0};
        if (!lg__schedule_take(opt, like.name, options, &o, sizeof o))
                return NULL;
        like.low = lg__option(o.eta_min, 0);
        like.factor = o.t_mult ? (double)o.t_mult : 1;
        if (!lg__schedule_positive(opt, like.name, "t_0", (double)t_0) ||
            !lg__schedule_positive(opt, like.name, "t_mult", like.factor) ||
            !lg__option_check(opt->object.ctx, like.name, "eta_min", like.low))
                return NULL;
        return lg__scheduler_new(opt, &like);
}

/* Returns how far step t is in its cycle, from 0 to the height of the cycle, which is 1 at first, and back. */
static double height(const lg_scheduler *s, int64_t t)
{
        const lg_cyclic_options *o = &s->o.cycles;
        const double up = (double)o->step_size_up, all = up + (double)o->step_size_down, ratio = up / all;
        const double cycle = floor(1 + (double)t / all), x = 1 + (double)t / all - cycle;
        const double scale = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
        switch (o->mode) {
        case LG_CYCLIC_TRIANGULAR2:
                return scale * pow(2, 1 - cycle);
        case LG_CYCLIC_EXP_RANGE:
                return scale * pow(o->gamma, (double)t);
        default:
                return scale;
        }
}

static double rate(const lg_scheduler *s, int64_t t, double lr0)
{
        (void)lr0;
        return s->begin + (s->end - s->begin) * height(s, t);
}

static double momentum(const lg_scheduler *s, int64_t t)
{
        const lg_cyclic_options *o = &s->o.cycles;
        return o->max_momentum - (o->max_momentum - o->base_momentum) * height(s, t);
}

lg_scheduler *lg_cyclic_lr_with(lg_optimizer *opt, double base_lr, double max_lr, const lg_cyclic_options *options)
{
        const char *name = "lg_cyclic_lr";
        lg_cyclic_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o))
                return NULL;
        lg_ctx *c = opt->object.ctx;
        base_lr = lg__option(base_lr, 0);
        o.step_size_up = o.step_size_up ? o.step_size_up : 2000;
        o.step_size_down = o.step_size_down ? o.step_size_down : o.step_size_up;
        o.gamma = lg__option(o.gamma, 1);
        o.base_momentum = lg__option(o.base_momentum, 0.8);
        o.max_momentum = lg__option(o.max_momentum, 0.9);
        if (o.step_size_up < 1 || o.step_size_down < 1 || (unsigned)o.mode > LG_CYCLIC_EXP_RANGE)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: step_size_up is %lld and step_size_down %lld, which must be above 0; mode is %d",
                                name, (long long)o.step_size_up, (long long)o.step_size_down, (int)o.mode);
        if (!lg__option_check(c, name, "base_lr", base_lr) || !lg__option_check(c, name, "max_lr", max_lr) ||
            !lg__option_check(c, name, "gamma", o.gamma) ||
            (!o.no_cycle_momentum && !lg__schedule_momentum(opt, name, o.base_momentum, o.max_momentum)))
                return NULL;
        return lg__scheduler_new(opt, &(lg_scheduler){.name = name,
                                                      .rate = rate,
                                                      .absolute = true,
                                                      .momentum = o.no_cycle_momentum ? NULL : momentum,
                                                      .begin = base_lr,
                                                      .end = max_lr,
                                                      .o.cycles = o});
}
