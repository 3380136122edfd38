/* product_pairs.c - words of two bf16 values that are neighbours along k, for processors that multiply such pairs. */
#include "product_half.h"
#include "block.h"

#if defined(__AVX512F__)
#define WIDTH (LG_LANES_f32 * LG_BLOCK_VECTORS)
#define PAIRS __attribute__((target("avx512bf16")))

static void along(int64_t n, void *to, const void *from)
{
        memcpy(to, from, (size_t)n * sizeof(uint16_t));
        if (n % 2)
                memset((uint16_t *)to + n, 0, sizeof(uint16_t));
}

/* Returns the mask of the first `count` of 32 values, count > 0. */
LG_INLINE __mmask32 first_values(int64_t count)
{
        return count < 32 ? ((__mmask32)1 << count) - 1 : ~(__mmask32)0;
}

static void across(int64_t count, int64_t cols, const uint16_t *from, int64_t row, float *to, int64_t step)
{
        enum { lanes = LG_LANES_f32 };
        for (int64_t i = 0; i < count; i += 2, from += 2 * row, to += step)
                for (int64_t j = 0; j < cols; j += 2 * lanes) {
                        const __mmask32 some = first_values(cols - j);
                        const lg_vec_f32 a = (lg_vec_f32)_mm512_maskz_loadu_epi16(some, from + j),
                                         b = (lg_vec_f32)_mm512_maskz_loadu_epi16(i + 1 < count ? some : 0,
                                                                                  from + row + j);
                        lg_vec_store_f32(to + j, lg_pairs_low(a, b));
                        if (cols - j > lanes)
                                lg_vec_store_f32(to + j + lanes, lg_pairs_high(a, b));
                }
}

PAIRS LG_INLINE __m512i widened(const uint16_t *p, __mmask32 some)
{
        return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)some, p)), 16);
}

/* Rounds the sums of a block to C from row m on. The instruction makes subnormals 0, which the sums are already. */
PAIRS LG_INLINE void finish(const lg_half_end *end, int64_t m, const int rows, const int vectors, lg_sums_f32 *sum)
{
        enum { lanes = LG_LANES_f32 };
        const __mmask32 all = first_values(end->cols);
        uint16_t *c = end->c + m * end->g->ldc;
        if (end->bias)
                LG_EACH_SUM (rows, vectors)
                        sum[i][v] += (lg_vec_f32)widened(end->bias + lanes * v, all >> lanes * v);
        if (end->g->beta)
                LG_EACH_SUM (rows, vectors)
                        sum[i][v] += (lg_vec_f32)widened(c + i * end->g->ldc + lanes * v, all >> lanes * v);
        if (end->g->relu)
                LG_EACH_SUM (rows, vectors)
                        sum[i][v] = lg_vec_relu_f32(sum[i][v]);
        LG_UNROLL
        for (int i = 0; i < rows; i++, c += end->g->ldc)
                if (vectors == 1)
                        _mm256_mask_storeu_epi16(c, (__mmask16)all, (__m256i)_mm512_cvtneps_pbh(sum[i][0]));
                else
                        _mm512_mask_storeu_epi16(c, all, (__m512i)_mm512_cvtne2ps_pbh(sum[i][vectors - 1], sum[i][0]));
}

/* Arguments of a block: rows of a panel's product from m on. */
typedef struct block_f32 {
        const lg_panel_product *p;
        const lg_half_end *end;
        int64_t m;
} block_f32;

/* Computes a block. vdpbf16ps adds the product of the later values, then that of the earlier ones, rounding to f32 each
 * time; it treats subnormal values and sums as 0. */
PAIRS LG_INLINE void pairs_block_f32(const block_f32 *t, const int rows, const int vectors)
{
        enum { lanes = LG_LANES_f32 };
        const lg_panel_product *p = t->p;
        lg_sums_f32 sum[LG_BLOCK_ROWS];
        __m512bh b[LG_BLOCK_VECTORS];
        const ptrdiff_t a_row = p->a_row, a_col = p->a_col;
        const float *first = p->a + t->m * a_row, *row = p->panel;
        const float *a[] = {first, first + 4 * a_row, first + 8 * a_row, first + 12 * a_row};
        float *const c = p->c + t->m * WIDTH;
        LG_EACH_SUM (rows, vectors)
                sum[i][v] = p->adds ? lg_vec_load_f32(c + i * WIDTH + lanes * v) : (lg_vec_f32){0};
        for (int64_t k = p->k; k; k--, row += WIDTH) {
                LG_UNROLL
                for (int v = 0; v < vectors; v++)
                        b[v] = (__m512bh)_mm512_loadu_ps(row + lanes * v);
                LG_UNROLL
                for (int i = 0; i < rows; i++) {
                        int32_t word; /* not loaded as float: A may be read in place */
                        memcpy(&word, a[i / 4] + i % 4 * a_row, sizeof word);
                        const __m512bh x = (__m512bh)_mm512_set1_epi32(word);
                        LG_UNROLL
                        for (int v = 0; v < vectors; v++)
                                sum[i][v] = (lg_vec_f32)_mm512_dpbf16_ps((__m512)sum[i][v], x, b[v]);
                }
                LG_UNROLL
                for (int i = 0; i < 4; i++)
                        a[i] += a_col;
        }
        if (t->end)
                finish(t->end, t->m, rows, vectors, sum);
        else
                lg_sums_store_f32(sum, c, WIDTH, rows, vectors, true, lg_mask_first_f32(0));
}
#define LG_OF(name) name##_f32
LG_BLOCKS(PAIRS static, pairs_block, block_f32)

static void multiply(const lg_panel_product *p, const lg_half_end *end)
{
        const int64_t most = lg_even_part(p->rows, LG_BLOCK_ROWS), vectors = lg_ceil_div(p->cols, LG_LANES_f32);
        for (int64_t m = 0; m < p->rows; m += most)
                pairs_block_of_f32[lg_least(most, p->rows - m)][vectors - 1](&(block_f32){p, end, m});
}

const lg_half_words *lg_bf16_pairs(void)
{
        static const lg_half_words words = {2, along, across, multiply};
        /* Intel's processors take four times as long for a vector of pairs as for a multiply-add of f32. */
        return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel") ? &words : NULL;
}
#else
const lg_half_words *lg_bf16_pairs(void)
{
        return NULL;
}
#endif
