/* step.c - an optimiser's step: states on the parameters' devices, and kernels that update many parameters at once. */
#include <string.h>
#include "core/observer.h"
#include "core/tape.h"
#include "optim.h"

lg_tensor *lg__slot_gradient(const lg__slot *s)
{
        return s->param->node == s->node ? lg_grad_of(s->param) : NULL;
}

/* Compares serials, too: the record of a freed tensor may have been reused for another tensor. */
bool lg__slot_lives(const lg_optimizer *opt, int64_t i, const char *op)
{
        const lg__slot *s = &opt->slots[i];
        const lg_tensor *p = s->param;
        return (p->live == LG__LIVE && p->serial == s->serial && !(p->node && p->node->op)) ||
               lg__fail(opt->object.ctx, LG_ERR_STATE,
                        "%s: parameter %lld of %s was freed; make a new optimiser without it", op, (long long)i,
                        opt->rule->name);
}

/* Updates the slot's node: a parameter whose requires_grad was switched off and on has a new leaf node. */
static void find_node(lg__slot *s)
{
        lg_tensor *p = s->param;
        if (p->node && p->node != s->node) {
                lg__node_ref(p->node);
                lg__node_unref(s->node);
                s->node = p->node;
        }
}

bool lg__slot_find(lg_optimizer *opt, int64_t i, const char *op)
{
        lg__slot *s = &opt->slots[i];
        if (!lg__slot_lives(opt, i, op))
                return false;
        find_node(s);
        const lg_tensor *p = s->param, *g = lg__slot_gradient(s);
        return !g || (g->storage->device == p->storage->device && g->at.dtype == p->at.dtype) ||
               lg__fail(p->ctx, LG_ERR_STATE, "%s: parameter %lld is %s but its gradient is %s", op, (long long)i,
                        lg__tensor_text(p).s, lg__tensor_text(g).s);
}

lg_dtype lg__state_dtype(const lg_tensor *param)
{
        return param->at.dtype == LG_F64 ? LG_F64 : LG_F32;
}

/* Returns the layout in which kernels get a parameter, its gradient and its states, since they ignore strides: the
 * parameter's own, if dense, else row-major. */
static lg__layout layout_of(const lg_tensor *param, lg_dtype dtype)
{
        lg__layout at = {.dtype = dtype, .shape = param->at.shape};
        lg__layout_contiguous(&at);
        lg__keep_layout(&at, &param->at);
        return at;
}

/* Returns the layout of state k: that of the parameter, if it has its shape, else row-major. */
static lg__layout layout_of_state(const lg_optimizer *opt, const lg__slot *s, int k)
{
        lg__layout at = {.dtype = lg__state_dtype(s->param), .shape = lg__slot_shape(opt, s, k)};
        if (lg__shape_equal(at.shape, s->param->at.shape))
                return layout_of(s->param, at.dtype);
        lg__layout_contiguous(&at);
        return at;
}

static bool same_layout(const lg__layout *a, const lg__layout *b)
{
        bool same = a->dtype == b->dtype;
        for (int i = 0; i < a->shape.ndim && same; i++)
                same = a->shape.size[i] <= 1 || a->strides[i] == b->strides[i];
        return same || (a->dtype == b->dtype && lg__layout_is_contiguous(a) && lg__layout_is_contiguous(b));
}

/* Returns t, or a copy of t in that layout. NULL: an error. */
static lg_tensor *laid(lg_tensor *t, const lg__layout *at)
{
        if (same_layout(&t->at, at))
                return t;
        lg_tensor *copy = lg__tensor_laid(t->ctx, t->storage->device->id, at);
        return copy && lg__copy_values(copy, t, "lg_step") ? copy : NULL;
}

/* Makes *buffer, with all values `first`, or moves an old one to the parameter's device and into layout `at`. */
static bool prepare_buffer(const lg__slot *s, lg_tensor **buffer, const lg__layout *at, double first)
{
        const lg__device *d = s->param->storage->device;
        lg_tensor *t = *buffer;
        if (t && t->storage->device == d && same_layout(&t->at, at))
                return true;
        if (t) {
                t = t->storage->device == d ? t : lg__clone_values(t, d->id, t->at.dtype);
                t = t ? laid(t, at) : NULL;
        } else {
                lg__tape *tape = lg__tape_pause(s->param->ctx);
                t = lg__tensor_laid(s->param->ctx, d->id, at);
                t = t && lg__fill_values(t, first, "lg_step") ? t : NULL;
                lg__tape_resume(tape);
        }
        if (!t)
                return false;
        lg__tensor_hold(buffer, t);
        return true;
}

bool lg__slot_has_master(const lg_optimizer *opt, const lg__slot *s)
{
        return opt->groups[s->group].master && lg__dtype_bytes(s->param->at.dtype) == 2;
}

/* Returns the master's values, but p's where p is not the rounded master, because the program has changed p there. */
static lg_tensor *changed(lg_tensor *master, lg_tensor *p)
{
        lg_tensor *same = lg_eq(lg_cast(master, p->at.dtype), p);
        return lg_where(same, master, lg_cast(p, LG_F32));
}

/* Gives the master the values of its parameter. A master that there is keeps its memory. */
static bool set_master(lg__slot *s)
{
        lg_tensor *p = s->param, *master = NULL;
        const lg__layout at = layout_of(p, LG_F32);
        if (!s->master)
                master = lg__clone_values(p, p->storage->device->id, LG_F32);
        else if (prepare_buffer(s, &s->master, &at, 0))
                master = changed(s->master, lg_detach(p));
        if (!master || !(master = laid(master, &at)) || (s->master && !lg__copy_values(s->master, master, "lg_step")))
                return false;
        if (!s->master)
                lg__tensor_hold(&s->master, master);
        s->of = p->storage;
        s->version = p->storage->version;
        return true;
}

/* Runs of a tape begin with prepare_masters(), so the tape has the update only if the step itself changes the
 * parameter. */
static bool prepare_master(const lg_optimizer *opt, lg__slot *s)
{
        const lg_tensor *p = s->param;
        if (!lg__slot_has_master(opt, s) || (s->master && s->of == p->storage && s->version == p->storage->version))
                return true;
        lg__tape *tape = lg__tape_changes(p->ctx, p->storage) ? NULL : lg__tape_pause(p->ctx);
        const bool ok = set_master(s);
        lg__tape_resume(tape);
        return ok;
}

/* Does all work for slot i that can run out of memory, before a parameter changes. Moved states keep their values. */
static bool prepare(lg_optimizer *opt, int64_t i, bool may_skip, const char *op)
{
        lg__slot *s = &opt->slots[i];
        s->grad = s->values = NULL;
        s->leader = -1;
        if (!lg__slot_find(opt, i, op))
                return false;
        lg_tensor *p = s->param, *g = lg__slot_gradient(s);
        if (!g)
                return true;
        const unsigned states = lg__slot_states(opt, s);
        const lg__layout at = layout_of(p, p->at.dtype), count = {.dtype = LG_I64};
        for (int k = 0; k < LG__STATES; k++) {
                const lg__layout of_state = layout_of_state(opt, s, k);
                if ((states >> k & 1) && !prepare_buffer(s, &s->state[k], &of_state, k ? 0 : opt->first_state))
                        return false;
        }
        if ((may_skip || s->skipped) && !prepare_buffer(s, &s->skipped, &count, 0))
                return false;
        if (!prepare_master(opt, s))
                return false;
        s->values = laid(p, &at);
        s->grad = s->values ? laid(g, &at) : NULL;
        return s->grad != NULL;
}

/* ---- updates by ops ---- */

static void write_numbers(void *owner, int64_t index, int64_t ahead, double *value)
{
        const lg_optimizer *opt = owner;
        const lg__slot *s = &opt->slots[index];
        memset(value, 0, LG_STEP_INPUTS * sizeof *value);
        opt->rule->numbers(opt, s, value);
        value[LG__STEP] = (double)(s->step + 1 + ahead);
}

/* Returns the numbers of the slot's update, f64; NULL: an error. */
static lg_tensor *numbers_of(lg_optimizer *opt, const lg__slot *s)
{
        lg__device *d = s->param->storage->device;
        lg_tensor *n = lg__tensor_empty(opt->object.ctx, d->id, LG_F64, LG_SHAPE(LG_STEP_INPUTS));
        double *to = n ? lg__dial(d, "lg_step", lg__data(n), write_numbers, opt, s - opt->slots) : NULL;
        if (!to)
                return NULL;
        n->storage->data = (char *)to; /* a tape's memory, or n's own */
        return n;
}

/* Returns the number of the slot's update, 0-d, f64; NULL: an error. */
static lg_tensor *number_of_step(const lg__slot *s, lg_tensor *numbers)
{
        lg_tensor *n = lg_select(numbers, 0, LG__STEP);
        return s->skipped ? lg_sub(n, lg_cast(s->skipped, LG_F64)) : n;
}

/* Computes the update of a slot by the rule's ops, without recording and without autocast. */
static bool compute(lg_optimizer *opt, lg__slot *s)
{
        lg_ctx *c = opt->object.ctx;
        const lg_dtype dtype = lg__state_dtype(s->param);
        if (!s->grad || lg__shape_numel(s->grad->at.shape) == 0)
                return true;
        const bool recording = lg_set_grad_mode(c, false);
        const lg_dtype region = lg_set_autocast_mode(c, LG_DTYPE_NONE);
        lg_tensor *numbers = numbers_of(opt, s);
        lg__computation k = {.opt = opt,
                             .group = &opt->groups[s->group],
                             .param = lg__slot_has_master(opt, s) ? s->master : lg_cast(s->values, dtype),
                             .grad = lg_cast(s->grad, dtype),
                             .state = s->state,
                             .dtype = s->param->at.dtype,
                             .step = number_of_step(s, numbers),
                             .exact = numbers,
                             .number = lg_cast(numbers, dtype),
                             .next = s->next};
        bool ok = k.param && k.grad && k.step && opt->rule->compute(&k) && !c->error;
        const lg__layout at = layout_of(s->param, dtype);
        ok = ok && (s->change = laid(k.change, &at));
        for (int i = 0; i < LG__STATES && ok; i++) {
                const lg__layout of_state = layout_of_state(opt, s, i);
                if (lg__slot_states(opt, s) >> i & 1)
                        ok = (s->next[i] = laid(s->next[i], &of_state)) != NULL;
        }
        lg_set_autocast_mode(c, region);
        lg_set_grad_mode(c, recording);
        return ok;
}

/* ---- kernels ---- */

/* Makes slot `first` the leader of all slots that one kernel call can update together: of one group, device and number
 * of steps. The memory of its inputs is kept from step to step. */
static bool lead(lg_optimizer *opt, int64_t first)
{
        lg__slot *leader = &opt->slots[first];
        lg__layout at = {.dtype = LG_F64, .shape = {.ndim = 1, .size = {LG_STEP_INPUTS}}};
        for (int64_t i = first; i < opt->count; i++) {
                lg__slot *s = &opt->slots[i];
                if (s->grad && s->group == leader->group && s->step == leader->step &&
                    s->param->storage->device == leader->param->storage->device)
                        s->leader = first;
        }
        lg__layout_contiguous(&at);
        return prepare_buffer(leader, &leader->step_inputs, &at, 0);
}

static lg_update update_of(const lg_optimizer *opt, const lg__slot *s)
{
        const unsigned states = opt->rule->compute ? 0 : lg__slot_states(opt, s);
        lg_update u = {.dtype = s->values->at.dtype,
                       .n = lg__shape_numel(s->values->at.shape),
                       .param = lg__data(s->values),
                       .grad = lg__data(s->grad),
                       .master = lg__slot_has_master(opt, s) ? lg__data(s->master) : NULL,
                       .skipped = s->skipped ? lg__data(s->skipped) : NULL};
        for (int k = 0; k < LG__STATES; k++)
                u.state[k] = states >> k & 1 ? lg__data(s->state[k]) : NULL;
        if (opt->rule->compute)
                u.state[0] = lg__data(s->change);
        return u;
}

/* Writes the hyperparameters that updates.def lists as step inputs of the optimiser. */
static void read_step_inputs(const lg_optimizer *opt, const lg__group *g, int64_t step, double *ret)
{
        switch (opt->rule->update) {
#define GROUP(x) *ret++ = g->x;
#define OPTION(x) *ret++ = (double)o->x;
#define STEP *ret++ = (double)step;
#define UPDATE(name, always, maybe, step_inputs, numbers, rule)                                                        \
        case LG__UPDATE_##name: {                                                                                      \
                _Static_assert(sizeof(lg_##name##_step_inputs) <= sizeof((lg_dial *)0)->value, "more step inputs");    \
                const lg_##name##_options *o = opt->options;                                                           \
                (void)o;                                                                                               \
                step_inputs break;                                                                                     \
        }
#include "../../kernels/updates.def"
#undef UPDATE
        }
}

/* Writes the inputs of the next step of slot `index`, or those of copying states (~index). */
static void write_inputs(void *owner, int64_t index, int64_t ahead, double *value)
{
        lg_optimizer *opt = owner;
        const lg__slot *s = &opt->slots[index < 0 ? ~index : index];
        lg__group *g = &opt->groups[s->group];
        g->keep = index < 0 ? 0 : opt->rule->decays ? 1 - g->lr * g->weight_decay : 1;
        read_step_inputs(opt, g, s->step + 1 + ahead, value);
}

/* Runs the kernel of the rule over opt->updates, with the inputs of the leader's step, or with those that copy states.
 * skip: on their device, or NULL. */
static bool run_kernel(lg_optimizer *opt, int64_t leader, int64_t count, const lg_tensor *skip, bool copies)
{
        const lg__slot *s = &opt->slots[leader];
        lg__device *d = s->param->storage->device;
        const lg_pass pass = {.count = count,
                              .updates = opt->updates,
                              .step_inputs = lg__dial(d, "lg_step", lg__data(s->step_inputs), write_inputs, opt,
                                                      copies ? ~leader : leader),
                              .skip = skip ? lg__data(skip) : NULL};
        if (!pass.step_inputs)
                return false;
        switch (opt->rule->update) {
#define UPDATE(name, ...)                                                                                              \
        case LG__UPDATE_##name:                                                                                        \
                return LG__RUN(d, "lg_step (" #name ")", name, &pass);
#include "../../kernels/updates.def"
#undef UPDATE
        }
        return false;
}

static bool is_updated(const lg_optimizer *opt, int64_t i, int64_t leader)
{
        return opt->slots[i].leader == leader && lg__shape_numel(opt->slots[i].values->at.shape);
}

/* Copies the states that were computed into the states of a leader's slots. `count` receives the skipped steps. */
static bool copy_states(lg_optimizer *opt, int64_t leader, const lg_tensor *skip, const lg_tensor *count)
{
        for (int k = 0; k < LG__STATES; k++) {
                int64_t n = 0;
                for (int64_t i = leader; i < opt->count; i++) {
                        lg__slot *s = &opt->slots[i];
                        if (!is_updated(opt, i, leader) || !(lg__slot_states(opt, s) >> k & 1))
                                continue;
                        lg_update u = lg__update_in_place(s->state[k]);
                        u.state[0] = lg__data(s->next[k]);
                        u.skipped = count ? lg__data(count) : NULL;
                        opt->updates[n++] = u;
                }
                if (n && !run_kernel(opt, leader, n, skip, true))
                        return false;
        }
        return true;
}

/* Updates all slots of a leader. */
static bool update_slots(lg_optimizer *opt, int64_t leader, const lg_tensor *skip)
{
        const lg__slot *s = &opt->slots[leader];
        const bool computes = opt->rule->compute != NULL;
        lg_tensor *count = computes && skip ? lg_zeros(opt->object.ctx, LG_SHAPE_0D, .dtype = LG_I64,
                                                       .device = s->param->storage->device->id)
                                            : NULL;
        if (computes && skip && !count)
                return false;
        int64_t n = 0;
        for (int64_t i = leader; i < opt->count; i++)
                if (is_updated(opt, i, leader))
                        opt->updates[n++] = update_of(opt, &opt->slots[i]);
        return run_kernel(opt, leader, n, skip, false) && (!computes || copy_states(opt, leader, skip, count));
}

/* Counts a step of slots, whose numbers are in data, unless a device-side error is pending that is already visible:
 * kernels skip the update then. */
static void count_step(void *owner, const void *data, size_t bytes)
{
        lg_optimizer *opt = owner;
        const int64_t *number = data, *end = number + bytes / sizeof *number;
        for (; number < end; number++) {
                lg__slot *s = &opt->slots[*number];
                const bool counts = s->param->storage->device->queue->error.code == LG_DEVICE_OK;
                s->step += counts;
                s->param->storage->version += counts;
                s->version = s->param->storage->version;
        }
}

static bool run_group(lg_optimizer *opt, int64_t leader, lg_tensor *skip, const char *op)
{
        const lg__device *d = opt->slots[leader].param->storage->device;
        if (skip && skip->storage->device != d && !(skip = lg__clone_values(skip, d->id, skip->at.dtype)))
                return false;
        if (!update_slots(opt, leader, skip))
                return false;
        for (int64_t i = leader; i < opt->count; i++) {
                const lg__slot *s = &opt->slots[i];
                if (s->leader != leader)
                        continue;
                if (s->values != s->param && !lg__copy_values(s->param, s->values, op))
                        return false;
                count_step(opt, &i, sizeof i);
        }
        return true;
}

/* A slot that a tape updates, and what the tape has as addresses and constants. */
typedef struct use {
        int64_t slot, leader;
        const void *memory[LG__STATES + 2];
        double eps;
} use;

static use use_of(const lg_optimizer *opt, int64_t slot, int64_t leader)
{
        const lg__slot *s = &opt->slots[slot];
        use u = {.slot = slot, .leader = leader, .eps = opt->rule->compute ? opt->groups[s->group].eps : 0};
        for (int k = 0; k < LG__STATES; k++)
                u.memory[k] = s->state[k] ? lg__data(s->state[k]) : NULL;
        u.memory[LG__STATES] = s->master ? lg__data(s->master) : NULL;
        u.memory[LG__STATES + 1] = s->skipped ? lg__data(s->skipped) : NULL;
        return u;
}

/* Returns whether a step would use the same memory and update the same slots together: a load may change both. */
static bool is_used(void *owner, const void *data, size_t bytes)
{
        const lg_optimizer *opt = owner;
        for (const use *u = data, *end = u + bytes / sizeof *u; u < end; u++) {
                if (u->slot >= opt->count || opt->slots[u->slot].step != opt->slots[u->leader].step)
                        return false;
                const use now = use_of(opt, u->slot, u->leader);
                if (memcmp(&now, u, sizeof now) != 0)
                        return false;
        }
        return true;
}

static bool has_masters(const lg_optimizer *opt)
{
        bool some = false;
        for (int64_t i = 0; i < opt->count; i++)
                some = some || opt->slots[i].master;
        return some;
}

/* Updates masters of parameters that the program has changed. */
static bool prepare_masters(void *owner)
{
        lg_optimizer *opt = owner;
        lg_scope scope = lg_scope_begin(opt->object.ctx);
        bool ok = scope.id != 0;
        for (int64_t i = 0; i < opt->count && ok; i++)
                ok = !opt->slots[i].master ||
                     (lg__slot_lives(opt, i, "lg_step") && prepare_master(opt, &opt->slots[i]));
        lg_scope_end(opt->object.ctx, scope);
        return ok;
}

/* Lets runs of a tape count the step, and watch what it depends on. */
static bool note_step(lg_optimizer *opt)
{
        lg_ctx *c = opt->object.ctx;
        const size_t room = (size_t)opt->count;
        int64_t n = 0, *numbers = c->tape ? lg__alloc(c, room * sizeof *numbers) : NULL;
        use *uses = numbers ? lg__alloc(c, room * sizeof *uses) : NULL;
        for (int64_t i = 0; i < opt->count && uses; i++)
                if (opt->slots[i].leader >= 0) {
                        numbers[n] = i;
                        uses[n++] = use_of(opt, i, opt->slots[i].leader);
                }
        if (uses) {
                lg__tape_watch(c, &opt->object, &opt->count, sizeof opt->count);
                lg__tape_check(c, &opt->object, is_used, uses, (size_t)n * sizeof *uses,
                               has_masters(opt) ? prepare_masters : NULL);
                lg__tape_host(c, count_step, opt, numbers, (size_t)n * sizeof *numbers);
        }
        lg__free(c, numbers, numbers ? room * sizeof *numbers : 0);
        lg__free(c, uses, uses ? room * sizeof *uses : 0);
        return !c->error;
}

bool lg__optimizer_step(lg_optimizer *opt, lg_tensor *skip, const char *op)
{
        if (opt->rule->step_closure)
                return lg__fail(opt->object.ctx, LG_ERR_STATE,
                                "%s: an optimiser of %s calls the function of the loss several times in a step; call "
                                "lg_step_closure()",
                                op, opt->rule->name);
        lg_ctx *c = opt->object.ctx;
        lg__frame span;
        lg__span_begin(c, &span, "step", opt->rule->name + strlen("lg_"),
                       opt->count ? opt->slots[0].param->storage->device : NULL);
        lg_scope scope = lg_scope_begin(c);
        bool ok = scope.id != 0;
        for (int64_t i = 0; ok && i < opt->count; i++)
                ok = prepare(opt, i, skip != NULL, op);
        for (int64_t i = 0; ok && opt->rule->compute && i < opt->count; i++)
                ok = compute(opt, &opt->slots[i]);
        for (int64_t i = 0; ok && i < opt->count; i++)
                ok = !opt->slots[i].grad || opt->slots[i].leader >= 0 || lead(opt, i);
        for (int64_t i = 0; ok && i < opt->count; i++)
                ok = opt->slots[i].leader != i || run_group(opt, i, skip, op);
        ok = ok && note_step(opt);
        lg_scope_end(c, scope);
        lg__span_end(c, &span);
        return ok;
}

bool lg_step(lg_optimizer *opt)
{
        return opt && lg__enter(opt->object.ctx) && lg__object_lasts(&opt->object, "lg_step") &&
               lg__optimizer_step(opt, NULL, "lg_step");
}

/* ---- steps by a function that computes the loss ---- */

bool lg__closure_run(lg_optimizer *opt, const char *op, lg_closure_fn *fn, void *user, double *loss)
{
        lg_ctx *c = opt->object.ctx;
        lg_scope scope = lg_zero_grad(opt) ? lg__scope_begin(c) : (lg_scope){.id = 0};
        if (!scope.id)
                return false;
        const bool was = lg_set_grad_mode(c, true);
        lg_tensor *y = fn(c, user);
        if (!y)
                lg__fail(c, LG_ERR_ARGUMENT, "%s: the function returned NULL without an error", op);
        bool ok = y && lg__in_context(c, y, op, "the loss") && lg__check(y, op, "the loss");
        if (ok && (!lg__dtype_float(y->at.dtype) || lg__shape_numel(y->at.shape) != 1))
                ok = lg__fail(c, LG_ERR_SHAPE, "%s: the loss is %s; it must be one element of a float dtype", op,
                              lg__tensor_text(y).s);
        ok = ok && lg_backward(y);
        if (ok)
                *loss = lg_item(y);
        lg_set_grad_mode(c, was);
        return lg_scope_end(c, scope) && ok && !c->error;
}

bool lg__closure_step(lg_optimizer *opt, const char *op, lg_closure_fn *fn, void *user, double *loss)
{
        return opt->rule->step_closure ? opt->rule->step_closure(opt, op, fn, user, loss)
                                       : lg__closure_run(opt, op, fn, user, loss) && lg__optimizer_step(opt, NULL, op);
}

bool lg_step_closure(lg_optimizer *opt, lg_closure_fn *fn, void *user, double *loss)
{
        const char *op = "lg_step_closure";
        double first = 0;
        if (!opt || !lg__enter(opt->object.ctx) || !lg__object_lasts(&opt->object, op) ||
            !lg__may_end(opt->object.ctx, op))
                return false;
        if (!fn)
                return lg__fail(opt->object.ctx, LG_ERR_ARGUMENT, "%s: fn is NULL", op);
        if (opt->running)
                return lg__fail(opt->object.ctx, LG_ERR_STATE, "%s: a step of the optimiser has not returned", op);
        opt->running++; /* so that fn cannot free the optimiser */
        const bool ok = lg__closure_step(opt, op, fn, user, &first);
        opt->running--;
        if (ok && loss)
                *loss = first;
        return ok;
}
