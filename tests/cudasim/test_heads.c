/* test_heads.c - attention on the simulated device: its launches, what cuDNN computes and what products do, and that
 * either continues what the other began. */
#include <math.h>
#include "controls.h"

enum { BATCH = 2, HEADS = 3, LENGTH = 33, WIDTH = 16, SIZE = BATCH * HEADS * LENGTH * WIDTH };

static const lg_attention_options causal = {.size_ = sizeof causal, .causal = true};
/* What cuDNN does not compute; the cap is far above all scores. */
static const lg_attention_options capped = {.size_ = sizeof capped, .causal = true, .softcap = 1e4};

typedef struct heads {
        lg_ctx *c;
        lg_tensor *in[4], *out[4]; /* q, k, v and g; o and the gradients of q, k, v */
        int64_t launches[2];       /* forward, derivative */
} heads;

static heads open_heads(lg_dtype dtype, bool packed, int64_t length)
{
        heads h = {.c = lg_open(.seed = 7)};
        lg_set_default_device(h.c, lg_parse_device(h.c, "cuda:0"));
        lg_tensor *x = lg_cast(lg_normal(h.c, 0, 1, LG_SHAPE(BATCH, length, 4, HEADS, WIDTH)), dtype);
        x = lg_permute(x, LG_DIMS(2, 0, 3, 1, 4));
        for (int i = 0; i < 4; i++) {
                h.in[i] = lg_detach(packed ? lg_select(x, 0, i) : lg_contiguous(lg_select(x, 0, i)));
                lg_set_requires_grad(h.in[i], i < 3);
        }
        return h;
}

static void forward(heads *h, const lg_attention_options *options)
{
        h->launches[0] = -sim.launches();
        h->out[0] = lg_attention_with(h->in[0], h->in[1], h->in[2], options);
        h->launches[0] += sim.launches();
}

static void backward(heads *h)
{
        h->launches[1] = -sim.launches();
        lg_grad(LG_LIST(h->out[0]), LG_LIST(h->in[0], h->in[1], h->in[2]), .grads = LG_LIST(h->in[3]),
                .result = h->out + 1, .retain_graph = true);
        h->launches[1] += sim.launches();
}

static void read_out(const heads *h, double out[4][SIZE])
{
        for (int i = 0; i < 4; i++)
                read_all(h->out[i], out[i], SIZE);
        assert_ok(h->c);
}

/* Within the roundings of 16-bit weights. */
static void assert_close(const heads *h, double expected[4][SIZE])
{
        static double got[4][SIZE];
        read_out(h, got);
        for (int i = 0; i < 4; i++)
                for (int j = 0; j < SIZE; j++)
                        assert_true(fabs(got[i][j] - expected[i][j]) < 6e-3);
}

static void close_heads(const heads *h)
{
        assert_ok(h->c);
        lg_close(h->c);
        sim.forget();
}

static void few_launches(void **state)
{
        (void)state;
        const struct {
                lg_dtype dtype;
                bool packed;
                const lg_attention_options *options;
                int64_t launches[2];
        } cases[] = {{LG_F32, false, &causal, {3, 6}},   {LG_F32, true, &causal, {5, 11}},
                     {LG_BF16, false, &causal, {1, 1}},  {LG_F16, true, &causal, {1, 1}},
                     {LG_BF16, false, &capped, {7, 13}}, {LG_F64, false, &capped, {3, 6}}};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                heads h = open_heads(cases[i].dtype, cases[i].packed, 9);
                forward(&h, cases[i].options);
                backward(&h);
                print_message("%s%s%s: %lld launches forward, %lld backward\n", lg_dtype_name(cases[i].dtype),
                              cases[i].packed ? ", packed" : "", cases[i].options == &capped ? ", capped" : "",
                              (long long)h.launches[0], (long long)h.launches[1]);
                assert_memory_equal(h.launches, cases[i].launches, sizeof h.launches);
                close_heads(&h);
        }
}

/* cuDNN's forward and the derivative by products, and the reverse, give what products alone give. */
static void each_continues_the_other(void **state)
{
        (void)state;
        static double expected[4][SIZE];
        for (int way = 0; way < 4; way++) { /* bit 0: products forward; bit 1: products backward */
                heads h = open_heads(LG_F16, true, LENGTH);
                if (way & 1)
                        setenv("CUDASIM_CUDNN_FAIL", "255", 1);
                forward(&h, way == 3 ? &capped : &causal);
                unsetenv("CUDASIM_CUDNN_FAIL");
                if (way & 2)
                        setenv("CUDASIM_CUDNN_FAIL", "255", 1);
                backward(&h);
                unsetenv("CUDASIM_CUDNN_FAIL");
                assert_int_equal(h.launches[0] > 1, way & 1);
                assert_int_equal(h.launches[1] > 1, way >> 1);
                if (way == 0)
                        read_out(&h, expected);
                assert_close(&h, expected);
                close_heads(&h);
        }
}

/* The derivative's bits repeat if they must, and only then. */
static void repetition(void **state)
{
        (void)state;
        static double out[2][4][SIZE];
        for (int must = 0; must < 2; must++) {
                heads h = open_heads(LG_F16, false, LENGTH);
                lg_set_deterministic(h.c, must);
                forward(&h, &causal);
                for (int i = 0; i < 2; i++) {
                        backward(&h);
                        assert_int_equal(h.launches[1], 1);
                        read_out(&h, out[i]);
                }
                assert_int_equal(memcmp(out[0], out[1], sizeof out[0]) == 0, must);
                close_heads(&h);
        }
}

/* Calls that fail are reported, or something else computed; then all is right again, and nothing leaks. */
static void failures(void **state)
{
        enum { STEP = 7 };
        (void)state;
        static double expected[4][SIZE];
        const int64_t handles = sim.handles();
        heads h = open_heads(LG_F16, true, LENGTH);
        forward(&h, &causal);
        backward(&h);
        read_out(&h, expected);
        close_heads(&h);
        for (int way = 0; way < WAYS; way++)
                for (int64_t n = 1, calls = n; calls >= n; n += STEP) {
                        h = open_heads(LG_F16, true, LENGTH);
                        lg_synchronize(h.c);
                        calls = -sim.calls(way);
                        sim.fail_at(n, false, way);
                        forward(&h, &causal);
                        backward(&h);
                        lg_synchronize(h.c);
                        calls += sim.calls(way);
                        sim.fail_at(0, false, way);
                        if (!lg_error(h.c))
                                assert_close(&h, expected);
                        lg_clear_error(h.c);
                        forward(&h, &causal);
                        backward(&h);
                        assert_close(&h, expected);
                        close_heads(&h);
                }
        assert_int_equal(sim.handles(), handles);
}

/* Of many lengths, only the first ones are compiled for. */
static void many_lengths(void **state)
{
        enum { FEW = 64, MANY = 70 };
        (void)state;
        heads keeper = open_heads(LG_F16, false, 2); /* with which plans stay */
        for (int64_t n = 0; n < MANY; n++) {
                heads h = open_heads(LG_F16, false, 2 + n);
                for (int i = 0; i < 2; i++) {
                        forward(&h, &causal);
                        assert_int_equal(h.launches[0] == 1, n < FEW);
                }
                close_heads(&h);
                forward(&keeper, &causal);
                assert_int_equal(keeper.launches[0], 1);
        }
        close_heads(&keeper);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(few_launches), cmocka_unit_test(each_continues_the_other),
                cmocka_unit_test(repetition),   cmocka_unit_test(failures),
                cmocka_unit_test(many_lengths),
        };
        return cmocka_run_group_tests(tests, find_controls, NULL);
}
