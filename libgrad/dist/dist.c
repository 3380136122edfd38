/* dist.c - makes distributions of checked parameters, and calls the functions of their kinds. */
#include <float.h>
#include "dist_kinds.h"

static const lg_dist failed = {LG__DIST_NONE, {NULL, NULL, NULL}};

/* ---- construction ---- */

/* Returns whether t is a live tensor of the context c, which has no error; sets an error if not. */
static bool is_given(lg_ctx *c, const lg_tensor *t, const char *op, const char *name)
{
        if (lg__ok(c) && !lg__is_address(t))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL", op, name);
        return lg__ok(c) && lg__in_context(c, t, op, name) && lg__check(t, op, name);
}

/* Returns a distribution of n parameters: 16-bit floats widened to f32, of their common dtype, expanded to one shape.
 */
static lg_dist made(lg__dist_id kind, lg_tensor *const *p, int n, const char *const *names)
{
        char op[48];
        lg_dist d = {kind, {NULL, NULL, NULL}};
        lg_shape s = LG_SHAPE_0D;
        snprintf(op, sizeof op, "lg_dist_%s", lg__dist_kinds[kind].name);
        lg_ctx *c = NULL;
        for (int i = 0; i < n && !c; i++)
                c = lg__ctx_of(p[i]);
        for (int i = 0; i < n; i++)
                if (!is_given(c, p[i], op, names[i]))
                        return failed;
        for (int i = 0; i < n; i++) {
                if (!lg__dtype_float(p[i]->at.dtype)) {
                        lg__fail(c, LG_ERR_DTYPE, "%s: %s is %s, not of a float dtype; convert it with lg_cast()", op,
                                 names[i], lg__tensor_text(p[i]).s);
                        return failed;
                }
                if (p[i]->storage->device != p[0]->storage->device) {
                        lg__fail(c, LG_ERR_DEVICE, "%s: %s is %s but %s is %s; move one with lg_to()", op, names[0],
                                 lg__tensor_text(p[0]).s, names[i], lg__tensor_text(p[i]).s);
                        return failed;
                }
                if (!lg__broadcast(c, op, s, p[i]->at.shape, &s))
                        return failed;
        }
        if (s.ndim < lg__dist_kinds[kind].vectors) {
                lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s; the last dimension makes the vectors", op, names[0],
                         lg__tensor_text(p[0]).s);
                return failed;
        }
        lg_dtype dtype = lg__common_dtype(p, n);
        dtype = dtype == LG_F64 ? LG_F64 : LG_F32;
        for (int i = 0; i < n; i++)
                if (!(d.p[i] = lg_expand(lg_cast(p[i], dtype), s)))
                        return failed;
        return d;
}
#define ONE_PARAMETER(kind, a)                                                                                         \
        lg_dist lg_dist_##kind(lg_tensor *a)                                                                           \
        {                                                                                                              \
                return made(LG__DIST_##kind, (lg_tensor *[]){a}, 1, (const char *const[]){#a});                        \
        }
#define TWO_PARAMETERS(kind, a, b)                                                                                     \
        lg_dist lg_dist_##kind(lg_tensor *a, lg_tensor *b)                                                             \
        {                                                                                                              \
                return made(LG__DIST_##kind, (lg_tensor *[]){a, b}, 2, (const char *const[]){#a, #b});                 \
        }
TWO_PARAMETERS(normal, loc, scale)
TWO_PARAMETERS(uniform, low, high)
TWO_PARAMETERS(laplace, loc, scale)
TWO_PARAMETERS(cauchy, loc, scale)
TWO_PARAMETERS(gumbel, loc, scale)
TWO_PARAMETERS(gamma, concentration, rate)
TWO_PARAMETERS(beta, concentration1, concentration0)
TWO_PARAMETERS(log_normal, loc, scale)
TWO_PARAMETERS(diagonal_normal, loc, scale)
ONE_PARAMETER(exponential, rate)
ONE_PARAMETER(half_normal, scale)
ONE_PARAMETER(dirichlet, concentration)
ONE_PARAMETER(poisson, rate)

lg_dist lg_dist_student_t(lg_tensor *df, lg_tensor *loc, lg_tensor *scale)
{
        return made(LG__DIST_student_t, (lg_tensor *[]){df, loc, scale}, 3,
                    (const char *const[]){"df", "loc", "scale"});
}

lg_dist lg_dist_chi2(lg_tensor *df)
{
        lg_dist d = made(LG__DIST_gamma, (lg_tensor *[]){df}, 1, (const char *const[]){"df"});
        d.p[0] = d.kind ? lg_mul_scalar(d.p[0], 0.5) : NULL;
        d.p[1] = d.p[0] ? lg_expand(lg__constant(d.p[0], 0.5), d.p[0]->at.shape) : NULL;
        return d.p[1] ? d : failed;
}

/* Returns the lower triangular factor of the covariance from the matrix that was given: covariance, precision or the
 * factor itself. */
static lg_tensor *scale_tril_of(lg_tensor *m, const lg_multivariate_normal_options *o)
{
        if (o->covariance)
                return lg_cholesky(m);
        if (o->scale_tril)
                return lg_tril(m);
        /* With rows and columns in reverse order, the factor of the precision is that of the covariance, inverted. */
        lg_tensor *l = lg_cholesky(lg_flip(m, LG_DIMS(-2, -1)));
        l = l ? lg_transpose(lg_flip(l, LG_DIMS(-2, -1)), -2, -1) : NULL;
        const int64_t n = l ? l->at.shape.size[l->at.shape.ndim - 1] : 0;
        return l ? lg_triangular_solve(l, lg_eye(l->ctx, n, n, .dtype = l->at.dtype, .device = lg_device_of(l))) : NULL;
}

/* Checks that m is of the device of loc (..., n) and (..., n, n), and that their batches broadcast to *ret_batch. */
static bool fits_loc(const char *op, const lg_tensor *loc, const lg_tensor *m, const char *name, lg_shape *ret_batch)
{
        lg_shape batch = loc->at.shape, square = m->at.shape;
        const int64_t n = batch.size[--batch.ndim];
        if (m->storage->device != loc->storage->device)
                return lg__fail(loc->ctx, LG_ERR_DEVICE, "%s: loc is %s but %s is %s; move one with lg_to()", op,
                                lg__tensor_text(loc).s, name, lg__tensor_text(m).s);
        if (square.ndim < 2 || square.size[square.ndim - 1] != n || square.size[square.ndim - 2] != n)
                return lg__fail(loc->ctx, LG_ERR_SHAPE, "%s: loc is %s but %s is %s; it must be (..., %lld, %lld)", op,
                                lg__tensor_text(loc).s, name, lg__tensor_text(m).s, (long long)n, (long long)n);
        square.ndim -= 2;
        if (!lg__broadcast(loc->ctx, op, batch, square, ret_batch))
                return false;
        return ret_batch->ndim <= LG_MAX_DIMS - 2 ||
               lg__fail(loc->ctx, LG_ERR_SHAPE, "%s: covariances have more than %d dimensions", op, LG_MAX_DIMS);
}

lg_dist lg_dist_multivariate_normal_with(lg_tensor *loc, const lg_multivariate_normal_options *options)
{
        static const char op[] = "lg_dist_multivariate_normal";
        const lg__dist_id id = LG__DIST_multivariate_normal;
        lg_multivariate_normal_options o;
        lg_shape s = LG_SHAPE_0D;
        lg_dist d = made(id, &loc, 1, (const char *const[]){"loc"});
        if (!d.kind || !lg__take(loc->ctx, op, options, &o, sizeof o))
                return failed;
        lg_tensor *m = o.covariance ? o.covariance : o.precision ? o.precision : o.scale_tril;
        const char *name = o.covariance ? "covariance" : o.precision ? "precision" : "scale_tril";
        if ((o.covariance != NULL) + (o.precision != NULL) + (o.scale_tril != NULL) != 1) {
                lg__fail(loc->ctx, LG_ERR_ARGUMENT, "%s: give exactly one of .covariance, .precision and .scale_tril",
                         op);
                return failed;
        }
        const lg_dist of = is_given(loc->ctx, m, op, name) ? made(id, &m, 1, &name) : failed;
        if (!of.kind || !fits_loc(op, loc, m, name, &s))
                return failed;
        const lg_dtype dtype = d.p[0]->at.dtype == LG_F64 ? LG_F64 : of.p[0]->at.dtype;
        lg_tensor *l = scale_tril_of(lg_cast(of.p[0], dtype), &o);
        s.size[s.ndim] = s.size[s.ndim + 1] = loc->at.shape.size[loc->at.shape.ndim - 1];
        s.ndim += 2;
        d.p[1] = l ? lg_expand(l, s) : NULL;
        s.ndim--;
        d.p[0] = d.p[1] ? lg_expand(lg_cast(d.p[0], dtype), s) : NULL;
        return d.p[0] ? d : failed;
}

/* Returns p clamped from eps to 1 - eps of its dtype, so that logarithms are finite. */
static lg_tensor *clamped(lg_tensor *p)
{
        const double eps = p && p->at.dtype == LG_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
        return lg_clamp(p, eps, 1 - eps);
}

/* Fills logits and probabilities of single events from the one of both that was given in p[0]. */
static bool complete_events(lg_dist *d, bool given_logits)
{
        lg_tensor *x = d->p[0];
        d->p[0] = given_logits ? x : lg_logit(clamped(x));
        d->p[1] = given_logits ? lg_sigmoid(x) : x;
        return d->p[0] && d->p[1];
}

/* The same for classes along the last dimension: logarithms of probabilities, and probabilities. */
static bool complete_classes(lg_dist *d, bool given_logits)
{
        lg_tensor *x = d->p[0];
        d->p[1] = given_logits ? lg_softmax(x, -1) : lg_div(x, lg_sum(x, .dims = LG_DIMS(-1), .keep_dim = true));
        d->p[0] = given_logits ? lg_log_softmax(x, -1) : lg_log(clamped(d->p[1]));
        return d->p[0] && d->p[1];
}

/* Makes a distribution of `trials` events or draws of classes, of logits or probabilities. */
static lg_dist of_events(lg__dist_id kind, int64_t trials, const lg_logits_options *options)
{
        lg_logits_options o;
        char op[48];
        lg__take_without(options, &o, sizeof o);
        lg_tensor *x = o.logits ? o.logits : o.probs;
        lg_ctx *c = lg__ctx_of(x);
        const char *const names[] = {o.logits ? "logits" : "probs"};
        const bool classes = kind == LG__DIST_categorical || kind == LG__DIST_multinomial;
        snprintf(op, sizeof op, "lg_dist_%s", lg__dist_kinds[kind].name);
        if (!lg__take(c, op, options, &o, sizeof o))
                return failed;
        if (o.logits && o.probs) {
                lg__fail(c, LG_ERR_ARGUMENT, "%s: .logits and .probs are given; give one of them", op);
                return failed;
        }
        if (trials < 1 || trials > INT32_MAX) {
                lg__fail(c, LG_ERR_ARGUMENT, "%s: total_count is %lld, not from 1 to 2^31 - 1", op, (long long)trials);
                return failed;
        }
        lg_dist d = made(kind, &x, 1, names);
        if (!d.kind)
                return failed;
        if (classes && x->at.shape.ndim == 0) {
                lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s; it is (..., classes)", op, names[0], lg__tensor_text(x).s);
                return failed;
        }
        d.p[2] = lg_expand(lg__constant(d.p[0], 0), LG_SHAPE(trials));
        const bool ok = classes ? complete_classes(&d, o.logits != NULL) : complete_events(&d, o.logits != NULL);
        return ok && d.p[2] ? d : failed;
}

lg_dist lg_dist_bernoulli_with(const lg_logits_options *options)
{
        return of_events(LG__DIST_bernoulli, 1, options);
}

lg_dist lg_dist_geometric_with(const lg_logits_options *options)
{
        return of_events(LG__DIST_geometric, 1, options);
}

lg_dist lg_dist_categorical_with(const lg_logits_options *options)
{
        return of_events(LG__DIST_categorical, 1, options);
}

lg_dist lg_dist_binomial_with(int64_t total_count, const lg_logits_options *options)
{
        return of_events(LG__DIST_binomial, total_count, options);
}

lg_dist lg_dist_multinomial_with(int64_t total_count, const lg_logits_options *options)
{
        return of_events(LG__DIST_multinomial, total_count, options);
}

/* ---- functions ---- */

/* Returns the kind of d, or NULL if d is no distribution, or if its context has an error. */
static const lg__dist_kind *kind_of(const lg_dist *d, const char *op)
{
        if (d->kind <= LG__DIST_NONE || d->kind >= LG__DIST_COUNT || !lg__check(d->p[0], op, "d"))
                return NULL;
        return &lg__dist_kinds[d->kind];
}

/* Draws with gradients or without; restores the state of the random generator on failure. */
static lg_tensor *draw(const lg_dist *d, lg_shape shape, bool gradients, const char *op)
{
        const lg__dist_kind *kind = kind_of(d, op);
        if (!kind)
                return NULL;
        lg_ctx *c = d->p[0]->ctx;
        lg_shape s = shape, batch = d->p[0]->at.shape;
        batch.ndim -= d->kind == LG__DIST_categorical;
        if (gradients && !kind->rsample)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: samples of lg_dist_%s() have no gradient; use lg_dist_sample()", op, kind->name);
        if (!lg__shape_valid(c, op, shape))
                return NULL;
        if (shape.ndim + batch.ndim > LG_MAX_DIMS)
                return lg__fail(c, LG_ERR_SHAPE, "%s: a sample has %d dimensions; at most %d are possible", op,
                                shape.ndim + batch.ndim, LG_MAX_DIMS);
        for (int i = 0; i < batch.ndim; i++)
                s.size[s.ndim++] = batch.size[i];
        if (!lg__shape_valid(c, op, s))
                return NULL;
        const lg_random_state was = c->random;
        const bool recording = lg_set_grad_mode(c, gradients && c->recording);
        const lg_scope scope = lg_scope_begin(c);
        lg_tensor *y = lg_escape(kind->sample(d, s));
        lg_scope_end(c, scope);
        lg_set_grad_mode(c, recording);
        if (!y)
                c->random = was;
        return y;
}

lg_tensor *lg_dist_sample(lg_dist d, lg_shape shape)
{
        return draw(&d, shape, false, "lg_dist_sample");
}

lg_tensor *lg_dist_rsample(lg_dist d, lg_shape shape)
{
        return draw(&d, shape, true, "lg_dist_rsample");
}

lg_tensor *lg_dist_log_prob(lg_dist d, lg_tensor *x)
{
        const lg__dist_kind *kind = kind_of(&d, "lg_dist_log_prob");
        if (!kind || !is_given(d.p[0]->ctx, x, "lg_dist_log_prob", "x"))
                return NULL;
        const lg_scope scope = lg_scope_begin(x->ctx);
        lg_tensor *y = d.kind == LG__DIST_categorical ? kind->log_prob(&d, x)
                                                      : kind->log_prob(&d, lg_cast(x, d.p[0]->at.dtype));
        lg_escape(y);
        lg_scope_end(x->ctx, scope);
        return y;
}

/* Calls a function of the distribution alone. */
static lg_tensor *describe(const lg_dist *d, const char *op, const char *value,
                           lg_tensor *(*of)(const lg__dist_kind *kind, const lg_dist *d))
{
        const lg__dist_kind *kind = kind_of(d, op);
        if (!kind)
                return NULL;
        lg_ctx *c = d->p[0]->ctx;
        const lg_scope scope = lg_scope_begin(c);
        lg_tensor *y = lg_escape(of(kind, d));
        lg_scope_end(c, scope);
        if (!y && lg__ok(c))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: there is no formula of the %s of lg_dist_%s()", op, value,
                                kind->name);
        return y;
}

#define DESCRIBE(value)                                                                                                \
        static lg_tensor *value##_of(const lg__dist_kind *kind, const lg_dist *d)                                      \
        {                                                                                                              \
                return kind->value(d);                                                                                 \
        }                                                                                                              \
        lg_tensor *lg_dist_##value(lg_dist d)                                                                          \
        {                                                                                                              \
                return describe(&d, "lg_dist_" #value, #value, value##_of);                                            \
        }
DESCRIBE(entropy)
DESCRIBE(mean)
DESCRIBE(variance)

lg_tensor *lg_dist_kl(lg_dist p, lg_dist q)
{
        const lg__dist_kind *a = kind_of(&p, "lg_dist_kl"), *b = kind_of(&q, "lg_dist_kl");
        if (!a || !b || !lg__same_context(p.p[0], q.p[0], "lg_dist_kl", "q"))
                return NULL;
        lg_ctx *c = p.p[0]->ctx;
        const lg_scope scope = lg_scope_begin(c);
        lg_tensor *y = a == b ? lg_escape(lg__dist_divergence(&p, &q)) : NULL;
        lg_scope_end(c, scope);
        if (!y && lg__ok(c))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_dist_kl: there is no formula for p, lg_dist_%s(), and q, lg_dist_%s()", a->name,
                                b->name);
        return y;
}
