/* linalg.h - arguments of factorisations and of triangular systems. Part of kernels.h.
 *
 * Every argument is `count` matrices behind each other, row-major and contiguous, of dtype f32 or f64. Sizes may be 0.
 * Results do not overlap with operands. A matrix that cannot be factorised is recorded as a device-side error with code
 * `origin`, the matrix's index as value, and as limit the row that failed, from 1; its results are NaN. */
#ifndef LG_KERNELS_LINALG_H
#define LG_KERNELS_LINALG_H

#include "types.h"

/* a = l l^T with l lower triangular, 0 above its diagonal. Reads the lower triangle of a (n, n). Fails if a is not
 * positive definite or has a NaN there. */
typedef struct lg_cholesky_args {
        lg_dtype dtype;
        int64_t count, n;
        const void *a;
        void *l;
        int origin;
} lg_cholesky_args;

/* LU factorisation with partial pivoting of a (m, n): row i of l u is row permutation[i] of a. The strict lower part of
 * lu (m, n) is that of l, whose diagonal is 1; the rest is u. signs holds the determinant of the permutation, 1 or -1,
 * for each matrix. With origin 0, a pivot of 0 is no error and its column of l is 0; otherwise a pivot of 0 or NaN is
 * an error. */
typedef struct lg_lu_args {
        lg_dtype dtype;
        int64_t count, m, n;
        const void *a;
        void *lu;
        int64_t *permutation; /* (count, m) */
        void *signs;          /* (count), of the dtype */
        int origin;
} lg_lu_args;

/* Solves op(a) x = p b for x (n, k): a (n, n) is triangular and only its triangle is read; op transposes if
 * `transposed`; the diagonal counts as 1 if `unit`. Row i of p b is row permutation[i] of b, or row i if permutation is
 * NULL; with `scatter`, row permutation[i] of the result is row i of x instead. Division by a 0 on the diagonal gives
 * infinity or NaN. */
typedef struct lg_triangular_args {
        lg_dtype dtype;
        int64_t count, n, k;
        bool upper, transposed, unit, scatter;
        const void *a, *b;
        const int64_t *permutation; /* (count, n), or NULL */
        void *x;
} lg_triangular_args;

/* a (m, n) = q r by Householder reflections; q (m, rank) has orthonormal columns, r (rank, n) is upper triangular.
 * rank is min(m, n), or m for the complete q. q may be NULL. */
typedef struct lg_qr_args {
        lg_dtype dtype;
        int64_t count, m, n, rank;
        const void *a;
        void *q, *r;
} lg_qr_args;

/* a = v diag(values) v^T for symmetric a (n, n), of which the lower triangle is read. values (n) ascend; the columns of
 * vectors (n, n) are orthonormal. vectors may be NULL. A matrix with a NaN or infinity gives NaN everywhere. */
typedef struct lg_eigh_args {
        lg_dtype dtype;
        int64_t count, n;
        const void *a;
        void *values, *vectors;
        int origin; /* of the error that an iteration did not converge */
} lg_eigh_args;

/* a (m, n) = u diag(s) vt; s (min(m, n)) descends. With `full`, u is (m, m) and vt (n, n), otherwise (m, min(m, n)) and
 * (min(m, n), n). u and vt may both be NULL. A matrix with a NaN or infinity gives NaN everywhere. */
typedef struct lg_svd_args {
        lg_dtype dtype;
        int64_t count, m, n;
        bool full;
        const void *a;
        void *u, *s, *vt;
        int origin; /* of the error that an iteration did not converge */
} lg_svd_args;

#endif
