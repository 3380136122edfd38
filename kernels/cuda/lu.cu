/* lu.cu - LU factorisations: by cuSOLVER one after the other, or small square matrices together by cuBLAS. */
#include "solver.h"
#if LG_CUSOLVER

#define TOGETHER 512 /* least rows of matrices that are not factorised together */

/* Computes permutations of m rows and their determinants from the libraries' exchanges of rows: number k, of `steps`
 * for each matrix, exchanges rows k and swaps[k] - 1. A thread follows one row of the result back to its origin. */
template <typename P, typename T>
static __global__ void permute(int64_t count, int64_t m, int64_t steps, const P *swaps, int64_t *permutation, T *signs)
{
        for (int64_t i = LG_FIRST; i < count * (m + 1); i += LG_STEP) {
                const int64_t matrix = i / (m + 1), row = i % (m + 1);
                const P *p = swaps + matrix * steps;
                int64_t at = row, exchanges = 0;
                for (int64_t k = steps - 1; k >= 0; k--) {
                        int64_t other = (int64_t)p[k] - 1;
                        other = other < k || other >= m ? k : other; /* so that rows exist whatever p holds */
                        exchanges += other != k;
                        at = at == k ? other : at == other ? k : at;
                }
                if (row == m)
                        signs[matrix] = exchanges % 2 ? (T)-1 : (T)1;
                else
                        permutation[matrix * m + row] = at;
        }
}

template <typename P> static bool finish(lg_queue *q, const lg_lu_args *a, const P *swaps)
{
        const int64_t steps = a->m < a->n ? a->m : a->n;
        return LG_WITH_FLOAT(a->dtype,
                             lg_launch(q, "lu (permutations)", permute<P, H>, lg_blocks(q, a->count * (a->m + 1)),
                                       a->count, a->m, steps, swaps, a->permutation, (H *)a->signs));
}

/* Factorises square matrices in t, column-major, together. */
template <typename T> static bool together(lg_queue *q, const lg_lu_args *a, T *t, int *info)
{
        const int64_t size = a->n * a->n;
        const int n = (int)a->n;
        const lg_solver *s = lg_solver_open_blas(q);
        int *swaps = s ? lg_solver_elements<int>(q, a->count * n) : NULL;
        T **list = swaps ? lg_solver_list<T>(q, t, size, a->count) : NULL;
        return list &&
               lg_solver_run(
                       q, "cublasgetrfBatched",
                       [&] { return lg_solver_transpose(q, a->dtype, a->count, n, n, a->a, t, size); },
                       [&] {
                               return lg_solver_each(a->count, LG_SOLVER_BATCH, [&](int64_t i, int count) {
                                       return LG_SOLVER_CALL(T, s->b, getrf_batched)(s->blas, n, list + i, n,
                                                                                     swaps + i * n, info + i, count);
                               });
                       }) &&
               finish(q, a, swaps);
}

/* Factorises matrices in t, column-major, one after the other. */
template <typename T> static bool one_by_one(lg_queue *q, const lg_lu_args *a, T *t, int *info)
{
        const cudaDataType type = lg_solver_type<T>;
        const int64_t m = a->m, n = a->n, size = m * n, steps = m < n ? m : n;
        lg_solver_room room;
        const lg_solver *s = lg_solver_open(q);
        int64_t *swaps = s ? lg_solver_elements<int64_t>(q, a->count * steps) : NULL;
        return swaps &&
               lg_solver_good(
                       q, "cusolverDnXgetrf_bufferSize",
                       s->l->getrf_size(s->handle, s->params, m, n, type, t, m, type, &room.bytes, &room.host_bytes)) &&
               room.make(q) &&
               lg_solver_run(
                       q, "cusolverDnXgetrf",
                       [&] { return lg_solver_transpose(q, a->dtype, a->count, m, n, a->a, t, size); },
                       [&] {
                               return lg_solver_each(a->count, 1, [&](int64_t i, int) {
                                       return s->l->getrf(s->handle, s->params, m, n, type, t + i * size, m,
                                                          swaps + i * steps, type, room.device, room.bytes, room.host,
                                                          room.host_bytes, info + i);
                               });
                       }) &&
               finish(q, a, swaps);
}

template <typename T> static bool lu(lg_queue *q, const lg_lu_args *a)
{
        const int64_t m = a->m, n = a->n, size = m * n, count = a->count, steps = m < n ? m : n;
        if (steps == 0)
                return finish(q, a, (const int *)NULL);
        T *t = lg_solver_elements<T>(q, count * size);
        int *info = t ? lg_solver_elements<int>(q, count) : NULL;
        if (!info || !(m == n && count > 1 && n < TOGETHER ? together(q, a, t, info) : one_by_one(q, a, t, info)) ||
            !lg_solver_transpose(q, a->dtype, count, n, m, t, a->lu, size))
                return false;
        return a->origin == 0 ||
               (lg_cuda_good(q, "cudaMemsetAsync",
                             cudaMemsetAsync(info, 0, (size_t)count * sizeof *info, lg_cuda(q)->stream)) &&
                lg_solver_diagonal(q, a->dtype, count, size, steps, n + 1, true, a->lu, info) &&
                lg_solver_judge(q, count, info, NULL, a->origin) &&
                lg_solver_spoil(q, a->dtype, count, size, 0, info, a->lu));
}

extern "C" bool lg_cuda_lu(lg_queue *q, const lg_lu_args *a)
{
        return a->count == 0 || LG_WITH_FLOAT(a->dtype, lu<H>(q, a));
}
#endif
