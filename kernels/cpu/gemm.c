/* gemm.c - matrix products with a batch, on tiles of C that only its size determines: the bits do not depend on how
 * many threads there are.
 */
#include "cpu.h"
#include "simd.h"

/* Below that, a tile is not worth a thread; from `LARGE` on more tiles are cut for many threads. In 2mnk. */
#define SMALL_TILE 2e6
#define LARGE_TILE 2e8
#define FEW_TILES 16
#define MANY_TILES 256

/* The products of a batch, cut into tiles, and what the threads share them out by. */
typedef struct gemm_job {
        const lg_gemm_args *g;
        int64_t rows, cols, down, across, tiles;
        char *scratch; /* of each thread */
        int64_t scratch_bytes;
} gemm_job;

static double work_of(const lg_gemm_args *g, int64_t rows, int64_t cols)
{
        return 2.0 * (double)rows * (double)cols * (double)g->k;
}

static int64_t halved(int64_t size, int64_t step)
{
        return lg_ceil_div(size, 2 * step) * step;
}

/* By halving the longer side, to whole blocks of sums. */
static void cut_tiles(gemm_job *j, int64_t batches)
{
        const int64_t step = LG_BLOCK_VECTORS * LG_LANES_f32;
        const lg_gemm_args *g = j->g;
        j->rows = g->m;
        j->cols = g->n;
        for (;;) {
                const double work = work_of(g, j->rows, j->cols);
                j->down = lg_ceil_div(g->m, j->rows);
                j->across = lg_ceil_div(g->n, j->cols);
                j->tiles = batches * j->down * j->across;
                if (!((j->tiles < FEW_TILES && work > 2 * SMALL_TILE) || (j->tiles < MANY_TILES && work > LARGE_TILE)))
                        return;
                if (j->rows >= j->cols && j->rows > LG_BLOCK_ROWS)
                        j->rows = halved(j->rows, LG_BLOCK_ROWS);
                else if (j->cols > step)
                        j->cols = halved(j->cols, step);
                else
                        return;
        }
}

/* A, B and C at index i of the batch. */
static lg_gemm_args product_at(const lg_gemm_args *g, int64_t i)
{
        const int64_t size = (int64_t)lg_bytes_of(g->dtype);
        lg_gemm_args p = *g;
        int64_t a = 0, b = 0, c = 0;
        for (int d = g->batch_ndim - 1; d >= 0; d--) {
                const int64_t at = i % g->batch[d];
                i /= g->batch[d];
                a += at * g->a_batch[d];
                b += at * g->b_batch[d];
                c += at * g->c_batch[d];
        }
        if (g->k > 0) { /* else there is nothing in A and B */
                p.a = lg_byte_at(g->a, a * size);
                p.b = lg_byte_at(g->b, b * size);
        }
        p.c = lg_byte_at(g->c, c * size);
        return p;
}

static lg_gemm_args tile_at(const gemm_job *j, int64_t i)
{
        const int64_t size = (int64_t)lg_bytes_of(j->g->dtype);
        const int64_t row = i / j->across % j->down * j->rows, col = i % j->across * j->cols;
        lg_gemm_args t = product_at(j->g, i / (j->down * j->across));
        t.m = lg_least(j->rows, t.m - row);
        t.n = lg_least(j->cols, t.n - col);
        t.a = lg_byte_at(t.a, row * t.a_row * size);
        t.b = lg_byte_at(t.b, col * t.b_col * size);
        t.c = lg_byte_at(t.c, (row * t.ldc + col) * size);
        t.bias = lg_byte_at(t.bias, col * size);
        return t;
}

static void multiply_tiles(const void *user, int64_t first, int64_t end, int thread)
{
        const gemm_job *j = user;
        for (int64_t i = first; i < end; i++) {
                const lg_gemm_args t = tile_at(j, i);
                lg_multiply(&t, lg_byte_at(j->scratch, thread * j->scratch_bytes));
        }
}

static bool multiply_batch(lg_queue *q, const lg_gemm_args *g, int64_t batches)
{
        gemm_job j = {.g = g};
        cut_tiles(&j, batches);
        if (j.tiles == 1 && g->batch_ndim == 0) {
                const size_t bytes = lg_multiply_bytes(g);
                void *scratch = bytes ? q->workspace(q, bytes) : NULL;
                if (bytes && !scratch)
                        return false;
                lg_multiply(g, scratch);
                return true;
        }
        const lg_gemm_args first = tile_at(&j, 0);
        const int64_t grain = work_of(g, g->m, g->n) * (double)batches > SMALL_TILE ? 1 : j.tiles;
        const int64_t threads = lg_least(q->threads, j.tiles / grain);
        j.scratch_bytes = lg_ceil_div((int64_t)lg_multiply_bytes(&first), 64) * 64;
        if (j.scratch_bytes && !(j.scratch = q->workspace(q, (size_t)(j.scratch_bytes * threads))))
                return false;
        lg_parallel(q, j.tiles, grain, multiply_tiles, &j);
        return true;
}

/* ---- f16 and bf16, by way of f32 copies of one product at a time ---- */

/* Lines that are copied from one dtype to another. */
typedef struct lines {
        lg_convert_fn convert;
        int64_t length;
        char *to;
        int64_t to_step; /* in bytes, as from_step */
        const char *from;
        int64_t from_step;
} lines;

static void convert_lines(const void *user, int64_t first, int64_t end, int thread)
{
        const lines *l = user;
        (void)thread;
        for (int64_t i = first; i < end; i++)
                l->convert(l->length, lg_byte_at(l->to, i * l->to_step), lg_byte_at(l->from, i * l->from_step));
}

/* (rows, cols) of these strides in elements, one of them 1, as f32: the other way round where `row` is 1. */
static float *widened(lg_queue *q, lg_dtype t, float *to, const void *from, int64_t rows, int64_t cols, int64_t *row,
                      int64_t *col)
{
        const bool turned = *col != 1 && cols > 1;
        const int64_t count = turned ? cols : rows, length = turned ? rows : cols, stride = turned ? *col : *row;
        lg_parallel(q, count, lg_grain(length), convert_lines,
                    &(lines){lg_load[LG_COMPUTE_F32][t], length, (char *)to, length * 4, from, stride * 2});
        *row = turned ? 1 : length;
        *col = turned ? length : 1;
        return to;
}

static bool multiply_half(lg_queue *q, const lg_gemm_args *g, int64_t batches)
{
        float *a = lg_widen(q, g->dtype, g->m * g->k, NULL), *b = lg_widen(q, g->dtype, g->k * g->n, NULL);
        float *c = lg_widen(q, g->dtype, g->m * g->n, NULL), *bias = NULL;
        if (!a || !b || !c || (g->bias && !(bias = lg_widen(q, g->dtype, g->n, g->bias))))
                return false;
        for (int64_t i = 0; i < batches; i++) {
                lg_gemm_args p = product_at(g, i);
                void *out = p.c;
                int64_t ldc = p.ldc, one = 1;
                p.a = widened(q, g->dtype, a, p.a, p.m, p.k, &p.a_row, &p.a_col);
                p.b = widened(q, g->dtype, b, p.b, p.k, p.n, &p.b_row, &p.b_col);
                if (p.beta)
                        widened(q, g->dtype, c, p.c, p.m, p.n, &p.ldc, &one);
                p.dtype = LG_F32;
                p.c = c;
                p.ldc = p.n;
                p.bias = bias;
                p.batch_ndim = 0;
                if (!multiply_batch(q, &p, 1))
                        return false;
                lg_parallel(q, p.m, lg_grain(p.n), convert_lines,
                            &(lines){lg_store[LG_COMPUTE_F32][g->dtype], p.n, out, ldc * 2, (char *)c, p.n * 4});
        }
        return true;
}

bool LG_CPU(gemm)(lg_queue *q, const lg_gemm_args *g)
{
        int64_t batches = 1;
        for (int d = 0; d < g->batch_ndim; d++)
                batches *= g->batch[d];
        if (!lg_is_float(g->dtype))
                return lg_queue_fail(q, LG_BROKEN, "gemm: no kernel for dtype %d", (int)g->dtype);
        if (batches == 0 || g->m == 0 || g->n == 0)
                return true;
        return lg_is_half(g->dtype) ? multiply_half(q, g, batches) : multiply_batch(q, g, batches);
}
