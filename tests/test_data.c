/* test_data.c - IDX files, data sets, loaders: order, scopes, workers, failures. */
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "test.h"

/* ---- IDX files ---- */

#ifndef LG_ZLIB
#define LG_ZLIB 0 /* the library is built without it, and reads plain files only */
#endif

static char path[64];

/* A file of these bytes, gzip or plain, at `path`. */
static void write_file(const void *data, size_t bytes, bool zipped)
{
        if (zipped) {
                gzFile f = gzopen(path, "wb");
                assert_int_equal(gzwrite(f, data, (unsigned)bytes), bytes);
                gzclose(f);
        } else {
                FILE *f = fopen(path, "wb");
                assert_int_equal(fwrite(data, 1, bytes, f), bytes);
                fclose(f);
        }
}

static int make_path(void **state)
{
        (void)state;
        strcpy(path, "/tmp/libgrad-test-XXXXXX");
        int fd = mkstemp(path);
        return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
        (void)state;
        return unlink(path);
}

static const uint8_t good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255};

TEST_CASE_WITH(idx_files_are_read, make_path, remove_path)
{
        lg_ctx *c = open_ctx();
        for (int zipped = 0; zipped <= LG_ZLIB; zipped++) {
                write_file(good, sizeof good, zipped);
                lg_tensor *t = lg_read_idx(c, path);
                assert_ok(c);
                assert_int_equal(lg_dtype_of(t), LG_U8);
                assert_int_equal(lg_size_of(t, 0), 2);
                assert_list(t, 0, 1, 2, 3, 4, 5, 255);
        }
        const uint8_t shorts[] = {0, 0, 0x0B, 1, 0, 0, 0, 2, 0xFF, 0xFE, 1, 0};
        write_file(shorts, sizeof shorts, false);
        assert_list(lg_read_idx(c, path), 0, -2, 256);
        const uint8_t bytes[] = {0, 0, 0x09, 1, 0, 0, 0, 2, 0xFF, 0x7F};
        write_file(bytes, sizeof bytes, false);
        assert_list(lg_read_idx(c, path), 0, -1, 127);
        const uint8_t ints[] = {0, 0, 0x0C, 1, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xF0};
        write_file(ints, sizeof ints, false);
        assert_list(lg_read_idx(c, path), 0, -16);
        const uint8_t floats[] = {0, 0, 0x0D, 1, 0, 0, 0, 1, 0xC0, 0x20, 0, 0};
        write_file(floats, sizeof floats, false);
        assert_list(lg_read_idx(c, path), 0, -2.5);
        const uint8_t doubles[] = {0, 0, 0x0E, 1, 0, 0, 0, 1, 0x3F, 0xE0, 0, 0, 0, 0, 0, 0};
        write_file(doubles, sizeof doubles, LG_ZLIB);
        assert_list(lg_read_idx(c, path), 0, 0.5);
        assert_ok(c);
        lg_close(c);
}

static void refused(lg_ctx *c, const void *data, size_t bytes, bool zipped, const char *why)
{
        int64_t live = lg_live_tensors(c);
        write_file(data, bytes, zipped);
        assert_null(lg_read_idx(c, path));
        assert_non_null(strstr(lg_error(c), path));
        assert_error(c, LG_ERR_FORMAT, why);
        assert_int_equal(lg_live_tensors(c), live);
}

TEST_CASE_WITH(broken_idx_files_are_refused, make_path, remove_path)
{
        lg_ctx *c = open_ctx();
        uint8_t bad[32];
        for (int zipped = 0; zipped <= LG_ZLIB; zipped++) {
                for (size_t n = 0; n < sizeof good; n++)
                        refused(c, good, n, zipped, "truncated");
                memcpy(bad, good, sizeof good);
                refused(c, bad, sizeof good + 1, zipped, "more data");
                bad[0] = 1;
                refused(c, bad, sizeof good, zipped, "no IDX file");
                bad[0] = 0;
                bad[2] = 7;
                refused(c, bad, sizeof good, zipped, "element type");
                bad[2] = 8;
                bad[3] = 9;
                refused(c, bad, sizeof good, zipped, "9 dimensions");
                bad[3] = 0;
                refused(c, bad, sizeof good, zipped, "0 dimensions");
                bad[3] = 2;
                bad[4] = bad[8] = 255;
                refused(c, bad, sizeof good, zipped, "is ");
        }
        assert_null(lg_read_idx(c, "/nowhere/file"));
        assert_error(c, LG_ERR_IO, "/nowhere/file");
        assert_null(lg_read_idx(c, "/tmp"));
        assert_error(c, LG_ERR_IO, "folder");
        assert_null(lg_read_idx(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        assert_null(lg_dataset_fashion_mnist(c, "train", .folder = "/nowhere"));
        assert_error(c, LG_ERR_IO, "/nowhere");
        assert_null(lg_dataset_fashion_mnist(c, "all"));
        assert_error(c, LG_ERR_ARGUMENT, "\"all\"");
        lg_close(c);
}

/* A gzip file without its end, and one with a wrong byte; or, where zlib is missing, any. */
TEST_CASE_WITH(broken_gzip_files_are_refused, make_path, remove_path)
{
        lg_ctx *c = open_ctx();
        uint8_t packed[256];
        write_file(good, sizeof good, true);
        FILE *f = fopen(path, "rb");
        size_t n = fread(packed, 1, sizeof packed, f);
        fclose(f);
        for (size_t cut = 11; cut < n; cut++)
                refused(c, packed, cut, false, LG_ZLIB ? "" : "zlib1g-dev): gunzip it");
        packed[n - 6] ^= 1;
        refused(c, packed, n, false, LG_ZLIB ? "damaged" : "gunzip it");
        lg_close(c);
}

static const char *name_of(const char *end)
{
        static char name[80];
        snprintf(name, sizeof name, "%s%s", path, end);
        return name;
}

/* A pipe that nobody writes to would be waited for: the alarm ends the test then. */
TEST_CASE_WITH(only_regular_files_are_read, make_path, remove_path)
{
        lg_ctx *c = open_ctx();
        write_file(good, sizeof good, false);
        assert_int_equal(symlink(path, name_of("-link")), 0);
        assert_list(lg_read_idx(c, name_of("-link")), 0, 1, 2, 3, 4, 5, 255);
        unlink(name_of("-link"));
        assert_int_equal(mkfifo(name_of("-pipe"), 0600), 0);
        alarm(60);
        lg_tensor *t = lg_read_idx(c, name_of("-pipe"));
        alarm(0);
        unlink(name_of("-pipe"));
        assert_null(t);
        assert_error(c, LG_ERR_IO, "is a pipe, not a regular file");
        assert_null(lg_read_idx(c, "/dev/null"));
        assert_error(c, LG_ERR_IO, "/dev/null is a device, not a regular file");
        lg_close(c);
}

/* Sizes of zero do not make the others good: all are of an element type of 8 bytes, then of 1. */
TEST_CASE_WITH(sizes_beyond_memory_are_a_wrong_format, make_path, remove_path)
{
        lg_ctx *c = open_ctx();
        for (int zero = 0; zero < 3; zero++)
                for (int type = 0; type < 2; type++) {
                        uint8_t header[16] = {0, 0, type ? 0x0E : 0x08, 3};
                        memset(header + 4, 255, 12);
                        memset(header + 4 + 4 * zero, 0, 4);
                        refused(c, header, sizeof header, false, "beyond all memory");
                }
        const uint8_t empty[] = {0, 0, 0x0E, 2, 0, 0, 0, 0, 0, 0, 0, 3};
        write_file(empty, sizeof empty, false);
        lg_tensor *t = lg_read_idx(c, path);
        assert_ok(c);
        assert_int_equal(lg_size_of(t, 1), 3);
        assert_int_equal(lg_numel(t), 0);
        lg_close(c);
}

#if LG_ZLIB
/* zlib's functions, but that reads fail for want of memory from the given one on; 0: none does. */
static int reads, failing_read;

static bool read_fails(void)
{
        return failing_read && reads >= failing_read;
}

int gzread(gzFile f, void *data, unsigned bytes)
{
        int (*real)(gzFile, void *, unsigned);
        *(void **)&real = dlsym(RTLD_NEXT, "gzread");
        reads++;
        return read_fails() ? -1 : real(f, data, bytes);
}

const char *gzerror(gzFile f, int *ret)
{
        const char *(*real)(gzFile, int *);
        *(void **)&real = dlsym(RTLD_NEXT, "gzerror");
        const char *message = real(f, ret);
        if (!read_fails())
                return message;
        *ret = Z_MEM_ERROR;
        return "out of memory";
}

TEST_CASE_WITH(zlib_without_memory_is_no_memory, make_path, remove_path)
{
        lg_ctx *c = open_ctx();
        write_file(good, sizeof good, true);
        for (int n = 1; n <= 5; n++) { /* magic, two sizes, elements, the end */
                reads = 0;
                failing_read = n;
                lg_tensor *t = lg_read_idx(c, path);
                failing_read = 0;
                assert_null(t);
                assert_error(c, LG_ERR_MEMORY, path);
        }
        assert_non_null(lg_read_idx(c, path));
        lg_close(c);
}
#endif

/* ---- loaders ---- */

#define ROWS 23

/* x[i] = (i, i + 0.5), y[i] = 100 + i. */
static lg_dataset *numbered(lg_ctx *c)
{
        float x[ROWS * 2];
        int64_t y[ROWS];
        for (int i = 0; i < ROWS; i++) {
                x[2 * i] = (float)i;
                x[2 * i + 1] = (float)i + 0.5f;
                y[i] = 100 + i;
        }
        lg_scope scope = lg_scope_begin(c); /* the data set keeps what it needs */
        lg_dataset *d = lg_dataset_tensors(c, lg_from(c, x, LG_SHAPE(ROWS, 2), .device = lg_cpu()),
                                           lg_from(c, y, LG_SHAPE(ROWS), .dtype = LG_I64, .device = lg_cpu()));
        lg_scope_end(c, scope);
        return d;
}

/* The rows of a batch, whose x and y must fit, appended to rows; returns how many there are then. */
static int take(const lg_batch *b, int *rows, int count)
{
        double x[2 * ROWS], y[ROWS];
        int64_t n = read_all(b->y, y, ROWS);
        assert_int_equal(read_all(b->x, x, 2 * ROWS), 2 * n);
        for (int i = 0; i < n; i++) {
                assert_true(x[2 * i] == y[i] - 100 && x[2 * i + 1] == x[2 * i] + 0.5);
                rows[count++] = (int)x[2 * i];
        }
        return count;
}

static int epoch(lg_loader *l, int rows[ROWS])
{
        int count = 0;
        for (lg_batch b; lg_loader_next(l, &b);) {
                assert_int_equal(b.count, lg_loader_batches(l));
                count = take(&b, rows, count);
        }
        return count;
}

static bool is_permutation(const int *rows)
{
        int seen[ROWS] = {0};
        for (int i = 0; i < ROWS; i++)
                seen[rows[i]]++;
        for (int i = 0; i < ROWS; i++)
                if (seen[i] != 1)
                        return false;
        return true;
}

TEST_CASE(orders_depend_on_seed_and_epoch_only)
{
        int rows[2][3][ROWS], other[ROWS];
        for (int workers = 0; workers < 4; workers += 3) {
                lg_ctx *c = open_ctx();
                lg_seed(c, (uint64_t)workers);
                lg_loader *l = lg_loader_open(c, numbered(c), 5, .shuffle = true, .workers = workers, .seed = 9);
                for (int e = 0; e < 3; e++) {
                        assert_int_equal(epoch(l, rows[workers > 0][e]), ROWS);
                        assert_true(is_permutation(rows[workers > 0][e]));
                }
                lg_loader *m = lg_loader_open(c, numbered(c), 7, .shuffle = true, .workers = workers, .seed = 10);
                epoch(m, other);
                assert_memory_not_equal(other, rows[0][0], sizeof other);
                assert_ok(c);
                lg_close(c);
        }
        assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
        assert_memory_not_equal(rows[0][0], rows[0][1], sizeof rows[0][0]);
}

TEST_CASE(plain_order_last_batch_and_scale)
{
        lg_ctx *c = open_ctx();
        int rows[ROWS];
        lg_loader *l = lg_loader_open(c, numbered(c), 5), *d = lg_loader_open(c, numbered(c), 5, .drop_last = true);
        assert_int_equal(lg_loader_batches(l), 5);
        assert_int_equal(epoch(l, rows), ROWS);
        for (int i = 0; i < ROWS; i++)
                assert_int_equal(rows[i], i);
        assert_int_equal(lg_loader_batches(d), 4);
        assert_int_equal(epoch(d, rows), 20);
        lg_tensor *bytes = lg_from(c, ((uint8_t[]){0, 51, 255}), LG_SHAPE(3, 1), .dtype = LG_U8, .device = lg_cpu());
        lg_tensor *y = lg_arange(c, 0, 3, 1, .device = lg_cpu());
        lg_batch b;
        assert_true(lg_loader_next(
                lg_loader_open(c, lg_dataset_tensors(c, bytes, y, .scale = 1.0 / 255, .shift = -1), 3), &b));
        assert_int_equal(lg_dtype_of(b.x), LG_F32);
        assert_list(b.x, 1e-7, -1, -0.8, 0);
        assert_list(b.y, 0, 0, 1, 2);
        assert_true(lg_loader_next(lg_loader_open(c, lg_dataset_tensors(c, bytes, y), 2), &b));
        assert_int_equal(lg_dtype_of(b.x), LG_U8);
        assert_list(b.x, 0, 0, 51);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(break_goes_on_and_restart_begins_anew)
{
        for (int workers = 0; workers < 3; workers++) {
                lg_ctx *c = open_ctx();
                lg_loader *l = lg_loader_open(c, numbered(c), 5, .workers = workers);
                lg_batch b;
                int64_t live = lg_live_tensors(c);
                assert_true(lg_loader_next(l, &b) && lg_loader_next(l, &b));
                assert_int_equal(b.index, 1);
                assert_true(lg_loader_next(l, &b));
                assert_int_equal(b.index, 2);
                assert_int_equal(lg_live_tensors(c), live + 2);
                lg_loader_restart(l);
                assert_int_equal(lg_live_tensors(c), live);
                for (int i = 0; i < 5; i++) {
                        assert_true(lg_loader_next(l, &b));
                        assert_int_equal(b.index, i);
                }
                assert_false(lg_loader_next(l, &b));
                assert_int_equal(lg_live_tensors(c), live);
                assert_true(lg_loader_next(l, &b));
                assert_int_equal(b.index, 0);
                lg_loader_close(l);
                assert_int_equal(lg_live_tensors(c), live);
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(loaders_keep_their_own_steps)
{
        lg_ctx *c = open_ctx();
        lg_dataset *d = numbered(c);
        lg_loader *outer = lg_loader_open(c, d, 5), *inner = lg_loader_open(c, d, 7, .workers = 1);
        lg_dataset_free(d);
        int rows[ROWS], steps = 0;
        lg_batch a, b;
        int64_t live = lg_live_tensors(c);
        /* nested */
        while (lg_loader_next(outer, &a)) {
                assert_int_equal(epoch(inner, rows), ROWS);
                take(&a, rows, 0);
                steps++;
        }
        assert_int_equal(steps, 5);
        assert_int_equal(lg_live_tensors(c), live);
        /* interleaved: the one's next leaves the other's batch alone, whichever began first */
        lg_loader_next(outer, &a);
        lg_loader_next(inner, &b);
        lg_tensor *of_b = lg_sum(b.y);
        lg_loader_next(outer, &a);
        assert_int_equal(take(&b, rows, 0), 7);
        assert_int_equal(rows[0], 0);
        assert_int_equal(lg_item_i64(of_b), 721);
        lg_loader_next(inner, &b);
        assert_int_equal(take(&a, rows, 0), 5);
        assert_int_equal(rows[0], 5);
        lg_loader_next(outer, &a);
        lg_loader_next(outer, &a);
        assert_int_equal(take(&b, rows, 0), 7);
        assert_int_equal(rows[0], 7);
        assert_int_equal(lg_live_tensors(c), live + 4);
        lg_loader_restart(outer);
        lg_loader_restart(inner);
        assert_int_equal(lg_live_tensors(c), live);
        /* a scope around ends a step before its loader does; one inside a step ends with it */
        lg_scope scope = lg_scope_begin(c);
        assert_true(lg_loader_next(outer, &a));
        lg_scope_end(c, scope);
        assert_true(lg_loader_next(outer, &a));
        assert_int_equal(a.index, 1);
        scope = lg_scope_begin(c);
        assert_true(lg_loader_next(outer, &a));
        assert_false(lg_scope_end(c, scope));
        assert_error(c, LG_ERR_STATE, "not open");
        /* what is kept or escapes outlives the step */
        lg_tensor *kept = lg_keep(a.x), *escaped = lg_escape(a.y);
        assert_true(lg_loader_next(outer, &a));
        assert_int_equal(lg_size_of(kept, 0), 5);
        assert_int_equal(lg_size_of(escaped, 0), 5);
        lg_free(kept);
        assert_ok(c);
        lg_close(c);
}

/* ---- failures ---- */

typedef struct budget {
        int64_t left; /* allocations that still succeed */
} budget;

static void *limited(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        budget *b = user;
        return b->left-- > 0 ? lg_system_alloc(c, device, bytes) : NULL;
}

static void release(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        (void)user;
        lg_system_free(c, device, p, bytes);
}

/* After a failed allocation the next call gives the batch that the failed one would have given. */
TEST_CASE(a_failed_batch_comes_again)
{
        for (int workers = 0; workers < 3; workers += 2) {
                budget memory = {INT64_MAX};
                lg_ctx *c = lg_open(.alloc = limited, .free = release, .user = &memory);
                assert_non_null(c);
                test_device(c);
                lg_loader *l = lg_loader_open(c, numbered(c), 5, .shuffle = true, .workers = workers, .seed = 4);
                int rows[ROWS], again[ROWS], count = 0, failures = 0;
                assert_int_equal(epoch(l, rows), ROWS);
                lg_loader_close(l);
                l = lg_loader_open(c, numbered(c), 5, .shuffle = true, .workers = workers, .seed = 4);
                assert_ok(c);
                while (count < ROWS) {
                        lg_batch b;
                        lg_empty_cache(c);
                        bool ok = false;
                        for (int64_t n = 0; !ok; n++) {
                                memory.left = n;
                                ok = lg_loader_next(l, &b);
                                memory.left = INT64_MAX;
                                if (!ok) {
                                        assert_error(c, LG_ERR_MEMORY, "out of memory");
                                        lg_empty_cache(c);
                                        failures++;
                                }
                        }
                        count = take(&b, again, count);
                        lg_keep(b.x); /* so that the next batch needs new memory */
                        lg_keep(b.y);
                }
                assert_true(failures > 5);
                assert_memory_equal(rows, again, sizeof rows);
                lg_close(c);
        }
}

TEST_CASE(steps_ask_the_system_for_nothing)
{
        lg_ctx *c = lg_open();
        lg_device d = test_device(c);
        lg_loader *l = lg_loader_open(c, numbered(c), 5, .shuffle = true, .workers = 2);
        int64_t host = 0, device = 0;
        for (int step = 0; step < 2500; step++) {
                lg_batch b;
                if (step == 1500) { /* records of the dead are used again after a thousand */
                        host = lg_memory_stats(c, lg_cpu()).system_allocs;
                        device = lg_memory_stats(c, d).system_allocs;
                }
                lg_loader_next(l, &b);
        }
        assert_ok(c);
        assert_int_equal(lg_memory_stats(c, lg_cpu()).system_allocs, host);
        assert_int_equal(lg_memory_stats(c, d).system_allocs, device);
        lg_close(c);
}

TEST_CASE(wrong_arguments_are_told)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(4, 2), .device = lg_cpu()),
                  *y = lg_zeros(c, LG_SHAPE(3), .device = lg_cpu());
        assert_null(lg_dataset_tensors(c, x, y));
        assert_error(c, LG_ERR_SHAPE, "x has 4 rows but y has 3");
        assert_null(lg_dataset_tensors(c, x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "y is NULL");
        assert_null(lg_dataset_tensors(c, x, lg_zeros(c, LG_SHAPE_0D, .device = lg_cpu())));
        assert_error(c, LG_ERR_SHAPE, "dimension of rows");
        assert_null(lg_loader_open(c, NULL, 3));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        lg_dataset *d = numbered(c);
        assert_null(lg_loader_open(c, d, 0));
        assert_error(c, LG_ERR_ARGUMENT, "batch size is 0");
        assert_null(lg_loader_open(c, d, 1, .workers = -1));
        assert_error(c, LG_ERR_ARGUMENT, "-1 workers");
        lg_loader *l = lg_loader_open(c, d, 1);
        lg_set_error(c, LG_ERR_STATE, "stop");
        lg_batch b;
        assert_false(lg_loader_next(l, &b));
        lg_clear_error(c);
        assert_true(lg_loader_next(l, &b));
        assert_int_equal(b.index, 0);
        assert_false(lg_loader_next(NULL, &b));
        lg_close(c);
}
