/* product_half.h - the words of 32 bits into which products of f16 and bf16 pack their operands. */
#ifndef LG_CPU_PRODUCT_HALF_H
#define LG_CPU_PRODUCT_HALF_H

#include "cpu.h"

/* Where sums of a panel go when they are complete: the rows and columns of C that are its own, to which beta, bias and
 * ReLU refer as in lg_gemm_args. */
typedef struct lg_half_end {
        const lg_gemm_args *g;
        uint16_t *c;
        const uint16_t *bias;
        int64_t cols;
} lg_half_end;

/* What words are and how they are multiplied. */
typedef struct lg_half_words {
        int64_t values; /* along k in a word */
        /* n values of a line along k to words; what is missing to a whole one is 0 */
        lg_convert_fn along;
        /* `count` rows along k of `cols` values, `row` apart, to as many rows of words as they fill, `step` apart;
         * vectors are stored whole, with 0 in what is missing. */
        void (*across)(int64_t count, int64_t cols, const uint16_t *from, int64_t row, float *to, int64_t step);
        /* end: NULL where the sums stay in p->c; else C gets them, and those in p->c are undefined */
        void (*multiply)(const lg_panel_product *p, const lg_half_end *end);
} lg_half_words;

/* Two of bf16; NULL where the processor does not multiply them. */
#define lg_bf16_pairs LG_CPU(bf16_pairs)
const lg_half_words *lg_bf16_pairs(void);

/* Rounds the sums of a panel, p->c, to C. */
#define lg_round_panel LG_CPU(round_panel)
void lg_round_panel(const lg_panel_product *p, const lg_half_end *end);

#endif
