/* svd.cu - singular value decompositions by cuSOLVER: one after the other, or small matrices together by Jacobi's
 * method.
 *
 * cuSOLVER wants at least as many rows as columns. A row-major matrix with at most as many rows is one of these
 * already, transposed: its u and vt are then exchanged. */
#include "solver.h"
#if LG_CUSOLVER

#define TOGETHER 32 /* most rows and columns of matrices that are computed together */

/* The library's matrices, column-major: x (rows, cols) = u s v^T with u (rows, u_cols); v holds v^T if !small. */
template <typename T> struct problem {
        bool tall, vectors, small;
        int64_t rows, cols, u_cols;
        T *x, *u, *v, *work = NULL;
        int work_count = 0;
        int *info, *bad;
        lg_solver_room room;
};

template <typename T> static bool make_problem(lg_queue *q, const lg_svd_args *a, problem<T> *p)
{
        p->tall = a->m > a->n;
        p->vectors = a->u != NULL;
        p->rows = p->tall ? a->m : a->n;
        p->cols = p->tall ? a->n : a->m;
        p->small = a->count > 1 && p->rows <= TOGETHER;
        p->u_cols = a->full || p->small ? p->rows : p->cols;
        p->x = lg_solver_elements<T>(q, a->count * p->rows * p->cols);
        p->u = p->x ? lg_solver_elements<T>(q, p->vectors ? a->count * p->rows * p->u_cols : 0) : NULL;
        p->v = p->u ? lg_solver_elements<T>(q, p->vectors ? a->count * p->cols * p->cols : 0) : NULL;
        p->info = p->v ? lg_solver_elements<int>(q, 2 * a->count) : NULL;
        p->bad = p->info ? p->info + a->count : NULL;
        return p->info != NULL;
}

static signed char job_of(const lg_svd_args *a)
{
        return !a->u ? 'N' : a->full ? 'A' : 'S';
}

/* Finds what memory the library works in. */
template <typename T> static bool make_room(lg_queue *q, const lg_solver *s, const lg_svd_args *a, problem<T> *p)
{
        const cudaDataType type = lg_solver_type<T>;
        const int rows = (int)p->rows, cols = (int)p->cols;
        if (!p->small)
                return lg_solver_good(q, "cusolverDnXgesvd_bufferSize",
                                      s->l->gesvd_size(s->handle, s->params, job_of(a), job_of(a), p->rows, p->cols,
                                                       type, p->x, p->rows, type, a->s, type, p->u, p->rows, type, p->v,
                                                       p->cols, type, &p->room.bytes, &p->room.host_bytes)) &&
                       p->room.make(q);
        if (!lg_solver_good(q, "cusolverDngesvdjBatched_bufferSize",
                            LG_SOLVER_CALL(T, s->l, gesvdj_size)(
                                    s->handle, p->vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR, rows,
                                    cols, p->x, rows, (const T *)a->s, p->u, rows, p->v, cols, &p->work_count,
                                    s->gesvdj, (int)(a->count < LG_SOLVER_BATCH ? a->count : LG_SOLVER_BATCH))))
                return false;
        p->work = lg_solver_elements<T>(q, p->work_count);
        return p->work != NULL;
}

/* Decomposes `together` matrices from number i on; one if !small. */
template <typename T>
static cusolverStatus_t decompose(const lg_solver *s, const lg_svd_args *a, const problem<T> *p, int64_t i,
                                  int together)
{
        const cudaDataType type = lg_solver_type<T>;
        const int64_t rows = p->rows, cols = p->cols;
        T *x = p->x + i * rows * cols, *values = (T *)a->s + i * cols;
        T *u = p->vectors ? p->u + i * rows * p->u_cols : p->u, *v = p->vectors ? p->v + i * cols * cols : p->v;
        if (p->small)
                return LG_SOLVER_CALL(T, s->l, gesvdj)(
                        s->handle, p->vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR, (int)rows,
                        (int)cols, x, (int)rows, values, u, (int)rows, v, (int)cols, p->work, p->work_count,
                        p->info + i, s->gesvdj, together);
        return s->l->gesvd(s->handle, s->params, job_of(a), job_of(a), rows, cols, type, x, rows, type, values, type, u,
                           rows, type, v, cols, type, p->room.device, p->room.bytes, p->room.host, p->room.host_bytes,
                           p->info + i);
}

/* Copies the matrices to x, without NaN. */
template <typename T> static bool restore(lg_queue *q, const lg_svd_args *a, const problem<T> *p)
{
        const int64_t size = a->m * a->n;
        return (p->tall ? lg_solver_transpose(q, a->dtype, a->count, a->m, a->n, a->a, p->x, size)
                        : lg_solver_copy(q, p->x, a->a, (size_t)(a->count * size) * sizeof(T))) &&
               lg_solver_screen(q, a->dtype, a->count, size, 0, p->x, p->bad);
}

/* Copies u and vt to their places. u of the library is a->u or, transposed, a->vt; v the other one. */
template <typename T> static bool place(lg_queue *q, const lg_svd_args *a, const problem<T> *p)
{
        const int64_t rows = p->rows, cols = p->cols, count = a->count, taken = a->full ? rows : cols;
        const bool v_by_row = p->tall == p->small; /* whether a row of the result is contiguous in v */
        void *of_u = p->tall ? a->u : a->vt, *of_v = p->tall ? a->vt : a->u;
        return lg_solver_place(q, a->dtype, count, p->tall ? rows : taken, p->tall ? taken : rows, p->u,
                               rows * p->u_cols, p->tall ? 1 : rows, p->tall ? rows : 1, of_u) &&
               lg_solver_place(q, a->dtype, count, cols, cols, p->v, cols * cols, v_by_row ? cols : 1,
                               v_by_row ? 1 : cols, of_v) &&
               lg_solver_spoil(q, a->dtype, count, rows * taken, 0, p->info, of_u) &&
               lg_solver_spoil(q, a->dtype, count, cols * cols, 0, p->info, of_v);
}

template <typename T> static bool svd(lg_queue *q, const lg_svd_args *a)
{
        problem<T> p;
        const lg_solver *s = lg_solver_open(q);
        return s && make_problem(q, a, &p) && make_room(q, s, a, &p) &&
               lg_solver_run(
                       q, p.small ? "cusolverDngesvdjBatched" : "cusolverDnXgesvd", [&] { return restore(q, a, &p); },
                       [&] {
                               return lg_solver_each(
                                       a->count, p.small ? LG_SOLVER_BATCH : 1,
                                       [&](int64_t i, int count) { return decompose(s, a, &p, i, count); });
                       }) &&
               lg_solver_judge(q, a->count, p.info, p.bad, a->origin) &&
               lg_solver_spoil(q, a->dtype, a->count, p.cols, 0, p.info, a->s) && (!p.vectors || place(q, a, &p));
}

extern "C" bool lg_cuda_svd(lg_queue *q, const lg_svd_args *a)
{
        if (a->count * a->m * a->n == 0) /* a full u or vt is the identity; a pointer to nothing may be NULL */
                return !a->full || ((!a->u || lg_solver_identity(q, a->dtype, a->count, a->m, a->u)) &&
                                    (!a->vt || lg_solver_identity(q, a->dtype, a->count, a->n, a->vt)));
        return LG_WITH_FLOAT(a->dtype, svd<H>(q, a));
}
#endif
