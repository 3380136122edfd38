/* arrange.c - views in other forms: movedim, rot90, fliplr, flipud, narrow, unflatten, atleast_1d to 3d. Made of the
 * views of view.c and flip.c. */
#include "graph/op.h"

/* Defines the op and the public function lg_of(x, ...), which compose_of() computes from x and these attributes. */
#define MADE(of, attributes, ...)                                                                                      \
        LG__COMPOSITE(of, {"x"})                                                                                       \
        lg_tensor *lg_##of(__VA_ARGS__)                                                                                \
        {                                                                                                              \
                return LG__APPLY(of, attributes, x);                                                                   \
        }

static lg_tensor *compose_movedim(const lg__call *call)
{
        const int n = call->in[0]->at.shape.ndim;
        lg_dims from = ((const lg_dims *)call->attributes)[0], to = ((const lg_dims *)call->attributes)[1];
        lg_dims order = {.count = n};
        unsigned moved = 0, taken = 0;
        if (from.count != to.count)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "movedim: from has %d dimensions, but to has %d",
                                from.count, to.count);
        if (!lg__dims(call->ctx, "movedim", &from, n) || !lg__dims(call->ctx, "movedim", &to, n))
                return NULL;
        for (int i = 0; i < from.count; i++) {
                moved |= 1u << from.dim[i];
                taken |= 1u << to.dim[i];
                order.dim[to.dim[i]] = from.dim[i];
        }
        for (int i = 0, next = 0; i < n; i++) {
                if (taken >> i & 1)
                        continue;
                while (moved >> next & 1)
                        next++;
                order.dim[i] = next++;
        }
        return lg_permute(call->in[0], order);
}
MADE(movedim, ((const lg_dims[]){from, to}), lg_tensor *x, lg_dims from, lg_dims to)

typedef struct turn {
        int64_t k;
        lg_dims dims;
} turn;

static lg_tensor *compose_rot90(const lg__call *call)
{
        const turn *t = call->attributes;
        lg_tensor *x = call->in[0];
        lg_dims plane = t->dims;
        const int64_t k = (t->k % 4 + 4) % 4;
        if (plane.count != 2)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "rot90: dims has %d dimensions; a plane has 2",
                                plane.count);
        if (x->at.shape.ndim < 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "rot90: x is %s; it has two dimensions at least",
                                lg__tensor_text(x).s);
        if (!lg__dims(call->ctx, "rot90", &plane, x->at.shape.ndim))
                return NULL;
        if (k == 0)
                return lg_reshape(x, x->at.shape);
        if (k == 2)
                return lg_flip(x, plane);
        return lg_transpose(lg_flip(x, LG_DIMS(plane.dim[k == 1])), plane.dim[0], plane.dim[1]);
}
MADE(rot90, (&(turn){k, dims}), lg_tensor *x, int64_t k, lg_dims dims)

static lg_tensor *reversed(const lg__call *call, int dim)
{
        const int d = lg__dim(call->ctx, call->op->name, dim, call->in[0]->at.shape.ndim);
        return d < 0 ? NULL : lg_flip(call->in[0], LG_DIMS(d));
}

static lg_tensor *compose_fliplr(const lg__call *call)
{
        return reversed(call, 1);
}
MADE(fliplr, NULL, lg_tensor *x)

static lg_tensor *compose_flipud(const lg__call *call)
{
        return reversed(call, 0);
}
MADE(flipud, NULL, lg_tensor *x)

typedef struct range {
        int dim;
        int64_t start, length;
} range;

static lg_tensor *compose_narrow(const lg__call *call)
{
        const range *r = call->attributes;
        lg_tensor *x = call->in[0];
        const int dim = lg__dim(call->ctx, "narrow", r->dim, x->at.shape.ndim);
        if (dim < 0)
                return NULL;
        const int64_t n = x->at.shape.size[dim], start = r->start < 0 ? r->start + n : r->start;
        if (start < 0 || start > n || r->length < 0 || r->length > n - start)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "narrow: start %lld and length %lld are outside dimension %d of size %lld",
                                (long long)r->start, (long long)r->length, dim, (long long)n);
        return lg_slice(x, dim, start, start + r->length);
}
MADE(narrow, (&(range){dim, start, length}), lg_tensor *x, int dim, int64_t start, int64_t length)

typedef struct division {
        int dim;
        lg_shape sizes;
} division;

static lg_tensor *compose_unflatten(const lg__call *call)
{
        const division *d = call->attributes;
        lg_tensor *x = call->in[0];
        const lg_shape s = x->at.shape;
        const int dim = lg__dim(call->ctx, "unflatten", d->dim, s.ndim);
        lg_shape to = LG_SHAPE_0D;
        int64_t known = 1, *unknown = NULL;
        bool fits = dim >= 0 && d->sizes.ndim > 0 && d->sizes.ndim <= LG_MAX_DIMS - (s.ndim - 1);
        if (dim < 0)
                return NULL;
        for (int i = 0; i < dim; i++)
                to.size[to.ndim++] = s.size[i];
        for (int i = 0; i < d->sizes.ndim && fits; i++) {
                const int64_t size = to.size[to.ndim++] = d->sizes.size[i];
                if (size == -1 && !unknown)
                        unknown = &to.size[to.ndim - 1];
                else
                        fits = size >= 0 && !__builtin_mul_overflow(known, size, &known);
        }
        if (unknown && fits && known > 0 && s.size[dim] % known == 0)
                known *= *unknown = s.size[dim] / known;
        if (!fits || known != s.size[dim] || (unknown && *unknown < 0))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "unflatten: dimension %d of x, %s, cannot be replaced by %s",
                                dim, lg__tensor_text(x).s, lg__shape_text(d->sizes).s);
        for (int i = dim + 1; i < s.ndim; i++)
                to.size[to.ndim++] = s.size[i];
        return lg_reshape(x, to);
}
MADE(unflatten, (&(division){dim, sizes}), lg_tensor *x, int dim, lg_shape sizes)

/* Returns x with at least n dimensions. */
static lg_tensor *at_least(const lg__call *call, int n)
{
        const lg_shape s = call->in[0]->at.shape;
        const int64_t last = s.ndim ? s.size[s.ndim - 1] : 1;
        if (s.ndim >= n)
                return lg_reshape(call->in[0], s);
        return lg_reshape(call->in[0], n == 1   ? LG_SHAPE(1)
                                       : n == 2 ? LG_SHAPE(1, last)
                                                : LG_SHAPE(s.ndim == 2 ? s.size[0] : 1, last, 1));
}

#define AT_LEAST(of, n)                                                                                                \
        static lg_tensor *compose_##of(const lg__call *call)                                                           \
        {                                                                                                              \
                return at_least(call, n);                                                                              \
        }                                                                                                              \
        MADE(of, NULL, lg_tensor *x)
AT_LEAST(atleast_1d, 1)
AT_LEAST(atleast_2d, 2)
AT_LEAST(atleast_3d, 3)
