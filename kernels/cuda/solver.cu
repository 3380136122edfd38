/* solver.cu - steps that factorisations share: copies, lists of matrices, and the search for what has failed. */
#include "solver.h"
#if LG_CUSOLVER

bool lg_solver_copy(lg_queue *q, void *to, const void *from, size_t bytes)
{
        return bytes == 0 ||
               lg_cuda_good(q, "cudaMemcpyAsync (matrices)",
                            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, lg_cuda(q)->stream));
}

bool lg_solver_place(lg_queue *q, lg_dtype dtype, int64_t count, int64_t rows, int64_t columns, const void *from,
                     int64_t matrix, int64_t row, int64_t column, void *to)
{
        const lg_copy_args a = {3,  {count, rows, columns},       dtype, dtype,
                                to, {rows * columns, columns, 1}, from,  {matrix, row, column}};
        return lg_cuda_copy(q, &a);
}

bool lg_solver_transpose(lg_queue *q, lg_dtype dtype, int64_t count, int64_t rows, int64_t columns, const void *from,
                         void *to, int64_t matrix)
{
        const lg_copy_args a = {3,  {count, columns, rows}, dtype, dtype,
                                to, {matrix, rows, 1},      from,  {rows * columns, 1, columns}};
        return lg_cuda_copy(q, &a);
}

bool lg_solver_identity(lg_queue *q, lg_dtype dtype, int64_t count, int64_t n, void *to)
{
        const lg_fill_args zeros = {1, {count * n * n}, dtype, to, {1}, 0, 0};
        const lg_fill_args ones = {2, {count, n}, dtype, to, {n * n, n + 1}, 1, 1};
        return lg_cuda_fill(q, &zeros) && lg_cuda_fill(q, &ones);
}

static __global__ void list_matrices(char *first, int64_t bytes, int64_t count, void **to)
{
        for (int64_t i = LG_FIRST; i < count; i += LG_STEP)
                to[i] = first + i * bytes;
}

void *lg_solver_addresses(lg_queue *q, void *first, int64_t bytes, int64_t count)
{
        void **to = lg_solver_elements<void *>(q, count);
        return to && lg_launch(q, "matrices (pointers)", list_matrices, lg_blocks(q, count), (char *)first, bytes,
                               count, to)
                       ? to
                       : NULL;
}

/* Returns the least of the block's numbers. */
static __device__ inline int64_t block_least(int64_t mine, int64_t *shared)
{
        __syncthreads();
        shared[threadIdx.x] = mine;
        __syncthreads();
        for (unsigned by = LG_THREADS / 2; by; by /= 2) {
                if (threadIdx.x < by && shared[threadIdx.x + by] < shared[threadIdx.x])
                        shared[threadIdx.x] = shared[threadIdx.x + by];
                __syncthreads();
        }
        return shared[0];
}

template <typename T> static __global__ void screen_matrices(int64_t count, int64_t size, int64_t n, T *x, int *bad)
{
        LG_SHARED(int64_t, shared, LG_THREADS);
        for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
                T *one = x + m * size;
                int64_t sound = 1;
                for (int64_t i = threadIdx.x; i < size; i += LG_THREADS)
                        if ((n == 0 || i % n <= i / n) && !(one[i] - one[i] == 0))
                                sound = 0;
                sound = block_least(sound, shared);
                if (threadIdx.x == 0)
                        bad[m] = !sound;
                for (int64_t i = threadIdx.x; !sound && i < size; i += LG_THREADS)
                        one[i] = 0;
        }
}

bool lg_solver_screen(lg_queue *q, lg_dtype dtype, int64_t count, int64_t size, int64_t n, void *x, int *bad)
{
        return LG_WITH_FLOAT(dtype, lg_launch(q, "matrices (screened)", screen_matrices<H>, lg_few_blocks(q, count, 16),
                                              count, size, n, (H *)x, bad));
}

template <typename T>
static __global__ void search_diagonals(int64_t count, int64_t size, int64_t steps, int64_t step, bool nonzero,
                                        const T *x, int *info)
{
        LG_SHARED(int64_t, shared, LG_THREADS);
        for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
                int64_t first = steps;
                for (int64_t i = threadIdx.x; i < steps && first == steps; i += LG_THREADS) {
                        const T v = x[m * size + i * step];
                        if (!(v > 0 || (nonzero && v < 0)))
                                first = i;
                }
                first = block_least(first, shared);
                if (threadIdx.x == 0 && info[m] <= 0)
                        info[m] = first < steps ? (int)(first + 1) : 0;
        }
}

bool lg_solver_diagonal(lg_queue *q, lg_dtype dtype, int64_t count, int64_t size, int64_t steps, int64_t step,
                        bool nonzero, const void *x, int *info)
{
        return LG_WITH_FLOAT(dtype,
                             lg_launch(q, "matrices (diagonals)", search_diagonals<H>, lg_few_blocks(q, count, 16),
                                       count, size, steps, step, nonzero, (const H *)x, info));
}

/* One block searches, so that the matrix of the error is the same in each run. */
static __global__ void judge_matrices(int64_t count, int *info, const int *bad, int origin, lg_device_error *error)
{
        LG_SHARED(int64_t, shared, LG_THREADS);
        int64_t first = count;
        for (int64_t m = threadIdx.x; m < count; m += LG_THREADS) {
                if (bad && bad[m])
                        info[m] = -1;
                if (info[m] > 0 && m < first)
                        first = m;
        }
        first = block_least(first, shared);
        if (threadIdx.x == 0 && first < count)
                lg_note(error, origin, first, info[first]);
}

bool lg_solver_judge(lg_queue *q, int64_t count, int *info, const int *bad, int origin)
{
        return lg_launch(q, "matrices (errors)", judge_matrices, 1, count, info, bad, origin, lg_cuda(q)->error);
}

template <typename T>
static __global__ void spoil_matrices(int64_t total, int64_t size, int64_t n, const int *info, T *x)
{
        for (int64_t i = LG_FIRST; i < total; i += LG_STEP) {
                if (info[i / size] != 0)
                        x[i] = (T)NAN;
                else if (n > 0 && i % n > i / n % n)
                        x[i] = 0;
        }
}

bool lg_solver_spoil(lg_queue *q, lg_dtype dtype, int64_t count, int64_t size, int64_t n, const int *info, void *x)
{
        const int64_t total = count * size;
        return total == 0 || LG_WITH_FLOAT(dtype, lg_launch(q, "matrices (results)", spoil_matrices<H>,
                                                            lg_blocks(q, total), total, size, n, info, (H *)x));
}

#else /* built without the headers of cuSOLVER and cuBLAS */

#define REFUSE(name)                                                                                                   \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_##name##_args *)                                          \
        {                                                                                                              \
                return lg_queue_fail(q, LG_BROKEN, #name ": this build knows nothing of cuSOLVER");                    \
        }
REFUSE(cholesky)
REFUSE(lu)
REFUSE(triangular)
REFUSE(qr)
REFUSE(eigh)
REFUSE(svd)
#endif
