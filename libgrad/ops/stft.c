/* stft.c - windows, frequencies, and transforms of the windows of signals (stft) and back (istft), made of other ops.
 */
#include <math.h>
#include "graph/op.h"

/* ---- vectors computed in f64 ---- */

/* A vector to be made: its value at element k, of n or one period, and the numbers of a window. */
typedef struct vector {
        const char *name;
        double (*value)(const struct vector *v, int64_t k);
        int64_t n, count;
        double alpha, beta;
} vector;

/* Returns the tensor of the values of v, of o's dtype (f32 by default) and device. */
static lg_tensor *made(lg_ctx *c, const vector *v, const lg_create_options *o)
{
        lg_create_options to =
                *LG_OPTIONS(lg_create_options, .dtype = o->dtype ? o->dtype : LG_F32, .device = o->device);
        if (v->n < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: n is %lld, below 0", v->name, (long long)v->n);
        if (!lg__may_create(c, v->name, LG_SHAPE(v->count), &to))
                return NULL;
        if (!lg__dtype_float(to.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: dtype %s; its values are floats", v->name,
                                lg_dtype_name(to.dtype));
        double *values = lg__alloc(c, (size_t)(v->count + 1) * sizeof *values);
        if (!values)
                return NULL;
        for (int64_t k = 0; k < v->count; k++)
                values[k] = v->value(v, k);
        lg_tensor *y = lg_from_with(c, values, LG_F64, LG_SHAPE(v->count), &to);
        lg__free(c, values, (size_t)(v->count + 1) * sizeof *values);
        return o->requires_grad ? lg_set_requires_grad(y, true) : y;
}

static double frequency(const vector *v, int64_t k)
{
        return (double)(k <= (v->n - 1) / 2 || v->count < v->n ? k : k - v->n) / ((double)v->n * v->alpha);
}

static lg_tensor *frequencies(lg_ctx *c, const char *name, int64_t n, int64_t count, const lg_fftfreq_options *options)
{
        lg_fftfreq_options o;
        if (!lg__take(c, name, options, &o, sizeof o))
                return NULL;
        const double d = lg__option(o.d, 1);
        if (d == 0 || !isfinite(d))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: d is %g; it is finite and not 0", name, d);
        return made(
                c, &(vector){name, frequency, n, n > 0 ? count : 0, d, 0},
                LG_OPTIONS(lg_create_options, .dtype = o.dtype, .device = o.device, .requires_grad = o.requires_grad));
}

lg_tensor *lg_fftfreq_with(lg_ctx *c, int64_t n, const lg_fftfreq_options *options)
{
        return frequencies(c, "lg_fftfreq", n, n, options);
}

lg_tensor *lg_rfftfreq_with(lg_ctx *c, int64_t n, const lg_fftfreq_options *options)
{
        return frequencies(c, "lg_rfftfreq", n, n / 2 + 1, options);
}

#define PI 3.14159265358979323846

/* cos(2 pi k / n), exactly 0, 1 or -1 where it is. */
static double cosine(const vector *v, int64_t k)
{
        const int64_t n = v->n, at = k % n;
        return 4 * at == n || 4 * at == 3 * n ? 0 : cos(2 * PI * (double)(2 * at > n ? n - at : at) / (double)n);
}

static double one(const vector *v, int64_t k)
{
        (void)v, (void)k;
        return 1;
}

static double hann(const vector *v, int64_t k)
{
        return 0.5 - 0.5 * cosine(v, k);
}

static double hamming(const vector *v, int64_t k)
{
        return v->alpha - v->beta * cosine(v, k);
}

static double blackman(const vector *v, int64_t k)
{
        const double c = cosine(v, k), y = 0.34 - 0.5 * c + 0.16 * c * c; /* cos(2 a) = 2 cos(a)^2 - 1 */
        return y > 0 ? y : 0;
}

static double bartlett(const vector *v, int64_t k)
{
        return 1 - fabs(2 * (double)k / (double)v->n - 1);
}

/* log(I0(x)): the power series of I0, or its asymptotic one. */
static double log_i0(double x)
{
        double term = 1, sum = 1;
        if (x < 30) {
                for (int k = 1; k < 200 && term > 1e-17 * sum; k++)
                        sum += term *= x * x / (4.0 * k * k);
                return log(sum);
        }
        for (int k = 1; k < 20; k++)
                sum += term *= (2.0 * k - 1) * (2.0 * k - 1) / (8.0 * k * x);
        return x + log(sum / sqrt(2 * PI * x));
}

static double kaiser(const vector *v, int64_t k)
{
        const double t = 2 * (double)k / (double)v->n - 1, beta = fabs(v->beta);
        return exp(log_i0(beta * sqrt(fmax(0, 1 - t * t))) - log_i0(beta));
}

static lg_tensor *window(lg_ctx *c, const char *name, double (*value)(const vector *, int64_t), int64_t n, double alpha,
                         double beta, const lg_window_options *options)
{
        lg_window_options o;
        if (!lg__take(c, name, options, &o, sizeof o))
                return NULL;
        vector v = {name, value, n, n, lg__option(o.alpha, alpha), lg__option(o.beta, beta)};
        if (!isfinite(v.alpha) || !isfinite(v.beta))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: alpha is %g and beta is %g; they are finite", name, v.alpha,
                                v.beta);
        lg_create_options to =
                *LG_OPTIONS(lg_create_options, .dtype = o.dtype, .device = o.device, .requires_grad = o.requires_grad);
        v.value = n == 1 ? one : value;
        v.n -= o.symmetric && n > 0;
        return made(c, &v, &to);
}

#define WINDOW(of, alpha, beta)                                                                                        \
        lg_tensor *lg_##of##_window_with(lg_ctx *c, int64_t n, const lg_window_options *options)                       \
        {                                                                                                              \
                return window(c, "lg_" #of "_window", of, n, alpha, beta, options);                                    \
        }
WINDOW(hann, 0, 0)
WINDOW(hamming, 0.54, 0.46)
WINDOW(blackman, 0, 0)
WINDOW(bartlett, 0, 0)
WINDOW(kaiser, 0, 12)

/* ---- stft and istft ---- */

/* A spectrogram: the length of frames, and the options with their defaults in place. */
typedef struct frames {
        int64_t n;
        lg_stft_options o;
        lg_pad_mode pad_mode;
} frames;

/* Checks f; returns the window (n, 1) of x's dtype, or NULL without an error if none is given. */
static bool resolve(const lg__call *call, frames *f, lg_tensor **ret_window)
{
        const char *name = call->op->name;
        lg_stft_options *o = &f->o;
        lg_tensor *w = call->in[1];
        if (call->in[0]->at.dtype != LG_F32 && call->in[0]->at.dtype != LG_F64)
                return lg__fail(call->ctx, LG_ERR_DTYPE, "%s: x is %s; it is f32 or f64", name,
                                lg__tensor_text(call->in[0]).s);
        o->hop = o->hop ? o->hop : f->n / 4;
        o->win_length = o->win_length ? o->win_length : f->n;
        if (f->n < 1 || o->hop < 1 || o->win_length < 1 || o->win_length > f->n || o->length < 0)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: n is %lld, hop %lld, win_length %lld and length %lld; they are 1 or more, and "
                                "win_length is at most n",
                                name, (long long)f->n, (long long)o->hop, (long long)o->win_length,
                                (long long)o->length);
        if (w && !lg__shape_equal(w->at.shape, LG_SHAPE(o->win_length)))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: window is %s; it has win_length = %lld elements", name,
                                lg__tensor_text(w).s, (long long)o->win_length);
        if (w && w->at.dtype != call->in[0]->at.dtype)
                return lg__fail(call->ctx, LG_ERR_DTYPE, "%s: window is %s; it has x's dtype", name,
                                lg__tensor_text(w).s);
        const int64_t left = (f->n - o->win_length) / 2, right = f->n - o->win_length - left;
        if (!w && o->win_length < f->n)
                w = lg_ones(call->ctx, LG_SHAPE(o->win_length), .dtype = call->in[0]->at.dtype,
                            .device = call->device->id);
        if (w && o->win_length < f->n)
                w = lg_pad(w, LG_INTS(left, right));
        *ret_window = w ? lg_unsqueeze(w, 1) : NULL;
        return lg__ok(call->ctx);
}

static lg_fft_norm norm_of(const frames *f)
{
        return f->o.normalized ? LG_FFT_ORTHO : LG_FFT_BACKWARD;
}

static lg_tensor *compose_stft(const lg__call *call)
{
        frames f = *(const frames *)call->attributes;
        lg_tensor *x = call->in[0], *w;
        const int ndim = x->at.shape.ndim;
        if (ndim != 1 && ndim != 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "stft: x is %s; it is (T) or (N, T)", lg__tensor_text(x).s);
        if (!resolve(call, &f, &w))
                return NULL;
        const int64_t half = f.n / 2, samples = x->at.shape.size[ndim - 1];
        if (!f.o.not_centered && f.pad_mode == LG_PAD_REFLECT && samples <= half)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "stft: x is %s; to reflect %lld samples at both ends, half a frame, it needs more than "
                                "%lld; .pad_mode = LG_ZERO_INT adds zeros",
                                lg__tensor_text(x).s, (long long)half, (long long)half);
        x = ndim == 1 ? lg_unsqueeze(x, 0) : x;
        if (x && !f.o.not_centered)
                x = lg_pad(x, LG_INTS(half, half), .mode = f.pad_mode);
        if (!x)
                return NULL;
        const int64_t batch = x->at.shape.size[0], length = x->at.shape.size[1];
        if (length < f.n)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "stft: x is %s, shorter than a frame of %lld samples",
                                lg__tensor_text(call->in[0]).s, (long long)f.n);
        x = lg_unfold(lg_reshape(x, LG_SHAPE(batch, 1, 1, length)), 0, .kernels = LG_PAIR(1, f.n),
                      .strides = LG_PAIR(1, f.o.hop));
        x = w ? lg_mul(x, w) : x;
        if (f.o.two_sided)
                x = lg_fft(lg_complex(x, lg__constant(call->in[0], 0)), .dim = 1, .norm = norm_of(&f));
        else
                x = lg_rfft(x, .dim = 1, .norm = norm_of(&f));
        return x && ndim == 1 ? lg_select(x, 0, 0) : x;
}

/* Returns the sums of frames x (N, n, frames) at the samples where they were. */
static lg_tensor *overlapped(lg_tensor *x, const frames *f, int64_t length)
{
        return lg_fold(x, 0, 0, .sizes = LG_PAIR(1, length), .kernels = LG_PAIR(1, f->n),
                       .strides = LG_PAIR(1, f->o.hop));
}

static lg_tensor *compose_istft(const lg__call *call)
{
        frames f = *(const frames *)call->attributes;
        lg_tensor *x = call->in[0], *w;
        const lg_shape s = x->at.shape;
        const int ndim = s.ndim;
        if (!resolve(call, &f, &w))
                return NULL;
        const int64_t rows = f.o.two_sided ? f.n : f.n / 2 + 1, count = ndim < 3 ? 0 : s.size[ndim - 2];
        if ((ndim != 3 && ndim != 4) || s.size[ndim - 1] != 2 || s.size[ndim - 3] != rows || count == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "istft: x is %s; it is (%lld, frames, 2) or (N, %lld, frames, 2) with one frame at "
                                "least",
                                lg__tensor_text(x).s, (long long)rows, (long long)rows);
        int64_t all;
        if (__builtin_mul_overflow(count - 1, f.o.hop, &all) || __builtin_add_overflow(all, f.n, &all))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "istft: %lld frames with hop %lld are too long",
                                (long long)count, (long long)f.o.hop);
        const int64_t cut = f.o.not_centered ? 0 : f.n / 2;
        const int64_t length = f.o.length ? f.o.length : all - 2 * cut, stop = length < all - cut ? cut + length : all;
        x = ndim == 3 ? lg_unsqueeze(x, 0) : x;
        x = lg_irfft(x, .n = f.n, .dim = 1, .norm = norm_of(&f)); /* of two sides, the first */
        w = w ? w : lg_ones(call->ctx, LG_SHAPE(f.n, 1), .dtype = call->in[0]->at.dtype, .device = call->device->id);
        lg_tensor *squares = lg_expand(lg_unsqueeze(lg_square(w), 0), LG_SHAPE(1, f.n, count));
        lg_tensor *y = overlapped(lg_mul(x, w), &f, all), *weight = overlapped(squares, &f, all);
        y = lg_reshape(y, LG_SHAPE(ndim == 3 ? 1 : s.size[0], all));
        weight = lg_reshape(weight, LG_SHAPE(1, all));
        y = lg_slice(y, 1, cut, stop), weight = lg_slice(weight, 1, cut, stop);
        if (!y || !weight)
                return NULL;
        if (stop <= cut || !(lg_item(lg_amin(lg_detach(weight))) >= 1e-11))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "istft: the windows' squares add up to less than 1e-11 at some sample");
        y = lg_div(y, weight);
        if (y && length > stop - cut)
                y = lg_pad(y, LG_INTS(0, length - (stop - cut)));
        return y && ndim == 3 ? lg_select(y, 0, 0) : y;
}

LG__DEFINE(stft, .autocast = LG__F32, .compose = compose_stft,
           LG__OPERANDS({"x", LG__FLOAT}, {"window", LG__FLOAT, .optional = true}))
LG__DEFINE(istft, .autocast = LG__F32, .compose = compose_istft,
           LG__OPERANDS({"x", LG__FLOAT}, {"window", LG__FLOAT, .optional = true}))

static lg_tensor *apply(const lg__op *op, lg_tensor *x, int64_t n, const lg_stft_options *options)
{
        frames f = {.n = n};
        lg_ctx *c = lg__ctx_of(x);
        if (!lg__take(c, op->name, options, &f.o, sizeof f.o))
                return NULL;
        const int64_t mode = lg__whole_option(f.o.pad_mode, LG_PAD_REFLECT);
        if (mode < LG_PAD_CONSTANT || mode > LG_PAD_CIRCULAR)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: pad_mode is %lld; it is an lg_pad_mode", op->name,
                                (long long)mode);
        f.pad_mode = (lg_pad_mode)mode;
        return lg__apply(op, (lg_tensor *[]){x, f.o.window}, 2, &f, NULL);
}

lg_tensor *lg_stft_with(lg_tensor *x, int64_t n, const lg_stft_options *options)
{
        return apply(LG__OP(stft), x, n, options);
}

lg_tensor *lg_istft_with(lg_tensor *x, int64_t n, const lg_stft_options *options)
{
        return apply(LG__OP(istft), x, n, options);
}
