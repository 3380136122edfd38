/* fill.cu - filling with one value, and ranges of numbers. */
#include "shape.h"

template <typename H, int V> static __global__ void fill_loop(lg_walk<1> w, void *out, lg_dtype t, int64_t n, H value)
{
        H v[V];
        LG_UNROLL
        for (int j = 0; j < V; j++)
                v[j] = value;
        for (int64_t e = LG_FIRST * V; e < n; e += LG_STEP * V) {
                int64_t at[1];
                lg_places(w, e, at);
                lg_store_some<H, V>(out, t, at[0], V == 1 || n - e >= V ? V : (int)(n - e), v);
        }
}

template <typename H> static bool fill(lg_queue *q, const lg_fill_args *a, const lg_walk<1> &w, int64_t n, H value)
{
        const bool packed = (w.strides[0][w.ndim - 1] == 1 || n == 1) && lg_packs<H>(w, 0, a->out, a->dtype);
        return LG_WITH_PACKS(
                packed, lg_launch(q, "fill", fill_loop<H, V>, lg_pack_blocks(q, n, V), w, a->out, a->dtype, n, value));
}

extern "C" bool lg_cuda_fill(lg_queue *q, const lg_fill_args *a)
{
        const int64_t n = lg_count(a->ndim, a->shape);
        if (n == 0)
                return true;
        const lg_walk<1> w = lg_walk_of(a->ndim, a->shape, {a->strides}, true);
        const bool dense = w.ndim == 1 && (w.strides[0][0] == 1 || n == 1);
        if (dense && (lg_is_float(a->dtype) ? a->real == 0 && !signbit(a->real) : a->integer == 0))
                return lg_cuda_good(q, "cudaMemsetAsync (fill)",
                                    cudaMemsetAsync(a->out, 0, (size_t)n * lg_bytes_of(a->dtype), lg_cuda(q)->stream));
        if (!lg_is_float(a->dtype))
                return fill<int64_t>(q, a, w, n, a->integer);
        if (a->dtype == LG_F64)
                return fill<double>(q, a, w, n, a->real);
        return fill<float>(q, a, w, n, a->dtype == LG_F32 ? (float)a->real : lg_odd(a->real));
}

static __global__ void arange_loop(lg_arange_args a, bool whole)
{
        for (int64_t i = LG_FIRST; i < a.n; i += LG_STEP)
                if (whole)
                        lg_store<int64_t>(a.out, a.dtype, i, lg_to_i64(a.start) + i * lg_to_i64(a.step));
                else
                        lg_store<double>(a.out, a.dtype, i, __dadd_rn(a.start, __dmul_rn((double)i, a.step)));
}

extern "C" bool lg_cuda_arange(lg_queue *q, const lg_arange_args *a)
{
        return lg_launch(q, "arange", arange_loop, a->n ? lg_blocks(q, a->n) : 0, *a, !lg_is_float(a->dtype));
}
