/* test_stored.c - data sets that stay in their files: records, rows of NumPy's arrays, text, tokens. */
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

/* ---- tokens ---- */

#define TOKENS 1000

/* Token i of the file: 6634 i modulo 65521, which u16 holds and i16 does not. */
static int64_t token(int64_t i)
{
        return i * 6634 % 65521;
}

static const char *put_tokens(int bits, size_t skip, size_t more)
{
        static char bytes[8 * TOKENS + 64];
        for (int i = 0; i < TOKENS; i++)
                for (int b = 0; b < bits / 8; b++)
                        bytes[skip + (size_t)(i * (bits / 8) + b)] = (char)(token(i) >> (8 * b));
        put_file(at("tokens.bin"), bytes, skip + (size_t)(TOKENS * bits / 8) + more);
        return at("tokens.bin");
}

static void assert_window(const lg_dataset *d, int64_t i, int64_t length, int64_t stride)
{
        lg_batch b;
        assert_true(lg_dataset_get((lg_dataset *)d, i, &b));
        assert_int_equal(lg_dtype_of(b.x), LG_I64);
        for (int64_t k = 0; k < length; k++) {
                assert_true(((const int64_t *)lg__data(b.x))[k] == token(i * stride + k));
                assert_true(((const int64_t *)lg__data(b.y))[k] == token(i * stride + k + 1));
        }
}

TEST_CASE(windows_of_tokens)
{
        lg_ctx *c = open_ctx();
        for (int bits = 16; bits <= 32; bits += 16)
                for (size_t skip = 0; skip < 20; skip += 12) {
                        lg_dataset *d = lg_dataset_tokens(c, put_tokens(bits, skip, 0), 37, .bits = bits == 16 ? 0 : 32,
                                                          .skip = (int64_t)skip, .vocabulary = 65521);
                        assert_int_equal(lg_dataset_size(d), (TOKENS - 1) / 37);
                        assert_int_equal(lg_dataset_fields(d).count, 2);
                        for (int64_t i = 0; i < lg_dataset_size(d); i++)
                                assert_window(d, i, 37, 37);
                        lg_dataset_free(d);
                        d = lg_dataset_tokens(c, at("tokens.bin"), 998, .bits = bits, .skip = (int64_t)skip,
                                              .stride = 1);
                        assert_int_equal(lg_dataset_size(d), 2);
                        assert_window(d, 1, 998, 1);
                        lg_dataset_free(d);
                }
        lg_dataset *one = lg_dataset_tokens(c, put_tokens(16, 0, 0), 999, .stride = INT64_MAX);
        assert_int_equal(lg_dataset_size(one), 1);
        assert_window(one, 0, 999, 1);
        lg_dataset *two = lg_dataset_concat(c, one, lg_dataset_tokens(c, at("tokens.bin"), 999));
        assert_int_equal(lg_dataset_size(two), 2);
        lg_batch b;
        assert_true(lg_dataset_get(two, 1, &b));
        assert_true(((const int64_t *)lg__data(b.y))[998] == token(999));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(windows_of_arrays_of_tokens)
{
        static const char *const types[] = {"<u2", "<u4", "<u8", "<i4", "<i8"};
        static const int widths[] = {2, 4, 8, 4, 8};
        lg_ctx *c = open_ctx();
        for (int t = 0; t < 5; t++) {
                char bytes[128 + 8 * TOKENS], text[119];
                snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", types[t],
                         TOKENS);
                const int header = snprintf(bytes, 129, "\x93NUMPY\x01%c%c%c%-117s\n", 0, 118, 0, text);
                assert_int_equal(header, 128);
                for (int i = 0; i < TOKENS; i++)
                        for (int b = 0; b < widths[t]; b++)
                                bytes[128 + i * widths[t] + b] = (char)(token(i) >> (8 * b));
                put_file(at("tokens.npy"), bytes, 128 + (size_t)(TOKENS * widths[t]));
                lg_dataset *d = lg_dataset_tokens(c, at("tokens.npy"), 24, .stride = 5);
                assert_ok(c);
                assert_int_equal(lg_dataset_size(d), (TOKENS - 25) / 5 + 1);
                for (int64_t i = 0; i < lg_dataset_size(d); i++)
                        assert_window(d, i, 24, 5);
        }
        assert_null(lg_dataset_tokens(c, at("tokens.npy"), 24, .bits = 32));
        assert_error(c, LG_ERR_ARGUMENT, "tokens.npy is an npy file, whose header states");
        assert_null(lg_dataset_tokens(c, at("tokens.npy"), TOKENS));
        assert_error(c, LG_ERR_FORMAT, "has 1000 tokens; a sample takes 1000 and the one that follows");
        lg_tensor *x = lg_arange(c, 0, 12, 1, .dtype = LG_F32, .device = lg_cpu());
        assert_true(lg_write_npy(x, at("x.npy")) && lg_write_npy(lg_reshape(x, LG_SHAPE(3, 4)), at("y.npy")));
        assert_null(lg_dataset_tokens(c, at("x.npy"), 4));
        assert_error(c, LG_ERR_DTYPE, "has elements of type f4; tokens are u1, u2, u4, u8, i4 or i8");
        assert_null(lg_dataset_tokens(c, at("y.npy"), 4));
        assert_error(c, LG_ERR_SHAPE, "has 2 dimensions; tokens have one");
        assert_true(lg_write_npy(lg_sub_scalar(lg_cast(x, LG_I64), 4), at("z.npy")));
        lg_dataset *d = lg_dataset_tokens(c, at("z.npy"), 4);
        lg_batch b;
        assert_false(lg_dataset_get(d, 0, &b));
        assert_error(c, LG_ERR_FORMAT, "z.npy: token 0 is -4; tokens are 0 or more");
        lg_close(c);
}

TEST_CASE(documents_of_tokens)
{
        static const uint16_t tokens[] = {5, 0, 7, 8, 9, 0, 0, 6, 7, 8};
        lg_ctx *c = open_ctx();
        put_file(at("tokens.bin"), tokens, sizeof tokens);
        lg_dataset *d = lg_dataset_tokens(c, at("tokens.bin"), 8, .stride = 1, .separator = LG_ZERO_INT);
        lg_batch b;
        assert_int_equal(lg_dataset_size(d), 2);
        assert_true(lg_dataset_get(d, 0, &b));
        assert_int_equal(b.fields, 4);
        assert_string_equal(lg_dataset_fields(d).field[3].name, "document");
        assert_list(b.y, 0, 0, 7, 8, 9, 0, 0, 6, 7);
        assert_list(b.field[2], 0, 0, 1, 0, 1, 2, 3, 0, 0);
        assert_list(b.field[3], 0, 0, 0, 1, 1, 1, 1, 2, 3);
        assert_true(lg_dataset_get(d, 1, &b));
        assert_list(b.field[2], 0, 0, 0, 1, 2, 3, 0, 0, 1);
        d = lg_dataset_tokens(c, at("tokens.bin"), 4, .separator = 7);
        assert_true(lg_dataset_get(d, 0, &b));
        assert_list(b.field[3], 0, 0, 0, 0, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(tokens_that_are_wrong)
{
        lg_ctx *c = open_ctx();
        lg_batch b;
        assert_null(lg_dataset_tokens(c, put_tokens(16, 0, 1), 8));
        assert_error(c, LG_ERR_FORMAT, "has 2001 bytes; .skip = 0 and whole tokens of 2 bytes are expected");
        assert_null(lg_dataset_tokens(c, put_tokens(32, 0, 2), 8, .bits = 32));
        assert_error(c, LG_ERR_FORMAT, "has 4002 bytes");
        assert_null(lg_dataset_tokens(c, put_tokens(16, 0, 0), 8, .skip = INT64_MAX));
        assert_error(c, LG_ERR_FORMAT, ".skip = 9223372036854775807");
        assert_null(lg_dataset_tokens(c, at("tokens.bin"), 1000));
        assert_error(c, LG_ERR_FORMAT, "has 1000 tokens; a sample takes 1000");
        assert_null(lg_dataset_tokens(c, at("tokens.bin"), 0));
        assert_error(c, LG_ERR_ARGUMENT, "the length is 0");
        assert_null(lg_dataset_tokens(c, at("tokens.bin"), 4, .bits = 8));
        assert_error(c, LG_ERR_ARGUMENT, ".bits is 8; it is 16 or 32");
        assert_null(lg_dataset_tokens(c, at("tokens.bin"), 4, .vocabulary = -1));
        assert_error(c, LG_ERR_ARGUMENT, ".vocabulary -1");
        assert_null(lg_dataset_tokens(c, at("tokens.bin"), 4, .vocabulary = 9, .separator = 9));
        assert_error(c, LG_ERR_ARGUMENT, ".separator is 9, .vocabulary 9");
        assert_null(lg_dataset_tokens(c, NULL, 4));
        assert_error(c, LG_ERR_ARGUMENT, "the path is NULL");
        assert_null(lg_dataset_tokens(c, at("tokens.bin"), INT64_MAX));
        assert_error(c, LG_ERR_SHAPE, "");
        put_file(at("empty"), "", 0);
        assert_null(lg_dataset_tokens(c, at("empty"), 1));
        assert_error(c, LG_ERR_FORMAT, "has 0 tokens");
        lg_dataset *d = lg_dataset_tokens(c, put_tokens(16, 6, 0), 8, .skip = 6, .stride = 3, .vocabulary = 65520);
        int64_t wrong = 0;
        while (token(wrong) != 65520 && wrong < TOKENS - 1)
                wrong++;
        assert_true(wrong > 10 && wrong < TOKENS - 8);
        char text[200];
        snprintf(text, sizeof text, "tokens.bin: token %lld is 65520; tokens are 0 or more and less than 65520",
                 (long long)wrong);
        assert_false(lg_dataset_get(d, wrong / 3, &b));
        assert_error(c, LG_ERR_FORMAT, text);
        assert_false(lg_dataset_get(d, (wrong - 8 + 2) / 3, &b)); /* near its end, or in y only */
        assert_error(c, LG_ERR_FORMAT, text);
        lg_close(c);
}

/* Epochs shuffled, by any number of workers, and continued from a checkpoint in the middle of one. */
TEST_CASE(tokens_of_a_run_that_continues)
{
        static double all[40][3 * 16], again[3 * 16];
        for (int workers = 0; workers < 3; workers++)
                for (int stop = 0; stop < 40; stop += 13) {
                        lg_ctx *c = open_ctx();
                        lg_loader *l = lg_loader_open(c, lg_dataset_tokens(c, put_tokens(16, 0, 0), 16, .stride = 17),
                                                      3, .shuffle = true, .seed = 3, .workers = workers);
                        lg_checkpoint *run = lg_checkpoint_new(c);
                        lg_checkpoint_add(run, "batches", l);
                        lg_batch b;
                        for (int i = 0; i < 40; i++) {
                                if (i == stop)
                                        assert_true(lg_checkpoint_save(run, at("run.safetensors")));
                                if (!lg_loader_next(l, &b))
                                        assert_true(lg_loader_next(l, &b));
                                memset(again, 0, sizeof again);
                                read_all(b.x, again, 48);
                                assert_true((!workers && !stop) || !memcmp(all[i], again, sizeof again));
                                memcpy(all[i], again, sizeof again);
                        }
                        lg_loader_close(l);
                        lg_checkpoint_free(run);
                        l = lg_loader_open(c, lg_dataset_tokens(c, at("tokens.bin"), 16, .stride = 17), 3,
                                           .shuffle = true, .seed = 9, .workers = workers);
                        run = lg_checkpoint_new(c);
                        lg_checkpoint_add(run, "batches", l);
                        assert_true(lg_checkpoint_load(run, at("run.safetensors")));
                        for (int i = stop; i < 40; i++) {
                                if (!lg_loader_next(l, &b))
                                        assert_true(lg_loader_next(l, &b));
                                memset(again, 0, sizeof again);
                                read_all(b.x, again, 48);
                                assert_memory_equal(all[i], again, sizeof again);
                        }
                        assert_ok(c);
                        lg_close(c);
                }
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
