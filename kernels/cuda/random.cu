/* random.cu - uniform and normal random numbers of the Philox generator. */
#include "shape.h"
#include "../philox.h"

/* Returns x rounded to dtype t, as a double. */
static __host__ __device__ inline double rounded(lg_dtype t, double x)
{
        return t == LG_F64   ? x
               : t == LG_F32 ? (double)(float)x
               : t == LG_F16 ? (double)__half2float(__float2half(lg_odd(x)))
                             : (double)__bfloat162float(__float2bfloat16(lg_odd(x)));
}

/* Returns the greatest value of dtype t below b. */
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
        /* Begins about half a step below b and goes lower until the rounded value is no longer b. */
        double at = fabs(value) > 0 ? value - fabs(value) * step
                    : t == LG_F16   ? -1.0 / (1 << 24)
                                    : -9.183549615799121e-41;
        while (rounded(t, at) >= value)
                at -= fabs(value) * step;
        return rounded(t, at);
}

/* Stores the numbers of a Philox block: by one access if `whole`, which means that all are within an aligned output. */
static __device__ inline void store_block(const lg_random_args &a, int64_t at, const double *v, bool whole)
{
        if (a.dtype == LG_F64 && whole)
                lg_write<double, 2>((double *)a.out + at, v);
        else if (whole) {
                float f[4];
                for (int k = 0; k < 4; k++)
                        f[k] = a.dtype == LG_F32 ? (float)v[k] : lg_odd(v[k]);
                lg_store_pack<float, 4>(a.out, a.dtype, at, f);
        } else
                for (int k = 0; k < (a.dtype == LG_F64 ? 2 : 4) && at + k < a.n; k++)
                        lg_store<double>(a.out, a.dtype, at + k, v[k]);
}

static __global__ void random_loop(lg_random_args a, double limit, bool aligned)
{
        const int per_block = a.dtype == LG_F64 ? 2 : 4;
        const bool uniform = a.kind == LG_RANDOM_UNIFORM;
        const uint64_t seed = lg_philox_moved(a.seed, a.moved, 0), offset = lg_philox_moved(a.offset, a.moved, 1);
        for (int64_t b = LG_FIRST; b * per_block < a.n; b += LG_STEP) {
                lg_philox_words w = lg_philox_block(seed, offset + (uint64_t)b);
                double v[4];
                if (!uniform && per_block == 4)
                        lg_philox_normal4(w, v);
                else if (!uniform)
                        lg_philox_normal2(w, v);
                for (int k = 0; uniform && k < per_block; k++)
                        v[k] = per_block == 4 ? lg_philox_uniform24(w.w[k])
                                              : lg_philox_uniform53(w.w[2 * k], w.w[2 * k + 1]);
                for (int k = 0; k < per_block; k++) {
                        v[k] = __dadd_rn(a.a, __dmul_rn(uniform ? a.b - a.a : a.b, v[k])); /* not fused, as on CPUs */
                        if (uniform && a.a < a.b && rounded(a.dtype, v[k]) >= a.b)
                                v[k] = limit;
                }
                store_block(a, b * per_block, v, aligned && (b + 1) * per_block <= a.n);
        }
}

extern "C" bool lg_cuda_random(lg_queue *q, const lg_random_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "random: no kernel for dtype %d", (int)a->dtype);
        return lg_launch(q, "random", random_loop, a->n ? lg_blocks(q, (a->n + 1) / 2) : 0, *a, below(a->dtype, a->b),
                         (uintptr_t)a->out % 16 == 0);
}
