/* eigh.cu - eigenvalues of symmetric matrices by cuSOLVER: one after the other, or small matrices together by Jacobi's
 * method. */
#include "solver.h"
#if LG_CUSOLVER

#define TOGETHER 32 /* most rows of matrices that are computed together */

/* A copy of the matrices, which becomes their vectors, column-major; and scratch memory. */
template <typename T> struct problem {
        cusolverEigMode_t mode;
        bool small;
        T *v, *work = NULL;
        int work_count = 0, *info, *bad;
        lg_solver_room room;
};

/* Finds what memory the library works in. */
template <typename T> static bool make_room(lg_queue *q, const lg_solver *s, const lg_eigh_args *a, problem<T> *p)
{
        const cudaDataType type = lg_solver_type<T>;
        const int n = (int)a->n;
        if (!p->small)
                return lg_solver_good(q, "cusolverDnXsyevd_bufferSize",
                                      s->l->syevd_size(s->handle, s->params, p->mode, CUBLAS_FILL_MODE_UPPER, a->n,
                                                       type, p->v, a->n, type, a->values, type, &p->room.bytes,
                                                       &p->room.host_bytes)) &&
                       p->room.make(q);
        if (!lg_solver_good(q, "cusolverDnsyevjBatched_bufferSize",
                            LG_SOLVER_CALL(T, s->l,
                                           syevj_size)(s->handle, p->mode, CUBLAS_FILL_MODE_UPPER, n, p->v, n,
                                                       (const T *)a->values, &p->work_count, s->syevj,
                                                       (int)(a->count < LG_SOLVER_BATCH ? a->count : LG_SOLVER_BATCH))))
                return false;
        p->work = lg_solver_elements<T>(q, p->work_count);
        return p->work != NULL;
}

/* Computes the values and the vectors of `together` matrices from number i on; of one if !small. */
template <typename T>
static cusolverStatus_t decompose(const lg_solver *s, const lg_eigh_args *a, const problem<T> *p, int64_t i,
                                  int together)
{
        const cudaDataType type = lg_solver_type<T>;
        const int64_t n = a->n;
        T *v = p->v + i * n * n, *values = (T *)a->values + i * n;
        return p->small
                       ? LG_SOLVER_CALL(T, s->l, syevj)(s->handle, p->mode, CUBLAS_FILL_MODE_UPPER, (int)n, v, (int)n,
                                                        values, p->work, p->work_count, p->info + i, s->syevj, together)
                       : s->l->syevd(s->handle, s->params, p->mode, CUBLAS_FILL_MODE_UPPER, n, type, v, n, type, values,
                                     type, p->room.device, p->room.bytes, p->room.host, p->room.host_bytes,
                                     p->info + i);
}

template <typename T> static bool eigh(lg_queue *q, const lg_eigh_args *a)
{
        const int64_t n = a->n, size = n * n, count = a->count;
        problem<T> p;
        const lg_solver *s = lg_solver_open(q);
        p.mode = a->vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
        p.small = count > 1 && n <= TOGETHER;
        p.v = s ? lg_solver_elements<T>(q, count * size) : NULL;
        p.info = p.v ? lg_solver_elements<int>(q, 2 * count) : NULL;
        p.bad = p.info ? p.info + count : NULL;
        return p.info && make_room(q, s, a, &p) &&
               lg_solver_run(
                       q, p.small ? "cusolverDnsyevjBatched" : "cusolverDnXsyevd",
                       [&] {
                               return lg_solver_copy(q, p.v, a->a, (size_t)(count * size) * sizeof(T)) &&
                                      lg_solver_screen(q, a->dtype, count, size, n, p.v, p.bad);
                       },
                       [&] {
                               return lg_solver_each(count, p.small ? LG_SOLVER_BATCH : 1,
                                                     [&](int64_t i, int some) { return decompose(s, a, &p, i, some); });
                       }) &&
               lg_solver_judge(q, count, p.info, p.bad, a->origin) &&
               lg_solver_spoil(q, a->dtype, count, n, 0, p.info, a->values) &&
               (!a->vectors || (lg_solver_transpose(q, a->dtype, count, n, n, p.v, a->vectors, size) &&
                                lg_solver_spoil(q, a->dtype, count, size, 0, p.info, a->vectors)));
}

extern "C" bool lg_cuda_eigh(lg_queue *q, const lg_eigh_args *a)
{
        return a->count * a->n == 0 || LG_WITH_FLOAT(a->dtype, eigh<H>(q, a));
}
#endif
