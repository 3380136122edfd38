/* measure.c - times an item: samples of many calls, with median and quartiles, CPU time and peak memory. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"
#include "resident.h"

enum { MOST_SAMPLES = 400, MOST_CALLS = 1000000 };
#define SAMPLES 25.0    /* samples of a measurement, if a call is short enough */
#define SHORTEST 0.0005 /* least seconds of a sample, so that reading the clock does not matter */

static double clock_seconds(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_now(void)
{
        return clock_seconds(CLOCK_MONOTONIC);
}

/* ---- resident memory ---- */

/* Returns free memory to the system and resets the peak to the current resident size. */
static void reset_resident(void)
{
#ifdef __GLIBC__
        malloc_trim(0);
#endif
        resident_reset();
}

/* ---- an item ---- */

/* Runs the item on the inputs of a recorder. */
static lg_tensor *run_recorded(lg_ctx *c, lg_list in, void *user)
{
        const live *l = user;
        work w = l->w;
        (void)c;
        w.x = lg_requires_grad(l->w.x) ? lg_set_requires_grad(lg_detach(in.items[0]), true) : in.items[0];
        w.y = in.items[1];
        l->it->run(&w);
        return NULL;
}

void live_make(live *l, const item *it, const conditions *how)
{
        reset_resident();
        *l = (live){.it = it, .before = resident("VmRSS:")};
        lg_ctx *c = lg_open(.threads = how->threads, .seed = 1);
        l->w = (work){.c = c, .count = (int64_t)it->elements, .amp = how->amp};
        if (!c)
                return;
        l->w.device = lg_parse_device(c, how->device);
        lg_set_default_device(c, l->w.device);
        if (how->processes)
                l->g = lg_group_open(c);
        it->make(&l->w);
        if (how->processes && l->w.net)
                lg_data_parallel(l->w.net, l->g);
        else if (how->recorded && l->w.net)
                l->recorder = lg_recorder_new(c, run_recorded, .user = l);
        else if (how->recorded)
                lg_set_error(c, LG_ERR_ARGUMENT, "%s trains no module whose steps could be recorded", it->name);
        else if (how->processes)
                lg_set_error(c, LG_ERR_ARGUMENT, "%s trains no module that could be data-parallel", it->name);
        lg_synchronize(c);
}

/* Returns rank 0's value on all ranks. */
static double agree(live *l, double value)
{
        lg_ctx *c = l->w.c;
        if (lg_group_size(l->g) == 1)
                return value;
        lg_scope scope = lg_scope_begin(c);
        value = lg_item(lg_broadcast(lg_full(c, LG_SHAPE_0D, value, .dtype = LG_F64, .device = lg_cpu()), l->g, 0));
        lg_scope_end(c, scope);
        return value;
}

void live_free(live *l)
{
        lg_close(l->w.c);
        *l = (live){0};
}

/* Returns the seconds per call of `calls` calls; *ret_cpu is the CPU time per call. */
static double seconds_of(live *l, int64_t calls, double *ret_cpu)
{
        work *w = &l->w;
        double start = bench_now(), cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (int64_t i = 0; i < calls && !lg_error(w->c); i++) {
                lg_scope scope = lg_scope_begin(w->c);
                if (l->recorder)
                        lg_recorder_run(l->recorder, lg_detach(w->x), w->y);
                else
                        l->it->run(w);
                lg_scope_end(w->c, scope);
        }
        lg_synchronize(w->c);
        *ret_cpu = (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)calls;
        return (bench_now() - start) / (double)calls;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* Returns the q-quantile of n ascending numbers. */
static double quantile(const double *sorted, int n, double q)
{
        return sorted[(int)(q * (n - 1) + 0.5)];
}

static void summarise(live *l, double *wall, double *cpu, int n, result *ret)
{
        const double units = l->it->units;
        qsort(wall, (size_t)n, sizeof *wall, compare);
        qsort(cpu, (size_t)n, sizeof *cpu, compare);
        ret->samples = n;
        ret->median = quantile(wall, n, 0.5) / units;
        ret->low = quantile(wall, n, 0.25) / units;
        ret->high = quantile(wall, n, 0.75) / units;
        ret->least = wall[0] / units;
        ret->most = wall[n - 1] / units;
        ret->cpu = quantile(cpu, n, 0.5) / units;
        ret->peak = lg_memory_stats(l->w.c, l->w.device).peak;
        int64_t most = resident("VmHWM:");
        ret->resident = most < 0 || l->before < 0 ? -1 : most - l->before;
        ret->parameters = l->w.net ? lg_parameter_numel(l->w.net) : 0;
        ret->batch = l->w.net ? lg_size_of(l->w.x, 0) : 0;
        ret->processes = lg_group_size(l->g);
}

bool live_measure(live *l, double seconds, result *ret)
{
        double wall[MOST_SAMPLES], cpu[MOST_SAMPLES];
        int n = 0;
        if (!l->warm)
                seconds_of(l, l->recorder ? 3 : 1, cpu); /* the first call fills caches */
        l->warm = true;
        double end = bench_now() + seconds, once = seconds_of(l, 1, cpu);
        double sample = seconds / SAMPLES > SHORTEST ? seconds / SAMPLES : SHORTEST;
        double calls = sample / (once > 1e-9 ? once : 1e-9);
        *ret = (result){.calls = (int64_t)agree(l, calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : calls)};
        for (; n < MOST_SAMPLES && agree(l, bench_now() < end) > 0 && !lg_error(l->w.c); n++)
                wall[n] = seconds_of(l, ret->calls, &cpu[n]);
        if (n == 0) {
                ret->calls = 1;
                wall[n++] = once;
        }
        if (lg_error(l->w.c))
                return false;
        summarise(l, wall, cpu, n, ret);
        return true;
}
