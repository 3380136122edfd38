/* test_kernels_parallel.c - loops over the threads of a queue: every item comes once, whoever helps, and threads come,
 * sleep and go. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../kernels/cpu/engine.h"
#include "forks.h"
#include "status.h"
#include "tests.h"

#define MOST_THREADS 16
#define PATIENCE 20 /* seconds after which something that never comes is an error */

/* ThreadSanitizer ends children that make threads, unless it is asked not to. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
        return "die_after_fork=0";
}

/* ---- threads that the system refuses ---- */

int __real_pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*f)(void *), void *user);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*f)(void *), void *user);

static _Thread_local int left = -1; /* so many more threads; -1: no limit */
static _Thread_local bool no_small_stacks;
static _Thread_local int asked;

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*f)(void *), void *user)
{
        asked++;
        if (no_small_stacks && a)
                return EINVAL;
        if (left == 0)
                return EAGAIN;
        left -= left > 0;
        return __real_pthread_create(id, a, f, user);
}

/* ---- what loops do here ---- */

static double seconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct loop {
        int64_t n, grain;
        int threads;
        int *met;                  /* how often each item came; not atomic: two threads at one item are a race */
        int64_t sum[MOST_THREADS]; /* of each thread, not atomic either */
        atomic_int wrong;
} loop;

static void count_items(const void *user, int64_t first, int64_t end, int thread)
{
        loop *l = (loop *)(uintptr_t)user;
        bool whole = end - first == l->grain || end == l->n;
        if (thread < 0 || thread >= l->threads || first % l->grain || end <= first || !whole) {
                atomic_fetch_add(&l->wrong, 1);
                return;
        }
        for (int64_t i = first; i < end; i++)
                l->met[i]++;
        l->sum[thread] += end - first;
}

static void run_loop(lg_queue *q, int64_t n, int64_t grain)
{
        loop l = {.n = n, .grain = grain, .threads = q->threads, .met = calloc((size_t)n + 1, sizeof(int))};
        int64_t sum = 0;
        lg_parallel(q, n, grain, count_items, &l);
        for (int64_t i = 0; i < n; i++)
                assert_int_equal(l.met[i], 1);
        for (int i = 0; i < MOST_THREADS; i++)
                sum += l.sum[i];
        assert_int_equal(sum, n);
        assert_int_equal(l.wrong, 0);
        free(l.met);
}

/* All parts wait for each other: so each is on a thread of its own. */
typedef struct meeting {
        int parts;
        atomic_int here, late;
        atomic_uint seen; /* a bit for each number of a thread */
} meeting;

static void meet(const void *user, int64_t first, int64_t end, int thread)
{
        meeting *m = (meeting *)(uintptr_t)user;
        const double start = seconds();
        (void)first, (void)end;
        atomic_fetch_add(&m->here, 1);
        atomic_fetch_or(&m->seen, 1u << thread);
        while (atomic_load(&m->here) < m->parts && !atomic_load(&m->late)) {
                sched_yield();
                if (seconds() - start > PATIENCE)
                        atomic_store(&m->late, 1);
        }
}

static void delay_by(lg_engine *e, int64_t nanoseconds)
{
        for (int i = 1; i < MOST_THREADS; i++)
                e->pool.delay[i] = nanoseconds;
}

/* The numbers of the threads that meet, as bits; 0: they do not all come. */
static unsigned who_meets(lg_queue *q, int parts)
{
        meeting m = {.parts = parts};
        delay_by(q->memo, 0); /* however busy the machine is */
        lg_parallel(q, parts, 1, meet, &m);
        return m.late ? 0 : m.seen;
}

/* Waits until all workers sleep. */
static void assert_asleep(void)
{
        for (const double start = seconds(); !others_sleep(); sched_yield())
                assert_true(seconds() - start < PATIENCE);
}

/* ---- the tests ---- */

TEST_CASE(every_item_comes_once)
{
        static const int64_t ns[] = {0, 1, 2, 3, 5, 7, 64, 1000, 12345}, grains[] = {1, 2, 3, 7, 64, 5000, INT64_MAX};
        static const int threads[] = {1, 2, 3, 4, 7, 16};
        lg_engine e = {0};
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
                for (size_t n = 0; n < sizeof ns / sizeof *ns; n++)
                        for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
                                run_loop(&(lg_queue){.threads = threads[t], .memo = &e}, ns[n], grains[g]);
                                run_loop(&(lg_queue){.threads = threads[t]}, ns[n], grains[g]); /* no engine */
                        }
        lg_pool_close(&e.pool);
        lg_pool_close(&e.pool); /* of a pool without threads */
}

TEST_CASE(grains_are_worth_a_thread)
{
        for (int64_t cost = -1; cost < 100000; cost++) {
                int64_t g = lg_grain(cost), one = cost < 1 ? 1 : cost;
                assert_true(g >= 1 && g * one >= lg__parallel_min / 2);
                assert_true(g == 1 || (g - 1) * one < lg__parallel_min / 2);
        }
        assert_int_equal(lg_grain(INT64_MAX), 1);
}

TEST_CASE(threads_help_awake_and_asleep)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 3, .memo = &e};
        for (int i = 0; i < 200; i++) {
                assert_int_equal(who_meets(&q, 3), 7);
                if (i % 10 == 0)
                        assert_asleep();
        }
        lg_pool_close(&e.pool);
}

TEST_CASE(small_work_stays_with_the_caller)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 4, .memo = &e};
        asked = 0;
        run_loop(&q, 1999, 1000);
        run_loop(&(lg_queue){.threads = 1, .memo = &e}, 1999, 1);
        assert_int_equal(asked, 0);
        run_loop(&q, 2000, 1000);
        assert_true(asked > 0 && e.pool.workers == 1); /* there are two ranges */
        lg_pool_close(&e.pool);
}

/* Which thread ran each range of a loop in which all threads meet. */
typedef struct places {
        meeting all;
        int thread[MOST_THREADS];
} places;

static void meet_at(const void *user, int64_t first, int64_t end, int thread)
{
        places *p = (places *)(uintptr_t)user;
        p->thread[first] = thread;
        meet(&p->all, first, end, thread);
}

TEST_CASE(a_thread_begins_with_its_share)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 5, .memo = &e};
        for (int i = 0; i < 50; i++) {
                places p = {.all = {.parts = 5}};
                delay_by(&e, 0);
                lg_parallel(&q, 5, 1, meet_at, &p);
                for (int t = 0; t < 5; t++)
                        assert_int_equal(p.thread[t], t);
        }
        lg_pool_close(&e.pool);
}

/* Keeps the calling thread and worker 1 on processors of their own, so that the worker may poll; false if there is only
 * one. Restores the affinity of the calling thread if `restore`. */
static bool keep_apart(const lg_pool *p, bool restore)
{
        static cpu_set_t was;
        cpu_set_t one;
        int cpu[2], n = 0;
        if (restore)
                return pthread_setaffinity_np(pthread_self(), sizeof was, &was) == 0;
        assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof was, &was), 0);
        for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
                if (CPU_ISSET(i, &was))
                        cpu[n++] = i;
        for (int i = 0; n == 2 && i < 2; i++) {
                CPU_ZERO(&one);
                CPU_SET(cpu[i], &one);
                assert_int_equal(pthread_setaffinity_np(i ? p->id[0] : pthread_self(), sizeof one, &one), 0);
        }
        return n == 2;
}

/* The threads of a loop of 100 ranges when no measurement is due, as bits; those of the bits `expected` wait for each
 * other. */
static unsigned who_pays(lg_queue *q, int expected)
{
        lg_pool *p = &((lg_engine *)q->memo)->pool;
        meeting m = {.parts = __builtin_popcount((unsigned)expected)};
        p->measured = 8;
        p->unmeasured = 0;
        lg_parallel(q, 100, 1, meet, &m);
        return m.late ? 0 : m.seen;
}

/* A loop that is shorter than a thread is away stays with those that are nearer. */
TEST_CASE(threads_that_do_not_pay)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 4, .memo = &e};
        assert_int_equal(who_meets(&q, 4), 15);
        delay_by(&e, 1000000);
        assert_int_equal(who_pays(&q, 1), 1);
        delay_by(&e, 1000); /* less than a range takes */
        assert_int_equal(who_pays(&q, 15), 15);
        e.pool.delay[3] = 1000000;
        assert_int_equal(who_pays(&q, 7), 7);
        e.pool.delay[1] = 98000; /* two shares of 50 ranges take 100 us each */
        assert_int_equal(who_pays(&q, 3), 3);
        e.pool.delay[1] = 101000;
        assert_int_equal(who_pays(&q, 1), 1);
        lg_pool_close(&e.pool);
}

TEST_CASE(delays_are_measured_again)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 2, .memo = &e};
        assert_int_equal(who_meets(&q, 2), 3);
        delay_by(&e, 1000000);
        e.pool.measured = 8;
        e.pool.unmeasured = 0;
        const double start = seconds();
        if (keep_apart(&e.pool, false)) {
                while (e.pool.measured == 8 && seconds() - start < PATIENCE) {
                        meeting m = {.parts = e.pool.unmeasured < 64 ? 1 : 2};
                        lg_parallel(&q, 100, 1, meet, &m);
                        assert_true(e.pool.unmeasured >= 64 || e.pool.measured > 8 || m.seen == 1);
                }
                assert_true(e.pool.measured == 9 && e.pool.unmeasured == 0);
                assert_true(e.pool.delay[1] > 0 && e.pool.delay[1] <= 1125000);
        }
        keep_apart(&e.pool, true);
        lg_pool_close(&e.pool);
}

typedef struct nest {
        lg_queue *q;
        pthread_t caller;
        atomic_int items, wrong;
} nest;

static void inner(const void *user, int64_t first, int64_t end, int thread)
{
        nest *n = (nest *)(uintptr_t)user;
        atomic_fetch_add(&n->items, (int)(end - first));
        if (thread != 0 || !pthread_equal(pthread_self(), n->caller))
                atomic_fetch_add(&n->wrong, 1);
}

static void outer(const void *user, int64_t first, int64_t end, int thread)
{
        nest *of = (nest *)(uintptr_t)user, n = {.q = of->q, .caller = pthread_self()};
        (void)first, (void)end, (void)thread;
        lg_parallel(n.q, 100, 3, inner, &n);
        atomic_fetch_add(&of->items, n.items);
        atomic_fetch_add(&of->wrong, n.wrong);
}

TEST_CASE(loops_within_loops)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 4, .memo = &e};
        nest n = {.q = &q};
        for (int i = 0; i < 50; i++)
                lg_parallel(&q, 20, 1, outer, &n);
        assert_int_equal(n.items, 50 * 20 * 100);
        assert_int_equal(n.wrong, 0);
        lg_pool_close(&e.pool);
}

static void *many_loops(void *user)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 3, .memo = &e};
        (void)user;
        for (int i = 0; i < 500; i++)
                run_loop(&q, 40 + i % 7, 1 + i % 3);
        lg_pool_close(&e.pool);
        return NULL;
}

TEST_CASE(queues_in_several_threads)
{
        pthread_t id[4];
        for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&id[i], NULL, many_loops, NULL), 0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_join(id[i], NULL), 0);
}

TEST_CASE(more_threads_and_fewer)
{
        static const int threads[] = {1, 4, 2, 7, 3, 1, 16, 2};
        lg_engine e = {0};
        lg_queue q = {.memo = &e};
        int most = 0;
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
                q.threads = threads[i];
                most = most < q.threads ? q.threads : most;
                for (int k = 0; k < 5; k++) {
                        run_loop(&q, 1000, 3);
                        assert_int_equal(who_meets(&q, q.threads), (1u << q.threads) - 1);
                        if (k == 2)
                                assert_asleep();
                }
                assert_int_equal(e.pool.workers, most - 1);
        }
        q.threads = 100000; /* as many as there are ranges */
        run_loop(&q, 10, 1);
        assert_int_equal(e.pool.workers, most - 1);
        lg_pool_close(&e.pool);
}

TEST_CASE(threads_that_cannot_be_made)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 4, .memo = &e};
        left = 0;
        asked = 0;
        run_loop(&q, 1000, 1);
        const int tries = asked;
        assert_true(tries >= 1 && tries <= 2 && e.pool.workers == 0);
        left = 1;
        run_loop(&q, 1000, 1);
        assert_int_equal(asked, tries); /* not again, as long as nothing else is asked for */
        q.threads = 3;
        assert_int_equal(who_meets(&q, 2), 3);
        run_loop(&q, 1000, 1);
        assert_int_equal(e.pool.workers, 1);
        left = -1;
        q.threads = 4;
        assert_int_equal(who_meets(&q, 4), 15);
        lg_pool_close(&e.pool);
        no_small_stacks = true;
        assert_int_equal(who_meets(&q, 4), 15);
        no_small_stacks = false;
        lg_pool_close(&e.pool);
}

TEST_CASE(pools_leave_nothing)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 3, .memo = &e};
        long threads = 0, bytes = 0;
        for (int i = 0; i < 2000; i++) {
                assert_int_equal(who_meets(&q, 3), 7);
                lg_pool_close(&e.pool);
                if (i == 100)
                        bytes = status_of("VmSize:"), threads = status_of("Threads:");
        }
        assert_int_equal(status_of("Threads:"), threads);
        assert_true(status_of("VmSize:") <
                    bytes + 65536); /* KiB; 3,798 threads that are left have 256 each; sanitizers take some */
}

/* A signal that the program has blocked waits, although there are other threads; they block it, too. */
TEST_CASE(signals_are_for_the_program)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 3, .memo = &e};
        sigset_t usr1, pending, was;
        assert_int_equal(who_meets(&q, 3), 7);
        sigemptyset(&usr1);
        sigaddset(&usr1, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &usr1, &was);
        assert_false(sigismember(&was, SIGUSR1));
        kill(getpid(), SIGUSR1);
        assert_int_equal(who_meets(&q, 3), 7);
        assert_true(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
        signal(SIGUSR1, SIG_IGN);
        pthread_sigmask(SIG_SETMASK, &was, NULL);
        signal(SIGUSR1, SIG_DFL);
        lg_pool_close(&e.pool);
}

TEST_CASE(idle_threads_sleep)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 4, .memo = &e};
        assert_int_equal(who_meets(&q, 4), 15);
        assert_asleep();
        lg_pool_close(&e.pool);
}

/* ---- fork ---- */

/* What a child does with a queue of its parent; 0: all is well. */
static int in_child(lg_queue *q)
{
        alarm(PATIENCE);
        if (who_meets(q, q->threads) != (1u << q->threads) - 1)
                return 1;
        run_loop(q, 1000, 3);
        lg_pool_close(&((lg_engine *)q->memo)->pool);
        return 0;
}

TEST_CASE(a_child_makes_threads_of_its_own)
{
        lg_engine e = {0};
        lg_queue q = {.threads = 3, .memo = &e};
        if (!forks)
                skip();
        for (int i = 0; i < 5; i++) {
                assert_int_equal(who_meets(&q, 3), 7);
                pid_t child = fork();
                if (child == 0)
                        _exit(in_child(&q));
                child_ends_well(child);
                child = fork();
                if (child == 0) { /* that only closes */
                        alarm(PATIENCE);
                        lg_pool_close(&e.pool);
                        _exit(0);
                }
                child_ends_well(child);
        }
        assert_int_equal(who_meets(&q, 3), 7);
        lg_pool_close(&e.pool);
}

typedef struct busy {
        lg_queue q;
        lg_engine e;
        atomic_int loops;
        atomic_bool stop;
} busy;

static void *keep_busy(void *user)
{
        busy *b = user;
        while (!atomic_load(&b->stop)) {
                who_meets(&b->q, 3);
                atomic_fetch_add(&b->loops, 1);
        }
        return NULL;
}

TEST_CASE(a_child_of_a_busy_process)
{
        static busy b;
        pthread_t id;
        if (!forks)
                skip();
        b.q = (lg_queue){.threads = 3, .memo = &b.e};
        assert_int_equal(pthread_create(&id, NULL, keep_busy, &b), 0);
        for (int i = 0; i < 40; i++) { /* while threads start, where that may be, and later */
                for (const int loops = atomic_load(&b.loops);
                     atomic_load(&b.loops) < loops + (forks_among_starts ? i % 3 : 1);)
                        sched_yield();
                pid_t child = fork();
                if (child == 0)
                        _exit(in_child(&b.q));
                child_ends_well(child);
        }
        atomic_store(&b.stop, true);
        assert_int_equal(pthread_join(id, NULL), 0);
        lg_pool_close(&b.e.pool);
}
