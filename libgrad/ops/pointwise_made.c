/* pointwise_made.c - elementwise functions with options or of three tensors, made of other ops. */
#include <float.h>
#include <math.h>
#include "graph/op.h"

/* ---- a + value b c, a + value b / c ---- */

static lg_tensor *add_product(const lg__call *call, lg_tensor *(*combine)(lg_tensor *a, lg_tensor *b))
{
        lg_value_options o;
        lg_shape s = call->in[0]->at.shape;
        if (!lg__take(call->ctx, call->op->name, call->attributes, &o, sizeof o))
                return NULL;
        for (int i = 1; i < 3; i++)
                if (!lg__broadcast(call->ctx, call->op->name, s, call->in[i]->at.shape, &s))
                        return NULL;
        lg_tensor *y = combine(lg__widened(call->in[1]), lg__widened(call->in[2]));
        const double value = lg__option(o.value, 1);
        y = value == 1 ? y : lg_mul_scalar(y, value);
        return lg_cast(lg_add(lg__widened(call->in[0]), y), lg__common_dtype(call->in, 3));
}

static lg_tensor *compose_addcmul(const lg__call *call)
{
        return add_product(call, lg_mul);
}
LG__DEFINE(addcmul, .autocast = LG__WIDEST, .compose = compose_addcmul, LG__OPERANDS({"x"}, {"a"}, {"b"}))

lg_tensor *lg_addcmul_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_value_options *options)
{
        return LG__APPLY(addcmul, options, x, a, b);
}

static lg_tensor *compose_addcdiv(const lg__call *call)
{
        return add_product(call, lg_div);
}
LG__DEFINE(addcdiv, .autocast = LG__WIDEST, .compose = compose_addcdiv,
           LG__OPERANDS({"x", LG__FLOAT}, {"a", LG__FLOAT}, {"b", LG__FLOAT}))

lg_tensor *lg_addcdiv_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_value_options *options)
{
        return LG__APPLY(addcdiv, options, x, a, b);
}

/* ---- powers in f64, rounding to decimals, bits ---- */

static lg_tensor *compose_float_power(const lg__call *call)
{
        return lg_pow(lg_cast(call->in[0], LG_F64), lg_cast(call->in[1], LG_F64));
}
LG__COMPOSITE(float_power, {"a"}, {"b"})

lg_tensor *lg_float_power(lg_tensor *a, lg_tensor *b)
{
        return LG__APPLY(float_power, NULL, a, b);
}

static lg_tensor *compose_round_decimals(const lg__call *call)
{
        const int decimals = *(const int *)call->attributes;
        const double factor = pow(10, fabs((double)decimals));
        lg_tensor *x = lg__widened(call->in[0]);
        lg_tensor *y = decimals < 0 ? lg_mul_scalar(lg_round(lg_div_scalar(x, factor)), factor)
                                    : lg_div_scalar(lg_round(lg_mul_scalar(x, factor)), factor);
        return lg_cast(y, call->in[0]->at.dtype);
}
LG__COMPOSITE(round_decimals, {"x", LG__FLOAT})

lg_tensor *lg_round_decimals(lg_tensor *x, int decimals)
{
        return LG__APPLY(round_decimals, &decimals, x);
}

static lg_tensor *compose_bitwise_not(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        return x->at.dtype == LG_BOOL ? lg_logical_not(x)
                                      : lg_bitwise_xor_scalar(x, x->at.dtype == LG_U8 ? UINT8_MAX : -1);
}
LG__COMPOSITE(bitwise_not, {"x", LG__INTEGER})

lg_tensor *lg_bitwise_not(lg_tensor *x)
{
        return LG__APPLY(bitwise_not, NULL, x);
}

/* ---- values that are not finite ---- */

static lg_tensor *compose_nan_to_num(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        const lg_dtype d = x->at.dtype;
        const double most = d == LG_F64 ? DBL_MAX : d == LG_F16 ? 65504 : d == LG_BF16 ? 0xFFp120 : (double)FLT_MAX;
        lg_nan_to_num_options o;
        if (!lg__take(call->ctx, "nan_to_num", call->attributes, &o, sizeof o))
                return NULL;
        if (!lg__dtype_float(d))
                return lg_positive(x);
        lg_tensor *y = lg_masked_fill(x, lg_isnan(x), lg__option(o.nan, 0));
        y = lg_masked_fill(y, lg_isposinf(x), lg__option(o.posinf, most));
        return lg_masked_fill(y, lg_isneginf(x), lg__option(o.neginf, -most));
}
LG__COMPOSITE(nan_to_num, {"x"})

lg_tensor *lg_nan_to_num_with(lg_tensor *x, const lg_nan_to_num_options *options)
{
        return LG__APPLY(nan_to_num, options, x);
}

/* ---- randomized leaky ReLU ---- */

static lg_tensor *compose_rrelu(const lg__call *call)
{
        lg_rrelu_options o;
        lg_tensor *x = call->in[0];
        if (!lg__take(call->ctx, "rrelu", call->attributes, &o, sizeof o))
                return NULL;
        const double lower = lg__option(o.lower, 1.0 / 8), upper = lg__option(o.upper, 1.0 / 3);
        if (!(lower <= upper) || !isfinite(lower) || !isfinite(upper))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "rrelu: lower is %g and upper %g; they are finite, in order", lower, upper);
        if (!o.training)
                return lg_leaky_relu(x, (lower + upper) / 2);
        const lg_random_state was = call->ctx->random;
        lg_tensor *slope = lg_uniform_like(x, lower, upper, .dtype = x->at.dtype == LG_F64 ? LG_F64 : LG_F32);
        lg_tensor *y = slope ? lg_where(lg_le_scalar(x, 0), lg_cast(lg_mul(x, slope), x->at.dtype), x) : NULL;
        if (!y)
                call->ctx->random = was;
        return y;
}
LG__COMPOSITE(rrelu, {"x", LG__FLOAT})

lg_tensor *lg_rrelu_with(lg_tensor *x, const lg_rrelu_options *options)
{
        return LG__APPLY(rrelu, options, x);
}

/* ---- comparisons within a tolerance ---- */

static lg_tensor *compose_isclose(const lg__call *call)
{
        lg_close_options o;
        if (!lg__take(call->ctx, "isclose", call->attributes, &o, sizeof o))
                return NULL;
        const double rtol = lg__option(o.rtol, 1e-5), atol = lg__option(o.atol, 1e-8);
        if (!(rtol >= 0) || !(atol >= 0))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "isclose: rtol is %g and atol %g; 0 or more", rtol, atol);
        const lg_dtype common = lg__common_dtype(call->in, 2);
        const lg_dtype dtype = lg__dtype_float(common) ? common : LG_F64;
        lg_tensor *a = lg__widened(lg_cast(lg_detach(call->in[0]), dtype));
        lg_tensor *b = a ? lg__widened(lg_cast(lg_detach(call->in[1]), dtype)) : NULL;
        lg_tensor *near = b ? lg_eq(a, b) : NULL;
        if (near && o.equal_nan)
                near = lg_logical_or(near, lg_logical_and(lg_isnan(a), lg_isnan(b)));
        if (!near || (rtol == 0 && atol == 0))
                return near;
        lg_tensor *gap = lg_abs(lg_sub(a, b)), *most = lg_add_scalar(lg_abs(lg_mul_scalar(b, rtol)), atol);
        return lg_logical_or(near, lg_logical_and(lg_isfinite(gap), lg_le(gap, most)));
}
LG__COMPOSITE(isclose, {"a"}, {"b"})

lg_tensor *lg_isclose_with(lg_tensor *a, lg_tensor *b, const lg_close_options *options)
{
        return LG__APPLY(isclose, options, a, b);
}

static lg_tensor *compose_equal(const lg__call *call)
{
        lg_tensor *a = call->in[0], *b = call->in[1];
        if (lg__shape_equal(a->at.shape, b->at.shape))
                return lg_all(lg_eq(a, b));
        return lg_zeros(a->ctx, LG_SHAPE_0D, .dtype = LG_BOOL, .device = a->storage->device->id);
}
LG__COMPOSITE(equal, {"a"}, {"b"})

/* Returns whether the bool tensor t, which may be NULL, is true, and ends the scope in which it was made. */
static bool is_true(lg_ctx *c, lg_scope scope, lg_tensor *t)
{
        const bool yes = t && lg_item(t) == 1;
        lg_scope_end(c, scope);
        return yes;
}

bool lg_allclose_with(lg_tensor *a, lg_tensor *b, const lg_close_options *options)
{
        lg_ctx *c = lg__ctx_of(a);
        const lg_scope scope = lg_scope_begin(c);
        lg_tensor *close = lg_isclose_with(a, b, options);
        return is_true(c, scope, close ? lg_all(close) : NULL);
}

bool lg_equal(lg_tensor *a, lg_tensor *b)
{
        lg_ctx *c = lg__ctx_of(a);
        const lg_scope scope = lg_scope_begin(c);
        return is_true(c, scope, LG__APPLY(equal, NULL, a, b));
}
