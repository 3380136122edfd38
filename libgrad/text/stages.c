/* stages.c - the stages that a text passes through: each finds the parts that the next one gets; the last is BPE. */
#include "tokenizer.h"

#define ANY_ERROR (-1)

int64_t lg__stages_run(lg__call *call, int k, const char *s, int64_t bytes, bool final)
{
        const int64_t used = bytes > 0 ? call->t->stages[k].run(call, k, s, bytes, final) : 0;
        if (final)
                call->begun &= ~(~0u << k); /* the text of this stage and of those after it has ended */
        return used;
}

/* Passes bytes `from` to `to`, at which this part ends, to stage k. Returns false with an error. */
static bool pass(lg__call *call, int k, const char *s, int64_t from, int64_t to)
{
        return lg__stages_run(call, k, s + from, to - from, true) >= 0;
}

/* Passes the last part of a text, from `from` on, which goes on unless `final`. Returns as an lg__stage_fn does. */
static int64_t pass_rest(lg__call *call, int k, const char *s, int64_t from, int64_t to, bool final)
{
        const int64_t used = lg__stages_run(call, k, s + from, to - from, final);
        return used < 0 ? ANY_ERROR : from + used;
}

/* ---- added tokens ---- */

/* Decodes the UTF-8 character at s, of n bytes. */
static uint32_t code_of(const char *s, int n)
{
        uint32_t v = (unsigned char)*s & (n == 1 ? 0x7f : 0xff >> (n + 1));
        for (int i = 1; i < n; i++)
                v = v << 6 | ((unsigned char)s[i] & 0x3f);
        return v;
}

static bool is_blank(uint32_t v)
{
        return (v >= 9 && v <= 13) || v == ' ' || v == 0x85 || v == 0xa0 || v == 0x1680 ||
               (v >= 0x2000 && v <= 0x200a) || v == 0x2028 || v == 0x2029 || v == 0x202f || v == 0x205f || v == 0x3000;
}

/* Returns the bytes of the first, or the last, character of a text; 0 if the text is empty or not UTF-8 there. */
static int character(const char *s, int64_t bytes, bool last)
{
        if (!last)
                return lg__utf8_length((lg__span){s, (size_t)bytes});
        int n = 1;
        while (n < 4 && n < bytes && ((unsigned char)s[bytes - n] & 0xc0) == 0x80)
                n++;
        return bytes > 0 && lg__utf8_length((lg__span){s + bytes - n, (size_t)n}) == n ? n : 0;
}

/* Returns the bytes of the blanks at the beginning, or the end, of a text. */
static int64_t blanks(const char *s, int64_t bytes, bool last)
{
        int64_t done = 0;
        for (int n; (n = character(last ? s : s + done, bytes - done, last)) > 0; done += n)
                if (!is_blank(code_of(last ? s + bytes - done - n : s + done, n)))
                        break;
        return done;
}

bool lg__is_word(const lg_tokenizer *t, const char *s, int64_t bytes, bool last)
{
        int64_t begin, end;
        const int n = character(s, bytes, last);
        return n > 0 && t->letters &&
               lg__pattern_find(t->letters, "", last ? s + bytes - n : s, n, 0, true, &begin, &end) == LG__FOUND;
}

/* Returns the first of the tokens from lo to hi whose byte at `depth` is at least v. They are sorted, equal before
 * `depth` and longer than it. */
static const lg__added *bound(const lg__added *lo, const lg__added *hi, int64_t depth, int v)
{
        while (lo < hi) {
                const lg__added *middle = lo + (hi - lo) / 2;
                if ((unsigned char)middle->s[depth] < v)
                        lo = middle + 1;
                else
                        hi = middle;
        }
        return lo;
}

/* Returns the longest added token at the beginning of a text, or NULL. */
static const lg__added *longest_at(const lg__stage *stage, const char *s, int64_t bytes)
{
        const lg__added *lo = stage->added, *hi = lo + stage->added_count, *best = NULL;
        for (int64_t depth = 0; lo < hi; depth++) {
                if (lo->bytes == depth)
                        best = lo++;
                if (depth == bytes)
                        break;
                const int v = (unsigned char)s[depth];
                lo = bound(lo, hi, depth, v);
                hi = bound(lo, hi, depth, v + 1);
        }
        return best;
}

/* Finds the first added token at or after *at, which becomes its beginning; *ret_end is its end. Returns NULL if there
 * is none; *at is then `bytes`, or less if a token that begins there may go on after the text. */
static const lg__added *next_added(const lg__call *call, const lg__stage *stage, const char *s, int64_t bytes,
                                   bool final, int64_t *at, int64_t *ret_end)
{
        const lg__added *found = NULL;
        for (; *at < bytes; ++*at) {
                if (!final && bytes - *at < stage->longest + 4) /* 4: the character after it */
                        return NULL;
                found = longest_at(stage, s + *at, bytes - *at);
                if (!found)
                        continue;
                *ret_end = *at + found->bytes;
                if (!(call->plain && found->special))
                        return found;
                *at = *ret_end - 1;
        }
        return NULL;
}

/* Returns whether the characters around a token allow it. */
static bool stands_alone(const lg__call *call, int k, const lg__added *a, const char *s, int64_t begin, int64_t end,
                         int64_t bytes)
{
        const bool after = begin > 0 ? lg__is_word(call->t, s, begin, true) : call->begun >> k & 1 && call->word_before;
        return !a->single_word || !(after || lg__is_word(call->t, s + end, bytes - end, false));
}

int64_t lg__stage_added(lg__call *call, int k, const char *s, int64_t bytes, bool final)
{
        const lg__stage *stage = &call->t->stages[k];
        int64_t done = 0, at = 0, end = 0;
        for (const lg__added *a; (a = next_added(call, stage, s, bytes, final, &at, &end)); at = end) {
                if (!stands_alone(call, k, a, s, at, end, bytes))
                        continue;
                int64_t begin = a->lstrip ? at - blanks(s, at, true) : at;
                int64_t stop = a->rstrip ? end + blanks(s + end, bytes - end, false) : end;
                begin = begin > done ? begin : done;
                if (!final && a->rstrip && bytes - stop < stage->longest + 4)
                        break; /* more blanks may follow, and tokens that begin in them */
                if (!pass(call, k + 1, s, done, begin) || !lg__ids_add(call->t->object.ctx, call->ids, a->id))
                        return ANY_ERROR;
                done = stop;
        }
        at = at > done ? at : done;
        const int64_t rest = final || !stage->lstrip ? at : at - blanks(s, at, true);
        done = pass_rest(call, k + 1, s, done, rest > done ? rest : done, final);
        if (!final && done > 0)
                call->begun |= 1u << k;
        return done;
}

/* ---- UTF-8 and its normal form ---- */

int lg__utf8_broken(const char *s, int64_t bytes, bool *ret_incomplete)
{
        char ends[2][4] = {{'\x80', '\x80', '\x80', '\x80'}, {'\xbf', '\xbf', '\xbf', '\xbf'}};
        for (int n = bytes < 3 ? (int)bytes : 3; n > 0; n--)
                for (int i = 0; i < 2; i++) {
                        memcpy(ends[i], s, (size_t)n);
                        if (lg__utf8_length((lg__span){ends[i], 4}) > n) {
                                *ret_incomplete = n == bytes;
                                return n;
                        }
                        memset(ends[i], i ? '\xbf' : '\x80', 4);
                }
        *ret_incomplete = false;
        return 1;
}

int64_t lg__stage_utf8(lg__call *call, int k, const char *s, int64_t bytes, bool final)
{
        int64_t done = 0, at = 0;
        bool incomplete = false;
        while (at < bytes) {
                const int n =
                        (unsigned char)s[at] < 0x80 ? 1 : lg__utf8_length((lg__span){s + at, (size_t)(bytes - at)});
                if (n > 0) {
                        at += n;
                        continue;
                }
                const int broken = lg__utf8_broken(s + at, bytes - at, &incomplete);
                if (incomplete && !final)
                        break;
                if (!pass(call, k + 1, s, done, at) || !lg__bpe_encode(call->t, call->op, s + at, broken, call->ids))
                        return ANY_ERROR;
                done = at += broken;
        }
        return pass_rest(call, k + 1, s, done, at, final);
}

int64_t lg__stage_nfc(lg__call *call, int k, const char *s, int64_t bytes, bool final)
{
        lg_ctx *c = call->t->object.ctx;
        int64_t plain = 0;
        while (plain < bytes && (unsigned char)s[plain] < 0xcc) /* characters before U+0300 never change */
                plain++;
        if (plain == bytes || call->normalized)
                return lg__stages_run(call, k + 1, s, bytes, final);
        lg__buffer text = {0};
        const bool ok = lg__normalize(c, call->op, s, bytes, &text) &&
                        lg__stages_run(call, k + 1, text.s, text.bytes, true) >= 0;
        lg__buffer_free(c, &text);
        return ok ? bytes : ANY_ERROR;
}

/* ---- patterns, spaces, BPE ---- */

int64_t lg__stage_split(lg__call *call, int k, const char *s, int64_t bytes, bool final)
{
        const lg__stage *stage = &call->t->stages[k];
        int64_t done = 0, at = 0, last = -1, begin = 0, end = 0;
        lg__found found = LG__FOUND_NOTHING;
        while (at < bytes) {
                found = lg__pattern_find(stage->pattern, call->op, s, bytes, at, final, &begin, &end);
                if (found == LG__FOUND_ERROR)
                        return ANY_ERROR;
                if (found != LG__FOUND)
                        break;
                if (begin == end && end == last) { /* no empty match after another match */
                        at += lg__utf8_length((lg__span){s + at, (size_t)(bytes - at)});
                        continue;
                }
                if ((!stage->drop_others && !pass(call, k + 1, s, done, begin)) ||
                    (!stage->drop_match && !pass(call, k + 1, s, begin, end)))
                        return ANY_ERROR;
                done = at = last = end;
        }
        const int64_t rest = found == LG__FOUND_PART ? begin : bytes;
        return stage->drop_others ? rest : pass_rest(call, k + 1, s, done, rest, final);
}

int64_t lg__stage_space(lg__call *call, int k, const char *s, int64_t bytes, bool final)
{
        lg__buffer *b = &call->t->spaced;
        const bool adds = *s != ' ' && !(call->begun >> k & 1);
        b->bytes = 0;
        if (adds &&
            (!lg__buffer_put(call->t->object.ctx, b, " ", 1) || !lg__buffer_put(call->t->object.ctx, b, s, bytes)))
                return ANY_ERROR;
        const int64_t used = lg__stages_run(call, k + 1, adds ? b->s : s, bytes + adds, final);
        if (used > 0 && !final)
                call->begun |= 1u << k;
        return used > 0 ? used - adds : used;
}

int64_t lg__stage_bpe(lg__call *call, int k, const char *s, int64_t bytes, bool final)
{
        (void)k;
        if (!final)
                return 0;
        return lg__bpe_encode(call->t, call->op, s, bytes, call->ids) ? bytes : ANY_ERROR;
}
