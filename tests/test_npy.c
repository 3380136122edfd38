/* test_npy.c - NumPy's files of one array: what NumPy wrote, what it reads, hostile files, failures while writing. */
#include "npy_txt.h"

/* ---- what NumPy wrote ---- */

static lg_dtype dtype_named(const char *name)
{
        for (lg_dtype d = LG_F32; d <= LG_BOOL; d++)
                if (!strcmp(lg_dtype_name(d), name))
                        return d;
        fail_msg("%s is no dtype", name);
        return LG_F32;
}

static char line[1 << 16];

static double next_number(void)
{
        return strtod(strtok(NULL, " \n"), NULL);
}

/* One line of npy.txt behind its first word. */
static void check_line(lg_ctx *c)
{
        const char *name = strtok(NULL, " "), *path = at("array.npy");
        const lg_dtype dtype = dtype_named(strtok(NULL, " "));
        lg_shape s = {.ndim = (int)next_number()};
        int64_t n = 1;
        for (int i = 0; i < s.ndim; i++)
                n *= s.size[i] = (int64_t)next_number();
        double *values = calloc((size_t)n + 1, sizeof *values);
        for (int64_t i = 0; i < n; i++)
                values[i] = next_number();
        char *bytes = strtok(NULL, " \n");
        const size_t count = from_hex(bytes);
        put_file(path, bytes, count);
        lg_tensor *t = lg_read_npy(c, path);
        if (!t || lg_dtype_of(t) != dtype || lg_ndim_of(t) != s.ndim || !lg_is_contiguous(t))
                fail_msg("%s: %s", name, lg_error(c) ? lg_error(c) : "another dtype, shape or layout");
        for (int i = 0; i < s.ndim; i++)
                assert_int_equal(lg_size_of(t, i), s.size[i]);
        assert_values(t, values, n, 0);
        assert_true(lg_device_equal(lg_device_of(t), lg_cpu()));
        free(values);
        /* What NumPy writes as libgrad does comes out as it was, byte by byte. */
        static const char *const same[] = {"f8leC", "f4leC", "f2leC", "i8leC", "i4leC", "u1leC",
                                           "b1leC", "0d",    "1d",    "empty", "8d",    "extremes"};
        for (size_t i = 0; i < sizeof same / sizeof *same && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__; i++) {
                if (strcmp(name, same[i]) != 0)
                        continue;
                assert_true(lg_write_npy(t, path));
                assert_bytes(path, bytes, count);
        }
        lg_free(t);
}

TEST_CASE(files_of_numpy_are_read)
{
        lg_ctx *c = open_ctx();
        FILE *f = open_npy_txt();
        int count = 0;
        while (next_line(f, line, sizeof line))
                if (!strcmp(strtok(line, " "), "npy")) {
                        check_line(c);
                        count++;
                }
        fclose(f);
        assert_int_equal(count, 52);
        assert_ok(c);
        assert_int_equal(lg_live_tensors(c), 0);
        lg_close(c);
}

/* ---- what others might write ---- */

/* A file of that version with that dict and so many bytes of data, which count up from 0. */
static size_t make_file(uint8_t *out, int version, const char *dict, size_t data)
{
        const size_t length = strlen(dict), front = version == 1 ? 10 : 12;
        memcpy(out, "\x93NUMPY", 6);
        out[6] = (uint8_t)version;
        out[7] = 0;
        for (size_t i = 8; i < front; i++)
                out[i] = (uint8_t)(length >> 8 * (i - 8));
        memcpy(out + front, dict, length);
        for (size_t i = 0; i < data; i++)
                out[front + length + i] = (uint8_t)i;
        return front + length + data;
}

static lg_tensor *read_made(lg_ctx *c, int version, const char *dict, size_t data)
{
        static uint8_t file[70000];
        put_file(at("made.npy"), file, make_file(file, version, dict, data));
        return lg_read_npy(c, at("made.npy"));
}

TEST_CASE(dicts_in_other_words_are_read)
{
        static const char *const dicts[] = {
                "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n",
                "{\"shape\":(3,),\"descr\":\"<u1\",\"fortran_order\":False}",
                "  {  'fortran_order' :\tFalse , 'shape' : ( 3 , ) ,\r\n'descr' : '=u1' }   \n\n",
                "{'shape': (3L,), 'fortran_order': True, 'descr': 'u1'}",
                "{'descr': '>u1', 'fortran_order': False, 'shape': (0000000000000000000000003,), }",
        };
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
                assert_list(read_made(c, 1 + (int)i % 3, dicts[i], 3), 0, 0, 1, 2);
                assert_ok(c);
        }
        assert_list(read_made(c, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", 3), 0, 0, 1, 1);
        lg_tensor *t = read_made(c, 1, "{'descr': '=i2', 'fortran_order': False, 'shape': (1,)}", 2);
        assert_list(t, 0, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 256 : 1);
        lg_close(c);
}

TEST_CASE(whole_numbers_are_exact)
{
        lg_ctx *c = open_ctx();
        uint8_t file[256];
        int64_t got[2];
        const char *dict = "{'descr': '>u8', 'fortran_order': False, 'shape': (2,)}";
        size_t n = make_file(file, 1, dict, 16);
        file[n - 16] = 0x7F;
        put_file(at("u8.npy"), file, n);
        lg_tensor *t = lg_read_npy(c, at("u8.npy"));
        assert_true(lg_read(t, got, LG_I64, sizeof got));
        assert_true(got[0] == 0x7F01020304050607 && got[1] == 0x08090A0B0C0D0E0F);
        file[n - 16] = 0x80;
        put_file(at("u8.npy"), file, n);
        assert_null(lg_read_npy(c, at("u8.npy")));
        assert_error(c, LG_ERR_FORMAT, "byte 65: 9223655723807081991");
        assert_int_equal(lg_live_tensors(c), 1);
        lg_close(c);
}

/* ---- hostile files ---- */

TEST_CASE(wrong_headers_are_refused)
{
        static const struct {
                const char *dict, *why;
        } bad[] = {
                {"", "byte 10: { is expected"},
                {"{}", "byte 12: each of descr, fortran_order and shape"},
                {"[]", "byte 10: { is expected"},
                {"{", "byte 11: a key is expected"},
                {"{'descr': '<f4', 'fortran_order': False, }", "each of descr"},
                {"{'descr': '<f4' 'shape': (1,), 'fortran_order': False}", "byte 26: a comma or }"},
                {"{'descr' '<f4'}", "byte 19: a colon"},
                {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,), 'fortran_order': False}", "no key twice"},
                {"{'descr': '<f4', 'shape': (1,), 'fortran_order': False, 'x': 1}", "as the key is expected"},
                {"{'descr': '<f4', 'shape': (1,), 'fortran_order': False} 1", "nothing but spaces"},
                {"{'descr': '<f4', 'shape': (1,), 'fortran_order': 0}", "True or False is expected"},
                {"{'descr': '<f4', 'shape': (1,), 'fortran_order': Fals", "True or False is expected"},
                {"{'descr': '<f4", "the end of a string"},
                {"{'descr': '<f4\", 'shape'", "no tensors for"},
                {"{'descr': '\\x3cf4', 'shape': (1,), 'fortran_order': False}", "the dtype as a string"},
                {"{'descr': 4, 'shape': (1,), 'fortran_order': False}", "the dtype as a string"},
                {"{descr: '<f4', 'shape': (1,), 'fortran_order': False}", "byte 11: a key"},
                {"{'descr': '<f4', 'shape': 1, 'fortran_order': False}", "the shape as a tuple"},
                {"{'descr': '<f4', 'shape': (1), 'fortran_order': False}", "a comma behind the only size"},
                {"{'descr': '<f4', 'shape': (,), 'fortran_order': False}", "a size is expected"},
                {"{'descr': '<f4', 'shape': (1,,), 'fortran_order': False}", "a size is expected"},
                {"{'descr': '<f4', 'shape': (-1,), 'fortran_order': False}", "a size is expected"},
                {"{'descr': '<f4', 'shape': (1.0,), 'fortran_order': False}", "a comma or the end of the shape"},
                {"{'descr': '<f4', 'shape': (1 1), 'fortran_order': False}", "a comma or the end of the shape"},
                {"{'descr': '<f4', 'shape': (1,", "a size is expected"},
                {"{'descr': '<f4', 'shape': (99999999999999999999,), 'fortran_order': False}", "beyond 64 bits"},
                {"{'descr': '<f4', 'shape': (1,1,1,1,1,1,1,1,1), 'fortran_order': False}", "more than 8 dimensions"},
                {"{'descr': '|u1', 'shape': (0, 4294967296, 4294967296), 'fortran_order': True}", "beyond all memory"},
                {"{'descr': '<f8', 'shape': (9223372036854775807,), 'fortran_order': False}", "beyond all memory"},
                {"{'descr': '<f4', 'shape': (2,), 'fortran_order': False}", "is truncated"},
                {"{'descr': '|u1', 'shape': (3,), 'fortran_order': False}", "more data than its header says"},
                {"{'descr': '<f4', 'shape': (1000000000000000,), 'fortran_order': True}", "is truncated"},
        };
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                assert_null(read_made(c, 1, bad[i].dict, 4));
                assert_non_null(strstr(lg_error(c), at("made.npy")));
                assert_error(c, LG_ERR_FORMAT, bad[i].why);
        }
        assert_null(read_made(c, 4, "{'descr': '<f4', 'shape': (1,), 'fortran_order': False}", 4));
        assert_error(c, LG_ERR_FORMAT, "version 4.0");
        assert_int_equal(lg_live_tensors(c), 0);
        lg_close(c);
}

TEST_CASE(dtypes_that_are_missing_are_named)
{
        static const struct {
                const char *descr, *why;
        } bad[] = {{"'<c8'", "complex numbers (descr '<c8')"},
                   {"'|S5'", "strings"},
                   {"'<U3'", "strings"},
                   {"'|O'", "Python objects (a pickle)"},
                   {"'|V8'", "records or raw bytes"},
                   {"'<M8[ns]'", "dates"},
                   {"'<m8[s]'", "spans of time"},
                   {"'<f16'", "another width than 2, 4 or 8"},
                   {"'<i3'", "unknown type"},
                   {"''", "unknown type"},
                   {"'<'", "unknown type"},
                   {"[('a', '<f4'), ('b', '<i4')]", "records (a structured dtype)"},
                   {"('<f4', (2,))", "records"}};
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                char dict[160];
                snprintf(dict, sizeof dict, "{'descr': %s, 'fortran_order': False, 'shape': (1,)}", bad[i].descr);
                assert_null(read_made(c, 1, dict, 4));
                assert_error(c, LG_ERR_FORMAT, bad[i].why);
        }
        lg_close(c);
}

TEST_CASE(cut_files_are_refused)
{
        lg_ctx *c = open_ctx();
        uint8_t file[256];
        const char *path = at("cut.npy");
        size_t n = make_file(file, 2, "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", 4);
        for (size_t cut = 0; cut < n; cut++) {
                put_file(path, file, cut);
                assert_null(lg_read_npy(c, path));
                assert_error(c, LG_ERR_FORMAT, "is truncated");
        }
        for (size_t i = 0; i < 6; i++) { /* the magic */
                file[i] ^= 1;
                put_file(path, file, n);
                assert_null(lg_read_npy(c, path));
                assert_error(c, LG_ERR_FORMAT, "byte 0: the magic");
                file[i] ^= 1;
        }
        file[10] = 2; /* a header of 131127 bytes */
        put_file(path, file, n);
        assert_null(lg_read_npy(c, path));
        assert_error(c, LG_ERR_FORMAT, "has a header of 131");
        put_file(path, "PK\3\4 and so on", 13);
        assert_null(lg_read_npy(c, path));
        assert_error(c, LG_ERR_FORMAT, "lg_read_npz() reads");
        lg_close(c);
}

TEST_CASE(other_files_are_refused)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_read_npy(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        assert_null(lg_read_npy(c, "/nowhere/file.npy"));
        assert_error(c, LG_ERR_IO, "/nowhere/file.npy");
        assert_null(lg_read_npy(c, folder));
        assert_error(c, LG_ERR_IO, "is a folder");
        assert_null(lg_read_npy(c, "/dev/null"));
        assert_error(c, LG_ERR_IO, "is a device");
        assert_int_equal(mkfifo(at("pipe"), 0600), 0);
        assert_null(lg_read_npy(c, at("pipe")));
        assert_error(c, LG_ERR_IO, "is a pipe");
        assert_null(lg_read_npy(NULL, "/nowhere"));
        lg_close(c);
}

/* Sparse: its data is there, and takes no room on the disk. */
TEST_CASE(files_beyond_memory_are_not_read)
{
        failing memory = {.limit = 64 << 20};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
        uint8_t file[256];
        const char *path = at("large.npy");
        size_t n = make_file(file, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1000, 1000, 1000)}", 0);
        put_file(path, file, n);
        assert_int_equal(truncate(path, (off_t)n + 8000000000), 0);
        assert_null(lg_read_npy(c, path));
        assert_non_null(strstr(lg_error(c), path));
        assert_error(c, LG_ERR_MEMORY, "lg_read_npy");
        lg_close(c);
        assert_int_equal(memory.bytes, 0);
}

AROUND_TESTS(make_folder, remove_folder);
