/* schedule.c - what all schedules share, those that are one formula, and schedules of schedules.
 *
 * The formulas are PyTorch's recursive ones, the next rate from the last, so that schedules can be chained.
 */
#include <string.h>
#include "schedule.h"

/* ---- life ---- */

static void destroy(lg__object *o)
{
        lg_scheduler *s = (lg_scheduler *)o;
        lg__link_remove(&s->link);
        for (int i = 0; i < s->child_count; i++)
                lg__object_destroy(&s->children[i]->object);
        lg__free(o->ctx, s->children, (size_t)s->child_count * sizeof *s->children);
        lg__free(o->ctx, s->milestones, (size_t)s->milestone_count * sizeof *s->milestones);
        lg__free(o->ctx, s, sizeof *s);
}

static const lg__type type = {.destroy = destroy, .visit = lg__scheduler_visit};

void lg__schedulers_forget(lg_optimizer *opt)
{
        while (opt->schedulers.next && opt->schedulers.next != &opt->schedulers) {
                lg__link *link = opt->schedulers.next;
                lg_scheduler *s = (lg_scheduler *)(void *)((char *)link - offsetof(lg_scheduler, link));
                s->opt = NULL;
                lg__link_remove(link);
        }
}

/* What a step may change, before it does: the groups' rates, the epochs of s and the schedules in it. */
static void keep_epochs(lg_scheduler *s)
{
        s->kept_epoch = s->epoch;
        for (int i = 0; i < s->child_count; i++)
                keep_epochs(s->children[i]);
}

static void keep(lg_scheduler *s)
{
        keep_epochs(s);
        for (int i = 0; i < s->opt->group_count; i++) {
                lg__group *g = &s->opt->groups[i];
                g->kept = (lg__kept){g->lr, g->initial_lr, g->momentum};
        }
}

static void restore_epochs(lg_scheduler *s)
{
        s->epoch = s->kept_epoch;
        for (int i = 0; i < s->child_count; i++)
                restore_epochs(s->children[i]);
}

static void restore(lg_scheduler *s)
{
        restore_epochs(s);
        for (int i = 0; i < s->opt->group_count; i++) {
                lg__group *g = &s->opt->groups[i];
                g->lr = g->kept.lr;
                g->initial_lr = g->kept.initial_lr;
                g->momentum = g->kept.momentum;
        }
}

/* What a failed step goes back to is kept once for each group: no schedule begins or steps inside another's step. */
static bool outside_calls(const lg_optimizer *opt, const char *op)
{
        return !opt->running ||
               lg__fail(opt->object.ctx, LG_ERR_STATE,
                        "%s: a call that uses the optimiser has not returned; call it outside functions "
                        "that are called there",
                        op);
}

bool lg__schedulable(lg_optimizer *opt, const char *name)
{
        return opt && !opt->object.ctx->error && lg__object_lasts(&opt->object, name) && outside_calls(opt, name);
}

bool lg__schedule_take(lg_optimizer *opt, const char *name, const void *options, void *ret, size_t size)
{
        return lg__schedulable(opt, name) && lg__take(opt->object.ctx, name, options, ret, size);
}

static lg_scheduler *new (lg_optimizer *opt, const lg_scheduler *like)
{
        lg_scheduler *s = lg__schedulable(opt, like->name) ? lg__alloc(opt->object.ctx, sizeof *s) : NULL;
        if (!s)
                return NULL;
        *s = *like;
        s->opt = opt;
        s->groups = opt->group_count;
        lg__link_add(&opt->schedulers, &s->link);
        lg__object_register(opt->object.ctx, &s->object, &type);
        keep(s);
        for (int i = 0; i < s->groups; i++)
                if (isnan(opt->groups[i].initial_lr))
                        opt->groups[i].initial_lr = opt->groups[i].lr;
        return s;
}

void lg_scheduler_free(lg_scheduler *s)
{
        if (s && s->owner)
                lg__fail(s->object.ctx, LG_ERR_ARGUMENT, "lg_scheduler_free: this schedule belongs to another (%s)",
                         s->owner->name);
        else if (s && s->opt && s->opt->running)
                lg__fail(s->object.ctx, LG_ERR_STATE,
                         "lg_scheduler_free: a call that uses the schedule's optimiser has not returned; free it "
                         "outside functions that are called there");
        else if (s)
                lg__object_destroy(&s->object);
}

/* ---- a step ---- */

bool lg__scheduler_set(const lg_scheduler *s, int group, double lr)
{
        lg_ctx *c = s->object.ctx;
        if (!(isfinite(lr) && lr >= 0))
                lg__fail(c, LG_ERR_ARGUMENT,
                         "%s: lr of group %d would be %g at step %lld; it must be a finite number of 0 or more",
                         s->name, group, lr, (long long)s->epoch);
        if (c->error) /* one that the user's function set, too */
                return false;
        s->opt->groups[group].lr = lr;
        return true;
}

static bool apply(const lg_scheduler *s)
{
        bool ok = true;
        for (int i = 0; i < s->groups && s->next && ok; i++)
                ok = lg__scheduler_set(s, i, s->next(s, &s->opt->groups[i], s->opt->groups[i].lr));
        return ok;
}

lg_scheduler *lg__scheduler_give_up(lg_scheduler *s)
{
        restore(s);
        lg__object_destroy(&s->object);
        return NULL;
}

lg_scheduler *lg__scheduler_new(lg_optimizer *opt, const lg_scheduler *like)
{
        lg_scheduler *s = new (opt, like);
        return !s || apply(s) ? s : lg__scheduler_give_up(s);
}

/* Epoch 0 again, from the groups' first rates, whatever schedules have made of them. */
static bool begin_anew(lg_scheduler *s)
{
        for (int i = 0; i < s->groups; i++)
                s->opt->groups[i].lr = s->opt->groups[i].initial_lr;
        s->epoch = 0;
        return apply(s);
}

static bool advance(lg_scheduler *s)
{
        if (s->step)
                return s->step(s);
        s->epoch++;
        return apply(s);
}

static bool ready(const lg_scheduler *s, const char *op)
{
        if (!s || s->object.ctx->error || !lg__object_lasts(&s->object, op))
                return false;
        if (s->opt)
                return outside_calls(s->opt, op);
        return lg__fail(s->object.ctx, LG_ERR_STATE, "%s: the optimiser of this schedule (%s) was freed", op, s->name);
}

bool lg_scheduler_step(lg_scheduler *s)
{
        if (!ready(s, "lg_scheduler_step"))
                return false;
        keep(s);
        if (advance(s))
                return true;
        restore(s);
        return false;
}

/* ---- one formula each ---- */

static bool positive(lg_optimizer *opt, const char *name, const char *option, double value)
{
        if (!lg__schedulable(opt, name))
                return false;
        if (isfinite(value) && value > 0)
                return true;
        return lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "%s: %s is %g; it must be above 0", name, option, value);
}

static double next_step(const lg_scheduler *s, const lg__group *g, double lr)
{
        (void)g;
        return s->epoch && s->epoch % s->span == 0 ? lr * s->o.gamma : lr;
}

lg_scheduler *lg_step_lr_with(lg_optimizer *opt, int64_t step_size, const lg_step_lr_options *options)
{
        const char *name = "lg_step_lr";
        lg_step_lr_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o) ||
            !positive(opt, name, "step_size", (double)step_size))
                return NULL;
        const double gamma = lg__option(o.gamma, 0.1);
        return lg__scheduler_new(opt,
                                 &(lg_scheduler){.name = name, .next = next_step, .span = step_size, .o.gamma = gamma});
}

static double next_multi_step(const lg_scheduler *s, const lg__group *g, double lr)
{
        (void)g;
        for (int64_t i = 0; i < s->milestone_count && s->epoch; i++)
                lr = s->milestones[i] == s->epoch ? lr * s->o.gamma : lr;
        return lr;
}

static bool take_milestones(lg_scheduler *s, lg_ints milestones)
{
        const size_t bytes = (size_t)milestones.count * sizeof *milestones.items;
        s->milestones = lg__alloc(s->object.ctx, bytes);
        if (!s->milestones)
                return false;
        s->milestone_count = milestones.count;
        memcpy(s->milestones, milestones.items, bytes);
        return true;
}

lg_scheduler *lg_multi_step_lr_with(lg_optimizer *opt, lg_ints_in milestones, const lg_multi_step_lr_options *options)
{
        const char *name = "lg_multi_step_lr";
        lg_multi_step_lr_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o))
                return NULL;
        if (!milestones.items || milestones.count < 1)
                return lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "%s: there are no milestones", name);
        const lg_scheduler like = {.name = name, .next = next_multi_step, .o.gamma = lg__option(o.gamma, 0.1)};
        lg_scheduler *s = lg__scheduler_new(opt, &like);
        return !s || take_milestones(s, milestones) ? s : lg__scheduler_give_up(s);
}

static double next_exponential(const lg_scheduler *s, const lg__group *g, double lr)
{
        (void)g;
        return s->epoch ? lr * s->o.gamma : lr;
}

lg_scheduler *lg_exponential_lr(lg_optimizer *opt, double gamma)
{
        const lg_scheduler like = {.name = "lg_exponential_lr", .next = next_exponential, .o.gamma = gamma};
        return positive(opt, like.name, "gamma", gamma) ? lg__scheduler_new(opt, &like) : NULL;
}

static double next_cosine(const lg_scheduler *s, const lg__group *g, double lr)
{
        const int64_t t_max = s->span;
        const double low = s->o.cosine.eta_min, base = g->initial_lr, t = (double)t_max;
        if (s->epoch == 0)
                return lr;
        if ((s->epoch - 1) % t_max == 0 && (s->epoch - 1) / t_max % 2)
                return lr + (base - low) * (1 - cos(M_PI / t)) / 2;
        return (1 + cos(M_PI * (double)s->epoch / t)) / (1 + cos(M_PI * (double)(s->epoch - 1) / t)) * (lr - low) + low;
}

lg_scheduler *lg_cosine_lr_with(lg_optimizer *opt, int64_t t_max, const lg_cosine_lr_options *options)
{
        const char *name = "lg_cosine_lr";
        lg_cosine_lr_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o))
                return NULL;
        o.eta_min = lg__option(o.eta_min, 0);
        if (!positive(opt, name, "t_max", (double)t_max) ||
            !lg__option_check(opt->object.ctx, name, "eta_min", o.eta_min))
                return NULL;
        return lg__scheduler_new(opt, &(lg_scheduler){.name = name, .next = next_cosine, .span = t_max, .o.cosine = o});
}

static double next_linear(const lg_scheduler *s, const lg__group *g, double lr)
{
        const lg_linear_lr_options *o = &s->o.linear;
        double slope = o->end_factor - o->start_factor;
        (void)g;
        if (s->epoch == 0)
                return lr * o->start_factor;
        if (s->epoch > s->span)
                return lr;
        lr *= 1 + slope / ((double)s->span * o->start_factor + (double)(s->epoch - 1) * slope);
        return lr < 0 ? 0 : lr; /* rounded, where the factor ends at 0 */
}

lg_scheduler *lg_linear_lr_with(lg_optimizer *opt, int64_t total, const lg_linear_lr_options *options)
{
        const char *name = "lg_linear_lr";
        lg_linear_lr_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o))
                return NULL;
        o.start_factor = lg__option(o.start_factor, 1.0 / 3);
        o.end_factor = lg__option(o.end_factor, 1);
        if (!positive(opt, name, "total", (double)total) || !positive(opt, name, "start_factor", o.start_factor) ||
            !lg__option_check(opt->object.ctx, name, "end_factor", o.end_factor))
                return NULL;
        return lg__scheduler_new(opt, &(lg_scheduler){.name = name, .next = next_linear, .span = total, .o.linear = o});
}

static double next_constant(const lg_scheduler *s, const lg__group *g, double lr)
{
        const lg_constant_lr_options *o = &s->o.constant;
        (void)g;
        return s->epoch == 0 ? lr * o->factor : s->epoch == s->span ? lr / o->factor : lr;
}

lg_scheduler *lg_constant_lr_with(lg_optimizer *opt, int64_t total, const lg_constant_lr_options *options)
{
        const char *name = "lg_constant_lr";
        lg_constant_lr_options o;
        if (!lg__schedule_take(opt, name, options, &o, sizeof o))
                return NULL;
        o.factor = lg__option(o.factor, 1.0 / 3);
        if (!positive(opt, name, "total", (double)total) || !positive(opt, name, "factor", o.factor))
                return NULL;
        return lg__scheduler_new(opt,
                                 &(lg_scheduler){.name = name, .next = next_constant, .span = total, .o.constant = o});
}

static double next_lambda(const lg_scheduler *s, const lg__group *g, double lr)
{
        (void)lr;
        const double base = g->initial_lr;
        s->object.ctx->guests++;
        s->opt->running++;
        double factor = s->o.lambda.fn(s->epoch, s->o.lambda.user);
        s->opt->running--;
        s->object.ctx->guests--;
        return base * factor;
}

lg_scheduler *lg_lambda_lr(lg_optimizer *opt, lg_lambda_fn *fn, void *user)
{
        if (lg__schedulable(opt, "lg_lambda_lr") && !fn)
                return lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "lg_lambda_lr: fn is NULL");
        return lg__scheduler_new(opt,
                                 &(lg_scheduler){.name = "lg_lambda_lr", .next = next_lambda, .o.lambda = {fn, user}});
}

/* ---- of schedules ---- */

/* The first schedule from the i-th milestone on begins anew there, as PyTorch's step(0) does. */
static bool step_sequential(lg_scheduler *s)
{
        int i = 0;
        s->epoch++;
        while (i < s->milestone_count && s->milestones[i] <= s->epoch)
                i++;
        if (i == 0 || s->milestones[i - 1] != s->epoch)
                return advance(s->children[i]);
        return begin_anew(s->children[i]);
}

static bool step_chained(lg_scheduler *s)
{
        bool ok = true;
        s->epoch++;
        for (int i = 0; i < s->child_count && ok; i++)
                ok = advance(s->children[i]);
        return ok;
}

static bool children_are_good(lg_ctx *c, const char *name, lg_scheduler *const *list, int count)
{
        for (int i = 0; i < count; i++) {
                if (!list[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: schedule %d is NULL", name, i);
                if (list[i]->owner || !list[i]->opt || list[i]->opt != list[0]->opt)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "%s: schedule %d belongs to another schedule or is not of the same optimiser",
                                        name, i);
                for (int k = 0; k < i; k++)
                        if (list[k] == list[i])
                                return lg__fail(c, LG_ERR_ARGUMENT, "%s: schedules %d and %d are the same", name, k, i);
        }
        return true;
}

/* How many there are in an array that ends with LG_END; and the context of the first that is not NULL, else NULL. */
static int count_of(lg_scheduler *const *list, lg_ctx **ret)
{
        int count = 0;
        for (*ret = NULL; list && list[count] != LG_END; count++)
                if (!*ret && list[count])
                        *ret = list[count]->object.ctx;
        return count;
}

/* A schedule that owns the others, which are good. */
static lg_scheduler *own(lg_ctx *c, const char *name, bool (*step)(lg_scheduler *), lg_scheduler *const *list,
                         int count)
{
        if (!lg__ok(c) || !children_are_good(c, name, list, count))
                return NULL;
        int levels = 0;
        for (int i = 0; i < count; i++)
                levels = list[i]->levels >= levels ? list[i]->levels + 1 : levels;
        if (levels > LG__SCHEDULE_LEVELS)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: schedules nest more than %d levels deep", name,
                                LG__SCHEDULE_LEVELS);
        lg_scheduler *s = new (list[0]->opt, &(lg_scheduler){.name = name, .step = step, .levels = levels});
        lg_scheduler **children = s ? lg__alloc(c, (size_t)count * sizeof *children) : NULL;
        if (!children) {
                lg__object_destroy(s ? &s->object : NULL);
                return NULL;
        }
        for (int i = 0; i < count; i++) {
                children[i] = list[i];
                list[i]->owner = s;
                lg__link_remove(&list[i]->object.link);
        }
        s->children = children;
        s->child_count = count;
        return s;
}

/* Frees a schedule, but those that it owns go back to the context. */
static void disown(lg_scheduler *s)
{
        lg_ctx *c = s->object.ctx;
        for (int i = 0; i < s->child_count; i++) {
                s->children[i]->owner = NULL;
                lg__object_register(c, &s->children[i]->object, &type);
        }
        lg__free(c, s->children, (size_t)s->child_count * sizeof *s->children);
        s->child_count = 0;
        s->children = NULL;
        lg__object_destroy(&s->object);
}

lg_scheduler *lg_sequential_lr_list(lg_ints_in milestones, lg_scheduler *const *schedulers)
{
        const char *name = "lg_sequential_lr";
        lg_ctx *c;
        const int count = count_of(schedulers, &c);
        if (!lg__ok(c) || !lg__list_ok(c, name, milestones.count, milestones.items))
                return NULL;
        if (milestones.count != count - 1)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: %lld milestones for %d schedules; there must be one milestone fewer", name,
                                (long long)milestones.count, count);
        for (int64_t i = 0; i < milestones.count; i++)
                if (milestones.items[i] <= (i ? milestones.items[i - 1] : 0))
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: the milestones must be above 0 and rise", name);
        lg_scheduler *s = own(c, name, step_sequential, schedulers, count);
        if (!s)
                return NULL;
        keep(s);
        if ((count == 1 || take_milestones(s, milestones)) && begin_anew(s->children[0]))
                return s;
        restore(s);
        disown(s);
        return NULL;
}

lg_scheduler *lg_chained_lr_list(lg_scheduler *const *schedulers)
{
        lg_ctx *c;
        const int count = count_of(schedulers, &c);
        return own(c, "lg_chained_lr", step_chained, schedulers, count);
}
