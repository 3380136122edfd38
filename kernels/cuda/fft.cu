/* fft.cu - discrete Fourier transforms: cuFFT transforms, own passes scale, conjugate and weigh.
 *
 * cuFFT's transforms of half spectra are inverse ones, those to half spectra forward ones; the other direction takes
 * conjugates. Transforms over a dimension with others behind it are one call for each index of the dimensions before
 * it, or, if there are many, one call over transposed copies. */
#include "fft_plan.h"

#define CALLS 8 /* most calls before copies are transposed */

/* to[k] = (factor * from[k]) for complex elements of (outer, count, inner), or its conjugate; those with 0 < k < n / 2
 * times `inside` also. If `real`, the elements k = 0 and k = n / 2 count as real. */
template <typename T>
static __global__ void weigh(int64_t total, int64_t count, int64_t inner, int64_t n, double factor, double inside,
                             bool conjugate, bool real, const T *from, T *to)
{
        for (int64_t i = LG_FIRST; i < total; i += LG_STEP) {
                const int64_t k = i / inner % count;
                const bool edge = k == 0 || 2 * k == n;
                const T f = (T)(edge ? factor : factor * inside);
                const T im = real && edge ? 0 : f * from[2 * i + 1];
                to[2 * i] = f * from[2 * i];
                to[2 * i + 1] = conjugate ? -im : im;
        }
}

/* Copies (outer, rows, columns) to (outer, columns, rows); elements have `width` numbers. */
static bool transpose(lg_queue *q, lg_dtype dtype, int64_t width, int64_t outer, int64_t rows, int64_t columns,
                      const void *from, void *to)
{
        lg_copy_args a = {4,     {outer, columns, rows, width},
                          dtype, dtype,
                          to,    {rows * columns * width, rows * width, width, 1},
                          from,  {rows * columns * width, width, columns * width, 1}};
        if (width == 2 && dtype == LG_F32 &&
            ((uintptr_t)from | (uintptr_t)to) % 8 == 0) { /* pairs, as numbers of 8 bytes */
                a.in_dtype = a.out_dtype = LG_F64;
                for (int i = 0; i < 3; i++) {
                        a.in_strides[i] /= 2;
                        a.out_strides[i] /= 2;
                }
                a.ndim = 3;
        }
        return lg_cuda_copy(q, &a);
}

/* The elements of the input or the output of a transform: how many of a line, of how many numbers, and where. */
typedef struct side {
        int64_t count, width;
        char *p;
        bool apart; /* p is scratch memory */
} side;

static bool set_apart(lg_queue *q, const lg_fft_args *a, side *s)
{
        s->apart = true;
        s->p = (char *)q->workspace(q, (size_t)(a->outer * a->inner * s->count * s->width) * lg_bytes_of(a->dtype));
        return s->p != NULL;
}

/* Copies the input to x->p if that is scratch memory: transposed if `moved`, and weighed for LG_FFT_HALF. */
template <typename T> static bool prepare(lg_queue *q, const lg_fft_args *a, const side *x, bool moved)
{
        const int64_t elements = a->outer * a->inner * x->count;
        if (moved ? !transpose(q, a->dtype, x->width, a->outer, x->count, a->inner, a->x, x->p)
                  : x->apart && a->kind != LG_FFT_HALF &&
                            !lg_cuda_good(q, "cudaMemcpyAsync (fft)",
                                          cudaMemcpyAsync(x->p, a->x, (size_t)(elements * x->width) * sizeof(T),
                                                          cudaMemcpyDeviceToDevice, lg_cuda(q)->stream)))
                return false;
        return a->kind != LG_FFT_HALF ||
               lg_launch(q, "fft (half spectra)", weigh<T>, lg_blocks(q, elements), elements, x->count,
                         moved ? (int64_t)1 : a->inner, a->n, a->scale, a->adjoint ? 0.5 : 1.0, !a->inverse, true,
                         (const T *)(moved ? x->p : a->x), (T *)x->p);
}

/* Copies the output from y->p if that is scratch memory, and weighs it. */
template <typename T> static bool finish(lg_queue *q, const lg_fft_args *a, const side *y, bool moved)
{
        const int64_t elements = a->outer * a->inner * y->count;
        const bool real = a->kind == LG_FFT_REAL;
        if (y->apart && (moved ? !transpose(q, a->dtype, y->width, a->outer, a->inner, y->count, y->p, a->y)
                               : !lg_cuda_good(q, "cudaMemcpyAsync (fft)",
                                               cudaMemcpyAsync(a->y, y->p, (size_t)(elements * y->width) * sizeof(T),
                                                               cudaMemcpyDeviceToDevice, lg_cuda(q)->stream))))
                return false;
        if (a->kind == LG_FFT_HALF || (a->scale == 1 && !(real && (a->adjoint || a->inverse))))
                return true;
        return lg_launch(q, "fft (scale)", weigh<T>, lg_blocks(q, elements), elements, y->count, a->inner, a->n,
                         a->scale, real && a->adjoint ? 2.0 : 1.0, real && a->inverse, false, (const T *)a->y,
                         (T *)a->y);
}

template <typename T> static bool fft(lg_queue *q, const lg_fft_args *a)
{
        const int64_t half = a->n / 2 + 1, inner = a->inner;
        const bool even = a->kind == LG_FFT_COMPLEX || a->n * inner % 2 == 0; /* lines begin at aligned addresses */
        const bool moved = inner > 1 && a->outer > 1 && (a->outer > CALLS || !even);
        side x = {a->kind == LG_FFT_HALF ? half : a->n, a->kind == LG_FFT_REAL ? 1 : 2, (char *)(uintptr_t)a->x, false};
        side y = {a->kind == LG_FFT_REAL ? half : a->n, a->kind == LG_FFT_HALF ? 1 : 2, (char *)a->y, false};
        if (((moved || a->kind == LG_FFT_HALF || (uintptr_t)a->x % (2 * sizeof(T))) && !set_apart(q, a, &x)) ||
            ((moved || (uintptr_t)a->y % (2 * sizeof(T))) && !set_apart(q, a, &y)))
                return false;
        const bool lines = moved || inner == 1;
        const lg_fft_key key = {
                a->n,    lines ? 1 : inner, lines ? x.count : 1, lines ? y.count : 1, lines ? a->outer * inner : inner,
                a->kind, a->dtype};
        return prepare<T>(q, a, &x, moved) &&
               lg_cuda_fft_run(q, &key, a->kind == LG_FFT_HALF || (a->kind == LG_FFT_COMPLEX && a->inverse), x.p,
                               x.count * inner * x.width * (int64_t)sizeof(T), y.p,
                               y.count * inner * y.width * (int64_t)sizeof(T), lines ? 1 : a->outer) &&
               finish<T>(q, a, &y, moved);
}

extern "C" bool lg_cuda_fft(lg_queue *q, const lg_fft_args *a)
{
        return a->outer * a->inner == 0 || LG_WITH_FLOAT(a->dtype, fft<H>(q, a));
}
