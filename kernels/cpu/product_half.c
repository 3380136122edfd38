/* product_half.c - matrix products of f16 and bf16 on one thread, with sums in f32.
 *
 * Strips of A and B are packed into words of 32 bits: values as f32, or pairs of bf16 that are neighbours along k, if
 * the processor multiplies such pairs. A tile of sums stays in f32 from the first strip to the last and is then rounded
 * to C. The order of additions depends only on k. */
#include "cpu.h"
#include "product_half.h"
#include "simd.h"

#define DEPTH 512 /* maximum words of a strip along k */
#define COLUMNS 512
#define ROWS (32 * LG_BLOCK_ROWS)
#define CACHED_ROWS (8 * LG_BLOCK_ROWS)
#define FEW 4                                   /* maximum columns not worth a panel; at most the lanes of a vector */
#define WIDTH (LG_LANES_f32 * LG_BLOCK_VECTORS) /* columns of a panel of B, and of a panel of sums */
#define APART (DEPTH + 16)                      /* words between packed lines; not a power of 2, for the caches */

static int64_t whole_vectors(int64_t count)
{
        return lg_ceil_div(count, LG_LANES_f32) * LG_LANES_f32;
}

/* ---- words that are f32 ---- */

static void multiply(const lg_panel_product *p, const lg_half_end *end)
{
        lg_multiply_panel(p);
        if (end)
                lg_round_panel(p, end);
}

#define WIDE_WORDS(type, dtype)                                                                                        \
        static void along_##type(int64_t n, void *to, const void *from)                                                \
        {                                                                                                              \
                lg_load[LG_COMPUTE_F32][dtype](n, to, from);                                                           \
        }                                                                                                              \
        static void across_##type(int64_t count, int64_t cols, const uint16_t *from, int64_t row, float *to,           \
                                  int64_t step)                                                                        \
        {                                                                                                              \
                for (int64_t i = 0; i < count; i++, from += row, to += step) {                                         \
                        along_##type(cols, to, from);                                                                  \
                        for (int64_t j = cols; j < whole_vectors(cols); j++)                                           \
                                to[j] = 0;                                                                             \
                }                                                                                                      \
        }                                                                                                              \
        static const lg_half_words words_##type = {1, along_##type, across_##type, multiply};
WIDE_WORDS(f16, LG_F16)
WIDE_WORDS(bf16, LG_BF16)
#undef WIDE_WORDS

/* ---- arguments ---- */

typedef struct half_product {
        const lg_gemm_args *g;
        const lg_half_words *words;
        bool a_in_place, b_in_place; /* A's rows, B's columns can be read as words in place */
        int64_t steps;               /* number of words along all of k */
        float *a, *b, *lines, *sums; /* packed A; packed B; lines of B to be transposed; sums */
} half_product;

static const lg_half_words *words_of(lg_dtype t)
{
        const lg_half_words *pairs = t == LG_BF16 ? lg_bf16_pairs() : NULL;
        return pairs ? pairs : t == LG_BF16 ? &words_bf16 : &words_f16;
}

/* Returns whether lines along k, `line` values from each other, can be read as words in place (aligned pairs only). */
static bool has_words(const lg_half_words *w, int64_t k, const void *p, int64_t line)
{
        return w->values == 2 && k > 0 && k % 2 == 0 && line % 2 == 0 && (uintptr_t)p % sizeof(float) == 0;
}

/* Divides `scratch` among the buffers of a product, unless NULL, and sets *ret_count to the number of floats. */
static half_product prepare(const lg_gemm_args *g, float *scratch, int64_t *ret_count)
{
        half_product p = {.g = g, .words = words_of(g->dtype)};
        /* not if lines of A are a multiple of 4096 bytes apart, which share few cache sets */
        p.a_in_place = g->a_col == 1 && g->a_row % 2048 != 0 && has_words(p.words, g->k, g->a, g->a_row);
        p.b_in_place = has_words(p.words, g->k, g->b, g->b_col);
        p.steps = lg_ceil_div(g->k, p.words->values);
        const int64_t rows = lg_least(g->m, ROWS), some = lg_least(g->m, CACHED_ROWS);
        const int64_t cols = lg_ceil_div(lg_least(g->n, COLUMNS), WIDTH) * WIDTH;
        const int64_t a = whole_vectors(some) * APART, b = cols * lg_least(p.steps, DEPTH),
                      lines = LG_LANES_f32 * APART;
        const int64_t sums = p.steps > DEPTH ? rows * cols : some * WIDTH;
        *ret_count = b + lines + a + sums;
        if (scratch) {
                p.b = scratch;
                p.lines = p.b + b;
                p.a = p.lines + lines;
                p.sums = p.a + a;
        }
        return p;
}

/* ---- packing; k is counted in values, `step` and `steps` in words ---- */

static const uint16_t *value_at(const void *p, int64_t i)
{
        return (const void *)lg_byte_at(p, i * (int64_t)sizeof(uint16_t));
}

/* Packs rows of A: as lines along k if they are contiguous along k, else as one row for each word along k. */
static void pack_a(const half_product *p, int64_t m, int64_t rows, int64_t step, int64_t steps, lg_panel_product *ret)
{
        const lg_gemm_args *g = p->g;
        const int64_t values = p->words->values, k = step * values, count = lg_least(steps * values, g->k - k);
        const uint16_t *from = value_at(g->a, m * g->a_row + k * g->a_col);
        const bool lines = g->a_col == 1 || g->k == 1;
        ret->a = p->a_in_place ? (const float *)(const void *)from : p->a;
        ret->a_row = p->a_in_place ? g->a_row / 2 : lines ? APART : 1;
        ret->a_col = lines ? 1 : whole_vectors(rows);
        if (p->a_in_place)
                return;
        for (int64_t i = 0; lines && i < rows; i++)
                p->words->along(count, p->a + i * APART, from + i * g->a_row);
        if (!lines)
                p->words->across(count, rows, from, g->a_col, p->a, ret->a_col);
}

static void pack_rows(const half_product *p, const uint16_t *from, int64_t count, int64_t steps, int64_t cols)
{
        for (int64_t j = 0; j < cols; j += WIDTH)
                p->words->across(count, lg_least(WIDTH, cols - j), from + j, p->g->b_row, p->b + j * steps, WIDTH);
}

/* Packs columns of B, as many at a time as a vector has lanes: converts each one to a line of words along k, unless it
 * can be read in place, then transposes the lines. */
static void pack_columns(const half_product *p, const uint16_t *from, int64_t count, int64_t steps, int64_t cols)
{
        const int64_t line = p->b_in_place ? p->g->b_col / 2 : APART;
        for (int64_t n = 0; n < cols; n += LG_LANES_f32, from += LG_LANES_f32 * p->g->b_col) {
                const int64_t some = lg_least(LG_LANES_f32, cols - n);
                const float *lines = p->b_in_place ? (const float *)(const void *)from : p->lines;
                float *to = p->b + n / WIDTH * WIDTH * steps + n % WIDTH;
                for (int64_t i = 0; !p->b_in_place && i < some; i++)
                        p->words->along(count, p->lines + i * APART, from + i * p->g->b_col);
                for (int64_t i = 0; i < steps; i += LG_LANES_f32)
                        lg_vec_transpose_f32(lines + i, line, to + i * WIDTH, WIDTH, some,
                                             lg_least(LG_LANES_f32, steps - i));
        }
}

static void pack_b(const half_product *p, int64_t step, int64_t steps, int64_t n, int64_t cols)
{
        const lg_gemm_args *g = p->g;
        const int64_t k = step * p->words->values, count = lg_least(steps * p->words->values, g->k - k);
        const bool along = g->n == 1 ? g->b_row == 1 : g->b_col != 1;
        (along ? pack_columns : pack_rows)(p, value_at(g->b, k * g->b_row + n * g->b_col), count, steps, cols);
}

/* ---- rounding to C ---- */

LG_INLINE lg_vec_f32 wide(const uint16_t *p, int64_t count, const bool bf16)
{
        lg_halves h = {0};
        memcpy(&h, p, (size_t)count * sizeof *p);
        return bf16 ? lg_vec_of_bf16(h) : lg_vec_of_f16(h);
}

/* Rounds and stores `count` columns from j on, after adding bias and C and applying ReLU unless `plain`. */
LG_INLINE void round_vector(const lg_panel_product *p, const lg_half_end *end, int64_t j, int64_t count,
                            const bool bf16, const bool plain)
{
        const lg_gemm_args *g = end->g;
        const lg_vec_f32 b = end->bias ? wide(end->bias + j, count, bf16) : (lg_vec_f32){0};
        uint16_t *c = end->c + j;
        for (int64_t i = 0; i < p->rows; i++, c += g->ldc) {
                lg_vec_f32 y = lg_vec_load_f32(p->c + i * WIDTH + j);
                if (!plain) {
                        y += b;
                        y = g->beta ? y + wide(c, count, bf16) : y;
                        y = g->relu ? lg_vec_relu_f32(y) : y;
                }
                const lg_halves h = bf16 ? lg_bf16_of_vec(y) : lg_f16_of_vec(y);
                memcpy(c, &h, (size_t)count * sizeof *c);
        }
}

LG_INLINE void round_all(const lg_panel_product *p, const lg_half_end *end, const bool bf16, const bool plain)
{
        int64_t j = 0;
        for (; j + LG_LANES_f32 <= end->cols; j += LG_LANES_f32)
                round_vector(p, end, j, LG_LANES_f32, bf16, plain);
        if (j < end->cols)
                round_vector(p, end, j, end->cols - j, bf16, plain);
}

void lg_round_panel(const lg_panel_product *p, const lg_half_end *end)
{
        const bool plain = !end->bias && !end->g->beta && !end->g->relu;
        if (end->g->dtype == LG_BF16 && plain)
                round_all(p, end, true, true);
        else if (end->g->dtype == LG_BF16)
                round_all(p, end, true, false);
        else
                round_all(p, end, false, false);
}

/* Returns the epilogue for C from row m and column n on. */
static lg_half_end end_at(const lg_gemm_args *g, int64_t m, int64_t n)
{
        return (lg_half_end){.g = g,
                             .c = (uint16_t *)g->c + m * g->ldc + n,
                             .bias = g->bias ? (const uint16_t *)g->bias + n : NULL,
                             .cols = lg_least(WIDTH, g->n - n)};
}

/* ---- a single row or few columns: lines of A by lines of B, nothing is packed ---- */

/* Returns whether C is a single contiguous column: the product of the transposed matrices then has a single row. */
static bool is_column(const lg_gemm_args *g)
{
        return g->n == 1 && g->m > 1 && g->ldc == 1 && !g->bias;
}

lg_product_algorithm lg_half_algorithm_of(const lg_gemm_args *g)
{
        const bool few = g->m == 1 || is_column(g) || (g->n <= FEW && words_of(g->dtype)->values == 1);
        return few && g->k > 0 && g->a_col == 1 && g->b_row == 1 ? LG_BY_DOTS : LG_BY_STRIPS;
}

/* Loads the last values of a line of k, those that fill no vector; the other lanes are 0. */
LG_INLINE lg_halves last_of(const uint16_t *line, int64_t k)
{
        static const uint16_t order[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        lg_halves h = {0}, lane;
        if (k < LG_LANES_f32) {
                memcpy(&h, line, (size_t)k * sizeof *line);
                return h;
        }
        memcpy(&h, line + k - LG_LANES_f32, sizeof h);
        memcpy(&lane, order, sizeof lane);
        return h & (lg_halves)(lane >= (uint16_t)(LG_LANES_f32 - k % LG_LANES_f32));
}

LG_INLINE lg_vec_f32 widened(const uint16_t *line, int64_t k, const bool last, const bool bf16)
{
        lg_halves h;
        if (last)
                h = last_of(line, k);
        else
                memcpy(&h, line + k, sizeof h);
        return bf16 ? lg_vec_of_bf16(h) : lg_vec_of_f16(h);
}

LG_INLINE void add_dots(const uint16_t *a, const uint16_t *const *b, int64_t k, const bool last, lg_vec_f32 *sum,
                        const bool bf16)
{
        const lg_vec_f32 x = widened(a, k, last, bf16);
        LG_UNROLL
        for (int j = 0; j < FEW; j++)
                sum[j] = lg_vec_fma_f32(x, widened(b[j], k, last, bf16), sum[j]);
}

/* Computes a row of A by FEW columns of B; columns beyond the last repeat the last one. */
LG_INLINE void dots(const lg_gemm_args *g, const uint16_t *a, int64_t n, float ret[FEW], const bool bf16)
{
        const int64_t whole = g->k / LG_LANES_f32 * LG_LANES_f32;
        lg_vec_f32 sum[FEW] = {{0}};
        const uint16_t *b[FEW];
        float lanes[LG_LANES_f32];
        LG_UNROLL
        for (int j = 0; j < FEW; j++)
                b[j] = (const uint16_t *)g->b + lg_least(n + j, g->n - 1) * g->b_col;
        for (int64_t k = 0; k < whole; k += LG_LANES_f32)
                add_dots(a, b, k, false, sum, bf16);
        if (whole < g->k)
                add_dots(a, b, g->k, true, sum, bf16);
        LG_UNROLL
        for (int half = FEW / 2; half; half /= 2) {
                LG_UNROLL
                for (int j = 0; j < half; j++)
                        sum[j] = LG_LOW_f32(sum[j], sum[j + half]) + LG_HIGH_f32(sum[j], sum[j + half]);
        }
        lg_vec_store_f32(lanes, sum[0]); /* lane i belongs to column i % FEW */
        for (int j = 0; j < FEW; j++)
                ret[j] = lanes[j];
        for (int i = FEW; i < LG_LANES_f32; i++)
                ret[i % FEW] += lanes[i];
}

static void multiply_by_dots(const lg_gemm_args *g)
{
        float sums[WIDTH] = {0};
        const lg_panel_product row = {.rows = 1, .c = sums};
        lg_gemm_args turned = *g;
        if (is_column(g)) {
                turned.a = g->b;
                turned.b = g->a;
                turned.b_col = g->a_row;
                turned.m = 1;
                turned.n = g->m;
                g = &turned;
        }
        for (int64_t m = 0; m < g->m; m++) {
                const uint16_t *a = (const uint16_t *)g->a + m * g->a_row;
                for (int64_t n = 0; n < g->n; n += WIDTH) {
                        const lg_half_end end = end_at(g, m, n);
                        for (int64_t j = 0; j < end.cols; j += FEW)
                                if (g->dtype == LG_BF16)
                                        dots(g, a, n + j, sums + j, true);
                                else
                                        dots(g, a, n + j, sums + j, false);
                        lg_round_panel(&row, &end);
                }
        }
}

/* ---- the whole product ---- */

/* Computes the products of one strip for some rows. With a single strip, sums are kept for one panel only. */
static void multiply_strip(const half_product *p, int64_t step, int64_t steps, int64_t m, int64_t rows, int64_t n,
                           int64_t cols)
{
        const bool one = steps == p->steps, last = step + steps == p->steps;
        for (int64_t i = 0, some; i < rows; i += some) {
                some = lg_even_part(rows - i, CACHED_ROWS);
                lg_panel_product t = {.rows = some, .k = steps, .adds = step > 0};
                pack_a(p, m + i, some, step, steps, &t);
                for (int64_t j = 0; j < cols; j += WIDTH) {
                        const lg_half_end end = end_at(p->g, m + i, n + j);
                        t.panel = p->b + j * steps;
                        t.cols = whole_vectors(end.cols);
                        t.c = one ? p->sums : p->sums + j * rows + i * WIDTH;
                        p->words->multiply(&t, last ? &end : NULL);
                }
        }
}

size_t lg_multiply_half_bytes(const lg_gemm_args *g, lg_product_algorithm algorithm)
{
        int64_t count;
        if (algorithm == LG_BY_DOTS)
                return 0;
        prepare(g, NULL, &count);
        return (size_t)count * sizeof(float);
}

void lg_multiply_half(const lg_gemm_args *g, lg_product_algorithm algorithm, void *scratch)
{
        int64_t count;
        if (algorithm == LG_BY_DOTS) {
                multiply_by_dots(g);
                return;
        }
        const half_product p = prepare(g, scratch, &count);
        for (int64_t n = 0, cols; n < g->n; n += cols) {
                cols = lg_least(COLUMNS, g->n - n);
                for (int64_t m = 0, rows; m < g->m; m += rows) {
                        int64_t step = 0, steps;
                        rows = lg_even_part(g->m - m, ROWS);
                        do { /* runs once even if k is 0 */
                                steps = lg_even_part(p.steps - step, DEPTH);
                                if (m == 0 || steps < p.steps)
                                        pack_b(&p, step, steps, n, cols);
                                multiply_strip(&p, step, steps, m, rows, n, cols);
                                step += steps;
                        } while (step < p.steps);
                }
        }
}
