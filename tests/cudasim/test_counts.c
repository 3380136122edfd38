/* test_counts.c - what products, embeddings and an encoder's step launch and describe on the simulated device. */
#include <pthread.h>
#include "controls.h"

/* the encoder of tools/lg_bench */
lg_module *encoder_new(lg_ctx *c);

static lg_ctx *open_on_device(void)
{
        lg_ctx *c = lg_open(.seed = 7);
        lg_set_default_device(c, lg_parse_device(c, "cuda:0"));
        return c;
}

/* Multiplies (m, 8) by (8, 6), both views that begin `offset` elements after the start of a block, and returns how many
 * records of cuBLASLt that made. */
static int64_t records_of_product(lg_ctx *c, int64_t m, int64_t offset)
{
        lg_scope s = lg_scope_begin(c);
        lg_tensor *a = lg_normal(c, 0, 1, LG_SHAPE(8 * m + offset)), *b = lg_normal(c, 0, 1, LG_SHAPE(48 + offset));
        lg_tensor *left = lg_reshape(lg_slice(a, 0, offset, 8 * m + offset), LG_SHAPE(m, 8));
        lg_tensor *right = lg_reshape(lg_slice(b, 0, offset, 48 + offset), LG_SHAPE(8, 6));
        int64_t before = sim.products_described();
        assert_non_null(lg_matmul(left, right));
        before = sim.products_described() - before;
        lg_scope_end(c, s);
        return before;
}

static void a_product_is_described_once(void **state)
{
        (void)state;
        enum { HANDLE = 1, DESCRIPTORS = 4, PREFERENCE = 1 };
        sim.forget_algorithms();
        lg_ctx *c = open_on_device();
        assert_int_equal(records_of_product(c, 5, 0), HANDLE + DESCRIPTORS + PREFERENCE);
        for (int i = 0; i < 3; i++)
                assert_int_equal(records_of_product(c, 5, 0), 0);
        /* kernels ask for no more alignment than 16 bytes */
        assert_int_equal(records_of_product(c, 5, 4), 0);
        assert_int_equal(records_of_product(c, 5, 8), 0);
        assert_int_equal(records_of_product(c, 5, 1), DESCRIPTORS + PREFERENCE);
        /* another context describes it, but asks for no algorithm */
        lg_ctx *other = open_on_device();
        assert_int_equal(records_of_product(other, 5, 0), HANDLE + DESCRIPTORS);
        lg_close(other);
        /* many kinds push each other out of the table */
        const int64_t handles = sim.handles();
        for (int64_t m = 6; m < 700; m++)
                assert_int_equal(records_of_product(c, m, 0), DESCRIPTORS + PREFERENCE);
        assert_true(sim.handles() - handles <= 512 * DESCRIPTORS);
        assert_ok(c);
        lg_close(c);
}

/* Multiplies ones by ones in products of many kinds, in a context of its own; returns its argument if all are right. */
static void *multiply_in_thread(void *argument)
{
        enum { KINDS = 150 };
        lg_ctx *c = open_on_device();
        bool right = c != NULL;
        for (int64_t m = 1; right && m < KINDS; m++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *y = lg_matmul(lg_ones(c, LG_SHAPE(m, 9)), lg_ones(c, LG_SHAPE(9, 2)));
                right = y && lg_item(lg_sum(y)) == (double)(18 * m);
                lg_scope_end(c, s);
        }
        lg_close(c);
        return right ? argument : NULL;
}

static void threads_share_the_answers(void **state)
{
        enum { THREADS = 4 };
        pthread_t threads[THREADS];
        int own[THREADS];
        (void)state;
        sim.forget_algorithms();
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, multiply_in_thread, &own[i]), 0);
        for (int i = 0; i < THREADS; i++) {
                void *result;
                assert_int_equal(pthread_join(threads[i], &result), 0);
                assert_ptr_equal(result, &own[i]);
        }
}

enum { SEQUENCES = 4, LENGTH = 5, HEADS = 3, HEAD = 8, MOST_SCORES = SEQUENCES * HEADS * LENGTH * LENGTH };

/* Computes the scores and the outputs of heads whose queries, keys and values are parts of one tensor, or copies of
 * these parts, and the launches of both products. */
static void attend(bool packed, double *scores, double *outputs, int64_t launches[2])
{
        sim.forget_algorithms();
        lg_ctx *c = open_on_device();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(SEQUENCES, LENGTH, 3, HEADS, HEAD)), *part[3];
        x = lg_permute(x, LG_DIMS(2, 0, 3, 1, 4)); /* shape (3, SEQUENCES, HEADS, LENGTH, HEAD) */
        for (int i = 0; i < 3; i++)
                part[i] = packed ? lg_select(x, 0, i) : lg_contiguous(lg_select(x, 0, i));
        launches[0] = -sim.launches();
        lg_tensor *s = lg_matmul(part[0], lg_transpose(part[1], -2, -1));
        launches[0] += sim.launches();
        launches[1] = -sim.launches();
        lg_tensor *y = lg_matmul(s, part[2]);
        launches[1] += sim.launches();
        read_all(s, scores, MOST_SCORES);
        read_all(y, outputs, SEQUENCES * HEADS * LENGTH * HEAD);
        assert_ok(c);
        lg_close(c);
}

/* Heads of packed queries, keys and values are one product each: over a list of matrices, or where the library has
 * nothing for lists, over copies. */
static void heads_take_few_launches(void **state)
{
        (void)state;
        static double expected[2][MOST_SCORES * 2], got[2][MOST_SCORES * 2];
        int64_t launches[2];
        attend(false, expected[0], expected[1], launches);
        assert_int_equal(launches[0], 1);
        assert_int_equal(launches[1], 1);
        const struct {
                const char *lists;
                int64_t launches[2];
        } ways[] = {{"1", {2, 2}}, {"0", {3, 2}}};
        for (int i = 0; i < 2; i++) {
                setenv("CUDASIM_CUBLAS_LISTS", ways[i].lists, 1);
                attend(true, got[0], got[1], launches);
                unsetenv("CUDASIM_CUBLAS_LISTS");
                assert_memory_equal(launches, ways[i].launches, sizeof launches);
                assert_memory_equal(got, expected, sizeof got);
        }
}

/* Returns the launches of the gradient of a table from n tokens. */
static int64_t launches_of_embedding(lg_ctx *c, int64_t n)
{
        lg_tensor *table = lg_set_requires_grad(lg_detach(lg_ones(c, LG_SHAPE(5, 2))), true), *dx;
        lg_tensor *y = lg_embedding(lg_zeros(c, LG_SHAPE(n), .dtype = LG_I64), table);
        const int64_t before = sim.launches();
        lg_grad(LG_LIST(y), LG_LIST(table), .grads = LG_LIST(lg_ones_like(y)), .result = &dx);
        return sim.launches() - before;
}

/* From some number on, indices are sorted and each sum reads only its own. */
static void many_tokens_are_sorted(void **state)
{
        (void)state;
        enum { MANY = 16384, SORTING = 8 }; /* tiles, six rounds of merging, indices */
        lg_ctx *c = open_on_device();
        const int64_t few = launches_of_embedding(c, MANY - 1), many = launches_of_embedding(c, MANY);
        assert_int_equal(many, few + SORTING);
        assert_ok(c);
        lg_close(c);
}

/* Returns the launches of a step of the encoder of tools/lg_bench, with short sequences; amp: as
 * lg_set_autocast_mode(). */
static int64_t encoder_launches(lg_dtype amp)
{
        enum { BATCH_OF_ENCODER = 8 };
        lg_ctx *c = open_on_device();
        lg_module *net = encoder_new(c);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 0.001);
        lg_tensor *x = lg_keep(lg_normal(c, 0, 1, LG_SHAPE(BATCH_OF_ENCODER, 4, 256)));
        lg_tensor *y = lg_keep(lg_zeros(c, LG_SHAPE(BATCH_OF_ENCODER), .dtype = LG_I64));
        int64_t launches = 0;
        for (int i = 0; i < 2; i++) {
                lg_scope s = lg_scope_begin(c);
                launches = -sim.launches();
                lg_set_autocast_mode(c, amp);
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, x), y);
                lg_set_autocast_mode(c, LG_DTYPE_NONE);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                launches += sim.launches();
                lg_scope_end(c, s);
        }
        assert_true(lg_synchronize(c));
        lg_close(c);
        return launches;
}

static void a_step_of_an_encoder_takes_few_launches(void **state)
{
        (void)state;
        const int64_t plain = encoder_launches(LG_DTYPE_NONE), amp = encoder_launches(LG_BF16);
        print_message("%lld launches, %lld in bf16\n", (long long)plain, (long long)amp);
        assert_in_range(plain, 1, 200);
        assert_in_range(amp, 1, 251); /* attention by products took 503 */
}

/* What three steps ask of the device, and their losses. */
typedef struct asked {
        int64_t launches, waits, copies, allocations;
        double losses[3];
} asked;

static asked ask(bool profiled)
{
        lg_ctx *c = open_on_device();
        lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 4, 3), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c),
                                          lg_nn_flatten(c), lg_nn_linear(c, 64, 5));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 0.01);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, 1, 6, 6)), *y = lg_zeros(c, LG_SHAPE(6), .dtype = LG_I64);
        asked a = {0, 0, 0, 0, {0}};
        lg_profiler *p = NULL;
        int64_t handles = 0;
        for (int i = 0; i < 5; i++) {
                lg_scope s = lg_scope_begin(c);
                if (i == 2) {
                        handles = sim.handles();
                        a = (asked){-sim.launches(), -sim.waits(), -sim.copies(), -sim.calls(ALLOCATION), {0}};
                        p = profiled ? lg_profiler_open(c, .steps = 1) : NULL;
                }
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, x), y);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                if (i >= 2)
                        a.losses[i - 2] = lg_item(loss);
                lg_scope_end(c, s);
        }
        a.launches += sim.launches();
        a.waits += sim.waits();
        a.copies += sim.copies();
        a.allocations += sim.calls(ALLOCATION);
        if (profiled) {
                char *text = NULL;
                size_t size = 0;
                FILE *f = open_memstream(&text, &size);
                assert_true(f && sim.handles() > handles);
                assert_true(lg_profiler_step(p) && lg_profiler_print(f, p) && lg_profiler_close(p));
                fclose(f);
                assert_non_null(strstr(text, "device ms"));
                free(text);
        }
        assert_int_equal(sim.handles(), handles); /* no event is left */
        assert_ok(c);
        lg_close(c);
        return a;
}

static void a_profile_asks_for_nothing_more(void **state)
{
        (void)state;
        const asked plain = ask(false), profiled = ask(true);
        assert_true(plain.launches > 20 && plain.waits == 3 && plain.losses[0] > plain.losses[2]);
        assert_memory_equal(&profiled, &plain, sizeof plain);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_product_is_described_once),
                cmocka_unit_test(threads_share_the_answers),
                cmocka_unit_test(heads_take_few_launches),
                cmocka_unit_test(many_tokens_are_sorted),
                cmocka_unit_test(a_step_of_an_encoder_takes_few_launches),
                cmocka_unit_test(a_profile_asks_for_nothing_more),
        };
        return cmocka_run_group_tests(tests, find_controls, NULL);
}
