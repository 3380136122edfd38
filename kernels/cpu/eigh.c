/* eigh.c - eigenvalues and eigenvectors of symmetric matrices: reduction to a tridiagonal matrix by blocks of
 * Householder reflectors (Dongarra, Sorensen, Hammarling 1989), then implicit QL, whose rotations are applied to the
 * vectors many sweeps at a time. */
#include <math.h>
#include "reflectors.h"

#define BLOCK 8       /* columns that are reduced before the rest is updated */
#define SWEEPS 16     /* sweeps of rotations that are applied together, at full length */
#define ITERATIONS 40 /* per eigenvalue, on average: 2 are usual */

#define LG_BOTH "eigh.inc"
#include "both.inc"

bool LG_CPU(eigh)(lg_queue *q, const lg_eigh_args *a)
{
        const int64_t n = a->n, rotations = a->vectors ? 2 * SWEEPS * n : 0;
        if (a->count == 0 || n == 0)
                return true;
        const int64_t elements = 2 * n * n + 4 * BLOCK * n + 2 * n + 2 * BLOCK + rotations + lg_reflectors_work(n, n);
        const int64_t bytes = lg_products_bytes(a->dtype, n) + 64 * 16 + elements * (int64_t)lg_bytes_of(a->dtype) +
                              n * (int64_t)(2 * sizeof(double) + sizeof(int64_t));
        return lg_each_matrix(q, a, a->count, 4 * n * n * n, bytes, a->origin,
                              a->dtype == LG_F64 ? matrices_f64 : matrices_f32);
}
