/* test_random.c - Philox 4x32-10 against its paper's vectors, distributions, and equal numbers on all devices. */
#include "failing.h"
#include "../kernels/philox.h"

/* Known answers of the authors' Random123: key and counter 0; all ones; digits of pi. */
TEST_CASE(known_answers)
{
        lg_philox_words w = lg_philox_block(0, 0);
        const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
        assert_memory_equal(w.w, zero, sizeof zero);
        const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
        w = lg_philox((lg_philox_words){{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u);
        assert_memory_equal(w.w, ones, sizeof ones);
        const uint32_t pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
        w = lg_philox((lg_philox_words){{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
        assert_memory_equal(w.w, pi, sizeof pi);
}

/* Words of the counter's blocks in order, as f32 and f64 uniforms are made from them. */
TEST_CASE(uniform_is_the_words_of_the_generator)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 42);
        double got[10];
        read_all(lg_uniform(c, 0, 1, LG_SHAPE(10)), got, 10);
        for (uint64_t i = 0; i < 10; i++) {
                uint32_t word = lg_philox_block(42, i / 4).w[i % 4];
                assert_near(got[i], (word >> 8) * 0x1p-24, 0x1p-24);
        }
        assert_int_equal(lg_random_state_of(c).counter, 3);
        assert_int_equal(lg_random_state_of(c).seed, 42);
        lg_close(c);
}

TEST_CASE(the_state_is_the_sequence)
{
        lg_ctx *c = open_ctx();
        double a[64], b[64];
        lg_seed(c, 7);
        drop(lg_normal(c, 0, 1, LG_SHAPE(5)));
        lg_random_state s = lg_random_state_of(c);
        read_all(lg_normal(c, 0, 1, LG_SHAPE(64), .dtype = LG_F64), a, 64);
        lg_set_random_state(c, s);
        read_all(lg_normal(c, 0, 1, LG_SHAPE(64), .dtype = LG_F64), b, 64);
        assert_memory_equal(a, b, sizeof a);
        read_all(lg_normal(c, 0, 1, LG_SHAPE(64), .dtype = LG_F64), b, 64);
        assert_memory_not_equal(a, b, sizeof a);
        assert_non_null(lg_uniform(c, -65504, 65504, LG_SHAPE(3), .dtype = LG_F16));
        assert_non_null(lg_uniform(c, -3e38, 3e38, LG_SHAPE(3)));
        /* a failing call takes no numbers */
        s = lg_random_state_of(c);
        drop(lg_uniform(c, 1, 0, LG_SHAPE(3)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_uniform");
        drop(lg_normal(c, 0, -1, LG_SHAPE(3)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_normal");
        drop(lg_uniform(c, -1e308, 1e308, LG_SHAPE(3), .dtype = LG_F64)); /* the difference is infinite */
        assert_error(c, LG_ERR_ARGUMENT, "too far apart for f64");
        drop(lg_uniform(c, 0, 1e39, LG_SHAPE(3)));
        assert_error(c, LG_ERR_ARGUMENT, "too far apart for f32");
        drop(lg_uniform(c, -65505, 0, LG_SHAPE(3), .dtype = LG_F16));
        assert_error(c, LG_ERR_ARGUMENT, "too far apart for f16");
        drop(lg_uniform(c, 0, 1, LG_SHAPE(3), .dtype = LG_I32));
        assert_error(c, LG_ERR_DTYPE, "lg_uniform");
        drop(lg_permutation(c, -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_permutation");
        assert_int_equal(lg_random_state_of(c).counter, s.counter);
        lg_close(c);
}

TEST_CASE(devices_agree)
{
        enum { N = 1000 };
        lg_ctx *c = lg_open();
        lg_device device[2] = {lg_cpu(), lg_parse_device(c, "shadow")};
        static double v[2][12][N];
        assert_ok(c);
        for (int i = 0; i < 2; i++) {
                lg_set_default_device(c, device[i]);
                lg_seed(c, 99);
                lg_set_threads(c, i + 1);
                read_all(lg_uniform(c, -1, 2, LG_SHAPE(N)), v[i][0], N);
                read_all(lg_uniform(c, -1, 2, LG_SHAPE(N), .dtype = LG_F64), v[i][1], N);
                read_all(lg_uniform(c, -1, 2, LG_SHAPE(N), .dtype = LG_BF16), v[i][2], N);
                read_all(lg_normal(c, 1, 3, LG_SHAPE(N)), v[i][3], N);
                read_all(lg_normal(c, 1, 3, LG_SHAPE(N), .dtype = LG_F16), v[i][4], N);
                read_all(lg_permutation(c, N), v[i][5], N);
                read_all(lg_randint(c, -500, 500, LG_SHAPE(N)), v[i][6], N);
                read_all(lg_randint(c, 0, (int64_t)1 << 53, LG_SHAPE(N)), v[i][7], N);
                lg_tensor *p = lg_linspace(c, 0, 1, N), *w = lg_reshape(lg_square(p), LG_SHAPE(10, N / 10));
                read_all(lg_bernoulli(p), v[i][8], N);
                read_all(lg_multinomial(w, N / 10, .replacement = true), v[i][9], N);
                read_all(lg_multinomial(w, N / 10), v[i][10], N);
                v[i][11][0] = (double)lg_random_state_of(c).counter;
                assert_ok(c);
        }
        assert_memory_equal(v[0], v[1], sizeof v[0]);
        lg_close(c);
}

TEST_CASE(distributions)
{
        enum { N = 100000 };
        lg_ctx *c = open_ctx();
        double *v = malloc(N * sizeof *v), sum = 0, squares = 0, cubes = 0;
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                read_all(lg_uniform(c, -2, 3, LG_SHAPE(N), .dtype = dtypes[d]), v, N);
                sum = squares = 0;
                for (int i = 0; i < N; i++) {
                        assert_true(v[i] >= -2 && (v[i] < 3 || (d > 1 && v[i] <= 3)));
                        sum += v[i];
                        squares += (v[i] - 0.5) * (v[i] - 0.5);
                }
                assert_near(sum / N, 0.5, 0.02); /* standard error 0.0046 */
                assert_near(squares / N, 25.0 / 12, 0.03);
        }
        read_all(lg_normal(c, 1, 2, LG_SHAPE(N), .dtype = LG_F64), v, N);
        sum = squares = 0;
        int inside = 0;
        for (int i = 0; i < N; i++) {
                double z = (v[i] - 1) / 2;
                sum += z;
                squares += z * z;
                cubes += z * z * z;
                inside += fabs(z) < 1;
        }
        assert_near(sum / N, 0, 0.015);
        assert_near(squares / N, 1, 0.025);
        assert_near(cubes / N, 0, 0.05);
        assert_near((double)inside / N, 0.6827, 0.008);
        free(v);
        lg_close(c);
}

TEST_CASE(permutations)
{
        lg_ctx *c = open_ctx();
        enum { N = 501, ROUNDS = 3000 };
        int64_t p[N];
        bool seen[N] = {false};
        lg_tensor *t = lg_permutation(c, N);
        assert_int_equal(lg_dtype_of(t), LG_I64);
        assert_true(lg_read(t, p, LG_I64, sizeof p));
        for (int i = 0; i < N; i++) {
                assert_true(p[i] >= 0 && p[i] < N && !seen[p[i]]);
                seen[p[i]] = true;
        }
        int count[6] = {0}; /* each order of three equally often */
        for (int i = 0; i < ROUNDS; i++) {
                t = lg_permutation(c, 3);
                assert_true(lg_read(t, p, LG_I64, 24));
                count[p[0] * 2 + (p[1] > p[2])]++;
                lg_free(t);
        }
        for (int i = 0; i < 6; i++)
                assert_near(count[i], ROUNDS / 6.0, 110); /* 5 standard deviations */
        assert_int_equal(lg_numel(lg_permutation(c, 0)), 0);
        assert_list(lg_permutation(c, 1), 0, 0);
        lg_close(c);
}

TEST_CASE(shapes_of_others)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        double a[12], b[12];
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_transpose(lg_zeros(c, LG_SHAPE(4, 3), .dtype = dtypes[d]), 0, 1), *t;
                for (int k = 0; k < 2; k++) {
                        lg_seed(c, 5);
                        t = k ? lg_normal_like(x, 1, 2) : lg_uniform_like(x, -1, 2);
                        lg_random_state after = lg_random_state_of(c);
                        assert_int_equal(lg_dtype_of(t), dtypes[d]);
                        assert_int_equal(lg_size_of(t, 0), 3);
                        read_all(t, a, 12);
                        lg_seed(c, 5);
                        t = k ? lg_normal(c, 1, 2, LG_SHAPE(12), .dtype = dtypes[d])
                              : lg_uniform(c, -1, 2, LG_SHAPE(12), .dtype = dtypes[d]);
                        read_all(t, b, 12);
                        assert_memory_equal(a, b, sizeof a);
                        assert_int_equal(lg_random_state_of(c).counter, after.counter);
                }
        }
        lg_tensor *i = lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64);
        assert_int_equal(lg_dtype_of(lg_normal_like(i, 0, 1, .dtype = LG_F64)), LG_F64);
        assert_int_equal(lg_numel(lg_uniform_like(lg_zeros(c, LG_SHAPE(0, 2)), 0, 1)), 0);
        lg_tensor *host = lg_ones(c, LG_SHAPE(2), .device = lg_cpu());
        assert_int_equal(lg_device_of(lg_uniform_like(host, 0, 1)).type, LG_DEVICE_CPU);
        lg_tensor *w = lg_normal_like(host, 0, 1, .requires_grad = true);
        lg_backward(lg_sum(w));
        assert_list(lg_grad_of(w), 0, 1, 1);
        assert_ok(c);
        drop(lg_uniform_like(i, 0, 1));
        assert_error(c, LG_ERR_DTYPE, "lg_uniform_like: dtype i64; random tensors are floats");
        drop(lg_uniform_like(host, 1, 0));
        assert_error(c, LG_ERR_ARGUMENT, "lg_uniform_like: low is 1, above high");
        drop(lg_normal_like(host, 0, -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_normal_like: std is -1");
        assert_null(lg_normal_like(NULL, 0, 1));
        lg_close(c);
}

/* low + floor(u (high - low)) of the uniforms of f64. */
TEST_CASE(whole_numbers)
{
        lg_ctx *c = open_ctx();
        enum { N = 7 };
        const struct {
                int64_t low, high;
        } spans[] = {{0, 10},
                     {-3, 4},
                     {5, 6},
                     {INT64_MIN, INT64_MIN + 3},
                     {INT64_MAX - 1000, INT64_MAX},
                     {((int64_t)1 << 60) + 1, ((int64_t)1 << 60) + 1 + ((int64_t)1 << 53)}};
        for (size_t k = 0; k < sizeof spans / sizeof *spans; k++) {
                lg_seed(c, 42);
                int64_t got[N];
                lg_tensor *t = lg_randint(c, spans[k].low, spans[k].high, LG_SHAPE(N));
                assert_int_equal(lg_dtype_of(t), LG_I64);
                assert_true(lg_read(t, got, LG_I64, sizeof got));
                assert_int_equal(lg_random_state_of(c).counter, (N + 1) / 2);
                for (uint64_t i = 0; i < N; i++) {
                        lg_philox_words b = lg_philox_block(42, i / 2);
                        double u = lg_philox_uniform53(b.w[i % 2 * 2], b.w[i % 2 * 2 + 1]);
                        assert_int_equal(got[i] - spans[k].low, (int64_t)(u * (double)(spans[k].high - spans[k].low)));
                }
        }
        /* every dtype that has them, the same numbers */
        const lg_dtype dtypes[] = {LG_I64, LG_I32, LG_U8, LG_F32, LG_F64, LG_F16, LG_BF16};
        double first[200], v[200];
        for (int d = 0; d < 7; d++) {
                lg_seed(c, 3);
                lg_tensor *t = lg_randint(c, 0, 256, LG_SHAPE(2, 100), .dtype = dtypes[d]);
                assert_int_equal(lg_dtype_of(t), dtypes[d]);
                read_all(t, d ? v : first, 200);
                assert_true(d == 0 || memcmp(first, v, sizeof v) == 0);
        }
        lg_tensor *coin = lg_randint(c, 0, 2, LG_SHAPE(1000), .dtype = LG_BOOL);
        assert_near(lg_item(lg_sum(coin)), 500, 80);
        assert_int_equal(lg_numel(lg_randint(c, 0, 2, LG_SHAPE(0, 3))), 0);
        assert_int_equal(lg_ndim_of(lg_randint(c, 0, 2, LG_SHAPE_0D)), 0);
        lg_tensor *w = lg_randint(c, 1, 2, LG_SHAPE(2), .dtype = LG_F32, .requires_grad = true);
        lg_backward(lg_sum(lg_square(w)));
        assert_list(lg_grad_of(w), 0, 2, 2);
        /* each as often */
        int count[6] = {0};
        double *many = malloc(60000 * sizeof *many);
        read_all(lg_randint(c, -2, 4, LG_SHAPE(60000), .dtype = LG_I32), many, 60000);
        for (int i = 0; i < 60000; i++)
                count[(int)many[i] + 2]++;
        for (int i = 0; i < 6; i++)
                assert_near(count[i], 10000, 460); /* 5 standard deviations */
        free(many);
        int64_t before = lg_live_tensors(c);
        drop(lg_randint(c, 5, 9, LG_SHAPE(3), .dtype = LG_U8));
        assert_int_equal(lg_live_tensors(c), before + 1);
        assert_ok(c);
        /* refused, and no number is taken */
        lg_random_state s = lg_random_state_of(c);
        assert_fails(c, lg_randint(c, 3, 3, LG_SHAPE(1)), LG_ERR_ARGUMENT, "lg_randint: low is 3, not below high, 3");
        assert_fails(c, lg_randint(c, 0, ((int64_t)1 << 53) + 1, LG_SHAPE(1)), LG_ERR_ARGUMENT, "more than 2^53");
        assert_fails(c, lg_randint(c, INT64_MIN, INT64_MAX, LG_SHAPE(1)), LG_ERR_ARGUMENT, "more than 2^53");
        assert_fails(c, lg_randint(c, 0, 257, LG_SHAPE(1), .dtype = LG_U8), LG_ERR_ARGUMENT,
                     "lg_randint: the value 256 is out");
        assert_fails(c, lg_randint(c, -1, 1, LG_SHAPE(1), .dtype = LG_U8), LG_ERR_ARGUMENT, "of u8, 0 to 255");
        assert_fails(c, lg_randint(c, INT32_MIN, 1L + INT32_MAX + 1, LG_SHAPE(1), .dtype = LG_I32), LG_ERR_ARGUMENT,
                     "of i32");
        assert_fails(c, lg_randint(c, 0, 3, LG_SHAPE(1), .dtype = LG_BOOL), LG_ERR_ARGUMENT,
                     "0 ... 2 are out of the range of b");
        assert_fails(c, lg_randint(c, -65505, 3, LG_SHAPE(1), .dtype = LG_F16), LG_ERR_ARGUMENT,
                     "range of f16, -65504 to 65504");
        assert_fails(c, lg_randint(c, 0, 3, LG_SHAPE(-1)), LG_ERR_SHAPE, "lg_randint: the shape (-1,)");
        assert_fails(c, lg_randint(c, 0, 3, LG_SHAPE(1), .dtype = (lg_dtype)50), LG_ERR_DTYPE,
                     "lg_randint: 50 is no dtype");
        assert_fails(c, lg_randint(c, 0, 3, LG_SHAPE(1), .requires_grad = true), LG_ERR_DTYPE,
                     "lg_randint: requires_grad");
        assert_int_equal(lg_random_state_of(c).counter, s.counter);
        lg_close(c);
}
