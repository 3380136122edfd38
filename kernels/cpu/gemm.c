/* gemm.c - batched matrix products, split into tiles of C for the threads. All tiles use the algorithm of the whole
 * product, so the result does not depend on their number. */
#include "cpu.h"
#include "simd.h"

/* Minimum work of a tile, 2 m n k: LEAST_TILE up to one tile per thread, SMALL_TILE for more, which balance the load.
 * Tiles wanted per thread: TILES_OF_A_THREAD, or COPIES_OF_A_THREAD if tiles copy their parts of A and B. */
#define LEAST_TILE (LG_PARALLEL_WORK / 2)
#define SMALL_TILE (2 * LG_PARALLEL_WORK)
#define TILES_OF_A_THREAD 4
#define COPIES_OF_A_THREAD 2
#define LEAST_COPIED_FOR 512 /* rows of tiles, if each copies its columns of B: so that copying takes little */

/* Job that multiplies a batch, split into tiles of C. */
typedef struct gemm_job {
        const lg_gemm_args *g;
        lg_product_algorithm algorithm;
        int64_t rows, cols, down, across, tiles;
        char *scratch; /* scratch of each thread */
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

/* Splits C by halving a side to multiples of a register block: rows, until each thread has some, as in loops over the
 * rows of A and C; then the longer side, or columns if each tile copies its own columns of B. */
static void cut_tiles(gemm_job *j, int64_t batches, int threads)
{
        const int64_t step = LG_BLOCK_VECTORS * LG_LANES_f32;
        const int64_t each = j->algorithm == LG_BY_SHORT_STRIPS ? COPIES_OF_A_THREAD : TILES_OF_A_THREAD;
        const int64_t wanted = threads > 1 ? threads * each : 1;
        const lg_gemm_args *g = j->g;
        j->rows = g->m;
        j->cols = g->n;
        for (;;) {
                j->down = lg_ceil_div(g->m, j->rows);
                j->across = lg_ceil_div(g->n, j->cols);
                j->tiles = batches * j->down * j->across;
                const double least = j->tiles < threads ? LEAST_TILE : SMALL_TILE;
                if (j->tiles >= wanted || work_of(g, j->rows, j->cols) <= 2 * least)
                        return;
                const int64_t least_rows = j->algorithm == LG_BY_ROWS ? 4 * LG_BLOCK_ROWS : LEAST_COPIED_FOR;
                const bool down = batches * j->down < threads && j->rows >= least_rows;
                const bool wide = !down && j->cols > (j->algorithm == LG_BY_STRIPS ? 2 * step : j->rows);
                if (!wide && j->rows > LG_BLOCK_ROWS)
                        j->rows = halved(j->rows, j->rows > 8 * LG_BLOCK_ROWS ? LG_BLOCK_ROWS : 1);
                else if (j->cols > step)
                        j->cols = halved(j->cols, step);
                else
                        return;
        }
}

/* Returns the arguments of the product at index i of the batch. */
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
        if (g->k > 0) { /* if k is 0, A and B have no elements */
                p.a = lg_byte_at(g->a, a * size);
                p.b = lg_byte_at(g->b, b * size);
        }
        p.c = lg_byte_at(g->c, c * size);
        return p;
}

/* Returns the arguments of tile i. Tiles follow each other by row, or by column if B is much wider than A is high, so
 * that a thread's share reads a part of the larger one only. */
static lg_gemm_args tile_at(const gemm_job *j, int64_t i)
{
        const int64_t size = (int64_t)lg_bytes_of(j->g->dtype), in_batch = i % (j->down * j->across);
        const bool by_column = j->g->n >= 2 * j->g->m;
        const int64_t row = (by_column ? in_batch % j->down : in_batch / j->across) * j->rows;
        const int64_t col = (by_column ? in_batch / j->down : in_batch % j->across) * j->cols;
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
                lg_multiply(&t, j->algorithm, lg_byte_at(j->scratch, thread * j->scratch_bytes));
        }
}

static bool multiply_batch(lg_queue *q, const lg_gemm_args *g, int64_t batches)
{
        gemm_job j = {.g = g, .algorithm = lg_product_algorithm_of(g)};
        cut_tiles(&j, batches, q->threads);
        if (j.tiles == 1 && g->batch_ndim == 0) {
                const size_t bytes = lg_multiply_bytes(g, j.algorithm);
                void *scratch = bytes ? q->workspace(q, bytes) : NULL;
                if (bytes && !scratch)
                        return false;
                lg_multiply(g, j.algorithm, scratch);
                return true;
        }
        const lg_gemm_args first = tile_at(&j, 0);
        const int64_t grain = work_of(g, g->m, g->n) * (double)batches > 2 * LEAST_TILE ? 1 : j.tiles;
        const int64_t threads = lg_least(q->threads, j.tiles / grain);
        j.scratch_bytes = lg_ceil_div((int64_t)lg_multiply_bytes(&first, j.algorithm), 64) * 64;
        if (j.scratch_bytes && !(j.scratch = q->workspace(q, (size_t)(j.scratch_bytes * threads))))
                return false;
        lg_parallel(q, j.tiles, grain, multiply_tiles, &j);
        return true;
}

/* ---- integers ---- */

typedef void row_fn(const lg_gemm_args *g, int64_t i);

/* Defines a function that computes row i of C, modulo the size of the type: by rows of B, or where B is by columns, by
 * sums along them. */
#define INTEGER_ROW(name, type, sum_type)                                                                              \
        static void name(const lg_gemm_args *g, int64_t i)                                                             \
        {                                                                                                              \
                type *restrict c = (type *)g->c + i * g->ldc;                                                          \
                const type *restrict a = g->k ? (const type *)g->a + i * g->a_row : NULL, *restrict b = g->b;          \
                const int64_t n = g->n, k = g->k, a_col = g->a_col, b_row = g->b_row, b_col = g->b_col;                \
                const bool by_row = b_col == 1 && n > 1;                                                               \
                for (int64_t j = 0; j < n; j++)                                                                        \
                        c[j] = (type)((g->beta ? (sum_type)c[j] : 0) +                                                 \
                                      (g->bias ? (sum_type)((const type *)g->bias)[j] : 0));                           \
                for (int64_t l = 0; l < k && by_row; l++)                                                              \
                        for (int64_t j = 0; j < n; j++)                                                                \
                                c[j] = (type)(c[j] + (sum_type)a[l * a_col] * b[l * b_row + j]);                       \
                for (int64_t j = 0; j < n && !by_row; j++) {                                                           \
                        sum_type sum = 0;                                                                              \
                        for (int64_t l = 0; l < k; l++)                                                                \
                                sum += (sum_type)a[l * a_col] * b[j * b_col + l * b_row];                              \
                        c[j] = (type)(c[j] + sum);                                                                     \
                }                                                                                                      \
        }
INTEGER_ROW(row_u64, uint64_t, uint64_t)
INTEGER_ROW(row_u32, uint32_t, uint32_t)
INTEGER_ROW(row_u8, uint8_t, uint32_t)

static void multiply_rows(const void *user, int64_t first, int64_t end, int thread)
{
        const lg_gemm_args *g = user;
        row_fn *row = g->dtype == LG_I64 ? row_u64 : g->dtype == LG_I32 ? row_u32 : row_u8;
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                const lg_gemm_args p = product_at(g, i / g->m);
                row(&p, i % g->m);
        }
}

static bool multiply_integers(lg_queue *q, const lg_gemm_args *g, int64_t batches)
{
        const double work = work_of(g, 1, g->n);
        lg_parallel(q, batches * g->m, 1 + (int64_t)(LG_PARALLEL_WORK / (work > 1 ? work : 1)), multiply_rows, g);
        return true;
}

bool LG_CPU(gemm)(lg_queue *q, const lg_gemm_args *g)
{
        int64_t batches = 1;
        for (int d = 0; d < g->batch_ndim; d++)
                batches *= g->batch[d];
        if (g->dtype == LG_BOOL || (g->relu && !lg_is_float(g->dtype)))
                return lg_queue_fail(q, LG_BROKEN, "gemm: no kernel for dtype %d", (int)g->dtype);
        if (batches == 0 || g->m == 0 || g->n == 0)
                return true;
        return lg_is_float(g->dtype) ? multiply_batch(q, g, batches) : multiply_integers(q, g, batches);
}
