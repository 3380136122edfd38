/* test_draw.c - random choices by probabilities: bernoulli, multinomial. */
#include "failing.h"

TEST_CASE(coins)
{
        lg_ctx *c = open_ctx();
        enum { N = 40000 };
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        static double v[2][N];
        lg_tensor *p = lg_div_scalar(lg_remainder(lg_arange(c, 0, N, 1), lg_scalar(c, 5, .dtype = LG_I64)), 4);
        for (int d = 0; d < 4; d++) { /* 0, 1/4 ... 1, which all have */
                lg_seed(c, 11);
                lg_tensor *t = lg_bernoulli(lg_reshape(lg_cast(p, dtypes[d]), LG_SHAPE(N / 10, 10)));
                assert_int_equal(lg_dtype_of(t), dtypes[d]);
                assert_int_equal(lg_size_of(t, 1), 10);
                assert_int_equal(lg_random_state_of(c).counter, N / 2);
                read_all(t, v[d > 0], N);
                assert_true(d == 0 || memcmp(v[0], v[1], sizeof v[0]) == 0);
        }
        int count[5] = {0};
        for (int i = 0; i < N; i++) {
                assert_true(v[0][i] == 0 || v[0][i] == 1);
                count[i % 5] += (int)v[0][i];
        }
        assert_int_equal(count[0], 0);
        assert_int_equal(count[4], N / 5);
        for (int i = 1; i < 4; i++)
                assert_near(count[i], N / 5 * i / 4.0, 225); /* 5 standard deviations */
        /* by the place in the tensor, not in memory */
        lg_seed(c, 1);
        lg_tensor *turned = lg_transpose(lg_reshape(lg_linspace(c, 0, 1, 60), LG_SHAPE(6, 10)), 0, 1);
        read_all(lg_bernoulli(turned), v[0], 60);
        lg_seed(c, 1);
        read_all(lg_bernoulli(lg_contiguous(turned)), v[1], 60);
        assert_memory_equal(v[0], v[1], 60 * sizeof(double));
        lg_tensor *odd = lg_from(c, ((float[]){-1, 2, NAN, INFINITY, -INFINITY}), LG_SHAPE(5), .requires_grad = true);
        lg_tensor *t = lg_bernoulli(odd);
        assert_list(t, 0, 0, 1, 0, 1, 0);
        assert_false(lg_requires_grad(t));
        assert_int_equal(lg_numel(lg_bernoulli(lg_zeros(c, LG_SHAPE(2, 0)))), 0);
        assert_list(lg_bernoulli(lg_scalar(c, 1)), 0, 1);
        int64_t before = lg_live_tensors(c);
        drop(lg_bernoulli(odd));
        assert_int_equal(lg_live_tensors(c), before + 1);
        assert_ok(c);
        lg_random_state s = lg_random_state_of(c);
        assert_fails(c, lg_bernoulli(lg_ones(c, LG_SHAPE(2), .dtype = LG_I64)), LG_ERR_DTYPE,
                     "bernoulli: p is i64 (2,)");
        assert_null(lg_bernoulli(NULL));
        assert_int_equal(lg_random_state_of(c).counter, s.counter);
        lg_close(c);
}

/* How often each of five indices comes, 5 standard deviations around what is likely. */
static void check_counts(lg_tensor *drawn, const double *parts)
{
        const int64_t n = lg_numel(drawn);
        double *v = malloc((size_t)n * sizeof *v), count[5] = {0};
        read_all(drawn, v, n);
        for (int64_t i = 0; i < n; i++) {
                assert_true(v[i] >= 0 && v[i] < 5);
                count[(int)v[i]]++;
        }
        for (int i = 0; i < 5; i++)
                assert_near(count[i], (double)n * parts[i], 5 * sqrt((double)n * parts[i] * (1 - parts[i])));
        free(v);
}

TEST_CASE(draws_with_replacement)
{
        lg_ctx *c = open_ctx();
        enum { N = 20000 };
        const double parts[] = {0, 0.1, 0.5, 0, 0.4};
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                lg_tensor *w = lg_from(c, ((double[]){0, 2, 10, 0, 8}), LG_SHAPE(5), .dtype = dtypes[d]);
                lg_tensor *t = lg_multinomial(w, N, .replacement = true);
                assert_int_equal(lg_dtype_of(t), LG_I64);
                assert_int_equal(lg_ndim_of(t), 1);
                check_counts(t, parts);
        }
        /* of many small and one large: each row has its own weights, as large or small as floats can be */
        const double scales[] = {1, 1e-300, 4e307, 1e-322};
        lg_tensor *rows[4], *w = lg_from(c, ((double[]){0, 0.2, 1, 0, 0.8}), LG_SHAPE(5));
        for (int i = 0; i < 4; i++)
                rows[i] = lg_mul_scalar(w, scales[i]);
        lg_tensor *t = lg_multinomial(lg_stack(LG_LIST_OF(3, rows), 0), N, .replacement = true);
        for (int i = 0; i < 3; i++)
                check_counts(lg_select(t, 0, i), parts);
        check_counts(lg_multinomial(lg_transpose(lg_expand(lg_unsqueeze(w, 1), LG_SHAPE(5, 7)), 0, 1), N,
                                    .replacement = true),
                     parts);
        t = lg_multinomial(rows[3], 1000, .replacement = true); /* denormal numbers: 4, 20, 16 times the least */
        check_counts(t, parts);
        /* what is no weight is never drawn; rows that have none give 0 */
        const double inf = INFINITY;
        w = lg_from(c, ((double[]){-1, NAN, 0, 3, -inf, 0, 0, 0, 0, 0, NAN, NAN, NAN, NAN, NAN, 5, 1, inf, 0, inf}),
                    LG_SHAPE(4, 5));
        t = lg_multinomial(w, 300, .replacement = true);
        double v[4][300];
        read_all(t, v[0], 1200);
        int second = 0;
        for (int i = 0; i < 300; i++) {
                assert_true(v[0][i] == 3 && v[1][i] == 0 && v[2][i] == 0 && (v[3][i] == 2 || v[3][i] == 4));
                second += v[3][i] == 4;
        }
        assert_near(second, 150, 45);
        /* many classes, most of them without weight; one class */
        lg_tensor *every = lg_cast(
                lg_eq_scalar(lg_remainder(lg_arange(c, 0, 100000, 1), lg_scalar(c, 1000, .dtype = LG_I64)), 999),
                LG_F32);
        t = lg_multinomial(every, 5000, .replacement = true);
        assert_near(lg_item(lg_amin(lg_gather(every, 0, t))), 1, 0);
        assert_near(lg_item(lg_mean(lg_cast(t, LG_F64))), 50499, 5 * 28866 / sqrt(5000));
        assert_near(lg_item(lg_amax(lg_multinomial(lg_ones(c, LG_SHAPE(3, 1)), 50, .replacement = true))), 0, 0);
        assert_ok(c);
        lg_close(c);
}

/* More than are drawn at once: no place is left out. */
TEST_CASE(draws_in_pieces)
{
        lg_ctx *c = open_ctx();
        const int64_t most = (int64_t)1 << 22, count = most + 3000;
        lg_tensor *w = lg_from(c, ((float[]){1, 3}), LG_SHAPE(2)), *t = lg_multinomial(w, count, .replacement = true);
        assert_int_equal(lg_numel(t), count);
        assert_near(lg_item(lg_amin(t)), 0, 0);
        assert_near(lg_item(lg_amax(t)), 1, 0);
        assert_near(lg_item(lg_sum(t)), 0.75 * (double)count, 5 * sqrt((double)count * 3 / 16));
        assert_near(lg_item(lg_sum(lg_slice(t, 0, most, LG_MAX))), 2250, 5 * 23.8);
        assert_int_equal(lg_random_state_of(c).counter, count / 2);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(draws_without_replacement)
{
        lg_ctx *c = open_ctx();
        enum { ROWS = 20000 };
        const double weights[] = {0, 2, 10, 0, 8};
        double *v = malloc(5 * ROWS * sizeof *v);
        lg_tensor *w = lg_expand(lg_from(c, weights, LG_SHAPE(5)), LG_SHAPE(ROWS, 5));
        /* first and second: w2 / (sum - w1) of each first one */
        read_all(lg_multinomial(lg_cast(w, LG_F32), 2), v, 2 * ROWS);
        double first[5] = {0}, second[5] = {0};
        for (int i = 0; i < ROWS; i++) {
                first[(int)v[2 * i]]++;
                second[(int)v[2 * i + 1]]++;
        }
        for (int k = 0; k < 5; k++) {
                double p = weights[k] / 20, q = 0;
                for (int j = 0; j < 5; j++)
                        q += j == k ? 0 : weights[j] / 20 * weights[k] / (20 - weights[j]);
                assert_near(first[k], ROWS * p, 5 * sqrt(ROWS * p * (1 - p)));
                assert_near(second[k], ROWS * q, 5 * sqrt(ROWS * q * (1 - q)));
        }
        /* all of them: each once, those of weight 0 at the end, in order */
        read_all(lg_multinomial(w, 5), v, 5 * ROWS);
        for (int i = 0; i < ROWS; i++) {
                double *r = v + 5 * i;
                assert_true(r[3] == 0 && r[4] == 3);
                assert_true(r[0] + r[1] + r[2] == 7 && r[0] * r[1] * r[2] == 8);
        }
        free(v);
        const double inf = INFINITY;
        w = lg_from(c, ((double[]){NAN, NAN, NAN, 0, 0, 0, -1, NAN, 2, 1e-300, inf, 1}), LG_SHAPE(4, 3));
        assert_list(lg_multinomial(w, 3), 0, 0, 1, 2, 0, 1, 2, 2, 0, 1, 1, 2, 0);
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++)
                assert_list(lg_multinomial(lg_from(c, ((float[]){0, 3, 0}), LG_SHAPE(3), .dtype = dtypes[d]), 1), 0, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(draws_that_are_refused)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_random_state s = lg_random_state_of(c);
        assert_int_equal(lg_size_of(lg_multinomial(w, 0), 0), 2);
        assert_int_equal(lg_numel(lg_multinomial(w, 0, .replacement = true)), 0);
        assert_int_equal(lg_size_of(lg_multinomial(lg_zeros(c, LG_SHAPE(0, 3)), 2), 1), 2);
        assert_int_equal(lg_numel(lg_multinomial(lg_zeros(c, LG_SHAPE(0)), 0)), 0);
        assert_int_equal(lg_random_state_of(c).counter, s.counter);
        assert_fails(c, lg_multinomial(w, 4), LG_ERR_ARGUMENT,
                     "multinomial: 4 draws without replacement, but weights is f32 (2, 3)");
        assert_fails(c, lg_multinomial(w, -1), LG_ERR_ARGUMENT, "multinomial: count is -1");
        assert_fails(c, lg_multinomial(lg_zeros(c, LG_SHAPE(2, 0)), 1, .replacement = true), LG_ERR_SHAPE,
                     "nothing to draw from");
        assert_fails(c, lg_multinomial(lg_scalar(c, 1), 1), LG_ERR_SHAPE, "multinomial: weights is f32 ()");
        assert_fails(c, lg_multinomial(lg_ones(c, LG_SHAPE(1, 2, 3)), 1), LG_ERR_SHAPE, "it is (C) or (N, C)");
        assert_fails(c, lg_multinomial(lg_arange(c, 0, 3, 1), 1), LG_ERR_DTYPE, "multinomial: weights is i64 (3,)");
        assert_fails(c, lg_multinomial(w, INT64_MAX, .replacement = true), LG_ERR_SHAPE,
                     "multinomial: the shape (2, 92233");
        assert_int_equal(lg_random_state_of(c).counter, s.counter);
        assert_null(lg_multinomial(NULL, 1));
        lg_tensor *t = lg_multinomial(w, 2, .replacement = true);
        int64_t before = lg_live_tensors(c);
        lg_free(t);
        t = lg_multinomial(w, 2, .replacement = true);
        assert_int_equal(lg_live_tensors(c), before);
        lg_free(t);
        t = lg_multinomial(w, 2);
        assert_int_equal(lg_live_tensors(c), before);
        /* without memory: nothing is drawn, and nothing is left */
        lg_close(c);
        failing f = {0};
        c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        w = lg_ones(c, LG_SHAPE(20, 3000));
        for (int k = 0; k < 4; k++) {
                s = lg_random_state_of(c);
                before = lg_live_tensors(c);
                int64_t most = 0;
                for (int64_t n = 1; n > 0; n++) {
                        lg_empty_cache(c);
                        arm(&f, n, false);
                        t = k == 0   ? lg_multinomial(w, 10)
                            : k == 1 ? lg_multinomial(w, 1000, .replacement = true)
                            : k == 2 ? lg_bernoulli(w)
                                     : lg_randint(c, 1, 7, LG_SHAPE(20, 3000), .dtype = LG_U8);
                        arm(&f, 0, false);
                        if (t)
                                break;
                        assert_error(c, LG_ERR_MEMORY, "");
                        assert_int_equal(lg_live_tensors(c), before);
                        assert_int_equal(lg_random_state_of(c).counter, s.counter);
                        most = n;
                }
                assert_true(most > 0);
                lg_free(t);
        }
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}
