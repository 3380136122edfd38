/* product.c - matrix products on one thread.
 *
 * A block of sums stays in registers during the loop over k: each step multiplies a column of A by a row of B. If k is
 * small and registers suffice, blocks have fewer rows and more columns, so that C is written in longer runs. A is read
 * in place; B too, unless its rows are not contiguous or share few cache sets. With AVX2, large products copy both. If
 * k is split into strips, partial sums are stored in C. Few rows or columns: sums along k. The order of additions
 * depends only on the size and the strides of the whole product. */
#include "block.h"

#define DEPTH 512       /* maximum rows of a strip of B */
#define SHORT_DEPTH 256 /* rows of a strip if A is copied, or its columns must stay in the cache */
#define COLUMNS 256     /* maximum columns of a strip of B */
#define CACHED_ROWS (8 * LG_BLOCK_ROWS)
#define WIDE_COLUMNS 1024 /* maximum columns of a strip of B if A is copied */
#define COPIED_ROWS (32 * LG_BLOCK_ROWS)
#define PAGE 4096              /* bytes; rows at this distance share few sets of the L1 cache */
#define MOST_REACHED (1 << 20) /* bytes from the first row of B to the last, for rows that are read in place */
#define WIDE_DEPTH 256         /* maximum k for wide register blocks */
#define FETCHED 32             /* minimum steps along k for which C is prefetched */
#define FEW 16                 /* maximum rows for sums along k with AVX2, instead of copying B */
#define LONG 256               /* minimum k for sums along k with AVX2, instead of copying B */

#define LG_BOTH "product.inc"
#include "both.inc"

lg_product_algorithm lg_product_algorithm_of(const lg_gemm_args *g)
{
        if (lg_is_half(g->dtype))
                return lg_half_algorithm_of(g);
        return g->dtype == LG_F64 ? algorithm_of_f64(g) : algorithm_of_f32(g);
}

static int64_t depth_of(lg_product_algorithm algorithm)
{
        return algorithm == LG_BY_STRIPS ? DEPTH : algorithm == LG_BY_SHORT_STRIPS ? SHORT_DEPTH : 0;
}

size_t lg_multiply_bytes(const lg_gemm_args *g, lg_product_algorithm algorithm)
{
        const int64_t depth = depth_of(algorithm);
        if (lg_is_half(g->dtype))
                return lg_multiply_half_bytes(g, algorithm);
        if (!depth)
                return 0;
        return g->dtype == LG_F64 ? (size_t)(a_count_f64(g, depth) + b_count_f64(g, depth)) * sizeof(double)
                                  : (size_t)(a_count_f32(g, depth) + b_count_f32(g, depth)) * sizeof(float);
}

void lg_multiply(const lg_gemm_args *g, lg_product_algorithm algorithm, void *scratch)
{
        if (g->m < 1 || g->n < 1)
                return;
        lg_gemm_args none;
        if (g->k < 1) { /* A and B are not read and may be NULL: C replaces them */
                none = *g;
                none.a = none.b = g->c;
                g = &none;
        }
        const bool dots = algorithm == LG_BY_DOTS;
        if (lg_is_half(g->dtype))
                lg_multiply_half(g, algorithm, scratch);
        else if (g->dtype == LG_F64)
                (dots ? multiply_by_dots_f64(g) : multiply_f64(g, depth_of(algorithm), scratch));
        else
                (dots ? multiply_by_dots_f32(g) : multiply_f32(g, depth_of(algorithm), scratch));
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

void lg_pack_panels(lg_dtype t, int64_t k, int64_t n, const void *b, ptrdiff_t b_row, ptrdiff_t b_col, void *to)
{
        if (k < 1 || n < 1)
                return;
        if (t == LG_F64)
                pack_panels_f64(k, n, b, b_row, b_col, to);
        else
                pack_panels_f32(k, n, b, b_row, b_col, to);
}

void lg_multiply_packed(const lg_packed_product *p)
{
        if (p->rows < 1)
                return;
        lg_packed_product none;
        if (p->k < 1) { /* A and B are not read and may be NULL */
                none = *p;
                none.a = none.panels = p->c;
                p = &none;
        }
        if (p->dtype == LG_F64)
                multiply_packed_f64(p);
        else
                multiply_packed_f32(p);
}
