/* test_exports.c - memory that other frameworks have by DLPack: given back early, late, after lg_close, in any thread.
 */
#include <pthread.h>
#include "dlpack.h"

static int64_t used(lg_ctx *c)
{
        return lg_memory_stats(c, lg_cpu()).used;
}

TEST_CASE(memory_that_went_out_stays)
{
        failing f = {0};
        for (int when = 0; when < 3;
             when++) { /* given back before the tensor ends, before the context does, after it */
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                int64_t before = used(c);
                lg_tensor *x = lg_keep(lg_full(c, LG_SHAPE(100, 100), 7));
                lg_tensor *turned = lg_keep(lg_transpose(x, 0, 1));
                DLManagedTensor *m = lg_to_dlpack(x), *other = lg_to_dlpack(turned);
                end(other);
                lg_free(turned);
                if (when == 0)
                        end(m);
                lg_free(x);
                lg_scope s = lg_scope_begin(c);
                for (int i = 0; i < 10; i++)
                        drop(lg_full(c, LG_SHAPE(100, 100), -1));
                assert_true(when == 0 || element(m, 70, 1) == 7);
                if (when == 1)
                        end(m);
                lg_scope_end(c, s);
                if (when < 2)
                        assert_int_equal(used(c), before);
                else
                        assert_true(used(c) >= before + 40000);
                lg_close(c);
                if (when == 2) {
                        assert_true(f.bytes > 40000 && element(m, 70, 1) == 7);
                        end(m);
                }
                assert_int_equal(f.bytes, 0);
                assert_int_equal(f.allocs, f.frees);
        }
}

static void count(void *user)
{
        ++*(int *)user;
}

TEST_CASE(borrowed_memory_that_went_out)
{
        float data[4] = {1, 2, 3, 4};
        int released = 0;
        lg_ctx *c = open_ctx();
        DLManagedTensor *m = lg_to_dlpack(lg_borrow(c, data, count, &released, LG_SHAPE(4), .device = lg_cpu()));
        lg_scope s = lg_scope_begin(c);
        lg_tensor *inner = lg_borrow(c, data, count, &released, LG_SHAPE(4), .device = lg_cpu());
        DLManagedTensor *n = lg_to_dlpack(inner);
        assert_true(m->dl_tensor.data == data && n->dl_tensor.data == data);
        lg_scope_end(c, s);
        end(n);
        lg_scope_end(c, lg_scope_begin(c));
        lg_empty_cache(c);
        assert_int_equal(released, 0); /* these call nothing of the user's */
        lg_free(lg_keep(lg_scalar(c, 1)));
        assert_int_equal(released, 1);
        lg_close(c);
        assert_int_equal(released, 1);
        end(m);
        assert_int_equal(released, 2);
}

/* The last thing that a full memory has is what came back. */
TEST_CASE(what_came_back_is_used_before_memory_runs_out)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_keep(lg_zeros(c, LG_SHAPE(1 << 20), .device = lg_cpu()));
        DLManagedTensor *m = lg_to_dlpack(x);
        lg_free(x);
        lg_set_memory_limit(c, lg_cpu(), used(c) + 65536);
        assert_null(lg_zeros(c, LG_SHAPE(1 << 20), .device = lg_cpu()));
        assert_error(c, LG_ERR_MEMORY, "out of memory on cpu");
        end(m);
        assert_non_null(lg_zeros(c, LG_SHAPE(1 << 20), .device = lg_cpu()));
        assert_ok(c);
        lg_close(c);
}

static lg_ctx *victim;

static void close_victim(void *user)
{
        ++*(int *)user;
        lg_close(victim);
}

TEST_CASE(a_release_function_does_not_close_the_context)
{
        float data[2] = {1, 2};
        int released = 0;
        lg_ctx *c = victim = open_ctx();
        lg_tensor *x = lg_keep(lg_borrow(c, data, close_victim, &released, LG_SHAPE(2), .device = lg_cpu()));
        DLManagedTensor *m = lg_to_dlpack(x);
        lg_free(x);
        end(m);
        assert_null(lg_from_dlpack(c, NULL));
        assert_int_equal(released, 1);
        assert_error(c, LG_ERR_STATE, "lg_close: a call that uses the context has not returned");
        lg_close(c);
}

/* A tensor over an export, exported again, and so on: each keeps the one before. */
TEST_CASE(a_chain_ends_with_its_last_export)
{
        failing f = {0};
        for (int kind = 0; kind < 4; kind++) { /* of one context or two; which are closed before or after */
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f)), *other = kind / 2 ? c : lg_open(FAILING(&f));
                lg_tensor *y = counting(c, LG_SHAPE(3, 4), LG_F32);
                void *data = NULL;
                for (int i = 0; i < 5; i++) {
                        DLManagedTensor *m = lg_to_dlpack(lg_transpose(y, 0, 1));
                        assert_true(!data || m->dl_tensor.data == data);
                        data = m->dl_tensor.data;
                        y = lg_from_dlpack(i % 2 ? c : other, m);
                        assert_non_null(y);
                }
                DLManagedTensor *last = lg_to_dlpack(y);
                assert_true(element(last, 1, 2) == 9 && last->dl_tensor.data == data);
                if (kind % 2)
                        end(last);
                lg_close(c);
                if (other != c)
                        lg_close(other);
                if (kind % 2 == 0) {
                        assert_true(f.bytes > 0 && element(last, 1, 2) == 9);
                        end(last);
                }
                assert_int_equal(f.bytes, 0);
                assert_int_equal(f.allocs, f.frees);
        }
}

/* ---- threads ---- */

#define THREADS 4
#define EACH 50

typedef struct job {
        DLManagedTensor *m[EACH];
        bool wrong;
} job;

static void *give_back(void *user)
{
        job *j = user;
        for (int i = 0; i < EACH; i++) {
                const float *p = j->m[i]->dl_tensor.data;
                j->wrong = j->wrong || p[0] != i || p[63] != i;
                j->m[i]->deleter(j->m[i]);
        }
        return NULL;
}

TEST_CASE(any_thread_gives_back_at_any_time)
{
        failing f = {0};
        for (int round = 0; round < 6; round++) {
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                job jobs[THREADS] = {{.wrong = false}};
                pthread_t threads[THREADS];
                lg_scope s = lg_scope_begin(c);
                for (int i = 0; i < THREADS * EACH; i++)
                        jobs[i / EACH].m[i % EACH] = lg_to_dlpack(lg_full(c, LG_SHAPE(64), i % EACH));
                assert_ok(c);
                lg_scope_end(c, s);
                for (int i = 0; i < THREADS; i++)
                        assert_int_equal(pthread_create(&threads[i], NULL, give_back, &jobs[i]), 0);
                for (int i = 0; i < 40 * round; i++) { /* the context goes on, and is closed sooner or later */
                        s = lg_scope_begin(c);
                        end(lg_to_dlpack(lg_full(c, LG_SHAPE(64), -1)));
                        lg_scope_end(c, s);
                }
                assert_ok(c);
                lg_close(c);
                for (int i = 0; i < THREADS; i++) {
                        assert_int_equal(pthread_join(threads[i], NULL), 0);
                        assert_false(jobs[i].wrong);
                }
                assert_int_equal(f.bytes, 0);
        }
}

/* ---- failing memory ---- */

TEST_CASE(an_export_without_memory)
{
        bool done = false;
        for (int64_t n = 1; !done; n++) {
                failing f = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                DLManagedTensor *m[300] = {NULL};
                lg_tensor *x = lg_full(c, LG_SHAPE(3), 2);
                arm(&f, n, true);
                int i = 0;
                while (i < 300 && (m[i] = lg_to_dlpack(x)))
                        i++;
                done = i == 300;
                assert_true(done || lg_error_code_of(c) == LG_ERR_MEMORY);
                lg_close(c);
                while (i-- > 0)
                        end(m[i]);
                assert_int_equal(f.bytes, 0);
        }
}
