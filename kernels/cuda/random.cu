/* random.cu - uniform and normal numbers of the Philox generator, and dropout. */
#include "cuda.h"
#include "../philox.h"

/* The dtype's value of a double, as a double. */
static __host__ __device__ inline double rounded(lg_dtype t, double x)
{
        return t == LG_F64   ? x
               : t == LG_F32 ? (double)(float)x
               : t == LG_F16 ? (double)__half2float(__float2half(lg_odd(x)))
                             : (double)__bfloat162float(__float2bfloat16(lg_odd(x)));
}

/* The greatest value of the dtype below b. */
static double below(lg_dtype t, double b)
{
        double value = rounded(t, b), step = t == LG_F64   ? 0
                                             : t == LG_F32 ? 1.0 / (1 << 24)
                                             : t == LG_F16 ? 1.0 / (1 << 11)
                                                           : 1.0 / (1 << 8);
        if (t == LG_F64)
                return nextafter(b, -INFINITY);
        if (t == LG_F32)
                return value < b ? value : (double)nextafterf((float)value, -INFINITY);
        if (value < b)
                return value;
        /* A little less than half a step below, then less and less until rounding leaves b. */
        double at = fabs(value) > 0 ? value - fabs(value) * step
                    : t == LG_F16   ? -1.0 / (1 << 24)
                                    : -9.183549615799121e-41;
        while (rounded(t, at) >= value)
                at -= fabs(value) * step;
        return rounded(t, at);
}

static __global__ void random_loop(lg_random_args a, double limit)
{
        const int per_block = a.dtype == LG_F64 ? 2 : 4;
        const bool uniform = a.kind == LG_RANDOM_UNIFORM;
        for (int64_t b = LG_FIRST; b * per_block < a.n; b += LG_STEP) {
                lg_philox_words w = lg_philox_block(a.seed, a.offset + (uint64_t)b);
                double v[4];
                if (!uniform && per_block == 4)
                        lg_philox_normal4(w, v);
                else if (!uniform)
                        lg_philox_normal2(w, v);
                for (int k = 0; uniform && k < per_block; k++)
                        v[k] = per_block == 4 ? lg_philox_uniform24(w.w[k])
                                              : lg_philox_uniform53(w.w[2 * k], w.w[2 * k + 1]);
                for (int k = 0; k < per_block && b * per_block + k < a.n; k++) {
                        double x = a.a + (uniform ? a.b - a.a : a.b) * v[k];
                        if (uniform && a.a < a.b && rounded(a.dtype, x) >= a.b)
                                x = limit;
                        lg_store<double>(a.out, a.dtype, b * per_block + k, x);
                }
        }
}

extern "C" bool lg_cuda_random(lg_queue *q, const lg_random_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "random: no kernel for dtype %d", (int)a->dtype);
        return lg_launch(q, "random", random_loop, a->n ? lg_blocks(q, (a->n + 1) / 2) : 0, *a, below(a->dtype, a->b));
}

template <typename H> static __global__ void dropout_loop(lg_dropout_args a, int64_t n, uint32_t limit, H scale)
{
        for (int64_t i = LG_FIRST; i < n; i += LG_STEP) {
                lg_philox_words w = lg_philox_block(a.seed, a.offset + (uint64_t)(i / 4));
                H x = lg_load<H>(a.x, a.dtype, lg_offset(a.ndim, a.shape, a.x_strides, i));
                lg_store<H>(a.y, a.dtype, lg_offset(a.ndim, a.shape, a.y_strides, i),
                            w.w[i % 4] >> 8 >= limit ? x * scale : (H)0);
        }
}

extern "C" bool lg_cuda_dropout(lg_queue *q, const lg_dropout_args *a)
{
        int64_t n = lg_count(a->ndim, a->shape);
        uint32_t limit = (uint32_t)ceil(a->p * 16777216);
        double scale = a->p < 1 ? 1 / (1 - a->p) : 0;
        return LG_WITH_FLOAT(a->dtype,
                             lg_launch(q, "dropout", dropout_loop<H>, n ? lg_blocks(q, n) : 0, *a, n, limit, (H)scale));
}
