/* group_bench.c - measures the time of an all_reduce of a group: group_bench [SECONDS [BYTES]...], run by mpirun.
 *
 * Rank 0 prints a line of JSON for each size of an f32 tensor that is summed in place: the least and the median time of
 * single calls, each of which starts after a barrier, and the time of a sum, by one rank alone, of as many numbers as a
 * rank adds up. The default sizes are 64 KiB to 64 MiB, in finer steps at first. tools/scaling.py fits a model to them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <grad.h>

enum { MOST = 400, LEAST_CALLS = 5 };

static double now(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

static int compare(const void *a, const void *b)
{
        const double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* Returns rank 0's go_on on all ranks, or false after an error. */
static bool agree(lg_ctx *c, lg_group *g, bool go_on)
{
        lg_scope scope = lg_scope_begin(c);
        const bool agreed = lg_item(lg_broadcast(lg_full(c, LG_SHAPE_0D, go_on), g, 0)) > 0;
        lg_scope_end(c, scope);
        return agreed && !lg_error(c);
}

/* Fills `times` with the seconds of single calls, ascending, and returns their number. */
static int measure(lg_ctx *c, lg_group *g, lg_tensor *x, double seconds, double *times)
{
        int n = 0;
        lg_all_reduce_(x, g, LG_REDUCE_OP_SUM);
        for (const double end = now() + seconds; n < MOST && agree(c, g, n < LEAST_CALLS || now() < end); n++) {
                lg_fill_(x, 1);
                lg_barrier(g);
                const double start = now();
                lg_all_reduce_(x, g, LG_REDUCE_OP_SUM);
                times[n] = now() - start;
        }
        qsort(times, (size_t)n, sizeof *times, compare);
        return n;
}

/* Returns the seconds of a sum of two arrays of `numbers` f32 numbers each, the least of several tries. */
static double measure_sum(lg_ctx *c, int64_t numbers)
{
        double least = 1e9;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *a = lg_ones(c, LG_SHAPE(numbers)), *b = lg_ones(c, LG_SHAPE(numbers));
        for (int i = 0; i < LEAST_CALLS; i++) {
                const double start = now();
                lg_add_(a, b);
                least = now() - start < least ? now() - start : least;
        }
        lg_scope_end(c, scope);
        return least;
}

/* Calls all_reduce for `seconds`, so that ranks that began on one core can move to cores of their own. */
static void warm(lg_ctx *c, lg_group *g, double seconds)
{
        double times[MOST];
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(1 << 20));
        for (const double end = now() + seconds; agree(c, g, now() < end);)
                measure(c, g, x, seconds / 4, times);
        lg_scope_end(c, scope);
}

static bool run(lg_ctx *c, lg_group *g, int64_t bytes, double seconds)
{
        double times[MOST];
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(bytes / (int64_t)sizeof(float)));
        const int n = measure(c, g, x, seconds, times);
        lg_scope_end(c, scope);
        const double sum = measure_sum(c, bytes / (int64_t)sizeof(float) / lg_group_size(g));
        if (lg_error(c))
                return false;
        if (lg_group_rank(g) == 0)
                printf("{\"bytes\": %lld, \"ranks\": %d, \"least\": %.6g, \"median\": %.6g, \"calls\": %d, \"sum\": "
                       "%.6g}\n",
                       (long long)bytes, lg_group_size(g), times[0], times[n / 2], n, sum);
        fflush(stdout);
        return true;
}

int main(int count, char **words)
{
        lg_ctx *c = lg_open(.threads = 1);
        lg_group *g = lg_group_open(c, .timeout = 60);
        const double seconds = count > 1 ? atof(words[1]) : 0.3;
        bool ok = !lg_error(c);
        if (ok)
                warm(c, g, 4 * seconds);
        for (int i = 2; ok && i < count; i++)
                ok = run(c, g, atoll(words[i]), seconds);
        for (int64_t bytes = 1 << 16; ok && count < 3 && bytes <= 1 << 26; bytes *= 2)
                for (int64_t more = 0; ok && more < (bytes < 1 << 26 ? 4 : 1); more += bytes < 1 << 17 ? 1 : 2)
                        ok = run(c, g, bytes + more * bytes / 4, seconds);
        if (!ok)
                fprintf(stderr, "group_bench: %s\n", lg_error(c));
        lg_close(c);
        return ok ? 0 : 1;
}
