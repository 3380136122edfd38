/* product.c - matrix products on one thread.
 *
 * A block of sums stays in registers while k passes: x = A[i][k] meets a row of B, sums[i] += x B[k]. A is read as it
 * lies; B too, unless its rows are not contiguous or too many for the cache. For k above DEPTH the sums go to C between
 * the strips. The order of additions depends on k alone.
 */
#include "cpu.h"
#include "simd.h"

#define DEPTH 512    /* rows of B in a packed strip */
#define COLUMNS 1024 /* columns of one */
#define CACHED_ROWS (8 * LG_BLOCK_ROWS)

#if LG_BLOCK_ROWS == 14
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif LG_BLOCK_ROWS == 12
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif LG_BLOCK_ROWS == 6
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#endif

/* The first part of `left` where that is cut into as few parts of at most `most` as there can be, all about equal. */
static int64_t even_part(int64_t left, int64_t most)
{
        return left <= most ? left : lg_ceil_div(left, lg_ceil_div(left, most));
}

#define LG_T float
#define LG_OF(name) name##_f32
#include "product.inc"
#undef LG_T
#undef LG_OF
#define LG_T double
#define LG_OF(name) name##_f64
#include "product.inc"
#undef LG_T
#undef LG_OF

size_t lg_multiply_bytes(const lg_gemm_args *g)
{
        return g->dtype == LG_F64 ? (size_t)packed_count_f64(g) * sizeof(double)
                                  : (size_t)packed_count_f32(g) * sizeof(float);
}

void lg_multiply(const lg_gemm_args *g, void *scratch)
{
        if (g->m < 1 || g->n < 1)
                return;
        if (g->dtype == LG_F64)
                (wants_dots_f64(g) ? multiply_by_dots_f64(g) : multiply_f64(g, scratch));
        else
                (wants_dots_f32(g) ? multiply_by_dots_f32(g) : multiply_f32(g, scratch));
}
