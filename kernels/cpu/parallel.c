/* parallel.c - worker threads of a queue, and the loops that they share.
 *
 * The caller opens a region: it stores the number of workers that may enter, increments the epoch that workers poll,
 * and then takes ranges like a worker. When none is left, it closes the region, so that no other worker enters, and
 * waits for those inside; late workers are not waited for. Threads with even numbers, the caller's included, take
 * ranges from the front, the others from the back: with two threads, each mostly gets the part of a tensor that it had
 * in the last loop and that its cache still holds.
 *
 * A waiting thread polls for a short time, since regions often follow each other closely, and then sleeps. A worker on
 * the caller's core sleeps at once, since polling would delay the caller: next to a busy process, a step of a small
 * network took 220 us instead of 140 without this rule.
 *
 * A child of fork() has a copy of the struct but no threads. The stored `era` differs from era_now() there, and workers
 * are created anew. */
#include "engine.h"
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if LG_FUTEX
#include <sys/syscall.h>
#endif

int64_t lg__parallel_min = 16384;

#define SPIN_NS 30000
#define STACK_BYTES ((size_t)256 << 10)

/* Bits of the word `inside`: workers in the region, free places, whether the caller sleeps until all have left. */
#define INSIDE 0xFFFFu
#define PLACE 0x10000u
#define PLACES 0x7FFF0000u
#define AWAITED 0x80000000u

/* Increments of the word `taken`, for a range taken from the front or from the back. */
#define FROM_FRONT UINT64_C(1)
#define FROM_BACK (UINT64_C(1) << 32)

/* ---- processes ---- */

/* Incremented in every child of fork(). 0: the system refused to register in_child; the process ID is used instead. */
static atomic_uint generation = 1;

static void in_child(void)
{
        atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
        if (pthread_atfork(NULL, NULL, in_child) != 0)
                atomic_store_explicit(&generation, 0, memory_order_relaxed);
}

static unsigned era_now(void)
{
        unsigned g = atomic_load_explicit(&generation, memory_order_relaxed);
        return g ? g : (unsigned)getpid();
}

/* Resets the pool to its state before the first region in this process. */
static void begin(lg_pool *p)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, watch_forks);
        memset(p, 0, sizeof *p);
#if !LG_FUTEX
        p->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        p->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
#endif
        p->era = era_now();
}

/* ---- waiting ---- */

#if LG_FUTEX
/* Constants of <linux/futex.h>, which some compilers do not find. */
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

static void sleep_while(lg_pool *p, atomic_uint *word, unsigned value)
{
        (void)p;
        while (atomic_load(word) == value)
                syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(lg_pool *p, atomic_uint *word, int threads)
{
        (void)p;
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}
#else
static void sleep_while(lg_pool *p, atomic_uint *word, unsigned value)
{
        pthread_mutex_lock(&p->lock);
        while (atomic_load(word) == value)
                pthread_cond_wait(&p->changed, &p->lock);
        pthread_mutex_unlock(&p->lock);
}

static void wake(lg_pool *p, atomic_uint *word, int threads)
{
        (void)word, (void)threads; /* unused: all waiters share one condition */
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
}
#endif

static inline void pause_thread(void)
{
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns the core on which the calling thread runs, or -1 if unknown. */
static int core_now(void)
{
#ifdef __linux__
        return sched_getcpu();
#else
        return -1;
#endif
}

/* Returns whether the calling thread runs on *core: then the thread that needs that core waits for this one. */
static bool shares_core(const atomic_int *core)
{
        const int c = atomic_load_explicit(core, memory_order_relaxed);
        return c >= 0 && c == core_now();
}

/* Polls *word for SPIN_NS. Returns false if the word still has `value` then. */
static bool changes(const atomic_uint *word, unsigned value)
{
        int64_t end = 0;
        for (unsigned i = 1; atomic_load_explicit(word, memory_order_acquire) == value; i++) {
                pause_thread();
                if (i % 16)
                        continue;
                int64_t now = nanoseconds();
                if (end == 0)
                        end = now + SPIN_NS;
                else if (now >= end)
                        return false;
        }
        return true;
}

/* ---- regions ---- */

static void take_ranges(lg_pool *p, int thread)
{
        const bool back = thread % 2;
        for (;;) {
                const uint64_t t =
                        atomic_fetch_add_explicit(&p->taken, back ? FROM_BACK : FROM_FRONT, memory_order_relaxed);
                const int64_t from_front = (int64_t)(t % FROM_BACK), from_back = (int64_t)(t / FROM_BACK);
                if (from_front + from_back >= p->ranges)
                        return;
                const int64_t first = (back ? p->ranges - 1 - from_back : from_front) * p->grain;
                p->fn(p->job, first, p->n - first > p->grain ? first + p->grain : p->n, thread);
        }
}

/* Takes ranges of the open region, if a region is open and has a free place. */
static void help(lg_pool *p)
{
        unsigned state = atomic_load_explicit(&p->inside, memory_order_relaxed);
        while ((state & PLACES) && !atomic_compare_exchange_weak_explicit(&p->inside, &state, state - PLACE + 1,
                                                                          memory_order_acquire, memory_order_relaxed))
                ;
        if (!(state & PLACES))
                return;
        take_ranges(p, (int)((state & PLACES) / PLACE));
        state = atomic_fetch_sub_explicit(&p->inside, 1, memory_order_release);
        if (state == (AWAITED | 1))
                wake(p, &p->inside, 1);
}

static void *work(void *user)
{
        lg_pool *p = user;
        for (;;) {
                const unsigned seen = atomic_load_explicit(&p->epoch, memory_order_acquire);
                if (atomic_load_explicit(&p->stop, memory_order_relaxed))
                        return NULL;
                help(p);
                if (!shares_core(&p->caller_core) && changes(&p->epoch, seen))
                        continue;
                /* Sequentially consistent, as in raise_epoch(): either raise_epoch() counts this worker as asleep, or
                 * sleep_while() sees the new epoch. */
                atomic_fetch_add(&p->asleep, 1);
                sleep_while(p, &p->epoch, seen);
                atomic_fetch_sub(&p->asleep, 1);
        }
}

/* Notifies `wanted` workers of a new epoch: wakes sleeping ones if fewer are awake. */
static void raise_epoch(lg_pool *p, int wanted)
{
        atomic_fetch_add(&p->epoch, 1);
        const int asleep = wanted - (p->workers - atomic_load(&p->asleep));
        if (asleep > 0)
                wake(p, &p->epoch, asleep);
}

static void open_region(lg_pool *p, int places)
{
        atomic_store_explicit(&p->taken, 0, memory_order_relaxed);
        atomic_store_explicit(&p->caller_core, core_now(), memory_order_relaxed);
        atomic_store_explicit(&p->inside, (unsigned)places * PLACE, memory_order_release);
        raise_epoch(p, places);
}

static void close_region(lg_pool *p)
{
        unsigned state = atomic_fetch_and_explicit(&p->inside, INSIDE, memory_order_acquire) & INSIDE;
        while (state & INSIDE) {
                if (!changes(&p->inside, state) &&
                    atomic_compare_exchange_strong_explicit(&p->inside, &state, state | AWAITED, memory_order_acquire,
                                                            memory_order_acquire))
                        sleep_while(p, &p->inside, state | AWAITED);
                state = atomic_load_explicit(&p->inside, memory_order_acquire);
        }
}

/* ---- workers ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Starts a worker with a small stack, or with the default one if this fails: the thread-local storage of the program
 * may not fit into a small stack. */
static bool make_worker(lg_pool *p)
{
        int error = 1;
#ifndef SANITIZED
        pthread_attr_t small;
        if (pthread_attr_init(&small) == 0) {
                error = pthread_attr_setstacksize(&small, STACK_BYTES);
                if (!error)
                        error = pthread_create(&p->id[p->workers], &small, work, p);
                pthread_attr_destroy(&small);
        }
#endif
        if (error && pthread_create(&p->id[p->workers], NULL, work, p) != 0)
                return false;
        p->workers++;
        return true;
}

/* Creates workers until there are `wanted`, and returns the number available. Workers block all signals. */
static int make_workers(lg_pool *p, int wanted, int threads)
{
        sigset_t all, was;
        if (wanted > LG_MOST_WORKERS)
                wanted = LG_MOST_WORKERS;
        if (p->workers >= wanted || p->refused == threads)
                return p->workers < wanted ? p->workers : wanted;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &was);
        while (p->workers < wanted && make_worker(p))
                ;
        pthread_sigmask(SIG_SETMASK, &was, NULL);
        p->refused = p->workers < wanted ? threads : 0;
        return p->workers;
}

void lg_pool_close(lg_pool *p)
{
        if (p->era == era_now() && p->workers > 0) {
                atomic_store_explicit(&p->stop, true, memory_order_relaxed);
                raise_epoch(p, p->workers);
                for (int i = 0; i < p->workers; i++)
                        pthread_join(p->id[i], NULL);
        }
        memset(p, 0, sizeof *p);
}

/* ---- loops ---- */

/* Reserves the queue's worker pool for this call. Returns NULL if there is none or it is in use. */
static lg_pool *pool_enter(lg_queue *q)
{
        lg_engine *e = q->memo;
        if (!e)
                return NULL;
        if (e->pool.era != era_now())
                begin(&e->pool);
        return atomic_exchange_explicit(&e->pool.busy, true, memory_order_acquire) ? NULL : &e->pool;
}

static void run_region(lg_pool *p, int threads)
{
        const int places = make_workers(p, p->ranges < threads ? (int)p->ranges - 1 : threads - 1, threads);
        open_region(p, places);
        take_ranges(p, 0);
        close_region(p);
}

static bool run_with_others(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job)
{
        const int64_t ranges = n / grain + (n % grain > 0);
        lg_pool *p = ranges <= INT_MAX ? pool_enter(q) : NULL;
        if (!p)
                return false;
        p->fn = fn;
        p->job = job;
        p->n = n;
        p->grain = grain;
        p->ranges = ranges;
        run_region(p, q->threads);
        atomic_store_explicit(&p->busy, false, memory_order_release);
        return true;
}

void lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job)
{
        if (q->threads > 1 && n / 2 >= grain && run_with_others(q, n, grain, fn, job))
                return;
        for (int64_t first = 0; first < n; first += grain)
                fn(job, first, n - first > grain ? first + grain : n, 0);
}
