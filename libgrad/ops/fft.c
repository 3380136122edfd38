/* fft.c - discrete Fourier transforms, along one dimension or several.
 *
 * The op fft is one of the kernel's kinds (kernels/fft.h): y = F x, with F linear in the real and imaginary parts. So
 * dx = F^T g: for complex transforms, the transform in the opposite direction with the same factor; REAL and HALF are
 * each other's, with the other weights. */
#include <math.h>
#include "graph/op.h"

#define FFT_FIELDS(FIELD)                                                                                              \
        FIELD(int, kind, 0)                                                                                            \
        FIELD(int, dim, 0) FIELD(i64, n, 0) FIELD(bool, inverse, false) FIELD(bool, adjoint, false) FIELD(f64, scale, 1)
LG__ATTRIBUTES(fft, FFT_FIELDS)

static bool infer(lg__call *call)
{
        const fft_attributes *a = call->attributes;
        lg_shape *s = &call->out_at[0].shape;
        s->ndim += a->kind == LG_FFT_REAL ? 1 : a->kind == LG_FFT_HALF ? -1 : 0;
        s->size[a->dim] = a->kind == LG_FFT_REAL ? a->n / 2 + 1 : a->n;
        if (a->kind == LG_FFT_REAL && s->ndim <= LG_MAX_DIMS)
                s->size[s->ndim - 1] = 2;
        return lg__shape_valid(call->ctx, "fft", *s);
}

static bool forward(lg__call *call)
{
        const fft_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0];
        lg_fft_args k = {.dtype = x->at.dtype, .kind = (lg_fft_kind)a->kind, .inverse = a->inverse};
        lg_shape shape = x->at.shape;
        shape.ndim -= a->kind != LG_FFT_REAL;
        k.adjoint = a->adjoint, k.n = a->n, k.scale = a->scale;
        k.x = lg__data(x), k.y = lg__data(call->out[0]);
        int64_t size;
        lg__split(shape, a->dim, &k.outer, &size, &k.inner);
        return k.outer * k.inner == 0 || LG__RUN(call->device, "fft", fft, &k);
}

static bool vjp(lg__vjp *v)
{
        fft_attributes a = *(const fft_attributes *)v->attributes;
        a.inverse = !a.inverse;
        a.adjoint = a.kind != LG_FFT_COMPLEX && !a.adjoint;
        a.kind = a.kind == LG_FFT_REAL ? LG_FFT_HALF : a.kind == LG_FFT_HALF ? LG_FFT_REAL : LG_FFT_COMPLEX;
        return (v->grad_in[0] = LG__APPLY(fft, &a, v->grad[0])) != NULL;
}

LG__DEFINE(fft, .autocast = LG__F32, LG__OPERANDS({"x", LG__FLOAT, LG__ROW_MAJOR}), LG__RESULTS({"y"}), LG__HAS(fft),
           .infer = infer, .forward = forward, .vjp = vjp)

/* ---- lengths, dimensions, factors ---- */

typedef struct transform {
        lg_fft_kind kind;
        bool inverse;
        lg_ints s;
        lg_dims dims;
        lg_fft_norm norm;
} transform;

/* Returns x with n elements in dimension dim: cut, or with zeros at the end. */
static lg_tensor *resized(lg_tensor *x, int dim, int64_t n)
{
        const int64_t size = x->at.shape.size[dim];
        int64_t pads[2 * LG_MAX_DIMS] = {0};
        const int at = 2 * (x->at.shape.ndim - 1 - dim) + 1;
        if (size > n)
                return lg_slice(x, dim, 0, n);
        pads[at] = n - size;
        return size == n ? x : lg_pad(x, LG_INTS_OF(at + 1, pads));
}

/* Returns x transformed along one dimension of size n. */
static lg_tensor *along(const lg__call *call, lg_tensor *x, lg_fft_kind kind, int dim, int64_t n)
{
        const transform *t = call->attributes;
        fft_attributes a = {.kind = (int)kind, .dim = dim, .n = n, .inverse = t->inverse, .scale = 1};
        if (t->norm == LG_FFT_ORTHO)
                a.scale = 1 / sqrt((double)n);
        else if ((t->norm == LG_FFT_FORWARD) != t->inverse)
                a.scale = 1 / (double)n;
        x = x ? resized(x, dim, kind == LG_FFT_HALF ? n / 2 + 1 : n) : NULL;
        return LG__APPLY(fft, &a, x);
}

/* Checks x, and sets *dims to the dimensions from 0 on. */
static bool resolve(const lg__call *call, lg_dims *dims)
{
        const transform *t = call->attributes;
        const lg_tensor *x = call->in[0];
        const char *name = call->op->name;
        const lg_shape s = x->at.shape;
        const bool complex = t->kind != LG_FFT_REAL;
        const int ndim = s.ndim - complex;
        if (x->at.dtype != LG_F32 && x->at.dtype != LG_F64)
                return lg__fail(call->ctx, LG_ERR_DTYPE, "%s: x is %s; it is f32 or f64", name, lg__tensor_text(x).s);
        if (complex && (s.ndim == 0 || s.size[ndim] != 2))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "%s: x is %s; the last dimension of a complex tensor has size 2", name,
                                lg__tensor_text(x).s);
        if (ndim == 0 && (dims->count > 0 || t->s.count > 0 || t->kind != LG_FFT_COMPLEX))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s, a single number; it has one dimension at least",
                                name, lg__tensor_text(x).s);
        if (t->s.count > ndim || (dims->count > 0 && t->s.count > 0 && t->s.count != dims->count))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: s has %lld sizes for %d dimensions", name,
                                (long long)t->s.count, dims->count > 0 ? dims->count : ndim);
        for (int i = 0; dims->count == 0 && i < t->s.count; i++)
                dims->dim[i] = (int)(ndim - t->s.count) + i;
        dims->count = dims->count == 0 ? (int)t->s.count : dims->count;
        return lg__dims(call->ctx, name, dims, ndim);
}

/* Transforms the dimensions one after the other; that of reals is the last given one: first forward, last back. */
static lg_tensor *compose_transform(const lg__call *call)
{
        const transform *t = call->attributes;
        lg_tensor *x = call->in[0], *y = x;
        lg_dims dims = t->dims;
        int64_t n[LG_MAX_DIMS];
        if (!resolve(call, &dims))
                return NULL;
        const int last = dims.count - 1;
        for (int i = 0; i <= last; i++) {
                const int64_t size = x->at.shape.size[dims.dim[i]];
                n[i] = t->kind == LG_FFT_HALF && i == last ? 2 * (size - 1) : size;
                n[i] = t->s.count > 0 && t->s.items[i] != -1 ? t->s.items[i] : n[i];
                if (n[i] < 1)
                        return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                        "%s: the transform of dimension %d of x, %s, has %lld elements; it has one at "
                                        "least",
                                        call->op->name, dims.dim[i], lg__tensor_text(x).s, (long long)n[i]);
        }
        if (t->kind == LG_FFT_REAL)
                y = along(call, y, LG_FFT_REAL, dims.dim[last], n[last]);
        for (int i = 0; i <= last - (t->kind != LG_FFT_COMPLEX); i++)
                y = along(call, y, LG_FFT_COMPLEX, dims.dim[i], n[i]);
        if (t->kind == LG_FFT_HALF)
                y = along(call, y, LG_FFT_HALF, dims.dim[last], n[last]);
        return lg__made(y, x);
}

static lg_tensor *apply(const lg__op *op, lg_tensor *x, const transform *t)
{
        lg_ctx *c = lg__ctx_of(x);
        if (t->norm < LG_FFT_BACKWARD || t->norm > LG_FFT_ORTHO)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: norm is %d; it is an lg_fft_norm", op->name, (int)t->norm);
        return lg__apply1(op, x, t);
}

/* Define lg_of(), a transform of one dimension or of several: by default those in `usual`. */
#define TRANSFORM(of)                                                                                                  \
        static const lg__op of##_op = {                                                                                \
                .name = #of, .autocast = LG__F32, .compose = compose_transform, LG__OPERANDS({"x", LG__FLOAT})};
#define OF_ONE(of, kind_, inverse_)                                                                                    \
        TRANSFORM(of)                                                                                                  \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_fft_options *options)                                         \
        {                                                                                                              \
                lg_fft_options o;                                                                                      \
                if (!lg__take(lg__ctx_of(x), #of, options, &o, sizeof o))                                              \
                        return NULL;                                                                                   \
                const int64_t n = o.n ? o.n : -1, dim = lg__whole_option(o.dim, -1);                                   \
                if (o.n < 0 || dim < INT32_MIN || dim > INT32_MAX)                                                     \
                        return lg__fail(lg__ctx_of(x), LG_ERR_ARGUMENT,                                                \
                                        #of ": n is %lld and dim is %lld; n is 1 or more, dim a dimension of x",       \
                                        (long long)o.n, (long long)dim);                                               \
                return apply(&of##_op, x,                                                                              \
                             &(transform){kind_, inverse_, LG_INTS_OF(1, &n), LG_DIMS((int)dim), o.norm});             \
        }
#define OF_SEVERAL(of, kind_, inverse_, ...)                                                                           \
        TRANSFORM(of)                                                                                                  \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_fftn_options *options)                                        \
        {                                                                                                              \
                lg_fftn_options o;                                                                                     \
                if (!lg__take(lg__ctx_of(x), #of, options, &o, sizeof o) ||                                            \
                    !lg__list_ok(lg__ctx_of(x), #of, o.s.count, o.s.items))                                            \
                        return NULL;                                                                                   \
                return apply(&of##_op, x,                                                                              \
                             &(transform){kind_, inverse_, o.s, o.dims.count ? o.dims : __VA_ARGS__, o.norm});         \
        }
OF_ONE(fft, LG_FFT_COMPLEX, false)
OF_ONE(ifft, LG_FFT_COMPLEX, true)
OF_ONE(rfft, LG_FFT_REAL, false)
OF_ONE(irfft, LG_FFT_HALF, true)
OF_ONE(hfft, LG_FFT_HALF, false)
OF_ONE(ihfft, LG_FFT_REAL, true)
OF_SEVERAL(fft2, LG_FFT_COMPLEX, false, LG_DIMS(-2, -1))
OF_SEVERAL(ifft2, LG_FFT_COMPLEX, true, LG_DIMS(-2, -1))
OF_SEVERAL(rfft2, LG_FFT_REAL, false, LG_DIMS(-2, -1))
OF_SEVERAL(irfft2, LG_FFT_HALF, true, LG_DIMS(-2, -1))
OF_SEVERAL(fftn, LG_FFT_COMPLEX, false, LG_ALL_DIMS)
OF_SEVERAL(ifftn, LG_FFT_COMPLEX, true, LG_ALL_DIMS)
OF_SEVERAL(rfftn, LG_FFT_REAL, false, LG_ALL_DIMS)
OF_SEVERAL(irfftn, LG_FFT_HALF, true, LG_ALL_DIMS)

/* ---- shifts ---- */

/* Rolls each of the dimensions by half of its size, rounded down forward, and up back. */
static lg_tensor *shifted(const lg__call *call, bool back)
{
        lg_dims dims = *(const lg_dims *)call->attributes;
        lg_tensor *x = call->in[0], *y = x;
        if (!lg__dims(call->ctx, call->op->name, &dims, x->at.shape.ndim))
                return NULL;
        for (int i = 0; i < dims.count && x->at.shape.ndim > 0; i++) {
                const int64_t n = x->at.shape.size[dims.dim[i]];
                y = lg_roll(y, back ? (n + 1) / 2 : n / 2, dims.dim[i]);
        }
        return lg__made(y, x);
}

static lg_tensor *compose_fftshift(const lg__call *call)
{
        return shifted(call, false);
}

static lg_tensor *compose_ifftshift(const lg__call *call)
{
        return shifted(call, true);
}

LG__COMPOSITE(fftshift, {"x"})
LG__COMPOSITE(ifftshift, {"x"})

lg_tensor *lg_fftshift(lg_tensor *x, lg_dims dims)
{
        return LG__APPLY(fftshift, &dims, x);
}

lg_tensor *lg_ifftshift(lg_tensor *x, lg_dims dims)
{
        return LG__APPLY(ifftshift, &dims, x);
}
