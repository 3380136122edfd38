/* processors.c - the number of processors that a process may use, from its affinity mask, the topology and cgroup
 * limits. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/core.h"

/* Reads up to `count` whole numbers from the start of the file root/path; other bytes end them. Returns how many. */
static int numbers(const char *root, const char *path, int64_t *ret, int count)
{
        char name[640], text[64] = "";
        snprintf(name, sizeof name, "%s%s", root, path);
        FILE *f = fopen(name, "r");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
                fclose(f);
        text[n] = '\0';
        int found = 0;
        for (char *at = text, *end; found < count; at = end, found++) {
                ret[found] = strtoll(at, &end, 10);
                if (end == at)
                        break;
        }
        return found;
}

/* Returns the CPUs of the affinity mask, each core once: a second hardware thread of a core adds little to kernels that
 * keep its units busy. */
static int cores(const char *root)
{
        cpu_set_t set;
        int64_t active = 0, first;
        char path[96];
        int n = 0;
        if (sched_getaffinity(0, sizeof set, &set) != 0)
                return (int)sysconf(_SC_NPROCESSORS_ONLN);
        if (numbers(root, "/sys/devices/system/cpu/smt/active", &active, 1) == 0 || !active)
                return CPU_COUNT(&set);
        for (int i = 0; i < CPU_SETSIZE; i++) {
                if (!CPU_ISSET(i, &set))
                        continue;
                snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
                n += numbers(root, path, &first, 1) == 0 || first == i || !CPU_ISSET((int)first % CPU_SETSIZE, &set);
        }
        return n;
}

/* Returns the processors that the limits of the process's cgroup and of those above it allow (cgroup v2, cpu.max: the
 * microseconds that may be used in each period), or INT32_MAX. */
static int64_t allowed(const char *root)
{
        char name[256], line[512] = "", path[560];
        int64_t least = INT32_MAX, limit[2];
        snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
        FILE *f = fopen(name, "r");
        while (f && strncmp(line, "0::/", 4) != 0 && fgets(line, sizeof line, f))
                ;
        if (f)
                fclose(f);
        if (strncmp(line, "0::/", 4) != 0)
                return least;
        line[strcspn(line, "\n")] = '\0';
        for (char *cgroup = line + 3, *end = cgroup + strlen(cgroup); end; end = strrchr(cgroup, '/')) {
                *end = '\0';
                snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", cgroup);
                if (numbers(root, path, limit, 2) == 2 && limit[1] > 0 && limit[0] / limit[1] < least)
                        least = limit[0] / limit[1];
        }
        return least;
}

int lg__processors_under(const char *root)
{
        const int64_t most = allowed(root), n = cores(root);
        const int64_t fewer = n < most ? n : most;
        return fewer < 1 ? 1 : (int)fewer;
}

int lg__processors(void)
{
        return lg__processors_under("");
}

int lg__threads_for(int asked)
{
        const char *text = getenv("OMP_NUM_THREADS");
        long given = asked <= 0 && text ? strtol(text, NULL, 10) : asked; /* "4,2" gives 4, the outermost level */
        int own = lg__processors(), most = 4 * own > 16 ? 4 * own : 16; /* far more threads than cores only add cost */
        return given <= 0 ? own : given < most ? (int)given : most;
}
