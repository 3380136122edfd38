/* plateau.c - reduces the learning rate when a metric stops improving (PyTorch's ReduceLROnPlateau). */
#include "schedule.h"

static bool better(const lg_scheduler *s, double metric)
{
        const lg_plateau_options *o = &s->o.plateau;
        double margin = o->absolute_threshold ? o->threshold : s->best * o->threshold;
        if (isinf(s->best)) /* infinite before the first metric */
                return o->max_mode ? metric > s->best : metric < s->best;
        return o->max_mode ? metric > s->best + margin : metric < s->best - margin;
}

static void reduce(lg_scheduler *s)
{
        for (int i = 0; i < s->groups; i++) {
                lg__group *g = &s->opt->groups[i];
                double lr = fmax(g->lr * s->factor, s->o.plateau.min_lr);
                if (g->lr - lr > s->o.plateau.eps)
                        g->lr = lr;
        }
}

static double rate(const lg_scheduler *s, int64_t t, double lr0)
{
        if (t > 0)
                lg__fail(s->object.ctx, LG_ERR_STATE,
                         "lg_scheduler_step: lg_reduce_on_plateau needs a metric: lg_scheduler_step_metric()");
        return lr0;
}

bool lg_scheduler_step_metric(lg_scheduler *s, double metric)
{
        const char *op = "lg_scheduler_step_metric";
        if (!lg__scheduler_ready(s, op))
                return false;
        if (s->rate != rate)
                return lg__fail(s->object.ctx, LG_ERR_STATE, "%s: %s takes no metric; lg_scheduler_step() steps it", op,
                                s->name);
        s->epoch++;
        if (better(s, metric)) {
                s->best = metric;
                s->bad = 0;
        } else {
                s->bad++;
        }
        if (s->cooling > 0) {
                s->cooling--;
                s->bad = 0;
        }
        if (s->bad > s->o.plateau.patience) {
                reduce(s);
                s->cooling = s->o.plateau.cooldown;
                s->bad = 0;
        }
        return true;
}

lg_scheduler *lg_reduce_on_plateau_with(lg_optimizer *opt, double factor, const lg_plateau_options *options)
{
        const char *name = "lg_reduce_on_plateau";
        lg_plateau_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o))
                return NULL;
        o.patience = lg__whole_option(o.patience, 10);
        o.threshold = lg__option(o.threshold, 1e-4);
        o.cooldown = lg__whole_option(o.cooldown, 0);
        o.min_lr = lg__option(o.min_lr, 0);
        o.eps = lg__option(o.eps, 1e-8);
        if (!(factor > 0 && factor < 1) || o.patience < 0 || o.cooldown < 0 || !(o.min_lr >= 0))
                return lg__fail(
                        opt->object.ctx, LG_ERR_ARGUMENT,
                        "%s: factor %g must be between 0 and 1; patience %lld, cooldown %lld, min_lr %g not negative",
                        name, factor, (long long)o.patience, (long long)o.cooldown, o.min_lr);
        const double worst = o.max_mode ? -INFINITY : INFINITY;
        return lg__scheduler_new(
                opt, &(lg_scheduler){.name = name, .rate = rate, .o.plateau = o, .factor = factor, .best = worst});
}
