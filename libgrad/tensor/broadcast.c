/* broadcast.c - broadcasting by NumPy's rule, and checks of dimensions given as arguments. */
#include <string.h>
#include "tensor.h"

bool lg__broadcast(lg_ctx *c, const char *op, lg_shape a, lg_shape b, lg_shape *ret)
{
        lg_shape s = {.ndim = a.ndim > b.ndim ? a.ndim : b.ndim};
        for (int i = 1; i <= s.ndim; i++) {
                int64_t m = i <= a.ndim ? a.size[a.ndim - i] : 1, n = i <= b.ndim ? b.size[b.ndim - i] : 1;
                if (m != n && m != 1 && n != 1)
                        return lg__fail(
                                c, LG_ERR_SHAPE,
                                "%s: the shapes %s and %s do not broadcast: %lld and %lld differ in dimension %d%s", op,
                                lg__shape_text(a).s, lg__shape_text(b).s, (long long)m, (long long)n, s.ndim - i,
                                a.ndim != b.ndim
                                        ? "; the last dimensions are compared first: lg_unsqueeze(x, -1) adds one"
                                        : "");
                s.size[s.ndim - i] = m == 1 ? n : m;
        }
        *ret = s;
        return true;
}

void lg__broadcast_strides(const lg__layout *t, lg_shape shape, int64_t strides[LG_MAX_DIMS])
{
        int missing = shape.ndim - t->shape.ndim;
        for (int i = 0; i < shape.ndim; i++) {
                int own = i - missing;
                strides[i] = own >= 0 && t->shape.size[own] != 1 ? t->strides[own] : 0;
        }
}

/* Returns dim as 0 to count - 1, or -1 with an error about a tensor of ndim dimensions. */
static int dim_within(lg_ctx *c, const char *op, int dim, int count, int ndim)
{
        int i = dim < 0 ? dim + count : dim;
        if (i >= 0 && i < count)
                return i;
        lg__fail(c, LG_ERR_ARGUMENT, "%s: there is no dimension %d in a tensor of %d dimension%s", op, dim, ndim,
                 ndim == 1 ? "" : "s");
        return -1;
}

int lg__dim(lg_ctx *c, const char *op, int dim, int ndim)
{
        return dim_within(c, op, dim, ndim, ndim);
}

int lg__scalar_dim(lg_ctx *c, const char *op, int dim, int ndim)
{
        return dim_within(c, op, dim, ndim ? ndim : 1, ndim);
}

bool lg__dims(lg_ctx *c, const char *op, lg_dims *dims, int ndim)
{
        const bool all = dims->count == 0;
        unsigned seen = 0;
        if (dims->count < 0 || dims->count > LG_MAX_DIMS)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: a set of %d dimensions", op, dims->count);
        if (all)
                dims->count = ndim;
        for (int i = 0; i < dims->count; i++) {
                const int d = all ? i : lg__scalar_dim(c, op, dims->dim[i], ndim);
                if (d < 0)
                        return false;
                if (seen >> d & 1)
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: dimension %d is given twice", op, d);
                seen |= 1u << d;
                dims->dim[i] = d;
        }
        dims->count = ndim ? dims->count : 0;
        return true;
}

int lg__line_dim(const lg_tensor *x, const char *op, int dim)
{
        return lg__check(x, op, "x") ? lg__scalar_dim(x->ctx, op, dim, x->at.shape.ndim) : -1;
}

void lg__split(lg_shape s, int dim, int64_t *ret_outer, int64_t *ret_n, int64_t *ret_inner)
{
        *ret_outer = *ret_n = *ret_inner = 1;
        for (int i = 0; i < s.ndim; i++)
                *(i < dim ? ret_outer : i == dim ? ret_n : ret_inner) *= s.size[i];
}
