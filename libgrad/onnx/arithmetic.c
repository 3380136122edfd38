/* arithmetic.c - ONNX's elementwise operators. */
#include "import.h"
#include <math.h>

static bool is_float(const lg_tensor *t)
{
        return lg__dtype_float(t->at.dtype);
}

/* Returns y in the dtype of t. */
static lg_tensor *as(const lg_tensor *t, lg_tensor *y)
{
        return y && y->at.dtype != t->at.dtype ? lg_cast(y, t->at.dtype) : y;
}

/* ---- dtypes ---- */

LG__ONNX(Cast)
{
        const int64_t to = lg__onnx_int(c, "to", 0);
        const lg_dtype dtype = lg__onnx_dtype(to);
        return dtype ? lg_cast(c->in[0], dtype)
                     : lg__onnx_fail(c, LG_ERR_DTYPE, "libgrad lacks the dtype %s", lg__onnx_type_name(to));
}

LG__ONNX(CastLike)
{
        return lg_cast(c->in[0], c->in[1]->at.dtype);
}

/* Returns a copy whose bytes are taken as another dtype of the same size. */
LG__ONNX(BitCast)
{
        const int64_t to = lg__onnx_int(c, "to", 0);
        const lg_dtype dtype = lg__onnx_dtype(to);
        lg_tensor *x = c->in[0];
        if (!dtype || lg_dtype_size(dtype) != lg_dtype_size(x->at.dtype))
                return lg__onnx_fail(c, LG_ERR_DTYPE, "%s as %s", lg__tensor_text(x).s, lg__onnx_type_name(to));
        if (dtype == LG_BOOL) /* every byte but 0 is true */
                return lg_cast(x, dtype);
        lg_tensor *copy = lg__clone_values(x, x->storage->device->id, x->at.dtype);
        if (!copy)
                return NULL;
        lg__layout at = copy->at;
        at.dtype = dtype;
        return lg__tensor_new(c->ctx, copy->storage, &at);
}

/* ---- one operand ---- */

LG__ONNX(Celu)
{
        return lg_celu(c->in[0], lg__onnx_float(c, "alpha", 1));
}

LG__ONNX(Elu)
{
        return lg_elu(c->in[0], lg__onnx_float(c, "alpha", 1));
}

LG__ONNX(LeakyRelu)
{
        return lg_leaky_relu(c->in[0], lg__onnx_float(c, "alpha", 0.01));
}

LG__ONNX(ThresholdedRelu)
{
        return lg_threshold(c->in[0], lg__onnx_float(c, "alpha", 1), 0);
}

LG__ONNX(HardSigmoid)
{
        const double alpha = lg__onnx_float(c, "alpha", 0.2), beta = lg__onnx_float(c, "beta", 0.5);
        return lg_clamp(lg_add_scalar(lg_mul_scalar(c->in[0], alpha), beta), 0, 1);
}

LG__ONNX(Selu)
{
        const double alpha = lg__onnx_float(c, "alpha", 1.67326319217681884765625);
        return lg_mul_scalar(lg_elu(c->in[0], alpha), lg__onnx_float(c, "gamma", 1.05070102214813232421875));
}

LG__ONNX(Softplus)
{
        return lg_softplus(c->in[0], 1, 20);
}

LG__ONNX(Gelu)
{
        const char *how = lg__onnx_text(c, "approximate", "none");
        return !strcmp(how, "tanh") ? lg_gelu_tanh(c->in[0]) : lg_gelu(c->in[0]);
}

LG__ONNX(Swish)
{
        const double alpha = lg__onnx_float(c, "alpha", 1);
        return alpha == 1 ? lg_silu(c->in[0]) : lg_mul(c->in[0], lg_sigmoid(lg_mul_scalar(c->in[0], alpha)));
}

LG__ONNX(Shrink)
{
        const double lambda = lg__onnx_float(c, "lambd", 0.5), bias = lg__onnx_float(c, "bias", 0);
        lg_tensor *x = c->in[0], *zero = lg_mul_scalar(x, 0);
        lg_tensor *low = lg_where(lg_lt_scalar(x, -lambda), lg_add_scalar(x, bias), zero);
        return lg_where(lg_gt_scalar(x, lambda), lg_sub_scalar(x, bias), low);
}

LG__ONNX(IsInf)
{
        lg_tensor *x = c->in[0], *y = lg_isinf(x);
        if (!lg__onnx_int(c, "detect_positive", 1))
                y = lg_logical_and(y, lg_lt_scalar(x, 0));
        if (!lg__onnx_int(c, "detect_negative", 1))
                y = lg_logical_and(y, lg_gt_scalar(x, 0));
        return y;
}

/* The bounds are operands or, before opset 11, attributes. A bound that is NaN or left out does not count. */
LG__ONNX(Clip)
{
        double low = lg__onnx_number(c, 1, lg__onnx_float(c, "min", -INFINITY));
        double high = lg__onnx_number(c, 2, lg__onnx_float(c, "max", INFINITY));
        if (low > high) /* the upper bound counts */
                return lg__ok(c->ctx) ? lg_add_scalar(lg_mul_scalar(c->in[0], 0), high) : NULL;
        return lg__ok(c->ctx) ? lg_clamp(c->in[0], low, high) : NULL;
}

/* ---- two operands ---- */

/* Integers are divided towards 0. */
LG__ONNX(Div)
{
        lg_tensor *a = c->in[0], *b = c->in[1];
        if (is_float(a))
                return lg_div(a, b);
        lg_tensor *rest = lg_fmod(a, b);
        return rest ? lg_floor_divide(lg_sub(a, rest), b) : NULL;
}

LG__ONNX(Mod)
{
        return lg__onnx_int(c, "fmod", 0) ? lg_fmod(c->in[0], c->in[1]) : lg_remainder(c->in[0], c->in[1]);
}

LG__ONNX(Pow)
{
        lg_tensor *x = c->in[0], *n = c->in[1];
        return as(x, lg_pow(x, is_float(x) && !is_float(n) ? lg_cast(n, x->at.dtype) : n));
}

LG__ONNX(PRelu)
{
        lg_tensor *x = c->in[0];
        return lg_where(lg_gt_scalar(x, 0), x, lg_mul(x, c->in[1]));
}

LG__ONNX(BitShift)
{
        const char *direction = lg__onnx_text(c, "direction", "");
        return !strcmp(direction, "LEFT") ? lg_bitwise_left_shift(c->in[0], c->in[1])
                                          : lg_bitwise_right_shift(c->in[0], c->in[1]);
}

LG__ONNX(Where)
{
        return lg_where(c->in[0], c->in[1], c->in[2]);
}

LG__ONNX(SwiGLU)
{
        lg_tensor *gate = lg__onnx_Swish(c);
        return gate ? lg_mul(gate, c->in[1]) : NULL;
}

/* ---- any number of operands ---- */

static lg_tensor *over_all(lg__onnx_call *c, lg_tensor *(*fn)(lg_tensor *a, lg_tensor *b))
{
        lg_tensor *y = c->in[0];
        for (int i = 1; y && i < c->in_count; i++)
                y = fn(y, c->in[i]);
        return y;
}

LG__ONNX(Sum)
{
        return over_all(c, lg_add);
}

LG__ONNX(Max)
{
        return over_all(c, lg_maximum);
}

LG__ONNX(Min)
{
        return over_all(c, lg_minimum);
}

LG__ONNX(Mean)
{
        lg_tensor *sum = over_all(c, lg_add);
        return sum ? lg_div_scalar(sum, c->in_count) : NULL;
}
