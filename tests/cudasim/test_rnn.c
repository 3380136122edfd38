/* test_rnn.c - recurrent layers on the simulated device: their launches, and that cuDNN and own kernels compute the
 * same and continue what the other began. */
#include <math.h>
#include "controls.h"

enum { STEPS = 5, BATCH = 3, IN = 4, HIDDEN = 6, PARTS = 14, SIZE = STEPS * BATCH * 2 * HIDDEN };
enum { TANH, RELU, LSTM, GRU, KINDS };

/* A layer, what it runs on (x, h0, c0), the gradients of its results (y, h, c), and what comes out: the results, then
 * the gradients of x, h0, c0 and the parameters. */
typedef struct network {
        lg_ctx *c;
        lg_module *m;
        lg_tensor *in[3], *g[3], *out[PARTS];
        int kind, states, count; /* states: 2 for an LSTM; count: of `out` */
        int64_t launches[2];     /* forward, derivative */
} network;

static network open_network(int kind, lg_dtype dtype, bool no_bias, bool both)
{
        network n = {.c = lg_open(.seed = 7), .kind = kind, .states = kind == LSTM ? 2 : 1};
        lg_set_default_device(n.c, lg_parse_device(n.c, "cuda:0"));
        n.m = kind == LSTM  ? lg_nn_lstm(n.c, IN, HIDDEN, .bidirectional = both, .no_bias = no_bias, .dtype = dtype)
              : kind == GRU ? lg_nn_gru(n.c, IN, HIDDEN, .bidirectional = both, .no_bias = no_bias, .dtype = dtype)
                            : lg_nn_rnn(n.c, IN, HIDDEN, .relu = kind == RELU, .bidirectional = both,
                                        .no_bias = no_bias, .dtype = dtype);
        const lg_shape state = LG_SHAPE(1 + both, BATCH, HIDDEN);
        for (int i = 0; i < 3; i++) {
                n.in[i] = lg_normal(n.c, 0, 1, i ? state : LG_SHAPE(STEPS, BATCH, IN), .dtype = dtype,
                                    .requires_grad = true);
                n.g[i] = lg_normal(n.c, 0, 1, i ? state : LG_SHAPE(STEPS, BATCH, (1 + both) * HIDDEN), .dtype = dtype);
        }
        return n;
}

static void forward(network *n)
{
        const bool lstm = n->kind == LSTM;
        const lg_run_rnn_options o = {.size_ = sizeof o,
                                      .h0 = n->in[1],
                                      .c0 = lstm ? n->in[2] : NULL,
                                      .h = &n->out[1],
                                      .c = lstm ? &n->out[2] : NULL};
        n->launches[0] = -sim.launches();
        n->out[0] = lg_run_rnn_with(n->m, n->in[0], &o);
        n->launches[0] += sim.launches();
}

static void backward(network *n)
{
        lg_tensor *of[PARTS];
        int count = 0;
        for (int i = 0; i <= n->states; i++)
                of[count++] = n->in[i];
        for (int64_t i = 0; i < lg_parameters(n->m).count && count < PARTS - 3; i++)
                of[count++] = lg_parameters(n->m).items[i];
        n->launches[1] = -sim.launches();
        lg_grad(LG_LIST_OF(1 + n->states, n->out), LG_LIST_OF(count, of), .grads = LG_LIST_OF(1 + n->states, n->g),
                .result = n->out + 1 + n->states, .retain_graph = true);
        n->launches[1] += sim.launches();
        n->count = 1 + n->states + count;
}

static void read_out(const network *n, double out[PARTS][SIZE])
{
        memset(out, 0, PARTS * sizeof *out);
        for (int i = 0; i < n->count; i++)
                read_all(n->out[i], out[i], SIZE);
        assert_ok(n->c);
}

static void assert_close(const network *n, double expected[PARTS][SIZE], double tolerance)
{
        static double got[PARTS][SIZE];
        read_out(n, got);
        for (int i = 0; i < n->count; i++)
                for (int j = 0; j < SIZE; j++)
                        if (!(fabs(got[i][j] - expected[i][j]) <= tolerance))
                                fail_msg("kind %d, part %d, element %d: %g, not %g", n->kind, i, j, got[i][j],
                                         expected[i][j]);
}

static void close_network(const network *n)
{
        assert_ok(n->c);
        lg_close(n->c);
        sim.forget();
}

/* One call of cuDNN forward and two backward; in the other direction a copy each for what is turned. */
static void few_launches(void **state)
{
        (void)state;
        for (int kind = 0; kind < KINDS; kind++) {
                network n = open_network(kind, LG_F32, false, false);
                forward(&n);
                backward(&n);
                print_message("kind %d: %lld launches forward, %lld backward", kind, (long long)n.launches[0],
                              (long long)n.launches[1]);
                assert_in_range(n.launches[0], 1, 4);
                assert_in_range(n.launches[1], 2, 6);
                lg_set_deterministic(n.c, true);
                forward(&n);
                backward(&n);
                print_message("; by own kernels %lld and %lld\n", (long long)n.launches[0], (long long)n.launches[1]);
                assert_true(n.launches[0] > 2 * STEPS && n.launches[1] > 2 * STEPS);
                close_network(&n);
        }
}

/* cuDNN gives what own kernels give; a second derivative of the same graph gives the same bits; and 16-bit layers round
 * states to TF32 at most. */
static void cudnn_and_own_kernels_agree(void **state)
{
        (void)state;
        static double expected[PARTS][SIZE], first[PARTS][SIZE], again[PARTS][SIZE];
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double tolerances[] = {1e-13, 3e-5, 4e-2, 0.3};
        for (int kind = 0; kind < KINDS; kind++)
                for (int i = 0; i < 16; i++) {
                        network n = open_network(kind, dtypes[i / 4], i & 1, i & 2);
                        lg_set_deterministic(n.c, true);
                        forward(&n);
                        backward(&n);
                        read_out(&n, expected);
                        lg_set_deterministic(n.c, false);
                        forward(&n);
                        backward(&n);
                        assert_close(&n, expected, tolerances[i / 4]);
                        read_out(&n, first);
                        backward(&n);
                        read_out(&n, again);
                        assert_memory_equal(first, again, sizeof first);
                        lg_no_grad(n.c) forward(&n);
                        for (int j = 0; j <= n.states; j++) {
                                read_all(n.out[j], again[j], SIZE);
                                assert_memory_equal(first[j], again[j], sizeof first[j]);
                        }
                        close_network(&n);
                }
}

/* Own kernels derive what cuDNN has computed: in deterministic mode, or if it refuses. */
static void own_kernels_continue(void **state)
{
        static const char *const refused[] = {"Forward", "BackwardData", "BackwardWeights"};
        static double expected[PARTS][SIZE];
        (void)state;
        for (int kind = 0; kind < KINDS; kind++)
                for (int way = -2; way < 3; way++) {
                        network n = open_network(kind, LG_F64, false, true);
                        if (way >= 0)
                                setenv("CUDASIM_CUDNN_RNN_REFUSE", refused[way], 1);
                        forward(&n);
                        lg_set_deterministic(n.c, way == -1);
                        backward(&n);
                        unsetenv("CUDASIM_CUDNN_RNN_REFUSE");
                        if (way == -2)
                                read_out(&n, expected);
                        assert_close(&n, expected, 1e-13);
                        assert_int_equal(n.launches[1] > 6 * STEPS, way >= -1);
                        close_network(&n);
                }
}

/* Calls that fail are reported, or something else computed; then all is right again, and nothing leaks. */
static void failures(void **state)
{
        enum { STEP = 5 };
        (void)state;
        static double expected[PARTS][SIZE];
        const int64_t handles = sim.handles();
        network n = open_network(LSTM, LG_F32, false, true);
        forward(&n);
        backward(&n);
        read_out(&n, expected);
        close_network(&n);
        for (int way = 0; way < WAYS; way++)
                for (int64_t i = 1, calls = i; calls >= i; i += STEP) {
                        n = open_network(LSTM, LG_F32, false, true);
                        lg_synchronize(n.c);
                        calls = -sim.calls(way);
                        sim.fail_at(i, false, way);
                        forward(&n);
                        backward(&n);
                        lg_synchronize(n.c);
                        calls += sim.calls(way);
                        sim.fail_at(0, false, way);
                        if (!lg_error(n.c))
                                assert_close(&n, expected, 3e-5);
                        lg_clear_error(n.c);
                        forward(&n);
                        backward(&n);
                        assert_close(&n, expected, 3e-5);
                        close_network(&n);
                }
        assert_int_equal(sim.handles(), handles);
}

/* What the simulated and the real cuDNN keep for the derivative of (T, N, in, H), which is counted, is of the size of
 * gates and cells. */
static void memory(void **state)
{
        (void)state;
        int64_t kept[2];
        for (int own = 0; own < 2; own++) {
                network n = open_network(LSTM, LG_F32, false, false);
                lg_set_deterministic(n.c, own);
                kept[own] = -lg_memory_stats(n.c, lg_default_device(n.c)).used;
                forward(&n);
                kept[own] += lg_memory_stats(n.c, lg_default_device(n.c)).used;
                close_network(&n);
        }
        print_message("an LSTM keeps %lld bytes by cuDNN, %lld by own kernels\n", (long long)kept[0],
                      (long long)kept[1]);
        assert_true(kept[0] <= kept[1] + 1024);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(few_launches),
                cmocka_unit_test(cudnn_and_own_kernels_agree),
                cmocka_unit_test(own_kernels_continue),
                cmocka_unit_test(failures),
                cmocka_unit_test(memory),
        };
        return cmocka_run_group_tests(tests, find_controls, NULL);
}
