/* test_two.c - two simulated devices: what a program that uses CUDA itself sees of libgrad, and copies between them. */
#include <dlfcn.h>
#include "../test.h"

/* ---- CUDA as the program calls it, and the simulator's controls (sim.h) ---- */

static struct cuda {
        int (*SetDevice)(int device);
        int (*GetDevice)(int *device);
        int (*GetLastError)(void);
} cuda;

static struct controls {
        void (*fail_at)(int64_t n, bool from, int way);
        int64_t (*calls)(int way);
        int64_t (*peers_asked)(void);
        int64_t (*copies_through_host)(void);
        const char *(*failed)(void);
} sim;

static int (*context_state)(int device, unsigned *flags, int *active);

static int find_controls(void **state)
{
        (void)state;
        void *module = dlopen(getenv("LIBGRAD_CUDA"), RTLD_NOW | RTLD_LOCAL);
        if (!module)
                fail_msg("%s", dlerror());
#define FIND(at, name)                                                                                                 \
        *(void **)&at = dlsym(module, name);                                                                           \
        assert_non_null(at)
        FIND(cuda.SetDevice, "cudaSetDevice");
        FIND(cuda.GetDevice, "cudaGetDevice");
        FIND(cuda.GetLastError, "cudaGetLastError");
        FIND(sim.fail_at, "cudasim_fail_at");
        FIND(sim.calls, "cudasim_calls");
        FIND(sim.peers_asked, "cudasim_peers_asked");
        FIND(sim.copies_through_host, "cudasim_copies_through_host");
        FIND(sim.failed, "cudasim_failed");
        FIND(context_state, "cuDevicePrimaryCtxGetState");
        return 0;
}

static lg_device device(int index)
{
        return LG_DEVICE(LG_DEVICE_CUDA, index);
}

/* ---- what the program sees ---- */

/* The device that is current, and that no error is left over. */
static void assert_current(int index)
{
        int now = -1;
        assert_int_equal(cuda.GetDevice(&now), 0);
        assert_int_equal(now, index);
        assert_int_equal(cuda.GetLastError(), 0);
}

/* Comes first: what is on cuda:1 alone takes no memory of cuda:0. */
static void a_device_that_nobody_uses_stays_so(void **state)
{
        (void)state;
        unsigned flags;
        int active = 1;
        lg_ctx *c = lg_open();
        lg_set_default_device(c, device(1));
        assert_near(lg_item(lg_sum(lg_ones(c, LG_SHAPE(3, 4)))), 12, 0);
        assert_ok(c);
        lg_close(c);
        assert_int_equal(context_state(0, &flags, &active), 0);
        assert_false(active);
        assert_int_equal(context_state(1, &flags, &active), 0);
        assert_true(active);
}

static void work(lg_ctx *c, lg_device on, int current)
{
        lg_tensor *pinned = lg_pin(lg_ones(c, LG_SHAPE(4, 3), .device = lg_cpu()), on);
        assert_current(current);
        lg_tensor *x = lg_to(pinned, on), *far = lg_to(x, device(!on.index));
        assert_current(current);
        lg_tensor *w = lg_full(c, LG_SHAPE(3, 2), 2, .device = on, .requires_grad = true);
        assert_current(current);
        lg_tensor *loss = lg_sum(lg_matmul(x, w));
        assert_current(current);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(w), 0.5);
        lg_backward(loss);
        assert_current(current);
        assert_true(lg_step(opt));
        assert_current(current);
        assert_near(lg_item(loss), 48, 0);
        assert_near(lg_item(lg_sum(w)), 0, 0);
        assert_near(lg_item(lg_sum(far)), 12, 0);
        assert_current(current);
        lg_device_info_t info;
        assert_true(lg_device_info(c, device(!on.index), &info));
        assert_true(lg_synchronize(c));
        lg_free(pinned);
        lg_empty_cache(c);
        assert_current(current);
        lg_set_memory_limit(c, on, lg_memory_stats(c, on).used + 1000);
        assert_null(lg_zeros(c, LG_SHAPE(1000, 1000), .device = on));
        assert_error(c, LG_ERR_MEMORY, "lg_set_memory_limit");
        assert_current(current);
        drop(lg_cross_entropy(x, lg_full(c, LG_SHAPE(4), 9, .dtype = LG_I64, .device = on)));
        assert_false(lg_synchronize(c));
        assert_error(c, LG_ERR_ARGUMENT, "class index 9");
        assert_current(current);
}

static void the_current_device_stays(void **state)
{
        (void)state;
        for (int current = 0; current < 2; current++)
                for (int on = 0; on < 2; on++) {
                        assert_int_equal(cuda.SetDevice(current), 0);
                        lg_ctx *c = lg_open();
                        lg_device d = lg_try_cuda(c, on);
                        assert_int_equal(d.index, on);
                        assert_current(current);
                        work(c, d, current);
                        lg_close(c);
                        assert_current(current);
                }
}

/* Whatever call of CUDA fails, the device that is current stays, but where that call was to give it back. */
static void it_stays_where_a_call_fails(void **state)
{
        (void)state;
        int64_t failed = 0, lost = 0, selections = 0;
        assert_int_equal(cuda.SetDevice(1), 0);
        for (int64_t n = 1;; n++) {
                lg_ctx *c = lg_open();
                lg_tensor *x = lg_ones(c, LG_SHAPE(5), .device = device(0));
                assert_ok(c);
                int64_t calls = sim.calls(0);
                sim.fail_at(n, false, 0);
                double sum = lg_item(lg_sum(lg_exp(x)));
                if (lg_error(c) && !strstr(lg_error(c), sim.failed()))
                        fail_msg("%s failed, told as %s", sim.failed(), lg_error(c));
                selections += lg_error(c) && !strcmp(sim.failed(), "cudaSetDevice");
                sim.fail_at(0, false, 0);
                calls = sim.calls(0) - calls;
                int now = -1;
                cuda.GetDevice(&now);
                lost += now != 1;
                failed += lg_error(c) != NULL;
                assert_int_equal(cuda.GetLastError(), 0);
                if (!lg_error(c))
                        assert_near(sum, 5 * exp(1), 1e-5);
                assert_int_equal(cuda.SetDevice(1), 0);
                lg_close(c);
                assert_current(1);
                if (calls < n)
                        break;
        }
        print_message("%lld calls fail, %lld were to give the device back\n", (long long)failed, (long long)lost);
        assert_true(failed > 5 && selections > 2 && lost < failed);
}

/* ---- copies ---- */

/* A pair of devices is asked once, each way, and every copy goes straight where it may. */
static void peers_are_asked_once(void **state)
{
        (void)state;
        const bool straight = !getenv("CUDASIM_PEER");
        for (int contexts = 0; contexts < 2; contexts++) { /* the second finds what the first has set up */
                const int64_t asked = sim.peers_asked(), through_host = sim.copies_through_host();
                lg_ctx *c = lg_open();
                for (int i = 0; i < 5; i++) {
                        lg_tensor *x = lg_full(c, LG_SHAPE(100), i, .device = device(0));
                        assert_near(lg_item(lg_sum(lg_to(lg_to(x, device(1)), device(0)))), 100 * i, 0);
                        assert_ok(c);
                }
                assert_int_equal(cuda.GetLastError(), 0);
                assert_int_equal(sim.peers_asked() - asked, 2);
                assert_int_equal(sim.copies_through_host() - through_host, straight ? 0 : 10);
                lg_close(c);
        }
}

/* Whether they are peers is no matter of life: a copy goes through the host where nobody can say. */
static void peers_that_cannot_be_asked(void **state)
{
        (void)state;
        int questions = 0;
        for (int64_t n = 1;; n++) {
                assert_int_equal(cuda.SetDevice(0), 0); /* a call that fails may have left the other */
                lg_ctx *c = lg_open();
                lg_tensor *x = lg_ones(c, LG_SHAPE(100), .device = device(0));
                drop(lg_empty(c, LG_SHAPE(100), .device = device(1)));
                assert_ok(c);
                const int64_t calls = sim.calls(0);
                sim.fail_at(n, false, 0);
                lg_tensor *y = lg_to(x, device(1));
                const bool over = sim.calls(0) - calls < n, question = strstr(sim.failed(), "Peer") != NULL &&
                                                                       strcmp(sim.failed(), "cudaMemcpyPeerAsync") != 0;
                sim.fail_at(0, false, 0);
                questions += question;
                if (over || question)
                        assert_ok(c);
                if (!lg_error(c))
                        assert_near(lg_item(lg_sum(y)), 100, 0);
                assert_int_equal(cuda.GetLastError(), 0);
                lg_close(c);
                if (over)
                        break;
        }
        assert_int_equal(questions, getenv("CUDASIM_PEER") ? 1 : 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_device_that_nobody_uses_stays_so), cmocka_unit_test(peers_are_asked_once),
                cmocka_unit_test(peers_that_cannot_be_asked),         cmocka_unit_test(the_current_device_stays),
                cmocka_unit_test(it_stays_where_a_call_fails),
        };
        return cmocka_run_group_tests(tests, find_controls, NULL);
}
