/* bench.c - what the benchmarks of the CPU's kernels share: options, a queue of one thread, medians of turns. */
#include "bench.h"
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

static void *scratch(lg_queue *q, size_t bytes)
{
        bench *b = q->owner;
        if (b->pieces == BENCH_PIECES)
                return NULL;
        const int i = b->pieces++;
        if (b->bytes[i] < bytes) {
                free(b->scratch[i]);
                b->bytes[i] = (bytes + 63) / 64 * 64;
                b->scratch[i] = aligned_alloc(64, b->bytes[i]);
        }
        return b->scratch[i];
}

/* OpenMP reads its environment before main(). */
static void take_one_thread(char **args)
{
        const char *threads = getenv("OMP_NUM_THREADS");
        if (threads && strcmp(threads, "1") == 0)
                return;
        setenv("OMP_NUM_THREADS", "1", true);
        setenv("OPENBLAS_NUM_THREADS", "1", true);
        execv("/proc/self/exe", args);
}

static int usage(const char *program, const char *const *flags)
{
        fprintf(stderr, "usage: %s", program);
        for (int i = 0; flags[i]; i++)
                fprintf(stderr, " [%s]", flags[i]);
        fprintf(stderr, " [--isa ISA] [--seconds S] [--only TEXT]\n");
        return 2;
}

int bench_open(bench *b, int count, char **args, const char *const *flags)
{
        *b = (bench){.only = "", .seconds = 0.2, .lowest = INFINITY};
        for (int i = 1; i < count; i++) {
                int flag = 0;
                while (flags[flag] && strcmp(args[i], flags[flag]) != 0)
                        flag++;
                if (flags[flag])
                        b->given[flag] = true;
                else if (!strcmp(args[i], "--isa") && i + 1 < count)
                        b->isa = args[++i];
                else if (!strcmp(args[i], "--seconds") && i + 1 < count)
                        b->seconds = atof(args[++i]);
                else if (!strcmp(args[i], "--only") && i + 1 < count)
                        b->only = args[++i];
                else
                        return usage(args[0], flags);
        }
        take_one_thread(args);
        b->queue = (lg_queue){.api = lg_cpu_device(), .threads = 1, .workspace = scratch, .owner = b};
        b->kernels = b->isa ? lg__cpu_kernels(b->isa) : b->queue.api->kernels;
        return b->kernels ? 0 : (fprintf(stderr, "no such instruction set\n"), 1);
}

void bench_close(bench *b)
{
        for (int i = 0; i < BENCH_PIECES; i++)
                free(b->scratch[i]);
}

void bench_reuse(bench *b)
{
        b->pieces = 0;
}

static double cpu_seconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

void bench_turns(const bench *b, bench_fn *run, void *a_case, int count, const bool *here, double *ret_seconds)
{
        double took[BENCH_MOST][BENCH_ROUNDS], first[BENCH_MOST];
        for (int r = -1; r < BENCH_ROUNDS; r++)
                for (int who = 0; who < count; who++) {
                        if (!here[who])
                                continue;
                        if (r < 0)
                                run(a_case, who); /* warms up */
                        const int calls = r < 0 ? 1 : (int)(b->seconds / BENCH_ROUNDS / first[who]) + 1;
                        const double start = cpu_seconds();
                        for (int i = 0; i < calls; i++)
                                run(a_case, who);
                        const double time = (cpu_seconds() - start) / calls;
                        if (r < 0)
                                first[who] = fmax(time, 1e-9);
                        else
                                took[who][r] = time;
                }
        for (int who = 0; who < count; who++) {
                ret_seconds[who] = INFINITY;
                if (!here[who])
                        continue;
                qsort(took[who], BENCH_ROUNDS, sizeof **took, compare);
                ret_seconds[who] = took[who][BENCH_ROUNDS / 2];
        }
}

void bench_add(bench *b, double ratio)
{
        b->logs += log(ratio);
        b->lowest = fmin(b->lowest, ratio);
        b->count++;
}

void bench_print(const bench *b)
{
        if (b->count)
                printf("%d cases: geometric mean %.3f, lowest %.2f\n", b->count, exp(b->logs / b->count), b->lowest);
}

void *bench_find(const char *const *files, const char *function)
{
        for (int i = 0; files[i]; i++) {
                void *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
                void *found = library ? dlsym(library, function) : NULL;
                if (found)
                        return found;
        }
        return NULL;
}
