/* batch_norm.cu - batch norm over (rows, channels): statistics of each column in two stages, then one pass for y. */
#include "columns.h"

/* ---- statistics ---- */

/* Updates element k of a running statistic: r += momentum * (v - r). Does nothing if r has no memory. */
static __device__ inline void move_running(const lg_running_stat &r, int64_t k, double v, double momentum)
{
        if (!r.at)
                return;
        const double was = lg_load<double>(r.at, r.dtype, k * r.stride);
        lg_store<double>(r.at, r.dtype, k * r.stride, was + momentum * (v - was));
}

/* Stores the mean and variance of column k and updates the running statistics, the variance with divisor rows - 1. */
static __device__ inline void store_moments(const lg_batch_norm_args &a, int64_t k, double mean, double var)
{
        const double n = (double)a.rows;
        a.mean[k] = mean;
        a.var[k] = var;
        if (a.rows == 0)
                return;
        move_running(a.running_mean, k, mean, a.momentum);
        move_running(a.running_var, k, n / (n - 1) * var, a.momentum);
}

/* Joins the moments of the block's threads along the rows; the first `across` threads get the result. */
template <int V> static __device__ inline void join_block(const lg_columns &c, lg_moments (&m)[V])
{
        LG_SHARED(double, means, V *LG_THREADS);
        LG_SHARED(double, squares, V *LG_THREADS);
        LG_SHARED(double, counts, LG_THREADS);
        const int me = (int)threadIdx.x;
        for (int half = c.along / 2; half; half /= 2) {
                /* The upper half writes, the lower half reads; each cell is written once, before it is read. */
                if (me >= half * c.across && me < 2 * half * c.across) {
                        counts[me] = m[0].n;
                        LG_UNROLL
                        for (int j = 0; j < V; j++) {
                                means[j * LG_THREADS + me] = m[j].mean;
                                squares[j * LG_THREADS + me] = m[j].squares;
                        }
                }
                __syncthreads();
                const int other = me + half * c.across;
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        if (me < half * c.across)
                                m[j].join(counts[other], means[j * LG_THREADS + other],
                                          squares[j * LG_THREADS + other]);
        }
}

/* Adds k elements of a column to m in f64, `stride` elements apart: used if their squares overflow f32. */
template <typename T>
static __device__ inline void take_wide(lg_moments *m, const T *x, int64_t stride, int k, double shift)
{
        double sum = 0, squares = 0;
        for (int i = 0; i < k; i++) {
                const double d = (double)lg_wide(x[i * stride]) - shift;
                sum += d;
                squares += d * d;
        }
        m->take(k, shift, sum, squares);
}

/* Adds k rows, `stride` elements apart, to the moments of V columns. The current mean is subtracted from each value
 * first, so that f32 sums stay exact beside a large mean. */
template <typename T, int V>
static __device__ inline void take_chunk(lg_moments (&m)[V], const T *x, int64_t stride, int k)
{
        typedef LG_COMPUTE(T) H;
        H shift[V], sum[V], squares[V], v[V];
        lg_read<T, V>(x, v);
        LG_UNROLL
        for (int j = 0; j < V; j++) {
                shift[j] = m[j].n > 0 ? (H)m[j].mean : v[j];
                sum[j] = squares[j] = 0;
        }
        LG_UNROLL_BY(4)
        for (int i = 0; i < k; i++) {
                lg_read<T, V>(x + i * stride, v);
                LG_UNROLL
                for (int j = 0; j < V; j++) {
                        const H d = v[j] - shift[j];
                        sum[j] += d;
                        squares[j] += d * d;
                }
        }
        LG_UNROLL
        for (int j = 0; j < V; j++)
                if (std::is_same<H, double>::value || squares[j] < (H)INFINITY)
                        m[j].take(k, shift[j], sum[j], squares[j]);
                else
                        take_wide(&m[j], x + j, stride, k, (double)shift[j]);
}

template <typename T, int V> static __global__ void moments_down(lg_batch_norm_args a, lg_columns c, double *parts)
{
        const T *x = (const T *)a.x;
        const lg_column_place p = lg_column_place_of<V>(c);
        lg_moments m[V];
        LG_UNROLL
        for (int j = 0; j < V; j++)
                m[j] = lg_moments{0, 0, 0};
        for (int64_t row = p.first; row < p.end;) {
                const int64_t left = (p.end - row + c.along - 1) / c.along;
                const int k = left < LG_CHUNK ? (int)left : LG_CHUNK;
                take_chunk<T, V>(m, x + row * c.columns + p.column, c.along * c.columns, k);
                row += k * c.along;
        }
        join_block<V>(c, m);
        if ((int)threadIdx.x >= c.across || !p.there)
                return;
        double *to = parts + 2 * (blockIdx.x / c.tiles) * c.columns + p.column;
        LG_UNROLL
        for (int j = 0; j < V; j++)
                if (c.splits == 1) {
                        store_moments(a, p.column + j, m[j].mean, m[j].squares / (double)c.rows);
                } else {
                        to[j] = m[j].mean;
                        to[c.columns + j] = m[j].squares;
                }
}

/* Joins the moments of the splits, whose row counts follow from c, to one mean and variance; a warp for each column. */
static __global__ void join_moments(lg_batch_norm_args a, lg_columns c, const double *parts)
{
        const int64_t step = (int64_t)gridDim.x * (LG_THREADS / 32);
        const int lane = (int)threadIdx.x % 32;
        for (int64_t k = (int64_t)blockIdx.x * (LG_THREADS / 32) + threadIdx.x / 32; k < c.columns; k += step) {
                double sum = 0, squares = 0, mean = 0;
                for (int pass = 0; pass < 2; pass++) {
                        const double base = pass ? sum : parts[k]; /* near the mean; equal to it if all splits agree */
                        sum = 0;
                        for (int64_t s = lane; s < c.splits; s += 32) {
                                const int64_t rest = c.rows - s * c.share;
                                const double n = (double)(rest < c.share ? rest : c.share);
                                const double d = parts[2 * s * c.columns + k] - base;
                                sum += n * (pass ? d * d : d);
                                squares += pass ? parts[(2 * s + 1) * c.columns + k] : 0;
                        }
                        lg_team_sums<32>(&sum, &squares, (double *)NULL);
                        sum /= (double)c.rows;
                        if (pass == 0)
                                mean = sum += base;
                }
                if (lane == 0)
                        store_moments(a, k, mean, sum + squares / (double)c.rows);
        }
}

/* ---- forward ---- */

/* Sets *mean and *var to the statistics for column k: those of the batch if a.trains, else the running ones. */
static __device__ inline void statistics_of(const lg_batch_norm_args &a, int64_t k, double *mean, double *var)
{
        *mean = a.trains ? a.mean[k]
                         : lg_load<double>(a.running_mean.at, a.running_mean.dtype, k * a.running_mean.stride);
        *var = a.trains ? a.var[k] : lg_load<double>(a.running_var.at, a.running_var.dtype, k * a.running_var.stride);
}

template <typename T, int V> static __global__ void normalise_down(lg_batch_norm_args a, lg_columns c)
{
        typedef LG_COMPUTE(T) H;
        const lg_column_place p = lg_column_place_of<V>(c);
        if (!p.there)
                return;
        const bool notes = !a.trains && blockIdx.x < c.tiles && (int)threadIdx.x < c.across;
        H base[V], scale[V], shift[V];
        LG_UNROLL
        for (int j = 0; j < V; j++) {
                const int64_t k = p.column + j;
                double mean, var;
                statistics_of(a, k, &mean, &var);
                if (notes) {
                        a.mean[k] = mean;
                        a.var[k] = var;
                }
                const double r = 1 / sqrt(var + a.eps), w = a.w ? r * (double)((const H *)a.w)[k] : r;
                base[j] = (H)mean;
                scale[j] = (H)w;
                shift[j] = (H)(((double)base[j] - mean) * w + (a.b ? (double)((const H *)a.b)[k] : 0));
        }
        LG_UNROLL_BY(4)
        for (int64_t row = p.first; row < p.end; row += c.along) {
                H v[V], z[V];
                lg_read<T, V>((const T *)a.x + row * c.columns + p.column, v);
                if (a.z)
                        lg_read<T, V>((const T *)a.z + row * c.columns + p.column, z);
                LG_UNROLL
                for (int j = 0; j < V; j++) {
                        v[j] = (v[j] - base[j]) * scale[j] + shift[j];
                        v[j] = a.z ? v[j] + z[j] : v[j];
                        v[j] = a.relu && v[j] <= 0 ? 0 : v[j];
                }
                lg_write<T, V>((T *)a.y + row * c.columns + p.column, v);
        }
}

template <typename T, int V> static bool find_statistics(lg_queue *q, const lg_batch_norm_args *a)
{
        const lg_columns c = lg_columns_of(q, a->rows, a->channels, V, 16);
        double *parts = (double *)q->workspace(q, (size_t)(2 * c.splits * c.columns) * sizeof *parts);
        return parts && lg_launch(q, "batch_norm (moments)", moments_down<T, V>, c.tiles * c.splits, *a, c, parts) &&
               (c.splits == 1 || lg_launch(q, "batch_norm (join)", join_moments, lg_row_blocks(q, c.columns, 32), *a, c,
                                           (const double *)parts));
}

template <typename T, int V> static bool batch_norm(lg_queue *q, const lg_batch_norm_args *a)
{
        const lg_columns out = lg_columns_of(q, a->rows, a->channels, V, 8);
        if (a->trains && !find_statistics<T, V>(q, a))
                return false;
        return (a->trains && a->rows == 0) ||
               lg_launch(q, "batch_norm", normalise_down<T, V>, out.tiles * out.splits, *a, out);
}

extern "C" bool lg_cuda_batch_norm(lg_queue *q, const lg_batch_norm_args *a)
{
        const bool even = lg_even(LG_BESIDE, a->channels, a->x, a->y, a->z);
        return a->channels == 0 || LG_WITH_STORED(a->dtype, LG_WITH_BESIDE(even, batch_norm<T, V>(q, a)));
}

/* ---- the derivative ---- */

/* Reads V columns of g at offset `at`; if y is given, as 0 except where y > 0 (the derivative of ReLU). */
template <typename T, int V>
static __device__ inline void read_passed(const lg_batch_norm_vjp_args &a, int64_t at, LG_COMPUTE(T) (&g)[V])
{
        LG_COMPUTE(T) y[V];
        lg_read<T, V>((const T *)a.g + at, g);
        if (!a.y)
                return;
        lg_read<T, V>((const T *)a.y + at, y);
        LG_UNROLL
        for (int j = 0; j < V; j++)
                g[j] = y[j] > 0 ? g[j] : 0;
}

/* Returns the normalisation (x - mean) / sqrt(var + eps) of column k. */
template <typename H> static __device__ inline lg_normal<H> normal_of(const lg_batch_norm_vjp_args &a, int64_t k)
{
        lg_normal<H> n;
        n.set(a.mean[k], 1 / sqrt(a.var[k] + a.eps));
        return n;
}

template <typename T, int V> static __global__ void slopes_down(lg_batch_norm_vjp_args a, lg_columns c, double *parts)
{
        typedef LG_COMPUTE(T) H;
        const lg_column_place p = lg_column_place_of<V>(c);
        lg_normal<H> normal[V] = {};
        LG_UNROLL
        for (int j = 0; p.there && j < V; j++)
                normal[j] = normal_of<H>(a, p.column + j);
        lg_slopes_down<T, V>(c, p, parts, [&](int64_t row, H(&t)[V], H(&g)[V]) {
                lg_read<T, V>((const T *)a.x + row * c.columns + p.column, t);
                read_passed<T, V>(a, row * c.columns + p.column, g);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        t[j] = normal[j](t[j]);
        });
}

template <typename T, int V>
static __global__ void input_slopes(lg_batch_norm_vjp_args a, lg_columns c, const double *sums)
{
        typedef LG_COMPUTE(T) H;
        const lg_column_place p = lg_column_place_of<V>(c);
        if (!p.there)
                return;
        lg_normal<H> normal[V];
        H factor[V], mean_g[V], mean_t[V];
        LG_UNROLL
        for (int j = 0; j < V; j++) {
                const int64_t k = p.column + j;
                normal[j] = normal_of<H>(a, k);
                factor[j] = a.w ? ((const H *)a.w)[k] * normal[j].r : normal[j].r;
                mean_g[j] = (H)(sums[k] / (double)a.rows);
                mean_t[j] = (H)(sums[c.columns + k] / (double)a.rows);
        }
        LG_UNROLL_BY(2)
        for (int64_t row = p.first; row < p.end; row += c.along) {
                const int64_t at = row * c.columns + p.column;
                H x[V], g[V];
                lg_read<T, V>((const T *)a.x + at, x);
                read_passed<T, V>(a, at, g);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        x[j] = factor[j] * (a.trains ? g[j] - mean_g[j] - normal[j](x[j]) * mean_t[j] : g[j]);
                if (a.dx)
                        lg_write<T, V>((T *)a.dx + at, x);
                if (a.dz)
                        lg_write<T, V>((T *)a.dz + at, g);
        }
}

template <typename T, int V> static bool batch_norm_vjp(lg_queue *q, const lg_batch_norm_vjp_args *a)
{
        typedef LG_COMPUTE(T) H;
        const lg_columns c = lg_columns_of(q, a->rows, a->channels, V, 16);
        const lg_columns out = lg_columns_of(q, a->rows, a->channels, V, 8);
        const size_t column_bytes = (size_t)(2 * c.columns) * sizeof(double);
        double *parts = (double *)q->workspace(q, (size_t)c.splits * column_bytes);
        double *sums = (double *)q->workspace(q, column_bytes);
        if (!parts || !sums ||
            !lg_launch(q, "batch_norm_vjp (sums)", slopes_down<T, V>, c.tiles * c.splits, *a, c, parts) ||
            !lg_launch(q, "batch_norm_vjp (join)", lg_join_columns<H>, lg_row_blocks(q, c.columns, 32), c.columns,
                       c.splits, (const double *)parts, sums, (H *)a->dw, (H *)a->db))
                return false;
        return (!a->dx && !a->dz) || a->rows == 0 ||
               lg_launch(q, "batch_norm_vjp", input_slopes<T, V>, out.tiles * out.splits, *a, out,
                         (const double *)sums);
}

extern "C" bool lg_cuda_batch_norm_vjp(lg_queue *q, const lg_batch_norm_vjp_args *a)
{
        const bool even = lg_even(LG_BESIDE, a->channels, a->x, a->g, a->y, a->dx, a->dz);
        return a->channels == 0 || LG_WITH_STORED(a->dtype, LG_WITH_BESIDE(even, batch_norm_vjp<T, V>(q, a)));
}
