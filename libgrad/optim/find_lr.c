/* find_lr.c - lg_find_lr(), the learning-rate range test (Smith 2017), after which everything is as before.
 *
 * The smoothed loss of step i is a_i / (1 - beta^(i + 1)), with a_i = beta a_(i - 1) + (1 - beta) loss_i and a_(-1) =
 * 0: an average in which a loss j steps ago has the weight beta^j. The suggestion is the rate in the
 * middle of the tenth of all steps that lowers it most, up to the lowest one: the steepest slope along the logarithm of
 * the rate, without the noise of single batches. lr_find of fastai and of Lightning take single steps, also beyond the
 * lowest loss, where a loss that has diverged may fall faster, and have beta = 0.98, with which the average lags by up
 * to 50 steps.
 */
#include <string.h>
#include "grad/schedule.h"
#include "nn/nn.h"
#include "state/load.h"
#include "optim.h"

#define NAME "lg_find_lr"

/* Values before the test. `list` names the tensors and numbers of the module, of the optimiser with parameters of its
 * own, and of the loader: those from `loader_begin` on. */
typedef struct snapshot {
        lg__state_entries list;
        lg__staged *staged; /* owned: the value of each entry, or NULL */
        int64_t count, own_begin, loader_begin;
        uint64_t *serials; /* owned: of the tensor of each entry, which the program may free; or NULL */
        lg__node **nodes;  /* owned: the leaf node of each entry that is a parameter, counted; or NULL */
        lg_tensor **grads; /* owned: its gradient, owned, which is no longer that of the node; or NULL */
        lg__weak loader;
} snapshot;

/* ---- taking a snapshot ---- */

static bool add_own_parameters(lg__state_entries *list, lg_optimizer *opt)
{
        bool ok = true;
        for (int64_t i = 0; i < opt->count && ok; i++)
                if (!lg__state_entries_name(list, opt->slots[i].param))
                        ok = lg__state_add_tensor(list, "parameter", &opt->slots[i].param, 0);
        return ok;
}

static bool add_all(snapshot *s, lg_module *m, lg_optimizer *opt, lg__object *loader)
{
        lg_ctx *c = opt->object.ctx;
        lg__state_entries *list = &s->list;
        bool ok = lg__state_add_u64(list, "random.seed", &c->random.seed) &&
                  lg__state_add_u64(list, "random.counter", &c->random.counter) &&
                  lg__state_add_object(list, "model", &m->object) &&
                  lg__state_add_object(list, "optimizer", &opt->object);
        s->own_begin = list->count;
        ok = ok && add_own_parameters(list, opt);
        s->loader_begin = list->count;
        return ok && (!loader || lg__state_add_object(list, "loader", loader));
}

/* Copies the value of an entry. Tensors belong to the innermost scope. */
static bool stage(lg__state_entry *e, lg__staged *ret)
{
        const lg_tensor *t = e->kind == LG__ENTRY_TENSOR ? *(lg_tensor **)e->at : NULL;
        *ret = (lg__staged){.to = e, .removed = e->kind == LG__ENTRY_TENSOR && !t};
        if (e->kind == LG__ENTRY_BOOL)
                ret->number.flag = *(bool *)e->at;
        else if (e->kind != LG__ENTRY_TENSOR && e->kind != LG__ENTRY_TEXT)
                memcpy(&ret->number, e->at, sizeof ret->number);
        return !t || (ret->tensor = lg__clone_values(t, t->storage->device->id, t->at.dtype));
}

/* Takes the gradient from the leaf node of a parameter. */
static void take_gradient(snapshot *s, int64_t i)
{
        const lg_tensor *t = s->staged[i].tensor ? *(lg_tensor **)s->staged[i].to->at : NULL;
        s->serials[i] = t ? t->serial : 0;
        if (!t || !t->node || t->node->op)
                return;
        s->nodes[i] = t->node;
        lg__node_ref(t->node);
        if (t->node->grads) {
                s->grads[i] = t->node->grads[t->output];
                t->node->grads[t->output] = NULL;
        }
}

static bool take(snapshot *s, lg_module *m, lg_optimizer *opt, lg__object *loader)
{
        lg_ctx *c = opt->object.ctx;
        lg__state_entries_begin(&s->list, c, NAME);
        bool ok = add_all(s, m, opt, loader);
        const size_t n = (size_t)s->list.count;
        ok = ok && (s->staged = lg__alloc(c, n * sizeof *s->staged)) &&
             (s->serials = lg__alloc(c, n * sizeof *s->serials)) && (s->nodes = lg__alloc(c, n * sizeof *s->nodes)) &&
             (s->grads = lg__alloc(c, n * sizeof *s->grads));
        while (ok && s->count < s->list.count) {
                ok = stage(&s->list.items[s->count], &s->staged[s->count]);
                s->count += ok;
        }
        for (int64_t i = 0; i < s->count && ok; i++)
                take_gradient(s, i);
        lg__weak_set(&s->loader, loader);
        return ok;
}

/* ---- restoring it ---- */

/* Returns whether entry i changes in training and is of an object that the program has not freed in the test. */
static bool is_restored(const snapshot *s, int64_t i)
{
        if (s->staged[i].to->kind == LG__ENTRY_TEXT)
                return false;
        const lg_tensor *t = i >= s->own_begin && i < s->loader_begin ? *(lg_tensor **)s->staged[i].to->at : NULL;
        return t ? t->live == LG__LIVE && t->serial == s->serials[i] : i < s->loader_begin || s->loader.object;
}

static void put_gradient(snapshot *s, int64_t i)
{
        lg__node *n = s->nodes[i];
        if (n && s->grads[i]) {
                lg__node_clear_grad(n, 0);
                n->grads[0] = s->grads[i];
        }
        lg__node_unref(n);
}

/* Restores all values and gradients, also while an error is set. */
static void put_back(snapshot *s)
{
        for (int64_t i = 0; i < s->count; i++)
                if (is_restored(s, i))
                        lg__stage_commit(&s->list, &s->staged[i], 1);
        for (int64_t i = 0; i < s->count; i++)
                if (s->nodes[i])
                        lg__node_clear_grad(s->nodes[i], 0);
        for (int64_t i = 0; i < s->count; i++)
                put_gradient(s, i);
        if (s->loader.object)
                s->loader.object->type->restored(s->loader.object);
}

static void finish(snapshot *s)
{
        lg_ctx *c = s->list.c;
        const size_t n = (size_t)s->list.count;
        lg__free(c, s->staged, s->staged ? n * sizeof *s->staged : 0);
        lg__free(c, s->serials, s->serials ? n * sizeof *s->serials : 0);
        lg__free(c, s->nodes, s->nodes ? n * sizeof *s->nodes : 0);
        lg__free(c, s->grads, s->grads ? n * sizeof *s->grads : 0);
        lg__weak_set(&s->loader, NULL);
        lg__state_entries_end(&s->list);
}

/* ---- the test ---- */

/* Steps at rates that grow from o->from to o->to, until the loss diverges. Returns the number of points, or -1 with an
 * error. */
static int64_t measure(lg_optimizer *opt, lg_closure_fn *fn, void *user, const lg_find_lr_options *o,
                       lg_lr_point *curve)
{
        double average = 0, weight = 0, lowest = INFINITY;
        for (int64_t i = 0; i < o->steps; i++) {
                lg_lr_point *p = &curve[i];
                p->lr = o->from * pow(o->to / o->from, (double)i / (double)(o->steps - 1));
                for (int g = 0; g < opt->group_count; g++)
                        opt->groups[g].lr = p->lr;
                if (!lg__closure_step(opt, NAME, fn, user, &p->loss))
                        return -1;
                if (!isfinite(p->loss) && !i)
                        return lg__fail(opt->object.ctx, LG_ERR_STATE,
                                        NAME ": the loss is %g before the first step; it must be finite", p->loss),
                               -1;
                if (!isfinite(p->loss))
                        return i;
                average = o->smoothing * average + (1 - o->smoothing) * p->loss;
                weight = o->smoothing * weight + (1 - o->smoothing);
                p->smoothed = average / weight;
                if (p->smoothed - lowest > (o->stop - 1) * fabs(lowest))
                        return i + 1;
                lowest = fmin(lowest, p->smoothed);
        }
        return o->steps;
}

/* Returns the rate in the middle of the tenth of steps with the greatest fall, up to the lowest point, or 0 with an
 * error. */
static double steepest(lg_ctx *c, const lg_find_lr_options *o, const lg_lr_point *p, int64_t count)
{
        const int64_t first = o->steps / 10;
        int64_t bottom = first;
        double fall = 0, rate = 0;
        if (count < first + 2)
                return lg__fail(c, LG_ERR_STATE,
                                NAME ": the loss diverged after %lld steps, at a rate of %g, too early for a "
                                     "suggestion; lower .from, which is %g",
                                (long long)count, p[count - 1].lr, o->from),
                       0;
        for (int64_t i = first; i < count; i++)
                bottom = p[i].smoothed < p[bottom].smoothed ? i : bottom;
        for (int64_t i = first; i < bottom; i++) {
                const int64_t end = i + o->steps / 10 < bottom ? i + o->steps / 10 : bottom;
                if (p[i].smoothed - p[end].smoothed > fall) {
                        fall = p[i].smoothed - p[end].smoothed;
                        rate = p[i + (end - i) / 2].lr;
                }
        }
        if (rate == 0)
                lg__fail(c, LG_ERR_STATE,
                         NAME
                         ": the loss did not fall at any rate from %g to %g; give a wider range, or check that the "
                         "loss of fn depends on the parameters of opt",
                         p[first].lr, p[count - 1].lr);
        return rate;
}

static bool options_are_good(lg_ctx *c, const lg_find_lr_options *o)
{
        if (!(o->from > 0 && o->from < o->to && isfinite(o->to)))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                NAME ": .from is %g and .to is %g; rates grow from one above 0 to a finite one",
                                o->from, o->to);
        if (o->steps < 10 || o->steps > 1000000)
                return lg__fail(c, LG_ERR_ARGUMENT, NAME ": .steps is %lld; it must be from 10 to 1000000",
                                (long long)o->steps);
        if (!(o->stop > 1))
                return lg__fail(c, LG_ERR_ARGUMENT, NAME ": .stop is %g; it must be above 1", o->stop);
        if (!o->curve != !o->count)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                NAME ": .curve and .count are given together: the points and their number");
        return lg__fraction_check(c, NAME, ".smoothing", o->smoothing);
}

/* Sets the defaults of the options, and checks everything. Returns false with an error. */
static bool is_good(lg_module *m, lg_optimizer *opt, lg_closure_fn *fn, lg_find_lr_options *o)
{
        lg_ctx *c = opt ? opt->object.ctx : m->object.ctx;
        const lg__object *loader = (const lg__object *)o->loader;
        o->from = lg__option(o->from, 1e-7);
        o->to = lg__option(o->to, 10);
        o->steps = lg__whole_option(o->steps, 100);
        o->smoothing = lg__option(o->smoothing, 0.9);
        o->stop = lg__option(o->stop, 4);
        if (!m || !opt)
                return lg__fail(c, LG_ERR_ARGUMENT, NAME ": the %s is NULL", m ? "optimiser" : "module");
        if (m->object.ctx != c || (loader && loader->ctx != c))
                return lg__fail(c, LG_ERR_ARGUMENT, NAME ": the %s is of another context",
                                m->object.ctx == c ? "loader" : "module");
        if (!fn)
                return lg__fail(c, LG_ERR_ARGUMENT, NAME ": fn is NULL");
        if (opt->running)
                return lg__fail(c, LG_ERR_STATE, NAME ": a step of the optimiser has not returned");
        return lg__object_lasts(&opt->object, NAME) && lg__object_lasts(&m->object, NAME) && options_are_good(c, o) &&
               (!loader || (lg__object_lasts(loader, NAME) && loader->type->may_change((lg__object *)o->loader, NAME)));
}

/* Runs the test between a snapshot and its restoration. Returns the number of points, or -1 with an error. */
static int64_t run(lg_module *m, lg_optimizer *opt, lg_closure_fn *fn, void *user, const lg_find_lr_options *o,
                   lg_lr_point *curve)
{
        lg_ctx *c = opt->object.ctx;
        snapshot s = {.count = 0};
        lg_scope scope = lg__scope_begin(c);
        int64_t count = -1;
        if (!scope.id)
                return -1;
        if (take(&s, m, opt, (lg__object *)o->loader)) {
                lg__module_hold(m);
                opt->running++;
                opt->fixed = true;
                c->user_calls++;
                count = measure(opt, fn, user, o, curve);
                c->user_calls--;
                opt->fixed = false;
                opt->running--;
                lg__module_unhold(m);
                put_back(&s);
        }
        finish(&s);
        return lg_scope_end(c, scope) && !c->error ? count : -1;
}

double lg_find_lr_with(lg_module *m, lg_optimizer *opt, lg_closure_fn *fn, void *user,
                       const lg_find_lr_options *options)
{
        lg_ctx *c = opt ? opt->object.ctx : lg_module_ctx(m);
        lg_find_lr_options o;
        if (!lg__enter(c) || !lg__take(c, NAME, options, &o, sizeof o) || !lg__may_end(c, NAME) ||
            !is_good(m, opt, fn, &o))
                return 0;
        const size_t bytes = (size_t)o.steps * sizeof(lg_lr_point);
        lg_lr_point *curve = o.curve ? o.curve : lg__alloc(c, bytes);
        const int64_t count = curve ? run(m, opt, fn, user, &o, curve) : -1;
        const double rate = count >= 0 ? steepest(c, &o, curve, count) : 0;
        if (o.count)
                *o.count = count < 0 ? 0 : count;
        if (!o.curve)
                lg__free(c, curve, curve ? bytes : 0);
        return rate;
}
