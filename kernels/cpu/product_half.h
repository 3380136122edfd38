/* product_half.h - the 32-bit words into which products of f16 and bf16 pack their operands. */
#ifndef LG_CPU_PRODUCT_HALF_H
#define LG_CPU_PRODUCT_HALF_H

#include "cpu.h"

/* Epilogue of a panel of sums: its rows and columns of C, to which beta, bias and ReLU of g apply (lg_gemm_args). */
typedef struct lg_half_end {
        const lg_gemm_args *g;
        uint16_t *c;
        const uint16_t *bias;
        int64_t cols;
} lg_half_end;

/* Format of words, with functions that pack and multiply them. */
typedef struct lg_half_words {
        int64_t values; /* number of values along k in a word */
        /* Packs n values of a line along k; a partial word is padded with 0. */
        lg_convert_fn along;
        /* Packs `count` rows along k of `cols` values with the stride `row`, to rows of words with the stride `step`.
         * Whole vectors are stored, padded with 0. */
        void (*across)(int64_t count, int64_t cols, const uint16_t *from, int64_t row, float *to, int64_t step);
        /* Multiplies a panel. end NULL: sums stay in p->c; else they are rounded to C, and p->c is undefined. */
        void (*multiply)(const lg_panel_product *p, const lg_half_end *end);
} lg_half_words;

/* Returns the format of pairs of bf16, or NULL if the processor does not multiply these faster than f32. */
#define lg_bf16_pairs LG_CPU(bf16_pairs)
const lg_half_words *lg_bf16_pairs(void);

/* Applies the epilogue to the sums of a panel, p->c, and rounds them to C. */
#define lg_round_panel LG_CPU(round_panel)
void lg_round_panel(const lg_panel_product *p, const lg_half_end *end);

#endif
