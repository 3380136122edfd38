/* reflectors.h - Householder reflectors and plane rotations, of which qr.c, eigh.c and svd.c are made.
 *
 * A reflector is I - tau v v^T. Reflectors of a block are stored as rows: vt (count, n) holds v of each, 0 before its
 * first element, which is 1. Their product H0 H1 ... is I - vt^T t vt with an upper triangular t. */
#ifndef LG_CPU_REFLECTORS_H
#define LG_CPU_REFLECTORS_H

#include "block.h"

enum { LG_REFLECTORS = 32 }; /* maximum number of reflectors in a block */

/* Names a function that is compiled for each type and instruction set. */
#define LG_TYPED(name) LG_CPU(LG_OF(name))

/* Rotations of neighbouring rows, kept until many are applied at once: row i' = c row i + s row i+1 and row i+1' =
 * c row i+1 - s row i. A sweep has `count` rotations, of rows `first`, `first` + step, ... (step 1 or -1). */
typedef struct lg_sweep {
        int64_t first, count, step;
} lg_sweep;

/* Returns bytes rounded up to a multiple of 64. */
static inline int64_t lg_aligned(int64_t bytes)
{
        return lg_ceil_div(bytes, 64) * 64;
}

/* Returns the bytes of scratch for products of matrices of at most n rows and columns. */
#define lg_products_bytes LG_CPU(products_bytes)
int64_t lg_products_bytes(lg_dtype t, int64_t n);

/* Defines functions of one type:
 *   product        c (m, n) = a b, or c += a b if `adds`; strides as in lg_gemm_args
 *   row_dots       y[j] = dot(row j of a, x), of `rows` rows of n elements
 *   subtract_rows  y -= the sum of w[j] times row j of a
 *   reflector      turns x (n >= 1) into v, so that (I - tau v v^T) x = (beta, 0, ...); returns beta
 *   block          computes t (count, count) of a block; `products`: scratch of products
 *   apply          x (n, columns) = (I - vt^T t vt) x; `work`: 2 * count * columns elements
 *   form           x (n, columns) = H0 H1 ... H[count-1] x, where x is the identity if `identity`; blocks start at
 *                  vt's rows LG_REFLECTORS * i. Row j of vt begins with `shift` + j zeros. `work`: lg_reflectors_work()
 *   tall_qr        at (n, m), by columns of a matrix, becomes r by columns; vt (min(m, n), m) and tau its reflectors
 *   transpose      to (columns, rows) = from (rows, columns)
 *   rotate         applies sweeps to rows of `columns` elements; c and s hold the rotations in order
 *   scale_of       returns a power of two near the largest magnitude of n elements, 1 if all are 0, or NaN if one is
 *                  not finite */
#define LG_REFLECTORS_FOR(of, type)                                                                                    \
        void LG_CPU(product_##of)(int64_t m, int64_t n, int64_t k, const type *a, int64_t a_row, int64_t a_col,        \
                                  const type *b, int64_t b_row, int64_t b_col, type *c, int64_t c_row, bool adds,      \
                                  void *products);                                                                     \
        void LG_CPU(row_dots_##of)(int64_t rows, int64_t n, const type *a, int64_t a_row, const type *x, type *y);     \
        void LG_CPU(subtract_rows_##of)(int64_t rows, int64_t n, const type *a, int64_t a_row, const type *w,          \
                                        type *y);                                                                      \
        type LG_CPU(reflector_##of)(int64_t n, type * x, type * ret_tau);                                              \
        void LG_CPU(block_##of)(int64_t count, int64_t n, const type *vt, int64_t vt_row, const type *tau, type *t,    \
                                void *products);                                                                       \
        void LG_CPU(apply_##of)(int64_t count, int64_t n, int64_t columns, const type *vt, int64_t vt_row,             \
                                const type *t, type *x, int64_t x_row, type *work, void *products);                    \
        void LG_CPU(form_##of)(int64_t count, int64_t shift, int64_t n, int64_t columns, const type *vt,               \
                               int64_t vt_row, const type *tau, type *x, bool identity, type *work, void *products);   \
        void LG_CPU(tall_qr_##of)(int64_t m, int64_t n, type * at, type * vt, type * tau, type * work,                 \
                                  void *products);                                                                     \
        void LG_CPU(transpose_##of)(int64_t rows, int64_t columns, const type *from, type *to);                        \
        void LG_CPU(rotate_##of)(int64_t sweeps, const lg_sweep *sweep, const type *c, const type *s, int64_t columns, \
                                 type *rows);                                                                          \
        type LG_CPU(scale_of_##of)(int64_t n, const type *x);
LG_REFLECTORS_FOR(f32, float)
LG_REFLECTORS_FOR(f64, double)
#undef LG_REFLECTORS_FOR

/* Returns the elements of `work` that apply to at most `columns` columns of `count` reflectors: of tall_qr, n columns.
 */
static inline int64_t lg_reflectors_work(int64_t count, int64_t columns)
{
        return 2 * lg_least(count, LG_REFLECTORS) * columns + LG_REFLECTORS * LG_REFLECTORS;
}

/* A job whose items are independent matrices; each thread has `bytes` of scratch. `failed` has the row at which an
 * iteration on a matrix did not converge, from 1, or 0. */
typedef struct lg_matrices_job {
        const void *args;
        char *scratch;
        int64_t bytes;
        int64_t *failed;
} lg_matrices_job;

/* Runs fn for ranges of `count` matrices, each of about `cost` operations, with `bytes` of scratch for each thread.
 * Then records the first matrix that failed with code `origin`. Returns false if there is no memory. */
#define lg_each_matrix LG_CPU(each_matrix)
bool lg_each_matrix(lg_queue *q, const void *args, int64_t count, int64_t cost, int64_t bytes, int origin,
                    lg_range_fn *fn);

#endif
