/* test_sample_logits.c - classes drawn by their scores: which can be drawn, how often, the same on each device. */
#include "test.h"

enum { CLASSES = 6, DRAWS = 20000 };
static const float scores[CLASSES] = {0.5F, 2.0F, -1.0F, 1.0F, 2.5F, -3.0F};

/* The probabilities after temperature, top-k and top-p, as the definitions have them. */
static void expected(double temperature, int top_k, double top_p, double *ret)
{
        int order[CLASSES];
        double sum = 0, kept = 0, all = 0;
        for (int i = 0; i < CLASSES; i++) {
                int rank = 0;
                for (int j = 0; j < CLASSES; j++)
                        rank += scores[j] > scores[i];
                order[rank] = i;
                ret[i] = 0;
        }
        for (int i = 0; i < top_k; i++)
                all += exp(scores[order[i]] / temperature);
        for (int i = 0; i < top_k && sum < top_p * all; i++)
                sum += ret[order[i]] = exp(scores[order[i]] / temperature);
        for (int i = 0; i < CLASSES; i++)
                kept += ret[i];
        for (int i = 0; i < CLASSES; i++)
                ret[i] /= kept;
}

TEST_CASE(frequencies)
{
        const struct {
                double temperature, top_p;
                int64_t top_k;
        } cases[] = {{1, 1, 0},      {0.7, 1, 0},  {2, 1, 3}, {1, 0.8, 0},
                     {1.5, 0.75, 4}, {1, 1e-9, 0}, {1, 1, 1}, {1, 1, 99}};
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_expand(lg_from(c, scores, LG_SHAPE(CLASSES)), LG_SHAPE(DRAWS, CLASSES));
        double *drawn = calloc(DRAWS, sizeof *drawn);
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
                double p[CLASSES];
                int counts[CLASSES] = {0};
                const int64_t top_k = cases[k].top_k, most = top_k && top_k < CLASSES ? top_k : CLASSES;
                lg_tensor *y = lg_sample_logits(x, .temperature = cases[k].temperature, .top_k = top_k,
                                                .top_p = cases[k].top_p);
                assert_int_equal(lg_dtype_of(y), LG_I64);
                assert_shape(y, LG_SHAPE(DRAWS));
                read_all(y, drawn, DRAWS);
                expected(cases[k].temperature, (int)most, cases[k].top_p, p);
                for (int i = 0; i < DRAWS; i++)
                        counts[(int)drawn[i]]++;
                for (int i = 0; i < CLASSES; i++) {
                        /* six standard deviations */
                        if (p[i] == 0 || p[i] == 1)
                                assert_int_equal(counts[i], (int)p[i] * DRAWS);
                        else
                                assert_near(counts[i], p[i] * DRAWS, 6 * sqrt(p[i] * (1 - p[i]) * DRAWS));
                }
        }
        assert_ok(c);
        free(drawn);
        lg_close(c);
}

/* Draws are the same on the CPU, in any dtype that holds the scores; greedy ones take no random number. */
TEST_CASE(the_same_everywhere)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_cast(lg_normal(c, 0, 2, LG_SHAPE(50, 300)), LG_BF16), *y[3];
        const lg_random_state before = lg_random_state_of(c);
        const lg_dtype dtypes[] = {LG_BF16, LG_F32, LG_F64};
        for (int i = 0; i < 3; i++) {
                lg_set_random_state(c, before);
                lg_tensor *logits = i ? lg_copy(lg_cast(x, dtypes[i]), lg_cpu()) : x;
                y[i] = lg_copy(lg_sample_logits(logits, .temperature = 0.8, .top_k = 40, .top_p = 0.9), lg_cpu());
        }
        assert_same_bits(y[0], y[1]);
        assert_same_bits(y[0], y[2]);
        const uint64_t counter = lg_random_state_of(c).counter;
        assert_true(counter > before.counter);
        assert_same_bits(lg_sample_logits(x, .temperature = LG_ZERO, .top_k = 3), lg_argmax(x, .dims = LG_DIMS(1)));
        assert_int_equal(lg_random_state_of(c).counter, counter);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        const float low = -LG_INFINITY, high = LG_INFINITY;
        lg_tensor *one = lg_from(c, ((float[]){low, 3, low, low}), LG_SHAPE(4));
        lg_tensor *y = lg_sample_logits(one);
        assert_shape(y, LG_SHAPE_0D);
        assert_list(y, 0, 1);
        assert_list(lg_sample_logits(lg_from(c, ((float[]){low, 3, high, 9}), LG_SHAPE(4))), 0, 2);
        assert_list(lg_sample_logits(lg_from(c, ((float[]){1, 3, NAN, high}), LG_SHAPE(4))), 0, 2);
        assert_list(lg_sample_logits(lg_from(c, ((float[]){-1e30F, 1e30F}), LG_SHAPE(2)), .temperature = 1e-300), 0, 1);
        assert_list(lg_sample_logits(lg_from(c, ((float[]){4, 4, 4}), LG_SHAPE(3)), .top_k = 1), 0, 0);
        lg_tensor *nothing = lg_full(c, LG_SHAPE(4000, 2), -LG_INFINITY);
        assert_near(lg_item(lg_sum(lg_sample_logits(nothing))), 2000, 6 * sqrt(1000));
        assert_shape(lg_sample_logits(lg_zeros(c, LG_SHAPE(0, 3))), LG_SHAPE(0));
        y = lg_sample_logits(lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true));
        assert_false(lg_requires_grad(y));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        const uint64_t counter = lg_random_state_of(c).counter;
        assert_fails(c, lg_sample_logits(lg_scalar(c, 1)), LG_ERR_SHAPE, "sample_logits: logits is f32 ()");
        assert_fails(c, lg_sample_logits(lg_ones(c, LG_SHAPE(2, 0))), LG_ERR_SHAPE, "nothing to draw from");
        assert_fails(c, lg_sample_logits(x, .temperature = -0.5), LG_ERR_ARGUMENT, "temperature is -0.5");
        assert_fails(c, lg_sample_logits(x, .temperature = NAN), LG_ERR_ARGUMENT, "temperature is nan");
        assert_fails(c, lg_sample_logits(x, .temperature = LG_INFINITY), LG_ERR_ARGUMENT, "temperature is inf");
        assert_fails(c, lg_sample_logits(x, .top_k = -1), LG_ERR_ARGUMENT, "top_k is -1");
        assert_fails(c, lg_sample_logits(x, .top_p = LG_ZERO), LG_ERR_ARGUMENT, "top_p is 0");
        assert_fails(c, lg_sample_logits(x, .top_p = 1.5), LG_ERR_ARGUMENT, "top_p is 1.5");
        assert_fails(c, lg_sample_logits(x, .top_p = NAN), LG_ERR_ARGUMENT, "top_p is nan");
        assert_fails(c, lg_sample_logits(lg_cast(x, LG_I64)), LG_ERR_DTYPE, "logits is i64");
        assert_int_equal(lg_random_state_of(c).counter, counter);
        lg_close(c);
}
