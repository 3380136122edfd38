/* test_npy_write.c - NumPy's files of one array as libgrad writes them: every dtype, layout and failure. */
#include "files.h"

static lg_tensor *example(lg_ctx *c, lg_dtype dtype)
{
        const float values[] = {1, dtype == LG_U8 ? 254 : -2.5f, 0, 3};
        return lg_cast(lg_from(c, values, LG_SHAPE(2, 2)), dtype);
}

/* ---- what is written ---- */

static void assert_same(lg_tensor *a, lg_tensor *b)
{
        double values[8];
        assert_true(a && b && lg_dtype_of(a) == lg_dtype_of(b) && lg_ndim_of(a) == lg_ndim_of(b));
        for (int i = 0; i < lg_ndim_of(a); i++)
                assert_int_equal(lg_size_of(a, i), lg_size_of(b, i));
        assert_values(b, values, read_all(a, values, 8), 0);
}

TEST_CASE(what_is_written_is_read)
{
        lg_ctx *c = open_ctx();
        const char *path = at("array.npy");
        for (lg_dtype d = LG_F32; d <= LG_BOOL; d++) {
                lg_tensor *x = example(c, d);
                if (d == LG_BF16) {
                        assert_false(lg_write_npy(x, path));
                        assert_error(c, LG_ERR_DTYPE, "NumPy has no bfloat16; lg_cast() it");
                        continue;
                }
                lg_tensor *const all[] = {x, lg_transpose(x, 0, 1), lg_select(x, 1, 1), lg_slice(x, 0, 0, 0)};
                for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                        assert_true(lg_write_npy(all[i], path));
                        assert_same(all[i], lg_read_npy(c, path));
                        assert_ok(c);
                }
        }
        lg_tensor *w = lg_uniform(c, -1, 1, LG_SHAPE_0D, .dtype = LG_F64, .requires_grad = true);
        assert_true(lg_write_npy(w, path));
        assert_same(w, lg_read_npy(c, path));
        assert_int_equal(count_files(false), 1);
        lg_close(c);
}

TEST_CASE(the_bytes_are_those_of_the_format)
{
        lg_ctx *c = open_ctx();
        const uint8_t values[] = {1, 2, 3, 4, 5, 6};
        char expect[134];
        memset(expect, ' ', sizeof expect);
        memcpy(expect, "\x93NUMPY\x01\x00\x76\x00", 10);
        memcpy(expect + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }", 57);
        expect[127] = '\n';
        memcpy(expect + 128, values, 6);
        assert_true(lg_write_npy(lg_from(c, values, LG_SHAPE(6)), at("u8.npy")));
        assert_bytes(at("u8.npy"), expect, sizeof expect);
        lg_close(c);
}

/* For tests/data/npy.py check. */
TEST_CASE(files_for_numpy)
{
        const char *to = getenv("LG_TEST_NPY");
        if (!to)
                skip();
        lg_ctx *c = open_ctx();
        lg_tensor *large = lg_arange(c, 0, 300000, 1, .dtype = LG_F64);
        large = lg_sub(large, lg_mul_scalar(lg_floor(lg_div_scalar(large, 251)), 251));
        const char *const names[] = {"f32",  "f64", "f16",   "i64",        "i32", "u8",
                                     "bool", "0d",  "empty", "transposed", "1d",  "large"};
        lg_tensor *const all[] = {
                example(c, LG_F32),
                example(c, LG_F64),
                example(c, LG_F16),
                example(c, LG_I64),
                example(c, LG_I32),
                example(c, LG_U8),
                example(c, LG_BOOL),
                lg_scalar(c, 2.5),
                lg_zeros(c, LG_SHAPE(0, 3)),
                lg_transpose(example(c, LG_F32), 0, 1),
                lg_arange(c, 0, 3, 1, .dtype = LG_I64),
                lg_cast(lg_reshape(large, LG_SHAPE(3, 100000)), LG_F32),
        };
        char path[4096];
        const int64_t count = sizeof all / sizeof *all;
        for (int64_t i = 0; i < count; i++) {
                snprintf(path, sizeof path, "%s/%s.npy", to, names[i]);
                if (!lg_write_npy(all[i], path))
                        fail_msg("%s: %s", names[i], lg_error(c));
        }
        snprintf(path, sizeof path, "%s/all.npz", to);
        if (!lg_write_npz(c, path, LG_NAMES_OF(count, names), LG_LIST_OF(count, all)))
                assert_error(c, LG_ERR_STATE, "without libzip");
        lg_close(c);
}

/* ---- what is there already ---- */

static mode_t mode_of(const char *path)
{
        struct stat facts;
        assert_int_equal(lstat(path, &facts), 0);
        return facts.st_mode & (S_IFMT | 0777);
}

TEST_CASE(links_and_permissions_stay)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = example(c, LG_F32);
        const char *file = at("kept.npy"), *link = at("link.npy");
        put_file(file, "old", 3);
        assert_int_equal(chmod(file, 0640), 0);
        assert_int_equal(symlink("kept.npy", link), 0);
        assert_true(lg_write_npy(x, link));
        assert_int_equal(mode_of(link) & S_IFMT, S_IFLNK);
        assert_int_equal(mode_of(file), S_IFREG | 0640);
        assert_same(x, lg_read_npy(c, file));
        const mode_t mask = umask(027);
        assert_true(lg_write_npy(x, at("new.npy")));
        umask(mask);
        assert_int_equal(mode_of(at("new.npy")), S_IFREG | 0640);
        lg_close(c);
}

TEST_CASE(what_is_no_file_stays)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = example(c, LG_F32);
        const int files = count_files(false);
        assert_false(lg_write_npy(x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        assert_false(lg_write_npy(x, ""));
        assert_error(c, LG_ERR_IO, "\"\" is not the path of a file");
        assert_false(lg_write_npy(x, folder));
        assert_error(c, LG_ERR_IO, "is a folder");
        assert_false(lg_write_npy(x, "/dev/null"));
        assert_error(c, LG_ERR_IO, "/dev/null is a device");
        assert_int_equal(mode_of("/dev/null") & S_IFMT, S_IFCHR);
        assert_false(lg_write_npy(x, "/nowhere/at/all.npy"));
        assert_error(c, LG_ERR_IO, "/nowhere/at/all.npy");
        assert_false(lg_write_npy(x, "/proc/array.npy"));
        assert_error(c, LG_ERR_IO, "/proc/array.npy");
        assert_false(lg_write_npy(NULL, at("null.npy")));
        lg_set_error(c, LG_ERR_STATE, "an earlier error");
        assert_false(lg_write_npy(x, at("late.npy")));
        assert_error(c, LG_ERR_STATE, "an earlier error");
        lg_free(x);
        assert_int_equal(count_files(false), files);
        lg_close(c);
}

/* ---- failures ---- */

static bool write_large(lg_ctx *c, const char *path)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(100000));
        const bool ok = lg_write_npy(x, path);
        lg_free(x);
        return ok;
}

TEST_CASE(failing_calls_leave_the_old_file)
{
        lg_ctx *c = open_ctx();
        write_while_calls_fail(c, write_large, "lg_write_npy: /tmp");
        lg_close(c);
}

TEST_CASE(interrupted_calls_go_on)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(300));
        const char *path = at("pieces.npy");
        memset(&faulty, 0, sizeof faulty);
        faulty.piecemeal = true;
        c->files = &faulty_files;
        assert_true(lg_write_npy(x, path));
        lg_tensor *t = lg_read_npy(c, path);
        assert_ok(c);
        assert_true(faulty.calls > 300);
        assert_same(lg_slice(x, 0, 292, 300), lg_slice(t, 0, 292, 300));
        lg_close(c);
}

/* Writing a transposed tensor, and reading a file in Fortran order, with each allocation failing once. */
TEST_CASE(failing_allocations_are_errors)
{
        const char *path = at("fortran.npy"), *out = at("out.npy");
        const char front[] = "\x93NUMPY\1\0\x3D\0{'descr': '<f4', 'fortran_order': True, 'shape': (300, 200)}";
        uint8_t *file = calloc(1, sizeof front + 239999);
        memcpy(file, front, sizeof front - 1);
        file[8] = (uint8_t)(sizeof front - 1 - 10);
        put_file(path, file, sizeof front - 1 + 240000);
        free(file);
        for (int n = 1, done = 0; !done; n++) {
                failing memory = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
                test_device(c);
                lg_tensor *x = lg_transpose(lg_ones(c, LG_SHAPE(200, 300)), 0, 1);
                assert_ok(c);
                const int64_t live = lg_live_tensors(c);
                const int files = count_files(false);
                arm(&memory, n, false);
                lg_tensor *t = lg_read_npy(c, path);
                const bool written = t && lg_write_npy(x, out);
                done = memory.calls < n;
                arm(&memory, 0, false);
                if (done) {
                        assert_true(written);
                } else {
                        assert_false(written);
                        assert_error(c, LG_ERR_MEMORY, "");
                        assert_int_equal(lg_live_tensors(c), live + (t != NULL));
                        assert_int_equal(count_files(false), files);
                }
                lg_close(c);
                assert_int_equal(memory.bytes, 0);
        }
}

AROUND_TESTS(make_folder, remove_folder);
