/* test_safetensors_wrong.c - safetensors files that are wrong: each is an error that says what is wrong, and where. */
#include "files.h"
#include "io/safetensors.h"

/* A file: its header's text, the bytes behind it, and a part of the message. */
typedef struct bad_file {
        const char *header;
        int data;
        const char *message;
} bad_file;

#define F32(name, shape, offsets) "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define X(members) "{\"x\":{" members "}}"
#define OK_SHAPE "\"shape\":[1],\"data_offsets\":[0,4]"
#define OK_DTYPE "\"dtype\":\"F32\",\"data_offsets\":[0,4]"
#define OK_OFFSETS "\"dtype\":\"F32\",\"shape\":[1]"
#define META(inside) "{\"__metadata__\":" inside "}"

static const bad_file files[] = {
        /* not JSON, or more than JSON */
        {"[]", 0, "its header is wrong at byte 8: { was expected"},
        {" {}", 0, "at byte 8: { was expected"},
        {"\"x\"", 0, "at byte 8: { was expected"},
        {"{ ", 0, "at byte 10: a name in quotes was expected"},
        {"{}}", 0, "at byte 10: only spaces may follow the object"},
        {"{}\n", 0, "at byte 10: only spaces may follow the object"},
        {"{} {}", 0, "at byte 11: only spaces may follow the object"},
        {"{,}", 0, "at byte 9: a name in quotes was expected"},
        {"{\"x\"}", 0, "at byte 12: a colon was expected"},
        {"{\"x\" \"y\"}", 0, "at byte 13: a colon was expected"},
        {"{\"x\":}", 0, "at byte 13: a string, a whole number, [ or { was expected"},
        {"{\"x\":1,}", 0, "at byte 15: a name in quotes was expected"},
        {"{\"x\":1 2}", 0, "at byte 15: a comma or } was expected"},
        {"{\"x\":[1 2]}", 0, "at byte 16: a comma or ] was expected"},
        {"{\"x\":[1,]}", 0, "at byte 16: a string"},
        {"{\"x\":[1}", 0, "a comma or ] was expected"},
        {"{x:1}", 0, "a name in quotes was expected"},
        {"{'x':1}", 0, "a name in quotes was expected"},
        {"{\"x\":null}", 0, "at byte 13: a string, a whole number, [ or { was expected"},
        {"{\"x\":true}", 0, "a string, a whole number, [ or { was expected"},
        {"{\"x\":NaN}", 0, "a string, a whole number, [ or { was expected"},
        {"{\"x\":{}", 0, "at byte 15: a comma or } was expected"},
        {"{\"x", 0, "at byte 11: a string does not end"},
        {"{\"x\\\"", 0, "a string does not end"},
        {"{/**/}", 0, "a name in quotes was expected"},
        {"{\"x\":[[[1]]]}", 0, "at byte 15: this is nested more than 3 deep"},
        {"{\"x\":{\"y\":[{}]}}", 0, "this is nested more than 3 deep"},
        /* strings */
        {"{\"\xff\":1}", 0, "at byte 10: this is not UTF-8"},
        {"{\"\x80\":1}", 0, "this is not UTF-8"},
        {"{\"\xc0\x80\":1}", 0, "this is not UTF-8"},
        {"{\"\xe0\x80\xaf\":1}", 0, "this is not UTF-8"},
        {"{\"\xf0\x80\x80\xaf\":1}", 0, "this is not UTF-8"},
        {"{\"\xed\xa0\x80\":1}", 0, "this is not UTF-8"},
        {"{\"\xf4\x90\x80\x80\":1}", 0, "this is not UTF-8"},
        {"{\"\xf5\x80\x80\x80\":1}", 0, "this is not UTF-8"},
        {"{\"\xe2\x82", 0, "this is not UTF-8"},
        {"{\"a\nb\":1}", 0, "at byte 11: a control character in a string"},
        {"{\"\\u0000\":1}", 0, "\\u0000 in a string"},
        {"{\"\\u12\":1}", 0, "\\u without four hexadecimal digits"},
        {"{\"\\ud800\":1}", 0, "a surrogate without its other half"},
        {"{\"\\ud800\\u0041\":1}", 0, "a surrogate without its other half"},
        {"{\"\\udc00\":1}", 0, "a surrogate without its other half"},
        {"{\"\\x41\":1}", 0, "an unknown escape"},
        /* numbers */
        {"{" F32("x", "[-1]", "[0,4]") "}", 4, "a negative number"},
        {"{" F32("x", "[1.5]", "[0,4]") "}", 4, "a number that is not written as a whole one"},
        {"{" F32("x", "[1e0]", "[0,4]") "}", 4, "a number that is not written as a whole one"},
        {"{" F32("x", "[01]", "[0,4]") "}", 4, "a number with a zero before it"},
        {"{" F32("x", "[9007199254740992]", "[0,4]") "}", 4, "a number of 2^53 or more"},
        {"{" F32("x", "[18446744073709551617]", "[0,4]") "}", 4, "a number of 2^53 or more"},
        {"{" F32("x", "[+1]", "[0,4]") "}", 4, "a string, a whole number, [ or { was expected"},
        /* members */
        {"{\"x\":[1]}", 0, "\"x\" is no object with dtype, shape and data_offsets"},
        {"{\"x\":\"y\"}", 0, "\"x\" is no object"},
        {"{\"x\":{}}", 0, "\"x\" has no member \"dtype\""},
        {X(OK_SHAPE), 4, "\"x\" has no member \"dtype\""},
        {X(OK_DTYPE), 4, "\"x\" has no member \"shape\""},
        {X(OK_OFFSETS), 4, "\"x\" has no member \"data_offsets\""},
        {X("\"dtype\":\"F32\",\"stride\":[1]," OK_SHAPE), 4, "\"x\" has the unknown member \"stride\""},
        {X("\"Dtype\":\"F32\"," OK_SHAPE), 4, "\"x\" has the unknown member \"Dtype\""},
        {X("\"dtype\":\"F32\",\"d\\u0074ype\":\"F32\"," OK_SHAPE), 4, "\"x\" has two members \"dtype\""},
        {X("\"shape\":[1],\"dtype\":\"F32\"," OK_SHAPE), 4, "\"x\" has two members \"shape\""},
        {X("\"dtype\":7," OK_SHAPE), 4, "the dtype of \"x\" is no string"},
        {X("\"dtype\":\"f32\"," OK_SHAPE), 4, "\"x\" has the unknown dtype \"f32\""},
        {X("\"dtype\":\"F128\"," OK_SHAPE), 4, "\"x\" has the unknown dtype \"F128\""},
        {X("\"dtype\":\"\\u0007\"," OK_SHAPE), 4, "\"x\" has the unknown dtype \"?\""},
        {X("\"shape\":1," OK_DTYPE), 4, "the shape of \"x\" is no array"},
        {X("\"shape\":[\"1\"]," OK_DTYPE), 4, "the shape of \"x\" holds more than numbers"},
        {X("\"shape\":[1,1,1,1,1,1,1,1,1]," OK_DTYPE), 4, "the shape of \"x\" has more than 8 numbers"},
        {X("\"data_offsets\":{}," OK_OFFSETS), 4, "the data_offsets of \"x\" is no array"},
        {X("\"data_offsets\":[0]," OK_OFFSETS), 4, "the data_offsets of \"x\" are not two numbers"},
        {X("\"data_offsets\":[0,4,8]," OK_OFFSETS), 4, "the data_offsets of \"x\" has more than 2 numbers"},
        /* sizes */
        {"{" F32("x", "[9007199254740991,9007199254740991]", "[0,4]") "}", 4,
         "the shape of \"x\" is beyond all memory"},
        {"{" F32("x", "[0,9007199254740991,9007199254740991]", "[0,0]") "}", 0,
         "the shape of \"x\" is beyond all memory"},
        {"{" F32("x", "[4294967296,4294967296]", "[0,0]") "}", 0, "the shape of \"x\" is beyond all memory"},
        {"{" F32("x", "[2,3]", "[0,20]") "}", 20, "\"x\" is F32 (2, 3), 24 bytes, but its data_offsets hold 20"},
        {"{" F32("x", "[]", "[0,0]") "}", 0, "\"x\" is F32 (), 4 bytes, but its data_offsets hold 0"},
        {"{" F32("x", "[1]", "[4,0]") "}", 4, "the data_offsets of \"x\", 4 and 0, are not in rising order"},
        {"{" F32("x", "[2]", "[0,8]") "}", 4, "\"x\" ends at byte 8 of the data, but the file holds only 4"},
        {X("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]"), 1, "\"x\", F4 (3,), does not end with a byte"},
        /* places */
        {"{" F32("x", "[1]", "[0,4]") "}", 5, "1 bytes follow the last tensor"},
        {"{}", 1, "1 bytes follow the last tensor"},
        {"{" F32("x", "[1]", "[1,5]") "}", 5, "\"x\" begins at byte 1 of the data, but at 0 a tensor must"},
        {"{" F32("y", "[1]", "[8,12]") "," F32("x", "[1]", "[0,4]") "}", 12,
         "\"y\" begins at byte 8 of the data, but at 4 a tensor must"},
        {"{" F32("y", "[2]", "[0,8]") "," F32("x", "[1]", "[4,8]") "}", 8,
         "\"x\" begins at byte 4 of the data, within \"y\", which ends at 8"},
        {"{" F32("y", "[1]", "[0,4]") "," F32("x", "[1]", "[0,4]") "}", 4,
         "\"y\" begins at byte 0 of the data, within \"x\", which ends at 4"},
        {"{" F32("y", "[2]", "[0,8]") "," F32("x", "[0]", "[4,4]") "}", 8,
         "\"x\" begins at byte 4 of the data, within \"y\", which ends at 8"},
        {"{" F32("x", "[0]", "[0,0]") "," F32("\\u0078", "[0]", "[0,0]") "}", 0, "there are two tensors \"x\""},
        /* metadata */
        {META("[]"), 0, "\"__metadata__\" is no object"},
        {META("{\"k\":1}"), 0, "\"k\" in \"__metadata__\" is no string"},
        {META("{\"k\":{}}"), 0, "\"k\" in \"__metadata__\" is no string"},
        {META("{\"k\":\"v\",\"l\":\"v\",\"\\u006b\":\"w\"}"), 0, "there are two strings \"k\" in \"__metadata__\""},
        {"{\"__metadata__\":{},\"__metadata\\u005f_\":{}}", 0, "there are two members \"__metadata__\""},
};

/* Writes a file whose first eight bytes are `length`. */
static void put_weights(uint64_t length, const char *header, size_t bytes, int data)
{
        char *all = calloc(1, 8 + bytes + (size_t)data);
        for (int i = 0; i < 8; i++)
                all[i] = (char)(length >> 8 * i);
        memcpy(all + 8, header, bytes);
        put_file(at("w"), all, 8 + bytes + (size_t)data);
        free(all);
}

TEST_CASE(wrong_headers)
{
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
                size_t bytes = strlen(files[i].header);
                char begin[600];
                snprintf(begin, sizeof begin, "test: %s", at("w"));
                put_weights(bytes, files[i].header, bytes, files[i].data);
                if (lg__weights_open(c, "test", at("w")))
                        fail_msg("%s was read", files[i].header);
                assert_ptr_equal(strstr(lg_error(c), begin), lg_error(c));
                if (lg_error_code_of(c) != LG_ERR_FORMAT || !strstr(lg_error(c), files[i].message))
                        fail_msg("%s: expected \"%s\", got %s", files[i].header, files[i].message, lg_error(c));
                lg_clear_error(c);
        }
        lg_close(c);
}

TEST_CASE(wrong_lengths)
{
        lg_ctx *c = open_ctx();
        const uint64_t lengths[] = {0, 1, 3, 100000001, (uint64_t)1 << 32, (uint64_t)1 << 63, UINT64_MAX};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                char text[100];
                put_weights(lengths[i], "{}", 2, 0);
                assert_null(lg__weights_open(c, "test", at("w")));
                snprintf(text, sizeof text,
                         lengths[i] == 3
                                 ? "is truncated, or no safetensors file: its header has %llu bytes, and 2 follow"
                                 : "begins with a header of %llu bytes; 2 to 100000000 were expected",
                         (unsigned long long)lengths[i]);
                assert_error(c, LG_ERR_FORMAT, text);
        }
        put_weights(4, "{}\0\0", 4, 0);
        assert_null(lg__weights_open(c, "test", at("w")));
        assert_error(c, LG_ERR_FORMAT, "at byte 10: only spaces may follow");
        put_weights(7, "{\"a\0b\":", 7, 0);
        assert_null(lg__weights_open(c, "test", at("w")));
        assert_error(c, LG_ERR_FORMAT, "at byte 11: a control character in a string");
        for (size_t bytes = 0; bytes < 10; bytes++) {
                put_file(at("w"), "\2\0\0\0\0\0\0\0{}", bytes);
                assert_null(lg__weights_open(c, "test", at("w")));
                assert_error(c, LG_ERR_FORMAT, "and 10 are the least");
        }
        lg_close(c);
}

/* Names, keys and values in every notation that JSON has for them. */
TEST_CASE(escapes_are_read)
{
        static const struct {
                const char *written, *text;
        } all[] = {
                {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
                {"\\u0001\\u001F\\u0041\\u007f", "\x01\x1f\x41\x7f"},
                {"\\u0080\\u00e9\\u07FF", "\xc2\x80\xc3\xa9\xdf\xbf"},
                {"\\u0800\\u20ac\\ud7ff\\ue000\\uFFFF", "\xe0\xa0\x80\xe2\x82\xac\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
                {"\\ud800\\udc00\\uD834\\udd1e\\udbff\\uDFFF", "\xf0\x90\x80\x80\xf0\x9d\x84\x9e\xf4\x8f\xbf\xbf"},
                {"\u00e9\u20ac\U0001d11e, : {}[]\\u005c", "\u00e9\u20ac\U0001d11e, : {}[]\\"},
                {"", ""},
        };
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                char header[600];
                const char *s = all[i].written;
                snprintf(header, sizeof header,
                         "{\"%s\" : {\"data\\u005foffsets\" :[ 0,8 ],\n\"shape\":[ 2\t],\"dtype\":\"F\\u00332\" } ,"
                         "\"__metadata__\":{\"k%s\":\"%s\",\"end\":\"%s.\"}}",
                         s, s, s, s);
                put_weights(strlen(header), header, strlen(header), 8);
                lg__weights *w = lg__weights_open(c, "test", at("w"));
                assert_ok(c);
                assert_string_equal(w->entries->name, all[i].text);
                assert_true(w->count == 1 && w->entries->dtype == LG_F32 && w->entries->shape.size[0] == 2);
                char key[100];
                snprintf(key, sizeof key, "k%s", all[i].text);
                assert_string_equal(lg__weights_meta(w, key), all[i].text);
                snprintf(key, sizeof key, "%s.", all[i].text);
                assert_string_equal(lg__weights_meta(w, "end"), key);
                lg__weights_close(w);
        }
        lg_close(c);
}

/* Every beginning of a good file, and every file that differs from it in one byte, is read or an error. */
TEST_CASE(cut_and_changed_files)
{
        const char header[] = "{\"__metadata__\":{\"k\":\"\\u00e9\"}," F32(
                "y", "[2, 1]", "[1,9]") ", "
                                        "\"b\" : {\"shape\":[],\"dtype\":\"BOOL\",\"data_offsets\":[0,1]}}  ";
        const size_t bytes = sizeof header - 1;
        lg_ctx *c = open_ctx();
        put_weights(bytes, header, bytes, 9);
        contents good = get_file(at("w"));
        lg__weights *w = lg__weights_open(c, "test", at("w"));
        assert_true(w && w->count == 2 && w->entries[0].shape.ndim == 0 && w->entries[1].shape.size[0] == 2);
        assert_string_equal(lg__weights_meta(w, "k"), "\u00e9");
        lg__weights_close(w);
        for (size_t i = 0; i < good.bytes; i++) {
                put_file(at("w"), good.data, i);
                assert_null(lg__weights_open(c, "test", at("w")));
                assert_error(c, LG_ERR_FORMAT, "test: ");
        }
        for (size_t i = 0; i < good.bytes; i++) {
                for (int bit = 0; bit < 8; bit++) {
                        good.data[i] = (char)(good.data[i] ^ 1 << bit);
                        put_file(at("w"), good.data, good.bytes);
                        w = lg__weights_open(c, "test", at("w"));
                        assert_true(w ? !lg_error(c) : lg_error_code_of(c) == LG_ERR_FORMAT);
                        lg__weights_close(w);
                        lg_clear_error(c);
                        good.data[i] = (char)(good.data[i] ^ 1 << bit);
                }
        }
        free(good.data);
        lg_close(c);
}

TEST_CASE(dtypes_that_libgrad_does_not_have)
{
        static const struct {
                const char *name;
                int bytes; /* of 8 elements */
        } others[] = {{"I8", 8},          {"I16", 16},    {"U16", 16},    {"U32", 32},    {"U64", 64},
                      {"C64", 64},        {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
                      {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
                char header[200], text[100], got[64];
                int n = others[i].bytes;
                snprintf(header, sizeof header,
                         "{\"x\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%d]}," F32("y", "[]",
                                                                                                  "[%d,%d]") "}",
                         others[i].name, n, n, n + 4);
                put_weights(strlen(header), header, strlen(header), n + 4);
                lg__weights *w = lg__weights_open(c, "test", at("w"));
                assert_ok(c);
                const lg__weight *x = lg__weights_find(w, "x");
                assert_true(x->dtype == LG_DTYPE_NONE && x->end == n && x->shape.size[1] == 4);
                assert_string_equal(x->dtype_name, others[i].name);
                assert_true(lg__weights_read(w, lg__weights_find(w, "y"), got));
                assert_false(lg__weights_read(w, x, got));
                snprintf(text, sizeof text, "\"x\" is %s, which libgrad has no dtype for", others[i].name);
                assert_error(c, LG_ERR_DTYPE, text);
                lg__weights_close(w);
        }
        lg_close(c);
}

TEST_CASE(values_that_are_wrong)
{
        const char header[] = "{\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}";
        char got[3];
        lg_ctx *c = open_ctx();
        put_weights(sizeof header - 1, header, sizeof header - 1, 3);
        contents all = get_file(at("w"));
        all.data[all.bytes - 1] = 2;
        put_file(at("w"), all.data, all.bytes);
        lg__weights *w = lg__weights_open(c, "test", at("w"));
        assert_false(lg__weights_read(w, w->entries, got));
        assert_error(c, LG_ERR_FORMAT, "element 2 of \"b\" is 2, no bool");
        assert_int_equal(truncate(at("w"), (off_t)all.bytes - 2), 0); /* while it is open */
        assert_false(lg__weights_read(w, w->entries, got));
        char text[100];
        snprintf(text, sizeof text, "ended at byte %zu of %zu: it became shorter", all.bytes - 2, all.bytes);
        assert_error(c, LG_ERR_FORMAT, text);
        lg__weights_close(w);
        free(all.data);
        lg_close(c);
}

/* Messages show no control characters, and of a long name its beginning, with whole characters. */
TEST_CASE(names_in_messages)
{
        char header[700] = "{\"\\u001b[31m\\u007f\\n", expected[300] = "test: ";
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 200; i++)
                strcat(header, "\u20ac");
        strcat(header, "\":{}}");
        put_weights(strlen(header), header, strlen(header), 0);
        assert_null(lg__weights_open(c, "test", at("w")));
        strcat(strcat(expected, at("w")), ": \"?[31m??");
        for (int i = 0; i < 37; i++)
                strcat(expected, "\u20ac");
        strcat(expected, "...\" has no member \"dtype\"");
        assert_error(c, LG_ERR_FORMAT, expected);
        lg_close(c);
}

TEST_CASE(what_is_no_file)
{
        lg_ctx *c = open_ctx();
        assert_int_equal(mkfifo(at("pipe"), 0600), 0);
        assert_null(lg__weights_open(c, "test", at("pipe")));
        assert_error(c, LG_ERR_IO, "is a pipe, not a regular file");
        assert_null(lg__weights_open(c, "test", folder));
        assert_error(c, LG_ERR_IO, "is a folder, not a regular file");
        assert_null(lg__weights_open(c, "test", "/dev/zero"));
        assert_error(c, LG_ERR_IO, "test: /dev/zero is a device, not a regular file");
        assert_null(lg__weights_open(c, "test", at("none")));
        assert_error(c, LG_ERR_IO, "cannot be opened: No such file");
        assert_null(lg__weights_open(c, "test", NULL));
        assert_error(c, LG_ERR_ARGUMENT, "test: the path is NULL");
        lg__weights_close(NULL);
        lg_close(c);
}

/* A header of 20 MB of small members takes no more memory than in proportion, and is refused at once. */
TEST_CASE(a_large_header)
{
        const size_t bytes = 20000000;
        char *header = malloc(bytes);
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        memset(header, ' ', bytes);
        header[0] = '{';
        for (size_t i = 1; i + 7 < bytes; i += 7)
                memcpy(header + i, "\"a\":{},", 7);
        memcpy(header + bytes - 8, "\"b\":{} }", 8);
        for (size_t i = bytes - 9; header[i] != ','; i--)
                header[i] = ' ';
        f.limit = f.bytes + 64000000;
        put_weights(bytes, header, bytes, 0);
        assert_null(lg__weights_open(c, "test", at("w")));
        assert_error(c, LG_ERR_FORMAT, "\"a\" has no member \"dtype\"");
        lg_close(c);
        assert_int_equal(f.bytes, 0);
        free(header);
}

AROUND_TESTS(make_folder, remove_folder);
