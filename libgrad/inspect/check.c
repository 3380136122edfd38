/* check.c - lg_gradcheck(), lg_gradgradcheck(): analytic gradients and the report (numeric ones: differences.c). */
#include "check.h"

void *lg__check_scratch(lg_ctx *c, int64_t n)
{
        lg_tensor *t = lg__tensor_empty(c, lg_cpu(), LG_F64, LG_SHAPE(n + 1));
        return t ? lg__data(t) : NULL;
}

/* ---- inputs ---- */

static bool is_checked(const lg_tensor *t)
{
        return t->node != NULL;
}

static bool overlap(const lg_tensor *a, const lg_tensor *b)
{
        int64_t a_low, a_high, b_low, b_high;
        if (a == b || a->storage != b->storage)
                return false;
        if (a->at.dtype != b->at.dtype)
                return true; /* offsets in different units; no function makes such views */
        lg__layout_reach(&a->at, &a_low, &a_high);
        lg__layout_reach(&b->at, &b_low, &b_high);
        return a_low <= b_high && b_low <= a_high;
}

/* Returns whether changing one element of input i would change another element of i or of another input. */
static bool needs_copy(const check *k, int64_t i)
{
        const lg_tensor *t = k->inputs.items[i];
        if (!is_checked(t) || lg__shape_numel(t->at.shape) == 0)
                return false;
        bool shared = lg__layout_overlaps(&t->at);
        for (int64_t j = 0; j < k->inputs.count && !shared; j++)
                shared = lg__shape_numel(k->inputs.items[j]->at.shape) > 0 && overlap(t, k->inputs.items[j]);
        return shared;
}

static bool check_input(const check *k, int64_t i)
{
        const lg_tensor *t = k->inputs.items[i];
        if (!t)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: input %lld is NULL", k->name, (long long)i);
        if (t->ctx != k->c)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: input %lld belongs to another context", k->name,
                                (long long)i);
        if (!lg__check(t, k->name, "an input"))
                return false;
        if (is_checked(t) && t->at.dtype != LG_F64)
                return lg__fail(k->c, LG_ERR_DTYPE, "%s: input %lld is %s; finite differences need f64, see lg_cast()",
                                k->name, (long long)i, lg__tensor_text(t).s);
        return true;
}

static bool check_arguments(const check *k)
{
        bool any = false;
        if (!lg__ok(k->c))
                return false;
        if (!k->fn)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: fn is NULL", k->name);
        if (k->inputs.count < 0 || (k->inputs.count && !k->inputs.items))
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: the list of inputs is not one", k->name);
        if (!(k->o.eps > 0) || !(k->o.tolerance >= 0) || k->o.max_elements < 0)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: eps %g, tolerance %g or max_elements %lld is out of range",
                                k->name, k->o.eps, k->o.tolerance, (long long)k->o.max_elements);
        for (int64_t i = 0; i < k->inputs.count; i++) {
                if (!check_input(k, i))
                        return false;
                any = any || is_checked(k->inputs.items[i]);
        }
        return any || lg__fail(k->c, LG_ERR_ARGUMENT,
                               "%s: no input requires grad; mark one with lg_set_requires_grad()", k->name);
}

static bool take_inputs(check *k)
{
        int64_t n = k->inputs.count;
        k->x = lg__check_scratch(k->c, n);
        k->analytic = lg__check_scratch(k->c, n);
        k->checked = lg__check_scratch(k->c, n);
        if (!k->x || !k->analytic || !k->checked)
                return false;
        for (int64_t i = 0; i < n; i++) {
                lg_tensor *t = k->inputs.items[i];
                k->x[i] = needs_copy(k, i)
                                  ? lg_set_requires_grad(lg__clone_values(t, t->storage->device->id, LG_F64), true)
                                  : t;
                k->analytic[i] = NULL;
                k->checked[i] = is_checked(t);
                if (!k->x[i])
                        return false;
        }
        return true;
}

/* ---- analytic gradients ---- */

/* Returns false with an error if fn freed an input or changed its requires_grad: the check would compare nothing. */
static bool inputs_stay(const check *k)
{
        for (int64_t i = 0; i < k->inputs.count; i++) {
                if (!lg__check(k->x[i], k->name, "an input, in fn,"))
                        return false;
                if (is_checked(k->x[i]) != k->checked[i])
                        return lg__fail(k->c, LG_ERR_STATE, "%s: fn changed whether input %lld requires grad", k->name,
                                        (long long)i);
        }
        return true;
}

lg_tensor *lg__check_call(check *k)
{
        lg_ctx *c = k->c;
        uint32_t new;
        const lg__scope *outer = c->scope;
        lg_scope scope = lg__scope_begin(c); /* lg__scope_leave() also ends scopes that fn leaves open */
        if (!scope.id)
                return NULL;
        bool was = lg_set_grad_mode(c, true); /* fn may compute gradients itself, which needs the graph */
        c->random = k->random;
        lg_tensor *y = k->fn(c, (lg_list){k->inputs.count, k->x}, k->o.user);
        lg_set_grad_mode(c, was);
        if (!y)
                lg__fail(c, LG_ERR_ARGUMENT, "%s: fn returned NULL without an error", k->name);
        bool good = y && lg__in_context(c, y, k->name, "the output of fn") && lg__check(y, k->name, "the output of fn");
        if (!lg__scope_leave(c, scope, outer, &y, good, &new) || !good)
                return NULL;
        if (!lg__dtype_float(y->at.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: the output of fn is %s, not of a float dtype", k->name,
                                lg__tensor_text(y).s);
        return inputs_stay(k) && lg__device_wait(y->storage->device) ? y : NULL;
}

/* Returns random numbers as an upstream gradient of t, determined by the seed; a single one is not near zero. */
static lg_tensor *random_like(const lg_tensor *t, uint64_t seed)
{
        lg_random_state was = t->ctx->random;
        t->ctx->random = (lg_random_state){seed, 0};
        double low = lg__shape_numel(t->at.shape) == 1 ? 0.5 : -1;
        lg_tensor *v = lg_uniform(t->ctx, low, 1, t->at.shape, .dtype = LG_F64, .device = t->storage->device->id);
        t->ctx->random = was;
        return v;
}

static lg_tensor *escaped_to_host(const lg_tensor *t)
{
        lg_tensor *host = lg__clone_values(t, lg_cpu(), LG_F64);
        return host ? lg_escape(host) : NULL;
}

/* Computes the gradients of y by all checked inputs into ret, given v for y; ret[i] is NULL for other inputs. */
static bool gradients(lg_tensor *y, lg_list inputs, lg_tensor *v, bool create_graph, lg_tensor **ret)
{
        lg_ctx *c = y->ctx;
        lg_tensor **wanted = lg__check_scratch(c, inputs.count), **found = lg__check_scratch(c, inputs.count);
        int64_t n = 0;
        if (!wanted || !found)
                return false;
        for (int64_t i = 0; i < inputs.count; i++) {
                ret[i] = NULL;
                if (is_checked(inputs.items[i]))
                        wanted[n++] = inputs.items[i];
        }
        if (!y->node || n == 0)
                return true; /* y depends on no checked input */
        lg_grad(LG_LIST(y), LG_LIST_OF(n, wanted), .grads = LG_LIST(v), .result = found, .create_graph = create_graph);
        if (c->error)
                return false;
        for (int64_t i = 0, j = 0; i < inputs.count; i++)
                if (is_checked(inputs.items[i]))
                        ret[i] = found[j++];
        return true;
}

static bool find_analytic(check *k)
{
        lg_ctx *c = k->c;
        lg_scope scope = lg__scope_begin(c);
        lg_tensor **g = scope.id ? lg__check_scratch(c, k->inputs.count) : NULL, *y = g ? lg__check_call(k) : NULL;
        lg_tensor *v = y ? random_like(y, k->o.seed ^ 0x76) : NULL;
        k->v = v ? escaped_to_host(v) : NULL;
        bool ok = k->v && gradients(y, (lg_list){k->inputs.count, k->x}, v, false, g);
        for (int64_t i = 0; i < k->inputs.count && ok; i++)
                ok = !g[i] || (k->analytic[i] = escaped_to_host(g[i]));
        lg_scope_end(c, scope);
        return ok;
}

/* ---- lg_gradcheck, lg_gradgradcheck ---- */

static void write_text(check *k)
{
        lg_check_report *w = &k->worst;
        w->ok = w->checked == 0 || w->error <= k->o.tolerance;
        locale_t was = lg__point_begin();
        if (w->checked)
                snprintf(w->text, sizeof w->text,
                         "input %d, element %lld of %.80s: analytic %.10g, numeric %.10g, error %.1e (tolerance %g)",
                         w->input, (long long)w->element, lg__shape_text(k->x[w->input]->at.shape).s, w->analytic,
                         w->numeric, w->error, k->o.tolerance);
        else
                snprintf(w->text, sizeof w->text, "the inputs have no elements");
        lg__point_end(was);
}

static bool run(check *k)
{
        lg_ctx *c = k->c;
        lg_scope scope = lg__scope_begin(c);
        k->random = c->random;
        bool ok = scope.id && take_inputs(k) && find_analytic(k);
        for (int64_t i = 0; i < k->inputs.count && ok; i++) {
                lg_scope inner = lg__scope_begin(c);
                ok = inner.id && (!is_checked(k->x[i]) || lg__check_differences(k, i));
                lg_scope_end(c, inner);
        }
        if (ok)
                write_text(k);
        lg_scope_end(c, scope);
        c->random = k->random;
        return ok && k->worst.ok;
}

static bool take(check *k, size_t report_size, const lg_check_options *options, double tolerance)
{
        const lg_check_report none = {.text = "not checked"};
        lg_check_options *o = &k->o;
        if (!lg__take_without(options, o, sizeof *o))
                return lg__take(k->c, k->name, options, o, sizeof *o);
        if (o->report)
                lg__give(o->report, report_size, &none, sizeof none);
        o->eps = lg__option(o->eps, 1e-3);
        o->tolerance = lg__option(o->tolerance, tolerance);
        return check_arguments(k);
}

bool lg_gradcheck_with(lg_ctx *c, lg_function *fn, lg_list inputs, size_t report_size, const lg_check_options *options)
{
        check k = {.c = c, .name = "lg_gradcheck", .fn = fn, .inputs = inputs};
        if (!take(&k, report_size, options, 1e-7) || (!run(&k) && c->error))
                return false;
        if (k.o.report)
                lg__give(k.o.report, report_size, &k.worst, sizeof k.worst);
        return k.worst.ok;
}

typedef struct first_derivative {
        lg_function *fn;
        void *user;
        uint64_t seed;
} first_derivative;

/* Maps (inputs, v) to the sum over i of <w_i, d <v, fn(inputs)> / d inputs_i> for fixed random w. Records fn even if
 * the caller does not record, because the first derivative needs the graph of fn. */
static lg_tensor *derivative(lg_ctx *c, lg_list all, void *user)
{
        const first_derivative *d = user;
        lg_list inputs = {all.count - 1, all.items};
        lg_tensor **g = lg__check_scratch(c, inputs.count), *sum = NULL;
        bool was = lg_set_grad_mode(c, true);
        lg_tensor *y = g ? d->fn(c, inputs, d->user) : NULL;
        lg_set_grad_mode(c, was);
        if (!y || !lg__in_context(c, y, "lg_gradgradcheck", "the output of fn") ||
            !lg__check(y, "lg_gradgradcheck", "the output of fn") ||
            !gradients(y, inputs, all.items[inputs.count], was, g))
                return NULL;
        for (int64_t i = 0; i < inputs.count; i++) {
                if (!g[i])
                        continue;
                lg_tensor *term = lg_sum(lg_mul(random_like(g[i], d->seed ^ (0x77 + ((uint64_t)i << 8))), g[i]));
                sum = sum ? lg_add(sum, term) : term;
                if (!sum)
                        return NULL;
        }
        return sum ? sum : lg_scalar(c, 0, .dtype = LG_F64, .device = y->storage->device->id);
}

/* Appends an upstream gradient v of fn's output, which requires grad, to k->inputs, in the innermost scope. */
static bool with_upstream(check *k)
{
        lg_ctx *c = k->c;
        lg_tensor **items = lg__check_scratch(c, k->inputs.count + 1);
        lg_scope scope = lg__scope_begin(c);
        k->random = c->random;
        lg_tensor *v = NULL, *y = NULL;
        if (scope.id && items && take_inputs(k) && (y = lg__check_call(k)))
                v = lg_set_requires_grad(random_like(y, k->o.seed ^ 0x75), true);
        c->random = k->random;
        if (v)
                lg_escape(v);
        lg_scope_end(c, scope);
        for (int64_t i = 0; i < k->inputs.count && v; i++)
                items[i] = k->inputs.items[i];
        if (v)
                items[k->inputs.count++] = v;
        k->inputs.items = items;
        return v != NULL;
}

bool lg_gradgradcheck_with(lg_ctx *c, lg_function *fn, lg_list inputs, size_t report_size,
                           const lg_check_options *options)
{
        check k = {.c = c, .name = "lg_gradgradcheck", .fn = fn, .inputs = inputs};
        if (!take(&k, report_size, options, 1e-6))
                return false;
        lg_scope scope = lg__scope_begin(c);
        bool ok = scope.id && with_upstream(&k);
        first_derivative d = {fn, k.o.user, k.o.seed};
        k.fn = derivative;
        k.o.user = &d;
        if (ok)
                run(&k);
        lg_scope_end(c, scope);
        if (c->error)
                return false;
        if (k.o.report)
                lg__give(k.o.report, report_size, &k.worst, sizeof k.worst);
        return ok && k.worst.ok;
}
