/* relu_sums.cu - the gradient through a bias and a ReLU (g where y > 0, else 0) and its column sums, in one pass; and
 * column sums alone. */
#include "columns.h"

/* Computes out and the column sums, or without RELU the column sums of g, for which rows are added up in f64 only. */
template <typename T, int V, bool RELU>
static __global__ void pass_down(lg_relu_sums_args a, lg_columns c, double *parts)
{
        typedef LG_COMPUTE(T) H;
        typedef typename std::conditional<RELU, H, double>::type S;
        const lg_column_place p = lg_column_place_of<V>(c);
        double sums[2][V] = {{0}}; /* sums[1] is unused; lg_column_part() adds up pairs of sums */
        for (int64_t first = p.first; first < p.end; first += (int64_t)c.along * LG_CHUNK) {
                S some[V] = {0};
                LG_UNROLL_BY(4)
                for (int64_t row = first; row < p.end && row < first + (int64_t)c.along * LG_CHUNK; row += c.along) {
                        const int64_t at = row * c.columns + p.column;
                        H y[V], g[V];
                        lg_read<T, V>((const T *)a.g + at, g);
                        if (RELU)
                                lg_read<T, V>((const T *)a.y + at, y);
                        LG_UNROLL
                        for (int j = 0; j < V; j++) {
                                g[j] = !RELU || y[j] > 0 ? g[j] : (H)0;
                                some[j] += (S)g[j];
                        }
                        if (RELU)
                                lg_write<T, V>((T *)a.out + at, g);
                }
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        sums[0][j] += (double)some[j];
        }
        lg_column_part<V>(c, p, sums, parts);
        if (c.splits > 1 || (int)threadIdx.x >= c.across || !p.there)
                return;
        for (int j = 0; j < V; j++) /* parts that this thread wrote itself in lg_column_part() */
                lg_put((T *)a.sums + p.column + j, parts[p.column + j]);
}

template <typename T> static __global__ void join_parts(int64_t columns, int64_t splits, const double *parts, T *sums)
{
        for (int64_t c = LG_FIRST; c < columns; c += LG_STEP) {
                double sum = 0;
                for (int64_t s = 0; s < splits; s++)
                        sum += parts[2 * s * columns + c];
                lg_put(sums + c, sum);
        }
}

template <typename T, int V> static bool relu_sums(lg_queue *q, const lg_relu_sums_args *a)
{
        const lg_columns c = lg_columns_of(q, a->rows, a->columns, V, 16);
        double *parts = (double *)q->workspace(q, (size_t)(2 * c.splits * c.columns) * sizeof *parts);
        return parts &&
               lg_launch(q, "relu_sums", a->y ? pass_down<T, V, true> : pass_down<T, V, false>, c.tiles * c.splits, *a,
                         c, parts) &&
               (c.splits == 1 || lg_launch(q, "relu_sums (join)", join_parts<T>, lg_blocks(q, c.columns), c.columns,
                                           c.splits, (const double *)parts, (T *)a->sums));
}

extern "C" bool lg_cuda_relu_sums(lg_queue *q, const lg_relu_sums_args *a)
{
        return LG_WITH_STORED(
                a->dtype, LG_WITH_BESIDE(lg_even(LG_BESIDE, a->columns, a->y, a->g, a->out), relu_sums<T, V>(q, a)));
}

bool lg_cuda_column_sums(lg_queue *q, lg_dtype dtype, int64_t rows, int64_t columns, const void *x, void *sums)
{
        lg_relu_sums_args a = {};
        a.dtype = dtype;
        a.rows = rows;
        a.columns = columns;
        a.g = x;
        a.sums = sums;
        return lg_cuda_relu_sums(q, &a);
}
