/* optimizer.c - what all optimisers share: their parameters, the step as a whole, gradients to zero, learning rate. */
#include "optim.h"

/* ---- life ----------------------------------------------------------------------------------------------------------
 */

static void destroy(lg__object *o)
{
        lg_optimizer *opt = (lg_optimizer *)o;
        lg_ctx *c = o->ctx;
        for (int64_t i = 0; opt->slots && i < opt->count; i++) {
                lg__slot *s = &opt->slots[i];
                lg__node_unref(s->node);
                for (int k = 0; k < LG__STATES; k++)
                        lg__tensor_release(s->state[k]);
        }
        lg__free(c, opt->slots, (size_t)opt->count * sizeof *opt->slots);
        lg__free(c, opt->updates, (size_t)opt->count * sizeof *opt->updates);
        lg__free(c, opt, sizeof *opt);
}

bool lg__option_check(lg_ctx *c, const char *op, const char *option, double value)
{
        if (isfinite(value) && value >= 0)
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is %g; it must be a finite number of 0 or more", op, option, value);
}

static bool param_is_good(lg_ctx *c, const char *op, lg_list params, int64_t i)
{
        lg_tensor *p = params.items[i];
        if (!p)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld is NULL", op, (long long)i);
        if (!lg__check(p, op, "a parameter"))
                return false;
        if (p->ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld is of another context", op, (long long)i);
        if (!p->node)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld, %s, does not require grad", op, (long long)i,
                                lg__tensor_text(p).s);
        if (p->node->op)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld, %s, is a result of the graph, not a leaf", op,
                                (long long)i, lg__tensor_text(p).s);
        for (int64_t k = 0; k < i; k++) {
                if (params.items[k] == p)
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: parameters %lld and %lld are the same", op,
                                        (long long)k, (long long)i);
        }
        return true;
}

static bool params_are_good(lg_ctx *c, const char *op, lg_list params)
{
        if (params.count <= 0 || !params.items)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the list of parameters is empty", op);
        for (int64_t i = 0; i < params.count; i++) {
                if (!param_is_good(c, op, params, i))
                        return false;
        }
        return true;
}

lg_optimizer *lg__optimizer_new(lg_ctx *c, const lg__rule *rule, lg_list params, double lr, int states)
{
        lr = lg__option(lr, 0);
        if (!lg__ok(c) || !params_are_good(c, rule->name, params) || !lg__option_check(c, rule->name, "lr", lr))
                return NULL;
        lg_optimizer *opt = lg__alloc(c, sizeof *opt);
        if (!opt)
                return NULL;
        opt->rule = rule;
        opt->lr = lr;
        opt->states = states;
        opt->count = params.count;
        lg__object_register(c, &opt->object, destroy);
        opt->slots = lg__alloc(c, (size_t)opt->count * sizeof *opt->slots);
        opt->updates = opt->slots ? lg__alloc(c, (size_t)opt->count * sizeof *opt->updates) : NULL;
        if (!opt->updates) {
                lg__object_destroy(&opt->object);
                return NULL;
        }
        for (int64_t i = 0; i < opt->count; i++) {
                opt->slots[i].param = params.items[i];
                opt->slots[i].shape = params.items[i]->at.shape;
                opt->slots[i].node = params.items[i]->node;
                lg__node_ref(opt->slots[i].node);
        }
        return opt;
}

void lg_optimizer_free(lg_optimizer *opt)
{
        if (opt)
                lg__object_destroy(&opt->object);
}

/* ---- a step --------------------------------------------------------------------------------------------------------
 */

/* The gradient to apply, or NULL: it has none, or its requires_grad is off just now. */
static lg_tensor *gradient_of(const lg__slot *s)
{
        return s->param->live == LG__LIVE && s->param->node == s->node ? lg_grad_of(s->param) : NULL;
}

/* Is the handle still the parameter? A record that was freed may be another tensor by now; one whose requires_grad was
 * switched off and on is the same tensor with a new leaf node. */
static bool find_node(lg_optimizer *opt, lg__slot *s, int64_t i)
{
        lg_tensor *p = s->param;
        if (p->live != LG__LIVE || (p->node && p->node->op) || !lg__shape_equal(p->at.shape, s->shape))
                return lg__fail(opt->object.ctx, LG_ERR_STATE,
                                "lg_step: parameter %lld of %s was freed; make a new optimiser without it",
                                (long long)i, opt->rule->name);
        if (p->node && p->node != s->node) {
                lg__node_ref(p->node);
                lg__node_unref(s->node);
                s->node = p->node;
        }
        return true;
}

static lg_tensor *contiguous(lg_tensor *t)
{
        return lg__layout_is_contiguous(&t->at) ? t : lg__clone_values(t, t->storage->device->id, t->at.dtype);
}

/* A new buffer of zeros, or the old one where the parameter is now. */
static bool prepare_state(lg__slot *s, lg_tensor **state)
{
        lg_device device = s->param->storage->device->id;
        lg_tensor *t = *state;
        if (t && lg_device_equal(t->storage->device->id, device))
                return true;
        if (t) {
                t = lg__clone_values(t, device, t->at.dtype);
        } else {
                t = lg__tensor_like(s->param);
                if (t && !lg__fill_values(t, 0, "lg_step"))
                        return false;
        }
        if (!t)
                return false;
        lg__tensor_release(*state);
        *state = lg__tensor_own(t);
        return true;
}

/* All that can fail for want of memory, before anything is changed. State that is new or has moved says what it said.
 */
static bool prepare(lg_optimizer *opt, lg__slot *s, int64_t i)
{
        s->grad = s->values = NULL;
        if (!find_node(opt, s, i))
                return false;
        lg_tensor *p = s->param, *g = gradient_of(s);
        if (!g)
                return true;
        if (!lg_device_equal(g->storage->device->id, p->storage->device->id))
                return lg__fail(p->ctx, LG_ERR_STATE, "lg_step: parameter %lld is %s but its gradient is %s",
                                (long long)i, lg__tensor_text(p).s, lg__tensor_text(g).s);
        for (int k = 0; k < opt->states; k++) {
                if (!prepare_state(s, &s->state[k]))
                        return false;
        }
        s->values = contiguous(p);
        s->grad = s->values ? contiguous(g) : NULL;
        return s->grad != NULL;
}

/* All slots on the device of the first one that wait with as many updates behind them: one kernel call. */
static bool run_group(lg_optimizer *opt, int64_t first)
{
        lg__device *d = opt->slots[first].param->storage->device;
        int64_t step = opt->slots[first].step, count = 0;
        for (int64_t i = first; i < opt->count; i++) {
                lg__slot *s = &opt->slots[i];
                if (!s->grad || s->step != step || s->param->storage->device != d)
                        continue;
                lg_update u = {s->values->at.dtype,
                               lg__shape_numel(s->values->at.shape),
                               lg__data(s->values),
                               lg__data(s->grad),
                               {NULL, NULL}};
                for (int k = 0; k < opt->states; k++)
                        u.state[k] = lg__data(s->state[k]);
                opt->updates[count++] = u;
        }
        if (!opt->rule->run(opt, d, opt->updates, count, step))
                return false;
        /* The kernel does nothing while a fault waits on the device: where that shows, such a step does not count. */
        bool counts = d->queue->fault.code == LG_FAULT_NONE;
        for (int64_t i = first; i < opt->count; i++) {
                lg__slot *s = &opt->slots[i];
                if (!s->grad || s->step != step || s->param->storage->device != d)
                        continue;
                s->grad = NULL;
                s->step += counts;
                s->param->storage->version += counts;
                if (s->values != s->param && !lg__copy_values(s->param, s->values, "lg_step"))
                        return false;
        }
        return true;
}

bool lg_step(lg_optimizer *opt)
{
        lg_ctx *c = opt ? opt->object.ctx : NULL;
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return false;
        bool ok = true;
        for (int64_t i = 0; ok && i < opt->count; i++)
                ok = prepare(opt, &opt->slots[i], i);
        for (int64_t i = 0; ok && i < opt->count; i++) {
                if (opt->slots[i].grad)
                        ok = run_group(opt, i);
        }
        lg_scope_end(c, scope);
        return ok;
}

bool lg_zero_grad(lg_optimizer *opt)
{
        if (!opt || opt->object.ctx->error)
                return false;
        for (int64_t i = 0; i < opt->count; i++) {
                lg_tensor *p = opt->slots[i].param;
                if (p->live == LG__LIVE && p->node && !p->node->op)
                        lg__node_clear_grad(p->node, p->output);
        }
        return true;
}

double lg_get_lr(const lg_optimizer *opt)
{
        return opt ? opt->lr : NAN;
}

bool lg_set_lr(lg_optimizer *opt, double lr)
{
        lr = lg__option(lr, 0);
        if (!opt || opt->object.ctx->error || !lg__option_check(opt->object.ctx, "lg_set_lr", "lr", lr))
                return false;
        opt->lr = lr;
        return true;
}
