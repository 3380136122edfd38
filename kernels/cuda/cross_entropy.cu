/* cross_entropy.cu - cross-entropy, its derivative and class weights: a thread, warp or block for each row. */
#include "scores.h"

/* Returns whether the row's label is a class. Any other label but ignore_index is recorded in *error (if not NULL). */
static __device__ inline bool counts(const lg_cross_entropy_args &a, int64_t row, lg_device_error *error)
{
        int64_t t = a.labels[row];
        if (t == a.ignore_index)
                return false;
        if (t >= 0 && t < a.classes)
                return true;
        if (error)
                lg_note(error, a.origin, t, a.classes);
        return false;
}

/* The result of a block: the sum of its rows' losses and the number of rows that count. */
typedef struct part {
        double loss, rows;
} part;

/* Returns the loss of a row without its weight, to the first thread of the team. All threads of the team call it. */
template <typename T, int TEAM, int E, int V>
static __device__ inline double loss_of(const lg_cross_entropy_args &a, int64_t row, LG_COMPUTE(T) * shared)
{
        typedef LG_COMPUTE(T) H;
        const T *x = (const T *)a.x + row * a.classes;
        lg_scores<T, TEAM, E, V> s;
        s.measure(x, a.classes, shared);
        H all = 0;
        if (a.label_smoothing != 0) {
                s.each(a.classes, [&](int64_t, H *d) {
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                all += d[j];
                });
                all = lg_team_sum<TEAM>(all, shared);
        }
        if (lg_rank<TEAM>() != 0)
                return 0;
        double log_sum = log((double)s.sum), own = log_sum - (double)(lg_wide(x[a.labels[row]]) - s.top);
        if (a.label_smoothing == 0)
                return own;
        double each = a.label_smoothing / (double)a.classes;
        return (1 - a.label_smoothing) * own + each * ((double)a.classes * log_sum - (double)all);
}

static __device__ inline void put_loss(const lg_cross_entropy_args &a, double loss, double rows)
{
        lg_store<double>(a.out, a.dtype == LG_F64 ? LG_F64 : LG_F32, 0, a.reduction == LG_MEAN ? loss / rows : loss);
}

template <typename T, int TEAM, int E, int V>
static __global__ void losses(lg_cross_entropy_args a, part *parts, lg_device_error *error)
{
        LG_SHARED(LG_COMPUTE(T), shared, LG_TEAM_WORDS);
        LG_SHARED(double, sums, LG_TEAM_WORDS);
        double loss = 0, rows = 0;
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.rows; row += LG_ROW_STEP(TEAM)) {
                const bool first = lg_rank<TEAM>() == 0, valid = counts(a, row, first ? error : NULL);
                double own = valid ? loss_of<T, TEAM, E, V>(a, row, shared) : 0;
                if (a.reduction == LG_NONE && first)
                        ((LG_COMPUTE(T) *)a.out)[row] = (LG_COMPUTE(T))own;
                loss += own;
                rows += valid && first;
        }
        if (a.reduction == LG_NONE)
                return;
        lg_team_sums<LG_THREADS>(&loss, &rows, sums);
        if (threadIdx.x != 0)
                return;
        if (gridDim.x == 1)
                put_loss(a, loss, rows);
        else
                parts[blockIdx.x] = part{loss, rows};
}

static __global__ void add_parts(lg_cross_entropy_args a, const part *parts, int64_t count)
{
        LG_SHARED(double, sums, LG_TEAM_WORDS);
        double loss = 0, rows = 0;
        for (int64_t i = threadIdx.x; i < count; i += LG_THREADS) {
                loss += parts[i].loss;
                rows += parts[i].rows;
        }
        lg_team_sums<LG_THREADS>(&loss, &rows, sums);
        if (threadIdx.x == 0)
                put_loss(a, loss, rows);
}

extern "C" bool lg_cuda_cross_entropy(lg_queue *q, const lg_cross_entropy_args *a)
{
        int64_t n = a->classes, count = lg_row_blocks(q, a->rows, n <= 16 ? 1 : n <= 1024 ? 32 : LG_THREADS);
        part *parts = (part *)q->workspace(q, (size_t)(count + 1) * sizeof *parts);
        lg_device_error *error = lg_cuda(q)->error;
        if (!parts || !LG_WITH_STORED(a->dtype, LG_LAUNCH_ROWS(q, "cross_entropy", losses, a->rows, n,
                                                               lg_even(LG_PACK(T), n, a->x), *a, parts, error)))
                return false;
        return a->reduction == LG_NONE || count == 1 ||
               lg_launch(q, "cross_entropy (sum)", add_parts, 1, *a, parts, count);
}

/* ---- the derivative and class weights, for which rows are counted first ---- */

static __global__ void count_rows(lg_cross_entropy_args a, unsigned long long *ret, lg_device_error *error)
{
        LG_SHARED(int64_t, sums, LG_THREADS / 32);
        int64_t n = 0;
        for (int64_t i = LG_FIRST; i < a.rows; i += LG_STEP)
                n += counts(a, i, error);
        n = lg_block_sum(n, sums);
        if (threadIdx.x == 0 && n)
                atomicAdd(ret, (unsigned long long)n);
}

static bool count_into(lg_queue *q, const lg_cross_entropy_args *a, unsigned long long **ret)
{
        *ret = (unsigned long long *)q->workspace(q, sizeof **ret);
        return *ret && lg_cuda_good(q, "cudaMemsetAsync", cudaMemsetAsync(*ret, 0, sizeof **ret, lg_cuda(q)->stream)) &&
               lg_launch(q, "cross_entropy (count)", count_rows, a->rows ? lg_blocks(q, a->rows) : 0, *a, *ret,
                         lg_cuda(q)->error);
}

static __device__ inline double weight_of(const lg_cross_entropy_args &a, const unsigned long long *counted)
{
        return a.reduction == LG_MEAN ? 1 / (double)*counted : 1;
}

/* Returns 1 / (rows that count) for MEAN, where each block counts all rows by itself. */
static __device__ inline double weight_of(const lg_cross_entropy_args &a)
{
        LG_SHARED(int64_t, sums, LG_THREADS / 32);
        LG_SHARED(double, weight, 1);
        int64_t n = 0;
        for (int64_t i = threadIdx.x; i < a.rows; i += LG_THREADS)
                n += counts(a, i, NULL);
        n = lg_block_sum(n, sums);
        if (threadIdx.x == 0)
                *weight = 1 / (double)n;
        __syncthreads();
        return *weight;
}

#define FEW_ROWS 4096 /* most rows for which each block counts all rows by itself */

template <typename T, int TEAM, int E, int V>
static __global__ void loss_slopes(lg_cross_entropy_args a, const unsigned long long *counted)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(H, shared, LG_TEAM_WORDS);
        const H weight = (H)(a.reduction != LG_MEAN ? 1 : counted ? weight_of(a, counted) : weight_of(a));
        const H each = (H)(a.label_smoothing / (double)a.classes);
        const H rest = (H)(1 - a.label_smoothing);
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.rows; row += LG_ROW_STEP(TEAM)) {
                T *to = (T *)a.out + row * a.classes;
                if (!counts(a, row, NULL)) {
                        const H none[V] = {0};
                        lg_each<TEAM, E, V>(a.classes, [&](int, int64_t i) { lg_write<T, V>(to + i, none); });
                        continue;
                }
                const int64_t label = a.labels[row];
                const H w = ((const H *)a.g)[a.reduction == LG_NONE ? row : 0] * weight;
                lg_scores<T, TEAM, E, V> s;
                s.measure((const T *)a.x + row * a.classes, a.classes, shared);
                const H scale = 1 / s.sum;
                s.each(a.classes, [&](int64_t i, H *d) {
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                d[j] = w * (lg_exp(d[j]) * scale - (each + (i + j == label ? rest : (H)0)));
                        lg_write<T, V>(to + i, d);
                });
        }
}

extern "C" bool lg_cuda_cross_entropy_vjp(lg_queue *q, const lg_cross_entropy_args *a)
{
        unsigned long long *counted = NULL;
        return (a->reduction != LG_MEAN || a->rows <= FEW_ROWS || count_into(q, a, &counted)) &&
               LG_WITH_STORED(a->dtype, LG_LAUNCH_ROWS(q, "cross_entropy_vjp", loss_slopes, a->rows, a->classes,
                                                       lg_even(LG_PACK(T), a->classes, a->x, a->out), *a,
                                                       (const unsigned long long *)counted));
}

/* Computes class weights: `across` threads of a block share the classes of a row, the others take further rows. */
static __global__ void weights_loop(lg_cross_entropy_args a, const unsigned long long *counted, int across)
{
        const int x = (int)threadIdx.x % across, along = LG_THREADS / across;
        const double weight = weight_of(a, counted), each = a.label_smoothing / (double)a.classes;
        for (int64_t row = (int64_t)blockIdx.x * along + threadIdx.x / across; row < a.rows;
             row += (int64_t)gridDim.x * along) {
                const bool valid = counts(a, row, NULL);
                for (int64_t c = x; c < a.classes; c += across)
                        lg_store<double>(a.out, a.dtype, row * a.classes + c,
                                         valid ? weight * (each + (c == a.labels[row] ? 1 - a.label_smoothing : 0))
                                               : 0);
        }
}

extern "C" bool lg_cuda_class_weights(lg_queue *q, const lg_cross_entropy_args *a)
{
        unsigned long long *counted;
        int across = lg_across(a->classes, LG_THREADS);
        return count_into(q, a, &counted) &&
               lg_launch(q, "class_weights", weights_loop, lg_row_blocks(q, a->rows, across), *a,
                         (const unsigned long long *)counted, across);
}
