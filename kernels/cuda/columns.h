/* columns.h - sums down the columns of (rows, columns): the split over blocks, and two stages in a fixed order. */
#ifndef LG_CUDA_COLUMNS_H
#define LG_CUDA_COLUMNS_H

#include "rows.h"

#define LG_BESIDE 4 /* columns per thread if pointers are aligned and the column count is a multiple; else 1 */
#define LG_CHUNK 32 /* rows that are added up in the compute type of T before the sum is added to a sum in f64 */

/* The split of a matrix over blocks. A thread has V neighbouring columns. A block has `across` threads over columns and
 * `along` threads over rows; it handles one of `tiles` ranges of columns and one of `splits` ranges of `share` rows. */
typedef struct lg_columns {
        int64_t rows, columns;
        int across, along;
        int64_t tiles, splits, share;
} lg_columns;

/* Returns a split: about 8 blocks per multiprocessor, but at least `least` rows per thread, or a single split. */
static inline lg_columns lg_columns_of(lg_queue *q, int64_t rows, int64_t columns, int v, int least)
{
        lg_columns c = {rows, columns, lg_across(columns / v, 32), 0, 0, 0, 0};
        c.along = LG_THREADS / c.across;
        c.tiles = (columns / v + c.across - 1) / c.across;
        int64_t wanted = (int64_t)lg_cuda(q)->processors * 8 / (c.tiles ? c.tiles : 1), room = rows / (c.along * least);
        c.splits = wanted < room ? wanted : room;
        c.splits = c.splits < 1 ? 1 : c.splits;
        c.share = (rows + c.splits - 1) / c.splits;
        c.splits = c.share ? (rows + c.share - 1) / c.share : 1;
        return c;
}

/* Sums the columns of a contiguous matrix of float dtype in f64 (relu_sums.cu). */
bool lg_cuda_column_sums(lg_queue *q, lg_dtype dtype, int64_t rows, int64_t columns, const void *x, void *sums);

/* Evaluates an expression with V, the columns per thread: LG_BESIDE if `even`, else 1. */
#define LG_WITH_BESIDE(even, ...)                                                                                      \
        ((even) ? [&] { constexpr int V = LG_BESIDE; return __VA_ARGS__; }()                                           \
                : [&] { constexpr int V = 1; return __VA_ARGS__; }())

/* The part of the matrix that a thread handles. */
struct lg_column_place {
        int64_t column, first, end; /* V columns from `column` on; rows first, first + along, ... below `end` */
        bool there;                 /* false if the thread is past the last column */
};

template <int V> static __device__ inline lg_column_place lg_column_place_of(const lg_columns &c)
{
        const int64_t tile = blockIdx.x % c.tiles, split = blockIdx.x / c.tiles;
        const int x = (int)threadIdx.x % c.across, y = (int)threadIdx.x / c.across;
        lg_column_place p;
        p.column = (tile * c.across + x) * V;
        p.there = p.column < c.columns;
        p.end = (split + 1) * c.share < c.rows ? (split + 1) * c.share : c.rows;
        p.first = p.there ? split * c.share + y : p.end;
        return p;
}

/* The count of some values, their mean, and the sum of the squared differences from the mean. */
struct lg_moments {
        double n, mean, squares;
        /* Adds the moments of another set (Chan, Golub, LeVeque 1983). If either set is empty, the term of delta is
         * left out: the square of a large mean may be infinite, and infinite times 0 is NaN. */
        __device__ inline void join(double other_n, double other_mean, double other_squares)
        {
                const double all = n + other_n, part = all > 0 ? other_n / all : 0, delta = other_mean - mean;
                mean += delta * part;
                squares += other_squares + (n > 0 && part > 0 ? delta * delta * n * part : 0);
                n = all;
        }
        /* Adds k values, given the sum and the sum of squares of (value - shift). */
        template <typename H> __device__ inline void take(int k, H shift, H sum, H sum_of_squares)
        {
                const double mean_of_these = (double)sum / (double)k;
                join(k, (double)shift + mean_of_these, (double)sum_of_squares - (double)sum * mean_of_these);
        }
};

/* Adds up pairs of sums over the splits, a warp for each column: to[k][column] = sum of parts[split][k][column], k = 0
 * or 1. Writes sum 0 to db and sum 1 to dw as well. to, dw and db may be NULL. */
template <typename H>
static __global__ void lg_join_columns(int64_t columns, int64_t splits, const double *parts, double *to, H *dw, H *db)
{
        const int64_t step = (int64_t)gridDim.x * (LG_THREADS / 32);
        const int lane = (int)threadIdx.x % 32;
        for (int64_t c = (int64_t)blockIdx.x * (LG_THREADS / 32) + threadIdx.x / 32; c < columns; c += step) {
                double sums[2] = {0, 0};
                for (int64_t s = lane; s < splits; s += 32) {
                        sums[0] += parts[2 * s * columns + c];
                        sums[1] += parts[(2 * s + 1) * columns + c];
                }
                lg_team_sums<32>(&sums[0], &sums[1], (double *)NULL);
                if (lane)
                        continue;
                if (to) {
                        to[c] = sums[0];
                        to[columns + c] = sums[1];
                }
                if (db)
                        db[c] = (H)sums[0];
                if (dw)
                        dw[c] = (H)sums[1];
        }
}

/* Adds up sums[0] and sums[1] of V columns over the rows of the block, into the part of its split. */
template <int V>
static __device__ inline void lg_column_part(const lg_columns &c, const lg_column_place &p, double (&sums)[2][V],
                                             double *parts)
{
        LG_SHARED(double, shared, 2 * V * LG_THREADS);
        const int me = (int)threadIdx.x;
        LG_UNROLL
        for (int j = 0; j < 2 * V; j++)
                shared[j * LG_THREADS + me] = sums[j / V][j % V];
        for (int half = c.along / 2; half; half /= 2) {
                __syncthreads();
                LG_UNROLL
                for (int j = 0; j < 2 * V; j++)
                        if (me < half * c.across)
                                shared[j * LG_THREADS + me] += shared[j * LG_THREADS + me + half * c.across];
        }
        if (me >= c.across || !p.there)
                return;
        double *to = parts + 2 * (blockIdx.x / c.tiles) * c.columns + p.column;
        LG_UNROLL
        for (int j = 0; j < 2 * V; j++)
                to[j / V * c.columns + j % V] = shared[j * LG_THREADS + me];
}

/* Computes (x - mean) r as (x - base) r + rest: base is the mean rounded to H, rest makes up for the rounding. */
template <typename H> struct lg_normal {
        H base, r, rest;
        __device__ inline void set(double mean, double by)
        {
                base = (H)mean;
                r = (H)by;
                rest = (H)(((double)base - mean) * by);
        }
        __device__ inline H operator()(H x) const
        {
                return (x - base) * r + rest;
        }
};

/* Sums g and g t down the columns of place p, into the block's part of parts; read(row, t, g) loads t and g. */
template <typename T, int V, typename F>
static __device__ inline void lg_slopes_down(const lg_columns &c, const lg_column_place &p, double *parts,
                                             const F &read)
{
        typedef LG_COMPUTE(T) H;
        double sums[2][V] = {{0}, {0}};
        for (int64_t row = p.first; row < p.end;) {
                const int64_t left = (p.end - row + c.along - 1) / c.along;
                const int k = left < LG_CHUNK ? (int)left : LG_CHUNK;
                H db[V] = {0}, dw[V] = {0};
                LG_UNROLL_BY(4)
                for (int i = 0; i < k; i++, row += c.along) {
                        H t[V], g[V];
                        read(row, t, g);
                        LG_UNROLL
                        for (int j = 0; j < V; j++) {
                                db[j] += g[j];
                                dw[j] += g[j] * t[j];
                        }
                }
                LG_UNROLL
                for (int j = 0; j < V; j++) {
                        sums[0][j] += (double)db[j];
                        sums[1][j] += (double)dw[j];
                }
        }
        lg_column_part<V>(c, p, sums, parts);
}

#endif
