/* test_safetensors_faults.c - saving and reading while memory, the disk or the process ends: the file is the old or the
 * new one, whole. */
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "files.h"
#include "io/safetensors.h"

#define VALUES 100000 /* more than the writer's buffers */
static float values[VALUES];
static const uint8_t flags[] = {0, 1, 1};
static const lg__meta metas[] = {{"epoch", "7"}, {"rate", "0x1p-3"}};
static contents before, after; /* the file that is there, and what it becomes */

static bool read_values(void *user, int64_t from, size_t bytes, void *to)
{
        (void)user;
        memcpy(to, (const char *)values + from, bytes);
        return true;
}

static bool save(lg_ctx *c, const char *name)
{
        const lg__weight_out out[] = {
                {.name = "read", .dtype = LG_F32, .shape = LG_SHAPE(10, VALUES / 10), .read = read_values},
                {.name = "data", .dtype = LG_F32, .shape = LG_SHAPE(VALUES), .data = values},
                {.name = "flags", .dtype = LG_BOOL, .shape = LG_SHAPE(3), .data = flags},
                {.name = "none", .dtype = LG_F64, .shape = LG_SHAPE(0)},
        };
        return lg__weights_save(c, "test", at(name), out, 4, metas, 2);
}

/* Opens the new file and reads all of it. */
static bool read_back(lg_ctx *c)
{
        static float got[VALUES];
        lg__weights *w = lg__weights_open(c, "test", at("w"));
        bool ok = w && lg__weights_read(w, lg__weights_find(w, "read"), got) &&
                  lg__weights_read(w, lg__weights_find(w, "flags"), got) &&
                  lg__weights_read(w, lg__weights_find(w, "data"), got) && !memcmp(got, values, sizeof values) &&
                  !strcmp(lg__weights_meta(w, "rate"), "0x1p-3");
        lg__weights_close(w);
        assert_true(ok || lg_error(c));
        return ok;
}

static lg_ctx *open_faulty(void)
{
        lg_ctx *c = lg_open(.threads = 1);
        c->files = &faulty_files;
        memset(&faulty, 0, sizeof faulty);
        return c;
}

static int prepare(void **state)
{
        static char old[] = "the old file";
        for (int i = 0; i < VALUES; i++)
                values[i] = (float)i / 8;
        lg_ctx *c = lg_open(.threads = 1);
        bool ok = !make_folder(state) && save(c, "w") && read_back(c);
        lg_close(c);
        before = (contents){sizeof old - 1, old};
        after = get_file(at("w"));
        return ok ? 0 : -1;
}

static int finish(void **state)
{
        free(after.data);
        return remove_folder(state);
}

/* ---- system calls ---- */

static const int errors[] = {EIO, ENOSPC, EACCES};

/* Each call on files of a save fails once: an error, no file more than before, and the old one as it was. */
TEST_CASE(every_call_of_a_save_fails)
{
        lg_ctx *c = open_faulty();
        for (size_t kind = 0; kind < 2 * sizeof errors / sizeof *errors; kind++) {
                bool exists = kind % 2;
                for (int n = 1;; n++) {
                        count_files(true);
                        if (exists)
                                put_file(at("w"), before.data, before.bytes);
                        faulty.calls = 0;
                        faulty.fail_at = n;
                        faulty.error = errors[kind / 2];
                        bool saved = save(c, "w");
                        if (faulty.calls < n) { /* nothing has failed */
                                assert_true(saved && n > 12);
                                break;
                        }
                        bool replaced = saved || strstr(lg_error(c), "but its folder cannot be synchronised");
                        if (saved)
                                assert_true(is_done_without());
                        else
                                assert_error(c, LG_ERR_IO, strerror(errors[kind / 2]));
                        assert_int_equal(count_files(false), exists || replaced);
                        if (exists || replaced)
                                assert_true(has(at("w"), replaced ? after : before));
                }
        }
        lg_close(c);
}

TEST_CASE(the_message_names_the_step)
{
        static const struct {
                const char *call, *message;
        } steps[] = {{"lstat", "/w cannot be written: "},    {"access", "/w cannot be written: "},
                     {"open", "cannot be opened: "},         {"fchmod", "cannot be given its mode: "},
                     {"pwrite", ".tmp cannot be written: "}, {"fsync", "cannot be synchronised: "},
                     {"close", ".tmp cannot be closed: "},   {"rename", ".tmp cannot be renamed: "}};
        lg_ctx *c = open_faulty();
        for (size_t i = 0, n = 1; i < sizeof steps / sizeof *steps; n++) {
                put_file(at("w"), before.data, before.bytes);
                faulty.calls = 0;
                faulty.fail_at = (int)n;
                faulty.error = EROFS;
                assert_true(n < 100);
                if (save(c, "w")) /* it does without a lock */
                        continue;
                if (!strcmp(faulty.failed, steps[i].call)) {
                        char text[200];
                        snprintf(text, sizeof text, "%s%s", steps[i++].message, strerror(EROFS));
                        if (!strstr(lg_error(c), text))
                                fail_msg("expected \"%s\", got %s", text, lg_error(c));
                }
                lg_clear_error(c);
        }
        lg_close(c);
}

TEST_CASE(every_call_of_a_read_fails)
{
        lg_ctx *c = open_faulty();
        put_file(at("w"), after.data, after.bytes);
        for (int n = 1;; n++) {
                faulty.calls = 0;
                faulty.fail_at = n;
                faulty.error = EIO;
                if (read_back(c)) {
                        assert_true(faulty.calls < n || !strcmp(faulty.failed, "close"));
                        if (faulty.calls < n)
                                break;
                        continue;
                }
                assert_error(c, LG_ERR_IO, strerror(EIO));
        }
        lg_close(c);
}

/* The process ends before each call of a save, or with half of a write done. */
TEST_CASE(a_save_is_killed_anywhere)
{
        lg_ctx *c = open_faulty();
        int old = 0, new = 0;
        for (int torn = 0; torn < 2; torn++) {
                for (int n = 1, status = 9 << 8; WEXITSTATUS(status) == 9; n++) {
                        count_files(true);
                        put_file(at("w"), before.data, before.bytes);
                        pid_t child = fork();
                        if (child == 0) {
                                faulty.calls = 0;
                                faulty.kill_at = n;
                                faulty.torn = torn;
                                _exit(save(c, "w") ? 0 : 1);
                        }
                        assert_int_equal(waitpid(child, &status, 0), child);
                        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
                        assert_true(has(at("w"), before) || has(at("w"), after));
                        if (has(at("w"), before))
                                old++;
                        else
                                new ++;
                        assert_in_range(count_files(false), 1, 2);
                        /* what is left does not hinder the next one */
                        assert_true(save(c, "w") && has(at("w"), after));
                        assert_int_equal(count_files(false), 1);
                }
        }
        assert_true(old >= 10 && new >= 4);
        lg_close(c);
}

/* ---- memory ---- */

/* Of a save and a read, the n-th request for memory fails, alone or with all later ones. */
static bool with_less_memory(int n, bool only, bool *ret_ended)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        count_files(true);
        put_file(at("w"), before.data, before.bytes);
        arm(&f, n, only);
        bool saved = save(c, "w"), ok = saved && read_back(c);
        *ret_ended = f.calls < n;
        arm(&f, 0, false);
        if (!ok)
                assert_error(c, LG_ERR_MEMORY, "memory");
        assert_int_equal(count_files(false), 1);
        assert_true(has(at("w"), saved ? after : before));
        assert_true(save(c, "w") && read_back(c)); /* with memory it works in the same context */
        lg_close(c);
        assert_int_equal(f.bytes, 0);
        assert_int_equal(f.allocs, f.frees);
        return ok;
}

TEST_CASE(every_allocation_fails)
{
        for (int only = 0; only < 2; only++) {
                bool ended = false;
                int failures = 0;
                for (int n = 1; !ended; n++)
                        failures += !with_less_memory(n, only, &ended);
                assert_true(only || failures > 3); /* one alone is tried again */
        }
}

/* ---- disks and paths ---- */

TEST_CASE(a_full_disk)
{
        int status;
        lg_ctx *c = lg_open(.threads = 1);
        count_files(true);
        put_file(at("w"), before.data, before.bytes);
        pid_t child = fork();
        if (child == 0) {
                struct rlimit most = {100000, 100000};
                signal(SIGXFSZ, SIG_IGN);
                bool ok = !setrlimit(RLIMIT_FSIZE, &most) && !save(c, "w") && lg_error_code_of(c) == LG_ERR_IO &&
                          strstr(lg_error(c), ".tmp cannot be written: ") && strstr(lg_error(c), strerror(EFBIG));
                _exit(ok ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_true(has(at("w"), before));
        assert_int_equal(count_files(false), 1);
        lg_close(c);
}

TEST_CASE(links_and_modes)
{
        struct stat facts;
        lg_ctx *c = lg_open(.threads = 1);
        count_files(true);
        put_file(at("w"), before.data, before.bytes);
        assert_int_equal(chmod(at("w"), 0640), 0);
        assert_int_equal(symlink("w", at("link")), 0);
        assert_int_equal(symlink(at("link"), at("link of link")), 0);
        assert_true(save(c, "link of link"));
        assert_true(has(at("w"), after));
        assert_int_equal(lstat(at("w"), &facts), 0);
        assert_int_equal(facts.st_mode, S_IFREG | 0640);
        assert_true(!lstat(at("link of link"), &facts) && S_ISLNK(facts.st_mode));
        assert_int_equal(symlink("nowhere", at("dangling")), 0);
        assert_false(save(c, "dangling"));
        assert_error(c, LG_ERR_IO, "dangling is a symbolic link that leads nowhere");
        mode_t was = umask(027);
        assert_true(save(c, "new"));
        umask(was);
        assert_int_equal(lstat(at("new"), &facts), 0);
        assert_int_equal(facts.st_mode, S_IFREG | 0640);
        assert_int_equal(count_files(false), 5);
        lg_close(c);
}

/* A file that was left is removed; what a process writes at the moment, or somebody has put there, is not touched. */
TEST_CASE(names_that_are_taken)
{
        lg_ctx *c = lg_open(.threads = 1);
        count_files(true);
        assert_int_equal(symlink("other", at(".w.grad-0.tmp")), 0);
        assert_int_equal(mkdir(at(".w.grad-1.tmp"), 0700), 0);
        for (int i = 0; i < 4; i++)
                put_file(at((const char *[]){"other", ".w.grad-2.tmp", ".w.grad-3.tmp", ".w.grad-4.tmp"}[i]),
                         before.data, before.bytes);
        const int living = open(at(".w.grad-2.tmp"), O_RDWR);
        assert_int_equal(flock(living, LOCK_EX), 0);
        assert_true(save(c, "w"));
        assert_true(has(at("w"), after) && has(at("other"), before) && has(at(".w.grad-2.tmp"), before));
        assert_int_equal(count_files(false), 5);
        close(living);
        assert_true(save(c, "w"));
        assert_int_equal(count_files(false), 4);
        lg_close(c);
}

/* Several processes write one file; some of them are killed. */
TEST_CASE(processes_that_write_the_same_file)
{
        lg_ctx *c = open_faulty();
        pid_t children[6];
        count_files(true);
        for (int i = 0; i < 6; i++) {
                children[i] = fork();
                if (children[i])
                        continue;
                faulty.calls = 0;
                for (int n = 0; n < 50; n++)
                        if (!save(c, "w") || (i < 3 && n == 20 && (faulty.calls = 0, faulty.kill_at = 12 + i, false)))
                                _exit(1);
                _exit(0);
        }
        for (int i = 0; i < 6; i++) {
                int status;
                assert_int_equal(waitpid(children[i], &status, 0), children[i]);
                assert_int_equal(status, i < 3 ? 9 << 8 : 0);
        }
        assert_true(has(at("w"), after));
        assert_true(save(c, "w"));
        assert_int_equal(count_files(false), 1);
        lg_close(c);
}

TEST_CASE(paths_that_cannot_be)
{
        char longest[300], name[260];
        lg_ctx *c = open_faulty();
        count_files(true);
        assert_int_equal(mkdir(at("folder"), 0700), 0);
        assert_int_equal(mkfifo(at("pipe"), 0600), 0);
        assert_false(save(c, "folder"));
        assert_error(c, LG_ERR_IO, "folder is a folder, not a regular file");
        assert_false(save(c, "folder/"));
        assert_error(c, LG_ERR_IO, "is not the path of a file");
        assert_false(save(c, "pipe"));
        assert_error(c, LG_ERR_IO, "pipe is a pipe, not a regular file");
        assert_false(save(c, "none/w"));
        assert_error(c, LG_ERR_IO, "none cannot be opened: No such file or directory");
        assert_false(save(c, "pipe/w"));
        assert_error(c, LG_ERR_IO, "w cannot be written: Not a directory");
        assert_false(lg__weights_save(c, "test", "/dev/null", NULL, 0, NULL, 0));
        assert_error(c, LG_ERR_IO, "test: /dev/null is a device, not a regular file");
        assert_false(lg__weights_save(c, "test", "", NULL, 0, NULL, 0));
        assert_error(c, LG_ERR_IO, "test: \"\" is not the path of a file");
        memset(name, 'x', 255);
        memcpy(name + 178, "\u20ac", 3); /* where the temporary file's name is cut */
        name[255] = 0;
        snprintf(longest, sizeof longest, "%s", name);
        assert_true(save(c, longest)); /* of 255 bytes, as many as a name may have */
        assert_true(has(at(longest), after));
        assert_true(strstr(faulty.made, "xx.grad-0.tmp") && !strchr(faulty.made, '\xe2')); /* no part of a character */
        assert_int_equal(count_files(false), 3);
        assert_int_equal(chdir(folder), 0);
        assert_true(lg__weights_save(c, "test", "relative", NULL, 0, NULL, 0));
        assert_int_equal(chdir("/"), 0);
        assert_int_equal(access(at("relative"), R_OK), 0);
        lg_close(c);
}

AROUND_TESTS(prepare, finish);
