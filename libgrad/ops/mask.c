/* mask.c - elements replaced where a mask says so: masked_fill, and the triangles of matrices. Made of where. */
#include "../op.h"

lg_tensor *lg_masked_fill(lg_tensor *x, lg_tensor *mask, double value)
{
        if (!lg__same_context(x, mask, "masked_fill", "mask") || !lg__check(x, "masked_fill", "x"))
                return NULL;
        if (!mask)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "masked_fill: mask is NULL");
        if (!lg__check(mask, "masked_fill", "mask"))
                return NULL;
        if (mask->at.dtype != LG_BOOL)
                return lg__fail(x->ctx, LG_ERR_DTYPE, "masked_fill: mask is %s, not bool", lg__tensor_text(mask).s);
        lg_shape s;
        if (!lg__broadcast(x->ctx, "masked_fill", x->at.shape, mask->at.shape, &s) ||
            !lg__dtype_holds(x->ctx, "masked_fill", x->at.dtype, value))
                return NULL;
        return lg_where(mask, lg__constant(x, value), x);
}

static int64_t clip(int64_t i, int64_t low, int64_t high)
{
        return i < low ? low : i > high ? high : i;
}

/* x where column - row is on one side of the diagonal, else 0. */
static lg_tensor *triangle(lg_tensor *x, const lg_triangle_options *options, const char *op, bool lower)
{
        lg_triangle_options o;
        if (!lg__check(x, op, "x") || !lg__take(x->ctx, op, options, &o, sizeof o))
                return NULL;
        int n = x->at.shape.ndim;
        if (n < 2)
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: x is %s; it needs two dimensions at least", op,
                                lg__tensor_text(x).s);
        int64_t rows = x->at.shape.size[n - 2], columns = x->at.shape.size[n - 1];
        /* beyond the corners every diagonal is like the one next to them */
        double k = (double)clip(lg__whole_option(o.diagonal, 0), -rows - 1, columns + 1);
        lg_device device = x->storage->device->id;
        lg_tensor *row = lg_arange(x->ctx, k, (double)rows + k, 1, .dtype = LG_I64, .device = device);
        lg_tensor *column = lg_arange(x->ctx, 0, (double)columns, 1, .dtype = LG_I64, .device = device);
        row = lg_unsqueeze(row, 1);
        return lg_where(lower ? lg_le(column, row) : lg_ge(column, row), x, lg__constant(x, 0));
}

lg_tensor *lg_tril_with(lg_tensor *x, const lg_triangle_options *options)
{
        return triangle(x, options, "tril", true);
}

lg_tensor *lg_triu_with(lg_tensor *x, const lg_triangle_options *options)
{
        return triangle(x, options, "triu", false);
}
