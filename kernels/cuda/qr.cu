/* qr.cu - QR factorisations by cuSOLVER's Householder reflections, one after the other. */
#include "solver.h"
#include <limits.h>
#if LG_CUSOLVER

/* Copies the upper triangles of column-major matrices of m rows, `size` elements apart, to r (rank, n). */
template <typename T>
static __global__ void upper_triangles(int64_t total, int64_t m, int64_t rank, int64_t n, int64_t size, const T *t,
                                       T *r)
{
        for (int64_t i = LG_FIRST; i < total; i += LG_STEP) {
                const int64_t column = i % n, row = i / n % rank;
                r[i] = row <= column ? t[i / n / rank * size + column * m + row] : 0;
        }
}

/* The scratch memory: t holds column-major matrices of m rows, `size` elements apart; tau their reflections' factors.
 */
template <typename T> struct parts {
        T *t, *tau, *work;
        int64_t size, reflections;
        int work_count;
        int *info;
        lg_solver_room room;
};

template <typename T> static bool make_parts(lg_queue *q, const lg_solver *s, const lg_qr_args *a, parts<T> *p)
{
        const int64_t m = a->m, n = a->n, k = m < n ? m : n;
        p->reflections = k;
        p->size = m * (n > a->rank ? n : a->rank);
        p->work_count = 0;
        if (m > INT_MAX || a->rank > INT_MAX)
                return lg_queue_fail(q, LG_BROKEN, "qr: cuSOLVER has no matrices of more than %d rows", INT_MAX);
        p->t = lg_solver_elements<T>(q, a->count * p->size);
        p->tau = p->t ? lg_solver_elements<T>(q, a->count * k) : NULL;
        p->info = p->tau ? lg_solver_elements<int>(q, 1) : NULL;
        if (!p->info ||
            !lg_solver_good(q, "cusolverDnXgeqrf_bufferSize",
                            s->l->geqrf_size(s->handle, s->params, m, n, lg_solver_type<T>, p->t, m, lg_solver_type<T>,
                                             p->tau, lg_solver_type<T>, &p->room.bytes, &p->room.host_bytes)) ||
            (a->q && !lg_solver_good(q, "cusolverDnorgqr_bufferSize",
                                     LG_SOLVER_CALL(T, s->l, orgqr_size)(s->handle, (int)m, (int)a->rank, (int)k, p->t,
                                                                         (int)m, p->tau, &p->work_count))) ||
            !p->room.make(q))
                return false;
        p->work = lg_solver_elements<T>(q, p->work_count);
        return p->work != NULL;
}

/* Computes the reflections, r from them, and q in t. */
template <typename T>
static cusolverStatus_t factorise(lg_queue *q, const lg_solver *s, const lg_qr_args *a, const parts<T> *p)
{
        const cudaDataType type = lg_solver_type<T>;
        const int64_t m = a->m, n = a->n, k = p->reflections, total = a->count * a->rank * n;
        const cusolverStatus_t e = lg_solver_each(a->count, 1, [&](int64_t i, int) {
                return s->l->geqrf(s->handle, s->params, m, n, type, p->t + i * p->size, m, type, p->tau + i * k, type,
                                   p->room.device, p->room.bytes, p->room.host, p->room.host_bytes, p->info);
        });
        if (e != CUSOLVER_STATUS_SUCCESS || !lg_launch(q, "qr (triangles)", upper_triangles<T>, lg_blocks(q, total),
                                                       total, m, a->rank, n, p->size, (const T *)p->t, (T *)a->r))
                return e;
        return lg_solver_each(a->q ? a->count : 0, 1, [&](int64_t i, int) {
                return LG_SOLVER_CALL(T, s->l, orgqr)(s->handle, (int)m, (int)a->rank, (int)k, p->t + i * p->size,
                                                      (int)m, p->tau + i * k, p->work, p->work_count, p->info);
        });
}

template <typename T> static bool qr(lg_queue *q, const lg_qr_args *a)
{
        const int64_t m = a->m;
        parts<T> p;
        const lg_solver *s = lg_solver_open(q);
        return s && make_parts(q, s, a, &p) &&
               lg_solver_run(
                       q, "cusolverDn (QR)",
                       [&] { return lg_solver_transpose(q, a->dtype, a->count, m, a->n, a->a, p.t, p.size); },
                       [&] { return factorise(q, s, a, &p); }) &&
               (!a->q || lg_solver_place(q, a->dtype, a->count, m, a->rank, p.t, p.size, 1, m, a->q));
}

extern "C" bool lg_cuda_qr(lg_queue *q, const lg_qr_args *a)
{
        if (a->count * a->m * a->n == 0) /* r is empty, and a complete q, of m columns, the identity */
                return !a->q || a->rank == 0 || lg_solver_identity(q, a->dtype, a->count, a->m, a->q);
        return LG_WITH_FLOAT(a->dtype, qr<H>(q, a));
}
#endif
