/* norm.cu - batch norm: a block for each channel; layer norm: a block for each row. Statistics are f64. */
#include "cuda.h"

#define MOST_BLOCKS 65536
static inline int64_t blocks_for(int64_t n)
{
        return n < MOST_BLOCKS ? n : MOST_BLOCKS;
}

template <typename H> static __global__ void batch_norm_loop(lg_batch_norm_args a)
{
        LG_SHARED(double, sums, LG_THREADS / 32);
        for (int64_t c = blockIdx.x; c < a.channels; c += gridDim.x) {
                double sum = 0, squares = 0;
                for (int64_t r = threadIdx.x; r < a.rows; r += LG_THREADS)
                        sum += (double)lg_load<H>(a.x, a.dtype, r * a.channels + c);
                double mean = lg_block_sum(sum, sums) / (double)(a.rows ? a.rows : 1);
                for (int64_t r = threadIdx.x; r < a.rows; r += LG_THREADS) {
                        double d = (double)lg_load<H>(a.x, a.dtype, r * a.channels + c) - mean;
                        squares += d * d;
                }
                double var = lg_block_sum(squares, sums) / (double)a.rows;
                if (threadIdx.x == 0) {
                        a.mean[c] = mean;
                        a.var[c] = var;
                }
                double scale = 1 / sqrt(var + a.eps), shift = 0;
                if (a.w) {
                        scale *= (double)((const H *)a.w)[c];
                        shift = (double)((const H *)a.b)[c];
                }
                for (int64_t r = threadIdx.x; r < a.rows; r += LG_THREADS) {
                        int64_t i = r * a.channels + c;
                        lg_store<H>(a.y, a.dtype, i, (H)(((double)lg_load<H>(a.x, a.dtype, i) - mean) * scale + shift));
                }
        }
}

extern "C" bool lg_cuda_batch_norm(lg_queue *q, const lg_batch_norm_args *a)
{
        return LG_WITH_FLOAT(a->dtype, lg_launch(q, "batch_norm", batch_norm_loop<H>, blocks_for(a->channels), *a));
}

template <typename H> static __global__ void batch_norm_vjp_loop(lg_batch_norm_vjp_args a)
{
        LG_SHARED(double, sums, LG_THREADS / 32);
        for (int64_t c = blockIdx.x; c < a.channels; c += gridDim.x) {
                double mean = a.mean[c], r = 1 / sqrt(a.var[c] + a.eps), db = 0, dw = 0;
                for (int64_t k = threadIdx.x; k < a.rows; k += LG_THREADS) {
                        int64_t i = k * a.channels + c;
                        double g = (double)lg_load<H>(a.g, a.dtype, i);
                        db += g;
                        dw += g * ((double)lg_load<H>(a.x, a.dtype, i) - mean) * r;
                }
                db = lg_block_sum(db, sums);
                dw = lg_block_sum(dw, sums);
                if (threadIdx.x == 0 && a.dw)
                        ((H *)a.dw)[c] = (H)dw;
                if (threadIdx.x == 0 && a.db)
                        ((H *)a.db)[c] = (H)db;
                double n = (double)a.rows, factor = a.w ? (double)((const H *)a.w)[c] * r : r;
                for (int64_t k = threadIdx.x; a.dx && k < a.rows; k += LG_THREADS) {
                        int64_t i = k * a.channels + c;
                        double t = ((double)lg_load<H>(a.x, a.dtype, i) - mean) * r;
                        lg_store<H>(a.dx, a.dtype, i,
                                    (H)(factor * ((double)lg_load<H>(a.g, a.dtype, i) - db / n - t * dw / n)));
                }
        }
}

extern "C" bool lg_cuda_batch_norm_vjp(lg_queue *q, const lg_batch_norm_vjp_args *a)
{
        return LG_WITH_FLOAT(a->dtype,
                             lg_launch(q, "batch_norm_vjp", batch_norm_vjp_loop<H>, blocks_for(a->channels), *a));
}

static __global__ void running_loop(lg_running_args a)
{
        for (int64_t i = LG_FIRST; i < a.n; i += LG_STEP) {
                double r = lg_load<double>(a.r, a.dtype, i * a.stride);
                lg_store<double>(a.r, a.dtype, i * a.stride, r + a.weight * (a.factor * a.v[i] - r));
        }
}

extern "C" bool lg_cuda_running(lg_queue *q, const lg_running_args *a)
{
        return lg_launch(q, "running", running_loop, a->n ? lg_blocks(q, a->n) : 0, *a);
}

/* ---- layer norm: element i of row (outer, group) has weight group * channels + i / inner ---- */

template <typename H> static __global__ void layer_norm_loop(lg_layer_norm_args a)
{
        LG_SHARED(double, sums, LG_THREADS / 32);
        int64_t n = a.channels * a.inner;
        for (int64_t row = blockIdx.x; row < a.outer * a.groups; row += gridDim.x) {
                double sum = 0, squares = 0, mean = 0;
                for (int64_t i = threadIdx.x; !a.rms && i < n; i += LG_THREADS)
                        sum += (double)lg_load<H>(a.x, a.dtype, row * n + i);
                sum = lg_block_sum(sum, sums);
                mean = a.rms ? 0 : sum / (double)n;
                for (int64_t i = threadIdx.x; i < n; i += LG_THREADS) {
                        double d = (double)lg_load<H>(a.x, a.dtype, row * n + i) - mean;
                        squares += d * d;
                }
                double rstd = 1 / sqrt(lg_block_sum(squares, sums) / (double)n + a.eps);
                if (threadIdx.x == 0) {
                        a.mean[row] = mean;
                        a.rstd[row] = rstd;
                }
                for (int64_t i = threadIdx.x; i < n; i += LG_THREADS) {
                        int64_t k = row % a.groups * a.channels + i / a.inner;
                        double t = ((double)lg_load<H>(a.x, a.dtype, row * n + i) - mean) * rstd;
                        t = (a.w ? t * (double)((const H *)a.w)[k] : t) + (a.b ? (double)((const H *)a.b)[k] : 0);
                        lg_store<H>(a.y, a.dtype, row * n + i, (H)t);
                }
        }
}

extern "C" bool lg_cuda_layer_norm(lg_queue *q, const lg_layer_norm_args *a)
{
        return LG_WITH_FLOAT(a->dtype,
                             lg_launch(q, "layer_norm", layer_norm_loop<H>, blocks_for(a->outer * a->groups), *a));
}

template <typename H> static __global__ void layer_norm_dx(lg_layer_norm_vjp_args a)
{
        LG_SHARED(double, sums, LG_THREADS / 32);
        int64_t n = a.channels * a.inner;
        for (int64_t row = blockIdx.x; row < a.outer * a.groups; row += gridDim.x) {
                double mean = a.mean[row], rstd = a.rstd[row], of_g = 0, of_t = 0;
                for (int64_t i = threadIdx.x; i < n; i += LG_THREADS) {
                        int64_t k = row % a.groups * a.channels + i / a.inner;
                        double g =
                                (double)lg_load<H>(a.g, a.dtype, row * n + i) * (a.w ? (double)((const H *)a.w)[k] : 1);
                        of_g += g;
                        of_t += g * ((double)lg_load<H>(a.x, a.dtype, row * n + i) - mean) * rstd;
                }
                of_g = a.rms ? 0 * lg_block_sum(of_g, sums) : lg_block_sum(of_g, sums) / (double)n;
                of_t = lg_block_sum(of_t, sums) / (double)n;
                if (a.rms)
                        of_g = 0;
                for (int64_t i = threadIdx.x; i < n; i += LG_THREADS) {
                        int64_t k = row % a.groups * a.channels + i / a.inner;
                        double g =
                                (double)lg_load<H>(a.g, a.dtype, row * n + i) * (a.w ? (double)((const H *)a.w)[k] : 1);
                        double t = ((double)lg_load<H>(a.x, a.dtype, row * n + i) - mean) * rstd;
                        lg_store<H>(a.dx, a.dtype, row * n + i, (H)(rstd * (g - of_g - t * of_t)));
                }
        }
}

/* A block for each weight. */
template <typename H> static __global__ void layer_norm_dw(lg_layer_norm_vjp_args a)
{
        LG_SHARED(double, sums, LG_THREADS / 32);
        int64_t n = a.channels * a.inner;
        for (int64_t k = blockIdx.x; k < a.groups * a.channels; k += gridDim.x) {
                double db = 0, dw = 0;
                for (int64_t j = threadIdx.x; j < a.outer * a.inner; j += LG_THREADS) {
                        int64_t row = j / a.inner * a.groups + k / a.channels,
                                i = row * n + k % a.channels * a.inner + j % a.inner;
                        double g = (double)lg_load<H>(a.g, a.dtype, i);
                        db += g;
                        dw += g * ((double)lg_load<H>(a.x, a.dtype, i) - a.mean[row]) * a.rstd[row];
                }
                db = lg_block_sum(db, sums);
                dw = lg_block_sum(dw, sums);
                if (threadIdx.x == 0 && a.dw)
                        ((H *)a.dw)[k] = (H)dw;
                if (threadIdx.x == 0 && a.db)
                        ((H *)a.db)[k] = (H)db;
        }
}

extern "C" bool lg_cuda_layer_norm_vjp(lg_queue *q, const lg_layer_norm_vjp_args *a)
{
        int64_t rows = a->channels * a->inner > 0 ? a->outer * a->groups : 0;
        if (a->dx &&
            !LG_WITH_FLOAT(a->dtype, lg_launch(q, "layer_norm_vjp (x)", layer_norm_dx<H>, blocks_for(rows), *a)))
                return false;
        return !(a->dw || a->db) || LG_WITH_FLOAT(a->dtype, lg_launch(q, "layer_norm_vjp (w)", layer_norm_dw<H>,
                                                                      blocks_for(a->groups * a->channels), *a));
}
