/* layer_norm.cu - layer, group and RMS norm: a thread, warp or block for each row; weights' gradients in two stages. */
#include "columns.h"

/* Reads the weights of elements i to i + V - 1 of a row; element i has weight first + i / inner. */
template <typename H, int V>
static __device__ inline void weights_at(const void *w, int64_t first, int64_t inner, int64_t i, H *to)
{
        const H *from = (const H *)w + first;
        if (inner == 1) {
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        to[j] = from[i + j];
                return;
        }
        const uint32_t by = (uint32_t)inner;
        const bool small = i + V <= UINT32_MAX && inner <= UINT32_MAX, one = inner % V == 0;
        LG_UNROLL
        for (int j = 0; j < V; j++)
                to[j] = j && one ? to[0] : from[small ? (int64_t)((uint32_t)(i + j) / by) : (i + j) / inner];
}

/* Returns the group of a row, which selects its weights. */
static __device__ inline int64_t group_of(int64_t row, int64_t groups)
{
        return groups == 1 ? 0 : row % groups;
}

/* Reads a row into the registers v and returns its moments, summed in S. A first pass finds the mean roughly, so that
 * the differences from the mean are exact in the second. */
template <typename S, typename T, int TEAM, int E, int V>
static __device__ inline lg_moments kept_moments(const T *x, int64_t n, double per, bool rms, LG_COMPUTE(T) * v,
                                                 double *words)
{
        S sum = 0, squares = 0, base = rms ? (S)0 : (S)lg_wide(x[0]), *shared = (S *)words;
        lg_each<TEAM, E, V>(n, [&](int k, int64_t i) {
                lg_read<T, V>(x + i, v + k);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        sum += (S)v[k + j] - base;
        });
        if (!rms)
                base += lg_team_sum<TEAM>(sum, shared) / (S)n;
        sum = 0;
        lg_each<TEAM, E, V>(n, [&](int k, int64_t) {
                LG_UNROLL
                for (int j = 0; j < V; j++) {
                        const S d = (S)v[k + j] - base;
                        sum += d;
                        squares += d * d;
                }
        });
        lg_team_sums<TEAM>(&sum, &squares, shared);
        const double rest = rms ? 0 : (double)sum * per;
        return lg_moments{(double)n, (double)base + rest, (double)squares - (rms ? 0 : (double)sum * rest)};
}

/* Returns the moments of a row that does not fit in registers, in one pass: those of each thread, then all joined. */
template <typename S, typename T, int V>
static __device__ inline lg_moments long_moments(const T *x, int64_t n, double per, bool rms, double *shared)
{
        typedef LG_COMPUTE(T) H;
        lg_moments m = {0, 0, 0};
        for (int64_t i = (int64_t)threadIdx.x * V; i < n;) {
                S sum = 0, squares = 0, shift = rms ? (S)0 : m.n > 0 ? (S)m.mean : (S)lg_wide(x[i]);
                H v[V];
                int k = 0;
                for (; k < LG_CHUNK && i < n; k += V, i += LG_THREADS * V) {
                        lg_read<T, V>(x + i, v);
                        LG_UNROLL
                        for (int j = 0; j < V; j++) {
                                const S d = (S)v[j] - shift;
                                sum += d;
                                squares += d * d;
                        }
                }
                if (rms)
                        m.squares += (double)squares;
                else
                        m.take(k, shift, sum, squares);
        }
        double sum = m.n * m.mean, none = 0;
        lg_team_sums<LG_THREADS>(&sum, &none, shared);
        const double mean = sum * per, away = m.n > 0 ? m.mean - mean : 0;
        double squares = m.squares + m.n * away * away;
        lg_team_sums<LG_THREADS>(&squares, &none, shared);
        return lg_moments{(double)n, rms ? 0 : mean, squares};
}

template <typename S, typename T, int TEAM, int E, int V>
static __device__ inline lg_moments moments_in(const T *x, int64_t n, double per, bool rms, LG_COMPUTE(T) * v,
                                               double *shared)
{
        if constexpr (E == 0)
                return long_moments<S, T, V>(x, n, per, rms, shared);
        else
                return kept_moments<S, T, TEAM, E, V>(x, n, per, rms, v, shared);
}

#define LEAST_SQUARES 1e-30 /* below, squares may be too small for f32 */

/* Returns the moments of a row. If squares may overflow or underflow f32, the whole team computes them again
 * in f64. */
template <typename T, int TEAM, int E, int V>
static __device__ inline lg_moments row_moments(const T *x, int64_t n, double per, bool rms, LG_COMPUTE(T) * v,
                                                double *shared)
{
        typedef LG_COMPUTE(T) H;
        const lg_moments m = moments_in<H, T, TEAM, E, V>(x, n, per, rms, v, shared);
        if (std::is_same<H, double>::value || (m.squares > LEAST_SQUARES && m.squares < (double)INFINITY))
                return m;
        return moments_in<double, T, TEAM, E, V>(x, n, per, rms, v, shared);
}

/* Returns 1 / sqrt(x). Unless H is double, a root in f32 is improved to a relative error below 2^-43 by a step of
 * Newton's method: division and root in f64 take longer than all else in a short row on GPUs with few f64 units. */
template <typename H> static __device__ inline double reciprocal_root(double x)
{
        const float narrow = (float)x;
        if (std::is_same<H, double>::value || !(narrow > 1e-30f && narrow < 1e30f))
                return 1 / sqrt(x);
        const double rough = (double)(1 / sqrtf(narrow));
        return rough * (1.5 - 0.5 * x * rough * rough);
}

/* per: 1 / (elements of a row) */
template <typename T, int TEAM, int E, int V> static __global__ void layer_norm_rows(lg_layer_norm_args a, double per)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(double, shared, LG_TEAM_WORDS);
        const int64_t n = a.channels * a.inner;
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.outer * a.groups; row += LG_ROW_STEP(TEAM)) {
                const T *x = (const T *)a.x + row * n;
                const int64_t first = group_of(row, a.groups) * a.channels;
                H v[E ? E : V];
                const lg_moments m = row_moments<T, TEAM, E, V>(x, n, per, a.rms, v, shared);
                lg_normal<H> scale;
                const double rstd = reciprocal_root<H>(m.squares * per + a.eps);
                scale.set(m.mean, rstd);
                if (lg_rank<TEAM>() == 0) {
                        a.mean[row] = m.mean;
                        a.rstd[row] = rstd;
                }
                lg_each<TEAM, E, V>(n, [&](int k, int64_t i) {
                        H w[V];
                        if (E == 0)
                                lg_read<T, V>(x + i, v);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                v[k + j] = scale(v[k + j]);
                        if (a.w) {
                                weights_at<H, V>(a.w, first, a.inner, i, w);
                                LG_UNROLL
                                for (int j = 0; j < V; j++)
                                        v[k + j] *= w[j];
                        }
                        if (a.b) {
                                weights_at<H, V>(a.b, first, a.inner, i, w);
                                LG_UNROLL
                                for (int j = 0; j < V; j++)
                                        v[k + j] += w[j];
                        }
                        lg_write<T, V>((T *)a.y + row * n + i, v + k);
                });
        }
}

extern "C" bool lg_cuda_layer_norm(lg_queue *q, const lg_layer_norm_args *a)
{
        const int64_t rows = a->outer * a->groups, n = a->channels * a->inner;
        return rows * n == 0 ||
               LG_WITH_STORED(a->dtype, LG_LAUNCH_ROWS(q, "layer_norm", layer_norm_rows, rows, n,
                                                       lg_even(LG_PACK(T), n, a->x, a->y), *a, 1 / (double)n));
}

/* ---- the derivative with respect to x ---- */

template <typename T, int TEAM, int E, int V> static __global__ void input_slopes(lg_layer_norm_vjp_args a)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(H, shared, LG_TEAM_WORDS);
        const int64_t n = a.channels * a.inner;
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.outer * a.groups; row += LG_ROW_STEP(TEAM)) {
                const int64_t first = group_of(row, a.groups) * a.channels;
                lg_normal<H> scale;
                scale.set(a.mean[row], a.rstd[row]);
                H t[E ? E : V], g[E ? E : V], of_g = 0, of_t = 0;
                auto fetch = [&](int k, int64_t i) {
                        H w[V];
                        lg_read<T, V>((const T *)a.x + row * n + i, t + k);
                        lg_read<T, V>((const T *)a.g + row * n + i, g + k);
                        if (a.w)
                                weights_at<H, V>(a.w, first, a.inner, i, w);
                        LG_UNROLL
                        for (int j = 0; j < V; j++) {
                                t[k + j] = scale(t[k + j]);
                                g[k + j] *= a.w ? w[j] : (H)1;
                        }
                };
                lg_each<TEAM, E, V>(n, [&](int k, int64_t i) {
                        fetch(k, i);
                        LG_UNROLL
                        for (int j = 0; j < V; j++) {
                                of_g += g[k + j];
                                of_t += g[k + j] * t[k + j];
                        }
                });
                lg_team_sums<TEAM>(&of_g, &of_t, shared);
                of_g = a.rms ? (H)0 : of_g / (H)n;
                of_t /= (H)n;
                lg_each<TEAM, E, V>(n, [&](int k, int64_t i) {
                        if (E == 0)
                                fetch(k, i);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                g[k + j] = scale.r * (g[k + j] - of_g - t[k + j] * of_t);
                        lg_write<T, V>((T *)a.dx + row * n + i, g + k);
                });
        }
}

/* ---- the derivatives with respect to w and b ---- */

/* Sums if inner is 1: down the columns of (outer, groups * channels); the V columns of a thread are of one group. */
template <typename T, int V> static __global__ void weight_slopes(lg_layer_norm_vjp_args a, lg_columns c, double *parts)
{
        typedef LG_COMPUTE(T) H;
        const lg_column_place p = lg_column_place_of<V>(c);
        const int64_t group = a.groups == 1 ? 0 : p.column / a.channels;
        lg_slopes_down<T, V>(c, p, parts, [&](int64_t row, H(&t)[V], H(&g)[V]) {
                lg_normal<H> normal;
                normal.set(a.mean[row * a.groups + group], a.rstd[row * a.groups + group]);
                lg_read<T, V>((const T *)a.x + row * c.columns + p.column, t);
                lg_read<T, V>((const T *)a.g + row * c.columns + p.column, g);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        t[j] = normal(t[j]);
        });
}

/* Sums if inner > 1: a team for each (outer, group, channel), whose elements are contiguous. */
template <typename T, int TEAM> static __global__ void channel_slopes(lg_layer_norm_vjp_args a, double *parts)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(double, shared, LG_TEAM_WORDS);
        const int64_t weights = a.groups * a.channels;
        for (int64_t s = LG_FIRST_ROW(TEAM); s < a.outer * weights; s += LG_ROW_STEP(TEAM)) {
                const T *x = (const T *)a.x + s * a.inner, *g = (const T *)a.g + s * a.inner;
                lg_normal<H> scale;
                scale.set(a.mean[s / a.channels], a.rstd[s / a.channels]);
                double sums[2] = {0, 0};
                for (int64_t i = lg_rank<TEAM>(); i < a.inner;) {
                        H db = 0, dw = 0;
                        for (int k = 0; k < LG_CHUNK && i < a.inner; k++, i += TEAM) {
                                const H of = lg_wide(g[i]);
                                db += of;
                                dw += of * scale(lg_wide(x[i]));
                        }
                        sums[0] += (double)db;
                        sums[1] += (double)dw;
                }
                lg_team_sums<TEAM>(&sums[0], &sums[1], shared);
                if (lg_rank<TEAM>() == 0) {
                        parts[s / weights * 2 * weights + s % weights] = sums[0];
                        parts[(s / weights * 2 + 1) * weights + s % weights] = sums[1];
                }
        }
}

/* Computes the sums of each split into *ret_parts, scratch memory, and sets *ret_splits to the number of splits. */
template <typename T>
static bool weight_parts(lg_queue *q, const lg_layer_norm_vjp_args *a, double **ret_parts, int64_t *ret_splits)
{
        const int64_t weights = a->groups * a->channels, count = a->outer * weights;
        const bool even = lg_even(LG_BESIDE, a->channels, a->x, a->g);
        const lg_columns c = lg_columns_of(q, a->outer, weights, even ? LG_BESIDE : 1, 16);
        const int64_t splits = a->inner == 1 ? c.splits : a->outer;
        double *parts = (double *)q->workspace(q, (size_t)(2 * splits * weights) * sizeof *parts);
        *ret_parts = parts;
        *ret_splits = splits;
        if (!parts)
                return false;
        if (a->inner == 1)
                return LG_WITH_BESIDE(even, lg_launch(q, "layer_norm_vjp (sums)", weight_slopes<T, V>,
                                                      c.tiles * c.splits, *a, c, parts));
        return a->inner <= 16 ? lg_launch(q, "layer_norm_vjp (sums)", channel_slopes<T, 1>, lg_row_blocks(q, count, 1),
                                          *a, parts)
               : a->inner <= 4096 ? lg_launch(q, "layer_norm_vjp (sums)", channel_slopes<T, 32>,
                                              lg_row_blocks(q, count, 32), *a, parts)
                                  : lg_launch(q, "layer_norm_vjp (sums)", channel_slopes<T, LG_THREADS>,
                                              lg_row_blocks(q, count, LG_THREADS), *a, parts);
}

template <typename T> static bool layer_norm_vjp(lg_queue *q, const lg_layer_norm_vjp_args *a)
{
        typedef LG_COMPUTE(T) H;
        const int64_t rows = a->outer * a->groups, n = a->channels * a->inner, weights = a->groups * a->channels;
        double *parts = NULL;
        int64_t splits = 0;
        if (a->dx && rows * n > 0 &&
            !LG_LAUNCH_ROWS(q, "layer_norm_vjp", input_slopes, rows, n, lg_even(LG_PACK(T), n, a->x, a->g, a->dx), *a))
                return false;
        if (!(a->dw || a->db) || weights == 0)
                return true;
        if (rows * n > 0 && !weight_parts<T>(q, a, &parts, &splits))
                return false;
        return lg_launch(q, "layer_norm_vjp (join)", lg_join_columns<H>, lg_row_blocks(q, weights, 32), weights, splits,
                         (const double *)parts, (double *)NULL, (H *)a->dw, (H *)a->db);
}

extern "C" bool lg_cuda_layer_norm_vjp(lg_queue *q, const lg_layer_norm_vjp_args *a)
{
        return LG_WITH_STORED(a->dtype, layer_norm_vjp<T>(q, a));
}
