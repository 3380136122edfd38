/* derivatives.c - derivatives of functions: lg_vjp(), lg_jvp(), lg_jacobian(), lg_hessian(), lg_hvp(),
 * lg_grad_per_sample().
 *
 * With y = f(x): the vjp is v J, by one backward. It is linear in v, so the jvp J t = d <t, v J> / dv is the backward
 * of that backward, and the hvp H v = d <v, dy/dx> / dx. Jacobians and Hessians are stacked from a backward for each
 * row.
 */
#include "nn.h"

/* A call. Arrays have an element for each input. */
typedef struct derivation {
        lg_ctx *c;
        const char *name;
        lg_function *fn;
        lg_function_options o;
        lg_list given;       /* the inputs */
        lg_list vectors;     /* vectors to multiply with: v or the tangents; or the samples */
        lg_tensor **x, **g;  /* what fn receives, and gradients; x has room for the samples */
        lg_tensor **results; /* one for each input, or one */
        int64_t count;       /* number of results */
        lg_tensor *value;
} derivation;

/* ---- arguments ---- */

static bool is_float(const derivation *k, const lg_tensor *t, const char *argument)
{
        if (!lg__in_context(k->c, t, k->name, argument) || !lg__check(t, k->name, argument))
                return false;
        return lg__dtype_float(t->at.dtype) || lg__fail(k->c, LG_ERR_DTYPE, "%s: %s is %s, not of a float dtype",
                                                        k->name, argument, lg__tensor_text(t).s);
}

/* Returns whether v can be multiplied with derivatives of `of`: has its shape, dtype and device. */
static bool fits(const derivation *k, const lg_tensor *v, const lg_tensor *of, const char *what, int64_t i)
{
        if (!v)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: vector %lld is NULL", k->name, (long long)i);
        if (!is_float(k, v, "a vector"))
                return false;
        if (!lg__shape_equal(v->at.shape, of->at.shape))
                return lg__fail(k->c, LG_ERR_SHAPE, "%s: vector %lld is %s, but %s is %s", k->name, (long long)i,
                                lg__tensor_text(v).s, what, lg__tensor_text(of).s);
        if (v->at.dtype != of->at.dtype)
                return lg__fail(k->c, LG_ERR_DTYPE, "%s: vector %lld is %s, but %s is %s", k->name, (long long)i,
                                lg__tensor_text(v).s, what, lg__tensor_text(of).s);
        return lg_device_equal(v->storage->device->id, of->storage->device->id) ||
               lg__fail(k->c, LG_ERR_DEVICE, "%s: vector %lld is %s, but %s is %s", k->name, (long long)i,
                        lg__tensor_text(v).s, what, lg__tensor_text(of).s);
}

/* Checks that there is a vector for each input, and that it fits. */
static bool vectors_fit(const derivation *k)
{
        if (k->vectors.count != k->given.count)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: %lld vectors for %lld inputs", k->name,
                                (long long)k->vectors.count, (long long)k->given.count);
        for (int64_t i = 0; i < k->given.count; i++)
                if (!fits(k, k->vectors.items[i], k->given.items[i], "its input", i))
                        return false;
        return true;
}

static bool arguments_are_good(const derivation *k)
{
        if (!k->fn)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: fn is NULL", k->name);
        if (!lg__list_ok(k->c, k->name, k->given.count, k->given.items) ||
            !lg__list_ok(k->c, k->name, k->vectors.count, k->vectors.items))
                return false;
        if (k->given.count < 1)
                return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: the list of inputs is empty", k->name);
        for (int64_t i = 0; i < k->given.count; i++) {
                if (!k->given.items[i])
                        return lg__fail(k->c, LG_ERR_ARGUMENT, "%s: input %lld is NULL", k->name, (long long)i);
                if (!is_float(k, k->given.items[i], "an input"))
                        return false;
        }
        return true;
}

/* ---- calls of fn ---- */

/* Sets k->x: results of the inputs that require grad if the graph is to be created, else leaves with their values. */
static bool take_inputs(derivation *k)
{
        for (int64_t i = 0; i < k->given.count; i++) {
                lg_tensor *t = k->given.items[i];
                const bool joined = k->o.create_graph && t->node;
                k->x[i] = joined ? lg_reshape(t, t->at.shape) : lg_set_requires_grad(lg_detach(t), true);
                if (!k->x[i])
                        return false;
        }
        return true;
}

/* Calls fn with the inputs and `more` tensors behind them in k->x. Returns its output; NULL: an error. */
static lg_tensor *call(derivation *k, int64_t more)
{
        lg_ctx *c = k->c;
        uint32_t new;
        const lg__scope *outer = c->scope;
        lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return NULL;
        const bool was = lg_set_grad_mode(c, true);
        lg_tensor *y = k->fn(c, (lg_list){k->given.count + more, k->x}, k->o.user);
        lg_set_grad_mode(c, was);
        if (!y)
                lg__fail(c, LG_ERR_ARGUMENT, "%s: fn returned NULL without an error", k->name);
        const bool good = y && is_float(k, y, "the output of fn");
        if (!lg__scope_leave(c, scope, outer, &y, good, &new) || !good)
                return NULL;
        for (int64_t i = 0; i < k->given.count; i++)
                if (!lg__check(k->x[i], k->name, "an input, in fn,"))
                        return NULL;
        return y;
}

/* Calls fn, and sets k->value. */
static lg_tensor *output(derivation *k)
{
        lg_tensor *y = call(k, 0);
        k->value = !y ? NULL : k->o.create_graph ? lg_reshape(y, y->at.shape) : lg_detach(y);
        return k->value ? y : NULL;
}

static lg_tensor *single_output(derivation *k)
{
        lg_tensor *y = output(k);
        if (!y || lg__shape_numel(y->at.shape) == 1)
                return y;
        return lg__fail(k->c, LG_ERR_SHAPE, "%s: the output of fn is %s; it must have one element", k->name,
                        lg__tensor_text(y).s);
}

/* Sets k->g to the gradients of <v, y>, zeros where y does not depend on an input. v: NULL for 1. */
static bool gradients(derivation *k, lg_tensor *y, lg_tensor *v, bool retain, bool create)
{
        const lg_list x = {k->given.count, k->x};
        for (int64_t i = 0; i < x.count; i++)
                k->g[i] = NULL;
        if (y->node)
                lg_grad(LG_LIST(y), x, .grads = LG_LIST(v), .result = k->g, .retain_graph = retain,
                        .create_graph = create);
        for (int64_t i = 0; i < x.count && !k->c->error; i++)
                if (!k->g[i])
                        k->g[i] = lg_zeros_like(k->x[i]);
        return !k->c->error;
}

/* Returns the derivative by v of the sum of <t[i], g[i]>, where g are derivatives linear in v; zeros: there is none. */
static lg_tensor *derivative_of_gradients(derivation *k, lg_list by, lg_tensor **ret)
{
        lg_ctx *c = k->c;
        const size_t bytes = (size_t)k->given.count * sizeof(lg_tensor *);
        lg_tensor **g = lg__alloc(c, bytes), **t = g ? lg__alloc(c, bytes) : NULL;
        int64_t n = 0;
        for (int64_t i = 0; t && i < k->given.count; i++) {
                if (!k->g[i]->node)
                        continue; /* constant */
                g[n] = k->g[i];
                t[n++] = k->vectors.items[i];
        }
        for (int64_t i = 0; i < by.count; i++)
                ret[i] = NULL;
        if (n)
                lg_grad(LG_LIST_OF(n, g), by, .grads = LG_LIST_OF(n, t), .result = ret,
                        .create_graph = k->o.create_graph);
        lg__free(c, t, t ? bytes : 0);
        lg__free(c, g, g ? bytes : 0);
        for (int64_t i = 0; i < by.count && !c->error; i++)
                if (!ret[i])
                        ret[i] = lg_zeros_like(by.items[i]);
        return c->error ? NULL : ret[0];
}

/* ---- the derivatives ---- */

static bool vjp(derivation *k)
{
        lg_tensor *v = k->vectors.items[0], *y = v ? output(k) : single_output(k);
        if (!y || (v && !fits(k, v, y, "the output of fn", 0)) || !gradients(k, y, v, false, k->o.create_graph))
                return false;
        for (int64_t i = 0; i < k->count; i++)
                k->results[i] = k->g[i];
        return true;
}

static bool jvp(derivation *k)
{
        lg_tensor *y = vectors_fit(k) ? output(k) : NULL;
        lg_tensor *v = y ? lg_set_requires_grad(lg_zeros_like(y), true) : NULL;
        return v && gradients(k, y, v, true, true) && derivative_of_gradients(k, LG_LIST(v), k->results);
}

static bool hvp(derivation *k)
{
        lg_tensor *y = vectors_fit(k) ? single_output(k) : NULL;
        return y && gradients(k, y, NULL, true, true) &&
               derivative_of_gradients(k, (lg_list){k->given.count, k->x}, k->results);
}

/* Sets k->results to the rows (`rows` of each input, one input after another) in shapes that begin with `first`. */
static bool stack_rows(derivation *k, lg_tensor **rows, int64_t n, lg_shape first)
{
        for (int64_t i = 0; i < k->given.count; i++) {
                lg_shape shape = first, of = k->given.items[i]->at.shape;
                for (int d = 0; d < of.ndim; d++)
                        shape.size[shape.ndim++] = of.size[d];
                k->results[i] =
                        n ? lg_reshape(lg_stack(LG_LIST_OF(n, rows + i * n), 0), shape)
                          : lg_zeros(k->c, shape, .dtype = k->x[i]->at.dtype, .device = k->x[i]->storage->device->id);
                if (!k->results[i])
                        return false;
        }
        return true;
}

/* Returns whether shapes that begin with those dimensions have few enough of them, for all inputs. */
static bool dims_fit(const derivation *k, int first)
{
        for (int64_t i = 0; i < k->given.count; i++)
                if (first + k->given.items[i]->at.shape.ndim > LG_MAX_DIMS)
                        return lg__fail(k->c, LG_ERR_SHAPE, "%s: the result for input %lld would have %d dimensions",
                                        k->name, (long long)i, first + k->given.items[i]->at.shape.ndim);
        return true;
}

/* Returns an array of n tensors for each of `lists` lists; NULL: an error. */
static lg_tensor **rows_new(const derivation *k, int64_t n, int64_t lists, size_t *ret_bytes)
{
        if (n > INT32_MAX * INT64_C(1024) / lists)
                return lg__fail(k->c, LG_ERR_MEMORY, "%s: %lld rows are too many", k->name, (long long)n);
        *ret_bytes = (size_t)(n * lists) * sizeof(lg_tensor *) + 1;
        return lg__alloc(k->c, *ret_bytes);
}

/* Sets k->results to the derivatives of all elements of y. */
static bool jacobian_of(derivation *k, lg_tensor *y)
{
        const int64_t n = lg__shape_numel(y->at.shape);
        const bool create = k->o.create_graph;
        size_t bytes = 0;
        lg_tensor **rows = dims_fit(k, y->at.shape.ndim) ? rows_new(k, n, k->given.count, &bytes) : NULL;
        const bool was = lg_set_grad_mode(k->c, true);
        lg_tensor *flat = rows ? lg_reshape(y, LG_SHAPE(n)) : NULL;
        bool ok = flat != NULL;
        for (int64_t j = 0; ok && j < n; j++) {
                lg_tensor *element = lg_select(flat, 0, j);
                ok = element && gradients(k, element, NULL, j + 1 < n, create);
                for (int64_t i = 0; ok && i < k->given.count; i++)
                        rows[i * n + j] = k->g[i];
        }
        lg_set_grad_mode(k->c, create);
        ok = ok && stack_rows(k, rows, n, y->at.shape);
        lg_set_grad_mode(k->c, was);
        lg__free(k->c, rows, rows ? bytes : 0);
        return ok;
}

static bool jacobian(derivation *k)
{
        lg_tensor *y = output(k);
        return y && jacobian_of(k, y);
}

static bool hessian(derivation *k)
{
        lg_tensor *y = single_output(k);
        return y && gradients(k, y, NULL, true, true) && jacobian_of(k, k->g[0]);
}

/* ---- gradients of samples ---- */

/* Returns the number of samples; -1: an error. */
static int64_t samples_of(const derivation *k)
{
        int64_t n = -1;
        for (int64_t i = 0; i < k->vectors.count; i++) {
                const lg_tensor *s = k->vectors.items[i];
                if (!s)
                        lg__fail(k->c, LG_ERR_ARGUMENT, "%s: tensor %lld of samples is NULL", k->name, (long long)i);
                else if (lg__in_context(k->c, s, k->name, "a tensor of samples") &&
                         lg__check(s, k->name, "a tensor of samples") &&
                         (s->at.shape.ndim == 0 || (n >= 0 && s->at.shape.size[0] != n)))
                        lg__fail(
                                k->c, LG_ERR_SHAPE,
                                "%s: tensor %lld of samples is %s; the first size of all must be the number of samples",
                                k->name, (long long)i, lg__tensor_text(s).s);
                if (k->c->error)
                        return -1;
                n = s->at.shape.size[0];
        }
        if (n < 0)
                lg__fail(k->c, LG_ERR_ARGUMENT, "%s: there are no samples", k->name);
        return n;
}

/* Computes the loss of sample j, and its gradients into row j of each input. */
static bool sample(derivation *k, int64_t j, int64_t n, lg_tensor **rows)
{
        lg_ctx *c = k->c;
        lg_scope scope = lg__scope_begin(c);
        bool ok = scope.id != 0;
        for (int64_t i = 0; ok && i < k->vectors.count; i++)
                ok = (k->x[k->given.count + i] = lg_slice(k->vectors.items[i], 0, j, j + 1)) != NULL;
        lg_tensor *y = ok ? call(k, k->vectors.count) : NULL;
        if (y && lg__shape_numel(y->at.shape) != 1)
                lg__fail(c, LG_ERR_SHAPE, "%s: the loss of sample %lld is %s; it must have one element", k->name,
                         (long long)j, lg__tensor_text(y).s);
        ok = y && !c->error && gradients(k, y, NULL, false, k->o.create_graph);
        for (int64_t i = 0; ok && i < k->given.count; i++)
                rows[i * n + j] = lg_escape(k->g[i]);
        if (ok) {
                lg_set_grad_mode(c, k->o.create_graph);
                y = lg_reshape(y, LG_SHAPE(1));
                lg_set_grad_mode(c, true);
                ok = (rows[k->given.count * n + j] = y ? lg_escape(y) : NULL) != NULL;
        }
        lg_scope_end(c, scope);
        return ok && !c->error;
}

static bool per_sample(derivation *k)
{
        lg_ctx *c = k->c;
        const int64_t n = samples_of(k), count = k->given.count;
        size_t bytes = 0;
        if (n < 0 || !dims_fit(k, 1))
                return false;
        lg_tensor **rows = rows_new(k, n, count + 1, &bytes); /* the last list: the losses */
        bool ok = rows != NULL;
        for (int64_t j = 0; ok && j < n; j++)
                ok = sample(k, j, n, rows);
        const bool was = lg_set_grad_mode(c, k->o.create_graph);
        ok = ok && stack_rows(k, rows, n, LG_SHAPE(n)) &&
             (k->value = n ? lg_cat(LG_LIST_OF(n, rows + count * n), 0) : lg_zeros(c, LG_SHAPE(0)));
        lg_set_grad_mode(c, was);
        lg__free(c, rows, rows ? bytes : 0);
        return ok;
}

/* ---- the public functions ---- */

/* Computes derivatives by `body` in a scope of its own and passes the results on. Returns the first; NULL: an error. */
static lg_tensor *derive(derivation k, const lg_function_options *options, bool (*body)(derivation *k))
{
        lg_ctx *c = k.c;
        lg_function_options o;
        if (lg__take_without(options, &o, sizeof o)) {
                for (int64_t i = 0; o.result && i < k.count; i++)
                        o.result[i] = NULL;
                if (o.value)
                        *o.value = NULL;
        }
        if (!lg__ok(c) || !lg__take(c, k.name, options, &k.o, sizeof k.o) || !arguments_are_good(&k))
                return NULL;
        const int64_t n = k.given.count, room = 3 * n + k.vectors.count;
        const size_t bytes = (size_t)room * sizeof(lg_tensor *);
        lg_tensor **arrays = lg__alloc(c, bytes), *first = NULL;
        lg_scope scope = arrays ? lg__scope_begin(c) : (lg_scope){.id = 0};
        if (scope.id) {
                const bool was = lg_set_grad_mode(c, true);
                k.results = arrays;
                k.g = arrays + n;
                k.x = arrays + 2 * n;
                bool ok = take_inputs(&k) && body(&k) && !c->error;
                lg_set_grad_mode(c, was);
                for (int64_t i = 0; ok && i < k.count; i++)
                        lg_escape(k.results[i]);
                if (ok && o.value)
                        lg_escape(k.value);
                if (lg_scope_end(c, scope) && ok && !c->error) {
                        first = k.results[0];
                        for (int64_t i = 0; o.result && i < k.count; i++)
                                o.result[i] = k.results[i];
                        if (o.value)
                                *o.value = k.value;
                }
        }
        lg__free(c, arrays, arrays ? bytes : 0);
        return first;
}

lg_tensor *lg_vjp_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_tensor *v, const lg_function_options *options)
{
        return derive(
                (derivation){
                        .c = c, .name = "lg_vjp", .fn = fn, .given = inputs, .vectors = {1, &v}, .count = inputs.count},
                options, vjp);
}

lg_tensor *lg_jvp_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_list_in tangents,
                       const lg_function_options *options)
{
        return derive(
                (derivation){.c = c, .name = "lg_jvp", .fn = fn, .given = inputs, .vectors = tangents, .count = 1},
                options, jvp);
}

lg_tensor *lg_jacobian_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, const lg_function_options *options)
{
        return derive((derivation){.c = c, .name = "lg_jacobian", .fn = fn, .given = inputs, .count = inputs.count},
                      options, jacobian);
}

lg_tensor *lg_hessian_with(lg_ctx *c, lg_function *fn, lg_tensor *x, const lg_function_options *options)
{
        return derive((derivation){.c = c, .name = "lg_hessian", .fn = fn, .given = {1, &x}, .count = 1}, options,
                      hessian);
}

lg_tensor *lg_hvp_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_list_in v, const lg_function_options *options)
{
        return derive(
                (derivation){.c = c, .name = "lg_hvp", .fn = fn, .given = inputs, .vectors = v, .count = inputs.count},
                options, hvp);
}

lg_tensor *lg_grad_per_sample_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_list_in samples,
                                   const lg_function_options *options)
{
        return derive((derivation){.c = c,
                                   .name = "lg_grad_per_sample",
                                   .fn = fn,
                                   .given = inputs,
                                   .vectors = samples,
                                   .count = inputs.count},
                      options, per_sample);
}
