/* gather.cu - gather, scatter and pick by index: a thread for each element, or for each line or a part of a line where
 * changes must keep an order. */
#include "shape.h"

#define MANY 16384 /* indices from which on scatter sorts them */

/* Gathers, a thread for each element. The walk covers the output, the indices, and the input at index 0 of a.dim. */
static __global__ void gather_loop(lg_walk<3> w, lg_gather_args a, int64_t n, lg_device_error *error)
{
        for (int64_t i = LG_FIRST; i < n; i += LG_STEP) {
                int64_t at[3];
                lg_places(w, i, at);
                const int64_t chosen = a.index[at[1]], to = at[0];
                const bool good = chosen >= 0 && chosen < a.limit;
                if (!good)
                        lg_note(error, a.origin, chosen, a.limit);
                const int64_t from = at[2] + (good ? chosen * a.from_strides[a.dim] : 0);
                if (a.dtype == LG_F64)
                        lg_store<double>(a.to, a.dtype, to, good ? lg_load<double>(a.from, a.dtype, from) : 0.0);
                else if (lg_is_float(a.dtype))
                        lg_store<float>(a.to, a.dtype, to, good ? lg_load<float>(a.from, a.dtype, from) : 0.0f);
                else
                        lg_store<int64_t>(a.to, a.dtype, to, good ? lg_load<int64_t>(a.from, a.dtype, from) : 0);
        }
}

/* Returns the arguments with a 0-dimensional shape as one dimension of size 1. */
static lg_gather_args as_lines(const lg_gather_args *a)
{
        lg_gather_args b = *a;
        if (b.ndim == 0) {
                b.ndim = 1;
                b.shape[0] = 1;
                b.index_strides[0] = b.from_strides[0] = b.to_strides[0] = 0;
        }
        return b;
}

extern "C" bool lg_cuda_gather(lg_queue *q, const lg_gather_args *given)
{
        const lg_gather_args lines = as_lines(given), *a = &lines;
        const int64_t n = lg_count(a->ndim, a->shape);
        if (n == 0)
                return true;
        int64_t base[LG_MAX_DIMS];
        memcpy(base, a->from_strides, sizeof base);
        base[a->dim] = 0;
        const lg_walk<3> w = lg_walk_of(a->ndim, a->shape, {a->to_strides, a->index_strides, base}, true);
        return lg_launch(q, "gather", gather_loop, lg_blocks(q, n), w, *a, n, lg_cuda(q)->error);
}

/* Offsets of a line along a.dim: of its first index, its first summand and the element of index 0. */
struct line_place {
        int64_t index, from, to;
};

static __device__ inline line_place place_of(const lg_gather_args &a, int64_t line)
{
        line_place p = {0, 0, 0};
        for (int d = a.ndim - 1; d >= 0; d--) {
                if (d == a.dim)
                        continue;
                const int64_t k = line % a.shape[d];
                line /= a.shape[d];
                p.index += k * a.index_strides[d];
                p.from += k * a.from_strides[d];
                p.to += k * a.to_strides[d];
        }
        return p;
}

/* Returns t, an element of the result, and f, which is put there, combined. */
template <typename H> static __device__ inline H combined(lg_put_mode mode, H t, H f)
{
        switch (mode) {
        case LG_PUT_SUM:
                return t + f;
        case LG_PUT_MAX:
                return t != t || (f == f && f <= t) ? t : f;
        case LG_PUT_MIN:
                return t != t || (f == f && f >= t) ? t : f;
        default:
                return f;
        }
}

/* Puts lines along a.dim. A line is shared by `parts` threads, a power of two: each one reads all indices of the line
 * and handles those with index % parts equal to its own number. So changes of one element keep the line's order. For
 * sums in f16 and bf16, `out` is an f32 copy of the whole result. */
template <typename H>
static __global__ void scatter_loop(lg_gather_args a, int64_t lines, int64_t parts, lg_device_error *error, void *out,
                                    lg_dtype out_dtype)
{
        enum { AHEAD = 8 }; /* indices that a thread reads at once */
        const int64_t n = a.shape[a.dim], step = a.index_strides[a.dim];
        for (int64_t t = LG_FIRST; t < lines * parts; t += LG_STEP) {
                const int64_t part = t / lines;
                const line_place p = place_of(a, t % lines);
                for (int64_t k = 0; k < n; k += AHEAD) {
                        int64_t chosen[AHEAD];
                        for (int j = 0; j < AHEAD; j++)
                                chosen[j] = k + j < n ? a.index[p.index + (k + j) * step] : 0;
                        for (int j = 0; j < AHEAD; j++) {
                                if (k + j >= n || (chosen[j] & (parts - 1)) != part)
                                        continue;
                                if (chosen[j] < 0 || chosen[j] >= a.limit) {
                                        lg_note(error, a.origin, chosen[j], a.limit);
                                        continue;
                                }
                                const int64_t place = p.to + chosen[j] * a.to_strides[a.dim];
                                lg_store<H>(out, out_dtype, place,
                                            combined(a.mode, lg_load<H>(out, out_dtype, place),
                                                     lg_load<H>(a.from, a.dtype,
                                                                p.from + (k + j) * a.from_strides[a.dim])));
                        }
                }
        }
}

/* Returns the threads per line: enough to keep the device busy, but at least one element and 8 indices for each. */
static int64_t parts_of(lg_queue *q, const lg_gather_args *a, int64_t lines)
{
        const int64_t threads = (int64_t)lg_cuda(q)->processors * 512;
        int64_t parts = 1;
        while (parts * lines < threads && parts * 2 <= a->limit && parts * 16 <= a->shape[a->dim])
                parts *= 2;
        return parts;
}

/* Puts lines that have common indices, given in order in `keys`; an element for keys[i] is at index places[i] of its
 * line. The thread of the first of equal keys puts all of them, in the line's order. */
template <typename H>
static __global__ void put_segments(lg_gather_args a, int64_t lines, const int64_t *keys, const int64_t *places,
                                    lg_device_error *error, void *out, lg_dtype out_dtype)
{
        const int64_t n = a.shape[a.dim];
        for (int64_t t = LG_FIRST; t < lines * n; t += LG_STEP) {
                const int64_t first = t / lines, chosen = keys[first];
                if (first && keys[first - 1] == chosen)
                        continue;
                if (chosen < 0 || chosen >= a.limit) {
                        lg_note(error, a.origin, chosen, a.limit);
                        continue;
                }
                const line_place p = place_of(a, t % lines);
                const int64_t to = p.to + chosen * a.to_strides[a.dim];
                H all = lg_load<H>(out, out_dtype, to);
                for (int64_t k = first; k < n && keys[k] == chosen; k++)
                        all = combined(a.mode, all,
                                       lg_load<H>(a.from, a.dtype, p.from + places[k] * a.from_strides[a.dim]));
                lg_store<H>(out, out_dtype, to, all);
        }
}

/* Returns whether all lines have the same contiguous indices, so many that sorting them takes less time than reading
 * them in each part of a line. */
static bool sorts_indices(const lg_gather_args *a)
{
        for (int d = 0; d < a->ndim; d++)
                if (d != a->dim && a->shape[d] > 1 && a->index_strides[d] != 0)
                        return false;
        return a->shape[a->dim] >= MANY && a->index_strides[a->dim] == 1;
}

/* Puts into `out`, which is a->to, or for sums in f16 and bf16 an f32 copy of it. */
template <typename H>
static bool put_lines(lg_queue *q, const lg_gather_args *a, int64_t lines, void *out, lg_dtype out_dtype)
{
        const int64_t n = a->shape[a->dim], parts = parts_of(q, a, lines);
        lg_device_error *error = lg_cuda(q)->error;
        if (!sorts_indices(a))
                return lg_launch(q, "scatter", scatter_loop<H>, lg_blocks(q, lines * parts), *a, lines, parts, error,
                                 out, out_dtype);
        int64_t *keys = (int64_t *)q->workspace(q, (size_t)(2 * n) * sizeof *keys);
        if (!keys)
                return false;
        lg_sort_args sort = {};
        sort.dtype = LG_I64;
        sort.outer = sort.inner = 1;
        sort.n = sort.k = n;
        sort.x = a->index;
        sort.values = keys;
        sort.indices = keys + n;
        return lg_cuda_sort(q, &sort) &&
               lg_launch(q, "scatter (segments)", put_segments<H>, lg_blocks(q, lines * n), *a, lines,
                         (const int64_t *)keys, (const int64_t *)(keys + n), error, out, out_dtype);
}

static __global__ void convert_loop(int64_t n, void *to, lg_dtype to_dtype, const void *from, lg_dtype from_dtype)
{
        for (int64_t i = LG_FIRST; i < n; i += LG_STEP)
                lg_store<float>(to, to_dtype, i, lg_load<float>(from, from_dtype, i));
}

extern "C" bool lg_cuda_scatter(lg_queue *q, const lg_gather_args *given)
{
        const lg_gather_args laid = as_lines(given), *a = &laid;
        const int64_t n = lg_count(a->ndim, a->shape), lines = n ? n / a->shape[a->dim] : 0;
        if (n == 0)
                return true;
        if (a->mode != LG_PUT_SUM || (a->dtype != LG_F16 && a->dtype != LG_BF16))
                return LG_WITH_COMPUTE(a->dtype, put_lines<H>(q, a, lines, a->to, a->dtype));
        void *wide = q->workspace(q, (size_t)a->to_count * sizeof(float));
        const int64_t all = lg_blocks(q, a->to_count);
        return wide &&
               lg_launch(q, "scatter (widen)", convert_loop, all, a->to_count, wide, LG_F32, (const void *)a->to,
                         a->dtype) &&
               put_lines<float>(q, a, lines, wide, LG_F32) &&
               lg_launch(q, "scatter (narrow)", convert_loop, all, a->to_count, a->to, a->dtype, (const void *)wide,
                         LG_F32);
}

/* ---- pick ---- */

static __global__ void pick_loop(lg_pick_args a, bool back)
{
        for (int64_t i = LG_FIRST; i < a.outer * a.k * a.inner; i += LG_STEP) {
                int64_t o = i / a.inner / a.k, chosen = (o * a.n + a.indices[i]) * a.inner + i % a.inner;
                int64_t from = back ? i : chosen, to = back ? chosen : i;
                if (a.dtype == LG_F64)
                        lg_store<double>(a.y, a.dtype, to, lg_load<double>(a.x, a.dtype, from));
                else if (lg_is_float(a.dtype))
                        lg_store<float>(a.y, a.dtype, to, lg_load<float>(a.x, a.dtype, from));
                else
                        lg_store<int64_t>(a.y, a.dtype, to, lg_load<int64_t>(a.x, a.dtype, from));
        }
}

extern "C" bool lg_cuda_pick(lg_queue *q, const lg_pick_args *a)
{
        int64_t n = a->outer * a->k * a->inner;
        return lg_launch(q, "pick", pick_loop, n ? lg_blocks(q, n) : 0, *a, false);
}

extern "C" bool lg_cuda_pick_grad(lg_queue *q, const lg_pick_args *a)
{
        int64_t n = a->outer * a->k * a->inner;
        size_t bytes = (size_t)(a->outer * a->n * a->inner) * lg_bytes_of(a->dtype);
        if (bytes && !lg_cuda_good(q, "cudaMemsetAsync", cudaMemsetAsync(a->y, 0, bytes, lg_cuda(q)->stream)))
                return false;
        return lg_launch(q, "pick_grad", pick_loop, n ? lg_blocks(q, n) : 0, *a, true);
}
