/* encode_file.c - lg_tokenizer_encode_file(): a text file of any size, a part at a time. */
#include "io/sink.h"
#include "io/source.h"
#include "tokenizer.h"

#define OP "lg_tokenizer_encode_file"
#define PART ((int64_t)1 << 20) /* bytes that are read at a time */

typedef struct job {
        lg_tokenizer *t;
        lg_ctx *c;
        lg_tokenizer_encode_file_options o;
        lg__source source;
        lg__sink sink;
        lg__call call;
        lg__ids ids;
        lg__buffer raw, text; /* bytes not yet normalised, if the tokenizer does that; text not yet encoded */
        int64_t done, tokens;
        bool ended;
} job;

/* Moves raw bytes to the text, normalised as far as they are known not to depend on what follows: before the last ASCII
 * character, or all at the end. */
static bool normalize(job *j)
{
        int64_t n = j->raw.bytes, at = 0;
        while (!j->ended && n > 0 && (unsigned char)j->raw.s[n - 1] >= 0x80)
                n--;
        n -= !j->ended && n > 0;
        while (at < n) {
                int64_t end = at;
                for (int k; end < n && (k = lg__utf8_length((lg__span){j->raw.s + end, (size_t)(n - end)})) > 0;)
                        end += k;
                if (end > at && !lg__normalize(j->c, OP, j->raw.s + at, end - at, &j->text))
                        return false;
                if (end < n && !lg__buffer_put(j->c, &j->text, j->raw.s + end, 1))
                        return false;
                at = end < n ? end + 1 : end;
        }
        j->raw.bytes -= n;
        if (n > 0)
                memmove(j->raw.s, j->raw.s + n, (size_t)j->raw.bytes);
        return true;
}

static bool read_part(job *j)
{
        lg__buffer *to = j->t->normalizes ? &j->raw : &j->text;
        size_t got = 0;
        /* A word that is longer than the text so far is read in parts that grow, so that it is not split often. */
        const int64_t room = j->text.bytes > PART ? j->text.bytes : PART;
        if (!lg__buffer_reserve(j->c, to, room) || !lg__source_some(&j->source, to->s + to->bytes, (size_t)room, &got))
                return false;
        to->bytes += (int64_t)got;
        j->ended = (int64_t)got < room;
        return !j->ended || lg__source_at_end(&j->source) ? !j->t->normalizes || normalize(j) : false;
}

static bool write_ids(job *j)
{
        const int bytes = j->o.bits / 8;
        for (int64_t i = 0; i < j->ids.count; i++) {
                const uint32_t id = j->ids.items[i];
                const unsigned char number[4] = {id & 0xff, id >> 8 & 0xff, id >> 16 & 0xff, id >> 24};
                if (!lg__sink_put(&j->sink, number, (size_t)bytes))
                        return false;
        }
        j->tokens += j->ids.count;
        j->ids.count = 0;
        return true;
}

static bool encode_part(job *j)
{
        const int64_t used = lg__stages_run(&j->call, 0, j->text.s, j->text.bytes, j->ended);
        if (used < 0)
                return false;
        if (j->ended && j->o.add_eos && !lg__ids_add(j->c, &j->ids, (uint32_t)j->t->eos))
                return false;
        if (used > 0) {
                j->call.word_before = lg__is_word(j->t, j->text.s, used, true);
                j->text.bytes -= used;
                memmove(j->text.s, j->text.s + used, (size_t)j->text.bytes);
        }
        j->done += used;
        if (!write_ids(j))
                return false;
        if (j->o.progress)
                j->o.progress(j->done, j->tokens, j->o.user);
        return true;
}

static bool run(job *j)
{
        if (!lg__source_open(&j->source))
                return false;
        bool ok = lg__sink_open(&j->sink);
        while (ok && !j->ended)
                ok = read_part(j) && encode_part(j);
        ok = ok && lg__sink_commit(&j->sink);
        lg__sink_close(&j->sink);
        lg__source_close(&j->source);
        return ok;
}

static bool check(job *j)
{
        const lg_tokenizer *t = j->t;
        const int needed = t->size <= 65536 ? 16 : 32;
        j->o.bits = j->o.bits ? j->o.bits : needed;
        if ((j->o.bits != 16 && j->o.bits != 32) || j->o.bits < needed)
                return lg__fail(j->c, LG_ERR_ARGUMENT, OP ": .bits is %d; it must be %s for %lld tokens", j->o.bits,
                                needed == 32 ? "32" : "16 or 32", (long long)t->size);
        if (j->o.add_eos && t->eos < 0)
                return lg__fail(j->c, LG_ERR_ARGUMENT, OP ": .add_eos is given, but the tokenizer has no eos");
        return !t->looks_back ||
               lg__fail(j->c, LG_ERR_STATE,
                        OP
                        ": a regular expression of the tokenizer looks back, so that a text cannot be read in parts");
}

bool lg_tokenizer_encode_file_with(lg_tokenizer *t, const char *from, const char *to,
                                   const lg_tokenizer_encode_file_options *options)
{
        job j = {.t = t, .c = t ? t->object.ctx : NULL};
        if (!lg__take(j.c, OP, options, &j.o, sizeof j.o))
                return false;
        if (!from || !to)
                return lg__fail(j.c, LG_ERR_ARGUMENT, OP ": the path of the %s is NULL", from ? "tokens" : "text");
        if (!check(&j))
                return false;
        j.source = (lg__source){.ctx = j.c, .who = OP, .path = from};
        j.sink = (lg__sink){.ctx = j.c, .op = OP, .path = to};
        j.call = (lg__call){.t = t, .op = OP, .ids = &j.ids, .plain = j.o.plain, .normalized = t->normalizes};
        const bool ok = run(&j);
        lg__buffer_free(j.c, &j.raw);
        lg__buffer_free(j.c, &j.text);
        lg__free(j.c, j.ids.items, (size_t)j.ids.room * sizeof *j.ids.items);
        if (ok && j.o.tokens)
                *j.o.tokens = j.tokens;
        return ok;
}
