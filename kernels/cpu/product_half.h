/* product_half.h - the words of 32 bits into which products of f16 and bf16 pack their operands. */
#ifndef LG_CPU_PRODUCT_HALF_H
#define LG_CPU_PRODUCT_HALF_H

#include "cpu.h"

/* What words are and how they are multiplied. */
typedef struct lg_half_words {
        int64_t values; /* along k in a word */
        /* To words: n values of a line along k (what is missing to a whole word is 0); n values of a row, with those of
         * the next one along k where a word has two (NULL beyond the last). */
        lg_convert_fn along;
        void (*across)(int64_t n, float *to, const uint16_t *row, const uint16_t *next);
        void (*multiply)(const lg_panel_product *p);
} lg_half_words;

/* Two of bf16; NULL where the processor does not multiply them. */
#define lg_bf16_pairs LG_CPU(bf16_pairs)
const lg_half_words *lg_bf16_pairs(void);

#endif
