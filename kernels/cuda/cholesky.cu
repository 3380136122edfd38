/* cholesky.cu - Cholesky factorisations by cuSOLVER: one after the other, or small matrices together. */
#include "solver.h"
#if LG_CUSOLVER

#define TOGETHER 512 /* most rows of matrices that are factorised together */

template <typename T> static bool one_by_one(lg_queue *q, const lg_solver *s, const lg_cholesky_args *a, int *info)
{
        const cudaDataType type = lg_solver_type<T>;
        const int64_t n = a->n, size = n * n;
        lg_solver_room room;
        return lg_solver_good(q, "cusolverDnXpotrf_bufferSize",
                              s->l->potrf_size(s->handle, s->params, CUBLAS_FILL_MODE_UPPER, n, type, a->l, n, type,
                                               &room.bytes, &room.host_bytes)) &&
               room.make(q) &&
               lg_solver_run(
                       q, "cusolverDnXpotrf",
                       [&] { return lg_solver_copy(q, a->l, a->a, (size_t)(a->count * size) * sizeof(T)); },
                       [&] {
                               return lg_solver_each(a->count, 1, [&](int64_t i, int) {
                                       return s->l->potrf(s->handle, s->params, CUBLAS_FILL_MODE_UPPER, n, type,
                                                          (T *)a->l + i * size, n, type, room.device, room.bytes,
                                                          room.host, room.host_bytes, info + i);
                               });
                       });
}

template <typename T> static bool together(lg_queue *q, const lg_solver *s, const lg_cholesky_args *a, int *info)
{
        const int64_t size = a->n * a->n;
        const int n = (int)a->n;
        T **list = lg_solver_list<T>(q, a->l, size, a->count);
        return list &&
               lg_solver_run(
                       q, "cusolverDnpotrfBatched",
                       [&] { return lg_solver_copy(q, a->l, a->a, (size_t)(a->count * size) * sizeof(T)); },
                       [&] {
                               return lg_solver_each(a->count, LG_SOLVER_BATCH, [&](int64_t i, int count) {
                                       return LG_SOLVER_CALL(T, s->l, potrf_batched)(s->handle, CUBLAS_FILL_MODE_UPPER,
                                                                                     n, list + i, n, info + i, count);
                               });
                       });
}

template <typename T> static bool cholesky(lg_queue *q, const lg_cholesky_args *a)
{
        const int64_t n = a->n, size = n * n, count = a->count;
        const lg_solver *s = lg_solver_open(q);
        int *info = s ? lg_solver_elements<int>(q, count) : NULL;
        return info && (count > 1 && n <= TOGETHER ? together<T>(q, s, a, info) : one_by_one<T>(q, s, a, info)) &&
               lg_solver_diagonal(q, a->dtype, count, size, n, n + 1, false, a->l, info) &&
               lg_solver_judge(q, count, info, NULL, a->origin) &&
               lg_solver_spoil(q, a->dtype, count, size, n, info, a->l);
}

extern "C" bool lg_cuda_cholesky(lg_queue *q, const lg_cholesky_args *a)
{
        return a->count * a->n == 0 || LG_WITH_FLOAT(a->dtype, cholesky<H>(q, a));
}
#endif
