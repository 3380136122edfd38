/* complex.c - complex numbers as pairs in the last dimension, by ops on their parts. */
#include "graph/op.h"

/* Checks that x has pairs. */
static bool is_complex(const lg__call *call, int i)
{
        const lg_shape s = call->in[i]->at.shape;
        return (s.ndim > 0 && s.size[s.ndim - 1] == 2) ||
               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: %s is %s; the last dimension of a complex tensor has size 2",
                        call->op->name, lg__operand_name(call->op, i), lg__tensor_text(call->in[i]).s);
}

static lg_tensor *part(lg_tensor *x, int i)
{
        return lg_select(x, -1, i);
}

static lg_tensor *compose_complex(const lg__call *call)
{
        lg_shape s;
        if (!lg__broadcast(call->ctx, "complex", call->in[0]->at.shape, call->in[1]->at.shape, &s))
                return NULL;
        return lg_stack(LG_LIST(lg_expand(call->in[0], s), lg_expand(call->in[1], s)), -1);
}

static lg_tensor *compose_complex_mul(const lg__call *call)
{
        if (!is_complex(call, 0) || !is_complex(call, 1))
                return NULL;
        lg_tensor *a = lg__widened(call->in[0]), *b = lg__widened(call->in[1]);
        lg_tensor *ar = part(a, 0), *ai = part(a, 1), *br = part(b, 0), *bi = part(b, 1);
        lg_tensor *re = lg_sub(lg_mul(ar, br), lg_mul(ai, bi)), *im = lg_add(lg_mul(ar, bi), lg_mul(ai, br));
        return re && im ? lg_cast(lg_stack(LG_LIST(re, im), -1), call->in[0]->at.dtype) : NULL;
}

static lg_tensor *compose_complex_conj(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        return is_complex(call, 0) ? lg_stack(LG_LIST(part(x, 0), lg_neg(part(x, 1))), -1) : NULL;
}

/* Returns the real parts of x, with 1 for the numbers that are 0, and sets *ret_zero to where these are. */
static lg_tensor *safe_real(lg_tensor *x, lg_tensor **ret_zero)
{
        *ret_zero = lg_logical_and(lg_eq_scalar(part(x, 0), 0), lg_eq_scalar(part(x, 1), 0));
        return lg_where(*ret_zero, lg__constant(x, 1), part(x, 0));
}

static lg_tensor *compose_complex_abs(const lg__call *call)
{
        lg_tensor *x = call->in[0], *zero;
        if (!is_complex(call, 0))
                return NULL;
        lg_tensor *y = lg_hypot(safe_real(x, &zero), part(x, 1));
        return lg_where(zero, lg__constant(x, 0), y);
}

static lg_tensor *compose_complex_angle(const lg__call *call)
{
        lg_tensor *x = call->in[0], *zero;
        if (!is_complex(call, 0))
                return NULL;
        lg_tensor *y = lg_atan2(part(x, 1), safe_real(x, &zero));
        return lg_where(zero, lg_atan2(lg_detach(part(x, 1)), lg_detach(part(x, 0))), y);
}

LG__DEFINE(complex, .flags = LG__PROMOTE, .compose = compose_complex,
           LG__OPERANDS({"re", LG__FLOAT}, {"im", LG__FLOAT}))
LG__DEFINE(complex_mul, .flags = LG__PROMOTE, .compose = compose_complex_mul,
           LG__OPERANDS({"a", LG__FLOAT}, {"b", LG__FLOAT}))
LG__COMPOSITE(complex_conj, {"x", LG__FLOAT})
LG__COMPOSITE(complex_abs, {"x", LG__FLOAT})
LG__COMPOSITE(complex_angle, {"x", LG__FLOAT})

lg_tensor *lg_complex(lg_tensor *re, lg_tensor *im)
{
        return LG__APPLY(complex, NULL, re, im);
}

lg_tensor *lg_complex_mul(lg_tensor *a, lg_tensor *b)
{
        return LG__APPLY(complex_mul, NULL, a, b);
}

lg_tensor *lg_complex_conj(lg_tensor *x)
{
        return lg__apply1(LG__OP(complex_conj), x, NULL);
}

lg_tensor *lg_complex_abs(lg_tensor *x)
{
        return lg__apply1(LG__OP(complex_abs), x, NULL);
}

lg_tensor *lg_complex_angle(lg_tensor *x)
{
        return lg__apply1(LG__OP(complex_angle), x, NULL);
}
