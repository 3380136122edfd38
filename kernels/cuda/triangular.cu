/* triangular.cu - triangular systems by cuBLAS: one after the other, or many small ones together. */
#include "solver.h"
#if LG_CUSOLVER

#define MOST 512 /* most rows of systems that are solved together */

/* Copies rows of k elements: row permutation[i] to row i, or the reverse if `scatter`; `rows` in all, n for each
 * matrix. */
template <typename T>
static __global__ void move_rows(int64_t rows, int64_t n, int64_t k, bool scatter, const int64_t *permutation,
                                 const T *from, T *to)
{
        for (int64_t i = LG_FIRST; i < rows * k; i += LG_STEP) {
                const int64_t row = i / k, column = i % k, other = (row / n * n + permutation[row]) * k + column;
                if (scatter)
                        to[other] = from[i];
                else
                        to[i] = from[other];
        }
}

template <typename T> static bool permute(lg_queue *q, const lg_triangular_args *a, const void *from, void *to)
{
        const int64_t rows = a->count * a->n;
        if (!a->permutation)
                return lg_solver_copy(q, to, from, (size_t)(rows * a->k) * sizeof(T));
        return lg_launch(q, "triangular (rows)", move_rows<T>, lg_blocks(q, rows * a->k), rows, a->n, a->k, a->scatter,
                         a->permutation, (const T *)from, (T *)to);
}

/* Solves in place: with the row-major x as x^T of cuBLAS, x^T op(a)^T = b^T. lists: the addresses of the matrices of a,
 * and those of x, if they are solved together. */
template <typename T>
static cublasStatus_t solve(const lg_solver *s, const lg_triangular_args *a, T *x, T *const *const lists[2])
{
        const cublasFillMode_t triangle = a->upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
        const cublasOperation_t op = a->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        const cublasDiagType_t unit = a->unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
        const int64_t n = a->n, k = a->k;
        const T one = 1;
        return lg_solver_each(a->count, lists[0] ? LG_SOLVER_BATCH : 1, [&](int64_t i, int count) {
                return lists[0] ? LG_SOLVER_CALL(T, s->b, trsm_batched)(s->blas, CUBLAS_SIDE_RIGHT, triangle, op, unit,
                                                                        k, n, &one, lists[0] + i, n, lists[1] + i, k,
                                                                        count)
                                : LG_SOLVER_CALL(T, s->b, trsm)(s->blas, CUBLAS_SIDE_RIGHT, triangle, op, unit, k, n,
                                                                &one, (const T *)a->a + i * n * n, n, x + i * n * k, k);
        });
}

template <typename T> static bool triangular(lg_queue *q, const lg_triangular_args *a)
{
        const int64_t n = a->n, k = a->k, elements = a->count * n * k;
        const bool apart = a->scatter && a->permutation,
                   together = a->count > 1 && n <= MOST && (a->count > 8 || n < 64);
        const lg_solver *s = lg_solver_open_blas(q);
        T *x = !s ? NULL : apart ? lg_solver_elements<T>(q, elements) : (T *)a->x, *const * lists[2] = {NULL, NULL};
        if (!x)
                return false;
        if (together && (!(lists[0] = lg_solver_list<T>(q, (void *)(uintptr_t)a->a, n * n, a->count)) ||
                         !(lists[1] = lg_solver_list<T>(q, x, n * k, a->count))))
                return false;
        return lg_solver_run(
                       q, together ? "cublastrsmBatched" : "cublastrsm",
                       [&] {
                               return apart ? lg_solver_copy(q, x, a->b, (size_t)elements * sizeof(T))
                                            : permute<T>(q, a, a->b, x);
                       },
                       [&] { return solve(s, a, x, lists); }) &&
               (!apart || permute<T>(q, a, x, a->x));
}

extern "C" bool lg_cuda_triangular(lg_queue *q, const lg_triangular_args *a)
{
        return a->count * a->n * a->k == 0 || LG_WITH_FLOAT(a->dtype, triangular<H>(q, a));
}
#endif
