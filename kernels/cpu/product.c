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
        lg_gemm_args none;
        if (g->k < 1) { /* nothing is read of A and B, which may be NULL: C stands in for them */
                none = *g;
                none.a = none.b = g->c;
                g = &none;
        }
        if (g->dtype == LG_F64)
                (wants_dots_f64(g) ? multiply_by_dots_f64(g) : multiply_f64(g, scratch));
        else
                (wants_dots_f32(g) ? multiply_by_dots_f32(g) : multiply_f32(g, scratch));
}

void lg_multiply_panel(const lg_panel_product *p)
{
        const ptrdiff_t width = LG_LANES_f32 * LG_BLOCK_VECTORS;
        const block_f32 t = {.a = p->a,
                             .a_row = p->a_row,
                             .a_col = p->a_col,
                             .b = p->panel,
                             .b_row = width,
                             .c = p->c,
                             .c_row = width,
                             .k = p->k,
                             .adds = p->adds};
        multiply_panel_f32(t, p->rows, p->cols);
}
