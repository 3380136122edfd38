/* block.h - the register block of products and convolutions: sums of some rows by some vectors of columns, which stay
 * in registers while k passes. Each user says where a row's factor and a vector of columns are read.
 */
#ifndef LG_CPU_BLOCK_H
#define LG_CPU_BLOCK_H

#include "cpu.h"
#include "simd.h"

enum { LG_MOST_VECTORS = 4 }; /* of a row of sums */

/* The loops over a block's sums. */
#define LG_EACH_SUM(rows, vectors)                                                                                     \
        LG_UNROLL                                                                                                      \
        for (int i = 0; i < (rows); i++)                                                                               \
                LG_UNROLL                                                                                              \
        for (int v = 0; v < (vectors); v++)

/* One step along k: sum[i][v] += a b, of expressions `a` of the row i, a number, and `b` of the vector v. fma:
 * lg_vec_fma, or lg_vec_fma_to where steps are unrolled. */
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

/* The function NAME##ROWS##_##VECTORS(const args *t) that is name(t, rows, vectors), and a table NAME##s[rows][vectors
 * - 1] of those of all blocks. */
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
        typedef lg_vec_##t lg_sums_##t[LG_MOST_VECTORS]; /* of a row */                                                \
        /* The operands of lg_sums_end(), from the first column of the block on; z: from its first row. */             \
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
