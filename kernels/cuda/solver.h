/* solver.h - factorisations by cuSOLVER and triangular systems by cuBLAS: both libraries, which are loaded when they
 * are first needed, and the steps that the kernels of linalg.h share.
 *
 * The libraries' matrices are column-major. A row-major matrix is one of theirs, transposed: its lower triangle is
 * their upper one. */
#ifndef LG_CUDA_SOLVER_H
#define LG_CUDA_SOLVER_H

#include "cuda.h"

extern "C" {
/* Frees q's handles of cuSOLVER and cuBLAS; q's work must be finished. */
void lg_cuda_solver_close(lg_queue *q);
}

#if __has_include(<cusolverDn.h>) && __has_include(<cublas_v2.h>)
#define LG_CUSOLVER 1
#include <stdlib.h>
#include <type_traits>
#include <cublas_v2.h>
#include <cusolverDn.h>

/* Functions of cuSOLVER; those of two dtypes have the names s... and d... */
#define LG_SOLVER_FUNCTIONS(F)                                                                                         \
        F(open, cusolverDnCreate)                                                                                      \
        F(close, cusolverDnDestroy)                                                                                    \
        F(set_stream, cusolverDnSetStream)                                                                             \
        F(make_params, cusolverDnCreateParams)                                                                         \
        F(end_params, cusolverDnDestroyParams)                                                                         \
        F(make_syevj, cusolverDnCreateSyevjInfo)                                                                       \
        F(end_syevj, cusolverDnDestroySyevjInfo)                                                                       \
        F(make_gesvdj, cusolverDnCreateGesvdjInfo)                                                                     \
        F(end_gesvdj, cusolverDnDestroyGesvdjInfo)                                                                     \
        F(potrf_size, cusolverDnXpotrf_bufferSize)                                                                     \
        F(potrf, cusolverDnXpotrf)                                                                                     \
        F(spotrf_batched, cusolverDnSpotrfBatched)                                                                     \
        F(dpotrf_batched, cusolverDnDpotrfBatched)                                                                     \
        F(getrf_size, cusolverDnXgetrf_bufferSize)                                                                     \
        F(getrf, cusolverDnXgetrf)                                                                                     \
        F(geqrf_size, cusolverDnXgeqrf_bufferSize)                                                                     \
        F(geqrf, cusolverDnXgeqrf)                                                                                     \
        F(sorgqr_size, cusolverDnSorgqr_bufferSize)                                                                    \
        F(dorgqr_size, cusolverDnDorgqr_bufferSize)                                                                    \
        F(sorgqr, cusolverDnSorgqr)                                                                                    \
        F(dorgqr, cusolverDnDorgqr)                                                                                    \
        F(syevd_size, cusolverDnXsyevd_bufferSize)                                                                     \
        F(syevd, cusolverDnXsyevd)                                                                                     \
        F(ssyevj_size, cusolverDnSsyevjBatched_bufferSize)                                                             \
        F(dsyevj_size, cusolverDnDsyevjBatched_bufferSize)                                                             \
        F(ssyevj, cusolverDnSsyevjBatched)                                                                             \
        F(dsyevj, cusolverDnDsyevjBatched)                                                                             \
        F(gesvd_size, cusolverDnXgesvd_bufferSize)                                                                     \
        F(gesvd, cusolverDnXgesvd)                                                                                     \
        F(sgesvdj_size, cusolverDnSgesvdjBatched_bufferSize)                                                           \
        F(dgesvdj_size, cusolverDnDgesvdjBatched_bufferSize)                                                           \
        F(sgesvdj, cusolverDnSgesvdjBatched)                                                                           \
        F(dgesvdj, cusolverDnDgesvdjBatched)

#define LG_CUBLAS_FUNCTIONS(F)                                                                                         \
        F(open, cublasCreate_v2)                                                                                       \
        F(close, cublasDestroy_v2)                                                                                     \
        F(set_stream, cublasSetStream_v2)                                                                              \
        F(sgetrf_batched, cublasSgetrfBatched)                                                                         \
        F(dgetrf_batched, cublasDgetrfBatched)                                                                         \
        F(strsm, cublasStrsm_v2_64)                                                                                    \
        F(dtrsm, cublasDtrsm_v2_64)                                                                                    \
        F(strsm_batched, cublasStrsmBatched_64)                                                                        \
        F(dtrsm_batched, cublasDtrsmBatched_64)

#define LG_MEMBER(name, function) decltype(&::function) name;
typedef struct lg_solver_library {
        bool there;
        char reason[200]; /* message that explains why `there` is false */
        LG_SOLVER_FUNCTIONS(LG_MEMBER)
} lg_solver_library;

typedef struct lg_cublas_library {
        bool there;
        char reason[200];
        LG_CUBLAS_FUNCTIONS(LG_MEMBER)
} lg_cublas_library;
#undef LG_MEMBER

/* A queue's handles, which work in its stream. */
typedef struct lg_solver {
        const lg_solver_library *l;
        const lg_cublas_library *b;
        cusolverDnHandle_t handle; /* NULL: not opened yet */
        cusolverDnParams_t params;
        syevjInfo_t syevj;
        gesvdjInfo_t gesvdj;
        cublasHandle_t blas; /* NULL: not opened yet */
} lg_solver;

/* Return q's handles, opening that of cuSOLVER or that of cuBLAS, after waiting for links: either library may wait for
 * the device. NULL: an error, which is in q. */
lg_solver *lg_solver_open(lg_queue *q);
lg_solver *lg_solver_open_blas(lg_queue *q);

/* Return whether s is a success; if not, record `call` and the status in q. */
bool lg_solver_good(lg_queue *q, const char *call, cusolverStatus_t s);
bool lg_solver_good(lg_queue *q, const char *call, cublasStatus_t s);

static inline bool lg_solver_lacks_memory(cusolverStatus_t s)
{
        return s == CUSOLVER_STATUS_ALLOC_FAILED;
}
static inline bool lg_solver_lacks_memory(cublasStatus_t s)
{
        return s == CUBLAS_STATUS_ALLOC_FAILED;
}

/* Calls restore(), which copies operands that are overwritten, and work(), which returns a status; both again, with
 * more memory, if memory was short. restore() returns false, and work() anything, if an error was recorded in q. */
template <typename R, typename W> static bool lg_solver_run(lg_queue *q, const char *call, R restore, W work)
{
        while (restore()) {
                const auto s = work();
                if (q->status != LG_OK)
                        return false;
                if ((int)s == 0 || !lg_cuda_again(q, lg_solver_lacks_memory(s)))
                        return lg_solver_good(q, call, s);
        }
        return false;
}

#define LG_SOLVER_BATCH 32768 /* most matrices of a call */

/* Calls call(i, n) for the n matrices from number i on, `step` of `count` at a time, until one fails. */
template <typename C> static auto lg_solver_each(int64_t count, int64_t step, C call)
{
        decltype(call(0, 0)) s = {};
        for (int64_t i = 0; (int)s == 0 && i < count; i += step) {
                lg_cuda_count_launch();
                s = call(i, (int)(step < count - i ? step : count - i));
        }
        return s;
}

/* Picks the function for elements of type T. */
template <typename T, typename S, typename D> static auto lg_solver_pick(S s, D d)
{
        if constexpr (std::is_same_v<T, float>)
                return s;
        else
                return d;
}
#define LG_SOLVER_CALL(T, library, name) lg_solver_pick<T>((library)->s##name, (library)->d##name)

template <typename T> static constexpr cudaDataType lg_solver_type = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_64F;

/* Returns scratch memory for `count` elements, aligned to 256 bytes; NULL: an error, which is in q. */
void *lg_solver_scratch(lg_queue *q, size_t bytes);
template <typename T> static T *lg_solver_elements(lg_queue *q, int64_t count)
{
        return (T *)lg_solver_scratch(q, (size_t)(count > 0 ? count : 1) * sizeof(T));
}

/* The memory that a function with sizes in 64 bits works in, on the device and on the host. */
struct lg_solver_room {
        size_t bytes = 0, host_bytes = 0;
        void *device = NULL, *host = NULL;
        bool make(lg_queue *q);
        lg_solver_room() = default;
        ~lg_solver_room()
        {
                free(host);
        }
        lg_solver_room(const lg_solver_room &) = delete;
        lg_solver_room &operator=(const lg_solver_room &) = delete;
};

/* Copies bytes within the device. */
bool lg_solver_copy(lg_queue *q, void *to, const void *from, size_t bytes);
/* Copies `count` matrices (rows, columns) to `to`, row-major. Those of `from` begin `matrix` elements apart, their rows
 * `row`, their columns `column` elements. */
bool lg_solver_place(lg_queue *q, lg_dtype dtype, int64_t count, int64_t rows, int64_t columns, const void *from,
                     int64_t matrix, int64_t row, int64_t column, void *to);
/* Copies row-major matrices (rows, columns) transposed; the result has `matrix` elements from one to the next. */
bool lg_solver_transpose(lg_queue *q, lg_dtype dtype, int64_t count, int64_t rows, int64_t columns, const void *from,
                         void *to, int64_t matrix);
/* Writes `count` identities of n rows. */
bool lg_solver_identity(lg_queue *q, lg_dtype dtype, int64_t count, int64_t n, void *to);
/* Makes a list, in scratch memory, of the addresses of `count` matrices of `size` elements. NULL: an error, in q. */
void *lg_solver_addresses(lg_queue *q, void *first, int64_t bytes, int64_t count);
template <typename T> static T **lg_solver_list(lg_queue *q, void *first, int64_t size, int64_t count)
{
        return (T **)lg_solver_addresses(q, first, size * (int64_t)sizeof(T), count);
}
/* Sets bad[i] if matrix i of x, of `size` elements, has a NaN or infinity, and fills such a matrix with 0, so that no
 * iteration meets it. If n > 0, the matrices are square and only their row-major lower triangles are read. */
bool lg_solver_screen(lg_queue *q, lg_dtype dtype, int64_t count, int64_t size, int64_t n, void *x, int *bad);
/* Finds the first element of each matrix's diagonal that is not positive, or if `nonzero` that is 0 or NaN: `steps`
 * elements, `step` apart. Its number, from 1, becomes info[i], unless that is positive already. */
bool lg_solver_diagonal(lg_queue *q, lg_dtype dtype, int64_t count, int64_t size, int64_t steps, int64_t step,
                        bool nonzero, const void *x, int *info);
/* Records the first matrix with a positive info as a device-side error. bad: if not NULL, matrices with bad[i] have no
 * error, and their info becomes negative. */
bool lg_solver_judge(lg_queue *q, int64_t count, int *info, const int *bad, int origin);
/* Fills each matrix of x, of `size` elements, whose info is not 0 with NaN. If n > 0, matrices are square, and the
 * elements above the diagonals of the others become 0. */
bool lg_solver_spoil(lg_queue *q, lg_dtype dtype, int64_t count, int64_t size, int64_t n, const int *info, void *x);

#endif
#endif
