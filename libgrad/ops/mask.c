/* mask.c - replaces elements by a mask: masked_fill, and the triangles tril and triu of matrices. Made of where. */
#include "graph/op.h"

static lg_tensor *compose_masked_fill(const lg__call *call)
{
        const double value = *(const double *)call->attributes;
        lg_tensor *x = call->in[0], *mask = call->in[1];
        lg_shape s;
        if (!lg__broadcast(call->ctx, "masked_fill", x->at.shape, mask->at.shape, &s) ||
            !lg__dtype_holds(call->ctx, "masked_fill", x->at.dtype, value))
                return NULL;
        return lg_where(mask, lg__constant(x, value), x);
}

LG__COMPOSITE(masked_fill, {"x"}, {"mask", LG__MASK})

lg_tensor *lg_masked_fill(lg_tensor *x, lg_tensor *mask, double value)
{
        return LG__APPLY(masked_fill, &value, x, mask);
}

static int64_t clip(int64_t i, int64_t low, int64_t high)
{
        return i < low ? low : i > high ? high : i;
}

/* Computes tril (triu): keeps the elements of x on and below (above) a diagonal, and sets the others to 0. */
static lg_tensor *compose_triangle(const lg__call *call)
{
        lg_triangle_options o;
        lg_ctx *c = call->ctx;
        lg_tensor *x = call->in[0];
        const char *op = call->op->name;
        int n = x->at.shape.ndim;
        if (!lg__take(c, op, call->attributes, &o, sizeof o))
                return NULL;
        if (n < 2)
                return lg__fail(c, LG_ERR_SHAPE, "%s: x is %s; it needs two dimensions at least", op,
                                lg__tensor_text(x).s);
        int64_t rows = x->at.shape.size[n - 2], columns = x->at.shape.size[n - 1];
        /* all diagonals beyond a corner give the same result */
        double k = (double)clip(lg__whole_option(o.diagonal, 0), -rows - 1, columns + 1);
        lg_device device = call->device->id;
        lg_tensor *row = lg_arange(c, k, (double)rows + k, 1, .dtype = LG_I64, .device = device);
        lg_tensor *column = lg_arange(c, 0, (double)columns, 1, .dtype = LG_I64, .device = device);
        row = lg_unsqueeze(row, 1);
        return lg_where(call->op == LG__OP(tril) ? lg_le(column, row) : lg_ge(column, row), x, lg__constant(x, 0));
}

#define TRIANGLE(of)                                                                                                   \
        LG__DEFINE(of, .compose = compose_triangle, LG__OPERANDS({"x"}))                                               \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_triangle_options *options)                                    \
        {                                                                                                              \
                return LG__APPLY(of, options, x);                                                                      \
        }
TRIANGLE(tril)
TRIANGLE(triu)
