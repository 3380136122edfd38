/* svd.c - singular values and vectors: QR factorisation of a matrix that is not square, reduction to a bidiagonal
 * matrix by blocks of Householder reflectors (Dongarra, Sorensen, Hammarling 1989), then implicit QR, without a shift
 * where that keeps small singular values accurate (Demmel and Kahan 1990). Rotations are applied many sweeps at a time.
 */
#include <math.h>
#include "reflectors.h"

#define BLOCK 8       /* columns that are reduced before the rest is updated */
#define SWEEPS 16     /* sweeps of rotations that are applied together, at full length */
#define ITERATIONS 60 /* per singular value, on average: 2 are usual */

/* Sizes of a matrix or, if it is wide, of its transpose: m >= n. u has `columns`. */
typedef struct sizes {
        int64_t m, n, columns;
        bool wide, vectors;
} sizes;

static sizes sizes_of(const lg_svd_args *a)
{
        const int64_t m = lg_most(a->m, a->n), n = lg_least(a->m, a->n);
        return (sizes){m, n, a->full ? m : n, a->m < a->n, a->u != NULL};
}

#define LG_BOTH "svd.inc"
#include "both.inc"

bool LG_CPU(svd)(lg_queue *q, const lg_svd_args *a)
{
        const sizes z = sizes_of(a);
        if (a->count == 0 || z.n == 0)
                return true;
        const int64_t wide = z.wide && z.vectors ? z.m * z.columns : 0, rotations = z.vectors ? 4 * SWEEPS * z.n : 0;
        const int64_t elements = 2 * z.m * z.n + 3 * z.n * z.n + wide + 4 * BLOCK * z.n + 5 * z.n + 2 * BLOCK +
                                 rotations + lg_reflectors_work(z.n, z.columns);
        const int64_t bytes = lg_products_bytes(a->dtype, z.m) + 64 * 24 + elements * (int64_t)lg_bytes_of(a->dtype) +
                              z.n * (int64_t)(2 * sizeof(double) + sizeof(int64_t));
        return lg_each_matrix(q, a, a->count, 8 * z.m * z.n * z.n, bytes, a->origin,
                              a->dtype == LG_F64 ? matrices_f64 : matrices_f32);
}
