/* test_random.c - Philox 4x32-10 against its paper's vectors, distributions, and equal numbers on all devices. */
#include "test.h"
#include "../kernels/philox.h"

/* Known answers of the authors' Random123: key and counter 0; all ones; digits of pi. */
static void known_answers(void **state)
{
        (void)state;
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
static void uniform_is_the_words_of_the_generator(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_seed(c, 42);
        double got[10];
        read_all(lg_uniform(c, 0, 1, LG_SHAPE(10)), got, 10);
        for (uint64_t i = 0; i < 10; i++) {
                uint32_t word = lg_philox_block(42, i / 4).w[i % 4];
                assert_near(got[i], (word >> 8) * 0x1p-24, 0x1p-24);
        }
        assert_int_equal(lg_get_random_state(c).counter, 3);
        assert_int_equal(lg_get_random_state(c).seed, 42);
        lg_close(c);
}

static void the_state_is_the_sequence(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        double a[64], b[64];
        lg_seed(c, 7);
        lg_normal(c, 0, 1, LG_SHAPE(5));
        lg_random_state s = lg_get_random_state(c);
        read_all(lg_normal(c, 0, 1, LG_SHAPE(64), .dtype = LG_F64), a, 64);
        lg_set_random_state(c, s);
        read_all(lg_normal(c, 0, 1, LG_SHAPE(64), .dtype = LG_F64), b, 64);
        assert_memory_equal(a, b, sizeof a);
        read_all(lg_normal(c, 0, 1, LG_SHAPE(64), .dtype = LG_F64), b, 64);
        assert_memory_not_equal(a, b, sizeof a);
        assert_non_null(lg_uniform(c, -65504, 65504, LG_SHAPE(3), .dtype = LG_F16));
        assert_non_null(lg_uniform(c, -3e38, 3e38, LG_SHAPE(3)));
        /* a failing call takes no numbers */
        s = lg_get_random_state(c);
        lg_uniform(c, 1, 0, LG_SHAPE(3));
        assert_error(c, LG_ERR_ARGUMENT, "lg_uniform");
        lg_normal(c, 0, -1, LG_SHAPE(3));
        assert_error(c, LG_ERR_ARGUMENT, "lg_normal");
        lg_uniform(c, -1e308, 1e308, LG_SHAPE(3), .dtype = LG_F64); /* the difference is infinite */
        assert_error(c, LG_ERR_ARGUMENT, "too far apart for f64");
        lg_uniform(c, 0, 1e39, LG_SHAPE(3));
        assert_error(c, LG_ERR_ARGUMENT, "too far apart for f32");
        lg_uniform(c, -65505, 0, LG_SHAPE(3), .dtype = LG_F16);
        assert_error(c, LG_ERR_ARGUMENT, "too far apart for f16");
        lg_uniform(c, 0, 1, LG_SHAPE(3), .dtype = LG_I32);
        assert_error(c, LG_ERR_DTYPE, "lg_uniform");
        lg_permutation(c, -1);
        assert_error(c, LG_ERR_ARGUMENT, "lg_permutation");
        assert_int_equal(lg_get_random_state(c).counter, s.counter);
        lg_close(c);
}

static void devices_agree(void **state)
{
        (void)state;
        enum { N = 1000 };
        lg_ctx *c = lg_open();
        lg_device device[2] = {lg_cpu(), lg_parse_device(c, "shadow")};
        static double v[2][6][N];
        assert_ok(c);
        for (int i = 0; i < 2; i++) {
                lg_default_device(c, device[i]);
                lg_seed(c, 99);
                lg_set_threads(c, i + 1);
                read_all(lg_uniform(c, -1, 2, LG_SHAPE(N)), v[i][0], N);
                read_all(lg_uniform(c, -1, 2, LG_SHAPE(N), .dtype = LG_F64), v[i][1], N);
                read_all(lg_uniform(c, -1, 2, LG_SHAPE(N), .dtype = LG_BF16), v[i][2], N);
                read_all(lg_normal(c, 1, 3, LG_SHAPE(N)), v[i][3], N);
                read_all(lg_normal(c, 1, 3, LG_SHAPE(N), .dtype = LG_F16), v[i][4], N);
                read_all(lg_permutation(c, N), v[i][5], N);
                assert_ok(c);
        }
        assert_memory_equal(v[0], v[1], sizeof v[0]);
        lg_close(c);
}

static void distributions(void **state)
{
        (void)state;
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

static void permutations(void **state)
{
        (void)state;
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(known_answers),
                cmocka_unit_test(uniform_is_the_words_of_the_generator),
                cmocka_unit_test(the_state_is_the_sequence),
                cmocka_unit_test(devices_agree),
                cmocka_unit_test(distributions),
                cmocka_unit_test(permutations),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
