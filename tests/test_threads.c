/* test_threads.c - contexts in several threads at once know nothing of each other. */
#include <pthread.h>
#include "test.h"

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
        lg_default_device(c, lg_parse_device(c, name ? name : "cpu"));
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

static void threads_do_not_disturb_each_other(void **state)
{
        (void)state;
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
        return lg_keep(lg_full(c, 2, LG_SHAPE(3)));
}

static void a_context_can_move_to_another_thread(void **state)
{
        (void)state;
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

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(threads_do_not_disturb_each_other),
                                           cmocka_unit_test(a_context_can_move_to_another_thread)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
