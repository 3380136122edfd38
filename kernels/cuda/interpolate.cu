/* interpolate.cu - resampling of images along two axes by tables, and weighted elements at given points. */
#include "shape.h"

#define MANY 32 /* taps of an element from which on the axes are resampled one after another */

/* A thread computes one element: the sum over the taps of both axes. */
template <typename H>
static __global__ void resample_loop(lg_resample_args a, lg_dtype x_dtype, lg_dtype y_dtype, int64_t n)
{
        const H *h_weight = (const H *)a.h.weight, *w_weight = (const H *)a.w.weight;
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP) {
                const int64_t k = e % a.inner, at = e / a.inner, j = at % a.w.out, row = at / a.w.out;
                const int64_t i = row % a.h.out, image = row / a.h.out;
                H sum = 0;
                for (int64_t t = 0; t < a.h.taps; t++) {
                        const int64_t from = a.h.index ? a.h.index[t * a.h.out + i] : i;
                        const H p = a.h.index ? h_weight[t * a.h.out + i] : (H)1;
                        H part = 0;
                        for (int64_t s = 0; s < a.w.taps && p != 0; s++) {
                                const int64_t to = a.w.index ? a.w.index[s * a.w.out + j] : j;
                                const H r = a.w.index ? w_weight[s * a.w.out + j] : (H)1;
                                const int64_t place = ((image * a.h.in + from) * a.w.in + to) * a.inner + k;
                                part += r == 0 ? (H)0 : r * lg_load<H>(a.x, x_dtype, place);
                        }
                        sum += p * part;
                }
                lg_store<H>(a.y, y_dtype, e, sum);
        }
}

static bool launch_resample(lg_queue *q, lg_resample_args a, lg_dtype x_dtype, lg_dtype y_dtype)
{
        const int64_t n = a.outer * a.h.out * a.w.out * a.inner;
        a.h.taps = a.h.index ? a.h.taps : 1;
        a.w.taps = a.w.index ? a.w.taps : 1;
        return n == 0 || LG_WITH_FLOAT(a.dtype, lg_launch(q, "resample", resample_loop<H>, lg_blocks(q, n), a, x_dtype,
                                                          y_dtype, n));
}

extern "C" bool lg_cuda_resample(lg_queue *q, const lg_resample_args *a)
{
        if (!a->h.index || !a->w.index || a->h.taps * a->w.taps < MANY)
                return launch_resample(q, *a, a->dtype, a->dtype);
        const lg_dtype between = a->dtype == LG_F64 ? LG_F64 : LG_F32;
        const int64_t elements = a->outer * a->h.out * a->w.in * a->inner;
        void *rows = elements ? q->workspace(q, (size_t)elements * lg_bytes_of(between)) : nullptr;
        if (elements == 0 || !rows)
                return elements == 0 && launch_resample(q, *a, a->dtype, a->dtype);
        lg_resample_args first = *a, second = *a;
        first.w = lg_resample_axis{a->w.in, a->w.in, 1, nullptr, nullptr};
        first.y = rows;
        second.h = lg_resample_axis{a->h.out, a->h.out, 1, nullptr, nullptr};
        second.x = rows;
        return launch_resample(q, first, a->dtype, between) && launch_resample(q, second, between, a->dtype);
}

/* ---- sample ---- */

/* A thread computes one element of y. */
template <typename H> static __global__ void sample_loop(lg_sample_args a, int64_t n)
{
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP) {
                const int64_t p = e % a.points, plane = e / a.points, line = plane / a.channels * a.taps;
                H sum = 0;
                for (int64_t t = 0; t < a.taps; t++) {
                        const int64_t at = (line + t) * a.points + p, i = a.index[at];
                        if (i >= 0 && i < a.size)
                                sum += ((const H *)a.weight)[at] * lg_load<H>(a.x, a.dtype, plane * a.size + i);
                }
                lg_store<H>(a.y, a.dtype, e, sum);
        }
}

/* A thread computes one element of the weights' gradient. */
template <typename H> static __global__ void weigh_loop(lg_sample_args a, int64_t n)
{
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP) {
                const int64_t p = e % a.points, image = e / a.points / a.taps * a.channels, i = a.index[e];
                H sum = 0;
                for (int64_t c = image; c < image + a.channels && i >= 0 && i < a.size; c++)
                        sum += lg_load<H>(a.x, a.dtype, c * a.size + i) * lg_load<H>(a.y, a.dtype, c * a.points + p);
                ((H *)a.weight)[e] = sum;
        }
}

/* Adds to x, which holds zeros. A thread has one element of y and adds in any order or, if not `atomic`, a plane. */
template <typename H> static __global__ void scatter_loop(lg_sample_args a, H *x, int64_t n, bool atomic)
{
        const int64_t run = atomic ? 1 : a.points;
        for (int64_t first = LG_FIRST * run; first < n; first += LG_STEP * run)
                for (int64_t e = first; e < first + run; e++) {
                        const int64_t p = e % a.points, plane = e / a.points, line = plane / a.channels * a.taps;
                        const H g = lg_load<H>(a.y, a.dtype, e);
                        for (int64_t t = 0; t < a.taps; t++) {
                                const int64_t at = (line + t) * a.points + p, i = a.index[at];
                                if (i < 0 || i >= a.size)
                                        continue;
                                H *to = x + plane * a.size + i;
                                if (atomic)
                                        atomicAdd(to, ((const H *)a.weight)[at] * g);
                                else
                                        *to += ((const H *)a.weight)[at] * g;
                        }
                }
}

static __global__ void narrow_loop(const float *from, void *to, lg_dtype dtype, int64_t n)
{
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP)
                lg_store<float>(to, dtype, e, from[e]);
}

template <typename H> static bool scatter(lg_queue *q, const lg_sample_args *a)
{
        const int64_t planes = a->n * a->channels, elements = planes * a->size, n = planes * a->points;
        const bool half = a->dtype == LG_F16 || a->dtype == LG_BF16, atomic = !q->deterministic;
        const size_t bytes = (size_t)elements * sizeof(H);
        if (elements == 0)
                return true;
        H *x = half ? (H *)q->workspace(q, bytes) : (H *)a->x;
        return x && lg_cuda_good(q, "cudaMemsetAsync", cudaMemsetAsync(x, 0, bytes, lg_cuda(q)->stream)) &&
               (n == 0 || lg_launch(q, "sample (scatter)", scatter_loop<H>, lg_blocks(q, atomic ? n : planes), *a, x, n,
                                    atomic)) &&
               (!half || lg_launch(q, "sample (narrow)", narrow_loop, lg_blocks(q, elements), (const float *)x, a->x,
                                   a->dtype, elements));
}

extern "C" bool lg_cuda_sample(lg_queue *q, const lg_sample_args *a)
{
        const int64_t weights = a->n * a->taps * a->points, n = a->n * a->channels * a->points;
        if (a->kind == LG_SAMPLE_X_GRAD)
                return LG_WITH_FLOAT(a->dtype, scatter<H>(q, a));
        if (a->kind == LG_SAMPLE_WEIGHT_GRAD)
                return weights == 0 || LG_WITH_FLOAT(a->dtype, lg_launch(q, "sample (weights)", weigh_loop<H>,
                                                                         lg_blocks(q, weights), *a, weights));
        return n == 0 || LG_WITH_FLOAT(a->dtype, lg_launch(q, "sample", sample_loop<H>, lg_blocks(q, n), *a, n));
}
