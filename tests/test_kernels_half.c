/* test_kernels_half.c - products of f16 and bf16 on every instruction set, beside sums in f64. */
#include "kernels.h"

static const lg_dtype halves[2] = {LG_F16, LG_BF16};

/* A product, with operands whose gaps are NaN. */
typedef struct product {
        lg_gemm_args g;
        int64_t batches, a_count, b_count, c_count;
        void *start; /* C before */
        double size; /* of A's values */
} product;

enum { TURN_A = 1, TURN_B = 2, BETA = 4, BIAS = 8, RELU = 16, ODD = 32, ALL_FLAGS = 64 };

/* (rows, cols) values in lines `apart` along either, after each other `batches` times, `step` apart. */
static void *make_matrix(lg_dtype t, int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t batches,
                         int64_t step, double size)
{
        void *p = malloc((size_t)(batches * step) * size_of[t] + 1);
        for (int64_t i = 0; i < batches * step; i++)
                put(t, p, i, NAN);
        for (int64_t s = 0; s < batches; s++)
                for (int64_t i = 0; i < rows * cols; i++)
                        put(t, p, s * step + i / cols * row + i % cols * col, random_real(-size, size));
        return p;
}

static product make_product(lg_dtype t, int64_t m, int64_t n, int64_t k, int64_t batches, int flags, double size)
{
        product p = {.batches = batches, .size = size};
        lg_gemm_args *g = &p.g;
        const int64_t gap = flags & ODD ? 1 : 0;
        *g = (lg_gemm_args){.dtype = t, .m = m, .n = n, .k = k, .ldc = n + 3 * gap, .batch_ndim = batches != 1};
        g->a_row = flags & TURN_A ? 1 : k + gap;
        g->a_col = flags & TURN_A ? m + gap : 1;
        g->b_row = flags & TURN_B ? 1 : n + gap;
        g->b_col = flags & TURN_B ? k + gap : 1;
        g->beta = flags & BETA ? 1 : 0;
        g->relu = flags & RELU;
        g->batch[0] = batches;
        g->a_batch[0] = p.a_count = (m + 1) * (k + 1) + gap;
        p.b_count = (n + 1) * (k + 1);
        g->c_batch[0] = p.c_count = m * g->ldc + gap;
        g->a = make_matrix(t, m, k, g->a_row, g->a_col, batches, p.a_count, size);
        g->b = make_matrix(t, k, n, g->b_row, g->b_col, 1, p.b_count, 1);
        g->bias = flags & BIAS ? make_matrix(t, 1, n, n, 1, 1, n, size) : NULL;
        p.start = make_matrix(t, m, n, g->ldc, 1, batches, p.c_count, size);
        g->c = malloc((size_t)(batches * p.c_count) * 2 + 1);
        return p;
}

static void free_product(product *p)
{
        free((void *)(uintptr_t)p->g.a);
        free((void *)(uintptr_t)p->g.b);
        free((void *)(uintptr_t)p->g.bias);
        free(p->g.c);
        free(p->start);
}

/* The exact value, and how far one that is summed in f32 in any order and then rounded may be from it. */
static double exact(const product *p, int64_t s, int64_t m, int64_t n, double *ret_bound)
{
        const lg_gemm_args *g = &p->g;
        const lg_dtype t = g->dtype;
        const double unit = t == LG_F16 ? 0x1p-11 : 0x1p-8, least = t == LG_F16 ? 0x1p-25 : 0x1p-120;
        double sum = g->beta ? get(t, p->start, s * p->c_count + m * g->ldc + n) : 0, sizes = fabs(sum);
        const double bias = g->bias ? get(t, g->bias, n) : 0;
        sum += bias;
        sizes += fabs(bias);
        for (int64_t k = 0; k < g->k; k++) {
                const double x = get(t, g->a, s * p->a_count + m * g->a_row + k * g->a_col) *
                                 get(t, g->b, k * g->b_row + n * g->b_col);
                sum += x;
                sizes += fabs(x);
        }
        sum = g->relu && sum <= 0 ? 0 : sum;
        const double before = (double)(g->k + 3) * 0x1p-24 * sizes;
        *ret_bound = before + unit * (fabs(sum) + before) + least;
        return sum;
}

static bool right(lg_dtype t, double got, double want, double bound)
{
        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got);
        if (isinf(want) || (t == LG_F16 && fabs(want) >= 65520 + bound))
                return isinf(got) && (got > 0) == (want > 0);
        return fabs(got - want) <= bound || (t == LG_F16 && isinf(got) && fabs(want) >= 65520 - bound);
}

static void check_values(const product *p, const char *isa)
{
        const lg_gemm_args *g = &p->g;
        for (int64_t i = 0; i < p->batches * p->c_count; i++) {
                const int64_t s = i / p->c_count, m = i % p->c_count / g->ldc, n = i % p->c_count % g->ldc;
                const double got = get(g->dtype, g->c, i);
                double bound;
                if (m >= g->m || n >= g->n) {
                        assert_int_equal(((const uint16_t *)g->c)[i], ((const uint16_t *)p->start)[i]);
                        continue;
                }
                const double want = exact(p, s, m, n, &bound);
                if (!right(g->dtype, got, want, bound))
                        fail_msg("%s, dtype %d, %lld x %lld x %lld, at %lld %lld of %lld: %g, not %g +- %g", isa,
                                 (int)g->dtype, (long long)g->m, (long long)g->n, (long long)g->k, (long long)m,
                                 (long long)n, (long long)s, got, want, bound);
        }
}

/* On every instruction set: right, and the same bits on any number of threads. */
static void check(product *p)
{
        static const int threads[] = {1, 2, 3, 7};
        const size_t bytes = (size_t)(p->batches * p->c_count) * 2;
        void *first = malloc(bytes + 1);
        for (int isa = 0; isa < ISAS; isa++) {
                const lg_kernels *k = lg__cpu_kernels(isas[isa]);
                for (int i = 0; k && i < 4; i++) {
                        lg_queue q = make_queue(threads[i]);
                        memcpy(p->g.c, p->start, bytes);
                        CALL(k->gemm, &q, &p->g);
                        if (i == 0) {
                                check_values(p, isas[isa]);
                                memcpy(first, p->g.c, bytes);
                        }
                        assert_memory_equal(first, p->g.c, bytes);
                        q.api->close(&q);
                }
        }
        free(first);
}

static void check_shape(int64_t m, int64_t n, int64_t k, int64_t batches, int flags, double size)
{
        for (int t = 0; t < 2; t++) {
                product p = make_product(halves[t], m, n, k, batches, flags, size);
                check(&p);
                free_product(&p);
        }
}

TEST_CASE(test_layouts)
{
        static const int64_t sizes[][3] = {{1, 1, 1},  {5, 7, 3},  {1, 9, 17},  {33, 1, 8},
                                           {4, 3, 37}, {2, 40, 6}, {15, 33, 40}};
        for (int s = 0; s < 7; s++)
                for (int flags = 0; flags < ALL_FLAGS; flags++)
                        check_shape(sizes[s][0], sizes[s][1], sizes[s][2], 3, flags, 1);
}

TEST_CASE(test_random_shapes)
{
        for (int i = 0; i < 150; i++)
                check_shape(random_int(1, 40), random_int(1, 70), random_int(1, 70), random_int(1, 2),
                            (int)random_int(0, ALL_FLAGS - 1), 1);
}

/* Beyond blocks of rows, panels, strips and tiles; some of a row or a column more. */
TEST_CASE(test_edges)
{
        static const int64_t sizes[][3] = {{450, 33, 70},  {57, 65, 1100}, {29, 545, 130}, {3, 35, 2051},
                                           {1, 1000, 600}, {700, 3, 1030}, {15, 40, 2048}};
        for (int s = 0; s < 7; s++)
                for (int flags = 0; flags < 4; flags++)
                        check_shape(sizes[s][0], sizes[s][1], sizes[s][2], 1, flags | (s % 2 ? ODD | BETA : BIAS), 1);
}

TEST_CASE(test_empty)
{
        for (int flags = 0; flags < ALL_FLAGS; flags++) {
                check_shape(0, 3, 2, 2, flags, 1);
                check_shape(3, 0, 2, 2, flags, 1);
                check_shape(3, 4, 2, 0, flags, 1);
                for (int t = 0; t < 2; t++)
                        for (int64_t m = 1; m < 3; m++) {
                                product p = make_product(halves[t], m, 37, 0, 2, flags, 1);
                                const void *a = p.g.a, *b = p.g.b;
                                p.g.a = p.g.b = NULL;
                                check(&p);
                                p.g.a = a;
                                p.g.b = b;
                                free_product(&p);
                        }
        }
}

/* A strided row or column, where the other stride means nothing. */
TEST_CASE(test_strided_vectors)
{
        for (int t = 0; t < 2; t++)
                for (int flags = 0; flags < 4; flags++) {
                        product p = make_product(halves[t], 1, 37, 19, 1, flags | TURN_A | ODD, 1);
                        p.g.a_row = 77; /* of one row, with strides of 2 along k */
                        check(&p);
                        free_product(&p);
                        p = make_product(halves[t], 21, 1, 19, 1, flags & ~TURN_B, 1);
                        p.g.b_col = 77;
                        check(&p);
                        free_product(&p);
                }
}

TEST_CASE(test_not_finite)
{
        static const double values[] = {NAN, INFINITY, -INFINITY};
        for (int i = 0; i < 200; i++) {
                const int64_t m = random_int(1, 20), n = random_int(1, 40), k = random_int(1, 40);
                product p = make_product(halves[i % 2], m, n, k, 1, (int)random_int(0, ALL_FLAGS - 1), 1);
                const int64_t row = random_int(0, m - 1), col = random_int(0, n - 1), at = random_int(0, k - 1);
                put(p.g.dtype, (void *)(uintptr_t)p.g.a, row * p.g.a_row + at * p.g.a_col, values[i % 3]);
                put(p.g.dtype, (void *)(uintptr_t)p.g.b, at * p.g.b_row + col * p.g.b_col, values[i / 3 % 3]);
                if (i % 5 == 0)
                        put(p.g.dtype, p.start, row * p.g.ldc + col, NAN);
                check(&p);
                free_product(&p);
        }
}

/* A sum of which only the errors remain shows in what order it was made: by tiles of one row or column, too. */
TEST_CASE(test_order)
{
        static const int64_t sizes[][3] = {{29, 29, 5000}, {57, 65, 1100}, {13, 97, 4000}};
        for (int s = 0; s < 3; s++)
                for (int i = 0; i < 2 * 4; i++) {
                        const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                        product p = make_product(halves[i % 2], m, n, k, 1, i / 2, 1);
                        void *a = (void *)(uintptr_t)p.g.a, *b = (void *)(uintptr_t)p.g.b;
                        for (int64_t x = 0; x < m * (k / 2); x++) {
                                const int64_t at = x / (k / 2) * p.g.a_row + x % (k / 2) * p.g.a_col;
                                put(p.g.dtype, a, at + k / 2 * p.g.a_col, -get(p.g.dtype, a, at));
                        }
                        for (int64_t x = 0; x < n * (k / 2); x++) {
                                const int64_t at = x / (k / 2) * p.g.b_col + x % (k / 2) * p.g.b_row;
                                put(p.g.dtype, b, at + k / 2 * p.g.b_row, get(p.g.dtype, b, at));
                        }
                        check(&p);
                        free_product(&p);
                }
}

/* f16's subnormal values count, and what is beyond its range is infinite. */
TEST_CASE(test_range)
{
        for (int flags = 0; flags < ALL_FLAGS; flags += 3) {
                check_shape(17, 35, 21, 1, flags, 0x1p-15);
                check_shape(1, 35, 21, 1, flags, 0x1p-15);
                check_shape(17, 35, 41, 1, flags, 60000);
        }
}
