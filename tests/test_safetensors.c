/* test_safetensors.c - safetensors files as the safetensors package writes them, and as it reads them. */
#include "files.h"
#include "io/safetensors.h"

#define NAME "\u00fcn\u00efc\u00f6d\u20ac.\U0001d11e \"quoted\" \\ \n"

/* What tests/data/weights.py writes; values as the bits that IEEE 754 gives them. */
static const uint64_t f64s[] = {0x3fb999999999999a, 0xc004000000000000, 0x7e37e43c8800759c, 0xfff0000000000000};
static const uint32_t f32s[] = {0x3dcccccd, 0xc0200000, 0x7f800000}, three = 0x40400000;
static const uint16_t f16s[] = {0x3c00, 0xc000, 0x7bff, 0x0001}, bf16s[] = {0x3f80, 0xc000, 0x7180};
static const int64_t i64s[] = {INT64_MIN, 9007199254740993}, number = 42;
static const int32_t i32s[] = {INT32_MIN, INT32_MAX};
static const uint8_t u8s[] = {0, 1, 127, 128, 255}, bools[] = {1, 0, 1};
#define SIZES(n, ...)                                                                                                  \
        {                                                                                                              \
                .ndim = (n), .size = { __VA_ARGS__ }                                                                   \
        } /* LG_SHAPE is no constant */
static const lg__weight_out tensors[] = {
        {.name = "f64", .dtype = LG_F64, .shape = SIZES(2, 2, 2), .data = f64s},
        {.name = "f32", .dtype = LG_F32, .shape = SIZES(1, 3), .data = f32s},
        {.name = "f16", .dtype = LG_F16, .shape = SIZES(2, 1, 4), .data = f16s},
        {.name = "bf16", .dtype = LG_BF16, .shape = SIZES(1, 3), .data = bf16s},
        {.name = "i64", .dtype = LG_I64, .shape = SIZES(1, 2), .data = i64s},
        {.name = "i32", .dtype = LG_I32, .shape = SIZES(2, 2, 1), .data = i32s},
        {.name = "u8", .dtype = LG_U8, .shape = SIZES(1, 5), .data = u8s},
        {.name = "bool", .dtype = LG_BOOL, .shape = SIZES(1, 3), .data = bools},
        {.name = "0d", .dtype = LG_I64, .shape = {.ndim = 0}, .data = &number},
        {.name = "empty", .dtype = LG_F32, .shape = SIZES(3, 3, 0, 2)},
        {.name = NAME, .dtype = LG_F32, .shape = SIZES(1, 1), .data = &three},
};
static const size_t sizes[] = {32, 12, 8, 6, 16, 8, 5, 3, 8, 0, 4};
static const lg__meta metas[] = {
        {"format", "pt"},
        {"a \"key\"\n", "quote \" backslash \\ slash / newline \n tab \t bell \a delete \x7f \u00e9 \u20ac \U0001d11e"},
        {"", "empty key"},
        {"empty", ""},
};
#define TENSORS ((int64_t)(sizeof tensors / sizeof *tensors))
#define METAS ((int64_t)(sizeof metas / sizeof *metas))

static void check_all(lg_ctx *c, const char *path)
{
        lg__weights *w = lg__weights_open(c, "test", path);
        assert_ok(c);
        assert_int_equal(w->count, TENSORS);
        for (int64_t i = 0; i < TENSORS; i++) {
                char got[64];
                const lg__weight *e = lg__weights_find(w, tensors[i].name);
                assert_non_null(e);
                assert_string_equal(e->name, tensors[i].name);
                assert_int_equal(e->dtype, tensors[i].dtype);
                assert_true(lg__shape_equal(e->shape, tensors[i].shape));
                assert_int_equal(e->end - e->begin, sizes[i]);
                assert_true(lg__weights_read(w, e, got));
                if (sizes[i])
                        assert_memory_equal(got, tensors[i].data, sizes[i]);
        }
        for (int64_t i = 1; i < w->count; i++)
                assert_true(w->entries[i].begin == w->entries[i - 1].end);
        assert_int_equal(w->meta_count, METAS);
        for (int64_t i = 0; i < METAS; i++)
                assert_string_equal(lg__weights_meta(w, metas[i].key), metas[i].value);
        assert_null(lg__weights_meta(w, "f32"));
        assert_null(lg__weights_find(w, "f3"));
        assert_null(lg__weights_find(w, "zzz"));
        assert_null(lg__weights_find(w, "format"));
        lg__weights_close(w);
        assert_ok(c);
}

TEST_CASE(the_package_wrote_it)
{
        char path[512];
        const char *data = getenv("LG_TEST_DATA");
        lg_ctx *c = open_ctx();
        snprintf(path, sizeof path, "%s/weights.safetensors", data ? data : "tests/data");
        check_all(c, path);
        lg_close(c);
}

/* With LG_TEST_WEIGHTS=FILE, weights.py can check it. */
TEST_CASE(what_is_written_is_read)
{
        lg_ctx *c = open_ctx();
        const char *keep = getenv("LG_TEST_WEIGHTS"), *path = keep ? keep : at("w");
        assert_true(lg__weights_save(c, "test", path, tensors, TENSORS, metas, METAS));
        check_all(c, path);
        assert_true(lg__weights_save(c, "test", path, tensors, TENSORS, metas, METAS)); /* over itself */
        check_all(c, path);
        c->files = &faulty_files;
        memset(&faulty, 0, sizeof faulty);
        faulty.piecemeal = true; /* interrupted calls, incomplete ones */
        check_all(c, path);
        assert_true(lg__weights_save(c, "test", path, tensors, TENSORS, metas, METAS));
        check_all(c, path);
        lg_close(c);
}

/* Every byte of a small file: the order of the tensors, escapes, the padding. */
TEST_CASE(the_bytes_are_these)
{
        lg_ctx *c = open_ctx();
        const int16_t half = 0x3c00;
        const int32_t one = 1;
        const lg__weight_out out[] = {{.name = "b", .dtype = LG_F16, .shape = LG_SHAPE(1, 1), .data = &half},
                                      {.name = "c", .dtype = LG_I32, .shape = LG_SHAPE_0D, .data = &one},
                                      {.name = "a\"\\\t", .dtype = LG_I32, .shape = LG_SHAPE(1), .data = &one}};
        const lg__meta meta[] = {{"z", "1\n"}, {"y", "/"}};
        const char header[] = "{\"__metadata__\":{\"z\":\"1\\u000a\",\"y\":\"/\"},"
                              "\"a\\\"\\\\\\u0009\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                              "\"c\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[4,8]},"
                              "\"b\":{\"dtype\":\"F16\",\"shape\":[1,1],\"data_offsets\":[8,10]}}";
        size_t length = strlen(header), padded = (length + 7) / 8 * 8;
        assert_true(lg__weights_save(c, "test", at("w"), out, 3, meta, 2));
        contents got = get_file(at("w"));
        assert_int_equal(got.bytes, 8 + padded + 10);
        assert_int_equal(*(uint64_t *)got.data, padded);
        assert_memory_equal(got.data + 8, header, length);
        for (size_t i = length; i < padded; i++)
                assert_int_equal(got.data[8 + i], ' ');
        assert_memory_equal(got.data + 8 + padded, "\1\0\0\0\1\0\0\0\0\x3c", 10);
        free(got.data);
        assert_true(lg__weights_save(c, "test", at("w"), NULL, 0, NULL, 0));
        got = get_file(at("w"));
        assert_int_equal(got.bytes, 16);
        assert_memory_equal(got.data, "\10\0\0\0\0\0\0\0{}      ", 16);
        free(got.data);
        lg__weights *w = lg__weights_open(c, "test", at("w"));
        assert_true(w && w->count == 0 && w->meta_count == 0 && !lg__weights_find(w, ""));
        lg__weights_close(w);
        assert_ok(c);
        lg_close(c);
}

/* ---- large tensors, and those of a device ---- */

#define LARGE 300001 /* elements: more than the buffers of the writer hold */

typedef struct reader {
        const char *values;
        int64_t next;
        size_t most;
} reader;

static bool read_piece(void *user, int64_t from, size_t bytes, void *to)
{
        reader *r = user;
        assert_int_equal(from, r->next); /* in rising order, without gaps */
        r->next += (int64_t)bytes;
        r->most = bytes > r->most ? bytes : r->most;
        memcpy(to, r->values + from, bytes);
        return true;
}

static bool read_nothing(void *user, int64_t from, size_t bytes, void *to)
{
        (void)from, (void)bytes, (void)to;
        return user ? lg__fail(user, LG_ERR_DEVICE, "the device is gone") : false;
}

TEST_CASE(large_tensors_go_through_in_pieces)
{
        lg_ctx *c = open_ctx();
        size_t bytes = LARGE * sizeof(float);
        float *values = malloc(bytes), *got = malloc(bytes);
        lg_tensor *t = lg_normal(c, 0, 1, LG_SHAPE(LARGE)); /* on the device under test */
        assert_true(lg_read(t, values, LG_F32, bytes));
        reader r = {.values = (char *)values};
        lg__weight_out out[] = {
                {.name = "data", .dtype = LG_F32, .shape = LG_SHAPE(LARGE), .data = values},
                {.name = "read", .dtype = LG_F32, .shape = LG_SHAPE(LARGE), .read = read_piece, .user = &r},
                {.name = "one", .dtype = LG_BOOL, .shape = LG_SHAPE_0D, .data = bools}};
        assert_true(lg__weights_save(c, "test", at("w"), out, 3, NULL, 0));
        assert_int_equal(r.next, bytes);
        assert_true(r.most <= 1 << 18 && r.most % 8 == 0);
        lg__weights *w = lg__weights_open(c, "test", at("w"));
        for (int i = 0; i < 2; i++) {
                assert_true(lg__weights_read(w, lg__weights_find(w, out[i].name), got));
                assert_memory_equal(got, values, bytes);
        }
        lg__weights_close(w);
        out[1].read = read_nothing;
        out[1].user = NULL;
        assert_false(lg__weights_save(c, "test", at("v"), out, 3, NULL, 0));
        assert_error(c, LG_ERR_STATE, "test: the values of \"read\" cannot be read");
        out[1].user = c;
        assert_false(lg__weights_save(c, "test", at("v"), out, 3, NULL, 0));
        assert_error(c, LG_ERR_DEVICE, "the device is gone");
        assert_int_equal(count_files(false), 1);
        free(values);
        free(got);
        lg_close(c);
}

TEST_CASE(many_tensors_are_found)
{
        enum { MANY = 3000 };
        lg_ctx *c = open_ctx();
        lg__weight_out *out = calloc(MANY, sizeof *out);
        char(*names)[16] = calloc(MANY, sizeof *names);
        int32_t *values = calloc(MANY, sizeof *values);
        for (int i = 0; i < MANY; i++) {
                values[i] = i * 7919 % MANY;
                snprintf(names[i], sizeof *names, "layer.%d", values[i]);
                out[i] = (lg__weight_out){.name = names[i], .dtype = LG_I32, .shape = LG_SHAPE_0D, .data = &values[i]};
        }
        assert_true(lg__weights_save(c, "test", at("w"), out, MANY, NULL, 0));
        lg__weights *w = lg__weights_open(c, "test", at("w"));
        assert_int_equal(w->count, MANY);
        for (int i = 0; i < MANY; i++) {
                int32_t got;
                assert_true(lg__weights_read(w, lg__weights_find(w, names[i]), &got));
                assert_int_equal(got, values[i]);
        }
        lg__weights_close(w);
        free(out);
        free(names);
        free(values);
        lg_close(c);
}

/* ---- what cannot be written ---- */

#define REFUSED(text, tensors, strings, ...)                                                                           \
        do {                                                                                                           \
                const lg__weight_out out_[] = {__VA_ARGS__};                                                           \
                assert_false(lg__weights_save(c, "test", at("w"), out_, (tensors), bad_metas, (strings)));             \
                assert_error(c, LG_ERR_ARGUMENT, text);                                                                \
        } while (0)
#define OUT(n)                                                                                                         \
        {                                                                                                              \
                .name = (n), .dtype = LG_U8, .shape = LG_SHAPE(1), .data = u8s                                         \
        }

TEST_CASE(what_cannot_be_written)
{
        lg_ctx *c = open_ctx();
        lg__meta bad_metas[] = {{"k", "v"}, {"k", "w"}};
        count_files(true);
        REFUSED("test: two tensors are called \"x\"", 3, 0, OUT("x"), OUT("y"), OUT("x"));
        REFUSED("test: two strings of the metadata are called \"k\"", 1, 2, OUT("x"));
        REFUSED("test: no tensor can be called \"__metadata__\"", 1, 0, OUT("__metadata__"));
        REFUSED("test: the name of a tensor is NULL", 1, 0, OUT(NULL));
        REFUSED("test: the tensor's name \"a?\" is not UTF-8", 1, 0, OUT("a\xff"));
        REFUSED("test: the tensor's name \"??\" is not UTF-8", 1, 0, OUT("\xc0\x80"));
        REFUSED("test: \"x\" has no dtype", 1, 0, {.name = "x", .shape = LG_SHAPE(1), .data = u8s});
        REFUSED("test: \"x\" has no dtype", 1, 0, {.name = "x", .dtype = (lg_dtype)99, .data = u8s});
        REFUSED("test: \"x\" has neither data nor a function", 1, 0,
                {.name = "x", .dtype = LG_U8, .shape = LG_SHAPE(1)});
        REFUSED("the tensors have 2^53 bytes or more", 1, 0,
                {.name = "x", .dtype = LG_F64, .shape = LG_SHAPE((int64_t)1 << 50), .data = u8s});
        bad_metas[1] = (lg__meta){"l", NULL};
        REFUSED("test: a string of the metadata, \"l\", is NULL", 1, 2, OUT("x"));
        bad_metas[1] = (lg__meta){NULL, "l"};
        REFUSED("test: a string of the metadata, \"\", is NULL", 1, 2, OUT("x"));
        bad_metas[1] = (lg__meta){"l", "\xed\xa0\x80"};
        REFUSED("test: the metadata \"l\" is not UTF-8", 1, 2, OUT("x"));
        assert_false(lg__weights_save(c, "test", NULL, tensors, TENSORS, NULL, 0));
        assert_error(c, LG_ERR_ARGUMENT, "test: the path is NULL");
        lg__weight_out negative = {.name = "x", .dtype = LG_U8, .shape = LG_SHAPE(-1), .data = u8s};
        assert_false(lg__weights_save(c, "test", at("w"), &negative, 1, NULL, 0));
        assert_int_equal(lg_error_code_of(c), LG_ERR_SHAPE);
        assert_false(lg__weights_save(c, "test", at("w"), tensors, TENSORS, NULL, 0)); /* there is an error already */
        lg_clear_error(c);
        char *large = malloc(100000000);
        memset(large, 'x', 99999999);
        large[99999999] = 0;
        bad_metas[1] = (lg__meta){"l", large};
        REFUSED("test: the header has 100000", 1, 2, OUT("x"));
        free(large);
        assert_int_equal(count_files(false), 0);
        lg_close(c);
}

AROUND_TESTS(make_folder, remove_folder);
