/* test_npz.c - NumPy's archives of arrays: what NumPy wrote, hostile ones, what is written, libzip without memory. */
#include "npy_txt.h"
#include "zip.h"

static char line[1 << 16];
static uint8_t file[1 << 16];

/* The archive of that name in npy.txt, as a file. */
static const char *numpy_archive(const char *name)
{
        FILE *f = open_npy_txt();
        while (next_line(f, line, sizeof line)) {
                if (strcmp(strtok(line, " "), "npz") != 0 || strcmp(strtok(NULL, " "), name) != 0)
                        continue;
                char *bytes = strtok(NULL, " \n");
                put_file(at("numpy.npz"), bytes, from_hex(bytes));
                fclose(f);
                return at("numpy.npz");
        }
        fail_msg("npy.txt has no archive %s", name);
        return NULL;
}

static void assert_names(lg_ctx *c, const char *path, int64_t count, const char *const *expect)
{
        lg_names names = lg_npz_names(c, path);
        assert_ok(c);
        assert_int_equal(names.count, count);
        for (int64_t i = 0; i < count; i++) {
                assert_string_equal(names.items[i], expect[i]);
                assert_non_null(lg_read_npz(c, path, names.items[i]));
        }
        lg_names_free(c, names);
        assert_ok(c);
}

TEST_CASE(archives_of_numpy_are_read)
{
        lg_ctx *c = open_ctx();
        const char *path = numpy_archive("stored");
        assert_names(c, path, 3, (const char *const[]){"x", "y", "layers/0.weight"});
        lg_tensor *x = lg_read_npz(c, path, "x"), *y = lg_read_npz(c, path, "y.npy");
        assert_list(x, 0, 0, 1, 2, 3, 4, 5);
        assert_list(y, 0, 7, -8);
        assert_int_equal(lg_dtype_of(y), LG_I64);
        x = lg_read_npz(c, path, "layers/0.weight");
        assert_int_equal(lg_size_of(x, 0), 3);
        assert_list(x, 0, 0, 3, 1, 4, 2, 5);
        path = numpy_archive("deflated");
        assert_names(c, path, 3, (const char *const[]){"x", "zeros", "größe"});
        assert_list(lg_read_npz(c, path, "größe"), 0, 7, -8);
        assert_int_equal(lg_numel(lg_read_npz(c, path, "zeros")), 2000);
        assert_ok(c);
        lg_close(c);
}

/* ---- archives made here ---- */

#define DICT "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}"
static const char three[] = "\x93NUMPY\1\0\x37\0" DICT "\1\2\3", four[] = "\x93NUMPY\1\0\x37\0" DICT "\1\2\3\4";
#define THREE sizeof three - 1

static const char *make(const zip_entry *entries, int count)
{
        const char *path = at("made.npz");
        put_file(path, file, zip_make(file, entries, count));
        return path;
}

TEST_CASE(other_archives_are_read)
{
        lg_ctx *c = open_ctx();
        const char *path = make((const zip_entry[]){{.name = "readme.txt", .data = "no array", .bytes = 8},
                                                    {"a.npy", three, THREE, .zip64 = true},
                                                    {"b.npy", three, THREE, .method = 8, .zip64 = true},
                                                    {"a.npy.npy", three, THREE, .method = 8},
                                                    {".npy", three, THREE, .method = 0}},
                                5);
        assert_names(c, path, 4, (const char *const[]){"a", "b", "a.npy", ""});
        assert_list(lg_read_npz(c, path, "b"), 0, 1, 2, 3);
        const int64_t live = lg_live_tensors(c);
        assert_null(lg_read_npz(c, path, "readme.txt"));
        assert_error(c, LG_ERR_ARGUMENT, "has no array \"readme.txt\"");
        assert_null(lg_read_npz(c, path, "c"));
        assert_error(c, LG_ERR_ARGUMENT, "lg_npz_names()");
        assert_null(lg_read_npz(c, path, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "the name is NULL");
        assert_null(lg_read_npz(c, NULL, "a"));
        assert_error(c, LG_ERR_ARGUMENT, "the path is NULL");
        assert_null(lg_read_npz(c, "/dev/null", "a"));
        assert_error(c, LG_ERR_IO, "is a device");
        assert_int_equal(lg_npz_names(c, "/nowhere/a.npz").count, 0);
        assert_error(c, LG_ERR_IO, "lg_npz_names: /nowhere/a.npz");
        lg_names kept = lg_npz_names(c, path); /* lg_close frees them */
        assert_int_equal(kept.count, 4);
        lg_names_free(c, (lg_names){1, (const char *const[]){"mine"}});
        assert_int_equal(lg_live_tensors(c), live);
        path = make(NULL, 0);
        assert_names(c, path, 0, NULL);
        lg_close(c);
}

TEST_CASE(hostile_archives_are_refused)
{
        static const struct {
                zip_entry e;
                const char *why;
        } bad[] = {
                {{"a.npy", three, THREE, .wrong_crc = 1}, "CRC"},
                {{"a.npy", three, THREE, .method = 8, .wrong_crc = 1}, "CRC"},
                {{"a.npy", three, THREE, .flags = 1}, "encrypted"},
                {{"a.npy", three, THREE, .method = 12}, "compressed by method 12"},
                {{"a.npy", three, THREE, .says = 1 << 30}, "impossible sizes: 1073741824"},
                {{"a.npy", three, THREE, .says = (uint64_t)1 << 62, .zip64 = true}, "impossible sizes"},
                {{"a.npy", three, THREE, .method = 8, .says = (uint64_t)1 << 40, .zip64 = true}, "impossible sizes"},
                {{"a.npy", three, THREE, .method = 8, .says = THREE + 1}, "more data than its header says"},
                {{"a.npy", three, THREE, .method = 8, .says = THREE - 1}, "is truncated: it ends at byte 67"},
                {{"a.npy", four, THREE + 1, .method = 0}, "more data than its header says"},
                {{"a.npy", four, THREE + 1, .method = 8, .says = THREE}, ""},
                {{"a.npy", three, THREE - 1, .method = 0}, "is truncated"},
                {{"a.npy", three, 9, .method = 8}, "is truncated"},
                {{"a.npy", "", 0, .method = 0}, "is truncated"},
                {{"a.npy", "no npy at all", 13, .method = 0}, "byte 0: the magic"},
                {{"a.npy", "PK\3\4 and so on", 13, .method = 0}, "byte 0: the magic"},
                {{"a.npy", "\x01\x02\x03", 3, .method = 8, .says = 1000}, "is truncated: it ends at byte 3"},
        };
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                const char *path = make(&bad[i].e, 1);
                assert_null(lg_read_npz(c, path, "a"));
                assert_non_null(strstr(lg_error(c), "made.npz, array \"a\""));
                assert_error(c, LG_ERR_FORMAT, bad[i].why);
                assert_int_equal(lg_live_tensors(c), 0);
        }
        const char *path = make(
                (const zip_entry[]){{"a.npy", three, THREE, .method = 0}, {"a.npy", three, THREE, .method = 0}}, 2);
        assert_null(lg_read_npz(c, path, "a"));
        assert_error(c, LG_ERR_FORMAT, "two entries \"a.npy\"");
        assert_int_equal(lg_npz_names(c, path).count, 0);
        assert_error(c, LG_ERR_FORMAT, "two entries \"a\"");
        lg_close(c);
}

/* Whatever became of an archive, it is an array or an error of its own. */
static void try_archive(lg_ctx *c, size_t bytes)
{
        const char *path = at("tried.npz");
        put_file(path, file, bytes);
        for (int i = 0; i < 2; i++) {
                lg_tensor *t = i ? lg_read_npz(c, path, "a") : NULL;
                if (!i)
                        lg_names_free(c, lg_npz_names(c, path));
                const lg_error_code code = lg_error_code_of(c);
                assert_true(t || !i || code);
                if (code && code != LG_ERR_FORMAT && code != LG_ERR_MEMORY && code != LG_ERR_IO &&
                    (!i || code != LG_ERR_ARGUMENT))
                        fail_msg("%s: %s", lg_error_name(code), lg_error(c));
                lg_clear_error(c);
                lg_free(t);
        }
}

TEST_CASE(damaged_archives_are_survived)
{
        lg_ctx *c = open_ctx();
        const zip_entry entries[] = {{"a.npy", three, THREE, .method = 8, .zip64 = true},
                                     {"b.npy", three, THREE, .method = 0}};
        const size_t n = zip_make(file, entries, 2);
        for (size_t cut = 0; cut < n; cut++) {
                put_file(at("cut.npz"), file, cut);
                assert_null(lg_read_npz(c, at("cut.npz"), "a"));
                assert_error(c, LG_ERR_FORMAT, "lg_read_npz");
        }
        for (size_t i = 0; i < n; i++)
                for (int k = 0; k < 3; k++) {
                        const uint8_t was = file[i];
                        file[i] = k == 0 ? 255 : k == 1 ? 0 : (uint8_t)(was ^ 1);
                        try_archive(c, n);
                        file[i] = was;
                }
        assert_int_equal(lg_live_tensors(c), 0);
        put_file(at("cut.npz"), three, THREE);
        assert_null(lg_read_npz(c, at("cut.npz"), "a"));
        assert_error(c, LG_ERR_FORMAT, "is no zip archive");
        lg_close(c);
}

/* ---- writing ---- */

TEST_CASE(what_is_written_is_read)
{
        lg_ctx *c = open_ctx();
        const char *path = at("written.npz");
        const float values[] = {1, 2, 3, 4, 5, 6};
        lg_tensor *x = lg_from(c, values, LG_SHAPE(2, 3)), *y = lg_transpose(x, 0, 1),
                  *big = lg_ones(c, LG_SHAPE(300, 400));
        assert_true(lg_write_npz(c, path, LG_NAMES("x", "größe/y", "big.npy", "none"),
                                 LG_LIST(x, y, big, lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64))));
        assert_names(c, path, 4, (const char *const[]){"x", "größe/y", "big.npy", "none"});
        assert_list(lg_read_npz(c, path, "x"), 0, 1, 2, 3, 4, 5, 6);
        assert_list(lg_read_npz(c, path, "größe/y"), 0, 1, 4, 2, 5, 3, 6);
        assert_int_equal(lg_dtype_of(lg_read_npz(c, path, "none")), LG_I64);
        assert_near(lg_item(lg_sum(lg_read_npz(c, path, "big.npy"))), 120000, 0);
        contents first = get_file(path);
        assert_memory_equal(first.data, "PK\3\4", 4);
        assert_memory_equal(first.data + 10, "\0\0\x21\0", 4); /* 1980-01-01, and not the time of writing */
        /* libzip wrote the checksum and the sizes into the head of the entry when it had written the entry. */
        const uint8_t *head = (uint8_t *)first.data;
        const size_t name = (size_t)zip_get(head + 26, 2), size = (size_t)zip_get(head + 18, 4);
        assert_int_equal(size, 128 + sizeof values);
        assert_int_equal(zip_get(head + 22, 4), size);
        assert_int_equal(zip_get(head + 14, 4), crc32(0, head + 30 + name + zip_get(head + 28, 2), (unsigned)size));
        free(first.data);
        assert_ok(c);
        lg_close(c);
}

/* ---- libzip without memory ---- */

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
void *__libc_malloc(size_t bytes);
static volatile int mallocs, failing_malloc; /* 0: none fails; compilers think that they know malloc */

void *malloc(size_t bytes)
{
        if (!failing_malloc || ++mallocs != failing_malloc)
                return __libc_malloc(bytes);
        errno = ENOMEM;
        return NULL;
}

/* False where valgrind has put its own in front. */
static bool malloc_is_ours(void)
{
        mallocs = 0;
        failing_malloc = -1;
        char *volatile copy = strdup(folder);
        failing_malloc = 0;
        free(copy);
        return mallocs > 0;
}

TEST_CASE(libzip_without_memory_is_no_memory)
{
        if (!malloc_is_ours())
                skip();
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        const char *path = at("malloc.npz"), *deflated = numpy_archive("deflated");
        int failures = 0;
        for (int n = 1, done = 0; !done; n++) {
                mallocs = 0;
                failing_malloc = n;
                const bool written = lg_write_npz(c, path, LG_NAMES("x", "y"), LG_LIST(x, x));
                lg_tensor *t = lg_read_npz(c, deflated, "zeros");
                const lg_names names = lg_npz_names(c, deflated);
                failing_malloc = 0;
                done = mallocs < n;
                assert_true(lg_error(c) || (written && t && names.count == 3));
                failures += lg_error(c) != NULL;
                if (lg_error(c))
                        assert_error(c, LG_ERR_MEMORY, "libzip");
                lg_free(t);
                lg_names_free(c, names);
        }
        assert_true(failures > 10);
        lg_close(c);
}
#define MALLOC_FAILS 1
#endif

AROUND_TESTS(make_folder, remove_folder);
