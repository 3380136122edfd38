/* block.h - register blocks of matrix products and convolutions: sums of several rows by several vectors of columns,
 * which stay in registers during the loop over k. Callers pass expressions that read factors and vectors. */
#ifndef LG_CPU_BLOCK_H
#define LG_CPU_BLOCK_H

#include "cpu.h"
#include "simd.h"

enum { LG_MOST_VECTORS = 4 }; /* maximum number of vectors in a row of sums */

/* Loops over the sums of a block, row i and vector v. */
#define LG_EACH_SUM(rows, vectors)                                                                                     \
        LG_UNROLL                                                                                                      \
        for (int i = 0; i < (rows); i++)                                                                               \
                LG_UNROLL                                                                                              \
        for (int v = 0; v < (vectors); v++)

/* Performs one step along k: sum[i][v] += a * b. `a` is an expression for the scalar of row i, `b` one for vector v.
 * fma is lg_vec_fma, or lg_vec_fma_to where steps are unrolled. */
#define LG_SUMS_STEP(fma, sum, rows, vectors, a, b)                                                                    \
        do {                                                                                                           \
                LG_OF(lg_vec) cols_[LG_MOST_VECTORS];                                                                  \
                LG_UNROLL                                                                                              \
                for (int v = 0; v < (vectors); v++)                                                                    \
                        cols_[v] = (b);                                                                                \
                LG_UNROLL                                                                                              \
                for (int i = 0; i < (rows); i++) {                                                                     \
                        const LG_OF(lg_vec) row_ = LG_OF(lg_vec_all)(a);                                               \
                        LG_UNROLL                                                                                      \
                        for (int v = 0; v < (vectors); v++)                                                            \
                                (sum)[i][v] = LG_OF(fma)(row_, cols_[v], (sum)[i][v]);                                 \
                }                                                                                                      \
        } while (0)

/* LG_BLOCK defines the function NAME##ROWS##_##VECTORS(const args *t), which calls name(t, rows, vectors). LG_BLOCKS
 * defines these for all block sizes and a table of them, NAME##_of[rows][vectors - 1]. */
#define LG_BLOCK(rows, vectors, linkage, name, args)                                                                   \
        linkage void LG_OF(name##rows##_##vectors)(const args *t)                                                      \
        {                                                                                                              \
                LG_OF(name)(t, rows, vectors);                                                                         \
        }
#define LG_BLOCK_PAIR(rows, linkage, name, args)                                                                       \
        LG_BLOCK(rows, 1, linkage, name, args) LG_BLOCK(rows, 2, linkage, name, args)
#define LG_BLOCK_ENTRIES(rows, name) [rows] = {LG_OF(name##rows##_1), LG_OF(name##rows##_2)},
#define LG_BLOCKS(linkage, name, args)                                                                                 \
        LG_EACH_ROWS(LG_BLOCK_PAIR, linkage, name, args)                                                               \
        static void (*const LG_OF(name##_of)[LG_BLOCK_ROWS + 1][LG_BLOCK_VECTORS])(const args *t) = {                  \
                LG_EACH_ROWS(LG_BLOCK_ENTRIES, name)};

#define LG_SUMS_OF(t, type)                                                                                            \
        typedef lg_vec_##t lg_sums_##t[LG_MOST_VECTORS]; /* sums of one row */                                         \
        /* Operands of lg_sums_end(): scale and shift from the block's first column on, z from its first sum on. */    \
        typedef struct lg_sums_ending_##t {                                                                            \
                const type *scale, *shift, *z;                                                                         \
                ptrdiff_t z_row;                                                                                       \
                bool relu;                                                                                             \
        } lg_sums_ending_##t;
LG_SUMS_OF(f32, float)
LG_SUMS_OF(f64, double)
#undef LG_SUMS_OF

#define LG_BOTH "block.inc"
#include "both.inc"

#endif
