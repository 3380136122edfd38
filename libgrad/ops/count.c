/* count.c - counts, reductions that leave NaN out, pairs of reductions, and differences: bincount, histc,
 * count_nonzero, nansum, nanmean, aminmax, var_mean, std_mean, diff. Made of other ops. */
#include <float.h>
#include <math.h>
#include "gather.h"
#include "reduce.h"

/* ---- histograms ---- */

/* Returns the size that counts of x need, at least `least`, or -1 with an error. Waits for the device. */
static int64_t room_for(const lg__call *call, int64_t least)
{
        lg_tensor *x = call->in[0];
        int64_t ends[2] = {0, -1};
        if (x->at.shape.ndim != 1 || lg__dtype_float(x->at.dtype) || x->at.dtype == LG_BOOL) {
                lg__fail(call->ctx, LG_ERR_SHAPE, "bincount: x is %s; it is 1-d, of integers", lg__tensor_text(x).s);
                return -1;
        }
        if (least < 0) {
                lg__fail(call->ctx, LG_ERR_ARGUMENT, "bincount: .minlength is %lld, below 0", (long long)least);
                return -1;
        }
        if (x->at.shape.size[0]) {
                lg_tensor *low = lg_amin(x), *both = low ? lg_stack(LG_LIST(low, lg_amax(x)), 0) : NULL;
                if (!both || !lg_read(both, ends, LG_I64, sizeof ends))
                        return -1;
        }
        if (ends[0] < 0 || ends[1] == INT64_MAX) {
                lg__fail(call->ctx, LG_ERR_ARGUMENT, "bincount: x holds %lld; its numbers are from 0 to 2^63 - 2",
                         (long long)(ends[0] < 0 ? ends[0] : ends[1]));
                return -1;
        }
        return ends[1] + 1 > least ? ends[1] + 1 : least;
}

static lg_tensor *compose_bincount(const lg__call *call)
{
        lg_bincount_options o;
        lg_tensor *x = call->in[0], *weights = call->in[1], *y = NULL;
        if (!lg__take(call->ctx, "bincount", call->attributes, &o, sizeof o))
                return NULL;
        if (weights && !lg__shape_equal(weights->at.shape, x->at.shape))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "bincount: x is %s but .weights is %s; they have the same shape", lg__tensor_text(x).s,
                                lg__tensor_text(weights).s);
        lg_scope scope = lg_scope_begin(call->ctx);
        const int64_t n = room_for(call, o.minlength);
        lg_tensor *index = n < 0 ? NULL : lg_cast(x, LG_I64);
        if (index && weights && x->at.shape.size[0])
                weights = lg_cast(weights, weights->at.dtype == LG_F32 ? LG_F32 : LG_F64);
        else if (index)
                weights = lg_expand(lg__constant(index, 1), x->at.shape);
        lg_tensor *zeros = index && weights ? lg_zeros(call->ctx, LG_SHAPE(n), .dtype = weights->at.dtype,
                                                       .device = call->device->id)
                                            : NULL;
        y = zeros ? lg_scatter_add(zeros, 0, index, weights) : NULL;
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__COMPOSITE(bincount, {"x"}, {"weights", .optional = true})

lg_tensor *lg_bincount_with(lg_tensor *x, const lg_bincount_options *options)
{
        lg_bincount_options o;
        lg__take_without(options, &o, sizeof o);
        return LG__APPLY(bincount, options, x, o.weights);
}

/* Sets ends to the range of the bins, in x's dtype. Returns false and sets an error if there is none. */
static bool range_of(lg_tensor *x, double ends[2])
{
        if (ends[0] == ends[1] && lg__shape_numel(x->at.shape)) {
                lg_tensor *low = lg_amin(x), *both = low ? lg_stack(LG_LIST(low, lg_amax(x)), 0) : NULL;
                if (!both || !lg_read(both, ends, LG_F64, 2 * sizeof *ends))
                        return false;
        }
        if (ends[0] == ends[1]) {
                ends[0] -= 1;
                ends[1] += 1;
        }
        const double most = x->at.dtype == LG_F64 ? DBL_MAX : FLT_MAX;
        return (ends[0] < ends[1] && ends[0] >= -most && ends[1] <= most) ||
               lg__fail(x->ctx, LG_ERR_ARGUMENT,
                        "histc: the range is [%g, %g]; it is finite and .min is not above .max", ends[0], ends[1]);
}

static lg_tensor *counts_in(lg_tensor *x, int64_t bins, const double ends[2])
{
        lg_tensor *low = lg__constant(x, ends[0]), *high = low ? lg__constant(x, ends[1]) : NULL;
        lg_tensor *inside = high ? lg_logical_and(lg_ge(x, low), lg_le(x, high)) : NULL;
        lg_tensor *place = inside ? lg_div(lg_mul_scalar(lg_sub(x, low), (double)bins), lg_sub(high, low)) : NULL;
        lg_tensor *bin = place ? lg_where(inside, lg_cast(place, LG_I64), lg__constant(lg_cast(low, LG_I64), 0)) : NULL;
        bin = bin ? lg_clamp(bin, 0, (double)(bins - 1)) : NULL;
        lg_tensor *zeros = bin ? lg_expand(lg__constant(bin, 0), LG_SHAPE(bins)) : NULL;
        return zeros ? lg_scatter_add(zeros, 0, bin, lg_cast(inside, LG_I64)) : NULL;
}

static lg_tensor *compose_histc(const lg__call *call)
{
        lg_histc_options o;
        if (!lg__take(call->ctx, "histc", call->attributes, &o, sizeof o))
                return NULL;
        const int64_t bins = lg__whole_option(o.bins, 100);
        double ends[2] = {lg__option(o.min, 0), lg__option(o.max, 0)};
        if (bins < 1 || !lg__shape_valid(call->ctx, "histc", LG_SHAPE(bins)))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "histc: .bins is %lld; it is 1 or more", (long long)bins);
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *x = lg__flat(lg__widened(lg_detach(call->in[0])));
        lg_tensor *counts = x && range_of(x, ends) ? counts_in(x, bins, ends) : NULL;
        lg_tensor *y = counts ? lg_escape(lg_cast(counts, call->in[0]->at.dtype)) : NULL;
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__COMPOSITE(histc, {"x", LG__FLOAT})

lg_tensor *lg_histc_with(lg_tensor *x, const lg_histc_options *options)
{
        return LG__APPLY(histc, options, x);
}

/* ---- reductions ---- */

static lg_tensor *compose_count_nonzero(const lg__call *call)
{
        reduce_attributes a;
        return lg__reduce_of(call, call->attributes, &a) ? LG__APPLY(sum, &a, lg_ne_scalar(call->in[0], 0)) : NULL;
}
LG__REDUCTION(count_nonzero, LG__ANY, LG__AS_IT_IS)

/* Returns x with 0 in the place of NaN. */
static lg_tensor *without_nan(lg_tensor *x)
{
        return lg__dtype_float(x->at.dtype) ? lg_where(lg_isnan(x), lg__constant(x, 0), x) : x;
}

static lg_tensor *compose_nansum(const lg__call *call)
{
        reduce_attributes a;
        return lg__reduce_of(call, call->attributes, &a) ? LG__APPLY(sum, &a, without_nan(call->in[0])) : NULL;
}
LG__REDUCTION(nansum, LG__ANY, LG__F32)

static lg_tensor *compose_nanmean(const lg__call *call)
{
        reduce_attributes a;
        if (!lg__reduce_of(call, call->attributes, &a))
                return NULL;
        lg_tensor *x = lg__widened(call->in[0]), *sum = x ? LG__APPLY(sum, &a, without_nan(x)) : NULL;
        lg_tensor *count = sum ? LG__APPLY(sum, &a, lg_logical_not(lg_isnan(lg_detach(x)))) : NULL;
        return count ? lg_cast(lg_div(sum, lg_cast(count, x->at.dtype)), call->in[0]->at.dtype) : NULL;
}
LG__REDUCTION(nanmean, LG__FLOAT, LG__AS_IT_IS)

/* A call of a pair of reductions; `options` is a struct of the first. */
typedef struct pair_call {
        lg_tensor **ret_second;
        const void *options;
} pair_call;

static lg_tensor *pair(const lg__call *call, const char *second_name, lg_tensor *first, lg_tensor *second)
{
        const pair_call *given = call->attributes;
        if (first && second && !given->ret_second)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: %s is NULL", call->op->name, second_name);
        if (first && second)
                *given->ret_second = second;
        return second ? first : NULL;
}

static lg_tensor *compose_aminmax(const lg__call *call)
{
        const void *options = ((const pair_call *)call->attributes)->options;
        lg_tensor *x = call->in[0], *min = lg_amin_with(x, options);
        return pair(call, "ret_max", min, min ? lg_amax_with(x, options) : NULL);
}

static lg_tensor *compose_var_mean(const lg__call *call)
{
        const void *options = ((const pair_call *)call->attributes)->options;
        lg_var_options o;
        lg_tensor *x = call->in[0];
        if (!lg__take(call->ctx, call->op->name, options, &o, sizeof o))
                return NULL;
        lg_tensor *var = call->op == LG__OP(var_mean) ? lg_var_with(x, options) : lg_std_with(x, options);
        return pair(call, "ret_mean", var, var ? lg_mean(x, .dims = o.dims, .keep_dim = o.keep_dim) : NULL);
}

#define PAIR(of, by, takes, options_type)                                                                              \
        LG__DEFINE(of, .compose = compose_##by, LG__OPERANDS({"x", takes}))                                            \
        lg_tensor *lg_##of##_with(lg_tensor *x, lg_tensor **ret_second, const options_type *options)                   \
        {                                                                                                              \
                return LG__APPLY(of, (&(pair_call){ret_second, options}), x);                                          \
        }
PAIR(aminmax, aminmax, LG__ANY, lg_reduce_options)
PAIR(var_mean, var_mean, LG__FLOAT, lg_var_options)
PAIR(std_mean, var_mean, LG__FLOAT, lg_var_options)

/* ---- differences ---- */

static lg_tensor *compose_diff(const lg__call *call)
{
        lg_diff_options o;
        lg_tensor *x = call->in[0], *parts[3];
        if (!lg__take(call->ctx, "diff", call->attributes, &o, sizeof o))
                return NULL;
        const int64_t n = lg__whole_option(o.n, 1), given = lg__whole_option(o.dim, -1);
        if (n < 0)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "diff: .n is %lld, below 0", (long long)n);
        const int dim =
                lg__dim(call->ctx, "diff", given < -LG_MAX_DIMS || given > LG_MAX_DIMS ? LG_MAX_DIMS : (int)given,
                        x->at.shape.ndim);
        if (dim < 0)
                return NULL;
        const int order[3] = {1, 0, 2};
        int count = 0;
        for (int i = 0; i < 3; i++)
                if (call->in[order[i]])
                        parts[count++] = call->in[order[i]];
        lg_scope scope = lg_scope_begin(call->ctx);
        lg_tensor *all = count > 1 && n > 0 ? lg_cat(LG_LIST_OF(count, parts), dim) : x, *y = lg__widened(all);
        for (int64_t i = 0; i < n && y && (i == 0 || y->at.shape.size[dim] > 0); i++) {
                const int64_t size = y->at.shape.size[dim];
                lg_tensor *next = lg_slice(y, dim, size ? 1 : 0, size);
                lg_tensor *last = lg_slice(y, dim, 0, size ? size - 1 : 0);
                y = y->at.dtype == LG_BOOL ? lg_ne(next, last) : lg_sub(next, last);
        }
        y = y ? lg__made(lg_cast(y, all->at.dtype), x) : NULL;
        lg_escape(y);
        lg_scope_end(call->ctx, scope);
        return y;
}

LG__COMPOSITE(diff, {"x"}, {"prepend", .optional = true}, {"append", .optional = true})

lg_tensor *lg_diff_with(lg_tensor *x, const lg_diff_options *options)
{
        lg_diff_options o;
        lg__take_without(options, &o, sizeof o);
        return LG__APPLY(diff, options, x, o.prepend, o.append);
}
