/* product.c - matrix products on one thread.
 *
 * A block of sums stays in registers while k passes: x = A[i][k] meets a row of B, sums[i] += x B[k]. Where k is short
 * and there are registers, blocks have fewer rows and more columns, so that C is written in longer runs. A is read as
 * it lies; B too, unless its rows are not contiguous or share few sets of the cache. With vectors of AVX2 large
 * products copy both. Where k is cut into strips the sums wait in C. Few rows or columns: sums along k. The order of
 * additions depends on the size and the strides of the whole product alone.
 */
#include "block.h"

#define DEPTH 512       /* rows of a strip of B */
#define SHORT_DEPTH 256 /* where A is copied, or its columns have to stay in the cache, too */
#define COLUMNS 256     /* of a strip */
#define CACHED_ROWS (8 * LG_BLOCK_ROWS)
#define WIDE_COLUMNS 1024 /* where A is copied: once for that many columns */
#define COPIED_ROWS (32 * LG_BLOCK_ROWS)
#define PAGE 4096      /* bytes; rows so far apart share few sets of the first cache */
#define WIDE_DEPTH 256 /* products of a sum in wide blocks, at most */
#define FETCHED 32     /* steps along k after which C's lines have arrived */
#define FEW 16         /* rows, which are not worth a copy of B, */
#define LONG 256       /* where a sum has so many products */

#define LG_BOTH "product.inc"
#include "both.inc"

lg_product_way lg_way_of(const lg_gemm_args *g)
{
        if (lg_is_half(g->dtype))
                return lg_half_way_of(g);
        return g->dtype == LG_F64 ? way_of_f64(g) : way_of_f32(g);
}

static int64_t depth_of(lg_product_way way)
{
        return way == LG_BY_STRIPS ? DEPTH : way == LG_BY_SHORT_STRIPS ? SHORT_DEPTH : 0;
}

size_t lg_multiply_bytes(const lg_gemm_args *g, lg_product_way way)
{
        const int64_t depth = depth_of(way);
        if (lg_is_half(g->dtype))
                return lg_multiply_half_bytes(g, way);
        if (!depth)
                return 0;
        return g->dtype == LG_F64 ? (size_t)(a_count_f64(g, depth) + b_count_f64(g, depth)) * sizeof(double)
                                  : (size_t)(a_count_f32(g, depth) + b_count_f32(g, depth)) * sizeof(float);
}

void lg_multiply(const lg_gemm_args *g, lg_product_way way, void *scratch)
{
        if (g->m < 1 || g->n < 1)
                return;
        lg_gemm_args none;
        if (g->k < 1) { /* nothing is read of A and B, which may be NULL: C stands in for them */
                none = *g;
                none.a = none.b = g->c;
                g = &none;
        }
        const bool dots = way == LG_BY_DOTS;
        if (lg_is_half(g->dtype))
                lg_multiply_half(g, way, scratch);
        else if (g->dtype == LG_F64)
                (dots ? multiply_by_dots_f64(g) : multiply_f64(g, depth_of(way), scratch));
        else
                (dots ? multiply_by_dots_f32(g) : multiply_f32(g, depth_of(way), scratch));
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
