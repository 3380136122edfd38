/* peer.h - the common part of the programs that tools/compare runs: data, clocks, memory, the command line.
 *
 *     PROGRAM second | mismatch | shortage | weights PATH | train small|large cpu|wall THREADS SECONDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* The two perceptrons, 4-64-64-2 and 784-128-10. */
enum { SMALL_BATCH = 32, SMALL_IN = 4, SMALL_OUT = 2, LARGE_BATCH = 64, LARGE_IN = 784, LARGE_OUT = 10 };
#define RATE 0.05

/* Trains for a number of steps and returns the last loss. */
typedef double train_fn(void *network, long steps);

/* Returns element i of the inputs, a number in [0, 1). */
static inline float input_value(int i)
{
        return (float)((uint32_t)(i + 1) * 2654435761u >> 16) / 65536;
}

static inline double microseconds(const char *clock)
{
        struct timespec t;
        clock_gettime(strcmp(clock, "cpu") ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Returns a field of /proc/self/status in KiB: "VmHWM" is the peak of resident memory, "VmSize" the address space. */
static inline long memory_kib(const char *field)
{
        char line[256];
        long kib = 0;
        FILE *f = fopen("/proc/self/status", "r");
        while (f && fgets(line, sizeof line, f))
                if (!strncmp(line, field, strlen(field)))
                        kib = atol(line + strlen(field) + 1);
        if (f)
                fclose(f);
        return kib;
}

/* Limits the address space to 1 GiB more than is in use. OpenBLAS's threads need 128 MiB, for which they wait forever.
 */
static inline void limit_memory(void)
{
        struct rlimit most = {0};
        most.rlim_cur = most.rlim_max = ((rlim_t)memory_kib("VmSize") << 10) + (1u << 30);
        setrlimit(RLIMIT_AS, &most);
}

/* Prints the microseconds of a step, the first and the last loss, and the peak of memory in KiB. */
static inline void report_training(train_fn *train, void *network, const char *clock, double seconds)
{
        double first = train(network, 1), begin = microseconds(clock);
        train(network, 50);
        long steps = 1 + (long)(seconds * 5e7 / (microseconds(clock) - begin));
        begin = microseconds(clock);
        double last = train(network, steps);
        printf("%g %g %g %ld\n", (microseconds(clock) - begin) / (double)steps, first, last, memory_kib("VmHWM"));
}
