/* reduce.cu - sums, means, norms, variances, and greatest and smallest elements or their indices, in a fixed order.
 *
 * A kept element, which is one of the result, is computed by a team: a thread, a warp or a block. If there are few kept
 * elements, several teams share one, and a second kernel joins their parts.
 */
#include "columns.h"
#include "shape.h"

/* ---- partial results: take() adds a pack, join() another partial result, below() reads that of a lane ---- */

template <typename T> static __device__ inline T from_lane(T v, int by)
{
        return __shfl_down_sync(0xffffffffu, v, (unsigned)by);
}

/* A sum in type S. A pack is added up in the faster type H first, unless its sum overflows H. */
template <typename H, typename S, bool SQUARES> struct sum_of {
        S sum;
        template <int V> __device__ inline void take(const H *x, int64_t, bool)
        {
                constexpr bool in_h = V > 1 && std::is_same<H, float>::value && !SQUARES;
                S part = 0;
                if constexpr (in_h)
                        part = (S)((x[0] + x[4]) + (x[1] + x[5])) + (S)((x[2] + x[6]) + (x[3] + x[7]));
                if (!in_h || part - part != 0) {
                        part = 0;
                        for (int j = 0; j < V; j++)
                                part += SQUARES ? (S)x[j] * (S)x[j] : (S)x[j];
                }
                sum += part;
        }
        __device__ inline void join(const sum_of &other, bool)
        {
                sum += other.sum;
        }
        __device__ inline sum_of below(int by) const
        {
                return sum_of{from_lane(sum, by)};
        }
        __device__ inline void finish(const lg_reduce_args &a, int64_t k, int64_t count) const
        {
                const S y = SQUARES ? (S)sqrt((double)sum) : a.kind == LG_REDUCE_MEAN ? sum / (S)count : sum;
                lg_store<S>(a.out, lg_is_float(a.dtype) ? a.dtype : LG_I64, k, y);
        }
};

template <typename H> struct variance_of {
        lg_moments m;
        template <int V> __device__ inline void take(const H *x, int64_t, bool)
        {
                const double shift = (double)x[0];
                double sum = 0, squares = 0;
                for (int j = 0; j < V; j++) {
                        const double d = (double)x[j] - shift;
                        sum += d;
                        squares += d * d;
                }
                m.take<double>(V, shift, sum, squares);
        }
        __device__ inline void join(const variance_of &other, bool)
        {
                m.join(other.m.n, other.m.mean, other.m.squares);
        }
        __device__ inline variance_of below(int by) const
        {
                return variance_of{{from_lane(m.n, by), from_lane(m.mean, by), from_lane(m.squares, by)}};
        }
        __device__ inline void finish(const lg_reduce_args &a, int64_t k, int64_t count) const
        {
                const double left = (double)count - a.correction;
                const double var = (count ? m.squares : 0) / (left > 0 ? left : 0);
                lg_store<double>(a.out, a.dtype, k, a.kind == LG_REDUCE_STD ? sqrt(var) : var);
        }
};

/* The greatest or least element and its index: NaN precedes all numbers, the lower index precedes equal elements. */
template <typename H> struct extreme_of {
        H value;
        int64_t at; /* index of the element; less than 0: no element seen yet */
        __device__ inline void consider(H x, int64_t x_at, bool least)
        {
                if (x_at < 0)
                        return;
                const bool x_nan = x != x, nan = value != value;
                const bool better = at < 0         ? true
                                    : x_nan || nan ? x_nan && (!nan || x_at < at)
                                                   : (least ? x < value : x > value) || (x == value && x_at < at);
                if (better) {
                        value = x;
                        at = x_at;
                }
        }
        template <int V> __device__ inline void take(const H *x, int64_t i, bool least)
        {
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        consider(x[j], i + j, least);
        }
        __device__ inline void join(const extreme_of &other, bool least)
        {
                consider(other.value, other.at, least);
        }
        __device__ inline extreme_of below(int by) const
        {
                return extreme_of{from_lane(value, by), from_lane(at, by)};
        }
        __device__ inline void finish(const lg_reduce_args &a, int64_t k, int64_t) const
        {
                if (a.kind == LG_REDUCE_ARGMAX || a.kind == LG_REDUCE_ARGMIN)
                        ((int64_t *)a.out)[k] = at;
                else
                        lg_store<H>(a.out, a.dtype, k, value);
        }
};

template <typename F> static __device__ inline F nothing()
{
        F f = {};
        if constexpr (std::is_same<F, extreme_of<float>>::value || std::is_same<F, extreme_of<double>>::value ||
                      std::is_same<F, extreme_of<int64_t>>::value)
                f.at = -1;
        return f;
}

/* ---- kernels ---- */

typedef struct plan {
        lg_walk<1> kept, reduced;
        int64_t keep, count, splits, share; /* share: elements per split, in whole packs */
        bool least;
} plan;

/* Joins the partial results of the TEAM threads of a team, in the first thread. */
template <typename F, int TEAM> static __device__ inline void gather_team(F *f, bool least)
{
        if constexpr (TEAM > 1)
                for (int by = 16; by; by /= 2) {
                        const F other = f->below(by);
                        f->join(other, least); /* past the last lane it is the lane's own, which never reaches the first
                                                  lane */
                }
        if constexpr (TEAM > 32) {
                LG_SHARED(F, warps, TEAM / 32);
                __syncthreads();
                if (threadIdx.x % 32 == 0)
                        warps[threadIdx.x / 32] = *f;
                __syncthreads();
                for (int i = 1; threadIdx.x == 0 && i < TEAM / 32; i++)
                        f->join(warps[i], least);
        }
}

/* Reduces the kept elements. With TEAM = 1, neighbouring threads have neighbouring kept elements. */
template <typename H, typename F, int TEAM, int V>
static __global__ void reduce_loop(lg_reduce_args a, plan p, F *parts)
{
        const int rank = lg_rank<TEAM>();
        const int64_t all = p.keep * p.splits, first = LG_FIRST_ROW(TEAM), step = LG_ROW_STEP(TEAM);
        for (int64_t i = first; i < all; i += step) {
                const int64_t split = i / p.keep, k = i - split * p.keep;
                const int64_t from = split * p.share, to = from + p.share < p.count ? from + p.share : p.count;
                F f = nothing<F>();
                int64_t base[1];
                lg_places(p.kept, k, base);
                for (int64_t r = from + rank * V; r < to; r += TEAM * V) {
                        int64_t at[1];
                        H x[V];
                        lg_places(p.reduced, r, at);
                        lg_load_pack<H, V>(a.in, a.dtype, base[0] + at[0], x);
                        f.template take<V>(x, r, p.least);
                }
                gather_team<F, TEAM>(&f, p.least);
                if (rank)
                        continue;
                if (parts)
                        parts[i] = f;
                else
                        f.finish(a, k, p.count);
        }
}

/* Joins the parts of all splits, a warp for each kept element. */
template <typename F> static __global__ void join_loop(lg_reduce_args a, plan p, const F *parts)
{
        for (int64_t k = LG_FIRST_ROW(32); k < p.keep; k += LG_ROW_STEP(32)) {
                F f = nothing<F>();
                for (int64_t s = lg_rank<32>(); s < p.splits; s += 32)
                        f.join(parts[s * p.keep + k], p.least);
                gather_team<F, 32>(&f, p.least);
                if (lg_rank<32>() == 0)
                        f.finish(a, k, p.count);
        }
}

/* ---- choice of the kernel ---- */

/* Splits the reduced elements over several teams of `team` threads where one per kept element would idle the GPU. */
static void split(lg_queue *q, plan *p, int team, int v)
{
        const int64_t wanted = (int64_t)lg_cuda(q)->processors * 4 * LG_THREADS, have = p->keep * team;
        const int64_t least = (int64_t)team * v * 8; /* least number of elements for which a split is worthwhile */
        int64_t splits = have ? wanted / have : 1, most = p->count / least;
        splits = splits < most ? splits : most;
        splits = splits < 1 ? 1 : splits < 1024 ? splits : 1024;
        p->share = (p->count + splits - 1) / splits;
        p->share = (p->share + v - 1) / v * v;
        p->splits = p->count ? (p->count + p->share - 1) / p->share : 1;
}

template <typename H, typename F, int TEAM, int V> static bool run(lg_queue *q, const lg_reduce_args *a, plan p)
{
        F *parts = NULL;
        split(q, &p, TEAM, V);
        if (p.splits > 1 && !(parts = (F *)q->workspace(q, (size_t)(p.keep * p.splits) * sizeof *parts)))
                return false;
        const int64_t teams = p.keep * p.splits, rows = LG_THREADS / TEAM, blocks = (teams + rows - 1) / rows;
        return lg_launch(q, "reduce", reduce_loop<H, F, TEAM, V>, blocks < 65536 ? blocks : 65536, *a, p, parts) &&
               (!parts ||
                lg_launch(q, "reduce (join)", join_loop<F>, lg_row_blocks(q, p.keep, 32), *a, p, (const F *)parts));
}

/* Returns whether the sums are those of the columns of a contiguous matrix, such as the gradient of a bias. */
static bool sums_columns(const lg_reduce_args *a, const plan &p)
{
        return a->kind == LG_REDUCE_SUM && p.kept.ndim == 1 && p.kept.strides[0][0] == 1 && p.reduced.ndim == 1 &&
               p.reduced.strides[0][0] == p.keep && p.keep >= 32 && p.count >= 8;
}

/* Chooses the kernel whose neighbouring threads read neighbours: along the reduced or the kept dimensions. */
template <typename H, typename F> static bool choose(lg_queue *q, const lg_reduce_args *a, const plan &p)
{
        const lg_walk<1> &r = p.reduced, &k = p.kept;
        const int64_t along_reduced = r.strides[0][r.ndim - 1], along_kept = k.strides[0][k.ndim - 1];
        const bool columns = p.keep >= 32 && llabs(along_kept) == 1 && llabs(along_reduced) != 1;
        bool packed = !columns && along_reduced == 1 && r.ndim == 1 && p.count % LG_PACKED == 0 &&
                      lg_packs<H>(r, 0, a->in, a->dtype);
        for (int d = 0; d < k.ndim; d++)
                packed = packed && k.strides[0][d] * (int64_t)lg_bytes_of(a->dtype) % 16 == 0;
        if (columns || p.count < 8)
                return run<H, F, 1, 1>(q, a, p);
        if (p.count < 512)
                return packed ? run<H, F, 32, LG_PACKED>(q, a, p) : run<H, F, 32, 1>(q, a, p);
        return packed ? run<H, F, LG_THREADS, LG_PACKED>(q, a, p) : run<H, F, LG_THREADS, 1>(q, a, p);
}

template <typename H, typename S> static bool reduce(lg_queue *q, const lg_reduce_args *a, const plan &p)
{
        if (a->kind == LG_REDUCE_SUM || a->kind == LG_REDUCE_MEAN)
                return choose<H, sum_of<H, S, false>>(q, a, p);
        if constexpr (!std::is_same<H, int64_t>::value) { /* norms and variances are those of floats */
                if (a->kind == LG_REDUCE_NORM)
                        return choose<H, sum_of<H, S, true>>(q, a, p);
                if (a->kind == LG_REDUCE_VAR || a->kind == LG_REDUCE_STD)
                        return choose<H, variance_of<H>>(q, a, p);
        }
        return choose<H, extreme_of<H>>(q, a, p);
}

extern "C" bool lg_cuda_reduce(lg_queue *q, const lg_reduce_args *a)
{
        plan p = {};
        p.keep = lg_count(a->kept_ndim, a->kept);
        p.count = lg_count(a->reduced_ndim, a->reduced);
        p.least = a->kind == LG_REDUCE_MIN || a->kind == LG_REDUCE_ARGMIN;
        if (p.keep == 0)
                return true;
        p.kept = lg_walk_of(a->kept_ndim, a->kept, {a->kept_strides}, false);
        p.reduced = lg_walk_of(a->reduced_ndim, a->reduced, {a->reduced_strides}, false);
        if (lg_is_float(a->dtype) && sums_columns(a, p))
                return lg_cuda_column_sums(q, a->dtype, p.count, p.keep, a->in, a->out);
        if (a->dtype == LG_F64)
                return reduce<double, double>(q, a, p);
        if (lg_is_float(a->dtype))
                return reduce<float, double>(q, a, p);
        return reduce<int64_t, int64_t>(q, a, p);
}
