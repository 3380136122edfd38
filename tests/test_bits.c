/* test_bits.c - the result and the gradients of every op, and products of all sizes, have the same bits on any number
 * of threads.
 *
 * It runs with loops of two elements shared out, so that the small inputs of the table are enough.
 */
#include "rows.h"

static uint64_t hash_more(uint64_t hash, lg_tensor *t)
{
        if (!t)
                return hash;
        const size_t bytes = (size_t)lg_numel(t) * sizeof(double);
        unsigned char *p = malloc(bytes + 1);
        lg_read(t, p, LG_F64, bytes);
        for (size_t k = 0; k < bytes; k++)
                hash = (hash ^ p[k]) * 0x100000001b3;
        free(p);
        return hash;
}

/* A leaf with the values of the table for input `which`, rounded to f32. */
static lg_tensor *leaf(lg_ctx *c, const row *r, int which, lg_shape shape)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        float *v = calloc((size_t)n + 1, sizeof *v);
        for (int64_t i = 0; i < n; i++)
                v[i] = (float)value(r, which, i);
        lg_tensor *t = lg_from(c, v, shape, .dtype = LG_F32, .requires_grad = true);
        free(v);
        return t;
}

/* Of the case's result and of its gradients by fused kernels. */
static uint64_t hash_of_case(lg_ctx *c, const row *r, int k, shapes *s, int threads)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x[MAX_INPUTS] = {NULL}, *grads[MAX_INPUTS] = {NULL};
        lg_set_threads(c, threads);
        lg_seed(c, 7);
        for (int i = 0; i < s->count; i++)
                x[i] = leaf(c, r, i, s->shape[i]);
        const int inputs = s->count;
        const lg_list leaves = {.count = inputs, .items = x};
        lg_tensor *y = run_case(r, c, x, k, s);
        if (y && lg_requires_grad(y))
                lg_grad(LG_LIST(lg_sum(lg_square(y))), leaves, .result = grads);
        uint64_t hash = hash_more(0xcbf29ce484222325, y);
        for (int i = 0; i < inputs; i++)
                hash = hash_more(hash, grads[i]);
        if (lg_error(c))
                fail_msg("%s, case %d: %s", r->name, k, lg_error(c));
        lg_scope_end(c, scope);
        return hash;
}

TEST_CASE(every_row)
{
        static const int threads[] = {1, 2, 3, 4, 7};
        lg_ctx *c = open_ctx();
        int cases = 0;
        probabilities = LG_F32;
        for (int r = 0; r < ROWS; r++) {
                shapes s;
                int k = 0;
                for (run_case(&rows[r], c, NULL, 0, &s); s.count >= 0; run_case(&rows[r], c, NULL, ++k, &s), cases++) {
                        const uint64_t one = hash_of_case(c, &rows[r], k, &s, 1);
                        for (size_t t = 1; t < sizeof threads / sizeof *threads; t++)
                                if (hash_of_case(c, &rows[r], k, &s, threads[t]) != one)
                                        fail_msg("%s, case %d: other bits with %d threads", rows[r].name, k,
                                                 threads[t]);
                }
        }
        print_message("%d cases\n", cases);
        lg_close(c);
}

/* Sizes at which a tile alone would be computed in another order than the whole: few rows or columns are left, or k is
 * cut into strips. */
TEST_CASE(products_of_all_sizes)
{
        static const int64_t sizes[][3] = {{64, 10, 128}, {1, 200, 300},  {15, 17, 600},  {29, 33, 1030}, {200, 9, 70},
                                           {33, 1, 90},   {57, 66, 1024}, {128, 36, 700}, {31, 1024, 65}, {100, 70, 3}};
        static const int threads[] = {1, 2, 3, 4, 7};
        lg_ctx *c = open_ctx();
        lg_seed(c, 1);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (int turned = 0; turned < 4; turned++) {
                        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
                        lg_tensor *a = lg_normal(c, 0, 1, turned & 1 ? LG_SHAPE(k, m) : LG_SHAPE(m, k));
                        lg_tensor *b = lg_normal(c, 0, 1, turned & 2 ? LG_SHAPE(n, k) : LG_SHAPE(k, n));
                        a = turned & 1 ? lg_transpose(a, 0, 1) : a;
                        b = turned & 2 ? lg_transpose(b, 0, 1) : b;
                        uint64_t one = 0;
                        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
                                lg_set_threads(c, threads[t]);
                                const uint64_t hash = hash_more(0, lg_matmul(a, b));
                                one = t ? one : hash;
                                assert_ok(c);
                                if (hash != one)
                                        fail_msg("(%d, %d) by (%d, %d), turned %d: other bits with %d threads", (int)m,
                                                 (int)k, (int)k, (int)n, turned, threads[t]);
                        }
                }
        lg_close(c);
}
