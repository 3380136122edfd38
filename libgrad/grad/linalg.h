/* linalg.h - linear algebra: factorisations, systems of equations, inverses, determinants.
 *
 * Matrices are the last two dimensions of a tensor and all dimensions before them are the batch, which broadcasts where
 * there are two operands. Dtypes are f32 and f64; others are LG_ERR_DTYPE. Gradients of any order flow to all
 * operands. Definitions are those of torch.linalg. A matrix for which a result does not exist is an error with its
 * index in the batch (LG_ERR_ARGUMENT; on a GPU, at the next read or wait).
 *
 *     lg_tensor *l = lg_cholesky(k);
 *     lg_tensor *weights = lg_cholesky_solve(l, y);
 */
#ifndef LG_LINALG_H
#define LG_LINALG_H

#include "grad/base.h"

LG_BEGIN

/* ---- Cholesky factorisation ---- */

/* Options of lg_cholesky() and lg_cholesky_solve(). */
typedef struct lg_cholesky_options {
        LG_OPTIONS_HEAD
        bool upper LG_DEFAULT; /* the factor is l^T, which is upper triangular; default false */
} lg_cholesky_options;
/* Computes the lower triangular l with a = l l^T for symmetric positive definite a (..., n, n). Reads only the lower
 * triangle of a, or with .upper the upper one. A matrix that is not positive definite, or has a NaN there, is an error.
 * The gradient is symmetric.
 * Example: lg_cholesky(a, .upper = true) */
#define lg_cholesky(...) LG_CALL1(lg_cholesky_with, lg_cholesky_options, lg_cholesky_takes_a, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cholesky_with(lg_tensor *a, const lg_cholesky_options *options);

/* Solves a x = b by the factor l (..., n, n) that lg_cholesky(a) gives; b and x are (..., n, k).
 * Example: lg_cholesky_solve(x, y, .upper = true) */
#define lg_cholesky_solve(...)                                                                                         \
        LG_CALL2(lg_cholesky_solve_with, lg_cholesky_options, lg_cholesky_solve_takes_l_b, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cholesky_solve_with(lg_tensor *l, lg_tensor *b, const lg_cholesky_options *options);

/* ---- systems of equations ---- */

/* Solves a x = b for a (..., n, n) and b (..., n, k), or for vectors b: of one dimension, or with the shape (..., n) of
 * the batch of a. A singular matrix, or one with a NaN, is an error. To solve for one a many times, use lg_lu() and
 * lg_lu_solve(). */
LG_API LG_NEW lg_tensor *lg_solve(lg_tensor *a, lg_tensor *b);

typedef struct lg_triangular_solve_options {
        LG_OPTIONS_HEAD
        bool upper LG_DEFAULT;      /* a is upper triangular; default false, lower triangular */
        bool transposed LG_DEFAULT; /* solves a^T x = b; default false */
        bool unit LG_DEFAULT;       /* takes the diagonal of a as 1 and does not read it; default false */
        bool right LG_DEFAULT;      /* solves x a = b, where b is (..., k, n); default false */
} lg_triangular_solve_options;
/* Solves a x = b for triangular a (..., n, n), of which only the triangle is read, and b (..., n, k). A 0 on the
 * diagonal gives infinities or NaN.
 * Example: lg_triangular_solve(x, y, .upper = true) */
#define lg_triangular_solve(...)                                                                                       \
        LG_CALL2(lg_triangular_solve_with, lg_triangular_solve_options, lg_triangular_solve_takes_a_b, V, V,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_triangular_solve_with(lg_tensor *a, lg_tensor *b,
                                                  const lg_triangular_solve_options *options);

typedef struct lg_lu_options {
        LG_OPTIONS_HEAD
        lg_tensor **permutation LG_DEFAULT; /* receives p (..., m), i64: row p[i] of a is row i of l u; default NULL */
        lg_tensor **l LG_DEFAULT; /* receives l (..., m, min(m, n)), lower triangular with ones on the diagonal */
        lg_tensor **u LG_DEFAULT; /* receives u (..., min(m, n), n), upper triangular; default NULL */
} lg_lu_options;
/* Factorises a (..., m, n) by partial pivoting. Returns l and u in one tensor (..., m, n), for lg_lu_solve(): u with
 * its diagonal, and l below it. A singular matrix is no error: u then has a 0 on its diagonal. There is a gradient if
 * the first min(m, n) pivots are not 0.
 * Example: lg_lu(x, .permutation = &p) */
#define lg_lu(...) LG_CALL1(lg_lu_with, lg_lu_options, lg_lu_takes_a, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_lu_with(lg_tensor *a, const lg_lu_options *options);

typedef struct lg_lu_solve_options {
        LG_OPTIONS_HEAD
        bool transposed LG_DEFAULT; /* solves a^T x = b; default false */
} lg_lu_solve_options;
/* Solves a x = b by the result and the permutation of lg_lu(a); b as in lg_solve(). A singular a gives infinities or
 * NaN.
 * Example: lg_lu_solve(x, p, y, .transposed = true) */
#define lg_lu_solve(...)                                                                                               \
        LG_CALL3(lg_lu_solve_with, lg_lu_solve_options, lg_lu_solve_takes_lu_permutation_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_lu_solve_with(lg_tensor *lu, lg_tensor *permutation, lg_tensor *b,
                                          const lg_lu_solve_options *options);

/* ---- inverses and determinants ---- */

/* Computes the inverse of a (..., n, n). A singular matrix, or one with a NaN, is an error. lg_solve(a, b) is faster
 * and more precise than the product of an inverse with b. */
LG_API LG_NEW lg_tensor *lg_inverse(lg_tensor *a);

/* Computes the determinant of a (..., n, n), of the shape of the batch; 1 if n is 0. The determinant of a singular
 * matrix has a gradient, too, but no second derivative: lg_inverse()'s error. */
LG_API LG_NEW lg_tensor *lg_det(lg_tensor *a);

/* Returns the sign of the determinant, -1, 0 or 1, without a gradient, and stores the logarithm of its magnitude in
 * *ret_logabs; 0 and -infinity if a is singular, and then the gradient has infinities or NaN. */
LG_API LG_NEW lg_tensor *lg_slogdet(lg_tensor *a, lg_tensor **ret_logabs);

/* Computes the logarithm of the determinant; NaN if it is negative, -infinity if it is 0. */
LG_API LG_NEW lg_tensor *lg_logdet(lg_tensor *a);

/* ---- orthogonal factors, eigenvalues and singular values ----
 *
 * lg_qr(), lg_eigh() and lg_svd() store their results in pointers, any of which may be NULL, and return whether they
 * succeeded; on failure nothing is stored. A matrix with a NaN or an infinity gives NaN. An iteration that does not
 * converge is LG_ERR_ARGUMENT with the matrix's index.
 */

typedef struct lg_qr_options {
        LG_OPTIONS_HEAD
        bool complete LG_DEFAULT; /* q is square, (..., m, m), and r (..., m, n); default false */
} lg_qr_options;
/* Factors a (..., m, n) = q r: with k = min(m, n), q (..., m, k) has orthonormal columns and r (..., k, n) is upper
 * triangular, with diagonal elements of either sign. Without ret_q only r is computed (PyTorch's mode "r"). The
 * derivative exists where the first k columns of a are independent, and not for a complete q if m > n (LG_ERR_STATE).
 * Example: lg_qr(a, &q, &r, .complete = true) */
#define lg_qr(...) LG_CALL3(lg_qr_with, lg_qr_options, lg_qr_takes_a_ret_q_ret_r, V, V, V, __VA_ARGS__)
LG_API bool lg_qr_with(lg_tensor *a, lg_tensor **ret_q, lg_tensor **ret_r, const lg_qr_options *options);

/* Options of lg_eigh() and lg_eigvalsh(). */
typedef struct lg_eigh_options {
        LG_OPTIONS_HEAD
        bool upper LG_DEFAULT; /* read the upper triangle of a; default false, the lower one */
} lg_eigh_options;
/* Computes the eigenvalues of symmetric matrices a (..., n, n), ascending, (..., n), and eigenvectors as the columns of
 * (..., n, n); the sign of each vector is arbitrary. lg_eigvalsh() returns the eigenvalues alone. Gradients are of the
 * whole symmetric matrix. Those of eigenvectors exist where eigenvalues differ, and are large where they nearly agree;
 * those of eigenvalues always exist.
 * Examples: lg_eigh(a, &w, &v), lg_eigvalsh(a, .upper = true) */
#define lg_eigh(...)                                                                                                   \
        LG_CALL3(lg_eigh_with, lg_eigh_options, lg_eigh_takes_a_ret_values_ret_vectors, V, V, V, __VA_ARGS__)
LG_API bool lg_eigh_with(lg_tensor *a, lg_tensor **ret_values, lg_tensor **ret_vectors, const lg_eigh_options *options);
#define lg_eigvalsh(...) LG_CALL1(lg_eigvalsh_with, lg_eigh_options, lg_eigvalsh_takes_a, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_eigvalsh_with(lg_tensor *a, const lg_eigh_options *options);

typedef struct lg_svd_options {
        LG_OPTIONS_HEAD
        bool full LG_DEFAULT; /* u is (..., m, m) and vt (..., n, n); default false (PyTorch's default is true) */
} lg_svd_options;
/* Factors a (..., m, n) = u diag(s) vt: with k = min(m, n), u (..., m, k) and the rows of vt (..., k, n) are
 * orthonormal, and the singular values s (..., k) descend. The sign of each pair of vectors is arbitrary. lg_svdvals()
 * returns s alone. Gradients of u and vt exist where singular values differ (and are not 0, if a is not square), and a
 * full u or vt has none in the columns or rows after the k-th; those of s always exist.
 * Examples: lg_svd(a, &u, &s, &vt), lg_svd(a, &u, &s, &vt, .full = true) */
#define lg_svd(...) LG_CALL4(lg_svd_with, lg_svd_options, lg_svd_takes_a_ret_u_ret_s_ret_vt, V, V, V, V, __VA_ARGS__)
LG_API bool lg_svd_with(lg_tensor *a, lg_tensor **ret_u, lg_tensor **ret_s, lg_tensor **ret_vt,
                        const lg_svd_options *options);
LG_API LG_NEW lg_tensor *lg_svdvals(lg_tensor *a);

/* Options of lg_pinv() and lg_matrix_rank(). A singular value counts if it is above .atol and above .rtol times the
 * greatest one. */
typedef struct lg_pinv_options {
        LG_OPTIONS_HEAD
        double rtol LG_DEFAULT;    /* default max(m, n) times the dtype's epsilon, or 0 if .atol is given; LG_ZERO: 0 */
        double atol LG_DEFAULT;    /* default 0 */
        bool hermitian LG_DEFAULT; /* a is symmetric, so that lg_eigh() is enough; default false */
} lg_pinv_options;
/* Returns the pseudo-inverse (Moore and Penrose) of a (..., m, n), (..., n, m), for matrices of any rank. The gradient
 * is right where the rank does not change nearby.
 * Examples: lg_pinv(a), lg_pinv(a, .rtol = 1e-3) */
#define lg_pinv(...) LG_CALL1(lg_pinv_with, lg_pinv_options, lg_pinv_takes_a, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_pinv_with(lg_tensor *a, const lg_pinv_options *options);

/* Returns the ranks of a (..., m, n), i64 (...): the number of singular values that count. Has no gradient.
 * Example: lg_matrix_rank(a, .atol = 1e-3) */
#define lg_matrix_rank(...) LG_CALL1(lg_matrix_rank_with, lg_pinv_options, lg_matrix_rank_takes_a, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_matrix_rank_with(lg_tensor *a, const lg_pinv_options *options);

typedef struct lg_lstsq_options {
        LG_OPTIONS_HEAD
        double rcond LG_DEFAULT; /* singular values up to this part of the greatest count as 0; LG_ZERO: 0; default: a
                                    has full rank */
} lg_lstsq_options;
/* Returns the x (..., n, k) with the least |a x - b| for a (..., m, n) and b (..., m, k), or (..., n) for b (..., m),
 * and of several such x the least one. By default a must have full rank, min(m, n): x comes from its QR factorisation,
 * and is not finite or far off if it has not. With .rcond, a may have any rank: x is lg_pinv(a, .rtol = rcond) b.
 * Examples: lg_lstsq(a, b), lg_lstsq(a, b, .rcond = 1e-6) */
#define lg_lstsq(...) LG_CALL2(lg_lstsq_with, lg_lstsq_options, lg_lstsq_takes_a_b, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_lstsq_with(lg_tensor *a, lg_tensor *b, const lg_lstsq_options *options);

/* ---- norms and functions of matrices ---- */

typedef struct lg_matrix_norm_options {
        LG_OPTIONS_HEAD
        double ord LG_DEFAULT;    /* order of the norm; default: the Frobenius norm */
        bool nuclear LG_DEFAULT;  /* the nuclear norm instead; default false */
        bool keep_dim LG_DEFAULT; /* keep the two dimensions, with size 1; default false, they are removed */
} lg_matrix_norm_options;
/* Returns norms of matrices a (..., m, n): the root of the sum of squares (Frobenius), the sum of the singular values
 * (nuclear), their greatest or least (.ord 2, -2), the greatest or least sum of magnitudes of a column (1, -1) or of a
 * row (LG_INFINITY, -LG_INFINITY).
 * Examples: lg_matrix_norm(a), lg_matrix_norm(a, .ord = 2), lg_matrix_norm(a, .nuclear = true) */
#define lg_matrix_norm(...)                                                                                            \
        LG_CALL1(lg_matrix_norm_with, lg_matrix_norm_options, lg_matrix_norm_takes_a, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_matrix_norm_with(lg_tensor *a, const lg_matrix_norm_options *options);

typedef struct lg_cond_options {
        LG_OPTIONS_HEAD
        double ord LG_DEFAULT; /* order of the norm, as for lg_matrix_norm(); default 2 */
} lg_cond_options;
/* Returns condition numbers of a (..., m, n): the norm of a times that of its inverse. Of orders 2 and -2 it is the
 * quotient of the greatest and the least singular value, infinite if a is singular; other orders need square matrices,
 * and singular ones are LG_ERR_ARGUMENT.
 * Example: lg_cond(a, .ord = 1) */
#define lg_cond(...) LG_CALL1(lg_cond_with, lg_cond_options, lg_cond_takes_a, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cond_with(lg_tensor *a, const lg_cond_options *options);

/* Returns the exponentials of square matrices, 1 + a + a^2 / 2 + ... Waits for the device, to read a norm that sets the
 * number of products. */
LG_API LG_NEW lg_tensor *lg_matrix_exp(lg_tensor *a);

/* Returns the n-th powers of square matrices; negative ones are powers of lg_inverse(a). */
LG_API LG_NEW lg_tensor *lg_matrix_power(lg_tensor *a, int64_t n);

LG_END_C
#endif
