/* read.c - reads tokenizer.json, or vocab.json and merges.txt: the vocabulary, the merges and the added tokens. */
#include <unistd.h>
#include "read.h"
#include "io/files.h"

/* ---- bytes as characters ----
 *
 * Files write the byte b as the character b if that is visible in Latin-1, and else as the next one from U+0100 on.
 */

static bool is_visible(int b)
{
        return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
}

static void make_bytes(int16_t *byte_of)
{
        int next = 0x100;
        for (int i = 0; i < LG__BYTE_CHARACTERS; i++)
                byte_of[i] = -1;
        for (int b = 0; b < 256; b++)
                byte_of[is_visible(b) ? b : next++] = (int16_t)b;
}

int64_t lg__reader_bytes(const lg__reader *r, const char *s, size_t bytes, char *to)
{
        int64_t n = 0;
        for (size_t i = 0; i < bytes; i++) {
                unsigned v = (unsigned char)s[i];
                if (v >= 0x80) {
                        if ((v & 0xe0) != 0xc0 || i + 1 == bytes || ((unsigned char)s[i + 1] & 0xc0) != 0x80)
                                return -1;
                        v = (v & 0x1f) << 6 | ((unsigned char)s[++i] & 0x3f);
                }
                if (v >= LG__BYTE_CHARACTERS || r->byte_of[v] < 0)
                        return -1;
                if (to)
                        to[n] = (char)r->byte_of[v];
                n++;
        }
        return n;
}

/* ---- files ---- */

bool lg__reader_bad(const lg__reader *r, const char *format, ...)
{
        char what[400];
        va_list args;
        va_start(args, format);
        vsnprintf(what, sizeof what, format, args);
        va_end(args);
        return lg__fail(r->c, LG_ERR_FORMAT, LG__OPEN ": %s: %s", lg__quoted(r->path).s, what);
}

/* Reads r->path, a JSON file. Returns false with an error. */
static bool read_json(lg__reader *r)
{
        const char *wrong;
        size_t at;
        if (!lg__whole_read(r->c, LG__OPEN, r->path, &r->file))
                return false;
        if (!lg__json_check_any((lg__span){r->file.data, r->file.bytes}, &wrong, &at))
                return lg__reader_bad(r, "at byte %zu, %s", at, wrong);
        r->scratch = lg__alloc_unset(r->c, r->file.bytes + 1);
        if (!r->scratch)
                return false;
        r->top = (lg__json){.s = r->file.data, .end = r->file.data + r->file.bytes, .to = r->scratch, .any = true};
        while (*r->top.s != '{')
                r->top.s++;
        return true;
}

static void close_json(lg__reader *r)
{
        lg__free(r->c, r->scratch, r->scratch ? r->file.bytes + 1 : 0);
        lg__free(r->c, r->file.data, (size_t)r->file.room);
        r->scratch = NULL;
        r->file = (lg__whole){0};
        r->top = (lg__json){.s = NULL};
}

/* Writes the path of a file in the folder, or with `beside` in the folder of the file, `path`. */
static void join(char *to, size_t room, const char *path, bool beside, const char *name)
{
        const char *slash = strrchr(path, '/');
        const int folder = beside ? (slash ? (int)(slash - path) + 1 : 0) : (int)strlen(path);
        snprintf(to, room, "%.*s%s%s", folder, path, beside || (folder && path[folder - 1] == '/') ? "" : "/", name);
}

static bool exists(lg_ctx *c, const char *path)
{
        return lg__files_of(c)->access(path, R_OK) == 0;
}

/* ---- vocabulary ---- */

static bool number_of(lg__reader *r, lg__json *p, const char *name, int64_t *ret)
{
        const int64_t most =
                r->file.bytes > 65536 ? (int64_t)r->file.bytes : 65536; /* of ids, so that memory is bounded */
        const bool number = *p->s >= '0' && *p->s <= '9';
        *ret = number ? lg__json_number(p) : -1;
        return (*ret >= 0 && *ret < most) || lg__reader_bad(r, "the id of the token %s is not a number from 0 to %lld",
                                                            lg__quoted(name).s, (long long)most - 1);
}

/* Counts the tokens of a vocabulary, the bytes of their texts and the largest id. */
static bool measure(lg__reader *r, lg__json p, int64_t *count, int64_t *bytes)
{
        p.s++;
        for (const char *name; (name = lg__json_member(&p));) {
                int64_t id;
                if (!number_of(r, &p, name, &id))
                        return false;
                r->t->size = id >= r->t->size ? id + 1 : r->t->size;
                ++*count;
                *bytes += (int64_t)strlen(name) + 1;
        }
        return true;
}

static bool measure_added(lg__reader *r, lg__json p, int64_t *bytes)
{
        static const char *const names[] = {"id", "content"};
        if (!p.s || *p.s == 'n')
                return true;
        if (*p.s++ != '[')
                return lg__reader_bad(r, "added_tokens is no array");
        for (lg__json m[2]; lg__json_next(&p); lg__json_skip(&p)) {
                int64_t id;
                lg__json_pick(p, 2, names, m);
                if (!m[0].s || !m[1].s || *m[1].s != '"')
                        return lg__reader_bad(r, "an entry of added_tokens has no id and content");
                const char *content = lg__json_string(&m[1]);
                if (!number_of(r, &m[0], content, &id))
                        return false;
                r->t->size = id >= r->t->size ? id + 1 : r->t->size;
                *bytes += (int64_t)strlen(content) + 1;
        }
        return true;
}

const char *lg__reader_keep(lg_tokenizer *t, const char *s, int64_t bytes)
{
        char *to = t->texts.s + t->texts.bytes;
        memcpy(to, s, (size_t)bytes);
        to[bytes] = '\0';
        t->texts.bytes += bytes + 1;
        return to;
}

static bool add_tokens(lg__reader *r, lg__json p)
{
        lg_tokenizer *t = r->t;
        p.s++;
        for (char *name = p.to; (p.to = name, lg__json_member(&p));) {
                int64_t id, bytes = lg__reader_bytes(r, name, strlen(name), NULL);
                if (!number_of(r, &p, name, &id))
                        return false;
                if (t->tokens[id].s)
                        return lg__reader_bad(r, "two tokens have the id %lld", (long long)id);
                const bool made_of_bytes = bytes > 0;
                if (made_of_bytes)
                        lg__reader_bytes(r, name, strlen(name), name);
                else /* no merge makes it, but an added token may be it */
                        bytes = (int64_t)strlen(name);
                t->tokens[id] = (lg__token){lg__reader_keep(t, name, bytes), (uint32_t)bytes, false};
                if (made_of_bytes && !lg__bpe_index(t, (uint32_t)id))
                        return lg__reader_bad(r, "the vocabulary has the token %s twice",
                                              lg__quoted(t->tokens[id].s).s);
        }
        return true;
}

static int64_t power_of_two(int64_t least)
{
        int64_t n = 16;
        while (n < least)
                n *= 2;
        return n;
}

static bool make_tables(lg__reader *r, int64_t tokens, int64_t bytes)
{
        lg_tokenizer *t = r->t;
        t->map_size = power_of_two(2 * tokens);
        t->tokens = lg__alloc(r->c, (size_t)(t->size ? t->size : 1) * sizeof *t->tokens);
        t->map = t->tokens ? lg__alloc_unset(r->c, (size_t)t->map_size * sizeof *t->map) : NULL;
        if (!t->map || !lg__buffer_reserve(r->c, &t->texts, bytes + 1))
                return false;
        memset(t->map, 0xff, (size_t)t->map_size * sizeof *t->map);
        memset(t->byte_id, 0xff, sizeof t->byte_id);
        return true;
}

static bool read_vocabulary(lg__reader *r, lg__json vocabulary, lg__json added)
{
        int64_t count = 0, bytes = 0;
        if (!vocabulary.s || *vocabulary.s != '{')
                return lg__reader_bad(r, "there is no vocabulary, an object \"vocab\"");
        return measure(r, vocabulary, &count, &bytes) && measure_added(r, added, &bytes) &&
               make_tables(r, count, bytes) && add_tokens(r, vocabulary);
}

/* ---- merges ---- */

static bool make_merges(lg__reader *r, int64_t count)
{
        lg_tokenizer *t = r->t;
        t->merges_size = power_of_two(2 * count);
        t->merges = lg__alloc_unset(r->c, (size_t)t->merges_size * sizeof *t->merges);
        if (t->merges)
                memset(t->merges, 0xff, (size_t)t->merges_size * sizeof *t->merges);
        return t->merges;
}

/* Adds merge `rank` of two texts, which are changed to bytes in their place; b begins after the end of a. */
static bool add_merge(lg__reader *r, int64_t rank, char *a, size_t a_bytes, char *b, size_t b_bytes)
{
        const int64_t left = lg__reader_bytes(r, a, a_bytes, a), right = lg__reader_bytes(r, b, b_bytes, b);
        if (left <= 0 || right <= 0)
                return lg__reader_bad(r, "merge %lld does not join two texts of byte-level BPE", (long long)rank);
        const uint32_t left_id = lg__bpe_find(r->t, a, (size_t)left), right_id = lg__bpe_find(r->t, b, (size_t)right);
        memmove(a + left, b, (size_t)right);
        const uint32_t id = lg__bpe_find(r->t, a, (size_t)(left + right));
        if (left_id == LG__NO_ID || right_id == LG__NO_ID || id == LG__NO_ID)
                return lg__reader_bad(r, "merge %lld joins or makes a token that is not in the vocabulary",
                                      (long long)rank);
        lg__bpe_add_merge(r->t, left_id, right_id, (uint32_t)rank, id);
        return true;
}

/* Adds a merge that is written as two texts with one space between them. */
static bool add_line(lg__reader *r, int64_t rank, char *line, size_t bytes)
{
        char *space = memchr(line, ' ', bytes);
        const size_t rest = space ? bytes - (size_t)(space + 1 - line) : 0;
        if (!space || memchr(space + 1, ' ', rest))
                return lg__reader_bad(r, "merge %lld is not two texts with a space between them", (long long)rank);
        return add_merge(r, rank, line, (size_t)(space - line), space + 1, rest);
}

/* Adds a merge that is written as an array of two texts. */
static bool add_pair(lg__reader *r, int64_t rank, lg__json *p)
{
        char *text[2];
        int n = 0;
        bool more = *p->s == '[';
        p->s += more;
        while (more && (more = lg__json_next(p)) && n < 2 && *p->s == '"') {
                text[n++] = p->to;
                lg__json_string(p);
        }
        if (more || n < 2)
                return lg__reader_bad(r, "merge %lld is neither a text nor an array of two", (long long)rank);
        return add_merge(r, rank, text[0], strlen(text[0]), text[1], strlen(text[1]));
}

static bool read_merges(lg__reader *r, lg__json p)
{
        char *const line = p.to;
        int64_t count = 0;
        bool ok = true;
        if (!p.s || *p.s++ != '[')
                return lg__reader_bad(r, "the model has no array \"merges\"");
        for (lg__json q = p; lg__json_next(&q); count++)
                lg__json_skip(&q);
        if (!make_merges(r, count))
                return false;
        for (int64_t rank = 0; ok && (p.to = line, lg__json_next(&p)); rank++) {
                if (*p.s != '"') {
                        ok = add_pair(r, rank, &p);
                } else {
                        lg__json_string(&p);
                        ok = add_line(r, rank, line, strlen(line));
                }
        }
        return ok;
}

/* Reads merges.txt: a line for each merge, after one that begins with #version. */
static bool read_merges_text(lg__reader *r)
{
        int64_t count = 1, rank = 0;
        bool ok = lg__whole_read(r->c, LG__OPEN, r->path, &r->file);
        char *s = r->file.data, *const end = ok ? s + r->file.bytes : s;
        for (size_t i = 0; ok && i < r->file.bytes; i++)
                count += s[i] == '\n';
        ok = ok && make_merges(r, count);
        for (char *line_end; ok && s < end; s = line_end + 1) {
                line_end = memchr(s, '\n', (size_t)(end - s));
                line_end = line_end ? line_end : end;
                size_t bytes = (size_t)(line_end - s);
                bytes -= bytes > 0 && s[bytes - 1] == '\r';
                if (bytes > 0 && (bytes < 8 || memcmp(s, "#version", 8) != 0))
                        ok = add_line(r, rank++, s, bytes);
        }
        return ok;
}

/* ---- the model ---- */

bool lg__json_is(lg__json p, const char *text)
{
        return p.s && *p.s == '"' && !strcmp(lg__json_string(&p), text);
}

bool lg__reader_lacks(const lg__reader *r, const char *part, lg__json p)
{
        static const char *const names[] = {"type"};
        lg__json type;
        lg__json_pick(p, 1, names, &type);
        if (!type.s || *type.s != '"')
                return lg__reader_bad(r, "the %s has no type", part);
        return lg__reader_bad(r, "the %s is %s, which libgrad does not have", part,
                              lg__quoted(lg__json_string(&type)).s);
}

/* Returns whether a member of the model is left out, null, false, 0 or "". */
static bool is_unset(lg__json p)
{
        if (!lg__json_given(p) || *p.s == 'f' || lg__json_is(p, ""))
                return true;
        return (*p.s == '-' || (*p.s >= '0' && *p.s <= '9')) && lg__json_real(&p) == 0;
}

static bool read_model(lg__reader *r, lg__json model, lg__json added)
{
        static const char *const names[] = {"vocab",
                                            "merges",
                                            "unk_token",
                                            "fuse_unk",
                                            "ignore_merges",
                                            "type",
                                            "continuing_subword_prefix",
                                            "end_of_word_suffix",
                                            "dropout",
                                            "byte_fallback"};
        lg_tokenizer *t = r->t;
        lg__json m[10];
        lg__json_pick(model, 10, names, m);
        if (m[5].s && !lg__json_is(m[5], "BPE"))
                return lg__reader_lacks(r, "model", model);
        for (int i = 6; i < 10; i++)
                if (!is_unset(m[i]))
                        return lg__reader_bad(r, "the model has %s, which libgrad does not have", names[i]);
        if (!read_vocabulary(r, m[0], added) || !read_merges(r, m[1]))
                return false;
        t->fuse_unknown = m[3].s && *m[3].s == 't';
        t->ignore_merges = m[4].s && *m[4].s == 't';
        t->unknown = LG__NO_ID;
        if (lg__json_given(m[2]) && *m[2].s == '"') {
                const int64_t id = lg_tokenizer_id(t, lg__json_string(&m[2]));
                if (id < 0)
                        return lg__reader_bad(r, "the unk_token is not in the vocabulary");
                t->unknown = (uint32_t)id;
        }
        return true;
}

/* ---- a tokenizer ---- */

/* Reads a vocabulary, r->top, and the merges beside it. */
static bool read_pair(lg__reader *r, const char *path)
{
        char merges[LG__PATH];
        if (!read_vocabulary(r, r->top, (lg__json){0}))
                return false;
        r->t->unknown = LG__NO_ID;
        close_json(r);
        join(merges, sizeof merges, path, true, "merges.txt");
        r->path = merges;
        const bool ok = read_merges_text(r);
        close_json(r);
        r->path = path;
        return ok && lg__make_config(r);
}

static bool read_file(lg__reader *r)
{
        static const char *const names[] = {"model", "added_tokens", "normalizer", "pre_tokenizer", "post_processor"};
        lg__json m[LG__PARTS];
        if (!read_json(r))
                return false;
        lg__json_pick(r->top, LG__PARTS, names, m);
        if (!m[LG__MODEL].s || *m[LG__MODEL].s != '{')
                return read_pair(r, r->path);
        return read_model(r, m[LG__MODEL], m[LG__ADDED_TOKENS]) && lg__read_config(r, m);
}

bool lg__tokenizer_read(lg_tokenizer *t, const char *path)
{
        lg_ctx *c = t->object.ctx;
        lg__reader r = {.t = t, .c = c, .path = path};
        char file[LG__PATH], other[LG__PATH], ends[LG__PATH];
        if (strlen(path) > LG__PATH - 32)
                return lg__fail(c, LG_ERR_IO, LG__OPEN ": the path is longer than %d bytes", LG__PATH - 32);
        join(file, sizeof file, path, false, "tokenizer.json");
        join(other, sizeof other, path, false, "vocab.json");
        r.path = exists(c, file) ? file : exists(c, other) ? other : path;
        make_bytes(r.byte_of);
        bool ok = read_file(&r);
        close_json(&r);
        if (!ok)
                return false;
        join(ends, sizeof ends, r.path, true, "tokenizer_config.json");
        r.path = ends;
        if (exists(c, ends))
                ok = read_json(&r);
        if (ok)
                lg__read_ends(&r);
        close_json(&r);
        return ok;
}
