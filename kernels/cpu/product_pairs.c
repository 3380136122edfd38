/* product_pairs.c - words of two bf16 values that follow each other along k, for processors that multiply such pairs.
 */
#include "product_half.h"
#include "simd.h"

#if defined(__AVX512F__)
#define WIDTH (LG_LANES_f32 * LG_BLOCK_VECTORS)
#define PAIRS __attribute__((target("avx512bf16")))

static void along(int64_t n, void *to, const void *from)
{
        memcpy(to, from, (size_t)n * sizeof(uint16_t));
        if (n % 2)
                memset((uint16_t *)to + n, 0, sizeof(uint16_t));
}

static void across(int64_t n, float *to, const uint16_t *row, const uint16_t *next)
{
        LG_SIMD
        for (int64_t i = 0; i < n; i++)
                to[i] = lg_f32_of_bits((next ? (uint32_t)next[i] << 16 : 0) | row[i]);
}

/* As the block of product.inc, on whole vectors. vdpbf16ps adds the product of the later values, then that of the
 * earlier ones, each time rounding to f32; subnormal values and sums are 0 to it. */
PAIRS LG_INLINE void compute(const lg_panel_product *p, int64_t m, const int rows, const int vectors)
{
        enum { lanes = LG_LANES_f32 };
        __m512 sum[LG_BLOCK_ROWS][LG_BLOCK_VECTORS], b[LG_BLOCK_VECTORS];
        const float *a0 = p->a + m * p->a_row, *a1 = a0 + 4 * p->a_row, *a2 = a0 + 8 * p->a_row,
                    *a3 = a0 + 12 * p->a_row, *row = p->panel;
        const ptrdiff_t a_row = p->a_row, a_col = p->a_col;
        float *const c = p->c + m * WIDTH;
        LG_UNROLL
        for (int i = 0; i < rows; i++) {
                LG_UNROLL
                for (int v = 0; v < vectors; v++)
                        sum[i][v] = p->adds ? _mm512_loadu_ps(c + i * WIDTH + lanes * v) : _mm512_setzero_ps();
        }
        for (int64_t k = p->k; k; k--) {
                LG_UNROLL
                for (int v = 0; v < vectors; v++)
                        b[v] = _mm512_loadu_ps(row + lanes * v);
                LG_UNROLL
                for (int i = 0; i < rows; i++) {
                        const float *a = i < 4 ? a0 : i < 8 ? a1 : i < 12 ? a2 : a3;
                        int32_t word; /* not read as a float: A may be there as it lies */
                        memcpy(&word, a + (i & 3) * a_row, sizeof word);
                        const __m512bh x = (__m512bh)_mm512_set1_epi32(word);
                        LG_UNROLL
                        for (int v = 0; v < vectors; v++)
                                sum[i][v] = _mm512_dpbf16_ps(sum[i][v], x, (__m512bh)b[v]);
                }
                a0 += a_col, a1 += a_col, a2 += a_col, a3 += a_col, row += WIDTH;
        }
        LG_UNROLL
        for (int i = 0; i < rows; i++) {
                LG_UNROLL
                for (int v = 0; v < vectors; v++)
                        _mm512_storeu_ps(c + i * WIDTH + lanes * v, sum[i][v]);
        }
}

typedef void block_fn(const lg_panel_product *p, int64_t m);
#define BLOCK(rows, vectors)                                                                                           \
        PAIRS static void block##rows##_##vectors(const lg_panel_product *p, int64_t m)                                \
        {                                                                                                              \
                compute(p, m, rows, vectors);                                                                          \
        }
#define BLOCKS(rows) BLOCK(rows, 1) BLOCK(rows, 2)
LG_EACH_ROWS(BLOCKS)
#define ENTRY(rows) [rows] = {block##rows##_1, block##rows##_2},
static block_fn *const blocks[LG_BLOCK_ROWS + 1][LG_BLOCK_VECTORS] = {LG_EACH_ROWS(ENTRY)};

static void multiply(const lg_panel_product *p)
{
        const int64_t most = lg_even_part(p->rows, LG_BLOCK_ROWS), vectors = lg_ceil_div(p->cols, LG_LANES_f32);
        for (int64_t m = 0; m < p->rows; m += most)
                blocks[lg_least(most, p->rows - m)][vectors - 1](p, m);
}

const lg_half_words *lg_bf16_pairs(void)
{
        static const lg_half_words words = {2, along, across, multiply};
        return __builtin_cpu_supports("avx512bf16") ? &words : NULL;
}
#else
const lg_half_words *lg_bf16_pairs(void)
{
        return NULL;
}
#endif
