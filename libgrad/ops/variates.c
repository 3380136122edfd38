/* variates.c - random numbers of the gamma and Poisson distributions, and the Gumbel soft-max, made of other ops.
 *
 * The kernels gamma_draw and poisson_draw make each number of its parameter and of one uniform number, in f64, so that
 * a seed gives the same numbers in every layout. The derivative of a gamma variate y by its shape a is that of the
 * inverse of the distribution function (Figurnov et al., 2018), by the kernel gamma_slope, which has no
 * derivative itself.
 */
#include <float.h>
#include "pointwise.h"

static lg_tensor *uniform_beside(const lg_tensor *x)
{
        return lg_uniform(x->ctx, 0, 1, x->at.shape, .dtype = LG_F64, .device = x->storage->device->id);
}

/* ---- samples of gamma distributions by their shape a: da = g slope(a, y) ---- */

static bool forward_slope(lg__call *call)
{
        return lg__pointwise_run(LG_PW_gamma_slope, call->out[0], (lg_tensor *[LG_PW_INPUTS]){call->in[0], call->in[1]},
                                 0, 0, "standard_gamma");
}

static bool vjp_slope(lg__vjp *v)
{
        return lg__fail(v->ctx, LG_ERR_STATE,
                        "standard_gamma: samples have no second derivative by the shape parameter");
}

static const lg__op slope = {.name = "standard_gamma_grad",
                             .forward = forward_slope,
                             .vjp = vjp_slope,
                             LG__OPERANDS({"x", LG__FLOAT}, {"y", LG__FLOAT}),
                             LG__RESULTS({"slope"})};

static bool forward_sample(lg__call *call)
{
        return lg__copy_values(call->out[0], call->in[1], "standard_gamma");
}

static bool vjp_sample(lg__vjp *v)
{
        lg_tensor *g = v->grad[0], *by = lg__apply2(&slope, lg_cast(v->in[0], LG_F64), v->in[1], NULL);
        return (v->grad_in[0] = by ? lg_cast(lg_mul(lg__widened(g), by), g->at.dtype) : NULL) != NULL;
}

static const lg__op sample = {
        .name = "standard_gamma",
        .forward = forward_sample,
        .vjp = vjp_sample,
        LG__OPERANDS({"x", LG__FLOAT, .saved_for = LG__BY(0)}, {"drawn", LG__FLOAT, .saved_for = LG__BY(0)}),
        LG__RESULTS({"y"})};

static lg_tensor *standard_gamma(lg_tensor *shape)
{
        const lg_dtype d = shape->at.dtype;
        lg_tensor *a = lg_cast(lg_detach(shape), LG_F64), *u = a ? uniform_beside(a) : NULL;
        lg_tensor *drawn = u ? lg_maximum_scalar(lg_gamma_draw(a, u), d == LG_F64 ? DBL_MIN : (double)FLT_MIN) : NULL;
        return drawn ? lg__apply2(&sample, shape, drawn, NULL) : NULL;
}

static lg_tensor *poisson(lg_tensor *rate)
{
        lg_tensor *wide = lg_cast(lg_detach(rate), LG_F64), *u = wide ? uniform_beside(wide) : NULL;
        return u ? lg_cast(lg_poisson_draw(wide, u), rate->at.dtype) : NULL;
}

typedef struct softened {
        int dim;
        const lg_gumbel_softmax_options *options;
} softened;

static lg_tensor *gumbel_softmax(lg_tensor *logits, const softened *s)
{
        lg_gumbel_softmax_options o;
        lg_ctx *c = logits->ctx;
        if (!lg__take(c, "gumbel_softmax", s->options, &o, sizeof o))
                return NULL;
        const double tau = lg__option(o.tau, 1);
        const int dim = lg__line_dim(logits, "gumbel_softmax", s->dim);
        if (dim < 0)
                return NULL;
        if (!(tau > 0))
                return lg__fail(c, LG_ERR_ARGUMENT, "gumbel_softmax: tau is %g; it is above 0", tau);
        lg_tensor *u = uniform_beside(logits), *wide = lg__widened(logits);
        lg_tensor *e = u ? lg_maximum_scalar(lg_neg(lg_log1p(lg_neg(u))), DBL_MIN) : NULL;
        lg_tensor *gumbel = e ? lg_cast(lg_neg(lg_log(e)), wide->at.dtype) : NULL;
        lg_tensor *y = gumbel ? lg_softmax(lg_div_scalar(lg_add(wide, gumbel), tau), dim) : NULL;
        if (!y || !o.hard || lg_numel(y) == 0)
                return y ? lg_cast(y, logits->at.dtype) : NULL;
        lg_tensor *soft = lg_detach(y), *index = NULL;
        lg_tensor *top = lg_max(soft, dim, .keep_dim = true, .indices = &index);
        lg_tensor *hard = top ? lg_scatter_add(lg_zeros_like(soft), dim, index, lg_ones_like(top)) : NULL;
        return hard ? lg_cast(lg_add(hard, lg_sub(y, soft)), logits->at.dtype) : NULL;
}

/* Restores the state of the random generator if the call fails. */
static lg_tensor *compose(const lg__call *call)
{
        lg_ctx *c = call->ctx;
        const lg_random_state was = c->random;
        const lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = call->in[0];
        lg_tensor *y = call->op == LG__OP(gumbel_softmax)   ? gumbel_softmax(x, call->attributes)
                       : call->op == LG__OP(standard_gamma) ? standard_gamma(x)
                                                            : poisson(x);
        lg_escape(y);
        lg_scope_end(c, scope);
        if (!y)
                c->random = was;
        return y;
}

LG__DEFINE(standard_gamma, .compose = compose, LG__OPERANDS({"x", LG__FLOAT}))
LG__DEFINE(poisson, .compose = compose, LG__OPERANDS({"x", LG__FLOAT}))
LG__DEFINE(gumbel_softmax, .compose = compose, LG__OPERANDS({"x", LG__FLOAT}))

lg_tensor *lg_standard_gamma(lg_tensor *x)
{
        return LG__APPLY(standard_gamma, NULL, x);
}

lg_tensor *lg_poisson(lg_tensor *x)
{
        return LG__APPLY(poisson, NULL, x);
}

lg_tensor *lg_gumbel_softmax_with(lg_tensor *logits, int dim, const lg_gumbel_softmax_options *options)
{
        return LG__APPLY(gumbel_softmax, (&(softened){dim, options}), logits);
}
