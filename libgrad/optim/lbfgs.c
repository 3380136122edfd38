/* lbfgs.c - L-BFGS (Nocedal 1980); PyTorch's torch.optim.LBFGS: the iterations of a step (line search: wolfe.c).
 *
 * All parameters are one vector x. With the last changes s of x and y of the gradient, newest first, the direction d =
 * -H g is computed by the two-loop recursion: q = -g; for each pair: a = s.q / y.s, q -= a y; q *= s.y / y.y; for each
 * pair, oldest first: q += (a - y.q / y.s) s.
 */
#include <string.h>
#include "state/entries.h"
#include "lbfgs.h"

#define NAME "lg_lbfgs"

/* ---- memory ---- */

static size_t pair_bytes(const lg__lbfgs *m)
{
        return (size_t)m->room * sizeof(lg_tensor *);
}

/* Forgets all iterations, so that the next one goes along the gradient. */
static void forget(lg__lbfgs *m)
{
        for (int64_t i = 0; i < m->room; i++) {
                lg__tensor_hold(&m->y[i], NULL);
                lg__tensor_hold(&m->s[i], NULL);
        }
        lg__tensor_hold(&m->d, NULL);
        lg__tensor_hold(&m->last, NULL);
        m->iterations = 0;
}

static void finish(lg_optimizer *opt)
{
        lg__lbfgs *m = opt->memory;
        lg_ctx *c = opt->object.ctx;
        if (m->y && m->s)
                forget(m);
        lg__tensor_release(m->ro);
        lg__free(c, m->y, m->y ? pair_bytes(m) : 0);
        lg__free(c, m->s, m->s ? pair_bytes(m) : 0);
        lg__free(c, m, sizeof *m);
}

static int64_t elements(const lg_optimizer *opt)
{
        int64_t n = 0;
        for (int64_t i = 0; i < opt->count; i++)
                n += lg__shape_numel(opt->slots[i].param->at.shape);
        return n;
}

static bool visit(lg_optimizer *opt, lg__state_entries *list)
{
        lg__lbfgs *m = opt->memory;
        const lg_tensor *p = opt->slots[0].param;
        const lg_shape shape = {.ndim = 1, .size = {elements(opt)}}, pairs = {.ndim = 1, .size = {m->room}};
        const lg_device d = p->storage->device->id;
        const lg_dtype dtype = p->at.dtype;
        const unsigned flags = LG__ENTRY_REMOVABLE;
        bool ok = lg__state_add_whole(list, "n_iter", &m->iterations, LG__COUNT_MOST) &&
                  lg__state_add_whole(list, "func_evals", &m->calls, LG__COUNT_MOST) &&
                  lg__state_add_f64(list, "t", &m->t) && lg__state_add_f64(list, "H_diag", &m->scale) &&
                  lg__state_add_tensor_shaped(list, "ro", &m->ro, LG_F64, pairs, lg_cpu(), flags) &&
                  lg__state_add_tensor_shaped(list, "d", &m->d, dtype, shape, d, flags) &&
                  lg__state_add_tensor_shaped(list, "prev_flat_grad", &m->last, dtype, shape, d, flags);
        for (int64_t i = 0; i < m->room && ok; i++) {
                char name[2][32];
                snprintf(name[0], sizeof name[0], "old_dirs.%lld", (long long)i);
                snprintf(name[1], sizeof name[1], "old_stps.%lld", (long long)i);
                ok = lg__state_add_tensor_shaped(list, name[0], &m->y[i], dtype, shape, d, flags) &&
                     lg__state_add_tensor_shaped(list, name[1], &m->s[i], dtype, shape, d, flags);
        }
        return ok;
}

/* ---- vectors ---- */

static double item(lg_tensor *t)
{
        return t ? lg_item(t) : NAN;
}

double lg__lbfgs_dot(lg_tensor *a, lg_tensor *b)
{
        return item(lg_sum(lg_mul(a, b)));
}

double lg__lbfgs_greatest(lg_tensor *a)
{
        return item(lg_amax(lg_abs(a)));
}

/* Returns the gradients, or if `values` the values, of all parameters as one vector; NULL: an error. */
static lg_tensor *gathered(lg__lbfgs_step *k, bool values)
{
        const lg_lbfgs_options *o = k->opt->options;
        lg_ctx *c = k->opt->object.ctx;
        const int64_t count = k->opt->count;
        const size_t bytes = (size_t)count * sizeof(lg_tensor *);
        lg_tensor **flat = lg__alloc(c, bytes), *all = NULL;
        bool ok = flat != NULL;
        for (int64_t i = 0; i < count && ok; i++) {
                lg__slot *s = &k->opt->slots[i];
                lg_tensor *p = s->param, *t = values                            ? p
                                              : lg__slot_find(k->opt, i, k->op) ? lg__slot_gradient(s)
                                                                                : NULL;
                if (!t && !c->error)
                        t = lg_zeros_like(p);
                ok = t && (flat[i] = lg_reshape(t, LG_SHAPE(lg__shape_numel(p->at.shape)))) != NULL;
        }
        if (ok)
                all = lg_cat(LG_LIST_OF(count, flat), 0);
        lg__free(c, flat, flat ? bytes : 0);
        return all && !values && o->maximize ? lg_neg(all) : all;
}

/* Sets the parameters to the parts of a vector, of which k->parts are views. Works while an error is set. */
static bool scatter(lg__lbfgs_step *k)
{
        bool ok = true;
        for (int64_t i = 0; i < k->opt->count; i++) {
                lg_tensor *p = k->opt->slots[i].param;
                if (!lg__slot_lives(k->opt, i, k->op))
                        return false;
                ok = lg__copy_values(p, k->parts[i], k->op) && ok;
                p->storage->version++;
        }
        return ok;
}

/* Makes k->x, a copy of the parameters, k->now, the vector of which k->parts are views, and k->scratch. */
static bool take_parameters(lg__lbfgs_step *k)
{
        int64_t begin = 0;
        k->x = gathered(k, true);
        k->first = k->x ? lg__clone_values(k->x, k->x->storage->device->id, k->x->at.dtype) : NULL;
        k->now = k->x ? lg_empty_like(k->x) : NULL;
        k->scratch = k->x ? lg_empty_like(k->x) : NULL;
        for (int64_t i = 0; i < k->opt->count && k->now && k->scratch; i++) {
                const lg_shape shape = k->opt->slots[i].param->at.shape;
                const int64_t end = begin + lg__shape_numel(shape);
                if (!(k->parts[i] = lg_reshape(lg_slice(k->now, 0, begin, end), shape)))
                        return false;
                begin = end;
        }
        return k->first && k->now && k->scratch;
}

static bool copy(lg__lbfgs_step *k, lg_tensor *to, const lg_tensor *from)
{
        return lg__copy_values(to, from, k->op);
}

/* Sets the parameters to x + t d. */
static bool go(lg__lbfgs_step *k, double t)
{
        lg_tensor *d[LG_PW_INPUTS] = {k->memory->d};
        return copy(k, k->now, k->x) && lg__pointwise_add(LG_PW_mul_scalar, k->now, d, t, 0, k->op) && scatter(k);
}

/* Calls the function. *ret_g: the gradients, of the innermost scope. */
static bool evaluate(lg__lbfgs_step *k, double *ret_f, lg_tensor **ret_g)
{
        const lg_lbfgs_options *o = k->opt->options;
        const int64_t count = k->opt->count;
        const int groups = k->opt->group_count;
        lg_set_autocast_mode(k->opt->object.ctx, k->region);
        const bool ok = lg__closure_run(k->opt, k->op, k->fn, k->user, ret_f);
        lg_set_autocast_mode(k->opt->object.ctx, LG_DTYPE_NONE);
        k->memory->calls++;
        if (ok && (count != k->opt->count || groups != k->opt->group_count))
                return lg__fail(k->opt->object.ctx, LG_ERR_STATE, "%s: the function has added parameters", k->op);
        *ret_f *= o->maximize ? -1 : 1;
        return ok && (*ret_g = gathered(k, false)) != NULL;
}

bool lg__lbfgs_try(lg__lbfgs_step *k, double t, double *ret_f, lg_tensor **ret_g)
{
        return go(k, t) && evaluate(k, ret_f, ret_g);
}

/* ---- the direction ---- */

/* Computes ret = a.b, 0-d. */
static lg_tensor *product(lg__lbfgs_step *k, lg_tensor *a, lg_tensor *b)
{
        lg_tensor *in[LG_PW_INPUTS] = {a, b};
        return lg__pointwise_run(LG_PW_mul, k->scratch, in, 0, 0, k->op) ? lg_sum(k->scratch) : NULL;
}

/* Computes to += factor a, for a 0-d factor. */
static bool add_scaled(lg__lbfgs_step *k, lg_tensor *to, lg_tensor *a, lg_tensor *factor)
{
        lg_tensor *in[LG_PW_INPUTS] = {a, factor};
        return factor && lg__pointwise_add(LG_PW_mul, to, in, 0, 0, k->op);
}

static int64_t pairs(const lg__lbfgs *m)
{
        int64_t n = 0;
        while (n < m->room && m->y[n] && m->s[n])
                n++;
        return n;
}

/* Stores the last changes of the gradient g and of x as the newest pair, unless the curvature is too small. */
static bool remember(lg__lbfgs_step *k, lg_tensor *g)
{
        lg__lbfgs *m = k->memory;
        double *ro = lg__data(m->ro);
        lg_tensor *y = lg_sub(g, m->last), *s = lg_mul_scalar(m->d, m->t);
        const double ys = lg__lbfgs_dot(y, s);
        if (!(ys > 1e-10))
                return !m->ro->ctx->error;
        int64_t n = pairs(m);
        if (n == m->room) {
                lg__tensor_release(m->y[0]);
                lg__tensor_release(m->s[0]);
                n--;
                memmove(m->y, m->y + 1, (size_t)n * sizeof *m->y);
                memmove(m->s, m->s + 1, (size_t)n * sizeof *m->s);
                memmove(ro, ro + 1, (size_t)n * sizeof *ro);
                m->y[n] = m->s[n] = NULL;
        }
        lg__tensor_hold(&m->y[n], y);
        lg__tensor_hold(&m->s[n], s);
        ro[n] = 1 / ys;
        m->scale = ys / lg__lbfgs_dot(y, y);
        return !m->ro->ctx->error;
}

/* Leaves parameters without a gradient where they are: d has a part for them if they had one before. */
static bool leave_others(lg__lbfgs_step *k, lg_tensor *d)
{
        int64_t begin = 0;
        bool ok = true;
        for (int64_t i = 0; i < k->opt->count && ok; i++) {
                const lg__slot *s = &k->opt->slots[i];
                const int64_t end = begin + lg__shape_numel(s->param->at.shape);
                if (!lg__slot_gradient(s) && begin < end) {
                        lg_tensor *part = lg_slice(d, 0, begin, end);
                        ok = part && lg__fill_values(part, 0, k->op);
                }
                begin = end;
        }
        return ok;
}

/* Sets the direction d = -H g. */
static bool direct(lg__lbfgs_step *k, lg_tensor *g)
{
        lg__lbfgs *m = k->memory;
        const double *ro = lg__data(m->ro);
        const int64_t n = pairs(m);
        const size_t bytes = (size_t)m->room * sizeof(lg_tensor *);
        lg_tensor *q = lg_neg(g), **a = q ? lg__alloc(m->ro->ctx, bytes) : NULL;
        bool ok = a != NULL;
        for (int64_t i = n - 1; i >= 0 && ok; i--) {
                a[i] = lg_mul_scalar(product(k, m->s[i], q), -ro[i]);
                ok = add_scaled(k, q, m->y[i], a[i]);
        }
        ok = ok && (n == 0 || (q = lg_mul_scalar(q, m->scale)));
        for (int64_t i = 0; i < n && ok; i++) {
                lg_tensor *b = lg_mul_scalar(product(k, m->y[i], q), -ro[i]);
                ok = add_scaled(k, q, m->s[i], lg_sub(b, a[i]));
        }
        lg__free(m->ro->ctx, a, a ? bytes : 0);
        if (!ok || !leave_others(k, q))
                return false;
        lg__tensor_hold(&m->d, q);
        return true;
}

/* ---- a step ---- */

/* Makes one iteration from x, where the loss is *f and the gradient *g; sets them at the new x. *ret_more: whether
 * another one may follow. The scope of the iteration owns what it makes, but *g is passed on. */
static bool iterate(lg__lbfgs_step *k, int64_t done, double *f, lg_tensor **g, bool *ret_more)
{
        lg__lbfgs *m = k->memory;
        const lg_lbfgs_options *o = k->opt->options;
        const double lr = k->opt->groups[0].lr, last = *f;
        const int64_t calls = m->calls;
        const bool first = m->iterations++ == 0;
        *ret_more = false;
        if ((!first && !remember(k, *g)) || !direct(k, *g))
                return false;
        lg__tensor_hold(&m->last, lg__clone_values(*g, (*g)->storage->device->id, (*g)->at.dtype));
        m->t = first ? fmin(1, 1 / item(lg_sum(lg_abs(*g)))) * lr : lr;
        const double slope = lg__lbfgs_dot(*g, m->d);
        if (!m->last || k->opt->object.ctx->error)
                return false;
        if (slope > -o->tolerance_change)
                return true;
        if (o->strong_wolfe) {
                if (!lg__lbfgs_search(k, o->max_eval - k->evaluations, f, g, slope, &m->t))
                        return false;
        }
        if (!go(k, m->t) || !copy(k, k->x, k->now))
                return false;
        if (!o->strong_wolfe && done + 1 < o->max_iter && !evaluate(k, f, g))
                return false;
        k->evaluations += m->calls - calls;
        *ret_more = done + 1 < o->max_iter && k->evaluations < o->max_eval &&
                    !(lg__lbfgs_greatest(*g) <= o->tolerance_grad) &&
                    !(lg__lbfgs_greatest(m->d) * fabs(m->t) <= o->tolerance_change) &&
                    !(fabs(*f - last) < o->tolerance_change);
        return !k->opt->object.ctx->error;
}

static bool iterate_all(lg__lbfgs_step *k, double *loss)
{
        const lg_lbfgs_options *o = k->opt->options;
        lg_tensor *g, *held = NULL;
        double f;
        if (!take_parameters(k) || !evaluate(k, &f, &g))
                return false;
        *loss = o->maximize ? -f : f;
        k->evaluations = 1;
        bool ok = true, more = lg__shape_numel(g->at.shape) && !(lg__lbfgs_greatest(g) <= o->tolerance_grad);
        for (int64_t i = 0; ok && more; i++) {
                lg_scope scope = lg__scope_begin(k->opt->object.ctx);
                ok = scope.id && iterate(k, i, &f, &g, &more);
                if (ok && g != held) {
                        lg__tensor_own(g);
                        lg__tensor_release(held);
                        held = g;
                }
                ok = lg_scope_end(k->opt->object.ctx, scope) && ok;
        }
        lg__tensor_release(held);
        return ok && !k->opt->object.ctx->error;
}

/* Checks the parameters, and moves what is stored to their device and dtype. */
static bool ready(const lg__lbfgs_step *k)
{
        lg_optimizer *opt = k->opt;
        lg__lbfgs *m = k->memory;
        const lg_tensor *first = opt->slots[0].param;
        for (int64_t i = 0; i < opt->count; i++) {
                const lg_tensor *p = opt->slots[i].param;
                if (!lg__slot_find(opt, i, k->op))
                        return false;
                if (p->at.dtype != first->at.dtype || p->storage->device != first->storage->device ||
                    lg__dtype_bytes(p->at.dtype) < 4)
                        return lg__fail(opt->object.ctx, LG_ERR_DTYPE,
                                        "%s: " NAME " needs parameters of one dtype, f32 or f64, on one device; "
                                        "parameter 0 is %s, parameter %lld %s",
                                        k->op, lg__tensor_text(first).s, (long long)i, lg__tensor_text(p).s);
        }
        for (int64_t i = 0; i < 2 * m->room + 2; i++) {
                lg_tensor **t = i == 0   ? &m->d
                                : i == 1 ? &m->last
                                : i % 2  ? &m->y[i / 2 - 1]
                                         : &m->s[i / 2 - 1],
                          *moved;
                if (!*t || ((*t)->at.dtype == first->at.dtype && (*t)->storage->device == first->storage->device))
                        continue;
                if (!(moved = lg__clone_values(*t, first->storage->device->id, first->at.dtype)))
                        return false;
                lg__tensor_hold(t, moved);
        }
        return true;
}

/* Steps; if that fails, restores the parameters and forgets all iterations. */
static bool step_closure(lg_optimizer *opt, const char *op, lg_closure_fn *fn, void *user, double *loss)
{
        lg_ctx *c = opt->object.ctx;
        const size_t bytes = (size_t)opt->count * sizeof(lg_tensor *);
        lg__lbfgs_step k = {.opt = opt, .memory = opt->memory, .op = op, .fn = fn, .user = user};
        lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return false;
        const bool recording = lg_set_grad_mode(c, false);
        k.region = lg_set_autocast_mode(c, LG_DTYPE_NONE);
        k.parts = lg__alloc(c, bytes);
        const bool ok = k.parts && ready(&k) && iterate_all(&k, loss);
        if (!ok) {
                if (k.first && k.now && k.parts[opt->count - 1] && copy(&k, k.now, k.first))
                        scatter(&k);
                forget(k.memory);
        }
        lg__free(c, k.parts, k.parts ? bytes : 0);
        lg_set_autocast_mode(c, k.region);
        lg_set_grad_mode(c, recording);
        return lg_scope_end(c, scope) && ok;
}

/* ---- creation ---- */

static const lg__rule rule = {
        .name = NAME, .no_decay = true, .step_closure = step_closure, .finish = finish, .visit = visit};

static bool options_are_good(lg_ctx *c, const lg_lbfgs_options *o)
{
        if (o->max_iter < 1 || o->max_eval < 1 || o->history_size < 1 || o->history_size > INT32_MAX)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                NAME ": max_iter is %lld, max_eval %lld and history_size %lld; they must be 1 or more",
                                (long long)o->max_iter, (long long)o->max_eval, (long long)o->history_size);
        return lg__option_check(c, NAME, "tolerance_grad", o->tolerance_grad) &&
               lg__option_check(c, NAME, "tolerance_change", o->tolerance_change);
}

lg_optimizer *lg_lbfgs_with(lg_ctx *c, lg_list_in params, double lr, const lg_lbfgs_options *options)
{
        lg_lbfgs_options o;
        if (!lg__take(c, NAME, options, &o, sizeof o))
                return NULL;
        o.max_iter = o.max_iter ? o.max_iter : 20;
        if (!o.max_eval)
                o.max_eval = o.max_iter > 0 && o.max_iter < INT32_MAX ? o.max_iter * 5 / 4 : o.max_iter;
        o.tolerance_grad = lg__option(o.tolerance_grad, 1e-7);
        o.tolerance_change = lg__option(o.tolerance_change, 1e-9);
        o.history_size = o.history_size ? o.history_size : 100;
        if (!options_are_good(c, &o))
                return NULL;
        lg_optimizer *opt = lg__optimizer_new(c, &rule, params, (lg__group){.lr = lr}, &o, sizeof o);
        lg__lbfgs *m = opt ? lg__alloc(c, sizeof *m) : NULL;
        if (!m)
                return opt ? lg__object_destroy(opt) : NULL;
        opt->memory = m;
        m->room = o.history_size;
        m->scale = 1;
        m->y = lg__alloc(c, pair_bytes(m));
        m->s = m->y ? lg__alloc(c, pair_bytes(m)) : NULL;
        m->ro = m->s ? lg__tensor_own(lg__tensor_empty(c, lg_cpu(), LG_F64, LG_SHAPE(m->room))) : NULL;
        const lg__lbfgs_step k = {.opt = opt, .memory = m, .op = NAME};
        return m->ro && lg__fill_values(m->ro, 0, NAME) && ready(&k) ? opt : lg__object_destroy(opt);
}
