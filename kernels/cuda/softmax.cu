/* softmax.cu - soft-max, cross-entropy, running sums: a block for each row, or a thread for each line. */
#include "cuda.h"

/* Element i of line l of (outer, n, inner). */
static __device__ inline int64_t line_at(int64_t l, int64_t i, int64_t n, int64_t inner)
{
        return (l / inner * n + i) * inner + l % inner;
}

template <typename H> static __global__ void softmax_loop(lg_softmax_args a)
{
        LG_SHARED(H, shared, LG_THREADS / 32);
        LG_SHARED(double, sums, LG_THREADS / 32);
        for (int64_t l = blockIdx.x; l < a.outer * a.inner; l += gridDim.x) {
                H top = -INFINITY;
                for (int64_t i = threadIdx.x; i < a.n; i += LG_THREADS) {
                        H x = lg_load<H>(a.x, a.dtype, line_at(l, i, a.n, a.inner));
                        top = x > top || x != x ? x : top;
                }
                top = lg_block_max(top, shared);
                double sum = 0;
                for (int64_t i = threadIdx.x; i < a.n; i += LG_THREADS)
                        sum += (double)exp(lg_load<H>(a.x, a.dtype, line_at(l, i, a.n, a.inner)) - top);
                sum = lg_block_sum(sum, sums);
                for (int64_t i = threadIdx.x; i < a.n; i += LG_THREADS) {
                        int64_t at = line_at(l, i, a.n, a.inner);
                        H d = lg_load<H>(a.x, a.dtype, at) - top;
                        lg_store<H>(a.y, a.dtype, at, a.log ? (H)((double)d - log(sum)) : (H)((double)exp(d) / sum));
                }
        }
}

extern "C" bool lg_cuda_softmax(lg_queue *q, const lg_softmax_args *a)
{
        int64_t lines = a->n ? a->outer * a->inner : 0;
        return LG_WITH_FLOAT(a->dtype, lg_launch(q, "softmax", softmax_loop<H>, lines < 65536 ? lines : 65536, *a));
}

template <typename H> static __global__ void softmax_vjp_loop(lg_softmax_vjp_args a)
{
        LG_SHARED(double, sums, LG_THREADS / 32);
        for (int64_t l = blockIdx.x; l < a.outer * a.inner; l += gridDim.x) {
                double sum = 0;
                for (int64_t i = threadIdx.x; i < a.n; i += LG_THREADS) {
                        int64_t at = line_at(l, i, a.n, a.inner);
                        H g = lg_load<H>(a.g, a.dtype, at);
                        sum += (double)(a.log ? g : g * lg_load<H>(a.y, a.dtype, at));
                }
                sum = lg_block_sum(sum, sums);
                for (int64_t i = threadIdx.x; i < a.n; i += LG_THREADS) {
                        int64_t at = line_at(l, i, a.n, a.inner);
                        H g = lg_load<H>(a.g, a.dtype, at), y = lg_load<H>(a.y, a.dtype, at);
                        lg_store<H>(a.dx, a.dtype, at,
                                    a.log ? (H)((double)g - (double)exp(y) * sum) : (H)((double)y * ((double)g - sum)));
                }
        }
}

extern "C" bool lg_cuda_softmax_vjp(lg_queue *q, const lg_softmax_vjp_args *a)
{
        int64_t lines = a->n ? a->outer * a->inner : 0;
        return LG_WITH_FLOAT(a->dtype,
                             lg_launch(q, "softmax_vjp", softmax_vjp_loop<H>, lines < 65536 ? lines : 65536, *a));
}

/* ---- cross-entropy ---- */

/* True if the row counts; a label that is neither a class nor ignored is noted. */
static __device__ inline bool counts(const lg_cross_entropy_args &a, int64_t row, lg_fault *fault)
{
        int64_t t = a.labels[row];
        if (t == a.ignore_index)
                return false;
        if (t >= 0 && t < a.classes)
                return true;
        if (fault)
                lg_note(fault, LG_FAULT_LABEL, t, a.classes);
        return false;
}

/* How many rows count, by one block. */
static __global__ void count_rows(lg_cross_entropy_args a, int64_t *ret, lg_fault *fault)
{
        LG_SHARED(int64_t, sums, LG_THREADS / 32);
        int64_t n = 0;
        for (int64_t i = threadIdx.x; i < a.rows; i += LG_THREADS)
                n += counts(a, i, fault);
        n = lg_block_sum(n, sums);
        if (threadIdx.x == 0)
                *ret = n;
}

static __device__ inline double weight_of(const lg_cross_entropy_args &a, const int64_t *counted)
{
        return a.reduction == LG_MEAN ? 1 / (double)*counted : 1;
}

/* A block for each row: its greatest score and the logarithm of the sum. */
template <typename H>
static __device__ inline double row_of(const lg_cross_entropy_args &a, int64_t row, H *ret_top, H *shared, double *sums)
{
        H top = -INFINITY;
        for (int64_t i = threadIdx.x; i < a.classes; i += LG_THREADS) {
                H x = lg_load<H>(a.x, a.dtype, row * a.classes + i);
                top = x > top || x != x ? x : top;
        }
        top = lg_block_max(top, shared);
        double sum = 0;
        for (int64_t i = threadIdx.x; i < a.classes; i += LG_THREADS)
                sum += (double)exp(lg_load<H>(a.x, a.dtype, row * a.classes + i) - top);
        *ret_top = top;
        return log(lg_block_sum(sum, sums));
}

template <typename H> static __global__ void losses(lg_cross_entropy_args a, const int64_t *counted, double *rows)
{
        LG_SHARED(H, shared, LG_THREADS / 32);
        LG_SHARED(double, sums, LG_THREADS / 32);
        for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
                H top;
                double log_sum = row_of<H>(a, row, &top, shared, sums), loss = 0, all = 0;
                bool valid = counts(a, row, NULL);
                for (int64_t i = threadIdx.x; valid && a.label_smoothing != 0 && i < a.classes; i += LG_THREADS)
                        all += (double)(lg_load<H>(a.x, a.dtype, row * a.classes + i) - top) - log_sum;
                all = lg_block_sum(all, sums);
                if (valid) {
                        double own =
                                (double)(lg_load<H>(a.x, a.dtype, row * a.classes + a.labels[row]) - top) - log_sum;
                        loss = -((1 - a.label_smoothing) * own + a.label_smoothing / (double)a.classes * all);
                        loss *= weight_of(a, counted);
                }
                if (threadIdx.x == 0) {
                        rows[row] = loss;
                        if (a.reduction == LG_NONE)
                                lg_store<double>(a.out, a.dtype, row, loss);
                }
        }
}

static __global__ void add_rows(lg_cross_entropy_args a, const int64_t *counted, const double *rows)
{
        LG_SHARED(double, sums, LG_THREADS / 32);
        double sum = 0;
        for (int64_t i = threadIdx.x; i < a.rows; i += LG_THREADS)
                sum += rows[i];
        sum = lg_block_sum(sum, sums);
        if (threadIdx.x == 0)
                lg_store<double>(a.out, a.dtype, 0, a.reduction == LG_MEAN && *counted == 0 ? (double)NAN : sum);
}

static bool count_into(lg_queue *q, const lg_cross_entropy_args *a, int64_t **ret)
{
        *ret = (int64_t *)q->workspace(q, sizeof **ret);
        return *ret && lg_launch(q, "cross_entropy (count)", count_rows, 1, *a, *ret, lg_cuda(q)->fault);
}

extern "C" bool lg_cuda_cross_entropy(lg_queue *q, const lg_cross_entropy_args *a)
{
        int64_t *counted;
        double *rows = (double *)q->workspace(q, (size_t)(a->rows + 1) * sizeof *rows);
        if (!rows || !count_into(q, a, &counted))
                return false;
        if (!LG_WITH_FLOAT(a->dtype, lg_launch(q, "cross_entropy", losses<H>, a->rows < 65536 ? a->rows : 65536, *a,
                                               counted, rows)))
                return false;
        return a->reduction == LG_NONE || lg_launch(q, "cross_entropy (sum)", add_rows, 1, *a, counted, rows);
}

template <typename H> static __global__ void loss_slopes(lg_cross_entropy_args a, const int64_t *counted)
{
        LG_SHARED(H, shared, LG_THREADS / 32);
        LG_SHARED(double, sums, LG_THREADS / 32);
        for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
                H top;
                double log_sum = row_of<H>(a, row, &top, shared, sums);
                bool valid = counts(a, row, NULL);
                double g = (double)lg_load<H>(a.g, a.dtype, a.reduction == LG_NONE ? row : 0);
                double w = valid ? g * weight_of(a, counted) : 0, each = a.label_smoothing / (double)a.classes;
                for (int64_t i = threadIdx.x; i < a.classes; i += LG_THREADS) {
                        double p = exp((double)(lg_load<H>(a.x, a.dtype, row * a.classes + i) - top) - log_sum);
                        double share = each + (i == a.labels[row] ? 1 - a.label_smoothing : 0);
                        lg_store<H>(a.out, a.dtype, row * a.classes + i, valid ? (H)(w * (p - share)) : (H)0);
                }
        }
}

extern "C" bool lg_cuda_cross_entropy_vjp(lg_queue *q, const lg_cross_entropy_args *a)
{
        int64_t *counted;
        return count_into(q, a, &counted) &&
               LG_WITH_FLOAT(a->dtype, lg_launch(q, "cross_entropy_vjp", loss_slopes<H>,
                                                 a->rows < 65536 ? a->rows : 65536, *a, counted));
}

static __global__ void weights_loop(lg_cross_entropy_args a, const int64_t *counted)
{
        for (int64_t i = LG_FIRST; i < a.rows * a.classes; i += LG_STEP) {
                int64_t row = i / a.classes, c = i % a.classes;
                double share = a.label_smoothing / (double)a.classes + (c == a.labels[row] ? 1 - a.label_smoothing : 0);
                lg_store<double>(a.out, a.dtype, i, counts(a, row, NULL) ? share * weight_of(a, counted) : 0);
        }
}

extern "C" bool lg_cuda_class_weights(lg_queue *q, const lg_cross_entropy_args *a)
{
        int64_t *counted, n = a->rows * a->classes;
        return count_into(q, a, &counted) &&
               lg_launch(q, "class_weights", weights_loop, n ? lg_blocks(q, n) : 0, *a, counted);
}

/* ---- running sums ---- */

template <typename H, typename S> static __global__ void cumsum_loop(lg_cumsum_args a)
{
        for (int64_t l = LG_FIRST; l < a.outer * a.inner; l += LG_STEP) {
                S sum = 0;
                for (int64_t k = 0; k < a.n; k++) {
                        int64_t at = line_at(l, a.reverse ? a.n - 1 - k : k, a.n, a.inner);
                        sum += (S)lg_load<H>(a.x, a.dtype, at);
                        lg_store<S>(a.y, a.dtype, at, sum);
                }
        }
}

extern "C" bool lg_cuda_cumsum(lg_queue *q, const lg_cumsum_args *a)
{
        int64_t lines = a->outer * a->inner, blocks = lines && a->n ? lg_blocks(q, lines) : 0;
        if (a->dtype == LG_I64)
                return lg_launch(q, "cumsum", cumsum_loop<int64_t, int64_t>, blocks, *a);
        return LG_WITH_FLOAT(a->dtype, lg_launch(q, "cumsum", cumsum_loop<H, double>, blocks, *a));
}
