/* test_stored.c - data sets that stay in their files: records, rows of NumPy's arrays, text. */
#include <limits.h>
#include "files.h"

#define RECORDS 37

/* A file of `skip` bytes and RECORDS records: a label, two floats, two bytes of bool. */
static const char *put_records(size_t skip, size_t more)
{
        static char bytes[4096];
        char *p = bytes;
        memset(bytes, 0x55, sizeof bytes);
        p += skip;
        for (int i = 0; i < RECORDS; i++) {
                float x[2] = {(float)i, (float)-i / 2};
                *p++ = (char)(i % 10);
                memcpy(p, x, sizeof x);
                p += sizeof x;
                *p++ = (char)(i % 3); /* 2 is true, too */
                *p++ = 0;
        }
        put_file(at("records.bin"), bytes, (size_t)(p - bytes) + more);
        return at("records.bin");
}

static lg_fields record(void)
{
        return LG_FIELDS(LG_FIELD("y", LG_U8, LG_SHAPE_0D), LG_FIELD("x", LG_F32, LG_SHAPE(2)),
                         LG_FIELD("flags", LG_BOOL, LG_SHAPE(2)));
}

TEST_CASE(records_are_read_by_threads)
{
        for (int workers = 0; workers < 4; workers++) {
                lg_ctx *c = open_ctx();
                if (workers == 3)
                        c->files = &faulty_files;
                memset(&faulty, 0, sizeof faulty);
                faulty.piecemeal = workers == 3;
                lg_dataset *d = lg_dataset_records(c, put_records(16, 0), record(), .skip = 16);
                assert_ok(c);
                assert_int_equal(lg_dataset_size(d), RECORDS);
                lg_loader *l = lg_loader_open(c, d, 5, .shuffle = true, .seed = 4, .workers = workers % 3);
                lg_dataset_free(d);
                bool seen[RECORDS] = {false};
                for (lg_batch b; lg_loader_next(l, &b);) {
                        double y[5], x[10], flags[10];
                        int64_t n = read_all(b.x, y, 5);
                        read_all(b.y, x, 10);
                        read_all(b.field[2], flags, 10);
                        assert_int_equal(lg_dtype_of(b.field[2]), LG_BOOL);
                        const uint8_t *raw = lg__data(lg_to(b.field[2], lg_cpu()));
                        for (int64_t i = 0; i < 2 * n; i++)
                                assert_in_range(raw[i], 0, 1);
                        for (int64_t i = 0; i < n; i++) {
                                int id = (int)x[2 * i];
                                assert_false(seen[id]);
                                seen[id] = true;
                                assert_true(x[2 * i + 1] == -id / 2.0 && y[i] == id % 10);
                                assert_true(flags[2 * i] == (id % 3 != 0) && flags[2 * i + 1] == 0);
                        }
                }
                for (int i = 0; i < RECORDS; i++)
                        assert_true(seen[i]);
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(records_that_are_wrong)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_dataset_records(c, put_records(0, 3), record()));
        assert_error(c, LG_ERR_FORMAT, "is truncated: the record at byte 407 has 3 bytes; records have 11");
        assert_null(lg_dataset_records(c, put_records(0, 0), record(), .skip = 400));
        assert_error(c, LG_ERR_FORMAT, "has 407 bytes; 400 before a record of 11 are expected");
        assert_null(lg_dataset_records(c, put_records(0, 0), record(), .skip = INT64_MAX));
        assert_error(c, LG_ERR_FORMAT, "9223372036854775807 before a record of");
        assert_null(lg_dataset_records(c, put_records(0, 0), record(), .skip = -1));
        assert_error(c, LG_ERR_ARGUMENT, ".skip is -1");
        assert_null(lg_dataset_records(c, NULL, record()));
        assert_error(c, LG_ERR_ARGUMENT, "the path is NULL");
        assert_null(lg_dataset_records(c, at("none"), record()));
        assert_error(c, LG_ERR_IO, "cannot be opened");
        assert_null(lg_dataset_records(c, folder, record()));
        assert_error(c, LG_ERR_IO, "is a folder");
        assert_null(lg_dataset_records(c, put_records(0, 0), LG_FIELDS(LG_RAGGED_FIELD("x", LG_U8, LG_SHAPE(11), 0))));
        assert_error(c, LG_ERR_ARGUMENT, "field x is ragged");
        assert_null(lg_dataset_records(c, put_records(0, 0), LG_FIELDS(LG_FIELD("x", LG_U8, LG_SHAPE(0)))));
        assert_error(c, LG_ERR_SHAPE, "no bytes");
        const lg_field large = LG_FIELD("x", LG_U8, LG_SHAPE(INT64_MAX / 4));
        assert_null(lg_dataset_records(c, put_records(0, 0), LG_FIELDS(large, large, large, large, large)));
        assert_error(c, LG_ERR_SHAPE, "");
        lg_close(c);
}

/* The file loses its end while a loader reads it, or cannot be read any more. */
TEST_CASE(files_that_change)
{
        for (int workers = 0; workers < 3; workers++) {
                lg_ctx *c = open_ctx();
                c->files = &faulty_files;
                memset(&faulty, 0, sizeof faulty);
                const char *path = put_records(0, 0);
                lg_dataset *d = lg_dataset_records(c, path, record());
                lg_loader *l = lg_loader_open(c, d, 10, .workers = workers);
                assert_int_equal(truncate(path, 180), 0);
                lg_batch b;
                assert_true(lg_loader_next(l, &b));
                assert_false(lg_loader_next(l, &b));
                assert_error(c, LG_ERR_FORMAT, "became shorter: sample 16 ends at byte 18");
                put_records(0, 0);
                assert_true(lg_loader_next(l, &b)); /* it goes on where it was */
                assert_int_equal(b.index, 1);
                lg_loader_restart(l);
                if (!workers) {
                        faulty.calls = 0;
                        faulty.fail_at = 5;
                        faulty.error = EIO;
                        assert_false(lg_loader_next(l, &b));
                        assert_error(c, LG_ERR_IO, "cannot be read at byte 12: Input/output error");
                }
                lg_close(c);
        }
}

/* ---- NumPy's arrays ---- */

TEST_CASE(rows_of_arrays)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 60, 1, .device = lg_cpu()), LG_SHAPE(10, 2, 3));
        lg_tensor *y = lg_arange(c, 0, 10, 1, .dtype = LG_I64, .device = lg_cpu());
        assert_true(lg_write_npy(x, at("x.npy")) && lg_write_npy(y, at("y.npy")));
        lg_dataset *d = lg_dataset_npy(c, LG_NAMES(at("x.npy"), at("y.npy")));
        assert_ok(c);
        assert_int_equal(lg_dataset_size(d), 10);
        lg_batch b;
        assert_true(lg_dataset_get(d, 7, &b));
        assert_list(b.x, 0, 42, 43, 44, 45, 46, 47);
        assert_list(b.y, 0, 7);
        lg_loader *l = lg_loader_open(c, d, 10, .workers = 1);
        assert_true(lg_loader_next(l, &b));
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_to(b.x, lg_cpu()), x)))) == 0);
        lg_dataset *alone = lg_dataset_npy(c, LG_NAMES(at("y.npy")));
        assert_true(lg_dataset_get(alone, 3, &b) && !b.y);
        /* what cannot be taken as it stands */
        assert_true(lg_write_npy(lg_slice(x, 0, 0, 4), at("short.npy")));
        assert_null(lg_dataset_npy(c, LG_NAMES(at("x.npy"), at("short.npy"))));
        assert_error(c, LG_ERR_SHAPE, "short.npy has 4 rows, and ");
        assert_true(lg_write_npy(lg_scalar(c, 1), at("scalar.npy")));
        assert_null(lg_dataset_npy(c, LG_NAMES(at("scalar.npy"))));
        assert_error(c, LG_ERR_SHAPE, "has 0 dimensions");
        assert_int_equal(truncate(at("x.npy"), 300), 0);
        assert_null(lg_dataset_npy(c, LG_NAMES(at("x.npy"))));
        assert_error(c, LG_ERR_FORMAT, "is truncated: it ends at byte 300");
        assert_null(lg_dataset_npy(c, LG_NAMES(at("y.npy"), NULL)));
        assert_error(c, LG_ERR_ARGUMENT, "the path is NULL");
        assert_null(lg_dataset_npy(c, LG_NAMES_OF(0, NULL)));
        assert_error(c, LG_ERR_ARGUMENT, "0 files");
        lg_close(c);
}

static void put_npy(const char *name, const char *descr, const char *order, size_t data)
{
        char bytes[512] = "\x93NUMPY\x01";
        int n = snprintf(bytes + 10, sizeof bytes - 10, "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 3), }\n",
                         descr, order);
        bytes[8] = (char)n;
        put_file(at(name), bytes, 10 + (size_t)n + data);
}

TEST_CASE(arrays_that_are_not_as_in_memory)
{
        lg_ctx *c = open_ctx();
        put_npy("fortran.npy", "<f4", "True", 24);
        put_npy("swapped.npy", ">f4", "False", 24);
        put_npy("narrow.npy", "<i2", "False", 12);
        put_npy("unsigned.npy", "<u8", "False", 48);
        put_npy("fine.npy", "|u1", "False", 6);
        assert_null(lg_dataset_npy(c, LG_NAMES(at("fortran.npy"))));
        assert_error(c, LG_ERR_STATE, "is in Fortran order, where rows are scattered: lg_read_npy() it");
        const char *const others[] = {"swapped.npy", "narrow.npy", "unsigned.npy"};
        for (int i = 0; i < 3; i++) {
                assert_null(lg_dataset_npy(c, LG_NAMES(at(others[i]))));
                assert_error(c, LG_ERR_DTYPE, "not as in memory");
        }
        assert_non_null(lg_dataset_npy(c, LG_NAMES(at("fine.npy"))));
        lg_close(c);
}

/* ---- text ---- */

TEST_CASE(bytes_of_text)
{
        lg_ctx *c = open_ctx();
        put_file(at("text"), "abcdefgh\xff", 9);
        lg_dataset *d = lg_dataset_text(c, at("text"), 3);
        assert_int_equal(lg_dataset_size(d), 2);
        lg_batch b;
        assert_true(lg_dataset_get(d, 1, &b));
        assert_int_equal(lg_dtype_of(b.x), LG_I64);
        assert_list(b.x, 0, 'd', 'e', 'f');
        assert_list(b.y, 0, 'e', 'f', 'g');
        d = lg_dataset_text(c, at("text"), 4, .stride = 1);
        assert_int_equal(lg_dataset_size(d), 5);
        assert_true(lg_dataset_get(d, 4, &b));
        assert_list(b.x, 0, 'e', 'f', 'g', 'h');
        assert_list(b.y, 0, 'f', 'g', 'h', 255);
        d = lg_dataset_text(c, at("text"), 8);
        assert_int_equal(lg_dataset_size(d), 1);
        assert_null(lg_dataset_text(c, at("text"), 9));
        assert_error(c, LG_ERR_FORMAT, "has 9 bytes; a sample takes 9 and the one that follows");
        assert_null(lg_dataset_text(c, at("text"), 0));
        assert_error(c, LG_ERR_ARGUMENT, "the length is 0");
        assert_null(lg_dataset_text(c, at("text"), 4, .stride = -1));
        assert_error(c, LG_ERR_ARGUMENT, ".stride -1");
        assert_null(lg_dataset_text(c, at("text"), INT64_MAX));
        assert_error(c, LG_ERR_SHAPE, "");
        lg_close(c);
}

TEST_CASE(calls_and_allocations_that_fail)
{
        const char *path = put_records(0, 0);
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        c->files = &faulty_files;
        for (int i = 1; i < 4; i++) {
                memset(&faulty, 0, sizeof faulty);
                faulty.fail_at = i;
                faulty.error = EIO;
                lg_dataset *d = lg_dataset_records(c, path, record());
                if (i < 3)
                        assert_error(c, LG_ERR_IO, "lg_dataset_records: ");
                assert_true((d != NULL) == (i == 3)); /* open, fstat */
                lg_dataset_free(d);
        }
        memset(&faulty, 0, sizeof faulty);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
        bool done = false;
        for (int64_t n = 1; !done; n++) {
                c = lg_open(.threads = 1, FAILING(&f));
                arm(&f, n, false);
                done = lg_dataset_records(c, path, record()) != NULL;
                arm(&f, 0, false);
                if (!done)
                        assert_error(c, LG_ERR_MEMORY, "");
                lg_close(c);
                assert_int_equal(f.bytes, 0);
                assert_true(n < 100);
        }
}

AROUND_TESTS(make_folder, remove_folder);
