/* adafactor.c - Adafactor (Shazeer and Stern 2018); PyTorch's torch.optim.Adafactor.
 *
 * The averages of g^2 of a matrix are stored as means of rows and of columns, whose product estimates them. */
#include "optim.h"

enum { ROWS, COLUMNS, WHOLE }; /* the states */

static unsigned states_of(const lg_tensor *param)
{
        return param->at.shape.ndim > 1 ? 1u << ROWS | 1u << COLUMNS : 1u << WHOLE;
}

static void reshape(int k, lg_shape *shape)
{
        if (shape->ndim > 1 && k != WHOLE)
                shape->size[shape->ndim - (k == ROWS ? 1 : 2)] = 1;
}

/* Returns the distance from 1 to the next number of a dtype. */
static double precision(lg_dtype dtype)
{
        return dtype == LG_F64 ? 0x1p-52 : dtype == LG_F32 ? 0x1p-23 : dtype == LG_F16 ? 0x1p-10 : 0x1p-7;
}

/* Returns the root mean square of all elements, 0-d. */
static lg_tensor *root_mean_square(lg_tensor *x)
{
        return lg_div_scalar(lg_norm(x), sqrt((double)lg__shape_numel(x->at.shape)));
}

/* Returns the next average of g^2 in state k, whose weight is w; dim: the dimension of the mean, or 0. */
static lg_tensor *average(lg__computation *k, int state, lg_tensor *w, int dim)
{
        lg_tensor *square = lg_square(k->grad);
        square = dim ? lg_mean(square, .dims = LG_DIMS(dim), .keep_dim = true) : square;
        return k->next[state] = lg_lerp(k->state[state], square, w);
}

static void numbers(const lg_optimizer *opt, const lg__slot *s, double *ret)
{
        ret[LG__RATE] = opt->groups[s->group].lr;
}

static bool compute(lg__computation *k)
{
        const lg_adafactor_options *o = k->opt->options;
        const lg_dtype dtype = k->param->at.dtype;
        const double eps1 = o->eps1 >= 0 ? o->eps1 : precision(k->dtype);
        lg_tensor *w = lg_cast(lg_pow_scalar(k->step, o->beta2_decay), dtype), *v;
        if (k->param->at.shape.ndim > 1) {
                lg_tensor *rows = average(k, ROWS, w, -1), *columns = average(k, COLUMNS, w, -2);
                lg_tensor *least = lg_maximum_scalar(lg_mean(rows, .dims = LG_DIMS(-2), .keep_dim = true), eps1);
                v = lg_div(lg_mul(rows, columns), least);
        } else {
                v = average(k, WHOLE, w, 0);
        }
        lg_tensor *u = lg_mul(k->grad, lg_rsqrt(lg_maximum_scalar(v, eps1 * eps1)));
        lg_tensor *rate = lg_cast(lg_minimum(lg_rsqrt(k->step), lg_select(k->exact, 0, LG__RATE)), dtype);
        lg_tensor *size = lg_mul(lg_maximum_scalar(root_mean_square(k->param), o->eps2), rate);
        lg_tensor *clip = lg_maximum_scalar(lg_div_scalar(root_mean_square(u), o->d), 1);
        return (k->change = lg_mul(u, lg_mul_scalar(lg_div(size, clip), o->maximize ? -1 : 1))) != NULL;
}

static const lg__rule rule = {.name = "lg_adafactor",
                              .update = LG__UPDATE_descend,
                              .states = {"row_var", "col_var", "variance"},
                              .decays = true,
                              .compute = compute,
                              .numbers = numbers,
                              .states_of = states_of,
                              .reshape = reshape};

lg_optimizer *lg_adafactor_with(lg_ctx *c, lg_list_in params, double lr, const lg_adafactor_options *options)
{
        lg_adafactor_options o;
        if (!lg__take(c, rule.name, options, &o, sizeof o))
                return NULL;
        const bool given = o.eps1 != 0;
        o.beta2_decay = lg__option(o.beta2_decay, -0.8);
        o.eps1 = lg__option(o.eps1, 0);
        o.eps2 = lg__option(o.eps2, 1e-3);
        o.d = lg__option(o.d, 1);
        if (!(o.beta2_decay <= 0 && isfinite(o.beta2_decay)) || !(o.d >= 1 && isfinite(o.d)))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: beta2_decay is %g and d %g; they must be 0 or less, and 1 or more", rule.name,
                                o.beta2_decay, o.d);
        if (!lg__option_check(c, rule.name, "eps1", o.eps1) || !lg__option_check(c, rule.name, "eps2", o.eps2))
                return NULL;
        o.eps1 = given ? o.eps1 : -1;
        const lg__group first = {.lr = lr, .weight_decay = lg__option(o.weight_decay, 0), .master = o.master};
        return lg__optimizer_new(c, &rule, params, first, &o, sizeof o);
}
