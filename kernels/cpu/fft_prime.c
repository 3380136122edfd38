/* fft_prime.c - Fourier transforms of long lines whose length has a large prime factor, by Bluestein's algorithm.
 *
 * With c[j] = exp(-pi i j^2 / n), y[k] = c[k] sum over j of (x[j] c[j]) conj(c[k - j]): a convolution, made of
 * transforms of `length` >= 2 n - 1 elements without large prime factors, which are split as all long transforms are.
 */
#include "fft.h"

/* The buffers of a line: pairs of the dtype. */
typedef struct line {
        const lg_fft_args *a;
        int64_t length, outer, inner; /* outer and inner: place of the line */
        double *chirp;                /* n pairs */
        void *x, *y, *spectrum;       /* `length` pairs */
} line;

static double get(lg_dtype t, const void *p, int64_t i)
{
        return t == LG_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void set(lg_dtype t, void *p, int64_t i, double value)
{
        if (t == LG_F64)
                ((double *)p)[i] = value;
        else
                ((float *)p)[i] = (float)value;
}

static bool transform(lg_queue *q, lg_dtype t, bool inverse, int64_t n, const void *x, void *y)
{
        const lg_fft_args a = {
                .dtype = t, .inverse = inverse, .outer = 1, .n = n, .inner = 1, .scale = 1, .x = x, .y = y};
        return LG_CPU(fft)(q, &a);
}

/* Returns the index of element j of the line, of which there are `count`. */
static int64_t place(const line *l, int64_t count, int64_t j)
{
        return (l->outer * count + j) * l->a->inner + l->inner;
}

/* Reads element j of the whole line: of half a spectrum, also those that it determines. */
static void read(const line *l, int64_t j, double *ret)
{
        const lg_fft_args *a = l->a;
        const int64_t half = a->n / 2 + 1, k = a->kind == LG_FFT_HALF && j >= half ? a->n - j : j;
        ret[1] = 0;
        if (a->kind == LG_FFT_REAL) {
                ret[0] = get(a->dtype, a->x, place(l, a->n, j));
                return;
        }
        const int64_t at = 2 * place(l, a->kind == LG_FFT_HALF ? half : a->n, k);
        const bool once = a->kind == LG_FFT_HALF && (k == 0 || 2 * k == a->n);
        const double factor = a->kind == LG_FFT_HALF && a->adjoint && !once ? 0.5 : 1;
        ret[0] = factor * get(a->dtype, a->x, at);
        ret[1] = once ? 0 : factor * (k == j ? 1 : -1) * get(a->dtype, a->x, at + 1);
}

static void write(const line *l, int64_t k, double re, double im)
{
        const lg_fft_args *a = l->a;
        const bool twice = a->kind == LG_FFT_REAL && a->adjoint && k > 0 && 2 * k < a->n;
        const double factor = twice ? 2 * a->scale : a->scale;
        if (a->kind == LG_FFT_HALF) {
                set(a->dtype, a->y, place(l, a->n, k), factor * re);
                return;
        }
        const int64_t at = 2 * place(l, a->kind == LG_FFT_REAL ? a->n / 2 + 1 : a->n, k);
        set(a->dtype, a->y, at, factor * re);
        set(a->dtype, a->y, at + 1, factor * im);
}

/* Sets the chirp, and the spectrum of its conjugate divided by the length, computed in f64. */
static bool make_tables(lg_queue *q, const line *l)
{
        const int64_t n = l->a->n, length = l->length;
        double *wide = q->workspace(q, (size_t)length * 2 * sizeof *wide);
        double *spectrum = q->workspace(q, (size_t)length * 2 * sizeof *spectrum);
        if (!wide || !spectrum)
                return false;
        memset(wide, 0, (size_t)length * 2 * sizeof *wide);
        for (int64_t j = 0, square = 0; j < n; square = (square + 2 * j + 1) % (2 * n), j++) {
                double *c = l->chirp + 2 * j;
                lg_fft_turn(square, 2 * n, c);
                for (int side = 0; side < 2; side++) {
                        double *to = wide + 2 * (side && j > 0 ? length - j : j);
                        to[0] = c[0] / (double)length;
                        to[1] = -c[1] / (double)length;
                }
        }
        if (!transform(q, LG_F64, false, length, wide, spectrum))
                return false;
        for (int64_t k = 0; k < 2 * length; k++)
                set(l->a->dtype, l->spectrum, k, spectrum[k]);
        return true;
}

static bool run(lg_queue *q, const line *l)
{
        const lg_fft_args *a = l->a;
        const lg_dtype t = a->dtype;
        const double sign = a->inverse ? -1 : 1; /* a transform back is the conjugate of that of the conjugate */
        memset(l->x, 0, (size_t)(2 * l->length) * lg_bytes_of(t));
        for (int64_t j = 0; j < a->n; j++) {
                double v[2];
                const double *c = l->chirp + 2 * j;
                read(l, j, v);
                set(t, l->x, 2 * j, v[0] * c[0] - sign * v[1] * c[1]);
                set(t, l->x, 2 * j + 1, v[0] * c[1] + sign * v[1] * c[0]);
        }
        if (!transform(q, t, false, l->length, l->x, l->y))
                return false;
        for (int64_t k = 0; k < l->length; k++) {
                const double re = get(t, l->y, 2 * k), im = get(t, l->y, 2 * k + 1);
                const double c = get(t, l->spectrum, 2 * k), s = get(t, l->spectrum, 2 * k + 1);
                set(t, l->y, 2 * k, re * c - im * s);
                set(t, l->y, 2 * k + 1, re * s + im * c);
        }
        if (!transform(q, t, true, l->length, l->y, l->x))
                return false;
        for (int64_t k = 0; k < (a->kind == LG_FFT_REAL ? a->n / 2 + 1 : a->n); k++) {
                const double *c = l->chirp + 2 * k, re = get(t, l->x, 2 * k), im = get(t, l->x, 2 * k + 1);
                write(l, k, re * c[0] - im * c[1], sign * (re * c[1] + im * c[0]));
        }
        return true;
}

bool lg_fft_prime(lg_queue *q, const lg_fft_args *a)
{
        line l = {.a = a, .length = lg_fft_length_from(2 * a->n - 1)};
        const size_t bytes = (size_t)(2 * l.length) * lg_bytes_of(a->dtype);
        l.chirp = q->workspace(q, (size_t)(2 * a->n) * sizeof *l.chirp);
        l.x = q->workspace(q, bytes);
        l.y = q->workspace(q, bytes);
        l.spectrum = q->workspace(q, bytes);
        if (!l.chirp || !l.x || !l.y || !l.spectrum || !make_tables(q, &l))
                return false;
        for (; l.outer < a->outer; l.outer++)
                for (l.inner = 0; l.inner < a->inner; l.inner++)
                        if (!run(q, &l))
                                return false;
        return true;
}
