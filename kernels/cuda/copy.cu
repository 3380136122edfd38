/* copy.cu - copies, fills, ranges, random numbers, dropout. */
#include "cuda.h"
#include "../philox.h"

template <typename H> static __global__ void copy_loop(lg_copy_args a, int64_t n)
{
        for (int64_t i = LG_FIRST; i < n; i += LG_STEP)
                lg_store<H>(a.out, a.out_dtype, lg_offset(a.ndim, a.shape, a.out_strides, i),
                            lg_load<H>(a.in, a.in_dtype, lg_offset(a.ndim, a.shape, a.in_strides, i)));
}

/* Through the type that holds all values of the input. */
extern "C" bool lg_cuda_copy(lg_queue *q, const lg_copy_args *a)
{
        int64_t n = lg_count(a->ndim, a->shape);
        return LG_WITH_HUB(a->in_dtype, lg_launch(q, "copy", copy_loop<H>, n ? lg_blocks(q, n) : 0, *a, n));
}

static __global__ void fill_loop(lg_fill_args a, int64_t n, bool whole)
{
        for (int64_t i = LG_FIRST; i < n; i += LG_STEP) {
                int64_t at = lg_offset(a.ndim, a.shape, a.strides, i);
                if (whole)
                        lg_store<int64_t>(a.out, a.dtype, at, a.integer);
                else
                        lg_store<double>(a.out, a.dtype, at, a.real);
        }
}

extern "C" bool lg_cuda_fill(lg_queue *q, const lg_fill_args *a)
{
        int64_t n = lg_count(a->ndim, a->shape);
        return lg_launch(q, "fill", fill_loop, n ? lg_blocks(q, n) : 0, *a, n, !lg_is_float(a->dtype));
}

static __global__ void arange_loop(lg_arange_args a, bool whole)
{
        for (int64_t i = LG_FIRST; i < a.n; i += LG_STEP)
                if (whole)
                        lg_store<int64_t>(a.out, a.dtype, i, lg_to_i64(a.start) + i * lg_to_i64(a.step));
                else
                        lg_store<double>(a.out, a.dtype, i, a.start + (double)i * a.step);
}

extern "C" bool lg_cuda_arange(lg_queue *q, const lg_arange_args *a)
{
        return lg_launch(q, "arange", arange_loop, a->n ? lg_blocks(q, a->n) : 0, *a, !lg_is_float(a->dtype));
}
