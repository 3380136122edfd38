/* config.c - reads from tokenizer.json how texts are split: added tokens, normalizer, pre_tokenizer, post_processor. */
#include <ctype.h>
#include <stdlib.h>
#include "read.h"

/* GPT-2's words; the file says that it is used, not what it is. */
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* A character of a word, as \w in the expressions of Rust. */
#define LETTERS                                                                                                        \
        "[\\p{L}\\p{M}\\p{Nl}\\p{Nd}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{200c}\\x{200d}\\x{1f130}-\\x{1f149}"                 \
        "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}]"

static lg__stage *add_stage(lg__reader *r, lg__stage_fn *run)
{
        lg_tokenizer *t = r->t;
        if (t->stage_count == LG__STAGES) {
                lg__reader_bad(r, "the pre_tokenizer has more than %d parts", LG__STAGES - 6);
                return NULL;
        }
        lg__stage *stage = &t->stages[t->stage_count++];
        *stage = (lg__stage){.run = run};
        return stage;
}

/* ---- added tokens ---- */

static bool add_added(lg__reader *r, lg__json p)
{
        static const char *const names[] = {"id",     "content",     "special",   "lstrip",
                                            "rstrip", "single_word", "normalized"};
        lg_tokenizer *t = r->t;
        lg__json m[7];
        lg__json_pick(p, 7, names, m);
        const int64_t id = lg__json_number(&m[0]);
        char *content = m[1].to;
        lg__json_string(&m[1]);
        const int64_t bytes = (int64_t)strlen(content);
        if (bytes == 0)
                return true;
        if (!lg__grow(r->c, &t->added, t->added_count, &t->added_room, sizeof *t->added))
                return false;
        bool flags[7] = {false};
        for (int i = 2; i < 7; i++)
                flags[i] = m[i].s && *m[i].s == 't';
        lg__added *a = &t->added[t->added_count++];
        *a = (lg__added){lg__reader_keep(t, content, bytes),
                         (uint32_t)bytes,
                         (uint32_t)id,
                         flags[2],
                         flags[3],
                         flags[4],
                         flags[5],
                         flags[6]};
        lg__token *token = &t->tokens[id];
        bool same = !token->s || (token->bytes == bytes && !memcmp(token->s, a->s, (size_t)bytes));
        const int64_t n = lg__reader_bytes(r, content, (size_t)bytes, NULL);
        if (n > 0) { /* the vocabulary has tokens by what they mean */
                lg__reader_bytes(r, content, (size_t)bytes, content);
                const uint32_t known = lg__bpe_find(t, content, (size_t)n);
                same = known == LG__NO_ID ? same : known == id;
        }
        if (!same)
                return lg__reader_bad(r, "the added token %s has the id %lld, but the vocabulary says something else",
                                      lg__quoted(a->s).s, (long long)id);
        if (!token->s)
                *token = (lg__token){a->s, a->bytes, false};
        token->special = a->special;
        return true;
}

static int by_bytes(const void *a, const void *b)
{
        const lg__added *x = a, *y = b;
        if (x->normalized != y->normalized)
                return x->normalized ? 1 : -1;
        return strcmp(x->s, y->s);
}

/* Reads added tokens, which lg__read_config() makes stages of: those that are found before the normalizer first. */
static bool read_added(lg__reader *r, lg__json p)
{
        lg_tokenizer *t = r->t;
        bool words = false, back = false;
        if (!lg__json_given(p))
                return true;
        for (p.s++; lg__json_next(&p); lg__json_skip(&p))
                if (!add_added(r, p))
                        return false;
        if (t->added_count > 0)
                qsort(t->added, (size_t)t->added_count, sizeof *t->added, by_bytes);
        for (int64_t i = 0; i < t->added_count; i++) {
                words = words || t->added[i].single_word;
                if (i > 0 && by_bytes(&t->added[i - 1], &t->added[i]) == 0)
                        return lg__reader_bad(r, "there are two added tokens %s", lg__quoted(t->added[i].s).s);
        }
        if (words)
                t->letters = lg__pattern_new(r->c, LG__OPEN, r->path, LETTERS, &back);
        return !words || t->letters;
}

static bool add_added_stage(lg__reader *r, bool normalized)
{
        lg_tokenizer *t = r->t;
        int64_t from = 0, count = 0, longest = 0;
        bool lstrip = false;
        for (int64_t i = 0; i < t->added_count; i++) {
                const lg__added *a = &t->added[i];
                if (a->normalized != normalized) {
                        from += !a->normalized;
                        continue;
                }
                count++;
                longest = a->bytes > longest ? a->bytes : longest;
                lstrip = lstrip || a->lstrip;
        }
        lg__stage *stage = count ? add_stage(r, lg__stage_added) : NULL;
        if (!stage)
                return count == 0;
        stage->added = t->added + from;
        stage->added_count = count;
        stage->longest = longest;
        stage->lstrip = lstrip;
        return true;
}

/* ---- normalizer and pre_tokenizer ---- */

/* Passes each entry of an array to read(). Returns false with an error. */
static bool read_all(lg__reader *r, const char *part, lg__json p, bool (*read)(lg__reader *r, lg__json p))
{
        if (!p.s || *p.s++ != '[')
                return lg__reader_bad(r, "a Sequence of the %s has no array", part);
        for (; lg__json_next(&p); lg__json_skip(&p))
                if (!read(r, p))
                        return false;
        return true;
}

static bool read_normalizer(lg__reader *r, lg__json p)
{
        static const char *const names[] = {"type", "normalizers"};
        lg__json m[2];
        if (!lg__json_given(p))
                return true;
        lg__json_pick(p, 2, names, m);
        if (lg__json_is(m[0], "Sequence"))
                return read_all(r, "normalizer", m[1], read_normalizer);
        if (!lg__json_is(m[0], "NFC"))
                return lg__reader_lacks(r, "normalizer", p);
        r->t->normalizes = true;
        return lg__can_normalize(r->c, LG__OPEN);
}

static bool add_split(lg__reader *r, const char *expression, bool drop_match, bool drop_others)
{
        lg__stage *stage = add_stage(r, lg__stage_split);
        if (!stage)
                return false;
        stage->drop_match = drop_match;
        stage->drop_others = drop_others;
        stage->pattern = lg__pattern_new(r->c, LG__OPEN, r->path, expression, &r->t->looks_back);
        return stage->pattern;
}

/* Adds a stage for a pattern that is a text, which is quoted. */
static bool add_split_text(lg__reader *r, const char *text, bool drop_match, bool drop_others)
{
        lg__buffer b = {0};
        bool ok = true;
        for (const char *s = text; *s && ok; s++)
                ok = ((unsigned char)*s >= 0x80 || isalnum((unsigned char)*s) || lg__buffer_put(r->c, &b, "\\", 1)) &&
                     lg__buffer_put(r->c, &b, s, 1);
        ok = ok && lg__buffer_put(r->c, &b, "", 1) && add_split(r, b.s, drop_match, drop_others);
        lg__buffer_free(r->c, &b);
        return ok;
}

static bool read_split(lg__reader *r, lg__json pattern, lg__json behavior, lg__json invert)
{
        static const char *const names[] = {"Regex", "String"};
        lg__json m[2];
        const bool inverts = invert.s && *invert.s == 't', removes = lg__json_is(behavior, "Removed");
        if (!removes && !lg__json_is(behavior, "Isolated"))
                return lg__reader_bad(r,
                                      "a Split has another behavior than Isolated and Removed, which libgrad does not "
                                      "have");
        lg__json_pick(pattern, 2, names, m);
        lg__json *p = m[0].s ? &m[0] : &m[1];
        if (!p->s || *p->s != '"')
                return lg__reader_bad(r, "a Split has no pattern");
        const char *expression = lg__json_string(p);
        return (m[0].s ? add_split : add_split_text)(r, expression, removes && !inverts, removes && inverts);
}

static bool read_pre_tokenizer(lg__reader *r, lg__json p)
{
        static const char *const names[] = {"type",   "pretokenizers",    "pattern",   "behavior",
                                            "invert", "add_prefix_space", "use_regex", "individual_digits"};
        lg__json m[8];
        lg__json_pick(p, 8, names, m);
        if (lg__json_is(m[0], "Sequence"))
                return read_all(r, "pre_tokenizer", m[1], read_pre_tokenizer);
        if (r->has_bytes)
                return lg__reader_bad(r, "a pre_tokenizer follows ByteLevel, which libgrad does not have");
        if (lg__json_is(m[0], "Split"))
                return read_split(r, m[2], m[3], m[4]);
        if (lg__json_is(m[0], "Digits"))
                return add_split(r, m[7].s && *m[7].s == 't' ? "\\p{N}" : "\\p{N}+", false, false);
        if (!lg__json_is(m[0], "ByteLevel"))
                return lg__reader_lacks(r, "pre_tokenizer", p);
        r->has_bytes = true;
        return ((m[5].s && *m[5].s == 'f') || add_stage(r, lg__stage_space)) &&
               ((m[6].s && *m[6].s == 'f') || add_split(r, GPT2, false, false));
}

/* ---- post_processor ---- */

/* Adds the ids of an array to a list. Entries that are no numbers are skipped. */
static bool add_ids(lg__reader *r, lg__json p, lg__ids *to)
{
        if (!p.s || *p.s++ != '[')
                return lg__reader_bad(r, "a special token of the post_processor has no ids");
        while (lg__json_next(&p)) {
                const bool number = *p.s >= '0' && *p.s <= '9';
                lg__json value = p;
                const int64_t id = number ? lg__json_number(&value) : 0;
                lg__json_skip(&p);
                if (number && !lg_tokenizer_token(r->t, id))
                        return lg__reader_bad(r, "the post_processor adds the id %lld, which no token has",
                                              (long long)id);
                if (number && !lg__ids_add(r->c, to, (uint32_t)id))
                        return false;
        }
        return true;
}

/* Reads the template of one text: special tokens before and after the text, once. */
static bool read_template(lg__reader *r, lg__json p, lg__json tokens)
{
        static const char *const kinds[] = {"SpecialToken", "Sequence"}, *const ids[] = {"ids"};
        bool seen = false;
        if (!p.s || *p.s++ != '[')
                return lg__reader_bad(r, "the post_processor has no array \"single\"");
        for (; lg__json_next(&p); lg__json_skip(&p)) {
                static const char *const names[] = {"id"};
                lg__json kind[2], id, token, list;
                char name[256];
                lg__json_pick(p, 2, kinds, kind);
                if (!kind[0].s) {
                        if (seen || !kind[1].s)
                                return lg__reader_bad(r, "the post_processor has not one text in \"single\"");
                        seen = true;
                        continue;
                }
                lg__json_pick(kind[0], 1, names, &id);
                if (!id.s || *id.s != '"')
                        return lg__reader_bad(r, "a special token of the post_processor has no id");
                snprintf(name, sizeof name, "%s", lg__json_string(&id));
                lg__json_pick(tokens, 1, (const char *const[]){name}, &token);
                lg__json_pick(token, 1, ids, &list);
                if (!add_ids(r, list, seen ? &r->t->after : &r->t->before))
                        return false;
        }
        return seen || lg__reader_bad(r, "the post_processor has not one text in \"single\"");
}

static bool read_post_processor(lg__reader *r, lg__json p)
{
        static const char *const names[] = {"type", "processors", "single", "special_tokens", "cls", "sep"};
        lg_tokenizer *t = r->t;
        lg__json m[6];
        if (!lg__json_given(p))
                return true;
        lg__json_pick(p, 6, names, m);
        if (lg__json_is(m[0], "Sequence"))
                return read_all(r, "post_processor", m[1], read_post_processor);
        if (lg__json_is(m[0], "ByteLevel"))
                return true;
        const bool template = lg__json_is(m[0], "TemplateProcessing");
        if (!template && !lg__json_is(m[0], "RobertaProcessing") && !lg__json_is(m[0], "BertProcessing"))
                return lg__reader_lacks(r, "post_processor", p);
        if (t->before.count || t->after.count)
                return lg__reader_bad(r, "the post_processor has two templates, which libgrad does not have");
        return template ? read_template(r, m[2], m[3]) : add_ids(r, m[4], &t->before) && add_ids(r, m[5], &t->after);
}

/* ---- all ---- */

/* Adds the stages before those of the pre_tokenizer. */
static bool begin_stages(lg__reader *r)
{
        return add_added_stage(r, false) && add_stage(r, lg__stage_utf8) &&
               (!r->t->normalizes || add_stage(r, lg__stage_nfc)) && add_added_stage(r, true);
}

bool lg__read_config(lg__reader *r, const lg__json *m)
{
        if (!read_added(r, m[LG__ADDED_TOKENS]) || !read_normalizer(r, m[LG__NORMALIZER]) || !begin_stages(r))
                return false;
        if (lg__json_given(m[LG__PRE_TOKENIZER]) && !read_pre_tokenizer(r, m[LG__PRE_TOKENIZER]))
                return false;
        if (!r->has_bytes)
                return lg__reader_bad(r, "the pre_tokenizer is not ByteLevel; libgrad has byte-level BPE only");
        return add_stage(r, lg__stage_bpe) && read_post_processor(r, m[LG__POST_PROCESSOR]);
}

bool lg__make_config(lg__reader *r)
{
        static const char end[] = "<|endoftext|>";
        lg_tokenizer *t = r->t;
        const int64_t id = lg_tokenizer_id(t, end);
        if (id >= 0) {
                if (!lg__grow(r->c, &t->added, 0, &t->added_room, sizeof *t->added))
                        return false;
                t->added[t->added_count++] =
                        (lg__added){.s = end, .bytes = sizeof end - 1, .id = (uint32_t)id, .special = true};
                t->tokens[id].special = true;
        }
        return begin_stages(r) && add_split(r, GPT2, false, false) && add_stage(r, lg__stage_bpe);
}

/* Returns the id of a token that is written as a text or as an object with the member "content", or -1. */
static int64_t end_of(const lg_tokenizer *t, lg__json p)
{
        static const char *const names[] = {"content"};
        lg__json content = p;
        if (p.s && *p.s == '{')
                lg__json_pick(p, 1, names, &content);
        return content.s && *content.s == '"' ? lg_tokenizer_id(t, lg__json_string(&content)) : -1;
}

void lg__read_ends(lg__reader *r)
{
        static const char *const names[] = {"bos_token", "eos_token"};
        lg_tokenizer *t = r->t;
        lg__json m[2];
        lg__json_pick(r->top, 2, names, m);
        t->bos = end_of(t, m[0]);
        t->eos = end_of(t, m[1]);
        if (t->bos < 0 && t->before.count > 0)
                t->bos = t->before.items[0];
        t->bos = t->bos < 0 ? lg_tokenizer_id(t, "<|endoftext|>") : t->bos;
        t->eos = t->eos < 0 ? lg_tokenizer_id(t, "<|endoftext|>") : t->eos;
}
