/* dropout.c - dropout by random words of Philox, over any strides. */
#include <math.h>
#include "cpu.h"
#include "draws.h"

#define CHUNK 1024 /* elements per chunk; a multiple of the four words of a Philox block */

/* Writes the words of `blocks` Philox blocks from number `first` on to ret, rounded up to a whole vector of counters.
 * Meanwhile prefetches the next chunk of x and y (`size` bytes per element). Words are in the lower halves of the
 * 64-bit lanes; the upper halves are ignored. */
static void draw(uint64_t seed, uint64_t first, int64_t blocks, uint32_t *ret, int64_t size, const void *x,
                 const void *y)
{
        enum { lanes = LG_LANES_f64 };
        const lg_vec_u64 zero = {0}, low = zero + UINT32_MAX;
        lg_vec_u64 counters = zero;
        for (int k = 0; k < lanes; k++)
                counters[k] = first + (uint64_t)k;
        for (int64_t i = 0; i < blocks; i += lanes) {
                lg_vec_u64 w[4] = {counters};
                counters += lanes;
                lg_philox_blocks(seed, w);
                w[0] = (w[0] & low) | w[1] << 32;
                w[2] = (w[2] & low) | w[3] << 32;
                const lg_vec_u64 words[2] = {LG_LOW_f64(w[0], w[2]), LG_HIGH_f64(w[0], w[2])};
                memcpy(ret + 4 * i, words, sizeof words);
                for (int64_t at = (CHUNK + 4 * i) * size; at < (CHUNK + 4 * (i + lanes)) * size; at += 64) {
                        lg_prefetch(x, at);
                        lg_prefetch_to(y, at);
                }
        }
}

/* Keeps elements with u >= p. u is (w >> 8) / 2^24, so this compares w >> 8 with the integer `limit`. */
#define DROP(suffix, type)                                                                                             \
        static void drop_##suffix(int64_t n, const uint32_t *w, int32_t limit, type scale, const void *from, void *to) \
        {                                                                                                              \
                const type *x = from;                                                                                  \
                type *y = to;                                                                                          \
                LG_SIMD                                                                                                \
                for (int64_t i = 0; i < n; i++)                                                                        \
                        y[i] = (int32_t)(w[i] >> 8) >= limit ? x[i] * scale : 0;                                       \
        }
DROP(f32, float)
DROP(f64, double)

typedef struct job {
        const lg_dropout_args *a;
        lg_walk walk; /* operand 0 is y, operand 1 is x */
        size_t size;
        int32_t limit;
        double scale;
} job;

static void drop_chunk(const job *j, int64_t first, int64_t n)
{
        LG_ALIGN64 char gathered[CHUNK * 8], wide[CHUNK * 8], narrow[CHUNK * 8];
        LG_ALIGN64 uint32_t words[CHUNK];
        const lg_dropout_args *a = j->a;
        const void *x = (const char *)a->x + first * (int64_t)j->size;
        bool side_by_side = lg_walk_contiguous(&j->walk, 0), half = lg_is_half(a->dtype);
        void *y = side_by_side ? (char *)a->y + first * (int64_t)j->size : narrow;
        draw(lg_philox_moved(a->seed, a->moved, 0), lg_philox_moved(a->offset, a->moved, 1) + (uint64_t)(first / 4),
             lg_ceil_div(n, 4), words, (int64_t)j->size, x, y);
        if (!lg_walk_contiguous(&j->walk, 1)) {
                lg_walk_gather(&j->walk, 1, j->size, gathered, a->x, first, n);
                x = gathered;
        }
        if (half) {
                lg_load[LG_COMPUTE_F32][a->dtype](n, wide, x);
                drop_f32(n, words, j->limit, (float)j->scale, wide, wide);
                lg_store[LG_COMPUTE_F32][a->dtype](n, y, wide);
        } else if (a->dtype == LG_F64) {
                drop_f64(n, words, j->limit, j->scale, x, y);
        } else {
                drop_f32(n, words, j->limit, (float)j->scale, x, y);
        }
        if (!side_by_side)
                lg_walk_scatter(&j->walk, 0, j->size, a->y, narrow, first, n);
}
LG_EACH_CHUNK(drop_chunks, drop_chunk, job, CHUNK, j->walk.count)

bool LG_CPU(dropout)(lg_queue *q, const lg_dropout_args *a)
{
        job j = {.a = a, .size = lg_bytes_of(a->dtype), .limit = (int32_t)ceil(a->p * 16777216.0)};
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "dropout: no kernel for dtype %d", (int)a->dtype);
        j.scale = a->p < 1 ? 1 / (1 - a->p) : 0;
        lg_walk_init(&j.walk, a->ndim, a->shape, 2, (const int64_t *[]){a->y_strides, a->x_strides}, false);
        lg_parallel(q, lg_ceil_div(j.walk.count, CHUNK), lg_grain(4 * CHUNK), drop_chunks, &j);
        return true;
}
