/* cusolver.cpp - the functions of cuSOLVER and cuBLAS in use: arguments are checked, plain loops run in their stream.
 *
 * Misuse dies, and so does a NaN in what iterates. Only what libgrad asks for is simulated: upper triangles, and
 * systems whose triangle is on the right. Memory to work in is written to.
 */
#include "sim.h"
#if __has_include(<cusolverDn.h>) && __has_include(<cublas_v2.h>)
#include "dense.h"
#include <cmath>
#include <cublas_v2.h>
#include <cusolverDn.h>

using namespace cudasim;

/* A handle of either library, or a record of parameters. */
struct cusolverDnContext {
        int device;
        cudaStream_t stream;
};
struct cublasContext : cusolverDnContext {
};
struct cusolverDnParams {
        int unused;
};
struct syevjInfo : cusolverDnParams {
};
struct gesvdjInfo : cusolverDnParams {
};

namespace
{
const void *sized(cudaDataType type, const void *p, int64_t elements)
{
        return (const char *)p + elements * (type == CUDA_R_64F ? 8 : 4);
}

template <typename T> dense read(const T *p, int64_t rows, int64_t cols)
{
        dense a(rows, cols);
        for (int64_t i = 0; i < rows * cols; i++)
                a.data[(size_t)i] = (double)p[i];
        return a;
}

template <typename T> void write(T *p, const std::vector<double> &from, size_t count = SIZE_MAX)
{
        for (size_t i = 0; i < from.size() && i < count; i++)
                p[i] = (T)from[i];
}

void must_be_finite(const char *call, const dense &a, bool triangle)
{
        for (int64_t i = 0; i < a.rows * a.cols; i++)
                if ((!triangle || i % a.rows <= i / a.rows) && !std::isfinite(a.data[(size_t)i]))
                        die("%s: a matrix with a NaN or infinity, with which it may not end", call);
}

/* Dies unless the handle is of the current device and the matrix begins at each of its columns. */
void check_handle(const char *call, const cusolverDnContext *h, int64_t rows, int64_t ld)
{
        if (!h || h->device != current_device)
                die("%s: no handle, or one of another device", call);
        if (rows < 1 || ld != rows)
                die("%s: %lld rows with a leading dimension of %lld", call, (long long)rows, (long long)ld);
}

void check(const char *call, cudaDataType type, const void *p, int64_t elements)
{
        if (type != CUDA_R_32F && type != CUDA_R_64F)
                die("%s: type %d", call, (int)type);
        if ((uintptr_t)p % (type == CUDA_R_64F ? 8 : 4))
                die("%s: %p is not aligned to its elements", call, p);
        check_device(call, p, (size_t)((const char *)sized(type, p, elements) - (const char *)p));
}

/* How much memory functions want: on the device, and on the host. */
enum { ROOM = 40, HOST_ROOM = 24 };

template <typename T> constexpr cudaDataType type_of = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;

cusolverStatus_t give_room(const char *call, size_t *device, size_t *host)
{
        if (fails(call))
                return CUSOLVER_STATUS_INTERNAL_ERROR;
        *device = ROOM;
        *host = HOST_ROOM;
        return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t give_work(const char *call, int *count)
{
        if (fails(call))
                return CUSOLVER_STATUS_INTERNAL_ERROR;
        *count = ROOM / 4;
        return CUSOLVER_STATUS_SUCCESS;
}

/* Checks and spoils the memory to work in; a call fails here if it shall, or if a graph would use memory of the host.
 */
cusolverStatus_t use_room(const char *call, void *device, size_t bytes, void *host, size_t host_bytes)
{
        if (breaks_capture())
                return CUSOLVER_STATUS_INTERNAL_ERROR;
        if (bytes != ROOM || host_bytes != HOST_ROOM)
                die("%s: memory to work in of another size than it was asked for", call);
        check_device(call, device, bytes);
        memset(host, 0xa5, host_bytes);
        return fails(call)         ? CUSOLVER_STATUS_EXECUTION_FAILED
               : fails(call, LOAD) ? CUSOLVER_STATUS_ALLOC_FAILED
                                   : CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t use_work(const char *call, const void *work, size_t element, int count)
{
        if (count != ROOM / 4)
                die("%s: memory to work in of another size than it was asked for", call);
        check_device(call, work, element * (size_t)count);
        return fails(call)         ? CUSOLVER_STATUS_EXECUTION_FAILED
               : fails(call, LOAD) ? CUSOLVER_STATUS_ALLOC_FAILED
                                   : CUSOLVER_STATUS_SUCCESS;
}

/* The matrices of a list, read when they are needed. */
template <typename T> T *listed(const char *call, T *const *list, int64_t i, int64_t elements)
{
        check(call, type_of<T>, list[i], elements);
        return list[i];
}

/* Calls f with a pointer of the elements' type. */
template <typename F> void with_type(cudaDataType type, F f)
{
        if (type == CUDA_R_64F)
                f((double *)nullptr);
        else
                f((float *)nullptr);
}

template <typename H> void make(H **ret)
{
        *ret = new H;
        count_handles(1);
}

template <typename H> cusolverStatus_t end(H *h)
{
        delete h;
        count_handles(-1);
        return CUSOLVER_STATUS_SUCCESS;
}

template <typename T>
cusolverStatus_t potrf_batched(const char *call, cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T **list, int lda,
                               int *info, int count)
{
        check_handle(call, h, n, lda);
        if (uplo != CUBLAS_FILL_MODE_UPPER || count < 1)
                die("%s: a triangle or a batch that is not simulated", call);
        check_device(call, list, (size_t)count * sizeof *list);
        check_device(call, info, (size_t)count * sizeof *info);
        if (fails(call))
                return CUSOLVER_STATUS_EXECUTION_FAILED;
        if (fails(call, LOAD))
                return CUSOLVER_STATUS_ALLOC_FAILED;
        enqueue(h->stream, [=] {
                for (int i = 0; i < count; i++) {
                        T *p = listed(call, list, i, (int64_t)n * n);
                        dense a = read(p, n, n);
                        info[i] = cholesky(a);
                        write(p, a.data);
                }
        });
        return CUSOLVER_STATUS_SUCCESS;
}

template <typename T>
cusolverStatus_t orgqr(const char *call, cusolverDnHandle_t h, int m, int n, int k, T *p, int lda, const T *tau,
                       T *work, int count, int *info)
{
        check_handle(call, h, m, lda);
        if (n > m || k > n || k < 1)
                die("%s: %d columns of %d reflections of %d rows", call, n, k, m);
        check(call, type_of<T>, p, (int64_t)m * n);
        check(call, type_of<T>, tau, k);
        check_device(call, info, sizeof *info);
        const cusolverStatus_t s = use_work(call, work, sizeof *work, count);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                dense a = read(p, m, k);
                write(p, q_of(a, read(tau, k, 1).data, n).data);
                memset((void *)work, 0xa5, sizeof *work * (size_t)count);
                *info = 0;
        });
        return CUSOLVER_STATUS_SUCCESS;
}

template <typename T> int find_values(const char *call, T *p, int64_t n, T *values, bool vectors)
{
        std::vector<double> found;
        dense a = read(p, n, n);
        must_be_finite(call, a, true);
        const dense v = eigh(a, found);
        write(values, found);
        for (int64_t i = 0; i < n * n; i++)
                p[i] = vectors ? (T)v.data[(size_t)i] : (T)NAN;
        return 0;
}

template <typename T>
cusolverStatus_t syevj(const char *call, cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n,
                       T *p, int lda, T *values, T *work, int work_count, int *info, syevjInfo_t params, int count)
{
        check_handle(call, h, n, lda);
        if (uplo != CUBLAS_FILL_MODE_UPPER || count < 1 || !params)
                die("%s: a triangle or a batch that is not simulated", call);
        check(call, type_of<T>, p, (int64_t)n * n * count);
        check(call, type_of<T>, values, (int64_t)n * count);
        check_device(call, info, (size_t)count * sizeof *info);
        const cusolverStatus_t s = use_work(call, work, sizeof *work, work_count);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                for (int i = 0; i < count; i++)
                        info[i] = find_values(call, p + (int64_t)i * n * n, n, values + (int64_t)i * n,
                                              mode == CUSOLVER_EIG_MODE_VECTOR);
        });
        return CUSOLVER_STATUS_SUCCESS;
}

/* Decomposes; u: u_cols columns, v: v, or v^T if `transposed`; NULL: none. */
template <typename T>
int decompose(const char *call, T *p, int64_t m, int64_t n, T *values, T *u, int64_t u_cols, T *v, bool transposed)
{
        dense a = read(p, m, n), left(m, m), right(n, n);
        std::vector<double> found;
        must_be_finite(call, a, false);
        svd(a, left, found, right);
        write(values, found);
        for (int64_t i = 0; i < m * n; i++)
                p[i] = (T)NAN;
        if (u)
                write(u, left.data, (size_t)(m * u_cols));
        for (int64_t i = 0; v && i < n * n; i++)
                v[i] = (T)(transposed ? right(i / n, i % n) : right(i % n, i / n));
        return 0;
}

template <typename T>
cusolverStatus_t gesvdj(const char *call, cusolverDnHandle_t h, cusolverEigMode_t mode, int m, int n, T *p, int lda,
                        T *values, T *u, int ldu, T *v, int ldv, T *work, int work_count, int *info,
                        gesvdjInfo_t params, int count)
{
        const bool vectors = mode == CUSOLVER_EIG_MODE_VECTOR;
        check_handle(call, h, m, lda);
        if (m > 32 || n > 32 || n < 1 || m < n || count < 1 || !params || ldu != m || ldv != n)
                die("%s: %d x %d is not simulated", call, m, n);
        check(call, type_of<T>, p, (int64_t)m * n * count);
        check(call, type_of<T>, values, (int64_t)n * count);
        check(call, type_of<T>, u, vectors ? (int64_t)m * m * count : 0);
        check(call, type_of<T>, v, vectors ? (int64_t)n * n * count : 0);
        check_device(call, info, (size_t)count * sizeof *info);
        const cusolverStatus_t s = use_work(call, work, sizeof *work, work_count);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                for (int64_t i = 0; i < count; i++)
                        info[i] =
                                decompose(call, p + i * m * n, m, n, values + i * n, vectors ? u + i * m * m : nullptr,
                                          m, vectors ? v + i * n * n : nullptr, false);
        });
        return CUSOLVER_STATUS_SUCCESS;
}

/* x op(a) = alpha b, with b in x: (m, n). */
template <typename T>
void solve(bool upper, bool transposed, bool unit, int64_t m, int64_t n, double alpha, const T *a, T *x)
{
        const bool forward = upper != transposed;
        for (int64_t turn = 0; turn < n; turn++) {
                const int64_t j = forward ? turn : n - 1 - turn;
                for (int64_t row = 0; row < m; row++) {
                        double sum = alpha * (double)x[j * m + row];
                        for (int64_t i = forward ? 0 : j + 1; i < (forward ? j : n); i++)
                                sum -= (double)x[i * m + row] * (double)a[transposed ? i * n + j : j * n + i];
                        x[j * m + row] = (T)(unit ? sum : sum / (double)a[j * n + j]);
                }
        }
}

template <typename T>
cublasStatus_t trsm_of(const char *call, cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo,
                       cublasOperation_t op, cublasDiagType_t diag, int64_t m, int64_t n, const T *alpha, const T *a,
                       int64_t lda, T *x, int64_t ldb, const T *const *as, T *const *xs, int64_t count)
{
        check_handle(call, h, n, lda);
        if (side != CUBLAS_SIDE_RIGHT || m < 1 || ldb != m || count < 1)
                die("%s: a system that is not simulated", call);
        if (as) {
                check_device(call, as, (size_t)count * sizeof *as);
                check_device(call, xs, (size_t)count * sizeof *xs);
        } else {
                check(call, type_of<T>, a, n * n);
                check(call, type_of<T>, x, n * m);
        }
        if (fails(call))
                return CUBLAS_STATUS_EXECUTION_FAILED;
        if (fails(call, LOAD))
                return CUBLAS_STATUS_ALLOC_FAILED;
        const double by = (double)*alpha;
        enqueue(h->stream, [=] {
                for (int64_t i = 0; i < count; i++)
                        solve(uplo == CUBLAS_FILL_MODE_UPPER, op == CUBLAS_OP_T, diag == CUBLAS_DIAG_UNIT, m, n, by,
                              as ? listed(call, as, i, n * n) : a, xs ? listed(call, xs, i, n * m) : x);
        });
        return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t trsm(const char *call, cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo,
                    cublasOperation_t op, cublasDiagType_t diag, int64_t m, int64_t n, const T *alpha, const T *a,
                    int64_t lda, T *x, int64_t ldb)
{
        return trsm_of<T>(call, h, side, uplo, op, diag, m, n, alpha, a, lda, x, ldb, nullptr, nullptr, 1);
}

template <typename T>
cublasStatus_t trsm(const char *call, cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo,
                    cublasOperation_t op, cublasDiagType_t diag, int64_t m, int64_t n, const T *alpha,
                    const T *const *as, int64_t lda, T *const *xs, int64_t ldb, int64_t count)
{
        return trsm_of<T>(call, h, side, uplo, op, diag, m, n, alpha, nullptr, lda, nullptr, ldb, as, xs, count);
}

template <typename T>
cublasStatus_t getrf_batched(const char *call, cublasHandle_t h, int n, T *const *list, int lda, int *swaps, int *info,
                             int count)
{
        check_handle(call, h, n, lda);
        check_device(call, list, (size_t)count * sizeof *list);
        check_device(call, swaps, (size_t)count * (size_t)n * sizeof *swaps);
        check_device(call, info, (size_t)count * sizeof *info);
        if (fails(call))
                return CUBLAS_STATUS_EXECUTION_FAILED;
        if (fails(call, LOAD))
                return CUBLAS_STATUS_ALLOC_FAILED;
        enqueue(h->stream, [=] {
                for (int i = 0; i < count; i++) {
                        T *p = listed(call, list, i, (int64_t)n * n);
                        dense a = read(p, n, n);
                        std::vector<int64_t> rows;
                        info[i] = lu(a, rows);
                        for (int k = 0; k < n; k++)
                                swaps[(int64_t)i * n + k] = (int)rows[(size_t)k];
                        write(p, a.data);
                }
        });
        return CUBLAS_STATUS_SUCCESS;
}
} // namespace

#define GUARD std::lock_guard<std::recursive_mutex> guard_(everything())
#define FAIL                                                                                                           \
        if (fails(__func__))                                                                                           \
        return CUSOLVER_STATUS_INTERNAL_ERROR
#define MAKE(name, type)                                                                                               \
        cusolverStatus_t CUSOLVERAPI cusolverDnCreate##name(type *ret)                                                 \
        {                                                                                                              \
                GUARD;                                                                                                 \
                if (fails(__func__))                                                                                   \
                        return CUSOLVER_STATUS_ALLOC_FAILED;                                                           \
                make(ret);                                                                                             \
                return CUSOLVER_STATUS_SUCCESS;                                                                        \
        }                                                                                                              \
        cusolverStatus_t CUSOLVERAPI cusolverDnDestroy##name(type p)                                                   \
        {                                                                                                              \
                GUARD;                                                                                                 \
                return end(p);                                                                                         \
        }
/* The functions of both dtypes: P, their parameters with elements of type T; A, the arguments. */
#define BOTH(status, s, d, f, P, A)                                                                                    \
        status s P(float)                                                                                              \
        {                                                                                                              \
                GUARD;                                                                                                 \
                return f A;                                                                                            \
        }                                                                                                              \
        status d P(double)                                                                                             \
        {                                                                                                              \
                GUARD;                                                                                                 \
                return f A;                                                                                            \
        }

extern "C" {
cusolverStatus_t CUSOLVERAPI cusolverDnCreate(cusolverDnHandle_t *ret)
{
        GUARD;
        FAIL;
        if (fails(__func__, LOAD) || breaks_capture())
                return CUSOLVER_STATUS_NOT_INITIALIZED;
        make(ret);
        (*ret)->device = current_device;
        return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t CUSOLVERAPI cusolverDnDestroy(cusolverDnHandle_t h)
{
        GUARD;
        return end(h);
}

cusolverStatus_t CUSOLVERAPI cusolverDnSetStream(cusolverDnHandle_t h, cudaStream_t s)
{
        GUARD;
        FAIL;
        h->stream = s;
        return CUSOLVER_STATUS_SUCCESS;
}

MAKE(Params, cusolverDnParams_t)
MAKE(SyevjInfo, syevjInfo_t)
MAKE(GesvdjInfo, gesvdjInfo_t)

cublasStatus_t CUBLASWINAPI cublasCreate_v2(cublasHandle_t *ret)
{
        GUARD;
        if (fails(__func__) || fails(__func__, LOAD) || breaks_capture())
                return CUBLAS_STATUS_ALLOC_FAILED;
        make(ret);
        (*ret)->device = current_device;
        return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasDestroy_v2(cublasHandle_t h)
{
        GUARD;
        end(h);
        return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasSetStream_v2(cublasHandle_t h, cudaStream_t s)
{
        GUARD;
        if (fails(__func__))
                return CUBLAS_STATUS_INTERNAL_ERROR;
        h->stream = s;
        return CUBLAS_STATUS_SUCCESS;
}

/* ---- one matrix, of either dtype ---- */

cusolverStatus_t CUSOLVERAPI cusolverDnXpotrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t,
                                                         int64_t, cudaDataType, const void *, int64_t, cudaDataType,
                                                         size_t *device, size_t *host)
{
        GUARD;
        return give_room(__func__, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXpotrf(cusolverDnHandle_t h, cusolverDnParams_t, cublasFillMode_t uplo,
                                              int64_t n, cudaDataType type, void *p, int64_t lda, cudaDataType,
                                              void *room, size_t bytes, void *host, size_t host_bytes, int *info)
{
        GUARD;
        check_handle(__func__, h, n, lda);
        if (uplo != CUBLAS_FILL_MODE_UPPER)
                die("%s: the lower triangle is not simulated", __func__);
        check(__func__, type, p, n * n);
        check_device(__func__, info, sizeof *info);
        const cusolverStatus_t s = use_room(__func__, room, bytes, host, host_bytes);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                with_type(type, [=](auto *t) {
                        dense a = read((decltype(t))p, n, n);
                        *info = cholesky(a);
                        write((decltype(t))p, a.data);
                });
                memset(room, 0xa5, bytes);
        });
        return s;
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgetrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t,
                                                         cudaDataType, const void *, int64_t, cudaDataType,
                                                         size_t *device, size_t *host)
{
        GUARD;
        return give_room(__func__, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgetrf(cusolverDnHandle_t h, cusolverDnParams_t, int64_t m, int64_t n,
                                              cudaDataType type, void *p, int64_t lda, int64_t *swaps, cudaDataType,
                                              void *room, size_t bytes, void *host, size_t host_bytes, int *info)
{
        GUARD;
        check_handle(__func__, h, m, lda);
        check(__func__, type, p, m * n);
        check_device(__func__, swaps, (size_t)(m < n ? m : n) * sizeof *swaps);
        check_device(__func__, info, sizeof *info);
        const cusolverStatus_t s = use_room(__func__, room, bytes, host, host_bytes);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                with_type(type, [=](auto *t) {
                        dense a = read((decltype(t))p, m, n);
                        std::vector<int64_t> rows;
                        *info = lu(a, rows);
                        memcpy(swaps, rows.data(), rows.size() * sizeof *swaps);
                        write((decltype(t))p, a.data);
                });
                memset(room, 0xa5, bytes);
        });
        return s;
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t,
                                                         cudaDataType, const void *, int64_t, cudaDataType,
                                                         const void *, cudaDataType, size_t *device, size_t *host)
{
        GUARD;
        return give_room(__func__, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgeqrf(cusolverDnHandle_t h, cusolverDnParams_t, int64_t m, int64_t n,
                                              cudaDataType type, void *p, int64_t lda, cudaDataType, void *tau,
                                              cudaDataType, void *room, size_t bytes, void *host, size_t host_bytes,
                                              int *info)
{
        GUARD;
        check_handle(__func__, h, m, lda);
        check(__func__, type, p, m * n);
        check(__func__, type, tau, m < n ? m : n);
        check_device(__func__, info, sizeof *info);
        const cusolverStatus_t s = use_room(__func__, room, bytes, host, host_bytes);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                with_type(type, [=](auto *t) {
                        dense a = read((decltype(t))p, m, n);
                        std::vector<double> factors;
                        qr(a, factors);
                        write((decltype(t))tau, factors);
                        write((decltype(t))p, a.data);
                });
                memset(room, 0xa5, bytes);
                *info = 0;
        });
        return s;
}

cusolverStatus_t CUSOLVERAPI cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                                         cublasFillMode_t, int64_t, cudaDataType, const void *, int64_t,
                                                         cudaDataType, const void *, cudaDataType, size_t *device,
                                                         size_t *host)
{
        GUARD;
        return give_room(__func__, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXsyevd(cusolverDnHandle_t h, cusolverDnParams_t, cusolverEigMode_t mode,
                                              cublasFillMode_t uplo, int64_t n, cudaDataType type, void *p, int64_t lda,
                                              cudaDataType, void *values, cudaDataType, void *room, size_t bytes,
                                              void *host, size_t host_bytes, int *info)
{
        GUARD;
        check_handle(__func__, h, n, lda);
        if (uplo != CUBLAS_FILL_MODE_UPPER)
                die("%s: the lower triangle is not simulated", __func__);
        check(__func__, type, p, n * n);
        check(__func__, type, values, n);
        check_device(__func__, info, sizeof *info);
        const cusolverStatus_t s = use_room(__func__, room, bytes, host, host_bytes);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                with_type(type, [=](auto *t) {
                        *info = find_values("cusolverDnXsyevd", (decltype(t))p, n, (decltype(t))values,
                                            mode == CUSOLVER_EIG_MODE_VECTOR);
                });
                memset(room, 0xa5, bytes);
        });
        return s;
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgesvd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, signed char,
                                                         signed char, int64_t, int64_t, cudaDataType, const void *,
                                                         int64_t, cudaDataType, const void *, cudaDataType,
                                                         const void *, int64_t, cudaDataType, const void *, int64_t,
                                                         cudaDataType, size_t *device, size_t *host)
{
        GUARD;
        return give_room(__func__, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgesvd(cusolverDnHandle_t h, cusolverDnParams_t, signed char job,
                                              signed char job_v, int64_t m, int64_t n, cudaDataType type, void *p,
                                              int64_t lda, cudaDataType, void *values, cudaDataType, void *u,
                                              int64_t ldu, cudaDataType, void *vt, int64_t ldvt, cudaDataType,
                                              void *room, size_t bytes, void *host, size_t host_bytes, int *info)
{
        GUARD;
        const bool vectors = job != 'N';
        const int64_t u_cols = job == 'A' ? m : n;
        check_handle(__func__, h, m, lda);
        if (n < 1 || m < n || job != job_v || ldu != m || ldvt != n || (vectors && job != 'A' && job != 'S'))
                die("%s: %lld x %lld with job '%c' is not simulated", __func__, (long long)m, (long long)n, job);
        check(__func__, type, p, m * n);
        check(__func__, type, values, n);
        check(__func__, type, u, vectors ? m * u_cols : 0);
        check(__func__, type, vt, vectors ? n * n : 0);
        check_device(__func__, info, sizeof *info);
        const cusolverStatus_t s = use_room(__func__, room, bytes, host, host_bytes);
        if (s != CUSOLVER_STATUS_SUCCESS)
                return s;
        enqueue(h->stream, [=] {
                with_type(type, [=](auto *t) {
                        typedef decltype(t) P;
                        *info = decompose("cusolverDnXgesvd", (P)p, m, n, (P)values, vectors ? (P)u : nullptr, u_cols,
                                          vectors ? (P)vt : nullptr, true);
                });
                memset(room, 0xa5, bytes);
        });
        return s;
}

/* ---- the functions of one dtype ---- */

#define P(T) (cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T *list[], int lda, int *info, int count)
BOTH(cusolverStatus_t, cusolverDnSpotrfBatched, cusolverDnDpotrfBatched, potrf_batched, P,
     (__func__, h, uplo, n, list, lda, info, count))
#undef P
#define P(T) (cusolverDnHandle_t, int, int, int, const T *, int, const T *, int *count)
BOTH(cusolverStatus_t, cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize, give_work, P, (__func__, count))
#undef P
#define P(T) (cusolverDnHandle_t h, int m, int n, int k, T *a, int lda, const T *tau, T *work, int count, int *info)
BOTH(cusolverStatus_t, cusolverDnSorgqr, cusolverDnDorgqr, orgqr, P,
     (__func__, h, m, n, k, a, lda, tau, work, count, info))
#undef P
#define P(T)                                                                                                           \
        (cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int, const T *, int, const T *, int *count,          \
         syevjInfo_t, int)
BOTH(cusolverStatus_t, cusolverDnSsyevjBatched_bufferSize, cusolverDnDsyevjBatched_bufferSize, give_work, P,
     (__func__, count))
#undef P
#define P(T)                                                                                                           \
        (cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, T *a, int lda, T *w, T *work,     \
         int work_count, int *info, syevjInfo_t params, int count)
BOTH(cusolverStatus_t, cusolverDnSsyevjBatched, cusolverDnDsyevjBatched, syevj, P,
     (__func__, h, mode, uplo, n, a, lda, w, work, work_count, info, params, count))
#undef P
#define P(T)                                                                                                           \
        (cusolverDnHandle_t, cusolverEigMode_t, int, int, const T *, int, const T *, const T *, int, const T *, int,   \
         int *count, gesvdjInfo_t, int)
BOTH(cusolverStatus_t, cusolverDnSgesvdjBatched_bufferSize, cusolverDnDgesvdjBatched_bufferSize, give_work, P,
     (__func__, count))
#undef P
#define P(T)                                                                                                           \
        (cusolverDnHandle_t h, cusolverEigMode_t mode, int m, int n, T *a, int lda, T *s, T *u, int ldu, T *v,         \
         int ldv, T *work, int work_count, int *info, gesvdjInfo_t params, int count)
BOTH(cusolverStatus_t, cusolverDnSgesvdjBatched, cusolverDnDgesvdjBatched, gesvdj, P,
     (__func__, h, mode, m, n, a, lda, s, u, ldu, v, ldv, work, work_count, info, params, count))
#undef P
#define P(T)                                                                                                           \
        (cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t op, cublasDiagType_t diag,  \
         int64_t m, int64_t n, const T *alpha, const T *a, int64_t lda, T *x, int64_t ldb)
BOTH(cublasStatus_t, cublasStrsm_v2_64, cublasDtrsm_v2_64, trsm, P,
     (__func__, h, side, uplo, op, diag, m, n, alpha, a, lda, x, ldb))
#undef P
#define P(T)                                                                                                           \
        (cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t op, cublasDiagType_t diag,  \
         int64_t m, int64_t n, const T *alpha, const T *const as[], int64_t lda, T *const xs[], int64_t ldb,           \
         int64_t count)
BOTH(cublasStatus_t, cublasStrsmBatched_64, cublasDtrsmBatched_64, trsm, P,
     (__func__, h, side, uplo, op, diag, m, n, alpha, as, lda, xs, ldb, count))
#undef P
#define P(T) (cublasHandle_t h, int n, T *const list[], int lda, int *swaps, int *info, int count)
BOTH(cublasStatus_t, cublasSgetrfBatched, cublasDgetrfBatched, getrf_batched, P,
     (__func__, h, n, list, lda, swaps, info, count))
#undef P
} // extern "C"
#endif
