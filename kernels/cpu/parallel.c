/* parallel.c - worker threads of a queue, and the loops that they share.
 *
 * A loop of n items is cut into ranges, and the ranges into shares, one for each thread: thread t of T begins with the
 * t-th part of the ranges, so that loops that follow each other over tensors of one shape give each thread the part
 * that it has just written and that its cache still holds. A thread takes the ranges of its share from the front; when
 * none is left, it takes those of other shares from the back.
 *
 * The caller opens a region: it stores the loop, increments the epoch that workers poll, and then takes ranges like a
 * worker. When none is left, it waits for the ranges that workers have taken; workers that come later find nothing and
 * are not waited for. Each share has a cache line of its own with the epoch in it, so that a thread changes no line of
 * another thread's until it helps it.
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
#define RANGE_NS 2000 /* the least time that ranges of lg_grain() items take, about */
#define FIRST 8       /* so many regions are measured at first, */
#define MEASURED 64   /* then one of so many loops */
#define STACK_BYTES ((size_t)256 << 10)

/* Bits of the word `finished`. */
#define AWAITED 0x80000000u

/* Fields of the words `shape` and `taken`, see engine.h. */
#define RANGE_BITS 31
#define THREAD_BITS 10
#define SHARE_MOST 0xFFFF

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
enum { FUTEX_WAIT_BITSET_PRIVATE = 137, FUTEX_WAKE_BITSET_PRIVATE = 138 };

/* Sleeps until *word differs from value and a wake() has a bit in common with `bits`. */
static void sleep_while(lg_pool *p, atomic_uint *word, unsigned value, unsigned bits)
{
        (void)p;
        while (atomic_load(word) == value)
                syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, bits);
}

static void wake(lg_pool *p, atomic_uint *word, unsigned bits)
{
        (void)p;
        syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
}
#else
static void sleep_while(lg_pool *p, atomic_uint *word, unsigned value, unsigned bits)
{
        (void)bits; /* unused: all waiters share one condition */
        pthread_mutex_lock(&p->lock);
        while (atomic_load(word) == value)
                pthread_cond_wait(&p->changed, &p->lock);
        pthread_mutex_unlock(&p->lock);
}

static void wake(lg_pool *p, atomic_uint *word, unsigned bits)
{
        (void)word, (void)bits;
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

/* A region as a thread sees it. */
typedef struct region {
        unsigned epoch;
        int threads;
        int64_t ranges;
        int64_t unit; /* ranges that are taken at a time; 1 unless a share has more than SHARE_MOST ranges */
} region;

static uint64_t shape_of(unsigned epoch, int64_t ranges, int threads)
{
        return (uint64_t)epoch << (RANGE_BITS + THREAD_BITS) | (uint64_t)(threads - 1) << RANGE_BITS | (uint64_t)ranges;
}

static region region_of(unsigned epoch, uint64_t shape)
{
        region r = {.epoch = epoch,
                    .threads = (int)(shape >> RANGE_BITS) % (1 << THREAD_BITS) + 1,
                    .ranges = (int64_t)(shape % (UINT64_C(1) << RANGE_BITS))};
        r.unit = (r.ranges / r.threads + 1) / SHARE_MOST + 1;
        return r;
}

/* Returns the first range of the share of a thread. */
static int64_t share_start(const region *r, int thread)
{
        return r->ranges * thread / r->threads;
}

/* Takes a unit of the share of thread `of`, from its back or its front. Returns the unit's number in the share, or -1
 * if none is left or the region has ended. */
static int64_t take_unit(lg_pool *p, const region *r, int of, int64_t units, bool back)
{
        atomic_uint_fast64_t *word = &p->share[of].taken;
        uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
        for (;;) {
                const unsigned epoch = (unsigned)(old >> 32);
                if ((int)(epoch - r->epoch) > 0)
                        return -1;
                const uint64_t from = epoch == r->epoch ? old : (uint64_t)r->epoch << 32;
                const int64_t front = (int64_t)(from & SHARE_MOST), behind = (int64_t)(from >> 16 & SHARE_MOST);
                if (front + behind >= units)
                        return -1;
                if (atomic_compare_exchange_weak_explicit(word, &old, from + (back ? 1u << 16 : 1u),
                                                          memory_order_acquire, memory_order_relaxed))
                        return back ? units - 1 - behind : front;
        }
}

/* Runs what is left of the share of thread `of`, and returns the number of ranges. */
static int64_t run_share(lg_pool *p, const region *r, int of, int thread)
{
        const int64_t start = share_start(r, of), size = share_start(r, of + 1) - start;
        const int64_t units = (size + r->unit - 1) / r->unit;
        int64_t done = 0, u;
        if (units == 1 && of != thread && thread > 0) /* left to `of` or to the caller: to look costs a cache line */
                return 0;
        while ((u = take_unit(p, r, of, units, of != thread)) >= 0)
                for (int64_t i = u * r->unit; i < size && i < (u + 1) * r->unit; i++, done++) {
                        const int64_t first = (start + i) * p->grain;
                        p->fn(p->job, first, p->n - first > p->grain ? first + p->grain : p->n, thread);
                }
        return done;
}

/* Runs ranges until none is left: those of the own share, then those of the next threads. Returns their number. */
static int64_t run_ranges(lg_pool *p, const region *r, int thread)
{
        int64_t done = 0;
        for (int i = 0; i < r->threads; i++)
                done += run_share(p, r, (thread + i) % r->threads, thread);
        return done;
}

/* Runs ranges of the region of this epoch, if it is open and has a share for this thread. */
static void help(lg_pool *p, unsigned epoch, int thread)
{
        const uint64_t shape = atomic_load_explicit(&p->shape, memory_order_relaxed);
        const region r = region_of(epoch, shape);
        if (thread >= r.threads || shape != shape_of(epoch, r.ranges, r.threads))
                return;
        const int64_t opened = atomic_load_explicit(&p->opened, memory_order_relaxed);
        if (opened)
                atomic_store_explicit(&p->share[thread].delay, nanoseconds() - opened, memory_order_relaxed);
        const int64_t done = run_ranges(p, &r, thread);
        if (done && (atomic_fetch_add_explicit(&p->finished, (unsigned)done, memory_order_acq_rel) & AWAITED))
                wake(p, &p->finished, 1);
}

static unsigned wake_bit(int thread)
{
        return 1u << thread % 32;
}

static void *work(void *user)
{
        const struct lg_worker *me = user;
        lg_pool *p = me->pool;
        atomic_uint_fast64_t *asleep = &p->asleep[me->thread / 64];
        const uint64_t bit = UINT64_C(1) << me->thread % 64;
        for (;;) {
                const unsigned epoch = atomic_load_explicit(&p->epoch, memory_order_acquire);
                if (atomic_load_explicit(&p->stop, memory_order_relaxed))
                        return NULL;
                help(p, epoch, me->thread);
                if (!shares_core(&p->caller_core) && changes(&p->epoch, epoch))
                        continue;
                /* Sequentially consistent, as in raise_epoch(): either raise_epoch() sees that this worker is asleep,
                 * or sleep_while() sees the new epoch. */
                atomic_fetch_or(asleep, bit);
                sleep_while(p, &p->epoch, epoch, wake_bit(me->thread));
                atomic_fetch_and(asleep, ~bit);
        }
}

/* Returns bits by which those of the threads 1 to `last` wake that sleep; 0 if none does. */
static unsigned sleepers(lg_pool *p, int last)
{
        unsigned bits = 0;
        for (int i = 0; i <= last / 64; i++) {
                uint64_t asleep = atomic_load(&p->asleep[i]);
                if (i == last / 64 && last % 64 < 63)
                        asleep &= (UINT64_C(2) << last % 64) - 1;
                bits |= (unsigned)(asleep | asleep >> 32);
        }
        return bits;
}

/* Starts a new epoch, and wakes those of the threads 1 to `last` that sleep. */
static void raise_epoch(lg_pool *p, int last)
{
        atomic_fetch_add(&p->epoch, 1);
        const unsigned bits = sleepers(p, last);
        if (bits)
                wake(p, &p->epoch, bits);
}

/* Waits until workers have finished `wanted` ranges. */
static void await_finished(lg_pool *p, unsigned wanted)
{
        for (;;) {
                unsigned state = atomic_load_explicit(&p->finished, memory_order_acquire);
                if ((state & ~AWAITED) == wanted)
                        return;
                if ((state & AWAITED) || (!changes(&p->finished, state) &&
                                          atomic_compare_exchange_strong(&p->finished, &state, state | AWAITED)))
                        sleep_while(p, &p->finished, state | AWAITED, 1);
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
        struct lg_worker *me = &p->worker[p->workers];
        int error = 1;
        *me = (struct lg_worker){.pool = p, .thread = p->workers + 1};
#ifndef SANITIZED
        pthread_attr_t small;
        if (pthread_attr_init(&small) == 0) {
                error = pthread_attr_setstacksize(&small, STACK_BYTES);
                if (!error)
                        error = pthread_create(&p->id[p->workers], &small, work, me);
                pthread_attr_destroy(&small);
        }
#endif
        if (error && pthread_create(&p->id[p->workers], NULL, work, me) != 0)
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

/* Returns whether the next region is to be measured. */
static bool is_due(const lg_pool *p)
{
        return p->measured < FIRST || p->unmeasured >= MEASURED;
}

/* Returns how many threads pay for a loop, since each should run for longer than a range takes to reach the slowest of
 * them. A loop that is to be measured uses all. */
static int threads_that_pay(const lg_pool *p, int64_t ranges, int threads)
{
        int64_t slowest = 0;
        for (int pay = 1; pay < threads && pay < ranges && !is_due(p); pay++) {
                slowest = p->delay[pay] > slowest ? p->delay[pay] : slowest;
                if (ranges / (pay + 1) < 1 + slowest / RANGE_NS)
                        return pay;
        }
        return threads;
}

/* Begins to measure the times after which workers run their first ranges, or returns false if one of them sleeps. */
static bool measure_begin(lg_pool *p, int workers)
{
        if (workers == 0 || !is_due(p) || sleepers(p, workers))
                return false;
        atomic_store_explicit(&p->opened, nanoseconds(), memory_order_relaxed);
        return true;
}

/* Ends it. About the least of a worker's last times counts, since other programs on its core delay it. */
static void measure_end(lg_pool *p, int workers)
{
        bool any = false;
        atomic_store_explicit(&p->opened, 0, memory_order_relaxed);
        for (int t = 1; t <= workers; t++) {
                const int64_t delay = atomic_exchange_explicit(&p->share[t].delay, 0, memory_order_relaxed);
                const int64_t most = p->delay[t] ? p->delay[t] + p->delay[t] / 8 : delay;
                if (delay > 0)
                        p->delay[t] = delay < most ? delay : most;
                any |= delay > 0;
        }
        p->measured += any;
        p->unmeasured = any ? 0 : p->unmeasured;
}

static void run_region(lg_pool *p, int64_t ranges, int threads)
{
        const int workers = make_workers(p, ranges < threads ? (int)ranges - 1 : threads - 1, threads);
        const unsigned epoch = atomic_load_explicit(&p->epoch, memory_order_relaxed) + 1;
        const uint64_t shape = shape_of(epoch, ranges, workers + 1);
        const region r = region_of(epoch, shape);
        const bool measured = measure_begin(p, workers);
        atomic_store_explicit(&p->finished, 0, memory_order_relaxed);
        atomic_store_explicit(&p->caller_core, core_now(), memory_order_relaxed);
        atomic_store_explicit(&p->shape, shape, memory_order_relaxed);
        raise_epoch(p, workers);
        await_finished(p, (unsigned)(ranges - run_ranges(p, &r, 0)));
        if (measured)
                measure_end(p, workers);
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
        p->unmeasured += !is_due(p); /* also by loops of one thread, or they would never be measured again */
        const int threads = threads_that_pay(p, ranges, q->threads);
        if (threads > 1)
                run_region(p, ranges, threads);
        atomic_store_explicit(&p->busy, false, memory_order_release);
        return threads > 1;
}

void lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job)
{
        if (q->threads > 1 && n / 2 >= grain && run_with_others(q, n, grain, fn, job))
                return;
        for (int64_t first = 0; first < n; first += grain)
                fn(job, first, n - first > grain ? first + grain : n, 0);
}
