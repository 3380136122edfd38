/* device.c - the CPU as a device: host memory, and the kernels of the best instruction set of this machine. */
#include "isa.h"
#include "engine.h"
#include "../queue_fail.inc"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const lg_kernels lg__cpu_kernels_portable;
#if LG_HAVE_avx2
extern const lg_kernels lg__cpu_kernels_avx2;
#endif
#if LG_HAVE_avx512
extern const lg_kernels lg__cpu_kernels_avx512;
#endif

static int cpu_count(char *reason, size_t size)
{
        (void)reason, (void)size;
        return 1;
}

typedef struct cpu_queue {
        lg_queue base;
        lg_engine engine;
} cpu_queue;

static bool cpu_open(lg_queue *q, char *reason, size_t size)
{
        (void)reason, (void)size;
        q->memo = &((cpu_queue *)q)->engine;
        return q->index == 0;
}

static void cpu_close(lg_queue *q)
{
        lg_engine *e = q->memo;
        if (!e)
                return;
        lg_pool_close(&e->pool);
        for (int i = 0; i < LG_KEPT_TABLES; i++) {
                free(e->tables[i]);
                e->tables[i] = NULL;
        }
        q->memo = NULL;
}

static void *cpu_allocate(lg_queue *q, size_t bytes)
{
        (void)q;
        if (bytes > SIZE_MAX - 63)
                return NULL;
        return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void cpu_free(lg_queue *q, void *p, size_t bytes)
{
        (void)q, (void)bytes;
        free(p);
}

static bool cpu_copy(lg_queue *q, void *to, const void *from, size_t bytes)
{
        (void)q;
        if (bytes)
                memmove(to, from, bytes);
        return true;
}

static bool cpu_synchronize(lg_queue *q, lg_device_error *ret)
{
        *ret = q->error;
        q->error = (lg_device_error){0};
        return true;
}

static bool cpu_clear_error(lg_queue *q)
{
        q->error = (lg_device_error){0};
        return true;
}

/* Copies the value of the first line that begins with `key` in a file of /proc to ret; returns false if none does. */
static bool proc_value(const char *path, const char *key, char *ret, size_t size)
{
        char line[256];
        bool found = false;
        FILE *f = fopen(path, "r");
        if (!f)
                return false;
        while (!found && fgets(line, sizeof line, f)) {
                char *colon = strchr(line, ':');
                if (strncmp(line, key, strlen(key)) != 0 || !colon)
                        continue;
                colon += 1 + strspn(colon + 1, " \t");
                colon[strcspn(colon, "\n")] = '\0';
                snprintf(ret, size, "%s", colon);
                found = true;
        }
        fclose(f);
        return found;
}

static int64_t memory_bytes(const char *key)
{
        char value[64];
        return proc_value("/proc/meminfo", key, value, sizeof value) ? strtoll(value, NULL, 10) * 1024 : -1;
}

static bool cpu_facts(int index, lg_device_facts *ret)
{
        if (index != 0)
                return false;
        if (!proc_value("/proc/cpuinfo", "model name", ret->name, sizeof ret->name))
                snprintf(ret->name, sizeof ret->name, "CPU");
        ret->total_bytes = memory_bytes("MemTotal");
        ret->free_bytes = memory_bytes("MemAvailable");
        ret->processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
        return true;
}

#if LG_HAVE_avx2
static bool has_avx2(void)
{
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
#endif
#if LG_HAVE_avx512
static bool has_avx512(void)
{
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
#endif

const lg_kernels *lg__cpu_kernels(const char *isa)
{
#if LG_HAVE_avx512
        if (strcmp(isa, "avx512") == 0)
                return has_avx512() ? &lg__cpu_kernels_avx512 : NULL;
#endif
#if LG_HAVE_avx2
        if (strcmp(isa, "avx2") == 0)
                return has_avx2() ? &lg__cpu_kernels_avx2 : NULL;
#endif
        return strcmp(isa, "portable") == 0 ? &lg__cpu_kernels_portable : NULL;
}

/* Constant interface for one instruction set; choosing among several needs no writable memory. */
#define CPU_DEVICE(isa)                                                                                                \
        static const lg_device_api device_##isa = {                                                                    \
                .abi = LG_DEVICE_ABI,                                                                                  \
                .name = "cpu",                                                                                         \
                .queue_size = sizeof(cpu_queue),                                                                       \
                .count = cpu_count,                                                                                    \
                .open = cpu_open,                                                                                      \
                .close = cpu_close,                                                                                    \
                .allocate = cpu_allocate,                                                                              \
                .free = cpu_free,                                                                                      \
                .upload = cpu_copy,                                                                                    \
                .download = cpu_copy,                                                                                  \
                .copy = cpu_copy,                                                                                      \
                .synchronize = cpu_synchronize,                                                                        \
                .clear_error = cpu_clear_error,                                                                        \
                .facts = cpu_facts,                                                                                    \
                .kernels = &lg__cpu_kernels_##isa,                                                                     \
        };

CPU_DEVICE(portable)
#if LG_HAVE_avx2
CPU_DEVICE(avx2)
#endif
#if LG_HAVE_avx512
CPU_DEVICE(avx512)
#endif

const lg_device_api *lg_cpu_device(void)
{
#if LG_HAVE_avx512
        if (has_avx512())
                return &device_avx512;
#endif
#if LG_HAVE_avx2
        if (has_avx2())
                return &device_avx2;
#endif
        return &device_portable;
}
