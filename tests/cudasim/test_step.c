/* test_step.c - a training step on the simulated device: it waits for nothing, and every call that fails is told. */
#include "controls.h"

/* ---- a training step ---- */

#define BATCH 4
#define MOST 4096
#define RATE 0.01

typedef struct run {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_scaler *scaler;
        lg_tensor *x, *y;
} run;

static bool in_f16; /* steps are in mixed precision, with a scaler */

/* Begins without the answers of cuBLASLt, which the process keeps, so that each run asks for the same. */
static run open_run(void)
{
        sim.forget_algorithms();
        run r = {.c = lg_open(.seed = 7)};
        lg_ctx *c = r.c;
        lg_set_default_device(c, lg_parse_device(c, "cuda:0"));
        lg_set_deterministic(c, true);
        lg_set_conv_allow_tf32(c, false); /* all engines give the same bits */
        r.net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 3, 3, .padding = 1), lg_nn_batch_norm2d(c, 3), lg_nn_relu(c),
                                 lg_nn_max_pool2d(c, 2), lg_nn_flatten(c), lg_nn_linear(c, 27, 8), lg_nn_relu(c),
                                 lg_nn_linear(c, 8, 4));
        r.opt = lg_adam(c, lg_parameters(r.net), RATE);
        r.scaler = lg_scaler_new(c, .init_scale = 1024);
        r.x = lg_keep(lg_normal(c, 0, 1, LG_SHAPE(BATCH, 1, 6, 6)));
        r.y = lg_keep(lg_from(c, ((int64_t[]){0, 1, 2, 3}), LG_SHAPE(BATCH), .dtype = LG_I64));
        assert_ok(c);
        return r;
}

static void close_run(run *r)
{
        lg_close(r->c);
        sim.forget();
}

static bool step(run *r)
{
        lg_scope s = lg_scope_begin(r->c);
        lg_tensor *loss = NULL;
        lg_autocast(r->c, in_f16 ? LG_F16 : LG_F32) loss = lg_cross_entropy(lg_forward(r->net, r->x), r->y);
        lg_zero_grad(r->opt);
        if (in_f16) {
                lg_scaler_backward(r->scaler, loss);
                lg_scaler_unscale(r->scaler, r->opt);
        } else
                lg_backward(loss);
        lg_clip_grad_norm(lg_parameters(r->net), 1.0);
        bool ok = in_f16 ? lg_scaler_step(r->scaler, r->opt) && lg_scaler_update(r->scaler) : lg_step(r->opt);
        lg_scope_end(r->c, s);
        return ok;
}

static int64_t read_parameters(run *r, double *out)
{
        lg_list list = lg_parameters(r->net);
        int64_t n = 0;
        for (int i = 0; i < list.count; i++)
                n += read_all(list.items[i], out + n, MOST - n);
        return n;
}

/* The engine that replaces one that failed may round its sums in f16 otherwise; a gradient near 0 then has another
 * sign, and Adam's step another direction. */
static void assert_same(const double *a, const double *b, int64_t n, int64_t call, const char *name)
{
        const double tolerance = in_f16 && !strcmp(name, "cudnnBackendExecute") ? 2.1 * RATE : 0;
        for (int64_t i = 0; i < n; i++)
                if (!(fabs(a[i] - b[i]) <= tolerance))
                        fail_msg("after call %lld, %s, failed: parameter element %lld is %.9g, not %.9g",
                                 (long long)call, name, (long long)i, a[i], b[i]);
}

/* ---- tests ---- */

static void a_step_waits_for_nothing(void **state)
{
        (void)state;
        run r = open_run();
        for (int i = 0; i < 3; i++)
                assert_true(step(&r));
        assert_true(lg_synchronize(r.c));
        int64_t waits = sim.waits(), allocations = sim.calls(ALLOCATION), calls = sim.calls(CALL);
        for (int i = 0; i < 5; i++)
                assert_true(step(&r));
        assert_int_equal(sim.waits() - waits, 0);
        assert_int_equal(sim.calls(ALLOCATION) - allocations, 0);
        assert_true(sim.calls(CALL) > calls + 5 * 20); /* the device was in use */
        assert_true(lg_synchronize(r.c));
        assert_ok(r.c);
        close_run(&r);
}

/* Elements of a batch from the host in each step: the host goes on, and what it passed may change at once. */
static void uploads_wait_for_nothing(void **state)
{
        (void)state;
        enum { N = 1000, ROUNDS = 3000 }; /* 12 MB: more than a ring of pinned memory holds */
        static float values[N];
        lg_ctx *c = lg_open();
        lg_device cuda = lg_parse_device(c, "cuda:0");
        lg_tensor *sum = lg_keep(lg_zeros(c, LG_SHAPE(N), .device = cuda));
        int64_t waits = 0, allocations = 0;
        for (int i = 0; i < ROUNDS; i++) {
                if (i == 10) {
                        waits = sim.waits();
                        allocations = sim.calls(ALLOCATION);
                }
                const lg_scope s = lg_scope_begin(c);
                for (int k = 0; k < N; k++)
                        values[k] = (float)(i % 2);
                assert_true(lg_add_(sum, lg_from(c, values, LG_SHAPE(N), .device = cuda)));
                lg_scope_end(c, s);
                if (i == 1000) { /* 4 MB */
                        assert_int_equal(sim.waits() - waits, 0);
                        assert_int_equal(sim.calls(ALLOCATION) - allocations, 0);
                }
        }
        assert_true(sim.waits() - waits <= 2); /* for pieces that are used again */
        assert_true(lg_item(lg_amin(sum)) == ROUNDS / 2 && lg_item(lg_amax(sum)) == ROUNDS / 2);
        assert_ok(c);
        lg_close(c);
}

/* More at once than the ring holds; and without pinned memory. */
static void large_uploads(void **state)
{
        (void)state;
        const int64_t n = 3000001;
        float *values = malloc((size_t)n * sizeof *values), *back = malloc((size_t)n * sizeof *back);
        assert_true(values && back);
        for (int64_t i = 0; i < n; i++)
                values[i] = (float)(i % 1000);
        for (int pinned = 0; pinned < 2; pinned++) {
                lg_ctx *c = lg_open();
                lg_device cuda = lg_parse_device(c, "cuda:0");
                lg_tensor *x = lg_empty(c, LG_SHAPE(n), .device = cuda);
                if (!pinned)
                        sim.fail_at(1, true, ALLOCATION);
                assert_true(lg_write(x, values, LG_F32, (size_t)n * sizeof *values));
                sim.fail_at(0, false, ALLOCATION);
                assert_true(lg_read(x, back, LG_F32, (size_t)n * sizeof *back));
                assert_memory_equal(back, values, (size_t)n * sizeof *back);
                assert_ok(c);
                lg_close(c);
                assert_int_equal(sim.bytes(), 0);
        }
        free(values);
        free(back);
}

/* The value and the error word arrive by one copy, for which the host waits once. */
static void an_item_takes_one_copy_and_one_wait(void **state)
{
        (void)state;
        run r = open_run();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
        for (int i = 0; i < 8; i++) {
                lg_tensor *x = lg_full(r.c, LG_SHAPE(1, 1), 1, .dtype = dtypes[i]);
                for (int whole = 0; whole < 2; whole++) {
                        const int64_t waits = sim.waits(), copies = sim.copies(), launches = sim.launches();
                        const int64_t allocations = sim.calls(ALLOCATION);
                        assert_true(whole ? lg_item_i64(x) == 1 : lg_item(x) == 1);
                        assert_int_equal(sim.waits() - waits, 1);
                        assert_int_equal(sim.copies() - copies, 1);
                        assert_int_equal(sim.launches() - launches, 1);
                        assert_int_equal(sim.calls(ALLOCATION) - allocations, 0);
                }
        }
        const int64_t waits = sim.waits();
        assert_true(lg_synchronize(r.c));
        assert_int_equal(sim.waits() - waits, 1);
        int64_t wrong = 4;
        lg_tensor *label = lg_from(r.c, &wrong, LG_SHAPE(1), .dtype = LG_I64);
        assert_true(isnan(lg_item(lg_cross_entropy(lg_zeros(r.c, LG_SHAPE(1, 4)), label))));
        assert_error(r.c, LG_ERR_ARGUMENT, "class index 4");
        lg_clear_error(r.c);
        assert_true(lg_item(lg_full(r.c, LG_SHAPE(1), 2.5)) == 2.5);
        assert_ok(r.c);
        close_run(&r);
}

typedef struct numbers {
        double before[MOST], after[MOST];
        int64_t count, calls[WAYS]; /* of a step from a cold cache */
} numbers;

static void reference(numbers *n)
{
        run r = open_run();
        n->count = read_parameters(&r, n->before);
        lg_empty_cache(r.c);
        for (int way = 0; way < WAYS; way++)
                n->calls[way] = -sim.calls(way);
        assert_true(step(&r));
        assert_true(lg_synchronize(r.c));
        for (int way = 0; way < WAYS; way++)
                n->calls[way] += sim.calls(way);
        assert_int_equal(read_parameters(&r, n->after), n->count);
        close_run(&r);
}

/* Lets the n-th call fail, whose name is given; true if the step went well all the same. */
static bool step_that_fails(run *r, int64_t n, char name[64], bool from, int way)
{
        lg_empty_cache(r->c);
        if (way == LOAD) /* something to give back */
                lg_free(lg_keep(lg_empty(r->c, LG_SHAPE(100, 1000))));
        sim.fail_at(n, from, way);
        bool ok = step(r) && lg_synchronize(r->c);
        snprintf(name, 64, "%.60s", sim.failed());
        sim.fail_at(0, false, way);
        return ok;
}

static void every_call_fails_in_turn(void **state)
{
        (void)state;
        static numbers ref;
        static double now[MOST];
        reference(&ref);
        int64_t handles = sim.handles(), told = 0;
        assert_int_equal(sim.bytes(), 0);
        for (int64_t n = 1; n <= ref.calls[CALL]; n++) {
                run r = open_run();
                char name[64];
                bool ok = step_that_fails(&r, n, name, false, CALL);
                if (!ok) {
                        told++;
                        lg_error_code code = lg_error_code_of(r.c);
                        if ((code != LG_ERR_CUDA && code != LG_ERR_MEMORY) || !strstr(lg_error(r.c), name))
                                fail_msg("call %lld, %s: told as %s: %s", (long long)n, name, lg_error_name(code),
                                         lg_error(r.c));
                        lg_clear_error(r.c);
                        read_parameters(&r, now);
                        assert_ok(r.c);
                        if (memcmp(now, ref.before, (size_t)ref.count * sizeof *now) == 0)
                                assert_true(step(&r)); /* else only the wait at the end failed */
                } else
                        assert_ok(r.c);
                read_parameters(&r, now);
                assert_ok(r.c);
                assert_same(now, ref.after, ref.count, n, name);
                close_run(&r);
                if (sim.bytes() != 0 || sim.handles() != handles)
                        fail_msg("call %lld, %s: %lld bytes and %lld handles are left", (long long)n, name,
                                 (long long)sim.bytes(), (long long)(sim.handles() - handles));
        }
        print_message("%lld calls, %lld told\n", (long long)ref.calls[CALL], (long long)told);
        assert_true(told >= ref.calls[CALL] - 9); /* another engine ran, or memory was found for the library */
}

/* Once: the cache is emptied, and the second try goes well. From then on: an error, and nothing is lost. */
static void memory_fails_in_turn(int way)
{
        static numbers ref;
        static double now[MOST];
        reference(&ref);
        int64_t handles = sim.handles();
        assert_true(ref.calls[way] > 3);
        for (int from = 0; from < 2; from++)
                for (int64_t n = 1; n <= ref.calls[way]; n++) {
                        run r = open_run();
                        char name[64];
                        bool ok = step_that_fails(&r, n, name, from, way);
                        if (from) {
                                assert_false(ok);
                                assert_non_null(strstr(lg_error(r.c), "cuda:0"));
                                assert_true(lg_error_code_of(r.c) == LG_ERR_MEMORY ||
                                            (way == LOAD && lg_error_code_of(r.c) == LG_ERR_CUDA));
                                lg_clear_error(r.c);
                                read_parameters(&r, now);
                                assert_same(now, ref.before, ref.count, n, name);
                                assert_true(step(&r));
                        } else if (!ok)
                                fail_msg("%s, %lld: %s", name, (long long)n, lg_error(r.c));
                        read_parameters(&r, now);
                        assert_ok(r.c);
                        assert_same(now, ref.after, ref.count, n, name);
                        close_run(&r);
                        assert_int_equal(sim.bytes(), 0);
                        assert_int_equal(sim.handles(), handles);
                }
        print_message("%lld times\n", (long long)ref.calls[way]);
}

static void every_allocation_fails_in_turn(void **state)
{
        (void)state;
        memory_fails_in_turn(ALLOCATION);
}

/* The same three in mixed precision. */
static void in_mixed_precision(void **state)
{
        in_f16 = true;
        a_step_waits_for_nothing(state);
        every_call_fails_in_turn(state);
        every_allocation_fails_in_turn(state);
        in_f16 = false;
}

/* Nothing that fails after a device broke is called a lack of memory. */
static void a_broken_device_is_told(void **state)
{
        (void)state;
        const char *const calls[] = {"cudaGetDevice: ", "cudaMalloc: "};
        for (int i = 0; i < 2; i++) {
                run r = open_run();
                lg_empty_cache(r.c);
                sim.fail_at(i + 1, true, CALL);
                assert_null(lg_empty(r.c, LG_SHAPE(300, 1000)));
                sim.fail_at(0, false, CALL);
                assert_error(r.c, LG_ERR_CUDA, calls[i]);
                assert_true(step(&r));
                close_run(&r);
        }
}

static void every_load_fails_in_turn(void **state)
{
        (void)state;
        setenv("CUDASIM_FREE", "1000000", 1); /* a library that fails may have lacked memory, and is asked again */
        memory_fails_in_turn(LOAD);
        unsetenv("CUDASIM_FREE");
}

/* Opening a device and filling a loader fail, too, without a leak. */
static void opening_fails_in_turn(void **state)
{
        (void)state;
        int64_t handles = sim.handles();
        for (int way = 0; way < WAYS; way++)
                for (int64_t n = 1;; n++) {
                        lg_ctx *c = lg_open();
                        sim.fail_at(n, false, way);
                        lg_device d = lg_parse_device(c, "cuda:1");
                        lg_tensor *x = lg_zeros(c, LG_SHAPE(8, 3), .device = lg_cpu());
                        lg_loader *l = lg_loader_open(c, lg_dataset_tensors(c, x, x), 2, .device = d);
                        lg_batch b = {0};
                        while (lg_loader_next(l, &b)) {
                        }
                        bool failed = lg_error(c), last = !failed && !strcmp(sim.failed(), "");
                        if (failed)
                                assert_true(lg_error_code_of(c) == LG_ERR_DEVICE ||
                                            lg_error_code_of(c) == LG_ERR_CUDA || lg_error_code_of(c) == LG_ERR_MEMORY);
                        sim.fail_at(0, false, way);
                        lg_close(c);
                        assert_int_equal(sim.bytes(), 0);
                        assert_int_equal(sim.handles(), handles);
                        if (last || n > 400)
                                break;
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_step_waits_for_nothing),
                cmocka_unit_test(uploads_wait_for_nothing),
                cmocka_unit_test(large_uploads),
                cmocka_unit_test(an_item_takes_one_copy_and_one_wait),
                cmocka_unit_test(every_call_fails_in_turn),
                cmocka_unit_test(every_allocation_fails_in_turn),
                cmocka_unit_test(every_load_fails_in_turn),
                cmocka_unit_test(in_mixed_precision),
                cmocka_unit_test(a_broken_device_is_told),
                cmocka_unit_test(opening_fails_in_turn),
        };
        return cmocka_run_group_tests(tests, find_controls, NULL);
}
