/* fuzz_tokenizer.c - any bytes as a file of a tokenizer and a text, or as a text for tokenizers of the usual kinds.
 *
 * The ids of a text are those of its parts, wherever it is cut, and without tokens that take blanks they give the text
 * back. What is not read is an error of the file's format, and nothing is left behind.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../failing.h"
#include "fuzz.h"
#include "text/tokenizer.h"

#define MOST_MEMORY (48 << 20)
#define LLAMA3                                                                                                         \
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "                         \
        "?[^\\\\s\\\\p{L}\\\\p{N}]+"                                                                                   \
        "[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(pattern) "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"" pattern "\"}},"
#define BYTE_LEVEL(space, regex) "{\"type\":\"ByteLevel\",\"add_prefix_space\":" space ",\"use_regex\":" regex "}"
#define SEQUENCE(parts) "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" parts "]}}"

/* What follows the model; the first two give every text back. */
static const char *const kinds[] = {
        "\"added_tokens\":[{\"id\":300,\"content\":\"<|a|>\",\"special\":true}],\"pre_tokenizer\":" BYTE_LEVEL(
                "false", "true") "}",
        "\"added_tokens\":[{\"id\":300,\"content\":\"<|a|><|a|>\",\"special\":true},{\"id\":301,\"content\":\"<|a|>\"}]"
        "," SEQUENCE(SPLIT(LLAMA3) BYTE_LEVEL("false", "false")),
        "\"added_tokens\":[{\"id\":300,\"content\":\"<a>\",\"lstrip\":true,\"rstrip\":true},{\"id\":256,\"content\":"
        "\"ab\","
        "\"single_word\":true,\"normalized\":true},{\"id\":302,\"content\":\"  \"}]," SEQUENCE(
                "{\"type\":\"Digits\",\"individual_digits\":true}," BYTE_LEVEL("true", "true")),
        SEQUENCE(SPLIT("a*") SPLIT("\\\\s+") BYTE_LEVEL("true", "false")),
};
#define KINDS (sizeof kinds / sizeof *kinds)

static int file = -1;
static char path[64];
static lg_ctx *lasting;
static lg_tokenizer *made[KINDS];

static void put(const void *data, size_t bytes)
{
        FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, bytes, 0) == (ssize_t)bytes, "no memory for a file");
}

/* A model of all bytes and a few merges, as JSON. */
static int write_model(char *to)
{
        int n = sprintf(to, "{\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{"), next = 0x100;
        for (int b = 0; b < 256; b++) {
                const bool visible = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
                const int v = visible ? b : next++;
                n += v < 0x80 ? sprintf(to + n, "\"%s%c\":%d,", v == '"' || v == '\\' ? "\\" : "", v, b)
                              : sprintf(to + n, "\"%c%c\":%d,", 0xc0 | v >> 6, 0x80 | (v & 0x3f), b);
        }
        return n + sprintf(to + n,
                           "\"ab\":256,\"abc\":257,\"bc\":258,\"aa\":259,\"\xc4\xa0"
                           "a\":260,\"  aa\":261,\"\xc4\xa0\xc4\xa0\":262},"
                           "\"merges\":[\"b c\",\"a b\",\"a bc\",\"a a\",\"\xc4\xa0 a\",\"\xc4\xa0 \xc4\xa0\"]},");
}

static void make_all(void)
{
        static char json[1 << 14];
        lasting = lg_open(.threads = 1);
        for (size_t i = 0; i < KINDS; i++) {
                const int n = write_model(json);
                strcpy(json + n, kinds[i]);
                put(json, strlen(json));
                made[i] = lg_tokenizer_open(lasting, path);
                FUZZ_CHECK(made[i], "%s", lg_error(lasting));
        }
}

/* An error that a file or a text may be the cause of; it is cleared. IO: the file is a vocabulary without merges. */
static void check_error(lg_ctx *c)
{
        const lg_error_code code = lg_error_code_of(c);
        FUZZ_CHECK(code == LG_ERR_FORMAT || code == LG_ERR_MEMORY || code == LG_ERR_STATE || code == LG_ERR_IO,
                   "%s: %s", lg_error_name(code), lg_error(c));
        lg_clear_error(c);
}

/* Encodes a text that is given up to byte `cut` first, and then whole; returns false with an error. */
static bool encode_cut(lg_tokenizer *t, const char *s, int64_t bytes, int64_t cut, bool plain, lg__ids *ids)
{
        lg__call call = {.t = t, .op = "encode", .ids = ids, .plain = plain};
        const int64_t used = cut ? lg__stages_run(&call, 0, s, cut, false) : 0;
        if (used < 0)
                return false;
        FUZZ_CHECK(used <= cut, "%lld of %lld bytes were used", (long long)used, (long long)cut);
        call.word_before = used > 0 && lg__is_word(t, s, used, true);
        return lg__stages_run(&call, 0, s + used, bytes - used, true) >= 0;
}

static void encode(lg_tokenizer *t, const char *s, int64_t bytes, int64_t cut, bool plain, bool comes_back)
{
        lg_ctx *c = lg_tokenizer_size(t) ? ((lg__object *)t)->ctx : NULL;
        lg__ids whole = {0}, parts = {0};
        int64_t n;
        if (!encode_cut(t, s, bytes, 0, plain, &whole) ||
            (!t->looks_back && !encode_cut(t, s, bytes, cut, plain, &parts))) {
                check_error(c);
        } else {
                const bool same = parts.count == whole.count &&
                                  (!whole.count || !memcmp(parts.items, whole.items, (size_t)whole.count * 4));
                FUZZ_CHECK(same || t->looks_back, "a cut at byte %lld changes the ids", (long long)cut);
                lg_scope scope = lg_scope_begin(c);
                const char *back = lg_tokenizer_decode(
                        t, lg_tokenizer_encode(t, s, .bytes = bytes ? bytes : LG_ZERO_INT, .plain = plain),
                        .bytes = &n);
                FUZZ_CHECK(!comes_back || (n == bytes && !memcmp(back, s, (size_t)n)), "the text does not come back");
                lg_scope_end(c, scope);
                if (lg_error(c))
                        check_error(c);
        }
        lg__free(c, whole.items, (size_t)whole.room * 4);
        lg__free(c, parts.items, (size_t)parts.room * 4);
}

/* bos and eos are tokens; the text of an added token is its own id. */
static void check_ends(lg_tokenizer *t)
{
        const int64_t ends[] = {lg_tokenizer_bos(t), lg_tokenizer_eos(t)};
        for (int i = 0; i < 2; i++)
                FUZZ_CHECK(ends[i] == -1 || lg_tokenizer_token(t, ends[i]), "an end without a token");
        for (int64_t i = 0; i < t->added_count; i++)
                FUZZ_CHECK(lg_tokenizer_id(t, t->added[i].s) == t->added[i].id, "an id");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (file < 0) {
                file = memfd_create("tokenizer", MFD_CLOEXEC);
                FUZZ_CHECK(file >= 0, "no memory for a file");
                snprintf(path, sizeof path, "/proc/self/fd/%d", file);
                make_all();
        }
        if (size < 3)
                return 0;
        const uint8_t form = data[0];
        const size_t at = (size_t)(data[1] << 8 | data[2]) % (size - 2);
        char *s = malloc(size);
        FUZZ_CHECK(s, "no memory");
        memcpy(s, data + 3, size -= 3);
        s[size] = '\0';
        if (form & 1) {
                encode(made[(form >> 1) % KINDS], s, (int64_t)size, (int64_t)at, form & 8, (form >> 1) % KINDS < 2);
        } else {
                put(s, at);
                failing memory = {.limit = MOST_MEMORY};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
                FUZZ_CHECK(c, "no memory for a context");
                lg_tokenizer *t = lg_tokenizer_open(c, path);
                if (t) {
                        encode(t, s + at, (int64_t)(size - at), (int64_t)(size - at) / 2, form & 8, false);
                        check_ends(t);
                        lg_tokenizer_free(t);
                } else
                        check_error(c);
                lg_close(c);
                FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left",
                           (long long)memory.bytes);
        }
        free(s);
        return 0;
}
