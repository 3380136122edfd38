/* limits.c - the limits of the machine: multiplications and additions in registers, copies of arrays.
 *
 * The FLOP/s are those of independent fused multiply-adds in the widest registers of the processor, on all threads at
 * once. The bytes/s are those of memcpy() on all threads at once, and count reads plus writes; for the cache, each
 * thread copies its own small array. Devices other than the CPU are measured by libgrad's products and copies, which
 * gives lower bounds.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <round_trip.h>
#include "bench.h"

enum { MOST_THREADS = 256, ROUNDS = 5 };

typedef struct job {
        void (*run)(struct job *j);
        char *from, *to;
        size_t bytes;
        int64_t calls;
        double seconds;
} job;

static void *run_job(void *p)
{
        job *j = p;
        double start = bench_now();
        j->run(j);
        j->seconds = bench_now() - start;
        return NULL;
}

/* Runs n jobs at the same time, a thread for each, and returns the seconds of the slowest. */
static double run_all(job *jobs, int n)
{
        pthread_t threads[MOST_THREADS];
        bool started[MOST_THREADS] = {false};
        double slowest = 0;
        for (int i = 1; i < n; i++)
                started[i] = !pthread_create(&threads[i], NULL, run_job, &jobs[i]);
        run_job(&jobs[0]);
        for (int i = 1; i < n; i++) {
                if (started[i])
                        pthread_join(threads[i], NULL);
                else
                        run_job(&jobs[i]);
        }
        for (int i = 0; i < n; i++)
                slowest = jobs[i].seconds > slowest ? jobs[i].seconds : slowest;
        return slowest;
}

/* Returns the units per second of n threads: the best of ROUNDS rounds, which take `seconds` together; a call of a job
 * does `units` units. */
static double best_rate(job *jobs, int n, double units, double seconds)
{
        double best = 0;
        for (int i = 0; i < n; i++)
                jobs[i].calls = 1;
        double once = run_all(jobs, n);
        double calls = seconds / ROUNDS / (once > 1e-7 ? once : 1e-7);
        for (int round = 0; round < ROUNDS; round++) {
                for (int i = 0; i < n; i++)
                        jobs[i].calls = calls < 1 ? 1 : calls < 1e9 ? (int64_t)calls : 1000000000;
                double took = run_all(jobs, n), rate = units * n * (double)jobs[0].calls / (took > 0 ? took : 1e-9);
                best = rate > best ? rate : best;
        }
        return best;
}

/* ---- registers ---- */

enum { CHAINS = 12, TURNS = 10000 }; /* 12: enough to hide the latency, and few enough for 16 registers */

/* Makes TURNS multiply-adds per call in each of CHAINS vectors of `width` bytes, whose values differ, so that the
 * compiler does not merge them. */
#define FMA_LOOP(name, width, target)                                                                                  \
        target static void name(job *j)                                                                                \
        {                                                                                                              \
                typedef float vector __attribute__((vector_size(width)));                                              \
                vector a = {0};                                                                                        \
                a += 0.5f;                                                                                             \
                vector v0 = a, v1 = a + 1, v2 = a + 2, v3 = a + 3, v4 = a + 4, v5 = a + 5, v6 = a + 6, v7 = a + 7,     \
                       v8 = a + 8, v9 = a + 9, v10 = a + 10, v11 = a + 11;                                             \
                for (int64_t i = 0; i < j->calls * TURNS; i++) {                                                       \
                        v0 = v0 * a + a, v1 = v1 * a + a, v2 = v2 * a + a, v3 = v3 * a + a, v4 = v4 * a + a;           \
                        v5 = v5 * a + a, v6 = v6 * a + a, v7 = v7 * a + a, v8 = v8 * a + a, v9 = v9 * a + a;           \
                        v10 = v10 * a + a, v11 = v11 * a + a;                                                          \
                        __asm__ volatile("" : : : "memory");                                                           \
                }                                                                                                      \
                vector sum = v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9 + v10 + v11;                              \
                volatile float out = sum[0];                                                                           \
                (void)out;                                                                                             \
        }
#if defined __x86_64__
FMA_LOOP(fma_avx512, 64, __attribute__((target("avx512f"))))
FMA_LOOP(fma_avx2, 32, __attribute__((target("avx2,fma"))))
#endif
FMA_LOOP(fma_portable, 16, )

double peak_flops(int threads, double seconds)
{
        job jobs[MOST_THREADS] = {{0}};
        void (*run)(job *) = fma_portable;
        double lanes = 4;
#if defined __x86_64__
        if (__builtin_cpu_supports("avx512f"))
                run = fma_avx512, lanes = 16;
        else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
                run = fma_avx2, lanes = 8;
#endif
        for (int i = 0; i < threads; i++)
                jobs[i].run = run;
        return best_rate(jobs, threads, 2 * lanes * CHAINS * TURNS, seconds);
}

/* ---- copies ---- */

static void copy(job *j)
{
        for (int64_t i = 0; i < j->calls; i++) {
                memcpy(j->to, j->from, j->bytes);
                __asm__ volatile("" : : "r"(j->to) : "memory");
        }
}

/* Returns the bytes per second, reads plus writes, of n threads that copy `bytes` together, or if `each`, so many each;
 * -1 if there is no memory. */
static double copy_rate(int n, size_t bytes, bool each, double seconds)
{
        job jobs[MOST_THREADS] = {{0}};
        size_t part = each ? bytes : bytes / (size_t)n, all = part * (size_t)n;
        char *from = malloc(all), *to = malloc(all);
        double rate = -1;
        if (from && to) {
                memset(from, 1, all);
                memset(to, 2, all);
                for (size_t i = 0; i < (size_t)n; i++)
                        jobs[i] = (job){.run = copy, .from = from + i * part, .to = to + i * part, .bytes = part};
                rate = best_rate(jobs, n, 2 * (double)part, seconds);
        }
        free(from);
        free(to);
        return rate;
}

/* ---- other devices ---- */

static double device_seconds(lg_ctx *c, lg_tensor *a, bool product)
{
        double best = 1e9;
        for (int round = 0; round < ROUNDS && !lg_error(c); round++) {
                double start = bench_now();
                lg_scope scope = lg_scope_begin(c);
                drop(product ? lg_matmul(a, a) : lg_neg(a));
                lg_scope_end(c, scope);
                lg_synchronize(c);
                double took = bench_now() - start;
                best = took < best ? took : best;
        }
        return best;
}

static void measure_device(limits *l, lg_ctx *c, lg_device device)
{
        enum { SIDE = 4096 };
        const double side = SIDE;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *a = lg_uniform(c, -1, 1, LG_SHAPE(SIDE, SIDE), .device = device);
        l->flops = 2 * side * side * side / device_seconds(c, a, true);
        l->flops_by = "a product of 4096 x 4096";
        l->memory = l->cache = 8 * side * side / device_seconds(c, a, false);
        lg_scope_end(c, scope);
}

bool limits_measure(limits *ret, lg_ctx *c, lg_device device, double seconds)
{
        int threads = lg_threads(c);
        *ret = (limits){.threads = threads};
        threads = threads < MOST_THREADS ? threads : MOST_THREADS;
        if (!lg_device_equal(device, lg_cpu())) {
                measure_device(ret, c, device);
                return !lg_error(c);
        }
        ret->flops = peak_flops(threads, seconds / 4);
        ret->flops_by = "fused multiplications and additions in registers";
        ret->memory = copy_rate(threads, (size_t)MEMORY_ELEMENTS * sizeof(float), false, seconds / 4);
        ret->cache = copy_rate(threads, (size_t)CACHE_ELEMENTS * sizeof(float), true, seconds / 4);
        ret->round_trip = threads > 1 ? round_trip(-1, -1) : 0;
        return ret->memory > 0 && ret->cache > 0 ? true : lg_set_error(c, LG_ERR_MEMORY, "no memory for copies");
}
