/* kills.c - a training that is killed again and again ends with the bits of one that was left alone.
 *
 * kills RUN, which is run.c's program. It is killed at moments drawn from 1.5 times the time between two of its saves,
 * and then within saves, before a call on files that is drawn. Each time the file must be one that the undisturbed run
 * has saved, byte for byte, and never an older one than before; and what a kill has left is gone after the next save.
 * $LG_TEST_KILLS, $LG_TEST_KILLS_IN_SAVES and $LG_TEST_MODEL say how often and of what.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../test.h"
#include "hash.h"

#define MOST_SAVES 64

static const char *program, *model;
static char folder[] = "/tmp/lg-kills-XXXXXX", path[64];

/* What the undisturbed run did. */
static struct {
        uint64_t saved[MOST_SAVES], end;
        int saves;
        double interval; /* seconds between two saves */
        long long calls; /* on files, of one save */
} whole;

/* ---- a process of the program ---- */

typedef struct child {
        pid_t pid;
        FILE *out;
} child;

static child start(long long call)
{
        int ends[2];
        char number[24];
        snprintf(number, sizeof number, "%lld", call);
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                dup2(ends[1], STDOUT_FILENO);
                close(ends[0]);
                close(ends[1]);
                execl(program, program, model, path, number, (char *)NULL);
                _exit(127);
        }
        close(ends[1]);
        return (child){pid, fdopen(ends[0], "r")};
}

/* Waits for its first step; false: it has ended. */
static bool begins(const child *k)
{
        char line[80];
        return fgets(line, sizeof line, k->out) && !strcmp(line, "begins\n");
}

/* Whether it came to its end; then *ret_hash is what it ended with. Otherwise it was killed. */
static bool finish(child *k, uint64_t *ret_hash)
{
        char line[120];
        unsigned long long hash;
        bool ended = false;
        int status;
        while (fgets(line, sizeof line, k->out)) {
                if (sscanf(line, "saved %llx", &hash) == 1 && whole.end == 0 && whole.saves < MOST_SAVES)
                        whole.saved[whole.saves++] = hash;
                double interval;
                long long calls;
                if (sscanf(line, "ends %lf %lld %llx", &interval, &calls, &hash) != 3)
                        continue;
                ended = true;
                *ret_hash = hash;
                if (whole.end == 0) {
                        whole.interval = interval;
                        whole.calls = calls;
                }
        }
        fclose(k->out);
        assert_int_equal(waitpid(k->pid, &status, 0), k->pid);
        if (ended ? status != 0 : !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                fail_msg("the training ended with status %#x", (unsigned)status);
        return ended;
}

/* ---- what it leaves ---- */

/* How many temporary files there are; all files are removed if that is asked. */
static int count_temporaries(bool remove_all)
{
        int n = 0;
        char name[512];
        DIR *d = opendir(folder);
        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));) {
                size_t length = strlen(e->d_name);
                bool temporary = length > 4 && !strcmp(e->d_name + length - 4, ".tmp");
                n += temporary;
                snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
                if (remove_all && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
                        unlink(name);
        }
        closedir(d);
        return n;
}

/* Which save of the undisturbed run the file is, from 1; 0: there is no file. */
static int which_save(void)
{
        uint64_t hash = hash_file(path);
        for (int i = 0; i < whole.saves; i++)
                if (whole.saved[i] == hash)
                        return i + 1;
        if (hash)
                fail_msg("the file is none that the undisturbed run has saved");
        return 0;
}

static uint64_t drawn = 0x9e3779b97f4a7c15;

/* In [0, 1). */
static double draw(void)
{
        drawn ^= drawn << 13;
        drawn ^= drawn >> 7;
        drawn ^= drawn << 17;
        return (double)(drawn >> 11) * 0x1p-53;
}

static int number_of(const char *name, int otherwise)
{
        const char *text = getenv(name);
        return text ? atoi(text) : otherwise;
}

/* ---- tests ---- */

static void left_alone(void **state)
{
        (void)state;
        uint64_t hash = 0;
        child k = start(0);
        assert_true(begins(&k) && finish(&k, &hash));
        whole.end = hash;
        assert_true(whole.saves >= 4 && whole.calls >= 8 && hash);
        assert_int_equal(which_save(), whole.saves);
        assert_int_equal(count_temporaries(true), 0);
        print_message("%s: %d saves, one every %.3f s, of %lld calls on files\n", model, whole.saves, whole.interval,
                      whole.calls);
}

typedef struct tally {
        int kills, runs, with_temporary, of_new_file;
} tally;

/* Counts what a kill left; *last is the save that was there before. */
static void look(tally *t, int *last)
{
        int now = which_save(), temporaries = count_temporaries(false);
        assert_in_range(temporaries, 0, 1);
        assert_true(now >= *last);
        t->kills++;
        t->with_temporary += temporaries;
        t->of_new_file += now > *last;
        *last = now;
}

static void sleep_for(double time)
{
        struct timespec t = {(time_t)time, (long)((time - floor(time)) * 1e9)};
        nanosleep(&t, NULL);
}

/* Kills until there were `kills` of them, and the last run is at its end. */
static void kill_and_resume(int kills, bool in_saves)
{
        tally t = {0, 0, 0, 0};
        int last = 0;
        while (t.kills < kills || t.runs == 0 || last) {
                bool again = t.kills < kills; /* else it may come to its end */
                child k = start(again && in_saves ? 1 + (long long)(draw() * 1.5 * (double)whole.calls) : 0);
                uint64_t hash;
                if (again && !in_saves && begins(&k)) {
                        sleep_for(draw() * 1.5 * whole.interval);
                        kill(k.pid, SIGKILL);
                }
                if (!finish(&k, &hash)) {
                        look(&t, &last);
                        continue;
                }
                if (hash != whole.end)
                        fail_msg("after %d kills the training ends with %016llx, not %016llx", t.kills,
                                 (unsigned long long)hash, (unsigned long long)whole.end);
                t.runs++;
                last = 0;
                assert_int_equal(count_temporaries(true), 0);
        }
        print_message("%s: %d kills %s, %d of them after another save, %d that left a temporary file; %d runs ended "
                      "with the same bits\n",
                      model, t.kills, in_saves ? "in saves" : "at any moment", t.of_new_file, t.with_temporary, t.runs);
}

static void killed_at_any_moment(void **state)
{
        (void)state;
        kill_and_resume(number_of("LG_TEST_KILLS", 12), false);
}

static void killed_in_saves(void **state)
{
        (void)state;
        kill_and_resume(number_of("LG_TEST_KILLS_IN_SAVES", 12), true);
}

static int make_folder(void **state)
{
        (void)state;
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof path, "%s/run.safetensors", folder);
        return 0;
}

static int remove_folder(void **state)
{
        (void)state;
        count_temporaries(true);
        return rmdir(folder);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(left_alone), cmocka_unit_test(killed_at_any_moment),
                                           cmocka_unit_test(killed_in_saves)};
        if (argc != 2)
                return 2;
        program = argv[1];
        model = getenv("LG_TEST_MODEL") ? getenv("LG_TEST_MODEL") : "lenet";
        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
