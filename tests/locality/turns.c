/* turns.c - lg_parallel() with threads that run one at a time, in an order that does not depend on the system's.
 *
 * A loop begins when each of its threads has taken its first range. Then the thread runs whose clock is least, to the
 * end of its range; the clock of a thread is the number of bytes that it has accessed in this loop. So each thread
 * takes the ranges that it would take on a core of its own, if all cores were equally fast. The pool (parallel.c) is
 * the library's: it decides which range a thread takes. */
#include "turns.h"
#include <core/core.h>
#include <parallel.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>
#include "memory.h"

/* Delay of a thread whose share is finished and that looks for ranges of others, in bytes accessed: an eighth of the
 * shortest ranges of lg_grain(). Without it, a thread could take the last range of one that is finished as early. */
#define LOOK 4096

static struct {
        sem_t turn;
        bool arrived, waits;
        int place; /* number within the loop; in some pools not the same in all loops */
        int64_t clock;
} threads[MOST_THREADS];

/* The loop that runs. fn: NULL if there is none. */
static struct {
        lg_range_fn *fn;
        const void *job;
        int64_t grain, ranges, taken;
        int threads, arrived;
} now;
static pthread_mutex_t arrivals = PTHREAD_MUTEX_INITIALIZER;
static turns_fn *loop_ended; /* NULL: not counting */

/* The pool measures delays and polls for a time: without time, delays are 0 and waiting threads sleep or yield. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
        (void)clock;
        *ret = (struct timespec){0};
        sched_yield();
        return 0;
}

/* Workers that are on the caller's core do not poll. */
int sched_getcpu(void)
{
        return 0;
}

static int number_of_thread(void)
{
        static int known;
        static _Thread_local int mine = -1;
        if (mine < 0) {
                pthread_mutex_lock(&arrivals);
                mine = known++;
                pthread_mutex_unlock(&arrivals);
                memory_exclude_stack(mine);
        }
        return mine;
}

void turns_begin(turns_fn *ended)
{
        for (int i = 0; i < MOST_THREADS; i++)
                sem_init(&threads[i].turn, 0, 0);
        memory_run(number_of_thread());
        memory_begin_loop();
        loop_ended = ended;
}

static bool is_before(int a, int b)
{
        return threads[a].clock != threads[b].clock ? threads[a].clock < threads[b].clock
                                                    : threads[a].place < threads[b].place;
}

/* Gives the turn to the waiting thread whose clock is least, if any waits. */
static void pass_turn(void)
{
        int next = -1;
        for (int i = 0; i < MOST_THREADS; i++)
                if (threads[i].waits && (next < 0 || is_before(i, next)))
                        next = i;
        if (next < 0)
                return;
        threads[next].waits = false;
        sem_post(&threads[next].turn);
}

/* Waits until all threads of the loop have taken a range and it is this thread's turn. */
static void arrive(int me, int place)
{
        pthread_mutex_lock(&arrivals);
        threads[me].arrived = threads[me].waits = true;
        threads[me].place = place;
        now.taken++;
        if (++now.arrived == now.threads)
                pass_turn();
        pthread_mutex_unlock(&arrivals);
        sem_wait(&threads[me].turn);
}

/* Waits until it is this thread's turn to take a range, or none is left. */
static void await_turn(int me)
{
        if (now.taken < now.ranges) {
                threads[me].waits = true;
                pass_turn();
                sem_wait(&threads[me].turn);
        }
        if (now.taken == now.ranges)
                pass_turn();
}

static bool ends_share(int64_t range, int place)
{
        const int64_t from = now.ranges * place / now.threads, to = now.ranges * (place + 1) / now.threads;
        return range < from || range + 1 >= to;
}

static void run_range(const void *job, int64_t first, int64_t end, int place)
{
        (void)job;
        const int me = number_of_thread();
        if (!threads[me].arrived)
                arrive(me, place);
        else
                now.taken++;
        const int64_t before = bytes_accessed;
        memory_run(me);
        now.fn(now.job, first, end, place);
        memory_run(-1);
        threads[me].clock += bytes_accessed - before + (ends_share(first / now.grain, place) ? LOOK : 0);
        await_turn(me);
}

/* ---- memory of activations: that of tensors; not scratch memory of kernels ---- */

static void *(*workspace)(lg_queue *q, size_t bytes);
static bool in_workspace;

static void *mark_workspace(lg_queue *q, size_t bytes)
{
        in_workspace = true;
        void *p = workspace(q, bytes);
        in_workspace = false;
        return p;
}

lg__block *__real_lg__cache_get(lg__cache *cache, size_t bytes);
lg__block *__wrap_lg__cache_get(lg__cache *cache, size_t bytes)
{
        lg__block *b = __real_lg__cache_get(cache, bytes);
        if (b)
                memory_mark(b->p, b->bytes, !in_workspace);
        return b;
}

/* ---- loops ---- */

void __real_lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job);

/* Replaces lg_parallel(), by the linker's --wrap. */
void __wrap_lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job)
{
        if (!loop_ended || now.fn || !q->memo || q->threads < 2 || n / 2 < grain) {
                __real_lg_parallel(q, n, grain, fn, job);
                return;
        }
        if (q->workspace != mark_workspace) {
                workspace = q->workspace;
                q->workspace = mark_workspace;
        }
        loop_ended(0);
        const int64_t ranges = n / grain + (n % grain > 0);
        now.fn = fn;
        now.job = job;
        now.grain = grain;
        now.ranges = ranges;
        now.threads = ranges < q->threads ? (int)ranges : q->threads;
        now.taken = now.arrived = 0;
        for (int i = 0; i < MOST_THREADS; i++) {
                threads[i].arrived = threads[i].waits = false;
                threads[i].clock = 0;
        }
        memory_run(-1);
        memory_begin_loop();
        __real_lg_parallel(q, n, grain, run_range, NULL);
        memory_begin_loop();
        memory_run(0);
        now.fn = NULL;
        loop_ended((uintptr_t)fn);
}
