/* qr.c - QR factorisation by blocks of Householder reflectors. */
#include <math.h>
#include "reflectors.h"

#define LG_BOTH "qr.inc"
#include "both.inc"

bool LG_CPU(qr)(lg_queue *q, const lg_qr_args *a)
{
        const int64_t most = lg_most(a->m, a->n), least = lg_least(a->m, a->n);
        if (a->count == 0 || a->rank == 0)
                return true;
        const int64_t elements = a->m * a->n + least * (a->m + 1) + lg_reflectors_work(least, lg_most(a->n, a->rank));
        const int64_t bytes = lg_products_bytes(a->dtype, most) + 4 * 64 + elements * (int64_t)lg_bytes_of(a->dtype);
        return lg_each_matrix(q, a, a->count, a->m * a->n * lg_most(least, 1), bytes, 0,
                              a->dtype == LG_F64 ? matrices_f64 : matrices_f32);
}
