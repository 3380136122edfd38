/* test_threads.c - contexts in several threads at once know nothing of each other; no result depends on the number of
 * a context's threads; and what a child of fork() finds. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include "test.h"
#include "forks.h"

#define THREADS 4
#define STEPS 50

typedef struct job {
        uint64_t seed;
        bool fails; /* makes errors on the way */
        double w[12];
        char problem[256];
} job;

/* Fits a linear map by gradient descent written out in ops. */
static void *train(void *user)
{
        job *j = user;
        lg_ctx *c = lg_open(.threads = 2, .seed = j->seed);
        const char *name = getenv("LG_TEST_DEVICE");
        lg_set_default_device(c, lg_parse_device(c, name ? name : "cpu"));
        lg_tensor *w = lg_zeros(c, LG_SHAPE(4, 3), .dtype = LG_F64, .requires_grad = true);
        lg_tensor *truth = lg_normal(c, 0, 1, LG_SHAPE(4, 3), .dtype = LG_F64);
        for (int i = 0; i < STEPS; i++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(32, 4), .dtype = LG_F64);
                lg_clear_grad(w);
                lg_backward(lg_mse(lg_matmul(x, w), lg_matmul(x, truth)));
                lg_no_grad(c) lg_sub_(w, lg_mul_scalar(lg_grad_of(w), 0.5));
                if (j->fails) {
                        drop(lg_add(x, w));
                        if (lg_error_code_of(c) != LG_ERR_SHAPE)
                                snprintf(j->problem, sizeof j->problem, "expected LG_ERR_SHAPE");
                        lg_clear_error(c);
                }
                lg_scope_end(c, s);
        }
        lg_read(w, j->w, LG_F64, sizeof j->w);
        if (lg_error(c))
                snprintf(j->problem, sizeof j->problem, "%s", lg_error(c));
        lg_close(c);
        return NULL;
}

TEST_CASE(threads_do_not_disturb_each_other)
{
        job together[THREADS] = {{0}}, alone[THREADS] = {{0}};
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
                together[i].seed = alone[i].seed = (uint64_t)i / 2; /* two of each */
                together[i].fails = i % 2;
                train(&alone[i]);
                assert_string_equal(alone[i].problem, "");
        }
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, train, &together[i]), 0);
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        for (int i = 0; i < THREADS; i++) {
                assert_string_equal(together[i].problem, "");
                assert_memory_equal(together[i].w, alone[i].w, sizeof alone[i].w);
        }
        assert_memory_not_equal(together[0].w, together[2].w, sizeof alone[0].w);
}

/* A context may go to another thread, one after the other. */
static void *use(void *user)
{
        lg_ctx *c = user;
        return lg_keep(lg_full(c, LG_SHAPE(3), 2));
}

TEST_CASE(a_context_can_move_to_another_thread)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3));
        pthread_t thread;
        void *t;
        assert_int_equal(pthread_create(&thread, NULL, use, c), 0);
        assert_int_equal(pthread_join(thread, &t), 0);
        assert_list(lg_add(x, t), 0, 3, 3, 3);
        lg_free(t);
        lg_close(c);
}

/* ---- the threads of one context ---- */

/* ThreadSanitizer ends children that make threads, unless it is asked not to. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
        return "die_after_fork=0";
}

/* Whether the device computes on the threads of the context. */
static bool on_host(void)
{
        const char *name = getenv("LG_TEST_DEVICE");
        return !name || !strcmp(name, "cpu") || !strcmp(name, "shadow");
}

static lg_module *mlp(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 3 * 24 * 24, 300), lg_nn_relu(c),
                                lg_nn_dropout(c, 0.2), lg_nn_linear(c, 300, 10));
}

static lg_module *cnn(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_conv2d(c, 3, 16, 3, .padding = 1), lg_nn_batch_norm2d(c, 16), lg_nn_relu(c),
                                lg_nn_max_pool2d(c, 2), lg_nn_conv2d(c, 16, 24, 3), lg_nn_flatten(c),
                                lg_nn_linear(c, 24 * 10 * 10, 10));
}

/* The images' rows as words that look at each other. */
static lg_tensor *attend(lg_module *m, lg_list in, void *user)
{
        lg_tensor *x = lg_reshape(in.items[0], LG_SHAPE(-1, 72, 24));
        lg_tensor *order = lg_argsort(lg_sum(x, .dims = LG_DIMS(2)), 1);
        (void)user;
        x = lg_add(x, lg_embedding(order, lg_parameter(m, "places")));
        lg_tensor *seen = lg_softmax(lg_matmul(x, lg_transpose(x, 1, 2)), 2);
        return lg_sum(lg_matmul(seen, x), .dims = LG_DIMS(1));
}

static lg_module *attention(lg_ctx *c)
{
        lg_module *m = lg_nn_module(c, "Attention", .forward = attend);
        lg_module_add_parameter(m, "places", lg_normal(c, 0, 1, LG_SHAPE(72, 24)));
        return lg_nn_sequential(c, m, lg_nn_layer_norm(c, LG_SHAPE(24)), lg_nn_linear(c, 24, 4000), lg_nn_gelu(c),
                                lg_nn_linear(c, 4000, 10));
}

typedef struct run {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
} run;

static run begin(lg_module *make(lg_ctx *), int threads)
{
        run r = {.c = lg_open(.seed = 1, .threads = threads)};
        test_device(r.c);
        lg_set_deterministic(r.c, true);
        r.net = make(r.c);
        r.opt = lg_adam(r.c, lg_parameters(r.net), 1e-3);
        return r;
}

static void steps(run r, int count)
{
        for (int i = 0; i < count; i++) {
                lg_scope s = lg_scope_begin(r.c);
                lg_tensor *x = lg_normal(r.c, 0, 1, LG_SHAPE(32, 3, 24, 24));
                lg_tensor *y = lg_randint(r.c, 0, 10, LG_SHAPE(32));
                lg_zero_grad(r.opt);
                lg_backward(lg_cross_entropy(lg_forward(r.net, x), y));
                lg_step(r.opt);
                lg_scope_end(r.c, s);
        }
}

/* Of all bits of the parameters. */
static uint64_t hash_of(run r)
{
        uint64_t hash = 0xcbf29ce484222325;
        lg_list all = lg_parameters(r.net);
        for (int64_t i = 0; i < all.count; i++) {
                const size_t bytes = (size_t)lg_numel(all.items[i]) * sizeof(float);
                unsigned char *p = malloc(bytes);
                lg_read(all.items[i], p, LG_F32, bytes);
                for (size_t k = 0; k < bytes; k++)
                        hash = (hash ^ p[k]) * 0x100000001b3;
                free(p);
        }
        assert_ok(r.c);
        return hash;
}

static lg_module *(*const nets[])(lg_ctx *) = {mlp, cnn, attention};
#define NETS (sizeof nets / sizeof *nets)

TEST_CASE(any_number_of_threads_gives_the_same_bits)
{
        static const int threads[] = {1, 2, 3, 4, 7};
        if (!on_host())
                skip();
        for (size_t n = 0; n < NETS; n++) {
                uint64_t first = 0;
                for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
                        run r = begin(nets[n], threads[t]);
                        steps(r, 2);
                        lg_set_threads(r.c, threads[(t + 2) % 5]);
                        steps(r, 1);
                        uint64_t hash = hash_of(r);
                        first = t ? first : hash;
                        assert_int_equal(hash, first);
                        lg_close(r.c);
                }
        }
}

/* ---- fork ---- */

/* f makes the same of its argument in a child as here, at the same time. */
static void same_in_a_child(uint64_t f(void *), void *user)
{
        int ends[2];
        uint64_t here, there = 0;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0)
                alarm(60);
        here = f(user);
        if (child == 0)
                _exit(write(ends[1], &here, sizeof here) != sizeof here);
        child_ends_well(child);
        assert_int_equal(read(ends[0], &there, sizeof there), sizeof there);
        assert_int_equal(here, there);
        close(ends[0]);
        close(ends[1]);
}

static uint64_t train_on(void *user)
{
        run *r = user;
        steps(*r, 2);
        uint64_t hash = hash_of(*r);
        lg_close(r->c);
        return hash;
}

TEST_CASE(parent_and_child_train_on)
{
        if (!forks || !on_host())
                skip();
        for (size_t n = 0; n < NETS; n++) {
                run r = begin(nets[n], 3);
                steps(r, 2);
                same_in_a_child(train_on, &r);
        }
}

static lg_loader *begin_batches(lg_ctx *c)
{
        lg_dataset *numbers = lg_dataset_list(c, LG_LIST(lg_arange(c, 0, 103, 1, .device = lg_cpu())));
        return lg_loader_open(c, numbers, 5, .shuffle = true, .workers = 3);
}

/* What is left of an epoch, whose context it closes. */
static uint64_t rest_of_epoch(void *user)
{
        uint64_t hash = 0;
        lg_ctx *c = NULL;
        for (lg_batch b; lg_loader_next((lg_loader *)user, &b);) {
                double x[5];
                const int64_t n = read_all(b.x, x, 5);
                c = lg_ctx_of(b.x);
                for (int64_t i = 0; i < n; i++)
                        hash = hash * 1000003 + (uint64_t)x[i];
        }
        assert_ok(c);
        lg_close(c);
        return hash;
}

static uint64_t only_close(void *c)
{
        lg_close(c);
        return 0;
}

/* Whatever its threads do at that moment. */
TEST_CASE(a_loader_goes_on_in_a_child)
{
        if (!forks || !forks_among_starts || !on_host())
                skip();
        for (int taken = 0; taken < 20; taken++) {
                lg_ctx *c = lg_open(.seed = 1);
                lg_batch b;
                test_device(c);
                lg_loader *batches = begin_batches(c);
                for (int i = 0; i < taken; i++)
                        assert_true(lg_loader_next(batches, &b));
                if (taken % 4 == 3)
                        same_in_a_child(only_close, c);
                else
                        same_in_a_child(rest_of_epoch, batches);
        }
}

static int steps_made;
static bool enough;

static void *train_on_and_on(void *user)
{
        run r = begin(mlp, 3);
        while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
                steps(r, 1);
                __atomic_fetch_add(&steps_made, 1, __ATOMIC_RELAXED);
        }
        (void)user;
        lg_close(r.c);
        return NULL;
}

TEST_CASE(a_child_computes_while_its_parent_trains)
{
        pthread_t thread;
        if (!forks || !on_host())
                skip();
        assert_int_equal(pthread_create(&thread, NULL, train_on_and_on, NULL), 0);
        for (int i = 0; i < 20; i++) { /* while threads start, where that may be, and later */
                const int made = __atomic_load_n(&steps_made, __ATOMIC_RELAXED);
                while (__atomic_load_n(&steps_made, __ATOMIC_RELAXED) < made + (forks_among_starts ? i % 3 : 1))
                        sched_yield();
                pid_t child = fork();
                if (child == 0) {
                        alarm(60);
                        run r = begin(mlp, 3);
                        steps(r, 1);
                        bool ok = !lg_error(r.c);
                        lg_close(r.c);
                        _exit(!ok);
                }
                child_ends_well(child);
        }
        __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(thread, NULL), 0);
}
