/* test_processors.c - how many threads are the default: affinity masks, cores with two threads, limits of cgroups. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgrad/core/core.h"
#include "tests.h"

static char root[32];

/* Writes a file below the root, and the folders to it. */
static void put(const char *path, const char *text)
{
        char name[256];
        snprintf(name, sizeof name, "%s%s", root, path);
        for (char *at = name + strlen(root); (at = strchr(at + 1, '/'));) {
                *at = '\0';
                mkdir(name, 0700);
                *at = '/';
        }
        FILE *f = fopen(name, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void begin_root(void)
{
        snprintf(root, sizeof root, "root-XXXXXX");
        assert_non_null(mkdtemp(root));
}

static void end_root(void)
{
        char command[64];
        snprintf(command, sizeof command, "rm -r %s", root);
        assert_int_equal(system(command), 0);
}

static int in_mask(void)
{
        cpu_set_t set;
        assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
        return CPU_COUNT(&set);
}

TEST_CASE(limits_of_cgroups)
{
        const int all = in_mask();
        begin_root();
        assert_int_equal(lg__processors_under(root), all); /* no files at all */
        put("/proc/self/cgroup", "4:memory:/a\n0::/machine/one\n");
        assert_int_equal(lg__processors_under(root), all);
        put("/sys/fs/cgroup/machine/one/cpu.max", "max 100000\n");
        assert_int_equal(lg__processors_under(root), all);
        put("/sys/fs/cgroup/machine/cpu.max", "150000 100000\n"); /* the limit of an upper one */
        assert_int_equal(lg__processors_under(root), 1);
        put("/sys/fs/cgroup/machine/cpu.max", "99999999 100000\n");
        assert_int_equal(lg__processors_under(root), all);
        put("/sys/fs/cgroup/cpu.max", "20000 100000\n"); /* less than one */
        assert_int_equal(lg__processors_under(root), 1);
        put("/sys/fs/cgroup/cpu.max", "20000 0\n");
        assert_int_equal(lg__processors_under(root), all);
        put("/sys/fs/cgroup/cpu.max", "nonsense");
        assert_int_equal(lg__processors_under(root), all);
        end_root();
}

TEST_CASE(two_threads_of_a_core_count_once)
{
        const int all = in_mask();
        char path[96], text[32];
        begin_root();
        put("/sys/devices/system/cpu/smt/active", "0\n");
        assert_int_equal(lg__processors_under(root), all);
        put("/sys/devices/system/cpu/smt/active", "1\n");
        assert_int_equal(lg__processors_under(root), all); /* nothing is known of the cores */
        int cores = 0;
        cpu_set_t set;
        assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
        for (int i = 0; i < CPU_SETSIZE; i++) {
                if (!CPU_ISSET(i, &set))
                        continue;
                cores += i % 2 == 0 || !CPU_ISSET(i - 1, &set);
                snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
                snprintf(text, sizeof text, i % 4 < 2 ? "%d-%d\n" : "%d,%d\n", i / 2 * 2, i / 2 * 2 + 1);
                put(path, text);
        }
        assert_int_equal(lg__processors_under(root), cores);
        end_root();
}

TEST_CASE(an_affinity_mask_limits)
{
        cpu_set_t was, one;
        assert_int_equal(sched_getaffinity(0, sizeof was, &was), 0);
        CPU_ZERO(&one);
        for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
                if (CPU_ISSET(i, &was))
                        CPU_SET(i, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(lg__processors_under("/nowhere"), 1);
        assert_int_equal(sched_setaffinity(0, sizeof was, &was), 0);
}

TEST_CASE(the_environment_and_the_option_override)
{
        unsetenv("OMP_NUM_THREADS");
        assert_int_equal(lg__threads_for(0), lg__processors());
        assert_int_equal(lg__threads_for(3), 3);
        setenv("OMP_NUM_THREADS", "5,2", 1);
        assert_int_equal(lg__threads_for(0), 5);
        assert_int_equal(lg__threads_for(2), 2);
        setenv("OMP_NUM_THREADS", "nonsense", 1);
        assert_int_equal(lg__threads_for(0), lg__processors());
        assert_true(lg__threads_for(100000) >= 16);
        unsetenv("OMP_NUM_THREADS");
}
