/* repeat.c - repeats a tensor along each dimension (repeat, tile) or its slices along one (repeat_interleave). Made of
 * expand, reshape and index_select. */
#include "graph/op.h"

static lg_tensor *repeat_dim(lg_tensor *x, int dim, int64_t times)
{
        if (!x)
                return NULL;
        lg_shape to = x->at.shape;
        int64_t outer, n, inner;
        lg__split(to, dim, &outer, &n, &inner);
        to.size[dim] *= times;
        lg_tensor *lines = lg_reshape(x, LG_SHAPE(outer, 1, n * inner));
        return lg_reshape(lg_expand(lines, LG_SHAPE(outer, times, n * inner)), to);
}

static lg_tensor *compose_repeat(const lg__call *call)
{
        const lg_shape asked = *(const lg_shape *)call->attributes;
        const lg_tensor *x = call->in[0];
        lg_shape times = asked;
        if (call->op == LG__OP(tile) && asked.ndim < x->at.shape.ndim) {
                const int more = (times.ndim = x->at.shape.ndim) - asked.ndim;
                for (int i = 0; i < times.ndim; i++)
                        times.size[i] = i < more ? 1 : asked.size[i - more];
        }
        lg_shape s = {.ndim = times.ndim}, all;
        bool ok = times.ndim >= x->at.shape.ndim && times.ndim <= LG_MAX_DIMS;
        int missing = ok ? times.ndim - x->at.shape.ndim : 0;
        for (int i = 0; i < times.ndim && ok; i++)
                s.size[i] = i < missing ? 1 : x->at.shape.size[i - missing];
        all = s;
        for (int i = 0; i < times.ndim && ok; i++)
                ok = times.size[i] >= 0 && !__builtin_mul_overflow(s.size[i], times.size[i], &all.size[i]);
        if (!ok)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; it cannot be repeated %s times", call->op->name,
                                lg__tensor_text(x).s, lg__shape_text(asked).s);
        if (!lg__shape_valid(call->ctx, call->op->name, all))
                return NULL;
        lg_tensor *y = lg_reshape(call->in[0], s);
        for (int i = times.ndim - 1; i >= 0; i--)
                if (times.size[i] != 1)
                        y = repeat_dim(y, i, times.size[i]);
        return y && !lg__layout_is_contiguous(&y->at) ? lg_copy(y, LG_NO_DEVICE) : lg__made(y, x);
}

LG__COMPOSITE(repeat, {"x"})
LG__DEFINE(tile, .compose = compose_repeat, LG__OPERANDS({"x"}))

lg_tensor *lg_repeat(lg_tensor *x, lg_shape times)
{
        return LG__APPLY(repeat, &times, x);
}

lg_tensor *lg_tile(lg_tensor *x, lg_shape times)
{
        return LG__APPLY(tile, &times, x);
}

/* ---- repeat_interleave ---- */

typedef struct repeats {
        int64_t times;
        int dim;
} repeats;

/* Returns x, or one element as a vector if x is 0-d, and resolves dim. Returns NULL and sets an error if dim is bad. */
static lg_tensor *as_lines(const lg__call *call, int *dim)
{
        lg_tensor *x = call->in[0];
        if ((*dim = lg__line_dim(x, call->op->name, *dim)) < 0)
                return NULL;
        return x->at.shape.ndim ? x : lg_reshape(x, LG_SHAPE(1));
}

static lg_tensor *compose_repeat_interleave(const lg__call *call)
{
        repeats r = *(const repeats *)call->attributes;
        lg_tensor *x = as_lines(call, &r.dim);
        if (!x)
                return NULL;
        lg_shape to = x->at.shape;
        int64_t outer, n, inner;
        lg__split(to, r.dim, &outer, &n, &inner);
        if (r.times < 0)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "repeat_interleave: times is %lld, below 0",
                                (long long)r.times);
        if (__builtin_mul_overflow(n, r.times, &to.size[r.dim]))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "repeat_interleave: dimension %d would exceed 2^63", r.dim);
        if (!lg__shape_valid(call->ctx, "repeat_interleave", to))
                return NULL;
        lg_tensor *slices = lg_reshape(x, LG_SHAPE(outer * n, 1, inner));
        return lg__made(lg_reshape(lg_expand(slices, LG_SHAPE(outer * n, r.times, inner)), to), x);
}
LG__COMPOSITE(repeat_interleave, {"x"})

lg_tensor *lg_repeat_interleave(lg_tensor *x, int64_t times, int dim)
{
        return LG__APPLY(repeat_interleave, (&(repeats){times, dim}), x);
}

/* Returns the indices of n slices, slice i as often as counts[i], or counts[0] if there is one count for all. */
static lg_tensor *repeated_indices(const lg__call *call, const int64_t *counts, bool one, int64_t n)
{
        int64_t total = 0, at = 0;
        for (int64_t i = 0; i < n; i++) {
                const int64_t times = counts[one ? 0 : i];
                if (times < 0)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT, "repeat_interleave_by: a count is %lld, below 0",
                                        (long long)times);
                if (__builtin_add_overflow(total, times, &total) || total > INT64_MAX / 8)
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "repeat_interleave_by: the counts add up beyond 2^60");
        }
        const size_t bytes = (size_t)total * sizeof(int64_t);
        int64_t *index = lg__alloc(call->ctx, bytes);
        if (!index && bytes)
                return NULL;
        for (int64_t i = 0; i < n; i++)
                for (int64_t k = 0; k < counts[one ? 0 : i]; k++)
                        index[at++] = i;
        lg_tensor *t = lg_from(call->ctx, index, LG_SHAPE(total), .device = call->device->id);
        lg__free(call->ctx, index, bytes);
        return t;
}

static lg_tensor *compose_repeat_interleave_by(const lg__call *call)
{
        int dim = *(const int *)call->attributes;
        const lg_tensor *counts = call->in[1];
        lg_tensor *x = as_lines(call, &dim), *index = NULL;
        if (!x)
                return NULL;
        const int64_t n = x->at.shape.size[dim], given = lg__shape_numel(counts->at.shape);
        if (counts->at.shape.ndim > 1 || (given != n && given != 1))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "repeat_interleave_by: counts is %s; for %lld slices it has %lld elements or one",
                                lg__tensor_text(counts).s, (long long)n, (long long)n);
        const size_t bytes = (size_t)given * sizeof(int64_t);
        int64_t *host = lg__alloc(call->ctx, bytes);
        if ((host || bytes == 0) && lg_read(counts, host, LG_I64, bytes))
                index = repeated_indices(call, host, given == 1, n);
        lg__free(call->ctx, host, bytes);
        return index ? lg_index_select(x, dim, index) : NULL;
}
LG__COMPOSITE(repeat_interleave_by, {"x"}, {"counts", LG__INDEX})

lg_tensor *lg_repeat_interleave_by(lg_tensor *x, lg_tensor *counts, int dim)
{
        return LG__APPLY(repeat_interleave_by, &dim, x, counts);
}
