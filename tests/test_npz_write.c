/* test_npz_write.c - archives of arrays that cannot be written, and all of them without libzip. */
#include "files.h"

#if LG_ZIP
TEST_CASE(wrong_arguments_write_nothing)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        const char *path = at("wrong.npz");
        char *endless = calloc(1, 70001);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        const int files = count_files(false);
        memset(endless, 'a', 70000);
        assert_false(lg_write_npz(c, path, LG_NAMES("x", "x"), LG_LIST(x, x)));
        assert_error(c, LG_ERR_ARGUMENT, "\"x\" is given twice");
        assert_false(lg_write_npz(c, path, LG_NAMES("\xff"), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "is no UTF-8");
        assert_false(lg_write_npz(c, path, LG_NAMES(""), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "name 0 has 0 bytes");
        assert_false(lg_write_npz(c, path, LG_NAMES(endless), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "has 70000 bytes");
        assert_false(lg_write_npz(c, path, LG_NAMES("x", "y"), LG_LIST(x, NULL)));
        assert_error(c, LG_ERR_ARGUMENT, "array 1 is NULL");
        assert_false(lg_write_npz(c, path, LG_NAMES(NULL), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "name 0 is NULL");
        assert_false(lg_write_npz(c, NULL, LG_NAMES("x"), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "the path is NULL");
        assert_false(lg_write_npz(c, path, (lg_names){0}, (lg_list){0}));
        assert_error(c, LG_ERR_ARGUMENT, "0 names for 0 arrays");
        assert_false(lg_write_npz(c, path, LG_NAMES("x", "y"), LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "2 names for 1 arrays");
        assert_false(lg_write_npz(c, path, LG_NAMES("x"), LG_LIST(lg_cast(x, LG_BF16))));
        assert_error(c, LG_ERR_DTYPE, "NumPy has no bfloat16");
        assert_false(lg_write_npz(c, path, LG_NAMES("x"), LG_LIST(lg_ones(other, LG_SHAPE(1)))));
        assert_error(c, LG_ERR_ARGUMENT, "another context");
        assert_false(lg_write_npz(c, folder, LG_NAMES("x"), LG_LIST(x)));
        assert_error(c, LG_ERR_IO, "is a folder");
        lg_names_free(c, (lg_names){0});
        lg_set_error(c, LG_ERR_STATE, "an earlier error");
        assert_false(lg_write_npz(c, path, LG_NAMES("x"), LG_LIST(x)));
        assert_error(c, LG_ERR_STATE, "an earlier error");
        assert_int_equal(count_files(false), files);
        free(endless);
        lg_close(other);
        lg_close(c);
}

static bool write_two(lg_ctx *c, const char *path)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(50000)), *y = lg_ones(c, LG_SHAPE(3));
        const bool ok = lg_write_npz(c, path, LG_NAMES("x", "y"), LG_LIST(x, y));
        lg_free(x);
        lg_free(y);
        return ok;
}

TEST_CASE(failing_calls_leave_the_old_file)
{
        lg_ctx *c = open_ctx();
        write_while_calls_fail(c, write_two, "lg_write_npz: /tmp");
        memset(&faulty, 0, sizeof faulty);
        faulty.piecemeal = true; /* and interrupted calls go on */
        c->files = &faulty_files;
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(300));
        assert_true(lg_write_npz(c, at("pieces.npz"), LG_NAMES("x"), LG_LIST(x)));
        assert_true(faulty.calls > 300);
        lg_tensor *t = lg_read_npz(c, at("pieces.npz"), "x");
        assert_ok(c);
        double written[300], got[300];
        assert_int_equal(read_all(x, written, 300), read_all(t, got, 300));
        assert_memory_equal(written, got, sizeof got);
        lg_close(c);
}

TEST_CASE(failing_allocations_are_errors)
{
        const char *path = at("memory.npz");
        for (int n = 1, done = 0; !done; n++) {
                failing memory = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
                test_device(c);
                lg_tensor *x = lg_transpose(lg_ones(c, LG_SHAPE(200, 300)), 0, 1);
                assert_ok(c);
                const int64_t live = lg_live_tensors(c);
                unlink(path);
                const int files = count_files(false);
                arm(&memory, n, false);
                const bool written = lg_write_npz(c, path, LG_NAMES("x", "y"), LG_LIST(x, x));
                const lg_names names = lg_npz_names(c, path);
                lg_tensor *t = lg_read_npz(c, path, "y");
                done = memory.calls < n;
                arm(&memory, 0, false);
                assert_int_equal(lg_live_tensors(c), live + (t != NULL));
                assert_int_equal(count_files(false), files + written);
                assert_true(done ? t && names.count == 2 : !t);
                if (!done)
                        assert_error(c, LG_ERR_MEMORY, "");
                lg_close(c);
                assert_int_equal(memory.bytes, 0);
        }
}
#else
TEST_CASE(without_libzip_they_say_so)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_read_npz(c, "a.npz", "x"));
        assert_error(c, LG_ERR_STATE, "lg_read_npz: libgrad was built without libzip; install it (Debian: libzip-dev)");
        assert_int_equal(lg_npz_names(c, "a.npz").count, 0);
        assert_error(c, LG_ERR_STATE, "lg_npz_names");
        lg_names_free(c, (lg_names){0});
        assert_false(lg_write_npz(c, at("a.npz"), LG_NAMES("x"), LG_LIST(lg_ones(c, LG_SHAPE(1)))));
        assert_error(c, LG_ERR_STATE, "lg_write_npz");
        assert_int_equal(count_files(false), 0);
        lg_close(c);
}
#endif

AROUND_TESTS(make_folder, remove_folder);
