/* test_state_files.c - saving and loading of modules and whole runs where files change, lie or cannot be written. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include "faulty_run.h"

/* ---- files that change ---- */

static struct {
        int calls, at;
} shrinking;

static ssize_t shrinking_pread(int fd, void *data, size_t bytes, off_t from)
{
        if (++shrinking.calls == shrinking.at)
                assert_int_equal(truncate(at("w"), from + (off_t)bytes / 2), 0);
        return lg__system_files.pread(fd, data, bytes, from);
}

TEST_CASE_WITH(a_file_shrinks_while_it_is_read, clean, NULL)
{
        lg__files files = quick_files;
        files.pread = shrinking_pread;
        for (int a = 0; a < ACTS; a++) {
                if (is_save((act)a))
                        continue;
                expected e = undisturbed((act)a, 2);
                int n = 0;
                do {
                        run r;
                        begin(&r, 2, 2);
                        r.c->files = &files;
                        put_file(at("w"), e.file.data, e.file.bytes);
                        shrinking.calls = 0;
                        shrinking.at = ++n;
                        if (!perform(&r, e.a)) {
                                assert_true(shrinking.calls >= n);
                                assert_error(r.c, LG_ERR_FORMAT, "it became shorter");
                                put_file(at("w"), e.file.data, e.file.bytes);
                                check_failed(&r, &e, n);
                        }
                        end(&r);
                } while (shrinking.calls >= n);
                assert_true(n > 3);
                forget(&e);
        }
}

/* ---- files that are large ---- */

#define LARGE 19000000 /* floats: more than wait beside their places */

static lg_module *large_module(lg_ctx *c, double value, lg_dtype dtype)
{
        lg_module *m = lg_nn_module(c, "Large");
        lg_module_add_buffer(m, "a", lg_full(c, LG_SHAPE(3), value, .dtype = dtype));
        lg_module_add_buffer(m, "large", lg_full(c, LG_SHAPE(LARGE), value, .dtype = dtype));
        lg_module_add_buffer(m, "z", lg_full(c, LG_SHAPE(3), value, .dtype = dtype));
        return m;
}

static void assert_all(lg_tensor *t, double value)
{
        assert_true(lg_item(lg_amin(t)) == value && lg_item(lg_amax(t)) == value);
}

TEST_CASE_WITH(large_tensors_are_read_into_their_places, clean, NULL)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        c->files = &quick_files;
        lg_set_default_device(c, test_device(c));
        lg_module *m = large_module(c, 2, LG_F32);
        assert_true(lg_save(m, at("w")));
        lg_module_free(m);
        lg_empty_cache(c);
        m = large_module(c, 1, LG_F32);
        lg_empty_cache(c);
        memset(&faulty, 0, sizeof faulty);
        f.limit = f.bytes + 8 * (1 << 20); /* 76 MB are loaded with 8 MB more than they take */
        assert_true(lg_load(m, at("w")));
        f.limit = 0;
        const int calls = faulty.calls;
        assert_all(lg_buffer(m, "large"), 2);
        assert_all(lg_buffer(m, "z"), 2);
        lg_module *wide = large_module(c, 1, LG_F64);
        assert_true(lg_load(wide, at("w"), .cast = true));
        assert_all(lg_buffer(wide, "large"), 2);
        lg_module_free(wide);
        /* the second reading fails: the message says so; before it nothing changes */
        assert_true(calls > 20);
        for (int fail_at = 6; fail_at < calls; fail_at += calls - 7) { /* the last call closes the file */
                lg_module *other = large_module(c, 1, LG_F32);
                memset(&faulty, 0, sizeof faulty);
                faulty.fail_at = fail_at;
                faulty.error = EIO;
                assert_false(lg_load(other, at("w")));
                if (fail_at > 6)
                        assert_error(c, LG_ERR_IO, "it could be read before, and part of its values are in place");
                else
                        assert_error(c, LG_ERR_IO, strerror(EIO));
                assert_all(lg_buffer(other, "a"), 1);
                assert_all(lg_buffer(other, "z"), 1);
                if (fail_at == 6)
                        assert_all(lg_buffer(other, "large"), 1);
                lg_module_free(other);
        }
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}

extern int64_t lg__most_staged;

static void assert_equal_tensors(const lg_tensor *a, const lg_tensor *b)
{
        const size_t n = (size_t)lg_numel(a);
        double *x = malloc((n + 1) * sizeof *x), *y = malloc((n + 1) * sizeof *y);
        assert_int_equal(lg_numel(b), n);
        read_all(a, x, (int64_t)n);
        read_all(b, y, (int64_t)n);
        assert_memory_equal(x, y, n * sizeof *x);
        free(x), free(y);
}

/* Two steps of a leaf whose layout is transposed, as its state then is. */
static lg_optimizer *train_transposed(lg_ctx *c, lg_tensor **ret)
{
        lg_tensor *w = lg_transpose(lg_normal(c, 0, 1, LG_SHAPE(3, 5)), 0, 1);
        *ret = lg_set_requires_grad(lg_keep(w), true);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(*ret), 0.1, .momentum = 0.9);
        for (int i = 0; i < 2; i++) {
                lg_zero_grad(opt);
                lg_backward(lg_sum(lg_square(*ret)));
                lg_step(opt);
        }
        return opt;
}

TEST_CASE_WITH(values_that_are_read_late_keep_their_places, clean, NULL)
{
        const int64_t most = lg__most_staged;
        lg_ctx *c = open_ctx();
        lg_module *from = lg_nn_sequential(c, lg_nn_conv2d(c, 3, 4, 3), lg_nn_conv2d(c, 4, 5, 2));
        lg_module *to = lg_nn_sequential(c, lg_nn_conv2d(c, 3, 4, 3), lg_nn_conv2d(c, 4, 5, 2));
        lg_tensor *a, *b;
        lg_optimizer *first = train_transposed(c, &a), *second = train_transposed(c, &b);
        lg_checkpoint *saved = lg_checkpoint_new(c), *loaded = lg_checkpoint_new(c);
        lg_checkpoint_add(saved, "net", from);
        lg_checkpoint_add(saved, "opt", first);
        lg_checkpoint_add(loaded, "net", to);
        lg_checkpoint_add(loaded, "opt", second);
        assert_true(lg_checkpoint_save(saved, at("w")));
        lg__most_staged = 0; /* all values are read into the tensors that there are */
        assert_true(lg_checkpoint_load(loaded, at("w")));
        lg__most_staged = most;
        assert_equal_tensors(lg_parameter(from, "0.weight"), lg_parameter(to, "0.weight"));
        assert_equal_tensors(lg_parameter(from, "1.weight"), lg_parameter(to, "1.weight"));
        lg_no_grad(c) lg_copy_(b, a);
        lg_clear_grad(a), lg_clear_grad(b);
        lg_backward(lg_sum(lg_square(a)));
        lg_backward(lg_sum(lg_square(b)));
        assert_true(lg_step(first) && lg_step(second));
        assert_equal_tensors(a, b); /* so the states are equal, too */
        assert_ok(c);
        lg_close(c);
}

/* Replaces text in the file's header by another of the same length. */
static void patch(contents file, const char *from, const char *to)
{
        char *found = memmem(file.data, file.bytes, from, strlen(from));
        if (!found)
                fail_msg("%s is not in %.3000s", from, file.data + 8);
        assert_int_equal(strlen(from), strlen(to));
        memcpy(found, to, strlen(to));
        put_file(at("w"), file.data, file.bytes);
        memcpy(found, from, strlen(from));
}

TEST_CASE_WITH(counts_that_cannot_be, clean, NULL)
{
        static const struct {
                const char *from, *to, *text;
        } wrong[] = {
                {"\"batches.position\":\"2\"", "\"batches.position\":\"4\"",
                 "\"batches.position\" is 4; it must be from 0 to 3"},
                {"\"batches.epoch\":\"1\"", "\"batches.epoch\":\"-\"",
                 "\"batches.epoch\" is \"-\", which is no such number"},
                {"\"rate.epoch\":\"5\"", "\"rate.epoch\":\"x\"", "\"rate.epoch\" is \"x\", which is no such number"},
                {"\"batches.rows\":\"10\"", "\"batches.rows\":\"-1\"", "\"batches.rows\" -1, but here 10"},
                {"rate.epoch\":\"5\",\"rate.best\":\"0x0p+0\"", "rate.epoch\":\"-5\",\"rate.best\":\"0x0p0\"",
                 "\"rate.epoch\" is -5; it must be from 0 to"},
        };
        expected e = undisturbed(LOAD_RUN, 2);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                run r;
                begin(&r, 2, 2);
                patch(e.file, wrong[i].from, wrong[i].to);
                assert_false(lg_checkpoint_load(r.k, at("w")));
                if (!strstr(lg_error(r.c), wrong[i].text))
                        fail_msg("expected \"%s\", got %s", wrong[i].text, lg_error(r.c));
                lg_clear_error(r.c);
                put_file(at("w"), e.file.data, e.file.bytes);
                check_failed(&r, &e, (int64_t)i);
                end(&r);
        }
        forget(&e);
}

/* ---- where a load cannot be ---- */

static lg_tensor *load_in_backward(lg_tensor *grad, void *user)
{
        run *r = user;
        assert_false(lg_checkpoint_load(r->k, at("w")));
        return grad;
}

/* A load ends the loader's step, which a call in it still needs. */
TEST_CASE_WITH(a_load_inside_a_step, clean, NULL)
{
        run r;
        lg_batch b;
        expected e = undisturbed(LOAD_RUN, 2);
        begin(&r, 2, 1);
        put_file(at("w"), e.file.data, e.file.bytes);
        assert_true(lg_loader_next(r.batches, &b));
        lg_tensor *y = lg_forward(r.net, b.x);
        contents before = state_of(&r);
        lg_hook(y, load_in_backward, &r);
        lg_backward(lg_sum(y));
        assert_error(r.c, LG_ERR_STATE, "lg_checkpoint_load: a call that began inside this loader's step");
        assert_state(&r, before, "a load in backward", 0);
        free(before.data);
        assert_true(lg_checkpoint_load(r.k, at("w")));
        assert_state(&r, e.state_after, "a load in a step", 0);
        end(&r);
        forget(&e);
}

/* ---- disks ---- */

/* In a process of its own: 0: as it should be; 77: it cannot be tried here. */
static void in_child(int (*f)(run *r, contents old), contents old)
{
        run r;
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                begin(&r, 2, 2);
                r.c->files = NULL;
                int code = f(&r, old);
                if (code == 1)
                        print_message("%s\n", lg_error(r.c) ? lg_error(r.c) : "no error");
                _exit(code);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* A tmpfs with room for one such file and not for two, which only this process sees. */
static bool mount_small(const char *on, size_t bytes)
{
        char room[32];
        size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
        snprintf(room, sizeof room, "size=%zu", (2 * pages - 1) * page);
        const char *failed = unshare(CLONE_NEWNS)                                ? "unshare"
                             : mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? "a private mount"
                             : mount("tmpfs", on, "tmpfs", 0, room)              ? "mount"
                                                                                 : NULL;
        if (failed)
                print_message("skipped: no small tmpfs here: %s: %s\n", failed, strerror(errno));
        return !failed;
}

static bool refused(run *r, bool ok, const char *text)
{
        bool good = !ok && lg_error_code_of(r->c) == LG_ERR_IO && strstr(lg_error(r->c), text);
        if (good)
                lg_clear_error(r->c);
        return good;
}

static int fill_the_disk(run *r, contents old)
{
        char file[600];
        snprintf(file, sizeof file, "%s/w", at("disk"));
        if (!mount_small(at("disk"), old.bytes))
                return 77;
        put_file(file, old.data, old.bytes);
        for (int i = 0; i < 3; i++)
                if (!refused(r, lg_checkpoint_save(r->k, file), strerror(ENOSPC)) || !has(file, old))
                        return 1;
        if (!lg_checkpoint_load(r->k, file) || unlink(file))
                return 1;
        return lg_checkpoint_save(r->k, file) && has(file, old) ? 0 : 1; /* with room again */
}

TEST_CASE_WITH(a_small_disk_fills_up, clean, NULL)
{
        run r;
        begin(&r, 1, 5);
        contents old = state_of(&r);
        end(&r);
        assert_int_equal(mkdir(at("disk"), 0755), 0);
        in_child(fill_the_disk, old);
        free(old.data);
        assert_int_equal(rmdir(at("disk")), 0);
}

static int save_in_a_closed_folder(run *r, contents old)
{
        char file[600], new[600];
        snprintf(file, sizeof file, "%s/w", at("closed"));
        snprintf(new, sizeof new, "%s/new", at("closed"));
        put_file(file, old.data, old.bytes);
        if (chmod(file, 0666) || chmod(at("closed"), 0555) || (geteuid() == 0 && seteuid(65534)))
                return 2;
        bool ok = refused(r, lg_checkpoint_save(r->k, file), strerror(EACCES)) &&
                  refused(r, lg_checkpoint_save(r->k, new), strerror(EACCES)) &&
                  refused(r, lg_save(r->net, file), strerror(EACCES)) && has(file, old) && !has(new, old);
        return ok && lg_checkpoint_load(r->k, file) ? 0 : 1;
}

TEST_CASE_WITH(a_folder_that_cannot_be_written, clean, NULL)
{
        run r;
        begin(&r, 1, 5);
        contents old = state_of(&r);
        end(&r);
        assert_int_equal(chmod(folder, 0755) || mkdir(at("closed"), 0755), 0);
        in_child(save_in_a_closed_folder, old);
        free(old.data);
        char file[600];
        snprintf(file, sizeof file, "%s/w", at("closed"));
        assert_int_equal(chmod(at("closed"), 0755) || unlink(file) || rmdir(at("closed")), 0);
}

AROUND_TESTS(prepare, remove_folder);
