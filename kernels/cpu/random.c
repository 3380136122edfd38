/* random.c - uniform and normal random numbers by Philox. */
#include "cpu.h"
#include "../philox.h"

#define CHUNK 1024 /* elements per chunk; a multiple of the numbers of a Philox block */

/* Writes n uniform or standard normal numbers, rounded up to whole Philox blocks from number `block` on, to ret. */
static void draw(const lg_random_args *a, uint64_t block, int64_t n, double *ret)
{
        int per_block = a->dtype == LG_F64 ? 2 : 4;
        const uint64_t seed = lg_philox_moved(a->seed, a->moved, 0);
        for (int64_t i = 0; i < n; i += per_block) {
                lg_philox_words b = lg_philox_block(seed, block++);
                if (a->kind == LG_RANDOM_NORMAL && per_block == 4) {
                        lg_philox_normal4(b, ret + i);
                } else if (a->kind == LG_RANDOM_NORMAL) {
                        lg_philox_normal2(b, ret + i);
                } else if (per_block == 4) {
                        for (int k = 0; k < 4; k++)
                                ret[i + k] = lg_philox_uniform24(b.w[k]);
                } else {
                        ret[i] = lg_philox_uniform53(b.w[0], b.w[1]);
                        ret[i + 1] = lg_philox_uniform53(b.w[2], b.w[3]);
                }
        }
}

/* Returns the greatest value of dtype t below b. The value to which b rounds may be above b, hence the step down. */
static double below(lg_dtype t, double b)
{
        if (t == LG_F64)
                return nextafter(b, -INFINITY);
        if (t == LG_F32) {
                float f = (float)b;
                return (double)f < b ? f : nextafterf(f, -INFINITY);
        }
        uint16_t h;
        float f = (float)b;
        lg_store[LG_COMPUTE_F32][t](1, &h, &f);
        double value = t == LG_F16 ? lg_f32_of_f16(h) : lg_f32_of_bf16(h);
        if (value < b)
                return value;
        h = (h & 0x7FFF) == 0 ? 0x8001 : (uint16_t)(h & 0x8000 ? h + 1 : h - 1);
        return t == LG_F16 ? lg_f32_of_f16(h) : lg_f32_of_bf16(h);
}

typedef struct job {
        const lg_random_args *a;
        double limit;
} job;

static void random_chunk(const job *j, int64_t first, int64_t n)
{
        const lg_random_args *a = j->a;
        double values[CHUNK] = {0};
        int64_t per_block = a->dtype == LG_F64 ? 2 : 4;
        LG_ALIGN64 char out[CHUNK * 8];
        size_t size = lg_bytes_of(a->dtype);
        draw(a, lg_philox_moved(a->offset, a->moved, 1) + (uint64_t)(first / per_block), n, values);
        bool uniform = a->kind == LG_RANDOM_UNIFORM;
        for (int64_t i = 0; i < n; i++)
                values[i] = a->a + (uniform ? a->b - a->a : a->b) * values[i];
        lg_store[LG_COMPUTE_F64][a->dtype](n, out, values);
        if (uniform && a->a < a->b) {
                /* Values that rounding raised to b or above become the greatest value below b. */
                double rounded[CHUNK];
                lg_load[LG_COMPUTE_F64][a->dtype](n, rounded, out);
                for (int64_t i = 0; i < n; i++) {
                        if (rounded[i] >= a->b)
                                lg_store[LG_COMPUTE_F64][a->dtype](1, out + i * (int64_t)size, &j->limit);
                }
        }
        memcpy((char *)a->out + first * (int64_t)size, out, (size_t)n * size);
}
LG_EACH_CHUNK(random_chunks, random_chunk, job, CHUNK, j->a->n)

bool LG_CPU(random)(lg_queue *q, const lg_random_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "random: no kernel for dtype %d", (int)a->dtype);
        const job j = {a, below(a->dtype, a->b)};
        lg_parallel(q, lg_ceil_div(a->n, CHUNK), lg_grain(8 * CHUNK), random_chunks, &j);
        return true;
}
