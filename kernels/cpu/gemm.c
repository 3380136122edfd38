/* gemm.c - matrix products: BLAS, or own loops without one, on tiles of C that only its size determines.
 *
 * BLAS runs on one thread at a time and the tiles on ours: the bits do not depend on how many there are.
 */
#include "cpu.h"
#include <limits.h>

#if LG_BLAS
#include <cblas.h>
#endif

/* Below that, a tile is not worth a thread; from `LARGE` on more tiles are cut for many threads. In 2mnk. */
#define SMALL_TILE 2e6
#define LARGE_TILE 2e8
#define FEW_TILES 16
#define MANY_TILES 256

typedef struct matrix {
        const void *p;
        bool transposed; /* stored as its transpose */
        int64_t ld;
} matrix;

typedef struct product {
        lg_dtype dtype; /* LG_F32 or LG_F64 */
        int64_t m, n, k;
        matrix a, b;
        void *c;
        int64_t ldc;
        int beta;
        const void *bias; /* n values of dtype; or NULL */
        bool relu;
} product;

static const void *matrix_at(const matrix *x, int64_t row, int64_t col, size_t size)
{
        return lg_byte_at(x->p, (x->transposed ? col * x->ld + row : row * x->ld + col) * (int64_t)size);
}

#if LG_BLAS
static void multiply(const product *p)
{
        const enum CBLAS_TRANSPOSE ta = p->a.transposed ? CblasTrans : CblasNoTrans;
        const enum CBLAS_TRANSPOSE tb = p->b.transposed ? CblasTrans : CblasNoTrans;
        const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
        const int lda = (int)p->a.ld, ldb = (int)p->b.ld, ldc = (int)p->ldc;
        if (p->dtype == LG_F64)
                cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, p->a.p, lda, p->b.p, ldb, p->beta, p->c, ldc);
        else
                cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, p->a.p, lda, p->b.p, ldb, (float)p->beta, p->c, ldc);
}
#define LARGEST_SIZE INT_MAX
#else
#define LG_T float
#define LG_OF(name) name##_f32
#include "gemm.inc"
#undef LG_T
#undef LG_OF
#define LG_T double
#define LG_OF(name) name##_f64
#include "gemm.inc"

static void multiply(const product *p)
{
        if (p->dtype == LG_F64)
                multiply_f64(p);
        else
                multiply_f32(p);
}
#define LARGEST_SIZE INT64_MAX
#endif

/* How a matrix of (rows, cols) with these strides is stored; false if neither way. */
static bool matrix_of(matrix *ret, const void *p, int64_t rows, int64_t cols, int64_t row, int64_t col)
{
        *ret = (matrix){.p = p};
        if ((col == 1 || cols <= 1) && (rows <= 1 || row >= cols)) {
                ret->ld = lg_most(rows <= 1 ? cols : row, 1);
                return true;
        }
        if ((row == 1 || rows <= 1) && (cols <= 1 || col >= rows)) {
                ret->transposed = true;
                ret->ld = lg_most(cols <= 1 ? rows : col, 1);
                return true;
        }
        return false;
}

static int64_t halved(int64_t size)
{
        return (size / 2 + 15) / 16 * 16;
}

/* The tiles' size, by halving the longer side. */
static void tile_of(const product *p, int64_t batches, int64_t *ret_rows, int64_t *ret_cols)
{
        int64_t rows = p->m, cols = p->n;
        for (;;) {
                double work = 2.0 * (double)rows * (double)cols * (double)p->k;
                int64_t tiles = lg_ceil_div(p->m, rows) * lg_ceil_div(p->n, cols) * batches;
                bool cut = (tiles < FEW_TILES && work > 2 * SMALL_TILE) || (tiles < MANY_TILES && work > LARGE_TILE);
                if (!cut || (rows <= 32 && cols <= 32))
                        break;
                if (rows >= cols)
                        rows = halved(rows);
                else
                        cols = halved(cols);
        }
        *ret_rows = rows;
        *ret_cols = cols;
}

/* C begins as bias, or has it added. */
static void add_bias(product *p)
{
        int64_t size = (int64_t)lg_bytes_of(p->dtype);
        for (int64_t r = 0; r < p->m; r++) {
                char *c = (char *)p->c + r * p->ldc * size;
                if (!p->beta)
                        memcpy(c, p->bias, (size_t)(p->n * size));
                else if (p->dtype == LG_F64)
                        for (int64_t i = 0; i < p->n; i++)
                                ((double *)c)[i] += ((const double *)p->bias)[i];
                else
                        for (int64_t i = 0; i < p->n; i++)
                                ((float *)c)[i] += ((const float *)p->bias)[i];
        }
        p->beta = 1;
}

static void clear_negatives(const product *p)
{
        int64_t size = (int64_t)lg_bytes_of(p->dtype);
        for (int64_t r = 0; r < p->m; r++) {
                char *c = (char *)p->c + r * p->ldc * size;
                if (p->dtype == LG_F64)
                        for (int64_t i = 0; i < p->n; i++)
                                ((double *)c)[i] = ((double *)c)[i] <= 0 ? 0 : ((double *)c)[i];
                else
                        for (int64_t i = 0; i < p->n; i++)
                                ((float *)c)[i] = ((float *)c)[i] <= 0 ? 0 : ((float *)c)[i];
        }
}

static void clear_rows(const product *p)
{
        int64_t size = (int64_t)lg_bytes_of(p->dtype);
        for (int64_t r = 0; r < p->m; r++)
                memset((char *)p->c + r * p->ldc * size, 0, (size_t)(p->n * size));
}

static void multiply_whole(product *p)
{
        if (p->bias)
                add_bias(p);
        if (p->k > 0)
                multiply(p);
        else if (!p->beta)
                clear_rows(p);
        if (p->relu)
                clear_negatives(p);
}

static void multiply_tile(const product *p, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
        size_t size = lg_bytes_of(p->dtype);
        product t = *p;
        t.m = lg_least(rows, p->m - row);
        t.n = lg_least(cols, p->n - col);
        t.a.p = matrix_at(&p->a, row, 0, size);
        t.b.p = matrix_at(&p->b, 0, col, size);
        t.c = (char *)p->c + (row * p->ldc + col) * (int64_t)size;
        t.bias = p->bias ? (const char *)p->bias + col * (int64_t)size : NULL;
        multiply_whole(&t);
}

/* The batch's index i as offsets in elements into A, B and C. */
typedef struct offsets {
        int64_t a, b, c;
} offsets;

static offsets batch_offsets(const lg_gemm_args *g, int64_t i)
{
        offsets o = {0, 0, 0};
        for (int d = g->batch_ndim - 1; d >= 0; d--) {
                int64_t at = i % g->batch[d];
                i /= g->batch[d];
                o.a += at * g->a_batch[d];
                o.b += at * g->b_batch[d];
                o.c += at * g->c_batch[d];
        }
        if (g->k == 0) /* there is nothing in A and B */
                o.a = o.b = 0;
        return o;
}

/* All tiles of all products of a batch. */
static void multiply_batch(lg_queue *q, const lg_gemm_args *g, const product *p, int64_t batches)
{
        int64_t rows, cols, size = (int64_t)lg_bytes_of(p->dtype);
        tile_of(p, batches, &rows, &cols);
        int64_t down = lg_ceil_div(p->m, rows), across = lg_ceil_div(p->n, cols), tiles = batches * down * across;
        double work = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)batches;
        LG_PARALLEL_FOR(q, tiles > 1 && work > SMALL_TILE)
        for (int64_t i = 0; i < tiles; i++) {
                product t = *p;
                offsets o = g ? batch_offsets(g, i / (down * across)) : (offsets){0, 0, 0};
                t.a.p = lg_byte_at(p->a.p, o.a * size);
                t.b.p = lg_byte_at(p->b.p, o.b * size);
                t.c = (char *)p->c + o.c * size;
                multiply_tile(&t, i / across % down * rows, i % across * cols, rows, cols);
        }
}

/* The product of one index of the batch by way of f32 copies. */
typedef struct wide {
        float *a, *b, *c;
        int64_t a_rows, a_cols, b_rows, b_cols; /* as stored */
} wide;

static void widen_rows(lg_queue *q, lg_dtype t, int64_t rows, int64_t cols, float *to, const void *from, int64_t ld)
{
        LG_PARALLEL_FOR(q, rows * cols >= LG_PARALLEL_MIN)
        for (int64_t r = 0; r < rows; r++)
                lg_load[LG_COMPUTE_F32][t](cols, to + r * cols, lg_byte_at(from, r * ld * 2));
}

static void narrow_rows(lg_queue *q, lg_dtype t, int64_t rows, int64_t cols, void *to, int64_t ld, const float *from)
{
        LG_PARALLEL_FOR(q, rows * cols >= LG_PARALLEL_MIN)
        for (int64_t r = 0; r < rows; r++)
                lg_store[LG_COMPUTE_F32][t](cols, lg_byte_at(to, r * ld * 2), from + r * cols);
}

static bool multiply_half(lg_queue *q, const lg_gemm_args *g, const product *p, int64_t batches)
{
        wide w = {.a_rows = p->a.transposed ? p->k : p->m, .b_rows = p->b.transposed ? p->n : p->k};
        w.a_cols = p->a.transposed ? p->m : p->k;
        w.b_cols = p->b.transposed ? p->k : p->n;
        if (!(w.a = lg_widen(q, g->dtype, p->m * p->k, NULL)) || !(w.b = lg_widen(q, g->dtype, p->k * p->n, NULL)) ||
            !(w.c = lg_widen(q, g->dtype, p->m * p->n, NULL)))
                return false;
        product t = *p;
        t.dtype = LG_F32;
        t.a = (matrix){.p = w.a, .transposed = p->a.transposed, .ld = w.a_cols};
        t.b = (matrix){.p = w.b, .transposed = p->b.transposed, .ld = w.b_cols};
        t.c = w.c;
        t.ldc = p->n;
        if (p->bias && !(t.bias = lg_widen(q, g->dtype, p->n, p->bias)))
                return false;
        for (int64_t i = 0; i < batches; i++) {
                offsets o = batch_offsets(g, i);
                char *c = lg_byte_at(p->c, o.c * 2);
                widen_rows(q, g->dtype, w.a_rows, w.a_cols, w.a, lg_byte_at(p->a.p, o.a * 2), p->a.ld);
                widen_rows(q, g->dtype, w.b_rows, w.b_cols, w.b, lg_byte_at(p->b.p, o.b * 2), p->b.ld);
                if (p->beta)
                        widen_rows(q, g->dtype, p->m, p->n, w.c, c, p->ldc);
                multiply_batch(q, NULL, &t, 1);
                narrow_rows(q, g->dtype, p->m, p->n, c, p->ldc, w.c);
        }
        return true;
}

/* The product without its batch; false: neither stride of a matrix is 1. */
static bool product_of(product *ret, const lg_gemm_args *g)
{
        *ret = (product){.dtype = g->dtype, .m = g->m, .n = g->n, .k = g->k, .c = g->c, .ldc = g->ldc, .beta = g->beta};
        ret->bias = g->bias;
        ret->relu = g->relu;
        if (g->m == 1)
                ret->ldc = lg_most(g->ldc, g->n);
        return matrix_of(&ret->a, g->a, g->m, g->k, g->a_row, g->a_col) &&
               matrix_of(&ret->b, g->b, g->k, g->n, g->b_row, g->b_col);
}

void lg_multiply(const lg_gemm_args *g)
{
        product p;
        if (g->m > 0 && g->n > 0 && product_of(&p, g))
                multiply_whole(&p);
}

static bool too_large(const product *p)
{
        const int64_t most = LARGEST_SIZE;
        return p->m > most || p->n > most || p->k > most || p->a.ld > most || p->b.ld > most || p->ldc > most;
}

bool LG_CPU(gemm)(lg_queue *q, const lg_gemm_args *g)
{
        int64_t batches = 1;
        product p;
        for (int d = 0; d < g->batch_ndim; d++)
                batches *= g->batch[d];
        if (!lg_is_float(g->dtype))
                return lg_queue_fail(q, LG_BROKEN, "gemm: no kernel for dtype %d", (int)g->dtype);
        if (batches == 0 || g->m == 0 || g->n == 0)
                return true;
        if (!product_of(&p, g))
                return lg_queue_fail(q, LG_BROKEN, "gemm: neither stride of a matrix is 1");
        if (too_large(&p))
                return lg_queue_fail(q, LG_BROKEN, "gemm: a size above %lld", (long long)LARGEST_SIZE);
        if (lg_is_half(g->dtype))
                return multiply_half(q, g, &p, batches);
        multiply_batch(q, g, &p, batches);
        return true;
}
