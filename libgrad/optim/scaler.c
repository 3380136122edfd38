/* scaler.c - scales losses up, so that gradients in f16 do not vanish, and skips steps whose gradients overflow. The
 * decision is made on the device; the host does not wait for it.
 *
 * A round ends with lg_scaler_update(). If an optimiser's `round` is the scaler's, its gradients were unscaled in this
 * round; only gradients of a later backward, for example after a failed step, have the scale.
 */
#include <string.h>
#include "core/tape.h"
#include "graph/op.h"
#include "optim.h"
#include "state/entries.h"

struct lg_scaler {
        lg__object object;
        double growth, backoff;
        int64_t interval;
        lg_tensor *scale, *steps; /* owned, 0-d: f32; i64, number of good steps since the scale changed */
        lg_tensor *found;         /* owned: not 0 if a gradient in this round was not finite; NULL: none unscaled */
        uint64_t round;           /* unique number of the current round */
        bool scaled;              /* a loss was scaled in this round */
};

static void destroy(lg__object *o)
{
        lg_scaler *s = (lg_scaler *)o;
        lg__tensor_release(s->scale);
        lg__tensor_release(s->steps);
        lg__tensor_release(s->found);
}

/* Names the state as PyTorch's GradScaler does. */
static bool visit(lg__object *o, lg__state_entries *list)
{
        lg_scaler *s = (lg_scaler *)o;
        return lg__state_add_tensor(list, "scale", &s->scale, 0) &&
               lg__state_add_tensor(list, "growth_tracker", &s->steps, 0) &&
               lg__state_add_f64(list, "growth_factor", &s->growth) &&
               lg__state_add_f64(list, "backoff_factor", &s->backoff) &&
               lg__state_add_whole(list, "growth_interval", &s->interval, LG__COUNT_MOST);
}

static const lg__type type = {.destroy = destroy, .visit = visit};

static bool options_are_good(lg_ctx *c, const lg_scaler_options *o)
{
        if (!(isfinite((float)o->init_scale) && (float)o->init_scale > 0))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_scaler_new: init_scale is %g; it must be above 0 and in f32",
                                o->init_scale);
        if (!(isfinite(o->growth_factor) && o->growth_factor > 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_scaler_new: growth_factor is %g; it must be above 1",
                                o->growth_factor);
        if (!(o->backoff_factor > 0 && o->backoff_factor < 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_scaler_new: backoff_factor is %g; it must be between 0 and 1",
                                o->backoff_factor);
        return o->growth_interval > 0 ||
               lg__fail(c, LG_ERR_ARGUMENT, "lg_scaler_new: growth_interval is %lld; it must be at least 1",
                        (long long)o->growth_interval);
}

/* Returns a new 0-d tensor on a device, in the open scope. NULL: an error. */
static lg_tensor *number(lg_ctx *c, lg_device device, lg_dtype dtype, double value)
{
        lg_tensor *t = lg__tensor_empty(c, device, dtype, LG_SHAPE_0D);
        return t && lg__fill_values(t, value, "lg_scaler") ? t : NULL;
}

lg_scaler *lg_scaler_new_with(lg_ctx *c, const lg_scaler_options *options)
{
        lg_scaler_options o;
        if (!lg__take(c, "lg_scaler_new", options, &o, sizeof o))
                return NULL;
        o.init_scale = lg__option(o.init_scale, 65536);
        o.growth_factor = lg__option(o.growth_factor, 2);
        o.backoff_factor = lg__option(o.backoff_factor, 0.5);
        o.growth_interval = lg__whole_option(o.growth_interval, 2000);
        lg_scaler *s = options_are_good(c, &o) ? lg__object_new(c, &type, sizeof *s) : NULL;
        if (!s)
                return NULL;
        s->growth = o.growth_factor;
        s->backoff = o.backoff_factor;
        s->interval = o.growth_interval;
        s->round = ++c->sequence;
        s->scale = lg__tensor_own(number(c, lg_cpu(), LG_F32, o.init_scale));
        s->steps = lg__tensor_own(s->scale ? number(c, lg_cpu(), LG_I64, 0) : NULL);
        return s->steps ? s : lg__object_destroy(s);
}

void lg_scaler_free(lg_scaler *s)
{
        if (s && lg__may_end(s->object.ctx, "lg_scaler_free"))
                lg__object_destroy(s);
}

static bool ready(const lg_scaler *s, const char *op)
{
        return s && lg__ok(s->object.ctx) && lg__object_lasts(&s->object, op);
}

/* Returns whether a round may go on: one in which gradients were unscaled is part of a recorded run, or is not. */
static bool may_go_on(const lg_scaler *s, const char *op)
{
        return !s->found || s->found->storage->run == s->object.ctx->run ||
               lg__fail(s->object.ctx, LG_ERR_STATE,
                        "%s: gradients were unscaled %s the function that lg_recorder_run runs; call "
                        "lg_scaler_unscale(), lg_scaler_step() and lg_scaler_update() all in it, or none",
                        op, s->object.ctx->run ? "outside" : "in");
}

/* Returns whether the scale is where it was. */
static bool stands(void *owner, const void *data, size_t bytes)
{
        const lg_scaler *s = owner;
        const void *const now[] = {lg__data(s->scale), lg__data(s->steps)};
        return !memcmp(now, data, bytes);
}

/* Lets a tape depend on the scale and on how it changes. */
static void watch(lg_scaler *s)
{
        lg_ctx *c = s->object.ctx;
        const void *const now[] = {lg__data(s->scale), lg__data(s->steps)};
        lg__tape_check(c, &s->object, stands, now, sizeof now, NULL);
        lg__tape_watch(c, &s->object, &s->growth, sizeof s->growth);
        lg__tape_watch(c, &s->object, &s->backoff, sizeof s->backoff);
        lg__tape_watch(c, &s->object, &s->interval, sizeof s->interval);
}

/* ---- losses ---- */

static lg_tensor *on(lg_tensor *t, const lg__device *d)
{
        return t->storage->device == d ? t : lg__clone_values(t, d->id, t->at.dtype);
}

/* Moves the scaler's tensors to the device of a loss. */
static bool move(lg_scaler *s, const lg__device *d)
{
        if (s->scale->storage->device == d)
                return true;
        lg_tensor *scale = on(s->scale, d), *steps = scale ? on(s->steps, d) : NULL;
        if (!steps)
                return false;
        lg__tensor_hold(&s->scale, scale);
        lg__tensor_hold(&s->steps, steps);
        return true;
}

static void begin_round(void *owner, const void *data, size_t bytes)
{
        (void)data;
        (void)bytes;
        ((lg_scaler *)owner)->scaled = true;
}

/* Checks that t can be scaled, and moves the scale to its device. Returns false with an error. */
static bool ready_for(lg_scaler *s, lg_tensor *t, const char *op)
{
        if (!ready(s, op))
                return false;
        if (!t)
                return lg__fail(s->object.ctx, LG_ERR_ARGUMENT, "%s: loss is NULL", op);
        if (!lg__in_context(s->object.ctx, t, op, "loss") || !lg__check(t, op, "loss"))
                return false;
        if (!lg__dtype_float(t->at.dtype))
                return lg__fail(s->object.ctx, LG_ERR_DTYPE, "%s: loss is %s; it must be of a float dtype", op,
                                lg__tensor_text(t).s);
        if (!may_go_on(s, op) || !move(s, t->storage->device))
                return false;
        begin_round(s, NULL, 0);
        lg__tape_host(s->object.ctx, begin_round, s, NULL, 0);
        watch(s);
        return !s->object.ctx->error;
}

lg_tensor *lg_scaler_scale(lg_scaler *s, lg_tensor *loss)
{
        return ready_for(s, loss, "lg_scaler_scale") ? lg_mul(loss, s->scale) : NULL;
}

bool lg_scaler_backward_with(lg_scaler *s, lg_tensor *loss, const lg_backward_options *options)
{
        const char *op = "lg_scaler_backward";
        lg_backward_options o;
        if (!ready_for(s, loss, op) || !lg__take(s->object.ctx, op, options, &o, sizeof o))
                return false;
        lg_scope scope = lg_scope_begin(s->object.ctx);
        bool ok = scope.id != 0;
        if (o.grad)
                ok = ok && (o.grad = lg_mul(o.grad, s->scale));
        else if (lg__shape_numel(loss->at.shape) == 1)
                ok = ok && (o.grad = lg_reshape(s->scale, loss->at.shape));
        ok = ok && lg__backward(op, loss, o);
        lg_scope_end(s->object.ctx, scope);
        return ok;
}

/* ---- gradients ---- */

static bool gradient_is_good(const lg_optimizer *opt, int64_t i, const char *op)
{
        const lg_tensor *g = lg__slot_gradient(&opt->slots[i]);
        return !g || g->at.dtype != LG_F16 ||
               lg__fail(opt->object.ctx, LG_ERR_DTYPE,
                        "%s: the gradient of parameter %lld is %s: without the scale it would vanish in f16; keep "
                        "parameters in f32, and compute under lg_autocast(c, LG_F16)",
                        op, (long long)i, lg__tensor_text(g).s);
}

/* Returns the device of the first gradient; NULL with an error if a gradient is f16 or there is none. */
static lg__device *home_of(lg_optimizer *opt, const char *op)
{
        lg__device *home = NULL;
        for (int64_t i = 0; i < opt->count; i++) {
                if (!gradient_is_good(opt, i, op))
                        return NULL;
                if (!home && lg__slot_gradient(&opt->slots[i]))
                        home = opt->slots[i].param->storage->device;
        }
        if (!home)
                lg__fail(opt->object.ctx, LG_ERR_STATE, "%s: no parameter of %s has a gradient", op, opt->rule->name);
        return home;
}

/* Returns the gradient of a slot if it still has the scale, else NULL. */
static lg_tensor *scaled(const lg__slot *at)
{
        lg_tensor *g = lg__slot_gradient(at);
        return g && g->serial != at->unscaled ? g : NULL;
}

/* The numbers of unscaled and of scaled gradients of an optimiser in this round. */
typedef struct counts {
        int64_t without, with;
} counts;

static counts count_gradients(const lg_scaler *s, const lg_optimizer *opt)
{
        counts n = {0, 0};
        for (int64_t i = 0; i < opt->count; i++) {
                const bool has = opt->round != s->round || scaled(&opt->slots[i]);
                n.without += !has && lg__slot_gradient(&opt->slots[i]);
                n.with += has && lg__slot_gradient(&opt->slots[i]);
        }
        return n;
}

/* Starts the scaler's round for an optimiser, unless the round has started. */
static void begin(const lg_scaler *s, lg_optimizer *opt)
{
        if (opt->round == s->round)
                return;
        for (int64_t i = 0; i < opt->count; i++)
                opt->slots[i].unscaled = 0;
        opt->round = s->round;
        opt->stepped = false;
        lg__tensor_hold(&opt->found, NULL);
}

/* Unscales the gradients on device d by one kernel, in copies if not dense. Sets found if one is not finite. */
static bool unscale_on(const lg_scaler *s, lg_optimizer *opt, lg__device *d, const lg_tensor *found, const char *op)
{
        const lg_tensor *scale = on(s->scale, d);
        lg_unscale_args a = {0, opt->updates, scale ? lg__data(scale) : NULL, lg__data(found)};
        bool ok = scale != NULL;
        for (int64_t i = 0; i < opt->count && ok; i++) {
                lg__slot *at = &opt->slots[i];
                lg_tensor *g = scaled(at);
                at->grad = NULL;
                if (!g || g->storage->device != d)
                        continue;
                at->grad = lg__layout_is_dense(&g->at) ? g : lg__clone_values(g, d->id, g->at.dtype);
                ok = at->grad != NULL;
                if (ok)
                        opt->updates[a.count++] = lg__update_in_place(at->grad);
        }
        ok = ok && LG__RUN(d, op, unscale, &a);
        for (int64_t i = 0; i < opt->count && ok; i++) {
                lg_tensor *g = opt->slots[i].grad ? lg__slot_gradient(&opt->slots[i]) : NULL;
                if (!g)
                        continue;
                lg__storage_changed(g->storage);
                opt->slots[i].unscaled = g->serial;
                ok = g == opt->slots[i].grad || lg__copy_values(g, opt->slots[i].grad, op);
        }
        return ok;
}

/* Computes sum = a + b on the device of sum and a. */
static bool add(lg_tensor *sum, lg_tensor *a, lg_tensor *b, const char *op)
{
        b = on(b, sum->storage->device);
        return b && lg__pointwise_run(LG_PW_add, sum, (lg_tensor *[LG_PW_INPUTS]){a, b}, 1, 0, op);
}

/* Unscales the gradients on all devices. found, on `home`, becomes not 0 if one of them is not finite. */
static bool unscale_gradients(const lg_scaler *s, lg_optimizer *opt, lg__device *home, lg_tensor *found, const char *op)
{
        for (int64_t i = 0; i < opt->count; i++) {
                const lg_tensor *g = scaled(&opt->slots[i]);
                if (!g) /* no gradient, or unscaled already */
                        continue;
                lg__device *d = g->storage->device;
                lg_tensor *there = d == home ? found : number(opt->object.ctx, d->id, LG_F32, 0);
                if (!there || !unscale_on(s, opt, d, there, op) || (d != home && !add(found, found, there, op)))
                        return false;
        }
        return true;
}

static bool unscale_all(lg_scaler *s, lg_optimizer *opt, const char *op)
{
        lg_ctx *c = s->object.ctx;
        lg__device *home = home_of(opt, op);
        lg_tensor *found = home ? number(c, home->id, LG_F32, 0) : NULL;
        /* of the first optimiser in a round: another handle of its found */
        lg_tensor *all = !found     ? NULL
                         : s->found ? lg__tensor_like(s->found)
                                    : lg__tensor_new(c, found->storage, &found->at);
        if (!all)
                return false;
        begin(s, opt);
        if (opt->found && count_gradients(s, opt).without && !add(found, found, opt->found, op))
                return false;
        lg__tensor_hold(&opt->found, found);
        if (!unscale_gradients(s, opt, home, found, op) || (s->found && !add(all, s->found, found, op)))
                return false;
        lg__tensor_hold(&s->found, all);
        return true;
}

static bool unscale(lg_scaler *s, lg_optimizer *opt, const char *op)
{
        lg_ctx *c = s->object.ctx;
        if (!s->scaled)
                return lg__fail(c, LG_ERR_STATE,
                                "%s: nothing was scaled since the last lg_scaler_update(): compute gradients by "
                                "lg_scaler_backward()",
                                op);
        bool recording = lg_set_grad_mode(c, false);
        lg_scope scope = lg_scope_begin(c);
        bool ok = scope.id && unscale_all(s, opt, op);
        lg_scope_end(c, scope);
        lg_set_grad_mode(c, recording);
        return ok;
}

/* Checks s and opt for a call, and updates the leaf nodes in the slots. Returns false with an error. */
static bool ready_with(const lg_scaler *s, lg_optimizer *opt, const char *op)
{
        if (!ready(s, op) || !may_go_on(s, op))
                return false;
        if (!opt || opt->object.ctx != s->object.ctx)
                return lg__fail(s->object.ctx, LG_ERR_ARGUMENT, "%s: the optimiser is %s", op,
                                opt ? "of another context" : "NULL");
        if (!lg__object_lasts(&opt->object, op))
                return false;
        for (int64_t i = 0; i < opt->count; i++)
                if (!lg__slot_find(opt, i, op))
                        return false;
        return opt->round != s->round || !opt->stepped ||
               lg__fail(s->object.ctx, LG_ERR_STATE,
                        "%s: this optimiser has had its lg_scaler_step(); call lg_scaler_update() first", op);
}

bool lg_scaler_unscale(lg_scaler *s, lg_optimizer *opt)
{
        const char *op = "lg_scaler_unscale";
        if (!ready_with(s, opt, op))
                return false;
        const counts n = count_gradients(s, opt);
        if (n.without && !n.with)
                return lg__fail(s->object.ctx, LG_ERR_STATE,
                                "%s: the gradients of this optimiser are unscaled since the last lg_scaler_update()",
                                op);
        return unscale(s, opt, op);
}

bool lg_scaler_step(lg_scaler *s, lg_optimizer *opt)
{
        const char *op = "lg_scaler_step";
        if (!ready_with(s, opt, op))
                return false;
        const counts n = count_gradients(s, opt);
        if (((n.with || !n.without) && !unscale(s, opt, op)) || !lg__optimizer_step(opt, opt->found, op))
                return false;
        opt->stepped = true;
        return true;
}

/* ---- the scale ---- */

static bool rescale(lg_scaler *s, const char *op)
{
        lg__device *d = s->scale->storage->device;
        const lg_tensor *found = on(s->found, d);
        lg_rescale_args a = {.scale = lg__data(s->scale),
                             .steps = lg__data(s->steps),
                             .found = found ? lg__data(found) : NULL,
                             .growth = s->growth,
                             .backoff = s->backoff,
                             .interval = s->interval};
        return found && LG__RUN(d, op, rescale, &a);
}

static void end_round(void *owner, const void *data, size_t bytes)
{
        lg_scaler *s = owner;
        (void)data;
        (void)bytes;
        lg__tensor_hold(&s->found, NULL);
        s->scaled = false;
        s->round = ++s->object.ctx->sequence;
}

bool lg_scaler_update(lg_scaler *s)
{
        const char *op = "lg_scaler_update";
        if (!ready(s, op) || !may_go_on(s, op))
                return false;
        if (!s->found)
                return lg__fail(s->object.ctx, LG_ERR_STATE,
                                "%s: no gradients were unscaled since the last one; call lg_scaler_step() before", op);
        lg_scope scope = lg_scope_begin(s->object.ctx);
        bool ok = scope.id && rescale(s, op);
        lg_scope_end(s->object.ctx, scope);
        if (!ok)
                return false;
        lg__storage_changed(s->scale->storage);
        watch(s);
        end_round(s, NULL, 0);
        lg__tape_host(s->object.ctx, end_round, s, NULL, 0);
        return !s->object.ctx->error;
}

double lg_scaler_scale_of(lg_scaler *s)
{
        return ready(s, "lg_scaler_scale_of") ? lg_item(s->scale) : NAN;
}
