/* test_memory.c - thousands of training steps: no call to the system after warm-up, no growth of the process. */
#include <unistd.h>
#include "test.h"

static long resident_pages(void)
{
        long size = 0, resident = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        if (f) {
                if (fscanf(f, "%ld %ld", &size, &resident) != 2)
                        resident = 0;
                fclose(f);
        }
        return resident;
}

static void steps_ask_the_system_for_nothing(void **state)
{
        (void)state;
        const char *asked = getenv("LG_TEST_STEPS");
        int steps = asked ? atoi(asked) : 2000;
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 784, 128), lg_nn_relu(c),
                                          lg_nn_linear(c, 128, 10));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
        lg_module_to(net, lg_default_device(c, (lg_device){LG_DEVICE_NONE, 0}));
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(256, 1, 28, 28), .device = lg_cpu());
        lg_tensor *y = lg_cast(lg_lt_scalar(lg_select(lg_reshape(x, LG_SHAPE(256, 784)), 1, 0), 0.5), LG_I64);
        lg_loader *l = lg_loader_open(c, lg_dataset_tensors(c, x, y), 64, .shuffle = true);
        lg_memory_stats_t warm = {0}, warm_cpu = {0}, now, now_cpu;
        long at_100 = 0;
        lg_device d = lg_default_device(c, (lg_device){LG_DEVICE_NONE, 0});
        for (int i = 0; i < steps; i++) {
                lg_batch b;
                while (!lg_loader_next(l, &b))
                        assert_ok(c);
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                if (i == 99) {
                        warm = lg_memory_stats(c, d);
                        warm_cpu = lg_memory_stats(c, lg_cpu());
                        at_100 = resident_pages();
                }
        }
        assert_ok(c);
        now = lg_memory_stats(c, d);
        now_cpu = lg_memory_stats(c, lg_cpu());
        long at_end = resident_pages();
        print_message("resident pages %ld after step 100, %ld after step %d; system allocations %lld and %lld\n", at_100,
                      at_end, steps, (long long)warm_cpu.system_allocs, (long long)now_cpu.system_allocs);
        assert_int_equal(now.system_allocs, warm.system_allocs);
        assert_int_equal(now_cpu.system_allocs, warm_cpu.system_allocs);
        assert_true(labs(at_end - at_100) * 100 < at_100);
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(steps_ask_the_system_for_nothing)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
