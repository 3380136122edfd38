/* test_board_faults.c - files for TensorBoard where folders, calls on files and memory fail, and processes are killed.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include "board_records.h"
#include "forks.h"

/* ---- folders ---- */

TEST_CASE(folders_are_made)
{
        static const char *const names[] = {"a/b//c/d", "a/b/c/d", "e/", "a"};
        lg_ctx *c = open_ctx();
        char path[512], file[512];
        for (int i = 0; i < 4; i++) {
                snprintf(path, sizeof path, "%s/%s", folder, names[i]);
                assert_non_null(lg_board_open(c, path));
                assert_ok(c);
        }
        /* Two in one folder have two names; all are of the second, the host and the process. */
        snprintf(path, sizeof path, "%s/f", folder);
        lg_board *one = lg_board_open(c, path);
        snprintf(file, sizeof file, "%s", only_file(path));
        lg_board *two = lg_board_open(c, path);
        assert_true(one && two && one != two && !strncmp(strrchr(file, '/'), "/events.out.tfevents.", 21));
        snprintf(path, sizeof path, ".%lld.0", (long long)getpid());
        assert_non_null(strstr(file, path));
        lg_close(c);
        snprintf(path, sizeof path, "rm -r %s/*", folder);
        assert_int_equal(system(path), 0);
}

TEST_CASE(folders_that_cannot_be_made)
{
        lg_ctx *c = open_ctx();
        put_file(at("file"), "x", 1);
        const struct {
                const char *path, *error;
        } wrong[] = {{at("file"), "Not a directory"},
                     {at("file/below"), "Not a directory"},
                     {"/proc/nothing/here", "lg_board_open: /proc/nothing"},
                     {"/dev/null", "Not a directory"},
                     {"/dev/null/x", "Not a directory"}};
        for (int i = 0; i < 5; i++) {
                assert_null(lg_board_open(c, wrong[i].path));
                assert_error(c, LG_ERR_IO, wrong[i].error);
        }
        assert_null(lg_board_open(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_open: the folder is NULL");
        assert_null(lg_board_open(c, ""));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_open: the folder is empty");
        assert_null(lg_board_open(NULL, folder));
        assert_int_equal(count_files(true), 1);
        lg_close(c);
}

/* ---- failures ---- */

/* Writes records of all kinds but pictures; 1 to 5: the first that fails, 6: none. */
static int write_all(lg_ctx *c, const char *to)
{
        lg_board *b = lg_board_open(c, to, .purge_step = 3);
        lg_tensor *x = lg_ones(c, LG_SHAPE(3));
        const int done = !b                                           ? 1
                         : !lg_board_scalar(b, "a", 1, 1)             ? 2
                         : !lg_board_histogram(b, "b", x, 2)          ? 3
                         : !lg_board_text(b, "c", "a longer text", 3) ? 4
                         : !lg_board_flush(b)                         ? 5
                                                                      : 6;
        lg_free(x);
        return !lg_board_close(b) && done == 6 ? 5 : done;
}

TEST_CASE(every_failing_call_on_files)
{
        lg_ctx *c = open_ctx();
        size_t rest;
        c->files = &faulty_files;
        for (int i = 1, done = 0; done < 6; i++) {
                memset(&faulty, 0, sizeof faulty);
                faulty.fail_at = i;
                faulty.error = ENOSPC;
                done = write_all(c, folder);
                if (done < 6) {
                        assert_error(c, LG_ERR_IO, "No space left on device");
                        assert_non_null(faulty.failed);
                } else
                        assert_ok(c);
                if (count_files(false)) {
                        read_records_of(only_file(folder), &rest);
                        assert_int_equal(rest, 0);
                }
                count_files(true);
                assert_true(done < 6 || i > 8);
        }
        c->files = NULL;
        lg_close(c);
}

/* The disk is full in the middle of a record, and has room again later. */
TEST_CASE(a_torn_record_is_replaced)
{
        lg_ctx *c = open_ctx();
        lg_board *b = lg_board_open(c, folder);
        assert_true(lg_board_scalar(b, "x", 1, 1));
        c->files = &faulty_files;
        memset(&faulty, 0, sizeof faulty);
        faulty.piecemeal = true;
        faulty.fail_at = 6;
        faulty.error = ENOSPC;
        assert_false(lg_board_text(b, "y", "a long text that needs several pieces", 2));
        assert_error(c, LG_ERR_IO, "cannot be written: No space left on device");
        size_t rest;
        assert_int_equal(read_records_of(only_file(folder), &rest), 2);
        assert_int_equal(rest, 14);
        faulty.fail_at = 0;
        assert_true(lg_board_scalar(b, "z", 3, 3)); /* with interruptions */
        c->files = NULL;
        assert_true(lg_board_close(b));
        read_records(3);
        assert_true(is(records[2].tag, "z") && records[2].number == 3);
        lg_close(c);
}

TEST_CASE(every_failing_allocation)
{
        for (int n = 1, done = 0; !done; n++) {
                failing memory = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
                test_device(c);
                lg_module *net = lg_nn_linear(c, 3, 2);
                lg_backward(lg_sum(lg_forward(net, lg_ones(c, LG_SHAPE(1, 3)))));
                assert_ok(c);
                const int64_t live = lg_live_tensors(c);
                arm(&memory, n, false);
                lg_board *b = lg_board_open(c, folder);
                bool ok = b && lg_board_text(b, "x", folder, 1) && lg_board_parameters(b, net, 1) &&
                          lg_board_histogram(b, "x", lg_parameters(net).items[0], 1, .bins = 4);
                done = memory.calls < n;
                arm(&memory, 0, false);
                assert_int_equal(ok, done);
                if (!done)
                        assert_error(c, LG_ERR_MEMORY, "");
                assert_int_equal(lg_live_tensors(c), live);
                if (done && n > 8)
                        assert_true(lg_board_close(b));
                lg_close(c);
                assert_int_equal(memory.bytes, 0);
                count_files(true);
        }
}

/* ---- killed processes ---- */

/* A process that writes numbers and histograms until it is killed, before the call of this number, or by a signal. */
static void write_for_ever(const char *to, int kill_at)
{
        lg_ctx *c = lg_open(.threads = 1);
        lg_tensor *x = lg_uniform(c, 1, 2, LG_SHAPE(100)); /* a few bins */
        faulty.calls = faulty.fail_at = 0;
        faulty.kill_at = kill_at;
        faulty.torn = true;
        c->files = &faulty_files;
        lg_board *b = lg_board_open(c, to);
        for (int64_t i = 1; i < 1500 && lg_board_scalar(b, "i", (double)i, i) && lg_board_histogram(b, "h", x, i); i++)
                ;
        pause();
}

/* Kills a process that writes; its records are there in order, and nothing else but the beginning of one. */
static bool kill_one(const char *to, int kill_at, long nanoseconds)
{
        int status;
        size_t rest;
        const pid_t child = fork();
        if (!child) {
                write_for_ever(to, kill_at);
                _exit(0);
        }
        nanosleep(&(struct timespec){0, nanoseconds}, NULL);
        if (!kill_at)
                kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(kill_at ? WIFEXITED(status) && WEXITSTATUS(status) == 9 : WIFSIGNALED(status));
        DIR *d = opendir(to);
        int files = -2;
        while (d && readdir(d))
                files++;
        if (d)
                closedir(d);
        if (files < 1)
                return false;
        const int n = read_records_of(only_file(to), &rest);
        assert_true(rest < 3000);
        for (int i = 1; i < n; i++)
                assert_true(is(records[i].tag, i % 2 ? "i" : "h") && records[i].step == (i + 1) / 2);
        return rest > 0;
}

/* $LG_TEST_KILLS says how often; $LG_TEST_KILLED is a folder for what is left, which tests/board.py reads. */
TEST_CASE(killed_processes_leave_whole_records)
{
        const char *kills = getenv("LG_TEST_KILLS"), *keep = getenv("LG_TEST_KILLED");
        const int count = kills ? atoi(kills) : SOME(20);
        char to[300];
        int torn = 0;
        if (!forks)
                skip();
        for (int i = 0; i < count; i++) {
                snprintf(to, sizeof to, "%s/killed-%d", keep ? keep : folder, i);
                torn += kill_one(to, i % 2 ? i / 2 + 1 : 0, i % 2 ? 0 : 3000000 + 37 * i % 997 * 20000L);
        }
        assert_true(torn >= count / 4 - 1);
        print_message("%d kills, %d torn records\n", count, torn);
        if (!keep) {
                snprintf(to, sizeof to, "rm -r %s/killed-*", folder);
                assert_int_equal(system(to), 0);
        }
}

AROUND_TESTS(make_folder, remove_folder);
