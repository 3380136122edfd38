/* test_memory.c - thousands of training steps ask the system for nothing and leave the process as big as it was; calls
 * hold little beside their results.
 *
 * The resident size is compared with that of an MLP of Fashion-MNIST's size: a page of code that is first touched late
 * (the kernel maps 16 around it) is not what this looks for.
 * 2,000 steps and 1,000 contexts; 10,000 of each with LG_TEST_LONG=1 in the environment; 500 and 400 where that is
 * slow.
 */
#include <unistd.h>
#include "status.h"
#include "test.h"

#define WARM 300 /* steps and contexts, in which the 256 threads of a simulated block touch their stacks one by one */

static int64_t allocs, frees;

static void *count_alloc(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        (void)user;
        allocs++;
        return lg_system_alloc(c, device, bytes);
}

static void count_free(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        (void)user;
        frees++;
        lg_system_free(c, device, p, bytes);
}

static double resident_bytes(void)
{
        long long total, resident = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%lld %lld", &total, &resident), 2);
        fclose(f);
        return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

typedef struct mark {
        double resident;
        int64_t allocs, frees, live, by_stats;
} mark;

static mark look(lg_ctx *c, lg_device d)
{
        return (mark){resident_bytes(), allocs, frees, lg_live_tensors(c),
                      lg_memory_stats(c, d).system_allocs + lg_memory_stats(c, lg_cpu()).system_allocs};
}

/* Steps of an MLP from a shuffled loader; the first WARM of them may allocate. */
static void train(int steps, int workers)
{
        allocs = frees = 0;
        lg_ctx *c = lg_open(.seed = 1, .alloc = count_alloc, .free = count_free);
        lg_device d = test_device(c);
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(3000, 784), .device = lg_cpu());
        lg_tensor *y = lg_argmax(lg_slice(x, 1, 0, 10), .dims = LG_DIMS(1));
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 784, 128), lg_nn_relu(c), lg_nn_linear(c, 128, 10));
        lg_module_to(net, d);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
        lg_loader *l = lg_loader_open(c, lg_dataset_tensors(c, x, y), 48, .shuffle = true, .workers = workers);
        mark warm = {0};
        double first = 0, last = 0;
        lg_batch b;
        for (int i = 0; i < steps; i++) {
                if (!lg_loader_next(l, &b) && !lg_loader_next(l, &b)) /* the next epoch */
                        break;
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                last = lg_item(loss);
                if (i == 0)
                        first = last;
                if (i <= WARM) /* looking, too, touches code */
                        warm = look(c, d);
        }
        assert_ok(c);
        mark now = look(c, d);
        assert_int_equal(now.allocs, warm.allocs);
        assert_int_equal(now.frees, warm.frees);
        assert_int_equal(now.by_stats, warm.by_stats);
        assert_true(now.live <= warm.live + 2);
        print_message("%d steps: resident %.0f bytes after %d, %.0f at the end; loss %.3f to %.3f\n", steps,
                      warm.resident, WARM, now.resident, first, last);
        if (!SANITIZED) /* which keep freed memory for a while */
                assert_true(fabs(now.resident - warm.resident) < 0.01 * warm.resident);
        assert_true(last < (steps < 2000 ? 0.95 : 0.5) * first);
        lg_close(c);
        assert_int_equal(allocs, frees);
}

static bool is_long(void)
{
        const char *text = getenv("LG_TEST_LONG");
        return text && *text == '1';
}

static int steps(void)
{
        return is_long() ? 10000 : is_slow() ? 500 : 2000;
}

TEST_CASE(training_asks_for_no_memory)
{
        train(steps(), 0);
}

TEST_CASE(nor_with_workers)
{
        train(steps(), 2);
}

static lg_tensor *megabytes(lg_ctx *c, int n)
{
        return lg_keep(lg_empty(c, LG_SHAPE(n, 1 << 20), .dtype = LG_U8));
}

/* A large block serves smaller large requests in parts, which become one again. */
TEST_CASE(large_blocks_are_split_and_joined)
{
        lg_ctx *c = open_ctx();
        lg_device d = test_device(c);
        lg_free(megabytes(c, 16));
        int64_t before = lg_memory_stats(c, d).system_allocs;
        lg_tensor *a = megabytes(c, 4), *b = megabytes(c, 5), *e = megabytes(c, 7);
        assert_int_equal(lg_memory_stats(c, d).system_allocs, before);
        lg_no_grad(c) /* parts do not overlap */
        {
                lg_fill_(a, 1);
                lg_fill_(b, 2);
                lg_fill_(e, 3);
        }
        lg_scope scope = lg_scope_begin(c);
        assert_int_equal(lg_item_i64(lg_sum(a)), 4 << 20);
        assert_int_equal(lg_item_i64(lg_sum(b)), 10 << 20);
        assert_int_equal(lg_item_i64(lg_sum(e)), 21 << 20);
        lg_scope_end(c, scope);
        lg_free(b);
        lg_empty_cache(c); /* a part whose neighbours are used stays */
        assert_int_equal(lg_memory_stats(c, d).cached, 5 << 20);
        lg_free(a);
        lg_free(e);
        assert_int_equal(lg_memory_stats(c, d).used, 0);
        before = lg_memory_stats(c, d).system_allocs;
        lg_free(megabytes(c, 16));
        assert_int_equal(lg_memory_stats(c, d).system_allocs, before);
        lg_empty_cache(c);
        assert_int_equal(lg_memory_stats(c, d).cached, 0);
        lg_free(megabytes(c, 3));
        assert_int_equal(lg_memory_stats(c, d).system_allocs, before + 1);
        assert_ok(c);
        lg_close(c);
}

/* The same sequence of large buffers asks the system for nothing after a while. */
TEST_CASE(a_large_network_asks_for_no_memory)
{
        lg_ctx *c = open_ctx();
        lg_device d = test_device(c);
        lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 24, 3), lg_nn_batch_norm2d(c, 24), lg_nn_relu(c),
                                          lg_nn_max_pool2d(c, 2), lg_nn_flatten(c), lg_nn_linear(c, 24 * 13 * 13, 40));
        lg_module_to(net, d);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
        int64_t warm = 0;
        for (int i = 0; i < 60; i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(32, 1, 28, 28));
                lg_tensor *loss = lg_mean(lg_square(lg_forward(net, x)));
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                lg_item(loss);
                lg_scope_end(c, scope);
                if (i == 40) /* records are used again only after a while */
                        warm = lg_memory_stats(c, d).system_allocs;
        }
        assert_ok(c);
        assert_int_equal(lg_memory_stats(c, d).system_allocs, warm);
        lg_close(c);
}

/* A step on batches that a thread makes. */
static void train_briefly(lg_ctx *c)
{
        lg_module *net = lg_nn_linear(c, 300, 20);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
        lg_dataset *rows = lg_dataset_list(c, LG_LIST(lg_ones(c, LG_SHAPE(300, 300), .device = lg_cpu())));
        lg_loader *batches = lg_loader_open(c, rows, 300, .workers = 1, .device = lg_default_device(c));
        lg_batch b;
        assert_true(lg_loader_next(batches, &b));
        lg_module_to(net, lg_default_device(c));
        lg_backward(lg_mean(lg_square(lg_forward(net, b.x))));
        assert_true(lg_step(opt));
}

/* Of this process: what contexts could leave behind. */
typedef struct figures {
        long threads, files, mappings, resident;
} figures;

static figures figures_now(void)
{
        return (figures){status_of("Threads:"), open_files(), mappings(), status_of("VmRSS:")};
}

TEST_CASE(contexts_leave_nothing)
{
        const int contexts = is_long() ? 10000 : is_slow() ? 400 : 1000;
        const figures before = figures_now();
        figures first = before, last;
        for (int i = 0; i < contexts; i++) {
                lg_ctx *c = lg_open(.threads = 3);
                if (test_device(c).type == LG_DEVICE_CUDA)
                        skip();
                train_briefly(c);
                assert_true(i > 0 || status_of("Threads:") >= before.threads + 3); /* its own two, the loader's one */
                lg_close(c);
                first = i == WARM ? figures_now() : first;
        }
        last = figures_now();
        print_message("%d contexts: %ld threads, %ld files, %ld mappings, %ld KiB; at first %ld KiB\n", contexts,
                      last.threads, last.files, last.mappings, last.resident, first.resident);
        assert_int_equal(last.threads, before.threads);
        assert_int_equal(last.files, before.files);
        assert_true(SANITIZED || (last.mappings <= first.mappings && last.resident < first.resident + 512));
}

/* ---- calls without a graph ---- */

typedef lg_tensor *call(lg_tensor *x);
#define CALL(name, ...)                                                                                                \
        static lg_tensor *name(lg_tensor *x)                                                                           \
        {                                                                                                              \
                return __VA_ARGS__;                                                                                    \
        }
CALL(sorted, lg_sort(x, 0))
CALL(argsorted, lg_argsort(x, 0))
CALL(product, lg_prod(x))
CALL(running_product, lg_cumprod(x, 0))
CALL(any, lg_any(x))
CALL(all, lg_all(x))
CALL(places, lg_nonzero(x))

/* Bytes that a call takes for each element at its height, with its result; those of PyTorch's CPU in the last column.
 */
static const struct need {
        call *call;
        lg_dtype dtype;
        double most;
} needs[] = {
        {sorted, LG_F16, 18.1}, {sorted, LG_F32, 20.1},        {argsorted, LG_U8, 17.1}, {product, LG_U8, 2.1},
        {product, LG_I64, 2.1}, {running_product, LG_I32, 24}, {any, LG_U8, 0.1},        {any, LG_BOOL, 0.1},
        {all, LG_BOOL, 0.1},    {places, LG_BOOL, 8.1},
};

TEST_CASE(calls_take_little_memory)
{
        enum { MANY = 1 << 20 };
        lg_ctx *c = lg_open();
        test_device(c);
        const lg_device device = lg_default_device(c);
        for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *x = lg_ones(c, LG_SHAPE(MANY), .dtype = needs[i].dtype);
                const double used = (double)lg_memory_stats(c, device).used;
                lg_reset_peak_memory(c, device);
                drop(needs[i].call(x));
                const double bytes = ((double)lg_memory_stats(c, device).peak - used) / MANY;
                if (lg_error(c) || !(bytes <= needs[i].most))
                        fail_msg("row %d: %g bytes, %s", (int)i, bytes, lg_error(c) ? lg_error(c) : "too many");
                lg_scope_end(c, scope);
        }
        lg_close(c);
}
