/* optimizer.c - common functions of optimisers: parameter groups, lg_zero_grad(), learning rates. */
#include <string.h>
#include "core/observer.h"
#include "core/tape.h"
#include "optim.h"

/* ---- creation and destruction ---- */

static void destroy(lg__object *o)
{
        lg_optimizer *opt = (lg_optimizer *)o;
        lg_ctx *c = o->ctx;
        lg__schedulers_forget(opt);
        if (opt->memory)
                opt->rule->finish(opt);
        for (int64_t i = 0; opt->slots && i < opt->count; i++) {
                lg__slot *s = &opt->slots[i];
                lg__node_unref(s->node);
                for (int k = 0; k < LG__STATES; k++)
                        lg__tensor_release(s->state[k]);
                lg__tensor_release(s->master);
                lg__tensor_release(s->skipped);
                lg__tensor_release(s->step_inputs);
        }
        lg__tensor_release(opt->found);
        lg__free(c, opt->slots, (size_t)opt->count * sizeof *opt->slots);
        lg__free(c, opt->updates, (size_t)opt->count * sizeof *opt->updates);
        lg__free(c, opt->groups, (size_t)opt->group_count * sizeof *opt->groups);
        lg__free(c, opt->options, opt->options_bytes);
}

static const lg__type type = {.destroy = destroy, .visit = lg__optimizer_visit};

bool lg__option_check(lg_ctx *c, const char *op, const char *option, double value)
{
        if (isfinite(value) && value >= 0)
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is %g; it must be a finite number of 0 or more", op, option, value);
}

bool lg__fraction_check(lg_ctx *c, const char *op, const char *option, double value)
{
        if (value >= 0 && value < 1)
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is %g; it must be in [0, 1)", op, option, value);
}

/* Returns whether a and b certainly share an element. */
static bool shares(const lg_tensor *a, const lg_tensor *b)
{
        int64_t a_low, a_high, b_low, b_high;
        if (a->storage != b->storage || !lg__shape_numel(a->at.shape) || !lg__shape_numel(b->at.shape))
                return a == b;
        lg__layout_reach(&a->at, &a_low, &a_high);
        lg__layout_reach(&b->at, &b_low, &b_high);
        return a_low == b_low ||
               (lg__layout_is_dense(&a->at) && lg__layout_is_dense(&b->at) && a_low <= b_high && b_low <= a_high);
}

static bool param_is_good(lg_ctx *c, const char *op, lg_list params, int64_t i)
{
        lg_tensor *p = params.items[i];
        if (!p)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld is NULL", op, (long long)i);
        if (p->ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld is of another context", op, (long long)i);
        if (!lg__check(p, op, "a parameter"))
                return false;
        if (!p->node && p->owner != LG__OWNER_LIBRARY) /* a frozen parameter of a module is skipped by steps */
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: parameter %lld, %s, does not require grad; call lg_set_requires_grad() first", op,
                                (long long)i, lg__tensor_text(p).s);
        if (p->node && p->node->op)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld, %s, is a result of the graph, not a leaf", op,
                                (long long)i, lg__tensor_text(p).s);
        if (lg__layout_overlaps(&p->at))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld, %s, is expanded: its elements share memory",
                                op, (long long)i, lg__tensor_text(p).s);
        for (int64_t k = 0; k < i; k++) {
                if (shares(params.items[k], p))
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameters %lld and %lld %s", op, (long long)k,
                                        (long long)i, params.items[k] == p ? "are the same" : "share memory");
        }
        return true;
}

static bool params_are_good(lg_ctx *c, const char *op, lg_list params)
{
        if (params.count <= 0 || !params.items)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: the list of parameters is empty: the module has none, or the pattern matches none",
                                op);
        for (int64_t i = 0; i < params.count; i++) {
                if (!param_is_good(c, op, params, i))
                        return false;
        }
        return true;
}

/* Returns a copy of an array with room for `more` elements; the caller frees the old array. NULL: no memory. */
static void *grown(lg_ctx *c, void *old, int64_t count, int64_t more, size_t size)
{
        void *array = lg__alloc(c, (size_t)(count + more) * size);
        if (array && count)
                memcpy(array, old, (size_t)count * size);
        return array;
}

/* Adds checked parameters as a further group. Changes nothing if it fails. */
static bool take(lg_optimizer *opt, lg_list params, lg__group group)
{
        lg_ctx *c = opt->object.ctx;
        int64_t n = opt->count, more = params.count;
        lg__slot *slots = grown(c, opt->slots, n, more, sizeof *slots);
        lg_update *updates = slots ? grown(c, NULL, 0, n + more, sizeof *updates) : NULL;
        lg__group *groups = updates ? grown(c, opt->groups, opt->group_count, 1, sizeof *groups) : NULL;
        if (!groups) {
                lg__free(c, slots, (size_t)(n + more) * sizeof *slots);
                lg__free(c, updates, (size_t)(n + more) * sizeof *updates);
                return false;
        }
        lg__free(c, opt->slots, (size_t)n * sizeof *slots);
        lg__free(c, opt->updates, (size_t)n * sizeof *updates);
        lg__free(c, opt->groups, (size_t)opt->group_count * sizeof *groups);
        for (int64_t i = 0; i < more; i++) {
                lg_tensor *p = params.items[i];
                slots[n + i] = (lg__slot){.param = p, .serial = p->serial, .node = p->node, .group = opt->group_count};
                if (p->node)
                        lg__node_ref(p->node);
        }
        groups[opt->group_count++] = group;
        opt->slots = slots;
        opt->updates = updates;
        opt->groups = groups;
        opt->count += more;
        return true;
}

lg_optimizer *lg__optimizer_new(lg_ctx *c, const lg__rule *rule, lg_list params, lg__group first, const void *options,
                                size_t bytes)
{
        first.lr = lg__option(first.lr, 0);
        first.initial_lr = NAN;
        if (!lg__ok(c) || !params_are_good(c, rule->name, params) || !lg__option_check(c, rule->name, "lr", first.lr) ||
            !lg__option_check(c, rule->name, "weight_decay", first.weight_decay) ||
            (rule->betas && (!lg__fraction_check(c, rule->name, "beta1", first.beta1) ||
                             !lg__fraction_check(c, rule->name, "beta2", first.beta2))) ||
            (rule->eps && !lg__option_check(c, rule->name, "eps", first.eps)))
                return NULL;
        lg_optimizer *opt = lg__object_new(c, &type, sizeof *opt);
        if (!opt)
                return NULL;
        opt->rule = rule;
        opt->options_bytes = bytes;
        lg__link_init(&opt->schedulers);
        if ((opt->options = lg__alloc(c, bytes)) && take(opt, params, first)) {
                memcpy(opt->options, options, bytes);
                return opt;
        }
        return lg__object_destroy(opt);
}

/* Sets a number of a group to `given`, unless 0. False: the check of the number fails, or the rule has none (`has`). */
typedef bool number_check(lg_ctx *c, const char *op, const char *option, double value);
static bool take_number(const lg_optimizer *opt, const char *option, double given, bool has, number_check *check,
                        double *ret)
{
        lg_ctx *c = opt->object.ctx;
        const char *op = "lg_add_param_group";
        if (given == 0)
                return true;
        if (!has)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .%s is given, but %s has no %s", op, option, opt->rule->name,
                                option);
        *ret = lg__option(given, 0);
        return check(c, op, option, *ret);
}

/* Sets the given options in g, a copy of group 0. Returns false with an error. */
static bool take_numbers(const lg_optimizer *opt, const lg_param_group_options *o, lg__group *g)
{
        const lg__rule *rule = opt->rule;
        if (!take_number(opt, "lr", o->lr, true, lg__option_check, &g->lr) ||
            !take_number(opt, "weight_decay", o->weight_decay, !rule->no_decay, lg__option_check, &g->weight_decay) ||
            !take_number(opt, "momentum", o->momentum, rule->momentum_state, lg__option_check, &g->momentum) ||
            !take_number(opt, "beta1", o->beta1, rule->betas, lg__fraction_check, &g->beta1) ||
            !take_number(opt, "beta2", o->beta2, rule->betas, lg__fraction_check, &g->beta2) ||
            !take_number(opt, "eps", o->eps, rule->eps, lg__option_check, &g->eps))
                return false;
        if (o->momentum != 0) { /* else keep group 0's states: a schedule may have set momentum to 0 */
                g->states &= ~rule->momentum_state;
                g->states |= g->momentum != 0 ? rule->momentum_state : 0;
        }
        return o->momentum == 0 || !rule->accepts || rule->accepts(opt, g, "lg_add_param_group");
}

bool lg_add_param_group_with(lg_optimizer *opt, lg_list_in params, const lg_param_group_options *options)
{
        lg_ctx *c = opt ? opt->object.ctx : NULL;
        const char *op = "lg_add_param_group";
        lg_param_group_options o;
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__object_lasts(&opt->object, op) || !lg__unrecorded(c, op) ||
            !params_are_good(c, op, params))
                return false;
        if (opt->fixed)
                return lg__fail(c, LG_ERR_STATE, "%s: lg_find_lr() tests the optimiser; call it when that has returned",
                                op);
        if (opt->rule->step_closure)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: an optimiser of %s has one group only", op, opt->rule->name);
        for (int64_t i = 0; i < params.count; i++)
                for (int64_t k = 0; k < opt->count; k++)
                        if (opt->slots[k].param->serial == opt->slots[k].serial &&
                            shares(opt->slots[k].param, params.items[i]))
                                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld is in group %d already", op,
                                                (long long)i, opt->slots[k].group);
        lg__group g = opt->groups[0];
        g.initial_lr = NAN;
        return take_numbers(opt, &o, &g) && take(opt, params, g);
}

void lg_optimizer_free(lg_optimizer *opt)
{
        if (opt && opt->running)
                lg__fail(opt->object.ctx, LG_ERR_STATE,
                         "lg_optimizer_free: a call that uses the optimiser has not returned; free it outside "
                         "functions that are called there");
        else if (opt && lg__may_end(opt->object.ctx, "lg_optimizer_free"))
                lg__object_destroy(opt);
}

bool lg_zero_grad(lg_optimizer *opt)
{
        if (!opt || opt->object.ctx->error || !lg__object_lasts(&opt->object, "lg_zero_grad") ||
            !lg__may_end(opt->object.ctx, "lg_zero_grad"))
                return false;
        lg__frame span;
        lg__span_begin(opt->object.ctx, &span, "zero_grad", NULL, NULL);
        opt->running++; /* a gradient may be imported memory, whose release function is user code */
        for (int64_t i = 0; i < opt->count; i++) {
                lg_tensor *p = opt->slots[i].param;
                if (p->live != LG__LIVE || p->serial != opt->slots[i].serial || !p->node || p->node->op)
                        continue;
                lg__leaf_used(p, false);
                lg__node_clear_grad(p->node, p->output);
        }
        opt->running--;
        lg__span_end(opt->object.ctx, &span);
        return !opt->object.ctx->error;
}

/* ---- learning rates ---- */

int lg_param_group_count(const lg_optimizer *opt)
{
        return opt ? opt->group_count : 0;
}

static bool has_rate(void *owner, const void *data, size_t bytes)
{
        const lg_optimizer *opt = owner;
        const double *was = data;
        (void)bytes;
        return opt->groups[(int)was[1]].lr == was[0];
}

double lg_param_group_lr(const lg_optimizer *opt, int group)
{
        if (!opt || group < 0 || group >= opt->group_count)
                return NAN;
        const double rate[] = {opt->groups[group].lr, group};
        lg__tape_check(opt->object.ctx, (lg__object *)(uintptr_t)&opt->object, has_rate, rate, sizeof rate, NULL);
        return *rate;
}

bool lg_set_param_group_lr(lg_optimizer *opt, int group, double lr)
{
        lg_ctx *c = opt ? opt->object.ctx : NULL;
        lr = lg__option(lr, 0);
        if (!lg__ok(c) || !lg__unrecorded(c, "lg_set_param_group_lr") ||
            !lg__option_check(c, "lg_set_param_group_lr", "lr", lr))
                return false;
        if (group < 0 || group >= opt->group_count)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_set_param_group_lr: there is no group %d; there are %d", group,
                                opt->group_count);
        opt->groups[group].lr = lr;
        return true;
}

double lg_lr(const lg_optimizer *opt)
{
        return lg_param_group_lr(opt, 0);
}

bool lg_set_lr(lg_optimizer *opt, double lr)
{
        lr = lg__option(lr, 0);
        if (!opt || opt->object.ctx->error || !lg__object_lasts(&opt->object, "lg_set_lr") ||
            !lg__unrecorded(opt->object.ctx, "lg_set_lr") || !lg__option_check(opt->object.ctx, "lg_set_lr", "lr", lr))
                return false;
        for (int i = 0; i < opt->group_count; i++)
                opt->groups[i].lr = lr;
        return true;
}
