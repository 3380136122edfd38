/* test_tokenizer.c - byte-level BPE: the ids of tokenizers (PyPI), decoding, files in parts, damaged files. */
#include <sys/stat.h>
#include "failing.h"
#include "npy_txt.h"
#include "temporary.h"

/* ---- a folder of this process, in which files have fixed names ---- */

static char home[4096], away[64];

static int enter(void **state)
{
        char data[4096];
        (void)state;
        strcpy(away, "/tmp/lg-tokenizer-XXXXXX");
        if (!getenv("LG_TEST_DATA") && realpath("tests/data", data))
                setenv("LG_TEST_DATA", data, 1);
        return getcwd(home, sizeof home) && mkdtemp(away) && !chdir(away) ? 0 : -1;
}

static int leave(void **state)
{
        (void)state;
        return chdir(home) || rmdir(away) ? -1 : 0;
}

static void put(const char *name, const void *data, size_t bytes)
{
        FILE *f = fopen(name, "wb");
        assert_true(f && fwrite(data, 1, bytes, f) == bytes && !fclose(f));
}

static FILE *open_txt(void)
{
        char name[4096];
        const char *data = getenv("LG_TEST_DATA");
        snprintf(name, sizeof name, "%s/tokenizer.txt", data ? data : "tests/data");
        FILE *f = fopen(name, "r");
        if (!f)
                fail_msg("%s cannot be opened", name);
        return f;
}

static char line[1 << 16], text[1 << 16];

/* Opens the tokenizer of that name in tokenizer.txt. */
static lg_tokenizer *stored(lg_ctx *c, const char *name)
{
        FILE *f = open_txt();
        while (next_line(f, line, sizeof line)) {
                char *kind = strtok(line, " "), *of = strtok(NULL, " "), *json = strtok(NULL, "\n");
                if (strcmp(kind, "file") != 0 || strcmp(of, name) != 0)
                        continue;
                put(path, json, strlen(json));
                fclose(f);
                lg_tokenizer *t = lg_tokenizer_open(c, path);
                assert_ok(c);
                return t;
        }
        fail_msg("tokenizer.txt has no %s", name);
        return NULL;
}

/* Reads the u16 of a file of tokens. */
static int64_t read_tokens(const char *name, int64_t *to, int64_t room)
{
        int64_t n = 0;
        FILE *f = fopen(name, "rb");
        for (uint8_t b[2]; f && n < room && fread(b, 1, 2, f) == 2;)
                to[n++] = b[0] | b[1] << 8;
        assert_true(f && fgetc(f) == EOF && !fclose(f));
        return n;
}

static void assert_ids(lg_ctx *c, lg_tensor *ids, const int64_t *expected, int64_t count, const char *what)
{
        static int64_t got[1 << 13];
        assert_ok(c);
        assert_int_equal(lg_dtype_of(ids), LG_I64);
        assert_true(lg_ndim_of(ids) == 1 && lg_numel(ids) < 1 << 13);
        lg_read(ids, got, LG_I64, (size_t)lg_numel(ids) * 8);
        for (int64_t i = 0; i < count || i < lg_numel(ids); i++)
                if (lg_numel(ids) != count || got[i] != expected[i])
                        fail_msg("%s: %lld ids, not %lld; number %lld is %lld", what, (long long)lg_numel(ids),
                                 (long long)count, (long long)i, (long long)got[i]);
}

/* A line of tokenizer.txt; `t` is the tokenizer that its name stands for. */
static void check_case(lg_ctx *c, lg_tokenizer *t, const char *name)
{
        int64_t expected[4096], count = 0, again[4096], bytes;
        const char *options = strtok(NULL, " ");
        char *hex = strtok(NULL, " \n"), *end;
        strcpy(text, *hex == '-' ? "" : hex);
        const size_t length = *hex == '-' ? 0 : from_hex(text);
        for (char *id; (id = strtok(NULL, " \n"));)
                expected[count++] = strtoll(id, &end, 10);
        const bool plain = *options == 'p', special = *options == 'a';
        text[length] = '\0';
        lg_tensor *ids = lg_tokenizer_encode(t, text, .plain = plain, .add_special = special);
        assert_ids(c, ids, expected, count, name);
        const char *back = lg_tokenizer_decode(t, ids, .bytes = &bytes);
        if (!strcmp(name, "gpt2"))
                assert_true(bytes == (int64_t)length && !memcmp(back, text, length + 1));
        if (special)
                return;
        put("tokenizer.in", text, length);
        assert_true(lg_tokenizer_encode_file(t, "tokenizer.in", "tokenizer.out", .plain = plain, .tokens = &bytes));
        assert_int_equal(read_tokens("tokenizer.out", again, 4096), count);
        assert_int_equal(bytes, count);
        assert_memory_equal(again, expected, (size_t)count * 8);
}

TEST_CASE_WITH(ids_of_tokenizers, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_tokenizer *t = NULL;
        char name[64] = "";
        int cases = 0;
        FILE *f = open_txt();
        while (next_line(f, line, sizeof line)) {
                const bool file = !strcmp(strtok(line, " "), "file");
                strcpy(name, strtok(NULL, " "));
                if (!file) {
                        check_case(c, t, name);
                        cases++;
                        continue;
                }
                char *json = strtok(NULL, "\n");
                put(path, json, strlen(json));
                lg_tokenizer_free(t);
                t = lg_tokenizer_open(c, path);
                assert_ok(c);
        }
        assert_true(cases > 300);
        fclose(f);
        unlink("tokenizer.in");
        unlink("tokenizer.out");
        lg_close(c);
}

TEST_CASE_WITH(vocabulary, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_tokenizer *t = stored(c, "llama");
        assert_int_equal(lg_tokenizer_size(t), 334);
        assert_int_equal(lg_tokenizer_id(t, "<s>"), 0);
        assert_int_equal(lg_tokenizer_bos(t), 0);
        assert_int_equal(lg_tokenizer_eos(t), -1);
        assert_int_equal(lg_tokenizer_id(t, "no token"), -1);
        const int64_t the = lg_tokenizer_id(t, " the");
        assert_true(the > 0);
        assert_string_equal(lg_tokenizer_token(t, the), " the");
        assert_null(lg_tokenizer_token(t, 334));
        assert_null(lg_tokenizer_token(t, -1));
        assert_int_equal(lg_tokenizer_id(t, "<mask>"), 330);
        lg_tensor *ids = lg_tokenizer_encode(t, "<s> the</s>");
        assert_list(ids, 0, 0, (double)the, 1);
        assert_string_equal(lg_tokenizer_decode(t, ids, .skip_special = true), " the");
        assert_string_equal(lg_tokenizer_decode(t, lg_cast(ids, LG_I32)), "<s> the</s>");
        assert_string_equal(lg_tokenizer_decode(t, lg_slice(ids, 0, 2, 3)), "</s>");
        assert_int_equal(lg_numel(lg_tokenizer_encode(t, "the", .bytes = LG_ZERO_INT)), 0);
        lg_close(c);
}

/* GPT-2's first files, in a folder; tokenizer_config.json names bos and eos. */
TEST_CASE(vocab_and_merges)
{
        static const char vocab[] =
                "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3, \"\\u0120\": 4, \"\\u0120ab\": 5}";
        static const char merges[] = "#version: 0.2\na b\n\xc4\xa0 ab\n";
        static const char config[] =
                "{\"bos_token\": {\"content\": \"a\"}, \"eos_token\": \"ab\", \"x\": [-1.5e3, null, true]}";
        lg_ctx *c = open_ctx();
        mkdir("tokenizer", 0700);
        put("tokenizer/vocab.json", vocab, sizeof vocab - 1);
        put("tokenizer/merges.txt", merges, sizeof merges - 1);
        lg_tokenizer *t = lg_tokenizer_open(c, "tokenizer");
        assert_ok(c);
        assert_list(lg_tokenizer_encode(t, "abba ab<|endoftext|>"), 0, 2, 1, 0, 5, 3);
        assert_true(lg_tokenizer_bos(t) == 3 && lg_tokenizer_eos(t) == 3);
        put("tokenizer/tokenizer_config.json", config, sizeof config - 1);
        t = lg_tokenizer_open(c, "tokenizer/vocab.json");
        assert_true(lg_tokenizer_bos(t) == 0 && lg_tokenizer_eos(t) == 2);
        int64_t ids[8], count = 0;
        put("tokenizer/text", "ab a", 4);
        assert_true(lg_tokenizer_encode_file(t, "tokenizer/text", "tokenizer/ids", .add_eos = true, .bits = 32,
                                             .tokens = &count));
        assert_int_equal(count, 4);
        assert_int_equal(read_tokens("tokenizer/ids", ids, 8), 8); /* halves of 32 bits */
        assert_true(ids[0] == 2 && ids[2] == 4 && ids[4] == 0 && ids[6] == 2 && ids[7] == 0);
        unlink("tokenizer/text");
        unlink("tokenizer/ids");
        put("tokenizer/tokenizer_config.json", "{", 1);
        assert_null(lg_tokenizer_open(c, "tokenizer/"));
        assert_error(c, LG_ERR_FORMAT, "tokenizer/tokenizer_config.json\": at byte 1");
        put("tokenizer/merges.txt", "a b c\n", 6);
        assert_null(lg_tokenizer_open(c, "tokenizer"));
        assert_error(c, LG_ERR_FORMAT, "tokenizer/merges.txt\": merge 0 is not two texts");
        unlink("tokenizer/merges.txt");
        assert_null(lg_tokenizer_open(c, "tokenizer"));
        assert_error(c, LG_ERR_IO, "merges.txt");
        unlink("tokenizer/vocab.json");
        unlink("tokenizer/tokenizer_config.json");
        assert_null(lg_tokenizer_open(c, "tokenizer"));
        assert_error(c, LG_ERR_IO, "folder");
        rmdir("tokenizer");
        lg_close(c);
}

TEST_CASE_WITH(any_bytes_come_back, begin, end)
{
        char all[600];
        int64_t bytes, total = 0;
        lg_ctx *c = open_ctx();
        lg_tokenizer *t = stored(c, "gpt2");
        for (int i = 0; i < 600; i++)
                all[i] = (char)(i < 256 ? i : (i * 7919) >> 3);
        lg_tensor *ids = lg_tokenizer_encode(t, all, .bytes = sizeof all);
        const char *back = lg_tokenizer_decode(t, ids, .bytes = &bytes);
        assert_ok(c);
        assert_true(bytes == sizeof all && !memcmp(back, all, sizeof all));
        put("tokenizer.in", all, sizeof all);
        assert_true(lg_tokenizer_encode_file(t, "tokenizer.in", "tokenizer.out", .tokens = &total));
        assert_int_equal(total, lg_numel(ids));
        unlink("tokenizer.in");
        unlink("tokenizer.out");
        lg_close(c);
}

/* A character comes when its last byte does; bytes that become none are U+FFFD. */
TEST_CASE_WITH(stream_of_characters, begin, end)
{
        char expected[256] = "", got[256] = "";
        int64_t ids[64];
        lg_ctx *c = open_ctx();
        lg_tokenizer *t = stored(c, "unknown"), *bytes = stored(c, "gpt2");
        (void)t;
        for (int i = 0; i < 4; i++) { /* ids of bytes of U+1F980, which the vocabulary has not merged */
                const char one[2] = {"\xf0\x9f\xa6\x80"[i], '\0'};
                ids[i] = lg_tokenizer_id(bytes, one);
                assert_true(ids[i] >= 0);
        }
        const int64_t a = lg_tokenizer_id(bytes, "a");
        const struct {
                int64_t id;
                const char *says;
        } steps[] = {{a, "a"},
                     {ids[0], ""},
                     {ids[1], ""},
                     {ids[2], ""},
                     {ids[3], "\xf0\x9f\xa6\x80"},
                     {ids[0], ""},
                     {ids[1], ""},
                     {a, "\xef\xbf\xbd"
                         "a"},
                     {ids[3], "\xef\xbf\xbd"},
                     {ids[0], ""},
                     {-1, "\xef\xbf\xbd"},
                     {-1, ""}};
        lg_text_stream stream = {0};
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
                strcat(expected, steps[i].says);
                strcat(got, lg_tokenizer_next(bytes, &stream, steps[i].id));
                assert_string_equal(got, expected);
                assert_int_equal(stream.bytes, strlen(steps[i].says));
        }
        assert_null(lg_tokenizer_next(bytes, &stream, 100000));
        assert_error(c, LG_ERR_ARGUMENT, "lg_tokenizer_next: there is no token with the id 100000; the largest is 339");
        assert_null(lg_tokenizer_next(bytes, NULL, 0));
        assert_error(c, LG_ERR_ARGUMENT, "the stream is NULL");
        lg_close(c);
}

static void count_progress(int64_t bytes, int64_t tokens, void *user)
{
        int64_t *last = user;
        assert_true(bytes >= last[0] && tokens >= last[1]);
        last[0] = bytes;
        last[1] = tokens;
        last[2]++;
}

/* Texts of several parts, with words longer than a part, have the ids of the whole. */
static void check_parts(lg_ctx *c, lg_tokenizer *t, char *s, int64_t bytes)
{
        int64_t *all = malloc(8 * (size_t)bytes), *parts = malloc(8 * (size_t)bytes + 16), last[3] = {0};
        put("tokenizer.in", s, (size_t)bytes);
        lg_tensor *ids = lg_tokenizer_encode(t, s, .bytes = bytes);
        assert_true(
                lg_tokenizer_encode_file(t, "tokenizer.in", "tokenizer.out", .progress = count_progress, .user = last));
        assert_ok(c);
        const int64_t n = lg_numel(ids);
        lg_read(ids, all, LG_I64, 8 * (size_t)n);
        assert_int_equal(read_tokens("tokenizer.out", parts, bytes + 2), n);
        assert_memory_equal(all, parts, 8 * (size_t)n);
        assert_true(last[0] == bytes && last[1] == n && last[2] >= bytes >> 21);
        free(all);
        free(parts);
        unlink("tokenizer.in");
        unlink("tokenizer.out");
}

TEST_CASE_WITH(parts_of_files, begin, end)
{
        static const char *const words[] = {" the",    "\n\n", "  ",   "<mask>",       " <mask>  ",
                                            "<|eot|>", "word", "1234", "\xe7\x95\x8c", "\xf0\x9f\x99\x82",
                                            "'s",      "Time", "\xff", "<|eo",         "e",
                                            "\xcc\x81"};
        const int64_t bytes = 3 << 20;
        lg_ctx *c = open_ctx();
        char *s = malloc((size_t)bytes + 64);
        uint32_t draw = 1;
        int64_t n = 0;
        while (n < bytes) {
                draw = draw * 1664525 + 1013904223;
                const char *word = words[draw >> 28];
                memcpy(s + n, word, strlen(word));
                n += (int64_t)strlen(word);
        }
        check_parts(c, stored(c, "gpt2"), s, n);
        check_parts(c, stored(c, "llama"), s, n);
        check_parts(c, stored(c, "text"), s, n);
        memset(s + 100, 't', 2 << 20);
        check_parts(c, stored(c, "gpt2"), s, n);
        memset(s + 100, ' ', 2 << 20);
        check_parts(c, stored(c, "llama"), s, n);
        free(s);
        lg_close(c);
}

#define MODEL(more) "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]" more "}"
#define BYTES ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define PARTS(more)                                                                                                    \
        MODEL("") ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" more "{\"type\":\"ByteLevel\"}]}}"
static const struct {
        const char *json, *says;
} damaged[] = {
        {"", "at byte 0, { was expected"},
        {"{", "at byte 1"},
        {"[]", "{ was expected"},
        {MODEL("") BYTES "} x", "nothing may follow the object"},
        {"{\"model\":{\"type\":\"WordPiece\"}}", "the model is \"WordPiece\", which libgrad does not have"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "the model is \"Unigram\""},
        {"{\"model\":{\"vocab\":[]}}", "there is no vocabulary"},
        {"{\"model\":{\"vocab\":{\"a\":0}}}", "the model has no array \"merges\""},
        {"{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "two tokens have the id 0"},
        {"{\"model\":{\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]}}", "the vocabulary has the token \"a\" twice"},
        {"{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", "the id of the token \"a\" is not a number from 0 to"},
        {"{\"model\":{\"vocab\":{\"a\":1.5},\"merges\":[]}}", "the id of the token \"a\" is not a number from 0 to"},
        {"{\"model\":{\"vocab\":{\"a\":9007199254740991},\"merges\":[]}}", "is not a number from 0 to 65535"},
        {"{\"model\":{\"vocab\":{\"a\":null},\"merges\":[]}}", "the id of the token \"a\" is not a number"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}", "merge 0 joins or makes a token that is not in"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}", "merge 0 is not two texts with a space"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", "merge 0 is neither a text nor an array of two"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\",\"a\"]]}}", "merge 0 is neither"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[7]}}", "merge 0 is neither"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"\\u4e16\"]]}}",
         "merge 0 does not join two texts of byte-level"},
        {MODEL(",\"byte_fallback\":true") BYTES "}", "the model has byte_fallback, which libgrad does not have"},
        {MODEL(",\"dropout\":0.1") BYTES "}", "the model has dropout"},
        {MODEL(",\"end_of_word_suffix\":\"</w>\"") BYTES "}", "the model has end_of_word_suffix"},
        {MODEL(",\"unk_token\":\"?\"") BYTES "}", "the unk_token is not in the vocabulary"},
        {MODEL("") "}", "the pre_tokenizer is not ByteLevel"},
        {MODEL("") BYTES ",\"normalizer\":{\"type\":\"Lowercase\"}}", "the normalizer is \"Lowercase\""},
        {MODEL("") BYTES ",\"normalizer\":{}}", "the normalizer has no type"},
        {MODEL("") BYTES ",\"post_processor\":{\"type\":\"Other\"}}", "the post_processor is \"Other\""},
        {MODEL("") BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}}", "has not one text"},
        {MODEL("") BYTES ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"x\",7],\"sep\":[\"x\",7]}}",
         "adds the id 7"},
        {MODEL("") BYTES ",\"added_tokens\":[{\"id\":0,\"content\":\"x\"}]}", "the added token \"x\" has the id 0"},
        {MODEL("") BYTES ",\"added_tokens\":[{\"id\":5,\"content\":\"a\"}]}", "the added token \"a\" has the id 5"},
        {MODEL("") BYTES ",\"added_tokens\":[{\"id\":5}]}", "an entry of added_tokens has no id and content"},
        {MODEL("") BYTES ",\"added_tokens\":[{\"id\":5,\"content\":\"x\"},{\"id\":6,\"content\":\"x\"}]}",
         "two added tokens \"x\""},
        {MODEL("") BYTES ",\"added_tokens\":5}", "added_tokens is no array"},
        {PARTS("{\"type\":\"Metaspace\"},"), "the pre_tokenizer is \"Metaspace\""},
        {PARTS("{\"type\":\"ByteLevel\"},"), "a pre_tokenizer follows ByteLevel"},
        {PARTS("{\"type\":\"Split\",\"behavior\":\"Contiguous\"},"), "another behavior than Isolated and Removed"},
        {PARTS("{\"type\":\"Split\",\"behavior\":\"Isolated\"},"), "a Split has no pattern"},
        {PARTS("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a\"},\"behavior\":\"Isolated\"},"),
         "the expression \"(a\" cannot be used: missing"},
        {PARTS("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\w\"},\"behavior\":\"Isolated\"},"),
         "has a backslash with a letter other than"},
        {PARTS("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},\"behavior\":\"Isolated\"},"),
         "a class with &&"},
};

TEST_CASE_WITH(damaged_files, begin, end)
{
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
                put(path, damaged[i].json, strlen(damaged[i].json));
                assert_null(lg_tokenizer_open(c, path));
                assert_error(c, LG_ERR_FORMAT, damaged[i].says);
        }
        static char deep[4000];
        memset(deep, '[', sizeof deep);
        memcpy(deep, "{\"a\":", 5);
        put(path, deep, sizeof deep);
        assert_null(lg_tokenizer_open(c, path));
        assert_error(c, LG_ERR_FORMAT, "nested more than 64 deep");
        lg_close(c);
}

TEST_CASE_WITH(wrong_calls, begin, end)
{
        int64_t ids[] = {0, 4000};
        lg_ctx *c = open_ctx();
        lg_tokenizer *t = stored(c, "llama");
        assert_null(lg_tokenizer_open(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_tokenizer_open: the path is NULL");
        assert_null(lg_tokenizer_open(c, "no-such-file"));
        assert_error(c, LG_ERR_IO, "lg_tokenizer_open: no-such-file cannot be opened");
        assert_null(lg_tokenizer_encode(t, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_tokenizer_encode: the text is NULL");
        assert_null(lg_tokenizer_encode(t, "", .bytes = -2));
        assert_error(c, LG_ERR_ARGUMENT, ".bytes is -2");
        assert_null(lg_tokenizer_decode(t, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "the ids are NULL");
        assert_null(lg_tokenizer_decode(t, lg_zeros(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_DTYPE, "the ids are f32 (2,)");
        assert_null(lg_tokenizer_decode(t, lg_from(c, ids, LG_SHAPE(2), .dtype = LG_I64)));
        assert_error(c, LG_ERR_ARGUMENT, "there is no token with the id 4000; the largest is 333");
        assert_false(lg_tokenizer_encode_file(t, "no-such-file", path));
        assert_error(c, LG_ERR_IO, "lg_tokenizer_encode_file: no-such-file cannot be opened");
        assert_false(lg_tokenizer_encode_file(t, path, "no-such-folder/x"));
        assert_error(c, LG_ERR_IO, "no-such-folder/x");
        assert_false(lg_tokenizer_encode_file(t, path, "x", .bits = 8));
        assert_error(c, LG_ERR_ARGUMENT, ".bits is 8; it must be 16 or 32 for 334 tokens");
        assert_false(lg_tokenizer_encode_file(t, path, "x", .add_eos = true));
        assert_error(c, LG_ERR_ARGUMENT, "the tokenizer has no eos");
        lg_close(c);
}

/* An expression that takes a time exponential in the text is an error, not a wait. */
TEST_CASE_WITH(limits_of_expressions, begin, end)
{
        static const char json[] =
                PARTS("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?:(?:a|aa)+)+b\"},\"behavior\":\"Isolated\"},");
        static const char looks_back[] =
                PARTS("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?<=a)b\"},\"behavior\":\"Isolated\"},");
        lg_ctx *c = open_ctx();
        put(path, json, sizeof json - 1);
        lg_tokenizer *t = lg_tokenizer_open(c, path);
        assert_ok(c);
        assert_null(lg_tokenizer_encode(t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaacb"));
        assert_error(c, LG_ERR_STATE, "takes too long or too much memory on this text");
        assert_int_equal(lg_numel(lg_tokenizer_encode(t, "ab")), 1);
        put(path, looks_back, sizeof looks_back - 1);
        t = lg_tokenizer_open(c, path);
        assert_list(lg_tokenizer_encode(t, "abb"), 0, 0, 1, 1);
        assert_false(lg_tokenizer_encode_file(t, path, "tokenizer.out"));
        assert_error(c, LG_ERR_STATE, "a regular expression of the tokenizer looks back");
        lg_close(c);
}

static lg_tensor *open_and_encode(lg_ctx *c, void *user)
{
        (void)user;
        lg_tokenizer *t = lg_tokenizer_open(c, path);
        lg_tensor *y =
                lg_tokenizer_encode(t, "Once upon a time <mask> there was a small word 1234", .add_special = true);
        y = lg_tokenizer_decode(t, y) && lg_tokenizer_encode_file(t, path, "tokenizer.out") ? y : NULL;
        lg_tokenizer_free(t);
        return y;
}

TEST_CASE_WITH(without_memory, begin, end)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        lg_tokenizer_free(stored(c, "llama"));
        assert_true(fail_each(c, &f, false, open_and_encode, NULL) > 10);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
        unlink("tokenizer.out");
}

#if LG_UTF8PROC
TEST_CASE_WITH(normal_form, begin, end)
{
        static const char json[] = MODEL("") BYTES ",\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":[{\"id\":3,"
                                                   "\"content\":\"\xc3\xa9\",\"normalized\":true}]}";
        lg_ctx *c = open_ctx();
        put(path, json, sizeof json - 1);
        lg_tokenizer *t = lg_tokenizer_open(c, path);
        int64_t ids[8];
        assert_ok(c);
        assert_list(lg_tokenizer_encode(t, "abe\xcc\x81"
                                           "a"),
                    0, 2, 3, 0);
        put("tokenizer.in",
            "abe\xcc\x81"
            "a",
            6);
        assert_true(lg_tokenizer_encode_file(t, "tokenizer.in", "tokenizer.out"));
        assert_int_equal(read_tokens("tokenizer.out", ids, 8), 3);
        assert_true(ids[0] == 2 && ids[1] == 3 && ids[2] == 0);
        unlink("tokenizer.in");
        unlink("tokenizer.out");
        lg_close(c);
}
#endif

AROUND_TESTS(enter, leave);
