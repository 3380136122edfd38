/* schedule.c - common functions of schedules, schedules by one formula, and schedules that consist of schedules. */
#include <string.h>
#include "schedule.h"

#define DEEPEST 32 /* greatest depth of nested schedules: steps and destruction recurse */

/* ---- creation and destruction ---- */

static void destroy(lg__object *o)
{
        lg_scheduler *s = (lg_scheduler *)o;
        lg__link_remove(&s->link);
        for (int i = 0; s->children && i < s->child_count; i++)
                if (s->children[i]->owner) /* NULL if the creation of s failed: the child stays */
                        lg__object_destroy(s->children[i]);
        lg__free(o->ctx, (void *)(uintptr_t)s->children, (size_t)s->child_count * sizeof *s->children);
        lg__free(o->ctx, (void *)(uintptr_t)s->milestones.items,
                 (size_t)s->milestones.count * sizeof *s->milestones.items);
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

/* Returns whether no call uses opt, or sets an error: a schedule cannot be made or stepped inside another's step. */
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
                lg__object_destroy(s);
}

/* ---- a step ---- */

/* Returns the rate that a group had before its first schedule. */
static double first_lr(const lg__group *g)
{
        return isnan(g->initial_lr) ? g->lr : g->initial_lr;
}

/* Returns the step of child i when s is at step t, or a negative number when the child does not run. */
static int64_t child_step(const lg_scheduler *s, int i, int64_t t)
{
        if (!s->in_turn)
                return s->children[i]->epoch + t - s->epoch;
        const int64_t begin = i ? s->milestones.items[i - 1] : 0;
        return i < s->milestones.count && t >= s->milestones.items[i] ? -1 : t - begin;
}

/* Changes *lr, a group's last rate, to the rate of step t: to the formula's value or, if other schedules or the program
 * have changed the last rate, by the ratio of the formula's values at t and t - 1 (s->low subtracted from all). */
static bool next_lr(const lg_scheduler *s, int64_t t, int group, double *lr)
{
        lg_ctx *c = s->object.ctx;
        const double lr0 = first_lr(&s->opt->groups[group]);
        for (int i = 0; i < s->child_count; i++) {
                const int64_t at = child_step(s, i, t);
                if (at < 0 || group >= s->children[i]->groups)
                        continue;
                *lr = at == 0 && s->in_turn ? lr0 : *lr;
                if (!next_lr(s->children[i], at, group, lr))
                        return false;
        }
        if (!s->rate || (s->multiplies && t == 0))
                return true;
        const double low = s->low, now = s->rate(s, t, s->multiplies ? *lr : lr0);
        const double last = s->absolute ? *lr : t > 0 ? s->rate(s, t - 1, lr0) : lr0;
        if (*lr == last)
                *lr = now;
        else if (last != low) /* otherwise the ratio would divide by 0 */
                *lr = low + (*lr - low) * ((now - low) / (last - low));
        else
                *lr += now - low;
        if (!(isfinite(*lr) && *lr >= 0))
                lg__fail(c, LG_ERR_ARGUMENT,
                         "%s: lr of group %d would be %g at step %lld; it must be a finite number of 0 or more",
                         s->name, group, *lr, (long long)t);
        return !c->error; /* also if the user's function has set one */
}

static void set_epochs(lg_scheduler *s, int64_t t)
{
        for (int i = 0; i < s->child_count; i++)
                if (child_step(s, i, t) >= 0)
                        set_epochs(s->children[i], child_step(s, i, t));
        s->epoch = t;
        for (int i = 0; i < s->groups && s->momentum; i++)
                s->opt->groups[i].momentum = s->momentum(s, t);
}

/* Sets the rates of step t, or fails and changes nothing. */
static bool go_to(lg_scheduler *s, int64_t t)
{
        for (int i = 0; i < s->groups; i++) {
                double lr = s->opt->groups[i].lr;
                if (!next_lr(s, t, i, &lr))
                        return false;
                s->opt->groups[i].next_lr = lr;
        }
        for (int i = 0; i < s->groups; i++) {
                lg__group *g = &s->opt->groups[i];
                g->initial_lr = first_lr(g);
                g->lr = g->next_lr;
        }
        set_epochs(s, t);
        return true;
}

static void *copied(lg_ctx *c, const void *items, int64_t count, size_t size)
{
        void *to = count ? lg__alloc(c, (size_t)count * size) : NULL;
        return to ? memcpy(to, items, (size_t)count * size) : NULL;
}

lg_scheduler *lg__scheduler_new(lg_optimizer *opt, const lg_scheduler *like)
{
        lg_ctx *c = opt ? opt->object.ctx : NULL;
        lg_scheduler *s = lg__schedulable(opt, like->name) ? lg__object_new(c, &type, sizeof *s) : NULL;
        if (!s)
                return NULL;
        const lg__object object = s->object;
        *s = *like;
        s->object = object;
        s->opt = opt;
        s->groups = opt->group_count;
        s->milestones.items = copied(c, like->milestones.items, like->milestones.count, sizeof *s->milestones.items);
        s->children = copied(c, like->children, like->child_count, sizeof *s->children);
        lg__link_add(&opt->schedulers, &s->link);
        if (c->error || ((s->rate || s->in_turn) && !go_to(s, 0)))
                return lg__object_destroy(s);
        for (int i = 0; i < s->child_count; i++) {
                s->children[i]->owner = s;
                lg__link_remove(&s->children[i]->object.link);
        }
        return s;
}

bool lg__scheduler_ready(const lg_scheduler *s, const char *op)
{
        if (!s || s->object.ctx->error || !lg__object_lasts(&s->object, op))
                return false;
        if (s->opt)
                return lg__unrecorded(s->object.ctx, op) && outside_calls(s->opt, op);
        return lg__fail(s->object.ctx, LG_ERR_STATE, "%s: the optimiser of this schedule (%s) was freed", op, s->name);
}

bool lg_scheduler_step(lg_scheduler *s)
{
        return lg__scheduler_ready(s, "lg_scheduler_step") && go_to(s, s->epoch + 1);
}

/* ---- one formula each ---- */

bool lg__schedule_positive(lg_optimizer *opt, const char *name, const char *option, double value)
{
        if (!lg__schedulable(opt, name))
                return false;
        if (isfinite(value) && value > 0)
                return true;
        return lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "%s: %s is %g; it must be above 0", name, option, value);
}

static double step_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        return lr0 * pow(s->factor, (double)(t / s->span));
}

lg_scheduler *lg_step_lr_with(lg_optimizer *opt, int64_t step_size, const lg_step_lr_options *options)
{
        lg_step_lr_options o;
        lg_scheduler like = {.name = "lg_step_lr", .rate = step_rate, .span = step_size};
        if (!lg__schedule_take(opt, like.name, options, &o, sizeof o) ||
            !lg__schedule_positive(opt, like.name, "step_size", (double)step_size))
                return NULL;
        like.factor = lg__option(o.gamma, 0.1);
        return lg__scheduler_new(opt, &like);
}

static double multi_step_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        int64_t passed = 0;
        for (int64_t i = 0; i < s->milestones.count; i++)
                passed += s->milestones.items[i] > 0 && s->milestones.items[i] <= t;
        return lr0 * pow(s->factor, (double)passed);
}

lg_scheduler *lg_multi_step_lr_with(lg_optimizer *opt, lg_ints_in milestones, const lg_multi_step_lr_options *options)
{
        lg_multi_step_lr_options o;
        lg_scheduler like = {.name = "lg_multi_step_lr", .rate = multi_step_rate, .milestones = milestones};
        if (!lg__schedule_take(opt, like.name, options, &o, sizeof o))
                return NULL;
        if (!milestones.items || milestones.count < 1)
                return lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "%s: there are no milestones", like.name);
        like.factor = lg__option(o.gamma, 0.1);
        return lg__scheduler_new(opt, &like);
}

static double exponential_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        return lr0 * pow(s->factor, (double)t);
}

lg_scheduler *lg_exponential_lr(lg_optimizer *opt, double gamma)
{
        const lg_scheduler like = {.name = "lg_exponential_lr", .rate = exponential_rate, .factor = gamma};
        return lg__schedule_positive(opt, like.name, "gamma", gamma) ? lg__scheduler_new(opt, &like) : NULL;
}

static double cosine_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        return s->low + (lr0 - s->low) * (1 + cos(M_PI * (double)t / (double)s->span)) / 2;
}

lg_scheduler *lg_cosine_lr_with(lg_optimizer *opt, int64_t t_max, const lg_cosine_lr_options *options)
{
        lg_cosine_lr_options o;
        lg_scheduler like = {.name = "lg_cosine_lr", .rate = cosine_rate, .span = t_max};
        if (!lg__schedule_take(opt, like.name, options, &o, sizeof o))
                return NULL;
        like.low = lg__option(o.eta_min, 0);
        if (!lg__schedule_positive(opt, like.name, "t_max", (double)t_max) ||
            !lg__option_check(opt->object.ctx, like.name, "eta_min", like.low))
                return NULL;
        return lg__scheduler_new(opt, &like);
}

static double linear_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        return lr0 * (s->begin + (s->end - s->begin) * fmin((double)t / (double)s->span, 1));
}

lg_scheduler *lg_linear_lr_with(lg_optimizer *opt, int64_t total, const lg_linear_lr_options *options)
{
        lg_linear_lr_options o;
        lg_scheduler like = {.name = "lg_linear_lr", .rate = linear_rate, .span = total};
        if (!lg__schedule_take(opt, like.name, options, &o, sizeof o))
                return NULL;
        like.begin = lg__option(o.start_factor, 1.0 / 3);
        like.end = lg__option(o.end_factor, 1);
        if (!lg__schedule_positive(opt, like.name, "total", (double)total) ||
            !lg__schedule_positive(opt, like.name, "start_factor", like.begin) ||
            !lg__option_check(opt->object.ctx, like.name, "end_factor", like.end))
                return NULL;
        return lg__scheduler_new(opt, &like);
}

static double polynomial_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        return lr0 * pow(1 - fmin((double)t / (double)s->span, 1), s->factor);
}

lg_scheduler *lg_polynomial_lr_with(lg_optimizer *opt, int64_t total, const lg_polynomial_lr_options *options)
{
        lg_polynomial_lr_options o;
        lg_scheduler like = {.name = "lg_polynomial_lr", .rate = polynomial_rate, .span = total};
        if (!lg__schedule_take(opt, like.name, options, &o, sizeof o))
                return NULL;
        like.factor = lg__option(o.power, 1);
        if (!lg__schedule_positive(opt, like.name, "total", (double)total) ||
            !lg__option_check(opt->object.ctx, like.name, "power", like.factor))
                return NULL;
        return lg__scheduler_new(opt, &like);
}

static double constant_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        return t < s->span ? lr0 * s->factor : lr0;
}

lg_scheduler *lg_constant_lr_with(lg_optimizer *opt, int64_t total, const lg_constant_lr_options *options)
{
        lg_constant_lr_options o;
        lg_scheduler like = {.name = "lg_constant_lr", .rate = constant_rate, .span = total};
        if (!lg__schedule_take(opt, like.name, options, &o, sizeof o))
                return NULL;
        like.factor = lg__option(o.factor, 1.0 / 3);
        if (!lg__schedule_positive(opt, like.name, "total", (double)total) ||
            !lg__schedule_positive(opt, like.name, "factor", like.factor))
                return NULL;
        return lg__scheduler_new(opt, &like);
}

static double lambda_rate(const lg_scheduler *s, int64_t t, double lr0)
{
        s->object.ctx->user_calls++;
        s->opt->running++;
        const double factor = s->o.lambda.fn(t, s->o.lambda.user);
        s->opt->running--;
        s->object.ctx->user_calls--;
        return lr0 * factor;
}

static lg_scheduler *lambda_new(lg_optimizer *opt, const char *name, bool multiplies, lg_lambda_fn *fn, void *user)
{
        const lg_scheduler like = {
                .name = name, .rate = lambda_rate, .absolute = true, .multiplies = multiplies, .o.lambda = {fn, user}};
        if (lg__schedulable(opt, name) && !fn)
                return lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "%s: fn is NULL", name);
        return lg__scheduler_new(opt, &like);
}

lg_scheduler *lg_lambda_lr(lg_optimizer *opt, lg_lambda_fn *fn, void *user)
{
        return lambda_new(opt, "lg_lambda_lr", false, fn, user);
}

lg_scheduler *lg_multiplicative_lr(lg_optimizer *opt, lg_lambda_fn *fn, void *user)
{
        return lambda_new(opt, "lg_multiplicative_lr", true, fn, user);
}

/* ---- schedules that consist of schedules ---- */

/* Returns the length of an array that ends with LG_END, and the context of its first schedule that is not NULL. */
static int count_of(lg_scheduler *const *list, lg_ctx **ret)
{
        int count = 0;
        for (*ret = NULL; list && list[count] != LG_END; count++)
                if (!*ret && list[count])
                        *ret = list[count]->object.ctx;
        return count;
}

/* Makes a schedule like `like` that owns its children, after checking them. */
static lg_scheduler *compose(lg_ctx *c, lg_scheduler like)
{
        lg_scheduler *const *list = like.children;
        for (int i = 0; i < like.child_count; i++) {
                if (!list[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: schedule %d is NULL", like.name, i);
                if (list[i]->owner || !list[i]->opt || list[i]->opt != list[0]->opt)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "%s: schedule %d belongs to another schedule or is not of the same optimiser",
                                        like.name, i);
                for (int k = 0; k < i; k++)
                        if (list[k] == list[i])
                                return lg__fail(c, LG_ERR_ARGUMENT, "%s: schedules %d and %d are the same", like.name,
                                                k, i);
                like.levels = list[i]->levels >= like.levels ? list[i]->levels + 1 : like.levels;
        }
        if (like.levels > DEEPEST)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: schedules nest more than %d levels deep", like.name, DEEPEST);
        return lg__scheduler_new(list[0]->opt, &like);
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
        return compose(c, (lg_scheduler){.name = name,
                                         .in_turn = true,
                                         .children = schedulers,
                                         .child_count = count,
                                         .milestones = milestones});
}

lg_scheduler *lg_chained_lr_list(lg_scheduler *const *schedulers)
{
        lg_ctx *c;
        const int count = count_of(schedulers, &c);
        if (!lg__ok(c))
                return NULL;
        return compose(c, (lg_scheduler){.name = "lg_chained_lr", .children = schedulers, .child_count = count});
}
